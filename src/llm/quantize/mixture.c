// The usual mixtures of the field (Q4_K_M and its kin). The idea behind them: the output matrix and the values of attention lose most by
// coarse weights, the down projections come next, and there the first and last eighth of the layers, so these get a finer type.
#include "quantize/mixture.h"

enum ggml_type mixture_type(enum llama_ftype ftype) {
    switch (ftype) {
        case LLAMA_FTYPE_ALL_F32: return GGML_TYPE_F32;
        case LLAMA_FTYPE_MOSTLY_F16: return GGML_TYPE_F16;
        case LLAMA_FTYPE_MOSTLY_BF16: return GGML_TYPE_BF16;
        case LLAMA_FTYPE_MOSTLY_Q4_0: return GGML_TYPE_Q4_0;
        case LLAMA_FTYPE_MOSTLY_Q4_1: return GGML_TYPE_Q4_1;
        case LLAMA_FTYPE_MOSTLY_Q5_0: return GGML_TYPE_Q5_0;
        case LLAMA_FTYPE_MOSTLY_Q5_1: return GGML_TYPE_Q5_1;
        case LLAMA_FTYPE_MOSTLY_Q8_0: return GGML_TYPE_Q8_0;
        case LLAMA_FTYPE_MOSTLY_MXFP4_MOE: return GGML_TYPE_Q8_0;
        case LLAMA_FTYPE_MOSTLY_Q2_K:
        case LLAMA_FTYPE_MOSTLY_Q2_K_S: return GGML_TYPE_Q2_K;
        case LLAMA_FTYPE_MOSTLY_Q3_K_S:
        case LLAMA_FTYPE_MOSTLY_Q3_K_M:
        case LLAMA_FTYPE_MOSTLY_Q3_K_L: return GGML_TYPE_Q3_K;
        case LLAMA_FTYPE_MOSTLY_Q4_K_S:
        case LLAMA_FTYPE_MOSTLY_Q4_K_M: return GGML_TYPE_Q4_K;
        case LLAMA_FTYPE_MOSTLY_Q5_K_S:
        case LLAMA_FTYPE_MOSTLY_Q5_K_M: return GGML_TYPE_Q5_K;
        case LLAMA_FTYPE_MOSTLY_Q6_K: return GGML_TYPE_Q6_K;
        case LLAMA_FTYPE_MOSTLY_IQ1_S: return GGML_TYPE_IQ1_S;
        case LLAMA_FTYPE_MOSTLY_IQ1_M: return GGML_TYPE_IQ1_M;
        case LLAMA_FTYPE_MOSTLY_IQ2_XXS: return GGML_TYPE_IQ2_XXS;
        case LLAMA_FTYPE_MOSTLY_IQ2_XS:
        case LLAMA_FTYPE_MOSTLY_IQ2_S: return GGML_TYPE_IQ2_XS;
        case LLAMA_FTYPE_MOSTLY_IQ2_M: return GGML_TYPE_IQ2_S;
        case LLAMA_FTYPE_MOSTLY_IQ3_XXS: return GGML_TYPE_IQ3_XXS;
        case LLAMA_FTYPE_MOSTLY_IQ3_XS:
        case LLAMA_FTYPE_MOSTLY_IQ3_S:
        case LLAMA_FTYPE_MOSTLY_IQ3_M: return GGML_TYPE_IQ3_S;
        case LLAMA_FTYPE_MOSTLY_IQ4_NL: return GGML_TYPE_IQ4_NL;
        case LLAMA_FTYPE_MOSTLY_IQ4_XS: return GGML_TYPE_IQ4_XS;
        case LLAMA_FTYPE_MOSTLY_TQ1_0: return GGML_TYPE_TQ1_0;
        case LLAMA_FTYPE_MOSTLY_TQ2_0: return GGML_TYPE_TQ2_0;
        case LLAMA_FTYPE_MOSTLY_NVFP4: return GGML_TYPE_NVFP4;
        case LLAMA_FTYPE_MOSTLY_Q1_0: return GGML_TYPE_Q1_0;
        case LLAMA_FTYPE_MOSTLY_Q2_0: return GGML_TYPE_Q2_0;
        default: return GGML_TYPE_COUNT;
    }
}

bool mixture_takes(enum role role, bool pure) {
    return role != ROLE_NORM && role != ROLE_SMALL && role != ROLE_EMBD_OTHER && role != ROLE_ROUTER &&
           (pure || role != ROLE_SMALL_MATRIX);
}

// The first and last eighth of the layers, and every third of those between.
static bool finer_layer(int i, int n) { return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2; }

