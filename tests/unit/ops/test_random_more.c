// As test_random.c, for operations on images and matrices, and for gradients and steps of optimizers.
#include "support/random_op.h"

// ---- convolutions and pools -----------------------------------------------------------------------------------------------

struct geometry {
    int64_t w, h, kw, kh, ow, oh;
    int s0, s1, p0, p1, d0, d1;
};

static struct geometry geometry(void) {
    for (;;) {
        struct geometry g = {.w = 1 + rnd(14),
                             .h = 1 + rnd(14),
                             .kw = 1 + rnd(5),
                             .kh = 1 + rnd(5),
                             .s0 = 1 + (int) rnd(3),
                             .s1 = 1 + (int) rnd(3),
                             .p0 = (int) rnd(4),
                             .p1 = (int) rnd(4),
                             .d0 = 1 + (int) rnd(3),
                             .d1 = 1 + (int) rnd(3)};
        const int64_t x = g.w + 2 * g.p0 - g.d0 * (g.kw - 1) - 1, y = g.h + 2 * g.p1 - g.d1 * (g.kh - 1) - 1;
        if (x < 0 || y < 0) continue;
        g.ow = x / g.s0 + 1, g.oh = y / g.s1 + 1;
        return g;
    }
}

// Element of an image, 0 in the margin.
static double pixel(const T *b, const struct geometry *g, int64_t x, int64_t y, int64_t c, int64_t n) {
    return x < 0 || y < 0 || x >= g->w || y >= g->h ? 0 : AT(b, x, y, c, n);
}

static void test_convolutions(void **state) {
    CASES(150) {
        C *c = begin();
        const struct geometry g = geometry();
        const int64_t ic = 1 + rnd(4), oc = 1 + rnd(4), n = 1 + rnd(3);
        int64_t nk[4] = {g.kw, g.kh, ic, oc}, ni[4] = {g.w, g.h, ic, n}, nd[4] = {g.kw, g.kh, 1, ic};
        T *k = tensor(c, F32, nk, PLAIN, 0), *b = tensor(c, rnd(2) ? F32 : F16, ni, 0, 0), *o;
        o = ggml_im2col(c, k, b, g.s0, g.s1, g.p0, g.p1, g.d0, g.d1, true, rnd(2) ? F32 : F16);
        now = "im2col";
        compute(c, o);
        assert_int_equal(o->ne[1], g.ow);
        assert_int_equal(o->ne[2], g.oh);
        WANT(o, 0,
             want = pixel(b, &g, i1 * g.s0 - g.p0 + i0 % g.kw * g.d0, i2 * g.s1 - g.p1 + i0 / g.kw % g.kh * g.d1,
                          i0 / g.kw / g.kh, i3));
        for (int direct = 0; direct < 2; direct++) {
            o = (direct ? ggml_conv_2d_direct : ggml_conv_2d)(c, k, b, g.s0, g.s1, g.p0, g.p1, g.d0, g.d1);
            now = direct ? "conv_2d_direct" : "conv_2d";
            compute(c, o);
            WANT(o, 1e-4,
                 for (int64_t e = 0; e < g.kw * g.kh * ic; e++) want +=
                 AT(k, e % g.kw, e / g.kw % g.kh, e / g.kw / g.kh, i2) * pixel(b, &g, i0 * g.s0 - g.p0 + e % g.kw * g.d0,
                                                                               i1 * g.s1 - g.p1 + e / g.kw % g.kh * g.d1,
                                                                               e / g.kw / g.kh, i3));
        }
        T *kd = tensor(c, F32, nd, PLAIN, 0);
        for (int direct = 0; direct < 2; direct++) {
            o = (direct ? ggml_conv_2d_dw_direct : ggml_conv_2d_dw)(c, kd, b, g.s0, g.s1, g.p0, g.p1, g.d0, g.d1);
            now = direct ? "conv_2d_dw_direct" : "conv_2d_dw";
            compute(c, o);
            WANT(o, 1e-4,
                 for (int64_t e = 0; e < g.kw * g.kh; e++) want +=
                 AT(kd, e % g.kw, e / g.kw, 0, i2) *
                 pixel(b, &g, i0 * g.s0 - g.p0 + e % g.kw * g.d0, i1 * g.s1 - g.p1 + e / g.kw * g.d1, i2, i3));
        }
        int64_t nt[4] = {g.kw, g.kh, oc, ic}, n1[4] = {g.kw, oc, ic, 1}, l1[4] = {g.w, ic, n, 1};
        T *kt = tensor(c, rnd(2) ? F32 : F16, nt, 0, 0);
        o = ggml_conv_transpose_2d_p0(c, kt, b, g.s0);
        now = "conv_transpose_2d_p0";
        compute(c, o);
        WANT(
            o, kt->type == F16 || b->type == F16 ? 2e-2 : 1e-4,
            for (int64_t ci = 0; ci < ic; ci++) for (int64_t y = 0; y < g.h; y++) for (int64_t x = 0; x < g.w; x++) {
                const int64_t kx = i0 - x * g.s0, ky = i1 - y * g.s0;
                if (kx >= 0 && ky >= 0 && kx < g.kw && ky < g.kh) want += AT(kt, kx, ky, i2, ci) * AT(b, x, y, ci, i3);
            });
        T *k1 = tensor(c, rnd(2) ? F32 : F16, n1, 0, 0), *b1 = tensor(c, F32, l1, 0, 0);
        o = ggml_conv_transpose_1d(c, k1, b1, g.s0, 0, 1);
        now = "conv_transpose_1d";
        compute(c, o);
        WANT(
            o, k1->type == F16 ? 2e-2 : 1e-4, for (int64_t ci = 0; ci < ic; ci++) for (int64_t x = 0; x < g.w; x++) {
                const int64_t kx = i0 - x * g.s0;
                if (kx >= 0 && kx < g.kw) want += AT(k1, kx, i1, ci, 0) * AT(b1, x, ci, i2, 0);
            });
        ggml_free(c);
    }
}

