// Small models made on the spot for targets that need one: loaded once, because a fuzzer runs millions of times in one process.
#pragma once

#include "fuzz.h"
#include "ggml.h"
#include "llama.h"

#include "../model_maker.h"

// Sizes as small as the blocks of the formats allow, so that inputs stay short.
static const struct maker_spec fuzz_specs[] = {
    {"fuzz-llama",
     "llama",
     {{"context_length", 256, 'u'},
      {"embedding_length", 32, 'u'},
      {"block_count", 2, 'u'},
      {"feed_forward_length", 32, 'u'},
      {"attention.head_count", 2, 'u'},
      {"attention.head_count_kv", 1, 'u'},
      {"attention.layer_norm_rms_epsilon", 1e-5, 'f'}}},
    {"fuzz-gemma3",
     "gemma3",
     {{"context_length", 256, 'u'},
      {"embedding_length", 32, 'u'},
      {"block_count", 2, 'u'},
      {"feed_forward_length", 32, 'u'},
      {"attention.head_count", 2, 'u'},
      {"attention.head_count_kv", 1, 'u'},
      {"attention.key_length", 16, 'u'},
      {"attention.value_length", 16, 'u'},
      {"attention.layer_norm_rms_epsilon", 1e-5, 'f'},
      {"attention.sliding_window", 70, 'u'},
      {"attention.sliding_window_pattern", 2, 'u'}}},
    {"fuzz-falcon-h1",
     "falcon-h1",
     {{"context_length", 256, 'u'},
      {"embedding_length", 32, 'u'},
      {"block_count", 2, 'u'},
      {"feed_forward_length", 32, 'u'},
      {"attention.head_count", 2, 'u'},
      {"attention.head_count_kv", 1, 'u'},
      {"attention.layer_norm_rms_epsilon", 1e-5, 'f'},
      {"ssm.conv_kernel", 4, 'u'},
      {"ssm.inner_size", 32, 'u'},
      {"ssm.state_size", 4, 'u'},
      {"ssm.time_step_rank", 2, 'u'},
      {"ssm.group_count", 1, 'u'}}},
};
enum { FUZZ_N_MODEL = sizeof fuzz_specs / sizeof *fuzz_specs };

static struct llama_model *fuzz_model(int kind) {
    static struct llama_model *m[FUZZ_N_MODEL];
    if (m[kind]) return m[kind];
    const char *path = maker_write(&fuzz_specs[kind], GGML_TYPE_F32);
    FUZZ_CHECK(path);
    struct llama_model_params mp = llama_model_default_params();
    mp.load_mode = LLAMA_LOAD_MODE_NONE;  // read, so that the file can go
    m[kind] = llama_model_load_from_file(path, mp);
    FUZZ_CHECK(m[kind]);
    unlink(path);
    return m[kind];
}

static inline struct llama_context *fuzz_context(int kind, int n_ctx, int n_seq) {
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = (uint32_t) n_ctx;
    cp.n_batch = cp.n_ubatch = 16;
    cp.n_seq_max = (uint32_t) n_seq;
    cp.kv_unified = true;
    cp.swa_full = false;
    cp.n_threads = cp.n_threads_batch = 1;
    struct llama_context *c = llama_init_from_model(fuzz_model(kind), cp);
    FUZZ_CHECK(c);
    return c;
}

// One token at a place of a sequence; 0 as llama_decode.
static inline int fuzz_decode(struct llama_context *c, int32_t token, int32_t pos, int32_t seq) {
    int32_t n_seq_id = 1, *ids[1] = {&seq};
    int8_t out = 1;
    return llama_decode(
        c, (struct llama_batch){
               .n_tokens = 1, .token = &token, .pos = &pos, .n_seq_id = &n_seq_id, .seq_id = ids, .logits = &out});
}
