// Writing the converted file: rows are read, put in order, encoded and written in pieces of a few MB, so that no tensor is ever whole in memory.
#include "base/file.h"
#include "convert/convert_int.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE_VALUES ((int64_t) 1 << 20)  // at most, unless one row is longer

// Within a head of which n_rot dims from rot_at on turn: where the pair's member that goes to place i stands among the halves.
static int64_t half_place(const struct piece *p, int64_t i) {
    const int64_t j = i - p->rot_at;
    if (!p->pairs || j < 0 || j >= p->n_rot) return i;
    if (p->swapped) return p->rot_at + (j + p->n_rot / 2) % p->n_rot;
    if (p->halves) return p->rot_at + (j < p->n_rot / 2 ? 2 * j : 2 * (j - p->n_rot / 2) + 1);
    return p->rot_at + (j % 2 ? p->n_rot / 2 + j / 2 : j / 2);
}

// The checkpoint's row that becomes row r of n.
static int64_t source_row(const struct piece *p, int64_t r, int64_t n) {
    if (!p->pairs && !p->groups) return r;
    const int64_t dim = p->n_dim > 0 ? p->n_dim : 1;
    if (!p->fused) return r / dim * dim + half_place(p, r % dim);
    const int64_t q = (int64_t) p->n_head * dim, k = q + (int64_t) p->n_head_kv * dim,
                  per = p->n_head_kv > 0 ? p->n_head / p->n_head_kv : 1;
    if (n != k + (k - q)) return r;  // values of another width: as they are
    const int64_t part = r < q   ? 0
                         : r < k ? 1
                                 : 2,
                  head = (r - (part == 0   ? 0
                               : part == 1 ? q
                                           : k)) /
                         dim,
                  i = part == 2 ? r % dim : half_place(p, r % dim);
    if (!p->groups) return (part == 0 ? 0 : part == 1 ? q : k) + head * dim + i;
    const int64_t group = part == 0 ? head / per : head, in = part == 0 ? head % per : per + part - 1;
    return (group * (per + 2) + in) * dim + i;
}

// Rows [r0, r0 + n) of the n_rows that the segment makes.
static enum err read_rows(const struct convert *k, const struct piece *p, const struct segment *s, int64_t r0, int64_t n,
                          int64_t n_rows, float *x) {
    const int64_t ne0 = p->t->ne[0];
    if (s->view && !p->pairs && !p->groups) return view_read(&k->c, s->t, s->view, r0 * ne0, n * ne0, x);
    for (int64_t r = 0; r < n;) {  // runs of rows that follow each other
        const int64_t from = source_row(p, r0 + r, n_rows);
        int64_t run = 1;
        while (r + run < n && source_row(p, r0 + r + run, n_rows) == from + run) run++;
        TRY(s->view ? view_read(&k->c, s->t, s->view, from * ne0, run * ne0, x + r * ne0)
                    : checkpoint_read(&k->c, s->t, from * ne0, run * ne0, x + r * ne0));
        r += run;
    }
    return ERR_OK;
}

static int64_t segment_count(const struct segment *s) { return s->view ? s->view->total : ckpt_tensor_count(s->t); }

// A tensor of one row: the segments' values follow each other in it. Biases are rows of one value each: their places change as rows do.
static enum err read_row(const struct convert *k, const struct piece *p, float *x) {
    if (!p->segments) {
        memcpy(x, p->values, (size_t) p->t->ne[0] * sizeof(float));
        return ERR_OK;
    }
    const int64_t ne0 = p->t->ne[0];
    float *at = x, *old = malloc((size_t) ne0 * sizeof(float));
    enum err e = old ? ERR_OK : err_set(ERR_NOMEM, "no memory for '%s'", p->name);
    for (int i = 0; i < p->n_segments && e == ERR_OK; i++) {
        const struct segment *s = &p->segments[i];
        const int64_t n = segment_count(s);
        if (p->product && i > 0) memcpy(old, x, (size_t) ne0 * sizeof(float)), at = x;
        e = s->view ? view_read(&k->c, s->t, s->view, 0, n, at) : checkpoint_read(&k->c, s->t, 0, n, at);
        for (int64_t j = 0; j < n && e == ERR_OK; j++) at[j] *= p->product && i > 0 ? old[j] : s->mul;
        at += n;
    }
    if (e == ERR_OK && (p->pairs || p->groups)) {
        memcpy(old, x, (size_t) ne0 * sizeof(float));
        for (int64_t j = 0; j < ne0; j++) x[j] = old[source_row(p, j, ne0)];
    }
    free(old);
    return e;
}

