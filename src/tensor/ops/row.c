// Rows as floats, element-wise maps over them, and shared checks (see row.h).
#include "ops/row.h"
#include "type/element.h"
#include "base/half.h"

// ---- reading and writing ------------------------------------------------------------------------------------------

// Elements of `size` bytes that lie `stride` bytes apart, gathered to dst, or scattered from src.
static void gather(char *dst, const char *src, size_t stride, size_t size, int64_t n) {
    for (int64_t i = 0; i < n; i++) memcpy(dst + (size_t) i * size, src + (size_t) i * stride, size);
}
static void scatter(char *dst, size_t stride, const char *src, size_t size, int64_t n) {
    for (int64_t i = 0; i < n; i++) memcpy(dst + (size_t) i * stride, src + (size_t) i * size, size);
}

static void decode_strided(const struct type *ty, const char *p, size_t stride, int64_t n, float *buf) {
    alignas(64) char tmp[8 * 256];
    for (int64_t i = 0; i < n; i += 256) {
        const int64_t m = n - i < 256 ? n - i : 256;
        gather(tmp, p + (size_t) i * stride, stride, ty->size, m);
        ty->decode(tmp, buf + i, m);
    }
}

static void copy_floats(const char *p, size_t stride, int64_t n, float *buf) {
    for (int64_t i = 0; i < n; i++) memcpy(buf + i, p + (size_t) i * stride, sizeof(float));
}

const float *row_read(const struct ggml_tensor *t, const char *row, int64_t e0, int64_t n, float *buf) {
    if (t->type == GGML_TYPE_F32) {
        if (t->nb[0] == sizeof(float)) return (const float *) (const void *) row + e0;
        copy_floats(row + (size_t) e0 * t->nb[0], t->nb[0], n, buf);
        return buf;
    }
    const struct type *ty = type_get(t->type);
    const char *p = row + (size_t) (e0 / ty->block) * t->nb[0];
    if (t->nb[0] == ty->size)
        ty->decode(p, buf, n);
    else
        decode_strided(ty, p, t->nb[0], n, buf);
    return buf;
}

void row_fill(const struct ggml_tensor *t, const char *row, int64_t e0, int64_t n, float *buf) {
    const int64_t ne0 = t->ne[0];
    if (ne0 == 1) {
        float one;
        const float v = *row_read(t, row, 0, 1, &one);
        for (int64_t i = 0; i < n; i++) buf[i] = v;
        return;
    }
    for (int64_t i = 0, e = e0 % ne0; i < n; e = 0) {
        const int64_t m = ne0 - e < n - i ? ne0 - e : n - i;
        const float *x = row_read(t, row, e, m, buf + i);
        if (x != buf + i) memcpy(buf + i, x, (size_t) m * sizeof(float));
        i += m;
    }
}

void row_write(const struct ggml_tensor *t, char *row, int64_t e0, int64_t n, const float *y) {
    const struct type *ty = type_get(t->type);
    char *p = row + (size_t) (e0 / ty->block) * t->nb[0];
    if (t->nb[0] == ty->size) {
        if (t->type != GGML_TYPE_F32)
            ty->encode(y, p, n);
        else if ((const float *) (const void *) p != y)
            memcpy(p, y, (size_t) n * sizeof(float));
        return;
    }
    alignas(64) char tmp[8 * 256];
    for (int64_t i = 0; i < n; i += 256) {
        const int64_t m = n - i < 256 ? n - i : 256;
        ty->encode(y + i, tmp, m);
        scatter(p + (size_t) i * t->nb[0], t->nb[0], tmp, ty->size, m);
    }
}

double row_get(const struct ggml_tensor *t, const char *p) { return type_load(t->type, p); }

// ---- element-wise maps --------------------------------------------------------------------------------------------

#define MAX_SRC 4
#define UNIT 4096  // elements that one thread takes at a time

struct map {
    const struct ggml_tensor *t;
    const struct ggml_tensor *const *src;
    int n_src;
    row_fn f;
    const void *ctx;
    bool direct;  // all rows direct and as long as t's: no buffers
};

