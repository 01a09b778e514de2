// States: saved, restored, continued with the same bits; everything foreign, damaged or cut off refused with nothing changed.
#include "test.h"

#include "model_maker.h"

#define NV MAKER_N_VOCAB

static int32_t tok(int i) { return (7 + 37 * i) % NV; }

static struct llama_context *context(struct llama_model *m, int n_ctx, int n_seq, enum ggml_type type) {
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = (uint32_t) n_ctx;
    cp.n_seq_max = (uint32_t) n_seq;
    cp.kv_unified = true;
    cp.type_k = cp.type_v = type;
    cp.n_threads = cp.n_threads_batch = 2;
    cp.swa_full = false;
    struct llama_context *c = llama_init_from_model(m, cp);
    assert_non_null(c);
    return c;
}

// Decodes tokens p0 .. p1 of a text (salt) in a sequence; the last one's logits.
static void feed(struct llama_context *c, int seq, int p0, int p1, int salt, float *logits) {
    struct llama_batch b = llama_batch_init(p1 - p0, 0, 1);
    b.n_tokens = p1 - p0;
    for (int i = 0; i < b.n_tokens; i++) {
        b.token[i] = tok(p0 + i + salt);
        b.pos[i] = p0 + i;
        b.n_seq_id[i] = 1;
        b.seq_id[i][0] = seq;
        b.logits[i] = i == b.n_tokens - 1;
    }
    assert_int_equal(llama_decode(c, b), 0);
    if (logits) memcpy(logits, llama_get_logits_ith(c, -1), NV * sizeof(float));
    llama_batch_free(b);
}

static void check_kind(const char *name, enum ggml_type type) {
    struct llama_model *m = llama_model_load_from_file(maker_path(name, GGML_TYPE_F32), llama_model_default_params());
    assert_non_null(m);
    struct llama_context *c = context(m, 512, 3, type);
    float want_a[NV], want_b[NV], got[NV];
    feed(c, 0, 0, 90, 0, NULL);
    const size_t n = llama_state_get_size(c);
    uint8_t *state = malloc(n);
    assert_int_equal(llama_state_get_data(c, state, n), n);
    assert_int_equal(llama_state_get_data(c, state, n - 1), 0);
    assert_int_equal(llama_state_get_data(c, state, n), n);
    feed(c, 0, 90, 95, 0, want_a);
    // another text in its place, then back
    llama_memory_clear(llama_get_memory(c), true);
    feed(c, 0, 0, 35, 500, NULL);
    const size_t nb = llama_state_get_size(c);
    uint8_t *other = malloc(nb);
    assert_int_equal(llama_state_get_data(c, other, nb), nb);
    feed(c, 0, 35, 36, 500, want_b);
    assert_int_equal(llama_state_set_data(c, state, n), n);
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(c), 0), 89);
    feed(c, 0, 90, 95, 0, got);
    assert_memory_equal(got, want_a, sizeof got);
    assert_int_equal(llama_state_set_data(c, other, nb), nb);
    feed(c, 0, 35, 36, 500, got);
    assert_memory_equal(got, want_b, sizeof got);
    // in a fresh context, of another size
    struct llama_context *d = context(m, 256, 3, type);
    assert_int_equal(llama_state_set_data(d, state, n), n);
    feed(d, 0, 90, 95, 0, got);
    assert_memory_equal(got, want_a, sizeof got);
    llama_free(d);
    // one sequence, to another id
    const size_t ns = llama_state_seq_get_size(c, 0);
    uint8_t *seq = malloc(ns);
    assert_int_equal(llama_state_set_data(c, state, n), n);
    assert_int_equal(
        llama_state_seq_get_size(c, 0),
        llama_state_seq_get_data(c, seq = realloc(seq, llama_state_seq_get_size(c, 0)), llama_state_seq_get_size(c, 0), 0));
    const size_t nq = llama_state_seq_get_size(c, 0);
    feed(c, 2, 0, 20, 900, NULL);
    assert_int_equal(llama_state_seq_set_data(c, seq, nq, 2), nq);
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(c), 2), 89);
    feed(c, 2, 90, 95, 0, got);
    assert_memory_equal(got, want_a, sizeof got);
    free(seq);
    free(state);
    free(other);
    llama_free(c);
    llama_model_free(m);
}

