// Matrix kernels: every level and type against products in double precision, and the same bits whatever the number of columns,
// the range of rows and the path.
#include "kern/mm.h"
#include "type/type.h"

#include "test.h"

#include <math.h>

static uint64_t state = 1;

static uint64_t next_random(void) {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static float uniform(void) { return (float) (next_random() >> 40) / 8388608.0f - 1.0f; }

struct product {
    const struct type *type;
    int64_t m, n, k;
    uint8_t *a;
    size_t a_stride;
    float *x;      // [n, k]
    double *want;  // [n, m], from decoded weights and unrounded activations
    double power;  // sum of the squares of all terms: what rounding errors are measured against
};

static void fill_f32(float *x, int64_t n, double scale) {
    for (int64_t i = 0; i < n; i++) x[i] = (float) (uniform() * scale);
}

static void make(struct product *p, const struct type *type, int64_t m, int64_t n, int64_t k, double scale) {
    *p = (struct product){.type = type, .m = m, .n = n, .k = k};
    p->a_stride = (size_t) (k / type->block) * type->size;
    p->a = malloc(p->a_stride * (size_t) m);  // exact: reads beyond the last row are found by the sanitizer
    p->x = malloc(sizeof(float) * (size_t) (n * k));
    p->want = malloc(sizeof(double) * (size_t) (n * m));
    float *w = malloc(sizeof(float) * (size_t) k);
    fill_f32(p->x, n * k, scale);
    for (int64_t r = 0; r < m; r++) {
        fill_f32(w, k, 1.0);
        type->encode(w, p->a + (size_t) r * p->a_stride, k);
        type->decode(p->a + (size_t) r * p->a_stride, w, k);
        for (int64_t c = 0; c < n; c++) {
            double s = 0;
            for (int64_t i = 0; i < k; i++) {
                const double t = (double) w[i] * (double) p->x[c * k + i];
                s += t;
                p->power += t * t;
            }
            p->want[c * m + r] = s;
        }
    }
    free(w);
}

static void drop(struct product *p) {
    free(p->a);
    free(p->x);
    free(p->want);
}

// Columns c0 .. c1 and rows r0 .. r1 into y [n, m], by the path for n_path columns.
static void compute(const struct product *p, int64_t n_path, bool exact, int64_t c0, int64_t c1, int64_t r0, int64_t r1,
                    float *y) {
    const struct mm_path *path = kern_mm()->path(p->type->id, n_path, exact);
    struct mm_job j = {.a = p->a,
                       .a_stride = p->a_stride,
                       .n_row = p->m,
                       .row0 = r0,
                       .row1 = r1,
                       .k = p->k,
                       .type = p->type->id,
                       .n_col = c1 - c0,
                       .dst = y + c0 * p->m,
                       .dst_stride = (size_t) p->m};
    j.act_stride = (path->act_bytes(p->k) + 63) / 64 * 64;
    j.col0 = c0 % 3;  // a path may not count on where its columns begin
    uint8_t *act = aligned_alloc(64, mm_columns_bytes(path, j.act_stride, j.col0 + j.n_col) + 64);
    for (int64_t c = c0; c < c1; c++) mm_encode_column(path, p->x + c * p->k, p->k, act, j.act_stride, j.col0 + c - c0);
    j.act = act;
    j.scratch_bytes = path->scratch(&j);
    j.scratch = aligned_alloc(64, (j.scratch_bytes + 127) / 64 * 64);
    path->run(&j);
    free(j.scratch);
    free(act);
}

static double error(const float *y, const struct product *p) {
    double e = 0;
    for (int64_t i = 0; i < p->m * p->n; i++) {
        const double d = (double) y[i] - p->want[i];
        if (!(fabs((double) y[i]) < INFINITY)) return INFINITY;
        e += d * d;
    }
    return p->power > 0 ? e / p->power : e;
}

static double bound(const struct type *type, bool exact) {
    if (type->id == GGML_TYPE_F16 && !exact && strcmp(isa_name(isa_active()), "avx512amx") == 0)
        return 1e-9;  // activations are two BF16
    if (exact || type->id == GGML_TYPE_F32 || type->id == GGML_TYPE_F16 || !type->quantized) {
        return type->id == GGML_TYPE_BF16 && !exact ? 2e-5 : 1e-11;
    }
    return 4e-4;
}

static void check_same(const float *y, const float *z, int64_t n, const char *what, const struct product *p) {
    for (int64_t i = 0; i < n; i++) {
        if (memcmp(y + i, z + i, 4) != 0) {
            fail_msg("%s %s: m %lld n %lld k %lld differ at %lld: %.9g %.9g", what, p->type->name, (long long) p->m,
                     (long long) p->n, (long long) p->k, (long long) i, (double) y[i], (double) z[i]);
        }
    }
}

// Integer forms have the bits of the scalar level.
static void check_scalar(const struct product *p, const float *y) {
    if (kern_mm()->path(p->type->id, 1, false)->form < MM_I8) return;
    const enum isa level = isa_active();
    float *z = malloc(sizeof(float) * (size_t) (p->m * p->n));
    isa_pin(ISA_scalar);
    compute(p, p->n, false, 0, p->n, 0, p->m, z);
    isa_pin(level);
    check_same(y, z, p->m * p->n, "the scalar level", p);
    free(z);
}

static void check_product(const struct type *type, int64_t m, int64_t n, int64_t k, double scale, bool exact) {
    struct product p;
    make(&p, type, m, n, k, scale);
    const size_t bytes = sizeof(float) * (size_t) (m * n);
    float *y = malloc(bytes), *z = malloc(bytes);
    memset(y, 0xff, bytes);
    compute(&p, n, exact, 0, n, 0, m, y);
    const double e = error(y, &p);
    if (!(e <= bound(type, exact))) {
        fail_msg("%s %s m %lld n %lld k %lld: error %g", isa_name(isa_active()), type->name, (long long) m, (long long) n,
                 (long long) k, e);
    }
    if (!exact) check_scalar(&p, y);
    memset(z, 0xff, bytes);
    for (int64_t c = 0; c < n; c++) compute(&p, 1, exact, c, c + 1, 0, m, z);
    check_same(y, z, m * n, "one column at a time", &p);
    memset(z, 0xff, bytes);
    compute(&p, 1000, exact, 0, n, 0, m, z);
    check_same(y, z, m * n, "the path for many columns", &p);
    const int step = kern_mm()->path(type->id, n, exact)->row_step;
    memset(z, 0xff, bytes);
    for (int64_t r = 0; r < m; r += step) compute(&p, n, exact, 0, n, r, r + step < m ? r + step : m, z);
    check_same(y, z, m * n, "rows in pieces", &p);
    free(y);
    free(z);
    drop(&p);
}

static const int64_t sizes[][2] = {{1, 1}, {1, 7}, {7, 1}, {15, 3}, {16, 2}, {17, 5}, {33, 13}, {67, 31}};

static void check_type(const struct type *type) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (test_small() && i != 0 && i != 2 && i != 5) continue;
        const int64_t k =
            type->block == 1 ? (int64_t[]){1, 67, 1031, 2055}[i % 4] : type->block * (int64_t[]){1, 3, 5}[i % 3];
        check_product(type, sizes[i][0], sizes[i][1], k, 1.0, false);
        if (i % 3 == 0) check_product(type, sizes[i][0], sizes[i][1], k, 1.0, true);
    }
    const bool small = test_small();
    check_product(type, small ? 17 : 40, small ? 5 : 19, type->block * ((2304 + type->block - 1) / type->block), 3000.0,
                  false);
}

