// Making and freeing contexts, and their settings.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "run/context.h"

struct llama_context_params llama_context_default_params(void) {
    const int n = ggml_cpu_default_threads();
    return (struct llama_context_params){
        .n_ctx = 512,
        .n_batch = 2048,
        .n_ubatch = 512,
        .n_seq_max = 1,
        .n_outputs_max_per_seq = 1,
        .n_threads = n,
        .n_threads_batch = n,
        .rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED,
        .pooling_type = LLAMA_POOLING_TYPE_UNSPECIFIED,
        .attention_type = LLAMA_ATTENTION_TYPE_UNSPECIFIED,
        .flash_attn_type = LLAMA_FLASH_ATTN_TYPE_AUTO,
        .yarn_ext_factor = -1.0f,
        .yarn_attn_factor = -1.0f,
        .yarn_beta_fast = -1.0f,
        .yarn_beta_slow = -1.0f,
        .defrag_thold = -1.0f,
        .type_k = GGML_TYPE_F16,
        .type_v = GGML_TYPE_F16,
        .offload_kqv = true,
        .no_perf = true,
        .op_offload = true,
        .swa_full = true,
    };
}

bool context_has_memory(const struct llama_model *m) { return !(m->arch->flags & (ARCH_ENCODER | ARCH_DIFFUSION)); }

// ---- parameters -----------------------------------------------------------------------------------------------------------

static enum err check_params(const struct llama_context_params *p) {
    if (p->n_batch == 0) return err_set(ERR_INVALID, "n_batch is 0");
    if (p->n_ubatch == 0) return err_set(ERR_INVALID, "n_ubatch is 0");
    if (p->n_seq_max == 0 || p->n_seq_max > llama_max_parallel_sequences())
        return err_set(ERR_INVALID, "n_seq_max is %u; 1 to %zu are possible", p->n_seq_max, llama_max_parallel_sequences());
    if (p->n_threads == 0 || p->n_threads_batch == 0)
        return err_set(ERR_INVALID, "n_threads or n_threads_batch is 0 (-1 means the default)");
    if (p->n_threads > GGML_MAX_N_THREADS || p->n_threads_batch > GGML_MAX_N_THREADS)
        return err_set(ERR_INVALID, "%d threads (%d for batches) are asked for; %d are possible", p->n_threads,
                       p->n_threads_batch, GGML_MAX_N_THREADS);
    if (p->ctx_type != LLAMA_CONTEXT_TYPE_DEFAULT && p->ctx_type != LLAMA_CONTEXT_TYPE_MTP)
        return err_set(ERR_INVALID, "ctx_type is %d; DEFAULT (0) and MTP (1) are known", (int) p->ctx_type);
    if (p->n_rs_seq > 62) return err_set(ERR_INVALID, "n_rs_seq is %u; at most 62 snapshots are kept", p->n_rs_seq);
    if ((unsigned) p->type_k >= GGML_TYPE_COUNT || ggml_blck_size(p->type_k) == 0)
        return err_set(ERR_INVALID, "type_k is %d, which is no type", (int) p->type_k);
    if ((unsigned) p->type_v >= GGML_TYPE_COUNT || ggml_blck_size(p->type_v) == 0)
        return err_set(ERR_INVALID, "type_v is %d, which is no type", (int) p->type_v);
    const struct {
        const char *name;
        int value, max;
    } choices[] = {
        {"rope_scaling_type", p->rope_scaling_type, LLAMA_ROPE_SCALING_TYPE_MAX_VALUE},
        {"pooling_type", p->pooling_type, LLAMA_POOLING_TYPE_RANK},
        {"attention_type", p->attention_type, LLAMA_ATTENTION_TYPE_NON_CAUSAL},
        {"flash_attn_type", p->flash_attn_type, LLAMA_FLASH_ATTN_TYPE_ENABLED},
    };
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (choices[i].value < -1 || choices[i].value > choices[i].max)
            return err_set(ERR_INVALID, "%s is %d; -1 to %d are possible", choices[i].name, choices[i].value,
                           choices[i].max);
    const float f[] = {p->rope_freq_base, p->rope_freq_scale};
    for (int i = 0; i < 2; i++)
        if (!(f[i] >= 0) || isinf(f[i]))
            return err_set(ERR_INVALID, "%s is %g", i ? "rope_freq_scale" : "rope_freq_base", (double) f[i]);
    const float y[] = {p->yarn_ext_factor, p->yarn_attn_factor, p->yarn_beta_fast, p->yarn_beta_slow};
    static const char *const yn[] = {"yarn_ext_factor", "yarn_attn_factor", "yarn_beta_fast", "yarn_beta_slow"};
    for (int i = 0; i < 4; i++)
        if (isnan(y[i])) return err_set(ERR_INVALID, "%s is not a number", yn[i]);
    return ERR_OK;
}

