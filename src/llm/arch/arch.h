// An architecture is three tables and a function: which keys its files have, which tensors, what is peculiar, and how one layer is
// computed. Loader, saver, quantizer, converter and the tests read the same tables. docs/add-arch.md shows how to add one.
#pragma once

#include "block/block.h"
#include "gguf.h"

#define REQ NULL  // as a default: the key must be there

// ---- keys -----------------------------------------------------------------------------------------------------------
enum key_flag {
    KEY_ZERO_ABSENT = 1,  // a stored 0 counts as absent
    KEY_FIRST = 2,        // an array gives only its first entry, for all layers
    KEY_GLOBAL = 4,       // the key has no "<arch>." prefix
    KEY_COUNT = 16,       // an array of strings (labels) stands for its length
    KEY_ARRAY = 8,        // a short array of its own (rope sections): entry i goes to place i
};
struct arch_key {
    const char *key;      // without "<arch>."
    enum hp_field field;  // per-layer fields take a scalar or an array of L entries
    const char *def;      // expression for the default, REQ if there is none
    unsigned flags;
};

// ---- tensors --------------------------------------------------------------------------------------------------------
enum tensor_flag {
    T_OPT = 1,         // the weight may be missing
    T_BIAS = 2,        // ".bias" must be there too
    T_BIAS_OPT = 4,    // ".bias" may be there
    T_SCALE = 8,       // ".scale" may be there and is applied
    T_NO_SUFFIX = 16,  // the name has no ".weight"
    T_BIAS_ONLY = 32,  // only the bias exists; w stays NULL
    T_ENC = 64,        // "enc.blk.N." and goes to the encoder's layers
    T_DEC = 128,       // "dec.blk.N." instead of "blk.N."
    T_EACH = 256,      // one in every layer of the file, those of a draft head included
};
struct arch_tensor {
    enum slot slot;     // layer or global, as the slot is
    const char *shape;  // "E,H*D"; "?" fits any length; ones are ignored when comparing
    unsigned flags;
    const char *when;  // expression per layer: the row applies where it is not 0; NULL: everywhere
    enum slot unless;  // the weight is not looked for where this slot was found (its optional bias still is)
    const char *name;  // GGUF name instead of the slot's
    const char *hf;    // checkpoint name instead of the slot's
};

enum arch_flag {
    ARCH_ENCODER = 1,          // bidirectional, no cache, no logits: states or pooled states
    ARCH_ENCODER_DECODER = 2,  // llama_encode runs enc, llama_decode the layers
    ARCH_DIFFUSION = 4,        // bidirectional, no cache, logits
    ARCH_HF_PERMUTED = 8,      // NORM pairing, while checkpoints pair as NEOX: q and k rows are permuted when converting
    ARCH_SWA_DIMS = 16,        // head sizes and rotary dims of windowed layers are the _swa ones, layer by layer
    ARCH_SWA_ROT = 128,        // only their rotary dims
    ARCH_NO_LOGITS = 32,
    ARCH_NO_SNAPSHOTS = 256,   // its recurrences give only their last state: n_rs_seq has no effect
    ARCH_PLAIN_HEAD = 512,     // head_fn does nothing to logits that the default head does not: draft heads end as that does
    ARCH_COARSE = 1024,        // mixtures leave more of it at their own type, but not the output matrix
    ARCH_FINER_VALUES = 2048,  // with 80 layers and shared key heads mixtures give the values of attention more bits
    ARCH_HYBRID = 64,          // some layers recurrent, or both mixers in one
};

struct model_build;  // what setup may ask for: see arch_key_* below

