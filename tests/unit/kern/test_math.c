// The errors that simd/math.h states, measured against double precision over floats of all sizes; and values at the edges.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/half.h"
#include "kern/unary.h"

#include <float.h>
#include <math.h>

typedef double (*reference)(double x);

static double sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }
static double silu(double x) { return x * sigmoid(x); }
static double softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
static double gelu(double x) { return x * sigmoid(2 * sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)); }
static double gelu_quick(double x) { return x * sigmoid(1.702 * x); }
static double gelu_erf(double x) { return x * 0.5 * erfc(-x / sqrt(2.0)); }

static double ulp(double x) {
    int e;
    if (fabs(x) < (double) FLT_MIN) return 0x1p-149;
    frexp(x, &e);
    return ldexp(1.0, e - 24);
}

static double worst(kern_unary_fn fn, reference f, float lo, float hi) {
    enum { N = 64 };
    float x[N], y[N];
    double most = 0;
    int n = 0;
    for (uint64_t u = 0; u <= 0xffffffffu; u += 14983) {
        const float v = f32_from_bits((uint32_t) u);
        if (!(v >= lo && v <= hi)) continue;
        x[n++] = v;
        if (n < N) continue;
        n = 0;
        fn(N, y, x, NULL);
        for (int i = 0; i < N; i++) {
            const double r = f((double) x[i]);
            if ((float) r == y[i]) continue;
            const double e = fabs((double) y[i] - r) / ulp(r);
            if (!(e <= most)) most = e;
        }
    }
    return most;
}

static void check(const char *name, kern_unary_fn fn, reference f, float lo, float hi, double bound) {
    const double e = worst(fn, f, lo, hi);
    if (!(e <= bound)) fail_msg("%s: error %.2f units in the last place, %.2f are stated", name, e, bound);
}

static void check_all(void) {
    const struct kern_unary *k = kern_unary();
    check("exp", k->exp, exp, -200, 200, 1.0);
    check("expm1", k->expm1, expm1, -200, 200, 1.5);
    check("log", k->log, log, 0, INFINITY, 1.0);
    check("sin", k->sin, sin, -1e30f, 1e30f, 1.6);
    check("cos", k->cos, cos, -1e30f, 1e30f, 1.6);
    check("tanh", k->tanh, tanh, -50, 50, 1.5);
    check("erf", k->erf, erf, -30, 30, 1.5);
    check("softplus", k->softplus, softplus, -200, 200, 2.0);
    check("sigmoid", k->sigmoid, sigmoid, -200, 200, 2.5);
    check("silu", k->silu, silu, -200, 200, 3.5);
    check("gelu", k->gelu, gelu, -100, 100, 3.5);
    check("gelu_quick", k->gelu_quick, gelu_quick, -200, 200, 3.5);
    check("gelu_erf", k->gelu_erf, gelu_erf, -100, 100, 4.5);
}

// The levels agree bit for bit (test_levels.c), so the fastest one speaks for all.
static void test_errors(void **s) {
    (void) s;
    for (int level = ISA_COUNT - 1; level >= 0; level--) {
        if (!isa_pin((enum isa) level)) continue;
        check_all();
        break;
    }
}

static float one(kern_unary_fn fn, float x) {
    float y;
    fn(1, &y, &x, NULL);
    return y;
}

static void test_edges(void **s) {
    (void) s;
    for (int level = 0; level < ISA_COUNT; level++) {
        if (!isa_pin((enum isa) level)) continue;
        const struct kern_unary *k = kern_unary();
        assert_true(one(k->exp, INFINITY) == INFINITY && one(k->exp, -INFINITY) == 0.0f && isnan(one(k->exp, NAN)));
        assert_true(one(k->exp, 88.73f) == INFINITY && one(k->exp, -104.0f) == 0.0f);
        assert_true(one(k->log, 0.0f) == -INFINITY && isnan(one(k->log, -1.0f)) && one(k->log, INFINITY) == INFINITY);
        assert_true(one(k->tanh, INFINITY) == 1.0f && one(k->tanh, -INFINITY) == -1.0f && isnan(one(k->tanh, NAN)));
        assert_int_equal(f32_bits(one(k->tanh, -0.0f)), f32_bits(-0.0f));
        assert_int_equal(f32_bits(one(k->erf, -0.0f)), f32_bits(-0.0f));
        assert_int_equal(f32_bits(one(k->expm1, -0.0f)), f32_bits(-0.0f));
        assert_true(one(k->expm1, -INFINITY) == -1.0f && one(k->expm1, INFINITY) == INFINITY);
        assert_true(one(k->sigmoid, -INFINITY) == 0.0f && one(k->sigmoid, INFINITY) == 1.0f &&
                    one(k->sigmoid, 0.0f) == 0.5f);
        assert_true(one(k->gelu, -INFINITY) == 0.0f && one(k->gelu, INFINITY) == INFINITY && one(k->gelu, 1e30f) == 1e30f);
        assert_true(one(k->silu, -1e30f) == 0.0f && isnan(one(k->silu, NAN)) && isnan(one(k->gelu_erf, NAN)));
        assert_true(isnan(one(k->sin, INFINITY)) && isnan(one(k->cos, NAN)));
        assert_true(one(k->round, 2.5f) == 3.0f && one(k->round, -2.5f) == -3.0f && one(k->round, 0.49999997f) == 0.0f);
        assert_true(one(k->softplus, 1e30f) == 1e30f && one(k->softplus, -1e30f) == 0.0f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_errors), cmocka_unit_test(test_edges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