static void test_levels(void **unused) {
    (void) unused;
    for (int level = 0; level < ISA_COUNT; level++) {
        if (!isa_pin((enum isa) level)) continue;
        for (int id = 0; id < GGML_TYPE_COUNT; id++) {
            const struct type *type = type_get((enum ggml_type) id);
            if (!type || !type->encode || !type->decode || id == GGML_TYPE_I8 || id == GGML_TYPE_I16 ||
                id == GGML_TYPE_I32 || id == GGML_TYPE_I64) {
                continue;
            }
            check_type(type);
        }
    }
}

// Every number of columns up to where they repeat; and as many rows as make runs meet in one set of the cache, which are cut shorter.
static void test_columns(void **unused) {
    (void) unused;
    const enum ggml_type types[] = {GGML_TYPE_Q4_0, GGML_TYPE_Q4_K};
    for (int level = 0; level < ISA_COUNT; level++) {
        if (!isa_pin((enum isa) level)) continue;
        for (int i = 0; i < 2; i++) {
            for (int64_t n = 1; n <= (test_small() ? 9 : 50); n++) check_product(type_get(types[i]), 19, n, 256, 1.0, false);
        }
        check_product(type_get(GGML_TYPE_Q4_0), 16 * 16 + 5, 3, 2048, 1.0, false);
        check_product(type_get(GGML_TYPE_F32), 8 * 8 + 5, 3, 512, 1.0, false);
    }
}