static void test_pools(void **state) {
    CASES(200) {
        C *c = begin();
        struct geometry g = geometry();
        if (g.p0 >= g.kw || g.p1 >= g.kh || g.w + 2 * g.p0 < g.kw || g.h + 2 * g.p1 < g.kh) {
            ggml_free(c);
            continue;
        }
        int64_t ni[4] = {g.w, g.h, 1 + rnd(3), 1 + rnd(3)};
        T *a = tensor(c, some_float(), ni, 0, 0), *o;
        const bool mean = rnd(2);
        const enum ggml_op_pool op = mean ? GGML_OP_POOL_AVG : GGML_OP_POOL_MAX;
        o = ggml_pool_2d(c, a, op, (int) g.kw, (int) g.kh, g.s0, g.s1, (float) g.p0 + (g.p0 + 1 < g.kw && rnd(2) ? 0.5f : 0),
                         (float) g.p1);
        now = "pool_2d";
        compute(c, o);
        WANT(o, 1e-5, {
            want = mean ? 0 : -INFINITY;
            for (int64_t y = 0; y < g.kh; y++)
                for (int64_t x = 0; x < g.kw; x++) {
                    const int64_t px = i0 * g.s0 - g.p0 + x, py = i1 * g.s1 - g.p1 + y;
                    if (px < 0 || py < 0 || px >= g.w || py >= g.h) continue;
                    const double v = AT(a, px, py, i2, i3);
                    want = mean ? want + v / (double) (g.kw * g.kh) : fmax(want, v);
                }
            if (want == -INFINITY) continue;  // a window without anything: the field's convention
        });
        o = ggml_pool_1d(c, a, op, (int) g.kw, g.s0, g.p0);
        now = "pool_1d";
        compute(c, o);
        WANT(o, 1e-5, {
            double sum = 0, max = -INFINITY;
            int64_t inside = 0;
            for (int64_t x = 0; x < g.kw; x++) {
                const int64_t px = i0 * g.s0 - g.p0 + x;
                if (px < 0 || px >= g.w) continue;
                sum += AT(a, px, i1, i2, i3), inside++;
                max = fmax(max, AT(a, px, i1, i2, i3));
            }
            if (!inside) continue;
            want = mean ? sum / (double) inside : max;
        });
        ggml_free(c);
    }
}

