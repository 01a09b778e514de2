// Recurrences over tokens. See recur.h; every order of summation below is fixed by the shape, and equal at all ISA levels.
#include "kern/recur.h"

#include "simd/math.h"
#include "simd/reduce.h"
#include "simd/simd.h"

#define INLINE static inline __attribute__((always_inline))

// Rows whose chains of sums run side by side to hide their latency.
enum { ROWS = 4 };

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

static void conv(const struct recur_conv *p) {
    for (int64_t t = 0; t < p->n_token; t += VF_N) {
        const int n = vf_lanes(t, p->n_token);
        vf acc = vf_set1(0.0f);
        for (int64_t i = 0; i < p->width; i++) acc = vf_fma(vf_load_n(p->x + t + i, n), vf_set1(p->w[i]), acc);
        float y[VF_N];
        vf_store(y, acc);
        for (int j = 0; j < n; j++) p->y[(t + j) * p->y_step] = y[j];
    }
}

// ---- state-space scan
// ---------------------------------------------------------------------------------------------------------

INLINE void ssm_lanes(struct vr *acc, int c, float *s, vf decay, const float *b, const float *cc, vf x, int n) {
    const vf next = vf_fma(vf_load_n(b, n), x, vf_mul(vf_load_n(s, n), decay));
    vf_store_n(s, next, n);
    acc->v[c] = vf_fma(next, vf_load_n(cc, n), acc->v[c]);
}

// One row over one token.
INLINE float ssm_step(const struct recur_ssm *p, float *s, int64_t t, float dt, float decay, float x) {
    const float *b = p->b + t * p->b_step, *c = p->c + t * p->c_step;
    const vf xdt = vf_set1(x * dt), one = vf_set1(decay), vdt = vf_set1(dt);
    struct vr acc = vr_set1(0.0f);
    for (int64_t i = 0; i < p->n_state; i += VR_LANES) {
        for (int v = 0; v < VR_N && i + v * VF_N < p->n_state; v++) {
            const int64_t j = i + v * VF_N;
            const int n = vf_lanes(j, p->n_state);
            const vf d = p->a_per_state ? vf_exp(vf_mul(vdt, vf_load_n(p->a + j, n))) : one;
            ssm_lanes(&acc, v, s + j, d, b + j, c + j, xdt, n);
        }
    }
    return vr_hsum(acc);
}

static void ssm(const struct recur_ssm *p) {
    for (int64_t t0 = 0; t0 < p->n_token; t0 += RECUR_CHUNK) {
        const int64_t n = min64(RECUR_CHUNK, p->n_token - t0);
        float dt[RECUR_CHUNK] = {0}, decay[RECUR_CHUNK];
        for (int64_t t = 0; t < n; t++) dt[t] = p->dt[(t0 + t) * p->dt_step];
        for (int64_t t = 0; t < RECUR_CHUNK; t += VF_N) {
            const vf x = vf_softplus(vf_load(dt + t));
            vf_store(dt + t, x);
            vf_store(decay + t, vf_exp(vf_mul(x, vf_set1(p->a[0]))));
        }
        for (int64_t row = 0; row < p->n_row; row++)
            for (int64_t t = 0; t < n; t++) {
                const int64_t i = t0 + t;
                p->y[i * p->y_step + row] =
                    ssm_step(p, p->state + row * p->n_state, i, dt[t], decay[t], p->x[i * p->x_step + row]);
            }
    }
}

// ---- delta rules: rows of the state, sums along a row
// -----------------------------------------------------------------------------

struct delta_token {
    const float *q, *k, *v, *beta, *decay;
    float *y;
};

