"""gemma4 and gemma3n for numpy_ref.py: they have no golden logits."""
import numpy as np

from numpy_ref import E, H, V, gelu, softmax

EPS, K, W, LOW = 1e-6, 2, 8, 64


def rms(m, x, name=None):
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS)
    return y * m.get(name + ".weight", (x.shape[-1],), "norm") if name else y


def rope(x, base, factors=None):
    """Heads [T, H, D], pairs (j, j + D/2)."""
    n = x.shape[-1] // 2
    t = np.arange(len(x))[:, None] * base ** (-np.arange(n) / n)
    t = t if factors is None else t / factors
    c, s = np.cos(t)[:, None], np.sin(t)[:, None]
    a, b = x[..., :n], x[..., n:]
    return np.concatenate([a * c - b * s, a * s + b * c], -1)


def attend(q, k, v, window):
    """Scores are not scaled."""
    at = np.arange(len(q))
    back = at[:, None] - at
    hidden = (back < 0) | (back >= window if window else False)
    k, v = (np.repeat(a, q.shape[1] // a.shape[1], 1) for a in (k, v))
    s = np.where(hidden, -np.inf, np.einsum("thd,shd->hts", q, k))
    return np.einsum("hts,shd->thd", softmax(s), v).reshape(len(q), -1)


def layer_inputs(m, x, tok, ep, n_layer):
    t = np.sqrt(ep) * m.mat("per_layer_token_embd", ep * n_layer, V)[tok].reshape(-1, n_layer, ep)
    p = m.lin(x, "per_layer_model_proj", ep * n_layer).reshape(-1, n_layer, ep) / np.sqrt(E)
    return (rms(m, p, "per_layer_proj_norm") + t) / np.sqrt(2)


def head(m, x, o):
    y = rms(m, x, "output_norm") @ m.mat("token_embd" if o.get("tied") else "output", E, V).T
    return 30 * np.tanh(y / 30)


def experts(m, p, h, o):
    n, used, f = 4, 2, 48
    r = rms(m, h) / np.sqrt(E) * m.get(p + "ffn_gate_inp.scale", (E,), "norm")
    prob = softmax(m.lin(r, p + "ffn_gate_inp", n))
    if o.get("merged"):
        gate_up = m.get(p + "ffn_gate_up_exps.weight", (n, 2 * f, E))
        gate, up = gate_up[:, :f], gate_up[:, f:]
    else:
        gate, up = (m.get(p + f"ffn_{a}_exps.weight", (n, f, E)) for a in ("gate", "up"))
    down = m.get(p + "ffn_down_exps.weight", (n, E, f))
    scale = m.get(p + "ffn_down_exps.scale", (n,), "norm") if o.get("merged") else np.ones(n)
    x, y = rms(m, h, p + "pre_ffw_norm_2"), np.zeros_like(h)
    for t in range(len(h)):
        best = np.argsort(-prob[t])[:used]
        for e in best:
            y[t] += prob[t, e] / prob[t, best].sum() * scale[e] * (down[e] @ (gelu(gate[e] @ x[t]) * (up[e] @ x[t])))
    return rms(m, y, p + "post_ffw_norm_2")


def gemma4(m, tok, pool, o):
    windowed, d_full, d_win, ep = o["pattern"], 32, 16, o.get("ep", 0)
    n_layer = len(windowed)
    n_own = n_layer - o.get("shared", 0)
    x = np.sqrt(E) * m.mat("token_embd", E, V)[tok]
    own = layer_inputs(m, x, tok, ep, n_layer) if ep else None
    factors, cache = m.get("rope_freqs.weight", (d_full // 2,), "norm"), {}
    for i in range(n_layer):
        p, d = f"blk.{i}.", d_win if windowed[i] else d_full
        turn = (lambda a: rope(a, 10000.0)) if windowed[i] else (lambda a: rope(a, 1e6, factors))
        n = rms(m, x, p + "attn_norm")
        if o.get("fused") and i < n_own:
            q, k, v = np.split(m.lin(n, p + "attn_qkv", (H + 2 * K) * d), [H * d, (H + K) * d], -1)
        else:
            q = m.lin(n, p + "attn_q", H * d)
            k = m.lin(n, p + "attn_k", K * d) if i < n_own else None
            v = k if o.get("no_v") else m.lin(n, p + "attn_v", K * d) if i < n_own else None
        q = turn(rms(m, q.reshape(-1, H, d), p + "attn_q_norm"))
        if i < n_own:
            cache[i] = turn(rms(m, k.reshape(-1, K, d), p + "attn_k_norm")), rms(m, v.reshape(-1, K, d))
        k, v = cache[i if i < n_own else n_own - 2 if windowed[i] else n_own - 1]
        a = m.lin(attend(q, k, v, W if windowed[i] else 0), p + "attn_output", E)
        h = x + rms(m, a, p + "post_attention_norm")
        n, f = rms(m, h, p + "ffn_norm"), o.get("ff", [96] * n_layer)[i]
        y = m.lin(gelu(m.lin(n, p + "ffn_gate", f)) * m.lin(n, p + "ffn_up", f), p + "ffn_down", E)
        if i in o.get("moe", ()):
            y = rms(m, y, p + "post_ffw_norm_1") + experts(m, p, h, o)
        x = h + rms(m, y, p + "post_ffw_norm")
        if ep:
            z = m.lin(gelu(m.lin(x, p + "inp_gate", ep)) * own[:, i], p + "proj", E)
            x = x + rms(m, z, p + "post_norm")
        if o.get("out_scale"):
            x = x * m.get(p + "layer_output_scale.weight", (1,), "norm")
    return head(m, x, o)


def same_length(y, like):
    return y * np.sqrt((like**2).sum(-1, keepdims=True) / (y**2).sum(-1, keepdims=True))


def gemma3n(m, tok, pool, o):
    n_layer, d, f, ep = o["layers"], 16, 96, 256
    x = np.sqrt(E) * m.mat("token_embd", E, V)[tok]
    own = layer_inputs(m, x, tok, ep, n_layer)
    s = [x] + [same_length(x @ w.T, x) for w in m.get("altup_proj.weight", (3, E, E))]
    cache = {}
    for i in range(n_layer):
        p, windowed = f"blk.{i}.", i % 5 < 4
        turn = lambda a: rope(a, 10000.0 if windowed else 1e6)
        routes = lambda z: np.tanh(m.lin(rms(m, z, p + "altup_router_norm") / E, p + "altup_router", 4))
        c = m.lin(routes(s[0]), p + "altup_predict_coef", 16)
        pred = [s[a] + sum(c[:, b + 4 * a, None] * s[b] for b in range(4)) for a in range(4)]
        n = rms(m, pred[0], p + "attn_norm")
        low = n + rms(m, m.lin(m.lin(n, p + "laurel_l", LOW), p + "laurel_r", E), p + "laurel_post_norm")
        q = turn(rms(m, m.lin(n, p + "attn_q", H * d).reshape(-1, H, d), p + "attn_q_norm"))
        if i < 20:
            k, v = (m.lin(n, p + "attn_" + a, K * d).reshape(-1, K, d) for a in "kv")
            cache[i] = turn(rms(m, k, p + "attn_k_norm")), rms(m, v)
        k, v = cache[i if i < 20 else 18 if windowed else 19]
        a = rms(m, m.lin(attend(q, k, v, W if windowed else 0), p + "attn_output", E), p + "post_attention_norm")
        h = (pred[0] + a + low) / np.sqrt(2)
        n = rms(m, h, p + "ffn_norm")
        z = m.lin(n, p + "ffn_gate", f)
        if i < 10:
            z = np.maximum(0, z - (z.mean(-1, keepdims=True) + 1.6448533535003662 * z.std(-1, ddof=1, keepdims=True)))
        y = m.lin(gelu(z) * m.lin(n, p + "ffn_up", f), p + "ffn_down", E)
        y = h + rms(m, y, p + "post_ffw_norm")
        c = m.lin(routes(y), p + "altup_correct_coef", 4) + 1
        s = [pred[a] + c[:, a, None] * (y - pred[0]) for a in range(4)]
        z = s[0] * m.get(p + "altup_correct_scale.weight", (E,), "norm")
        z = rms(m, m.lin(gelu(m.lin(z, p + "inp_gate", ep)) * own[:, i], p + "proj", E), p + "post_norm")
        s = [s[0]] + [a + z for a in s[1:]]
    u = [same_length(a @ w.T, s[0]) for a, w in zip(s[1:], m.get("altup_unembd_proj.weight", (3, E, E)))]
    return head(m, (s[0] + sum(u)) / 4, o)


GEMMA4 = {"attention.layer_norm_rms_epsilon": EPS, "attention.head_count_kv": K, "attention.sliding_window": W, "rope.freq_base": 1e6,
          "attention.key_length": 32, "attention.value_length": 32, "attention.key_length_swa": 16, "attention.value_length_swa": 16,
          "rope.dimension_count": 32, "rope.dimension_count_swa": 16, "embedding_length_per_layer_input": 0}
GEMMA3N = {"attention.layer_norm_rms_epsilon": EPS, "attention.head_count_kv": K, "attention.sliding_window": W, "rope.freq_base": 1e6,
           "attention.key_length": 16, "attention.value_length": 16}


def gemma4_case(keys, **o):
    return ("gemma4", gemma4, {**GEMMA4, "block_count": len(o["pattern"]), "attention.sliding_window_pattern": [bool(w) for w in o["pattern"]], **keys}, o, None)


MOE = {"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 48}
FF = [96, 64, 96, 64, 128, 128]
CASES = {
    "gemma4": gemma4_case({}, pattern=[1, 1, 0], out_scale=True),
    "gemma4-fused": gemma4_case({}, pattern=[0, 1, 1], fused=True, tied=True),
    "gemma4-shared": gemma4_case({"embedding_length_per_layer_input": 24, "attention.shared_kv_layers": 2, "feed_forward_length": FF},
                                 pattern=[1, 0, 1, 0, 1, 0], ep=24, shared=2, ff=FF, tied=True),
    "gemma4-moe": gemma4_case(MOE, pattern=[1, 0, 1, 0], moe=(1, 3), no_v=True),
    "gemma4-moe-merged": gemma4_case(MOE, pattern=[1, 1, 0], moe=(0, 1, 2), merged=True, out_scale=True),
    "gemma3n": ("gemma3n", gemma3n, {**GEMMA3N, "block_count": 7}, dict(layers=7), None),
    "gemma3n-shared": ("gemma3n", gemma3n, {**GEMMA3N, "block_count": 25}, dict(layers=25, tied=True), None),
}
