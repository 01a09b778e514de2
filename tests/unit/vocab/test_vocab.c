// Vocabularies: loading, special tokens, each kind, and what others got wrong.
#include "support/vocabs.h"
#include "llama/ext.h"
#include "vocab/vocab_int.h"
#include <limits.h>
#include <pthread.h>
#include <time.h>

// Time of this process alone: other work on the machine does not count.
static double seconds(void) { return (double) clock() / CLOCKS_PER_SEC; }

// ---- loading

static void expect_refusal(const struct vocab_spec *s, const char *why) {
    struct llama_vocab *v = NULL;
    ggml_clear_error();
    assert_int_not_equal(vocab_make(&v, s), ERR_OK);
    assert_null(v);
    assert_error(why);
}

static void u8_scores(struct gguf_context *g) {
    gguf_set_arr_data(g, "tokenizer.ggml.scores", GGUF_TYPE_UINT8, "\1\2\3", 3);
}
static void i8_types(struct gguf_context *g) {
    gguf_set_arr_data(g, "tokenizer.ggml.token_type", GGUF_TYPE_INT8, "\1\1\1", 3);
}
static void u32_merges(struct gguf_context *g) {
    gguf_set_arr_data(g, "tokenizer.ggml.merges", GGUF_TYPE_UINT32, (uint32_t[]){1}, 1);
}
static void number_tokens(struct gguf_context *g) {
    gguf_set_arr_data(g, "tokenizer.ggml.tokens", GGUF_TYPE_UINT32, (uint32_t[]){1}, 1);
}
static void short_scores(struct gguf_context *g) {
    gguf_set_arr_data(g, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, (float[]){1}, 1);
}
static void text_bos(struct gguf_context *g) { gguf_set_val_str(g, "tokenizer.ggml.bos_token_id", "1"); }
static void number_flag(struct gguf_context *g) { gguf_set_val_u32(g, "tokenizer.ggml.add_bos_token", 1); }
static void bad_map(struct gguf_context *g) {
    gguf_set_arr_data(g, "tokenizer.ggml.precompiled_charsmap", GGUF_TYPE_UINT8, "\xff\xff\xff\xff\0\0\0\0", 8);
}

static void test_wrong_types(void **state) {
    (void) state;
    const char *tokens[] = {"<unk>", "a", "b"};
    struct vocab_spec s = {.model = "llama", .tokens = tokens, .n = 3};
    s.more = u8_scores;
    expect_refusal(&s, "'tokenizer.ggml.scores' is an array of u8; it must be one of f32");
    s.more = i8_types;
    expect_refusal(&s, "'tokenizer.ggml.token_type' is an array of i8; it must be one of i32");
    s.more = short_scores;
    expect_refusal(&s, "1 entries for 3 tokens");
    s.more = text_bos;
    expect_refusal(&s, "'tokenizer.ggml.bos_token_id' has type str");
    s.more = number_flag;
    expect_refusal(&s, "'tokenizer.ggml.add_bos_token' has type u32; it must be bool");
    s.more = number_tokens;
    expect_refusal(&s, "'tokenizer.ggml.tokens' is an array of u32; it must be one of str");
    s.model = "gpt2";
    s.pre = "gpt-2";
    s.more = u32_merges;
    expect_refusal(&s, "'tokenizer.ggml.merges' is of u32");
    s.more = NULL;
    expect_refusal(&s, "'tokenizer.ggml.merges' is missing");
    s.pre = "unheard-of";
    expect_refusal(&s, "pre-tokenizer 'unheard-of'");
    s.model = "unheard-of";
    expect_refusal(&s, "kind 'unheard-of'");
    s = (struct vocab_spec){.model = "llama"};
    expect_refusal(&s, "'tokenizer.ggml.tokens' is missing");
    s = (struct vocab_spec){.model = "llama", .tokens = tokens, .n = 3, .scores = (float[]){0, 0.0f / 0.0f, 0}};
    expect_refusal(&s, "score of token 1");
    s = (struct vocab_spec){.model = "t5", .tokens = tokens, .n = 3, .more = bad_map};
    expect_refusal(&s, "precompiled_charsmap");
}

static void five(struct gguf_context *g) {
    gguf_set_val_str(g, "general.architecture", "llama");
    gguf_set_val_u32(g, "llama.vocab_size", 5);
}

static void test_no_vocabulary(void **state) {
    (void) state;
    struct llama_vocab *v = vocab_must(&(struct vocab_spec){.model = "no_vocab", .more = five});
    assert_int_equal(llama_vocab_type(v), LLAMA_VOCAB_TYPE_NONE);
    assert_int_equal(llama_vocab_n_tokens(v), 5);
    assert_int_equal(llama_vocab_bos(v), LLAMA_TOKEN_NULL);
    llama_token t[4];
    ggml_clear_error();
    assert_int_equal(llama_tokenize(v, "a", 1, t, 4, true, true), INT32_MIN);
    assert_error("no vocabulary");
    assert_null(llama_vocab_get_text(v, 0));
    assert_false(llama_vocab_is_eog(v, 0));
    char buf[4];
    ggml_clear_error();
    assert_int_equal(llama_token_to_piece(v, 0, buf, 4, 0, true), 0);
    assert_error("token 0 has no text");
    ggml_clear_error();
    assert_int_equal(llama_token_to_piece(v, 5, buf, 4, 0, true), 0);
    assert_error("token 5 is not one of the 5");
    assert_int_equal(llama_detokenize(v, (llama_token[]){0}, 1, buf, 4, false, false), 0);
    ggml_clear_error();
    vocab_free(v);
    vocab_free(NULL);
}

