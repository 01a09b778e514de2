"""Converts checkpoints of classes whose code only their own repositories have: weights of the numpy cases under the names, in the orders and forms that
this code reads them from.

usage: convert_own.py BUILD_FOLDER [CASE ...]      needs numpy and gguf. The last line is "N passed, N failed".

Each must give back the tensors it was made from, and the logits that numpy computes. PLaMo's and RWKV's vocabularies are files of their own kind, a line
for each token.
"""
import ast
import json
import os
import re
import subprocess
import sys

import gguf
import numpy as np

import checkpoints
import convert
import numpy_ref
from numpy_ref import E, V

LAYER = {**convert.LAYER, "attn_norm_2": None}
COMMON = dict(hidden_size=E, num_hidden_layers=3, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256, vocab_size=V, rms_norm_eps=1e-5)
GPT = dict(n_embd=E, n_layer=3, n_head=4, n_positions=256, layer_norm_epsilon=1e-5, vocab_size=V)


def joined(name, *parts):
    """Parts of one matrix, one below the other."""
    return {p: (name, i, len(parts), np.concatenate) for i, p in enumerate(parts)}


def less(name, x):
    """A norm that is stored less x."""
    return name, lambda w: (w.astype(np.float64) - x).astype(np.float32)


PLAMO = {"output_norm": less("model.norm.weight", 1), "attn_norm": less("pre_mixer_norm.weight", 1), "ffn_norm": less("pre_mlp_norm.weight", 1),
         "post_attention_norm": less("post_mixer_norm.weight", 1 / 5), "post_ffw_norm": less("post_mlp_norm.weight", 1 / 5**1.5), "attn_qkv": "mixer.qkv_proj.weight",
         "attn_output": "mixer.o_proj.weight", "ffn_up": "mlp.gate_up_proj.weight"}
PLAMO2 = {**PLAMO, "attn_q_norm": "mixer.q_weight", "attn_k_norm": "mixer.k_weight", "ssm_in": "mixer.in_proj.weight", "ssm_conv1d": ("mixer.conv1d.weight", lambda w: w[:, None]),
          "ssm_x": "mixer.bcdt_proj.weight", "ssm_dt": "mixer.dt_proj.weight", "ssm_dt.bias": "mixer.dt_bias", "ssm_a": ("mixer.A_log", lambda w: np.log(-w)), "ssm_d": "mixer.D",
          "ssm_dt_norm": "mixer.dt_norm_weight", "ssm_b_norm": "mixer.B_norm_weight", "ssm_c_norm": "mixer.C_norm_weight", "ssm_out": "mixer.out_proj.weight"}
T = lambda w: w.T
RWKV6 = {"token_embd": "rwkv.embeddings.weight", "token_embd_norm": "rwkv.blocks.0.pre_ln.weight", "token_embd_norm.bias": "rwkv.blocks.0.pre_ln.bias",
         "output_norm": "rwkv.ln_out.weight", "output_norm.bias": "rwkv.ln_out.bias", "output": "head.weight", "attn_norm": "ln1.weight", "attn_norm.bias": "ln1.bias",
         "attn_norm_2": "ln2.weight", "attn_norm_2.bias": "ln2.bias", "time_mix_w1": ("attention.time_maa_w1", T), "time_mix_w2": ("attention.time_maa_w2", lambda w: w.swapaxes(1, 2)),
         "time_mix_lerp_x": ("attention.time_maa_x", lambda w: w.reshape(1, 1, E)), "time_mix_lerp_fused": ("attention.time_maa_", "wkvrg"), "time_mix_first": "attention.time_faaaa",
         "time_mix_decay": ("attention.time_decay", lambda w: w.reshape(1, 1, E)), "time_mix_decay_w1": ("attention.time_decay_w1", T), "time_mix_decay_w2": ("attention.time_decay_w2", T),
         **{f"time_mix_{a}": f"attention.{a}.weight" for a in ("key", "value", "receptance", "gate", "output")}, "time_mix_ln": "attention.ln_x.weight", "time_mix_ln.bias": "attention.ln_x.bias",
         **{f"channel_mix_lerp_{a}": (f"feed_forward.time_maa_{a}", lambda w: w.reshape(1, 1, E)) for a in "kr"},
         **{f"channel_mix_{a}": f"feed_forward.{a}.weight" for a in ("key", "value", "receptance")}}
