// 8-bit floats with scales per block of rows and columns (DeepSeek-V3) or per row or tensor, and MXFP4: 16 bytes with 32 values of 4 bits, a
// power of two for them in another tensor (gpt-oss, Kimi K3, DeepSeek-V4). Sources: OCP 8-bit Floating Point Specification 1.0, OCP Microscaling Formats 1.0.
#include "convert/packed.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// The scales of the tensor read last: one tensor's are small (a float per 16,384 values), all tensors' are not.
struct scale_cache {
    const struct ckpt_tensor *of;
    float *values;
};

static struct ckpt_tensor *beside(const struct checkpoint *c, const struct ckpt_tensor *t, const char *suffix) {
    char name[512];
    const int n = snprintf(name, sizeof(name), "%s%s", t->name, suffix);
    return n > 0 && n < (int) sizeof(name) ? checkpoint_find(c, name) : NULL;
}

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), k = strlen(end);
    return n > k && strcmp(text + n - k, end) == 0;
}

static enum err bad_scales(const struct ckpt_tensor *s, const struct ckpt_tensor *t) {
    return err_set(ERR_UNSUPPORTED, "the scales '%s' of '%s' are of no known form", s->name, t->name);
}

// The scales of "a.weight": "a.weight_scale_inv", "a.weight_scale", or "a.scale".
static struct ckpt_tensor *scales_of(const struct checkpoint *c, const struct ckpt_tensor *t) {
    char name[512];
    struct ckpt_tensor *s = beside(c, t, "_scale_inv");
    if (!s) s = beside(c, t, "_scale");
    if (s || !ends_with(t->name, ".weight")) return s;
    snprintf(name, sizeof(name), "%.*s.scale", (int) (strlen(t->name) - strlen(".weight")), t->name);
    return checkpoint_find(c, name);
}

static enum err join_float8(struct checkpoint *c, struct ckpt_tensor *t) {
    struct ckpt_tensor *s = scales_of(c, t);
    if (!s) return ERR_OK;
    if (t->n_dims != 2 || s->n_dims > 2 || (s->kind != CKPT_PLAIN && s->kind != CKPT_E8M0)) return bad_scales(s, t);
    s->used = true;
    t->i_scale = (int64_t) (s - c->tensors);
    return ERR_OK;
}

// DeepSeek-V4: "a.weight" [rows, n / 2] of bytes and "a.scale" [rows, n / 32], which become one tensor in place.
static enum err join_bytes(struct checkpoint *c, struct ckpt_tensor *t) {
    struct ckpt_tensor *s = scales_of(c, t);
    if (!s) return ERR_OK;
    if (t->n_dims != 2 || s->n_dims != 2 || s->kind != CKPT_E8M0 || s->shape[0] != t->shape[0] ||
        s->shape[1] * 16 != t->shape[1])
        return bad_scales(s, t);
    s->used = true;
    t->kind = CKPT_MXFP4;
    t->shape[1] = s->shape[1] * 32;
    t->i_scale = (int64_t) (s - c->tensors);
    return ERR_OK;
}

// Published by their blocks (gpt-oss: "_blocks" [..., n / 32, 16] and "_scales" [..., n / 32]), or as compressed-tensors has them (Kimi K3:
// "_packed" [rows, n / 2] and "_scale" [rows, n / 32]), whose tensor goes by its usual name.
static enum err join_mxfp4(struct checkpoint *c, size_t i_blocks) {
    struct ckpt_tensor *b = &c->tensors[i_blocks];
    const bool rows = ends_with(b->name, "_packed");
    const size_t n = strlen(b->name) - strlen(rows ? "_packed" : "_blocks");
    char name[512];
    snprintf(name, sizeof(name), "%.*s_scale%s", (int) n, b->name, rows ? "" : "s");
    struct ckpt_tensor *s = checkpoint_find(c, name);
    if (!s || s->type != GGML_TYPE_I8 || (s->kind != CKPT_PLAIN && s->kind != CKPT_E8M0)) return ERR_OK;
    bool fits = rows ? s->n_dims == 2 && b->n_dims == 2 && s->shape[1] * 16 == b->shape[1]
                     : b->n_dims >= 2 && s->n_dims == b->n_dims - 1 && b->shape[b->n_dims - 1] == 16;
    for (int i = 0; fits && i < s->n_dims - rows; i++) fits = s->shape[i] == b->shape[i];
    if (!fits) return err_set(ERR_FORMAT, "'%s' and '%s' don't belong together by their shapes", b->name, s->name);
    struct ckpt_tensor t = *b;
    t.kind = CKPT_MXFP4;
    t.n_dims = s->n_dims;
    t.shape[t.n_dims - 1] = s->shape[t.n_dims - 1] * 32;
    for (int i = t.n_dims; i < 4; i++) t.shape[i] = 0;
    t.i_scale = (int64_t) (s - c->tensors);
    b->used = s->used = true;
    t.used = false;
    snprintf(name, sizeof(name), "%.*s%s", (int) n, b->name, rows ? "" : ".mxfp4");
    char *kept = arena_copy(&c->arena, name, strlen(name));
    if (!kept) return err_set(ERR_NOMEM, "no memory for the name of '%s'", b->name);
    t.name = kept;
    return checkpoint_add(c, &t);
}

