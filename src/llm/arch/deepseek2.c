// deepseek2: DeepSeek-V2, V3 and R1: latent attention, a few dense layers, then many small experts with shared ones (arXiv 2405.04434).
// mistral4: the same but for what YaRN's multiplier does.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    K_LEAD,
    {"attention.q_lora_rank", HP_n_lora_q, "0", 0},
    {"attention.kv_lora_rank", HP_n_lora_kv, REQ, 0},
    {"attention.key_length_mla", HP_n_head_k_mla, "0", 0},
    {"attention.value_length_mla", HP_n_head_v_mla, "0", 0},
    K_FX(REQ),
    K_NSH(REQ),
    K_WSCALE,
    K_WNORM,
    K_GATING("0"),
    {"rope.scaling.yarn_log_multiplier", HP_rope_yarn_log_mul, "0", 0},
    {"attention.temperature_scale", HP_f_temp_scale, "0", 0},
    {"attention.temperature_length", HP_f_temp_length, "0", 0},
    {NULL, 0, NULL, 0},
};

// kd > 0: the absorbed form, whose cache holds latent vectors and one rotary part for all heads
static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    {SLOT_attn_q_a, "E,ql", 0, "ql>0", 0, 0, 0},
    {SLOT_attn_q_a_norm, "ql", 0, "ql>0", 0, 0, 0},
    {SLOT_attn_q_b, "ql,H*(kd+(kd==0)*D)", 0, "ql>0", 0, 0, 0},
    {SLOT_attn_q, "E,H*(kd+(kd==0)*D)", 0, "ql==0", 0, 0, 0},
    {SLOT_attn_kv_a_mqa, "E,r+R", 0, 0, 0, 0, 0},
    {SLOT_attn_kv_a_norm, "r", 0, 0, 0, 0, 0},
    {SLOT_attn_k_b, "kd-R,r,H", 0, "kd>0", 0, 0, 0},
    {SLOT_attn_v_b, "r,vd,H", 0, "kd>0", 0, 0, 0},
    {SLOT_attn_kv_b, "r,H*(D-R+Dv)", 0, "kd==0", 0, 0, 0},
    {SLOT_attn_output, "H*(vd+(kd==0)*Dv),E", T_SCALE, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN_WHEN("i<lead"),
    T_ROUTER("i>=lead"),
    T_EXP_PROBS_B(T_OPT, "i>=lead"),
    T_EXPERTS_MERGED("Fx", 0, "i>=lead"),
    T_SHEXP("Fx*nsh", 0, "i>=lead"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

// Both forms of latent attention.
static enum err setup(struct hparams *hp, const struct model_build *b) {
    const bool lite = hp->n_block == 26 || hp->n_block == 27 || (hp->n_block == 48 && hp->n_vocab == 128256);
    const bool flash = (hp->n_block == 47 || hp->n_block == 48) && hp->n_vocab == 154880;
    if (lite) hp->n_lora_q = 0;
    if (!hp->expert_gating) hp->expert_gating = flash ? GATE_SIGMOID : GATE_SOFTMAX;
    if (!hp->n_head_k_mla || !hp->n_head_v_mla) hp->n_head_k_mla = hp->n_head_v_mla = 0;
    const int kd = hp->n_head_k_mla ? hp->n_head_k_mla : hp->n_embd_head_k[0];
    TRY(arch_require(kd > hp->n_rot[0], b, "a head of the keys must be larger than its rotary part"));
    TRY(arch_require(!hp->n_head_k_mla || hp->n_head_kv[0] == 1, b,
                     "the absorbed form of latent attention has one key head"));
    return ERR_OK;
}

// Its magnitude is left out of the rotation when there is a multiplier.
static enum err setup_deepseek2(struct hparams *hp, const struct model_build *b) {
    hp->rope_mag_log = hp->rope_yarn_log_mul != 0 ? 0.1f : 0.0f;
    return setup(hp, b);
}

static enum err setup_mistral4(struct hparams *hp, const struct model_build *b) {
    hp->rope_mag_log = hp->rope_yarn_log_mul;
    return setup(hp, b);
}

static struct ggml_tensor *mixer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct mla_opts o = {.yarn_scale = true};
    if (g->hp->f_temp_scale != 0) o.temp = in_temperature(g, g->hp->f_temp_scale, g->hp->f_temp_length, 0);
    return blk_mla(g, l, x, il, &o);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_pre_norm(g, l, x, il, &(struct form_opts){.mixer = mixer, .moe = moe_of_file(g)});
}

const struct arch arch_deepseek2 = {
    .name = "deepseek2",
    .rope = LLAMA_ROPE_TYPE_NORM,
    .keys = keys,
    .tensors = tensors,
    .setup = setup_deepseek2,
    .cache_k = "(kd>0)*(r+R)+(kd==0)*H*D",
    .cache_v = "(kd==0)*H*Dv",
    .nodes = 128,
    .layer = layer,
};

const struct arch arch_mistral4 = {
    .name = "mistral4",
    .rope = LLAMA_ROPE_TYPE_NORM,
    .keys = keys,
    .tensors = tensors,
    .setup = setup_mistral4,
    .cache_k = "(kd>0)*(r+R)+(kd==0)*H*D",
    .cache_v = "(kd==0)*H*Dv",
    .nodes = 128,
    .layer = layer,
};
