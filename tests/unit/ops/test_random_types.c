// As test_random.c, for what takes every type: products, rows, copies between types, attention over caches of any kind.
#include "support/random_op.h"

static const enum ggml_type all_types[] = {
    GGML_TYPE_F32,    GGML_TYPE_F16,   GGML_TYPE_BF16,  GGML_TYPE_Q4_0,  GGML_TYPE_Q4_1,  GGML_TYPE_Q5_0, GGML_TYPE_Q5_1,
    GGML_TYPE_Q8_0,   GGML_TYPE_Q2_K,  GGML_TYPE_Q3_K,  GGML_TYPE_Q4_K,  GGML_TYPE_Q5_K,  GGML_TYPE_Q6_K, GGML_TYPE_IQ4_NL,
    GGML_TYPE_IQ4_XS, GGML_TYPE_MXFP4, GGML_TYPE_TQ1_0, GGML_TYPE_TQ2_0, GGML_TYPE_NVFP4, GGML_TYPE_Q1_0, GGML_TYPE_Q2_0,
};
#define N_TYPES (sizeof all_types / sizeof *all_types)

// Rows of any type with room between them, in a permuted piece of memory, and what they hold as numbers.
struct rows {
    T *t;
    float *v;  // [ne3][ne2][ne1][ne0]
};

static struct rows rows(C *c, enum ggml_type type, const int64_t *ne) {
    int axis[3] = {1, 2, 3};
    for (int i = 1; i < 3; i++) {
        const int j = (int) rnd((uint32_t) i + 1), k = axis[i];
        axis[i] = axis[j];
        axis[j] = k;
    }
    int64_t full[4] = {ne[0] + (int64_t) rnd(2) * ggml_blck_size(type), 1, 1, 1};
    int back[4] = {0};
    for (int i = 0; i < 3; i++) full[i + 1] = ne[axis[i]] + rnd(2), back[i + 1] = axis[i];
    T *base = ggml_new_tensor_4d(c, type, full[0], full[1], full[2], full[3]);
    if (base->data) memset(base->data, 0xff, ggml_nbytes(base));
    T *v = ggml_view_4d(c, base, ne[0], ne[axis[0]], ne[axis[1]], ne[axis[2]], base->nb[1], base->nb[2], base->nb[3], 0);
    struct rows r = {ggml_permute(c, v, 0, back[1], back[2], back[3]),
                     malloc(sizeof(float) * (size_t) (ne[0] * ne[1] * ne[2] * ne[3] + 1))};
    assert_false(ggml_is_error(r.t));
    float *at = r.v;
    for (int64_t i3 = 0; i3 < ne[3]; i3++)
        for (int64_t i2 = 0; i2 < ne[2]; i2++)
            for (int64_t i1 = 0; i1 < ne[1]; i1++, at += ne[0]) {
                for (int64_t i = 0; i < ne[0]; i++) at[i] = (float) real();
                if (type == F32) {
                    memcpy(place(r.t, 0, i1, i2, i3), at, (size_t) ne[0] * sizeof(float));
                    continue;
                }
                ggml_quantize_chunk(type, at, place(r.t, 0, i1, i2, i3), 0, 1, ne[0], NULL);
                ggml_get_type_traits(type)->to_float(place(r.t, 0, i1, i2, i3), at, ne[0]);
            }
    return r;
}
static double held(const struct rows *r, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    const int64_t *ne = r->t->ne;
    return (double) r->v[((i3 * ne[2] + i2) * ne[1] + i1) * ne[0] + i0];
}

static void test_products(void **state) {
    CASES(250) {
        C *c = begin();
        const enum ggml_type type = all_types[rnd(N_TYPES)];
        const int64_t k =
            ggml_blck_size(type) * (1 + rnd(ggml_blck_size(type) > 32 ? 3 : 9)) + (ggml_blck_size(type) == 1 ? rnd(40) : 0);
        const int64_t r2 = 1 + rnd(2), r3 = 1 + rnd(2), x = 1 + rnd(2), y = 1 + rnd(2);
        int64_t na[4] = {k, 1 + rnd(70), x, y}, nb[4] = {k, 1 + rnd(40), x * r2, y * r3};
        struct rows a = rows(c, type, na);
        T *b = tensor(c, some_float(), nb, 0, 0), *o = ggml_mul_mat(c, a.t, b);
        now = ggml_type_name(type);
        compute(c, o);
        double error = 0, size = 0;  // activations may be rounded to 8 bits
        EACH(o->ne) {
            double want = 0;
            for (int64_t l = 0; l < k; l++) want += held(&a, l, i0, i2 / r2, i3 / r3) * AT(b, l, i1, i2, i3);
            error += pow(want - AT(o, i0, i1, i2, i3), 2);
            size += want * want;
            n_compared++;
        }
        if (!(error <= size * (ggml_is_quantized(type) ? 5e-4 : 2e-5) + 1e-9))
            fail_msg("mul_mat %s k %d m %d n %d: error %g of %g", now, (int) k, (int) na[1], (int) nb[1], error, size);
        free(a.v);
        ggml_free(c);
    }
}

