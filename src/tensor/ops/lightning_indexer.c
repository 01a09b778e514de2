// LIGHTNING_INDEXER: the selection scores of DeepSeek-V3.2's sparse attention: score(t, s) = sum over heads j of
// w[j, t] max(0, q[j, t] . k[s]) + mask(s, t).
#include <string.h>

#include "kern/attn.h"
#include "ops/recur_int.h"
#include "type/type.h"

enum { Q, K_, W, MASK };

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *q = t->src[Q], *k = t->src[K_], *w = t->src[W], *mask = t->src[MASK];
    const int64_t n_head = q->ne[1], n_token = q->ne[2], n_stream = q->ne[3], n_kv = k->ne[2];
    TRY(recur_check_rows("lightning_indexer", "q", q));
    TRY(recur_check_rows("lightning_indexer", "weights", w));
    const struct type *type = type_get(k->type);
    const bool number =
        k->type == GGML_TYPE_F32 || k->type == GGML_TYPE_F16 || k->type == GGML_TYPE_BF16 || (type && type->quantized);
    if (!number || !type->decode || k->nb[0] != ggml_type_size(k->type))
        return err_set(ERR_INVALID,
                       "lightning_indexer: k must be F32, F16, BF16 or quantized with contiguous rows; it is %s",
                       ggml_type_name(k->type));
    TRY(recur_check_shape("lightning_indexer", "k", k, q->ne[0], 1, n_kv, n_stream));
    TRY(recur_check_shape("lightning_indexer", "weights", w, n_head, n_token, 1, n_stream));
    if ((mask->type != GGML_TYPE_F16 && mask->type != GGML_TYPE_F32) || mask->nb[0] != ggml_type_size(mask->type))
        return err_set(ERR_INVALID, "lightning_indexer: the mask must be F16 or F32 with contiguous rows; it is %s",
                       ggml_type_name(mask->type));
    if (mask->ne[0] < n_kv || mask->ne[1] < n_token || mask->ne[2] != 1 || mask->ne[3] < 1 || n_stream % mask->ne[3] != 0)
        return err_set(
            ERR_INVALID,
            "lightning_indexer: the mask is [%lld, %lld, %lld, %lld]; [%lld, %lld, 1, %lld or a divisor] is needed",
            (long long) mask->ne[0], (long long) mask->ne[1], (long long) mask->ne[2], (long long) mask->ne[3],
            (long long) n_kv, (long long) n_token, (long long) n_stream);
    *shape = (struct op_shape){.type = GGML_TYPE_F32, .ne = {n_kv, n_token, 1, n_stream}};
    return ERR_OK;
}

// A thread's scratch in floats: unpacked rows, keys transposed, packed queries of one token.
static int64_t pad16(int64_t n) { return (n + 15) / 16 * 16; }
static int64_t tiles(const struct ggml_tensor *q) { return (q->ne[1] + ATTN_ROWS - 1) / ATTN_ROWS; }
static int64_t floats(const struct ggml_tensor *t) {
    const struct ggml_tensor *q = t->src[Q];
    return ATTN_BLOCK * pad16(q->ne[0]) + ATTN_BLOCK * q->ne[0] + pad16(tiles(q) * ATTN_ROWS * q->ne[0]);
}

static size_t scratch(const struct ggml_tensor *t, int n_threads) {
    return (size_t) n_threads * (size_t) floats(t) * sizeof(float);
}

static void pack(const struct ggml_tensor *q, int64_t token, int64_t stream, float *out) {
    for (int64_t h = 0; h < q->ne[1]; h++) {
        const float *x = recur_at(q, h, token, stream);
        float *to = out + h / ATTN_ROWS * ATTN_ROWS * q->ne[0] + h % ATTN_ROWS;
        for (int64_t i = 0; i < q->ne[0]; i++) to[i * ATTN_ROWS] = x[i];
    }
}

static void add_mask(const struct ggml_tensor *m, int64_t j0, int n, int64_t token, int64_t stream, float *sum) {
    const char *src = (const char *) m->data + j0 * (int64_t) m->nb[0] + token * (int64_t) m->nb[1] +
                      stream % m->ne[3] * (int64_t) m->nb[3];
    float x[ATTN_BLOCK] = {0};
    bool some;
    if (m->type == GGML_TYPE_F16)
        (void) kern_attn()->mask_f16((const uint16_t *) (const void *) src, n, x, &some);
    else
        (void) kern_attn()->mask_f32((const float *) (const void *) src, n, x, &some);
    for (int j = 0; j < n; j++) sum[j] += x[j];
}

// Scores of one block of keys for all tokens.
static void block(const struct ggml_tensor *t, int64_t j0, int64_t stream, float *mem) {
    const struct ggml_tensor *q = t->src[Q], *k = t->src[K_];
    const int64_t d = q->ne[0], ld = pad16(d);
    const int n = (int) (k->ne[2] - j0 < ATTN_BLOCK ? k->ne[2] - j0 : ATTN_BLOCK);
    float *raw = mem, *kt = raw + ATTN_BLOCK * ld, *packed = kt + ATTN_BLOCK * d;
    const struct type *type = type_get(k->type);
    memset(raw, 0, (size_t) (ATTN_BLOCK * ld) * sizeof(float));
    for (int j = 0; j < n; j++)
        type->decode((const char *) k->data + (j0 + j) * (int64_t) k->nb[2] + stream * (int64_t) k->nb[3], raw + j * ld, d);
    for (int j = 0; j < ATTN_BLOCK; j += ATTN_PAD) kern_attn()->transpose(raw + j * ld, ld, d, kt + j);
    for (int64_t token = 0; token < q->ne[2]; token++) {
        float sum[ATTN_BLOCK] = {0}, w[ATTN_ROWS];
        pack(q, token, stream, packed);
        for (int64_t h = 0; h < q->ne[1]; h += ATTN_ROWS) {
            const int n_row = (int) (q->ne[1] - h < ATTN_ROWS ? q->ne[1] - h : ATTN_ROWS);
            for (int r = 0; r < n_row; r++) w[r] = recur_at(t->src[W], token, 0, stream)[h + r];
            kern_attn()->index(packed + h * d, kt, d, n_row, w, sum);
        }
        add_mask(t->src[MASK], j0, n, token, stream, sum);
        memcpy(recur_at(t, token, 0, stream) + j0, sum, (size_t) n * sizeof(float));
    }
}

static void run(struct task *task, struct ggml_tensor *t) {
    const struct ggml_tensor *k = t->src[K_];
    const int64_t n_block = (k->ne[2] + ATTN_BLOCK - 1) / ATTN_BLOCK, n = n_block * k->ne[3];
    float *mem = (float *) task->work + task->ith * floats(t);
    for (int64_t i = task_next(task); i < n; i = task_next(task)) block(t, i % n_block * ATTN_BLOCK, i / n_block, mem);
}

struct ggml_tensor *ggml_lightning_indexer(struct ggml_context *ctx, struct ggml_tensor *q, struct ggml_tensor *k,
                                           struct ggml_tensor *weights, struct ggml_tensor *mask) {
    struct ggml_tensor *src[] = {q, k, weights, mask};
    return op_build(ctx, GGML_OP_LIGHTNING_INDEXER, false, NULL, 0, src, 4);
}

const struct op op_lightning_indexer = {.id = GGML_OP_LIGHTNING_INDEXER,
                                        .name = "LIGHTNING_INDEXER",
                                        .symbol = "lightning_indexer(q, k, w, m)",
                                        .n_src = 4,
                                        .infer = infer,
                                        .scratch = scratch,
                                        .run = run};
