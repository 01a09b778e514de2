"""Runs llama-cpp-python, installed without its own library, against Lamina's: LLAMA_CPP_LIB_PATH names the folder of the libraries.

usage: LLAMA_CPP_LIB_PATH=build/lib bindings.py MODEL.gguf [TEST...]
The last line is "N passed, N failed".
"""
import ctypes
import json
import math
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.error
import urllib.request

import llama_cpp
import numpy as np
from llama_cpp import Llama, LlamaGrammar
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

MODEL = sys.argv[1]
PROMPT = "The capital of France is"
tests = []


def test(f):
    tests.append(f)
    return f


def load(**kw):
    return Llama(model_path=MODEL, n_ctx=512, n_threads=2, verbose=False, seed=1, **kw)


@test
def struct_layouts():
    expected = {"llama_model_params": 80, "llama_context_params": 160, "llama_batch": 56, "llama_token_data": 12,
                "llama_token_data_array": 32, "llama_model_quantize_params": 64}
    for name, size in expected.items():
        assert ctypes.sizeof(getattr(llama_cpp, name)) == size, name


@test
def tokenizes_and_back():
    llm = load()
    for text in (PROMPT, "", " two  spaces\n\ttab", "naïve café 你好 🙂", "a" * 1000):
        ids = llm.tokenize(text.encode(), add_bos=False)
        assert llm.detokenize(ids).decode() == text, text
    assert llm.n_vocab() == 49152


@test
def completes():
    out = load()(PROMPT, max_tokens=12, temperature=0)
    assert "Paris" in out["choices"][0]["text"], out
    assert out["usage"]["completion_tokens"] == 12


@test
def streams_the_same():
    llm = load()
    whole = llm(PROMPT, max_tokens=16, temperature=0)["choices"][0]["text"]
    parts = [c["choices"][0]["text"] for c in llm(PROMPT, max_tokens=16, temperature=0, stream=True)]
    assert len(parts) > 2 and "".join(parts) == whole, (parts, whole)


@test
def chats():
    out = load().create_chat_completion([{"role": "user", "content": "Name the capital of France."}], max_tokens=24, temperature=0)
    assert "Paris" in out["choices"][0]["message"]["content"], out


@test
def embeds():
    llm = load(embedding=True, pooling_type=llama_cpp.LLAMA_POOLING_TYPE_MEAN)
    a, b, c = (llm.embed(t, normalize=True) for t in ("a small cat", "a little cat", "quarterly tax return"))
    dot = lambda x, y: sum(p * q for p, q in zip(x, y))
    assert len(a) == llm.n_embd() and abs(dot(a, a) - 1) < 1e-4
    assert dot(a, b) > dot(a, c), (dot(a, b), dot(a, c))


@test
def saves_and_loads_state():
    llm = load()
    llm.eval(llm.tokenize(PROMPT.encode()))
    state = llm.save_state()
    first = [llm.sample(temp=0)]
    for _ in range(7):
        llm.eval([first[-1]])
        first.append(llm.sample(temp=0))
    llm.load_state(state)
    again = [llm.sample(temp=0)]
    for _ in range(7):
        llm.eval([again[-1]])
        again.append(llm.sample(temp=0))
    assert first == again, (first, again)


@test
def gives_all_logits():
    llm = load(logits_all=True)
    out = llm(PROMPT, max_tokens=4, temperature=0, logprobs=5)
    lp = out["choices"][0]["logprobs"]
    assert len(lp["tokens"]) == 4 and all(x <= 0 and math.isfinite(x) for x in lp["token_logprobs"]), lp


@test
def follows_a_grammar():
    g = LlamaGrammar.from_string('root ::= ("yes" | "no") "!"', verbose=False)
    out = load()("Is Paris in France? Answer:", max_tokens=8, temperature=0, grammar=g)["choices"][0]["text"]
    assert out in ("yes!", "no!"), out


@test
def seeds_repeat():
    llm = load()
    runs = [llm(PROMPT, max_tokens=12, temperature=1.5, top_k=0, seed=s)["choices"][0]["text"] for s in (42, 42, 43)]
    assert runs[0] == runs[1] != runs[2], runs


@test
def refuses_a_missing_file():
    try:
        Llama(model_path=MODEL + ".missing", verbose=False)
    except ValueError:
        return
    raise AssertionError("a missing file loaded")


