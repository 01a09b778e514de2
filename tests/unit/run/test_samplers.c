// Samplers inside the graph: the same tokens as outside, per sequence; a program's own sampler; chains that can't are refused.
#include "test.h"

#include "model_maker.h"

static int n_applied;

static const char *own_name(const struct llama_sampler *s) {
    (void) s;
    return "own";
}
static bool own_init(struct llama_sampler *s, ggml_backend_buffer_type_t b, uint32_t n) {
    (void) s, (void) b, (void) n;
    return true;
}
// The least likely token, with its logits turned round as the remaining candidates.
static void own_apply(struct llama_sampler *s, struct ggml_context *ctx, struct ggml_cgraph *gf,
                      struct llama_sampler_data *d) {
    (void) s;
    n_applied++;
    d->logits = ggml_neg(ctx, d->logits);
    d->sampled = ggml_argmax(ctx, ggml_reshape_2d(ctx, d->logits, ggml_nelements(d->logits), 1));
    ggml_build_forward_expand(gf, d->sampled);
}
static struct llama_sampler_i own_iface = {.name = own_name, .backend_init = own_init, .backend_apply = own_apply};

static int best(const float *x, float sign) {
    int k = 0;
    for (int i = 1; i < MAKER_N_VOCAB; i++)
        if (sign * x[i] > sign * x[k]) k = i;
    return k;
}

static void test_graph(void **st) {
    (void) st;
    struct llama_model *m = llama_model_load_from_file(maker_path("llama", GGML_TYPE_F32), llama_model_default_params());
    struct llama_context_params cp = llama_context_default_params();
    cp.n_seq_max = 3;
    cp.kv_unified = true;
    cp.n_threads = cp.n_threads_batch = 2;
    struct llama_context *c = llama_init_from_model(m, cp);
    struct llama_sampler *chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    llama_sampler_chain_add(chain, llama_sampler_init_greedy());
    struct llama_sampler *own = llama_sampler_init(&own_iface, NULL);
    static struct llama_sampler_i outside_iface = {.name = own_name};
    struct llama_sampler *outside = llama_sampler_init(&outside_iface, NULL);
    assert_true(llama_set_sampler(c, 0, chain));
    assert_true(llama_set_sampler(c, 1, own));
    assert_false(llama_set_sampler(c, 2, outside));
    assert_false(llama_set_sampler(c, 3, chain));
    struct llama_batch b = llama_batch_init(64, 0, 1);
    for (int pos = 0; pos < 20; pos++) {
        b.n_tokens = 3;
        for (int q = 0; q < 3; q++) {
            b.token[q] = (3 * pos + q) % MAKER_N_VOCAB;
            b.pos[q] = pos;
            b.n_seq_id[q] = 1;
            b.seq_id[q][0] = pos % 2 ? q : 2 - q;
            b.logits[q] = pos % 3 || b.seq_id[q][0] != 1;
        }
        assert_int_equal(llama_decode(c, b), 0);
        for (int q = 0; q < 3; q++) {
            const int seq = b.seq_id[q][0];
            const llama_token t = llama_get_sampled_token_ith(c, q);
            // Nothing removed: as many logits as tokens, ids in order, and no candidates of the sampler's own.
            assert_int_equal(llama_get_sampled_logits_count_ith(c, q), MAKER_N_VOCAB);
            for (int k = 0; k < MAKER_N_VOCAB; k++) assert_int_equal(llama_get_sampled_candidates_ith(c, q)[k], k);
            assert_int_equal(llama_get_sampled_candidates_count_ith(c, q), 0);
            if (!b.logits[q] || seq == 2) {
                assert_int_equal(t, LLAMA_TOKEN_NULL);
                assert_null(llama_get_sampled_logits_ith(c, q));
                continue;
            }
            assert_int_equal(t, best(llama_get_logits_ith(c, q), seq == 0 ? 1.0f : -1.0f));
            if (seq == 0) assert_int_equal(llama_sampler_sample(chain, c, q), t);
            if (seq == 1) assert_true(llama_get_sampled_logits_ith(c, q)[5] == -llama_get_logits_ith(c, q)[5]);
            assert_int_equal(llama_get_sampled_probs_count_ith(c, q), 0);
            assert_null(llama_get_sampled_probs_ith(c, q));
        }
    }
    assert_true(n_applied > 0);
    assert_true(llama_set_sampler(c, 0, NULL));
    assert_true(llama_set_sampler(c, 1, NULL));
    assert_int_equal(llama_get_sampled_token_ith(c, 0), LLAMA_TOKEN_NULL);
    llama_batch_free(b);
    llama_sampler_free(chain);
    llama_sampler_free(own);
    llama_sampler_free(outside);
    llama_free(c);
    llama_model_free(m);
}

