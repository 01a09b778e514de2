// See state.h.
#include "memory/state.h"

#include <stdlib.h>
#include <string.h>

uint64_t state_hash(uint64_t h, const void *data, size_t n) {
    const uint8_t *p = data;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        h = (h ^ w) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 29;
    }
    for (; n; n--, p++) {
        h = (h ^ *p) * 0xff51afd7ed558ccdull;
        h ^= h >> 31;
    }
    return h;
}

void state_put(struct state_out *o, const void *data, size_t n) {
    if (o->dst) {
        if (n > o->cap - o->n) {
            o->overflow = true;
            return;
        }
        memcpy(o->dst + o->n, data, n);
        o->hash = state_hash(o->hash, data, n);
    }
    o->n += n;
}

const void *state_take(struct state_in *in, size_t n) {
    if (in->bad || n > in->n - in->at) {
        in->bad = true;
        return NULL;
    }
    const void *p = in->src + in->at;
    in->at += n;
    return p;
}

int32_t state_take_i32(struct state_in *in) {
    const void *p = state_take(in, 4);
    int32_t v = 0;
    if (p) memcpy(&v, p, 4);
    return v;
}

// ---- writing -------------------------------------------------------------------------------------------------------------

static void put_rows(struct state_out *o, const struct ggml_tensor *t, int32_t row, int32_t n) {
    if (!t) return;
    const size_t bytes = (size_t) n * t->nb[1], off = (size_t) row * t->nb[1];
    if (!o->dst) {
        o->n += bytes;
        return;
    }
    if (ggml_backend_buffer_is_host(t->buffer)) {
        state_put(o, (const char *) t->data + off, bytes);
        return;
    }
    if (bytes > o->cap - o->n) {
        o->overflow = true;
        return;
    }
    ggml_backend_tensor_get(t, o->dst + o->n, off, bytes);
    o->hash = state_hash(o->hash, o->dst + o->n, bytes);
    o->n += bytes;
}

static void put_shape(struct state_out *o, const struct ggml_tensor *t) {
    state_put_i32(o, t ? (int32_t) t->type : -1);
    state_put_i32(o, t ? (int32_t) t->ne[0] : 0);
}

static uint64_t entry_bits(const struct cell_entry *e) { return (uint64_t) e->hi << 32 | e->lo; }

static bool chosen(int32_t seq, int32_t s) { return seq < 0 || seq == s; }

// Which cells of each block any chosen sequence has. NULL: no memory.
static uint64_t *used_bits(const struct cells *c, int32_t seq) {
    uint64_t *bits = calloc((size_t) c->n_block + 1, sizeof *bits);
    for (int32_t s = 0; bits && s < c->n_seq; s++) {
        if (!chosen(seq, s)) continue;
        const struct cell_entry *t = c->table + (size_t) s * (size_t) c->n_logical;
        for (int32_t i = 0; i < c->n_logical; i++)
            if (t[i].block >= 0) bits[t[i].block] |= entry_bits(&t[i]);
    }
    return bits;
}

static void put_block(struct state_out *o, const struct kv *kv, int32_t block, uint64_t bits) {
    state_put(o, &bits, 8);
    for (uint64_t b = bits; b; b &= b - 1) state_put_i32(o, kv->cells.pos[block * CELL_BLOCK + __builtin_ctzll(b)]);
    for (int l = 0; l < kv->n_cache; l++) {
        const struct ggml_tensor *t[3] = {kv->k[l], kv->v[l], kv->x[l]};
        for (int k = 0; k < 3; k++)
            for (uint64_t b = bits; t[k] && b;) {
                const int from = __builtin_ctzll(b);
                const uint64_t rest = ~(b >> from);
                int n = rest ? __builtin_ctzll(rest) : CELL_BLOCK;
                if (n > CELL_BLOCK - from) n = CELL_BLOCK - from;
                put_rows(o, t[k], block * CELL_BLOCK + from, n);
                b = from + n >= CELL_BLOCK ? 0 : b & (~(uint64_t) 0 << (from + n));
            }
    }
}

