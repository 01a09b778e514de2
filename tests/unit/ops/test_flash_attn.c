// Attention: against double precision for every type and head size, with masks and with block tables; equal bits whatever
// the threads, the neighbours, the place of the blocks and the ISA level; and what is refused.
#include "test.h"

#include "ggml-cpu.h"
#include "kern/isa.h"
#include "ops/op.h"
#include "type/type.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct ggml_context *c;

static int begin(void **state) {
    (void) state;
    quiet();
    ggml_clear_error();
    c = ggml_init((struct ggml_init_params){.mem_size = 96 << 20});
    return 0;
}

static int end(void **state) {
    (void) state;
    ggml_free(c);
    return 0;
}

static uint64_t seed = 1;

static float uniform(float lo, float hi) {
    uint64_t z = (seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return lo + (hi - lo) * (float) ((z ^ (z >> 31)) >> 40) / 16777216.0f;
}

static struct ggml_tensor *filled(enum ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3, float amplitude) {
    struct ggml_tensor *t = ggml_new_tensor_4d(c, type, ne0, ne1, ne2, ne3);
    assert_false(ggml_is_error(t));
    float *x = malloc((size_t) ne0 * sizeof(float));
    for (int64_t row = 0; row < ggml_nrows(t); row++) {
        for (int64_t i = 0; i < ne0; i++) x[i] = uniform(-amplitude, amplitude);
        type_get(type)->encode(x, (char *) t->data + row * (int64_t) t->nb[1], ne0);
    }
    free(x);
    return t;
}

static void run(struct ggml_tensor *y, int n_threads) {
    assert_false(ggml_is_error(y));
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 16, false);
    ggml_build_forward_expand(g, y);
    assert_int_equal(ggml_graph_compute_with_ctx(c, g, n_threads), GGML_STATUS_SUCCESS);
}

// ---- the reference
// -------------------------------------------------------------------------------------------------------------

struct params {
    float scale, max_bias, cap;
    int thin;  // a mask hides every thin-th position too; 0: no mask
};

static double slope_of(double max_bias, int64_t n_head, int64_t h) {
    if (max_bias <= 0) return 1;
    const int64_t n2 = (int64_t) pow(2, floor(log2((double) n_head)));
    return h < n2 ? pow(2, -max_bias * (double) (h + 1) / (double) n2)
                  : pow(2, -max_bias / 2 * (double) (2 * (h - n2) + 1) / (double) n2);
}

static void decode_row(const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3, float *out) {
    type_get(t->type)->decode(
        (const char *) t->data + i1 * (int64_t) t->nb[1] + i2 * (int64_t) t->nb[2] + i3 * (int64_t) t->nb[3], out, t->ne[0]);
}

// One output row in double precision. bias[j]: -INFINITY where the key is not seen.
static void reference(const struct ggml_tensor *q, const struct ggml_tensor *k, const struct ggml_tensor *v,
                      const struct ggml_tensor *sinks, const struct params *p, const double *bias, int64_t i, int64_t h,
                      int64_t i3, double *out) {
    const int64_t d = k->ne[0], dv = v->ne[0], n = k->ne[1];
    float *row = malloc((size_t) (d > dv ? d : dv) * sizeof(float));
    double *s = malloc((size_t) n * sizeof(double)), top = -INFINITY, sum = 0;
    const float *x = (const float *) (const void *) ((const char *) q->data + i * (int64_t) q->nb[1] +
                                                     h * (int64_t) q->nb[2] + i3 * (int64_t) q->nb[3]);
    for (int64_t j = 0; j < n; j++) {
        decode_row(k, j, h / (q->ne[2] / k->ne[2]), i3 / (q->ne[3] / k->ne[3]), row);
        double dot = 0;
        for (int64_t e = 0; e < d; e++) dot += (double) x[e] * (double) row[e];
        dot *= (double) p->scale;
        if (p->cap > 0) dot = (double) p->cap * tanh(dot / (double) p->cap);
        s[j] = bias[j] == -INFINITY ? -INFINITY : dot + slope_of((double) p->max_bias, q->ne[2], h) * bias[j];
        if (s[j] > top) top = s[j];
    }
    const double sink = sinks ? (double) ((const float *) sinks->data)[h] : -INFINITY;
    if (sink > top && top > -INFINITY) top = sink;
    memset(out, 0, (size_t) dv * sizeof(double));
    for (int64_t j = 0; j < n && top > -INFINITY; j++) {
        if (s[j] == -INFINITY) continue;
        const double w = exp(s[j] - top);
        sum += w;
        decode_row(v, j, h / (q->ne[2] / v->ne[2]), i3 / (q->ne[3] / v->ne[3]), row);
        for (int64_t e = 0; e < dv; e++) out[e] += w * (double) row[e];
    }
    if (sink > -INFINITY) sum += exp(sink - top);
    for (int64_t e = 0; e < dv && sum > 0; e++) out[e] /= sum;
    free(row);
    free(s);
}

