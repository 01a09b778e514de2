// The output buffer: logits and embeddings, in rows that the last batch asked for. Its address space is reserved once and for all;
// pages become real as rows are written. Graphs write into it directly.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ggml/plan.h"
#include "run/context.h"

static size_t row_floats(const struct llama_context *ctx) {
    return (size_t) ctx->model->hp.n_vocab + (size_t) llama_model_n_embd_out(ctx->model);
}

// The tables beside the rows, and what each takes.
struct table {
    void **at;
    size_t bytes;
};

enum { N_TABLES = 4 };

static void list_tables(const struct llama_context *ctx, struct outputs *o, struct table t[N_TABLES]) {
    const size_t n_batch = (size_t) ctx->cp.n_batch, n_seq = (size_t) ctx->cp.n_seq_max;
    t[0] = (struct table){(void **) &o->row_of, n_batch * sizeof *o->row_of};
    t[1] = (struct table){(void **) &o->order, (size_t) o->n_max * sizeof *o->order};
    t[2] = (struct table){(void **) &o->embd_seq, n_seq * (size_t) o->n_embd_pooled * sizeof *o->embd_seq};
    t[3] = (struct table){(void **) &o->n_rows_of, n_seq * sizeof *o->n_rows_of};
}

size_t outputs_overhead(const struct llama_context *ctx) {
    struct outputs o = ctx->out;
    struct table t[N_TABLES];
    list_tables(ctx, &o, t);
    size_t n = ggml_backend_buft_overhead(NULL);
    for (int i = 0; i < N_TABLES; i++) n += t[i].bytes;
    return n;
}

enum err outputs_init(struct llama_context *ctx) {
    struct outputs *o = &ctx->out;
    const struct hparams *hp = &ctx->model->hp;
    o->n_max = ctx->cp.n_outputs_max;
    o->bytes = (size_t) o->n_max * row_floats(ctx) * sizeof(float) + 4096;
    o->n_embd_pooled =
        llama_model_n_embd_out(ctx->model) > hp->n_cls_out ? llama_model_n_embd_out(ctx->model) : hp->n_cls_out;
    if (ctx->model->params.no_alloc) {  // only planned: no address is ever used
        o->buf = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), 0);
        o->logits = (float *) 64;
        o->embd = (float *) 128;
        return o->buf ? ERR_OK : err_set(ERR_NOMEM, "no memory to plan outputs");
    }
    o->mem = mmap(NULL, o->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (o->mem == MAP_FAILED) {
        o->mem = NULL;
        return err_set(ERR_NOMEM, "no room for %d output rows (%zu bytes); a smaller n_outputs_max or n_batch needs less",
                       o->n_max, o->bytes);
    }
    o->buf = ggml_backend_cpu_buffer_from_ptr(o->mem, o->bytes);
    o->logits = o->mem;
    // embeddings begin on a cache line
    o->embd = o->logits + (((size_t) o->n_max * (size_t) hp->n_vocab + 15) & ~(size_t) 15);
    struct table t[N_TABLES];
    list_tables(ctx, o, t);
    bool ok = o->buf != NULL;
    for (int i = 0; i < N_TABLES; i++) ok &= (*t[i].at = calloc(1, t[i].bytes)) != NULL || t[i].bytes == 0;
    return ok ? ERR_OK : err_set(ERR_NOMEM, "no memory for outputs");
}

static void release(struct outputs *o) {
    if (o->buf) ggml_backend_buffer_free(o->buf);
    if (o->mem) munmap(o->mem, o->bytes);
    free(o->row_of);
    free(o->order);
    free(o->embd_seq);
    free(o->n_rows_of);
    memset(o, 0, sizeof *o);
}

void outputs_free(struct llama_context *ctx) { release(&ctx->out); }

// A context that was made for few outputs and gives embeddings since has one for every entry. The old rows stay if there is no room.
static enum err make_room(struct llama_context *ctx) {
    const struct outputs old = ctx->out;
    const int32_t n_max = ctx->cp.n_outputs_max;
    memset(&ctx->out, 0, sizeof ctx->out);
    ctx->cp.n_outputs_max = ctx->cp.n_batch;
    const enum err e = outputs_init(ctx);
    struct outputs other = e == ERR_OK ? old : ctx->out;
    if (e != ERR_OK) {
        ctx->out = old;
        ctx->cp.n_outputs_max = n_max;
    } else {
        ctx->version++;  // graphs write to the old rows
    }
    release(&other);
    return e;
}

