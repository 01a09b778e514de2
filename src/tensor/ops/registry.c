// The table of operations, from ops.def, and what is the same for all of them: building a node and checking one.
#include "ops/op.h"

#include <string.h>

#define OP(ID, name) extern const struct op op_##name;
#include "ops/ops.def"
#undef OP

static const struct op *const table[GGML_OP_COUNT] = {
#define OP(ID, name) [GGML_OP_##ID] = &op_##name,
#include "ops/ops.def"
#undef OP
};

static const char *const op_names[GGML_OP_COUNT] = {
#define OP(ID, name) [GGML_OP_##ID] = #ID,
#include "ops/ops.def"
#undef OP
};

static const char *const unary_names[GGML_UNARY_OP_COUNT] = {
#define UNARY(ID, name) [GGML_UNARY_OP_##ID] = #ID,
#include "ops/unary.def"
#undef UNARY
};

static const char *const glu_names[GGML_GLU_OP_COUNT] = {
#define GLU(ID, name) [GGML_GLU_OP_##ID] = #ID,
#include "ops/glu.def"
#undef GLU
};

size_t op_scratch_most(const struct op *op, const struct ggml_tensor *t, int n_threads) {
    if (!op->scratch) return 0;
    struct ggml_tensor fewer = *t, src[3];
    int64_t n_token = 1;
    for (int k = 0; k < 3; k++) {
        if (!op->token_dim[k] || !t->src[k]) continue;
        src[k] = *t->src[k];
        fewer.src[k] = &src[k];
        n_token = t->src[k]->ne[op->token_dim[k] - 1];
    }
    size_t most = op->scratch(t, n_threads);
    for (int64_t n = 1; n < n_token && (n <= op->many_tokens || !op->many_tokens); n++) {
        for (int k = 0; k < 3; k++) {
            if (op->token_dim[k] && t->src[k]) src[k].ne[op->token_dim[k] - 1] = n;
        }
        const size_t bytes = op->scratch(&fewer, n_threads);
        if (bytes > most) most = bytes;
    }
    return most;
}

const struct op *op_get(enum ggml_op id) { return (unsigned) id < GGML_OP_COUNT ? table[id] : NULL; }

const char *ggml_op_name(enum ggml_op op) { return (unsigned) op < GGML_OP_COUNT ? op_names[op] : "unknown"; }

const char *ggml_op_symbol(enum ggml_op op) {
    const struct op *o = op_get(op);
    return o && o->symbol ? o->symbol : ggml_op_name(op);
}

const char *ggml_unary_op_name(enum ggml_unary_op op) {
    return (unsigned) op < GGML_UNARY_OP_COUNT ? unary_names[op] : "unknown";
}

const char *ggml_glu_op_name(enum ggml_glu_op op) { return (unsigned) op < GGML_GLU_OP_COUNT ? glu_names[op] : "unknown"; }

const char *ggml_op_desc(const struct ggml_tensor *t) {
    if (!t) return "unknown";
    if (t->op == GGML_OP_UNARY) return ggml_unary_op_name((enum ggml_unary_op) tensor_param_i32(t, 0));
    if (t->op == GGML_OP_GLU) return ggml_glu_op_name((enum ggml_glu_op) tensor_param_i32(t, 0));
    return ggml_op_name(t->op);
}

// Copies what the descriptor's infer needs into a tensor that is in no context yet.
static enum err fill(struct ggml_tensor *t, const struct op *op, const int32_t *params, int n_params,
                     struct ggml_tensor **src, int n_src) {
    for (int i = 0; i < n_src; i++) {
        t->src[i] = src[i];
        if (!src[i] && i < op->n_src) {
            return err_set(ERR_INVALID, "%s: source %d is missing (NULL)", ggml_op_name(op->id), i);
        }
    }
    if (n_src < op->n_src) {
        return err_set(ERR_INVALID, "%s: %d sources given, %d needed", ggml_op_name(op->id), n_src, op->n_src);
    }
    if (n_params) memcpy(t->op_params, params, (size_t) n_params * sizeof *params);
    return ERR_OK;
}

// A result written over a tensor must have its type and shape.
static enum err check_over(const struct ggml_tensor *t, const struct ggml_tensor *a, const struct op_shape *shape) {
    if (a->type == shape->type && memcmp(a->ne, shape->ne, sizeof a->ne) == 0) return ERR_OK;
    return err_set(ERR_INVALID,
                   "%s in place: the result %s [%lld, %lld, %lld, %lld] differs from the tensor it is written over",
                   ggml_op_name(t->op), ggml_type_name(shape->type), (long long) shape->ne[0], (long long) shape->ne[1],
                   (long long) shape->ne[2], (long long) shape->ne[3]);
}

// ---- as before (graph/rebuild.c) --------------------------------------------------------------------------------------

// Whether t, which was made before from sources as they are now, began as what would be made.
static bool began_so(const struct ggml_tensor *t, enum ggml_op id, const struct op_shape *want,
                     const struct ggml_tensor *over, const int32_t *params, int n_params, struct ggml_tensor *const *src,
                     int n_src) {
    uintptr_t other = t->op ^ id;
    for (int i = 0; i < n_src; i++) other |= (uintptr_t) t->src[i] ^ (uintptr_t) src[i];
    if (other || (n_params && memcmp(t->op_params, params, (size_t) n_params * sizeof *params) != 0)) return false;
    if (want && (t->type != want->type || memcmp(t->ne, want->ne, sizeof t->ne) != 0)) return false;
    return over ? t->view_src == (over->view_src ? over->view_src : over) && t->view_offs == over->view_offs : !t->view_src;
}

