"""Recurrent and hybrid architectures of numpy_ref.py: what the golden files don't reach (sparse choices, more heads than one, latent experts)."""
import numpy as np

from numpy_ref import D, E, F, H, L, V, Tiny, attend, rope, sigmoid, silu, softmax

EPS = 1e-5


class Hybrid(Tiny):
    def rms(self, x, name=None, eps=EPS):
        y = x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
        return y * self.get(name, (x.shape[-1],), "norm") if name else y


def l2(x, eps=EPS):
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + eps)


def softplus(x):
    return np.log1p(np.exp(x))


def f16(x):
    return x.astype(np.float16).astype(np.float64)


def relu2(x):
    return np.maximum(x, 0) ** 2


def conv(m, name, x, k, bias=False):
    w = m.get(name + ".weight", (x.shape[-1], k))
    z = np.concatenate([np.zeros((k - 1, x.shape[-1])), x])
    y = sum(w[:, i] * z[i:i + len(x)] for i in range(k))
    return y + m.get(name + ".bias", (x.shape[-1],), "bias") if bias else y


def negative(m, name, shape):
    """A decay as files hold it: minus a number around 1."""
    if name not in m.w:
        m.w[name] = (-1 + 0.5 * m.rng.uniform(-1, 1, shape)).astype(np.float32)
    return m.w[name].astype(np.float64)


def swiglu(g, u, clamp=0.0):
    return silu(np.minimum(g, clamp)) * np.clip(u, -clamp, clamp) if clamp > 1e-6 else silu(g) * u


def experts(m, h, p, o, router_x=None, width=F):
    """Top U of X experts; o: gate, bias, norm, scale, act (gated) or plain, clamp."""
    n, e_in = o["n"], h.shape[-1]
    logits = m.lin(h if router_x is None else router_x, p + "ffn_gate_inp", n)
    prob = sigmoid(logits) if o.get("sigmoid") else softmax(logits)
    best = prob + m.get(p + "exp_probs_b.bias", (n,), "bias") if o.get("bias") else prob
    gate = m.get(p + "ffn_gate_exps.weight", (n, width, e_in)) if not o.get("plain") else None
    up, down = m.get(p + "ffn_up_exps.weight", (n, width, e_in)), m.get(p + "ffn_down_exps.weight", (n, e_in, width))
    y = np.zeros_like(h)
    for t in range(len(h)):
        ids = np.argsort(-best[t])[:o["used"]]
        w = prob[t, ids]
        w = (w / w.sum() if o.get("norm") else w) * o.get("scale", 1.0)
        for wi, e in zip(w, ids):
            u = up[e] @ h[t]
            if gate is not None:
                g = gate[e] @ h[t]
                u = o["act"](g, u) if "act" in o else swiglu(g, u, o.get("clamp", 0.0))
            y[t] += wi * (down[e] @ (relu2(u) if gate is None else u))
    return y


def ffn(m, h, p, suffix="", width=F, clamp=0.0, act=None):
    g, u = m.lin(h, p + "ffn_gate" + suffix, width), m.lin(h, p + "ffn_up" + suffix, width)
    return m.lin(act(g, u) if act else swiglu(g, u, clamp), p + "ffn_down" + suffix, E)