static enum err write_rows(const struct piece *p, float *x, int64_t n, char *raw, FILE *f, const char *tmp) {
    const int64_t ne0 = p->t->ne[0];
    for (int64_t i = 0; i < n * ne0 && p->op != OP_NONE; i++)
        x[i] = p->op == OP_PLUS ? x[i] + p->plus : p->op == OP_EXP ? expf(x[i]) : -expf(x[i]);
    if (p->t->type == GGML_TYPE_I32) {  // numbers of experts
        for (int64_t i = 0; i < n * ne0; i++) ((int32_t *) (void *) raw)[i] = (int32_t) x[i];
        const size_t n_raw = (size_t) (n * ne0) * sizeof(int32_t);
        return fwrite(raw, 1, n_raw, f) == n_raw ? ERR_OK : err_set(ERR_IO, "writing %s failed: %s", tmp, strerror(errno));
    }
    const size_t bytes = ggml_quantize_chunk(p->t->type, x, raw, 0, n, ne0, NULL);
    if (bytes != ggml_row_size(p->t->type, ne0) * (size_t) n)
        return err_set(ERR_FAILED, "'%s' cannot be written as %s: %s", p->name, ggml_type_name(p->t->type),
                       ggml_last_error());
    return fwrite(raw, 1, bytes, f) == bytes ? ERR_OK : err_set(ERR_IO, "writing %s failed: %s", tmp, strerror(errno));
}

static enum err write_segment(const struct convert *k, const struct piece *p, const struct segment *s, int64_t most,
                              float *x, char *raw, FILE *f, const char *tmp) {
    const int64_t ne0 = p->t->ne[0], n_rows = segment_count(s) / ne0;
    if (n_rows * ne0 != segment_count(s))
        return err_set(ERR_FORMAT, "'%s' does not hold whole rows of %" PRId64 " for '%s'", s->t->name, ne0, p->name);
    for (int64_t r = 0, n; r < n_rows; r += n) {
        n = n_rows - r < most ? n_rows - r : most;
        TRY(read_rows(k, p, s, r, n, n_rows, x));
        for (int64_t i = 0; i < n * ne0 && s->mul != 1.0f; i++) x[i] *= s->mul;
        TRY(write_rows(p, x, n, raw, f, tmp));
    }
    return ERR_OK;
}

static enum err write_piece(const struct convert *k, const struct piece *p, FILE *f, const char *tmp) {
    const int64_t ne0 = p->t->ne[0], all = ggml_nrows(p->t);
    if (ne0 == 0 || all == 0) return ERR_OK;
    int64_t most = ne0 >= PIECE_VALUES ? 1 : PIECE_VALUES / ne0;
    if (most > all) most = all;
    float *x = malloc((size_t) (most * ne0) * sizeof(float));
    char *raw = malloc(ggml_row_size(p->t->type, ne0) * (size_t) most);
    enum err e = x && raw ? ERR_OK : err_set(ERR_NOMEM, "no memory for rows of '%s'", p->name);
    if (e == ERR_OK && all == 1) {
        e = read_row(k, p, x);
        if (e == ERR_OK) e = write_rows(p, x, 1, raw, f, tmp);
    } else
        for (int i = 0; i < p->n_segments && e == ERR_OK; i++)
            e = write_segment(k, p, &p->segments[i], most, x, raw, f, tmp);
    free(x);
    free(raw);
    return e;
}

static enum err write_all(struct convert *k, FILE *f, const char *tmp) {
    for (int i = 0; i < k->n_pieces; i++) gguf_add_tensor(k->out, k->pieces[i].t);
    if (!gguf_write_to_file_ptr(k->out, f, true)) return ERR_IO;
    const size_t align = gguf_get_alignment(k->out);
    for (int i = 0; i < k->n_pieces; i++) {
        const struct piece *p = &k->pieces[i];
        TRY(write_piece(k, p, f, tmp));
        for (size_t pad = (align - ggml_nbytes(p->t) % align) % align; pad; pad--)
            if (fputc(0, f) == EOF) return err_set(ERR_IO, "writing %s failed: %s", tmp, strerror(errno));
        if (k->params->progress_callback &&
            !k->params->progress_callback((float) (i + 1) / (float) k->n_pieces, k->params->progress_callback_user_data))
            return err_set(ERR_ABORTED, "converting was cancelled");
    }
    return ERR_OK;
}

enum err convert_write_file(struct convert *k, const char *path) {
    char tmp[4200];
    if (snprintf(tmp, sizeof(tmp), "%s.part", path) >= (int) sizeof(tmp))
        return err_set(ERR_INVALID, "the path %s is too long", path);
    for (int i = 0; i < k->c.n_files; i++)
        if (file_is(k->c.files[i].fd, path))
            return err_set(ERR_INVALID, "%s is a file of the checkpoint; name another output", path);
    if (file_replaceable(path) != 0) return err_set(ERR_IO, "cannot write %s: %s", path, strerror(errno));
    FILE *f = fopen(tmp, "wb");
    if (!f) return err_set(ERR_IO, "cannot write %s: %s", tmp, strerror(errno));
    enum err e = write_all(k, f, tmp);
    if (fclose(f) != 0 && e == ERR_OK) e = err_set(ERR_IO, "writing %s failed: %s", tmp, strerror(errno));
    if (e == ERR_OK && file_rename(tmp, path) != 0)
        e = err_set(ERR_IO, "cannot rename %s to %s: %s", tmp, path, strerror(errno));
    if (e != ERR_OK) unlink(tmp);
    return e;
}
