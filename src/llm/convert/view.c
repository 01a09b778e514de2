// Views: parsing, and reading with as few and as long reads as the order allows.
#include "convert/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum err size_of(const char *text, size_t n, const struct hparams *hp, int il, int64_t *out) {
    char part[96];
    double v;
    snprintf(part, sizeof(part), "%.*s", (int) n, text);
    TRY(expr_eval(part, hp, il, &v));
    *out = (int64_t) v;
    return ERR_OK;
}

// "size" or "size[from:to]"
static enum err parse_axis(const char *text, const struct hparams *hp, int il, int64_t *size, int64_t *from, int64_t *to) {
    const size_t n = strcspn(text, "[");
    TRY(size_of(text, n, hp, il, size));
    *from = 0;
    *to = *size;
    if (!text[n]) return ERR_OK;
    const char *a = text + n + 1;
    const size_t n_a = strcspn(a, ":"), n_b = a[n_a] ? strcspn(a + n_a + 1, "]") : 0;
    TRY(size_of(a, n_a, hp, il, from));
    return size_of(a + n_a + 1, n_b, hp, il, to);
}

// Neighbours that lie together become one axis; axes of one value go.
static void merge(struct view *v) {
    int n = 0;
    for (int i = 0; i < v->n_axes; i++) {
        if (v->axis[i].n == 1) continue;
        if (n > 0 && v->axis[i].stride == v->axis[n - 1].stride * v->axis[n - 1].n)
            v->axis[n - 1].n *= v->axis[i].n;
        else
            v->axis[n++] = v->axis[i];
    }
    if (n == 0) v->axis[n++].n = 1, v->axis[0].stride = 1;
    v->n_axes = n;
}

static enum err parse_one(const char *text, const struct hparams *hp, int il, const struct ckpt_tensor *t, struct view *v) {
    char axes[256], part[128];
    int64_t offset = 0;
    const bool part_only = *text == '@';
    if (part_only) {
        const size_t n_offset = strcspn(text, ";");
        TRY(size_of(text + 1, n_offset - 1, hp, il, &offset));
        text += n_offset + (text[n_offset] != 0);
    }

    const size_t n_text = strcspn(text, ">");
    const char *order = text[n_text] ? text + n_text + 1 : "";
    while (*order == ' ') order++;
    snprintf(axes, sizeof(axes), "%.*s", (int) n_text, text);
    int64_t size[VIEW_MAX_AXES], from[VIEW_MAX_AXES], to[VIEW_MAX_AXES], stride = 1, all = 1;
    int n = 0;
    *v = (struct view){.start = offset, .total = 1};
    for (; expr_part(axes, n, part, sizeof(part)); n++) {
        if (n == VIEW_MAX_AXES) return err_set(ERR_FAILED, "view '%s' has more than %d axes", text, VIEW_MAX_AXES);
        TRY(parse_axis(part, hp, il, &size[n], &from[n], &to[n]));
        if (size[n] < 1 || from[n] < 0 || to[n] <= from[n] || to[n] > size[n])
            return err_set(ERR_FORMAT,
                           "'%s' cannot be cut as %s: axis %d has %" PRId64 " values, of which %" PRId64 " to %" PRId64
                           " are wanted",
                           t->name, text, n, size[n], from[n], to[n]);
        all *= size[n];
    }
    if (part_only ? offset + all > ckpt_tensor_count(t) : all != ckpt_tensor_count(t))
        return err_set(ERR_FORMAT, "'%s' has %" PRId64 " values, but %s are %" PRId64, t->name, ckpt_tensor_count(t), text,
                       all);
    int64_t strides[VIEW_MAX_AXES];
    for (int i = n - 1; i >= 0; i--) {
        strides[i] = stride;
        v->start += from[i] * stride;
        stride *= size[i];
    }
    for (int i = 0; i < n; i++) {
        const int at = *order ? order[n - 1 - i] - '0' : n - 1 - i;
        if (at < 0 || at >= n) return err_set(ERR_FAILED, "view '%s' names an axis that it lacks", text);
        v->axis[i].n = to[at] - from[at];
        v->axis[i].stride = strides[at];
        v->total *= v->axis[i].n;
    }
    v->n_axes = n;
    merge(v);
    return ERR_OK;
}

