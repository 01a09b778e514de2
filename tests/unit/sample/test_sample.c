// Samplers: what each does, and that none fails on odd logits, odd parameters or an odd order.
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "support/vocabs.h"
#include "sample/sample.h"
#include <math.h>

enum { N = 8 };

struct list {
    llama_token_data d[64];
    llama_token_data_array c;
};

static void fill(struct list *l, const float *logits, size_t n) {
    for (size_t i = 0; i < n; i++) l->d[i] = (llama_token_data){(llama_token) i, logits[i], 0};
    l->c = (llama_token_data_array){l->d, n, -1, false};
}

static llama_token chosen(const struct list *l) {
    return l->c.selected >= 0 && (size_t) l->c.selected < l->c.size ? l->c.data[l->c.selected].id : LLAMA_TOKEN_NULL;
}

// Applies and frees.
static void apply(struct llama_sampler *s, struct list *l) {
    assert_non_null(s);
    llama_sampler_apply(s, &l->c);
    llama_sampler_free(s);
}

static bool holds(const struct list *l, llama_token id) {
    for (size_t i = 0; i < l->c.size; i++) {
        if (l->c.data[i].id == id) return true;
    }
    return false;
}

static const float rising[N] = {0, 1, 2, 3, 4, 5, 6, 7};

static void test_greedy(void **state) {
    (void) state;
    struct list l;
    fill(&l, rising, N);
    apply(llama_sampler_init_greedy(), &l);
    assert_int_equal(chosen(&l), 7);
    fill(&l, (float[]){1, 5, 5, 2}, 4);
    apply(llama_sampler_init_greedy(), &l);
    assert_int_equal(chosen(&l), 1);  // of equals the lowest id
}

static void test_top_k(void **state) {
    (void) state;
    struct list l;
    fill(&l, (float[]){3, 1, 4, 1, 5, 9, 2, 6}, 8);
    apply(llama_sampler_init_top_k(3), &l);
    assert_int_equal(l.c.size, 3);
    assert_int_equal(l.d[0].id, 5);
    assert_int_equal(l.d[1].id, 7);
    assert_int_equal(l.d[2].id, 4);
    static const int32_t all[] = {0, -1, 8, 100};
    for (int i = 0; i < 4; i++) {
        fill(&l, rising, N);
        apply(llama_sampler_init_top_k(all[i]), &l);
        assert_int_equal(l.c.size, N);
    }
}

static void test_order_against_sorting(void **state) {
    (void) state;
    enum { MANY = 5000 };
    static llama_token_data d[MANY], want[MANY];
    uint32_t rng = 1;
    for (size_t k = 1; k <= MANY; k = k * 3 + 1) {
        for (int i = 0; i < MANY; i++) {
            rng = rng * 1664525 + 1013904223;
            d[i] = want[i] = (llama_token_data){i, (float) (rng >> 24), 0};  // many equal logits
        }
        for (int i = 0; i < MANY; i++) {  // insertion of the first k by the stated order
            for (int j = i; j > 0 && cand_before(&want[j], &want[j - 1]); j--) {
                llama_token_data x = want[j];
                want[j] = want[j - 1];
                want[j - 1] = x;
            }
        }
        llama_token_data_array c = {d, MANY, 17, false};
        llama_token id = d[17].id;
        cand_sort_front(&c, k);
        for (size_t i = 0; i < k; i++) assert_int_equal(d[i].id, want[i].id);
        assert_int_equal(d[c.selected].id, id);  // a choice follows its candidate
    }
}

static void test_top_p_min_p_typical(void **state) {
    (void) state;
    struct list l;
    // probabilities 0.5 0.25 0.125 0.125
    float logits[4] = {logf(0.125f), logf(0.5f), logf(0.125f), logf(0.25f)};
    fill(&l, logits, 4);
    apply(llama_sampler_init_top_p(0.7f, 1), &l);
    assert_int_equal(l.c.size, 2);
    assert_int_equal(l.d[0].id, 1);
    assert_int_equal(l.d[1].id, 3);
    fill(&l, logits, 4);
    apply(llama_sampler_init_top_p(0.0f, 0), &l);
    assert_int_equal(l.c.size, 1);
    assert_int_equal(l.d[0].id, 1);  // the most likely, wherever it stood
    fill(&l, logits, 4);
    apply(llama_sampler_init_top_p(0.1f, 3), &l);
    assert_int_equal(l.c.size, 3);
    fill(&l, logits, 4);
    apply(llama_sampler_init_top_p(1.0f, 1), &l);
    assert_int_equal(l.c.size, 4);
    fill(&l, logits, 4);
    apply(llama_sampler_init_min_p(0.4f, 1), &l);
    assert_int_equal(l.c.size, 2);
    assert_true(holds(&l, 1) && holds(&l, 3));
    fill(&l, logits, 4);
    apply(llama_sampler_init_min_p(2.0f, 1), &l);
    assert_int_equal(l.c.size, 1);
    fill(&l, logits, 4);
    apply(llama_sampler_init_min_p(1.0f, 3), &l);
    assert_int_equal(l.c.size, 3);
    // entropy 1.75 bit: -log2 p are 3 1 3 2, so the nearest is 0.25, then 0.5
    fill(&l, logits, 4);
    apply(llama_sampler_init_typical(0.3f, 1), &l);
    assert_int_equal(l.c.size, 2);
    assert_int_equal(l.d[0].id, 3);
    assert_true(l.d[0].logit == logits[3]);
    assert_true(fabsf(l.d[0].p - 0.25f) < 1e-6f);  // p stays what it was among all
    for (float p = 0.0f; p > -2.0f; p -= 1.0f) {
        fill(&l, logits, 4);
        apply(llama_sampler_init_typical(p, 0), &l);
        assert_int_equal(l.c.size, 1);
        assert_int_equal(l.d[0].id, 3);
    }
}

