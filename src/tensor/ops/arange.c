// ARANGE: start, start + step, ... below stop. op_params: the three, as floats.
#include "ops/row.h"

#include <math.h>

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const float start = tensor_param_f32(t, 0), stop = tensor_param_f32(t, 1), step = tensor_param_f32(t, 2);
    const float n = ceilf((stop - start) / step);
    if (!(n >= 1.0f) || n > 1e9f)
        return err_set(ERR_INVALID, "ARANGE: from %g below %g in steps of %g is no sequence", (double) start, (double) stop,
                       (double) step);
    return shape_4d(shape, GGML_TYPE_F32, (int64_t) n, 1, 1, 1);
}

static void run(struct task *k, struct ggml_tensor *t) {
    const float start = tensor_param_f32(t, 0), step = tensor_param_f32(t, 2);
    int64_t i0, i1;
    task_range(k, t->ne[0], &i0, &i1);
    for (int64_t i = i0; i < i1; i++) {
        const float v = start + step * (float) i;
        memcpy((char *) t->data + (size_t) i * t->nb[0], &v, sizeof v);
    }
}

struct ggml_tensor *ggml_arange(struct ggml_context *ctx, float start, float stop, float step) {
    int32_t params[3];
    memcpy(params, (const float[3]){start, stop, step}, sizeof params);
    return op_build(ctx, GGML_OP_ARANGE, false, params, 3, NULL, 0);
}

const struct op op_arange = {.id = GGML_OP_ARANGE,
                             .name = "ARANGE",
                             .symbol = "arange(start, stop, step)",
                             .infer = infer,
                             .run = run,
                             .threads = row_threads_map};
