// Arena, array, string and map.
#include "test.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"

static void test_arena(void **state) {
    (void) state;
    struct arena a = {0};
    char *first = arena_copy(&a, "hello", 5);
    for (size_t n = 0; n < 20000; n += 37) {
        char *p = arena_alloc(&a, n);
        assert_non_null(p);
        assert_int_equal((uintptr_t) p % 16, 0);
        memset(p, 0xee, n);
    }
    assert_string_equal(first, "hello");
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_alloc(&a, SIZE_MAX - 100));
    assert_null(arena_copy(&a, "", SIZE_MAX));
    assert_string_equal(arena_copy(&a, NULL, 0), "");
    arena_free(&a);
    assert_null(a.top);
}

static void test_array(void **state) {
    (void) state;
    ARRAY(int) a = {0};
    for (int i = 0; i < 1000; i++) assert_true(array_push(&a, i * i));
    assert_int_equal(a.n, 1000);
    assert_int_equal(a.items[999], 998001);
    assert_false(array_reserve(&a, SIZE_MAX));
    assert_false(array_reserve(&a, SIZE_MAX / 2));
    assert_int_equal(a.items[0], 0);  // as it was
    array_free(&a);
    assert_null(a.items);
}

static void test_str(void **state) {
    (void) state;
    struct str s = {0};
    assert_string_equal(str_text(&s), "");
    str_puts(&s, "a");
    str_putc(&s, 'b');
    str_printf(&s, "%d-%s", 12, "xyz");
    str_add(&s, "q\0r", 3);
    assert_int_equal(s.n, 11);
    assert_string_equal(str_text(&s), "ab12-xyzq");
    assert_true(str_ok(&s));
    volatile size_t too_many = SIZE_MAX - 5;  // volatile: or the compiler sees it coming
    str_add(&s, "", too_many);
    assert_false(str_ok(&s));
    str_puts(&s, "more");  // a failure sticks
    assert_int_equal(s.n, 11);
    str_free(&s);
}

static void test_map(void **state) {
    (void) state;
    struct map m = {0};
    static char keys[5000][12];
    assert_null(map_get(&m, "x", 1));
    for (int i = 0; i < 5000; i++) {
        snprintf(keys[i], sizeof keys[i], "key%d", i);
        bool found = true;
        assert_non_null(map_add(&m, keys[i], strlen(keys[i]), i, &found));
        assert_false(found);
    }
    assert_int_equal(m.n, 5000);
    for (int i = 0; i < 5000; i++) assert_int_equal(*map_get(&m, keys[i], strlen(keys[i])), i);
    bool found = false;
    assert_int_equal(*map_add(&m, "key17", 5, 99, &found), 17);
    assert_true(found);
    assert_null(map_get(&m, "key5000", 7));
    assert_null(map_get(&m, "key1", 3));
    assert_non_null(map_add(&m, "", 0, -1, NULL));  // the empty string is a key like any other
    assert_int_equal(*map_get(&m, "", 0), -1);
    assert_non_null(map_add(&m, "a\0b", 3, 5, &found));
    assert_null(map_get(&m, "a\0c", 3));
    assert_false(map_reserve(&m, SIZE_MAX));
    map_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_array),
        cmocka_unit_test(test_str),
        cmocka_unit_test(test_map),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
