// Runs a fuzz target without libFuzzer: its seeds, files named on the command line, and a fixed number of mutations of the
// seeds from a fixed start, so that ./check sees the same every time.
//   fuzz-NAME [-n MUTATIONS] [-w FOLDER] [-d BYTES] [FILE...]
// -w writes the seeds as a corpus for libFuzzer. -d damages each seed in every way a bad disk or a broken download would: each of the first
// BYTES bytes flipped, and the end cut off at every one of them; beyond that only at each 61st.
#include "fuzz.h"
#include "ggml.h"
#include "ggml/ext.h"
#include <stdio.h>

struct seed {
    uint8_t *p;
    size_t n;
};

struct seeds {
    struct seed *list;
    size_t n;
};

static void keep(void *to, const void *data, size_t size) {
    struct seeds *s = to;
    s->list = realloc(s->list, (s->n + 1) * sizeof *s->list);
    uint8_t *p = malloc(size + 1);
    FUZZ_CHECK(s->list && p);
    if (size) memcpy(p, data, size);
    s->list[s->n++] = (struct seed){p, size};
}

static void silence(enum ggml_log_level level, const char *text, void *userdata) {
    (void) level;
    (void) text;
    (void) userdata;
}

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint32_t rnd(size_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return n ? (uint32_t) ((state >> 20) % n) : 0;
}

// From a copy of exactly the input's size, so that sanitizers see a step beyond it.
static void run(const uint8_t *p, size_t n) {
    uint8_t *copy = malloc(n ? n : 1);
    FUZZ_CHECK(copy);
    if (n) memcpy(copy, p, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static size_t mutate(uint8_t *p, size_t n, size_t cap, const struct seeds *s) {
    static const uint64_t odd[] = {0,      1,          0x7f,        0x80,        0xff,      0x7fff,
                                   0xffff, 0x7fffffff, 0x80000000u, 0xffffffffu, INT64_MAX, UINT64_MAX};
    for (uint32_t k = 1 + rnd(4); k > 0; k--) {
        size_t at = rnd(n), len = 1 + rnd(8);
        switch (rnd(6)) {
            case 0:
                if (n) p[at] ^= (uint8_t) (1u << rnd(8));
                break;
            case 1:
                if (n) p[at] = (uint8_t) rnd(256);
                break;
            case 2:
                if (at + 8 <= n) memcpy(p + at, &odd[rnd(sizeof odd / sizeof *odd)], 1u << rnd(4));
                break;
            case 3: n = at; break;
            case 4:
                if (n + len > cap || at >= n) break;
                memmove(p + at + len, p + at, n - at);
                n += len;
                break;
            default: {
                const struct seed *o = &s->list[rnd(s->n)];
                size_t from = rnd(o->n), m = o->n - from < 32 ? o->n - from : 32;
                if (m == 0 || at + m > cap) break;
                memcpy(p + at, o->p + from, m);
                if (at + m > n) n = at + m;
            }
        }
    }
    return n;
}

static void damage(const struct seed *s, size_t dense) {
    uint8_t *p = malloc(s->n + 1);
    FUZZ_CHECK(p);
    memcpy(p, s->p, s->n);
    for (size_t at = 0; at < s->n; at += at < dense ? 1 : 61) {
        run(p, at);
        p[at] ^= 0xff;
        run(p, s->n);
        p[at] ^= 0xfe;  // the lowest bit alone
        if (at < dense) run(p, s->n);
        p[at] = s->p[at];
    }
    free(p);
}

static int run_file(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "cannot open %s\n", path);
        return 1;
    }
    uint8_t *p = malloc(1 << 24);
    FUZZ_CHECK(p);
    run(p, fread(p, 1, 1 << 24, f));
    fclose(f);
    free(p);
    return 0;
}

static void write_seed(const char *folder, size_t i, const struct seed *s) {
    char path[1024];
    snprintf(path, sizeof path, "%s/seed-%02zu", folder, i);
    FILE *f = fopen(path, "wb");
    FUZZ_CHECK(f && fwrite(s->p, 1, s->n, f) == s->n);
    fclose(f);
}

int main(int argc, char **argv) {
    int n_mutation = 3000, failed = 0, dense = 0;
    const char *folder = NULL;
    struct seeds s = {0};
    ggml_log_set(silence, NULL);
    fuzz_seeds(keep, &s);
    FUZZ_CHECK(s.n > 0);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-n") == 0 && i + 1 < argc) {
            n_mutation = atoi(argv[++i]);
        } else if (strcmp(argv[i], "-d") == 0 && i + 1 < argc) {
            dense = atoi(argv[++i]);
        } else if (strcmp(argv[i], "-w") == 0 && i + 1 < argc) {
            folder = argv[++i];
        } else {
            failed += run_file(argv[i]);
        }
    }
    size_t most = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (folder) write_seed(folder, i, &s.list[i]);
        run(s.list[i].p, s.list[i].n);
        if (dense > 0) damage(&s.list[i], (size_t) dense);
        most = s.list[i].n > most ? s.list[i].n : most;
    }
    uint8_t *p = malloc(2 * most + 64);
    FUZZ_CHECK(p);
    for (int i = 0; i < n_mutation; i++) {
        const struct seed *o = &s.list[rnd(s.n)];
        memcpy(p, o->p, o->n);
        run(p, mutate(p, o->n, 2 * most + 64, &s));
    }
    printf("%zu seeds, %d mutations\n", s.n, n_mutation);
    for (size_t i = 0; i < s.n; i++) free(s.list[i].p);
    free(s.list);
    free(p);
    return failed;
}
