// Names of encoders, and of encoders with decoders. Included by config.c alone, after names.h.
#pragma once

#include "convert/names.h"

// decoder: self attention, cross attention, feed forward; encoder: the second is the feed forward
#define NAMES_T5                                                                                                            \
    N(token_embd, "shared|encoder.embed_tokens"), N(enc_output_norm, "encoder.final_layer_norm"),                           \
        N(attn_norm, "layer.0.layer_norm"), N(attn_q, "layer.0.SelfAttention.q"), N(attn_k, "layer.0.SelfAttention.k"),     \
        N(attn_v, "layer.0.SelfAttention.v"), N(attn_output, "layer.0.SelfAttention.o"),                                    \
        N(attn_rel_b, "layer.0.SelfAttention.relative_attention_bias"),                                                     \
        N(ffn_norm, "layer.2.layer_norm|layer.1.layer_norm"),                                                               \
        N(ffn_gate, "layer.2.DenseReluDense.wi_0|layer.1.DenseReluDense.wi_0"),                                             \
        N(ffn_up,                                                                                                           \
          "layer.2.DenseReluDense.wi_1|layer.2.DenseReluDense.wi|layer.1.DenseReluDense.wi_1|layer.1.DenseReluDense.wi"),   \
        N(ffn_down, "layer.2.DenseReluDense.wo|layer.1.DenseReluDense.wo")

static const struct ckpt_name names_t5[] = {
    NAMES_T5,
    // a tied head divides by the root of the width, which files don't know: config_prepare says by what
    NO(output, "lm_head|shared", "*tied_head_scale"),
    N(dec_output_norm, "decoder.final_layer_norm"),
    N(cross_attn_norm, "layer.1.layer_norm"),
    N(cross_attn_q, "layer.1.EncDecAttention.q"),
    N(cross_attn_k, "layer.1.EncDecAttention.k"),
    N(cross_attn_v, "layer.1.EncDecAttention.v"),
    N(cross_attn_o, "layer.1.EncDecAttention.o"),
    END,
};

static const struct ckpt_name names_t5encoder[] = {NAMES_T5, END};

// positions begin behind the padding token's
static const struct ckpt_name names_roberta[] = {
    NV(position_embd, "embeddings.position_embeddings", "C+2[2:C+2],E"),
    N(cls, "classifier.dense"),
    N(cls_out, "classifier.out_proj"),
    END,
};

static const struct ckpt_name names_bert[] = {N(cls, "bert.pooler.dense"), N(cls_out, "classifier"), END};

static const struct ckpt_name names_modern_bert[] = {
    N(token_embd, "embeddings.tok_embeddings|model.embeddings.tok_embeddings"),
    N(token_embd_norm, "embeddings.norm|model.embeddings.norm"),
    N(output_norm, "final_norm|model.final_norm"),
    N(attn_norm, "attn_norm"),
    N(attn_qkv, "attn.Wqkv"),
    N(attn_output, "attn.Wo"),
    N(ffn_norm, "mlp_norm"),
    N(ffn_up, "mlp.Wi"),
    N(ffn_down, "mlp.Wo"),
    N(cls, "head.dense"),
    N(cls_norm, "head.norm"),
    N(cls_out, "classifier"),
    END,
};

#define NAMES_NOMIC                                                                                                         \
    N(token_embd, "embeddings.word_embeddings"), N(token_types, "embeddings.token_type_embeddings"),                        \
        N(token_embd_norm, "emb_ln"), N(attn_qkv, "attn.Wqkv|mixer.Wqkv"), N(attn_output, "attn.out_proj|mixer.out_proj"),  \
        N(attn_output_norm, "norm1"), N(layer_output_norm, "norm2"), N(ffn_down, "mlp.fc2")

// fc11 is multiplied with what fc12 activates
static const struct ckpt_name names_nomic[] = {NAMES_NOMIC, N(ffn_up, "mlp.fc11"), N(ffn_gate, "mlp.fc12"), END};
static const struct ckpt_name names_nomic_moe[] = {
    NAMES_NOMIC,
    N(ffn_up, "mlp.fc1"),
    N(ffn_gate_inp, "mlp.router.layer"),
    NV(ffn_up_exps, "mlp.experts.mlp.w1!", "X,F,E"),
    NV(ffn_down_exps, "mlp.experts.mlp.w2!", "X,F,E > 021"),
    END,
};
static const struct ckpt_name names_jina_v2[] = {
    N(token_embd, "embeddings.word_embeddings"),
    N(token_types, "embeddings.token_type_embeddings"),
    N(token_embd_norm, "embeddings.LayerNorm"),
    N(attn_q, "attention.self.query"),
    N(attn_k, "attention.self.key"),
    N(attn_v, "attention.self.value"),
    N(attn_output, "attention.output.dense"),
    N(attn_output_norm, "attention.output.LayerNorm"),
    N(ffn_up, "mlp.gated_layers"),
    N(ffn_down, "mlp.wo"),
    N(layer_output_norm, "mlp.layernorm"),
    END,
};

static const struct ckpt_name names_jina_v3[] = {NAMES_NOMIC, N(ffn_up, "mlp.fc1"), END};
