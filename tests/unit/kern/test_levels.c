// Element-wise and row kernels at every ISA level against the scalar level: equal bits, for rows of every length around the vector
// sizes and for values of every kind. Partial vectors must not touch what lies behind the row.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/half.h"
#include "kern/binary.h"
#include "kern/norm.h"
#include "kern/rope.h"
#include "kern/softmax.h"
#include "kern/unary.h"

#include <math.h>
#include <stdio.h>

#define MAX 200
#define GUARD 12345.678f

static const int lengths[] = {0,  1,  2,  3,  4,  5,  7,   8,   9,   15,  16,  17, 31,
                              32, 33, 47, 63, 64, 65, 100, 127, 128, 129, 199, 200};
#define N_LENGTH ((int) (sizeof lengths / sizeof *lengths))

static uint64_t state = 1;

static uint32_t random_bits(void) {
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t) (z >> 32);
}
static float uniform(float lo, float hi) { return lo + (hi - lo) * (float) (random_bits() >> 8) / 16777216.0f; }

// kind 0: ordinary; 1: wide range; 2: any bit pattern, infinities and NaN included
static void fill(float *x, int n, int kind) {
    static const float special[] = {0.0f,  -0.0f,  1e-45f,  -1e-42f, 88.8f, -104.0f,
                                    1e30f, -1e30f, 3.4e38f, 0.5f,    -2.5f, 16777216.0f};
    for (int i = 0; i < n; i++) {
        x[i] = kind == 0   ? uniform(-4, 4)
               : kind == 1 ? uniform(-1, 1) * exp2f(uniform(-40, 40))
                           : f32_from_bits(random_bits());
        if (kind == 1 && i % 5 == 0) x[i] = special[random_bits() % (sizeof special / sizeof *special)];
        if (kind == 2 && i % 7 == 0) x[i] = i % 2 ? INFINITY : -NAN;
    }
}

static int same(float a, float b) { return f32_bits(a) == f32_bits(b) || (isnan(a) && isnan(b)); }

static void check_rows(const char *what, enum isa level, const float *want, const float *got, int n, int room) {
    for (int i = 0; i < room; i++) {
        if (i < n ? same(want[i], got[i]) : got[i] == GUARD) continue;
        fail_msg("%s at %s, length %d: element %d is %.9g, scalar gives %.9g", what, isa_name(level), n, i, (double) got[i],
                 (double) (i < n ? want[i] : GUARD));
    }
}

static void guard(float *y) {
    for (int i = 0; i < MAX + 32; i++) y[i] = GUARD;
}

typedef void (*row_test)(const char *name, size_t place, int kind, enum isa level);

static void run_unary(const char *name, size_t place, int kind, enum isa level) {
    const float p[4] = {0.37f, 0.81f, 0.5f, -1e-6f};
    for (int l = 0; l < N_LENGTH; l++) {
        float x[MAX], want[MAX + 32], got[MAX + 32];
        const int n = lengths[l];
        fill(x, n, kind);
        guard(want), guard(got);
        isa_pin(ISA_scalar);
        (*(const kern_unary_fn *) (const void *) ((const char *) kern_unary() + place))(n, want, x, p);
        isa_pin(level);
        (*(const kern_unary_fn *) (const void *) ((const char *) kern_unary() + place))(n, got, x, p);
        check_rows(name, level, want, got, n, MAX + 32);
        for (int i = 0; i < n; i++) got[i] = x[i];  // in place
        (*(const kern_unary_fn *) (const void *) ((const char *) kern_unary() + place))(n, got, got, p);
        check_rows(name, level, want, got, n, MAX + 32);
    }
}

static void run_binary(const char *name, size_t place, int kind, enum isa level) {
    for (int l = 0; l < N_LENGTH; l++) {
        float a[MAX], b[MAX], want[MAX + 32], got[MAX + 32];
        const int n = lengths[l];
        fill(a, n, kind), fill(b, n, kind);
        guard(want), guard(got);
        isa_pin(ISA_scalar);
        (*(const kern_binary_fn *) (const void *) ((const char *) kern_binary() + place))(n, want, a, b);
        isa_pin(level);
        (*(const kern_binary_fn *) (const void *) ((const char *) kern_binary() + place))(n, got, a, b);
        check_rows(name, level, want, got, n, MAX + 32);
    }
}

static void run_glu(const char *name, size_t place, int kind, enum isa level) {
    const float p[2] = {1.702f, 7.0f};
    for (int l = 0; l < N_LENGTH; l++) {
        float a[MAX], b[MAX], want[MAX + 32], got[MAX + 32];
        const int n = lengths[l];
        fill(a, n, kind), fill(b, n, kind);
        guard(want), guard(got);
        isa_pin(ISA_scalar);
        (*(const kern_glu_fn *) (const void *) ((const char *) kern_binary() + place))(n, want, a, b, p);
        isa_pin(level);
        (*(const kern_glu_fn *) (const void *) ((const char *) kern_binary() + place))(n, got, a, b, p);
        check_rows(name, level, want, got, n, MAX + 32);
    }
}

