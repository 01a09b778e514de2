// A context: one model's weights put to work on one memory. Everything it needs is allocated when it is made.
#pragma once

#include "block/graph.h"
#include "model/adapter.h"
#include "model/model.h"

#define RUN_MAX_BACKENDS (MODEL_MAX_DEVICES + 1)

// One micro-batch of a plan: rows [r0, r0 + n) of the plan.
struct plan_ubatch {
    int32_t r0, n;
    int32_t n_seqs, n_seq_tokens;  // n_seq_tokens 0: rows in any order
    int32_t n_slots, n_scratch;
};

// A batch taken apart into rows (token x group of sequences) and micro-batches. All arrays live as long as the context and grow
// only where tokens of several sequences have to be taken apart.
struct plan {
    int32_t n_rows, cap_rows;
    struct place_row *rows;
    int32_t *src;                 // row -> index in the batch
    int32_t *token, *pos, *slot;  // as graphs read them; pos [4][cap]
    int32_t *pos4;                // [4][n_ubatch] of the current micro-batch
    float *embd;                  // [cap][n_embd_inp], only for batches of embeddings
    float *state;                 // [cap][n_embd], only in contexts of a draft head
    int8_t *out;                  // row gives an output
    int32_t *seq_pool;
    int32_t n_pool, cap_pool;
    struct plan_ubatch *ub;
    int32_t n_ub, cap_ub;
    int32_t *out_rows;                // of the current micro-batch
    int32_t *seqs, *rs_src, *rs_dst;  // of the current micro-batch
    int32_t *next_pos;                // [n_seq_max] while checking
    int32_t *block_ub;                // [n_block] micro-batch that last wrote to the block
    struct cell_copies copies;        // of the trial placement
    int32_t *perm, *ints;             // [cap_rows] while rows are reordered
    struct place_row *rows_tmp;
    int8_t *out_tmp;
    int32_t *seq_first, *seq_left, *seq_pick;  // [n_seq_max]
    size_t cap_embd, cap_state;
};

// A batch as the frame sees it, whichever call it came by.
struct batch_view {
    int32_t n_tokens;
    const llama_token *token;
    const float *embd;
    const float *state;    // of each entry, what a draft head continues
    const llama_pos *pos;  // NULL: continue
    int32_t pos_stride;    // 0: one position per token; else M-RoPE positions [4][n]
    const int32_t *n_seq_id;
    llama_seq_id *const *seq_id;  // NULL: sequence 0
    const int8_t *out;            // NULL: the last token
    bool out_all;
};

struct outputs {
    void *mem;  // reserved address space
    size_t bytes;
    ggml_backend_buffer_t buf;
    float *logits, *embd;  // [n_max][n_vocab], [n_max][n_embd_out]
    int32_t n_max, n;      // rows in all, rows of the last batch
    int32_t *row_of;       // [n_batch] batch index -> row, -1: none
    int32_t *order;        // row -> batch index
    int32_t n_batch;       // tokens of the last batch
    bool sorted, has_logits, has_embd;
    float *embd_seq;     // [n_seq_max][n_embd_pooled]; until the batch is done, a mean's sum of the rows so far
    int32_t *n_rows_of;  // [n_seq_max] rows of the batch that each was made of, 0: there is none
    int32_t n_embd_pooled;
};

// A graph of one shape. Several are kept, so that batches whose shapes take turns find theirs. The first has room for any graph of the
// model; the others for those that were reserved, with some to spare.
#define RUN_KEPT 4
struct kept_graph {
    struct ggml_context *headers;  // NULL: not made (yet)
    size_t n_nodes;                // that there is room for
    struct graph g;
    bool built;     // the headers hold a whole graph
    bool ready;     // built for g.n and allocated in sched
    uint64_t used;  // n_runs when it was last computed
    // results that are written where callers read them
    struct {
        struct ggml_tensor *t;
        size_t offset;
    } placed[24];
    int n_placed, n_placed_logits;  // the first n_placed_logits belong to logits, the rest to embeddings
};

