// UPSCALE: images resized, up or down: nearest, bilinear (with or without antialiasing), bicubic. Dimensions 2 and 3 take the nearest.
// Pixels are unit squares, their centres at 0.5; with ALIGN_CORNERS the centres of the corner pixels coincide instead.
// F32, F16 and BF16 of any layout. op_params: [0] mode with flags (GGML_SCALE_MODE_*, GGML_SCALE_FLAG_*).
#include "ops/conv_int.h"

#include <math.h>

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0];
    const uint32_t mode = (uint32_t) tensor_param_i32(t, 0);
    TRY(check_float(t, 0));
    if ((mode & 0xff) >= GGML_SCALE_MODE_COUNT ||
        (mode & ~(0xffu | GGML_SCALE_FLAG_ALIGN_CORNERS | GGML_SCALE_FLAG_ANTIALIAS)) != 0)
        return err_set(ERR_UNSUPPORTED, "UPSCALE: there is no mode %#x", (unsigned) mode);
    if ((mode & GGML_SCALE_FLAG_ANTIALIAS) && (mode & 0xff) != GGML_SCALE_MODE_BILINEAR)
        return err_set(ERR_UNSUPPORTED, "UPSCALE: antialiasing exists for bilinear only");
    for (int d = 0; d < 4; d++)
        if (t->ne[d] < 1 || a->ne[d] < 1)
            return err_set(ERR_INVALID, "UPSCALE: " SHAPE_FMT " to " SHAPE_FMT, SHAPE_ARG(a), SHAPE_ARG(t));
    return shape_4d(shape, a->type, t->ne[0], t->ne[1], t->ne[2], t->ne[3]);
}

struct plan {
    const struct ggml_tensor *a;
    float scale[4], offset;
    const char *plane;  // of dimensions 2 and 3
};

static struct plan plan_of(const struct ggml_tensor *t) {
    struct plan p = {.a = t->src[0], .offset = 0.5f};
    for (int d = 0; d < 4; d++) p.scale[d] = (float) t->ne[d] / (float) p.a->ne[d];
    if (!(tensor_param_i32(t, 0) & GGML_SCALE_FLAG_ALIGN_CORNERS)) return p;
    p.offset = 0.0f;
    for (int d = 0; d < 2; d++)
        if (t->ne[d] > 1 && p.a->ne[d] > 1) p.scale[d] = (float) (t->ne[d] - 1) / (float) (p.a->ne[d] - 1);
    return p;
}

