// The memory of a context: sequences of positions. A position of a sequence exists or not, whatever kinds of cache and state the model
// has: all of them follow. Sequence ids are 0 .. n_seq_max - 1; ranges are [p0, p1), p0 < 0 means 0, p1 < 0 means no end. A NULL memory
// (encoders) has no positions. Thread: none of these while the context computes.
#pragma once

#include "llama/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Forgets all positions of all sequences. data: the cells are also set to zero.
LLAMA_API void llama_memory_clear(llama_memory_t mem, bool data);
// Removes positions of a sequence (seq_id < 0: of every one). Returns false, with nothing changed, where that is impossible: a part of a
// recurrent state (but a tail may go if the state before it was kept, n_rs_seq), a tail behind which a window's positions are gone, or
// an id that doesn't exist.
LLAMA_API bool llama_memory_seq_rm(llama_memory_t mem, llama_seq_id seq_id, llama_pos p0, llama_pos p1);
// Gives seq_id_dst the positions of seq_id_src in the range. Blocks of cells are shared until one of both writes; recurrent states are
// copied whole, up to p1. Errors: ids out of range, no state at p1: a sentence at ggml_last_error(), nothing changed.
LLAMA_API void llama_memory_seq_cp(llama_memory_t mem, llama_seq_id seq_id_src, llama_seq_id seq_id_dst, llama_pos p0,
                                   llama_pos p1);
// Removes all sequences but this one.
LLAMA_API void llama_memory_seq_keep(llama_memory_t mem, llama_seq_id seq_id);
// Adds delta to the positions in the range; those that become negative are removed. Keys are rotated accordingly before the next
// computation, so results agree with a fresh evaluation up to rounding.
LLAMA_API void llama_memory_seq_add(llama_memory_t mem, llama_seq_id seq_id, llama_pos p0, llama_pos p1, llama_pos delta);
// Divides the positions in the range by d >= 1, rounding down. Several tokens may then share a position.
LLAMA_API void llama_memory_seq_div(llama_memory_t mem, llama_seq_id seq_id, llama_pos p0, llama_pos p1, int d);
// The smallest position of which everything is still there (windowed layers may have forgotten older ones, recurrent ones all but the
// last), -1 if the sequence is empty.
LLAMA_API llama_pos llama_memory_seq_pos_min(llama_memory_t mem, llama_seq_id seq_id);
// The greatest position, -1 if the sequence is empty. The next token goes to the position after it.
LLAMA_API llama_pos llama_memory_seq_pos_max(llama_memory_t mem, llama_seq_id seq_id);
// Whether seq_add can move positions: not with recurrent states.
LLAMA_API bool llama_memory_can_shift(llama_memory_t mem);

#ifdef __cplusplus
}
#endif
