// Lets only those tokens pass that a grammar allows next. A lazy grammar waits for a trigger: a token, or a pattern that the
// text so far holds; the grammar then begins with what the trigger matched.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "sample/sample.h"
#include "base/env.h"
#include "grammar/grammar.h"
#include "vocab/vocab.h"
#include <math.h>
#include <pcre2.h>

#define MASK_FROM 512  // candidates from which a mask of the whole vocabulary pays

struct trigger {
    char *word;  // found anywhere in the text; NULL: a pattern
    size_t len;
    pcre2_code *code;  // matched against the whole text
};

struct grammar_ctx {
    const struct llama_vocab *vocab;
    struct matcher *matcher;  // NULL: no grammar, everything passes
    struct trigger *triggers;
    size_t n_trigger;
    llama_token *tokens;
    size_t n_token;
    bool lazy, waiting;
    char *seen;  // the text while waiting
    size_t n_seen, cap_seen;
};

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "grammar";
}

// ---- waiting for a trigger

static bool remember(struct grammar_ctx *s, const char *p, size_t len) {
    if (s->n_seen + len > s->cap_seen) {
        size_t cap = (s->n_seen + len) * 2 + 1024;
        char *seen = realloc(s->seen, cap);
        if (!seen) {
            err_set(ERR_NOMEM, "grammar: no memory for %zu bytes of text before its trigger", cap);
            return false;
        }
        s->seen = seen;
        s->cap_seen = cap;
    }
    if (len) memcpy(s->seen + s->n_seen, p, len);
    s->n_seen += len;
    return true;
}

static void begin(struct grammar_ctx *s, const char *p, size_t len) {
    s->waiting = false;
    if (!matcher_accept_bytes(s->matcher, p, len)) {
        err_set(ERR_INVALID, "grammar: the text that triggered it does not fit it: '%.*s'", (int) (len < 60 ? len : 60), p);
    }
}

// The first place of a word in the text, of which only what `fresh` added can have completed it.
static const char *find_word(const struct grammar_ctx *s, const struct trigger *t, size_t fresh) {
    size_t from = s->n_seen - fresh, back = t->len - 1;
    from = from > back ? from - back : 0;
    for (size_t i = from; i + t->len <= s->n_seen; i++) {
        if (memcmp(s->seen + i, t->word, t->len) == 0) return s->seen + i;
    }
    return NULL;
}

// Where the first group that matched begins, or the whole match; NULL if the text does not match.
static const char *find_pattern(const struct grammar_ctx *s, const struct trigger *t) {
    pcre2_match_data *m = pcre2_match_data_create_from_pattern(t->code, NULL);
    const char *at = NULL;
    int n = m ? pcre2_match(t->code, (PCRE2_SPTR) s->seen, s->n_seen, 0, 0, m, NULL) : -1;
    if (n > 0) {
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(m);
        PCRE2_SIZE from = span[0];
        for (int i = n - 1; i >= 1; i--) {
            if (span[2 * i] != PCRE2_UNSET && span[2 * i + 1] > span[2 * i]) from = span[2 * i];
        }
        at = s->seen + from;
    }
    pcre2_match_data_free(m);
    return at;
}

static void wait(struct grammar_ctx *s, llama_token token) {
    size_t len;
    const char *piece = vocab_piece(s->vocab, token, &len);
    for (size_t i = 0; i < s->n_token; i++) {
        if (s->tokens[i] != token) continue;
        s->waiting = false;
        s->n_seen = 0;
        if (!matcher_accept(s->matcher, token))
            err_set(ERR_INVALID, "grammar: the token %d that triggered it does not fit it", (int) token);
        return;
    }
    if (!piece || !remember(s, piece, len)) return;
    for (size_t i = 0; i < s->n_trigger; i++) {
        const struct trigger *t = &s->triggers[i];
        const char *at = t->word ? find_word(s, t, len) : find_pattern(s, t);
        if (!at) continue;
        begin(s, at, (size_t) (s->seen + s->n_seen - at));
        s->n_seen = 0;
        return;
    }
}

// ---- the sampler

