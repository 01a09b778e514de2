// What a fuzz target gives: the entry point of libFuzzer, and seeds, so that it also runs without clang (replay.c).
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Calls put for each seed.
typedef void (*fuzz_put)(void *to, const void *data, size_t size);
void fuzz_seeds(fuzz_put put, void *to);

// A broken promise: stops where it is seen, whatever the build.
#define FUZZ_CHECK(x)                                                                                                       \
    do {                                                                                                                    \
        if (!(x)) abort();                                                                                                  \
    } while (0)

// The input as a string of its own, to be freed; it may hold zeros before its end.
static inline char *fuzz_text(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    FUZZ_CHECK(text);
    if (size) memcpy(text, data, size);
    text[size] = 0;
    return text;
}
