// mul_mat_id: for token t and slot s, expert ids[s, t]'s matrix times column s (or the only one) of token t.
// as {k, m, n_expert}, b {k, 1 or n_slot, n_token}, ids {n_slot, n_token} i32, result {m, n_slot, n_token}.
// Work goes by expert: its tokens are listed first (in token order), then its rows are multiplied with all of them at once;
// an expert nobody chose is never read. An id outside 0 .. n_expert-1 fails the node before anything is written.
#include "ops/mul_mat.h"

static enum err infer(const struct ggml_tensor *t, struct op_shape *s) {
    const struct ggml_tensor *a = t->src[0], *b = t->src[1], *ids = t->src[2];
    TRY(mm_check("ggml_mul_mat_id", a, b));
    if (ids->type != GGML_TYPE_I32)
        return err_set(ERR_INVALID, "ggml_mul_mat_id: ids must be I32, not %s", ggml_type_name(ids->type));
    if (a->ne[3] != 1 || b->ne[3] != 1 || ids->ne[2] != 1 || ids->ne[3] != 1) {
        return err_set(ERR_INVALID, "ggml_mul_mat_id: experts and columns have three dimensions, ids have two");
    }
    if (ids->ne[1] != b->ne[2]) {
        return err_set(ERR_INVALID, "ggml_mul_mat_id: ids for %lld tokens, columns for %lld", (long long) ids->ne[1],
                       (long long) b->ne[2]);
    }
    if (b->ne[1] == 0 ? ids->ne[0] != 0 : ids->ne[0] % b->ne[1] != 0) {
        return err_set(ERR_INVALID, "ggml_mul_mat_id: %lld columns per token do not divide the %lld experts per token",
                       (long long) b->ne[1], (long long) ids->ne[0]);
    }
    *s = (struct op_shape){GGML_TYPE_F32, {a->ne[1], ids->ne[0], b->ne[2], 1}};
    return ERR_OK;
}

static int64_t n_result(const struct ggml_tensor *t) { return t->src[2]->ne[0] * t->src[2]->ne[1]; }

size_t mm_groups_bytes(const struct ggml_tensor *t) {
    return mm_align((size_t) (t->src[0]->ne[2] + 2 + 2 * n_result(t)) * sizeof(int32_t));
}

static int32_t id_at(const struct ggml_tensor *ids, int64_t slot, int64_t token) {
    int32_t e;
    __builtin_memcpy(&e, (const char *) ids->data + (size_t) slot * ids->nb[0] + (size_t) token * ids->nb[1], sizeof e);
    return e;
}

// Returns the position of the first id that is out of range, or -1.
static int64_t group(const struct ggml_tensor *t, struct mm_groups *g) {
    const struct ggml_tensor *b = t->src[1], *ids = t->src[2];
    const int64_t n_expert = t->src[0]->ne[2], n_slot = ids->ne[0], n_token = ids->ne[1];
    for (int64_t e = 0; e < n_expert + 2; e++) g->first[e] = 0;
    for (int64_t i = 0; i < n_slot * n_token; i++) {
        const int32_t e = id_at(ids, i % n_slot, i / n_slot);
        if (e < 0 || e >= n_expert) return i;
        g->first[e + 2]++;
    }
    for (int64_t e = 2; e < n_expert + 2; e++) g->first[e] += g->first[e - 1];
    for (int64_t i = 0; i < n_slot * n_token; i++) {  // first[e + 1] runs from e's start to its end
        const int64_t slot = i % n_slot, token = i / n_slot;
        const int32_t at = g->first[id_at(ids, slot, token) + 1]++;
        g->col[at] = (int32_t) (token * b->ne[1] + slot % b->ne[1]);
        g->out[at] = (int32_t) i;
    }
    return -1;
}

