"""Models that are well-formed GGUF and odd all the same: keys of unexpected types and values, vocabularies with parts missing, tensors that
overlap, shards out of place, outputs that are inputs. What the program says to each: it works, or one sentence that says what is wrong.

usage: odd_models.py LAMINA     The last line is "N passed, N failed".
"""
import copy
import math
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

LAMINA = os.path.abspath(sys.argv[1])
TYPES = dict(u8=0, i8=1, u16=2, i16=3, u32=4, i32=5, f32=6, bool=7, str=8, arr=9, u64=10, i64=11, f64=12)
CODES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
u32 = lambda v: struct.pack("<I", v)
u64 = lambda v: struct.pack("<Q", v)
passed = failed = 0


def text(s):
    b = s if isinstance(s, bytes) else s.encode()
    return u64(len(b)) + b


def value(kind, v):
    kind = TYPES.get(kind, kind)
    if kind == 8:
        return text(v)
    if kind == 9:
        inner, items = v
        return u32(TYPES[inner]) + u64(len(items)) + b"".join(value(inner, x) for x in items)
    return struct.pack("<" + CODES[kind], v)


class Model:
    """Keys and tensors of a file; f32 tensors with random values."""

    def __init__(self):
        self.keys, self.tensors, self.offsets = [], [], None

    def set(self, key, kind, v):
        self.keys = [k for k in self.keys if k[0] != key] + [(key, kind, v)]
        return self

    def drop(self, key):
        self.keys = [k for k in self.keys if k[0] != key]
        return self

    def get(self, key):
        return next(k[2] for k in self.keys if k[0] == key)

    def add(self, name, dims, scale=0.3, kind=0):
        r = random.Random(name)
        n = math.prod(dims)
        data = struct.pack(f"<{n}f", *[1.0 if "norm" in name else r.uniform(-scale, scale) for _ in range(n)])
        self.tensors.append((name, dims, kind, data))

    def copy(self):
        return copy.deepcopy(self)

    def bytes(self):
        offsets, at, data = [], 0, b""
        for _, _, _, d in self.tensors:
            offsets.append(at)
            data += d + bytes(-len(d) % 32)
            at = len(data)
        if self.offsets:
            offsets = self.offsets(offsets)
        out = b"GGUF" + u32(3) + u64(len(self.tensors)) + u64(len(self.keys))
        for key, kind, v in self.keys:
            out += text(key) + u32(TYPES[kind]) + value(kind, v)
        for (name, dims, kind, _), offset in zip(self.tensors, offsets):
            out += text(name) + u32(len(dims)) + b"".join(u64(d) for d in dims) + u32(kind) + u64(offset)
        return out + bytes(-len(out) % 32) + data


def spm(m):
    words = "▁ a b c h e l o w r d t ▁h ▁w he ll lo hello ▁hello wo rl world ▁world ▁a ▁the th the ▁t".split(" ")
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)] + words
    m.set("tokenizer.ggml.model", "str", "llama").set("tokenizer.ggml.tokens", "arr", ("str", tokens))
    m.set("tokenizer.ggml.scores", "arr", ("f32", [0.0] * 259 + [-float(i) for i in range(len(words))]))
    m.set("tokenizer.ggml.token_type", "arr", ("i32", [2, 3, 3] + [6] * 256 + [1] * len(words)))
    for key, v in (("bos", 1), ("eos", 2), ("unknown", 0)):
        m.set(f"tokenizer.ggml.{key}_token_id", "u32", v)
    return len(tokens)


def bpe(m):
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {b: chr(b) for b in plain}
    for b in range(256):
        letters.setdefault(b, chr(256 + len(letters) - len(plain)))
    merges = ["h e", "l l", "he ll", "hell o", "w o", "r l", "wo rl", "worl d"]
    tokens = [letters[b] for b in range(256)] + [x.replace(" ", "") for x in merges] + ["<|endoftext|>"]
    m.set("tokenizer.ggml.model", "str", "gpt2").set("tokenizer.ggml.pre", "str", "gpt-2")
    m.set("tokenizer.ggml.tokens", "arr", ("str", tokens)).set("tokenizer.ggml.merges", "arr", ("str", merges))
    m.set("tokenizer.ggml.token_type", "arr", ("i32", [1] * (len(tokens) - 1) + [3]))
    m.set("tokenizer.ggml.bos_token_id", "u32", len(tokens) - 1).set("tokenizer.ggml.eos_token_id", "u32", len(tokens) - 1)
    return len(tokens)


