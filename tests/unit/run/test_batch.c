// Batches, outputs, memory calls and settings through the public interface: what is right, what is refused with a sentence, and that a
// refusal changes nothing.
#include "test.h"

#include "model_maker.h"

#define NV MAKER_N_VOCAB

static int32_t tok(int i) { return (7 + 37 * i) % NV; }

static struct llama_model *model(const char *name) {
    struct llama_model *m = llama_model_load_from_file(maker_path(name, GGML_TYPE_F32), llama_model_default_params());
    assert_non_null(m);
    return m;
}

static struct llama_context_params params(int n_seq, bool unified) {
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 512;
    cp.n_seq_max = (uint32_t) n_seq;
    cp.kv_unified = unified;
    cp.n_threads = cp.n_threads_batch = 2;
    return cp;
}

static void feed(struct llama_context *c, int seq, int p0, int p1, float *logits) {
    struct llama_batch b = llama_batch_init(p1 - p0, 0, 1);
    b.n_tokens = p1 - p0;
    for (int i = 0; i < b.n_tokens; i++) {
        b.token[i] = tok(p0 + i);
        b.pos[i] = p0 + i;
        b.n_seq_id[i] = 1;
        b.seq_id[i][0] = seq;
        b.logits[i] = i == b.n_tokens - 1;
    }
    assert_int_equal(llama_decode(c, b), 0);
    if (logits) memcpy(logits, llama_get_logits_ith(c, -1), NV * sizeof(float));
    llama_batch_free(b);
}

static void test_refused(void **s) {
    (void) s;
    struct llama_model *m = model("llama");
    struct llama_context *c = llama_init_from_model(m, params(2, false));
    float want[NV], got[NV];
    assert_null(llama_get_logits_ith(c, -1));
    assert_null(llama_get_logits(c));
    feed(c, 0, 0, 10, NULL);
    feed(c, 0, 10, 11, want);
    llama_memory_seq_rm(llama_get_memory(c), 0, 10, -1);
    struct llama_batch b = llama_batch_init(8, 0, 4);
#define RESET                                                                                                               \
    do {                                                                                                                    \
        b.n_tokens = 2;                                                                                                     \
        for (int i = 0; i < 2; i++) {                                                                                       \
            b.token[i] = 1 + i;                                                                                             \
            b.pos[i] = 10 + i;                                                                                              \
            b.n_seq_id[i] = 1;                                                                                              \
            b.seq_id[i][0] = 0;                                                                                             \
            b.logits[i] = 1;                                                                                                \
        }                                                                                                                   \
    } while (0)
#define REFUSED(change, part)                                                                                               \
    do {                                                                                                                    \
        RESET;                                                                                                              \
        change;                                                                                                             \
        assert_int_equal(llama_decode(c, b), -1);                                                                           \
        assert_error(part);                                                                                                 \
        assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(c), 0), 9);                                              \
    } while (0)
    REFUSED(b.n_tokens = 0, "0 tokens");
    REFUSED(b.n_tokens = -5, "-5 tokens");
    REFUSED(b.token[1] = NV, "entry 1 is token");
    REFUSED(b.token[0] = -1, "entry 0 is token -1");
    REFUSED(b.seq_id[1][0] = 2, "sequence id 2");
    REFUSED(b.seq_id[1][0] = -1, "sequence id -1");
    REFUSED(b.n_seq_id[1] = 0, "0 sequences");
    REFUSED(b.n_seq_id[1] = 64, "64 sequences");
    REFUSED((b.n_seq_id[1] = 2, b.seq_id[1][1] = 0), "twice");
    REFUSED(b.pos[1] = 10, "position 10");
    REFUSED(b.pos[0] = 9, "position 9");
    REFUSED(b.pos[1] = 13, "position 13");
    REFUSED(b.pos[0] = -3, "position -3");
    REFUSED(b.pos[0] = INT32_MAX, "position 2147483647");
    int32_t *ids = b.seq_id[1];
    REFUSED(b.seq_id[1] = NULL, "seq_id[1] is NULL");
    b.seq_id[1] = ids;
    RESET;
    struct llama_batch empty = b;
    empty.token = NULL;
    assert_int_equal(llama_decode(c, empty), -1);
    assert_error("neither");
    struct llama_batch big = llama_batch_init(600, 0, 1);
    big.n_tokens = 600;
    assert_int_equal(llama_decode(c, big), -1);
    assert_error("n_batch");
    llama_batch_free(big);
    feed(c, 0, 10, 11, got);
    assert_memory_equal(got, want, sizeof got);
    // outputs that aren't there
    assert_null(llama_get_logits_ith(c, 1));
    assert_null(llama_get_logits_ith(c, -2));
    assert_null(llama_get_logits_ith(c, 1 << 30));
    assert_null(llama_get_embeddings_ith(c, 0));
    assert_null(llama_get_embeddings_seq(c, 99));
    llama_batch_free(b);
    llama_free(c);
    llama_model_free(m);
}

