// What a vocabulary will take, from the counts and lengths in a file's header: plans must not wait for one to be loaded. Follows
// load.c and the kinds' own tables; of the kinds that keep a trie over all pieces (t5, rwkv, plamo2) it is
// counted as if no two shared a prefix, and is the only number in a plan that is a bound.
#include "vocab/vocab_int.h"

struct strings {
    size_t n, bytes;
};

static struct strings strings_of(const struct gguf_context *meta, const char *key) {
    struct strings s = {0};
    const int64_t id = gguf_find_key(meta, key);
    if (id < 0 || gguf_get_kv_type(meta, id) != GGUF_TYPE_ARRAY || gguf_get_arr_type(meta, id) != GGUF_TYPE_STRING) return s;
    s.n = gguf_get_arr_n(meta, id);
    if (s.n == 0) return s;
    // The strings lie end to end, each behind its length: the last one's end gives the total.
    size_t len;
    const char *first = gguf_get_arr_str_view(meta, id, 0, NULL), *last = gguf_get_arr_str_view(meta, id, s.n - 1, &len);
    s.bytes = (size_t) (last - first) + len - 8 * (s.n - 1);
    return s;
}

static size_t slots(size_t n) {
    size_t size = 16;
    while (size < n + n / 2 + 1) size *= 2;
    return size * sizeof(struct index_slot);
}

static size_t trie_memory(size_t n_edge) {
    size_t edges = 256, values = 128;
    while (n_edge * 4 > edges * 3) edges *= 2;
    while (n_edge + 1 > values) values *= 2;
    return edges * sizeof(struct trie_edge) + values * sizeof(int32_t);
}

// The trie over the tokens that text is searched for: there are few, and what they share decides its size, so it is made to know.
static size_t specials_memory(const struct gguf_context *meta, size_t n) {
    const int64_t types = gguf_find_key(meta, "tokenizer.ggml.token_type"),
                  texts = gguf_find_key(meta, "tokenizer.ggml.tokens");
    const bool typed = types >= 0 && gguf_get_kv_type(meta, types) == GGUF_TYPE_ARRAY &&
                       gguf_get_arr_type(meta, types) == GGUF_TYPE_INT32 && gguf_get_arr_n(meta, types) == n;
    const int32_t *type = typed ? gguf_get_arr_data(meta, types) : NULL;
    struct trie t;
    enum err e = trie_init(&t);
    for (size_t i = 0; type && i < n && e == ERR_OK; i++) {
        size_t len;
        if (type[i] < LLAMA_TOKEN_TYPE_UNKNOWN || type[i] > LLAMA_TOKEN_TYPE_USER_DEFINED) continue;  // and control between
        const char *p = gguf_get_arr_str_view(meta, texts, i, &len);
        if (len > 0) e = trie_add(&t, p, len, (int32_t) i);
    }
    const size_t bytes = e == ERR_OK ? trie_bytes(&t) : 0;
    trie_free(&t);
    return bytes;
}

static size_t suppressed_memory(const struct gguf_context *meta) {
    const int64_t id = gguf_find_key(meta, "tokenizer.ggml.suppress_tokens");
    return id >= 0 && gguf_get_kv_type(meta, id) == GGUF_TYPE_ARRAY ? (gguf_get_arr_n(meta, id) + 1) * sizeof(llama_token)
                                                                    : 0;
}

static size_t kind_memory(const struct gguf_context *meta, const char *model, struct strings tokens) {
    const bool raw = !strcmp(model, "gemma4");
    if (!strcmp(model, "gpt2") || raw) {
        const struct strings merges = strings_of(meta, "tokenizer.ggml.merges");
        return bpe_memory(meta, raw ? "gemma4" : "default") + slots(merges.n) +
               (merges.n + 1) * (sizeof(uint16_t) + sizeof(uint32_t)) + merges.n + merges.bytes + 1;
    }
    if (!strcmp(model, "t5")) {
        const int64_t map = gguf_find_key(meta, "tokenizer.ggml.precompiled_charsmap");
        const bool array = map >= 0 && gguf_get_kv_type(meta, map) == GGUF_TYPE_ARRAY;
        return trie_memory(tokens.bytes) + trie_memory(0) + (array ? gguf_get_arr_n(meta, map) : 0);
    }
    if (!strcmp(model, "rwkv") || !strcmp(model, "plamo2")) return trie_memory(tokens.bytes);
    return 0;
}

size_t vocab_memory(const struct gguf_context *meta) {
    const int64_t id = gguf_find_key(meta, "tokenizer.ggml.model");
    const struct strings t = strings_of(meta, "tokenizer.ggml.tokens");
    size_t n = sizeof(struct llama_vocab);
    if (id < 0 || gguf_get_kv_type(meta, id) != GGUF_TYPE_STRING || t.n == 0) return n;
    const size_t bytes = t.n + t.bytes;
    n += (t.n + 1) * sizeof(uint32_t) + bytes + PIECE_SLACK;  // pieces
    n += t.n * sizeof(uint16_t) + t.n / 8 + 1 + slots(t.n);
    return n + specials_memory(meta, t.n) + suppressed_memory(meta) + kind_memory(meta, gguf_get_val_str(meta, id), t);
}