@test
def all_logits_are_those_of_single_tokens():
    ids = load().tokenize(PROMPT.encode())
    whole, single = load(logits_all=True), load(logits_all=True)
    whole.eval(ids)
    for i, token in enumerate(ids):
        single.eval([token])
        assert np.array_equal(whole.scores[i], single.scores[i]) and np.abs(whole.scores[i]).max() > 1, i


@test
def embeds_several_texts_at_once():
    texts = ["a small cat", "quarterly tax return", "the capital of France is Paris"]
    for pooling in ("MEAN", "CLS", "LAST"):
        llm = load(embedding=True, pooling_type=getattr(llama_cpp, "LLAMA_POOLING_TYPE_" + pooling))
        together = [d["embedding"] for d in llm.create_embedding(texts)["data"]]
        for text, e in zip(texts, together):
            assert e == llm.embed(text), (pooling, text)
    # without pooling there is a row for each token
    llm = load(embedding=True, pooling_type=llama_cpp.LLAMA_POOLING_TYPE_NONE)
    rows = llm.embed(texts[0])
    assert len(rows) == len(llm.tokenize(texts[0].encode())) and len(rows[0]) == llm.n_embd()


def gguf_string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def write_adapter(path, tensor, n_in, n_out, rank=4, alpha=8.0):
    """A low-rank adapter for one matrix: two tensors of random numbers, keys as adapter files have them."""
    rng = np.random.default_rng(7)
    pair = [(tensor + ".lora_a", rng.standard_normal((rank, n_in)).astype("<f4")),
            (tensor + ".lora_b", rng.standard_normal((n_out, rank)).astype("<f4"))]
    keys = [("general.type", 8, gguf_string("adapter")), ("general.architecture", 8, gguf_string("llama")),
            ("adapter.type", 8, gguf_string("lora")), ("adapter.lora.alpha", 6, struct.pack("<f", alpha))]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(pair), len(keys))
    for key, kind, value in keys:
        head += gguf_string(key) + struct.pack("<I", kind) + value
    at = 0
    for name, x in pair:
        head += gguf_string(name) + struct.pack("<IQQIQ", 2, x.shape[1], x.shape[0], 0, at)
        at += -(-x.nbytes // 32) * 32
    head += b"\0" * (-len(head) % 32)
    with open(path, "wb") as f:
        f.write(head)
        for _, x in pair:
            f.write(x.tobytes() + b"\0" * (-x.nbytes % 32))


@test
def applies_an_adapter():
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "lora.gguf")
        plain = load()
        n = plain.n_embd()
        write_adapter(path, "blk.5.attn_q.weight", n, n)
        scores = []
        for kw in ({}, {"lora_path": path, "lora_scale": 1e-12}, {"lora_path": path, "lora_scale": 1.0}):
            llm = load(logits_all=True, **kw)
            llm.eval(llm.tokenize(PROMPT.encode()))
            scores.append(np.array(llm.scores[llm.n_tokens - 1]))
        off, on = (float(np.abs(s - scores[0]).max()) for s in scores[1:])
        assert off == 0 and on > 1, (off, on)


@test
def looks_ahead_in_the_prompt():
    prompt = "one two three four five six seven eight one two three four five six seven eight one two three four"
    plain = load(logits_all=True)(prompt, max_tokens=24, temperature=0)["choices"][0]["text"]
    llm = load(draft_model=LlamaPromptLookupDecoding(num_pred_tokens=6), logits_all=True)
    ahead = llm(prompt, max_tokens=24, temperature=0)["choices"][0]["text"]
    assert plain == ahead, (plain, ahead)


@test
def fills_in_and_formats():
    llm = load(chat_format="chatml")
    messages = [{"role": "system", "content": "Answer in one word."}, {"role": "user", "content": "What is the capital of Italy?"}]
    out = llm.create_chat_completion(messages, max_tokens=12, temperature=0)["choices"][0]["message"]["content"]
    assert "Rome" in out, out
    stream = llm.create_chat_completion(messages, max_tokens=12, temperature=0, stream=True)
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in stream) == out
    js = load().create_chat_completion([{"role": "user", "content": "Give me a JSON object with the key city."}],
                                       response_format={"type": "json_object"}, max_tokens=60, temperature=0)
    text = js["choices"][0]["message"]["content"]
    if js["choices"][0]["finish_reason"] == "stop":
        assert isinstance(json.loads(text), dict), text
    else:
        assert text.lstrip().startswith("{"), text