RWKV7 = {"token_embd": "model.embeddings.weight", "token_embd_norm": "model.layers.0.pre_norm.weight", "token_embd_norm.bias": "model.layers.0.pre_norm.bias",
         "output_norm": "model.norm.weight", "output_norm.bias": "model.norm.bias", "attn_norm": "attn_norm.weight", "attn_norm.bias": "attn_norm.bias",
         "attn_norm_2": "ffn_norm.weight", "attn_norm_2.bias": "ffn_norm.bias", **{f"time_mix_{a}{i}": f"attn.{a}_lora.lora.{n}" for a in "wavg" for i, n in ((0, "2.bias"), (1, "0.weight"), (2, "2.weight"))},
         "time_mix_lerp_fused": ("attn.x_", "rwkvag"), "time_mix_k_k": "attn.k_k", "time_mix_k_a": "attn.k_a", "time_mix_r_k": ("attn.r_k", lambda w: w.reshape(4, 16)),
         **{f"time_mix_{a}": f"attn.{n}_proj.weight" for a, n in (("key", "k"), ("value", "v"), ("receptance", "r"), ("output", "o"))}, "time_mix_ln": "attn.g_norm.weight",
         "time_mix_ln.bias": "attn.g_norm.bias", "channel_mix_lerp_k": "ffn.x_k", "channel_mix_key": "ffn.key.weight", "channel_mix_value": "ffn.value.weight"}
JAIS = {"token_embd": ("transformer.wte.weight", lambda w: w / 4), "output": ("lm_head.weight", lambda w: w * 2),
        **{f"{a}{s}": (f"{b}{s or '.weight'}", T if c else lambda w: w) for s in ("", ".bias")
           for a, b, c in (("attn_qkv", "attn.c_attn", not s), ("attn_output", "attn.c_proj", not s), ("ffn_gate", "mlp.c_fc2", not s), ("ffn_up", "mlp.c_fc", not s), ("ffn_down", "mlp.c_proj", not s),
                           ("attn_norm", "ln_1", False), ("ffn_norm", "ln_2", False), ("output_norm", "transformer.ln_f", False))}}
REFACT = {"token_embd": "transformer.wte.weight", "output_norm": "ln_f.weight", "attn_norm": "ln_1.weight", "ffn_norm": "ln_2.weight", "attn_q": "attn.q.weight",
          "attn_output": "attn.c_proj.weight", "ffn_down": "mlp.c_proj.weight", **joined("attn.kv.weight", "attn_k", "attn_v"), **joined("mlp.gate_up_proj.weight", "ffn_gate", "ffn_up")}
COG = {"attn_qkv": "self_attn.language_expert_query_key_value.weight", "attn_output": "self_attn.language_expert_dense.weight",
       "vis_attn_qkv": "self_attn.vision_expert_query_key_value.weight", "vis_attn_output": "self_attn.vision_expert_dense.weight",
       **{f"{k}{a}": f"mlp.{n}_mlp.{a}_proj.weight" for a in ("gate", "up", "down") for k, n in (("ffn_", "language"), ("vis_", "vision"))}}
SPARK = {"token_embd": "model.embedding.weight", **joined("self_attn.q_k_v_proj.weight", "attn_q", "attn_k", "attn_v"), "attn_gate": "self_attn.g_proj.weight",
         "attn_output": "self_attn.out_proj.weight"}
GROK = {"output_norm": "model.norm.scale", "attn_norm": "pre_attn_norm.scale", "attn_output_norm": "post_attn_norm.scale", "ffn_norm": "pre_moe_norm.scale", "layer_output_norm": "post_moe_norm.scale",
        **{f"attn_{a}": f"attn.{a[0]}_proj.weight" for a in ("q", "k", "v", "output")}, "ffn_gate_inp": "moe_block.gate.weight",
        **{f"ffn_{a}_exps": "moe_block.experts.{}." + n + ".weight" for a, n in (("gate", "linear"), ("up", "linear_v"), ("down", "linear_1"))}}
TALKIE = {"token_embd": "embed.weight", "output": "lm_head", **{f"attn_{a}": (f"attn.attn_{n}.weight", lambda w: w.reshape(4, 2, -1, E)[:, ::-1].reshape(w.shape)) for a, n in (("q", "query"), ("k", "key"))},
          "attn_v": "attn.attn_value.weight", "attn_q_norm": ("attn.head_gain.head_g", lambda w: w.ravel()), "attn_output": "attn.attn_resid.weight", "attn_output.scale": "attn_gain.a_g",
          "ffn_gate": "mlp.mlp_gate.weight", "ffn_up": "mlp.mlp_linear.weight", "ffn_down": "mlp.mlp_resid.weight", "ffn_down.scale": "mlp_gain.a_g", "layer_output_scale": "embed_skip.a_g"}
