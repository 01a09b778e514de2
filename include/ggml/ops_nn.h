// Builders: gated units, norms, matrix products, softmax, rope, attention, recurrences.
//
// What holds for every builder: the result is a new tensor of ctx (owner: the context), nothing is computed yet. A builder
// that is misused, or given the error tensor, records a sentence (ggml_last_error) and returns the error tensor. Shapes are
// written [ne0, ne1, ne2, ne3], trailing 1s left out. "float" means F32, F16 or BF16: values are computed in F32 and rounded
// once to the result's type. Sources may have any strides unless a line says otherwise. The _inplace forms write over a and
// return a view of it. Results do not depend on the number of threads. Thread: a context belongs to one thread at a time.
#pragma once

#include "ggml/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Gated unit act(gate) * value: a [2 n, ...] float, the gate in the first half of each row (the last if swapped) -> [n, ...]
// of a's type.
GGML_API struct ggml_tensor *ggml_glu(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_glu_op op, bool swapped);

// Named units: reglu relu, geglu gelu, swiglu silu, geglu_erf, geglu_quick; _swapped: the gate is the last half; _split:
// gate a, value b.
GGML_API struct ggml_tensor *ggml_reglu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_reglu_swapped(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_geglu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_geglu_swapped(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_swiglu(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_swiglu_swapped(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_geglu_erf(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_geglu_erf_swapped(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_geglu_quick(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_geglu_quick_swapped(struct ggml_context *ctx, struct ggml_tensor *a);

// act(a) * b, both float of one shape; result of a's type.
GGML_API struct ggml_tensor *ggml_glu_split(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                            enum ggml_glu_op op);
GGML_API struct ggml_tensor *ggml_reglu_split(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_geglu_split(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_swiglu_split(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_geglu_erf_split(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
GGML_API struct ggml_tensor *ggml_geglu_quick_split(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

// With g = min(a, limit): g sigmoid(alpha g) (clamp(b, -limit, limit) + 1).
GGML_API struct ggml_tensor *ggml_swiglu_oai(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                             float alpha, float limit);

// silu(min(a, limit)) * clamp(b, -limit, limit).
GGML_API struct ggml_tensor *ggml_swiglu_clamp(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                               float limit);

// Rows (dimension 0) minus their mean, over sqrt(variance + eps). a float; result as a; eps >= 0.
GGML_API struct ggml_tensor *ggml_norm(struct ggml_context *ctx, struct ggml_tensor *a, float eps);
GGML_API struct ggml_tensor *ggml_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float eps);

// Rows over sqrt(mean square + eps). a float; result as a.
GGML_API struct ggml_tensor *ggml_rms_norm(struct ggml_context *ctx, struct ggml_tensor *a, float eps);
GGML_API struct ggml_tensor *ggml_rms_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float eps);

// ggml_norm over n_groups groups of channels (dimension 2), dimensions 0 and 1 included: a [W, H, C, N].
GGML_API struct ggml_tensor *ggml_group_norm(struct ggml_context *ctx, struct ggml_tensor *a, int n_groups, float eps);
GGML_API struct ggml_tensor *ggml_group_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a, int n_groups,
                                                     float eps);

// Rows over max(length, eps).
GGML_API struct ggml_tensor *ggml_l2_norm(struct ggml_context *ctx, struct ggml_tensor *a, float eps);
GGML_API struct ggml_tensor *ggml_l2_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float eps);

// Gradient of ggml_rms_norm: a the gradient, b the input.
GGML_API struct ggml_tensor *ggml_rms_norm_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                                float eps);

// Precision asked of a product's (or an attention's) sum. Sums are F32 or better here whatever is asked. Errors: false, with a
// sentence, if a is neither.
GGML_API bool ggml_prec_set_acc(struct ggml_tensor *a, enum ggml_prec prec);
// Precision below which source idx (0 or 1) of product a must not be rounded. By default b's columns become 8-bit integers (one
// F32 scale per 32 values) for quantized a, and BF16 for BF16 a where the processor multiplies it; GGML_PREC_F32 for source 1
// keeps them. Errors: false, with a sentence, if a is no product or idx out of range.
GGML_API bool ggml_prec_set_src(struct ggml_tensor *a, enum ggml_prec prec, int idx);
// Matrix product: a [k, m, x, y] any type, b [k, n, X, Y] any type -> [m, n, X, Y] f32: row i of a times row j of b. a's matrices
// are repeated in a row where X = r x, Y = s y. Rows of a are contiguous (rows themselves may lie anywhere, transposed a is
// refused); b may have any strides if its type has blocks of one element. A result's bits depend on its row, its column and
// the ISA level alone. Method: src/tensor/kern/mm.h.
GGML_API struct ggml_tensor *ggml_mul_mat(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);
// ggml_prec_set_acc under its older name.
GGML_DEPRECATED(GGML_API void ggml_mul_mat_set_prec(struct ggml_tensor *a, enum ggml_prec prec), "use the newer call");
// Tells of a property of the operands that an implementation may use; the result is the same. Recorded; all products are computed alike.
GGML_API void ggml_mul_mat_set_hint(struct ggml_tensor *a, enum ggml_op_hint hint);
// Products with chosen matrices (mixture of experts): as [k, m, n_expert] any type, b [k, 1 or n_slot, n_token] any type,
// ids [n_slot, n_token] i32 -> [m, n_slot, n_token] f32: matrix ids[s, t] times column s (or the only one) of token t, with the
// bits of ggml_mul_mat. Errors while computing: an id outside 0 .. n_expert-1 fails the graph, the result is not written.
GGML_API struct ggml_tensor *ggml_mul_mat_id(struct ggml_context *ctx, struct ggml_tensor *as, struct ggml_tensor *b,
                                             struct ggml_tensor *ids);
// Sum of outer products: a [n, k, x, y] any type (rows contiguous), b [m, k, X, Y] any type -> [n, m, X, Y] f32: element (i, j) is
// the sum over l of a[i, l] * b[j, l], in order of l. a is repeated as in ggml_mul_mat.
GGML_API struct ggml_tensor *ggml_out_prod(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b);

// a limited to min .. max; NaN stays. a float; result as a.
GGML_API struct ggml_tensor *ggml_clamp(struct ggml_context *ctx, struct ggml_tensor *a, float min, float max);
GGML_API struct ggml_tensor *ggml_clamp_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float min, float max);

// exp(a - max) / sum over rows (dimension 0). a float; result as a. A row of nothing but -infinity gives zeros.
GGML_API struct ggml_tensor *ggml_soft_max(struct ggml_context *ctx, struct ggml_tensor *a);
GGML_API struct ggml_tensor *ggml_soft_max_inplace(struct ggml_context *ctx, struct ggml_tensor *a);

// Softmax of a * scale + slope * mask: a [n, rows, heads, batch] float; mask NULL or [n, >= rows, heads / r2, batch / r3]
// F16 or F32. slope is 1, or for max_bias > 0 that of ALiBi for the head (Press et al. 2021).
GGML_API struct ggml_tensor *ggml_soft_max_ext(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *mask,
                                               float scale, float max_bias);
GGML_API struct ggml_tensor *ggml_soft_max_ext_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                       struct ggml_tensor *mask, float scale, float max_bias);

// Gives a soft_max one more logit per head in the denominator, which takes no value: sinks [heads] F32, NULL to remove.
// Errors: sentence recorded, a unchanged.
GGML_API void ggml_soft_max_add_sinks(struct ggml_tensor *a, struct ggml_tensor *sinks);

// Gradient of ggml_soft_max_ext: (a - sum(a b)) b scale; a the gradient, b the softmax.
GGML_API struct ggml_tensor *ggml_soft_max_ext_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                                    float scale, float max_bias);
GGML_API struct ggml_tensor *ggml_soft_max_ext_back_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                            struct ggml_tensor *b, float scale, float max_bias);

// Rotary position embedding (Su et al. 2021) of the first n_dims (even) of each row: a [head, heads, tokens, batch] float, b
// [tokens] I32 positions; base 10000. mode: GGML_ROPE_TYPE_NORMAL turns pairs (2j, 2j + 1), NEOX pairs (j, j + n_dims / 2).
// Result as a.
GGML_API struct ggml_tensor *ggml_rope(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, int n_dims,
                                       int mode);
GGML_API struct ggml_tensor *ggml_rope_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                               int n_dims, int mode);

// The same with all parameters. c NULL or [>= n_dims / 2] F32: frequencies are divided by it. Angle of pair j: pos *
// freq_base^(-2j / n_dims) (by repeated F32 multiplication) * freq_scale; ext_factor > 0 mixes in YaRN (Peng et al. 2023)
// between beta_fast and beta_slow rotations in n_ctx_orig positions; results are multiplied by attn_factor (with YaRN times
// 1 + 0.1 ln(1 / freq_scale)).
GGML_API struct ggml_tensor *ggml_rope_ext(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                           struct ggml_tensor *c, int n_dims, int mode, int n_ctx_orig, float freq_base,
                                           float freq_scale, float ext_factor, float attn_factor, float beta_fast,
                                           float beta_slow);

// The same with four positions per token, b [4 tokens] (all t, all h, all w, all e); sections[4] says how many pairs each
// turns. mode: MROPE (sections one after the other), IMROPE (interleaved), VISION (pairs (j, j + n_dims), angles begin anew
// in each section).
GGML_API struct ggml_tensor *ggml_rope_multi(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                             struct ggml_tensor *c, int n_dims, int sections[4], int mode, int n_ctx_orig,
                                             float freq_base, float freq_scale, float ext_factor, float attn_factor,
                                             float beta_fast, float beta_slow);
GGML_API struct ggml_tensor *ggml_rope_ext_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                                   struct ggml_tensor *c, int n_dims, int mode, int n_ctx_orig,
                                                   float freq_base, float freq_scale, float ext_factor, float attn_factor,
                                                   float beta_fast, float beta_slow);
GGML_API struct ggml_tensor *ggml_rope_multi_inplace(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                                     struct ggml_tensor *c, int n_dims, int sections[4], int mode,
                                                     int n_ctx_orig, float freq_base, float freq_scale, float ext_factor,
                                                     float attn_factor, float beta_fast, float beta_slow);

// ggml_rope_ext without c.
GGML_DEPRECATED(GGML_API struct ggml_tensor *ggml_rope_custom(struct ggml_context *ctx, struct ggml_tensor *a,
                                                              struct ggml_tensor *b, int n_dims, int mode, int n_ctx_orig,
                                                              float freq_base, float freq_scale, float ext_factor,
                                                              float attn_factor, float beta_fast, float beta_slow),
                "use the newer call");
GGML_DEPRECATED(GGML_API struct ggml_tensor *ggml_rope_custom_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                                                      struct ggml_tensor *b, int n_dims, int mode,
                                                                      int n_ctx_orig, float freq_base, float freq_scale,
                                                                      float ext_factor, float attn_factor, float beta_fast,
                                                                      float beta_slow),
                "use the newer call");

