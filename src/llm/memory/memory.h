// The memory of a context: caches of keys and values (full and sliding-window), recurrent states, and the one logical truth
// over them that llama_memory_* shows. All bytes are allocated by memory_new.
#pragma once

#include "llama.h"
#include "memory/cells.h"

// What one cache of K and V needs; widths in values per position, 0: none.
struct kv_spec {
    int32_t n_k, n_v, n_x;
    bool swa;  // windowed: goes to the small cache unless swa_full
    ggml_backend_buffer_type_t buft;
};

// States of one recurrent layer, in values per sequence.
struct rs_spec {
    int32_t n_r, n_s;  // 0 and 0: the layer has none
    ggml_backend_buffer_type_t buft;
};

struct memory_params {
    int32_t n_seq, n_ctx, n_ctx_seq, n_ubatch;
    int32_t n_swa;  // window, 0: none
    bool swa_full, track_shift, no_alloc;
    enum ggml_type type_k, type_v;
    int32_t n_cache;
    const struct kv_spec *cache;
    int32_t n_layer, n_rs_seq;
    const struct rs_spec *rs;
    ggml_backend_buffer_type_t host;  // where the block tables live
};

// Tensors that live in buffers of several kinds, one context and one buffer per kind.
struct tensor_home {
    int n;
    struct {
        ggml_backend_buffer_type_t buft;
        struct ggml_context *ctx;
        ggml_backend_buffer_t buf;
        size_t planned, overhead;  // bytes of buf, and of the heap beside them, whether it is made or only planned
    } part[16];
};

enum { KV_TURNS = 3 };

struct kv {
    struct cells cells;
    int32_t n_cache, n_cell;
    int32_t window;                      // > 0: blocks out of reach are freed
    struct ggml_tensor **k, **v, **x;    // [n_cache], [width, n_cell]; NULL where the cache is of the other kind
    struct ggml_tensor *table;           // [3, n_logical, n_seq] i32: what attention reads
    struct ggml_tensor *turn[KV_TURNS];  // [n, n] f32, n = 32, 64, 128: see kv_turn; NULL where nothing is quantized
    struct tensor_home home;
};

// Recurrent states. A slot is one column of every layer's state tensors. Sequences own a short history of slots, newest first;
// slots are shared by seq_cp and never written while shared.
struct rs {
    int32_t n_seq, n_slot, n_hist, n_layer;
    struct rs_state {
        int32_t slot, pos;
    } * hist;  // [n_seq][n_hist], slot -1: none
    int32_t *ref, *free, n_free;
    struct ggml_tensor **r, **s;  // [n_layer] [n_r, n_slot], [n_s, n_slot] f32
    struct tensor_home home;
};

struct llama_memory_i {
    struct memory_params p;
    struct kv *full, *swa;  // swa: NULL if windowed layers live in full
    struct rs *rs;
    struct cell_copies copies;
    void *staging;  // for moves on devices without host memory
    size_t staging_bytes;
};

MUST_USE enum err memory_new(struct llama_memory_i **out, const struct memory_params *p);
void memory_free(struct llama_memory_i *m);
// The cache that holds layer class swa.
static inline struct kv *memory_kv(const struct llama_memory_i *m, bool swa) { return swa && m->swa ? m->swa : m->full; }
size_t memory_bytes(const struct llama_memory_i *m, ggml_backend_buffer_type_t buft);

// Rows of quantized caches are kept turned: each run of n values of a head is multiplied by an orthogonal matrix, its own inverse, that
// spreads a few large values evenly over all. Blocks of a quantized type share one scale, so this is what a scale fits best: with q4_0
// caches the divergence of SmolLM2's logits falls to a third. Queries turned alike have the same products with keys; what attention
// makes of turned values is turned back. The matrix [n, n] for heads of d values whose first dv (0: none) are read on their own too;
// NULL: heads of this width, or this type, are kept as they are.
struct ggml_tensor *kv_turn(const struct kv *kv, enum ggml_type type, int64_t d, int64_t dv);

// The rows of one micro-batch as the memory sees them.
struct place_row {
    const int32_t *seq;  // sequences that share the row's cell
    int32_t n_seq, pos;
    int32_t cell, index;          // out: in the full cache
    int32_t cell_swa, index_swa;  // out: in the small cache
};

bool kv_place_rows(struct kv *kv, struct place_row *rows, int n, struct cell_copies *copies, bool swa);
void kv_copy_cells(struct llama_memory_i *m, struct kv *kv, const struct cell_copies *copies);
enum err kv_new(struct kv **out, const struct memory_params *p, bool small);
void kv_free(struct kv *kv);
void kv_clear_data(struct kv *kv);

enum err rs_new(struct rs **out, const struct memory_params *p);
void rs_free(struct rs *rs);
void rs_clear(struct rs *rs);
// Before a micro-batch: where a sequence's newest state is read (src) and where the states after its last n_state tokens go
// (dst[0] after the very last). A sequence without state gets a zeroed slot. Never fails: room for all was made.
void rs_begin(struct rs *rs, int32_t seq, int32_t n_state, int32_t *src, int32_t *dst);
// After it was computed: the sequence's history begins with dst at positions pos, pos - 1, ...
void rs_commit(struct rs *rs, int32_t seq, int32_t pos, const int32_t *dst, int32_t n_state);
// After it failed: a state that was being written in place is lost, and with it the sequence's memory.
void rs_abort(struct rs *rs, int32_t seq, const int32_t *dst, int32_t n_state);
void rs_drop(struct rs *rs, int32_t seq);
bool rs_can_rm(const struct rs *rs, int32_t seq, int32_t p0, int32_t p1);
void rs_rm(struct rs *rs, int32_t seq, int32_t p0, int32_t p1);
bool rs_cp(struct rs *rs, int32_t src, int32_t dst, int32_t p1);
int32_t rs_pos(const struct rs *rs, int32_t seq);
struct rs_state *rs_hist(const struct rs *rs, int32_t seq);

// A home takes tensors by kind of buffer, then allocates them all.
struct ggml_context *home_ctx(struct tensor_home *h, ggml_backend_buffer_type_t buft, int n_max_tensors);
MUST_USE enum err home_alloc(struct tensor_home *h, const char *what, bool no_alloc);
// Notes what the tensors of part i that have no memory will take.
void home_plan(struct tensor_home *h, int i);
void home_free(struct tensor_home *h);
size_t home_bytes(const struct tensor_home *h, ggml_backend_buffer_type_t buft);
// Bytes of the heap that are no tensor's: headers, handles, tables.
size_t home_overhead(const struct tensor_home *h);
size_t memory_overhead(const struct llama_memory_i *m);
