// A graph under construction: what it is built for, what it reads, what it gives. One for each shape of micro-batch.
#pragma once

#include "ggml.h"
#include "block/hparams.h"
#include "block/weights.h"
#include "memory/memory.h"

// What a context fixes for all its graphs.
struct cparams {
    int32_t n_ctx, n_ctx_seq, n_batch, n_ubatch, n_seq_max, n_rs_seq, n_outputs_max;
    int32_t n_threads, n_threads_batch;
    float rope_base, rope_freq_scale, rope_ext, rope_mag, rope_beta_fast, rope_beta_slow;
    int32_t rope_orig_ctx;
    bool causal, embeddings, offload_kqv, no_perf, op_offload, swa_full;
    int32_t nextn;  // the draft head's layer that this context runs, 0: it runs the model
    enum llama_pooling_type pooling;
    enum ggml_type type_k, type_v;
};

// The shape of a micro-batch: graphs of equal shape are interchangeable.
struct ubatch_shape {
    int32_t n_tokens, n_seqs, n_seq_tokens, n_outputs;
    int32_t n_slots, n_scratch;  // without a cache: sequences, and blocks of scratch for their keys and values
    bool has_token, has_embd, encode, causal, want_logits, want_embd, unused[2];  // no padding: shapes are compared as bytes
    uint32_t version;       // counts changes of adapters and settings that graphs depend on
    uint32_t sampler_rows;  // tells apart which rows samplers in the graph work on
};
_Static_assert(sizeof(struct ubatch_shape) == 6 * 4 + 8 + 2 * 4, "padding in a struct that is compared as bytes");

// A micro-batch with its data. Rows lie sequence by sequence where n_seq_tokens > 0.
struct ubatch {
    struct ubatch_shape n;
    const int32_t *token;    // [n_tokens]
    const float *embd;       // [n_tokens][n_embd_inp]
    const float *state;      // [n_tokens][n_embd], what a draft head continues
    const int32_t *pos;      // [n_pos][n_tokens]: one position, or four under M-RoPE
    const int32_t *slot;     // [n_tokens] row of the block table
    struct place_row *rows;  // [n_tokens]
    const int32_t *out;      // [n_outputs] rows that are wanted
    const int32_t *seq;      // [n_seqs] sequence ids
    const float *sum;        // [n_seq_max][n_sum] of earlier micro-batches' rows, where n_summed (of [n_seq_max]) isn't 0
    const int32_t *n_summed;
    int32_t n_sum;
    const int32_t *rs_src, *rs_dst;  // [n_seqs], [n_rs][n_seqs]
};

struct graph;
struct graph_input {
    struct ggml_tensor *t;
    void (*fill)(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst);
    int32_t a, b, c;  // parameters of fill; inputs with equal fill, a, b, c are shared
    float f, h;
    bool host;  // already lies in memory that fill writes elsewhere: nothing to do
};

#define GRAPH_MAX_INPUTS 64

// Low-rank adapters: pairs by tensor.
struct lora_pair {
    const struct ggml_tensor *w;
    struct ggml_tensor *a, *b;
    float scale;  // alpha / rank
};
struct lora {
    struct lora_pair *pairs;  // open hash by w, a power of two
    uint32_t n_slots;
    uint64_t
        number;  // of the model's adapters, counted as they are loaded: tells one from another that was at its address before
};
#define GRAPH_MAX_LORAS 16
struct lora_set {
    int n;
    const struct lora *lora[GRAPH_MAX_LORAS];
    uint64_t number[GRAPH_MAX_LORAS];
    float scale[GRAPH_MAX_LORAS];
};

// Encoder output that a decoder attends to.
struct cross {
    struct ggml_tensor *states;  // [n_embd, n_max] in a host buffer
    int32_t n_tokens;            // rows in use
    int32_t n_max;
    const int32_t *seq;  // [n_tokens] sequence of each row
};

struct graph {
    struct ggml_context *ctx;
    struct ggml_cgraph *gf;
    const struct hparams *hp;
    const struct globals *w;
    const struct layer *layers, *enc_layers;
    const struct cparams *cp;
    struct llama_memory_i *mem;  // NULL: attention within the micro-batch alone
    const struct lora_set *loras;
    struct ggml_tensor *const *cvec;  // [n_layer] control vectors, NULL or with gaps
    struct cross *cross;
    bool train;  // gradients will be asked for: nothing in place, attention of products and a softmax, no memory
    struct ubatch_shape n;
    int32_t n_rows;              // rows of the residual stream now: n_tokens, after selection n_outputs
    struct ggml_tensor *tokens;  // [n_tokens] i32, made by embed
    struct ggml_tensor *cache_k[MAX_LAYERS], *cache_v[MAX_LAYERS], *cache_x[MAX_LAYERS];  // caches after this graph's writes
    struct ggml_tensor *states_r[MAX_LAYERS], *states_s[MAX_LAYERS];
    struct ggml_tensor *sel;  // selection that layers hand on (sparse attention)
    void *arch_state;         // what an architecture keeps between its layers of one graph
    int32_t n_inputs;
    struct ggml_tensor *logits;                   // [n_vocab, n_outputs]
    struct ggml_tensor *embd;                     // [n_embd_out, n_outputs]
    struct ggml_tensor *pooled;                   // [n_embd_out or n_cls_out, n_seqs]
    struct ggml_tensor *enc_out;                  // [n_embd, n_tokens] of an encoder for its decoder
    struct graph_input inputs[GRAPH_MAX_INPUTS];  // last, and only n_inputs of them mean anything
};

// An input of this graph, found again if it exists. ne1 = 0: one dimension. NULL fill: the caller looks after the content.
typedef void (*graph_fill)(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst);
struct graph_input *graph_input(struct graph *g, enum ggml_type type, int64_t ne0, int64_t ne1, graph_fill fill, int a,
                                int b, int c);

struct ggml_tensor *in_tokens(struct graph *g);    // [n_tokens] i32
struct ggml_tensor *in_embd(struct graph *g);      // [n_embd_inp, n_tokens] f32
struct ggml_tensor *in_state(struct graph *g);     // [n_embd, n_tokens] f32
struct ggml_tensor *in_pos(struct graph *g);       // [n_tokens] or, M-RoPE, [4 * n_tokens] i32
struct ggml_tensor *in_out_rows(struct graph *g);  // [n_outputs] i32
// [1, 1, n_tokens] f32: 1 + ts * ln(1 + floor((pos + offset) / length))
struct ggml_tensor *in_temperature(struct graph *g, float ts, float length, int offset);
// [n_seqs] i32: where recurrent states are read; [n_seqs] i64: where the k-th newest is written
struct ggml_tensor *in_rs_src(struct graph *g);
struct ggml_tensor *in_rs_dst(struct graph *g, int k);
// [n_seqs] i32: first row of each sequence in the micro-batch, last row (by position)
struct ggml_tensor *in_seq_first(struct graph *g);
struct ggml_tensor *in_seq_last(struct graph *g);