// Extreme activations, and weights no encoder writes (-128, arbitrary bits): every level computes what the scalar one does.
static void test_extremes(void **unused) {
    (void) unused;
    enum { M = 37, N = 8, K = 512 };
    static const float special[N] = {1e38f, 1e-38f, -0.0f, 3000.0f, INFINITY, NAN, 1.5f, 1e-30f};
    for (int id = 0; id < GGML_TYPE_COUNT; id++) {
        const struct type *type = type_get((enum ggml_type) id);
        if (!type || !type->quantized || kern_mm()->path((enum ggml_type) id, 1, false)->form < MM_I8) continue;
        struct product p = {.type = type, .m = M, .n = N, .k = K, .a_stride = (size_t) (K / type->block) * type->size};
        p.a = malloc(p.a_stride * M);
        p.x = malloc(sizeof(float) * N * K);
        for (int64_t i = 0; i < N * K; i++)
            p.x[i] = i / K == 6 ? (float) (i % 255 - 127) * 0.5f : i % 3 ? uniform() : special[i / K];
        do {  // arbitrary bits whose scales are finite
            for (size_t i = 0; i < p.a_stride * M; i++) p.a[i] = (uint8_t) next_random();
            for (size_t i = 0; i < p.a_stride * M; i += type->size) {
                while (!type->check(p.a + i, type->size)) {
                    for (size_t k = 0; k < type->size; k++) p.a[i + k] = (uint8_t) next_random();
                }
            }
        } while (!type->check(p.a, p.a_stride * M));
        if (id == GGML_TYPE_Q8_0) memset(p.a + 2, 0x80, 32);
        float *want = malloc(sizeof(float) * M * N), *y = malloc(sizeof(float) * M * N);
        isa_pin(ISA_scalar);
        compute(&p, N, false, 0, N, 0, M, want);
        for (int level = 1; level < ISA_COUNT; level++) {
            if (!isa_pin((enum isa) level)) continue;
            compute(&p, N, false, 0, N, 0, M, y);
            for (int i = 0; i < M * N; i++) {
                if (isnan(want[i]) ? !isnan(y[i]) : memcmp(y + i, want + i, 4) != 0) {
                    fail_msg("%s %s: %d: %g, not %g", isa_name((enum isa) level), type->name, i, (double) y[i],
                             (double) want[i]);
                }
            }
        }
        free(want);
        free(y);
        drop(&p);
    }
}

static void test_outer(void **unused) {
    (void) unused;
    enum { N = 37, C = 11, K = 5 };
    float a[K * N], b[C * K], y[C * N], z[C * N];
    fill_f32(a, K * N, 1);
    fill_f32(b, C * K, 1);
    for (int level = 0; level < ISA_COUNT; level++) {
        if (!isa_pin((enum isa) level)) continue;
        memset(y, 0, sizeof y);
        kern_mm()->outer(N, C, K, a, N, b, K, y, N);
        for (int c = 0; c < C; c++) {
            for (int i = 0; i < N; i++) {
                float s = 0;
                for (int k = 0; k < K; k++) s = fmaf(a[k * N + i], b[c * K + k], s);
                z[c * N + i] = s;
            }
        }
        assert_memory_equal(y, z, sizeof y);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_levels), cmocka_unit_test(test_columns),
                                       cmocka_unit_test(test_extremes), cmocka_unit_test(test_outer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
