// Reading GGUF: right files by every way in, and damaged ones of every kind.
#include "support/gguf_bytes.h"
#include "test.h"
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>

static const struct gguf_init_params meta_only = {.no_alloc = true};

static struct gguf_context *read_file(const struct bytes *b) {
    char path[] = "/tmp/lamina_gguf_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, b->p, b->n), (ssize_t) b->n);
    close(fd);
    struct gguf_context *g = gguf_init_from_file(path, meta_only);
    unlink(path);
    return g;
}

// Refused by name, by FILE and, unless only the data is missing, from memory; frees b.
static void refused(struct bytes b, const char *why) {
    ggml_clear_error();
    assert_null(read_file(&b));
    assert_error(why);
    FILE *f = tmpfile();
    assert_int_equal(fwrite(b.p, 1, b.n, f), b.n);
    rewind(f);
    assert_null(gguf_init_from_file_ptr(f, meta_only));
    assert_error(why);
    fclose(f);
    struct ggml_context *ctx = NULL;
    assert_null(gguf_init_from_buffer(b.p, b.n, (struct gguf_init_params){.ctx = &ctx}));
    assert_error(why);
    assert_null(ctx);
    free(b.p);
}

static struct gguf_context *accepted(struct bytes b) {
    struct gguf_context *g = read_file(&b);
    if (!g) print_error("%s\n", ggml_last_error());
    assert_non_null(g);
    free(b.p);
    return g;
}

static void test_alignment_values(void **state) {
    (void) state;
    static const uint32_t bad[] = {0, 3, 33, 48, 0xffffffff};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct bytes b = gguf_header(0, 1);
        put_kv_u32(&b, "general.alignment", bad[i]);
        refused(b, "power of two");
    }
    struct bytes b = gguf_header(0, 1);
    put_kv_u32(&b, "general.alignment", 1);
    struct gguf_context *g = accepted(b);
    assert_int_equal(gguf_get_alignment(g), 1);
    gguf_free(g);
    b = gguf_header(0, 1);
    put_key(&b, "general.alignment", GGUF_TYPE_INT32);
    put_u32(&b, (uint32_t) -32);
    refused(b, "must be u32");
    b = gguf_header(0, 1);
    put_kv_str(&b, "general.alignment", "32");
    refused(b, "must be u32");
    b = gguf_header(0, 1);
    put_array(&b, "general.alignment", GGUF_TYPE_UINT32, 1);
    put_u32(&b, 32);
    refused(b, "must be u32");
    g = accepted(gguf_header(0, 0));
    assert_int_equal(gguf_get_alignment(g), 32);
    gguf_free(g);
}

static void test_huge_alignment(void **state) {
    (void) state;
    static const uint32_t big[] = {0x80000000u, 1u << 20, 1u << 30};
    for (int i = 0; i < 3; i++) {
        struct bytes b = gguf_header(1, 1);
        put_kv_u32(&b, "general.alignment", big[i]);
        put_tensor(&b, "t", 1, (uint64_t[]){1}, GGML_TYPE_F32, 0);
        put_pad(&b, 32);
        put_zeros(&b, 4);
        refused(b, "tensor 't'");
    }
}

static void test_zero_dimensions(void **state) {
    (void) state;
    static const uint64_t dims[][4] = {{4, 0, 1, 1}, {0, 4, 1, 1}, {0, 0, 0, 0}, {1, 1, 1, 0}};
    for (int i = 0; i < 4; i++) {
        struct bytes b = gguf_header(1, 0);
        put_tensor(&b, "t", 4, dims[i], GGML_TYPE_F32, 0);
        struct gguf_context *g = accepted(b);
        assert_int_equal(gguf_get_tensor_size(g, 0), 0);
        gguf_free(g);
    }
    struct bytes b = gguf_header(1, 0);
    put_tensor(&b, "t", 1, (uint64_t[]){(uint64_t) -4}, GGML_TYPE_F32, 0);
    refused(b, "tensor 't' has dimension 0 of -4");
    b = gguf_header(1, 0);
    put_tensor(&b, "t", 5, (uint64_t[]){1, 1, 1, 1, 1}, GGML_TYPE_F32, 0);
    refused(b, "5 dimensions");
}

