// FLASH_ATTN_BACK: the gradients of softmax(scale q k^T) v, scale = 1 / sqrt(n_embd), for q, k and v in one tensor.
//   q [n_embd, n_query, n_head, n_batch]; k [n_embd, n_kv, n_head_kv, n_batch]; v [n_kv, n_embd, n_head_kv, n_batch], transposed
//   d [n_embd, n_query, n_head, n_batch]: the gradient of the result; all F32 with unbroken rows
//   result [n] F32: the gradients of q, k and v, each contiguous and padded to GGML_MEM_ALIGN bytes
// op_params: [0] causal: query i sees the keys up to n_kv - n_query + i.
// Scores are computed again, row by row (Dao et al. 2022). A unit of work is one head of k and v with all heads of q that read
// it, so no sum is shared between threads.
#include "ops/row.h"
#include "kern/binary.h"
#include "kern/norm.h"
#include "kern/softmax.h"

#include <math.h>

static enum err check_operands(const struct ggml_tensor *t) {
    for (int i = 0; i < 4; i++) {
        TRY(check_type(t, i, GGML_TYPE_F32));
        if (!ggml_is_contiguous_rows(t->src[i])) {
            return err_set(ERR_UNSUPPORTED, "FLASH_ATTN_BACK: source %d has rows with gaps; use ggml_cont", i);
        }
    }
    return ERR_OK;
}

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *q = t->src[0], *k = t->src[1], *v = t->src[2], *d = t->src[3];
    TRY(check_operands(t));
    TRY(check_same_shape(t, 0, 3));
    const bool fits = k->ne[0] == q->ne[0] && v->ne[0] == k->ne[1] && v->ne[1] == k->ne[0] && v->ne[2] == k->ne[2] &&
                      k->ne[3] == q->ne[3] && v->ne[3] == q->ne[3] && k->ne[2] > 0 && q->ne[2] % k->ne[2] == 0;
    if (!fits || ggml_is_empty(d)) {
        return err_set(ERR_INVALID, "FLASH_ATTN_BACK: q " SHAPE_FMT ", k " SHAPE_FMT " and v " SHAPE_FMT " do not fit",
                       SHAPE_ARG(q), SHAPE_ARG(k), SHAPE_ARG(v));
    }
    if (tensor_param_i32(t, 0) && k->ne[1] < q->ne[1]) {
        return err_set(ERR_INVALID, "FLASH_ATTN_BACK: %lld keys for %lld queries; causal attention needs as many",
                       (long long) k->ne[1], (long long) q->ne[1]);
    }
    int64_t n = 0;
    for (int i = 0; i < 3; i++) n += GGML_PAD(ggml_nelements(t->src[i]), (int64_t) (GGML_MEM_ALIGN / sizeof(float)));
    return shape_4d(shape, GGML_TYPE_F32, n, 1, 1, 1);
}

// The three gradients as tensors over the result's memory.
struct grads {
    struct ggml_tensor q, k, v;
};

static struct grads grads_of(const struct ggml_tensor *t) {
    struct grads g;
    struct ggml_tensor *part[3] = {&g.q, &g.k, &g.v};
    char *at = t->data;
    for (int i = 0; i < 3; i++) {
        *part[i] = (struct ggml_tensor){.type = GGML_TYPE_F32, .nb = {sizeof(float)}, .data = at};
        memcpy(part[i]->ne, t->src[i]->ne, sizeof part[i]->ne);
        for (int d = 1; d < 4; d++) part[i]->nb[d] = part[i]->nb[d - 1] * (size_t) part[i]->ne[d - 1];
        at += GGML_PAD((size_t) ggml_nelements(part[i]) * sizeof(float), (size_t) GGML_MEM_ALIGN);
    }
    return g;
}

static float *row(const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3) {
    return (float *) (void *) row_at(t, i1, i2, i3);
}

// One query: p and dp are scratch for n_kv floats each.
static void query(const struct ggml_tensor *t, const struct grads *g, int64_t i, int64_t h, int64_t hk, int64_t i3, float *p,
                  float *dp) {
    const struct ggml_tensor *k = t->src[1], *v = t->src[2];
    const int64_t n_embd = k->ne[0], n_kv = k->ne[1], n_query = t->src[0]->ne[1];
    const int64_t n = tensor_param_i32(t, 0) ? n_kv - n_query + i + 1 : n_kv;  // keys that this query sees
    const float scale = 1.0f / sqrtf((float) n_embd);
    const float *q = row(t->src[0], i, h, i3), *d = row(t->src[3], i, h, i3);

    for (int64_t j = 0; j < n; j++) p[j] = kern_norm()->dot(n_embd, q, row(k, j, hk, i3)) * scale;
    kern_softmax()->scale(n, p, 1.0f / kern_softmax()->exp_sum(n, p, p, kern_norm()->max(n, p)));

    memset(dp, 0, (size_t) n * sizeof *dp);
    for (int64_t c = 0; c < n_embd; c++) {
        kern_binary()->axpy(n, dp, d[c], row(v, c, hk, i3));
        kern_binary()->axpy(n, row(&g->v, c, hk, i3), d[c], p);
    }
    kern_softmax()->back(n, dp, dp, p, scale);  // now the gradient of the scores before scaling
    for (int64_t j = 0; j < n; j++) {
        kern_binary()->axpy(n_embd, row(&g->q, i, h, i3), dp[j], row(k, j, hk, i3));
        kern_binary()->axpy(n_embd, row(&g->k, j, hk, i3), dp[j], q);
    }
}

static size_t scratch(const struct ggml_tensor *t, int n_threads) {
    return row_scratch_bytes(t->src[1]->ne[1], 2, n_threads);
}

static int threads(const struct ggml_tensor *t, int n_threads) {
    const int64_t units = t->src[1]->ne[2] * t->src[1]->ne[3];
    return units < n_threads ? (int) units : n_threads;
}

static void run(struct task *k, struct ggml_tensor *t) {
    const int64_t n_kv = t->src[1]->ne[1], heads_kv = t->src[1]->ne[2], group = t->src[0]->ne[2] / heads_kv;
    float *p = row_scratch(k, n_kv, 2, 0), *dp = row_scratch(k, n_kv, 2, 1);
    const struct grads g = grads_of(t);
    if (k->ith == 0) memset(t->data, 0, ggml_nbytes(t));
    task_barrier(k);
    int64_t u0, u1;
    task_range(k, heads_kv * t->src[1]->ne[3], &u0, &u1);
    for (int64_t u = u0; u < u1; u++) {
        const int64_t hk = u % heads_kv, i3 = u / heads_kv;
        for (int64_t h = hk * group; h < (hk + 1) * group; h++) {
            for (int64_t i = 0; i < t->src[0]->ne[1]; i++) query(t, &g, i, h, hk, i3, p, dp);
        }
    }
}

struct ggml_tensor *ggml_flash_attn_back(struct ggml_context *ctx, struct ggml_tensor *q, struct ggml_tensor *k,
                                         struct ggml_tensor *v, struct ggml_tensor *d, bool masked) {
    return op_build(ctx, GGML_OP_FLASH_ATTN_BACK, false, &(int32_t){masked}, 1, (struct ggml_tensor *[]){q, k, v, d}, 4);
}

const struct op op_flash_attn_back = {.id = GGML_OP_FLASH_ATTN_BACK,
                                      .name = "FLASH_ATTN_BACK",
                                      .symbol = "flash_attn_back(x)",
                                      .n_src = 4,
                                      .infer = infer,
                                      .scratch = scratch,
                                      .run = run,
                                      .threads = threads};
