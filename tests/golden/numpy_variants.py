"""Variants that the golden files don't have: heads shared and not, tied and own outputs, biases, ways to scale rotation, windows, choices of experts."""
import numpy as np

from numpy_dense import transformer
from numpy_ref import E, F, H, V

RMS = {"attention.layer_norm_rms_epsilon": 1e-5}


def case(arch, _keys=None, _pool=None, **o):
    """The keys that say what the options say; more of them in _keys."""
    k = {} if o.get("norm", "rms").startswith("ln") else dict(RMS)
    n, per_layer = o.get("layers", 3), lambda v: [v(i) for i in range(o.get("layers", 3))] if callable(v) else v
    for name, key in (("E", "embedding_length"), ("layers", "block_count"), ("vocab", "vocab_size"), ("F", "feed_forward_length"), ("H", "attention.head_count"),
                      ("K", "attention.head_count_kv"), ("D", "attention.key_length"), ("R", "rope.dimension_count"), ("clamp", "attention.clamp_kqv"),
                      ("ql", "attention.q_lora_rank"), ("r", "attention.kv_lora_rank")):
        if name in o:
            k[key] = per_layer(o[name])
    if "D" in o:
        k["attention.value_length"] = o.get("Dv", o["D"])
    r = o.get("rope")
    if isinstance(r, dict):
        for name, key in (("n", "rope.dimension_count"), ("base", "rope.freq_base"), ("f", "rope.scaling.factor"), ("type", "rope.scaling.type"),
                          ("orig", "rope.scaling.original_context_length"), ("a", "rope.scaling.attn_factor")):
            if name in r:
                k[key] = r[name]
    if o.get("moe"):
        e = o["moe"]
        k.update({"expert_count": e["n"], "expert_used_count": e["used"]})
        if "groups" in e:
            k.update({"expert_group_count": e["groups"][0], "expert_group_used_count": e["groups"][1]})
    return (arch, transformer, {**k, **(_keys or {})}, o, *([] if _pool is None else [_pool]))


def rope(kind, **r):
    return dict(kind=kind, **r)


NORM, NEOX = rope("norm"), rope("neox")
LLAMA = dict(rope=NORM)
YARN = dict(f=4.0, type="yarn", orig=64)
LONG, SHORT = dict(type="longrope", orig=128, factors="rope_factors_long"), dict(type="longrope", orig=512, factors="rope_factors_short")
EX = dict(n=4, used=2)
NEXT = {"expert_weights_norm": True, "expert_weights_scale": 2.5}

