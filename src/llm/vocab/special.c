// Tokens with a role: ids from the file, names that are known by use (end of turn, fill in the middle), the set of tokens
// that end a generation, and the trie that finds special texts in one pass.
#include "vocab/vocab_int.h"
#include "base/log.h"
#include <stdlib.h>

#define NAMED(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct {
    enum vocab_special which;
    const char *key;
    const char *const *names;  // looked up if the file has no key; the first that exists wins
    bool ends;                 // all of them end a generation
} roles[] = {
    {SPECIAL_BOS, "bos_token_id", NULL, false},
    {SPECIAL_BOS, "cls_token_id", NULL, false},
    {SPECIAL_EOS, "eos_token_id", NULL, true},
    {SPECIAL_UNK, "unknown_token_id", NULL, false},
    {SPECIAL_SEP, "seperator_token_id", NULL, false},  // spelled so in files
    {SPECIAL_SEP, "separator_token_id", NULL, false},
    {SPECIAL_PAD, "padding_token_id", NULL, false},
    {SPECIAL_MASK, "mask_token_id", NULL, false},
    {SPECIAL_EOT, "eot_token_id",
     NAMED("<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>", "_<EOT>",
           "[EOT]", "<|eot|>",
           "<\xef\xbd\x9c"
           "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
           "<end_of_utterance>", "<|endofturn|>", "<|end_of_turn|>", "<|END_OF_TURN_TOKEN|>"),
     true},
    {SPECIAL_EOM, "eom_token_id", NAMED("<|eom_id|>", "<|eom|>"), true},
    {SPECIAL_FIM_PRE, "fim_pre_token_id",
     NAMED("<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>",
           "<\xef\xbd\x9c"
           "fim\xe2\x96\x81"
           "begin\xef\xbd\x9c>",
           "<PRE>", "\xe2\x96\x81<PRE>", "<|code_prefix|>", "<|prefix|>"),
     false},
    {SPECIAL_FIM_SUF, "fim_suf_token_id",
     NAMED("<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>",
           "<\xef\xbd\x9c"
           "fim\xe2\x96\x81hole\xef\xbd\x9c>",
           "<SUF>", "\xe2\x96\x81<SUF>", "<|code_suffix|>", "<|suffix|>"),
     false},
    {SPECIAL_FIM_MID, "fim_mid_token_id",
     NAMED("<|fim_middle|>", "<fim-middle>", "<fim_middle>",
           "<\xef\xbd\x9c"
           "fim\xe2\x96\x81"
           "end\xef\xbd\x9c>",
           "<MID>", "\xe2\x96\x81<MID>", "<|code_middle|>", "<|middle|>"),
     false},
    {SPECIAL_FIM_PRE, "prefix_token_id", NULL, false},
    {SPECIAL_FIM_SUF, "suffix_token_id", NULL, false},
    {SPECIAL_FIM_MID, "middle_token_id", NULL, false},
    {SPECIAL_FIM_PAD, "fim_pad_token_id", NAMED("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"), true},
    {SPECIAL_FIM_REP, "fim_rep_token_id", NAMED("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
     true},
    {SPECIAL_FIM_SEP, "fim_sep_token_id", NAMED("<|file_sep|>"), true},
};

// End a generation besides those above.
static const char *const enders[] = {
    "<|return|>", "<|call|>",         "<|flush|>", "<|calls|>", "<eos>", "</s>",
    "<turn|>",    "<|tool_response>", "[EOS]",     "[e~[",      NULL,
};

// Part a message of the harmony format into header, channel and text: programs read them in the output, so they are text of
// the user's whatever the file says.
static const char *const parts[] = {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", NULL};

static bool is(const char *name, const char *p, size_t len) { return strncmp(name, p, len) == 0 && name[len] == '\0'; }

static bool listed(const char *const *names, const char *p, size_t len) {
    for (; names && *names; names++) {
        if (is(*names, p, len)) return true;
    }
    return false;
}

static bool is_id(const struct llama_vocab *v, int64_t id) { return id >= 0 && id < v->n; }

// *id: -1 if the key is absent.
static enum err read_id(const struct llama_vocab *v, const struct gguf_context *meta, const char *name, llama_token *id) {
    char key[64];
    snprintf(key, sizeof key, "tokenizer.ggml.%s", name);
    *id = -1;
    int64_t k = gguf_find_key(meta, key), value;
    if (k < 0) return ERR_OK;
    switch (gguf_get_kv_type(meta, k)) {
        case GGUF_TYPE_UINT32: value = gguf_get_val_u32(meta, k); break;
        case GGUF_TYPE_INT32: value = gguf_get_val_i32(meta, k); break;
        case GGUF_TYPE_UINT64: value = (int64_t) gguf_get_val_u64(meta, k); break;
        case GGUF_TYPE_INT64: value = gguf_get_val_i64(meta, k); break;
        default:
            return err_set(ERR_FORMAT, "vocab: key '%s' has type %s; it must be u32", key,
                           gguf_type_name(gguf_get_kv_type(meta, k)));
    }
    if (is_id(v, value)) {
        *id = (llama_token) value;
    } else if (value != -1 && value != UINT32_MAX) {
        log_warn("vocab: key '%s' is %lld, but there are %d tokens; left aside\n", key, (long long) value, (int) v->n);
    }
    return ERR_OK;
}

static void set_ender(struct llama_vocab *v, llama_token t) { v->eog[t >> 3] |= (uint8_t) (1u << (t & 7)); }

static bool ends(const struct llama_vocab *v, llama_token t) { return v->eog[t >> 3] >> (t & 7) & 1; }

// A token whose name tells its role can't be plain text, whatever else the file says of its type.
static void make_control(struct llama_vocab *v, llama_token t) { v->attrs[t] |= LLAMA_TOKEN_ATTR_CONTROL; }

// Names of roles are brackets with something inside, perhaps behind a _ or U+2581: few tokens need to be compared.
static bool may_be_role(const char *p, size_t len) {
    if (len < 4 || len > 40 || (p[len - 1] != '>' && p[len - 1] != ']' && p[len - 1] != '[')) return false;
    return *p == '<' || *p == '[' || (*p == '_' && p[1] == '<') || (*p == '\xe2' && p[3] == '<');
}

static void find_by_name(struct llama_vocab *v) {
    enum { N = sizeof roles / sizeof *roles };
    size_t rank[SPECIAL_COUNT];
    for (int i = 0; i < SPECIAL_COUNT; i++) rank[i] = v->special[i] >= 0 ? 0 : SIZE_MAX;
    for (llama_token t = 0; t < v->n; t++) {
        size_t len;
        const char *p = span_at(&v->text, (uint32_t) t, &len);
        if (!may_be_role(p, len)) continue;
        for (int i = 0; i < N; i++) {
            const char *const *names = roles[i].names;
            for (size_t k = 0; names && names[k]; k++) {
                if (!is(names[k], p, len)) continue;
                make_control(v, t);
                if (roles[i].ends) set_ender(v, t);
                if (rank[roles[i].which] > k + 1) {
                    rank[roles[i].which] = k + 1;
                    v->special[roles[i].which] = t;
                }
            }
        }
        if (listed(enders, p, len)) {
            make_control(v, t);
            set_ender(v, t);
        }
    }
}

// gpt-oss and its kin: <|end|> parts messages of one answer, which ends with <|return|> or <|call|> (or <|calls|> and
// <|flush|>). So it ends nothing, and is text that programs read.
static void mend_harmony(struct llama_vocab *v) {
    static const char *const calls[] = {"<|call|>", "<|calls|>", NULL};
    bool ret = false, call = false, flush = false;
    llama_token end = -1;
    for (llama_token t = 0; t < v->n; t++) {
        size_t len;
        const char *p = span_at(&v->text, (uint32_t) t, &len);
        if (listed(parts, p, len)) v->attrs[t] = LLAMA_TOKEN_ATTR_USER_DEFINED;
        if (!ends(v, t)) continue;
        ret |= is("<|return|>", p, len);
        call |= listed(calls, p, len);
        flush |= is("<|flush|>", p, len);
        if (is("<|end|>", p, len)) end = t;
    }
    if (end < 0 || !call || (!ret && !flush)) return;
    v->eog[end >> 3] &= (uint8_t) ~(1u << (end & 7));
    v->attrs[end] = LLAMA_TOKEN_ATTR_USER_DEFINED;
}

// Gemma 4 ends its turns with <turn|> and <|tool_response>; </s> is markup that its answers may hold.
static void mend_gemma4(struct llama_vocab *v) {
    llama_token close = -1;
    bool response = false;
    for (llama_token t = 0; t < v->n; t++) {
        if (!ends(v, t)) continue;
        size_t len;
        const char *p = span_at(&v->text, (uint32_t) t, &len);
        response |= is("<|tool_response>", p, len);
        if (is("</s>", p, len)) close = t;
    }
    if (close < 0 || !response) return;
    v->eog[close >> 3] &= (uint8_t) ~(1u << (close & 7));
    v->attrs[close] = LLAMA_TOKEN_ATTR_NORMAL;
}

// Control tokens that a model keeps in reserve say so in their names: <unused7>, [unused7], <|unused7|>.
static void mark_unused(struct llama_vocab *v) {
    for (llama_token t = 0; t < v->n; t++) {
        if (!(v->attrs[t] & LLAMA_TOKEN_ATTR_CONTROL)) continue;
        size_t len;
        const char *p = span_at(&v->text, (uint32_t) t, &len);
        for (size_t i = 0; i + 6 <= len; i++) {
            if (memcmp(p + i, "unused", 6) == 0) v->attrs[t] |= LLAMA_TOKEN_ATTR_UNUSED;
        }
    }
}

static enum err read_flag(const struct gguf_context *meta, const char *name, bool *flag) {
    char key[64];
    snprintf(key, sizeof key, "tokenizer.ggml.%s", name);
    int64_t id = gguf_find_key(meta, key);
    if (id < 0) return ERR_OK;
    if (gguf_get_kv_type(meta, id) != GGUF_TYPE_BOOL) {
        return err_set(ERR_FORMAT, "vocab: key '%s' has type %s; it must be bool", key,
                       gguf_type_name(gguf_get_kv_type(meta, id)));
    }
    *flag = gguf_get_val_bool(meta, id);
    return ERR_OK;
}

static enum err read_suppressed(struct llama_vocab *v, const struct gguf_context *meta) {
    static const char key[] = "tokenizer.ggml.suppress_tokens";
    int64_t id = gguf_find_key(meta, key);
    if (id < 0) return ERR_OK;
    enum gguf_type type = gguf_get_kv_type(meta, id);
    if (type == GGUF_TYPE_ARRAY) type = gguf_get_arr_type(meta, id);
    if (gguf_get_kv_type(meta, id) != GGUF_TYPE_ARRAY || (type != GGUF_TYPE_INT32 && type != GGUF_TYPE_UINT32)) {
        return err_set(ERR_FORMAT, "vocab: key '%s' is of %s; it must be an array of i32", key, gguf_type_name(type));
    }
    size_t n = gguf_get_arr_n(meta, id);
    const int32_t *ids = gguf_get_arr_data(meta, id);
    if (n > (size_t) v->n) return err_set(ERR_FORMAT, "vocab: key '%s' lists %zu of %d tokens", key, n, (int) v->n);
    v->suppress = malloc((n + 1) * sizeof *v->suppress);
    if (!v->suppress) return err_set(ERR_NOMEM, "vocab: no memory for %zu suppressed tokens", n);
    for (size_t i = 0; i < n; i++) {
        if (is_id(v, ids[i])) v->suppress[v->n_suppress++] = ids[i];
    }
    return ERR_OK;
}

static enum err fill_trie(struct llama_vocab *v) {
    TRY(trie_init(&v->specials));
    const int special = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN | LLAMA_TOKEN_ATTR_USER_DEFINED;
    for (llama_token t = 0; t < v->n; t++) {
        if (!(v->attrs[t] & special)) continue;
        size_t len;
        const char *p = span_at(&v->text, (uint32_t) t, &len);
        if (len > 0) TRY(trie_add(&v->specials, p, len, t));
    }
    return ERR_OK;
}

enum err special_load(struct llama_vocab *v, const struct gguf_context *meta) {
    const struct vocab_kind *k = v->kind;
    for (int i = 0; i < SPECIAL_COUNT; i++) v->special[i] = -1;
    bool given[SPECIAL_COUNT] = {0};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        llama_token id;
        TRY(read_id(v, meta, roles[i].key, &id));
        if (id < 0 || given[roles[i].which]) continue;
        v->special[roles[i].which] = id;
        given[roles[i].which] = true;
    }
    const struct {
        enum vocab_special which;
        llama_token id;
    } defaults[] = {{SPECIAL_BOS, k->bos}, {SPECIAL_EOS, k->eos}, {SPECIAL_UNK, k->unk},
                    {SPECIAL_SEP, k->sep}, {SPECIAL_PAD, k->pad}, {SPECIAL_MASK, k->mask}};
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        if (!given[defaults[i].which] && is_id(v, defaults[i].id)) v->special[defaults[i].which] = defaults[i].id;
    }
    TRY(read_flag(meta, "add_bos_token", &v->add_bos));
    TRY(read_flag(meta, "add_eos_token", &v->add_eos));
    TRY(read_flag(meta, "add_sep_token", &v->add_sep));
    TRY(read_flag(meta, "remove_extra_whitespaces", &v->remove_extra_spaces));
    if (k->type == LLAMA_VOCAB_TYPE_UGM) v->add_space_prefix = v->remove_extra_spaces;  // files say both or neither
    TRY(read_flag(meta, "add_space_prefix", &v->add_space_prefix));
    TRY(read_flag(meta, "normalizer.lowercase", &v->lowercase));
    TRY(read_suppressed(v, meta));
    v->eog = calloc((size_t) v->n / 8 + 1, 1);
    if (!v->eog) return err_set(ERR_NOMEM, "vocab: no memory for %d tokens", (int) v->n);
    find_by_name(v);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (roles[i].ends && v->special[roles[i].which] >= 0) set_ender(v, v->special[roles[i].which]);
    }
    mend_harmony(v);
    mend_gemma4(v);
    mark_unused(v);
    return fill_trie(v);
}

size_t special_at(const struct llama_vocab *v, const char *p, const char *end, bool parse_special, llama_token *token) {
    uint32_t node = 0;
    size_t best = 0;
    for (const char *q = p; q < end; q++) {
        node = trie_step(&v->specials, node, (uint8_t) *q);
        if (!node) break;
        int32_t t = v->specials.values[node];
        if (t < 0 || (!parse_special && v->attrs[t] & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN))) continue;
        *token = t;
        best = (size_t) (q + 1 - p);
    }
    return best;
}
