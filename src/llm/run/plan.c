// Checks a batch, and takes it apart into micro-batches. A batch is placed whole or not at all: the whole is tried on the cache's
// bookkeeping first, then undone; each micro-batch is placed for good when its turn comes.
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "run/context.h"

enum err plan_init(struct llama_context *ctx) {
    struct plan *p = &ctx->plan;
    const size_t n = (size_t) ctx->cp.n_batch, ns = (size_t) ctx->cp.n_seq_max;
    p->cap_rows = (int32_t) n;
    p->cap_pool = (int32_t) n;
    p->cap_ub = (int32_t) (n / (size_t) ctx->cp.n_ubatch) + 8;
    p->rows = malloc(n * sizeof *p->rows);
    p->src = malloc(n * 4);
    p->token = malloc(n * 4);
    p->pos = malloc(n * 16);
    p->slot = malloc(n * 4);
    p->pos4 = malloc((size_t) ctx->cp.n_ubatch * 16);
    p->out = malloc(n);
    p->seq_pool = malloc(n * 4);
    p->ub = malloc((size_t) p->cap_ub * sizeof *p->ub);
    p->out_rows = malloc(n * 4);
    p->seqs = malloc(n * 4 + ns * 4);
    p->rs_src = malloc(n * 4 + ns * 4);
    p->rs_dst = malloc((n + ns) * 4 * (size_t) (1 + ctx->cp.n_rs_seq));
    p->next_pos = malloc(ns * 4);
    p->perm = malloc(n * 4);
    p->ints = malloc(n * 4);
    p->rows_tmp = malloc(n * sizeof *p->rows_tmp);
    p->out_tmp = malloc(n);
    p->seq_first = malloc(ns * 4);
    p->seq_left = malloc(ns * 4);
    p->seq_pick = malloc(ns * 4);
    const int32_t n_block = ctx->mem && ctx->mem->full ? ctx->mem->full->cells.n_block : 0;
    p->block_ub = malloc((size_t) n_block * 4 + 4);
    if (ctx->cp.nextn) {
        p->cap_state = n * (size_t) ctx->model->hp.n_embd;
        p->state = malloc(p->cap_state * sizeof *p->state);
    }
    const bool ok = (p->state || !ctx->cp.nextn) && p->rows && p->src && p->token && p->pos && p->pos4 && p->slot &&
                    p->out && p->seq_pool && p->ub && p->out_rows && p->seqs && p->rs_src && p->rs_dst && p->next_pos &&
                    p->block_ub && p->perm && p->ints && p->rows_tmp && p->out_tmp && p->seq_first && p->seq_left &&
                    p->seq_pick;
    return ok ? ERR_OK : err_set(ERR_NOMEM, "no memory for batches of %zu tokens", n);
}

size_t plan_memory(const struct llama_context *ctx) {
    const struct plan *p = &ctx->plan;
    const size_t rows = (size_t) p->cap_rows, n = (size_t) ctx->cp.n_batch, ns = (size_t) ctx->cp.n_seq_max;
    const int32_t n_block = ctx->mem && ctx->mem->full ? ctx->mem->full->cells.n_block : 0;
    return rows * (2 * sizeof *p->rows + 6 * 4 + 16 + 2) + (size_t) p->cap_pool * 4 + (size_t) ctx->cp.n_ubatch * 16 +
           (size_t) p->cap_ub * sizeof *p->ub + (n + ns) * 4 * (size_t) (3 + ctx->cp.n_rs_seq) + 4 * ns * 4 +
           (size_t) n_block * 4 + 4 + (p->cap_embd + p->cap_state) * sizeof *p->embd +
           (size_t) p->copies.cap * sizeof *p->copies.v;
}

void plan_free(struct llama_context *ctx) {
    struct plan *p = &ctx->plan;
    void *all[] = {p->rows,    p->src,       p->token,    p->pos,      p->pos4,     p->slot, p->embd,
                   p->state,   p->out,       p->seq_pool, p->ub,       p->out_rows, p->seqs, p->rs_src,
                   p->rs_dst,  p->next_pos,  p->block_ub, p->copies.v, p->perm,     p->ints, p->rows_tmp,
                   p->out_tmp, p->seq_first, p->seq_left, p->seq_pick};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    memset(p, 0, sizeof *p);
}

