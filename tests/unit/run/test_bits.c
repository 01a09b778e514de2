// The same bits whatever the thread count, the micro-batch, the neighbours (design, rule 7), and whatever is computed as one, on
// small models made on the spot.
#include "support/batch.h"
#include "test.h"

#include "model_maker.h"

#include <stdlib.h>
#include <string.h>

enum { N_TOKENS = 150 };

static int n_tokens(void) { return test_small() ? 80 : N_TOKENS; }  // beyond the micro-batch of 64
static int n_decoded(void) { return test_small() ? 24 : 80; }

struct run {
    int n_threads, n_ubatch, n_seq, n_batch;
    bool no_flash, neighbour, one_by_one, swa_small, singly;
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
    if (r.no_flash) cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    if (r.singly) setenv("GGML_NO_FUSE", "1", 1);
    struct llama_context *c = llama_init_from_model(m, cp);
    unsetenv("GGML_NO_FUSE");
    assert_non_null(c);
    const int n = n_tokens(), per = r.one_by_one ? 1 : n, seq = r.neighbour ? 1 : 0;
    float *out = malloc((size_t) n * MAKER_N_VOCAB * sizeof(float));
    struct llama_batch b = llama_batch_init(2 * N_TOKENS, 0, 1);
    for (int p0 = 0; p0 < n; p0 += per) {
        b.n_tokens = 0;
        int where[N_TOKENS];
        for (int i = 0; i < per; i++) {
            // a neighbour's token before each of ours, of another text and at other positions
            if (r.neighbour && i % 2 == 0) {
                const int k = b.n_tokens++;
                b.token[k] = token_at(1000 + 3 * (p0 + i));
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
    for (int i = 0; i < n_tokens() * MAKER_N_VOCAB; i++) assert_true(want[i] == want[i]);
    const struct run runs[] = {
        {.n_threads = 2, .n_ubatch = 512},
        {.n_threads = 3, .n_ubatch = 64},
        {.n_threads = 5, .n_ubatch = 7},
        {.n_threads = 1, .n_ubatch = 1},
        {.n_threads = 2, .n_ubatch = 64, .one_by_one = true},
        {.n_threads = 2, .n_ubatch = 512, .singly = true},
        {.n_threads = 2, .n_ubatch = 64, .singly = true, .one_by_one = true},
        {.n_threads = 2, .n_ubatch = 512, .neighbour = true},
        {.n_threads = 3, .n_ubatch = 7, .neighbour = true},
        {.n_threads = 2, .n_ubatch = 512, .neighbour = true, .one_by_one = true},
        {.n_threads = 2, .n_ubatch = 64, .swa_small = true},
        {.n_threads = 2, .n_ubatch = 7, .swa_small = true, .neighbour = true},
        {.n_threads = 1, .n_ubatch = 64, .swa_small = true, .one_by_one = true},
    };
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k += test_small() ? 2 : 1) {
        float *got = logits_of(m, runs[k]);
        const int differ = memcmp(want, got, (size_t) n_tokens() * MAKER_N_VOCAB * sizeof(float));
        if (differ)
            print_error("%s: run %zu (threads %d, n_ubatch %d%s%s%s) has other bits\n", path, k, runs[k].n_threads,
                        runs[k].n_ubatch, runs[k].neighbour ? ", neighbour" : "", runs[k].one_by_one ? ", one by one" : "",
                        runs[k].swa_small ? ", small window cache"
                        : runs[k].singly  ? ", nothing fused"
                                          : "");
        free(got);
        assert_int_equal(differ, 0);
    }
    free(want);
    llama_model_free(m);
}

// A text of 1,200 tokens whose first part is computed in another sequence, beside a third one that leaves holes among the cells, copied,
// and gone on with: the bits of the whole text in one piece. Long enough for the small cache's table to slide.
enum { N_LONG = 1200, N_PREFIX = 300, N_TAIL = 40 };

static void feed(struct llama_context *c, struct llama_batch *b, int seq, int p0, int p1, int step, int text) {
    for (int p = p0; p < p1;) {
        b->n_tokens = 0;
        for (int i = 0; i < step && p < p1; i++, p++) put(b, seq, p, token_at(p + text), false);
        assert_int_equal(llama_decode(c, *b), 0);
    }
}

// The last logits of the last N_TAIL tokens.
static void tail(struct llama_context *c, struct llama_batch *b, int seq, float *out) {
    for (int i = 0; i < N_TAIL; i++) {
        b->n_tokens = 0;
        put(b, seq, N_LONG - N_TAIL + i, token_at(N_LONG - N_TAIL + i), false);
        b->logits[0] = 1;
        assert_int_equal(llama_decode(c, *b), 0);
        memcpy(out + (size_t) i * MAKER_N_VOCAB, llama_get_logits_ith(c, 0), MAKER_N_VOCAB * sizeof(float));
    }
}

static void long_text(struct llama_model *m, bool swa_full, int n_ubatch, int step, bool copied, float *out) {
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 4096;
    cp.n_batch = 512;
    cp.n_ubatch = (uint32_t) n_ubatch;
    cp.n_seq_max = 3;
    cp.kv_unified = true;
    cp.swa_full = swa_full;
    cp.n_threads = cp.n_threads_batch = 2;
    struct llama_context *c = llama_init_from_model(m, cp);
    assert_non_null(c);
    llama_memory_t mem = llama_get_memory(c);
    struct llama_batch b = llama_batch_init(512, 0, 1);
    if (!copied) {
        feed(c, &b, 0, 0, N_LONG - N_TAIL, step, 0);
        tail(c, &b, 0, out);
    } else {
        for (int p = 0; p < N_PREFIX; p += 20) {
            feed(c, &b, 2, 2 * p, 2 * p + 40, 17, 5000);
            feed(c, &b, 1, p, p + 20, 20, 0);
        }
        assert_true(llama_memory_seq_rm(mem, 2, -1, -1));
        llama_memory_seq_cp(mem, 1, 0, -1, -1);
        feed(c, &b, 1, N_PREFIX, N_PREFIX + 30, 30, 7000);
        feed(c, &b, 0, N_PREFIX, N_LONG - N_TAIL, step, 0);
        tail(c, &b, 0, out);
    }
    llama_batch_free(b);
    llama_free(c);
}

static void check_long(const char *name) {
    struct llama_model *m = llama_model_load_from_file(maker_path(name, GGML_TYPE_F32), llama_model_default_params());
    assert_non_null(m);
    const size_t n = (size_t) N_TAIL * MAKER_N_VOCAB * sizeof(float);
    float *want = malloc(n), *got = malloc(n);
    long_text(m, true, 512, 512, false, want);
    const struct {
        bool swa_full, copied;
        int n_ubatch, step;
    } runs[] = {{true, true, 512, 512}, {false, false, 512, 512}, {false, false, 64, 100}, {false, true, 64, 64}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i += test_small() ? 3 : 1) {
        long_text(m, runs[i].swa_full, runs[i].n_ubatch, runs[i].step, runs[i].copied, got);
        if (memcmp(want, got, n)) print_error("%s: run %zu has other bits\n", name, i);
        assert_memory_equal(want, got, n);
    }
    free(want);
    free(got);
    llama_model_free(m);
}

static void test_long(void **state) {
    (void) state;
    check_long("gemma3");
    if (test_small()) return;
    check_long("deepseek4");
    check_long("llama");
    check_long("deepseek32");
    check_long("minimax-m3");
}

// An encoder's output lies beside another sequence's, and the decoder's tokens come one by one or all at once beside a neighbour's.
static void encode_decode(struct llama_model *m, bool neighbour, bool one_by_one, int n_threads, float *out) {
    enum { N_ENC = 90 };
    const int n_dec = n_decoded();
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 1024;
    cp.n_batch = cp.n_ubatch = 512;
    cp.n_seq_max = 2;
    cp.kv_unified = true;
    cp.n_threads = cp.n_threads_batch = n_threads;
    struct llama_context *c = llama_init_from_model(m, cp);
    assert_non_null(c);
    struct llama_batch b = llama_batch_init(512, 0, 1);
    const int seq = neighbour ? 1 : 0;
    b.n_tokens = 0;
    for (int i = 0; neighbour && i < 37; i++) put(&b, 0, i, token_at(400 + i), false);
    for (int i = 0; i < N_ENC; i++) put(&b, seq, i, token_at(i), false);
    assert_int_equal(llama_encode(c, b), 0);
    const int step = one_by_one ? 1 : n_dec;
    for (int p = 0; p < n_dec; p += step) {
        b.n_tokens = 0;
        for (int i = 0; i < step; i++) {
            if (neighbour) put(&b, 0, p + i, token_at(700 + 3 * (p + i)), false);
            put(&b, seq, p + i, token_at(p + i), false);
            b.logits[b.n_tokens - 1] = 1;
        }
        assert_int_equal(llama_decode(c, b), 0);
        for (int i = 0; i < step; i++)
            memcpy(out + (size_t) (p + i) * MAKER_N_VOCAB, llama_get_logits_ith(c, neighbour ? 2 * i + 1 : i),
                   MAKER_N_VOCAB * sizeof(float));
    }
    llama_batch_free(b);
    llama_free(c);
}

static void test_encoder_decoder(void **state) {
    (void) state;
    struct llama_model *m = llama_model_load_from_file(maker_path("t5", GGML_TYPE_F32), llama_model_default_params());
    assert_non_null(m);
    const size_t n = (size_t) n_decoded() * MAKER_N_VOCAB * sizeof(float);
    float *want = malloc(n), *got = malloc(n);
    encode_decode(m, false, false, 1, want);
    for (int i = 0; i < n_decoded() * MAKER_N_VOCAB; i++) assert_true(want[i] == want[i]);
    for (int k = 1; k < 4; k += test_small() ? 2 : 1) {
        encode_decode(m, k & 1, k & 2, k + 1, got);
        assert_memory_equal(want, got, n);
    }
    free(want);
    free(got);
    llama_model_free(m);
}

// The attention of a context made with flash_attn_type DISABLED is the same, bit for bit.
static void test_no_flash(void **state) {
    (void) state;
    struct llama_model *m = llama_model_load_from_file(maker_path("gemma3", GGML_TYPE_F16), llama_model_default_params());
    float *want = logits_of(m, (struct run){.n_threads = 1, .n_ubatch = 512});
    float *got = logits_of(m, (struct run){.n_threads = 3, .n_ubatch = 7, .no_flash = true, .neighbour = true});
    assert_memory_equal(want, got, (size_t) n_tokens() * MAKER_N_VOCAB * sizeof(float));
    free(want);
    free(got);
    llama_model_free(m);
}

static void test_sparse(void **state) {
    (void) state;
    check_model(maker_path("deepseek4", GGML_TYPE_F32));
    check_model(maker_path("deepseek32", GGML_TYPE_F32));
    check_model(maker_path("minimax-m3", GGML_TYPE_F32));
}

static void test_llama(void **state) {
    (void) state;
    check_model(maker_path("llama", GGML_TYPE_Q8_0));
}

static void test_llama_bf16(void **state) {
    (void) state;
    check_model(maker_path("llama", GGML_TYPE_BF16));
    if (!test_small()) check_model(maker_path("llama-moe", GGML_TYPE_BF16));
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
        cmocka_unit_test(test_llama),   cmocka_unit_test(test_llama_bf16),
        cmocka_unit_test(test_llama_k), cmocka_unit_test(test_moe),
        cmocka_unit_test(test_windows), cmocka_unit_test(test_mamba2),
        cmocka_unit_test(test_hybrid),  cmocka_unit_test(test_latent),
        cmocka_unit_test(test_long),    cmocka_unit_test(test_encoder_decoder),
        cmocka_unit_test(test_sparse),  cmocka_unit_test(test_no_flash),
    };
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
