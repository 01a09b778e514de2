// The public calls on a context's memory: every call keeps all kinds of memory in step, so that there is one truth about which
// positions a sequence has.
#include "memory/memory.h"

#include <stdlib.h>
#include <string.h>

enum err memory_new(struct llama_memory_i **out, const struct memory_params *p) {
    *out = NULL;
    struct llama_memory_i *m = calloc(1, sizeof *m);
    if (!m) return err_set(ERR_NOMEM, "no memory for the context's memory");
    m->p = *p;
    m->p.cache = NULL;  // the caller's tables don't outlive the call
    m->p.rs = NULL;
    bool any_full = false, any_swa = false, any_rs = false;
    for (int i = 0; i < p->n_cache; i++) {
        const bool small = p->cache[i].swa && p->n_swa > 0 && !p->swa_full;
        any_swa |= small;
        any_full |= !small;
    }
    for (int i = 0; i < p->n_layer; i++) any_rs |= p->rs && (p->rs[i].n_r || p->rs[i].n_s);
    enum err e = ERR_OK;
    if (any_full || !any_rs) e = kv_new(&m->full, p, false);
    if (e == ERR_OK && any_swa) e = kv_new(&m->swa, p, true);
    if (e == ERR_OK && any_rs) e = rs_new(&m->rs, p);
    if (e != ERR_OK) {
        memory_free(m);
        return e;
    }
    *out = m;
    return ERR_OK;
}

void memory_free(struct llama_memory_i *m) {
    if (!m) return;
    kv_free(m->full);
    kv_free(m->swa);
    rs_free(m->rs);
    free(m->copies.v);
    free(m->staging);
    free(m);
}

size_t memory_bytes(const struct llama_memory_i *m, ggml_backend_buffer_type_t buft) {
    return (m->full ? home_bytes(&m->full->home, buft) : 0) + (m->swa ? home_bytes(&m->swa->home, buft) : 0) +
           (m->rs ? home_bytes(&m->rs->home, buft) : 0);
}

static size_t kv_overhead(const struct kv *kv) {
    return kv ? sizeof *kv + home_overhead(&kv->home) + 3 * ((size_t) kv->n_cache + 1) * sizeof *kv->k +
                    cells_bytes(&kv->cells)
              : 0;
}

static size_t rs_overhead(const struct rs *rs) {
    if (!rs) return 0;
    return sizeof *rs + home_overhead(&rs->home) + (size_t) rs->n_seq * (size_t) rs->n_hist * sizeof *rs->hist +
           2 * (size_t) rs->n_slot * 4 + 2 * ((size_t) rs->n_layer + 1) * sizeof *rs->r;
}

size_t memory_overhead(const struct llama_memory_i *m) {
    if (!m) return 0;
    return sizeof *m + kv_overhead(m->full) + kv_overhead(m->swa) + rs_overhead(m->rs) +
           (size_t) m->copies.cap * sizeof *m->copies.v + m->staging_bytes;
}

static bool valid(const struct llama_memory_i *m, llama_seq_id s) { return m && s >= 0 && s < m->p.n_seq; }

static void run_copies(struct llama_memory_i *m, struct kv *kv) {
    kv_copy_cells(m, kv, &m->copies);
    if (m->copies.failed) (void) err_set(ERR_NOMEM, "no memory for the list of moved cache cells: some content is lost");
    m->copies.n = 0;
    m->copies.failed = false;
}

void llama_memory_clear(llama_memory_t m, bool data) {
    if (!m) return;
    if (m->full) cells_clear(&m->full->cells);
    if (m->swa) cells_clear(&m->swa->cells);
    if (m->rs) rs_clear(m->rs);
    if (!data) return;
    if (m->full) kv_clear_data(m->full);
    if (m->swa) kv_clear_data(m->swa);
}

// Cutting the tail off a windowed sequence leaves the next token looking at positions that may have been freed.
static bool window_intact(const struct llama_memory_i *m, llama_seq_id s, llama_pos p0, llama_pos p1) {
    if (!m->swa || !m->full) return true;
    const struct cells *f = &m->full->cells, *w = &m->swa->cells;
    if (p0 > f->pos_max[s] || p1 <= f->pos_max[s] || p0 <= f->pos_min[s]) return true;  // not a tail, or all of it
    for (llama_pos p = p0 - 1; p >= 0 && p > p0 - m->swa->window; p--)
        if (cells_has(f, s, p) && !cells_has(w, s, p)) return false;
    return true;
}

static bool seq_can_rm(const struct llama_memory_i *m, llama_seq_id s, llama_pos p0, llama_pos p1) {
    return (!m->rs || rs_can_rm(m->rs, s, p0, p1)) && window_intact(m, s, p0, p1);
}