def tiny(vocabulary, n=64, ff=128):
    m = Model().set("general.architecture", "str", "llama")
    n_vocab = vocabulary(m)
    for key, v in (("context_length", 256), ("embedding_length", n), ("block_count", 2), ("feed_forward_length", ff),
                   ("attention.head_count", 4), ("attention.head_count_kv", 2), ("rope.dimension_count", n // 4)):
        m.set("llama." + key, "u32", v)
    m.set("llama.attention.layer_norm_rms_epsilon", "f32", 1e-5)
    m.add("token_embd.weight", [n, n_vocab], 1.0)
    m.add("output_norm.weight", [n])
    m.add("output.weight", [n, n_vocab])
    for i in range(2):
        for part, dims in (("attn_norm", [n]), ("attn_q", [n, n]), ("attn_k", [n, n // 2]), ("attn_v", [n, n // 2]), ("attn_output", [n, n]),
                           ("ffn_norm", [n]), ("ffn_gate", [n, ff]), ("ffn_up", [n, ff]), ("ffn_down", [ff, n])):
            m.add(f"blk.{i}.{part}.weight", dims)
    return m


def lamina(*args, stdin=b""):
    p = subprocess.run([LAMINA, *map(str, args)], input=stdin, capture_output=True, timeout=120)
    return p.returncode, p.stdout, p.stderr.decode(errors="replace")


def check(what, args, want=None, out=None):
    """want: None if it must work, "" if it may, else what the one sentence says. out: what must be printed."""
    global passed, failed
    code, got, err = lamina(*args)
    sentences = [l for l in err.splitlines() if l.startswith("error: ")]
    ok = code == 0 and not sentences if want is None else code in (1, 2) and len(sentences) == 1 and re.search(want, sentences[0]) is not None
    if want == "":
        ok = code == 0 and not sentences or code in (1, 2) and len(sentences) == 1
    if ok and out is not None:
        ok = re.search(out, got) is not None
    passed += ok
    failed += not ok
    if not ok:
        print(f"{what}: {' '.join(map(str, args))[:200]}: exit {code}, wanted {want!r}\n    {got[:200]!r}\n    {err[-400:]}")
    return got


def run(what, m, want=None, out=None, prompt="hello world"):
    with open("m.gguf", "wb") as f:
        f.write(m if isinstance(m, bytes) else m.bytes())
    return check(what, ["run", "-m", "m.gguf", "-p", prompt, "-n", 4, "--temp", 0, "-q"], want, out)


def keys():
    base = tiny(spm)
    good = run("as it is", base)
    number = {"context_length": "context_length", "embedding_length": "", "block_count": "block_count", "feed_forward_length": "feed_forward",
              "attention.head_count": "head", "attention.head_count_kv": "head", "rope.dimension_count": ""}
    for key, word in number.items():
        name, v = "llama." + key, base.get("llama." + key)
        for kind in ("i32", "u64", "i64", "u16", "f64"):  # other numbers say the same
            assert run(f"{key} as {kind}", base.copy().set(name, kind, float(v) if kind == "f64" else v)) == good
        run(f"{key} as text", base.copy().set(name, "str", str(v)), f"key {re.escape(name)} is a str; a number is wanted")
        run(f"{key} as texts", base.copy().set(name, "arr", ("str", ["a", "b"])), f"key {re.escape(name)} is an array of str; numbers")
        run(f"{key} as nothing", base.copy().set(name, "arr", ("u32", [])), re.escape(name))
        run(f"{key} negative", base.copy().set(name, "i32", -v), word or ".")
        run(f"{key} nested", base.copy().set(name, "arr", ("arr", [("u32", [1])])), "arrays")
        if key != "rope.dimension_count":
            run(f"{key} missing", base.copy().drop(name), "head_count 0" if key == "attention.head_count" else "missing|keys call for")
    for key in ("feed_forward_length", "attention.head_count", "attention.head_count_kv"):
        v = base.get("llama." + key)
        run(f"{key} per layer", base.copy().set("llama." + key, "arr", ("u32", [v, v])))
        for n in (1, 3):
            run(f"{key} of {n} layers", base.copy().set("llama." + key, "arr", ("u32", [v] * n)), f"has {n} entries; the model has 2 layers")
    for v in (float("nan"), -1.0):
        run(f"epsilon {v}", base.copy().set("llama.attention.layer_norm_rms_epsilon", "f32", v), "epsilon")
        run(f"rope base {v}", base.copy().set("llama.rope.freq_base", "f32", v), "rope base")
    run("rope scaling nonsense", base.copy().set("llama.rope.scaling.type", "str", "much"), "none, linear, yarn and longrope are known")
    run("no such architecture", base.copy().set("general.architecture", "str", "clip"), "unknown architecture 'clip'")


def tensors():
    base = tiny(spm)
    m = base.copy()
    for what, offsets in (("all at 0", lambda o: [0] * len(o)), ("32 bytes into the one before", lambda o: o[:1] + [x - 32 for x in o[1:]])):
        m.offsets = offsets
        run(what, m, "overlap")
        with open("m.gguf", "wb") as f:
            f.write(m.bytes())
        check(what, ["inspect", "m.gguf"], "tensors '.*' .* and '.*' .* overlap")
    for kind, name in ((24, "i8"), (25, "i16"), (26, "i32")):
        m = base.copy()
        m.tensors[0] = (*m.tensors[0][:2], kind, m.tensors[0][3])
        run(f"weights as {name}", m, f"tensor token_embd.weight has type {name}; weights are floats or quantized")
    for kind in (4, 5, 31, 36, 99):
        m = base.copy()
        m.tensors[0] = (*m.tensors[0][:2], kind, m.tensors[0][3])
        run(f"type {kind}", m, f"has type {kind}, which is unknown or retired")
    for dims in ([], [0], [64, 0], [287, 64], [64 * 287], [1 << 32, 1 << 32], [64] * 5):
        m = base.copy()
        m.tensors[0] = (m.tensors[0][0], dims, *m.tensors[0][2:])
        run(f"dimensions {dims}", m, "token_embd.weight")
    m = base.copy()
    m.tensors.append(m.tensors[3])
    run("a tensor twice", m, "occurs twice")
    m = base.copy()
    m.tensors = [t for t in m.tensors if t[0] != "blk.1.ffn_up.weight"]
    run("a tensor missing", m, "tensor blk.1.ffn_up.weight is missing")
    run("bytes too many", base.bytes() + b"x" * 1000)
    run("a byte too few", base.bytes()[:-1], "cut off")
    for start in (b"GGML", b"\x1f\x8b\x08\0", b"version https://git-lfs"):
        run(f"begins {start}", start + base.bytes()[len(start):], "begins with bytes")


def vocabularies():
    for vocabulary in (spm, bpe):
        base, kind = tiny(vocabulary), vocabulary.__name__
        good = run(kind, base)
        n = len(base.get("tokenizer.ggml.tokens")[1])
        for key in ("bos_token_id", "eos_token_id"):
            run(f"{kind} without {key}", base.copy().drop("tokenizer.ggml." + key))
            for v in (n, 0xFFFFFFFF):
                run(f"{kind} {key} {v}", base.copy().set("tokenizer.ggml." + key, "u32", v))
            for t, v in (("str", "x"), ("f32", 1.0), ("bool", True)):
                run(f"{kind} {key} as {t}", base.copy().set("tokenizer.ggml." + key, t, v), f"{key}' has type {t}")
        types = base.get("tokenizer.ggml.token_type")[1]
        assert run(f"{kind} types unsigned", base.copy().set("tokenizer.ggml.token_type", "arr", ("u32", types))) == good
        for t in ("i8", "f32", "i64", "str"):
            run(f"{kind} types as {t}", base.copy().set("tokenizer.ggml.token_type", "arr", (t, ["x"] * n if t == "str" else types)),
                f"is an array of {t}")
        for items in (types[:-1], types + [1], []):
            run(f"{kind} {len(items)} types", base.copy().set("tokenizer.ggml.token_type", "arr", ("i32", items)), f"has {len(items)} entries for {n} tokens")
        run(f"{kind} types of no kind", base.copy().set("tokenizer.ggml.token_type", "arr", ("i32", [100] * n)))
        for t in ("u8", "str", "i32"):
            run(f"{kind} add_bos as {t}", base.copy().set("tokenizer.ggml.add_bos_token", t, "true" if t == "str" else 1), f"add_bos_token' has type {t}")
    # without types, all 256 byte tokens still are bytes
    m = tiny(spm).drop("tokenizer.ggml.token_type")
    run("no types", m)
    check("no types", ["tokenize", "-m", "m.gguf", "-p", "a\\n"], out=rb"'\\n'|'\\x0A'|'\n'")
    run("no scores", tiny(spm).drop("tokenizer.ggml.scores"))
    run("a score that is no number", tiny(spm).set("tokenizer.ggml.scores", "arr", ("f32", [float("nan")] * 287)), "score of token 0 is not a number")
    run("no merges", tiny(bpe).drop("tokenizer.ggml.merges"), "tokenizer.ggml.merges' is missing")
    run("no tokens", tiny(bpe).drop("tokenizer.ggml.tokens"), "tokenizer.ggml.tokens")
    run("no such splitting", tiny(bpe).set("tokenizer.ggml.pre", "str", "\x1b[2J"), r"pre-tokenizer '\\x1[bB]\[2J'")
    run("no such kind", tiny(bpe).set("tokenizer.ggml.model", "str", "GPT2"), "kind 'GPT2'")


def files():
    with open("q.gguf", "wb") as f:
        f.write(tiny(spm, 256, 512).bytes())
    check("split", ["split", "--split-max-tensors", 8, "q.gguf", "s"], out=b"s-00003-of-00003.gguf")
    parts = [f"s-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    before = [open(p, "rb").read() for p in parts]
    for p in parts:  # as the shell does it: merge s-0000*
        check("merge over a part", ["merge", parts[0], p], "is a part of the model")
        check("merge over a part", ["split", "--merge", parts[0], p], "is a part of the model")
        check("quantize over a part", ["quantize", parts[0], p, "q8_0"], "is a file of the model|are the same file")
    check("quantize parts over themselves", ["quantize", "--keep-split", parts[0], "s", "q8_0"], "is a file of the model")
    os.link("q.gguf", "linked-00001-of-00003.gguf")
    check("split over the model", ["split", "--split-max-tensors", 8, "q.gguf", "linked"], "is the model itself")
    assert [open(p, "rb").read() for p in parts] == before
    check("merge", ["split", "--merge", parts[0], "merged.gguf"])
    assert check("checksum", ["inspect", "--checksum", "merged.gguf"]).split()[-1] == check("checksum", ["inspect", "--checksum", "q.gguf"]).split()[-1]
    check("metadata alone first", ["split", "--no-tensor-first-split", "--split-max-tensors", 8, "q.gguf", "n"], out=b"n-00004-of-00004.gguf")
    check("metadata alone first", ["run", "-m", "n-00001-of-00004.gguf", "-p", "a", "-n", 1, "-q"])
    # quantize
    check("mixture by number", ["quantize", "q.gguf", "o.gguf", 15])
    assert b"general.file_type = 15" in check("its number", ["inspect", "o.gguf"])
    check("no such number", ["quantize", "q.gguf", "o.gguf", 99], "'99' is no mixture")
    check("threads", ["quantize", "q.gguf", "o.gguf", "q8_0", "x"], "number of threads")
    check("keys", ["quantize", "--override-kv", "general.name=str:new,llama.context_length=int:77", "q.gguf", "o.gguf", "q8_0"])
    got = check("keys", ["inspect", "o.gguf"])
    assert b'general.name = "new"' in got and b"context_length = 77" in got
    check("keys", ["quantize", "--override-kv", "x", "q.gguf", "o.gguf", "q8_0"], "KEY=TYPE:VALUE")
    check("layers", ["quantize", "--prune-layers", "1", "q.gguf", "o.gguf", "q8_0"])
    got = check("layers", ["inspect", "o.gguf"])
    assert b"blk.1." not in got and b"blk.0." in got and b"block_count = 1" in got
    check("layers run", ["run", "-m", "o.gguf", "-p", "a", "-n", 1, "-q"])
    check("layers", ["quantize", "--prune-layers", "1,x", "q.gguf", "o.gguf", "q8_0"], "layers' numbers")
    with open("types.txt", "w") as f:
        f.write("attn_q=q6_k\nffn_up=f16\n")
    check("types of a file", ["quantize", "--tensor-type", "attn_k=q8_0", "--tensor-type-file", "types.txt", "q.gguf", "o.gguf", "q4_k"])
    got = check("types of a file", ["inspect", "o.gguf"]).decode()
    for name, kind in (("attn_q", "q6_K"), ("attn_k", "q8_0"), ("ffn_up", "f16")):
        assert re.search(rf"{kind} .*blk\.0\.{name}\.weight", got), (name, got)
    with open("words.txt", "w") as f:
        f.write("hello world the " * 200)
    check("imatrix", ["imatrix", "-m", "q.gguf", "-f", "words.txt", "-c", 64, "-o", "im.gguf"])
    spoilt = tiny(spm)  # what is not a number is found where it comes up, not when the matrix is used
    spoilt.tensors = [(n, d, k, struct.pack("<f", math.nan) + x[4:] if n == "blk.1.ffn_norm.weight" else x) for n, d, k, x in spoilt.tensors]
    with open("n.gguf", "wb") as f:
        f.write(spoilt.bytes())
    check("imatrix of NaN", ["imatrix", "-m", "n.gguf", "-f", "words.txt", "-c", 64, "-o", "n_im.gguf"], "'blk.1.ffn_gate.weight' are not finite|'blk.1.ffn_up.weight' are not finite")
    assert not os.path.exists("n_im.gguf")
    check("importance needed", ["quantize", "--imatrix", "im.gguf", "--exclude-weights", "attn_q", "q.gguf", "o.gguf", "iq1_s"], "'blk.0.attn_q.weight' as .* needs an importance matrix")
    check("importance needed", ["quantize", "--imatrix", "im.gguf", "--include-weights", "attn_q", "q.gguf", "o.gguf", "iq1_s"], "needs an importance matrix")
    check("importance there", ["quantize", "--imatrix", "im.gguf", "q.gguf", "o.gguf", "iq1_s"])


def prompt_caches():
    with open("m.gguf", "wb") as f:
        f.write(tiny(spm).bytes())
    r = ["run", "-m", "m.gguf", "-n", 8, "--temp", 0, "-q"]
    hello, longer, other = (check("without a cache", r + ["-p", t]) for t in ("hello world", "hello world the hello", "the world"))
    for i in range(3):  # made, found whole, found whole
        assert check("the same prompt", r + ["-p", "hello world", "--prompt-cache", "pc"]) == hello
    assert check("a longer prompt", r + ["-p", "hello world the hello", "--prompt-cache", "pc", "--prompt-cache-ro"]) == longer
    assert check("another prompt", r + ["-p", "the world", "--prompt-cache", "pc"]) == other
    assert check("a shorter prompt", r + ["-p", "hello world", "--prompt-cache", "pc", "--prompt-cache-all"]) == hello
    before = open("pc", "rb").read()
    assert check("what was generated", r + ["-p", "hello world the hello", "--prompt-cache", "pc", "--prompt-cache-ro"]) == longer
    assert open("pc", "rb").read() == before
    check("a larger context", r + ["-p", "hello world", "--prompt-cache", "pc", "-c", 512])
    with open("n.gguf", "wb") as f:
        f.write(tiny(bpe).bytes())
    check("of another model", ["run", "-m", "n.gguf", "-p", "hello", "-n", 1, "--prompt-cache", "pc"], "of another model")
    open("pc", "wb").write(before[:-3])
    check("cut off", r + ["-p", "hello world", "--prompt-cache", "pc"], "pc|state")
    check("no such folder", r + ["-p", "hello world", "--prompt-cache", "none/pc"], "none/pc")
    check("not for a conversation", ["chat", "-m", "m.gguf", "--prompt-cache", "pc"], "no option --prompt-cache")


def options():
    with open("m.gguf", "wb") as f:
        f.write(tiny(spm).bytes())
    r = ["run", "-m", "m.gguf", "-p", "hello", "-n", 3, "-q"]
    for n in ("all", "auto", -1, 0, 99):
        check("layers on devices", r + ["-ngl", n])
    check("layers on devices", r + ["-ngl", "many"], "auto or all")
    check("bias", r + ["-l", "266+nan"], "ID.NUMBER")
    for t in ("q8_0", "iq4_nl"):  # heads of 16 values
        check("cache type", r + ["-ctv", t], "rows of 16 .*blocks of 32")
    check("threads", ["bench", "-m", "m.gguf", "-p", 4, "-n", 0, "-r", 1, "-t", "0,1"])
    assert check("help", ["help", "run"]) == check("help", ["run", "-h"])
    check("standard input", ["tokenize", "-m", "m.gguf", "--stdin"])
    for grammar in ("root ::= root", "root ::= a\na ::= b\nb ::= a", "root ::= (root)*"):
        check("a rule that begins with itself", r + ["--grammar", grammar], "left recursion") if "*" not in grammar else check("repeats of nothing", r + ["--grammar", grammar], "")
    for v, ok in (("1", True), ("off", True), ("banana", False)):
        os.environ["LLAMA_ARG_NO_MMAP"] = v
        check("environment", r, None if ok else "LLAMA_ARG_NO_MMAP is 'banana'")
    del os.environ["LLAMA_ARG_NO_MMAP"]


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for part in (keys, tensors, vocabularies, files, prompt_caches, options):
        part()
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