static void test_params(void **s) {
    (void) s;
    struct llama_model *m = model("llama");
    struct llama_context_params cp;
#define NO_CONTEXT(change, part)                                                                                            \
    do {                                                                                                                    \
        cp = params(1, false);                                                                                              \
        change;                                                                                                             \
        assert_null(llama_init_from_model(m, cp));                                                                          \
        assert_error(part);                                                                                                 \
    } while (0)
    NO_CONTEXT(cp.n_batch = 0, "n_batch");
    NO_CONTEXT(cp.n_ubatch = 0, "n_ubatch");
    NO_CONTEXT(cp.n_seq_max = 0, "n_seq_max");
    NO_CONTEXT(cp.n_seq_max = 100000, "n_seq_max");
    NO_CONTEXT(cp.n_threads = 0, "n_threads");
    NO_CONTEXT(cp.type_k = (enum ggml_type) 999, "type_k");
    NO_CONTEXT(cp.type_v = (enum ggml_type) 5, "type_v");
    NO_CONTEXT(cp.rope_freq_base = -1, "rope_freq_base");
    NO_CONTEXT(cp.rope_freq_scale = NAN, "rope_freq_scale");
    NO_CONTEXT(cp.yarn_ext_factor = NAN, "yarn_ext_factor");
    NO_CONTEXT(cp.yarn_beta_slow = NAN, "yarn_beta_slow");
    NO_CONTEXT(cp.rope_scaling_type = (enum llama_rope_scaling_type) 77, "rope_scaling_type is 77");
    NO_CONTEXT(cp.pooling_type = (enum llama_pooling_type) 77, "pooling_type is 77");
    NO_CONTEXT(cp.attention_type = (enum llama_attention_type) 77, "attention_type is 77");
    NO_CONTEXT(cp.flash_attn_type = (enum llama_flash_attn_type) - 7, "flash_attn_type is -7");
    assert_null(llama_init_from_model(NULL, params(1, false)));
    // what a program asks when it did not look whether there is a context
    assert_int_equal(llama_n_ctx(NULL), 0);
    assert_int_equal(llama_n_batch(NULL), 0);
    assert_int_equal(llama_n_threads(NULL), 0);
    assert_null(llama_get_model(NULL));
    assert_false(llama_get_causal_attn(NULL));
    llama_set_n_threads(NULL, 1, 1);
    llama_set_embeddings(NULL, true);
    llama_set_causal_attn(NULL, true);
    llama_set_abort_callback(NULL, NULL, NULL);
    llama_attach_threadpool(NULL, NULL, NULL);
    llama_detach_threadpool(NULL);
    cp = params(3, false);
    cp.n_ctx = 700;
    struct llama_context *c = llama_init_from_model(m, cp);
    assert_int_equal(llama_n_ctx_seq(c), 256);
    assert_int_equal(llama_n_ctx(c), 768);
    llama_free(c);
    cp.kv_unified = true;
    c = llama_init_from_model(m, cp);
    assert_int_equal(llama_n_ctx_seq(c), 768);
    assert_int_equal(llama_n_batch(c), 768);
    assert_int_equal(llama_n_ubatch(c), 512);
    llama_free(c);
    cp.n_ctx = 0;
    cp.n_ubatch = 5000;
    c = llama_init_from_model(m, cp);
    assert_int_equal(llama_n_ctx(c), 2048);
    assert_int_equal(llama_n_ubatch(c), 2048);
    llama_set_n_threads(c, 3, 4);
    assert_int_equal(llama_n_threads(c), 3);
    assert_int_equal(llama_n_threads_batch(c), 4);
    llama_free(c);
    llama_model_free(m);
}