static double mask_value(const struct ggml_tensor *m, int64_t j, int64_t i, int64_t h, int64_t i3) {
    if (!m) return 0;
    const char *at = (const char *) m->data + j * (int64_t) m->nb[0] + i * (int64_t) m->nb[1] +
                     h % m->ne[2] * (int64_t) m->nb[2] + i3 % m->ne[3] * (int64_t) m->nb[3];
    return (double) (m->type == GGML_TYPE_F16 ? ggml_fp16_to_fp32(*(const ggml_fp16_t *) (const void *) at)
                                              : *(const float *) (const void *) at);
}

static void expect(const struct ggml_tensor *y, const struct params *p) {
    const struct ggml_tensor *q = y->src[0], *k = y->src[1], *v = y->src[2];
    double *bias = malloc((size_t) k->ne[1] * sizeof(double)), *want = malloc((size_t) v->ne[0] * sizeof(double)), error = 0,
           power = 0;
    for (int64_t i3 = 0; i3 < q->ne[3]; i3++)
        for (int64_t i = 0; i < q->ne[1]; i++)
            for (int64_t h = 0; h < q->ne[2]; h++) {
                for (int64_t j = 0; j < k->ne[1]; j++) bias[j] = mask_value(y->src[3], j, i, h, i3);
                reference(q, k, v, y->src[4], p, bias, i, h, i3, want);
                const float *have = (const float *) y->data + ((i3 * q->ne[1] + i) * q->ne[2] + h) * v->ne[0];
                for (int64_t e = 0; e < v->ne[0]; e++) {
                    assert_true(isfinite(have[e]));
                    error += pow((double) have[e] - want[e], 2);
                    power += pow(want[e], 2);
                }
            }
    free(bias);
    free(want);
    if (error > 1e-11 * power)
        fail_msg("%s/%s, sizes %d and %d: nmse %g", ggml_type_name(k->type), ggml_type_name(v->type), (int) k->ne[0],
                 (int) v->ne[0], error / power);
}

// A mask with holes and biases: row i sees key j if (7 i + 3 j) mod 5 is not 0, and none of keys 64 .. 127 if i is odd.
static struct ggml_tensor *make_mask(enum ggml_type type, int64_t n_kv, int64_t n_q, int64_t ne2, int64_t ne3) {
    struct ggml_tensor *m = ggml_new_tensor_4d(c, type, n_kv, n_q, ne2, ne3);
    for (int64_t at = 0; at < ggml_nelements(m); at++) {
        const int64_t j = at % n_kv, i = at / n_kv % n_q;
        const bool seen = (7 * i + 3 * j + at / n_kv / n_q) % 5 != 0 && !(i % 2 == 1 && j >= 64 && j < 128);
        const float x = seen ? uniform(-1, 1) : -INFINITY;
        if (type == GGML_TYPE_F16)
            ((ggml_fp16_t *) m->data)[at] = ggml_fp32_to_fp16(x);
        else
            ((float *) m->data)[at] = x;
    }
    return m;
}

static const enum ggml_type kv_types[] = {GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_BF16, GGML_TYPE_Q8_0,  GGML_TYPE_Q4_0,
                                          GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_IQ4_NL};
enum { N_TYPES = sizeof kv_types / sizeof *kv_types };
static const int sizes[][2] = {{40, 40},   {64, 64},   {80, 80},   {96, 96}, {112, 112}, {128, 128},
                               {192, 128}, {256, 256}, {576, 512}, {7, 3},   {64, 200}};

static bool fits(enum ggml_type type, int64_t d) {
    return type_get(type) && type_get(type)->encode && d % type_get(type)->block == 0;
}

static void test_types_and_sizes(void **state) {
    (void) state;
    for (int s = 0; s < (int) (sizeof sizes / sizeof *sizes); s++)
        for (int k = 0; k < N_TYPES; k++) {
            const enum ggml_type tk = kv_types[k], tv = kv_types[(k + s) % N_TYPES];
            const int64_t d = sizes[s][0], dv = sizes[s][1];
            if (!fits(tk, d) || !fits(tv, dv)) continue;
            struct ggml_tensor *q = filled(GGML_TYPE_F32, d, 3, 4, 1, 2), *kk = filled(tk, d, 70, 2, 1, 2),
                               *vv = filled(tv, dv, 70, 2, 1, 2);
            const struct params p = {1.0f / sqrtf((float) d), 0, 0, 0};
            struct ggml_tensor *y = ggml_flash_attn_ext(c, q, kk, vv, make_mask(GGML_TYPE_F16, 70, 3, 1, 1), p.scale, 0, 0);
            run(y, 1 + k % 3);
            expect(y, &p);
            ggml_reset(c);
        }
}

