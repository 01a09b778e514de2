// Recurrent operations against plain double precision, at every level with equal bits, with any thread count; and what is
// refused.
#include "test.h"

#include "ggml-cpu.h"
#include "kern/isa.h"

#include <math.h>

static struct ggml_context *c;

static int begin(void **state) {
    (void) state;
    quiet();
    ggml_clear_error();
    c = ggml_init((struct ggml_init_params){.mem_size = 32 << 20});
    return 0;
}

static int end(void **state) {
    (void) state;
    ggml_free(c);
    return 0;
}

static uint64_t seed = 7;

static float uniform(float lo, float hi) {
    uint64_t z = (seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return lo + (hi - lo) * (float) ((z ^ (z >> 31)) >> 40) / 16777216.0f;
}

static struct ggml_tensor *in(float lo, float hi, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3) {
    struct ggml_tensor *t = ggml_new_tensor_4d(c, GGML_TYPE_F32, ne0, ne1, ne2, ne3);
    for (int64_t i = 0; i < ggml_nelements(t); i++) ((float *) t->data)[i] = uniform(lo, hi);
    return t;
}

static float at(const struct ggml_tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    return *(const float *) (const void *) ((const char *) t->data + i0 * (int64_t) t->nb[0] + i1 * (int64_t) t->nb[1] +
                                            i2 * (int64_t) t->nb[2] + i3 * (int64_t) t->nb[3]);
}

static void compute(struct ggml_tensor *y, int n_threads) {
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 16, false);
    ggml_build_forward_expand(g, y);
    assert_int_equal(ggml_graph_compute_with_ctx(c, g, n_threads), GGML_STATUS_SUCCESS);
}

// Computes y with several numbers of threads and at all levels: always the same bits; and as `want` says.
static void expect(struct ggml_tensor *y, const double *want) {
    assert_false(ggml_is_error(y));
    const size_t bytes = ggml_nbytes(y);
    float *first = malloc(bytes);
    const enum isa best = isa_active();
    const int threads[] = {1, 2, 3, 5};
    for (int i = 0; i < ISA_COUNT; i++) {
        if (!isa_pin((enum isa) i)) continue;
        memset(y->data, 0xff, bytes);
        compute(y, threads[i % 4]);
        if (i == 0)
            memcpy(first, y->data, bytes);
        else
            assert_memory_equal(first, y->data, bytes);
    }
    isa_pin(best);
    for (int i = 0; i < 4; i++) {
        memset(y->data, 0xff, bytes);
        compute(y, threads[i]);
        assert_memory_equal(first, y->data, bytes);
    }
    double error = 0, power = 0;
    for (int64_t i = 0; i < ggml_nelements(y); i++) {
        error += pow((double) first[i] - want[i], 2);
        power += pow(want[i], 2);
    }
    free(first);
    if (!(error <= 1e-11 * power)) fail_msg("%s: nmse %g", ggml_op_name(y->op), error / power);
}

static double *zeros(int64_t n) { return calloc((size_t) n, sizeof(double)); }

static void test_ssm_conv(void **state) {
    (void) state;
    for (int n_token = 0; n_token <= 35; n_token += n_token ? 17 : 1) {
        struct ggml_tensor *x = in(-1, 1, 3 + n_token, 21, 2, 1), *w = in(-1, 1, 4, 21, 1, 1);
        double *want = zeros(21 * (n_token + 1) * 2);
        for (int s = 0; s < 2; s++)
            for (int t = 0; t < n_token; t++)
                for (int ch = 0; ch < 21; ch++)
                    for (int i = 0; i < 4; i++)
                        want[(s * n_token + t) * 21 + ch] += (double) at(x, t + i, ch, s, 0) * (double) at(w, i, ch, 0, 0);
        struct ggml_tensor *y = ggml_ssm_conv(c, x, w);
        assert_int_equal(y->ne[1], n_token);
        if (n_token) expect(y, want);
        free(want);
    }
}

