// One batch: plan, place, compute, collect.
#include <string.h>

#include "run/context.h"

// Undo a micro-batch that was placed but not computed.
static void unplace(struct llama_context *ctx, const struct plan_ubatch *u) {
    if (!ctx->mem) return;
    for (int32_t r = u->r0; r < u->r0 + u->n; r++) {
        const struct place_row *row = &ctx->plan.rows[r];
        for (int32_t k = 0; k < row->n_seq; k++) {
            if (ctx->mem->full) cells_rm(&ctx->mem->full->cells, row->seq[k], row->pos, row->pos + 1);
            if (ctx->mem->swa) cells_rm(&ctx->mem->swa->cells, row->seq[k], row->pos, row->pos + 1);
        }
    }
}

static bool place_kv(struct llama_context *ctx, struct kv *kv, const struct plan_ubatch *u, bool swa) {
    struct llama_memory_i *m = ctx->mem;
    if (!kv) return true;
    m->copies.n = 0;
    const bool ok = kv_place_rows(kv, ctx->plan.rows + u->r0, u->n, &m->copies, swa);
    kv_copy_cells(m, kv, &m->copies);
    const bool lost = m->copies.failed;
    m->copies.n = 0;
    m->copies.failed = false;
    return ok && !lost;
}

static int n_states(const struct llama_context *ctx, const struct plan_ubatch *u) {
    const int most = 1 + ctx->cp.n_rs_seq;
    return u->n_seq_tokens < most ? u->n_seq_tokens : most;
}

static void begin_states(struct llama_context *ctx, const struct plan_ubatch *u) {
    struct plan *p = &ctx->plan;
    const int k = n_states(ctx, u);
    int32_t dst[64];
    for (int32_t s = 0; s < u->n_seqs; s++) {
        rs_begin(ctx->mem->rs, p->seqs[s], k, &p->rs_src[s], dst);
        for (int j = 0; j < k; j++) p->rs_dst[j * u->n_seqs + s] = dst[j];
    }
}

static void end_states(struct llama_context *ctx, const struct plan_ubatch *u, bool ok) {
    struct plan *p = &ctx->plan;
    const int k = n_states(ctx, u);
    int32_t dst[64];
    for (int32_t s = 0; s < u->n_seqs; s++) {
        for (int j = 0; j < k; j++) dst[j] = p->rs_dst[j * u->n_seqs + s];
        const int32_t last = p->rows[u->r0 + (s + 1) * u->n_seq_tokens - 1].pos;
        if (ok)
            rs_commit(ctx->mem->rs, p->seqs[s], last, dst, k);
        else
            rs_abort(ctx->mem->rs, p->seqs[s], dst, k);
        // A state that was being changed in place is lost, and what the other kinds of memory have is nothing without it.
        if (!ok && rs_pos(ctx->mem->rs, p->seqs[s]) < 0) (void) llama_memory_seq_rm(ctx->mem, p->seqs[s], -1, -1);
    }
}

// The sequences of a micro-batch in order of appearance.
static void list_seqs(struct llama_context *ctx, struct plan_ubatch *u) {
    struct plan *p = &ctx->plan;
    int32_t n = 0;
    for (int32_t r = u->r0; r < u->r0 + u->n; r++) {
        const int32_t s = p->rows[r].seq[0];
        int32_t j = n;
        while (j > 0 && p->seqs[j - 1] != s) j--;
        if (j == 0) p->seqs[n++] = s;
    }
    u->n_seqs = n;
}