@test
def biases_penalties_and_stops():
    llm = load()
    first = llm.tokenize(b" Paris", add_bos=False)[0]
    out = llm(PROMPT, max_tokens=12, temperature=0, logit_bias={str(first): -100.0})["choices"][0]["text"]
    assert "Paris" not in out, out
    out = llm(PROMPT, max_tokens=24, temperature=0, stop=["Paris"])["choices"][0]
    assert "Paris" not in out["text"] and out["finish_reason"] == "stop", out
    for kw in ({"mirostat_mode": 1}, {"mirostat_mode": 2}, {"typical_p": 0.5}, {"min_p": 0.2}, {"repeat_penalty": 1.3},
               {"frequency_penalty": -2.0, "presence_penalty": -1.5}):
        runs = [llm(PROMPT, max_tokens=8, temperature=0.9, seed=5, **kw)["choices"][0]["text"] for _ in range(2)]
        assert runs[0] == runs[1] and runs[0], kw


@test
def plain_calls():
    """The C interface through ctypes, as the binding's low-level examples use it."""
    lib = llama_cpp
    lib.llama_backend_init()
    model = lib.llama_model_load_from_file(MODEL.encode(), lib.llama_model_default_params())
    vocab = lib.llama_model_get_vocab(model)
    params = lib.llama_context_default_params()
    params.n_ctx, params.no_perf = 256, False
    ctx = lib.llama_init_from_model(model, params)
    text = PROMPT.encode()
    tokens = (lib.llama_token * 64)()
    n = lib.llama_tokenize(vocab, text, len(text), tokens, 64, True, True)
    assert 0 < n < 64
    chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
    lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_greedy())
    batch, out = lib.llama_batch_get_one(tokens, n), b""
    for _ in range(10):
        assert lib.llama_decode(ctx, batch) == 0
        token = lib.llama_sampler_sample(chain, ctx, -1)
        piece = ctypes.create_string_buffer(64)
        length = lib.llama_token_to_piece(vocab, token, piece, 64, 0, True)
        out += piece.raw[:length]
        one = (lib.llama_token * 1)(token)
        batch = lib.llama_batch_get_one(one, 1)
    assert b"Paris" in out, out
    perf = lib.llama_perf_context(ctx)
    assert perf.n_p_eval == n and perf.t_p_eval_ms > 0
    mem = lib.llama_get_memory(ctx)
    assert lib.llama_memory_seq_pos_max(mem, 0) == n + 8 and lib.llama_memory_seq_rm(mem, 0, n, -1)
    lib.llama_sampler_free(chain)
    lib.llama_free(ctx)
    lib.llama_model_free(model)


def post(port, path, body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as r:
        return json.load(r)


@test
def serves():
    """The binding's server: a completion, a chat and an embedding."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen([sys.executable, "-m", "llama_cpp.server", "--model", MODEL, "--port", str(port), "--n_ctx", "512",
                                   "--embedding", "true", "--n_threads", "2"], stdout=log, stderr=log)
        try:
            for _ in range(300):
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5) as r:
                        assert len(json.load(r)["data"]) == 1
                    break
                except (urllib.error.URLError, ConnectionError):
                    assert server.poll() is None, "the server has ended"
                    time.sleep(0.2)
            out = post(port, "/v1/completions", {"prompt": PROMPT, "max_tokens": 8, "temperature": 0})
            assert "Paris" in out["choices"][0]["text"], out
            out = post(port, "/v1/chat/completions", {"messages": [{"role": "user", "content": "Name the capital of France."}],
                                                      "max_tokens": 24, "temperature": 0})
            assert "Paris" in out["choices"][0]["message"]["content"], out
            out = post(port, "/v1/embeddings", {"input": "a small cat"})
            assert len(out["data"][0]["embedding"]) > 0, out
        except Exception:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace")[-2000:])
            raise
        finally:
            server.terminate()
            server.wait(20)


passed = failed = 0
for f in tests if len(sys.argv) < 3 else [t for t in tests if t.__name__ in sys.argv[2:]]:
    try:
        f()
        passed += 1
        print("ok   ", f.__name__, flush=True)
    except Exception:
        failed += 1
        print("FAIL ", f.__name__, flush=True)
        traceback.print_exc()
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