static void test_options(void **state) {
    (void) state;
    const struct params list[] = {{0.125f, 0, 0, 0}, {0.125f, 8, 0, 0}, {0.125f, 0, 5, 0}, {0.125f, 4, 15, 0}};
    for (int i = 0; i < 16; i++) {
        const struct params *p = &list[i % 4];
        const bool heads = i & 4, batch = i & 8;
        struct ggml_tensor *q = filled(GGML_TYPE_F32, 64, 5, 6, 2, 2),
                           *k = filled(GGML_TYPE_F16, 64, 300, 3, batch ? 2 : 1, 2);
        struct ggml_tensor *v = filled(GGML_TYPE_F16, 64, 300, 1, 2, 2);  // V with other heads than K
        struct ggml_tensor *m = make_mask(i % 3 ? GGML_TYPE_F16 : GGML_TYPE_F32, 300, 5, heads ? 6 : 1, batch ? 2 : 1);
        struct ggml_tensor *y = ggml_flash_attn_ext(c, q, k, v, m, p->scale, p->max_bias, p->cap);
        if (i % 2) ggml_flash_attn_ext_add_sinks(y, filled(GGML_TYPE_F32, 6, 1, 1, 1, 3));
        run(y, 1 + i % 5);
        expect(y, p);
        ggml_reset(c);
    }
}

static void test_views(void **state) {
    (void) state;
    // A cache with the heads of a cell beside each other, seen through a permutation; queries likewise.
    struct ggml_tensor *q = ggml_permute(c, filled(GGML_TYPE_F32, 64, 4, 9, 1, 2), 0, 2, 1, 3);
    struct ggml_tensor *k = ggml_permute(c, filled(GGML_TYPE_Q8_0, 64, 2, 200, 1, 2), 0, 2, 1, 3);
    struct ggml_tensor *v = ggml_permute(c, filled(GGML_TYPE_F16, 64, 2, 200, 1, 2), 0, 2, 1, 3);
    const struct params p = {0.125f, 0, 0, 0};
    struct ggml_tensor *y = ggml_flash_attn_ext(c, q, k, v, make_mask(GGML_TYPE_F16, 256, 16, 1, 1), p.scale, 0, 0);
    run(y, 2);
    expect(y, &p);
    assert_int_equal(y->ne[0], 64);
    assert_int_equal(y->ne[1], 4);
    assert_int_equal(y->ne[2], 9);
}

static void test_nothing_seen(void **state) {
    (void) state;
    struct ggml_tensor *q = filled(GGML_TYPE_F32, 32, 2, 1, 1, 2), *k = filled(GGML_TYPE_F16, 32, 65, 1, 1, 2),
                       *v = filled(GGML_TYPE_F16, 32, 65, 1, 1, 2);
    struct ggml_tensor *m = make_mask(GGML_TYPE_F32, 65, 2, 1, 1);
    for (int j = 0; j < 65; j++) ((float *) m->data)[j] = -INFINITY;
    struct ggml_tensor *y = ggml_flash_attn_ext(c, q, k, v, m, 1, 0, 0);
    run(y, 1);
    for (int i = 0; i < 32; i++) assert_true(((float *) y->data)[i] == 0.0f);
    assert_true(((float *) y->data)[32] != 0.0f);
}

static void test_large_scores(void **state) {
    (void) state;
    // Norms of 2000: scores far outside the half range, and weights still right.
    struct ggml_tensor *q = filled(GGML_TYPE_F32, 128, 2, 2, 1, 300), *k = filled(GGML_TYPE_F16, 128, 130, 2, 1, 300),
                       *v = filled(GGML_TYPE_F16, 128, 130, 2, 1, 1);
    struct ggml_tensor *y = ggml_flash_attn_ext(c, q, k, v, NULL, 1.0f / sqrtf(128), 0, 0);
    run(y, 2);
    for (int64_t i = 0; i < ggml_nelements(y); i++) assert_true(isfinite(((float *) y->data)[i]));
}

