// GGUF files: reading, editing, writing. Format: the GGUF specification of ggml (little-endian; versions 2 and 3 are read).
//
// Errors, everywhere: a sentence at ggml_last_error() that names the key or tensor and the offset; functions that return
// pointers give NULL, numbers 0, ids -1; setters leave the context as it was. Nothing in a file is believed before it has
// been compared with what is left of the file. Threads: any number may read one context; editing needs it alone.
#pragma once

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_context;
enum gguf_type {
    GGUF_TYPE_UINT8 = 0,
    GGUF_TYPE_INT8 = 1,
    GGUF_TYPE_UINT16 = 2,
    GGUF_TYPE_INT16 = 3,
    GGUF_TYPE_UINT32 = 4,
    GGUF_TYPE_INT32 = 5,
    GGUF_TYPE_FLOAT32 = 6,
    GGUF_TYPE_BOOL = 7,
    GGUF_TYPE_STRING = 8,
    GGUF_TYPE_ARRAY = 9,
    GGUF_TYPE_UINT64 = 10,
    GGUF_TYPE_INT64 = 11,
    GGUF_TYPE_FLOAT64 = 12,
    GGUF_TYPE_COUNT = 13,
};

#define GGUF_MAGIC "GGUF"
#define GGUF_VERSION 3
#define GGUF_KEY_GENERAL_ALIGNMENT "general.alignment"
#define GGUF_DEFAULT_ALIGNMENT 32

// (userdata, output, offset, len): puts len bytes from byte `offset` of the file into output; returns how many there were.
typedef size_t (*gguf_reader_callback_t)(void *, void *, uint64_t, size_t);

struct gguf_init_params {
    // With ctx: make the tensors without data. Without: the tensor infos alone are read in any case.
    bool no_alloc;
    // If not NULL, *ctx becomes a ggml context with a tensor per entry; unless no_alloc, their data lies in one I8 tensor
    // in front of them. Owner: caller (ggml_free); unchanged on failure.
    struct ggml_context **ctx;
};

// ---- making and freeing

// A context without keys and tensors, for writing. Owner: caller (gguf_free).
GGML_API struct gguf_context *gguf_init_empty(void);
// Reads from the current position, which is taken for the start. Afterwards the position is where the tensor data begins
// (after the data if it was read); a stream that cannot seek is not read beyond what is needed.
GGML_API struct gguf_context *gguf_init_from_file_ptr(FILE *file, struct gguf_init_params params);
// Maps the file where it can; see gguf_get_mapping in ggml/ext.h. The tensors' data must lie inside the file.
GGML_API struct gguf_context *gguf_init_from_file(const char *fname, struct gguf_init_params params);
// size bytes at data, which may go afterwards. The buffer may end with the metadata unless data is asked for.
GGML_API struct gguf_context *gguf_init_from_buffer(const void *data, size_t size, struct gguf_init_params params);
// max_chunk_read: most bytes per call, 0: any. max_expected_size: bytes the file has at most, 0: unknown.
GGML_API struct gguf_context *gguf_init_from_callback(gguf_reader_callback_t callback, void *userdata, size_t max_chunk_read,
                                                      uint64_t max_expected_size, struct gguf_init_params params);
// NULL is fine. Frees everything that the getters returned; not the ggml context of gguf_init_params.
GGML_API void gguf_free(struct gguf_context *ctx);

// ---- facts

// "u8", "str", "arr" ...; NULL for unknown numbers.
GGML_API const char *gguf_type_name(enum gguf_type type);
// As in the file (2 or 3); GGUF_VERSION for new contexts.
GGML_API uint32_t gguf_get_version(const struct gguf_context *ctx);
// Bytes, a power of two. In a context being built, the key general.alignment takes effect with the first tensor.
GGML_API size_t gguf_get_alignment(const struct gguf_context *ctx);
// Where the tensor data starts in the file that was read, in bytes; 0 if none was.
GGML_API size_t gguf_get_data_offset(const struct gguf_context *ctx);

// ---- keys. key_id: 0 <= id < gguf_get_n_kv, in file order.

GGML_API int64_t gguf_get_n_kv(const struct gguf_context *ctx);
// Id of the key of exactly this name, -1 if there is none.
GGML_API int64_t gguf_find_key(const struct gguf_context *ctx, const char *key);
GGML_API const char *gguf_get_key(const struct gguf_context *ctx, int64_t key_id);
GGML_API enum gguf_type gguf_get_kv_type(const struct gguf_context *ctx, int64_t key_id);
// Type of an array's elements. Errors (no array): GGUF_TYPE_COUNT.
GGML_API enum gguf_type gguf_get_arr_type(const struct gguf_context *ctx, int64_t key_id);
// Values. The key must have exactly the type asked for.
GGML_API uint8_t gguf_get_val_u8(const struct gguf_context *ctx, int64_t key_id);
GGML_API int8_t gguf_get_val_i8(const struct gguf_context *ctx, int64_t key_id);
GGML_API uint16_t gguf_get_val_u16(const struct gguf_context *ctx, int64_t key_id);
GGML_API int16_t gguf_get_val_i16(const struct gguf_context *ctx, int64_t key_id);
GGML_API uint32_t gguf_get_val_u32(const struct gguf_context *ctx, int64_t key_id);
GGML_API int32_t gguf_get_val_i32(const struct gguf_context *ctx, int64_t key_id);
GGML_API float gguf_get_val_f32(const struct gguf_context *ctx, int64_t key_id);
GGML_API uint64_t gguf_get_val_u64(const struct gguf_context *ctx, int64_t key_id);
GGML_API int64_t gguf_get_val_i64(const struct gguf_context *ctx, int64_t key_id);
GGML_API double gguf_get_val_f64(const struct gguf_context *ctx, int64_t key_id);
GGML_API bool gguf_get_val_bool(const struct gguf_context *ctx, int64_t key_id);
// A string with a terminator; gguf_get_val_str_n (ggml/ext.h) also gives its length, as it may hold zero bytes.
GGML_API const char *gguf_get_val_str(const struct gguf_context *ctx, int64_t key_id);
// Address of a number, aligned for its type.
GGML_API const void *gguf_get_val_data(const struct gguf_context *ctx, int64_t key_id);
GGML_API size_t gguf_get_arr_n(const struct gguf_context *ctx, int64_t key_id);
// The elements [gguf_get_arr_n] of an array that does not hold strings, aligned for their type; bool: bytes 0 and 1.
GGML_API const void *gguf_get_arr_data(const struct gguf_context *ctx, int64_t key_id);
// String i with a terminator. The first call for an array copies it whole; gguf_get_arr_str_view (ggml/ext.h) does not.
GGML_API const char *gguf_get_arr_str(const struct gguf_context *ctx, int64_t key_id, size_t i);

