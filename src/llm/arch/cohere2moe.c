// cohere2moe: Cohere with experts; one norm feeds both branches, the first of four layers is full and without positions.
#include "arch/arch.h"

static const struct arch_key keys[] = {
    {"attention.layer_norm_rms_epsilon", HP_eps, "0", 0},
    {"attention.layer_norm_epsilon", HP_eps_ln, "0", 0},
    K_SWA_REQ,
    {"logit_scale", HP_f_logit_scale, REQ, 0},
    {"leading_dense_block_count", HP_n_layer_dense_lead, REQ, 0},
    K_FX_OR("F"),
    K_NSH("0"),
    K_FS("Fx*nsh"),
    K_GATING("0"),
    K_WSCALE,
    K_WNORM,
    {NULL, 0, NULL, 0},
};

static const struct arch_tensor tensors[] = {
    T_EMBD,
    T_OUT_NORM,
    T_OUT_TIED,
    T_NORM(attn_norm),
    T_QKV,
    {SLOT_attn_output, "H*Dv,E", T_SCALE, 0, 0, 0, 0},
    T_FFN_ANY(T_SCALE, "i<lead"),
    T_ROUTER("i>=lead"),
    T_EXPERTS_MERGED("Fx", T_SCALE, "i>=lead"),
    T_SHEXP("Fs", T_SCALE, "i>=lead&&nsh>0"),
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    (void) b;
    if (!hp->expert_gating) hp->expert_gating = GATE_SIGMOID;
    TRY(arch_require(hp->eps > 0 || hp->eps_ln > 0, b, "one of the two norm epsilons must be there"));
    TRY(arch_windows(hp, b, WINDOW_STANDARD, 4, true));
    for (int i = 0; i < hp->n_block; i++) hp->rope_layers[i] = hp->is_swa[i] || i < hp->n_layer_dense_lead;
    return ERR_OK;
}

static struct ggml_tensor *norm(struct graph *g, struct ggml_tensor *x, const struct weight *w) {
    return g->hp->eps > 0 ? blk_norm(g, x, w, NORM_RMS) : blk_norm_eps(g, x, w, NORM_LN, g->hp->eps_ln);
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    struct ggml_tensor *n = norm(g, x, &l->attn_norm), *cur = blk_self_attn(g, l, n, il, &(struct attn_opts){0});
    blk_select3(g, il, &cur, &x, &n);
    struct ggml_tensor *ffn = blk_network(g, l, n, il, &(struct form_opts){.moe = moe_of_file(g)});
    if (l->ffn_up_shexp.w) ffn = ggml_scale(g->ctx, ffn, 0.5f);  // the mean of both
    return ggml_add(g->ctx, ggml_add(g->ctx, cur, ffn), x);
}

static void head(struct graph *g, struct ggml_tensor *x) {
    blk_head(g, norm(g, x, &g->w->output_norm), &(struct head_opts){.no_norm = true, .scale = g->hp->f_logit_scale});
}

const struct arch arch_cohere2moe = {
    .name = "cohere2moe",
    .rope = LLAMA_ROPE_TYPE_NORM,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .layer = layer,
    .head_fn = head,
};
