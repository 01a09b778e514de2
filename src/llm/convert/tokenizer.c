// A checkpoint's tokenizer as GGUF keys: sentencepiece models, and the kinds of tokenizer.json (WordPiece, BPE, Unigram).
#include "convert/tokenizer.h"

#include "convert/base64.h"
#include "convert/pre_names.h"
#include "convert/ranks.h"
#include "convert/sentencepiece.h"
#include "convert/vocab_out.h"
#include "ggml/ext.h"
#include "llama/enums.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORD_MARK "\xe2\x96\x81"  // U+2581, which stands for a space before a word

struct source {
    const struct checkpoint *c;
    json_t *json, *settings, *config;  // tokenizer.json, tokenizer_config.json, config.json; the first two may be NULL
    json_t *map, *added;  // special_tokens_map.json and added_tokens.json of older checkpoints; NULL: there are none
    struct vocab_out v;
    struct gguf_context *out;
};

// A vocabulary that has a line for each token.
struct lines {
    const char *file;
    enum err (*add)(struct source *s, int64_t id, const char *at, size_t n);
    enum err (*end)(struct source *s, const struct lines *how);
    const char *pre, *special;
    int64_t first;
};

static void set_u32(struct gguf_context *g, const char *key, int64_t v) {
    if (v >= 0 && v <= UINT32_MAX) gguf_set_val_u32(g, key, (uint32_t) v);
}

// ---- special tokens ------------------------------------------------------------------------------------------------

static int64_t find_token(const struct vocab_out *v, const char *text) {
    for (int64_t i = 0; text && i < v->n; i++)
        if (v->text[i] && strcmp(v->text[i], text) == 0) return i;
    return -1;
}

// tokenizer_config.json gives a special token as a string or as an object with `content`.
static const char *special_text(const struct source *s, const char *name) {
    json_t *j = json_object_get(s->settings, name);
    if (!j || json_is_null(j)) j = json_object_get(s->map, name);
    return json_is_object(j) ? json_string_value(json_object_get(j, "content")) : json_string_value(j);
}

// Several chat templates: the one named default is the model's, the others have keys of their own.
static void write_templates(const struct source *s, json_t *list) {
    const char *names[32];
    size_t n = 0, i;
    json_t *t;
    json_array_foreach(list, i, t) {
        const char *name = json_string_value(json_object_get(t, "name")),
                   *text = json_string_value(json_object_get(t, "template"));
        char key[160];
        if (!name || !text || n == sizeof(names) / sizeof(names[0])) continue;
        if (strcmp(name, "default") == 0) {
            gguf_set_val_str(s->out, "tokenizer.chat_template", text);
            continue;
        }
        const int len = snprintf(key, sizeof(key), "tokenizer.chat_template.%s", name);
        if (len < 0 || len >= (int) sizeof(key)) continue;
        gguf_set_val_str(s->out, key, text);
        names[n++] = name;
    }
    if (n) gguf_set_arr_str(s->out, "tokenizer.chat_templates", names, n);
}

