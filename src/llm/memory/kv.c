// Caches of keys and values: tensors over the cells of cells.h.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory/memory.h"

static int32_t blocks_of(int32_t n) { return (n + CELL_BLOCK - 1) / CELL_BLOCK; }

// Blocks of the small cache: each sequence reaches back a window from its oldest token in flight (one block more for the
// alignment of the window, one for copies of shared blocks), and a micro-batch adds its tokens.
static int32_t small_blocks(const struct memory_params *p) {
    const int64_t per_seq = blocks_of(p->n_swa) + 2;
    const int64_t n = per_seq * p->n_seq + blocks_of(p->n_ubatch);
    const int64_t full = blocks_of(p->n_ctx) + p->n_seq;
    return (int32_t) (n < full ? n : full);
}

static enum err make_tensors(struct kv *kv, const struct memory_params *p, bool small) {
    const int n = 3 * p->n_cache + 1 + KV_TURNS;
    for (int i = 0; i < p->n_cache; i++) {
        const struct kv_spec *s = &p->cache[i];
        if ((s->swa && p->n_swa > 0 && !p->swa_full) != small) continue;
        struct ggml_context *ctx = home_ctx(&kv->home, s->buft, n);
        if (!ctx) return err_set(ERR_NOMEM, "no memory for the cache's tensors");
        if (s->n_k) kv->k[i] = ggml_new_tensor_2d(ctx, p->type_k, s->n_k, kv->n_cell);
        if (s->n_v) kv->v[i] = ggml_new_tensor_2d(ctx, p->type_v, s->n_v, kv->n_cell);
        if (s->n_x) kv->x[i] = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, s->n_x, kv->n_cell);
        if (kv->k[i]) ggml_format_name(kv->k[i], "cache_k_l%d", i);
        if (kv->v[i]) ggml_format_name(kv->v[i], "cache_v_l%d", i);
        if (kv->x[i]) ggml_format_name(kv->x[i], "cache_x_l%d", i);
        if ((kv->k[i] && ggml_is_error(kv->k[i])) || (kv->v[i] && ggml_is_error(kv->v[i])) ||
            (kv->x[i] && ggml_is_error(kv->x[i])))
            return err_set(ERR_INVALID, "cache %d can't be made: %d key and %d value elements per position as %s and %s", i,
                           s->n_k, s->n_v, ggml_type_name(p->type_k), ggml_type_name(p->type_v));
    }
    return ERR_OK;
}

// ---- turning rows -----------------------------------------------------------------------------------------------------------

// Hadamard matrices by Sylvester's construction: the sign is the parity of the bits that row and column share.
static void fill_turn(struct ggml_tensor *t) {
    const int n = (int) t->ne[0];
    const float one = 1.0f / sqrtf((float) n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) ((float *) t->data)[i * n + j] = __builtin_parity((unsigned) (i & j)) ? -one : one;
}

static void make_turns(struct kv *kv, struct ggml_context *host) {
    for (int i = 0; i < KV_TURNS; i++) {
        kv->turn[i] = ggml_new_tensor_2d(host, GGML_TYPE_F32, 32 << i, 32 << i);
        ggml_format_name(kv->turn[i], "cache_turn_%d", 32 << i);
        ggml_set_input(kv->turn[i]);
    }
}

struct ggml_tensor *kv_turn(const struct kv *kv, enum ggml_type type, int64_t d, int64_t dv) {
    if (!ggml_is_quantized(type) || d <= 0) return NULL;
    for (int i = KV_TURNS - 1; i >= 0; i--)
        if (d % (32 << i) == 0 && dv % (32 << i) == 0) return kv->turn[i];
    return NULL;
}

