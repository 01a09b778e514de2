// Draft heads: contexts of type MTP. What they compute is compared with numpy in tests/golden/numpy_nextn.py; here: what is refused and how,
// that both kinds of batch give the same bits in any division, memory, states, the saved model, plans, and a loop that drafts and checks.
#include "model_maker.h"
#include "test.h"

#include "llama/ext.h"

#define N_EMBD 256
#define N 40

static struct llama_model *load(const char *name, bool mtp) {
    const char *path = maker_path(name, GGML_TYPE_F16);
    assert_non_null(path);
    struct llama_model_params p = llama_model_default_params();
    p.load_mtp = mtp;
    p.n_gpu_layers = 0;
    struct llama_model *m = llama_model_load_from_file(path, p);
    assert_non_null(m);
    return m;
}

static struct llama_context_params params(enum llama_context_type type) {
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = 512;
    p.n_batch = 128;
    p.n_ubatch = 64;
    p.n_seq_max = 2;
    p.kv_unified = true;
    p.n_threads = p.n_threads_batch = 2;
    p.embeddings = true;
    p.ctx_type = type;
    return p;
}

static struct llama_context *open_head(struct llama_model *m, struct llama_context *other) {
    struct llama_context_params p = params(LLAMA_CONTEXT_TYPE_MTP);
    p.ctx_other = other;
    struct llama_context *c = llama_init_from_model(m, p);
    if (!c) print_error("%s\n", ggml_last_error());
    assert_non_null(c);
    return c;
}

static llama_token tokens[N];
static float states[N][N_EMBD];

static int fill(void **state) {
    (void) state;
    maker_seed = 5;
    for (int i = 0; i < N; i++) {
        tokens[i] = (7 + 37 * i) % MAKER_N_VOCAB;
        for (int k = 0; k < N_EMBD; k++) states[i][k] = maker_random();
    }
    return 0;
}

// Tokens i0 .. i1 - 1 with their states, all of them outputs.
static int feed(struct llama_context *c, int i0, int i1) {
    struct llama_batch b = llama_batch_init(i1 - i0, 0, 1);
    b.embd = malloc(sizeof states);
    b.n_tokens = i1 - i0;
    for (int i = i0; i < i1; i++) {
        b.token[i - i0] = tokens[i];
        b.pos[i - i0] = i;
        b.n_seq_id[i - i0] = 1;
        b.seq_id[i - i0][0] = 0;
        b.logits[i - i0] = 1;
    }
    memcpy(b.embd, states[i0], (size_t) (i1 - i0) * sizeof states[0]);
    const int r = llama_decode(c, b);
    llama_batch_free(b);
    return r;
}

static float *copy_logits(struct llama_context *c, int n, float *to) {
    for (int i = 0; i < n; i++)
        memcpy(to + (size_t) i * MAKER_N_VOCAB, llama_get_logits_ith(c, i), MAKER_N_VOCAB * sizeof(float));
    return to;
}

static bool says(const char *text) {
    const bool ok = strstr(ggml_last_error(), text) != NULL;
    if (!ok) print_error("'%s' lacks '%s'\n", ggml_last_error(), text);
    return ok;
}

