// What a token costs outside of the kernels, to be counted by graph.sh beside this file. Every graph is built again (anew) because a
// control vector of no layers is set before each token; (sizes) because batches have more sizes than there are graphs kept.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "ggml/ext.h"
#include "llama.h"

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, ggml_last_error());
    return 1;
}

static void fill(struct llama_batch *b, int *pos, int n) {
    b->n_tokens = n;
    for (int k = 0; k < n; k++) {
        b->token[k] = 100 + *pos;
        b->pos[k] = (*pos)++;
        b->n_seq_id[k] = 1;
        b->seq_id[k][0] = 0;
        b->logits[k] = k == n - 1;
    }
}

static int run(struct llama_context *c, int n_embd, const char *mode, int n) {
    struct llama_batch b = llama_batch_init(8, 0, 1);
    const int sizes = strcmp(mode, "sizes") == 0 ? 8 : strcmp(mode, "turns") == 0 ? 2 : 1;
    float *none = calloc((size_t) n_embd, sizeof *none);
    int pos = 0, status = b.token && none ? 0 : 1;
    for (int i = -4; i < n && status == 0; i++) {
        if (strcmp(mode, "anew") == 0) llama_set_adapter_cvec(c, none, 0, n_embd, 1, 1);
        fill(&b, &pos, 1 + (i & (sizes - 1)));
        status = llama_decode(c, b);
    }
    free(none);
    llama_batch_free(b);
    return status ? fail("decode") : 0;
}

int main(int argc, char **argv) {
    long n = 16;
    const struct bench_option options[] = {{"-n", &n, 1, "batches to decode"}};
    const int i = bench_args(
        argc, argv, "MODEL.gguf same|turns|anew|sizes",
        "What a token costs outside of the kernels, to be counted by bench/graph.sh: decodes batches on one thread, of "
        "one token each (same), of one and of two in turn (turns), of one with every graph built again (anew), or of one to "
        "eight in turn, of which no graph is kept (sizes).",
        options, sizeof options / sizeof *options);
    if (argc - i != 2) {
        fprintf(stderr, "error: a model and one of same, turns, anew, sizes are needed; see %s -h\n", argv[0]);
        return 2;
    }
    struct llama_model *m = llama_model_load_from_file(argv[i], llama_model_default_params());
    if (!m) return fail(argv[i]);
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 512;
    cp.n_ubatch = 64;
    cp.n_threads = cp.n_threads_batch = 1;
    struct llama_context *c = llama_init_from_model(m, cp);
    const int status = c ? run(c, llama_model_n_embd(m), argv[i + 1], (int) n) : fail("context");
    llama_free(c);
    llama_model_free(m);
    return status;
}