static void test_scaled(void **state) {
    CASES(200) {
        C *c = begin();
        int64_t ne[4] = {1 + rnd(12), 1 + rnd(12), 1 + rnd(3), 1 + rnd(2)},
                to[4] = {1 + rnd(20), 1 + rnd(20), ne[2] * (1 + rnd(2)), ne[3]};
        T *a = tensor(c, some_float(), ne, 0, 0);
        const bool bilinear = rnd(2), corners = bilinear && rnd(2);
        T *o = ggml_interpolate(c, a, to[0], to[1], to[2], to[3],
                                (uint32_t) (bilinear ? GGML_SCALE_MODE_BILINEAR : GGML_SCALE_MODE_NEAREST) |
                                    (corners ? GGML_SCALE_FLAG_ALIGN_CORNERS : 0));
        now = bilinear ? "bilinear" : "nearest";
        compute(c, o);
        double f[4];
        for (int i = 0; i < 4; i++) f[i] = (double) ((float) to[i] / (float) ne[i]);
        WANT(o, 1e-4, {
            const int64_t k2 = (int64_t) ((double) i2 / f[2]), k3 = (int64_t) ((double) i3 / f[3]);
            if (!bilinear) {
                const double x = (double) i0 / f[0], y = (double) i1 / f[1];
                if (fabs(x - round(x)) < 1e-5 || fabs(y - round(y)) < 1e-5) continue;  // on an edge, rounding decides
                want = AT(a, (int64_t) x, (int64_t) y, k2, k3);
            } else {
                double p[2];
                const int64_t i[2] = {i0, i1};
                for (int d = 0; d < 2; d++) {
                    p[d] = corners
                               ? (to[d] > 1 && ne[d] > 1 ? (double) i[d] * (double) (ne[d] - 1) / (double) (to[d] - 1) : 0)
                               : ((double) i[d] + 0.5) / f[d] - 0.5;
                    p[d] = fmin(fmax(p[d], 0), (double) (ne[d] - 1));
                }
                const int64_t x = (int64_t) p[0], y = (int64_t) p[1], x1 = x + 1 < ne[0] ? x + 1 : x,
                              y1 = y + 1 < ne[1] ? y + 1 : y;
                const double dx = p[0] - (double) x, dy = p[1] - (double) y;
                want = (AT(a, x, y, k2, k3) * (1 - dx) + AT(a, x1, y, k2, k3) * dx) * (1 - dy) +
                       (AT(a, x, y1, k2, k3) * (1 - dx) + AT(a, x1, y1, k2, k3) * dx) * dy;
            }
        });
        ggml_free(c);
    }
}

// ---- matrices and sequences -----------------------------------------------------------------------------------------------