static void put_table(struct state_out *o, const struct cells *c, int32_t s, const int32_t *number) {
    const struct cell_entry *t = c->table + (size_t) s * (size_t) c->n_logical;
    int32_t n = 0;
    for (int32_t i = 0; i < c->n_logical; i++) n += t[i].block >= 0 && entry_bits(&t[i]);
    state_put_i32(o, s);
    state_put_i32(o, c->irregular[s]);
    state_put_i32(o, n);
    for (int32_t i = 0; i < c->n_logical; i++) {
        if (t[i].block < 0 || !entry_bits(&t[i])) continue;
        const uint64_t bits = entry_bits(&t[i]);
        state_put_i32(o, c->base[s] + i);
        state_put_i32(o, number[t[i].block]);
        state_put(o, &bits, 8);
    }
}

static void put_kv(struct state_out *o, const struct kv *kv, int32_t seq) {
    state_put_i32(o, kv ? 1 : 0);
    if (!kv) return;
    const struct cells *c = &kv->cells;
    state_put_i32(o, kv->n_cache);
    for (int l = 0; l < kv->n_cache; l++) {
        put_shape(o, kv->k[l]);
        put_shape(o, kv->v[l]);
        put_shape(o, kv->x[l]);
    }
    uint64_t *bits = used_bits(c, seq);
    int32_t *number = malloc((size_t) c->n_block * 4 + 4);
    if (!bits || !number) {
        o->overflow = true;
    } else {
        int32_t n = 0;
        for (int32_t b = 0; b < c->n_block; b++)
            if (bits[b]) number[b] = n++;
        state_put_i32(o, n);
        for (int32_t b = 0; b < c->n_block; b++)
            if (bits[b]) put_block(o, kv, b, bits[b]);
        n = 0;
        for (int32_t s = 0; s < c->n_seq; s++) n += chosen(seq, s) && c->idx_max[s] >= 0;
        state_put_i32(o, n);
        for (int32_t s = 0; s < c->n_seq; s++)
            if (chosen(seq, s) && c->idx_max[s] >= 0) put_table(o, c, s, number);
    }
    free(bits);
    free(number);
}

static void put_rs(struct state_out *o, const struct rs *rs, int32_t seq) {
    state_put_i32(o, rs ? 1 : 0);
    if (!rs) return;
    state_put_i32(o, rs->n_layer);
    for (int l = 0; l < rs->n_layer; l++) {
        put_shape(o, rs->r[l]);
        put_shape(o, rs->s[l]);
    }
    int32_t n = 0;
    for (int32_t s = 0; s < rs->n_seq; s++) n += chosen(seq, s) && rs_pos(rs, s) >= 0;
    state_put_i32(o, n);
    for (int32_t s = 0; s < rs->n_seq; s++) {
        const struct rs_state *h = rs_hist(rs, s);
        if (!chosen(seq, s) || h->pos < 0) continue;
        state_put_i32(o, s);
        state_put_i32(o, h->pos);
        for (int l = 0; l < rs->n_layer; l++) {
            put_rows(o, rs->r[l], h->slot, 1);
            put_rows(o, rs->s[l], h->slot, 1);
        }
    }
}

void memory_write(struct llama_memory_i *m, struct state_out *o, int32_t seq, bool partial) {
    state_put_i32(o, partial);
    put_kv(o, partial ? NULL : m->full, seq);
    put_kv(o, m->swa, seq);
    put_rs(o, m->rs, seq);
}

// ---- reading --------------------------------------------------------------------------------------------------------------

static enum err damaged(void) { return err_set(ERR_FORMAT, "the state is damaged or cut off"); }

static enum err check_shape(struct state_in *in, const struct ggml_tensor *t, const char *what) {
    const int32_t type = state_take_i32(in), ne = state_take_i32(in);
    if (in->bad) return damaged();
    if (type == (t ? (int32_t) t->type : -1) && ne == (t ? (int32_t) t->ne[0] : 0)) return ERR_OK;
    return err_set(ERR_INVALID, "the state is of another kind: %s of type %d and %d values, here type %d and %d values",
                   what, type, ne, t ? (int) t->type : -1, t ? (int) t->ne[0] : 0);
}

static size_t row_bytes(const struct kv *kv) {
    size_t n = 0;
    for (int l = 0; l < kv->n_cache; l++)
        n += (kv->k[l] ? kv->k[l]->nb[1] : 0) + (kv->v[l] ? kv->v[l]->nb[1] : 0) + (kv->x[l] ? kv->x[l]->nb[1] : 0);
    return n;
}

