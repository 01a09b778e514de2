// Lamina's additions to the language-model interface.
#pragma once

#include "llama/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- text that others wrote ------------------------------------------------------------------------------------------
// llama_tokenize for a text in parts, of which only some may hold control tokens: what a user or a tool wrote stays plain
// text, even if it spells a control token. The tokens are those of the whole text.
// text: the parts end to end; lens [n_parts] bytes; parse_special [n_parts]. Result as of llama_tokenize.
LLAMA_API int32_t llama_tokenize_parts(const struct llama_vocab *vocab, const char *text, const size_t *lens,
                                       const bool *parse_special, size_t n_parts, llama_token *tokens, int32_t n_tokens_max,
                                       bool add_special);
// The tokens of a conversation in the format of llama_chat_apply_template, where only the format's own text becomes control
// tokens. BOS is added as the vocabulary says. Errors: INT32_MIN (unknown template, messages without role or content).
LLAMA_API int32_t llama_chat_tokenize(const struct llama_vocab *vocab, const char *tmpl,
                                      const struct llama_chat_message *chat, size_t n_msg, bool add_ass, llama_token *tokens,
                                      int32_t n_tokens_max);

// The system message that a model's template (Jinja, which is not executed) writes where a conversation has none, as some do ("You are ..."): copied
// into buf [length], ended by a zero and cut if it doesn't fit. Returns its length, 0 if the template holds none that can be told, -1 if tmpl is NULL.
LLAMA_API int32_t llama_chat_default_system(const char *tmpl, char *buf, int32_t length);

// ---- converting checkpoints ----------------------------------------------------------------------------------------
struct llama_convert_params {
    enum ggml_type type;                        // of the matrices: F32, F16, BF16 or Q8_0; norms and small tensors stay F32
    const char *name;                           // general.name; NULL: the checkpoint's folder
    llama_progress_callback progress_callback;  // 0 .. 1; false cancels. May be NULL
    void *progress_callback_user_data;
};

// F16, no progress.
LLAMA_API struct llama_convert_params llama_convert_default_params(void);

// Writes a checkpoint (a folder with config.json, tokenizer files and safetensors) as a GGUF file. The tensors go through memory one
// after the other; the file is written under a temporary name and renamed. Returns 0, else a code after a sentence at ggml_last_error().
// Thread: any.
LLAMA_API int llama_model_convert(const char *checkpoint, const char *path, const struct llama_convert_params *params);

// ---- JSON schemas --------------------------------------------------------------------------------------------------
// Writes the GBNF grammar (rule "root") of a JSON schema into buf [length], ended by a zero and cut if it doesn't fit; for llama_sampler_init_grammar.
// Text that follows it is JSON that fits the schema. Properties come in the schema's order; where some are named, others come only where
// additionalProperties is a schema or true. Keywords that a grammar cannot keep to (not, if, patternProperties, uniqueItems ...) are refused.
// Returns the grammar's length without the zero (buf may be NULL with length 0), negative after a sentence with the place ("#/properties/a") at
// ggml_last_error(). Thread: any.
LLAMA_API int32_t llama_json_schema_to_grammar(const char *schema, char *buf, int32_t length);

// ---- quantizing ------------------------------------------------------------------------------------------------------
struct llama_quantize_report {
    uint32_t n_tensors;
    uint64_t bytes_in, bytes_out;  // of the tensors' data
    uint64_t bytes_files;          // of all that is written, headers and padding included
};

// llama_model_quantize with progress (0 .. 1; false cancels; called on the caller's thread) and the sizes, which are exact in a dry run
// too. Values that a type cannot hold (1e30 in f16, which conversions write as infinity) are refused. progress and report may be NULL. 0, else a code
// after a sentence at ggml_last_error(); the input is never changed.
LLAMA_API uint32_t llama_model_quantize_report(const char *fname_inp, const char *fname_out,
                                               const struct llama_model_quantize_params *params,
                                               llama_progress_callback progress, void *progress_data,
                                               struct llama_quantize_report *report);

// ---- memory ------------------------------------------------------------------------------------------------------------
// Bytes on one device, by what they are for.
struct llama_device_bytes {
    const char *name;       // the device's; valid for the life of the process
    size_t weights_mapped;  // used in the file's own pages
    size_t weights_copied;  // read into buffers
    size_t kv, recurrent;   // caches of keys and values; recurrent states
    size_t compute;         // inputs and intermediates
    size_t outputs;         // logits and embeddings: address space reserved, resident as rows are used
    size_t work;            // scratch of operations
    size_t graph;  // nodes of the graph, headers of tensors, tables of the scheduler, of batches and of the cache's cells
    size_t
        vocabulary;  // the file's header (its pages too) and the tables made of it; an upper bound where prefixes are shared
};

// Of a context that exists, model included: one entry per device, the CPU last. Returns how many devices there are; writes at most
// n_max entries.
LLAMA_API int32_t llama_context_bytes(const struct llama_context *ctx, struct llama_device_bytes *out, int32_t n_max);

// The same before anything is loaded: reads the header alone, allocates none of it. Returns -1 after a sentence at
// ggml_last_error() when model or parameters are impossible.
LLAMA_API int32_t llama_plan_bytes(const char *path_model, struct llama_model_params mparams,
                                   struct llama_context_params cparams, struct llama_device_bytes *out, int32_t n_max);

// A model of which only the header has been read, in milliseconds: what llama_model_* say of its shapes, layers and keys is true,
// weights and vocabulary aren't there. Contexts of it allocate no caches and no compute buffers: ask llama_context_bytes and
// llama_context_plan_report; computing is refused. Owner: the caller, llama_model_free. NULL after a sentence at ggml_last_error().
LLAMA_API struct llama_model *llama_model_plan_from_file(const char *path_model, struct llama_model_params params);

// Where each tensor of the largest prompt's graph lies in the compute buffers, and when (ggml/plan.h). Tensors without a name get
// that of the weight they are made with, "blk.3.ffn_up", or "blk.3.NODE"; the index of a buffer is that of llama_context_bytes.
// Owner: caller, ggml_plan_report_free. NULL after a sentence. Thread: the context's; the next decode builds its graph anew.
struct ggml_plan_report;
LLAMA_API struct ggml_plan_report *llama_context_plan_report(struct llama_context *ctx);

#ifdef __cplusplus
}
#endif