// ---- checks -----------------------------------------------------------------------------------------------------------

static int32_t n_seq_of(const struct batch_view *b, int32_t i) { return b->seq_id ? (b->n_seq_id ? b->n_seq_id[i] : 1) : 1; }

static llama_seq_id seq_of(const struct batch_view *b, int32_t i, int32_t k) { return b->seq_id ? b->seq_id[i][k] : 0; }

// Positions beyond are no text's; differences of positions must fit into 32 bits.
enum { MAX_POS = 1 << 30 };

static enum err check_seqs(const struct llama_context *ctx, const struct batch_view *b, int32_t i) {
    const int32_t n = n_seq_of(b, i);
    if (n < 1 || n > ctx->cp.n_seq_max)
        return err_set(ERR_INVALID, "batch entry %d belongs to %d sequences; 1 to %d are possible", i, n, ctx->cp.n_seq_max);
    if (b->seq_id && !b->seq_id[i])
        return err_set(ERR_INVALID, "batch entry %d has no sequence ids (seq_id[%d] is NULL)", i, i);
    for (int32_t k = 0; k < n; k++) {
        const llama_seq_id s = seq_of(b, i, k);
        if (s < 0 || s >= ctx->cp.n_seq_max)
            return err_set(ERR_INVALID, "batch entry %d has sequence id %d; the context has ids 0 to %d (n_seq_max)", i, s,
                           ctx->cp.n_seq_max - 1);
        for (int32_t j = 0; j < k; j++)
            if (seq_of(b, i, j) == s) return err_set(ERR_INVALID, "batch entry %d names sequence %d twice", i, s);
    }
    return ERR_OK;
}

// Positions of a sequence go on where its memory ends, one by one. Embeddings under M-RoPE may stand still: the tokens of an image
// share a position.
static enum err check_pos(struct llama_context *ctx, const struct batch_view *b, int32_t i, int32_t pos) {
    int32_t *next = ctx->plan.next_pos;
    if (pos < 0 || pos >= MAX_POS)
        return err_set(ERR_INVALID, "batch entry %d has position %d; 0 to %d are possible", i, pos, MAX_POS - 1);
    for (int32_t k = 0; k < n_seq_of(b, i); k++) {
        const llama_seq_id s = seq_of(b, i, k);
        const bool free_pos = ctx->model->hp.mrope;
        if (next[s] >= 0 && pos != next[s] && !(free_pos && pos >= next[s] - 1))
            return err_set(ERR_INVALID, "batch entry %d has position %d in sequence %d, where position %d comes next", i,
                           pos, s, next[s]);
        next[s] = pos + 1;
    }
    return ERR_OK;
}

static int32_t pos_of(const struct llama_context *ctx, const struct batch_view *b, int32_t i) {
    if (b->pos) return b->pos[i];
    const int32_t next = ctx->plan.next_pos[seq_of(b, i, 0)];
    return next < 0 ? 0 : next;
}

static enum err check_batch(struct llama_context *ctx, const struct batch_view *b) {
    const struct hparams *hp = &ctx->model->hp;
    if (b->n_tokens <= 0) return err_set(ERR_INVALID, "the batch has %d tokens", b->n_tokens);
    if (b->n_tokens > ctx->cp.n_batch)
        return err_set(ERR_INVALID, "the batch has %d tokens; the context takes %d at once (n_batch)", b->n_tokens,
                       ctx->cp.n_batch);
    if (!b->token && !b->embd) return err_set(ERR_INVALID, "the batch has neither tokens nor embeddings");
    if (ctx->cp.nextn && !b->state)
        return err_set(ERR_INVALID,
                       "a draft head needs the state that each token follows (batch.embd beside batch.token, or "
                       "llama_batch_ext_set_embd_state)");
    for (int32_t i = 0; b->token && i < b->n_tokens; i++)
        if (b->token[i] < 0 || b->token[i] >= hp->n_vocab)
            return err_set(ERR_INVALID, "batch entry %d is token %d; the vocabulary has ids 0 to %d", i, b->token[i],
                           hp->n_vocab - 1);
    for (int32_t i = 0; i < b->n_tokens; i++) TRY(check_seqs(ctx, b, i));
    return ERR_OK;
}