static uint32_t round_256(uint64_t n) {
    n = (n + 255) & ~(uint64_t) 255;
    return n > INT32_MAX - 255 ? INT32_MAX - 255 : (uint32_t) n;
}

// The caches that a context has: the model's, or the one of the draft head that it runs.
static int first_cache(const struct hparams *hp, const struct cparams *cp) {
    return cp->nextn ? hp->kv_cache[cp->nextn] : 0;
}

static int end_cache(const struct hparams *hp, const struct cparams *cp) {
    return cp->nextn ? hp->kv_cache[cp->nextn] + 1 : hp->n_cache;
}

static enum err check_rows(const char *field, enum ggml_type type, int n) {
    const int block = (int) ggml_blck_size(type);
    if (n % block == 0) return ERR_OK;
    return err_set(ERR_INVALID, "%s can't be %s for this model: rows of %d values (a head) do not divide into blocks of %d",
                   field, ggml_type_name(type), n, block);
}

// Caches of quantized types hold whole blocks: of a head, where heads are taken one by one, else of all that a position keeps.
static enum err check_cache_types(const struct llama_model *m, const struct cparams *cp,
                                  const struct llama_context_params *p) {
    const struct hparams *hp = &m->hp;
    for (int c = first_cache(hp, cp); c < end_cache(hp, cp); c++) {
        const int il = hp->cache_layer[c];
        if (hp->cache_k[c]) TRY(check_rows("type_k", p->type_k, m->arch->cache_k ? hp->cache_k[c] : hp->n_embd_head_k[il]));
        if (hp->cache_v[c]) TRY(check_rows("type_v", p->type_v, m->arch->cache_v ? hp->cache_v[c] : hp->n_embd_head_v[il]));
    }
    return ERR_OK;
}

// Bytes of cache per position, all layers.
static double bytes_per_pos(const struct hparams *hp, const struct cparams *cp, const struct llama_context_params *p) {
    double n = 0;
    for (int c = first_cache(hp, cp); c < end_cache(hp, cp); c++)
        n += (double) hp->cache_k[c] * (double) ggml_type_size(p->type_k) / (double) ggml_blck_size(p->type_k) +
             (double) hp->cache_v[c] * (double) ggml_type_size(p->type_v) / (double) ggml_blck_size(p->type_v) +
             4.0 * (double) hp->cache_x[c];
    return n;
}

// Without a wish, the model's own length, but no more than half of the free memory holds.
static uint64_t default_ctx(const struct llama_model *m, const struct cparams *cp, const struct llama_context_params *p) {
    const uint64_t want = (uint64_t) m->hp.n_ctx_train;
    size_t free = 0, total = 0;
    ggml_backend_dev_memory(m->cpu, &free, &total);
    const double per = bytes_per_pos(&m->hp, cp, p);
    if (per <= 0 || free == 0 || (double) want * per <= 0.5 * (double) free) return want;
    uint64_t n = (uint64_t) (0.5 * (double) free / per) / 256 * 256;
    if (n < 512) n = 512;
    if (n > want) n = want;
    log_warn("a context of the model's %llu positions needs %.0f MB of cache; %llu positions fit into half of the free %.0f "
             "MB (choose with n_ctx, -c)\n",
             (unsigned long long) want, (double) want * per / 1e6, (unsigned long long) n, (double) free / 1e6);
    return n;
}

