// Recurrent states. See struct rs in memory.h.
#include <stdlib.h>
#include <string.h>

#include "memory/memory.h"

struct rs_state *rs_hist(const struct rs *rs, int32_t seq) {
    return rs->hist + (size_t) seq * (size_t) rs->n_hist;
}

enum err rs_new(struct rs **out, const struct memory_params *p) {
    struct rs *rs = calloc(1, sizeof *rs);
    if (!rs) return err_set(ERR_NOMEM, "no memory for the recurrent states");
    *out = rs;
    rs->n_seq = p->n_seq;
    rs->n_hist = 1 + p->n_rs_seq;
    rs->n_layer = p->n_layer;
    // With a history, the state that is read must survive while all of the new ones are written.
    rs->n_slot = p->n_seq * rs->n_hist + (p->n_rs_seq ? p->n_seq : 0);
    const size_t ns = (size_t) rs->n_slot, nh = (size_t) rs->n_seq * (size_t) rs->n_hist, nl = (size_t) p->n_layer;
    rs->hist = malloc(nh * sizeof *rs->hist);
    rs->ref = malloc(ns * 4);
    rs->free = malloc(ns * 4);
    rs->r = calloc(nl + 1, sizeof *rs->r);
    rs->s = calloc(nl + 1, sizeof *rs->s);
    if (!rs->hist || !rs->ref || !rs->free || !rs->r || !rs->s)
        return err_set(ERR_NOMEM, "no memory for the recurrent states");
    for (int il = 0; il < p->n_layer; il++) {
        const struct rs_spec *s = &p->rs[il];
        if (!s->n_r && !s->n_s) continue;
        struct ggml_context *ctx = home_ctx(&rs->home, s->buft, 2 * p->n_layer);
        if (!ctx) return err_set(ERR_NOMEM, "no memory for the recurrent states' tensors");
        if (s->n_r) rs->r[il] = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, s->n_r, rs->n_slot);
        if (s->n_s) rs->s[il] = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, s->n_s, rs->n_slot);
        if (rs->r[il]) ggml_format_name(rs->r[il], "cache_r_l%d", il);
        if (rs->s[il]) ggml_format_name(rs->s[il], "cache_s_l%d", il);
    }
    TRY(home_alloc(&rs->home, "the recurrent states", p->no_alloc));
    rs_clear(rs);
    return ERR_OK;
}

void rs_free(struct rs *rs) {
    if (!rs) return;
    home_free(&rs->home);
    free(rs->hist);
    free(rs->ref);
    free(rs->free);
    free(rs->r);
    free(rs->s);
    free(rs);
}

void rs_clear(struct rs *rs) {
    for (int32_t i = 0; i < rs->n_seq * rs->n_hist; i++) rs->hist[i] = (struct rs_state){-1, -1};
    for (int32_t i = 0; i < rs->n_slot; i++) {
        rs->ref[i] = 0;
        rs->free[i] = rs->n_slot - 1 - i;
    }
    rs->n_free = rs->n_slot;
}

static void unref(struct rs *rs, struct rs_state *h) {
    if (h->slot >= 0 && --rs->ref[h->slot] == 0) rs->free[rs->n_free++] = h->slot;
    *h = (struct rs_state){-1, -1};
}

static int32_t take(struct rs *rs) {
    const int32_t s = rs->free[--rs->n_free];
    rs->ref[s] = 1;
    return s;
}

static void zero_slot(struct rs *rs, int32_t slot) {
    for (int il = 0; il < rs->n_layer; il++) {
        struct ggml_tensor *t[2] = {rs->r[il], rs->s[il]};
        for (int k = 0; k < 2; k++)
            if (t[k]) ggml_backend_tensor_memset(t[k], 0, (size_t) slot * t[k]->nb[1], t[k]->nb[1]);
    }
}

int32_t rs_pos(const struct rs *rs, int32_t seq) { return rs_hist(rs, seq)->pos; }

