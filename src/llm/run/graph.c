// From a micro-batch to a computed graph: build (or reuse: graphs of equal shape are the same), allocate, fill the inputs, run.
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ggml/ext.h"
#include "ggml/plan.h"
#include "run/context.h"

// A context of headers for graphs of up to n_nodes nodes, and as many tensors more as inputs.
static struct ggml_context *new_headers(size_t n_nodes, size_t n_tensors) {
    const size_t bytes = n_tensors * ggml_tensor_overhead() + ggml_graph_overhead_custom(n_nodes, false);
    return ggml_init((struct ggml_init_params){.mem_size = bytes, .no_alloc = true});
}

enum err graph_init(struct llama_context *ctx) {
    ctx->max_nodes = (size_t) arch_max_nodes(ctx->model->arch, &ctx->model->hp);
    ctx->at = &ctx->kept[0];
    ctx->at->headers = new_headers(ctx->max_nodes, ctx->max_nodes);
    if (!ctx->at->headers) return err_set(ERR_NOMEM, "no memory for graphs of %zu nodes", ctx->max_nodes);
    ctx->at->n_nodes = ctx->max_nodes;
    ctx->sched = ggml_backend_sched_new(ctx->backends, NULL, ctx->n_backends, ctx->max_nodes, false, ctx->cp.op_offload);
    return ctx->sched ? ERR_OK : err_set(ERR_NOMEM, "no memory for the scheduler of %zu nodes", ctx->max_nodes);
}

void graph_free(struct llama_context *ctx) {
    if (ctx->sched) ggml_backend_sched_free(ctx->sched);
    for (int i = 0; i < RUN_KEPT; i++) {
        ggml_free(ctx->kept[i].headers);
        ctx->kept[i].headers = NULL;
    }
    free(ctx->fill);
    ctx->sched = NULL;
    ctx->fill = NULL;
}

size_t graph_memory(const struct llama_context *ctx) {
    size_t n = 0;
    for (int i = 0; i < RUN_KEPT; i++) n += ggml_context_overhead(ctx->kept[i].headers);
    return n;
}

// What graphs were built of is not what it was.
static void forget(struct llama_context *ctx) {
    for (int i = 0; i < RUN_KEPT; i++) ctx->kept[i].ready = ctx->kept[i].built = false;
}

// ---- results that are written where callers read them -----------------------------------------------------------------------

static struct ggml_tensor *root(struct ggml_tensor *t) {
    while (t->view_src) t = t->view_src;
    return t;
}

static void place_result(struct llama_context *ctx, struct ggml_tensor *result, float *to) {
    struct kept_graph *k = ctx->at;
    struct ggml_tensor *r = root(result);
    if (r->op == GGML_OP_NONE || r->buffer) return;
    // The result must be the whole of its root, and the root nothing else's memory.
    if (ggml_nbytes(r) != ggml_nbytes(result)) return;
    const int room = (int) (sizeof k->placed / sizeof *k->placed);
    const int before = k->n_placed;
    if (k->n_placed < room) k->placed[k->n_placed++].t = r;
    const int n = ggml_graph_n_nodes(k->g.gf);
    struct ggml_tensor **nodes = ggml_graph_nodes(k->g.gf);
    for (int i = 0; i < n; i++) {
        struct ggml_tensor *t = nodes[i];
        if (!t->view_src || t == r || root(t) != r) continue;
        if (k->n_placed == room) {
            k->n_placed = before;
            return;
        }
        k->placed[k->n_placed].t = t;
        k->placed[k->n_placed++].offset = t->view_offs;
    }
    k->placed[before].offset = 0;
    for (int i = before; i < k->n_placed; i++) {
        k->placed[i].t->buffer = ctx->out.buf;
        k->placed[i].t->data = (char *) to + k->placed[i].offset;
    }
}

static void move_results(struct kept_graph *k, int first, int end, float *to) {
    for (int i = first; i < end; i++) k->placed[i].t->data = (char *) to + k->placed[i].offset;
}

// ---- building -------------------------------------------------------------------------------------------------------------

