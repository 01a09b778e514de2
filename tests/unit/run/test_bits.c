// The same bits whatever the thread count, the micro-batch and the neighbours (design, rule 7), on small models made on the spot.
#include "test.h"

#include "model_maker.h"

#include <stdlib.h>
#include <string.h>

#define N_TOKENS 150

struct run {
    int n_threads, n_ubatch, n_seq, n_batch;
    bool flash, neighbour, one_by_one, swa_small;
};

static int32_t token_at(int i) { return (7 + 37 * i) % MAKER_N_VOCAB; }

// Logits of all positions of the sequence of interest.
static float *logits_of(struct llama_model *m, struct run r) {
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 1024;
    cp.n_batch = r.n_batch ? (uint32_t) r.n_batch : 512;
    cp.n_ubatch = (uint32_t) r.n_ubatch;
    cp.n_seq_max = r.neighbour ? 3 : 1;
    cp.kv_unified = true;
    cp.n_threads = cp.n_threads_batch = r.n_threads;
    cp.swa_full = !r.swa_small;
    struct llama_context *c = llama_init_from_model(m, cp);
    assert_non_null(c);
    float *out = malloc((size_t) N_TOKENS * MAKER_N_VOCAB * sizeof(float));
    const int per = r.one_by_one ? 1 : N_TOKENS, seq = r.neighbour ? 1 : 0;
    struct llama_batch b = llama_batch_init(2 * N_TOKENS, 0, 1);
    for (int p0 = 0; p0 < N_TOKENS; p0 += per) {
        b.n_tokens = 0;
        int where[N_TOKENS];
        for (int i = 0; i < per; i++) {
            // a neighbour's token before each of ours, of another text and at other positions
            if (r.neighbour && i % 2 == 0) {
                const int k = b.n_tokens++;
                b.token[k] = token_at(1000 + 3 * (p0 + i));
                b.pos[k] = (p0 + i) / 2 + (p0 && r.one_by_one ? 0 : 0);
                b.pos[k] = r.one_by_one ? p0 : (p0 + i) / 2;
                b.n_seq_id[k] = 1;
                b.seq_id[k][0] = 2;
                b.logits[k] = i % 3 == 0;
            }
            const int k = where[i] = b.n_tokens++;
            b.token[k] = token_at(p0 + i);
            b.pos[k] = p0 + i;
            b.n_seq_id[k] = 1;
            b.seq_id[k][0] = seq;
            b.logits[k] = 1;
        }
        assert_int_equal(llama_decode(c, b), 0);
        for (int i = 0; i < per; i++) {
            const float *row = llama_get_logits_ith(c, where[i]);
            assert_non_null(row);
            memcpy(out + (size_t) (p0 + i) * MAKER_N_VOCAB, row, MAKER_N_VOCAB * sizeof(float));
        }
    }
    llama_batch_free(b);
    llama_free(c);
    return out;
}

static void check_model(const char *path) {
    struct llama_model *m = llama_model_load_from_file(path, llama_model_default_params());
    assert_non_null(m);
    float *want = logits_of(m, (struct run){.n_threads = 1, .n_ubatch = 512});
    for (int i = 0; i < N_TOKENS * MAKER_N_VOCAB; i++) assert_true(want[i] == want[i]);
    const struct run runs[] = {
        {.n_threads = 2, .n_ubatch = 512},
        {.n_threads = 3, .n_ubatch = 64},
        {.n_threads = 5, .n_ubatch = 7},
        {.n_threads = 1, .n_ubatch = 1},
        {.n_threads = 2, .n_ubatch = 64, .one_by_one = true},
        {.n_threads = 2, .n_ubatch = 512, .neighbour = true},
        {.n_threads = 3, .n_ubatch = 7, .neighbour = true},
        {.n_threads = 2, .n_ubatch = 512, .neighbour = true, .one_by_one = true},
        {.n_threads = 2, .n_ubatch = 64, .swa_small = true},
        {.n_threads = 2, .n_ubatch = 7, .swa_small = true, .neighbour = true},
        {.n_threads = 1, .n_ubatch = 64, .swa_small = true, .one_by_one = true},
    };
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) {
        float *got = logits_of(m, runs[k]);
        const int differ = memcmp(want, got, (size_t) N_TOKENS * MAKER_N_VOCAB * sizeof(float));
        if (differ)
            print_error("%s: run %zu (threads %d, n_ubatch %d%s%s%s) has other bits\n", path, k, runs[k].n_threads,
                        runs[k].n_ubatch, runs[k].neighbour ? ", neighbour" : "", runs[k].one_by_one ? ", one by one" : "",
                        runs[k].swa_small ? ", small window cache" : "");
        free(got);
        assert_int_equal(differ, 0);
    }
    free(want);
    llama_model_free(m);
}

static void test_llama(void **state) {
    (void) state;
    check_model(maker_path("llama", GGML_TYPE_Q8_0));
}

static void test_llama_k(void **state) {
    (void) state;
    check_model(maker_path("llama", GGML_TYPE_Q4_K));
}

static void test_moe(void **state) {
    (void) state;
    check_model(maker_path("llama-moe", GGML_TYPE_F32));
}

static void test_windows(void **state) {
    (void) state;
    check_model(maker_path("gemma3", GGML_TYPE_F16));
}

static void test_mamba2(void **state) {
    (void) state;
    check_model(maker_path("mamba2", GGML_TYPE_F32));
}

static void test_hybrid(void **state) {
    (void) state;
    check_model(maker_path("falcon-h1", GGML_TYPE_F32));
}

static void test_latent(void **state) {
    (void) state;
    check_model(maker_path("deepseek2", GGML_TYPE_F32));
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llama),   cmocka_unit_test(test_llama_k), cmocka_unit_test(test_moe),
        cmocka_unit_test(test_windows), cmocka_unit_test(test_mamba2),  cmocka_unit_test(test_hybrid),
        cmocka_unit_test(test_latent),
    };
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
