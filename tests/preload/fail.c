// To be preloaded into a program: makes its FAIL_AT-th allocation fail (counted from the start of main) and writes at its
// end how many allocations there were and how many blocks are left, as "allocations N left M" to the file named by
// FAIL_REPORT.
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
extern void __libc_free(void *p);

static _Atomic long n_made, n_live, fail_at = -1;

static int refuse(void) {
    const long i = atomic_fetch_add(&n_made, 1) + 1;
    if (i != fail_at) return 0;
    errno = ENOMEM;
    return 1;
}

static void *note(void *p) {
    if (p) atomic_fetch_add(&n_live, 1);
    return p;
}

void *malloc(size_t size) { return refuse() ? NULL : note(__libc_malloc(size)); }
void *calloc(size_t n, size_t size) { return refuse() ? NULL : note(__libc_calloc(n, size)); }

void *realloc(void *p, size_t size) {
    if (refuse()) return NULL;
    void *q = __libc_realloc(p, size);
    return p ? q : note(q);
}

int posix_memalign(void **p, size_t align, size_t size) {
    if (refuse()) return ENOMEM;
    *p = note(__libc_memalign(align, size));
    return *p ? 0 : ENOMEM;
}

void *aligned_alloc(size_t align, size_t size) { return refuse() ? NULL : note(__libc_memalign(align, size)); }

void free(void *p) {
    if (p) atomic_fetch_sub(&n_live, 1);
    __libc_free(p);
}

__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("FAIL_AT");
    n_made = n_live = 0;
    fail_at = at ? atol(at) : 0;
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("FAIL_REPORT");
    const long made = n_made, live = n_live;
    fail_at = 0;
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f) return;
    fprintf(f, "allocations %ld left %ld\n", made, live);
    fclose(f);
}
