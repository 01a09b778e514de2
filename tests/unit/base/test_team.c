// The thread team: everyone works once per run, barriers hold, many threads on few processors, idle threads sleep.
#include "test.h"
#include "base/team.h"

#include <errno.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>

struct job {
    _Atomic int ran[GGML_MAX_N_THREADS];
    _Atomic int wrong_n;
    int n;
    struct barrier barrier;
    struct team *team;
    _Atomic int phase_count;
    _Atomic int early;
    int last_calls;
    const cpu_set_t *one;  // where members go, if given
};

static void mark(int ith, int nth, void *arg) {
    struct job *j = arg;
    atomic_fetch_add(&j->ran[ith], 1);
    if (nth != j->n) atomic_fetch_add(&j->wrong_n, 1);
}

static struct team *team(int n, uint32_t poll) {
    struct team *t = team_new(&(struct team_params){.n_threads = n, .poll = poll});
    assert_non_null(t);
    assert_int_equal(team_size(t), n);
    return t;
}

static void test_everyone_once(void **state) {
    (void) state;
    struct team *t = team(5, 50);
    for (int n = 1; n <= 5; n++) {
        struct job j = {.n = n};
        for (int k = 0; k < 100; k++) team_run(t, n, mark, &j);
        for (int i = 0; i < 5; i++) assert_int_equal(j.ran[i], i < n ? 100 : 0);
        assert_int_equal(j.wrong_n, 0);
    }
    struct job j = {.n = 5};
    team_run(t, 9, mark, &j);  // more than there are: all of them
    assert_int_equal(j.ran[4], 1);
    team_free(t);
    team_free(NULL);
}

static void count_last(void *arg) { ((struct job *) arg)->last_calls++; }

static void phases(int ith, int nth, void *arg) {
    struct job *j = arg;
    if (j->one) sched_setaffinity(0, sizeof *j->one, j->one);
    for (int k = 0; k < 200; k++) {
        atomic_fetch_add(&j->phase_count, 1);
        barrier_wait(&j->barrier, j->team, ith, nth, count_last, j);
        if (atomic_load(&j->phase_count) < (k + 1) * nth) atomic_fetch_add(&j->early, 1);
        barrier_wait(&j->barrier, j->team, ith, nth, NULL, NULL);
    }
}

static void test_barrier(void **state) {
    (void) state;
    static const int counts[] = {2, 3, 8, 16};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct team *t = team(counts[i], 50);
        struct job j = {.n = counts[i], .team = t};
        team_run(t, counts[i], phases, &j);
        assert_int_equal(j.early, 0);
        assert_int_equal(j.last_calls, 200);
        assert_int_equal(j.phase_count, 200 * counts[i]);
        team_free(t);
    }
}

static void test_more_threads_than_processors(void **state) {
    (void) state;
    struct team *t = team(64, 50);
    struct job j = {.n = 64};
    team_run(t, 64, mark, &j);
    for (int i = 0; i < 64; i++) assert_int_equal(j.ran[i], 1);
    team_free(t);
}

static double cpu_seconds(void) {
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double) ts.tv_sec + 1e-9 * (double) ts.tv_nsec;
}

static void test_idle_threads_sleep(void **state) {
    (void) state;
    struct team *t = team(4, 100);
    struct job j = {.n = 4};
    team_run(t, 4, mark, &j);
    usleep(20000);  // the spin is over by now
    const double before = cpu_seconds();
    usleep(300000);
    assert_true(cpu_seconds() - before < 0.01);
    team_free(t);
}

// Two members on one processor: one that spun there would keep the other from the work that it waits for.
static void test_no_spinning_in_the_way(void **state) {
    (void) state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    if (CPU_COUNT(&before) < 2) return;  // then nobody spins anyway
    int cpu = 0;
    while (!CPU_ISSET(cpu, &before)) cpu++;
    struct team *t = team(2, 100);  // made while there are more processors, so that it would spin
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    struct job j = {.n = 2, .team = t, .one = &one};
    const double start = cpu_seconds();
    for (int i = 0; i < 5; i++) team_run(t, 2, phases, &j);
    const double seconds = cpu_seconds() - start;
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(j.early, 0);
    assert_true(test_small() ||
                seconds < 0.1);  // 2,000 barriers: 0.2 s of spinning (where instructions cost no more than usual)
    team_free(t);
}

static void test_grow(void **state) {
    (void) state;
    struct team *t = team(1, 0);
    assert_int_equal(team_grow(t, 6), ERR_OK);
    assert_int_equal(team_grow(t, 3), ERR_OK);
    assert_int_equal(team_size(t), 6);
    struct job j = {.n = 6};
    team_run(t, 6, mark, &j);
    assert_int_equal(j.ran[5], 1);
    quiet();
    assert_int_equal(team_grow(t, GGML_MAX_N_THREADS + 1), ERR_INVALID);
    assert_error("at most 512");
    assert_int_equal(team_size(t), 6);
    team_free(t);
    assert_null(team_new(&(struct team_params){.n_threads = 100000}));
    assert_error("100000 threads");
}

static void test_orphan(void **state) {
    (void) state;
    struct team *t = team(3, 50);
    assert_false(team_is_orphan(t));
    const pid_t pid = fork();
    if (pid == 0) {
        const bool orphan = team_is_orphan(t);
        team_free(t);  // must not wait for threads that are not there
        _exit(orphan ? 7 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 7);
    team_free(t);
}

static void test_masks(void **state) {
    (void) state;
    bool mask[GGML_MAX_N_THREADS] = {true};
    struct team *t = team_new(
        &(struct team_params){.n_threads = 3, .cpumask = mask, .strict_cpu = true, .priority = GGML_SCHED_PRIO_REALTIME});
    assert_non_null(t);
    struct job j = {.n = 3};
    team_run(t, 3, mark, &j);
    assert_int_equal(j.ran[2], 1);
    team_free(t);
}

static void sum_parts(int ith, int nth, void *arg) {
    _Atomic long *sum = arg;
    for (int i = ith; i < 1000; i += nth) atomic_fetch_add(sum, i);
}

static void test_parallel(void **state) {
    (void) state;
    static const int counts[] = {-3, 0, 1, 2, 7};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        _Atomic long sum = 0;
        ggml_parallel(counts[i], sum_parts, (void *) &sum);
        assert_int_equal(sum, 499500);
    }
    ggml_parallel(2, NULL, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everyone_once),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_more_threads_than_processors),
        cmocka_unit_test(test_idle_threads_sleep),
        cmocka_unit_test(test_no_spinning_in_the_way),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_orphan),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_parallel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
