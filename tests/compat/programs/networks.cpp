// Networks as examples build them: a detector (convolutions, batch norms, pools, upscaling), windows of attention with relative positions, a
// transformer with its cache as views of one tensor; by gallocr and by the scheduler, with one thread and three.
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml-cpu.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define DIE(code)                                                                                                           \
    do {                                                                                                                    \
        fprintf(stderr, "line %d\n", __LINE__);                                                                             \
        exit(code);                                                                                                         \
    } while (0)
static float rnd(uint32_t &s) {
    s = s * 1664525u + 1013904223u;
    return (float) (s >> 8) / 16777216.f - 0.5f;
}
static std::vector<float> nets(int n_threads) {
    std::vector<float> out;
    ggml_backend_t be = ggml_backend_init_best();
    if (!be) DIE(2);
    if (ggml_backend_is_cpu(be)) ggml_backend_cpu_set_n_threads(be, n_threads);
    ggml_init_params ip = {ggml_tensor_overhead() * 200, nullptr, true};
    ggml_context_ptr w(ggml_init(ip));
    auto W = [&](int64_t a, int64_t b, int64_t c, int64_t d, ggml_type t) {
        return ggml_new_tensor_4d(w.get(), t, a, b, c, d);
    };
    struct L {
        ggml_tensor *k, *b, *s, *m, *v;
    };
    std::vector<L> cv;
    int ch[] = {3, 8, 16, 16, 24, 8, 10};
    for (int i = 0; i < 6; i++)
        cv.push_back({W(i == 4 ? 1 : 3, i == 4 ? 1 : 3, i == 5 ? 24 + 8 : ch[i], ch[i + 1], GGML_TYPE_F16),
                      W(1, 1, ch[i + 1], 1, GGML_TYPE_F32), W(1, 1, ch[i + 1], 1, GGML_TYPE_F32),
                      W(1, 1, ch[i + 1], 1, GGML_TYPE_F32), W(1, 1, ch[i + 1], 1, GGML_TYPE_F32)});
    auto *in = W(48, 48, 3, 1, GGML_TYPE_F32);
    // SAM: windows with relative positions
    const int E = 32, HN = 2, D = 16, win = 7;
    auto *pe = W(8, 8, 3, E, GGML_TYPE_F16), *qkv = W(E, 3 * E, 1, 1, GGML_TYPE_F16),
         *rh = W(D, 2 * win - 1, 1, 1, GGML_TYPE_F16), *rw = W(D, 2 * win - 1, 1, 1, GGML_TYPE_F16),
         *img = W(80, 80, 3, 1, GGML_TYPE_F32), *up = W(2, 2, 8, E, GGML_TYPE_F16), *nw = W(E, 1, 1, 1, GGML_TYPE_F32);
    ggml_backend_buffer_ptr buf(ggml_backend_alloc_ctx_tensors(w.get(), be));
    uint32_t s = 3;
    for (auto *t = ggml_get_first_tensor(w.get()); t; t = ggml_get_next_tensor(w.get(), t)) {
        std::vector<float> f((size_t) ggml_nelements(t));
        for (auto &x : f) x = rnd(s);
        if (t->type == GGML_TYPE_F32)
            ggml_backend_tensor_set(t, f.data(), 0, ggml_nbytes(t));
        else {
            std::vector<ggml_fp16_t> h(f.size());
            ggml_fp32_to_fp16_row(f.data(), h.data(), (int64_t) f.size());
            ggml_backend_tensor_set(t, h.data(), 0, ggml_nbytes(t));
        }
    }
    ggml_init_params gp = {ggml_tensor_overhead() * 400 + ggml_graph_overhead(), nullptr, true};
    ggml_context_ptr c(ggml_init(gp));
    auto *x0 = c.get();
    ggml_cgraph *g = ggml_new_graph(x0);
    auto conv = [&](ggml_tensor *x, L &l, int pad, bool bn) {
        x = ggml_conv_2d(x0, l.k, x, 1, 1, pad, pad, 1, 1);
        if (bn) {
            x = ggml_sub(x0, x, ggml_repeat(x0, l.m, x));
            x = ggml_div(x0, x, ggml_sqrt(x0, ggml_repeat(x0, ggml_scale_bias(x0, ggml_sqr(x0, l.v), 1.f, 0.1f), x)));
            x = ggml_mul(x0, x, ggml_repeat(x0, l.s, x));
        }
        x = ggml_add(x0, x, ggml_repeat(x0, l.b, x));
        return ggml_leaky_relu(x0, x, 0.1f, true);
    };
    auto *y = conv(in, cv[0], 1, true);
    y = ggml_pool_2d(x0, y, GGML_OP_POOL_MAX, 2, 2, 2, 2, 0, 0);
    y = conv(y, cv[1], 1, true);
    y = conv(y, cv[2], 1, true);
    y = ggml_pool_2d(x0, y, GGML_OP_POOL_MAX, 2, 2, 2, 2, 0, 0);
    y = conv(y, cv[3], 1, true);
    y = ggml_pool_2d(x0, y, GGML_OP_POOL_MAX, 2, 2, 1, 1, 0.5f, 0.5f);
    auto *z = conv(y, cv[4], 0, true);
    z = ggml_upscale(x0, z, 2, GGML_SCALE_MODE_NEAREST);
    auto *y2 = ggml_upscale(x0, y, 2, GGML_SCALE_MODE_NEAREST);
    auto *cat = ggml_concat(x0, z, y2, 2);
    ggml_tensor *l17 = ggml_cont(x0, conv(cat, cv[5], 1, false));
    ggml_set_name(l17, "layer_17");
    ggml_set_output(l17);
    ggml_build_forward_expand(g, l17);
    auto *p = ggml_conv_2d_sk_p0(x0, pe, img);
    p = ggml_cont(x0, ggml_permute(x0, p, 1, 2, 0, 3));  // [E, 10, 10]
    auto *n = ggml_mul(x0, ggml_norm(x0, p, 1e-6f), nw);
    auto *wp = ggml_win_part(x0, n, win);
    const int64_t WB = wp->ne[3];
    auto *q = ggml_mul_mat(x0, qkv, wp);
    q = ggml_reshape_4d(x0, q, E, 3, win * win, WB);
    q = ggml_cont(x0, ggml_permute(x0, q, 0, 3, 1, 2));
    auto part = [&](int k) {
        auto *v = ggml_view_3d(x0, q, E, win * win, WB, q->nb[1], q->nb[2], (size_t) k * q->nb[3]);
        return ggml_reshape_4d(x0, v, D, HN, win * win, WB);
    };
    auto *Q = ggml_reshape_3d(x0, ggml_cont(x0, ggml_permute(x0, part(0), 0, 2, 1, 3)), D, win * win, WB * HN),
         *K = ggml_reshape_3d(x0, ggml_cont(x0, ggml_permute(x0, part(1), 0, 2, 1, 3)), D, win * win, WB * HN),
         *V = ggml_reshape_3d(x0, ggml_cont(x0, ggml_permute(x0, part(2), 1, 2, 0, 3)), win * win, D, WB * HN);
    auto *kq = ggml_scale_inplace(x0, ggml_mul_mat(x0, K, Q), 0.25f);
    auto *rwp = ggml_get_rel_pos(x0, rw, win, win), *rhp = ggml_get_rel_pos(x0, rh, win, win);
    auto *qr = ggml_reshape_4d(x0, Q, D, win, win, WB * HN);
    auto *relw = ggml_cont(
             x0, ggml_permute(x0, ggml_mul_mat(x0, rwp, ggml_cont(x0, ggml_permute(x0, qr, 0, 2, 1, 3))), 0, 2, 1, 3)),
         *relh = ggml_mul_mat(x0, rhp, qr);
    kq = ggml_soft_max_inplace(x0, ggml_add_rel_pos_inplace(x0, kq, relw, relh));
    auto *kqv = ggml_mul_mat(x0, V, kq);
    auto *o = ggml_reshape_4d(
        x0, ggml_cont(x0, ggml_permute(x0, ggml_reshape_4d(x0, kqv, D, win * win, HN, WB), 0, 2, 1, 3)), E, win, win, WB);
    o = ggml_win_unpart(x0, o, 10, 10, win);
    o = ggml_add(x0, o, p);
    o = ggml_cont(x0, ggml_permute(x0, o, 2, 0, 1, 3));
    o = ggml_conv_transpose_2d_p0(x0, up, o, 2);
    ggml_set_name(o, "masks");
    ggml_set_output(o);
    ggml_build_forward_expand(g, o);
    ggml_gallocr_t al = ggml_gallocr_new(ggml_backend_get_default_buffer_type(be));
    if (!ggml_gallocr_alloc_graph(al, g)) DIE(3);
    for (int r = 0; r < 2; r++)
        if (ggml_backend_graph_compute(be, g)) DIE(4);
    if (l17->ne[0] != 24 || l17->ne[1] != 24 || o->ne[0] != 20)
        DIE(5);  // windows of 2 with step 1 and padding 0.5 keep the size
    for (auto *t : {l17, o}) {
        std::vector<float> f((size_t) ggml_nelements(t));
        ggml_backend_tensor_get(t, f.data(), 0, ggml_nbytes(t));
        out.insert(out.end(), f.begin(), f.end());
    }
    ggml_gallocr_free(al);
    ggml_backend_free(be);
    return out;
}
struct lay {
    ggml_tensor *n1g, *n1b, *n2g, *n2b, *qkvw, *qkvb, *pw, *pb, *fw, *fb, *f2w, *f2b;
};
static std::vector<int> gpt2(bool sched, ggml_type wt) {
    std::vector<int> out;
    const int E = 64, H = 4, L = 3, V = 96, C = 64;
    ggml_backend_load_all();
    ggml_time_init();
    ggml_backend_t cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr), be = cpu;
    for (size_t i = 0; i < ggml_backend_dev_count(); i++)
        if (ggml_backend_dev_type(ggml_backend_dev_get(i)) != GGML_BACKEND_DEVICE_TYPE_CPU) {
            be = ggml_backend_dev_init(ggml_backend_dev_get(i), nullptr);
            break;
        }
    ggml_init_params ip = {ggml_tensor_overhead() * 64, nullptr, true};
    ggml_context_ptr w(ggml_init(ip)), kvc(ggml_init(ip));
    std::vector<ggml_tensor *> all;
    auto T = [&](ggml_type t, int64_t a, int64_t b = 1) {
        auto *x = b == 1 ? ggml_new_tensor_1d(w.get(), t, a) : ggml_new_tensor_2d(w.get(), t, a, b);
        all.push_back(x);
        return x;
    };
    auto *wte = T(wt, E, V), *wpe = T(GGML_TYPE_F32, E, C), *lnfg = T(GGML_TYPE_F32, E), *lnfb = T(GGML_TYPE_F32, E);
    std::vector<lay> ls;
    for (int i = 0; i < L; i++) {
        lay l;
        l.n1g = T(GGML_TYPE_F32, E);
        l.n1b = T(GGML_TYPE_F32, E);
        l.n2g = T(GGML_TYPE_F32, E);
        l.n2b = T(GGML_TYPE_F32, E);
        l.qkvw = T(wt, E, 3 * E);
        l.qkvb = T(GGML_TYPE_F32, 3 * E);
        l.pw = T(wt, E, E);
        l.pb = T(GGML_TYPE_F32, E);
        l.fw = T(wt, E, 4 * E);
        l.fb = T(GGML_TYPE_F32, 4 * E);
        l.f2w = T(wt, 4 * E, E);
        l.f2b = T(GGML_TYPE_F32, E);
        ls.push_back(l);
    }
    ggml_backend_buffer_ptr bw(ggml_backend_alloc_ctx_tensors(w.get(), be));
    ggml_backend_buffer_set_usage(bw.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    uint32_t s = 1;
    for (auto *t : all) {
        std::vector<float> f((size_t) ggml_nelements(t));
        for (auto &x : f) x = rnd(s) * (ggml_n_dims(t) == 1 ? 1.f : 0.5f);
        std::vector<uint8_t> q(ggml_nbytes(t));
        if (t->type == GGML_TYPE_F32)
            memcpy(q.data(), f.data(), q.size());
        else
            ggml_quantize_chunk(t->type, f.data(), q.data(), 0, t->ne[1], t->ne[0], nullptr);
        ggml_backend_tensor_set(t, q.data(), 0, q.size());
    }
    auto *mk = ggml_new_tensor_1d(kvc.get(), GGML_TYPE_F32, E * L * C),
         *mv = ggml_new_tensor_1d(kvc.get(), GGML_TYPE_F32, E * L * C);
    ggml_backend_buffer_ptr bk(
        ggml_backend_buft_alloc_buffer(ggml_backend_get_default_buffer_type(be), ggml_nbytes(mk) * 2 + 512));
    ggml_tallocr ta = ggml_tallocr_new(bk.get());
    if (ggml_tallocr_alloc(&ta, mk) || ggml_tallocr_alloc(&ta, mv)) DIE(2);
    ggml_backend_buffer_clear(bk.get(), 0);
    auto graph = [&](int n_past, int N, ggml_context *c) {
        auto *gf = ggml_new_graph_custom(c, 1024, false);
        auto *emb = ggml_new_tensor_1d(c, GGML_TYPE_I32, N), *pos = ggml_new_tensor_1d(c, GGML_TYPE_I32, N);
        ggml_set_name(emb, "embd");
        ggml_set_input(emb);
        ggml_set_name(pos, "position");
        ggml_set_input(pos);
        auto *x = ggml_add(c, ggml_get_rows(c, wte, emb), ggml_get_rows(c, wpe, pos));
        for (int i = 0; i < L; i++) {
            auto &l = ls[(size_t) i];
            auto *cur = ggml_norm(c, x, 1e-5f);
            cur = ggml_add(c, ggml_mul(c, cur, l.n1g), l.n1b);
            cur = ggml_add(c, ggml_mul_mat(c, l.qkvw, cur), l.qkvb);
            auto *q = ggml_view_2d(c, cur, E, N, cur->nb[1], 0),
                 *k = ggml_view_2d(c, cur, E, N, cur->nb[1], sizeof(float) * E),
                 *v = ggml_view_2d(c, cur, E, N, cur->nb[1], 2 * sizeof(float) * E);
            if (N >= 1) {
                auto *kk = ggml_view_1d(c, mk, N * E, (size_t) ((i * C + n_past) * E) * 4),
                     *vv = ggml_view_1d(c, mv, N * E, (size_t) ((i * C + n_past) * E) * 4);
                ggml_build_forward_expand(gf, ggml_cpy(c, k, kk));
                ggml_build_forward_expand(gf, ggml_cpy(c, v, vv));
            }
            auto *Q = ggml_permute(c, ggml_cont_3d(c, q, E / H, H, N), 0, 2, 1, 3),
                 *K = ggml_permute(c,
                                   ggml_reshape_3d(c, ggml_view_1d(c, mk, (n_past + N) * E, (size_t) (i * C * E) * 4), E / H,
                                                   H, n_past + N),
                                   0, 2, 1, 3);
            auto *kq = ggml_soft_max_inplace(
                c, ggml_diag_mask_inf_inplace(c, ggml_scale(c, ggml_mul_mat(c, K, Q), 1.f / sqrtf((float) E / H)), n_past));
            auto *VT =
                ggml_cont_3d(c,
                             ggml_permute(c,
                                          ggml_reshape_3d(c, ggml_view_1d(c, mv, (n_past + N) * E, (size_t) (i * C * E) * 4),
                                                          E / H, H, n_past + N),
                                          1, 2, 0, 3),
                             n_past + N, E / H, H);
            cur = ggml_cont_2d(c, ggml_permute(c, ggml_mul_mat(c, VT, kq), 0, 2, 1, 3), E, N);
            cur = ggml_add(c, ggml_mul_mat(c, l.pw, cur), l.pb);
            cur = ggml_add(c, cur, x);
            auto *ff = cur;
            cur = ggml_norm(c, ff, 1e-5f);
            cur = ggml_add(c, ggml_mul(c, cur, l.n2g), l.n2b);
            cur = ggml_gelu(c, ggml_add(c, ggml_mul_mat(c, l.fw, cur), l.fb));
            cur = ggml_add(c, ggml_mul_mat(c, l.f2w, cur), l.f2b);
            x = ggml_add(c, cur, ff);
        }
        x = ggml_norm(c, x, 1e-5f);
        x = ggml_add(c, ggml_mul(c, x, lnfg), lnfb);
        x = ggml_mul_mat(c, wte, x);
        ggml_set_name(x, "logits");
        ggml_set_output(x);
        ggml_build_forward_expand(gf, x);
        return gf;
    };
    std::vector<ggml_backend_t> bes;
    if (be != cpu) bes.push_back(be);
    bes.push_back(cpu);
    ggml_gallocr_t al = nullptr;
    ggml_backend_sched_t sc = nullptr;
    const size_t ms = ggml_tensor_overhead() * 1024 + ggml_graph_overhead_custom(1024, false);
    std::vector<uint8_t> meta(ms);
    auto mctx = [&] {
        ggml_init_params g = {ms, meta.data(), true};
        return ggml_init(g);
    };
    {
        ggml_context_ptr c(mctx());
        auto *g = graph(0, 8, c.get());
        if (sched) {
            sc = ggml_backend_sched_new(bes.data(), nullptr, (int) bes.size(), 1024, false, true);
            if (!ggml_backend_sched_reserve(sc, g)) DIE(3);
        } else {
            al = ggml_gallocr_new(ggml_backend_get_default_buffer_type(be));
            if (!ggml_gallocr_reserve(al, g)) DIE(4);
        }
    }
    std::vector<int32_t> in = {1, 5, 9, 33, 70};
    int past = 0;
    for (int step = 0; step < 12; step++) {
        ggml_context_ptr c(mctx());
        const int N = (int) in.size();
        auto *g = graph(past, N, c.get());
        if (sched) {
            ggml_backend_sched_reset(sc);
            if (!ggml_backend_sched_alloc_graph(sc, g)) DIE(5);
        } else if (!ggml_gallocr_alloc_graph(al, g))
            DIE(6);
        std::vector<int32_t> p;
        for (int i = 0; i < N; i++) p.push_back(past + i);
        ggml_backend_tensor_set(ggml_graph_get_tensor(g, "embd"), in.data(), 0, (size_t) N * 4);
        ggml_backend_tensor_set(ggml_graph_get_tensor(g, "position"), p.data(), 0, (size_t) N * 4);
        if (sched ? ggml_backend_sched_graph_compute(sc, g) : ggml_backend_graph_compute(be, g)) DIE(7);
        std::vector<float> lg((size_t) V);
        ggml_backend_tensor_get(ggml_graph_get_tensor(g, "logits"), lg.data(), (size_t) ((N - 1) * V) * 4, (size_t) V * 4);
        const int id = (int) (std::max_element(lg.begin(), lg.end()) - lg.begin());
        out.push_back(id);
        past += N;
        in = {id};
    }
    if (al) ggml_gallocr_free(al);
    if (sc) ggml_backend_sched_free(sc);
    if (be != cpu) ggml_backend_free(be);
    ggml_backend_free(cpu);
    return out;
}

int main() {
    ggml_backend_load_all();
    const auto a = nets(1), b = nets(3);
    double sum = 0;
    for (float v : a) sum += std::abs(v);
    if (a != b || !(std::abs(sum - 9078.7) < 9)) return 1;  // as other implementations have it
    for (ggml_type t : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q4_0, GGML_TYPE_Q8_0}) {
        const auto x = gpt2(false, t), y = gpt2(true, t);
        if (x != y || x.size() != 12) return 2;
        if (t == GGML_TYPE_F32 && (x[1] != 41)) return 3;
    }
    return 0;
}
