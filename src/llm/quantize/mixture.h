// Which type each tensor gets in a mixture: a pure function of the tensor's role, its layer and the model's shape.
#pragma once

#include "base/err.h"
#include "block/weights.h"
#include "llama/enums.h"

// Facts of the model that the mixtures look at.
struct mixture_model {
    int n_layer, n_expert;
    int n_values;  // layers with values of attention, alone or in one matrix with others
    int n_gqa;     // query heads per key head in layer 0, at least 1
    bool tied;     // the embedding is the output matrix too
    bool has_imatrix;
    bool coarse;        // ARCH_COARSE
    bool finer_values;  // ARCH_FINER_VALUES, at the size where that is so
};

struct mixture_tensor {
    enum role role;
    int layer;    // -1: global
    int i_value;  // of the layers with values of attention, the how-manieth
    int i_down;   // of those with a feed forward; with experts the layer
    const int64_t *ne;
};

// The mixture's own type: that of every tensor that no rule mentions. GGML_TYPE_COUNT: not a mixture that can be made.
enum ggml_type mixture_type(enum llama_ftype ftype);
// Type of one tensor, before and after its row length is looked at: rows that do not hold whole blocks get the nearest type that fits.
enum ggml_type mixture_pick(enum llama_ftype ftype, const struct mixture_model *m, const struct mixture_tensor *t);
enum ggml_type mixture_fit(enum ggml_type type, int64_t ne0);
// Roles that are quantized at all (pure: more of them).
bool mixture_takes(enum role role, bool pure);