static void set_rope(struct cparams *cp, const struct hparams *hp, const struct llama_context_params *p) {
    int type = hp->rope_scaling;
    if (p->rope_scaling_type != LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED) type = (int) p->rope_scaling_type;
    cp->rope_base = p->rope_freq_base != 0 ? p->rope_freq_base : hp->rope_base;
    cp->rope_freq_scale = p->rope_freq_scale != 0 ? p->rope_freq_scale : 1.0f / hp->rope_f;
    if (type == LLAMA_ROPE_SCALING_TYPE_NONE) cp->rope_freq_scale = 1.0f;
    const float ext = p->yarn_ext_factor >= 0 ? p->yarn_ext_factor : hp->rope_ext;
    cp->rope_ext = ext >= 0 ? ext : type == LLAMA_ROPE_SCALING_TYPE_YARN ? 1.0f : 0.0f;
    // the caller's factor comes on top of the model's
    cp->rope_mag = (p->yarn_attn_factor >= 0 ? p->yarn_attn_factor : 1.0f) * hp->rope_attn_factor;
    if (cp->rope_ext != 0 && cp->rope_freq_scale < 1.0f)
        cp->rope_mag /= 1.0f + hp->rope_mag_log * logf(1.0f / cp->rope_freq_scale);
    // the operation itself multiplies by 1 + 0.1 ln(1 / scale) under yarn, also where the formula says 1
    if (cp->rope_ext != 0 && cp->rope_freq_scale > 1.0f) cp->rope_mag /= 1.0f + 0.1f * logf(1.0f / cp->rope_freq_scale);
    cp->rope_beta_fast = p->yarn_beta_fast >= 0 ? p->yarn_beta_fast : hp->rope_beta_fast;
    cp->rope_beta_slow = p->yarn_beta_slow >= 0 ? p->yarn_beta_slow : hp->rope_beta_slow;
    cp->rope_orig_ctx = p->yarn_orig_ctx ? (int32_t) p->yarn_orig_ctx : hp->rope_orig_ctx;
}

static void set_threads(struct cparams *cp, const struct llama_context_params *p) {
    cp->n_threads = p->n_threads > 0 ? p->n_threads : ggml_cpu_default_threads();
    cp->n_threads_batch = p->n_threads_batch > 0 ? p->n_threads_batch : cp->n_threads;
}

// Which head a context of type MTP runs: the first, or the one after that of ctx_other.
static enum err choose_head(const struct llama_model *m, const struct llama_context_params *p, struct cparams *cp) {
    if (p->ctx_type != LLAMA_CONTEXT_TYPE_MTP) return ERR_OK;
    if (m->hp.n_nextn <= 0)
        return err_set(ERR_UNSUPPORTED, "ctx_type is MTP: the model has no draft head (key %s.nextn_predict_layers)",
                       m->arch->name);
    if (!arch_can_nextn(m->arch, &m->hp))
        return err_set(ERR_UNSUPPORTED, "ctx_type is MTP: the draft head of %s models can't be run", m->arch->name);
    if (m->n_nextn <= 0)
        return err_set(ERR_INVALID, m->params.load_mtp
                                        ? "ctx_type is MTP: the file holds no tensors of a draft head"
                                        : "ctx_type is MTP: the model was loaded without its draft head (load_mtp)");
    cp->nextn = m->hp.n_layer;
    if (!p->ctx_other) return ERR_OK;
    if (p->ctx_other->model != m) return err_set(ERR_INVALID, "ctx_other is a context of another model");
    if (p->ctx_other->cp.nextn) cp->nextn = p->ctx_other->cp.nextn + 1;
    if (cp->nextn < m->hp.n_layer + m->n_nextn) return ERR_OK;
    return err_set(ERR_INVALID, "ctx_other runs the last of the model's %d draft heads: there is none behind it",
                   m->n_nextn);
}

