// MAP_CUSTOM1..3 and CUSTOM: the caller's own function, called by every thread of the node (n_tasks of them at most) with its
// number and their count. op_params: function, userdata (two words each), [4] n_tasks.
#include "ops/row.h"

union call {
    struct {
        void (*fun)(void);
        void *userdata;
        int32_t n_tasks;
    } f;
    int32_t words[6];
};

static union call call_of(const struct ggml_tensor *t) {
    union call c;
    memcpy(c.words, t->op_params, sizeof c.words);
    return c;
}

static enum err check_call(const struct ggml_tensor *t) {
    const union call c = call_of(t);
    if (!c.f.fun) return err_set(ERR_INVALID, "%s: the function is missing (NULL)", op_what(t));
    if (c.f.n_tasks < 1 && c.f.n_tasks != GGML_N_TASKS_MAX)
        return err_set(ERR_INVALID, "%s: %d tasks; wanted a positive number or GGML_N_TASKS_MAX", op_what(t),
                       (int) c.f.n_tasks);
    return ERR_OK;
}

static enum err infer_map(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_call(t));
    return shape_like(t->src[0], t->src[0]->type, shape);
}

// Shape and type are the caller's.
static enum err infer_custom(const struct ggml_tensor *t, struct op_shape *shape) {
    TRY(check_call(t));
    const struct type *ty = type_get(t->type);
    if (!ty || t->ne[0] % ty->block != 0)
        return err_set(ERR_INVALID, "CUSTOM: rows of %lld elements of type %d", (long long) t->ne[0], (int) t->type);
    return shape_4d(shape, t->type, t->ne[0], t->ne[1], t->ne[2], t->ne[3]);
}

static int threads(const struct ggml_tensor *t, int n_threads) {
    const int32_t n = call_of(t).f.n_tasks;
    return n == GGML_N_TASKS_MAX || n > n_threads ? n_threads : n;
}

static void run1(struct task *k, struct ggml_tensor *t) {
    const union call c = call_of(t);
    ((ggml_custom1_op_t) c.f.fun)(t, t->src[0], k->ith, k->nth, c.f.userdata);
}
static void run2(struct task *k, struct ggml_tensor *t) {
    const union call c = call_of(t);
    ((ggml_custom2_op_t) c.f.fun)(t, t->src[0], t->src[1], k->ith, k->nth, c.f.userdata);
}
static void run3(struct task *k, struct ggml_tensor *t) {
    const union call c = call_of(t);
    ((ggml_custom3_op_t) c.f.fun)(t, t->src[0], t->src[1], t->src[2], k->ith, k->nth, c.f.userdata);
}
static void run_custom(struct task *k, struct ggml_tensor *t) {
    const union call c = call_of(t);
    ((ggml_custom_op_t) c.f.fun)(t, k->ith, k->nth, c.f.userdata);
}

typedef void (*any_fn)(void);

static struct ggml_tensor *build(struct ggml_context *ctx, enum ggml_op id, const struct op_shape *want,
                                 struct ggml_tensor *over, struct ggml_tensor **src, int n_src, any_fn fun, int n_tasks,
                                 void *userdata) {
    union call c;
    memset(&c, 0, sizeof c);
    c.f.fun = fun;
    c.f.userdata = userdata;
    c.f.n_tasks = n_tasks;
    return op_build_as(ctx, id, want, over, c.words, 6, src, n_src);
}

#define MAP(name, inplace_src)                                                                                              \
    struct ggml_tensor *ggml_map_custom1##name(struct ggml_context *ctx, struct ggml_tensor *a, ggml_custom1_op_t fun,      \
                                               int n_tasks, void *userdata) {                                               \
        return build(ctx, GGML_OP_MAP_CUSTOM1, NULL, inplace_src, &a, 1, (any_fn) fun, n_tasks, userdata);                  \
    }                                                                                                                       \
    struct ggml_tensor *ggml_map_custom2##name(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,      \
                                               ggml_custom2_op_t fun, int n_tasks, void *userdata) {                        \
        return build(ctx, GGML_OP_MAP_CUSTOM2, NULL, inplace_src, (struct ggml_tensor *[]){a, b}, 2, (any_fn) fun, n_tasks, \
                     userdata);                                                                                             \
    }                                                                                                                       \
    struct ggml_tensor *ggml_map_custom3##name(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,      \
                                               struct ggml_tensor *c, ggml_custom3_op_t fun, int n_tasks, void *userdata) { \
        return build(ctx, GGML_OP_MAP_CUSTOM3, NULL, inplace_src, (struct ggml_tensor *[]){a, b, c}, 3, (any_fn) fun,       \
                     n_tasks, userdata);                                                                                    \
    }
MAP(, NULL)
MAP(_inplace, a)

static struct ggml_tensor *bad_args(int n_args, int most) {
    (void) err_set(ERR_INVALID, "CUSTOM: %d sources, at most %d can be given", n_args, most);
    return tensor_error();
}

struct ggml_tensor *ggml_custom_4d(struct ggml_context *ctx, enum ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2,
                                   int64_t ne3, struct ggml_tensor **args, int n_args, ggml_custom_op_t fun, int n_tasks,
                                   void *userdata) {
    const struct op_shape want = {type, {ne0, ne1, ne2, ne3}};
    if (n_args < 0 || n_args > GGML_MAX_SRC || (n_args > 0 && !args)) return bad_args(n_args, GGML_MAX_SRC);
    return build(ctx, GGML_OP_CUSTOM, &want, NULL, args, n_args, (any_fn) fun, n_tasks, userdata);
}

struct ggml_tensor *ggml_custom_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor **args,
                                        int n_args, ggml_custom_op_t fun, int n_tasks, void *userdata) {
    struct ggml_tensor *src[GGML_MAX_SRC] = {a};
    if (n_args < 0 || n_args > GGML_MAX_SRC - 1 || (n_args > 0 && !args)) return bad_args(n_args, GGML_MAX_SRC - 1);
    if (!a) return bad_args(0, GGML_MAX_SRC - 1);
    if (ggml_is_error(a)) return a;
    for (int i = 0; i < n_args; i++) src[1 + i] = args[i];
    const struct op_shape want = {a->type, {a->ne[0], a->ne[1], a->ne[2], a->ne[3]}};
    return build(ctx, GGML_OP_CUSTOM, &want, a, src, n_args + 1, (any_fn) fun, n_tasks, userdata);
}

const struct op op_map_custom1 = {.id = GGML_OP_MAP_CUSTOM1,
                                  .name = "MAP_CUSTOM1",
                                  .symbol = "map_custom(x)",
                                  .n_src = 1,
                                  .infer = infer_map,
                                  .run = run1,
                                  .threads = threads};
const struct op op_map_custom2 = {.id = GGML_OP_MAP_CUSTOM2,
                                  .name = "MAP_CUSTOM2",
                                  .symbol = "map_custom(x,y)",
                                  .n_src = 2,
                                  .infer = infer_map,
                                  .run = run2,
                                  .threads = threads};
const struct op op_map_custom3 = {.id = GGML_OP_MAP_CUSTOM3,
                                  .name = "MAP_CUSTOM3",
                                  .symbol = "map_custom(x,y,z)",
                                  .n_src = 3,
                                  .infer = infer_map,
                                  .run = run3,
                                  .threads = threads};
const struct op op_custom = {.id = GGML_OP_CUSTOM,
                             .name = "CUSTOM",
                             .symbol = "custom(x)",
                             .infer = infer_custom,
                             .run = run_custom,
                             .threads = threads};