static struct ubatch make_ubatch(struct llama_context *ctx, const struct batch_view *b, struct plan_ubatch *u, bool encode) {
    struct plan *p = &ctx->plan;
    list_seqs(ctx, u);
    struct ubatch ub;
    memset(&ub, 0, sizeof ub);
    const bool states = !encode && ctx->mem && ctx->mem->rs,
               pooled = ctx->cp.pooling != LLAMA_POOLING_TYPE_NONE && ctx->cp.embeddings;
    struct ubatch_shape *n = &ub.n;
    n->n_tokens = u->n;
    // only graphs with states, pooling or scratch depend on the number of sequences
    n->n_seqs = states || pooled || !ctx->mem || encode ? u->n_seqs : 0;
    n->n_seq_tokens = states ? u->n_seq_tokens : 0;
    n->n_slots = u->n_slots;
    n->n_scratch = u->n_scratch;
    n->has_token = b->token != NULL;
    n->has_embd = b->embd != NULL;
    n->encode = encode;
    n->causal = ctx->cp.causal && !encode && (ctx->mem || !(ctx->model->arch->flags & (ARCH_ENCODER | ARCH_DIFFUSION)));
    n->want_embd = ctx->cp.embeddings || ctx->model->arch->flags & ARCH_ENCODER ||
                   (encode && !(ctx->model->arch->flags & ARCH_DIFFUSION));
    n->want_logits = !(ctx->model->arch->flags & (ARCH_ENCODER | ARCH_NO_LOGITS)) && !pooled &&
                     !(encode && ctx->model->arch->flags & ARCH_ENCODER_DECODER);
    n->version = ctx->version;
    for (int32_t r = u->r0; r < u->r0 + u->n; r++)
        if (p->out[r]) p->out_rows[n->n_outputs++] = r - u->r0;
    ub.token = p->token + u->r0;
    ub.embd = b->embd ? p->embd + (size_t) u->r0 * (size_t) ctx->model->hp.n_embd_inp : NULL;
    ub.state = b->state ? p->state + (size_t) u->r0 * (size_t) ctx->model->hp.n_embd : NULL;
    ub.slot = p->slot + u->r0;
    ub.rows = p->rows + u->r0;
    ub.out = p->out_rows;
    ub.seq = p->seqs;
    ub.sum = ctx->out.embd_seq;
    ub.n_summed = ctx->out.n_rows_of;
    ub.n_sum = ctx->out.n_embd_pooled;
    ub.n.sampler_rows = samplers_rows(ctx, &ub);
    ub.rs_src = p->rs_src;
    ub.rs_dst = p->rs_dst;
    return ub;
}

// Copies that graph_run did not already write in place, and the bookkeeping of rows.
static void collect(struct llama_context *ctx, const struct ubatch *ub, const struct plan_ubatch *u) {
    struct outputs *o = &ctx->out;
    const struct graph *g = &ctx->at->g;
    const size_t nv = (size_t) g->hp->n_vocab, ne = (size_t) llama_model_n_embd_out(ctx->model),
                 n = (size_t) ub->n.n_outputs;
    if (g->logits && n) {
        o->has_logits = true;
        if (ctx->at->n_placed_logits == 0)
            ggml_backend_tensor_get(g->logits, o->logits + (size_t) o->n * nv, 0, n * nv * sizeof(float));
    }
    if (g->embd && ub->n.want_embd && !g->pooled && n) {
        o->has_embd = true;
        if (ctx->at->n_placed == ctx->at->n_placed_logits)
            ggml_backend_tensor_get(g->embd, o->embd + (size_t) o->n * ne, 0, n * ne * sizeof(float));
    }
    for (int32_t s = 0; g->pooled && s < ub->n.n_seqs; s++) {
        const size_t w = (size_t) g->pooled->ne[0] * sizeof(float);
        const int32_t q = ub->seq[s];
        if (ctx->cp.pooling == LLAMA_POOLING_TYPE_CLS && o->n_rows_of[q]) continue;  // the first row has been
        ggml_backend_tensor_get(g->pooled, o->embd_seq + (size_t) q * (size_t) o->n_embd_pooled, (size_t) s * w, w);
    }
    for (int32_t i = 0; g->pooled && i < ub->n.n_tokens; i++) o->n_rows_of[ub->rows[i].seq[0]]++;
    for (size_t i = 0; i < n; i++) {
        const int32_t at = ctx->plan.src[u->r0 + ub->out[i]];
        if (o->n && o->order[o->n - 1] > at) o->sorted = false;
        o->order[o->n] = at;
        o->row_of[at] = o->n++;
    }
}

