// DRY ("don't repeat yourself", P. Knispel 2024): a token that would continue a sequence that stands earlier in the text
// loses multiplier * base ^ (length - allowed_length). Sequences do not reach over breakers (newline, quotes ...).
#include "sample/history.h"
#include "vocab/vocab.h"
#include <math.h>

#define DRY_WINDOW 65536  // tokens looked back at when no number is given
#define MAX_BREAKER 40    // bytes of a breaker that count

struct breaker {
    uint8_t len;
    char text[MAX_BREAKER];
};

struct dry {
    const struct llama_vocab *vocab;
    float multiplier, base;
    int32_t allowed;
    struct breaker *breakers;
    size_t n_breaker;
    struct history last;
    size_t since;            // tokens since the last breaker
    char tail[MAX_BREAKER];  // end of the text, for breakers that begin in an earlier token
    size_t n_tail;
    int32_t *z;  // [cap] scratch: length of the match that ends at each token back
    // scratch table: token -> longest match that it would continue
    struct dry_slot {
        llama_token token;
        int32_t len;  // 0: empty
    } * slots;
    size_t n_slot;  // power of two, twice the window
};

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "dry";
}

static bool off(const struct dry *s) { return s->last.cap == 0 || !(s->multiplier > 0.0f) || !(s->base >= 1.0f); }

// Whether a breaker ends inside the token's text.
static bool breaks(struct dry *s, llama_token token) {
    size_t len;
    const char *piece = s->vocab ? vocab_piece(s->vocab, token, &len) : NULL;
    if (!piece) return false;
    char text[2 * MAX_BREAKER];
    bool found = false;
    for (size_t at = 0; at < len; at += MAX_BREAKER) {  // tail and a part of the piece at a time
        size_t k = len - at < MAX_BREAKER ? len - at : MAX_BREAKER, n = s->n_tail + k;
        memcpy(text, s->tail, s->n_tail);
        memcpy(text + s->n_tail, piece + at, k);
        for (size_t b = 0; b < s->n_breaker && !found; b++) {
            size_t m = s->breakers[b].len, from = s->n_tail + 1 > m ? s->n_tail + 1 - m : 0;
            for (size_t i = from; i + m <= n && !found; i++) found = memcmp(text + i, s->breakers[b].text, m) == 0;
        }
        s->n_tail = n < MAX_BREAKER ? n : MAX_BREAKER;
        memcpy(s->tail, text + n - s->n_tail, s->n_tail);
    }
    return found;
}

static void accept(struct llama_sampler *smpl, llama_token token) {
    struct dry *s = smpl->ctx;
    if (off(s)) return;
    history_push(&s->last, token);
    s->since = breaks(s, token) ? 0 : s->since + 1;
}

static struct dry_slot *slot(const struct dry *s, llama_token token) {
    size_t i = (uint32_t) token * 0x9e3779b1u & (s->n_slot - 1);
    while (s->slots[i].len && s->slots[i].token != token) i = (i + 1) & (s->n_slot - 1);
    return &s->slots[i];
}

// z[i]: how many of the latest tokens equal those that end i tokens back; the Z-algorithm on the reversed text, linear.
static void match_lengths(struct dry *s, size_t limit) {
    const struct history *h = &s->last;
    size_t n = h->n, l = 0, r = 0;
    for (size_t i = 1; i < n; i++) {
        size_t k = 0;
        if (i < r) k = r - i < (size_t) s->z[i - l] ? r - i : (size_t) s->z[i - l];
        while (i + k < n && k < limit && history_back(h, k) == history_back(h, i + k)) k++;
        if (i + k > r) {
            l = i;
            r = i + k;
        }
        s->z[i] = (int32_t) (k < limit ? k : limit);
    }
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    struct dry *s = smpl->ctx;
    size_t n = s->last.n, limit = s->since < n ? s->since : n;
    if (off(s) || (int64_t) limit < s->allowed || n < 2) return;
    match_lengths(s, limit);
    bool any = false;
    memset(s->slots, 0, s->n_slot * sizeof *s->slots);
    for (size_t i = 1; i < n; i++) {
        if (s->z[i] < s->allowed || s->z[i] == 0) continue;
        struct dry_slot *x = slot(s, history_back(&s->last, i - 1));  // what followed there
        if (s->z[i] > x->len) *x = (struct dry_slot){history_back(&s->last, i - 1), s->z[i]};
        any = true;
    }
    if (!any) return;
    float most = s->base > 1.000001f ? 88.0f / logf(s->base) : 1e9f;  // beyond it the power is infinite
    for (size_t i = 0; i < c->size; i++) {
        const struct dry_slot *x = slot(s, c->data[i].id);
        if (x->len) c->data[i].logit -= s->multiplier * powf(s->base, fminf((float) (x->len - s->allowed), most));
    }
    c->sorted = false;
}