static bool below_2_bits(enum llama_ftype f) {
    return f == LLAMA_FTYPE_MOSTLY_IQ1_S || f == LLAMA_FTYPE_MOSTLY_IQ1_M || f == LLAMA_FTYPE_MOSTLY_IQ2_XXS ||
           f == LLAMA_FTYPE_MOSTLY_IQ2_XS || f == LLAMA_FTYPE_MOSTLY_IQ2_S || f == LLAMA_FTYPE_MOSTLY_IQ2_M;
}

static bool is_f_or_8(enum ggml_type t) {
    return t == GGML_TYPE_F32 || t == GGML_TYPE_F16 || t == GGML_TYPE_BF16 || t == GGML_TYPE_Q8_0;
}

static enum ggml_type pick_output(enum llama_ftype f, const struct mixture_model *m, int64_t ne0, enum ggml_type base) {
    if (is_f_or_8(base)) return base;
    if (m->coarse || ne0 % 256 != 0) return GGML_TYPE_Q8_0;
    if (f == LLAMA_FTYPE_MOSTLY_TQ1_0 || f == LLAMA_FTYPE_MOSTLY_TQ2_0) return GGML_TYPE_Q6_K;
    return below_2_bits(f) || f == LLAMA_FTYPE_MOSTLY_IQ3_XXS ? GGML_TYPE_Q5_K : GGML_TYPE_Q6_K;
}

static enum ggml_type pick_embd(enum llama_ftype f, enum ggml_type base) {
    if (f == LLAMA_FTYPE_MOSTLY_IQ2_XXS || f == LLAMA_FTYPE_MOSTLY_IQ2_XS || f == LLAMA_FTYPE_MOSTLY_IQ1_S ||
        f == LLAMA_FTYPE_MOSTLY_IQ1_M)
        return GGML_TYPE_Q2_K;
    if (f == LLAMA_FTYPE_MOSTLY_IQ2_S || f == LLAMA_FTYPE_MOSTLY_IQ2_M || f == LLAMA_FTYPE_MOSTLY_IQ3_XXS)
        return GGML_TYPE_IQ3_S;
    if (f == LLAMA_FTYPE_MOSTLY_TQ1_0 || f == LLAMA_FTYPE_MOSTLY_TQ2_0) return GGML_TYPE_Q4_K;
    return base;
}

static enum ggml_type pick_below_2_bits(enum llama_ftype f, const struct mixture_model *m, const struct mixture_tensor *t,
                                        enum ggml_type base) {
    const bool wide = f == LLAMA_FTYPE_MOSTLY_IQ2_S || f == LLAMA_FTYPE_MOSTLY_IQ2_M;
    switch (t->role) {
        case ROLE_ATTN_V:
        case ROLE_ATTN_QKV:
        case ROLE_ATTN_KV_B:
            return m->n_gqa >= 4 || m->n_expert >= 4 ? GGML_TYPE_Q4_K : wide ? GGML_TYPE_IQ3_S : GGML_TYPE_Q2_K;
        case ROLE_ATTN_K: return m->n_expert == 8 ? GGML_TYPE_Q4_K : base;
        case ROLE_FFN_DOWN:
        case ROLE_FFN_DOWN_EXPS: return t->i_down < m->n_layer / 8 ? (wide ? GGML_TYPE_IQ3_S : GGML_TYPE_Q2_K) : base;
        case ROLE_ATTN_OUT:
            if (m->n_expert == 8) return GGML_TYPE_Q5_K;
            if (f == LLAMA_FTYPE_MOSTLY_IQ1_S || f == LLAMA_FTYPE_MOSTLY_IQ1_M) return GGML_TYPE_IQ2_XXS;
            return wide ? GGML_TYPE_IQ3_S : base;
        default: return base;
    }
}

