// Low-rank adapters against a model whose weights already hold the change; control vectors; bad adapter files.
#include "test.h"

#include "model_maker.h"

#define NV MAKER_N_VOCAB
#define RANK 4

static char lora_path[256], other_path[256], merged_path[256];

static void keys(struct gguf_context *g) {
    gguf_set_val_str(g, "general.type", "adapter");
    gguf_set_val_str(g, "adapter.type", "lora");
    gguf_set_val_str(g, "general.architecture", "llama");
    gguf_set_val_f32(g, "adapter.lora.alpha", 8);
}

// An adapter for two matrices, and the model with scale * alpha / rank * B A added to them.
static void make(const char *model, float scale) {
    snprintf(lora_path, sizeof lora_path, "/tmp/lamina-test-%d-lora.gguf", (int) getpid());
    snprintf(other_path, sizeof other_path, "/tmp/lamina-test-%d-other.gguf", (int) getpid());
    snprintf(merged_path, sizeof merged_path, "/tmp/lamina-test-%d-merged.gguf", (int) getpid());
    struct ggml_context *ctx = NULL, *lc = ggml_init((struct ggml_init_params){.mem_size = 4 << 20});
    struct gguf_context *g = gguf_init_from_file(model, (struct gguf_init_params){.no_alloc = false, .ctx = &ctx}),
                        *l = gguf_init_empty();
    keys(l);
    const char *names[] = {"blk.0.attn_q.weight", "blk.1.ffn_down.weight"};
    maker_seed = 77;
    for (int k = 0; k < 2; k++) {
        struct ggml_tensor *w = ggml_get_tensor(ctx, names[k]);
        struct ggml_tensor *a = ggml_new_tensor_2d(lc, GGML_TYPE_F32, w->ne[0], RANK),
                           *b = ggml_new_tensor_2d(lc, GGML_TYPE_F32, RANK, w->ne[1]);
        ggml_format_name(a, "%s.lora_a", names[k]);
        ggml_format_name(b, "%s.lora_b", names[k]);
        float *x = a->data, *y = b->data, *z = w->data;
        for (int64_t i = 0; i < ggml_nelements(a); i++) x[i] = 0.1f * maker_random();
        for (int64_t i = 0; i < ggml_nelements(b); i++) y[i] = 0.1f * maker_random();
        for (int64_t o = 0; o < w->ne[1]; o++)
            for (int64_t i = 0; i < w->ne[0]; i++)
                for (int r = 0; r < RANK; r++)
                    z[o * w->ne[0] + i] += scale * 8.0f / RANK * y[o * RANK + r] * x[r * w->ne[0] + i];
        gguf_add_tensor(l, a);
        gguf_add_tensor(l, b);
        gguf_set_tensor_data(g, names[k], w->data);
    }
    assert_true(gguf_write_to_file(l, lora_path, false));
    gguf_set_val_f32(l, "adapter.lora.alpha", 16);  // the same, twice as strong
    assert_true(gguf_write_to_file(l, other_path, false));
    assert_true(gguf_write_to_file(g, merged_path, false));
    gguf_free(l);
    gguf_free(g);
    ggml_free(ctx);
    ggml_free(lc);
}

static struct llama_context *context(struct llama_model *m) {
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 256;
    cp.n_threads = cp.n_threads_batch = 2;
    struct llama_context *c = llama_init_from_model(m, cp);
    assert_non_null(c);
    return c;
}

static void logits_of(struct llama_context *c, float *out) {
    int32_t t[20];
    for (int i = 0; i < 20; i++) t[i] = (7 + 37 * i) % NV;
    llama_memory_clear(llama_get_memory(c), true);
    assert_int_equal(llama_decode(c, llama_batch_get_one(t, 20)), 0);
    memcpy(out, llama_get_logits_ith(c, -1), NV * sizeof(float));
}

static double distance(const float *a, const float *b) {
    double d = 0, n = 0;
    for (int i = 0; i < NV; i++) {
        d += (double) (a[i] - b[i]) * (double) (a[i] - b[i]);
        n += (double) b[i] * (double) b[i];
    }
    return d / n;
}

