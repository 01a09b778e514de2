// Batches that callers fill by hand, and batches built by calls.
#include <stdlib.h>
#include <string.h>

#include "run/context.h"

struct llama_batch llama_batch_init(int32_t n_tokens, int32_t embd, int32_t n_seq_max) {
    struct llama_batch b = {0};
    if (n_tokens < 0 || n_seq_max < 1 || embd < 0) {
        (void) err_set(ERR_INVALID, "batch_init: %d tokens, %d sequences each, embeddings of %d values are impossible",
                       n_tokens, n_seq_max, embd);
        return b;
    }
    const size_t n = (size_t) n_tokens + 1;
    if (embd)
        b.embd = malloc(n * (size_t) embd * sizeof(float));
    else
        b.token = malloc(n * sizeof *b.token);
    b.pos = malloc(n * 4 * sizeof *b.pos);  // four per token under M-RoPE
    b.n_seq_id = malloc(n * sizeof *b.n_seq_id);
    b.seq_id = calloc(n, sizeof *b.seq_id);
    b.logits = malloc(n);
    bool ok = (b.embd || b.token) && b.pos && b.n_seq_id && b.seq_id && b.logits;
    for (int32_t i = 0; ok && i < n_tokens; i++) ok = (b.seq_id[i] = malloc((size_t) n_seq_max * sizeof **b.seq_id)) != NULL;
    if (ok) return b;
    llama_batch_free(b);
    (void) err_set(ERR_NOMEM, "no memory for a batch of %d tokens", n_tokens);
    return (struct llama_batch){0};
}

void llama_batch_free(struct llama_batch b) {
    free(b.token);
    free(b.embd);
    free(b.pos);
    free(b.n_seq_id);
    for (int32_t i = 0; b.seq_id && b.seq_id[i]; i++) free(b.seq_id[i]);
    free(b.seq_id);
    free(b.logits);
}

// ---- llama_batch_ext ------------------------------------------------------------------------------------------------------

struct llama_batch_ext {
    const struct llama_context *ctx;
    int32_t n, cap, n_seq_max, n_embd;
    llama_token *token;  // LLAMA_TOKEN_NULL for entries of embeddings
    float *embd;         // [cap][n_embd], made when first needed
    float *state;        // [cap][n_state], the same; only for contexts of a draft head
    int32_t n_state;
    bool *has_embd, *has_state, *has_pos;
    llama_pos *pos;  // [cap][4]
    int32_t *n_seq;
    llama_seq_id *seq;  // [cap][n_seq_max]
    llama_seq_id **seq_ptr;
    int8_t *out_logits, *out_embd;
    llama_pos *pos_flat;
};

struct llama_batch_ext *llama_batch_ext_init(struct llama_context *ctx) {
    if (!ctx) return NULL;
    struct llama_batch_ext *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    const size_t n = (size_t) ctx->cp.n_batch, ns = (size_t) ctx->cp.n_seq_max;
    b->ctx = ctx;
    b->cap = ctx->cp.n_batch;
    b->n_seq_max = ctx->cp.n_seq_max;
    b->n_embd = ctx->model->hp.n_embd_inp;
    b->token = malloc(n * sizeof *b->token);
    b->has_embd = calloc(n, sizeof *b->has_embd);
    b->n_state = ctx->cp.nextn ? ctx->model->hp.n_embd : 0;
    b->has_state = calloc(n, sizeof *b->has_state);
    b->has_pos = calloc(n, sizeof *b->has_pos);
    b->pos = malloc(n * 4 * sizeof *b->pos);
    b->pos_flat = malloc(n * 4 * sizeof *b->pos_flat);
    b->n_seq = malloc(n * sizeof *b->n_seq);
    b->seq = malloc(n * ns * sizeof *b->seq);
    b->seq_ptr = malloc(n * sizeof *b->seq_ptr);
    b->out_logits = calloc(n, 1);
    b->out_embd = calloc(n, 1);
    if (b->token && b->has_embd && b->has_state && b->has_pos && b->pos && b->pos_flat && b->n_seq && b->seq && b->seq_ptr &&
        b->out_logits && b->out_embd)
        return b;
    llama_batch_ext_free(b);
    (void) err_set(ERR_NOMEM, "no memory for a batch of %zu tokens", n);
    return NULL;
}