// Nearly all operations have so few sources and parameters; what is behind those is six words of either.
enum { FEW = 4, N_FURTHER = 6 };
_Static_assert(GGML_MAX_SRC == FEW + N_FURTHER && sizeof(void *) == 8, "sources behind the first few");
_Static_assert(GGML_MAX_OP_PARAMS == FEW * 4 + N_FURTHER * 8, "parameters behind the first few");

static inline uint64_t further(const void *words) {
    uint64_t w[N_FURTHER];
    memcpy(w, words, sizeof w);
    return w[0] | w[1] | w[2] | w[3] | w[4] | w[5];
}

static inline uint64_t among_few(const struct ggml_tensor *t, int n_params, int n_src) {
    uint64_t more = 0;
    switch (n_src) {
        case 0: more |= (uintptr_t) t->src[0];  // fall through
        case 1: more |= (uintptr_t) t->src[1];  // fall through
        case 2: more |= (uintptr_t) t->src[2];  // fall through
        case 3: more |= (uintptr_t) t->src[3];  // fall through
        default: break;
    }
    switch (n_params) {
        case 0: more |= (uint32_t) t->op_params[0];  // fall through
        case 1: more |= (uint32_t) t->op_params[1];  // fall through
        case 2: more |= (uint32_t) t->op_params[2];  // fall through
        case 3: more |= (uint32_t) t->op_params[3];  // fall through
        default: break;
    }
    return more;
}

// Whether t has no sources and parameters but the first ones.
static inline bool no_more(const struct ggml_tensor *t, int n_params, int n_src) {
    if (n_src <= FEW && n_params <= FEW)
        return !(among_few(t, n_params, n_src) | further(&t->src[FEW]) | further(&t->op_params[FEW]));
    uint64_t more = 0;
    for (int i = n_src; i < GGML_MAX_SRC; i++) more |= (uintptr_t) t->src[i];
    for (int i = n_params; i < GGML_MAX_OP_PARAMS / 4; i++) more |= (uint32_t) t->op_params[i];
    return !more;
}

// What was made here before, if it is what would be made; sources and parameters that were added to it afterwards are taken off, to be
// added again. Else NULL.
static inline struct ggml_tensor *as_before(struct ggml_context *ctx, enum ggml_op id, const struct op_shape *want,
                                            const struct ggml_tensor *over, const int32_t *params, int n_params,
                                            struct ggml_tensor *const *src, int n_src) {
    struct ggml_tensor *t = tensor_before(ctx);
    if (!t || !began_so(t, id, want, over, params, n_params, src, n_src)) return NULL;
    if (no_more(t, n_params, n_src)) return tensor_keep(ctx, t);
    tensor_reopen(ctx, t);
    for (int i = n_src; i < GGML_MAX_SRC; i++) t->src[i] = NULL;
    for (int i = n_params; i < GGML_MAX_OP_PARAMS / 4; i++) t->op_params[i] = 0;
    return t;
}

// ---- building -------------------------------------------------------------------------------------------------------

static struct ggml_tensor *build_new(struct ggml_context *ctx, enum ggml_op id, const struct op_shape *want,
                                     struct ggml_tensor *over, const int32_t *params, int n_params, struct ggml_tensor **src,
                                     int n_src) {
    for (int i = 0; i < n_src; i++) {
        if (src[i] && ggml_is_error(src[i])) return src[i];
    }
    const struct op *op = op_get(id);
    struct ggml_tensor head;  // as much of it as infer looks at
    struct op_shape shape = {.ne = {1, 1, 1, 1}};
    if (!op) {
        (void) err_set(ERR_UNSUPPORTED, "operation %s is not part of this build", ggml_op_name(id));
        return tensor_error();
    }
    head.op = id;
    head.type = want ? want->type : GGML_TYPE_COUNT;
    head.buffer = NULL;
    head.view_src = NULL;
    head.view_offs = 0;
    head.data = NULL;
    head.flags = 0;
    head.name[0] = '\0';
    for (int d = 0; d < GGML_MAX_DIMS; d++) {
        head.ne[d] = want ? want->ne[d] : 0;
        head.nb[d] = 0;
    }
    memset(head.op_params, 0, sizeof head.op_params);
    memset(head.src, 0, sizeof head.src);
    if (fill(&head, op, params, n_params, src, n_src) != ERR_OK || op->infer(&head, &shape) != ERR_OK) return tensor_error();
    if (over && check_over(&head, over, &shape) != ERR_OK) return tensor_error();

    struct ggml_tensor *t =
        over ? ggml_view_tensor(ctx, over) : tensor_new(ctx, shape.type, GGML_MAX_DIMS, shape.ne, NULL, 0);
    if (ggml_is_error(t)) return t;
    t->op = id;
    memcpy(t->op_params, head.op_params, sizeof t->op_params);
    memcpy(t->src, head.src, sizeof t->src);
    return t;
}

struct ggml_tensor *op_build_as(struct ggml_context *ctx, enum ggml_op id, const struct op_shape *want,
                                struct ggml_tensor *over, const int32_t *params, int n_params, struct ggml_tensor **src,
                                int n_src) {
    struct ggml_tensor *t = as_before(ctx, id, want, over, params, n_params, src, n_src);
    return t ? t : build_new(ctx, id, want, over, params, n_params, src, n_src);
}

struct ggml_tensor *op_build(struct ggml_context *ctx, enum ggml_op id, bool inplace, const int32_t *params, int n_params,
                             struct ggml_tensor **src, int n_src) {
    struct ggml_tensor *over = inplace && n_src > 0 ? src[0] : NULL,
                       *t = as_before(ctx, id, NULL, over, params, n_params, src, n_src);
    return t ? t : build_new(ctx, id, NULL, over, params, n_params, src, n_src);
}
