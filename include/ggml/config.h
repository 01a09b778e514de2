// Compiler portability, limits and the helper macros that ggml programs rely on.
#pragma once

#ifdef __cplusplus
#include <cstdbool>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#define GGML_RESTRICT
#define GGML_NORETURN __attribute__((noreturn))
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#define GGML_RESTRICT restrict
#define GGML_NORETURN _Noreturn
#endif

#if defined(_WIN32) && defined(GGML_SHARED)
#ifdef GGML_BUILD
#define GGML_API __declspec(dllexport) extern
#else
#define GGML_API __declspec(dllimport) extern
#endif
#elif defined(__GNUC__)
#define GGML_API __attribute__((visibility("default"))) extern
#else
#define GGML_API extern
#endif

#ifdef __GNUC__
#define GGML_DEPRECATED(decl, hint) decl __attribute__((deprecated(hint)))
#define GGML_ATTRIBUTE_FORMAT(...) __attribute__((format(printf, __VA_ARGS__)))
#define GGML_UNREACHABLE() __builtin_unreachable()
#else
#define GGML_DEPRECATED(decl, hint) decl
#define GGML_ATTRIBUTE_FORMAT(...)
#define GGML_UNREACHABLE() ((void) 0)
#endif

#define GGML_FILE_MAGIC 0x67676d6c
#define GGML_FILE_VERSION 2
#define GGML_QNT_VERSION 2
#define GGML_QNT_VERSION_FACTOR 1000
#define GGML_MAX_DIMS 4
#define GGML_MAX_PARAMS 2048
#define GGML_MAX_SRC 10
#define GGML_MAX_N_THREADS 512
#define GGML_MAX_OP_PARAMS 64
#define GGML_MAX_NAME 64
#define GGML_DEFAULT_N_THREADS 4
#define GGML_DEFAULT_GRAPH_SIZE 2048
#define GGML_MEM_ALIGN 16
#define GGML_EXIT_SUCCESS 0
#define GGML_EXIT_ABORTED 1
#define GGML_ROPE_TYPE_NORMAL 0
#define GGML_ROPE_TYPE_NEOX 2
#define GGML_ROPE_TYPE_MROPE 8
#define GGML_ROPE_TYPE_VISION 24
#define GGML_ROPE_TYPE_IMROPE 40
#define GGML_MROPE_SECTIONS 4
#define GGML_N_TASKS_MAX (-1)

#define GGML_UNUSED(x) (void) (x)
#define GGML_UNUSED_VARS(...)                                                                                               \
    do {                                                                                                                    \
        (void) sizeof((__VA_ARGS__, 0));                                                                                    \
    } while (0)

// x rounded up to a multiple of n, a power of two
#define GGML_PAD(x, n) (((x) + (n) -1) & ~((n) -1))

// For callers' own code: the library itself reports errors instead of aborting.
#define GGML_ABORT(...) ggml_abort(__FILE__, __LINE__, __VA_ARGS__)
#define GGML_ASSERT(x)                                                                                                      \
    if (!(x)) GGML_ABORT("GGML_ASSERT(%s) failed", #x)

// Declare const locals prefix0..prefix3 from pointer->array[0..3]; 0 for a null pointer.
#define GGML_TENSOR_LOCALS_1(type, prefix, pointer, array)                                                                  \
    const type prefix##0 = (pointer) ? (pointer)->array[0] : 0;                                                             \
    GGML_UNUSED(prefix##0);
#define GGML_TENSOR_LOCALS_2(type, prefix, pointer, array)                                                                  \
    GGML_TENSOR_LOCALS_1(type, prefix, pointer, array)                                                                      \
    const type prefix##1 = (pointer) ? (pointer)->array[1] : 0;                                                             \
    GGML_UNUSED(prefix##1);
#define GGML_TENSOR_LOCALS_3(type, prefix, pointer, array)                                                                  \
    GGML_TENSOR_LOCALS_2(type, prefix, pointer, array)                                                                      \
    const type prefix##2 = (pointer) ? (pointer)->array[2] : 0;                                                             \
    GGML_UNUSED(prefix##2);
#define GGML_TENSOR_LOCALS(type, prefix, pointer, array)                                                                    \
    GGML_TENSOR_LOCALS_3(type, prefix, pointer, array)                                                                      \
    const type prefix##3 = (pointer) ? (pointer)->array[3] : 0;                                                             \
    GGML_UNUSED(prefix##3);

#define GGML_TENSOR_UNARY_OP_LOCALS                                                                                         \
    GGML_TENSOR_LOCALS(int64_t, ne0, src0, ne)                                                                              \
    GGML_TENSOR_LOCALS(size_t, nb0, src0, nb)                                                                               \
    GGML_TENSOR_LOCALS(int64_t, ne, dst, ne)                                                                                \
    GGML_TENSOR_LOCALS(size_t, nb, dst, nb)
#define GGML_TENSOR_BINARY_OP_LOCALS                                                                                        \
    GGML_TENSOR_LOCALS(int64_t, ne0, src0, ne)                                                                              \
    GGML_TENSOR_LOCALS(size_t, nb0, src0, nb)                                                                               \
    GGML_TENSOR_LOCALS(int64_t, ne1, src1, ne)                                                                              \
    GGML_TENSOR_LOCALS(size_t, nb1, src1, nb)                                                                               \
    GGML_TENSOR_LOCALS(int64_t, ne, dst, ne)                                                                                \
    GGML_TENSOR_LOCALS(size_t, nb, dst, nb)
#define GGML_TENSOR_TERNARY_OP_LOCALS                                                                                       \
    GGML_TENSOR_LOCALS(int64_t, ne0, src0, ne)                                                                              \
    GGML_TENSOR_LOCALS(size_t, nb0, src0, nb)                                                                               \
    GGML_TENSOR_LOCALS(int64_t, ne1, src1, ne)                                                                              \
    GGML_TENSOR_LOCALS(size_t, nb1, src1, nb)                                                                               \
    GGML_TENSOR_LOCALS(int64_t, ne2, src2, ne)                                                                              \
    GGML_TENSOR_LOCALS(size_t, nb2, src2, nb)                                                                               \
    GGML_TENSOR_LOCALS(int64_t, ne, dst, ne)                                                                                \
    GGML_TENSOR_LOCALS(size_t, nb, dst, nb)
#define GGML_TENSOR_BINARY_OP_LOCALS01                                                                                      \
    GGML_TENSOR_LOCALS(int64_t, ne0, src0, ne)                                                                              \
    GGML_TENSOR_LOCALS(size_t, nb0, src0, nb)                                                                               \
    GGML_TENSOR_LOCALS(int64_t, ne1, src1, ne)                                                                              \
    GGML_TENSOR_LOCALS(size_t, nb1, src1, nb)

#ifdef __cplusplus
extern "C" {
#endif
// Prints the message (or hands it to the abort callback) and ends the process by abort().
GGML_API GGML_NORETURN void ggml_abort(const char *file, int line, const char *fmt, ...) GGML_ATTRIBUTE_FORMAT(3, 4);
#ifdef __cplusplus
}
#endif