bool llama_memory_seq_rm(llama_memory_t m, llama_seq_id seq_id, llama_pos p0, llama_pos p1) {
    if (!m) return true;
    if (p0 < 0) p0 = 0;
    if (p1 < 0) p1 = INT32_MAX;
    if (seq_id >= m->p.n_seq) return false;
    const llama_seq_id s0 = seq_id < 0 ? 0 : seq_id, s1 = seq_id < 0 ? m->p.n_seq : seq_id + 1;
    for (llama_seq_id s = s0; s < s1; s++)
        if (!seq_can_rm(m, s, p0, p1)) return false;
    for (llama_seq_id s = s0; s < s1; s++) {
        if (m->full) cells_rm(&m->full->cells, s, p0, p1);
        if (m->swa) cells_rm(&m->swa->cells, s, p0, p1);
        if (m->rs) rs_rm(m->rs, s, p0, p1);
    }
    return true;
}

void llama_memory_seq_cp(llama_memory_t m, llama_seq_id src, llama_seq_id dst, llama_pos p0, llama_pos p1) {
    if (!valid(m, src) || !valid(m, dst)) {
        if (m) (void) err_set(ERR_INVALID, "seq_cp: sequence ids %d and %d must be in 0..%d", src, dst, m->p.n_seq - 1);
        return;
    }
    if (src == dst) return;
    if (p1 < 0) p1 = INT32_MAX;
    if (m->rs && !rs_cp(m->rs, src, dst, p1)) {
        (void) err_set(ERR_UNSUPPORTED, "seq_cp: sequence %d has no recurrent state at position %d; nothing is copied", src,
                       p1 - 1);
        return;
    }
    if (m->full) {
        cells_cp(&m->full->cells, src, dst, p0, p1, &m->copies);
        run_copies(m, m->full);
    }
    if (m->swa) {
        cells_cp(&m->swa->cells, src, dst, p0, p1, &m->copies);
        run_copies(m, m->swa);
    }
}

void llama_memory_seq_keep(llama_memory_t m, llama_seq_id seq_id) {
    if (!m) return;
    if (m->full) cells_keep(&m->full->cells, seq_id);
    if (m->swa) cells_keep(&m->swa->cells, seq_id);
    for (llama_seq_id s = 0; m->rs && s < m->p.n_seq; s++)
        if (s != seq_id) rs_drop(m->rs, s);
}

// delta is added, or, where div is not 0, positions are divided.
static void change_pos(llama_memory_t m, llama_seq_id s, llama_pos p0, llama_pos p1, llama_pos delta, int div) {
    struct kv *kv[2] = {m->full, m->swa};
    for (int i = 0; i < 2; i++) {
        if (!kv[i]) continue;
        if (div)
            cells_div(&kv[i]->cells, s, p0, p1, div, &m->copies);
        else
            cells_add(&kv[i]->cells, s, p0, p1, delta, &m->copies);
        run_copies(m, kv[i]);
    }
    if (!m->rs) return;
    struct rs_state *h = rs_hist(m->rs, s);
    for (int i = 0; i < m->rs->n_hist; i++)
        if (h[i].slot >= 0 && h[i].pos >= p0 && (p1 < 0 || h[i].pos < p1))
            h[i].pos = div ? h[i].pos / div : h[i].pos + delta;
}

void llama_memory_seq_add(llama_memory_t m, llama_seq_id seq_id, llama_pos p0, llama_pos p1, llama_pos delta) {
    if (!m || delta == 0) return;
    for (llama_seq_id s = seq_id < 0 ? 0 : seq_id; s < m->p.n_seq && (seq_id < 0 || s == seq_id); s++)
        change_pos(m, s, p0, p1, delta, 0);
}

void llama_memory_seq_div(llama_memory_t m, llama_seq_id seq_id, llama_pos p0, llama_pos p1, int d) {
    if (!m || d == 1) return;
    if (d < 1) {
        (void) err_set(ERR_INVALID, "seq_div: positions can't be divided by %d", d);
        return;
    }
    for (llama_seq_id s = seq_id < 0 ? 0 : seq_id; s < m->p.n_seq && (seq_id < 0 || s == seq_id); s++)
        change_pos(m, s, p0, p1, 0, d);
}

llama_pos llama_memory_seq_pos_min(llama_memory_t m, llama_seq_id s) {
    if (!valid(m, s)) return -1;
    llama_pos p = -1;
    if (m->full) p = m->full->cells.pos_min[s];
    if (m->swa && m->swa->cells.pos_min[s] > p) p = m->swa->cells.pos_min[s];
    if (m->rs) {
        // only the remembered states can be gone back to
        const struct rs_state *h = rs_hist(m->rs, s);
        llama_pos q = -1;
        for (int i = 0; i < m->rs->n_hist && h[i].slot >= 0; i++) q = h[i].pos;
        if (q > p) p = q;
    }
    return p;
}

llama_pos llama_memory_seq_pos_max(llama_memory_t m, llama_seq_id s) {
    if (!valid(m, s)) return -1;
    if (m->full) return m->full->cells.pos_max[s];
    if (m->rs) return rs_pos(m->rs, s);
    return m->swa ? m->swa->cells.pos_max[s] : -1;
}

bool llama_memory_can_shift(llama_memory_t m) { return m && !m->rs; }