// n_ctx positions fit, one more doesn't; a batch that doesn't fit leaves nothing behind.
static void test_full(void **s) {
    (void) s;
    struct llama_model *m = model("llama");
    struct llama_context_params cp = params(1, false);
    cp.n_ctx = 256;
    struct llama_context *c = llama_init_from_model(m, cp);
    feed(c, 0, 0, 250, NULL);
    int32_t tokens[100] = {0};
    assert_int_equal(llama_decode(c, llama_batch_get_one(tokens, 100)), 1);
    assert_error("no room for 100 tokens");
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(c), 0), 249);
    feed(c, 0, 250, 256, NULL);
    // the usual context shift: keep 4, drop half of the rest, move what follows
    llama_memory_t mem = llama_get_memory(c);
    assert_true(llama_memory_can_shift(mem));
    assert_true(llama_memory_seq_rm(mem, 0, 4, 130));
    llama_memory_seq_add(mem, 0, 130, -1, -126);
    assert_int_equal(llama_memory_seq_pos_max(mem, 0), 129);
    assert_int_equal(llama_memory_seq_pos_min(mem, 0), 0);
    feed(c, 0, 130, 131, NULL);
    llama_free(c);
    llama_model_free(m);
}

// Sequences with shares of their own: one that is full leaves the others theirs.
static void test_shares(void **s) {
    (void) s;
    struct llama_model *m = model("llama");
    struct llama_context_params cp = params(3, false);
    cp.n_ctx = 768;
    struct llama_context *c = llama_init_from_model(m, cp);
    assert_int_equal(llama_n_ctx_seq(c), 256);
    struct llama_batch b = llama_batch_init(1, 0, 1);
    int last = 0, r = 0;
    for (int seq = 0; seq < 2; seq++) {
        feed(c, seq, 0, 200, NULL);
        feed(c, seq, 200, 256, NULL);
    }
    // the 257th position is refused, though other sequences have room and blocks are free
    for (last = 256; r == 0 && last < 1000; last++) {
        b.n_tokens = 1;
        b.token[0] = 1;
        b.pos[0] = last;
        b.n_seq_id[0] = 1;
        b.seq_id[0][0] = 0;
        b.logits[0] = 1;
        r = llama_decode(c, b);
    }
    assert_int_equal(r, 1);
    assert_int_equal(last, 257);
    assert_error("256 per sequence");
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(c), 0), 255);
    // what is cut off makes room, and no more
    llama_memory_seq_rm(llama_get_memory(c), 0, 0, 10);
    b.pos[0] = 256;
    assert_int_equal(llama_decode(c, b), 0);
    feed(c, 0, 257, 266, NULL);
    b.pos[0] = 266;
    assert_int_equal(llama_decode(c, b), 1);
    feed(c, 2, 0, 200, NULL);
    feed(c, 2, 200, 256, NULL);
    llama_batch_free(b);
    llama_free(c);
    llama_model_free(m);
}

// Keys moved by seq_add are those of a text that stood there from the start, up to the rounding of one more rotation.
static void shift(const char *name, enum ggml_type type, double tolerance) {
    struct llama_model *m = model(name);
    assert_non_null(m);
    struct llama_context_params cp = params(2, true);
    cp.type_k = cp.type_v = type;
    struct llama_context *c = llama_init_from_model(m, cp);
    assert_non_null(c);
    llama_memory_t mem = llama_get_memory(c);
    struct llama_batch b = llama_batch_init(64, 0, 1);
    float want[NV], got[NV];
    for (int seq = 0; seq < 2; seq++) {
        const int off = seq ? 0 : 37;
        b.n_tokens = 40;
        for (int i = 0; i < 40; i++) {
            b.token[i] = tok(i);
            b.pos[i] = i + off;
            b.n_seq_id[i] = 1;
            b.seq_id[i][0] = seq;
            b.logits[i] = i == 39;
        }
        assert_int_equal(llama_decode(c, b), 0);
    }
    llama_memory_seq_add(mem, 0, 0, -1, -30);
    llama_memory_seq_add(mem, 0, 0, -1, -7);
    assert_int_equal(llama_memory_seq_pos_min(mem, 0), 0);
    for (int seq = 0; seq < 2; seq++) {
        b.n_tokens = 1;
        b.token[0] = tok(40);
        b.pos[0] = 40;
        b.seq_id[0][0] = seq;
        b.logits[0] = 1;
        assert_int_equal(llama_decode(c, b), 0);
        memcpy(seq ? want : got, llama_get_logits_ith(c, 0), sizeof got);
    }
    double d = 0, n = 0;
    for (int i = 0; i < NV; i++) {
        d += (double) (got[i] - want[i]) * (double) (got[i] - want[i]);
        n += (double) want[i] * (double) want[i];
    }
    if (!(d / n < tolerance)) print_error("%s, %s: off by %g\n", name, ggml_type_name(type), d / n);
    assert_true(d / n < tolerance);
    llama_batch_free(b);
    llama_free(c);
    llama_model_free(m);
}

