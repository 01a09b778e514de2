// Lamina's additions to the interface: error sentences, logging, work teams, attention over block tables.
#pragma once

#include "ggml/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- errors ---------------------------------------------------------------------------------------------------
// Every failure records one sentence, with the numbers in it, for the thread on which it happened. The first failure
// wins until ggml_clear_error(); a later public call that fails replaces it.

enum ggml_error_mode {
    GGML_ERROR_RECORD = 0,  // record the sentence, log it, return an error value (default)
    GGML_ERROR_ABORT = 1,   // stop the process at the mistake; also chosen by the environment variable GGML_ERROR=abort
};

// Sentence of this thread's last failure, "" if none. Owner: library; valid until the thread's next failure or clear.
GGML_API const char *ggml_last_error(void);
GGML_API void ggml_clear_error(void);
// Process-wide. Thread: call before other threads use the library.
GGML_API void ggml_set_error_mode(enum ggml_error_mode mode);
// Record a failure on this thread and log it at GGML_LOG_LEVEL_ERROR. code: one of enum err in src/base/err.h, never 0.
// Returns code, so that `return ggml_error_set(...)` reads as one step.
GGML_API int ggml_error_set(int code, const char *fmt, ...) GGML_ATTRIBUTE_FORMAT(2, 3);

// True for the error tensor that builders return when they were misused (see docs/design.md, rule 4).
GGML_API bool ggml_is_error(const struct ggml_tensor *tensor);

// Checks a graph whose tensors were not all made by this library's builders, or were written to since: every node must be what
// its operation makes of its sources and parameters, every view must lie inside its tensor. Computing relies on that and does not
// look again. False: the sentence says what is wrong with which node.
struct ggml_cgraph;
GGML_API bool ggml_graph_verify(const struct ggml_cgraph *cgraph);

// Send one line to the log sink (ggml_log_set). fmt should end in \n.
GGML_API void ggml_log_write(enum ggml_log_level level, const char *fmt, ...) GGML_ATTRIBUTE_FORMAT(2, 3);

// ---- threads --------------------------------------------------------------------------------------------------

// Threads to use by default: min(affinity, floor(cgroup quota), physical (performance) cores), at least 1.
GGML_API int ggml_cpu_default_threads(void);

// Run fn(ith, nth, userdata) on n_threads threads, the caller's included; returns when all are done. Allocates.
GGML_API void ggml_parallel(int n_threads, void (*fn)(int ith, int nth, void *userdata), void *userdata);

// What the processor gives at most with a number of threads: operations (a multiply and an add are two) and bytes per second.
struct ggml_cpu_peaks {
    double f32;   // F32 fused multiply-add
    double bf16;  // BF16 dot product; where there is none, as f32
    double i8;    // 8-bit integer dot product
    double read;  // reading memory in order
};

// Measures them: best of 20 tries with 16 independent accumulators per thread; mem [bytes] is read in equal parts by the
// threads (at least 4096 bytes each; 0 bytes leave `read` at 0). Takes some 100 ms plus 20 readings. Errors: false, with a
// sentence. Thread: any; allocates threads.
GGML_API bool ggml_cpu_measure_peaks(int n_threads, const void *mem, size_t bytes, struct ggml_cpu_peaks *peaks);

// Bytes of work memory that are enough for graph and for every graph that differs from it in having fewer tokens only:
// ggml_graph_plan gives what this one takes. n_threads <= 0: the default. NULL: 0.
GGML_API size_t ggml_graph_work_most(const struct ggml_cgraph *graph, int n_threads);

// ---- attention over block tables --------------------------------------------------------------------------------
// Instead of a mask, attention can be told where each query's keys lie. K and V hold cells in blocks of
// GGML_ATTN_BLOCK positions of one sequence, with cell mod GGML_ATTN_BLOCK == position mod GGML_ATTN_BLOCK.
//   query [4, n_q]                  i32: slot, position, lo, hi per query row: it sees the positions lo <= p < hi
//   table [3, n_block, n_slot]      i32: per slot and logical block b (positions b*64 .. b*64+63): physical block (cell / 64)
//                                   or -1 for none, then the low and the high 32 bits of the set of positions that exist
// a must come from ggml_flash_attn_ext, K and V not broadcast over dimension 3. If it has a mask, that is over cells, and a query sees
// what both the mask and its range show.
// ALiBi (max_bias > 0) uses -|position difference|. Errors: sentence recorded, returns false, a unchanged.
#define GGML_ATTN_BLOCK 64
// Blocks of a table are merged in groups of so many, counted from the table's beginning.
#define GGML_ATTN_STRIPE 4
GGML_API bool ggml_flash_attn_ext_set_blocks(struct ggml_tensor *a, struct ggml_tensor *query, struct ggml_tensor *table);

