// Names of models that select positions or have several residual streams. Included by config.c alone, after names_hybrid.h.
#pragma once

#include "convert/names_hybrid.h"

// two stacks; gates, queries, keys and values in one matrix, gate and up in another
static const struct ckpt_name names_hrm_text[] = {
    N(hrm_z_l_init, "model.z_L_init"),
    NV(attn_gate, "attn.gqkv_proj", "4*H*D[0:H*D],E"),
    N(attn_gate, "self_attn.gate_proj"),
    NV(attn_q, "attn.gqkv_proj", "4*H*D[H*D:2*H*D],E"),
    N(attn_q, "self_attn.q_proj"),
    NV(attn_k, "attn.gqkv_proj", "4*H*D[2*H*D:3*H*D],E"),
    N(attn_k, "self_attn.k_proj"),
    NV(attn_v, "attn.gqkv_proj", "4*H*D[3*H*D:4*H*D],E"),
    N(attn_v, "self_attn.v_proj"),
    N(attn_output, "attn.o_proj|self_attn.o_proj"),
    NV(ffn_gate, "mlp.gate_up_proj", "2*F[0:F],E"),
    N(ffn_gate, "mlp.gate_proj"),
    NV(ffn_up, "mlp.gate_up_proj", "2*F[F:2*F],E"),
    N(ffn_up, "mlp.up_proj"),
    END,
};

// the norms of queries and keys have no weights in checkpoints, but queries a factor that every value shares
static const struct ckpt_name names_muse_glimmer[] = {
    N(attn_q_norm, "=qk_scale_factor"),
    N(attn_k_norm, "=1"),
    N(ffn_norm, "pre_feedforward_layernorm"),
    NO(output_norm, "model.norm", "="),
    END,
};

#define NAMES_STREAMS(slot, fn, base, scale) N(slot##_fn, fn), N(slot##_base, base), N(slot##_scale, scale)

#define HY_STREAMS(at, old, what) "hc_pre." at ".hc_" what "|" at ".hc_" what "|" old "." what
#define HY_HEAD(what) "model.hc_pre.hc_head.hc_head_" what "|model.hc_head.hc_head_" what "|model.hc_head.hc_" what
static const struct ckpt_name names_hy_v4[] = {
    NAMES_MLA,
    N(attn_gate, "self_attn.linear_gate|self_attn.gate_proj"),
    N(attn_sinks, "self_attn.learnable_sink_param|self_attn.sinks"),
    NAMES_FUSED("mlp.experts", "Fx"),
    N(ffn_gate, "mlp.gate_proj|mlp.linear_gate"),
    N(ffn_gate_shexp, "mlp.shared_experts.gate_proj|mlp.shared_experts.linear_gate"),
    NAMES_STREAMS(hc_attn, HY_STREAMS("hc_attn_layer", "attn_hc", "fn"), HY_STREAMS("hc_attn_layer", "attn_hc", "base"),
                  HY_STREAMS("hc_attn_layer", "attn_hc", "scale")),
    NAMES_STREAMS(hc_ffn, HY_STREAMS("hc_mlp_layer", "ffn_hc", "fn"), HY_STREAMS("hc_mlp_layer", "ffn_hc", "base"),
                  HY_STREAMS("hc_mlp_layer", "ffn_hc", "scale")),
    NAMES_STREAMS(output_hc, HY_HEAD("fn"), HY_HEAD("base"), HY_HEAD("scale")),
    END,
};

// windowed layers have another geometry
#define DOTS_KD "(kd+swa*(kdw-kd))"
#define DOTS_VD "(vd+swa*(vdw-vd))"
#define DOTS_R "(r+swa*(rw-r))"
static const struct ckpt_name names_dots3note[] = {
    NV(attn_k_b, "self_attn.kv_b_proj", "H," DOTS_KD "-R+" DOTS_VD "[0:" DOTS_KD "-R]," DOTS_R " > 021"),
    NV(attn_v_b, "self_attn.kv_b_proj", "H," DOTS_KD "-R+" DOTS_VD "[" DOTS_KD "-R:" DOTS_KD "-R+" DOTS_VD "]," DOTS_R),
    NO(attn_q_a_norm, "self_attn.q_a_layernorm", "*{sqrt(E/ql)}"),  // the latents are made longer, which the file's norms do
    NO(attn_kv_a_norm, "self_attn.kv_a_layernorm", "*{sqrt(E/" DOTS_R ")}"),
    N(attn_k_norm, "self_attn.k_rope_only_layernorm"),
    N(attn_gate, "self_attn.g_proj"),
    N(ffn_gate_exps, "mlp.experts.{}.gate_proj"),
    N(ffn_up_exps, "mlp.experts.{}.up_proj"),
    N(ffn_down_exps, "mlp.experts.{}.down_proj"),
    NAMES_FUSED("mlp.experts", "Fx"),
    END,
};

