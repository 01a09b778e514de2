// Structures of the language-model library.
#pragma once

#include "llama/enums.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-opt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_context;
struct llama_vocab;
struct llama_model;
struct llama_context;
struct llama_sampler;
struct llama_adapter_lora;
struct llama_batch_ext;
struct llama_memory_i;

typedef struct llama_memory_i *llama_memory_t;
typedef int32_t llama_pos;
typedef int32_t llama_token;
typedef int32_t llama_seq_id;
typedef bool (*llama_progress_callback)(float, void *);
typedef void (*llama_model_set_tensor_data_t)(struct ggml_tensor *, void *);
typedef uint32_t llama_state_seq_flags;
typedef void *llama_sampler_context_t;
typedef bool (*llama_opt_param_filter)(const struct ggml_tensor *, void *);

// A candidate of sampling.
typedef struct llama_token_data {
    llama_token id;  // token
    float logit;     // log-odds
    float p;         // probability, where a sampler has computed it
} llama_token_data;

// Candidates.
typedef struct llama_token_data_array {
    llama_token_data *data;  // [size]
    size_t size;
    int64_t selected;  // index of the chosen one, -1: none yet
    bool sorted;       // by logit, greatest first
} llama_token_data_array;

// Tokens or embeddings to compute, as the caller lays them out. NULL arrays mean the usual: pos continues each sequence, seq_id is 0, the
// last token gives an output.
typedef struct llama_batch {
    int32_t n_tokens;       // entries
    llama_token *token;     // [n_tokens], or NULL
    float *embd;            // [n_tokens][n_embd_inp], used where token is NULL
    llama_pos *pos;         // [n_tokens]; embeddings under M-RoPE: [4][n_tokens]
    int32_t *n_seq_id;      // [n_tokens] sequences of each entry
    llama_seq_id **seq_id;  // [n_tokens][n_seq_id]
    int8_t *logits;         // [n_tokens] non-zero: this entry gives an output
} llama_batch;

// A key's value instead of the file's. A list ends with an empty key.
struct llama_model_kv_override {
    enum llama_model_kv_override_type tag;  // which of the values
    char key[128];
    union {
        int64_t val_i64;
        double val_f64;
        bool val_bool;
        char val_str[128];
    };
};

// Tensors whose name matches the regular expression go to this kind of buffer. A list ends with a NULL pattern.
struct llama_model_tensor_buft_override {
    const char *pattern;
    ggml_backend_buffer_type_t buft;
};

// How a model is loaded. From llama_model_default_params().
struct llama_model_params {
    ggml_backend_dev_t *devices;                                           // NULL-terminated; NULL: all accelerators
    const struct llama_model_tensor_buft_override *tensor_buft_overrides;  // NULL: none
    int32_t n_gpu_layers;  // layers on devices, the output counting as the last; < 0: all
    enum llama_split_mode
        split_mode;  // NONE: one device only; LAYER: whole layers; ROW: as LAYER; TENSOR: refused with several
    enum llama_load_mode load_mode;             // how the bytes come to memory
    enum llama_lazy_mode lazy_mode;             // ON: tables of rows are not entered ahead of use (mmap only)
    int32_t main_gpu;                           // the device for split_mode NONE
    const float *tensor_split;                  // shares of the devices; NULL: by free memory
    llama_progress_callback progress_callback;  // 0 .. 1; false cancels
    void *progress_callback_user_data;
    const struct llama_model_kv_override *kv_overrides;  // NULL: none
    bool vocab_only;                                     // keys and vocabulary, no weights
    bool check_tensors;                                  // look at every value
    bool use_extra_bufts;                                // weights may go to a device's extra kinds of buffer; none has any
    bool no_host;                                        // devices' host buffers are not used in any case
    bool no_alloc;                                       // shapes and places, no data: for plans
    bool load_mtp;  // load the draft head too, if the file has one: contexts of type MTP need it
};

// A sampler inside the graph for one sequence (llama_set_sampler).
struct llama_sampler_seq_config {
    llama_seq_id seq_id;
    struct llama_sampler *sampler;
};

// How a context is made. From llama_context_default_params().
struct llama_context_params {
    uint32_t n_ctx;                                  // positions of all sequences; 0: the model's own
    uint32_t n_batch;                                // most tokens of a batch
    uint32_t n_ubatch;                               // most tokens computed at once
    uint32_t n_seq_max;                              // sequences
    uint32_t n_rs_seq;                               // snapshots of recurrent state per sequence
    uint32_t n_outputs_max;                          // most outputs of a batch; 0, or with embeddings: n_batch
    uint32_t n_outputs_max_per_seq;                  // 1; no effect: a sequence may ask for as many as the batch may
    int32_t n_threads;                               // for single tokens; -1: this machine's default
    int32_t n_threads_batch;                         // for batches; -1: as n_threads
    enum llama_context_type ctx_type;                // DEFAULT: the model; MTP: its draft head (context.h)
    enum llama_rope_scaling_type rope_scaling_type;  // UNSPECIFIED: the model's
    enum llama_pooling_type pooling_type;            // UNSPECIFIED: the model's
    enum llama_attention_type attention_type;        // UNSPECIFIED: the model's
    enum llama_flash_attn_type flash_attn_type;      // no effect: attention goes block by block in any case
    float rope_freq_base;                            // 0: the model's
    float rope_freq_scale;                           // 0: the model's
    float yarn_ext_factor;                           // < 0: the model's
    float yarn_attn_factor;                          // < 0: the model's; else times the model's
    float yarn_beta_fast;                            // < 0: the model's
    float yarn_beta_slow;                            // < 0: the model's
    uint32_t yarn_orig_ctx;                          // 0: the model's
    float defrag_thold;                              // no effect: the cache never has to be rearranged
    ggml_backend_sched_eval_callback cb_eval;        // asked before and told after every node; NULL: none
    void *cb_eval_user_data;
    enum ggml_type type_k;               // of the cached keys
    enum ggml_type type_v;               // of the cached values
    ggml_abort_callback abort_callback;  // true stops the computation
    void *abort_callback_data;
    bool embeddings;                            // give embeddings besides logits
    bool offload_kqv;                           // cache on the layers' devices
    bool no_perf;                               // times stay 0; tokens and runs are counted in any case
    bool op_offload;                            // devices may take over big products of the CPU's
    bool swa_full;                              // windowed layers keep all positions
    bool kv_unified;                            // one pool of cells for all sequences
    struct llama_sampler_seq_config *samplers;  // [n_samplers] or NULL
    size_t n_samplers;
    struct llama_context *ctx_other;  // MTP: the context whose states this one continues; may be NULL
};