static void far_ids(struct gguf_context *g) {
    gguf_set_val_u32(g, "tokenizer.ggml.bos_token_id", 99);
    gguf_set_val_u32(g, "tokenizer.ggml.eos_token_id", 0xffffffffu);
}

static void test_ids_outside(void **state) {
    (void) state;
    const char *tokens[] = {"<unk>", "a", "b"};
    struct llama_vocab *v = vocab_must(&(struct vocab_spec){.model = "llama", .tokens = tokens, .n = 3, .more = far_ids});
    assert_int_equal(llama_vocab_bos(v), 1);  // the kind's own default
    static const llama_token bad[] = {-1, 3, INT32_MAX, INT32_MIN};
    char buf[8];
    for (int i = 0; i < 4; i++) {
        ggml_clear_error();
        assert_int_equal(llama_token_to_piece(v, bad[i], buf, 8, 0, true), 0);
        assert_error("not one of the 3");
        assert_int_equal(llama_detokenize(v, &bad[i], 1, buf, 8, false, true), 0);
        assert_error("not one of the 3");
        assert_null(llama_vocab_get_text(v, bad[i]));
        assert_true(llama_vocab_get_score(v, bad[i]) == 0.0f);
        assert_int_equal(llama_vocab_get_attr(v, bad[i]), 0);
        assert_false(llama_vocab_is_eog(v, bad[i]));
        assert_false(llama_vocab_is_control(v, bad[i]));
    }
    ggml_clear_error();
    vocab_free(v);
}

// ---- byte tokens

static void byte_types(struct gguf_context *g) {
    const int64_t id = gguf_find_key(g, "tokenizer.ggml.token_type");
    int32_t types[259];
    memcpy(types, gguf_get_arr_data(g, id), sizeof types);
    types[256] = types[257] = types[258] = LLAMA_TOKEN_TYPE_BYTE;
    gguf_set_arr_data(g, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types, 259);
}

static void test_odd_byte_tokens(void **state) {
    (void) state;
    const char *tokens[] = {"<unk>", "<0x-1>", "<0x+A>", "<0xZZ>", "<0x100>", "<0x>", "<0x41>", "x"};
    static const int32_t types[] = {2, 6, 6, 6, 6, 6, 6, 1};
    static const float scores[8] = {0};
    static const char *const models[] = {"llama", "t5", "plamo2"};
    for (int i = 0; i < 3; i++) {
        struct llama_vocab *v =
            vocab_must(&(struct vocab_spec){.model = models[i], .tokens = tokens, .types = types, .scores = scores, .n = 8});
        char buf[8];
        assert_int_equal(llama_token_to_piece(v, 6, buf, 8, 0, false), 1);
        assert_int_equal(buf[0], 'A');
        assert_int_equal(llama_token_to_piece(v, 1, buf, 8, 0, false), 6);  // plain text
        assert_memory_equal(buf, "<0x-1>", 6);
        vocab_free(v);
    }
    // byte-level BPE has its own letters for bytes: there such a token is text
    const char *special[] = {"<0x-1>", "<0xZZ>", "<0x>"};
    struct llama_vocab *v = vocab_of_bytes("gpt-2", special, 3, byte_types);
    char buf[8];
    assert_int_equal(llama_token_to_piece(v, 256, buf, 8, 0, true), 6);
    assert_memory_equal(buf, "<0x-1>", 6);
    assert_int_equal(llama_tokenize(v, "\xff", 1, (llama_token[1]){0}, 1, false, false), 1);
    vocab_free(v);
}

// ---- SPM

static const char *spm_tokens[] = {"<unk>", "<s>", "</s>", "<pad>", "\xe2\x96\x81",     "t",      "e",
                                   "x",     "te",  "tex",  "text",  "\xe2\x96\x81text", "<0xE6>", "<0xAD>"};
static const int32_t spm_types[] = {2, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 6, 6};
static const float spm_scores[] = {0, 0, 0, 0, -1, -1, -1, -1, -4, -3, -2, -1, 0, 0};

static void no_prefix(struct gguf_context *g) { gguf_set_val_bool(g, "tokenizer.ggml.add_space_prefix", false); }

