// Convolutions by different ways give the same: through patches, directly, and by the definition in double precision.
#include "test.h"
#include "ggml-cpu.h"

#include <math.h>

typedef struct ggml_tensor T;

static struct ggml_context *c;
static uint32_t seed;

static int begin(void **state) {
    (void) state;
    quiet();
    seed = 3;
    c = ggml_init((struct ggml_init_params){.mem_size = (size_t) 32 << 20});
    return 0;
}

static int end(void **state) {
    (void) state;
    ggml_free(c);
    return 0;
}

static T *f32(int64_t n0, int64_t n1, int64_t n2, int64_t n3) {
    T *t = ggml_new_tensor_4d(c, GGML_TYPE_F32, n0, n1, n2, n3);
    for (int64_t i = 0; i < ggml_nelements(t); i++) {
        seed = seed * 1664525u + 1013904223u;
        ((float *) t->data)[i] = (float) (seed >> 8) / 8388608.0f - 1.0f;
    }
    return t;
}

static T *run(T *t) {
    if (ggml_is_error(t)) fail_msg("%s", ggml_last_error());
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 32, false);
    ggml_build_forward_expand(g, t);
    assert_int_equal(ggml_graph_compute_with_ctx(c, g, 3), GGML_STATUS_SUCCESS);
    return t;
}

static double at(const T *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    return (double) ggml_get_f32_nd(t, (int) i0, (int) i1, (int) i2, (int) i3);
}

static void expect_near(const T *a, const T *b) {
    assert_true(ggml_are_same_shape(a, b));
    for (int64_t i = 0; i < ggml_nelements(a); i++) {
        int64_t k[4];
        ggml_unravel_index(a, i, &k[0], &k[1], &k[2], &k[3]);
        const double d = at(a, k[0], k[1], k[2], k[3]) - at(b, k[0], k[1], k[2], k[3]);
        if (!(fabs(d) < 2e-5)) fail_msg("element %d differs by %g", (int) i, d);
    }
}

// sum over channels and the kernel; zero outside
static double conv_2d_at(const T *k, const T *x, const int *p, int64_t ox, int64_t oy, int64_t oc, int64_t n) {
    double sum = 0;
    for (int64_t ic = 0; ic < k->ne[2]; ic++)
        for (int64_t ky = 0; ky < k->ne[1]; ky++)
            for (int64_t kx = 0; kx < k->ne[0]; kx++) {
                const int64_t ix = ox * p[0] + kx * p[4] - p[2], iy = oy * p[1] + ky * p[5] - p[3];
                if (ix >= 0 && ix < x->ne[0] && iy >= 0 && iy < x->ne[1])
                    sum += at(k, kx, ky, ic, oc) * at(x, ix, iy, ic, n);
            }
    return sum;
}

static void test_2d(void **s) {
    (void) s;
    static const int params[][6] = {{1, 1, 0, 0, 1, 1}, {2, 1, 1, 2, 1, 1}, {1, 3, 2, 0, 2, 1}};
    for (int i = 0; i < 3; i++) {
        const int *p = params[i];
        T *k = f32(3, 2, 4, 5), *x = f32(11, 9, 4, 2);
        T *a = run(ggml_conv_2d(c, k, x, p[0], p[1], p[2], p[3], p[4], p[5]));
        T *b = run(ggml_conv_2d_direct(c, k, x, p[0], p[1], p[2], p[3], p[4], p[5]));
        expect_near(a, b);
        for (int64_t j = 0; j < ggml_nelements(b); j++) {
            int64_t o[4];
            ggml_unravel_index(b, j, &o[0], &o[1], &o[2], &o[3]);
            assert_true(fabs(conv_2d_at(k, x, p, o[0], o[1], o[2], o[3]) - at(b, o[0], o[1], o[2], o[3])) < 2e-5);
        }
    }
}

// One dimension, several images: as two dimensions of height 1.
static void test_1d(void **s) {
    (void) s;
    T *k = f32(3, 4, 5, 1), *x = f32(12, 4, 3, 1);
    T *a = run(ggml_conv_1d(c, k, x, 2, 1, 1));
    T *b =
        run(ggml_conv_2d_direct(c, ggml_reshape_4d(c, k, 3, 1, 4, 5), ggml_reshape_4d(c, x, 12, 1, 4, 3), 2, 1, 1, 0, 1, 1));
    expect_near(a, ggml_reshape_3d(c, b, b->ne[0], b->ne[2], b->ne[3]));
}

static void test_depthwise(void **s) {
    (void) s;
    T *k = f32(3, 2, 1, 6), *x = f32(11, 9, 6, 2);
    expect_near(run(ggml_conv_2d_dw(c, k, x, 2, 1, 1, 1, 1, 2)), run(ggml_conv_2d_dw_direct(c, k, x, 2, 1, 1, 1, 1, 2)));
    T *k1 = f32(3, 1, 6, 1), *x1 = f32(11, 6, 1, 1);
    T *a = run(ggml_conv_1d_dw(c, k1, x1, 1, 1, 1));
    T *b = run(ggml_conv_2d_dw_direct(c, ggml_reshape_4d(c, k1, 3, 1, 1, 6), ggml_reshape_4d(c, x1, 11, 1, 6, 1), 1, 1, 1, 0,
                                      1, 1));
    expect_near(a, ggml_reshape_2d(c, b, b->ne[0], b->ne[2]));
}

static void test_3d(void **s) {
    (void) s;
    T *k = f32(3, 2, 2, 3 * 4), *x = f32(8, 7, 6, 3 * 2);
    T *a = run(ggml_conv_3d(c, k, x, 3, 2, 1, 1, 1, 1, 0, 1, 1, 2));
    expect_near(a, run(ggml_conv_3d_direct(c, k, x, 2, 1, 1, 1, 1, 0, 1, 1, 2, 3, 2, 4)));
}

// A transposed convolution is the gradient of a convolution: <conv(x), y> = <x, transposed(y)>.
static void test_transposed(void **s) {
    (void) s;
    T *k = f32(3, 2, 4, 5), *x = f32(13, 10, 4, 2);  // as a convolution: 4 channels in, 5 out, stride 2
    T *cx = run(ggml_conv_2d_direct(c, k, x, 2, 2, 0, 0, 1, 1)), *y = f32(cx->ne[0], cx->ne[1], 5, 2);
    T *ty = run(ggml_conv_transpose_2d_p0(c, k, y, 2));
    double left = 0, right = 0;
    for (int64_t i = 0; i < ggml_nelements(y); i++)
        left += (double) ((float *) cx->data)[i] * (double) ((float *) y->data)[i];
    for (int64_t i3 = 0; i3 < 2; i3++)
        for (int64_t i2 = 0; i2 < 4; i2++)
            for (int64_t i1 = 0; i1 < ty->ne[1]; i1++)
                for (int64_t i0 = 0; i0 < ty->ne[0]; i0++) right += at(x, i0, i1, i2, i3) * at(ty, i0, i1, i2, i3);
    assert_true(fabs(left - right) < 1e-3);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {TEST(test_2d), TEST(test_1d), TEST(test_depthwise), TEST(test_3d),
                                       TEST(test_transposed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