static void start_positions(struct llama_context *ctx, bool use_memory) {
    for (int32_t s = 0; s < ctx->cp.n_seq_max; s++) {
        const int32_t last = use_memory && ctx->mem ? llama_memory_seq_pos_max(ctx->mem, s) : -1;
        ctx->plan.next_pos[s] = last < 0 ? -1 : last + 1;
    }
}

// ---- rows ---------------------------------------------------------------------------------------------------------------

#define GROW(p, cap, n)                                                                                                     \
    do {                                                                                                                    \
        void *grown_ = realloc((p), (size_t) (cap) * (n));                                                                  \
        if (!grown_) return err_set(ERR_NOMEM, "no memory for a batch of %d rows", (int) (cap));                            \
        (p) = grown_;                                                                                                       \
    } while (0)

static enum err grow_rows(struct plan *p) {
    const int32_t cap = 2 * p->cap_rows;
    int32_t *pos = malloc((size_t) cap * 16);
    if (!pos) return err_set(ERR_NOMEM, "no memory for a batch of %d rows", cap);
    for (int k = 0; k < 4; k++)
        memcpy(pos + (size_t) k * (size_t) cap, p->pos + (size_t) k * (size_t) p->cap_rows, (size_t) p->n_rows * 4);
    free(p->pos);
    p->pos = pos;
    GROW(p->rows, cap, sizeof *p->rows);
    GROW(p->src, cap, 4);
    GROW(p->token, cap, 4);
    GROW(p->slot, cap, 4);
    GROW(p->out, cap, 1);
    GROW(p->out_rows, cap, 4);
    GROW(p->perm, cap, 4);
    GROW(p->ints, cap, 4);
    GROW(p->rows_tmp, cap, sizeof *p->rows_tmp);
    GROW(p->out_tmp, cap, 1);
    p->cap_rows = cap;
    return ERR_OK;
}

static enum err add_row(struct llama_context *ctx, const struct batch_view *b, int32_t i, const int32_t *seq, int32_t n_seq,
                        int32_t pos, bool out) {
    struct plan *p = &ctx->plan;
    if (p->n_rows == p->cap_rows) TRY(grow_rows(p));
    if (p->n_pool + n_seq > p->cap_pool) {
        const int32_t cap = 2 * p->cap_pool + n_seq;
        int32_t *pool = malloc((size_t) cap * 4);
        if (!pool) return err_set(ERR_NOMEM, "no memory for a batch of %d rows", cap);
        memcpy(pool, p->seq_pool, (size_t) p->n_pool * 4);
        for (int32_t r = 0; r < p->n_rows; r++) p->rows[r].seq = pool + (p->rows[r].seq - p->seq_pool);
        free(p->seq_pool);
        p->seq_pool = pool;
        p->cap_pool = cap;
    }
    const int32_t r = p->n_rows++;
    memcpy(p->seq_pool + p->n_pool, seq, (size_t) n_seq * 4);
    p->rows[r] = (struct place_row){.seq = p->seq_pool + p->n_pool, .n_seq = n_seq, .pos = pos};
    p->n_pool += n_seq;
    p->src[r] = i;
    p->token[r] = b->token ? b->token[i] : 0;
    for (int k = 0; k < 4; k++) {
        const int32_t v = b->pos_stride ? b->pos[(size_t) k * (size_t) b->pos_stride + (size_t) i] : k < 3 ? pos : 0;
        p->pos[(size_t) k * (size_t) p->cap_rows + (size_t) r] = v;
    }
    p->slot[r] = seq[0];
    p->out[r] = out;
    return ERR_OK;
}

