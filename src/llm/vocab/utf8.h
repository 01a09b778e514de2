// Decoding UTF-8 that may be broken. An invalid byte decodes to U+FFFD and one byte, so that text can be walked over
// anything and no byte is lost.
#pragma once

#include <stdint.h>
#include <stddef.h>

#define UTF8_BAD 0xfffdu

// Code point at p, of which at least one byte is there. *len: bytes it takes, 1 for an invalid byte.
static inline uint32_t utf8_decode(const char *p, const char *end, int *len) {
    const uint8_t *s = (const uint8_t *) p;
    ptrdiff_t left = end - p;
    uint32_t c = s[0];
    *len = 1;
    if (c < 0x80) return c;
    if (c < 0xc2) return UTF8_BAD;
    if (c < 0xe0) {
        if (left < 2 || (s[1] & 0xc0) != 0x80) return UTF8_BAD;
        *len = 2;
        return (c & 0x1f) << 6 | (s[1] & 0x3fu);
    }
    if (c < 0xf0) {
        if (left < 3 || (s[1] & 0xc0) != 0x80 || (s[2] & 0xc0) != 0x80) return UTF8_BAD;
        uint32_t v = (c & 0x0f) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
        if (v < 0x800 || (v >= 0xd800 && v < 0xe000)) return UTF8_BAD;
        *len = 3;
        return v;
    }
    if (c < 0xf5) {
        if (left < 4 || (s[1] & 0xc0) != 0x80 || (s[2] & 0xc0) != 0x80 || (s[3] & 0xc0) != 0x80) return UTF8_BAD;
        uint32_t v = (c & 0x07) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 | (s[3] & 0x3fu);
        if (v < 0x10000 || v > 0x10ffff) return UTF8_BAD;
        *len = 4;
        return v;
    }
    return UTF8_BAD;
}

// Start of the character that ends at p, which lies behind start. The inverse of utf8_decode's steps.
static inline const char *utf8_back(const char *start, const char *p) {
    for (int n = 1; n <= 4 && p - n >= start; n++) {
        const uint8_t c = (uint8_t) p[-n];
        if ((c & 0xc0) == 0x80) continue;
        int len;
        utf8_decode(p - n, p, &len);
        return len == n ? p - n : p - 1;
    }
    return p - 1;
}

// Bytes of a code point, 1 to 4, into out.
static inline int utf8_encode(uint32_t c, char out[4]) {
    uint8_t *o = (uint8_t *) out;
    if (c < 0x80) {
        o[0] = (uint8_t) c;
        return 1;
    }
    if (c < 0x800) {
        o[0] = (uint8_t) (0xc0 | c >> 6);
        o[1] = (uint8_t) (0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        o[0] = (uint8_t) (0xe0 | c >> 12);
        o[1] = (uint8_t) (0x80 | (c >> 6 & 0x3f));
        o[2] = (uint8_t) (0x80 | (c & 0x3f));
        return 3;
    }
    o[0] = (uint8_t) (0xf0 | c >> 18);
    o[1] = (uint8_t) (0x80 | (c >> 12 & 0x3f));
    o[2] = (uint8_t) (0x80 | (c >> 6 & 0x3f));
    o[3] = (uint8_t) (0x80 | (c & 0x3f));
    return 4;
}

// Length that a first byte announces, 1 for anything else.
static inline int utf8_len(uint8_t c) { return c < 0xc2 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 1; }
