// Compressed keys (DeepSeek-V4): every c positions become one key, a sum of the members' vectors weighed per channel by a softmax over the
// members (or over those of the block before too). The members still to come lie in the convolution states; a key is made by the token
// that ends its block and stored in that token's cell. Cells are handed out in blocks whose places are those of the positions, so the
// keys lie at a fixed distance in the cache, and a view with that stride shows them alone.
//
// Limits: the cache has a row per position, not per block; and attention goes over window and compressed keys in the order of their cells,
// so the last bits of a result can depend on where a sequence's blocks lie (after seq_cp, for one).
#include "block/attn_int.h"

#include <math.h>

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
    struct ggml_tensor *args[3] = {sx, o->ape->w, in_pos(g)};
    struct ggml_tensor *y =
        ggml_custom_4d(c, GGML_TYPE_F32, d, x->ne[1], 1, 1, args, 3, compress, GGML_N_TASKS_MAX, (void *) (intptr_t) o->n);
    y = ggml_reshape_3d(c, blk_norm(g, y, o->norm, NORM_RMS), d, 1, x->ne[1]);
    struct rope_opts r = *o->rope;
    r.pos = graph_input(g, GGML_TYPE_I32, g->n.n_tokens, 0, fill_start, o->n, 0, 0)->t;
    return ggml_reshape_2d(c, blk_rope_ext(g, y, &r), d, x->ne[1]);
}

static int64_t distance(int n) { return n < CELL_BLOCK ? n : CELL_BLOCK; }

struct ggml_tensor *blk_block_ends(struct graph *g, struct ggml_tensor *rows, int n) {
    const int64_t k = distance(n);
    return ggml_view_2d(g->ctx, rows, rows->ne[0], rows->ne[1] / k, rows->nb[1] * (size_t) k,
                        rows->nb[1] * (size_t) (k - 1));
}

// Position of each block's last member, -1 where the query doesn't see all of the block; or the mask of these.
struct ends {
    int32_t *pos;
    float *mask;
    int32_t n;
};

static void one_end(void *ud, int32_t cell, int32_t index) {
    const struct ends *e = ud;
    if ((index + 1) % e->n) return;
    const int64_t row = cell / distance(e->n);
    if (e->pos)
        e->pos[row] = index;
    else
        e->mask[row] = 0.0f;
}

static void fill_end_pos(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    const int64_t n = in->t->ne[0];
    for (int i = 0; i < ub->n.n_tokens; i++) {
        struct ends e = {.pos = (int32_t *) dst + n * i, .n = in->b};
        for (int64_t k = 0; k < n; k++) e.pos[k] = -1;
        each_seen(in->a, g, ub, i, one_end, &e);
    }
}

static void fill_end_mask(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    const int64_t n = in->t->ne[0];
    for (int i = 0; i < ub->n.n_tokens; i++) {
        struct ends e = {.mask = (float *) dst + n * i, .n = in->b};
        for (int64_t k = 0; k < n; k++) e.mask[k] = -INFINITY;
        each_seen(in->a, g, ub, i, one_end, &e);
    }
}

struct ggml_tensor *in_block_ends(struct graph *g, int64_t n_row, int n) {
    return graph_input(g, GGML_TYPE_I32, n_row, g->n.n_tokens, fill_end_pos, VIEW_FULL, n, 0)->t;
}

struct ggml_tensor *in_block_mask(struct graph *g, int64_t n_row, int n) {
    return graph_input(g, GGML_TYPE_F32, n_row, g->n.n_tokens, fill_end_mask, VIEW_FULL, n, 0)->t;
}
