"""GGUF files damaged where it hurts: every field of the header, of the keys and of the tensor table gets values that are wrong in the ways
files go wrong, and the file is cut and lengthened there. What the program says to each: no crash, no hang, no report of a sanitizer; an
exit status of 0 or exactly one sentence that begins with "error: ".

usage: damaged_files.py LAMINA SHARED [--sample N] [--seed N] [--only NAME] [--keep DIR]
  --sample N: N damages for each file and command (0: all); --keep: the files that found something. The last line is "N passed, N failed".
"""
import argparse
import json
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile

GOLDEN = ["llama-dense", "llama-moe", "gemma3-dense", "qwen3moe-moe", "deepseek2-moe", "mamba-dense", "gpt2-dense", "phi3-dense", "falcon-h1-dense",
          "gpt-oss-moe"]
COMMANDS = {
    "inspect": ["inspect", "FILE"],
    "plan": ["plan", "FILE", "-c", "64"],
    "run": ["run", "-m", "FILE", "-p", "a b", "-n", "1", "-c", "64"],
    "quantize": ["quantize", "FILE", "OUT", "q8_0"],
}
SCALAR = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
INTEGERS = [0, 1, 2, 3, 5, 7, 64, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 1 << 20, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF8, 0xFFFFFFFF, 1 << 32, 1 << 40, 1 << 61,
            (1 << 62) + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 8, (1 << 64) - 1]
FLOATS = [0.0, -1.0, 1e38, -1e38, 1e-42, 0.5, float("nan"), float("inf"), float("-inf")]


def fields(data):
    """(name, offset, struct code) of every number in a GGUF file's head, (name, offset, "sN") of its strings' bytes."""
    out = [("magic", 0, "I"), ("version", 4, "I"), ("n_tensors", 8, "Q"), ("n_keys", 16, "Q")]
    n_tensor, n_key = struct.unpack_from("<QQ", data, 8)
    at = 24

    def text(name):
        nonlocal at
        n, = struct.unpack_from("<Q", data, at)
        out.append((name + " length", at, "Q"))
        if n:
            out.append((name + " bytes", at + 8, f"s{n}"))
        at += 8 + n
        return data[at - n:at].decode(errors="replace")

    def value(name, kind, all_of_it=True):
        nonlocal at
        if kind == 8:
            if all_of_it:
                text(name)
            else:
                at += 8 + struct.unpack_from("<Q", data, at)[0]
        elif kind == 9:
            inner, n = struct.unpack_from("<IQ", data, at)
            out.extend([(name + " element type", at, "I"), (name + " count", at + 4, "Q")])
            at += 12
            for i in range(n):
                value(f"{name}[{i}]", inner, i in (0, n - 1))
        else:
            if all_of_it:
                out.append((name, at, SCALAR[kind]))
            at += struct.calcsize(SCALAR[kind])

    for i in range(n_key):
        name = text(f"key {i}")
        kind, = struct.unpack_from("<I", data, at)
        out.append((name + " type", at, "I"))
        at += 4
        value(name, kind)
    for i in range(n_tensor):
        name = text(f"tensor {i}")
        n_dim, = struct.unpack_from("<I", data, at)
        out.append((name + " n_dims", at, "I"))
        at += 4
        for d in range(n_dim):
            out.append((f"{name} ne[{d}]", at, "Q"))
            at += 8
        out.extend([(name + " type", at, "I"), (name + " offset", at + 4, "Q")])
        at += 12
    return out, at


