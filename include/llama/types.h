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

typedef struct llama_token_data {
    llama_token id;
    float logit;
    float p;
} llama_token_data;

typedef struct llama_token_data_array {
    llama_token_data *data;
    size_t size;
    int64_t selected;
    bool sorted;
} llama_token_data_array;

typedef struct llama_batch {
    int32_t n_tokens;
    llama_token *token;
    float *embd;
    llama_pos *pos;
    int32_t *n_seq_id;
    llama_seq_id **seq_id;
    int8_t *logits;
} llama_batch;

struct llama_model_kv_override {
    enum llama_model_kv_override_type tag;
    char key[128];
    union {
        int64_t val_i64;
        double val_f64;
        bool val_bool;
        char val_str[128];
    };
};

struct llama_model_tensor_buft_override {
    const char *pattern;
    ggml_backend_buffer_type_t buft;
};

struct llama_model_params {
    ggml_backend_dev_t *devices;
    const struct llama_model_tensor_buft_override *tensor_buft_overrides;
    int32_t n_gpu_layers;
    enum llama_split_mode split_mode;
    enum llama_load_mode load_mode;
    enum llama_lazy_mode lazy_mode;
    int32_t main_gpu;
    const float *tensor_split;
    llama_progress_callback progress_callback;
    void *progress_callback_user_data;
    const struct llama_model_kv_override *kv_overrides;
    bool vocab_only;
    bool check_tensors;
    bool use_extra_bufts;
    bool no_host;
    bool no_alloc;
    bool load_mtp;
};

struct llama_sampler_seq_config {
    llama_seq_id seq_id;
    struct llama_sampler *sampler;
};

struct llama_context_params {
    uint32_t n_ctx;
    uint32_t n_batch;
    uint32_t n_ubatch;
    uint32_t n_seq_max;
    uint32_t n_rs_seq;
    uint32_t n_outputs_max;
    uint32_t n_outputs_max_per_seq;
    int32_t n_threads;
    int32_t n_threads_batch;
    enum llama_context_type ctx_type;
    enum llama_rope_scaling_type rope_scaling_type;
    enum llama_pooling_type pooling_type;
    enum llama_attention_type attention_type;
    enum llama_flash_attn_type flash_attn_type;
    float rope_freq_base;
    float rope_freq_scale;
    float yarn_ext_factor;
    float yarn_attn_factor;
    float yarn_beta_fast;
    float yarn_beta_slow;
    uint32_t yarn_orig_ctx;
    float defrag_thold;
    ggml_backend_sched_eval_callback cb_eval;
    void *cb_eval_user_data;
    enum ggml_type type_k;
    enum ggml_type type_v;
    ggml_abort_callback abort_callback;
    void *abort_callback_data;
    bool embeddings;
    bool offload_kqv;
    bool no_perf;
    bool op_offload;
    bool swa_full;
    bool kv_unified;
    struct llama_sampler_seq_config *samplers;
    size_t n_samplers;
    struct llama_context *ctx_other;
};

struct llama_model_tensor_override {
    const char *pattern;
    enum ggml_type type;
};

struct llama_model_imatrix_data {
    const char *name;
    const float *data;
    size_t size;
};

typedef struct llama_model_quantize_params {
    int32_t nthread;
    enum llama_ftype ftype;
    enum ggml_type output_tensor_type;
    enum ggml_type token_embedding_type;
    bool allow_requantize;
    bool quantize_output_tensor;
    bool only_copy;
    bool pure;
    bool keep_split;
    bool dry_run;
    const struct llama_model_imatrix_data *imatrix;
    const struct llama_model_kv_override *kv_overrides;
    const struct llama_model_tensor_override *tt_overrides;
    const int32_t *prune_layers;
    size_t max_buf_size;
} llama_model_quantize_params;

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

struct llama_embd {
    const float *data;
    size_t n_rows;
    size_t n_embd;
};

struct llama_sampler_data {
    struct ggml_tensor *logits;
    struct ggml_tensor *probs;
    struct ggml_tensor *sampled;
    struct ggml_tensor *candidates;
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

struct llama_perf_context_data {
    double t_start_ms;
    double t_load_ms;
    double t_p_eval_ms;
    double t_eval_ms;
    int32_t n_p_eval;
    int32_t n_eval;
    int32_t n_reused;
};

struct llama_perf_sampler_data {
    double t_sample_ms;
    int32_t n_sample;
};

struct llama_opt_params {
    uint32_t n_ctx_train;
    llama_opt_param_filter param_filter;
    void *param_filter_ud;
    ggml_opt_get_optimizer_params get_opt_pars;
    void *get_opt_pars_ud;
    enum ggml_opt_optimizer_type optimizer_type;
};

#ifdef __cplusplus
}
#endif
