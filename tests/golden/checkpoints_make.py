"""Makes tests/golden/checkpoints/NAME.json: what checkpoints of the field's own library look like, and the logits it computes from them.

usage: checkpoints_make.py [NAME ...]        needs torch and transformers (5.24), which the test itself (checkpoints.py) doesn't

A tiny model of each class is written by the library, its weights are replaced by values that follow from their names (checkpoints.py makes the same ones), the
library reads it back and computes. A case holds config.json, the tensors' names and shapes, and logits at some positions.
"""
import base64
import importlib
import json
import os
import re
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file
from safetensors import safe_open

import checkpoints as ck

HERE = os.path.dirname(os.path.abspath(__file__))
BASE = dict(vocab_size=96, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=16, intermediate_size=96, max_position_embeddings=256,
            bos_token_id=0, eos_token_id=1, pad_token_id=2, tie_word_embeddings=False)
EXPERTS = dict(num_experts=8, num_experts_per_tok=3, moe_intermediate_size=40)
MLA = dict(kv_lora_rank=32, q_lora_rank=24, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=20, num_key_value_heads=4)
DS = dict(**MLA, head_dim=8, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=40, n_shared_experts=2, first_k_dense_replace=1, routed_scaling_factor=2.5)
INDEX = dict(index_n_heads=8, index_head_dim=32, index_topk=8)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=64, mscale=1.0, mscale_all_dim=1.0, beta_fast=32, beta_slow=1)
MAMBA2 = dict(mamba_n_heads=8, mamba_d_head=16, mamba_n_groups=2, mamba_d_state=16, mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=16)
DELTA = dict(linear_conv_kernel_dim=4, linear_key_head_dim=16, linear_value_head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4)
V4 = dict(head_dim=32, partial_rotary_factor=0.25, q_lora_rank=24, o_groups=2, o_lora_rank=16, n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=40, swiglu_limit=0.5, hc_sinkhorn_iters=3,
          num_key_value_heads=1, num_nextn_predict_layers=0)
QWEN4 = dict(**EXPERTS, **DELTA, num_hidden_layers=4, shared_expert_intermediate_size=56, hc_lowrank=16, indexer_n_heads=4, indexer_kv_heads=1, indexer_head_dim=16, indexer_budget=8, indexer_compress_ratio=4,
             output_gate_type="sigmoid", rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[3, 3, 2], partial_rotary_factor=1.0))
