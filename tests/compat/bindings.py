"""Runs llama-cpp-python, installed without its own library, against Lamina's: LLAMA_CPP_LIB_PATH names the folder of the libraries.

usage: LLAMA_CPP_LIB_PATH=build/lib bindings.py MODEL.gguf
The last line is "N passed, N failed".
"""
import ctypes
import math
import sys
import traceback

import llama_cpp
from llama_cpp import Llama, LlamaGrammar

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


passed = failed = 0
for f in tests:
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
