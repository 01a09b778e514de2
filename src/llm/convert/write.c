// Writing the converted file: rows are read, put in order, encoded and written in pieces of a few MB, so that no tensor is ever whole in memory.
#include "base/file.h"
#include "convert/convert_int.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE_VALUES ((int64_t) 1 << 20)  // at most, unless one row is longer

// Within a head whose first n_rot dims turn: where the pair's member that goes to place i stands among the halves.
static int64_t half_place(const struct piece *p, int64_t i) {
    if (!p->pairs || i >= p->n_rot) return i;
    return i % 2 ? p->n_rot / 2 + i / 2 : i / 2;
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

// Rows [r0, r0 + n) of the n_rows that the file will have, from one tensor of the checkpoint.
static enum err read_rows(const struct convert *k, const struct piece *p, const struct ckpt_tensor *part, int64_t r0,
                          int64_t n, int64_t n_rows, float *x) {
    const int64_t ne0 = p->t->ne[0];
    if (p->transpose) {  // row r is column r of [ne0, n_rows]
        float *line = malloc((size_t) n * sizeof(float));
        if (!line) return err_set(ERR_NOMEM, "no memory for '%s'", p->name);
        enum err e = ERR_OK;
        for (int64_t c = 0; c < ne0 && e == ERR_OK; c++) {
            e = checkpoint_read(&k->c, part, c * n_rows + r0, n, line);
            for (int64_t r = 0; r < n && e == ERR_OK; r++) x[r * ne0 + c] = line[r];
        }
        free(line);
        return e;
    }
    for (int64_t r = 0; r < n;) {  // runs of rows that follow each other
        const int64_t from = source_row(p, r0 + r, n_rows);
        int64_t run = 1;
        while (r + run < n && source_row(p, r0 + r + run, n_rows) == from + run) run++;
        TRY(checkpoint_read(&k->c, part, from * ne0, run * ne0, x + r * ne0));
        r += run;
    }
    return ERR_OK;
}

static enum err write_rows(const struct convert *k, const struct piece *p, float *x, int64_t n, char *raw, FILE *f,
                           const char *tmp) {
    const int64_t ne0 = p->t->ne[0];
    for (int64_t i = 0; i < n * ne0 && p->plus_1; i++) x[i] += 1.0f;
    for (int64_t i = 0; i < n * ne0 && p->minus_exp; i++) x[i] = -expf(x[i]);
    const size_t bytes = ggml_quantize_chunk(p->t->type, x, raw, 0, n, ne0, NULL);
    if (bytes != ggml_row_size(p->t->type, ne0) * (size_t) n)
        return err_set(ERR_FAILED, "'%s' cannot be written as %s: %s", p->name, ggml_type_name(p->t->type),
                       ggml_last_error());
    (void) k;
    return fwrite(raw, 1, bytes, f) == bytes ? ERR_OK : err_set(ERR_IO, "writing %s failed: %s", tmp, strerror(errno));
}

static enum err write_piece(const struct convert *k, const struct piece *p, FILE *f, const char *tmp) {
    const int64_t ne0 = p->t->ne[0], per_part = p->parts ? ggml_nrows(p->t) / p->n_parts : 1;
    if (ne0 == 0 || per_part == 0) return ERR_OK;
    // biases are rows of one value each: their places change as rows do
    const bool column = p->parts && ggml_nrows(p->t) == 1 && (p->pairs || p->groups);
    const int64_t most = ne0 >= PIECE_VALUES ? 1 : PIECE_VALUES / ne0;
    float *x = malloc((size_t) ((most < per_part ? most : per_part) * ne0) * sizeof(float));
    char *raw = malloc(ggml_row_size(p->t->type, ne0) * (size_t) (most < per_part ? most : per_part));
    enum err e = x && raw ? ERR_OK : err_set(ERR_NOMEM, "no memory for rows of '%s'", p->name);
    for (int i = 0; i < (p->parts ? p->n_parts : 1) && e == ERR_OK; i++)
        for (int64_t r = 0, n; r < per_part && e == ERR_OK; r += n) {
            n = per_part - r < most ? per_part - r : most;
            if (!p->parts)
                memcpy(x, p->values, (size_t) ne0 * sizeof(float));
            else if (column)
                for (int64_t j = 0; j < ne0 && e == ERR_OK; j++)
                    e = checkpoint_read(&k->c, p->parts[i], source_row(p, j, ne0), 1, x + j);
            else
                e = read_rows(k, p, p->parts[i], r, n, per_part, x);
            if (e == ERR_OK) e = write_rows(k, p, x, n, raw, f, tmp);
        }
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
    FILE *f = fopen(tmp, "wb");
    if (!f) return err_set(ERR_IO, "cannot write %s: %s", tmp, strerror(errno));
    enum err e = write_all(k, f, tmp);
    if (fclose(f) != 0 && e == ERR_OK) e = err_set(ERR_IO, "writing %s failed: %s", tmp, strerror(errno));
    if (e == ERR_OK && file_rename(tmp, path) != 0)
        e = err_set(ERR_IO, "cannot rename %s to %s: %s", tmp, path, strerror(errno));
    if (e != ERR_OK) unlink(tmp);
    return e;
}