// n_row rows of n values: s = s * decay, d = beta * (v - s k), s = s + d k, y = scale * s q.
INLINE void delta_rows(const struct recur_delta *p, const struct delta_token *x, float *state, int64_t row,
                       const int n_row) {
    struct vr acc[ROWS];
    float d[ROWS];
    const int64_t n = p->n_key;
    SIMD_UNROLL
    for (int r = 0; r < n_row; r++) acc[r] = vr_set1(0.0f);
    for (int64_t i = 0; i < n; i += VR_LANES) {
        SIMD_UNROLL
        for (int v = 0; v < VR_N; v++) {
            const int64_t j = i + v * VF_N;
            const int m = vf_lanes(j, n);
            if (m == 0) break;
            const vf k = vf_load_n(x->k + j, m), decay = vf_load_n(x->decay + j, m);
            SIMD_UNROLL
            for (int r = 0; r < n_row; r++) {
                float *s = state + (row + r) * n + j;
                const vf y = vf_mul(vf_load_n(s, m), decay);
                vf_store_n(s, y, m);
                acc[r].v[v] = vf_fma(y, k, acc[r].v[v]);
            }
        }
    }
    SIMD_UNROLL
    for (int r = 0; r < n_row; r++) {
        d[r] = *x->beta * (x->v[row + r] - vr_hsum(acc[r]));
        acc[r] = vr_set1(0.0f);
    }
    for (int64_t i = 0; i < n; i += VR_LANES) {
        SIMD_UNROLL
        for (int v = 0; v < VR_N; v++) {
            const int64_t j = i + v * VF_N;
            const int m = vf_lanes(j, n);
            if (m == 0) break;
            const vf k = vf_load_n(x->k + j, m), q = vf_load_n(x->q + j, m);
            SIMD_UNROLL
            for (int r = 0; r < n_row; r++) {
                float *s = state + (row + r) * n + j;
                const vf y = vf_fma(k, vf_set1(d[r]), vf_load_n(s, m));
                vf_store_n(s, y, m);
                acc[r].v[v] = vf_fma(y, q, acc[r].v[v]);
            }
        }
    }
    SIMD_UNROLL
    for (int r = 0; r < n_row; r++) x->y[row + r] = vr_hsum(acc[r]) * p->scale;
}

static void delta_decay(const struct recur_delta *p, int64_t t, float *decay) {
    const float *g = p->g + t * p->g_step;
    for (int64_t j = 0; j < p->n_key; j += VF_N) {
        const int m = vf_lanes(j, p->n_key);
        vf_store_n(decay + j, vf_exp(p->g_per_key ? vf_load_n(g + j, m) : vf_set1(*g)), m);
    }
}

static void delta(const struct recur_delta *p) {
    for (int64_t t0 = 0; t0 < p->n_token; t0 += RECUR_CHUNK) {
        const int64_t n = min64(RECUR_CHUNK, p->n_token - t0);
        for (int64_t t = 0; t < n; t++) delta_decay(p, t0 + t, p->work + t * p->n_key);
        for (int64_t row = 0; row < p->n_row; row += ROWS)
            for (int64_t t = 0; t < n; t++) {
                const int64_t i = t0 + t;
                const struct delta_token x = {p->q + i * p->q_step,       p->k + i * p->k_step,   p->v + i * p->v_step,
                                              p->beta + i * p->beta_step, p->work + t * p->n_key, p->y + i * p->y_step};
                if (row + ROWS <= p->n_row)
                    delta_rows(p, &x, p->state, row, ROWS);
                else
                    for (int64_t r = row; r < p->n_row; r++) delta_rows(p, &x, p->state, r, 1);
            }
    }
}

