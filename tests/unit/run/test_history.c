// Sequences with a long history (tails cut off, copies, states moved from one to another, neighbours of all lengths) against the same
// texts computed at once in an empty context: the same bits, whatever kind of memory and of cache. Then positions moved and divided and
// middles cut out, which rule 7 leaves out: against a context with exact caches to which the same is done.
#include "support/batch.h"
#include "test.h"

#include "model_maker.h"

#include <stdlib.h>

#define NV MAKER_N_VOCAB
enum { N_SEQ = 4, N_MOST = 600, N_OPS = 50 };

static int n_most(void) { return test_small() ? 150 : N_MOST; }  // tokens of a sequence

struct world {
    struct llama_model *m;
    struct llama_context *c, *at_once;
    int32_t text[N_SEQ][N_MOST + 1];
    int len[N_SEQ];
    int n_checked, n_cut, n_kept;
    uint32_t random;
};

static int pick(struct world *w, int n) {
    w->random = w->random * 1664525u + 1013904223u;
    return (int) ((uint64_t) (w->random >> 8) * (uint64_t) n >> 24);
}

static struct llama_context *context(struct llama_model *m, enum ggml_type cache, int n_seq, int n_batch, int n_ubatch,
                                     int n_threads) {
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = (uint32_t) (n_seq * (N_MOST + 128));
    cp.n_seq_max = (uint32_t) n_seq;
    cp.n_batch = (uint32_t) n_batch;
    cp.n_ubatch = (uint32_t) n_ubatch;
    cp.kv_unified = true;
    cp.swa_full = false;
    cp.type_k = cp.type_v = cache;
    cp.n_threads = cp.n_threads_batch = n_threads;
    struct llama_context *c = llama_init_from_model(m, cp);
    assert_non_null(c);
    return c;
}

// Several sequences grow, their tokens mixed.
static void grow(struct world *w, struct llama_batch *b) {
    b->n_tokens = 0;
    int left[N_SEQ];
    for (int s = 0; s < N_SEQ; s++) {
        left[s] = pick(w, 3) ? pick(w, pick(w, 2) ? 6 : test_small() ? 25 : 110) : 0;
        if (left[s] > n_most() - w->len[s]) left[s] = n_most() - w->len[s];
    }
    for (int any = 1; any;) {
        any = 0;
        for (int s = 0; s < N_SEQ; s++) {
            for (int run = 1 + pick(w, 9); run && left[s]; run--, left[s]--) {
                const int32_t token = pick(w, NV);
                put(b, s, w->len[s], token, false);
                w->text[s][w->len[s]++] = token;
                any = 1;
            }
        }
    }
    if (b->n_tokens) assert_int_equal(llama_decode(w->c, *b), 0);
}

static void drop(struct world *w, int s) {
    assert_true(llama_memory_seq_rm(llama_get_memory(w->c), s, -1, -1));
    w->len[s] = 0;
}

// The tail goes, or, where the memory can't go back so far, nothing does.
static void cut(struct world *w, int s) {
    if (w->len[s] < 2) return;
    const int k = 1 + pick(w, w->len[s] > 3 && pick(w, 2) ? 3 : w->len[s] - 1);
    if (llama_memory_seq_rm(llama_get_memory(w->c), s, w->len[s] - k, -1)) {
        w->len[s] -= k;
        w->n_cut++;
    } else {
        assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(w->c), s), w->len[s] - 1);
        w->n_kept++;
    }
}

static void copy(struct world *w, int from, int to, bool by_state) {
    if (from == to || !w->len[from]) return;
    drop(w, to);
    if (by_state) {
        const size_t n = llama_state_seq_get_size(w->c, from);
        uint8_t *bytes = malloc(n);
        assert_int_equal(llama_state_seq_get_data(w->c, bytes, n, from), n);
        assert_int_equal(llama_state_seq_set_data(w->c, bytes, n, to), n);
        free(bytes);
    } else {
        llama_memory_seq_cp(llama_get_memory(w->c), from, to, -1, -1);
    }
    memcpy(w->text[to], w->text[from], (size_t) w->len[from] * sizeof w->text[0][0]);
    w->len[to] = w->len[from];
}

// One token more: its logits are those of the whole text at once.
static void check(struct world *w, struct llama_batch *b, int s) {
    if (w->len[s] >= n_most()) return;
    float got[NV];
    w->text[s][w->len[s]] = pick(w, NV);
    b->n_tokens = 0;
    put(b, s, w->len[s], w->text[s][w->len[s]], true);
    assert_int_equal(llama_decode(w->c, *b), 0);
    memcpy(got, llama_get_logits_ith(w->c, 0), sizeof got);
    w->len[s]++;
    b->n_tokens = 0;
    for (int i = 0; i < w->len[s]; i++) put(b, 0, i, w->text[s][i], i == w->len[s] - 1);
    llama_memory_clear(llama_get_memory(w->at_once), false);
    assert_int_equal(llama_decode(w->at_once, *b), 0);
    assert_memory_equal(got, llama_get_logits_ith(w->at_once, -1), sizeof got);
    w->n_checked++;
}