// Tensors whose name matches the regular expression get this type.
struct llama_model_tensor_override {
    const char *pattern;
    enum ggml_type type;
};

// Importance of a tensor's columns.
struct llama_model_imatrix_data {
    const char *name;   // the tensor's
    const float *data;  // [size] mean squares of the activations that meet each column
    size_t size;
};

// How a model is written in other types. From llama_model_quantize_default_params().
typedef struct llama_model_quantize_params {
    int32_t nthread;                                         // <= 0: this machine's default
    enum llama_ftype ftype;                                  // the mixture
    enum ggml_type output_tensor_type;                       // of the output matrix; COUNT: the mixture's
    enum ggml_type token_embedding_type;                     // of the embedding; COUNT: the mixture's
    bool allow_requantize;                                   // take tensors that are quantized already
    bool quantize_output_tensor;                             // false: the output matrix stays as it is
    bool only_copy;                                          // all tensors stay as they are
    bool pure;                                               // one type for all matrices
    bool keep_split;                                         // as many shards as the input has
    bool dry_run;                                            // sizes alone, nothing is written
    const struct llama_model_imatrix_data *imatrix;          // importance by tensor, ends with a NULL name; NULL: none
    const struct llama_model_kv_override *kv_overrides;      // keys of the output, ends with an empty key; NULL: none
    const struct llama_model_tensor_override *tt_overrides;  // types by name, ends with a NULL pattern; NULL: none
    const int32_t *prune_layers;                             // layers to leave out, ends with -1; NULL: none
    size_t max_buf_size;  // bytes of rows at work, all threads; a row at least; 0: 1 M values each
} llama_model_quantize_params;

// Added to a token's logit.
typedef struct llama_logit_bias {
    llama_token token;
    float bias;
} llama_logit_bias;

typedef struct llama_sampler_chain_params {
    bool no_perf;
} llama_sampler_chain_params;

typedef struct llama_chat_message {
    const char *role;
    const char *content;
} llama_chat_message;

// Rows of embeddings in the caller's memory.
struct llama_embd {
    const float *data;  // [n_rows][n_embd]
    size_t n_rows;
    size_t n_embd;
};

// What samplers inside a graph pass on: nodes, or NULL.
struct llama_sampler_data {
    struct ggml_tensor *logits;      // [n]
    struct ggml_tensor *probs;       // [n]
    struct ggml_tensor *sampled;     // [1] i32
    struct ggml_tensor *candidates;  // [n] i32, NULL: all tokens in order
};

struct llama_sampler_i {
    const char *(*name)(const struct llama_sampler *);
    void (*accept)(struct llama_sampler *, llama_token);
    void (*apply)(struct llama_sampler *, llama_token_data_array *);
    void (*reset)(struct llama_sampler *);
    struct llama_sampler *(*clone)(const struct llama_sampler *);
    void (*free)(struct llama_sampler *);
    bool (*backend_init)(struct llama_sampler *, ggml_backend_buffer_type_t, uint32_t);
    void (*backend_accept)(struct llama_sampler *, struct ggml_context *, struct ggml_cgraph *, struct ggml_tensor *);
    void (*backend_apply)(struct llama_sampler *, struct ggml_context *, struct ggml_cgraph *, struct llama_sampler_data *);
    void (*backend_set_input)(struct llama_sampler *);
    void (*backend_reset)(struct llama_sampler *);
    void (*copy_state)(const struct llama_sampler *, struct llama_sampler *);
};

struct llama_sampler {
    struct llama_sampler_i *iface;
    llama_sampler_context_t ctx;
};

// Times in ms, counts of tokens or runs.
struct llama_perf_context_data {
    double t_start_ms;
    double t_load_ms;
    double t_p_eval_ms;
    double t_eval_ms;
    int32_t n_p_eval;
    int32_t n_eval;
    int32_t n_reused;  // graphs used again
};

struct llama_perf_sampler_data {
    double t_sample_ms;
    int32_t n_sample;
};

// How a model is trained (train.h).
struct llama_opt_params {
    uint32_t n_ctx_train;                 // tokens of a datapoint; 0: the context's positions per sequence
    llama_opt_param_filter param_filter;  // true: train this weight
    void *param_filter_ud;
    ggml_opt_get_optimizer_params get_opt_pars;  // asked before each step; NULL: ggml_opt_get_default_optimizer_params
    void *get_opt_pars_ud;
    enum ggml_opt_optimizer_type optimizer_type;
};

#ifdef __cplusplus
}
#endif
