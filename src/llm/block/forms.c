// The usual ways in which most models string attention and network together.
#include "block/block.h"

struct ggml_tensor *blk_network(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il,
                                const struct form_opts *o) {
    if (!l->ffn_gate_inp.w) return blk_ffn(g, &l->ffn_gate, &l->ffn_up, &l->ffn_down, x, &o->act);
    struct ggml_tensor *y = blk_moe(g, l, x, il, &o->moe);
    return l->ffn_up_shexp.w ? ggml_add(g->ctx, y, blk_shared_expert(g, l, x, &o->act)) : y;
}

static struct ggml_tensor *add_branch(struct graph *g, struct ggml_tensor *branch, struct ggml_tensor *x,
                                      const struct form_opts *o) {
    if (o->residual != 0 && o->residual != 1.0f) branch = ggml_scale(g->ctx, branch, o->residual);
    return ggml_add(g->ctx, branch, x);
}

static struct ggml_tensor *mix(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il,
                               const struct form_opts *o) {
    if (o->mixer) return o->mixer(g, l, x, il);
    return o->recurrent && g->hp->is_recr[il] ? o->recurrent(g, l, x, il) : blk_self_attn(g, l, x, il, &o->attn);
}

struct ggml_tensor *blk_pre_norm(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il,
                                 const struct form_opts *o) {
    struct ggml_tensor *cur = mix(g, l, blk_norm(g, x, &l->attn_norm, o->norm), il, o);
    blk_select(g, il, &cur, &x);
    x = add_branch(g, cur, x, o);
    return add_branch(g, blk_network(g, l, blk_norm(g, x, &l->ffn_norm, o->norm), il, o), x, o);
}

struct ggml_tensor *blk_sandwich(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il,
                                 const struct form_opts *o) {
    struct ggml_tensor *cur = mix(g, l, o->raw ? x : blk_norm(g, x, &l->attn_norm, o->norm), il, o);
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, blk_norm(g, cur, &l->post_attn_norm, o->norm), x);
    cur = blk_network(g, l, o->raw ? x : blk_norm(g, x, &l->ffn_norm, o->norm), il, o);
    return ggml_add(g->ctx, blk_norm(g, cur, &l->post_ffw_norm, o->norm), x);
}

struct ggml_tensor *blk_parallel(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il,
                                 const struct form_opts *o) {
    struct ggml_tensor *n = blk_norm(g, x, &l->attn_norm, o->norm);
    struct ggml_tensor *cur = blk_self_attn(g, l, n, il, &o->attn);
    blk_select3(g, il, &cur, &x, &n);
    return ggml_add(g->ctx, ggml_add(g->ctx, cur, blk_network(g, l, n, il, o)), x);
}

struct ggml_tensor *blk_post_norm(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il,
                                  const struct form_opts *o) {
    struct ggml_tensor *cur = mix(g, l, x, il, o);
    blk_select(g, il, &cur, &x);
    cur = blk_norm(g, ggml_add(g->ctx, cur, x), &l->attn_output_norm, o->norm);
    if (l->attn_norm_2.w) cur = blk_norm(g, ggml_add(g->ctx, cur, x), &l->attn_norm_2, o->norm);
    return blk_norm(g, ggml_add(g->ctx, blk_network(g, l, cur, il, o), cur), &l->layer_output_norm, o->norm);
}
