// Every operation on every layout and float type: the result must have the bits of the plain F32 case (rounded once to the result's
// type), with one thread and with several, whatever the strides of the sources. The inputs are numbers that all types hold exactly.
#include "test.h"
#include "ggml-cpu.h"
#include "base/half.h"
#include "ops/op.h"

#include <math.h>

typedef struct ggml_tensor T;
typedef struct ggml_context C;

static uint32_t seed;
static float draw(int positive) {  // multiples of 1/16 with 7 bits: exact in F16 and BF16
    seed = seed * 1664525u + 1013904223u;
    const int m = (int) (seed >> 25);
    return (float) (positive ? m + 1 : m - 64) / 16.0f;
}

enum layout { PLAIN, PADDED, SWAP12, TRANSPOSED, SWAP03, SLICE, N_LAYOUT };
static const char *const layout_names[] = {"plain",      "padded rows",       "dims 1, 2 swapped",
                                           "transposed", "dims 0, 3 swapped", "slice"};

static void put(T *t, int64_t i, float v) {
    if (t->type == GGML_TYPE_F32)
        ((float *) t->data)[i] = v;
    else
        ((uint16_t *) t->data)[i] = t->type == GGML_TYPE_F16 ? f32_to_f16(v) : f32_to_bf16(v);
}

static void put_at(T *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3, float v) {
    const size_t at = (size_t) i0 * t->nb[0] + (size_t) i1 * t->nb[1] + (size_t) i2 * t->nb[2] + (size_t) i3 * t->nb[3];
    T e = *t;
    e.data = (char *) t->data + at;
    put(&e, 0, v);
}

// A tensor of the given logical shape in a layout; memory that does not belong to it is NaN.
static T *shaped(C *c, enum ggml_type type, enum layout l, const int64_t *n) {
    T *t;
    switch (l) {
        case PADDED: t = ggml_new_tensor_4d(c, type, n[0] + 5, n[1], n[2], n[3]); break;
        case SWAP12: t = ggml_new_tensor_4d(c, type, n[0], n[2], n[1], n[3]); break;
        case TRANSPOSED: t = ggml_new_tensor_4d(c, type, n[1], n[0], n[2], n[3]); break;
        case SWAP03: t = ggml_new_tensor_4d(c, type, n[3], n[1], n[2], n[0]); break;
        case SLICE: t = ggml_new_tensor_4d(c, type, n[0], n[1] + 2, n[2], n[3]); break;
        default: t = ggml_new_tensor_4d(c, type, n[0], n[1], n[2], n[3]);
    }
    for (int64_t i = 0; i < ggml_nelements(t); i++) put(t, i, NAN);
    switch (l) {
        case PADDED: return ggml_view_4d(c, t, n[0], n[1], n[2], n[3], t->nb[1], t->nb[2], t->nb[3], 3 * t->nb[0]);
        case SWAP12: return ggml_permute(c, t, 0, 2, 1, 3);
        case TRANSPOSED: return ggml_transpose(c, t);
        case SWAP03: return ggml_permute(c, t, 3, 1, 2, 0);
        case SLICE: return ggml_view_4d(c, t, n[0], n[1], n[2], n[3], t->nb[1], t->nb[2], t->nb[3], t->nb[1]);
        default: return t;
    }
}

struct maker {
    C *c;
    enum ggml_type type;
    enum layout layout;
};

// Inputs of a case, always drawn in the same order.
static T *input(const struct maker *m, int positive, int64_t n0, int64_t n1, int64_t n2, int64_t n3) {
    T *t = shaped(m->c, m->type, m->layout, (int64_t[4]){n0, n1, n2, n3});
    assert_false(ggml_is_error(t));
    for (int64_t i3 = 0; i3 < n3; i3++)
        for (int64_t i2 = 0; i2 < n2; i2++)
            for (int64_t i1 = 0; i1 < n1; i1++)
                for (int64_t i0 = 0; i0 < n0; i0++) put_at(t, i0, i1, i2, i3, draw(positive));
    return t;
}

static T *plain(const struct maker *m, int64_t n0, int64_t n1, int64_t n2, int64_t n3) {
    const struct maker p = {m->c, GGML_TYPE_F32, PLAIN};
    return input(&p, 0, n0, n1, n2, n3);
}

static T *steps(const struct maker *m, int64_t n, int mod) {
    T *t = ggml_new_tensor_1d(m->c, GGML_TYPE_I32, n);
    for (int64_t i = 0; i < n; i++) ((int32_t *) t->data)[i] = (int32_t) ((i * 5 + 3) % mod);
    return t;
}

