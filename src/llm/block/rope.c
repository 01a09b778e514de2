// Rotary positions: from the keys and the context's settings to the operation's parameters.
#include "block/block.h"

struct ggml_tensor *rope_factors(const struct graph *g) {
    if (g->w->rope_freqs.w) return g->w->rope_freqs.w;
    return g->cp->n_ctx_seq > g->cp->rope_orig_ctx ? g->w->rope_factors_long.w : g->w->rope_factors_short.w;
}

struct rope_opts rope_layer(struct graph *g, int il) {
    const struct hparams *hp = g->hp;
    const struct cparams *cp = g->cp;
    struct rope_opts o = {
        .n_rot = hp->n_rot[il],
        .mode = hp->rope_mode,
        .base = cp->rope_base,
        .freq_scale = cp->rope_freq_scale,
        .ext = cp->rope_ext,
        .mag = cp->rope_mag,
        .beta_fast = cp->rope_beta_fast,
        .beta_slow = cp->rope_beta_slow,
        .factors = blk_f32(g, rope_factors(g)),
    };
    if (!hp->is_swa[il]) return o;
    if (hp->rope_swa & SWA_ROPE_BASE) o.base = hp->rope_base_swa;
    if (hp->rope_swa & SWA_ROPE_SCALE) o.freq_scale = 1.0f / hp->rope_f_swa;
    if (hp->rope_swa & SWA_ROPE_NO_YARN) {
        o.ext = 0.0f;
        o.mag = 1.0f;
    }
    if (hp->rope_swa & SWA_ROPE_NO_FACTORS) o.factors = NULL;
    return o;
}

struct rope_opts rope_index(struct graph *g, int il) {
    struct rope_opts o = rope_layer(g, il);
    const int kind = g->hp->idx_rope;
    if (kind == IDX_ROPE_NEOX) o.mode = GGML_ROPE_TYPE_NEOX;
    if (kind == IDX_ROPE_NORMAL || kind == IDX_ROPE_NORMAL_LAST) o.mode = GGML_ROPE_TYPE_NORMAL;
    if (kind == IDX_ROPE_NORMAL_LAST) o.offset = g->hp->idx_dim - o.n_rot;
    return o;
}

struct ggml_tensor *blk_rope_ext(struct graph *g, struct ggml_tensor *x, const struct rope_opts *o) {
    struct ggml_tensor *pos = o->pos ? o->pos : in_pos(g);
    const int orig = g->cp->rope_orig_ctx;
    struct ggml_tensor *y;
    if (o->mode == GGML_ROPE_TYPE_MROPE || o->mode == GGML_ROPE_TYPE_IMROPE) {
        int sections[4];
        for (int i = 0; i < 4; i++) sections[i] = g->hp->rope_sections[i];
        y = o->back ? ggml_rope_multi_back(g->ctx, x, pos, o->factors, o->n_rot, sections, o->mode, orig, o->base,
                                           o->freq_scale, o->ext, o->mag, o->beta_fast, o->beta_slow)
                    : ggml_rope_multi(g->ctx, x, pos, o->factors, o->n_rot, sections, o->mode, orig, o->base, o->freq_scale,
                                      o->ext, o->mag, o->beta_fast, o->beta_slow);
    } else if (o->back) {
        y = ggml_rope_ext_back(g->ctx, x, pos, o->factors, o->n_rot, o->mode, orig, o->base, o->freq_scale, o->ext, o->mag,
                               o->beta_fast, o->beta_slow);
    } else {
        y = ggml_rope_ext(g->ctx, x, pos, o->factors, o->n_rot, o->mode, orig, o->base, o->freq_scale, o->ext, o->mag,
                          o->beta_fast, o->beta_slow);
    }
    return o->offset ? ggml_rope_set_offset(y, o->offset) : y;
}

struct ggml_tensor *blk_rope(struct graph *g, struct ggml_tensor *x, int il) {
    const struct rope_opts o = rope_layer(g, il);
    return blk_rope_ext(g, x, &o);
}
