// The building blocks of language models. An architecture's layer function strings them together:
//
//     struct ggml_tensor *cur = blk_norm(g, x, &l->attn_norm, NORM_RMS);
//     cur = blk_self_attn(g, l, cur, il, &(struct attn_opts){0});
//     blk_select(g, il, &cur, &x);
//     x = ggml_add(g->ctx, cur, x);
//     ...
//
// Options are structs whose zero value is the common case. Shapes: T tokens; x [E, T] f32. No block mixes tokens, except attention
// and the recurrences: so a token's result does not depend on its neighbours in the batch.
#pragma once

#include "block/graph.h"

// ---- linear.c -----------------------------------------------------------------------------------------------------
// (w x) * s + b, plus the active low-rank adapters. Missing parts are left out.
struct ggml_tensor *blk_linear(struct graph *g, const struct weight *w, struct ggml_tensor *x);
// Without bias and scale.
struct ggml_tensor *blk_matmul(struct graph *g, struct ggml_tensor *w, struct ggml_tensor *x);
// t in F32, which operations want of kernels, factors and sinks; most files have them so, and then it is t itself. NULL stays NULL.
struct ggml_tensor *blk_f32(struct graph *g, struct ggml_tensor *t);
// Experts: w [in, out, X], x [in, 1 or U, T], ids [U, T] -> [out, U, T]; s scales by expert, b is added by expert.
struct ggml_tensor *blk_linear_id(struct graph *g, const struct weight *w, struct ggml_tensor *x, struct ggml_tensor *ids);

// ---- norm.c -------------------------------------------------------------------------------------------------------
enum norm { NORM_RMS, NORM_LN, NORM_L2 };
// Over ne0 with hp->eps, times w, plus b. w may be NULL, or have no tensors: then without weight.
struct ggml_tensor *blk_norm(struct graph *g, struct ggml_tensor *x, const struct weight *w, enum norm kind);
struct ggml_tensor *blk_norm_eps(struct graph *g, struct ggml_tensor *x, const struct weight *w, enum norm kind, float eps);
// Over whole rows of q or k given as heads [D, H, T] (weight [D * H]).
struct ggml_tensor *blk_row_norm(struct graph *g, struct ggml_tensor *x, const struct weight *w, enum norm kind);

// ---- embed.c ------------------------------------------------------------------------------------------------------
// Token rows (or the embeddings given as input) [E, T], times scale for tokens if scale is not 0 or 1.
struct ggml_tensor *blk_embed(struct graph *g, float scale);
// Inputs of every layer's own (Gemma 3n and 4) [Ep, layers, T]: rows of per_layer_token_embd (tokens only), mixed with a projection of the
// embedded x [E, T].
struct ggml_tensor *blk_per_layer_inputs(struct graph *g, struct ggml_tensor *x);
// What such a layer adds to x: post_norm(proj(gelu(inp_gate x) * p)), p [Ep, T].
struct ggml_tensor *blk_per_layer_branch(struct graph *g, const struct layer *l, struct ggml_tensor *x,
                                         struct ggml_tensor *p);
// Slice i of the rows of an image [E, T], whose width is a multiple of E (Qwen3-VL).
struct ggml_tensor *blk_deep_slice(struct graph *g, int i);
// Rows of the table w by position, e.g. GPT-2's position_embd.
struct ggml_tensor *blk_pos_rows(struct graph *g, struct ggml_tensor *table);
// In the last layer, and only there, keep only the rows whose results are wanted. Call it once per layer when attention (or
// whatever else needs all tokens) is done, with everything that goes on: unused arguments NULL. Layers that don't call it
// are selected at the end.
void blk_select(struct graph *g, int il, struct ggml_tensor **a, struct ggml_tensor **b);
void blk_select3(struct graph *g, int il, struct ggml_tensor **a, struct ggml_tensor **b, struct ggml_tensor **c);