enum err outputs_begin(struct llama_context *ctx, int n_tokens, int n_rows) {
    struct outputs *o = &ctx->out;
    if (n_rows > o->n_max && ctx->cp.embeddings) TRY(make_room(ctx));
    o->n = 0;
    o->sorted = true;
    o->has_logits = o->has_embd = false;
    o->n_batch = n_tokens;
    memset(o->n_rows_of, 0, (size_t) ctx->cp.n_seq_max * sizeof *o->n_rows_of);
    for (int i = 0; i < n_tokens; i++) o->row_of[i] = -1;
    if (n_rows > o->n_max)
        return err_set(ERR_INVALID, "the batch asks for %d outputs; the context has room for %d (n_outputs_max)", n_rows,
                       o->n_max);
    return ERR_OK;
}

static void swap_rows(float *x, size_t n, int32_t a, int32_t b) {
    float *p = x + (size_t) a * n, *q = x + (size_t) b * n;
    for (size_t i = 0; i < n; i++) {
        const float t = p[i];
        p[i] = q[i];
        q[i] = t;
    }
}

// Micro-batches of several sequences compute rows in another order than the batch gave them; whoever asks for the whole array gets
// batch order.
static void sort_rows(struct llama_context *ctx) {
    struct outputs *o = &ctx->out;
    if (o->sorted) return;
    for (int32_t i = 0; i < o->n; i++) {
        int32_t best = i;
        for (int32_t j = i + 1; j < o->n; j++)
            if (o->order[j] < o->order[best]) best = j;
        if (best == i) continue;
        if (o->has_logits) swap_rows(o->logits, (size_t) ctx->model->hp.n_vocab, i, best);
        if (o->has_embd) swap_rows(o->embd, (size_t) llama_model_n_embd_out(ctx->model), i, best);
        const int32_t t = o->order[i];
        o->order[i] = o->order[best];
        o->order[best] = t;
        o->row_of[o->order[i]] = i;
        o->row_of[o->order[best]] = best;
    }
    o->sorted = true;
}

// The row of output i: a batch index, or counted from the end of the outputs if negative. -1 and a sentence if there is none.
static int32_t find_row(struct llama_context *ctx, int32_t i, const char *what) {
    const struct outputs *o = &ctx->out;
    if (i < 0) {
        if (-(int64_t) i <= o->n) {
            sort_rows(ctx);
            return o->n + i;
        }
        (void) err_set(ERR_INVALID, "%s: output %d of %d doesn't exist", what, i, o->n);
        return -1;
    }
    if (i < o->n_batch && o->row_of[i] >= 0) return o->row_of[i];
    if (i < o->n_batch)
        (void) err_set(ERR_INVALID, "%s: batch entry %d asked for no output (batch.logits)", what, i);
    else
        (void) err_set(ERR_INVALID, "%s: the last batch had %d entries, there is no entry %d", what, o->n_batch, i);
    return -1;
}

float *llama_get_logits(struct llama_context *ctx) {
    if (!ctx || !ctx->out.has_logits) return NULL;
    sort_rows(ctx);
    return ctx->out.logits;
}

float *llama_get_logits_ith(struct llama_context *ctx, int32_t i) {
    if (!ctx) return NULL;
    if (!ctx->out.has_logits) {
        (void) err_set(ERR_INVALID, "get_logits_ith: the last call computed no logits");
        return NULL;
    }
    const int32_t r = find_row(ctx, i, "get_logits_ith");
    return r < 0 ? NULL : ctx->out.logits + (size_t) r * (size_t) ctx->model->hp.n_vocab;
}

float *llama_get_embeddings(struct llama_context *ctx) {
    if (!ctx || !ctx->out.has_embd) return NULL;
    sort_rows(ctx);
    return ctx->out.embd;
}

float *llama_get_embeddings_ith(struct llama_context *ctx, int32_t i) {
    if (!ctx) return NULL;
    if (!ctx->out.has_embd) {
        (void) err_set(ERR_INVALID,
                       "get_embeddings_ith: the last call computed no embeddings of single tokens (embeddings, pooling)");
        return NULL;
    }
    const int32_t r = find_row(ctx, i, "get_embeddings_ith");
    return r < 0 ? NULL : ctx->out.embd + (size_t) r * (size_t) llama_model_n_embd_out(ctx->model);
}

float *llama_get_embeddings_seq(struct llama_context *ctx, llama_seq_id seq_id) {
    if (!ctx || seq_id < 0 || seq_id >= ctx->cp.n_seq_max || !ctx->out.n_rows_of[seq_id]) return NULL;
    return ctx->out.embd_seq + (size_t) seq_id * (size_t) ctx->out.n_embd_pooled;
}