struct llama_context {
    const struct llama_model *model;
    struct cparams cp;
    struct llama_context_params params;
    ggml_backend_t backends[RUN_MAX_BACKENDS];
    int n_backends;
    ggml_backend_t cpu;
    ggml_backend_sched_t sched;
    struct llama_memory_i *mem;
    struct kept_graph kept[RUN_KEPT], *at;       // at: the one at hand
    size_t max_nodes, most_nodes, most_tensors;  // of any graph of the model; of those that were reserved
    uint64_t n_runs;
    uint32_t version;
    void *fill;  // where inputs are made when their tensor isn't host memory
    size_t fill_bytes;
    struct plan plan;
    struct outputs out;
    struct cross cross;
    int32_t *cross_seq;
    ggml_backend_buffer_t cross_buf;
    struct ggml_context *cross_ctx;
    struct adapter_state adapters;
    ggml_threadpool_t pool, pool_batch;
    ggml_abort_callback abort_cb;
    void *abort_data;
    struct {
        int64_t t_start_us, t_p_eval_us, t_eval_us;
        int32_t n_p_eval, n_eval, n_reused, n_queued;
        int64_t t_compute_start_us;
    } perf;
    struct context_samplers *samplers;
    llama_token *all_ids;  // 0, 1, 2 ...: llama_get_sampled_candidates_ith where nothing was sampled; NULL: not asked yet
    struct training *training;  // after llama_opt_init
};

// plan.c
MUST_USE enum err plan_init(struct llama_context *ctx);
void plan_free(struct llama_context *ctx);
size_t plan_memory(const struct llama_context *ctx);  // bytes of its arrays
// 0 ok, 1 no room, -1 bad batch, -2 failed: as llama_decode.
int plan_make(struct llama_context *ctx, const struct batch_view *b, bool use_memory);
// outputs.c
MUST_USE enum err outputs_init(struct llama_context *ctx);
void outputs_free(struct llama_context *ctx);
size_t outputs_overhead(const struct llama_context *ctx);  // bytes of its tables, made or planned
MUST_USE enum err outputs_begin(struct llama_context *ctx, int n_tokens, int n_rows);
// graph.c
MUST_USE enum err graph_init(struct llama_context *ctx);
void graph_free(struct llama_context *ctx);
MUST_USE enum err graph_reserve(struct llama_context *ctx);
// adapters.c: whether none of those in use has been freed.
MUST_USE enum err adapters_check(const struct llama_context *ctx);
// An empty graph of this shape in a context of headers; what it is built for (gf, mem, train) is the caller's to say.
void graph_open(const struct llama_context *ctx, struct graph *g, struct ggml_context *in, const struct ubatch_shape *n);
// Gives the inputs of an allocated graph their content.
MUST_USE enum err graph_fill_inputs(struct llama_context *ctx, const struct graph *g, const struct ubatch *ub);
// Bytes of the headers of all kept graphs.
size_t graph_memory(const struct llama_context *ctx);
// The graph of the largest prompt, built as graph_reserve does and left in ctx->at.
MUST_USE enum err graph_build_prompt(struct llama_context *ctx);
enum ggml_status graph_run(struct llama_context *ctx, const struct ubatch *ub);
MUST_USE enum err graph_shift(struct llama_context *ctx);
// names.c: what a program that watches the graph (cb_eval) reads in its nodes' names.
void graph_name_nodes(struct ggml_cgraph *g);
// train.c
void training_free(struct llama_context *ctx);
// samplers.c
void samplers_free(struct llama_context *ctx);
bool samplers_any(const struct llama_context *ctx);  // some sequence has one in the graph
void samplers_begin(struct llama_context *ctx);
uint32_t samplers_rows(struct llama_context *ctx, const struct ubatch *ub);
void samplers_build(struct llama_context *ctx);
void samplers_set_inputs(struct llama_context *ctx);
void samplers_collect(struct llama_context *ctx, int32_t row0);
// The sampler that worked on output i inside the graph; NULL: none did.
const struct llama_sampler *context_sampler_at(struct llama_context *ctx, int32_t i);
int context_process(struct llama_context *ctx, const struct batch_view *b, bool encode);
bool context_has_memory(const struct llama_model *m);
