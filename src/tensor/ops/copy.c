// Copies between tensors of any types, shapes and layouts: rows by memcpy, transposed matrices by tiles, conversions by pieces of
// rows through floats (integers of 32 and 64 bits and doubles among each other exactly). See copy.h; the operations are in cpy.c.
#include "ops/copy.h"
#include "ops/row.h"

#define PIECE 8192  // elements a thread takes at a time; a multiple of every block size

enum err copy_check(const char *what, const struct ggml_tensor *src, const struct ggml_tensor *dst) {
    const struct type *a = type_get(src->type), *b = type_get(dst->type);
    if (!a || !b) return err_set(ERR_INVALID, "%s: unknown type %d", what, (int) (a ? dst->type : src->type));
    if (ggml_nelements(src) != ggml_nelements(dst))
        return err_set(ERR_INVALID, "%s: " SHAPE_FMT " has not as many elements as " SHAPE_FMT, what, SHAPE_ARG(src),
                       SHAPE_ARG(dst));
    if ((a->block > 1 && src->nb[0] != a->size) || (b->block > 1 && dst->nb[0] != b->size))
        return err_set(ERR_UNSUPPORTED, "%s: the rows of a quantized tensor (%s to %s) are permuted", what, a->name,
                       b->name);
    if (a != b && (!a->decode || !b->encode))
        return err_set(ERR_UNSUPPORTED, "%s: no conversion from %s to %s", what, a->name, b->name);
    return ERR_OK;
}

int copy_threads(const struct ggml_tensor *t, int n_threads) { return row_threads(ggml_nelements(t), 16384, n_threads); }

// ---- the same type: bytes -----------------------------------------------------------------------------------------------

void copy_elements(char *d, size_t ds, const char *s, size_t ss, size_t size, int64_t n) {
    if (ds == size && ss == size) {
        if (d != s && n > 0) memcpy(d, s, (size_t) n * size);
        return;
    }
    switch (size) {
        case 1:
            for (int64_t i = 0; i < n; i++) d[(size_t) i * ds] = s[(size_t) i * ss];
            return;
        case 2:
            for (int64_t i = 0; i < n; i++) memcpy(d + (size_t) i * ds, s + (size_t) i * ss, 2);
            return;
        case 4:
            for (int64_t i = 0; i < n; i++) memcpy(d + (size_t) i * ds, s + (size_t) i * ss, 4);
            return;
        default:
            for (int64_t i = 0; i < n; i++) memcpy(d + (size_t) i * ds, s + (size_t) i * ss, size);
    }
}

// A shape in units of blocks, so that quantized types are copied like any other.
struct grid {
    char *data;
    int64_t ne[4];
    size_t nb[4];
};

static struct grid grid_of(const struct ggml_tensor *t, int64_t block) {
    struct grid g = {.data = t->data};
    for (int d = 0; d < 4; d++) g.ne[d] = t->ne[d], g.nb[d] = t->nb[d];
    g.ne[0] /= block;
    return g;
}

static char *grid_at(const struct grid *g, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    return g->data + (size_t) i0 * g->nb[0] + (size_t) i1 * g->nb[1] + (size_t) i2 * g->nb[2] + (size_t) i3 * g->nb[3];
}

static void copy_bytes(struct task *k, char *d, const char *s, size_t bytes) {
    if (d == s) return;
    int64_t i0, i1;
    task_range(k, (int64_t) ((bytes + 4095) / 4096), &i0, &i1);
    const size_t from = (size_t) i0 * 4096, to = (size_t) i1 * 4096 < bytes ? (size_t) i1 * 4096 : bytes;
    if (from < to) memcpy(d + from, s + from, to - from);
}

static void copy_rows(struct task *k, const struct grid *d, const struct grid *s, size_t size) {
    int64_t r0, r1;
    task_range(k, d->ne[1] * d->ne[2] * d->ne[3], &r0, &r1);
    int64_t i1 = r0 % d->ne[1], i2 = r0 / d->ne[1] % d->ne[2], i3 = r0 / d->ne[1] / d->ne[2];
    for (int64_t r = r0; r < r1; r++) {
        copy_elements(grid_at(d, 0, i1, i2, i3), d->nb[0], grid_at(s, 0, i1, i2, i3), s->nb[0], size, d->ne[0]);
        row_step(d->ne, &i1, &i2, &i3);
    }
}

// A tile goes through a buffer, so that each line on either side is touched once and whole (rows that are a power of two apart share a
// few places in the cache and would push each other out), in runs that are long enough for the processor to fetch ahead.
#define TILE(size) ((size) == 8 ? 32 : 64)
#define TILE_FN(bits)                                                                                                       \
    static void tile_##bits(char *d, size_t ds, const char *s, size_t ss, int64_t nd, int64_t ns) {                         \
        enum { N = TILE(bits / 8) };                                                                                        \
        alignas(64) uint##bits##_t buf[N][N], line[N];                                                                      \
        for (int64_t i = 0; i < nd; i++) memcpy(buf[i], s + (size_t) i * ss, (size_t) ns * sizeof line[0]);                 \
        for (int64_t j = 0; j < ns; j++) {                                                                                  \
            for (int64_t i = 0; i < nd; i++) line[i] = buf[i][j];                                                           \
            memcpy(d + (size_t) j * ds, line, (size_t) nd * sizeof line[0]);                                                \
        }                                                                                                                   \
    }
