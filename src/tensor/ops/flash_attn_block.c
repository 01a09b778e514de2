// One block of 64 positions for the rows of a run: what each row sees of it, its keys and values as F32, the tiles.
#include "ops/flash_attn_int.h"

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

// Visible sets of the rows for positions b * 64 .., by the mask; biases too. Gives the union.
static uint64_t see_mask(struct attn_run *r, int64_t b) {
    const struct attn_plan *p = r->p;
    const struct ggml_tensor *m = p->mask;
    const int n = (int) min64(ATTN_BLOCK, p->n_kv - b * ATTN_BLOCK);
    uint64_t all = 0;
    for (int row = 0; row < r->n_row; row++) {
        if (m->ne[2] == 1 && row % p->group != 0) {  // the same for all heads
            r->visible[row] = r->visible[row - 1];
            r->row_bias[row] = r->row_bias[row - 1];
            continue;
        }
        const char *src = (const char *) m->data + attn_row_query(r, row) * (int64_t) m->nb[1] +
                          attn_head(r, row) % m->ne[2] * (int64_t) m->nb[2] + r->i3 % m->ne[3] * (int64_t) m->nb[3] +
                          b * ATTN_BLOCK * (int64_t) m->nb[0];
        bool some;
        float *bias = r->bias + row * ATTN_BLOCK;
        r->visible[row] = m->type == GGML_TYPE_F16 ? p->kern->mask_f16((const uint16_t *) (const void *) src, n, bias, &some)
                                                   : p->kern->mask_f32((const float *) (const void *) src, n, bias, &some);
        r->row_bias[row] = some ? bias : NULL;
        all |= r->visible[row];
    }
    return all;
}

static uint64_t bits_below(int64_t n) { return n <= 0 ? 0 : n >= 64 ? ~0ull : (1ull << n) - 1; }

// ALiBi without a mask: minus the distance between the query's position and those from `at` on.
static const float *distances(struct attn_run *r, int row, int64_t position, int64_t at) {
    float *bias = r->bias + row * ATTN_BLOCK;
    for (int j = 0; j < ATTN_BLOCK; j++) bias[j] = -fabsf((float) (position - (at + j)));
    return bias;
}

// The same without a mask: positions lo .. hi of those that exist.
static uint64_t see_range(struct attn_run *r, int64_t b, uint64_t exist) {
    const struct attn_plan *p = r->p;
    const int64_t at = b * ATTN_BLOCK;
    uint64_t all = 0;
    for (int64_t i = 0; i < r->n_q; i++) {
        const int32_t *query = p->table ? attn_query(p, r->q0 + i) : NULL;
        const int row = (int) (i * p->group);
        const uint64_t seen = query ? exist & bits_below(query[3] - at) & ~bits_below(query[2] - at) : exist;
        const float *bias = NULL;
        if (p->max_bias > 0.0f && seen) bias = distances(r, row, query ? query[1] : p->n_kv - p->n_q + r->q0 + i, at);
        for (int h = 0; h < p->group; h++) {
            r->visible[row + h] = seen;
            r->row_bias[row + h] = bias;
        }
        all |= seen;
    }
    return all;
}

// Leaves of what the rows see by the table what a mask over the cells shows too. Gives the union.
static uint64_t narrow(struct attn_run *r, int64_t b, uint64_t exist, int64_t cell) {
    const struct attn_plan *p = r->p;
    const int64_t at = b * ATTN_BLOCK;
    uint64_t all = 0;
    see_mask(r, cell / ATTN_BLOCK);
    for (int row = 0; row < r->n_row; row++) {
        const int32_t *query = attn_query(p, r->q0 + row / p->group);
        r->visible[row] &= exist & bits_below(query[3] - at) & ~bits_below(query[2] - at);
        all |= r->visible[row];
    }
    return all;
}

// First cell of block b, and the rows' visible sets. Gives their union; 0 when there is nothing to do.
static uint64_t see_block(struct attn_run *r, int64_t b, int64_t *cell) {
    const struct attn_plan *p = r->p;
    *cell = b * ATTN_BLOCK;
    if (!p->table) return p->mask ? see_mask(r, b) : see_range(r, b, bits_below(p->n_kv - *cell));
    const int32_t slot = attn_query(p, r->q0)[0];
    const int32_t *entry = (const int32_t *) p->table->data + 3 * (slot * p->table->ne[1] + b);
    const uint64_t exist = (uint32_t) entry[1] | (uint64_t) (uint32_t) entry[2] << 32, all = see_range(r, b, exist);
    if (entry[0] == -1 || !all) return 0;
    *cell = (int64_t) entry[0] * ATTN_BLOCK;
    const int64_t room = p->n_kv - *cell;
    if (entry[0] < 0 || (all & ~bits_below(room))) {
        task_fail(r->task, p->dst,
                  "flash_attn_ext: slot %d, block %lld: physical block %d lies outside the cache of %lld cells", slot,
                  (long long) b, entry[0], (long long) p->n_kv);
        return 0;
    }
    return p->mask ? narrow(r, b, exist, *cell) : all;
}

