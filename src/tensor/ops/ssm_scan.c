// SSM_SCAN: the selective scan of Mamba (one decay per state) and Mamba-2 (one per head). The result is one row: y of all
// tokens, then K snapshots of all states, the newest first.
#include <string.h>

#include "kern/recur.h"
#include "ops/recur_int.h"

enum { S, X, DT, A, B, C, IDS };

static enum err check(const struct ggml_tensor *t) {
    struct ggml_tensor *const *src = t->src;
    static const char *const names[] = {"s", "x", "dt", "A", "B", "C"};
    for (int i = S; i <= C; i++) TRY(recur_check_rows("ssm_scan", names[i], src[i]));
    const int64_t n_state = src[S]->ne[0], dim = src[S]->ne[1], n_head = src[S]->ne[2], n_token = src[X]->ne[2],
                  n_seq = src[X]->ne[3];
    const int64_t n_group = src[B]->ne[1];
    TRY(recur_check_contiguous("ssm_scan", "s", src[S]));
    TRY(recur_check_shape("ssm_scan", "x", src[X], dim, n_head, n_token, n_seq));
    TRY(recur_check_shape("ssm_scan", "dt", src[DT], n_head, n_token, n_seq, 1));
    TRY(recur_check_shape("ssm_scan", "A", src[A], src[A]->ne[0] == 1 ? 1 : n_state, n_head, 1, 1));
    TRY(recur_check_shape("ssm_scan", "B", src[B], n_state, n_group, n_token, n_seq));
    TRY(recur_check_shape("ssm_scan", "C", src[C], n_state, n_group, n_token, n_seq));
    if (n_group < 1 || n_head % n_group != 0)
        return err_set(ERR_INVALID, "ssm_scan: %lld groups do not divide %lld heads", (long long) n_group,
                       (long long) n_head);
    if (src[IDS]->type != GGML_TYPE_I32 || src[IDS]->ne[0] != n_seq || ggml_nelements(src[IDS]) != n_seq ||
        src[IDS]->nb[0] != 4)
        return err_set(ERR_INVALID, "ssm_scan: ids must be I32 [%lld], the state of each sequence; they are %s [%lld]",
                       (long long) n_seq, ggml_type_name(src[IDS]->type), (long long) src[IDS]->ne[0]);
    if (tensor_param_i32(t, 0) < 1)
        return err_set(ERR_INVALID, "ssm_scan: K = %d snapshots asked for; at least 1, the final state, is needed",
                       tensor_param_i32(t, 0));
    return ERR_OK;
}

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check(t));
    const struct ggml_tensor *s = t->src[S];
    const int64_t states = s->ne[0] * s->ne[1] * s->ne[2] * t->src[IDS]->ne[0];
    *shape = (struct op_shape){.type = GGML_TYPE_F32,
                               .ne = {ggml_nelements(t->src[X]) + states * tensor_param_i32(t, 0), 1, 1, 1}};
    return ERR_OK;
}

struct scan {
    const struct ggml_tensor *t;
    int64_t n_state, dim, n_head, n_token, n_seq, n_snapshot, state_size;
};

// Tokens t0 .. t1 of one head of one sequence.
static void tokens(const struct scan *p, int64_t seq, int64_t head, int64_t t0, int64_t t1, float *state) {
    struct ggml_tensor *const *src = p->t->src;
    const int64_t group = head / (p->n_head / src[B]->ne[1]);
    const struct recur_ssm x = {
        .x = recur_at(src[X], head, t0, seq),
        .dt = recur_at(src[DT], t0, seq, 0) + head,
        .a = recur_at(src[A], head, 0, 0),
        .b = recur_at(src[B], group, t0, seq),
        .c = recur_at(src[C], group, t0, seq),
        .y = (float *) p->t->data + ((seq * p->n_token + t0) * p->n_head + head) * p->dim,
        .state = state,
        .n_state = p->n_state,
        .n_row = p->dim,
        .n_token = t1 - t0,
        .x_step = recur_step(src[X], 2),
        .dt_step = recur_step(src[DT], 1),
        .b_step = recur_step(src[B], 2),
        .c_step = recur_step(src[C], 2),
        .y_step = p->n_head * p->dim,
        .a_per_state = src[A]->ne[0] > 1,
    };
    kern_recur()->ssm(&x);
}

static void run(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *s = t->src[S], *x = t->src[X];
    const struct scan p = {.t = t,
                           .n_state = s->ne[0],
                           .dim = s->ne[1],
                           .n_head = s->ne[2],
                           .n_token = x->ne[2],
                           .n_seq = x->ne[3],
                           .n_snapshot = tensor_param_i32(t, 0),
                           .state_size = s->ne[0] * s->ne[1]};
    const int32_t *ids = (const int32_t *) t->src[IDS]->data;
    for (int64_t i = 0; i < p.n_seq; i++) {
        if (ids[i] >= 0 && ids[i] < s->ne[3]) continue;
        task_fail(k, t, "ssm_scan: sequence %lld asks for state %d of %lld", (long long) i, ids[i], (long long) s->ne[3]);
        return;
    }
    float *snapshots = (float *) t->data + ggml_nelements(x);
    int64_t i0, i1;
    task_range(k, p.n_seq * p.n_head, &i0, &i1);
    for (int64_t i = i0; i < i1; i++) {
        const int64_t seq = i / p.n_head, head = i % p.n_head, bytes = p.state_size * (int64_t) sizeof(float);
        float *state = snapshots + i * p.state_size;  // the newest, on which the scan works
        memcpy(state, recur_at(s, 0, head, ids[seq]), (size_t) bytes);
        // Snapshot j is the state j tokens before the end; the state at the start stands for those before it.
        int64_t at = 0;
        for (int64_t j = p.n_snapshot - 1; j >= 0; j--) {
            const int64_t until = p.n_token > j ? p.n_token - j : 0;
            if (until > at) tokens(&p, seq, head, at, until, state);
            at = until;
            if (j > 0) memcpy(state + j * p.n_seq * p.n_head * p.state_size, state, (size_t) bytes);
        }
    }
}

struct ggml_tensor *ggml_ssm_scan(struct ggml_context *ctx, struct ggml_tensor *s, struct ggml_tensor *x,
                                  struct ggml_tensor *dt, struct ggml_tensor *A_, struct ggml_tensor *B_,
                                  struct ggml_tensor *C_, struct ggml_tensor *ids, int64_t K) {
    struct ggml_tensor *src[] = {s, x, dt, A_, B_, C_, ids};
    const int32_t params[] = {K > INT32_MAX ? 0 : (int32_t) K};
    return op_build(ctx, GGML_OP_SSM_SCAN, false, params, 1, src, 7);
}

const struct op op_ssm_scan = {
    .id = GGML_OP_SSM_SCAN, .name = "SSM_SCAN", .symbol = "ssm_scan(x)", .n_src = 7, .infer = infer, .run = run};