// Found by fuzzing: an empty tensor far behind the end, in a file whose data is asked for.
static void test_empty_tensor_far_away(void **state) {
    (void) state;
    struct bytes b = gguf_header(1, 0);
    put_tensor(&b, "t", 1, (uint64_t[]){0}, GGML_TYPE_F32, (uint64_t) 0x3f << 56);
    struct ggml_context *ctx = NULL;
    struct gguf_context *g = gguf_init_from_buffer(b.p, b.n, (struct gguf_init_params){.ctx = &ctx});
    assert_non_null(g);
    assert_non_null(ggml_get_tensor(ctx, "t"));
    assert_true(ggml_get_mem_size(ctx) < 1 << 20);
    gguf_free(g);
    ggml_free(ctx);
    free(b.p);
}

static void test_long_names(void **state) {
    (void) state;
    char name[80];
    for (size_t n = 62; n <= 65; n++) {
        memset(name, 'a', n);
        name[n] = 0;
        struct bytes b = gguf_header(1, 0);
        put_tensor(&b, name, 1, (uint64_t[]){0}, GGML_TYPE_F32, 0);
        if (n > 63) {
            refused(b, "characters; at most 63");
            continue;
        }
        struct gguf_context *g = accepted(b);
        assert_int_equal(gguf_find_tensor(g, name), 0);
        assert_string_equal(gguf_get_tensor_name(g, 0), name);
        gguf_free(g);
    }
    struct bytes b = gguf_header(1, 0);
    put_str_n(&b, "a\0b", 3);
    put_u32(&b, 0);
    put_u32(&b, 0);
    put_u64(&b, 0);
    refused(b, "zero byte");
}

static void test_duplicates(void **state) {
    (void) state;
    struct bytes b = gguf_header(0, 2);
    put_kv_str(&b, "general.architecture", "llama");
    put_kv_str(&b, "general.architecture", "gpt2");
    refused(b, "key 'general.architecture' occurs twice");
    b = gguf_header(2, 0);
    for (int i = 0; i < 2; i++) put_tensor(&b, "blk.0.attn_q.weight", 1, (uint64_t[]){0}, GGML_TYPE_F32, 0);
    refused(b, "tensor 'blk.0.attn_q.weight' occurs twice");
}

static void test_many_tensors_in_linear_time(void **state) {
    (void) state;
    struct bytes b = gguf_header(100000, 0);
    char name[32];
    for (int i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "tensor.%d", i);
        put_tensor(&b, name, 1, (uint64_t[]){0}, GGML_TYPE_F32, 0);
    }
    clock_t start = clock();
    struct gguf_context *g = accepted(b);
    assert_true((double) (clock() - start) / CLOCKS_PER_SEC < 2.0);  // a quadratic search would take minutes
    assert_int_equal(gguf_find_tensor(g, "tensor.99999"), 99999);
    gguf_free(g);
}

static void test_retired_types(void **state) {
    (void) state;
    static const uint32_t types[] = {4, 5, 31, 32, 33, 36, 37, 38, 43, 255, 0xffffffff};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct bytes b = gguf_header(1, 0);
        char number[32];
        put_tensor(&b, "t", 1, (uint64_t[]){32}, types[i], 0);
        snprintf(number, sizeof number, "type %u,", types[i]);
        refused(b, number);
    }
    struct bytes b = gguf_header(0, 1);
    put_key(&b, "k", 13);
    refused(b, "unknown value type 13");
}

static void test_big_endian(void **state) {
    (void) state;
    static const uint8_t file[] = {'G', 'G', 'U', 'F', 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1};
    struct bytes b = {0};
    put_raw(&b, file, sizeof file);
    refused(b, "big-endian byte order");
}

static void test_versions_and_magic(void **state) {
    (void) state;
    static const uint32_t bad[] = {0, 1, 4, 99};
    for (int i = 0; i < 4; i++) {
        struct bytes b = gguf_header(0, 0);
        memcpy(b.p + 4, &bad[i], 4);
        refused(b, "versions 2 to 3");
    }
    struct bytes b = gguf_header(0, 0);
    b.p[0] = 'X';
    refused(b, "is not a GGUF file");
    b = gguf_header(0, 0);
    b.n = 0;
    refused(b, "empty");
    b = gguf_header(0, 0);
    memcpy(b.p + 4, &(uint32_t){2}, 4);
    struct gguf_context *g = accepted(b);
    assert_int_equal(gguf_get_version(g), 2);
    gguf_free(g);
}

