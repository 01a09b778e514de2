// Each operation on the CPU and on a second device (without one: the CPU by its reference kernels), gradients against differences.
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml-cpu.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#define DIE(code)                                                                                                           \
    do {                                                                                                                    \
        fprintf(stderr, "line %d\n", __LINE__);                                                                             \
        exit(code);                                                                                                         \
    } while (0)
#include <functional>
#include <random>
typedef std::function<ggml_tensor *(ggml_context *)> build_t;
static std::mt19937 rng(42);
static void init_uniform(ggml_tensor *t, float lo = -1, float hi = 1) {
    const size_t n = (size_t) ggml_nelements(t);
    std::vector<float> d(n);
    std::uniform_real_distribution<float> u(lo, hi);
    for (auto &x : d) x = u(rng);
    if (t->type == GGML_TYPE_F32)
        ggml_backend_tensor_set(t, d.data(), 0, n * 4);
    else if (t->type == GGML_TYPE_I32) {
        std::vector<int32_t> i(n);
        for (size_t k = 0; k < n; k++) i[k] = (int32_t) (rng() % 4);
        ggml_backend_tensor_set(t, i.data(), 0, n * 4);
    } else if (t->type == GGML_TYPE_I64) {
        std::vector<int64_t> i(n);
        for (size_t k = 0; k < n; k++) i[k] = (int64_t) k;
        ggml_backend_tensor_set(t, i.data(), 0, n * 8);
    } else if (ggml_is_quantized(t->type) || t->type == GGML_TYPE_F16 || t->type == GGML_TYPE_BF16) {
        std::vector<uint8_t> q(ggml_row_size(t->type, (int64_t) n));
        std::vector<float> im((size_t) t->ne[0], 1.f);
        ggml_quantize_chunk(t->type, d.data(), q.data(), 0, (int64_t) n / t->ne[0], t->ne[0],
                            ggml_quantize_requires_imatrix(t->type) ? im.data() : nullptr);
        ggml_backend_tensor_set(t, q.data(), 0, q.size());
    } else
        DIE(50);
}
struct ud {
    double worst;
    int n;
};
static bool cmp(int, ggml_tensor *a, ggml_tensor *b, void *p) {
    auto *u = (ud *) p;
    if (a->op == GGML_OP_NONE || ggml_is_view(a)) return true;
    std::vector<float> x((size_t) ggml_nelements(a)), y(x.size());
    if (a->type != GGML_TYPE_F32 || !ggml_is_contiguous(a)) return true;
    ggml_backend_tensor_get(a, x.data(), 0, ggml_nbytes(a));
    ggml_backend_tensor_get(b, y.data(), 0, ggml_nbytes(b));
    double e = 0, s = 1e-30;
    for (size_t i = 0; i < x.size(); i++) {
        if (std::isnan(x[i]) != std::isnan(y[i])) DIE(51);
        if (std::isinf(x[i]) || std::isnan(x[i])) continue;
        e += (x[i] - y[i]) * (double) (x[i] - y[i]);
        s += x[i] * (double) x[i];
    }
    u->worst = std::max(u->worst, e / s);
    u->n++;
    return true;
}
int main() {
    ggml_backend_load_all();
    ggml_backend_t cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr), two = nullptr;
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        auto *d = ggml_backend_dev_get(i);
        size_t fr, to;
        ggml_backend_dev_memory(d, &fr, &to);
        if (ggml_backend_dev_type(d) != GGML_BACKEND_DEVICE_TYPE_CPU) {
            two = ggml_backend_dev_init(d, nullptr);
            break;
        }
    }
    if (!two) {
        two = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
        ggml_backend_cpu_set_use_ref(two, true);
    }
    auto F = [](ggml_context *c, int64_t a, int64_t b = 1, int64_t d = 1, int64_t e = 1, ggml_type t = GGML_TYPE_F32) {
        auto *x = ggml_new_tensor_4d(c, t, a, b, d, e);
        return x;
    };
    std::vector<std::pair<std::string, build_t>> T;
    std::set<std::string> grads;
    auto add1 = [&](const std::string &n, build_t b, bool g = false) {
        T.emplace_back(n, b);
        if (g) grads.insert(n);
    };
    for (int u = 0; u < GGML_UNARY_OP_COUNT; u++)
        if (u != GGML_UNARY_OP_XIELU)
            add1(
                std::string("unary_") + ggml_unary_op_name((ggml_unary_op) u),
                [=](ggml_context *c) {
                    auto *x = F(c, 13, 5, 2, 2);
                    ggml_set_param(x);
                    return ggml_unary(c, x, (ggml_unary_op) u);
                },
                u == GGML_UNARY_OP_SILU || u == GGML_UNARY_OP_NEG || u == GGML_UNARY_OP_EXP || u == GGML_UNARY_OP_EXPM1 ||
                    u == GGML_UNARY_OP_SOFTPLUS);
    for (int u = 0; u < GGML_GLU_OP_COUNT; u++)
        add1(
            std::string("glu_") + ggml_glu_op_name((ggml_glu_op) u),
            [=](ggml_context *c) {
                auto *a = F(c, 16, 5), *b = F(c, 16, 5);
                if (u == GGML_GLU_OP_SWIGLU_OAI) return ggml_swiglu_oai(c, a, b, 1.7f, 7.f);
                if (u == GGML_GLU_OP_SWIGLU_CLAMP) return ggml_glu_split(c, a, b, GGML_GLU_OP_SWIGLU);
                ggml_set_param(a);
                ggml_set_param(b);
                return ggml_glu_split(c, a, b, (ggml_glu_op) u);
            },
            u == GGML_GLU_OP_SWIGLU);
    for (auto f : {ggml_add, ggml_sub, ggml_mul, ggml_div})
        add1(
            "bin",
            [=](ggml_context *c) {
                auto *a = F(c, 10, 5, 4, 3), *b = F(c, 1, 5, 4, 1);
                ggml_set_param(a);
                return f(c, a, f == ggml_div ? ggml_scale_bias(c, b, 0.1f, 2.f) : b);
            },
            true);
    for (int t = 0; t < GGML_TYPE_COUNT; t++) {
        const auto *tr = ggml_get_type_traits((ggml_type) t);
        if (!tr->blck_size || t == GGML_TYPE_Q8_1 || t == GGML_TYPE_Q8_K || t == GGML_TYPE_F64 ||
            (t >= GGML_TYPE_I8 && t <= GGML_TYPE_I64))
            continue;
        for (int n : {1, 9})
            add1(std::string("mul_mat_") + ggml_type_name((ggml_type) t),
                 [=](ggml_context *c) { return ggml_mul_mat(c, F(c, 256, 16, 2, 1, (ggml_type) t), F(c, 256, n, 4, 1)); });
        add1(std::string("mul_mat_id_") + ggml_type_name((ggml_type) t), [=](ggml_context *c) {
            return ggml_mul_mat_id(c, F(c, 256, 32, 4, 1, (ggml_type) t), F(c, 256, 2, 7), F(c, 2, 7, 1, 1, GGML_TYPE_I32));
        });
        if (tr->to_float)
            add1(std::string("get_rows_") + ggml_type_name((ggml_type) t), [=](ggml_context *c) {
                return ggml_get_rows(c, F(c, 256, 5, 1, 1, (ggml_type) t), F(c, 4, 1, 1, 1, GGML_TYPE_I32));
            });
        add1(std::string("cpy_to_") + ggml_type_name((ggml_type) t),
             [=](ggml_context *c) { return ggml_cpy(c, F(c, 256, 4), F(c, 256, 4, 1, 1, (ggml_type) t)); });
        add1(std::string("set_rows_") + ggml_type_name((ggml_type) t), [=](ggml_context *c) {
            auto *d = F(c, 256, 9, 1, 1, (ggml_type) t);
            return ggml_set_rows(c, d, F(c, 256, 4), F(c, 4, 1, 1, 1, GGML_TYPE_I64));
        });
    }
    add1(
        "mul_mat_f32_grad",
        [=](ggml_context *c) {
            auto *a = F(c, 12, 4, 1), *b = F(c, 12, 5, 1);
            ggml_set_param(a);
            ggml_set_param(b);
            return ggml_mul_mat(c, a, b);
        },
        true);
    add1(
        "mul_mat_bcast_grad",
        [=](ggml_context *c) {
            auto *a = F(c, 12, 4, 2), *b = F(c, 12, 5, 4);
            ggml_set_param(a);
            ggml_set_param(b);
            return ggml_mul_mat(c, a, b);
        },
        true);
    add1("out_prod", [=](ggml_context *c) {
        auto *a = F(c, 8, 6), *b = F(c, 5, 6);
        return ggml_out_prod(c, a, b);
    });
    add1("norm", [=](ggml_context *c) { return ggml_norm(c, F(c, 64, 5, 4), 1e-6f); });
    add1(
        "rms_norm",
        [=](ggml_context *c) {
            auto *a = F(c, 64, 5);
            ggml_set_param(a);
            return ggml_rms_norm(c, a, 1e-5f);
        },
        true);
    add1("l2_norm", [=](ggml_context *c) { return ggml_l2_norm(c, F(c, 64, 5), 1e-6f); });
    add1("group_norm", [=](ggml_context *c) { return ggml_group_norm(c, F(c, 8, 8, 32), 8, 1e-6f); });
    add1(
        "scale",
        [=](ggml_context *c) {
            auto *a = F(c, 10, 10);
            ggml_set_param(a);
            return ggml_scale_bias(c, a, 2.f, 0.5f);
        },
        true);
    add1(
        "cont_perm",
        [=](ggml_context *c) {
            auto *a = F(c, 4, 5, 6, 2);
            ggml_set_param(a);
            return ggml_cont(c, ggml_permute(c, a, 1, 2, 0, 3));
        },
        true);
    add1("soft_max", [=](ggml_context *c) {
        auto *a = F(c, 32, 8, 4);
        return ggml_soft_max_ext(c, a, F(c, 32, 8), 0.3f, 8.f);
    });
    add1("soft_max_f16", [=](ggml_context *c) {
        auto *a = F(c, 32, 8, 4);
        auto *s = ggml_soft_max_ext(c, a, F(c, 32, 8, 1, 1, GGML_TYPE_F16), 0.3f, 0.f);
        return s;
    });
    add1(
        "soft_max_grad",
        [=](ggml_context *c) {
            auto *a = F(c, 16, 4);
            ggml_set_param(a);
            return ggml_soft_max(c, a);
        },
        true);
    add1("diag_mask_inf", [=](ggml_context *c) { return ggml_soft_max(c, ggml_diag_mask_inf(c, F(c, 10, 10, 3), 2)); });
    for (int mode : {GGML_ROPE_TYPE_NORMAL, GGML_ROPE_TYPE_NEOX})
        add1(
            "rope",
            [=](ggml_context *c) {
                auto *a = F(c, 32, 4, 6);
                ggml_set_param(a);
                return ggml_rope_ext(c, a, F(c, 6, 1, 1, 1, GGML_TYPE_I32), nullptr, 16, mode, 0, 10000.f, 1.f, 0.f, 1.f,
                                     32.f, 1.f);
            },
            true);
    add1("rope_ff", [=](ggml_context *c) {
        return ggml_rope_ext(c, F(c, 32, 4, 6), F(c, 6, 1, 1, 1, GGML_TYPE_I32), F(c, 16), 32, GGML_ROPE_TYPE_NEOX, 0,
                             10000.f, 1.4f, 0.7f, 1.2f, 32.f, 1.f);
    });
    add1("rope_multi", [=](ggml_context *c) {
        int s[4] = {4, 6, 6, 0};
        return ggml_rope_multi(c, F(c, 32, 4, 6), F(c, 24, 1, 1, 1, GGML_TYPE_I32), nullptr, 32, s, GGML_ROPE_TYPE_MROPE, 0,
                               10000.f, 1.f, 0.f, 1.f, 32.f, 1.f);
    });
    add1("concat", [=](ggml_context *c) { return ggml_concat(c, F(c, 4, 5, 3), F(c, 4, 7, 3), 1); });
    for (auto o : {GGML_SORT_ORDER_ASC, GGML_SORT_ORDER_DESC})
        add1("argsort", [=](ggml_context *c) { return ggml_argsort(c, F(c, 60, 5), o); });
    add1("top_k", [=](ggml_context *c) { return ggml_top_k(c, F(c, 60, 5), 5); });
    add1(
        "sum",
        [=](ggml_context *c) {
            auto *a = F(c, 10, 5, 3);
            ggml_set_param(a);
            return ggml_sum(c, a);
        },
        true);
    add1(
        "sum_rows",
        [=](ggml_context *c) {
            auto *a = F(c, 10, 5, 3);
            ggml_set_param(a);
            return ggml_sum_rows(c, a);
        },
        true);
    add1(
        "mean",
        [=](ggml_context *c) {
            auto *a = F(c, 10, 5);
            ggml_set_param(a);
            return ggml_mean(c, a);
        },
        true);
    add1("cumsum", [=](ggml_context *c) { return ggml_cumsum(c, F(c, 33, 5)); });
    for (auto t : {GGML_TRI_TYPE_LOWER, GGML_TRI_TYPE_UPPER_DIAG})
        add1("tri", [=](ggml_context *c) { return ggml_tri(c, F(c, 9, 9, 2), t); });
    add1("argmax", [=](ggml_context *c) { return ggml_argmax(c, F(c, 32, 7)); });
    add1("count_equal",
         [=](ggml_context *c) { return ggml_count_equal(c, ggml_argmax(c, F(c, 4, 50)), ggml_argmax(c, F(c, 4, 50))); });
    add1(
        "repeat",
        [=](ggml_context *c) {
            auto *a = F(c, 5, 4, 3);
            ggml_set_param(a);
            return ggml_repeat(c, a, F(c, 10, 4, 6));
        },
        true);
    add1(
        "sqr",
        [=](ggml_context *c) {
            auto *a = F(c, 10, 5);
            ggml_set_param(a);
            return ggml_sqr(c, a);
        },
        true);
    add1(
        "sincos",
        [=](ggml_context *c) {
            auto *a = F(c, 10, 5);
            ggml_set_param(a);
            return ggml_add(c, ggml_sin(c, a), ggml_cos(c, a));
        },
        true);
    add1(
        "log_sqrt",
        [=](ggml_context *c) {
            auto *a = F(c, 10, 5);
            ggml_set_param(a);
            return ggml_log(c, ggml_sqrt(c, ggml_scale_bias(c, a, 0.5f, 2.f)));
        },
        true);
    add1("clamp", [=](ggml_context *c) { return ggml_clamp(c, F(c, 10, 5), -0.5f, 0.5f); });
    add1(
        "acc",
        [=](ggml_context *c) {
            auto *a = F(c, 16, 5), *b = F(c, 8, 3);
            ggml_set_param(a);
            ggml_set_param(b);
            return ggml_acc(c, a, b, a->nb[1], a->nb[2], a->nb[3], 16);
        },
        true);
    add1("set", [=](ggml_context *c) {
        auto *a = F(c, 16, 5), *b = F(c, 8, 3);
        return ggml_set_2d(c, a, b, a->nb[1], 16);
    });
    add1("im2col", [=](ggml_context *c) {
        return ggml_im2col(c, F(c, 3, 3, 3, 2), F(c, 10, 9, 3, 2), 1, 1, 1, 1, 1, 1, true, GGML_TYPE_F32);
    });
    add1("im2col_3d", [=](ggml_context *c) {
        return ggml_im2col_3d(c, F(c, 3, 3, 3, 4), F(c, 8, 7, 6, 2), 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, GGML_TYPE_F32);
    });
    add1("conv_2d", [=](ggml_context *c) { return ggml_conv_2d(c, F(c, 3, 3, 3, 4), F(c, 10, 9, 3, 2), 1, 1, 1, 1, 1, 1); });
    add1("conv_2d_f16", [=](ggml_context *c) {
        return ggml_conv_2d(c, F(c, 3, 3, 3, 4, GGML_TYPE_F16), F(c, 10, 9, 3, 2), 2, 2, 1, 1, 1, 1);
    });
    add1("conv_2d_direct", [=](ggml_context *c) {
        return ggml_conv_2d_direct(c, F(c, 3, 3, 3, 4, GGML_TYPE_F16), F(c, 10, 9, 3, 2), 1, 2, 1, 1, 1, 1);
    });
    add1("conv_2d_dw",
         [=](ggml_context *c) { return ggml_conv_2d_dw(c, F(c, 3, 3, 1, 4), F(c, 10, 9, 4, 2), 1, 1, 1, 1, 1, 1); });
    add1("conv_2d_dw_direct",
         [=](ggml_context *c) { return ggml_conv_2d_dw_direct(c, F(c, 3, 3, 1, 4), F(c, 10, 9, 4, 2), 1, 1, 1, 1, 1, 1); });
    add1("conv_1d", [=](ggml_context *c) { return ggml_conv_1d_ph(c, F(c, 3, 4, 6, 1, GGML_TYPE_F16), F(c, 20, 4), 1, 1); });
    add1("conv_t1d", [=](ggml_context *c) { return ggml_conv_transpose_1d(c, F(c, 3, 2, 4), F(c, 8, 4), 2, 0, 1); });
    add1("conv_t2d", [=](ggml_context *c) {
        return ggml_conv_transpose_2d_p0(c, F(c, 2, 2, 3, 4, GGML_TYPE_F16), F(c, 5, 5, 4, 1), 2);
    });
    add1("conv_3d", [=](ggml_context *c) {
        return ggml_conv_3d_direct(c, F(c, 3, 3, 3, 4), F(c, 6, 6, 6, 2), 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 2);
    });
    for (auto p : {GGML_OP_POOL_MAX, GGML_OP_POOL_AVG}) {
        add1(
            "pool_2d",
            [=](ggml_context *c) {
                auto *a = F(c, 10, 8, 3);
                ggml_set_param(a);
                return ggml_pool_2d(c, a, p, 2, 2, 2, 2, 0, 0);
            },
            true);
        add1("pool_1d", [=](ggml_context *c) { return ggml_pool_1d(c, F(c, 10, 3), p, 2, 2, 0); });
    }
    for (int m : std::vector<int>{GGML_SCALE_MODE_NEAREST, GGML_SCALE_MODE_BILINEAR, GGML_SCALE_MODE_BICUBIC,
                                  GGML_SCALE_MODE_BILINEAR | GGML_SCALE_FLAG_ALIGN_CORNERS,
                                  GGML_SCALE_MODE_BILINEAR | GGML_SCALE_FLAG_ANTIALIAS})
        add1("interp" + std::to_string(m),
             [=](ggml_context *c) { return ggml_interpolate(c, F(c, 5, 7, 3, 2), 9, 5, 3, 2, (uint32_t) m); });
    add1("upscale", [=](ggml_context *c) { return ggml_upscale(c, F(c, 5, 7, 3), 2, GGML_SCALE_MODE_NEAREST); });
    add1("pad", [=](ggml_context *c) { return ggml_pad_ext(c, F(c, 5, 7, 3), 1, 2, 0, 1, 0, 0, 1, 0); });
    add1("pad_reflect", [=](ggml_context *c) { return ggml_pad_reflect_1d(c, F(c, 12, 4), 3, 2); });
    add1("roll", [=](ggml_context *c) { return ggml_roll(c, F(c, 10, 5, 4, 3), 3, -1, 2, 0); });
    add1("arange", [=](ggml_context *c) { return ggml_arange(c, 0, 10, 1); });
    add1("timestep", [=](ggml_context *c) { return ggml_timestep_embedding(c, F(c, 3), 32, 10000); });
    add1("leaky", [=](ggml_context *c) { return ggml_leaky_relu(c, F(c, 10, 5), 0.1f, false); });
    add1("fill", [=](ggml_context *c) { return ggml_fill(c, F(c, 10, 5), 3.5f); });
    for (auto kt : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0})
        for (int hs : {64, 80, 128})
            add1(std::string("flash_") + ggml_type_name(kt), [=](ggml_context *c) {
                const int h = hs == 80 && ggml_is_quantized(kt) ? 96 : hs;
                auto *q = F(c, h, 5, 8, 1), *k = F(c, h, 64, 2, 1, kt), *v = F(c, h, 64, 2, 1, kt);
                auto *o = ggml_flash_attn_ext(c, q, k, v, F(c, 64, 5, 1, 1, GGML_TYPE_F16), 1.f / sqrtf((float) h),
                                              hs == 64 ? 8.f : 0.f, hs == 128 ? 10.f : 0.f);
                if (hs == 64) ggml_flash_attn_ext_add_sinks(o, F(c, 8));
                return o;
            });
    add1("ssm_conv", [=](ggml_context *c) { return ggml_ssm_conv(c, F(c, 10, 16, 2), F(c, 4, 16)); });
    add1("win_part", [=](ggml_context *c) { return ggml_win_unpart(c, ggml_win_part(c, F(c, 8, 14, 14), 7), 14, 14, 7); });
    add1("get_rel_pos", [=](ggml_context *c) { return ggml_get_rel_pos(c, F(c, 16, 27, 1, 1, GGML_TYPE_F16), 14, 14); });
    add1("add_id",
         [=](ggml_context *c) { return ggml_add_id(c, F(c, 32, 2, 5), F(c, 32, 4), F(c, 2, 5, 1, 1, GGML_TYPE_I32)); });
    add1("solve_tri", [=](ggml_context *c) {
        auto *a = ggml_add(c, ggml_tri(c, F(c, 6, 6), GGML_TRI_TYPE_LOWER), ggml_diag(c, ggml_fill(c, F(c, 6), 3.f)));
        return ggml_solve_tri(c, a, F(c, 4, 6), true, true, false);
    });
    add1("gla", [=](ggml_context *c) {
        return ggml_gated_linear_attn(c, F(c, 16, 2, 6), F(c, 16, 2, 6), F(c, 16, 2, 6), F(c, 16, 2, 6),
                                      F(c, 16 * 16 * 2, 2), 0.25f);
    });
    add1("wkv6", [=](ggml_context *c) {
        return ggml_rwkv_wkv6(c, F(c, 16, 2, 6), F(c, 16, 2, 6), F(c, 16, 2, 6), F(c, 16, 2), F(c, 16, 2, 6), F(c, 512, 2));
    });
    add1("wkv7", [=](ggml_context *c) {
        return ggml_rwkv_wkv7(c, F(c, 16, 2, 6), F(c, 16, 2, 6), F(c, 16, 2, 6), F(c, 16, 2, 6), F(c, 16, 2, 6),
                              F(c, 16, 2, 6), F(c, 512, 2));
    });
    add1(
        "xent",
        [=](ggml_context *c) {
            auto *a = F(c, 10, 5);
            ggml_set_param(a);
            auto *b = ggml_soft_max(c, F(c, 10, 5));
            return ggml_cross_entropy_loss(c, a, b);
        },
        true);
    add1(
        "get_rows_grad",
        [=](ggml_context *c) {
            auto *a = F(c, 10, 5);
            ggml_set_param(a);
            return ggml_get_rows(c, a, F(c, 4, 1, 1, 1, GGML_TYPE_I32));
        },
        true);
    add1("dup", [=](ggml_context *c) { return ggml_dup(c, ggml_transpose(c, F(c, 10, 20))); });
    add1("adamw", [=](ggml_context *c) {
        auto *a = F(c, 10, 5);
        ggml_set_param(a);
        return ggml_opt_step_adamw(c, a, F(c, 10, 5), ggml_sqr(c, F(c, 10, 5)), ggml_sqr(c, F(c, 10, 5)),
                                   ggml_scale_bias(c, F(c, 7), 0.01f, 0.5f));
    });
    int bad = 0, skipped = 0, n = 0, ng = 0;
    for (auto &t : T) {
        ggml_init_params ip = {ggml_tensor_overhead() * 256 + ggml_graph_overhead(), nullptr, true};
        ggml_context_ptr c(ggml_init(ip));
        ggml_cgraph *g = ggml_new_graph(c.get());
        ggml_tensor *o = t.second(c.get());
        if (!o) DIE(60);
        ggml_set_name(o, "out");
        if (!ggml_backend_supports_op(cpu, o) || !ggml_backend_supports_op(two, o)) {
            skipped++;
            continue;
        }
        ggml_backend_buffer_ptr buf(ggml_backend_alloc_ctx_tensors(c.get(), cpu));
        if (!buf) DIE(61);
        ggml_build_forward_expand(g, o);
        ggml_graph_add_node(g, ggml_view_tensor(c.get(), o));  // a sentinel, as harnesses add
        for (auto *x = ggml_get_first_tensor(c.get()); x; x = ggml_get_next_tensor(c.get(), x))
            if (x->op == GGML_OP_NONE && !x->view_src) init_uniform(x);
        ggml_backend_view_init(ggml_graph_node(g, -1));
        ud u = {0, 0};
        const bool ok = ggml_backend_compare_graph_backend(cpu, two, g, cmp, &u, nullptr, 0);
        if (!ok || u.worst > 1e-5) {
            printf("BAD %s %s nmse %.2g n %d\n", t.first.c_str(), ggml_op_desc(o), u.worst, u.n);
            bad++;
        }
        n++;
    }
    for (auto &t : T)
        if (grads.count(t.first)) {
            ggml_init_params ip = {ggml_tensor_overhead() * 512 + 2 * ggml_graph_overhead_custom(512, true), nullptr, true};
            ggml_context_ptr c(ggml_init(ip));
            ggml_cgraph *gf = ggml_new_graph_custom(c.get(), 512, true);
            ggml_tensor *o = t.second(c.get());
            if (ggml_nelements(o) > 1) {
                auto *w = ggml_new_tensor(c.get(), GGML_TYPE_F32, 4, o->ne);
                ggml_set_name(w, "w");
                o = ggml_sum(c.get(), ggml_mul(c.get(), o, w));
            }
            ggml_set_name(o, "loss");
            ggml_set_loss(o);
            ggml_build_forward_expand(gf, o);
            ggml_cgraph *gb = ggml_graph_dup(c.get(), gf, true);
            ggml_build_backward_expand(c.get(), gb, nullptr);
            ggml_backend_buffer_ptr buf(ggml_backend_alloc_ctx_tensors(c.get(), cpu));
            for (auto *x = ggml_get_first_tensor(c.get()); x; x = ggml_get_next_tensor(c.get(), x))
                if (x->op == GGML_OP_NONE && !x->view_src) init_uniform(x);
            ggml_graph_reset(gb);
            if (ggml_backend_graph_compute(cpu, gf) || ggml_backend_graph_compute(cpu, gb)) DIE(62);
            double worst = 0;
            for (auto *x = ggml_get_first_tensor(c.get()); x; x = ggml_get_next_tensor(c.get(), x)) {
                if (!(x->flags & GGML_TENSOR_FLAG_PARAM)) continue;
                auto *gr = ggml_graph_get_grad(gb, x);
                if (!gr) {
                    printf("no grad %s\n", t.first.c_str());
                    bad++;
                    break;
                }
                std::vector<float> ga((size_t) ggml_nelements(x)), v(ga.size());
                ggml_backend_tensor_get(gr, ga.data(), 0, ggml_nbytes(gr));
                ggml_backend_tensor_get(x, v.data(), 0, ggml_nbytes(x));
                double e = 0, s = 1e-12;
                for (size_t i = 0; i < v.size() && i < 60; i++) {
                    const float eps = t.first.substr(0, 4) == "pool" ? 0.002f : 0.01f;
                    float f[2];
                    for (int k = 0; k < 2; k++) {
                        float y = v[i] + (k ? -eps : eps);
                        ggml_backend_tensor_set(x, &y, i * 4, 4);
                        ggml_backend_graph_compute(cpu, gf);
                        ggml_backend_tensor_get(o, &f[k], 0, 4);
                    }
                    ggml_backend_tensor_set(x, &v[i], i * 4, 4);
                    const double d = ((double) f[0] - f[1]) / (2 * eps);
                    e += (d - ga[i]) * (d - ga[i]);
                    s += d * d;
                }
                worst = std::max(worst, e / s);
            }
            ng++;
            if (worst > 1e-3) {
                printf("BAD grad %s %.3g\n", t.first.c_str(), worst);
                bad++;
            }
        }
    printf("%d compared, %d skipped, %d gradients, %d bad\n", n, skipped, ng, bad);
    ggml_backend_free(cpu);
    ggml_backend_free(two);
    return bad != 0 || n < 250 || ng < 25;
}