// ---- building again ---------------------------------------------------------------------------------------------
// Graphs of one program differ from each other in sizes or in nothing more often than in form. A context that is filled again, by the
// same calls in the same order, gives back the tensors that it had: each builder finds its own in its place, and the graph does not have
// to be walked, nor, where nothing differs, allocated.
enum ggml_rebuilt {
    GGML_REBUILT_SAME = 0,  // every tensor and the graph are as before, with the memory that they had
    GGML_REBUILT_SIZES,  // the same operations read the same tensors, but sizes, offsets or parameters differ: allocate it anew
    GGML_REBUILT_OTHER,  // neither; the graph is of no use: ggml_reset, and build once more
};

// Empties ctx as ggml_reset does, but remembers what it had: no tensors with data of their own, and one graph, made before any node of
// it. Tensors outside of ctx must be as they were. Until ggml_rebuild_end the graph is not to be looked at, a tensor may be changed
// only until the next one is made, flags apart, and names stay as they were. Other contexts may not add to the graph. Owner, thread: as for ctx.
GGML_API void ggml_rebuild_begin(struct ggml_context *ctx);
// Ends it, and says what came of it. NULL, or not begun: GGML_REBUILT_OTHER.
GGML_API enum ggml_rebuilt ggml_rebuild_end(struct ggml_context *ctx);

// ---- GGUF ------------------------------------------------------------------------------------------------------
struct gguf_context;

// A string value and its length in bytes (*len, may be NULL): the bytes may hold zeros; a terminator follows them.
// Owner: ctx. Errors: sentence recorded, NULL.
GGML_API const char *gguf_get_val_str_n(const struct gguf_context *ctx, int64_t key_id, size_t *len);
// String i of an array of strings, in place: *len bytes (len may be NULL), NO terminator. Costs no allocation.
// Owner: ctx. Errors: sentence recorded, NULL. Thread: any number at a time.
GGML_API const char *gguf_get_arr_str_view(const struct gguf_context *ctx, int64_t key_id, size_t i, size_t *len);
// All strings of an array where they lie, base [bytes]: string i begins at base + offs[i] [n], and its length is the 64-bit
// little-endian number (not aligned) in the 8 bytes before it.
struct gguf_str_span {
    const char *base;
    const uint32_t *offs;
    size_t n, bytes;
};
// Owner: ctx; valid until the key is set again. Errors: sentence recorded, all zero. Thread: any number at a time.
GGML_API struct gguf_str_span gguf_get_arr_str_span(const struct gguf_context *ctx, int64_t key_id);
// gguf_set_arr_str for strings that may hold zero bytes: lens [n] bytes each.
GGML_API void gguf_set_arr_str_n(struct gguf_context *ctx, const char *key, const char **data, const size_t *lens, size_t n);
// The whole file, mapped read-only, of a context made by gguf_init_from_file: tensor i lies at
// gguf_get_data_offset(ctx) + gguf_get_tensor_offset(ctx, i), checked to be inside. NULL and 0 if the context came
// otherwise or the file system can't map. Owner: ctx; unmapped by gguf_free.
GGML_API const void *gguf_get_mapping(const struct gguf_context *ctx, size_t *size);
// Unmaps the data section: what is left of the mapping is the header, in whole pages, which arrays of strings are read from. Where
// tensors lie is no longer known to ctx. For programs that map the data themselves. NULL, or not mapped: nothing.
GGML_API void gguf_drop_data(struct gguf_context *ctx);
// Bytes asked of the heap for what a context holds: keys, values, tables of tensors. A mapping is not among them.
GGML_API size_t gguf_memory_size(const struct gguf_context *ctx);

#ifdef __cplusplus
}
#endif
