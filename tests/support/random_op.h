// Random tensors for tests of operations: any layout that strides can express, any values that floats can have; computing with several
// numbers of threads, and comparing each element with a definition in double precision. A test includes it once.
#pragma once

#include "test.h"
#include "ggml-cpu.h"
#include "base/half.h"

#include <math.h>

typedef struct ggml_tensor T;
typedef struct ggml_context C;

#define F32 GGML_TYPE_F32
#define F16 GGML_TYPE_F16
#define BF16 GGML_TYPE_BF16
#define I32 GGML_TYPE_I32
#define I64 GGML_TYPE_I64

// ---- random numbers, tensors in random layouts ----------------------------------------------------------------------------

static uint64_t seed;
static uint32_t rnd(uint32_t n) {  // 0 .. n - 1
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return n ? (uint32_t) (seed >> 33) % n : 0;
}
static double real(void) { return (double) rnd(1u << 24) / (1 << 23) - 1.0; }

static const double odd_values[] = {0.0,    -0.0, INFINITY, -INFINITY, NAN,  1e-40, -1e-40, 65504,
                                    -65504, 1e30, -1e30,    88.8,      -104, 0.5,   1};
// How odd the numbers of a tensor are: none, a few of the above, all of them one of the above.
static double draw(int odd) {
    if (odd && rnd(odd == 2 ? 1 : 8) == 0) return odd_values[rnd(sizeof odd_values / sizeof *odd_values)];
    return real() * 4;
}

static int64_t side(void) {
    static const int64_t sides[] = {1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 65, 100};
    return rnd(24) == 0 ? 0 : sides[rnd(16)];
}
static inline void shape(int64_t *ne, int64_t most) {
    do
        for (int i = 0; i < 4; i++) ne[i] = i < 2 ? side() : 1 + rnd(3);
    while (ne[0] * ne[1] * ne[2] * ne[3] > most);
    if (rnd(30) == 0) ne[rnd(4)] = 0;
}

static void put(T *t, char *p, double v) {
    switch (t->type) {
        case F16: *(uint16_t *) p = f32_to_f16((float) v); break;
        case BF16: *(uint16_t *) p = f32_to_bf16((float) v); break;
        case I32: *(int32_t *) p = (int32_t) v; break;
        case I64: *(int64_t *) p = (int64_t) v; break;
        default: *(float *) p = (float) v;
    }
}
static double get(const T *t, const char *p) {
    switch (t->type) {
        case F16: return (double) f16_to_f32(*(const uint16_t *) p);
        case BF16: return (double) bf16_to_f32(*(const uint16_t *) p);
        case I32: return *(const int32_t *) p;
        case I64: return (double) *(const int64_t *) p;
        default: return (double) *(const float *) p;
    }
}
static char *place(const T *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    return (char *) t->data + (size_t) i0 * t->nb[0] + (size_t) i1 * t->nb[1] + (size_t) i2 * t->nb[2] +
           (size_t) i3 * t->nb[3];
}
#define EACH(ne)                                                                                                            \
    for (int64_t i3 = 0; i3 < (ne)[3]; i3++)                                                                                \
        for (int64_t i2 = 0; i2 < (ne)[2]; i2++)                                                                            \
            for (int64_t i1 = 0; i1 < (ne)[1]; i1++)                                                                        \
                for (int64_t i0 = 0; i0 < (ne)[0]; i0++)
#define AT(t, ...) get((t), place((t), __VA_ARGS__))

enum { ROWS = 1, PLAIN = 2 };  // rows in one piece; everything in one piece

