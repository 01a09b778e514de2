// Facts of a vocabulary that a file leaves open or states against what its tokens' names say, as programs of others know them.
#include "support/vocabs.h"
#include "vocab/charset.h"

static struct llama_vocab *bytes_and(const char **special, int n, void (*more)(struct gguf_context *)) {
    return vocab_of_bytes("gpt-2", special, n, more);
}

static void normal(struct gguf_context *g) {
    int32_t types[260];
    for (int i = 0; i < 260; i++) types[i] = LLAMA_TOKEN_TYPE_NORMAL;
    const size_t n = gguf_get_arr_n(g, gguf_find_key(g, "tokenizer.ggml.tokens"));
    gguf_set_arr_data(g, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types, n);
}

// </s> ends a generation whatever its type, but in Gemma 4, whose answers may hold it.
static void test_end_of_sequence(void **state) {
    (void) state;
    const char *alone[] = {"</s>"};
    struct llama_vocab *v = bytes_and(alone, 1, normal);
    assert_true(llama_vocab_is_eog(v, 256));
    assert_int_equal(llama_vocab_get_attr(v, 256), LLAMA_TOKEN_ATTR_NORMAL | LLAMA_TOKEN_ATTR_CONTROL);
    assert_int_equal(llama_token_to_piece(v, 256, NULL, 0, 0, false), 0);
    expect_ids(v, "</s>", false, true, (llama_token[]){256}, 1);
    expect_ids(v, "</s>", false, false, (llama_token[]){'<', '/', 's', '>'}, 4);
    vocab_free(v);
    const char *gemma4[] = {"</s>", "<|tool_response>", "<turn|>"};
    v = bytes_and(gemma4, 3, normal);
    assert_false(llama_vocab_is_eog(v, 256));
    assert_int_equal(llama_vocab_get_attr(v, 256), LLAMA_TOKEN_ATTR_NORMAL);
    assert_true(llama_vocab_is_eog(v, 257));
    assert_true(llama_vocab_is_eog(v, 258));
    vocab_free(v);
}

static void fim_ids(struct gguf_context *g) {
    gguf_set_val_u32(g, "tokenizer.ggml.eos_token_id", 0);
    gguf_set_val_u32(g, "tokenizer.ggml.fim_pre_token_id", 1);
    gguf_set_val_u32(g, "tokenizer.ggml.fim_pad_token_id", 2);
    gguf_set_val_u32(g, "tokenizer.ggml.fim_rep_token_id", 3);
    gguf_set_val_u32(g, "tokenizer.ggml.fim_sep_token_id", 4);
}

// What parts files and repositories ends a generation by its key as by its name.
static void test_ends_by_key(void **state) {
    (void) state;
    struct llama_vocab *v = bytes_and(NULL, 0, fim_ids);
    for (llama_token t = 0; t < 6; t++) assert_int_equal(llama_vocab_is_eog(v, t), t == 0 || (t >= 2 && t <= 4));
    vocab_free(v);
}

// Control tokens in reserve are told as unused, and keep their text for those who ask for it.
static void test_unused(void **state) {
    (void) state;
    const char *special[] = {"<unused7>", "[unused1]", "<Unused>"};
    struct llama_vocab *v = bytes_and(special, 3, NULL);
    char buf[16];
    for (llama_token t = 256; t < 259; t++) {
        const int unused = t < 258 ? LLAMA_TOKEN_ATTR_UNUSED : 0;
        assert_int_equal(llama_vocab_get_attr(v, t), LLAMA_TOKEN_ATTR_CONTROL | unused);
        assert_int_equal(llama_token_to_piece(v, t, buf, sizeof buf, 0, false), 0);
        assert_int_equal(llama_token_to_piece(v, t, buf, sizeof buf, 0, true), strlen(special[t - 256]));
    }
    vocab_free(v);
}