static void test_temperature(void **state) {
    (void) state;
    struct list l;
    fill(&l, rising, N);
    apply(llama_sampler_init_temp(2.0f), &l);
    assert_true(l.d[7].logit == 3.5f);
    fill(&l, rising, N);
    apply(llama_sampler_init_temp(0.0f), &l);
    for (int i = 0; i < 7; i++) assert_true(l.d[i].logit == -INFINITY);
    assert_true(l.d[7].logit == 7.0f);
    // all equally likely: the highest temperature; one certain: the lowest
    fill(&l, (float[]){2, 2, 2, 2}, 4);
    apply(llama_sampler_init_temp_ext(1.0f, 0.5f, 1.0f), &l);
    assert_true(fabsf(l.d[0].logit - 2 / 1.5f) < 1e-5f);
    fill(&l, (float[]){100, 0, 0, 0}, 4);
    apply(llama_sampler_init_temp_ext(1.0f, 0.5f, 1.0f), &l);
    assert_true(fabsf(l.d[0].logit - 200) < 1e-2f);
    // probabilities are those of the logits as they are now
    fill(&l, (float[]){1, 0}, 2);
    apply(llama_sampler_init_temp_ext(1.0f, 0.5f, 1.0f), &l);
    assert_true(fabsf(l.d[0].p - 1 / (1 + expf(l.d[1].logit - l.d[0].logit))) < 1e-6f);
    assert_true(fabsf(l.d[0].p + l.d[1].p - 1) < 1e-6f);
    fill(&l, rising, N);
    apply(llama_sampler_init_temp_ext(0.5f, 0.0f, 1.0f), &l);
    assert_true(l.d[7].logit == 14.0f);
}

static void test_xtc_and_sigma(void **state) {
    (void) state;
    struct list l;
    float logits[4] = {logf(0.4f), logf(0.3f), logf(0.2f), logf(0.1f)};
    fill(&l, logits, 4);
    apply(llama_sampler_init_xtc(1.0f, 0.15f, 1, 1), &l);
    assert_int_equal(l.c.size, 2);  // of those above 0.15 only the least likely, and what was below
    assert_true(holds(&l, 2) && holds(&l, 3));
    fill(&l, logits, 4);
    apply(llama_sampler_init_xtc(1.0f, 0.15f, 3, 1), &l);
    assert_int_equal(l.c.size, 4);
    fill(&l, logits, 4);
    apply(llama_sampler_init_xtc(0.0f, 0.15f, 1, 1), &l);
    assert_int_equal(l.c.size, 4);
    fill(&l, (float[]){10, 0, 0, 0, -INFINITY, 9}, 6);
    apply(llama_sampler_init_top_n_sigma(1.0f), &l);
    assert_int_equal(l.c.size, 6);  // what is outside stays, without a chance
    assert_true(l.d[0].id == 0 && l.d[1].id == 5 && l.d[1].logit == 9);
    for (int i = 2; i < 6; i++) assert_true(l.d[i].logit == -INFINITY && l.d[i].p == 0);
    fill(&l, rising, N);
    apply(llama_sampler_init_top_n_sigma(-1.0f), &l);
    assert_int_equal(l.c.size, N);
}

// Frequencies of many draws against the probabilities.
static void test_dist(void **state) {
    (void) state;
    struct llama_sampler *s = llama_sampler_init_dist(42);
    struct list l;
    int count[4] = {0};
    enum { DRAWS = 20000 };
    for (int i = 0; i < DRAWS; i++) {
        fill(&l, (float[]){logf(0.1f), logf(0.2f), logf(0.3f), logf(0.4f)}, 4);
        llama_sampler_apply(s, &l.c);
        count[chosen(&l)]++;
    }
    for (int i = 0; i < 4; i++) assert_true(fabs(count[i] / (double) DRAWS - 0.1 * (i + 1)) < 0.015);
    llama_sampler_free(s);
}

