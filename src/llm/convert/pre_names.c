// Names pre-tokenizers by what they do: the patterns of tokenizer.json and those of vocab/pre.def cut a probing text, and the first
// that cuts it the same is it. Comparing the patterns as text would miss most, because the field writes them in several ways.
#include "convert/pre_names.h"

#include "vocab/pattern.h"

#include <stdlib.h>
#include <string.h>

static const char probe[] =
    "Hello World, it's 12345678 o'clock!!  We'LL see...   don'T\tyou\n\n  think?\r\n\r\nindent\n    code();\n\t\ttabs  \n"
    "CamelCaseWords HTTPServer x=3.14e-10; foo_bar-baz #tag @user $9,999.00 50% (a+b)*c/d <html>&amp; 'quoted' \"double\" "
    "`tick`"
    " na\xc3\xafve caf\xc3\xa9 \xc3\x9c"
    "ber \xe4\xbd\xa0\xe5\xa5\xbd\xe4\xb8\x96\xe7\x95\x8c \xe3\x81\x93\xe3\x82\x93 \xec\x95\x88\xeb\x85\x95 "
    "\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82 \xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7 "
    "\xe0\xa4\xa8\xe0\xa4\xae\xe0\xa4\xb8\xe0\xa5\x8d\xe0\xa4\xa4\xe0\xa5\x87 "
    "\xf0\x9f\x99\x82\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd e\xcc\x81 \xe2\x85\xa3 \xc2\xbd \xe2\x80\x94 "
    "\xe2\x80\x9cquotes\xe2\x80\x9d \xe3\x80\x82\xef\xbc\x81 1a2b3c 007 v1.2.3 ......\n \n\n";

#define MAX_PIECES 2048

struct cut {
    int n;
    const char *end[MAX_PIECES];
};

static enum err cut_probe(const char *const *texts, int n, struct cut *out) {
    struct pattern *patterns[PATTERN_MAX_LEVELS] = {0};
    enum err e =
        n <= PATTERN_MAX_LEVELS
            ? ERR_OK
            : err_set(ERR_UNSUPPORTED, "a pre-tokenizer of %d patterns; at most %d are possible", n, PATTERN_MAX_LEVELS);
    for (int i = 0; i < n && e == ERR_OK; i++) e = pattern_new(&patterns[i], texts[i]);
    out->n = 0;
    if (e == ERR_OK) {
        struct pattern_cut cut;
        const char *a, *b;
        pattern_cut_begin(&cut, patterns, n, probe, probe + sizeof(probe) - 1);
        while (out->n < MAX_PIECES && pattern_cut_next(&cut, &a, &b)) out->end[out->n++] = b;
    }
    for (int i = 0; i < n && i < PATTERN_MAX_LEVELS; i++) pattern_free(patterns[i]);
    return e;
}

// ---- what tokenizer.json says ------------------------------------------------------------------------------------------

#define BYTE_LEVEL "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

struct list {
    const char *text[PATTERN_MAX_LEVELS];
    int n;
};

static enum err add(struct list *l, const char *pattern) {
    if (l->n == PATTERN_MAX_LEVELS)
        return err_set(ERR_UNSUPPORTED, "tokenizer.json: more than %d pre-tokenizer patterns", PATTERN_MAX_LEVELS);
    l->text[l->n++] = pattern;
    return ERR_OK;
}

static enum err collect(struct list *l, json_t *pre) {
    const char *kind = json_string_value(json_object_get(pre, "type"));
    size_t i;
    json_t *part;
    if (!kind) return err_set(ERR_FORMAT, "tokenizer.json: a pre-tokenizer without a type");
    if (strcmp(kind, "Sequence") == 0) {
        json_array_foreach(json_object_get(pre, "pretokenizers"), i, part) {
            const char *inner = json_string_value(json_object_get(part, "type"));
            if (inner && strcmp(inner, "Sequence") == 0)
                return err_set(ERR_UNSUPPORTED, "tokenizer.json: a sequence of pre-tokenizers inside another");
            TRY(collect(l, part));
        }
        return ERR_OK;
    }
    if (strcmp(kind, "Split") == 0) {
        const char *regex = json_string_value(json_object_get(json_object_get(pre, "pattern"), "Regex"));
        return regex ? add(l, regex) : err_set(ERR_UNSUPPORTED, "tokenizer.json: a Split that is not given by a Regex");
    }
    if (strcmp(kind, "Digits") == 0)
        return add(l, json_is_true(json_object_get(pre, "individual_digits")) ? "\\p{N}" : "\\p{N}+");
    if (strcmp(kind, "Punctuation") == 0) return add(l, "[\\p{P}\\$\\+<=>\\^~\\|`]");
    if (strcmp(kind, "ByteLevel") == 0)
        return json_is_false(json_object_get(pre, "use_regex")) ? ERR_OK : add(l, BYTE_LEVEL);
    return err_set(ERR_UNSUPPORTED, "tokenizer.json: the pre-tokenizer '%s' is not known", kind);
}

// ---- what we know --------------------------------------------------------------------------------------------------------

struct split {
    const char *name;
    int n;
    const char *text[PATTERN_MAX_LEVELS];
};

static const struct split splits[] = {
#define SPLIT(split, n, ...) {#split, n, {__VA_ARGS__}},
#include "vocab/pre.def"
#undef PRE
#undef SPLIT
};

// The names the field uses most come first where several share a split.
static const struct {
    const char *name, *split;
} names[] = {
#define PRE(name, split, flags) {name, #split},
#include "vocab/pre.def"
#undef PRE
#undef SPLIT
};

static const char *name_of_split(const char *split) {
    static const char *const preferred[] = {"gpt-2", "llama-bpe", "qwen2", "smollm", "gpt-4o", "default"};
    const char *first = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i].split, split) != 0) continue;
        if (!first) first = names[i].name;
        for (size_t k = 0; k < sizeof(preferred) / sizeof(preferred[0]); k++)
            if (strcmp(names[i].name, preferred[k]) == 0) return preferred[k];
    }
    return first;
}

enum err pre_name_of(json_t *pre, const char **name) {
    struct list l = {0};
    TRY(collect(&l, pre));
    struct cut *want = malloc(2 * sizeof(*want));
    if (!want) return err_set(ERR_NOMEM, "no memory to compare pre-tokenizers");
    struct cut *got = want + 1;
    enum err e = cut_probe(l.text, l.n, want);
    *name = NULL;
    for (size_t i = 0; i < sizeof(splits) / sizeof(splits[0]) && e == ERR_OK && !*name; i++) {
        e = cut_probe(splits[i].text, splits[i].n, got);
        if (e == ERR_OK && got->n == want->n && memcmp(got->end, want->end, sizeof(got->end[0]) * (size_t) got->n) == 0)
            *name = name_of_split(splits[i].name);
    }
    free(want);
    if (e == ERR_OK && !*name) e = err_set(ERR_UNSUPPORTED, "no known pre-tokenizer cuts text as this tokenizer.json does");
    return e;
}
