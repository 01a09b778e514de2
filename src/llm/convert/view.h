// A tensor of the file as a cut through one of the checkpoint: which axes the checkpoint's values have, what is taken of them, and in which
// order they follow each other in the file. Fused experts, interleaved halves, projections stored the other way round and the two
// halves of latent attention are all that.
#pragma once

#include "block/hparams.h"
#include "convert/checkpoint.h"

#define VIEW_MAX_AXES 6

struct view {
    int n_axes;  // in the file's order, the fastest first; neighbours that lie together are one
    struct {
        int64_t n, stride;  // in values
    } axis[VIEW_MAX_AXES];
    int64_t start;  // first value
    int64_t total;  // values taken
};

// text: "size,size[from:to],... > order": sizes of the checkpoint's axes, outermost first, as expressions over hparams (block/hparams.def), of
// which [from:to] takes a range; then one digit per axis: their order in the file, outermost first. Without "> order" it is kept.
// "H,kd-R+vd[0:kd-R],r > 021" are the keys' rows of DeepSeek's kv_b, each head's matrix transposed.
// "@offset;size,..." begins at that value and need not be all. "a~b": the first whose sizes are the tensor's own sides, else the last.
// Errors: the sizes don't make up the tensor (the sentence names it).
MUST_USE enum err view_parse(const char *text, const struct hparams *hp, int il, const struct ckpt_tensor *t,
                             struct view *v);
// A matrix with its rows and columns exchanged.
struct view view_transposed(const struct ckpt_tensor *t);
// Values [i0, i0 + n) of the view as F32 into out. Few reads where i0 and n are whole runs of the axes that are out of order.
MUST_USE enum err view_read(const struct checkpoint *c, const struct ckpt_tensor *t, const struct view *v, int64_t i0,
                            int64_t n, float *out);