// As if all of it were set to zero: no entry by layer or cache was written beyond those of the model, no input beyond n_inputs.
static void graph_clear(struct graph *g, const struct hparams *hp) {
    struct ggml_tensor **const tables[] = {g->cache_k, g->cache_v, g->cache_x, g->states_r, g->states_s};
    const int32_t all = hp->n_block + hp->n_layer + hp->n_cache, n = all < MAX_LAYERS ? all : MAX_LAYERS;
    memset(g, 0, offsetof(struct graph, cache_k));
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) memset(tables[i], 0, (size_t) n * sizeof **tables);
    memset(&g->sel, 0, sizeof *g - offsetof(struct graph, sel) - sizeof g->inputs);
}

void graph_open(const struct llama_context *ctx, struct graph *g, struct ggml_context *in, const struct ubatch_shape *n) {
    graph_clear(g, &ctx->model->hp);
    g->ctx = in;
    g->hp = &ctx->model->hp;
    g->w = &ctx->model->w;
    g->layers = ctx->model->layers;
    g->enc_layers = ctx->model->enc_layers;
    g->cp = &ctx->cp;
    g->loras = ctx->adapters.loras.n ? &ctx->adapters.loras : NULL;
    g->cvec = ctx->adapters.cvec_active ? ctx->adapters.cvec : NULL;
    g->cross = (struct cross *) &ctx->cross;
    g->n = *n;
}

// Into the headers at hand, which are empty or filled again.
static enum err build_nodes(struct llama_context *ctx, const struct ubatch_shape *n) {
    struct kept_graph *k = ctx->at;
    struct graph *g = &k->g;
    k->ready = k->built = false;
    graph_open(ctx, g, k->headers, n);
    g->mem = n->encode ? NULL : ctx->mem;
    g->gf = ggml_new_graph_custom(k->headers, k->n_nodes, false);
    if (!g->gf) return err_set(ERR_NOMEM, "no room for a graph of %zu nodes", k->n_nodes);
    arch_build(ctx->model->arch, g);
    samplers_build(ctx);
    struct ggml_tensor *results[] = {g->logits, g->embd, g->pooled, g->enc_out};
    for (int i = 0; i < 4; i++) {
        if (!results[i]) continue;
        if (ggml_is_error(results[i])) return ERR_FAILED;  // the builder that was misused has said why
        ggml_set_output(results[i]);
    }
    return ERR_OK;
}

static void place_results(struct llama_context *ctx) {
    struct kept_graph *k = ctx->at;
    const struct graph *g = &k->g;
    k->n_placed = 0;
    const bool on_host = ctx->model->output_dev == ctx->model->cpu;
    if (on_host && g->logits) place_result(ctx, g->logits, ctx->out.logits);
    k->n_placed_logits = k->n_placed;
    if (on_host && g->embd && g->n.want_embd && !g->pooled && g->n.n_outputs > 0) place_result(ctx, g->embd, ctx->out.embd);
}

static enum err build(struct llama_context *ctx, const struct ubatch_shape *n) {
    ggml_reset(ctx->at->headers);
    TRY(build_nodes(ctx, n));
    if (ctx->params.cb_eval) graph_name_nodes(ctx->at->g.gf);
    place_results(ctx);
    ctx->at->built = true;
    return ERR_OK;
}

static bool same_shape(const struct ubatch_shape *a, const struct ubatch_shape *b) { return !memcmp(a, b, sizeof *a); }

static int few(int n) { return n < 2 ? n : 2; }

// Whether graphs of two shapes are likely to differ in sizes only.
static bool same_form(const struct ubatch_shape *a, const struct ubatch_shape *b) {
    return a->has_token == b->has_token && a->has_embd == b->has_embd && a->encode == b->encode && a->causal == b->causal &&
           a->want_logits == b->want_logits && a->want_embd == b->want_embd && !a->n_outputs == !b->n_outputs &&
           (a->n_outputs < a->n_tokens) == (b->n_outputs < b->n_tokens) && !a->n_seq_tokens == !b->n_seq_tokens &&
           few(a->n_slots) == few(b->n_slots);
}

