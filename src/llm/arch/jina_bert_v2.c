// jina-bert-v2: BERT whose positions are ALiBi on both sides (arXiv 2310.19923); gated networks, sometimes norms on queries and keys.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_LN, {"tokenizer.ggml.token_type_count", HP_n_token_types, REQ, KEY_GLOBAL}, {NULL, 0, NULL, 0}};

// ffn_up has F rows, or without ffn_gate perhaps 2F: gate and up in one
static const struct arch_tensor tensors[] = {
    T_EMBD,
    {SLOT_token_types, "E,ntt", 0, 0, 0, 0, 0},
    {SLOT_token_embd_norm, "E", T_BIAS, 0, 0, 0, 0},
    {SLOT_cls, "E,1", T_OPT | T_BIAS_OPT, 0, 0, 0, 0},
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_BIAS | T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_q_norm, "H*D", T_OPT | T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_attn_k_norm, "K*D", T_OPT | T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_attn_norm_2, "E", T_OPT | T_BIAS_OPT, 0, 0, 0, 0},
    T_NORM_B(attn_output_norm),
    T_NORM_B(layer_output_norm),
    {SLOT_ffn_gate, "E,F", T_OPT, 0, 0, 0, 0},
    {SLOT_ffn_up, "E,?", T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_ffn_down, "F,E", T_BIAS, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    return arch_require(hp->n_token_types > 0, b, "it must have token types");
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct form_opts o = {
        .norm = NORM_LN, .attn = {.alibi = 8.0f, .qk_norm = QK_NORM_ROW_LN}, .act = {.act = ACT_GELU}};
    return blk_post_norm(g, l, x, il, &o);
}

const struct arch arch_jina_bert_v2 = {
    .name = "jina-bert-v2",
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
