"""Architectures of numpy_ref.py that attend to chosen positions or loop over layers: choices that leave something out, which the golden files don't."""
import numpy as np

from numpy_ref import E, F, H, L, V, sigmoid, silu, softmax

EPS = 1e-5


def turned(x, n, base, pos=None, neox=False, last=True, back=False, yarn=None, factor=1.0):
    """Heads [T, H, D]; the last (or first) n dims turn. yarn: the original context."""
    pos = np.arange(len(x)) if pos is None else pos
    j = np.arange(n // 2)
    u = pos[:, None] * base ** (-2.0 * j / n)
    if yarn:
        cd = lambda r: n * np.log(yarn / (2 * np.pi * r)) / (2 * np.log(base))
        lo, hi = max(0, np.floor(cd(32))), min(n - 1, np.ceil(cd(1)))
        mix = 1 - np.clip((j - lo) / max(0.001, hi - lo), 0, 1)
    else:
        mix = 0.0
    u = u / factor * (1 - mix) + u * mix
    c, s = np.cos(u)[:, None], np.sin(u)[:, None] * (-1 if back else 1)
    y = x.copy()
    r = y[..., -n:] if last else y[..., :n]
    i0, i1 = (slice(0, n // 2), slice(n // 2, n)) if neox else (slice(0, None, 2), slice(1, None, 2))
    a, b = r[..., i0].copy(), r[..., i1].copy()
    r[..., i0], r[..., i1] = a * c - b * s, a * s + b * c
    return y


def causal(n, window=0):
    back = np.arange(n)[:, None] - np.arange(n)
    return (back >= 0) & (back < window if window else True)


def attend(q, k, v, seen, scale, sinks=None):
    """seen [T, S] or [H, T, S]; k, v [S, H, D]."""
    s = np.where(seen if seen.ndim == 3 else seen[None], np.einsum("thd,shd->hts", q, k) * scale, -np.inf)
    if sinks is not None:
        s = np.concatenate([s, np.broadcast_to(sinks[:, None, None], s.shape[:2] + (1,))], -1)
    return np.einsum("hts,shd->thd", softmax(s)[..., :len(k)], v)


def best(score, seen, k):
    """The k best of those seen."""
    out = np.zeros_like(seen)
    for t in range(len(score)):
        at = np.flatnonzero(seen[t])
        out[t, at[np.argsort(-score[t, at], kind="stable")[:k]]] = True
    return out


def oai(g, u):
    g, u = np.minimum(g, 7), np.clip(u, -7, 7)
    return g * sigmoid(1.702 * g) * (u + 1)


def clamped(c):
    return lambda g, u: silu(np.minimum(g, c)) * np.clip(u, -c, c) if c else silu(g) * u


def dense(m, h, p, act, suffix=""):
    return m.lin(act(m.lin(h, p + "ffn_gate" + suffix, F), m.lin(h, p + "ffn_up" + suffix, F)), p + "ffn_down" + suffix, E)


def experts(m, h, p, act, shared, gate=sigmoid, ids=None, n=4, used=2, scale=2.5):
    prob = gate(m.lin(h, p + "ffn_gate_inp", n))
    s = prob if ids is not None else prob + m.get(p + "exp_probs_b.bias", (n,), "bias")
    w = [m.get(p + f"ffn_{a}_exps.weight", shape) for a, shape in (("gate", (n, F, E)), ("up", (n, F, E)), ("down", (n, E, F)))]
    y = dense(m, h, p, shared, "_shexp")
    for t in range(len(h)):
        at = ids[t] if ids is not None else np.argsort(-s[t])[:used]
        for e in at:
            y[t] += scale * prob[t, e] / prob[t, at].sum() * (w[2][e] @ act(w[0][e] @ h[t], w[1][e] @ h[t]))
    return y


# ---- latent attention -----------------------------------------------------------------------------------------------
def indexer(m, h, low, p, o, seen):
    n, d = o["ni"], o["di"]
    turn = lambda x: turned(x, o["rot"], o["base"], neox=o.get("neox", False), last=o.get("idx_last", False))
    q = turn(m.lin(low, p + "indexer.attn_q_b", n * d).reshape(-1, n, d))
    k = turn(m.ln(m.lin(h, p + "indexer.attn_k", d), p + "indexer.k_norm", True, o["idx_eps"])[:, None])[:, 0]
    w = m.lin(h, p + "indexer.proj", n) / np.sqrt(n * d)
    return best(np.einsum("tj,tjs->ts", w, np.maximum(0, np.einsum("tjd,sd->tjs", q, k))), seen, o["kt"])


def mla(m, h, p, o, geo, seen, base, low=None, sinks=None):
    r, kd, vd = geo
    nope = kd - o["rot"]
    q = turned(m.lin(low, p + "attn_q_b", H * kd).reshape(-1, H, kd), o["rot"], base)
    c, kp = np.split(m.lin(h, p + "attn_kv_a_mqa", r + o["rot"]), [r], -1)
    c = m.rms(c, p + "attn_kv_a_norm.weight")
    if o.get("k_norm"):
        kp = m.rms(kp, p + "attn_k_norm.weight")
    kp = turned(kp[:, None], o["rot"], base)
    kb, vb = m.get(p + "attn_k_b.weight", (H, r, nope)), m.get(p + "attn_v_b.weight", (H, vd, r))
    k = np.concatenate([np.einsum("sr,hrn->shn", c, kb), np.repeat(kp, H, 1)], -1)
    return attend(q, k, np.einsum("sr,hvr->shv", c, vb), seen, 1 / np.sqrt(kd), sinks)


def dots3note(m, tok, pool, o):
    x = m.mat("token_embd", E, V)[tok]
    for i in range(L):
        p, windowed = f"blk.{i}.", o["pattern"][i]
        h = m.rms(x, p + "attn_norm.weight")
        low = m.rms(m.lin(h, p + "attn_q_a", 24), p + "attn_q_a_norm.weight")
        seen = causal(len(tok), o["window"] if windowed else 0)
        if not windowed:
            seen = indexer(m, h, low, p, o, seen)
        y = mla(m, h, p, o, o["geo_swa"] if windowed else o["geo"], seen, o["base_swa"] if windowed else o["base"], low)
        y = (y * sigmoid(m.lin(h, p + "attn_gate", H))[..., None]).reshape(len(x), -1)
        x = x + m.lin(y, p + "attn_output", E)
        h = m.rms(x, p + "ffn_norm.weight")
        x = x + (dense(m, h, p, clamped(0)) if i < 1 else experts(m, h, p, clamped(0), clamped(0)))
    return m.lin(m.rms(x, "output_norm.weight"), "output", V)


# ---- streams --------------------------------------------------------------------------------------------------------
def gates(m, s, name, n):
    flat = np.concatenate(s, -1)
    return m.rms(flat) @ m.get(name + "_fn.weight", (n, 4 * E)).T, m.get(name + "_base.weight", (n,)), m.get(name + "_scale.weight", (3 if n > 8 else n // 4,), "norm")


def read_streams(s, f, base, scale):
    a = sigmoid(f[:, :4] * scale[0] + base[:4]) + 1e-6
    return sum(a[:, d, None] * s[d] for d in range(4))


def write_streams(s, y, f, base, scale, o):
    p = sigmoid(f[:, 4:8] * scale[1] + base[4:8])
    if "mg" in o:
        return [s[d] + (o["mg"] * p[:, d, None] + 1e-6) * y for d in range(4)]
    c = softmax((f[:, 8:] * scale[2] + base[8:]).reshape(-1, 4, 4)) + 1e-6
    c = c / (c.sum(1, keepdims=True) + 1e-6)
    for _ in range(o["it"] - 1):
        c = c / (c.sum(2, keepdims=True) + 1e-6)
        c = c / (c.sum(1, keepdims=True) + 1e-6)
    return [2 * p[:, d, None] * y + sum(c[:, a, d, None] * s[a] for a in range(4)) for d in range(4)]


def with_streams(m, tok, o, branches):
    s, n = [m.mat("token_embd", E, V)[tok]] * 4, 8 if "mg" in o else 24
    for i in range(L):
        for name, fn in zip(("attn", "ffn"), branches):
            g = gates(m, s, f"blk.{i}.hc_{name}", n)
            s = write_streams(s, fn(m.rms(read_streams(s, *g), f"blk.{i}.{name}_norm.weight"), i), *g, o)
    return m.lin(m.rms(read_streams(s, *gates(m, s, "output_hc", 4)), "output_norm.weight"), "output", V)


def hy_v4(m, tok, pool, o):
    kept = []

    def attn(h, i):
        p = f"blk.{i}."
        low = m.rms(m.lin(h, p + "attn_q_a", 24), p + "attn_q_a_norm.weight")
        if not o.get("kt"):
            kept[:] = [causal(len(h))]
        elif o["types"][i]:
            kept[:] = [indexer(m, h, low, p, o, causal(len(h)))]
        y = mla(m, h, p, o, o["geo"], kept[0], o["base"], low, m.get(p + "attn_sinks.weight", (H,)))
        return m.lin(y.reshape(len(h), -1) * sigmoid(m.lin(h, p + "attn_gate", H * o["geo"][2])), p + "attn_output", E)

    def ffn(h, i):
        p = f"blk.{i}."
        return dense(m, h, p, clamped(0)) if i < 1 else experts(m, h, p, clamped(0.5), clamped(0))

    return with_streams(m, tok, o, (attn, ffn))


# ---- compressed keys ------------------------------------------------------------------------------------------------
def compressed(m, h, p, d, c, turn):
    n = 2 if c == 4 else 1
    kv, sc, ape = m.lin(h, p + "_kv", n * d), m.lin(h, p + "_gate", n * d), m.get(p + "_ape.weight", (c, n * d))
    sc, out = sc + ape[np.arange(len(h)) % c], []
    for j in range(len(h) // c):
        now, old = slice(c * j, c * j + c), slice(c * j - c, c * j)
        v, w = kv[now, -d:], sc[now, -d:]
        if n == 2 and j:
            v, w = np.concatenate([kv[old, :d], v]), np.concatenate([sc[old, :d], w])
        out.append((softmax(w.T).T * v).sum(0))
    y = m.rms(np.array(out).reshape(-1, d), p + "_norm.weight")
    return turn(y[:, None], np.arange(len(y)) * c)[:, 0]


def deepseek4(m, tok, pool, o):
    d, rot, ni, di, og, ol = 32, 16, 8, 24, 2, 12

    def attn(h, i):
        p, c, n = f"blk.{i}.", o["ratios"][i], len(h)
        more = dict(base=300.0, factor=4.0, yarn=o.get("yarn")) if c else dict(base=10000.0)
        turn = lambda x, pos=None, back=False: turned(x, rot, pos=pos, back=back, **more)
        low = m.rms(m.lin(h, p + "attn_q_a", 24), p + "attn_q_a_norm.weight")
        q = turn(m.rms(m.lin(low, p + "attn_q_b", H * d).reshape(-1, H, d)))
        k = turn(m.rms(m.lin(h, p + "attn_kv", d), p + "attn_kv_a_norm.weight")[:, None])[:, 0]
        seen = causal(n, o["window"])
        if c:
            k = np.concatenate([k, compressed(m, h, p + "attn_compressor", d, c, turn)])
            ends = (np.arange(n // c) + 1) * c <= np.arange(n)[:, None] + 1
            if c == 4:
                iq = turn(m.lin(low, p + "indexer.attn_q_b", ni * di).reshape(-1, ni, di))
                ik = compressed(m, h, p + "indexer_compressor", di, c, turn)
                w = m.lin(h, p + "indexer.proj", ni) / np.sqrt(ni * di)
                ends = best(np.einsum("tj,tjs->ts", w, np.maximum(0, np.einsum("tjd,sd->tjs", iq, ik))), ends, o["kt"])
            seen = np.concatenate([seen, ends], -1)
        kh = np.repeat(k[:, None], H, 1)
        y = turn(attend(q, kh, kh, seen, 1 / np.sqrt(d), m.get(p + "attn_sinks.weight", (H,))), back=True).reshape(n, og, -1)
        y = np.einsum("tgi,goi->tgo", y, m.get(p + "attn_output_a.weight", (og, ol, H * d // og))).reshape(n, -1)
        return m.lin(y, p + "attn_output_b", E)

    def ffn(h, i):
        p, ids = f"blk.{i}.", None
        if i < 1:
            if p + "ffn_gate_tid2eid.weight" not in m.w:
                m.w[p + "ffn_gate_tid2eid.weight"] = np.array([[t % 4, (t + 1 + t // 4 % 3) % 4] for t in range(V)], np.int32)
            ids = m.w[p + "ffn_gate_tid2eid.weight"][tok]
        return experts(m, h, p, clamped(0.5), clamped(0.4), lambda z: np.sqrt(np.log1p(np.exp(z))), ids)

    return with_streams(m, tok, o, (attn, ffn))


# ---- blocks of positions; loops -------------------------------------------------------------------------------------
def minimax_m3(m, tok, pool, o):
    n_kv, d, di, rot, size = 2, 32, 24, 16, o["block"]
    x, n = m.mat("token_embd", E, V)[tok], len(tok)
    turn = lambda y: turned(y, rot, 10000.0, neox=True, last=False)
    for i in range(L):
        p = f"blk.{i}."
        h = m.rms(x, p + "attn_norm.weight")
        q, k, v = (m.lin(h, p + "attn_" + a, c * d).reshape(-1, c, d) for a, c in (("q", H), ("k", n_kv), ("v", n_kv)))
        q, k = turn(m.rms(q, p + "attn_q_norm.weight")), turn(m.rms(k, p + "attn_k_norm.weight"))
        seen = np.repeat(causal(n)[None], H, 0)
        if i >= 1:
            iq = turn(m.rms(m.lin(h, p + "indexer.q_proj", n_kv * di).reshape(-1, n_kv, di), p + "indexer.q_norm.weight"))
            ik = turn(m.rms(m.lin(h, p + "indexer.k_proj", di)[:, None], p + "indexer.k_norm.weight"))[:, 0]
            s = np.where(causal(n)[None], np.einsum("tjd,sd->jts", iq, ik), -np.inf)
            for j in range(n_kv):
                for t in range(n):
                    worth = np.array([s[j, t, a:a + size].max() for a in range(0, t + 1, size)])
                    worth[max(0, len(worth) - o["local"]):] = np.inf
                    taken = np.argsort(-worth, kind="stable")[:o["kt"]]
                    seen[j * 2:j * 2 + 2, t] &= np.isin(np.arange(n) // size, taken)
        y = attend(q, np.repeat(k, 2, 1), np.repeat(v, 2, 1), seen, 1 / np.sqrt(d))
        x = x + m.lin(y.reshape(n, -1), p + "attn_output", E)
        h = m.rms(x, p + "ffn_norm.weight")
        x = x + (dense(m, h, p, oai) if i < 1 else experts(m, h, p, oai, oai))
    return m.lin(m.rms(x, "output_norm.weight"), "output", V)


def hrm_text(m, tok, pool, o):
    n, d = o["n"], E // H

    def stack(x, first):
        for i in range(first, first + n):
            p = f"blk.{i}."
            h = m.rms(x)
            q, k, v = (m.lin(h, p + "attn_" + a, E).reshape(-1, H, d) for a in "qkv")
            q, k = (turned(a, d, 10000.0, neox=True) for a in (q, k))
            y = attend(q, k, v, causal(len(x)), 1 / np.sqrt(d)).reshape(-1, E) * sigmoid(m.lin(h, p + "attn_gate", E))
            x = x + m.lin(y, p + "attn_output", E)
            x = x + dense(m, m.rms(x), p, clamped(0))
        return m.rms(x)

    high = 5.0 * m.mat("token_embd", E, V)[tok]
    low = np.broadcast_to(m.get("hrm.z_l_init", (E,)), high.shape)
    for _ in range(o["h"]):
        for _ in range(o["l"]):
            low = stack(high + low, 0)
        high = stack(high + low, n)
    return m.lin(high, "output", V)


# ---- cases ----------------------------------------------------------------------------------------------------------
RMS = {"attention.layer_norm_rms_epsilon": EPS}
MOE = {"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": F, "expert_shared_count": 1, "expert_gating_func": 2,
       "expert_weights_norm": True, "expert_weights_scale": 2.5, "leading_dense_block_count": 1}
MLA = {"attention.head_count_kv": 1, "attention.q_lora_rank": 24, "attention.kv_lora_rank": 32, "attention.key_length_mla": 40, "attention.value_length_mla": 20,
       "attention.key_length": 48, "attention.value_length": 32, "rope.dimension_count": 16, "attention.indexer.head_count": 8,
       "attention.indexer.key_length": 24, "attention.indexer.top_k": 5}
LATENT = dict(rot=16, ni=8, di=24, kt=5, base=10000.0, geo=(32, 40, 20))
HC = {"hyper_connection.count": 4, "hyper_connection.epsilon": 1e-6}
DS4 = {**RMS, **MOE, **HC, "leading_dense_block_count": 0, "expert_gating_func": 4, "attention.head_count_kv": 1, "attention.q_lora_rank": 24,
       "attention.key_length": 32, "attention.value_length": 32, "rope.dimension_count": 16, "attention.sliding_window": 8,
       "swiglu_clamp_exp": 0.5, "swiglu_clamp_shexp": 0.4, "attention.indexer.head_count": 8, "attention.indexer.key_length": 24,
       "attention.indexer.top_k": 3, "attention.output_group_count": 2, "attention.output_lora_rank": 12, "attention.compress_rope_freq_base": 300.0,
       "hyper_connection.sinkhorn_iterations": 3, "hash_layer_count": 1, "rope.scaling.factor": 4.0}
M3 = {**RMS, **MOE, "attention.head_count_kv": 2, "attention.key_length": 32, "attention.value_length": 32, "rope.dimension_count": 16,
      "attention.indexer.head_count": 2, "attention.indexer.key_length": 24}
CASES = {
    "dots3note": ("dots3note", dots3note, {
        **RMS, **MOE, **MLA, "attention.kv_lora_rank_swa": 20, "attention.key_length_mla_swa": 28, "attention.value_length_mla_swa": 12,
        "attention.sliding_window": 8, "rope.freq_base_swa": 500.0, "attention.sliding_window_pattern": [0, 1, 0], "attention.indexer.types": [1, 0, 1]},
        dict(LATENT, pattern=[0, 1, 0], window=8, base_swa=500.0, geo_swa=(20, 28, 12), neox=True, idx_eps=1e-6, k_norm=True)),
    "hy_v4": ("hy_v4", hy_v4, {**RMS, **MOE, **MLA, **HC, "hyper_connection.magnitude": 1.5, "swiglu_clamp_exp": 0.5, "attention.indexer.types": [1, 0, 1]},
              dict(LATENT, mg=1.5, types=[1, 0, 1], idx_last=True, idx_eps=EPS)),
    "hy_v4-full": ("hy_v4", hy_v4, {**RMS, **MOE, **MLA, **HC, "hyper_connection.magnitude": 1.5, "swiglu_clamp_exp": 0.5, "attention.indexer.top_k": 0},
                   dict(LATENT, mg=1.5, kt=0)),
    "deepseek4": ("deepseek4", deepseek4, {**DS4, "attention.compress_ratios": [0, 4, 128]}, dict(ratios=[0, 4, 128], window=8, kt=3, it=3, tokens=140)),
    "deepseek4-yarn": ("deepseek4", deepseek4, {**DS4, "attention.compress_ratios": [4, 128, 4], "rope.scaling.type": "yarn",
                                                "rope.scaling.original_context_length": 64},
                       dict(ratios=[4, 128, 4], window=8, kt=3, it=3, tokens=140, yarn=64)),
    "minimax-m3": ("minimax-m3", minimax_m3, {**M3, "attention.indexer.top_k": 2, "attention.indexer.block_size": 4, "attention.indexer.local_blocks": 1},
                   dict(block=4, kt=2, local=1)),
    "minimax-m3-local": ("minimax-m3", minimax_m3, {**M3, "attention.indexer.top_k": 3, "attention.indexer.block_size": 2, "attention.indexer.local_blocks": 2},
                         dict(block=2, kt=3, local=2)),
    "hrm_text": ("hrm_text", hrm_text, {**RMS, "block_count": 12, "hrm.layers_per_stack": 2, "hrm.h_cycles": 3, "hrm.l_cycles": 1, "embedding_scale": 5.0},
                 dict(n=2, h=3, l=1)),
    "hrm_text-deep": ("hrm_text", hrm_text, {**RMS, "block_count": 6, "hrm.layers_per_stack": 1, "hrm.h_cycles": 2, "hrm.l_cycles": 2, "embedding_scale": 5.0},
                      dict(n=1, h=2, l=2)),
}