static void test_rows(void **state) {
    CASES(200) {
        C *c = begin();
        const enum ggml_type type = all_types[rnd(N_TYPES)];
        int64_t ne[4] = {ggml_blck_size(type) * (1 + rnd(3)), 1 + rnd(20), 1 + rnd(3), 1 + rnd(2)},
                ni[4] = {rnd(9), ne[2], ne[3], 1};
        struct rows a = rows(c, type, ne);
        T *ids = tensor(c, rnd(2) ? I32 : I64, ni, 0, 0), *o = ggml_get_rows(c, a.t, ids);
        EACH(ni) put(ids, place(ids, i0, i1, i2, i3), rnd((uint32_t) ne[1]));
        now = "get_rows";
        compute(c, o);
        WANT(o, 0, want = held(&a, i0, (int64_t) AT(ids, i1, i2, i3, 0), i2, i3));
        // any type to floats, also in another shape, and back
        const enum ggml_type to = some_float();
        int64_t flat[4] = {ne[0] * ne[1], ne[2], ne[3], 1};
        T *d = tensor(c, to, rnd(2) ? ne : flat, 0, 0);
        o = ggml_cpy(c, a.t, d);
        now = "cpy from";
        compute(c, o);
        int64_t n = 0;
        WANT(o, 0, want = (double) a.v[n++]);
        if (type != F32 && type != F16 && type != BF16) {
            // what such values become by the same route, row by row
            struct rows e = rows(c, type, ne);
            T *f = tensor(c, F32, ne, ROWS, 0);
            o = ggml_cpy(c, f, e.t);
            now = "cpy to";
            compute(c, o);
            float *row = malloc(sizeof(float) * (size_t) ne[0]), *got = malloc(sizeof(float) * (size_t) ne[0]);
            void *packed = malloc(ggml_row_size(type, ne[0]));
            for (int64_t i3 = 0; i3 < ne[3]; i3++)
                for (int64_t i2 = 0; i2 < ne[2]; i2++)
                    for (int64_t i1 = 0; i1 < ne[1]; i1++) {
                        for (int64_t i = 0; i < ne[0]; i++) row[i] = (float) AT(f, i, i1, i2, i3);
                        ggml_get_type_traits_cpu(type)->from_float(row, packed, ne[0]);
                        assert_memory_equal(packed, place(o, 0, i1, i2, i3), ggml_row_size(type, ne[0]));
                        n_compared++;
                    }
            free(row);
            free(got);
            free(packed);
            free(e.v);
        }
        free(a.v);
        ggml_free(c);
    }
}

static void test_experts(void **state) {
    CASES(120) {
        C *c = begin();
        const enum ggml_type type = all_types[rnd(N_TYPES)];
        const int64_t k = ggml_blck_size(type) * (1 + rnd(3)), n_expert = 1 + rnd(6), n_slot = 1 + rnd(4),
                      n_token = 1 + rnd(40);
        int64_t na[4] = {k, 1 + rnd(40), n_expert, 1}, nb[4] = {k, rnd(2) ? 1 : n_slot, n_token, 1},
                ni[4] = {n_slot, n_token, 1, 1};
        struct rows a = rows(c, type, na);
        T *b = tensor(c, F32, nb, 0, 0), *ids = tensor(c, I32, ni, 0, 0), *o = ggml_mul_mat_id(c, a.t, b, ids);
        EACH(ni) put(ids, place(ids, i0, i1, i2, i3), rnd((uint32_t) n_expert));
        now = "mul_mat_id";
        compute(c, o);
        double error = 0, size = 0;
        EACH(o->ne) {
            double want = 0;
            for (int64_t l = 0; l < k; l++)
                want += held(&a, l, i0, (int64_t) AT(ids, i1, i2, 0, 0), 0) * AT(b, l, i1 % nb[1], i2, 0);
            error += pow(want - AT(o, i0, i1, i2, i3), 2);
            size += want * want;
            n_compared++;
        }
        if (!(error <= size * (ggml_is_quantized(type) ? 5e-4 : 2e-5) + 1e-9))
            fail_msg("mul_mat_id %s: error %g of %g", ggml_type_name(type), error, size);
        free(a.v);
        ggml_free(c);
    }
}