static enum ggml_type pick_value_by_file(enum llama_ftype f, const struct mixture_model *m, int il, enum ggml_type base) {
    const bool shared = m->n_gqa >= 4, finer = finer_layer(il, m->n_values);
    switch (f) {
        case LLAMA_FTYPE_MOSTLY_Q2_K: return shared ? GGML_TYPE_Q4_K : GGML_TYPE_Q3_K;
        case LLAMA_FTYPE_MOSTLY_Q2_K_S: return shared ? GGML_TYPE_Q4_K : base;
        case LLAMA_FTYPE_MOSTLY_IQ3_XXS: return shared ? GGML_TYPE_Q4_K : m->has_imatrix ? base : GGML_TYPE_IQ3_S;
        case LLAMA_FTYPE_MOSTLY_IQ3_XS:
        case LLAMA_FTYPE_MOSTLY_IQ3_S: return shared ? GGML_TYPE_Q4_K : base;
        case LLAMA_FTYPE_MOSTLY_IQ3_M: return GGML_TYPE_Q4_K;
        case LLAMA_FTYPE_MOSTLY_Q3_K_M: return il < 2 ? GGML_TYPE_Q5_K : GGML_TYPE_Q4_K;
        case LLAMA_FTYPE_MOSTLY_Q3_K_L: return GGML_TYPE_Q5_K;
        case LLAMA_FTYPE_MOSTLY_IQ4_NL:
        case LLAMA_FTYPE_MOSTLY_IQ4_XS: return shared ? GGML_TYPE_Q5_K : base;
        case LLAMA_FTYPE_MOSTLY_Q4_K_M:
        case LLAMA_FTYPE_MOSTLY_Q5_K_M: return finer ? GGML_TYPE_Q6_K : base;
        case LLAMA_FTYPE_MOSTLY_Q4_K_S: return il < 4 ? GGML_TYPE_Q5_K : base;
        default: return base;
    }
}

// Where 80 layers share few key heads values are a small part of the model, and a coarse type would cost more than it saves.
static enum ggml_type pick_value(enum llama_ftype f, const struct mixture_model *m, int il, enum ggml_type base) {
    if (m->n_expert == 8) return GGML_TYPE_Q8_0;  // small beside the experts, and read for every token
    const enum ggml_type t = pick_value_by_file(f, m, il, base);
    return m->finer_values && (t == GGML_TYPE_Q3_K || t == GGML_TYPE_Q4_K) ? GGML_TYPE_Q5_K : t;
}

static enum ggml_type pick_down(enum llama_ftype f, const struct mixture_model *m, int il, enum ggml_type base) {
    const bool first = il < m->n_layer / 8, finer = finer_layer(il, m->n_layer);
    switch (f) {
        case LLAMA_FTYPE_MOSTLY_Q2_K: return GGML_TYPE_Q3_K;
        case LLAMA_FTYPE_MOSTLY_Q2_K_S: return first ? GGML_TYPE_Q4_K : base;
        case LLAMA_FTYPE_MOSTLY_IQ3_XXS: return m->has_imatrix ? base : first ? GGML_TYPE_Q4_K : GGML_TYPE_Q3_K;
        case LLAMA_FTYPE_MOSTLY_Q3_K_M:
            return il < m->n_layer / 16 ? GGML_TYPE_Q5_K : finer || !m->coarse ? GGML_TYPE_Q4_K : base;
        case LLAMA_FTYPE_MOSTLY_IQ3_M: return first || (m->n_expert == 8 && finer) ? GGML_TYPE_Q4_K : base;
        case LLAMA_FTYPE_MOSTLY_Q3_K_L: return m->coarse ? GGML_TYPE_Q4_K : GGML_TYPE_Q5_K;
        case LLAMA_FTYPE_MOSTLY_Q4_K_M:
            if (m->coarse && finer) return il < m->n_layer / 16 ? GGML_TYPE_Q6_K : GGML_TYPE_Q5_K;
            return finer ? GGML_TYPE_Q6_K : base;
        case LLAMA_FTYPE_MOSTLY_Q5_K_M: return finer ? GGML_TYPE_Q6_K : base;
        case LLAMA_FTYPE_MOSTLY_IQ4_NL:
        case LLAMA_FTYPE_MOSTLY_IQ4_XS: return first && !m->has_imatrix ? GGML_TYPE_Q5_K : base;
        case LLAMA_FTYPE_MOSTLY_Q4_K_S: return first && !m->coarse ? GGML_TYPE_Q5_K : base;
        case LLAMA_FTYPE_MOSTLY_Q4_0: return first && m->has_imatrix ? GGML_TYPE_Q4_1 : base;
        case LLAMA_FTYPE_MOSTLY_Q5_0: return first && m->has_imatrix ? GGML_TYPE_Q5_1 : base;
        default: return base;
    }
}

