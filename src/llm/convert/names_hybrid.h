// Names of recurrent and hybrid models. Included by config.c alone, beside names_moe.h, whose lists it uses.
#pragma once

#include "convert/names_moe.h"

static const struct ckpt_name names_mamba2[] = {
    N(token_embd, "backbone.embeddings|backbone.embedding"),
    N(output_norm, "backbone.norm_f"),
    N(attn_norm, "norm"),
    N(ssm_a, "mixer.A_log"),
    N(ssm_d, "mixer.D"),
    N(ssm_dt, "mixer.dt_bias"),
    END,
};

static const struct ckpt_name names_nemotron_h[] = {
    N(token_embd, "backbone.embeddings"),
    N(output_norm, "backbone.norm_f"),
    N(attn_norm, "norm"),
    N(ssm_a, "mixer.A_log"),
    N(ssm_d, "mixer.D"),
    N(ssm_dt, "mixer.dt_bias"),
    N(attn_q, "mixer.q_proj"),
    N(attn_k, "mixer.k_proj"),
    N(attn_v, "mixer.v_proj"),
    N(attn_output, "mixer.o_proj"),
    N(ffn_up, "mixer.up_proj"),
    N(ffn_down, "mixer.down_proj"),
    N(ffn_gate_inp, "mixer.gate"),
    N(exp_probs_b, "mixer.gate.e_score_correction_bias"),
    N(ffn_up_exps, "mixer.experts.{}.up_proj"),
    N(ffn_down_exps, "mixer.experts.{}.down_proj"),
    N(ffn_up_shexp, "mixer.shared_experts.up_proj"),
    N(ffn_down_shexp, "mixer.shared_experts.down_proj"),
    N(ffn_latent_down, "mixer.fc1_latent_proj"),
    N(ffn_latent_up, "mixer.fc2_latent_proj"),
    END,
};

#define NAMES_MAMBA(at)                                                                                                     \
    N(ssm_conv1d, at ".conv1d"), N(ssm_a, at ".A_log"), N(ssm_d, at ".D"), N(ssm_norm, at ".norm"),                         \
        N(ssm_out, at ".out_proj")

// norms are stored less what they begin as: 1, or so that the branches begin small
#define NAMES_PLAMO                                                                                                         \
    NO(output_norm, "model.norm", "+1"), NO(attn_norm, "pre_mixer_norm", "+1"), NO(ffn_norm, "pre_mlp_norm", "+1"),         \
        NO(post_attn_norm, "post_mixer_norm", "+0.2"), NO(post_ffw_norm, "post_mlp_norm", "+0.08944271909999159"),          \
        N(attn_qkv, "mixer.qkv_proj"), N(attn_output, "mixer.o_proj"), N(ffn_up, "mlp.gate_up_proj")

static const struct ckpt_name names_plamo2[] = {
    NAMES_PLAMO,
    N(attn_q_norm, "mixer.q_weight"),
    N(attn_k_norm, "mixer.k_weight"),
    N(ssm_x, "mixer.bcdt_proj"),
    N(ssm_dt, "mixer.dt_proj"),
    N(ssm_dt, "bias:mixer.dt_bias!"),
    N(ssm_a, "mixer.A_log"),
    N(ssm_d, "mixer.D"),
    N(ssm_dt_norm, "mixer.dt_norm_weight"),
    N(ssm_b_norm, "mixer.B_norm_weight"),
    N(ssm_c_norm, "mixer.C_norm_weight"),
    END,
};

static const struct ckpt_name names_plamo3[] = {
    NAMES_PLAMO,
    NO(attn_q_norm, "mixer.q_norm", "+1"),
    NO(attn_k_norm, "mixer.k_norm", "+1"),
    END,
};