void rs_begin(struct rs *rs, int32_t seq, int32_t n_state, int32_t *src, int32_t *dst) {
    struct rs_state *h = rs_hist(rs, seq);
    if (h->slot < 0) {
        *h = (struct rs_state){take(rs), -1};
        zero_slot(rs, h->slot);
    }
    *src = h->slot;
    if (rs->n_hist == 1 && rs->ref[h->slot] == 1) {
        dst[0] = h->slot;  // read and written in place
        return;
    }
    // The oldest states make room, but for the newest, which is being read: no sequence takes more than n_hist + 1 slots.
    int n_held = 0;
    while (n_held < rs->n_hist && h[n_held].slot >= 0) n_held++;
    for (int i = n_held - 1; i > 0 && i + 1 + n_state > rs->n_hist + 1; i--) unref(rs, &h[i]);
    for (int k = 0; k < n_state; k++) dst[k] = take(rs);
}

void rs_abort(struct rs *rs, int32_t seq, const int32_t *dst, int32_t n_state) {
    if (dst[0] == rs_hist(rs, seq)->slot) {
        rs_drop(rs, seq);
        return;
    }
    for (int k = 0; k < n_state; k++) {
        struct rs_state h = {dst[k], 0};
        unref(rs, &h);
    }
}

void rs_commit(struct rs *rs, int32_t seq, int32_t pos, const int32_t *dst, int32_t n_state) {
    struct rs_state *h = rs_hist(rs, seq);
    if (dst[0] == h->slot) {
        h->pos = pos;
        return;
    }
    if (h->pos < 0) unref(rs, h);  // the zeroed state before the first token is no state to go back to
    const int n_old = rs->n_hist - n_state;
    for (int i = rs->n_hist - 1; i >= 0; i--) {
        if (i >= n_old)
            unref(rs, &h[i]);
        else
            h[i + n_state] = h[i];
    }
    for (int k = 0; k < n_state; k++) h[k] = (struct rs_state){dst[k], pos - k};
}

void rs_drop(struct rs *rs, int32_t seq) {
    struct rs_state *h = rs_hist(rs, seq);
    for (int i = 0; i < rs->n_hist; i++) unref(rs, &h[i]);
}

// Removing from p0 on is possible if the state after p0 - 1 is at hand.
static int find(const struct rs *rs, int32_t seq, int32_t pos) {
    const struct rs_state *h = rs_hist(rs, seq);
    for (int i = 0; i < rs->n_hist; i++)
        if (h[i].slot >= 0 && h[i].pos == pos) return i;
    return -1;
}

bool rs_can_rm(const struct rs *rs, int32_t seq, int32_t p0, int32_t p1) {
    const int32_t last = rs_pos(rs, seq);
    if (last < 0 || p0 > last || p0 >= p1 || p1 <= 0) return true;
    if (p1 <= last) return false;
    return p0 <= 0 || find(rs, seq, p0 - 1) >= 0;
}

void rs_rm(struct rs *rs, int32_t seq, int32_t p0, int32_t p1) {
    const int32_t last = rs_pos(rs, seq);
    if (last < 0 || p0 > last || p0 >= p1 || p1 <= 0) return;
    if (p0 <= 0) {
        rs_drop(rs, seq);
        return;
    }
    struct rs_state *h = rs_hist(rs, seq);
    const int at = find(rs, seq, p0 - 1);
    if (at <= 0) return;
    for (int i = 0; i < at; i++) unref(rs, &h[i]);
    for (int i = 0; i + at < rs->n_hist; i++) h[i] = h[i + at];
    for (int i = rs->n_hist - at; i < rs->n_hist; i++) h[i] = (struct rs_state){-1, -1};
}

bool rs_cp(struct rs *rs, int32_t src, int32_t dst, int32_t p1) {
    rs_drop(rs, dst);
    const int32_t last = rs_pos(rs, src);
    if (last < 0) return true;
    const int at = p1 > last ? 0 : find(rs, src, p1 - 1);
    if (at < 0) return false;
    const struct rs_state *s = rs_hist(rs, src);
    struct rs_state *d = rs_hist(rs, dst);
    for (int i = at; i < rs->n_hist; i++) {
        if (s[i].slot < 0) break;
        d[i - at] = s[i];
        rs->ref[s[i].slot]++;
    }
    return true;
}
