// qwen3vlmoe: qwen3vl with experts in every layer.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS, K_FX_OR("F/U"), K_SECTIONS(REQ), {"n_deepstack_layers", HP_n_deepstack, "0", 0}, {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_QK_NORM,
    T_NORM(ffn_norm),
    T_ROUTER(0),
    T_EXPERTS("Fx", 0, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    hp->n_embd_inp = hp->n_embd * (1 + hp->n_deepstack);
    return arch_require(hp->rope_sections[0] + hp->rope_sections[1] + hp->rope_sections[2] + hp->rope_sections[3] > 0, b,
                        "the sections of its rotary dimensions are all empty");
}

static struct ggml_tensor *embed(struct graph *g) {
    return g->n.has_token || g->hp->n_deepstack == 0 ? blk_embed(g, 0) : blk_deep_slice(g, 0);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *extra = !g->n.has_token && il < g->hp->n_deepstack ? blk_deep_slice(g, il + 1) : NULL;
    struct ggml_tensor *cur =
        blk_self_attn(g, l, blk_norm(g, x, &l->attn_norm, NORM_RMS), il, &(struct attn_opts){.qk_norm = QK_NORM_HEAD});
    blk_select3(g, il, &cur, &x, &extra);
    x = ggml_add(g->ctx, cur, x);
    cur = blk_moe(g, l, blk_norm(g, x, &l->ffn_norm, NORM_RMS), il, &(struct moe_opts){.gate = GATE_SOFTMAX, .norm = true});
    x = ggml_add(g->ctx, cur, x);
    return extra ? ggml_add(g->ctx, x, extra) : x;
}

const struct arch arch_qwen3vlmoe = {
    .name = "qwen3vlmoe",
    .rope = LLAMA_ROPE_TYPE_IMROPE,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .embed = embed,
    .layer = layer,
};
