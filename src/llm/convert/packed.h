// Weights that checkpoints keep in 8 or 4 bits with scales in a tensor beside them.
#pragma once

#include "convert/checkpoint.h"

// Joins what belongs together, once all headers are read: "NAME_scale_inv", "NAME_scale", or "A.scale" where NAME is "A.weight", become the
// scales of an 8-bit float NAME, or with bytes NAME one tensor of MXFP4; so do "NAME_packed" and "NAME_scale"; "NAME_blocks" and "NAME_scales"
// become one "NAME.mxfp4", whose last axis is 32 times the blocks' number. Errors: scales of no known form.
MUST_USE enum err packed_join(struct checkpoint *c);
// Values [i0, i0 + n) as F32; t->kind is not CKPT_PLAIN.
MUST_USE enum err packed_read(const struct checkpoint *c, const struct ckpt_tensor *t, int64_t i0, int64_t n, float *out);
void packed_free(struct checkpoint *c);
