// minicpm3: latent attention without absorption; constant scales on embeddings, branches and the last state.
#include "arch/arch.h"

#include <math.h>

static const struct arch_key keys[] = {
    K_RMS,
    {"attention.q_lora_rank", HP_n_lora_q, REQ, 0},
    {"attention.kv_lora_rank", HP_n_lora_kv, REQ, 0},
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_ROPE_LONG,
    T_NORM(attn_norm),
    {SLOT_attn_q_a, "E,ql", 0, 0, 0, 0, 0},
    {SLOT_attn_q_a_norm, "ql", 0, 0, 0, 0, 0},
    {SLOT_attn_q_b, "ql,H*D", 0, 0, 0, 0, 0},
    {SLOT_attn_kv_a_mqa, "E,r+R", 0, 0, 0, 0, 0},
    {SLOT_attn_kv_a_norm, "r", 0, 0, 0, 0, 0},
    {SLOT_attn_kv_b, "r,H*(D-R+Dv)", 0, 0, 0, 0, 0},
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN,
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static struct ggml_tensor *embed(struct graph *g) { return blk_embed(g, 12.0f); }

static struct ggml_tensor *mixer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_mla(g, l, x, il, &(struct mla_opts){0});
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.mixer = mixer, .residual = 1.4f / sqrtf((float) g->hp->n_layer)});
}

static void head(struct graph *g, struct ggml_tensor *x) {
    // a scale of the state is one of the logits
    blk_head(g, x, &(struct head_opts){.scale = 256.0f / (float) g->hp->n_embd});
}

const struct arch arch_minicpm3 = {
    .name = "minicpm3",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .cache_k = "H*D",
    .cache_v = "H*Dv",
    .nodes = 96,
    .keys = keys,
    .tensors = tensors,
    .embed = embed,
    .layer = layer,
    .head_fn = head,
};