static void test_refused(void **state) {
    (void) state;
    struct llama_model *m = load("llama-mtp", false);
    assert_int_equal(llama_model_n_layer(m), 3);
    assert_int_equal(llama_model_n_layer_nextn(m), 2);
    assert_null(llama_init_from_model(m, params(LLAMA_CONTEXT_TYPE_MTP)));
    assert_true(says("load_mtp"));
    struct llama_context_params p = params((enum llama_context_type) 7);
    assert_null(llama_init_from_model(m, p));
    assert_true(says("ctx_type is 7"));
    const uint64_t size = llama_model_size(m);
    llama_model_free(m);
    m = load("llama", true);  // no head in the file: nothing to load
    assert_null(llama_init_from_model(m, params(LLAMA_CONTEXT_TYPE_MTP)));
    assert_true(says("no draft head"));
    llama_model_free(m);
    m = load("llama-mtp", true);
    assert_true(llama_model_size(m) > size);
    struct llama_model *foreign = load("llama-mtp", true);
    struct llama_context *main = llama_init_from_model(m, params(LLAMA_CONTEXT_TYPE_DEFAULT)), *first = open_head(m, main),
                         *second = open_head(m, first);
    p = params(LLAMA_CONTEXT_TYPE_MTP);
    p.ctx_other = second;
    assert_null(llama_init_from_model(m, p));
    assert_true(says("2 draft heads"));
    p.ctx_other = first;
    assert_null(llama_init_from_model(foreign, p));
    assert_true(says("another model"));
    // a token without a state, a state without a token
    assert_int_equal(llama_decode(first, llama_batch_get_one(tokens, 3)), -1);
    assert_true(says("needs the state"));
    struct llama_batch b = llama_batch_init(1, N_EMBD, 1);
    b.n_tokens = 1;
    b.pos[0] = 0;
    b.n_seq_id[0] = 1;
    b.seq_id[0][0] = 0;
    b.logits[0] = 1;
    memcpy(b.embd, states[0], sizeof states[0]);
    assert_int_equal(llama_decode(first, b), -1);
    assert_true(says("needs the state"));
    llama_batch_free(b);
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(first), 0), -1);
    // states where none is taken
    struct llama_batch_ext *e = llama_batch_ext_init(main);
    assert_int_equal(llama_batch_ext_add_token(e, 0, 3), 0);
    assert_false(llama_batch_ext_set_embd_state(e, 0, (struct llama_embd){states[0], 1, N_EMBD}));
    assert_true(says("ctx_type MTP"));
    llama_batch_ext_free(e);
    e = llama_batch_ext_init(first);
    assert_int_equal(llama_batch_ext_add_token(e, 0, 3), 0);
    assert_false(llama_batch_ext_set_embd_state(e, 0, (struct llama_embd){states[0], 1, N_EMBD - 1}));
    assert_false(llama_batch_ext_set_embd_state(e, 1, (struct llama_embd){states[0], 1, N_EMBD}));
    assert_int_equal(llama_process(first, LLAMA_PROCESS_TYPE_DECODE, e), -1);
    assert_true(says("has no state"));
    llama_batch_ext_free(e);
    llama_free(second);
    llama_free(first);
    llama_free(main);
    llama_model_free(foreign);
    llama_model_free(m);
}

// Any division of the text, either kind of batch, gives the same bits.
static void check_bits(const char *name) {
    struct llama_model *m = load(name, true);
    struct llama_context *c = open_head(m, NULL);
    static float whole[N * MAKER_N_VOCAB], other[N * MAKER_N_VOCAB];
    assert_int_equal(feed(c, 0, N), 0);
    copy_logits(c, N, whole);
    llama_memory_clear(llama_get_memory(c), true);
    const int cuts[] = {0, 7, 8, 9, 33, N};
    for (int k = 0; k < 5; k++) {
        assert_int_equal(feed(c, cuts[k], cuts[k + 1]), 0);
        copy_logits(c, cuts[k + 1] - cuts[k], other + (size_t) cuts[k] * MAKER_N_VOCAB);
    }
    assert_memory_equal(whole, other, sizeof whole);
    // a tail goes and comes again
    assert_true(llama_memory_seq_rm(llama_get_memory(c), 0, 35, -1));
    assert_int_equal(feed(c, 35, N), 0);
    copy_logits(c, N - 35, other + (size_t) 35 * MAKER_N_VOCAB);
    assert_memory_equal(whole, other, sizeof whole);
    llama_memory_clear(llama_get_memory(c), true);
    struct llama_batch_ext *e = llama_batch_ext_init(c);
    for (int i = 0; i < N; i++) {
        assert_int_equal(llama_batch_ext_add_token(e, 0, tokens[i]), i);
        assert_true(llama_batch_ext_set_embd_state(e, i, (struct llama_embd){states[i], 1, N_EMBD}));
        assert_true(llama_batch_ext_set_output_logits(e, i, true));
    }
    assert_int_equal(llama_process(c, LLAMA_PROCESS_TYPE_DECODE, e), 0);
    assert_memory_equal(whole, copy_logits(c, N, other), sizeof whole);
    llama_batch_ext_free(e);
    llama_free(c);
    llama_model_free(m);
}

