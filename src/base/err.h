// Errors as values with a sentence. The record itself lives in libggml (src/tensor/… reaches it through ggml/ext.h),
// so this header holds only the codes and a short spelling that both libraries can use.
#pragma once

#include "ggml/ext.h"

enum err {
    ERR_OK = 0,
    ERR_INVALID,      // a caller's mistake: shapes, types, null pointers, ranges
    ERR_NOMEM,        // an allocation failed
    ERR_IO,           // open, read, write, map failed
    ERR_FORMAT,       // a file's content is damaged or of the wrong kind
    ERR_UNSUPPORTED,  // valid, but this build or device cannot do it
    ERR_ABORTED,      // a callback asked to stop
    ERR_FAILED,       // anything else
};

#define MUST_USE __attribute__((warn_unused_result))

// err_set(code, fmt, ...): records the sentence on this thread, logs it, gives `code` back as enum err.
#define err_set(code, ...) ((enum err) ggml_error_set((code), __VA_ARGS__))

#define TRY(expr)                                                                                                           \
    do {                                                                                                                    \
        enum err e_ = (expr);                                                                                               \
        if (e_ != ERR_OK) return e_;                                                                                        \
    } while (0)