// dims[0] .. dims[1]: the pairs between which YaRN mixes.
GGML_API void ggml_rope_yarn_corr_dims(int n_dims, int n_ctx_orig, float freq_base, float beta_fast, float beta_slow,
                                       float dims[2]);

// Turns the other way: the gradient of ggml_rope_ext.
GGML_API struct ggml_tensor *ggml_rope_ext_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                                struct ggml_tensor *c, int n_dims, int mode, int n_ctx_orig, float freq_base,
                                                float freq_scale, float ext_factor, float attn_factor, float beta_fast,
                                                float beta_slow);
GGML_API struct ggml_tensor *ggml_rope_multi_back(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                                  struct ggml_tensor *c, int n_dims, int sections[4], int mode,
                                                  int n_ctx_orig, float freq_base, float freq_scale, float ext_factor,
                                                  float attn_factor, float beta_fast, float beta_slow);

// Lets a rope turn the dimensions from n_offs on instead of from 0. Returns a; the error tensor, and a unchanged, when they
// do not fit.
GGML_API struct ggml_tensor *ggml_rope_set_offset(struct ggml_tensor *a, int n_offs);

// ---- attention ------------------------------------------------------------------------------------------------
// All builders here and below: result F32, contiguous, owned by ctx; the error tensor, with a sentence, when operands don't fit.