static void map_piece(const struct map *m, char *row, const char *const *rows, int64_t e0, int64_t n) {
    const float *x[MAX_SRC];
    if (m->direct) {
        for (int i = 0; i < m->n_src; i++) x[i] = (const float *) (const void *) rows[i] + e0;
        m->f(n, (float *) (void *) row + e0, x, m->ctx);
        return;
    }
    alignas(64) float buf[MAX_SRC][ROW_CHUNK];
    alignas(64) float out[ROW_CHUNK];
    for (int64_t e = e0; e < e0 + n; e += ROW_CHUNK) {
        const int64_t c = e0 + n - e < ROW_CHUNK ? e0 + n - e : ROW_CHUNK;
        for (int i = 0; i < m->n_src; i++) {
            x[i] = buf[i];
            if (m->src[i]->ne[0] == m->t->ne[0])
                x[i] = row_read(m->src[i], rows[i], e, c, buf[i]);
            else
                row_fill(m->src[i], rows[i], e, c, buf[i]);
        }
        float *y = row_target(m->t, row, e, out);
        m->f(c, y, x, m->ctx);
        row_write(m->t, row, e, c, y);
    }
}

static const char *src_row(const struct ggml_tensor *s, const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3) {
    if (s->ne[1] != t->ne[1]) i1 = s->ne[1] == 1 ? 0 : i1 % s->ne[1];
    if (s->ne[2] != t->ne[2]) i2 = s->ne[2] == 1 ? 0 : i2 % s->ne[2];
    if (s->ne[3] != t->ne[3]) i3 = s->ne[3] == 1 ? 0 : i3 % s->ne[3];
    return row_at(s, i1, i2, i3);
}

// Everything in one piece of memory: one long row of floats.
static void map_flat(struct task *k, const struct map *m) {
    const char *rows[MAX_SRC];
    for (int i = 0; i < m->n_src; i++) rows[i] = m->src[i]->data;
    const int64_t n = ggml_nelements(m->t);
    int64_t u0, u1;
    task_range(k, (n + UNIT - 1) / UNIT, &u0, &u1);
    if (u0 < u1) map_piece(m, m->t->data, rows, u0 * UNIT, (u1 * UNIT < n ? u1 * UNIT : n) - u0 * UNIT);
}

void row_map(struct task *k, const struct ggml_tensor *t, const struct ggml_tensor *const *src, int n_src, row_fn f,
             const void *ctx) {
    struct map m = {.t = t, .src = src, .n_src = n_src, .f = f, .ctx = ctx, .direct = row_direct(t)};
    bool flat = ggml_is_contiguous(t);
    for (int i = 0; i < n_src; i++) {
        m.direct = m.direct && row_direct(src[i]) && src[i]->ne[0] == t->ne[0];
        flat = flat && ggml_is_contiguous(src[i]) && ggml_are_same_shape(src[i], t);
    }
    if (flat && m.direct) {
        map_flat(k, &m);
        return;
    }
    const int64_t per_row = (t->ne[0] + UNIT - 1) / UNIT;
    int64_t u0, u1;
    task_range(k, ggml_nrows(t) * per_row, &u0, &u1);
    int64_t i1, i2, i3;
    if (u0 < u1) row_split(t, u0 / per_row, &i1, &i2, &i3);
    for (int64_t u = u0; u < u1; row_step(t->ne, &i1, &i2, &i3)) {
        const char *rows[MAX_SRC];
        for (int i = 0; i < n_src; i++) rows[i] = src_row(src[i], t, i1, i2, i3);
        const int64_t c = per_row == 1 ? 0 : u % per_row, c1 = c + (u1 - u) < per_row ? c + (u1 - u) : per_row;
        const int64_t end = c1 * UNIT < t->ne[0] ? c1 * UNIT : t->ne[0];
        map_piece(&m, row_at(t, i1, i2, i3), rows, c * UNIT, end - c * UNIT);
        u += c1 - c;
    }
}