static void write_special(const struct source *s) {
    static const struct {
        const char *name, *config, *key;
    } table[] = {
        {"bos_token", "bos_token_id", "tokenizer.ggml.bos_token_id"},
        {"eos_token", "eos_token_id", "tokenizer.ggml.eos_token_id"},
        {"unk_token", "unk_token_id", "tokenizer.ggml.unknown_token_id"},
        {"sep_token", "sep_token_id", "tokenizer.ggml.seperator_token_id"},
        {"pad_token", "pad_token_id", "tokenizer.ggml.padding_token_id"},
        {"cls_token", "cls_token_id", "tokenizer.ggml.cls_token_id"},
        {"mask_token", "mask_token_id", "tokenizer.ggml.mask_token_id"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        json_t *j = json_object_get(s->config, table[i].config);
        if (json_is_array(j)) j = json_array_get(j, 0);
        const int64_t named = find_token(&s->v, special_text(s, table[i].name));
        if (named >= 0)
            set_u32(s->out, table[i].key, named);
        else if (json_is_integer(j))
            set_u32(s->out, table[i].key, json_integer_value(j));
    }
    json_t *types = json_object_get(s->config, "type_vocab_size");
    if (json_is_integer(types)) set_u32(s->out, "tokenizer.ggml.token_type_count", json_integer_value(types));
    json_t *bos = json_object_get(s->settings, "add_bos_token"), *eos = json_object_get(s->settings, "add_eos_token");
    if (json_is_boolean(bos)) gguf_set_val_bool(s->out, "tokenizer.ggml.add_bos_token", json_is_true(bos));
    if (json_is_boolean(eos)) gguf_set_val_bool(s->out, "tokenizer.ggml.add_eos_token", json_is_true(eos));
    json_t *chat = json_object_get(s->settings, "chat_template");
    if (json_is_string(chat)) gguf_set_val_str(s->out, "tokenizer.chat_template", json_string_value(chat));
    if (json_is_array(chat)) write_templates(s, chat);
}

// One of them. What stands for an unknown token goes on doing so.
static enum err add_token(struct source *s, int64_t id, json_t *text, bool special) {
    if (id >= s->v.n) {  // Gemma 3's marks of images in its models for texts alone
        ggml_log_write(GGML_LOG_LEVEL_INFO, "the added token '%.60s' has no row in the model and is left out\n",
                       json_string_value(text));
        return ERR_OK;
    }
    if (id >= 0 && s->v.text[id] && s->v.type[id] == LLAMA_TOKEN_TYPE_UNKNOWN) return ERR_OK;
    return vocab_out_set(&s->v, id, json_string_value(text), json_string_length(text), 0,
                         special ? LLAMA_TOKEN_TYPE_CONTROL : LLAMA_TOKEN_TYPE_USER_DEFINED);
}

// Added tokens of tokenizer.json, of tokenizer_config.json (added_tokens_decoder), or of added_tokens.json.
static enum err take_added(struct source *s) {
    size_t i;
    json_t *t;
    const char *id;
    json_array_foreach(json_object_get(s->json, "added_tokens"), i, t) {
        json_t *text = json_object_get(t, "content");
        if (!json_is_string(text)) continue;
        TRY(add_token(s, json_integer_value(json_object_get(t, "id")), text, json_is_true(json_object_get(t, "special"))));
    }
    json_object_foreach(json_object_get(s->settings, "added_tokens_decoder"), id, t) {
        json_t *text = json_object_get(t, "content");
        const long long n = strtoll(id, NULL, 10);
        if (!json_is_string(text) || n < 0 || n >= s->v.n || (s->v.text[n] && s->v.type[n] != LLAMA_TOKEN_TYPE_NORMAL))
            continue;
        TRY(add_token(s, n, text, json_is_true(json_object_get(t, "special"))));
    }
    json_object_foreach(s->added, id, t) {
        const json_int_t n = json_integer_value(t);
        if (!json_is_integer(t) || n < 0 || n >= s->v.n || s->v.text[n]) continue;
        TRY(vocab_out_set(&s->v, n, id, strlen(id), 0, LLAMA_TOKEN_TYPE_USER_DEFINED));
    }
    return ERR_OK;
}

// ---- kinds -----------------------------------------------------------------------------------------------------------

// GGUF marks the pieces that begin a word, where WordPiece marks those that go on with one (##).
static enum err add_wordpiece(struct source *s, int64_t id, const char *text, size_t n, bool bracketed) {
    char marked[1024];
    const bool goes_on = n >= 2 && strncmp(text, "##", 2) == 0;
    const int k = snprintf(marked, sizeof(marked), "%s%.*s", goes_on || bracketed ? "" : WORD_MARK,
                           (int) (goes_on ? n - 2 : n), goes_on ? text + 2 : text);
    if (k < 0 || k >= (int) sizeof(marked)) return err_set(ERR_FORMAT, "the vocabulary holds a token of %zu bytes", n);
    return vocab_out_set(&s->v, id, marked, (size_t) k, 0,
                         bracketed && !s->json ? LLAMA_TOKEN_TYPE_CONTROL : LLAMA_TOKEN_TYPE_NORMAL);
}

static bool bracketed(const char *text, size_t n) { return n > 1 && text[0] == '[' && text[n - 1] == ']'; }

static enum err end_wordpiece(struct source *s, const struct lines *how) {
    (void) how;
    TRY(take_added(s));
    if (!json_is_integer(json_object_get(s->config, "type_vocab_size")))
        set_u32(s->out, "tokenizer.ggml.token_type_count", 1);
    gguf_set_val_str(s->out, "tokenizer.ggml.model", "bert");
    gguf_set_val_str(s->out, "tokenizer.ggml.pre", "default");
    return ERR_OK;
}

// A file of the checkpoint, whole, with a 0 behind it. Owner of *out: the caller.
static enum err read_all(const char *path, char **out, uint64_t *n) {
    struct file f;
    *out = NULL;
    TRY(file_open(&f, path));
    *n = f.size;
    *out = f.size < (uint64_t) 1 << 30 ? calloc(1, f.size + 1) : NULL;
    const enum err e = *out ? file_read(&f, 0, *out, f.size) : err_set(ERR_NOMEM, "no memory for %s", path);
    file_close(&f);
    return e;
}

// vocab.txt, a token a line: what older checkpoints have, whose special tokens are those in brackets.
static enum err add_txt_line(struct source *s, int64_t id, const char *at, size_t n) {
    TRY(add_wordpiece(s, id, at, n, bracketed(at, n)));
    if (n > 7 && strncmp(at, "[unused", 7) == 0) s->v.type[id] = LLAMA_TOKEN_TYPE_UNUSED;
    return ERR_OK;
}

// tokenizer.jsonl of PLaMo 2 and 3: a line is [text, score, kind, ...].
static enum err add_jsonl_line(struct source *s, int64_t id, const char *at, size_t n) {
    json_t *row = json_loadb(at, n, 0, NULL), *text = json_array_get(row, 0);
    const char *kind = json_string_value(json_array_get(row, 2));
    const enum llama_token_type type = !kind || strcmp(kind, "NORMAL") == 0 ? LLAMA_TOKEN_TYPE_NORMAL
                                       : strcmp(kind, "BYTE") == 0          ? LLAMA_TOKEN_TYPE_BYTE
                                       : strcmp(kind, "UNKNOWN") == 0       ? LLAMA_TOKEN_TYPE_UNKNOWN
                                                                            : LLAMA_TOKEN_TYPE_CONTROL;
    enum err e = ERR_OK;
    if (json_is_string(text))
        e = vocab_out_set(&s->v, id, json_string_value(text), json_string_length(text),
                          (float) json_number_value(json_array_get(row, 1)), type);
    else if (n > 0)
        e = err_set(ERR_FORMAT, "tokenizer.jsonl: line %lld is no list that begins with a text", (long long) id + 1);
    json_decref(row);
    return e;
}

static size_t put_utf8(char *out, uint32_t c) {
    const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    out[0] = (char) (more ? (0xF00 >> (more + 1)) | (c >> (6 * more)) : c);
    for (int i = 1; i <= more; i++) out[i] = (char) (0x80 | ((c >> (6 * (more - i))) & 0x3F));
    return (size_t) more + 1;
}

// A line of RWKV's vocabulary: "id literal length", the literal a text or bytes as Python writes them. Files spell tokens as bytes.
static enum err add_rwkv_line(struct source *s, int64_t id, const char *at, size_t n) {
    static const char plain[] = "\\'\"ntr", stands_for[] = "\\'\"\n\t\r";
    char *end, bytes[1024], text[4 * sizeof(bytes)];
    size_t n_bytes = 0, n_text = 0;
    if (n == 0) return ERR_OK;
    id = strtoll(at, &end, 10);
    const char *p = end + (*end == ' '), *stop = at + n;
    const bool raw = *p == 'b';
    p += raw;
    const char quote = *p++;
    for (; p < stop && *p != quote && n_bytes + 4 < sizeof(bytes); p++) {
        if (*p != '\\') {
            bytes[n_bytes++] = *p;
            continue;
        }
        p++;
        const char *known = *p ? strchr(plain, *p) : NULL;
        const int digits = *p == 'x' ? 2 : *p == 'u' ? 4 : 8;
        char hex[9] = "";
        if (known) {
            bytes[n_bytes++] = stands_for[known - plain];
            continue;
        }
        if (stop - p > digits) memcpy(hex, p + 1, (size_t) digits), p += digits;
        const uint32_t c = (uint32_t) strtoul(hex, NULL, 16);
        if (raw)
            bytes[n_bytes++] = (char) c;
        else
            n_bytes += put_utf8(bytes + n_bytes, c);
    }
    if (end == at || (quote != '\'' && quote != '"') || p >= stop || *p != quote || strtoull(p + 1, NULL, 10) != n_bytes)
        return err_set(ERR_FORMAT, "RWKV's vocabulary has a line that is not 'id token length': %.*s",
                       (int) (n < 80 ? n : 80), at);
    for (size_t i = 0; i < n_bytes; i++)
        n_text += (size_t) (bytes[i] < ' ' || bytes[i] > '~' || bytes[i] == '\\'
                                ? sprintf(text + n_text, "\\x%02x", (unsigned char) bytes[i])
                                : sprintf(text + n_text, "%c", bytes[i]));
    return vocab_out_set(&s->v, id, text, n_text, 0, LLAMA_TOKEN_TYPE_NORMAL);
}

static enum err end_plamo(struct source *s, const struct lines *how) {
    (void) how;
    s->v.has_scores = true;
    gguf_set_val_str(s->out, "tokenizer.ggml.model", "plamo2");
    gguf_set_val_bool(s->out, "tokenizer.ggml.add_space_prefix", false);
    return ERR_OK;
}

// Token 0 ends a text; a turn ends with a blank line.
static enum err end_rwkv(struct source *s, const struct lines *how) {
    (void) how;
    TRY(vocab_out_set(&s->v, 0, "<s>", 3, 0, LLAMA_TOKEN_TYPE_CONTROL));
    gguf_set_val_str(s->out, "tokenizer.ggml.model", "rwkv");
    gguf_set_val_str(s->out, "tokenizer.chat_template", "rwkv-world");
    set_u32(s->out, "tokenizer.ggml.eot_token_id", find_token(&s->v, "\\x0a\\x0a"));
    return ERR_OK;
}

static enum err add_ranks_line(struct source *s, int64_t id, const char *at, size_t n) {
    (void) id;
    return n > 0 ? ranks_add(&s->v, at, n) : ERR_OK;
}

static enum err end_ranks(struct source *s, const struct lines *how) {
    TRY(ranks_merges(&s->v));
    int64_t id = how->first;
    for (const char *at = how->special; *at && id < s->v.n; id++) {
        const size_t n = strcspn(at, " ");
        TRY(vocab_out_set(&s->v, id, at, n, 0, LLAMA_TOKEN_TYPE_CONTROL));
        at += n + (at[n] == ' ');
    }
    TRY(take_added(s));
    gguf_set_val_str(s->out, "tokenizer.ggml.model", "gpt2");
    gguf_set_val_str(s->out, "tokenizer.ggml.pre", how->pre);
    return ERR_OK;
}

// What tiktoken's vocabularies don't say is in the programs that read them: how text is split, and which special tokens there are from
// `first` on (Kimi's are in tokenizer_config.json).
static const struct lines line_files[] = {
    {"vocab.txt", add_ranks_line, end_ranks, "talkie", "<|endoftext|> <|end|> <|user|> <|assistant|> <|system|>", 65535},
    {"vocab.txt", add_txt_line, end_wordpiece, NULL, NULL, 0},
    {"tiktoken.model", add_ranks_line, end_ranks, "kimi-k2", "", 0},
    {"qwen.tiktoken", add_ranks_line, end_ranks, "qwen2", "<|endoftext|> <|im_start|> <|im_end|>", 151643},
    {"tokenizer.jsonl", add_jsonl_line, end_plamo, NULL, NULL, 0},
    {"rwkv_vocab_v20230424.txt", add_rwkv_line, end_rwkv, NULL, NULL, 0}};

static enum err convert_lines(struct source *s, const char *path, const struct lines *how) {
    char *data;
    uint64_t size;
    enum err e = read_all(path, &data, &size);
    int64_t id = 0;
    if (e == ERR_OK && how == line_files && !ranks_line(data, strcspn(data, "\r\n"))) how++;  // of the same name
    for (const char *at = data; e == ERR_OK && at < data + size; id++) {
        size_t n = strcspn(at, "\n");
        const char *next = at + n + 1;
        if (n && at[n - 1] == '\r') n--;
        e = how->add(s, id, at, n);
        at = next;
    }
    free(data);
    return e == ERR_OK ? how->end(s, how) : e;
}

static enum err convert_wordpiece(struct source *s, json_t *model) {
    const char *text;
    json_t *id;
    json_object_foreach(json_object_get(model, "vocab"), text, id) {
        const size_t n = strlen(text);
        TRY(add_wordpiece(s, json_integer_value(id), text, n, bracketed(text, n)));
    }
    return end_wordpiece(s, NULL);
}

static enum err take_merges(struct source *s, json_t *merges) {
    const size_t n = json_array_size(merges);
    s->v.merges = calloc(n + 1, sizeof(*s->v.merges));
    if (!s->v.merges) return err_set(ERR_NOMEM, "no memory for %zu merges", n);
    for (size_t i = 0; i < n; i++) {
        json_t *m = json_array_get(merges, i);
        const char *text = json_string_value(m), *a = json_string_value(json_array_get(m, 0)),
                   *b = json_string_value(json_array_get(m, 1));
        if (text)
            s->v.merges[i] = arena_copy(&s->v.arena, text, strlen(text));
        else if (a && b) {
            char *pair = arena_alloc(&s->v.arena, strlen(a) + strlen(b) + 2);
            if (pair) sprintf(pair, "%s %s", a, b);
            s->v.merges[i] = pair;
        } else
            return err_set(ERR_FORMAT, "tokenizer.json: merge %zu is neither a text nor a pair", i);
        if (!s->v.merges[i]) return err_set(ERR_NOMEM, "no memory for %zu merges", n);
    }
    s->v.n_merges = n;
    return ERR_OK;
}

static bool is_byte_token(const char *text, size_t n) {
    static const char hex[] = "0123456789ABCDEFabcdef";
    return n == 6 && strncmp(text, "<0x", 3) == 0 && text[5] == '>' && strchr(hex, text[3]) && strchr(hex, text[4]);
}

static enum err convert_bpe(struct source *s, json_t *model) {
    const char *text, *pre = NULL;
    json_t *id;
    const bool bytes = json_is_true(json_object_get(model, "byte_fallback"));
    json_object_foreach(json_object_get(model, "vocab"), text, id) {
        const size_t n = strlen(text);
        const int64_t k = json_integer_value(id);
        TRY(vocab_out_set(&s->v, k, text, n, -(float) k,
                          bytes && is_byte_token(text, n) ? LLAMA_TOKEN_TYPE_BYTE : LLAMA_TOKEN_TYPE_NORMAL));
    }
    TRY(take_added(s));
    if (bytes) {  // sentencepiece written as BPE: the order of the ids is the order of the merges
        s->v.has_scores = true;
        gguf_set_val_str(s->out, "tokenizer.ggml.model", "llama");
        gguf_set_val_str(s->out, "tokenizer.ggml.pre", "default");
        return ERR_OK;
    }
    TRY(take_merges(s, json_object_get(model, "merges")));
    TRY(pre_name_of(json_object_get(s->json, "pre_tokenizer"), &pre));
    gguf_set_val_str(s->out, "tokenizer.ggml.model", "gpt2");
    gguf_set_val_str(s->out, "tokenizer.ggml.pre", pre);
    return ERR_OK;
}

// What tokenizer.json does to text before it is cut, as the keys that say so.
static enum err write_normalizer(struct source *s, json_t *n) {
    const char *kind = json_string_value(json_object_get(n, "type"));
    json_t *part;
    size_t i;
    if (!kind) return ERR_OK;
    if (strcmp(kind, "Sequence") == 0) json_array_foreach(json_object_get(n, "normalizers"), i, part) {
            TRY(write_normalizer(s, part));
        }
    if (strcmp(kind, "Strip") == 0 || strcmp(kind, "Replace") == 0)  // runs of spaces become one
        gguf_set_val_bool(s->out, "tokenizer.ggml.remove_extra_whitespaces", true);
    if (strcmp(kind, "Precompiled") != 0) return ERR_OK;
    size_t bytes;
    char *map = base64_decode(json_string_value(json_object_get(n, "precompiled_charsmap")), &bytes);
    if (!map) return err_set(ERR_FORMAT, "tokenizer.json: precompiled_charsmap is not base64, or there is no memory for it");
    if (bytes) gguf_set_arr_data(s->out, "tokenizer.ggml.precompiled_charsmap", GGUF_TYPE_UINT8, map, bytes);
    free(map);
    return ERR_OK;
}

// Whether words begin with a mark of their own at the beginning of text.
static bool marks_first_word(json_t *pre) {
    json_t *part;
    size_t i;
    json_array_foreach(json_object_get(pre, "pretokenizers"), i, part) {
        if (marks_first_word(part)) return true;
    }
    const char *kind = json_string_value(json_object_get(pre, "type")),
               *scheme = json_string_value(json_object_get(pre, "prepend_scheme"));
    if (!kind || strcmp(kind, "Metaspace") != 0) return false;
    return scheme ? strcmp(scheme, "never") != 0 : !json_is_false(json_object_get(pre, "add_prefix_space"));
}

// Whether a pre-tokenizer cuts at spaces and drops them, so that runs of them count as one.
static bool drops_spaces(json_t *pre) {
    json_t *part;
    size_t i;
    json_array_foreach(json_object_get(pre, "pretokenizers"), i, part) {
        if (drops_spaces(part)) return true;
    }
    const char *kind = json_string_value(json_object_get(pre, "type"));
    return kind && strcmp(kind, "WhitespaceSplit") == 0;
}

static enum err convert_unigram(struct source *s, json_t *model) {
    size_t i;
    json_t *pair;
    json_array_foreach(json_object_get(model, "vocab"), i, pair) {
        json_t *text = json_array_get(pair, 0);
        if (!json_is_string(text))
            return err_set(ERR_FORMAT, "tokenizer.json: entry %zu of the vocabulary is no pair of text and score", i);
        TRY(vocab_out_set(&s->v, (int64_t) i, json_string_value(text), json_string_length(text),
                          (float) json_number_value(json_array_get(pair, 1)),
                          is_byte_token(json_string_value(text), json_string_length(text)) ? LLAMA_TOKEN_TYPE_BYTE
                                                                                           : LLAMA_TOKEN_TYPE_NORMAL));
    }
    json_t *unk = json_object_get(model, "unk_id");
    if (json_is_integer(unk) && json_integer_value(unk) >= 0 && json_integer_value(unk) < s->v.n) {
        s->v.type[json_integer_value(unk)] = LLAMA_TOKEN_TYPE_UNKNOWN;
        set_u32(s->out, "tokenizer.ggml.unknown_token_id", json_integer_value(unk));
    }
    TRY(take_added(s));
    s->v.has_scores = true;
    gguf_set_val_bool(s->out, "tokenizer.ggml.add_space_prefix",
                      marks_first_word(json_object_get(s->json, "pre_tokenizer")));
    gguf_set_val_bool(s->out, "tokenizer.ggml.remove_extra_whitespaces",
                      drops_spaces(json_object_get(s->json, "pre_tokenizer")));
    TRY(write_normalizer(s, json_object_get(s->json, "normalizer")));
    gguf_set_val_str(s->out, "tokenizer.ggml.model", "t5");
    gguf_set_val_str(s->out, "tokenizer.ggml.pre", "default");
    return ERR_OK;
}

// The field's models of the RoBERTa kind count four special tokens before the pieces, of which sentencepiece knows three, and a mask behind.
static enum err as_fairseq(struct vocab_out *v) {
    int64_t n = 0;
    while (n < v->n && v->text[n]) n++;
    if (n < 3 || n + 1 > v->n) return err_set(ERR_FORMAT, "sentencepiece.bpe.model holds %lld pieces", (long long) n);
    for (int64_t i = n; i > 3; i--) v->text[i] = v->text[i - 1], v->score[i] = v->score[i - 1], v->type[i] = v->type[i - 1];
    static const char *const first[] = {"<s>", "<pad>", "</s>", "<unk>"};
    for (int64_t i = 0; i < 4; i++)
        TRY(vocab_out_set(v, i, first[i], strlen(first[i]), 0,
                          i == 3 ? LLAMA_TOKEN_TYPE_UNKNOWN : LLAMA_TOKEN_TYPE_CONTROL));
    return n + 1 < v->n ? vocab_out_set(v, n + 1, "<mask>", 6, 0, LLAMA_TOKEN_TYPE_CONTROL) : ERR_OK;
}

static enum err convert_sentencepiece(struct source *s, const char *path, bool fairseq) {
    char *data;
    uint64_t size;
    struct spm_facts facts;
    enum err e = read_all(path, &data, &size);
    if (e == ERR_OK) e = spm_parse(data, size, &s->v, &facts);
    if (e == ERR_OK && fairseq) {
        e = as_fairseq(&s->v);
        facts.bos = 0, facts.pad = 1, facts.eos = 2, facts.unk = 3;
        gguf_set_val_bool(s->out, "tokenizer.ggml.add_bos_token", true);
        gguf_set_val_bool(s->out, "tokenizer.ggml.add_eos_token", true);
    }
    if (e == ERR_OK) e = take_added(s);
    if (e == ERR_OK) {
        gguf_set_val_str(s->out, "tokenizer.ggml.model", facts.unigram && facts.charsmap ? "t5" : "llama");
        gguf_set_val_str(s->out, "tokenizer.ggml.pre", "default");
        gguf_set_val_bool(s->out, "tokenizer.ggml.add_space_prefix", facts.add_dummy_prefix);
        gguf_set_val_bool(s->out, "tokenizer.ggml.remove_extra_whitespaces", facts.remove_extra_whitespaces);
        if (facts.charsmap)
            gguf_set_arr_data(s->out, "tokenizer.ggml.precompiled_charsmap", GGUF_TYPE_UINT8, facts.charsmap,
                              facts.charsmap_bytes);
        set_u32(s->out, "tokenizer.ggml.unknown_token_id", facts.unk);
        set_u32(s->out, "tokenizer.ggml.bos_token_id", facts.bos);
        set_u32(s->out, "tokenizer.ggml.eos_token_id", facts.eos);
        set_u32(s->out, "tokenizer.ggml.padding_token_id", facts.pad);
    }
    free(data);
    return e;
}

static enum err convert_json(struct source *s) {
    json_t *model = json_object_get(s->json, "model");
    const char *kind = json_string_value(json_object_get(model, "type"));
    if (!kind) kind = json_object_get(model, "merges") ? "BPE" : "WordPiece";  // older files leave it out
    if (strcmp(kind, "WordPiece") == 0) return convert_wordpiece(s, model);
    if (strcmp(kind, "BPE") == 0) return convert_bpe(s, model);
    if (strcmp(kind, "Unigram") == 0) return convert_unigram(s, model);
    return err_set(ERR_UNSUPPORTED, "tokenizer.json: the kind '%s' cannot be converted", kind);
}

// T5's file has a name of its own. XLM-RoBERTa's numbers are not its model's: tokenizer.json has them right, if there is one.
static enum err convert_any(struct source *s) {
    static const char *const models[] = {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"};
    char path[8192];
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        const bool fairseq = i == 2;
        const int n = snprintf(path, sizeof(path), "%s/%s", s->c->dir, models[i]);
        if (n > 0 && n < (int) sizeof(path) && !(fairseq && s->json) && access(path, F_OK) == 0)
            return convert_sentencepiece(s, path, fairseq);
    }
    if (s->json) return convert_json(s);
    for (size_t i = 0; i < sizeof(line_files) / sizeof(line_files[0]); i++) {
        const int n = snprintf(path, sizeof(path), "%s/%s", s->c->dir, line_files[i].file);
        if (n > 0 && n < (int) sizeof(path) && access(path, F_OK) == 0) return convert_lines(s, path, &line_files[i]);
    }
    return err_set(
        ERR_IO,
        "%s holds neither tokenizer.json nor a sentencepiece model (tokenizer.model, spiece.model), nor vocab.txt, "
        "tiktoken.model, qwen.tiktoken, tokenizer.jsonl or RWKV's vocabulary",
        s->c->dir);
}

// What is put around a text: the first and the last special token of the template for one.
static void write_template(const struct source *s, json_t *post) {
    const char *kind = json_string_value(json_object_get(post, "type"));
    json_t *part;
    size_t i;
    if (!kind) return;
    json_array_foreach(json_object_get(post, "processors"), i, part) { write_template(s, part); }
    const bool pair = strcmp(kind, "RobertaProcessing") == 0 || strcmp(kind, "BertProcessing") == 0;
    if (!pair && strcmp(kind, "TemplateProcessing") != 0) return;
    json_t *single = json_object_get(post, "single");
    const size_t n = json_array_size(single);
    const bool first = pair || (n && json_object_get(json_array_get(single, 0), "SpecialToken")),
               last = pair || (n && json_object_get(json_array_get(single, n - 1), "SpecialToken"));
    if (gguf_find_key(s->out, "tokenizer.ggml.add_bos_token") < 0)
        gguf_set_val_bool(s->out, "tokenizer.ggml.add_bos_token", first);
    if (gguf_find_key(s->out, "tokenizer.ggml.add_eos_token") < 0)
        gguf_set_val_bool(s->out, "tokenizer.ggml.add_eos_token", last);
}

// The chat template has a file of its own in newer checkpoints.
static enum err write_chat_template(const struct source *s) {
    char path[8192];
    const int n = snprintf(path, sizeof(path), "%s/chat_template.jinja", s->c->dir);
    if (n <= 0 || n >= (int) sizeof(path) || access(path, F_OK) != 0) return ERR_OK;
    char *text;
    uint64_t size;
    const enum err e = read_all(path, &text, &size);
    if (e == ERR_OK) gguf_set_val_str(s->out, "tokenizer.chat_template", text);
    free(text);
    return e;
}

enum err tokenizer_convert(const struct checkpoint *c, json_t *config, int64_t n_vocab, struct gguf_context *out) {
    struct source s = {.c = c, .config = config, .out = out};
    enum err e = vocab_out_init(&s.v, n_vocab);
    if (e == ERR_OK) e = checkpoint_json(c, "tokenizer.json", false, &s.json);
    if (e == ERR_OK) e = checkpoint_json(c, "tokenizer_config.json", false, &s.settings);
    if (e == ERR_OK) e = checkpoint_json(c, "special_tokens_map.json", false, &s.map);
    if (e == ERR_OK) e = checkpoint_json(c, "added_tokens.json", false, &s.added);
    if (e == ERR_OK) e = convert_any(&s);
    if (e == ERR_OK) e = vocab_out_write(&s.v, out);
    if (e == ERR_OK) write_special(&s);
    if (e == ERR_OK) write_template(&s, json_object_get(s.json, "post_processor"));
    if (e == ERR_OK) e = write_chat_template(&s);
    vocab_out_free(&s.v);
    json_decref(s.json);
    json_decref(s.settings);
    json_decref(s.map);
    json_decref(s.added);
    return e;
}
