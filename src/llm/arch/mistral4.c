// mistral4: deepseek2 with YaRN by its own rule and a temperature that grows with the position.
#include "arch/arch.h"

#include <math.h>

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
    // the stored multiplier is a tenth of the one that counts; it divides the magnitude and multiplies the score scale
    const float q = 10.0f * hp->rope_yarn_log_mul, lf = hp->rope_f > 1 ? 0.1f * logf(hp->rope_f) : 0.0f;
    const bool yarn = hp->rope_scaling == LLAMA_ROPE_SCALING_TYPE_YARN;
    const float a = hp->rope_attn_factor * (1.0f + lf) / (yarn ? 1.0f + q * lf : 1.0f), mu = a * (1.0f + q * lf);
    if (yarn && q != 0) hp->rope_mag_div = 1.0f + q * lf;
    hp->f_attn_scale = mu * mu / sqrtf((float) kd);
    return ERR_OK;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const struct hparams *hp = g->hp;
    struct mla_opts o = {.scale = hp->f_attn_scale};
    if (hp->f_temp_scale != 0) o.temp = in_temperature(g, hp->f_temp_scale, hp->f_temp_length, 0);
    struct ggml_tensor *cur = blk_mla(g, l, blk_norm(g, x, &l->attn_norm, NORM_RMS), il, &o);
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    cur = blk_norm(g, x, &l->ffn_norm, NORM_RMS);
    return ggml_add(
        g->ctx,
        blk_network(g, l, cur, il,
                    &(struct form_opts){.moe = {.norm = g->hp->expert_weights_norm, .wscale = g->hp->expert_weights_scale}}),
        x);
}

const struct arch arch_mistral4 = {
    .name = "mistral4",
    .rope = LLAMA_ROPE_TYPE_NORM,
    .cache_k = "(kd>0)*(r+R)+(kd==0)*H*D",
    .cache_v = "(kd==0)*H*Dv",
    .nodes = 128,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
