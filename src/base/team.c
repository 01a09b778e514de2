// See team.h. Each member has a word of its own in its own cache line: the number of the run it is called to. A run is
// given out by bumping those words; a member that had gone to sleep is woken by futex, one that still spins needs no
// system call. The end of a run is a countdown, again with a spin before sleeping.
//
// How long to spin. Sleeping and being woken costs 10 to 50 us, and the one who wakes up late makes the others wait in turn, so on a
// machine of one's own nobody should sleep within a run: 50 us it is. That would be poison where the system has put two members
// on one processor, as it does when others compute too: the one that spins keeps the one it waits for from running. So every
// member leaves word of where it stands, and no one spins who stands where another member stands.
#include "base/team.h"
#include "base/futex.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    STOP = 1,
    NS_PER_POLL = 1000,  // within a run: 50 us at the usual poll of 50
    BETWEEN_RUNS = 4,    // times that: the caller has other things to do, and a member asleep starts the next run late
    LOOKS = 64,          // at the word before the clock is asked, some 0.6 us
};

struct member {
    _Alignas(64) _Atomic uint32_t call;  // bumped for each run; bit 0 of `stop` ends the thread
    _Atomic uint32_t asleep;
    _Atomic uint32_t stop;
    int ith;
    pthread_t thread;
    struct team *team;
};

struct team {
    _Atomic int n;            // members, the caller included
    struct member **members;  // [n], members[0] is NULL
    _Atomic uint32_t poll;
    bool mask[GGML_MAX_N_THREADS];  // processors allowed
    bool has_mask, strict_cpu;
    enum ggml_sched_priority priority;
    int n_cpus;  // processors that the process may use
    pid_t pid;
    void (*fn)(int, int, void *);
    void *arg;
    int n_run;
    _Alignas(64) _Atomic uint32_t busy;  // members of the run that are not done
    _Atomic uint32_t ended;              // bumped when there are none left
    _Atomic uint32_t waiting;            // the caller sleeps on ended
    // Processor that each member was last seen on, plus 1; written only when it changes, so that reading it costs nothing.
    _Alignas(64) _Atomic uint16_t stands[GGML_MAX_N_THREADS];
};

int team_n_cpus(void) {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int) n : 1;
}

int team_size(const struct team *t) { return t->n; }

void team_set_poll(struct team *t, uint32_t poll) { atomic_store(&t->poll, poll > 100 ? 100 : poll); }

uint32_t team_poll(const struct team *t) { return atomic_load(&t->poll); }

bool team_is_orphan(const struct team *t) { return t->pid != getpid(); }

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static uint16_t processor(void) {
#ifdef __linux__
    return (uint16_t) (sched_getcpu() + 1);
#else
    return 0;
#endif
}

static void leave_word(struct team *t, int ith) {
    const uint16_t p = processor();
    if (atomic_load_explicit(&t->stands[ith], memory_order_relaxed) != p)
        atomic_store_explicit(&t->stands[ith], p, memory_order_relaxed);
}

// Whether another of the first n members was last seen where this one runs.
static bool in_the_way(const struct team *t, int ith, int n) {
    const uint16_t p = processor();
    for (int i = 0; i < n && p; i++) {
        if (i != ith && atomic_load_explicit(&t->stands[i], memory_order_relaxed) == p) return true;
    }
    return false;
}

// Spins while *word is `seen`, `times` the usual time at most. False: it is time to sleep. With more members than processors it
// always is: one that spins keeps one that works from running.
static bool spin(const _Atomic uint32_t *word, uint32_t seen, const struct team *t, int ith, int n, uint64_t times) {
    const uint64_t ns = times * NS_PER_POLL * atomic_load_explicit(&t->poll, memory_order_relaxed);
    if (t->n > t->n_cpus || ns == 0) return false;
    for (uint64_t end = 0, now = 0; now <= end;) {
        for (int i = 0; i < LOOKS; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != seen) return true;
            spin_pause();
        }
        if (in_the_way(t, ith, n)) return false;
        now = now_ns();
        if (!end) end = now + ns;
    }
    return false;
}

void barrier_wait(struct barrier *b, struct team *t, int ith, int n, void (*last)(void *), void *arg) {
    const uint32_t turn = atomic_load_explicit(&b->turn, memory_order_acquire);
    leave_word(t, ith);
    if (atomic_fetch_add_explicit(&b->arrived, 1, memory_order_acq_rel) + 1 == (uint32_t) n) {
        if (last) last(arg);
        atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
        atomic_store(&b->turn, turn + 1);  // sequentially consistent with the read of sleepers
        if (atomic_load(&b->sleepers)) futex_wake_all(&b->turn);
        return;
    }
    if (spin(&b->turn, turn, t, ith, n, 1)) return;
    atomic_fetch_add(&b->sleepers, 1);
    while (atomic_load(&b->turn) == turn) futex_wait(&b->turn, turn);
    atomic_fetch_sub(&b->sleepers, 1);
}

// Called by a member that has seen `seen` runs: returns when there is another. The only one to wait for is the caller.
static void await_call(struct member *m, uint32_t seen) {
    if (spin(&m->call, seen, m->team, m->ith, 1, BETWEEN_RUNS)) return;
    atomic_store(&m->asleep, 1);
    while (atomic_load(&m->call) == seen) futex_wait(&m->call, seen);
    atomic_store(&m->asleep, 0);
}

static void call(struct member *m) {
    atomic_fetch_add(&m->call, 1);
    if (atomic_load(&m->asleep)) futex_wake_all(&m->call);
}

