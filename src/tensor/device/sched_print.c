// What the scheduler decided, for people: GGML_SCHED_DEBUG=1 shows the splits and their copies, 2 every node with the backend of each
// source and the rule that chose it (the causes of sched_assign.c).
#include "device/sched.h"
#include "base/log.h"

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
        ggml_log_write(GGML_LOG_LEVEL_CONT, " %s [%s %s]", src->tensor->name, name_of(s, src->backend), src->cause ? src->cause : "");
    }
    ggml_log_write(GGML_LOG_LEVEL_CONT, "\n");
}

static void print_split(const struct ggml_backend_sched *s, int k) {
    const struct sched_split *split = &s->splits[k];
    say("## split %d: %s, nodes %d to %d, %d inputs", k, name_of(s, split->backend), split->i_start, split->i_end - 1, split->n_copies);
    for (int c = 0; c < split->n_copies; c++) {
        const struct sched_copy *copy = &s->copies[split->first_copy + c];
        ggml_log_write(GGML_LOG_LEVEL_CONT, "%s %s (%.1f KiB, from %s)", c ? "," : ":", copy->source->name,
                       (double) ggml_nbytes(copy->source) / 1024, name_of(s, copy->source_backend));
    }
    ggml_log_write(GGML_LOG_LEVEL_CONT, "\n");
    for (int i = split->i_start; s->debug > 1 && s->own_in_use && i < split->i_end; i++) print_node(s, i);
}

void sched_print(const struct ggml_backend_sched *s) {
    say("## scheduler: %d nodes, %d splits, %d copies, %d sets of inputs\n", s->graph->n_nodes, s->n_splits, s->n_copies, s->n_sets);
    for (int k = 0; k < s->n_splits; k++) print_split(s, k);
}
