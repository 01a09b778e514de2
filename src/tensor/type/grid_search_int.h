// Quantizer of the grid formats: for each group of 8 (or 4) elements an entry of the grid, for each sub-block an odd integer
// scale, for the block a half d. Minimises sum w (x - decoded)^2.
//
// The best entry at a given scale is found exactly: the cost of an entry is a sum over its values, so it is the cost of its
// lower half plus that of its upper half, both read from small tables; runs of entries whose upper half alone is too dear are
// skipped. The scale of a sub-block is found by alternating between entries and least-squares scale from several starts. Then
// d is chosen, the scales become integers (with their neighbours tried), and d is fitted once more.
#pragma once

#include "type/search_int.h"

enum grid_signs { GRID_SIGNS_FREE, GRID_SIGNS_EVEN, GRID_SIGNS_NONE };  // even: an even number of minus signs in 8

struct grid_format {
    const struct codebook *book;
    enum grid_signs signs;
    int n_sub;        // elements per scale
    int n_delta;      // elements per delta sign; 0: the format has none
    int top;          // largest scale index; the scale is 2 * index + 1
    float unit;       // x = d * (2 * index + 1) * unit * (level + delta)
    float delta;
    float first, last; // starts of the search: the largest magnitude maps to last .. first times the largest level
    int n_start;
};

struct grid_fit {
    float d;
    uint16_t half;         // d as it is stored
    uint16_t entry[64];
    uint8_t signs[32];     // per 8 elements; bit set: minus
    uint8_t minus[32];     // per 8 elements: delta is negative
    uint8_t sc[16];        // per sub-block: scale index
};

// One group: values a (signs removed), weights w.
struct grid_group {
    const float *a, *w;
};

// Cost of each level for one value, less w a^2.
static inline void level_costs(const struct codebook *b, float a, float w, float s, float delta, float *cost) {
    for (int k = 0; k < b->n_level; k++) {
        const float v = s * (b->levels[k] + delta);
        cost[k] = w * v * (v - 2.0f * a);
    }
}

// Costs of all halves of entries: table[code of the half]; gives the least of them.
static float half_costs(const struct codebook *b, const float *a, const float *w, float s, float delta, float *table) {
    float c[4][8], least = 0.0f;
    const int n = b->n_value / 2, m = b->n_level;
    for (int i = 0; i < n; i++) {
        level_costs(b, a[i], w[i], s, delta, c[i]);
        float l = c[i][0];
        for (int k = 1; k < m; k++) l = c[i][k] < l ? c[i][k] : l;
        least += l;
    }
    if (n == 2) {
        for (int j = 0; j < m; j++)
            for (int i = 0; i < m; i++) table[j << b->bits | i] = c[0][i] + c[1][j];
        return least;
    }
    float low[16], high[16];
    for (int j = 0; j < m; j++) {
        for (int i = 0; i < m; i++) {
            low[j << 2 | i] = c[0][i] + c[1][j];
            high[j << 2 | i] = c[2][i] + c[3][j];
        }
    }
    for (int j = 0; j < 4 * m; j++) {
        if ((j & 3) >= m) continue;
        for (int i = 0; i < 4 * m; i++)
            if ((i & 3) < m) table[j << 4 | i] = low[i] + high[j];
    }
    return least;
}

// The entry nearest to a at scale s: *entry; gives its cost.
static float nearest_entry(const struct codebook *b, const float *a, const float *w, float s, float delta, uint16_t *entry) {
    float low[256], high[256];
    const int n = b->n_value / 2, shift = n * b->bits;
    const uint16_t mask = (uint16_t) ((1 << shift) - 1);
    const float least_low = half_costs(b, a, w, s, delta, low);
    half_costs(b, a + n, w + n, s, delta, high);
    int first = 0;
    for (int r = 1; r < b->n_run; r++)
        if (high[b->runs[2 * r]] < high[b->runs[2 * first]]) first = r;
    float best = INFINITY;
    for (int k = -1; k < b->n_run; k++) {  // the most promising run comes first
        const int r = k < 0 ? first : k;
        const float base = high[b->runs[2 * r]];
        if (base + least_low >= best) continue;
        for (int i = r ? b->runs[2 * r - 1] : 0; i < b->runs[2 * r + 1]; i++) {
            const float c = base + low[b->codes[i] & mask];
            if (c >= best) continue;
            best = c;
            *entry = (uint16_t) i;
        }
    }
    return best;
}

// Sums of w x L and w L^2 over a group, L = level + delta of each value.
static void group_sums(const struct codebook *b, const float *a, const float *w, int entry, float delta, float *xl, float *ll) {
    for (int i = 0; i < b->n_value; i++) {
        const float l = b->levels[b->codes[entry] >> (b->bits * i) & ((1 << b->bits) - 1)] + delta;
        *xl += w[i] * a[i] * l;
        *ll += w[i] * l * l;
    }
}