enum err graph_fill_inputs(struct llama_context *ctx, const struct graph *g, const struct ubatch *ub) {
    for (int i = 0; i < g->n_inputs; i++) {
        const struct graph_input *in = &g->inputs[i];
        if (!in->t->buffer) continue;  // nobody reads it in this graph
        if (ggml_backend_buffer_is_host(in->t->buffer)) {
            in->fill(in, g, ub, in->t->data);
            continue;
        }
        const size_t n = ggml_nbytes(in->t);
        if (n > ctx->fill_bytes) {
            void *p = realloc(ctx->fill, n);
            if (!p) return err_set(ERR_NOMEM, "no memory for an input of %zu bytes", n);
            ctx->fill = p;
            ctx->fill_bytes = n;
        }
        in->fill(in, g, ub, ctx->fill);
        ggml_backend_tensor_set(in->t, ctx->fill, 0, n);
    }
    return ERR_OK;
}

static void set_threads(struct llama_context *ctx, int n_tokens) {
    const bool many = n_tokens > 1;
    ggml_threadpool_t pool = many && ctx->pool_batch ? ctx->pool_batch : ctx->pool;
    ggml_backend_cpu_set_threadpool(ctx->cpu, pool);
    ggml_backend_cpu_set_n_threads(ctx->cpu, many ? ctx->cp.n_threads_batch : ctx->cp.n_threads);
}

// Samplers in the graph know the tensors of one graph only; a callback wants nodes planned one by one. Then nothing is kept.
static bool keeps(const struct llama_context *ctx) { return !ctx->params.cb_eval && !samplers_any(ctx); }

static struct kept_graph *find_kept(struct llama_context *ctx, const struct ubatch_shape *n) {
    if (ctx->at->ready && same_shape(&ctx->at->g.n, n)) return ctx->at;
    for (int i = 0; i < RUN_KEPT && keeps(ctx); i++) {
        if (ctx->kept[i].ready && same_shape(&ctx->kept[i].g.n, n)) return &ctx->kept[i];
    }
    return NULL;
}

// The place for another graph: the one that was not of use for the longest time.
static struct kept_graph *oldest_kept(struct llama_context *ctx) {
    struct kept_graph *k = &ctx->kept[0];
    for (int i = 1; i < RUN_KEPT && k->ready && keeps(ctx); i++) {
        struct kept_graph *other = &ctx->kept[i];
        if (other->headers && (!other->ready || other->used < k->used)) k = other;
    }
    return k;
}

static bool alloc(struct llama_context *ctx) {
    ggml_backend_sched_reset(ctx->sched);
    ggml_backend_sched_set_eval_callback(ctx->sched, ctx->params.cb_eval, ctx->params.cb_eval_user_data);
    return ggml_backend_sched_alloc_graph(ctx->sched, ctx->at->g.gf);
}

// Over the graph at hand, if it is of the same form. SAME: it has its memory, too, if the scheduler still has it so.
static enum ggml_rebuilt build_over(struct llama_context *ctx, const struct ubatch_shape *n) {
    struct kept_graph *k = ctx->at;
    if (!k->built || !keeps(ctx) || !same_form(&k->g.n, n)) return GGML_REBUILT_OTHER;
    ggml_rebuild_begin(k->headers);
    const enum err e = build_nodes(ctx, n);
    const enum ggml_rebuilt how = ggml_rebuild_end(k->headers);
    if (e != ERR_OK || how == GGML_REBUILT_OTHER) return GGML_REBUILT_OTHER;
    k->built = true;
    const bool same = how == GGML_REBUILT_SAME;
    for (int i = 0; i < k->n_placed; i++) {
        struct ggml_tensor *t = k->placed[i].t;
        t->buffer = same ? ctx->out.buf : NULL;  // it may be another since
        if (!same) t->data = NULL;               // else it moves before the graph runs
    }
    if (!same) place_results(ctx);
    return how;
}

