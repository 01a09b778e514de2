// Small models with random weights, made on the spot from an architecture's own tables: keys from a short list, one tensor for each
// row that applies. Whatever the tables ask for gets made, so that the same maker serves every architecture.
#pragma once

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/arch.h"
#include "gguf.h"
#include "llama.h"

#define MAKER_N_VOCAB 160

struct maker_key {
    const char *key;
    double value;
    char kind;  // 'u' unsigned, 'f' float, 'b' bool, 'a' the digits of value, one unsigned of an array each
};

struct maker_spec {
    const char *name, *arch;
    struct maker_key keys[32];
};

// Sizes are small, but heads and rows have room for blocks of 256.
#define MAKER_BASE                                                                                                          \
    {"context_length", 2048, 'u'}, {"embedding_length", 256, 'u'}, {"block_count", 3, 'u'},                                 \
        {"feed_forward_length", 512, 'u'}, {"attention.head_count", 4, 'u'}, {"attention.head_count_kv", 2, 'u'},           \
        {"attention.layer_norm_rms_epsilon", 1e-5, 'f'}, {                                                                  \
        "attention.layer_norm_epsilon", 1e-5, 'f'                                                                           \
    }

static const struct maker_spec maker_specs[] = {
    {"llama", "llama", {MAKER_BASE}},
    {"qwen2vl", "qwen2vl", {MAKER_BASE, {"rope.dimension_sections", 8888, 'a'}}},
    {"llama-moe", "llama", {MAKER_BASE, {"expert_count", 4, 'u'}, {"expert_used_count", 2, 'u'}}},
    {"llama-mtp", "llama", {MAKER_BASE, {"block_count", 5, 'u'}, {"nextn_predict_layers", 2, 'u'}}},
    {"mimo2-mtp",
     "mimo2",
     {MAKER_BASE,
      {"block_count", 4, 'u'},
      {"nextn_predict_layers", 1, 'u'},
      {"expert_feed_forward_length", 128, 'u'},
      {"attention.sliding_window", 70, 'u'},
      {"attention.sliding_window_pattern", 1011, 'a'}}},
    {"gemma3", "gemma3", {MAKER_BASE, {"attention.sliding_window", 70, 'u'}, {"attention.sliding_window_pattern", 2, 'u'}}},
    {"gemma3-64",
     "gemma3",
     {MAKER_BASE, {"attention.sliding_window", 64, 'u'}, {"attention.sliding_window_pattern", 2, 'u'}}},
    {"mamba2",
     "mamba2",
     {MAKER_BASE,
      {"ssm.conv_kernel", 4, 'u'},
      {"ssm.inner_size", 512, 'u'},
      {"ssm.state_size", 16, 'u'},
      {"ssm.time_step_rank", 8, 'u'},
      {"ssm.group_count", 2, 'u'}}},
    {"falcon-h1",
     "falcon-h1",
     {MAKER_BASE,
      {"ssm.conv_kernel", 4, 'u'},
      {"ssm.inner_size", 512, 'u'},
      {"ssm.state_size", 16, 'u'},
      {"ssm.time_step_rank", 8, 'u'},
      {"ssm.group_count", 2, 'u'}}},
    {"deepseek2",
     "deepseek2",
     {{"context_length", 2048, 'u'},
      {"embedding_length", 256, 'u'},
      {"block_count", 3, 'u'},
      {"feed_forward_length", 512, 'u'},
      {"attention.head_count", 4, 'u'},
      {"attention.head_count_kv", 1, 'u'},
      {"attention.layer_norm_rms_epsilon", 1e-5, 'f'},
      {"leading_dense_block_count", 1, 'u'},
      {"attention.q_lora_rank", 64, 'u'},
      {"attention.kv_lora_rank", 128, 'u'},
      {"attention.key_length", 160, 'u'},
      {"attention.value_length", 128, 'u'},
      {"attention.key_length_mla", 96, 'u'},
      {"attention.value_length_mla", 64, 'u'},
      {"rope.dimension_count", 32, 'u'},
      {"expert_feed_forward_length", 128, 'u'},
      {"expert_shared_count", 1, 'u'},
      {"expert_count", 4, 'u'},
      {"expert_used_count", 2, 'u'}}},
    {"deepseek4",
     "deepseek4",
     {{"context_length", 4096, 'u'},
      {"embedding_length", 128, 'u'},
      {"block_count", 3, 'u'},
      {"attention.head_count", 4, 'u'},
      {"attention.head_count_kv", 1, 'u'},
      {"attention.key_length", 64, 'u'},
      {"attention.value_length", 64, 'u'},
      {"attention.layer_norm_rms_epsilon", 1e-5, 'f'},
      {"attention.q_lora_rank", 64, 'u'},
      {"attention.sliding_window", 70, 'u'},
      {"attention.compress_ratios", 490, 'a'},
      {"attention.compress_rope_freq_base", 160000, 'f'},
      {"attention.indexer.head_count", 2, 'u'},
      {"attention.indexer.key_length", 32, 'u'},
      {"attention.indexer.top_k", 24, 'u'},
      {"attention.output_group_count", 2, 'u'},
      {"attention.output_lora_rank", 32, 'u'},
      {"rope.dimension_count", 16, 'u'},
      {"hyper_connection.count", 4, 'u'},
      {"hyper_connection.epsilon", 1e-6, 'f'},
      {"hyper_connection.sinkhorn_iterations", 5, 'u'},
      {"hash_layer_count", 0, 'u'},
      {"swiglu_clamp_exp", 10, 'f'},
      {"expert_feed_forward_length", 64, 'u'},
      {"expert_shared_count", 1, 'u'},
      {"expert_count", 4, 'u'},
      {"expert_used_count", 2, 'u'},
      {"expert_gating_func", 4, 'u'},
      {"expert_weights_scale", 1, 'f'},
      {"expert_weights_norm", 1, 'b'}}},
#define MAKER_DSA                                                                                                           \
    {"context_length", 2048, 'u'}, {"embedding_length", 128, 'u'}, {"block_count", 2, 'u'},                                 \
        {"leading_dense_block_count", 1, 'u'}, {"feed_forward_length", 128, 'u'}, {"expert_feed_forward_length", 64, 'u'},  \
        {"expert_count", 2, 'u'}, {"expert_used_count", 1, 'u'}, {"expert_shared_count", 1, 'u'},                           \
        {"expert_gating_func", 2, 'u'}, {"attention.head_count", 2, 'u'}, {"attention.layer_norm_rms_epsilon", 1e-5, 'f'},  \
        {"attention.indexer.head_count", 2, 'u'}, {"attention.indexer.key_length", 64, 'u'},                                \
        {"attention.indexer.top_k", 8, 'u'}, {"attention.q_lora_rank", 64, 'u'}, {"attention.kv_lora_rank", 128, 'u'},      \
        {"attention.head_count_kv", 1, 'u'}, {"attention.key_length", 160, 'u'}, {"attention.value_length", 128, 'u'},      \
        {"attention.key_length_mla", 96, 'u'}, {"attention.value_length_mla", 64, 'u'}, {                                   \
        "rope.dimension_count", 32, 'u'                                                                                     \
    }
    {"deepseek32", "deepseek32", {MAKER_DSA}},
    {"glm-dsa", "glm-dsa", {MAKER_DSA, {"attention.indexer.types", 1, 'u'}}},
    {"minimax-m3",
     "minimax-m3",
     {{"context_length", 2048, 'u'},
      {"embedding_length", 128, 'u'},
      {"block_count", 2, 'u'},
      {"leading_dense_block_count", 1, 'u'},
      {"feed_forward_length", 128, 'u'},
      {"expert_feed_forward_length", 64, 'u'},
      {"expert_count", 2, 'u'},
      {"expert_used_count", 1, 'u'},
      {"expert_shared_count", 1, 'u'},
      {"expert_gating_func", 2, 'u'},
      {"attention.head_count", 2, 'u'},
      {"attention.head_count_kv", 2, 'u'},
      {"attention.key_length", 64, 'u'},
      {"attention.value_length", 64, 'u'},
      {"attention.layer_norm_rms_epsilon", 1e-5, 'f'},
      {"attention.indexer.head_count", 2, 'u'},
      {"attention.indexer.key_length", 64, 'u'},
      {"attention.indexer.top_k", 4, 'u'},
      {"attention.indexer.block_size", 4, 'u'},
      {"attention.indexer.local_blocks", 1, 'u'},
      {"rope.dimension_count", 32, 'u'}}},
    {"t5", "t5", {MAKER_BASE, {"attention.head_count_kv", 4, 'u'}, {"attention.relative_buckets_count", 32, 'u'}}},
    {"gpt2", "gpt2", {MAKER_BASE}},
    {"bert", "bert", {MAKER_BASE}},
    {"dream", "dream", {MAKER_BASE}},
};