struct arch {
    const char *name;
    unsigned flags;
    enum llama_rope_type rope;
    const struct arch_key *keys;        // ends with {NULL}
    const struct arch_tensor *tensors;  // ends with {SLOT_NONE}
    enum norm norm;                     // of the final norm; says which eps key is required
    float embd_scale;                   // tokens' rows times this; 0: none
    struct head_opts head;              // logits: what the default end does
    // Values per position and layer, as expressions; NULL: "K*D", "K*Dv", none, in layers that are not recurrent.
    const char *cache_k, *cache_v, *cache_x;
    // Values of the recurrent states in recurrent layers (is_recr); NULL: none.
    const char *state_r, *state_s;
    int nodes;  // graph nodes per layer at most; 0: 64
    // After the keys: derived values, checks. May be NULL.
    enum err (*setup)(struct hparams *hp, const struct model_build *b);
    // One layer: x [E, T] -> [E, T].
    struct ggml_tensor *(*layer)(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il);
    // Instead of token rows, and instead of norm and logits; NULL: the defaults above.
    struct ggml_tensor *(*embed)(struct graph *g);
    void (*head_fn)(struct graph *g, struct ggml_tensor *x);
    // Instead of all of it (encoders with decoders, loops over layers).
    void (*build)(struct graph *g);
    // The pooled rows' way on (rank heads, dense layers): x [E, n_seqs]. NULL: as they are.
    struct ggml_tensor *(*pooled)(struct graph *g, struct ggml_tensor *x, enum llama_pooling_type kind);
};

// All architectures, and by name (NULL: unknown).
int arch_count(void);
const struct arch *arch_at(int i);
const struct arch *arch_by_name(const char *name);

// Keys and shapes of the file that setup may look into.
struct model_build {
    const struct arch *arch;
    const struct gguf_context *meta;
    bool (*has_tensor)(const struct model_build *b, const char *name);
    void *ud;
    bool vocab_only;  // a file that lacks a required key describes no model, only its vocabulary: all fields stay 0
};
bool arch_has_key(const struct model_build *b, const char *suffix);
// An array key of integers or a scalar; *n entries, -1 if the key is absent.
MUST_USE enum err arch_key_ints(const struct model_build *b, const char *suffix, int64_t *out, int n_max, int *n);
const char *arch_key_str(const struct model_build *b, const char *suffix);  // NULL: absent or no string

// Reads the common keys and the architecture's own, then derives the rest. n_vocab is the vocabulary's size.
MUST_USE enum err arch_read_keys(struct hparams *hp, const struct model_build *b, int n_vocab);

// Draft heads (nextn.c): the rows of their layers besides the architecture's own; whether this model's can be run; the graph of one.
extern const struct arch_tensor arch_nextn_tensors[];
bool arch_can_nextn(const struct arch *a, const struct hparams *hp);
void arch_build_nextn(const struct arch *a, struct graph *g);

// For setup. Windows: kind of window, layers by the key attention.sliding_window_pattern (a scalar replaces n, an array the pattern), else
// period n: layer i is windowed iff i mod n < n - 1, or with first iff i mod n != 0. Does nothing if hp->n_swa <= 0.
MUST_USE enum err arch_windows(struct hparams *hp, const struct model_build *b, enum attn_window kind, int n, bool first);
// Only the first n layers have keys and values of their own: the others read the cache of layer n - 2 if windowed, n - 1 if not.
MUST_USE enum err arch_share_kv(struct hparams *hp, const struct model_build *b, int n);
// Recurrent layers: those with n_head_kv == 0; or by attention.recurrent_layers, else all but every n-th.
void arch_recurrent_by_kv(struct hparams *hp);
// Models of latent and Kimi delta attention: recurrent by n_head_kv; all layers have the first one's heads.
MUST_USE enum err arch_kda(struct hparams *hp, const struct model_build *b);
MUST_USE enum err arch_recurrent_by_key(struct hparams *hp, const struct model_build *b, int n);
// All of a head rotates; the sentence names the keys that say otherwise.
MUST_USE enum err arch_whole_rotary(const struct hparams *hp, const struct model_build *b);
MUST_USE enum err arch_require(bool ok, const struct model_build *b, const char *what);