static double softplus(double x) { return x > 20 ? x : log1p(exp(x)); }

static void scan(int n_state, int dim, int n_head, int n_group, int n_token, int n_seq, int n_slot, bool per_state,
                 int n_snap) {
    struct ggml_tensor *s = in(-1, 1, n_state, dim, n_head, n_slot), *x = in(-1, 1, dim, n_head, n_token, n_seq),
                       *dt = in(-3, 3, n_head, n_token, n_seq, 1);
    struct ggml_tensor *a = in(-2, -0.1f, per_state ? n_state : 1, n_head, 1, 1),
                       *b = in(-1, 1, n_state, n_group, n_token, n_seq), *cc = in(-1, 1, n_state, n_group, n_token, n_seq);
    struct ggml_tensor *ids = ggml_new_tensor_1d(c, GGML_TYPE_I32, n_seq);
    for (int i = 0; i < n_seq; i++) ((int32_t *) ids->data)[i] = n_slot - 1 - i;
    struct ggml_tensor *y = ggml_ssm_scan(c, s, x, dt, a, b, cc, ids, n_snap);
    double *want = zeros(ggml_nelements(y)), *snap = want + ggml_nelements(x), *st = zeros(n_state);
    const int64_t states = (int64_t) n_state * dim * n_head * n_seq;
    assert_int_equal(ggml_nelements(y), ggml_nelements(x) + states * n_snap);
    for (int q = 0; q < n_seq; q++)
        for (int h = 0; h < n_head; h++)
            for (int r = 0; r < dim; r++) {
                const int g = h / (n_head / n_group);
                for (int n = 0; n < n_state; n++) st[n] = (double) at(s, n, r, h, n_slot - 1 - q);
                for (int t = -1; t < n_token; t++) {
                    for (int n = 0; n < n_state && t >= 0; n++) {
                        const double d = softplus((double) at(dt, h, t, q, 0));
                        st[n] = exp(d * (double) at(a, per_state ? n : 0, h, 0, 0)) * st[n] +
                                d * (double) at(x, r, h, t, q) * (double) at(b, n, g, t, q);
                        want[((q * n_token + t) * n_head + h) * dim + r] += st[n] * (double) at(cc, n, g, t, q);
                    }
                    for (int j = 0; j < n_snap; j++)
                        if (t == (n_token - 1 - j > -1 ? n_token - 1 - j : -1))
                            memcpy(snap + j * states + ((q * n_head + h) * dim + r) * n_state, st,
                                   (size_t) n_state * sizeof *st);
                }
            }
    expect(y, want);
    free(want);
    free(st);
}

static void test_ssm_scan(void **state) {
    (void) state;
    scan(16, 1, 9, 1, 20, 1, 1, true, 1);
    scan(16, 1, 9, 1, 1, 3, 5, true, 1);  // more sequences than tokens
    scan(19, 4, 6, 2, 37, 2, 3, false, 1);
    scan(128, 3, 2, 1, 5, 2, 2, false, 3);
    scan(33, 2, 2, 2, 2, 3, 4, false, 5);  // more snapshots than tokens
}