// Some rows of K or V from one cell on.
struct rows {
    const struct ggml_tensor *x;
    const struct type *type;
    const char *data;
};

static struct rows rows_at(const struct attn_run *r, const struct ggml_tensor *x, const struct type *type, int64_t cell,
                           int64_t shift) {
    const struct attn_plan *p = r->p;
    const int64_t head = (r->unit + shift) * p->group / (p->n_head / x->ne[2]), i3 = r->i3 / (p->n_3 / x->ne[3]);
    return (struct rows){
        x, type, (const char *) x->data + cell * (int64_t) x->nb[1] + head * (int64_t) x->nb[2] + i3 * (int64_t) x->nb[3]};
}

// Rows j0 .. j0 + n_row as F32 at out [n_row][ld], zeros for those not in `set` and beyond a row's end.
static void unpack(const struct attn_plan *p, const struct rows *rows, int j0, int n_row, uint64_t set, float *out,
                   int64_t ld, struct attn_ahead *ahead) {
    const enum attn_form form = attn_form_of(rows->x->type);
    const int64_t n = rows->x->ne[0], stride = (int64_t) rows->x->nb[1];
    const char *src = rows->data + j0 * stride;
    set >>= j0;
    if (form != ATTN_OTHER) {
        p->kern->unpack(form, src, (size_t) stride, set, n_row, n, out, ld, ahead);
        return;
    }
    for (int j = 0; j < n_row; j++, out += ld, src += stride) {
        const bool there = set >> j & 1;
        if (there) rows->type->decode(src, out, n);
        const int64_t from = there ? n : 0;
        memset(out + from, 0, (size_t) (ld - from) * sizeof(float));
    }
}

// First cell of block b, or -1 if there is none or not all of it lies in the cache.
static int64_t block_cell(const struct attn_run *r, int64_t b) {
    const struct attn_plan *p = r->p;
    int64_t block = b;
    if (p->table)
        block = b < p->table->ne[1] ? ((const int32_t *) p->table->data)[3 * (attn_query(p, r->q0)[0] * p->table->ne[1] + b)]
                                    : -1;
    return block >= 0 && (block + 1) * ATTN_BLOCK <= p->n_kv ? block * ATTN_BLOCK : -1;
}

// The next block's rows of K or V; where runs go side by side over heads that lie beside each other, this run's part of the
// rows of all heads. They may not be needed after all; that costs little.
static struct attn_lines lines_of(const struct attn_run *r, const struct ggml_tensor *x, const struct type *type,
                                  int64_t cell) {
    const size_t row = ggml_row_size(x->type, x->ne[0]), all = row * (size_t) x->ne[2];
    if (r->n_part > 1 && x->nb[1] == all && x->nb[2] == row) {
        const size_t bytes = ATTN_BLOCK * all / (size_t) r->n_part;
        return (struct attn_lines){(const char *) x->data + (size_t) cell * all + (size_t) r->part * bytes, bytes, 0, 1};
    }
    const char *data = rows_at(r, x, type, cell, r->shift).data;
    return x->nb[1] == row ? (struct attn_lines){data, ATTN_BLOCK * row, 0, 1}
                           : (struct attn_lines){data, row, x->nb[1], ATTN_BLOCK};
}

static int64_t n_line(const struct attn_lines *x) { return (int64_t) ((x->bytes + 63) / 64) * x->n; }

// What to ask for in n_call calls of the kernels.
static struct attn_ahead ahead_of(const struct attn_run *r, int64_t n_call) {
    const struct attn_plan *p = r->p;
    const int64_t cell = r->next >= 0 ? block_cell(r, r->next) : -1;
    if (cell < 0) return (struct attn_ahead){0};
    const struct attn_lines k = lines_of(r, p->k, p->k_type, cell), v = lines_of(r, p->v, p->v_type, cell);
    const int64_t n = n_call ? n_line(&k) + n_line(&v) : 0;
    return (struct attn_ahead){k.at, k.at + k.bytes, n ? (int) ((n + n_call - 1) / n_call) : 0, k, v};
}

static void run_tiles(const struct attn_run *r, struct attn_block *x) {
    const struct attn_plan *p = r->p;
    for (int i = 0; i < r->tiles; i++) {
        const int row = i * ATTN_TILE;
        x->n_row = r->n_row - row < ATTN_TILE ? r->n_row - row : ATTN_TILE;
        x->q = r->q + row * p->d;
        x->visible = r->visible + row, x->bias = r->row_bias + row, x->slope = r->slope + row;
        x->state = (struct attn_state){r->stripe.m + row, r->stripe.l + row, r->stripe.o + row * p->dvp};
        p->kern->block(x);
    }
}

static bool all_see(const struct attn_run *r, uint64_t all) {
    for (int row = 0; row < r->n_row; row++)
        if (r->visible[row] != all) return false;
    return true;
}

// How keys come to the tiles.
enum keys { KEYS_UNPACKED, KEYS_TURNED, KEYS_HALVES, KEYS_Q8_0 };