// Builds the graph for g->n into g->gf.
void arch_build(const struct arch *a, struct graph *g);
// Most nodes that a graph of this model can have.
int arch_max_nodes(const struct arch *a, const struct hparams *hp);

// ---- rows that many tables share --------------------------------------------------------------------------------------
#define K_RMS                                                                                                               \
    { "attention.layer_norm_rms_epsilon", HP_eps, REQ, 0 }
#define K_LN                                                                                                                \
    { "attention.layer_norm_epsilon", HP_eps, REQ, 0 }
#define K_SWA                                                                                                               \
    { "attention.sliding_window", HP_n_swa, "0", 0 }
#define K_SWA_REQ                                                                                                           \
    { "attention.sliding_window", HP_n_swa, REQ, 0 }
#define K_ROPE_SWA(def)                                                                                                     \
    { "rope.freq_base_swa", HP_rope_base_swa, def, 0 }
#define K_SECTIONS(def)                                                                                                     \
    { "rope.dimension_sections", HP_rope_sections, def, KEY_ARRAY }
#define K_LEAD                                                                                                              \
    { "leading_dense_block_count", HP_n_layer_dense_lead, "0", 0 }
#define K_FX(def)                                                                                                           \
    { "expert_feed_forward_length", HP_n_ff_exp, def, KEY_FIRST }
#define K_FX_OR(def)                                                                                                        \
    { "expert_feed_forward_length", HP_n_ff_exp, def, KEY_FIRST | KEY_ZERO_ABSENT }
#define K_FS(def)                                                                                                           \
    { "expert_shared_feed_forward_length", HP_n_ff_shexp, def, KEY_ZERO_ABSENT }
#define K_NSH(def)                                                                                                          \
    { "expert_shared_count", HP_n_expert_shared, def, 0 }
#define K_WSCALE                                                                                                            \
    { "expert_weights_scale", HP_expert_weights_scale, "0", 0 }
#define K_WNORM                                                                                                             \
    { "expert_weights_norm", HP_expert_weights_norm, "0", 0 }
#define K_GATING(def)                                                                                                       \
    { "expert_gating_func", HP_expert_gating, def, KEY_ZERO_ABSENT }
#define K_SSM                                                                                                               \
    {"ssm.conv_kernel", HP_ssm_conv, REQ, 0}, {"ssm.inner_size", HP_ssm_inner, REQ, 0},                                     \
        {"ssm.state_size", HP_ssm_state, REQ, 0}, {                                                                         \
        "ssm.time_step_rank", HP_ssm_dt_rank, REQ, 0                                                                        \
    }
#define K_SSM_GROUP                                                                                                         \
    { "ssm.group_count", HP_ssm_group, REQ, 0 }

#define T_EMBD                                                                                                              \
    { SLOT_token_embd, "E,V", 0, 0, 0, 0, 0 }
#define T_OUT_NORM                                                                                                          \
    { SLOT_output_norm, "E", 0, 0, 0, 0, 0 }
#define T_OUT_NORM_B                                                                                                        \
    { SLOT_output_norm, "E", T_BIAS, 0, 0, 0, 0 }
#define T_OUT_TIED                                                                                                          \
    { SLOT_output, "E,V", T_OPT, 0, 0, 0, 0 }  // "tied?": token_embd where it is missing
#define T_OUT_OWN                                                                                                           \
    { SLOT_output, "E,V", 0, 0, 0, 0, 0 }
// The qkv-set with shapes by H, K, D, Dv and widths for q as given; biases and scales where the file has them.
#define T_QKV_SHAPED(qkv, q, k, v)                                                                                          \
    {SLOT_attn_qkv, qkv, T_OPT | T_BIAS_OPT | T_SCALE, 0, 0, 0, 0},                                                         \
        {SLOT_attn_q, q, T_BIAS_OPT | T_SCALE, 0, SLOT_attn_qkv, 0, 0},                                                     \
        {SLOT_attn_k, k, T_BIAS_OPT | T_SCALE, 0, SLOT_attn_qkv, 0, 0}, {                                                   \
        SLOT_attn_v, v, T_BIAS_OPT | T_SCALE, 0, SLOT_attn_qkv, 0, 0                                                        \
    }