static void test_nan_shows(void **state) {
    (void) state;
    struct ggml_tensor *q = filled(GGML_TYPE_F32, 32, 3, 1, 1, 2), *k = filled(GGML_TYPE_F32, 32, 65, 1, 1, 2),
                       *v = filled(GGML_TYPE_F32, 32, 65, 1, 1, 2);
    ((float *) q->data)[32 + 5] = NAN;
    run(ggml_flash_attn_ext(c, q, k, v, NULL, 1, 0, 0), 1);
    struct ggml_tensor *y = ggml_flash_attn_ext(c, q, k, v, NULL, 1, 0, 0);
    run(y, 1);
    assert_true(isfinite(((float *) y->data)[0]));
    assert_true(isnan(((float *) y->data)[32]));
    assert_true(isfinite(((float *) y->data)[64]));
}

// ---- block tables
// ------------------------------------------------------------------------------------------------------------

// A cache of three sequences whose blocks lie scattered; cells that hold nothing are NaN.
enum { D = 48, DV = 80, HEADS = 6, KV_HEADS = 2, N_SLOT = 3, N_BLOCK = 22, CELLS = 64 * 70 };
static const int length[N_SLOT] = {1337, 64, 300};

struct cache {
    enum ggml_type type;
    int first;  // physical block order: block i of all is first + i * 29 mod 70
    struct ggml_tensor *k, *v, *table;
    float *rows[N_SLOT][2];  // K and V rows [position][head][size] as written
};

static bool exists(int slot, int position) { return position < length[slot] && position % 97 != 13; }

static float content(int slot, int what, int position, int i) {
    uint32_t x =
        (uint32_t) slot * 7919u + (uint32_t) what * 104729u + (uint32_t) position * 1299721u + (uint32_t) i * 15485863u;
    x = (x ^ (x >> 15)) * 0x2c1b3c6du;
    x = (x ^ (x >> 12)) * 0x297a2d39u;
    return (float) (x >> 8) / 8388608.0f - 1.0f;
}

static void put(struct ggml_tensor *t, int cell, int slot, int what, int position) {
    float x[256];
    for (int h = 0; h < KV_HEADS; h++) {
        for (int i = 0; i < t->ne[0]; i++) x[i] = 2 * content(slot, what, position, h * 1000 + i);
        type_get(t->type)->encode(x, (char *) t->data + cell * (int64_t) t->nb[1] + h * (int64_t) t->nb[2], t->ne[0]);
    }
}

// even: head sizes that kernels take as they lie in the cache (D, DV else).
static struct cache make_cache(enum ggml_type type, int first, bool even) {
    struct cache x = {.type = type, .first = first};
    const bool block = type_get(type)->block > 1;
    x.k = ggml_permute(c, ggml_new_tensor_3d(c, type, even || block ? 64 : D, KV_HEADS, CELLS), 0, 2, 1, 3);
    x.v = ggml_new_tensor_3d(c, type, even ? 128 : block ? 96 : DV, CELLS, KV_HEADS);
    x.table = ggml_new_tensor_3d(c, GGML_TYPE_I32, 3, N_BLOCK, N_SLOT);
    memset(x.k->view_src ? x.k->view_src->data : x.k->data, 0xff, ggml_nbytes(x.k));
    memset(x.v->data, 0xff, ggml_nbytes(x.v));
    int n = 0;
    for (int s = 0; s < N_SLOT; s++)
        for (int b = 0; b < N_BLOCK; b++) {
            int32_t *entry = (int32_t *) x.table->data + 3 * (s * N_BLOCK + b);
            entry[0] = -1, entry[1] = entry[2] = 0;
            if (b * 64 >= length[s]) continue;
            entry[0] = (first + n++ * 29) % 70;
            uint64_t set = 0;
            for (int j = 0; j < 64; j++) {
                if (!exists(s, b * 64 + j)) continue;
                set |= 1ull << j;
                put(x.k, entry[0] * 64 + j, s, 0, b * 64 + j);
                put(x.v, entry[0] * 64 + j, s, 1, b * 64 + j);
            }
            entry[1] = (int32_t) (uint32_t) set, entry[2] = (int32_t) (uint32_t) (set >> 32);
        }
    return x;
}

struct query {
    int slot, position, lo, hi;
};

static struct ggml_tensor *query_rows(const struct cache *x, const struct query *list, int n) {
    struct ggml_tensor *q = ggml_new_tensor_3d(c, GGML_TYPE_F32, x->k->ne[0], n, HEADS);
    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < n; i++)
            for (int e = 0; e < q->ne[0]; e++)
                ((float *) q->data)[(h * n + i) * q->ne[0] + e] =
                    2 * content(list[i].slot, 2, list[i].position, h * 1000 + e);
    return q;
}