GEMMA4 = dict(global_head_dim=32, sliding_window=8, vocab_size_per_layer_input=96, layer_types=["sliding_attention"] * 3 + ["full_attention", "sliding_attention", "full_attention"], tie_word_embeddings=True)
SECTIONS = dict(rope_type="default", rope_theta=10000.0, mrope_section=[3, 3, 2])
# name: (model class, config of which class or None for the model's, settings)
CASES = {
    "deepseek-v2": ("DeepseekV2ForCausalLM", dict(**DS, topk_method="greedy", n_group=1, topk_group=1)),
    "deepseek-v3": ("DeepseekV3ForCausalLM", dict(**DS, n_group=4, topk_group=2, norm_topk_prob=True)),
    "deepseek-v3-yarn": ("DeepseekV3ForCausalLM", dict(**DS, n_group=1, topk_group=1, rope_parameters=YARN)),
    "deepseek-v32": ("DeepseekV32ForCausalLM", dict(**DS, **INDEX, n_group=1, topk_group=1)),
    "deepseek-v4": ("DeepseekV4ForCausalLM", dict(**V4, **INDEX, num_hidden_layers=5, sliding_window=8, layer_types=["sliding_attention", "compressed_sparse_attention", "compressed_sparse_attention",
                                                  "heavily_compressed_attention", "sliding_attention"], mlp_layer_types=["hash_moe", "moe", "moe", "moe", "moe"])),
    "glm-moe-dsa": ("GlmMoeDsaForCausalLM", dict(**DS, **INDEX, n_group=1, topk_group=1)),
    "glm4-moe-lite": ("Glm4MoeLiteForCausalLM", dict(**DS, n_group=1, topk_group=1)),
    "minicpm3": ("MiniCPM3ForCausalLM", dict(**MLA, head_dim=8)),
    "mistral4": ("Mistral4ForCausalLM", {**DS, "head_dim": 24}),
    "ministral3": ("Ministral3ForCausalLM", {}),
    "gpt-oss": ("GptOssForCausalLM", dict(num_local_experts=8, num_experts_per_tok=3, sliding_window=8, rope_parameters=dict(rope_type="default", rope_theta=150000.0))),
    "lfm2": ("Lfm2ForCausalLM", dict(layer_types=["conv", "full_attention", "conv"], block_auto_adjust_ff_dim=False)),
    "lfm2-moe": ("Lfm2MoeForCausalLM", dict(layer_types=["conv", "full_attention", "conv"], num_dense_layers=1, **EXPERTS)),
    "qwen3-next": ("Qwen3NextForCausalLM", dict(**EXPERTS, **DELTA, shared_expert_intermediate_size=56, partial_rotary_factor=0.5, layer_types=["linear_attention", "full_attention", "linear_attention"])),
    "qwen3-5": ("Qwen3_5ForCausalLM", dict(**DELTA, rope_parameters={**SECTIONS, "partial_rotary_factor": 1.0}, layer_types=["linear_attention", "full_attention", "linear_attention"])),
    "qwen3-5-moe": ("Qwen3_5MoeForCausalLM", dict(**EXPERTS, **DELTA, shared_expert_intermediate_size=56, rope_parameters={**SECTIONS, "partial_rotary_factor": 1.0}, layer_types=["linear_attention", "full_attention", "linear_attention"])),
    "qwen4-exp": ("Qwen4ExpForCausalLM", dict(**QWEN4, layer_types=["linear_attention", "linear_attention", "indexed_attention", "linear_attention"])),
    "mamba2": ("Mamba2ForCausalLM", dict(num_heads=8, head_dim=16, state_size=16, n_groups=2, expand=2, conv_kernel=4, chunk_size=16)),
    "jamba": ("JambaForCausalLM", dict(num_experts=4, num_experts_per_tok=2, mamba_d_state=8, mamba_d_conv=4, mamba_expand=2, mamba_dt_rank=4, attn_layer_period=3, attn_layer_offset=1, expert_layer_period=2,
                                       expert_layer_offset=1, use_mamba_kernels=False)),
    "falcon-h1": ("FalconH1ForCausalLM", dict(**MAMBA2, mamba_d_ssm=128, embedding_multiplier=2.0, lm_head_multiplier=0.5, key_multiplier=0.7, attention_in_multiplier=1.1, attention_out_multiplier=0.9,
                                              ssm_in_multiplier=1.2, ssm_out_multiplier=0.8, ssm_multipliers=[0.5, 0.6, 0.7, 0.8, 0.9], mlp_multipliers=[1.3, 0.4])),
    "nemotron-h": ("NemotronHForCausalLM", dict(ssm_state_size=16, mamba_num_heads=8, mamba_head_dim=16, n_groups=2, conv_kernel=4, chunk_size=16, layers_block_type=["mamba", "attention", "mlp"])),
    "nemotron-h-moe": ("NemotronHForCausalLM", dict(ssm_state_size=16, mamba_num_heads=8, mamba_head_dim=16, n_groups=2, conv_kernel=4, chunk_size=16, layers_block_type=["mamba", "attention", "moe"],
                                                    n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=40, moe_shared_expert_intermediate_size=56, n_shared_experts=1, n_group=1, topk_group=1)),
    "granite-moe": ("GraniteMoeForCausalLM", dict(num_local_experts=8, num_experts_per_tok=3, logits_scaling=3.0, residual_multiplier=0.5, embedding_multiplier=2.0, attention_multiplier=0.3)),
    "granite-moe-shared": ("GraniteMoeSharedForCausalLM", dict(num_local_experts=8, num_experts_per_tok=3, shared_intermediate_size=56, logits_scaling=3.0)),
    "granite-hybrid": ("GraniteMoeHybridForCausalLM", dict(**MAMBA2, num_local_experts=8, num_experts_per_tok=3, shared_intermediate_size=56, logits_scaling=3.0, residual_multiplier=0.5,
                                                           layer_types=["mamba", "attention", "mamba"], position_embedding_type="nope")),
    "granite-hybrid-dense": ("GraniteMoeHybridForCausalLM", dict(**MAMBA2, num_local_experts=0, shared_intermediate_size=56, layer_types=["mamba", "attention", "mamba"], position_embedding_type="rope")),
    "granite-swa": ("GraniteSWAForCausalLM", dict(sliding_window=8)),
    "granite-moe-swa": ("GraniteMoeSWAForCausalLM", dict(sliding_window=8, num_local_experts=8, num_experts_per_tok=3)),
    "kimi-linear": ("KimiLinearForCausalLM", dict(kv_lora_rank=32, q_lora_rank=None, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=20, num_key_value_heads=4, num_experts=8, num_experts_per_token=3, moe_intermediate_size=40, num_shared_experts=1, first_k_dense_replace=1, mlp_layer_types=["dense", "sparse", "sparse"], layer_types=["linear_attention", "full_attention", "linear_attention"], linear_head_dim=16, linear_num_heads=4, linear_conv_kernel_dim=4)),
    "bailing-hybrid": ("BailingHybridForCausalLM", dict(kv_lora_rank=32, q_lora_rank=None, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=16, num_key_value_heads=4, num_experts=8, num_experts_per_token=3, num_expert_group=1, topk_group=1, moe_intermediate_size=40, num_shared_experts=1, first_k_dense_replace=1, mlp_layer_types=["dense", "sparse", "sparse"], layer_types=["linear_attention", "full_attention", "linear_attention"], linear_head_dim=16, linear_num_heads=4, linear_conv_kernel_dim=4)),
    "minimax": ("MiniMaxForCausalLM", dict(num_local_experts=8, num_experts_per_tok=3, layer_types=["linear_attention", "full_attention", "linear_attention"])),
    "minimax-m2": ("MiniMaxM2ForCausalLM", dict(num_local_experts=8, num_experts_per_tok=3, rotary_dim=8)),
    "minimax-m3": ("MiniMaxM3SparseForConditionalGeneration", "text", dict(num_local_experts=8, num_experts_per_tok=3, num_hidden_layers=4, intermediate_size=40, dense_intermediate_size=96, shared_intermediate_size=40,
                                                               rotary_dim=8, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5), mlp_layer_types=["dense"] + ["sparse"] * 3, layer_types=["full_attention"] + ["minimax_m3_sparse"] * 3, index_n_heads=2, index_head_dim=16,
                                                               index_block_size=4, index_topk_blocks=3)),
    "gemma3-vision": ("Gemma3ForConditionalGeneration", "text", dict(sliding_window=8, num_hidden_layers=6, query_pre_attn_scalar=16, tie_word_embeddings=True)),
    "mistral3-vision": ("Mistral3ForConditionalGeneration", "text", dict(sliding_window=None)),
    "llama4": ("Llama4ForCausalLM", dict(num_local_experts=8, num_experts_per_tok=2, intermediate_size_mlp=80, interleave_moe_layer_step=2, num_hidden_layers=4)),
    "qwen3-vl-moe": ("Qwen3VLMoeForConditionalGeneration", "text", dict(**EXPERTS, rope_parameters=SECTIONS)),
    "qwen3-vl": ("Qwen3VLForConditionalGeneration", "text", dict(rope_parameters=SECTIONS)),
    "qwen2-vl": ("Qwen2VLForConditionalGeneration", "text", dict(rope_parameters=SECTIONS)),
    "qwen2-5-vl": ("Qwen2_5_VLForConditionalGeneration", "text", dict(rope_parameters=SECTIONS)),
    "paddleocr": ("PaddleOCRVLForConditionalGeneration", "text", dict(rope_parameters=SECTIONS)),
    "hunyuan-vl": ("HunYuanVLForConditionalGeneration", "text", dict(rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, alpha=1000.0, factor=1.0, mrope_section=[2, 2, 2, 2]))),
    "dbrx": ("DbrxForCausalLM", dict(d_model=64, n_heads=4, n_layers=3, max_seq_len=256, ffn_config=dict(ffn_hidden_size=96, moe_num_experts=8, moe_top_k=3), attn_config=dict(kv_n_heads=2, clip_qkv=0.6, rope_theta=10000.0))),
    "gemma3n": ("Gemma3nForCausalLM", dict(num_hidden_layers=22, num_kv_shared_layers=2, intermediate_size=[1024] * 22, vocab_size_per_layer_input=6, sliding_window=8, tie_word_embeddings=True)),
    "gemma4": ("Gemma4ForCausalLM", dict(**GEMMA4, num_hidden_layers=6, num_kv_shared_layers=2, hidden_size_per_layer_input=8, use_double_wide_mlp=True, final_logit_softcapping=20.0)),
    "gemma4-moe": ("Gemma4ForCausalLM", dict(**GEMMA4, num_hidden_layers=6, hidden_size_per_layer_input=0, enable_moe_block=True, num_experts=8, top_k_experts=3, moe_intermediate_size=40, attention_k_eq_v=True,
                                             num_global_key_value_heads=1)),
    "gemma-embedding": ("Gemma3TextModel", dict(sliding_window=8, use_bidirectional_attention=True, query_pre_attn_scalar=16)),
    "stablelm-norms": ("StableLmForCausalLM", dict(qk_layernorm=True, use_parallel_residual=True)),
    "stablelm": ("StableLmForCausalLM", dict(use_qkv_bias=True)),
    "cohere-norms": ("CohereForCausalLM", dict(use_qk_norm=True, tie_word_embeddings=True, num_hidden_layers=64, hidden_size=32, head_dim=8, intermediate_size=32)),
    "cohere2-moe": ("Cohere2MoeForCausalLM", dict(num_experts=8, num_experts_per_tok=3, num_shared_experts=1, first_k_dense_replace=1, sliding_window=8, num_hidden_layers=5)),
    "afmoe": ("AfmoeForCausalLM", dict(**EXPERTS, num_dense_layers=1, num_shared_experts=1, sliding_window=8, num_hidden_layers=5, mup_enabled=True)),
    "exaone-moe": ("ExaoneMoeForCausalLM", dict(**EXPERTS, num_shared_experts=1, first_k_dense_replace=1, sliding_window=8, num_hidden_layers=5)),
    "ernie4-5-moe": ("Ernie4_5_MoeForCausalLM", dict(moe_num_experts=8, moe_k=3, moe_intermediate_size=40, moe_num_shared_experts=2, moe_layer_start_index=1)),
    "hunyuan-dense": ("HunYuanDenseV1ForCausalLM", {}),
    "hunyuan-moe": ("HunYuanMoEV1ForCausalLM", dict(num_experts=8, moe_topk=3)),
    "hy-v3": ("HYV3ForCausalLM", dict(**EXPERTS, first_k_dense_replace=1, num_shared_experts=1)),
    "hy-v4": ("HYV4ForCausalLM", dict(**DS, **INDEX, num_hidden_layers=6, swiglu_limit=0.5)),
    "laguna": ("LagunaForCausalLM", dict(**EXPERTS, shared_expert_intermediate_size=56, sliding_window=8, num_hidden_layers=5, mlp_layer_types=["dense"] + ["sparse"] * 4, layer_types=["full_attention"] + ["sliding_attention"] * 3 + ["full_attention"], num_attention_heads_per_layer=[4, 2, 4, 4, 2])),
    "mellum": ("MellumForCausalLM", dict(num_experts=8, num_experts_per_tok=3, moe_intermediate_size=40, sliding_window=8, layer_types=["sliding_attention", "sliding_attention", "full_attention"],
                                           rope_parameters={k: dict(rope_type="default", rope_theta=10000.0) for k in ("full_attention", "sliding_attention")})),
    "mimo-v2": ("MiMoV2FlashForCausalLM", dict(n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=40, v_head_dim=24, sliding_window=8, rope_parameters={k: dict(rope_type="default", rope_theta=t, partial_rotary_factor=0.5) for k, t in (("full_attention", 5e6), ("sliding_attention", 1e4))})),
    "dots3-note": ("Dots3NoteForCausalLM", dict(**DS, **INDEX, num_hidden_layers=6, sliding_window=8, shared_experts_intermediate_size=80, swa_num_attention_heads=2, swa_num_key_value_heads=2,
                                                            swa_q_lora_rank=24, swa_kv_lora_rank=40, swa_head_dim=20, swa_qk_nope_head_dim=12, swa_v_head_dim=16)),
    "glm5-next": ("Glm5NextForConditionalGeneration", "text", {**DS, **INDEX, "qk_rope_head_dim": 0, "num_hidden_layers": 5, "index_kpool": 2, "mlp_layer_types": ["dense"] + ["sparse"] * 4, "linear_head_dim": 16,
                                                                   "linear_num_heads": 4, "hc_sinkhorn_iters": 3, "swiglu_limit": 0.5}),
    "muse-glimmer": ("MuseGlimmerForConditionalGeneration", "text", dict(sliding_window=8, num_hidden_layers=5)),
    "hrm-text": ("HrmTextForCausalLM", dict(num_hidden_layers=2, H_cycles=2, L_cycles=2, embedding_scale=5.0)),
    "jais2": ("Jais2ForCausalLM", {}),
    "t5": ("T5ForConditionalGeneration", dict(d_model=64, d_kv=16, d_ff=96, num_layers=2, num_decoder_layers=3, num_heads=4, feed_forward_proj="gated-gelu", decoder_start_token_id=0)),
    "t5-relu": ("T5ForConditionalGeneration", dict(d_model=64, d_kv=24, d_ff=96, num_layers=3, num_decoder_layers=2, num_heads=4, tie_word_embeddings=False, decoder_start_token_id=0)),
    "t5-encoder": ("T5EncoderModel", dict(d_model=64, d_kv=16, d_ff=96, num_layers=3, num_heads=4, feed_forward_proj="gated-gelu")),
    "bert": ("BertModel", dict(layer_norm_eps=1e-5)),
    "roberta": ("RobertaModel", dict(max_position_embeddings=258, pad_token_id=1)),
    "xlm-roberta": ("XLMRobertaModel", dict(max_position_embeddings=258, pad_token_id=1, type_vocab_size=1)),
    "xlm-roberta-rank": ("XLMRobertaForSequenceClassification", dict(max_position_embeddings=258, pad_token_id=1, type_vocab_size=1, num_labels=1)),
    "modernbert": ("ModernBertModel", dict(local_attention=8)),
    "nomic-bert": ("NomicBertModel", {}),
    "jina-v3": ("JinaEmbeddingsV3Model", {}),
}


