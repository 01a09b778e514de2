// Small vocabularies for tests.
#pragma once

#include "gguf.h"
#include "test.h"
#include "vocab/vocab.h"

struct vocab_spec {
    const char *model, *pre;
    const char **tokens;
    const int32_t *types;  // NULL: all normal
    const float *scores;   // NULL: none
    size_t n;
    const char **merges;
    size_t n_merge;
    void (*more)(struct gguf_context *meta);  // NULL: nothing
};

// Keys live as long as the vocabularies made of them: to the end of the test program.
static inline enum err vocab_make(struct llama_vocab **out, const struct vocab_spec *s) {
    static struct kept {
        struct kept *next;
        struct gguf_context *g;
    } * all;
    struct gguf_context *g = gguf_init_empty();
    gguf_set_val_str(g, "tokenizer.ggml.model", s->model);
    if (s->pre) gguf_set_val_str(g, "tokenizer.ggml.pre", s->pre);
    if (s->tokens) gguf_set_arr_str(g, "tokenizer.ggml.tokens", s->tokens, s->n);
    if (s->types) gguf_set_arr_data(g, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, s->types, s->n);
    if (s->scores) gguf_set_arr_data(g, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, s->scores, s->n);
    if (s->merges) gguf_set_arr_str(g, "tokenizer.ggml.merges", s->merges, s->n_merge);
    if (s->more) s->more(g);
    enum err e = vocab_load(out, g);
    struct kept *k = malloc(sizeof *k);
    assert_non_null(k);
    *k = (struct kept){all, g};
    all = k;
    return e;
}

static inline struct llama_vocab *vocab_must(const struct vocab_spec *s) {
    struct llama_vocab *v = NULL;
    if (vocab_make(&v, s) != ERR_OK) print_error("%s\n", ggml_last_error());
    assert_non_null(v);
    return v;
}

// Asserts the ids of a text.
static inline void expect_ids(const struct llama_vocab *v, const char *text, bool add, bool parse, const llama_token *want,
                              int n) {
    llama_token got[512];
    int32_t k = llama_tokenize(v, text, (int32_t) strlen(text), got, 512, add, parse);
    if (k != n || (n && memcmp(got, want, (size_t) n * sizeof *got) != 0)) {
        print_error("'%s' gives", text);
        for (int32_t i = 0; i < k; i++) print_error(" %d", got[i]);
        print_error("\n");
    }
    assert_int_equal(k, n);
    if (n) assert_memory_equal(got, want, (size_t) n * sizeof *got);
}
#define IDS(...) ((const llama_token[]){__VA_ARGS__}), (int) (sizeof((llama_token[]){__VA_ARGS__}) / sizeof(llama_token))
#define NO_IDS NULL, 0

// A vocabulary over plain bytes, in GPT-2's spelling, followed by the given texts as control tokens.
static inline struct llama_vocab *vocab_of_bytes(const char *pre, const char **special, size_t n_special,
                                                 void (*more)(struct gguf_context *)) {
    size_t n = 256 + n_special;
    const char **tokens = calloc(n, sizeof *tokens);
    int32_t *types = calloc(n, sizeof *types);
    char(*text)[4] = calloc(256, 4);
    assert_non_null(tokens);
    assert_non_null(types);
    assert_non_null(text);
    for (int b = 0, next = 0; b < 256; b++) {
        bool plain = (b > 32 && b < 127) || (b > 160 && b != 173);
        uint32_t c = plain ? (uint32_t) b : 256 + (uint32_t) next++;
        if (c < 128) {
            text[b][0] = (char) c;
        } else {
            text[b][0] = (char) (0xc0 | c >> 6);
            text[b][1] = (char) (0x80 | (c & 63));
        }
        tokens[b] = text[b];
        types[b] = LLAMA_TOKEN_TYPE_NORMAL;
    }
    for (size_t i = 0; i < n_special; i++) {
        tokens[256 + i] = special[i];
        types[256 + i] = LLAMA_TOKEN_TYPE_CONTROL;
    }
    const char *merges[] = {"a b", "ab c"};
    struct vocab_spec s = {
        .model = "gpt2", .pre = pre, .tokens = tokens, .types = types, .n = n, .merges = merges, .n_merge = 2, .more = more};
    struct llama_vocab *v = vocab_must(&s);
    free(tokens);
    free(types);
    free(text);
    return v;
}