static enum ggml_status build_and_alloc(struct llama_context *ctx, const struct ubatch_shape *n) {
    const enum ggml_rebuilt how = build_over(ctx, n);
    if (how == GGML_REBUILT_SAME && ggml_backend_sched_resume_graph(ctx->sched, ctx->at->g.gf)) {
        ctx->at->ready = true;
        return GGML_STATUS_SUCCESS;
    }
    if (how == GGML_REBUILT_OTHER && build(ctx, n) != ERR_OK) return GGML_STATUS_FAILED;
    ctx->at->ready = alloc(ctx);
    return ctx->at->ready ? GGML_STATUS_SUCCESS : GGML_STATUS_ALLOC_FAILED;
}

// Puts the graph of the micro-batch's shape at hand: that of the last one, another that was kept, or a new one.
static enum ggml_status prepare(struct llama_context *ctx, const struct ubatch_shape *n) {
    struct kept_graph *k = ctx->params.cb_eval ? NULL : find_kept(ctx, n);
    if (k) {
        const bool at_hand = k == ctx->at;
        ctx->at = k;
        ctx->perf.n_reused++;
        if (at_hand || ggml_backend_sched_resume_graph(ctx->sched, k->g.gf)) return GGML_STATUS_SUCCESS;
        k->ready = alloc(ctx);
        return k->ready ? GGML_STATUS_SUCCESS : GGML_STATUS_ALLOC_FAILED;
    }
    ctx->at = oldest_kept(ctx);
    const enum ggml_status st = build_and_alloc(ctx, n);
    if (st == GGML_STATUS_SUCCESS || ctx->at == &ctx->kept[0]) return st;
    ggml_clear_error();  // larger than any that was reserved, perhaps: there is one place with room for all
    ctx->at = &ctx->kept[0];
    return build_and_alloc(ctx, n);
}

enum ggml_status graph_run(struct llama_context *ctx, const struct ubatch *ub) {
    enum ggml_status st = prepare(ctx, &ub->n);
    if (st != GGML_STATUS_SUCCESS) return st;
    struct kept_graph *k = ctx->at;
    struct graph *g = &k->g;
    k->used = ++ctx->n_runs;
    if (graph_fill_inputs(ctx, g, ub) != ERR_OK) return GGML_STATUS_ALLOC_FAILED;
    samplers_set_inputs(ctx);
    move_results(k, 0, k->n_placed_logits, ctx->out.logits + (size_t) ctx->out.n * (size_t) g->hp->n_vocab);
    move_results(k, k->n_placed_logits, k->n_placed,
                 ctx->out.embd + (size_t) ctx->out.n * (size_t) llama_model_n_embd_out(ctx->model));
    set_threads(ctx, ub->n.n_tokens);
    st = ggml_backend_sched_graph_compute(ctx->sched, g->gf);
    if (st != GGML_STATUS_SUCCESS) k->ready = false;
    return st;
}

// ---- reserving --------------------------------------------------------------------------------------------------------------

static int least(int a, int b) { return a < b ? a : b; }

// Recurrent graphs have the shape sequences x tokens.
static struct ubatch_shape shape_for(const struct llama_context *ctx, int n_tokens, int n_seqs, int n_outputs, bool encode) {
    struct ubatch_shape n;
    memset(&n, 0, sizeof n);
    n.n_tokens = n_tokens;
    n.n_outputs = least(n_outputs, ctx->cp.n_outputs_max);
    n.has_token = true;
    n.encode = encode;
    n.causal = ctx->cp.causal;
    n.want_logits = !encode && (ctx->cp.pooling == LLAMA_POOLING_TYPE_NONE || !ctx->cp.embeddings);
    n.want_embd = ctx->cp.embeddings || encode;
    n.n_seqs = n_seqs;
    if (ctx->mem && ctx->mem->rs) n.n_seq_tokens = n_tokens / n_seqs;
    if (!ctx->mem || encode) {
        n.n_slots = least(ctx->cp.n_seq_max, n_tokens);
        n.n_scratch = (n_tokens - n.n_slots) / CELL_BLOCK + n.n_slots;
        n.n_seqs = n.n_slots;
    }
    return n;
}