static void test_seeds(void **state) {
    (void) state;
    static const uint32_t seeds[] = {42, 43, 0, 0xfffffffe};
    llama_token drawn[4][32], again[32];
    for (int k = 0; k < 5; k++) {
        struct llama_sampler *s = llama_sampler_init_dist(seeds[k % 4]);
        assert_int_equal(llama_sampler_get_seed(s), seeds[k % 4]);
        for (int i = 0; i < 32; i++) {
            struct list l;
            fill(&l, (float[]){0, 0, 0, 0, 0, 0, 0, 0}, 8);
            llama_sampler_apply(s, &l.c);
            *(k < 4 ? &drawn[k][i] : &again[i]) = chosen(&l);
        }
        llama_sampler_free(s);
    }
    assert_memory_equal(drawn[0], again, sizeof again);  // same seed, same text
    for (int a = 0; a < 4; a++) {
        for (int b = 0; b < a; b++) assert_memory_not_equal(drawn[a], drawn[b], sizeof again);
    }
    struct llama_sampler *s = llama_sampler_init_dist(LLAMA_DEFAULT_SEED);
    uint32_t seed = llama_sampler_get_seed(s);
    assert_int_not_equal(seed, LLAMA_DEFAULT_SEED);  // the one really used
    struct llama_sampler *same = llama_sampler_init_dist(seed),
                         *chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    llama_sampler_chain_add(chain, llama_sampler_init_temp(1));
    llama_sampler_chain_add(chain, s);
    assert_int_equal(llama_sampler_get_seed(chain), seed);
    for (int i = 0; i < 32; i++) {
        struct list a, b;
        fill(&a, rising, N);
        fill(&b, rising, N);
        llama_sampler_apply(chain, &a.c);
        llama_sampler_apply(same, &b.c);
        assert_int_equal(chosen(&a), chosen(&b));
    }
    llama_sampler_free(chain);
    llama_sampler_free(same);
}

static void test_odd_logits(void **state) {
    (void) state;
    const float inf = INFINITY, nan = NAN;
    static struct {
        float logits[8];
        llama_token greedy;
        llama_token only;  // what dist must choose, -1: anything finite
    } cases[] = {
        {{0}, 0, 0}, {{0}, 0, 0}, {{0}, 6, -1}, {{0}, 2, 2}, {{0}, 0, -1},
    };
    for (int i = 0; i < 8; i++) {
        cases[0].logits[i] = -inf;  // none is possible: the first
        cases[1].logits[i] = nan;   // none is known: the first
        cases[2].logits[i] = i == 7 ? nan : (float) i;
        cases[3].logits[i] = i == 2 ? inf : 0;
        cases[4].logits[i] = 1e38f;
    }
    for (int k = 0; k < 5; k++) {
        struct list l;
        fill(&l, cases[k].logits, 8);
        apply(llama_sampler_init_greedy(), &l);
        assert_int_equal(chosen(&l), cases[k].greedy);
        for (uint32_t seed = 0; seed < 50; seed++) {
            fill(&l, cases[k].logits, 8);
            apply(llama_sampler_init_dist(seed), &l);
            llama_token t = chosen(&l);
            assert_int_not_equal(t, LLAMA_TOKEN_NULL);
            if (cases[k].only >= 0) assert_int_equal(t, cases[k].only);
            if (k == 2) assert_int_not_equal(t, 7);
        }
    }
}

// Every sampler of ours, with ordinary and with odd parameters.
static struct llama_sampler *make(int i, int odd) {
    static const llama_logit_bias bias[] = {{1, -1}, {3, 2}};
    float bad = odd == 1 ? 0.0f : odd == 2 ? -3.0f : odd == 3 ? NAN : 1e30f;
    float x = odd ? bad : 0.5f;
    switch (i) {
        case 0: return llama_sampler_init_top_k(odd ? -1 : 3);
        case 1: return llama_sampler_init_top_p(x, odd ? 0 : 1);
        case 2: return llama_sampler_init_min_p(x, odd ? 0 : 1);
        case 3: return llama_sampler_init_typical(x, odd ? 0 : 1);
        case 4: return llama_sampler_init_temp(x);
        case 5: return llama_sampler_init_temp_ext(x, x, x);
        case 6: return llama_sampler_init_xtc(odd ? bad : 1.0f, odd ? bad : 0.1f, 0, 1);
        case 7: return llama_sampler_init_top_n_sigma(x);
        case 8: return llama_sampler_init_penalties(N, odd ? -1 : 4, odd ? bad : 1.5f, x, x);
        case 9: return llama_sampler_init_logit_bias(N, 2, bias);
        case 10: return llama_sampler_init_dist(1);
        case 11: return llama_sampler_init_mirostat(N, 1, odd ? bad : 5.0f, odd ? bad : 0.1f, odd ? -1 : 100);
        case 12: return llama_sampler_init_mirostat_v2(1, odd ? bad : 5.0f, odd ? bad : 0.1f);
        case 13: return llama_sampler_init_adaptive_p(x, odd ? bad : 0.9f, 1);
        case 14:
            return llama_sampler_init_dry(NULL, odd ? bad : 0.8f, odd ? bad : 1.75f, odd ? -5 : 2, odd ? -1 : 64, NULL, 0);
        case 15: return llama_sampler_init_greedy();
        default: return NULL;
    }
}
enum { N_MADE = 16 };

