// Texts to tokens and back; every token's piece; buffers too small.
#include "llama.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    (void) argc;
    struct llama_model_params mp = llama_model_default_params();
    mp.vocab_only = true;
    struct llama_model *model = llama_model_load_from_file(argv[1], mp);
    if (!model) return 1;
    const struct llama_vocab *v = llama_model_get_vocab(model);
    static const char *const texts[] = {"Hello world",
                                        "  two  spaces",
                                        "caf\xc3\xa9 \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\xa6\x99",
                                        "tabs\tand\nlines\r\n",
                                        "1234567890",
                                        "<|im_start|>user",
                                        ""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        llama_token t[64];
        const int n = llama_tokenize(v, texts[i], (int32_t) strlen(texts[i]), t, 64, false, false);
        char back[256];
        const int m = llama_detokenize(v, t, n, back, sizeof back, false, false);
        printf("%2d tokens  %.*s\n", n, m, back);
        if (n < 0 || m != (int) strlen(texts[i]) || memcmp(back, texts[i], (size_t) m)) return 2;
        if (n > 1 && llama_tokenize(v, texts[i], (int32_t) strlen(texts[i]), t, n - 1, false, false) != -n) return 3;
        if (m > 1 && llama_detokenize(v, t, n, back, m - 1, false, false) != -m) return 4;
    }
    for (llama_token id = 0; id < llama_vocab_n_tokens(v); id++) {
        char buf[256];
        const int n = llama_token_to_piece(v, id, buf, sizeof buf, 0, true);
        if (n < 0 || (n > 1 && llama_token_to_piece(v, id, buf, n - 1, 0, true) != -n)) return 5;
        if (!llama_vocab_get_text(v, id)) return 6;
    }
    llama_model_free(model);
    return 0;
}
