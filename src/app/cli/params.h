// Everything a subcommand can be told on its command line. options.def says which option sets which field.
#pragma once

#include "llama.h"

#include <stdbool.h>

struct params {
    // model
    const char *model;
    const char *lora;
    int32_t n_gpu_layers;
    const char *devices;
    bool mmap, mlock, check_tensors;
    const char *override_kv;
    const char *override_tensor;
    // context
    uint32_t n_ctx, n_batch, n_ubatch, n_parallel;
    int32_t n_threads, n_threads_batch;
    enum llama_flash_attn_type flash_attn;
    enum ggml_type type_k, type_v;
    bool swa_full, kv_unified, embeddings, no_perf;
    float rope_freq_base, rope_freq_scale;
    // input and output
    const char *prompt;
    const char *file;
    const char *output;
    const char *system_prompt;
    const char *chat_template;
    int32_t n_predict;
    bool display_prompt, special, ignore_eos, escape, json, quiet, timings;
    int verbosity;
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
    const char *logit_bias;  // "ID+1.5,ID-inf"
    const char *grammar, *grammar_file;
    // inspect, tokenize
    bool checksum, ids, no_bos, no_parse_special, show_count;
    // perplexity, embed
    const char *logits_file, *logits_base;
    int32_t n_chunks;
    bool all_outputs;  // not an option: a tool that reads every position's logits sets it
    bool normalize;
    enum llama_pooling_type pooling;
    // split, quantize
    const char *split_size;
    int32_t split_tensors;
    bool dry_run, pure, allow_requantize, leave_output, only_copy, keep_split;
    const char *output_type, *embedding_type, *tensor_types, *imatrix;
    ggml_backend_sched_eval_callback cb_eval;  // not options: a tool that looks at intermediate results sets them
    void *cb_eval_data;
    // convert
    const char *out_type, *model_name;
    // plan
    bool fit;
    const char *map;
    // bench: lists of numbers separated by commas
    const char *bench_p, *bench_n, *bench_pg, *bench_d, *bench_b, *bench_ub, *bench_t, *bench_fa, *bench_output;
    int32_t n_repeat;
    bool no_warmup;
    // arguments that are not options
    const char *args[16];
    int n_args;
};

// The defaults that -h shows.
struct params params_default(void);