// softmax(scale * q k^T + slope * mask) v in one pass over the keys (online softmax, Milakov and Gimelshein 2018, arXiv 1805.02867;
// Dao et al. 2022, arXiv 2205.14135), F32 arithmetic throughout.
//   q [d, n_q, n_head, n_3] f32    k [d, n_kv, n_k_head, n_k3]    v [dv, n_kv, n_v_head, n_v3]
//   mask [>= n_kv, >= n_q, 1 or a divisor of n_head, 1 or a divisor of n_3] f16 or f32, added to the scores; -inf hides a key; NULL: none
//   result [dv, n_head, n_q, n_3]; rows that see no key are 0
// k and v: F32, F16, BF16 or any quantized type, each its own; any strides but rows must be contiguous. Head h uses k head
// h / (n_head / n_k_head); dimension 3 likewise. scale multiplies q . k. max_bias > 0: ALiBi, head h's slope is
// 2^(-max_bias (h+1)/n2) for h < n2 = 2^floor(log2 n_head), else 2^(-max_bias/2 (2(h-n2)+1)/n2), and without a mask the bias is minus
// the distance, query i standing at n_kv - n_q + i; otherwise the slope is 1. logit_softcap c > 0: scores become c tanh(score / c)
// before the mask. The bits of a row depend on its own query, its visible keys and values and their positions alone.
GGML_API struct ggml_tensor *ggml_flash_attn_ext(struct ggml_context *ctx, struct ggml_tensor *q, struct ggml_tensor *k,
                                                 struct ggml_tensor *v, struct ggml_tensor *mask, float scale,
                                                 float max_bias, float logit_softcap);