void llama_batch_ext_free(struct llama_batch_ext *b) {
    if (!b) return;
    void *all[] = {b->token,    b->embd,  b->has_embd, b->state,   b->has_state,  b->has_pos, b->pos,
                   b->pos_flat, b->n_seq, b->seq,      b->seq_ptr, b->out_logits, b->out_embd};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    free(b);
}

void llama_batch_ext_clear(struct llama_batch_ext *b) {
    if (b) b->n = 0;
}

int32_t llama_batch_ext_add(struct llama_batch_ext *b, llama_seq_id seq_id) {
    if (!b) return -1;
    if (b->n == b->cap) {
        (void) err_set(ERR_INVALID, "the batch is full: it holds %d entries (n_batch)", b->cap);
        return -1;
    }
    if (seq_id < 0 || seq_id >= b->n_seq_max) {
        (void) err_set(ERR_INVALID, "sequence id %d; the context has ids 0 to %d (n_seq_max)", seq_id, b->n_seq_max - 1);
        return -1;
    }
    const int32_t i = b->n++;
    b->token[i] = LLAMA_TOKEN_NULL;
    b->has_embd[i] = b->has_state[i] = b->has_pos[i] = false;
    b->n_seq[i] = 1;
    b->seq[(size_t) i * (size_t) b->n_seq_max] = seq_id;
    b->out_logits[i] = b->out_embd[i] = 0;
    return i;
}

int32_t llama_batch_ext_add_token(struct llama_batch_ext *b, llama_seq_id seq_id, llama_token id) {
    const int32_t i = llama_batch_ext_add(b, seq_id);
    if (i >= 0) b->token[i] = id;
    return i;
}

// Row i of w values, made with its array when first needed.
static bool store(const struct llama_batch_ext *b, float **rows, bool *has, int32_t i, int32_t w, struct llama_embd e) {
    // one row, or several that make up one (an image's row and what it adds to later layers)
    if (!e.data || e.n_rows < 1 || e.n_embd > (size_t) w || e.n_rows > (size_t) w || e.n_rows * e.n_embd != (size_t) w) {
        (void) err_set(ERR_INVALID, "an embedding of %zu rows of %zu values; an entry takes %d values", e.n_rows, e.n_embd,
                       w);
        return false;
    }
    if (!*rows) *rows = calloc((size_t) b->cap * (size_t) w, sizeof **rows);
    if (!*rows) {
        (void) err_set(ERR_NOMEM, "no memory for %d rows of embeddings", b->cap);
        return false;
    }
    memcpy(*rows + (size_t) i * (size_t) w, e.data, (size_t) w * sizeof(float));
    has[i] = true;
    return true;
}

static bool store_embd(struct llama_batch_ext *b, int32_t i, struct llama_embd e) {
    return store(b, &b->embd, b->has_embd, i, b->n_embd, e);
}

int32_t llama_batch_ext_add_embd(struct llama_batch_ext *b, llama_seq_id seq_id, struct llama_embd embd) {
    const int32_t i = llama_batch_ext_add(b, seq_id);
    if (i < 0) return -1;
    if (store_embd(b, i, embd)) return i;
    b->n--;
    return -1;
}

static bool valid(const struct llama_batch_ext *b, int32_t idx) {
    if (b && idx >= 0 && idx < b->n) return true;
    (void) err_set(ERR_INVALID, "batch entry %d of %d doesn't exist", idx, b ? b->n : 0);
    return false;
}

bool llama_batch_ext_add_seq(struct llama_batch_ext *b, int32_t idx, llama_seq_id seq_id) {
    if (!valid(b, idx)) return false;
    if (seq_id < 0 || seq_id >= b->n_seq_max || b->n_seq[idx] == b->n_seq_max) {
        (void) err_set(ERR_INVALID, "sequence id %d; the context has ids 0 to %d (n_seq_max)", seq_id, b->n_seq_max - 1);
        return false;
    }
    b->seq[(size_t) idx * (size_t) b->n_seq_max + (size_t) b->n_seq[idx]++] = seq_id;
    return true;
}

