// GGUF files put together byte by byte, damaged ones included.
#pragma once

#include "gguf.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
    uint8_t *p;
    size_t n, cap;
};

static inline void put_raw(struct bytes *b, const void *p, size_t n) {
    if (b->n + n > b->cap) {
        b->cap = (b->n + n) * 2 + 64;
        b->p = realloc(b->p, b->cap);
        if (!b->p) abort();
    }
    if (n) memcpy(b->p + b->n, p, n);
    b->n += n;
}
static inline void put_u32(struct bytes *b, uint32_t v) { put_raw(b, &v, 4); }
static inline void put_u64(struct bytes *b, uint64_t v) { put_raw(b, &v, 8); }
static inline void put_str_n(struct bytes *b, const char *s, size_t n) {
    put_u64(b, n);
    put_raw(b, s, n);
}
static inline void put_str(struct bytes *b, const char *s) { put_str_n(b, s, strlen(s)); }

static inline struct bytes gguf_header(uint64_t n_tensor, uint64_t n_kv) {
    struct bytes b = {0};
    put_raw(&b, "GGUF", 4);
    put_u32(&b, 3);
    put_u64(&b, n_tensor);
    put_u64(&b, n_kv);
    return b;
}
static inline void put_key(struct bytes *b, const char *key, uint32_t type) {
    put_str(b, key);
    put_u32(b, type);
}
static inline void put_kv_u32(struct bytes *b, const char *key, uint32_t v) {
    put_key(b, key, GGUF_TYPE_UINT32);
    put_u32(b, v);
}
static inline void put_kv_str(struct bytes *b, const char *key, const char *v) {
    put_key(b, key, GGUF_TYPE_STRING);
    put_str(b, v);
}
static inline void put_kv_bool(struct bytes *b, const char *key, bool v) {
    uint8_t byte = v;
    put_key(b, key, GGUF_TYPE_BOOL);
    put_raw(b, &byte, 1);
}
static inline void put_array(struct bytes *b, const char *key, uint32_t type, uint64_t n) {
    put_key(b, key, GGUF_TYPE_ARRAY);
    put_u32(b, type);
    put_u64(b, n);
}
static inline void put_tensor(struct bytes *b, const char *name, uint32_t n_dims, const uint64_t *ne, uint32_t type,
                              uint64_t offset) {
    put_str(b, name);
    put_u32(b, n_dims);
    for (uint32_t i = 0; i < n_dims; i++) put_u64(b, ne[i]);
    put_u32(b, type);
    put_u64(b, offset);
}
static inline void put_zeros(struct bytes *b, size_t n) {
    static const uint8_t zero[64];
    for (; n; n -= n < 64 ? n : 64) put_raw(b, zero, n < 64 ? n : 64);
}
static inline void put_pad(struct bytes *b, size_t alignment) {
    if (b->n % alignment) put_zeros(b, alignment - b->n % alignment);
}
