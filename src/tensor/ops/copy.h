// Copies between tensors of any types, shapes and layouts.
#pragma once

#include "ops/op.h"

// Element i of dst, in logical order, becomes element i of src, converted where the types differ: this thread's share. Both have
// the same number of elements, and copy_check has passed. src and dst may be the very same memory, but not overlap otherwise.
void copy_run(struct task *k, const struct ggml_tensor *src, const struct ggml_tensor *dst);
// Whether src can be copied to a tensor of dst's type, shape and strides. what: the operation's name, for the message.
MUST_USE enum err copy_check(const char *what, const struct ggml_tensor *src, const struct ggml_tensor *dst);
int copy_threads(const struct ggml_tensor *t, int n_threads);

// n elements of `size` bytes, ss bytes apart at s and ds bytes apart at d. d may be s.
void copy_elements(char *d, size_t ds, const char *s, size_t ss, size_t size, int64_t n);
// Elements e .. e + n of row s of src, stored to row d of dst in dst's type (multiples of both block sizes).
void copy_piece(const struct ggml_tensor *src, const char *s, const struct ggml_tensor *dst, char *d, int64_t e, int64_t n);