static void test_space_prefix(void **state) {
    (void) state;
    struct vocab_spec s = {.model = "llama", .tokens = spm_tokens, .types = spm_types, .scores = spm_scores, .n = 14};
    struct llama_vocab *v = vocab_must(&s);
    expect_ids(v, "<pad>text</s>", false, true, IDS(3, 11, 2));
    expect_ids(v, "text", true, false, IDS(1, 11));
    expect_ids(v, " text", false, false, IDS(4, 11));
    expect_ids(v, "", false, false, NO_IDS);
    expect_ids(v, "", true, false, IDS(1));
    expect_ids(v, "<pad>", false, true, IDS(3));
    vocab_free(v);
    s.more = no_prefix;
    v = vocab_must(&s);
    expect_ids(v, "<pad>text</s>", false, true, IDS(3, 10, 2));
    expect_ids(v, "", false, false, NO_IDS);
    static const char *const back[] = {"text", " text", "  text text ", "<pad>text</s>", "te  xt"};
    for (int i = 0; i < 5; i++) {
        llama_token t[32];
        char buf[64];
        int32_t n = llama_tokenize(v, back[i], (int32_t) strlen(back[i]), t, 32, false, true);
        assert_true(n > 0);
        n = llama_detokenize(v, t, n, buf, sizeof buf, false, true);
        assert_int_equal(n, strlen(back[i]));
        assert_memory_equal(buf, back[i], (size_t) n);
    }
    vocab_free(v);
}

static void test_plain_text_is_no_control_token(void **state) {
    (void) state;
    struct llama_vocab *v = vocab_must(
        &(struct vocab_spec){.model = "llama", .tokens = spm_tokens, .types = spm_types, .scores = spm_scores, .n = 14});
    llama_token t[32];
    int32_t n = llama_tokenize(v, "<s>", 3, t, 32, false, false);
    for (int32_t i = 0; i < n; i++) assert_int_not_equal(t[i], 1);
    vocab_free(v);
}

// ---- BOS, EOS

static void eos_too(struct gguf_context *g) {
    gguf_set_val_u32(g, "tokenizer.ggml.bos_token_id", 1);
    gguf_set_val_u32(g, "tokenizer.ggml.eos_token_id", 2);
    gguf_set_val_bool(g, "tokenizer.ggml.add_eos_token", true);
}

static void test_bos_never_twice(void **state) {
    (void) state;
    struct llama_vocab *v = vocab_must(&(struct vocab_spec){
        .model = "llama", .tokens = spm_tokens, .types = spm_types, .scores = spm_scores, .n = 14, .more = eos_too});
    expect_ids(v, "<s>text", true, true, IDS(1, 11, 2));
    expect_ids(v, "text</s>", true, true, IDS(1, 11, 2));
    expect_ids(v, "<s>", true, true, IDS(1, 2));
    expect_ids(v, "<s><s>text", false, true, IDS(1, 1, 11));  // what the text says stays without add_special
    assert_true(llama_vocab_get_add_bos(v));
    assert_true(llama_vocab_get_add_eos(v));
    assert_false(llama_vocab_get_add_sep(v));
    vocab_free(v);
}

// ---- end of generation, fill in the middle

static void eos_256(struct gguf_context *g) { gguf_set_val_u32(g, "tokenizer.ggml.eos_token_id", 256); }

static void test_roles_by_name(void **state) {
    (void) state;
    const char *special[] = {"<|end_of_text|>", "<|eot_id|>",     "<|im_end|>",     "<end_of_turn>",
                             "<|fim_prefix|>",  "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>",
                             "<|file_sep|>",    "<|repo_name|>",  "<|im_start|>",   "<|eom_id|>"};
    struct llama_vocab *v = vocab_of_bytes("gpt-2", special, 12, eos_256);
    for (llama_token t = 256; t < 260; t++) assert_true(llama_vocab_is_eog(v, t));
    assert_true(llama_vocab_is_eog(v, 267));
    assert_false(llama_vocab_is_eog(v, 266));
    assert_false(llama_vocab_is_eog(v, 260));
    assert_int_equal(llama_vocab_eos(v), 256);
    assert_int_equal(llama_vocab_eot(v), 257);
    assert_int_equal(llama_vocab_fim_pre(v), 260);
    assert_int_equal(llama_vocab_fim_suf(v), 261);
    assert_int_equal(llama_vocab_fim_mid(v), 262);
    assert_int_equal(llama_vocab_fim_pad(v), 263);
    assert_int_equal(llama_vocab_fim_sep(v), 264);
    assert_int_equal(llama_vocab_fim_rep(v), 265);
    assert_int_equal(llama_vocab_nl(v), '\n');
    char buf[32];
    for (llama_token t = 256; t < 260; t++)
        assert_int_equal(llama_token_to_piece(v, t, buf, 32, 0, false), 0);  // no text leaks
    vocab_free(v);
}

static void user_defined(struct gguf_context *g) {
    int32_t types[261];
    for (int i = 0; i < 261; i++) types[i] = i < 256 ? LLAMA_TOKEN_TYPE_NORMAL : LLAMA_TOKEN_TYPE_USER_DEFINED;
    gguf_set_arr_data(g, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types, 261);
}

