// GLU: gated units, act(gate) * value, of glu.def. The two are the halves of one tensor's rows (gate first; last if swapped) or
// two tensors of one shape. On F32, F16 and BF16 of any layout.
// op_params: [0] the unit, [1] swapped, [2] alpha, [3] limit.
#include "ops/backward.h"
#include "ops/row.h"
#include "ops/slope.h"
#include "kern/binary.h"

#include <math.h>
#include <stddef.h>

static const size_t place[GGML_GLU_OP_COUNT] = {
#define GLU(ID, name) [GGML_GLU_OP_##ID] = offsetof(struct kern_binary, name),
#include "ops/glu.def"
#undef GLU
};

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0];
    const int32_t unit = tensor_param_i32(t, 0);
    if (unit < 0 || unit >= GGML_GLU_OP_COUNT) return err_set(ERR_INVALID, "GLU: there is no unit %d", (int) unit);
    TRY(check_float(t, 0));
    if (t->src[1]) {
        TRY(check_float(t, 1));
        TRY(check_same_shape(t, 0, 1));
        return shape_like(a, a->type, shape);
    }
    if (a->ne[0] % 2 != 0)
        return err_set(ERR_INVALID, "%s: rows of %lld elements have no two halves", op_what(t), (long long) a->ne[0]);
    TRY(shape_like(a, a->type, shape));
    shape->ne[0] /= 2;
    return ERR_OK;
}

struct call {
    kern_glu_fn fn;
    float p[2];
};

static void apply(int64_t n, float *y, const float *const *x, const void *ctx) {
    const struct call *c = ctx;
    c->fn(n, y, x[0], x[1], c->p);
}

static void run(struct task *k, struct ggml_tensor *t) {
    struct call c;
    memcpy(&c.fn, (const char *) kern_binary() + place[tensor_param_i32(t, 0)], sizeof c.fn);
    memcpy(c.p, &t->op_params[2], sizeof c.p);
    if (t->src[1]) {
        row_map(k, t, (const struct ggml_tensor *const *) t->src, 2, apply, &c);
        return;
    }
    struct ggml_tensor first = *t->src[0], last = first;
    first.ne[0] = last.ne[0] = t->ne[0];
    last.data = (char *) last.data + (size_t) t->ne[0] * last.nb[0];
    const bool swapped = tensor_param_i32(t, 1) != 0;
    const struct ggml_tensor *const src[2] = {swapped ? &last : &first, swapped ? &first : &last};
    row_map(k, t, src, 2, apply, &c);
}

static struct ggml_tensor *build(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, enum ggml_glu_op op,
                                 bool swapped, float alpha, float limit) {
    int32_t params[4] = {(int32_t) op, swapped};
    memcpy(params + 2, (const float[2]){alpha, limit}, 8);
    return op_build(ctx, GGML_OP_GLU, false, params, 4, (struct ggml_tensor *[]){a, b}, 2);
}

// A missing second tensor would silently mean the other form.
static struct ggml_tensor *split(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, enum ggml_glu_op op,
                                 float alpha, float limit) {
    if (!b) {
        (void) err_set(ERR_INVALID, "%s: the second tensor is missing (NULL)", ggml_glu_op_name(op));
        return tensor_error();
    }
    return build(ctx, a, b, op, false, alpha, limit);
}

struct ggml_tensor *ggml_glu(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_glu_op op, bool swapped) {
    return build(ctx, a, NULL, op, swapped, 0.0f, 0.0f);
}
struct ggml_tensor *ggml_glu_split(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                   enum ggml_glu_op op) {
    return split(ctx, a, b, op, 0.0f, 0.0f);
}
struct ggml_tensor *ggml_swiglu_oai(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, float alpha,
                                    float limit) {
    return split(ctx, a, b, GGML_GLU_OP_SWIGLU_OAI, alpha, limit);
}
struct ggml_tensor *ggml_swiglu_clamp(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, float limit) {
    return split(ctx, a, b, GGML_GLU_OP_SWIGLU_CLAMP, 0.0f, limit);
}

#define NAMED(name, ID)                                                                                                     \
    struct ggml_tensor *ggml_##name(struct ggml_context *ctx, struct ggml_tensor *a) {                                      \
        return ggml_glu(ctx, a, GGML_GLU_OP_##ID, false);                                                                   \
    }                                                                                                                       \
    struct ggml_tensor *ggml_##name##_swapped(struct ggml_context *ctx, struct ggml_tensor *a) {                            \
        return ggml_glu(ctx, a, GGML_GLU_OP_##ID, true);                                                                    \
    }                                                                                                                       \
    struct ggml_tensor *ggml_##name##_split(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b) {       \
        return ggml_glu_split(ctx, a, b, GGML_GLU_OP_##ID);                                                                 \
    }
