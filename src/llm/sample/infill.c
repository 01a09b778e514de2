// For filling in the middle, after top-k and top-p: ends if the model is about to end; otherwise adds the probability of
// longer tokens to the candidate that is their beginning ("hel" takes that of "hell" and "hello"), drops what is unlikely,
// and ends if nothing is left.
#include "sample/sample.h"
#include "vocab/vocab.h"
#include <math.h>

#define END_WEIGHT 3.0f  // how much the probability of ending counts, times the number of candidates
#define UNLIKELY 0.2f

struct infill {
    SAMPLER_PLAIN;
    const struct llama_vocab *vocab;
};

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "infill";
}

static bool is_end(const struct infill *s, const llama_token_data *d) { return llama_vocab_is_eog(s->vocab, d->id); }

static void normalize(llama_token_data_array *c) {
    double sum = 0;
    for (size_t i = 0; i < c->size; i++) sum += c->data[i].p;
    for (size_t i = 0; i < c->size && sum > 0; i++) {
        c->data[i].p = (float) (c->data[i].p / sum);
        c->data[i].logit = c->data[i].p > 0 ? logf(c->data[i].p) : -INFINITY;  // later samplers start from logits
    }
    c->sorted = false;
}

// Candidates that are the beginning of others take their probability. Marked ones (p < 0) go.
static void fold(const struct infill *s, llama_token_data_array *c) {
    for (size_t i = 0; i < c->size; i++) {
        size_t n_i, n_k;
        const char *a = vocab_piece(s->vocab, c->data[i].id, &n_i);
        if (!a || n_i == 0 || c->data[i].p < 0 || is_end(s, &c->data[i])) continue;
        for (size_t k = 0; k < c->size; k++) {
            if (k == i || c->data[k].p < 0 || is_end(s, &c->data[k])) continue;
            const char *b = vocab_piece(s->vocab, c->data[k].id, &n_k);
            if (!b || n_k < n_i || (n_k == n_i && k < i) || memcmp(a, b, n_i) != 0) continue;
            // the likelier of the two stands for both, as its logit will
            size_t to = c->data[k].p > c->data[i].p ? k : i, from = to == k ? i : k;
            c->data[to].p += c->data[from].p;
            c->data[from].p = -1;
            if (from == i) break;
        }
    }
}

static size_t drop_below(const struct infill *s, llama_token_data_array *c, float least) {
    size_t k = 0, n_text = 0;
    for (size_t i = 0; i < c->size; i++) {
        bool end = is_end(s, &c->data[i]);
        if (c->data[i].p < 0 || (c->data[i].p < least && !end)) continue;
        n_text += !end;
        c->data[k++] = c->data[i];
    }
    c->size = k;
    return n_text;
}

static void only(llama_token_data_array *c, llama_token_data d) {
    c->data[0] = d;
    c->data[0].p = 1;
    c->size = 1;
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    const struct infill *s = smpl->ctx;
    if (c->size == 0 || !s->vocab) return;
    cand_softmax(c);
    c->selected = -1;
    llama_token_data best = c->data[cand_best(c)];
    float p_end = 0, p_text = 0;
    for (size_t i = 0; i < c->size; i++) *(is_end(s, &c->data[i]) ? &p_end : &p_text) += c->data[i].p;
    if (p_end > 0 && END_WEIGHT * p_end * (float) c->size > p_text) {
        size_t k = 0;
        for (size_t i = 0; i < c->size; i++) {
            if (is_end(s, &c->data[i])) c->data[k++] = c->data[i];
        }
        c->size = k;
        normalize(c);
        return;
    }
    fold(s, c);
    size_t n_text = drop_below(s, c, UNLIKELY);
    if (n_text == 0) {
        llama_token end = llama_vocab_eot(s->vocab);
        if (end == LLAMA_TOKEN_NULL) end = llama_vocab_eos(s->vocab);
        if (end != LLAMA_TOKEN_NULL) best = (llama_token_data){end, 0.0f, 1.0f};
        only(c, best);
        return;
    }
    normalize(c);
    if (n_text == 1) return;
    drop_below(s, c, 1.0f / ((float) n_text + 1));  // at least one is above the average
    normalize(c);
}

struct llama_sampler *llama_sampler_init_infill(const struct llama_vocab *vocab) {
    struct infill ctx = {.size_of_ctx = sizeof ctx, .vocab = vocab};
    return sampler_new(&sampler_kind_infill, &ctx, sizeof ctx);
}

const struct sampler_kind sampler_kind_infill = {
    .iface = {.name = name,
              .apply = apply,
              .clone = sampler_plain_clone,
              .free = sampler_plain_free,
              .copy_state = sampler_plain_copy,
              .backend_init = sampler_graph_ready,
              .backend_apply = sampler_graph_host},
};
