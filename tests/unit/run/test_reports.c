// What users of comparable programs ran into (reports.md), with the inputs of those reports, as far as it concerns sampling, the cache,
// states and callers of the C interface. The number in a test's name is the report's. Others: 57 is sample/test_sample.c's
// test_odd_logits, 181 compat/bindings.py's struct_layouts, 182 chat/test_chat.c's test_buffer.
#include "support/batch.h"
#include "test.h"

#include "model_maker.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define NV MAKER_N_VOCAB
#define ROW (NV * sizeof(float))

static struct llama_model *model(const char *name) {
    struct llama_model *m = llama_model_load_from_file(maker_path(name, GGML_TYPE_F32), llama_model_default_params());
    assert_non_null(m);
    return m;
}

static struct llama_context_params params(int n_ctx, int n_seq, bool unified) {
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = (uint32_t) n_ctx;
    cp.n_seq_max = (uint32_t) n_seq;
    cp.kv_unified = unified;
    cp.n_threads = cp.n_threads_batch = 2;
    return cp;
}

static struct llama_context *context(struct llama_model *m, struct llama_context_params cp) {
    struct llama_context *c = llama_init_from_model(m, cp);
    assert_non_null(c);
    return c;
}

static int32_t tok(int i) { return (7 + 37 * i) % NV; }

// Tokens of a list at positions p0 .. in a sequence; the last one's logits.
static int feed(struct llama_context *c, int seq, int p0, const int32_t *t, int n, float *logits) {
    struct llama_batch b = llama_batch_init(n, 0, 1);
    for (int i = 0; i < n; i++) put(&b, seq, p0 + i, t[i], i == n - 1);
    const int r = llama_decode(c, b);
    if (r == 0 && logits) memcpy(logits, llama_get_logits_ith(c, -1), ROW);
    llama_batch_free(b);
    return r;
}

static void text(int32_t *t, int n, int salt) {
    for (int i = 0; i < n; i++) t[i] = tok(i + salt);
}

static struct llama_sampler *chain_of(struct llama_sampler *const *s, int n) {
    struct llama_sampler *chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    for (int i = 0; i < n; i++) llama_sampler_chain_add(chain, s[i]);
    return chain;
}
#define CHAIN(...)                                                                                                          \
    chain_of((struct llama_sampler *const[]){__VA_ARGS__},                                                                  \
             (int) (sizeof((struct llama_sampler *const[]){__VA_ARGS__}) / sizeof(struct llama_sampler *)))

// n tokens drawn after a prompt.
static void generate(struct llama_context *c, struct llama_sampler *chain, const int32_t *prompt, int n_prompt, int n,
                     int32_t *out) {
    llama_memory_clear(llama_get_memory(c), true);
    assert_int_equal(feed(c, 0, 0, prompt, n_prompt, NULL), 0);
    for (int i = 0; i < n; i++) {
        out[i] = llama_sampler_sample(chain, c, -1);
        assert_in_range(out[i], 0, NV - 1);
        assert_int_equal(feed(c, 0, n_prompt + i, &out[i], 1, NULL), 0);
    }
}

// ---- sampling -------------------------------------------------------------------------------------------------------------

static int n_repeats(const int32_t *t, int n) {
    int k = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (t[i] == t[j]) {
                k++;
                break;
            }
    return k;
}

static void test_43_negative_penalties(void **state) {
    (void) state;
    struct llama_model *m = model("llama");
    struct llama_context *c = context(m, params(512, 1, true));
    int32_t prompt[24], out[3][40];
    for (int i = 0; i < 24; i++) prompt[i] = tok(i % 4);  // repeated words
    const float values[3][2] = {{-1.5f, -2.0f}, {0, 0}, {1.5f, 2.0f}};
    for (int k = 0; k < 3; k++) {
        struct llama_sampler *s =
            CHAIN(llama_sampler_init_penalties(NV, 64, 1.0f, values[k][1], values[k][0]), llama_sampler_init_greedy());
        for (int i = 0; i < 24; i++) llama_sampler_accept(s, prompt[i]);
        generate(c, s, prompt, 24, 40, out[k]);
        llama_sampler_free(s);
    }
    // six times -2, and -1.5 once more: nothing that wasn't there before can win against it
    assert_int_equal(n_repeats(out[0], 40), 40 - 1 - (n_repeats(out[0], 40) == 38));
    assert_true(n_repeats(out[0], 40) > n_repeats(out[2], 40));
    assert_int_equal(n_repeats(out[2], 40), 0);
    llama_free(c);
    llama_model_free(m);
}

static void test_45_top_k_0(void **state) {
    (void) state;
    struct llama_model *m = model("llama");
    struct llama_context *c = context(m, params(256, 1, true));
    int32_t prompt[10], out[10][12];
    text(prompt, 10, 0);
    for (int k = 0; k < 10; k++) {
        struct llama_sampler *s =
            CHAIN(llama_sampler_init_top_k(0), llama_sampler_init_top_p(1, 1), llama_sampler_init_min_p(0, 1),
                  llama_sampler_init_temp(5), llama_sampler_init_dist((uint32_t) k + 1));
        generate(c, s, prompt, 10, 12, out[k]);
        llama_sampler_free(s);
        for (int j = 0; j < k; j++) assert_memory_not_equal(out[k], out[j], sizeof out[k]);
    }
    llama_free(c);
    llama_model_free(m);
}