// In any order, with anything in the logits: at least one candidate is left, and nothing is written outside.
static void test_any_order(void **state) {
    (void) state;
    uint32_t rng = 5;
    for (int it = 0; it < 3000; it++) {
        struct llama_sampler *chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
        rng = rng * 1664525 + 1013904223;
        int n = (int) (rng >> 29);
        for (int k = 0; k < n; k++) {
            rng = rng * 1664525 + 1013904223;
            llama_sampler_chain_add(chain, make((int) (rng >> 16) % N_MADE, (int) (rng >> 8) % 5));
        }
        assert_int_equal(llama_sampler_chain_n(chain), n);
        for (int round = 0; round < 3; round++) {
            struct list l;
            float logits[N];
            for (int i = 0; i < N; i++) {
                rng = rng * 1664525 + 1013904223;
                static const float odd[] = {NAN, INFINITY, -INFINITY, 1e38f, -1e38f, 0};
                logits[i] = rng >> 28 ? (float) (rng >> 20 & 255) / 16 : odd[rng >> 10 & 3];
            }
            fill(&l, logits, N);
            llama_sampler_apply(chain, &l.c);
            assert_true(l.c.size >= 1 && l.c.size <= N);
            assert_true(l.c.selected < (int64_t) l.c.size);
            llama_token t = chosen(&l);
            llama_sampler_accept(chain, t == LLAMA_TOKEN_NULL ? 2 : t);
        }
        llama_sampler_free(chain);
    }
    ggml_clear_error();
}

// Filters behind the chooser keep its choice or give it up; they never leave a wrong one.
static void test_choosers_and_filters(void **state) {
    (void) state;
    struct llama_sampler *chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    llama_sampler_chain_add(chain, llama_sampler_init_dist(3));
    llama_sampler_chain_add(chain, llama_sampler_init_top_k(4));
    llama_sampler_chain_add(chain, llama_sampler_init_top_p(0.95f, 1));
    int n_kept = 0;
    for (int i = 0; i < 200; i++) {
        struct list l;
        fill(&l, (float[]){1, 1.2f, 0.9f, 1.1f, 1, 1.3f, 0.8f, 1}, N);
        struct llama_sampler *alone = llama_sampler_clone(llama_sampler_chain_get(chain, 0));
        llama_sampler_apply(alone, &l.c);
        llama_token want = chosen(&l);
        llama_sampler_free(alone);
        fill(&l, (float[]){1, 1.2f, 0.9f, 1.1f, 1, 1.3f, 0.8f, 1}, N);
        llama_sampler_apply(chain, &l.c);
        assert_true(chosen(&l) == LLAMA_TOKEN_NULL || chosen(&l) == want);
        n_kept += chosen(&l) == want;
    }
    assert_true(n_kept > 20 && n_kept < 200);
    llama_sampler_free(chain);
}

static void test_bans(void **state) {
    (void) state;
    static const float biases[] = {-100, -INFINITY};
    for (int k = 0; k < 2; k++) {
        llama_logit_bias ban[] = {{7, biases[k]}, {7, 0}, {99, 1}, {-1, 1}};
        struct list l;
        for (uint32_t seed = 0; seed < 200; seed++) {
            struct llama_sampler *chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
            llama_sampler_chain_add(chain, llama_sampler_init_logit_bias(N, 4, ban));
            llama_sampler_chain_add(chain, llama_sampler_init_top_k(4));
            llama_sampler_chain_add(chain, seed % 2 ? llama_sampler_init_dist(seed) : llama_sampler_init_greedy());
            fill(&l, rising, N);
            llama_sampler_apply(chain, &l.c);
            assert_int_not_equal(chosen(&l), 7);
            llama_sampler_free(chain);
        }
        // not in vocabulary order
        fill(&l, rising, N);
        llama_token_data x = l.d[0];
        l.d[0] = l.d[7];
        l.d[7] = x;
        apply(llama_sampler_init_logit_bias(N, 4, ban), &l);
        assert_true(l.d[0].logit == 7 + biases[k]);
        assert_true(l.d[7].logit == 0);
    }
    ggml_clear_error();
    assert_null(llama_sampler_init_logit_bias(N, 1, NULL));
    assert_error("logit biases");
}