// a: a result of ggml_flash_attn_ext; anything else records an error and changes nothing. Arithmetic is F32 whatever prec says.
GGML_DEPRECATED(GGML_API void ggml_flash_attn_ext_set_prec(struct ggml_tensor *a, enum ggml_prec prec),
                "use the newer call");
GGML_API enum ggml_prec ggml_flash_attn_ext_get_prec(const struct ggml_tensor *a);
// A hint of how many keys a row can see at most; kept with the tensor.
GGML_API void ggml_flash_attn_ext_set_n_kv_max(struct ggml_tensor *a, int32_t n_kv_max);
// sinks [n_head] f32: one more logit per head in the softmax, which has no value; NULL removes them. When they don't fit, the
// sentence is recorded and the graph will fail.
GGML_API void ggml_flash_attn_ext_add_sinks(struct ggml_tensor *a, struct ggml_tensor *sinks);
// Gradients of softmax(q k^T / sqrt(n_embd)) v with respect to q, k and v. masked: query i sees keys up to n_kv - n_query + i.
//   q, d [n_embd, n_query, n_head, n_batch], d the gradient of the result; k [n_embd, n_kv, n_head_kv, n_batch]
//   v [n_kv, n_embd, n_head_kv, n_batch]; all F32; result [n]: the three gradients, each padded to GGML_MEM_ALIGN bytes
GGML_API struct ggml_tensor *ggml_flash_attn_back(struct ggml_context *ctx, struct ggml_tensor *q, struct ggml_tensor *k,
                                                  struct ggml_tensor *v, struct ggml_tensor *d, bool masked);