// Eight equal requests side by side, each begun a step after the one before, twenty times: one text, to the bit of the logits.
static void test_46_equal_requests(void **state) {
    (void) state;
    struct llama_model *m = model("llama");
    struct llama_context *c = context(m, params(1024, 8, true));
    int32_t prompt[12], out[8][64], first[64];
    text(prompt, 12, 3);
    struct llama_batch b = llama_batch_init(128, 0, 1);
    for (int run = 0; run < (test_small() ? 2 : 20); run++) {
        llama_memory_clear(llama_get_memory(c), run % 2);
        int n_out[8] = {0}, at[8];
        for (int step = 0; n_out[7] < 64; step++) {
            b.n_tokens = 0;
            for (int q = 0; q < 8; q++) {
                at[q] = -1;
                if (step < q * (run % 3) || n_out[q] == 64) continue;
                if (n_out[q] == 0 && step == q * (run % 3)) {
                    for (int i = 0; i < 12; i++) put(&b, q, i, prompt[i], i == 11);
                } else {
                    put(&b, q, 11 + n_out[q], out[q][n_out[q] - 1], true);
                }
                at[q] = b.n_tokens - 1;
            }
            assert_int_equal(llama_decode(c, b), 0);
            for (int q = 0; q < 8; q++) {
                if (at[q] < 0) continue;
                const float *l = llama_get_logits_ith(c, at[q]);
                int best = 0;
                for (int v = 1; v < NV; v++)
                    if (l[v] > l[best]) best = v;
                out[q][n_out[q]++] = best;
            }
        }
        if (run == 0) memcpy(first, out[0], sizeof first);
        for (int q = 0; q < 8; q++) assert_memory_equal(out[q], first, sizeof first);
    }
    llama_batch_free(b);
    llama_free(c);
    llama_model_free(m);
}

static void test_49_seeds(void **state) {
    (void) state;
    struct llama_model *m = model("llama");
    struct llama_context *c = context(m, params(256, 1, true));
    int32_t prompt[6], out[7][32];
    text(prompt, 6, 0);
    const uint32_t seeds[7] = {42, 42, 43, 0, 0, (uint32_t) -1, 4294967295u};
    uint32_t used[7];
    for (int k = 0; k < 7; k++) {
        struct llama_sampler *s =
            CHAIN(llama_sampler_init_top_k(0), llama_sampler_init_temp(1.5f), llama_sampler_init_dist(seeds[k]));
        used[k] = llama_sampler_get_seed(s);
        generate(c, s, prompt, 6, 32, out[k]);
        llama_sampler_free(s);
    }
    assert_memory_equal(out[0], out[1], sizeof out[0]);
    assert_memory_equal(out[3], out[4], sizeof out[0]);
    for (int k = 2; k < 7; k++)
        for (int j = 0; j < k; j++)
            if (!(k == 4 && j == 3)) assert_memory_not_equal(out[k], out[j], sizeof out[0]);
    for (int k = 0; k < 5; k++) assert_int_equal(used[k], seeds[k]);
    // -1 draws a seed, and says which
    for (int k = 5; k < 7; k++) {
        assert_int_not_equal(used[k], LLAMA_DEFAULT_SEED);
        struct llama_sampler *s =
            CHAIN(llama_sampler_init_top_k(0), llama_sampler_init_temp(1.5f), llama_sampler_init_dist(used[k]));
        int32_t again[32];
        generate(c, s, prompt, 6, 32, again);
        assert_memory_equal(again, out[k], sizeof again);
        llama_sampler_free(s);
    }
    llama_free(c);
    llama_model_free(m);
}

// Five filters in every order, with ordinary and with extreme parameters: a candidate is always left.
static void test_51_unusual_orders(void **state) {
    (void) state;
    static const struct {
        int top_k;
        float min_p, top_p, typical;
    } sets[] = {{40, 0.005f, 0.97f, 1}, {-1, 1, 0, 0}, {40, 2, 0, 0}, {1, 2, 0, 1}, {0, 0.005f, 0.97f, 0}};
    const char *breakers[] = {"\n"};
    struct llama_model *m = model("llama");
    const struct llama_vocab *vocab = llama_model_get_vocab(m);
    llama_token_data d[NV];
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++)
        for (int order = 0; order < 720; order += test_small() ? 7 : 1) {
            struct llama_sampler *f[6] = {
                llama_sampler_init_top_k(sets[k].top_k),    llama_sampler_init_dry(vocab, 0.7f, 1.75f, 2, -1, breakers, 1),
                llama_sampler_init_min_p(sets[k].min_p, 0), llama_sampler_init_temp(0.8f),
                llama_sampler_init_top_p(sets[k].top_p, 0), llama_sampler_init_typical(sets[k].typical, 0),
            };
            struct llama_sampler *chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
            for (int n = 6, o = order; n > 0; o /= n, n--) {
                llama_sampler_chain_add(chain, f[o % n]);
                for (int i = o % n; i < n - 1; i++) f[i] = f[i + 1];
            }
            for (int i = 0; i < 20; i++) llama_sampler_accept(chain, i % 5);
            for (int i = 0; i < NV; i++) d[i] = (llama_token_data){i, sinf((float) i * 3), 0};
            llama_token_data_array a = {d, NV, -1, false};
            llama_sampler_apply(chain, &a);
            assert_in_range(a.size, 1, NV);
            llama_sampler_free(chain);
        }
    llama_model_free(m);
}

static void test_52_filters_after_the_chooser(void **state) {
    (void) state;
    struct llama_model *m = model("llama");
    struct llama_context *c = context(m, params(256, 1, true));
    int32_t prompt[6];
    text(prompt, 6, 0);
    float l[NV];
    assert_int_equal(feed(c, 0, 0, prompt, 6, l), 0);
    int best = 0;
    for (int i = 1; i < NV; i++)
        if (l[i] > l[best]) best = i;
    for (uint32_t seed = 0; seed < (test_small() ? 10 : 100); seed++) {
        struct llama_sampler *chains[] = {
            CHAIN(llama_sampler_init_temp(0.8f), llama_sampler_init_dist(seed), llama_sampler_init_top_k(40),
                  llama_sampler_init_top_p(0.95f, 1)),
            CHAIN(llama_sampler_init_top_k(40), llama_sampler_init_top_p(0.95f, 1)),
            llama_sampler_chain_init(llama_sampler_chain_default_params()),
            CHAIN(llama_sampler_init_dist(seed), llama_sampler_init_greedy()),
        };
        for (int k = 0; k < 4; k++) {
            ggml_clear_error();
            const llama_token t = llama_sampler_sample(chains[k], c, -1);
            if (t == LLAMA_TOKEN_NULL)
                assert_true(*ggml_last_error() != 0);  // no choice, with a sentence
            else
                assert_in_range(t, 0, NV - 1);
            if (k == 1 || k == 2) assert_true(t == LLAMA_TOKEN_NULL || t == best);  // nobody chose
            if (k == 3) assert_int_not_equal(t, LLAMA_TOKEN_NULL);
            llama_sampler_free(chains[k]);
        }
    }
    llama_free(c);
    llama_model_free(m);
}

