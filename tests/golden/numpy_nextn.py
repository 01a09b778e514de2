"""Draft heads (nextn layers) against plain numpy: the models of numpy_families.py with one or two layers more, run through a context of type MTP.

A case is a model of the others plus: heads, own (the head's own embedding, norm and output instead of the model's). What is compared: the model's own logits
with and without load_mtp, each head's logits and states, in whole texts, pieces, single tokens and two sequences, and the second head behind the first.
"""
import ctypes as C
import os

import numpy as np

import numpy_hybrid
from numpy_dense import layer, norm, transformer
from numpy_families import AFTER_LEAD, FX, HEADS, LEAD, PICK, SCALED, WIN, mla, pattern
from numpy_hybrid import DELTA, MOE, causal, ffn, gated_attention
from numpy_ref import E, L, V, Batch, nmse
from numpy_variants import LLAMA, NEOX, NEXT, case, rope

EPS = 1e-5


def with_heads(n, one, own=True):
    """The case of a model whose file has n layers more than it runs."""
    arch, fn, keys, o, *rest = one
    run = o.get("layers", L) - n if "layers" in o else L
    keys = {**keys, "block_count": run + n, "nextn_predict_layers": n}
    return arch, fn, keys, {**o, "layers": run, "heads": n, "own": own}


# ---- the computation -------------------------------------------------------------------------------------------------
def head(m, tok, state, k, o):
    """Logits and states of head k for tokens that follow the states."""
    i = o["layers"] + k
    p, kind = f"blk.{i}.", o.get("norm", "rms")
    e = m.mat(p + "nextn.embed_tokens" if o["own"] else "token_embd", E, V)[tok] * o.get("embd_scale", 1.0)
    both = np.concatenate([norm(m, e, kind, p + "nextn.enorm"), norm(m, state, kind, p + "nextn.hnorm")], -1)
    x = m.lin(both, p + "nextn.eh_proj", E)
    x = o.get("draft_layer", layer)(m, x, i, o)
    x = norm(m, x, kind, p + "nextn.shared_head_norm" if o["own"] else "output_norm")
    out = p + "nextn.shared_head_head" if o["own"] else "token_embd" if o.get("tied") else "output"
    return m.lin(x, out, V), x


def qwen35_layer(m, x, i, o):
    p = f"blk.{i}."
    x = x + gated_attention(m, m.rms(x, p + "attn_norm.weight"), p, o["sections"], causal(len(x)))
    return x + ffn(m, m.rms(x, p + "post_attention_norm.weight"), p)


def qwen35(m, tok, pool, o):
    return numpy_hybrid.qwen35(m, tok, pool, o)


# ---- the library -----------------------------------------------------------------------------------------------------
class Draft:
    def __init__(self, lib, path, heads):
        self.lib = lib
        p = lib.llama_model_default_params()
        p.mtp = True
        self.model = lib.llama_model_load_from_file(path.encode(), p)
        if not self.model:
            raise RuntimeError("the model can't be loaded with its draft head")
        self.ctx = []
        for k in range(heads + 1):  # the model's own, then one for each head
            c = lib.llama_context_default_params()
            c.n_ctx, c.n_batch, c.n_ubatch, c.n_seq_max, c.n_threads, c.n_threads_batch = 512, 512, 512, 2, 2, 2
            c.type_k = c.type_v = 0
            c.embeddings, c.swa_full = True, False
            if k:
                c.ctx_type, c.other = 1, self.ctx[-1]
            ctx = lib.llama_init_from_model(self.model, c)
            if not ctx:
                raise RuntimeError(f"the context of head {k - 1} can't be made")
            self.ctx.append(ctx)

    def feed(self, k, rows, states=None):
        """rows: (token, position, sequence). Logits and states of all of them."""
        n = len(rows)
        b = Batch(n, (C.c_int32 * n)(*[r[0] for r in rows]), None, (C.c_int32 * n)(*[r[1] for r in rows]), (C.c_int32 * n)(*[1] * n),
                  (C.POINTER(C.c_int32) * n)(*[C.cast((C.c_int32 * 1)(r[2]), C.POINTER(C.c_int32)) for r in rows]), (C.c_int8 * n)(*[1] * n))
        if states is not None:
            flat = np.ascontiguousarray(states, np.float32)
            b.embd = flat.ctypes.data
        if self.lib.llama_decode(self.ctx[k], b):
            raise RuntimeError(f"the batch for head {k - 1} is refused")
        get = lambda f, w: np.array([np.ctypeslib.as_array(f(self.ctx[k], i), (w,)).copy() for i in range(n)])
        return get(self.lib.llama_get_logits_ith, V), get(self.lib.llama_get_embeddings_ith, E)

    def close(self):
        for c in self.ctx:
            self.lib.llama_free(c)
        self.lib.llama_model_free(self.model)