def damages(data):
    """(what, bytes of the damaged file) one after the other, as functions so that only those that are used are made."""
    found, end = fields(data)
    alignment = 32
    start = (end + alignment - 1) // alignment * alignment

    def put(at, new):
        return lambda: data[:at] + new + data[at + len(new):]

    for name, at, code in found:
        if code[0] == "s":
            n = int(code[1:])
            for what, new in (("emptied", b"\0" * n), ("\\xff", b"\xff" * n), ("first byte", bytes([data[at] ^ 1])), ("quotes", b"\"\n"[:n])):
                yield f"{name}: {what}", put(at, new)
            continue
        size = struct.calcsize(code)
        old, = struct.unpack_from("<" + code, data, at)
        if code in "fd":
            for v in FLOATS + [-old, old * 2]:
                yield f"{name} = {v}", put(at, struct.pack("<" + code, v if abs(v) <= 3e38 or v != v or v in (float("inf"), float("-inf")) else 0))
        else:
            values = INTEGERS + [old + 1, old - 1, old * 2, old // 2, old * 3 // 2]
            if name.endswith("type"):
                values = list(range(45)) + INTEGERS[-10:]
            for v in sorted({v % (1 << 8 * size) for v in values} - {old % (1 << 8 * size)}):
                yield f"{name} = {v}", put(at, v.to_bytes(size, "little"))
        yield f"cut before {name}", lambda at=at: data[:at]
        yield f"cut inside {name}", lambda at=at: data[:at + 1]
        yield f"a byte more before {name}", lambda at=at: data[:at] + b"\1" + data[at:]
        yield f"{size} bytes fewer at {name}", lambda at=at, size=size: data[:at] + data[at + size:]
    for at in (end, start, (start + len(data)) // 2, len(data) - 64):
        yield f"cut at {at} of {len(data)}", lambda at=at: data[:at]
        yield f"zeros from {at}", lambda at=at: data[:at] + bytes(len(data) - at)
        yield f"\\xff from {at}", lambda at=at: data[:at] + b"\xff" * (len(data) - at)
    yield "longer", lambda: data + b"\xff" * 4096
    yield "twice", lambda: data + data


def with_vocabulary(spec):
    """The spec of a golden model (which has none) with a vocabulary: byte-level BPE for GPT-2 and Qwen, SentencePiece's for the others."""
    bpe = spec["arch"].startswith(("gpt2", "qwen"))
    letters = [chr(c) for c in range(0x21, 0x7F)]
    start = letters if bpe else ["<unk>", "<s>", "</s>", "\u2581"] + letters
    merged = [a + b for a in "abcde" for b in "fghijk"]
    tokens = (start + merged)[:128]
    tokens += [f"<|{i}|>" for i in range(len(tokens), 128)]
    kinds = [3 if i < 3 and not bpe or t.startswith("<|") else 1 for i, t in enumerate(tokens)]
    new = [["tokenizer.ggml.model", "STRING", "gpt2" if bpe else "llama"], ["tokenizer.ggml.tokens", "ARRAY:STRING", tokens],
           ["tokenizer.ggml.token_type", "ARRAY:INT32", kinds], ["tokenizer.ggml.bos_token_id", "UINT32", 1], ["tokenizer.ggml.eos_token_id", "UINT32", 2],
           ["tokenizer.chat_template", "STRING", "{{'<|im_start|>'}}"]]
    new += [["tokenizer.ggml.pre", "STRING", "gpt-2"], ["tokenizer.ggml.merges", "ARRAY:STRING", [t[0] + " " + t[1] for t in merged]]] if bpe else \
        [["tokenizer.ggml.scores", "ARRAY:FLOAT32", [-float(i) for i in range(128)]], ["tokenizer.ggml.add_space_prefix", "BOOL", True]]
    spec["kv"] = [k for k in spec["kv"] if not k[0].startswith("tokenizer.")] + new
    return spec


def judge(command, what, p):
    """None, or what is wrong with the answer."""
    err = p.stderr.decode(errors="replace")
    lines = [l for l in err.splitlines() if l.startswith("error: ")]
    if p.returncode not in (0, 1):
        return f"exit status {p.returncode}: {err[-1500:]}"
    if "runtime error:" in err or "Sanitizer" in err:
        return err[-1500:]
    if p.returncode == 1 and (len(lines) != 1 or not err.rstrip().splitlines()[-1].startswith("error: ")):
        return f"not one sentence: {err[-600:]}"
    if p.returncode and what == "nothing":
        return f"a whole file: {err[-600:]}"
    if p.returncode == 0 and what.startswith("cut") and command == "run":
        return "a file that was cut ran"
    return None


def limit():
    """A hang costs processor time (on a busy machine the clock says little): after a minute of it the program is killed."""
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("lamina")
    ap.add_argument("shared")
    ap.add_argument("--sample", type=int, default=0)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--only", default="")
    ap.add_argument("--keep", default="")
    a = ap.parse_args()
    env = dict(os.environ, ASAN_OPTIONS="exitcode=99:allocator_may_return_null=1:detect_leaks=1:hard_rss_limit_mb=3000", UBSAN_OPTIONS="halt_on_error=1:exitcode=98:print_stacktrace=1")
    golden = os.path.join(a.shared, "golden")
    have = {f[:-5] for f in os.listdir(os.path.join(golden, "spec"))}
    n_ok, bad = 0, 0
    with tempfile.TemporaryDirectory() as tmp:
        for name in [g for g in GOLDEN if g in have and a.only in g]:
            whole, spec = os.path.join(tmp, "whole.gguf"), os.path.join(tmp, "spec.json")
            with open(os.path.join(golden, "spec", name + ".json"), encoding="utf-8") as f:
                vocabulary = with_vocabulary(json.load(f))
            with open(spec, "w", encoding="utf-8") as f:
                json.dump(vocabulary, f)
            subprocess.run([sys.executable, os.path.join(golden, "synth_model.py"), "--spec", spec, whole], check=True,
                           stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            data = open(whole, "rb").read()
            cases = [("nothing", lambda: data)] + list(damages(data))
            for command, args in COMMANDS.items():
                r = random.Random(f"{a.seed} {name} {command}")
                chosen = cases if a.sample == 0 or a.sample >= len(cases) else cases[:1] + r.sample(cases[1:], a.sample)
                for what, make in chosen:
                    path, out = os.path.join(tmp, "damaged.gguf"), os.path.join(tmp, "out.gguf")
                    with open(path, "wb") as f:
                        f.write(make())
                    argv = [a.lamina] + [{"FILE": path, "OUT": out}.get(x, x) for x in args]
                    wrong = judge(command, what, subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, env=env, preexec_fn=limit))
                    if os.path.exists(out):
                        os.unlink(out)
                    if wrong:
                        bad += 1
                        print(f"FAIL {name} {command}, {what}: {wrong}", flush=True)
                        if a.keep:
                            os.makedirs(a.keep, exist_ok=True)
                            with open(os.path.join(a.keep, f"{name}-{command}-{bad}.gguf"), "wb") as f:
                                f.write(make())
                    else:
                        n_ok += 1
                print(f"     {name} {command}: {len(chosen)} of {len(cases)} damages", flush=True)
    print(f"{n_ok} passed, {bad} failed")
    sys.exit(bool(bad))


main()