static void note_size(struct llama_context *ctx) {
    const struct kept_graph *k = ctx->at;
    const size_t n_nodes = (size_t) ggml_graph_n_nodes(k->g.gf),
                 bytes = ggml_used_mem(k->headers) - ggml_graph_overhead_custom(k->n_nodes, false),
                 n_tensors = bytes / ggml_tensor_overhead() + 1;
    if (n_nodes > ctx->most_nodes) ctx->most_nodes = n_nodes;
    if (n_tensors > ctx->most_tensors) ctx->most_tensors = n_tensors;
}

static enum err reserve(struct llama_context *ctx, struct ubatch_shape n) {
    TRY(build(ctx, &n));
    note_size(ctx);
    ggml_backend_sched_reset(ctx->sched);
    const int n_threads = ctx->cp.n_threads > ctx->cp.n_threads_batch ? ctx->cp.n_threads : ctx->cp.n_threads_batch;
    ggml_backend_cpu_set_n_threads(ctx->cpu, n_threads);
    if (ctx->model->params.no_alloc) {
        size_t sizes[RUN_MAX_BACKENDS];  // of this graph alone; the scheduler knows what all of them take
        ggml_backend_sched_reserve_size(ctx->sched, ctx->at->g.gf, sizes);
        return ERR_OK;
    }
    if (!ggml_backend_sched_reserve(ctx->sched, ctx->at->g.gf))
        return err_set(ERR_NOMEM,
                       "no room for the compute buffers of a micro-batch of %d tokens; a smaller one (-ub) needs less",
                       n.n_tokens);
    return ERR_OK;
}

static int n_prompt_rows(const struct llama_context *ctx) {
    return ctx->mem && ctx->cp.n_ubatch > ctx->cp.n_ctx ? ctx->cp.n_ctx : ctx->cp.n_ubatch;
}

// A prompt of which not every row is an output: one that picks rows out, as nearly all do.
static struct ubatch_shape prompt_shape(const struct llama_context *ctx) {
    const int n = n_prompt_rows(ctx);
    return shape_for(ctx, n, 1, n > 1 ? n - 1 : 1, ctx->model->arch->flags & ARCH_ENCODER);
}

enum err graph_build_prompt(struct llama_context *ctx) {
    const struct ubatch_shape n = prompt_shape(ctx);
    ctx->at = &ctx->kept[0];
    TRY(build(ctx, &n));
    ggml_backend_sched_reset(ctx->sched);
    return ERR_OK;
}

// Headers for the graphs that are kept beside the first. Some to spare: a control vector adds a node to every layer.
static enum err make_room(struct llama_context *ctx) {
    const size_t spare = (size_t) ctx->model->hp.n_layer + 64, n_nodes = ctx->most_nodes + spare;
    for (int i = 1; i < RUN_KEPT; i++) {
        struct kept_graph *k = &ctx->kept[i];
        if (k->headers && k->n_nodes >= n_nodes) continue;
        ggml_free(k->headers);
        k->headers = new_headers(n_nodes, ctx->most_tensors + spare);
        if (!k->headers) return err_set(ERR_NOMEM, "no memory for graphs of %zu nodes", n_nodes);
        k->n_nodes = n_nodes;
        // resident from now on, as the plan says, and no page faults while decoding
        if (!ctx->model->params.no_alloc) memset(ggml_get_mem_buffer(k->headers), 0, ggml_get_mem_size(k->headers));
    }
    return ERR_OK;
}