static void reset(struct llama_sampler *smpl) {
    struct dry *s = smpl->ctx;
    s->last.n = s->last.at = 0;
    s->since = s->n_tail = 0;
}

static void drop(struct dry *s) {
    free(s->breakers);
    free(s->z);
    free(s->slots);
    history_free(&s->last);
}

static void release(struct llama_sampler *smpl) {
    drop(smpl->ctx);
    free(smpl->ctx);
}

static struct llama_sampler *make(const struct dry *from) {
    struct dry s = *from;
    size_t cap = from->last.cap;
    for (s.n_slot = 16; s.n_slot < 2 * cap; s.n_slot *= 2) {
    }
    s.last.ring = NULL;
    s.breakers = malloc((s.n_breaker + 1) * sizeof *s.breakers);
    s.z = malloc((cap + 1) * sizeof *s.z);
    s.slots = malloc(s.n_slot * sizeof *s.slots);
    struct llama_sampler *smpl = NULL;
    if (s.breakers && s.z && s.slots && history_init(&s.last, cap)) {
        if (s.n_breaker) memcpy(s.breakers, from->breakers, s.n_breaker * sizeof *s.breakers);
        smpl = sampler_new(&sampler_kind_dry, &s, sizeof s);
    } else {
        err_set(ERR_NOMEM, "sampler: no memory to look back at %zu tokens", cap);
    }
    if (!smpl) drop(&s);
    return smpl;
}

static void copy_state(const struct llama_sampler *src, struct llama_sampler *dst) {
    const struct dry *a = src->ctx;
    struct dry *b = dst->ctx;
    if (a->last.cap != b->last.cap) {
        err_set(ERR_INVALID, "sampler: dry over %zu tokens can't take the state of one over %zu", b->last.cap, a->last.cap);
        return;
    }
    (void) history_copy(&b->last, &a->last);
    b->since = a->since;
    b->n_tail = a->n_tail;
    memcpy(b->tail, a->tail, sizeof b->tail);
}

static struct llama_sampler *clone(const struct llama_sampler *smpl) {
    struct llama_sampler *copy = make(smpl->ctx);
    if (copy) copy_state(smpl, copy);
    return copy;
}

struct llama_sampler *llama_sampler_init_dry(const struct llama_vocab *vocab, float dry_multiplier, float dry_base,
                                             int32_t dry_allowed_length, int32_t dry_penalty_last_n,
                                             const char **seq_breakers, size_t num_breakers) {
    struct dry s = {.vocab = vocab, .multiplier = dry_multiplier, .base = dry_base, .allowed = dry_allowed_length};
    if (s.allowed < 0) s.allowed = 0;
    if (!seq_breakers) num_breakers = 0;
    s.last.cap = dry_penalty_last_n < 0 ? DRY_WINDOW : (size_t) dry_penalty_last_n;
    if (off(&s)) s.last.cap = 0;
    s.breakers = calloc(num_breakers + 1, sizeof *s.breakers);
    if (!s.breakers) {
        err_set(ERR_NOMEM, "sampler: no memory for %zu breakers", num_breakers);
        return NULL;
    }
    for (size_t i = 0; i < num_breakers; i++) {
        size_t len = seq_breakers[i] ? strlen(seq_breakers[i]) : 0;
        if (len == 0) continue;
        if (len > MAX_BREAKER) len = MAX_BREAKER;
        s.breakers[s.n_breaker].len = (uint8_t) len;
        memcpy(s.breakers[s.n_breaker++].text, seq_breakers[i], len);
    }
    struct llama_sampler *smpl = make(&s);
    free(s.breakers);
    return smpl;
}

const struct sampler_kind sampler_kind_dry = {
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
