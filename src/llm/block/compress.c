// Compressed keys (DeepSeek-V4): every c positions become one key, a sum of the members' vectors weighed per channel by a softmax over the
// members (or over those of the block before too). The members still to come lie in the convolution states; a key is made by the token
// that ends its block and stored in that token's cell. Cells are handed out in blocks whose places are those of the positions, so the
// keys lie at a fixed distance in the cache, and a view with that stride shows them alone.
//
// Limits: the cache has a row per position, not per block; and attention goes over window and compressed keys in the order of their cells,
// so the last bits of a result can depend on where a sequence's blocks lie (after seq_cp, for one).
#include "block/attn_int.h"

#include <math.h>
#include <string.h>

#define N_MEMBERS_MAX 256

// dst [d, T]. src: the members' values and scores by time [before + t, 2 w, S], ape [w, c], positions [T]. ud: c. With w = 2 d, members of the
// block before count with their first d channels, those of the block with their last d.
static void compress(struct ggml_tensor *dst, int ith, int nth, void *ud) {
    const struct ggml_tensor *sx = dst->src[0], *ape = dst->src[1];
    const int32_t *pos = dst->src[2]->data, c = (int32_t) (intptr_t) ud;
    const int64_t d = dst->ne[0], w = ape->ne[0], t_seq = dst->ne[1] / sx->ne[2], n_before = sx->ne[0] - t_seq;
    const int n_part = (int) (w / d);
    for (int64_t i = 0; i < dst->ne[1]; i++) {
        float *out = (float *) (void *) ((char *) dst->data + (size_t) i * dst->nb[1]);
        const int64_t now = n_before + i % t_seq;
        const char *seq = (const char *) sx->data + (size_t) (i / t_seq) * sx->nb[2];
        const bool ends = (pos[i] + 1) % c == 0;
        const int from = pos[i] + 1 == c ? n_part - 1 : 0;  // the first block has none before it
        for (int64_t e = d * ith / nth; e < d * (ith + 1) / nth; e++) {
            float score[N_MEMBERS_MAX], max = -INFINITY, sum = 0, y = 0;
            out[e] = 0;
            for (int m = from * c; ends && m < n_part * c; m++) {
                const int64_t ch = e + m / c * d, at = now - (int64_t) n_part * c + 1 + m;
                score[m] = ((const float *) (const void *) (seq + (size_t) (w + ch) * sx->nb[1]))[at] +
                           ((const float *) (const void *) ((const char *) ape->data + (size_t) (m % c) * ape->nb[1]))[ch];
                if (score[m] > max) max = score[m];
            }
            for (int m = from * c; ends && m < n_part * c; m++) {
                const float p = expf(score[m] - max);
                sum += p;
                y += p * ((const float *) (const void *) (seq + (size_t) (e + m / c * d) *
                                                                    sx->nb[1]))[now - (int64_t) n_part * c + 1 + m];
            }
            if (ends) out[e] = y / sum;
        }
    }
}

// First position of the block that the token is in.
static void fill_start(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) g;
    for (int i = 0; i < ub->n.n_tokens; i++) ((int32_t *) dst)[i] = ub->pos[i] / in->a * in->a;
}

struct ggml_tensor *blk_compress(struct graph *g, struct ggml_tensor *x, int il, const struct compress_opts *o) {
    struct ggml_context *c = g->ctx;
    const int64_t w = o->kv->w->ne[1], d = ggml_nelements(o->norm->w);
    struct ggml_tensor *rows = ggml_concat(c, blk_linear(g, o->kv, x), blk_linear(g, o->gate, x), 0);
    struct ggml_tensor *sx = blk_conv_input(g, blk_by_seq(g, rows), w / d * o->n - 1, il, o->state_off);
    struct ggml_tensor *args[3] = {sx, blk_f32(g, o->ape->w), in_pos(g)};
    struct ggml_tensor *y =
        ggml_custom_4d(c, GGML_TYPE_F32, d, x->ne[1], 1, 1, args, 3, compress, GGML_N_TASKS_MAX, (void *) (intptr_t) o->n);
    y = ggml_reshape_3d(c, blk_norm(g, y, o->norm, NORM_RMS), d, 1, x->ne[1]);
    struct rope_opts r = *o->rope;
    r.pos = graph_input(g, GGML_TYPE_I32, g->n.n_tokens, 0, fill_start, o->n, 0, 0)->t;
    return ggml_reshape_2d(c, blk_rope_ext(g, y, &r), d, x->ne[1]);
}

// ---- the keys of a sequence, side by side ---------------------------------------------------------------------------

// The cells of keys lie where their tokens' blocks happen to lie. For attention they are gathered, so that a sequence's keys are in the order
// of positions and begin at a group of blocks of their own: no bit then depends on where cells were handed out.
static int32_t rows_per_seq(const struct graph *g, int n) {
    const int32_t group = CELL_STRIPE * CELL_BLOCK, span = memory_kv(g->mem, false)->cells.n_logical * CELL_BLOCK / n;
    return (span + group - 1) / group * group;
}

// The last position of the block of a sequence's r-th row.
static int32_t end_of(const struct graph *g, int32_t seq, int32_t r, int n) {
    return (view_cells(g, VIEW_FULL)->base[seq] * CELL_BLOCK / n + r + 1) * n - 1;
}