static int64_t limit(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

static float pixel(const struct plan *p, int64_t x, int64_t y) {
    const struct ggml_tensor *a = p->a;
    return conv_load(a->type, p->plane + (size_t) limit(y, a->ne[1]) * a->nb[1] + (size_t) limit(x, a->ne[0]) * a->nb[0]);
}

typedef float (*sample_fn)(const struct plan *p, int64_t i0, int64_t i1);

static float nearest(const struct plan *p, int64_t i0, int64_t i1) {
    return pixel(p, (int64_t) ((float) i0 / p->scale[0]), (int64_t) ((float) i1 / p->scale[1]));
}

static float clamp01(float f) { return f < 0.0f ? 0.0f : f > 1.0f ? 1.0f : f; }

static float bilinear(const struct plan *p, int64_t i0, int64_t i1) {
    const float x = ((float) i0 + p->offset) / p->scale[0] - p->offset,
                y = ((float) i1 + p->offset) / p->scale[1] - p->offset;
    const int64_t x0 = limit((int64_t) floorf(x), p->a->ne[0]), y0 = limit((int64_t) floorf(y), p->a->ne[1]);
    const float dx = clamp01(x - (float) x0), dy = clamp01(y - (float) y0);
    const float a = pixel(p, x0, y0), b = pixel(p, x0 + 1, y0), c = pixel(p, x0, y0 + 1), d = pixel(p, x0 + 1, y0 + 1);
    return a * (1.0f - dx) * (1.0f - dy) + b * dx * (1.0f - dy) + c * (1.0f - dx) * dy + d * dx * dy;
}

static float triangle(float x) {
    const float w = 1.0f - fabsf(x);
    return w > 0.0f ? w : 0.0f;
}

// The first and the last pixel + 1 that a triangle of the given half width around centre c meets.
static void reach(float c, float half, float offset, int64_t n, int64_t *i0, int64_t *i1) {
    *i0 = (int64_t) fmaxf(c - half + offset, 0.0f);
    *i1 = (int64_t) fminf(c + half + offset, (float) n);
}

// Each result is the mean of what a triangle as wide as the reduction covers.
static float antialiased(const struct plan *p, int64_t i0, int64_t i1) {
    const float hx = fmaxf(1.0f, 1.0f / p->scale[0]), hy = fmaxf(1.0f, 1.0f / p->scale[1]);
    const float x = ((float) i0 + p->offset) / p->scale[0], y = ((float) i1 + p->offset) / p->scale[1];
    int64_t x0, x1, y0, y1;
    reach(x, hx, p->offset, p->a->ne[0], &x0, &x1);
    reach(y, hy, p->offset, p->a->ne[1], &y0, &y1);
    float sum = 0.0f, total = 0.0f;
    for (int64_t sy = y0; sy < y1; sy++) {
        const float wy = triangle(((float) sy - y + p->offset) / hy);
        for (int64_t sx = x0; sx < x1; sx++) {
            const float w = triangle(((float) sx - x + p->offset) / hx) * wy;
            if (w <= 0.0f) continue;
            sum += w * pixel(p, sx, sy);
            total += w;
        }
    }
    return total > 0.0f ? sum / total : 0.0f;
}

// Weights of the four pixels around a place t behind the second (Keys 1981, a = -0.75).
static void cubic(float t, float w[4]) {
    const float a = -0.75f, f[4] = {t + 1.0f, t, 1.0f - t, 2.0f - t};
    for (int i = 0; i < 4; i++) {
        const float x = f[i];
        w[i] = i == 1 || i == 2 ? ((a + 2.0f) * x - (a + 3.0f)) * x * x + 1.0f
                                : ((a * x - 5.0f * a) * x + 8.0f * a) * x - 4.0f * a;
    }
}

static float bicubic(const struct plan *p, int64_t i0, int64_t i1) {
    const float x = ((float) i0 + p->offset) / p->scale[0] - p->offset,
                y = ((float) i1 + p->offset) / p->scale[1] - p->offset;
    const int64_t x0 = (int64_t) floorf(x), y0 = (int64_t) floorf(y);
    float wx[4], wy[4], sum = 0.0f;
    cubic(x - (float) x0, wx);
    cubic(y - (float) y0, wy);
    for (int j = 0; j < 4; j++) {
        float row = 0.0f;
        for (int i = 0; i < 4; i++) row += pixel(p, x0 - 1 + i, y0 - 1 + j) * wx[i];
        sum += row * wy[j];
    }
    return sum;
}

static void run(struct task *k, struct ggml_tensor *t) {
    static const sample_fn samples[GGML_SCALE_MODE_COUNT] = {nearest, bilinear, bicubic};
    struct plan p = plan_of(t);
    const int32_t mode = tensor_param_i32(t, 0);
    const sample_fn sample = mode & GGML_SCALE_FLAG_ANTIALIAS ? antialiased : samples[mode & 0xff];
    alignas(64) float out[ROW_CHUNK];
    int64_t r0, r1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        int64_t i1, i2, i3;
        row_split(t, r, &i1, &i2, &i3);
        p.plane = row_at(p.a, 0, limit((int64_t) ((float) i2 / p.scale[2]), p.a->ne[2]),
                         limit((int64_t) ((float) i3 / p.scale[3]), p.a->ne[3]));
        for (int64_t e = 0; e < t->ne[0]; e += ROW_CHUNK) {
            const int64_t n = t->ne[0] - e < ROW_CHUNK ? t->ne[0] - e : ROW_CHUNK;
            for (int64_t i = 0; i < n; i++) out[i] = sample(&p, e + i, i1);
            row_write(t, row_at(t, i1, i2, i3), e, n, out);
        }
    }
}

struct ggml_tensor *ggml_interpolate(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0, int64_t ne1, int64_t ne2,
                                     int64_t ne3, uint32_t mode) {
    const struct op_shape want = {GGML_TYPE_F32, {ne0, ne1, ne2, ne3}};
    return op_build_as(ctx, GGML_OP_UPSCALE, &want, NULL, &(int32_t){(int32_t) mode}, 1, &a, 1);
}

struct ggml_tensor *ggml_upscale(struct ggml_context *ctx, struct ggml_tensor *a, int scale_factor,
                                 enum ggml_scale_mode mode) {
    if (!a || scale_factor < 1) {
        (void) err_set(ERR_INVALID, "ggml_upscale: %s", a ? "the factor is below 1" : "the tensor is missing (NULL)");
        return tensor_error();
    }
    if (ggml_is_error(a)) return a;
    return ggml_interpolate(ctx, a, a->ne[0] * scale_factor, a->ne[1] * scale_factor, a->ne[2], a->ne[3], (uint32_t) mode);
}

struct ggml_tensor *ggml_upscale_ext(struct ggml_context *ctx, struct ggml_tensor *a, int ne0, int ne1, int ne2, int ne3,
                                     enum ggml_scale_mode mode) {
    return ggml_interpolate(ctx, a, ne0, ne1, ne2, ne3, (uint32_t) mode);
}

const struct op op_upscale = {.id = GGML_OP_UPSCALE,
                              .name = "UPSCALE",
                              .symbol = "upscale(x)",
                              .n_src = 1,
                              .infer = infer,
                              .run = run,
                              .threads = row_threads_func};