INLINE void wkv7_rows(const struct recur_wkv7 *p, int64_t at, int64_t row, const int n_row) {
    struct vr acc[ROWS];
    float sa[ROWS];
    const int64_t n = p->n;
    const float *w = p->w + at, *k = p->k + at, *a = p->a + at, *b = p->b + at, *r = p->r + at;
    SIMD_UNROLL
    for (int c = 0; c < n_row; c++) acc[c] = vr_set1(0.0f);
    for (int64_t i = 0; i < n; i += VR_LANES) {
        SIMD_UNROLL
        for (int v = 0; v < VR_N; v++) {
            const int64_t j = i + v * VF_N;
            const int m = vf_lanes(j, n);
            if (m == 0) break;
            const vf va = vf_load_n(a + j, m);
            SIMD_UNROLL
            for (int c = 0; c < n_row; c++)
                acc[c].v[v] = vf_fma(vf_load_n(p->state + (row + c) * n + j, m), va, acc[c].v[v]);
        }
    }
    SIMD_UNROLL
    for (int c = 0; c < n_row; c++) {
        sa[c] = vr_hsum(acc[c]);
        acc[c] = vr_set1(0.0f);
    }
    for (int64_t i = 0; i < n; i += VR_LANES) {
        SIMD_UNROLL
        for (int v = 0; v < VR_N; v++) {
            const int64_t j = i + v * VF_N;
            const int m = vf_lanes(j, n);
            if (m == 0) break;
            const vf vw = vf_load_n(w + j, m), vk = vf_load_n(k + j, m), vb = vf_load_n(b + j, m), vr = vf_load_n(r + j, m);
            SIMD_UNROLL
            for (int c = 0; c < n_row; c++) {
                float *s = p->state + (row + c) * n + j;
                vf y = vf_fma(vk, vf_set1(p->v[at + row + c]), vf_mul(vf_load_n(s, m), vw));
                y = vf_fma(vf_set1(sa[c]), vb, y);
                vf_store_n(s, y, m);
                acc[c].v[v] = vf_fma(y, vr, acc[c].v[v]);
            }
        }
    }
    SIMD_UNROLL
    for (int c = 0; c < n_row; c++) p->y[at + row + c] = vr_hsum(acc[c]);
}

static void wkv7(const struct recur_wkv7 *p) {
    for (int64_t row = 0; row < p->n_row; row += ROWS)
        for (int64_t t = 0; t < p->n_token; t++) {
            if (row + ROWS <= p->n_row)
                wkv7_rows(p, t * p->step, row, ROWS);
            else
                for (int64_t r = row; r < p->n_row; r++) wkv7_rows(p, t * p->step, r, 1);
        }
}

// ---- linear attention: columns of the state, sums sequential along a column
// --------------------------------------------------------

INLINE void linear_lanes(const struct recur_linear *p, int64_t at, int64_t col, int n) {
    const vf v = vf_load_n(p->v + at + col, n);
    vf y = vf_set1(0.0f);
    for (int64_t i = 0; i < p->n; i++) {
        float *s = p->state + i * p->n + col;
        const vf kv = vf_mul(vf_set1(p->k[at + i]), v), old = vf_load_n(s, n), w = vf_set1(p->w[at + i]),
                 r = vf_set1(p->r[at + i]);
        const vf next = vf_fma(old, w, kv);
        vf_store_n(s, next, n);
        y = vf_fma(p->u ? vf_fma(kv, vf_set1(p->u[i]), old) : next, r, y);
    }
    vf_store_n(p->y + at + col, vf_mul(y, vf_set1(p->scale)), n);
}

static void linear(const struct recur_linear *p) {
    for (int64_t col = 0; col < p->n_column; col += VF_N)
        for (int64_t t = 0; t < p->n_token; t++) linear_lanes(p, t * p->step, col, vf_lanes(col, p->n_column));
}

// ---- triangular systems
// -----------------------------------------------------------------------------------------------------------

// Lanes along the columns of x; forwards for a lower triangle, backwards for an upper one.
static void solve_left(const struct recur_solve *p) {
    for (int64_t col = 0; col < p->n_column; col += VF_N) {
        const int m = vf_lanes(col, p->n_column);
        for (int64_t c = 0; c < p->n; c++) {
            const int64_t i = p->lower ? c : p->n - 1 - c;
            const float *a = p->a + i * p->a_step;
            vf x = vf_load_n(p->x + i * p->x_step + col, m);
            for (int64_t d = 0; d < c; d++) {
                const int64_t j = p->lower ? d : p->n - 1 - d;
                x = vf_fnma(vf_set1(a[j]), vf_load_n(p->x + j * p->x_step + col, m), x);
            }
            vf_store_n(p->x + i * p->x_step + col, p->unit ? x : vf_div(x, vf_set1(a[i])), m);
        }
    }
}

