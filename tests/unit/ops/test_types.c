// Copies and arithmetic between all pairs of element types, against decoding, computing in F32 and encoding by hand; exact copies
// among wide integers and doubles; copies between shapes whose rows do not match.
#include "test.h"
#include "ggml-cpu.h"
#include "type/type.h"

#include <math.h>

typedef struct ggml_tensor T;

static struct ggml_context *c;

static int begin(void **state) {
    (void) state;
    quiet();
    ggml_clear_error();
    c = ggml_init((struct ggml_init_params){.mem_size = (size_t) 64 << 20});
    return 0;
}

static int end(void **state) {
    (void) state;
    ggml_free(c);
    return 0;
}

static uint32_t seed = 1;
static float draw(float lo, float hi) {
    seed = seed * 1664525u + 1013904223u;
    return lo + (hi - lo) * (float) (seed >> 8) / 16777216.0f;
}

#define N0 512
#define N1 3
#define N (N0 * N1)

// Values in [lo, hi) as the type holds them.
static T *make(enum ggml_type type, float lo, float hi) {
    static float x[N];
    T *t = ggml_new_tensor_2d(c, type, N0, N1);
    for (int i = 0; i < N; i++) x[i] = draw(lo, hi);
    type_get(type)->encode(x, t->data, N);
    return t;
}

static void decode(const T *t, float *y) { type_get(t->type)->decode(t->data, y, N); }

static void run(T *t, int n_threads) {
    if (ggml_is_error(t)) fail_msg("%s", ggml_last_error());
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 8, false);
    ggml_build_forward_expand(g, t);
    if (ggml_graph_compute_with_ctx(c, g, n_threads) != GGML_STATUS_SUCCESS) fail_msg("%s", ggml_last_error());
}

static bool usable(int type) { return type_get((enum ggml_type) type) && type_get((enum ggml_type) type)->encode; }

// Encoders that search are slow, and exact here all the same: each is tried with few partners.
static bool slow(int type) { return type_get((enum ggml_type) type)->search_only; }

static void check_bytes(const T *got, const float *x, const char *what, const T *a) {
    static uint8_t want[N * 8];
    memset(want, 0, sizeof want);
    type_get(got->type)->encode(x, want, N);
    if (memcmp(want, got->data, ggml_nbytes(got)) != 0)
        fail_msg("%s from %s to %s: bytes differ", what, ggml_type_name(a->type), ggml_type_name(got->type));
}

static void test_cpy(void **s) {
    (void) s;
    static float x[N];
    for (int from = 0; from < GGML_TYPE_COUNT; from++) {
        if (!usable(from)) continue;
        const bool is_small = slow(from);
        T *a = make((enum ggml_type) from, -100, 100);
        decode(a, x);
        for (int to = 0; to < GGML_TYPE_COUNT; to++) {
            if (!usable(to) || (slow(to) && (is_small || from % 7 != 0))) continue;
            T *b = ggml_new_tensor_2d(c, (enum ggml_type) to, N0, N1);
            run(ggml_cpy(c, a, b), 1 + to % 3);
            if (from == to)
                assert_memory_equal(a->data, b->data, ggml_nbytes(b));
            else
                check_bytes(b, x, "cpy", a);
        }
        ggml_reset(c);
    }
}

// Rows of 512 into rows of 256 and 768, and into a tensor whose rows are shorter than a block of the source.
static void test_cpy_shapes(void **s) {
    (void) s;
    static float x[N], y[N];
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q4_0, GGML_TYPE_Q8_0, GGML_TYPE_Q6_K};
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 5; j++) {
            T *a = make(types[i], -1, 1);
            decode(a, x);
            static const int64_t widths[] = {256, 768, N};
            for (int w = 0; w < 3; w++) {
                T *b = ggml_new_tensor_2d(c, types[j], widths[w], N / widths[w]);
                run(ggml_cpy(c, a, b), 2);
                if (types[i] == types[j])
                    assert_memory_equal(a->data, b->data, ggml_nbytes(b));
                else
                    check_bytes(b, x, "cpy of another shape", a);
            }
        }
    }
    T *a = make(GGML_TYPE_Q8_0, -1, 1), *b = ggml_new_tensor_3d(c, GGML_TYPE_F32, 12, 32, 4);
    decode(a, x);
    run(ggml_cpy(c, a, b), 2);
    assert_memory_equal(x, b->data, sizeof x);
    T *p = ggml_permute(c, ggml_new_tensor_3d(c, GGML_TYPE_F32, 32, 4, 12), 1, 2, 0, 3);
    run(ggml_cpy(c, a, p), 2);
    for (int i = 0; i < N; i++) y[i] = ggml_get_f32_nd(p, i % 12, i / 12 % 32, i / 384, 0);
    assert_memory_equal(x, y, sizeof x);
}

