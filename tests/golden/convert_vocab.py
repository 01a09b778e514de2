"""What becomes of a checkpoint's tokenizer files: kinds of vocabulary, added tokens, special tokens, templates for chats, refusals.

usage: convert_vocab.py BUILD_FOLDER [NAME ...]      needs numpy and gguf. The last line is "N passed, N failed".
"""
import base64
import json
import os
import subprocess
import sys
import tempfile

import gguf
import numpy as np

from convert import safetensors, sentencepiece

V = 24
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
WORDS = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "##ing", "world", "##s", ",", "!"]
BPE = {"type": "BPE", "vocab": {c: i for i, c in enumerate("abcdefghij")}, "merges": ["a b", ["c", "d"]]}
PRE = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def added(*rows):
    return [{"id": i, "content": text, "special": special} for i, text, special in rows]


def model(folder, bert=False, n=V):
    e, t = 32, {}
    embd = "embeddings.word_embeddings.weight" if bert else "model.embed_tokens.weight"
    t[embd] = np.zeros((n, e), np.float32)
    if bert:
        t["embeddings.position_embeddings.weight"], t["embeddings.token_type_embeddings.weight"] = np.zeros((16, e), np.float32), np.zeros((2, e), np.float32)
        for n in ("embeddings.LayerNorm", "encoder.layer.0.attention.output.LayerNorm", "encoder.layer.0.output.LayerNorm"):
            t[n + ".weight"] = t[n + ".bias"] = np.ones(e, np.float32)
        for n, shape in (("attention.self.query", (e, e)), ("attention.self.key", (e, e)), ("attention.self.value", (e, e)), ("attention.output.dense", (e, e)), ("intermediate.dense", (e, e)),
                         ("output.dense", (e, e))):
            t[f"encoder.layer.0.{n}.weight"], t[f"encoder.layer.0.{n}.bias"] = np.zeros(shape, np.float32), np.zeros(e, np.float32)
    else:
        t["model.norm.weight"] = np.ones(e, np.float32)
        for n in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"):
            t[f"model.layers.0.{n}.weight"] = np.zeros((e, e), np.float32)
        for n in ("input", "post_attention"):
            t[f"model.layers.0.{n}_layernorm.weight"] = np.ones(e, np.float32)
    safetensors(os.path.join(folder, "model.safetensors"), t, "F32")
    config = {"architectures": ["BertModel" if bert else "LlamaForCausalLM"], "hidden_size": e, "num_hidden_layers": 1, "intermediate_size": e, "num_attention_heads": 4, "max_position_embeddings": 16,
              "rms_norm_eps": 1e-5, "layer_norm_eps": 1e-5, "vocab_size": n, "eos_token_id": [7, 8]}
    json.dump({**config, **({"type_vocab_size": 2} if bert else {})}, open(os.path.join(folder, "config.json"), "w"))


def put(folder, **files):
    for name, content in files.items():
        path = os.path.join(folder, name.replace("__", "."))
        with open(path, "w") as f:
            f.write(content) if isinstance(content, str) else json.dump(content, f)


# ---- cases: write the files, then say what the GGUF must have --------------------------------------------------------------------
def vocab_txt(folder):
    model(folder, True)
    put(folder, vocab__txt="\r\n".join(WORDS) + "\r\n", special_tokens_map__json={"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": {"content": "[SEP]"}, "pad_token": "[PAD]", "mask_token": "[MASK]"})
    mark = "\u2581"
    return {"tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": WORDS[:6] + [mark + "hello", "ing", mark + "world", "s", mark + ",", mark + "!"] + [f"[PAD{i}]" for i in range(12, V)],
            "tokenizer.ggml.token_type": [CONTROL, UNUSED] + [CONTROL] * 4 + [NORMAL] * 6 + [UNUSED] * 12, "tokenizer.ggml.unknown_token_id": 2, "tokenizer.ggml.cls_token_id": 3,
            "tokenizer.ggml.seperator_token_id": 4, "tokenizer.ggml.padding_token_id": 0, "tokenizer.ggml.mask_token_id": 5, "tokenizer.ggml.token_type_count": 2}