// Entries (and delta signs) of n elements at scale s; gives the cost, and the least-squares scale for these entries.
static float fit_at(const struct grid_format *f, const float *a, const float *w, int n, float s, uint16_t *entry, uint8_t *minus,
                    float *better) {
    const int step = f->n_delta ? f->n_delta : n, n_value = f->book->n_value;
    float total = 0.0f, xl = 0.0f, ll = 0.0f;
    for (int i = 0; i < n; i += step) {
        float cost[2] = {0.0f, INFINITY};
        uint16_t e[2][8];
        for (int t = 0; t < (f->n_delta ? 2 : 1); t++) {
            cost[t] = 0.0f;
            for (int k = 0; k < step; k += n_value)
                cost[t] += nearest_entry(f->book, a + i + k, w + i + k, s, t ? -f->delta : f->delta, &e[t][k / n_value]);
        }
        const int t = cost[1] < cost[0];
        total += cost[t];
        for (int k = 0; k < step; k += n_value) {
            entry[(i + k) / n_value] = e[t][k / n_value];
            group_sums(f->book, a + i + k, w + i + k, e[t][k / n_value], t ? -f->delta : f->delta, &xl, &ll);
        }
        for (int k = 0; k < step; k += 8) minus[(i + k) / 8] = (uint8_t) t;
    }
    *better = ll > 0.0f ? xl / ll : 0.0f;
    return total;
}

// The scale of a sub-block.
static float sub_scale(const struct grid_format *f, const float *a, const float *w, int n) {
    uint16_t entry[8];
    uint8_t minus[4];
    float best = 0.0f, least = 0.0f;
    const float top = absmax(a, n) / fabsf(f->book->levels[f->book->n_level - 1]);
    for (int k = 0; k < f->n_start && top > 0.0f; k++) {
        float s = top * (f->first + (f->last - f->first) * (float) k / (float) (f->n_start - 1)), better;
        for (int round = 0; round < 3; round++) {
            const float cost = fit_at(f, a, w, n, s, entry, minus, &better);
            if (cost < least) {
                least = cost;
                best = s;
            }
            if (!(better > 0.0f) || fabsf(better - s) < 1e-3f * s) break;
            s = better;
        }
    }
    return best;
}

// Signs of 8 elements; what is left are magnitudes, one of them negative where the number of minus signs had to be made even.
static uint8_t take_signs(enum grid_signs kind, const float *w, float *a) {
    unsigned signs = 0, n = 0;
    for (int i = 0; i < 8; i++) {
        if (!(a[i] < 0.0f)) continue;
        signs |= 1u << i;
        a[i] = -a[i];
        n++;
    }
    if (kind == GRID_SIGNS_EVEN && n % 2) {
        int k = 0;
        for (int i = 1; i < 8; i++)
            if (w[i] * a[i] * a[i] < w[k] * a[k] * a[k]) k = i;
        signs ^= 1u << k;
        a[k] = -a[k];
    }
    return (uint8_t) signs;
}

static void grid_search(const struct grid_format *f, const float *x, const float *importance, struct grid_fit *g) {
    float a[256], w[256], s[16], most = 0.0f;
    const int n_sub = 256 / f->n_sub, per_sub = f->n_sub / f->book->n_value;
    memset(g, 0, sizeof(*g));
    const float power = block_normalize(x, 256, a);
    if (power == 0.0f) return;
    block_weights(importance, 256, w);
    for (int i = 0; i < 32 && f->signs != GRID_SIGNS_NONE; i++) g->signs[i] = take_signs(f->signs, w + 8 * i, a + 8 * i);
    for (int j = 0; j < n_sub; j++) {
        s[j] = sub_scale(f, a + f->n_sub * j, w + f->n_sub * j, f->n_sub);
        most = s[j] > most ? s[j] : most;
    }
    float d = most / (f->unit * (float) (2 * f->top + 1));
    for (int round = 0; round < 2; round++) {
        g->half = half_scale(d * power);
        d = f16_to_f32(g->half) / power;
        if (!(d > 0.0f)) break;
        float xl = 0.0f, ll = 0.0f;
        for (int j = 0; j < n_sub; j++) {
            const float *aj = a + f->n_sub * j, *wj = w + f->n_sub * j;
            const int near = round_int(fminf((s[j] / (d * f->unit) - 1.0f) * 0.5f, 100.0f));
            float least = INFINITY, better, ideal = 0.0f;
            for (int q = clamp_int(near - 1, 0, f->top); q <= clamp_int(near + 1, 0, f->top); q++) {
                uint16_t entry[8];
                uint8_t minus[4];
                const float cost = fit_at(f, aj, wj, f->n_sub, d * f->unit * (float) (2 * q + 1), entry, minus, &better);
                if (cost >= least) continue;
                least = cost;
                ideal = better;
                g->sc[j] = (uint8_t) q;
                memcpy(g->entry + per_sub * j, entry, sizeof(*entry) * (size_t) per_sub);
                memcpy(g->minus + f->n_sub / 8 * j, minus, (size_t) f->n_sub / 8);
            }
            // Least squares for d over the block: each sub-block with its weight.
            for (int k = 0; k < per_sub; k++) {
                const int e = per_sub * j + k, at = e * f->book->n_value;
                const float delta = g->minus[at / 8] ? -f->delta : f->delta, unit = f->unit * (float) (2 * g->sc[j] + 1);
                float gx = 0.0f, gl = 0.0f;
                group_sums(f->book, a + at, w + at, g->entry[e], delta, &gx, &gl);
                xl += gx * unit;
                ll += gl * unit * unit;
            }
            if (ideal > 0.0f) s[j] = ideal;
        }
        if (round == 0 && ll > 0.0f && xl > 0.0f) d = xl / ll;
    }
}