static void test_54_bans(void **state) {
    (void) state;
    struct llama_model *m = model("llama");
    struct llama_context_params cp = params(256, 2, true);
    struct llama_context *c = context(m, cp);
    int32_t prompt[6];
    text(prompt, 6, 0);
    float l[NV];
    assert_int_equal(feed(c, 0, 0, prompt, 6, l), 0);
    int best = 0;
    for (int i = 1; i < NV; i++)
        if (l[i] > l[best]) best = i;
    const float values[] = {-100, -INFINITY};
    for (int k = 0; k < 2; k++)
        for (uint32_t seed = 0; seed < (test_small() ? 10 : 100); seed++) {
            const llama_logit_bias bias = {best, values[k]};
            struct llama_sampler *chains[] = {
                CHAIN(llama_sampler_init_logit_bias(NV, 1, &bias), llama_sampler_init_top_k(1), llama_sampler_init_greedy()),
                CHAIN(llama_sampler_init_logit_bias(NV, 1, &bias), llama_sampler_init_top_p(0.1f, 1),
                      llama_sampler_init_temp(2), llama_sampler_init_dist(seed)),
            };
            for (int q = 0; q < 2; q++) {
                assert_int_not_equal(llama_sampler_sample(chains[q], c, -1), best);
                llama_sampler_free(chains[q]);
            }
        }
    // and inside the graph
    const llama_logit_bias bias = {best, -INFINITY};
    struct llama_sampler *s = CHAIN(llama_sampler_init_logit_bias(NV, 1, &bias), llama_sampler_init_greedy());
    assert_true(llama_set_sampler(c, 1, s));
    assert_int_equal(feed(c, 1, 0, prompt, 6, NULL), 0);
    assert_int_not_equal(llama_get_sampled_token_ith(c, -1), best);
    assert_int_not_equal(llama_get_sampled_token_ith(c, -1), LLAMA_TOKEN_NULL);
    llama_set_sampler(c, 1, NULL);
    llama_sampler_free(s);
    // a bias in favour does what it says
    const llama_logit_bias up = {(best + 1) % NV, 1000};
    s = CHAIN(llama_sampler_init_logit_bias(NV, 1, &up), llama_sampler_init_greedy());
    assert_int_equal(feed(c, 0, 6, prompt, 1, NULL), 0);
    assert_int_equal(llama_sampler_sample(s, c, -1), (best + 1) % NV);
    llama_sampler_free(s);
    llama_free(c);
    llama_model_free(m);
}

// A request of 75 tokens twice: the second reuses all but the last.
static void test_55_prompt_cache(void **state) {
    (void) state;
    struct llama_model *m = model("llama");
    struct llama_context *c = context(m, params(256, 1, true));
    int32_t prompt[75], out[2][40];
    text(prompt, 75, 0);
    float want[NV], got[NV];
    assert_int_equal(feed(c, 0, 0, prompt, 75, want), 0);
    assert_true(llama_memory_seq_rm(llama_get_memory(c), 0, 74, -1));
    assert_int_equal(feed(c, 0, 74, prompt + 74, 1, got), 0);
    assert_memory_equal(got, want, ROW);
    for (int k = 0; k < 2; k++) {
        struct llama_sampler *s = CHAIN(llama_sampler_init_temp(1), llama_sampler_init_dist(1));
        if (k)
            assert_true(llama_memory_seq_rm(llama_get_memory(c), 0, 74, -1));
        else
            llama_memory_clear(llama_get_memory(c), true);
        assert_int_equal(k ? feed(c, 0, 74, prompt + 74, 1, NULL) : feed(c, 0, 0, prompt, 75, NULL), 0);
        for (int i = 0; i < 40; i++) {
            out[k][i] = llama_sampler_sample(s, c, -1);
            assert_int_equal(feed(c, 0, 75 + i, &out[k][i], 1, NULL), 0);
        }
        llama_sampler_free(s);
    }
    assert_memory_equal(out[0], out[1], sizeof out[0]);
    llama_free(c);
    llama_model_free(m);
}

// ---- cache and states -----------------------------------------------------------------------------------------------------

static void test_123_partial_copy(void **state) {
    (void) state;
    struct llama_model *m = model("llama");
    int32_t t[100], more[4] = {1, 2, 3, 4};
    text(t, 100, 0);
    for (int unified = 0; unified < 2; unified++) {
        struct llama_context *c = context(m, params(512, 2, unified)), *d = context(m, params(512, 2, unified));
        llama_memory_t mem = llama_get_memory(c);
        float want[NV], got[NV];
        assert_int_equal(feed(c, 0, 0, t, 100, NULL), 0);
        llama_memory_seq_cp(mem, 0, 1, 0, 50);
        assert_int_equal(llama_memory_seq_pos_max(mem, 1), 49);
        assert_int_equal(feed(c, 1, 50, more, 4, got), 0);
        assert_int_equal(feed(d, 1, 0, t, 50, NULL), 0);
        assert_int_equal(feed(d, 1, 50, more, 4, want), 0);
        assert_memory_equal(got, want, ROW);
        const llama_pos before = llama_memory_seq_pos_max(mem, 0);
        llama_memory_seq_cp(mem, 0, 0, 0, 50);
        llama_memory_seq_cp(mem, -1, 1, 0, 50);
        assert_error("sequence ids -1 and 1");
        llama_memory_seq_cp(mem, 0, 9999, 0, 50);
        assert_error("9999");
        assert_int_equal(llama_memory_seq_pos_max(mem, 0), before);
        assert_int_equal(llama_memory_seq_pos_max(mem, 1), 53);
        llama_free(c);
        llama_free(d);
    }
    llama_model_free(m);
}