// A role by name wins over the type in the file: no text leaks, and plain text can't name it.
static void test_roles_over_types(void **state) {
    (void) state;
    const char *special[] = {"<|im_end|>", "<turn|>", "[EOS]", "[e~[", "<think>"};
    struct llama_vocab *v = vocab_of_bytes("gpt-2", special, 5, user_defined);
    char buf[32];
    llama_token t[32];
    for (int i = 0; i < 5; i++) {
        const int32_t len = (int32_t) strlen(special[i]);
        const bool role = i < 4;
        assert_int_equal(llama_vocab_is_eog(v, 256 + i), role);
        assert_int_equal(llama_vocab_is_control(v, 256 + i), role);
        assert_true(llama_vocab_get_attr(v, 256 + i) & LLAMA_TOKEN_ATTR_USER_DEFINED);
        assert_int_equal(llama_token_to_piece(v, 256 + i, buf, 32, 0, false), role ? 0 : len);
        assert_int_equal(llama_token_to_piece(v, 256 + i, buf, 32, 0, true), len);
        assert_int_equal(llama_tokenize(v, special[i], len, t, 32, false, true), 1);
        assert_int_equal(llama_tokenize(v, special[i], len, t, 32, false, false), role ? len : 1);
    }
    vocab_free(v);
}

static void test_harmony_ends(void **state) {
    (void) state;
    static const char *const sets[][3] = {{"<|return|>", "<|call|>", "<|end|>"},
                                          {"<|return|>", "<|calls|>", "<|end|>"},
                                          {"<|flush|>", "<|calls|>", "<|end|>"},
                                          {"<|return|>", "<|flush|>", "<|end|>"},
                                          {"<|return|>", "<|eot_id|>", "<|end|>"}};
    for (int i = 0; i < 5; i++) {
        const char *special[] = {sets[i][0],    sets[i][1],      sets[i][2],   "<|start|>",
                                 "<|channel|>", "<|constrain|>", "<|message|>"};
        struct llama_vocab *v = vocab_of_bytes("gpt-4o", special, 7, eos_256);
        assert_true(llama_vocab_is_eog(v, 256));
        assert_true(llama_vocab_is_eog(v, 257));
        assert_int_equal(llama_vocab_is_eog(v, 258), i > 2);
        // What parts the message is text that programs read, whether it is asked for special tokens or not.
        char buf[32];
        for (llama_token t = i > 2 ? 259 : 258; t < 263; t++) {
            assert_int_equal(llama_vocab_get_attr(v, t), LLAMA_TOKEN_ATTR_USER_DEFINED);
            const int32_t n = llama_token_to_piece(v, t, buf, 32, 0, false);
            assert_int_equal(n, strlen(special[t - 256]));
            llama_token back[32];
            assert_int_equal(llama_tokenize(v, buf, n, back, 32, false, false), 1);
            assert_int_equal(back[0], t);
        }
        vocab_free(v);
    }
}

// ---- BPE on bytes

static void test_all_bytes(void **state) {
    (void) state;
    static const char *const pres[] = {"gpt-2",   "llama-bpe",    "qwen2",  "smollm",     "gpt-4o",
                                       "kimi-k2", "deepseek-llm", "falcon", "exaone-moe", "chameleon"};
    char text[256], back[512];
    for (int i = 0; i < 256; i++) text[i] = (char) i;
    for (size_t p = 0; p < sizeof pres / sizeof *pres; p++) {
        struct llama_vocab *v = vocab_of_bytes(pres[p], NULL, 0, NULL);
        llama_token t[512];
        int32_t n = llama_tokenize(v, text, 256, t, 512, false, false);
        assert_int_equal(n, 256);
        size_t at = 0;
        for (int32_t i = 0; i < n; i++) {
            int32_t k = llama_token_to_piece(v, t[i], back + at, (int32_t) (sizeof back - at), 0, false);
            assert_true(k > 0);
            at += (size_t) k;
        }
        assert_int_equal(at, 256);
        assert_memory_equal(back, text, 256);
        vocab_free(v);
    }
}

static void test_merges_without_a_token(void **state) {
    (void) state;
    // "ab" joins by merge, but there is no such token: its bytes come out, and nothing is lost
    struct llama_vocab *v = vocab_of_bytes("gpt-2", NULL, 0, NULL);
    expect_ids(v, "xabcb", false, false, IDS('x', 'a', 'b', 'c', 'b'));
    vocab_free(v);
}

static void test_broken_utf8(void **state) {
    (void) state;
    struct llama_vocab *bytes = vocab_of_bytes("llama-bpe", NULL, 0, NULL);
    struct llama_vocab *spm = vocab_must(&(struct vocab_spec){
        .model = "llama", .tokens = spm_tokens, .types = spm_types, .scores = spm_scores, .n = 14, .more = no_prefix});
    static const struct {
        const char *p;
        int n;
    } cases[] = {{"\xe6\xad", 2}, {"\x80", 1}, {"\xc0\x80", 2}, {"\xed\xa0\x80", 3}, {"\xf4\x90\x80\x80", 4}, {"\xff", 1}};
    for (int i = 0; i < 6; i++) {
        llama_token t[8];
        assert_int_equal(llama_tokenize(bytes, cases[i].p, cases[i].n, t, 8, false, false), cases[i].n);
        for (int k = 0; k < cases[i].n; k++) assert_int_equal(t[k], (uint8_t) cases[i].p[k]);
        int32_t n = llama_tokenize(spm, cases[i].p, cases[i].n, t, 8, false, false);
        assert_int_equal(n, cases[i].n);  // a byte token where there is one, else <unk>
        assert_int_equal(t[0], i == 0 ? 12 : 0);
    }
    vocab_free(bytes);
    vocab_free(spm);
}

