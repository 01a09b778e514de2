// ROPE: rotary position embedding (Su et al. 2021), with YaRN (Peng et al. 2023), frequency factors and sections (M-RoPE).
// ROPE_BACK turns the other way. F32, F16 and BF16 of any layout.
//   a [head, heads, tokens, batch]; pos [tokens] i32 ([4 * tokens] with sections: t, h, w, e); freq [>= n_dims / 2] F32 or none
// Pair j turns by pos * base^(-2j / n_dims), found by repeated multiplication in F32: models were trained and tested on these
// very roundings, which move angles at far positions by more than F32's own error.
// op_params: [1] n_dims, [2] mode, [4] n_ctx_orig, [5] freq_base, [6] freq_scale, [7] ext_factor, [8] attn_factor,
// [9] beta_fast, [10] beta_slow, [11..14] sections, [15] first dimension that is turned.
#include "ops/backward.h"
#include "ops/row.h"
#include "kern/rope.h"

#include <math.h>

enum { P_DIMS = 1, P_MODE, P_ORIG = 4, P_BASE, P_SCALE, P_EXT, P_ATTN, P_FAST, P_SLOW, P_SECTIONS, P_OFFSET = 15 };

static bool has_sections(int mode) { return (mode & GGML_ROPE_TYPE_MROPE) != 0; }

static enum err check_mode(const struct ggml_tensor *t) {
    const int mode = tensor_param_i32(t, P_MODE);
    if (mode != GGML_ROPE_TYPE_NORMAL && mode != GGML_ROPE_TYPE_NEOX && mode != GGML_ROPE_TYPE_MROPE &&
        mode != GGML_ROPE_TYPE_VISION && mode != GGML_ROPE_TYPE_IMROPE)
        return err_set(ERR_UNSUPPORTED, "ROPE: there is no mode %d", mode);
    if (!has_sections(mode)) return ERR_OK;
    int64_t sum = 0;
    for (int i = 0; i < 4; i++) {
        const int32_t s = tensor_param_i32(t, P_SECTIONS + i);
        if (s < 0) return err_set(ERR_INVALID, "ROPE: section %d is %d", i, (int) s);
        sum += s;
    }
    if (sum == 0) return err_set(ERR_INVALID, "ROPE: mode %d needs sections that are not all zero", mode);
    return ERR_OK;
}

static enum err check_dims(const struct ggml_tensor *t) {
    const int64_t n = tensor_param_i32(t, P_DIMS), off = tensor_param_i32(t, P_OFFSET), head = t->src[0]->ne[0];
    const bool vision = tensor_param_i32(t, P_MODE) == GGML_ROPE_TYPE_VISION;
    if (n <= 0 || n % 2 != 0 || off < 0 || off + (vision ? 2 * n : n) > head)
        return err_set(ERR_INVALID, "ROPE: %lld dimensions from %lld on do not fit heads of %lld", (long long) n,
                       (long long) off, (long long) head);
    const struct ggml_tensor *f = t->src[2];
    if (!f) return ERR_OK;
    TRY(check_type(t, 2, GGML_TYPE_F32));
    const int64_t need = vision ? n : n / 2;
    if (f->ne[0] < need || ggml_nrows(f) != 1)
        return err_set(ERR_INVALID, "ROPE: frequency factors " SHAPE_FMT ", wanted at least [%lld]", SHAPE_ARG(f),
                       (long long) need);
    return ERR_OK;
}

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *a = t->src[0], *pos = t->src[1];
    TRY(check_float(t, 0));
    TRY(check_type(t, 1, GGML_TYPE_I32));
    TRY(check_mode(t));
    if (!(tensor_param_f32(t, P_BASE) > 0.0f))
        return err_set(ERR_INVALID, "ROPE: the frequency base is %g, it must be positive",
                       (double) tensor_param_f32(t, P_BASE));
    TRY(check_dims(t));
    const int64_t want = a->ne[2] * (has_sections(tensor_param_i32(t, P_MODE)) ? 4 : 1);
    if (pos->ne[0] != want || ggml_nrows(pos) != 1)
        return err_set(ERR_INVALID, "ROPE: positions " SHAPE_FMT ", wanted [%lld]", SHAPE_ARG(pos), (long long) want);
    return shape_like(a, a->type, shape);
}

// ---- angles -----------------------------------------------------------------------------------------------------------

