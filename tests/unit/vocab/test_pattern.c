// The patterns of pre.def: our engine against PCRE2 on random text, and time linear in the text.
#include "test.h"
#include "vocab/pattern.h"
#include <time.h>

static const struct split {
    const char *name;
    int n;
    const char *patterns[PATTERN_MAX_LEVELS];
} splits[] = {
#define SPLIT(name, n, ...) {#name, n, {__VA_ARGS__}},
#include "vocab/pre.def"
};
enum { N_SPLIT = sizeof splits / sizeof *splits };

static uint64_t rng = 88172645463325252u;

static uint32_t rnd(uint32_t n) {
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (uint32_t) (rng >> 16) % n;
}

static const char *const words[] = {" ",
                                    "  ",
                                    "\n",
                                    "\r\n",
                                    "\t",
                                    "\v",
                                    "a",
                                    "B",
                                    "word",
                                    "Word",
                                    "WORD",
                                    "'s",
                                    "'S",
                                    "'ll",
                                    "'",
                                    "1",
                                    "12",
                                    "1234",
                                    "0",
                                    "１２",
                                    "²",
                                    "½",
                                    ".",
                                    "!?",
                                    "...",
                                    "中",
                                    "文字",
                                    "々",
                                    "〇",
                                    "ひ",
                                    "カ",
                                    "한국",
                                    "é",
                                    "É",
                                    "ß",
                                    "ǅ",
                                    "ʰ",
                                    "ª",
                                    "\xcc\x81",
                                    "e\xcc\x81",
                                    "\xe0\xa4\xbe",
                                    "😀",
                                    "\xff",
                                    "\xc3",
                                    "\xe2\x80",
                                    "\xe2\x80\xa8",
                                    "\xc2\xa0",
                                    "\xc2\x85",
                                    "\xe3\x80\x80",
                                    "-",
                                    "_",
                                    "$",
                                    "+",
                                    "<",
                                    "`",
                                    "~",
                                    "/",
                                    "(",
                                    "）",
                                    "،",
                                    "।",
                                    "！",
                                    "ก",
                                    "a b",
                                    "don't",
                                    "I'M",
                                    "x=1;",
                                    "\xd8\xa7",
                                    "<sentinel:12>",
                                    "IMGIMGABZ",
                                    "ა",
                                    "\xf0\x9d\x94\x98",
                                    "ǈ"};

static size_t random_text(char *out) {
    size_t n = 0;
    for (uint32_t k = rnd(30); k > 0; k--) {
        const char *w = words[rnd(sizeof words / sizeof *words)];
        for (uint32_t r = rnd(8) ? 1 : rnd(9); r > 0; r--) {
            memcpy(out + n, w, strlen(w));
            n += strlen(w);
        }
    }
    return n;
}

static void test_same_as_pcre2(void **state) {
    (void) state;
    int n_own = 0;
    for (int i = 0; i < N_SPLIT; i++) {
        const struct split *s = &splits[i];
        struct pattern *own[PATTERN_MAX_LEVELS], *general[PATTERN_MAX_LEVELS];
        bool comparable = true;
        for (int k = 0; k < s->n; k++) {
            assert_int_equal(pattern_new(&own[k], s->patterns[k]), ERR_OK);
            n_own += !pattern_is_general(own[k]);
            comparable = comparable && !strstr(s->patterns[k], "AFMoE");
            general[k] = NULL;
            if (comparable) assert_int_equal(pattern_new_general(&general[k], s->patterns[k]), ERR_OK);
        }
        for (int it = 0; comparable && it < (test_small() ? 40 : 400); it++) {
            char text[4096];
            size_t n = random_text(text);
            struct pattern_cut a, b;
            pattern_cut_begin(&a, own, s->n, text, text + n);
            pattern_cut_begin(&b, general, s->n, text, text + n);
            for (const char *at = text;;) {
                const char *pa = NULL, *ea = NULL, *pb = NULL, *eb = NULL;
                bool more = pattern_cut_next(&a, &pa, &ea);
                assert_int_equal(pattern_cut_next(&b, &pb, &eb), more);
                if (!more) {
                    assert_ptr_equal(at, text + n);  // pieces cover the text
                    break;
                }
                if (pa != pb || ea != eb) print_error("%s: '%.*s'\n", s->name, (int) n, text);
                assert_ptr_equal(pa, at);
                assert_ptr_equal(pa, pb);
                assert_ptr_equal(ea, eb);
                assert_true(ea > pa);
                at = ea;
            }
        }
        for (int k = 0; k < s->n; k++) {
            pattern_free(own[k]);
            pattern_free(general[k]);
        }
    }
    assert_true(n_own > 80);  // PCRE2 is for the few that need it
}