#define T_QKV T_QKV_SHAPED("E,H*D+K*D+K*Dv", "E,H*D", "E,K*D", "E,K*Dv")
// The same in layers where cond holds.
#define T_QKV_WHEN(cond)                                                                                                    \
    {SLOT_attn_qkv, "E,H*D+K*D+K*Dv", T_OPT | T_BIAS_OPT | T_SCALE, cond, 0, 0, 0},                                         \
        {SLOT_attn_q, "E,H*D", T_BIAS_OPT | T_SCALE, cond, SLOT_attn_qkv, 0, 0},                                            \
        {SLOT_attn_k, "E,K*D", T_BIAS_OPT | T_SCALE, cond, SLOT_attn_qkv, 0, 0}, {                                          \
        SLOT_attn_v, "E,K*Dv", T_BIAS_OPT | T_SCALE, cond, SLOT_attn_qkv, 0, 0                                              \
    }
#define T_O                                                                                                                 \
    { SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0 }
#define T_O_WHEN(cond)                                                                                                      \
    { SLOT_attn_output, "H*Dv,E", T_SCALE, cond, 0, 0, 0 }
#define T_QK_NORM                                                                                                           \
    {SLOT_attn_q_norm, "D", 0, 0, 0, 0, 0}, { SLOT_attn_k_norm, "D", 0, 0, 0, 0, 0 }