// Over cells: all that the table shows, but for every thin-th position.
static struct ggml_tensor *thin_mask(const struct cache *x, const struct query *list, int n, int thin) {
    struct ggml_tensor *m = ggml_new_tensor_2d(c, GGML_TYPE_F32, CELLS, n);
    float *row = m->data;
    for (int i = 0; i < n; i++, row += CELLS)
        for (int j = 0; j < CELLS; j++) {
            row[j] = -INFINITY;
            for (int b = 0; b < N_BLOCK; b++) {
                const int32_t *entry = (const int32_t *) x->table->data + 3 * (list[i].slot * N_BLOCK + b);
                if (entry[0] == j / 64 && (b * 64 + j % 64) % thin) row[j] = 0.0f;
            }
        }
    return m;
}

static struct ggml_tensor *attend_tables(const struct cache *x, const struct query *list, int n, const struct params *p,
                                         int n_threads) {
    struct ggml_tensor *y =
        ggml_flash_attn_ext(c, query_rows(x, list, n), x->k, x->v, p->thin ? thin_mask(x, list, n, p->thin) : NULL, p->scale,
                            p->max_bias, p->cap);
    struct ggml_tensor *query = ggml_new_tensor_2d(c, GGML_TYPE_I32, 4, n);
    memcpy(query->data, list, (size_t) n * sizeof *list);
    assert_true(ggml_flash_attn_ext_set_blocks(y, query, x->table));
    run(y, n_threads);
    return y;
}

// The same with a mask over one sequence laid out in order.
static struct ggml_tensor *attend_mask(const struct cache *x, const struct query *list, int n, const struct params *p,
                                       int n_threads) {
    const int slot = list[0].slot, len = length[slot];
    struct ggml_tensor *k = ggml_new_tensor_3d(c, x->type, x->k->ne[0], len, KV_HEADS),
                       *v = ggml_new_tensor_3d(c, x->type, x->v->ne[0], len, KV_HEADS);
    struct ggml_tensor *m = ggml_new_tensor_2d(c, GGML_TYPE_F32, len, n);
    for (int j = 0; j < len; j++) {
        put(k, j, slot, 0, j);
        put(v, j, slot, 1, j);
        for (int i = 0; i < n; i++) {
            const bool seen = exists(slot, j) && j >= list[i].lo && j < list[i].hi && !(p->thin && j % p->thin == 0);
            ((float *) m->data)[i * len + j] = !seen             ? -INFINITY
                                               : p->max_bias > 0 ? -fabsf((float) (list[i].position - j))
                                                                 : 0.0f;
        }
    }
    struct ggml_tensor *y = ggml_flash_attn_ext(c, query_rows(x, list, n), k, v, m, p->scale, p->max_bias, p->cap);
    run(y, n_threads);
    return y;
}

static void assert_same(const struct ggml_tensor *a, int64_t ia, const struct ggml_tensor *b, int64_t ib, int64_t n) {
    const size_t row = (size_t) (a->ne[0] * a->ne[1]);
    assert_memory_equal((const float *) a->data + (size_t) ia * row, (const float *) b->data + (size_t) ib * row,
                        (size_t) n * row * sizeof(float));
}

// Causal, windowed, chunked, symmetric and unlimited queries of slot 0, at its end.
enum { N_LIST = 37 };
static void make_list(struct query *list, int slot) {
    for (int i = 0; i < N_LIST; i++) {
        const int p = length[slot] - N_LIST + i;
        const struct query kinds[] = {{slot, p, 0, p + 1},
                                      {slot, p, p - 99, p + 1},
                                      {slot, p, p / 128 * 128, p + 1},
                                      {slot, p, p - 50, p + 51},
                                      {slot, p, -5, 1 << 30}};
        list[i] = kinds[slot == 0 ? i / 8 : 0];
    }
}

static const struct params plain = {0.15f, 0, 0, 0}, biased = {0.15f, 8, 20, 0}, thinned = {0.15f, 0, 0, 3};

static void test_tables_equal_mask(void **state) {
    (void) state;
    for (int t = 0; t < 8; t++)
        for (int slot = 0; slot < N_SLOT; slot++) {
            const struct cache x = make_cache(kv_types[t % 4], 5, t >= 4);
            struct query list[N_LIST];
            make_list(list, slot);
            for (int k = 0; k < 3; k++) {
                const struct params *p = k == 2 ? &thinned : k ? &biased : &plain;
                struct ggml_tensor *a = attend_tables(&x, list, N_LIST, p, 2), *b = attend_mask(&x, list, N_LIST, p, 3);
                expect(b, p);
                assert_same(a, 0, b, 0, N_LIST);
            }
            ggml_reset(c);
        }
}