// ---- results that do not fit, and odd arguments

static void test_counts(void **state) {
    (void) state;
    struct llama_vocab *v = vocab_of_bytes("gpt-2", NULL, 0, NULL);
    llama_token t[4];
    ggml_clear_error();
    assert_int_equal(llama_tokenize(v, "hello", 5, t, 4, false, false), -5);
    assert_int_equal(llama_tokenize(v, "hello", 5, NULL, 0, false, false), -5);
    assert_int_equal(llama_tokenize(v, NULL, 0, t, 4, false, false), 0);
    assert_string_equal(ggml_last_error(), "");
    assert_int_equal(llama_tokenize(v, "x", -1, t, 4, false, false), INT32_MIN);
    assert_error("length is negative");
    assert_int_equal(llama_tokenize(v, NULL, 3, t, 4, false, false), INT32_MIN);
    assert_error("text is NULL");
    assert_int_equal(llama_tokenize(NULL, "x", 1, t, 4, false, false), INT32_MIN);
    assert_error("vocabulary is NULL");
    assert_int_equal(vocab_count((size_t) INT32_MAX + 1, SIZE_MAX), INT32_MIN);
    assert_error("more than the result can count");
    assert_int_equal(vocab_count(INT32_MAX, 0), -INT32_MAX);
    // token_to_piece: every length, nothing beyond it, no terminator
    char buf[8];
    for (int32_t len = -1; len < 4; len++) {
        memset(buf, '#', sizeof buf);
        assert_int_equal(llama_token_to_piece(v, 'x', buf, len, 0, false), len >= 1 ? 1 : -1);
        for (int i = len >= 1 ? 1 : 0; i < 8; i++) assert_int_equal(buf[i], '#');
    }
    assert_int_equal(llama_token_to_piece(v, 'x', NULL, 0, 0, false), -1);
    assert_int_equal(llama_token_to_piece(v, ' ', buf, 8, 1, false), 0);
    assert_int_equal(llama_token_to_piece(v, 'x', buf, 8, 5, false), 1);
    assert_int_equal(llama_detokenize(v, (llama_token[]){'a', 'b', 'c'}, 3, buf, 2, false, false), -3);
    assert_int_equal(llama_detokenize(v, NULL, 0, buf, 2, false, false), 0);
    vocab_free(v);
}

// ---- WPM