static uint64_t maker_seed;

static float maker_random(void) {
    maker_seed += 0x9e3779b97f4a7c15ull;
    uint64_t z = maker_seed;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (float) ((z ^ z >> 31) >> 40) / (float) (1 << 23) - 1.0f;
}

// 1 to 8 digits; 9 stands for 128.
static void maker_digits(struct gguf_context *g, const char *key, uint32_t value) {
    uint32_t v[8];
    size_t n = 0;
    for (uint32_t x = value; x || n == 0; x /= 10) n++;
    for (size_t i = n; i-- > 0; value /= 10) v[i] = value % 10 == 9 ? 128 : value % 10;
    gguf_set_arr_data(g, key, GGUF_TYPE_UINT32, v, n);
}

static void maker_keys(struct gguf_context *g, const struct maker_spec *s) {
    gguf_set_val_str(g, "general.architecture", s->arch);
    gguf_set_val_str(g, "tokenizer.ggml.model", "no_vocab");
    char key[128];
    snprintf(key, sizeof key, "%s.vocab_size", s->arch);
    gguf_set_val_u32(g, key, MAKER_N_VOCAB);
    gguf_set_val_u32(g, "tokenizer.ggml.token_type_count", 2);
    for (const struct maker_key *k = s->keys; k->key; k++) {
        snprintf(key, sizeof key, "%s.%s", s->arch, k->key);
        if (k->kind == 'f')
            gguf_set_val_f32(g, key, (float) k->value);
        else if (k->kind == 'a')
            maker_digits(g, key, (uint32_t) k->value);
        else if (k->kind == 'b')
            gguf_set_val_bool(g, key, k->value != 0);
        else
            gguf_set_val_u32(g, key, (uint32_t) k->value);
    }
}