// ---- recurrences over tokens ------------------------------------------------------------------------------------
// F32. "Rows" means that elements of dimension 0 lie side by side while other strides are free; "contiguous" is the whole tensor.
// Snapshots: state 0 is the one after the last token, state j the one j tokens earlier; the starting state stands for older ones.

// Causal convolution per channel: y[c, t, s] = sum over i of sx[t + i, c, s] * c[i, c].
//   sx [d_conv - 1 + n_token, n_channel, n_seq] rows    c [d_conv, n_channel] rows    result [n_channel, n_token, n_seq]
GGML_API struct ggml_tensor *ggml_ssm_conv(struct ggml_context *ctx, struct ggml_tensor *sx, struct ggml_tensor *c);
// Selective scan (Mamba, Gu and Dao 2023, arXiv 2312.00752; Mamba-2, arXiv 2405.21060): with dt = softplus(dt),
// S = exp(dt A) S + dt x B^T, y = S C.
//   s [n_state, dim, n_head, n_slot] contiguous    x [dim, n_head, n_token, n_seq] rows    dt [n_head, n_token, n_seq] rows
//   A [n_state or 1, n_head] rows    B, C [n_state, n_group, n_token, n_seq] rows; head h uses group h / (n_head / n_group)
//   ids [n_seq] i32: the slot of s with each sequence's starting state; outside 0 .. n_slot - 1 the graph fails
//   result, one row: y [dim, n_head, n_token, n_seq], then K >= 1 snapshots [n_state, dim, n_head, n_seq]
GGML_API struct ggml_tensor *ggml_ssm_scan(struct ggml_context *ctx, struct ggml_tensor *s, struct ggml_tensor *x,
                                           struct ggml_tensor *dt, struct ggml_tensor *A, struct ggml_tensor *B,
                                           struct ggml_tensor *C, struct ggml_tensor *ids, int64_t K);
// RWKV-6 (arXiv 2404.05892): y = r (S + diag(tf) k v^T), S = diag(td) S + k v^T per head and sequence, all contiguous.
//   k, v, r, td [n, n_head, n_token]    tf [n, n_head]    state [n * n * n_head, n_seq], S[key][value]
//   result [n * n_head, n_token + n * n_seq]: y of all tokens, then the states. n_seq must divide n_token.
GGML_API struct ggml_tensor *ggml_rwkv_wkv6(struct ggml_context *ctx, struct ggml_tensor *k, struct ggml_tensor *v,
                                            struct ggml_tensor *r, struct ggml_tensor *tf, struct ggml_tensor *td,
                                            struct ggml_tensor *state);
// Gated linear attention (arXiv 2312.06635): S = diag(g) S + k v^T, y = scale * q S; shapes as ggml_rwkv_wkv6.
GGML_API struct ggml_tensor *ggml_gated_linear_attn(struct ggml_context *ctx, struct ggml_tensor *k, struct ggml_tensor *v,
                                                    struct ggml_tensor *q, struct ggml_tensor *g, struct ggml_tensor *state,
                                                    float scale);
// RWKV-7 (arXiv 2503.14456): S = S diag(w) + (S a) b^T + v k^T, y = S r, S[value][key]; shapes as ggml_rwkv_wkv6, any n.
GGML_API struct ggml_tensor *ggml_rwkv_wkv7(struct ggml_context *ctx, struct ggml_tensor *r, struct ggml_tensor *w,
                                            struct ggml_tensor *k, struct ggml_tensor *v, struct ggml_tensor *a,
                                            struct ggml_tensor *b, struct ggml_tensor *state);