static enum keys keys_of(const struct attn_run *r, const struct rows *k, int64_t cell) {
    const struct attn_plan *p = r->p;
    const bool whole = cell + ATTN_BLOCK <= p->n_kv && p->d % 32 == 0;
    if (!whole) return KEYS_UNPACKED;
    switch (attn_form_of(k->x->type)) {
        case ATTN_F32:  // for few rows memory is what takes time, and only unpacking looks ahead
            return r->n_row > ATTN_ROWS && k->x->nb[1] % sizeof(float) == 0 ? KEYS_TURNED : KEYS_UNPACKED;
        case ATTN_F16:
        case ATTN_BF16: return p->kern->turn_halves ? KEYS_HALVES : KEYS_UNPACKED;
        case ATTN_Q8_0: return p->kern->turn_q8_0 ? KEYS_Q8_0 : KEYS_UNPACKED;
        default: return KEYS_UNPACKED;
    }
}

// The block's keys as r->k [d][64] F32, or as halves that are in x->k_half.
static void turn_keys(const struct attn_run *r, const struct rows *k, enum keys how, uint64_t all, struct attn_block *x) {
    const struct attn_plan *p = r->p;
    const size_t stride = k->x->nb[1];
    const enum attn_form form = attn_form_of(k->x->type);
    // The upper half of r->k, where widening from the start on overwrites nothing that it has yet to read.
    uint16_t *half = (uint16_t *) (void *) (r->k + ATTN_BLOCK / 2 * p->d);
    if (how == KEYS_HALVES) {
        p->kern->turn_halves(k->data, stride, p->d, half, x->ahead);
        if (r->n_row <= ATTN_ROWS) {
            x->k_half = half, x->k_form = form;
            return;
        }
        p->kern->unpack(form, half, 0, 1, 1, ATTN_BLOCK * p->d, r->k, ATTN_BLOCK * p->d, x->ahead);
    } else if (how == KEYS_Q8_0) {
        p->kern->turn_q8_0(k->data, stride, p->d, r->k, x->ahead);
    } else {
        for (int j = 0; j < ATTN_BLOCK; j += ATTN_PAD) {
            if (how == KEYS_UNPACKED) unpack(p, k, j, ATTN_PAD, all, r->raw, p->ld, x->ahead);
            const float *raw =
                how == KEYS_UNPACKED ? r->raw : (const float *) (const void *) (k->data + (size_t) j * stride);
            p->kern->transpose(raw, how == KEYS_UNPACKED ? p->ld : (int64_t) (stride / sizeof(float)), p->d, r->k + j);
        }
    }
}

// How values come to the tiles.
enum values { VALUES_UNPACKED, VALUES_F32, VALUES_RAW };

static enum values values_of(const struct attn_run *r, uint64_t all, bool same) {
    const struct attn_plan *p = r->p;
    const enum attn_form form = attn_form_of(p->v->type);
    const bool few = r->n_row <= ATTN_ROWS && p->dv % ATTN_BLOCK == 0;  // not worth unpacking for
    if (form == ATTN_F32) return few && all == ~0ull ? VALUES_F32 : VALUES_UNPACKED;
    return same && few && form != ATTN_OTHER ? VALUES_RAW : VALUES_UNPACKED;
}

void flash_attn_block(struct attn_run *r, int64_t b) {
    const struct attn_plan *p = r->p;
    int64_t cell;
    const uint64_t all = see_block(r, b, &cell);
    if (!all) return;
    const struct rows k = rows_at(r, p->k, p->k_type, cell, 0), v = rows_at(r, p->v, p->v_type, cell, 0);
    const bool same = all_see(r, all);
    const enum keys keys = keys_of(r, &k, cell);
    const enum values values = values_of(r, all, same);
    // Calls that ask for what comes next: of turning or unpacking keys, the scores of halves, exponentials, values.
    const int64_t turning = keys == KEYS_TURNED ? 0 : keys == KEYS_UNPACKED ? ATTN_BLOCK : p->d;
    const int64_t scores = keys == KEYS_HALVES && r->n_row <= ATTN_ROWS ? p->d : 0;
    const int64_t adding = values == VALUES_RAW ? 2 * p->dvp : values == VALUES_F32 ? 0 : ATTN_BLOCK;
    struct attn_ahead ahead = ahead_of(r, turning + scores + 4 * r->n_row + adding);
    struct attn_block x = {
        .k = r->k, .v = r->v, .v_step = p->dvp, .d = p->d, .dvp = p->dvp, .cap = p->cap, .work = r->work, .ahead = &ahead};
    turn_keys(r, &k, keys, all, &x);
    if (values == VALUES_F32) {
        x.v = (const float *) (const void *) v.data, x.v_step = (int64_t) (p->v->nb[1] / sizeof(float));
        x.careful = !same;
    } else if (values == VALUES_RAW) {
        x.v_raw = v.data, x.v_stride = p->v->nb[1], x.v_form = attn_form_of(p->v->type);
    } else {
        unpack(p, &v, 0, ATTN_BLOCK, all, r->v, p->dvp, &ahead);
        x.careful = !same && !p->kern->finite(r->v, ATTN_BLOCK * p->dvp);
    }
    run_tiles(r, &x);
}