static void set_affinity(const struct team *t, int ith) {
#ifdef __linux__
    if (!t->has_mask) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    int n = 0, k = 0;
    for (int i = 0; i < GGML_MAX_N_THREADS; i++) n += t->mask[i];
    if (n == 0) return;
    for (int i = 0; i < GGML_MAX_N_THREADS && i < CPU_SETSIZE; i++) {
        if (t->mask[i] && (!t->strict_cpu || k++ == ith % n)) CPU_SET(i, &set);
    }
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // a wish: a mask that the machine lacks changes nothing
#else
    (void) t, (void) ith;
#endif
}

// A wish as well: raising a priority takes rights that few processes have.
static void set_priority(enum ggml_sched_priority priority) {
    struct sched_param p = {0};
    int policy = SCHED_OTHER;
    switch (priority) {
#ifdef SCHED_BATCH
        case GGML_SCHED_PRIO_LOW: policy = SCHED_BATCH; break;
#endif
        case GGML_SCHED_PRIO_MEDIUM: policy = SCHED_FIFO, p.sched_priority = 40; break;
        case GGML_SCHED_PRIO_HIGH: policy = SCHED_FIFO, p.sched_priority = 80; break;
        case GGML_SCHED_PRIO_REALTIME: policy = SCHED_FIFO, p.sched_priority = 90; break;
        default: return;
    }
    pthread_setschedparam(pthread_self(), policy, &p);
}

static void *member_main(void *arg) {
    struct member *m = arg;
    struct team *t = m->team;
    set_affinity(t, m->ith);
    set_priority(t->priority);
    for (uint32_t seen = 0;; seen++) {
        await_call(m, seen);
        if (atomic_load(&m->stop)) return NULL;
        t->fn(m->ith, t->n_run, t->arg);
        leave_word(t, m->ith);
        if (atomic_fetch_sub(&t->busy, 1) != 1) continue;
        atomic_fetch_add(&t->ended, 1);
        if (atomic_load(&t->waiting)) futex_wake_all(&t->ended);
    }
}

static enum err add_member(struct team *t) {
    struct member *m = aligned_alloc(64, sizeof *m);
    if (!m) return err_set(ERR_NOMEM, "thread team: no memory for member %d", t->n);
    memset(m, 0, sizeof *m);
    m->ith = t->n;
    m->team = t;
    const int failure = pthread_create(&m->thread, NULL, member_main, m);
    if (failure) {
        free(m);
        return err_set(ERR_FAILED, "thread team: cannot start thread %d of the team (%s); use fewer threads", t->n,
                       strerror(failure));
    }
    t->members[m->ith] = m;
    atomic_store(&t->n, m->ith + 1);
    return ERR_OK;
}

enum err team_grow(struct team *t, int n) {
    if (n > GGML_MAX_N_THREADS) {
        return err_set(ERR_INVALID, "thread team: %d threads asked for, at most %d are possible", n, GGML_MAX_N_THREADS);
    }
    if (n <= t->n) return ERR_OK;
    struct member **members = realloc(t->members, (size_t) n * sizeof *members);
    if (!members) return err_set(ERR_NOMEM, "thread team: no memory for %d members", n);
    t->members = members;
    while (t->n < n) TRY(add_member(t));
    return ERR_OK;
}

size_t team_bytes(int n) {
    const struct team *t = NULL;
    return sizeof *t + (size_t) n * sizeof *t->members + (size_t) (n - 1) * sizeof **t->members;
}

struct team *team_new(const struct team_params *p) {
    struct team *t = aligned_alloc(64, sizeof *t);
    if (!t) {
        (void) err_set(ERR_NOMEM, "thread team: no memory");
        return NULL;
    }
    memset(t, 0, sizeof *t);
    t->n = 1;
    t->n_cpus = team_n_cpus();
    t->pid = getpid();
    t->strict_cpu = p->strict_cpu;
    t->priority = p->priority;
    team_set_poll(t, p->poll);
    if (p->cpumask) memcpy(t->mask, p->cpumask, sizeof t->mask);
    for (int i = 0; p->cpumask && i < GGML_MAX_N_THREADS; i++) t->has_mask |= t->mask[i];
    t->members = calloc(1, sizeof *t->members);
    if (!t->members || team_grow(t, p->n_threads) != ERR_OK) {
        team_free(t);
        return NULL;
    }
    return t;
}

void team_free(struct team *t) {
    if (!t) return;
    const bool orphan = team_is_orphan(t);
    for (int i = 1; i < t->n && !orphan; i++) {
        atomic_store(&t->members[i]->stop, STOP);
        call(t->members[i]);
    }
    for (int i = 1; i < t->n; i++) {
        if (!orphan) pthread_join(t->members[i]->thread, NULL);
        free(t->members[i]);
    }
    free(t->members);
    free(t);
}

void team_run(struct team *t, int n, void (*fn)(int ith, int nth, void *arg), void *arg) {
    if (n > t->n) n = t->n;
    if (n <= 1) {
        fn(0, 1, arg);
        return;
    }
    t->fn = fn;
    t->arg = arg;
    t->n_run = n;
    leave_word(t, 0);
    const uint32_t ended = atomic_load_explicit(&t->ended, memory_order_relaxed);
    atomic_store(&t->busy, (uint32_t) n - 1);
    for (int i = 1; i < n; i++) call(t->members[i]);
    fn(0, n, arg);
    if (spin(&t->ended, ended, t, 0, n, 1)) return;
    atomic_store(&t->waiting, 1);
    while (atomic_load(&t->ended) == ended) futex_wait(&t->ended, ended);
    atomic_store(&t->waiting, 0);
}