static void test_penalties(void **state) {
    (void) state;
    struct list l;
    struct llama_sampler *s = llama_sampler_init_penalties(N, 3, 2.0f, 0.5f, 0.25f);
    static const llama_token said[] = {0, 5, 6, 6};  // 0 falls out of the last three
    for (int i = 0; i < 4; i++) llama_sampler_accept(s, said[i]);
    fill(&l, (float[]){4, 1, 1, 1, 1, 4, -4, 1}, N);
    llama_sampler_apply(s, &l.c);
    assert_true(l.d[0].logit == 4);
    assert_true(l.d[5].logit == 4 / 2.0f - 0.5f - 0.25f);
    assert_true(l.d[6].logit == -4 * 2.0f - 1.0f - 0.25f);
    struct llama_sampler *copy = llama_sampler_clone(s);
    llama_sampler_reset(s);
    fill(&l, rising, N);
    llama_sampler_apply(s, &l.c);
    assert_true(l.d[6].logit == 6);
    fill(&l, rising, N);
    llama_sampler_apply(copy, &l.c);
    assert_true(l.d[6].logit == 6 / 2.0f - 1.0f - 0.25f);
    llama_sampler_copy(copy, s);
    fill(&l, rising, N);
    llama_sampler_apply(s, &l.c);
    assert_true(l.d[6].logit == 6 / 2.0f - 1.0f - 0.25f);
    llama_sampler_free(s);
    llama_sampler_free(copy);
    // negative ones raise what was said
    s = llama_sampler_init_penalties(N, -1, 1.0f, -2.0f, -1.5f);
    llama_sampler_accept(s, 2);
    llama_sampler_accept(s, 2);
    fill(&l, rising, N);
    llama_sampler_apply(s, &l.c);
    assert_true(l.d[2].logit == 2 + 4 + 1.5f);
    llama_sampler_accept(s, -1);
    llama_sampler_accept(s, 1000);
    llama_sampler_free(s);
}

// Length of the longest sequence that token t would go on repeating, by trying all.
static int longest(const llama_token *text, int n, llama_token t) {
    int best = 0;
    for (int i = 0; i < n; i++) {
        if (text[i] != t) continue;
        int k = 0;
        while (k < i && text[i - 1 - k] == text[n - 1 - k]) k++;
        if (k > best) best = k;
    }
    return best;
}

static void test_dry(void **state) {
    (void) state;
    uint32_t rng = 11;
    for (int it = 0; it < 300; it++) {
        struct llama_sampler *s = llama_sampler_init_dry(NULL, 0.5f, 1.5f, 2, 64, NULL, 0);
        llama_token text[64];
        rng = rng * 1664525 + 1013904223;
        int n = (int) (rng >> 26);
        for (int i = 0; i < n; i++) {
            rng = rng * 1664525 + 1013904223;
            text[i] = (llama_token) (rng >> 30);
            llama_sampler_accept(s, text[i]);
        }
        struct list l;
        fill(&l, rising, N);
        llama_sampler_apply(s, &l.c);
        for (int t = 0; t < N; t++) {
            int k = longest(text, n, t);
            float want = (float) t - (k >= 2 ? 0.5f * powf(1.5f, (float) (k - 2)) : 0);
            assert_true(fabsf(l.d[t].logit - want) < 1e-3f);
        }
        llama_sampler_free(s);
    }
    // breakers: a sequence does not reach over a newline
    struct llama_vocab *v = vocab_of_bytes("gpt-2", NULL, 0, NULL);
    const char *breakers[] = {"\n", "x-y", ""};
    static const char *const texts[] = {"ab1cab2c", "ab\ncab\nc", "abx-ycabx-yc"};
    for (int k = 0; k < 3; k++) {
        struct llama_sampler *s = llama_sampler_init_dry(v, 1.0f, 2.0f, 1, -1, breakers, 3);
        for (const char *p = texts[k]; *p; p++) llama_sampler_accept(s, *p);
        llama_token_data d[2] = {{'a', 0, 0}, {'b', 0, 0}};
        llama_token_data_array c = {d, 2, -1, false};
        llama_sampler_apply(s, &c);
        assert_true(d[0].logit == -1.0f);  // "c" is followed by "a", whatever stands before
        struct llama_sampler *copy = llama_sampler_clone(s);
        llama_sampler_accept(copy, 'a');
        d[0].logit = d[1].logit = 0;
        llama_sampler_apply(copy, &c);
        assert_true(d[1].logit == -2.0f);  // "ca" goes on with "b"
        llama_sampler_free(copy);
        llama_sampler_free(s);
    }
    vocab_free(v);
}

