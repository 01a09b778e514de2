"""More variants of numpy_variants.py's kind: models of many experts, latent attention, state-space mixers, encoders with decoders."""
import numpy as np

import numpy_hybrid
from numpy_dense import attend, attention, experts, layer, network, norm, qkv
from numpy_ref import E, F, H, MEAN, NONE, RANK, V, softmax
from numpy_variants import EX, GEMMA, LLAMA, NEOX, NEXT, NORM, case, rope

FX = {"expert_feed_forward_length": 40}
LEAD = {**FX, "leading_dense_block_count": 1}
WIN = {"attention.sliding_window": 8}
PICK = dict(n=8, used=3, width=40)
SCALED = dict(norm=True, wscale=2.5)
AFTER_LEAD = dict(layers=lambda i: i >= 1)
MAPLE = {"attention.sliding_window_pattern": [1, 0, 1], "rope.dimension_count": 8}
HEADS = dict(K=2, D=24, qk_norm="rms")


def pattern(n, swa, full):
    return dict(window=lambda i: 8 if i % n < n - 1 else 0, rope=lambda i: swa if i % n < n - 1 else full)


# ---- layers of their own kind ---------------------------------------------------------------------------------------------
def cogvlm(m, x, i, o):
    """Images have matrices of their own, which texts pass by."""
    for name, shape in (("attn_qkv", (3 * E, E)), ("attn_output", (E, E)), ("gate", (F, E)), ("up", (F, E)), ("down", (E, F))):
        m.get(f"blk.{i}.vis_{name}.weight", shape)
    return layer(m, x, i, o)


def arctic(m, x, i, o):
    p, n = f"blk.{i}.", lambda a, name: norm(m, a, "rms", f"blk.{i}.{name}")
    h = x + attention(m, n(x, "attn_norm"), p, i, o)
    h = h + network(m, n(h, "ffn_norm"), p, i, {**o, "F": E})
    return h + experts(m, n(x, "ffn_norm_exps"), p, i, o)


def grok_network(m, x, p, i, o):
    y = experts(m, x, p, i, o)
    return (y + network(m, x, p, i, o)) * np.sqrt(2) / 2 if o.get("dense") else y


