// Calls that every sampler answers, and choosing the next token of a context.
#include "sample/sample.h"
#include "run/context.h"
#include "llama/context.h"
#include "llama/model.h"
#include "llama/vocab.h"
#include "base/log.h"
#include "ggml.h"

static const struct sampler_kind *const kinds[] = {
#define SAMPLER(name) &sampler_kind_##name,
#include "sample/sample.def"
};

const struct sampler_kind *sampler_kind_of(const struct llama_sampler *smpl) {
    for (size_t i = 0; smpl && i < sizeof kinds / sizeof *kinds; i++) {
        if (smpl->iface == &kinds[i]->iface) return kinds[i];
    }
    return NULL;
}

struct llama_sampler *sampler_new(const struct sampler_kind *kind, const void *init, size_t size) {
    void *ctx = malloc(size ? size : 1);
    struct llama_sampler *smpl = ctx ? llama_sampler_init((struct llama_sampler_i *) (uintptr_t) &kind->iface, ctx) : NULL;
    if (!smpl) {
        free(ctx);
        if (!ctx) err_set(ERR_NOMEM, "sampler: no memory");
        return NULL;
    }
    if (init) {
        memcpy(ctx, init, size);
    } else {
        memset(ctx, 0, size);
    }
    return smpl;
}

struct plain {
    SAMPLER_PLAIN;
};

struct llama_sampler *sampler_plain_clone(const struct llama_sampler *smpl) {
    const struct plain *ctx = smpl->ctx;
    return sampler_new(sampler_kind_of(smpl), ctx, ctx->size_of_ctx);
}

void sampler_plain_copy(const struct llama_sampler *src, struct llama_sampler *dst) {
    memcpy(dst->ctx, src->ctx, ((const struct plain *) src->ctx)->size_of_ctx);
}

void sampler_plain_free(struct llama_sampler *smpl) { free(smpl->ctx); }

// ---- the interface

struct llama_sampler *llama_sampler_init(struct llama_sampler_i *iface, llama_sampler_context_t ctx) {
    if (!iface) {
        err_set(ERR_INVALID, "sampler: the interface is NULL");
        return NULL;
    }
    struct llama_sampler *smpl = malloc(sizeof *smpl);
    if (!smpl) {
        err_set(ERR_NOMEM, "sampler: no memory");
        return NULL;
    }
    *smpl = (struct llama_sampler){iface, ctx};
    return smpl;
}

const char *llama_sampler_name(const struct llama_sampler *smpl) {
    return smpl && smpl->iface->name ? smpl->iface->name(smpl) : "(null)";
}

void llama_sampler_accept(struct llama_sampler *smpl, llama_token token) {
    if (smpl && smpl->iface->accept) smpl->iface->accept(smpl, token);
}

void llama_sampler_apply(struct llama_sampler *smpl, llama_token_data_array *cur_p) {
    if (smpl && cur_p && smpl->iface->apply) smpl->iface->apply(smpl, cur_p);
}

void llama_sampler_reset(struct llama_sampler *smpl) {
    if (smpl && smpl->iface->reset) smpl->iface->reset(smpl);
}

struct llama_sampler *llama_sampler_clone(const struct llama_sampler *smpl) {
    if (!smpl) return NULL;
    if (smpl->iface->clone) return smpl->iface->clone(smpl);
    if (!smpl->ctx) return llama_sampler_init(smpl->iface, NULL);
    err_set(ERR_UNSUPPORTED, "sampler: '%s' has a context and no clone function", llama_sampler_name(smpl));
    return NULL;
}

void llama_sampler_copy(const struct llama_sampler *src, struct llama_sampler *dst) {
    if (!src || !dst || src->iface != dst->iface) {
        err_set(ERR_INVALID, "sampler: the state of '%s' can't be copied to '%s'", llama_sampler_name(src),
                llama_sampler_name(dst));
        return;
    }
    if (src == dst) return;
    if (src->iface->copy_state) {
        src->iface->copy_state(src, dst);
    } else if (src->ctx) {
        err_set(ERR_UNSUPPORTED, "sampler: '%s' can't copy its state", llama_sampler_name(src));
    }
}