typedef T *(*case_fn)(const struct maker *m);

#define A input(m, 0, 37, 6, 5, 3)
#define P input(m, 1, 37, 6, 5, 3)
#define CASE(name, expr)                                                                                                    \
    static T *name(const struct maker *m) {                                                                                 \
        C *c = m->c;                                                                                                        \
        (void) c;                                                                                                           \
        return expr;                                                                                                        \
    }

static T *two(const struct maker *m, T *(*f)(C *, T *, T *), int positive, int64_t n0, int64_t n1, int64_t n2, int64_t n3) {
    T *a = A, *b = input(m, positive, n0, n1, n2, n3);
    return f(m->c, a, b);
}

CASE(c_add, two(m, ggml_add, 0, 37, 6, 5, 3))
CASE(c_add_row, two(m, ggml_add, 0, 37, 1, 1, 1))
CASE(c_sub_value, two(m, ggml_sub, 0, 1, 6, 1, 3))
CASE(c_mul, two(m, ggml_mul, 0, 37, 6, 1, 3))
CASE(c_div, two(m, ggml_div, 1, 37, 2, 5, 1))
CASE(c_scale, ggml_scale(c, A, 0.3f))
CASE(c_scale_bias, ggml_scale_bias(c, A, 0.3f, 1.5f))
CASE(c_sqr, ggml_sqr(c, A))
CASE(c_sqrt, ggml_sqrt(c, P))
CASE(c_log, ggml_log(c, P))
CASE(c_sin, ggml_sin(c, A))
CASE(c_cos, ggml_cos(c, A))
CASE(c_clamp, ggml_clamp(c, A, -1.0f, 2.0f))
CASE(c_leaky, ggml_leaky_relu(c, A, 0.1f, false))
CASE(c_gelu, ggml_gelu(c, A))
CASE(c_gelu_erf, ggml_gelu_erf(c, A))
CASE(c_gelu_quick, ggml_gelu_quick(c, A))
CASE(c_silu, ggml_silu(c, A))
CASE(c_tanh, ggml_tanh(c, A))
CASE(c_elu, ggml_elu(c, A))
CASE(c_softplus, ggml_softplus(c, A))
CASE(c_xielu, ggml_xielu(c, A, 0.4f, 0.9f, 0.5f, -1e-6f))
CASE(c_silu_back, two(m, ggml_silu_back, 0, 37, 6, 5, 3))
CASE(c_swiglu, ggml_swiglu(c, input(m, 0, 74, 6, 5, 3)))
CASE(c_geglu_swapped, ggml_geglu_swapped(c, input(m, 0, 74, 6, 5, 3)))
CASE(c_geglu_split, two(m, ggml_geglu_split, 0, 37, 6, 5, 3))
CASE(c_norm, ggml_norm(c, A, 1e-5f))
CASE(c_rms_norm, ggml_rms_norm(c, A, 1e-5f))
CASE(c_l2_norm, ggml_l2_norm(c, A, 1e-5f))
CASE(c_group_norm, ggml_group_norm(c, A, 3, 1e-5f))
static T *c_rms_norm_back(const struct maker *m) {
    T *a = A, *b = A;
    return ggml_rms_norm_back(m->c, a, b, 1e-5f);
}
CASE(c_soft_max, ggml_soft_max(c, A))
static T *c_soft_max_mask(const struct maker *m) {
    T *a = A;
    return ggml_soft_max_ext(m->c, a, plain(m, 37, 6, 5, 1), 0.5f, 4.0f);
}
static T *c_soft_max_back(const struct maker *m) {
    T *a = A, *b = P;
    return ggml_soft_max_ext_back(m->c, a, b, 0.5f, 0.0f);
}
CASE(c_rope, ggml_rope(c, input(m, 0, 36, 6, 5, 3), steps(m, 5, 100), 32, 0))
CASE(c_rope_neox, ggml_rope(c, input(m, 0, 36, 6, 5, 3), steps(m, 5, 100), 36, 2))
CASE(c_cont, ggml_cont(c, A))
CASE(c_cont_shape, ggml_cont_2d(c, A, 74, 45))
CASE(c_dup, ggml_dup(c, A))
CASE(c_cast_f16, ggml_cast(c, A, GGML_TYPE_F16))
CASE(c_cast_i32, ggml_cast(c, A, GGML_TYPE_I32))
CASE(c_get_rows, ggml_get_rows(c, input(m, 0, 37, 6, 1, 1), steps(m, 9, 6)))
static T *c_set_rows(const struct maker *m) {
    T *dst = ggml_new_tensor_2d(m->c, GGML_TYPE_F32, 37, 20);
    memset(dst->data, 0, ggml_nbytes(dst));
    return ggml_set_rows(m->c, dst, input(m, 0, 37, 6, 1, 1), steps(m, 6, 20));
}
static T *c_get_rows_back(const struct maker *m) {
    T *g = input(m, 0, 37, 6, 1, 1);
    return ggml_get_rows_back(m->c, g, steps(m, 6, 4), plain(m, 37, 4, 1, 1));
}
static T *c_concat(const struct maker *m) {
    T *a = A, *b = input(m, 0, 37, 4, 5, 3);
    return ggml_concat(m->c, a, b, 1);
}
CASE(c_repeat, ggml_repeat_4d(c, A, 74, 12, 5, 6))
static T *c_repeat_back(const struct maker *m) {
    T *a = input(m, 0, 36, 6, 4, 3);
    return ggml_repeat_back(m->c, a, plain(m, 12, 3, 1, 3));
}
static T *c_acc(const struct maker *m) {
    T *a = A, *b = input(m, 0, 7, 5, 3, 2);
    return ggml_acc(m->c, a, b, 37 * ggml_type_size(a->type), 37 * 6 * ggml_type_size(a->type),
                    37 * 30 * ggml_type_size(a->type), 0);
}
static T *c_set(const struct maker *m) {
    T *a = A, *b = input(m, 0, 7, 5, 3, 2);
    return ggml_set(m->c, a, b, 37 * ggml_type_size(a->type), 37 * 6 * ggml_type_size(a->type),
                    37 * 30 * ggml_type_size(a->type), 0);
}
CASE(c_mask_inf, ggml_diag_mask_inf(c, A, 3))
CASE(c_mask_zero, ggml_diag_mask_zero(c, A, 3))
CASE(c_tri, ggml_tri(c, input(m, 0, 9, 9, 5, 3), GGML_TRI_TYPE_LOWER))
CASE(c_diag, ggml_diag(c, input(m, 0, 9, 1, 5, 3)))
CASE(c_fill, ggml_fill(c, A, 2.5f))
CASE(c_sum, ggml_sum(c, A))
CASE(c_sum_rows, ggml_sum_rows(c, A))
CASE(c_mean, ggml_mean(c, A))
CASE(c_cumsum, ggml_cumsum(c, A))
CASE(c_argmax, ggml_argmax(c, input(m, 0, 37, 6, 1, 1)))
CASE(c_argsort, ggml_argsort(c, A, GGML_SORT_ORDER_DESC))
CASE(c_top_k, ggml_top_k(c, A, 5))
CASE(c_pad, ggml_pad_ext(c, A, 1, 2, 0, 1, 1, 0, 0, 2))
CASE(c_pad_circular, ggml_pad_circular(c, A, 3, 1, 2, 1))
CASE(c_pad_reflect, ggml_pad_reflect_1d(c, A, 4, 6))
CASE(c_roll, ggml_roll(c, A, 3, -2, 1, 1))
CASE(c_pool_1d, ggml_pool_1d(c, A, GGML_OP_POOL_AVG, 3, 2, 1))
CASE(c_pool_2d, ggml_pool_2d(c, A, GGML_OP_POOL_MAX, 3, 2, 2, 2, 1, 0))
static T *c_pool_2d_back(const struct maker *m) {
    T *g = input(m, 0, 18, 3, 5, 3), *a = A;
    return ggml_pool_2d_back(m->c, g, a, GGML_OP_POOL_AVG, 2, 2, 2, 2, 0, 0);
}
CASE(c_upscale, ggml_interpolate(c, A, 50, 9, 5, 3, GGML_SCALE_MODE_BILINEAR))
CASE(c_downscale, ggml_interpolate(c, A, 20, 4, 5, 3, GGML_SCALE_MODE_BILINEAR | GGML_SCALE_FLAG_ANTIALIAS))
CASE(c_bicubic, ggml_interpolate(c, A, 50, 9, 5, 3, GGML_SCALE_MODE_BICUBIC))
CASE(c_timestep, ggml_timestep_embedding(c, input(m, 0, 6, 1, 1, 1), 32, 10000))
CASE(c_win_part, ggml_win_part(c, input(m, 0, 37, 6, 5, 1), 4))
CASE(c_win_unpart, ggml_win_unpart(c, input(m, 0, 37, 4, 4, 4), 6, 5, 4))
CASE(c_rel_pos, ggml_get_rel_pos(c, input(m, 0, 16, 13, 1, 1), 7, 7))
static T *c_add_rel_pos(const struct maker *m) {
    T *a = input(m, 0, 16, 16, 3, 1), *w = input(m, 0, 4, 4, 4, 3), *h = input(m, 0, 4, 4, 4, 3);
    return ggml_add_rel_pos(m->c, a, w, h);
}
static T *c_im2col(const struct maker *m) {
    T *k = plain(m, 3, 2, 5, 4);
    return ggml_im2col(m->c, k, A, 2, 1, 1, 1, 1, 2, true, GGML_TYPE_F32);
}
static T *c_im2col_back(const struct maker *m) {
    T *g = input(m, 0, 30, 18, 5, 3), *k = plain(m, 3, 2, 5, 4);
    return ggml_im2col_back(m->c, g, k, (int64_t[4]){37, 6, 5, 3}, 2, 1, 0, 0, 1, 1, true);
}
static T *c_im2col_3d(const struct maker *m) {
    T *k = plain(m, 3, 2, 2, 3 * 4);
    return ggml_im2col_3d(m->c, k, A, 3, 2, 1, 1, 1, 1, 1, 1, 2, 1, GGML_TYPE_F32);
}
static T *c_conv_2d(const struct maker *m) {
    T *k = input(m, 0, 3, 2, 5, 4), *x = A;
    return ggml_conv_2d_direct(m->c, k, x, 2, 1, 1, 1, 1, 2);
}
static T *c_conv_3d(const struct maker *m) {
    T *k = input(m, 0, 3, 2, 2, 3 * 4), *x = A;
    return ggml_conv_3d_direct(m->c, k, x, 2, 1, 1, 1, 1, 1, 1, 2, 1, 3, 1, 4);
}
static T *c_conv_2d_dw(const struct maker *m) {
    T *k = input(m, 0, 3, 2, 1, 5), *x = A;
    return ggml_conv_2d_dw_direct(m->c, k, x, 2, 1, 1, 1, 1, 2);
}
static T *c_conv_t1d(const struct maker *m) {
    T *k = input(m, 0, 3, 4, 6, 1), *x = input(m, 0, 9, 6, 2, 1);
    return ggml_conv_transpose_1d(m->c, k, x, 2, 0, 1);
}
static T *c_conv_t2d(const struct maker *m) {
    T *k = input(m, 0, 3, 2, 4, 5), *x = input(m, 0, 9, 6, 5, 3);
    return ggml_conv_transpose_2d_p0(m->c, k, x, 2);
}
CASE(c_col2im, ggml_col2im_1d(c, input(m, 0, 20, 11, 1, 1), 2, 5, 1))
static T *c_add_id(const struct maker *m) {
    T *a = input(m, 0, 37, 6, 5, 1), *b = input(m, 0, 37, 8, 1, 1), *ids = ggml_reshape_2d(m->c, steps(m, 30, 8), 6, 5);
    return ggml_add_id(m->c, a, b, ids);
}

