// The planner on intervals alone: valid plans whatever comes, the bound met where graphs look like graphs, chunks, fixed
// places.
#include "alloc/plan.h"
#include "test.h"

static uint64_t rng_state;

static uint32_t below(uint32_t n) {
    rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) ((rng_state >> 33) % n);
}

static struct plan_item item(size_t bytes, int first, int last) {
    return (struct plan_item){.bytes = bytes, .first = first, .last = last, .take = {-1, -1}, .over = -1};
}

// Items that are alive together must lie apart, unless one took over the other.
static void check_valid(const struct plan_item *it, int n, size_t peak, size_t max_chunk) {
    for (int i = 0; i < n; i++) {
        if (it[i].bytes == 0) continue;
        assert_true(it[i].offset + it[i].bytes <= peak);
        assert_int_equal(it[i].offset % 32, 0);
        if (max_chunk != SIZE_MAX) assert_int_equal(it[i].offset / max_chunk, (it[i].offset + it[i].bytes - 1) / max_chunk);
        if (it[i].over >= 0) assert_int_equal(it[i].offset, it[it[i].over].offset);
        for (int j = 0; j < i; j++) {
            if (it[j].last < it[i].first || it[j].bytes == 0 || it[i].over == j) continue;
            assert_true(it[i].offset + it[i].bytes <= it[j].offset || it[j].offset + it[j].bytes <= it[i].offset);
        }
    }
}

static int random_items(struct plan_item *it, int n, int span, uint32_t size, bool takes) {
    for (int i = 0; i < n; i++) {
        const int first = i / 2, last = first + (int) below((uint32_t) span);
        it[i] = item(32 * (size_t) below(size), first, last);
        if (!takes) continue;
        for (int j = i - 1; j >= 0 && j > i - 12; j--) {  // something that dies here
            if (it[j].last != first || it[j].first >= first || it[j].bytes == 0) continue;
            bool taken = false;
            for (int k = 0; k < i; k++) taken = taken || it[k].take[0] == j || it[k].take[1] == j;
            if (taken) continue;
            it[i].bytes = below(3) ? it[j].bytes : 32 * (1 + (size_t) below((uint32_t) (it[j].bytes / 32)));
            it[i].take[0] = j;
            break;
        }
    }
    return n / 2 + span + 2;
}

static void test_random(void **state) {
    (void) state;
    enum { N = 300 };
    struct plan_item it[N];
    struct plan_scratch s = {0};
    int n_met = 0;
    for (int round = 0; round < 200; round++) {
        rng_state = (uint64_t) round;
        const int n = 2 + (int) below(N - 2);
        const int steps = random_items(it, n, 2 + (int) below(20), 1 + below(60), round % 2);
        struct plan_result r;
        assert_int_equal(plan_solve(&s, it, n, steps, SIZE_MAX, 12, &r), ERR_OK);
        check_valid(it, n, r.peak, SIZE_MAX);
        assert_true(r.peak >= r.bound);
        assert_true(r.peak <= r.bound + r.bound / 4);
        n_met += r.peak == r.bound;
    }
    assert_true(n_met >= 180);
    plan_scratch_free(&s);
}

static void test_chunks(void **state) {
    (void) state;
    enum { N = 200 };
    struct plan_item it[N];
    struct plan_scratch s = {0};
    for (int round = 0; round < 50; round++) {
        rng_state = 1000 + (uint64_t) round;
        const int steps = random_items(it, N, 12, 30, round % 2);
        struct plan_result r;
        const size_t max = 32 * (29 + below(40));
        assert_int_equal(plan_solve(&s, it, N, steps, max, 4, &r), ERR_OK);
        check_valid(it, N, r.peak, max);
    }
    plan_scratch_free(&s);
}

static void test_too_large(void **state) {
    (void) state;
    struct plan_scratch s = {0};
    struct plan_item it = item(4096, 0, 1);
    struct plan_result r;
    assert_int_equal(plan_solve(&s, &it, 1, 2, 2048, 1, &r), ERR_INVALID);
    assert_error("4096 bytes");
    plan_scratch_free(&s);
}

// A block that must stay where it is: the others go around it.
static void test_fixed(void **state) {
    (void) state;
    struct plan_scratch s = {0};
    struct plan_item it[] = {item(256, 0, 9), item(128, 1, 3), item(128, 2, 9)};
    it[0].fixed = true;
    it[0].offset = 64;
    struct plan_result r;
    assert_int_equal(plan_solve(&s, it, 3, 10, SIZE_MAX, 12, &r), ERR_OK);
    assert_int_equal(it[0].offset, 64);
    check_valid(it, 3, r.peak, SIZE_MAX);
    plan_scratch_free(&s);
}

