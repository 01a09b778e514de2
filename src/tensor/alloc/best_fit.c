// Placement in the order of execution: each item goes to the smallest free gap that holds it at the moment it is written,
// or else to the end. It is here to be compared with; nothing is planned with it.
#include "alloc/plan.h"

#include <stdlib.h>

struct gap {
    size_t offset, bytes;
};

struct heap {
    struct gap *gaps;  // ascending by offset, never adjacent; the last one is endless
    int n;
};

static void take(struct heap *h, int k, size_t bytes) {
    h->gaps[k].offset += bytes;
    h->gaps[k].bytes -= bytes;
    if (h->gaps[k].bytes != 0) return;
    for (int j = k; j + 1 < h->n; j++) h->gaps[j] = h->gaps[j + 1];
    h->n--;
}

static size_t alloc_best(struct heap *h, size_t bytes) {
    int best = -1;
    for (int k = 0; k < h->n; k++) {
        if (h->gaps[k].bytes < bytes) continue;
        if (best < 0 || h->gaps[k].bytes < h->gaps[best].bytes) best = k;
    }
    const size_t offset = h->gaps[best].offset;
    take(h, best, bytes);
    return offset;
}

static void give_back(struct heap *h, size_t offset, size_t bytes) {
    int k = 0;
    while (k < h->n && h->gaps[k].offset < offset) k++;
    const bool left = k > 0 && h->gaps[k - 1].offset + h->gaps[k - 1].bytes == offset;
    const bool right = k < h->n && offset + bytes == h->gaps[k].offset;
    if (left && right) {
        h->gaps[k - 1].bytes += bytes + h->gaps[k].bytes;
        for (int j = k; j + 1 < h->n; j++) h->gaps[j] = h->gaps[j + 1];
        h->n--;
    } else if (left) {
        h->gaps[k - 1].bytes += bytes;
    } else if (right) {
        h->gaps[k].offset = offset;
        h->gaps[k].bytes += bytes;
    } else {
        for (int j = h->n++; j > k; j--) h->gaps[j] = h->gaps[j - 1];
        h->gaps[k] = (struct gap){offset, bytes};
    }
}

// What lies at an offset until a step; item: the last that has it.
struct held {
    size_t offset, bytes;
    int32_t last;
    int item;
};

// What is no longer read goes back.
static int release(struct heap *h, struct held *held, int n, int32_t step) {
    int kept = 0;
    for (int k = 0; k < n; k++) {
        if (held[k].last >= step)
            held[kept++] = held[k];
        else if (held[k].bytes)
            give_back(h, held[k].offset, held[k].bytes);
    }
    return kept;
}

enum err plan_best_fit(struct plan_item *items, int n, struct plan_result *result) {
    struct heap h = {malloc(((size_t) n + 2) * sizeof(struct gap)), 1};
    struct held *held = malloc(((size_t) n + 1) * sizeof *held);
    int n_held = 0;
    if (!h.gaps || !held) {
        free(h.gaps);
        free(held);
        return err_set(ERR_NOMEM, "memory plan: no memory for %d tensors", n);
    }
    h.gaps[0] = (struct gap){0, SIZE_MAX / 2};
    *result = (struct plan_result){.tries = 1};
    for (int i = 0; i < n; i++) {
        struct plan_item *it = &items[i];
        n_held = release(&h, held, n_held, it->first);
        it->over = it->take[0] >= 0 ? it->take[0] : it->take[1];
        for (int k = 0; k < n_held && it->over >= 0; k++) {  // of a larger source, the rest is still held in this step
            if (held[k].item != it->over) continue;
            it->offset = held[k].offset;
            held[k] = (struct held){it->offset + it->bytes, held[k].bytes - it->bytes, held[k].last, -1};
        }
        if (it->over < 0) it->offset = it->bytes ? alloc_best(&h, it->bytes) : 0;
        held[n_held++] = (struct held){it->offset, it->bytes, it->last, i};
        if (it->offset + it->bytes > result->peak) result->peak = it->offset + it->bytes;
    }
    free(h.gaps);
    free(held);
    return ERR_OK;
}
