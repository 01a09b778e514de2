// starcoder: SantaCoder and StarCoder 1; GPT-2 whose heads share one key and value.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_LN, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    {SLOT_position_embd, "E,C", 0, 0, 0, 0, "transformer.wpe"},
    T_OUT_NORM_B,
    T_OUT_TIED,
    T_NORM_B(attn_norm),
    {SLOT_attn_qkv, "E,E+2*K*D", T_BIAS | T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_output, "E,E", T_BIAS | T_SCALE, 0, 0, 0, 0},
    T_NORM_B(ffn_norm),
    {SLOT_ffn_up, "E,F", T_BIAS, 0, 0, 0, 0},
    {SLOT_ffn_down, "F,E", T_BIAS, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *embed(struct graph *g) {
    return ggml_add(g->ctx, blk_embed(g, 0), blk_pos_rows(g, g->w->position_embd.w));
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il,
                        &(struct form_opts){.norm = NORM_LN, .attn = {.no_rope = true}, .act = {.act = ACT_GELU}});
}

const struct arch arch_starcoder = {
    .name = "starcoder",
    .rope = LLAMA_ROPE_TYPE_NONE,
    .norm = NORM_LN,
    .keys = keys,
    .tensors = tensors,
    .embed = embed,
    .layer = layer,
};
