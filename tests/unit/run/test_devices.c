// Models spread over two simulated devices, whose memory the host can't touch: the same bits as on the CPU alone, however many layers are
// placed, and through every way of loading.
#include "test.h"

#include "model_maker.h"

#define NV MAKER_N_VOCAB
#define N 40

static void logits_of(struct llama_model_params mp, const char *path, bool offload_kqv, float *out) {
    struct llama_model *m = llama_model_load_from_file(path, mp);
    assert_non_null(m);
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 256;
    cp.n_seq_max = 2;
    cp.n_threads = cp.n_threads_batch = 2;
    cp.offload_kqv = offload_kqv;
    struct llama_context *c = llama_init_from_model(m, cp);
    assert_non_null(c);
    struct llama_batch b = llama_batch_init(N, 0, 1);
    for (int p0 = 0, n; p0 < N; p0 += n) {
        n = p0 < 30 ? 30 : 1;
        b.n_tokens = n;
        for (int i = 0; i < n; i++) {
            b.token[i] = (7 + 37 * (p0 + i)) % NV;
            b.pos[i] = p0 + i;
            b.n_seq_id[i] = 1;
            b.seq_id[i][0] = 0;
            b.logits[i] = 1;
        }
        assert_int_equal(llama_decode(c, b), 0);
        for (int i = 0; i < n; i++) memcpy(out + (p0 + i) * NV, llama_get_logits_ith(c, i), NV * sizeof(float));
    }
    // the cache of devices moves, shifts and comes back from a state like any other
    llama_memory_t mem = llama_get_memory(c);
    const size_t ns = llama_state_get_size(c);
    uint8_t *state = malloc(ns);
    assert_int_equal(llama_state_get_data(c, state, ns), ns);
    assert_int_equal(llama_state_set_data(c, state, ns), ns);
    free(state);
    llama_memory_seq_cp(mem, 0, 1, -1, -1);
    b.n_tokens = 1;
    b.token[0] = 3;
    b.pos[0] = N;
    b.seq_id[0][0] = 1;
    assert_int_equal(llama_decode(c, b), 0);
    memcpy(out + N * NV, llama_get_logits_ith(c, 0), NV * sizeof(float));
    llama_batch_free(b);
    llama_free(c);
    llama_model_free(m);
}

static void check_model(const char *name, enum ggml_type type) {
    static char path[256];
    snprintf(path, sizeof path, "%s", maker_path(name, type));
    static float want[(N + 1) * NV], got[(N + 1) * NV];
    assert_true(llama_supports_gpu_offload());
    ggml_backend_dev_t none[1] = {NULL};
    struct llama_model_params mp = llama_model_default_params();
    mp.devices = none;
    logits_of(mp, path, true, want);
    mp.devices = NULL;
    const int layers[] = {0, 1, 2, 99};
    for (int k = 0; k < 4; k++) {
        mp.n_gpu_layers = layers[k];
        logits_of(mp, path, k != 2, got);
        if (memcmp(want, got, sizeof want)) print_error("%s with %d layers on devices differs\n", name, layers[k]);
        assert_memory_equal(got, want, sizeof want);
    }
    const enum llama_load_mode modes[] = {LLAMA_LOAD_MODE_NONE, LLAMA_LOAD_MODE_MLOCK, LLAMA_LOAD_MODE_MMAP_MLOCK,
                                          LLAMA_LOAD_MODE_DIRECT_IO};
    for (int k = 0; k < 4; k++) {
        mp.load_mode = modes[k];
        mp.n_gpu_layers = 2;
        logits_of(mp, path, true, got);
        assert_memory_equal(got, want, sizeof want);
    }
}

static void test_llama(void **s) {
    (void) s;
    check_model("llama", GGML_TYPE_Q8_0);
}
static void test_windows(void **s) {
    (void) s;
    check_model("gemma3", GGML_TYPE_F16);
}
static void test_moe(void **s) {
    (void) s;
    check_model("llama-moe", GGML_TYPE_Q4_K);
}
static void test_hybrid(void **s) {
    (void) s;
    check_model("falcon-h1", GGML_TYPE_F32);
}
static void test_latent(void **s) {
    (void) s;
    check_model("deepseek2", GGML_TYPE_F32);
}

// Products with weights of the model, on the CPU and elsewhere.
struct places {
    int cpu, elsewhere;
};

static bool note_place(struct ggml_tensor *t, bool ask, void *ud) {
    struct places *n = ud;
    if (ask) return t->op == GGML_OP_MUL_MAT && strstr(t->src[0]->name, "weight");
    if (strncmp(ggml_backend_buffer_name(t->buffer), "CPU", 3) == 0)
        n->cpu++;
    else
        n->elsewhere++;
    return true;
}

static struct places places(bool op_offload, int n_tokens, float *logits) {
    struct llama_model_params mp = llama_model_default_params();
    mp.n_gpu_layers = 0;
    struct llama_model *m = llama_model_load_from_file(maker_path("llama", GGML_TYPE_Q8_0), mp);
    assert_non_null(m);
    struct places n = {0, 0};
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 256;
    cp.op_offload = op_offload;
    cp.cb_eval = note_place;
    cp.cb_eval_user_data = &n;
    struct llama_context *c = llama_init_from_model(m, cp);
    assert_non_null(c);
    llama_token t[64];
    for (int i = 0; i < 64; i++) t[i] = (7 + 37 * i) % NV;
    assert_int_equal(llama_decode(c, llama_batch_get_one(t, n_tokens)), 0);
    memcpy(logits, llama_get_logits_ith(c, -1), NV * sizeof(float));
    llama_free(c);
    llama_model_free(m);
    return n;
}

// op_offload: devices take over large products of weights that stay in the CPU's memory, and small ones don't move.
static void test_op_offload(void **s) {
    (void) s;
    float on[NV], off[NV];
    const struct places with = places(true, 64, on), without = places(false, 64, off), small = places(true, 2, off);
    assert_true(with.elsewhere > 0);
    assert_true(without.elsewhere == 0 && without.cpu > 0);
    assert_true(small.elsewhere == 0 && small.cpu > 0);
    (void) places(false, 64, off);
    assert_memory_equal(on, off, sizeof on);
}

int main(void) {
    setenv("LAMINA_SIM", "2", 1);
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_llama),  cmocka_unit_test(test_windows),
                                       cmocka_unit_test(test_moe),    cmocka_unit_test(test_hybrid),
                                       cmocka_unit_test(test_latent), cmocka_unit_test(test_op_offload)};
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
