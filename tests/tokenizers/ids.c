// ids MODEL.gguf: token ids of strings, for compare.py. Reads u32 length and bytes of each string from stdin; writes u32 count
// and i32 ids of each to stdout.
#include "ggml/ext.h"
#include "gguf.h"
#include "vocab/vocab.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    struct gguf_context *meta = gguf_init_from_file(argv[1], (struct gguf_init_params){.no_alloc = true});
    struct llama_vocab *vocab;
    if (!meta || vocab_load(&vocab, meta) != ERR_OK) {
        fprintf(stderr, "%s\n", ggml_last_error());
        return 1;
    }
    uint32_t len;
    while (fread(&len, 4, 1, stdin) == 1) {
        char *text = malloc(len + 1);
        llama_token *ids = malloc((len + 16) * sizeof *ids);
        if (!text || !ids || fread(text, 1, len, stdin) != len) return 1;
        int32_t n = llama_tokenize(vocab, text, (int32_t) len, ids, (int32_t) len + 16, false, false);
        if (n < 0) return 1;
        uint32_t count = (uint32_t) n;
        fwrite(&count, 4, 1, stdout);
        fwrite(ids, 4, count, stdout);
        free(ids);
        free(text);
    }
    vocab_free(vocab);
    gguf_free(meta);
    return 0;
}
