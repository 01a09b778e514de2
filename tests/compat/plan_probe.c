// Loads a model, makes a context, and counts from outside what that allocates: every malloc and mmap of the process goes through
// this file. With `fill` it then decodes as many tokens as the context holds and looks at what is resident. Numbers go to standard
// output, one "name value" a line. Settings are "name=value", as tests/compat/plan.py writes them.
#define _GNU_SOURCE
#include "llama.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
extern void __libc_free(void *p);

static _Atomic long heap, anon, mapped, calls;

// The heap is counted as the allocator hands it out: a few bytes more than was asked for.
static void *count(void *p) {
    if (p) atomic_fetch_add(&heap, (long) malloc_usable_size(p));
    atomic_fetch_add(&calls, 1);
    return p;
}
void *malloc(size_t n) { return count(__libc_malloc(n)); }
void *calloc(size_t n, size_t size) { return count(__libc_calloc(n, size)); }
void *realloc(void *p, size_t n) {
    const long old = p ? (long) malloc_usable_size(p) : 0;
    void *q = __libc_realloc(p, n);
    if (q || n == 0) atomic_fetch_sub(&heap, old);
    return count(q);
}
void *memalign(size_t align, size_t n) { return count(__libc_memalign(align, n)); }
void *aligned_alloc(size_t align, size_t n) { return count(__libc_memalign(align, n)); }
int posix_memalign(void **p, size_t align, size_t n) {
    *p = count(__libc_memalign(align, n));
    return *p ? 0 : ENOMEM;
}
void free(void *p) {
    if (p) atomic_fetch_sub(&heap, (long) malloc_usable_size(p));
    __libc_free(p);
}

#define MAPS 4096
static struct {
    void *at;
    size_t n;
    bool file, shared;
} maps[MAPS];
static int n_maps;

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset) {
    void *p = (void *) syscall(SYS_mmap, at, n, prot, flags, fd, offset);
    if (p == MAP_FAILED || n_maps == MAPS) return p;
    const bool file = !(flags & MAP_ANONYMOUS);
    maps[n_maps].at = p, maps[n_maps].n = n, maps[n_maps].file = file, maps[n_maps].shared = flags & MAP_SHARED;
    n_maps++;
    if (!file)
        atomic_fetch_add(&anon, (long) n);
    else if (flags & MAP_SHARED)
        atomic_fetch_add(&mapped, (long) n);
    return p;
}
int munmap(void *at, size_t n) {
    for (int i = 0; i < n_maps; i++) {
        if (maps[i].at != at || maps[i].n != n) continue;
        if (!maps[i].file)
            atomic_fetch_sub(&anon, (long) n);
        else if (maps[i].shared)
            atomic_fetch_sub(&mapped, (long) n);
        maps[i] = maps[--n_maps];
        break;
    }
    return (int) syscall(SYS_munmap, at, n);
}

// ---- what is resident: everything but the images of programs and libraries ---------------------------------------------------------

static bool is_image(const char *name) {
    char magic[4] = "";
    FILE *f = fopen(name, "rb");
    if (!f) return false;
    const bool yes = fread(magic, 1, 4, f) == 4 && !memcmp(magic, "\177ELF", 4);
    fclose(f);
    return yes;
}

static long resident(void) {
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[4600], name[4200];
    long sum = 0, kib;
    bool skip = false;
    unsigned long a, b;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %4199[^\n]", &a, &b, name) >= 2 && strchr(line, '-') < line + 17) {
            const char *at = strchr(line, '/');
            skip = false;
            if (at) {
                snprintf(name, sizeof name, "%s", at);
                name[strcspn(name, "\n")] = 0;
                skip = is_image(name);
            }
        }
        if (!skip && sscanf(line, "Rss: %ld", &kib) == 1) sum += kib * 1024;
    }
    if (f) fclose(f);
    return sum;
}

// ---- settings -------------------------------------------------------------------------------------------------------------------------

static enum ggml_type type_named(const char *s) {
    for (int t = 0; t < GGML_TYPE_COUNT; t++)
        if (ggml_type_name(t) && !strcmp(ggml_type_name(t), s)) return t;
    exit(3);
}

static const char *value(char **argv, const char *name) {
    for (; *argv; argv++) {
        const size_t n = strlen(name);
        if (!strncmp(*argv, name, n) && (*argv)[n] == '=') return *argv + n + 1;
    }
    return NULL;
}

static uint32_t number(char **argv, const char *name, uint32_t otherwise) {
    const char *v = value(argv, name);
    return v ? (uint32_t) strtoul(v, NULL, 10) : otherwise;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    ggml_backend_load_all();
    struct llama_model_params mp = llama_model_default_params();
    struct llama_context_params cp = llama_context_default_params();
    mp.n_gpu_layers = value(argv, "ngl") ? (int32_t) number(argv, "ngl", 0) : -1;
    mp.load_mode = value(argv, "no_mmap") ? LLAMA_LOAD_MODE_NONE : LLAMA_LOAD_MODE_MMAP;
    cp.n_ctx = number(argv, "c", 4096);
    cp.n_batch = number(argv, "b", 2048);
    cp.n_ubatch = number(argv, "ub", 512);
    cp.n_seq_max = number(argv, "np", 1);
    cp.n_outputs_max = cp.n_seq_max;
    cp.n_threads = cp.n_threads_batch = (int32_t) number(argv, "t", 2);
    cp.swa_full = value(argv, "swa_full") != NULL;
    if (value(argv, "fa")) cp.flash_attn_type = !strcmp(value(argv, "fa"), "on");
    if (value(argv, "ctk")) cp.type_k = type_named(value(argv, "ctk"));
    if (value(argv, "ctv")) cp.type_v = type_named(value(argv, "ctv"));
    const long heap0 = heap, anon0 = anon, mapped0 = mapped, resident0 = resident();
    struct llama_model *m = llama_model_load_from_file(argv[1], mp);
    struct llama_context *c = m ? llama_init_from_model(m, cp) : NULL;
    if (!c) return 1;
    printf("heap %ld\nanon %ld\nmapped %ld\n", heap - heap0, anon - anon0, mapped - mapped0);
    if (!value(argv, "fill")) return 0;
    const int32_t n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(m)), step = (int32_t) llama_n_batch(c);
    llama_token *t = malloc(sizeof *t * (size_t) step);
    t[0] = 1;
    if (llama_decode(c, llama_batch_get_one(t, 1)) != 0) return 1;  // the process's team of threads is made once
    // batches of every size: attention and products over few tokens can need more scratch than over many
    for (int32_t n = 2; n < step; n += n < 16 ? 1 : n / 4) {
        for (int32_t i = 0; i < n; i++) t[i] = i * 7919 % n_vocab;
        llama_memory_clear(llama_get_memory(c), false);
        if (llama_decode(c, llama_batch_get_one(t, n)) != 0) return 1;
    }
    llama_memory_clear(llama_get_memory(c), true);  // writes the whole cache, whose pages are not real before
    const long calls0 = calls;
    for (int32_t at = 0; at < (int32_t) llama_n_ctx(c); at += step) {
        const int32_t n = (int32_t) llama_n_ctx(c) - at < step ? (int32_t) llama_n_ctx(c) - at : step;
        for (int32_t i = 0; i < n; i++) t[i] = (at + i) * 7919 % n_vocab;
        if (llama_decode(c, llama_batch_get_one(t, n)) != 0) return 1;
    }
    const long called = calls - calls0;
    printf("resident %ld\ncalls %ld\n", resident() - resident0, called);
    return 0;
}
