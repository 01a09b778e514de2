// Text: whatever the bytes, tokens are valid, nothing is written outside, and byte-level vocabularies give the text back.
// The first byte chooses the vocabulary, the second the flags.
#include "fuzz_vocabs.h"
#include "ggml/ext.h"
#include "llama/ext.h"
#include "vocab/vocab.h"

static struct llama_vocab *vocab_number(int k) {
    static struct llama_vocab *vocabs[FUZZ_N_VOCAB];  // made once: a fuzzer runs millions of times in one process
    if (!vocabs[k]) {
        static struct gguf_context *metas[FUZZ_N_VOCAB];  // live as long as the vocabularies
        metas[k] = fuzz_vocab(k);
        FUZZ_CHECK(vocab_load(&vocabs[k], metas[k]) == ERR_OK);
    }
    return vocabs[k];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    int kind = data[0] % FUZZ_N_VOCAB, flags = data[1];
    const struct llama_vocab *v = vocab_number(kind);
    const char *text = (const char *) data + 2;
    int32_t len = (int32_t) (size - 2), need = llama_tokenize(v, text, len, NULL, 0, flags & 1, flags & 2);
    FUZZ_CHECK(need <= 0 && need > INT32_MIN);
    int32_t n = -need;
    llama_token *t = malloc(((size_t) n + 1) * sizeof *t);
    FUZZ_CHECK(t && llama_tokenize(v, text, len, t, n, flags & 1, flags & 2) == n);
    for (int32_t i = 0; i < n; i++) FUZZ_CHECK(t[i] >= 0 && t[i] < llama_vocab_n_tokens(v));
    int32_t bytes = llama_detokenize(v, t, n, NULL, 0, flags & 4, flags & 8);
    FUZZ_CHECK(bytes <= 0);
    char *back = malloc((size_t) -bytes + 1);
    FUZZ_CHECK(back && llama_detokenize(v, t, n, back, -bytes, flags & 4, flags & 8) == -bytes);
    if (kind < FUZZ_N_BPE && !(flags & 1)) {  // all 256 bytes are tokens: pieces give the text back
        size_t at = 0;
        for (int32_t i = 0; i < n; i++) {
            size_t k;
            const char *p = vocab_piece(v, t[i], &k);
            FUZZ_CHECK(at + k <= (size_t) len && memcmp(text + at, p, k) == 0);
            at += k;
        }
        FUZZ_CHECK(at == (size_t) len);
    }
    size_t half = (size_t) len / 2;
    llama_tokenize_parts(v, text, (size_t[]){half, (size_t) len - half}, (bool[]){flags & 16, flags & 32}, 2, t, n,
                         flags & 1);
    free(back);
    free(t);
    ggml_clear_error();
    return 0;
}

void fuzz_seeds(fuzz_put put, void *to) {
    static const char *const texts[] = {
        "Hello, y'all! How are you 😁 ?我想在apple工作1314151天～",
        "   \n\n \t\r\n 12345678 x=1;\n",
        "don't I'M We'Ve <|im_start|>user\n<tool></s>",
        "\xff\xe4\xb8\x80\xc0\x80\xed\xa0\x80 the abc",
        "<sentinel:12>IMGIMGABZ    ",
        "ÄÖÜ ﬁ ½ 한국어 ひらがな e\xcc\x81 \xe2\x96\x81",
    };
    for (int k = 0; k < FUZZ_N_VOCAB; k++) {
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            char buf[256] = {(char) k, (char) (i * 7)};
            size_t n = strlen(texts[i]);
            memcpy(buf + 2, texts[i], n);
            put(to, buf, n + 2);
        }
    }
}