static void accept(struct llama_sampler *smpl, llama_token token) {
    struct grammar_ctx *s = smpl->ctx;
    if (!s->matcher) return;
    if (s->waiting) {
        wait(s, token);
    } else if (!matcher_dead(s->matcher) && !matcher_accept(s->matcher, token)) {
        err_set(ERR_INVALID, "grammar: token %d does not fit; from here on only the end does", (int) token);
    }
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    struct grammar_ctx *s = smpl->ctx;
    if (!s->matcher || s->waiting) return;
    const uint8_t *mask = c->size >= MASK_FROM ? matcher_mask(s->matcher) : NULL;
    int32_t n = llama_vocab_n_tokens(s->vocab);
    for (size_t i = 0; i < c->size; i++) {
        llama_token t = c->data[i].id;
        bool ok = mask ? t >= 0 && t < n && mask[t >> 3] >> (t & 7) & 1 : matcher_allows(s->matcher, t);
        if (!ok) c->data[i].logit = -INFINITY;
    }
    c->sorted = false;
}

static void reset(struct llama_sampler *smpl) {
    struct grammar_ctx *s = smpl->ctx;
    if (!s->matcher) return;
    matcher_reset(s->matcher);
    s->waiting = s->lazy;
    s->n_seen = 0;
}

static void drop(struct grammar_ctx *s) {
    matcher_free(s->matcher);
    for (size_t i = 0; i < s->n_trigger; i++) {
        free(s->triggers[i].word);
        pcre2_code_free(s->triggers[i].code);
    }
    free(s->triggers);
    free(s->tokens);
    free(s->seen);
}

static void release(struct llama_sampler *smpl) {
    drop(smpl->ctx);
    free(smpl->ctx);
}

static enum err copy_triggers(struct grammar_ctx *to, const struct grammar_ctx *from) {
    to->tokens = malloc((from->n_token + 1) * sizeof *to->tokens);
    to->triggers = calloc(from->n_trigger + 1, sizeof *to->triggers);
    if (!to->tokens || !to->triggers) return err_set(ERR_NOMEM, "grammar: no memory for its triggers");
    if (from->n_token) memcpy(to->tokens, from->tokens, from->n_token * sizeof *to->tokens);
    to->n_token = from->n_token;
    for (size_t i = 0; i < from->n_trigger; i++) {
        const struct trigger *t = &from->triggers[i];
        struct trigger *x = &to->triggers[to->n_trigger++];
        x->len = t->len;
        x->word = t->word ? malloc(t->len + 1) : NULL;
        x->code = t->code ? pcre2_code_copy(t->code) : NULL;
        if ((t->word && !x->word) || (t->code && !x->code)) return err_set(ERR_NOMEM, "grammar: no memory for its triggers");
        if (t->word) memcpy(x->word, t->word, t->len + 1);
    }
    return ERR_OK;
}

static struct llama_sampler *clone(const struct llama_sampler *smpl) {
    const struct grammar_ctx *s = smpl->ctx;
    struct grammar_ctx copy = {.vocab = s->vocab, .lazy = s->lazy, .waiting = s->waiting};
    enum err e = s->matcher ? matcher_clone(&copy.matcher, s->matcher) : ERR_OK;
    if (e == ERR_OK) e = copy_triggers(&copy, s);
    if (e == ERR_OK && !remember(&copy, s->seen, s->n_seen)) e = ERR_NOMEM;
    struct llama_sampler *out = e == ERR_OK ? sampler_new(&sampler_kind_grammar, &copy, sizeof copy) : NULL;
    if (!out) drop(&copy);
    return out;
}

static void copy_state(const struct llama_sampler *src, struct llama_sampler *dst) {
    const struct grammar_ctx *a = src->ctx;
    struct grammar_ctx *b = dst->ctx;
    struct matcher *m = NULL;
    if (a->matcher && matcher_clone(&m, a->matcher) != ERR_OK) return;
    matcher_free(b->matcher);
    b->matcher = m;
    b->waiting = a->waiting;
    b->n_seen = 0;
    if (!remember(b, a->seen, a->n_seen)) b->n_seen = 0;
}

// ---- making one

// A pattern is looked for anywhere in the text, but one from ^ to $ must be all of it, whatever alternatives stand between.
static enum err add_pattern(struct grammar_ctx *s, const char *pattern) {
    int code;
    PCRE2_SIZE at;
    const size_t len = strlen(pattern);
    uint32_t options = PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C;
    if (len > 1 && pattern[0] == '^' && pattern[len - 1] == '$') options |= PCRE2_ANCHORED | PCRE2_ENDANCHORED;
    pcre2_code *re = pcre2_compile((PCRE2_SPTR) pattern, PCRE2_ZERO_TERMINATED, options, &code, &at, NULL);
    if (!re) {
        return err_set(ERR_FORMAT, "grammar: PCRE2 can't read the trigger '%.80s': error %d at character %zu", pattern, code,
                       (size_t) at);
    }
    if (!env_get("GGML_NO_JIT")) pcre2_jit_compile(re, PCRE2_JIT_COMPLETE);  // without JIT the interpreter does it
    s->triggers[s->n_trigger++].code = re;
    return ERR_OK;
}