// Dimension at which n rotations fit in the original context.
static float corr_dim(int n_dims, int n_ctx_orig, float n_rot, float base) {
    return (float) n_dims * logf((float) n_ctx_orig / (n_rot * 2.0f * (float) 3.14159265358979323846)) / (2.0f * logf(base));
}

void ggml_rope_yarn_corr_dims(int n_dims, int n_ctx_orig, float freq_base, float beta_fast, float beta_slow, float dims[2]) {
    if (!dims) return;
    const float start = floorf(corr_dim(n_dims, n_ctx_orig, beta_fast, freq_base));
    const float end = ceilf(corr_dim(n_dims, n_ctx_orig, beta_slow, freq_base));
    dims[0] = start > 0.0f ? start : 0.0f;
    dims[1] = end < (float) n_dims - 1.0f ? end : (float) n_dims - 1.0f;
}

struct plan {
    int64_t n_pairs, n_dims, off;
    int mode, sections[4];
    float step, scale, ext, magnitude, low, high, sign;
    const struct ggml_tensor *pos, *freq;
    float *theta, *cos, *sin;  // of the token in hand
};

static struct plan make_plan(struct task *k, const struct ggml_tensor *t, float sign) {
    struct plan p = {.n_dims = tensor_param_i32(t, P_DIMS),
                     .off = tensor_param_i32(t, P_OFFSET),
                     .mode = tensor_param_i32(t, P_MODE),
                     .scale = tensor_param_f32(t, P_SCALE),
                     .sign = sign,
                     .ext = tensor_param_f32(t, P_EXT),
                     .magnitude = tensor_param_f32(t, P_ATTN),
                     .pos = t->src[1],
                     .freq = t->src[2]};
    const float base = tensor_param_f32(t, P_BASE);
    p.n_pairs = p.mode == GGML_ROPE_TYPE_VISION ? p.n_dims : p.n_dims / 2;
    p.step = powf(base, -2.0f / (float) p.n_dims);
    for (int i = 0; i < 4; i++) p.sections[i] = tensor_param_i32(t, P_SECTIONS + i);
    if (p.ext != 0.0f) {
        float dims[2];
        ggml_rope_yarn_corr_dims((int) p.n_dims, tensor_param_i32(t, P_ORIG), base, tensor_param_f32(t, P_FAST),
                                 tensor_param_f32(t, P_SLOW), dims);
        p.low = dims[0];
        p.high = dims[1];
        p.magnitude *= 1.0f + 0.1f * logf(1.0f / p.scale);
    }
    p.theta = row_scratch(k, t->ne[0], 4, 1);
    p.cos = row_scratch(k, t->ne[0], 4, 2);
    p.sin = row_scratch(k, t->ne[0], 4, 3);
    return p;
}

static int64_t sector_of(const struct plan *p, int64_t j) {
    const int *s = p->sections;
    return j % ((int64_t) s[0] + s[1] + s[2] + s[3]);
}

// Which of the four positions turns the pairs of a sector.
static int component(const struct plan *p, int64_t sector) {
    const int *s = p->sections;
    if (p->mode == GGML_ROPE_TYPE_IMROPE) {
        const int c = (int) (sector % 3);
        return sector < 3 * (int64_t) s[c] ? c : 3;
    }
    return sector < s[0] ? 0 : sector < s[0] + s[1] ? 1 : sector < s[0] + s[1] + s[2] ? 2 : 3;
}

static float position(const struct plan *p, int64_t i) {
    int32_t v;
    memcpy(&v, (const char *) p->pos->data + (size_t) i * p->pos->nb[0], sizeof v);
    return (float) v;
}

// Angles before scaling: one running product per component; vision starts a component's afresh where its section begins.
static void sector_angles(const struct plan *p, int64_t token, int64_t n_token) {
    float start[4], run[4];
    for (int c = 0; c < 4; c++) start[c] = run[c] = position(p, token + c * n_token);
    int last = -1;
    for (int64_t j = 0; j < p->n_pairs; j++) {
        const int64_t sector = sector_of(p, j);
        const int c = component(p, sector);
        if (p->mode == GGML_ROPE_TYPE_VISION && (c != last || sector == 0)) run[c] = start[c];
        last = c;
        p->theta[j] = run[c];
        for (int i = 0; i < 4; i++) run[i] *= p->step;
    }
}

static void plain_angles(const struct plan *p, int64_t token) {
    float theta = position(p, token);
    for (int64_t j = 0; j < p->n_pairs; j++, theta *= p->step) p->theta[j] = theta;
}

