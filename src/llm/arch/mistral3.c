// mistral3: Ministral 3 and Mistral Small; llama with YaRN keys and a temperature that grows with the position.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    {"attention.temperature_scale", HP_f_temp_scale, "0", 0},
    {"rope.scaling.yarn_beta_fast", HP_rope_beta_fast, "32", 0},
    {"rope.scaling.yarn_beta_slow", HP_rope_beta_slow, "1", 0},
    {"rope.scaling.yarn_log_multiplier", HP_rope_yarn_log_mul, "0", 0},
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_ROPE_FREQS,
    {SLOT_rope_factors_long, "R/2", T_OPT, "rtype==3", 0, 0, 0},
    {SLOT_rope_factors_short, "R/2", T_OPT, "rtype==3", 0, 0, 0},
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE | T_BIAS_OPT, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN_ANY(T_BIAS_OPT | T_SCALE, "X==0"),
    T_ROUTER("X>0"),
    T_EXPERTS_GATE("F", T_OPT | T_SCALE, T_SCALE, "X>0"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    if (hp->f_temp_scale != 0)
        TRY(arch_require(hp->rope_orig_ctx > 0, b, "a temperature needs rope.scaling.original_context_length"));
    hp->rope_mag_log = 0.1f * hp->rope_yarn_log_mul;
    return arch_whole_rotary(hp, b);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct form_opts o = {.moe = {.gate = GATE_SOFTMAX, .norm = true}};
    if (g->hp->f_temp_scale != 0) o.attn.temp = in_temperature(g, g->hp->f_temp_scale, (float) g->hp->rope_orig_ctx, 0);
    return blk_pre_norm(g, l, x, il, &o);
}

const struct arch arch_mistral3 = {
    .name = "mistral3",
    .flags = ARCH_HF_PERMUTED,
    .rope = LLAMA_ROPE_TYPE_NORM,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
