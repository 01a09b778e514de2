// Editing and writing GGUF.
#include "ggml-backend.h"
#include "support/gguf_bytes.h"
#include "test.h"
#include <time.h>

static const struct gguf_init_params meta_only = {.no_alloc = true};

static char *temp(void) {
    static char path[64];
    strcpy(path, "/tmp/lamina_gguf_XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    return path;
}

static void test_keys_move_to_the_back(void **state) {
    (void) state;
    struct gguf_context *g = gguf_init_empty();
    gguf_set_val_u32(g, "a", 1);
    gguf_set_val_str(g, "b", "x");
    gguf_set_val_f32(g, "c", 0.5f);
    gguf_set_val_str(g, "a", "now a string");
    assert_int_equal(gguf_get_n_kv(g), 3);
    assert_int_equal(gguf_find_key(g, "a"), 2);
    assert_string_equal(gguf_get_val_str(g, 2), "now a string");
    assert_int_equal(gguf_remove_key(g, "b"), 0);
    assert_int_equal(gguf_remove_key(g, "b"), -1);
    assert_int_equal(gguf_find_key(g, "a"), 1);
    struct gguf_context *h = gguf_init_empty();
    gguf_set_val_u8(h, "a", 3);
    gguf_set_val_u8(h, "own", 4);
    gguf_set_kv(h, g);
    assert_int_equal(gguf_get_n_kv(h), 3);
    assert_int_equal(gguf_get_kv_type(h, gguf_find_key(h, "a")), GGUF_TYPE_STRING);
    gguf_free(g);
    gguf_free(h);
}

static void test_bad_edits_change_nothing(void **state) {
    (void) state;
    struct gguf_context *g = gguf_init_empty();
    ggml_clear_error();
    gguf_set_val_u32(g, "", 1);
    assert_error("name is empty");
    gguf_set_val_u32(g, NULL, 1);
    assert_error("NULL");
    gguf_set_val_str(g, "s", NULL);
    assert_error("is NULL");
    gguf_set_val_u32(g, GGUF_KEY_GENERAL_ALIGNMENT, 48);
    assert_error("power of two");
    gguf_set_arr_data(g, "a", GGUF_TYPE_STRING, "x", 1);
    assert_error("can't hold an array");
    const char *strings[] = {"x", NULL};
    gguf_set_arr_str(g, "a", strings, 2);
    assert_error("string 1");
    gguf_set_tensor_type(g, "none", GGML_TYPE_F32);
    assert_error("no tensor 'none'");
    gguf_set_tensor_data(g, "none", strings);
    assert_error("no tensor 'none'");
    gguf_add_tensor(g, NULL);
    assert_error("can't be added");
    assert_int_equal(gguf_get_n_kv(g), 0);
    assert_int_equal(gguf_get_n_tensors(g), 0);
    assert_false(gguf_write_to_file(g, "/nowhere/x.gguf", false));
    assert_error("/nowhere/x.gguf");
    gguf_free(g);
    gguf_free(NULL);
}

// Reads, writes, compares all bytes.
static void test_round_trip(void **state) {
    (void) state;
    struct bytes b = gguf_header(2, 4);
    put_kv_u32(&b, "general.alignment", 64);
    put_str_n(&b, "key\0odd", 7);
    put_u32(&b, GGUF_TYPE_STRING);
    put_str_n(&b, "v\0", 2);
    put_array(&b, "names", GGUF_TYPE_STRING, 3);
    put_str_n(&b, "\0", 1);
    put_str(&b, "");
    put_str(&b, "\xff\r");
    put_array(&b, "n", GGUF_TYPE_UINT64, 1);
    put_u64(&b, 99);
    put_tensor(&b, "a", 3, (uint64_t[]){3, 1, 1}, GGML_TYPE_F32, 0);
    put_tensor(&b, "b", 0, NULL, GGML_TYPE_F32, 64);
    put_pad(&b, 64);
    size_t meta = b.n;
    put_raw(&b, (float[]){1, 2, 3}, 12);
    put_pad(&b, 64);
    put_raw(&b, (float[]){4}, 4);
    put_pad(&b, 64);
    char *path = temp();
    test_write("/tmp", path + 5, b.p, b.n);
    struct gguf_context *g = gguf_init_from_file(path, meta_only);
    assert_non_null(g);
    assert_int_equal(gguf_get_meta_size(g), meta);
    assert_true(gguf_write_to_file(g, path, false));  // over the very file that is mapped
    gguf_free(g);
    FILE *f = fopen(path, "rb");
    uint8_t *copy = malloc(b.n + 1);
    assert_int_equal(fread(copy, 1, b.n + 1, f), b.n);
    assert_memory_equal(copy, b.p, b.n);
    fclose(f);
    free(copy);
    free(b.p);
    unlink(path);
}

static struct ggml_context *tensors(void) { return ggml_init((struct ggml_init_params){.mem_size = 1 << 16}); }

static void test_alignment_is_honoured(void **state) {
    (void) state;
    struct ggml_context *ctx = tensors();
    struct ggml_tensor *t[2] = {ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 3), ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 2)};
    for (int late = 0; late < 2; late++) {  // the key before the tensors, or after them
        struct gguf_context *g = gguf_init_empty();
        if (!late) gguf_set_val_u32(g, GGUF_KEY_GENERAL_ALIGNMENT, 256);
        for (int i = 0; i < 2; i++) {
            ggml_format_name(t[i], "t%d", i);
            for (int k = 0; k < t[i]->ne[0]; k++) ((float *) t[i]->data)[k] = (float) (10 * i + k);
            gguf_add_tensor(g, t[i]);
        }
        if (late) {
            struct gguf_context *h = gguf_init_empty();
            gguf_set_val_u32(h, GGUF_KEY_GENERAL_ALIGNMENT, 256);
            gguf_set_kv(g, h);
            gguf_free(h);
        }
        assert_int_equal(gguf_get_alignment(g), 256);
        assert_int_equal(gguf_get_tensor_offset(g, 1), 256);
        char *path = temp();
        assert_true(gguf_write_to_file(g, path, false));
        gguf_free(g);
        struct ggml_context *back = NULL;
        g = gguf_init_from_file(path, (struct gguf_init_params){.ctx = &back});
        assert_non_null(g);
        assert_int_equal(gguf_get_alignment(g), 256);
        assert_int_equal(gguf_get_data_offset(g) % 256, 0);
        assert_memory_equal(ggml_get_tensor(back, "t1")->data, ((float[]){10, 11}), 8);
        gguf_free(g);
        ggml_free(back);
        unlink(path);
    }
    struct gguf_context *g = gguf_init_empty();
    gguf_add_tensor(g, t[0]);
    ggml_clear_error();
    gguf_add_tensor(g, t[0]);
    assert_error("already");
    assert_int_equal(gguf_get_n_tensors(g), 1);
    gguf_set_tensor_type(g, "t0", GGML_TYPE_F16);
    assert_int_equal(gguf_get_tensor_size(g, 0), 6);
    gguf_set_tensor_type(g, "t0", GGML_TYPE_Q8_0);
    assert_error("blocks of 32");
    gguf_free(g);
    ggml_free(ctx);
}

