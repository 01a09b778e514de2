// Draft heads (multi-token prediction): one more layer behind the model's own, which from the state of a position and the token that
// follows it predicts the token after that one (DeepSeek-V3, arXiv 2412.19437, section 2.2). The last n_nextn layers of a file are such
// heads. A context of type MTP runs one of them, with a cache of its own; the others leave them alone.
#include "arch/arch.h"

const struct arch_tensor arch_nextn_tensors[] = {
    {SLOT_nextn_eh_proj, "2*E,E", 0, 0, 0, 0, 0},
    {SLOT_nextn_enorm, "E", 0, 0, 0, 0, 0},
    {SLOT_nextn_hnorm, "E", 0, 0, 0, 0, 0},
    {SLOT_nextn_embed_tokens, "E,V", T_OPT, 0, 0, 0, 0},      // absent: the model's embedding
    {SLOT_nextn_shared_head_head, "E,V", T_OPT, 0, 0, 0, 0},  // absent: the model's output
    {SLOT_nextn_shared_head_norm, "E", T_OPT, 0, 0, 0, 0},    // absent: the model's last norm
    {SLOT_NONE, NULL, 0, 0, 0, 0, 0},
};

// Streams, loops, inputs of every layer's own and heads that do more than norm and product have no form here.
bool arch_can_nextn(const struct arch *a, const struct hparams *hp) {
    if (hp->n_nextn <= 0 || hp->n_layer + hp->n_nextn != hp->n_block) return false;
    if (a->build || a->flags & (ARCH_ENCODER | ARCH_ENCODER_DECODER | ARCH_DIFFUSION | ARCH_NO_LOGITS)) return false;
    return (!a->head_fn || a->flags & ARCH_PLAIN_HEAD) && hp->n_hc == 0 && hp->n_embd_per_layer == 0 && hp->n_loops == 0;
}

static struct ggml_tensor *embed(const struct arch *a, struct graph *g, const struct layer *l) {
    if (!g->n.has_token || !l->nextn_embed_tokens.w) return a->embed ? a->embed(g) : blk_embed(g, a->embd_scale);
    struct ggml_tensor *e = ggml_get_rows(g->ctx, l->nextn_embed_tokens.w, in_tokens(g));
    return a->embd_scale != 0 && a->embd_scale != 1.0f ? ggml_scale(g->ctx, e, a->embd_scale) : e;
}

void arch_build_nextn(const struct arch *a, struct graph *g) {
    const int il = g->cp->nextn;
    const struct layer *l = &g->layers[il];
    struct ggml_tensor *e = blk_norm(g, embed(a, g, l), &l->nextn_enorm, a->norm);
    struct ggml_tensor *h = blk_norm(g, in_state(g), &l->nextn_hnorm, a->norm);
    struct ggml_tensor *x = blk_linear(g, &l->nextn_eh_proj, ggml_concat(g->ctx, e, h, 0));
    x = blk_name(a->layer(g, l, blk_name(x, "nextn_in", il), il), "l_out", il);
    if (g->n.n_outputs == 0) return;
    struct head_opts o = a->head;
    o.norm = a->norm;
    if (l->nextn_shared_head_norm.w) o.norm_w = &l->nextn_shared_head_norm;
    if (l->nextn_shared_head_head.w) o.output_w = &l->nextn_shared_head_head;
    blk_head(g, x, &o);
}