// Every form that graphs of this context have, at its largest: then no batch allocates, whatever comes in whatever order. A prompt's
// graph is the largest, but generation's has another form and may need more of some buffer, as has the one in which every row is an
// output, and the one of several sequences side by side in recurrent layers. The common prompt's goes last so that its plan is the
// one in force when the first prompt arrives; the allocator keeps the one before it, generation's, too.
enum err graph_reserve(struct llama_context *ctx) {
    const struct arch *a = ctx->model->arch;
    const int n_seqs = ctx->cp.n_seq_max, n_prompt = n_prompt_rows(ctx), n_gen = least(n_seqs, n_prompt);
    const bool encode_only = a->flags & ARCH_ENCODER;
    TRY(adapters_check(ctx));
    forget(ctx);
    ctx->at = &ctx->kept[0];
    if (a->flags & ARCH_ENCODER_DECODER) TRY(reserve(ctx, shape_for(ctx, n_prompt, 1, n_prompt, true)));
    const struct ubatch_shape every = shape_for(ctx, n_prompt, 1, n_prompt, encode_only), common = prompt_shape(ctx);
    TRY(reserve(ctx, every));
    if (ctx->mem && ctx->mem->rs && n_gen > 1) {
        // as many tokens of each, rounded up: no division of a micro-batch among fewer sequences has more of anything
        const int n = (n_prompt + n_gen - 1) / n_gen * n_gen;
        TRY(reserve(ctx, shape_for(ctx, n, n_gen, n - 1, encode_only)));
    }
    TRY(reserve(ctx, shape_for(ctx, n_gen, n_gen, n_gen, encode_only)));
    // Sizes alone are known after the first time.
    if (!ctx->model->params.no_alloc || !same_shape(&every, &common)) TRY(reserve(ctx, common));
    return make_room(ctx);
}

// ---- pending rotations of keys ------------------------------------------------------------------------------------------------

#define SHIFT_ROWS 256

struct shift_job {
    struct kv *kv;
    int32_t cell[SHIFT_ROWS], delta[SHIFT_ROWS];
    int n;
};

// Which rows, as get_rows and set_rows want them, and by how many positions they move.
struct shift_inputs {
    struct ggml_tensor *idx, *idx64, *delta;
};

// Moving by a difference of positions is one more rotation; its magnitude must be one. turn: how the rows are kept (kv_turn).
static void shift_rows(struct graph *g, struct ggml_tensor *t, struct rope_opts o, int64_t d, int64_t n_head,
                       struct ggml_tensor *turn, const struct shift_inputs *in) {
    o.pos = in->delta;
    o.mag = o.ext != 0 ? 1.0f / (1.0f + 0.1f * logf(1.0f / o.freq_scale)) : 1.0f;
    struct ggml_tensor *x = ggml_reshape_3d(g->ctx, ggml_get_rows(g->ctx, t, in->idx), d, n_head, SHIFT_ROWS);
    x = attn_turned(g, blk_rope_ext(g, attn_turned(g, x, turn), &o), turn);
    x = ggml_reshape_2d(g->ctx, x, d * n_head, SHIFT_ROWS);
    ggml_build_forward_expand(g->gf, ggml_set_rows(g->ctx, t, x, in->idx64));
}

static void shift_layers(struct graph *g, const struct shift_job *job, const struct shift_inputs *rows) {
    const struct hparams *hp = g->hp;
    for (int c = 0; c < job->kv->n_cache; c++) {
        struct ggml_tensor *k = job->kv->k[c];
        const int il = hp->cache_layer[c];
        if (!k || hp->n_rot[il] == 0 || !hp->rope_layers[il]) continue;
        if (job->kv->x[c] && hp->idx_rope)
            shift_rows(g, job->kv->x[c], rope_index(g, il), hp->idx_dim, hp->cache_x[c] / hp->idx_dim, NULL, rows);
        const int64_t d = hp->n_embd_head_k[il], n_kv = d ? hp->cache_k[c] / d : 0;
        if (n_kv * d != hp->cache_k[c]) continue;
        struct rope_opts o = rope_layer(g, il);
        if (hp->n_lora_kv > 0 && hp->cache_v[c] == 0)
            o.offset = (int) d - o.n_rot;  // latent keys: the rotary part comes last
        shift_rows(g, k, o, d, n_kv, kv_turn(job->kv, k->type, d, o.offset), rows);
    }
}

