"""Golden models in other clothes: weights of other types, tensors split or joined, heads shared. Each must compute what an equal file does.

usage: weights.py FOLDER_OF_BUILD SHARED [--fast] [NAME ...]      needs numpy and gguf. The last line is "N passed, N failed".

Weights of another type against F32 ones that hold the same values; one matrix for queries, keys and values against three; the output that is the
embedding against a copy; one key head against the same one repeated; half of the heads against all of which half give nothing; numbers against arrays
of them. Names are golden models or cases of numpy_ref.py.
"""
import ctypes as C
import glob
import json
import os
import sys
import tempfile

import gguf
import numpy as np

import numpy_ref

FAST = ["llama-dense", "gpt-oss-moe", "deepseek4-moe", "mamba-dense", "jamba-dense", "lfm2-dense", "qwen35-dense", "kimi-linear-moe", "hy_v4-moe", "rwkv6", "bert", "gemma3n", "mimo2-moe"]
N = 24


class Model:
    """Keys (name -> kind, value) and weights (name -> array, type in the file)."""

    def __init__(self, arch):
        self.arch, self.keys, self.w, self.types = arch, {}, {}, {}

    def copy(self):
        m = Model(self.arch)
        m.keys, m.w, m.types = dict(self.keys), dict(self.w), dict(self.types)
        return m

    def key(self, name, default=None):
        return self.keys.get(f"{self.arch}.{name}", (None, default))[1]

    def set(self, name, value):
        self.keys[f"{self.arch}.{name}"] = ("ARRAY:INT32" if isinstance(value, list) else "UINT32", value)

    def write(self, path):
        g, kinds = gguf.GGUFWriter(path, self.arch), gguf.GGUFValueType
        for k, (kind, v) in self.keys.items():
            if kind.startswith("ARRAY:"):
                g.add_key_value(k, v, kinds.ARRAY, sub_type=kinds[kind[6:]])
            else:
                g.add_key_value(k, v, kinds[kind])
        for name, w in self.w.items():
            if w.dtype == np.int32:
                g.add_tensor(name, w)
                continue
            kind = gguf.GGMLQuantizationType[self.types.get(name, "F32")]
            g.add_tensor(name, encoded(w, kind), raw_dtype=kind)
        g.write_header_to_file()
        g.write_kv_data_to_file()
        g.write_tensors_to_file()
        g.close()


def encoded(w, kind):
    return w.astype({"F32": np.float32, "F16": np.float16}[kind.name]) if kind.name in ("F32", "F16") else gguf.quantize(w, kind)


def rounded(w, name):
    kind = gguf.GGMLQuantizationType[name]
    return gguf.dequantize(encoded(w, kind), kind).reshape(w.shape).astype(np.float32)


def golden(shared, name):
    sys.path.insert(0, os.path.join(shared, "golden"))
    import synth_model
    spec = json.load(open(os.path.join(shared, "golden", "spec", name + ".json")))
    m = Model(spec["arch"])
    m.keys = {k: (kind, v) for k, kind, v in spec["kv"] if k != "general.architecture"}
    m.w = {n: synth_model.weights(n, ne).reshape([int(d) for d in reversed(ne)]) for n, _, ne in spec["tensors"]}
    return m


def kind_of(v):
    if isinstance(v, list):
        return "ARRAY:" + ("INT64" if isinstance(v[0], int) and max(v) > 2**31 - 1 else "INT32" if not isinstance(v[0], bool) and isinstance(v[0], int) else kind_of(v[0]))
    return "BOOL" if isinstance(v, bool) else "STRING" if isinstance(v, str) else "FLOAT32" if isinstance(v, float) else "UINT32"


