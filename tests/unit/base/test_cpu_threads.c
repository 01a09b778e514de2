// The default thread count: the pure rule as a table, then whole made-up machines.
#include "test.h"
#include "base/cpu.h"

static void test_rule(void **state) {
    (void) state;
    static const struct {
        struct cpu_topology machine;
        int threads;
    } rows[] = {
        {{16, 8, 0}, 8},                         // 8 cores with two threads each
        {{20, 8, 0}, 8},                         // 8 performance and 12 efficiency cores
        {{20, 6, 0}, 6},                         // 6 performance cores with two threads each, 8 efficiency cores
        {{1, 1, 0}, 1},                          // one core
        {{256, 256, 0}, 256},                    // many
        {{8, 8, 1.5}, 1},                        // a quota is rounded down ...
        {{8, 8, 0.3}, 1},                        // ... but not to nothing
        {{8, 8, 3.9}, 3},     {{8, 8, 100}, 8},  // a quota above the machine
        {{1, 8, 0}, 1},                          // affinity narrower than the cores
        {{0, 0, 0}, 1},                          // nothing known
        {{4, 0, 0}, 4},                          // cores unknown
        {{2, 2, -1}, 2},                         // "no limit" in v1's spelling
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(cpu_threads_for(&rows[i].machine), rows[i].threads);
    }
}

static char root[256];

static int machine_begin(void **state) {
    (void) state;
    quiet();
    test_dir_make(root, sizeof root);
    return 0;
}

static int machine_end(void **state) {
    (void) state;
    test_dir_remove(root);
    return 0;
}

static void allow(const char *list) {
    char text[128];
    snprintf(text, sizeof text, "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t%s\nMems_allowed:\t1\n", list);
    test_write_text(root, "proc/self/status", text);
}

static void core(int cpu, const char *siblings) {
    char name[128];
    snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    test_write_text(root, name, siblings);
}

static void smt_machine(int n_cores) {
    for (int i = 0; i < n_cores; i++) {
        char list[32];
        snprintf(list, sizeof list, "%d,%d\n", i, i + n_cores);
        core(i, list);
        core(i + n_cores, list);
    }
}

static void test_smt(void **state) {
    (void) state;
    allow("0-15");
    smt_machine(8);
    assert_int_equal(cpu_default_threads(root), 8);
    allow("0,8");  // both threads of one core
    assert_int_equal(cpu_default_threads(root), 1);
    allow("0-2,8-9,15");  // cores 0, 1, 2 and 7
    assert_int_equal(cpu_default_threads(root), 4);
}

static void test_hybrid_intel(void **state) {
    (void) state;
    allow("0-19");
    for (int i = 0; i < 6; i++) {
        char list[32];
        snprintf(list, sizeof list, "%d-%d\n", 2 * i, 2 * i + 1);
        core(2 * i, list);
        core(2 * i + 1, list);
    }
    for (int i = 12; i < 20; i++) {
        char list[32];
        snprintf(list, sizeof list, "%d\n", i);
        core(i, list);
    }
    test_write_text(root, "sys/devices/cpu_core/cpus", "0-11\n");
    test_write_text(root, "sys/devices/cpu_atom/cpus", "12-19\n");
    assert_int_equal(cpu_default_threads(root), 6);
    allow("12-19");  // efficiency cores alone are used all
    assert_int_equal(cpu_default_threads(root), 8);
}

static void test_capacities(void **state) {
    (void) state;
    static const int capacity[8] = {250, 250, 250, 250, 870, 870, 1024, 1024};
    allow("0-7");
    for (int i = 0; i < 8; i++) {
        char name[96], text[16];
        snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/cpu_capacity", i);
        snprintf(text, sizeof text, "%d\n", capacity[i]);
        test_write_text(root, name, text);
    }
    assert_int_equal(cpu_default_threads(root), 4);
}

static void test_cgroup_v2(void **state) {
    (void) state;
    allow("0-7");
    test_write_text(root, "proc/self/cgroup", "0::/user.slice/job\n");
    assert_int_equal(cpu_default_threads(root), 8);
    test_write_text(root, "sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
    assert_int_equal(cpu_default_threads(root), 8);
    test_write_text(root, "sys/fs/cgroup/user.slice/job/cpu.max", "550000 100000\n");
    assert_int_equal(cpu_default_threads(root), 5);
    test_write_text(root, "sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");  // the group around it is tighter
    assert_int_equal(cpu_default_threads(root), 1);
}

static void test_cgroup_of_a_container(void **state) {
    (void) state;
    allow("0-7");
    test_write_text(root, "proc/self/cgroup", "0::/\n");
    test_write_text(root, "sys/fs/cgroup/cpu.max", "250000 100000\n");
    assert_int_equal(cpu_default_threads(root), 2);
}

static void test_cgroup_v1(void **state) {
    (void) state;
    allow("0-7");
    test_write_text(root, "proc/self/cgroup", "12:cpuset:/x\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/y\n");
    test_write_text(root, "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1\n");
    test_write_text(root, "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cpu_default_threads(root), 8);
    test_write_text(root, "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "300000\n");
    assert_int_equal(cpu_default_threads(root), 3);
}

static void test_empty_root(void **state) {
    (void) state;
    assert_int_equal(cpu_default_threads(root), 1);
}

static void test_this_machine(void **state) {
    (void) state;
    const int n = ggml_cpu_default_threads();
    assert_in_range(n, 1, sysconf(_SC_NPROCESSORS_ONLN));
}

static void test_levels(void **state) {
    (void) state;
    assert_true(cpu_has_level("scalar"));
    assert_false(cpu_has_level("no such level"));
    if (cpu_has_level("avx512bf16")) assert_true(cpu_has_level("avx512vnni"));
    if (cpu_has_level("avx512")) assert_true(cpu_has_level("avx2"));
    assert_false(cpu_has(CPU_FEATURE_COUNT));
}

int main(void) {
#define MACHINE(f) cmocka_unit_test_setup_teardown(f, machine_begin, machine_end)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule),   MACHINE(test_smt),        MACHINE(test_hybrid_intel),
        MACHINE(test_capacities),      MACHINE(test_cgroup_v2),  MACHINE(test_cgroup_of_a_container),
        MACHINE(test_cgroup_v1),       MACHINE(test_empty_root), cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
