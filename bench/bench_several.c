// Several sequences decoding together beside one alone: tokens per second of each, medians of alternating rounds, and how many times
// the one the several are. Every sequence has a prompt of its own in the cache and its logits read for every token.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "args.h"
#include "ggml-cpu.h"
#include "ggml/ext.h"
#include "llama.h"

enum { PROMPT = 32, ROUNDS = 64 };

static long n_seq = 8, n_gen = 12, n_round = 5, n_thread;

static const struct bench_option options[] = {
    {"-s", &n_seq, 1, "sequences that decode together"},
    {"-n", &n_gen, 1, "tokens that each of them generates in a round"},
    {"-r", &n_round, 1, "rounds"},
    {"-t", &n_thread, 1, "threads"},
};

static void add(struct llama_batch *b, llama_token token, llama_pos pos, llama_seq_id seq, bool logits) {
    const int i = b->n_tokens++;
    b->token[i] = token, b->pos[i] = pos, b->n_seq_id[i] = 1, b->seq_id[i][0] = seq, b->logits[i] = logits;
}

static llama_token best_of(const float *logits, int n) {
    int best = 0;
    for (int i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static bool failed(struct llama_context *c, struct llama_batch b) {
    if (llama_decode(c, b) == 0) return false;
    fprintf(stderr, "error: %s\n", ggml_last_error());
    return true;
}

// Gives n sequences their prompts, other tokens in each; next[] gets what comes after them.
static bool read_prompts(struct llama_context *c, struct llama_batch *b, long n, int n_vocab, llama_token *next) {
    llama_memory_clear(llama_get_memory(c), true);
    for (int s = 0; s < n; s++) {
        b->n_tokens = 0;
        for (int i = 0; i < PROMPT; i++) add(b, (llama_token) ((100 + 131 * s + 17 * i) % n_vocab), i, s, i == PROMPT - 1);
        if (failed(c, *b)) return false;
        next[s] = best_of(llama_get_logits_ith(c, -1), n_vocab);
    }
    return true;
}

// Tokens per second of n sequences; 0 when something failed.
static double decode(struct llama_context *c, struct llama_batch *b, long n, int n_vocab) {
    llama_token next[64];
    int64_t us = 0;
    if (!read_prompts(c, b, n, n_vocab, next)) return 0;
    for (int i = 0; i < n_gen; i++) {
        b->n_tokens = 0;
        for (int s = 0; s < n; s++) add(b, next[s], PROMPT + i, s, true);
        const int64_t start = ggml_time_us();
        if (failed(c, *b)) return 0;
        us += ggml_time_us() - start;
        for (int s = 0; s < n; s++) next[s] = best_of(llama_get_logits_ith(c, s), n_vocab);
    }
    return 1e6 * (double) (n * n_gen) / (double) us;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

static int measure(struct llama_context *c, const char *path, int n_vocab) {
    struct llama_batch b = llama_batch_init(PROMPT > n_seq ? PROMPT : (int32_t) n_seq, 0, 1);
    double one[ROUNDS], all[ROUNDS];
    bool good = decode(c, &b, 1, n_vocab) > 0;  // the first round reads the file
    for (int i = 0; i < n_round && good; i++) {
        one[i] = decode(c, &b, 1, n_vocab);
        all[i] = decode(c, &b, n_seq, n_vocab);
        good = one[i] > 0 && all[i] > 0;
    }
    llama_batch_free(b);
    if (!good) return 1;
    qsort(one, (size_t) n_round, sizeof *one, by_value);
    qsort(all, (size_t) n_round, sizeof *all, by_value);
    const double x = one[n_round / 2], y = all[n_round / 2];
    printf("%s: one %.1f tokens/s, %ld together %.1f tokens/s, %.2f times one\n", path, x, n_seq, y, y / x);
    return 0;
}

int main(int argc, char **argv) {
    n_thread = ggml_cpu_default_threads();
    const int from = bench_args(argc, argv, "MODEL.gguf",
                                "Tokens per second of several sequences that decode together, and of one alone.", options,
                                sizeof options / sizeof *options);
    if (argc - from != 1 || n_seq > 64 || n_round > ROUNDS) {
        fprintf(stderr, "error: one model, at most 64 sequences and %d rounds; see %s -h\n", ROUNDS, argv[0]);
        return 2;
    }
    struct llama_model *m = llama_model_load_from_file(argv[from], llama_model_default_params());
    struct llama_context_params cp = llama_context_default_params();
    cp.n_seq_max = (uint32_t) n_seq;
    cp.n_ctx = (uint32_t) (n_seq * 64 * ((PROMPT + n_gen + 63) / 64));
    cp.n_threads = cp.n_threads_batch = (int32_t) n_thread;
    struct llama_context *c = m ? llama_init_from_model(m, cp) : NULL;
    if (!c) fprintf(stderr, "%s: %s\n", argv[from], ggml_last_error());
    const int status = c ? measure(c, argv[from], llama_vocab_n_tokens(llama_model_get_vocab(m))) : 1;
    llama_free(c);
    llama_model_free(m);
    return status;
}
