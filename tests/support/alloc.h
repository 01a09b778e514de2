// Counts heap allocations, and makes the k-th one fail. Include in one file of a test program: it takes the place of malloc and
// its kin for the whole process (glibc; not together with sanitizers, which bring their own): with ALLOC_EVERYWHERE defined before, for
// shared libraries that the program is linked with, too.
#pragma once

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALLOC_COUNTED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ALLOC_COUNTED 0
#endif
#endif
#ifndef ALLOC_COUNTED
#define ALLOC_COUNTED 1
#endif

static _Atomic int64_t alloc_n;        // allocations since alloc_start
static _Atomic int64_t alloc_fail_at;  // the one that fails, counted from 1; 0: none
static _Atomic int64_t alloc_live;     // blocks allocated and not freed since the process began

static inline void alloc_start(int64_t fail_at) {
    alloc_n = 0;
    alloc_fail_at = fail_at;
}

// Allocations since alloc_start; none fails from now on.
static inline int64_t alloc_stop(void) {
    alloc_fail_at = 0;
    return alloc_n;
}

#if ALLOC_COUNTED
#ifdef ALLOC_EVERYWHERE
#pragma GCC visibility push(default)
#endif
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
extern void __libc_free(void *p);

static bool alloc_refused(void) {
    const int64_t i = atomic_fetch_add(&alloc_n, 1) + 1;
    if (i != alloc_fail_at) return false;
    errno = ENOMEM;
    return true;
}

static void *alloc_note(void *p) {
    if (p) atomic_fetch_add(&alloc_live, 1);
    return p;
}

void *malloc(size_t size) { return alloc_refused() ? NULL : alloc_note(__libc_malloc(size)); }
void *calloc(size_t n, size_t size) { return alloc_refused() ? NULL : alloc_note(__libc_calloc(n, size)); }
void *realloc(void *p, size_t size) {
    if (alloc_refused()) return NULL;
    void *q = __libc_realloc(p, size);
    if (!p) alloc_note(q);
    return q;
}
void *memalign(size_t align, size_t size) { return alloc_refused() ? NULL : alloc_note(__libc_memalign(align, size)); }
void *aligned_alloc(size_t align, size_t size) { return alloc_refused() ? NULL : alloc_note(__libc_memalign(align, size)); }
int posix_memalign(void **out, size_t align, size_t size) {
    if (alloc_refused()) return ENOMEM;
    *out = alloc_note(__libc_memalign(align, size));
    return *out ? 0 : ENOMEM;
}
void free(void *p) {
    if (p) atomic_fetch_sub(&alloc_live, 1);
    __libc_free(p);
}
#ifdef ALLOC_EVERYWHERE
#pragma GCC visibility pop
#endif
#endif