static void test_mirostat(void **state) {
    (void) state;
    // the average surprise comes near tau
    for (int version = 1; version <= 2; version++) {
        struct llama_sampler *s = version == 1 ? llama_sampler_init_mirostat(64, 3, 2.0f, 0.1f, 100)
                                               : llama_sampler_init_mirostat_v2(3, 2.0f, 0.1f);
        double sum = 0;
        enum { ROUNDS = 3000 };
        for (int r = 0; r < ROUNDS; r++) {
            struct list l;
            float logits[64];
            double total = 0;
            for (int i = 0; i < 64; i++) {
                logits[i] = -1.2f * logf((float) i + 1);
                total += exp(logits[i]);
            }
            fill(&l, logits, 64);
            llama_sampler_apply(s, &l.c);
            assert_int_not_equal(chosen(&l), LLAMA_TOKEN_NULL);
            sum += -log2(exp(logits[chosen(&l)]) / total);
        }
        assert_true(fabs(sum / ROUNDS - 2.0) < (version == 1 ? 1.0 : 0.8));
        llama_sampler_free(s);
    }
}

static void test_adaptive_p(void **state) {
    (void) state;
    struct llama_sampler *s = llama_sampler_init_adaptive_p(0.3f, 0.9f, 1);
    double sum = 0;
    enum { ROUNDS = 2000 };
    for (int r = 0; r < ROUNDS; r++) {
        struct list l;
        static const float p[5] = {0.5f, 0.25f, 0.15f, 0.07f, 0.03f};
        fill(&l, (float[]){logf(p[0]), logf(p[1]), logf(p[2]), logf(p[3]), logf(p[4])}, 5);
        llama_sampler_apply(s, &l.c);
        assert_in_range(chosen(&l), 0, 4);
        sum += p[(uint32_t) chosen(&l) % 5];
        llama_sampler_accept(s, chosen(&l));
    }
    assert_true(fabs(sum / ROUNDS - 0.3) < 0.05);
    llama_sampler_free(s);
}

static void test_infill(void **state) {
    (void) state;
    const char *tokens[] = {"hel", "hell", "hello", "dummy", "x", "<|im_end|>"};
    static const int32_t types[] = {1, 1, 1, 1, 1, 3};
    const char *merges[] = {"a b"};
    struct llama_vocab *v = vocab_must(&(struct vocab_spec){
        .model = "gpt2", .pre = "gpt-2", .tokens = tokens, .types = types, .n = 6, .merges = merges, .n_merge = 1});
    struct list l;
    fill(&l, (float[]){logf(0.5f), logf(0.2f), logf(0.1f), logf(0.1f), logf(0.09f), logf(0.01f)}, 6);
    apply(llama_sampler_init_infill(v), &l);
    assert_int_equal(l.c.size, 2);  // "hel" has 0.8, the other texts are unlikely; the end stays
    assert_int_equal(l.d[0].id, 0);
    assert_true(l.d[0].p > 0.98f);
    assert_int_equal(l.d[1].id, 5);
    fill(&l, (float[]){0, 0, 0, 0, 0, 2}, 6);
    apply(llama_sampler_init_infill(v), &l);
    assert_int_equal(l.c.size, 1);
    assert_int_equal(l.d[0].id, 5);
    vocab_free(v);
}

// ---- samplers of the program's own, chains

static int n_freed;
static const char *own_name(const struct llama_sampler *s) {
    (void) s;
    return "own";
}
static void own_apply(struct llama_sampler *s, llama_token_data_array *c) {
    (void) s;
    c->selected = (int64_t) c->size - 1;
}
static void own_free(struct llama_sampler *s) {
    (void) s;
    n_freed++;
}

static void test_own_samplers(void **state) {
    (void) state;
    static struct llama_sampler_i iface = {.name = own_name, .apply = own_apply, .free = own_free}, empty;
    struct llama_sampler *s = llama_sampler_init(&iface, NULL), *copy = llama_sampler_clone(s);
    assert_string_equal(llama_sampler_name(s), "own");
    struct list l;
    fill(&l, rising, 3);
    llama_sampler_apply(s, &l.c);
    assert_int_equal(chosen(&l), 2);
    llama_sampler_accept(s, 1);
    llama_sampler_reset(s);
    assert_int_equal(llama_sampler_get_seed(s), LLAMA_DEFAULT_SEED);
    llama_sampler_free(s);
    llama_sampler_free(copy);
    assert_int_equal(n_freed, 2);
    s = llama_sampler_init(&empty, &l);
    ggml_clear_error();
    assert_null(llama_sampler_clone(s));
    assert_error("no clone");
    llama_sampler_free(s);
    assert_null(llama_sampler_init(NULL, NULL));
    assert_error("interface is NULL");
    llama_sampler_free(NULL);
    llama_sampler_apply(NULL, &l.c);
    assert_int_equal(llama_sampler_sample(NULL, NULL, 0), LLAMA_TOKEN_NULL);
    assert_error("NULL");
}