// Cell of each row; 0 where there is none.
static void fill_end_cells(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    const struct cells *c = view_cells(g, VIEW_FULL);
    const int32_t n = in->b, per = rows_per_seq(g, n);
    int32_t *out = dst;
    memset(dst, 0, ggml_nbytes(in->t));
    for (int32_t s = 0; s < ub->n.n_seqs; s++, out += per)
        for (int32_t r = 0; r < per; r++) {
            const int32_t seq = ub->seq[s], at = end_of(g, seq, r, n);
            int32_t cell;
            if (at > c->idx_max[seq]) break;
            if (cells_next(c, seq, at, &cell, NULL) == at) out[r] = cell;
        }
}

struct ggml_tensor *blk_block_ends(struct graph *g, struct ggml_tensor *rows, int n) {
    const int64_t n_row = (int64_t) g->n.n_seqs * rows_per_seq(g, n);
    struct ggml_tensor *idx = graph_input(g, GGML_TYPE_I32, n_row, 0, fill_end_cells, VIEW_FULL, n, 0)->t;
    struct ggml_tensor *x = ggml_get_rows(g->ctx, rows, idx);
    return rows->type == x->type ? x : ggml_cast(g->ctx, x, rows->type);
}

// Rows lie sequence by sequence: those of token i begin here.
static int32_t first_row(const struct ubatch *ub, int i, int32_t per) { return i / ub->n.n_seq_tokens * per; }

// How many of the blocks of token i's sequence it sees whole.
static int32_t n_seen(const struct graph *g, const struct ubatch *ub, int i, int n) {
    const int32_t base = view_cells(g, VIEW_FULL)->base[ub->rows[i].seq[0]] * CELL_BLOCK, per = rows_per_seq(g, n);
    const int32_t seen = row_sees(g, ub, i, VIEW_FULL) / n - base / n;
    return seen < per ? seen : per;
}

static void fill_end_pos(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    const int32_t n = in->b, per = rows_per_seq(g, n);
    int32_t *out = dst;
    for (int i = 0; i < ub->n.n_tokens; i++, out += in->t->ne[0]) {
        for (int64_t k = 0; k < in->t->ne[0]; k++) out[k] = -1;
        const int32_t seq = ub->rows[i].seq[0], seen = n_seen(g, ub, i, n);
        for (int32_t r = 0; r < seen; r++) {
            const int32_t at = end_of(g, seq, r, n);
            if (cells_next(view_cells(g, VIEW_FULL), seq, at, NULL, NULL) == at) out[first_row(ub, i, per) + r] = at;
        }
    }
}

static void fill_end_mask(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    const int64_t n = ggml_nelements(in->t);
    fill_end_pos(in, g, ub, dst);
    for (int64_t k = 0; k < n; k++) ((float *) dst)[k] = ((int32_t *) dst)[k] < 0 ? -INFINITY : 0.0f;
}

struct ggml_tensor *in_block_ends(struct graph *g, int n) {
    return graph_input(g, GGML_TYPE_I32, (int64_t) g->n.n_seqs * rows_per_seq(g, n), g->n.n_tokens, fill_end_pos, VIEW_FULL,
                       n, 0)
        ->t;
}

struct ggml_tensor *in_block_mask(struct graph *g, int n) {
    return graph_input(g, GGML_TYPE_F32, (int64_t) g->n.n_seqs * rows_per_seq(g, n), g->n.n_tokens, fill_end_mask, VIEW_FULL,
                       n, 0)
        ->t;
}

// ---- attention over cells and these keys ------------------------------------------------------------------------------

// a: the view; b: blocks of keys per sequence; c: blocks of cells in front of them. The keys come first in the table.
static void fill_more_table(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    const struct cells *c = view_cells(g, in->a);
    struct cell_entry *t = dst;
    for (int32_t s = 0; s < ub->n.n_seqs; s++) {
        for (int32_t i = 0; i < in->b; i++) *t++ = (struct cell_entry){in->c + s * in->b + i, ~0u, ~0u};
        memcpy(t, c->table + (size_t) ub->seq[s] * (size_t) c->n_logical, (size_t) c->n_logical * sizeof *t);
        t += c->n_logical;
    }
}

static void fill_more_query(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    const struct cells *c = view_cells(g, in->a);
    int32_t *q = dst;
    for (int i = 0; i < ub->n.n_tokens; i++, q += 4) {
        q[0] = i / ub->n.n_seq_tokens;
        q[1] = q[2] = 0;
        q[3] = (in->b + c->n_logical) * CELL_BLOCK;
    }
}

struct more_inputs in_more(struct graph *g, enum attn_view view, const struct kv *kv, int64_t n_more) {
    const int blocks = (int) (n_more / g->n.n_seqs / CELL_BLOCK), first = kv->n_cell / CELL_BLOCK;
    const int64_t n = blocks + kv->cells.n_logical;
    struct ggml_tensor *table =
        graph_input(g, GGML_TYPE_I32, 3 * n, g->n.n_seqs, fill_more_table, (int) view, blocks, first)->t;
    return (struct more_inputs){
        graph_input(g, GGML_TYPE_I32, 4, g->n.n_tokens, fill_more_query, (int) view, blocks, 0)->t,
        ggml_reshape_3d(g->ctx, table, 3, n, g->n.n_seqs),
    };
}
