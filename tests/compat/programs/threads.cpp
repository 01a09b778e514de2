// Two contexts of one model on two threads of the program, thread pools of the caller's own attached; an answer aborted half-way.
#include "ggml-cpu.h"
#include "llama-cpp.h"
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

static std::atomic<int> countdown{-1};
static bool should_stop(void *) { return countdown >= 0 && countdown-- == 0; }

int main(int, char **argv) {
    llama_model_ptr model(llama_model_load_from_file(argv[1], llama_model_default_params()));
    std::vector<llama_token> out[2];
    auto work = [&](int k) {
        llama_context_params cp = llama_context_default_params();
        cp.n_ctx = 128;
        cp.n_threads = cp.n_threads_batch = 2;
        llama_context_ptr ctx(llama_init_from_model(model.get(), cp));
        ggml_threadpool_params tp = ggml_threadpool_params_default(2), tb = ggml_threadpool_params_default(2);
        ggml_threadpool_t pool = ggml_threadpool_new(&tp), pool_batch = ggml_threadpool_new(&tb);
        llama_attach_threadpool(ctx.get(), pool, pool_batch);
        llama_sampler_ptr s(llama_sampler_init_greedy());
        std::vector<llama_token> t = {1, 50, 60, 70};
        for (int i = 0; i < 12; i++) {
            if (llama_decode(ctx.get(), llama_batch_get_one(t.data(), (int32_t) t.size()))) exit(2);
            t = {llama_sampler_sample(s.get(), ctx.get(), -1)};
            out[k].push_back(t[0]);
            if (i == 5) {
                llama_detach_threadpool(ctx.get());
                llama_set_n_threads(ctx.get(), 1, 1);
                ggml_threadpool_free(pool);
                ggml_threadpool_free(pool_batch);
            }
        }
    };
    std::thread a(work, 0), b(work, 1);
    a.join();
    b.join();
    if (out[0] != out[1]) return 3;
    llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 128;
    cp.abort_callback = should_stop;
    llama_context_ptr ctx(llama_init_from_model(model.get(), cp));
    std::vector<llama_token> t = {1, 50, 60, 70};
    countdown = 2;
    const int rc = llama_decode(ctx.get(), llama_batch_get_one(t.data(), 4));
    if (rc != 2) { printf("an aborted decode gave %d\n", rc); return 4; }
    countdown = -1;
    llama_memory_clear(llama_get_memory(ctx.get()), true);
    llama_sampler_ptr s(llama_sampler_init_greedy());
    if (llama_decode(ctx.get(), llama_batch_get_one(t.data(), 4)) || llama_sampler_sample(s.get(), ctx.get(), -1) != out[0][0]) return 5;
    printf("two contexts on two threads, aborted and gone on\n");
    return 0;
}
