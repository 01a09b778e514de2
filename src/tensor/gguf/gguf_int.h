// Private parts of src/tensor/gguf: what a gguf_context holds and how its parts find each other.
//
// A context read from a file keeps the raw metadata (the "image": the mapped file, or a block read into memory) and points
// into it for the arrays of strings, which in large vocabularies hold hundreds of thousands of entries: they cost one
// 32-bit offset each and no allocation. Everything else (keys, scalars, numeric arrays, string values) is copied once
// into a pool, aligned and with terminators, because programs take pointers to it.
#pragma once

#include "base/err.h"
#include "ggml/ext.h"
#include "gguf.h"
#include <stdatomic.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "GGUF values are copied as they lie: a big-endian host would need swaps at every access"
#endif

#define GGUF_MAX_STR_ARRAY UINT32_MAX  // bytes of one array of strings: its offsets are 32 bits wide

struct name {
    char *p;  // with a terminator behind it; may hold further zero bytes
    size_t len;
};

// An array of strings as it lies in the file: 64-bit length, bytes, and so on.
struct str_list {
    const uint8_t *raw;
    uint32_t *offs;          // [n] start of each string's bytes from raw; its length stands in the 8 bytes before
    _Atomic(char *) c_view;  // [n] pointers followed by terminated copies; made when first asked for
};

struct kv {
    struct name key;  // first, as names_find expects
    enum gguf_type type;
    enum gguf_type arr_type;  // of the elements if type is ARRAY
    uint64_t n;               // elements of an array, 1 otherwise
    uint64_t bytes;           // payload as in the file, without counts; a string's length
    void *data;               // aligned payload, strings terminated; NULL for arrays of strings
    struct str_list strs;
    bool owned;  // key, data, strs.raw are allocations of this entry, not parts of pool or image
};

struct tensor_info {
    struct name name;  // first, as names_find expects
    uint32_t n_dims;   // as in the file, so that it is written back the same
    int64_t ne[GGML_MAX_DIMS];
    enum ggml_type type;
    uint64_t offset;  // from the start of the data section
    size_t size;
    const void *data;                    // where the bytes are, NULL if not known
    struct ggml_backend_buffer *buffer;  // not NULL: data lies in a device buffer
    struct ggml_tensor *tensor;          // copy to read it through, owned; NULL if data is plain memory
    bool owned;                          // name is an allocation of this entry
};

// Open-addressing index over an array of entries that begin with a struct name.
struct name_set {
    uint32_t *slots;  // index + 1, 0 empty
    size_t n_slot;    // power of two
    size_t n;
    uint64_t seed;
};

struct gguf_context {
    uint32_t version;
    size_t alignment;
    size_t data_offset;  // 0 in contexts that were not read
    struct kv *kv;
    size_t n_kv, cap_kv;
    struct tensor_info *ti;
    size_t n_ti, cap_ti;
    struct name_set kv_names, ti_names;
    uint8_t *pool;
    size_t pool_bytes, image_bytes;
    uint8_t *image;  // raw metadata; owned unless it is the mapping
    void *map;       // whole file, NULL if not mapped
    size_t map_size;
    bool incomplete;  // a setter found no memory: an entry is missing, and nothing may be written
};

// ---- names.c
void names_init(struct name_set *s);
void names_free(struct name_set *s);
// Index of a name among entries[i * stride], -1 if absent.
int64_t names_find(const struct name_set *s, const void *entries, size_t stride, const char *p, size_t len);
// Adds entry i (already in place). ERR_INVALID without a sentence if its name is there already.
enum err names_add(struct name_set *s, const void *entries, size_t stride, size_t i) MUST_USE;
// Forgets everything and adds entries 0..n-1, whose names differ.
enum err names_rebuild(struct name_set *s, const void *entries, size_t stride, size_t n) MUST_USE;

// ---- source.c: bytes from a mapped file, a buffer, a FILE or a callback, seen as one growing prefix
struct source {
    const uint8_t *p;  // bytes that are here
    size_t have;
    uint64_t total;  // bytes that there are; UINT64_MAX if only the end will tell
    bool exact_end;  // total is the true size, not a bound
    uint8_t *block;  // owned storage of p, NULL if p is the caller's buffer or a mapping
    size_t cap;
    bool one_by_one;  // never read ahead
    FILE *file;
    gguf_reader_callback_t callback;
    void *userdata;
    size_t max_chunk;
    uint64_t skipped;  // bytes read past have, for data that goes straight to its place
    const char *what;  // for messages
};
// Makes the first n bytes available. ERR_FORMAT without a sentence if the source ends earlier.
enum err source_need(struct source *s, uint64_t n) MUST_USE;
// Copies n bytes at offset to dst, without keeping them. Offsets must not go backwards for streams.
enum err source_copy(struct source *s, uint64_t offset, void *dst, uint64_t n) MUST_USE;
void source_free(struct source *s);

// ---- tensors.c
size_t gguf_pad(size_t n, size_t alignment);
// Size in bytes; sentence naming `name` if the shape does not fit the type or 63 bits.
enum err gguf_tensor_bytes(const char *name, enum ggml_type type, const int64_t *ne, size_t *size) MUST_USE;
// The ggml context that params.ctx asks for, with the data in one tensor in front unless no_alloc.
enum err gguf_make_tensors(const struct gguf_context *ctx, struct source *src, struct gguf_init_params params) MUST_USE;

// ---- edit.c
enum err gguf_apply_alignment(struct gguf_context *ctx) MUST_USE;
void gguf_kv_free(struct kv *kv);

// Size of a scalar; 0 for strings, arrays and unknown numbers.
size_t gguf_scalar_size(enum gguf_type type);
