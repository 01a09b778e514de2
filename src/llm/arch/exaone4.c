// exaone4: norms behind the branches, which read the stream as it is; the 32B model has windows.
#include "arch/arch.h"

static const struct arch_key keys[] = {K_RMS, K_SWA, {NULL, 0, NULL, 0}};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_ROPE_FREQS,
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_QK_NORM,
    T_NORM(post_attn_norm),
    T_FFN,
    T_NORM(post_ffw_norm),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    if (hp->n_layer != 64) {
        hp->n_swa = 0;  // smaller models carry the key without using it
        return ERR_OK;
    }
    if (hp->n_swa == 0) hp->n_swa = 4096;
    TRY(arch_windows(hp, b, WINDOW_STANDARD, 4, false));
    for (int i = 0; i < hp->n_block; i++) hp->rope_layers[i] = hp->is_swa[i] != 0;
    return ERR_OK;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    return blk_sandwich(g, l, x, il, &(struct form_opts){.attn = {.qk_norm = QK_NORM_HEAD}, .raw = true});
}

const struct arch arch_exaone4 = {
    .name = "exaone4",
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
};
