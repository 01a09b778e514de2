"""Compares architectures that have no golden logits with plain numpy: writes tiny models, runs them through llama.h, computes the same afresh.

usage: numpy_ref.py FOLDER_OF_LIBLLAMA [NAME ...]     needs numpy and gguf. The last line is "N passed, N failed".
"""
import ctypes as C
import os
import sys
import tempfile

import gguf
import numpy as np

f32 = np.float32
E, H, F, L, V, T = 64, 4, 96, 3, 80, 24
D = E // H
NONE, MEAN, CLS, LAST, RANK = 0, 1, 2, 3, 4


# ---- the library ----------------------------------------------------------------------------------------------------
class ModelParams(C.Structure):
    _fields_ = [("devices", C.c_void_p), ("overrides", C.c_void_p)] + [(n, C.c_int) for n in ("n_gpu_layers", "split", "load", "lazy", "main_gpu")] + [
        ("tensor_split", C.c_void_p), ("progress", C.c_void_p), ("progress_ud", C.c_void_p), ("kv", C.c_void_p)] + [
        (n, C.c_bool) for n in ("vocab_only", "check", "extra", "no_host", "no_alloc", "mtp")]


class ContextParams(C.Structure):
    _fields_ = [(n, C.c_uint32) for n in ("n_ctx", "n_batch", "n_ubatch", "n_seq_max", "n_rs_seq", "n_out", "n_out_seq")] + [
        (n, C.c_int) for n in ("n_threads", "n_threads_batch", "ctx_type", "rope_type", "pooling_type", "attention_type", "flash")] + [
        (n, C.c_float) for n in ("base", "scale", "ext", "attn", "fast", "slow")] + [("orig", C.c_uint32), ("defrag", C.c_float),
        ("cb", C.c_void_p), ("cb_ud", C.c_void_p), ("type_k", C.c_int), ("type_v", C.c_int), ("abort", C.c_void_p), ("abort_ud", C.c_void_p)] + [
        (n, C.c_bool) for n in ("embeddings", "offload", "no_perf", "op_offload", "swa_full", "kv_unified")] + [
        ("samplers", C.c_void_p), ("n_samplers", C.c_size_t), ("other", C.c_void_p)]


class Batch(C.Structure):
    _fields_ = [("n_tokens", C.c_int32), ("token", C.POINTER(C.c_int32)), ("embd", C.c_void_p), ("pos", C.POINTER(C.c_int32)),
                ("n_seq_id", C.POINTER(C.c_int32)), ("seq_id", C.POINTER(C.POINTER(C.c_int32))), ("logits", C.POINTER(C.c_int8))]


def open_library(folder):
    lib = C.CDLL(os.path.join(folder, "libllama.so"))
    for name, res, args in (
        ("llama_model_default_params", ModelParams, []), ("llama_context_default_params", ContextParams, []),
        ("llama_model_load_from_file", C.c_void_p, [C.c_char_p, ModelParams]), ("llama_init_from_model", C.c_void_p, [C.c_void_p, ContextParams]),
        ("llama_batch_init", Batch, [C.c_int32] * 3), ("llama_batch_free", None, [Batch]), ("llama_decode", C.c_int, [C.c_void_p, Batch]),
        ("llama_encode", C.c_int, [C.c_void_p, Batch]), ("llama_get_logits_ith", C.POINTER(C.c_float), [C.c_void_p, C.c_int32]),
        ("llama_get_embeddings_ith", C.POINTER(C.c_float), [C.c_void_p, C.c_int32]),
        ("llama_get_embeddings_seq", C.POINTER(C.c_float), [C.c_void_p, C.c_int32]),
        ("llama_free", None, [C.c_void_p]), ("llama_model_free", None, [C.c_void_p]),
    ):
        fn = getattr(lib, name)
        fn.restype, fn.argtypes = res, args
    return lib


