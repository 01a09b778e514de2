// The common body of q4_K and q5_K, which differ in how values are packed. The including file defines unpack, pack,
// KNAME, KBLOCK, KTOP (largest value) and KREACH (how far around the plain scale the search looks).
#pragma once

static inline void decode_block(const KBLOCK *b, float *y) {
    int8_t q[256];
    uint8_t sc[8], mn[8];
    unpack(b, q);
    scales_unpack(b->scales, sc, mn);
    const float d = f16_to_f32(b->d), dmin = f16_to_f32(b->dmin);
    for (int j = 0; j < 8; j++) scale_min_32(q + 32 * j, d * (float) sc[j], dmin * (float) mn[j], y + 32 * j);
}

static inline float dot_block(const KBLOCK *a, const struct block_q8_K *b) {
    int8_t q[256];
    uint8_t sc[8], mn[8];
    unpack(a, q);
    scales_unpack(a->scales, sc, mn);
    int32_t m = 0;
    for (int j = 0; j < 8; j++) m += mn[j] * (b->bsums[2 * j] + b->bsums[2 * j + 1]);
    const int32_t s = dot_scaled(q, b->qs, (const int8_t *) sc, 8, 32);
    return (f16_to_f32(a->d) * b->d) * (float) s - (f16_to_f32(a->dmin) * b->d) * (float) m;
}

static inline bool check_block(const KBLOCK *b) { return half_finite(b->d) && half_finite(b->dmin); }

static inline void quantize_block(const float *x, const float *importance, KBLOCK *b) {
    float xn[256], w[256], f[8], m[8];
    int8_t q[256];
    uint8_t sc[8], mn[8];
    const float s = block_normalize(x, 256, xn);
    if (!(s > 0.0f)) {
        memset(b, 0, sizeof(*b));
        b->d = half_of_refused(s);
        return;
    }
    block_weights(importance, 256, w);
    for (int j = 0; j < 8; j++) sub_block_affine(xn + 32 * j, w + 32 * j, 32, KTOP, KREACH, f + j, m + j);
    const struct affine_super k = {.n_sub = 8, .n = 32, .top = 63, .hi = KTOP};
    affine_super(&k, xn, w, s, f, m, sc, mn, &b->d, &b->dmin, q);
    scales_pack(sc, mn, b->scales);
    pack(q, b);
}

static inline void encode_block(const float *x, KBLOCK *b) { quantize_block(x, NULL, b); }

TYPE_ROWS(KNAME, 256, q8_K, 1)