static void linear(int n, int n_head, int n_token, int n_seq, bool rwkv) {
    struct ggml_tensor *k = in(-1, 1, n, n_head, n_token, 1), *v = in(-1, 1, n, n_head, n_token, 1),
                       *r = in(-1, 1, n, n_head, n_token, 1);
    struct ggml_tensor *u = in(-1, 1, n, n_head, 1, 1), *w = in(0.25f, 1, n, n_head, n_token, 1),
                       *s = in(-1, 1, n * n * n_head, n_seq, 1, 1);
    struct ggml_tensor *y = rwkv ? ggml_rwkv_wkv6(c, k, v, r, u, w, s) : ggml_gated_linear_attn(c, k, v, r, w, s, 0.25f);
    double *want = zeros(ggml_nelements(y)), *st = want + n * n_head * n_token;
    for (int64_t i = 0; i < ggml_nelements(s); i++) st[i] = (double) ((float *) s->data)[i];
    for (int t = 0; t < n_token; t++)
        for (int h = 0; h < n_head; h++)
            for (int i = 0; i < n; i++)
                for (int j = 0; j < n; j++) {
                    double *cell = &st[((t / (n_token / n_seq) * n_head + h) * n + i) * n + j], old = *cell;
                    const double kv = (double) at(k, i, h, t, 0) * (double) at(v, j, h, t, 0);
                    *cell = old * (double) at(w, i, h, t, 0) + kv;
                    want[(t * n_head + h) * n + j] +=
                        (double) at(r, i, h, t, 0) * (rwkv ? old + (double) at(u, i, h, 0, 0) * kv : *cell * 0.25);
                }
    expect(y, want);
    free(want);
}

static void test_linear(void **state) {
    (void) state;
    for (int rwkv = 0; rwkv < 2; rwkv++) {
        linear(64, 2, 6, 2, rwkv);
        linear(32, 3, 5, 1, rwkv);
        linear(21, 1, 4, 4, rwkv);
    }
}

static void wkv7(int n, int n_head, int n_token, int n_seq) {
    struct ggml_tensor *r = in(-1, 1, n, n_head, n_token, 1), *w = in(0.25f, 1, n, n_head, n_token, 1),
                       *k = in(-1, 1, n, n_head, n_token, 1);
    struct ggml_tensor *v = in(-1, 1, n, n_head, n_token, 1), *a = in(-0.1f, 0.1f, n, n_head, n_token, 1),
                       *b = in(-0.1f, 0.1f, n, n_head, n_token, 1);
    struct ggml_tensor *s = in(-1, 1, n * n * n_head, n_seq, 1, 1), *y = ggml_rwkv_wkv7(c, r, w, k, v, a, b, s);
    double *want = zeros(ggml_nelements(y)), *st = want + n * n_head * n_token;
    for (int64_t i = 0; i < ggml_nelements(s); i++) st[i] = (double) ((float *) s->data)[i];
    for (int t = 0; t < n_token; t++)
        for (int h = 0; h < n_head; h++)
            for (int i = 0; i < n; i++) {
                double *row = &st[((t / (n_token / n_seq) * n_head + h) * n + i) * n], sa = 0;
                for (int j = 0; j < n; j++) sa += row[j] * (double) at(a, j, h, t, 0);
                for (int j = 0; j < n; j++) {
                    row[j] = row[j] * (double) at(w, j, h, t, 0) + sa * (double) at(b, j, h, t, 0) +
                             (double) at(v, i, h, t, 0) * (double) at(k, j, h, t, 0);
                    want[(t * n_head + h) * n + i] += row[j] * (double) at(r, j, h, t, 0);
                }
            }
    expect(y, want);
    free(want);
}

static void test_wkv7(void **state) {
    (void) state;
    wkv7(64, 2, 6, 2);
    wkv7(32, 3, 5, 1);  // not a multiple of 64
    wkv7(21, 1, 4, 4);
}