static void test_matrices(void **state) {
    CASES(200) {
        C *c = begin();
        const int64_t n = 1 + rnd(20);
        int64_t ne[4] = {n, n, 1 + rnd(3), 1 + rnd(2)}, row[4] = {n, 1, ne[2], ne[3]};
        T *a = tensor(c, some_float(), ne, 0, rnd(2)), *o;
        const int kind = (int) rnd(4);
        o = ggml_tri(c, a, (enum ggml_tri_type) kind);
        now = "tri";
        compute(c, o);
        WANT(o, 0, {
            const bool kept = kind == GGML_TRI_TYPE_UPPER_DIAG   ? i0 >= i1
                              : kind == GGML_TRI_TYPE_UPPER      ? i0 > i1
                              : kind == GGML_TRI_TYPE_LOWER_DIAG ? i0 <= i1
                                                                 : i0 < i1;
            if (kept) want = AT(a, i0, i1, i2, i3);
        });
        T *r = tensor(c, F32, row, 0, rnd(2));
        o = ggml_diag(c, r);
        now = "diag";
        compute(c, o);
        WANT(o, 0, want = i0 == i1 ? AT(r, i0, 0, i2, i3) : 0);
        const bool left = rnd(2), lower = rnd(2), uni = rnd(2);
        int64_t nb[4] = {left ? 1 + rnd(8) : n, left ? n : 1 + rnd(8), ne[2], ne[3]};
        T *m = tensor(c, F32, ne, ROWS, 0), *b = tensor(c, F32, nb, ROWS, 0);
        EACH(ne)
        put(m, place(m, i0, i1, i2, i3),
            i0 == i1                      ? 1.5 + fabs(real())
            : (lower ? i0 > i1 : i0 < i1) ? NAN
                                          : real() / (double) n);
        o = ggml_solve_tri(c, m, b, left, lower, uni);
        now = "solve_tri";
        compute(c, o);
        EACH(nb) {  // back again: the product must give b
            double sum = 0;
            for (int64_t l = 0; l < n; l++) {
                const int64_t y = left ? i1 : l, x = left ? l : i0;
                if (lower ? x > y : x < y) continue;
                sum += (x == y && uni ? 1 : AT(m, x, y, i2, i3)) * (left ? AT(o, i0, l, i2, i3) : AT(o, l, i1, i2, i3));
            }
            assert_true(fabs(sum - AT(b, i0, i1, i2, i3)) < 1e-4);
        }
        ggml_free(c);
    }
    CASES(100) {
        C *c = begin();
        const int64_t d_conv = 1 + rnd(6), n_channel = 1 + rnd(20), n_token = 1 + rnd(9);
        int64_t ns[4] = {d_conv - 1 + n_token, n_channel, 1 + rnd(3), 1}, nk[4] = {d_conv, n_channel, 1, 1},
                nt[4] = {1 + rnd(20), 1, 1, 1};
        T *sx = tensor(c, F32, ns, ROWS, 0), *k = tensor(c, F32, nk, ROWS, 0), *o = ggml_ssm_conv(c, sx, k);
        now = "ssm_conv";
        compute(c, o);
        WANT(o, 1e-5, for (int64_t i = 0; i < d_conv; i++) want += AT(sx, i1 + i, i0, i2, 0) * AT(k, i, i0, 0, 0));
        T *steps = tensor(c, F32, nt, 0, 0);
        const int dim = 2 + (int) rnd(40), half = dim / 2;
        o = ggml_timestep_embedding(c, steps, dim, 10000);
        now = "timestep_embedding";
        compute(c, o);
        WANT(o, 1e-5, {
            const double t =
                AT(steps, i1, 0, 0, 0) * exp(-log(10000.0) * (double) (i0 % (half ? half : 1)) / (half ? half : 1));
            want = i0 >= 2 * half ? 0 : i0 < half ? cos(t) : sin(t);
        });
        const double start = real() * 10, step = 0.3 + fabs(real()), stop = start + step * (0.5 + rnd(50));
        o = ggml_arange(c, (float) start, (float) stop, (float) step);
        now = "arange";
        compute(c, o);
        assert_int_equal(o->ne[0], (int64_t) ceilf(((float) stop - (float) start) / (float) step));
        WANT(o, 1e-5, want = start + (double) i0 * step);
        ggml_free(c);
    }
}