static const struct {
    const char *name;
    case_fn fn;
} cases[] = {
#define N(name) {#name, c_##name},
    N(add) N(add_row) N(sub_value) N(mul) N(div) N(scale) N(scale_bias) N(sqr) N(sqrt) N(log) N(sin) N(cos) N(clamp) N(leaky)
        N(gelu) N(gelu_erf) N(gelu_quick) N(silu) N(tanh) N(elu) N(softplus) N(xielu) N(silu_back) N(swiglu) N(geglu_swapped)
            N(geglu_split) N(norm) N(rms_norm) N(l2_norm) N(group_norm) N(rms_norm_back) N(soft_max) N(soft_max_mask)
                N(soft_max_back) N(rope) N(rope_neox) N(cont) N(cont_shape) N(dup) N(cast_f16) N(cast_i32) N(get_rows)
                    N(set_rows) N(get_rows_back) N(concat) N(repeat) N(repeat_back) N(acc) N(set) N(mask_inf) N(mask_zero)
                        N(tri) N(diag) N(fill) N(sum) N(sum_rows) N(mean) N(cumsum) N(argmax) N(argsort) N(top_k) N(pad)
                            N(pad_circular) N(pad_reflect) N(roll) N(pool_1d) N(pool_2d) N(pool_2d_back) N(upscale)
                                N(downscale) N(bicubic) N(timestep) N(win_part) N(win_unpart) N(rel_pos) N(add_rel_pos)
                                    N(im2col) N(im2col_back) N(im2col_3d) N(conv_2d) N(conv_3d) N(conv_2d_dw) N(conv_t1d)
                                        N(conv_t2d) N(col2im) N(add_id)
#undef N
};
#define N_CASE ((int) (sizeof cases / sizeof *cases))