static enum err set_params(struct llama_context *ctx) {
    const struct llama_model *m = ctx->model;
    const struct hparams *hp = &m->hp;
    const struct llama_context_params *p = &ctx->params;
    struct cparams *cp = &ctx->cp;
    TRY(check_params(p));
    TRY(choose_head(m, p, cp));
    if (context_has_memory(m)) TRY(check_cache_types(m, cp, p));
    const uint64_t n_ctx = p->n_ctx ? p->n_ctx : default_ctx(m, cp, p);
    cp->n_seq_max = (int32_t) p->n_seq_max;
    // one pool of cells for all sequences, or equal shares
    if (p->kv_unified || p->n_seq_max == 1) {
        cp->n_ctx = (int32_t) round_256(n_ctx);
        cp->n_ctx_seq = cp->n_ctx;
    } else {
        cp->n_ctx_seq = (int32_t) round_256((n_ctx + p->n_seq_max - 1) / p->n_seq_max);
        if ((int64_t) cp->n_ctx_seq * cp->n_seq_max > INT32_MAX)
            return err_set(ERR_INVALID, "%u sequences of %d positions are too many", p->n_seq_max, cp->n_ctx_seq);
        cp->n_ctx = cp->n_ctx_seq * cp->n_seq_max;
    }
    cp->causal = p->attention_type == LLAMA_ATTENTION_TYPE_UNSPECIFIED ? hp->causal != 0
                                                                       : p->attention_type == LLAMA_ATTENTION_TYPE_CAUSAL;
    if (m->arch->flags & (ARCH_ENCODER | ARCH_DIFFUSION)) cp->causal = false;
    uint32_t n_batch = p->n_batch;
    if (context_has_memory(m) && n_batch > (uint32_t) cp->n_ctx) n_batch = (uint32_t) cp->n_ctx;
    if (n_batch > 1u << 20) n_batch = 1u << 20;
    uint32_t n_ubatch = p->n_ubatch < n_batch ? p->n_ubatch : n_batch;
    if ((!cp->causal || !context_has_memory(m)) && n_ubatch < n_batch) {
        log_info("n_ubatch is raised to n_batch (%u): tokens that see each other are computed together\n", n_batch);
        n_ubatch = n_batch;
    }
    cp->n_batch = (int32_t) n_batch;
    cp->n_ubatch = (int32_t) n_ubatch;
    cp->n_rs_seq = m->arch->flags & ARCH_NO_SNAPSHOTS ? 0 : (int32_t) p->n_rs_seq;
    // Where every entry gives its embedding, a limit on outputs would be one on entries: programs mean their logits by it.
    const bool all = p->embeddings || m->arch->flags & ARCH_ENCODER;
    const uint32_t most = all ? 0 : p->n_outputs_max;
    cp->n_outputs_max = most && most < n_batch ? (int32_t) most : (int32_t) n_batch;
    cp->embeddings = p->embeddings;
    cp->offload_kqv = p->offload_kqv;
    cp->op_offload = p->op_offload;
    cp->no_perf = p->no_perf;
    cp->swa_full = p->swa_full;
    cp->type_k = p->type_k;
    cp->type_v = p->type_v;
    cp->pooling =
        p->pooling_type == LLAMA_POOLING_TYPE_UNSPECIFIED ? (enum llama_pooling_type) hp->pooling : p->pooling_type;
    if (cp->pooling == LLAMA_POOLING_TYPE_RANK && !m->w.cls.w && !m->w.cls_out.w)
        return err_set(ERR_INVALID,
                       "pooling_type is rank, but this model has no classifier (cls or cls.output) to rank with");
    if (m->arch->flags & ARCH_ENCODER) cp->embeddings = true;
    set_rope(cp, hp, p);
    set_threads(cp, p);
    return ERR_OK;
}

// ---- parts ------------------------------------------------------------------------------------------------------------------

static enum err add_backend(struct llama_context *ctx, ggml_backend_dev_t dev) {
    ggml_backend_t b = ggml_backend_dev_init(dev, NULL);
    if (!b) return err_set(ERR_FAILED, "device %s can't be opened (%s)", ggml_backend_dev_name(dev), ggml_last_error());
    ctx->backends[ctx->n_backends++] = b;
    return ERR_OK;
}

static enum err make_backends(struct llama_context *ctx) {
    for (int i = 0; i < ctx->model->n_dev; i++) TRY(add_backend(ctx, ctx->model->dev[i]));
    TRY(add_backend(ctx, ctx->model->cpu));
    ctx->cpu = ctx->backends[ctx->n_backends - 1];
    ggml_backend_cpu_set_abort_callback(ctx->cpu, ctx->abort_cb, ctx->abort_data);
    return ERR_OK;
}