static void test_experts_and_windows(void **state) {
    CASES(100) {
        C *c = begin();
        const int64_t n = 1 + rnd(40), used = 1 + rnd(4), n_token = rnd(7), n_expert = 1 + rnd(5);
        int64_t na[4] = {n, used, n_token, 1}, nb[4] = {n, n_expert, 1, 1}, ni[4] = {used, n_token, 1, 1};
        T *a = tensor(c, some_float(), na, 0, 0), *b = tensor(c, F32, nb, 0, 0), *ids = tensor(c, I32, ni, 0, 0), *o;
        EACH(ni) put(ids, place(ids, i0, i1, i2, i3), rnd((uint32_t) n_expert));
        o = ggml_add_id(c, a, b, ids);
        now = "add_id";
        compute(c, o);
        WANT(o, 1e-6, want = AT(a, i0, i1, i2, i3) + AT(b, i0, (int64_t) AT(ids, i1, i2, 0, 0), 0, 0));
        const int w = 1 + (int) rnd(5);
        int64_t nw[4] = {1 + rnd(9), 1 + rnd(12), 1 + rnd(12), 1};
        T *x = tensor(c, F32, nw, PLAIN, 0), *parts = ggml_win_part(c, x, w);
        o = ggml_win_unpart(c, parts, (int) nw[1], (int) nw[2], w);
        now = "win_part and back";
        compute(c, o);
        WANT(o, 0, want = AT(x, i0, i1, i2, i3));
        const int64_t side_ = 1 + rnd(9);
        int64_t nr[4] = {1 + rnd(7), 2 * side_ - 1, 1, 1};
        T *table = tensor(c, rnd(2) ? F32 : F16, nr, 0, 0);
        o = ggml_get_rel_pos(c, table, (int) side_, (int) side_);
        now = "get_rel_pos";
        compute(c, o);
        WANT(o, 0, want = AT(table, i0, side_ - 1 - i1 + i2, 0, 0));
        ggml_free(c);
    }
}

// ---- gradients and steps --------------------------------------------------------------------------------------------------

static void test_gradients(void **state) {
    CASES(150) {
        C *c = begin();
        int64_t ne[4], one[4] = {1, 1, 1, 1};
        do shape(ne, 5000);
        while (ne[0] * ne[1] * ne[2] * ne[3] == 0);
        T *g = tensor(c, F32, ne, 0, 0), *x = tensor(c, F32, ne, 0, 0), *o;
        o = ggml_silu_back(c, g, x);
        now = "silu_back";
        compute(c, o);
        WANT(o, 1e-5, {
            const double v = AT(x, i0, i1, i2, i3), s = 1 / (1 + exp(-v));
            want = AT(g, i0, i1, i2, i3) * s * (1 + v * (1 - s));
        });
        const double scale = 0.3 + fabs(real());
        o = ggml_soft_max_ext_back(c, g, x, (float) scale, 0);
        now = "soft_max_ext_back";
        compute(c, o);
        WANT(o, 1e-3, {
            double dot = 0;
            for (int64_t k = 0; k < ne[0]; k++) dot += AT(g, k, i1, i2, i3) * AT(x, k, i1, i2, i3);
            want = (AT(g, i0, i1, i2, i3) - dot) * AT(x, i0, i1, i2, i3) * (double) (float) scale;
        });
        o = ggml_rms_norm_back(c, g, x, 1e-3f);
        now = "rms_norm_back";
        compute(c, o);
        WANT(o, 1e-3, {
            double xx = 0, gx = 0;
            const double n = (double) ne[0];
            for (int64_t k = 0; k < ne[0]; k++)
                xx += pow(AT(x, k, i1, i2, i3), 2), gx += AT(g, k, i1, i2, i3) * AT(x, k, i1, i2, i3);
            const double m = xx / n + 1e-3;
            want = (AT(g, i0, i1, i2, i3) - AT(x, i0, i1, i2, i3) * gx / (n * m)) / sqrt(m);
        });
        const int64_t rows = 1 + rnd(9);
        int64_t ng[4] = {ne[0], 1 + rnd(20), 1, 1}, ni[4] = {ng[1], 1, 1, 1}, nt[4] = {ne[0], rows, 1, 1};
        T *gr = tensor(c, rnd(2) ? F32 : F16, ng, 0, 0), *ids = tensor(c, I32, ni, 0, 0),
          *like = tensor(c, F32, nt, PLAIN, 0);
        EACH(ni) put(ids, place(ids, i0, i1, i2, i3), rnd((uint32_t) rows));
        o = ggml_get_rows_back(c, gr, ids, like);
        now = "get_rows_back";
        compute(c, o);
        WANT(o, 1e-5,
             for (int64_t r = 0; r < ng[1]; r++) if ((int64_t) AT(ids, r, 0, 0, 0) == i1) want += AT(gr, i0, r, 0, 0));
        T *labels = tensor(c, F32, ne, 0, 0), *dl = tensor(c, F32, one, PLAIN, 0);
        EACH(ne) put(labels, place(labels, i0, i1, i2, i3), 1 / (double) ne[0]);
        const double n_row = (double) (ne[1] * ne[2] * ne[3]);
        double loss = 0;
        EACH(ne) {
            double max = -INFINITY, sum = 0;
            for (int64_t k = 0; k < ne[0]; k++) max = fmax(max, AT(x, k, i1, i2, i3));
            for (int64_t k = 0; k < ne[0]; k++) sum += exp(AT(x, k, i1, i2, i3) - max);
            loss -= AT(labels, i0, i1, i2, i3) * (AT(x, i0, i1, i2, i3) - max - log(sum)) / n_row;
        }
        o = ggml_cross_entropy_loss(c, x, labels);
        now = "cross_entropy_loss";
        compute(c, o);
        WANT(o, 1e-4, want = loss);
        o = ggml_cross_entropy_loss_back(c, dl, x, labels);
        now = "cross_entropy_loss_back";
        compute(c, o);
        WANT(o, 1e-4, {
            double max = -INFINITY, sum = 0;
            for (int64_t k = 0; k < ne[0]; k++) max = fmax(max, AT(x, k, i1, i2, i3));
            for (int64_t k = 0; k < ne[0]; k++) sum += exp(AT(x, k, i1, i2, i3) - max);
            want = (exp(AT(x, i0, i1, i2, i3) - max) / sum - AT(labels, i0, i1, i2, i3)) * AT(dl, 0, 0, 0, 0) / n_row;
        });
        ggml_free(c);
    }
}