void llama_sampler_free(struct llama_sampler *smpl) {
    if (!smpl) return;
    if (smpl->iface->free) smpl->iface->free(smpl);
    free(smpl);
}

uint32_t llama_sampler_get_seed(const struct llama_sampler *smpl) {
    const struct sampler_kind *kind = sampler_kind_of(smpl);
    return kind && kind->seed ? kind->seed(smpl) : LLAMA_DEFAULT_SEED;
}

// ---- llama_sampler_sample

// Candidates of output idx: those that the graph's own samplers left, or the whole vocabulary.
static size_t candidates(struct llama_context *ctx, int32_t idx, llama_token_data *data, size_t cap) {
    uint32_t n = llama_get_sampled_logits_count_ith(ctx, idx), n_ids = llama_get_sampled_candidates_count_ith(ctx, idx);
    const float *logits = n ? llama_get_sampled_logits_ith(ctx, idx) : NULL;
    const llama_token *ids = n_ids == n && n ? llama_get_sampled_candidates_ith(ctx, idx) : NULL;
    if (!logits || (n_ids && n_ids != n)) {
        ids = NULL;
        n = (uint32_t) cap;
        logits = llama_get_logits_ith(ctx, idx);
    }
    if (!logits) return 0;
    if (n > cap) n = (uint32_t) cap;
    for (uint32_t i = 0; i < n; i++) data[i] = (llama_token_data){ids ? ids[i] : (llama_token) i, logits[i], 0.0f};
    return n;
}

// applied: the sampler has done its work on them inside the graph.
static llama_token choose(struct llama_sampler *smpl, llama_token_data_array *c, bool applied) {
    if (!applied) llama_sampler_apply(smpl, c);
    if (c->size == 0) {
        err_set(ERR_FAILED, "sampler: '%s' left no candidate", llama_sampler_name(smpl));
        return LLAMA_TOKEN_NULL;
    }
    if (c->selected < 0 || (size_t) c->selected >= c->size) {
        log_debug("sampler: '%s' chose none of %zu candidates; the most likely one is taken\n", llama_sampler_name(smpl),
                  c->size);
        c->selected = cand_best(c);
    }
    return c->data[c->selected].id;
}

llama_token llama_sampler_sample(struct llama_sampler *smpl, struct llama_context *ctx, int32_t idx) {
    if (!smpl || !ctx) {
        err_set(ERR_INVALID, "sampler: the %s is NULL", smpl ? "context" : "sampler");
        return LLAMA_TOKEN_NULL;
    }
    int64_t start = ggml_time_us();
    llama_token token = llama_get_sampled_token_ith(ctx, idx);
    if (token != LLAMA_TOKEN_NULL) {  // chosen inside the graph
        llama_sampler_accept(smpl, token);
        return token;
    }
    size_t n_vocab = (size_t) llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(ctx)));
    struct cand_buffer own = {0}, *buf = chain_buffer(smpl);
    if (!buf) buf = &own;
    if (buf->cap < n_vocab) {
        llama_token_data *data = realloc(buf->data, n_vocab * sizeof *data);
        if (!data) {
            chain_count(smpl, 0);
            err_set(ERR_NOMEM, "sampler: no memory for %zu candidates", n_vocab);
            return LLAMA_TOKEN_NULL;
        }
        buf->data = data;
        buf->cap = n_vocab;
    }
    llama_token_data_array c = {buf->data, candidates(ctx, idx, buf->data, n_vocab), -1, false};
    if (c.size == 0) {
        err_set(ERR_INVALID, "sampler: there are no logits for output %d", (int) idx);
    } else {
        token = choose(smpl, &c, context_sampler_at(ctx, idx) == smpl);
        if (token != LLAMA_TOKEN_NULL) llama_sampler_accept(smpl, token);
    }
    free(own.data);
    chain_count(smpl, ggml_time_us() - start);
    return token;
}
