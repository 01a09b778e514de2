// Penalties for tokens that occurred among the last ones: repeat (Keskar et al. 2019: logits divided, negative ones
// multiplied), frequency (per occurrence) and presence (once), subtracted. Negative values make repeats more likely.
#include "sample/history.h"

struct penalties {
    int32_t n_vocab;
    int32_t *counts;      // [n_vocab] occurrences among the last tokens
    struct history last;  // cap 0 and everything: the counts hold all tokens accepted
    bool everything;
    float repeat, freq, present;
};

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "penalties";
}

static bool off(const struct penalties *s) {
    return (s->last.cap == 0 && !s->everything) || (s->repeat == 1.0f && s->freq == 0.0f && s->present == 0.0f);
}

static void count(struct penalties *s, llama_token t, int32_t by) {
    if (t >= 0 && t < s->n_vocab) s->counts[t] += by;
}

static void accept(struct llama_sampler *smpl, llama_token token) {
    struct penalties *s = smpl->ctx;
    if (off(s)) return;
    count(s, token, 1);
    if (!s->everything) count(s, history_push(&s->last, token), -1);
}

static void punish(const struct penalties *s, llama_token_data *d, int32_t n) {
    d->logit = d->logit <= 0.0f ? d->logit * s->repeat : d->logit / s->repeat;
    d->logit -= (float) n * s->freq + s->present;
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    const struct penalties *s = smpl->ctx;
    if (off(s) || (s->last.n == 0 && !s->everything)) return;
    for (size_t i = 0; i < c->size; i++) {
        llama_token t = c->data[i].id;
        if (t >= 0 && t < s->n_vocab && s->counts[t] > 0) punish(s, &c->data[i], s->counts[t]);
    }
    c->sorted = false;
}

static void reset(struct llama_sampler *smpl) {
    struct penalties *s = smpl->ctx;
    memset(s->counts, 0, (size_t) s->n_vocab * sizeof *s->counts);
    s->last.n = s->last.at = 0;
}

static void release(struct llama_sampler *smpl) {
    struct penalties *s = smpl->ctx;
    free(s->counts);
    history_free(&s->last);
    free(s);
}

static void copy_state(const struct llama_sampler *src, struct llama_sampler *dst) {
    const struct penalties *a = src->ctx;
    struct penalties *b = dst->ctx;
    if (a->n_vocab != b->n_vocab || a->last.cap != b->last.cap) {
        err_set(ERR_INVALID, "sampler: penalties over %d tokens can't take the state of ones over %d", (int) b->n_vocab,
                (int) a->n_vocab);
        return;
    }
    memcpy(b->counts, a->counts, (size_t) a->n_vocab * sizeof *a->counts);
    (void) history_copy(&b->last, &a->last);
}

static struct llama_sampler *make(const struct penalties *from) {
    struct penalties s = *from;
    s.counts = calloc((size_t) s.n_vocab + 1, sizeof *s.counts);
    bool ok = history_init(&s.last, from->last.cap) && s.counts;
    struct llama_sampler *smpl = ok ? sampler_new(&sampler_kind_penalties, &s, sizeof s) : NULL;
    if (!smpl) {
        free(s.counts);
        history_free(&s.last);
    }
    return smpl;
}

static struct llama_sampler *clone(const struct llama_sampler *smpl) {
    struct llama_sampler *copy = make(smpl->ctx);
    if (copy) copy_state(smpl, copy);
    return copy;
}

struct llama_sampler *llama_sampler_init_penalties(int32_t n_vocab, int32_t penalty_last_n, float penalty_repeat,
                                                   float penalty_freq, float penalty_present) {
    struct penalties s = {.n_vocab = n_vocab > 0 ? n_vocab : 0, .everything = penalty_last_n < 0};
    s.last.cap = penalty_last_n > 0 ? (size_t) penalty_last_n : 0;
    s.repeat = penalty_repeat > 0.0f ? penalty_repeat : 1.0f;  // nothing else makes sense as a divisor
    s.freq = penalty_freq == penalty_freq ? penalty_freq : 0.0f;
    s.present = penalty_present == penalty_present ? penalty_present : 0.0f;
    return make(&s);
}

const struct sampler_kind sampler_kind_penalties = {
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
