// Attention without flash attention: the same results up to rounding, whatever the cache's types; heads taken in halves give the same
// bits; and a plan that stays below what scores of all heads would take.
#include "test.h"

#include "llama/ext.h"
#include "model_maker.h"
#include "run/context.h"

enum { N = 150 };

static struct llama_context *context(struct llama_model *m, bool flash, enum ggml_type type_v) {
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 512;
    cp.n_batch = cp.n_ubatch = 256;
    cp.swa_full = false;
    cp.type_v = type_v;
    cp.n_threads = cp.n_threads_batch = 2;
    cp.flash_attn_type = flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    struct llama_context *c = llama_init_from_model(m, cp);
    assert_non_null(c);
    return c;
}

static const float *logits(struct llama_context *c) {
    static int32_t tokens[N];
    for (int i = 0; i < N; i++) tokens[i] = (3 + 7 * i) % MAKER_N_VOCAB;
    assert_int_equal(llama_decode(c, llama_batch_get_one(tokens, N - 1)), 0);
    assert_int_equal(llama_decode(c, llama_batch_get_one(tokens + N - 1, 1)), 0);
    return llama_get_logits_ith(c, -1);
}

static void check(const char *name, enum ggml_type type_v) {
    struct llama_model *m = llama_model_load_from_file(maker_path(name, GGML_TYPE_F32), llama_model_default_params());
    struct llama_context *on = context(m, true, type_v), *off = context(m, false, type_v);
    const float *a = logits(on), *b = logits(off);
    double d = 0, n = 0;
    for (int i = 0; i < MAKER_N_VOCAB; i++) d += (a[i] - b[i]) * (a[i] - b[i]), n += a[i] * a[i];
    if (!(d <= 1e-5 * n)) print_error("%s, values as %s: error %g\n", name, ggml_type_name(type_v), d / n);
    assert_true(d <= 1e-5 * n && n > 0);
    llama_free(on);
    llama_free(off);
    llama_model_free(m);
}

static void test_same(void **s) {
    (void) s;
    check("llama", GGML_TYPE_F16);
    check("llama", GGML_TYPE_F32);
    check("llama", GGML_TYPE_Q8_0);
    check("gemma3", GGML_TYPE_F16);
    check("gpt2", GGML_TYPE_F16);
    check("deepseek2", GGML_TYPE_F16);
    check("falcon-h1", GGML_TYPE_F16);
}

static void test_halves(void **s) {
    (void) s;
    const char *const names[] = {"llama", "gemma3", "deepseek2"};
    for (int k = 0; k < 3; k++) {
        struct llama_model *m =
            llama_model_load_from_file(maker_path(names[k], GGML_TYPE_F32), llama_model_default_params());
        struct llama_context *whole = context(m, false, GGML_TYPE_F16), *halves = context(m, false, GGML_TYPE_F16);
        halves->cp.scores_most = 1000;
        const float *a = logits(whole), *b = logits(halves);
        assert_memory_equal(a, b, MAKER_N_VOCAB * sizeof(float));
        llama_memory_clear(llama_get_memory(whole), true);
        llama_memory_clear(llama_get_memory(halves), true);
        int32_t tokens[200];
        for (int i = 0; i < 200; i++) tokens[i] = (3 + 5 * i) % MAKER_N_VOCAB;
        assert_int_equal(llama_decode(whole, llama_batch_get_one(tokens, 200)), 0);
        assert_int_equal(llama_decode(halves, llama_batch_get_one(tokens, 200)), 0);
        assert_true(ggml_graph_n_nodes(halves->g.gf) > ggml_graph_n_nodes(whole->g.gf));  // they are in halves
        assert_memory_equal(llama_get_logits_ith(whole, -1), llama_get_logits_ith(halves, -1),
                            MAKER_N_VOCAB * sizeof(float));
        llama_free(whole);
        llama_free(halves);
        llama_model_free(m);
    }
}

// 8192 positions, 1024 tokens at once: scores of 4 heads are 129 MiB a layer; twice as many tokens, twice that, and so on.
static void test_plan(void **s) {
    (void) s;
    const char *path = maker_path("llama", GGML_TYPE_F32);
    for (uint32_t n_ub = 1024; n_ub <= 8192; n_ub *= 2) {
        struct llama_context_params cp = llama_context_default_params();
        cp.n_ctx = 8192;
        cp.n_batch = cp.n_ubatch = n_ub;
        cp.n_outputs_max = 1;
        cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
        struct llama_device_bytes d[4];
        struct llama_model_params mp = llama_model_default_params();
        mp.n_gpu_layers = 0;
        const int n = llama_plan_bytes(path, mp, cp, d, 4);
        assert_true(n >= 1);
        const size_t scores = (size_t) n_ub * (8192 + 64) * 4 * sizeof(float), half = scores > (size_t) 384 << 20 ? 2 : 1;
        // beside them: the mask, and rows of 256 and 512 values
        const size_t rest = (size_t) n_ub * (8192 + 64) * 2 + (size_t) n_ub * 3 * 256 * sizeof(float) + 65536;
        if (d[n - 1].compute > scores / half + rest)
            print_error("%u tokens: %zu bytes, scores are %zu, the rest %zu\n", n_ub, d[n - 1].compute, scores, rest);
        assert_true(d[n - 1].compute >= scores / half && d[n - 1].compute <= scores / half + rest);
    }
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same), cmocka_unit_test(test_halves),
                                       cmocka_unit_test(test_plan)};
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