static void test_attention(void **state) {
    CASES(150) {
        C *c = begin();
        static const enum ggml_type kinds[] = {GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_BF16,
                                               GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q5_1};
        const enum ggml_type tk = kinds[rnd(6)], tv = kinds[rnd(6)];
        const int64_t dk = 32 * (1 + rnd(4)), dv = 32 * (1 + rnd(4)), n_kv = 1 + rnd(150), n_q = 1 + rnd(9),
                      kv_heads = 1 + rnd(3), heads = kv_heads * (1 + rnd(3)), batch = 1 + rnd(2);
        int64_t nq[4] = {dk, n_q, heads, batch}, nk[4] = {dk, n_kv, kv_heads, batch}, nv[4] = {dv, n_kv, kv_heads, batch};
        int64_t nm[4] = {n_kv, n_q + rnd(3), 1, rnd(2) ? batch : 1}, ns[4] = {heads, 1, 1, 1};
        struct rows k = rows(c, tk, nk), v = rows(c, tv, nv);
        T *q = tensor(c, F32, nq, ROWS, 0), *mask = rnd(4) ? tensor(c, F16, nm, PLAIN, 0) : NULL,
          *sinks = rnd(3) ? NULL : tensor(c, F32, ns, PLAIN, 0);
        if (mask) EACH(nm)
        if (rnd(3) == 0 || i1 % 4 == 3) put(mask, place(mask, i0, i1, i2, i3), i1 % 4 == 3 && i0 == 0 ? 0 : -INFINITY);
        const double scale = 0.2 + 0.3 * fabs(real()), bias = mask && rnd(2) ? 8 : 0, cap = rnd(3) ? 0 : 5;
        T *o = ggml_flash_attn_ext(c, q, k.t, v.t, mask, (float) scale, (float) bias, (float) cap);
        if (sinks) ggml_flash_attn_ext_add_sinks(o, sinks);
        now = "flash_attn_ext";
        compute(c, o);
        int64_t log2_heads = 1;
        while (2 * log2_heads <= heads) log2_heads *= 2;
        double *s = malloc(sizeof(double) * (size_t) n_kv), error = 0, size = 0;
        for (int64_t b = 0; b < batch; b++)
            for (int64_t iq = 0; iq < n_q; iq++)
                for (int64_t h = 0; h < heads; h++) {
                    const int64_t hk = h / (heads / kv_heads);
                    const double slope =
                        bias == 0        ? 1
                        : h < log2_heads ? pow(pow(2, -bias / (double) log2_heads), (double) h + 1)
                                         : pow(pow(2, -bias / 2 / (double) log2_heads), (double) (2 * (h - log2_heads) + 1));
                    double max = sinks ? AT(sinks, h, 0, 0, 0) : -INFINITY, sum = 0;
                    for (int64_t j = 0; j < n_kv; j++) {
                        double x = 0;
                        for (int64_t i = 0; i < dk; i++) x += AT(q, i, iq, h, b) * held(&k, i, j, hk, b);
                        x *= scale;
                        if (cap > 0) x = cap * tanh(x / cap);
                        s[j] = x + (mask ? slope * AT(mask, j, iq, 0, b % nm[3]) : 0);
                        max = fmax(max, s[j]);
                    }
                    if (sinks) sum += exp(AT(sinks, h, 0, 0, 0) - max);
                    for (int64_t j = 0; j < n_kv && max > -INFINITY; j++) sum += exp(s[j] - max);
                    for (int64_t i = 0; i < dv; i++) {
                        double want = 0;
                        for (int64_t j = 0; j < n_kv && max > -INFINITY; j++)
                            want += exp(s[j] - max) / sum * held(&v, i, j, hk, b);
                        error += pow(want - AT(o, i, h, iq, b), 2);
                        size += want * want;
                        n_compared++;
                    }
                }
        if (!(error <= size * 5e-4 + 1e-9))
            fail_msg("flash_attn_ext %s %s dk %d dv %d kv %d q %d heads %d/%d: error %g of %g", ggml_type_name(tk),
                     ggml_type_name(tv), (int) dk, (int) dv, (int) n_kv, (int) n_q, (int) heads, (int) kv_heads, error,
                     size);
        free(s);
        free(k.v);
        free(v.v);
        ggml_free(c);
    }
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_attention),
    };
    const int status = cmocka_run_group_tests(tests, NULL, NULL);
    print_message("%d elements compared\n", n_compared);
    return status;
}
