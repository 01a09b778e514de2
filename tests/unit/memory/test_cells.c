// The cache's bookkeeping against a naive model: 64 sequences, 100,000 random operations; every position must be where the model has
// it, with the data that was written there.
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "memory/cells.h"

#define N_SEQ 64
#define N_BLOCK 96
#define N_LOGICAL 96
#define MAX_POS 1500
#define N_OPS 100000

struct naive {
    int32_t tag[N_SEQ][MAX_POS];     // what was written at the position, 0: nothing
    int32_t turned[N_SEQ][MAX_POS];  // by how much its key has to be turned
};

static struct naive *naive;
static struct cells cells;
static int32_t data[N_BLOCK * CELL_BLOCK];
static struct cell_copies copies;
static uint64_t seed = 1;

static uint32_t rnd(uint32_t n) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t) (seed >> 33) % n;
}

static void run_copies(void) {
    assert_false(copies.failed);
    for (int i = 0; i < copies.n; i++)
        memmove(data + copies.v[i].dst, data + copies.v[i].src, (size_t) copies.v[i].n * sizeof *data);
    copies.n = 0;
}

static int32_t last_pos(int s) {
    for (int p = MAX_POS - 1; p >= 0; p--)
        if (naive->tag[s][p]) return p;
    return -1;
}

static int32_t first_pos(int s) {
    for (int p = 0; p < MAX_POS; p++)
        if (naive->tag[s][p]) return p;
    return -1;
}

static void check_seq(int s) {
    assert_int_equal(cells.pos_max[s], last_pos(s));
    assert_int_equal(cells.pos_min[s], first_pos(s));
    int32_t cell, pos, at = 0, n = 0;
    for (int32_t i = cells_next(&cells, s, 0, &cell, &pos); i >= 0; i = cells_next(&cells, s, i + 1, &cell, &pos)) {
        for (; at < i; at++) assert_int_equal(naive->tag[s][at], 0);
        assert_int_equal(pos, i);
        assert_int_equal(cell % CELL_BLOCK, i % CELL_BLOCK);
        assert_int_equal(data[cell], naive->tag[s][i]);
        assert_int_equal(cells.shift[cell], naive->turned[s][i]);
        at = i + 1;
        n++;
    }
    for (; at < MAX_POS; at++) assert_int_equal(naive->tag[s][at], 0);
    assert_int_equal(cells_count(&cells, s), n);
}

// Every block is either free or named by as many tables as its count says.
static void check_refs(void) {
    int32_t ref[N_BLOCK] = {0};
    for (int s = 0; s < N_SEQ; s++)
        for (int i = 0; i < N_LOGICAL; i++) {
            const struct cell_entry *e = &cells.table[s * N_LOGICAL + i];
            if (e->block < 0) continue;
            assert_true(e->block < N_BLOCK);
            ref[e->block]++;
        }
    int n_free = 0;
    for (int b = 0; b < N_BLOCK; b++) {
        assert_int_equal(ref[b], cells.ref[b]);
        n_free += !ref[b];
    }
    assert_int_equal(n_free, cells.n_free);
}

static void op_place(void) {
    static int32_t next_tag = 1;
    const int s = (int) rnd(N_SEQ), p0 = last_pos(s) + 1, n = 1 + (int) rnd(40);
    for (int p = p0; p < p0 + n && p < MAX_POS; p++) {
        int32_t seq[2] = {s, (s + 1) % N_SEQ}, cell, index;
        // now and then two sequences that agree get one token together
        const bool two = rnd(4) == 0 && last_pos(seq[1]) == p - 1 &&
                         cells_target(&cells, s, p, NULL) == cells_target(&cells, seq[1], p, NULL);
        if (!cells_place(&cells, seq, two ? 2 : 1, p, &cell, &index, &copies)) return;
        run_copies();
        assert_int_equal(index, p);
        data[cell] = next_tag;
        for (int k = 0; k < (two ? 2 : 1); k++) {
            naive->tag[seq[k]][p] = next_tag;
            naive->turned[seq[k]][p] = 0;
        }
        next_tag++;
    }
}

