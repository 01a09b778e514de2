"""A transformer of attention and network in plain numpy, its choices given as options: what numpy_variants.py's cases compute with.

Options (o) are the sheet's words: a value, or a function of the layer's number where layers differ. Left out: the plain choice.
"""
import numpy as np

from numpy_ref import E, F, H, L, RANK, V, gelu, sigmoid, silu, softmax

EPS = 1e-5
ACT = {"silu": silu, "gelu": gelu, "relu": lambda x: np.maximum(x, 0), "relu2": lambda x: np.maximum(x, 0) ** 2}


def at(o, name, i, default=None):
    """Option of layer i."""
    v = o.get(name, default)
    return v(i) if callable(v) else v


def norm(m, x, kind, name, eps=EPS):
    """kind: rms or ln, with +b for a bias, with - for no weight; a name that ends in ! has no suffix in the file."""
    if kind.startswith("ln"):
        x = x - x.mean(-1, keepdims=True)
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    if "-" in kind:
        return y
    y = y * m.get(name[:-1] if name.endswith("!") else name + ".weight", (x.shape[-1],), "norm")
    return y + m.get(name + ".bias", (x.shape[-1],), "bias") if "+b" in kind else y


# ---- rotation -------------------------------------------------------------------------------------------------------
def rotate(m, x, r, back=0):
    """x [T, heads, D] by r: n (dims that turn), kind, base, f, type, orig, a, q (yarn_log_multiplier), fast, slow, factors (name), n_factors (of which the first count), last."""
    d = x.shape[-1]
    n, base, f = r.get("n", d), r.get("base", 10000.0), r.get("f", 1.0)
    j, p = np.arange(n // 2), np.arange(back, back + len(x))[:, None]
    t = p * base ** (-2 * j / n)
    if r.get("factors"):
        t = t / m.get(r["factors"] + ".weight", (r.get("n_factors", n // 2),), "norm")[:n // 2]
    theta, mag = t / (1.0 if r.get("type") == "none" else f), r.get("a", 1.0)
    if r.get("type") == "yarn":
        turn = lambda c: n * np.log(r["orig"] / (c * 2 * np.pi)) / (2 * np.log(base))
        lo, hi = max(0, np.floor(turn(r.get("fast", 32)))), min(n - 1, np.ceil(turn(r.get("slow", 1))))
        mix = 1 - np.clip((j - lo) / max(0.001, hi - lo), 0, 1)
        theta = theta * (1 - mix) + t * mix
        if f > 1:
            mag *= (1 + 0.1 * np.log(f)) / (1 + 0.1 * r.get("q", 0.0) * np.log(f))
        mag = r.get("mag", mag)
    c, s = mag * np.cos(theta)[:, None], mag * np.sin(theta)[:, None]
    first = d - n if r.get("last") else 0
    y = x.copy()
    if r["kind"] == "norm":
        a, b = x[..., first:first + n:2], x[..., first + 1:first + n:2]
        y[..., first:first + n:2], y[..., first + 1:first + n:2] = a * c - b * s, a * s + b * c
    else:
        a, b = x[..., first:first + n // 2], x[..., first + n // 2:first + n]
        y[..., first:first + n // 2], y[..., first + n // 2:first + n] = a * c - b * s, a * s + b * c
    return y


# ---- attention ------------------------------------------------------------------------------------------------------
def slopes(h, b):
    n2 = 2 ** int(np.floor(np.log2(h)))
    return np.array([2.0 ** (-b * (i + 1) / n2) if i < n2 else 2.0 ** (-(b / 2) * (2 * (i - n2) + 1) / n2) for i in range(h)])


def hidden(n, o, i):
    """Who is not seen: [T, T]."""
    back = np.arange(n)[:, None] - np.arange(n)
    w = at(o, "window", i, 0)
    if o.get("both_ways"):
        return np.abs(back) > w // 2 if w else np.zeros_like(back, bool)
    return (back < 0) | (back >= w if w else False)


def attend(q, k, v, o, i, m, p):
    """[T, H, D] over [T, K, D] and [T, K, Dv]: [T, H * Dv]."""
    n, h, d = q.shape
    k, v = (np.repeat(a, h // a.shape[1], 1) for a in (k, v))
    s = np.einsum("thd,shd->hts", q, k) * (o.get("scale") or 1 / np.sqrt(d))
    if o.get("softcap"):
        s = o["softcap"] * np.tanh(s / o["softcap"])
    if o.get("alibi"):
        t = np.arange(n)
        s = s - slopes(h, o["alibi"])[:, None, None] * np.abs(t[:, None] - t)
    s = np.where(hidden(n, o, i), -np.inf, s)
    if o.get("sinks"):
        sink = np.broadcast_to(m.get(p + "attn_sinks.weight", (h,))[:, None, None], (h, n, 1))
        s = np.concatenate([s, sink], -1)
        return np.einsum("hts,shd->thd", softmax(s)[..., :-1], v).reshape(n, -1)
    return np.einsum("hts,shd->thd", softmax(s), v).reshape(n, -1)


def qkv(m, x, p, i, o):
    h, k, d = at(o, "H", i, H), at(o, "K", i, at(o, "H", i, H)), at(o, "D", i, x.shape[-1] // at(o, "H", i, H))
    widths = [h * d, k * d, k * o.get("Dv", d)]
    bias = at(o, "qkv_bias", i)
    if at(o, "fused", i):
        y = m.lin(x, p + "attn_qkv", sum(widths), bias == "fused")
        if bias == "split":  # the three vectors of a file that was fused later
            y = y + np.concatenate([m.get(p + f"attn_{a}.bias", (w,), "bias") for a, w in zip("qkv", widths)])
        y = np.split(y, np.cumsum(widths)[:2], -1)
    else:
        y = [m.lin(x, p + "attn_" + a, w, bool(bias)) for a, w in zip("qkv", widths)]
    if o.get("clamp"):
        y = [np.clip(a, -o["clamp"], o["clamp"]) for a in y]
    return [a.reshape(len(x), n, -1) for a, n in zip(y, (h, k, k))]


def qk_norm(m, x, name, kind, eps):
    if not kind:
        return x
    if kind.startswith("row"):  # over the heads together
        return norm(m, x.reshape(len(x), -1), kind[4:], name, eps).reshape(x.shape)
    if kind == "own ln":  # a head's own weights, no bias
        y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
        return y * m.get(name + ".weight", x.shape[1:], "norm")
    return norm(m, x, kind, name, eps)


def attention(m, x, p, i, o):
    q, k, v = qkv(m, x, p, i, o)
    kind, r, eps = at(o, "qk_norm", i), at(o, "rope", i), o.get("eps", EPS)
    both = lambda f: (f(q, p + "attn_q_norm"), f(k, p + "attn_k_norm"))
    if not o.get("norm_after_rope"):
        q, k = both(lambda a, name: qk_norm(m, a, name, kind, eps))
    if r:
        q, k = rotate(m, q, r), rotate(m, k, r)
    if o.get("norm_after_rope"):
        q, k = both(lambda a, name: qk_norm(m, a, name, kind, eps))
    if o.get("temp"):
        ts, length = o["temp"]
        q = q * (1 + ts * np.log(1 + np.floor(np.arange(len(x)) / length)))[:, None, None]
    y = attend(q, k, v, o, i, m, p)
    gate = at(o, "gate", i)
    if gate:  # one per head, or one per value
        g = m.lin(x, p + "attn_gate", q.shape[1] if gate == "head" else y.shape[-1])
        g = np.log1p(np.exp(g)) if o.get("gate_softplus") else sigmoid(g)
        y = y * (np.repeat(g, y.shape[-1] // q.shape[1], -1) if gate == "head" else g)
    return m.lin(y, p + "attn_output", x.shape[-1], o.get("o_bias", False))


def latent(m, x, p, i, o):
    """MLA in either form: ql, r, R, kd, vd, absorbed, mla_scale."""
    h, n_rot, kd, vd, r = at(o, "H", i, H), o["R"], o["kd"], o["vd"], o["r"]
    if o.get("ql"):
        q = m.lin(norm(m, m.lin(x, p + "attn_q_a", o["ql"]), "rms", p + "attn_q_a_norm"), p + "attn_q_b", h * kd)
    else:
        q = m.lin(x, p + "attn_q", h * kd)
    q = rotate(m, q.reshape(len(x), h, kd), {**o["rope"], "n": n_rot, "last": True})
    c, kp = np.split(m.lin(x, p + "attn_kv_a_mqa", r + n_rot), [r], -1)
    c, kp = norm(m, c, "rms", p + "attn_kv_a_norm"), rotate(m, kp[:, None], {**o["rope"], "n": n_rot})
    if o.get("absorbed"):
        kb, vb = m.get(p + "attn_k_b.weight", (h, r, kd - n_rot)), m.get(p + "attn_v_b.weight", (h, vd, r))
        kn, v = np.einsum("hrn,tr->thn", kb, c), np.einsum("hvr,tr->thv", vb, c)
    else:
        kv = m.lin(c, p + "attn_kv_b", h * (kd - n_rot + vd)).reshape(len(x), h, -1)
        kn, v = kv[..., :kd - n_rot], kv[..., kd - n_rot:]
    k = np.concatenate([kn, np.repeat(kp, h, 1)], -1)
    if o.get("temp"):
        ts, length = o["temp"]
        q = q * (1 + ts * np.log(1 + np.floor(np.arange(len(x)) / length)))[:, None, None]
    y = attend(q, k, v, {**o, "scale": o.get("mla_scale", 1.0) / np.sqrt(kd)}, i, m, p)
    return m.lin(y, p + "attn_output", x.shape[-1])


# ---- networks -------------------------------------------------------------------------------------------------------
def network(m, x, p, i, o, suffix="", width=None):
    f, e, b = width or at(o, "F", i, F), x.shape[-1], o.get("ffn_bias", False) and not suffix
    kind, act = o.get("ffn", "gate silu").split()
    kind, act = o.get("shared_kind", kind) if suffix else kind, ACT[act]

    def lin(v, name, n):  # (w v + b) * s: in networks the scale covers the bias
        y = m.lin(v, p + name + suffix, n, b)
        return y * m.get(p + name + suffix + ".scale", (1,), "norm") if o.get("ffn_scales") else y

    if kind == "gate":
        y = act(lin(x, "ffn_gate", f)) * lin(x, "ffn_up", f)
    elif kind == "fused":
        g, u = np.split(lin(x, "ffn_up", 2 * f), 2, -1)
        y = act(g) * u
    else:
        y = act(lin(x, "ffn_up", f))
    if o.get("act_scales"):
        y = y / m.get(p + "ffn.act.scales", (f,), "norm")
    return lin(y, "ffn_down", e)


def experts(m, x, p, i, o, router_x=None):
    """The experts alone: n, used, width, gating, bias, groups, norm, wscale, no_gate, merged, biases, oai, act, clamp."""
    e = o["moe"]
    n, used, f, width = e["n"], e["used"], e.get("width", F), x.shape[-1]
    logits = m.lin(x if router_x is None else router_x, p + "ffn_gate_inp", n, e.get("biases", False))
    gating = e.get("gating", "softmax")
    prob = {"softmax": softmax, "sigmoid": sigmoid, "late": lambda a: a}[gating](logits)
    score = prob + m.get(p + (e["bias"] if isinstance(e["bias"], str) else "exp_probs_b.bias"), (n,), "bias") if e.get("bias") else prob
    if e.get("groups"):
        g, keep = e["groups"]
        best = np.sort(score.reshape(-1, g, n // g), -1)[..., -2:].sum(-1)
        out = np.argsort(-best, -1)[:, keep:]
        score = score.copy().reshape(-1, g, n // g)
        for t in range(len(x)):
            score[t, out[t]] = -np.inf
        score = score.reshape(-1, n)
    if e.get("merged"):
        gu = m.get(p + "ffn_gate_up_exps.weight", (n, 2 * f, width))
        gate, up = gu[:, :f], gu[:, f:]
    else:
        gate = None if e.get("no_gate") else m.get(p + "ffn_gate_exps.weight", (n, f, width))
        up = m.get(p + "ffn_up_exps.weight", (n, f, width))
    down = m.get(p + "ffn_down_exps.weight", (n, width, f))
    b = {a: m.get(p + f"ffn_{a}_exps.bias", (n, w), "bias") if e.get("biases") else np.zeros((n, w)) for a, w in (("gate", f), ("up", f), ("down", width))}
    act, y = ACT[e.get("act", "silu")], np.zeros_like(x)
    for t in range(len(x)):
        ids = np.argsort(-score[t])[:used]
        w = softmax(prob[t, ids]) if gating == "late" else prob[t, ids]
        w = (w / w.sum() if e.get("norm") else w) * e.get("wscale", 1.0)
        for wi, j in zip(w, ids):
            h = wi * x[t] if e.get("scale_input") else x[t]
            u = up[j] @ h + b["up"][j]
            if gate is None:
                z = act(u)
            elif e.get("oai"):
                g = np.minimum(gate[j] @ h + b["gate"][j], 7)
                z = g * sigmoid(1.702 * g) * (np.clip(u, -7, 7) + 1)
            else:
                c = e.get("clamp", np.inf)
                z = act(np.minimum(gate[j] @ h + b["gate"][j], c)) * np.clip(u, -c, c)
            y[t] += (1 if e.get("scale_input") else wi) * (down[j] @ z + b["down"][j])
    return y


def feed_forward(m, x, p, i, o, router_x=None):
    if not o.get("moe") or not at(o["moe"], "layers", i, True):
        return network(m, x, p, i, o)
    y = experts(m, x, p, i, o, router_x)
    if o["moe"].get("shared"):
        z = network(m, x, p, i, o, "_shexp", o["moe"]["shared"])
        if o["moe"].get("shared_gate"):
            z = z * sigmoid(x @ m.get(p + "ffn_gate_inp_shexp.weight", (x.shape[-1],)))[:, None]
        y = (y + z) * o["moe"].get("half", 1.0)
    return y


# ---- layers and model -------------------------------------------------------------------------------------------------
def layer(m, x, i, o):
    p, kind, eps, rs = f"blk.{i}.", o.get("norm", "rms"), o.get("eps", EPS), o.get("residual", 1.0)
    n = lambda a, name: norm(m, a, kind, p + name, eps)
    given = x if o.get("router") == "input" else None
    mix = lambda a: (o.get("mixer") or (latent if "kd" in o else attention))(m, a, p, i, o)
    ff = lambda a: o["network"](m, a, p, i, o) if "network" in o else feed_forward(m, a, p, i, o, given)
    form, after, last = o.get("form", "pre"), o.get("post_attn", "post_attention_norm"), o.get("post_ffn", "post_ffw_norm")
    if form == "pre":
        x = x + rs * o.get("attn_scale", 1.0) * mix(n(x, "attn_norm"))
        return x + rs * ff(norm(m, x, o.get("ffn_norm_kind", kind), p + o.get("ffn_norm", "ffn_norm"), eps))
    if form == "sandwich":
        x = x + n(mix(n(x, "attn_norm")), after)
        return x + n(ff(n(x, "ffn_norm")), last)
    if form == "post":
        x = x + n(mix(x), after)
        return x + n(ff(x), last)
    h = n(x, "attn_norm")  # parallel; the two branches may have a norm each
    return x + mix(n(x, o["attn_norm"]) if "attn_norm" in o else h) + ff(n(x, o["ffn_norm"]) if "ffn_norm" in o else h)


def transformer(m, tok, pool, o):
    e, v, kind = o.get("E", E), o.get("vocab", V), o.get("norm", "rms")
    x = m.mat("token_embd", e, v)[tok] * o.get("embd_scale", 1.0)
    if o.get("positions"):
        x = x + m.mat("position_embd", e, 256)[np.arange(len(tok))]
    if o.get("embd_norm"):
        x = norm(m, x, kind, "token_embd_norm")
    for loop in range(o.get("loops", 1)):
        if loop and o.get("loop_norm", True):
            x = norm(m, x, kind, "output_norm", o.get("eps", EPS))
        for i in range(o.get("layers", L)):
            x = o.get("layer", layer)(m, x, i, o)
    x = norm(m, x, kind, "output_norm", o.get("eps", EPS))
    if pool == RANK:
        return softmax(m.lin(x[-1], "cls.output", o["labels"]))
    if pool is not None:
        return x
    y = m.lin(x * o.get("head_scale", 1.0), "token_embd" if o.get("tied") else "output", v, o.get("out_bias", False)) * o.get("logit_scale", 1.0)
    return o["final_softcap"] * np.tanh(y / o["final_softcap"]) if o.get("final_softcap") else y