class Runner:
    """One model file in one context."""

    def __init__(self, lib, path, pooling, encoder):
        self.lib, self.encoder = lib, encoder
        self.model = lib.llama_model_load_from_file(path.encode(), lib.llama_model_default_params())
        if not self.model:
            raise RuntimeError("the model can't be loaded")
        p = lib.llama_context_default_params()
        p.n_ctx, p.n_batch, p.n_ubatch, p.n_seq_max, p.n_threads, p.n_threads_batch = 512, 512, 512, 2, 2, 2
        p.pooling_type, p.embeddings = pooling, encoder
        p.type_k = p.type_v = 0  # F32 caches, so that nothing hides behind rounding
        self.ctx = lib.llama_init_from_model(self.model, p)
        if not self.ctx:
            raise RuntimeError("the context can't be made")

    def feed(self, rows, width, pooled=False, wanted=None, before=None):
        """rows: (token, position, sequence); results of all of them, of those wanted, or of the sequences. before: rows for an encoder."""
        if before:
            self.call(self.lib.llama_encode, before, range(len(before)))
        self.call(self.lib.llama_encode if self.encoder else self.lib.llama_decode, rows, range(len(rows)) if wanted is None else wanted)
        if pooled:
            get, ids = self.lib.llama_get_embeddings_seq, sorted({s for _, _, s in rows})
        else:
            get, ids = self.lib.llama_get_embeddings_ith if self.encoder else self.lib.llama_get_logits_ith, wanted or range(len(rows))
        return np.array([np.ctypeslib.as_array(get(self.ctx, i), (width,)).copy() for i in ids])

    def call(self, fn, rows, wanted):
        b = self.lib.llama_batch_init(len(rows), 0, 1)
        b.n_tokens = len(rows)
        for i, (tok, pos, seq) in enumerate(rows):
            b.token[i], b.pos[i], b.n_seq_id[i], b.logits[i] = tok, pos, 1, i in wanted
            b.seq_id[i][0] = seq
        r = fn(self.ctx, b)
        self.lib.llama_batch_free(b)
        if r:
            raise RuntimeError(f"the batch gives {r}")

    def close(self):
        self.lib.llama_free(self.ctx)
        self.lib.llama_model_free(self.model)


# ---- tiny models ----------------------------------------------------------------------------------------------------
class Tiny:
    """Keys and weights; a weight is made when the computation first asks for it, so the file holds exactly what it needs."""

    def __init__(self, arch, seed, **keys):
        self.arch, self.rng, self.w, self.keys = arch, np.random.default_rng(seed), {}, keys

    def get(self, name, shape, kind="matrix"):
        if name not in self.w:
            x = self.rng.uniform(-1, 1, shape)
            if kind == "norm":
                x = 1 + 0.2 * x
            elif kind == "bias":
                x = 0.2 * x
            elif kind == "matrix":
                x = x * np.sqrt(3 / shape[-1])
            self.w[name] = x.astype(f32)
        return self.w[name].astype(np.float64)

    def mat(self, name, n_in, n_out):
        return self.get(name + ".weight", (n_out, n_in))

    def lin(self, x, name, n_out, bias=False):
        y = x @ self.mat(name, x.shape[-1], n_out).T
        return y + self.get(name + ".bias", (n_out,), "bias") if bias else y

    def ln(self, x, name, bias=True, eps=1e-5):
        y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * self.get(name + ".weight", (x.shape[-1],), "norm")
        return y + self.get(name + ".bias", (x.shape[-1],), "bias") if bias else y

    def write(self, path):
        g = gguf.GGUFWriter(path, self.arch)
        base = {"context_length": 256, "embedding_length": E, "block_count": L, "feed_forward_length": F, "attention.head_count": H,
                "attention.layer_norm_epsilon": 1e-5, "vocab_size": V}
        for k, v in {**base, **self.keys}.items():
            k = k if k.startswith("tokenizer.") else f"{self.arch}.{k}"
            if isinstance(v, list) and isinstance(v[0], str):
                g.add_array(k, v)
            elif isinstance(v, list):
                big = gguf.GGUFValueType.INT64 if max(v) > 2**31 - 1 else gguf.GGUFValueType.INT32
                g.add_key_value(k, v, gguf.GGUFValueType.ARRAY, big)
            elif isinstance(v, bool):
                g.add_bool(k, v)
            elif isinstance(v, str):
                g.add_string(k, v)
            elif isinstance(v, float):
                g.add_float32(k, v)
            else:
                g.add_uint32(k, v)
        g.add_string("tokenizer.ggml.model", "no_vocab")
        for name, x in self.w.items():
            g.add_tensor(name, x)
        g.write_header_to_file()
        g.write_kv_data_to_file()
        g.write_tensors_to_file()
        g.close()


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.79788456080286536 * (x + 0.044715 * x**3)))