static void test_same_bits(void **state) {
    (void) state;
    for (int t = 0; t < 8; t++) {
        const struct cache x = make_cache(kv_types[t % 4], 0, t >= 4), moved = make_cache(kv_types[t % 4], 33, t >= 4);
        struct query list[N_LIST], mixed[2 * N_LIST];
        make_list(list, 0);
        struct ggml_tensor *all = attend_tables(&x, list, N_LIST, &plain, 1);
        const int threads[] = {2, 3, 5};
        for (int i = 0; i < 3; i++) assert_same(all, 0, attend_tables(&x, list, N_LIST, &plain, threads[i]), 0, N_LIST);
        assert_same(all, 0, attend_tables(&moved, list, N_LIST, &plain, 2), 0, N_LIST);
        for (int i = 0; i < N_LIST; i += 3) assert_same(all, i, attend_tables(&x, &list[i], 1, &plain, 1 + i % 3), 0, 1);
        for (int i = 0; i + 7 < N_LIST; i += 7) assert_same(all, i, attend_tables(&x, &list[i], 7, &plain, 2), 0, 7);
        for (int i = 0; i < N_LIST; i++) {  // between rows of another sequence
            mixed[2 * i] = list[i];
            mixed[2 * i + 1] = (struct query){1 + i % 2, i, 0, i + 1};
        }
        struct ggml_tensor *y = attend_tables(&moved, mixed, 2 * N_LIST, &plain, 5);
        for (int i = 0; i < N_LIST; i++) assert_same(all, i, y, 2 * i, 1);
        ggml_reset(c);
    }
}

// A later position's infinite value must not reach those who don't see it, and the result is that of a query by itself.
static void test_unseen_infinity(void **state) {
    (void) state;
    struct cache x = make_cache(GGML_TYPE_F32, 0, false);
    struct query list[N_LIST];
    make_list(list, 0);
    for (int i = 0; i < N_LIST; i++) list[i].lo = 0, list[i].hi = list[i].position + 1;
    const int32_t *entry = (const int32_t *) x.table->data + 3 * (list[21].position / 64);
    float *v = (float *) x.v->data + (entry[0] * 64 + list[21].position % 64) * x.v->ne[0];
    v[3] = INFINITY;
    struct ggml_tensor *all = attend_tables(&x, list, N_LIST, &plain, 2);
    for (int i = 0; i < N_LIST; i++) {
        assert_same(all, i, attend_tables(&x, &list[i], 1, &plain, 2), 0, 1);
        assert_int_equal(isfinite(((const float *) all->data)[i * HEADS * x.v->ne[0] + 3]) != 0, i < 21);
    }
}

static void test_levels_agree(void **state) {
    (void) state;
    const enum isa best = isa_active();
    for (int t = 0; t < 8; t++) {
        const struct cache x = make_cache(kv_types[t % 4], 0, t >= 4);
        struct query list[N_LIST];
        make_list(list, 0);
        assert_true(isa_pin(ISA_scalar));
        struct ggml_tensor *oracle = attend_tables(&x, list, N_LIST, &biased, 2);
        for (int i = 1; i < ISA_COUNT; i++) {
            if (!isa_pin((enum isa) i)) continue;
            assert_same(oracle, 0, attend_tables(&x, list, N_LIST, &biased, 2), 0, N_LIST);
            for (int k = 0; k < N_LIST; k += 11) assert_same(oracle, k, attend_tables(&x, &list[k], 1, &biased, 2), 0, 1);
        }
        isa_pin(best);
        ggml_reset(c);
    }
}

// Long enough for several windows of stripes with many rows.
static void test_deep_decode(void **state) {
    (void) state;
    struct ggml_tensor *q = filled(GGML_TYPE_F32, 128, 5, 32, 1, 2), *k = filled(GGML_TYPE_F16, 128, 6000, 1, 1, 1),
                       *v = filled(GGML_TYPE_F16, 128, 6000, 1, 1, 1);
    const struct params p = {0.1f, 0, 0, 0};
    struct ggml_tensor *first = NULL;
    for (int n = 1; n <= 5; n += 2) {
        struct ggml_tensor *y = ggml_flash_attn_ext(c, q, k, v, NULL, p.scale, 0, 0);
        run(y, n);
        if (first)
            assert_memory_equal(first->data, y->data, ggml_nbytes(y));
        else
            first = y;
    }
}

// ---- refusals
// ----------------------------------------------------------------------------------------------------------------