CASES = {
    # ---- llama and its like
    "llama-gqa-tied": case("llama", K=2, D=24, tied=True, **LLAMA),
    "llama-mha-biases": case("llama", fused=True, qkv_bias="fused", o_bias=True, ffn_bias=True, **LLAMA),
    "llama-scaled-biases": case("llama", K=2, qkv_bias=True, ffn_bias=True, ffn_scales=True, **LLAMA),
    "llama-split-biases": case("llama", K=2, fused=True, qkv_bias="split", **LLAMA),
    "llama-mqa-one-layer": case("llama", layers=1, K=1, **LLAMA),
    "llama-odd-sizes": case("llama", E=96, H=3, K=1, F=80, vocab=83, layers=2, **LLAMA),
    "llama-big-vocab": case("llama", vocab=70001, layers=1, tied=True, **LLAMA),
    "llama-linear": case("llama", rope=rope("norm", f=4.0, type="linear")),
    "llama-linear-unnamed": case("llama", rope=rope("norm", f=4.0)),
    "llama-linear-old-key": case("llama", {"rope.scale_linear": 4.0, "rope.scaling.factor": 0.0}, rope=rope("norm", f=4.0)),
    "llama-no-scaling": case("llama", rope=rope("norm", f=4.0, type="none", a=1.1)),
    "llama-yarn": case("llama", K=2, D=32, rope=rope("norm", base=5000.0, a=1.3, **YARN)),
    "llama-yarn-factor-1": case("llama", rope=rope("norm", type="yarn", f=1.0, orig=64)),
    "llama-rope-freqs": case("llama", K=2, rope=rope("norm", base=500000.0, factors="rope_freqs")),
    "llama-longrope": case("llama", D=32, rope=rope("norm", a=1.2, **LONG)),
    "llama-longrope-short": case("llama", rope=rope("norm", f=2.0, **SHORT)),
    "llama-experts": case("llama", K=2, tied=True, moe=dict(n=8, used=3, norm=True), **LLAMA),
    "llama-experts-no-gate": case("llama", moe=dict(**EX, norm=True, no_gate=True), **LLAMA),
    "llama-one-expert": case("llama", moe=dict(n=4, used=1, norm=True), **LLAMA),
    "mistral3": case("mistral3", {"rope.scaling.yarn_log_multiplier": 0.7, "rope.scaling.yarn_beta_fast": 16.0, "rope.scaling.yarn_beta_slow": 2.0, "attention.temperature_scale": 0.3,
                                  "rope.scaling.original_context_length": 10},
                     K=2, D=32, temp=(0.3, 10), o_bias=True, rope=rope("norm", **{**YARN, "orig": 10}, fast=16, slow=2, q=0.7)),
    "mistral3-experts": case("mistral3", moe=dict(n=6, used=2, norm=True), tied=True, **LLAMA),
    "smollm3": case("smollm3", layers=5, K=2, tied=True, qkv_bias=True, rope=lambda i: None if i == 3 else NORM),
    "internlm2": case("internlm2", K=1, fused=True, **LLAMA),
    "openelm": case("openelm", H=lambda i: [4, 2, 6][i], K=lambda i: [2, 1, 3][i], F=lambda i: [96, 64, 128][i], D=16, fused=True, tied=True, qk_norm="rms", rope=NEOX),
    "arcee": case("arcee", K=2, tied=True, ffn="plain relu2", rope=rope("norm", factors="rope_freqs")),
    "xverse-gqa": case("xverse", K=2, **LLAMA),
    "seed-oss-yarn": case("seed_oss", K=2, D=24, ffn_norm="post_attention_norm", rope=rope("neox", **YARN)),
    "exaone-freqs": case("exaone", K=2, tied=True, rope=rope("neox", factors="rope_freqs")),
    "exaone4-64-layers": case("exaone4", {"attention.sliding_window": 8}, layers=64, K=2, form="post", qk_norm="rms",
                              window=lambda i: 8 if i % 4 < 3 else 0, rope=lambda i: NEOX if i % 4 < 3 else None),
    "exaone4-tied": case("exaone4", {"attention.sliding_window": 8}, tied=True, form="post", qk_norm="rms", rope=NEOX),
    "nemotron-partial": case("nemotron", norm="ln+b", K=2, o_bias=True, ffn_bias=True, ffn="plain relu2", rope=rope("neox", n=8)),
    "codeshell-gqa": case("codeshell", norm="ln+b", K=2, fused=True, qkv_bias=True, o_bias=True, ffn_bias=True, ffn="plain gelu", rope=NEOX),
    "plamo-gqa": case("plamo", K=2, form="parallel", rope=NEOX),
    "baichuan-32-layers": case("baichuan", layers=32, **LLAMA),
    "baichuan-40-layers": case("baichuan", layers=40, alibi=8),
    "chatglm-partial": case("chatglm", K=2, qkv_bias="fused", fused=True, ffn="fused silu", rope=rope("norm", n=8)),
    "hunyuan-dense-alpha": case("hunyuan-dense", {"rope.scaling.alpha": 1000.0}, K=2, D=32, tied=True, qk_norm="rms", norm_after_rope=True,
                                rope=lambda i: rope("neox", base=10000.0 * 1000.0 ** (32 / 30))),
    "jais2-gqa": case("jais2", norm="ln+b", K=2, tied=True, qkv_bias=True, o_bias=True, ffn_bias=True, ffn="plain relu2", rope=NEOX),
    "maincoder-gqa": case("maincoder", K=2, D=32, tied=True, qk_norm="rms", norm_after_rope=True, rope=NORM),
    "refact-gqa": case("refact", K=2, tied=True, alibi=8),
    "refact-mqa": case("refact", K=1, tied=True, alibi=8, F=256),
    "jais": case("jais", {"attention.max_alibi_bias": 8.0}, norm="ln+b", fused=True, qkv_bias="fused", o_bias=True, ffn_bias=True, alibi=8, scale=4 / E),
    "nanbeige-loops": case("nanbeige", {"num_loops": 2}, K=2, loops=2, **LLAMA),
    "nanbeige-skips": case("nanbeige", {"num_loops": 3, "skip_loop_final_norm": True}, tied=True, loops=3, loop_norm=False, **LLAMA),
    "stablelm-no-bias": case("stablelm", norm="ln+b", ffn_norm_kind="ln", rope=rope("neox", n=4)),
    "plamo3-own": case("plamo3", {"attention.sliding_window": 8, "attention.sliding_window_pattern": 2, "rope.freq_base_swa": 500.0}, K=2, D=32, fused=True, tied=True, qk_norm="rms", form="sandwich",
                       post_attn="post_attention_norm!", post_ffn="post_ffw_norm!", ffn="fused silu", window=lambda i: 8 if i % 2 == 0 else 0,
                       rope=lambda i: rope("neox", base=500.0) if i % 2 == 0 else NEOX),
    "ernie4_5-gqa": case("ernie4_5", K=2, D=24, tied=True, rope=NORM),
    "plamo3": case("plamo3", {"attention.sliding_window": 8, "attention.sliding_window_pattern": 2, "rope.freq_base_swa": 500.0, "rope.scaling.factor": 4.0, "rope.dimension_count": 16},
                   K=2, D=32, Dv=24, fused=True, qk_norm="rms", form="sandwich", post_attn="post_attention_norm!", post_ffn="post_ffw_norm!", ffn="fused silu", window=lambda i: 8 if i % 2 == 0 else 0,
                   rope=lambda i: rope("neox", n=16, base=500.0) if i % 2 == 0 else rope("neox", n=16, f=4.0)),
    # ---- qwen
    "qwen2-biases": case("qwen2", K=2, qkv_bias=True, out_bias=True, rope=NEOX),
    "qwen2-tied-yarn": case("qwen2", K=1, tied=True, rope=rope("neox", base=1e6, **YARN)),
    "qwen2moe-widths": case("qwen2moe", {"expert_feed_forward_length": 40, "expert_shared_feed_forward_length": 56}, K=2, qkv_bias=True, rope=NEOX,
                            moe=dict(n=6, used=3, width=40, shared=56, shared_gate=True)),
    "qwen2moe-widths-by-f": case("qwen2moe", {"expert_feed_forward_length": 0}, rope=NEOX, moe=dict(n=6, used=3, width=F // 3, shared=F, shared_gate=True)),
    "qwen3-gqa-tied": case("qwen3", K=2, D=32, tied=True, qk_norm="rms", rope=rope("neox", base=1e6)),
    "qwen3moe-gqa": case("qwen3moe", {"expert_feed_forward_length": 40}, K=1, D=24, qk_norm="rms", rope=NEOX, moe=dict(n=8, used=3, width=40, norm=True)),
    "qwen3moe-width-by-f": case("qwen3moe", tied=True, qk_norm="rms", rope=NEOX, moe=dict(**EX, width=F // 2, norm=True)),
    # ---- phi, granite, minicpm
    "phi2-fused-partial": case("phi2", norm="ln+b", form="parallel", fused=True, qkv_bias="fused", o_bias=True, ffn="plain gelu", ffn_bias=True, out_bias=True, rope=rope("neox", n=8)),
    "phi3-short": case("phi3", {"attention.sliding_window": 4}, K=2, fused=True, ffn="fused silu", rope=rope("neox", n=12, a=1.19, **SHORT)),
    "phi3-long-tied": case("phi3", K=1, tied=True, ffn="fused silu", rope=rope("neox", a=1.19, **LONG)),
    "phi3-plain": case("phi3", K=2, fused=True, ffn="fused silu", rope=rope("neox", n=8)),
    "phimoe": case("phimoe", norm="rms+b", K=2, qkv_bias=True, o_bias=True, out_bias=True, rope=rope("neox", **LONG), moe=dict(**EX, norm=True)),
    "phimoe-half": case("phimoe", norm="rms+b", K=2, qkv_bias=True, o_bias=True, out_bias=True, rope=rope("neox", n=8, n_factors=8, **LONG), moe=dict(**EX, norm=True)),
    "granite-no-rope": case("granite", {"logit_scale": 8.0, "residual_scale": 0.22, "embedding_scale": 12.0, "attention.scale": 0.1, "rope.scaling.finetuned": False}, K=2, tied=True,
                            residual=0.22, embd_scale=12.0, scale=0.1, logit_scale=1 / 8),
    "granite-logit-scale": case("granite", {"logit_scale": 3.0}, o_bias=True, ffn_bias=True, logit_scale=1 / 3, **LLAMA),
    "granitemoe": case("granitemoe", {"logit_scale": 8.0, "residual_scale": 0.22, "embedding_scale": 12.0, "attention.scale": 0.1, "rope.scaling.finetuned": False,
                                      "expert_shared_feed_forward_length": 48},
                       K=2, residual=0.22, embd_scale=12.0, scale=0.1, logit_scale=1 / 8, moe=dict(**EX, norm=True, shared=48), **LLAMA),
    "granite-swa": case("granite_swa", {"logit_scale": 8.0, "residual_scale": 0.22, "embedding_scale": 12.0, "attention.scale": 0.1, "expert_shared_feed_forward_length": 48,
                                        "attention.sliding_window": 8, "attention.sliding_window_pattern": [1, 0, 1], "attention.rope_pattern": [1, 0, 1]},
                        K=2, residual=0.22, embd_scale=12.0, scale=0.1, logit_scale=1 / 8, sinks=True, window=lambda i: 0 if i == 1 else 8,
                        rope=lambda i: None if i == 1 else NORM, shared_kind="fused", moe=dict(**EX, norm=True, shared=48)),
    "minicpm-defaults": case("minicpm", K=2, tied=True, residual=1.4 / np.sqrt(3), embd_scale=12.0, logit_scale=E / 256, **LLAMA),
    "minicpm-experts": case("minicpm", {"embedding_scale": 2.0, "residual_scale": 0.5, "logit_scale": 4.0}, residual=0.5, embd_scale=2.0, logit_scale=1 / 4, moe=dict(n=8, used=3, norm=True),
                            **LLAMA),
    "minicpm-longrope": case("minicpm", {"embedding_scale": 0.0, "residual_scale": 0.0, "logit_scale": 0.0}, rope=rope("norm", **SHORT)),
    # ---- cohere, olmo
    "command-r-gqa": case("command-r", {"logit_scale": 1 / 16}, norm="ln", form="parallel", K=2, tied=True, logit_scale=1 / 16, **LLAMA),
    "command-r-64-layers": case("command-r", {"logit_scale": 0.0}, norm="ln", form="parallel", layers=64, K=2, tied=True, qk_norm="own ln", **LLAMA),
    "cohere2": case("cohere2", {"logit_scale": 0.25, "attention.sliding_window": 8, "rope.freq_base_swa": 50.0, "rope.scaling.factor": 4.0}, norm="ln", form="parallel", layers=5, K=2, tied=True,
                    logit_scale=0.25, window=lambda i: 8 if i % 4 < 3 else 0, rope=lambda i: rope("norm", f=4.0) if i % 4 < 3 else None),
    "cohere2-array": case("cohere2", {"logit_scale": 2.0, "attention.sliding_window": 5, "attention.sliding_window_pattern": [0, 1, 0]}, norm="ln", form="parallel", tied=True,
                          logit_scale=2.0, window=lambda i: 5 if i == 1 else 0, rope=lambda i: NORM if i == 1 else None),
    "cohere2moe-ln": case("cohere2moe", {"logit_scale": 0.5, "attention.sliding_window": 8, "leading_dense_block_count": 1, "expert_feed_forward_length": 40, "expert_shared_count": 2},
                          norm="ln", form="parallel", K=2, tied=True, logit_scale=0.5, window=lambda i: 8 if i % 4 else 0, rope=NORM,
                          moe=dict(n=6, used=3, width=40, gating="sigmoid", shared=80, half=0.5, layers=lambda i: i >= 1)),
    "cohere2moe-rms": case("cohere2moe", {**NEXT, "logit_scale": 0.0, "attention.sliding_window": 8, "leading_dense_block_count": 0, "expert_feed_forward_length": 0, "expert_shared_count": 0,
                                          "attention.sliding_window_pattern": 0, "expert_gating_func": 1},
                           form="parallel", window=8, rope=NORM, moe=dict(n=6, used=3, merged=True, norm=True, wscale=2.5)),
    "olmo-clamp-tied": case("olmo", norm="ln-", clamp=0.7, K=2, tied=True, **LLAMA),
    "olmo2-gqa": case("olmo2", form="post", qk_norm="row rms", K=2, rope=NEOX),
    "olmo2-biases": case("olmo2", form="post", qk_norm="row rms", qkv_bias=True, rope=rope("neox", **YARN)),
    "olmo3": case("olmo2", {"attention.sliding_window": 8, "rope.scaling.factor": 8.0, "rope.scaling.type": "yarn", "rope.scaling.original_context_length": 64, "rope.scaling.attn_factor": 1.2},
                  form="post", qk_norm="row rms", layers=5, window=lambda i: 8 if i % 4 < 3 else 0,
                  rope=lambda i: NEOX if i % 4 < 3 else rope("neox", f=8.0, type="yarn", orig=64, a=1.2)),
    "olmoe": case("olmoe", qk_norm="row rms", qkv_bias=True, rope=NEOX, moe=dict(n=6, used=3)),
    # ---- the GPTs
    "gpt2-tied": case("gpt2", norm="ln+b", positions=True, fused=True, qkv_bias="fused", o_bias=True, ffn="plain gelu", ffn_bias=True, tied=True),
    "starcoder-mqa": case("starcoder", norm="ln+b", positions=True, K=1, fused=True, qkv_bias="fused", o_bias=True, ffn="plain gelu", ffn_bias=True),
    "starcoder2-gqa": case("starcoder2", norm="ln+b", K=2, qkv_bias=True, o_bias=True, ffn="plain gelu", ffn_bias=True, tied=True, rope=rope("neox", base=100000.0)),
    "falcon-7b": case("falcon", norm="ln+b", form="parallel", K=1, fused=True, ffn="plain gelu", tied=True, rope=NEOX),
    "falcon-40b": case("falcon", norm="ln+b", form="parallel", K=2, fused=True, ffn="plain gelu", attn_norm="attn_norm_2", rope=NEOX),
    "gptneox-parallel": case("gptneox", {"use_parallel_residual": True}, norm="ln+b", form="parallel", ffn_norm="ffn_norm", fused=True, qkv_bias="fused", o_bias=True, ffn="plain gelu",
                             ffn_bias=True, rope=rope("neox", n=4)),
    "gptneox-sequential": case("gptneox", {"use_parallel_residual": False}, norm="ln+b", fused=True, qkv_bias="fused", o_bias=True, ffn="plain gelu", ffn_bias=True, rope=rope("neox", n=8)),
    "mpt-all": case("mpt", {"attention.max_alibi_bias": 8.0}, E=96, H=6, K=2, norm="ln+b", fused=True, qkv_bias="fused", o_bias=True, ffn="plain gelu", ffn_bias=True, positions=True, clamp=0.6,
                    act_scales=True, alibi=8, tied=True),
    "mpt-bare": case("mpt", {"attention.max_alibi_bias": 4.0}, norm="ln", fused=True, ffn="plain gelu", alibi=4),
    "mpt-no-positions": case("mpt", norm="ln", fused=True, ffn="plain gelu"),
    "mpt-qk-norms": case("mpt", {"attention.max_alibi_bias": 8.0}, norm="ln", fused=True, K=2, qk_norm="row ln", ffn="plain gelu", alibi=8),
    "bloom-6-heads": case("bloom", E=96, H=6, norm="ln+b", embd_norm=True, fused=True, qkv_bias="fused", o_bias=True, ffn="plain gelu", ffn_bias=True, alibi=8, tied=True),
    "stablelm-parallel": case("stablelm", norm="ln+b", form="parallel", K=2, qk_norm="own ln", rope=rope("neox", n=4)),
    "stablelm-pre-norm": case("stablelm", norm="ln+b", qkv_bias=True, rope=rope("neox", n=4)),
    "gpt-oss": case("gpt-oss", {"attention.sliding_window": 8, "expert_feed_forward_length": 40}, H=8, K=2, D=16, qkv_bias=True, o_bias=True, sinks=True, ffn_norm="post_attention_norm",
                    window=lambda i: 8 if i % 2 == 0 else 0, rope=rope("neox", base=150000.0, f=32.0, type="yarn", orig=64),
                    moe=dict(n=6, used=3, width=40, gating="late", biases=True, oai=True)),
    "gpt-oss-scaled-windows": case("gpt-oss", {"attention.sliding_window": 8, "expert_feed_forward_length": 40, "rope.scaling.type": "none", "rope.scaling.factor": 4.0}, H=8, K=2, D=16,
                                   o_bias=True, sinks=True, ffn_norm="post_attention_norm", window=lambda i: 8 if i % 2 == 0 else 0,
                                   rope=lambda i: rope("neox", f=1.0 if i % 2 else 4.0), moe=dict(n=6, used=3, width=40, gating="late", biases=True, oai=True)),
    "gpt-oss-no-biases": case("gpt-oss", {"attention.sliding_window": 8, "attention.sliding_window_pattern": 3, "rope.freq_base_swa": 500.0, "expert_feed_forward_length": F,
                                          "rope.scaling.factor": 2.0}, D=16, o_bias=True, sinks=True, ffn_norm="post_attention_norm", window=lambda i: 8 if i % 3 < 2 else 0,
                              rope=lambda i: rope("neox", f=2.0, base=500.0 if i % 3 < 2 else 10000.0), moe=dict(**EX, gating="late", biases=True, oai=True)),
}

# ---- gemma --------------------------------------------------------------------------------------------------------------
GEMMA = dict(ffn="gate gelu", embd_scale=np.sqrt(E))
SWA = {"attention.sliding_window": 8}


def pairs(n, swa, full):
    """Windowed layers by the usual pattern n."""
    return dict(window=lambda i: 8 if i % n < n - 1 else 0, rope=lambda i: swa if i % n < n - 1 else full)


CASES.update({
    "gemma-mqa": case("gemma", K=1, D=32, tied=True, rope=NEOX, **GEMMA),
    "gemma2": case("gemma2", {**SWA, "attn_logit_softcapping": 20.0, "final_logit_softcapping": 10.0}, K=2, D=24, layers=4, form="sandwich", tied=True, softcap=20.0, final_softcap=10.0,
                   **pairs(2, NEOX, NEOX), **GEMMA),
    "gemma2-pattern": case("gemma2", {**SWA, "attention.sliding_window_pattern": 3, "rope.freq_base_swa": 500.0, "rope.scaling.factor": 2.0}, layers=4, form="sandwich", tied=True, softcap=50.0,
                           final_softcap=30.0, **pairs(3, rope("neox", base=500.0, f=2.0), rope("neox", f=2.0)), **GEMMA),
    "gemma2-27b": case("gemma2", SWA, K=2, D=24, layers=46, form="sandwich", tied=True, softcap=50.0, final_softcap=30.0, scale=1 / 4, **pairs(2, NEOX, NEOX), **GEMMA),
    "gemma3": case("gemma3", {**SWA, "rope.freq_base": 1e6, "rope.scaling.factor": 8.0}, K=1, D=32, layers=7, form="sandwich", tied=True, qk_norm="rms",
                   **pairs(6, NEOX, rope("neox", base=1e6, f=8.0)), **GEMMA),
    "gemma3-magnitude": case("gemma3", {**SWA, "rope.freq_base": 1e6, "rope.scaling.factor": 8.0, "rope.scaling.attn_factor": 1.25}, K=1, D=32, layers=7, form="sandwich", tied=True,
                             qk_norm="rms", **pairs(6, rope("neox", a=1.25), rope("neox", base=1e6, f=8.0, a=1.25)), **GEMMA),
    "gemma3-no-window": case("gemma3", {"final_logit_softcapping": 20.0}, K=2, form="sandwich", qk_norm="rms", final_softcap=20.0, rope=rope("neox", base=1e6), **GEMMA),
    "gemma3-27b": case("gemma3", {**SWA, "rope.freq_base": 1e6}, K=2, D=24, layers=62, form="sandwich", tied=True, qk_norm="rms", scale=1 / 4, **pairs(6, NEOX, rope("neox", base=1e6)), **GEMMA),
    "gemma-embedding": case("gemma-embedding", {**SWA, "attention.sliding_window": 9, "rope.freq_base": 1e6}, 0, K=2, D=32, layers=7, form="sandwich", qk_norm="rms", both_ways=True,
                            window=lambda i: 9 if i % 6 < 5 else 0, rope=lambda i: NEOX if i % 6 < 5 else rope("neox", base=1e6), **GEMMA),
})

# ---- by layer, by array, and keys that these architectures do not read
CASES.update({
    "llama-by-layer": case("llama", H=lambda i: 4, K=lambda i: [4, 2, 1][i], F=lambda i: [96, 64, 128][i], **LLAMA),
    "qwen3-by-layer": case("qwen3", K=lambda i: [1, 2, 4][i], F=lambda i: [96, 64, 128][i], qk_norm="rms", rope=NEOX),
    "llama-wide-odd": case("llama", E=72, H=3, K=1, D=16, F=88, vocab=81, layers=2, **LLAMA),
    "gemma3-array": case("gemma3", {**SWA, "attention.sliding_window_pattern": [0, 1, 1], "rope.freq_base": 1e6}, K=2, D=16, form="sandwich", tied=True, qk_norm="rms", window=lambda i: 8 if i else 0, rope=lambda i: NEOX if i else rope("neox", base=1e6), **GEMMA),
    "gemma2-pattern-0": case("gemma2", {**SWA, "attention.sliding_window_pattern": 0}, form="sandwich", tied=True, softcap=50.0, final_softcap=30.0, window=8, rope=NEOX, **GEMMA),
    "gemma2-pattern-1": case("gemma2", {**SWA, "attention.sliding_window_pattern": 1}, form="sandwich", tied=True, softcap=50.0, final_softcap=30.0, rope=NEOX, **GEMMA),
    "llama-keys-not-read": case("llama", {"expert_feed_forward_length": 8, "expert_weights_scale": 3.0, "attention.scale": 0.5}, moe=dict(n=6, used=6, norm=True), **LLAMA),
    "falcon-mha": case("falcon", norm="ln+b", form="parallel", K=4, fused=True, ffn="plain gelu", rope=NEOX),
    "llama-groups": case("llama", moe=dict(n=8, used=2, norm=True, groups=(4, 2)), **LLAMA),
    "qwen2-keys-not-read": case("qwen2", {"rope.freq_base_swa": 5.0, "attention.sliding_window": 4, "final_logit_softcapping": 3.0, "attn_logit_softcapping": 3.0}, rope=NEOX),
    "phi3-one-layer": case("phi3", layers=1, K=1, qkv_bias=True, ffn="fused silu", rope=NEOX),
    "gpt2-one-layer": case("gpt2", norm="ln+b", positions=True, fused=True, qkv_bias="fused", o_bias=True, ffn="plain gelu", ffn_bias=True, layers=1),
    "olmo3-array": case("olmo2", {"attention.sliding_window": 8, "attention.sliding_window_pattern": [1, 0, 1]}, form="post", qk_norm="row rms", window=lambda i: 0 if i == 1 else 8, rope=NEOX),
    "granite-longrope": case("granite", {"logit_scale": 2.0}, logit_scale=0.5, rope=rope("norm", **LONG)),
    "granite-moe-shared": case("granite", {"logit_scale": 2.0, "expert_shared_feed_forward_length": 40}, logit_scale=0.5, moe=dict(n=4, used=2, norm=True, shared=40), **LLAMA),
})