static void test_shift(void **s) {
    (void) s;
    // sparse attention chooses positions by keys of its own, which must move along
    const char *names[] = {"llama", "gemma3", "deepseek2", "deepseek32", "glm-dsa", "minimax-m3"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        shift(names[i], GGML_TYPE_F32, 1e-9);
        shift(names[i], GGML_TYPE_Q8_0,
              1e-3);  // rows of quantized caches are turned, too, and are read and written once more
        if (i < 3) shift(names[i], GGML_TYPE_Q4_0, 1e-1);  // where a choice doesn't hang on it
    }
}

// Part of a sequence copied, then continued: the bits of a sequence decoded alone. Unified or not.
static void test_copy(void **s) {
    (void) s;
    struct llama_model *m = model("llama");
    for (int unified = 0; unified < 2; unified++) {
        struct llama_context *c = llama_init_from_model(m, params(3, unified));
        llama_memory_t mem = llama_get_memory(c);
        float want[NV], got[NV];
        feed(c, 2, 0, 50, NULL);
        feed(c, 2, 50, 52, want);
        feed(c, 0, 0, 100, NULL);
        llama_memory_seq_cp(mem, 0, 1, 0, 50);
        assert_int_equal(llama_memory_seq_pos_max(mem, 1), 49);
        feed(c, 1, 50, 52, got);
        assert_memory_equal(got, want, sizeof got);
        llama_memory_seq_cp(mem, 0, 0, 0, 10);
        llama_memory_seq_cp(mem, 0, 9999, -1, -1);
        assert_error("9999");
        llama_memory_seq_cp(mem, -1, 0, -1, -1);
        assert_error("-1");
        assert_int_equal(llama_memory_seq_pos_max(mem, 0), 99);
        llama_memory_seq_keep(mem, 1);
        assert_int_equal(llama_memory_seq_pos_max(mem, 0), -1);
        assert_int_equal(llama_memory_seq_pos_max(mem, 1), 51);
        llama_free(c);
    }
    llama_model_free(m);
}