static void op_rm(void) {
    const int s = (int) rnd(N_SEQ);
    int32_t p0 = (int32_t) rnd(MAX_POS) - 10, p1 = rnd(3) ? p0 + (int32_t) rnd(200) : -1;
    if (rnd(10) == 0) p0 = -1;
    cells_rm(&cells, s, p0, p1);
    for (int p = p0 < 0 ? 0 : p0; p < (p1 < 0 ? MAX_POS : p1) && p < MAX_POS; p++)
        naive->tag[s][p] = naive->turned[s][p] = 0;
}

static void op_cp(void) {
    const int a = (int) rnd(N_SEQ), b = (int) rnd(N_SEQ);
    const int32_t p0 = rnd(2) ? -1 : (int32_t) rnd(300), p1 = rnd(2) ? -1 : (int32_t) rnd(600);
    // a copy needs blocks of its own only where the target has other content
    if (cells.n_free < N_LOGICAL / 2) return;
    cells_cp(&cells, a, b, p0, p1, &copies);
    run_copies();
    if (a == b) return;
    for (int p = p0 < 0 ? 0 : p0; p < (p1 < 0 ? MAX_POS : p1) && p < MAX_POS; p++) {
        if (!naive->tag[a][p]) continue;
        naive->tag[b][p] = naive->tag[a][p];
        naive->turned[b][p] = naive->turned[a][p];
    }
}

static void op_add(void) {
    const int s = (int) rnd(N_SEQ);
    const int32_t p0 = (int32_t) rnd(300), p1 = rnd(2) ? -1 : p0 + (int32_t) rnd(400), delta = (int32_t) rnd(200) - 130;
    const int32_t last = last_pos(s);
    if (last < 0 || last + delta >= MAX_POS || cells.n_free < 30) return;
    // what is moved onto existing positions replaces them, in the order of moving
    int32_t tag[MAX_POS], turned[MAX_POS];
    memcpy(tag, naive->tag[s], sizeof tag);
    memcpy(turned, naive->turned[s], sizeof turned);
    const int32_t end = p1 < 0 || p1 > MAX_POS ? MAX_POS : p1;
    for (int k = 0; k < end - p0; k++) {
        const int p = delta < 0 ? p0 + k : end - 1 - k, q = p + delta;
        if (!tag[p] || !delta) continue;
        if (q >= 0) {
            tag[q] = tag[p];
            turned[q] = turned[p] + delta;
        }
        tag[p] = turned[p] = 0;
    }
    cells_add(&cells, s, p0, p1, delta, &copies);
    run_copies();
    memcpy(naive->tag[s], tag, sizeof tag);
    memcpy(naive->turned[s], turned, sizeof turned);
}

static void op_keep(void) {
    const int s = (int) rnd(N_SEQ);
    cells_keep(&cells, s);
    for (int k = 0; k < N_SEQ; k++)
        if (k != s) {
            memset(naive->tag[k], 0, sizeof naive->tag[k]);
            memset(naive->turned[k], 0, sizeof naive->turned[k]);
        }
}

// A batch that is tried and taken back leaves nothing behind.
static void op_try(void) {
    cells_save(&cells);
    for (int i = 0; i < 20; i++) {
        const int32_t s = (int32_t) rnd(N_SEQ);
        int32_t cell, index;
        (void) cells_place(&cells, &s, 1, last_pos(s) + 1 + i, &cell, &index, &copies);
    }
    copies.n = 0;
    cells_restore(&cells);
}

static void test_random(void **state) {
    (void) state;
    naive = calloc(1, sizeof *naive);
    assert_int_equal(cells_init(&cells, N_SEQ, N_BLOCK, N_LOGICAL, true, NULL), ERR_OK);
    for (int i = 0; i < N_OPS; i++) {
        switch (rnd(20)) {
            case 0:
            case 1: op_rm(); break;
            case 2:
            case 3: op_cp(); break;
            case 4:
            case 5: op_add(); break;
            case 6:
                if (rnd(100) == 0) op_keep();
                break;
            case 7: op_try(); break;
            default: op_place(); break;
        }
        if (i % 50 == 0) {
            check_refs();
            for (int s = 0; s < N_SEQ; s++) check_seq(s);
        }
    }
    for (int s = 0; s < N_SEQ; s++) check_seq(s);
    check_refs();
    cells_free(&cells);
    free(naive);
    free(copies.v);
    copies = (struct cell_copies){0};
}

