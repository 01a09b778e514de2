// Quantizer of the grid formats: for each group of 8 (or 4) elements an entry of the grid, for each sub-block an odd integer
// scale, for the block a half d. Minimises sum w (x - decoded)^2.
//
// The best entry at a given scale is found exactly: the cost of an entry is a sum over its values, so it is read from four
// small tables; entries are sorted by their upper halves, and those whose upper half is too dear are skipped together. The
// scale of a sub-block is found by alternating between entries and least-squares scale from several starts. Then d is
// chosen, the scales become integers (with their neighbours tried), and d is fitted once more.
#pragma once

#include "type/search_int.h"

enum grid_signs { GRID_SIGNS_FREE, GRID_SIGNS_EVEN, GRID_SIGNS_NONE };  // even: an even number of minus signs in 8

struct grid_format {
    const struct codebook *book;
    int n_value, n_level, bits;  // values per entry, levels, bits of a code per value
    int n_digit;                 // codes of a digit: 16 with two bits per value, 8 with three
    enum grid_signs signs;
    int n_sub;    // elements per scale
    int n_delta;  // elements per delta sign; 0: the format has none
    int top;      // largest scale index; the scale is 2 * index + 1
    float unit;   // x = d * (2 * index + 1) * unit * (level + delta)
    float delta;
    float first, last;  // starts of the search: the largest magnitude maps to last .. first times the largest level
    int n_start;
};

// Shapes of the grids: 8 values of 3 levels, 4 values of 8 levels.
#define GRID_OF_8 .n_value = 8, .n_level = 3, .bits = 2, .n_digit = 16
#define GRID_OF_4 .n_value = 4, .n_level = 8, .bits = 3, .n_digit = 8

struct grid_fit {
    float d;
    uint16_t half;  // d as it is stored
    uint16_t entry[64];
    uint8_t signs[32];  // per 8 elements; bit set: minus
    uint8_t minus[32];  // per 8 elements: delta is negative
    uint8_t sc[16];     // per sub-block: scale index
};

// An entry's code falls into four digits of 4 bits (two values of 2 bits) or 3 bits (one value). Costs of all digits, less
// the constant part, and the least of each; digits that no entry has cost infinitely much.
struct digit_costs {
    float cost[4][16], least[4];
    int cheapest[4];
};

VEC void digit_costs(const struct grid_format *f, const float *a, const float *w, float s, float delta,
                     struct digit_costs *t) {
    float value[8][8], least[8];
    int cheapest[8];
    for (int i = 0; i < f->n_value; i++) {
        least[i] = INFINITY;
        cheapest[i] = 0;
        for (int k = 0; k < 1 << f->bits; k++) value[i][k] = INFINITY;
        for (int k = 0; k < f->n_level; k++) {
            const float v = s * (f->book->levels[k] + delta), c = w[i] * v * (v - 2.0f * a[i]);
            value[i][k] = c;
            cheapest[i] = c < least[i] ? k : cheapest[i];
            least[i] = c < least[i] ? c : least[i];
        }
    }
    for (int n = 0; n < 4; n++) {
        if (f->bits == 3) {
            for (int k = 0; k < 8; k++) t->cost[n][k] = value[n][k];
            t->least[n] = least[n];
            t->cheapest[n] = cheapest[n];
            continue;
        }
        for (int k = 0; k < 3; k++)  // the fourth level of the higher value does not exist, and is not asked for
            for (int l = 0; l < 4; l++) t->cost[n][4 * k + l] = value[2 * n][l] + value[2 * n + 1][k];
        t->least[n] = least[2 * n] + least[2 * n + 1];
        t->cheapest[n] = cheapest[2 * n] | cheapest[2 * n + 1] << 2;
    }
}

// Entries with the upper half `half`, which costs base; best and *found are those so far.
VEC float cheapest_of(const struct grid_format *f, const struct digit_costs *t, int half, float base, float best,
                      int *found) {
    const struct codebook *b = f->book;
    const int bits = f->bits == 3 ? 3 : 4, mask = f->n_digit - 1;
    int at = *found;
    for (int i = b->start[half]; i < b->start[half + 1]; i++) {
        const unsigned code = b->codes[i];
        const float c = base + (t->cost[0][code & mask] + t->cost[1][code >> bits & mask]);
        at = c < best ? i : at;
        best = c < best ? c : best;
    }
    *found = at;
    return best;
}