bool llama_batch_ext_set_embd_token(struct llama_batch_ext *b, int32_t idx, struct llama_embd embd) {
    return valid(b, idx) && store_embd(b, idx, embd);
}

bool llama_batch_ext_set_embd_state(struct llama_batch_ext *b, int32_t idx, struct llama_embd embd) {
    if (!valid(b, idx)) return false;
    if (b->n_state) return store(b, &b->state, b->has_state, idx, b->n_state, embd);
    (void) err_set(ERR_UNSUPPORTED, "this context takes no states: only those of a draft head do (ctx_type MTP)");
    return false;
}

bool llama_batch_ext_set_output_embd(struct llama_batch_ext *b, int32_t idx, bool value) {
    if (!valid(b, idx)) return false;
    b->out_embd[idx] = value;
    return true;
}

bool llama_batch_ext_set_output_logits(struct llama_batch_ext *b, int32_t idx, bool value) {
    if (!valid(b, idx)) return false;
    b->out_logits[idx] = value;
    return true;
}

bool llama_batch_ext_set_pos(struct llama_batch_ext *b, int32_t idx, const llama_pos *pos) {
    if (!valid(b, idx) || !pos) return false;
    // A token has one position whatever the model; only the parts of an image have four, so no more than one may be read of a token's.
    const bool four = b->ctx->model->hp.mrope && b->has_embd[idx];
    for (int k = 0; k < 4; k++) b->pos[4 * idx + k] = four ? pos[k] : k < 3 ? pos[0] : 0;
    b->has_pos[idx] = true;
    return true;
}

// Entries without a position continue their sequence; entries with one say it. A batch mixes neither tokens with embeddings.
static enum err flatten(struct llama_batch_ext *b, struct batch_view *v) {
    bool any_embd = false, any_token = false, any_pos = false, all_pos = true;
    for (int32_t i = 0; i < b->n; i++) {
        any_embd |= b->has_embd[i];
        any_token |= b->token[i] != LLAMA_TOKEN_NULL;
        any_pos |= b->has_pos[i];
        all_pos &= b->has_pos[i];
        if (!b->has_embd[i] && b->token[i] == LLAMA_TOKEN_NULL)
            return err_set(ERR_INVALID, "batch entry %d has neither a token nor an embedding", i);
        if (b->n_state && !b->has_state[i])
            return err_set(ERR_INVALID, "batch entry %d has no state, which a draft head continues", i);
        if (b->has_embd[i] != b->has_embd[0])
            return err_set(ERR_INVALID, "batch entries 0 and %d mix tokens and embeddings", i);
    }
    if (any_pos && !all_pos) return err_set(ERR_INVALID, "some entries of the batch have positions and some don't");
    for (int32_t i = 0; i < b->n; i++) {
        b->seq_ptr[i] = b->seq + (size_t) i * (size_t) b->n_seq_max;
        b->out_logits[i] = b->out_logits[i] || b->out_embd[i];
        for (int k = 0; k < 4; k++) b->pos_flat[(size_t) k * (size_t) b->n + (size_t) i] = b->pos[4 * i + k];
    }
    v->n_tokens = b->n;
    v->token = any_embd ? NULL : any_token ? b->token : NULL;
    v->embd = any_embd ? b->embd : NULL;
    v->state = b->n_state ? b->state : NULL;
    v->pos = all_pos && b->n ? b->pos_flat : NULL;
    v->pos_stride = v->pos && b->ctx->model->hp.mrope ? b->n : 0;
    v->n_seq_id = b->n_seq;
    v->seq_id = b->seq_ptr;
    v->out = b->out_logits;
    return ERR_OK;
}

int32_t llama_process(struct llama_context *ctx, enum llama_process_type type, struct llama_batch_ext *batch) {
    if (!ctx || !batch || batch->ctx != ctx) {
        (void) err_set(ERR_INVALID, "process: the batch belongs to another context, or is NULL");
        return -1;
    }
    struct batch_view v = {0};
    if (flatten(batch, &v) != ERR_OK) return -1;
    const bool encode = type == LLAMA_PROCESS_TYPE_ENCODE || ctx->model->arch->flags & ARCH_ENCODER;
    v.out_all = encode || ctx->cp.embeddings;
    return context_process(ctx, &v, encode);
}