POCKET = {"token_embd": "flow_lm.conditioner.embed.weight", **{f"{a}{s}": f"{b}{s or '.weight'}" for s in ("", ".bias") for a, b in (("output_norm", "flow_lm.out_norm"), ("attn_norm", "norm1"), ("ffn_norm", "norm2"))},
          "attn_qkv": "self_attn.in_proj.weight", "attn_output": "self_attn.out_proj.weight", "ffn_up": "linear1.weight", "ffn_down": "linear2.weight"}


def score(name):
    """A norm's weights and a projection's, which are used multiplied."""
    return name, lambda w: {"norm.weight": 1 + 0.3 * np.cos(np.arange(E)), "proj.weight": (w / (1 + 0.3 * np.cos(np.arange(E))))[None]}


def kv_b(parts):
    """A head's keys, then its values."""
    k, v = parts
    return np.concatenate([k.swapaxes(1, 2), v], 1).reshape(-1, v.shape[-1])


BLOCK = "block_sparse_moe."
KIMI = {"output_res_score": score("model.output_attn_res_"), "attn_res_score": score("self_attention_res_"), "ffn_res_score": score("mlp_res_"),
        "attn_k_b": ("self_attn.kv_b_proj.weight", 0, 2, kv_b), "attn_v_b": ("self_attn.kv_b_proj.weight", 1, 2, kv_b), "attn_q_a": "self_attn.q_a_proj.weight", "attn_q_a_norm": "self_attn.q_a_layernorm.weight", "attn_q_b": "self_attn.q_b_proj.weight",
        "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa.weight", "attn_kv_a_norm": "self_attn.kv_a_layernorm.weight", "attn_gate": "self_attn.g_proj.weight", "ssm_g": "self_attn.g_proj.weight",
        "ssm_a": ("self_attn.A_log", lambda w: np.append(np.log(-w), np.zeros(4))), "ssm_dt.bias": "self_attn.dt_bias", "ssm_beta": "self_attn.b_proj.weight", "ssm_norm": "self_attn.o_norm.weight",
        **{f"ssm_f_{a}": f"self_attn.f_{a}_proj.weight" for a in "ab"}, **{f"ssm_conv1d_{a}": (f"self_attn.{a}_conv1d.weight", lambda w: w[:, None]) for a in "qkv"},
        "ffn_gate_inp": BLOCK + "gate.weight", "exp_probs_b.bias": BLOCK + "gate.e_score_correction_bias", **{f"ffn_{a}_exps": BLOCK + "experts.{}." + n + ".weight" for a, n in (("gate", "w1"), ("down", "w2"), ("up", "w3"))},
        **{f"ffn_{a}_shexp": BLOCK + f"shared_experts.{a}_proj.weight" for a in ("gate", "up", "down")}, "ffn_routed_down": BLOCK + "routed_expert_down_proj.weight",
        "ffn_routed_up": BLOCK + "routed_expert_up_proj.weight", "ffn_routed_norm": BLOCK + "routed_expert_norm.weight"}
LINEAR = dict(kda_layers=[1, 3], full_attn_layers=[2], head_dim=16, num_heads=4, short_conv_kernel_size=4, use_full_rank_gate=True)
K3 = dict(COMMON, num_key_value_heads=4, q_lora_rank=24, kv_lora_rank=32, qk_nope_head_dim=12, qk_rope_head_dim=8, v_head_dim=16, num_experts=6, num_experts_per_token=3, moe_intermediate_size=96, num_shared_experts=1,
          first_k_dense_replace=1, moe_renormalize=True, moe_router_activation_func="sigmoid", routed_scaling_factor=2.5, routed_expert_hidden_size=32, latent_moe_use_norm=True, hidden_act="situ", activation_situ_beta=4.0,
          mla_use_nope=True, mla_use_output_gate=True)
