// The common way through a model: embed, layers, head, pooling.
#include "arch/arch.h"

int arch_max_nodes(const struct arch *a, const struct hparams *hp) {
    const int per = a->nodes ? a->nodes : 64;
    return per * (hp->n_layer + hp->n_dec_layer + 2) + 512;
}

static struct ggml_tensor *steer(struct graph *g, struct ggml_tensor *x, int il) {
    if (!g->cvec || !g->cvec[il]) return x;
    return ggml_add(g->ctx, x, g->cvec[il]);
}

static void pool(const struct arch *a, struct graph *g) {
    const enum llama_pooling_type kind = g->cp->pooling;
    if (!g->embd || kind == LLAMA_POOLING_TYPE_NONE || kind == LLAMA_POOLING_TYPE_UNSPECIFIED) return;
    if (a->pooled)
        g->pooled = a->pooled(g, g->embd, kind);
    else
        g->pooled = blk_pool(g, g->embd, kind);
}

void arch_build(const struct arch *a, struct graph *g) {
    g->n_rows = g->n.n_tokens;
    if (a->build) {
        a->build(g);
    } else if (g->cp->nextn) {
        arch_build_nextn(a, g);
    } else {
        struct ggml_tensor *x = a->embed ? a->embed(g) : blk_embed(g, a->embd_scale);
        for (int il = 0; il < g->hp->n_layer; il++) {
            x = steer(g, a->layer(g, &g->layers[il], x, il), il);
            blk_name(x, "l_out", il);
        }
        if (g->n.n_outputs > 0) {
            if (a->head_fn) {
                a->head_fn(g, x);
            } else {
                struct head_opts o = a->head;
                o.norm = a->norm;
                blk_head(g, x, &o);
            }
        }
    }
    if (g->n.n_outputs == 0 && !g->enc_out) return;  // keys, values and states are written; nothing else is wanted
    if (g->n.want_embd) pool(a, g);
    if (g->pooled)
        ggml_build_forward_expand(g->gf, g->pooled);
    else if (g->embd && g->n.want_embd)
        ggml_build_forward_expand(g->gf, g->embd);
    if (g->enc_out) ggml_build_forward_expand(g->gf, g->enc_out);
    if (g->logits) ggml_build_forward_expand(g->gf, g->logits);
}
