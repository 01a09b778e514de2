// Attention: projections, the caches, and the operation itself. Keys and values are written to their cells first; then every query
// looks at its sequence's blocks, in the order of positions. There is no other form of it but for training: products over all cells would
// add up in
// the order in which cells were handed out, and so give other bits beside other sequences (design, rule 7).
#include "block/attn_int.h"

#include <math.h>
#include <string.h>

struct place {
    enum attn_view view;
    struct kv *kv;  // NULL: scratch
    int cache;
    int window, width;  // kind and size
};

static struct place place_of(const struct graph *g, int il, const struct attn_opts *o) {
    const struct hparams *hp = g->hp;
    struct place p = {.view = VIEW_SCRATCH, .cache = o && o->cache ? o->cache - 1 : hp->kv_cache[il]};
    if (g->mem && p.cache >= 0) {
        const bool swa = hp->is_swa[hp->cache_layer[p.cache]] != 0;
        p.kv = memory_kv(g->mem, swa);
        p.view = p.kv == g->mem->swa ? VIEW_SMALL : VIEW_FULL;
    }
    if (hp->is_swa[il] && hp->n_swa > 0 && !(o && o->no_window)) {
        p.window = hp->swa_kind ? hp->swa_kind : WINDOW_STANDARD;
        p.width = hp->n_swa;
    }
    return p;
}

int64_t attn_n_cells(const struct graph *g, int il) {
    const struct place p = place_of(g, il, NULL);
    if (p.kv) return p.kv->n_cell;
    return g->n.n_slots == 1 ? g->n.n_tokens : (int64_t) g->n.n_scratch * CELL_BLOCK;
}

struct ggml_tensor *in_rel_buckets(struct graph *g, int il, int n_buckets, bool bidirectional) {
    const struct place p = place_of(g, il, NULL);
    struct graph_input *in =
        graph_input(g, GGML_TYPE_I32, attn_n_cells(g, il) * g->n.n_tokens, 0, fill_buckets, (int) p.view, p.window, p.width);
    in->f = (float) n_buckets;
    in->h = bidirectional ? 1.0f : 0.0f;
    return in->t;
}

struct ggml_tensor *in_cell_pos(struct graph *g, int il) {
    const struct place p = place_of(g, il, NULL);
    return graph_input(g, GGML_TYPE_I32, attn_n_cells(g, il), g->n.n_tokens, fill_cell_pos, (int) p.view, p.window, p.width)
        ->t;
}

struct ggml_tensor *in_pool_pos(struct graph *g, int il, int n) {
    const struct place p = place_of(g, il, NULL);
    const int n_pool = (int) (attn_n_cells(g, il) / n);
    return graph_input(g, GGML_TYPE_I32, (int64_t) n_pool * (g->hp->mrope ? 4 : 1), 0, fill_pool_pos, (int) p.view, n_pool,
                       n)
        ->t;
}

struct ggml_tensor *attn_turned(struct graph *g, struct ggml_tensor *x, struct ggml_tensor *turn) {
    if (!turn) return x;
    if (!ggml_is_contiguous(x)) x = ggml_cont(g->ctx, x);
    struct ggml_tensor *runs = ggml_reshape_2d(g->ctx, x, turn->ne[0], ggml_nelements(x) / turn->ne[0]);
    struct ggml_tensor *y = ggml_mul_mat(g->ctx, turn, runs);
    return ggml_reshape_4d(g->ctx, y, x->ne[0], x->ne[1], x->ne[2], x->ne[3]);
}

// ---- storing --------------------------------------------------------------------------------------------------------

static struct ggml_tensor *store(struct graph *g, const struct place *p, struct ggml_tensor *cache, struct ggml_tensor **now,
                                 struct ggml_tensor *x) {
    struct ggml_tensor *idx = graph_input(g, GGML_TYPE_I64, g->n.n_tokens, 0, fill_cells, (int) p->view, 0, 0)->t;
    struct ggml_tensor *w = ggml_set_rows(g->ctx, *now ? *now : cache, x, idx);
    ggml_build_forward_expand(g->gf, w);  // written even if nobody reads this layer's result
    return *now = w;
}