static double value(const T *t, int64_t i) {
    int64_t k[4];
    ggml_unravel_index(t, i, &k[0], &k[1], &k[2], &k[3]);
    const char *p = (const char *) t->data + (size_t) k[0] * t->nb[0] + (size_t) k[1] * t->nb[1] + (size_t) k[2] * t->nb[2] +
                    (size_t) k[3] * t->nb[3];
    switch (t->type) {
        case GGML_TYPE_F32: return (double) *(const float *) (const void *) p;
        case GGML_TYPE_F16: return (double) f16_to_f32(*(const uint16_t *) (const void *) p);
        case GGML_TYPE_BF16: return (double) bf16_to_f32(*(const uint16_t *) (const void *) p);
        default: return (double) *(const int32_t *) (const void *) p;
    }
}

static double rounded(double v, enum ggml_type type) {
    if (type == GGML_TYPE_F16) return (double) f16_to_f32(f32_to_f16((float) v));
    if (type == GGML_TYPE_BF16) return (double) bf16_to_f32(f32_to_bf16((float) v));
    return v;
}

// The memory plan may let a result lie over a source of the same layout, where the descriptor says so.
static bool may_lie_over(const T *t, int i_src) {
    const T *s = t->src[i_src];
    const struct op *op = op_get(t->op);
    return !t->view_src && s && s->type == t->type && ggml_are_same_shape(s, t) && ggml_are_same_stride(s, t) &&
           (op->flags & (OP_INPLACE | OP_INPLACE_WIDE)) && (i_src == 0 || (op->flags & OP_ELEMENTWISE));
}