static const struct split *find(const char *name) {
    for (int i = 0; i < N_SPLIT; i++) {
        if (strcmp(splits[i].name, name) == 0) return &splits[i];
    }
    fail();
    return NULL;
}

// Pieces joined by '|'.
static void cut(const char *name, const char *text, char *out) {
    const struct split *s = find(name);
    struct pattern *p[PATTERN_MAX_LEVELS];
    for (int k = 0; k < s->n; k++) assert_int_equal(pattern_new(&p[k], s->patterns[k]), ERR_OK);
    struct pattern_cut c;
    const char *at, *end;
    pattern_cut_begin(&c, p, s->n, text, text + strlen(text));
    *out = 0;
    while (pattern_cut_next(&c, &at, &end)) {
        if (*out) strcat(out, "|");
        strncat(out, at, (size_t) (end - at));
    }
    for (int k = 0; k < s->n; k++) pattern_free(p[k]);
}

static void test_known_cuts(void **state) {
    (void) state;
    static const struct {
        const char *name, *text, *want;
    } cases[] = {
        {"GPT2", "I'm here  now\n\n x", "I|'m| here| | now|\n\n| x"},
        {"LLAMA3", "I'M 12345 ok!\n\n", "I|'M| |123|45| ok|!\n\n"},
        {"QWEN2", "x=12", "x|=|1|2"},
        {"SMOLLM", "abc 12", "abc| |1|2"},
        {"GEMMA4", "a b\n\nc", "a b|\n\n|c"},
        {"AFMOE", "1234567", "1|234|567"},
        {"AFMOE", "12", "12"},
        {"AFMOE", "Ⅷx 12½34", "Ⅷ|x| |12|½34"},
        {"TINY_AYA", "1234567 1234x", "1|234|567| |123|4|x"},
        {"SUPERBPE", "a1234 b", "a|1|234| b"},
        {"SUPERBPE", "123456", "123|456"},
        {"KIMI_K2", "中文abc", "中文|abc"},
        {"WHITESPACE", " ab  c", " |ab|  |c"},
        {"GPT4O", "HelloWORLDfoo", "Hello|WORLDfoo"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[256];
        cut(cases[i].name, cases[i].text, out);
        assert_string_equal(out, cases[i].want);
    }
}

// Long runs of one character class: at most about twice the time for twice the text, and no stack.
static void test_linear_time(void **state) {
    (void) state;
    static const char *const runs[] = {" ", "A", "a", ".", "中", "1", "\n", " \n", "\r\n", "'", "\xff", "é", "Aa", "\t\n x"};
    const size_t many = test_small() ? 2000 : 200000;
    char *text = malloc(8 * many);
    assert_non_null(text);
    clock_t start = clock();
    for (int i = 0; i < N_SPLIT; i++) {
        const struct split *s = &splits[i];
        struct pattern *p[PATTERN_MAX_LEVELS];
        bool general = false;
        for (int k = 0; k < s->n; k++) {
            assert_int_equal(pattern_new(&p[k], s->patterns[k]), ERR_OK);
            general = general || pattern_is_general(p[k]);
        }
        for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
            size_t len = strlen(runs[r]), n = general ? many / 20 : many;
            for (size_t k = 0; k < n; k++) memcpy(text + k * len, runs[r], len);
            struct pattern_cut c;
            const char *at, *end, *to = text;
            pattern_cut_begin(&c, p, s->n, text, text + n * len);
            while (pattern_cut_next(&c, &at, &end)) to = end;
            assert_ptr_equal(to, text + n * len);
        }
        for (int k = 0; k < s->n; k++) pattern_free(p[k]);
    }
    double seconds = (double) (clock() - start) / CLOCKS_PER_SEC;
    print_message("%d patterns over %zu runs of %zu: %.2f s\n", N_SPLIT, sizeof runs / sizeof *runs, many, seconds);
    assert_true(seconds < 60);  // quadratic time would be hours
    free(text);
}

static void test_bad_patterns(void **state) {
    (void) state;
    struct pattern *p;
    ggml_clear_error();
    assert_int_not_equal(pattern_new(&p, "[a"), ERR_OK);
    assert_error("can't read pattern '[a'");
    assert_int_not_equal(pattern_new(&p, "(a"), ERR_OK);
    assert_error("can't read pattern");
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_pcre2),
        cmocka_unit_test(test_known_cuts),
        cmocka_unit_test(test_linear_time),
        cmocka_unit_test(test_bad_patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
