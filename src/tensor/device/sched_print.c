// What the scheduler decided, for people: GGML_SCHED_DEBUG=1 shows the splits and their copies, 2 every node with the
// backend of each source and the rule that chose it (the causes of sched_assign.c); reserving also shows the plan's peak,
// at 2 what makes it, at 3 all of it.
#include "device/sched.h"
#include "base/log.h"
#include "ggml/plan.h"

#define say(...) ggml_log_write(GGML_LOG_LEVEL_NONE, __VA_ARGS__)

static const char *name_of(const struct ggml_backend_sched *s, int b) {
    return b >= 0 ? ggml_backend_name(s->backends[b]) : b == SCHED_FOREIGN ? "foreign" : "none";
}

static void print_node(const struct ggml_backend_sched *s, int i) {
    const struct sched_entry *e = &s->entries[s->node_entry[i]];
    say("  node %4d %-12s %-24s %7.1f KiB [%s %s]:", i, ggml_op_desc(e->tensor), e->tensor->name,
        (double) ggml_nbytes(e->tensor) / 1024, name_of(s, e->backend), e->cause ? e->cause : "");
    for (int j = 0; j < GGML_MAX_SRC; j++) {
        const int32_t k = s->node_src[i * GGML_MAX_SRC + j];
        if (k < 0) continue;
        const struct sched_entry *src = &s->entries[k];
        ggml_log_write(GGML_LOG_LEVEL_CONT, " %s [%s %s]", src->tensor->name, name_of(s, src->backend),
                       src->cause ? src->cause : "");
    }
    ggml_log_write(GGML_LOG_LEVEL_CONT, "\n");
}

static void print_split(const struct ggml_backend_sched *s, int k) {
    const struct sched_split *split = &s->splits[k];
    say("## split %d: %s, nodes %d to %d, %d inputs", k, name_of(s, split->backend), split->i_start, split->i_end - 1,
        split->n_copies);
    for (int c = 0; c < split->n_copies; c++) {
        const struct sched_copy *copy = &s->copies[split->first_copy + c];
        ggml_log_write(GGML_LOG_LEVEL_CONT, "%s %s (%.1f KiB, from %s)", c ? "," : ":", copy->source->name,
                       (double) ggml_nbytes(copy->source) / 1024, name_of(s, copy->source_backend));
    }
    ggml_log_write(GGML_LOG_LEVEL_CONT, "\n");
    for (int i = split->i_start; s->debug > 1 && s->own_in_use && i < split->i_end; i++) print_node(s, i);
}

void sched_print(const struct ggml_backend_sched *s) {
    say("## scheduler: %d nodes, %d splits, %d copies, %d sets of inputs\n", s->graph->n_nodes, s->n_splits, s->n_copies,
        s->n_sets);
    for (int k = 0; k < s->n_splits; k++) print_split(s, k);
}

// The step at which most of a pool's bytes are live.
static int peak_step(const struct layout *l, int pool) {
    size_t most = 0;
    int step = 0;
    for (int t = 0; t <= l->n_nodes + 1; t++) {
        size_t now = 0;
        for (int i = 0; i < l->n_slots; i++) {
            if (l->slots[i].pool == pool && l->items[i].first <= t && l->items[i].last >= t) now += l->items[i].bytes;
        }
        if (now > most) most = now, step = t;
    }
    return step;
}

// What makes the peak, above a hundredth of it.
static void print_peak(const struct layout *l, int pool, size_t peak) {
    const int t = peak_step(l, pool);
    for (int i = 0; i < l->n_slots; i++) {
        const struct plan_item *it = &l->items[i];
        if (l->slots[i].pool != pool || it->first > t || it->last < t || it->bytes < peak / 100) continue;
        say("   %9.3f MiB %-12s %-24s steps %d to %d%s\n", (double) it->bytes / 1048576.0, ggml_op_desc(l->slots[i].root),
            l->slots[i].root->name, it->first, it->last, it->over >= 0 && it->first == t ? ", over its source" : "");
    }
}

static void print_items(const struct layout *l, int pool) {
    for (int i = 0; i < l->n_slots; i++) {
        const struct plan_item *it = &l->items[i];
        if (l->slots[i].pool != pool) continue;
        say("   item %d: %zu bytes at %zu, steps %d to %d, may take %d %d, took %d, %s %s\n", i, it->bytes, it->offset,
            it->first, it->last, it->take[0], it->take[1], it->over, ggml_op_desc(l->slots[i].root), l->slots[i].root->name);
    }
}

// A line per backend of numbers that programs can read: see bench/bench_plan.c.
void sched_print_plan(struct ggml_backend_sched *s, struct ggml_cgraph *graph, const int *node_ids, const int *leaf_ids) {
    struct ggml_plan_report *r = ggml_plan_report_new(graph, s->bufts, s->n_backends, node_ids, leaf_ids);
    for (int b = 0; r && b < s->n_backends; b++) {
        const int pool = s->galloc->pool_of_id[b];
        const struct ggml_plan_buffer *p = &r->buffers[pool];
        say("## plan for %s: nodes %d peak %zu bound %zu lb1 %zu lb2 %zu best-fit %zu pieces %d tries %d us %lld\n",
            name_of(s, b), r->n_nodes, p->peak, p->bound, p->lb1, p->lb2, p->best_fit, p->n_chunks, r->tries,
            (long long) r->plan_us);
        if (s->debug > 2) print_items(&s->galloc->layout, pool);
        if (s->debug > 1) print_peak(&s->galloc->layout, pool, p->peak);
    }
    ggml_plan_report_free(r);
}