static enum err add_word(struct grammar_ctx *s, const char *word) {
    struct trigger *t = &s->triggers[s->n_trigger];
    t->len = strlen(word);
    if (t->len == 0) return ERR_OK;
    t->word = malloc(t->len + 1);
    if (!t->word) return err_set(ERR_NOMEM, "grammar: no memory for its triggers");
    memcpy(t->word, word, t->len + 1);
    s->n_trigger++;
    return ERR_OK;
}

struct wanted {
    const char **words, **patterns;
    size_t n_word, n_pattern;
    const llama_token *tokens;
    size_t n_token;
};

static enum err fill(struct grammar_ctx *s, const char *text, const char *root, const struct wanted *w) {
    if (!s->vocab) return err_set(ERR_INVALID, "grammar: the vocabulary is NULL");
    if ((w->n_word && !w->words) || (w->n_pattern && !w->patterns) || (w->n_token && !w->tokens)) {
        return err_set(ERR_INVALID, "grammar: a list of triggers is NULL");
    }
    struct grammar *g;
    TRY(grammar_new(&g, text, root ? root : "root", s->vocab));
    enum err e = matcher_new(&s->matcher, g, s->vocab);
    grammar_free(g);
    TRY(e);
    s->triggers = calloc(w->n_word + w->n_pattern + 1, sizeof *s->triggers);
    s->tokens = malloc((w->n_token + 1) * sizeof *s->tokens);
    if (!s->triggers || !s->tokens) return err_set(ERR_NOMEM, "grammar: no memory for its triggers");
    for (size_t i = 0; i < w->n_word; i++)
        TRY(w->words[i] ? add_word(s, w->words[i]) : err_set(ERR_INVALID, "grammar: trigger %zu is NULL", i));
    for (size_t i = 0; i < w->n_pattern; i++) {
        TRY(w->patterns[i] ? add_pattern(s, w->patterns[i]) : err_set(ERR_INVALID, "grammar: trigger %zu is NULL", i));
    }
    if (w->n_token) memcpy(s->tokens, w->tokens, w->n_token * sizeof *s->tokens);
    s->n_token = w->n_token;
    return ERR_OK;
}

static struct llama_sampler *make(const struct llama_vocab *vocab, const char *text, const char *root, bool lazy,
                                  const struct wanted *w) {
    struct grammar_ctx s = {.vocab = vocab, .lazy = lazy, .waiting = lazy};
    enum err e = text && *text ? fill(&s, text, root, w) : ERR_OK;  // no grammar: everything passes
    struct llama_sampler *smpl = e == ERR_OK ? sampler_new(&sampler_kind_grammar, &s, sizeof s) : NULL;
    if (!smpl) drop(&s);
    return smpl;
}

struct llama_sampler *llama_sampler_init_grammar(const struct llama_vocab *vocab, const char *grammar_str,
                                                 const char *grammar_root) {
    return make(vocab, grammar_str, grammar_root, false, &(struct wanted){0});
}

struct llama_sampler *llama_sampler_init_grammar_lazy_patterns(const struct llama_vocab *vocab, const char *grammar_str,
                                                               const char *grammar_root, const char **trigger_patterns,
                                                               size_t num_trigger_patterns,
                                                               const llama_token *trigger_tokens,
                                                               size_t num_trigger_tokens) {
    struct wanted w = {.patterns = trigger_patterns,
                       .n_pattern = num_trigger_patterns,
                       .tokens = trigger_tokens,
                       .n_token = num_trigger_tokens};
    return make(vocab, grammar_str, grammar_root, true, &w);
}

struct llama_sampler *llama_sampler_init_grammar_lazy(const struct llama_vocab *vocab, const char *grammar_str,
                                                      const char *grammar_root, const char **trigger_words,
                                                      size_t num_trigger_words, const llama_token *trigger_tokens,
                                                      size_t num_trigger_tokens) {
    struct wanted w = {
        .words = trigger_words, .n_word = num_trigger_words, .tokens = trigger_tokens, .n_token = num_trigger_tokens};
    return make(vocab, grammar_str, grammar_root, true, &w);
}

const struct sampler_kind sampler_kind_grammar = {
    .iface = {.name = name,
              .accept = accept,
              .apply = apply,
              .reset = reset,
              .clone = clone,
              .free = release,
              .copy_state = copy_state,
              .backend_init = sampler_graph_ready,
              .backend_apply = sampler_graph_host},
};
