// Names of mixtures of experts and of latent attention. Included by config.c alone, after names.h.
#pragma once

#include "convert/names.h"

// kv_b holds, for each head, the rows of its keys and of its values: the file keeps them apart, the keys' transposed
#define NAMES_MLA                                                                                                           \
    NV(attn_k_b, "self_attn.kv_b_proj", "H,kd-R+vd[0:kd-R],r > 021"),                                                       \
        NV(attn_v_b, "self_attn.kv_b_proj", "H,kd-R+vd[kd-R:kd-R+vd],r")
#define NAMES_W123(at)                                                                                                      \
    N(ffn_gate_exps, at ".experts.{}.w1"), N(ffn_down_exps, at ".experts.{}.w2"), N(ffn_up_exps, at ".experts.{}.w3")
// gate and up of an expert in one matrix, halves one after the other; as [expert, out, in] or [expert, in, out]
#define NAMES_FUSED(at, wd)                                                                                                 \
    NV(ffn_gate_exps, at ".gate_up_proj!", "X,2*" wd "[0:" wd "],E~X,E,2*" wd "[0:" wd "] > 021"),                          \
        NV(ffn_up_exps, at ".gate_up_proj!", "X,2*" wd "[" wd ":2*" wd "],E~X,E,2*" wd "[" wd ":2*" wd "] > 021"),          \
        NV(ffn_down_exps, at ".down_proj!", "X,E," wd "~X," wd ",E > 021")

static const struct ckpt_name names_mla[] = {NAMES_MLA, END};

static const struct ckpt_name names_mistral4[] = {
    NAMES_MLA,
    N(ffn_gate_exps, "mlp.experts.{}.gate_proj"),
    N(ffn_up_exps, "mlp.experts.{}.up_proj"),
    N(ffn_down_exps, "mlp.experts.{}.down_proj"),
    NAMES_FUSED("mlp.experts", "Fx"),
    END,
};

// gate and up interleaved row by row; published as MXFP4, written by training as [expert, in, out]
static const struct ckpt_name names_gpt_oss[] = {
    N(ffn_gate_inp, "mlp.router"),
    NV(ffn_gate_exps, "mlp.experts.gate_up_proj.mxfp4!", "X,Fx,2[0:1],E"),
    NV(ffn_gate_exps, "mlp.experts.gate_up_proj!", "X,E,Fx,2[0:1] > 0231"),
    NV(ffn_gate_exps, "bias:mlp.experts.gate_up_proj_bias!", "X,Fx,2[0:1]"),
    NV(ffn_up_exps, "mlp.experts.gate_up_proj.mxfp4!", "X,Fx,2[1:2],E"),
    NV(ffn_up_exps, "mlp.experts.gate_up_proj!", "X,E,Fx,2[1:2] > 0231"),
    NV(ffn_up_exps, "bias:mlp.experts.gate_up_proj_bias!", "X,Fx,2[1:2]"),
    N(ffn_down_exps, "mlp.experts.down_proj.mxfp4!"),
    NV(ffn_down_exps, "mlp.experts.down_proj!", "X,Fx,E > 021"),
    N(ffn_down_exps, "bias:mlp.experts.down_proj_bias!"),
    END,
};

static const struct ckpt_name names_llama4[] = {
    N(ffn_gate, "feed_forward.gate_proj"),
    N(ffn_up, "feed_forward.up_proj"),
    N(ffn_down, "feed_forward.down_proj"),
    N(ffn_gate_inp, "feed_forward.router"),
    NAMES_FUSED("feed_forward.experts", "Fx"),
    N(ffn_gate_shexp, "feed_forward.shared_expert.gate_proj"),
    N(ffn_up_shexp, "feed_forward.shared_expert.up_proj"),
    N(ffn_down_shexp, "feed_forward.shared_expert.down_proj"),
    END,
};

static const struct ckpt_name names_qwen3vlmoe[] = {
    N(ffn_gate_exps, "mlp.experts.{}.gate_proj"),
    N(ffn_up_exps, "mlp.experts.{}.up_proj"),
    N(ffn_down_exps, "mlp.experts.{}.down_proj"),
    NAMES_FUSED("mlp.experts", "Fx"),
    END,
};

#define NAMES_GRANITE_MOE                                                                                                   \
    N(ffn_gate_inp, "block_sparse_moe.router.layer|block_sparse_moe.router"),                                               \
        NV(ffn_gate_exps, "block_sparse_moe.input_linear|block_sparse_moe.experts.gate_up_proj", "X,2*F[0:F],E"),           \
        NV(ffn_up_exps, "block_sparse_moe.input_linear|block_sparse_moe.experts.gate_up_proj", "X,2*F[F:2*F],E"),           \
        N(ffn_down_exps, "block_sparse_moe.output_linear|block_sparse_moe.experts.down_proj")