static enum err new_ubatch(struct plan *p, int32_t r0) {
    if (p->n_ub == p->cap_ub) {
        GROW(p->ub, 2 * p->cap_ub, sizeof *p->ub);
        p->cap_ub *= 2;
    }
    p->ub[p->n_ub++] = (struct plan_ubatch){.r0 = r0};
    return ERR_OK;
}

static bool wants_output(const struct batch_view *b, int32_t i) {
    if (b->out_all) return true;
    return b->out ? b->out[i] != 0 : i == b->n_tokens - 1;
}

// ---- attention over a cache: rows in batch order -----------------------------------------------------------------------------

// The sequences of entry i whose next cell lies in the same block as that of the first one not yet taken.
static int32_t next_group(const struct llama_context *ctx, const struct batch_view *b, int32_t i, int32_t pos,
                          uint8_t *taken, int32_t *group) {
    const struct cells *c = &ctx->mem->full->cells;
    int32_t n = 0, block = -1, index = -1;
    for (int32_t k = 0; k < n_seq_of(b, i); k++) {
        if (taken[k]) continue;
        const llama_seq_id s = seq_of(b, i, k);
        int32_t idx;
        const int32_t at = cells_target(c, s, pos, &idx);
        if (n && (at != block || idx != index)) continue;
        block = at;
        index = idx;
        taken[k] = 1;
        group[n++] = s;
    }
    return n;
}

// A shared block that this micro-batch has written to can't be copied before it is computed.
static bool must_close(const struct llama_context *ctx, int32_t block, int32_t n_group) {
    const struct plan *p = &ctx->plan;
    return block >= 0 && ctx->mem->full->cells.ref[block] > n_group && p->block_ub[block] == p->n_ub - 1;
}

static int rows_in_order(struct llama_context *ctx, const struct batch_view *b) {
    struct plan *p = &ctx->plan;
    struct cells *c = &ctx->mem->full->cells;
    uint8_t taken[512];
    int32_t group[512], cell, index;
    for (int32_t k = 0; k < c->n_block; k++) p->block_ub[k] = -1;
    cells_save(c);
    int r = 0;
    if (new_ubatch(p, 0) != ERR_OK) r = -2;
    for (int32_t i = 0; i < b->n_tokens && r == 0; i++) {
        const int32_t pos = pos_of(ctx, b, i);
        bool out = wants_output(b, i);
        if (check_pos(ctx, b, i, pos) != ERR_OK) r = -1;
        memset(taken, 0, sizeof taken);
        for (int32_t n; r == 0 && (n = next_group(ctx, b, i, pos, taken, group)) > 0; out = false) {
            const int32_t block = cells_target(c, group[0], pos, NULL);
            const int32_t r0 = p->ub[p->n_ub - 1].r0;
            if (p->n_rows - r0 == ctx->cp.n_ubatch || must_close(ctx, block, n)) {
                p->ub[p->n_ub - 1].n = p->n_rows - r0;
                if (new_ubatch(p, p->n_rows) != ERR_OK) r = -2;
            }
            if (r == 0 && add_row(ctx, b, i, group, n, pos, out) != ERR_OK) r = -2;
            if (r == 0 && !cells_place(c, group, n, pos, &cell, &index, &p->copies)) r = 1;
            if (r == 0) p->block_ub[cell / CELL_BLOCK] = p->n_ub - 1;
        }
    }
    if (p->n_ub) p->ub[p->n_ub - 1].n = p->n_rows - p->ub[p->n_ub - 1].r0;
    cells_restore(c);
    p->copies.n = 0;
    if (r == 1) log_debug("no room in the cache for a batch of %d tokens\n", b->n_tokens);
    return r;
}

// ---- rows sequence by sequence ---------------------------------------------------------------------------------------------

