"""lamina quantize on small models: what each tensor becomes, options, sizes foretold, what is refused.

usage: quantize.py LAMINA SHARED      needs numpy and gguf. The last line is "N passed, N failed".
"""
import glob
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import gguf
import numpy as np

lamina, shared = sys.argv[1:3]
sys.path.insert(0, os.path.join(shared, "golden"))
import synth_model

passed = failed = 0


def check(ok, what):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print("FAIL", what, flush=True)


def run(*args):
    p = subprocess.run([lamina, *args], capture_output=True, text=True)
    return p.returncode, p.stdout, p.stderr


def types(path):
    return {t.name: t.tensor_type.name for t in gguf.GGUFReader(path).tensors}


def quantize(model, out, mixture, *options):
    code, _, err = run("quantize", "-q", *options, model, out, mixture)
    check(code == 0, f"{mixture} {options}: {err.strip()}")
    return types(out) if code == 0 else {}


def expect(got, what, **by_name):
    """by_name: type of each kind of tensor, or one per layer."""
    for name, want in by_name.items():
        full = [f"{name}.weight"] if not isinstance(want, list) and f"{name}.weight" in got else [f"blk.{i}.{name}.weight" for i in range(4)]
        want = want if isinstance(want, list) else [want] * len(full)
        check([got.get(f) for f in full] == want, f"{what}: {name} is {[got.get(f) for f in full]} instead of {want}")


