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

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_graph)};
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