static void test_bits(void **state) {
    (void) state;
    check_bits("llama-mtp");
    check_bits("mimo2-mtp");
}

// A head's memory is saved and restored; neither the model's own context nor another head takes it.
static void test_states(void **state) {
    (void) state;
    struct llama_model *m = load("llama-mtp", true);
    struct llama_context *a = open_head(m, NULL), *b = open_head(m, NULL), *second = open_head(m, a),
                         *main = llama_init_from_model(m, params(LLAMA_CONTEXT_TYPE_DEFAULT));
    static float want[MAKER_N_VOCAB], got[MAKER_N_VOCAB];
    assert_int_equal(feed(a, 0, 20), 0);
    const size_t n = llama_state_get_size(a);
    uint8_t *bytes = malloc(n);
    assert_int_equal(llama_state_get_data(a, bytes, n), n);
    assert_int_equal(llama_state_set_data(main, bytes, n), 0);
    assert_int_equal(llama_state_set_data(second, bytes, n), 0);
    assert_int_equal(llama_state_set_data(b, bytes, n), n);
    assert_int_equal(feed(a, 20, 21), 0);
    assert_int_equal(feed(b, 20, 21), 0);
    assert_memory_equal(copy_logits(a, 1, want), copy_logits(b, 1, got), sizeof want);
    free(bytes);
    // the model's own context: the same state with and without its draft head
    struct llama_model *plain = load("llama-mtp", false);
    struct llama_context *c = llama_init_from_model(plain, params(LLAMA_CONTEXT_TYPE_DEFAULT));
    assert_int_equal(llama_decode(main, llama_batch_get_one(tokens, 9)), 0);
    const size_t k = llama_state_get_size(main);
    bytes = malloc(k);
    assert_int_equal(llama_state_get_data(main, bytes, k), k);
    assert_int_equal(llama_state_set_data(c, bytes, k), k);
    assert_int_equal(llama_decode(main, llama_batch_get_one(tokens + 9, 1)), 0);
    assert_int_equal(llama_decode(c, llama_batch_get_one(tokens + 9, 1)), 0);
    assert_memory_equal(copy_logits(main, 1, want), copy_logits(c, 1, got), sizeof want);
    free(bytes);
    struct llama_context *all[] = {a, b, second, main, c};
    for (int i = 0; i < 5; i++) llama_free(all[i]);
    llama_model_free(plain);
    llama_model_free(m);
}

// The head is saved with the model, whether it was loaded with it or is only in its file.
static void save_again(bool loaded) {
    struct llama_model *m = load("llama-mtp", true);
    struct llama_context *c = open_head(m, NULL);
    static float want[MAKER_N_VOCAB], got[MAKER_N_VOCAB];
    assert_int_equal(feed(c, 0, 1), 0);
    copy_logits(c, 1, want);
    char path[64];
    snprintf(path, sizeof path, "/tmp/lamina-test-%d-saved.gguf", (int) getpid());
    llama_free(c);
    if (!loaded) {
        llama_model_free(m);
        m = load("llama-mtp", false);
    }
    llama_model_save_to_file(m, path);
    llama_model_free(m);
    struct llama_model_params p = llama_model_default_params();
    p.load_mtp = true;
    m = llama_model_load_from_file(path, p);
    unlink(path);
    assert_non_null(m);
    c = open_head(m, NULL);
    assert_int_equal(feed(c, 0, 1), 0);
    assert_memory_equal(want, copy_logits(c, 1, got), sizeof want);
    llama_free(c);
    llama_model_free(m);
}

static void test_saved(void **state) {
    (void) state;
    save_again(true);
    save_again(false);
}

