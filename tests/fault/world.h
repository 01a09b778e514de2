// Valid objects of every kind the public interface knows: what the generated wrong calls (wrong_calls.py) pass beside the wrong argument.
// Public headers only.
#pragma once

#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-opt.h"
#include "gguf.h"
#include "llama.h"
#include "ggml/ext.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORLD_BYTES = 1 << 16, WORLD_ODD = 7 };

static struct {
    struct ggml_context *ctx;
    struct ggml_tensor *a, *b, *c, *odd[WORLD_ODD];  // odd: kinds of tensors that few functions expect
    struct ggml_cgraph *graph;
    ggml_backend_t cpu;
    ggml_backend_dev_t dev;
    ggml_backend_reg_t reg;
    ggml_backend_buffer_type_t buft;
    ggml_backend_buffer_t buffer;
    ggml_backend_sched_t sched;
    ggml_backend_graph_plan_t plan;
    ggml_gallocr_t galloc;
    struct ggml_tallocr talloc;
    ggml_threadpool_t pool;
    struct ggml_threadpool_params pool_params;
    struct ggml_cplan cplan;
    ggml_opt_dataset_t dataset;
    ggml_opt_context_t opt;
    ggml_opt_result_t result;
    struct gguf_context *gguf;
    struct llama_model *model;
    const struct llama_vocab *vocab;
    struct llama_context *lctx;
    struct llama_sampler *chain;
    struct llama_batch_ext *batch;
    llama_token_data data[8];
    llama_token_data_array cur;
    FILE *file;
    // room for whatever a pointer to values points at
    _Alignas(64) uint8_t in[WORLD_BYTES], out[WORLD_BYTES];
    char dir[64], path[96];
} W;

static void world_silence(enum ggml_log_level level, const char *text, void *user) {
    (void) level, (void) text, (void) user;
}

static struct ggml_tensor *world_weight(struct ggml_context *ctx, struct gguf_context *g, const char *name, int64_t n0,
                                        int64_t n1) {
    struct ggml_tensor *t = n1 ? ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n0, n1) : ggml_new_tensor_1d(ctx, GGML_TYPE_F32, n0);
    ggml_set_name(t, name);
    float *x = t->data;
    for (int64_t i = 0; i < ggml_nelements(t); i++) x[i] = n1 ? (float) (i * 37 % 101) / 500 - 0.1f : 1;
    gguf_add_tensor(g, t);
    return t;
}

// A llama of one layer with a vocabulary of bytes.
static void world_model(const char *path) {
    enum { V = 3 + 256 + 2, E = 32, F = 64 };
    struct gguf_context *g = gguf_init_empty();
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){.mem_size = 1 << 20});
    gguf_set_val_str(g, "general.architecture", "llama");
    static const char *const keys[] = {"llama.context_length",       "llama.embedding_length",
                                       "llama.block_count",          "llama.feed_forward_length",
                                       "llama.attention.head_count", "llama.attention.head_count_kv",
                                       "llama.rope.dimension_count"};
    static const uint32_t values[] = {128, E, 1, F, 2, 1, 16};
    for (int i = 0; i < 7; i++) gguf_set_val_u32(g, keys[i], values[i]);
    gguf_set_val_f32(g, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    static char text[V][8];
    const char *tokens[V] = {"<unk>", "<s>", "</s>"};
    float scores[V] = {0};
    int32_t types[V] = {2, 3, 3};
    for (int b = 0; b < 256; b++) {
        snprintf(text[b], sizeof text[b], "<0x%02X>", (unsigned) b);
        tokens[3 + b] = text[b];
        types[3 + b] = 6;
    }
    tokens[V - 2] = "\xe2\x96\x81"
                    "a",
               tokens[V - 1] = "b";
    types[V - 2] = types[V - 1] = 1;
    gguf_set_val_str(g, "tokenizer.ggml.model", "llama");
    gguf_set_arr_str(g, "tokenizer.ggml.tokens", tokens, V);
    gguf_set_arr_data(g, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores, V);
    gguf_set_arr_data(g, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types, V);
    gguf_set_val_u32(g, "tokenizer.ggml.bos_token_id", 1);
    gguf_set_val_u32(g, "tokenizer.ggml.eos_token_id", 2);
    world_weight(ctx, g, "token_embd.weight", E, V);
    world_weight(ctx, g, "output_norm.weight", E, 0);
    world_weight(ctx, g, "blk.0.attn_norm.weight", E, 0);
    world_weight(ctx, g, "blk.0.attn_q.weight", E, E);
    world_weight(ctx, g, "blk.0.attn_k.weight", E, E / 2);
    world_weight(ctx, g, "blk.0.attn_v.weight", E, E / 2);
    world_weight(ctx, g, "blk.0.attn_output.weight", E, E);
    world_weight(ctx, g, "blk.0.ffn_norm.weight", E, 0);
    world_weight(ctx, g, "blk.0.ffn_gate.weight", E, F);
    world_weight(ctx, g, "blk.0.ffn_up.weight", E, F);
    world_weight(ctx, g, "blk.0.ffn_down.weight", F, E);
    if (!gguf_write_to_file(g, path, false)) abort();
    gguf_free(g);
    ggml_free(ctx);
}

