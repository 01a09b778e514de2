// Base64 (RFC 4648), as JSON files keep bytes.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// The bytes of text, malloc'ed, *n of them. NULL: text is NULL or no base64, or there is no memory.
static inline char *base64_decode(const char *text, size_t *n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t len = text ? strlen(text) : 0;
    char *out = text ? malloc(len / 4 * 3 + 3) : NULL;
    uint32_t bits = 0;
    int have = 0;
    *n = 0;
    for (size_t i = 0; out && i < len && text[i] != '='; i++) {
        const char *d = strchr(digits, text[i]);
        if (!d || !*d) {
            free(out);
            return NULL;
        }
        bits = bits << 6 | (uint32_t) (d - digits);
        have += 6;
        if (have < 8) continue;
        have -= 8;
        out[(*n)++] = (char) (bits >> have & 0xff);
    }
    return out;
}
