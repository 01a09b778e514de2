// ARGSORT and TOP_K over rows. ARGSORT: equal values by ascending index, NaN last in either order. TOP_K: the set that heap
// selection as in C++ libraries' partial_sort keeps (it decides ties at the k-th place; models depend on it), the larger values
// first, equal ones by ascending index.
#include "ops/row.h"
#include "base/half.h"

// ---- keys: float order as integer order ------------------------------------------------------------------------------------

static uint32_t key_of(float x, bool desc) {
    if (x != x) return UINT32_MAX;
    const uint32_t u = f32_bits(x + 0.0f);  // -0 and 0 are equal
    const uint32_t up = u & 0x80000000u ? ~u : u | 0x80000000u;
    return desc ? ~up : up;
}

// (key, index) pairs are all different, so every sort gives the same order.
static void insertion_sort(uint64_t *a, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        const uint64_t v = a[i];
        int64_t j = i;
        for (; j > 0 && a[j - 1] > v; j--) a[j] = a[j - 1];
        a[j] = v;
    }
}

static void merge(uint64_t *d, const uint64_t *a, int64_t na, const uint64_t *b, int64_t nb) {
    int64_t i = 0, j = 0;
    while (i < na && j < nb) {
        const bool first = a[i] < b[j];
        *d++ = first ? a[i] : b[j];
        i += first, j += !first;
    }
    memcpy(d, i < na ? a + i : b + j, (size_t) (na - i + nb - j) * sizeof *d);
}

#define RUN 16

// Bottom-up merge sort; tmp as large as a.
static void merge_sort(uint64_t *a, uint64_t *tmp, int64_t n) {
    for (int64_t i = 0; i < n; i += RUN) insertion_sort(a + i, n - i < RUN ? n - i : RUN);
    uint64_t *from = a, *to = tmp;
    for (int64_t w = RUN; w < n; w *= 2) {
        for (int64_t i = 0; i < n; i += 2 * w) {
            const int64_t na = n - i < w ? n - i : w, nb = n - i - na < w ? n - i - na : w;
            merge(to + i, from + i, na, from + i + na, nb);
        }
        uint64_t *s = from;
        from = to, to = s;
    }
    if (from != a) memcpy(a, from, (size_t) n * sizeof *a);
}

#define DIGIT 11
#define N_DIGIT (1 << DIGIT)

// By 11 bits of the key at a time, three times; keeps the order of equal keys, which is that of the indices. The result is in tmp.
static void radix_sort(uint64_t *a, uint64_t *tmp, uint32_t count[3][N_DIGIT], int64_t n) {
    memset(count, 0, sizeof(uint32_t[3][N_DIGIT]));
    for (int64_t i = 0; i < n; i++)
        for (int p = 0; p < 3; p++) count[p][a[i] >> (32 + p * DIGIT) & (N_DIGIT - 1)]++;
    for (int p = 0; p < 3; p++) {
        uint32_t at = 0;
        for (int b = 0; b < N_DIGIT; b++) {
            const uint32_t here = count[p][b];
            count[p][b] = at;
            at += here;
        }
        for (int64_t i = 0; i < n; i++) tmp[count[p][a[i] >> (32 + p * DIGIT) & (N_DIGIT - 1)]++] = a[i];
        uint64_t *s = a;
        a = tmp, tmp = s;
    }
}

#define RADIX_FROM 1024  // shorter rows are merged: the counters would cost more

// ---- ARGSORT ---------------------------------------------------------------------------------------------------------------------

static enum err infer_index(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_float(t, 0));
    if (t->src[0]->ne[0] > INT32_MAX)
        return err_set(ERR_UNSUPPORTED, "%s: rows of %lld elements have indices beyond I32", op_what(t),
                       (long long) t->src[0]->ne[0]);
    return shape_like(t->src[0], GGML_TYPE_I32, shape);
}

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const int32_t order = tensor_param_i32(t, 0);
    if (order != GGML_SORT_ORDER_ASC && order != GGML_SORT_ORDER_DESC)
        return err_set(ERR_INVALID, "ARGSORT: there is no order %d", (int) order);
    return infer_index(t, shape);
}

// For each thread: the row, two arrays of pairs, the counters.
static size_t sort_bytes(int64_t n) {
    return GGML_PAD((size_t) n * 20, 64) + (n >= RADIX_FROM ? sizeof(uint32_t[3][N_DIGIT]) : 0);
}
static size_t scratch(const struct ggml_tensor *t, int n_threads) {
    return (size_t) n_threads * sort_bytes(t->src[0]->ne[0]);
}

static int threads(const struct ggml_tensor *t, int n_threads) {
    const int64_t rows = ggml_nrows(t);
    return row_threads(ggml_nelements(t->src[0]), 2048, rows < n_threads ? (int) rows : n_threads);
}

// Gives the sorted pairs: a or its second half.
static const uint64_t *sort_row(const float *x, uint64_t *a, int64_t n, bool desc) {
    uint64_t *tmp = a + n;
    for (int64_t i = 0; i < n; i++) a[i] = (uint64_t) key_of(x[i], desc) << 32 | (uint64_t) i;
    if (n < RADIX_FROM) {
        merge_sort(a, tmp, n);
        return a;
    }
    char *end = (char *) a + GGML_PAD((size_t) n * 20, 64);
    radix_sort(a, tmp, (uint32_t(*)[N_DIGIT])(void *) end, n);
    return tmp;
}

