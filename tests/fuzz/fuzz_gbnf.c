// Grammars: whatever the text, it is refused or can be matched, within bounds. Input: grammar, a zero byte, a text.
#include "fuzz_vocabs.h"
#include "ggml/ext.h"
#include "grammar/grammar.h"

static const struct llama_vocab *vocab(void) {
    static struct llama_vocab *v;  // made once: a fuzzer runs millions of times in one process
    if (!v) {
        static struct gguf_context *g;  // lives as long as the vocabulary
        g = fuzz_vocab(0);
        FUZZ_CHECK(vocab_load(&v, g) == ERR_OK);
    }
    return v;
}

static void match(struct grammar *g, const char *text, size_t len) {
    struct matcher *m, *copy;
    FUZZ_CHECK(matcher_new(&m, g, vocab()) == ERR_OK);
    bool alive = matcher_accept_bytes(m, text, len);
    FUZZ_CHECK(alive == !matcher_dead(m));
    const uint8_t *mask = matcher_mask(m);
    FUZZ_CHECK(mask);
    uint8_t bits[64];
    memcpy(bits, mask, (size_t) llama_vocab_n_tokens(vocab()) / 8 + 1);
    const bool dead = matcher_dead(m);
    for (llama_token t = 0; t < llama_vocab_n_tokens(vocab()); t++) {
        bool allowed = matcher_allows(m, t);
        if (matcher_dead(m) != dead) break;  // that took too long
        FUZZ_CHECK(allowed == (bits[t >> 3] >> (t & 7) & 1));
    }
    FUZZ_CHECK(matcher_clone(&copy, m) == ERR_OK);
    FUZZ_CHECK(matcher_done(copy) == matcher_done(m));
    for (llama_token t = 0; t < 4; t++) {
        bool allowed = matcher_allows(copy, 'a' + t);
        FUZZ_CHECK(matcher_accept(copy, 'a' + t) == allowed);
    }
    matcher_free(copy);
    matcher_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 4096) return 0;
    char *text = fuzz_text(data, size);
    size_t n = strlen(text);
    struct grammar *g = NULL;
    if (grammar_new(&g, text, "root", vocab()) == ERR_OK) {
        size_t len = n < size ? size - n - 1 : 0;
        match(g, text + n + 1, len < 200 ? len : 200);
        grammar_free(g);
    } else {
        FUZZ_CHECK(*ggml_last_error());
    }
    free(text);
    ggml_clear_error();
    return 0;
}

void fuzz_seeds(fuzz_put put, void *to) {
    static const char *const seeds[][2] = {
        {"root ::= \"yes\" | \"no\" # comment\n", "ye"},
        {"root ::= (a | [^\\\"x-z\\u00e9]{2,5})* \"!\"?\na ::= \"b\" a | \"\"\n", "bbab"},
        {"root ::= object\nobject ::= \"{\" ws (string \":\" ws value (\",\" ws string \":\" ws value)*)? \"}\"\nvalue ::= "
         "object | string | [0-9]+\n"
         "string ::= \"\\\"\" [^\"\\\\]* \"\\\"\" ws\nws ::= [ \\t\\n]*\n",
         "{\"a\": {\"b\": 12"},
        {"root ::= <[256]> !<tool>{0,3} . [\\U0001F600-\\U0001F64F]+", "x"},
        {"root ::= (((\"a\"?)*)+){1,3} \"\\x41\\n\"\r\n", "aaa"},
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        char buf[1024];
        size_t n = strlen(seeds[i][0]) + 1, m = strlen(seeds[i][1]);
        memcpy(buf, seeds[i][0], n);
        memcpy(buf + n, seeds[i][1], m);
        put(to, buf, n + m);
    }
}
