// Two matrices multiplied: with a context's own memory and ggml_graph_compute_with_ctx; on a backend with gallocr; through the scheduler.
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml-cpu.h"
#include <cstdio>
#include <cstring>
#include <vector>

static const int rows_A = 4, cols_A = 2, rows_B = 3, cols_B = 2;
static float A[rows_A * cols_A] = {2, 8, 5, 1, 4, 2, 8, 6};
static float B[rows_B * cols_B] = {10, 5, 9, 9, 5, 4};
static const float want[] = {60, 55, 50, 110, 90, 54, 54, 126, 42, 29, 28, 64};

static int check(const float *got, const char *how) {
    printf("%s:", how);
    for (int i = 0; i < 12; i++) printf(" %g", got[i]);
    printf("\n");
    return std::memcmp(got, want, sizeof want) != 0;
}

int main() {
    {
        ggml_context_ptr ctx(ggml_init({rows_A * cols_A * 4 + rows_B * cols_B * 4 + 2 * ggml_tensor_overhead() + ggml_graph_overhead() + 1024, nullptr, false}));
        ggml_tensor *a = ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F32, cols_A, rows_A), *b = ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F32, cols_B, rows_B);
        memcpy(a->data, A, ggml_nbytes(a));
        memcpy(b->data, B, ggml_nbytes(b));
        ggml_cgraph *gf = ggml_new_graph(ctx.get());
        ggml_build_forward_expand(gf, ggml_mul_mat(ctx.get(), a, b));
        if (ggml_graph_compute_with_ctx(ctx.get(), gf, 1) != GGML_STATUS_SUCCESS) return 1;
        if (check((float *) ggml_graph_node(gf, -1)->data, "context")) return 2;
    }
    ggml_backend_ptr backend(ggml_backend_init_best());
    if (!backend) return 3;
    ggml_context_ptr weights(ggml_init({2 * ggml_tensor_overhead(), nullptr, true}));
    ggml_tensor *a = ggml_new_tensor_2d(weights.get(), GGML_TYPE_F32, cols_A, rows_A), *b = ggml_new_tensor_2d(weights.get(), GGML_TYPE_F32, cols_B, rows_B);
    ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors(weights.get(), backend.get()));
    ggml_backend_tensor_set(a, A, 0, ggml_nbytes(a));
    ggml_backend_tensor_set(b, B, 0, ggml_nbytes(b));
    {
        ggml_gallocr_ptr alloc(ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend.get())));
        std::vector<uint8_t> meta(ggml_tensor_overhead() * GGML_DEFAULT_GRAPH_SIZE + ggml_graph_overhead());
        ggml_context_ptr ctx(ggml_init({meta.size(), meta.data(), true}));
        ggml_cgraph *gf = ggml_new_graph(ctx.get());
        ggml_build_forward_expand(gf, ggml_mul_mat(ctx.get(), a, b));
        if (!ggml_gallocr_reserve(alloc.get(), gf) || !ggml_gallocr_alloc_graph(alloc.get(), gf)) return 4;
        if (ggml_backend_is_cpu(backend.get())) ggml_backend_cpu_set_n_threads(backend.get(), 2);
        if (ggml_backend_graph_compute(backend.get(), gf) != GGML_STATUS_SUCCESS) return 5;
        float out[12];
        ggml_backend_tensor_get(ggml_graph_node(gf, -1), out, 0, sizeof out);
        if (check(out, "backend")) return 6;
    }
    // every device there is, the CPU last
    std::vector<ggml_backend_ptr> owned;
    std::vector<ggml_backend_t> backends;
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        ggml_backend_dev_t dev = ggml_backend_dev_get(i);
        if (ggml_backend_dev_type(dev) == GGML_BACKEND_DEVICE_TYPE_CPU) continue;
        owned.emplace_back(ggml_backend_dev_init(dev, nullptr));
        backends.push_back(owned.back().get());
    }
    owned.emplace_back(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr));
    backends.push_back(owned.back().get());
    ggml_backend_sched_ptr sched(ggml_backend_sched_new(backends.data(), nullptr, (int) backends.size(), GGML_DEFAULT_GRAPH_SIZE, false, true));
    for (int round = 0; round < 3; round++) {
        ggml_context_ptr ctx(ggml_init({ggml_tensor_overhead() * 64 + ggml_graph_overhead(), nullptr, true}));
        ggml_cgraph *gf = ggml_new_graph(ctx.get());
        ggml_tensor *in = ggml_new_tensor_2d(ctx.get(), GGML_TYPE_F32, cols_B, rows_B);
        ggml_set_input(in);
        ggml_tensor *sum = ggml_scale(ctx.get(), ggml_mul_mat(ctx.get(), a, in), 0.5f);
        ggml_tensor *out = ggml_add(ctx.get(), sum, sum);
        if (round == 1) ggml_backend_sched_set_tensor_backend(sched.get(), sum, backends.back());
        ggml_set_output(out);
        ggml_build_forward_expand(gf, out);
        ggml_backend_sched_reset(sched.get());
        if (!ggml_backend_sched_alloc_graph(sched.get(), gf)) return 7;
        ggml_backend_tensor_set(in, B, 0, ggml_nbytes(in));
        if (ggml_backend_sched_graph_compute(sched.get(), gf) != GGML_STATUS_SUCCESS) return 8;
        float got[12];
        ggml_backend_tensor_get(out, got, 0, sizeof got);
        if (check(got, "scheduler")) return 9;
    }
    printf("%d devices, %d splits\n", (int) backends.size(), ggml_backend_sched_get_n_splits(sched.get()));
    return 0;
}
