// A list of samplers that act one after the other, and the time they take.
#include "sample/sample.h"
#include "base/log.h"
#include "ggml-backend.h"

struct chain {
    struct llama_sampler **list;
    int32_t n, cap;
    bool on_host;        // inside a graph: one node that calls apply, not the members' nodes
    bool no_perf, busy;  // busy: inside llama_sampler_sample, which counts the time itself
    int64_t t_us;
    int32_t n_sample;
    struct cand_buffer buffer;
};

static struct chain *of(const struct llama_sampler *smpl, const char *what) {
    if (smpl && smpl->iface == &sampler_kind_chain.iface) return smpl->ctx;
    if (what) err_set(ERR_INVALID, "%s: '%s' is not a chain", what, llama_sampler_name(smpl));
    return NULL;
}

struct cand_buffer *chain_buffer(struct llama_sampler *smpl) {
    struct chain *ch = of(smpl, NULL);
    if (!ch) return NULL;
    ch->busy = true;
    return &ch->buffer;
}

void chain_count(struct llama_sampler *smpl, int64_t t_us) {
    struct chain *ch = of(smpl, NULL);
    if (!ch) return;
    ch->busy = false;
    ch->n_sample++;
    if (!ch->no_perf) ch->t_us += t_us;
}

static const char *name(const struct llama_sampler *smpl) {
    (void) smpl;
    return "chain";
}

static void accept(struct llama_sampler *smpl, llama_token token) {
    struct chain *ch = smpl->ctx;
    bool timed = !ch->busy && !ch->no_perf;
    int64_t start = timed ? ggml_time_us() : 0;
    for (int32_t i = 0; i < ch->n; i++) llama_sampler_accept(ch->list[i], token);
    if (timed) ch->t_us += ggml_time_us() - start;
    if (!ch->busy) ch->n_sample++;
}

static void apply(struct llama_sampler *smpl, llama_token_data_array *c) {
    struct chain *ch = smpl->ctx;
    bool timed = !ch->busy && !ch->no_perf;
    int64_t start = timed ? ggml_time_us() : 0;
    for (int32_t i = 0; i < ch->n; i++) llama_sampler_apply(ch->list[i], c);
    if (timed) ch->t_us += ggml_time_us() - start;
}

static void reset(struct llama_sampler *smpl) {
    struct chain *ch = smpl->ctx;
    for (int32_t i = 0; i < ch->n; i++) llama_sampler_reset(ch->list[i]);
}

static struct llama_sampler *clone(const struct llama_sampler *smpl) {
    const struct chain *ch = smpl->ctx;
    struct llama_sampler *copy = llama_sampler_chain_init((struct llama_sampler_chain_params){ch->no_perf});
    for (int32_t i = 0; copy && i < ch->n; i++) {
        struct llama_sampler *s = llama_sampler_clone(ch->list[i]);
        if (!s) {
            llama_sampler_free(copy);
            return NULL;
        }
        llama_sampler_chain_add(copy, s);
    }
    return copy;
}

static void copy_state(const struct llama_sampler *src, struct llama_sampler *dst) {
    const struct chain *a = src->ctx;
    const struct chain *b = dst->ctx;
    if (a->n != b->n) {
        err_set(ERR_INVALID, "sampler: a chain of %d can't take the state of one of %d", (int) b->n, (int) a->n);
        return;
    }
    for (int32_t i = 0; i < a->n; i++) llama_sampler_copy(a->list[i], b->list[i]);
}

static void release(struct llama_sampler *smpl) {
    struct chain *ch = smpl->ctx;
    for (int32_t i = 0; i < ch->n; i++) llama_sampler_free(ch->list[i]);
    free(ch->list);
    free(ch->buffer.data);
    free(ch);
}

static uint32_t seed(const struct llama_sampler *smpl) {
    const struct chain *ch = smpl->ctx;
    for (int32_t i = ch->n; i-- > 0;) {
        const struct sampler_kind *kind = sampler_kind_of(ch->list[i]);
        if (!kind || !kind->seed) continue;
        uint32_t s = kind->seed(ch->list[i]);
        if (s != LLAMA_DEFAULT_SEED) return s;
    }
    return LLAMA_DEFAULT_SEED;
}

struct llama_sampler_chain_params llama_sampler_chain_default_params(void) {
    return (struct llama_sampler_chain_params){.no_perf = true};
}

struct llama_sampler *llama_sampler_chain_init(struct llama_sampler_chain_params params) {
    struct chain ch = {.no_perf = params.no_perf};
    return sampler_new(&sampler_kind_chain, &ch, sizeof ch);
}