int row_threads_map(const struct ggml_tensor *t, int n_threads) { return row_threads(ggml_nelements(t), 16384, n_threads); }
int row_threads_func(const struct ggml_tensor *t, int n_threads) { return row_threads(ggml_nelements(t), 4096, n_threads); }

// ---- checks -------------------------------------------------------------------------------------------------------

const char *op_what(const struct ggml_tensor *t) {
    return t->op == GGML_OP_UNARY || t->op == GGML_OP_GLU ? ggml_op_desc(t) : ggml_op_name(t->op);
}

enum err check_rows(const struct ggml_tensor *t, int i) {
    const struct ggml_tensor *s = t->src[i];
    const struct type *ty = type_get(s->type);
    if (!ty) return err_set(ERR_INVALID, "%s: source %d has no known type (%d)", op_what(t), i, (int) s->type);
    if (ty->block > 1 && s->nb[0] != ty->size)
        return err_set(ERR_UNSUPPORTED,
                       "%s: source %d is %s and its rows are permuted; make it contiguous before quantizing", op_what(t), i,
                       ty->name);
    return ERR_OK;
}

enum err check_float(const struct ggml_tensor *t, int i) {
    const enum ggml_type type = t->src[i]->type;
    if (type != GGML_TYPE_F32 && type != GGML_TYPE_F16 && type != GGML_TYPE_BF16)
        return err_set(ERR_UNSUPPORTED, "%s: source %d is %s; it must be F32, F16 or BF16, cast it first", op_what(t), i,
                       ggml_type_name(type));
    return ERR_OK;
}

enum err check_real(const struct ggml_tensor *t, int i) {
    return ggml_is_quantized(t->src[i]->type) ? check_rows(t, i) : check_float(t, i);
}

enum err check_type(const struct ggml_tensor *t, int i, enum ggml_type type) {
    if (t->src[i]->type != type)
        return err_set(ERR_INVALID, "%s: source %d is %s, it must be %s", op_what(t), i, ggml_type_name(t->src[i]->type),
                       ggml_type_name(type));
    return ERR_OK;
}

enum err check_contiguous(const struct ggml_tensor *t, int i) {
    if (!ggml_is_contiguous(t->src[i]))
        return err_set(ERR_UNSUPPORTED, "%s: source %d " SHAPE_FMT " is not contiguous; use ggml_cont on it", op_what(t), i,
                       SHAPE_ARG(t->src[i]));
    return ERR_OK;
}

enum err check_same_shape(const struct ggml_tensor *t, int i, int j) {
    if (!ggml_are_same_shape(t->src[i], t->src[j]))
        return err_set(ERR_INVALID, "%s: shapes " SHAPE_FMT " and " SHAPE_FMT " differ", op_what(t), SHAPE_ARG(t->src[i]),
                       SHAPE_ARG(t->src[j]));
    return ERR_OK;
}

enum err check_repeats(const struct ggml_tensor *t, int i, int j) {
    if (!ggml_can_repeat(t->src[i], t->src[j]))
        return err_set(ERR_INVALID,
                       "%s: " SHAPE_FMT " cannot be repeated to " SHAPE_FMT "; each size must divide the other's",
                       op_what(t), SHAPE_ARG(t->src[i]), SHAPE_ARG(t->src[j]));
    return ERR_OK;
}

enum err check_size(const int64_t ne[4]) {
    int64_t n = 1;
    for (int d = 0; d < 4; d++) {
        if (ne[d] < 0)
            return err_set(ERR_INVALID, "the result's size %lld in dimension %d is negative", (long long) ne[d], d);
        if (__builtin_mul_overflow(n, ne[d] ? ne[d] : 1, &n) || n > INT64_MAX / 8)
            return err_set(ERR_INVALID, "the result's shape [%lld, %lld, %lld, %lld] is too large", (long long) ne[0],
                           (long long) ne[1], (long long) ne[2], (long long) ne[3]);
    }
    return ERR_OK;
}
