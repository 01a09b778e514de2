// Where the bytes of a GGUF come from. The reader sees one prefix that grows on demand, so that it never has to care
// whether it reads a mapping, a buffer, a stream or a callback, and so that a length claimed by a damaged file is never
// allocated before as many bytes have really arrived.
#include "gguf/gguf_int.h"
#include <stdlib.h>

#define READ_AHEAD ((uint64_t) 1 << 18)

// Up to n bytes at offset (streams: at the current position) into dst; returns how many came.
static size_t pull(struct source *s, uint64_t offset, uint8_t *dst, size_t n) {
    if (s->file) return fread(dst, 1, n, s->file);
    size_t got = 0;
    while (got < n) {
        size_t step = n - got;
        if (s->max_chunk && step > s->max_chunk) step = s->max_chunk;
        size_t k = s->callback(s->userdata, dst + got, offset + got, step);
        if (k == 0 || k > step) break;
        got += k;
    }
    return got;
}

static enum err reserve(struct source *s, size_t n) {
    if (n <= s->cap) return ERR_OK;
    size_t cap = s->cap ? s->cap : 4096;
    while (cap < n) cap = cap > SIZE_MAX / 2 ? n : cap * 2;
    uint8_t *block = realloc(s->block, cap);
    if (!block) return err_set(ERR_NOMEM, "gguf: no memory for %zu bytes of metadata of %s", cap, s->what);
    s->block = block;
    s->cap = cap;
    s->p = block;
    return ERR_OK;
}

enum err source_need(struct source *s, uint64_t n) {
    if (n <= s->have) return ERR_OK;
    if (n > s->total || (!s->file && !s->callback)) return ERR_FORMAT;
    while (s->have < n) {
        // at most as much again as has come already, so that a lie about lengths costs nothing
        uint64_t want = n - s->have, most = s->have + READ_AHEAD;
        if (want > most) want = most;
        if (!s->one_by_one && want < READ_AHEAD) want = READ_AHEAD;
        if (want > s->total - s->have) want = s->total - s->have;
        TRY(reserve(s, s->have + (size_t) want));
        size_t got = pull(s, s->have, s->block + s->have, (size_t) want);
        s->have += got;
        if (got < want) {
            if (s->have >= n) return ERR_OK;
            return ERR_FORMAT;
        }
    }
    return ERR_OK;
}

enum err source_copy(struct source *s, uint64_t offset, void *dst, uint64_t n) {
    uint8_t *out = dst;
    if (offset < s->have) {
        uint64_t k = s->have - offset < n ? s->have - offset : n;
        memcpy(out, s->p + offset, (size_t) k);
        out += k;
        offset += k;
        n -= k;
    }
    if (n == 0) return ERR_OK;
    if (s->callback) {
        if (pull(s, offset, out, (size_t) n) == n) return ERR_OK;
    } else if (s->file) {
        char skip[4096];
        while (s->have + s->skipped < offset) {
            uint64_t k = offset - s->have - s->skipped;
            if (k > sizeof skip) k = sizeof skip;
            if (fread(skip, 1, (size_t) k, s->file) != k) break;
            s->skipped += k;
        }
        if (s->have + s->skipped == offset && fread(out, 1, (size_t) n, s->file) == n) {
            s->skipped += n;
            return ERR_OK;
        }
    }
    return err_set(ERR_IO, "gguf: %s ends before offset %llu", s->what, (unsigned long long) (offset + n));
}

void source_free(struct source *s) {
    free(s->block);
    s->block = NULL;
    s->p = NULL;
}
