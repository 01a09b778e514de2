// From options to a loaded model, a context, a sampler chain and the tokens of a prompt. Shared by the tools.
#pragma once

#include "cli/params.h"

#include <stddef.h>

struct session {
    struct llama_model *model;
    struct llama_context *ctx;  // NULL if only the model was asked for
    const struct llama_vocab *vocab;
    struct llama_adapter_lora *lora[8];
    int n_lora;
    struct ggml_threadpool *pool[2];  // generating, reading; NULL: the context's own
};

// Path of the model to use: -m, else the default model in the user's cache. NULL after a sentence on stderr.
const char *session_model_path(const struct params *p);
// Reads "KEY=TYPE:VALUE,..." into overrides, the last of which is empty. Gives how many, or -1 after a sentence on stderr.
int session_overrides(struct llama_model_kv_override *out, int max, const char *list);
// What options say of loading, and what that points to.
struct model_options {
    struct llama_model_params params;
    struct llama_model_kv_override overrides[32];
    ggml_backend_dev_t devices[17];
    struct llama_model_tensor_buft_override places[33];
    char patterns[32][256];
    char experts[4096];  // one more pattern: --n-cpu-moe
    float shares[16];
};
// 0, or 2 after a sentence on stderr. *o must not move afterwards.
int session_model_options(struct model_options *o, const struct params *p);
// n_ctx_train: what the model was trained for, for -c 0.
struct llama_context_params session_context_options(const struct params *p, int32_t n_ctx_train);
// Both: 0, or the exit status after a sentence on stderr. session_close takes a zeroed or half-open session too.
int session_load(struct session *s, const struct params *p, bool vocab_only);
int session_context(struct session *s, const struct params *p);
void session_close(struct session *s);
// 0, or 1 after a sentence: a model of embeddings has no logits to choose tokens by.
int session_writes(const struct session *s);
// Prints the devices of --list-devices.
void session_list_devices(void);

// The sampler chain that the options describe, NULL after a sentence on stderr. Owner: the caller.
struct llama_sampler *session_sampler(const struct session *s, const struct params *p);
// A prompt's tokens for what looks back on them (penalties); a grammar begins anew behind them.
void session_prompt_seen(struct llama_sampler *chain, const llama_token *tokens, int32_t n);

struct text {
    char *data;  // not terminated; malloc
    size_t size;
};
// A whole file ("-": standard input). 0, or the exit status after a sentence on stderr.
int text_read(struct text *t, const char *path);
// The prompt: -p, -f, or standard input when it is not a terminal. 0, or the exit status.
int text_prompt(struct text *t, const struct params *p);

struct tokens {
    llama_token *data;  // malloc
    int32_t n;
};
// 0, or the exit status after a sentence on stderr.
int tokens_make(struct tokens *t, const struct llama_vocab *vocab, const char *text, size_t size, bool add_special,
                bool parse_special);
int tokens_append(struct tokens *t, const struct tokens *more);

// Decodes tokens [0, n) of one sequence in batches; the last one's logits are kept. 0, 130 when interrupted, else 1.
int session_feed(struct session *s, llama_token *tokens, int32_t n, bool show_progress);
// --context-shift: forgets the older half of what came after the first n_keep of *n_past positions. 0, or 1 after a sentence.
int session_forget(struct session *s, int32_t n_keep, int32_t *n_past);
// Writes a token's text; incomplete UTF-8 sequences are held back in `held` (at most 4 bytes) until they are whole.
struct piece_writer {
    char held[8];
    int n_held;
};
void piece_write(struct piece_writer *w, const struct llama_vocab *vocab, llama_token token, bool special);
void piece_flush(struct piece_writer *w);

// Watches for texts that end a generation.
struct stop_text {
    const struct str_list *texts;
    char tail[1024];  // of what was written
    size_t n;
};
// Takes a token's text in; true where one of the texts now stands at the end.
bool stop_reached(struct stop_text *s, const struct llama_vocab *vocab, llama_token token);
