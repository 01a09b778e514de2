"""Recurrent and hybrid architectures of numpy_ref.py: what the golden files don't reach (sparse choices, more heads than one, latent experts)."""
import numpy as np

from numpy_ref import D, E, F, H, L, V, Tiny, attend, sigmoid, silu, softmax

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
            y[t] += wi * (down[e] @ (relu2(u) if gate is None else swiglu(gate[e] @ h[t], u, o.get("clamp", 0.0))))
    return y


def ffn(m, h, p, suffix="", width=F, clamp=0.0):
    g, u = m.lin(h, p + "ffn_gate" + suffix, width), m.lin(h, p + "ffn_up" + suffix, width)
    return m.lin(swiglu(g, u, clamp), p + "ffn_down" + suffix, E)


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
    y = (y / np.sqrt((y * y).mean(-1, keepdims=True) + EPS) * m.get(p + "ssm_norm.weight", (g, n_in // g), "norm")).reshape(-1, n_in)
    return m.lin(y, p + "ssm_out", E)


def mamba1(m, h, p, o):
    n_in, n, r = 2 * E, o["state"], o["rank"]
    x, z = np.split(m.lin(h, p + "ssm_in", 2 * n_in), 2, -1)
    x = silu(conv(m, p + "ssm_conv1d", x, 4, True))
    dt, b, c = np.split(m.lin(x, p + "ssm_x", r + 2 * n), [r, r + n], -1)
    dt, b, c = (m.rms(y, p + f"ssm_{k}_norm.weight") for y, k in ((dt, "dt"), (b, "b"), (c, "c")))
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


def kda(m, h, p, lower):
    d = D
    q, k, v = (silu(conv(m, p + "ssm_conv1d_" + n, m.lin(h, p + "attn_" + n, E), 4)).reshape(-1, H, d) for n in "qkv")
    z = (m.lin(m.lin(h, p + "ssm_f_a", d), p + "ssm_f_b", E) + m.get(p + "ssm_dt.bias", (E,), "bias")).reshape(-1, H, d)
    a = negative(m, p + "ssm_a", (H,))[:, None]
    gl = lower * sigmoid(-a * z) if lower else a * softplus(z)
    y = m.rms(delta(l2(q, 1e-6), l2(k, 1e-6), v, gl, sigmoid(m.lin(h, p + "ssm_beta", H))), p + "ssm_norm.weight")
    gate = m.lin(m.lin(h, p + "ssm_g_a", d), p + "ssm_g_b", E)
    return m.lin(y.reshape(-1, E) * sigmoid(gate), p + "attn_output", E)


def glm5_next(m, tok, pool, o):
    ql, r, kd, vd, ni, di, kp = 24, 32, 20, 16, 8, 12, 4
    x = np.repeat(m.mat("token_embd", E, V)[tok][:, None], 4, 1)
    n, held = len(tok), {}

    def mla(h, p, i):
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
        x = hc_branch(m, x, p, "attn", lambda u: kda(m, m.rms(u, p + "attn_norm.weight"), p, o["lower"]) if i == 1
                      else mla(m.rms(u, p + "attn_norm.weight"), p, i))

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
CASES = {
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