// what mixes a token with the one before is stored the other way round
#define TIME "attention."
static const struct ckpt_name names_rwkv6[] = {
    N(token_embd, "rwkv.embeddings"),
    N(token_embd_norm, "rwkv.blocks.0.pre_ln"),
    N(output_norm, "rwkv.ln_out"),
    N(output, "head"),
    N(attn_norm, "ln1"),
    N(attn_norm_2, "ln2"),
    NV(time_mix_w1, TIME "time_maa_w1", "E,5*tme > 10"),
    NV(time_mix_w2, TIME "time_maa_w2", "5,tme,E > 021"),
    N(time_mix_lerp_x, TIME "time_maa_x"),
    N(time_mix_lerp_fused, TIME "time_maa_w&" TIME "time_maa_k&" TIME "time_maa_v&" TIME "time_maa_r&" TIME "time_maa_g"),
    N(time_mix_first, TIME "time_faaaa"),
    N(time_mix_decay, TIME "time_decay"),
    NV(time_mix_decay_w1, TIME "time_decay_w1", "E,tde > 10"),
    NV(time_mix_decay_w2, TIME "time_decay_w2", "tde,E > 10"),
    N(time_mix_key, TIME "key"),
    N(time_mix_value, TIME "value"),
    N(time_mix_receptance, TIME "receptance"),
    N(time_mix_gate, TIME "gate"),
    N(time_mix_output, TIME "output"),
    N(time_mix_ln, TIME "ln_x"),
    N(channel_mix_lerp_k, "feed_forward.time_maa_k"),
    N(channel_mix_lerp_r, "feed_forward.time_maa_r"),
    N(channel_mix_key, "feed_forward.key"),
    N(channel_mix_value, "feed_forward.value"),
    N(channel_mix_receptance, "feed_forward.receptance"),
    END,
};
#undef TIME