// What a head's context costs is known before: one layer of cache, not the model's.
static void test_plan(void **state) {
    (void) state;
    const char *path = maker_path("llama-mtp", GGML_TYPE_F16);
    struct llama_model_params mp = llama_model_default_params();
    mp.load_mtp = true;
    mp.n_gpu_layers = 0;
    struct llama_device_bytes main[4], head[4], real[4];
    assert_int_equal(llama_plan_bytes(path, mp, params(LLAMA_CONTEXT_TYPE_DEFAULT), main, 4), 1);
    assert_int_equal(llama_plan_bytes(path, mp, params(LLAMA_CONTEXT_TYPE_MTP), head, 4), 1);
    assert_true(head[0].kv < main[0].kv / 2);
    struct llama_model *m = load("llama-mtp", true);
    struct llama_context *c = open_head(m, NULL);
    assert_int_equal(llama_context_bytes(c, real, 4), 1);
    assert_int_equal(real[0].kv, head[0].kv);
    assert_int_equal(real[0].compute, head[0].compute);
    assert_int_equal(real[0].weights_mapped, head[0].weights_mapped);
    llama_free(c);
    llama_model_free(m);
}

static llama_token best(const float *x) {
    llama_token at = 0;
    for (llama_token i = 1; i < MAKER_N_VOCAB; i++)
        if (x[i] > x[at]) at = i;
    return at;
}

static int one(struct llama_context *c, llama_token t, llama_pos pos, float *embd) {
    llama_seq_id zero = 0, *seq = &zero;
    int32_t n_seq = 1;
    int8_t out = 1;
    return llama_decode(c, (struct llama_batch){1, &t, embd, &pos, &n_seq, &seq, &out});
}

// Draft two tokens, check them in one batch of the model's, take back what was wrong: the text is the one that the model writes alone.
static void test_speculate(void **state) {
    (void) state;
    enum { WANT = 24, DRAFT = 2 };
    struct llama_model *m = load("llama-mtp", true);
    struct llama_context *alone = llama_init_from_model(m, params(LLAMA_CONTEXT_TYPE_DEFAULT)),
                         *main = llama_init_from_model(m, params(LLAMA_CONTEXT_TYPE_DEFAULT)), *head = open_head(m, main);
    llama_token want[WANT + DRAFT + 1], got[WANT + DRAFT + 1];
    assert_int_equal(llama_decode(alone, llama_batch_get_one(tokens, 5)), 0);
    for (int i = 0; i < WANT; i++) {
        want[i] = best(llama_get_logits_ith(alone, -1));
        assert_int_equal(one(alone, want[i], 5 + i, NULL), 0);
    }
    assert_int_equal(llama_decode(main, llama_batch_get_one(tokens, 5)), 0);
    float h[N_EMBD];
    memcpy(h, llama_get_embeddings_ith(main, -1), sizeof h);
    got[0] = best(llama_get_logits_ith(main, -1));
    int n = 1, n_draft = 0;
    while (n < WANT) {
        // the head goes on from the last known state and token; its positions begin anew each time
        llama_token guess[1 + DRAFT] = {got[n - 1]};
        float s[N_EMBD];
        memcpy(s, h, sizeof s);
        llama_memory_clear(llama_get_memory(head), false);
        for (int k = 0; k < DRAFT; k++, n_draft++) {
            assert_int_equal(one(head, guess[k], k, s), 0);
            guess[k + 1] = best(llama_get_logits_ith(head, -1));
            memcpy(s, llama_get_embeddings_ith(head, -1), sizeof s);
        }
        assert_int_equal(llama_decode(main, llama_batch_get_one(guess, 1 + DRAFT)), 0);
        int k = 0;
        for (;; k++) {
            got[n++] = best(llama_get_logits_ith(main, k));
            memcpy(h, llama_get_embeddings_ith(main, k), sizeof h);
            if (k == DRAFT || guess[k + 1] != got[n - 1]) break;
        }
        assert_true(llama_memory_seq_rm(llama_get_memory(main), 0, 5 + n - 1, -1));
    }
    assert_memory_equal(want, got, WANT * sizeof *want);
    assert_true(n_draft > 0);
    llama_free(head);
    llama_free(main);
    llama_free(alone);
    llama_model_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused), cmocka_unit_test(test_bits), cmocka_unit_test(test_states),
        cmocka_unit_test(test_saved),   cmocka_unit_test(test_plan), cmocka_unit_test(test_speculate),
    };
    return cmocka_run_group_tests(tests, fill, maker_clean);
}