static void put(const struct ggml_tensor *t, char *row, int64_t i, int32_t v) {
    memcpy(row + (size_t) i * t->nb[0], &v, sizeof v);
}

static void run(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    const int64_t n = a->ne[0];
    uint64_t *pairs = (uint64_t *) (void *) ((char *) k->work + (size_t) k->ith * sort_bytes(n));
    float *buf = (float *) (void *) (pairs + 2 * n);
    const bool desc = tensor_param_i32(t, 0) == GGML_SORT_ORDER_DESC;
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        const uint64_t *sorted = sort_row(row_read(a, row_of(a, r), 0, n, buf), pairs, n, desc);
        char *row = row_of(t, r);
        for (int64_t i = 0; i < n; i++) put(t, row, i, (int32_t) (sorted[i] & UINT32_MAX));
    }
}

// ---- TOP_K: op_params [0] k --------------------------------------------------------------------------------------------------------

static enum err infer_top_k(const struct ggml_tensor *t, struct op_shape *shape) {
    const int32_t k = tensor_param_i32(t, 0);
    TRY(infer_index(t, shape));
    if (k < 1 || k > t->src[0]->ne[0])
        return err_set(ERR_INVALID, "TOP_K: %d of %lld elements", (int) k, (long long) t->src[0]->ne[0]);
    shape->ne[0] = k;
    return ERR_OK;
}

// NaN is below everything, so that it never keeps a number out.
static bool above(float a, float b) { return a > b || (b != b && a == a); }

// A min-heap of indices, ordered by score. Sifting moves the hole from `node` all the way down, each time promoting the child
// with the smaller score (the right one if equal, or the only one), then climbs v up, no higher than `node`.
static void sift(int32_t *heap, int64_t n, int64_t node, int32_t v, const float *x) {
    int64_t hole = node;
    for (int64_t c; (c = 2 * hole + 1) < n; hole = c) {
        if (c + 1 < n && !above(x[heap[c + 1]], x[heap[c]])) c++;
        heap[hole] = heap[c];
    }
    while (hole > node && above(x[heap[(hole - 1) / 2]], x[v])) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = v;
}

static void select_top(int32_t *heap, int64_t k, const float *x, int64_t n) {
    for (int64_t i = 0; i < k; i++) heap[i] = (int32_t) i;
    for (int64_t node = (k - 2) / 2; k > 1 && node >= 0; node--) sift(heap, k, node, heap[node], x);
    for (int64_t i = k; i < n; i++)
        if (above(x[i], x[heap[0]])) sift(heap, k, 0, (int32_t) i, x);
}

static void run_top_k(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    const int64_t n = a->ne[0], top = t->ne[0];
    uint64_t *pairs = (uint64_t *) (void *) ((char *) k->work + (size_t) k->ith * sort_bytes(n));
    float *buf = (float *) (void *) (pairs + 2 * n);
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        const float *x = row_read(a, row_of(a, r), 0, n, buf);
        int32_t *heap = (int32_t *) (void *) (pairs + n);
        select_top(heap, top, x, n);
        for (int64_t i = 0; i < top; i++) pairs[i] = (uint64_t) key_of(x[heap[i]], true) << 32 | (uint32_t) heap[i];
        merge_sort(pairs, pairs + n, top);
        char *row = row_of(t, r);
        for (int64_t i = 0; i < top; i++) put(t, row, i, (int32_t) (pairs[i] & UINT32_MAX));
    }
}

// ---- builders ------------------------------------------------------------------------------------------------------------------------

struct ggml_tensor *ggml_argsort(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_sort_order order) {
    return op_build(ctx, GGML_OP_ARGSORT, false, &(int32_t){(int32_t) order}, 1, &a, 1);
}

// A view of the first k of a whole argsort.
struct ggml_tensor *ggml_argsort_top_k(struct ggml_context *ctx, struct ggml_tensor *a, int k) {
    if (a && !ggml_is_error(a) && (k < 1 || k > a->ne[0])) {
        (void) err_set(ERR_INVALID, "ggml_argsort_top_k: %d of %lld elements", k, (long long) a->ne[0]);
        return tensor_error();
    }
    struct ggml_tensor *s = ggml_argsort(ctx, a, GGML_SORT_ORDER_DESC);
    return ggml_is_error(s) ? s : ggml_view_4d(ctx, s, k, s->ne[1], s->ne[2], s->ne[3], s->nb[1], s->nb[2], s->nb[3], 0);
}

struct ggml_tensor *ggml_top_k(struct ggml_context *ctx, struct ggml_tensor *a, int k) {
    return op_build(ctx, GGML_OP_TOP_K, false, &(int32_t){k}, 1, &a, 1);
}

const struct op op_argsort = {.id = GGML_OP_ARGSORT,
                              .name = "ARGSORT",
                              .symbol = "argsort(x)",
                              .n_src = 1,
                              .infer = infer,
                              .scratch = scratch,
                              .run = run,
                              .threads = threads};
const struct op op_top_k = {.id = GGML_OP_TOP_K,
                            .name = "TOP_K",
                            .symbol = "top_k(x)",
                            .n_src = 1,
                            .infer = infer_top_k,
                            .scratch = scratch,
                            .run = run_top_k,
                            .threads = threads};