#define T_NORM(slot)                                                                                                        \
    { SLOT_##slot, "E", 0, 0, 0, 0, 0 }
#define T_NORM_B(slot)                                                                                                      \
    { SLOT_##slot, "E", T_BIAS, 0, 0, 0, 0 }
#define T_FFN_ANY(fl, cond)                                                                                                 \
    {SLOT_ffn_gate, "E,F", fl, cond, 0, 0, 0}, {SLOT_ffn_up, "E,F", fl, cond, 0, 0, 0}, {                                   \
        SLOT_ffn_down, "F,E", fl, cond, 0, 0, 0                                                                             \
    }
#define T_FFN T_FFN_ANY(0, 0)
#define T_FFN_WHEN(cond) T_FFN_ANY(0, cond)
#define T_ROPE_FREQS                                                                                                        \
    { SLOT_rope_freqs, "R/2", T_OPT | T_EACH, 0, 0, 0, 0 }
#define T_ROPE_LONG                                                                                                         \
    {SLOT_rope_factors_long, "R/2", T_OPT, 0, 0, 0, 0}, { SLOT_rope_factors_short, "R/2", T_OPT, 0, 0, 0, 0 }
// Inputs of every layer's own (blk_per_layer_inputs) where Ep > 0.
#define T_PER_LAYER                                                                                                         \
    {SLOT_per_layer_token_embd, "Ep*layers,V", 0, "Ep>0", 0, 0, 0},                                                         \
        {SLOT_per_layer_model_proj, "E,Ep*layers", 0, "Ep>0", 0, 0, 0},                                                     \
        {SLOT_per_layer_proj_norm, "Ep", 0, "Ep>0", 0, 0, 0}, {SLOT_inp_gate, "E,Ep", 0, "Ep>0", 0, 0, 0},                  \
        {SLOT_proj, "Ep,E", 0, "Ep>0", 0, 0, 0}, {                                                                          \
        SLOT_post_norm, "E", 0, "Ep>0", 0, 0, 0                                                                             \
    }
// Experts of width wd where cond holds; fl: 0, or T_SCALE where the sheet applies their scales ("moe"); gate: the same, with T_OPT where
// there may be none.
#define T_ROUTER(cond)                                                                                                      \
    { SLOT_ffn_gate_inp, "E,X", 0, cond, 0, 0, 0 }
#define T_EXPERTS_GATE(wd, gate, fl, cond)                                                                                  \
    {SLOT_ffn_gate_exps, "E," wd ",X", gate, cond, 0, 0, 0}, {SLOT_ffn_up_exps, "E," wd ",X", fl, cond, 0, 0, 0}, {         \
        SLOT_ffn_down_exps, wd ",E,X", fl, cond, 0, 0, 0                                                                    \
    }
#define T_EXPERTS(wd, fl, cond) T_EXPERTS_GATE(wd, fl, fl, cond)
// Merged or separate.
#define T_EXPERTS_MERGED(wd, fl, cond)                                                                                      \
    {SLOT_ffn_gate_up_exps, "E,2*(" wd "),X", T_OPT, cond, 0, 0, 0},                                                        \
        {SLOT_ffn_gate_exps, "E," wd ",X", fl, cond, SLOT_ffn_gate_up_exps, 0, 0},                                          \
        {SLOT_ffn_up_exps, "E," wd ",X", fl, cond, SLOT_ffn_gate_up_exps, 0, 0}, {                                          \
        SLOT_ffn_down_exps, wd ",E,X", fl, cond, 0, 0, 0                                                                    \
    }
#define T_SHEXP(wd, fl, cond)                                                                                               \
    {SLOT_ffn_gate_shexp, "E," wd, fl, cond, 0, 0, 0}, {SLOT_ffn_up_shexp, "E," wd, fl, cond, 0, 0, 0}, {                   \
        SLOT_ffn_down_shexp, wd ",E", fl, cond, 0, 0, 0                                                                     \
    }
#define T_EXP_PROBS_B(fl, cond)                                                                                             \
    { SLOT_exp_probs_b, "X", T_BIAS_ONLY | (fl), cond, 0, 0, 0 }
// Mamba mixers in layers where cond holds, but for their norms; fl: T_SCALE where the sheet applies scales of ssm_in and ssm_out.
#define T_MAMBA1(fl, cond)                                                                                                  \
    {SLOT_ssm_in, "E,2*I", fl, cond, 0, 0, 0}, {SLOT_ssm_conv1d, "k,I", T_BIAS, cond, 0, 0, 0},                             \
        {SLOT_ssm_x, "I,nh+2*N", 0, cond, 0, 0, 0}, {SLOT_ssm_dt, "nh,I", T_BIAS, cond, 0, 0, 0},                           \
        {SLOT_ssm_a, "N,I", T_NO_SUFFIX, cond, 0, 0, 0}, {SLOT_ssm_d, "I", T_NO_SUFFIX, cond, 0, 0, 0}, {                   \
        SLOT_ssm_out, "I,E", fl, cond, 0, 0, 0                                                                              \
    }
#define T_MAMBA2(fl, cond)                                                                                                  \
    {SLOT_ssm_in, "E,2*I+2*ng*N+nh", fl, cond, 0, 0, 0}, {SLOT_ssm_conv1d, "k,I+2*ng*N", T_BIAS_OPT, cond, 0, 0, 0},        \
        {SLOT_ssm_dt, "1,nh", T_BIAS_ONLY, cond, 0, 0, 0}, {SLOT_ssm_a, "1,nh", T_NO_SUFFIX, cond, 0, 0, 0},                \
        {SLOT_ssm_d, "1,nh", T_NO_SUFFIX, cond, 0, 0, 0}, {SLOT_ssm_norm, "I/ng,ng", 0, cond, 0, 0, 0}, {                   \
        SLOT_ssm_out, "I,E", fl, cond, 0, 0, 0                                                                              \
    }
// Latent attention in its absorbed form; fl: T_SCALE where the sheet applies the output's scale.
#define K_MLA_ABSORBED                                                                                                      \
    {"attention.kv_lora_rank", HP_n_lora_kv, REQ, 0}, {"attention.key_length_mla", HP_n_head_k_mla, REQ, 0}, {              \
        "attention.value_length_mla", HP_n_head_v_mla, REQ, 0                                                               \
    }
#define K_Q_LORA(def)                                                                                                       \
    { "attention.q_lora_rank", HP_n_lora_q, def, 0 }
#define T_MLA_ABSORBED(fl, cond)                                                                                            \
    {SLOT_attn_q_a, "E,ql", 0, "(" cond ")&&ql>0", 0, 0, 0}, {SLOT_attn_q_a_norm, "ql", 0, "(" cond ")&&ql>0", 0, 0, 0},    \
        {SLOT_attn_q_b, "ql,H*kd", 0, "(" cond ")&&ql>0", 0, 0, 0},                                                         \
        {SLOT_attn_q, "E,H*kd", 0, "(" cond ")&&ql==0", 0, 0, 0}, {SLOT_attn_kv_a_mqa, "E,r+R", 0, cond, 0, 0, 0},          \
        {SLOT_attn_kv_a_norm, "r", 0, cond, 0, 0, 0}, {SLOT_attn_k_b, "kd-R,r,H", 0, cond, 0, 0, 0},                        \
        {SLOT_attn_v_b, "r,vd,H", 0, cond, 0, 0, 0}, {                                                                      \
        SLOT_attn_output, "H*vd,E", fl, cond, 0, 0, 0                                                                       \
    }
// Kimi delta attention in recurrent layers, but for the matrices of its gates.
#define K_KDA                                                                                                               \
    {"ssm.conv_kernel", HP_ssm_conv, REQ, 0}, { "kda.head_dim", HP_kda_head, REQ, 0 }
#define T_KDA                                                                                                               \
    {SLOT_attn_q, "E,H*kdad", 0, "rec", SLOT_attn_qkv, 0, 0}, {SLOT_attn_k, "E,H*kdad", 0, "rec", SLOT_attn_qkv, 0, 0},     \
        {SLOT_attn_v, "E,H*kdad", 0, "rec", SLOT_attn_qkv, 0, 0}, {SLOT_ssm_conv1d_q, "k,H*kdad", 0, "rec", 0, 0, 0},       \
        {SLOT_ssm_conv1d_k, "k,H*kdad", 0, "rec", 0, 0, 0}, {SLOT_ssm_conv1d_v, "k,H*kdad", 0, "rec", 0, 0, 0},             \
        {SLOT_ssm_beta, "E,H", 0, "rec", 0, 0, 0}, {SLOT_ssm_dt, "1,H*kdad", T_BIAS_ONLY, "rec", 0, 0, 0},                  \
        {SLOT_ssm_a, "H", T_NO_SUFFIX, "rec", 0, 0, 0}, {SLOT_ssm_norm, "kdad", 0, "rec", 0, 0, 0}, {                       \
        SLOT_attn_output, "H*kdad,E", 0, "rec", 0, 0, 0                                                                     \
    }
// Gated delta nets of Qwen3.5 and later in recurrent layers.
#define T_GATED_DELTA                                                                                                       \
    {SLOT_attn_qkv, "E,2*ng*N+nh*N", T_SCALE, "rec", 0, 0, 0}, {SLOT_attn_gate, "E,nh*N", T_SCALE, "rec", 0, 0, 0},         \
        {SLOT_ssm_beta, "E,nh", T_SCALE, "rec", 0, 0, 0}, {SLOT_ssm_alpha, "E,nh", T_SCALE, "rec", 0, 0, 0},                \
        {SLOT_ssm_conv1d, "k,2*ng*N+nh*N", 0, "rec", 0, 0, 0}, {SLOT_ssm_dt, "1,nh", T_BIAS_ONLY, "rec", 0, 0, 0},          \
        {SLOT_ssm_a, "nh", T_NO_SUFFIX, "rec", 0, 0, 0}, {SLOT_ssm_norm, "N", 0, "rec", 0, 0, 0}, {                         \
        SLOT_ssm_out, "nh*N,E", T_SCALE, "rec", 0, 0, 0                                                                     \
    }