// ---- rope.c -------------------------------------------------------------------------------------------------------
struct rope_opts {
    int n_rot;   // dims that turn
    int offset;  // first of them
    int mode;    // GGML_ROPE_TYPE_*
    float base, freq_scale, ext, mag, beta_fast, beta_slow;
    struct ggml_tensor *factors;
    struct ggml_tensor *pos;  // NULL: the tokens' positions
    bool back;                // turn by the negative angle
};
// What the keys say for this layer (windowed layers: their own base and scale).
struct rope_opts rope_layer(struct graph *g, int il);
// How the layer's indexer turns its heads (hp->idx_rope).
struct rope_opts rope_index(struct graph *g, int il);
struct ggml_tensor *blk_rope(struct graph *g, struct ggml_tensor *x, int il);  // x [D, H, T]
struct ggml_tensor *blk_rope_ext(struct graph *g, struct ggml_tensor *x, const struct rope_opts *o);
// rope_freqs, else rope_factors_long if n_ctx_seq > C0 else rope_factors_short, of those the model has; NULL: none.
struct ggml_tensor *rope_factors(const struct graph *g);

// ---- attn.c -------------------------------------------------------------------------------------------------------
enum qk_norm { QK_NORM_NONE = 0, QK_NORM_HEAD, QK_NORM_ROW, QK_NORM_HEAD_LN, QK_NORM_ROW_LN };
struct attn_opts {
    float scale;  // 0: hp->f_attn_scale, or 1/sqrt(D) if that is 0
    float softcap, alibi;
    enum qk_norm qk_norm;  // attn_q_norm, attn_k_norm, where the layer has them
    bool norm_after_rope;
    bool no_rope;                   // besides the layers that setup left out of hp->rope_layers
    const struct rope_opts *rope;   // NULL: rope_layer
    struct ggml_tensor *sinks;      // [H]
    struct ggml_tensor *temp;       // [1, 1, T] multiplies q after RoPE
    struct ggml_tensor *bias;       // [n_cell, T, H] added to the scores (attn_bias_cells)
    struct ggml_tensor *keep;       // [n_cell, T] or [n_cell, T, H], 0 or -inf, added to the mask: sparse attention
    struct ggml_tensor *more;       // further keys [D, n] of the cache's type (blk_block_ends; one key head, v_of_k)
    struct ggml_tensor *more_mask;  // [n, T] who sees them: 0 or -inf
    struct ggml_tensor *gate;       // [H * Dv, T] or [H, T] logits: the result times their sigmoid
    int v_of_k;                     // > 0: the value is the first v_of_k elements of the key (latent attention)
    int cache;                      // 1 + cache to use; 0: hp->kv_cache[il]
    bool no_window;                 // full attention in this layer, whatever hp->is_swa says
    bool no_out;                    // leave out attn_output
    float clamp;                    // q, k, v to [-clamp, clamp]
    bool q_gated;                   // rows of q are [query, gate] per head; the result times sigmoid(gate)
};
struct qkv {
    struct ggml_tensor *q, *k, *v;  // [D, H, T], [D, K, T], [Dv, K, T]
};
// Projections by the qkv-set rule: fused attn_qkv or three; biases, scales, clamp. Without attn_v the values are the keys; without
// attn_k too there are only queries (layers that share another one's cache).
struct qkv blk_qkv(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il, const struct attn_opts *o);
// The whole of it: projections, norms, RoPE, attention, gate, output projection. x [E, T] -> [E, T] ([H*Dv, T] with no_out).
struct ggml_tensor *blk_self_attn(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il,
                                  const struct attn_opts *o);
// Store k and v (NULL: the cache already holds them: shared layers) and attend. q [D, H, T] -> [H * Dv, T].
struct ggml_tensor *blk_attend(struct graph *g, struct ggml_tensor *q, struct ggml_tensor *k, struct ggml_tensor *v, int il,
                               const struct attn_opts *o);
// Each run of turn->ne[0] values of x multiplied by turn (kv_turn); turn NULL: x.
struct ggml_tensor *attn_turned(struct graph *g, struct ggml_tensor *x, struct ggml_tensor *turn);
// Attention of q to the encoder's output: k, v [D, K, n_enc] made from g->cross.
struct ggml_tensor *blk_cross_attend(struct graph *g, struct ggml_tensor *q, struct ggml_tensor *k, struct ggml_tensor *v,
                                     float scale);