// One pass checks (apply false), the next puts things in place; both walk the same bytes.
struct reading {
    struct llama_memory_i *m;
    int32_t dest;  // >= 0: the one sequence goes here
    bool apply;
    int32_t *blocks;  // [n_block of the larger cache] the file's blocks -> ours
    size_t *at;       // [same] where the file has them
    uint8_t *seen;    // [n_seq]
    int32_t *last;    // [n_seq] the last position that the state has in the full cache; INT32_MAX: nothing to compare with
};

static int32_t free_after_drop(const struct cells *c, int32_t dest) {
    if (dest < 0) return c->n_block;
    int32_t n = c->n_free;
    const struct cell_entry *t = c->table + (size_t) dest * (size_t) c->n_logical;
    for (int32_t i = 0; i < c->n_logical; i++) n += t[i].block >= 0 && c->ref[t[i].block] == 1;
    return n;
}

static void set_rows(struct ggml_tensor *t, const void *src, int32_t row, int32_t n) {
    ggml_backend_tensor_set(t, src, (size_t) row * t->nb[1], (size_t) n * t->nb[1]);
}

static void apply_block(struct kv *kv, struct state_in *in, int32_t block, uint64_t bits) {
    for (uint64_t b = bits; b; b &= b - 1) kv->cells.pos[block * CELL_BLOCK + __builtin_ctzll(b)] = state_take_i32(in);
    memset(kv->cells.shift + block * CELL_BLOCK, 0, CELL_BLOCK * 4);
    for (int l = 0; l < kv->n_cache; l++) {
        struct ggml_tensor *t[3] = {kv->k[l], kv->v[l], kv->x[l]};
        for (int k = 0; k < 3; k++)
            for (uint64_t b = bits; t[k] && b; b &= b - 1)
                set_rows(t[k], state_take(in, t[k]->nb[1]), block * CELL_BLOCK + __builtin_ctzll(b), 1);
    }
}

static enum err read_blocks(const struct reading *r, struct kv *kv, struct state_in *in, int32_t n, int32_t *blocks) {
    struct cells *c = &kv->cells;
    for (int32_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        const void *p = state_take(in, 8);
        if (!p) return damaged();
        memcpy(&bits, p, 8);
        if (!bits) return damaged();
        r->at[i] = in->at - 8;
        if (r->apply) {
            blocks[i] = c->free[--c->n_free];
            c->ref[blocks[i]] = 0;
            apply_block(kv, in, blocks[i], bits);
        } else if (!state_take(in, (size_t) __builtin_popcountll(bits) * (4 + row_bytes(kv)))) {
            return damaged();
        }
    }
    return ERR_OK;
}

static void apply_entry(struct cells *c, int32_t s, int32_t lb, int32_t block, uint64_t bits) {
    struct cell_entry *e = c->table + (size_t) s * (size_t) c->n_logical + (lb - c->base[s]);
    *e = (struct cell_entry){block, (uint32_t) bits, (uint32_t) (bits >> 32)};
    c->ref[block]++;
    c->count[s] += __builtin_popcountll(bits);
    for (uint64_t b = bits; b; b &= b - 1) {
        const int32_t k = __builtin_ctzll(b), pos = c->pos[block * CELL_BLOCK + k];
        if (c->pos_min[s] < 0 || pos < c->pos_min[s]) c->pos_min[s] = pos;
        if (pos > c->pos_max[s]) c->pos_max[s] = pos;
        if (lb * CELL_BLOCK + k > c->idx_max[s]) c->idx_max[s] = lb * CELL_BLOCK + k;
    }
}

// A table may name only cells that its block has, and, where index and position are the same, each at its position. *last: the largest.
static bool check_entry(const struct reading *r, const struct state_in *in, int32_t lb, int32_t block, uint64_t bits,
                        bool irregular, int32_t *last) {
    const uint8_t *p = in->src + r->at[block];
    uint64_t have;
    memcpy(&have, p, 8);
    if (!bits || bits & ~have) return false;
    for (uint64_t b = bits; b; b &= b - 1) {
        const int k = __builtin_ctzll(b);
        int32_t pos;
        memcpy(&pos, p + 8 + 4 * __builtin_popcountll(have & (((uint64_t) 1 << k) - 1)), 4);
        if (irregular ? pos < 0 || pos > INT32_MAX - CELL_BLOCK : pos != lb * CELL_BLOCK + k) return false;
        if (pos > *last) *last = pos;
    }
    return true;
}