static void test_chain(void **state) {
    (void) state;
    struct llama_sampler *chain = llama_sampler_chain_init((struct llama_sampler_chain_params){.no_perf = false});
    struct llama_sampler *k = llama_sampler_init_top_k(2), *g = llama_sampler_init_greedy();
    llama_sampler_chain_add(chain, k);
    llama_sampler_chain_add(chain, g);
    assert_ptr_equal(llama_sampler_chain_get(chain, 1), g);
    assert_ptr_equal(llama_sampler_chain_get(chain, -1), chain);
    assert_null(llama_sampler_chain_get(chain, 2));
    assert_null(llama_sampler_chain_get(g, -1));
    struct list l;
    fill(&l, rising, N);
    llama_sampler_apply(chain, &l.c);
    llama_sampler_accept(chain, 7);
    assert_int_equal(chosen(&l), 7);
    assert_int_equal(llama_perf_sampler(chain).n_sample, 1);
    llama_perf_sampler_print(chain);
    llama_perf_sampler_reset(chain);
    assert_int_equal(llama_perf_sampler(chain).n_sample, 0);
    struct llama_sampler *copy = llama_sampler_clone(chain);
    assert_int_equal(llama_sampler_chain_n(copy), 2);
    llama_sampler_copy(chain, copy);
    ggml_clear_error();
    llama_sampler_copy(chain, g);
    assert_error("can't be copied");
    assert_ptr_equal(llama_sampler_chain_remove(chain, 0), k);
    assert_int_equal(llama_sampler_chain_n(chain), 1);
    llama_sampler_copy(chain, copy);
    assert_error("chain of 2");
    assert_null(llama_sampler_chain_remove(chain, 5));
    llama_sampler_chain_add(g, k);
    assert_error("not a chain");
    llama_sampler_chain_add(chain, NULL);
    assert_error("NULL");
    llama_sampler_free(k);
    llama_sampler_free(chain);
    llama_sampler_free(copy);
}

// A copy draws what the original draws; a reset one what a new one draws.
static void test_clone_and_reset(void **state) {
    (void) state;
    for (int i = 0; i < N_MADE; i++) {
        struct llama_sampler *s = make(i, 0), *fresh = make(i, 0);
        struct list a, b;
        for (int r = 0; r < 5; r++) {
            fill(&a, rising, N);
            llama_sampler_apply(s, &a.c);
            llama_sampler_accept(s, r);
        }
        struct llama_sampler *copy = llama_sampler_clone(s);
        assert_non_null(copy);
        for (int round = 0; round < 2; round++) {
            fill(&a, rising, N);
            fill(&b, rising, N);
            llama_sampler_apply(s, &a.c);
            llama_sampler_apply(copy, &b.c);
            assert_int_equal(a.c.size, b.c.size);
            assert_int_equal(a.c.selected, b.c.selected);
            for (size_t k = 0; k < a.c.size; k++) {
                assert_int_equal(a.d[k].id, b.d[k].id);
                assert_true(a.d[k].logit == b.d[k].logit);
            }
            llama_sampler_reset(s);
            llama_sampler_copy(fresh, copy);  // second round: both as new
        }
        llama_sampler_free(s);
        llama_sampler_free(copy);
        llama_sampler_free(fresh);
    }
}

// ---- inside the graph

// Runs samplers as graph nodes over logits; gives the token, LLAMA_TOKEN_NULL if none was chosen, and the candidates left in c.
static llama_token in_graph(struct llama_sampler **s, int n, const float *logits, int64_t n_logit, struct list *c) {
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){.mem_size = 1 << 18, .no_alloc = true});
    struct ggml_cgraph *gf = ggml_new_graph(ctx);
    struct ggml_tensor *in = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, n_logit);
    ggml_set_input(in);
    struct llama_sampler_data d = {.logits = ggml_scale(ctx, in, 1.0f)};
    for (int i = 0; i < n; i++) {
        assert_true(s[i]->iface->backend_init(s[i], ggml_backend_cpu_buffer_type(), 1));
        s[i]->iface->backend_apply(s[i], ctx, gf, &d);
    }
    struct ggml_tensor *out[] = {d.logits, d.candidates, d.sampled};
    for (int i = 0; i < 3; i++) {
        if (!out[i]) continue;
        ggml_set_output(out[i]);
        ggml_build_forward_expand(gf, out[i]);
    }
    ggml_backend_buffer_t buf = ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_cpu_buffer_type());
    ggml_backend_t cpu = ggml_backend_cpu_init();
    ggml_backend_tensor_set(in, logits, 0, (size_t) n_logit * sizeof *logits);
    for (int i = 0; i < n; i++) {
        if (s[i]->iface->backend_set_input) s[i]->iface->backend_set_input(s[i]);
    }
    assert_int_equal(ggml_backend_graph_compute(cpu, gf), GGML_STATUS_SUCCESS);
    llama_token token = LLAMA_TOKEN_NULL;
    if (d.sampled) ggml_backend_tensor_get(d.sampled, &token, 0, sizeof token);
    size_t left = (size_t) ggml_nelements(d.logits);
    float l[64];
    int32_t ids[64];
    ggml_backend_tensor_get(d.logits, l, 0, left * sizeof *l);
    if (d.candidates) ggml_backend_tensor_get(d.candidates, ids, 0, left * sizeof *ids);
    for (size_t i = 0; i < left; i++) c->d[i] = (llama_token_data){d.candidates ? ids[i] : (llama_token) i, l[i], 0};
    c->c = (llama_token_data_array){c->d, left, -1, false};
    ggml_backend_free(cpu);
    ggml_backend_buffer_free(buf);
    ggml_free(ctx);
    return token;
}