def gelu_erf(x):
    from math import erf
    return 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2)))


def rope(x, base=10000.0):
    """Heads [T, H, D], pairs (j, j + D/2)."""
    n = x.shape[-1] // 2
    t = np.arange(len(x))[:, None] * base ** (-np.arange(n) / n)
    c, s = np.cos(t)[:, None], np.sin(t)[:, None]
    a, b = x[..., :n], x[..., n:]
    return np.concatenate([a * c - b * s, a * s + b * c], -1)


def attend(q, k, v, bias=0.0):
    s = np.einsum("thd,shd->hts", q, k) / np.sqrt(q.shape[-1]) + bias
    return np.einsum("hts,shd->thd", softmax(s), v).reshape(len(q), -1)


# ---- encoders -------------------------------------------------------------------------------------------------------
def bert(m, tok, pool, o):
    x = m.mat("token_embd", E, V)[tok]
    if o.get("types"):
        x = x + m.mat("token_types", E, 2)[0]
    if o.get("positions"):
        x = x + m.mat("position_embd", E, 256)[np.arange(len(tok))]
    x = m.ln(x, "token_embd_norm")
    for i in range(L):
        p = f"blk.{i}."
        if o.get("fused"):
            q, k, v = np.split(m.lin(x, p + "attn_qkv", 3 * E, True), 3, -1)
        else:
            q, k, v = (m.lin(x, p + "attn_" + n, E, True) for n in "qkv")
        if o.get("qk_norm"):
            q, k = m.ln(q, p + "attn_q_norm"), m.ln(k, p + "attn_k_norm")
        q, k, v = (a.reshape(-1, H, D) for a in (q, k, v))
        if o.get("rope"):
            q, k = rope(q, o["rope"]), rope(k, o["rope"])
        at, bias = np.arange(len(x)), 0.0
        if o.get("alibi"):
            bias = -np.abs(at[:, None] - at)[None] * (2.0 ** (-8 * (np.arange(H) + 1) / H))[:, None, None]
        h = m.ln(x + m.lin(attend(q, k, v, bias), p + "attn_output", E, True), p + "attn_output_norm")
        if o.get("norm_2"):
            h = m.ln(h + x, p + "attn_norm_2")
        x = m.ln(h + network(m, h, p, i, o), p + "layer_output_norm")
    if pool != RANK:
        return x
    z = x[0]
    if o.get("cls"):
        z = np.tanh(m.lin(z, "cls", o["cls"], True))
    return m.lin(z, "cls.output", 1, True) if o.get("cls_out") else z


def network(m, h, p, i, o):
    if o.get("moe") and i % o["moe"] == 1:
        prob = softmax(m.lin(h, p + "ffn_gate_inp", 4))
        up, down = m.get(p + "ffn_up_exps.weight", (4, F, E)), m.get(p + "ffn_down_exps.weight", (4, E, F))
        y = np.zeros_like(h)
        for t in range(len(h)):
            for e in np.argsort(-prob[t])[:2]:
                y[t] += prob[t, e] * (down[e] @ gelu(up[e] @ h[t]))
        return y
    b = o.get("ffn_bias", True)
    if o.get("gate"):
        act = silu if o["gate"] == "silu" else gelu
        return m.lin(act(m.lin(h, p + "ffn_gate", F)) * m.lin(h, p + "ffn_up", F, b), p + "ffn_down", E, b)
    if o.get("ffn_fused"):
        g, u = np.split(m.lin(h, p + "ffn_up", 2 * F, b), 2, -1)
        return m.lin(gelu(g) * u, p + "ffn_down", E, b)
    return m.lin(gelu(m.lin(h, p + "ffn_up", F, b)), p + "ffn_down", E, b)


