// The same bits whatever the threads, the micro-batch and the neighbours: the logits of a 512-token prompt of a real model. Skipped,
// with a word, where the default model is not in the cache.
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ggml/ext.h"
#include "llama.h"

enum { N = 512 };

struct way {
    int n_threads, n_ubatch;
    bool neighbour;  // another sequence in the same batch
};

static struct llama_model *model;

static llama_token token(int i, int seq) {
    return (llama_token) ((7 + 37 * i + 1001 * seq) % llama_vocab_n_tokens(llama_model_get_vocab(model)));
}

// A hash of the logits of all N positions of sequence 0, and those of the last position.
static uint64_t run(const struct way *w, float *last) {
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = 2 * N;
    p.n_batch = 2 * N;
    p.n_ubatch = (uint32_t) w->n_ubatch;
    p.n_seq_max = 2;
    p.n_threads = p.n_threads_batch = w->n_threads;
    struct llama_context *c = llama_init_from_model(model, p);
    assert_non_null(c);
    struct llama_batch b = llama_batch_init(2 * N, 0, 1);
    for (int i = 0; i < N; i++)
        for (int s = 0; s < (w->neighbour ? 2 : 1); s++) {
            const int k = b.n_tokens++;
            b.token[k] = token(i, s);
            b.pos[k] = i;
            b.n_seq_id[k] = 1;
            b.seq_id[k][0] = s;
            b.logits[k] = s == 0 && (i % 64 == 63 || i < 8);
        }
    assert_int_equal(llama_decode(c, b), 0);
    const int n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
    uint64_t h = 0xcbf29ce484222325u;
    for (int k = 0; k < b.n_tokens; k++) {
        if (!b.logits[k]) continue;
        const float *x = llama_get_logits_ith(c, k);
        assert_non_null(x);
        for (size_t i = 0; i < (size_t) n_vocab * 4; i++) h = (h ^ ((const unsigned char *) x)[i]) * 0x100000001b3u;
        if (b.pos[k] == N - 1) memcpy(last, x, (size_t) n_vocab * 4);
    }
    llama_batch_free(b);
    llama_free(c);
    return h;
}

static void test_equal_bits(void **state) {
    (void) state;
    static const struct way ways[] = {{1, 512, false}, {2, 512, false}, {3, 512, false}, {5, 512, false}, {2, 64, false},
                                      {3, 7, false},   {2, 1, false},   {2, 512, true},  {3, 64, true}};
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME"), *given = getenv("LAMINA_SMOLLM2");
    char path[4096];
    if (given)
        snprintf(path, sizeof(path), "%s", given);
    else if (cache)
        snprintf(path, sizeof(path), "%s/lamina/SmolLM2-135M-Instruct.Q4_1.gguf", cache);
    else
        snprintf(path, sizeof(path), "%s/.cache/lamina/SmolLM2-135M-Instruct.Q4_1.gguf", home ? home : "");
    if (access(path, R_OK) != 0) {
        print_message("no model at %s (./try fetches it)\n", path);
        skip();
    }
    model = llama_model_load_from_file(path, llama_model_default_params());
    assert_non_null(model);
    const size_t n = (size_t) llama_vocab_n_tokens(llama_model_get_vocab(model));
    float *first = malloc(n * 4), *other = malloc(n * 4);
    assert_true(first && other);
    const uint64_t want = run(&ways[0], first);
    for (size_t i = 1; i < sizeof(ways) / sizeof(ways[0]); i++) {
        const uint64_t got = run(&ways[i], other);
        print_message("%d threads, micro-batch %d%s: %016llx\n", ways[i].n_threads, ways[i].n_ubatch,
                      ways[i].neighbour ? ", a neighbour" : "", (unsigned long long) got);
        assert_memory_equal(first, other, n * 4);
        assert_true(got == want);
    }
    free(first);
    free(other);
    llama_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_equal_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
