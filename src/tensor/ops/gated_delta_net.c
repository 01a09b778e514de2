// GATED_DELTA_NET: the gated delta rule (Yang et al. 2024, arXiv 2412.06464), with a gate per head or per key dimension
// (Kimi delta attention). The result's rows: the outputs of all tokens, then K snapshots of all states, the newest first.
#include <math.h>
#include <string.h>

#include "kern/recur.h"
#include "ops/recur_int.h"

enum { Q, K_, V, G, BETA, STATE };

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    struct ggml_tensor *const *src = t->src;
    static const char *const names[] = {"q", "k", "v", "g", "beta", "state"};
    for (int i = Q; i <= STATE; i++) TRY(recur_check_rows("gated_delta_net", names[i], src[i]));
    const int64_t n_key = src[K_]->ne[0], n_val = src[V]->ne[0], k_head = src[K_]->ne[1], n_head = src[V]->ne[1];
    const int64_t n_token = src[V]->ne[2], n_seq = src[V]->ne[3], n_snapshot = tensor_param_i32(t, 0);
    TRY(recur_check_shape("gated_delta_net", "q", src[Q], n_key, k_head, n_token, n_seq));
    TRY(recur_check_shape("gated_delta_net", "k", src[K_], n_key, k_head, n_token, n_seq));
    TRY(recur_check_shape("gated_delta_net", "g", src[G], src[G]->ne[0] == 1 ? 1 : n_key, n_head, n_token, n_seq));
    TRY(recur_check_shape("gated_delta_net", "beta", src[BETA], 1, n_head, n_token, n_seq));
    TRY(recur_check_contiguous("gated_delta_net", "state", src[STATE]));
    if (k_head < 1 || n_head % k_head != 0)
        return err_set(ERR_INVALID, "gated_delta_net: %lld key heads do not divide %lld value heads", (long long) k_head,
                       (long long) n_head);
    if (ggml_nelements(src[STATE]) != n_key * n_val * n_head * n_seq)
        return err_set(ERR_INVALID,
                       "gated_delta_net: state has %lld values; %lld x %lld for %lld heads of %lld sequences are needed",
                       (long long) ggml_nelements(src[STATE]), (long long) n_key, (long long) n_val, (long long) n_head,
                       (long long) n_seq);
    if (n_snapshot < 1)
        return err_set(ERR_INVALID, "gated_delta_net: K = %lld snapshots asked for; at least 1 is needed",
                       (long long) n_snapshot);
    *shape =
        (struct op_shape){.type = GGML_TYPE_F32, .ne = {n_val * n_head, n_token * n_seq + n_key * n_seq * n_snapshot, 1, 1}};
    return ERR_OK;
}

// Heads are cut into parts of this many rows, so that few heads still occupy many threads.
enum { PART = 32 };

static size_t scratch(const struct ggml_tensor *t, int n_threads) {
    return (size_t) n_threads * (size_t) GGML_PAD(RECUR_CHUNK * t->src[K_]->ne[0], 16) * sizeof(float);
}

struct net {
    const struct ggml_tensor *t;
    float *work;
    int64_t n_key, n_val, n_head, n_token, n_seq, n_snapshot;
};

static void tokens(const struct net *p, int64_t seq, int64_t head, int64_t row, int64_t t0, int64_t t1, float *state) {
    struct ggml_tensor *const *src = p->t->src;
    const int64_t key = head % src[K_]->ne[1], n = p->n_val - row < PART ? p->n_val - row : PART;
    const struct recur_delta x = {
        .q = recur_at(src[Q], key, t0, seq),
        .k = recur_at(src[K_], key, t0, seq),
        .v = recur_at(src[V], head, t0, seq) + row,
        .g = recur_at(src[G], head, t0, seq),
        .beta = recur_at(src[BETA], head, t0, seq),
        .y = (float *) p->t->data + ((seq * p->n_token + t0) * p->n_head + head) * p->n_val + row,
        .state = state,
        .work = p->work,
        .n_key = p->n_key,
        .n_row = n,
        .n_token = t1 - t0,
        .q_step = recur_step(src[Q], 2),
        .k_step = recur_step(src[K_], 2),
        .v_step = recur_step(src[V], 2),
        .g_step = recur_step(src[G], 2),
        .beta_step = recur_step(src[BETA], 2),
        .y_step = p->n_head * p->n_val,
        .scale = 1.0f / sqrtf((float) p->n_key),
        .g_per_key = src[G]->ne[0] > 1,
    };
    kern_recur()->delta(&x);
}

static void run(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *v = t->src[V];
    const struct net p = {.t = t,
                          .n_key = t->src[K_]->ne[0],
                          .n_val = v->ne[0],
                          .n_head = v->ne[1],
                          .n_token = v->ne[2],
                          .n_seq = v->ne[3],
                          .n_snapshot = tensor_param_i32(t, 0),
                          .work = (float *) k->work + k->ith * (int64_t) GGML_PAD(RECUR_CHUNK * t->src[K_]->ne[0], 16)};
    const int64_t n_part = (p.n_val + PART - 1) / PART, size = p.n_key * p.n_val;
    float *snapshots = (float *) t->data + ggml_nelements(v);
    int64_t i0, i1;
    task_range(k, p.n_seq * p.n_head * n_part, &i0, &i1);
    for (int64_t i = i0; i < i1; i++) {
        const int64_t at = i / n_part, row = i % n_part * PART;
        const int64_t n = p.n_val - row < PART ? p.n_val - row : PART, bytes = n * p.n_key * (int64_t) sizeof(float);
        float *state = snapshots + at * size + row * p.n_key;  // the newest, on which the recurrence works
        memcpy(state, (const float *) t->src[STATE]->data + at * size + row * p.n_key, (size_t) bytes);
        int64_t from = 0;
        for (int64_t j = p.n_snapshot - 1; j >= 0; j--) {  // snapshot j: j tokens before the end, or the start
            const int64_t until = p.n_token > j ? p.n_token - j : 0;
            if (until > from) tokens(&p, at / p.n_head, at % p.n_head, row, from, until, state);
            from = until;
            if (j > 0) memcpy(state + j * p.n_seq * p.n_head * size, state, (size_t) bytes);
        }
    }
}

struct ggml_tensor *ggml_gated_delta_net(struct ggml_context *ctx, struct ggml_tensor *q, struct ggml_tensor *k,
                                         struct ggml_tensor *v, struct ggml_tensor *g, struct ggml_tensor *beta,
                                         struct ggml_tensor *state, int64_t K) {
    struct ggml_tensor *src[] = {q, k, v, g, beta, state};
    const int32_t params[] = {K > INT32_MAX ? 0 : (int32_t) K};
    return op_build(ctx, GGML_OP_GATED_DELTA_NET, false, params, 1, src, 6);
}

const struct op op_gated_delta_net = {.id = GGML_OP_GATED_DELTA_NET,
                                      .name = "GATED_DELTA_NET",
                                      .symbol = "gated_delta_net(q, k, v, g, beta, s)",
                                      .n_src = 6,
                                      .infer = infer,
                                      .scratch = scratch,
                                      .run = run};