HALVES = {"attn_q": ("self_attn.q_proj.weight", lambda w: convert.halves(w, 4)), "attn_k": ("self_attn.k_proj.weight", lambda w: convert.halves(w, 2))}
# the class, the prefix of a layer, names, config.json beside the usual, the vocabulary's kind
CASES = {
    "plamo2": ("Plamo2ForCausalLM", "model.layers.layers.", PLAMO2, dict(COMMON, hidden_size_per_head=16, mamba_step=2, mamba_d_conv=4, mamba_d_state=16, mamba_num_heads=8), "plamo"),
    "plamo3-own": ("Plamo3ForCausalLM", "model.layers.layers.", {**PLAMO, "attn_q_norm": less("mixer.q_norm.weight", 1), "attn_k_norm": less("mixer.k_norm.weight", 1)},
                   dict(COMMON, head_dim=32, window_size=8, sliding_window_pattern=2, rope_theta=10000.0, rope_local_theta=500.0), "plamo"),
    "rwkv6-ranks": ("Rwkv6ForCausalLM", "rwkv.blocks.", RWKV6, dict(COMMON, head_size=16, attention_hidden_size=E, layer_norm_epsilon=1e-5, rescale_every=2), "rwkv"),
    "rwkv7": ("RWKV7ForCausalLM", "model.layers.", RWKV7, dict(COMMON, num_attention_heads=None, num_heads=4, head_dim=16, norm_eps=1e-5, decay_low_rank_dim=8, a_low_rank_dim=6, v_low_rank_dim=4, gate_low_rank_dim=10), "rwkv"),
    "nanbeige-loops": ("NanbeigeForCausalLM", "model.layers.", HALVES, dict(COMMON, rope_theta=10000.0, loop_loss_weights=[0.5]), "json"),
    "maincoder-gqa": ("MaincoderForCausalLM", "model.layers.", {f"ffn_{a}": f"feed_forward.{a}_proj.weight" for a in ("gate", "up", "down")},
                      dict(COMMON, intermediate_size=32, intermediate_size_mlp=96, head_dim=32, rope_theta=10000.0), "json"),
    "spark2_5-own": ("Spark2_5ForCausalLM", "model.layers.", SPARK, dict(COMMON, head_dim=16, sliding_window=8, layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                     rope_parameters={"full_attention": {"rope_theta": 10000.0, "partial_rotary_factor": 1.0}, "sliding_attention": {"rope_theta": 500.0, "partial_rotary_factor": 0.5}}), "json"),
    "jais": ("JAISLMHeadModel", "transformer.h.", JAIS, dict(GPT, n_inner=96, activation_function="swiglu", position_embedding_type="alibi", embeddings_scale=4.0, mup_output_alpha=2.0, mup_width_scale=0.25), "json"),
    "refact-mqa": ("GPTRefactForCausalLM", "transformer.h.", REFACT, dict(GPT, multi_query=True), "json"),
    "cogvlm": ("CogVLMForCausalLM", "model.layers.", COG, dict(COMMON, num_key_value_heads=None), "json"),
    "kimi-k3": ("KimiK3ForConditionalGeneration", "model.layers.", KIMI, dict(text_config=dict(K3, attn_res_block_size=2, activation_situ_linear_beta=25.0, linear_attn_config=dict(LINEAR, gate_lower_bound=-5.0))), "json"),
    "kimi-k3-each-layer": ("KimiLinearForCausalLM", "model.layers.", KIMI, dict(K3, attn_res_block_size=1, activation_situ_linear_beta=None, linear_attn_config=LINEAR), "json"),
    "maple": ("MapleForCausalLM", "model.layers.", {"token_embd": "model.word_embeddings.weight"}, dict(COMMON, head_dim=16, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=40, sliding_window=8, rope_theta=10000,
              partial_rotary_factor=0.5, layer_types=["sliding_attention", "full_attention", "sliding_attention"], nope_on_global_attention=True, norm_topk_prob=True, num_shared_experts=0, use_qk_norm=True), "json"),
    "talkie": ("TalkieForCausalLM", "blocks.", TALKIE, dict(n_layer=3, n_head=4, n_embd=E, head_dim=16, vocab_size=V, rope_base=10000.0, max_seq_len=256, model_type="talkie"), "json"),
    "talkie-gain-inside": ("TalkieForCausalLM", "model.blocks.", {**TALKIE, "token_embd": "model.embed.weight", "output": "lm_head.weight"}, dict(COMMON, head_dim=16, num_key_value_heads=None, rope_theta=10000.0), "json"),
    "pockettts": (None, "flow_lm.transformer.layers.", POCKET, {}, "model"),
    "grok-own": ("Grok1ModelForCausalLM", "model.layers.", GROK, dict(COMMON, num_key_value_heads=4, num_experts=8, num_experts_per_tok=3, rope_theta=10000.0, embedding_multiplier_scale=3.0,
                 output_multiplier_scale=2.0, attn_output_multiplier=0.2, attn_logit_softcapping=5.0), "json"),
}
# tensors beside those that the file takes
BESIDE = {"jais": {"transformer.relative_pe.slopes": np.ones(4)}, "talkie": {"lm_head_gain.w_g": np.full(1, 1.75)}, "pockettts": {"flow_lm.bos_emb": np.ones(32), "mimi.downsample.conv.conv.weight": np.ones((2, 2, 3))},
          "kimi-k3": {"vision_tower.patch_embed.proj.weight": np.ones((2, 3, 2, 2, 2)), "mm_projector.proj.0.weight": np.ones((8, 8))}}


