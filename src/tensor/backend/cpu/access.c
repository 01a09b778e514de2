// Single elements by index, for programs and tests; and whole tensors set to one value. Slow, and for host memory only.
// Indexes that are outside, and types that have no single elements, record an error: reads give 0, writes do nothing.
#include "backend/cpu/cpu.h"
#include "type/element.h"

// Address of element (i0, i1, i2, i3), or NULL with the sentence recorded.
static char *address(const struct ggml_tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    const int64_t i[GGML_MAX_DIMS] = {i0, i1, i2, i3};
    if (!t || ggml_is_error(t) || !t->data || !type_is_plain(t->type)) {
        (void) err_set(ERR_INVALID, "element access: %s",
                       !t || ggml_is_error(t) ? "no tensor given"
                       : !t->data             ? "the tensor has no memory"
                                              : "the type has no single elements");
        return NULL;
    }
    size_t at = 0;
    for (int d = 0; d < GGML_MAX_DIMS; d++) {
        if (i[d] < 0 || i[d] >= t->ne[d]) {
            (void) err_set(ERR_INVALID, "element access: index %lld of dimension %d, which has %lld elements",
                           (long long) i[d], d, (long long) t->ne[d]);
            return NULL;
        }
        at += (size_t) i[d] * t->nb[d];
    }
    return (char *) t->data + at;
}

static char *address_1d(const struct ggml_tensor *t, int64_t i) {
    if (!t) return address(t, 0, 0, 0, 0);
    int64_t k[GGML_MAX_DIMS];
    ggml_unravel_index(t, i, &k[0], &k[1], &k[2], &k[3]);
    return address(t, k[0], k[1], k[2], k[3]);
}

static double get(const struct ggml_tensor *t, const char *p) { return p ? type_load(t->type, p) : 0; }

static void set(const struct ggml_tensor *t, char *p, double value) {
    if (p) type_store(t->type, p, value);
}

static struct ggml_tensor *set_all(struct ggml_tensor *t, double value) {
    if (!t || !address(t, 0, 0, 0, 0)) return t;
    for (int64_t i = 0, n = ggml_nelements(t); i < n; i++) type_store(t->type, address_1d(t, i), value);
    return t;
}

int32_t ggml_get_i32_1d(const struct ggml_tensor *tensor, int i) { return (int32_t) get(tensor, address_1d(tensor, i)); }

float ggml_get_f32_1d(const struct ggml_tensor *tensor, int i) { return (float) get(tensor, address_1d(tensor, i)); }

void ggml_set_i32_1d(const struct ggml_tensor *tensor, int i, int32_t value) { set(tensor, address_1d(tensor, i), value); }

void ggml_set_f32_1d(const struct ggml_tensor *tensor, int i, float value) {
    set(tensor, address_1d(tensor, i), (double) value);
}

int32_t ggml_get_i32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3) {
    return (int32_t) get(tensor, address(tensor, i0, i1, i2, i3));
}

float ggml_get_f32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3) {
    return (float) get(tensor, address(tensor, i0, i1, i2, i3));
}

void ggml_set_i32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3, int32_t value) {
    set(tensor, address(tensor, i0, i1, i2, i3), value);
}

void ggml_set_f32_nd(const struct ggml_tensor *tensor, int i0, int i1, int i2, int i3, float value) {
    set(tensor, address(tensor, i0, i1, i2, i3), (double) value);
}

struct ggml_tensor *ggml_set_i32(struct ggml_tensor *tensor, int32_t value) {
    return set_all(tensor, value);
}

struct ggml_tensor *ggml_set_f32(struct ggml_tensor *tensor, float value) {
    return set_all(tensor, (double) value);
}

struct ggml_tensor *ggml_new_i32(struct ggml_context *ctx, int32_t value) {
    return ggml_set_i32(ggml_new_tensor_1d(ctx, GGML_TYPE_I32, 1), value);
}

struct ggml_tensor *ggml_new_f32(struct ggml_context *ctx, float value) {
    return ggml_set_f32(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1), value);
}
