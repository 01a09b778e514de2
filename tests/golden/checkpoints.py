"""Converts checkpoints as the field's own library writes them and compares with the logits it computed: tests/golden/checkpoints/NAME.json.

usage: checkpoints.py BUILD_FOLDER [NAME ...]      needs numpy and gguf. The last line is "N passed, N failed".

The cases hold names, shapes, config.json and results of checkpoints_make.py's models; weights follow from the tensors' names. Some are written in 8-bit floats with scales
and in MXFP4 besides, as the published checkpoints of those classes are.
"""
import base64
import json
import os
import subprocess
import sys
import zlib

import numpy as np

TOKENS = [(7 + 37 * i) % 96 for i in range(24)]
TOKENS[TOKENS.index(1)] = 50  # padding of some classes
DECODER = [0, 5, 17, 80, 33, 61, 2, 44, 9, 70]
AT = [0, 1, 2, 8, 15, 23]
HERE = os.path.dirname(os.path.abspath(__file__))


def values(name, shape):
    """Weights by name: around 1 for norms, small for biases, of the usual size for matrices."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    x = rng.uniform(-1, 1, shape)
    low = name.lower()
    if low.endswith("tid2eid"):  # of 8 experts, all different
        return (rng.integers(0, 8, (shape[0], 1)) + 3 * np.arange(shape[1])) % 8
    if low.endswith("bias") or "bias" in low.rsplit(".", 1)[-1]:
        x = 0.2 * x
    elif len(shape) < 2 or (("norm" in low or "ln_" in low) and len(shape) == 2 and shape[0] <= 8):
        x = 1 + 0.2 * x if "norm" in low or "ln" in low else 0.5 * x
    else:
        x = x * np.sqrt(3 / shape[-1])
    return x.astype(np.float32)


# ---- published forms: 8-bit floats with scales per block, MXFP4 ---------------------------------------------------------------
def float8(x):
    """The nearest E4M3 codes of x, and the values they stand for."""
    codes = np.arange(256)
    e, m, s = codes >> 3 & 15, codes & 7, np.where(codes & 128, -1.0, 1.0)
    table = s * np.where(e > 0, (1 + m / 8) * 2.0 ** (e - 7), m / 8 * 2.0 ** -6)
    table[[127, 255]] = np.inf
    order = np.argsort(table[:127])
    near = np.searchsorted(table[:127][order], np.abs(x))
    lo = np.clip(near - 1, 0, 126)
    hi = np.clip(near, 0, 126)
    code = np.where(np.abs(np.abs(x) - table[lo]) <= np.abs(table[hi] - np.abs(x)), lo, hi)
    code = np.where(x < 0, code | 128, code).astype(np.uint8)
    return code, table[code]


def to_float8(w, block):
    """Codes, scales of blocks of rows and columns, and the values."""
    rows, cols = -(-w.shape[0] // block), -(-w.shape[1] // block)
    scale = np.zeros((rows, cols), np.float32)
    for r in range(rows):
        for c in range(cols):
            scale[r, c] = np.abs(w[r * block:(r + 1) * block, c * block:(c + 1) * block]).max() / 448 or 1
    wide = scale.repeat(block, 0)[:w.shape[0]].repeat(block, 1)[:, :w.shape[1]]
    code, value = float8(w / wide)
    return code, scale, (value * wide).astype(np.float32)


def to_mxfp4(w):
    """[..., in] as blocks [..., in / 32, 16], scales [..., in / 32], and the values."""
    grid = np.array([0, .5, 1, 1.5, 2, 3, 4, 6])
    x = w.reshape(*w.shape[:-1], -1, 32).astype(np.float64)
    e = np.floor(np.log2(np.abs(x).max(-1))) - 2
    y = x / 2.0 ** e[..., None]
    code = np.abs(np.abs(y)[..., None] - grid).argmin(-1)
    value = np.where(y < 0, -1, 1) * grid[code] * 2.0 ** e[..., None]
    code = (code | np.where(y < 0, 8, 0)).astype(np.uint8)
    return code[..., 0::2] | code[..., 1::2] << 4, (e + 127).astype(np.uint8), value.reshape(w.shape).astype(np.float32)


# ---- a case ---------------------------------------------------------------------------------------------------------------------
def write_safetensors(path, tensors):
    """tensors: name -> array, or (dtype, array of its bytes)."""
    header, at, data = {}, 0, []
    for name, w in tensors.items():
        dtype, w = w if isinstance(w, tuple) else ({"float32": "F32", "uint8": "U8", "int64": "I64"}[w.dtype.name], w)
        raw = np.ascontiguousarray(w).tobytes()
        header[name] = {"dtype": dtype, "shape": list(w.shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        data.append(raw)
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + b"".join(data))


def published(form, tensors):
    """The checkpoint in a published form, and the plain one with the same values."""
    out, plain = {}, {}
    for name, w in tensors.items():
        out[name] = plain[name] = w
        if form == "fp8" and w.ndim == 2 and "proj" in name:
            code, scale, plain[name] = to_float8(w, 16)
            out[name] = ("F8_E4M3", code)
            out[name + "_scale_inv"] = scale
        if form == "fp4" and w.ndim == 2 and ".experts." in name:  # scales are powers of two, in a tensor of another name
            blocks, scales, plain[name] = to_mxfp4(w)
            out[name], out[name.replace("weight", "scale")] = ("I8", blocks.reshape(len(w), -1)), ("F8_E8M0", scales)
        elif form == "fp4" and w.ndim == 2 and ".attn.w" in name:
            code, scale, _ = to_float8(w, 16)
            e = np.round(np.log2(scale)).astype(int)
            wide = (2.0 ** e).repeat(16, 0)[:w.shape[0]].repeat(16, 1)[:, :w.shape[1]]
            code, value = float8(w / wide)
            plain[name] = (value * wide).astype(np.float32)
            out[name], out[name.replace("weight", "scale")] = ("F8_E4M3", code), ("F8_E8M0", (e + 127).astype(np.uint8))
        if form == "mxfp4" and w.ndim == 3:  # published as [expert, out, in]
            blocks, scales, value = to_mxfp4(np.ascontiguousarray(w.swapaxes(1, 2)))
            plain[name] = value.swapaxes(1, 2)
            del out[name]
            out[name + "_blocks"], out[name + "_scales"] = blocks, scales
    return out, plain


def convert(lamina, folder, tensors, config, outtype):
    os.makedirs(folder, exist_ok=True)
    write_safetensors(os.path.join(folder, "model.safetensors"), tensors)
    json.dump(config, open(os.path.join(folder, "config.json"), "w"))
    convert_mod.tokenizer(folder, 96, "json")
    out = os.path.join(folder, "out.gguf")
    p = subprocess.run([lamina, "convert", "-q", "--outtype", outtype, folder, out], capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(p.stderr.strip()[-300:])
    said = [s for s in p.stderr.splitlines() if "left out" in s]
    if said:
        raise RuntimeError(said[0])
    return out


def outputs(lib, path, case, width, config):
    decoder = "t5" in case and "encoder" not in case
    encoder = any(s in case for s in ("bert", "t5-encoder", "jina", "embedding"))
    rank = case.endswith("rank")
    r = numpy_ref.Runner(lib, path, numpy_ref.RANK if rank else numpy_ref.NONE, encoder)
    r.encoder = encoder
    rows = [(t, i, 0) for i, t in enumerate(TOKENS)]
    try:
        if decoder:
            return r.feed([(t, i, 0) for i, t in enumerate(DECODER)], width, before=rows)
        if rank:
            return r.feed(rows, width, pooled=True)
        return r.feed(rows, width)
    finally:
        r.close()


def check(lamina, lib, case, tmp):
    name, _, form = case.partition("+")
    d = json.load(open(os.path.join(HERE, "checkpoints", name + ".json")))
    tensors = {k: values(k, s) for k, s in d["tensors"].items()}
    want = np.frombuffer(base64.b64decode(d["rows"]), np.float32).reshape(-1, d["width"])
    if form == "mtp":  # a draft head beside the model, whose layer is like the second one
        for k, w in list(tensors.items()):
            if "layers.1." in k:
                tensors["mtp.layers.0." + k.split("layers.1.")[1]] = w
        e = d["config"].get("text_config", d["config"])["hidden_size"]
        for k, shape in (("fc", [e, 2 * e]), ("pre_fc_norm_embedding", [e]), ("pre_fc_norm_hidden", [e]), ("norm", [e])):
            tensors[f"mtp.{k}.weight"] = values(f"mtp.{k}.weight", shape)
    elif form == "vision":  # the text of a model that sees, as it is published
        d["config"] = {"architectures": ["Llama4ForConditionalGeneration"], "text_config": d["config"]}
        tensors = {**{"language_model." + k: w for k, w in tensors.items()}, "vision_model.layernorm_pre.weight": np.ones(8, np.float32), "multi_modal_projector.linear_1.weight": np.ones((8, 8), np.float32)}
    elif form:
        packed, plain = published(form, tensors)
        extra = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [16, 16]}} if form != "mxfp4" else {}
        a = convert(lamina, os.path.join(tmp, "a"), packed, {**d["config"], **extra}, "bf16" if form == "mxfp4" else "f32")
        b = convert(lamina, os.path.join(tmp, "b"), plain, d["config"], "f32")
        got, base = ({t.name: t for t in gguf.GGUFReader(p).tensors} for p in (a, b))
        if got.keys() != base.keys():
            return "other tensors: " + " ".join(sorted(got.keys() ^ base.keys()))
        for k, t in got.items():
            if form == "mxfp4" and "_exps.weight" in k and t.tensor_type.name != "MXFP4":
                return f"{k} is {t.tensor_type.name}"
            x = (t.data if t.tensor_type.name == "I32" else gguf.dequantize(t.data, t.tensor_type)).ravel()
            y = np.array(base[k].data).ravel()
            if t.tensor_type.name == "BF16":
                y = gguf.dequantize(gguf.quantize(y, gguf.GGMLQuantizationType.BF16), gguf.GGMLQuantizationType.BF16)
            if not np.allclose(x, y, rtol=1e-6, atol=0):
                return f"{k} differs"
        return None
    beside = {k: np.zeros(1, np.float32) for k in d.get("beside", []) if k not in tensors}
    out = convert(lamina, tmp, {**beside, **tensors}, d["config"], "f32")
    if form == "mtp":
        reader = gguf.GGUFReader(out)
        arch = reader.fields["general.architecture"].contents()
        n, last = reader.fields[f"{arch}.block_count"].contents(), {t.name for t in reader.tensors}
        if reader.fields[f"{arch}.nextn_predict_layers"].contents() != 1 or f"blk.{n - 1}.nextn.eh_proj.weight" not in last or f"blk.{n - 1}.attn_q.weight" not in last:
            return "the draft head is not there"
    got = outputs(lib, out, name, d["width"], d["config"])[d["at"]]
    e = numpy_ref.nmse(got, want)
    return None if e <= LOOSE.get(name, 2e-7) else f"logits differ by {e:.2e}"


# the file's graph knows no epsilon; the exact GELU, which files compute in its tanh form
# files of gemma3n divide the variance of 1,024 activations by one less; later positions of random models carry that too far
LOOSE = {"gemma3n": 1e-3, "qwen2-vl": 1e-6, "qwen2-5-vl": 1e-6, "bert": 1e-5, "roberta": 1e-5, "xlm-roberta": 1e-5, "xlm-roberta-rank": 1e-5}
FORMS = ["deepseek-v2+fp8", "deepseek-v4+fp4", "gpt-oss+mxfp4", "qwen3-5+mtp", "qwen3-next+mtp", "llama4+vision"]


def main():
    build, wanted = sys.argv[1], sys.argv[2:]
    lamina, lib = os.path.join(build, "bin", "lamina"), numpy_ref.open_library(os.path.join(build, "lib"))
    names = wanted or sorted(f[:-5] for f in os.listdir(os.path.join(HERE, "checkpoints"))) + FORMS
    numpy_ref.report(names, lambda name, tmp: check(lamina, lib, name, tmp))


if __name__ == "__main__":
    import gguf

    import convert as convert_mod
    import numpy_ref
    main()