// Rows of the micro-batch in the order of scratch cells: each sequence begins a block of its own.
static struct ggml_tensor *gather(struct graph *g, struct ggml_tensor *x) {
    if (g->n.n_slots == 1) return x;
    struct ggml_tensor *idx =
        graph_input(g, GGML_TYPE_I32, (int64_t) g->n.n_scratch * CELL_BLOCK, 0, fill_gather, 0, 0, 0)->t;
    return ggml_get_rows(g->ctx, x, idx);
}

struct ggml_tensor *blk_cache_extra(struct graph *g, struct ggml_tensor *x, int il) {
    const struct place p = place_of(g, il, NULL);
    if (!p.kv) return gather(g, x);
    return store(g, &p, p.kv->x[p.cache], &g->cache_x[p.cache], x);
}

struct ggml_tensor *blk_cache_rows(struct graph *g, struct ggml_tensor *x, int cache, bool extra) {
    const struct place p = place_of(g, g->hp->cache_layer[cache], &(struct attn_opts){.cache = 1 + cache});
    if (extra) return store(g, &p, p.kv->x[cache], &g->cache_x[cache], x);
    x = attn_turned(g, x, kv_turn(p.kv, p.kv->k[cache]->type, x->ne[0], 0));  // one head
    return store(g, &p, p.kv->k[cache], &g->cache_k[cache], x);
}

// [n, n_cell, heads]: the first n values of each head of rows [d * heads, n_cell].
static struct ggml_tensor *heads_of(struct graph *g, struct ggml_tensor *rows, int64_t d, int64_t n, int64_t n_head) {
    struct ggml_context *c = g->ctx;
    if (!g->train) return ggml_view_3d(c, rows, n, rows->ne[1], n_head, rows->nb[1], ggml_row_size(rows->type, d), 0);
    // gradients pass through views whose places ascend
    struct ggml_tensor *x = ggml_reshape_3d(c, rows, d, n_head, rows->ne[1]);
    if (n != d) x = ggml_view_3d(c, x, n, n_head, rows->ne[1], x->nb[1], x->nb[2], 0);
    return ggml_permute(c, x, 0, 2, 1, 3);
}

// ---- the operation ----------------------------------------------------------------------------------------------------

// mask: what the tables can't say, over cells; NULL: nothing.
static struct ggml_tensor *attend_blocks(struct graph *g, const struct place *p, struct ggml_tensor *q,
                                         struct ggml_tensor *k, struct ggml_tensor *v, struct ggml_tensor *mask, float scale,
                                         const struct attn_opts *o) {
    struct ggml_tensor *query =
        graph_input(g, GGML_TYPE_I32, 4, g->n.n_tokens, fill_query, (int) p->view, p->window, p->width)->t;
    struct ggml_tensor *table;
    if (p->kv) {
        table = p->kv->table;
    } else {
        const int n_logical = (g->n.n_tokens + CELL_BLOCK - 1) / CELL_BLOCK;
        table = ggml_reshape_3d(
            g->ctx, graph_input(g, GGML_TYPE_I32, 3 * n_logical, g->n.n_slots, fill_scratch_table, 0, n_logical, 0)->t, 3,
            n_logical, g->n.n_slots);
    }
    struct ggml_tensor *a = ggml_flash_attn_ext(g->ctx, q, k, v, mask, scale, o->alibi, o->softcap);
    if (o->sinks) ggml_flash_attn_ext_add_sinks(a, blk_f32(g, o->sinks));
    ggml_flash_attn_ext_set_blocks(a, query, table);
    return a;
}

// Further keys behind those of the cache: a table of its own, and a mask for what a range of positions can't say.
static struct ggml_tensor *attend_more(struct graph *g, const struct place *p, struct ggml_tensor *q, struct ggml_tensor *k,
                                       struct ggml_tensor *v, float scale, const struct attn_opts *o) {
    struct ggml_tensor *mask =
        graph_input(g, GGML_TYPE_F32, p->kv->n_cell, g->n.n_tokens, fill_mask, (int) p->view, p->window, p->width)->t;
    const struct more_inputs in = in_more(g, p->view, p->kv, o->more->ne[1]);
    struct ggml_tensor *a =
        ggml_flash_attn_ext(g->ctx, q, k, v, ggml_concat(g->ctx, mask, o->more_mask, 0), scale, 0.0f, o->softcap);
    if (o->sinks) ggml_flash_attn_ext_add_sinks(a, blk_f32(g, o->sinks));
    ggml_flash_attn_ext_set_blocks(a, in.query, in.table);
    return a;
}

