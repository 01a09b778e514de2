// The log sink. Every word that the libraries say goes through here: to the program's callback if it has set one,
// else to stderr from WARN upwards. Lines are formatted on the stack; only an unusually long one is allocated.
#include "base/log.h"
#include "base/global.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void default_sink(enum ggml_log_level level, const char *text, void *userdata) {
    static _Thread_local bool shown;  // whether the line that a CONT continues was shown
    (void) userdata;
    if (level != GGML_LOG_LEVEL_CONT) shown = level >= GGML_LOG_LEVEL_WARN || level == GGML_LOG_LEVEL_NONE;
    if (shown) {
        fputs(text, stderr);
        fflush(stderr);
    }
}

void ggml_log_set(ggml_log_callback log_callback, void *user_data) {
    atomic_store(&global.log_userdata, user_data);
    atomic_store(&global.log_callback, log_callback);
}

void ggml_log_get(ggml_log_callback *log_callback, void **user_data) {
    ggml_log_callback set = atomic_load(&global.log_callback);
    if (log_callback) *log_callback = set ? set : default_sink;
    if (user_data) *user_data = atomic_load(&global.log_userdata);
}

void ggml_log_write(enum ggml_log_level level, const char *fmt, ...) {
    ggml_log_callback sink = atomic_load(&global.log_callback);
    void *userdata = atomic_load(&global.log_userdata);
    if (!sink) sink = default_sink;

    char line[512];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (n < (int) sizeof line) {
        sink(level, line, userdata);
        return;
    }
    char *whole = malloc((size_t) n + 1);
    if (!whole) {  // better a line cut short than none
        sink(level, line, userdata);
        return;
    }
    va_start(args, fmt);
    vsnprintf(whole, (size_t) n + 1, fmt, args);
    va_end(args);
    sink(level, whole, userdata);
    free(whole);
}
