// Building a graph again in the headers of the one before. Memory of a context is handed out front to back, so the same calls in the same
// order make every tensor where it was made before: what is there says whether it differs. While nothing does, builders give back what
// they find (tensor_before), without checking or writing anything; where sizes differ, tensors are written anew, but the order of
// evaluation is the one that was found before.
#include "graph/graph_int.h"

#include <string.h>

static struct ggml_object *object_of(const struct ggml_tensor *t) {
    return (struct ggml_object *) (uintptr_t) ((const char *) t - sizeof(struct ggml_object));
}

static void differs(struct rebuild *r, enum ggml_rebuilt how) {
    if (how > r->so_far) r->so_far = how;
}

static bool same_sources(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    uintptr_t other = (uintptr_t) a->view_src ^ (uintptr_t) b->view_src;
    for (int i = 0; i < GGML_MAX_SRC; i++) other |= (uintptr_t) a->src[i] ^ (uintptr_t) b->src[i];
    return !other && a->op == b->op && a->type == b->type;
}

static bool same_sizes(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    size_t other = a->view_offs ^ b->view_offs;
    for (int i = 0; i < GGML_MAX_DIMS; i++) other |= (size_t) (a->ne[i] ^ b->ne[i]) | (a->nb[i] ^ b->nb[i]);
    return !other && memcmp(a->op_params, b->op_params, sizeof a->op_params) == 0;
}

// The last tensor made is complete now.
static void close_open(struct rebuild *r) {
    struct ggml_tensor *t = r->open;
    const struct ggml_tensor *before = &r->before;
    if (!t) return;
    r->open = NULL;
    if (!same_sources(t, before)) {
        differs(r, GGML_REBUILT_OTHER);
        return;
    }
    if (!same_sizes(t, before)) differs(r, GGML_REBUILT_SIZES);
    memcpy(t->name, before->name, sizeof t->name);  // views have it from their source, which had none then
    t->data = before->data;
    t->buffer = before->buffer;
    t->extra = before->extra;
    object_of(t)->flags = before->flags;
}

void rebuild_next(struct ggml_context *ctx, struct ggml_object *o, enum ggml_object_type type, size_t size) {
    struct rebuild *r = &ctx->rebuild;
    close_open(r);
    r->found = NULL;
    if (r->so_far == GGML_REBUILT_OTHER) return;
    if (r->next != o || o->type != type || o->size != size) {
        differs(r, GGML_REBUILT_OTHER);
        return;
    }
    r->next = o->next;
    void *const content = object_content(ctx, o);
    if (type == GGML_OBJECT_TYPE_TENSOR) {
        r->open = content;
        r->before = *r->open;
    } else if (type == GGML_OBJECT_TYPE_GRAPH) {
        if (r->graph) differs(r, GGML_REBUILT_OTHER);  // one is enough to know of
        r->graph = content;
        r->graph->again = ctx;
        r->graph->at = r->graph->calls = 0;
    }
}

static struct ggml_tensor *tensor_of(struct ggml_object *o) {
    return o && o->type == GGML_OBJECT_TYPE_TENSOR ? (struct ggml_tensor *) (o + 1) : NULL;
}

static struct ggml_tensor *look_up(struct rebuild *r) {
    if (!r->on) return NULL;
    close_open(r);
    return r->found = r->so_far == GGML_REBUILT_SAME ? tensor_of(r->next) : NULL;
}

struct ggml_tensor *tensor_before(struct ggml_context *ctx) {
    if (!ctx) return NULL;
    return ctx->rebuild.found ? ctx->rebuild.found : look_up(&ctx->rebuild);
}

struct ggml_tensor *tensor_keep(struct ggml_context *ctx, struct ggml_tensor *t) {
    struct ggml_object *o = ctx->rebuild.next;
    ctx->rebuild.found = tensor_of(o->next);
    ctx->rebuild.next = o->next;  // and stays that: rebuild_next or the end cuts the list where it ends now
    o->flags = t->flags;
    t->flags &= GGML_TENSOR_FLAG_COMPUTE;
    object_append(ctx, o);
    return t;
}

void tensor_reopen(struct ggml_context *ctx, struct ggml_tensor *t) {
    ctx->rebuild.before = *t;
    ctx->rebuild.open = tensor_keep(ctx, t);
    ctx->rebuild.found = NULL;
}

static bool is_among(struct ggml_tensor *const *list, int n, const struct ggml_tensor *t) {
    for (int i = 0; i < n; i++) {
        if (list[i] == t) return true;
    }
    return false;
}

void rebuild_expand(struct ggml_cgraph *g, const struct ggml_tensor *t, bool compute) {
    struct rebuild *r = &g->again->rebuild;
    if (r->so_far == GGML_REBUILT_OTHER) return;
    if (compute && g->calls > 0 && (is_among(g->nodes, g->at, t) || is_among(g->leafs, g->n_leafs, t))) {
        g->calls--;
        return;
    }
    int i = g->at;
    while (i < g->n_nodes && !g->ends[i]) i++;
    if (!compute || g->calls > 0 || i == g->n_nodes || g->nodes[i] != t) {
        differs(r, GGML_REBUILT_OTHER);
        return;
    }
    g->at = i + 1;
    g->calls = g->ends[i] - 1;
}

void ggml_rebuild_begin(struct ggml_context *ctx) {
    if (!ctx) return;
    struct ggml_object *first = ctx->first;
    ggml_reset(ctx);
    ctx->rebuild = (struct rebuild){.on = true, .next = first};
}

// Flags may be set at any time, so they are compared at the end. Who computes what is the graph's to say, and it is the same.
static bool same_flags(struct ggml_context *ctx) {
    int32_t other = 0;
    for (struct ggml_object *o = ctx->first; o; o = o->next) {
        struct ggml_tensor *t = tensor_of(o);
        if (!t || t->flags == o->flags) continue;
        other |= (t->flags ^ o->flags) & ~GGML_TENSOR_FLAG_COMPUTE;
        t->flags = o->flags;
    }
    return other == 0;
}

enum ggml_rebuilt ggml_rebuild_end(struct ggml_context *ctx) {
    if (!ctx || !ctx->rebuild.on) return GGML_REBUILT_OTHER;
    struct rebuild *r = &ctx->rebuild;
    struct ggml_cgraph *g = r->graph;
    close_open(r);
    r->on = false;
    r->found = NULL;
    r->graph = NULL;
    if (r->next || !g) differs(r, GGML_REBUILT_OTHER);
    if (g) {
        g->again = NULL;
        if (g->at != g->n_nodes || g->calls > 0) differs(r, GGML_REBUILT_OTHER);
    }
    if (r->so_far != GGML_REBUILT_OTHER && !same_flags(ctx)) differs(r, GGML_REBUILT_OTHER);
    if (r->so_far == GGML_REBUILT_SIZES) graph_touch(g);
    return r->so_far;
}