static void test_lora(void **s) {
    (void) s;
    static char path[256];
    snprintf(path, sizeof path, "%s", maker_path("llama", GGML_TYPE_F32));
    make(path, 0.5f);
    float plain[NV], want[NV], got[NV];
    struct llama_model *m = llama_model_load_from_file(merged_path, llama_model_default_params());
    struct llama_context *c = context(m);
    logits_of(c, want);
    llama_free(c);
    llama_model_free(m);
    m = llama_model_load_from_file(path, llama_model_default_params());
    c = context(m);
    logits_of(c, plain);
    assert_true(distance(plain, want) > 1e-4);
    struct llama_adapter_lora *a = llama_adapter_lora_init(m, lora_path);
    assert_non_null(a);
    char buf[64];
    assert_int_equal(llama_adapter_meta_count(a), 4);
    assert_int_equal(llama_adapter_meta_val_str(a, "adapter.type", buf, sizeof buf), 4);
    assert_int_equal(llama_adapter_meta_val_str(a, "none", buf, sizeof buf), -1);
    assert_int_equal(llama_adapter_meta_key_by_index(a, 99, buf, sizeof buf), -1);
    assert_int_equal(llama_adapter_get_alora_n_invocation_tokens(a), 0);
    float scale = 0.5f;
    assert_int_equal(llama_set_adapters_lora(c, &a, 1, &scale), 0);
    logits_of(c, got);
    assert_true(distance(got, want) < 1e-6);
    assert_int_equal(llama_set_adapters_lora(c, &a, 1, &(float){0}), 0);
    logits_of(c, got);
    assert_memory_equal(got, plain, sizeof got);
    assert_int_equal(llama_set_adapters_lora(c, &a, 1, &scale), 0);
    assert_int_equal(llama_set_adapters_lora(c, NULL, 0, NULL), 0);
    logits_of(c, got);
    assert_memory_equal(got, plain, sizeof got);
    // one freed while set, and another that is loaded where it was: not taken for the same
    assert_int_equal(llama_set_adapters_lora(c, &a, 1, &scale), 0);
    logits_of(c, want);
    for (int i = 0; i < 8; i++) {
        llama_adapter_lora_free(a);
        a = llama_adapter_lora_init(m, i & 1 ? lora_path : other_path);
        assert_non_null(a);
        assert_int_equal(llama_set_adapters_lora(c, &a, 1, &scale), 0);
        logits_of(c, got);
        assert_true((memcmp(got, want, sizeof got) == 0) == (i & 1));
    }
    // one that is named twice counts once
    assert_int_equal(llama_set_adapters_lora(c, (struct llama_adapter_lora *[]){a, a}, 2, (float[]){scale, 0.25f}), 0);
    logits_of(c, got);
    assert_memory_equal(got, want, sizeof got);
    // one that is freed while in use: nothing is computed with what was there
    llama_adapter_lora_free(a);
    llama_token t = 1;
    assert_int_equal(llama_decode(c, llama_batch_get_one(&t, 1)), -1);
    assert_error("adapter that the context uses was freed");
    assert_int_equal(llama_set_adapters_lora(c, &a, 1, &scale), -1);
    assert_error("or freed");
    assert_int_equal(llama_set_adapters_lora(c, NULL, 0, NULL), 0);
    logits_of(c, got);
    assert_memory_equal(got, plain, sizeof got);
    a = llama_adapter_lora_init(m, lora_path);
    // an adapter of another model's
    struct llama_model *m2 = llama_model_load_from_file(path, llama_model_default_params());
    struct llama_context *c2 = context(m2);
    assert_int_equal(llama_set_adapters_lora(c2, &a, 1, &scale), -1);
    assert_error("another model");
    llama_free(c2);
    llama_model_free(m2);
    FILE *f = fopen(lora_path, "rb");
    struct llama_adapter_lora *b = llama_adapter_lora_init_from_file_ptr(m, f);
    fclose(f);
    assert_non_null(b);
    llama_adapter_lora_free(b);
    // cut off at many places: refused
    f = fopen(lora_path, "rb");
    static char bytes[1 << 20];
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    for (size_t k = 0; k < n; k += 501) {
        f = fopen(merged_path, "wb");
        fwrite(bytes, 1, k, f);
        fclose(f);
        assert_null(llama_adapter_lora_init(m, merged_path));
    }
    assert_null(llama_adapter_lora_init(m, path));
    assert_error("no adapter");
    assert_null(llama_adapter_lora_init(m, "/nonexistent"));
    llama_free(c);
    llama_model_free(m);
    unlink(lora_path);
    unlink(other_path);
    unlink(merged_path);
}