def settings_of(case):
    cls, *rest = CASES[case]
    text = rest[0] == "text"
    return cls, text, rest[-1]


def build(case):
    cls, text, more = settings_of(case)
    model_cls = getattr(transformers, cls, None) or getattr(importlib.import_module("transformers.models.dots3_note.modeling_dots3_note"), cls)
    config_cls = model_cls.config_class
    kw = {**BASE, **more}
    if text:
        config = config_cls(text_config={**BASE, **more}, tie_word_embeddings=False)
        for key in ("vision_config",):  # as small as may be: nothing of it is used
            v = getattr(config, key, None)
            for name, value in (("depth", 1), ("hidden_size", 32), ("num_heads", 2), ("intermediate_size", 32), ("embed_dim", 32), ("mlp_ratio", 1), ("out_hidden_size", 64), ("num_hidden_layers", 1),
                                ("num_attention_heads", 2), ("num_position_embeddings", 16), ("deepstack_visual_indexes", [0]), ("image_size", 28), ("patch_size", 14), ("fullatt_block_indexes", [0])):
                if hasattr(v, name):
                    setattr(v, name, value)
            if getattr(v, "layer_types", None):
                v.layer_types = v.layer_types[:1]
    else:
        config = config_cls(**kw)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    torch.manual_seed(0)
    return model_cls, config, model_cls(config)