// What is left of a block that a smaller result took over is free for others at once.
static void test_shrinking(void **state) {
    (void) state;
    struct plan_scratch s = {0};
    struct plan_item it[] = {item(1024, 0, 1), item(256, 1, 3), item(768, 2, 3)};
    it[1].take[0] = 0;
    struct plan_result r;
    assert_int_equal(plan_solve(&s, it, 3, 4, SIZE_MAX, 12, &r), ERR_OK);
    check_valid(it, 3, r.peak, SIZE_MAX);
    assert_int_equal(r.bound, 1024);
    assert_int_equal(r.peak, 1024);
    assert_int_equal(it[1].over, 0);
    struct plan_item same[] = {it[0], it[1], it[2]};
    assert_int_equal(plan_best_fit(same, 3, &r), ERR_OK);
    check_valid(same, 3, r.peak, SIZE_MAX);
    assert_int_equal(r.peak, 1024);
    plan_scratch_free(&s);
}

// A stream that is added to keeps one address through the whole graph: that is what leaves no holes.
static void test_stream(void **state) {
    (void) state;
    enum { LAYERS = 40 };
    struct plan_item it[3 * LAYERS + 1];
    it[0] = item(1024, 0, 2);
    int stream = 0, n = 1;
    for (int il = 0; il < LAYERS; il++) {  // x -> big -> y; x + y
        it[n] = item(4096 + 32 * (size_t) (il % 7), 2 * il + 1, 2 * il + 2);
        it[n + 1] = item(1024, 2 * il + 2, 2 * il + 3);
        it[stream].last = 2 * il + 3;
        it[n + 2] = item(1024, 2 * il + 3, 2 * il + 3);
        it[n + 2].take[0] = n + 1;
        it[n + 2].take[1] = stream;
        stream = n + 2;
        n += 3;
    }
    struct plan_scratch s = {0};
    struct plan_result r;
    assert_int_equal(plan_solve(&s, it, n, 2 * LAYERS + 4, SIZE_MAX, 12, &r), ERR_OK);
    check_valid(it, n, r.peak, SIZE_MAX);
    assert_int_equal(r.peak, r.bound);
    for (int i = 3; i < n; i += 3) assert_int_equal(it[i].offset, it[0].offset);
    plan_scratch_free(&s);
}

static void test_best_fit(void **state) {
    (void) state;
    enum { N = 200 };
    struct plan_item it[N];
    for (int round = 0; round < 50; round++) {
        rng_state = 5000 + (uint64_t) round;
        random_items(it, N, 9, 40, round % 2);
        struct plan_result r;
        assert_int_equal(plan_best_fit(it, N, &r), ERR_OK);
        check_valid(it, N, r.peak, SIZE_MAX);
    }
}

static void test_same_every_time(void **state) {
    (void) state;
    enum { N = 150 };
    struct plan_item a[N], b[N];
    struct plan_scratch s = {0}, fresh = {0};
    rng_state = 77;
    const int steps = random_items(a, N, 9, 40, true);
    memcpy(b, a, sizeof(a));
    struct plan_result r;
    assert_int_equal(plan_solve(&s, a, N, steps, SIZE_MAX, 12, &r), ERR_OK);
    assert_int_equal(plan_solve(&s, a, N, steps, SIZE_MAX, 12, &r), ERR_OK);
    assert_int_equal(plan_solve(&fresh, b, N, steps, SIZE_MAX, 12, &r), ERR_OK);
    for (int i = 0; i < N; i++) assert_int_equal(a[i].offset, b[i].offset);
    plan_scratch_free(&s);
    plan_scratch_free(&fresh);
}

static void test_nothing(void **state) {
    (void) state;
    struct plan_scratch s = {0};
    struct plan_result r;
    struct plan_item it = item(0, 0, 0);
    assert_int_equal(plan_solve(&s, &it, 0, 1, SIZE_MAX, 12, &r), ERR_OK);
    assert_int_equal(r.peak, 0);
    assert_int_equal(plan_solve(&s, &it, 1, 1, SIZE_MAX, 12, &r), ERR_OK);
    assert_int_equal(r.peak, 0);
    plan_scratch_free(&s);
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),          cmocka_unit_test(test_chunks),  cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_fixed),           cmocka_unit_test(test_stream),  cmocka_unit_test(test_best_fit),
        cmocka_unit_test(test_same_every_time), cmocka_unit_test(test_nothing), cmocka_unit_test(test_shrinking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
