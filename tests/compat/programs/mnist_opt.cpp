// Training as in the field's digit example: a network of two layers learns made-up pictures of ten classes with ggml_opt_fit, is saved as
// GGUF, loaded again, and gives the same answers.
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpp.h"
#include "ggml-opt.h"
#include "gguf.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static const int N_IN = 36, N_CLASS = 10, N_HIDDEN = 32, N_EX = 400, N_BATCH = 20;
static uint32_t state = 1;
static float uniform() { state = state * 1664525u + 1013904223u; return (float) (state >> 8) / (float) (1 << 24); }

int main() {
    ggml_backend_ptr backend(ggml_backend_init_best());
    ggml_backend_t list[] = {backend.get()};
    ggml_backend_sched_ptr sched(ggml_backend_sched_new(list, nullptr, 1, GGML_DEFAULT_GRAPH_SIZE, false, true));

    ggml_opt_dataset_t dataset = ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, N_IN, N_CLASS, N_EX, 10);
    float *data = (float *) ggml_opt_dataset_data(dataset)->data, *labels = (float *) ggml_opt_dataset_labels(dataset)->data;
    for (int i = 0; i < N_EX; i++) {
        const int c = i % N_CLASS;
        for (int k = 0; k < N_IN; k++) data[i * N_IN + k] = 0.3f * uniform() + ((k * 7 + c * 13) % 10 < 4 ? 0.7f : 0.0f);
        for (int k = 0; k < N_CLASS; k++) labels[i * N_CLASS + k] = k == c;
    }
    ggml_context_ptr st(ggml_init({8 * ggml_tensor_overhead(), nullptr, true}));
    ggml_tensor *w[4] = {ggml_new_tensor_2d(st.get(), GGML_TYPE_F32, N_IN, N_HIDDEN), ggml_new_tensor_1d(st.get(), GGML_TYPE_F32, N_HIDDEN),
                         ggml_new_tensor_2d(st.get(), GGML_TYPE_F32, N_HIDDEN, N_CLASS), ggml_new_tensor_1d(st.get(), GGML_TYPE_F32, N_CLASS)};
    static const char *names[] = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};
    ggml_tensor *images = ggml_new_tensor_2d(st.get(), GGML_TYPE_F32, N_IN, N_BATCH);
    ggml_set_input(images);
    ggml_backend_buffer_ptr buf(ggml_backend_alloc_ctx_tensors(st.get(), backend.get()));
    for (int i = 0; i < 4; i++) {
        ggml_set_name(w[i], names[i]);
        ggml_set_param(w[i]);
        std::vector<float> v(ggml_nelements(w[i]));
        for (auto &x : v) x = i % 2 ? 0 : (uniform() - 0.5f) * 2 / std::sqrt((float) w[i]->ne[0]);
        ggml_backend_tensor_set(w[i], v.data(), 0, ggml_nbytes(w[i]));
    }
    auto build = [&](ggml_context *ctx) {
        ggml_tensor *h = ggml_relu(ctx, ggml_add(ctx, ggml_mul_mat(ctx, w[0], images), w[1]));
        return ggml_add(ctx, ggml_mul_mat(ctx, w[2], h), w[3]);
    };
    {
        ggml_context_ptr ctx(ggml_init({GGML_DEFAULT_GRAPH_SIZE * ggml_tensor_overhead() + 3 * ggml_graph_overhead(), nullptr, true}));
        ggml_opt_fit(sched.get(), ctx.get(), images, build(ctx.get()), dataset, GGML_OPT_LOSS_TYPE_CROSS_ENTROPY, GGML_OPT_OPTIMIZER_TYPE_ADAMW,
                     ggml_opt_get_default_optimizer_params, 12, N_BATCH, 0.1f, true);
    }
    auto evaluate = [&](std::vector<int32_t> &pred) {
        ggml_context_ptr ctx(ggml_init({GGML_DEFAULT_GRAPH_SIZE * ggml_tensor_overhead() + 3 * ggml_graph_overhead(), nullptr, true}));
        ggml_opt_params p = ggml_opt_default_params(sched.get(), GGML_OPT_LOSS_TYPE_CROSS_ENTROPY);
        p.ctx_compute = ctx.get();
        p.inputs = images;
        p.outputs = build(ctx.get());
        p.build_type = GGML_OPT_BUILD_TYPE_FORWARD;
        ggml_opt_context_t opt = ggml_opt_init(p);
        ggml_opt_result_t r = ggml_opt_result_init();
        ggml_opt_epoch(opt, dataset, nullptr, r, 0, nullptr, nullptr);
        double acc, unc, loss;
        ggml_opt_result_accuracy(r, &acc, &unc);
        ggml_opt_result_loss(r, &loss, &unc);
        pred.resize(N_EX);
        ggml_opt_result_pred(r, pred.data());
        printf("accuracy %.3f, loss %.4f\n", acc, loss);
        ggml_opt_result_free(r);
        ggml_opt_free(opt);
        return acc;
    };
    std::vector<int32_t> before, after;
    if (evaluate(before) < 0.95) return 1;
    char path[] = "/tmp/lamina-mnist-XXXXXX";
    if (mkstemp(path) < 0) return 2;
    {
        gguf_context_ptr g(gguf_init_empty());
        gguf_set_val_str(g.get(), "general.architecture", "mnist-fc");
        ggml_context_ptr copy(ggml_init({1 << 20, nullptr, false}));
        for (auto *t : w) {
            ggml_tensor *c = ggml_dup_tensor(copy.get(), t);
            ggml_set_name(c, t->name);
            ggml_backend_tensor_get(t, c->data, 0, ggml_nbytes(t));
            gguf_add_tensor(g.get(), c);
        }
        if (!gguf_write_to_file(g.get(), path, false)) return 3;
    }
    ggml_context *raw = nullptr;
    gguf_context_ptr g(gguf_init_from_file(path, {false, &raw}));
    ggml_context_ptr loaded(raw);
    for (auto *t : w) {
        ggml_backend_tensor_memset(t, 0, 0, ggml_nbytes(t));
        ggml_backend_tensor_set(t, ggml_get_tensor(loaded.get(), t->name)->data, 0, ggml_nbytes(t));
    }
    evaluate(after);
    remove(path);
    ggml_opt_dataset_free(dataset);
    return before == after ? 0 : 4;
}