def case(name):
    """A model of numpy_ref.py."""
    arch, fn, keys, opts, *rest = numpy_ref.CASES[name]
    t = (numpy_ref.Tiny if rest else sys.modules["numpy_hybrid"].Hybrid)(arch, 7, **keys)
    v = opts.get("vocab", numpy_ref.V)
    fn(t, np.array([(7 + 37 * i * (v // numpy_ref.V)) % v for i in range(opts.get("tokens", numpy_ref.T))]), rest[0] if rest else None, opts)
    m = Model(arch)
    base = {"context_length": 256, "embedding_length": numpy_ref.E, "block_count": numpy_ref.L, "feed_forward_length": numpy_ref.F, "attention.head_count": numpy_ref.H,
            "attention.layer_norm_epsilon": 1e-5, "vocab_size": numpy_ref.V}
    m.keys = {k if k.startswith("tokenizer.") else f"{arch}.{k}": (kind_of(v), v) for k, v in {**base, **keys}.items()}
    m.keys["tokenizer.ggml.model"] = ("STRING", "no_vocab")
    m.w = dict(t.w)
    return m


# ---- running ------------------------------------------------------------------------------------------------------------------
def results(lib, m, folder):
    path = os.path.join(folder, "m.gguf")
    m.write(path)
    model = lib.llama_model_load_from_file(path.encode(), lib.llama_model_default_params())
    os.unlink(path)
    if not model:
        raise RuntimeError("can't be loaded")
    encoder, decoder, diffusion = (f(model) for f in (lib.llama_model_has_encoder, lib.llama_model_has_decoder, lib.llama_model_is_diffusion))
    n_vocab = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
    p = lib.llama_context_default_params()
    p.n_ctx, p.n_batch, p.n_ubatch, p.n_seq_max, p.n_threads, p.n_threads_batch = 256, 256, 256, 1, 1, 1
    p.pooling_type, p.embeddings = numpy_ref.NONE, not decoder
    r = object.__new__(numpy_ref.Runner)
    r.lib, r.model, r.encoder, r.ctx = lib, model, not decoder, lib.llama_init_from_model(model, p)
    if not r.ctx:
        raise RuntimeError("the context can't be made")
    try:
        rows = [((7 + 37 * i) % n_vocab, i, 0) for i in range(N)]
        return r.feed(rows, n_vocab if decoder else lib.llama_model_n_embd_out(model), before=rows if (encoder or diffusion) and decoder else None)
    finally:
        r.close()


# ---- pairs of equal models: what, model, its equal, error allowed (None: the same bits) ------------------------------------------
def other_types(m):
    for kind, all_of_them, allowed in (("F16", False, 1e-4), ("F16", True, 1e-4), ("BF16", True, 2e-2), ("Q8_0", False, 2e-2)):
        a, b, size = m.copy(), m.copy(), gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]][0]
        for name, w in m.w.items():
            if w.dtype == np.int32 or w.shape[-1] % size or not (all_of_them or sum(d > 1 for d in w.shape) > 1):
                continue
            a.types[name], b.w[name] = kind, rounded(w, kind)
        yield ("all weights" if all_of_them else "matrices") + " " + kind, a, b, allowed


def tied(m):
    if "output.weight" in m.w and "token_embd.weight" in m.w:
        a, b = m.copy(), m.copy()
        del a.w["output.weight"]
        b.w["output.weight"] = m.w["token_embd.weight"]
        yield "tied output", a, b, None


def heads(m, i):
    at = lambda k, d=None: (lambda v: v[i] if isinstance(v, list) else v)(m.key(k, d))
    h = at("attention.head_count") or 0
    d = at("attention.key_length", m.key("embedding_length") // h if h else 0)
    return h, at("attention.head_count_kv", h), d, at("attention.value_length", d)


def joined(m):
    a, n = m.copy(), 0
    for i in range(m.key("block_count")):
        p = f"blk.{i}.attn_"
        if all(p + x + ".weight" in a.w for x in "qkv"):
            a.w[p + "qkv.weight"] = np.concatenate([a.w.pop(p + x + ".weight") for x in "qkv"])
            n += 1
    if n:
        yield "one matrix for q, k and v", a, m, None


# Sheets whose set S lacks the fused projection.
UNSCALED = ("cogvlm", "minimax-01", "openelm", "plamo2", "plamo3", "qwen3next", "mimo2", "kimi-linear")


def scaled(m):
    """The scale of a fused projection: applied before its bias, or, where no sheet names it, not at all."""
    names = [n for n in m.w if n.endswith("attn_qkv.weight")]
    if names and not any(n.replace("weight", "scale") in m.w for n in names):
        a, b = m.copy(), m.copy()
        for n in names:
            a.w[n.replace("weight", "scale")] = np.full(1, 0.5, np.float32)
            b.w[n] = b.w[n] * np.float32(1 if m.arch in UNSCALED else 0.5)
        yield "scale of the fused projection", a, b, None


def one_key_head(m):
    a, b, n = m.copy(), m.copy(), 0
    for i in range(m.key("block_count")):
        h, k, d, dv = heads(m, i)
        for x, width in (("k", d), ("v", dv)):
            w = m.w.get(f"blk.{i}.attn_{x}.weight")
            if k < 2 or w is None or w.shape[0] != k * width or m.w.get(f"blk.{i}.attn_k_norm.weight", np.zeros(d)).size != d:
                return
            for name in (f"blk.{i}.attn_{x}.weight", f"blk.{i}.attn_{x}.bias"):
                if name in m.w:
                    a.w[name] = m.w[name][:width]
                    b.w[name] = np.concatenate([a.w[name]] * k)
            n += 1
    if n:
        a.set("attention.head_count_kv", 1)
        yield "one key head", a, b, 1e-9


def half_the_heads(m):
    a, b = m.copy(), m.copy()
    for i in range(m.key("block_count")):
        h, k, d, dv = heads(m, i)
        p = f"blk.{i}.attn_"
        q, o = m.w.get(p + "q.weight"), m.w.get(p + "output.weight")
        plain = all(m.w.get(f"{p}{x}_norm.weight", np.zeros(d)).size == d for x in "qk")
        if h % 2 or k % 2 or not k or q is None or o is None or q.shape[0] != h * d or o.shape[1] != h * dv or not plain:
            return
        for x in ("q.weight", "k.weight", "v.weight", "q.bias", "k.bias", "v.bias", "gate.weight", "sinks.weight"):
            if p + x in m.w:
                a.w[p + x] = m.w[p + x][:m.w[p + x].shape[0] // 2]
        a.w[p + "output.weight"] = o[:, :o.shape[1] // 2]
        b.w[p + "output.weight"] = np.concatenate([o[:, :o.shape[1] // 2], 0 * o[:, o.shape[1] // 2:]], 1)
    for k in ("attention.head_count", "attention.head_count_kv"):
        v = m.key(k)
        if v is not None:
            a.set(k, [x // 2 for x in v] if isinstance(v, list) else v // 2)
    a.set("attention.key_length", heads(m, 0)[2])
    a.set("attention.value_length", heads(m, 0)[3])
    yield "half the heads", a, b, 1e-9


def arrays(m):
    a = m.copy()
    for k in ("attention.head_count", "attention.head_count_kv", "feed_forward_length"):
        if isinstance(m.key(k), int):
            a.set(k, [m.key(k)] * m.key("block_count"))
    yield "arrays by layer", a, m, None


# A sheet may want own tensors, or shapes that fewer heads don't fit: such files are refused, which is right.
MAY_BE_REFUSED = ("tied output", "one matrix for q, k and v", "half the heads")
# Its indexer has as many heads as there are key heads.
KEY_HEADS_GIVEN = ("minimax-m3",)
# What a head computes depends on how many there are: slopes of ALiBi, a scale from the width of the stream.
HEADS_GIVEN = ("refact-", "jina-bert-v2", "baichuan-40-layers", "gemma2-27b", "gemma3-27b")
# Near ties of routers and of selections: another rounding of an activation chooses another expert, or another neuron.
LOOSE = {"dbrx-moe", "glm-dsa-moe", "deepseek32-moe", "kimi-k3-moe", "qwen3moe-moe", "qwen3vlmoe-moe", "bailingmoe", "bailingmoe2", "bailingmoe3", "gemma3n-shared", "dots3note",
         "minimax-m3-local", "deepseek2-lite", "mistral4-lite", "exaone-moe", "laguna"}


def check(lib, name, m, folder):
    for form in (other_types, tied, joined, scaled, one_key_head, half_the_heads, arrays):
        if form is half_the_heads and name.startswith(HEADS_GIVEN):
            continue
        for what, a, b, allowed in form(m):
            if name in LOOSE and what in ("all weights BF16", "matrices Q8_0"):
                continue
            try:
                got = results(lib, a, folder)
            except RuntimeError as err:
                if what not in MAY_BE_REFUSED and not (what == "one key head" and name.startswith(KEY_HEADS_GIVEN)):
                    yield f"{what}: {err}"
                continue
            want = results(lib, b, folder)
            if allowed is None and got.tobytes() != want.tobytes():
                yield f"{what}: other bits, error {numpy_ref.nmse(got, want):.1e}"
            elif allowed is not None and not numpy_ref.nmse(got, want) <= allowed:
                yield f"{what}: error {numpy_ref.nmse(got, want):.1e}"


def main():
    build, shared, *names = [a for a in sys.argv[1:] if a != "--fast"]
    lib, failed = numpy_ref.open_library(os.path.join(build, "lib")), 0
    for f, res in (("llama_model_has_encoder", C.c_bool), ("llama_model_has_decoder", C.c_bool), ("llama_model_is_diffusion", C.c_bool), ("llama_model_n_embd_out", C.c_int32),
                   ("llama_model_get_vocab", C.c_void_p), ("llama_vocab_n_tokens", C.c_int32)):
        getattr(lib, f).restype, getattr(lib, f).argtypes = res, [C.c_void_p]
    specs = sorted(os.path.basename(f)[:-5] for f in glob.glob(os.path.join(shared, "golden", "spec", "*.json")))
    names = names or (FAST if "--fast" in sys.argv else specs + [c for c in numpy_ref.CASES if c not in specs])
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            why = list(check(lib, name, golden(shared, name) if name in specs else case(name), folder))
            failed += bool(why)
            print(f"{'FAIL' if why else 'ok  '} {name:24} {'; '.join(why)}", flush=True)
    print(f"{len(names) - failed} passed, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    numpy_ref.load_cases()
    main()