NAMED(reglu, REGLU)
NAMED(geglu, GEGLU)
NAMED(swiglu, SWIGLU)
NAMED(geglu_erf, GEGLU_ERF)
NAMED(geglu_quick, GEGLU_QUICK)

// ---- gradient -------------------------------------------------------------------------------------------------------

// The activation of each unit; those with limits are handled apart.
static enum ggml_unary_op activation(enum ggml_glu_op unit) {
    switch (unit) {
        case GGML_GLU_OP_REGLU: return GGML_UNARY_OP_RELU;
        case GGML_GLU_OP_GEGLU: return GGML_UNARY_OP_GELU;
        case GGML_GLU_OP_GEGLU_ERF: return GGML_UNARY_OP_GELU_ERF;
        case GGML_GLU_OP_GEGLU_QUICK: return GGML_UNARY_OP_GELU_QUICK;
        default: return GGML_UNARY_OP_SILU;
    }
}

struct unit_grads {
    struct ggml_tensor *gate, *value;
};

// y = h(min(a, limit)) * (clamp(b, +-limit) + c), h(x) = x sigmoid(alpha x)
static struct unit_grads limited(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                 struct ggml_tensor *g, float alpha, float limit, float c) {
    struct ggml_tensor *x = ggml_clamp(ctx, a, -INFINITY, limit), *value = ggml_clamp(ctx, b, -limit, limit);
    struct ggml_tensor *s = ggml_sigmoid(ctx, ggml_scale(ctx, x, alpha));
    struct ggml_tensor *ds = ggml_mul(ctx, s, ggml_scale_bias(ctx, s, -1.0f, 1.0f));
    struct ggml_tensor *dh = ggml_add(ctx, s, ggml_mul(ctx, ggml_scale(ctx, x, alpha), ds));
    struct ggml_tensor *dgate = ggml_mul(ctx, ggml_mul(ctx, g, dh), ggml_scale_bias(ctx, value, 1.0f, c));
    struct ggml_tensor *dvalue = ggml_mul(ctx, ggml_mul(ctx, g, x), s);
    return (struct unit_grads){
        .gate = ggml_mul(ctx, dgate, slope_inside(ctx, a, -INFINITY, limit)),
        .value = ggml_mul(ctx, dvalue, slope_inside(ctx, b, -limit, limit)),
    };
}

static struct unit_grads unit_grads(struct ggml_context *ctx, const struct ggml_tensor *t, struct ggml_tensor *a,
                                    struct ggml_tensor *b, struct ggml_tensor *g) {
    const enum ggml_glu_op unit = (enum ggml_glu_op) tensor_param_i32(t, 0);
    const float alpha = tensor_param_f32(t, 2), limit = tensor_param_f32(t, 3);
    if (unit == GGML_GLU_OP_SWIGLU_OAI) return limited(ctx, a, b, g, alpha, limit, 1.0f);
    if (unit == GGML_GLU_OP_SWIGLU_CLAMP) return limited(ctx, a, b, g, 1.0f, limit, 0.0f);
    const enum ggml_unary_op f = activation(unit);
    struct ggml_tensor *through = ggml_mul(ctx, g, b);  // the gradient of act(a)
    return (struct unit_grads){
        .gate = f == GGML_UNARY_OP_SILU ? ggml_silu_back(ctx, through, a)
                                        : ggml_mul(ctx, through, slope_of(ctx, f, a, NULL, NULL)),
        .value = ggml_mul(ctx, g, ggml_unary(ctx, a, f)),
    };
}

static enum err backward(struct backward *b, struct ggml_tensor *t) {
    struct ggml_tensor *g = backward_grad(b, t), *a = t->src[0];
    if (t->src[1]) {
        const struct unit_grads two = unit_grads(b->ctx, t, a, t->src[1], g);
        TRY(backward_add(b, a, two.gate));
        return backward_add(b, t->src[1], two.value);
    }
    const bool swapped = tensor_param_i32(t, 1) != 0;
    struct ggml_tensor *half[2];
    for (int i = 0; i < 2; i++) {
        half[i] = ggml_view_4d(b->ctx, a, t->ne[0], t->ne[1], t->ne[2], t->ne[3], a->nb[1], a->nb[2], a->nb[3],
                               (size_t) i * (size_t) t->ne[0] * a->nb[0]);
    }
    const struct unit_grads two = unit_grads(b->ctx, t, half[swapped], half[!swapped], g);
    return backward_add(b, a, ggml_concat(b->ctx, swapped ? two.value : two.gate, swapped ? two.gate : two.value, 0));
}

const struct op op_glu = {.id = GGML_OP_GLU,
                          .name = "GLU",
                          .symbol = "glu(x)",
                          .n_src = 1,
                          .flags = OP_INPLACE_WIDE | OP_ELEMENTWISE,
                          .infer = infer,
                          .run = run,
                          .threads = row_threads_func,
                          .backward = backward};
