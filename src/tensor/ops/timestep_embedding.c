// TIMESTEP_EMBEDDING: timesteps [N] F32 -> [dim, N] F32: cosines, then sines, of the step times max_period^(-j / half), j below half =
// dim / 2 (Ho et al. 2020); a last odd element is 0. op_params: [0] dim, [1] max_period.
#include "ops/row.h"
#include "kern/rope.h"

#include <math.h>

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const int32_t dim = tensor_param_i32(t, 0), period = tensor_param_i32(t, 1);
    TRY(check_float(t, 0));
    if (!ggml_is_vector(t->src[0]) || dim < 2 || period < 1)
        return err_set(ERR_INVALID, "TIMESTEP_EMBEDDING: steps " SHAPE_FMT ", %d dimensions, period %d",
                       SHAPE_ARG(t->src[0]), (int) dim, (int) period);
    return shape_4d(shape, GGML_TYPE_F32, dim, t->src[0]->ne[0], 1, 1);
}

#define PIECE 64

static void run(struct task *k, struct ggml_tensor *t) {
    const struct ggml_tensor *a = t->src[0];
    const int64_t dim = tensor_param_i32(t, 0), half = dim / 2;
    const double log_period = log((double) tensor_param_i32(t, 1));
    int64_t r0, r1;
    task_range(k, t->ne[1], &r0, &r1);
    for (int64_t r = r0; r < r1; r++) {
        const float step = (float) row_get(a, (const char *) a->data + (size_t) r * a->nb[0]);
        float *y = (float *) (void *) row_at(t, r, 0, 0), angle[PIECE];
        for (int64_t j = 0; j < half; j += PIECE) {
            const int64_t n = half - j < PIECE ? half - j : PIECE;
            for (int64_t i = 0; i < n; i++) angle[i] = step * (float) exp(-log_period * (double) (j + i) / (double) half);
            kern_rope()->angles(n, y + j, y + half + j, angle, 1.0f);
        }
        if (dim % 2 != 0) y[dim - 1] = 0.0f;
    }
}

struct ggml_tensor *ggml_timestep_embedding(struct ggml_context *ctx, struct ggml_tensor *timesteps, int dim,
                                            int max_period) {
    return op_build(ctx, GGML_OP_TIMESTEP_EMBEDDING, false, (int32_t[]){dim, max_period}, 2, &timesteps, 1);
}

const struct op op_timestep_embedding = {.id = GGML_OP_TIMESTEP_EMBEDDING,
                                         .name = "TIMESTEP_EMBEDDING",
                                         .symbol = "timestep_embedding(timesteps, dim, max_period)",
                                         .n_src = 1,
                                         .infer = infer,
                                         .run = run,
                                         .threads = row_threads_func};
