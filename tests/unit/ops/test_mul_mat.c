// Products through the public interface: the same bits with any number of threads and columns, by expert as token by token,
// second sources of every type and layout, refusals, and data that lead out of range.
#include "ggml-cpu.h"
#include "ggml.h"

#include "ggml/ext.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct ggml_tensor T;

static uint64_t state = 5;

static float uniform(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float) (state >> 40) / 8388608.0f - 1.0f;
}

static struct ggml_context *context(void) {
    struct ggml_context *c = ggml_init((struct ggml_init_params){.mem_size = 64u << 20});
    assert_non_null(c);
    return c;
}

// Uniform values of a type, by way of its encoder.
static T *filled(struct ggml_context *c, enum ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2, float scale) {
    T *t = ggml_new_tensor_3d(c, type, ne0, ne1, ne2);
    float *x = malloc(sizeof(float) * (size_t) ne0);
    for (int64_t r = 0; r < ne1 * ne2; r++) {
        for (int64_t i = 0; i < ne0; i++) x[i] = uniform() * scale;
        char *to = (char *) t->data + (size_t) r * t->nb[1];
        if (type == GGML_TYPE_F32)
            memcpy(to, x, sizeof(float) * (size_t) ne0);
        else
            ggml_quantize_chunk(type, x, to, 0, 1, ne0, NULL);
    }
    free(x);
    return t;
}

static enum ggml_status compute(struct ggml_context *c, T *y, int threads) {
    struct ggml_cgraph *g = ggml_new_graph(c);
    ggml_build_forward_expand(g, y);
    if (y->data) memset(y->data, 0xff, ggml_nbytes(y));
    return ggml_graph_compute_with_ctx(c, g, threads);
}

static void assert_bits(const T *a, const void *want, const char *what) {
    if (memcmp(a->data, want, ggml_nbytes(a)) != 0) fail_msg("%s: bits differ", what);
}

// Types whose encoder needs no importance and no long search.
static const enum ggml_type types[] = {GGML_TYPE_F32,    GGML_TYPE_F16,   GGML_TYPE_BF16, GGML_TYPE_Q4_0,  GGML_TYPE_Q4_1,
                                       GGML_TYPE_Q5_0,   GGML_TYPE_Q5_1,  GGML_TYPE_Q8_0, GGML_TYPE_Q2_K,  GGML_TYPE_Q3_K,
                                       GGML_TYPE_Q4_K,   GGML_TYPE_Q5_K,  GGML_TYPE_Q6_K, GGML_TYPE_TQ2_0, GGML_TYPE_IQ4_NL,
                                       GGML_TYPE_IQ4_XS, GGML_TYPE_MXFP4, GGML_TYPE_NVFP4};
enum { N_TYPE = sizeof types / sizeof *types };

static void test_threads_and_columns(void **unused) {
    (void) unused;
    for (int i = 0; i < N_TYPE; i++) {
        struct ggml_context *c = context();
        enum { K = 512, M = 83, N = 37 };
        T *a = filled(c, types[i], K, M, 1, 1), *b = filled(c, GGML_TYPE_F32, K, N, 1, 1);
        T *y = ggml_mul_mat(c, a, b);
        assert_int_equal(compute(c, y, 1), GGML_STATUS_SUCCESS);
        void *want = malloc(ggml_nbytes(y));
        memcpy(want, y->data, ggml_nbytes(y));
        for (int threads = 2; threads <= 5; threads++) {
            assert_int_equal(compute(c, y, threads), GGML_STATUS_SUCCESS);
            assert_bits(y, want, ggml_type_name(types[i]));
        }
        for (int n = 0; n < N; n += 5) {
            T *one = ggml_mul_mat(c, a, ggml_view_2d(c, b, K, 1, b->nb[1], (size_t) n * b->nb[1]));
            assert_int_equal(compute(c, one, 2), GGML_STATUS_SUCCESS);
            assert_bits(one, (char *) want + (size_t) n * y->nb[1], ggml_type_name(types[i]));
        }
        free(want);
        ggml_free(c);
    }
}