// Attention that gradients pass through: products and a softmax over the rows of the micro-batch, which is one text from its beginning.
static struct ggml_tensor *attend_train(struct graph *g, const struct place *p, struct ggml_tensor *q, struct ggml_tensor *k,
                                        struct ggml_tensor *v, struct ggml_tensor *keep, float scale,
                                        const struct attn_opts *o) {
    struct ggml_context *c = g->ctx;
    const int view = (int) p->view | (o->alibi > 0 ? MASK_DISTANCES : 0);
    struct ggml_tensor *mask =
        graph_input(g, GGML_TYPE_F32, k->ne[1], g->n.n_tokens, fill_mask, view, p->window, p->width)->t;
    if (keep) mask = ggml_add(c, keep, mask);
    struct ggml_tensor *kq = ggml_mul_mat(c, k, q);
    if (o->softcap != 0) {
        kq = ggml_scale(c, ggml_tanh(c, ggml_scale(c, kq, scale / o->softcap)), o->softcap);
        scale = 1.0f;
    }
    kq = ggml_soft_max_ext(c, kq, mask, scale, o->alibi);
    if (o->sinks) ggml_soft_max_add_sinks(kq, blk_f32(g, o->sinks));
    struct ggml_tensor *kqv = ggml_mul_mat(c, ggml_cont(c, ggml_permute(c, v, 1, 0, 2, 3)), kq);
    return ggml_cont(c, ggml_permute(c, kqv, 0, 2, 1, 3));
}

struct ggml_tensor *blk_attend(struct graph *g, struct ggml_tensor *q, struct ggml_tensor *k, struct ggml_tensor *v, int il,
                               const struct attn_opts *o) {
    const struct hparams *hp = g->hp;
    struct ggml_tensor *const in[] = {q, k, v};
    for (int i = 0; i < 3; i++)
        if (in[i] && ggml_is_error(in[i])) return in[i];
    const struct place p = place_of(g, il, o);
    const int64_t d = q->ne[0], n_head = q->ne[1], t = q->ne[2];
    struct ggml_tensor *kr, *vr = NULL, *turn_back = NULL;
    int64_t n_kv, dv;
    if (p.kv) {
        n_kv = hp->cache_k[p.cache] / d;
        dv = o->v_of_k ? o->v_of_k : n_kv ? hp->cache_v[p.cache] / n_kv : 0;
        struct ggml_tensor *turn = kv_turn(p.kv, p.kv->k[p.cache]->type, d, o->v_of_k);
        turn_back = o->v_of_k ? turn : kv_turn(p.kv, p.kv->v[p.cache]->type, dv, 0);
        q = attn_turned(g, q, turn);
        if (k) k = attn_turned(g, k, turn);
        if (k && v && !o->v_of_k) v = attn_turned(g, v, turn_back);
        if (k) store(g, &p, p.kv->k[p.cache], &g->cache_k[p.cache], blk_flat(g, k));
        if (k && v && !o->v_of_k) store(g, &p, p.kv->v[p.cache], &g->cache_v[p.cache], blk_flat(g, v));
        kr = g->cache_k[p.cache] ? g->cache_k[p.cache] : p.kv->k[p.cache];
        if (!o->v_of_k) vr = g->cache_v[p.cache] ? g->cache_v[p.cache] : p.kv->v[p.cache];
    } else {
        // layers that share a cache find the rows where its owner left them
        struct ggml_tensor **kept = &g->cache_k[p.cache < 0 ? il : p.cache],
                           **kept_v = &g->cache_v[p.cache < 0 ? il : p.cache];
        if (k) *kept = gather(g, blk_flat(g, k));
        if (k && v && !o->v_of_k) *kept_v = gather(g, blk_flat(g, v));
        kr = *kept;
        vr = *kept_v;
        n_kv = kr->ne[0] / d;
        dv = o->v_of_k ? o->v_of_k : vr->ne[0] / n_kv;
    }
    if (o->more) kr = ggml_concat(g->ctx, kr, o->more, 1);
    struct ggml_tensor *kh = heads_of(g, kr, d, d, n_kv);
    struct ggml_tensor *vh = o->v_of_k ? heads_of(g, kr, d, dv, n_kv) : heads_of(g, vr, dv, dv, n_kv);
    struct ggml_tensor *qp = ggml_permute(g->ctx, q, 0, 2, 1, 3);
    float scale = o->scale != 0 ? o->scale : hp->f_attn_scale != 0 ? hp->f_attn_scale : 1.0f / sqrtf((float) d);
    struct ggml_tensor *mask = o->bias ? o->bias : o->keep;
    if (o->bias && o->keep) mask = ggml_add(g->ctx, o->bias, o->keep);
    struct ggml_tensor *a;
    if (g->train)
        a = attend_train(g, &p, qp, kh, vh, mask, scale, o);
    else if (o->more)
        a = attend_more(g, &p, qp, kh, vh, scale, o);
    else
        a = attend_blocks(g, &p, qp, kh, vh, mask, scale, o);
    return ggml_reshape_2d(g->ctx, attn_turned(g, a, turn_back), dv * n_head, t);
}

