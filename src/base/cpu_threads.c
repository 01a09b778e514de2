// How many threads to use unless told otherwise: min(affinity, floor(cgroup quota), physical performance cores).
// A second thread on a core slows matrix work down, efficiency cores hold the others up, and threads beyond a quota get
// the whole group throttled. All is read from the trees under `root`, so that tests can describe any machine.
#include "base/cpu.h"
#include "base/log.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CPUS = 4096, MAX_PATH_LEN = 512 };

struct cpu_set {
    uint64_t bits[MAX_CPUS / 64];
};

static bool set_has(const struct cpu_set *s, int i) { return s->bits[i / 64] >> (i % 64) & 1; }
static void set_add(struct cpu_set *s, int i) { s->bits[i / 64] |= 1ull << (i % 64); }

static int set_count(const struct cpu_set *s) {
    int n = 0;
    for (int i = 0; i < MAX_CPUS / 64; i++) n += __builtin_popcountll(s->bits[i]);
    return n;
}

// Reads the file <root>/<path> as text; false if there is none.
static bool read_text(const char *root, const char *path, char *text, size_t size) {
    char full[MAX_PATH_LEN];
    if (snprintf(full, sizeof full, "%s/%s", root, path) >= (int) sizeof full) return false;
    FILE *f = fopen(full, "r");
    if (!f) return false;
    const size_t n = fread(text, 1, size - 1, f);
    text[n] = '\0';
    fclose(f);
    return n > 0;
}

// "0-3,8,10-11" as a set.
static void parse_list(const char *text, struct cpu_set *set) {
    while (*text) {
        char *end;
        const long first = strtol(text, &end, 10);
        if (end == text) return;
        long last = first;
        if (*end == '-') last = strtol(end + 1, &end, 10);
        for (long i = first; i >= 0 && i <= last && i < MAX_CPUS; i++) set_add(set, (int) i);
        text = *end == ',' ? end + 1 : "";
    }
}

static bool read_allowed(const char *root, struct cpu_set *allowed) {
    char text[8192];
    if (read_text(root, "proc/self/status", text, sizeof text)) {
        const char *list = strstr(text, "Cpus_allowed_list:");
        if (list) parse_list(list + strcspn(list, "0123456789\n"), allowed);
    }
    if (set_count(allowed) == 0 && read_text(root, "sys/devices/system/cpu/online", text, sizeof text)) {
        parse_list(text, allowed);
    }
    return set_count(allowed) > 0;
}

// The performance cores among the allowed processors: those of Intel's cpu_core device, or, where processors state a
// capacity, those with at least 60 % of the largest. All of them where cores do not differ or none would be left.
static struct cpu_set performance_cores(const char *root, const struct cpu_set *allowed) {
    struct cpu_set fast = {{0}}, both = {{0}};
    char text[4096], path[96];
    if (read_text(root, "sys/devices/cpu_core/cpus", text, sizeof text)) {
        parse_list(text, &fast);
    } else {
        long best = 0;
        for (int pass = 0; pass < 2; pass++) {
            for (int i = 0; i < MAX_CPUS; i++) {
                if (!set_has(allowed, i)) continue;
                snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/cpu_capacity", i);
                if (!read_text(root, path, text, sizeof text)) continue;
                const long capacity = strtol(text, NULL, 10);
                if (pass == 0 && capacity > best) best = capacity;
                if (pass == 1 && capacity * 10 >= best * 6) set_add(&fast, i);
            }
        }
    }
    for (int i = 0; i < MAX_CPUS / 64; i++) both.bits[i] = allowed->bits[i] & fast.bits[i];
    return set_count(&both) > 0 ? both : *allowed;
}

// Distinct cores: a core is known by the lowest of its hardware threads.
static int count_cores(const char *root, const struct cpu_set *set) {
    struct cpu_set cores = {{0}};
    char text[256], path[96];
    for (int i = 0; i < MAX_CPUS; i++) {
        if (!set_has(set, i)) continue;
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
        const bool known = read_text(root, path, text, sizeof text);
        const long first = known ? strtol(text, NULL, 10) : i;
        set_add(&cores, first >= 0 && first < MAX_CPUS ? (int) first : i);
    }
    return set_count(&cores);
}

static double smaller_quota(double a, double b) { return a <= 0 ? b : b <= 0 ? a : a < b ? a : b; }

static double quota_v2(const char *root, const char *group) {
    char path[MAX_PATH_LEN], text[128];
    snprintf(path, sizeof path, "sys/fs/cgroup%s/cpu.max", group);
    double limit, period;
    if (!read_text(root, path, text, sizeof text)) return 0;
    if (sscanf(text, "%lf %lf", &limit, &period) != 2 || limit <= 0 || period <= 0) return 0;  // "max": no limit
    return limit / period;
}

static double quota_v1(const char *root, const char *group) {
    static const char *const mounts[] = {"cpu", "cpu,cpuacct"};
    for (int i = 0; i < 2; i++) {
        char path[MAX_PATH_LEN], text[64];
        snprintf(path, sizeof path, "sys/fs/cgroup/%s%s/cpu.cfs_quota_us", mounts[i], group);
        if (!read_text(root, path, text, sizeof text)) continue;
        const double limit = strtod(text, NULL);
        snprintf(path, sizeof path, "sys/fs/cgroup/%s%s/cpu.cfs_period_us", mounts[i], group);
        if (!read_text(root, path, text, sizeof text)) continue;
        const double period = strtod(text, NULL);
        if (limit > 0 && period > 0) return limit / period;
    }
    return 0;
}

// The tightest quota of the group and of all groups around it.
static double quota_up(const char *root, char *group, double (*quota)(const char *, const char *)) {
    double q = 0;
    for (;;) {
        q = smaller_quota(q, quota(root, group));
        char *slash = strrchr(group, '/');
        if (!slash) return q;
        *slash = '\0';
    }
}

static double read_quota(const char *root) {
    char text[4096];
    double q = 0;
    if (!read_text(root, "proc/self/cgroup", text, sizeof text)) text[0] = '\0';
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = '\0';
        if (controllers[1] == '\0') {
            q = smaller_quota(q, quota_up(root, group, quota_v2));
        } else if (strncmp(controllers + 1, "cpu", 3) == 0 && strncmp(controllers + 1, "cpuset", 6) != 0) {
            q = smaller_quota(q, quota_up(root, group, quota_v1));
        }
    }
    // In a container the paths above may be those of the host, while its own limits lie at the top.
    char top[1] = "";
    q = smaller_quota(q, quota_v2(root, top));
    return smaller_quota(q, quota_v1(root, top));
}

int cpu_threads_for(const struct cpu_topology *t) {
    int n = t->n_physical > 0 ? t->n_physical : t->n_logical;
    if (t->n_logical > 0 && n > t->n_logical) n = t->n_logical;
    if (t->quota > 0 && n > t->quota) n = (int) t->quota;
    return n > 1 ? n : 1;
}

int cpu_default_threads(const char *root) {
    struct cpu_set allowed = {{0}};
    struct cpu_topology t = {.n_logical = 1, .n_physical = 1};
    if (read_allowed(root, &allowed)) {
        const struct cpu_set fast = performance_cores(root, &allowed);
        t.n_logical = set_count(&allowed);
        t.n_physical = count_cores(root, &fast);
    }
    t.quota = read_quota(root);
    const int n = cpu_threads_for(&t);
    log_debug("threads: %d (%d processors allowed, %d cores, quota %.2f)\n", n, t.n_logical, t.n_physical, t.quota);
    return n;
}

int ggml_cpu_default_threads(void) { return cpu_default_threads(""); }
