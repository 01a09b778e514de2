// What every unit test includes: cmocka with what it needs, a silent log, files in a folder that goes away.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "ggml.h"
#include "ggml/ext.h"

static void test_no_sink(enum ggml_log_level level, const char *text, void *userdata) {
    (void) level, (void) text, (void) userdata;
}

// Failures are what a test is about to cause: keep them out of its output.
static inline void quiet(void) { ggml_log_set(test_no_sink, NULL); }

// Asserts that the last error's sentence contains `part`, and clears it.
static inline void test_expect_error(const char *part, const char *file, int line) {
    if (!strstr(ggml_last_error(), part)) {
        print_error("error \"%s\" does not contain \"%s\"\n", ggml_last_error(), part);
        _fail(file, line);
    }
    ggml_clear_error();
}
#define assert_error(part) test_expect_error((part), __FILE__, __LINE__)

// Where every instruction is expensive (valgrind, sanitizers), LAMINA_TEST_SMALL=1 asks for fewer sizes, shorter texts and no times, never for
// other checks.
static inline bool test_small(void) {
    const char *env = getenv("LAMINA_TEST_SMALL");
    return env && *env;
}

// The folder with the project's shared material, or NULL (the test prints that it skips).
static inline const char *test_shared(void) {
    static char path[512];
    const char *env = getenv("LAMINA_SHARED");
    snprintf(path, sizeof path, "%s", env && *env ? env : "../shared");
    if (access(path, R_OK) == 0) return path;
    print_message("skipped: %s is not there\n", path);
    return NULL;
}

// Writes a file <dir>/<name>, making folders on the way.
static inline void test_write(const char *dir, const char *name, const void *data, size_t n) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        mkdir(path, 0700);
        *p = '/';
    }
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
}

static inline void test_write_text(const char *dir, const char *name, const char *text) {
    test_write(dir, name, text, strlen(text));
}

static inline char *test_dir_make(char *path, size_t size) {
    snprintf(path, size, "%s/lamina-test-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(path));
    return path;
}

static inline void test_dir_remove(const char *path) {
    char command[600];
    snprintf(command, sizeof command, "rm -rf -- '%s'", path);
    assert_int_equal(system(command), 0);
}
