// Weights that checkpoints keep in 8 or 4 bits with scales in a tensor beside them.
#pragma once

#include "convert/checkpoint.h"

// Joins what belongs together, once all headers are read: "NAME_scale_inv" and "NAME_scale" become the scales of an 8-bit float NAME;
// "NAME_blocks" and "NAME_scales" (MXFP4) become one tensor "NAME.mxfp4", whose last axis is 32 times the blocks' number.
MUST_USE enum err packed_join(struct checkpoint *c);
// Values [i0, i0 + n) as F32; t->kind is not CKPT_PLAIN.
MUST_USE enum err packed_read(const struct checkpoint *c, const struct ckpt_tensor *t, int64_t i0, int64_t n, float *out);
void packed_free(struct checkpoint *c);