def mamba2(m, h, p, o):
    n_in, n, nh, g, k = o["inner"], o["state"], o["heads"], o["groups"], 4
    z, xbc, dt = np.split(m.lin(h, p + "ssm_in", 2 * n_in + 2 * g * n + nh), [n_in, 2 * n_in + 2 * g * n], -1)
    xbc = silu(conv(m, p + "ssm_conv1d", xbc, k, True))
    x, b, c = np.split(xbc, [n_in, n_in + g * n], -1)
    x, b, c = x.reshape(-1, nh, n_in // nh), b.reshape(-1, g, n), c.reshape(-1, g, n)
    dt = softplus(dt + m.get(p + "ssm_dt.bias", (nh,), "bias"))
    a, d = negative(m, p + "ssm_a", (nh, 1))[:, 0], m.get(p + "ssm_d", (nh, 1), "norm")[:, 0]
    group, s, out = np.arange(nh) // (nh // g), np.zeros((nh, n_in // nh, n)), []
    for t in range(len(h)):
        s = np.exp(dt[t] * a)[:, None, None] * s + dt[t][:, None, None] * x[t][:, :, None] * b[t][group][:, None]
        out.append(np.einsum("hdn,hn->hd", s, c[t][group]) + d[:, None] * x[t])
    y = (np.array(out).reshape(-1, n_in) * silu(z)).reshape(-1, g, n_in // g)
    if o.get("norms") == "none":
        return m.lin(y.reshape(-1, n_in), p + "ssm_out", E)
    y = (y / np.sqrt((y * y).mean(-1, keepdims=True) + EPS) * m.get(p + "ssm_norm.weight", (g, n_in // g), "norm")).reshape(-1, n_in)
    return m.lin(y, p + "ssm_out", E)


def mamba1(m, h, p, o):
    n_in, n, r = 2 * E, o["state"], o["rank"]
    x, z = np.split(m.lin(h, p + "ssm_in", 2 * n_in), 2, -1)
    x = silu(conv(m, p + "ssm_conv1d", x, 4, True))
    dt, b, c = np.split(m.lin(x, p + "ssm_x", r + 2 * n), [r, r + n], -1)
    if o.get("norms") != "none":
        dt, b, c = (m.rms(y, None if o.get("norms") == "plain" else p + f"ssm_{k}_norm.weight") for y, k in ((dt, "dt"), (b, "b"), (c, "c")))
    dt = softplus(m.lin(dt, p + "ssm_dt", n_in, True))
    a, d = negative(m, p + "ssm_a", (n_in, n)), m.get(p + "ssm_d", (n_in,), "norm")
    s, out = np.zeros((n_in, n)), []
    for t in range(len(h)):
        s = np.exp(dt[t][:, None] * a) * s + (dt[t] * x[t])[:, None] * b[t]
        out.append(s @ c[t] + d * x[t])
    return m.lin(np.array(out) * silu(z), p + "ssm_out", E)


def causal(n):
    return np.where(np.arange(n)[:, None] < np.arange(n), -np.inf, 0.0)


def plain_attention(m, h, p, n_kv=H):
    q, k, v = m.lin(h, p + "attn_q", E), m.lin(h, p + "attn_k", n_kv * D), m.lin(h, p + "attn_v", n_kv * D)
    q, k, v = q.reshape(-1, H, D), k.reshape(-1, n_kv, D).repeat(H // n_kv, 1), v.reshape(-1, n_kv, D).repeat(H // n_kv, 1)
    return m.lin(attend(q, k, v, causal(len(h))), p + "attn_output", E)


def delta(q, k, v, gl, beta):
    """[T, H, d]; gl [T, H, 1 or d]."""
    s, out = np.zeros((q.shape[1], q.shape[2], v.shape[2])), []
    for t in range(len(q)):
        s = s * np.exp(gl[t])[:, :, None]
        d = beta[t][:, None] * (v[t] - np.einsum("hkv,hk->hv", s, k[t]))
        s = s + k[t][:, :, None] * d[:, None]
        out.append(np.einsum("hkv,hk->hv", s, q[t]) / np.sqrt(q.shape[2]))
    return np.array(out)


def gated_delta(m, h, p, sigmoid_gate):
    nk, nv, s = 2, 4, 16
    qkv = silu(conv(m, p + "ssm_conv1d", m.lin(h, p + "attn_qkv", (2 * nk + nv) * s), 4))
    z = m.lin(h, p + "attn_gate", nv * s).reshape(-1, nv, s)
    beta, alpha = sigmoid(m.lin(h, p + "ssm_beta", nv)), m.lin(h, p + "ssm_alpha", nv)
    q, k, v = np.split(qkv, [nk * s, 2 * nk * s], -1)
    q, k = l2(q.reshape(-1, nk, s))[:, np.arange(nv) % nk], l2(k.reshape(-1, nk, s))[:, np.arange(nv) % nk]
    gl = negative(m, p + "ssm_a", (nv,)) * softplus(alpha + m.get(p + "ssm_dt.bias", (nv,), "bias"))
    y = m.rms(delta(q, k, v.reshape(-1, nv, s), gl[:, :, None], beta), p + "ssm_norm.weight")
    return m.lin((y * (sigmoid(z) if sigmoid_gate else silu(z))).reshape(-1, nv * s), p + "ssm_out", E)


def imrope(x, sections, at=None):
    """Interleaved sections for text: what falls to the fourth component stays where it is."""
    n = x.shape[-1] // 2
    j = np.arange(n)
    turns = ((j % 3 == 1) & (j < 3 * sections[1])) | ((j % 3 == 2) & (j < 3 * sections[2])) | ((j % 3 == 0) & (j < 3 * sections[0]))
    t = (np.arange(len(x)) if at is None else at)[:, None] * 10000.0 ** (-j / n) * turns
    c, s = np.cos(t)[:, None], np.sin(t)[:, None]
    a, b = x[..., :n], x[..., n:]
    return np.concatenate([a * c - b * s, a * s + b * c], -1)


def gated_attention(m, h, p, sections, mask, n_kv=2):
    qg = m.lin(h, p + "attn_q", 2 * E).reshape(-1, H, 2 * D)
    q, gate = qg[..., :D], qg[..., D:].reshape(-1, E)
    k, v = (m.lin(h, p + "attn_" + n, n_kv * D).reshape(-1, n_kv, D) for n in "kv")
    q, k = imrope(m.rms(q, p + "attn_q_norm.weight"), sections), imrope(m.rms(k, p + "attn_k_norm.weight"), sections)
    y = attend(q, k.repeat(H // n_kv, 1), v.repeat(H // n_kv, 1), mask)
    return m.lin(y * sigmoid(gate), p + "attn_output", E)


def pool_mask(scores, t_n, n, k, tail):
    """-inf but for the members of the k best complete pools of n positions, and what follows the last complete one."""
    mask = np.full((t_n, t_n), -np.inf)
    for t in range(t_n):
        n_pool = (t + 1) // n
        for j in np.argsort(-scores[t, :n_pool], kind="stable")[:k]:
            mask[t, j * n:(j + 1) * n] = 0
        if tail:
            mask[t, n_pool * n:t + 1] = 0
    return mask


# ---- whole models -----------------------------------------------------------------------------------------------------
def finish(m, x, norm=True):
    return m.lin(m.rms(x, "output_norm.weight") if norm else x, "output", V)


def jamba(m, tok, pool, o):
    x = m.mat("token_embd", E, V)[tok]
    for i in range(L):
        p = f"blk.{i}."
        h = m.rms(x, p + "attn_norm.weight")
        x = x + (plain_attention(m, h, p) if i == 1 else mamba1(m, h, p, o))
        h = m.rms(x, p + "ffn_norm.weight")
        x = x + (experts(m, h, p, dict(n=6, used=3)) if i == 2 else ffn(m, h, p))
    return finish(m, x)


def granitehybrid(m, tok, pool, o):
    x, rs = 12 * m.mat("token_embd", E, V)[tok], 0.22
    for i in range(L):
        p = f"blk.{i}."
        h = m.rms(x, p + "attn_norm.weight")
        if i == 1:
            q, k, v = (m.lin(h, p + "attn_" + n, w).reshape(-1, w // D, D) for n, w in (("q", E), ("k", 2 * D), ("v", 2 * D)))
            q, k = (rope_pairs(q), rope_pairs(k)) if o["rope"] else (q, k)
            y = attend(q * (0.1 * np.sqrt(D)), k.repeat(2, 1), v.repeat(2, 1), causal(len(tok)))
            y = m.lin(y, p + "attn_output", E, True)
        else:
            y = mamba2(m, h, p, dict(inner=128, state=16, heads=8, groups=1))
        x = x + rs * y
        h = m.rms(x, p + "ffn_norm.weight")
        x = x + rs * (experts(m, h, p, dict(n=6, used=3, norm=True)) + ffn(m, h, p, "_shexp", 48))
    return finish(m, x) / 8


def nemotron_h_moe(m, tok, pool, o):
    x = m.mat("token_embd", E, V)[tok]
    for i in range(L):
        p = f"blk.{i}."
        h = m.rms(x, p + "attn_norm.weight")
        if i == 0:
            x = x + mamba2(m, h, p, dict(inner=128, state=16, heads=8, groups=2))
        elif i == 1:
            x = x + plain_attention(m, h, p, 2)
        else:
            z = m.lin(h, p + "ffn_latent_down", o["latent"]) if o.get("latent") else h
            y = experts(m, z, p, dict(n=6, used=3, sigmoid=True, bias=True, norm=True, scale=2.5, plain=True), h, 40)
            y = m.lin(y, p + "ffn_latent_up", E) if o.get("latent") else y
            x = x + y + m.lin(relu2(m.lin(h, p + "ffn_up_shexp", 48)), p + "ffn_down_shexp", E)
    return finish(m, x)


def qwen35(m, tok, pool, o):
    x = m.mat("token_embd", E, V)[tok]
    for i in range(L):
        p = f"blk.{i}."
        h = m.rms(x, p + "attn_norm.weight")
        x = x + (gated_attention(m, h, p, o["sections"], causal(len(tok))) if i == 1 else gated_delta(m, h, p, False))
        x = x + ffn(m, m.rms(x, p + "post_attention_norm.weight"), p)
    return finish(m, x)


def lfm2(m, tok, pool, o):
    x, k = m.mat("token_embd", E, V)[tok], o["k"]
    for i in range(L):
        p = f"blk.{i}."
        h = m.rms(x, p + "attn_norm.weight")
        b, c, u = np.split(m.lin(h, p + "shortconv.in_proj", 3 * E), 3, -1)
        x = x + m.lin(c * conv(m, p + "shortconv.conv", b * u, k), p + "shortconv.out_proj", E)
        x = x + ffn(m, m.rms(x, p + "ffn_norm.weight"), p)
    return m.lin(m.rms(x, "token_embd_norm.weight"), "output", V)


def minimax_01(m, tok, pool, o):
    x = m.mat("token_embd", E, V)[tok]
    for i in range(L):
        p = f"blk.{i}."
        h = m.rms(x, p + "attn_norm.weight")
        q, k, v = np.split(silu(m.lin(h, p + "attn_qkv", 3 * E)).reshape(-1, H, 3 * D), 3, -1)
        rho = np.exp(-(2.0 ** (-8 * (np.arange(H) + 1) / H)) * (1 - i / (L - 1) + 1e-5))
        s, out = np.zeros((H, D, D)), []
        for t in range(len(tok)):
            s = rho[:, None, None] * s + k[t][:, :, None] * v[t][:, None]
            out.append(np.einsum("hkv,hk->hv", s, q[t]).reshape(-1))
        y = sigmoid(m.lin(h, p + "attn_gate", E)) * m.rms(np.array(out), p + "attn_norm_2.weight")
        x = m.lin(y, p + "attn_output", E) + 1.5 * h
        h = m.rms(x, p + "ffn_norm.weight")
        x = experts(m, h, p, dict(n=6, used=3, norm=True)) + 1.5 * h
    return finish(m, x)


def hc_branch(m, x, p, name, branch):
    """Hyper-connections in the Sinkhorn form; x [T, hc, E]."""
    n, he = 4, 1e-6
    flat = m.rms(x.reshape(len(x), -1))
    f = m.lin(flat, p + f"hc_{name}_fn", (2 + n) * n)
    base, scale = m.get(p + f"hc_{name}_base.weight", ((2 + n) * n,), "raw"), m.get(p + f"hc_{name}_scale.weight", (3,), "norm")
    a = sigmoid(f[:, :n] * scale[0] + base[:n]) + he
    post = 2 * sigmoid(f[:, n:2 * n] * scale[1] + base[n:2 * n])
    c = softmax((f[:, 2 * n:] * scale[2] + base[2 * n:]).reshape(-1, n, n)) + he  # [T, s, d]
    c = c / (c.sum(1, keepdims=True) + he)
    for _ in range(2):
        c = c / (c.sum(2, keepdims=True) + he)
        c = c / (c.sum(1, keepdims=True) + he)
    y = branch(np.einsum("ts,tse->te", a, x))
    return post[:, :, None] * y[:, None] + np.einsum("tsd,tse->tde", c, x)


def kda(m, h, p, lower, eps=EPS, gate="low", low=True, positive=False):
    """gate: two matrices or one; low: the same of the decay; positive: ssm_a is stored without its minus."""
    d = D
    q, k, v = (silu(conv(m, p + "ssm_conv1d_" + n, m.lin(h, p + "attn_" + n, E), 4)).reshape(-1, H, d) for n in "qkv")
    z = m.lin(m.lin(h, p + "ssm_f_a", d), p + "ssm_f_b", E) if low else m.lin(h, p + "ssm_f_a", E)
    z = (z + m.get(p + "ssm_dt.bias", (E,), "bias")).reshape(-1, H, d)
    a = m.get(p + "ssm_a", (H,), "norm")[:, None] if positive else negative(m, p + "ssm_a", (H,))[:, None]
    gl = lower * sigmoid(a * z if positive else -a * z) if lower else a * softplus(z)
    y = m.rms(delta(l2(q, eps), l2(k, eps), v, gl, sigmoid(m.lin(h, p + "ssm_beta", H))), p + "ssm_norm.weight")
    g = m.lin(m.lin(h, p + "ssm_g_a", d), p + "ssm_g_b", E) if gate == "low" else m.lin(h, p + gate, E)
    return m.lin(y.reshape(-1, E) * sigmoid(g), p + "attn_output", E)


def rope_pairs(x):
    """Neighbours (2j, 2j + 1) of [T, heads, R]."""
    n = x.shape[-1] // 2
    t = np.arange(len(x))[:, None] * 10000.0 ** (-np.arange(n) / n)
    c, s = np.cos(t)[:, None], np.sin(t)[:, None]
    y = np.empty_like(x)
    y[..., 0::2], y[..., 1::2] = x[..., 0::2] * c - x[..., 1::2] * s, x[..., 0::2] * s + x[..., 1::2] * c
    return y


def mla(m, h, p, ql=0, rope=False, gate=None):
    """Absorbed latent attention: rank 32, heads 12 + 8, values 16."""
    n, r, nope, rot, vd = len(h), 32, 12, 8, 16
    if ql:
        q = m.lin(m.rms(m.lin(h, p + "attn_q_a", ql), p + "attn_q_a_norm.weight"), p + "attn_q_b", H * (nope + rot))
    else:
        q = m.lin(h, p + "attn_q", H * (nope + rot))
    q, kv = q.reshape(n, H, -1), m.lin(h, p + "attn_kv_a_mqa", r + rot)
    c, pe, q_pe = m.rms(kv[:, :r], p + "attn_kv_a_norm.weight"), kv[:, None, r:], q[..., nope:]
    if rope:
        pe, q_pe = rope_pairs(pe), rope_pairs(q_pe)
    qq = np.einsum("hrk,thk->thr", m.get(p + "attn_k_b.weight", (H, r, nope)), q[..., :nope])
    s = (np.einsum("thr,sr->hts", qq, c) + np.einsum("thr,sr->hts", q_pe, pe[:, 0])) / np.sqrt(nope + rot) + causal(n)
    y = np.einsum("hvr,thr->thv", m.get(p + "attn_v_b.weight", (H, vd, r)), np.einsum("hts,sr->thr", softmax(s), c))
    if gate == "head":
        y = y * sigmoid(m.lin(h, p + "attn_gate", H))[:, :, None]
    y = y.reshape(n, -1)
    return m.lin(y * sigmoid(m.lin(h, p + "attn_gate", H * vd)) if gate == "all" else y, p + "attn_output", E)


def late(g, u, c):
    return np.minimum(silu(g), c) * np.clip(u, -c, c)


def kimi_linear(m, tok, pool, o):
    x = m.mat("token_embd", E, V)[tok]
    for i in range(L):
        p = f"blk.{i}."
        h = m.rms(x, p + "attn_norm.weight")
        x = x + (mla(m, h, p) if i == 1 else kda(m, h, p, 0))
        h = m.rms(x, p + "ffn_norm.weight")
        moe = dict(n=6, used=3, sigmoid=True, bias=True, norm=True, scale=2.5)
        x = x + (ffn(m, h, p) if i == 0 else experts(m, h, p, moe) + ffn(m, h, p, "_shexp"))
    return finish(m, x)


def bailingmoe3(m, tok, pool, o):
    x = m.mat("token_embd", E, V)[tok]
    for i in range(L):
        p = f"blk.{i}."
        h = m.rms(x, p + "attn_norm.weight")
        x = x + (mla(m, h, p, o["ql"], True, "head") if i == 1 else kda(m, h, p, -5.0, gate="ssm_g_a", low=False, positive=True))
        h = m.rms(x, p + "ffn_norm.weight")
        if i == 0:
            x = x + ffn(m, h, p, act=lambda g, u: late(g, u, 0.4))
        else:
            moe = dict(n=6, used=3, sigmoid=True, bias=True, norm=True, scale=2.5, act=lambda g, u: late(g, u, 0.5))
            x = x + experts(m, h, p, moe) + ffn(m, h, p, "_shexp", act=lambda g, u: late(g, u, 0.4))
    return finish(m, x)


def kimi_k3(m, tok, pool, o):
    x, bank = m.mat("token_embd", E, V)[tok], []

    def situ(g, u):
        return 4 * np.tanh(g / 4) * sigmoid(g) * (o["lt"] * np.tanh(u / o["lt"]) if o["lt"] > 0 else u)

    def mix(c, name):
        if not bank:
            return c
        rows = np.stack(bank + [c], 1)
        w = softmax(m.rms(rows) @ m.get(name + ".weight", (E,)))
        return np.einsum("tn,tne->te", w, rows)

    for i in range(L):
        p = f"blk.{i}."
        h = m.rms(mix(x, p + "attn_res_score"), p + "attn_norm.weight")
        kept = i % o["block"] == 0
        if kept:
            m.get(p + "attn_res_score.weight", (E,))
            bank.append(x)
        a = mla(m, h, p, 24, gate="all") if i == 1 else kda(m, h, p, o["lower"], gate="ssm_g")
        s = a if kept else x + a
        h = m.rms(mix(s, p + "ffn_res_score"), p + "ffn_norm.weight")
        if i == 0:
            y = ffn(m, h, p, act=situ)
        else:
            moe = dict(n=6, used=3, sigmoid=True, bias=True, norm=True, scale=2.5, act=situ)
            y = experts(m, m.lin(h, p + "ffn_routed_down", 32), p, moe, h)
            y = m.lin(m.rms(y, p + "ffn_routed_norm.weight"), p + "ffn_routed_up", E) + ffn(m, h, p, "_shexp", act=situ)
        x = s + y
    return finish(m, mix(x, "output_res_score"))


def plamo2(m, tok, pool, o):
    x, n_in, n, nh, k = m.mat("token_embd", E, V)[tok], 128, 16, 8, 4

    def mixer(h, p):
        z, u = np.split(m.lin(h, p + "ssm_in", 2 * n_in).reshape(-1, nh, 2 * n_in // nh), 2, -1)
        u = silu(conv(m, p + "ssm_conv1d", u.reshape(-1, n_in), k))
        b, c, dt = np.split(m.lin(u, p + "ssm_x", 64 + 2 * n), [n, 2 * n], -1)
        b, c, dt = (m.rms(y, p + f"ssm_{name}_norm") for y, name in ((b, "b"), (c, "c"), (dt, "dt")))
        dt, a, d = softplus(m.lin(dt, p + "ssm_dt", nh, True)), negative(m, p + "ssm_a", (nh,)), m.get(p + "ssm_d", (nh,), "norm")
        u, s, out = u.reshape(-1, nh, n_in // nh), np.zeros((nh, n_in // nh, n)), []
        for t in range(len(h)):
            s = np.exp(dt[t] * a)[:, None, None] * s + (dt[t][:, None] * u[t])[:, :, None] * b[t]
            out.append(s @ c[t] + d[:, None] * u[t])
        return m.lin((np.array(out) * silu(z)).reshape(-1, n_in), p + "ssm_out", E)

    def attention(h, p):
        q, kk, v = np.split(m.lin(h, p + "attn_qkv", E + 2 * 2 * D), [E, E + 2 * D], -1)
        q, kk, v = q.reshape(-1, H, D), kk.reshape(-1, 2, D), v.reshape(-1, 2, D)
        q, kk = (rope(m.rms(y) * m.get(p + f"attn_{name}_norm.weight", y.shape[1:], "norm")) for y, name in ((q, "q"), (kk, "k")))
        return m.lin(attend(q, kk.repeat(2, 1), v.repeat(2, 1), causal(len(h))), p + "attn_output", E)

    for i in range(L):
        p = f"blk.{i}."
        h = m.rms(x, p + "attn_norm.weight")
        x = x + m.rms(attention(h, p) if i == 1 else mixer(h, p), p + "post_attention_norm")
        g, u = np.split(m.lin(m.rms(x, p + "ffn_norm.weight"), p + "ffn_up", 2 * F), 2, -1)
        x = x + m.rms(m.lin(silu(g) * u, p + "ffn_down", E), p + "post_ffw_norm")
    return finish(m, x)


def glm5_next(m, tok, pool, o):
    ql, r, kd, vd, ni, di, kp = 24, 32, 20, 16, 8, 12, 4
    x = np.repeat(m.mat("token_embd", E, V)[tok][:, None], 4, 1)
    n, held = len(tok), {}

    def pooled(h, p, i):
        low = m.rms(m.lin(h, p + "attn_q_a", ql), p + "attn_q_a_norm.weight")
        q = m.lin(low, p + "attn_q_b", H * kd).reshape(n, H, kd)
        c = m.rms(m.lin(h, p + "attn_kv_a_mqa", r), p + "attn_kv_a_norm.weight")
        if i == 0:  # the later layer reuses the choice
            ik = f16(m.ln(m.lin(h, p + "indexer.attn_k", di), p + "indexer.k_norm"))
            ig = f16(m.lin(h, p + "indexer_compressor_gate", di))
            w = m.lin(h, p + "indexer.proj", ni) / np.sqrt(di * ni)
            iq = m.lin(low, p + "indexer.attn_q_b", ni * di).reshape(n, ni, di)
            ape, m_ = m.get(p + "indexer_compressor_ape.weight", (kp, di), "raw"), n // kp * kp
            g = softmax((ig[:m_].reshape(-1, kp, di) + ape).transpose(0, 2, 1)).transpose(0, 2, 1)
            pk = f16((g * ik[:m_].reshape(-1, kp, di)).sum(1))
            s = np.einsum("ti,tij->tj", w, np.maximum(np.einsum("tid,jd->tij", iq, pk), 0))
            held["mask"] = pool_mask(s, n, kp, 8 // kp, o["tail"])
        qq = np.einsum("hrk,thk->thr", m.get(p + "attn_k_b.weight", (H, r, kd)), q)
        s = np.einsum("thr,sr->hts", qq, c) / np.sqrt(kd) + held["mask"]
        with np.errstate(invalid="ignore"):
            prob = np.nan_to_num(softmax(np.where(np.isfinite(held["mask"]), s, -np.inf)))  # nothing chosen: 0
        y = np.einsum("hvr,thr->thv", m.get(p + "attn_v_b.weight", (H, vd, r)), np.einsum("hts,sr->thr", prob, c))
        return m.lin(y.reshape(n, -1), p + "attn_output", E)

    for i in range(L):
        p = f"blk.{i}."
        x = hc_branch(m, x, p, "attn", lambda u: kda(m, m.rms(u, p + "attn_norm.weight"), p, o["lower"], 1e-6) if i == 1
                      else pooled(m.rms(u, p + "attn_norm.weight"), p, i))

        def network(u):
            h = m.rms(u, p + "ffn_norm.weight")
            if i == 0:
                return ffn(m, h, p, clamp=0.4)
            return experts(m, h, p, dict(n=6, used=3, sigmoid=True, bias=True, norm=True, scale=2.5, clamp=0.5)) + ffn(m, h, p, "_shexp", clamp=0.4)

        x = hc_branch(m, x, p, "ffn", network)
    return finish(m, x.mean(1))


def qwen4exp(m, tok, pool, o):
    hc, lr, ni, di, c = 4, 8, 8, D, 4
    n, x = len(tok), np.repeat(m.mat("token_embd", E, V)[tok][:, None], hc, 1)

    def srms(x, name):
        return m.rms(x) * m.get(name + ".weight", (hc, E), "norm")

    def mix(x, name):
        xn = srms(x, name + "_norm")
        flat = xn.reshape(n, -1)
        gt = m.lin(silu(m.lin(flat, name + "_down", lr) / hc), name + "_up", hc * E).reshape(n, hc, E)
        return (xn * sigmoid(gt)).mean(1), flat

    def branch(x, name, fn):
        u, flat = mix(x, name)
        w = 2 * sigmoid(m.lin(flat, name + "_inject", hc) / hc)
        return x + w[:, :, None] * fn(u)[:, None]

    def mask(h, p):
        raw = f16(m.lin(h, p + "indexer.k_proj", di))[:n // c * c].reshape(-1, c, di).mean(1)
        pk = f16(imrope(m.rms(raw, p + "indexer.k_norm.weight")[:, None], o["sections"], np.arange(n // c) * c)[:, 0])
        iq = imrope(m.rms(m.lin(h, p + "indexer.q_proj", ni * di).reshape(n, ni, di), p + "indexer.q_norm.weight"), o["sections"])
        s = np.maximum(np.einsum("tid,jd->tij", iq, pk), 0).sum(1) / np.sqrt(di)
        return pool_mask(s, n, c, 8 // c, True)

    def ngrams(x, p):
        eos, mul, offs, rows = 44, [3, 1000003, 2**62 + 1], [0, 50, 110, 180], [50, 60, 70, 80]
        ids = np.zeros((n, 4), int)
        for t in range(n):
            ended, h = False, int(tok[t]) * mul[0]
            for k in (1, 2):
                past = int(tok[t - k]) if t >= k else eos
                ended |= past == eos
                h ^= (eos if ended else past) * mul[k] & (2**64 - 1)
                for q in (2 * k - 2, 2 * k - 1):
                    ids[t, q] = h % rows[q] + offs[q]
        e = m.get("per_layer_token_embd.weight", (260, E // 4))[ids].reshape(n, E)
        key = srms(m.lin(e, p + "ple_key", hc * E).reshape(n, hc, E), p + "ple_norm_key")
        t = (key * srms(x, p + "ple_norm_query")).sum(-1) / np.sqrt(E)
        v = sigmoid(np.sign(t) * np.sqrt(np.maximum(np.abs(t), 1e-6)))[:, :, None] * m.lin(e, p + "ple_value", E)[:, None]
        z = srms(v, p + "ple_norm_conv").reshape(n, -1)
        w, k, step = m.get(p + "ple_conv1d.weight", (hc * E, 4)), 4, 3
        zz = np.concatenate([np.zeros(((k - 1) * step, hc * E)), z])
        y = silu(sum(w[:, i] * zz[i * step:i * step + n] for i in range(k)))
        return x + v + y.reshape(n, hc, E)

    def network(u, p):
        y = experts(m, u, p, dict(n=6, used=3, norm=True))
        return y + sigmoid(u @ m.get(p + "ffn_gate_inp_shexp.weight", (E,)))[:, None] * ffn(m, u, p, "_shexp")

    for i in range(L):
        p = f"blk.{i}."
        if i == 2:
            x = ngrams(x, p)
        x = branch(x, p + "hc_attn", lambda u: gated_attention(m, u, p, o["sections"], mask(u, p)) if i == 1 else gated_delta(m, u, p, True))
        x = branch(x, p + "hc_ffn", lambda u: network(u, p))
    return finish(m, mix(x, "output_hc")[0], False)


RMS = {"attention.layer_norm_rms_epsilon": EPS}
MOE = {"expert_count": 6, "expert_used_count": 3}
DELTA = {**RMS, "ssm.conv_kernel": 4, "ssm.inner_size": 64, "ssm.state_size": 16, "ssm.time_step_rank": 4, "ssm.group_count": 2,
         "attention.head_count_kv": 2, "rope.dimension_sections": [3, 3, 2, 0]}
NEMOTRON = {**RMS, **MOE, "attention.head_count_kv": [0, 2, 0], "feed_forward_length": [0, 0, F], "ssm.conv_kernel": 4, "ssm.inner_size": 128,
            "ssm.state_size": 16, "ssm.time_step_rank": 8, "ssm.group_count": 2, "expert_feed_forward_length": 40,
            "expert_shared_feed_forward_length": 48, "expert_weights_norm": True, "expert_weights_scale": 2.5}
GLM = {**RMS, **MOE, "attention.head_count_kv": [1, 0, 1], "attention.q_lora_rank": 24, "attention.kv_lora_rank": 32, "attention.key_length": 32,
       "attention.value_length": 32, "attention.key_length_mla": 20, "attention.value_length_mla": 16, "rope.dimension_count": 0, "ssm.conv_kernel": 4,
       "kda.head_dim": D, "leading_dense_block_count": 1, "expert_feed_forward_length": F, "expert_shared_count": 1, "expert_weights_norm": True,
       "expert_weights_scale": 2.5, "swiglu_clamp_exp": 0.5, "swiglu_clamp_shexp": 0.4, "attention.indexer.head_count": 8,
       "attention.indexer.key_length": 12, "attention.indexer.top_k": 8, "attention.indexer.kpool": 4, "attention.indexer.types": [1, 1, 0],
       "hyper_connection.count": 4, "hyper_connection.sinkhorn_iterations": 3, "hyper_connection.epsilon": 1e-6}
KIMI = {**RMS, **MOE, "attention.head_count_kv": [0, 1, 0], "attention.kv_lora_rank": 32, "attention.key_length": 40, "attention.value_length": 32,
        "attention.key_length_mla": 20, "attention.value_length_mla": 16, "rope.dimension_count": 8, "ssm.conv_kernel": 4, "kda.head_dim": D,
        "leading_dense_block_count": 1, "expert_feed_forward_length": F, "expert_shared_count": 1, "expert_weights_norm": True,
        "expert_weights_scale": 2.5, "expert_gating_func": 2}
K3 = {**KIMI, "attention.q_lora_rank": 24, "expert_latent_length": 32, "activation.situ_beta": 4.0}
LING = {**KIMI, "kda.gate_lower_bound": -5.0, "kda.safe_gate": True, "swiglu_clamp_exp": 0.5, "swiglu_clamp_shexp": 0.4}
GRANITE = {**RMS, **MOE, "attention.head_count_kv": [0, 2, 0], "ssm.conv_kernel": 4, "ssm.inner_size": 128, "ssm.state_size": 16, "ssm.time_step_rank": 8,
           "ssm.group_count": 1, "expert_shared_feed_forward_length": 48, "logit_scale": 8.0, "residual_scale": 0.22, "embedding_scale": 12.0,
           "attention.scale": 0.1}
CASES = {
    "granitehybrid": ("granitehybrid", granitehybrid, {**GRANITE, "rope.scaling.finetuned": False}, dict(rope=False)),
    "granitehybrid-rope": ("granitehybrid", granitehybrid, GRANITE, dict(rope=True)),
    "plamo2": ("plamo2", plamo2, {**RMS, "attention.head_count": [0, H, 0], "attention.head_count_kv": [0, 2, 0], "attention.key_length": D,
                                  "attention.value_length": D, "ssm.conv_kernel": 4, "ssm.inner_size": 128, "ssm.state_size": 16,
                                  "ssm.time_step_rank": 8, "ssm.group_count": 0}, {}),
    "kimi-linear": ("kimi-linear", kimi_linear, KIMI, {}),
    "bailingmoe3": ("bailingmoe3", bailingmoe3, {**LING, "attention.q_lora_rank": 24}, dict(ql=24)),
    "bailingmoe3-direct-q": ("bailingmoe3", bailingmoe3, LING, dict(ql=0)),
    "kimi-k3": ("kimi-k3", kimi_k3, {**K3, "attn_res.block_size": 2, "activation.situ_linear_beta": 25.0, "kda.gate_lower_bound": -5.0},
                dict(block=2, lt=25.0, lower=-5.0)),
    "kimi-k3-each-layer": ("kimi-k3", kimi_k3, {**K3, "attn_res.block_size": 1, "activation.situ_linear_beta": 0.0}, dict(block=1, lt=0.0, lower=0)),
    "jamba-moe": ("jamba", jamba, {**RMS, **MOE, "attention.head_count_kv": [0, H, 0], "ssm.conv_kernel": 4, "ssm.inner_size": 2 * E, "ssm.state_size": 16,
                                   "ssm.time_step_rank": 6}, dict(state=16, rank=6)),
    "nemotron_h_moe": ("nemotron_h_moe", nemotron_h_moe, NEMOTRON, {}),
    "nemotron_h_moe-latent": ("nemotron_h_moe", nemotron_h_moe, {**NEMOTRON, "moe_latent_size": 32}, dict(latent=32)),
    "qwen35": ("qwen35", qwen35, {**DELTA, "attention.recurrent_layers": [1, 0, 1]}, dict(sections=[3, 3, 2, 0])),
    "lfm2": ("lfm2", lfm2, {**RMS, "attention.head_count_kv": [0, 0, 0], "shortconv.l_cache": 4}, dict(k=4)),
    "minimax-01": ("minimax-01", minimax_01, {**RMS, **MOE, "residual_scale": 1.5}, {}),
    "glm5-next": ("glm5-next", glm5_next, {**GLM, "kda.gate_lower_bound": -5.0}, dict(tail=True, lower=-5.0)),
    "glm5-next-no-tail": ("glm5-next", glm5_next, {**GLM, "attention.indexer.kpool_select_tail": False}, dict(tail=False, lower=0)),
    "qwen4exp": ("qwen4exp", qwen4exp, {
        **DELTA, **MOE, "attention.recurrent_layers": [1, 0, 1], "expert_feed_forward_length": F, "expert_shared_feed_forward_length": F,
        "hyper_connection.count": 4, "hyper_connection.low_rank": 8, "attention.indexer.head_count": 8, "attention.indexer.key_length": D,
        "attention.indexer.top_k": 8, "attention.compress_ratios": [0, 4, 0], "ple.layers": [2], "ple.ngram_size": 3, "ple.heads_per_ngram": 2,
        "ple.conv_kernel": 4, "ple.eos_token_id": 44, "embedding_length_per_layer_input": E // 4, "ple.layer_multipliers": [3, 1000003, 2**62 + 1],
        "ple.head_offsets": [0, 50, 110, 180], "ple.head_vocab_sizes": [50, 60, 70, 80]}, dict(sections=[3, 3, 2, 0])),
}
