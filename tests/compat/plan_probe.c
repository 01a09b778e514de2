// Loads a model, makes a context, and counts from outside what that allocates: every malloc, mmap and device buffer of the process
// goes through this file, which knows nothing of plans. Counted are the bytes asked for (not what the allocator rounds them up to) of
// blocks that libggml and libllama hold, whoever's call it is: the caller's address says whose block it is. What libc, PCRE2 and the
// dynamic linker take for themselves is the program's, and printed apart. With `fill` it then decodes as many tokens as the context
// holds and looks at what is resident. Numbers go to standard output, one "name value" a line; with PROBE_SITES=1 live blocks
// are listed by caller on standard error. Settings are "name=value", as tests/compat/plan.py writes them.
#define _GNU_SOURCE
#include "ggml/ext.h"
#include "llama.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
extern void __libc_free(void *p);

// ---- live blocks ---------------------------------------------------------------------------------------------------------

enum kind { HEAP, ANON, FILE_PAGES, DEVICE, N_KIND };

struct block {
    const void *at, *caller;
    size_t n;
    enum kind kind;
};

enum { SLOTS = 1 << 20 };
static struct block blocks[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic long calls;

static size_t slot_of(const void *p) { return (size_t) (((uintptr_t) p >> 4) * 0x9E3779B97F4A7C15u >> 44); }

static void *add(void *p, size_t n, enum kind kind, const void *caller) {
    atomic_fetch_add(&calls, 1);
    if (!p) return p;
    pthread_mutex_lock(&lock);
    size_t i = slot_of(p);
    while (blocks[i].at) i = (i + 1) % SLOTS;
    blocks[i] = (struct block){p, caller, n, kind};
    pthread_mutex_unlock(&lock);
    return p;
}

static struct block *find(const void *p) {
    for (size_t i = slot_of(p); blocks[i].at; i = (i + 1) % SLOTS)
        if (blocks[i].at == p) return &blocks[i];
    return NULL;
}

// Takes the block out; those behind it move up, so that no search ends at the hole.
static void drop(const void *p) {
    pthread_mutex_lock(&lock);
    struct block *b = p ? find(p) : NULL;
    for (size_t hole = b ? (size_t) (b - blocks) : 0, i = hole; b;) {
        i = (i + 1) % SLOTS;
        if (!blocks[i].at) {
            blocks[hole].at = NULL;
            break;
        }
        const size_t home = slot_of(blocks[i].at);
        if ((i > hole && (home <= hole || home > i)) || (i < hole && home <= hole && home > i)) {
            blocks[hole] = blocks[i];
            hole = i;
        }
    }
    pthread_mutex_unlock(&lock);
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t n) { return add(__libc_malloc(n), n, HEAP, CALLER); }
void *calloc(size_t n, size_t size) { return add(__libc_calloc(n, size), n * size, HEAP, CALLER); }
void *memalign(size_t align, size_t n) { return add(__libc_memalign(align, n), n, HEAP, CALLER); }
void *aligned_alloc(size_t align, size_t n) { return add(__libc_memalign(align, n), n, HEAP, CALLER); }
int posix_memalign(void **p, size_t align, size_t n) {
    *p = add(__libc_memalign(align, n), n, HEAP, CALLER);
    return *p ? 0 : ENOMEM;
}
void *realloc(void *p, size_t n) {
    void *q = __libc_realloc(p, n);
    if (q || n == 0) drop(p);
    return add(q, n, HEAP, CALLER);
}
void free(void *p) {
    drop(p);
    __libc_free(p);
}

// A device's memory is a file without a name, and mapped twice: once for itself, once to keep the address from everyone else.
void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset) {
    void *p = (void *) syscall(SYS_mmap, at, n, prot, flags, fd, offset);
    struct stat st;
    if (p == MAP_FAILED) return p;
    const bool nameless = !(flags & MAP_ANONYMOUS) && fstat(fd, &st) == 0 && st.st_nlink == 0;
    if (nameless && prot == PROT_NONE) return p;
    return add(p, n, flags & MAP_ANONYMOUS ? ANON : nameless ? DEVICE : FILE_PAGES, CALLER);
}

// Mappings are let go in whole pages, and in parts too: what is left of one lies before the part, or behind it.
int munmap(void *at, size_t n) {
    const char *from = at, *to = from + (n + 4095) / 4096 * 4096;
    for (size_t i = 0; i < SLOTS; i++) {
        const struct block b = blocks[i];
        const char *start = b.at, *end = start + b.n;
        if (!b.at || b.kind == HEAP || end <= from || start >= to) continue;
        drop(b.at);
        if (start < from) add((void *) (uintptr_t) start, (size_t) (from - start), b.kind, b.caller);
        if (end > to) add((void *) (uintptr_t) to, (size_t) (end - to), b.kind, b.caller);
        i = (size_t) -1;  // what was behind the hole has moved
    }
    return (int) syscall(SYS_munmap, at, n);
}