static void test_wpm(void **state) {
    (void) state;
    const char *tokens[] = {"[PAD]",
                            "[UNK]",
                            "\xe2\x96\x81kan",
                            "to",
                            "\xe2\x96\x81lushi",
                            "\xe2\x96\x81gorazde",
                            "\xe2\x96\x81luka",
                            "\xe2\x96\x81modric",
                            "\xe2\x96\x81\xe5\x8f\xb0",
                            "\xe2\x96\x81\xe5\x8c\x97",
                            "\xe2\x96\x81\xe2\x80\xa7",
                            "\xe2\x96\x81"
                            "08",
                            "\xe2\x96\x81\xe6\x9c\x88",
                            "\xe2\x96\x81"
                            "20",
                            "\xe2\x96\x81\xe6\x97\xa5",
                            "\xe2\x96\x81[",
                            "\xe2\x96\x81unk",
                            "\xe2\x96\x81]",
                            "\xe2\x96\x81"
                            "don",
                            "\xe2\x96\x81'",
                            "\xe2\x96\x81t"};
    static const int32_t types[21] = {3, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct llama_vocab *v = vocab_must(&(struct vocab_spec){.model = "bert", .tokens = tokens, .types = types, .n = 21});
    ((struct llama_vocab *) v)->special[SPECIAL_UNK] = 1;
    expect_ids(v, "Kantō", false, false, IDS(2, 3));
    expect_ids(v, "lǜshi", false, false, IDS(4));
    expect_ids(v, "Goražde", false, false, IDS(5));
    expect_ids(v, "Luka Modrić", false, false, IDS(6, 7));
    expect_ids(v, "台北‧08月20日", false, false, IDS(8, 9, 10, 11, 12, 13, 14));
    expect_ids(v, "[UNK]", false, false, IDS(15, 16, 17));
    expect_ids(v, "[UNK]", false, true, IDS(1));
    expect_ids(v, "don't", false, false, IDS(18, 19, 20));
    expect_ids(v, "zzz kanto", false, false, IDS(1, 2, 3));
    char word[200];
    memset(word, 't', 101);
    word[101] = 0;
    expect_ids(v, word, false, false, IDS(1));
    vocab_free(v);
}

// ---- UGM

static const char *ugm_tokens[300];
static int32_t ugm_types[300];
static float ugm_scores[300];
static char ugm_bytes[256][8];

static size_t ugm_fill(bool bytes) {
    static const char *const first[] = {
        "<pad>", "</s>", "<unk>", "\xe2\x96\x81", "!", "!!!!!", "\xe2\x96\x81this", "\xe2\x96\x81is", ".", "c", "p"};
    size_t n = 11;
    for (size_t i = 0; i < n; i++) {
        ugm_tokens[i] = first[i];
        ugm_types[i] = i < 2 ? 3 : i == 2 ? 2 : 1;
        ugm_scores[i] = i < 3 ? 0.0f : -2.0f;
    }
    for (int b = 0; bytes && b < 256; b++, n++) {
        snprintf(ugm_bytes[b], 8, "<0x%02X>", (unsigned) b);
        ugm_tokens[n] = ugm_bytes[b];
        ugm_types[n] = 6;
        ugm_scores[n] = 0;
    }
    return n;
}

static void squeeze(struct gguf_context *g) { gguf_set_val_bool(g, "tokenizer.ggml.remove_extra_whitespaces", true); }

static void test_ugm(void **state) {
    (void) state;
    size_t n = ugm_fill(false);
    struct vocab_spec s = {
        .model = "t5", .tokens = ugm_tokens, .types = ugm_types, .scores = ugm_scores, .n = n, .more = squeeze};
    struct llama_vocab *v = vocab_must(&s);
    // equal sums: the path whose last differing token is longer, "!" before "!!!!!"
    expect_ids(v, "!!!!!!", false, false, IDS(3, 4, 5));
    expect_ids(v, " ", false, false, NO_IDS);
    expect_ids(v, "   ", false, false, NO_IDS);
    expect_ids(v, "", false, false, NO_IDS);
    expect_ids(v, "  this   is  ", true, false, IDS(6, 7, 1));
    expect_ids(v, "zz!", false, false, IDS(3, 2, 4));  // a run of unknown characters is one token
    vocab_free(v);
    s.n = ugm_fill(true);
    v = vocab_must(&s);
    expect_ids(v, "this is 🦙.cpp", false, false, IDS(6, 7, 3, 11 + 0xf0, 11 + 0x9f, 11 + 0xa6, 11 + 0x99, 8, 9, 10, 10));
    llama_token t[32];
    char buf[64];
    int32_t k = llama_tokenize(v, "🦙", 4, t, 32, false, false);
    k = llama_detokenize(v, t, k, buf, sizeof buf, false, false);
    assert_int_equal(k, 4);
    assert_memory_equal(buf, "🦙", 4);
    vocab_free(v);
}

static void test_ugm_call_is_cheap(void **state) {
    (void) state;
    enum { N = 100000 };
    const char **tokens = calloc(N, sizeof *tokens);
    float *scores = calloc(N, sizeof *scores);
    char(*text)[16] = calloc(N, 16);
    assert_non_null(text);
    for (int i = 0; i < N; i++) {
        snprintf(text[i], 16, "w%d", i);
        tokens[i] = text[i];
        scores[i] = -(float) i;
    }
    tokens[3] = "Hello";
    tokens[4] = "\xe2\x96\x81world";
    struct llama_vocab *v = vocab_must(&(struct vocab_spec){.model = "t5", .tokens = tokens, .scores = scores, .n = N});
    llama_token t[32];
    double start = seconds();
    for (int i = 0; i < 1000; i++) assert_true(llama_tokenize(v, "Hello world", 11, t, 32, false, false) > 0);
    double each = (seconds() - start) / 1000;
    print_message("%.1f us per call\n", each * 1e6);
    assert_true(each < 200e-6);  // the goal is 20; shared machines are noisy
    vocab_free(v);
    free(tokens);
    free(scores);
    free(text);
}

// ---- RWKV, PLaMo-2

static void test_rwkv(void **state) {
    (void) state;
    const char *tokens[] = {"<s>", "\\x00", "a", "ab", "abc", "\\n", "\\\\", "\\xe6\\x96\\x87", "\\'"};
    static const int32_t types[] = {3, 1, 1, 1, 1, 1, 1, 1, 1};
    struct llama_vocab *v = vocab_must(&(struct vocab_spec){.model = "rwkv", .tokens = tokens, .types = types, .n = 9});
    expect_ids(v, "abca\nab\\文'", false, false, IDS(4, 2, 5, 3, 6, 7, 8));
    char buf[8];
    assert_int_equal(llama_token_to_piece(v, 7, buf, 8, 0, false), 3);
    assert_memory_equal(buf, "文", 3);
    vocab_free(v);
}

// The least cost of a text by trying everything.
static double best_cost(const char **tokens, const float *scores, size_t n, const char *p) {
    if (!*p) return 0;
    int one = utf8_len((uint8_t) *p);
    double best = 1000 + best_cost(tokens, scores, n, p + one);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(tokens[i]);
        if (len == 0 || strncmp(p, tokens[i], len) != 0) continue;
        double c = -(double) scores[i] + best_cost(tokens, scores, n, p + len);
        if (c < best) best = c;
    }
    return best;
}

