// nanbeige: the stack of layers runs several times over the same weights, with caches of its own each time.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    K_RMS,
    {"num_loops", HP_n_loops, "1", 0},
    {"skip_loop_final_norm", HP_skip_loop_norm, "0", 0},
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_ROPE_FREQS,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_NORM(ffn_norm),
    T_FFN_ANY(T_SCALE, 0),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    const int n = hp->n_layer_weights;
    TRY(arch_require(hp->n_loops > 0 && n * hp->n_loops <= MAX_LAYERS, b,
                     "num_loops times its layers must lie between 1 and 512"));
    hp->n_layer = n * hp->n_loops;
    for (int i = n; i < hp->n_layer; i++) {  // layer i is layer i mod n once more
        hp->n_head[i] = hp->n_head[i % n];
        hp->n_head_kv[i] = hp->n_head_kv[i % n];
        hp->n_embd_head_k[i] = hp->n_embd_head_k[i % n];
        hp->n_embd_head_v[i] = hp->n_embd_head_v[i % n];
        hp->n_rot[i] = hp->n_rot[i % n];
        hp->n_ff[i] = hp->n_ff[i % n];
        hp->rope_layers[i] = hp->rope_layers[i % n];
    }
    return ERR_OK;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const int n = g->hp->n_layer_weights;
    (void) l;
    x = blk_pre_norm(g, &g->layers[il % n], x, il, &(struct form_opts){0});
    if ((il + 1) % n == 0 && il + 1 < g->hp->n_layer && !g->hp->skip_loop_norm)
        x = blk_norm(g, x, &g->w->output_norm, NORM_RMS);
    return x;
}

const struct arch arch_nanbeige = {
    .name = "nanbeige",
    .flags = ARCH_HF_PERMUTED,
    .rope = LLAMA_ROPE_TYPE_NORM,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
