// Mixtures of experts: choose, weigh, run the chosen experts, add up in order of rank.
#include "block/block.h"

#include <math.h>

static struct ggml_tensor *gate_probs(struct graph *g, struct ggml_tensor *logits, enum moe_gate gate) {
    switch (gate) {
        case GATE_SIGMOID: return ggml_sigmoid(g->ctx, logits);
        case GATE_SOFTMAX_LATE: return logits;
        case GATE_SQRT_SOFTPLUS: return ggml_sqrt(g->ctx, ggml_softplus(g->ctx, logits));
        case GATE_NONE:
        case GATE_SOFTMAX: break;
    }
    return ggml_soft_max(g->ctx, logits);
}

// Scores of experts outside the best groups become -inf. A group is worth the sum of its two best.
static struct ggml_tensor *limit_groups(struct graph *g, struct ggml_tensor *sel) {
    struct ggml_context *c = g->ctx;
    const int64_t x = sel->ne[0], t = sel->ne[1], n_group = g->hp->n_expert_groups, per = x / n_group;
    struct ggml_tensor *by_group = ggml_reshape_3d(c, sel, per, n_group, t);
    // the two best of each group
    struct ggml_tensor *best = ggml_argsort_top_k(c, by_group, per < 2 ? (int) per : 2);
    best = ggml_get_rows(c, ggml_reshape_4d(c, by_group, 1, per, n_group, t), best);  // [1, 2, G, t]
    struct ggml_tensor *worth = ggml_sum_rows(c, ggml_reshape_3d(c, best, best->ne[1], n_group, t));
    worth = ggml_reshape_2d(c, worth, n_group, t);
    struct ggml_tensor *keep = ggml_argsort_top_k(c, worth, g->hp->n_group_used);
    // a table of -inf rows, into which the kept groups' scores are written
    struct ggml_tensor *kept = ggml_get_rows(c, by_group, keep);
    struct ggml_tensor *out = ggml_fill(c, by_group, -INFINITY);
    return ggml_reshape_2d(c, ggml_set_rows(c, out, kept, keep), x, t);
}

// Weights of the chosen [1, U, T].
static struct ggml_tensor *weigh(struct graph *g, struct ggml_tensor *probs, struct ggml_tensor *ids, enum moe_gate gate,
                                 const struct moe_opts *o) {
    struct ggml_context *c = g->ctx;
    const int64_t x = probs->ne[0], t = probs->ne[1], u = ids->ne[0];
    struct ggml_tensor *w = ggml_get_rows(c, ggml_reshape_3d(c, probs, 1, x, t), ids);
    struct ggml_tensor *flat = ggml_reshape_2d(c, w, u, t);
    if (gate == GATE_SOFTMAX_LATE) flat = ggml_soft_max(c, flat);
    if (o->norm) {
        struct ggml_tensor *sum = ggml_clamp(c, ggml_sum_rows(c, flat), 6.103515625e-5f, INFINITY);  // 2^-14
        flat = ggml_div(c, flat, sum);
    }
    if (o->wscale != 0 && o->wscale != 1.0f) flat = ggml_scale(c, flat, o->wscale);
    return ggml_reshape_3d(c, flat, 1, u, t);
}

static struct ggml_tensor *run_experts(struct graph *g, const struct layer *l, struct ggml_tensor *x,
                                       struct ggml_tensor *ids, const struct moe_opts *o) {
    const struct weight *gate = o->gate_e ? o->gate_e : &l->ffn_gate_exps, *up = o->up_e ? o->up_e : &l->ffn_up_exps;
    const struct weight *down = o->down_e ? o->down_e : &l->ffn_down_exps;
    struct ggml_tensor *y;
    if (!o->up_e && l->ffn_gate_up_exps.w) {
        y = blk_act_fused(g, blk_linear_id(g, &l->ffn_gate_up_exps, x, ids), &o->act);
    } else if (gate->w) {
        struct ggml_tensor *u = blk_linear_id(g, up, x, ids);
        y = blk_act(g, blk_linear_id(g, gate, x, ids), u, &o->act);
    } else {
        y = blk_act(g, blk_linear_id(g, up, x, ids), NULL, &o->act);
    }
    return blk_linear_id(g, down, y, ids);
}

struct ggml_tensor *blk_moe(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il,
                            const struct moe_opts *o) {
    struct ggml_context *c = g->ctx;
    const struct hparams *hp = g->hp;
    const int64_t t = x->ne[1];
    const int n_used = o->n_used ? o->n_used : hp->n_expert_used[il];
    enum moe_gate gate = o->gate ? o->gate : (enum moe_gate) hp->expert_gating;
    struct ggml_tensor *ids = o->ids, *w = o->w, *probs = NULL;
    if (!ids || !w) {
        struct ggml_tensor *logits = o->logits ? o->logits : blk_linear(g, &l->ffn_gate_inp, o->router_x ? o->router_x : x);
        probs = gate_probs(g, blk_name(logits, "ffn_moe_logits", il), gate);
        if (!ids) {
            struct ggml_tensor *sel = l->exp_probs_b.b   ? ggml_add(c, probs, l->exp_probs_b.b)
                                      : l->exp_probs_b.w ? ggml_add(c, probs, l->exp_probs_b.w)
                                                         : probs;
            if (hp->n_expert_groups > 1) sel = limit_groups(g, sel);
            ids = ggml_argsort_top_k(c, sel, n_used);
            blk_name(ids, "ffn_moe_topk", il);
        }
        if (!w) w = weigh(g, probs, ids, gate, o);
    }
    if (o->out_ids) *o->out_ids = ids;
    if (o->out_probs) *o->out_probs = probs;
    ggml_build_forward_expand(g->gf, w);  // before the experts, which a device may then compute in one pass with their sum
    struct ggml_tensor *in = ggml_reshape_3d(c, x, x->ne[0], 1, t);
    if (o->scale_input) in = ggml_mul(c, ggml_repeat_4d(c, in, x->ne[0], n_used, t, 1), w);
    struct ggml_tensor *y = run_experts(g, l, in, ids, o);
    if (!o->scale_input) y = ggml_mul(c, y, w);
    struct ggml_tensor *sum = NULL;
    for (int e = 0; e < n_used; e++) {
        struct ggml_tensor *v = ggml_view_2d(c, y, y->ne[0], t, y->nb[2], (size_t) e * y->nb[1]);
        sum = sum ? ggml_add(c, sum, v) : v;
    }
    return n_used == 1 ? ggml_cont(c, sum) : sum;
}

struct ggml_tensor *blk_shared_expert(struct graph *g, const struct layer *l, struct ggml_tensor *x,
                                      const struct act_opts *o) {
    struct ggml_tensor *y = blk_ffn(g, &l->ffn_gate_shexp, &l->ffn_up_shexp, &l->ffn_down_shexp, x, o);
    if (!l->ffn_gate_inp_shexp.w) return y;
    struct ggml_tensor *w = l->ffn_gate_inp_shexp.w;
    struct ggml_tensor *s = ggml_sigmoid(g->ctx, ggml_mul_mat(g->ctx, ggml_reshape_2d(g->ctx, w, ggml_nelements(w), 1), x));
    return ggml_mul(g->ctx, y, s);
}