static void test_plamo2(void **state) {
    (void) state;
    const char *tokens[260] = {"a", "b", "ab", "ba", "aba", "文", "字", "文字"};
    float scores[260] = {-3.0f, -3.5f, -5.0f, -4.0f, -9.0f, -2.0f, -8.0f, -6.5f};
    int32_t types[260];
    for (int i = 0; i < 4 + 256; i++) types[i] = 1;
    for (int b = 0; b < 252; b++) {  // byte tokens from 8 on
        snprintf(ugm_bytes[b], 8, "<0x%02X>", (unsigned) b);
        tokens[8 + b] = ugm_bytes[b];
        types[8 + b] = 6;
    }
    struct llama_vocab *v =
        vocab_must(&(struct vocab_spec){.model = "plamo2", .tokens = tokens, .types = types, .scores = scores, .n = 260});
    static const char *const parts[] = {"a", "b", "文", "字", "c"};
    uint32_t rng = 7;
    for (int it = 0; it < 500; it++) {
        char text[64] = "";
        for (uint32_t k = (rng = rng * 1664525 + 1013904223) >> 29; k > 0; k--)
            strcat(text, parts[(rng = rng * 1664525 + 1013904223) % 5 % 5]);
        llama_token t[64];
        int32_t n = llama_tokenize(v, text, (int32_t) strlen(text), t, 64, false, false);
        double cost = 0;
        char back[128];
        size_t at = 0;
        for (int32_t i = 0; i < n; i++) {
            cost += t[i] < 8 ? -(double) scores[t[i]] : 1000;
            at += (size_t) llama_token_to_piece(v, t[i], back + at, 64, 0, false);
        }
        assert_int_equal(at, strlen(text));
        assert_memory_equal(back, text, at);
        double want = best_cost(tokens, scores, 8, text);
        assert_true(cost > want - 1e-3 && cost < want + 1e-3);
    }
    vocab_free(v);
}

// ---- special tokens in one pass

static void test_many_special_tokens(void **state) {
    (void) state;
    enum { N = 6000, TURNS = 20000 };
    const char **special = calloc(N, sizeof *special);
    char(*text)[32] = calloc(N, 32);
    assert_non_null(text);
    for (int i = 0; i < N; i++) {
        snprintf(text[i], 32, i == 0 ? "<start_of_turn>" : i == 1 ? "<end_of_turn>" : "<special_%d>", i);
        special[i] = text[i];
    }
    struct llama_vocab *v = vocab_of_bytes("llama-bpe", special, N, NULL);
    static const char turn[] = "<start_of_turn>user\nhello<end_of_turn>\n";
    size_t len = sizeof turn - 1;
    char *chat = malloc(len * TURNS);
    llama_token *t = malloc(len * TURNS * sizeof *t);
    assert_non_null(t);
    for (int i = 0; i < TURNS; i++) memcpy(chat + (size_t) i * len, turn, len);
    double start = seconds();
    int32_t n = llama_tokenize(v, chat, (int32_t) (len * TURNS), t, (int32_t) (len * TURNS), false, true);
    double took = seconds() - start;
    assert_int_equal(n, TURNS * 13);
    print_message("%d turns in %.3f s\n", TURNS, took);
    assert_true(took < 1.0);
    // the longest of overlapping texts, from the left
    const char *overlap[] = {"<a>", "<a><b>", "<b>"};
    struct llama_vocab *w = vocab_of_bytes("llama-bpe", overlap, 3, NULL);
    expect_ids(w, "<a><b><b>", false, true, IDS(257, 258));
    expect_ids(w, "<a", false, true, IDS('<', 'a'));
    vocab_free(w);
    vocab_free(v);
    free(chat);
    free(t);
    free(text);
    free(special);
}

static void test_parts(void **state) {
    (void) state;
    const char *special[] = {"<|im_start|>", "<|im_end|>"};
    struct llama_vocab *v = vocab_of_bytes("llama-bpe", special, 2, NULL);
    const char *parts[] = {"<|im_start|>", "hi<|im_end|>", "<|im_end|>"};
    size_t lens[3];
    char text[64] = "";
    for (int i = 0; i < 3; i++) {
        lens[i] = strlen(parts[i]);
        strcat(text, parts[i]);
    }
    llama_token t[64];
    int32_t n = llama_tokenize_parts(v, text, lens, (bool[]){true, false, true}, 3, t, 64, false);
    assert_int_equal(n, 1 + 12 + 1);
    assert_int_equal(t[0], 256);
    assert_int_equal(t[n - 1], 257);
    for (int i = 1; i < n - 1; i++) assert_true(t[i] < 256);
    // a token that would begin in one part and end in the next is none
    n = llama_tokenize_parts(v, "<|im_end|>", (size_t[]){4, 6}, (bool[]){true, false}, 2, t, 64, false);
    assert_int_equal(n, 10);
    assert_int_equal(llama_tokenize_parts(v, NULL, NULL, NULL, 0, t, 64, false), 0);
    ggml_clear_error();
    assert_int_equal(llama_tokenize_parts(v, "x", NULL, NULL, 1, t, 64, false), INT32_MIN);
    assert_error("NULL");
    vocab_free(v);
}

