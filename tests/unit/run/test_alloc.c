// No heap allocation while decoding, whether graphs are reused or rebuilt; and every allocation made to fail in turn gives an error.
#define ALLOC_EVERYWHERE  // the compiler of patterns has memory of its own
#include "support/alloc.h"
#include "test.h"

#include "model_maker.h"

static struct llama_context *context(struct llama_model *m, int n_seq) {
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 2048;
    cp.n_ubatch = 64;
    cp.n_seq_max = (uint32_t) n_seq;
    cp.kv_unified = true;
    cp.swa_full = false;
    cp.n_threads = cp.n_threads_batch = 2;
    return llama_init_from_model(m, cp);
}

static void fill(struct llama_batch *b, int n_seq, int pos, int n_each) {
    b->n_tokens = 0;
    for (int s = 0; s < n_seq; s++)
        for (int i = 0; i < n_each; i++) {
            const int k = b->n_tokens++;
            b->token[k] = (5 + 11 * (pos + i) + 3 * s) % MAKER_N_VOCAB;
            b->pos[k] = pos + i;
            b->n_seq_id[k] = 1;
            b->seq_id[k][0] = s;
            b->logits[k] = i == n_each - 1;
        }
}

static void check_none(const char *name, int n_seq) {
    struct llama_model *m = llama_model_load_from_file(maker_path(name, GGML_TYPE_F32), llama_model_default_params());
    struct llama_context *c = context(m, n_seq);
    assert_non_null(c);
    struct llama_batch b = llama_batch_init(256, 0, 1);
    fill(&b, n_seq, 0, 20);
    assert_int_equal(llama_decode(c, b), 0);
    fill(&b, n_seq, 20, 1);
    assert_int_equal(llama_decode(c, b), 0);
    alloc_start(0);
    int pos = 21;
    for (int i = 0; i < 8; i++, pos++) {  // the same shape again and again
        fill(&b, n_seq, pos, 1);
        assert_int_equal(llama_decode(c, b), 0);
    }
    const int64_t reused = alloc_stop();
    alloc_start(0);
    const int n_before = llama_perf_context(c).n_reused;
    for (int i = 0; i < 12; i++) {  // another shape each time, of more than are kept
        fill(&b, n_seq, pos, 2 + i % 6);
        assert_int_equal(llama_decode(c, b), 0);
        pos += 2 + i % 6;
    }
    const int n_between = llama_perf_context(c).n_reused;
    for (int i = 0; i < 12; i++) {  // shapes that take turns
        fill(&b, n_seq, pos, 1 + i % 3);
        assert_int_equal(llama_decode(c, b), 0);
        pos += 1 + i % 3;
    }
    const int64_t rebuilt = alloc_stop();
    assert_true(n_between <= n_before + 1);  // the end of the prompt may have had one of the shapes
    assert_true(llama_perf_context(c).n_reused >= n_between + 9);
    if (ALLOC_COUNTED) {
        if (reused || rebuilt)
            print_error("%s, %d sequences: %lld allocations with graphs reused, %lld rebuilt\n", name, n_seq,
                        (long long) reused, (long long) rebuilt);
        assert_int_equal(reused, 0);
        assert_int_equal(rebuilt, 0);
    }
    llama_batch_free(b);
    llama_free(c);
    llama_model_free(m);
}

static void test_none(void **s) {
    (void) s;
    check_none("llama", 1);
    check_none("llama", 8);
    check_none("llama-moe", 1);
    check_none("gemma3", 4);
    check_none("mamba2", 1);
    check_none("falcon-h1", 4);
    check_none("deepseek2", 1);
}

// Load, context, prompt, token with the k-th allocation failing: NULL or an error code each time, and nothing left behind.
static int attempt(const char *path, int n_gpu_layers) {
    struct llama_model_params mp = llama_model_default_params();
    // patterns are compiled for every tensor: memory that may fail where it is decided which device a weight goes to
    const struct llama_model_tensor_buft_override places[] = {{"blk\\.1\\.ffn_down", ggml_backend_cpu_buffer_type()},
                                                              {NULL, NULL}};
    mp.n_gpu_layers = n_gpu_layers;
    mp.tensor_buft_overrides = places;
    struct llama_model *m = llama_model_load_from_file(path, mp);
    if (!m) return 1;
    struct llama_context *c = context(m, 2);
    int r = 2;
    if (c) {
        struct llama_batch b = llama_batch_init(64, 0, 1);
        r = 3;
        if (b.token) {
            fill(&b, 2, 0, 10);
            r = llama_decode(c, b) ? 4 : 0;
            size_t n = r == 0 ? llama_state_get_size(c) : 0;
            uint8_t *state = n ? malloc(n) : NULL;
            if (r == 0 && (!state || llama_state_get_data(c, state, n) != n || llama_state_set_data(c, state, n) != n))
                r = 5;
            free(state);
            llama_batch_free(b);
        }
        llama_free(c);
    }
    llama_model_free(m);
    return r;
}

static void test_fail(void **s) {
    (void) s;
    if (!ALLOC_COUNTED) skip();
    static char path[256];
    snprintf(path, sizeof path, "%s", maker_path("gemma3", GGML_TYPE_F32));
    // What lives for the process is made now; the CPU's team of threads, too, where other devices take the layers.
    assert_int_equal(attempt(path, 0), 0);
    assert_int_equal(attempt(path, -1), 0);
    alloc_start(0);
    assert_int_equal(attempt(path, -1), 0);
    const int64_t total = alloc_stop();
    if (total == 0 && test_small()) {
        print_message("skipped: a tool such as valgrind has put its own malloc in the place of the counting one\n");
        skip();
    }
    const int64_t live = alloc_live;
    int n_error = 0, n_placing = 0;
    for (int64_t k = 1; k <= total + 2; k++) {
        alloc_start(k);
        const int r = attempt(path, -1);
        alloc_stop();
        n_error += r != 0;
        n_placing += r != 0 && strstr(ggml_last_error(), "ffn_down");
        if (alloc_live != live)
            print_error("failing allocation %lld of %lld leaves %lld blocks\n", (long long) k, (long long) total,
                        (long long) (alloc_live - live));
        assert_int_equal(alloc_live, live);
    }
    assert_true(n_error > 100);
    assert_true(n_placing > 10);  // where a weight goes was not known
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_none), cmocka_unit_test(test_fail)};
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
