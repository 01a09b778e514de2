// What samplers do to the list of candidates. Full sorts are avoided: most samplers need the best few of a vocabulary of
// up to 262,144, which one pass with a small heap finds in place.
#include "sample/sample.h"
#include <math.h>

int64_t cand_best(const llama_token_data_array *c) {
    if (c->size == 0) return -1;
    size_t best = 0;
    for (size_t i = 1; i < c->size; i++) {
        if (cand_before(&c->data[i], &c->data[best])) best = i;
    }
    return (int64_t) best;
}

static void share_infinite(llama_token_data_array *c) {
    size_t n = 0;
    for (size_t i = 0; i < c->size; i++) n += c->data[i].logit == INFINITY;
    for (size_t i = 0; i < c->size; i++) c->data[i].p = c->data[i].logit == INFINITY ? 1.0f / (float) n : 0.0f;
}

void cand_softmax(llama_token_data_array *c) {
    int64_t best = cand_best(c);
    if (best < 0) return;
    float max = c->data[best].logit;
    if (max == INFINITY) {
        share_infinite(c);
        return;
    }
    if (!(max > -INFINITY)) {
        for (size_t i = 0; i < c->size; i++) c->data[i].p = i == 0;
        return;
    }
    double sum = 0;
    for (size_t i = 0; i < c->size; i++) {
        float d = c->data[i].logit - max;
        float p = d > -100.0f ? expf(d) : 0.0f;  // false for NaN too
        c->data[i].p = p;
        sum += p;
    }
    float scale = (float) (1.0 / sum);
    for (size_t i = 0; i < c->size; i++) c->data[i].p *= scale;
}

// ---- order

static llama_token chosen_id(const llama_token_data_array *c) {
    return c->selected >= 0 && (size_t) c->selected < c->size ? c->data[c->selected].id : LLAMA_TOKEN_NULL;
}

// A choice made earlier follows its candidate; none is left if that one is gone.
static void follow(llama_token_data_array *c, llama_token id) {
    if (id == LLAMA_TOKEN_NULL) {
        c->selected = -1;
        return;
    }
    if (chosen_id(c) == id) return;
    const llama_token_data *d = cand_find(c, id);
    c->selected = d ? d - c->data : -1;
}

// Heap of n with the last in order on top.
static void sift(llama_token_data *h, size_t n, size_t i) {
    llama_token_data x = h[i];
    for (;;) {
        size_t k = 2 * i + 1;
        if (k >= n) break;
        if (k + 1 < n && cand_before(&h[k], &h[k + 1])) k++;
        if (!cand_before(&x, &h[k])) break;
        h[i] = h[k];
        i = k;
    }
    h[i] = x;
}

void cand_sort_front(llama_token_data_array *c, size_t k) {
    if (k > c->size) k = c->size;
    if (c->sorted || k == 0) return;
    llama_token id = chosen_id(c);
    llama_token_data *d = c->data;
    for (size_t i = k / 2; i-- > 0;) sift(d, k, i);
    for (size_t i = k; i < c->size; i++) {
        if (!cand_before(&d[i], &d[0])) continue;
        llama_token_data x = d[i];
        d[i] = d[0];
        d[0] = x;
        sift(d, k, 0);
    }
    for (size_t n = k; n-- > 1;) {
        llama_token_data x = d[n];
        d[n] = d[0];
        d[0] = x;
        sift(d, n, 0);
    }
    c->sorted = k == c->size;
    follow(c, id);
}

void cand_keep(llama_token_data_array *c, size_t n) {
    if (n == 0) n = 1;
    if (n >= c->size) return;
    if (c->selected >= (int64_t) n) c->selected = -1;
    c->size = n;
}

void cand_filter_logit(llama_token_data_array *c, float least, size_t min_keep) {
    if (min_keep == 0) min_keep = 1;
    size_t n = 0;
    for (size_t i = 0; i < c->size; i++) n += c->data[i].logit >= least;
    if (n < min_keep) {
        n = min_keep < c->size ? min_keep : c->size;
        cand_sort_front(c, n);
        cand_keep(c, n);
        return;
    }
    if (n == c->size) return;
    llama_token id = chosen_id(c);
    size_t k = 0;
    for (size_t i = 0; i < c->size; i++) {
        if (c->data[i].logit >= least) c->data[k++] = c->data[i];
    }
    c->size = k;
    follow(c, id);
}

void cand_draw(llama_token_data_array *c, struct rng *r) {
    if (c->size == 0) {
        c->selected = -1;
        return;
    }
    double sum = 0, at = 0, u = rng_uniform(r);
    for (size_t i = 0; i < c->size; i++) sum += c->data[i].p;
    u *= sum;
    int64_t last = 0;
    for (size_t i = 0; i < c->size; i++) {
        if (!(c->data[i].p > 0)) continue;
        last = (int64_t) i;  // rounding must not run past the last possible one
        at += c->data[i].p;
        if (at > u) break;
    }
    c->selected = last;
}

llama_token_data *cand_find(llama_token_data_array *c, llama_token id) {
    if (id >= 0 && (size_t) id < c->size && c->data[id].id == id) return &c->data[id];
    for (size_t i = 0; i < c->size; i++) {
        if (c->data[i].id == id) return &c->data[i];
    }
    return NULL;
}