static struct ggml_tensor *of(enum ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3) {
    return ggml_new_tensor_4d(c, type, ne0, ne1, ne2, ne3);
}

static void refuse(struct ggml_tensor *t, const char *sentence) {
    assert_true(ggml_is_error(t));
    assert_error(sentence);
}

static void test_refused(void **state) {
    (void) state;
    const enum ggml_type f32 = GGML_TYPE_F32, f16 = GGML_TYPE_F16;
    struct ggml_tensor *q = of(f32, 64, 5, 6, 2), *k = of(f16, 64, 70, 3, 2), *v = of(f16, 32, 70, 3, 2);
    refuse(ggml_flash_attn_ext(c, NULL, k, v, NULL, 1, 0, 0), "source 0 is missing");
    refuse(ggml_flash_attn_ext(c, of(f16, 64, 5, 6, 2), k, v, NULL, 1, 0, 0), "q must be F32");
    refuse(ggml_flash_attn_ext(c, ggml_transpose(c, of(f32, 5, 64, 6, 2)), k, v, NULL, 1, 0, 0), "q must be F32");
    refuse(ggml_flash_attn_ext(c, q, of(f16, 32, 70, 3, 2), v, NULL, 1, 0, 0), "head size 64, k has 32");
    refuse(ggml_flash_attn_ext(c, q, k, of(f16, 32, 71, 3, 2), NULL, 1, 0, 0), "70 positions, v has 71");
    refuse(ggml_flash_attn_ext(c, q, of(f16, 64, 70, 4, 2), v, NULL, 1, 0, 0), "dimension 2");
    refuse(ggml_flash_attn_ext(c, q, k, of(f16, 32, 70, 3, 3), NULL, 1, 0, 0), "dimension 3");
    refuse(ggml_flash_attn_ext(c, q, of(GGML_TYPE_I32, 64, 70, 3, 2), v, NULL, 1, 0, 0), "k is i32");
    refuse(ggml_flash_attn_ext(c, q, k, of(GGML_TYPE_F64, 32, 70, 3, 2), NULL, 1, 0, 0), "v is f64");
    refuse(ggml_flash_attn_ext(c, q, k, ggml_transpose(c, of(f16, 70, 32, 3, 2)), NULL, 1, 0, 0),
           "rows of v are not contiguous");
    refuse(ggml_flash_attn_ext(c, q, k, v, of(GGML_TYPE_I32, 70, 5, 1, 1), 1, 0, 0), "the mask is i32");
    refuse(ggml_flash_attn_ext(c, q, k, v, of(f16, 69, 5, 1, 1), 1, 0, 0), "69 x 5");
    refuse(ggml_flash_attn_ext(c, q, k, v, of(f16, 70, 4, 1, 1), 1, 0, 0), "70 x 4");
    refuse(ggml_flash_attn_ext(c, q, k, v, of(f16, 70, 5, 4, 1), 1, 0, 0), "mask dimensions 2 and 3");
    refuse(ggml_flash_attn_ext(c, q, k, v, ggml_transpose(c, of(f16, 5, 70, 1, 1)), 1, 0, 0), "rows of the mask");
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void test_setters(void **state) {
    (void) state;
    struct ggml_tensor *q = of(GGML_TYPE_F32, 64, 5, 6, 1), *k = of(GGML_TYPE_F16, 64, 128, 3, 1);
    struct ggml_tensor *y = ggml_flash_attn_ext(c, q, k, k, NULL, 1, 0, 0);
    assert_int_equal(ggml_flash_attn_ext_get_prec(y), GGML_PREC_DEFAULT);
    ggml_flash_attn_ext_set_prec(y, GGML_PREC_F32);
    ggml_flash_attn_ext_set_n_kv_max(y, 100);
    assert_int_equal(ggml_flash_attn_ext_get_prec(y), GGML_PREC_F32);
    ggml_clear_error();
    ggml_flash_attn_ext_set_prec(q, GGML_PREC_F32);
    assert_error("not a result of ggml_flash_attn_ext");
    ggml_clear_error();
    ggml_flash_attn_ext_add_sinks(q, NULL);
    assert_error("not a result of ggml_flash_attn_ext");
    ggml_clear_error();
    ggml_flash_attn_ext_add_sinks(y, of(GGML_TYPE_F32, 5, 1, 1, 1));
    assert_error("sinks must be F32 [6]");
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 16, false);
    ggml_build_forward_expand(g, y);
    assert_int_equal(ggml_graph_compute_with_ctx(c, g, 1), GGML_STATUS_FAILED);
}

