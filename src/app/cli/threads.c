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
    console_error("--cpu-mask is '%s', but should be up to %d hexadecimal digits", text, N_CPU / 4);
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
    console_error("--cpu-range is '%s', but should be LO-HI with numbers of processors below %d", text, N_CPU);
    return 2;
}

int threads_attach(struct session *s, const struct params *p) {
    if (!p->cpu_mask && !p->cpu_range && !p->cpu_strict && !p->prio && p->poll == 50) return 0;
    const int n[2] = {llama_n_threads(s->ctx), llama_n_threads_batch(s->ctx)};
    for (int i = 0; i < 2; i++) {
        struct ggml_threadpool_params tp = ggml_threadpool_params_default(n[i]);
        tp.prio = (enum ggml_sched_priority) p->prio;
        tp.poll = (uint32_t) p->poll;
        tp.strict_cpu = p->cpu_strict != 0;
        if (p->cpu_mask && from_mask(tp.cpumask, p->cpu_mask)) return 2;
        if (p->cpu_range && from_range(tp.cpumask, p->cpu_range)) return 2;
        if (i == 1 && n[1] == n[0]) break;  // one team does both
        s->pool[i] = ggml_threadpool_new(&tp);
        if (!s->pool[i]) return console_library_error();
    }
    llama_attach_threadpool(s->ctx, s->pool[0], s->pool[1] ? s->pool[1] : s->pool[0]);
    return 0;
}