// ---- every chain, inside and outside ----------------------------------------------------------------------------------------

static struct llama_sampler *make(int kind, uint32_t seed) {
    const llama_logit_bias bias[] = {{3, 2.0f}, {7, -INFINITY}};
    switch (kind) {
        case 0: return llama_sampler_init_top_k(20);
        case 1: return llama_sampler_init_top_p(0.8f, 1);
        case 2: return llama_sampler_init_min_p(0.2f, 1);
        case 3: return llama_sampler_init_typical(0.7f, 1);
        case 4: return llama_sampler_init_temp(0.7f);
        case 5: return llama_sampler_init_temp_ext(0.9f, 0.4f, 1.2f);
        case 6: return llama_sampler_init_xtc(0.6f, 0.02f, 1, seed + 1);
        case 7: return llama_sampler_init_top_n_sigma(1.5f);
        case 8: return llama_sampler_init_penalties(MAKER_N_VOCAB, 16, 1.3f, 0.1f, 0.2f);
        case 9: return llama_sampler_init_logit_bias(MAKER_N_VOCAB, 2, bias);
        case 10: return llama_sampler_init_dist(seed);
        case 11: return llama_sampler_init_greedy();
        case 12: return llama_sampler_init_mirostat(MAKER_N_VOCAB, seed, 4.0f, 0.2f, 60);
        case 13: return llama_sampler_init_mirostat_v2(seed, 4.0f, 0.2f);
        case 14: return llama_sampler_init_adaptive_p(0.3f, 0.9f, seed);
        default: return llama_sampler_init_temp(0.0f);
    }
}

enum { N_KIND = 16, N_STEP = 30 };

// Up to six samplers; kinds from 10 to 14 choose, and come last where there is one. Without one the most likely is taken.
static struct llama_sampler *random_chain(uint32_t *r, uint32_t seed, char *text, size_t n_text) {
    struct llama_sampler *chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    const int n = (int) ((*r = *r * 1664525u + 1013904223u) >> 16) % 6;
    text[0] = 0;
    for (int i = 0; i <= n; i++) {
        int kind = (int) ((*r = *r * 1664525u + 1013904223u) >> 16) % (i < n ? 10 : N_KIND);
        struct llama_sampler *s = make(kind, seed);
        const size_t at = strlen(text);
        snprintf(text + at, n_text - at, " %s", llama_sampler_name(s));
        llama_sampler_chain_add(chain, s);
    }
    return chain;
}

static struct llama_context *context_of(struct llama_model *m, struct llama_sampler_seq_config *samplers, size_t n) {
    struct llama_context_params cp = llama_context_default_params();
    cp.n_seq_max = 2;
    cp.n_threads = cp.n_threads_batch = 2;
    cp.samplers = samplers;
    cp.n_samplers = n;
    struct llama_context *c = llama_init_from_model(m, cp);
    assert_non_null(c);
    return c;
}