def wordpiece(folder):
    model(folder, True)
    put(folder, tokenizer__json={"model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {w: i for i, w in enumerate(WORDS)}}, "added_tokens": added(*((i, w, True) for i, w in enumerate(WORDS[:6])))},
        tokenizer_config__json={"cls_token": "[CLS]", "unk_token": "[UNK]"})
    mark = "\u2581"
    return {"tokenizer.ggml.tokens": WORDS[:6] + [mark + "hello", "ing", mark + "world", "s", mark + ",", mark + "!"] + [f"[PAD{i}]" for i in range(12, V)],
            "tokenizer.ggml.token_type": [CONTROL] * 6 + [NORMAL] * 6 + [UNUSED] * 12, "tokenizer.ggml.cls_token_id": 3, "tokenizer.ggml.unknown_token_id": 2}


def bpe(folder):
    """Added tokens that the model has no rows for are left out; several templates; flags; a template around texts."""
    model(folder)
    put(folder, tokenizer__json={"model": BPE, "pre_tokenizer": PRE, "added_tokens": added((10, "<s>", True), (11, "<tool>", False), (V, "<image>", True)),
                                 "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]}},
        tokenizer_config__json={"bos_token": {"content": "<s>"}, "eos_token": None, "add_eos_token": False,
                                "chat_template": [{"name": "default", "template": "{{ a }}"}, {"name": "tool_use", "template": "{{ b }}"}]})
    return {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": list("abcdefghij") + ["<s>", "<tool>"] + [f"[PAD{i}]" for i in range(12, V)], "tokenizer.ggml.merges": ["a b", "c d"],
            "tokenizer.ggml.token_type": [NORMAL] * 10 + [CONTROL, USER] + [UNUSED] * 12, "tokenizer.ggml.bos_token_id": 10, "tokenizer.ggml.eos_token_id": 7, "tokenizer.ggml.add_bos_token": True,
            "tokenizer.ggml.add_eos_token": False, "tokenizer.chat_template": "{{ a }}", "tokenizer.chat_template.tool_use": "{{ b }}", "tokenizer.chat_templates": ["tool_use"]}


def spm(folder):
    """tokenizer.model, with added_tokens.json as older fine-tunes have it, and a template in a file of its own."""
    model(folder)
    sentencepiece(os.path.join(folder, "tokenizer.model"), 20)
    put(folder, added_tokens__json={"<pad>": 20, "<x>": 3}, tokenizer_config__json={"added_tokens_decoder": {"0": {"content": "<unk>", "special": True}, "21": {"content": "<|im_end|>", "special": True}},
                                                                                "bos_token": "<s>", "eos_token": "<|im_end|>"}, chat_template__jinja="{{ c }}\n")
    return {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>"] + ["\u2581w%d" % i for i in range(3, 20)] + ["<pad>", "<|im_end|>", "[PAD22]", "[PAD23]"],
            "tokenizer.ggml.token_type": [UNKNOWN, CONTROL, CONTROL] + [NORMAL] * 17 + [USER, CONTROL, UNUSED, UNUSED], "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 21,
            "tokenizer.ggml.unknown_token_id": 0, "tokenizer.chat_template": "{{ c }}\n"}


def spm_as_bpe(folder):
    """A sentencepiece model that is only in tokenizer.json."""
    model(folder)
    vocab = {"<unk>": 0, "<0x0A>": 1, "\u2581a": 2, "b": 3}
    put(folder, tokenizer__json={"model": {"type": "BPE", "byte_fallback": True, "vocab": vocab, "merges": []}, "added_tokens": added((0, "<unk>", True), (4, "</s>", True))}, tokenizer_config__json={})
    return {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": list(vocab) + ["</s>"] + [f"[PAD{i}]" for i in range(5, V)], "tokenizer.ggml.token_type": [CONTROL, BYTE, NORMAL, NORMAL, CONTROL] + [UNUSED] * 19}


def unigram(folder):
    model(folder)
    put(folder, tokenizer__json={"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["\u2581a", -1.5], ["b", -2.5]]}, "added_tokens": added((0, "<unk>", True), (3, "</s>", True)),
                                 "pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "always"}}, tokenizer_config__json={"eos_token": "</s>"})
    return {"tokenizer.ggml.model": "t5", "tokenizer.ggml.token_type": [UNKNOWN, NORMAL, NORMAL, CONTROL] + [UNUSED] * 20, "tokenizer.ggml.eos_token_id": 3, "tokenizer.ggml.add_space_prefix": True}


# ---- tiktoken's -----------------------------------------------------------------------------------------------------------------
def join_best(word, ranks):
    """What tiktoken does: of two neighbours, those first that are a token of the lowest rank; of several, the leftmost."""
    parts = [bytes([b]) for b in word]
    while True:
        at = [(ranks[a + b], i) for i, (a, b) in enumerate(zip(parts, parts[1:])) if a + b in ranks]
        if not at:
            return [ranks[p] for p in parts]
        i = min(at)[1]
        parts[i:i + 2] = [parts[i] + parts[i + 1]]


def random_ranks(n, rng):
    """256 bytes in some order, then tokens that join two earlier ones, some of which can be joined in several ways."""
    tokens = [bytes([b]) for b in rng.permutation(256)] + ["é".encode()]
    while len(tokens) < n:
        pool = [b"a", b"b", b"c", b"d", b"e"] + [t for t in tokens[256:] if len(t) < 6]
        t = pool[rng.integers(len(pool))] + pool[rng.integers(len(pool))]
        tokens += [t] * (t not in tokens)
    return {t: i for i, t in enumerate(tokens)}


def ranked(folder, file, pre, n, special, **more):
    rng = np.random.default_rng(3)
    ranks = random_ranks(400, rng)
    model(folder, n=n)
    put(folder, **{file.replace(".", "__"): "".join(f"{base64.b64encode(t).decode()} {i}\n" for t, i in ranks.items())}, **more)
    words = ["".join(rng.choice(list("abcdeé"), rng.integers(1, 30))) for _ in range(400)]
    ids = [i for w in words for i in join_best(w.encode(), ranks) + [ranks[b"\n"]]]
    return {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre, "text": ("\n".join(words) + "\n", ids), "special": special}


def kimi(folder):
    return ranked(folder, "tiktoken.model", "kimi-k2", 403, {400: "[BOS]", 401: "[EOS]"}, tokenizer_config__json={
        "added_tokens_decoder": {"400": {"content": "[BOS]", "special": True}, "401": {"content": "[EOS]", "special": True}}, "bos_token": "[BOS]", "eos_token": "[EOS]"})


def talkie(folder):
    return ranked(folder, "vocab.txt", "talkie", 65540, {65535: "<|endoftext|>", 65536: "<|end|>", 65539: "<|system|>"})


def bad_rank(folder):
    model(folder)
    put(folder, tiktoken__model="YQ== 0\nYg==\n")
    return "'Yg==' is no token in base64 with its rank"


def quantized(folder):
    model(folder)
    with open(os.path.join(folder, "config.json"), "r+") as f:
        d = json.load(f)
        f.seek(0)
        json.dump({**d, "quantization_config": {"quant_method": "gptq", "bits": 4}}, f)
    return "the weights are quantized by gptq"


def other_shape(folder):
    """Matrices of other sides than config.json says."""
    model(folder)
    put(folder, tokenizer__json={"model": BPE, "pre_tokenizer": PRE})
    with open(os.path.join(folder, "config.json"), "r+") as f:
        d = json.load(f)
        f.seek(0)
        json.dump({**d, "intermediate_size": 64}, f)
    return "'model.layers.0.mlp.gate_proj.weight' holds 1024 values for blk.0.ffn_gate.weight"


def no_files(folder):
    model(folder)
    return "holds neither tokenizer.json nor a sentencepiece model"


def other_kind(folder):
    model(folder)
    put(folder, tokenizer__json={"model": {"type": "WordLevel", "vocab": {"a": 0}}})
    return "the kind 'WordLevel' cannot be converted"


def too_many(folder):
    model(folder)
    put(folder, tokenizer__json={"model": {**BPE, "vocab": {f"t{i}": i for i in range(V + 1)}}, "pre_tokenizer": PRE})
    return "but the model has 24 rows for tokens"


CASES = [vocab_txt, wordpiece, bpe, spm, spm_as_bpe, unigram, kimi, talkie, bad_rank, quantized, other_shape, no_files, other_kind, too_many]


def check(lamina, case, folder):
    want, out = case(folder), os.path.join(folder, "out.gguf")
    p = subprocess.run([lamina, "convert", "-q", folder, out], capture_output=True, text=True)
    if isinstance(want, str):
        return None if p.returncode and want in p.stderr else f"said '{p.stderr.strip()[-200:]}'"
    if p.returncode:
        return p.stderr.strip()[-300:]
    fields = gguf.GGUFReader(out).fields
    for i, text in want.pop("special", {}).items():
        if (fields["tokenizer.ggml.tokens"].contents(i), fields["tokenizer.ggml.token_type"].contents(i)) != (text, CONTROL):
            return f"token {i} is not {text}"
    text, ids = want.pop("text", (None, None))
    if text:
        said = subprocess.run([lamina, "tokenize", "-m", out, "--ids", "--no-bos", "-f", "-"], input=text, capture_output=True, text=True)
        if said.returncode or json.loads(said.stdout) != ids:
            return "a text's tokens are others"
    for key, value in want.items():
        got = fields[key].contents() if key in fields else None
        if got != value:
            return f"{key} is {str(got)[:200]}"
    return None


def main():
    lamina, failed, names = os.path.join(sys.argv[1], "bin", "lamina"), 0, sys.argv[2:]
    for case in CASES:
        if names and case.__name__ not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            why = check(lamina, case, folder)
        failed += why is not None
        print(f"{'FAIL' if why else 'ok  '} {case.__name__:24} {why or ''}", flush=True)
    print(f"{len(names or CASES) - failed} passed, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
