// The plan made from a file's header against a context that really exists: equal, byte for byte, with devices and without.
#include "test.h"

#include "llama/ext.h"
#include "model_maker.h"

static void check(const char *name, enum ggml_type type, int n_gpu_layers, int n_ctx, int n_ubatch, int n_seq,
                  bool embeddings) {
    static char path[256];
    snprintf(path, sizeof path, "%s", maker_path(name, type));
    struct llama_model_params mp = llama_model_default_params();
    mp.n_gpu_layers = n_gpu_layers;
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = (uint32_t) n_ctx;
    cp.n_ubatch = (uint32_t) n_ubatch;
    cp.n_seq_max = (uint32_t) n_seq;
    cp.embeddings = embeddings;
    cp.swa_full = false;
    cp.n_threads = cp.n_threads_batch = 2;
    struct llama_device_bytes plan[8], real[8];
    const int n = llama_plan_bytes(path, mp, cp, plan, 8);
    assert_int_equal(n, 3);
    struct llama_model *m = llama_model_load_from_file(path, mp);
    struct llama_context *c = llama_init_from_model(m, cp);
    assert_non_null(c);
    assert_int_equal(llama_context_bytes(c, real, 8), n);
    for (int i = 0; i < n; i++) {
        if (memcmp(&plan[i].weights_mapped, &real[i].weights_mapped, sizeof plan[i] - sizeof plan[i].name))
            for (int k = 1; k < (int) (sizeof plan[i] / 8); k++)
                print_message("%s ngl %d %s [%d]: %zu planned, %zu real\n", name, n_gpu_layers, plan[i].name, k,
                              ((size_t *) &plan[i])[k], ((size_t *) &real[i])[k]);
        assert_string_equal(plan[i].name, real[i].name);
        assert_int_equal(plan[i].weights_mapped, real[i].weights_mapped);
        assert_int_equal(plan[i].weights_copied, real[i].weights_copied);
        assert_int_equal(plan[i].kv, real[i].kv);
        assert_int_equal(plan[i].recurrent, real[i].recurrent);
        assert_int_equal(plan[i].compute, real[i].compute);
        assert_int_equal(plan[i].outputs, real[i].outputs);
        assert_int_equal(plan[i].work, real[i].work);
        assert_int_equal(plan[i].graph, real[i].graph);
        assert_int_equal(plan[i].vocabulary, real[i].vocabulary);
    }
    // nothing grows when the context is used
    int32_t tokens[300];
    for (int i = 0; i < 300; i++) tokens[i] = i % MAKER_N_VOCAB;
    assert_int_equal(
        llama_decode(c, llama_batch_get_one(tokens, llama_n_ctx_seq(c) < 300 ? (int) llama_n_ctx_seq(c) - 1 : 300)), 0);
    assert_int_equal(llama_decode(c, llama_batch_get_one(tokens, 1)), 0);
    assert_int_equal(llama_context_bytes(c, real, 8), n);
    for (int i = 0; i < n; i++) assert_int_equal(plan[i].compute, real[i].compute);
    llama_free(c);
    llama_model_free(m);
}

static void test_equal(void **s) {
    (void) s;
    for (int layers = 0; layers < 4; layers++) check("llama", GGML_TYPE_Q4_K, layers, 512, 64, 1, false);
    check("llama", GGML_TYPE_F32, 99, 1024, 512, 4, false);
    check("llama", GGML_TYPE_F32, 0, 256, 7, 1, true);
    check("gemma3", GGML_TYPE_F16, 0, 1024, 64, 2, false);
    check("llama-moe", GGML_TYPE_Q8_0, 0, 512, 128, 1, false);
    check("mamba2", GGML_TYPE_F32, 0, 512, 128, 2, false);
    check("falcon-h1", GGML_TYPE_F32, 2, 512, 128, 1, false);
    check("deepseek2", GGML_TYPE_F32, 0, 512, 128, 1, false);
}

static void test_refused(void **s) {
    (void) s;
    struct llama_device_bytes plan[8];
    assert_int_equal(llama_plan_bytes("/nonexistent", llama_model_default_params(), llama_context_default_params(), plan, 8),
                     -1);
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ubatch = 0;
    assert_int_equal(llama_plan_bytes(maker_path("llama", GGML_TYPE_F32), llama_model_default_params(), cp, plan, 8), -1);
    assert_error("n_ubatch");
    // a context of shapes alone computes nothing
    struct llama_model_params mp = llama_model_default_params();
    mp.no_alloc = true;
    struct llama_model *m = llama_model_load_from_file(maker_path("llama", GGML_TYPE_F32), mp);
    struct llama_context *c = llama_init_from_model(m, llama_context_default_params());
    assert_non_null(c);
    int32_t t = 1;
    assert_int_equal(llama_decode(c, llama_batch_get_one(&t, 1)), -1);
    assert_error("no_alloc");
    llama_free(c);
    llama_model_free(m);
}

int main(void) {
    setenv("LAMINA_SIM", "2", 1);
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_equal), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