static void delta(int nk, int nv, int k_head, int n_head, int n_token, int n_seq, bool per_key, int n_snap, bool swapped) {
    struct ggml_tensor *q = swapped ? ggml_permute(c, in(-0.5f, 0.5f, nk, n_token, k_head, n_seq), 0, 2, 1, 3)
                                    : in(-0.5f, 0.5f, nk, k_head, n_token, n_seq);
    struct ggml_tensor *k = in(-0.5f, 0.5f, nk, k_head, n_token, n_seq), *v = in(-1, 1, nv, n_head, n_token, n_seq);
    struct ggml_tensor *g = in(-1, 0, per_key ? nk : 1, n_head, n_token, n_seq), *beta = in(0, 1, 1, n_head, n_token, n_seq);
    struct ggml_tensor *s = in(-1, 1, nk, nv, n_head, n_seq), *y = ggml_gated_delta_net(c, q, k, v, g, beta, s, n_snap);
    const int64_t states = ggml_nelements(s);
    double *want = zeros(ggml_nelements(y)), *snap = want + ggml_nelements(v), *st = zeros(nk);
    for (int z = 0; z < n_seq; z++)
        for (int h = 0; h < n_head; h++)
            for (int r = 0; r < nv; r++) {
                for (int i = 0; i < nk; i++) st[i] = (double) at(s, i, r, h, z);
                for (int t = -1; t < n_token; t++) {
                    double sk = 0, o = 0;
                    for (int i = 0; i < nk && t >= 0; i++) {
                        st[i] *= exp((double) at(g, per_key ? i : 0, h, t, z));
                        sk += st[i] * (double) at(k, i, h % k_head, t, z);
                    }
                    for (int i = 0; i < nk && t >= 0; i++) {
                        st[i] += (double) at(beta, 0, h, t, z) * ((double) at(v, r, h, t, z) - sk) *
                                 (double) at(k, i, h % k_head, t, z);
                        o += st[i] * (double) at(q, i, h % k_head, t, z);
                    }
                    if (t >= 0) want[((z * n_token + t) * n_head + h) * nv + r] = o / sqrt(nk);
                    for (int j = 0; j < n_snap; j++)
                        if (t == (n_token - 1 - j > -1 ? n_token - 1 - j : -1))
                            memcpy(snap + j * states + ((z * n_head + h) * nv + r) * nk, st, (size_t) nk * sizeof *st);
                }
            }
    expect(y, want);
    free(want);
    free(st);
}

static void test_delta(void **state) {
    (void) state;
    delta(128, 128, 1, 2, 18, 1, false, 1, false);
    delta(32, 32, 2, 4, 5, 2, true, 1, true);
    delta(20, 37, 1, 3, 2, 2, false, 4, false);
}

static void test_solve(void **state) {
    (void) state;
    for (int k = 0; k < 8; k++) {
        const bool left = k & 1, lower = k & 2, unit = k & 4;
        const int n = 29, m = 70;
        struct ggml_tensor *a = in(-0.5f, 0.5f, n, n, 2, 1), *b = left ? in(-1, 1, m, n, 2, 1) : in(-1, 1, n, m, 2, 1);
        for (int z = 0; z < 2; z++)
            for (int i = 0; i < n; i++)
                for (int j = 0; j < n; j++) {
                    float *x = (float *) a->data + (z * n + i) * n + j;
                    if (i == j)
                        *x = unit ? NAN : 2 + *x;
                    else if ((i < j) == lower)
                        *x = NAN;  // not read
                }
        struct ggml_tensor *y = ggml_solve_tri(c, a, b, left, lower, unit);
        double *want = zeros(ggml_nelements(y));
        for (int z = 0; z < 2; z++)
            for (int r = 0; r < m; r++) {
                double x[29];
                // left: a x = b column by column; right: the same with a transposed, row by row
                for (int step = 0; step < n; step++) {
                    const bool forwards = lower == left;
                    const int i = forwards ? step : n - 1 - step;
                    x[i] = left ? (double) at(b, r, i, z, 0) : (double) at(b, i, r, z, 0);
                    for (int s = 0; s < step; s++) {
                        const int j = forwards ? s : n - 1 - s;
                        x[i] -= (left ? (double) at(a, j, i, z, 0) : (double) at(a, i, j, z, 0)) * x[j];
                    }
                    if (!unit) x[i] /= (double) at(a, i, i, z, 0);
                    want[left ? (z * n + i) * m + r : (z * m + r) * n + i] = x[i];
                }
            }
        expect(y, want);
        free(want);
    }
}