def modern_bert(m, tok, pool, o):
    act = silu if o.get("act") == "silu" else gelu
    x = m.ln(m.mat("token_embd", E, V)[tok], "token_embd_norm", False)
    n_head_layers = o.get("decision", 0)
    at = np.arange(len(tok))
    for i in range(L - n_head_layers):
        p = f"blk.{i}."
        h = x if i == 0 else m.ln(x, p + "attn_norm", False)
        q, k, v = (a.reshape(-1, H, D) for a in np.split(m.lin(h, p + "attn_qkv", 3 * E), 3, -1))
        windowed = o.get("window") and i % 3 != 0
        base = 10000.0 if windowed else 160000.0
        bias = np.where(np.abs(at[:, None] - at) > o["window"] // 2, -np.inf, 0.0)[None] if windowed else 0.0
        x = x + m.lin(attend(rope(q, base), rope(k, base), v, bias), p + "attn_output", E)
        g, u = np.split(m.lin(m.ln(x, p + "ffn_norm", False), p + "ffn_up", 2 * F), 2, -1)
        x = x + m.lin(act(g) * u, p + "ffn_down", E)
    x = m.ln(x, "output_norm", False)
    if n_head_layers:
        return decide(m, x, n_head_layers)
    if pool != RANK:
        return x
    z = gelu(m.lin(x.mean(0), "cls", E))
    return m.lin(m.ln(z, "cls.norm", False), "cls.output", 1, True)


def decide(m, x, n):
    """Three scores per token: a few more layers, once per kind of question."""
    out = []
    for kind in range(3):
        y = x + m.mat("token_types", E, 3)[kind]
        for i in range(L - n, L):
            p = f"blk.{i}."
            q, k, v = (a.reshape(-1, H, D) for a in np.split(m.lin(m.ln(y, p + "attn_norm"), p + "attn_qkv", 3 * E, True), 3, -1))
            y = y + m.lin(attend(q, k, v), p + "attn_output", E, True)
            y = y + m.lin(np.maximum(m.lin(m.ln(y, p + "ffn_norm"), p + "ffn_up", F, True), 0), p + "ffn_down", E, True)
        y = gelu_erf(m.lin(m.ln(y, "cls.norm"), "cls", E, True))
        out.append(m.lin(y, "cls.output", 1, True)[:, 0])
    return np.stack(out, -1)


# ---- RWKV -----------------------------------------------------------------------------------------------------------
def before(h):
    return np.concatenate([np.zeros_like(h[:1]), h[:-1]])


def head_norm(o, m, p):
    o = (o - o.mean(-1, keepdims=True)) / np.sqrt(o.var(-1, keepdims=True) + 64e-5)
    return o.reshape(len(o), E) * m.get(p + "time_mix_ln.weight", (E,), "norm") + m.get(p + "time_mix_ln.bias", (E,), "bias")


def rwkv6(m, tok, pool, o):
    s, a, d = o["size"], o.get("a", 8), o.get("d", 12)
    n_head = E // s
    x = m.ln(m.mat("token_embd", E, V)[tok], "token_embd_norm")
    for i in range(L):
        p = f"blk.{i}."
        h = m.ln(x, p + "attn_norm")
        dx = before(h) - h
        u = np.tanh(m.lin(h + dx * m.get(p + "time_mix_lerp_x.weight", (E,)), p + "time_mix_w1", 5 * a))
        w2 = m.get(p + "time_mix_w2.weight", (5, E, a))
        if o.get("split"):
            lerp = np.stack([m.get(p + f"time_mix_lerp_{n}.weight", (1, 1, E)) for n in "wkvrg"]).reshape(5, E)
        else:
            lerp = m.get(p + "time_mix_lerp_fused.weight", (5, 1, 1, E)).reshape(5, E)
        xs = [h + dx * (lerp[c] + u[:, c * a:(c + 1) * a] @ w2[c].T) for c in range(5)]
        w = m.lin(np.tanh(m.lin(xs[0], p + "time_mix_decay_w1", d)), p + "time_mix_decay_w2", E)
        w = np.exp(-np.exp(m.get(p + "time_mix_decay.weight", (E,), "bias") + w)).reshape(-1, n_head, s)
        k, v, r, g = (m.lin(xs[c], p + "time_mix_" + n, E) for c, n in ((1, "key"), (2, "value"), (3, "receptance"), (4, "gate")))
        k, v, r = (y.reshape(-1, n_head, s) for y in (k, v, r))
        first, state, out = m.get(p + "time_mix_first.weight", (n_head, s)), np.zeros((n_head, s, s)), []
        for t in range(len(x)):
            kv = k[t][:, :, None] * v[t][:, None]
            out.append(np.einsum("hk,hkv->hv", r[t], state + first[:, :, None] * kv))
            state = w[t][:, :, None] * state + kv
        x = x + m.lin(head_norm(np.array(out), m, p) * silu(g), p + "time_mix_output", E)
        h = m.ln(x, p + "attn_norm_2")
        dx = before(h) - h
        k = np.maximum(m.lin(h + dx * m.get(p + "channel_mix_lerp_k.weight", (E,)), p + "channel_mix_key", F), 0) ** 2
        r = sigmoid(m.lin(h + dx * m.get(p + "channel_mix_lerp_r.weight", (E,)), p + "channel_mix_receptance", E))
        x = x + r * m.lin(k, p + "channel_mix_value", E)
        if o.get("rescale") and (i + 1) % o["rescale"] == 0:
            x = x * 0.5
    return m.lin(m.ln(x, "output_norm"), "output", V)


def rwkv7(m, tok, pool, o):
    s, dr, ir, vr, gr = o["size"], 8, 6, 4, 10
    n_head = E // s
    x, v1 = m.ln(m.mat("token_embd", E, V)[tok], "token_embd_norm"), None
    for i in range(L):
        p = f"blk.{i}."
        h = m.ln(x, p + "attn_norm")
        dx = before(h) - h
        lerp = m.get(p + "time_mix_lerp_fused.weight", (6, 1, 1, E)).reshape(6, E)
        xr, xw, xk, xv, xa, xg = (h + dx * c for c in lerp)
        vec = lambda n, kind="bias": m.get(p + f"time_mix_{n}.weight", (E,), kind)
        w = np.exp(-0.606531 * sigmoid(vec("w0") + m.lin(np.tanh(m.lin(xw, p + "time_mix_w1", dr)), p + "time_mix_w2", E)))
        r, k, v = (m.lin(y, p + "time_mix_" + n, E) for y, n in ((xr, "receptance"), (xk, "key"), (xv, "value")))
        mixed = sigmoid(vec("v0") + m.lin(m.lin(xv, p + "time_mix_v1", vr if i else ir), p + "time_mix_v2", E))
        if i == 0:
            v1 = v
        else:
            v = v + (v1 - v) * mixed
        g = m.lin(sigmoid(m.lin(xg, p + "time_mix_g1", gr)), p + "time_mix_g2", E)
        a = sigmoid(vec("a0") + m.lin(m.lin(xa, p + "time_mix_a1", ir), p + "time_mix_a2", E))
        kk = (k * vec("k_k", "norm")).reshape(-1, n_head, s)
        kk = kk / np.sqrt((kk * kk).sum(-1, keepdims=True) + 1e-12)
        k = k * (1 + (a - 1) * vec("k_a", "norm"))
        r, w, k, v, a = (y.reshape(-1, n_head, s) for y in (r, w, k, v, a))
        state, out = np.zeros((n_head, s, s)), []
        for t in range(len(x)):
            sa = np.einsum("hvk,hk->hv", state, -kk[t])
            state = state * w[t][:, None] + sa[:, :, None] * (kk[t] * a[t])[:, None] + v[t][:, :, None] * k[t][:, None]
            out.append(np.einsum("hvk,hk->hv", state, r[t]))
        own = (k * r * vec("r_k").reshape(n_head, s)).sum(-1, keepdims=True) * v
        x = x + m.lin((head_norm(np.array(out), m, p) + own.reshape(-1, E)) * g, p + "time_mix_output", E)
        h = m.ln(x, p + "attn_norm_2")
        k = np.maximum(m.lin(h + (before(h) - h) * m.get(p + "channel_mix_lerp_k.weight", (E,)), p + "channel_mix_key", F), 0) ** 2
        x = x + m.lin(k, p + "channel_mix_value", E)
    return m.lin(m.ln(x, "output_norm"), "output", V)


# ---- cases ----------------------------------------------------------------------------------------------------------
TYPES = {"tokenizer.ggml.token_type_count": 2}
BI = {"attention.causal": False}
CASES = {
    "bert": ("bert", bert, {**TYPES, **BI}, dict(types=True, positions=True), NONE),
    "bert-cls": ("bert", bert, {**TYPES, **BI}, dict(types=True, positions=True, fused=True), CLS),
    "bert-rank": ("bert", bert, {**TYPES, **BI}, dict(types=True, positions=True, cls=E, cls_out=True), RANK),
    "nomic-bert": ("nomic-bert", bert, {**TYPES, **BI, "rope.freq_base": 1000.0}, dict(types=True, fused=True, rope=1000.0, gate="silu", ffn_bias=False), MEAN),
    "nomic-bert-moe": ("nomic-bert-moe", bert, {**TYPES, **BI, "expert_count": 4, "expert_used_count": 2, "moe_every_n_layers": 2},
                       dict(types=True, rope=10000.0, moe=2), NONE),
    "jina-bert-v2": ("jina-bert-v2", bert, {**TYPES, **BI}, dict(types=True, alibi=True, gate="gelu", qk_norm=True, norm_2=True), NONE),
    "jina-bert-v2-fused": ("jina-bert-v2", bert, {**TYPES, **BI}, dict(types=True, alibi=True, ffn_fused=True), LAST),
    "jina-bert-v2-rank": ("jina-bert-v2", bert, {**TYPES, **BI}, dict(types=True, alibi=True, cls=1), RANK),
    "jina-bert-v3": ("jina-bert-v3", bert, {**BI, "rope.freq_base": 20000.0}, dict(types=True, rope=20000.0), NONE),
    "modern-bert": ("modern-bert", modern_bert, {**BI, "rope.freq_base": 160000.0, "attention.sliding_window": 10}, dict(window=10), NONE),
    "modern-bert-rank": ("modern-bert", modern_bert, {**BI, "rope.freq_base": 160000.0, "hidden_activation": "silu"}, dict(act="silu"), RANK),
    "modern-bert-decision": ("modern-bert", modern_bert, {**BI, "rope.freq_base": 160000.0, "attention.sliding_window": 10, "decision.block_count": 1},
                             dict(window=10, decision=1), NONE),
    "rwkv6": ("rwkv6", rwkv6, {"wkv.head_size": 16, "time_mix_extra_dim": 8, "time_decay_extra_dim": 12}, dict(size=16), None),
    "rwkv6-split": ("rwkv6", rwkv6, {"wkv.head_size": 64, "time_mix_extra_dim": 8, "time_decay_extra_dim": 12, "rescale_every_n_layers": 2},
                    dict(size=64, split=True, rescale=2), None),
    "rwkv6-ranks": ("rwkv6", rwkv6, {"wkv.head_size": 16, "time_mix_extra_dim": 32, "time_decay_extra_dim": 64}, dict(size=16, a=32, d=64), None),
    "rwkv7": ("rwkv7", rwkv7, {"wkv.head_size": 16, "attention.decay_lora_rank": 8, "attention.iclr_lora_rank": 6,
                               "attention.value_residual_mix_lora_rank": 4, "attention.gate_lora_rank": 10}, dict(size=16), None),
}


def nmse(got, want):
    return float(((got - want) ** 2).sum() / (want**2).sum()) if np.isfinite(got).all() else np.inf


def pool_rows(x, pool):
    return {MEAN: x.mean(0), CLS: x[0], LAST: x[-1]}.get(pool, x)


def write_case(name, path):
    """Writes the model; gives two texts, what they should give, and the kind of pooling."""
    arch, fn, keys, opts, *rest = CASES[name]
    pool = rest[0] if rest else None
    m = (Tiny if rest else numpy_hybrid.Hybrid)(arch, 7, **keys)
    n = opts.get("tokens", T)
    v = opts.get("vocab", V)
    texts = [[(7 + 37 * i * (v // V)) % v for i in range(n)], [(5 + 11 * i) % v for i in range(n - 7)]]
    want = [fn(m, np.array(t), pool, opts) for t in texts]
    if pool not in (None, NONE, RANK):
        want = [opts.get("pooled", lambda _, x: x)(m, pool_rows(w, pool)) for w in want]
    m.write(path)
    return texts, [np.atleast_2d(w) for w in want], pool


def run(lib, name, tmp):
    path = os.path.join(tmp, "m.gguf")
    texts, want, pool = write_case(name, path)
    encoder = pool is not None
    width = want[0].shape[-1]
    worst = 0.0
    rows = [[(t, i, s) for i, t in enumerate(text)] for s, text in enumerate(texts)]

    def with_runner(feeds, wanted=None):
        r = Runner(lib, path, pool if encoder else NONE, encoder)
        r.encoder &= not CASES[name][3].get("decodes")  # llama_encode looks both ways
        try:
            texts = [row for f in feeds for row in f] if CASES[name][3].get("cross") else None
            return np.concatenate([r.feed(f, width, bool(pool), wanted, None if i else texts) for i, f in enumerate(feeds)])
        finally:
            r.close()

    # both texts in one batch, then the first alone; recurrences also by halves and single tokens
    worst = max(worst, nmse(with_runner([rows[0] + rows[1]]), np.concatenate(want)))
    worst = max(worst, nmse(with_runner([rows[0]]), want[0]))
    if not encoder:
        some = [3, len(rows[0]) - 1]  # the last layer leaves out what nobody wants
        worst = max(worst, nmse(with_runner([rows[0]], some), want[0][some]))
        worst = max(worst, nmse(with_runner([rows[0][:9]] + [[r] for r in rows[0][9:]]), want[0]))
    return worst


def load_cases():
    """The other files' cases; they import this one."""
    global numpy_hybrid
    import numpy_families
    import numpy_gemma
    import numpy_hybrid
    import numpy_sparse
    import numpy_variants

    for module in (numpy_hybrid, numpy_gemma, numpy_sparse, numpy_variants, numpy_families):
        CASES.update(module.CASES)


def report(names, check):
    """A line for each name and their count; ends the program. check(name, folder): what is wrong, or None; folder is its own."""
    failed = 0
    for name in names:
        with tempfile.TemporaryDirectory() as tmp:
            try:
                why = check(name, tmp)
            except RuntimeError as err:
                why = str(err)
        failed += why is not None
        print(f"{'FAIL' if why else 'ok  '} {name:24} {why or ''}", flush=True)
    print(f"{len(names) - failed} passed, {failed} failed")
    sys.exit(failed != 0)


def main():
    import numpy_nextn

    lib = open_library(sys.argv[1])
    names = sys.argv[2:] or [*CASES, *numpy_nextn.CASES]
    failed = 0
    with tempfile.TemporaryDirectory() as tmp:
        for name in names:
            try:
                e, why = (numpy_nextn.run if name in numpy_nextn.CASES else run)(lib, name, tmp), ""
            except RuntimeError as err:
                e, why = np.inf, str(err)
            ok = e <= 1e-7
            failed += not ok
            print(f"{'ok  ' if ok else 'FAIL'} {name:24} {e:.2e} {why}", flush=True)
    print(f"{len(names) - failed} passed, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    sys.modules["numpy_ref"] = sys.modules["__main__"]  # which the others import from
    load_cases()
    main()