static void test_sizes_that_wrap(void **state) {
    (void) state;
    struct bytes b = gguf_header(1, 0);
    put_tensor(&b, "wraps", 1, (uint64_t[]){((uint64_t) 1 << 62) + 1}, GGML_TYPE_F32, 0);
    refused(b, "tensor 'wraps'");
    b = gguf_header(1, 0);
    put_tensor(&b, "many", 3, (uint64_t[]){(uint64_t) 1 << 31, (uint64_t) 1 << 31, 2}, GGML_TYPE_F32, 0);
    refused(b, "tensor 'many'");
    b = gguf_header(1, 0);
    put_tensor(&b, "large", 2, (uint64_t[]){1152, ((uint64_t) 1 << 42) + 1}, GGML_TYPE_Q8_0, 0);
    put_pad(&b, 32);
    refused(b, "tensor 'large'");
    b = gguf_header(1, 0);
    put_tensor(&b, "part", 1, (uint64_t[]){31}, GGML_TYPE_Q8_0, 0);
    refused(b, "blocks of 32");
}

static void test_empty_key(void **state) {
    (void) state;
    struct bytes b = gguf_header(0, 1);
    put_str(&b, "");
    put_u32(&b, 0);
    put_raw(&b, "\x07", 1);
    assert_int_equal(b.n, 37);
    refused(b, "has no name");
}

static void test_claims_are_not_believed(void **state) {
    (void) state;
    refused(gguf_header((uint64_t) 1 << 56, 0), "tensors");
    refused(gguf_header(0, (uint64_t) 1 << 56), "keys");
    struct bytes b = gguf_header(0, 1);
    put_u64(&b, (uint64_t) 1 << 60);
    put_zeros(&b, 64);
    refused(b, "ends inside the name of key number 0");
    b = gguf_header(0, 1);
    put_array(&b, "list", GGUF_TYPE_FLOAT32, ((uint64_t) 1 << 62) + 1);
    put_zeros(&b, 64);
    refused(b, "list");
    b = gguf_header(0, 1);
    put_array(&b, "names", GGUF_TYPE_STRING, (uint64_t) 1 << 61);
    put_zeros(&b, 64);
    refused(b, "names");
    b = gguf_header(0, 1);
    put_array(&b, "lists", GGUF_TYPE_ARRAY, 1);
    put_zeros(&b, 64);
    refused(b, "key 'lists' is an array of type 9");
}

static void test_every_cut_is_refused(void **state) {
    (void) state;
    struct bytes b = gguf_header(1, 3);
    put_kv_str(&b, "a", "text");
    put_array(&b, "names", GGUF_TYPE_STRING, 2);
    put_str(&b, "x");
    put_str(&b, "yy");
    put_array(&b, "numbers", GGUF_TYPE_INT16, 2);
    put_u32(&b, 7);
    put_tensor(&b, "t", 2, (uint64_t[]){2, 2}, GGML_TYPE_F32, 0);
    put_pad(&b, 32);
    put_zeros(&b, 16);
    for (size_t n = 0; n < b.n; n++) {
        struct bytes cut = {b.p, n, n};
        assert_null(read_file(&cut));
        struct ggml_context *ctx = NULL;
        assert_null(gguf_init_from_buffer(b.p, n, (struct gguf_init_params){.ctx = &ctx}));
        ggml_clear_error();
    }
    gguf_free(accepted(b));
}

static void test_misplaced_data(void **state) {
    (void) state;
    struct bytes b = gguf_header(1, 0);
    put_tensor(&b, "t", 1, (uint64_t[]){1}, GGML_TYPE_F32, 4);
    put_pad(&b, 32);
    put_zeros(&b, 64);
    refused(b, "no multiple of the alignment");
    b = gguf_header(1, 0);
    put_tensor(&b, "t", 1, (uint64_t[]){1}, GGML_TYPE_F32, (uint64_t) 1 << 63);
    put_pad(&b, 32);
    refused(b, "tensor 't'");
}