def split(base, rule, w):
    """What one tensor of the file is in the checkpoint: {name: array}."""
    if isinstance(rule, tuple) and isinstance(rule[1], str):  # one letter each
        return {rule[0] + a: x.reshape(1, 1, -1) for a, x in zip(rule[1], w)}
    name, fn = rule if isinstance(rule, tuple) else (rule, lambda x: x)
    w = fn(w)
    if isinstance(w, dict):
        return {name + k: x.astype(np.float32) for k, x in w.items()}
    w = w.astype(np.float32)
    return {name.format(i): x for i, x in enumerate(w)} if "{}" in name else {name: w}


def checkpoint(m, prefix, names):
    out, parts = {}, {}
    for full, w in m.w.items():
        part = re.fullmatch(r"(?:blk\.(\d+)\.)?(.+?)(\.weight)?", full)
        il, base = part[1], part[2]
        at = lambda name: name if il is None or name.startswith("rwkv.blocks.0.") else f"{prefix}{il}.{name}"
        rule = names.get(base)
        if rule is None:
            root, bias = (base[:-5], ".bias") if base.endswith(".bias") else (base, ".weight")
            rule = LAYER[root] + bias
        if base.startswith("time_mix_v") and il == "0" and base[-1] in "012":  # the first layer mixes in no values
            continue
        if isinstance(rule, tuple) and len(rule) == 4:
            parts.setdefault((at(rule[0]), *rule[2:]), {})[rule[1]] = w
            continue
        out.update({at(k): x for k, x in split(base, rule, w).items()})
    for (name, n, combine), p in parts.items():
        out[name] = combine([p[i] for i in range(n)])
    return out


def packed_experts(m, tensors):
    """Experts as Kimi K3 is published: 4 bits and scales of 32 values. The model's weights become what those say."""
    for full, w in m.w.items():
        if "_exps" in full:
            m.w[full] = checkpoints.to_mxfp4(w)[2]
    for name in [n for n in tensors if ".experts." in n]:
        blocks, scales, _ = checkpoints.to_mxfp4(tensors.pop(name))
        tensors.update({name + "_packed": blocks.reshape(len(blocks), -1), name + "_scale": scales})


# ---- vocabularies ---------------------------------------------------------------------------------------------------------------
def write_vocabulary(folder, kind):
    """The tokens that the file must hold, or None where convert.py's tests see to them."""
    if kind in ("json", "model"):
        convert.tokenizer(folder, V, kind)
        return None
    if kind == "plamo":
        rows = [["<|plamo:unk|>", 0.0, "UNKNOWN"], ["<|plamo:bos|>", 0.0, "CONTROL"], *[[f"<0x{i:02X}>", 0.0, "BYTE"] for i in range(32)]]
        rows += [[f"語{i}\n", -0.5 * i, "NORMAL", 1] for i in range(V - len(rows))]
        with open(os.path.join(folder, "tokenizer.jsonl"), "w") as f:
            f.writelines(json.dumps(r, ensure_ascii=i % 2 == 0) + "\n" for i, r in enumerate(rows))
        json.dump({"bos_token": "<|plamo:bos|>", "unk_token": "<|plamo:unk|>"}, open(os.path.join(folder, "tokenizer_config.json"), "w"))
        return [(r[0].encode(), r[1], {"UNKNOWN": 2, "CONTROL": 3, "BYTE": 6, "NORMAL": 1}[r[2]]) for r in rows]
    tokens = [bytes([i]) for i in range(32)] + ["\n\n", "'", '"', "it's", 'a "b"', "\\", "\\n", "é", "語", "\u2028", "😀", b"\xe8\xaa", b"\xf0'\"", "\x7f", "\t\t", " ok"]
    tokens += [f"w{i}" for i in range(V - 1 - len(tokens))]
    with open(os.path.join(folder, "rwkv_vocab_v20230424.txt"), "w") as f:
        f.writelines(f"{i + 1} {t!r} {len(t if isinstance(t, bytes) else t.encode())}\n" for i, t in enumerate(tokens))
    return [(b"<s>", 0, 3)] + [(t if isinstance(t, bytes) else t.encode(), 0, 1) for t in tokens]


