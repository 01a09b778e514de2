// Vocabularies: whatever a file holds, loading refuses or gives one that can be used in every way.
#include "fuzz_vocabs.h"
#include "ggml/ext.h"
#include "vocab/vocab.h"

static void use(const struct llama_vocab *v) {
    static const char text[] = "The <|im_start|> cat\xe4\xb8\xad\xff  12345 don't\n\n\xe2\x96\x81x <0x41>";
    llama_token t[256];
    char buf[4096];
    int32_t n_token = llama_vocab_n_tokens(v);
    for (int flags = 0; flags < 4; flags++) {
        int32_t n = llama_tokenize(v, text, sizeof text - 1, t, 256, flags & 1, flags & 2);
        FUZZ_CHECK(n <= 256);
        for (int32_t i = 0; i < n; i++) FUZZ_CHECK(t[i] >= 0 && t[i] < n_token);
        if (n > 0) FUZZ_CHECK(llama_detokenize(v, t, n, buf, sizeof buf, flags & 1, flags & 2) <= (int32_t) sizeof buf);
    }
    for (llama_token i = -1; i <= n_token; i++) {
        FUZZ_CHECK(llama_token_to_piece(v, i, buf, 16, i & 1, true) <= 16);
        llama_vocab_get_text(v, i);
        llama_vocab_get_score(v, i);
        llama_vocab_is_eog(v, i);
    }
    const struct vocab_order *o = vocab_sorted(v);
    FUZZ_CHECK(!o || o->n <= (uint32_t) n_token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct gguf_context *g = gguf_init_from_buffer(data, size, (struct gguf_init_params){.no_alloc = true});
    struct llama_vocab *v = NULL;
    if (g && vocab_load(&v, g) == ERR_OK) {
        use(v);
        vocab_free(v);
    }
    gguf_free(g);
    ggml_clear_error();
    return 0;
}

void fuzz_seeds(fuzz_put put, void *to) {
    for (int k = FUZZ_N_BPE - 1; k < FUZZ_N_VOCAB; k++) {
        struct gguf_context *g = fuzz_vocab(k);
        size_t n = gguf_get_meta_size(g);
        void *p = malloc(n);
        FUZZ_CHECK(p);
        gguf_get_meta_data(g, p);
        put(to, p, n);
        free(p);
        gguf_free(g);
    }
}
