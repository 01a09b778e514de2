// Sleep until a 32-bit word changes: the futex of Linux; elsewhere a short nap, which keeps the meaning (waiters look
// again).
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#ifdef __linux__
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
static inline void futex_wait(_Atomic uint32_t *word, uint32_t expected) {
    syscall(SYS_futex, (void *) word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}
static inline void futex_wake_all(_Atomic uint32_t *word) {
    syscall(SYS_futex, (void *) word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
#else
static inline void futex_wait(_Atomic uint32_t *word, uint32_t expected) {
    if (atomic_load(word) == expected) nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}
static inline void futex_wake_all(_Atomic uint32_t *word) { (void) word; }
#endif

static inline void spin_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}
