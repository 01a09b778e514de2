// flash_attn_type DISABLED: attention goes over block tables all the same, so that results and plans are those of ENABLED, to the bit and
// to the byte, whatever the cache's types.
#include "test.h"

#include "llama/ext.h"
#include "model_maker.h"

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
    assert_memory_equal(a, b, MAKER_N_VOCAB * sizeof(float));
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

static void test_plan(void **s) {
    (void) s;
    struct llama_device_bytes d[2][4];
    for (int off = 0; off < 2; off++) {
        struct llama_context_params cp = llama_context_default_params();
        cp.n_ctx = 8192;
        cp.n_batch = cp.n_ubatch = 1024;
        cp.flash_attn_type = off ? LLAMA_FLASH_ATTN_TYPE_DISABLED : LLAMA_FLASH_ATTN_TYPE_ENABLED;
        struct llama_model_params mp = llama_model_default_params();
        mp.n_gpu_layers = 0;
        assert_true(llama_plan_bytes(maker_path("llama", GGML_TYPE_F32), mp, cp, d[off], 4) >= 1);
    }
    assert_int_equal(d[0][0].compute, d[1][0].compute);
    assert_int_equal(d[0][0].work, d[1][0].work);
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same), cmocka_unit_test(test_plan)};
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