static void world_odd(void) {
    struct ggml_context *c = W.ctx;
    W.odd[0] = NULL;
    W.odd[1] = ggml_new_tensor_1d(c, GGML_TYPE_I32, 5);
    W.odd[2] = ggml_new_tensor_2d(c, GGML_TYPE_Q8_0, 64, 3);
    W.odd[3] = ggml_transpose(c, W.a);
    W.odd[4] = ggml_new_tensor_2d(c, GGML_TYPE_F32, 0, 4);
    W.odd[5] = ggml_mul_mat(c, W.a, W.odd[1]);  // the error tensor
    W.odd[6] = ggml_new_tensor_4d(c, GGML_TYPE_F16, 3, 5, 2, 7);
    int32_t *ids = W.odd[1]->data;
    for (int i = 0; i < 5; i++) ids[i] = i == 3 ? -1 : 1 << (8 * i > 30 ? 30 : 8 * i);
    memset(W.odd[2]->data, 1, ggml_nbytes(W.odd[2]));
    memset(W.odd[6]->data, 0x3c, ggml_nbytes(W.odd[6]));
}

static void world_make(void) {
    ggml_log_set(world_silence, NULL);
    snprintf(W.dir, sizeof W.dir, "/tmp/lamina-wrong-XXXXXX");
    if (!mkdtemp(W.dir)) abort();
    snprintf(W.path, sizeof W.path, "%s/model.gguf", W.dir);
    world_model(W.path);
    W.ctx = ggml_init((struct ggml_init_params){.mem_size = 8 << 20});
    W.a = ggml_new_tensor_2d(W.ctx, GGML_TYPE_F32, 64, 4);
    W.b = ggml_new_tensor_2d(W.ctx, GGML_TYPE_F32, 64, 4);
    W.c = ggml_new_tensor_2d(W.ctx, GGML_TYPE_F32, 64, 4);
    ggml_set_name(W.a, "a");
    for (int i = 0; i < 256; i++)
        ((float *) W.a->data)[i] = ((float *) W.b->data)[i] = ((float *) W.c->data)[i] = (float) i / 256;
    world_odd();
    W.graph = ggml_new_graph_custom(W.ctx, 256, true);
    ggml_build_forward_expand(W.graph, ggml_add(W.ctx, W.a, W.b));
    W.cpu = ggml_backend_cpu_init();
    ggml_backend_cpu_set_n_threads(W.cpu, 1);
    W.dev = ggml_backend_get_device(W.cpu);
    W.reg = ggml_backend_dev_backend_reg(W.dev);
    W.buft = ggml_backend_cpu_buffer_type();
    W.buffer = ggml_backend_buft_alloc_buffer(W.buft, 4096);
    W.sched = ggml_backend_sched_new(&W.cpu, NULL, 1, 256, false, false);
    W.plan = ggml_backend_graph_plan_create(W.cpu, W.graph);
    W.galloc = ggml_gallocr_new(W.buft);
    W.talloc = ggml_tallocr_new(W.buffer);
    W.pool_params = ggml_threadpool_params_default(1);
    W.pool = ggml_threadpool_new(&W.pool_params);
    W.cplan = ggml_graph_plan(W.graph, 1, NULL);
    W.cplan.work_data = W.out;
    W.dataset = ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, 8, 2, 16, 1);
    struct ggml_opt_params op = ggml_opt_default_params(W.sched, GGML_OPT_LOSS_TYPE_MEAN_SQUARED_ERROR);
    W.opt = ggml_opt_init(op);
    W.result = ggml_opt_result_init();
    W.gguf = gguf_init_from_file(W.path, (struct gguf_init_params){.no_alloc = true});
    struct llama_model_params mp = llama_model_default_params();
    mp.load_mode = LLAMA_LOAD_MODE_NONE;
    W.model = llama_model_load_from_file(W.path, mp);
    W.vocab = llama_model_get_vocab(W.model);
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 64, cp.n_seq_max = 2, cp.n_threads = cp.n_threads_batch = 1;
    W.lctx = llama_init_from_model(W.model, cp);
    llama_token t[3] = {1, 70, 80};
    if (!W.lctx || llama_decode(W.lctx, llama_batch_get_one(t, 3))) abort();
    W.chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    llama_sampler_chain_add(W.chain, llama_sampler_init_top_k(4));
    llama_sampler_chain_add(W.chain, llama_sampler_init_dist(1));
    W.batch = llama_batch_ext_init(W.lctx);
    for (int i = 0; i < 8; i++) W.data[i] = (llama_token_data){i, (float) (i * 5 % 8), 0};
    W.cur = (llama_token_data_array){W.data, 8, -1, false};
    W.file = fopen(W.path, "r+b");
}

static void world_clean(void) {
    unlink(W.path);
    rmdir(W.dir);
}

// A tensor that a builder gave is computed: what the builder let through the kernels must bear.
static void world_compute(struct ggml_tensor *t) {
    if (!t) return;
    struct ggml_cgraph *g = ggml_new_graph(W.ctx);
    if (!g) return;
    ggml_build_forward_expand(g, t);
    ggml_graph_compute_with_ctx(W.ctx, g, 1);
}

static void world_callback(void) {}