// A prefix of several sequences in one batch, which then part ways within the same batch.
static void test_shared_batch(void **s) {
    (void) s;
    const char *names[] = {"llama", "gemma3", "falcon-h1"};
    for (int k = 0; k < 3; k++) {
        struct llama_model *m = model(names[k]);
        struct llama_context_params cp = params(3, true);
        cp.swa_full = false;
        struct llama_context *c = llama_init_from_model(m, cp);
        struct llama_batch b = llama_batch_init(200, 0, 3);
        float alone[3][NV];
        for (int q = 0; q < 3; q++) {
            llama_memory_clear(llama_get_memory(c), true);
            b.n_tokens = 95;
            for (int i = 0; i < 95; i++) {
                b.token[i] = i < 90 ? tok(i) : tok(i + 17 * (q + 1));
                b.pos[i] = i;
                b.n_seq_id[i] = 1;
                b.seq_id[i][0] = q;
                b.logits[i] = i == 94;
            }
            assert_int_equal(llama_decode(c, b), 0);
            memcpy(alone[q], llama_get_logits_ith(c, -1), sizeof alone[q]);
        }
        llama_memory_clear(llama_get_memory(c), true);
        b.n_tokens = 0;
        for (int i = 0; i < 90; i++) {
            const int n = b.n_tokens++;
            b.token[n] = tok(i);
            b.pos[n] = i;
            b.n_seq_id[n] = 3;
            for (int q = 0; q < 3; q++) b.seq_id[n][q] = q;
            b.logits[n] = 0;
        }
        for (int i = 90; i < 95; i++)
            for (int q = 0; q < 3; q++) {
                const int n = b.n_tokens++;
                b.token[n] = tok(i + 17 * (q + 1));
                b.pos[n] = i;
                b.n_seq_id[n] = 1;
                b.seq_id[n][0] = q;
                b.logits[n] = i == 94;
            }
        assert_int_equal(llama_decode(c, b), 0);
        const float *all = llama_get_logits(c);
        for (int q = 0; q < 3; q++) {
            assert_memory_equal(llama_get_logits_ith(c, 90 + 12 + q), alone[q], sizeof alone[q]);
            assert_memory_equal(llama_get_logits_ith(c, q - 3), alone[q], sizeof alone[q]);
            assert_memory_equal(all + q * NV, alone[q], sizeof alone[q]);
        }
        llama_batch_free(b);
        llama_free(c);
        llama_model_free(m);
    }
}

// Recurrent states: cutting the tail off is refused without damage, or possible where snapshots are kept.
static void test_recurrent(void **s) {
    (void) s;
    struct llama_model *m = model("mamba2");
    assert_true(llama_model_is_recurrent(m));
    struct llama_context *c = llama_init_from_model(m, params(2, true));
    float want[NV], got[NV];
    llama_memory_t mem = llama_get_memory(c);
    feed(c, 0, 0, 20, NULL);
    assert_false(llama_memory_seq_rm(mem, 0, 15, -1));
    assert_false(llama_memory_can_shift(mem));
    assert_int_equal(llama_memory_seq_pos_max(mem, 0), 19);
    llama_memory_seq_cp(mem, 0, 1, -1, -1);
    feed(c, 0, 20, 22, want);
    feed(c, 1, 20, 22, got);
    assert_memory_equal(got, want, sizeof got);
    assert_true(llama_memory_seq_rm(mem, 0, -1, -1));
    assert_int_equal(llama_memory_seq_pos_max(mem, 0), -1);
    llama_free(c);
    struct llama_context_params cp = params(2, true);
    cp.n_rs_seq = 4;
    c = llama_init_from_model(m, cp);
    mem = llama_get_memory(c);
    assert_int_equal(llama_n_rs_seq(c), 4);
    feed(c, 0, 0, 20, NULL);
    for (int i = 20; i < 23; i++) feed(c, 0, i, i + 1, i == 21 ? want : NULL);
    assert_true(llama_memory_seq_rm(mem, 0, 21, -1));
    assert_int_equal(llama_memory_seq_pos_max(mem, 0), 20);
    feed(c, 0, 21, 22, got);
    assert_memory_equal(got, want, sizeof got);
    assert_false(llama_memory_seq_rm(mem, 0, 3, -1));
    assert_true(llama_memory_seq_rm(mem, 0, 19, -1));  // the prompt's last states are kept too
    llama_free(c);
    llama_model_free(m);
}

// Windowed layers with a small cache: a tail is cut only if what the next token sees is still there.
static void test_window(void **s) {
    (void) s;
    struct llama_model *m = model("gemma3");  // a window of 70
    struct llama_context_params cp = params(1, true);
    cp.swa_full = false;
    struct llama_context *c = llama_init_from_model(m, cp);
    llama_memory_t mem = llama_get_memory(c);
    feed(c, 0, 0, 60, NULL);
    float want[NV], got[NV];
    feed(c, 0, 60, 61, want);
    assert_true(llama_memory_seq_rm(mem, 0, 60, -1));
    feed(c, 0, 60, 61, got);
    assert_memory_equal(got, want, sizeof got);
    for (int i = 61; i < 300; i++) feed(c, 0, i, i + 1, NULL);
    const size_t size = llama_state_seq_get_size(c, 0);
    assert_false(llama_memory_seq_rm(mem, 0, 40, -1));
    assert_int_equal(llama_memory_seq_pos_max(mem, 0), 299);
    for (int i = 0; i < 20; i++) {
        assert_true(llama_memory_seq_rm(mem, 0, 298, -1));
        assert_int_equal(llama_memory_seq_pos_max(mem, 0), 297);
        feed(c, 0, 298, 300, NULL);
    }
    assert_int_equal(llama_state_seq_get_size(c, 0), size);
    llama_free(c);
    llama_model_free(m);
}

