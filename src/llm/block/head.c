// The end of the residual stream: final norm, embeddings, logits, pooling.
#include <string.h>

#include "block/block.h"

// Not in place: a gradient needs what would be overwritten.
static struct ggml_tensor *finish_train(struct graph *g, struct ggml_tensor *y, const struct weight *w,
                                        const struct head_opts *o) {
    struct ggml_context *c = g->ctx;
    if (w && w->s) y = ggml_mul(c, y, w->s);
    if (w && w->b) y = ggml_add(c, y, w->b);
    if (o->scale != 0 && o->scale != 1.0f) y = ggml_scale(c, y, o->scale);
    if (o->softcap != 0) y = ggml_scale(c, ggml_tanh(c, ggml_scale(c, y, 1.0f / o->softcap)), o->softcap);
    return y;
}

// The last steps happen in place, so that the product itself can be written straight into the output buffer.
static struct ggml_tensor *finish_logits(struct graph *g, struct ggml_tensor *y, const struct weight *w,
                                         const struct head_opts *o) {
    struct ggml_context *c = g->ctx;
    if (g->train) return finish_train(g, y, w, o);
    if (w && w->s) y = ggml_mul_inplace(c, y, w->s);
    if (w && w->b) y = ggml_add_inplace(c, y, w->b);
    if (o->scale != 0 && o->scale != 1.0f) y = ggml_scale_inplace(c, y, o->scale);
    if (o->softcap != 0)
        y = ggml_scale_inplace(c, ggml_tanh_inplace(c, ggml_scale_inplace(c, y, 1.0f / o->softcap)), o->softcap);
    return y;
}

void blk_logits(struct graph *g, struct ggml_tensor *x, const struct head_opts *o) {
    // where the embedding is the output too, a bias of the output's own may still be there
    const struct weight *w = o->output_w ? o->output_w : !o->tied ? &g->w->output : NULL;
    struct ggml_tensor *y = blk_matmul(g, w && w->w ? w->w : g->w->token_embd.w, x);
    g->logits = blk_name(finish_logits(g, y, w, o), "result_output", -1);
}

void blk_head(struct graph *g, struct ggml_tensor *x, const struct head_opts *o) {
    if (g->n_rows == g->n.n_tokens && g->n.n_outputs < g->n.n_tokens && g->n.n_outputs > 0) {
        x = ggml_get_rows(g->ctx, x, in_out_rows(g));
        g->n_rows = g->n.n_outputs;
    }
    if (!o->no_norm) x = blk_norm(g, x, o->norm_w ? o->norm_w : &g->w->output_norm, o->norm);
    g->embd = blk_name(x, "result_norm", -1);
    if (g->n.want_logits) blk_logits(g, x, o);
}

// ---- pooling ------------------------------------------------------------------------------------------------------

// Which of the pooled sequences each row belongs to, in order of position: [2, T] (sequence, row).
static void fill_pool(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) in;
    (void) g;
    int32_t *out = dst;
    for (int i = 0; i < ub->n.n_tokens; i++) {
        int s = 0;
        while (s < ub->n.n_seqs - 1 && ub->seq[s] != ub->rows[i].seq[0]) s++;
        // rows of a sequence come in order of position; the order of summation is theirs
        out[2 * i] = s;
        out[2 * i + 1] = i;
    }
}

// What the rows of earlier micro-batches add up to.
static void fill_sum(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) g;
    const size_t n = (size_t) in->t->ne[0] * sizeof(float);
    memset(dst, 0, n * (size_t) ub->n.n_seqs);
    for (int s = 0; s < ub->n.n_seqs; s++)
        if (ub->n_summed[ub->seq[s]])
            memcpy((char *) dst + (size_t) s * n, ub->sum + (size_t) ub->seq[s] * (size_t) ub->n_sum, n);
}

// Mean of each sequence's rows, added in order of position: no product with a matrix of ones, whose sums would depend on where in
// the batch the sequence stands. With a third source, the sum alone, begun with that: more may follow in the next micro-batch.
static void pool_mean(struct ggml_tensor *dst, int ith, int nth, void *ud) {
    (void) ud;
    const struct ggml_tensor *x = dst->src[0], *map = dst->src[1];
    const int32_t *m = map->data;
    for (int64_t s = ith; s < dst->ne[1]; s += nth) {
        float *out = (float *) (void *) ((char *) dst->data + (size_t) s * dst->nb[1]);
        int64_t n = 0;
        const struct ggml_tensor *sum = dst->src[2];
        for (int64_t e = 0; e < dst->ne[0]; e++) out[e] = sum ? ((const float *) sum->data)[s * dst->ne[0] + e] : 0;
        for (int64_t i = 0; i < map->ne[1]; i++) {
            if (m[2 * i] != s) continue;
            const float *row = (const float *) (const void *) ((const char *) x->data + (size_t) m[2 * i + 1] * x->nb[1]);
            for (int64_t e = 0; e < dst->ne[0]; e++) out[e] += row[e];
            n++;
        }
        for (int64_t e = 0; n && !sum && e < dst->ne[0]; e++) out[e] /= (float) n;
    }
}

struct ggml_tensor *blk_pool(struct graph *g, struct ggml_tensor *x, enum llama_pooling_type kind) {
    switch (kind) {
        case LLAMA_POOLING_TYPE_MEAN: {
            struct ggml_tensor *args[3] = {x, graph_input(g, GGML_TYPE_I32, 2, g->n.n_tokens, fill_pool, 0, 0, 0)->t};
            if (g->mem) args[2] = graph_input(g, GGML_TYPE_F32, x->ne[0], g->n.n_seqs, fill_sum, 0, 0, 0)->t;
            return ggml_custom_4d(g->ctx, GGML_TYPE_F32, x->ne[0], g->n.n_seqs, 1, 1, args, g->mem ? 3 : 2, pool_mean,
                                  GGML_N_TASKS_MAX, NULL);
        }
        case LLAMA_POOLING_TYPE_LAST: return ggml_get_rows(g->ctx, x, in_seq_last(g));
        default: return ggml_get_rows(g->ctx, x, in_seq_first(g));
    }
}
