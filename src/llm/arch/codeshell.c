// codeshell: LayerNorms and biases; the embedding may be the output matrix.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_LN, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    {SLOT_output, "E,V", 0, 0, 0, 0, 0},
    {SLOT_token_embd, "E,V", T_OPT, 0, 0, 0, 0},
    T_OUT_NORM_B,
    T_NORM_B(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_BIAS | T_SCALE, 0, 0, 0, 0},
    T_NORM_B(ffn_norm),
    {SLOT_ffn_up, "E,F", T_BIAS, 0, 0, 0, 0},
    {SLOT_ffn_down, "F,E", T_BIAS, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

// A file without token_embd reads its rows from the output matrix.
static struct ggml_tensor *embed(struct graph *g) {
    return g->w->token_embd.w ? blk_embed(g, 0) : ggml_get_rows(g->ctx, g->w->output.w, in_tokens(g));
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.norm = NORM_LN, .act = {.act = ACT_GELU}});
}

const struct arch arch_codeshell = {
    .name = "codeshell",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .norm = NORM_LN,
    .keys = keys,
    .tensors = tensors,
    .embed = embed,
    .layer = layer,
};