static void test_indexer(void **state) {
    (void) state;
    const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16};
    for (int z = 0; z < 2; z++) {
        struct ggml_tensor *q = in(-1, 1, 40, 7, 3, 2), *k = in(-1, 1, 40, 1, 131, 2), *w = in(0, 1, 7, 3, 1, 2),
                           *m = in(-1, 1, 140, 3, 1, 1), *kk = k;
        if (types[z] == GGML_TYPE_F16) {
            kk = ggml_new_tensor_4d(c, GGML_TYPE_F16, 40, 1, 131, 2);
            for (int64_t i = 0; i < ggml_nelements(k); i++) {
                ((ggml_fp16_t *) kk->data)[i] = ggml_fp32_to_fp16(((float *) k->data)[i]);
                ((float *) k->data)[i] = ggml_fp16_to_fp32(((ggml_fp16_t *) kk->data)[i]);
            }
        }
        ((float *) m->data)[5] = -1000;
        struct ggml_tensor *y = ggml_lightning_indexer(c, q, kk, w, m);
        double *want = zeros(ggml_nelements(y));
        for (int s = 0; s < 2; s++)
            for (int t = 0; t < 3; t++)
                for (int j = 0; j < 131; j++) {
                    double *x = &want[(s * 3 + t) * 131 + j];
                    for (int h = 0; h < 7; h++) {
                        double dot = 0;
                        for (int i = 0; i < 40; i++) dot += (double) at(q, i, h, t, s) * (double) at(k, i, 0, j, s);
                        if (dot > 0) *x += dot * (double) at(w, h, t, 0, s);
                    }
                    *x += (double) at(m, j, t, 0, 0);
                }
        expect(y, want);
        free(want);
    }
}

static void test_hyper(void **state) {
    (void) state;
    const int n = 37, hc = 4, n_token = 5;
    struct ggml_tensor *x = in(-1, 1, n, hc, n_token, 1), *w = in(-1, 1, hc, n_token, 1, 1),
                       *gate = in(-3, 3, n, hc, n_token, 1);
    struct ggml_tensor *b = in(-1, 1, n, n_token, 1, 1), *comb = in(0, 1, hc, hc, n_token, 1);
    double *pre = zeros(n * n_token), *gated = zeros(n * n_token), *post = zeros(n * hc * n_token),
           *mix = zeros(16 * n_token);
    for (int t = 0; t < n_token; t++)
        for (int s = 0; s < hc; s++)
            for (int e = 0; e < n; e++) {
                pre[t * n + e] += (double) at(w, s, t, 0, 0) * (double) at(x, e, s, t, 0);
                gated[t * n + e] += 0.5 * (double) at(x, e, s, t, 0) / (1 + exp(-(double) at(gate, e, s, t, 0)));
                double *y = &post[(t * hc + s) * n + e];
                *y = (double) at(w, s, t, 0, 0) * (double) at(b, e, t, 0, 0);
                for (int from = 0; from < hc; from++) *y += (double) at(comb, s, from, t, 0) * (double) at(x, e, from, t, 0);
            }
    expect(ggml_dsv4_hc_pre(c, x, w), pre);
    expect(ggml_dsv4_hc_pre_gated(c, x, gate, 0.5f), gated);
    expect(ggml_dsv4_hc_post(c, b, x, w, comb), post);
    struct ggml_tensor *mixes = in(-2, 2, 24, n_token, 1, 1), *scale = in(0.5f, 1.5f, 3, 1, 1, 1),
                       *base = in(-1, 1, 24, 1, 1, 1);
    struct ggml_tensor *y = ggml_dsv4_hc_comb(c, mixes, scale, base, 1e-3f, 20);
    const double eps = (double) 1e-3f;
    for (int t = 0; t < n_token; t++) {
        double *m = mix + 16 * t;
        for (int s = 0; s < 4; s++) {
            double sum = 0;
            for (int d = 0; d < 4; d++)
                sum += m[4 * s + d] = exp((double) at(mixes, 8 + 4 * s + d, t, 0, 0) * (double) at(scale, 2, 0, 0, 0) +
                                          (double) at(base, 8 + 4 * s + d, 0, 0, 0));
            for (int d = 0; d < 4; d++) m[4 * s + d] = m[4 * s + d] / sum + eps;
        }
        for (int k = 0; k < 20; k++) {
            for (int s = 0; s < 4 && k > 0; s++) {
                const double sum = m[4 * s] + m[4 * s + 1] + m[4 * s + 2] + m[4 * s + 3] + eps;
                for (int d = 0; d < 4; d++) m[4 * s + d] /= sum;
            }
            for (int d = 0; d < 4; d++) {
                const double sum = m[d] + m[4 + d] + m[8 + d] + m[12 + d] + eps;
                for (int s = 0; s < 4; s++) m[4 * s + d] /= sum;
            }
        }
    }
    expect(y, mix);
    free(pre), free(gated), free(post), free(mix);
}