static void test_steps(void **state) {
    CASES(100) {
        C *c = begin();
        int64_t ne[4], np[4] = {7, 1, 1, 1};
        do shape(ne, 5000);
        while (ne[0] * ne[1] * ne[2] * ne[3] == 0);
        const bool adam = rnd(2);
        T *x = tensor(c, F32, ne, PLAIN, 0), *g = tensor(c, F32, ne, PLAIN, 0), *m = tensor(c, F32, ne, PLAIN, 0),
          *v = tensor(c, F32, ne, PLAIN, 0);
        if (!adam) np[0] = 2;
        T *p = tensor(c, F32, np, PLAIN, 0);
        static const float adam_params[] = {0.1f, 0.9f, 0.99f, 1e-8f, 0.01f, 10, 100}, sgd_params[] = {0.1f, 0.01f};
        memcpy(p->data, adam ? adam_params : sgd_params, (size_t) np[0] * sizeof(float));
        EACH(ne) put(v, place(v, i0, i1, i2, i3), fabs(real()));
        ggml_set_param(x);
        double *old = malloc(sizeof(double) * 3 * (size_t) ggml_nelements(x));
        int64_t n = 0;
        EACH(ne)
        old[n] = AT(x, i0, i1, i2, i3), old[n + 1] = AT(m, i0, i1, i2, i3), old[n + 2] = AT(v, i0, i1, i2, i3), n += 3;
        T *o = adam ? ggml_opt_step_adamw(c, x, g, m, v, p) : ggml_opt_step_sgd(c, x, g, p);
        now = adam ? "opt_step_adamw" : "opt_step_sgd";
        compute(c, o);
        n = 0;
        WANT(x, 1e-5, {
            const double d = AT(g, i0, i1, i2, i3), m1 = old[n + 1] * 0.9 + d * 0.1, v1 = old[n + 2] * 0.99 + d * d * 0.01;
            want = adam ? old[n] * (1 - 0.1 * 0.01) - 0.1 * m1 * 10 / (sqrt(v1 * 100) + 1e-8)
                        : old[n] * (1 - 0.1 * 0.01) - 0.1 * d;
            n += 3;
        });
        free(old);
        ggml_free(c);
    }
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolutions),
        cmocka_unit_test(test_pools),
        cmocka_unit_test(test_scaled),
        cmocka_unit_test(test_matrices),
        cmocka_unit_test(test_experts_and_windows),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_steps),
    };
    const int status = cmocka_run_group_tests(tests, NULL, NULL);
    print_message("%d elements compared\n", n_compared);
    return status;
}