// x a = b for one row: each value found is taken out of those still open, lanes along them.
static void solve_right(const struct recur_solve *p) {
    for (int64_t c = 0; c < p->n; c++) {
        const int64_t i = p->lower ? p->n - 1 - c : c;
        const float *a = p->a + i * p->a_step;
        if (!p->unit) p->x[i] /= a[i];
        const vf x = vf_set1(p->x[i]);
        const int64_t j0 = p->lower ? 0 : i + 1, j1 = p->lower ? i : p->n;
        for (int64_t j = j0; j < j1; j += VF_N) {
            const int m = vf_lanes(j, j1);
            vf_store_n(p->x + j, vf_fnma(vf_load_n(a + j, m), x, vf_load_n(p->x + j, m)), m);
        }
    }
}

// ---- mixing of streams
// --------------------------------------------------------------------------------------------------------------

static void weighted(const float *x, int64_t x_step, const float *w, int64_t w_step, int64_t n_x, float *y, int64_t n,
                     bool add) {
    for (int64_t j = 0; j < n; j += VF_N) {
        const int m = vf_lanes(j, n);
        vf acc = add ? vf_load_n(y + j, m) : vf_set1(0.0f);
        for (int64_t i = 0; i < n_x; i++) acc = vf_fma(vf_load_n(x + i * x_step + j, m), vf_set1(w[i * w_step]), acc);
        vf_store_n(y + j, acc, m);
    }
}

// c[i * step], i < n, divided by their sum + eps.
static void divide_by_sum(float *c, int step, int n, float eps) {
    float sum = 0.0f;
    for (int i = 0; i < n; i++) sum += c[i * step];
    for (int i = 0; i < n; i++) c[i * step] /= sum + eps;
}

static void softmax(float *c, int64_t n) {
    float top = c[0], sum = 0.0f;
    for (int64_t i = 1; i < n; i++) top = c[i] > top ? c[i] : top;
    for (int64_t i = 0; i < n; i += VF_N) {
        const int m = vf_lanes(i, n);
        vf_store_n(c + i, vf_exp(vf_sub(vf_load_n(c + i, m), vf_set1(top))), m);
    }
    for (int64_t i = 0; i < n; i++) sum += c[i];
    for (int64_t i = 0; i < n; i++) c[i] /= sum;
}

static void sinkhorn(const float *mix, const float *base, float scale, float eps, int n, int n_iter, float *c) {
    for (int i = 0; i < n * n; i++) c[i] = mix[i] * scale + base[i];
    for (int i = 0; i < n; i++) {
        softmax(c + i * n, n);
        for (int j = 0; j < n; j++) c[i * n + j] += eps;
    }
    for (int k = 0; k < n_iter; k++) {
        for (int i = 0; i < n && k > 0; i++) divide_by_sum(c + i * n, 1, n, eps);
        for (int j = 0; j < n; j++) divide_by_sum(c + j, n, n, eps);
    }
}

static void gated(const float *x, const float *gate, float scale, float *y, int64_t n) {
    for (int64_t j = 0; j < n; j += VF_N) {
        const int m = vf_lanes(j, n);
        const vf g = vf_mul(vf_sigmoid(vf_load_n(gate + j, m)), vf_set1(scale));
        vf_store_n(y + j, vf_fma(vf_load_n(x + j, m), g, vf_load_n(y + j, m)), m);
    }
}

const struct kern_recur ISA_SYM(kern_recur) = {conv,       ssm,         delta,    wkv7,     linear,
                                               solve_left, solve_right, weighted, sinkhorn, gated};