static void test_full(void **s) {
    (void) s;
    check_kind("llama", GGML_TYPE_F16);
    check_kind("llama", GGML_TYPE_Q8_0);
}
static void test_window(void **s) {
    (void) s;
    check_kind("gemma3", GGML_TYPE_F16);
}
static void test_recurrent(void **s) {
    (void) s;
    check_kind("mamba2", GGML_TYPE_F16);
}
static void test_hybrid(void **s) {
    (void) s;
    check_kind("falcon-h1", GGML_TYPE_F16);
}

// Every byte flipped in turn (a sample of them), every length cut: refused, and the context goes on as if nothing had happened.
static void test_damage(void **s) {
    (void) s;
    struct llama_model *m = llama_model_load_from_file(maker_path("llama", GGML_TYPE_F32), llama_model_default_params());
    struct llama_context *c = context(m, 256, 2, GGML_TYPE_F16), *d = context(m, 256, 2, GGML_TYPE_F16);
    feed(c, 0, 0, 30, 0, NULL);
    const size_t n = llama_state_get_size(c);
    uint8_t *state = malloc(n);
    assert_int_equal(llama_state_get_data(c, state, n), n);
    feed(d, 0, 0, 12, 300, NULL);
    float want[NV], got[NV];
    feed(d, 0, 12, 13, 300, want);
    llama_memory_seq_rm(llama_get_memory(d), 0, 12, -1);
    for (size_t i = 0; i < n; i += i < 200 ? 1 : 997) {
        state[i] ^= 0x40;
        assert_int_equal(llama_state_set_data(d, state, n), 0);
        state[i] ^= 0x40;
    }
    for (size_t k = 0; k < n; k += k < 100 ? 1 : 1999) assert_int_equal(llama_state_set_data(d, state, k), 0);
    assert_int_equal(llama_state_seq_set_data(d, state, n, 0), 0);  // a context's state is no sequence's
    assert_error("context's state where a sequence's is wanted");
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(d), 0), 11);
    feed(d, 0, 12, 13, 300, got);
    assert_memory_equal(got, want, sizeof got);
    // other kinds of context and of model
    struct llama_context *q = context(m, 256, 2, GGML_TYPE_Q8_0);
    assert_int_equal(llama_state_set_data(q, state, n), 0);
    assert_error("another kind");
    llama_free(q);
    struct llama_model *m2 = llama_model_load_from_file(maker_path("gpt2", GGML_TYPE_F32), llama_model_default_params());
    struct llama_context *e = context(m2, 256, 2, GGML_TYPE_F16);
    assert_int_equal(llama_state_set_data(e, state, n), 0);
    assert_error("another model");
    llama_free(e);
    llama_model_free(m2);
    free(state);
    llama_free(c);
    llama_free(d);
    llama_model_free(m);
}

static void flip(const char *path, size_t at) {
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, (long) at, SEEK_SET);
    const int c = fgetc(f);
    fseek(f, (long) at, SEEK_SET);
    fputc(c ^ 0x40, f);
    fclose(f);
}