// the first layer mixes in no values, but the file has a place for that: it takes what is there for another purpose
#define LOW_RANK(x, at)                                                                                                     \
    N(time_mix_##x##0, at ".lora.2.bias!|attn.a_lora.lora.2.bias!"), N(time_mix_##x##1, at ".lora.0|attn.a_lora.lora.0"),   \
        N(time_mix_##x##2, at ".lora.2|attn.a_lora.lora.2")
static const struct ckpt_name names_rwkv7[] = {
    N(token_embd, "model.embeddings"),
    N(token_embd_norm, "model.layers.0.pre_norm"),
    N(attn_norm, "attn_norm"),
    N(attn_norm_2, "ffn_norm"),
    LOW_RANK(w, "attn.w_lora"),
    LOW_RANK(a, "attn.a_lora"),
    LOW_RANK(v, "attn.v_lora"),
    N(time_mix_g1, "attn.g_lora.lora.0"),
    N(time_mix_g2, "attn.g_lora.lora.2"),
    N(time_mix_lerp_fused, "attn.x_r&attn.x_w&attn.x_k&attn.x_v&attn.x_a&attn.x_g|attn.x_x"),
    N(time_mix_k_k, "attn.k_k"),
    N(time_mix_k_a, "attn.k_a"),
    N(time_mix_r_k, "attn.r_k"),
    N(time_mix_key, "attn.k_proj"),
    N(time_mix_value, "attn.v_proj"),
    N(time_mix_receptance, "attn.r_proj"),
    N(time_mix_output, "attn.o_proj"),
    N(time_mix_ln, "attn.g_norm"),
    N(channel_mix_lerp_k, "ffn.x_k"),
    N(channel_mix_key, "ffn.key"),
    N(channel_mix_value, "ffn.value"),
    END,
};

static const struct ckpt_name names_jamba[] = {
    N(output_norm, "model.final_layernorm"),
    N(ffn_norm, "pre_ff_layernorm"),
    NAMES_MAMBA("mamba"),
    N(ssm_in, "mamba.in_proj"),
    N(ssm_x, "mamba.x_proj"),
    N(ssm_dt, "mamba.dt_proj"),
    N(ssm_dt_norm, "mamba.dt_layernorm"),
    N(ssm_b_norm, "mamba.b_layernorm"),
    N(ssm_c_norm, "mamba.c_layernorm"),
    N(ffn_gate, "feed_forward.gate_proj"),
    N(ffn_up, "feed_forward.up_proj"),
    N(ffn_down, "feed_forward.down_proj"),
    N(ffn_gate_inp, "feed_forward.router"),
    N(ffn_gate_exps, "feed_forward.experts.{}.gate_proj"),
    N(ffn_up_exps, "feed_forward.experts.{}.up_proj"),
    N(ffn_down_exps, "feed_forward.experts.{}.down_proj"),
    END,
};

// The file knows no multipliers: they are part of its weights. Embedding and head have different ones, so both are written.
static const struct ckpt_name names_falcon_h1[] = {
    NO(token_embd, "model.embed_tokens", "*embedding_multiplier"),
    NO(output, "lm_head|model.embed_tokens", "*lm_head_multiplier"),
    N(output_norm, "model.final_layernorm"),
    N(ffn_norm, "pre_ff_layernorm"),
    NO(attn_q, "self_attn.q_proj", "*attention_in_multiplier"),
    NO(attn_k, "self_attn.k_proj", "*attention_in_multiplier*key_multiplier"),
    NO(attn_v, "self_attn.v_proj", "*attention_in_multiplier"),
    NO(attn_output, "self_attn.o_proj", "*attention_out_multiplier"),
    NVO(ssm_in, "mamba.in_proj", "@0;I,E&@I*E;I,E&@2*I*E;ng*N,E&@(2*I+ng*N)*E;ng*N,E&@(2*I+2*ng*N)*E;nh,E",
        "*ssm_in_multiplier*ssm_multipliers[0]&*ssm_in_multiplier*ssm_multipliers[1]&*ssm_in_multiplier*ssm_multipliers[2]&"
        "*ssm_in_multiplier*ssm_multipliers[3]&*ssm_in_multiplier*ssm_multipliers[4]"),
    N(ssm_conv1d, "mamba.conv1d"),
    N(ssm_a, "mamba.A_log"),
    N(ssm_d, "mamba.D"),
    N(ssm_dt, "mamba.dt_bias"),
    N(ssm_norm, "mamba.norm"),
    NO(ssm_out, "mamba.out_proj", "*ssm_out_multiplier"),
    NO(ffn_gate, "feed_forward.gate_proj", "*mlp_multipliers[0]"),
    N(ffn_up, "feed_forward.up_proj"),
    NO(ffn_down, "feed_forward.down_proj", "*mlp_multipliers[1]"),
    END,
};

static const struct ckpt_name names_granitehybrid[] = {
    NAMES_MAMBA("mamba"),
    N(ssm_in, "mamba.in_proj"),
    N(ssm_dt, "mamba.dt_bias"),
    NAMES_GRANITE_MOE,
    NV(ffn_gate_shexp, "shared_mlp.input_linear", "2*Fs[0:Fs],E"),
    NV(ffn_up_shexp, "shared_mlp.input_linear", "2*Fs[Fs:2*Fs],E"),
    N(ffn_down_shexp, "shared_mlp.output_linear"),
    NV(ffn_gate, "shared_mlp.input_linear", "2*F[0:F],E"),
    NV(ffn_up, "shared_mlp.input_linear", "2*F[F:2*F],E"),
    N(ffn_down, "shared_mlp.output_linear"),
    END,
};

static const struct ckpt_name names_lfm2[] = {
    N(output_norm, "model.embedding_norm"),
    N(attn_norm, "operator_norm"),
    N(ffn_norm, "ffn_norm"),
    N(attn_q_norm, "self_attn.q_layernorm"),
    N(attn_k_norm, "self_attn.k_layernorm"),
    N(attn_output, "self_attn.out_proj"),
    N(ffn_gate, "feed_forward.w1"),
    N(ffn_down, "feed_forward.w2"),
    N(ffn_up, "feed_forward.w3"),
    N(ffn_gate_inp, "feed_forward.gate"),
    N(exp_probs_b, "feed_forward.expert_bias"),
    NAMES_W123("feed_forward"),
    END,
};

// a draft head's layer is of a list of its own
#define NAMES_MTP                                                                                                           \
    N(nextn_eh_proj, "^mtp.fc"), N(nextn_enorm, "^mtp.pre_fc_norm_embedding"), N(nextn_hnorm, "^mtp.pre_fc_norm_hidden"),   \
        N(nextn_shared_head_norm, "^mtp.norm")

// queries, keys, values and gates lie by groups: for each key head its query, itself, then its value heads and their gates
#define PER_GROUP "2*N+2*N*nh/ng"
static const struct ckpt_name names_qwen3next[] = {
    NAMES_MTP,
    NV(attn_qkv, "linear_attn.in_proj_qkvz",
       "ng," PER_GROUP "[0:N],E&ng," PER_GROUP "[N:2*N],E&ng," PER_GROUP "[2*N:2*N+N*nh/ng],E"),
    NV(attn_gate, "linear_attn.in_proj_qkvz", "ng," PER_GROUP "[2*N+N*nh/ng:" PER_GROUP "],E"),
    N(ssm_ba, "linear_attn.in_proj_ba"),
    N(ssm_conv1d, "linear_attn.conv1d"),
    N(ssm_dt, "linear_attn.dt_bias"),
    N(ssm_a, "linear_attn.A_log"),
    NO(ssm_norm, "linear_attn.norm", "="),
    N(ssm_out, "linear_attn.out_proj"),
    END,
};

// the file's value heads go round the key heads, the checkpoint's stay with theirs
#define NAMES_QWEN35                                                                                                        \
    NV(attn_qkv, "linear_attn.in_proj_qkv", "@0;2*ng*N,E&@2*ng*N*E;ng,nh/ng,N,E > 1023"),                                   \
        NV(attn_gate, "linear_attn.in_proj_z", "ng,nh/ng,N,E > 1023"),                                                      \
        NV(ssm_beta, "linear_attn.in_proj_b", "ng,nh/ng,E > 102"),                                                          \
        NV(ssm_alpha, "linear_attn.in_proj_a", "ng,nh/ng,E > 102"),                                                         \
        NV(ssm_conv1d, "linear_attn.conv1d", "@0;2*ng*N,k&@2*ng*N*k;ng,nh/ng,N,k > 1023"),                                  \
        NV(ssm_dt, "linear_attn.dt_bias", "ng,nh/ng > 10"), NV(ssm_a, "linear_attn.A_log", "ng,nh/ng > 10"),                \
        NO(ssm_norm, "linear_attn.norm", "="), NV(ssm_out, "linear_attn.out_proj", "E,ng,nh/ng,N > 0213")

static const struct ckpt_name names_qwen35[] = {NAMES_MTP, NAMES_QWEN35, END};
static const struct ckpt_name names_qwen35moe[] = {
    NAMES_MTP,
    NAMES_QWEN35,
    N(ffn_gate_exps, "mlp.experts.{}.gate_proj"),
    N(ffn_up_exps, "mlp.experts.{}.up_proj"),
    N(ffn_down_exps, "mlp.experts.{}.down_proj"),
    NAMES_FUSED("mlp.experts", "Fx"),
    END,
};

static const struct ckpt_name names_minimax01[] = {
    N(attn_gate, "self_attn.output_gate"),
    N(attn_norm_2, "self_attn.norm"),
    N(attn_output, "self_attn.o_proj|self_attn.out_proj"),
    END,
};

// scores of residuals are a norm's weights times a projection's; published logarithms have zeros behind those of the heads
static const struct ckpt_name names_kimi[] = {
    NO(output_res_score, "model.output_attn_res_norm&model.output_attn_res_proj", "product"),
    NO(attn_res_score, "self_attention_res_norm&self_attention_res_proj", "product"),
    NO(ffn_res_score, "mlp_res_norm&mlp_res_proj", "product"),
    N(attn_gate, "self_attn.g_proj"),
    N(ffn_routed_down, "block_sparse_moe.routed_expert_down_proj"),
    N(ffn_routed_up, "block_sparse_moe.routed_expert_up_proj"),
    N(ffn_routed_norm, "block_sparse_moe.routed_expert_norm"),
    NAMES_MLA,
    NV(ssm_a, "self_attn.A_log", "@0;H"),
    N(ffn_gate, "mlp.gate_proj|block_sparse_moe.gate_proj"),
    N(ffn_up, "mlp.up_proj|block_sparse_moe.up_proj"),
    N(ffn_down, "mlp.down_proj|block_sparse_moe.down_proj"),
    END,
};

static const struct ckpt_name names_bailingmoe3[] = {
    NV(attn_k_b, "attention.kv_b_proj", "H,kd-R+vd[0:kd-R],r > 021"),
    NV(attn_v_b, "attention.kv_b_proj", "H,kd-R+vd[kd-R:kd-R+vd],r"),
    N(attn_q_a, "attention.q_a_proj"),
    N(attn_q_a_norm, "attention.q_a_layernorm"),
    N(attn_q_b, "attention.q_b_proj"),
    N(attn_kv_a_mqa, "attention.kv_a_proj_with_mqa"),
    N(attn_kv_a_norm, "attention.kv_a_layernorm"),
    N(attn_gate, "attention.g_proj"),
    N(attn_output, "attention.dense"),
    N(attn_q, "attention.q_proj"),
    N(attn_k, "attention.k_proj"),
    N(attn_v, "attention.v_proj"),
    N(ssm_conv1d_q, "attention.q_conv1d"),
    N(ssm_conv1d_k, "attention.k_conv1d"),
    N(ssm_conv1d_v, "attention.v_conv1d"),
    N(ssm_beta, "attention.b_proj"),
    N(ssm_dt, "attention.dt_bias"),
    N(ssm_norm, "attention.o_norm"),
    NO(ssm_a, "attention.A_log", "exp"),
    N(ssm_f_a, "attention.f_proj"),
    N(ssm_g_a, "attention.g_proj"),
    END,
};