static enum err run_shift(struct llama_context *ctx, const struct shift_job *job) {
    struct kept_graph *at = ctx->at = &ctx->kept[0];
    struct graph *g = &at->g;
    const struct hparams *hp = &ctx->model->hp;
    at->ready = at->built = false;
    at->n_placed = at->n_placed_logits = 0;
    ggml_reset(at->headers);
    memset(g, 0, sizeof *g);
    g->ctx = at->headers;
    g->hp = hp;
    g->w = &ctx->model->w;
    g->cp = &ctx->cp;
    g->mem = ctx->mem;
    g->gf = ggml_new_graph_custom(at->headers, at->n_nodes, false);
    if (!g->gf) return err_set(ERR_NOMEM, "no room for the graph that rotates keys");
    struct ggml_tensor *idx = ggml_new_tensor_1d(g->ctx, GGML_TYPE_I32, SHIFT_ROWS);
    struct ggml_tensor *idx64 = ggml_new_tensor_1d(g->ctx, GGML_TYPE_I64, SHIFT_ROWS);
    const int n_pos = hp->mrope ? 4 : 1;
    struct ggml_tensor *delta = ggml_new_tensor_1d(g->ctx, GGML_TYPE_I32, (int64_t) SHIFT_ROWS * n_pos);
    ggml_set_input(idx);
    ggml_set_input(idx64);
    ggml_set_input(delta);
    shift_layers(g, job, &(struct shift_inputs){idx, idx64, delta});
    if (ggml_graph_n_nodes(g->gf) == 0) return ERR_OK;
    ggml_backend_sched_reset(ctx->sched);
    if (!ggml_backend_sched_alloc_graph(ctx->sched, g->gf))
        return err_set(ERR_NOMEM, "no room for the graph that rotates keys");
    int64_t wide[SHIFT_ROWS];
    int32_t d4[4 * SHIFT_ROWS];
    for (int i = 0; i < SHIFT_ROWS; i++) {
        wide[i] = job->cell[i];
        for (int k = 0; k < n_pos; k++) d4[k * SHIFT_ROWS + i] = k < 3 ? job->delta[i] : 0;
    }
    ggml_backend_tensor_set(idx, job->cell, 0, sizeof job->cell);
    ggml_backend_tensor_set(idx64, wide, 0, sizeof wide);
    ggml_backend_tensor_set(delta, d4, 0, (size_t) n_pos * SHIFT_ROWS * 4);
    set_threads(ctx, SHIFT_ROWS);
    const enum ggml_status st = ggml_backend_sched_graph_compute(ctx->sched, g->gf);
    return st == GGML_STATUS_SUCCESS ? ERR_OK : err_set(ERR_FAILED, "rotating the keys of %d cells failed", job->n);
}

static enum err shift_kv(struct llama_context *ctx, struct kv *kv) {
    struct cells *c = &kv->cells;
    if (!c->any_shift) return ERR_OK;
    struct shift_job *job = malloc(sizeof *job);
    if (!job) return err_set(ERR_NOMEM, "no memory to rotate keys");
    job->kv = kv;
    job->n = 0;
    enum err e = ERR_OK;
    const int32_t n_cell = c->n_block * CELL_BLOCK;
    for (int32_t i = 0; i <= n_cell && e == ERR_OK; i++) {
        if (i < n_cell && c->shift[i] != 0 && c->ref[i / CELL_BLOCK] > 0) {
            job->cell[job->n] = i;
            job->delta[job->n++] = c->shift[i];
        }
        if (job->n == SHIFT_ROWS || (i == n_cell && job->n > 0)) {
            // A short last job repeats its first row: all rows are read before any is written, so the same bits are written again.
            for (int k = job->n; k < SHIFT_ROWS; k++) {
                job->cell[k] = job->cell[0];
                job->delta[k] = job->delta[0];
            }
            e = run_shift(ctx, job);
            job->n = 0;
        }
    }
    free(job);
    if (e != ERR_OK) return e;
    memset(c->shift, 0, (size_t) n_cell * 4);
    c->any_shift = false;
    return ERR_OK;
}

enum err graph_shift(struct llama_context *ctx) {
    if (!ctx->mem) return ERR_OK;
    if (ctx->mem->full) TRY(shift_kv(ctx, ctx->mem->full));
    if (ctx->mem->swa) TRY(shift_kv(ctx, ctx->mem->swa));
    return ERR_OK;
}
