// hrm_text: a hierarchical reasoning model (arXiv 2506.21734): two stacks of layers work in turn on two states, the low one several
// times for each time of the high one; each call of a stack has caches of its own. No norm has weights.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    {"hrm.layers_per_stack", HP_hrm_layers, REQ, 0},
    {"hrm.h_cycles", HP_hrm_h_cycles, REQ, 0},
    {"hrm.l_cycles", HP_hrm_l_cycles, REQ, 0},
    {"embedding_scale", HP_f_embd_scale, "1", KEY_ZERO_ABSENT},
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_TIED,
    {SLOT_hrm_z_l_init, "E", T_NO_SUFFIX, 0, 0, 0, 0},
    T_QKV,
    {SLOT_attn_gate, "E,H*D", 0, 0, 0, 0, 0},
    T_O,
    T_FFN,
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    const int n = hp->hrm_layers, hc = hp->hrm_h_cycles, lc = hp->hrm_l_cycles;
    const bool sane = n > 0 && hc > 0 && lc > 0 && n <= MAX_LAYERS && hc <= MAX_LAYERS && lc <= MAX_LAYERS;
    TRY(arch_require(sane && (int64_t) n * hc * (lc + 1) == hp->n_layer, b,
                     "its block_count must be layers_per_stack * h_cycles * (l_cycles + 1)"));
    hp->n_layer_weights = 2 * n;  // the low stack's, then the high one's
    return ERR_OK;
}

static struct ggml_tensor *embed(struct graph *g) { return blk_embed(g, g->hp->f_embd_scale); }

static bool is_high(const struct hparams *hp, int call) { return call % (hp->hrm_l_cycles + 1) == hp->hrm_l_cycles; }

// Layer il is layer il mod n of call il / n. A call begins with the sum of both states and replaces one; the other one waits in
// g->arch_state while x is the state that was replaced last.
static struct ggml_tensor *layer(struct graph *g, const struct layer *unused, struct ggml_tensor *x, int il) {
    const struct hparams *hp = g->hp;
    const int n = hp->hrm_layers, call = il / n;
    const struct layer *l = &g->layers[il % n + (is_high(hp, call) ? n : 0)];
    (void) unused;
    if (il % n == 0) {
        struct ggml_tensor *last = x;
        x = ggml_add(g->ctx, x, call ? g->arch_state : g->w->hrm_z_l_init.w);
        if (call == 0 || is_high(hp, call) != is_high(hp, call - 1)) g->arch_state = last;
    }
    struct ggml_tensor *cur = blk_norm(g, x, NULL, NORM_RMS);
    cur = blk_self_attn(g, l, cur, il, &(struct attn_opts){.gate = blk_linear(g, &l->attn_gate, cur)});
    blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    x = ggml_add(g->ctx, blk_ffn_layer(g, l, blk_norm(g, x, NULL, NORM_RMS), ACT_SILU), x);
    return il % n == n - 1 ? blk_norm(g, x, NULL, NORM_RMS) : x;
}

const struct arch arch_hrm_text = {
    .name = "hrm_text",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .head = {.no_norm = true},
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .embed = embed,
    .layer = layer,
};
