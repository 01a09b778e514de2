#!/usr/bin/env python3
"""Makes the table of docs/quantization.md: models requantized from F32 to every mixture, and how well each still predicts a fixed text.

    python3 scripts/quantization_table.py build/bin/lamina [--only MIXTURE,...] MODEL.gguf...  > table.md

Each model is first written as F32 (what its file holds, decoded), then as every mixture from there. The text is the beginnings of Python's LICENSE.txt and
pydoc_data/topics.py (3.11), N characters of each, in windows of 512 tokens of which the second halves are scored. Importance, for the mixtures that
need it or gain by it ("with imatrix"), is measured on a later part of topics.py. Columns: bits of the file per weight, perplexity, and the mean
KL divergence from F32's predictions, which tells more of small changes.
"""
import json
import os
import subprocess
import sys
import sysconfig
import tempfile

N = 9000
MIXTURES = "F16 BF16 Q8_0 Q6_K Q5_K_M Q5_K_S Q5_1 Q5_0 Q4_K_M Q4_K_S Q4_1 Q4_0 IQ4_NL IQ4_XS MXFP4_MOE NVFP4 Q3_K_L Q3_K_M Q3_K_S IQ3_M IQ3_S IQ3_XS IQ3_XXS Q2_K Q2_K_S TQ2_0 TQ1_0 Q2_0 Q1_0".split()
WITH_IMATRIX = "Q4_K_M Q4_0 IQ4_XS Q3_K_M IQ3_S IQ3_XXS Q2_K IQ2_M IQ2_S IQ2_XS IQ2_XXS IQ1_M IQ1_S".split()


def texts(folder):
    lib = sysconfig.get_path("stdlib")
    licence = next(p for p in (os.path.join(lib, "LICENSE.txt"), "/usr/lib/python3.11/LICENSE.txt") if os.path.exists(p))
    topics = open(os.path.join(lib, "pydoc_data", "topics.py"), encoding="utf-8").read()
    scored, measured = os.path.join(folder, "scored.txt"), os.path.join(folder, "measured.txt")
    open(scored, "w").write(open(licence, encoding="utf-8").read()[:N] + topics[:N])
    open(measured, "w").write(topics[200000:200000 + 3 * N])
    return scored, measured


def run(*args):
    p = subprocess.run(args, capture_output=True, text=True)
    if p.returncode:
        raise RuntimeError(f"{' '.join(args)}: {p.stderr.strip()[-300:]}")
    return p.stdout


def score(lamina, model, text, base=None, save=None):
    more = (["--kl-divergence-base", base] if base else []) + (["--save-all-logits", save] if save else [])
    return json.loads(run(lamina, "perplexity", "-m", model, "-f", text, "-c", "512", "--json", *more))


def table(lamina, model, folder, scored, measured):
    f32, base, imatrix, out = (os.path.join(folder, n) for n in ("f32.gguf", "base.bin", "imatrix.gguf", "out.gguf"))
    run(lamina, "quantize", "-q", "--allow-requantize", model, f32, "F32")
    weights = os.path.getsize(f32) / 4  # all but the header
    rows = [("F32", f32, score(lamina, f32, scored, save=base))]
    run(lamina, "imatrix", "-m", f32, "-f", measured, "-o", imatrix, "-c", "512")
    rows.append(("the file as shipped", model, score(lamina, model, scored, base)))
    print(f"### {os.path.basename(model)}\n\n| mixture | bits per weight | perplexity | KL from F32 |\n|---|---:|---:|---:|")
    for name, path, s in rows:
        line(name, path, s, weights)
    for how, names in (([], MIXTURES), (["--imatrix", imatrix], WITH_IMATRIX)):
        for name in names:
            run(lamina, "quantize", "-q", *how, f32, out, name)
            line(name + (" with imatrix" if how else ""), out, score(lamina, out, scored, base), weights)
    print()


def line(name, path, s, weights):
    kl = f"{s['kl_mean']:.5f}" if "kl_mean" in s else ""
    print(f"| {name} | {8 * os.path.getsize(path) / weights:.2f} | {s['perplexity']:.4f} | {kl} |", flush=True)


def main():
    global MIXTURES, WITH_IMATRIX
    if "--only" in sys.argv:
        at = sys.argv.index("--only")
        only = sys.argv[at + 1].split(",")
        del sys.argv[at:at + 2]
        MIXTURES, WITH_IMATRIX = ([n for n in names if n in only] for names in (MIXTURES, WITH_IMATRIX))
    with tempfile.TemporaryDirectory() as folder:
        scored, measured = texts(folder)
        for model in sys.argv[2:]:
            table(sys.argv[1], model, folder, scored, measured)


main()