static int n_inplace;

// over: the source that the result lies over, -1 for memory of its own.
static T *compute(C *c, int which, const struct maker *m, int n_threads, int over) {
    seed = 12345u + (uint32_t) which;
    T *t = cases[which].fn(m);
    if (over >= 0) {
        if (ggml_is_error(t) || !may_lie_over(t, over)) return NULL;
        t->data = t->src[over]->data;
        n_inplace++;
    }
    if (ggml_is_error(t))
        fail_msg("%s of %s, %s: %s", cases[which].name, ggml_type_name(m->type), layout_names[m->layout], ggml_last_error());
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 64, false);
    ggml_build_forward_expand(g, t);
    if (ggml_graph_compute_with_ctx(c, g, n_threads) != GGML_STATUS_SUCCESS)
        fail_msg("%s of %s, %s: %s", cases[which].name, ggml_type_name(m->type), layout_names[m->layout], ggml_last_error());
    return t;
}

static void check(int which, const T *want, const T *got, const struct maker *m, int n_threads) {
    assert_true(ggml_are_same_shape(want, got));
    for (int64_t i = 0; i < ggml_nelements(want); i++) {
        const double w = rounded(value(want, i), got->type), v = value(got, i);
        if (w == v) continue;
        fail_msg("%s of %s, %s, %d threads: element %d is %.9g, wanted %.9g", cases[which].name, ggml_type_name(m->type),
                 layout_names[m->layout], n_threads, (int) i, v, w);
    }
}

static void run_case(int which) {
    C *c0 = ggml_init((struct ggml_init_params){.mem_size = (size_t) 4 << 20});
    const struct maker p = {c0, GGML_TYPE_F32, PLAIN};
    const T *want = compute(c0, which, &p, 1, -1);
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16};
    for (int ty = 0; ty < 3; ty++) {
        for (int l = 0; l < N_LAYOUT; l++) {
            C *c = ggml_init((struct ggml_init_params){.mem_size = (size_t) 8 << 20});
            const struct maker m = {c, types[ty], (enum layout) l};
            check(which, want, compute(c, which, &m, 1, -1), &m, 1);
            check(which, want, compute(c, which, &m, 3, -1), &m, 3);
            for (int over = 0; over < 2; over++) {
                const T *got = compute(c, which, &m, 1 + 2 * over, over);
                if (got) check(which, want, got, &m, 1 + 2 * over);
            }
            ggml_free(c);
        }
    }
    ggml_free(c0);
}

static void test_all(void **state) {
    (void) state;
    quiet();
    for (int i = 0; i < N_CASE; i++) run_case(i);
    assert_true(n_inplace > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
