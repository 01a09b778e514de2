// qwen3vl: the text side of Qwen3-VL: four interleaved positions per token; image rows bring extra slices for the first layers.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    K_SECTIONS(REQ),
    {"n_deepstack_layers", HP_n_deepstack, "0", 0},
    {"classifier.output_labels", HP_n_cls_out, "1", KEY_COUNT},
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    {SLOT_cls_out, "E,ncls", T_OPT, 0, 0, 0, 0},
    T_NORM(attn_norm),
    T_QKV,
    T_O,
    T_QK_NORM,
    T_NORM(ffn_norm),
    T_FFN,
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
    struct ggml_tensor *cur = blk_norm(g, x, &l->attn_norm, NORM_RMS);
    cur = blk_self_attn(g, l, cur, il, &(struct attn_opts){.qk_norm = QK_NORM_HEAD});
    const bool deep = !g->n.has_token && il < g->hp->n_deepstack;
    struct ggml_tensor *extra = deep ? blk_deep_slice(g, il + 1) : NULL;
    blk_select3(g, il, &cur, &x, &extra);
    x = ggml_add(g->ctx, cur, x);
    cur = blk_ffn_layer(g, l, blk_norm(g, x, &l->ffn_norm, NORM_RMS), ACT_SILU);
    x = ggml_add(g->ctx, cur, x);
    return extra ? ggml_add(g->ctx, x, extra) : x;
}

const struct arch arch_qwen3vl = {
    .name = "qwen3vl",
    .rope = LLAMA_ROPE_TYPE_IMROPE,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .embed = embed,
    .layer = layer,
};