static void test_by_expert(void **unused) {
    (void) unused;
    for (int i = 0; i < N_TYPE; i++) {
        for (int n_b = 1; n_b <= 3; n_b += 2) {
            struct ggml_context *c = context();
            enum { K = 256, M = 21, EXPERTS = 5, SLOTS = 3, TOKENS = 29 };
            T *as = filled(c, types[i], K, M, EXPERTS, 1), *b = filled(c, GGML_TYPE_F32, K, n_b, TOKENS, 1);
            T *ids = ggml_new_tensor_2d(c, GGML_TYPE_I32, SLOTS, TOKENS);
            for (int k = 0; k < SLOTS * TOKENS; k++)
                ((int32_t *) ids->data)[k] = (k * 7 + k / 5) % 4;  // expert 4 is never chosen
            T *y = ggml_mul_mat_id(c, as, b, ids);
            for (int threads = 1; threads <= 3; threads++) {
                assert_int_equal(compute(c, y, threads), GGML_STATUS_SUCCESS);
                for (int k = 0; k < SLOTS * TOKENS; k += 4) {
                    const int slot = k % SLOTS, token = k / SLOTS;
                    T *a = ggml_view_2d(c, as, K, M, as->nb[1], (size_t) ((int32_t *) ids->data)[k] * as->nb[2]);
                    T *x = ggml_view_2d(c, b, K, 1, b->nb[1], (size_t) (slot % n_b) * b->nb[1] + (size_t) token * b->nb[2]);
                    T *one = ggml_mul_mat(c, a, x);
                    assert_int_equal(compute(c, one, 1), GGML_STATUS_SUCCESS);
                    assert_bits(one, (char *) y->data + (size_t) k * y->nb[1], ggml_type_name(types[i]));
                }
            }
            ggml_free(c);
        }
    }
}

static void test_ids_out_of_range(void **unused) {
    (void) unused;
    static const int32_t bad[] = {-1, 4, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        struct ggml_context *c = context();
        T *as = filled(c, GGML_TYPE_Q4_0, 64, 8, 4, 1), *b = filled(c, GGML_TYPE_F32, 64, 1, 6, 1);
        T *ids = ggml_new_tensor_2d(c, GGML_TYPE_I32, 2, 6);
        memset(ids->data, 0, ggml_nbytes(ids));
        ((int32_t *) ids->data)[7] = bad[i];
        T *y = ggml_mul_mat_id(c, as, b, ids);
        assert_int_equal(compute(c, y, 2), GGML_STATUS_FAILED);
        assert_non_null(strstr(ggml_last_error(), "expert"));
        for (size_t k = 0; k < ggml_nbytes(y); k++) assert_int_equal(((uint8_t *) y->data)[k], 0xff);
        ggml_clear_error();
        ggml_free(c);
    }
}

static double error(const T *y, const T *want) {
    double e = 0, s = 0;
    for (int64_t i = 0; i < ggml_nelements(y); i++) {
        const double a = ((float *) y->data)[i], b = ((float *) want->data)[i];
        if (!(fabs(a) < INFINITY)) return INFINITY;
        e += (a - b) * (a - b);
        s += b * b;
    }
    return e / s;
}

// Sums over a block that half precision could not hold.
static void test_large_activations(void **unused) {
    (void) unused;
    static const enum ggml_type with_min[] = {GGML_TYPE_Q4_1, GGML_TYPE_Q5_1, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K,
                                              GGML_TYPE_Q2_K};
    for (int i = 0; i < 5; i++) {
        struct ggml_context *c = context();
        T *a = filled(c, with_min[i], 512, 40, 1, 1), *b = filled(c, GGML_TYPE_F32, 512, 9, 1, 1);
        for (int64_t k = 0; k < ggml_nelements(b); k++) ((float *) b->data)[k] = 3000.0f;
        T *y = ggml_mul_mat(c, a, b), *exact = ggml_mul_mat(c, a, b);
        assert_true(ggml_prec_set_src(exact, GGML_PREC_F32, 1));
        assert_int_equal(compute(c, y, 2), GGML_STATUS_SUCCESS);
        assert_int_equal(compute(c, exact, 2), GGML_STATUS_SUCCESS);
        assert_true(error(y, exact) < 1e-6);
        ggml_free(c);
    }
}

// The second source in other types and orders: as if it had been copied to F32 first.
static void test_second_source(void **unused) {
    (void) unused;
    static const enum ggml_type second[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0};
    for (int i = 0; i < N_TYPE; i += 2) {
        for (int j = 0; j < 4; j++) {
            for (int order = 0; order < (second[j] == GGML_TYPE_Q8_0 ? 1 : 2); order++) {
                struct ggml_context *c = context();
                enum { K = 256, M = 19, N = 7 };
                T *a = filled(c, types[i], K, M, 1, 1);
                T *b = order ? ggml_transpose(c, filled(c, second[j], N, K, 1, 1)) : filled(c, second[j], K, N, 1, 1);
                T *copy = ggml_new_tensor_2d(c, GGML_TYPE_F32, K, N);
                for (int64_t n = 0; n < N; n++) {
                    for (int64_t k = 0; k < K; k++) {
                        float row[K];
                        char *p = (char *) b->data + (size_t) n * b->nb[1];
                        if (!order)
                            ggml_get_type_traits(second[j])->to_float ? ggml_get_type_traits(second[j])->to_float(p, row, K)
                                                                      : (void) memcpy(row, p, sizeof row);
                        else if (second[j] == GGML_TYPE_F32)
                            memcpy(row + k, p + (size_t) k * b->nb[0], 4);
                        else
                            ggml_get_type_traits(second[j])->to_float(p + (size_t) k * b->nb[0], row + k, 1);
                        ((float *) copy->data)[n * K + k] = row[k];
                    }
                }
                T *y = ggml_mul_mat(c, a, b), *want = ggml_mul_mat(c, a, copy);
                assert_int_equal(compute(c, y, 2), GGML_STATUS_SUCCESS);
                assert_int_equal(compute(c, want, 1), GGML_STATUS_SUCCESS);
                assert_bits(y, want->data, ggml_type_name(second[j]));
                ggml_free(c);
            }
        }
    }
}

