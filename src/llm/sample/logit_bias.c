// Adds a constant to the logits of chosen tokens; -INFINITY bans them.
#include "sample/sample.h"
#include "ggml-backend.h"

struct logit_bias {
    int32_t n, n_vocab;
    struct ggml_tensor *bias;  // [n_vocab] of the present graph, NULL: none
    llama_logit_bias list[];
};

static size_t size_of(int32_t n) { return sizeof(struct logit_bias) + (size_t) n * sizeof(llama_logit_bias); }

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "logit-bias";
}

static int by_token(const void *a, const void *b) {
    llama_token x = ((const llama_logit_bias *) a)->token, y = ((const llama_logit_bias *) b)->token;
    return (x > y) - (x < y);
}

static const llama_logit_bias *find(const struct logit_bias *s, llama_token token) {
    int32_t lo = 0, hi = s->n;
    while (lo < hi) {
        int32_t mid = lo + (hi - lo) / 2;
        if (s->list[mid].token < token) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < s->n && s->list[lo].token == token ? &s->list[lo] : NULL;
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    const struct logit_bias *s = smpl->ctx;
    if (s->n == 0) return;
    int32_t n_missed = 0;
    for (int32_t i = 0; i < s->n; i++) {
        llama_token t = s->list[i].token;
        if (t >= 0 && (size_t) t < c->size && c->data[t].id == t) {
            c->data[t].logit += s->list[i].bias;
        } else {
            n_missed++;
        }
    }
    if (n_missed) {  // not the whole vocabulary in order: look each candidate up instead
        for (size_t i = 0; i < c->size; i++) {
            if (c->data[i].id == (llama_token) i) continue;  // was in its place
            const llama_logit_bias *b = find(s, c->data[i].id);
            if (b) c->data[i].logit += b->bias;
        }
    }
    c->sorted = false;
}

// The biases of the whole vocabulary are an input of the graph.
static void graph_apply(struct llama_sampler *smpl, struct ggml_context *ctx, struct ggml_cgraph *gf,
                        struct llama_sampler_data *d) {
    (void) gf;
    struct logit_bias *s = smpl->ctx;
    s->bias = NULL;
    if (s->n == 0) return;
    s->bias = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 1, d->candidates ? s->n_vocab : ggml_nelements(d->logits));
    ggml_set_input(s->bias);
    struct ggml_tensor *b = d->candidates ? ggml_get_rows(ctx, s->bias, d->candidates) : s->bias;
    d->logits = ggml_add(ctx, d->logits, ggml_reshape_1d(ctx, b, ggml_nelements(d->logits)));
    d->probs = NULL;
}

static void graph_set_input(struct llama_sampler *smpl) {
    const struct logit_bias *s = smpl->ctx;
    if (!s->bias || !s->bias->buffer) return;
    ggml_backend_tensor_memset(s->bias, 0, 0, ggml_nbytes(s->bias));
    for (int32_t i = 0; i < s->n; i++)
        if (s->list[i].token >= 0 && s->list[i].token < ggml_nelements(s->bias))
            ggml_backend_tensor_set(s->bias, &s->list[i].bias, (size_t) s->list[i].token * sizeof(float), sizeof(float));
}

static struct llama_sampler *clone(const struct llama_sampler *smpl) {
    return sampler_new(&sampler_kind_logit_bias, smpl->ctx, size_of(((const struct logit_bias *) smpl->ctx)->n));
}

static void copy_state(const struct llama_sampler *src, struct llama_sampler *dst) {
    (void) src;  // the list is what the sampler is; it has no state
    (void) dst;
}

struct llama_sampler *llama_sampler_init_logit_bias(int32_t n_vocab, int32_t n_logit_bias,
                                                    const llama_logit_bias *logit_bias) {
    if (n_logit_bias < 0 || (n_logit_bias > 0 && !logit_bias)) {
        err_set(ERR_INVALID, "sampler: %d logit biases at %p", (int) n_logit_bias, (const void *) logit_bias);
        return NULL;
    }
    struct llama_sampler *smpl = sampler_new(&sampler_kind_logit_bias, NULL, size_of(n_logit_bias));
    if (!smpl) return NULL;
    struct logit_bias *s = smpl->ctx;
    s->n_vocab = n_vocab;
    if (n_logit_bias) memcpy(s->list, logit_bias, (size_t) n_logit_bias * sizeof *logit_bias);
    qsort(s->list, (size_t) n_logit_bias, sizeof *s->list, by_token);
    for (int32_t i = 0; i < n_logit_bias; i++) {  // several for one token add up
        if (s->n > 0 && s->list[s->n - 1].token == s->list[i].token) {
            s->list[s->n - 1].bias += s->list[i].bias;
        } else {
            s->list[s->n++] = s->list[i];
        }
    }
    return smpl;
}

const struct sampler_kind sampler_kind_logit_bias = {
    .iface = {.name = name,
              .apply = apply,
              .clone = clone,
              .free = sampler_plain_free,
              .copy_state = copy_state,
              .backend_init = sampler_graph_ready,
              .backend_apply = graph_apply,
              .backend_set_input = graph_set_input},
    .exact = true,
};