// Whether the sizes of a view are the tensor's own, side by side.
static bool fits(const char *text, const struct hparams *hp, int il, const struct ckpt_tensor *t) {
    char axes[256], part[128];
    int64_t size, from, to;
    snprintf(axes, sizeof(axes), "%.*s", (int) strcspn(text, ">"), text);
    int n = 0;
    for (; expr_part(axes, n, part, sizeof(part)); n++)
        if (n >= t->n_dims || parse_axis(part, hp, il, &size, &from, &to) != ERR_OK || size != t->shape[n]) return false;
    return n == t->n_dims;
}

enum err view_parse(const char *text, const struct hparams *hp, int il, const struct ckpt_tensor *t, struct view *v) {
    char one[256];
    for (;;) {  // the last one is taken as it is
        const size_t n = strcspn(text, "~");
        snprintf(one, sizeof(one), "%.*s", (int) n, text);
        if (!text[n] || fits(one, hp, il, t)) return parse_one(one, hp, il, t, v);
        text += n + 1;
    }
}

struct view view_transposed(const struct ckpt_tensor *t) {
    struct view v = {.n_axes = 2, .total = t->shape[0] * t->shape[1]};
    v.axis[0].n = t->shape[0], v.axis[0].stride = t->shape[1];
    v.axis[1].n = t->shape[1], v.axis[1].stride = 1;
    merge(&v);
    return v;
}

// n values from `from` on, every stride-th.
static enum err read_strided(const struct checkpoint *c, const struct ckpt_tensor *t, int64_t from, int64_t n,
                             int64_t stride, float *tmp, float *out, int64_t step) {
    if (stride == 1 && step == 1) return checkpoint_read(c, t, from, n, out);
    TRY(checkpoint_read(c, t, from, (n - 1) * stride + 1, tmp));
    for (int64_t i = 0; i < n; i++) out[i * step] = tmp[i * stride];
    return ERR_OK;
}

// Where value i of axes [0, n) lies.
static int64_t place(const struct view *v, int n, int64_t i) {
    int64_t at = 0;
    for (int a = 0; a < n; a++, i /= v->axis[a - 1].n) at += i % v->axis[a].n * v->axis[a].stride;
    return at;
}

enum err view_read(const struct checkpoint *c, const struct ckpt_tensor *t, const struct view *v, int64_t i0, int64_t n,
                   float *out) {
    int fine = 0;  // the axis whose values lie closest together: reads go along it
    int64_t below = 1;
    for (int a = 1; a < v->n_axes; a++)
        if (v->axis[a].stride > 0 && v->axis[a].stride < v->axis[fine].stride) fine = a;  // 0: the same values again
    for (int a = 0; a < fine; a++) below *= v->axis[a].n;
    const int64_t run = v->axis[fine].n, stride = v->axis[fine].stride;
    float *tmp = malloc((size_t) ((run - 1) * stride + 1) * sizeof(*tmp));
    if (!tmp) return err_set(ERR_NOMEM, "no memory to read '%s'", t->name);
    enum err e = ERR_OK;
    for (int64_t i = i0; i < i0 + n && e == ERR_OK;) {
        const int64_t d = i / below % run, above = i / below / run, in = i % below;
        // a block: digits [d, d1) of the fine axis with all values of the axes below; what is cut goes one by one
        int64_t whole = in == 0 ? (i0 + n - i) / below : 0;
        if (whole > run - d) whole = run - d;
        int64_t base = v->start;
        for (int64_t a = fine + 1, r = above; a < v->n_axes; r /= v->axis[a].n, a++)
            base += r % v->axis[a].n * v->axis[a].stride;
        if (whole == 0) {
            e = checkpoint_read(c, t, base + d * stride + place(v, fine, in), 1, out + (i - i0));
            i++;
            continue;
        }
        for (int64_t b = 0; b < below && e == ERR_OK; b++)
            e = read_strided(c, t, base + d * stride + place(v, fine, b), whole, stride, tmp, out + (i - i0) + b, below);
        i += whole * below;
    }
    free(tmp);
    return e;
}
