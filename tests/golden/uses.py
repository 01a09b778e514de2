"""Does with every architecture what users do: save, quantize, cut into micro-batches, batch with neighbours, continue from states, spread over devices.

usage: uses.py FOLDER_OF_BUILD SHARED [--fast] [NAME ...]      needs numpy and gguf. The last line is "N passed, N failed".

Models: every golden one of SHARED, and every one that numpy_ref.py makes (architectures and variants without golden logits). uses.c does the work, in
one process on the CPU and in one with LAMINA_SIM=2. --fast: a dozen of them, of as many kinds of memory and network.
"""
import glob
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import numpy_ref

FAST = ["llama-dense", "olmo2-dense", "llama-moe", "gemma3-dense", "deepseek2-moe", "jamba-dense", "lfm2moe-moe", "qwen3next-moe", "gpt2-dense", "bert", "rwkv7", "llada-dense"]


def write_models(shared, names, tmp):
    sys.path.insert(0, os.path.join(shared, "golden"))
    import synth_model
    for name in names:
        path = os.path.join(tmp, name + ".gguf")
        spec = os.path.join(shared, "golden", "spec", name + ".json")
        if name in numpy_ref.CASES:
            numpy_ref.write_case(name, path)
        else:
            synth_model.from_spec(spec, path)
        yield name, path


def use(program, name, path):
    out = []
    with tempfile.TemporaryDirectory() as folder:
        for env, more in (({}, []), ({"LAMINA_SIM": "2"}, [os.path.join(folder, "logits.f32")])):
            if more and not os.path.exists(more[0]):
                break
            try:
                p = subprocess.run([program, path, folder, *more], capture_output=True, text=True, timeout=300, env={**os.environ, **env})
                lines = p.stdout.strip().splitlines() or ["no output"]
                out += [s for s in lines if s != "ok" and not s.isdigit()]
                if p.returncode not in (0, 1):
                    out.append(f"exit {p.returncode}: {p.stderr.strip()[-200:]}")
            except subprocess.TimeoutExpired:
                out.append("no answer in 300 s")
    os.unlink(path)
    return name, out


def main():
    args = [a for a in sys.argv[1:] if a != "--fast"]
    build, shared, names = args[0], args[1], args[2:]
    if not names:
        specs = sorted(os.path.basename(f)[:-5] for f in glob.glob(os.path.join(shared, "golden", "spec", "*.json")))
        names = FAST if "--fast" in sys.argv else specs + list(numpy_ref.CASES)
    program = os.path.join(build, "check", "uses")
    failed = 0
    with tempfile.TemporaryDirectory() as tmp, ThreadPoolExecutor(1) as pool:
        for name, out in pool.map(lambda m: use(program, *m), write_models(shared, names, tmp)):
            failed += any(s.startswith("FAIL") or s.startswith("exit") or s.startswith("no ") for s in out)
            if out:
                print(f"{name}:\n  " + "\n  ".join(out), flush=True)
    print(f"{len(names) - failed} passed, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    numpy_ref.load_cases()
    main()
