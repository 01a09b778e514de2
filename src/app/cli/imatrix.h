// Importance matrices: per tensor and input column, the mean square of the activations that a model saw.
//
// The file is GGUF: general.type "imatrix", imatrix.datasets, imatrix.chunk_count, imatrix.chunk_size, and for every weight two F32
// tensors, NAME.in_sum2 {columns, experts} and NAME.counts {1, experts}. The form before that (.dat) is read too.
#pragma once

#include "llama.h"

struct imatrix;

// NULL after a sentence on stderr. Values that are not finite or negative are refused with the tensor's name.
struct imatrix *imatrix_load(const char *path);
// The means, ended by an entry without a name. Owner: the matrix.
const struct llama_model_imatrix_data *imatrix_data(const struct imatrix *m);
// Leaves out entries for which it is not to be used: those whose name contains none of `only` (if there are any), or one of `without`.
void imatrix_select(struct imatrix *m, const char *const *only, int n_only, const char *const *without, int n_without);
// Keys by which a quantized file says what it was measured on, and their end.
void imatrix_about(const struct imatrix *m, const char *path, struct llama_model_kv_override out[5]);
void imatrix_free(struct imatrix *m);

// Collecting: an empty matrix; rows of activations are added by weight name; saving renames a temporary file into place.
struct imatrix *imatrix_new(void);
// x [n_column] of one token for expert `expert` of n_expert (0 of 1 where there are none). 0, or 1 after a sentence.
int imatrix_add(struct imatrix *m, const char *name, const float *x, int64_t n_column, int expert, int n_expert);
// Adds what a file holds. 0, or 1 after a sentence.
int imatrix_merge(struct imatrix *m, const char *path);
// dataset, n_chunk, chunk_size: of what was added beside files; NULL, 0, 0: nothing was.
int imatrix_save(struct imatrix *m, const char *path, const char *dataset, int n_chunk, int chunk_size);
