// How checkpoints of some classes name their tensors, where the slots' own names (block/slots.def, or the architecture's row) don't fit:
// "a|b" are two in order of preference; "{}" stands for the expert. Included by config.c alone, which makes the classes' list.
#pragma once

#include "convert/config.h"

static const struct ckpt_name names_none[] = {{SLOT_NONE, NULL}};

static const struct ckpt_name names_gemma2[] = {
    {SLOT_ffn_norm, "pre_feedforward_layernorm"},
    {SLOT_NONE, NULL},
};

static const struct ckpt_name names_mixtral[] = {
    {SLOT_ffn_gate_inp, "block_sparse_moe.gate"},
    {SLOT_ffn_gate_exps, "block_sparse_moe.experts.{}.w1"},
    {SLOT_ffn_down_exps, "block_sparse_moe.experts.{}.w2"},
    {SLOT_ffn_up_exps, "block_sparse_moe.experts.{}.w3"},
    {SLOT_NONE, NULL},
};

static const struct ckpt_name names_gpt2[] = {
    {SLOT_token_embd, "wte"}, {SLOT_position_embd, "wpe"},    {SLOT_output_norm, "ln_f"},
    {SLOT_attn_norm, "ln_1"}, {SLOT_attn_qkv, "attn.c_attn"}, {SLOT_attn_output, "attn.c_proj"},
    {SLOT_ffn_norm, "ln_2"},  {SLOT_ffn_up, "mlp.c_fc"},      {SLOT_ffn_down, "mlp.c_proj"},
    {SLOT_NONE, NULL},
};

static const struct ckpt_name names_gptneox[] = {
    {SLOT_token_embd, "gpt_neox.embed_in"},
    {SLOT_output_norm, "gpt_neox.final_layer_norm"},
    {SLOT_output, "embed_out"},
    {SLOT_attn_qkv, "attention.query_key_value"},
    {SLOT_attn_output, "attention.dense"},
    {SLOT_ffn_up, "mlp.dense_h_to_4h"},
    {SLOT_ffn_down, "mlp.dense_4h_to_h"},
    {SLOT_NONE, NULL},
};

static const struct ckpt_name names_falcon[] = {
    {SLOT_token_embd, "word_embeddings"},
    {SLOT_output_norm, "ln_f"},
    {SLOT_attn_norm, "ln_mlp|input_layernorm"},
    {SLOT_attn_norm_2, "ln_attn"},
    {SLOT_attn_qkv, "self_attention.query_key_value"},
    {SLOT_attn_output, "self_attention.dense"},
    {SLOT_ffn_up, "mlp.dense_h_to_4h"},
    {SLOT_ffn_down, "mlp.dense_4h_to_h"},
    {SLOT_NONE, NULL},
};

static const struct ckpt_name names_bloom[] = {
    {SLOT_token_embd, "word_embeddings"},
    {SLOT_token_embd_norm, "word_embeddings_layernorm"},
    {SLOT_output_norm, "ln_f"},
    {SLOT_attn_qkv, "self_attention.query_key_value"},
    {SLOT_attn_output, "self_attention.dense"},
    {SLOT_ffn_up, "mlp.dense_h_to_4h"},
    {SLOT_ffn_down, "mlp.dense_4h_to_h"},
    {SLOT_NONE, NULL},
};

static const struct ckpt_name names_mpt[] = {
    {SLOT_token_embd, "wte"},        {SLOT_position_embd, "wpe"},         {SLOT_output_norm, "norm_f"},
    {SLOT_attn_norm, "norm_1"},      {SLOT_attn_qkv, "attn.Wqkv"},        {SLOT_attn_q_norm, "attn.q_ln"},
    {SLOT_attn_k_norm, "attn.k_ln"}, {SLOT_attn_output, "attn.out_proj"}, {SLOT_ffn_norm, "norm_2"},
    {SLOT_ffn_up, "ffn.up_proj"},    {SLOT_ffn_down, "ffn.down_proj"},    {SLOT_NONE, NULL},
};

static const struct ckpt_name names_phi[] = {
    {SLOT_output_norm, "model.final_layernorm"},
    {SLOT_attn_output, "self_attn.dense"},
    {SLOT_ffn_up, "mlp.fc1"},
    {SLOT_ffn_down, "mlp.fc2"},
    {SLOT_NONE, NULL},
};

static const struct ckpt_name names_internlm2[] = {
    {SLOT_token_embd, "model.tok_embeddings"}, {SLOT_output, "output"},
    {SLOT_attn_norm, "attention_norm"},        {SLOT_attn_qkv, "attention.wqkv"},
    {SLOT_attn_output, "attention.wo"},        {SLOT_ffn_norm, "ffn_norm"},
    {SLOT_ffn_gate, "feed_forward.w1"},        {SLOT_ffn_down, "feed_forward.w2"},
    {SLOT_ffn_up, "feed_forward.w3"},          {SLOT_NONE, NULL},
};

static const struct ckpt_name names_exaone[] = {
    {SLOT_token_embd, "wte"},
    {SLOT_output_norm, "ln_f"},
    {SLOT_attn_norm, "ln_1"},
    {SLOT_attn_q, "attn.attention.q_proj"},
    {SLOT_attn_k, "attn.attention.k_proj"},
    {SLOT_attn_v, "attn.attention.v_proj"},
    {SLOT_attn_output, "attn.attention.out_proj"},
    {SLOT_ffn_norm, "ln_2"},
    {SLOT_ffn_gate, "mlp.c_fc_0"},
    {SLOT_ffn_up, "mlp.c_fc_1"},
    {SLOT_ffn_down, "mlp.c_proj"},
    {SLOT_NONE, NULL},
};

static const struct ckpt_name names_glm4[] = {
    {SLOT_post_attn_norm, "post_self_attn_layernorm"},
    {SLOT_post_ffw_norm, "post_mlp_layernorm"},
    {SLOT_NONE, NULL},
};

static const struct ckpt_name names_hunyuan[] = {
    {SLOT_attn_q_norm, "self_attn.query_layernorm"},
    {SLOT_attn_k_norm, "self_attn.key_layernorm"},
    {SLOT_ffn_gate_inp, "mlp.gate.wg"},
    {SLOT_ffn_gate_shexp, "mlp.shared_mlp.gate_proj"},
    {SLOT_ffn_up_shexp, "mlp.shared_mlp.up_proj"},
    {SLOT_ffn_down_shexp, "mlp.shared_mlp.down_proj"},
    {SLOT_NONE, NULL},
};

static const struct ckpt_name names_mamba[] = {
    {SLOT_token_embd, "backbone.embeddings|backbone.embedding"},
    {SLOT_output_norm, "backbone.norm_f"},
    {SLOT_attn_norm, "norm"},
    {SLOT_ssm_a, "mixer.A_log"},
    {SLOT_ssm_d, "mixer.D"},
    {SLOT_NONE, NULL},
};