def vocabulary_differs(reader, tokens, kind):
    get = lambda name: reader.fields["tokenizer.ggml." + name].contents()
    texts = get("tokens")
    if kind == "rwkv":
        texts = [texts[0].encode()] + [ast.literal_eval("b'" + t.replace("'", "\\'") + "'") for t in texts[1:]]
        if texts[get("eot_token_id")] != b"\n\n" or reader.fields["tokenizer.chat_template"].contents() != "rwkv-world":
            return "the end of a turn is not known"
    else:
        texts = [t.encode() for t in texts]
        if not np.allclose(get("scores"), [s for _, s, _ in tokens]):
            return "the scores differ"
    if get("model") != {"rwkv": "rwkv", "plamo": "plamo2"}[kind]:
        return "the vocabulary is of another kind"
    if texts != [t for t, _, _ in tokens]:
        return "token %d differs" % next(i for i, (a, b) in enumerate(zip(texts, tokens)) if a != b[0])
    return None if list(get("token_type")) == [k for _, _, k in tokens] else "the tokens' types differ"


# ---- a case ---------------------------------------------------------------------------------------------------------------------
def check(lamina, lib, name, tmp):
    cls, prefix, names, config, kind = CASES[name]
    arch, fn, keys, o, *_ = numpy_ref.CASES[name]
    m = sys.modules["numpy_hybrid"].Hybrid(arch, 7, **keys)
    toks = np.array([(7 + 37 * i) % V for i in range(24)])
    fn(m, toks, None, o)  # makes the weights
    tensors = checkpoint(m, prefix, names)
    tensors.update({k: x.astype(np.float32) for k, x in BESIDE.get(name, {}).items()})
    if name == "kimi-k3":
        packed_experts(m, tensors)
        tensors = {"language_model." * (not k.startswith(("vision", "mm_"))) + k: x for k, x in tensors.items()}
    checkpoints.write_safetensors(os.path.join(tmp, "model.safetensors"), tensors)
    if cls:
        json.dump({"architectures": [cls], **config}, open(os.path.join(tmp, "config.json"), "w"))
    tokens = write_vocabulary(tmp, kind)
    out = os.path.join(tmp, "out.gguf")
    p = subprocess.run([lamina, "convert", "--outtype", "f32", tmp, out], capture_output=True, text=True)
    if p.returncode:
        return p.stderr.strip()[-300:]
    said = [s for s in p.stderr.splitlines() if "left out" in s]
    if said:
        return said[0]
    reader = gguf.GGUFReader(out)
    got = {t.name: np.array(t.data) for t in reader.tensors}
    for k, v in keys.items():
        field = reader.fields.get(f"{arch}.{k}")
        if field and np.shape(field.contents()) == np.shape(v) and not np.allclose(field.contents(), v, atol=2e-5):  # Talkie's epsilon is its type's own
            return f"{k} is {field.contents()}"
    for k, w in m.w.items():
        part = re.fullmatch(r"(.*\.attn_)([qkv])(\.weight)", k)
        if part and part[1] + "qkv" + part[3] in got:
            continue  # one matrix here and there
        if re.fullmatch(r"blk\.0\.time_mix_v[012]\.weight", k):
            continue
        if k not in got:
            return f"{k} is missing"
        if not np.allclose(got[k].ravel(), w.ravel(), rtol=1e-5, atol=1e-6):
            return f"{k} differs"
    why = vocabulary_differs(reader, tokens, kind) if tokens else None
    if why:
        return why
    r = numpy_ref.Runner(lib, out, numpy_ref.NONE, False)
    try:
        e = numpy_ref.nmse(r.feed([(t, i, 0) for i, t in enumerate(toks)], V), fn(m, toks, None, o))
    finally:
        r.close()
    return None if e <= 1e-7 else f"logits differ by {e:.2e}"


def main():
    build, wanted = sys.argv[1], sys.argv[2:]
    lamina, lib = os.path.join(build, "bin", "lamina"), numpy_ref.open_library(os.path.join(build, "lib"))
    numpy_ref.report(wanted or CASES, lambda name, tmp: check(lamina, lib, name, tmp))


if __name__ == "__main__":
    numpy_ref.load_cases()
    main()