// The encoder's output as an input [E, n_enc].
struct ggml_tensor *in_cross(struct graph *g);
// Cells that attention of this layer looks over.
int64_t attn_n_cells(const struct graph *g, int il);
// [n_cell, T] i32: T5's bucket of (key position - query position).
struct ggml_tensor *in_rel_buckets(struct graph *g, int il, int n_buckets, bool bidirectional);
// The extra per-position values of the layer's cache (indexer keys): stores x [n_x, T], gives all cells [n_x, n_cell] f32.
struct ggml_tensor *blk_cache_extra(struct graph *g, struct ggml_tensor *x, int il);
// The same with a cache by its number: its keys (cache_k, of the cache's type), or its extra values.
struct ggml_tensor *blk_cache_rows(struct graph *g, struct ggml_tensor *x, int cache, bool extra);
// [n_cell, T] i32: position of the key in each cell relative to the start of its sequence, -1 where not visible.
struct ggml_tensor *in_cell_pos(struct graph *g, int il);

// The position of the first of each n cells of the layer's cache, as rotations take them; n divides a block of cells.
struct ggml_tensor *in_pool_pos(struct graph *g, int il, int n);

// ---- select.c -----------------------------------------------------------------------------------------------------
// Scores of an indexer: sum over heads of w * max(0, q . key). q [d, heads, T] (contiguous), keys [d, n_cell] (blk_cache_extra),
// w [heads, T], NULL: all 1.
struct ggml_tensor *attn_index_scores(struct graph *g, struct ggml_tensor *q, struct ggml_tensor *keys,
                                      struct ggml_tensor *w);
// For attn_opts.keep: 0 in each query's k best visible cells, -inf in all others; ties by the heap rule of the sheets. scores [n_cell, T].
struct ggml_tensor *attn_keep_top(struct graph *g, struct ggml_tensor *scores, int il, int k);
// The same where rows are not cells: pos [n, T] i32 says which position each row stands for, -1 if the query doesn't see it.
struct ggml_tensor *attn_keep_top_at(struct graph *g, struct ggml_tensor *scores, struct ggml_tensor *pos, int k);
// The same by pools of n consecutive positions (n divides a block of cells): scores [n_cell / n, T]; all of the k best pools that are complete
// for the query, and, with tail, what follows its last complete pool.
struct ggml_tensor *attn_keep_pools(struct graph *g, struct ggml_tensor *scores, int il, int n, int k, bool tail);
// The same by blocks of positions (MiniMax-M3): scores [n_cell, groups, T] of each group of heads; blocks of hp->idx_block positions are
// worth their best visible cell. The last hp->idx_local blocks are kept, then the best, hp->idx_top_k in all: [n_cell, T, heads].
struct ggml_tensor *attn_keep_blocks(struct graph *g, struct ggml_tensor *scores, int il);

// The indexer of latent attention (DeepSeek-V3.2): stores its key of this layer, gives attn_opts.keep. x [E, T] is normed.
// eps: of the key's LayerNorm. How its heads turn: hp->idx_rope.
struct ggml_tensor *blk_mla_select(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il, float eps);

// Through F16 and back: what files of keys keep of a value.
struct ggml_tensor *blk_f16_rounded(struct graph *g, struct ggml_tensor *x);

// ---- compress.c ---------------------------------------------------------------------------------------------------
struct compress_opts {
    const struct weight *kv, *gate, *ape, *norm;  // [E, w], [E, w], [w, n], [d]; w = 2 d: overlapping blocks
    int n;                                        // positions per block: a divisor or a multiple of CELL_BLOCK, at most 128
    int state_off;                                // of its (w / d * n - 1) * 2 w values in the layer's conv state
    const struct rope_opts *rope;
};
// Keys of blocks [d, T]: in each token that ends a block, turned by the block's first position; zero in other tokens.
struct ggml_tensor *blk_compress(struct graph *g, struct ggml_tensor *x, int il, const struct compress_opts *o);
// Of a full cache's rows [d, n_cell] those that end a block of n, in the order of positions, sequence by sequence: [d, n_row], of the
// cache's type. For each, the last position of its block or -1 where the query doesn't see the whole block [n_row, T] i32; and the
// mask of it, 0 or -inf, f32.
struct ggml_tensor *blk_block_ends(struct graph *g, struct ggml_tensor *rows, int n);
struct ggml_tensor *in_block_ends(struct graph *g, int n);
struct ggml_tensor *in_block_mask(struct graph *g, int n);

