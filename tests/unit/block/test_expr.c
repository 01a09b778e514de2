// Expressions of the architecture tables.
#include "test.h"

#include <math.h>

#include "block/hparams.h"

static struct hparams hp;

static double value(const char *e, int il) {
    double v = -12345;
    assert_int_equal(expr_eval(e, &hp, il, &v), ERR_OK);
    return v;
}

static void test_values(void **s) {
    (void) s;
    hp.n_embd = 768;
    hp.n_layer_dense_lead = 2;
    hp.n_expert = 8;
    hparams_set(&hp, HP_n_head, -1, 12);
    hparams_set(&hp, HP_n_head, 3, 6);
    hparams_set(&hp, HP_n_embd_head_k, -1, 64);
    assert_true(value("E", 0) == 768);
    assert_true(value("H*D", 0) == 768 && value("H*D", 3) == 384);
    assert_true(value("E/H", 0) == 64 && value("E/Nx", 0) == 0);
    assert_true(value("1+2*3-4/2", 0) == 5 && value("(1+2)*3", 0) == 9 && value("-2*3", 0) == -6);
    assert_true(value("i<lead", 1) == 1 && value("i<lead", 2) == 0 && value("i>=lead", 2) == 1);
    assert_true(value("X>0 && i%2==1", 3) == 1 && value("X==0 || i==3", 3) == 1 && value("!X", 0) == 0 &&
                value("X!=8", 0) == 0);
    assert_true(value("max(64,E/16)", 0) == 64 && value("min(E,10)", 0) == 10 && value("floor(7/2)", 0) == 3 &&
                value("sqrt(E*E)", 0) == 768);
    assert_true(value("1e-5", 0) == 1e-5 && value("1.4/sqrt(4)", 0) == 0.7);
}

static void test_bad(void **s) {
    (void) s;
    const char *bad[] = {
        "",       "E+",  "(E",   "E)",     "nosuch",
        "max(1)", "E E", "1..2", "foo(1)", "((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))"};
    double v;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_not_equal(expr_eval(bad[i], &hp, 0, &v), ERR_OK);
        assert_error("can't be read");
    }
}

static void test_parts(void **s) {
    (void) s;
    char p[32];
    assert_true(expr_part("E,max(1,2),V", 1, p, sizeof p));
    assert_string_equal(p, "max(1,2)");
    assert_true(expr_part("E,max(1,2),V", 2, p, sizeof p));
    assert_string_equal(p, "V");
    assert_false(expr_part("E,V", 2, p, sizeof p));
    assert_false(expr_part("", 0, p, sizeof p));
}

static void test_fields(void **s) {
    (void) s;
    hparams_set(&hp, HP_n_ff, -1, 1e30);
    assert_int_equal(hp.n_ff[5], INT32_MAX);
    hparams_set(&hp, HP_n_ff, 2, NAN);
    assert_int_equal(hp.n_ff[2], 0);
    hparams_set(&hp, HP_eps, 0, 1e-6);
    assert_true(hparams_get(&hp, HP_eps, 99) == (double) 1e-6f);
    assert_null(hparams_info(HP_COUNT));
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_bad),
                                       cmocka_unit_test(test_parts), cmocka_unit_test(test_fields)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
