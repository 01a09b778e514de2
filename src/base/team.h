// A team of threads that works on one thing at a time. The calling thread is member 0; the others sleep between runs
// (after a brief spin, so that runs in quick succession find them awake) and are woken once per run.
#pragma once

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct team;

struct team_params {
    int n_threads;        // members, the caller included; 1 .. 512
    uint32_t poll;        // 0 .. 100: microseconds that members spin before they sleep, more between runs; 0 sleeps at once
    const bool *cpumask;  // [512] processors that members may use, or NULL: as the caller
    bool strict_cpu;      // one processor of the mask per member
    enum ggml_sched_priority priority;
};

// NULL when a thread cannot be made; the sentence is recorded.
struct team *team_new(const struct team_params *p);
void team_free(struct team *t);  // NULL-safe; not while a run is in progress
int team_size(const struct team *t);
// Processors that this process may use. Asked of the system each time.
int team_n_cpus(void);
// Add members until there are n. Not while a run is in progress. On failure it keeps those it has.
MUST_USE enum err team_grow(struct team *t, int n);
// Bytes of the heap that a team of n takes; the threads' stacks are not among them.
size_t team_bytes(int n);
// As team_params.poll, for the waits that begin from now on.
void team_set_poll(struct team *t, uint32_t poll);
uint32_t team_poll(const struct team *t);
// True if the team was made by another process: after fork() its other members do not exist.
bool team_is_orphan(const struct team *t);

// fn(ith, n, arg) on members 0 .. n-1, n <= team_size; returns when all are done.
void team_run(struct team *t, int n, void (*fn)(int ith, int nth, void *arg), void *arg);

// A meeting point of n members of a team. Waiters spin for a while, then sleep. The last to arrive runs `last` (may be NULL) before
// it releases the others.
struct barrier {
    _Alignas(64) _Atomic uint32_t arrived;
    _Atomic int64_t count;               // the users' own: `last` has its cache line at hand
    _Alignas(64) _Atomic uint32_t turn;  // bumped at each release
    _Atomic uint32_t sleepers;
};
// t: the team; ith: the caller's number in it.
void barrier_wait(struct barrier *b, struct team *t, int ith, int n, void (*last)(void *), void *arg);
