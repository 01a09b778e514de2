// jamba: Mamba mixers with attention in between; networks are dense or experts, layer by layer (arXiv 2403.19887). No positions.
#include "arch/arch.h"

#include <stdio.h>

static const struct arch_key keys[] = {K_RMS, K_SSM, {NULL, 0, NULL, 0}};

// Fx > 0 marks layers of experts (setup)
static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV_WHEN("!rec"),
    T_O_WHEN("!rec"),
    T_MAMBA1(T_SCALE, "rec"),
    {SLOT_ssm_dt_norm, "nh", 0, "rec", 0, 0, 0},
    {SLOT_ssm_b_norm, "N", 0, "rec", 0, 0, 0},
    {SLOT_ssm_c_norm, "N", 0, "rec", 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN_WHEN("Fx==0"),
    T_ROUTER("Fx>0"),
    T_EXPERTS("Fx", 0, "Fx>0"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    arch_recurrent_by_kv(hp);
    // which layers have experts is said by their router alone
    for (int i = 0; i < hp->n_block; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.ffn_gate_inp.weight", i);
        hp->n_ff_exp[i] = hp->n_expert > 0 && b->has_tensor(b, name) ? hp->n_ff[i] : 0;
    }
    return arch_require(hp->ssm_inner == 2 * hp->n_embd, b, "the inner size must be twice the embedding's");
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.recurrent = blk_mamba1, .moe = {.gate = GATE_SOFTMAX}});
}

const struct arch arch_jamba = {
    .name = "jamba",
    .flags = ARCH_HYBRID,
    .rope = LLAMA_ROPE_TYPE_NONE,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .state_r = "(k-1)*I",
    .state_s = "N*I",
    .nodes = 96,
    .layer = layer,
};