static float yarn(const struct plan *p, float theta, int64_t j) {
    const float inter = p->scale * theta;
    if (p->ext == 0.0f) return inter;
    const float width = p->high - p->low, y = ((float) j - p->low) / (width > 0.001f ? width : 0.001f);
    const float mix = (1.0f - (y < 0.0f ? 0.0f : y > 1.0f ? 1.0f : y)) * p->ext;
    return inter * (1.0f - mix) + theta * mix;
}

static void token_angles(const struct plan *p, int64_t token, int64_t n_token) {
    if (has_sections(p->mode))
        sector_angles(p, token, n_token);
    else
        plain_angles(p, token);
    for (int64_t j = 0; j < p->n_pairs; j++) {
        float f = 1.0f;
        if (p->freq) memcpy(&f, (const char *) p->freq->data + (size_t) j * p->freq->nb[0], sizeof f);
        p->theta[j] = p->sign * yarn(p, p->freq ? p->theta[j] / f : p->theta[j], j);
    }
    kern_rope()->angles(p->n_pairs, p->cos, p->sin, p->theta, p->magnitude);
}

// ---- run --------------------------------------------------------------------------------------------------------------

static void turn(const struct plan *p, int64_t n, float *y, const float *x) {
    const int64_t end = p->off + 2 * p->n_pairs;
    if (y != x) {
        memcpy(y, x, (size_t) p->off * sizeof(float));
        memcpy(y + end, x + end, (size_t) (n - end) * sizeof(float));
    }
    if (p->mode == GGML_ROPE_TYPE_NORMAL)
        kern_rope()->pairs(p->n_pairs, y + p->off, x + p->off, p->cos, p->sin);
    else
        kern_rope()->halves(p->n_pairs, p->n_pairs, y + p->off, x + p->off, p->cos, p->sin);
}

static void rotate(struct task *k, struct ggml_tensor *t, float sign) {
    const struct ggml_tensor *a = t->src[0];
    const struct plan p = make_plan(k, t, sign);
    float *buf = row_scratch(k, t->ne[0], 4, 0);
    int64_t r0, r1, ready = -1;
    task_range(k, ggml_nrows(t), &r0, &r1);
    int64_t i1, i2, i3;
    if (r0 < r1) row_split(t, r0, &i1, &i2, &i3);
    for (int64_t r = r0; r < r1; r++, row_step(t->ne, &i1, &i2, &i3)) {
        if (i2 != ready) token_angles(&p, i2, t->ne[2]);
        ready = i2;
        char *row = row_at(t, i1, i2, i3);
        float *y = row_target(t, row, 0, buf);
        turn(&p, t->ne[0], y, row_read(a, row_at(a, i1, i2, i3), 0, t->ne[0], buf));
        row_write(t, row, 0, t->ne[0], y);
    }
}

static void run(struct task *k, struct ggml_tensor *t) { rotate(k, t, 1.0f); }
static void run_back(struct task *k, struct ggml_tensor *t) { rotate(k, t, -1.0f); }

static size_t scratch(const struct ggml_tensor *t, int n_threads) { return row_scratch_bytes(t->ne[0], 4, n_threads); }

static int threads(const struct ggml_tensor *t, int n_threads) { return row_threads(ggml_nelements(t), 4096, n_threads); }

// ---- builders -----------------------------------------------------------------------------------------------------------

struct args {
    int n_dims, mode, n_ctx_orig;
    float base, scale, ext, attn, fast, slow;
};

static struct ggml_tensor *build(struct ggml_context *ctx, enum ggml_op id, bool inplace, struct ggml_tensor *a,
                                 struct ggml_tensor *pos, struct ggml_tensor *freq, const int *sections, struct args g) {
    int32_t params[P_OFFSET + 1] = {0, g.n_dims, g.mode, 0, g.n_ctx_orig};
    memcpy(params + P_BASE, (const float[6]){g.base, g.scale, g.ext, g.attn, g.fast, g.slow}, 6 * sizeof(float));
    for (int i = 0; sections && i < 4; i++) params[P_SECTIONS + i] = sections[i];
    return op_build(ctx, id, inplace, params, P_OFFSET + 1, (struct ggml_tensor *[]){a, pos, freq}, 3);
}

struct ggml_tensor *ggml_rope(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int n_dims, int mode) {
    return build(ctx, GGML_OP_ROPE, false, a, b, NULL, NULL,
                 (struct args){n_dims, mode, 0, 10000.0f, 1.0f, 0.0f, 1.0f, 0.0f, 0.0f});
}
struct ggml_tensor *ggml_rope_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int n_dims,
                                      int mode) {
    return build(ctx, GGML_OP_ROPE, true, a, b, NULL, NULL,
                 (struct args){n_dims, mode, 0, 10000.0f, 1.0f, 0.0f, 1.0f, 0.0f, 0.0f});
}