static const struct ckpt_name names_glm5_next[] = {
    NAMES_MLA,
    N(idx_compressor_gate, "self_attn.indexer.index_kpool_compress_gate"),
    N(idx_compressor_ape, "self_attn.indexer.index_kpool_compress_ape"),
    N(ssm_a, "self_attn.A_log|self_attn.forget_gate.A_log"),
    NAMES_STREAMS(hc_attn, "hc_attn_fn|attn_hc.fn", "hc_attn_base|attn_hc.base", "hc_attn_scale|attn_hc.scale"),
    NAMES_STREAMS(hc_ffn, "hc_ffn_fn|ffn_hc.fn", "hc_ffn_base|ffn_hc.base", "hc_ffn_scale|ffn_hc.scale"),
    END,
};

static const struct ckpt_name names_minimax_m3[] = {
    N(idx_q_proj, "self_attn.index_q_proj|self_attn.indexer.q_proj"),
    N(idx_k_proj, "self_attn.index_k_proj|self_attn.indexer.k_proj"),
    N(idx_q_norm, "self_attn.index_q_norm|self_attn.indexer.q_norm"),
    N(idx_k_norm, "self_attn.index_k_norm|self_attn.indexer.k_norm"),
    END,
};

static const struct ckpt_name names_deepseek4[] = {
    N(token_embd, "embed|model.embed_tokens"),
    N(output_norm, "norm"),
    N(output, "head"),
    NAMES_STREAMS(output_hc, "hc_head_fn|hc_head.hc_fn", "hc_head_base|hc_head.hc_base", "hc_head_scale|hc_head.hc_scale"),
    NAMES_STREAMS(hc_attn, "hc_attn_fn", "hc_attn_base", "hc_attn_scale"),
    NAMES_STREAMS(hc_ffn, "hc_ffn_fn", "hc_ffn_base", "hc_ffn_scale"),
    N(attn_norm, "attn_norm"),
    N(attn_q_a, "attn.wq_a"),
    N(attn_q_a_norm, "attn.q_norm"),
    N(attn_q_b, "attn.wq_b"),
    N(attn_kv, "attn.wkv"),
    N(attn_kv_a_norm, "attn.kv_norm|attn.norm"),
    N(attn_sinks, "attn.attn_sink"),
    N(attn_output_a, "attn.wo_a"),
    N(attn_output_b, "attn.wo_b"),
    N(attn_compressor_kv, "attn.compressor.wkv"),
    N(attn_compressor_gate, "attn.compressor.wgate"),
    N(attn_compressor_ape, "attn.compressor.ape"),
    N(attn_compressor_norm, "attn.compressor.norm"),
    N(idx_compressor_kv, "attn.indexer.compressor.wkv"),
    N(idx_compressor_gate, "attn.indexer.compressor.wgate"),
    N(idx_compressor_ape, "attn.indexer.compressor.ape"),
    N(idx_compressor_norm, "attn.indexer.compressor.norm"),
    N(idx_proj, "attn.indexer.weights_proj"),
    N(idx_q_b, "attn.indexer.wq_b"),
    N(ffn_norm, "ffn_norm"),
    N(ffn_gate_inp, "ffn.gate"),
    N(exp_probs_b, "ffn.gate.bias!"),
    N(ffn_tid2eid, "ffn.gate.tid2eid"),
    NAMES_W123("ffn"),
    N(ffn_gate_shexp, "ffn.shared_experts.w1"),
    N(ffn_down_shexp, "ffn.shared_experts.w2"),
    N(ffn_up_shexp, "ffn.shared_experts.w3"),
    END,
};

#define NAMES_MIXER(slot, at)                                                                                               \
    NO(slot##_norm, at ".hc_norm", "+1"), N(slot##_down, at ".input_mix_weight_down"),                                      \
        N(slot##_up, at ".input_mix_weight_up")
static const struct ckpt_name names_qwen4exp[] = {
    NAMES_QWEN35,
    NAMES_MIXER(hc_attn, "attn_hyper_connection"),
    N(hc_attn_inject, "attn_hyper_connection.block_inject_weight"),
    NAMES_MIXER(hc_ffn, "mlp_hyper_connection"),
    N(hc_ffn_inject, "mlp_hyper_connection.block_inject_weight"),
    NAMES_MIXER(output_hc, "model.hyper_connection_mixer"),
    NO(attn_q_norm, "self_attn.q_norm", "+1"),
    NO(attn_k_norm, "self_attn.k_norm", "+1"),
    NV(idx_q_proj, "self_attn.indexer.index_qk_proj", "(ni+1)*di[0:ni*di],E"),
    NV(idx_k_proj, "self_attn.indexer.index_qk_proj", "(ni+1)*di[ni*di:(ni+1)*di],E"),
    NO(idx_q_norm, "self_attn.indexer.q_layernorm", "+1"),
    NO(idx_k_norm, "self_attn.indexer.k_layernorm", "+1"),
    N(ffn_gate_exps, "mlp.experts.{}.gate_proj"),
    N(ffn_up_exps, "mlp.experts.{}.up_proj"),
    N(ffn_down_exps, "mlp.experts.{}.down_proj"),
    NAMES_FUSED("mlp.experts", "Fx"),
    END,
};