static void test_files(void **s) {
    (void) s;
    struct llama_model *m = llama_model_load_from_file(maker_path("llama", GGML_TYPE_F32), llama_model_default_params());
    struct llama_context *c = context(m, 256, 2, GGML_TYPE_F16), *d = context(m, 256, 2, GGML_TYPE_F16);
    char path[128];
    snprintf(path, sizeof path, "/tmp/lamina-test-%d.state", (int) getpid());
    int32_t tokens[40], back[64];
    for (int i = 0; i < 40; i++) tokens[i] = tok(i);
    feed(c, 0, 0, 40, 0, NULL);
    assert_true(llama_state_save_file(c, path, tokens, 40));
    size_t n = 0;
    assert_false(llama_state_load_file(d, path, back, 39, &n));
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(d), 0), -1);
    assert_true(llama_state_load_file(d, path, back, 64, &n));
    assert_int_equal(n, 40);
    assert_memory_equal(back, tokens, sizeof tokens);
    float a[NV], b[NV];
    feed(c, 0, 40, 41, 0, a);
    feed(d, 0, 40, 41, 0, b);
    assert_memory_equal(a, b, sizeof a);
    assert_true(llama_state_seq_save_file(c, path, 0, tokens, 40) > 0);
    n = 0;
    assert_true(llama_state_seq_load_file(d, path, 1, NULL, 0, &n) > 0);  // only how many tokens there are
    assert_int_equal(n, 40);
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(d), 1), -1);
    assert_int_equal(llama_state_seq_load_file(d, path, 1, back, 39, &n), 0);
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(d), 1), -1);
    assert_true(llama_state_seq_load_file(d, path, 1, back, 40, &n) > 0);
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(d), 1), 40);
    // what a server appends is the server's: it is told where its part begins, and damage before that is still seen
    const size_t end = llama_state_seq_save_file(c, path, 0, tokens, 40);
    FILE *f = fopen(path, "ab");
    assert_int_equal(fwrite(tokens, 4, 25, f), 25);
    fclose(f);
    assert_int_equal(llama_state_seq_load_file(d, path, 1, back, 40, &n), end);
    const size_t at[] = {0, 4, 8, 12, 12 + 160 + 24, 12 + 160 + 29, end / 2, end - 8, end - 1};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        flip(path, at[i]);
        assert_int_equal(llama_state_seq_load_file(d, path, 1, back, 40, &n), 0);
        flip(path, at[i]);
    }
    assert_int_equal(llama_state_seq_load_file(d, path, 1, back, 40, &n), end);
    assert_int_equal(truncate(path, (off_t) end - 1), 0);
    assert_int_equal(llama_state_seq_load_file(d, path, 1, back, 40, &n), 0);
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(d), 1), 40);
    assert_true(llama_state_seq_save_file(c, path, 0, tokens, 40) > 0);
    assert_false(llama_state_load_file(d, path, back, 64, &n));  // another kind of file
    assert_false(llama_state_load_file(d, "/nonexistent/x", back, 64, &n));
    assert_false(llama_state_save_file(c, "/nonexistent/x", tokens, 40));
    // an empty context has a state too
    llama_memory_clear(llama_get_memory(c), true);
    assert_true(llama_state_save_file(c, path, NULL, 0));
    assert_true(llama_state_load_file(d, path, back, 64, &n));
    assert_int_equal(n, 0);
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(d), 0), -1);
    unlink(path);
    llama_free(c);
    llama_free(d);
    llama_model_free(m);
}

// What a server keeps to go back to: part of a state set beside what cutting leaves. Models without such parts give the whole, which a
// fresh context continues from.
static void test_partial(void **s) {
    (void) s;
    static const struct {
        const char *name;
        bool whole;
    } models[] = {{"llama", true}, {"mamba2", true}, {"gemma3", false}, {"falcon-h1", false}};
    for (int i = 0; i < 4; i++) {
        struct llama_model *m =
            llama_model_load_from_file(maker_path(models[i].name, GGML_TYPE_F32), llama_model_default_params());
        struct llama_context *c = context(m, 256, 2, GGML_TYPE_F16), *d = context(m, 256, 2, GGML_TYPE_F16);
        const llama_state_seq_flags part = LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;
        float want[NV], got[NV];
        feed(c, 0, 0, 90, 0, NULL);
        const size_t n = llama_state_seq_get_size_ext(c, 0, part);
        assert_true(models[i].whole ? n == llama_state_seq_get_size(c, 0) : n < llama_state_seq_get_size(c, 0));
        uint8_t *state = malloc(n);
        assert_int_equal(llama_state_seq_get_data_ext(c, state, n, 0, part), n);
        feed(c, 0, 90, 97, 0, want);
        assert_int_equal(llama_state_seq_set_data_ext(c, state, n, 0, part), n);
        assert_true(llama_memory_seq_rm(llama_get_memory(c), 0, 90, -1));
        feed(c, 0, 90, 97, 0, got);
        assert_memory_equal(got, want, sizeof got);
        assert_int_equal(llama_state_seq_set_data_ext(d, state, n, 1, part), n);
        assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(d), 1), models[i].whole ? 89 : -1);
        if (models[i].whole) {
            feed(d, 1, 90, 97, 0, got);
            assert_memory_equal(got, want, sizeof got);
        }
        free(state);
        llama_free(c);
        llama_free(d);
        llama_model_free(m);
    }
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_full),      cmocka_unit_test(test_window),
                                       cmocka_unit_test(test_recurrent), cmocka_unit_test(test_hybrid),
                                       cmocka_unit_test(test_damage),    cmocka_unit_test(test_files),
                                       cmocka_unit_test(test_partial)};
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