#define SCALING                                                                                                             \
    int n_dims, int mode, int n_ctx_orig, float freq_base, float freq_scale, float ext_factor, float attn_factor,           \
        float beta_fast, float beta_slow
#define MULTI                                                                                                               \
    int n_dims, int sections[4], int mode, int n_ctx_orig, float freq_base, float freq_scale, float ext_factor,             \
        float attn_factor, float beta_fast, float beta_slow
#define GATHER                                                                                                              \
    (struct args) { n_dims, mode, n_ctx_orig, freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow }

#define EXT(name, ID, inplace)                                                                                              \
    struct ggml_tensor *ggml_rope_ext##name(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,         \
                                            struct ggml_tensor *c, SCALING) {                                               \
        return build(ctx, ID, inplace, a, b, c, NULL, GATHER);                                                              \
    }                                                                                                                       \
    struct ggml_tensor *ggml_rope_multi##name(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,       \
                                              struct ggml_tensor *c, MULTI) {                                               \
        return build(ctx, ID, inplace, a, b, c, sections, GATHER);                                                          \
    }
EXT(, GGML_OP_ROPE, false)
EXT(_inplace, GGML_OP_ROPE, true)
EXT(_back, GGML_OP_ROPE_BACK, false)

struct ggml_tensor *ggml_rope_custom(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, SCALING) {
    return build(ctx, GGML_OP_ROPE, false, a, b, NULL, NULL, GATHER);
}
struct ggml_tensor *ggml_rope_custom_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                             SCALING) {
    return build(ctx, GGML_OP_ROPE, true, a, b, NULL, NULL, GATHER);
}

struct ggml_tensor *ggml_rope_set_offset(struct ggml_tensor *a, int n_offs) {
    if (!a || ggml_is_error(a)) return tensor_error();
    if (a->op != GGML_OP_ROPE && a->op != GGML_OP_ROPE_BACK) {
        (void) err_set(ERR_INVALID, "ggml_rope_set_offset: the tensor is a %s, not a ROPE", ggml_op_name(a->op));
        return tensor_error();
    }
    const int32_t before = tensor_param_i32(a, P_OFFSET);
    tensor_set_param_i32(a, P_OFFSET, n_offs);
    if (check_dims(a) == ERR_OK) return a;
    tensor_set_param_i32(a, P_OFFSET, before);
    return tensor_error();
}

// The gradient of a rotation is the rotation back, and the other way round.
static struct ggml_tensor *rotated(struct backward *b, const struct ggml_tensor *t, enum ggml_op id) {
    struct ggml_tensor *src[3] = {backward_grad(b, t), t->src[1], t->src[2]};
    return op_build(b->ctx, id, false, t->op_params, sizeof t->op_params / sizeof t->op_params[0], src, 3);
}

static enum err no_factors(const struct backward *b, const struct ggml_tensor *t) {
    if (!backward_wants(b, t->src[2])) return ERR_OK;
    return err_set(ERR_UNSUPPORTED, "%s: there is no gradient with respect to the frequency factors", ggml_op_desc(t));
}

static enum err backward(struct backward *b, struct ggml_tensor *t) {
    TRY(no_factors(b, t));
    return backward_add(b, t->src[0], rotated(b, t, GGML_OP_ROPE_BACK));
}

static enum err backward_of_back(struct backward *b, struct ggml_tensor *t) {
    TRY(no_factors(b, t));
    return backward_add(b, t->src[0], rotated(b, t, GGML_OP_ROPE));
}

const struct op op_rope = {.id = GGML_OP_ROPE,
                           .name = "ROPE",
                           .symbol = "rope(x)",
                           .n_src = 2,
                           .flags = OP_INPLACE,
                           .infer = infer,
                           .scratch = scratch,
                           .run = run,
                           .threads = threads,
                           .backward = backward};
const struct op op_rope_back = {.id = GGML_OP_ROPE_BACK,
                                .name = "ROPE_BACK",
                                .symbol = "rope_back(x)",
                                .n_src = 2,
                                .flags = OP_INPLACE,
                                .infer = infer,
                                .scratch = scratch,
                                .run = run_back,
                                .threads = threads,
                                .backward = backward_of_back};
