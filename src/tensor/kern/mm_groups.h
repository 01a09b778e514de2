// Quantized blocks as groups of 32 integers with their scales, one row at a time: the plain form of what mm_unpack.h does for
// many rows. The scalar level multiplies with it, and it serves the types that have no vector form.
#pragma once

#include "base/half.h"
#include "type/blocks.h"
#include "type/type.h"

struct mm_group {
    int8_t q[32];
    float s[2], m[2];  // of the first and the second 16; the same when the type has groups of 32
};

static inline void group_scale(struct mm_group *g, float s, float m) {
    g->s[0] = g->s[1] = s;
    g->m[0] = g->m[1] = m;
}

static inline void group_nibbles(const uint8_t *qs, int offset, int8_t *q) {
    for (int i = 0; i < 16; i++) {
        q[i] = (int8_t) ((qs[i] & 15) - offset);
        q[i + 16] = (int8_t) ((qs[i] >> 4) - offset);
    }
}

static inline void group_fifth_bits(const uint8_t *qh, int8_t *q) {
    for (int i = 0; i < 32; i++) q[i] = (int8_t) (q[i] + ((qh[i / 8] >> i % 8) & 1) * 16);
}

static inline void groups_q4_0(const void *p, struct mm_group *g) {
    const struct block_q4_0 *b = p;
    group_scale(g, f16_to_f32(b->d), 0);
    group_nibbles(b->qs, 8, g->q);
}

static inline void groups_q4_1(const void *p, struct mm_group *g) {
    const struct block_q4_1 *b = p;
    group_scale(g, f16_to_f32(b->d), f16_to_f32(b->m));
    group_nibbles(b->qs, 0, g->q);
}

static inline void groups_q5_0(const void *p, struct mm_group *g) {
    const struct block_q5_0 *b = p;
    group_scale(g, f16_to_f32(b->d), 0);
    group_nibbles(b->qs, 16, g->q);
    group_fifth_bits(b->qh, g->q);
}

static inline void groups_q5_1(const void *p, struct mm_group *g) {
    const struct block_q5_1 *b = p;
    group_scale(g, f16_to_f32(b->d), f16_to_f32(b->m));
    group_nibbles(b->qs, 0, g->q);
    group_fifth_bits(b->qh, g->q);
}

static inline void groups_q8_0(const void *p, struct mm_group *g) {
    const struct block_q8_0 *b = p;
    group_scale(g, f16_to_f32(b->d), 0);
    memcpy(g->q, b->qs, 32);
}

static inline void groups_q2_K(const void *p, struct mm_group *g) {
    const struct block_q2_K *b = p;
    const float d = f16_to_f32(b->d), dmin = f16_to_f32(b->dmin);
    for (int i = 0; i < 256; i++) {
        const int q = (b->qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
        g[i / 32].q[i % 32] = (int8_t) (q * (b->scales[i / 16] & 15));
        g[i / 32].s[i / 16 % 2] = d;
        g[i / 32].m[i / 16 % 2] = -dmin * (float) (b->scales[i / 16] >> 4);
    }
}

static inline void groups_q3_K(const void *p, struct mm_group *g) {
    const struct block_q3_K *b = p;
    int scale[16];
    for (int j = 0; j < 16; j++) {
        const int low = (b->scales[j % 8] >> (j / 8 * 4)) & 15, high = (b->scales[8 + j % 4] >> (j / 4 * 2)) & 3;
        scale[j] = (low | high << 4) - 32;
    }
    for (int i = 0; i < 256; i++) {
        const int low = (b->qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3, high = (b->hmask[i % 32] >> (i / 32)) & 1;
        g[i / 32].q[i % 32] = (int8_t) ((4 - (low | high << 2)) * scale[i / 16]);
        if (i % 32 == 0) group_scale(g + i / 32, -f16_to_f32(b->d), 0);
    }
}

// Six-bit scale j and minimum j of the 12 bytes of q4_K and q5_K.
static inline void groups_k_scale(const uint8_t *p, int j, int *s, int *m) {
    *s = j < 4 ? p[j] & 63 : (p[j + 4] & 15) | (p[j - 4] >> 6) << 4;
    *m = j < 4 ? p[j + 4] & 63 : p[j + 4] >> 4 | (p[j] >> 6) << 4;
}

static inline void groups_q4_K(const void *p, struct mm_group *g) {
    const struct block_q4_K *b = p;
    for (int j = 0; j < 8; j++) {
        int s, m;
        groups_k_scale(b->scales, j, &s, &m);
        group_scale(g + j, f16_to_f32(b->d) * (float) s, -f16_to_f32(b->dmin) * (float) m);
        for (int i = 0; i < 32; i++) g[j].q[i] = (int8_t) ((b->qs[j / 2 * 32 + i] >> (j % 2 * 4)) & 15);
    }
}

static inline void groups_q5_K(const void *p, struct mm_group *g) {
    const struct block_q5_K *b = p;
    for (int j = 0; j < 8; j++) {
        int s, m;
        groups_k_scale(b->scales, j, &s, &m);
        group_scale(g + j, f16_to_f32(b->d) * (float) s, -f16_to_f32(b->dmin) * (float) m);
        for (int i = 0; i < 32; i++) {
            g[j].q[i] = (int8_t) (((b->qs[j / 2 * 32 + i] >> (j % 2 * 4)) & 15) | ((b->qh[i] >> j) & 1) << 4);
        }
    }
}

static inline void groups_q6_K(const void *p, struct mm_group *g) {
    const struct block_q6_K *b = p;
    const float d = f16_to_f32(b->d);
    for (int i = 0; i < 256; i++) {
        const int half = i / 128, part = i % 128 / 32, l = i % 32;
        const int low = (b->ql[half * 64 + part % 2 * 32 + l] >> (part / 2 * 4)) & 15;
        const int high = (b->qh[half * 32 + l] >> (part * 2)) & 3;
        g[i / 32].q[l] = (int8_t) ((low | high << 4) - 32);
        g[i / 32].s[l / 16] = d * (float) b->scales[i / 16];
        g[i / 32].m[l / 16] = 0;
    }
}

// Table-driven types: n values in their integer form.
static inline void groups_ints(const struct type *type, const void *p, struct mm_group *g) {
    int8_t q[256];
    float s[16];
    type->ints(p, q, s, type->block);
    for (int64_t i = 0; i < type->block / 32; i++) {
        memcpy(g[i].q, q + 32 * i, 32);
        g[i].s[0] = s[2 * i];
        g[i].s[1] = s[2 * i + 1];
        g[i].m[0] = g[i].m[1] = 0;
    }
}

#define QUANT(...)
#define INTS(ID, name)                                                                                                      \
    static inline void groups_##name(const void *p, struct mm_group *g) { groups_ints(type_get(GGML_TYPE_##ID), p, g); }
INTS(IQ4_NL, iq4_nl)
INTS(IQ4_XS, iq4_xs)
INTS(MXFP4, mxfp4)
INTS(NVFP4, nvfp4)
INTS(TQ1_0, tq1_0)
INTS(TQ2_0, tq2_0)
INTS(Q1_0, q1_0)
INTS(Q2_0, q2_0)
#include "kern/mm_quant.def"
#undef QUANT
