// nomic-bert and nomic-bert-moe: BERT with rotary positions and gated networks; the latter with experts in every m-th layer
// (arXiv 2402.01613, 2502.07972).
#include "arch/arch.h"

#define COMMON_KEYS                                                                                                         \
    K_LN, {"tokenizer.ggml.token_type_count", HP_n_token_types, "0", KEY_GLOBAL}, {                                         \
        "classifier.output_labels", HP_n_cls_out, "1", KEY_COUNT                                                            \
    }

static const struct arch_key keys[] = {COMMON_KEYS, {NULL, 0, NULL, 0}};

static const struct arch_key moe_keys[] = {COMMON_KEYS, {"moe_every_n_layers", HP_moe_every, "0", 0}, {NULL, 0, NULL, 0}};

#define COMMON                                                                                                              \
    T_EMBD, {SLOT_token_types, "E,?", T_OPT, 0, 0, 0, 0}, {SLOT_token_embd_norm, "E", T_BIAS, 0, 0, 0, 0},                  \
        {SLOT_cls, "E,E", T_OPT | T_BIAS_OPT, 0, 0, 0, 0}, {SLOT_cls_out, "E,ncls", T_OPT | T_BIAS_OPT, 0, 0, 0, 0}, T_QKV, \
        {SLOT_attn_output, "H*Dv,E", T_BIAS_OPT | T_SCALE, 0, 0, 0, 0}, T_NORM_B(attn_output_norm),                         \
        T_NORM_B(layer_output_norm)

static const struct arch_tensor tensors[] = {COMMON, T_FFN, {SLOT_NONE, NULL, 0, 0, 0, 0, 0}};

#define EXPERTS "me>0&&i%me==1"
#define DENSE "me==0||i%me!=1"

static const struct arch_tensor moe_tensors[] = {
    COMMON,
    {SLOT_ffn_up, "E,F", T_BIAS_OPT, DENSE, 0, 0, 0},
    {SLOT_ffn_down, "F,E", T_BIAS_OPT, DENSE, 0, 0, 0},
    T_ROUTER(EXPERTS),
    {SLOT_ffn_up_exps, "E,F,X", 0, EXPERTS, 0, 0, 0},
    {SLOT_ffn_down_exps, "F,E,X", 0, EXPERTS, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct act_opts act = {.act = l->ffn_gate.w ? ACT_SILU : ACT_GELU};
    return blk_post_norm(
        g, l, x, il,
        &(struct form_opts){.norm = NORM_LN, .act = act, .moe = {.gate = GATE_SOFTMAX, .act = {.act = ACT_GELU}}});
}

#define NOMIC(id, text, key_table, tensor_table)                                                                            \
    const struct arch arch_##id = {                                                                                         \
        .name = text,                                                                                                       \
        .flags = ARCH_ENCODER,                                                                                              \
        .rope = LLAMA_ROPE_TYPE_NEOX,                                                                                       \
        .keys = key_table,                                                                                                  \
        .tensors = tensor_table,                                                                                            \
        .embed = blk_encoder_embed,                                                                                         \
        .layer = layer,                                                                                                     \
        .head_fn = blk_encoder_head,                                                                                        \
        .pooled = blk_encoder_pooled,                                                                                       \
    }

NOMIC(nomic_bert, "nomic-bert", keys, tensors);
NOMIC(nomic_bert_moe, "nomic-bert-moe", moe_keys, moe_tensors);