static void maker_tensor(struct gguf_context *g, struct ggml_context *ctx, const char *name, const int64_t *ne, int n,
                         enum ggml_type type, bool norm) {
    if (gguf_find_tensor(g, name) >= 0) return;
    const bool matrix = n >= 2 && !norm && ne[0] % ggml_blck_size(type) == 0 && ne[1] > 1;
    struct ggml_tensor *t = ggml_new_tensor(ctx, matrix ? type : GGML_TYPE_F32, n < 1 ? 1 : n, ne);
    ggml_set_name(t, name);
    const int64_t k = ggml_nelements(t);
    if (k == 0) return;  // of a model without experts
    float *x = malloc((size_t) k * sizeof *x);
    const float scale = norm ? 0.1f : 1.0f / sqrtf((float) ne[0]);
    for (int64_t i = 0; i < k; i++) x[i] = norm ? 1.0f + scale * maker_random() : scale * 1.7f * maker_random();
    if (strstr(name, "ssm_a"))
        for (int64_t i = 0; i < k; i++) x[i] = -0.5f - 0.4f * maker_random();
    if (t->type == GGML_TYPE_F32)
        memcpy(t->data, x, (size_t) k * sizeof *x);
    else
        ggml_quantize_chunk(t->type, x, t->data, 0, k / ne[0], ne[0], NULL);
    free(x);
    gguf_add_tensor(g, t);
}