static void each_level(const char *name, size_t place, row_test run) {
    for (int level = 1; level < ISA_COUNT; level++) {
        if (!isa_available((enum isa) level)) continue;
        for (int kind = 0; kind < 3; kind++) run(name, place, kind, (enum isa) level);
    }
    isa_pin(ISA_scalar);
}

static void test_unary(void **s) {
    (void) s;
#define X(name) each_level(#name, offsetof(struct kern_unary, name), run_unary);
    KERN_UNARY(X)
#undef X
}

static void test_binary(void **s) {
    (void) s;
#define B(name) each_level(#name, offsetof(struct kern_binary, name), run_binary);
    B(add)
    B(sub)
    B(mul)
    B(div)
#undef B
#define G(name) each_level(#name, offsetof(struct kern_binary, name), run_glu);
    G(reglu) G(geglu) G(swiglu) G(geglu_erf) G(geglu_quick) G(swiglu_oai) G(swiglu_clamp)
#undef G
}

// The rest of the families: one call that fills `out` from x and z; n_out values count.
static int call_other(int which, int n, float *out, const float *x, const float *z) {
    const struct kern_norm *norm = kern_norm();
    switch (which) {
        case 0: out[0] = norm->sum(n, x); return 1;
        case 1: out[0] = norm->sum_sqr(n, x); return 1;
        case 2: out[0] = norm->sum_dev(n, x, 0.75f); return 1;
        case 3: out[0] = norm->dot(n, x, z); return 1;
        case 4: out[0] = norm->max(n, x); return 1;
        case 5: norm->rms(n, out, x, NULL, 1e-5f); return n;
        case 6: norm->rms(n, out, x, z, 1e-5f); return n;
        case 7: norm->layer(n, out, x, 1e-5f); return n;
        case 8: norm->l2(n, out, x, 1e-5f); return n;
        case 9: norm->rms_back(n, out, x, z, 1e-5f); return n;
        case 10: norm->shift_scale(n, out, x, 0.5f, 3.0f); return n;
        case 11: out[n] = kern_softmax()->logits(n, out, x, 0.3f, NULL, 1.0f); return n + 1;
        case 12: out[n] = kern_softmax()->logits(n, out, x, 0.3f, z, 0.7f); return n + 1;
        case 13: out[n] = kern_softmax()->exp_sum(n, out, x, 4.0f); return n + 1;
        case 14: kern_softmax()->back(n, out, x, z, 0.5f); return n;
        case 15: kern_rope()->angles(n / 2, out, out + n / 2, x, 1.5f); return n / 2 * 2;
        case 16: kern_rope()->halves(n / 2, n / 2, out, x, z, z + n / 2); return n / 2 * 2;
        case 17: kern_rope()->pairs(n / 2, out, x, z, z + n / 2); return n / 2 * 2;
        case 18: kern_binary()->fma(n, out, x, z, x); return n;
        case 19: kern_binary()->silu_back(n, out, x, z); return n;
        case 20:
            for (int i = 0; i < n; i++) out[i] = z[i];
            kern_binary()->axpy(n, out, 0.3f, x);
            return n;
        default: return -1;
    }
}

static void test_others(void **s) {
    (void) s;
    for (int which = 0; call_other(which, 0, (float[1]){0}, NULL, NULL) >= 0; which++) {
        for (int level = 1; level < ISA_COUNT; level++) {
            if (!isa_available((enum isa) level)) continue;
            for (int i = 0; i < 3 * N_LENGTH; i++) {
                float x[MAX], z[MAX], want[MAX + 32], got[MAX + 32];
                char name[32];
                snprintf(name, sizeof name, "kernel %d", which);
                const int n = lengths[i / 3];
                fill(x, n, i % 3), fill(z, n, i % 3);
                guard(want), guard(got);
                isa_pin(ISA_scalar);
                const int m = call_other(which, n, want, x, z);
                isa_pin((enum isa) level);
                call_other(which, n, got, x, z);
                check_rows(name, (enum isa) level, want, got, m, MAX + 32);
            }
        }
    }
    isa_pin(ISA_scalar);
}

// An element's result does not depend on where in the row it lies, nor on how long the row is.
static void test_position(void **s) {
    (void) s;
    for (int level = 0; level < ISA_COUNT; level++) {
        if (!isa_pin((enum isa) level)) continue;
        float x[MAX], y[MAX], one;
        fill(x, MAX, 0);
        kern_unary()->gelu(MAX, y, x, NULL);
        for (int i = 0; i < MAX; i++) {
            kern_unary()->gelu(1, &one, x + i, NULL);
            assert_int_equal(f32_bits(one), f32_bits(y[i]));
        }
    }
    isa_pin(ISA_scalar);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unary), cmocka_unit_test(test_binary),
                                       cmocka_unit_test(test_others), cmocka_unit_test(test_position)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