// The sums of models with a memory, whose sequences may take several micro-batches, become means.
static void divide_sums(const struct llama_context *ctx) {
    const struct outputs *o = &ctx->out;
    if (!ctx->at->g.pooled || !ctx->at->g.mem || ctx->cp.pooling != LLAMA_POOLING_TYPE_MEAN) return;
    for (int32_t s = 0; s < ctx->cp.n_seq_max; s++)
        for (int32_t e = 0; e < o->n_embd_pooled && o->n_rows_of[s]; e++)
            o->embd_seq[(size_t) s * (size_t) o->n_embd_pooled + (size_t) e] /= (float) o->n_rows_of[s];
}

// An encoder's states stay for the decoder.
static void keep_cross(struct llama_context *ctx, const struct ubatch *ub) {
    const struct graph *g = &ctx->at->g;
    if (!g->enc_out || !ctx->cross.states) return;
    const size_t w = (size_t) g->hp->n_embd * sizeof(float);
    for (int32_t i = 0; i < ub->n.n_tokens && ctx->cross.n_tokens < ctx->cross.n_max; i++) {
        ggml_backend_tensor_get(g->enc_out, (char *) ctx->cross.states->data + (size_t) ctx->cross.n_tokens * w,
                                (size_t) i * w, w);
        ctx->cross_seq[ctx->cross.n_tokens++] = ub->rows[i].seq[0];
    }
}

static int status_code(enum ggml_status st) {
    if (st == GGML_STATUS_SUCCESS) return 0;
    if (st == GGML_STATUS_ABORTED) return 2;
    return st == GGML_STATUS_ALLOC_FAILED ? -2 : -3;
}

// The positions of a micro-batch's rows, section by section, where graphs read them.
static void gather_pos(const struct llama_context *ctx, const struct plan_ubatch *u, struct ubatch *ub, int32_t *buf) {
    const struct plan *p = &ctx->plan;
    if (!ctx->model->hp.mrope) {
        ub->pos = p->pos + u->r0;
        return;
    }
    for (int k = 0; k < 4; k++)
        memcpy(buf + (size_t) k * (size_t) u->n, p->pos + (size_t) k * (size_t) p->cap_rows + u->r0, (size_t) u->n * 4);
    ub->pos = buf;
}

static int run_ubatch(struct llama_context *ctx, const struct batch_view *b, struct plan_ubatch *u, bool encode) {
    struct ubatch ub = make_ubatch(ctx, b, u, encode);
    const bool use_memory = ctx->mem && !encode;
    gather_pos(ctx, u, &ub, ctx->plan.pos4);
    if (use_memory && (!place_kv(ctx, ctx->mem->full, u, false) || !place_kv(ctx, ctx->mem->swa, u, true))) {
        unplace(ctx, u);
        return 1;
    }
    if (use_memory && ctx->mem->rs) begin_states(ctx, u);
    const enum ggml_status st = graph_run(ctx, &ub);
    if (use_memory && ctx->mem->rs) end_states(ctx, u, st == GGML_STATUS_SUCCESS);
    if (st != GGML_STATUS_SUCCESS) {
        if (use_memory) unplace(ctx, u);
        return status_code(st);
    }
    samplers_collect(ctx, ctx->out.n);
    collect(ctx, &ub, u);
    keep_cross(ctx, &ub);
    return 0;
}

static void count_perf(struct llama_context *ctx, int n_tokens, int64_t t0) {
    const int64_t t = ctx->cp.no_perf ? 0 : ggml_time_us() - t0;
    if (n_tokens == 1) {
        ctx->perf.t_eval_us += t;
        ctx->perf.n_eval++;
    } else {
        ctx->perf.t_p_eval_us += t;
        ctx->perf.n_p_eval += n_tokens;
    }
}