static void test_shared_prefix(void **state) {
    (void) state;
    assert_int_equal(cells_init(&cells, 4, 8, 8, false, NULL), ERR_OK);
    int32_t cell, index, s0 = 0, s1 = 1;
    for (int p = 0; p < 20; p++) assert_true(cells_place(&cells, &s0, 1, p, &cell, &index, &copies));
    cells_cp(&cells, 0, 1, -1, -1, &copies);
    assert_int_equal(copies.n, 0);
    assert_int_equal(cells.n_free, 7);
    // writing to the shared, half filled block copies it for the writer
    assert_true(cells_place(&cells, &s1, 1, 20, &cell, &index, &copies));
    assert_int_equal(copies.n, 1);
    assert_int_equal(copies.v[0].n, CELL_BLOCK);
    assert_int_equal(cells.n_free, 6);
    assert_int_equal(cells.pos_max[0], 19);
    assert_int_equal(cells.pos_max[1], 20);
    copies.n = 0;
    cells_free(&cells);
}

static void test_full(void **state) {
    (void) state;
    assert_int_equal(cells_init(&cells, 2, 2, 8, false, NULL), ERR_OK);
    int32_t cell, index, s0 = 0, s1 = 1;
    for (int p = 0; p < 128; p++) assert_true(cells_place(&cells, &s0, 1, p, &cell, &index, &copies));
    assert_false(cells_place(&cells, &s0, 1, 128, &cell, &index, &copies));
    assert_false(cells_place(&cells, &s1, 1, 0, &cell, &index, &copies));
    assert_int_equal(cells.pos_max[0], 127);
    cells_rm(&cells, 0, 0, 64);
    // positions may go on beyond what the cache holds at once
    for (int p = 128; p < 192; p++) assert_true(cells_place(&cells, &s0, 1, p, &cell, &index, &copies));
    assert_int_equal(cells.pos_min[0], 64);
    cells_rm(&cells, 0, 0, 128);
    for (int p = 192; p < 250; p++) assert_true(cells_place(&cells, &s0, 1, p, &cell, &index, &copies));
    cells_rm(&cells, 0, -1, -1);
    assert_int_equal(cells.n_free, 2);
    // far positions begin where they are
    assert_true(cells_place(&cells, &s0, 1, 100000, &cell, &index, &copies));
    assert_int_equal(cells.pos_min[0], 100000);
    cells_free(&cells);
}

// Division makes positions coincide: the sequence keeps its order and every one of its tokens.
static void test_div(void **state) {
    (void) state;
    assert_int_equal(cells_init(&cells, 1, 4, 8, true, NULL), ERR_OK);
    int32_t cell, index, s0 = 0, pos, n = 0;
    for (int p = 0; p < 40; p++) assert_true(cells_place(&cells, &s0, 1, p, &cell, &index, &copies));
    cells_div(&cells, 0, 0, 40, 4, &copies);
    assert_int_equal(cells.pos_max[0], 9);
    assert_int_equal(cells_count(&cells, 0), 40);
    for (int32_t i = cells_next(&cells, 0, 0, &cell, &pos); i >= 0; i = cells_next(&cells, 0, i + 1, &cell, &pos), n++) {
        assert_int_equal(pos, n / 4);
        assert_int_equal(cells.shift[cell], n / 4 - n);
    }
    assert_true(cells_place(&cells, &s0, 1, 10, &cell, &index, &copies));
    assert_int_equal(index, 40);
    assert_int_equal(cells.pos_max[0], 10);
    cells_add(&cells, 0, 5, -1, 3, &copies);
    assert_int_equal(cells.pos_max[0], 13);
    cells_rm(&cells, 0, 0, 5);
    assert_int_equal(cells_count(&cells, 0), 21);
    assert_int_equal(cells.pos_min[0], 8);
    cells_free(&cells);
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_shared_prefix),
                                       cmocka_unit_test(test_full), cmocka_unit_test(test_div)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