// ---- mla.c --------------------------------------------------------------------------------------------------------
struct mla_opts {
    float scale;      // 0: 1/sqrt(kd)
    bool yarn_scale;  // instead: times the square of the magnitude that the context's scaling calls for, rotated or not
    bool no_rope;
    bool swa;                     // the layer's windowed geometry (rank, head sizes)
    const struct weight *k_norm;  // norm of the shared rope part
    struct ggml_tensor *keep, *sinks, *temp;
    const struct weight *gate;   // sigmoid gate on the heads' result: width H or H * vd
    struct ggml_tensor **q_low;  // out: RMS(Wqa x), which indexers read
    const struct rope_opts *rope;
};
struct ggml_tensor *blk_mla(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il, const struct mla_opts *o);

// ---- ffn.c --------------------------------------------------------------------------------------------------------
// act(gate) * up, clamped as the options say. up may be NULL: act(gate) alone.
struct act_opts {
    enum act act;
    float clamp;  // clamped SwiGLU; > 1e-6 to have effect
    bool clamp_late;
};
struct ggml_tensor *blk_act(struct graph *g, struct ggml_tensor *gate, struct ggml_tensor *up, const struct act_opts *o);
struct ggml_tensor *blk_act_fused(struct graph *g, struct ggml_tensor *gate_up, const struct act_opts *o);  // halves of ne0
// down(act(gate x) * up x); without gate down(act(up x)); fused when up has twice down's width and there is no gate.
struct ggml_tensor *blk_ffn(struct graph *g, const struct weight *gate, const struct weight *up, const struct weight *down,
                            struct ggml_tensor *x, const struct act_opts *o);
struct ggml_tensor *blk_ffn_layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, enum act act);

// ---- moe.c --------------------------------------------------------------------------------------------------------
struct moe_opts {
    enum moe_gate gate;  // 0: hp->expert_gating, softmax if that is 0
    bool norm;           // weights divided by their sum
    float wscale;        // 0: none
    struct act_opts act;
    struct ggml_tensor *router_x;                 // what the router sees; NULL: x
    struct ggml_tensor *logits;                   // given router logits [X, T]; NULL: computed
    struct ggml_tensor *ids;                      // given choice [U, T] i32; NULL: top U
    struct ggml_tensor *w;                        // given weights [1, U, T]; NULL: computed
    bool scale_input;                             // the expert's input is multiplied by the weight, not its result (llama4)
    int n_used;                                   // 0: hp->n_expert_used[il]
    const struct weight *gate_e, *up_e, *down_e;  // NULL: the layer's ffn_*_exps
    struct ggml_tensor **out_ids, **out_probs;    // out, may be NULL
};
// As the file's keys say: expert_weights_norm, expert_weights_scale.
static inline struct moe_opts moe_of_file(const struct graph *g) {
    return (struct moe_opts){.norm = g->hp->expert_weights_norm, .wscale = g->hp->expert_weights_scale};
}
struct ggml_tensor *blk_moe(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il, const struct moe_opts *o);
// The shared expert ffn_*_shexp; times sigmoid(ffn_gate_inp_shexp . x) where the layer has that.
struct ggml_tensor *blk_shared_expert(struct graph *g, const struct layer *l, struct ggml_tensor *x,
                                      const struct act_opts *o);

// ---- forms.c ------------------------------------------------------------------------------------------------------
// A whole layer in one of the usual forms, with the norms' names of the sheets. The network is dense, or experts where the layer
// has a router (plus the shared expert where it has that).
struct form_opts {
    enum norm norm;
    struct attn_opts attn;
    struct act_opts act;  // of the dense network and the shared expert
    struct moe_opts moe;
    float residual;  // scale of both branches; 0: none
    bool raw;        // both branches read the stream itself, not a norm of it (sandwich)
    // Takes attention's place in recurrent layers, or in all of them (pre-norm, sandwich, post-norm); NULL: attention.
    struct ggml_tensor *(*recurrent)(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il);
    struct ggml_tensor *(*mixer)(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il);
};
// The network alone: x is normed already.
struct ggml_tensor *blk_network(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il,
                                const struct form_opts *o);
// h = x + attn(attn_norm x); y = h + ffn(ffn_norm h)
struct ggml_tensor *blk_pre_norm(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il,
                                 const struct form_opts *o);
// h = x + post_attn_norm(attn(attn_norm x)); y = h + post_ffw_norm(ffn(ffn_norm h))
struct ggml_tensor *blk_sandwich(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il,
                                 const struct form_opts *o);