// Five turns whose history is rewritten (the thinking is cut out of old turns): a checkpoint of the state behind what stays keeps what
// is computed again below one turn.
static void test_125_recurrent_history(void **state) {
    (void) state;
    enum { USER = 20, THINK = 30, ANSWER = 15, TURN = USER + THINK + ANSWER };
    struct llama_model *m = model("mamba2");
    struct llama_context *c = context(m, params(2048, 1, true)), *fresh = context(m, params(2048, 1, true));
    llama_memory_t mem = llama_get_memory(c);
    int32_t history[5 * TURN];
    int n = 0;
    uint8_t *saved = NULL;
    size_t n_saved = 0;
    for (int turn = 0; turn < 5; turn++) {
        int32_t t[TURN];
        text(t, TURN, 100 * turn);
        int evaluated = 0;
        if (turn) {
            // user and answer of the turn before, without the thinking
            assert_false(llama_memory_seq_rm(mem, 0, n + USER, n + USER + THINK));
            assert_int_equal(llama_memory_seq_pos_max(mem, 0), n + TURN - 1);
            int32_t old[TURN];
            text(old, TURN, 100 * (turn - 1));
            memcpy(history + n, old, USER * sizeof *old);
            memcpy(history + n + USER, old + USER + THINK, ANSWER * sizeof *old);
            assert_int_equal(llama_state_seq_set_data(c, saved, n_saved, 0), n_saved);
            assert_int_equal(feed(c, 0, n, history + n, USER + ANSWER, NULL), 0);
            evaluated += USER + ANSWER;
            n += USER + ANSWER;
        }
        n_saved = llama_state_seq_get_size(c, 0);
        saved = realloc(saved, n_saved);
        assert_int_equal(llama_state_seq_get_data(c, saved, n_saved, 0), n_saved);
        assert_true(evaluated < TURN);
        float want[NV], got[NV];
        assert_int_equal(feed(c, 0, n, t, TURN, got), 0);
        llama_memory_clear(llama_get_memory(fresh), true);
        if (n) assert_int_equal(feed(fresh, 0, 0, history, n, NULL), 0);
        assert_int_equal(feed(fresh, 0, n, t, TURN, want), 0);
        assert_memory_equal(got, want, ROW);
    }
    free(saved);
    llama_free(c);
    llama_free(fresh);
    llama_model_free(m);
}

static void test_126_two_states(void **state) {
    (void) state;
    struct llama_model *m = model("llama");
    struct llama_context *c = context(m, params(256, 1, true));
    int32_t a[24], b[40];
    text(a, 24, 0);
    text(b, 40, 900);
    float want_a[NV], want_b[NV], got[NV];
    uint8_t *s[2];
    size_t n[2];
    for (int k = 0; k < 2; k++) {
        llama_memory_clear(llama_get_memory(c), true);
        assert_int_equal(feed(c, 0, 0, k ? b : a, k ? 35 : 20, NULL), 0);
        n[k] = llama_state_get_size(c);
        s[k] = malloc(n[k]);
        assert_int_equal(llama_state_get_data(c, s[k], n[k]), n[k]);
        assert_int_equal(feed(c, 0, k ? 35 : 20, k ? b + 35 : a + 20, 4, k ? want_b : want_a), 0);
    }
    for (int k = 0; k < 3; k++) {
        assert_int_equal(llama_state_set_data(c, s[k % 2], n[k % 2]), n[k % 2]);
        assert_int_equal(feed(c, 0, k % 2 ? 35 : 20, k % 2 ? b + 35 : a + 20, 4, got), 0);
        assert_memory_equal(got, k % 2 ? want_b : want_a, ROW);
    }
    // a larger context takes it, one of another kind or model doesn't, and one that is too small neither
    struct llama_context *d = context(m, params(1024, 1, true));
    assert_int_equal(llama_state_set_data(d, s[1], n[1]), n[1]);
    assert_int_equal(feed(d, 0, 35, b + 35, 4, got), 0);
    assert_memory_equal(got, want_b, ROW);
    llama_free(d);
    struct llama_context_params cp = params(256, 1, true);
    cp.type_k = GGML_TYPE_Q8_0;
    d = context(m, cp);
    assert_int_equal(llama_state_set_data(d, s[0], n[0]), 0);
    llama_free(d);
    // more positions than a sequence of the other context may hold
    int32_t *all = malloc(300 * 4);
    text(all, 300, 0);
    struct llama_context *big = context(m, params(512, 1, true));
    assert_int_equal(feed(big, 0, 0, all, 257, NULL), 0);
    const size_t n_big = llama_state_get_size(big);
    uint8_t *large = malloc(n_big);
    assert_int_equal(llama_state_get_data(big, large, n_big), n_big);
    assert_int_equal(llama_state_set_data(c, large, n_big), 0);
    assert_error("256");
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(c), 0), 23);
    llama_free(big);
    free(large);
    free(all);
    free(s[0]);
    free(s[1]);
    llama_free(c);
    llama_model_free(m);
}

// a..j, then `a b e f h j`: the chunks that are still there are moved together.
static void test_128_reused_chunks(void **state) {
    (void) state;
    struct llama_model *m = model("llama");
    struct llama_context_params cp = params(256, 1, true);
    cp.type_k = cp.type_v = GGML_TYPE_F32;
    struct llama_context *c = context(m, cp), *fresh = context(m, cp);
    llama_memory_t mem = llama_get_memory(c);
    int32_t t[10];
    text(t, 10, 0);
    const int32_t want_text[7] = {t[0], t[1], t[4], t[5], t[7], t[9], t[3]};
    for (int again = 0; again < 3; again++) {
        llama_memory_clear(mem, true);
        assert_int_equal(feed(c, 0, 0, t, 10, NULL), 0);
        const int moves[3][3] = {{4, 6, 2}, {7, 8, 4}, {9, 10, 5}};  // [from, to) -> at
        for (int k = 0; k < 3; k++) {
            assert_true(llama_memory_seq_rm(mem, 0, moves[k][2], moves[k][0]));
            llama_memory_seq_add(mem, 0, moves[k][0], moves[k][1], moves[k][2] - moves[k][0]);
        }
        assert_int_equal(llama_memory_seq_pos_max(mem, 0), 5);
        // The moved keys are exact up to rounding; their values still come from the old neighbours, as every chunk that is reused.
        float got[NV];
        assert_int_equal(feed(c, 0, 6, &want_text[6], 1, got), 0);
        for (int i = 0; i < NV; i++) assert_true(got[i] == got[i]);
    }
    // later requests stay right
    float want[NV], got[NV];
    assert_true(llama_memory_seq_rm(mem, 0, 2, -1));
    assert_int_equal(feed(c, 0, 2, want_text + 2, 5, got), 0);
    assert_int_equal(feed(fresh, 0, 0, want_text, 7, want), 0);
    assert_memory_equal(got, want, ROW);
    llama_free(c);
    llama_free(fresh);
    llama_model_free(m);
}