static void refused(struct llama_model *m, const char *name_a, const char *name_b, int64_t in, int64_t out,
                    const char *part) {
    struct ggml_context *lc = ggml_init((struct ggml_init_params){.mem_size = 4 << 20});
    struct gguf_context *l = gguf_init_empty();
    keys(l);
    struct ggml_tensor *a = ggml_set_zero(ggml_new_tensor_2d(lc, GGML_TYPE_F32, in, RANK)),
                       *b = ggml_set_zero(ggml_new_tensor_2d(lc, GGML_TYPE_F32, RANK, out));
    ggml_set_name(a, name_a);
    ggml_set_name(b, name_b);
    gguf_add_tensor(l, a);
    gguf_add_tensor(l, b);
    assert_true(gguf_write_to_file(l, lora_path, false));
    gguf_free(l);
    ggml_free(lc);
    assert_null(llama_adapter_lora_init(m, lora_path));
    assert_error(part);
    unlink(lora_path);
}

static void test_bad(void **s) {
    (void) s;
    struct llama_model *m = llama_model_load_from_file(maker_path("llama", GGML_TYPE_F32), llama_model_default_params());
    refused(m, "blk.9.attn_q.weight.lora_a", "blk.9.attn_q.weight.lora_b", 256, 256, "which the model doesn't have");
    refused(m, "blk.0.attn_q.weight.lora_a", "blk.0.attn_q.weight.lora_b", 128, 256, "don't fit");
    refused(m, "blk.0.attn_q.weight.lora_a", "blk.0.attn_k.weight.lora_b", 256, 256, "but not");
    refused(m, "blk.0.attn_q.weight.lora_x", "blk.0.attn_q.weight.lora_b", 256, 256, "no lora_a and no lora_b");
    llama_model_free(m);
}

static void test_cvec(void **s) {
    (void) s;
    struct llama_model *m = llama_model_load_from_file(maker_path("llama", GGML_TYPE_F32), llama_model_default_params());
    struct llama_context *c = context(m);
    const int ne = llama_model_n_embd(m), n = llama_model_n_layer(m);
    float plain[NV], got[NV], *v = calloc((size_t) (ne * (n - 1)), sizeof *v);
    logits_of(c, plain);
    assert_int_equal(llama_set_adapter_cvec(c, v, (size_t) (ne * (n - 1)), ne, 1, n), 0);
    logits_of(c, got);
    assert_true(distance(got, plain) < 1e-12);
    for (int i = 0; i < ne * (n - 1); i++) v[i] = 0.3f;
    assert_int_equal(llama_set_adapter_cvec(c, v, (size_t) (ne * (n - 1)), ne, 1, n), 0);
    logits_of(c, got);
    assert_true(distance(got, plain) > 1e-5);
    assert_int_equal(llama_set_adapter_cvec(c, NULL, 0, 0, 0, 0), 0);
    logits_of(c, got);
    assert_memory_equal(got, plain, sizeof got);
    assert_int_equal(llama_set_adapter_cvec(c, v, (size_t) ne, ne + 1, 1, n), -1);
    assert_error("control vectors of");
    free(v);
    llama_free(c);
    llama_model_free(m);
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lora), cmocka_unit_test(test_bad), cmocka_unit_test(test_cvec)};
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