// ---- around it --------------------------------------------------------------------------------------------------------

// The fused weight's bias, or its three parts joined.
static struct ggml_tensor *add_qkv_bias(struct graph *g, const struct layer *l, struct ggml_tensor *y) {
    if (l->attn_qkv.b) return ggml_add(g->ctx, y, l->attn_qkv.b);
    if (!l->attn_q.b || !l->attn_k.b || !l->attn_v.b) return y;
    struct ggml_tensor *b = ggml_concat(g->ctx, ggml_concat(g->ctx, l->attn_q.b, l->attn_k.b, 0), l->attn_v.b, 0);
    return ggml_add(g->ctx, y, b);
}

static struct ggml_tensor *project(struct graph *g, const struct weight *w, struct ggml_tensor *x,
                                   const struct attn_opts *o) {
    struct ggml_tensor *y = blk_linear(g, w, x);
    return o->clamp > 0 ? ggml_clamp(g->ctx, y, -o->clamp, o->clamp) : y;
}

struct qkv blk_qkv(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il, const struct attn_opts *o) {
    const struct hparams *hp = g->hp;
    const int64_t h = hp->n_head[il], n_kv = hp->n_head_kv[il], d = hp->n_embd_head_k[il], dv = hp->n_embd_head_v[il],
                  t = x->ne[1];
    const int64_t dq = o->q_gated ? 2 * d : d;
    struct ggml_context *c = g->ctx;
    if (!l->attn_qkv.w) {
        struct qkv a = {.q = ggml_reshape_3d(c, project(g, &l->attn_q, x, o), dq, h, t)};
        if (!l->attn_k.w) return a;
        a.k = ggml_reshape_3d(c, project(g, &l->attn_k, x, o), d, n_kv, t);
        a.v = l->attn_v.w ? ggml_reshape_3d(c, project(g, &l->attn_v, x, o), dv, n_kv, t) : a.k;
        // side by side in the graph: a device may compute them as one (they read the same activation)
        ggml_build_forward_expand(g->gf, a.q);
        ggml_build_forward_expand(g->gf, a.k);
        ggml_build_forward_expand(g->gf, a.v);
        return a;
    }
    struct ggml_tensor *y = blk_matmul(g, l->attn_qkv.w, x);
    if (l->attn_qkv.s) y = ggml_mul(c, y, l->attn_qkv.s);
    y = add_qkv_bias(g, l, y);
    if (o->clamp > 0) y = ggml_clamp(c, y, -o->clamp, o->clamp);
    const size_t es = sizeof(float), row = y->nb[1];
    return (struct qkv){ggml_view_3d(c, y, dq, h, t, es * (size_t) dq, row, 0),
                        ggml_view_3d(c, y, d, n_kv, t, es * (size_t) d, row, es * (size_t) (h * dq)),
                        ggml_view_3d(c, y, dv, n_kv, t, es * (size_t) dv, row, es * (size_t) (h * dq + n_kv * d))};
}