static void say_full(const struct llama_context *ctx, const struct batch_view *b) {
    (void) err_set(
        ERR_NOMEM,
        "the memory has no room for %d tokens more (n_ctx %d, %d per sequence); remove some positions, or make it larger",
        b->n_tokens, ctx->cp.n_ctx, ctx->cp.n_ctx_seq);
}

int context_process(struct llama_context *ctx, const struct batch_view *b, bool encode) {
    const int64_t t0 = ggml_time_us();
    ggml_clear_error();
    const unsigned fl = ctx->model->arch->flags;
    if (ctx->model->params.no_alloc) {
        (void) err_set(ERR_INVALID, "the model was loaded without its weights' data (no_alloc): nothing can be computed");
        return -1;
    }
    if (encode && ctx->mem && ctx->mem->rs) {
        (void) err_set(ERR_UNSUPPORTED, "encode: this model's layers keep states, which only llama_decode has");
        return -1;
    }
    if (encode && fl & ARCH_ENCODER_DECODER) ctx->cross.n_tokens = 0;
    if (!encode && fl & ARCH_ENCODER_DECODER && ctx->cross.n_tokens == 0) {
        (void) err_set(ERR_INVALID, "decode: this model's decoder needs llama_encode first");
        return -1;
    }
    if (adapters_check(ctx) != ERR_OK) return -1;
    if (data_whole(ctx->model) != ERR_OK) return -3;
    const int r = plan_make(ctx, b, !encode);
    if (r == 1) say_full(ctx, b);
    if (r != 0) return r;
    int n_out = 0;
    for (int32_t i = 0; i < ctx->plan.n_rows; i++) n_out += ctx->plan.out[i] != 0;
    if (outputs_begin(ctx, b->n_tokens, n_out) != ERR_OK) return -1;
    samplers_begin(ctx);
    if (!encode && graph_shift(ctx) != ERR_OK) return -3;
    for (int32_t k = 0; k < ctx->plan.n_ub; k++) {
        if (k > 0 && data_whole(ctx->model) != ERR_OK) return -3;
        const int e = run_ubatch(ctx, b, &ctx->plan.ub[k], encode);
        if (e == 1) say_full(ctx, b);
        if (e != 0) return e;
    }
    divide_sums(ctx);
    count_perf(ctx, b->n_tokens, t0);
    return 0;
}

// ---- public calls -----------------------------------------------------------------------------------------------------------

static struct batch_view view_batch(const struct llama_context *ctx, const struct llama_batch *b) {
    struct batch_view v = {
        .n_tokens = b->n_tokens,
        .token = b->token,
        .embd = b->token ? NULL : b->embd,
        .pos = b->pos,
        .n_seq_id = b->n_seq_id,
        .seq_id = b->seq_id,
        .out = b->logits,
    };
    if (ctx->cp.nextn && b->token) v.state = b->embd;
    if (v.embd && v.pos && ctx->model->hp.mrope) v.pos_stride = b->n_tokens;
    v.out_all = ctx->cp.embeddings;
    return v;
}

int32_t llama_encode(struct llama_context *ctx, struct llama_batch batch) {
    if (!ctx) return -1;
    struct batch_view v = view_batch(ctx, &batch);
    v.out_all = true;
    return context_process(ctx, &v, true);
}

int32_t llama_decode(struct llama_context *ctx, struct llama_batch batch) {
    if (!ctx) return -1;
    struct batch_view v = view_batch(ctx, &batch);
    // models without a memory have one way to go
    if (ctx->model->arch->flags & ARCH_ENCODER) {
        v.out_all = true;
        return context_process(ctx, &v, true);
    }
    return context_process(ctx, &v, false);
}

struct llama_batch llama_batch_get_one(llama_token *tokens, int32_t n_tokens) {
    return (struct llama_batch){.n_tokens = n_tokens, .token = tokens};
}
