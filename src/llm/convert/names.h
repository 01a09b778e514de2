// How checkpoints of some classes name their tensors, where the slots' own names (block/slots.def, or the architecture's row) don't fit:
// "a|b" are two in order of preference; "{}" stands for the expert. Included by config.c alone, which makes the classes' list.
#pragma once

#include "convert/config.h"

#define N(slot, name)                                                                                                       \
    { SLOT_##slot, name }
#define NV(slot, name, view) N(slot, name "\t" view)
#define NO(slot, name, op) N(slot, name "\t\t" op)
#define NVO(slot, name, view, op) N(slot, name "\t" view "\t" op)
#define END                                                                                                                 \
    { SLOT_NONE, NULL }

static const struct ckpt_name names_none[] = {END};

static const struct ckpt_name names_gemma2[] = {
    N(ffn_norm, "pre_feedforward_layernorm"),
    END,
};

static const struct ckpt_name names_gpt2[] = {
    N(token_embd, "wte"),       N(position_embd, "wpe"),
    N(output_norm, "ln_f"),     N(attn_norm, "ln_1"),
    N(attn_qkv, "attn.c_attn"), N(attn_output, "attn.c_proj"),
    N(ffn_norm, "ln_2"),        N(ffn_up, "mlp.c_fc"),
    N(ffn_down, "mlp.c_proj"),  END,
};

// embedding and head have scales of their own, which the file has in their weights
static const struct ckpt_name names_jais[] = {
    NO(token_embd, "wte", "*embeddings_scale*mup_embeddings_scale"),
    NO(output, "lm_head|wte", "*width_scale*mup_output_alpha*mup_width_scale"),
    N(output_norm, "ln_f"),
    N(attn_norm, "ln_1"),
    N(attn_qkv, "attn.c_attn"),
    N(attn_output, "attn.c_proj"),
    N(ffn_norm, "ln_2"),
    N(ffn_gate, "mlp.c_fc2"),
    N(ffn_up, "mlp.c_fc"),
    N(ffn_down, "mlp.c_proj"),
    END,
};

// gains of branches are the scales of what they end with
static const struct ckpt_name names_talkie[] = {
    N(token_embd, "embed"),
    N(attn_q, "attn.attn_query"),
    N(attn_k, "attn.attn_key"),
    N(attn_v, "attn.attn_value"),
    N(attn_q_norm, "attn.head_gain.head_g!"),
    N(attn_output, "attn.attn_resid"),
    N(attn_output, "scale:attn_gain.a_g!"),
    N(ffn_gate, "mlp.mlp_gate"),
    N(ffn_up, "mlp.mlp_linear"),
    N(ffn_down, "mlp.mlp_resid"),
    N(ffn_down, "scale:mlp_gain.a_g!"),
    N(layer_output_scale, "embed_skip.a_g!"),
    END,
};

static const struct ckpt_name names_pockettts[] = {
    N(token_embd, "flow_lm.conditioner.embed"),
    N(output_norm, "flow_lm.out_norm"),
    N(attn_norm, "norm1"),
    N(attn_qkv, "self_attn.in_proj"),
    N(attn_output, "self_attn.out_proj"),
    N(ffn_norm, "norm2"),
    N(ffn_up, "linear1"),
    N(ffn_down, "linear2"),
    END,
};

static const struct ckpt_name names_refact[] = {
    N(token_embd, "wte"),
    N(output_norm, "ln_f"),
    N(attn_norm, "ln_1"),
    N(attn_q, "attn.q"),
    NV(attn_k, "attn.kv", "2*K*D[0:K*D],E"),
    NV(attn_v, "attn.kv", "2*K*D[K*D:2*K*D],E"),
    N(attn_output, "attn.c_proj"),
    N(ffn_norm, "ln_2"),
    NV(ffn_gate, "mlp.gate_up_proj", "2*F[0:F],E"),
    NV(ffn_up, "mlp.gate_up_proj", "2*F[F:2*F],E"),
    N(ffn_down, "mlp.c_proj"),
    END,
};

static const struct ckpt_name names_gptneox[] = {
    N(token_embd, "gpt_neox.embed_in"),
    N(output_norm, "gpt_neox.final_layer_norm"),
    N(output, "embed_out"),
    N(attn_qkv, "attention.query_key_value"),
    N(attn_output, "attention.dense"),
    N(ffn_up, "mlp.dense_h_to_4h"),
    N(ffn_down, "mlp.dense_4h_to_h"),
    END,
};

static const struct ckpt_name names_falcon[] = {
    N(token_embd, "word_embeddings"),
    N(output_norm, "ln_f"),
    N(attn_norm, "ln_mlp|input_layernorm"),
    N(attn_norm_2, "ln_attn"),
    N(attn_qkv, "self_attention.query_key_value"),
    N(attn_output, "self_attention.dense"),
    N(ffn_up, "mlp.dense_h_to_4h"),
    N(ffn_down, "mlp.dense_4h_to_h"),
    END,
};

static const struct ckpt_name names_bloom[] = {
    N(token_embd, "word_embeddings"),
    N(token_embd_norm, "word_embeddings_layernorm"),
    N(output_norm, "ln_f"),
    N(attn_qkv, "self_attention.query_key_value"),
    N(attn_output, "self_attention.dense"),
    N(ffn_up, "mlp.dense_h_to_4h"),
    N(ffn_down, "mlp.dense_4h_to_h"),
    END,
};

static const struct ckpt_name names_mpt[] = {
    N(token_embd, "wte"),     N(position_embd, "wpe"),     N(output_norm, "norm_f"),     N(attn_norm, "norm_1"),
    N(attn_qkv, "attn.Wqkv"), N(attn_q_norm, "attn.q_ln"), N(attn_k_norm, "attn.k_ln"),  N(attn_output, "attn.out_proj"),
    N(ffn_norm, "norm_2"),    N(ffn_up, "ffn.up_proj"),    N(ffn_down, "ffn.down_proj"), END,
};

static const struct ckpt_name names_phi[] = {
    N(output_norm, "model.final_layernorm"),
    N(attn_output, "self_attn.dense"),
    N(ffn_up, "mlp.fc1"),
    N(ffn_down, "mlp.fc2"),
    END,
};

static const struct ckpt_name names_internlm2[] = {
    N(token_embd, "model.tok_embeddings"), N(output, "output"),
    N(attn_norm, "attention_norm"),        N(attn_qkv, "attention.wqkv"),
    N(attn_output, "attention.wo"),        N(ffn_norm, "ffn_norm"),
    N(ffn_gate, "feed_forward.w1"),        N(ffn_down, "feed_forward.w2"),
    N(ffn_up, "feed_forward.w3"),          END,
};

static const struct ckpt_name names_exaone[] = {
    N(token_embd, "wte"),
    N(output_norm, "ln_f"),
    N(attn_norm, "ln_1"),
    N(attn_q, "attn.attention.q_proj"),
    N(attn_k, "attn.attention.k_proj"),
    N(attn_v, "attn.attention.v_proj"),
    N(attn_output, "attn.attention.out_proj"),
    N(ffn_norm, "ln_2"),
    N(ffn_gate, "mlp.c_fc_0"),
    N(ffn_up, "mlp.c_fc_1"),
    N(ffn_down, "mlp.c_proj"),
    END,
};

static const struct ckpt_name names_glm4[] = {
    N(post_attn_norm, "post_self_attn_layernorm"),
    N(post_ffw_norm, "post_mlp_layernorm"),
    END,
};

static const struct ckpt_name names_hunyuan[] = {
    N(attn_q_norm, "self_attn.query_layernorm"),
    N(attn_k_norm, "self_attn.key_layernorm"),
    N(ffn_gate_inp, "mlp.gate.wg"),
    N(ffn_gate_shexp, "mlp.shared_mlp.gate_proj"),
    N(ffn_up_shexp, "mlp.shared_mlp.up_proj"),
    N(ffn_down_shexp, "mlp.shared_mlp.down_proj"),
    END,
};

static const struct ckpt_name names_mamba[] = {
    N(token_embd, "backbone.embeddings|backbone.embedding"),
    N(output_norm, "backbone.norm_f"),
    N(attn_norm, "norm"),
    N(ssm_a, "mixer.A_log"),
    N(ssm_d, "mixer.D"),
    END,
};

// each head has a norm of its own
static const struct ckpt_name names_stablelm[] = {
    N(attn_q_norm, "self_attn.q_layernorm.norms.{H}"),
    N(attn_k_norm, "self_attn.k_layernorm.norms.{K}"),
    END,
};

// queries, keys and values in one matrix, whose heads are turned: the file keeps them apart
static const struct ckpt_name names_baichuan[] = {
    NV(attn_q, "self_attn.W_pack", "@0;E,E"),
    NV(attn_k, "self_attn.W_pack", "@E*E;E,E"),
    NV(attn_v, "self_attn.W_pack", "@2*E*E;E,E"),
    END,
};

static const struct ckpt_name names_chatglm[] = {
    N(token_embd, "transformer.embedding.word_embeddings"),
    N(output_norm, "transformer.encoder.final_layernorm"),
    N(output, "transformer.output_layer"),
    N(attn_qkv, "self_attention.query_key_value"),
    N(attn_output, "self_attention.dense"),
    N(ffn_up, "mlp.dense_h_to_4h"),
    N(ffn_down, "mlp.dense_4h_to_h"),
    END,
};

static const struct ckpt_name names_qwen[] = {
    N(token_embd, "wte"),       N(output_norm, "ln_f"),
    N(attn_norm, "ln_1"),       N(ffn_norm, "ln_2"),
    N(attn_qkv, "attn.c_attn"), N(attn_output, "attn.c_proj"),
    N(ffn_up, "mlp.w1"),        N(ffn_gate, "mlp.w2"),
    N(ffn_down, "mlp.c_proj"),  END,
};

// the key heads are dealt out to the query heads in turn, not in runs
static const struct ckpt_name names_plamo[] = {
    N(attn_norm, "norm"),
    NV(attn_q, "self_attn.q_proj", "H/K,K,D*E > 102"),
    NV(attn_output, "self_attn.o_proj", "E,H/K,K,D > 0213"),
    END,
};

static const struct ckpt_name names_maincoder[] = {
    N(ffn_gate, "feed_forward.gate_proj"),
    N(ffn_up, "feed_forward.up_proj"),
    N(ffn_down, "feed_forward.down_proj"),
    END,
};

static const struct ckpt_name names_spark2_5[] = {
    N(token_embd, "model.embedding"),
    N(attn_qkv, "self_attn.q_k_v_proj"),
    N(attn_gate, "self_attn.g_proj"),
    N(attn_output, "self_attn.out_proj"),
    END,
};

static const struct ckpt_name names_cogvlm[] = {
    N(attn_qkv, "self_attn.language_expert_query_key_value"),
    N(attn_output, "self_attn.language_expert_dense"),
    N(ffn_gate, "mlp.language_mlp.gate_proj"),
    N(ffn_up, "mlp.language_mlp.up_proj"),
    N(ffn_down, "mlp.language_mlp.down_proj"),
    N(vis_attn_qkv, "self_attn.vision_expert_query_key_value"),
    N(vis_attn_output, "self_attn.vision_expert_dense"),
    N(vis_gate, "mlp.vision_mlp.gate_proj"),
    N(vis_up, "mlp.vision_mlp.up_proj"),
    N(vis_down, "mlp.vision_mlp.down_proj"),
    END,
};

static const struct ckpt_name names_deci[] = {N(attn_output, "self_attn.o_proj|self_attn.linear_attn"), END};

// gate and up in one matrix
static const struct ckpt_name names_openelm[] = {
    N(token_embd, "transformer.token_embeddings"),
    N(output_norm, "transformer.norm"),
    N(attn_norm, "attn_norm"),
    N(ffn_norm, "ffn_norm"),
    N(attn_qkv, "attn.qkv_proj"),
    N(attn_q_norm, "attn.q_norm"),
    N(attn_k_norm, "attn.k_norm"),
    N(attn_output, "attn.out_proj"),
    NV(ffn_gate, "ffn.proj_1", "2*F[0:F],E"),
    NV(ffn_up, "ffn.proj_1", "2*F[F:2*F],E"),
    N(ffn_down, "ffn.proj_2"),
    END,
};

static const struct ckpt_name names_llada[] = {
    N(token_embd, "model.transformer.wte"),
    N(output_norm, "model.transformer.ln_f"),
    N(output, "model.transformer.ff_out"),
    N(attn_norm, "attn_norm"),
    N(ffn_norm, "ff_norm"),
    N(attn_q, "q_proj"),
    N(attn_k, "k_proj"),
    N(attn_v, "v_proj"),
    N(attn_output, "attn_out"),
    N(ffn_gate, "ff_proj"),
    N(ffn_up, "up_proj"),
    N(ffn_down, "ff_out"),
    END,
};