static enum err read_table(const struct reading *r, struct kv *kv, struct state_in *in, int32_t n_block,
                           const int32_t *blocks, uint8_t *seen) {
    struct cells *c = &kv->cells;
    int32_t s = state_take_i32(in);
    const int32_t irregular = state_take_i32(in), n = state_take_i32(in);
    if (in->bad || s < 0 || n < 1) return damaged();
    if (r->dest >= 0) s = r->dest;
    if (s >= c->n_seq)
        return err_set(ERR_INVALID, "the state has a sequence %d; this context has ids 0 to %d", s, c->n_seq - 1);
    if (!r->apply && seen[s]++) return damaged();
    int32_t first = 0, last = -1, last_pos = -1, held = 0;
    for (int32_t i = 0; i < n; i++) {
        const int32_t lb = state_take_i32(in), block = state_take_i32(in);
        const void *p = state_take(in, 8);
        if (!p || lb < 0 || lb > INT32_MAX / CELL_BLOCK - 1 || lb <= last || block < 0 || block >= n_block) return damaged();
        uint64_t bits;
        memcpy(&bits, p, 8);
        if (i == 0) {
            first = lb / CELL_STRIPE * CELL_STRIPE;
            if (r->apply) {
                c->base[s] = first;
                c->irregular[s] = irregular != 0;
            }
        }
        last = lb;
        if (lb - first >= c->n_logical)
            return err_set(ERR_INVALID, "the state's sequence %d spans %d blocks of cells; this context has room for %d", s,
                           lb - first + 1, c->n_logical);
        if (!r->apply && !check_entry(r, in, lb, block, bits, irregular != 0, &last_pos)) return damaged();
        held += __builtin_popcountll(bits);
        if (c->n_max && held > c->n_max)
            return err_set(ERR_INVALID,
                           "the state's sequence %d holds more than the %d positions of this context's sequences", s,
                           c->n_max);
        if (r->apply) apply_entry(c, s, lb, blocks[block], bits);
    }
    if (kv == r->m->full)
        r->last[s] = last_pos;
    else if (!r->apply && last_pos > r->last[s])  // the full cache has all that the window's has
        return damaged();
    return ERR_OK;
}

static enum err read_kv(const struct reading *r, struct kv *kv, struct state_in *in, bool expected) {
    const int32_t there = state_take_i32(in);
    if (in->bad) return damaged();
    if (there != (kv && expected)) return err_set(ERR_INVALID, "the state is of another kind of memory");
    if (!there) return ERR_OK;
    struct cells *c = &kv->cells;
    if (state_take_i32(in) != kv->n_cache || in->bad)
        return err_set(ERR_INVALID, "the state is of a model with other layers");
    for (int l = 0; l < kv->n_cache; l++) {
        TRY(check_shape(in, kv->k[l], "keys"));
        TRY(check_shape(in, kv->v[l], "values"));
        TRY(check_shape(in, kv->x[l], "extra values"));
    }
    const int32_t n_block = state_take_i32(in);
    if (in->bad || n_block < 0) return damaged();
    if (!r->apply && n_block > free_after_drop(c, r->dest))
        return err_set(ERR_INVALID, "the state needs %d blocks of %d cells; this context has room for %d", n_block,
                       CELL_BLOCK, free_after_drop(c, r->dest));
    if (r->apply) {
        if (r->dest < 0)
            cells_clear(c);
        else
            cells_rm(c, r->dest, 0, -1);
    }
    memset(r->seen, 0, (size_t) c->n_seq);
    TRY(read_blocks(r, kv, in, n_block, r->blocks));
    const int32_t n_seq = state_take_i32(in);
    if (in->bad || n_seq < 0 || n_seq > (r->dest >= 0 ? 1 : INT32_MAX)) return damaged();
    for (int32_t i = 0; i < n_seq; i++) TRY(read_table(r, kv, in, n_block, r->blocks, r->seen));
    for (int32_t i = 0; i < n_block && r->apply; i++)
        if (c->ref[r->blocks[i]] == 0) c->free[c->n_free++] = r->blocks[i];  // a block that no table names is no loss
    return ERR_OK;
}