static bool always(void *ud) { return (*(int *) ud)-- <= 0; }

static void test_abort(void **s) {
    (void) s;
    struct llama_model *m = model("llama");
    struct llama_context_params cp = params(1, true);
    cp.n_ubatch = 32;
    struct llama_context *c = llama_init_from_model(m, cp);
    feed(c, 0, 0, 10, NULL);
    float want[NV], got[NV];
    feed(c, 0, 10, 40, want);
    llama_memory_seq_rm(llama_get_memory(c), 0, 10, -1);
    int left = 0;
    llama_set_abort_callback(c, always, &left);
    int32_t t[30];
    for (int i = 0; i < 30; i++) t[i] = tok(10 + i);
    assert_int_equal(llama_decode(c, llama_batch_get_one(t, 30)), 2);
    llama_set_abort_callback(c, NULL, NULL);
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(c), 0), 9);
    feed(c, 0, 10, 40, got);
    assert_memory_equal(got, want, sizeof got);
    llama_free(c);
    llama_model_free(m);
}

// Stopped anywhere, all kinds of memory say the same of where a sequence ends, and it goes on from there as if nothing had been.
static void test_abort_anywhere(void **s) {
    (void) s;
    static const char *const names[] = {"llama", "mamba2", "falcon-h1"};
    for (int n = 0; n < 3; n++) {
        struct llama_model *m = model(names[n]);
        struct llama_context_params cp = params(1, true);
        cp.n_ubatch = 8;
        struct llama_context *c = llama_init_from_model(m, cp);
        llama_memory_t mem = llama_get_memory(c);
        float want[NV], got[NV];
        int32_t t[40], stopped = 0, partial = 0;
        for (int i = 0; i < 40; i++) t[i] = tok(i);
        feed(c, 0, 0, 40, want);
        for (int k = 0, r = 2; r == 2; k += 1 + k / 8) {
            int left = k;
            llama_memory_clear(mem, false);
            llama_set_abort_callback(c, always, &left);
            r = llama_decode(c, llama_batch_get_one(t, 40));
            llama_set_abort_callback(c, NULL, NULL);
            assert_true(r == 0 || r == 2);
            const int p = llama_memory_seq_pos_max(mem, 0) + 1;
            stopped += r == 2;
            partial += r == 2 && p > 0;
            assert_int_equal(p % 8, 0);
            if (r != 2) continue;
            feed(c, 0, p, 40, got);
            assert_memory_equal(got, want, sizeof got);
        }
        assert_true(stopped > 10 && (n > 0 || partial > 3));
        llama_free(c);
        llama_model_free(m);
    }
}