static void refuse_blocks(struct ggml_tensor *y, struct ggml_tensor *query, struct ggml_tensor *table,
                          const char *sentence) {
    ggml_clear_error();
    assert_false(ggml_flash_attn_ext_set_blocks(y, query, table));
    assert_error(sentence);
    assert_null(y->src[5]);
    assert_null(y->src[6]);
}

static void test_refused_blocks(void **state) {
    (void) state;
    const enum ggml_type i32 = GGML_TYPE_I32, f32 = GGML_TYPE_F32, f16 = GGML_TYPE_F16;
    struct ggml_tensor *q = of(f32, 64, 5, 6, 1), *k = of(f16, 64, 128, 3, 1), *query = of(i32, 4, 5, 1, 1),
                       *table = of(i32, 3, 2, 1, 1);
    struct ggml_tensor *y = ggml_flash_attn_ext(c, q, k, k, NULL, 1, 0, 0);
    refuse_blocks(ggml_flash_attn_ext(c, of(f32, 64, 5, 6, 2), k, k, NULL, 1, 0, 0), query, table, "dimension 3");
    refuse_blocks(y, NULL, table, "need both");
    refuse_blocks(y, query, NULL, "need both");
    refuse_blocks(y, of(i32, 4, 6, 1, 1), table, "I32 [4, 5]");
    refuse_blocks(y, of(i32, 3, 5, 1, 1), table, "I32 [4, 5]");
    refuse_blocks(y, of(f32, 4, 5, 1, 1), table, "I32 [4, 5]");
    refuse_blocks(y, query, of(i32, 2, 2, 1, 1), "I32 [3, n_block, n_slot]");
    refuse_blocks(y, query, of(f32, 3, 2, 1, 1), "I32 [3, n_block, n_slot]");
    refuse_blocks(q, query, table, "not a result");
    assert_true(ggml_flash_attn_ext_set_blocks(y, query, table));
}

static void fails(struct cache *x, struct query list, const char *sentence) {
    struct ggml_tensor *y = ggml_flash_attn_ext(c, query_rows(x, &(struct query){0, 5, 0, 0}, 1), x->k, x->v, NULL, 1, 0, 0);
    struct ggml_tensor *query = ggml_new_tensor_2d(c, GGML_TYPE_I32, 4, 1);
    memcpy(query->data, &list, sizeof list);
    assert_true(ggml_flash_attn_ext_set_blocks(y, query, x->table));
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 16, false);
    ggml_build_forward_expand(g, y);
    for (int n = 1; n <= 3; n += 2) {
        ggml_clear_error();
        assert_int_equal(ggml_graph_compute_with_ctx(c, g, n), GGML_STATUS_FAILED);
        assert_error(sentence);
    }
}

static void test_bad_tables(void **state) {
    (void) state;
    struct cache x = make_cache(GGML_TYPE_F16, 0, false);
    int32_t *entry = x.table->data;
    fails(&x, (struct query){3, 5, 0, 6}, "names slot 3");
    fails(&x, (struct query){-1, 5, 0, 6}, "names slot -1");
    const int32_t good = entry[0];
    const int32_t bad[] = {70, -2, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        entry[0] = bad[i];
        fails(&x, (struct query){0, 5, 0, 6}, "outside the cache");
        attend_tables(&x, &(struct query){0, 500, 64, 501}, 1, &plain, 2);  // a window that does not see block 0 runs
    }
    entry[0] = good;
    attend_tables(&x, &(struct query){0, 5, 0, 6}, 1, &plain, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_types_and_sizes, begin, end),
        cmocka_unit_test_setup_teardown(test_options, begin, end),
        cmocka_unit_test_setup_teardown(test_views, begin, end),
        cmocka_unit_test_setup_teardown(test_nothing_seen, begin, end),
        cmocka_unit_test_setup_teardown(test_large_scores, begin, end),
        cmocka_unit_test_setup_teardown(test_nan_shows, begin, end),
        cmocka_unit_test_setup_teardown(test_tables_equal_mask, begin, end),
        cmocka_unit_test_setup_teardown(test_same_bits, begin, end),
        cmocka_unit_test_setup_teardown(test_unseen_infinity, begin, end),
        cmocka_unit_test_setup_teardown(test_levels_agree, begin, end),
        cmocka_unit_test_setup_teardown(test_deep_decode, begin, end),
        cmocka_unit_test_setup_teardown(test_refused, begin, end),
        cmocka_unit_test_setup_teardown(test_setters, begin, end),
        cmocka_unit_test_setup_teardown(test_refused_blocks, begin, end),
        cmocka_unit_test_setup_teardown(test_bad_tables, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