TILE_FN(8)
TILE_FN(16)
TILE_FN(32)
TILE_FN(64)

// d: ns lines of nd elements, ds bytes apart, from nd lines of ns elements at s, ss bytes apart; both up to TILE(size).
static void tile(size_t size, char *d, size_t ds, const char *s, size_t ss, int64_t nd, int64_t ns) {
    if (size == 1)
        tile_8(d, ds, s, ss, nd, ns);
    else if (size == 2)
        tile_16(d, ds, s, ss, nd, ns);
    else if (size == 4)
        tile_32(d, ds, s, ss, nd, ns);
    else
        tile_64(d, ds, s, ss, nd, ns);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Dimension fs is dense in the source and fd in the result, one of them 0.
static void copy_tiles(struct task *k, const struct grid *d, const struct grid *s, size_t size, int fs, int fd) {
    const int x = fs + fd, y = x == 1 ? 2 : 1, z = x == 3 ? 2 : 3;  // x: the one that is not 0; y, z: the two others
    const int64_t side = TILE(size), n_tile = (d->ne[x] + side - 1) / side;
    int64_t u0, u1;
    task_range(k, n_tile * d->ne[y] * d->ne[z], &u0, &u1);
    for (int64_t u = u0; u < u1; u++) {
        int64_t i[4] = {0};
        i[x] = u % n_tile * side;
        i[y] = u / n_tile % d->ne[y];
        i[z] = u / n_tile / d->ne[y];
        const int64_t nx = least(side, d->ne[x] - i[x]);
        for (i[0] = 0; i[0] < d->ne[0]; i[0] += side) {
            const int64_t n0 = least(side, d->ne[0] - i[0]);
            tile(size, grid_at(d, i[0], i[1], i[2], i[3]), d->nb[fs], grid_at(s, i[0], i[1], i[2], i[3]), s->nb[fd],
                 fd == 0 ? n0 : nx, fs == 0 ? n0 : nx);
        }
    }
}

// Shapes differ: runs that are within one row on both sides.
static void copy_flat(struct task *k, const struct grid *d, const struct grid *s, size_t size) {
    const int64_t total = d->ne[0] * d->ne[1] * d->ne[2] * d->ne[3];
    int64_t p0, p1;
    task_range(k, (total + PIECE - 1) / PIECE, &p0, &p1);
    const int64_t end = p1 * PIECE < total ? p1 * PIECE : total;
    for (int64_t e = p0 * PIECE; e < end;) {
        const int64_t dr = e / d->ne[0], sr = e / s->ne[0], d0 = e % d->ne[0], s0 = e % s->ne[0];
        int64_t n = end - e;
        if (n > d->ne[0] - d0) n = d->ne[0] - d0;
        if (n > s->ne[0] - s0) n = s->ne[0] - s0;
        copy_elements(grid_at(d, d0, dr % d->ne[1], dr / d->ne[1] % d->ne[2], dr / d->ne[1] / d->ne[2]), d->nb[0],
                      grid_at(s, s0, sr % s->ne[1], sr / s->ne[1] % s->ne[2], sr / s->ne[1] / s->ne[2]), s->nb[0], size, n);
        e += n;
    }
}

static void copy_same_type(struct task *k, const struct ggml_tensor *src, const struct ggml_tensor *dst) {
    const struct type *ty = type_get(src->type);
    const struct grid d = grid_of(dst, ty->block), s = grid_of(src, ty->block);
    if (ggml_is_contiguous(src) && ggml_is_contiguous(dst)) {
        copy_bytes(k, d.data, s.data, ggml_nbytes(dst));
        return;
    }
    if (!ggml_are_same_shape(src, dst)) {
        copy_flat(k, &d, &s, ty->size);
        return;
    }
    for (int x = 1; x < 4 && (s.nb[0] != ty->size) != (d.nb[0] != ty->size); x++) {
        const size_t other = s.nb[0] == ty->size ? d.nb[x] : s.nb[x];
        if (d.ne[x] >= 4 && d.ne[0] >= 4 && other == ty->size && ty->block == 1) {
            copy_tiles(k, &d, &s, ty->size, s.nb[0] == ty->size ? 0 : x, s.nb[0] == ty->size ? x : 0);
            return;
        }
    }
    copy_rows(k, &d, &s, ty->size);
}

// ---- different types: values --------------------------------------------------------------------------------------------

static bool wide(enum ggml_type t) { return t == GGML_TYPE_I32 || t == GGML_TYPE_I64 || t == GGML_TYPE_F64; }

static int64_t double_to_int(double d) {
    if (d >= 9223372036854775808.0) return INT64_MAX;
    return d > -9223372036854775808.0 ? (int64_t) d : d != d ? 0 : INT64_MIN;
}

// One value between I32, I64 and F64; saturates as the types' own encoders do.
static void convert_wide(enum ggml_type from, const char *s, enum ggml_type to, char *d) {
    int64_t i = 0;
    double f = 0.0;
    int32_t w;
    if (from == GGML_TYPE_F64) {
        memcpy(&f, s, 8);
        i = double_to_int(f);
    } else if (from == GGML_TYPE_I64) {
        memcpy(&i, s, 8);
        f = (double) i;
    } else {
        memcpy(&w, s, 4);
        i = w;
        f = (double) w;
    }
    if (to == GGML_TYPE_F64)
        memcpy(d, &f, 8);
    else if (to == GGML_TYPE_I64)
        memcpy(d, &i, 8);
    else {
        w = i > INT32_MAX ? INT32_MAX : i < INT32_MIN ? INT32_MIN : (int32_t) i;
        memcpy(d, &w, 4);
    }
}

static char *element(const struct ggml_tensor *t, int64_t e) {
    return row_of(t, e / t->ne[0]) + (size_t) (e % t->ne[0]) * t->nb[0];
}

static void convert_each(struct task *k, const struct ggml_tensor *src, const struct ggml_tensor *dst) {
    int64_t e0, e1;
    task_range(k, ggml_nelements(dst), &e0, &e1);
    for (int64_t e = e0; e < e1; e++) convert_wide(src->type, element(src, e), dst->type, element(dst, e));
}

// Elements e .. e + n of a row: decoded straight into a row of floats, encoded straight from one, else through buf.
void copy_piece(const struct ggml_tensor *src, const char *s, const struct ggml_tensor *dst, char *d, int64_t e, int64_t n) {
    alignas(64) float buf[ROW_CHUNK];
    for (int64_t end = e + n; e < end; e += ROW_CHUNK) {
        const int64_t m = end - e < ROW_CHUNK ? end - e : ROW_CHUNK;
        row_write(dst, d, e, m, row_read(src, s, e, m, row_target(dst, d, e, buf)));
    }
}

static void convert_rows(struct task *k, const struct ggml_tensor *src, const struct ggml_tensor *dst) {
    const int64_t per_row = (dst->ne[0] + PIECE - 1) / PIECE;
    int64_t u0, u1;
    task_range(k, ggml_nrows(dst) * per_row, &u0, &u1);
    for (int64_t u = u0; u < u1; u++) {
        const int64_t r = u / per_row, e = u % per_row * PIECE, left = dst->ne[0] - e;
        copy_piece(src, row_of(src, r), dst, row_of(dst, r), e, left < PIECE ? left : PIECE);
    }
}

// Shapes differ: pieces of ROW_CHUNK elements are gathered from the rows of src and spread over those of dst.
static void convert_flat(struct task *k, const struct ggml_tensor *src, const struct ggml_tensor *dst) {
    alignas(64) float buf[ROW_CHUNK];
    const int64_t total = ggml_nelements(dst);
    int64_t p0, p1;
    task_range(k, (total + ROW_CHUNK - 1) / ROW_CHUNK, &p0, &p1);
    for (int64_t p = p0; p < p1; p++) {
        const int64_t e0 = p * ROW_CHUNK, n = total - e0 < ROW_CHUNK ? total - e0 : ROW_CHUNK;
        for (int64_t i = 0, m; i < n; i += m) {
            const int64_t at = (e0 + i) % src->ne[0];
            m = src->ne[0] - at < n - i ? src->ne[0] - at : n - i;
            const float *x = row_read(src, row_of(src, (e0 + i) / src->ne[0]), at, m, buf + i);
            if (x != buf + i) memcpy(buf + i, x, (size_t) m * sizeof(float));
        }
        for (int64_t i = 0, m; i < n; i += m) {
            const int64_t at = (e0 + i) % dst->ne[0];
            m = dst->ne[0] - at < n - i ? dst->ne[0] - at : n - i;
            row_write(dst, row_of(dst, (e0 + i) / dst->ne[0]), at, m, buf + i);
        }
    }
}

// What lies in one piece as a single row. The strides of a dimension of one element say nothing, dimension 0's included.
static struct ggml_tensor as_one_row(const struct ggml_tensor *t) {
    struct ggml_tensor r = *t;
    r.nb[0] = type_get(t->type)->size;
    r.ne[0] = ggml_nelements(t);
    r.ne[1] = r.ne[2] = r.ne[3] = 1;
    return r;
}

void copy_run(struct task *k, const struct ggml_tensor *src, const struct ggml_tensor *dst) {
    if (ggml_is_empty(dst)) return;
    if (src->type == dst->type) {
        copy_same_type(k, src, dst);
    } else if (wide(src->type) && wide(dst->type)) {
        convert_each(k, src, dst);
    } else if (ggml_is_contiguous(src) && ggml_is_contiguous(dst)) {
        const struct ggml_tensor s = as_one_row(src), d = as_one_row(dst);
        convert_rows(k, &s, &d);
    } else if (ggml_are_same_shape(src, dst)) {
        convert_rows(k, src, dst);
    } else {
        convert_flat(k, src, dst);
    }
}