// Two slots with a q8_0 cache make holes all over; the texts are those of a context without any.
static void test_129_holes(void **state) {
    (void) state;
    struct llama_model *m = model("llama");
    struct llama_context_params cp = params(4096, 2, true);
    cp.type_k = cp.type_v = GGML_TYPE_Q8_0;
    cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    struct llama_context *c = context(m, cp), *d = context(m, cp);
    enum { MOST = 900 };
    const int most = test_small() ? 270 : MOST;
    int32_t t[2][MOST];
    text(t[0], MOST, 0);
    text(t[1], MOST, 333);
    float want[NV], got[NV];
    for (int p = 0; p < most; p += 30) {
        for (int q = 0; q < 2; q++) assert_int_equal(feed(c, q, p, t[q] + p, 30, NULL), 0);
        if (p % 90 == 60) {  // cancelled and begun again
            assert_true(llama_memory_seq_rm(llama_get_memory(c), 1, -1, -1));
            assert_int_equal(feed(c, 1, 0, t[1], p / 2, NULL), 0);
            assert_int_equal(feed(c, 1, p / 2, t[1] + p / 2, p + 30 - p / 2, NULL), 0);
        }
    }
    for (int q = 0; q < 2; q++) {
        assert_int_equal(feed(d, q, 0, t[q], most, NULL), 0);
        assert_int_equal(feed(d, q, most, t[q], 1, want), 0);
        assert_int_equal(feed(c, q, most, t[q], 1, got), 0);
        assert_memory_equal(got, want, ROW);
    }
    llama_free(c);
    llama_free(d);
    llama_model_free(m);
}

static void test_131_odd_state_files(void **state) {
    (void) state;
    struct llama_model *m = model("llama");
    struct llama_context *c = context(m, params(256, 2, true));
    char path[128], *longest = malloc(5001);
    memset(longest, 'x', 5000);
    longest[5000] = 0;
    snprintf(path, sizeof path, "/tmp/lamina-test-%d.slot", (int) getpid());
    int32_t t[20], back[32];
    size_t n = 0;
    text(t, 20, 0);
    // an empty slot, saved and restored
    const size_t saved = llama_state_seq_save_file(c, path, 0, NULL, 0);
    if (saved) {
        assert_int_equal(llama_state_seq_load_file(c, path, 0, back, 32, &n), saved);
        assert_int_equal(n, 0);
    }
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(c), 0), -1);
    float want[NV], got[NV];
    assert_int_equal(feed(c, 0, 0, t, 19, NULL), 0);
    assert_int_equal(feed(c, 0, 19, t + 19, 1, want), 0);
    assert_true(llama_memory_seq_rm(llama_get_memory(c), 0, 19, -1));
    // missing, empty, cut, random, a folder, a name of 5,000 characters, no name; slot 99
    unlink(path);
    assert_int_equal(llama_state_seq_load_file(c, path, 0, back, 32, &n), 0);
    for (int k = 0; k < 3; k++) {
        uint8_t junk[3000];
        for (size_t i = 0; i < sizeof junk; i++) junk[i] = (uint8_t) (i * 131 + i / 7);
        assert_true(k != 1 || llama_state_seq_save_file(c, path, 0, t, 19) > 0);
        if (k == 1) assert_int_equal(truncate(path, 500), 0);
        if (k != 1) {
            FILE *f = fopen(path, "wb");
            if (k) assert_int_equal(fwrite(junk, 1, sizeof junk, f), sizeof junk);
            fclose(f);
        }
        assert_int_equal(llama_state_seq_load_file(c, path, 0, back, 32, &n), 0);
        assert_true(*ggml_last_error() != 0);
    }
    assert_int_equal(llama_state_seq_load_file(c, "/tmp", 0, back, 32, &n), 0);
    assert_int_equal(llama_state_seq_load_file(c, longest, 0, back, 32, &n), 0);
    assert_int_equal(llama_state_seq_load_file(c, "", 0, back, 32, &n), 0);
    assert_int_equal(llama_state_seq_save_file(c, longest, 0, t, 19), 0);
    assert_true(llama_state_seq_save_file(c, path, 0, t, 19) > 0);
    assert_int_equal(llama_state_seq_load_file(c, path, 99, back, 32, &n), 0);
    assert_int_equal(llama_state_seq_save_file(c, path, 99, t, 19), 0);
    assert_int_equal(llama_state_seq_get_size(c, 99), 0);
    // the slot that was in use is as it was
    assert_int_equal(feed(c, 0, 19, t + 19, 1, got), 0);
    assert_memory_equal(got, want, ROW);
    unlink(path);
    free(longest);
    llama_free(c);
    llama_model_free(m);
}