// One row per token and sequence, ordered by sequence (in order of appearance).
static int rows_by_seq(struct llama_context *ctx, const struct batch_view *b) {
    struct plan *p = &ctx->plan;
    int32_t *order = p->seqs;  // sequences in order of appearance
    int32_t n_seqs = 0;
    for (int32_t i = 0; i < b->n_tokens; i++)
        for (int32_t k = 0; k < n_seq_of(b, i); k++) {
            int32_t j = 0;
            while (j < n_seqs && order[j] != seq_of(b, i, k)) j++;
            if (j == n_seqs) order[n_seqs++] = seq_of(b, i, k);
        }
    // positions are checked in batch order, before rows are regrouped
    for (int32_t i = 0; i < b->n_tokens; i++)
        if (b->pos && check_pos(ctx, b, i, b->pos[i]) != ERR_OK) return -1;
    if (b->pos) start_positions(ctx, ctx->mem != NULL);
    for (int32_t j = 0; j < n_seqs; j++) {
        const int32_t s = order[j];
        for (int32_t i = 0; i < b->n_tokens; i++)
            for (int32_t k = 0; k < n_seq_of(b, i); k++) {
                if (seq_of(b, i, k) != s) continue;
                const int32_t next = p->next_pos[s];
                const int32_t pos = b->pos ? b->pos[i] : next < 0 ? 0 : next;
                if (add_row(ctx, b, i, &s, 1, pos, wants_output(b, i) && k == 0) != ERR_OK) return -2;
                p->next_pos[s] = pos + 1;
            }
    }
    return n_seqs;
}

// Applies row order perm (new place -> old row) to the plan's arrays.
static void permute_rows(struct plan *p) {
    const size_t n = (size_t) p->n_rows, cap = (size_t) p->cap_rows;
    for (size_t i = 0; i < n; i++) {
        p->rows_tmp[i] = p->rows[p->perm[i]];
        p->out_tmp[i] = p->out[p->perm[i]];
    }
    memcpy(p->rows, p->rows_tmp, n * sizeof *p->rows);
    memcpy(p->out, p->out_tmp, n);
    int32_t *lists[] = {p->src, p->token, p->slot, p->pos, p->pos + cap, p->pos + 2 * cap, p->pos + 3 * cap};
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        for (size_t i = 0; i < n; i++) p->ints[i] = lists[l][p->perm[i]];
        memcpy(lists[l], p->ints, n * 4);
    }
}

// Recurrent layers take sequences of equal length side by side: as many tokens as all of them still have.
static int split_equal(struct llama_context *ctx, int32_t n_seqs) {
    struct plan *p = &ctx->plan;
    int32_t *first = p->seq_first, *left = p->seq_left, *pick = p->seq_pick;
    for (int32_t i = 0, s = -1; i < p->n_rows; i++) {
        if (i == 0 || p->slot[i] != p->slot[i - 1]) {
            first[++s] = i;
            left[s] = 0;
        }
        left[s]++;
    }
    for (int32_t at = 0; at < p->n_rows;) {
        int32_t n = 0, t = INT32_MAX;
        for (int32_t s = 0; s < n_seqs && n < ctx->cp.n_ubatch; s++) {
            if (!left[s]) continue;
            if (left[s] < t) t = left[s];
            pick[n++] = s;
        }
        if (t > ctx->cp.n_ubatch / n) t = ctx->cp.n_ubatch / n;
        if (new_ubatch(p, at) != ERR_OK) return -2;
        p->ub[p->n_ub - 1] = (struct plan_ubatch){.r0 = at, .n = n * t, .n_seqs = n, .n_seq_tokens = t};
        for (int32_t k = 0; k < n; k++) {
            for (int32_t j = 0; j < t; j++) p->perm[at++] = first[pick[k]] + j;
            first[pick[k]] += t;
            left[pick[k]] -= t;
        }
    }
    if (n_seqs > 1) permute_rows(p);
    return 0;
}