def run(lib, name, tmp):
    arch, fn, keys, o = CASES[name]
    path = os.path.join(tmp, "m.gguf")
    m = numpy_hybrid.Hybrid(arch, 7, **keys)
    text = np.array([(7 + 37 * i) % V for i in range(24)])
    other = np.array([(5 + 11 * i) % V for i in range(17)])
    want = fn(m, text, None, o)
    states = [np.random.default_rng(k).standard_normal((len(t), E)) for k, t in enumerate((text, other))]
    first = [head(m, t, s, 0, o) for t, s in zip((text, other), states)]
    chain = [head(m, text, first[0][1], k, o) for k in range(1, o["heads"])]  # from the state that the head before it gives
    m.write(path)
    rows = [[(int(t), i, s) for i, t in enumerate(ts)] for s, ts in enumerate((text, other))]
    worst = 0.0

    def check(got, expect):
        nonlocal worst
        worst = max(worst, *(nmse(g, w) for g, w in zip(got, expect)))

    def fresh(f):
        d = Draft(lib, path, o["heads"])
        try:
            f(d)
        finally:
            d.close()

    def whole(d):
        check(d.feed(0, rows[0])[:1], [want])
        check(d.feed(1, rows[0] + rows[1], np.concatenate(states)), [np.concatenate(w) for w in zip(*first)])
        state = first[0][1]
        for k, expect in enumerate(chain):
            check(d.feed(2 + k, rows[0], state), expect)

    def pieces(d):
        got = [d.feed(1, rows[0][:9], states[0][:9])] + [d.feed(1, [r], states[0][i:i + 1]) for i, r in enumerate(rows[0]) if i >= 9]
        check([np.concatenate(g) for g in zip(*got)], first[0])

    fresh(whole)
    fresh(pieces)
    return worst


CASES = {
    "nextn-glm4moe": with_heads(1, case("glm4moe", {**LEAD, **NEXT, "expert_shared_count": 2}, layers=4, **HEADS, tied=True, qkv_bias=True, ffn_norm="post_attention_norm",
                                        rope=rope("neox", n=12), moe=dict(**PICK, gating="sigmoid", bias=True, shared=80, **SCALED, **AFTER_LEAD))),
    "nextn-glm4moe-shared": with_heads(1, case("glm4moe", {**LEAD, **NEXT, "expert_shared_count": 2}, layers=3, **HEADS, tied=True, qkv_bias=True, ffn_norm="post_attention_norm",
                                               rope=rope("neox", n=12), moe=dict(**PICK, gating="sigmoid", bias=True, shared=80, **SCALED, **AFTER_LEAD)), own=False),
    "nextn-deepseek2": with_heads(1, mla("deepseek2", {**NEXT, "expert_gating_func": 2}, absorbed=True, tied=True, layers=4,
                                         moe=dict(**PICK, gating="sigmoid", bias=True, shared=80, **SCALED, **AFTER_LEAD))),
    "nextn-bailingmoe2": with_heads(1, case("bailingmoe2", {**LEAD, **NEXT, "expert_shared_count": 1, "expert_gating_func": 2}, layers=4, K=2, fused=True, qk_norm="rms",
                                            rope=rope("neox", n=8), moe=dict(**PICK, gating="sigmoid", bias=True, groups=(4, 2), shared=40, **SCALED, **AFTER_LEAD))),
    "nextn-exaone-moe": with_heads(1, case("exaone-moe", {**LEAD, **NEXT, **WIN, "expert_shared_feed_forward_length": 56, "expert_gating_func": 2}, layers=6, **HEADS,
                                           **pattern(4, NEOX, None), moe=dict(**PICK, gating="sigmoid", bias=True, shared=56, **SCALED, **AFTER_LEAD))),
    "nextn-hy_v3": with_heads(1, case("hy_v3", {**FX, **NEXT}, layers=4, **HEADS, tied=True, rope=NEOX,
                                      moe=dict(**PICK, gating="sigmoid", bias="exp_probs_b", shared=40, layers=lambda i: i != 1, **SCALED)), own=False),
    "nextn-llama": with_heads(2, case("llama", layers=4, K=2, D=24, tied=True, **LLAMA)),
    "nextn-mimo2": with_heads(2, case("mimo2", {**FX, **WIN, "attention.sliding_window_pattern": [1, 0, 1, 1, 1], "attention.value_scale": 0.7, "rope.freq_base_swa": 500.0,
                                                "rope.scaling.factor": 4.0, "rope.dimension_count": 16},
                                      layers=5, H=lambda i: [4, 8, 4, 8, 4][i], K=lambda i: [2, 4, 1, 2, 2][i], D=24, Dv=16, sinks=True, attn_scale=0.7,
                                      window=lambda i: 0 if i == 1 else 8, rope=lambda i: rope("neox", n=16, f=4.0) if i == 1 else rope("neox", n=16, base=500.0),
                                      moe=dict(**PICK, gating="sigmoid", bias=True, norm=True, layers=lambda i: i > 0))),
    "nextn-qwen35": with_heads(1, ("qwen35", qwen35, {**DELTA, "attention.recurrent_layers": [1, 0, 1, 1]}, dict(sections=[3, 3, 2, 0], draft_layer=qwen35_layer))),
}