// Embeddings: both kinds of output for a model of language, pooled ones, and an encoder's.
static void test_embeddings(void **s) {
    (void) s;
    struct llama_model *m = model("llama");
    struct llama_context_params cp = params(2, true);
    cp.embeddings = true;
    struct llama_context *c = llama_init_from_model(m, cp);
    int32_t t[12];
    for (int i = 0; i < 12; i++) t[i] = tok(i);
    assert_int_equal(llama_decode(c, llama_batch_get_one(t, 12)), 0);
    assert_non_null(llama_get_logits_ith(c, -1));
    assert_non_null(llama_get_embeddings_ith(c, -1));
    assert_non_null(llama_get_embeddings_ith(c, 3));
    llama_free(c);
    cp.pooling_type = LLAMA_POOLING_TYPE_MEAN;
    c = llama_init_from_model(m, cp);
    assert_int_equal(llama_decode(c, llama_batch_get_one(t, 12)), 0);
    assert_null(llama_get_embeddings_ith(c, 0));
    assert_non_null(llama_get_embeddings_seq(c, 0));
    assert_null(llama_get_embeddings_seq(c, 1));
    llama_free(c);
    llama_model_free(m);
    m = model("bert");
    assert_true(llama_model_has_encoder(m));
    cp = params(4, true);
    cp.pooling_type = LLAMA_POOLING_TYPE_MEAN;
    c = llama_init_from_model(m, cp);
    assert_null(llama_get_memory(c));
    const int ne = llama_model_n_embd_out(m);
    float *want = malloc((size_t) ne * sizeof(float));
    assert_int_equal(llama_encode(c, llama_batch_get_one(t, 12)), 0);
    memcpy(want, llama_get_embeddings_seq(c, 0), (size_t) ne * sizeof(float));
    // among others, and through decode: the same bits
    struct llama_batch b = llama_batch_init(100, 0, 1);
    b.n_tokens = 0;
    for (int q = 0; q < 3; q++)
        for (int i = 0; i < (q == 1 ? 12 : 33 + q); i++) {
            const int k = b.n_tokens++;
            b.token[k] = q == 1 ? t[i] : tok(5 * i + q);
            b.pos[k] = i;
            b.n_seq_id[k] = 1;
            b.seq_id[k][0] = q;
            b.logits[k] = 1;
        }
    assert_int_equal(llama_decode(c, b), 0);
    assert_memory_equal(llama_get_embeddings_seq(c, 1), want, (size_t) ne * sizeof(float));
    llama_batch_free(b);
    free(want);
    llama_free(c);
    llama_model_free(m);
}

// A token has one position under M-RoPE too: what lies behind it is not the library's to read.
static void batch_ext(const char *arch) {
    struct llama_model *m = model(arch);
    struct llama_context *c = llama_init_from_model(m, params(2, true));
    float want[NV];
    feed(c, 0, 0, 9, want);
    llama_memory_clear(llama_get_memory(c), true);
    struct llama_batch_ext *b = llama_batch_ext_init(c);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(llama_batch_ext_add_token(b, 0, tok(i)), i);
        const llama_pos p[4] = {i, 77, 5, 1000};
        assert_true(llama_batch_ext_set_pos(b, i, p));
    }
    assert_true(llama_batch_ext_add_seq(b, 3, 1) && llama_batch_ext_set_output_logits(b, 8, true));
    assert_int_equal(llama_batch_ext_add_token(b, 7, 1), -1);
    assert_false(llama_batch_ext_set_output_logits(b, 9, true));
    assert_int_equal(llama_process(c, LLAMA_PROCESS_TYPE_DECODE, b), 0);
    assert_memory_equal(llama_get_logits_ith(c, 8), want, sizeof want);
    llama_batch_ext_clear(b);
    assert_int_equal(llama_process(c, LLAMA_PROCESS_TYPE_DECODE, b), -1);
    // an embedding may lie in several rows, which must make up the entry: none is left out
    const int n_embd = llama_model_n_embd_inp(m);
    float *row = calloc((size_t) n_embd * 2, sizeof(float));
    llama_batch_ext_clear(b);
    assert_int_equal(llama_batch_ext_add_embd(b, 0, (struct llama_embd){row, 2, (size_t) n_embd}), -1);
    assert_int_equal(llama_batch_ext_add_embd(b, 0, (struct llama_embd){row, 1, (size_t) n_embd - 1}), -1);
    assert_int_equal(llama_batch_ext_add_embd(b, 0, (struct llama_embd){row, 1, (size_t) n_embd}), 0);
    assert_int_equal(llama_batch_ext_add_embd(b, 0, (struct llama_embd){row, 2, (size_t) n_embd / 2}), 1);
    free(row);
    llama_batch_ext_free(b);
    llama_free(c);
    llama_model_free(m);
}

static void test_batch_ext(void **s) {
    (void) s;
    batch_ext("llama");
    batch_ext("qwen2vl");
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_params),         cmocka_unit_test(test_full),
        cmocka_unit_test(test_shift),        cmocka_unit_test(test_shares),         cmocka_unit_test(test_copy),
        cmocka_unit_test(test_shared_batch), cmocka_unit_test(test_recurrent),      cmocka_unit_test(test_window),
        cmocka_unit_test(test_abort),        cmocka_unit_test(test_abort_anywhere), cmocka_unit_test(test_embeddings),
        cmocka_unit_test(test_batch_ext),
    };
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
