// qwen35 and qwen35moe: Qwen3.5: three gated delta nets to each layer of gated attention, four interleaved positions per token.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS, K_SECTIONS(REQ), K_SSM, K_SSM_GROUP, {"embedding_length_out", HP_n_embd_out, "E", 0}, {NULL, 0, NULL, 0},
};

static const struct arch_key moe_keys[] = {K_RMS, K_SECTIONS(REQ), K_FX_OR("F/U"),    K_FS("F"),
                                           K_SSM, K_SSM_GROUP,     {NULL, 0, NULL, 0}};

// nh value heads and ng key heads of size N
#define COMMON                                                                                                              \
    T_EMBD, T_OUT_NORM, T_OUT_TIED, T_NORM(attn_norm), {SLOT_ffn_norm, "E", 0, 0, 0, "post_attention_norm", 0},             \
        {SLOT_attn_qkv, "E,2*H*D+2*K*D", T_OPT | T_BIAS_OPT | T_SCALE, "!rec", 0, 0, 0},                                    \
        {SLOT_attn_q, "E,2*H*D", T_BIAS_OPT | T_SCALE, "!rec", SLOT_attn_qkv, 0, 0},                                        \
        {SLOT_attn_k, "E,K*D", T_BIAS_OPT | T_SCALE, "!rec", SLOT_attn_qkv, 0, 0},                                          \
        {SLOT_attn_v, "E,K*D", T_BIAS_OPT | T_SCALE, "!rec", SLOT_attn_qkv, 0, 0},                                          \
        {SLOT_attn_output, "H*D,E", T_SCALE, "!rec", 0, 0, 0}, {SLOT_attn_q_norm, "D", 0, "!rec", 0, 0, 0},                 \
        {SLOT_attn_k_norm, "D", 0, "!rec", 0, 0, 0}, T_GATED_DELTA

static const struct arch_tensor tensors[] = {
    COMMON,
    T_FFN_ANY(T_SCALE, 0),
    {SLOT_cls_out, "E,Eout", T_OPT | T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static const struct arch_tensor moe_tensors[] = {
    COMMON,
    T_ROUTER(0),
    T_EXPERTS_MERGED("Fx", T_SCALE, 0),
    {SLOT_ffn_gate_inp_shexp, "E", 0, 0, 0, 0, 0},
    T_SHEXP("Fs", T_SCALE, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    TRY(arch_require(hp->ssm_group > 0 && hp->ssm_dt_rank % hp->ssm_group == 0 &&
                         hp->ssm_inner == hp->ssm_dt_rank * hp->ssm_state,
                     b, "key heads must divide the value heads, which make up the inner size"));
    return arch_recurrent_by_key(hp, b, 4);
}

static struct ggml_tensor *mixer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_gated_delta(g, l, x, il, false);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct form_opts o = {
        .recurrent = mixer,
        .attn = {.qk_norm = QK_NORM_HEAD, .q_gated = true},
        .moe = {.gate = GATE_SOFTMAX, .norm = true},
    };
    return blk_pre_norm(g, l, x, il, &o);
}

// Embedding models project the states that come out, not those that give logits.
static void head(struct graph *g, struct ggml_tensor *x) {
    blk_head(g, x, &(struct head_opts){0});
    if (g->w->cls_out.w && g->n.want_embd) g->embd = blk_linear(g, &g->w->cls_out, g->embd);
}

#define QWEN35(id, key_table, tensor_table)                                                                                 \
    const struct arch arch_##id = {                                                                                         \
        .name = #id,                                                                                                        \
        .flags = ARCH_HYBRID | ARCH_PLAIN_HEAD,                                                                             \
        .rope = LLAMA_ROPE_TYPE_IMROPE,                                                                                     \
        .keys = key_table,                                                                                                  \
        .tensors = tensor_table,                                                                                            \
        .setup = setup,                                                                                                     \
        .state_r = "(k-1)*(2*ng*N+nh*N)",                                                                                   \
        .state_s = "nh*N*N",                                                                                                \
        .nodes = 160,                                                                                                       \
        .layer = layer,                                                                                                     \
        .head_fn = head,                                                                                                    \
    }

QWEN35(qwen35, keys, tensors);
QWEN35(qwen35moe, moe_keys, moe_tensors);