def make(case, tmp):
    model_cls, config, model = build(case)
    folder = os.path.join(tmp, case)
    model.eval().float().save_pretrained(folder)
    path = os.path.join(folder, "model.safetensors")
    with safe_open(path, "np") as f:
        shapes = {k: list(f.get_slice(k).get_shape()) for k in f.keys() if not any(s in k for s in ("visual.", "vision_", "vit.", "multi_modal_projector", "patch_merge", "_decay", "slope_rate"))}
        rest = {k: f.get_tensor(k) for k in f.keys() if k not in shapes}
    tensors = {k: ck.values(k, s) for k, s in shapes.items()}
    save_file({**rest, **tensors}, path, {"format": "pt"})
    again, info = model_cls.from_pretrained(folder, output_loading_info=True, attn_implementation="eager", experts_implementation="eager", dtype=torch.float32)
    assert not info["missing_keys"], f"missing: {info['missing_keys']}"
    again = again.eval().double()
    tokens = torch.tensor([ck.TOKENS])
    with torch.no_grad():
        if case.startswith("t5") and case != "t5-encoder":
            out = again(input_ids=tokens, decoder_input_ids=torch.tensor([ck.DECODER])).logits
        else:
            res = again(input_ids=tokens, **({} if hasattr(config, "is_encoder_decoder") and case.endswith(("bert", "roberta", "rank", "encoder", "v3", "embedding")) else {"use_cache": False}))
            out = res.logits if getattr(res, "logits", None) is not None else res.last_hidden_state
    rows = out[0].float().numpy() if out.ndim == 3 else out.float().numpy()
    keep = [0] if case == "gemma3n" else list(range(len(rows))) if len(rows) < 6 else ck.AT if len(rows) == len(ck.TOKENS) else list(range(0, len(rows), 3))
    cfg = json.load(open(os.path.join(folder, "config.json")))
    cfg.pop("vision_config", None)
    # of a vision model's other tensors, one of each kind: the test has them there, and nothing must be said of them
    beside = sorted({re.sub(r"\d+", "0", k) for k in rest})
    case_file = {"config": cfg, **({"beside": beside} if beside else {}), "tensors": shapes, "at": keep, "rows": base64.b64encode(np.ascontiguousarray(rows[keep]).tobytes()).decode(), "width": int(rows.shape[-1])}
    return case_file


def main():
    os.makedirs(os.path.join(HERE, "checkpoints"), exist_ok=True)
    for case in sys.argv[1:] or CASES:
        with tempfile.TemporaryDirectory() as tmp:
            try:
                made = make(case, tmp)
            except Exception as err:
                print(f"FAIL {case}: {type(err).__name__} {str(err)[:300]}", flush=True)
                continue
            with open(os.path.join(HERE, "checkpoints", case + ".json"), "w") as f:
                json.dump(made, f, separators=(",", ":"))
                f.write("\n")
            print(f"ok   {case} {len(made['tensors'])} tensors", flush=True)


main()
