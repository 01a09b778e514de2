// jina-bert-v3: BERT with rotary positions (arXiv 2409.10173), without its task adapters.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_LN, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    {SLOT_token_types, "E,?", T_OPT, 0, 0, 0, 0},
    {SLOT_token_embd_norm, "E", T_BIAS, 0, 0, 0, 0},
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_BIAS_OPT | T_SCALE, 0, 0, 0, 0},
    T_NORM_B(attn_output_norm),
    T_NORM_B(layer_output_norm),
    {SLOT_ffn_up, "E,F", T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_ffn_down, "F,E", T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_post_norm(g, l, x, il, &(struct form_opts){.norm = NORM_LN, .act = {.act = ACT_GELU}});
}

const struct arch arch_jina_bert_v3 = {
    .name = "jina-bert-v3",
    .flags = ARCH_ENCODER,
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .embed = blk_encoder_embed,
    .layer = layer,
    .head_fn = blk_encoder_head,
    .pooled = blk_encoder_pooled,
};