// h = attn_output_norm(x + attn(x)), then attn_norm_2(h + x) where the layer has that; y = layer_output_norm(h + ffn(h))
struct ggml_tensor *blk_post_norm(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il,
                                  const struct form_opts *o);
// n = attn_norm x; y = x + attn(n) + ffn(n)
struct ggml_tensor *blk_parallel(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il,
                                 const struct form_opts *o);

// ---- recurrent.c --------------------------------------------------------------------------------------------------
// In graphs with recurrent layers rows lie sequence by sequence: x [E, T] is [E, n_seq_tokens, n_seqs] (blk_by_seq).
struct ggml_tensor *blk_by_seq(struct graph *g, struct ggml_tensor *x);
// n = a * b columns of x [w, T], beginning at `from`, as [a, b, n_seq_tokens, n_seqs] (a view).
struct ggml_tensor *blk_columns(struct graph *g, struct ggml_tensor *x, int64_t a, int64_t b, int64_t from);
// The layer's states: [state_r, n_slot] and [state_s, n_slot]. Read: [width, n_seqs]. Write: the k-th newest, k < rs_n_states.
// An operation that gives only its last state needs ARCH_NO_SNAPSHOTS.
struct ggml_tensor *rs_conv_states(struct graph *g, int il);
struct ggml_tensor *rs_main_states(struct graph *g, int il);
struct ggml_tensor *rs_read(struct graph *g, struct ggml_tensor *states);
void rs_write(struct graph *g, struct ggml_tensor *states, struct ggml_tensor *now, int k);
int rs_n_states(const struct graph *g);
// The last n_before inputs of each channel (from the layer's conv state, which is updated), then those of x [C, n_seq_tokens,
// n_seqs]: [n_before + n_seq_tokens, C, n_seqs]. state_off: first value of the conv state that belongs to this call, for layers
// with several convolutions.
struct ggml_tensor *blk_conv_input(struct graph *g, struct ggml_tensor *x, int64_t n_before, int il, int state_off);
// Causal convolution with kernel w [k, ..C]: [C, n_seq_tokens, n_seqs]. No bias, no activation.
struct ggml_tensor *blk_conv(struct graph *g, struct ggml_tensor *x, struct ggml_tensor *w, int il, int state_off);
// The previous token's row of x [E, n_seq_tokens, n_seqs] (zero before the first); E values of the conv state from state_off on.
struct ggml_tensor *blk_token_shift(struct graph *g, struct ggml_tensor *x, int il, int state_off);
// x [hd, nh, t, S], dt [nh, t, S] before softplus, a [N or 1, nh], b, c [N, groups, t, S]: y [hd, nh, t, S] (a view).
struct ggml_tensor *blk_ssm_scan(struct graph *g, int il, struct ggml_tensor *x, struct ggml_tensor *dt,
                                 struct ggml_tensor *a, struct ggml_tensor *b, struct ggml_tensor *c);
// Reads and writes the main state around a WKV operation: its starting state, and its result [n * H, T + n * n_seqs] without the states
// [n, H, T]. Both give only the last state: ARCH_NO_SNAPSHOTS.
struct ggml_tensor *blk_wkv_state(struct graph *g, int il);
struct ggml_tensor *blk_wkv_result(struct graph *g, struct ggml_tensor *r, int64_t n, int il);
struct ggml_tensor *blk_mamba1(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il);
struct ggml_tensor *blk_mamba2(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il);
// LFM2: out(c * conv(b * x)), (b, c, x) = in(x); taps centred on the token where hp->causal is off.
struct ggml_tensor *blk_short_conv(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il);