// A tensor of the given shape whose elements lie in a permuted, padded and shifted piece of memory.
static T *tensor(C *c, enum ggml_type type, const int64_t *ne, int how, int odd) {
    T *t;
    if (how == PLAIN || rnd(3) == 0) {
        t = ggml_new_tensor_4d(c, type, ne[0], ne[1], ne[2], ne[3]);
    } else {
        int axis[4] = {0, 1, 2, 3};
        for (int i = how == ROWS ? 2 : 1; i < 4; i++) {
            const int lo = how == ROWS ? 1 : 0, j = lo + (int) rnd((uint32_t) (i - lo + 1)), k = axis[i];
            axis[i] = axis[j];
            axis[j] = k;
        }
        int64_t in[4], full[4];  // sizes in memory's order, and with padding
        size_t offset = 0;
        for (int i = 0; i < 4; i++) in[axis[i]] = ne[i];
        for (int i = 0; i < 4; i++) full[i] = in[i] + rnd(3);
        T *base = ggml_new_tensor_4d(c, type, full[0], full[1], full[2], full[3]);
        if (base->data) memset(base->data, 0xff, ggml_nbytes(base));
        for (int i = 0; i < 4; i++) offset += (size_t) rnd((uint32_t) (full[i] - in[i] + 1)) * base->nb[i];
        if (in[0] * in[1] * in[2] * in[3] == 0) offset = 0;
        T *v = ggml_view_4d(c, base, in[0], in[1], in[2], in[3], base->nb[1], base->nb[2], base->nb[3], offset);
        t = ggml_permute(c, v, 0, 1, 2, 3);
        int inverse[4];  // dimension i of memory becomes dimension inverse[i] of the tensor
        for (int i = 0; i < 4; i++) inverse[axis[i]] = i;
        t = ggml_permute(c, v, inverse[0], inverse[1], inverse[2], inverse[3]);
    }
    assert_false(ggml_is_error(t));
    for (int i = 0; i < 4; i++) assert_int_equal(t->ne[i], ne[i]);
    EACH(ne) put(t, place(t, i0, i1, i2, i3), type == I32 || type == I64 ? (double) rnd(100) : draw(odd));
    return t;
}
static enum ggml_type some_float(void) { return rnd(2) ? F32 : rnd(2) ? F16 : BF16; }

// ---- computing and comparing ----------------------------------------------------------------------------------------------

static const char *now;  // what is being compared
static int n_compared;

static C *begin(void) { return ggml_init((struct ggml_init_params){.mem_size = 48u << 20}); }

static void compute(C *c, T *out) {
    if (ggml_is_error(out)) fail_msg("%s: %s", now, ggml_last_error());
    struct ggml_cgraph *g = ggml_new_graph(c);
    ggml_build_forward_expand(g, out);
    const size_t n = ggml_nbytes(out);
    char *first = malloc(n + 1);
    static const int threads[] = {1, 2, 3, 5};
    for (int k = 0; k < 4; k++) {
        if (out->view_src && k) break;  // in place: the second time would begin with the first one's result
        if (!out->view_src && n) memset(out->data, 0xff, n);
        if (ggml_graph_compute_with_ctx(c, g, out->view_src ? threads[rnd(4)] : threads[k]) != GGML_STATUS_SUCCESS)
            fail_msg("%s: %s", now, ggml_last_error());
        if (n == 0) continue;  // it has no data
        if (k == 0)
            memcpy(first, out->data, n);
        else if (memcmp(first, out->data, n))
            fail_msg("%s: other bits with %d threads", now, threads[k]);
    }
    free(first);
}

static bool near(double got, double want, double tol) {
    if (isnan(want)) return isnan(got);
    if (isinf(want)) return got == want;
    return fabs(got - want) <= tol * (1 + fabs(want));
}

// The result's type rounds what double precision gives: once for half floats, which may overflow.
static double rounded(enum ggml_type t, double v) {
    if (t == F16) return (double) f16_to_f32(f32_to_f16((float) v));
    if (t == BF16) return (double) bf16_to_f32(f32_to_bf16((float) v));
    if (t == F32) return (double) (float) v;
    return v;
}

#define WANT(out, tol, ...)                                                                                                 \
    do {                                                                                                                    \
        const T *o_ = (out);                                                                                                \
        const double tol_ = o_->type == F16 ? (tol) + 1.5e-3 : o_->type == BF16 ? (tol) + 1.2e-2 : (tol);                   \
        EACH(o_->ne) {                                                                                                      \
            double want = 0;                                                                                                \
            __VA_ARGS__;                                                                                                    \
            const double got = AT(o_, i0, i1, i2, i3), w_ = rounded(o_->type, want);                                        \
            if (!near(got, w_, tol_) && !(o_->type != F32 && isinf(w_) != isinf(got) && fabs(want) > 6e4))                  \
                fail_msg("%s [%d,%d,%d,%d] %s, element %d,%d,%d,%d: %.9g, should be %.9g", now, (int) o_->ne[0],            \
                         (int) o_->ne[1], (int) o_->ne[2], (int) o_->ne[3], ggml_type_name(o_->type), (int) i0, (int) i1,   \
                         (int) i2, (int) i3, got, w_);                                                                      \
            n_compared++;                                                                                                   \
        }                                                                                                                   \
    } while (0)

#define CASES(n)                                                                                                            \
    (void) state;                                                                                                           \
    seed = 0x9e3779b97f4a7c15ull ^ (uint64_t) __LINE__;                                                                     \
    for (int n_left = test_small() ? (n) / 10 : (n); n_left-- > 0;)