static struct ggml_tensor *qk_norm(struct graph *g, struct ggml_tensor *x, const struct weight *w,
                                   const struct attn_opts *o) {
    if (!w->w) return x;
    switch (o->qk_norm) {
        case QK_NORM_HEAD: return blk_norm(g, x, w, NORM_RMS);
        case QK_NORM_HEAD_LN: return blk_norm(g, x, w, NORM_LN);
        case QK_NORM_ROW: return blk_row_norm(g, x, w, NORM_RMS);
        case QK_NORM_ROW_LN: return blk_row_norm(g, x, w, NORM_LN);
        case QK_NORM_NONE: break;
    }
    return x;
}

static struct ggml_tensor *rotate(struct graph *g, struct ggml_tensor *x, int il, const struct attn_opts *o) {
    if (o->no_rope || !g->hp->rope_layers[il] || g->hp->rope_mode == LLAMA_ROPE_TYPE_NONE) return x;
    return o->rope ? blk_rope_ext(g, x, o->rope) : blk_rope(g, x, il);
}

// x [n, T] times sigmoid(gate): gate [n, T], or [H, T] for one value per head.
static struct ggml_tensor *apply_gate(struct graph *g, struct ggml_tensor *x, struct ggml_tensor *gate) {
    struct ggml_tensor *s = ggml_sigmoid(g->ctx, gate);
    if (gate->ne[0] == x->ne[0]) return ggml_mul(g->ctx, x, s);
    const int64_t h = gate->ne[0], d = x->ne[0] / h, t = x->ne[1];
    x = ggml_mul(g->ctx, ggml_reshape_3d(g->ctx, x, d, h, t), ggml_reshape_3d(g->ctx, s, 1, h, t));
    return ggml_reshape_2d(g->ctx, x, d * h, t);
}

// Rows [query, gate] per head: q becomes the queries, the result is the gates [D * H, T].
static struct ggml_tensor *split_gate(struct graph *g, struct ggml_tensor **q) {
    struct ggml_tensor *qg = *q;
    const int64_t d = qg->ne[0] / 2, h = qg->ne[1], t = qg->ne[2];
    *q = ggml_view_3d(g->ctx, qg, d, h, t, qg->nb[1], qg->nb[2], 0);
    return ggml_cont_2d(g->ctx, ggml_view_3d(g->ctx, qg, d, h, t, qg->nb[1], qg->nb[2], (size_t) d * sizeof(float)), d * h,
                        t);
}

struct ggml_tensor *blk_self_attn(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il,
                                  const struct attn_opts *o) {
    struct qkv a = blk_qkv(g, l, x, il, o);
    struct ggml_tensor *gate = o->q_gated ? split_gate(g, &a.q) : o->gate;
    if (!o->norm_after_rope) {
        a.q = qk_norm(g, a.q, &l->attn_q_norm, o);
        a.k = qk_norm(g, a.k, &l->attn_k_norm, o);
    }
    a.q = rotate(g, a.q, il, o);
    a.k = rotate(g, a.k, il, o);
    if (o->norm_after_rope) {
        a.q = qk_norm(g, a.q, &l->attn_q_norm, o);
        a.k = qk_norm(g, a.k, &l->attn_k_norm, o);
    }
    if (o->temp) a.q = ggml_mul(g->ctx, a.q, o->temp);
    struct ggml_tensor *y = blk_name(blk_attend(g, a.q, a.k, a.v, il, o), "kqv_out", il);
    if (gate) y = apply_gate(g, y, gate);
    return o->no_out ? y : blk_linear(g, &l->attn_output, y);
}

// ---- an encoder's output ------------------------------------------------------------------------------------------------

// Rows of the encoder's output lie in blocks of one sequence each, so that a sequence's place among them doesn't matter.
static int64_t cross_cells(const struct graph *g) {
    return (g->cross->n_max + CELL_BLOCK - 1) / CELL_BLOCK * CELL_BLOCK + (int64_t) CELL_BLOCK * (g->cp->n_seq_max - 1);
}