void llama_sampler_chain_add(struct llama_sampler *chain, struct llama_sampler *smpl) {
    struct chain *ch = of(chain, "sampler_chain_add");
    if (!ch) return;
    if (!smpl || smpl == chain) {
        err_set(ERR_INVALID, "sampler_chain_add: the sampler is %s", smpl ? "the chain itself" : "NULL");
        return;
    }
    if (ch->n == ch->cap) {
        int32_t cap = ch->cap ? ch->cap * 2 : 8;
        struct llama_sampler **list = realloc(ch->list, (size_t) cap * sizeof(*list));
        if (!list) {
            err_set(ERR_NOMEM, "sampler_chain_add: no memory");
            return;
        }
        ch->list = list;
        ch->cap = cap;
    }
    ch->list[ch->n++] = smpl;
}

struct llama_sampler *llama_sampler_chain_get(struct llama_sampler *chain, int32_t i) {
    struct chain *ch = of(chain, i == -1 ? NULL : "sampler_chain_get");
    if (i == -1) return ch ? chain : NULL;  // asks whether it is a chain
    return ch && i >= 0 && i < ch->n ? ch->list[i] : NULL;
}

int32_t llama_sampler_chain_n(const struct llama_sampler *chain) {
    const struct chain *ch = of(chain, "sampler_chain_n");
    return ch ? ch->n : 0;
}

struct llama_sampler *llama_sampler_chain_remove(struct llama_sampler *chain, int32_t i) {
    struct chain *ch = of(chain, "sampler_chain_remove");
    if (!ch || i < 0 || i >= ch->n) return NULL;
    struct llama_sampler *smpl = ch->list[i];
    memmove(&ch->list[i], &ch->list[i + 1], (size_t) (ch->n - i - 1) * sizeof(*ch->list));
    ch->n--;
    return smpl;
}

struct llama_perf_sampler_data llama_perf_sampler(const struct llama_sampler *chain) {
    const struct chain *ch = of(chain, "perf_sampler");
    return (struct llama_perf_sampler_data){ch ? (double) ch->t_us / 1e3 : 0.0, ch ? ch->n_sample : 0};
}

void llama_perf_sampler_print(const struct llama_sampler *chain) {
    struct llama_perf_sampler_data d = llama_perf_sampler(chain);
    log_info("llama_perf_sampler_print:    samplers time = %10.2f ms / %5d runs\n", d.t_sample_ms, (int) d.n_sample);
}

void llama_perf_sampler_reset(struct llama_sampler *chain) {
    struct chain *ch = of(chain, "perf_sampler_reset");
    if (!ch) return;
    ch->t_us = 0;
    ch->n_sample = 0;
}

// ---- inside the graph

// Nodes that give exactly what apply gives are taken wherever they are; others only for devices that aren't the host, and where members
// of the program's own leave no choice. A chain of our samplers can always run as one node on the host.
static bool graph_init(struct llama_sampler *smpl, ggml_backend_buffer_type_t buft, uint32_t n) {
    struct chain *ch = smpl->ctx;
    bool ours = ch->n > 0, nodes = ch->n > 0, exact = true;
    for (int32_t i = 0; i < ch->n; i++) {
        struct llama_sampler *s = ch->list[i];
        const struct sampler_kind *kind = sampler_kind_of(s);
        ours = ours && kind;
        exact = exact && kind && kind->exact;
        nodes = nodes && s->iface->backend_init && s->iface->backend_apply && kind != &sampler_kind_chain &&
                s->iface->backend_apply != sampler_graph_host && s->iface->backend_init(s, buft, n);
    }
    const bool host = !buft || ggml_backend_buft_is_host(buft);
    ch->on_host = !(nodes && (exact || !ours || !host));
    return ours || nodes;
}

static void graph_apply(struct llama_sampler *smpl, struct ggml_context *ctx, struct ggml_cgraph *gf,
                        struct llama_sampler_data *d) {
    struct chain *ch = smpl->ctx;
    if (ch->on_host)
        sampler_graph_host(smpl, ctx, gf, d);
    else
        for (int32_t i = 0; i < ch->n; i++) ch->list[i]->iface->backend_apply(ch->list[i], ctx, gf, d);
}

static void graph_accept(struct llama_sampler *smpl, struct ggml_context *ctx, struct ggml_cgraph *gf,
                         struct ggml_tensor *sampled) {
    struct chain *ch = smpl->ctx;
    for (int32_t i = 0; i < ch->n && !ch->on_host; i++)
        if (ch->list[i]->iface->backend_accept) ch->list[i]->iface->backend_accept(ch->list[i], ctx, gf, sampled);
}

static void graph_set_input(struct llama_sampler *smpl) {
    struct chain *ch = smpl->ctx;
    for (int32_t i = 0; i < ch->n && !ch->on_host; i++)
        if (ch->list[i]->iface->backend_set_input) ch->list[i]->iface->backend_set_input(ch->list[i]);
}

const struct sampler_kind sampler_kind_chain = {
    .iface = {.name = name,
              .accept = accept,
              .apply = apply,
              .reset = reset,
              .clone = clone,
              .free = release,
              .copy_state = copy_state,
              .backend_init = graph_init,
              .backend_apply = graph_apply,
              .backend_accept = graph_accept,
              .backend_set_input = graph_set_input},
    .seed = seed,
};