// The entry nearest to a at scale s: *entry; gives its cost. Of all upper halves, only those are looked into that could still
// win with the cheapest lower half; the cheapest upper half comes first.
VEC float nearest_entry(const struct grid_format *f, const float *a, const float *w, float s, float delta, uint16_t *entry) {
    const int bits = f->bits == 3 ? 3 : 4, n_top = f->bits == 3 ? 8 : 12;
    struct digit_costs t;
    digit_costs(f, a, w, s, delta, &t);
    const float low = t.least[0] + t.least[1];
    int found = 0;
    float best = cheapest_of(f, &t, t.cheapest[3] << bits | t.cheapest[2], t.least[3] + t.least[2], INFINITY, &found);
    for (int h = 0; h < n_top; h++) {
        if (t.cost[3][h] + t.least[2] + low >= best) continue;
        for (int g = 0; g < n_top; g++) {
            const float base = t.cost[3][h] + t.cost[2][g];
            if (base + low < best) best = cheapest_of(f, &t, h << bits | g, base, best, &found);
        }
    }
    *entry = (uint16_t) found;
    return best;
}

// Sums of w x L and w L^2 over a group, L = level + delta of each value.
VEC void group_sums(const struct grid_format *f, const float *a, const float *w, int entry, float delta, float *xl,
                    float *ll) {
    const unsigned code = f->book->codes[entry], mask = (1u << f->bits) - 1;
    for (int i = 0; i < f->n_value; i++) {
        const float l = f->book->levels[code >> (f->bits * i) & mask] + delta;
        *xl += w[i] * a[i] * l;
        *ll += w[i] * l * l;
    }
}

// Entries (and delta signs) of n elements at scale s; gives the cost, and the least-squares scale for these entries.
VEC float fit_at(const struct grid_format *f, const float *a, const float *w, int n, float s, uint16_t *entry,
                 uint8_t *minus, float *better) {
    const int step = f->n_delta ? f->n_delta : n, n_value = f->n_value;
    float total = 0.0f, xl = 0.0f, ll = 0.0f;
    for (int i = 0; i < n; i += step) {
        float cost[2] = {0.0f, INFINITY};
        uint16_t e[2][8];
        for (int t = 0; t < (f->n_delta ? 2 : 1); t++) {
            cost[t] = 0.0f;
            for (int k = 0; k < step; k += n_value)
                cost[t] += nearest_entry(f, a + i + k, w + i + k, s, t ? -f->delta : f->delta, &e[t][k / n_value]);
        }
        const int t = cost[1] < cost[0];
        total += cost[t];
        for (int k = 0; k < step; k += n_value) {
            entry[(i + k) / n_value] = e[t][k / n_value];
            group_sums(f, a + i + k, w + i + k, e[t][k / n_value], t ? -f->delta : f->delta, &xl, &ll);
        }
        for (int k = 0; k < step; k += 8) minus[(i + k) / 8] = (uint8_t) t;
    }
    *better = ll > 0.0f ? xl / ll : 0.0f;
    return total;
}

// The scale of a sub-block.
VEC float sub_scale(const struct grid_format *f, const float *a, const float *w, int n) {
    uint16_t entry[8];
    uint8_t minus[4];
    float best = 0.0f, least = 0.0f;
    const float top = absmax(a, n) / fabsf(f->book->levels[f->n_level - 1]);
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

// Signs of 8 elements; what is left are magnitudes, one of them negative where the number of minus signs had to be made
// even.
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

VEC void grid_search(const struct grid_format *f, const float *x, const float *importance, struct grid_fit *g) {
    float a[256], w[256], s[16], most = 0.0f;
    const int n_sub = 256 / f->n_sub, per_sub = f->n_sub / f->n_value;
    memset(g, 0, sizeof(*g));
    const float power = block_normalize(x, 256, a);
    if (!(power > 0.0f)) {
        g->half = half_of_refused(power);
        return;
    }
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
                const int e = per_sub * j + k, at = e * f->n_value;
                const float delta = g->minus[at / 8] ? -f->delta : f->delta, unit = f->unit * (float) (2 * g->sc[j] + 1);
                float gx = 0.0f, gl = 0.0f;
                group_sums(f, a + at, w + at, g->entry[e], delta, &gx, &gl);
                xl += gx * unit;
                ll += gl * unit * unit;
            }
            if (ideal > 0.0f) s[j] = ideal;
        }
        if (round == 0 && ll > 0.0f && xl > 0.0f) d = xl / ll;
    }
}