static void test_only_meta_and_missing_data(void **state) {
    (void) state;
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){.mem_size = 1 << 14, .no_alloc = true});
    struct ggml_tensor *t = ggml_set_name(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 2), "t");
    struct gguf_context *g = gguf_init_empty();
    gguf_add_tensor(g, t);
    FILE *f = tmpfile();
    assert_true(gguf_write_to_file_ptr(g, f, true));
    assert_int_equal(ftell(f), gguf_get_meta_size(g));
    ggml_clear_error();
    assert_false(gguf_write_to_file_ptr(g, f, false));
    assert_error("tensor 't' has no data");
    rewind(f);
    float data[2] = {7, 8};
    gguf_set_tensor_data(g, "t", data);
    assert_true(gguf_write_to_file_ptr(g, f, false));
    rewind(f);
    struct ggml_context *back = NULL;
    struct gguf_context *h = gguf_init_from_file_ptr(f, (struct gguf_init_params){.ctx = &back});
    assert_non_null(h);
    assert_memory_equal(ggml_get_tensor(back, "t")->data, data, 8);
    gguf_free(g);
    gguf_free(h);
    ggml_free(back);
    ggml_free(ctx);
    fclose(f);
}

static void test_device_data(void **state) {
    (void) state;
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){.mem_size = 1 << 14, .no_alloc = true});
    struct ggml_tensor *t = ggml_set_name(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4), "t");
    ggml_backend_buffer_t buf = ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_cpu_buffer_type());
    assert_non_null(buf);
    float data[4] = {1, 2, 3, 4};
    ggml_backend_tensor_set(t, data, 0, sizeof data);
    struct gguf_context *g = gguf_init_empty();
    gguf_add_tensor(g, t);
    FILE *f = tmpfile();
    assert_true(gguf_write_to_file_ptr(g, f, false));
    rewind(f);
    struct ggml_context *back = NULL;
    struct gguf_context *h = gguf_init_from_file_ptr(f, (struct gguf_init_params){.ctx = &back});
    assert_memory_equal(ggml_get_tensor(back, "t")->data, data, sizeof data);
    gguf_free(g);
    gguf_free(h);
    ggml_free(back);
    ggml_backend_buffer_free(buf);
    ggml_free(ctx);
    fclose(f);
}

static void test_many_tensors_in_linear_time(void **state) {
    (void) state;
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){.mem_size = 1 << 14, .no_alloc = true});
    struct ggml_tensor *t = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1);
    struct gguf_context *g = gguf_init_empty();
    clock_t start = clock();
    for (int i = 0; i < 100000; i++) {
        ggml_format_name(t, "tensor.%d", i);
        gguf_add_tensor(g, t);
    }
    assert_true((double) (clock() - start) / CLOCKS_PER_SEC < 2.0);
    assert_int_equal(gguf_get_n_tensors(g), 100000);
    assert_int_equal(gguf_get_tensor_offset(g, 99999), 99999u * 32);
    gguf_free(g);
    ggml_free(ctx);
}

static void test_links_and_folders(void **state) {
    (void) state;
    struct gguf_context *g = gguf_init_empty();
    gguf_set_val_u32(g, "k", 1);
    char target[64], link[80];
    strcpy(target, temp());
    snprintf(link, sizeof link, "%s.link", target);
    assert_int_equal(symlink(target, link), 0);
    assert_true(gguf_write_to_file(g, link, false));
    struct stat st;
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));  // the target was replaced, not the link
    struct gguf_context *h = gguf_init_from_file(target, meta_only);
    assert_non_null(h);
    gguf_free(h);
    ggml_clear_error();
    assert_false(gguf_write_to_file(g, "/tmp", false));
    assert_error("/tmp");
    assert_true(gguf_write_to_file(g, "/dev/null", false));
    gguf_free(g);
    unlink(link);
    unlink(target);
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_move_to_the_back),
        cmocka_unit_test(test_bad_edits_change_nothing),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_alignment_is_honoured),
        cmocka_unit_test(test_only_meta_and_missing_data),
        cmocka_unit_test(test_device_data),
        cmocka_unit_test(test_many_tensors_in_linear_time),
        cmocka_unit_test(test_links_and_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