// Without a cache a sequence must be whole within its micro-batch; each begins a block of scratch of its own.
static int split_whole(struct llama_context *ctx) {
    struct plan *p = &ctx->plan;
    for (int32_t i = 0; i < p->n_rows;) {
        int32_t end = i;
        while (end < p->n_rows && p->rows[end].seq[0] == p->rows[i].seq[0]) end++;
        const int32_t n = end - i;
        if (n > ctx->cp.n_ubatch) {
            (void) err_set(
                ERR_INVALID,
                "sequence %d has %d tokens; without a cache all of them must fit into one micro-batch of %d (n_ubatch)",
                p->rows[i].seq[0], n, ctx->cp.n_ubatch);
            return -1;
        }
        struct plan_ubatch *u = p->n_ub ? &p->ub[p->n_ub - 1] : NULL;
        if (!u || u->n + n > ctx->cp.n_ubatch) {
            if (new_ubatch(p, i) != ERR_OK) return -2;
            u = &p->ub[p->n_ub - 1];
        }
        for (int32_t k = 0; k < n; k++) {
            p->slot[i + k] = u->n_slots;
            p->rows[i + k].index = k;
            p->rows[i + k].cell = u->n_scratch * CELL_BLOCK + k;
        }
        u->n += n;
        u->n_slots++;
        u->n_seqs = u->n_slots;
        u->n_scratch += (n + CELL_BLOCK - 1) / CELL_BLOCK;
        i = end;
    }
    return 0;
}

// Attention next to recurrent layers: is there room for all rows?
static bool room_for_rows(struct llama_context *ctx) {
    if (!ctx->mem->full) return true;
    struct plan *p = &ctx->plan;
    struct cells *c = &ctx->mem->full->cells;
    bool ok = true;
    cells_save(c);
    for (int32_t r = 0; r < p->n_rows && ok; r++) {
        int32_t cell, index;
        ok = cells_place(c, p->rows[r].seq, p->rows[r].n_seq, p->rows[r].pos, &cell, &index, &p->copies);
    }
    cells_restore(c);
    p->copies.n = 0;
    return ok;
}

// Rows of w values in the order of the plan.
static enum err copy_rows(const struct plan *p, float **to, size_t *cap, const float *from, size_t w) {
    if ((size_t) p->n_rows * w > *cap) {
        GROW(*to, (size_t) p->n_rows * w, sizeof **to);
        *cap = (size_t) p->n_rows * w;
    }
    for (int32_t r = 0; r < p->n_rows; r++) memcpy(*to + (size_t) r * w, from + (size_t) p->src[r] * w, w * sizeof(float));
    return ERR_OK;
}

static enum err copy_floats(struct llama_context *ctx, const struct batch_view *b) {
    struct plan *p = &ctx->plan;
    const struct hparams *hp = &ctx->model->hp;
    if (b->embd) TRY(copy_rows(p, &p->embd, &p->cap_embd, b->embd, (size_t) hp->n_embd_inp));
    if (b->state) TRY(copy_rows(p, &p->state, &p->cap_state, b->state, (size_t) hp->n_embd));
    return ERR_OK;
}

int plan_make(struct llama_context *ctx, const struct batch_view *b, bool use_memory) {
    struct plan *p = &ctx->plan;
    p->n_rows = p->n_ub = p->n_pool = 0;
    if (check_batch(ctx, b) != ERR_OK) return -1;
    use_memory = use_memory && ctx->mem;
    start_positions(ctx, use_memory);
    int r;
    if (use_memory && !ctx->mem->rs && ctx->mem->full) {
        if (!ctx->cp.causal && b->n_tokens > ctx->cp.n_ubatch) {
            (void) err_set(ERR_INVALID, "%d tokens that see each other must fit into one micro-batch of %d (n_ubatch)",
                           b->n_tokens, ctx->cp.n_ubatch);
            return -1;
        }
        r = rows_in_order(ctx, b);
    } else {
        r = rows_by_seq(ctx, b);
        if (r < 0) return r;
        if (use_memory) {
            r = split_equal(ctx, r);
            if (r == 0 && !room_for_rows(ctx)) r = 1;
        } else {
            r = split_whole(ctx);
        }
    }
    if (r == 0 && copy_floats(ctx, b) != ERR_OK) r = -2;
    return r;
}