static const struct ckpt_name names_granitemoe[] = {
    NAMES_GRANITE_MOE,
    NV(ffn_gate_shexp, "shared_mlp.input_linear", "2*Fs[0:Fs],E"),
    NV(ffn_up_shexp, "shared_mlp.input_linear", "2*Fs[Fs:2*Fs],E"),
    N(ffn_down_shexp, "shared_mlp.output_linear"),
    END,
};

static const struct ckpt_name names_granite_swa[] = {
    NAMES_GRANITE_MOE,
    N(ffn_up_shexp, "shared_mlp.input_linear"),
    N(ffn_down_shexp, "shared_mlp.output_linear"),
    END,
};

// experts lie in one matrix, row by row; w2 is stored the other way round
static const struct ckpt_name names_dbrx[] = {
    N(token_embd, "wte"),
    N(output_norm, "norm_f"),
    N(attn_norm, "norm_attn_norm.norm_1"),
    N(ffn_norm, "norm_attn_norm.norm_2"),
    N(attn_qkv, "norm_attn_norm.attn.Wqkv"),
    N(attn_output, "norm_attn_norm.attn.out_proj"),
    N(ffn_gate_inp, "ffn.router.layer"),
    NV(ffn_gate_exps, "ffn.experts.mlp.w1", "X,F,E"),
    NV(ffn_up_exps, "ffn.experts.mlp.v1", "X,F,E"),
    NV(ffn_down_exps, "ffn.experts.mlp.w2", "X,F,E > 021"),
    END,
};

static const struct ckpt_name names_afmoe[] = {
    N(ffn_norm, "pre_mlp_layernorm"),
    N(post_ffw_norm, "post_mlp_layernorm"),
    N(ffn_gate_inp, "mlp.router.gate"),
    END,
};

static const struct ckpt_name names_hy_v3[] = {
    N(ffn_gate_inp, "mlp.router.gate"),
    N(ffn_gate_shexp, "mlp.shared_mlp.gate_proj"),
    N(ffn_up_shexp, "mlp.shared_mlp.up_proj"),
    N(ffn_down_shexp, "mlp.shared_mlp.down_proj"),
    END,
};

static const struct ckpt_name names_laguna[] = {
    N(attn_gate, "self_attn.g_proj"),
    N(exp_probs_b, "mlp.experts.e_score_correction_bias"),
    END,
};

static const struct ckpt_name names_bailingmoe[] = {
    N(attn_qkv, "attention.query_key_value"),
    N(attn_output, "attention.dense"),
    N(attn_q_norm, "attention.query_layernorm"),
    N(attn_k_norm, "attention.key_layernorm"),
    N(nextn_shared_head_norm, "final_layernorm|shared_head.norm"),
    END,
};

static const struct ckpt_name names_smallthinker[] = {
    N(ffn_gate_inp, "block_sparse_moe.primary_router"),
    N(ffn_gate_exps, "block_sparse_moe.experts.{}.gate"),
    N(ffn_up_exps, "block_sparse_moe.experts.{}.up"),
    N(ffn_down_exps, "block_sparse_moe.experts.{}.down"),
    END,
};

static const struct ckpt_name names_grok[] = {
    N(output_norm, "model.norm.scale!|model.norm"),
    N(attn_norm, "pre_attn_norm.scale!|pre_attn_norm"),
    N(attn_output_norm, "post_attn_norm.scale!|post_attn_norm"),
    N(ffn_norm, "pre_moe_norm.scale!|pre_moe_norm"),
    N(layer_output_norm, "post_moe_norm.scale!|post_moe_norm"),
    N(attn_q, "attn.q_proj"),
    N(attn_k, "attn.k_proj"),
    N(attn_v, "attn.v_proj"),
    N(attn_output, "attn.o_proj"),
    N(ffn_gate_inp, "moe_block.gate"),
    N(ffn_gate_exps, "moe_block.experts.{}.linear"),
    N(ffn_up_exps, "moe_block.experts.{}.linear_v"),
    N(ffn_down_exps, "moe_block.experts.{}.linear_1"),
    END,
};

static const struct ckpt_name names_arctic[] = {
    N(ffn_gate, "residual_mlp.w1"),
    N(ffn_down, "residual_mlp.w2"),
    N(ffn_up, "residual_mlp.w3"),
    N(ffn_norm, "residual_layernorm"),
    N(ffn_norm_exps, "post_attention_layernorm"),
    END,
};

static const struct ckpt_name names_grovemoe[] = {
    N(ffn_gate_chexps, "mlp.chunk_experts.{X/epg}.gate_proj"),
    N(ffn_up_chexps, "mlp.chunk_experts.{X/epg}.up_proj"),
    N(ffn_down_chexps, "mlp.chunk_experts.{X/epg}.down_proj"),
    END,
};