// Triangular systems: A X = B (left) or X A = B, A lower or upper triangular; uni: its diagonal counts as ones. Only the triangle is read.
//   a [n, n, n_2, n_3] rows    b [n_col, n, n_2, n_3] (left) or [n, n_row, n_2, n_3] rows    result: X in b's shape
GGML_API struct ggml_tensor *ggml_solve_tri(struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b,
                                            bool left, bool lower, bool uni);
// Gated delta rule (arXiv 2412.06464; with a gate per key dimension: Kimi delta attention): S *= exp(g), S += beta (v - S k) k^T,
// y = S q / sqrt(n_key), S[value][key].
//   q, k [n_key, n_k_head, n_token, n_seq] rows; head h uses k head h mod n_k_head    v [n_val, n_head, n_token, n_seq] rows
//   g [1 or n_key, n_head, n_token, n_seq] rows    beta [1, n_head, n_token, n_seq]    state [n_key, n_val, n_head, n_seq] contiguous
//   result [n_val * n_head, n_token * n_seq + K * n_key * n_seq]: y of all tokens, then K >= 1 snapshots of the states
GGML_API struct ggml_tensor *ggml_gated_delta_net(struct ggml_context *ctx, struct ggml_tensor *q, struct ggml_tensor *k,
                                                  struct ggml_tensor *v, struct ggml_tensor *g, struct ggml_tensor *beta,
                                                  struct ggml_tensor *state, int64_t K);
// Selection scores of sparse attention: sum over heads j of weights[j, t] * max(0, q[j, t] . k[s]) + mask[s, t].
//   q [d, n_head, n_token, n_stream] rows    k [d, 1, n_kv, n_stream] F32, F16, BF16 or quantized    weights [n_head, n_token, 1, n_stream] rows
//   mask [>= n_kv, >= n_token, 1, a divisor of n_stream] f16 or f32    result [n_kv, n_token, 1, n_stream]
GGML_API struct ggml_tensor *ggml_lightning_indexer(struct ggml_context *ctx, struct ggml_tensor *q, struct ggml_tensor *k,
                                                    struct ggml_tensor *weights, struct ggml_tensor *mask);
// Hyper-connections over n streams (arXiv 2409.19606, 2512.24880). comb[d, s, t]: the softmax over d of
// mixes[2n + s n + d, t] * scale[2] + base[2n + s n + d], plus eps, made doubly stochastic by n_iter >= 1 Sinkhorn steps with eps in the sums.
//   mixes [(2 + n) n, n_token] rows    scale [3]    base [(2 + n) n]    result [n, n, n_token]
GGML_API struct ggml_tensor *ggml_dsv4_hc_comb(struct ggml_context *ctx, struct ggml_tensor *mixes,
                                               struct ggml_tensor *scale, struct ggml_tensor *base, float eps,
                                               int32_t n_iter);
// sum over streams s of weights[s, t] * x[e, s, t].   x [n_embd, n, n_token] rows    weights [n, n_token] rows    result [n_embd, n_token]
GGML_API struct ggml_tensor *ggml_dsv4_hc_pre(struct ggml_context *ctx, struct ggml_tensor *x, struct ggml_tensor *weights);
// scale * sum over streams s of x[e, s, t] * sigmoid(gate[e, s, t]).   gate: as many values as x, contiguous    result [n_embd, n_token]
GGML_API struct ggml_tensor *ggml_dsv4_hc_pre_gated(struct ggml_context *ctx, struct ggml_tensor *x,
                                                    struct ggml_tensor *gate, float scale);
// y[e, d, t] = post[d, t] * x[e, t] + sum over s of comb[d, s, t] * residual[e, s, t].
//   x [n_embd, n_token]    residual [n_embd, n, n_token]    post [n, n_token]    comb [n, n, n_token], all rows    result as residual
GGML_API struct ggml_tensor *ggml_dsv4_hc_post(struct ggml_context *ctx, struct ggml_tensor *x, struct ggml_tensor *residual,
                                               struct ggml_tensor *post, struct ggml_tensor *comb);

#ifdef __cplusplus
}
#endif
