// The record of the last failure: one per thread, a code and a sentence. See err.h and ggml/ext.h.
#include "base/err.h"
#include "base/env.h"
#include "base/global.h"
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char sentence[512];

const char *ggml_last_error(void) { return sentence; }

void ggml_clear_error(void) { sentence[0] = '\0'; }

void ggml_set_error_mode(enum ggml_error_mode mode) { atomic_store(&global.error_mode, (int) mode); }

static bool aborts(void) {
    int mode = atomic_load_explicit(&global.error_mode, memory_order_relaxed);
    if (mode < 0) {
        const char *want = env_get("GGML_ERROR");
        mode = want && strcmp(want, "abort") == 0 ? GGML_ERROR_ABORT : GGML_ERROR_RECORD;
        atomic_store(&global.error_mode, mode);
    }
    return mode == GGML_ERROR_ABORT;
}

int ggml_error_set(int code, const char *fmt, ...) {
    char text[sizeof sentence];  // the arguments may point into the record
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    memcpy(sentence, text, sizeof text);
    log_error("%s\n", sentence);
    if (aborts()) ggml_abort(__FILE__, __LINE__, "%s", sentence);
    return code;
}

ggml_abort_callback_t ggml_set_abort_callback(ggml_abort_callback_t callback) {
    return atomic_exchange(&global.abort_callback, callback);
}

// For callers (GGML_ABORT, GGML_ASSERT) and for the abort mode. Not through the log sink: that may be what is broken.
void ggml_abort(const char *file, int line, const char *fmt, ...) {
    char text[1024];
    int n = snprintf(text, sizeof text, "%s:%d: ", file, line);
    if (n < 0 || n >= (int) sizeof text) n = 0;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text + n, sizeof text - (size_t) n, fmt, args);
    va_end(args);
    ggml_abort_callback_t callback = atomic_load(&global.abort_callback);
    if (callback) {
        callback(text);
    } else {
        fflush(stdout);
        fprintf(stderr, "%s\n", text);
    }
    abort();
}
