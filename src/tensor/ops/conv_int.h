// Geometry of convolutions in up to three dimensions (x, y, z = ne[0], ne[1], ne[2]), and gathering of patches.
#pragma once

#include "ops/row.h"

struct conv {
    const struct ggml_tensor *x;  // the data
    int64_t in[3], k[3], out[3];  // sizes of data, kernel, result
    int32_t s[3], p[3], d[3];     // stride, padding, dilation
    int64_t ic, n;                // input channels, images
    size_t nb[3], nb_channel, nb_image;
    int64_t len;  // elements of a patch: ic * k[2] * k[1] * k[0], x fastest
};

// Size of the result in one dimension; below 1 when the kernel does not fit.
int64_t conv_size(int64_t in, int64_t k, int32_t s, int32_t p, int32_t d);
// Strides, paddings and dilations are usable and the sizes of the result positive. what: for the message.
MUST_USE enum err conv_check(const char *what, const struct conv *c);
// Fills c->out and c->len; the other fields are set.
void conv_finish(struct conv *c);
// The patch under result place (ox, oy, oz) of image n, zeros outside the data.
void conv_patch(const struct conv *c, int64_t n, const int64_t o[3], float *patch);

static inline float conv_load(enum ggml_type type, const char *p) {
    uint16_t h;
    float f;
    if (type == GGML_TYPE_F32) {
        memcpy(&f, p, sizeof f);
        return f;
    }
    memcpy(&h, p, sizeof h);
    return type == GGML_TYPE_F16 ? ggml_fp16_to_fp32(h) : ggml_bf16_to_fp32((ggml_bf16_t){h});
}
