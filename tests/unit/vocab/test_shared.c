// Real vocabularies: exactly the expected ids, and back.
#include "support/vocabs.h"

#define MARK "\n__ggml_vocab_test__\n"

static char *slurp(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *n = (size_t) ftell(f);
    rewind(f);
    char *p = malloc(*n + 1);
    assert_non_null(p);
    assert_int_equal(fread(p, 1, *n, f), *n);
    p[*n] = 0;
    fclose(f);
    return p;
}

static struct llama_vocab *load(const char *path) {
    static struct gguf_context *g;  // lives until the next one is loaded, when the vocabulary is gone
    gguf_free(g);
    g = gguf_init_from_file(path, (struct gguf_init_params){.no_alloc = true});
    struct llama_vocab *v = NULL;
    if (!g || vocab_load(&v, g) != ERR_OK) print_error("%s: %s\n", path, ggml_last_error());
    assert_non_null(v);
    return v;
}

// All pieces one after the other.
static size_t pieces(const struct llama_vocab *v, const llama_token *t, int32_t n, char *out, size_t max) {
    size_t at = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t k = llama_token_to_piece(v, t[i], out + at, (int32_t) (max - at), 0, true);
        assert_true(k >= 0);
        at += (size_t) k;
    }
    return at;
}

static void check(const char *dir, const char *name) {
    char path[600];
    size_t n_in, n_out;
    snprintf(path, sizeof path, "%s/ggml-vocab-%s.gguf.inp", dir, name);
    char *in = slurp(path, &n_in);
    snprintf(path, sizeof path, "%s/ggml-vocab-%s.gguf.out", dir, name);
    char *out = slurp(path, &n_out);
    snprintf(path, sizeof path, "%s/ggml-vocab-%s.gguf", dir, name);
    struct llama_vocab *v = load(path);
    assert_non_null(in);
    assert_non_null(out);
    bool wpm = llama_vocab_type(v) == LLAMA_VOCAB_TYPE_WPM, spm = llama_vocab_type(v) == LLAMA_VOCAB_TYPE_SPM;
    int n_string = 0;
    char *line = out;
    for (char *s = in, *next; s; s = next) {
        char *end = strstr(s, MARK);
        size_t len = end ? (size_t) (end - s) : strlen(s);
        next = end ? end + strlen(MARK) : NULL;
        llama_token t[4096];
        int32_t n = llama_tokenize(v, s, (int32_t) len, t, 4096, false, false);
        char *eol = strchr(line, '\n');
        for (int32_t i = 0; i < n; i++) assert_int_equal(strtol(line, &line, 10), t[i]);
        line += strspn(line, " ");
        assert_ptr_equal(line, eol ? eol : line + strlen(line));
        line = eol ? eol + 1 : line;
        n_string++;
        if (wpm) continue;  // WordPiece forgets spaces and case
        char text[8192];
        size_t k = pieces(v, t, n, text, sizeof text), skip = spm && n > 0;  // the space that SPM puts in front
        assert_int_equal(k, len + skip);
        assert_memory_equal(text + skip, s, len);
        if (spm) {
            assert_int_equal(llama_detokenize(v, t, n, text, sizeof text, false, true), len);
            assert_memory_equal(text, s, len);
        }
    }
    assert_true(n_string > 40);
    vocab_free(v);
    free(in);
    free(out);
}

static void test_expected_ids(void **state) {
    (void) state;
    const char *shared = test_shared();
    if (!shared) skip();
    static const char *const names[] = {"bert-bge",  "deepseek-coder", "deepseek-llm", "falcon", "gemma-4",  "gpt-2",
                                        "llama-bpe", "llama-spm",      "phi-3",        "qwen2",  "starcoder"};
    char dir[560];
    snprintf(dir, sizeof dir, "%s/vocab", shared);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) check(dir, names[i]);
}

// Leaves out bytes that the vocabulary has no token for: some lack those that never occur in UTF-8, falcon a few more.
static size_t spellable(const struct llama_vocab *v, char *text, size_t len) {
    bool has[256] = {0};
    for (llama_token t = 0; t < llama_vocab_n_tokens(v); t++) {
        size_t n;
        const char *p = vocab_piece(v, t, &n);
        if (n == 1) has[(uint8_t) *p] = true;
    }
    size_t k = 0, n_missing = 0;
    for (size_t i = 0; i < len; i++) {
        if (has[(uint8_t) text[i]]) text[k++] = text[i];
    }
    for (int b = 0; b < 256; b++) n_missing += !has[b];
    assert_true(n_missing < 32);
    return k;
}

// Byte strings, broken UTF-8 and a megabyte of spaces come back as they were.
static void test_anything_comes_back(void **state) {
    (void) state;
    const char *shared = test_shared();
    if (!shared) skip();
    static const char *const names[] = {"gpt-2",  "llama-bpe", "qwen2",     "deepseek-llm",
                                        "falcon", "starcoder", "llama-spm", "gemma-4"};
    enum { N = 1 << 20 };
    char *text = malloc(N), *back = malloc(2 * N);
    llama_token *t = malloc((N + 16) * sizeof *t);
    assert_non_null(t);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/vocab/ggml-vocab-%s.gguf", shared, names[i]);
        struct llama_vocab *v = load(path);
        size_t skip_n = llama_vocab_type(v) == LLAMA_VOCAB_TYPE_SPM;
        for (int what = 0; what < 3; what++) {
            size_t len = what == 0 ? 256 : what == 1 ? 20000 : N;
            uint32_t rng = 1;
            for (size_t k = 0; k < len; k++) {
                rng = rng * 1664525 + 1013904223;
                text[k] = what == 0 ? (char) k : what == 1 ? (char) (rng >> 24) : ' ';
            }
            if (what < 2) len = spellable(v, text, len);
            int32_t n = llama_tokenize(v, text, (int32_t) len, t, N + 16, false, false);
            assert_true(n > 0);
            size_t k = pieces(v, t, n, back, 2 * N);
            assert_int_equal(k, len + skip_n);
            assert_memory_equal(back + skip_n, text, len);
        }
        vocab_free(v);
    }
    free(text);
    free(back);
    free(t);
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_expected_ids), cmocka_unit_test(test_anything_comes_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
