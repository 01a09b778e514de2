"""Converts checkpoints made for the purpose: weights of numpy_variants.py's models under the names, in the orders and types that the field's classes use.

usage: convert.py BUILD_FOLDER [CASE ...]      needs numpy and gguf. The last line is "N passed, N failed".

Each must give back the tensors it was made from, to the bit, and the logits that numpy computes. Checkpoints are written in all the ways there are: one
file or several with an index, f32, f16 or bf16, tied embeddings with and without a copy, tokenizer.json and tokenizer.model. A big one is converted
with little memory at last.
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

import gguf
import numpy as np

import numpy_ref
from numpy_ref import E, H, V

DRAFT = {"nextn.eh_proj": "eh_proj", "nextn.enorm": "enorm", "nextn.hnorm": "hnorm", "nextn.shared_head_norm": "shared_head.norm"}
LAYER = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "attn_qkv": "self_attn.qkv_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
         "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "ffn_gate_inp": "mlp.gate", "ffn_gate_exps": "mlp.experts.{}.gate_proj", "ffn_up_exps": "mlp.experts.{}.up_proj",
         "ffn_down_exps": "mlp.experts.{}.down_proj", "ffn_gate_shexp": "mlp.shared_expert.gate_proj", "ffn_up_shexp": "mlp.shared_expert.up_proj",
         "ffn_down_shexp": "mlp.shared_expert.down_proj", "ffn_gate_inp_shexp": "mlp.shared_expert_gate", "post_attention_norm": "post_attention_layernorm",
         "post_ffw_norm": "post_feedforward_layernorm", "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
MIXTRAL = {"ffn_gate_inp": "block_sparse_moe.gate", "ffn_gate_exps": "block_sparse_moe.experts.{}.w1", "ffn_down_exps": "block_sparse_moe.experts.{}.w2",
           "ffn_up_exps": "block_sparse_moe.experts.{}.w3"}
GEMMA2 = {"ffn_norm": "pre_feedforward_layernorm"}
GPT2 = {"token_embd": "transformer.wte", "position_embd": "transformer.wpe", "output_norm": "transformer.ln_f", "attn_norm": "ln_1", "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj",
        "ffn_norm": "ln_2", "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"}
DENSE = {"attn_qkv": "attention.query_key_value", "attn_output": "attention.dense", "ffn_up": "mlp.dense_h_to_4h", "ffn_down": "mlp.dense_4h_to_h"}
NEOX = {**DENSE, "token_embd": "gpt_neox.embed_in", "output_norm": "gpt_neox.final_layer_norm", "output": "embed_out"}
SELF = {**DENSE, "attn_qkv": "self_attention.query_key_value", "attn_output": "self_attention.dense", "token_embd": "transformer.word_embeddings", "output_norm": "transformer.ln_f"}
MPT = {"token_embd": "transformer.wte", "position_embd": "transformer.wpe", "output_norm": "transformer.norm_f", "attn_norm": "norm_1", "attn_qkv": "attn.Wqkv", "attn_output": "attn.out_proj",
       "ffn_norm": "norm_2", "ffn_up": "ffn.up_proj", "ffn_down": "ffn.down_proj"}
INTERN = {"token_embd": "model.tok_embeddings", "output": "output", "attn_norm": "attention_norm", "attn_qkv": "attention.wqkv", "attn_output": "attention.wo", "ffn_norm": "ffn_norm",
          "ffn_gate": "feed_forward.w1", "ffn_down": "feed_forward.w2", "ffn_up": "feed_forward.w3"}
EXAONE = {"token_embd": "transformer.wte", "output_norm": "transformer.ln_f", "attn_norm": "ln_1", "attn_q": "attn.attention.q_proj", "attn_k": "attn.attention.k_proj",
          "attn_v": "attn.attention.v_proj", "attn_output": "attn.attention.out_proj", "ffn_norm": "ln_2", "ffn_gate": "mlp.c_fc_0", "ffn_up": "mlp.c_fc_1", "ffn_down": "mlp.c_proj"}
MAMBA = {"token_embd": "backbone.embeddings", "output_norm": "backbone.norm_f", "attn_norm": "norm", "ssm_in": "mixer.in_proj", "ssm_conv1d": "mixer.conv1d", "ssm_x": "mixer.x_proj",
         "ssm_dt": "mixer.dt_proj", "ssm_a": "mixer.A_log", "ssm_d": "mixer.D", "ssm_out": "mixer.out_proj"}
L = "model.layers."
GPT = {"activation_function": "gelu_new", "n_positions": 256, "n_embd": E, "n_layer": 3, "n_head": H, "layer_norm_epsilon": 1e-5, "n_inner": 96}
COMMON = {"embedding_length": "hidden_size", "block_count": "num_hidden_layers", "feed_forward_length": "intermediate_size", "attention.head_count": "num_attention_heads",
          "attention.head_count_kv": "num_key_value_heads", "attention.key_length": "head_dim", "context_length": "max_position_embeddings",
          "attention.layer_norm_rms_epsilon": "rms_norm_eps", "attention.layer_norm_epsilon": "layer_norm_eps", "rope.freq_base": "rope_theta", "logit_scale": "logit_scale",
          "attention.clamp_kqv": "clip_qkv", "attention.sliding_window": "sliding_window", "expert_count": "num_experts", "expert_used_count": "num_experts_per_tok",
          "expert_feed_forward_length": "moe_intermediate_size", "expert_shared_feed_forward_length": "shared_expert_intermediate_size", "attn_logit_softcapping": "attn_logit_softcapping",
          "final_logit_softcapping": "final_logit_softcapping", "residual_scale": "residual_multiplier", "embedding_scale": "embedding_multiplier", "attention.scale": "attention_multiplier",
          "rope.freq_base_swa": "rope_local_base_freq", "attention.sliding_window_pattern": "sliding_window_pattern", "expert_weights_scale": "routed_scaling_factor",
          "expert_weights_norm": "norm_topk_prob", "expert_shared_count": "n_shared_experts", "leading_dense_block_count": "first_k_dense_replace"}
CHATGLM = {**DENSE, "token_embd": "transformer.embedding.word_embeddings", "output_norm": "transformer.encoder.final_layernorm", "output": "transformer.output_layer",
           "attn_qkv": "self_attention.query_key_value", "attn_output": "self_attention.dense"}
LLADA = {"token_embd": "model.transformer.wte", "output_norm": "model.transformer.ln_f", "output": "model.transformer.ff_out", "attn_norm": "attn_norm", "ffn_norm": "ff_norm",
         "attn_q": "q_proj", "attn_k": "k_proj", "attn_v": "v_proj", "attn_output": "attn_out", "ffn_gate": "ff_proj", "ffn_up": "up_proj", "ffn_down": "ff_out"}
QWEN = {"token_embd": "transformer.wte", "output_norm": "transformer.ln_f", "attn_norm": "ln_1", "ffn_norm": "ln_2", "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj",
        "ffn_up": "mlp.w1", "ffn_gate": "mlp.w2", "ffn_down": "mlp.c_proj"}
BAILING = {"token_embd": "model.word_embeddings", "attn_qkv": "attention.query_key_value", "attn_output": "attention.dense", "attn_q_norm": "attention.query_layernorm",
           "attn_k_norm": "attention.key_layernorm", "exp_probs_b": "mlp.gate.expert_bias", **{f"ffn_{a}_shexp": f"mlp.shared_experts.{a}_proj" for a in ("gate", "up", "down")}}
JINA = {"token_embd": "embeddings.word_embeddings", "token_types": "embeddings.token_type_embeddings", "token_embd_norm": "embeddings.LayerNorm", "attn_q": "attention.self.query",
        "attn_k": "attention.self.key", "attn_v": "attention.self.value", "attn_output": "attention.output.dense", "attn_output_norm": "attention.output.LayerNorm",
        "ffn_up": "mlp.gated_layers", "ffn_down": "mlp.wo", "layer_output_norm": "mlp.layernorm"}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
# the case; class; prefix of layers; names beside the usual; what is done; config.json beside the usual
CASES = {
    "llama-gqa-tied": ("LlamaForCausalLM", L, {}, "pairs", {}),
    "llama-mha-biases": ("LlamaForCausalLM", L, {}, "pairs split", {"attention_bias": True}),
    "llama-yarn": ("MistralForCausalLM", L, {}, "pairs shards", {"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64,
                                                                                  "attention_factor": 1.3 * (1 + 0.1 * np.log(4))}}),
    "llama-linear": ("LlamaForCausalLM", L, {}, "pairs", {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    "llama-3": ("LlamaForCausalLM", L, {}, "pairs", {"rope_parameters": {**LLAMA3, "rope_theta": 10000.0}}),
    "llama-experts": ("MixtralForCausalLM", L, MIXTRAL, "pairs shards", {"num_local_experts": 8}),
    "smollm3": ("SmolLM3ForCausalLM", L, {}, "pairs", {}),
    "internlm2": ("InternLM2ForCausalLM", L, INTERN, "pairs groups", {}),
    "xverse-gqa": ("XverseForCausalLM", L, {}, "pairs", {}),
    "qwen2-biases": ("Qwen2ForCausalLM", L, {}, "", {"use_sliding_window": False, "sliding_window": 4}),
    "qwen2moe-widths": ("Qwen2MoeForCausalLM", L, {}, "", {}),
    "qwen3-gqa-tied": ("Qwen3ForCausalLM", L, {}, "copy", {"tie_word_embeddings": True}),
    "qwen3moe-gqa": ("Qwen3MoeForCausalLM", L, {}, "shards", {}),
    "gemma-mqa": ("GemmaForCausalLM", L, {}, "less", {}),
    "gemma2": ("Gemma2ForCausalLM", L, GEMMA2, "less", {}),
    "gemma3": ("Gemma3ForConditionalGeneration", L, GEMMA2, "less nested", {"rope_scaling": {"rope_type": "linear", "factor": 8.0}}),
    "gemma3-no-window": ("Gemma3ForCausalLM", L, GEMMA2, "less", {}),
    "phi2-fused-partial": ("PhiForCausalLM", L, {"output_norm": "model.final_layernorm", "attn_output": "self_attn.dense", "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2"}, "split",
                           {"partial_rotary_factor": 0.5}),
    "phi3-short": ("Phi3ForCausalLM", L, {"ffn_up": "mlp.gate_up_proj"}, "", {"partial_rotary_factor": 0.75, "original_max_position_embeddings": 512,
                                                                             "rope_scaling": {"type": "longrope", "attention_factor": 1.19, "factor": 32.0}}),
    "phi3-plain": ("Phi3ForCausalLM", L, {"ffn_up": "mlp.gate_up_proj"}, "", {"partial_rotary_factor": 0.5}),
    "phimoe": ("PhimoeForCausalLM", L, MIXTRAL, "", {"original_max_position_embeddings": 128, "rope_scaling": {"type": "longrope", "long_mscale": 1.0, "short_mscale": 1.0}}),
    "olmo-clamp-tied": ("OlmoForCausalLM", L, {}, "pairs", {}),
    "olmo2-gqa": ("Olmo2ForCausalLM", L, {}, "", {}),
    "olmo3": ("Olmo3ForCausalLM", L, {}, "", {"layer_types": ["sliding_attention"] * 3 + ["full_attention", "sliding_attention"],
                                              "rope_scaling": {"type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64, "attention_factor": 1.2 * (1 + 0.1 * np.log(8))}}),
    "olmoe": ("OlmoeForCausalLM", L, {}, "", {}),
    "granite-logit-scale": ("GraniteForCausalLM", L, {}, "pairs", {"logits_scaling": 3.0}),
    "minicpm-defaults": ("MiniCPMForCausalLM", L, {}, "pairs", {"scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 16}),
    "command-r-gqa": ("CohereForCausalLM", L, {}, "", {}),
    "cohere2": ("Cohere2ForCausalLM", L, {}, "", {"sliding_window_pattern": 4, "rope_scaling": {"type": "linear", "factor": 4.0}}),
    "stablelm-pre-norm": ("StableLmForCausalLM", L, {}, "", {"partial_rotary_factor": 0.25}),
    "starcoder2-gqa": ("Starcoder2ForCausalLM", L, {"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"}, "", {"norm_epsilon": 1e-5}),
    "exaone-freqs": ("ExaoneForCausalLM", "transformer.h.", EXAONE, "", {"rope_scaling": LLAMA3, "layer_norm_epsilon": 1e-5}),
    "exaone4-tied": ("Exaone4ForCausalLM", L, {}, "", {}),
    "glm4-no-sections": ("Glm4ForCausalLM", L, {"post_attention_norm": "post_self_attn_layernorm", "post_ffw_norm": "post_mlp_layernorm", "ffn_up": "mlp.gate_up_proj"}, "",
                         {"partial_rotary_factor": 0.5}),
    "glm4moe": ("Glm4MoeForCausalLM", L, {f"ffn_{a}_shexp": f"mlp.shared_experts.{a}_proj" for a in ("gate", "up", "down")}, "",
                {"partial_rotary_factor": 0.5, "n_routed_experts": 8, "scoring_func": "sigmoid"}),
    "glm4moe-draft": ("Glm4MoeForCausalLM", L, {**{f"ffn_{a}_shexp": f"mlp.shared_experts.{a}_proj" for a in ("gate", "up", "down")}, **DRAFT}, "draft",
                      {"partial_rotary_factor": 0.5, "n_routed_experts": 8, "scoring_func": "sigmoid", "num_nextn_predict_layers": 1}),
    "ernie4_5-gqa": ("Ernie4_5ForCausalLM", L, {}, "", {}),
    "seed-oss-yarn": ("SeedOssForCausalLM", L, {}, "", {"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}}),
    "nemotron-partial": ("NemotronForCausalLM", L, {}, "less", {"partial_rotary_factor": 0.5, "norm_eps": 1e-5}),
    "dots1-groups": ("Dots1ForCausalLM", L, {f"ffn_{a}_shexp": f"mlp.shared_experts.{a}_proj" for a in ("gate", "up", "down")}, "",
                     {"n_routed_experts": 8, "scoring_func": "sigmoid", "n_group": 4, "topk_group": 2}),
    "deepseek-gqa": ("DeepseekForCausalLM", L, {f"ffn_{a}_shexp": f"mlp.shared_experts.{a}_proj" for a in ("gate", "up", "down")}, "pairs", {"n_routed_experts": 8}),
    "hunyuan-moe": ("HunYuanMoEV1ForCausalLM", L, {"attn_q_norm": "self_attn.query_layernorm", "attn_k_norm": "self_attn.key_layernorm", "ffn_gate_inp": "mlp.gate.wg",
                                                   **{f"ffn_{a}_shexp": f"mlp.shared_mlp.{a}_proj" for a in ("gate", "up", "down")}}, "", {"moe_topk": 3}),
    "gpt2-tied": ("GPT2LMHeadModel", "transformer.h.", GPT2, "conv1d", GPT),
    "starcoder-mqa": ("GPTBigCodeForCausalLM", "transformer.h.", GPT2, "", {**GPT, "multi_query": True}),
    "gptneox-parallel": ("GPTNeoXForCausalLM", "gpt_neox.layers.", NEOX, "groups", {"rotary_pct": 0.25, "rotary_emb_base": 10000, "use_parallel_residual": True}),
    "falcon-7b": ("FalconForCausalLM", "transformer.h.", SELF, "groups", {"multi_query": True, "ffn_hidden_size": 96, "layer_norm_epsilon": 1e-5}),
    "falcon-40b": ("FalconForCausalLM", "transformer.h.", {**SELF, "attn_norm": "ln_mlp", "attn_norm_2": "ln_attn"}, "groups",
                   {"new_decoder_architecture": True, "num_kv_heads": 2, "ffn_hidden_size": 96}),
    "bloom-6-heads": ("BloomForCausalLM", "transformer.h.", {**SELF, "token_embd_norm": "transformer.word_embeddings_layernorm"}, "groups", {"n_head": 6, "n_layer": 3, "seq_length": 256, "n_inner": None}),
    "mpt-bare": ("MPTForCausalLM", "transformer.blocks.", MPT, "", {"d_model": E, "n_heads": H, "n_layers": 3, "max_seq_len": 256, "expansion_ratio": 1.5,
                                                                     "attn_config": {"alibi": True, "alibi_bias_max": 4}}),
    "mamba-rms": ("FalconMambaForCausalLM", "backbone.layers.", MAMBA, "mamba", {"mixer_rms_eps": 1e-5}),
    "mamba-own-output": ("MambaForCausalLM", "backbone.layers.", MAMBA, "mamba", {}),
    "baichuan-32-layers": ("BaichuanForCausalLM", L, {}, "pairs pack", {}),
    "baichuan-40-layers": ("BaichuanForCausalLM", L, {}, "pairs pack", {}),
    "chatglm-partial": ("ChatGLMModel", "transformer.encoder.layers.", CHATGLM, "", {"multi_query_group_num": 2, "kv_channels": 16, "layernorm_epsilon": 1e-5}),
    "bailingmoe": ("BailingMoeForCausalLM", L, BAILING, "pairs fuse", {"num_shared_experts": 2}),
    "bailingmoe2": ("BailingMoeV2ForCausalLM", L, BAILING, "", {"num_shared_experts": 1, "partial_rotary_factor": 0.5, "n_group": 4, "topk_group": 2}),
    "arctic": ("ArcticForCausalLM", L, {**MIXTRAL, "ffn_gate": "residual_mlp.w1", "ffn_down": "residual_mlp.w2", "ffn_up": "residual_mlp.w3", "ffn_norm": "residual_layernorm",
                                        "ffn_norm_exps": "post_attention_layernorm"}, "pairs", {"num_local_experts": 8}),
    "smallthinker": ("SmallThinkerForCausalLM", L, {"ffn_gate_inp": "block_sparse_moe.primary_router", **{f"ffn_{a}_exps": "block_sparse_moe.experts.{}." + a for a in ("gate", "up", "down")}}, "",
                     {"moe_num_primary_experts": 8, "moe_num_active_primary_experts": 3, "moe_ffn_hidden_size": 40, "moe_primary_router_apply_softmax": False, "sliding_window_size": 8}),
    "grovemoe": ("GroveMoeForCausalLM", L, {f"ffn_{a}_chexps": "mlp.chunk_experts.{}." + a + "_proj" for a in ("gate", "up", "down")}, "", {"parallel_expert_intermediate_size": 48}),
    "codeshell-gqa": ("CodeShellForCausalLM", "transformer.h.", GPT2, "", {**GPT, "num_query_groups": 2, "position_embedding_type": "rope"}),
    "plamo-gqa": ("PlamoForCausalLM", "model.layers.layers.", {"attn_norm": "norm"}, "dealt", {"n_shared_head": 2}),
    "deci": ("DeciLMForCausalLM", L, {}, "pairs", {"num_attention_heads": 4, "num_key_value_heads": None, "intermediate_size": None, "block_configs": [
        {"attention": {"n_heads_in_group": 2, "no_op": False}, "ffn": {"intermediate_size": 96}},
        {"attention": {"replace_with_linear": True}, "ffn": {"intermediate_size": 64}},
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": 6.0}}, {"attention": {"n_heads_in_group": 1}, "ffn": {"no_op": True}}],
        "rope_scaling": LLAMA3}),
    "jina-bert-v2-fused": ("JinaBertModel", "encoder.layer.", JINA, "encoder", {"type_vocab_size": 2, "num_key_value_heads": H}),
    "openelm": ("OpenELMForCausalLM", "transformer.layers.", {"token_embd": "transformer.token_embeddings", "output_norm": "transformer.norm", "attn_norm": "attn_norm", "ffn_norm": "ffn_norm",
                                                              "attn_qkv": "attn.qkv_proj", "attn_q_norm": "attn.q_norm", "attn_k_norm": "attn.k_norm", "attn_output": "attn.out_proj", "ffn_down": "ffn.proj_2"},
                "fuse_ffn", {"num_query_heads": [4, 2, 6], "num_kv_heads": [2, 1, 3], "model_dim": E, "num_transformer_layers": 3, "max_context_length": 256, "rope_freq_constant": 10000,
                             "intermediate_size": [96, 64, 128]}),
}


# ---- the other way round ----------------------------------------------------------------------------------------------------
def halves(w, heads):
    """Rows of heads from pairs to halves, as checkpoints have them."""
    return w.reshape(heads, -1, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def rounded(w, dtype):
    return {"F32": w, "F16": w.astype(np.float16).astype(np.float32), "BF16": (w.view(np.uint32) & 0xffff0000).view(np.float32)}[dtype]


def checkpoint_tensors(m, o, prefix, names, how, dtype):
    per_layer = lambda f, i: f(int(i or 0)) if callable(f) else f
    names, out = {**LAYER, **names}, {}
    for full, w in m.w.items():
        part = re.fullmatch(r"(?:blk\.(\d+)\.)?(.+?)(\.weight|\.bias)?", full)
        il, base, suffix = part[1], part[2], part[3] or ""
        h, k = (per_layer(f, il) for f in (o.get("H", H), o.get("K", o.get("H", H))))
        if base.startswith("rope_"):
            continue
        if "less" in how and base.endswith("norm") and suffix == ".weight":
            w = (w.astype(np.float64) - 1).astype(np.float32)  # and with 1 added once more: m.w is changed to that below
            m.w[full] = w + np.float32(1)
        place = prefix + il + "." if il is not None else ""
        if base == "exp_probs_b":
            out[place + names.get(base, "mlp.gate.e_score_correction_bias")] = w
            continue
        if "pack" in how and base in ("attn_q", "attn_k", "attn_v"):  # one matrix
            part = halves(w, h) if "pairs" in how and base != "attn_v" else w
            key = place + "self_attn.W_pack" + suffix
            out[key] = np.concatenate([out[key], part]) if key in out else part
            continue
        if "fuse" in how.split() and base in ("attn_q", "attn_k", "attn_v"):
            part = halves(w, h if base == "attn_q" else k) if base != "attn_v" else w
            key = place + names["attn_qkv"] + suffix
            out[key] = np.concatenate([out[key], part]) if key in out else part
            continue
        if "fuse_ffn" in how and base in ("ffn_gate", "ffn_up"):
            key = place + "ffn.proj_1" + suffix
            out[key] = np.concatenate([out[key], w]) if key in out else w
            continue
        if base == "attn_qkv" and "split" in how:
            d = w.shape[0] // (h + 2 * k)
            parts = dict(zip("qkv", np.split(w, [h * d, (h + k) * d])))
            for a, x in parts.items():
                out[f"{place}self_attn.{a}_proj{suffix}"] = halves(x, h if a == "q" else k) if "pairs" in how and a != "v" else x
            continue
        if base == "attn_qkv" and ("groups" in how or "pairs" in how):
            d = w.shape[0] // (h + 2 * k)
            q, kk, v = np.split(w, [h * d, (h + k) * d])
            if "pairs" in how:
                q, kk = halves(q, h), halves(kk, k)
            if "groups" in how:
                w = np.concatenate([a.reshape(k, -1, *w.shape[1:]) for a in (q, kk, v)], 1).reshape(w.shape)
        if "pairs" in how and base in ("attn_q", "attn_k"):
            w = halves(w, h if base == "attn_q" else k)
        if "conv1d" in how and il is not None and w.ndim == 2:
            w = w.T
        if base == "ssm_a":
            w = rounded(np.log(-w.astype(np.float64)).astype(np.float32), dtype)
            m.w[full] = -np.exp(w)
        if base == "ssm_conv1d" and w.ndim == 2:
            w = w[:, None]
        if "dealt" in how and base == "attn_q":
            w = w.reshape(k, h // k, -1, E).swapaxes(0, 1).reshape(w.shape)
        if "dealt" in how and base == "attn_output":
            w = w.reshape(E, k, h // k, -1).swapaxes(1, 2).reshape(w.shape)
        linear = "kinds" in o and base == "attn_output" and o["kinds"][int(il)] == "linear"  # deci
        name = "self_attn.linear_attn" if linear else names[base]
        if "{}" in name:
            for e, x in enumerate(w):
                out[place + name.format(e) + suffix] = x
        else:
            out[place + name + suffix] = w[None] if base == "ffn_gate_inp_shexp" else w
    if "copy" in how:  # some checkpoints of tied models hold the matrix twice
        out["lm_head.weight"] = out["model.embed_tokens.weight"]
    return out


def safetensors(path, tensors, dtype):
    header, at, data = {"__metadata__": {"format": "pt"}}, 0, []
    for name, w in tensors.items():
        w = np.ascontiguousarray(w)
        raw = (w.view(np.uint32) >> 16).astype(np.uint16).tobytes() if dtype == "BF16" else w.astype({"F32": np.float32, "F16": np.float16}[dtype]).tobytes()
        header[name] = {"dtype": dtype, "shape": list(w.shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        data.append(raw)
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def sentencepiece(path, n):
    """A model of n pieces as tokenizer.model holds it."""
    var = lambda x: bytes([x]) if x < 128 else bytes([x & 127 | 128]) + var(x >> 7)
    field = lambda i, kind, body: var(i << 3 | kind) + (var(len(body)) + body if kind == 2 else body)
    out = b""
    for i in range(n):
        text, kind = [("<unk>", 2), ("<s>", 3), ("</s>", 3)][i] if i < 3 else ("\u2581w%d" % i, 1)
        out += field(1, 2, field(1, 2, text.encode()) + field(2, 5, struct.pack("<f", -float(i))) + field(3, 0, var(kind)))
    open(path, "wb").write(out + field(2, 2, field(3, 0, var(2))))


def tokenizer(folder, n, kind):
    if kind == "model":
        return sentencepiece(os.path.join(folder, "tokenizer.model"), n)
    vocab = {"<|end|>": n - 1, **{"w%d" % i: i for i in range(n - 1)}}
    pre = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    json.dump({"model": {"type": "BPE", "vocab": vocab, "merges": [["w", "1"]]}, "pre_tokenizer": pre, "added_tokens": [{"id": n - 1, "content": "<|end|>", "special": True}]},
              open(os.path.join(folder, "tokenizer.json"), "w"))
    json.dump({"eos_token": {"content": "<|end|>"}, "chat_template": "{{ x }}"}, open(os.path.join(folder, "tokenizer_config.json"), "w"))


def config(cls, arch, keys, o, how, more):
    base = {"context_length": 256, "embedding_length": E, "block_count": 3, "feed_forward_length": 96, "attention.head_count": H, "attention.layer_norm_epsilon": 1e-5}
    if "attention.layer_norm_rms_epsilon" in keys:
        del base["attention.layer_norm_epsilon"]
    c = {COMMON[k]: v for k, v in {**base, **keys}.items() if k in COMMON}
    if "mamba" in how:
        c.update({"state_size": keys["ssm.state_size"], "conv_kernel": 4, "intermediate_size": 2 * E, "time_step_rank": keys["ssm.time_step_rank"], "layer_norm_epsilon": 1e-5})
    if not any(k in more for k in ("attn_config", "n_positions", "seq_length")) and "rope_parameters" not in more:
        c.setdefault("rope_theta", 10000.0)
    if any(k in more for k in ("attn_config", "n_positions")):
        c = {k: v for k, v in c.items() if k in ("layer_norm_eps",)}
    c.update({k: v for k, v in more.items() if k not in ("n_routed_experts",)})
    if "n_routed_experts" in more:
        c["n_routed_experts"] = c.pop("num_experts")
    return {"architectures": [cls], "text_config": c} if "nested" in how else {"architectures": [cls], **c}


def llama3_factors(n, base):
    wave = 2 * np.pi * base ** (np.arange(n // 2) * 2 / n)
    f, low, high, first = 8.0, 1.0, 4.0, 64
    smooth = (first / wave - low) / (high - low)
    return np.where(wave < first / high, 1, np.where(wave > first / low, f, 1 / ((1 - smooth) / f + smooth)))


# ---- a case --------------------------------------------------------------------------------------------------------------------
def check(lamina, lib, name, tmp, dtype, kind):
    cls, prefix, names, how, more = CASES[name]
    arch, fn, keys, o, *_ = numpy_ref.CASES[{"llama-3": "llama-rope-freqs", "glm4moe-draft": "glm4moe"}.get(name, name)]
    m = sys.modules["numpy_hybrid"].Hybrid(arch, 7, **keys)
    toks, v, rope = np.array([(7 + 37 * i) % V for i in range(24)]), o.get("vocab", V), o.get("rope")
    rope = rope if isinstance(rope, dict) else {}
    n = rope.get("n") or o.get("D") or o.get("E", E) // o.get("H", H)
    if name == "llama-3":
        o = {**o, "rope": {**o["rope"], "base": 10000.0}}
        keys = {**keys, "rope.freq_base": 10000.0}
    if rope.get("factors") == "rope_freqs":
        m.w["rope_freqs.weight"] = llama3_factors(n, 10000.0).astype(np.float32)
    fn(m, toks, None, o)  # makes the weights
    if "draft" in how:  # one more layer, and what joins it to the model
        for k, w in list(m.w.items()):
            if k.startswith("blk.2."):
                m.w["blk.3." + k[6:]] = w[::-1].copy()
        m.lin(np.zeros((1, 2 * E)), "blk.3.nextn.eh_proj", E)
        for a in ("enorm", "hnorm", "shared_head_norm"):
            m.get(f"blk.3.nextn.{a}.weight", (E,), "norm")
    more = json.loads(json.dumps(more))
    for key, factor in (("long_factor", "rope_factors_long"), ("short_factor", "rope_factors_short")):
        if "longrope" in json.dumps(more):
            more["rope_scaling"][key] = [float(x) for x in m.w.setdefault(factor + ".weight", np.ones(n // 2, np.float32))]
    for k, w in m.w.items():  # values that the type can hold
        if not k.startswith("rope_"):
            m.w[k] = rounded(w, dtype)
    tensors = checkpoint_tensors(m, o, prefix, names, how, dtype)
    folder = os.path.join(tmp, "checkpoint")
    subprocess.run(["rm", "-rf", folder], check=True)
    os.mkdir(folder)
    if "shards" in how:
        parts = [dict(list(tensors.items())[i::3]) for i in range(3)]
        files = [f"model-{i + 1:05}-of-00003.safetensors" for i in range(3)]
        for part, f in zip(parts, files):
            safetensors(os.path.join(folder, f), part, dtype)
        index = {"metadata": {}, "weight_map": {t: f for part, f in zip(parts, files) for t in part}}
        json.dump(index, open(os.path.join(folder, "model.safetensors.index.json"), "w"))
    else:
        safetensors(os.path.join(folder, "model.safetensors"), tensors, dtype)
    json.dump(config(cls, arch, keys, o, how, more), open(os.path.join(folder, "config.json"), "w"))
    tokenizer(folder, v, kind)
    out = os.path.join(tmp, "out.gguf")
    p = subprocess.run([lamina, "convert", "--outtype", "f32", folder, out], capture_output=True, text=True)
    if p.returncode:
        return p.stderr.strip()[-300:]
    said = [s for s in p.stderr.splitlines() if "left out" in s and not ("copy" in how and "lm_head" in s)]
    if said:
        return said[0]
    reader = gguf.GGUFReader(out)
    if "draft" in how and [reader.fields[f"{arch}.{k}"].contents() for k in ("block_count", "nextn_predict_layers")] != [4, 1]:
        return "the draft head is not counted"
    got = {t.name: np.array(t.data) for t in reader.tensors}
    want = dict(m.w)
    if "split" in how:
        want = {k: w for k, w in want.items() if "attn_qkv" not in k}
    if "fuse" in how.split():
        want = {k: w for k, w in want.items() if not re.search(r"attn_[qkv]\.", k)}
    for k, w in want.items():
        if k not in got:
            return f"{k} is missing"
        same = np.allclose(got[k].ravel(), w.ravel(), rtol=1e-5) if k.startswith("rope_") or k.endswith("ssm_a") else np.array_equal(got[k].ravel(), w.ravel())
        if not same:
            return f"{k} differs"
    try:
        r = numpy_ref.Runner(lib, out, numpy_ref.NONE, "encoder" in how)
    except RuntimeError as err:
        return str(err)
    try:
        r.encoder = "encoder" in how
        e = numpy_ref.nmse(r.feed([(t, i, 0) for i, t in enumerate(toks)], E if "encoder" in how else v), fn(m, toks, None, o))
    finally:
        r.close()
    return None if e <= 1e-7 else f"logits differ by {e:.2e}"


def big(lamina, tmp):
    """256 MB in one tensor: far less memory must do."""
    folder = os.path.join(tmp, "big")
    os.mkdir(folder)
    v, e = 262144, 256
    t = {"model.embed_tokens.weight": np.zeros((v, e), np.float32), "model.norm.weight": np.ones(e, np.float32)}
    for a, shape in (("q", (e, e)), ("k", (e, e)), ("v", (e, e)), ("o", (e, e))):
        t[f"model.layers.0.self_attn.{a}_proj.weight"] = np.zeros(shape, np.float32)
    for a, shape in (("gate", (e, e)), ("up", (e, e)), ("down", (e, e))):
        t[f"model.layers.0.mlp.{a}_proj.weight"] = np.zeros(shape, np.float32)
    for a in ("input", "post_attention"):
        t[f"model.layers.0.{a}_layernorm.weight"] = np.ones(e, np.float32)
    safetensors(os.path.join(folder, "model.safetensors"), t, "F32")
    json.dump({"architectures": ["LlamaForCausalLM"], "hidden_size": e, "num_hidden_layers": 1, "intermediate_size": e, "num_attention_heads": 4, "max_position_embeddings": 256,
               "rms_norm_eps": 1e-5}, open(os.path.join(folder, "config.json"), "w"))
    sentencepiece(os.path.join(folder, "tokenizer.model"), 1000)
    # in a process of its own: a child begins with its parent's peak
    watch = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    p = subprocess.run([sys.executable, "-c", watch, lamina, "convert", "-q", "--outtype", "q8_0", folder, os.path.join(tmp, "big.gguf")], check=True, capture_output=True, text=True)
    if int(p.stdout) >= 120000:
        return f"{p.stdout.strip()} KB were needed"
    # the checkpoint must not be the output, by whatever name; the folder's name is the model's
    model, link, out = os.path.join(folder, "model.safetensors"), os.path.join(tmp, "link"), os.path.join(tmp, "named.gguf")
    os.symlink(model, link)
    size = os.path.getsize(model)
    for output in (model, link):
        p = subprocess.run([lamina, "convert", "-q", folder, output], capture_output=True, text=True)
        if p.returncode == 0 or "is a file of the checkpoint" not in p.stderr or os.path.getsize(model) != size:
            return f"the checkpoint was the output: {p.stderr.strip()}"
    for args, cwd in (((folder + "/", out), "."), ((".", out), folder)):
        subprocess.run([os.path.abspath(lamina), "convert", "-q", "--outtype", "q8_0", *args], cwd=cwd, check=True)
        name = json.loads(subprocess.run([lamina, "inspect", "--json", out], capture_output=True).stdout)["metadata"]["general.name"]
        if name != "big":
            return f"{args[0]} gave the name {name}"
    return None


def main():
    build, wanted = sys.argv[1], sys.argv[2:]
    lamina, lib, failed = os.path.join(build, "bin", "lamina"), numpy_ref.open_library(os.path.join(build, "lib")), 0
    names = wanted or list(CASES) + ["big"]
    with tempfile.TemporaryDirectory() as tmp:
        for i, name in enumerate(names):
            dtype, kind = ("F32", "BF16", "F16")[i % 3], ("json", "model")[i % 2]
            why = big(lamina, tmp) if name == "big" else check(lamina, lib, name, tmp, dtype, kind)
            failed += why is not None
            print(f"{'FAIL' if why else 'ok  '} {name:24} {dtype} {why or ''}", flush=True)
    print(f"{len(names) - failed} passed, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    numpy_ref.load_cases()
    main()