def grove_network(m, x, p, i, o):
    n, used, group = o["moe"]["n"], o["moe"]["used"], o["group"]
    logits = m.lin(x, p + "ffn_gate_inp", n)
    prob = softmax(logits)
    a = experts(m, x, p, i, o)
    w = {k: m.get(p + f"ffn_{k}_chexps.weight", (n // group, *s)) for k, s in (("gate", (48, E)), ("up", (48, E)), ("down", (E, 48)))}
    y = np.zeros_like(a)
    for t in range(len(x)):
        ids = np.argsort(-prob[t])[:min(used, n // group)] // group
        weights = prob[t, ids] / prob[t, ids].sum()
        for wi, j in zip(weights, ids):
            g = w["gate"][j] @ a[t]
            y[t] += wi * (w["down"][j] @ (g / (1 + np.exp(-g)) * (w["up"][j] @ a[t])))
    return a + o["group_scale"] * y


def deci(m, x, i, o):
    """Four kinds of layer: whole, linear attention, no attention, no network (its attention is lost)."""
    kind, p = o["kinds"][i], f"blk.{i}."
    n = lambda a, name: norm(m, a, "rms", p + name)
    if kind != "none":
        h = n(x, "attn_norm")
        a = m.lin(h, p + "attn_output", E) if kind == "linear" else attention(m, h, p, i, o)
        if kind == "lost":
            return x
        x = x + a
    return x + network(m, n(x, "ffn_norm"), p, i, o)


def backwards(x):
    """Heads whose halves are in the other order turn the other way round, as Talkie's code has them."""
    n = x.shape[-1] // 2
    t = np.arange(len(x))[:, None, None] * 10000.0 ** (-np.arange(n) / n)
    b, a = x[..., :n], x[..., n:]
    return np.concatenate([a * np.cos(t) + b * np.sin(t), b * np.cos(t) - a * np.sin(t)], -1)


def talkie(m, x, i, o):
    p, n = f"blk.{i}.", lambda a: norm(m, a, "rms-", "")
    if i == 0:
        m.first = x
    q, k, v = qkv(m, n(x), p, i, o)
    q = n(backwards(q)) * m.get(p + "attn_q_norm.weight", (H, 1), "norm")
    y = m.lin(attend(q, n(backwards(k)), v, o, i, m, p), p + "attn_output", E)
    x = x + y * m.get(p + "attn_output.scale", (1,), "norm")
    x = x + network(m, n(x), p, i, o) * m.get(p + "ffn_down.scale", (1,), "norm")
    return x + m.first * m.get(p + "layer_output_scale.weight", (1,), "bias")


def both_mixers(m, x, p, i, o):
    return attention(m, x, p, i, o) + numpy_hybrid.mamba2(m, x, p, o)


def mamba_layer(m, x, i, o):
    mixer = numpy_hybrid.mamba2 if "inner" in o else numpy_hybrid.mamba1
    return x + mixer(m, norm(m, x, "rms", f"blk.{i}.attn_norm"), f"blk.{i}.", o)


# ---- T5 ---------------------------------------------------------------------------------------------------------------------
def bucket(r, n, both):
    base = 0
    if both:
        n //= 2
        base, d = np.where(r > 0, n, 0), np.abs(r)
    else:
        d = np.maximum(0, -r)
    e = n // 2
    far = e + np.floor(np.log(np.maximum(d, 1) / e) * (n - e) / np.log(128 / e)).astype(int)
    return base + np.where(d < e, d, np.minimum(n - 1, far))


def t5_stack(m, x, enc, o):
    d, side = o["D"], "dec" if enc is not None else "enc"
    heads = lambda a: a.reshape(-1, H, d)
    t = np.arange(len(x))
    for i in range(o["layers"] if enc is None else o["decoders"]):
        p = f"{side}.blk.{i}."
        rms = lambda a, name: norm(m, a, "rms", p + name)
        if i == 0 or o.get("each_bias"):
            table = m.get(p + "attn_rel_b.weight", (o["buckets"], H))

        def attend(name, q_of, kv_of, bias):
            q, k, v = (heads(m.lin(a, p + f"{name}_{c}", H * d)) for a, c in ((q_of, "q"), (kv_of, "k"), (kv_of, "v")))
            s = np.einsum("thd,shd->hts", q, k) + bias
            return m.lin(np.einsum("hts,shd->thd", softmax(s), v).reshape(len(q), -1), p + name + "_o", E)

        n = rms(x, "attn_norm")
        bias = table[bucket(t - t[:, None], o["buckets"], enc is None)].transpose(2, 0, 1)
        if enc is not None:
            bias = np.where(t[:, None] < t, -np.inf, bias)
        x = x + attend("attn", n, n, bias)
        if enc is not None:
            x = x + attend("cross_attn", rms(x, "cross_attn_norm"), enc, 0.0)
        x = x + network(m, rms(x, "ffn_norm"), p, i, o)
    return norm(m, x, "rms", side + ".output_norm")


def t5(m, tok, pool, o):
    e = m.mat("token_embd", E, V)
    enc = t5_stack(m, e[tok], None, o)
    if pool is not None:
        return enc
    return m.lin(t5_stack(m, e[tok], enc, o), "token_embd" if o.get("tied") else "output", V)


def t5_case(arch, pool=None, **o):
    keys = {"attention.layer_norm_rms_epsilon": 1e-5, "attention.relative_buckets_count": o["buckets"], "attention.key_length": o["D"], "attention.value_length": o["D"],
            "block_count": o["layers"]}
    if "decoders" in o and o["decoders"] != o["layers"]:
        keys["decoder_block_count"] = o["decoders"]
    return (arch, t5, keys, {**o, "cross": pool is None}, *([] if pool is None else [pool]))


# ---- latent attention -----------------------------------------------------------------------------------------------------------
MLA = {**LEAD, "expert_shared_count": 2, "rope.dimension_count": 8}


def mla(arch, keys=None, **o):
    """kd 20 with 8 turning, values 16, rank 32."""
    o = {"r": 32, "R": 8, "kd": 20, "vd": 16, "ql": 24, "rope": NORM, "moe": {**PICK, "shared": 80, **AFTER_LEAD}, **o}
    form = ({"attention.key_length": 40, "attention.value_length": 32, "attention.key_length_mla": 20, "attention.value_length_mla": 16, "attention.head_count_kv": 1}
            if o.get("absorbed") else {"attention.key_length": 20, "attention.value_length": 16})
    return case(arch, {**MLA, **form, **(keys or {})}, **o)


def yarn_scale(f, q, stretch):
    """What yarn makes of the score scale in deepseek2 and mistral4; stretch: the magnitude that goes in."""
    return (stretch * (1 + 0.1 * q * np.log(f))) ** 2


LN4 = 1 + 0.1 * np.log(4)
Y4 = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 64}

CASES = {
    "deepseek2-absorbed": mla("deepseek2", {**NEXT, "expert_gating_func": 2}, absorbed=True, tied=True,
                              moe=dict(**PICK, gating="sigmoid", bias=True, groups=(4, 2), shared=80, **SCALED, **AFTER_LEAD)),
    "deepseek2-split": mla("deepseek2"),
    "deepseek2-no-q-rank": mla("deepseek2", {"attention.q_lora_rank": 0}, absorbed=True, ql=0, moe=dict(**PICK, shared=80, merged=True, **AFTER_LEAD)),
    "deepseek2-lite": mla("deepseek2", {"attention.q_lora_rank": 24}, ql=0, layers=27, moe=dict(**EX, width=40, shared=80, **AFTER_LEAD)),
    "deepseek2-yarn": mla("deepseek2", {"rope.scaling.yarn_log_multiplier": 0.0707}, absorbed=True, rope=rope("norm", **dict(f=4.0, type="yarn", orig=64), mag=1.0),
                          mla_scale=yarn_scale(4, 0.707, 1.0)),
    "deepseek2-yarn-plain": mla("deepseek2", rope=rope("norm", f=4.0, type="yarn", orig=64), mla_scale=yarn_scale(4, 0, LN4)),
    "deepseek2-linear": mla("deepseek2", {"rope.scaling.yarn_log_multiplier": 0.1}, absorbed=True, rope=rope("norm", f=4.0, type="linear"), mla_scale=yarn_scale(4, 1.0, LN4)),
    "deepseek2-temperature": mla("deepseek2", {"attention.temperature_scale": 0.3, "attention.temperature_length": 7}, absorbed=True, temp=(0.3, 7)),
    "mistral4-yarn": mla("mistral4", {**NEXT, "expert_gating_func": 2, "rope.scaling.yarn_log_multiplier": 0.05, "attention.temperature_scale": 0.3, "attention.temperature_length": 7}, absorbed=True,
                         temp=(0.3, 7), rope=rope("norm", f=4.0, type="yarn", orig=64, q=0.5), mla_scale=yarn_scale(4, 0.5, LN4 / (1 + 0.05 * np.log(4))),
                         moe=dict(**PICK, gating="sigmoid", bias=True, groups=(4, 2), shared=80, **SCALED, **AFTER_LEAD)),
    "mistral4-unscaled": mla("mistral4", {"rope.scaling.yarn_log_multiplier": 0.05}, absorbed=True, rope=rope("norm", f=4.0, type="none"), mla_scale=1.0),
    "mistral4-split-linear": mla("mistral4", rope=rope("norm", f=2.0), mla_scale=yarn_scale(2, 0, 1 + 0.1 * np.log(2))),
    "mistral4-lite": mla("mistral4", {"attention.q_lora_rank": 24}, ql=0, layers=26, moe=dict(**EX, width=40, shared=80, **AFTER_LEAD)),
    "minicpm3-short": case("minicpm3", {"rope.dimension_count": 8, "attention.value_length": 16}, r=32, R=8, kd=20, D=20, Dv=16, vd=16, ql=24, tied=True, embd_scale=12.0,
                           residual=1.4 / np.sqrt(3), head_scale=256 / E, rope=rope("neox", type="longrope", orig=512, factors="rope_factors_short")),
    "deepseek-gqa": case("deepseek", {**LEAD, **NEXT, "expert_shared_count": 2}, K=2, qkv_bias=True, tied=True, moe=dict(**PICK, wscale=2.5, shared=80, **AFTER_LEAD), **LLAMA),
    # ---- many experts
    "dots1-groups": case("dots1", {**LEAD, **NEXT, "expert_shared_count": 1, "expert_gating_func": 2}, D=24, qk_norm="rms", rope=NEOX,
                         moe=dict(**PICK, gating="sigmoid", bias=True, groups=(4, 2), shared=40, **SCALED, **AFTER_LEAD)),
    "glm4moe": case("glm4moe", {**LEAD, **NEXT, "expert_shared_count": 2}, **HEADS, tied=True, qkv_bias=True, ffn_norm="post_attention_norm", rope=rope("neox", n=12),
                    moe=dict(**PICK, gating="sigmoid", bias=True, shared=80, **SCALED, **AFTER_LEAD)),
    "glm4moe-no-norms": case("glm4moe", {**LEAD, "expert_shared_count": 1, "expert_gating_func": 1}, K=2, ffn_norm="post_attention_norm", rope=rope("neox", n=8),
                             moe=dict(**PICK, bias=True, shared=40, **AFTER_LEAD)),
    "ernie4_5-moe": case("ernie4_5-moe", {**LEAD, "interleave_moe_layer_step": 1, "expert_shared_feed_forward_length": 56}, K=2, D=24, tied=True, rope=NORM,
                         moe=dict(**PICK, bias=True, norm=True, shared=56, **AFTER_LEAD)),
    "ernie4_5-moe-no-shared": case("ernie4_5-moe", {**FX, "interleave_moe_layer_step": 1}, rope=NORM, moe=dict(**PICK, norm=True)),
    "hunyuan-moe": case("hunyuan-moe", {**FX, "expert_weights_scale": 2.5}, **HEADS, tied=True, norm_after_rope=True, rope=NEOX, moe=dict(n=8, used=3, norm=True, shared=F)),
    "hy_v3": case("hy_v3", {**FX, **NEXT}, **HEADS, tied=True, rope=NEOX, moe=dict(**PICK, gating="sigmoid", bias="exp_probs_b", shared=40, layers=lambda i: i != 1, **SCALED)),
    "bailingmoe": case("bailingmoe", {**FX, **NEXT, "expert_shared_count": 2}, K=2, rope=NORM, moe=dict(**PICK, shared=80, **SCALED)),
    "bailingmoe2": case("bailingmoe2", {**LEAD, **NEXT, "expert_shared_count": 1, "expert_gating_func": 2}, K=2, fused=True, qk_norm="rms", rope=rope("neox", n=8),
                        moe=dict(**PICK, gating="sigmoid", bias=True, groups=(4, 2), shared=40, **SCALED, **AFTER_LEAD)),
    "grok": case("grok", {"final_logit_softcapping": 20.0}, K=2, tied=True, form="sandwich", post_attn="attn_output_norm", post_ffn="post_ffw_norm", embd_scale=78.3836717690617,
                 scale=0.08838834764831845, softcap=30.0, final_softcap=20.0, logit_scale=0.57735026918962, ffn="gate gelu", rope=NEOX, network=grok_network,
                 moe=dict(n=8, used=3, norm=True, act="gelu")),
    "grok-dense": case("grok", {"attn_logit_softcapping": 5.0, "attention.output_scale": 0.2, "embedding_scale": 3.0, "logit_scale": 2.0, "expert_feed_forward_length": 40}, form="sandwich",
                       post_attn="attn_output_norm", post_ffn="layer_output_norm", embd_scale=3.0, scale=0.2, softcap=5.0, logit_scale=2.0, ffn="gate gelu", rope=NEOX, dense=True,
                       network=grok_network, moe=dict(**PICK, norm=True, act="gelu")),
    "grok-own": case("grok", {"attn_logit_softcapping": 5.0, "attention.output_scale": 0.2, "embedding_scale": 3.0, "logit_scale": 2.0}, form="sandwich", post_attn="attn_output_norm",
                     post_ffn="layer_output_norm", embd_scale=3.0, scale=0.2, softcap=5.0, logit_scale=2.0, ffn="gate gelu", rope=NEOX, network=grok_network, moe=dict(n=8, used=3, norm=True, act="gelu")),
    "grok-yarn": case("grok", {"rope.scaling.attn_factor": 1.2, "rope.scaling.yarn_attn_factor": 1.1}, K=2, tied=True, form="sandwich", post_attn="attn_output_norm", post_ffn="post_ffw_norm",
                      embd_scale=78.3836717690617, scale=0.08838834764831845, softcap=30.0, logit_scale=0.57735026918962, ffn="gate gelu", rope=rope("neox", f=4.0, type="yarn", orig=64, a=1.32, fast=8),
                      network=grok_network, moe=dict(n=8, used=3, norm=True, act="gelu")),
    "dbrx": case("dbrx", norm="ln", clamp=0.6, K=2, fused=True, ffn_norm="attn_output_norm", rope=NEOX, moe=dict(n=8, used=3, norm=True)),
    "arctic": case("arctic", K=2, tied=True, layer=arctic, rope=NORM, moe=dict(n=8, used=3, norm=True)),
    "grovemoe": case("grovemoe", {**FX, "expert_chunk_feed_forward_length": 48, "expert_group_scale": 0.05, "experts_per_group": 2}, **HEADS, tied=True, rope=NEOX, network=grove_network, group=2,
                     group_scale=0.05, moe=dict(**PICK, norm=True)),
    "smallthinker": case("smallthinker", {**FX, **WIN, "expert_gating_func": 2}, layers=5, K=2, D=24, tied=True, router="input", ffn="gate relu", rope=lambda i: NEOX if i % 4 else None,
                         moe=dict(**PICK, gating="sigmoid", norm=True, act="relu")),
    "smallthinker-full": case("smallthinker", {**FX, "expert_gating_func": 1}, router="input", ffn="gate relu", rope=NEOX, moe=dict(**PICK, norm=True, act="relu")),
    "llama4": case("llama4", {**FX, "interleave_moe_layer_step": 2}, layers=5, K=2, D=24, tied=True, norm_after_rope=True, rope=lambda i: NORM if (i + 1) % 4 else None,
                   qk_norm=lambda i: "rms-" if (i + 1) % 4 else None, moe=dict(**PICK, gating="sigmoid", scale_input=True, shared=40, layers=lambda i: i % 2 == 1)),
    "minimax-m2": case("minimax-m2", {**FX, "expert_gating_func": 2}, K=2, D=24, qk_norm="row rms", qkv_bias=True, rope=rope("neox", n=12), moe=dict(n=8, used=3, gating="sigmoid", bias=True, norm=True)),
    "mimo2": case("mimo2", {**FX, **WIN, "attention.sliding_window_pattern": [1, 0, 1], "attention.value_scale": 0.7, "rope.freq_base_swa": 500.0, "rope.scaling.factor": 4.0,
                            "rope.dimension_count": 16}, H=lambda i: [4, 8, 4][i], K=lambda i: [2, 4, 1][i], D=24, Dv=16, sinks=True, attn_scale=0.7,
                  window=lambda i: 0 if i == 1 else 8, rope=lambda i: rope("neox", n=16, f=4.0) if i == 1 else rope("neox", n=16, base=500.0),
                  moe=dict(**PICK, gating="sigmoid", bias=True, norm=True, layers=lambda i: i > 0)),
    "afmoe": case("afmoe", {**LEAD, **NEXT, **WIN, "expert_shared_count": 1, "rope.freq_base_swa": 500.0, "attention.sliding_window_pattern": 2}, layers=5, **HEADS, tied=True, form="sandwich",
                  embd_scale=np.sqrt(E), gate=lambda i: "all", window=lambda i: 8 if i % 2 == 0 else 0,
                  rope=lambda i: rope("neox", base=500.0 if i % 2 == 0 else 10000.0) if (i + 1) % 4 else None,
                  moe=dict(**PICK, gating="sigmoid", bias=True, shared=40, **SCALED, **AFTER_LEAD)),
    "exaone-moe": case("exaone-moe", {**LEAD, **NEXT, **WIN, "expert_shared_feed_forward_length": 56, "expert_gating_func": 2}, layers=5, **HEADS, **pattern(4, NEOX, None),
                       moe=dict(**PICK, gating="sigmoid", bias=True, shared=56, **SCALED, **AFTER_LEAD)),
    "laguna": case("laguna", {**LEAD, **NEXT, **WIN, **Y4, "rope.freq_base_swa": 500.0, "rope.dimension_count_swa": 16, "rope.dimension_count": 12}, layers=5, **HEADS, tied=True,
                   gate=lambda i: "head", gate_softplus=True, window=lambda i: 8 if i % 4 else 0,
                   rope=lambda i: rope("neox", n=16, base=500.0) if i % 4 else rope("neox", n=12, f=4.0, type="yarn", orig=64),
                   moe=dict(**PICK, gating="sigmoid", bias=True, shared=40, **SCALED, **AFTER_LEAD)),
    "mellum": case("mellum", {**FX, **WIN, **Y4, "rope.scaling.attn_factor": 1.2}, layers=5, **HEADS, **pattern(4, NEOX, rope("neox", f=4.0, type="yarn", orig=64, a=1.2)), moe=dict(**PICK, norm=True)),
    "maple": case("maple", {**FX, **WIN, **MAPLE, "swiglu_clamp_exp": 7.0}, K=2, D=16, qk_norm="rms", window=lambda i: 0 if i == 1 else 8, rope=lambda i: None if i == 1 else rope("neox", n=8),
                  moe=dict(**PICK, norm=True, clamp=7.0)),
    "maple-clamped": case("maple", {**FX, **WIN, **MAPLE, "swiglu_clamp_exp": 0.5, "rope.dimension_count_swa": 16, "rope.freq_base_swa": 500.0, "rope.scaling.factor": 4.0}, K=2, D=24, qk_norm="rms",
                          window=lambda i: 0 if i == 1 else 8, rope=lambda i: None if i == 1 else rope("neox", n=16, base=500.0, f=4.0), moe=dict(**PICK, norm=True, clamp=0.5)),
    # ---- dense ones of their own kind
    "talkie": case("talkie", {"logit_scale": 1.75}, F=128, norm="rms-", embd_norm=True, layer=talkie, logit_scale=1.75),
    "talkie-gain-inside": case("talkie", {"logit_scale": 1.0}, norm="rms-", embd_norm=True, layer=talkie),
    "pockettts": case("pockettts", {"attention.head_count": 1}, H=1, norm="ln+b", ffn="plain gelu", F=4 * E, tied=True, fused=True, rope=NORM),
    "glm4-no-sections": case("glm4", K=2, tied=True, qkv_bias=True, form="sandwich", ffn="fused silu", rope=rope("norm", n=8)),
    "glm4-sections": case("glm4", {"rope.dimension_sections": [3, 3, 2, 0]}, K=2, form="sandwich", ffn="fused silu", rope=rope("neox", n=16)),
    "deci": case("deci", {"feed_forward_length": [96, 64, 256, 0], "attention.head_count": [4, 4, 0, 4], "attention.head_count_kv": [2, 0, 0, 4]}, layers=4, D=16, tied=True, layer=deci,
                 K=lambda i: [2, 0, 0, 4][i], F=lambda i: [96, 64, 256, 0][i], H=lambda i: [4, 4, 0, 4][i], kinds=["whole", "linear", "none", "lost"], rope=rope("norm", factors="rope_freqs")),
    "spark2_5": case("spark2_5", {**WIN, "attention.sliding_window_pattern": [1, 0, 1], "rope.freq_base_swa": 500.0, "rope.dimension_count_swa": 8, "rope.dimension_count": 16, "rope.scaling.factor": 4.0},
                     H=lambda i: [4, 8, 4][i], K=lambda i: [2, 2, 1][i], D=16, tied=True, gate=lambda i: "head", ffn="gate gelu", window=lambda i: 0 if i == 1 else 8,
                     rope=lambda i: rope("neox", n=16, f=4.0) if i == 1 else rope("neox", n=8, base=500.0, f=4.0)),
    "cogvlm": case("cogvlm", {"rope.freq_base": 500.0, "rope.scaling.factor": 4.0}, fused=True, tied=True, layer=cogvlm, rope=NEOX),
    "spark2_5-own": case("spark2_5", {**WIN, "attention.sliding_window_pattern": [1, 0, 1], "rope.freq_base_swa": 500.0, "rope.dimension_count_swa": 8, "rope.dimension_count": 16},
                         K=2, D=16, tied=True, gate=lambda i: "head", ffn="gate gelu", window=lambda i: 0 if i == 1 else 8, rope=lambda i: rope("neox", n=16 if i == 1 else 8, base=10000.0 if i == 1 else 500.0)),
    "qwen3-rank": case("qwen3", {"classifier.output_labels": ["yes", "no"]}, RANK, K=2, qk_norm="rms", labels=2, decodes=True, rope=NEOX),
    "gemma-embedding-dense": case("gemma-embedding", {**WIN, "dense_2_feat_out": 96, "dense_2_feat_in": E, "dense_3_feat_in": 96, "dense_3_feat_out": E}, MEAN, K=1, form="sandwich", qk_norm="rms",
                                  both_ways=True, window=lambda i: 8 if i % 6 < 5 else 0, rope=NEOX,
                                  pooled=lambda m, x: m.lin(m.lin(x, "dense_2", 96), "dense_3", E), **GEMMA),
    # ---- state spaces
    "mamba-rms": case("mamba", {"ssm.conv_kernel": 4, "ssm.inner_size": 2 * E, "ssm.state_size": 8, "ssm.time_step_rank": 6, "ssm.dt_b_c_rms": True}, layer=mamba_layer, state=8, rank=6, norms="plain",
                      tied=True),
    "mamba-own-output": case("mamba", {"ssm.conv_kernel": 4, "ssm.inner_size": 2 * E, "ssm.state_size": 16, "ssm.time_step_rank": 4}, layer=mamba_layer, state=16, rank=4, norms="none"),
    "mamba2-groups": case("mamba2", {"ssm.conv_kernel": 4, "ssm.inner_size": 2 * E, "ssm.state_size": 16, "ssm.time_step_rank": 8, "ssm.group_count": 2}, layer=mamba_layer, inner=2 * E, state=16,
                          heads=8, groups=2),
    "mamba2-tied": case("mamba2", {"ssm.conv_kernel": 4, "ssm.inner_size": 2 * E, "ssm.state_size": 32, "ssm.time_step_rank": 4, "ssm.group_count": 1}, layer=mamba_layer, inner=2 * E, state=32,
                        heads=4, groups=1, tied=True),
    "falcon-h1": case("falcon-h1", {"ssm.conv_kernel": 4, "ssm.inner_size": 96, "ssm.state_size": 16, "ssm.time_step_rank": 8, "ssm.group_count": 2}, mixer=both_mixers, inner=96, state=16, heads=8,
                      groups=2, K=2, D=24, ffn_norm="ffn_norm!", ffn_bias=True, rope=rope("neox", n=12)),
    "falcon-h1-no-norm": case("falcon-h1", {"ssm.conv_kernel": 4, "ssm.inner_size": 128, "ssm.state_size": 16, "ssm.time_step_rank": 8, "ssm.group_count": 1}, mixer=both_mixers, inner=128, state=16,
                              heads=8, groups=1, norms="none", K=1, tied=True, ffn_norm="ffn_norm!", rope=NEOX),
    # ---- encoders with decoders
    "t5-gated": t5_case("t5", layers=2, decoders=2, buckets=32, D=24, ffn="gate gelu"),
    "t5-relu": t5_case("t5", layers=3, decoders=2, buckets=16, D=16, ffn="plain relu", tied=True),
    "t5-each-bias": t5_case("t5", layers=2, decoders=3, buckets=32, D=16, ffn="gate gelu", each_bias=True),
    "t5encoder": t5_case("t5encoder", NONE, layers=3, buckets=32, D=16, ffn="gate gelu"),
    "t5encoder-mean": t5_case("t5encoder", MEAN, layers=2, buckets=8, D=16, ffn="plain relu"),
}