static void maker_row(struct gguf_context *g, struct ggml_context *ctx, const struct hparams *hp,
                      const struct arch_tensor *r, int il, enum ggml_type type) {
    double v = 1;
    if (r->when && (expr_eval(r->when, hp, il, &v) != ERR_OK || v == 0)) return;
    const bool biases = r->flags & (T_BIAS | T_BIAS_ONLY);
    if (r->flags & T_OPT && !biases && r->slot != SLOT_token_types) return;
    char stem[96], name[128], part[96];
    const char *base = r->name ? r->name : slot_info(r->slot)->name;
    if (il >= 0)
        snprintf(stem, sizeof stem, "%s.%d.%s",
                 r->flags & T_ENC   ? "enc.blk"
                 : r->flags & T_DEC ? "dec.blk"
                                    : "blk",
                 il, base);
    else
        snprintf(stem, sizeof stem, "%s", base);
    int64_t ne[4] = {1, 1, 1, 1};
    int n = 0;
    for (; n < 4 && expr_part(r->shape, n, part, sizeof part); n++)
        if (part[0] == '?')  // deepseek4's grouped output
            ne[n] = n == 1 ? hp->n_out_lora : hp->n_out_group;
        else if (expr_eval(part, hp, il, &v) == ERR_OK)
            ne[n] = (int64_t) v;
    const bool norm = slot_info(r->slot)->role == ROLE_NORM;
    if (!(r->flags & T_BIAS_ONLY)) {
        snprintf(name, sizeof name, "%s%s", stem, r->flags & T_NO_SUFFIX ? "" : ".weight");
        maker_tensor(g, ctx, name, ne, n, type, norm);
    }
    if (!biases) return;
    snprintf(name, sizeof name, "%s.bias", stem);
    const int64_t bne[4] = {n >= 2 ? ne[1] : ne[0], n >= 3 ? ne[2] : 1, 1, 1};
    maker_tensor(g, ctx, name, bne, n >= 3 ? 2 : 1, GGML_TYPE_F32, false);
}

// Writes a model of a spec; the file's path. Weights of type `type` where the rows' length allows it.
static const char *maker_write(const struct maker_spec *s, enum ggml_type type) {
    static char path[256];
    snprintf(path, sizeof path, "/tmp/lamina-test-%d-%s-%d.gguf", (int) getpid(), s->name, (int) type);
    maker_seed = 42;
    struct gguf_context *g = gguf_init_empty();
    maker_keys(g, s);
    const struct arch *a = arch_by_name(s->arch);
    struct hparams *hp = malloc(sizeof *hp);
    const struct model_build b = {.arch = a, .meta = g};
    if (!a || arch_read_keys(hp, &b, MAKER_N_VOCAB) != ERR_OK) return NULL;
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){.mem_size = (size_t) 96 << 20});
    for (const struct arch_tensor *r = a->tensors; r->slot != SLOT_NONE; r++) {
        if (r->slot > SLOT_LAYER_END) maker_row(g, ctx, hp, r, -1, type);
        const int n = arch_can_nextn(a, hp) ? hp->n_block : hp->n_layer_weights;
        for (int il = 0; r->slot < SLOT_LAYER_END && il < n; il++) maker_row(g, ctx, hp, r, il, type);
    }
    for (const struct arch_tensor *r = arch_nextn_tensors; r->slot != SLOT_NONE && arch_can_nextn(a, hp); r++)
        for (int il = hp->n_layer; il < hp->n_block; il++) maker_row(g, ctx, hp, r, il, type);
    const bool ok = gguf_write_to_file(g, path, false);
    ggml_free(ctx);
    gguf_free(g);
    free(hp);
    return ok ? path : NULL;
}

// The same by the spec's name.
static inline const char *maker_path(const char *name, enum ggml_type type) {
    for (size_t i = 0; i < sizeof maker_specs / sizeof *maker_specs; i++)
        if (!strcmp(maker_specs[i].name, name)) return maker_write(&maker_specs[i], type);
    return NULL;
}

static inline int maker_clean(void **state) {
    (void) state;
    char path[256];
    for (size_t i = 0; i < sizeof maker_specs / sizeof *maker_specs; i++)
        for (int t = 0; t < GGML_TYPE_COUNT; t++) {
            snprintf(path, sizeof path, "/tmp/lamina-test-%d-%s-%d.gguf", (int) getpid(), maker_specs[i].name, t);
            unlink(path);
        }
    return 0;
}
