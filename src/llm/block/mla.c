// Multi-head latent attention (DeepSeek-V2 and later): keys and values of all heads come from one low-rank vector per token. In the
// absorbed form the cache holds only that vector and the shared rotary part; the head's matrices act on queries and results instead.
#include "block/block.h"

#include <math.h>

// x [E, T] -> q heads [kd, H, T].
static struct ggml_tensor *queries(struct graph *g, const struct layer *l, struct ggml_tensor *x, int64_t kd,
                                   const struct mla_opts *o) {
    struct ggml_tensor *q;
    if (l->attn_q_a.w) {
        struct ggml_tensor *low = blk_norm(g, blk_linear(g, &l->attn_q_a, x), &l->attn_q_a_norm, NORM_RMS);
        if (o->q_low) *o->q_low = low;
        q = blk_linear(g, &l->attn_q_b, low);
    } else {
        q = blk_linear(g, &l->attn_q, x);
    }
    return ggml_reshape_3d(g->ctx, q, kd, q->ne[0] / kd, x->ne[1]);
}

static struct ggml_tensor *part(struct graph *g, struct ggml_tensor *x, int64_t n, int64_t from) {
    return ggml_view_3d(g->ctx, x, n, x->ne[1], x->ne[2], x->nb[1], x->nb[2], (size_t) from * sizeof(float));
}

static struct ggml_tensor *turn(struct graph *g, struct ggml_tensor *x, int il, const struct mla_opts *o) {
    if (o->no_rope || !g->hp->rope_layers[il] || g->hp->rope_mode == LLAMA_ROPE_TYPE_NONE) return x;
    return o->rope ? blk_rope_ext(g, x, o->rope) : blk_rope(g, x, il);
}

static struct ggml_tensor *gated(struct graph *g, struct ggml_tensor *y, const struct weight *w, struct ggml_tensor *x,
                                 int64_t n_head) {
    if (!w || !w->w) return y;
    struct ggml_tensor *s = ggml_sigmoid(g->ctx, blk_linear(g, w, x));
    if (s->ne[0] == y->ne[0]) return ggml_mul(g->ctx, y, s);
    const int64_t d = y->ne[0] / n_head, t = y->ne[1];
    y = ggml_mul(g->ctx, ggml_reshape_3d(g->ctx, y, d, n_head, t), ggml_reshape_3d(g->ctx, s, 1, n_head, t));
    return ggml_reshape_2d(g->ctx, y, d * n_head, t);
}

// Scores grow by the square of YaRN's magnitude (by the same formula where the scaling isn't YaRN), part of which the rotation leaves out.
// The multiplier is a tenth of the one that counts, as files hold it.
static float yarn_scale(const struct graph *g) {
    const float fs = g->cp->rope_freq_scale, lf = fs < 1.0f ? logf(1.0f / fs) : 0.0f;
    const float mu = g->cp->rope_mag * (1.0f + 0.1f * lf) * (1.0f + g->hp->rope_yarn_log_mul * lf);
    return mu * mu;
}

struct ggml_tensor *blk_mla(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il,
                            const struct mla_opts *o) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t t = x->ne[1], h = hp->n_head[il], r = o->swa ? hp->n_lora_kv_swa : hp->n_lora_kv;
    const int64_t n_rot = l->attn_kv_a_mqa.w->ne[1] - r;
    const int64_t kd = (l->attn_q_a.w ? l->attn_q_b.w->ne[1] : l->attn_q.w->ne[1]) / h, nope = kd - n_rot;
    struct ggml_tensor *q = queries(g, l, x, kd, o);
    struct ggml_tensor *kva = blk_linear(g, &l->attn_kv_a_mqa, x);
    struct ggml_tensor *lat = blk_norm(g, ggml_view_2d(c, kva, r, t, kva->nb[1], 0), &l->attn_kv_a_norm, NORM_RMS);
    struct ggml_tensor *q_pe = NULL, *k_pe = NULL;
    if (n_rot) {
        q_pe = turn(g, part(g, q, n_rot, nope), il, o);
        k_pe = ggml_view_3d(c, kva, n_rot, 1, t, kva->nb[1], kva->nb[1], (size_t) r * sizeof(float));
        if (o->k_norm) k_pe = blk_norm(g, k_pe, o->k_norm, NORM_RMS);
        k_pe = turn(g, k_pe, il, o);
        // before the rest of q grows by the head's matrix: q is gone by then
        ggml_build_forward_expand(g->gf, q_pe);
    }
    const float scale = o->scale != 0 ? o->scale : (o->yarn_scale ? yarn_scale(g) : 1.0f) / sqrtf((float) kd);
    struct attn_opts a = {.scale = scale, .keep = o->keep, .sinks = o->sinks};
    struct ggml_tensor *y;
    int64_t vd;
    if (l->attn_k_b.w) {
        // q_nope through the head's key matrix: [nope, r, H] x [nope, T, H] -> [r, T, H]
        struct ggml_tensor *qn = ggml_permute(c, part(g, q, nope, 0), 0, 2, 1, 3);
        qn = ggml_permute(c, ggml_mul_mat(c, l->attn_k_b.w, qn), 0, 2, 1, 3);
        struct ggml_tensor *qq = n_rot ? ggml_concat(c, qn, q_pe, 0) : ggml_cont(c, qn);
        if (o->temp) qq = ggml_mul(c, qq, o->temp);
        struct ggml_tensor *k = ggml_reshape_3d(c, lat, r, 1, t);
        if (n_rot) k = ggml_concat(c, k, k_pe, 0);
        a.v_of_k = (int) r;
        y = blk_attend(g, qq, k, k, il, &a);
        vd = l->attn_v_b.w->ne[1];
        struct ggml_tensor *yh = ggml_permute(c, ggml_reshape_3d(c, y, r, h, t), 0, 2, 1, 3);  // [r, T, H]
        y = ggml_mul_mat(c, l->attn_v_b.w, yh);                                                // [vd, T, H]
        y = ggml_cont_2d(c, ggml_permute(c, y, 0, 2, 1, 3), vd * h, t);
    } else {
        vd = l->attn_kv_b.w->ne[1] / h - nope;
        struct ggml_tensor *kv = ggml_reshape_3d(c, blk_linear(g, &l->attn_kv_b, lat), nope + vd, h, t);
        struct ggml_tensor *k = part(g, kv, nope, 0), *qq = q;
        if (n_rot) {
            k_pe = ggml_repeat_4d(c, k_pe, n_rot, h, t, 1);
            k = nope ? ggml_concat(c, k, k_pe, 0) : k_pe;
            qq = nope ? ggml_concat(c, part(g, q, nope, 0), q_pe, 0) : q_pe;
        }
        if (o->temp) qq = ggml_mul(c, qq, o->temp);
        y = blk_attend(g, qq, k, ggml_cont(c, part(g, kv, vd, nope)), il, &a);
    }
    y = gated(g, y, o->gate, x, h);
    return blk_linear(g, &l->attn_output, y);
}