static enum err make_memory(struct llama_context *ctx) {
    const struct llama_model *m = ctx->model;
    const struct hparams *hp = &m->hp;
    if (!context_has_memory(m)) return ERR_OK;
    const ggml_backend_buffer_type_t host = ggml_backend_dev_buffer_type(m->cpu);
    const int n_cache = end_cache(hp, &ctx->cp);  // those that this context hasn't stay empty
    struct kv_spec *cache = calloc((size_t) n_cache + 1, sizeof *cache);
    struct rs_spec *rs = calloc((size_t) hp->n_layer + 1, sizeof *rs);
    if (!cache || !rs) {
        free(cache);
        free(rs);
        return err_set(ERR_NOMEM, "no memory for the context's memory");
    }
    for (int c = first_cache(hp, &ctx->cp); c < n_cache; c++) {
        const int il = hp->cache_layer[c];
        cache[c] = (struct kv_spec){hp->cache_k[c], hp->cache_v[c], hp->cache_x[c], hp->is_swa[il] && hp->n_swa > 0,
                                    ctx->cp.offload_kqv ? ggml_backend_dev_buffer_type(m->layer_dev[il]) : host};
    }
    for (int il = 0; il < hp->n_layer && !ctx->cp.nextn; il++)
        rs[il] = (struct rs_spec){hp->state_r[il], hp->state_s[il],
                                  ctx->cp.offload_kqv ? ggml_backend_dev_buffer_type(m->layer_dev[il]) : host};
    const struct memory_params p = {
        .n_seq = ctx->cp.n_seq_max,
        .n_ctx = ctx->cp.n_ctx,
        .n_ctx_seq = ctx->cp.n_ctx_seq,
        .n_ubatch = ctx->cp.n_ubatch,
        .n_swa = hp->n_swa,
        .swa_full = ctx->cp.swa_full,
        .track_shift = hp->rope_mode != LLAMA_ROPE_TYPE_NONE,
        .no_alloc = m->params.no_alloc,
        .type_k = ctx->cp.type_k,
        .type_v = ctx->cp.type_v,
        .n_cache = n_cache,
        .cache = cache,
        .n_layer = hp->n_layer,
        .n_rs_seq = ctx->cp.n_rs_seq,
        .rs = rs,
        .host = host,
    };
    const enum err e = memory_new(&ctx->mem, &p);
    free(cache);
    free(rs);
    return e;
}

static enum err make_cross(struct llama_context *ctx) {
    if (!(ctx->model->arch->flags & ARCH_ENCODER_DECODER)) return ERR_OK;
    ctx->cross.n_max = ctx->cp.n_ubatch;
    ctx->cross_seq = malloc((size_t) ctx->cross.n_max * 4);
    ctx->cross_ctx = ggml_init((struct ggml_init_params){.mem_size = 2 * ggml_tensor_overhead(), .no_alloc = true});
    if (!ctx->cross_seq || !ctx->cross_ctx) return err_set(ERR_NOMEM, "no memory for the encoder's output");
    ctx->cross.seq = ctx->cross_seq;
    ctx->cross.states = ggml_new_tensor_2d(ctx->cross_ctx, GGML_TYPE_F32, ctx->model->hp.n_embd, ctx->cross.n_max);
    ctx->cross_buf = ggml_backend_alloc_ctx_tensors_from_buft(ctx->cross_ctx, ggml_backend_cpu_buffer_type());
    return ctx->cross_buf ? ERR_OK : err_set(ERR_NOMEM, "no memory for the encoder's output of %d tokens", ctx->cross.n_max);
}

static enum err make(struct llama_context *ctx) {
    const struct llama_model *m = ctx->model;
    if (m->params.vocab_only || !m->layers)
        return err_set(ERR_INVALID, "the model was loaded without its weights (vocab_only): no context can be made");
    TRY(set_params(ctx));
    TRY(make_backends(ctx));
    TRY(make_memory(ctx));
    TRY(make_cross(ctx));
    TRY(outputs_init(ctx));
    TRY(plan_init(ctx));
    TRY(graph_init(ctx));
    TRY(graph_reserve(ctx));
    for (size_t i = 0; i < ctx->params.n_samplers && ctx->params.samplers; i++)
        if (!llama_set_sampler(ctx, ctx->params.samplers[i].seq_id, ctx->params.samplers[i].sampler))
            log_warn("the sampler of sequence %d runs outside the graph\n", ctx->params.samplers[i].seq_id);
    return ERR_OK;
}

struct llama_context *llama_init_from_model(struct llama_model *model, struct llama_context_params params) {
    ggml_clear_error();
    if (!model) {
        (void) err_set(ERR_INVALID, "the model is NULL");
        return NULL;
    }
    struct llama_context *ctx = calloc(1, sizeof *ctx);
    if (!ctx) {
        (void) err_set(ERR_NOMEM, "no memory for a context");
        return NULL;
    }
    ctx->model = model;
    ctx->params = params;
    ctx->abort_cb = params.abort_callback;
    ctx->abort_data = params.abort_callback_data;
    ctx->perf.t_start_us = ggml_time_us();
    if (make(ctx) == ERR_OK) return ctx;
    llama_free(ctx);
    return NULL;
}