// Calls fn for each row of the encoder's output with its cell; rows of a sequence follow each other.
static void each_cross(const struct graph *g, void (*fn)(void *ud, int32_t row, int32_t cell, int32_t index), void *ud) {
    int32_t cell = 0, index = 0;
    for (int32_t i = 0; i < g->cross->n_tokens; i++, cell++, index++) {
        if (i && g->cross->seq[i] != g->cross->seq[i - 1]) {
            cell = (cell + CELL_BLOCK - 1) / CELL_BLOCK * CELL_BLOCK;
            index = 0;
        }
        fn(ud, i, cell, index);
    }
}

struct cross_fill {
    const struct cross *cross;
    float *rows;
    struct cell_entry *table;
    int32_t n_embd, n_logical, *end;
};

static void cross_row(void *ud, int32_t row, int32_t cell, int32_t index) {
    const struct cross_fill *f = ud;
    (void) index;
    const size_t n = (size_t) f->n_embd;
    memcpy(f->rows + (size_t) cell * n, (const float *) f->cross->states->data + (size_t) row * n, n * sizeof(float));
}

static void fill_cross(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) ub;
    struct cross_fill f = {.cross = g->cross, .rows = dst, .n_embd = (int32_t) in->t->ne[0]};
    memset(dst, 0, ggml_nbytes(in->t));
    each_cross(g, cross_row, &f);
}

struct ggml_tensor *in_cross(struct graph *g) {
    return graph_input(g, GGML_TYPE_F32, g->hp->n_embd, cross_cells(g), fill_cross, 0, 0, 0)->t;
}

static void cross_entry(void *ud, int32_t row, int32_t cell, int32_t index) {
    const struct cross_fill *f = ud;
    struct cell_entry *e = &f->table[f->cross->seq[row] * f->n_logical + index / CELL_BLOCK];
    e->block = cell / CELL_BLOCK;
    if (index % CELL_BLOCK < 32)
        e->lo |= 1u << (index % CELL_BLOCK);
    else
        e->hi |= 1u << (index % CELL_BLOCK - 32);
}

static void fill_cross_table(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) ub;
    struct cross_fill f = {.cross = g->cross, .table = dst, .n_logical = in->a};
    for (int64_t i = 0; i < ggml_nelements(in->t) / 3; i++) f.table[i] = (struct cell_entry){-1, 0, 0};
    each_cross(g, cross_entry, &f);
}

// A decoder's token sees the encoder rows of its own sequence.
static void fill_cross_query(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) in;
    int32_t *q = dst;
    for (int i = 0; i < ub->n.n_tokens; i++, q += 4) {
        q[0] = ub->rows[i].seq[0];
        q[1] = q[2] = 0;
        q[3] = g->cross->n_max;
    }
}

struct ggml_tensor *blk_cross_attend(struct graph *g, struct ggml_tensor *q, struct ggml_tensor *k, struct ggml_tensor *v,
                                     float scale) {
    struct ggml_context *c = g->ctx;
    const int64_t t = q->ne[2], n_head = q->ne[1], dv = v->ne[0], n_seq = g->cp->n_seq_max;
    const int n_logical = (g->cross->n_max + CELL_BLOCK - 1) / CELL_BLOCK;
    struct ggml_tensor *query = graph_input(g, GGML_TYPE_I32, 4, g->n.n_tokens, fill_cross_query, 0, 0, 0)->t;
    struct ggml_tensor *table = graph_input(g, GGML_TYPE_I32, 3 * n_logical, n_seq, fill_cross_table, n_logical, 0, 0)->t;
    struct ggml_tensor *a = ggml_flash_attn_ext(c, ggml_permute(c, q, 0, 2, 1, 3), ggml_permute(c, k, 0, 2, 1, 3),
                                                ggml_permute(c, v, 0, 2, 1, 3), NULL, scale, 0.0f, 0.0f);
    ggml_flash_attn_ext_set_blocks(a, query, ggml_reshape_3d(c, table, 3, n_logical, n_seq));
    return ggml_reshape_2d(c, a, dv * n_head, t);
}