// One of four requests is full: its token is refused with the batch, and the others go on without it, with their own bits.
static void test_132_one_full_slot(void **state) {
    (void) state;
    struct llama_model *m = model("llama");
    struct llama_context *c = context(m, params(1024, 4, false)), *d = context(m, params(1024, 4, false));
    int32_t t[300];
    text(t, 300, 0);
    assert_int_equal(llama_n_ctx_seq(c), 256);
    assert_int_equal(feed(c, 0, 0, t, 256, NULL), 0);
    struct llama_batch b = llama_batch_init(8, 0, 1);
    float want[NV];
    for (int i = 0; i < 40; i++) {
        b.n_tokens = 0;
        for (int q = 0; q < 4; q++) put(&b, q, q ? i : 256, t[i + q], true);
        assert_int_equal(llama_decode(c, b), 1);
        assert_error("256 per sequence");
        for (int q = 1; q < 4; q++) assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(c), q), i - 1);
        b.n_tokens = 0;
        for (int q = 1; q < 4; q++) put(&b, q, i, t[i + q], true);
        assert_int_equal(llama_decode(c, b), 0);
        for (int q = 1; q < 4; q++) {
            assert_int_equal(feed(d, q, i, t + i + q, 1, want), 0);
            assert_memory_equal(llama_get_logits_ith(c, q - 1), want, ROW);
        }
    }
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(c), 0), 255);
    llama_batch_free(b);
    llama_free(c);
    llama_free(d);
    llama_model_free(m);
}

// -c 1024, a prompt of 900 tokens, 512 more: half of what follows the first token is given up whenever the context is full.
static void test_134_context_shift(void **state) {
    (void) state;
    struct llama_model *m = model("llama");
    struct llama_context *c = context(m, params(1024, 1, true));
    llama_memory_t mem = llama_get_memory(c);
    int32_t prompt[900], made = 0, shifts = 0, token = 1;
    text(prompt, 900, 0);
    assert_int_equal(feed(c, 0, 0, prompt, 900, NULL), 0);
    int n_past = 900;
    while (made < 512) {
        if (n_past == 1024) {
            assert_int_equal(feed(c, 0, n_past, &token, 1, NULL), 1);
            const int drop = (n_past - 1) / 2;
            assert_true(llama_memory_seq_rm(mem, 0, 1, 1 + drop));
            llama_memory_seq_add(mem, 0, 1 + drop, n_past, -drop);
            n_past -= drop;
            shifts++;
        }
        float l[NV];
        assert_int_equal(feed(c, 0, n_past++, &token, 1, l), 0);
        assert_int_equal(llama_memory_seq_pos_max(mem, 0), n_past - 1);
        assert_int_equal(llama_memory_seq_pos_min(mem, 0), 0);
        token = 0;
        for (int i = 1; i < NV; i++)
            if (l[i] > l[token]) token = i;
        made++;
    }
    assert_int_equal(shifts, 1);
    assert_int_equal(n_past, 900 + 512 - 511);
    llama_free(c);
    llama_model_free(m);
}

// A prompt of 1,100 tokens, saved; in another context one token more is all that is left to compute.
static void test_135_restored_prompt(void **state) {
    (void) state;
    struct llama_model *m = model("llama");
    struct llama_context *c = context(m, params(2048, 1, true)), *d = context(m, params(2048, 1, true));
    char path[128];
    snprintf(path, sizeof path, "/tmp/lamina-test-%d.prompt", (int) getpid());
    int32_t t[1101], back[1200];
    size_t n = 0;
    text(t, 1101, 0);
    float want[NV], got[NV];
    assert_int_equal(feed(c, 0, 0, t, 1100, NULL), 0);
    assert_true(llama_state_save_file(c, path, t, 1100));
    assert_int_equal(feed(c, 0, 1100, t + 1100, 1, want), 0);
    assert_true(llama_state_load_file(d, path, back, 1200, &n));
    assert_int_equal(n, 1100);
    assert_memory_equal(back, t, 1100 * sizeof *t);
    assert_int_equal(llama_memory_seq_pos_max(llama_get_memory(d), 0), 1099);
    assert_int_equal(feed(d, 0, 1100, t + 1100, 1, got), 0);
    assert_memory_equal(got, want, ROW);
    unlink(path);
    llama_free(c);
    llama_free(d);
    llama_model_free(m);
}

static void test_137_window(void **state) {
    (void) state;
    struct llama_model *m = model("gemma3-64");
    int32_t t[201];
    text(t, 201, 0);
    for (int full = 0; full < 2; full++) {
        struct llama_context_params cp = params(512, 1, true);
        cp.swa_full = full;
        struct llama_context *c = context(m, cp);
        llama_memory_t mem = llama_get_memory(c);
        size_t size = 0;
        for (int k = 0; k < (test_small() ? 8 : 100); k++) {
            const int have = llama_memory_seq_pos_max(mem, 0) + 1;
            assert_int_equal(feed(c, 0, have, t + have, 200 - have, NULL), 0);
            if (k < 2) size = llama_state_get_size(c);
            assert_true(llama_state_get_size(c) <= size);
            const bool cut = llama_memory_seq_rm(mem, 0, 40, -1);
            if (full) assert_true(cut);
            assert_int_equal(llama_memory_seq_pos_max(mem, 0), cut ? 39 : 199);
            if (cut) assert_int_equal(llama_memory_seq_pos_min(mem, 0), 0);
            assert_int_equal(llama_decode(c, llama_batch_get_one(t + 1, 1)), 0);
            assert_int_equal(llama_memory_seq_pos_max(mem, 0), cut ? 40 : 200);
            if (!cut) llama_memory_clear(mem, true);
        }
        llama_free(c);
    }
    llama_model_free(m);
}

// ---- callers of the C interface ---------------------------------------------------------------------------------------------

static const char *leaked_path;
static struct llama_model *leaked;
static struct llama_context *leaked_context;

static void load_and_leak(void) {
    leaked = llama_model_load_from_file(leaked_path, llama_model_default_params());
    leaked_context = llama_init_from_model(leaked, llama_context_default_params());
    int32_t t[4] = {1, 2, 3, 4};
    if (!leaked_context || llama_decode(leaked_context, llama_batch_get_one(t, 4)) != 0) _exit(9);
}

static void leave_again(void) {
    if (llama_decode(leaked_context, llama_batch_get_one((int32_t[]){5}, 1)) != 0) _exit(8);
    _exit(0);  // an exit of its own, in the middle of the program's
}