static void histories(const char *name, enum ggml_type cache) {
    struct world w = {.random = 7};
    w.m = llama_model_load_from_file(maker_path(name, GGML_TYPE_F32), llama_model_default_params());
    assert_non_null(w.m);
    w.c = context(w.m, cache, N_SEQ, 512, 64, 2);
    w.at_once = context(w.m, cache, 1, n_most(), 256, 1);
    struct llama_batch b = llama_batch_init(N_MOST + 1, 0, 1);
    for (int i = 0; i < N_OPS; i++) {
        const int s = pick(&w, N_SEQ), t = pick(&w, N_SEQ);
        switch (pick(&w, 8)) {
            case 0: cut(&w, s); break;
            case 1: copy(&w, s, t, false); break;
            case 2: copy(&w, s, t, true); break;
            case 3: drop(&w, s); break;
            default: grow(&w, &b);
        }
        if (i % 3 == 0) check(&w, &b, t);
        for (int q = 0; q < N_SEQ; q++) assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(w.c), q), w.len[q] - 1);
    }
    assert_true(w.n_checked > 10 && w.n_cut + w.n_kept > 3);
    llama_batch_free(b);
    llama_free(w.c);
    llama_free(w.at_once);
    llama_model_free(w.m);
}

static void test_plain(void **state) {
    (void) state;
    histories("llama", GGML_TYPE_F16);
    histories("llama", GGML_TYPE_Q8_0);
    histories("llama", GGML_TYPE_Q4_0);
    histories("deepseek2", GGML_TYPE_Q8_0);
}

static void test_windows(void **state) {
    (void) state;
    histories("gemma3", GGML_TYPE_F16);
    histories("gemma3-64", GGML_TYPE_Q8_0);
}

static void test_recurrent(void **state) {
    (void) state;
    histories("mamba2", GGML_TYPE_F16);
    histories("falcon-h1", GGML_TYPE_Q8_0);
}

// ---- positions that move --------------------------------------------------------------------------------------------------

static void feed(struct llama_context *c, struct llama_batch *b, int pos, int n, int salt, float *logits) {
    b->n_tokens = 0;
    for (int i = 0; i < n; i++) put(b, 0, pos + i, (11 * (salt + i) + 5) % NV, i == n - 1);
    assert_int_equal(llama_decode(c, *b), 0);
    memcpy(logits, llama_get_logits_ith(c, -1), NV * sizeof *logits);
}

static void moves(const char *name, enum ggml_type cache, double tolerance) {
    struct llama_model *m = llama_model_load_from_file(maker_path(name, GGML_TYPE_F32), llama_model_default_params());
    assert_non_null(m);
    struct llama_context *c[2] = {context(m, cache, 1, 512, 64, 2), context(m, GGML_TYPE_F32, 1, 512, 64, 1)};
    struct llama_batch b = llama_batch_init(512, 0, 1);
    float x[2][NV];
    double most = 0;
    for (int round = 0; round < 4; round++) {
        for (int k = 0; k < 2; k++) {
            llama_memory_t mem = llama_get_memory(c[k]);
            int n = llama_memory_seq_pos_max(mem, 0) + 1;
            feed(c[k], &b, n, (test_small() ? 110 : 200) - n % 50, round, x[k]);
            n = llama_memory_seq_pos_max(mem, 0) + 1;
            assert_true(llama_memory_seq_rm(mem, 0, 20, 20 + 30 + round));  // as programs shift a full context
            llama_memory_seq_add(mem, 0, 20 + 30 + round, -1, -30 - round);
            if (round == 1) llama_memory_seq_div(mem, 0, 40, -1, 2);
            if (round == 2) llama_memory_seq_add(mem, 0, 60, -1, 17);
            n = llama_memory_seq_pos_max(mem, 0) + 1;
            feed(c[k], &b, n, 1, 99, x[k]);
        }
        double d = 0, n = 0;
        for (int i = 0; i < NV; i++) {
            d += (double) (x[0][i] - x[1][i]) * (double) (x[0][i] - x[1][i]);
            n += (double) x[1][i] * (double) x[1][i];
        }
        if (d / n > most) most = d / n;
    }
    print_message("%s, %s: %.1e\n", name, ggml_type_name(cache), most);
    assert_true(most < tolerance);
    llama_batch_free(b);
    llama_free(c[0]);
    llama_free(c[1]);
    llama_model_free(m);
}

static void test_moves(void **state) {
    (void) state;
    const char *names[] = {"llama", "gemma3", "deepseek2"};
    for (int i = 0; i < 3; i++) {
        moves(names[i], GGML_TYPE_F16, 1e-5);
        moves(names[i], GGML_TYPE_Q8_0, 1e-3);
        if (i < 2) moves(names[i], GGML_TYPE_Q4_0, 0.1);  // a latent key is rounded anew for all heads at once
    }
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain), cmocka_unit_test(test_windows),
                                       cmocka_unit_test(test_recurrent), cmocka_unit_test(test_moves)};
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
