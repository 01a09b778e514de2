// Vocabularies on one thread: milliseconds to load (best of 5), MB/s of text to tokens and back (best of 3).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "ggml/ext.h"
#include "llama.h"

static char *read_all(const char *path, int32_t *n) {
    FILE *f = fopen(path, "rb");
    const size_t room = (size_t) 64 << 20;
    char *p = f ? malloc(room) : NULL;
    *n = p ? (int32_t) fread(p, 1, room, f) : 0;
    if (f) fclose(f);
    return p;
}

static double now_ms(void) { return (double) ggml_time_us() / 1e3; }

static struct llama_model *load(const char *path, double *best) {
    struct llama_model_params mp = llama_model_default_params();
    struct llama_model *m = NULL;
    mp.vocab_only = true;
    for (int i = 0; i < 5; i++) {
        llama_model_free(m);
        const double start = now_ms();
        m = llama_model_load_from_file(path, mp);
        const double ms = now_ms() - start;
        if (i == 0 || ms < *best) *best = ms;
    }
    return m;
}

static int measure(const char *path, const char *text, int32_t n_text) {
    double load_ms = 0, encode_ms = 1e30, decode_ms = 1e30;
    struct llama_model *m = load(path, &load_ms);
    if (!m) {
        fprintf(stderr, "%s: %s\n", path, ggml_last_error());
        return 1;
    }
    const struct llama_vocab *v = llama_model_get_vocab(m);
    llama_token *t = malloc(sizeof(*t) * ((size_t) n_text + 16));
    char *back = malloc((size_t) n_text * 4 + 64);
    int32_t n = 0, n_back = 0;
    for (int i = 0; t && back && i < 3; i++) {
        double start = now_ms();
        n = llama_tokenize(v, text, n_text, t, n_text + 16, true, false);
        if (now_ms() - start < encode_ms) encode_ms = now_ms() - start;
        start = now_ms();
        n_back = n > 0 ? llama_detokenize(v, t, n, back, n_text * 4 + 64, true, false) : 0;
        if (now_ms() - start < decode_ms) decode_ms = now_ms() - start;
    }
    const char *name = strrchr(path, '/');
    printf("%-36s %8d %8.1f %10d %10.1f %10.1f\n", name ? name + 1 : path, llama_vocab_n_tokens(v), load_ms, n,
           n_text / encode_ms / 1e3, n_back / decode_ms / 1e3);
    free(t);
    free(back);
    llama_model_free(m);
    return n > 0 && n_back > 0 ? 0 : 1;
}

int main(int argc, char **argv) {
    const int from =
        bench_args(argc, argv, "TEXT_FILE MODEL.gguf ...",
                   "Vocabularies on one thread: milliseconds to load (best of 5), MB/s of text to tokens and back (best of "
                   "3).",
                   NULL, 0);
    if (argc - from < 2) {
        fprintf(stderr, "error: a text file and at least one model are needed; see %s -h\n", argv[0]);
        return 2;
    }
    int32_t n = 0;
    char *text = read_all(argv[from], &n);
    if (!text || n == 0) {
        fprintf(stderr, "error: %s: there is no text to read\n", argv[from]);
        return 2;
    }
    int status = 0;
    printf("%-36s %8s %8s %10s %10s %10s\n", "vocabulary", "size", "load ms", "tokens", "encode", "decode");
    for (int i = from + 1; i < argc; i++) status |= measure(argv[i], text, n);
    free(text);
    return status;
}