static void refuse(T *y, const char *sentence) {
    assert_true(ggml_is_error(y));
    assert_non_null(strstr(ggml_last_error(), sentence));
    ggml_clear_error();
}

static void test_refusals(void **unused) {
    (void) unused;
    struct ggml_context *c = context();
    T *a = filled(c, GGML_TYPE_F32, 64, 8, 2, 1), *b = filled(c, GGML_TYPE_F32, 64, 5, 2, 1);
    T *short_b = filled(c, GGML_TYPE_F32, 32, 5, 2, 1), *three = filled(c, GGML_TYPE_F32, 64, 5, 3, 1);
    refuse(ggml_mul_mat(c, a, short_b), "64");
    refuse(ggml_mul_mat(c, a, three), "does not divide");
    refuse(ggml_mul_mat(c, ggml_transpose(c, filled(c, GGML_TYPE_F32, 8, 64, 2, 1)), b), "ggml_cont");
    refuse(ggml_out_prod(c, a, b), "rows");
    T *ids = ggml_new_tensor_2d(c, GGML_TYPE_I32, 1, 2);
    refuse(ggml_mul_mat_id(c, a, b, ggml_new_tensor_2d(c, GGML_TYPE_F32, 5, 2)), "I32");
    refuse(ggml_mul_mat_id(c, a, b, ids), "divide");
    refuse(ggml_mul_mat_id(c, a, three, ids), "tokens");
    assert_false(ggml_prec_set_src(b, GGML_PREC_F32, 1));
    assert_false(ggml_prec_set_acc(b, GGML_PREC_F32));
    T *y = ggml_mul_mat(c, a, b);
    assert_false(ggml_prec_set_src(y, GGML_PREC_F32, 2));
    assert_true(ggml_prec_set_acc(y, GGML_PREC_F32));
    ggml_clear_error();
    ggml_free(c);
}

static void test_out_prod(void **unused) {
    (void) unused;
    static const enum ggml_type kinds[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K};
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 4; j++) {
            struct ggml_context *c = context();
            enum { N = 256, M = 64, K = 21 };
            T *a = filled(c, kinds[i], N, K, 2, 1), *b = filled(c, kinds[j], M, K, 4, 1);
            T *y = ggml_out_prod(c, a, b);
            assert_int_equal(compute(c, y, 1), GGML_STATUS_SUCCESS);
            float *want = malloc(ggml_nbytes(y)), ra[N], rb[M];
            memset(want, 0, ggml_nbytes(y));
            for (int64_t s = 0; s < 4; s++) {
                for (int64_t k = 0; k < K; k++) {
                    const char *pa = (char *) a->data + (size_t) k * a->nb[1] + (size_t) (s / 2) * a->nb[2];
                    const char *pb = (char *) b->data + (size_t) k * b->nb[1] + (size_t) s * b->nb[2];
                    if (kinds[i] == GGML_TYPE_F32)
                        memcpy(ra, pa, sizeof ra);
                    else
                        ggml_get_type_traits(kinds[i])->to_float(pa, ra, N);
                    if (kinds[j] == GGML_TYPE_F32)
                        memcpy(rb, pb, sizeof rb);
                    else
                        ggml_get_type_traits(kinds[j])->to_float(pb, rb, M);
                    for (int64_t m = 0; m < M; m++) {
                        float *w = want + (s * M + m) * N;
                        for (int64_t n = 0; n < N; n++) w[n] = fmaf(ra[n], rb[m], w[n]);
                    }
                }
            }
            assert_bits(y, want, "out_prod");
            assert_int_equal(compute(c, y, 3), GGML_STATUS_SUCCESS);
            assert_bits(y, want, "out_prod, 3 threads");
            free(want);
            ggml_free(c);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_and_columns),
        cmocka_unit_test(test_by_expert),
        cmocka_unit_test(test_ids_out_of_range),
        cmocka_unit_test(test_large_activations),
        cmocka_unit_test(test_second_source),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_out_prod),
    };
    setenv("GGML_OVERSUBSCRIBE", "1", 1);
    ggml_log_set(NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
