// Recurrences over tokens: state-space scans, gated linear attention, delta rules, RWKV. One call carries part of one head's
// state over a few tokens. States are independent along one of their axes, and work is split there only; the sums over the
// other axis run in 32 lanes (simd/reduce.h) or sequentially, whatever else is computed beside them.
//
// x_step: floats from one token to the next.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kern/kern.h"

// Tokens for which decays and step sizes are prepared at once.
enum { RECUR_CHUNK = 16 };

// y[t] = sum over i < width of x[t + i] * w[i]
struct recur_conv {
    const float *x, *w;
    float *y;
    int64_t width, n_token, y_step;
};

// Mamba, one head: S[row][n] = exp(dt * A) S + dt * x[row] * B[n], y[row] = sum over n of S[row][n] * C[n]; dt =
// softplus(dt).
struct recur_ssm {
    const float *x, *dt, *a, *b, *c;
    float *y, *state;  // state [n_row][n_state], updated in place
    int64_t n_state, n_row, n_token;
    int64_t x_step, dt_step, b_step, c_step, y_step;
    bool a_per_state;  // a [n_state] instead of one number
};

// Gated delta rule, rows of one head's state S[row][n_key] (row: value dimension): S *= exp(g); d = beta * (v - S k); S += d
// k; y = scale * S q.
struct recur_delta {
    const float *q, *k, *v, *g, *beta;
    float *y, *state, *work;  // work: RECUR_CHUNK * n_key floats
    int64_t n_key, n_row, n_token;
    int64_t q_step, k_step, v_step, g_step, beta_step, y_step;
    float scale;
    bool g_per_key;  // g [n_key] instead of one number
};

// RWKV-7, rows of one head's state S[row][n]: S = S diag(w) + (S a) b^T + v k^T, y = S r. All steps are `step`.
struct recur_wkv7 {
    const float *r, *w, *k, *v, *a, *b;
    float *y, *state;
    int64_t n, n_row, n_token, step;
};

// RWKV-6 and gated linear attention, columns of one head's state S[n][n] (column: value dimension): with kv = k v^T,
// y = scale * r (S + diag(u) kv) and then S = diag(w) S + kv (RWKV-6), or, u = NULL, S = diag(w) S + kv and y = scale * r S.
struct recur_linear {
    const float *k, *v, *r, *u, *w;
    float *y, *state;  // at the first column; rows are n apart
    int64_t n, n_column, n_token, step;
    float scale;
};

// Triangular systems in place. a [n][n] with a_step floats per row; unit: the diagonal counts as ones.
struct recur_solve {
    const float *a;
    float *x;  // left: [n][n_column], x_step floats per row; right: one row of n
    int64_t n, n_column, a_step, x_step;
    bool lower, unit;
};

struct kern_recur {
    void (*conv)(const struct recur_conv *p);
    void (*ssm)(const struct recur_ssm *p);
    void (*delta)(const struct recur_delta *p);
    void (*wkv7)(const struct recur_wkv7 *p);
    void (*linear)(const struct recur_linear *p);
    void (*solve_left)(const struct recur_solve *p);
    void (*solve_right)(const struct recur_solve *p);
    // y[n] = sum over i < n_x of w[i] * x[i], x_step floats apart, w w_step apart; add: onto what is in y
    void (*weighted)(const float *x, int64_t x_step, const float *w, int64_t w_step, int64_t n_x, float *y, int64_t n,
                     bool add);
    // c [n][n] from logits [n * n]: each row's softmax + eps, columns divided by their sum + eps; then n_iter - 1 times
    // rows, columns so divided again (Sinkhorn). logit = mix * scale + base.
    void (*sinkhorn)(const float *mix, const float *base, float scale, float eps, int n, int n_iter, float *c);
    // y[n] += scale * x[n] * sigmoid(gate[n])
    void (*gated)(const float *x, const float *gate, float scale, float *y, int64_t n);
};