bool mm_groups_make(struct mm_groups *g, struct task *k, const struct ggml_tensor *t, void *memory) {
    g->first = memory;
    g->col = g->first + t->src[0]->ne[2] + 2;
    g->out = g->col + n_result(t);
    const int64_t bad = group(t, g), n_slot = t->src[2]->ne[0];
    if (bad < 0) return true;
    if (k->ith == 0) {
        task_fail(k, t, "expert %d of token %lld is outside 0 .. %lld", id_at(t->src[2], bad % n_slot, bad / n_slot),
                  (long long) (bad / n_slot), (long long) t->src[0]->ne[2] - 1);
    }
    return false;
}

// Columns an expert gets on average, rounded up: what the path is chosen for.
static int64_t typical_columns(const struct ggml_tensor *t) {
    return t->src[0]->ne[2] ? mm_ceil(n_result(t), t->src[0]->ne[2]) : 0;
}

int64_t mm_plan_id(struct mm_plan *p, const struct ggml_tensor *t, int n_threads) {
    mm_plan(p, t, typical_columns(t), t->src[1]->ne[1] * t->src[1]->ne[2], n_threads);
    return typical_columns(t);
}

static size_t scratch(const struct ggml_tensor *t, int n_threads) {
    struct mm_plan p;
    mm_plan_id(&p, t, n_threads);
    return mm_align(p.total) + mm_groups_bytes(t) * (size_t) n_threads;
}

static int threads(const struct ggml_tensor *t, int n_threads) {
    const double work = (double) t->src[0]->ne[0] * (double) t->src[0]->ne[1] * (double) n_result(t);
    return mm_threads(work, n_threads);
}

static void run(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0], *b = t->src[1];
    const int64_t m = a->ne[1], n_expert = a->ne[2];
    if (n_result(t) * m == 0) return;
    struct mm_plan p;
    struct mm_groups g;
    const int64_t typical = mm_plan_id(&p, t, k->nth);
    // Every thread lists the tokens for itself: the lists are short, and no one waits.
    if (!mm_groups_make(&g, k, t, (uint8_t *) k->work + mm_align(p.total) + mm_groups_bytes(t) * (size_t) k->ith)) return;
    mm_encode(&p, k, b);
    const int64_t used = n_expert < n_result(t) ? n_expert : n_result(t);
    const int64_t rows = mm_row_block(&p, a, typical, used, k->nth), n_block = mm_ceil(m, rows);
    struct mm_job j = {
        .a_stride = a->nb[1], .n_row = m, .k = a->ne[0], .type = a->type, .dst_stride = t->nb[1] / sizeof(float)};
    j.scratch = mm_thread_scratch(&p, k);
    j.scratch_bytes = p.row_at;
    j.act = p.in_place ? b->data : mm_columns(&p, k);
    j.act_stride = p.in_place ? b->nb[1] : p.act_stride;
    j.dst = t->data;
    int64_t next = task_next(k), seen = 0;
    for (int64_t e = 0; e < n_expert; e++) {
        const int32_t first = g.first[e], n = g.first[e + 1] - first;
        if (n == 0) continue;
        for (; next < seen + n_block; next = task_next(k)) {
            j.a = (const uint8_t *) a->data + (size_t) e * a->nb[2];
            j.row0 = (next - seen) * rows;
            j.row1 = j.row0 + rows < m ? j.row0 + rows : m;
            j.act_idx = g.col + first;
            j.dst_idx = g.out + first;
            j.n_col = n;
            p.path->run(&j);
        }
        seen += n_block;
    }
}

struct ggml_tensor *ggml_mul_mat_id(struct ggml_context *ctx, struct ggml_tensor *as, struct ggml_tensor *b,
                                    struct ggml_tensor *ids) {
    const int32_t params[MM_N_PARAM] = {0};
    struct ggml_tensor *src[] = {as, b, ids};
    return op_build(ctx, GGML_OP_MUL_MAT_ID, false, params, MM_N_PARAM, src, 3);
}

const struct op op_mul_mat_id = {
    .id = GGML_OP_MUL_MAT_ID,
    .name = "MUL_MAT_ID",
    .symbol = "X[i]*Y",
    .n_src = 3,
    .infer = infer,
    .scratch = scratch,
    .token_dim = {0, 3, 2},
    .run = run,
    .threads = threads,
};
