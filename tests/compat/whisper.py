#!/usr/bin/env python3
"""A speech recognizer of other people on our libggml: the prebuilt libwhisper of the wheel pywhispercpp 1.5.1, with its own libggml left
out. The model is small and random, written here in that program's own file format; what it makes of a tone is known from the wheel's
own libraries, and must not depend on threads.

  whisper.py LIB_DIR WHEEL        --own instead of LIB_DIR: on the wheel's libraries (where the tokens below come from)
"""
import glob
import os
import struct
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

# The first tokens that the wheel's own libraries give, and their probabilities, which roundings move by up to 8 % in so random a model.
TOKENS = [13669, 13669, 13669, 20958, 20958, 20958, 20958, 20958, 20958, 20958, 20958, 20958]
PROBABILITIES = [0.01885, 0.0277, 0.04222, 0.02981, 0.4781, 0.4367, 0.29718, 0.42489, 0.40449, 0.45195, 0.49239, 0.66372]


def write_model(path, n_state=64, n_head=2, n_layer=2, n_ctx=1500, n_text=64, n_mels=80, n_vocab=51864):
    r = np.random.RandomState(5)
    with open(path, "wb") as f:
        f.write(struct.pack("<I11i", 0x67676D6C, n_vocab, n_ctx, n_state, n_head, n_layer, n_text, n_state, n_head, n_layer, n_mels, 1))
        f.write(struct.pack("<2i", n_mels, 201) + np.abs(r.standard_normal((n_mels, 201)) * 0.01).astype("<f4").tobytes())
        words = [bytes([c]) for c in range(256)] + [b" w%d" % i for i in range(50257 - 256)]
        f.write(struct.pack("<i", len(words)) + b"".join(struct.pack("<i", len(w)) + w for w in words))

        def put(name, *ne, scale, half=False, mean=0.0):
            x = mean + scale * r.standard_normal(ne[::-1])
            f.write(struct.pack(f"<3i{len(ne)}i", len(ne), len(name), int(half), *ne) + name.encode())
            f.write(x.astype("<f2" if half else "<f4").tobytes())

        def linear(name, n_in, n_out, bias=True):
            put(name + ".weight", n_in, n_out, scale=n_in**-0.5, half=True)
            if bias:
                put(name + ".bias", n_out, scale=0.1)

        def norm(name):
            put(name + ".weight", n_state, scale=0.1, mean=1.0)
            put(name + ".bias", n_state, scale=0.1)

        def attention(name):
            for part in ("query", "key", "value", "out"):
                linear(f"{name}.{part}", n_state, n_state, part != "key")

        def blocks(side, cross):
            for i in range(n_layer):
                p = f"{side}.blocks.{i}"
                for part in ["attn"] + (["cross_attn"] if cross else []):
                    norm(f"{p}.{part}_ln")
                    attention(f"{p}.{part}")
                norm(f"{p}.mlp_ln")
                linear(f"{p}.mlp.0", n_state, 4 * n_state)
                linear(f"{p}.mlp.2", 4 * n_state, n_state)

        put("encoder.positional_embedding", n_state, n_ctx, scale=0.3)
        for i, n_in in ((1, n_mels), (2, n_state)):
            put(f"encoder.conv{i}.weight", 3, n_in, n_state, scale=0.1, half=True)
            put(f"encoder.conv{i}.bias", 1, n_state, scale=0.1)
        norm("encoder.ln_post")
        blocks("encoder", False)
        put("decoder.positional_embedding", n_state, n_text, scale=0.3)
        put("decoder.token_embedding.weight", n_state, n_vocab, scale=0.3, half=True)
        norm("decoder.ln")
        blocks("decoder", True)


def install(lib, wheel, folder):
    with zipfile.ZipFile(wheel) as z:
        z.extractall(folder)
    if lib == "--own":
        return {}
    for name in glob.glob(os.path.join(folder, "pywhispercpp.libs", "libggml*")):
        os.unlink(name)
        os.symlink(os.path.join(os.path.abspath(lib), "libggml.so"), name)
    # the wheel was built by a newer compiler, whose C++ runtime its own libggml brought along
    source, shim = os.path.join(folder, "shim.cpp"), os.path.join(folder, "shim.so")
    with open(source, "w") as f:
        f.write('#include <exception>\nextern "C" void __cxa_call_terminate(void *) noexcept { std::terminate(); }\n')
    subprocess.run(["g++", "-shared", "-fPIC", source, "-o", shim], check=True)
    return {"LD_PRELOAD": shim}


# Runs in a process of its own: the libraries are chosen when it starts.
LISTEN = """
import sys
import numpy as np
import _pywhispercpp as w
options = w.whisper_context_default_params()
options.use_gpu = False
context = w.whisper_init_from_file_with_params(sys.argv[1], options)
p = w.whisper_full_default_params(w.whisper_sampling_strategy.WHISPER_SAMPLING_GREEDY)
p.n_threads, p.print_progress, p.print_realtime, p.temperature_inc = int(sys.argv[2]), False, False, 0.0
sound = (0.1 * np.sin(np.arange(32000) * 0.05)).astype("f4")
assert w.whisper_full(context, p, sound, len(sound)) == 0
for i in range(w.whisper_full_n_segments(context)):
    for k in range(w.whisper_full_n_tokens(context, i)):
        print(w.whisper_full_get_token_id(context, i, k), w.whisper_full_get_token_p(context, i, k))
"""


def listen(folder, env, model, n_threads):
    r = subprocess.run([sys.executable, "-c", LISTEN, model, str(n_threads)], cwd=folder, env={**os.environ, **env, "PYTHONPATH": folder},
                       capture_output=True, text=True)
    if r.returncode:
        print(f"FAIL: exit {r.returncode}\n{r.stderr[-1500:]}")
        sys.exit(1)
    pairs = [line.split() for line in r.stdout.splitlines()]
    return [int(a) for a, _ in pairs], [float(b) for _, b in pairs]


def main():
    lib, wheel = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        env = install(lib, wheel, folder)
        model = os.path.join(folder, "model.bin")
        write_model(model)
        tokens, p = listen(folder, env, model, 1)
        if lib == "--own":
            print(f"TOKENS = {tokens[:12]}\nPROBABILITIES = {[round(x, 5) for x in p[:12]]}")
            return 0
        n = len(TOKENS)
        same = tokens[:n] == TOKENS and all(abs(a - b) < 0.12 * b for a, b in zip(p, PROBABILITIES))
        print(f"{'ok  ' if same else 'FAIL'} a tone is heard as the wheel's own libraries hear it: {tokens[:n]} {p[:n]}")
        again = listen(folder, env, model, 2) == (tokens, p)
        print(f"{'ok  ' if again else 'FAIL'} and the same to the bit with two threads ({len(tokens)} tokens)")
    print(f"{2 - same - again} failed")
    return not (same and again)


sys.exit(main())