static enum err read_rs(const struct reading *r, struct rs *rs, struct state_in *in) {
    const int32_t there = state_take_i32(in);
    if (in->bad) return damaged();
    if (there != (rs != NULL)) return err_set(ERR_INVALID, "the state is of another kind of memory");
    if (!rs) return ERR_OK;
    if (state_take_i32(in) != rs->n_layer || in->bad)
        return err_set(ERR_INVALID, "the state is of a model with other layers");
    size_t bytes = 0;
    for (int l = 0; l < rs->n_layer; l++) {
        TRY(check_shape(in, rs->r[l], "convolution states"));
        TRY(check_shape(in, rs->s[l], "recurrent states"));
        bytes += (rs->r[l] ? rs->r[l]->nb[1] : 0) + (rs->s[l] ? rs->s[l]->nb[1] : 0);
    }
    const int32_t n = state_take_i32(in);
    if (in->bad || n < 0 || n > (r->dest >= 0 ? 1 : rs->n_seq)) return damaged();
    if (r->apply && r->dest < 0) rs_clear(rs);
    if (r->apply && r->dest >= 0) rs_drop(rs, r->dest);
    int32_t last = -1;
    for (int32_t i = 0; i < n; i++) {
        int32_t s = state_take_i32(in);
        const int32_t pos = state_take_i32(in);
        if (in->bad || s <= last || pos < 0) return damaged();
        last = s;
        if (r->dest >= 0) s = r->dest;
        if (s >= rs->n_seq)
            return err_set(ERR_INVALID, "the state has a sequence %d; this context has ids 0 to %d", s, rs->n_seq - 1);
        if (!r->apply) {
            if (!state_take(in, bytes) || pos > r->last[s]) return damaged();
            continue;
        }
        int32_t src, dst[64];
        rs_begin(rs, s, 1, &src, dst);
        for (int l = 0; l < rs->n_layer; l++) {
            if (rs->r[l]) set_rows(rs->r[l], state_take(in, rs->r[l]->nb[1]), dst[0], 1);
            if (rs->s[l]) set_rows(rs->s[l], state_take(in, rs->s[l]->nb[1]), dst[0], 1);
        }
        rs_commit(rs, s, pos, dst, 1);
    }
    return ERR_OK;
}

static enum err pass(const struct reading *r, struct state_in *in, bool partial) {
    const int32_t is_partial = state_take_i32(in);
    if (in->bad) return damaged();
    if (is_partial != partial) return err_set(ERR_INVALID, "the state was saved with other flags");
    for (int32_t s = 0; s < r->m->p.n_seq; s++) r->last[s] = partial || !r->m->full ? INT32_MAX : -1;
    TRY(read_kv(r, r->m->full, in, !partial));
    TRY(read_kv(r, r->m->swa, in, true));
    return read_rs(r, r->m->rs, in);
}

enum err memory_read(struct llama_memory_i *m, struct state_in *in, int32_t dest_seq, bool partial) {
    const size_t at = in->at;
    size_t n_block = 1;
    if (m->full) n_block = (size_t) m->full->cells.n_block;
    if (m->swa && (size_t) m->swa->cells.n_block > n_block) n_block = (size_t) m->swa->cells.n_block;
    const size_t n_seq = (size_t) m->p.n_seq;
    struct reading r = {.m = m, .dest = dest_seq, .blocks = malloc(n_block * 4), .at = malloc(n_block * sizeof *r.at)};
    r.seen = malloc(n_seq);
    r.last = malloc(n_seq * 4);
    enum err e =
        r.blocks && r.at && r.seen && r.last ? pass(&r, in, partial) : err_set(ERR_NOMEM, "no memory to read a state");
    if (e == ERR_OK) {
        in->at = at;
        r.apply = true;
        e = pass(&r, in, partial);
    }
    free(r.blocks);
    free(r.at);
    free(r.seen);
    free(r.last);
    return e;
}