static void test_wide(void **s) {
    (void) s;
    static const int64_t v[] = {
        0, -1, INT64_C(9007199254740993), -INT64_C(16777217), INT32_MAX, INT64_C(1) << 40, INT64_MIN, INT64_MAX};
    T *a = ggml_new_tensor_1d(c, GGML_TYPE_I64, 8), *i32 = ggml_cast(c, a, GGML_TYPE_I32),
      *f64 = ggml_cast(c, a, GGML_TYPE_F64);
    memcpy(a->data, v, sizeof v);
    T *back = ggml_cast(c, f64, GGML_TYPE_I64), *up = ggml_cast(c, i32, GGML_TYPE_I64);
    run(i32, 1), run(back, 1), run(up, 2);
    static const int32_t want[] = {0, -1, INT32_MAX, -16777217, INT32_MAX, INT32_MAX, INT32_MIN, INT32_MAX};
    assert_memory_equal(i32->data, want, sizeof want);
    for (int i = 0; i < 8; i++) {
        assert_true(((double *) f64->data)[i] == (double) v[i]);
        assert_true(((int64_t *) up->data)[i] == want[i]);
    }
    assert_true(((int64_t *) back->data)[2] == INT64_C(9007199254740992) && ((int64_t *) back->data)[7] == INT64_MAX);
}

static T *binary(int op, T *a, T *b) {
    return op == 0 ? ggml_add(c, a, b) : op == 1 ? ggml_sub(c, a, b) : op == 2 ? ggml_mul(c, a, b) : ggml_div(c, a, b);
}
static float apply(int op, float a, float b) { return op == 0 ? a + b : op == 1 ? a - b : op == 2 ? a * b : a / b; }

static void test_binary(void **s) {
    (void) s;
    static const enum ggml_type types[] = {GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0,
                                           GGML_TYPE_Q5_1, GGML_TYPE_Q4_K, GGML_TYPE_Q6_K, GGML_TYPE_MXFP4};
    static float x[N], y[N], z[N];
    for (int i = 0; i < 9; i++) {
        for (int j = 0; j < 9; j++) {
            T *a = make(types[i], 1, 3), *b = make(types[j], 1, 3);
            decode(a, x), decode(b, y);
            for (int op = 0; op < 4; op++) {
                for (int k = 0; k < N; k++) z[k] = apply(op, x[k], y[k]);
                T *t = binary(op, a, b);
                run(t, 2);
                assert_int_equal(t->type, types[i]);
                check_bytes(t, z, "arithmetic", b);
            }
            for (int k = 0; k < N; k++) z[k] = x[k] + y[k % N0];
            T *t = ggml_add(c, a, ggml_view_2d(c, b, N0, 1, b->nb[1], 0));
            run(t, 3);
            check_bytes(t, z, "addition of a row", b);
            ggml_reset(c);
        }
    }
}

static void test_rows(void **s) {
    (void) s;
    static float x[N], y[N];
    for (int type = 0; type < GGML_TYPE_COUNT; type++) {
        if (!usable(type)) continue;
        T *src = make(GGML_TYPE_F32, -50, 50), *half = ggml_cast(c, src, GGML_TYPE_F16),
          *ids = ggml_new_tensor_1d(c, GGML_TYPE_I32, N1);
        T *dst = ggml_new_tensor_2d(c, (enum ggml_type) type, N0, N1);
        memcpy(ids->data, (int32_t[N1]){2, 0, 1}, sizeof(int32_t[N1]));
        run(half, 1);
        for (int h = 0; h < 2; h++) {
            T *from = h ? half : src;
            memset(dst->data, 0, ggml_nbytes(dst));
            run(ggml_set_rows(c, dst, from, ids), 3);
            for (int r = 0; r < N1; r++) {  // row r went to ids[r]
                const int at = ((int32_t *) ids->data)[r];
                type_get(from->type)->decode((char *) from->data + (size_t) r * from->nb[1], x + at * N0, N0);
            }
            if ((int) from->type == type)
                decode(dst, y), assert_memory_equal(x, y, sizeof x);
            else
                check_bytes(dst, x, "set_rows", from);
        }
        if (type == GGML_TYPE_I32) continue;  // rows of I32 stay I32
        T *got = ggml_get_rows(c, dst, ids);
        run(got, 2);
        decode(dst, x);
        for (int r = 0; r < N1; r++)
            assert_memory_equal((char *) got->data + (size_t) r * got->nb[1], x + ((int32_t *) ids->data)[r] * N0,
                                N0 * sizeof(float));
        ggml_reset(c);
    }
}

// The later of two rows for one place wins, with any number of threads.
static void test_duplicates(void **s) {
    (void) s;
    for (int n = 1; n <= 5; n++) {
        T *dst = ggml_new_tensor_2d(c, GGML_TYPE_F16, 64, 40), *src = ggml_new_tensor_2d(c, GGML_TYPE_F32, 64, 300);
        T *ids = ggml_new_tensor_1d(c, GGML_TYPE_I64, 300);
        for (int r = 0; r < 300; r++) {
            ((int64_t *) ids->data)[r] = (r * 7) % 40;
            for (int i = 0; i < 64; i++) ((float *) src->data)[r * 64 + i] = (float) r;
        }
        run(ggml_set_rows(c, dst, src, ids), n);
        for (int r = 260; r < 300; r++)
            assert_true(ggml_fp16_to_fp32(((ggml_fp16_t *) dst->data)[(r * 7) % 40 * 64 + 13]) == (float) r);
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {TEST(test_cpy),    TEST(test_cpy_shapes), TEST(test_wide),
                                       TEST(test_binary), TEST(test_rows),       TEST(test_duplicates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