static void refuse(struct ggml_tensor *t, const char *sentence) {
    assert_true(ggml_is_error(t));
    assert_error(sentence);
}

static struct ggml_tensor *of(int64_t a, int64_t b, int64_t d, int64_t e) {
    return ggml_new_tensor_4d(c, GGML_TYPE_F32, a, b, d, e);
}

static void test_refused(void **state) {
    (void) state;
    struct ggml_tensor *h = ggml_new_tensor_4d(c, GGML_TYPE_F16, 8, 2, 6, 1), *x = of(8, 2, 6, 1), *s = of(128, 2, 1, 1),
                       *u = of(8, 2, 1, 1);
    refuse(ggml_ssm_conv(c, of(2, 5, 1, 1), of(4, 5, 1, 1)), "needs at least 3");
    refuse(ggml_ssm_conv(c, of(9, 5, 1, 1), of(4, 6, 1, 1)), "5 channels, c has 6");
    refuse(ggml_ssm_conv(c, ggml_transpose(c, of(5, 9, 1, 1)), of(4, 5, 1, 1)), "sx must be F32 with contiguous rows");
    refuse(ggml_rwkv_wkv6(c, h, x, x, u, x, s), "k must be F32 and contiguous");
    refuse(ggml_rwkv_wkv6(c, x, x, x, u, x, of(128, 4, 1, 1)), "6 tokens do not divide by 4 sequences");
    refuse(ggml_rwkv_wkv6(c, x, x, x, of(8, 1, 1, 1), x, s), "tf has 8 values");
    refuse(ggml_rwkv_wkv6(c, x, x, x, u, x, of(127, 2, 1, 1)), "state is [127, 2, 1, 1]");
    refuse(ggml_gated_linear_attn(c, x, of(8, 2, 5, 1), x, x, s, 1), "v is [8, 2, 5, 1]");
    refuse(ggml_rwkv_wkv7(c, x, x, x, x, x, of(8, 3, 6, 1), s), "b is [8, 3, 6, 1]");
    refuse(ggml_solve_tri(c, of(5, 6, 1, 1), of(3, 6, 1, 1), true, true, false), "must be square");
    refuse(ggml_solve_tri(c, of(5, 5, 1, 1), of(3, 6, 1, 1), true, true, false), "ne[1] = 5; it has 6");
    refuse(ggml_solve_tri(c, of(5, 5, 1, 1), of(3, 5, 1, 1), false, true, false), "ne[0] = 5; it has 3");
    refuse(ggml_solve_tri(c, of(5, 5, 2, 1), of(3, 5, 3, 1), true, true, false), "2 x 1 systems");
    refuse(ggml_gated_delta_net(c, of(8, 2, 6, 1), of(8, 2, 6, 1), of(8, 3, 6, 1), of(1, 3, 6, 1), of(1, 3, 6, 1),
                                of(8, 8, 3, 1), 1),
           "do not divide 3 value heads");
    refuse(ggml_gated_delta_net(c, of(8, 1, 6, 1), of(8, 1, 6, 1), of(8, 3, 6, 1), of(1, 3, 6, 1), of(1, 3, 6, 1),
                                of(8, 8, 3, 1), 0),
           "K = 0");
    refuse(ggml_gated_delta_net(c, of(8, 1, 6, 1), of(8, 1, 6, 1), of(8, 3, 6, 1), of(1, 3, 6, 1), of(1, 3, 6, 1),
                                of(8, 8, 2, 1), 1),
           "state has 128 values");
    refuse(ggml_lightning_indexer(c, of(8, 4, 3, 1), of(8, 2, 9, 1), of(4, 3, 1, 1), of(9, 3, 1, 1)), "k is [8, 2, 9, 1]");
    refuse(ggml_lightning_indexer(c, of(8, 4, 3, 1), of(8, 1, 9, 1), of(4, 3, 1, 1), of(8, 3, 1, 1)),
           "the mask is [8, 3, 1, 1]");
    refuse(ggml_dsv4_hc_comb(c, of(23, 3, 1, 1), of(3, 1, 1, 1), of(23, 1, 1, 1), 0, 1), "(2 + n) n");
    refuse(ggml_dsv4_hc_comb(c, of(24, 3, 1, 1), of(2, 1, 1, 1), of(24, 1, 1, 1), 0, 1), "scale has 2 values");
    refuse(ggml_dsv4_hc_comb(c, of(24, 3, 1, 1), of(3, 1, 1, 1), of(24, 1, 1, 1), 0, 0), "0 iterations");
    refuse(ggml_dsv4_hc_pre(c, of(8, 4, 3, 1), of(4, 2, 1, 1)), "weights is [4, 2, 1, 1]");
    refuse(ggml_dsv4_hc_pre_gated(c, of(8, 4, 3, 1), of(8, 4, 2, 1), 1), "64 gates for 96 values");
    refuse(ggml_dsv4_hc_post(c, of(8, 3, 1, 1), of(8, 4, 3, 1), of(4, 3, 1, 1), of(4, 3, 3, 1)), "comb is [4, 3, 3, 1]");
}

