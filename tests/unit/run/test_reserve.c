// What is reserved when a context is made is enough for every batch: random sizes, sequences and outputs, in random order, and nothing
// is allocated from the heap, no buffer grows.
#include "support/alloc.h"
#include "test.h"

#include "llama/ext.h"
#include "model_maker.h"

static uint32_t state;

static int below(int n) {
    state = state * 1664525u + 1013904223u;
    return (int) ((state >> 8) % (uint32_t) n);
}

enum { N_CTX = 512, MAX_SEQ = 8 };

static int n_batches(void) { return test_small() ? 12 : 60; }

struct setting {
    const char *name;
    int n_batch, n_ubatch, n_seq;
    bool flash, unified, embeddings;
    int n_outputs_max;
    enum ggml_type type_kv;
};

// A batch of a random number of tokens, spread over a random number of sequences; begins anew where the cache is full.
static bool fill(struct llama_batch *b, const struct setting *s, int pos[MAX_SEQ], int n) {
    const int share = s->unified ? N_CTX / s->n_seq : N_CTX / s->n_seq, n_used = 1 + below(s->n_seq);
    b->n_tokens = 0;
    int n_out = 0;
    for (int i = 0; i < n; i++) {
        const int q = below(n_used), k = b->n_tokens;
        if (pos[q] >= share) continue;
        b->token[k] = below(MAKER_N_VOCAB);
        b->pos[k] = pos[q]++;
        b->n_seq_id[k] = 1;
        b->seq_id[k][0] = q;
        b->logits[k] = n_out < s->n_outputs_max && below(3) == 0;
        n_out += b->logits[k];
        b->n_tokens++;
    }
    return b->n_tokens > 0;
}

static void check(const struct setting *s, uint32_t seed) {
    state = seed;
    struct llama_model *m = llama_model_load_from_file(maker_path(s->name, GGML_TYPE_F32), llama_model_default_params());
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = N_CTX;
    cp.n_batch = (uint32_t) s->n_batch;
    cp.n_ubatch = (uint32_t) s->n_ubatch;
    cp.n_seq_max = (uint32_t) s->n_seq;
    cp.n_outputs_max = (uint32_t) s->n_outputs_max;
    cp.kv_unified = s->unified;
    cp.embeddings = s->embeddings;
    cp.type_k = cp.type_v = s->type_kv;
    cp.swa_full = seed % 2;
    cp.n_threads = cp.n_threads_batch = 2;
    cp.flash_attn_type = s->flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    struct llama_context *c = llama_init_from_model(m, cp);
    assert_non_null(c);
    struct llama_device_bytes before[8], after[8];
    const int n_dev = llama_context_bytes(c, before, 8);
    struct llama_batch b = llama_batch_init(s->n_batch, 0, 1);
    int pos[MAX_SEQ] = {0};
    for (int i = n_batches(); i > 0; i--) {
        const int n = 1 + (below(2) ? below(s->n_batch) : below(s->n_batch < 12 ? s->n_batch : 12));
        if (!fill(&b, s, pos, n)) {
            llama_memory_clear(llama_get_memory(c), true);
            memset(pos, 0, sizeof pos);
            continue;
        }
        alloc_start(0);
        const int r = llama_decode(c, b);
        const int64_t n_made = alloc_stop();
        if (r) print_error("%s: decoding gives %d: %s\n", s->name, r, ggml_last_error());
        assert_int_equal(r, 0);
        if (ALLOC_COUNTED && n_made)
            print_error("%s: ubatch %d of %d, %d sequences, flash %d, %s: batch %d of %d tokens makes %lld allocations\n",
                        s->name, s->n_ubatch, s->n_batch, s->n_seq, s->flash, ggml_type_name(s->type_kv), i, b.n_tokens,
                        (long long) n_made);
        if (ALLOC_COUNTED) assert_int_equal(n_made, 0);
    }
    assert_int_equal(llama_context_bytes(c, after, 8), n_dev);
    for (int i = 0; i < n_dev; i++) {
        assert_int_equal(before[i].compute, after[i].compute);
        assert_int_equal(before[i].work, after[i].work);
        assert_int_equal(before[i].outputs, after[i].outputs);
        assert_int_equal(before[i].graph, after[i].graph);
    }
    llama_batch_free(b);
    llama_free(c);
    llama_model_free(m);
}

// The process's team of threads is made by the first product that wants it.
static void warm(void) {
    struct llama_model_params mp = llama_model_default_params();
    mp.n_gpu_layers = 0;
    struct llama_model *m = llama_model_load_from_file(maker_path("llama", GGML_TYPE_F32), mp);
    struct llama_context_params cp = llama_context_default_params();
    cp.n_threads = cp.n_threads_batch = 2;
    struct llama_context *c = llama_init_from_model(m, cp);
    int32_t t[64] = {0};
    assert_int_equal(llama_decode(c, llama_batch_get_one(t, 64)), 0);
    llama_free(c);
    llama_model_free(m);
}

static void test_random(void **state_) {
    (void) state_;
    warm();
    static const char *const names[] = {"llama", "llama-moe", "gemma3", "gpt2", "mamba2", "falcon-h1", "deepseek2"};
    static const enum ggml_type types[] = {GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_Q8_0};
    const uint32_t n_setting = test_small() ? 7 : ALLOC_COUNTED ? 84 : 14;  // sanitizers take ten times as long for each
    for (uint32_t k = 0; k < n_setting; k++) {
        state = k;
        for (int i = 0; i < 5; i++) below(2);
        static const int batches[] = {512, 256, 100, 8}, seqs[] = {1, 1, 2, 4, 8};
        struct setting s = {.name = names[k % 7],
                            .n_batch = batches[below(4)],
                            .n_seq = seqs[below(5)],
                            .flash = below(3) != 0,
                            .unified = below(2),
                            .type_kv = types[below(3)]};
        s.n_ubatch = below(2) ? s.n_batch : 1 + below(s.n_batch);
        s.n_outputs_max = below(2) ? s.n_batch : s.n_seq;
        check(&s, k);
    }
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
