// Checks and addressing shared by the recurrent operations.
#pragma once

#include "ops/op.h"

// F32 with its rows' elements side by side; the other strides are free.
static inline enum err recur_check_rows(const char *op, const char *name, const struct ggml_tensor *t) {
    if (t->type == GGML_TYPE_F32 && (t->nb[0] == sizeof(float) || t->ne[0] == 1)) return ERR_OK;
    return err_set(ERR_INVALID, "%s: %s must be F32 with contiguous rows; it is %s with nb[0] = %zu", op, name,
                   ggml_type_name(t->type), t->nb[0]);
}

static inline enum err recur_check_contiguous(const char *op, const char *name, const struct ggml_tensor *t) {
    if (t->type == GGML_TYPE_F32 && ggml_is_contiguous(t)) return ERR_OK;
    return err_set(ERR_INVALID, "%s: %s must be F32 and contiguous; it is %s%s", op, name, ggml_type_name(t->type),
                   t->type == GGML_TYPE_F32 ? ", not contiguous: use ggml_cont" : "");
}

static inline enum err recur_check_shape(const char *op, const char *name, const struct ggml_tensor *t, int64_t ne0,
                                         int64_t ne1, int64_t ne2, int64_t ne3) {
    if (t->ne[0] == ne0 && t->ne[1] == ne1 && t->ne[2] == ne2 && t->ne[3] == ne3) return ERR_OK;
    return err_set(ERR_INVALID, "%s: %s is [%lld, %lld, %lld, %lld]; it must be [%lld, %lld, %lld, %lld]", op, name,
                   (long long) t->ne[0], (long long) t->ne[1], (long long) t->ne[2], (long long) t->ne[3], (long long) ne0,
                   (long long) ne1, (long long) ne2, (long long) ne3);
}

static inline float *recur_at(const struct ggml_tensor *t, int64_t i1, int64_t i2, int64_t i3) {
    return (float *) (void *) ((char *) t->data + i1 * (int64_t) t->nb[1] + i2 * (int64_t) t->nb[2] +
                               i3 * (int64_t) t->nb[3]);
}

// Floats from one index of dimension i to the next.
static inline int64_t recur_step(const struct ggml_tensor *t, int i) { return (int64_t) (t->nb[i] / sizeof(float)); }
