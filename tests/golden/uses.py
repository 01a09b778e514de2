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

import numpy as np

import numpy_ref

FAST = ["llama-dense", "olmo2-dense", "llama-moe", "gemma3-dense", "deepseek2-moe", "jamba-dense", "lfm2moe-moe", "qwen3next-moe", "gpt2-dense", "bert", "rwkv7", "llada-dense"]


def models_of(shared, names):
    """(name, path of its spec or None for a case of numpy_ref): a name can stand for one of each."""
    specs = {os.path.basename(f)[:-5]: f for f in sorted(glob.glob(os.path.join(shared, "golden", "spec", "*.json")))}
    return [(n, specs[n]) for n in names or specs if n in specs] + [(n, None) for n in names or numpy_ref.CASES if n in numpy_ref.CASES]


def use_model(program, shared, name, spec):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name + ".gguf")
        if spec:
            sys.path.insert(0, os.path.join(shared, "golden"))
            import synth_model
            synth_model.from_spec(spec, path)
        else:
            numpy_ref.write_case(name, path)
        return use(program, path, folder)


def use(program, path, folder):
    out = []
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
    return out


def main():
    args = [a for a in sys.argv[1:] if a != "--fast"]
    build, shared, names = args[0], args[1], args[2:]
    models = models_of(shared, names or (FAST if "--fast" in sys.argv else []))
    missing = [n for n in names if n not in [m[0] for m in models]]
    if missing:
        sys.exit("there is no model " + " ".join(missing))
    program = os.path.join(build, "check", "uses")
    failed = 0
    for name, spec in models:
        out = use_model(program, shared, name, spec)
        failed += any(s.startswith(("FAIL", "exit", "no ")) for s in out)
        if out:
            print(f"{name}:\n  " + "\n  ".join(out), flush=True)
    print(f"{len(models) - failed} passed, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    numpy_ref.load_cases()
    main()