void llama_free(struct llama_context *ctx) {
    if (!ctx) return;
    training_free(ctx);
    samplers_free(ctx);
    free(ctx->all_ids);
    adapter_state_free(&ctx->adapters);
    graph_free(ctx);
    plan_free(ctx);
    outputs_free(ctx);
    memory_free(ctx->mem);
    if (ctx->cross_buf) ggml_backend_buffer_free(ctx->cross_buf);
    ggml_free(ctx->cross_ctx);
    free(ctx->cross_seq);
    for (int i = 0; i < ctx->n_backends; i++) ggml_backend_free(ctx->backends[i]);
    free(ctx);
}

struct llama_context *llama_new_context_with_model(struct llama_model *model, struct llama_context_params params) {
    return llama_init_from_model(model, params);
}

// ---- settings -----------------------------------------------------------------------------------------------------------------

uint32_t llama_n_ctx(const struct llama_context *ctx) { return ctx ? (uint32_t) ctx->cp.n_ctx : 0; }
uint32_t llama_n_ctx_seq(const struct llama_context *ctx) { return ctx ? (uint32_t) ctx->cp.n_ctx_seq : 0; }
uint32_t llama_n_batch(const struct llama_context *ctx) { return ctx ? (uint32_t) ctx->cp.n_batch : 0; }
uint32_t llama_n_ubatch(const struct llama_context *ctx) { return ctx ? (uint32_t) ctx->cp.n_ubatch : 0; }
uint32_t llama_n_seq_max(const struct llama_context *ctx) { return ctx ? (uint32_t) ctx->cp.n_seq_max : 0; }
uint32_t llama_n_rs_seq(const struct llama_context *ctx) { return ctx ? (uint32_t) ctx->cp.n_rs_seq : 0; }
const struct llama_model *llama_get_model(const struct llama_context *ctx) { return ctx ? ctx->model : NULL; }
llama_memory_t llama_get_memory(const struct llama_context *ctx) { return ctx ? ctx->mem : NULL; }
enum llama_pooling_type llama_pooling_type(const struct llama_context *ctx) {
    return ctx ? ctx->cp.pooling : LLAMA_POOLING_TYPE_UNSPECIFIED;
}
int32_t llama_n_threads(struct llama_context *ctx) { return ctx ? ctx->cp.n_threads : 0; }
int32_t llama_n_threads_batch(struct llama_context *ctx) { return ctx ? ctx->cp.n_threads_batch : 0; }
bool llama_get_causal_attn(const struct llama_context *ctx) { return ctx && ctx->cp.causal; }

void llama_set_n_threads(struct llama_context *ctx, int32_t n_threads, int32_t n_threads_batch) {
    if (!ctx) return;
    const struct llama_context_params p = {.n_threads = n_threads, .n_threads_batch = n_threads_batch};
    set_threads(&ctx->cp, &p);
}

void llama_attach_threadpool(struct llama_context *ctx, ggml_threadpool_t threadpool, ggml_threadpool_t threadpool_batch) {
    if (!ctx) return;
    ctx->pool = threadpool;
    ctx->pool_batch = threadpool_batch ? threadpool_batch : threadpool;
}

void llama_detach_threadpool(struct llama_context *ctx) {
    if (!ctx) return;
    ctx->pool = ctx->pool_batch = NULL;
    ggml_backend_cpu_set_threadpool(ctx->cpu, NULL);  // the caller may free the pool now
}

void llama_set_embeddings(struct llama_context *ctx, bool embeddings) {
    if (!ctx) return;
    ctx->cp.embeddings = embeddings || ctx->model->arch->flags & ARCH_ENCODER;
}

void llama_set_causal_attn(struct llama_context *ctx, bool causal_attn) {
    if (!ctx) return;
    ctx->cp.causal = causal_attn;
}

void llama_set_warmup(struct llama_context *ctx, bool warmup) {
    (void) ctx;
    (void) warmup;
}

void llama_set_abort_callback(struct llama_context *ctx, ggml_abort_callback abort_callback, void *abort_callback_data) {
    if (!ctx) return;
    ctx->abort_cb = abort_callback;
    ctx->abort_data = abort_callback_data;
    ggml_backend_cpu_set_abort_callback(ctx->cpu, abort_callback, abort_callback_data);
}

void llama_synchronize(struct llama_context *ctx) {
    if (ctx && ctx->sched) ggml_backend_sched_synchronize(ctx->sched);
}
