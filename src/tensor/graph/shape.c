// Sizes, and questions about shape and layout. ne[0] is the innermost dimension; nb[i] is the distance in bytes between
// neighbours along dimension i (between blocks for i = 0 where the type has blocks).
// NULL, which a look-up by name may give, has no size and no shape: 0 and false.
#include "graph/graph_int.h"
#include "type/type.h"

#include <string.h>

int64_t ggml_nelements(const struct ggml_tensor *tensor) {
    return tensor ? tensor->ne[0] * tensor->ne[1] * tensor->ne[2] * tensor->ne[3] : 0;
}

int64_t ggml_nrows(const struct ggml_tensor *tensor) { return tensor ? tensor->ne[1] * tensor->ne[2] * tensor->ne[3] : 0; }

// From the first byte to the last one that belongs to an element, whatever the order of the strides.
size_t ggml_nbytes(const struct ggml_tensor *tensor) {
    if (!tensor || ggml_is_empty(tensor)) return 0;
    const int64_t block = ggml_blck_size(tensor->type);
    size_t bytes = block == 1 ? ggml_type_size(tensor->type) + (size_t) (tensor->ne[0] - 1) * tensor->nb[0]
                              : (size_t) tensor->ne[0] * tensor->nb[0] / (size_t) block;
    for (int i = 1; i < GGML_MAX_DIMS; i++) bytes += (size_t) (tensor->ne[i] - 1) * tensor->nb[i];
    return bytes;
}

size_t ggml_nbytes_pad(const struct ggml_tensor *tensor) { return GGML_PAD(ggml_nbytes(tensor), (size_t) GGML_MEM_ALIGN); }

size_t ggml_element_size(const struct ggml_tensor *tensor) { return tensor ? ggml_type_size(tensor->type) : 0; }

bool ggml_is_transposed(const struct ggml_tensor *tensor) { return tensor && tensor->nb[0] > tensor->nb[1]; }

bool ggml_is_permuted(const struct ggml_tensor *tensor) {
    return tensor && (tensor->nb[0] > tensor->nb[1] || tensor->nb[1] > tensor->nb[2] || tensor->nb[2] > tensor->nb[3]);
}

bool ggml_is_empty(const struct ggml_tensor *tensor) {
    return tensor && (tensor->ne[0] == 0 || tensor->ne[1] == 0 || tensor->ne[2] == 0 || tensor->ne[3] == 0);
}

bool ggml_is_view(const struct ggml_tensor *tensor) { return tensor && tensor->view_src != NULL; }

bool ggml_is_scalar(const struct ggml_tensor *tensor) {
    return tensor && tensor->ne[0] == 1 && tensor->ne[1] == 1 && tensor->ne[2] == 1 && tensor->ne[3] == 1;
}

bool ggml_is_vector(const struct ggml_tensor *tensor) {
    return tensor && tensor->ne[1] == 1 && tensor->ne[2] == 1 && tensor->ne[3] == 1;
}

bool ggml_is_matrix(const struct ggml_tensor *tensor) { return tensor && tensor->ne[2] == 1 && tensor->ne[3] == 1; }

bool ggml_is_3d(const struct ggml_tensor *tensor) { return tensor && tensor->ne[3] == 1; }

int ggml_n_dims(const struct ggml_tensor *tensor) {
    if (!tensor) return 0;
    for (int i = GGML_MAX_DIMS - 1; i > 0; i--) {
        if (tensor->ne[i] > 1) return i + 1;
    }
    return 1;
}

// Whether dimensions [0, to) follow each other without gaps, not counting the stride of dimensions 1 .. free (which
// then begin a new run). The stride of a dimension of one element (or block) does not matter.
static bool packed(const struct ggml_tensor *t, int free, int to) {
    if (!t) return false;
    const struct type *facts = type_facts(t->type);
    if (!facts) return false;
    const int64_t block = facts->block;
    size_t next = facts->size;
    if (t->ne[0] != block && t->nb[0] != next) return false;
    next *= (size_t) (block == 1 ? t->ne[0] : t->ne[0] / block);
    for (int i = 1; i < to; i++) {
        if (i <= free) {
            next = t->nb[i];
        } else if (t->ne[i] != 1 && t->nb[i] != next) {
            return false;
        }
        next *= (size_t) t->ne[i];
    }
    return true;
}

bool ggml_is_contiguous_0(const struct ggml_tensor *tensor) { return packed(tensor, 0, 4); }
bool ggml_is_contiguous(const struct ggml_tensor *tensor) { return packed(tensor, 0, 4); }
bool ggml_is_contiguous_1(const struct ggml_tensor *tensor) { return packed(tensor, 1, 4); }
bool ggml_is_contiguous_2(const struct ggml_tensor *tensor) { return packed(tensor, 2, 4); }
bool ggml_is_contiguous_to_1(const struct ggml_tensor *tensor) { return packed(tensor, 0, 1); }
bool ggml_is_contiguous_to_2(const struct ggml_tensor *tensor) { return packed(tensor, 0, 2); }
bool ggml_is_contiguous_to_3(const struct ggml_tensor *tensor) { return packed(tensor, 0, 3); }

bool ggml_is_contiguously_allocated(const struct ggml_tensor *tensor) {
    if (!tensor) return false;
    const size_t n_block = (size_t) (ggml_nelements(tensor) / ggml_blck_size(tensor->type));
    return ggml_nbytes(tensor) == n_block * ggml_type_size(tensor->type);
}

bool ggml_is_contiguous_channels(const struct ggml_tensor *tensor) {
    return tensor && tensor->nb[0] > tensor->nb[2] && tensor->nb[1] > tensor->nb[0] &&
           tensor->nb[2] == ggml_type_size(tensor->type);
}

bool ggml_is_contiguous_rows(const struct ggml_tensor *tensor) {
    return tensor && (tensor->ne[0] == ggml_blck_size(tensor->type) || tensor->nb[0] == ggml_type_size(tensor->type));
}

bool ggml_are_same_shape(const struct ggml_tensor *t0, const struct ggml_tensor *t1) {
    return t0 && t1 && memcmp(t0->ne, t1->ne, sizeof t0->ne) == 0;
}

bool ggml_are_same_stride(const struct ggml_tensor *t0, const struct ggml_tensor *t1) {
    return t0 && t1 && memcmp(t0->nb, t1->nb, sizeof t0->nb) == 0;
}

bool ggml_can_repeat(const struct ggml_tensor *t0, const struct ggml_tensor *t1) {
    if (!t0 || !t1) return false;
    if (ggml_is_empty(t0)) return ggml_is_empty(t1);
    for (int i = 0; i < GGML_MAX_DIMS; i++) {
        if (t1->ne[i] % t0->ne[i] != 0) return false;
    }
    return true;
}
