// Parts of FLASH_ATTN_EXT shared by its two files: flash_attn_ext.c (builders, shapes, descriptor), flash_attn_run.c (the work).
#pragma once

#include "ops/op.h"

// Places in op_params (4-byte words) and in src.
enum { FA_SCALE = 0, FA_MAX_BIAS, FA_SOFTCAP, FA_PREC, FA_N_KV_MAX, FA_N_PARAM };
enum { FA_Q = 0, FA_K, FA_V, FA_MASK, FA_SINKS, FA_QUERY, FA_TABLE };

size_t flash_attn_scratch(const struct ggml_tensor *t, int n_threads);
void flash_attn_run(struct task *k, struct ggml_tensor *t);
