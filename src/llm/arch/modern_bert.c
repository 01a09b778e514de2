// modern-bert: an encoder in pre-norm form with rotary positions; two of three layers see a window only (arXiv 2412.13663).
// Some files bring a head that scores tokens: a few more layers, run once per kind of question.
#include "arch/arch.h"

#include <string.h>

static const struct arch_key keys[] = {
    K_LN,
    K_SWA,
    K_ROPE_SWA("10000"),
    {"classifier.output_labels", HP_n_cls_out, "1", KEY_COUNT},
    {"classifier.pooling_type", HP_cls_pooling, "0", 0},
    {"decision.block_count", HP_n_decision, "0", 0},
    {NULL, 0, NULL, 0},
};

#define BODY "i<L-ndec"
#define DECIDES "i>=L-ndec"

static const struct arch_tensor tensors[] = {
    T_EMBD,
    {SLOT_token_embd_norm, "E", 0, 0, 0, 0, 0},
    T_OUT_NORM,
    {SLOT_attn_norm, "E", T_OPT, "i==0&&" BODY, 0, 0, 0},
    {SLOT_attn_norm, "E", 0, "i>0&&" BODY, 0, 0, 0},
    {SLOT_attn_norm, "E", T_BIAS, DECIDES, 0, 0, 0},
    {SLOT_attn_qkv, "E,3*E", T_SCALE, BODY, 0, 0, 0},
    {SLOT_attn_qkv, "E,3*E", T_BIAS | T_SCALE, DECIDES, 0, 0, 0},
    {SLOT_attn_output, "E,E", T_SCALE, BODY, 0, 0, 0},
    {SLOT_attn_output, "E,E", T_BIAS_OPT | T_SCALE, DECIDES, 0, 0, 0},
    {SLOT_ffn_norm, "E", 0, BODY, 0, 0, 0},
    {SLOT_ffn_norm, "E", T_BIAS, DECIDES, 0, 0, 0},
    {SLOT_ffn_up, "E,2*F", 0, BODY, 0, 0, 0},
    {SLOT_ffn_down, "F,E", 0, BODY, 0, 0, 0},
    {SLOT_ffn_up, "E,?", T_BIAS, DECIDES, 0, 0, 0},
    {SLOT_ffn_down, "?,E", T_BIAS, DECIDES, 0, 0, 0},
    {SLOT_token_types, "E,3", 0, "ndec>0", 0, 0, 0},
    {SLOT_cls, "E,E", T_OPT | T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_cls_norm, "E", T_OPT | T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_cls_out, "E,ncls", T_OPT | T_BIAS_OPT, 0, 0, 0, 0},
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

static enum err setup(struct hparams *hp, const struct model_build *b) {
    const char *name = arch_key_str(b, "hidden_activation");
    hp->act = ACT_GELU;
    if (name && (!strcmp(name, "silu") || !strcmp(name, "swish") || !strcmp(name, "swiglu"))) hp->act = ACT_SILU;
    if (name && !strcmp(name, "reglu")) hp->act = ACT_RELU;
    TRY(arch_require(!name || strcmp(name, "relu") != 0, b, "the activation relu has no gate, and its networks have one"));
    TRY(arch_require(hp->n_decision >= 0 && 2 * hp->n_decision <= hp->n_block, b,
                     "more than half of its layers are a head"));
    TRY(arch_windows(hp, b, WINDOW_SYMMETRIC, 3, true));
    hp->rope_swa = SWA_ROPE_OWN;
    hp->rope_f_swa = 1;
    hp->n_layer -= hp->n_decision;
    for (int i = hp->n_layer; i < hp->n_block; i++) hp->is_swa[i] = hp->rope_layers[i] = 0;
    if (hp->n_decision > 0) {
        hp->n_embd_out = 3;
        hp->n_cls_out = 1;
    }
    return ERR_OK;
}

static struct ggml_tensor *layer(struct graph *g, const struct layer *l, struct ggml_tensor *x, int il) {
    const bool first = il == 0 && !l->attn_norm.w;  // the embedding's norm is its norm already
    struct ggml_tensor *cur =
        blk_self_attn(g, l, first ? x : blk_norm(g, x, &l->attn_norm, NORM_LN), il, &(struct attn_opts){0});
    if (g->hp->n_decision == 0) blk_select(g, il, &cur, &x);
    x = ggml_add(g->ctx, cur, x);
    const enum act act = il < g->hp->n_layer ? (enum act) g->hp->act : ACT_RELU;
    return ggml_add(g->ctx, blk_ffn_layer(g, l, blk_norm(g, x, &l->ffn_norm, NORM_LN), act), x);
}

// One score per token and kind of question, instead of states.
static struct ggml_tensor *decide(struct graph *g, struct ggml_tensor *x) {
    struct ggml_context *c = g->ctx;
    struct ggml_tensor *types = g->w->token_types.w, *scores = NULL;
    for (int k = 0; k < 3; k++) {
        struct ggml_tensor *y = ggml_add(c, x, ggml_view_1d(c, types, types->ne[0], (size_t) k * types->nb[1]));
        for (int il = g->hp->n_layer; il < g->hp->n_block; il++) y = layer(g, &g->layers[il], y, il);
        y = blk_norm(g, y, &g->w->cls_norm, NORM_LN);
        y = blk_linear(g, &g->w->cls_out, ggml_gelu_erf(c, blk_linear(g, &g->w->cls, y)));
        scores = scores ? ggml_concat(c, scores, y, 0) : y;
    }
    return scores;
}

static void head(struct graph *g, struct ggml_tensor *x) {
    const bool decides = g->hp->n_decision > 0 && g->w->cls.w && g->w->cls_out.w;
    if (!decides)
        blk_head(g, x, &(struct head_opts){.norm = NORM_LN});
    else
        blk_head(g, decide(g, blk_norm(g, x, &g->w->output_norm, NORM_LN)), &(struct head_opts){.no_norm = true});
}

static struct ggml_tensor *pooled(struct graph *g, struct ggml_tensor *x, enum llama_pooling_type kind) {
    if (kind != LLAMA_POOLING_TYPE_RANK) return blk_pool(g, x, kind);
    x = blk_pool(g, x, g->hp->cls_pooling == 2 ? LLAMA_POOLING_TYPE_CLS : LLAMA_POOLING_TYPE_MEAN);
    if (g->w->cls.w) x = ggml_gelu(g->ctx, blk_linear(g, &g->w->cls, x));
    if (g->w->cls_norm.w) x = blk_norm(g, x, &g->w->cls_norm, NORM_LN);
    return g->w->cls_out.w ? blk_linear(g, &g->w->cls_out, x) : x;
}

static struct ggml_tensor *embed(struct graph *g) { return blk_norm(g, blk_embed(g, 0), &g->w->token_embd_norm, NORM_LN); }

const struct arch arch_modern_bert = {
    .name = "modern-bert",
    .flags = ARCH_ENCODER,
    .rope = LLAMA_ROPE_TYPE_NEOX,
    .norm = NORM_LN,
    .keys = keys,
    .tensors = tensors,
    .setup = setup,
    .nodes = 192,
    .embed = embed,
    .layer = layer,
    .head_fn = head,
    .pooled = pooled,
};
