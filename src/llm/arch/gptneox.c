// gptneox: GPT-NeoX and Pythia; both branches from the same input, or one after the other, as the file says.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_LN, {"use_parallel_residual", HP_use_par_res, REQ, 0}, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM_B,
    T_OUT_OWN,
    T_NORM_B(attn_norm),
    {SLOT_attn_qkv, "E,3*E", T_BIAS | T_SCALE, 0, 0, 0, 0},
    {SLOT_attn_output, "E,E", T_BIAS | T_SCALE, 0, 0, 0, 0},
    T_NORM_B(ffn_norm),
    {SLOT_ffn_up, "E,F", T_BIAS, 0, 0, 0, 0},
    {SLOT_ffn_down, "F,E", T_BIAS, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *cur = blk_norm(g, x, &l->attn_norm, NORM_LN);
    cur = blk_self_attn(g, l, cur, il, &(struct attn_opts){0});
    blk_select(g, il, &cur, &x);
    struct ggml_tensor *sum = ggml_add(g->ctx, cur, x);
    struct ggml_tensor *seen = g->hp->use_par_res ? x : sum;
    struct ggml_tensor *ffn = blk_ffn_layer(g, l, blk_norm(g, seen, &l->ffn_norm, NORM_LN), ACT_GELU);
    return ggml_add(g->ctx, ffn, sum);
}

const struct arch arch_gptneox = {
    .name = "gptneox",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .norm = NORM_LN,
    .keys = keys,
    .tensors = tensors,
    .layer = layer,
};
