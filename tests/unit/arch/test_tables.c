// Every architecture's tables: expressions that can be read, slots of one kind, names once.
#include "test.h"

#include "arch/arch.h"

static bool readable(const struct hparams *hp, const char *expr) {
    double v;
    return expr_eval(expr, hp, 0, &v) == ERR_OK;
}

static void check_row(const struct arch *a, const struct arch_tensor *r, const struct hparams *hp) {
    const struct slot_info *info = slot_info(r->slot);
    assert_non_null(info);
    assert_int_not_equal(r->slot, SLOT_LAYER_END);
    char part[96];
    int n = 0;
    for (; r->shape && n < 5 && expr_part(r->shape, n, part, sizeof part); n++)
        if (strcmp(part, "?") && !readable(hp, part))
            fail_msg("%s: the shape '%s' of %s can't be read", a->name, r->shape, info->field);
    if (n < 1 || n > 4) fail_msg("%s: the shape '%s' of %s has %d sides", a->name, r->shape ? r->shape : "", info->field, n);
    if (r->when && !readable(hp, r->when))
        fail_msg("%s: the condition '%s' of %s can't be read", a->name, r->when, info->field);
    const bool layer = r->slot < SLOT_LAYER_END;
    if (r->unless && (r->unless < SLOT_LAYER_END) != layer)
        fail_msg("%s: %s yields to a slot of another kind", a->name, info->field);
    if (!layer && r->flags & (T_ENC | T_DEC)) fail_msg("%s: %s belongs to no layer but has a side", a->name, info->field);
    if (r->flags & T_BIAS && r->flags & T_BIAS_OPT)
        fail_msg("%s: the bias of %s is required and optional", a->name, info->field);
}

static void test_all(void **s) {
    (void) s;
    struct hparams *hp = calloc(1, sizeof *hp);
    for (int f = 0; f < HP_COUNT; f++) hparams_set(hp, (enum hp_field) f, -1, 2);
    for (int i = 0; i < arch_count(); i++) {
        const struct arch *a = arch_at(i);
        assert_non_null(a->name);
        assert_ptr_equal(arch_by_name(a->name), a);  // names exist once
        if (!a->layer && !a->build) fail_msg("%s computes nothing", a->name);
        assert_non_null(a->tensors);
        int n = 0;
        for (const struct arch_tensor *r = a->tensors; r->slot != SLOT_NONE; r++, n++) check_row(a, r, hp);
        assert_true(n > 2);
        for (const struct arch_key *k = a->keys; k && k->key; k++) {
            if ((unsigned) k->field >= HP_COUNT) fail_msg("%s: key %s goes to no field", a->name, k->key);
            if (k->def && !readable(hp, k->def))
                fail_msg("%s: the default '%s' of key %s can't be read", a->name, k->def, k->key);
        }
        const char *widths[] = {a->cache_k, a->cache_v, a->cache_x, a->state_r, a->state_s};
        for (int k = 0; k < 5; k++)
            if (widths[k] && !readable(hp, widths[k])) fail_msg("%s: the width '%s' can't be read", a->name, widths[k]);
    }
    free(hp);
    assert_null(arch_at(-1));
    assert_null(arch_at(arch_count()));
    assert_null(arch_by_name("nonesuch"));
}

// Symbols of hyperparameters are distinct: an expression means one thing.
static void test_symbols(void **s) {
    (void) s;
    for (int a = 0; a < HP_COUNT; a++)
        for (int b = 0; b < a; b++)
            if (!strcmp(hparams_info((enum hp_field) a)->symbol, hparams_info((enum hp_field) b)->symbol))
                fail_msg("%s and %s have one symbol", hparams_info((enum hp_field) a)->name,
                         hparams_info((enum hp_field) b)->name);
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all), cmocka_unit_test(test_symbols)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