// ---- delta.c ------------------------------------------------------------------------------------------------------
struct delta_opts {
    struct ggml_tensor *q, *k;  // [Dk, Hk, t, S], normed; head h of v uses head h mod Hk; q is scaled by 1/sqrt(Dk) inside
    struct ggml_tensor *v;      // [Dv, H, t, S]
    struct ggml_tensor *gate;   // log decay [1 or Dk, H, t, S]
    struct ggml_tensor *beta;   // [1, H, t, S]
};
struct ggml_tensor *blk_delta_net(struct graph *g, int il, const struct delta_opts *o);  // [Dv, H, t, S] (a view)
// Gated delta net of Qwen3-Next and later: x [E, T] -> [E, T]. Projections attn_qkv and attn_gate, or the old ssm_in; ssm_ba, or
// ssm_beta and ssm_alpha. The result's norm is gated by silu, or by sigmoid.
struct ggml_tensor *blk_gated_delta(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il, bool sigmoid);
struct kda_opts {
    struct ggml_tensor *gate;  // logits of the output gate [d * H, T]
    float lower;               // < 0 and finite: decay lower * sigmoid(-a z), else a * softplus(z)
    bool a_positive;           // ssm_a is stored without its minus: lower * sigmoid(a z)
    float l2_eps;              // 0: hp->eps
};
// Kimi delta attention: z = f_b f_a x + dt (f_a alone where f_b is missing); output projection included.
struct ggml_tensor *blk_kda(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il, const struct kda_opts *o);

// ---- streams.c ----------------------------------------------------------------------------------------------------
// Hyper-connections (arXiv 2409.19606, 2512.24880): the residual is hp->n_hc streams side by side, [hc * E, T].
struct hc_weights {
    const struct weight *fn, *base, *scale;  // hc_attn_* or hc_ffn_*
};
// Every stream begins as the embedding.
struct ggml_tensor *blk_hc_begin(struct graph *g, struct ggml_tensor *x);
// A branch's input [E, T]; *mix [(2 + hc) hc or 2 hc, T] goes to blk_hc_out.
struct ggml_tensor *blk_hc_in(struct graph *g, struct ggml_tensor *x, const struct hc_weights *w, struct ggml_tensor **mix);
// The streams after a branch gave y [E, T]: mixed by a doubly stochastic matrix if hp->hc_iter > 0, else each for itself.
struct ggml_tensor *blk_hc_out(struct graph *g, struct ggml_tensor *x, struct ggml_tensor *y, struct ggml_tensor *mix,
                               const struct hc_weights *w);
struct ggml_tensor *blk_hc_mean(struct graph *g, struct ggml_tensor *x);  // [E, T]
struct ggml_tensor *blk_hc_end(struct graph *g, struct ggml_tensor *x);   // [E, T], weighed by output_hc_*
// out[e, d, t] = sum over s of x[e, s, t] * m[s, d, t]: x [E, n, T], m [n, d, T] contiguous.
struct ggml_tensor *blk_mix_streams(struct graph *g, struct ggml_tensor *x, struct ggml_tensor *m);

// ---- encoder.c ----------------------------------------------------------------------------------------------------
// BERT's beginning: tokens, type 0 where there are types, positions where there is a table, norm.
struct ggml_tensor *blk_encoder_embed(struct graph *g);
// States are the result as they are.
void blk_encoder_head(struct graph *g, struct ggml_tensor *x);
// Pooled rows; rank: the first token's state (the last's where attention.causal isn't false), tanh(cls), cls.output, of those there are.
struct ggml_tensor *blk_encoder_pooled(struct graph *g, struct ggml_tensor *x, enum llama_pooling_type kind);

// ---- head.c -------------------------------------------------------------------------------------------------------
struct head_opts {
    enum norm norm;
    bool no_norm;                   // the stream is normed already
    float scale, softcap;           // logits * scale, then softcap * tanh(logits / softcap); 0: none
    bool tied;                      // always token_embd
    const struct weight *norm_w;    // NULL: output_norm
    const struct weight *output_w;  // NULL: output, or the embedding where there is none
};
// Final norm, embeddings, logits: sets g->embd and g->logits as the shape wants them.
void blk_head(struct graph *g, struct ggml_tensor *x, const struct head_opts *o);
// logits = output x.
void blk_logits(struct graph *g, struct ggml_tensor *x, const struct head_opts *o);
// Pooled rows [E, n_seqs] of x [E, T] by kind; MEAN in order of position.
struct ggml_tensor *blk_pool(struct graph *g, struct ggml_tensor *x, enum llama_pooling_type kind);

// Name a tensor "<name>-<il>" without formatting; NULL-safe.
struct ggml_tensor *blk_name(struct ggml_tensor *t, const char *name, int il);
// A tensor [a, b, c] whose rows of b values are contiguous, as [a*b, c] without a copy.
struct ggml_tensor *blk_flat(struct graph *g, struct ggml_tensor *t);
