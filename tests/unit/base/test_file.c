// Files of every kind: what opens, what is refused, what happens when a file shrinks.
#include "test.h"
#include "base/file.h"

#include <sys/stat.h>

static char dir[256], path[512];

static int begin(void **state) {
    (void) state;
    quiet();
    test_dir_make(dir, sizeof dir);
    test_write_text(dir, "ten", "0123456789");
    snprintf(path, sizeof path, "%s/ten", dir);
    return 0;
}

static int end(void **state) {
    (void) state;
    test_dir_remove(dir);
    return 0;
}

static void refuse(const char *name, const char *sentence) {
    struct file f;
    assert_int_not_equal(file_open(&f, name), ERR_OK);
    assert_error(sentence);
    file_close(&f);
}

static void test_refused(void **state) {
    (void) state;
    char name[600];
    refuse("/no/such/file", "cannot open");
    refuse(NULL, "no path");
    refuse(dir, "a folder");
    refuse("/dev/zero", "a device");
    refuse("/proc/self/maps", "empty");
    test_write_text(dir, "nothing", "");
    snprintf(name, sizeof name, "%s/nothing", dir);
    refuse(name, "is empty");
    snprintf(name, sizeof name, "%s/pipe", dir);
    assert_int_equal(mkfifo(name, 0600), 0);
    refuse(name, "a pipe");  // and does not hang
    snprintf(name, sizeof name, "%s/loop", dir);
    assert_int_equal(symlink(name, name), 0);
    refuse(name, "cannot open");
    if (geteuid() != 0) {
        snprintf(name, sizeof name, "%s/ten", dir);
        chmod(name, 0);
        refuse(name, "ermission");
    }
}

static void test_read(void **state) {
    (void) state;
    struct file f;
    char text[11] = {0};
    assert_int_equal(file_open(&f, path), ERR_OK);
    assert_int_equal(f.size, 10);
    assert_int_equal(file_read(&f, 0, text, 10), ERR_OK);
    assert_string_equal(text, "0123456789");
    assert_int_equal(file_read(&f, 7, text, 3), ERR_OK);
    assert_memory_equal(text, "789", 3);
    assert_int_equal(file_read(&f, 10, text, 0), ERR_OK);
    assert_int_equal(file_read(&f, 8, text, 3), ERR_FORMAT);
    assert_error("3 bytes at offset 8");
    assert_int_equal(file_read(&f, UINT64_MAX, text, 1), ERR_FORMAT);
    assert_int_equal(file_read(&f, 1, text, SIZE_MAX), ERR_FORMAT);
    file_close(&f);
    file_close(&f);
}

static void test_map(void **state) {
    (void) state;
    struct file f;
    struct file_map m;
    char *big = calloc(1, 20000);
    for (int i = 0; i < 20000; i++) big[i] = (char) (i % 251);
    test_write(dir, "big", big, 20000);
    snprintf(path, sizeof path, "%s/big", dir);
    assert_int_equal(file_open(&f, path), ERR_OK);
    assert_int_equal(file_map(&f, 5000, 10000, &m), ERR_OK);
    assert_memory_equal(m.data, big + 5000, 10000);
    file_unmap(&m);
    file_unmap(&m);
    assert_int_equal(file_map(&f, 15000, 6000, &m), ERR_FORMAT);
    assert_int_equal(file_map(&f, 0, UINT64_MAX, &m), ERR_FORMAT);
    assert_int_equal(file_map(&f, 100, 0, &m), ERR_INVALID);
    assert_null(m.data);
    file_close(&f);
    free(big);
}

static void test_shrinks(void **state) {
    (void) state;
    struct file f;
    struct file_map m;
    char text[10];
    assert_int_equal(file_open(&f, path), ERR_OK);
    assert_int_equal(truncate(path, 4), 0);
    assert_int_equal(file_read(&f, 0, text, 10), ERR_IO);
    assert_error("ends at offset 4");
    assert_int_equal(file_map(&f, 0, 10, &m), ERR_IO);
    assert_error("shorter");
    file_close(&f);
}

static void test_rename(void **state) {
    (void) state;
    char tmp[600];
    struct stat st;
    snprintf(tmp, sizeof tmp, "%s/whole", dir);
    test_write(dir, "whole", "new", 3);
    assert_int_equal(file_rename(tmp, path), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 3);
    // a folder or a device keeps its name, and what was written stays for the caller to remove
    test_write(dir, "whole", "new", 3);
    assert_int_equal(file_replaceable(path), 0);
    assert_int_equal(file_replaceable("/nonexistent/x"), 0);
    assert_int_equal(file_replaceable(dir), -1);
    assert_int_equal(errno, EISDIR);
    assert_int_equal(file_rename(tmp, dir), -1);
    assert_int_equal(errno, EISDIR);
    char pipe[600];
    snprintf(pipe, sizeof pipe, "%s/pipe", dir);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(file_rename(tmp, pipe), -1);
    assert_int_equal(errno, EEXIST);
    assert_int_equal(stat(pipe, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    unlink(pipe);
    unlink(tmp);
}

int main(void) {
#define WITH_FILES(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {WITH_FILES(test_refused), WITH_FILES(test_read), WITH_FILES(test_map),
                                       WITH_FILES(test_shrinks), WITH_FILES(test_rename)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