// 0: nothing freed; 1: a handler that ends the program; 2: in the child of a process that has used the library.
static int leave(int how) {
    fflush(NULL);
    leaked_path = maker_path("llama", GGML_TYPE_F32);  // made here, so that it is removed here
    const pid_t pid = fork();
    if (pid == 0) {
        if (how == 1) atexit(leave_again);
        load_and_leak();
        exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void test_179_nothing_freed(void **state) {
    (void) state;
#if defined(__SANITIZE_THREAD__)
    print_message("skipped: the sanitizer of threads knows none that are made after a fork\n");
    skip();
#endif
    for (int how = 0; how < 3; how++) assert_int_equal(leave(how), 0);
}

static void test_184_batch_sizes(void **state) {
    (void) state;
    // an encoder: tokens that see each other go together, or the sequence is refused with the limit
    struct llama_model *m = model("bert");
    struct llama_context_params cp = params(2048, 1, true);
    cp.n_batch = 513;
    cp.n_ubatch = 512;
    cp.embeddings = true;
    cp.pooling_type = LLAMA_POOLING_TYPE_NONE;
    struct llama_context *c = context(m, cp);
    assert_int_equal(llama_n_ubatch(c), 513);
    int32_t *t = malloc(2000 * sizeof *t);
    text(t, 2000, 0);
    struct llama_batch b = llama_batch_init(2000, 0, 1);
    for (int i = 0; i < 2000; i++) put(&b, 0, i, t[i], true);
    assert_int_equal(llama_decode(c, b), -1);
    assert_error("513");
    b.n_tokens = 513;
    assert_int_equal(llama_decode(c, b), 0);
    assert_non_null(llama_get_embeddings_ith(c, 512));
    llama_free(c);
    llama_model_free(m);
    m = model("llama");
    cp = params(512, 1, true);
    cp.n_batch = 64;
    cp.n_ubatch = 512;  // larger than the batch
    c = context(m, cp);
    assert_int_equal(llama_n_ubatch(c), 64);
    llama_free(c);
    cp.n_batch = 2000;  // larger than the context
    c = context(m, cp);
    assert_int_equal(llama_n_batch(c), 512);
    b.n_tokens = 2000;
    assert_int_equal(llama_decode(c, b), -1);
    b.n_tokens = 512;
    assert_int_equal(llama_decode(c, b), 0);
    llama_free(c);
    // attention both ways through a model of language: the same
    cp.attention_type = LLAMA_ATTENTION_TYPE_NON_CAUSAL;
    cp.n_batch = 513;
    cp.n_ctx = 2048;
    c = context(m, cp);
    assert_int_equal(llama_n_ubatch(c), 513);
    b.n_tokens = 2000;
    assert_int_equal(llama_decode(c, b), -1);
    llama_free(c);
    llama_batch_free(b);
    free(t);
    llama_model_free(m);
}

static void test_185_both_outputs(void **state) {
    (void) state;
    struct llama_model *m = model("llama");
    struct llama_context_params cp = params(256, 1, true);
    cp.embeddings = true;
    struct llama_context *c = context(m, cp), *plain = context(m, params(256, 1, true));
    const int n = 5;
    int32_t t[5];
    text(t, n, 0);
    assert_null(llama_get_logits_ith(c, -1));  // before any decode
    assert_null(llama_get_embeddings_ith(c, -1));
    assert_null(llama_get_logits(c));
    assert_null(llama_get_embeddings(c));
    float want[NV];
    assert_int_equal(feed(plain, 0, 0, t, n, want), 0);
    assert_int_equal(feed(c, 0, 0, t, n, NULL), 0);
    assert_memory_equal(llama_get_logits_ith(c, -1), want, ROW);
    const float *e = llama_get_embeddings_ith(c, -1);
    assert_non_null(e);
    assert_true(e[0] != 0 && e[0] == e[0]);
    assert_null(llama_get_logits_ith(c, n));
    assert_error("there is no entry 5");
    assert_null(llama_get_logits_ith(c, -n - 1));
    assert_error("-6");
    assert_null(llama_get_embeddings_ith(c, n));
    assert_null(llama_get_embeddings_ith(c, -n - 1));
    // nothing asked for
    struct llama_batch b = llama_batch_init(1, 0, 1);
    put(&b, 0, n, 3, false);
    assert_int_equal(llama_decode(plain, b), 0);
    assert_null(llama_get_logits_ith(plain, 0));
    assert_error("computed no logits");
    assert_null(llama_get_logits_ith(plain, -1));
    llama_batch_free(b);
    llama_free(c);
    llama_free(plain);
    llama_model_free(m);
}

// Every id of a real vocabulary, with room for nothing, for one byte, for one too few and for all.
static void test_187_pieces(void **state) {
    (void) state;
    const char *path = getenv("LAMINA_SMOLLM2");
    struct llama_model_params mp = llama_model_default_params();
    mp.vocab_only = true;
    struct llama_model *m = path && access(path, R_OK) == 0 ? llama_model_load_from_file(path, mp) : NULL;
    if (!m) {
        print_message("skipped: no real model (LAMINA_SMOLLM2)\n");
        return;
    }
    const struct llama_vocab *v = llama_model_get_vocab(m);
    for (llama_token t = 0; t < llama_vocab_n_tokens(v); t++)
        for (int special = 0; special < 2; special++)
            for (int lstrip = 0; lstrip <= 5; lstrip += lstrip ? 4 : 1) {
                char buf[600];
                const int32_t need = -llama_token_to_piece(v, t, NULL, 0, lstrip, special);
                assert_in_range(need, 0, 512);
                const int32_t room[] = {0, 1, need - 1, need};
                char whole[600];
                assert_int_equal(llama_token_to_piece(v, t, whole, sizeof whole, lstrip, special), need);
                for (int k = 0; k < 4; k++) {
                    if (room[k] < 0) continue;
                    memset(buf, '#', sizeof buf);
                    assert_int_equal(llama_token_to_piece(v, t, buf, room[k], lstrip, special),
                                     room[k] < need ? -need : need);
                    if (room[k] >= need) assert_memory_equal(buf, whole, (size_t) need);
                    for (int i = room[k]; i < room[k] + 8; i++) assert_int_equal(buf[i], '#');
                }
            }
    llama_model_free(m);
}

// The pooled embeddings of two texts of n and n / 2 tokens in one batch, with at most n_ubatch computed at once.
static void embed(struct llama_model *m, int n, int n_ubatch, enum llama_pooling_type pooling, float *out) {
    struct llama_context_params cp = params(1280, 2, true);
    cp.n_batch = 1280;
    cp.n_ubatch = (uint32_t) n_ubatch;
    cp.embeddings = true;
    cp.pooling_type = pooling;
    struct llama_context *c = context(m, cp);
    struct llama_batch b = llama_batch_init(2 * n, 0, 1);
    const size_t n_embd = (size_t) llama_model_n_embd_out(m);
    for (int q = 0; q < 2; q++)
        for (int i = 0; i < (q ? n / 2 : n); i++) put(&b, q, i, tok(i + 3 * q), true);
    assert_int_equal(llama_decode(c, b), 0);
    for (int q = 0; q < 2; q++) {
        assert_non_null(llama_get_embeddings_seq(c, q));
        memcpy(out + (size_t) q * n_embd, llama_get_embeddings_seq(c, q), n_embd * sizeof(float));
    }
    llama_batch_free(b);
    llama_free(c);
}

static void test_147_long_embeddings(void **state) {
    (void) state;
    static const char *const names[] = {"llama", "falcon-h1", "bert"};  // in pieces; at once, whatever the micro-batch
    static const int sizes[] = {63, 64, 65, 129, 300};
    for (int k = 0; k < 3; k++) {
        struct llama_model *m = model(names[k]);
        const size_t bytes = 2 * (size_t) llama_model_n_embd_out(m) * sizeof(float);
        float *want = malloc(bytes), *got = malloc(bytes);
        for (int i = 0; i < 15; i += test_small() ? 4 : 1) {
            const enum llama_pooling_type kind = (enum llama_pooling_type)(LLAMA_POOLING_TYPE_MEAN + i / 5);
            embed(m, sizes[i % 5], 1280, kind, want);
            embed(m, sizes[i % 5], 64, kind, got);
            assert_memory_equal(got, want, bytes);
            for (size_t j = 0; j < bytes / sizeof(float); j++) assert_true(isfinite(got[j]));
        }
        free(want);
        free(got);
        llama_model_free(m);
    }
}

// ---- limits that a context's parameters set ---------------------------------------------------------------------------------

static void test_outputs_with_embeddings(void **state) {
    (void) state;
    struct llama_model *m = model("llama");
    struct llama_context_params cp = params(256, 3, true);
    struct llama_batch b = llama_batch_init(16, 0, 1);
    // With embeddings every entry is an output.
    cp.embeddings = true;
    cp.n_outputs_max = 2;
    struct llama_context *c = context(m, cp);
    for (int q = 0; q < 3; q++)
        for (int i = 0; i < 3; i++) put(&b, q, i, tok(i), true);
    assert_int_equal(llama_decode(c, b), 0);
    for (int k = 0; k < 9; k++) assert_non_null(llama_get_embeddings_ith(c, k));
    // So it has with those that are asked for later, as servers do.
    cp.embeddings = false;
    struct llama_context *late = context(m, cp);
    assert_int_equal(llama_decode(late, b), -1);
    llama_set_embeddings(late, true);
    for (int again = 0; again < 2; again++) {
        llama_memory_clear(llama_get_memory(late), true);
        assert_int_equal(llama_decode(late, b), 0);
        for (int k = 0; k < 9; k++) {
            assert_memory_equal(llama_get_embeddings_ith(late, k), llama_get_embeddings_ith(c, k),
                                (size_t) llama_model_n_embd(m) * sizeof(float));
            assert_memory_equal(llama_get_logits_ith(late, k), llama_get_logits_ith(c, k),
                                (size_t) llama_vocab_n_tokens(llama_model_get_vocab(m)) * sizeof(float));
        }
    }
    llama_free(late);
    llama_batch_free(b);
    llama_free(c);
    llama_model_free(m);
}

static void test_no_perf(void **state) {
    (void) state;
    struct llama_model *m = model("llama");
    for (int off = 0; off < 2; off++) {
        struct llama_context_params cp = params(256, 1, true);
        cp.no_perf = off;
        struct llama_context *c = context(m, cp);
        int32_t t[8];
        text(t, 8, 0);
        assert_int_equal(feed(c, 0, 0, t, 8, NULL), 0);
        for (int i = 0; i < 3; i++) assert_int_equal(feed(c, 0, 8 + i, t, 1, NULL), 0);
        const struct llama_perf_context_data p = llama_perf_context(c);
        assert_int_equal(p.n_p_eval, 8);
        assert_int_equal(p.n_eval, 3);
        assert_int_equal(p.t_p_eval_ms > 0, !off);
        assert_int_equal(p.t_eval_ms > 0, !off);
        llama_free(c);
    }
    llama_model_free(m);
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_43_negative_penalties),
        cmocka_unit_test(test_45_top_k_0),
        cmocka_unit_test(test_46_equal_requests),
        cmocka_unit_test(test_49_seeds),
        cmocka_unit_test(test_51_unusual_orders),
        cmocka_unit_test(test_52_filters_after_the_chooser),
        cmocka_unit_test(test_54_bans),
        cmocka_unit_test(test_55_prompt_cache),
        cmocka_unit_test(test_123_partial_copy),
        cmocka_unit_test(test_125_recurrent_history),
        cmocka_unit_test(test_126_two_states),
        cmocka_unit_test(test_128_reused_chunks),
        cmocka_unit_test(test_129_holes),
        cmocka_unit_test(test_131_odd_state_files),
        cmocka_unit_test(test_132_one_full_slot),
        cmocka_unit_test(test_134_context_shift),
        cmocka_unit_test(test_135_restored_prompt),
        cmocka_unit_test(test_137_window),
        cmocka_unit_test(test_179_nothing_freed),
        cmocka_unit_test(test_184_batch_sizes),
        cmocka_unit_test(test_185_both_outputs),
        cmocka_unit_test(test_187_pieces),
        cmocka_unit_test(test_147_long_embeddings),
        cmocka_unit_test(test_outputs_with_embeddings),
        cmocka_unit_test(test_no_perf),
    };
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