static void test_newline(void **state) {
    (void) state;
    const char *spm[] = {"<unk>", "<s>", "</s>", "<0x0A>", "\n", "a"};
    static const int32_t spm_types[] = {2, 3, 3, 6, 1, 1};
    static const float scores[6] = {0};
    struct llama_vocab *v =
        vocab_must(&(struct vocab_spec){.model = "llama", .tokens = spm, .types = spm_types, .scores = scores, .n = 6});
    assert_int_equal(llama_vocab_nl(v), 3);
    vocab_free(v);
    const char *wpm[] = {"[PAD]", "\xe2\x96\x81"
                                  "a"};
    v = vocab_must(&(struct vocab_spec){.model = "bert", .tokens = wpm, .n = 2});
    assert_int_equal(llama_vocab_nl(v), 0);  // text has no line ends there: padding
    vocab_free(v);
}

static void few(struct gguf_context *g) { gguf_set_val_u32(g, "tokenizer.ggml.unknown_token_id", 0); }

// A byte that a byte-level vocabulary lacks gives nothing: its "unknown" token is often the end of the text.
static void test_missing_bytes(void **state) {
    (void) state;
    const char *tokens[] = {"<|endoftext|>", "a", "b", "ab"}, *merges[] = {"a b"};
    static const int32_t types[] = {3, 1, 1, 1};
    struct llama_vocab *v = vocab_must(&(struct vocab_spec){.model = "gpt2",
                                                            .pre = "gpt-2",
                                                            .tokens = tokens,
                                                            .types = types,
                                                            .n = 4,
                                                            .merges = merges,
                                                            .n_merge = 1,
                                                            .more = few});
    expect_ids(v, "abc b\x16", false, false, (llama_token[]){3, 2}, 2);
    vocab_free(v);
}

static void moe(struct gguf_context *g) { gguf_set_val_str(g, "general.architecture", "nomic-bert-moe"); }

static void test_mask_takes_spaces(void **state) {
    (void) state;
    const char *special[] = {"<mask>"};
    struct llama_vocab *v = bytes_and(special, 1, moe);
    assert_int_equal(llama_vocab_get_attr(v, 256), LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_LSTRIP);
    expect_ids(v, "a \n<mask> b", false, true, (llama_token[]){'a', 256, ' ', 'b'}, 4);
    vocab_free(v);
}

// Models of T5's kind put a space in front if the file says so, or says that spaces are squeezed and nothing of this.
static void squeezed(struct gguf_context *g) { gguf_set_val_bool(g, "tokenizer.ggml.remove_extra_whitespaces", true); }
static void bare(struct gguf_context *g) {
    squeezed(g);
    gguf_set_val_bool(g, "tokenizer.ggml.add_space_prefix", false);
}

static void test_ugm_prefix(void **state) {
    (void) state;
    const char *tokens[] = {"<pad>", "</s>", "<unk>", "\xe2\x96\x81", "a"};
    static const int32_t types[] = {3, 3, 2, 1, 1};
    static const float scores[] = {0, 0, 0, -1, -1};
    static const struct {
        void (*more)(struct gguf_context *);
        bool prefix;
    } cases[] = {{NULL, false}, {squeezed, true}, {bare, false}};
    for (int i = 0; i < 3; i++) {
        struct llama_vocab *v = vocab_must(&(struct vocab_spec){
            .model = "t5", .tokens = tokens, .types = types, .scores = scores, .n = 5, .more = cases[i].more});
        expect_ids(v, "a", false, false, cases[i].prefix ? (llama_token[]){3, 4} : (llama_token[]){4}, 1 + cases[i].prefix);
        vocab_free(v);
    }
}

// U+180E is no white space since Unicode 6.3; CJK Extension I is of Unicode 15.1.
static void test_characters(void **state) {
    (void) state;
    assert_false(charset_is_space(0x180e));
    assert_true(charset_is_space(0x3000) && charset_is_space(0x85) && charset_is_space(0xa0));
    assert_true(charset_is_letter_or_number(0x2ebf0) && charset_is_letter_or_number(0x2ee5d));
    assert_false(charset_is_letter_or_number(0x2ee5e));
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end_of_sequence), cmocka_unit_test(test_ends_by_key),
        cmocka_unit_test(test_unused),          cmocka_unit_test(test_newline),
        cmocka_unit_test(test_missing_bytes),   cmocka_unit_test(test_mask_takes_spaces),
        cmocka_unit_test(test_ugm_prefix),      cmocka_unit_test(test_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
