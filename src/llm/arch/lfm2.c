// lfm2 and lfm2moe: gated short convolutions with a few layers of attention in between (arXiv 2511.23404).
#include "arch/arch.h"

#define K_SHORTCONV                                                                                                         \
    { "shortconv.l_cache", HP_shortconv_l, REQ, 0 }

static const struct arch_key keys[] = {K_RMS, K_SHORTCONV, K_SWA, {NULL, 0, NULL, 0}};

static const struct arch_key moe_keys[] = {
    K_RMS, K_SHORTCONV, K_LEAD, K_FX(REQ), K_GATING(REQ), {NULL, 0, NULL, 0},
};

// the last norm is named like the embedding's
#define COMMON                                                                                                              \
    T_EMBD, {SLOT_output_norm, "E", 0, 0, 0, "token_embd_norm", 0}, T_OUT_TIED, T_NORM(attn_norm), T_NORM(ffn_norm),        \
        T_QKV_WHEN("!rec"), T_O_WHEN("!rec"), {SLOT_attn_q_norm, "D", 0, "!rec", 0, 0, 0},                                  \
        {SLOT_attn_k_norm, "D", 0, "!rec", 0, 0, 0}, {SLOT_shortconv_in, "E,3*E", 0, "rec", 0, 0, 0},                       \
        {SLOT_shortconv_conv, "lc,E", 0, "rec", 0, 0, 0}, {                                                                 \
        SLOT_shortconv_out, "E,E", 0, "rec", 0, 0, 0                                                                        \
    }

static const struct arch_tensor tensors[] = {COMMON, T_FFN, {SLOT_NONE, NULL, 0, 0, 0, 0, 0}};

static const struct arch_tensor moe_tensors[] = {
    COMMON,
    T_FFN_WHEN("i<lead"),
    T_ROUTER("i>=lead"),
    T_EXP_PROBS_B(0, "i>=lead"),
    T_EXPERTS("Fx", 0, "i>=lead"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    arch_recurrent_by_kv(hp);
    if (hp->n_swa > 0) {  // then every layer of attention has the window
        hp->swa_kind = WINDOW_STANDARD;
        hparams_set(hp, HP_is_swa, -1, 1);
    }
    return arch_require(hp->shortconv_l > 0, b, "its convolutions have no length");
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(
        g, l, x, il,
        &(struct form_opts){.recurrent = blk_short_conv, .attn = {.qk_norm = QK_NORM_HEAD}, .moe = {.norm = true}});
}

#define LFM2(id, key_table, tensor_table)                                                                                   \
    const struct arch arch_##id = {                                                                                         \
        .name = #id,                                                                                                        \
        .flags = ARCH_HYBRID,                                                                                               \
        .rope = LLAMA_ROPE_TYPE_NEOX,                                                                                       \
        .keys = key_table,                                                                                                  \
        .tensors = tensor_table,                                                                                            \
        .setup = setup,                                                                                                     \
        .state_r = "(lc-1)*E",                                                                                              \
        .layer = layer,                                                                                                     \
    }

LFM2(lfm2, keys, tensors);
LFM2(lfm2moe, moe_keys, moe_tensors);