static bool is_ours(const struct block *b) {
    Dl_info info;
    if (!dladdr(b->caller, &info) || !info.dli_fname) return false;
    return strstr(info.dli_fname, "libggml") || strstr(info.dli_fname, "libllama");
}

struct sums {
    long ours[N_KIND], program;
};

static struct sums sum(void) {
    struct sums s = {0};
    for (size_t i = 0; i < SLOTS; i++) {
        if (!blocks[i].at) continue;
        if (is_ours(&blocks[i]))
            s.ours[blocks[i].kind] += (long) blocks[i].n;
        else
            s.program += (long) blocks[i].n;
    }
    return s;
}

// Bytes of the block's pages that are in memory; whole pages inside it only.
static size_t present(const struct block *b) {
    static int fd = -1;
    if (fd < 0) fd = open("/proc/self/pagemap", O_RDONLY);
    size_t n = 0;
    const uintptr_t from = ((uintptr_t) b->at + 4095) / 4096, to = ((uintptr_t) b->at + b->n) / 4096;
    for (uintptr_t p = from; p < to; p++) {
        uint64_t e = 0;
        if (pread(fd, &e, 8, (off_t) p * 8) == 8 && e >> 63) n += 4096;
    }
    return to > from ? n + b->n - (to - from) * 4096 : b->n;
}

// What is there, by caller, and how much of it is in memory: to find out where a difference comes from.
static void list_sites(void) {
    static const char *const kinds[N_KIND] = {"heap", "anon", "file", "device"};
    for (size_t i = 0; i < SLOTS; i++) {
        Dl_info info = {0};
        if (!blocks[i].at) continue;
        dladdr(blocks[i].caller, &info);
        fprintf(stderr, "%s %zu %zu %s %lx\n", kinds[blocks[i].kind], blocks[i].n, present(&blocks[i]),
                info.dli_fname ? info.dli_fname : "?",
                (unsigned long) ((const char *) blocks[i].caller - (const char *) info.dli_fbase));
    }
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
    const long resident0 = resident();
    const struct sums before = sum();
    struct llama_model *m = llama_model_load_from_file(argv[1], mp);
    struct llama_context *c = m ? llama_init_from_model(m, cp) : NULL;
    if (!c) {
        fprintf(stderr, "%s\n", ggml_last_error());
        return 1;
    }
    const struct sums now = sum();
    static const char *const names[N_KIND] = {"heap", "anon", "mapped", "device"};
    for (int k = 0; k < N_KIND; k++) printf("%s %ld\n", names[k], now.ours[k] - before.ours[k]);
    printf("program %ld\n", now.program - before.program);
    const bool fill = value(argv, "fill") != NULL;
    const int32_t n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(m)), step = (int32_t) llama_n_batch(c);
    llama_token *t = malloc(sizeof *t * (size_t) step);
    const long calls0 = calls;
    // batches of every size, or two: attention and products over few tokens can need more scratch than over many
    for (int32_t n = 1; n < step && n <= (int32_t) llama_n_ctx_seq(c); n += n < 16 && fill ? 1
                                                                            : fill         ? n / 4
                                                                                           : step / 2 - 1) {
        for (int32_t i = 0; i < n; i++) t[i] = i * 7919 % n_vocab;
        llama_memory_clear(llama_get_memory(c), false);
        if (llama_decode(c, llama_batch_get_one(t, n)) != 0) return 1;
    }
    llama_memory_clear(llama_get_memory(c), fill);  // writes the whole cache, whose pages are not real before
    for (int32_t at = 0; fill && at < (int32_t) llama_n_ctx(c); at += step) {
        const int32_t n = (int32_t) llama_n_ctx(c) - at < step ? (int32_t) llama_n_ctx(c) - at : step;
        for (int32_t i = 0; i < n; i++) t[i] = (at + i) * 7919 % n_vocab;
        if (llama_decode(c, llama_batch_get_one(t, n)) != 0) return 1;
    }
    const long called = calls - calls0;
    const struct sums after = sum();
    long grown = 0;
    for (int k = 0; k < N_KIND; k++) grown += after.ours[k] - now.ours[k];
    printf("calls %ld\ngrown %ld\nresident %ld\n", called, grown, resident() - resident0);
    if (getenv("PROBE_SITES")) list_sites();
    return 0;
}