// No byte is two tensors', in whatever order the file lists them; empty tensors may lie anywhere.
static void test_overlap(void **state) {
    (void) state;
    static const struct {
        uint64_t n[3], at[3];
        bool overlap;
    } cases[] = {
        {{16, 16, 16}, {0, 64, 128}, false}, {{16, 16, 16}, {128, 0, 64}, false}, {{16, 16, 16}, {0, 0, 64}, true},
        {{16, 16, 16}, {64, 0, 32}, true},   {{40, 8, 8}, {0, 32, 160}, true},    {{16, 0, 16}, {0, 0, 64}, false},
        {{16, 0, 16}, {64, 96, 0}, false},   {{48, 8, 8}, {0, 192, 64}, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes b = gguf_header(3, 0);
        for (int k = 0; k < 3; k++)
            put_tensor(&b, (const char *[]){"a", "b", "c"}[k], 1, (uint64_t[]){cases[i].n[k]}, GGML_TYPE_F32,
                       cases[i].at[k]);
        put_pad(&b, 32);
        put_zeros(&b, 256);
        if (cases[i].overlap)
            refused(b, "overlap");
        else
            gguf_free(accepted(b));
    }
}

static void test_values(void **state) {
    (void) state;
    struct bytes b = gguf_header(0, 6);
    put_key(&b, "f", GGUF_TYPE_FLOAT64);
    double d = 0.125;
    put_raw(&b, &d, 8);
    put_str(&b, "s");
    put_u32(&b, GGUF_TYPE_STRING);
    put_str_n(&b, "a\0b", 3);
    put_kv_bool(&b, "yes", true);
    put_array(&b, "names", GGUF_TYPE_STRING, 3);
    put_str(&b, "one");
    put_str(&b, "");
    put_str_n(&b, "\r\x1b\0\xff", 4);
    put_array(&b, "none", GGUF_TYPE_STRING, 0);
    put_array(&b, "flags", GGUF_TYPE_BOOL, 3);
    put_raw(&b, "\0\1\xff", 3);
    struct gguf_context *g = accepted(b);
    size_t len;
    assert_true(gguf_get_val_f64(g, 0) == 0.125);
    assert_string_equal(gguf_get_val_str(g, 1), "a");
    assert_memory_equal(gguf_get_val_str_n(g, 1, &len), "a\0b", 4);
    assert_int_equal(len, 3);
    assert_true(gguf_get_val_bool(g, 2));
    assert_int_equal(gguf_get_arr_n(g, 3), 3);
    assert_string_equal(gguf_get_arr_str(g, 3, 0), "one");
    assert_string_equal(gguf_get_arr_str(g, 3, 1), "");
    assert_memory_equal(gguf_get_arr_str_view(g, 3, 2, &len), "\r\x1b\0\xff", 4);
    assert_int_equal(len, 4);
    assert_int_equal(gguf_get_arr_n(g, 4), 0);
    assert_memory_equal(gguf_get_arr_data(g, 5), "\0\1\1", 3);
    // asked wrongly
    ggml_clear_error();
    assert_int_equal(gguf_get_val_u32(g, 0), 0);
    assert_error("key 'f' has type f64, not u32");
    assert_null(gguf_get_val_str(g, 99));
    assert_error("key 99");
    assert_null(gguf_get_arr_data(g, 3));
    assert_error("array of str");
    assert_null(gguf_get_arr_str(g, 3, 3));
    assert_error("string 3");
    assert_null(gguf_get_key(g, -1));
    ggml_clear_error();
    assert_null(gguf_get_tensor_name(g, 0));
    assert_error("tensor 0");
    gguf_free(g);
}

struct served {
    const struct bytes *b;
    size_t most;
};

static size_t serve(void *userdata, void *out, uint64_t offset, size_t len) {
    struct served *s = userdata;
    assert_true(len <= s->most);
    if (offset >= s->b->n) return 0;
    if (len > s->b->n - offset) len = s->b->n - (size_t) offset;
    memcpy(out, s->b->p + offset, len);
    return len;
}

static void test_every_way_in(void **state) {
    (void) state;
    struct bytes b = gguf_header(2, 2);
    put_kv_str(&b, "general.name", "x");
    put_array(&b, "names", GGUF_TYPE_STRING, 2);
    put_str(&b, "first");
    put_str(&b, "second");
    put_tensor(&b, "a", 1, (uint64_t[]){3}, GGML_TYPE_F32, 0);
    put_tensor(&b, "b", 1, (uint64_t[]){2}, GGML_TYPE_I32, 32);
    put_pad(&b, 32);
    size_t data = b.n;
    put_raw(&b, (float[]){1, 2, 3}, 12);
    put_pad(&b, 32);
    put_raw(&b, (int32_t[]){-4, 5}, 8);  // the last tensor's padding is missing, which is no harm
    for (int way = 0; way < 5; way++) {
        struct ggml_context *ctx = NULL;
        struct gguf_init_params p = {.ctx = &ctx};
        struct gguf_context *g = NULL;
        struct served s = {&b, 7};
        FILE *f = NULL;
        int pipes[2];
        switch (way) {
            case 0: g = gguf_init_from_buffer(b.p, b.n, p); break;
            case 1: g = gguf_init_from_callback(serve, &s, 7, b.n, p); break;
            case 2:
                s.most = SIZE_MAX;
                g = gguf_init_from_callback(serve, &s, 0, 0, p);
                break;
            case 3:
                f = tmpfile();
                fwrite(b.p, 1, b.n, f);
                rewind(f);
                g = gguf_init_from_file_ptr(f, p);
                break;
            default:
                assert_int_equal(pipe(pipes), 0);
                assert_int_equal(write(pipes[1], b.p, b.n), (ssize_t) b.n);
                close(pipes[1]);
                f = fdopen(pipes[0], "rb");
                g = gguf_init_from_file_ptr(f, p);
        }
        if (!g) print_error("way %d: %s\n", way, ggml_last_error());
        assert_non_null(g);
        assert_int_equal(gguf_get_data_offset(g), data);
        assert_string_equal(gguf_get_arr_str(g, 1, 1), "second");
        assert_memory_equal(ggml_get_tensor(ctx, "a")->data, ((float[]){1, 2, 3}), 12);
        assert_memory_equal(ggml_get_tensor(ctx, "b")->data, ((int32_t[]){-4, 5}), 8);
        gguf_free(g);
        ggml_free(ctx);
        if (f) fclose(f);
    }
    free(b.p);
}

static void test_file_position(void **state) {
    (void) state;
    struct bytes b = gguf_header(1, 0);
    put_tensor(&b, "a", 1, (uint64_t[]){1}, GGML_TYPE_F32, 0);
    put_pad(&b, 32);
    put_raw(&b, (float[]){42}, 4);
    FILE *f = tmpfile();
    fwrite(b.p, 1, b.n, f);
    rewind(f);
    struct gguf_context *g = gguf_init_from_file_ptr(f, meta_only);
    assert_non_null(g);
    assert_int_equal(ftell(f), gguf_get_data_offset(g));
    gguf_free(g);
    fclose(f);
    free(b.p);
}

static void test_no_files(void **state) {
    (void) state;
    ggml_clear_error();
    assert_null(gguf_init_from_file("/nowhere/x.gguf", meta_only));
    assert_error("cannot open '/nowhere/x.gguf'");
    assert_null(gguf_init_from_file("/tmp", meta_only));
    assert_error("is a directory");
    assert_null(gguf_init_from_file("/dev/zero", meta_only));
    assert_error("not a file");
    char fifo[] = "/tmp/lamina_fifo_XXXXXX";
    assert_int_equal(close(mkstemp(fifo)), 0);
    unlink(fifo);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    alarm(20);  // must not wait for a writer
    assert_null(gguf_init_from_file(fifo, meta_only));
    alarm(0);
    assert_error("a pipe");
    unlink(fifo);
    assert_null(gguf_init_from_file(NULL, meta_only));
    assert_null(gguf_init_from_buffer(NULL, 0, meta_only));
    assert_null(gguf_init_from_file_ptr(NULL, meta_only));
    assert_null(gguf_init_from_callback(NULL, NULL, 0, 0, meta_only));
    ggml_clear_error();
}

static void test_mapping(void **state) {
    (void) state;
    struct bytes b = gguf_header(1, 0);
    put_tensor(&b, "a", 1, (uint64_t[]){1}, GGML_TYPE_F32, 0);
    put_pad(&b, 32);
    put_raw(&b, (float[]){42}, 4);
    size_t size = b.n, mapped;
    struct gguf_context *g = accepted(b);
    const char *p = gguf_get_mapping(g, &mapped);
    assert_non_null(p);
    assert_int_equal(mapped, size);
    assert_memory_equal(p + gguf_get_data_offset(g), (float[]){42}, 4);
    gguf_free(g);
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alignment_values),
        cmocka_unit_test(test_huge_alignment),
        cmocka_unit_test(test_zero_dimensions),
        cmocka_unit_test(test_empty_tensor_far_away),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_many_tensors_in_linear_time),
        cmocka_unit_test(test_retired_types),
        cmocka_unit_test(test_big_endian),
        cmocka_unit_test(test_versions_and_magic),
        cmocka_unit_test(test_sizes_that_wrap),
        cmocka_unit_test(test_empty_key),
        cmocka_unit_test(test_claims_are_not_believed),
        cmocka_unit_test(test_every_cut_is_refused),
        cmocka_unit_test(test_misplaced_data),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_every_way_in),
        cmocka_unit_test(test_file_position),
        cmocka_unit_test(test_no_files),
        cmocka_unit_test(test_mapping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