static enum ggml_type pick_attn_out(enum llama_ftype f, const struct mixture_model *m, enum ggml_type base) {
    const bool k_kind = base == GGML_TYPE_Q2_K || base == GGML_TYPE_Q3_K || base == GGML_TYPE_Q4_K ||
                        base == GGML_TYPE_IQ3_XXS || base == GGML_TYPE_IQ3_S || base == GGML_TYPE_IQ4_NL ||
                        base == GGML_TYPE_IQ4_XS;
    if (m->coarse) return f == LLAMA_FTYPE_MOSTLY_Q3_K_L ? GGML_TYPE_Q4_K : base;
    if (m->n_expert == 8)
        return k_kind && f != LLAMA_FTYPE_MOSTLY_Q3_K_L && f != LLAMA_FTYPE_MOSTLY_Q2_K_S ? GGML_TYPE_Q5_K : base;
    switch (f) {
        case LLAMA_FTYPE_MOSTLY_Q2_K: return GGML_TYPE_Q3_K;
        case LLAMA_FTYPE_MOSTLY_IQ3_XXS: return GGML_TYPE_IQ3_S;
        case LLAMA_FTYPE_MOSTLY_Q3_K_M:
        case LLAMA_FTYPE_MOSTLY_IQ3_M: return GGML_TYPE_Q4_K;
        case LLAMA_FTYPE_MOSTLY_Q3_K_L: return GGML_TYPE_Q5_K;
        default: return base;
    }
}

enum ggml_type mixture_pick(enum llama_ftype f, const struct mixture_model *m, const struct mixture_tensor *t) {
    const enum ggml_type base = mixture_type(f);
    if (f == LLAMA_FTYPE_MOSTLY_MXFP4_MOE)
        return t->role == ROLE_FFN_GATE_EXPS || t->role == ROLE_FFN_UP_EXPS || t->role == ROLE_FFN_DOWN_EXPS
                   ? GGML_TYPE_MXFP4
                   : base;
    if (is_f_or_8(base) || base == GGML_TYPE_NVFP4 || base == GGML_TYPE_Q1_0 || base == GGML_TYPE_Q2_0) return base;
    if (t->role == ROLE_OUTPUT || (t->role == ROLE_EMBD && m->tied)) return pick_output(f, m, t->ne[0], base);
    if (t->role == ROLE_EMBD) return pick_embd(f, base);
    if (below_2_bits(f)) return pick_below_2_bits(f, m, t, base);
    switch (t->role) {
        case ROLE_ATTN_V:
        case ROLE_ATTN_QKV:
        case ROLE_ATTN_KV_B: return pick_value(f, m, t->i_value, base);
        case ROLE_ATTN_K:
            return m->n_expert == 8                  ? GGML_TYPE_Q8_0
                   : f == LLAMA_FTYPE_MOSTLY_IQ3_XS  ? GGML_TYPE_IQ3_XXS
                   : f == LLAMA_FTYPE_MOSTLY_IQ3_XXS ? GGML_TYPE_IQ2_S
                                                     : base;
        case ROLE_ATTN_Q:
            return f == LLAMA_FTYPE_MOSTLY_IQ3_XS    ? GGML_TYPE_IQ3_XXS
                   : f == LLAMA_FTYPE_MOSTLY_IQ3_XXS ? GGML_TYPE_IQ2_S
                                                     : base;
        case ROLE_ATTN_OUT: return pick_attn_out(f, m, base);
        case ROLE_FFN_DOWN:
        case ROLE_FFN_DOWN_SHEXP:
        case ROLE_FFN_DOWN_EXPS: return pick_down(f, m, t->i_down, base);
        case ROLE_FFN_GATE:
        case ROLE_FFN_GATE_EXPS:
        case ROLE_FFN_UP:
        case ROLE_FFN_UP_EXPS:
            return f == LLAMA_FTYPE_MOSTLY_IQ3_XS && t->layer >= m->n_layer / 8 && t->layer < 7 * m->n_layer / 8
                       ? GGML_TYPE_IQ3_XXS
                       : base;
        default: return base;
    }
}

enum ggml_type mixture_fit(enum ggml_type type, int64_t ne0) {
    if (ne0 % ggml_blck_size(type) == 0) return type;
    enum ggml_type near;
    switch (type) {
        case GGML_TYPE_Q4_K: near = GGML_TYPE_Q5_0; break;
        case GGML_TYPE_Q5_K: near = GGML_TYPE_Q5_1; break;
        case GGML_TYPE_Q6_K: near = GGML_TYPE_Q8_0; break;
        case GGML_TYPE_Q2_K:
        case GGML_TYPE_Q3_K:
        case GGML_TYPE_TQ1_0:
        case GGML_TYPE_TQ2_0:
        case GGML_TYPE_Q1_0:
        case GGML_TYPE_Q2_0:
        case GGML_TYPE_NVFP4: near = GGML_TYPE_Q4_0; break;
        default: near = GGML_TYPE_IQ4_NL; break;
    }
    return ne0 % ggml_blck_size(near) == 0 ? near : GGML_TYPE_F16;
}
