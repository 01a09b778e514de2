// Errors: the record, its thread, the log line, the abort mode.
#include "test.h"
#include "base/err.h"
#include "base/log.h"
#include "ggml/util.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static char logged[256];
static enum ggml_log_level logged_level;

static void sink(enum ggml_log_level level, const char *text, void *userdata) {
    snprintf(logged, sizeof logged, "%s", text);
    logged_level = level;
    ++*(int *) userdata;
}

static void test_record(void **state) {
    (void) state;
    int n = 0;
    ggml_log_set(sink, &n);
    ggml_clear_error();
    assert_string_equal(ggml_last_error(), "");
    assert_int_equal(err_set(ERR_NOMEM, "%d bytes are too many", 7), ERR_NOMEM);
    assert_string_equal(ggml_last_error(), "7 bytes are too many");
    assert_string_equal(logged, "7 bytes are too many\n");
    assert_int_equal(logged_level, GGML_LOG_LEVEL_ERROR);
    assert_int_equal(n, 1);
    assert_int_equal(err_set(ERR_IO, "again: %s", ggml_last_error()), ERR_IO);  // the arguments may be the record itself
    assert_string_equal(ggml_last_error(), "again: 7 bytes are too many");
    ggml_clear_error();
    assert_string_equal(ggml_last_error(), "");
    ggml_log_set(NULL, NULL);
}

static void *other_thread(void *arg) {
    *(bool *) arg = ggml_last_error()[0] == '\0';
    (void) err_set(ERR_IO, "of the other thread");
    return NULL;
}

static void test_threads(void **state) {
    (void) state;
    quiet();
    (void) err_set(ERR_INVALID, "mine");
    bool clean = false;
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, other_thread, &clean), 0);
    pthread_join(t, NULL);
    assert_true(clean);
    assert_string_equal(ggml_last_error(), "mine");
}

static void test_long_text(void **state) {
    (void) state;
    char big[4000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    quiet();
    (void) err_set(ERR_INVALID, "%s", big);
    assert_true(strlen(ggml_last_error()) > 400 && strlen(ggml_last_error()) < 600);
}

static void test_log_long_line(void **state) {
    (void) state;
    int n = 0;
    char big[2000];
    memset(big, 'y', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    ggml_log_set(sink, &n);
    log_info("%s\n", big);
    assert_int_equal(n, 1);
    assert_int_equal(strlen(logged), sizeof logged - 1);  // the whole line came in one call
    ggml_log_callback callback;
    void *userdata;
    ggml_log_get(&callback, &userdata);
    assert_true(callback == sink && userdata == &n);
    ggml_log_set(NULL, NULL);
    ggml_log_get(&callback, &userdata);
    assert_non_null(callback);
}

// Runs f in a child; returns its wait status.
static int in_child(void (*f)(void)) {
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        f();
        _exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    return status;
}

static void abort_mode(void) {
    quiet();
    ggml_set_error_mode(GGML_ERROR_ABORT);
    (void) err_set(ERR_INVALID, "stop here");
}

static void on_abort(const char *text) { _exit(strstr(text, "boom 3") ? 42 : 1); }

static void abort_callback(void) {
    ggml_set_abort_callback(on_abort);
    GGML_ABORT("boom %d", 3);
}

static void assert_that_holds(void) { GGML_ASSERT(1 + 1 == 2); }

static void record_mode(void) {
    quiet();
    ggml_set_error_mode(GGML_ERROR_RECORD);
    (void) err_set(ERR_INVALID, "carry on");
}

static void test_modes(void **state) {
    (void) state;
    assert_true(WIFSIGNALED(in_child(abort_mode)));
    assert_int_equal(WEXITSTATUS(in_child(abort_callback)), 42);
    assert_int_equal(in_child(assert_that_holds), 0);
    assert_int_equal(in_child(record_mode), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record),        cmocka_unit_test(test_threads), cmocka_unit_test(test_long_text),
        cmocka_unit_test(test_log_long_line), cmocka_unit_test(test_modes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