// ---- tensors. tensor_id: 0 <= id < gguf_get_n_tensors, in file order.

GGML_API int64_t gguf_get_n_tensors(const struct gguf_context *ctx);
GGML_API int64_t gguf_find_tensor(const struct gguf_context *ctx, const char *name);
// Bytes from the start of the data section, a multiple of the alignment.
GGML_API size_t gguf_get_tensor_offset(const struct gguf_context *ctx, int64_t tensor_id);
GGML_API const char *gguf_get_tensor_name(const struct gguf_context *ctx, int64_t tensor_id);
// [4] elements per dimension, the innermost first, 1 beyond the last dimension.
GGML_API const int64_t *gguf_get_tensor_ne(const struct gguf_context *ctx, int64_t tensor_id);
GGML_API enum ggml_type gguf_get_tensor_type(const struct gguf_context *ctx, int64_t tensor_id);
// Bytes without padding.
GGML_API size_t gguf_get_tensor_size(const struct gguf_context *ctx, int64_t tensor_id);

// ---- editing. A key that exists is replaced, and the new one stands at the back.

// Id that the key had, -1 if there is none. Ids behind it go down by one.
GGML_API int64_t gguf_remove_key(struct gguf_context *ctx, const char *key);
GGML_API void gguf_set_val_u8(struct gguf_context *ctx, const char *key, uint8_t val);
GGML_API void gguf_set_val_i8(struct gguf_context *ctx, const char *key, int8_t val);
GGML_API void gguf_set_val_u16(struct gguf_context *ctx, const char *key, uint16_t val);
GGML_API void gguf_set_val_i16(struct gguf_context *ctx, const char *key, int16_t val);
GGML_API void gguf_set_val_u32(struct gguf_context *ctx, const char *key, uint32_t val);
GGML_API void gguf_set_val_i32(struct gguf_context *ctx, const char *key, int32_t val);
GGML_API void gguf_set_val_f32(struct gguf_context *ctx, const char *key, float val);
GGML_API void gguf_set_val_u64(struct gguf_context *ctx, const char *key, uint64_t val);
GGML_API void gguf_set_val_i64(struct gguf_context *ctx, const char *key, int64_t val);
GGML_API void gguf_set_val_f64(struct gguf_context *ctx, const char *key, double val);
GGML_API void gguf_set_val_bool(struct gguf_context *ctx, const char *key, bool val);
GGML_API void gguf_set_val_str(struct gguf_context *ctx, const char *key, const char *val);
// data [n] elements of type, which is neither STRING nor ARRAY; copied.
GGML_API void gguf_set_arr_data(struct gguf_context *ctx, const char *key, enum gguf_type type, const void *data, size_t n);
// data [n] terminated strings; copied.
GGML_API void gguf_set_arr_str(struct gguf_context *ctx, const char *key, const char **data, size_t n);
// Sets all keys of src.
GGML_API void gguf_set_kv(struct gguf_context *ctx, const struct gguf_context *src);
// Appends an entry for a contiguous tensor whose name is not there yet. Its data is read when the file is written.
GGML_API void gguf_add_tensor(struct gguf_context *ctx, const struct ggml_tensor *tensor);
// Changes type, size and the offsets of all tensors. The data must then be set anew to fit.
GGML_API void gguf_set_tensor_type(struct gguf_context *ctx, const char *name, enum ggml_type type);
// data [gguf_get_tensor_size] bytes, not copied: must stay until the file is written.
GGML_API void gguf_set_tensor_data(struct gguf_context *ctx, const char *name, const void *data);

// ---- writing. Metadata that was read and not changed is written back byte for byte.

// Writes at the current position. only_meta: leave the tensors' data to the caller. Errors: false.
GGML_API bool gguf_write_to_file_ptr(const struct gguf_context *ctx, FILE *file, bool only_meta);
// Writes a new file beside fname and renames it, so that fname is never half written and may be the file that was read.
// Errors: false, fname as before.
GGML_API bool gguf_write_to_file(const struct gguf_context *ctx, const char *fname, bool only_meta);
// Bytes of header, keys and tensor infos, padded to the alignment.
GGML_API size_t gguf_get_meta_size(const struct gguf_context *ctx);
// data [gguf_get_meta_size]
GGML_API void gguf_get_meta_data(const struct gguf_context *ctx, void *data);

#ifdef __cplusplus
}
#endif