static void test_bad_ids(void **state) {
    (void) state;
    struct ggml_tensor *ids = ggml_new_tensor_1d(c, GGML_TYPE_I32, 2);
    struct ggml_tensor *y = ggml_ssm_scan(c, in(-1, 1, 8, 1, 4, 3), in(-1, 1, 1, 4, 5, 2), in(-1, 1, 4, 5, 2, 1),
                                          in(-1, 0, 1, 4, 1, 1), in(-1, 1, 8, 1, 5, 2), in(-1, 1, 8, 1, 5, 2), ids, 1);
    struct ggml_cgraph *g = ggml_new_graph_custom(c, 16, false);
    ggml_build_forward_expand(g, y);
    const int32_t bad[] = {3, -1, INT32_MAX};
    for (int i = 0; i < 3; i++) {
        ((int32_t *) ids->data)[0] = 0, ((int32_t *) ids->data)[1] = bad[i];
        ggml_clear_error();
        assert_int_equal(ggml_graph_compute_with_ctx(c, g, 2), GGML_STATUS_FAILED);
        assert_error("sequence 1 asks for state");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ssm_conv, begin, end),
        cmocka_unit_test_setup_teardown(test_ssm_scan, begin, end),
        cmocka_unit_test_setup_teardown(test_linear, begin, end),
        cmocka_unit_test_setup_teardown(test_wkv7, begin, end),
        cmocka_unit_test_setup_teardown(test_delta, begin, end),
        cmocka_unit_test_setup_teardown(test_solve, begin, end),
        cmocka_unit_test_setup_teardown(test_indexer, begin, end),
        cmocka_unit_test_setup_teardown(test_hyper, begin, end),
        cmocka_unit_test_setup_teardown(test_refused, begin, end),
        cmocka_unit_test_setup_teardown(test_bad_ids, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
