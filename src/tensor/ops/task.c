// The calls that a running operation has: meeting the other threads of its node, taking the next piece, failing.
#include "ops/crew.h"

#include <stdarg.h>
#include <stdio.h>

void task_barrier(struct task *k) {
    if (k->nth > 1) barrier_wait(&k->crew->inner, k->crew->team, k->ith, k->nth, NULL, NULL);
}

// The first piece is a thread's own number: where there are no more pieces than threads nobody touches the counter.
int64_t task_next(struct task *k) {
    if (!k->counting) {
        k->counting = true;
        return k->ith;
    }
    return k->nth + atomic_fetch_add_explicit(&k->crew->gate.count, 1, memory_order_relaxed);
}

static void reset_counter(void *crew) {
    atomic_store_explicit(&((struct crew *) crew)->gate.count, 0, memory_order_relaxed);
}

// The last to arrive resets the counter before anyone is released: nobody can still be counting, and nobody can have begun
// to count again.
void task_rewind(struct task *k) {
    k->counting = false;
    if (k->nth > 1) {
        barrier_wait(&k->crew->inner, k->crew->team, k->ith, k->nth, reset_counter, k->crew);
    } else {
        reset_counter(k->crew);
    }
}

void task_fail(struct task *k, const struct ggml_tensor *node, const char *fmt, ...) {
    struct crew *c = k->crew;
    int none = 0;
    if (!atomic_compare_exchange_strong(&c->failing, &none, 1)) return;  // another thread was first
    int n = snprintf(c->failure, sizeof c->failure, "%s (%s): ", node->name, ggml_op_desc(node));
    if (n < 0 || n >= (int) sizeof c->failure) n = 0;
    va_list args;
    va_start(args, fmt);
    vsnprintf(c->failure + n, sizeof c->failure - (size_t) n, fmt, args);
    va_end(args);
    atomic_store(&c->failing, 2);
}
