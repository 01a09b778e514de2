// Feed-forward networks and their activations.
#include "block/block.h"

#include <math.h>

// kimi-k3: beta * tanh(g / beta) * sigmoid(g), times a soft-limited up.
static struct ggml_tensor *situ(struct graph *g, struct ggml_tensor *gate, struct ggml_tensor *up) {
    struct ggml_context *c = g->ctx;
    const float bt = g->hp->situ_beta, lt = g->hp->situ_linear_beta;
    struct ggml_tensor *y =
        ggml_mul(c, ggml_scale(c, ggml_tanh(c, ggml_scale(c, gate, 1.0f / bt)), bt), ggml_sigmoid(c, gate));
    if (lt > 0) up = ggml_scale(c, ggml_tanh(c, ggml_scale(c, up, 1.0f / lt)), lt);
    return ggml_mul(c, y, up);
}

static struct ggml_tensor *unary(struct graph *g, struct ggml_tensor *x, enum act act) {
    switch (act) {
        case ACT_SILU: return ggml_silu(g->ctx, x);
        case ACT_GELU: return ggml_gelu(g->ctx, x);
        case ACT_GELU_ERF: return ggml_gelu_erf(g->ctx, x);
        case ACT_RELU: return ggml_relu(g->ctx, x);
        case ACT_RELU2: return ggml_sqr(g->ctx, ggml_relu(g->ctx, x));
        case ACT_SWIGLU_OAI:
        case ACT_SITU:
        case ACT_NONE: break;
    }
    return x;
}

struct ggml_tensor *blk_act(struct graph *g, struct ggml_tensor *gate, struct ggml_tensor *up, const struct act_opts *o) {
    struct ggml_context *c = g->ctx;
    if (!up) return unary(g, gate, o->act);
    if (o->act == ACT_SILU && o->clamp > 1e-6f) {
        if (!o->clamp_late) {
            gate = ggml_clamp(c, gate, -INFINITY, o->clamp);
            return ggml_swiglu_split(c, gate, ggml_clamp(c, up, -o->clamp, o->clamp));
        }
        gate = ggml_clamp(c, ggml_silu(c, gate), -INFINITY, o->clamp);
        return ggml_mul(c, gate, ggml_clamp(c, up, -o->clamp, o->clamp));
    }
    switch (o->act) {
        case ACT_SILU: return ggml_swiglu_split(c, gate, up);
        case ACT_GELU: return ggml_geglu_split(c, gate, up);
        case ACT_GELU_ERF: return ggml_geglu_erf_split(c, gate, up);
        case ACT_RELU: return ggml_reglu_split(c, gate, up);
        case ACT_SWIGLU_OAI: return ggml_swiglu_oai(c, gate, up, 1.702f, 7.0f);
        case ACT_SITU: return situ(g, gate, up);
        case ACT_RELU2:
        case ACT_NONE: break;
    }
    return ggml_mul(c, unary(g, gate, o->act), up);
}

struct ggml_tensor *blk_act_fused(struct graph *g, struct ggml_tensor *gate_up, const struct act_opts *o) {
    struct ggml_context *c = g->ctx;
    if (o->clamp <= 1e-6f) {
        switch (o->act) {
            case ACT_SILU: return ggml_swiglu(c, gate_up);
            case ACT_GELU: return ggml_geglu(c, gate_up);
            case ACT_GELU_ERF: return ggml_geglu_erf(c, gate_up);
            case ACT_RELU: return ggml_reglu(c, gate_up);
            default: break;
        }
    }
    const int64_t n = gate_up->ne[0] / 2;
    struct ggml_tensor *half[2];
    for (int i = 0; i < 2; i++)
        half[i] = ggml_view_4d(c, gate_up, n, gate_up->ne[1], gate_up->ne[2], gate_up->ne[3], gate_up->nb[1], gate_up->nb[2],
                               gate_up->nb[3], (size_t) i * (size_t) n * sizeof(float));
    return blk_act(g, ggml_cont(c, half[0]), ggml_cont(c, half[1]), o);
}

// (w x + b) * s: in networks the scale covers the bias, unlike everywhere else (blk_linear).
static struct ggml_tensor *scaled_last(struct graph *g, const struct weight *w, struct ggml_tensor *x) {
    if (!w->s || !w->b) return blk_linear(g, w, x);
    return ggml_mul(g->ctx, ggml_add(g->ctx, blk_matmul(g, w->w, x), w->b), w->s);
}

struct ggml_tensor *blk_ffn(struct graph *g, const struct weight *gate, const struct weight *up, const struct weight *down,
                            struct ggml_tensor *x, const struct act_opts *o) {
    struct ggml_tensor *y;
    if (gate && gate->w) {
        struct ggml_tensor *u = scaled_last(g, up, x);
        y = blk_act(g, scaled_last(g, gate, x), u, o);
    } else {
        y = scaled_last(g, up, x);
        y = down->w && y->ne[0] == 2 * down->w->ne[0] ? blk_act_fused(g, y, o) : blk_act(g, y, NULL, o);
    }
    return scaled_last(g, down, y);
}

struct ggml_tensor *blk_ffn_layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, enum act act) {
    return blk_ffn(g, &l->ffn_gate, &l->ffn_up, &l->ffn_down, x, &(struct act_opts){.act = act});
}