enum err packed_join(struct checkpoint *c) {
    const size_t n = c->n_tensors;  // joining adds more
    for (size_t i = 0; i < n; i++) {
        if (c->tensors[i].kind != CKPT_PLAIN)
            TRY(join_float8(c, &c->tensors[i]));
        else if (c->tensors[i].type == GGML_TYPE_I8 &&
                 (ends_with(c->tensors[i].name, "_blocks") || ends_with(c->tensors[i].name, "_packed")))
            TRY(join_mxfp4(c, i));
        else if (c->tensors[i].type == GGML_TYPE_I8)
            TRY(join_bytes(c, &c->tensors[i]));
    }
    c->scales = calloc(1, sizeof(*c->scales));
    return c->scales ? ERR_OK : err_set(ERR_NOMEM, "no memory for scales");
}

void packed_free(struct checkpoint *c) {
    if (c->scales) free(c->scales->values);
    free(c->scales);
    c->scales = NULL;
}

// Sign, e bits of exponent, m bits of mantissa.
static float float8(uint8_t v, int e, int m) {
    const int exponent = (v >> m) & ((1 << e) - 1), bias = (1 << (e - 1)) - 1;
    const float mantissa = (float) (v & ((1 << m) - 1)) / (float) (1 << m), sign = v & 0x80 ? -1.0f : 1.0f;
    if (e == 4 && (v & 0x7f) == 0x7f) return NAN;
    if (e == 5 && exponent == 31) return mantissa != 0 ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexpf(1 + mantissa, exponent - bias) : ldexpf(mantissa, 1 - bias));
}

static enum err read_float8(const struct checkpoint *c, const struct ckpt_tensor *t, int64_t i0, int64_t n, float *out) {
    float table[256];
    for (int i = 0; i < 256; i++)
        table[i] = t->kind == CKPT_E4M3   ? float8((uint8_t) i, 4, 3)
                   : t->kind == CKPT_E5M2 ? float8((uint8_t) i, 5, 2)
                                          : ldexpf(i == 255 ? NAN : 1, i - 127);
    uint8_t *raw = malloc((size_t) n);
    if (!raw) return err_set(ERR_NOMEM, "no memory to read '%s'", t->name);
    const enum err e = file_read(&c->files[t->i_file], t->offset + (uint64_t) i0, raw, (size_t) n);
    for (int64_t i = 0; i < n && e == ERR_OK; i++) out[i] = table[raw[i]];
    free(raw);
    if (e != ERR_OK || t->i_scale < 0) return e;
    const struct ckpt_tensor *s = &c->tensors[t->i_scale];
    if (c->scales->of != t) {
        free(c->scales->values);
        c->scales->of = NULL;
        c->scales->values = malloc((size_t) ckpt_tensor_count(s) * sizeof(float) + 1);
        if (!c->scales->values) return err_set(ERR_NOMEM, "no memory for '%s'", s->name);
        TRY(checkpoint_read(c, s, 0, ckpt_tensor_count(s), c->scales->values));
        c->scales->of = t;
    }
    const int64_t rows = s->n_dims > 0 ? s->shape[0] : 1, cols = s->n_dims > 1 ? s->shape[1] : 1, ne0 = t->shape[1];
    const int64_t high = c->block[0] && rows > 1 && rows != t->shape[0] ? c->block[0] : (t->shape[0] + rows - 1) / rows,
                  wide = c->block[1] && cols > 1 ? c->block[1] : (ne0 + cols - 1) / cols;
    if ((t->shape[0] + high - 1) / high > rows || (ne0 + wide - 1) / wide > cols)
        return err_set(ERR_FORMAT, "'%s' has too few scales for '%s'", s->name, t->name);
    for (int64_t i = 0; i < n; i++) out[i] *= c->scales->values[(i0 + i) / ne0 / high * cols + (i0 + i) % ne0 / wide];
    return ERR_OK;
}

static enum err read_mxfp4(const struct checkpoint *c, const struct ckpt_tensor *t, int64_t i0, int64_t n, float *out) {
    static const float values[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
    const struct ckpt_tensor *s = &c->tensors[t->i_scale];
    const int64_t b0 = i0 / 32, n_blocks = (i0 + n + 31) / 32 - b0;
    uint8_t *raw = malloc((size_t) n_blocks * 17), *scale = raw ? raw + n_blocks * 16 : NULL;
    if (!raw) return err_set(ERR_NOMEM, "no memory to read '%s'", t->name);
    enum err e = file_read(&c->files[t->i_file], t->offset + (uint64_t) b0 * 16, raw, (size_t) n_blocks * 16);
    if (e == ERR_OK) e = file_read(&c->files[s->i_file], s->offset + (uint64_t) b0, scale, (size_t) n_blocks);
    for (int64_t i = 0; i < n && e == ERR_OK; i++) {
        const int64_t at = i0 + i - b0 * 32;
        const uint8_t byte = raw[at / 2], code = at % 2 ? byte >> 4 : byte & 15;
        out[i] = ldexpf(values[code], scale[at / 32] - 127);
    }
    free(raw);
    return e;
}

enum err packed_read(const struct checkpoint *c, const struct ckpt_tensor *t, int64_t i0, int64_t n, float *out) {
    const int64_t most = 1 << 18;
    for (int64_t done = 0; done < n; done += most) {
        const int64_t now = n - done < most ? n - done : most;
        TRY(t->kind == CKPT_MXFP4 ? read_mxfp4(c, t, i0 + done, now, out + done)
                                  : read_float8(c, t, i0 + done, now, out + done));
    }
    return ERR_OK;
}
