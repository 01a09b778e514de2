// Which processors the threads of a context use, with what priority, and how long they spin.
#include "cli/console.h"
#include "cli/parts.h"

#include <stdlib.h>
#include <string.h>

enum { N_CPU = 512 };

static int from_mask(bool *cpus, const char *text) {
    const char *hex = strncmp(text, "0x", 2) == 0 || strncmp(text, "0X", 2) == 0 ? text + 2 : text;
    const size_t n = strlen(hex);
    bool ok = n > 0 && n <= N_CPU / 4 && strspn(hex, "0123456789abcdefABCDEF") == n;
    for (size_t i = 0; ok && i < n; i++) {
        const char digit[2] = {hex[n - 1 - i], '\0'};
        const unsigned long v = strtoul(digit, NULL, 16);
        for (size_t b = 0; b < 4; b++) cpus[4 * i + b] |= v >> b & 1;
    }
    if (ok) return 0;
    console_error("the mask of processors is '%s', but should be up to %d hexadecimal digits", text, N_CPU / 4);
    return 2;
}

// "LO-HI", either of which may be left out.
static int from_range(bool *cpus, const char *text) {
    const char *dash = strchr(text, '-');
    char *end = NULL;
    long lo = 0, hi = N_CPU - 1;
    bool ok = dash && (dash != text || dash[1]);
    if (ok && dash != text) {
        lo = strtol(text, &end, 10);
        ok = end == dash;
    }
    if (ok && dash[1]) {
        hi = strtol(dash + 1, &end, 10);
        ok = *end == '\0';
    }
    ok = ok && lo >= 0 && lo <= hi && hi < N_CPU;
    for (long i = lo; ok && i <= hi; i++) cpus[i] = true;
    if (ok) return 0;
    console_error("the range of processors is '%s', but should be LO-HI with numbers of processors below %d", text, N_CPU);
    return 2;
}

// How one team is made: generation's, or that for prompts.
struct team {
    const char *mask, *range;
    int32_t strict, prio, poll;
};

static int fill(struct ggml_threadpool_params *tp, const struct team *t) {
    tp->prio = (enum ggml_sched_priority) t->prio;
    tp->poll = (uint32_t) t->poll;
    tp->strict_cpu = t->strict != 0;
    if (t->mask && from_mask(tp->cpumask, t->mask)) return 2;
    return t->range ? from_range(tp->cpumask, t->range) : 0;
}

static bool is_plain(const struct team *t) { return !t->mask && !t->range && !t->strict && !t->prio && t->poll == 50; }

int threads_attach(struct session *s, const struct params *p) {
    const struct team gen = {p->cpu_mask, p->cpu_range, p->cpu_strict, p->prio, p->poll};
    const bool own = p->cpu_mask_batch || p->cpu_range_batch;
    const struct team batch = {own ? p->cpu_mask_batch : gen.mask, own ? p->cpu_range_batch : gen.range,
                               p->cpu_strict_batch < 0 ? gen.strict : p->cpu_strict_batch,
                               p->prio_batch < -1 ? gen.prio : p->prio_batch, p->poll_batch < 0 ? gen.poll : p->poll_batch};
    if (is_plain(&gen) && is_plain(&batch)) return 0;
    const int n[2] = {llama_n_threads(s->ctx), llama_n_threads_batch(s->ctx)};
    struct ggml_threadpool_params tp[2];
    for (int i = 0; i < 2; i++) {
        tp[i] = ggml_threadpool_params_default(n[i]);
        const int status = fill(&tp[i], i ? &batch : &gen);
        if (status) return status;
    }
    const bool one = ggml_threadpool_params_match(&tp[0], &tp[1]);  // then one team does both
    for (int i = 0; i < (one ? 1 : 2); i++) {
        s->pool[i] = ggml_threadpool_new(&tp[i]);
        if (!s->pool[i]) return console_library_error();
    }
    llama_attach_threadpool(s->ctx, s->pool[0], one ? s->pool[0] : s->pool[1]);
    return 0;
}