static void test_in_graph(void **state) {
    (void) state;
    static const float logits[8] = {1, 7, 3, 6.5f, 2, 5, 4, 0};
    struct list l;
    struct llama_sampler *s[4] = {llama_sampler_init_top_k(4), llama_sampler_init_temp(2.0f),
                                  llama_sampler_init_min_p(0.5f, 1), llama_sampler_init_greedy()};
    assert_int_equal(in_graph(s, 4, logits, 8, &l), 1);
    assert_int_equal(l.c.size, 4);
    static const llama_token ids[4] = {1, 3, 5, 6};
    static const float left[4] = {3.5f, 3.25f, -INFINITY, -INFINITY};  // exp(2.5 - 3.5) is below a half
    for (int i = 0; i < 4; i++) {
        assert_int_equal(l.d[i].id, ids[i]);
        assert_true(l.d[i].logit == left[i]);
    }
    for (int i = 0; i < 4; i++) llama_sampler_free(s[i]);
    // draws follow the probabilities, through the ids of top-k
    struct llama_sampler *draw[2] = {llama_sampler_init_top_k(3), llama_sampler_init_dist(5)};
    float p[5] = {logf(0.1f), logf(0.4f), logf(0.05f), logf(0.3f), logf(0.15f)};
    int count[5] = {0};
    enum { DRAWS = 1500 };
    for (int i = 0; i < DRAWS; i++) {
        llama_token t = in_graph(draw, 2, p, 5, &l);
        assert_in_range(t, 0, 4);
        count[t]++;
    }
    assert_int_equal(count[0] + count[2], 0);
    assert_true(fabs(count[1] / (double) DRAWS - 0.4 / 0.85) < 0.05);
    assert_true(fabs(count[3] / (double) DRAWS - 0.3 / 0.85) < 0.05);
    llama_sampler_free(draw[0]);
    llama_sampler_free(draw[1]);
    // a ban moves the choice on; a bias in favour brings another to the top
    const llama_logit_bias bias[3] = {{1, -INFINITY}, {6, 2.25f}, {99, 5}};
    struct llama_sampler *banned[2] = {llama_sampler_init_logit_bias(8, 1, bias), llama_sampler_init_greedy()};
    assert_int_equal(in_graph(banned, 2, logits, 8, &l), 3);
    assert_true(l.d[1].logit == -INFINITY && l.d[2].logit == 3);
    llama_sampler_free(banned[0]);
    banned[0] = llama_sampler_init_logit_bias(8, 3, bias);
    assert_int_equal(in_graph(banned, 2, logits, 8, &l), 3);
    assert_true(l.d[6].logit == 6.25f);
    llama_sampler_free(banned[0]);
    struct llama_sampler *late[3] = {llama_sampler_init_top_k(3), llama_sampler_init_logit_bias(8, 1, bias), banned[1]};
    assert_int_equal(in_graph(late, 3, logits, 8, &l), 3);  // behind a filter, by the ids that are left
    llama_sampler_free(late[0]);
    llama_sampler_free(late[1]);
    llama_sampler_free(banned[1]);
    // temperature 0: one candidate is left
    struct llama_sampler *cold[2] = {llama_sampler_init_temp(0), llama_sampler_init_dist(1)};
    assert_int_equal(in_graph(cold, 2, logits, 8, &l), 1);
    assert_int_equal(l.c.size, 1);
    llama_sampler_free(cold[0]);
    llama_sampler_free(cold[1]);
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_top_k),
        cmocka_unit_test(test_order_against_sorting),
        cmocka_unit_test(test_top_p_min_p_typical),
        cmocka_unit_test(test_temperature),
        cmocka_unit_test(test_xtc_and_sigma),
        cmocka_unit_test(test_dist),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_odd_logits),
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_choosers_and_filters),
        cmocka_unit_test(test_bans),
        cmocka_unit_test(test_penalties),
        cmocka_unit_test(test_dry),
        cmocka_unit_test(test_mirostat),
        cmocka_unit_test(test_adaptive_p),
        cmocka_unit_test(test_infill),
        cmocka_unit_test(test_own_samplers),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_clone_and_reset),
        cmocka_unit_test(test_in_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
