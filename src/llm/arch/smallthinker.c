// smallthinker: the router sees the layer's input; every fourth layer is full and has no positions.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, K_SWA, K_ROPE_SWA("b"), K_FX(REQ), K_GATING(REQ), {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    T_ROUTER(0),
    T_EXPERTS("Fx", 0, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    if (hp->n_swa <= 0) return ERR_OK;
    hp->n_swa = 4096;  // whatever the key says
    hp->rope_swa = SWA_ROPE_OWN;
    for (int i = 0; i < hp->n_block; i++) hp->rope_layers[i] = i % 4 != 0;
    return arch_windows(hp, b, WINDOW_STANDARD, 4, true);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *seen = x,
                       *cur = blk_self_attn(g, l, blk_norm(g, x, &l->attn_norm, NORM_RMS), il, &(struct attn_opts){0});
    blk_select3(g, il, &cur, &x, &seen);
    x = ggml_add(g->ctx, cur, x);
    cur = blk_moe(g, l, blk_norm(g, x, &l->ffn_norm, NORM_RMS), il,
                  &(struct moe_opts){.norm = true, .act = {.act = ACT_RELU}, .router_x = seen});
    return ggml_add(g->ctx, cur, x);
}

const struct arch arch_smallthinker = {
    .name = "smallthinker",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