static void check_chains(struct llama_model *m, int n_chain, uint32_t r) {
    for (int k = 0; k < n_chain; k++) {
        char text[256];
        const uint32_t seed = 100u + (uint32_t) k;
        uint32_t same = r;
        struct llama_sampler *in = random_chain(&r, seed, text, sizeof text),
                             *out = random_chain(&same, seed, text, sizeof text);
        struct llama_sampler_seq_config conf = {0, in};
        struct llama_context *a = context_of(m, &conf, 1), *b = context_of(m, NULL, 0);
        llama_token ta = (llama_token) k % MAKER_N_VOCAB, tb = ta;
        for (int i = 0; i < N_STEP; i++) {
            assert_int_equal(llama_decode(a, llama_batch_get_one(&ta, 1)), 0);
            assert_int_equal(llama_decode(b, llama_batch_get_one(&tb, 1)), 0);
            assert_non_null(llama_get_sampled_logits_ith(a, 0));
            assert_null(llama_get_sampled_logits_ith(b, 0));
            ta = llama_sampler_sample(in, a, -1);
            tb = llama_sampler_sample(out, b, -1);
            if (ta != tb) print_error("chain %d (%s): token %d inside the graph, %d outside, at %d\n", k, text, ta, tb, i);
            assert_int_equal(ta, tb);
        }
        // what is left is told, and nothing that was banned
        const uint32_t n = llama_get_sampled_logits_count_ith(a, 0);
        const llama_token *ids = llama_get_sampled_candidates_ith(a, 0);
        const float *logits = llama_get_sampled_logits_ith(a, 0), *probs = llama_get_sampled_probs_ith(a, 0);
        bool found = false;
        for (uint32_t i = 0; i < n; i++) found |= (ids ? ids[i] : (llama_token) i) == ta && logits[i] > -INFINITY;
        assert_true(found);
        for (uint32_t i = 0; probs && i < llama_get_sampled_probs_count_ith(a, 0); i++)
            assert_true(probs[i] >= 0 && probs[i] <= 1.0001f);
        llama_free(a);
        llama_free(b);
        llama_sampler_free(in);
        llama_sampler_free(out);
    }
}

static void test_chains(void **st) {
    (void) st;
    struct llama_model *m = llama_model_load_from_file(maker_path("llama", GGML_TYPE_F32), llama_model_default_params());
    assert_non_null(m);
    check_chains(m, test_small() ? 30 : 120, 1);
    llama_model_free(m);
}

// A sampler alone, set and taken away between batches; the graph follows.
static void test_alone(void **st) {
    (void) st;
    struct llama_model *m = llama_model_load_from_file(maker_path("llama", GGML_TYPE_F32), llama_model_default_params());
    struct llama_context *a = context_of(m, NULL, 0), *b = context_of(m, NULL, 0);
    for (int kind = 0; kind < N_KIND; kind++) {
        struct llama_sampler *in = make(kind, 5), *out = make(kind, 5);
        assert_true(llama_set_sampler(a, 0, in));
        llama_token t = 3;
        assert_int_equal(llama_decode(a, llama_batch_get_one(&t, 1)), 0);
        assert_int_equal(llama_decode(b, llama_batch_get_one(&t, 1)), 0);
        assert_int_equal(llama_sampler_sample(in, a, 0), llama_sampler_sample(out, b, 0));
        assert_true(llama_set_sampler(a, 0, NULL));
        assert_null(llama_get_sampled_logits_ith(a, 0));
        llama_sampler_free(in);
        llama_sampler_free(out);
    }
    // a chain that mixes a program's own nodes with what has none runs outside
    struct llama_sampler *mixed = llama_sampler_chain_init(llama_sampler_chain_default_params());
    assert_false(llama_set_sampler(a, 0, mixed));  // empty
    llama_sampler_chain_add(mixed, llama_sampler_init(&own_iface, NULL));
    assert_true(llama_set_sampler(a, 0, mixed));
    llama_sampler_chain_add(mixed, make(1, 0));
    assert_false(llama_set_sampler(a, 0, mixed));
    llama_sampler_free(mixed);
    llama_free(a);
    llama_free(b);
    llama_model_free(m);
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_graph), cmocka_unit_test(test_chains),
                                       cmocka_unit_test(test_alone)};
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
