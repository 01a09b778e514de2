// bert: the encoder of sentence embeddings and rerankers: learned positions, norms after each branch.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_LN,
    {"tokenizer.ggml.token_type_count", HP_n_token_types, REQ, KEY_GLOBAL},
    {"classifier.output_labels", HP_n_cls_out, "1", KEY_COUNT},
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    {SLOT_token_embd, "E,V", 0, 0, 0, 0, "embeddings.word_embeddings"},
    {SLOT_token_types, "E,ntt", T_OPT, 0, 0, 0, "embeddings.token_type_embeddings"},
    {SLOT_position_embd, "E,C", 0, 0, 0, 0, "embeddings.position_embeddings"},
    {SLOT_token_embd_norm, "E", T_BIAS, 0, 0, 0, "embeddings.LayerNorm"},
    {SLOT_cls, "E,E", T_OPT | T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_cls_out, "E,ncls", T_OPT | T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_attn_qkv, "E,H*D+K*D+K*Dv", T_OPT | T_BIAS_OPT | T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_q, "E,H*D", T_BIAS_OPT | T_SCALE, 0, SLOT_attn_qkv, 0, "attention.self.query"},
    {SLOT_attn_k, "E,K*D", T_BIAS_OPT | T_SCALE, 0, SLOT_attn_qkv, 0, "attention.self.key"},
    {SLOT_attn_v, "E,K*Dv", T_BIAS_OPT | T_SCALE, 0, SLOT_attn_qkv, 0, "attention.self.value"},
    {SLOT_attn_output, "E,E", T_BIAS_OPT | T_SCALE, 0, 0, 0, "attention.output.dense"},
    {SLOT_attn_output_norm, "E", T_BIAS, 0, 0, 0, "attention.output.LayerNorm"},
    {SLOT_ffn_up, "E,F", T_BIAS_OPT, 0, 0, 0, "intermediate.dense"},
    {SLOT_ffn_down, "F,E", T_BIAS_OPT, 0, 0, 0, "output.dense"},
    {SLOT_layer_output_norm, "E", T_BIAS, 0, 0, 0, "output.LayerNorm"},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    return arch_require(hp->n_token_types > 0, b, "it must have token types");
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_post_norm(g, l, x, il, &(struct form_opts){.norm = NORM_LN, .act = {.act = ACT_GELU}});
}

const struct arch arch_bert = {
    .name = "bert",
    .flags = ARCH_ENCODER,
    .rope = LLAMA_ROPE_TYPE_NONE,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .embed = blk_encoder_embed,
    .layer = layer,
    .head_fn = blk_encoder_head,
    .pooled = blk_encoder_pooled,
};
