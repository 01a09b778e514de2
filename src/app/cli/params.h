// Everything a subcommand can be told on its command line. options.def says which option sets which field.
#pragma once

#include "ggml-cpu.h"
#include "llama.h"

#include <stdbool.h>

// Values of an option that may be given several times.
struct str_list {
    const char *v[16];
    int n;
};

struct params {
    // model
    const char *model;
    const char *lora;
    int32_t n_gpu_layers;
    const char *devices;
    bool mmap, mlock, check_tensors;
    const char *override_kv;
    const char *override_tensor;
    bool cpu_moe;
    int32_t n_cpu_moe;
    enum llama_lazy_mode lazy_mode;
    enum llama_split_mode split_mode;
    int32_t main_gpu;
    const char *tensor_split;
    bool direct_io, no_op_offload, no_kv_offload, list_devices;
    enum ggml_numa_strategy numa;
    struct str_list control_vector;  // FILE or FILE:SCALE
    const char *control_layers;      // "FIRST-LAST", NULL: all
    // context
    uint32_t n_ctx, n_batch, n_ubatch, n_parallel;
    int32_t n_threads, n_threads_batch;
    enum llama_flash_attn_type flash_attn;
    enum ggml_type type_k, type_v;
    bool swa_full, kv_unified, embeddings, no_perf;
    float rope_freq_base, rope_freq_scale, rope_scale;
    enum llama_rope_scaling_type rope_scaling;
    uint32_t yarn_orig_ctx;
    float yarn_ext_factor, yarn_attn_factor, yarn_beta_slow, yarn_beta_fast;
    // threads
    const char *cpu_mask, *cpu_range;
    int32_t cpu_strict, prio, poll;
    const char *cpu_mask_batch, *cpu_range_batch;      // NULL: as the others
    int32_t cpu_strict_batch, prio_batch, poll_batch;  // -1, -2, -1: as the others
    // input and output
    const char *prompt;
    const char *file;
    const char *output;
    const char *system_prompt, *system_file;
    const char *chat_template;
    const char *in_prefix, *in_suffix;
    struct str_list reverse_prompt;
    const char *prompt_cache;
    bool prompt_cache_all, prompt_cache_ro;
    bool conversation, no_conversation, single_turn;
    int32_t n_predict, n_keep;
    bool context_shift;
    bool display_prompt, special, ignore_eos, no_escape, json, quiet, timings;
    int verbosity;
    bool verbose;  // all messages
    const char *log_file;
    // sampling
    uint32_t seed;
    float temp, dynatemp_range, dynatemp_exp, top_p, min_p, typical_p, top_n_sigma;
    int32_t top_k, mirostat;
    float mirostat_lr, mirostat_ent;
    int32_t repeat_last_n;
    float repeat_penalty, presence_penalty, frequency_penalty;
    float dry_multiplier, dry_base;
    int32_t dry_allowed_length, dry_penalty_last_n;
    float xtc_probability, xtc_threshold;
    const char *samplers, *sampling_seq;  // which, in which order: "top_k;top_p" or "kp"
    struct str_list dry_breakers;
    float adaptive_target, adaptive_decay;
    struct str_list logit_bias;  // "ID+1.5,ID-inf"
    const char *grammar, *grammar_file, *json_schema, *json_schema_file;
    // inspect, tokenize
    bool checksum, ids, no_bos, no_parse_special, show_count;
    // perplexity, embed
    const char *logits_file, *logits_base;
    bool kl_divergence;
    int32_t n_chunks;
    bool all_outputs;  // not an option: a tool that reads every position's logits sets it
    bool normalize;
    int32_t embd_normalize;
    const char *embd_format, *embd_separator, *cls_separator;
    enum llama_attention_type attention;
    enum llama_pooling_type pooling;
    // split, quantize
    const char *split_size;
    int32_t split_tensors;
    bool merge, no_tensor_first;
    bool dry_run, pure, allow_requantize, leave_output, only_copy, keep_split;
    const char *output_type, *embedding_type, *tensor_types, *tensor_type_file, *prune_layers, *imatrix;
    struct str_list include_weights, exclude_weights;
    struct str_list in_files;  // imatrix
    int32_t from_chunk;
    bool parse_special;
    ggml_backend_sched_eval_callback cb_eval;  // not options: a tool that looks at intermediate results sets them
    void *cb_eval_data;
    // convert
    const char *out_type, *model_name;
    // plan
    bool fit;
    const char *map;
    // bench: lists of numbers separated by commas
    const char *bench_m, *bench_p, *bench_n, *bench_pg, *bench_d, *bench_b, *bench_ub, *bench_t, *bench_fa, *bench_ctk,
        *bench_ctv, *bench_output;
    int32_t bench_mmap, bench_delay;  // mmap -1: as mmap says
    int32_t n_repeat;
    bool no_warmup;
    // arguments that are not options
    const char *args[16];
    int n_args;
};

// The defaults that -h shows.
struct params params_default(void);