def mixtures(tmp):
    """Four layers: the last two are finer ones; 8 heads share 4 key heads."""
    m, out = os.path.join(tmp, "tiny.gguf"), os.path.join(tmp, "out.gguf")
    synth_model.llama("tiny", "f16", m)
    common = dict(attn_norm="F32", output_norm="F32")
    fine = lambda a, b: [a, a, b, b]
    for name, base, o in (
        ("Q4_K_M", "Q4_K", dict(attn_v=fine("Q4_K", "Q6_K"), ffn_down=fine("Q4_K", "Q6_K"), output="Q6_K")),
        ("Q4_K_S", "Q4_K", dict(attn_v="Q5_K", output="Q6_K")),
        ("Q5_K_M", "Q5_K", dict(attn_v=fine("Q5_K", "Q6_K"), ffn_down=fine("Q5_K", "Q6_K"), output="Q6_K")),
        ("Q5_K_S", "Q5_K", dict(output="Q6_K")),
        ("Q3_K_S", "Q3_K", dict(output="Q6_K")),
        ("Q3_K_M", "Q3_K", dict(attn_v=["Q5_K", "Q5_K", "Q4_K", "Q4_K"], ffn_down="Q4_K", attn_output="Q4_K", output="Q6_K")),
        ("Q3_K_L", "Q3_K", dict(attn_v="Q5_K", ffn_down="Q5_K", attn_output="Q5_K", output="Q6_K")),
        ("Q2_K", "Q2_K", dict(attn_v="Q3_K", ffn_down="Q3_K", attn_output="Q3_K", output="Q6_K")),
        ("Q6_K", "Q6_K", {}), ("Q8_0", "Q8_0", {}), ("Q4_0", "Q4_0", dict(output="Q6_K")), ("IQ4_XS", "IQ4_XS", dict(output="Q6_K")), ("F32", "F32", {}), ("BF16", "BF16", {}),
    ):
        got = quantize(m, out, name)
        rest = {k: base for k in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down", "token_embd", "output")}
        expect(got, name, **{**rest, **common, **o})
        size = os.path.getsize(out)
        code, said, _ = run("quantize", "--dry-run", m, name)
        check(code == 0 and said.split()[-1] == str(size), f"{name}: a dry run says {said.strip()}, the file has {size}")
    got = quantize(m, out, "Q4_K_M", "--pure")
    expect(got, "pure", **{k: "Q4_K" for k in ("attn_v", "ffn_down", "output", "token_embd")}, **common)
    got = quantize(m, out, "Q4_K_M", "--output-tensor-type", "q8_0", "--token-embedding-type", "f16", "--tensor-type", "attn_k=q5_1,blk\\.[01]\\.ffn_up=iq4_nl")
    expect(got, "by name", output="Q8_0", token_embd="F16", attn_k="Q5_1", ffn_up=["IQ4_NL"] * 2 + ["Q4_K"] * 2)
    got = quantize(m, out, "Q4_K_M", "--pure", "--output-tensor-type", "q8_0")
    expect(got, "pure but for the output", output="Q8_0", token_embd="Q4_K", attn_v="Q4_K")
    got = quantize(m, out, "Q8_0", "--leave-output-tensor")
    expect(got, "left", output="F16", token_embd="Q8_0")
    got = quantize(m, out, "Q8_0", "--only-copy")
    check(got == types(m), "copied")
    got = quantize(m, out, "COPY")
    check(got == types(m), "copied by mixture")
    return m


def refusals(tmp, m):
    q, out = os.path.join(tmp, "q8.gguf"), os.path.join(tmp, "out.gguf")
    quantize(m, q, "Q8_0")
    if os.path.exists(out):
        os.unlink(out)
    code, _, err = run("quantize", "-q", q, out, "Q4_0")
    check(code != 0 and "allow-requantize" in err and not os.path.exists(out), f"requantizing: {err.strip()}")
    check(not glob.glob(out + "*"), "nothing is left behind")
    got = quantize(q, out, "Q4_0", "--allow-requantize")
    expect(got, "requantized", attn_q="Q4_0")
    got = quantize(q, out, "Q8_0")
    expect(got, "the same type", attn_q="Q8_0")
    for name in ("IQ2_XXS", "IQ2_XS", "IQ1_S"):
        code, _, err = run("quantize", "-q", m, out, name)
        check(code != 0 and "importance matrix" in err, f"{name} without importance: {err.strip()}")
    for option, value in (("--output-tensor-type", "q9"), ("--tensor-type", "attn_k"), ("--tensor-type", "attn_k=q9"), ("--tensor-type", "(=q8_0"), ("--imatrix", "/nonexistent")):
        code, _, err = run("quantize", "-q", option, value, m, out, "Q4_0")
        check(code != 0 and err.strip(), f"{option} {value} is taken")
    code, _, err = run("quantize", "-q", "--tensor-type", "attn_k=q8_0,atn_v=q8_0", m, out, "Q4_0")
    check(code == 0 and "'atn_v'" in err and "'attn_k'" not in err, f"a pattern that fits nothing: {err.strip()}")
    big = os.path.join(tmp, "big.gguf")
    w = gguf.GGUFWriter(big, "llama")
    w.add_tensor("blk.0.attn_q.weight", np.full((2, 256), 1e30, np.float32))
    synth_model.finish(w)
    code, _, err = run("quantize", "-q", big, out, "F16")
    check(code != 0 and "f16" in err, f"1e30 as f16: {err.strip()}")
    code, _, err = run("quantize", "-q", big, out, "BF16")
    check(code == 0, f"1e30 as bf16: {err.strip()}")


def splits(tmp, m):
    base, out = os.path.join(tmp, "split"), os.path.join(tmp, "kept.gguf")
    code, _, err = run("split", "--split-max-tensors", "16", m, base)
    parts = sorted(glob.glob(base + "-*.gguf"))
    check(code == 0 and len(parts) == 3, f"splitting: {err.strip()} {parts}")
    if not parts:
        return
    whole, one = quantize(m, os.path.join(tmp, "out.gguf"), "Q4_K_M"), quantize(parts[0], os.path.join(tmp, "one.gguf"), "Q4_K_M")
    check(whole == one, "one file from splits")
    run("quantize", "-q", "--keep-split", parts[0], out, "Q4_K_M")
    kept = sorted(glob.glob(os.path.join(tmp, "kept-*.gguf")))
    check(len(kept) == len(parts) and {k: v for f in kept for k, v in types(f).items()} == whole, f"kept splits: {kept}")
    code, said, err = run("quantize", "--keep-split", "--dry-run", parts[0], out, "Q4_K_M")
    check(said.split()[-1:] == [str(sum(os.path.getsize(f) for f in kept))], f"kept splits: a dry run says {said.strip()}")
    code, said, err = run("quantize", "--keep-split", "--dry-run", "--json", parts[0], out, "Q4_K_M")
    check(code == 0 and json.loads(said)["bytes_with_headers"] == sum(os.path.getsize(f) for f in kept) and json.loads(said)["tensors"] == len(whole), f"as JSON: {said}")
    run("quantize", "-q", "--keep-split", "--prune-layers", "2,1,2", parts[0], os.path.join(tmp, "pruned.gguf"), "Q8_0")
    code, _, err = run("plan", os.path.join(tmp, "pruned-00001-of-00003.gguf"))
    check(code == 0, f"kept splits without two layers: {err.strip()}")


def pruned(tmp):
    """What arrays say of the layers left out goes with them, and the model still loads."""
    m, out = os.path.join(tmp, "m.gguf"), os.path.join(tmp, "out.gguf")
    for name in ("jamba-dense", "gemma3-dense", "granitehybrid-dense"):
        synth_model.from_spec(os.path.join(shared, "golden", "spec", name + ".json"), m)
        quantize(m, out, "Q8_0", "--prune-layers", "0")
        fields = [gguf.GGUFReader(f).fields for f in (m, out)]
        for key, f in fields[0].items():
            if key.startswith(name.split("-")[0]) and f.types[0] == gguf.GGUFValueType.ARRAY:
                check(fields[1][key].contents() == f.contents()[1:], f"{name} without layer 0: {key}")
        code, _, err = run("plan", out)
        check(code == 0, f"{name} without layer 0: {err.strip()}")


def what_is_given_twice(tmp, m):
    """Repeated lists add up, as in the field; MODEL MIXTURE THREADS names no output."""
    out = os.path.join(tmp, "twice.gguf")
    got = quantize(m, out, "Q4_0", "--tensor-type", "attn_v=q8_0", "--tensor-type", "ffn_up=q5_1", "--override-kv", "a.b=int:1", "--override-kv", "c.d=int:-2")
    expect(got, "two lists of types", attn_v="Q8_0", ffn_up="Q5_1", attn_k="Q4_0")
    fields = gguf.GGUFReader(out).fields
    check([fields[k].contents() for k in ("a.b", "c.d")] == [1, -2], "two lists of keys")
    here = os.path.join(tmp, "here.gguf")
    shutil.copy(m, here)
    code, _, err = run("quantize", "-q", here, "q8_0", "2")
    made = os.path.join(tmp, "here-q8_0.gguf")
    check(code == 0 and types(made)["blk.0.attn_v.weight"] == "Q8_0" and not os.path.exists("q8_0"), f"MODEL MIXTURE THREADS: {err.strip()}")
    code, _, err = run("quantize", "-q", here, "q8_0", "many")
    check(code == 2 and "threads" in err, f"MODEL MIXTURE many: {err.strip()}")


def write_imatrix(path, model, columns):
    """columns: the importance of a tensor's columns by its name and their number."""
    w = gguf.GGUFWriter(path, "imatrix")
    w.add_type("imatrix")
    w.add_key_value("imatrix.datasets", ["made"], gguf.GGUFValueType.ARRAY, gguf.GGUFValueType.STRING)
    w.add_uint32("imatrix.chunk_count", 1)
    w.add_uint32("imatrix.chunk_size", 512)
    for t in gguf.GGUFReader(model).tensors:
        if len(t.shape) > 1 and t.shape[1] > 1:
            w.add_tensor(t.name + ".in_sum2", columns(t.name, int(t.shape[0])).astype(np.float32)[None])
            w.add_tensor(t.name + ".counts", np.ones((1, 1), np.float32))
    synth_model.finish(w)


def bad_importance(tmp, m):
    """Entries that are zero, negative, not a number or of another length (shared/reports.md, 144)."""
    im, out, name = os.path.join(tmp, "im.gguf"), os.path.join(tmp, "out.gguf"), "blk.1.ffn_up.weight"
    ones = lambda of, n: np.ones(n)
    some = lambda of, n: np.where(np.arange(n) < n // 2, 0.0, 1.0)
    write_imatrix(im, m, ones)
    even = quantize(m, out, "Q4_K_M", "--imatrix", im) and open(out, "rb").read()[-4096:]
    write_imatrix(im, m, lambda of, n: np.zeros(n))
    quantize(m, out, "Q4_K_M", "--imatrix", im)
    check(open(out, "rb").read()[-4096:] == even, "no importance at all counts as the same for all")
    write_imatrix(im, m, some)
    quantize(m, out, "Q4_K_M", "--imatrix", im)
    for what, bad in (("negative", lambda n: np.append(np.ones(n - 1), -1.0)), ("nan", lambda n: np.append(np.ones(n - 1), np.nan)), ("columns", lambda n: np.ones(n + 32))):
        write_imatrix(im, m, lambda of, n: bad(n) if of == name else np.ones(n))
        code, _, err = run("quantize", "-q", "--imatrix", im, m, out, "Q4_K_M")
        check(code != 0 and name in err, f"importance, {what}: {err.strip()}")


def imatrix(tmp, m):
    """Importance of the columns of one matrix: those that matter must lose less."""
    f32, im, out = (os.path.join(tmp, n) for n in ("f32.gguf", "im.gguf", "out.gguf"))
    quantize(m, f32, "F32")
    name = "blk.1.ffn_up.weight"
    x = next(np.array(t.data) for t in gguf.GGUFReader(f32).tensors if t.name == name)
    write_imatrix(im, f32, lambda of, n: np.where(np.arange(n) % 4 == 0, 100.0, 0.01))
    errors = []
    for how in ((), ("--imatrix", im)):
        quantize(f32, out, "Q3_K_S", *how)
        t = next(t for t in gguf.GGUFReader(out).tensors if t.name == name)
        e = (gguf.quants.dequantize(t.data, t.tensor_type) - x) ** 2
        errors.append((e[:, ::4].sum(), e.sum()))
    check(errors[1][0] < 0.8 * errors[0][0], f"importance: error {errors[0][0]:.3f} of the columns that matter becomes {errors[1][0]:.3f}")
    for kind in ("IQ2_XXS", "IQ1_S"):
        quantize(f32, out, kind, "--imatrix", im)


# What the field's own program makes of golden models: kinds of matrices, one type, or one for each layer that has them. The rest stays F32.
FIELD = {
    ("falcon-dense", "Q4_K_M"): {"output": "Q8_0", "token_embd": "Q4_K", "attn_output": "Q4_K", "attn_qkv": "Q4_K Q6_K", "ffn_down": "Q5_0 Q5_1", "ffn_up": "Q4_K"},
    ("falcon-dense", "Q3_K_L"): {"output": "Q8_0", "token_embd": "Q3_K", "attn_output": "Q4_K", "attn_qkv": "Q5_K", "ffn_down": "Q5_0", "ffn_up": "Q3_K"},
    ("deepseek2-moe", "Q2_K"): {"output": "Q8_0", "attn_q_b": "Q2_K", "attn_v_b": "Q2_K", **{k: "Q4_0" for k in (
        "token_embd attn_k_b attn_kv_a_mqa attn_output attn_q_a ffn_down ffn_gate ffn_up ffn_down_exps ffn_down_shexp ffn_gate_shexp ffn_gate_up_exps ffn_up_shexp").split()}},
    ("nemotron_h-dense", "Q4_K_M"): {"output": "Q6_K", "attn_v": "Q6_K", "ffn_down": "Q5_0", **{k: "Q4_K" for k in "token_embd attn_k attn_output attn_q ssm_in ssm_out ffn_up".split()}},
    ("jamba-dense", "Q4_K_M"): {"output": "Q6_K", "attn_v": "Q6_K", "ffn_down": "Q5_0 Q8_0", "ssm_dt": "F16",
                                **{k: "Q4_K" for k in "token_embd attn_k attn_output attn_q ffn_gate ffn_up ssm_in ssm_out ssm_x".split()}},
    ("minimax-m3-moe", "Q5_K_M"): {"output": "Q6_K", "attn_v": "Q5_K Q6_K", "ffn_down": "Q5_1", "ffn_down_exps": "Q8_0", "ffn_down_shexp": "Q8_0",
                                   **{k: "Q5_K" for k in "token_embd attn_k attn_output attn_q ffn_gate ffn_up ffn_gate_exps ffn_gate_shexp ffn_up_exps ffn_up_shexp".split()}},
}


def as_the_field(tmp):
    m, out = os.path.join(tmp, "m.gguf"), os.path.join(tmp, "out.gguf")
    for (name, mixture), want in FIELD.items():
        synth_model.from_spec(os.path.join(shared, "golden", "spec", name + ".json"), m)
        got = {}
        for t, kind in quantize(m, out, mixture).items():
            if kind != "F32":
                got.setdefault(t.removesuffix(".weight").split(".")[-1], []).append((t, kind))
        got = {k: " ".join(x for _, x in sorted(v)) for k, v in got.items()}
        check(got == {k: " ".join(v.split() if " " in v else [v] * len(got.get(k, "").split())) for k, v in want.items()}, f"{name} {mixture}: {got}")


def roles(tmp):
    """Every architecture: what is small or steers stays as it is, and Q4_K_M makes the rest types of its own."""
    m, out = os.path.join(tmp, "m.gguf"), os.path.join(tmp, "out.gguf")
    stays = ("_norm", "ffn_gate_inp", "conv1d", "position_embd", "token_types", "attn_sinks", "rope_", "exp_probs_b", ".bias", "_scale")
    for spec in sorted(glob.glob(os.path.join(shared, "golden", "spec", "*.json"))):
        name = os.path.basename(spec)[:-5]
        synth_model.from_spec(spec, m)
        before, (code, _, err) = types(m), run("quantize", "-q", "--dry-run", m, "Q4_K_M")
        got = quantize(m, out, "Q4_K_M")
        check(code == 0, f"{name}: {err.strip()}")
        shapes = {t.name: [int(d) for d in t.shape] for t in gguf.GGUFReader(out).tensors}
        for t, kind in got.items():
            if any(s in t for s in stays) or t.endswith((".ssm_a", ".ssm_d")):
                check(kind == before[t], f"{name}: {t} became {kind}")
            elif t.split(".")[-2] in ("attn_q", "attn_k", "ffn_up", "ffn_gate", "ffn_up_exps", "ffn_gate_exps", "ffn_up_shexp"):
                fits = shapes[t][0] % 256 == 0
                allowed = {"Q4_K"} if fits else {"Q5_0"} if shapes[t][0] % 32 == 0 else {"F16"}
                check(kind in allowed or (kind == "Q8_0" and ".attn_k." in t), f"{name}: {t} {shapes[t]} became {kind}")
            elif t.split(".")[-2] in ("attn_v", "ffn_down", "ffn_down_exps", "attn_output", "attn_qkv"):
                check(kind in {"Q4_K", "Q5_K", "Q6_K", "Q5_0", "Q5_1", "Q8_0", "F16"}, f"{name}: {t} became {kind}")
        if any(kind in ("Q5_0", "Q5_1", "F16") and before[t] != kind for t, kind in got.items()):
            check("another type" in err, f"{name}: nothing is said of rows that don't hold whole blocks")


def input_survives(tmp, m):
    """The output must not be the input by whatever name, and what goes wrong must not touch it (shared/reports.md, 160)."""
    folder = os.path.join(tmp, "safe")
    os.makedirs(os.path.join(folder, "x"))
    a, out = os.path.join(folder, "a.gguf"), os.path.join(folder, "out.gguf")
    shutil.copy(m, a)
    whole = open(a, "rb").read()

    def intact(what):
        check(os.path.exists(a) and open(a, "rb").read() == whole, f"{what}: the input has changed")

    soft, hard = os.path.join(folder, "soft.gguf"), os.path.join(folder, "hard.gguf")
    os.symlink(a, soft)
    os.link(a, hard)
    for name in (a, soft, hard, os.path.join(folder, "x", "..", "a.gguf"), os.path.join(folder, ".", "a.gguf")):
        for source, target in ((a, name), (name, a)):
            code, _, err = run("quantize", "-q", source, target, "Q4_0")
            check(code != 0 and "same file" in err, f"{source} -> {target}: exit {code}, {err.strip()}")
            intact(f"{source} -> {target}")
    code, _, err = run("quantize", "-q", a, os.path.join(folder, "missing", "out.gguf"), "Q4_0")
    check(code != 0 and "missing" in err, f"no folder: exit {code}, {err.strip()}")
    intact("no folder")
    full = lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536)))
    p = subprocess.run([lamina, "quantize", "-q", a, out, "Q8_0"], capture_output=True, text=True, preexec_fn=full)
    check(p.returncode != 0 and p.stderr.strip() and not glob.glob(out + "*"), f"no room on the disk: exit {p.returncode}, {p.stderr.strip()}, {glob.glob(out + '*')}")
    intact("no room on the disk")
    disk = os.path.join(folder, "disk")
    os.mkdir(disk)
    if os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True).returncode == 0:
        try:
            code, _, err = run("quantize", "-q", a, os.path.join(disk, "out.gguf"), "Q8_0")
            check(code != 0 and err.strip() and not os.listdir(disk), f"a full disk: exit {code}, {err.strip()}, {os.listdir(disk)}")
            intact("a full disk")
        finally:
            subprocess.run(["umount", disk], check=True)
    for k in range(12):
        if os.path.exists(out):
            os.unlink(out)
        p = subprocess.Popen([lamina, "quantize", "-q", a, out, "Q4_K_M"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.002 * k)
        p.kill()
        p.wait()
        check(not os.path.exists(out) or types(out), "killed: there is half an output under its name")
        intact("killed")
    check(quantize(a, out, "Q4_0"), "after that it works")
    intact("in the end")


with tempfile.TemporaryDirectory() as tmp:
    tiny = mixtures(tmp)
    input_survives(tmp, tiny)
    refusals(tmp, tiny)
    splits(tmp, tiny)
    pruned(tmp)
    what_is_given_twice(tmp, tiny)
    imatrix(tmp, tiny)
    bad_importance(tmp, tiny)
    roles(tmp)
    as_the_field(tmp)
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