// ---- long inputs, on a small stack

static void *long_inputs(void *arg) {
    struct llama_vocab *v = arg;
    static const struct {
        const char *unit;
        int n;
    } cases[] = {{"A", 26000},   {".", 200000},   {" ", 1000000},    {"中", 200000}, {"\n", 50000},
                 {" \n", 50000}, {"\r\n", 50000}, {"\t\n x", 20000}, {"ab", 300000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len = strlen(cases[i].unit), total = len * (size_t) cases[i].n;
        char *text = malloc(total);
        llama_token *t = malloc(total * sizeof *t);
        if (!text || !t) return NULL;
        for (int k = 0; k < cases[i].n; k++) memcpy(text + (size_t) k * len, cases[i].unit, len);
        int32_t n = llama_tokenize(v, text, (int32_t) total, t, (int32_t) total, false, false);
        char *back = malloc(total + 1);
        if (n <= 0 || !back || llama_detokenize(v, t, n, back, (int32_t) total, false, false) != (int32_t) total ||
            memcmp(back, text, total) != 0) {
            return NULL;
        }
        free(back);
        free(t);
        free(text);
    }
    return v;
}

static void test_long_inputs(void **state) {
    (void) state;
    static const char *const pres[] = {"gpt-4o", "qwen2", "llama-bpe", "deepseek-llm"};
    double start = seconds();
    for (int i = 0; i < 4; i++) {
        struct llama_vocab *v = vocab_of_bytes(pres[i], NULL, 0, NULL);
        pthread_attr_t attr;
        pthread_t thread;
        void *result = NULL;
        pthread_attr_init(&attr);
#if !defined(__SANITIZE_ADDRESS__)
        assert_int_equal(pthread_attr_setstacksize(&attr, 128 * 1024), 0);
#endif
        assert_int_equal(pthread_create(&thread, &attr, long_inputs, v), 0);
        pthread_join(thread, &result);
        pthread_attr_destroy(&attr);
        assert_ptr_equal(result, v);
        vocab_free(v);
    }
    assert_true(seconds() - start < 60);
}

// ---- detokenizing with clean spaces

static void test_clean_spaces(void **state) {
    (void) state;
    struct llama_vocab *v = vocab_of_bytes("gpt-2", NULL, 0, NULL);
    static const char *const cases[][2] = {{"a .b ?c !d ,e", "a.b?c!d,e"},
                                           {"do n't I 'm it 's we 've you 're", "don't I'm it's we've you're"},
                                           {"x ' y", "x'y"},
                                           {" a  . ", " a . "},
                                           {"plain", "plain"}};
    for (int i = 0; i < 5; i++) {
        llama_token t[64];
        char buf[64];
        int32_t n = 0;
        for (const char *p = cases[i][0]; *p; p++) t[n++] = *p;
        int32_t k = llama_detokenize(v, t, n, buf, sizeof buf, false, false);
        assert_int_equal(k, strlen(cases[i][1]));
        assert_memory_equal(buf, cases[i][1], (size_t) k);
        assert_int_equal(llama_detokenize(v, t, n, buf, k - 1, false, false), -k);
    }
    vocab_free(v);
}

static void test_sorted(void **state) {
    (void) state;
    const char *special[] = {"<|im_end|>", "<|x|>"};
    struct llama_vocab *v = vocab_of_bytes("gpt-2", special, 2, NULL);
    const struct vocab_order *o = vocab_sorted(v);
    assert_non_null(o);
    assert_ptr_equal(o, vocab_sorted(v));
    assert_int_equal(o->n, 256);
    assert_int_equal(o->n_end, 2);  // <|im_end|> and the default EOS
    for (uint32_t i = 1; i < o->n; i++) {
        size_t a, b;
        const char *p = vocab_piece(v, o->ids[i - 1], &a), *q = vocab_piece(v, o->ids[i], &b);
        int c = memcmp(p, q, a < b ? a : b);
        assert_true(c < 0 || (c == 0 && a <= b));
        assert_memory_equal(p, q, o->same[i]);
    }
    vocab_free(v);
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_types),
        cmocka_unit_test(test_no_vocabulary),
        cmocka_unit_test(test_ids_outside),
        cmocka_unit_test(test_odd_byte_tokens),
        cmocka_unit_test(test_space_prefix),
        cmocka_unit_test(test_plain_text_is_no_control_token),
        cmocka_unit_test(test_bos_never_twice),
        cmocka_unit_test(test_roles_by_name),
        cmocka_unit_test(test_roles_over_types),
        cmocka_unit_test(test_harmony_ends),
        cmocka_unit_test(test_all_bytes),
        cmocka_unit_test(test_merges_without_a_token),
        cmocka_unit_test(test_broken_utf8),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_wpm),
        cmocka_unit_test(test_ugm),
        cmocka_unit_test(test_ugm_call_is_cheap),
        cmocka_unit_test(test_rwkv),
        cmocka_unit_test(test_plamo2),
        cmocka_unit_test(test_many_special_tokens),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_long_inputs),
        cmocka_unit_test(test_clean_spaces),
        cmocka_unit_test(test_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
