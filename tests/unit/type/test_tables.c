// Against the shared tables: decoding is exact at every ISA level, and no quantizer is worse than the reference's.
#include "type_test.h"

enum { N = 4096, ROW = 1024 };

struct row {
    char name[32];
    int id, block, bytes;
    double error;
};

static int next_row(char **text, struct row *r) {
    while (**text) {
        char *line = *text, *end = strchr(line, '\n');
        *text = end ? end + 1 : line + strlen(line);
        if (sscanf(line, "%31s %d %d %d %lf", r->name, &r->id, &r->block, &r->bytes, &r->error) == 5) return 1;
    }
    return 0;
}

static void *table(const struct row *r, const char *kind, size_t *bytes) {
    char file[64];
    snprintf(file, sizeof(file), "%s.%s", r->name, kind);
    return shared_read(file, bytes);
}

static void decoding_is_exact(void **state) {
    (void) state;
    size_t bytes;
    char *index = shared_read("index.tsv", &bytes), *text = index;
    struct row r;
    int n = 0;
    while (index && next_row(&text, &r)) {
        const struct type *t = type_get((enum ggml_type) r.id);
        assert_non_null(t);
        assert_string_equal(t->name, r.name);
        assert_int_equal(t->block, r.block);
        assert_int_equal(t->size, r.bytes);
        void *blocks = table(&r, "blocks", &bytes);
        assert_int_equal(bytes, (size_t) N / (size_t) t->block * t->size);
        float *want = table(&r, "f32", &bytes), *got = malloc(N * sizeof(float));
        for (int level = 0; level < ISA_COUNT; level++) {
            if (!isa_available((enum isa) level)) continue;
            type_get_at(t->id, (enum isa) level)->decode(blocks, got, N);
            for (int i = 0; i < N; i++)  // -0 equals 0
                if (got[i] != want[i])
                    fail_msg("%s at %s: element %d is %.9g, not %.9g", t->name, isa_name((enum isa) level), i,
                             (double) got[i], (double) want[i]);
        }
        assert_true(t->check(blocks, (size_t) N / (size_t) t->block * t->size));
        free(blocks);
        free(want);
        free(got);
        n++;
    }
    if (index) assert_true(n >= 25);
    free(index);
}

static void errors_are_not_above_the_reference(void **state) {
    (void) state;
    size_t bytes;
    char *index = shared_read("index.tsv", &bytes), *text = index;
    if (!index) return;
    float *x = shared_read("source.f32", &bytes), *y = malloc(N * sizeof(float)), importance[ROW];
    void *blocks = malloc(N * sizeof(float));
    for (int i = 0; i < ROW; i++) importance[i] = 1.0f;
    struct row r;
    while (next_row(&text, &r)) {
        const struct type *t = type_get((enum ggml_type) r.id);
        assert_true(t->quantize(x, blocks, N / ROW, ROW, importance) == (size_t) N / (size_t) t->block * t->size);
        t->decode(blocks, y, N);
        const double error = nmse(x, y, N);
        if (error > r.error * (1 + 1e-6)) fail_msg("%s: error %.6e, the reference has %.6e", t->name, error, r.error);
    }
    free(index);
    free(x);
    free(y);
    free(blocks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding_is_exact),
        cmocka_unit_test(errors_are_not_above_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