enum err kv_new(struct kv **out, const struct memory_params *p, bool small) {
    struct kv *kv = calloc(1, sizeof *kv);
    if (!kv) return err_set(ERR_NOMEM, "no memory for the cache");
    *out = kv;
    kv->n_cache = p->n_cache;
    kv->window = small ? p->n_swa : 0;
    // One block more per sequence than n_ctx holds: a sequence that begins in the middle of a block, or leaves one half
    // filled, must not lose room to it.
    const int32_t n_block = small ? small_blocks(p) : blocks_of(p->n_ctx) + p->n_seq;
    // The table bounds a sequence's span: none takes the room of others, where each has a share of its own. It begins at a multiple
    // of CELL_STRIPE.
    const int32_t n_logical =
        (small ? blocks_of(p->n_swa) + blocks_of(p->n_ubatch) + 3 : blocks_of(p->n_ctx_seq) + 1) + CELL_STRIPE - 1;
    kv->n_cell = n_block * CELL_BLOCK;
    kv->k = calloc((size_t) p->n_cache + 1, sizeof *kv->k);
    kv->v = calloc((size_t) p->n_cache + 1, sizeof *kv->v);
    kv->x = calloc((size_t) p->n_cache + 1, sizeof *kv->x);
    if (!kv->k || !kv->v || !kv->x) return err_set(ERR_NOMEM, "no memory for the cache");
    TRY(make_tensors(kv, p, small));
    struct ggml_context *host = home_ctx(&kv->home, p->host, 3 * p->n_cache + 1 + KV_TURNS);
    if (!host) return err_set(ERR_NOMEM, "no memory for the cache's tensors");
    kv->table = ggml_new_tensor_3d(host, GGML_TYPE_I32, 3, n_logical, p->n_seq);
    ggml_set_name(kv->table, small ? "cache_table_swa" : "cache_table");
    ggml_set_input(kv->table);
    if (ggml_is_quantized(p->type_k) || ggml_is_quantized(p->type_v)) make_turns(kv, host);
    TRY(home_alloc(&kv->home, "the cache of keys and values", p->no_alloc));
    TRY(cells_init(&kv->cells, p->n_seq, n_block, n_logical, p->track_shift, p->no_alloc ? NULL : kv->table->data));
    if (!small) kv->cells.n_max = p->n_ctx_seq;
    for (int i = 0; i < KV_TURNS && !p->no_alloc; i++)
        if (kv->turn[i]) fill_turn(kv->turn[i]);
    return ERR_OK;
}

void kv_free(struct kv *kv) {
    if (!kv) return;
    cells_free(&kv->cells);
    home_free(&kv->home);
    free(kv->k);
    free(kv->v);
    free(kv->x);
    free(kv);
}

void kv_clear_data(struct kv *kv) {
    for (int i = 0; i < kv->n_cache; i++) {
        if (kv->k[i]) ggml_backend_tensor_memset(kv->k[i], 0, 0, ggml_nbytes(kv->k[i]));
        if (kv->v[i]) ggml_backend_tensor_memset(kv->v[i], 0, 0, ggml_nbytes(kv->v[i]));
        if (kv->x[i]) ggml_backend_tensor_memset(kv->x[i], 0, 0, ggml_nbytes(kv->x[i]));
    }
}

// Frees what no window can reach any more. Rows of a sequence come in order of position, so its first row reaches farthest
// back; pruning again for its later rows would cut off what the first still sees.
static void prune(struct kv *kv, const struct place_row *rows, int n) {
    for (int32_t s = 0; s < kv->cells.n_seq; s++) {
        for (int i = 0; i < n; i++) {
            int k = 0;
            while (k < rows[i].n_seq && rows[i].seq[k] != s) k++;
            if (k == rows[i].n_seq) continue;
            int32_t index;
            cells_target(&kv->cells, s, rows[i].pos, &index);
            cells_prune(&kv->cells, s, index - kv->window + 1);
            break;
        }
    }
}

bool kv_place_rows(struct kv *kv, struct place_row *rows, int n, struct cell_copies *copies, bool swa) {
    if (kv->window > 0) prune(kv, rows, n);
    for (int i = 0; i < n; i++) {
        int32_t *cell = swa ? &rows[i].cell_swa : &rows[i].cell, *index = swa ? &rows[i].index_swa : &rows[i].index;
        if (!cells_place(&kv->cells, rows[i].seq, rows[i].n_seq, rows[i].pos, cell, index, copies)) return false;
    }
    return true;
}

static void move_rows(struct llama_memory_i *m, struct ggml_tensor *t, const struct cell_copy *c) {
    if (!t) return;
    const size_t row = t->nb[1], bytes = (size_t) c->n * row;
    if (ggml_backend_buffer_is_host(t->buffer)) {
        memmove((char *) t->data + (size_t) c->dst * row, (char *) t->data + (size_t) c->src * row, bytes);
        return;
    }
    if (bytes > m->staging_bytes) {
        void *p = realloc(m->staging, bytes);
        if (!p) {
            (void) err_set(ERR_NOMEM, "no memory to move %zu bytes of the cache: its content is damaged", bytes);
            return;
        }
        m->staging = p;
        m->staging_bytes = bytes;
    }
    ggml_backend_tensor_get(t, m->staging, (size_t) c->src * row, bytes);
    ggml_backend_tensor_set(t, m->staging, (size_t) c->dst * row, bytes);
}

void kv_copy_cells(struct llama_memory_i *m, struct kv *kv, const struct cell_copies *copies) {
    for (int i = 0; i < copies->n; i++)
        for (int l = 0; l < kv->n_cache; l++) {
            move_rows(m, kv->k[l], &copies->v[i]);
            move_rows(m, kv->v[l], &copies->v[i]);
            move_rows(m, kv->x[l], &copies->v[i]);
        }
}
