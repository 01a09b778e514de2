// The memory as bytes: what state files hold. Blocks of cells that sequences share are written once and shared again when read.
#pragma once

#include "memory/memory.h"

// Writes, or, with dst NULL, only counts. Every byte goes into the checksum.
struct state_out {
    uint8_t *dst;
    size_t n, cap;
    bool overflow;
    uint64_t hash;
};

struct state_in {
    const uint8_t *src;
    size_t n, at;
    bool bad;
};

void state_put(struct state_out *o, const void *data, size_t n);
static inline void state_put_i32(struct state_out *o, int32_t v) { state_put(o, &v, 4); }
// n bytes in place, NULL at the end of the data (and bad from then on).
const void *state_take(struct state_in *in, size_t n);
int32_t state_take_i32(struct state_in *in);
uint64_t state_hash(uint64_t h, const void *data, size_t n);

// seq < 0: all sequences. partial: only what can't be had by keeping the cache: windowed layers and recurrent states.
void memory_write(struct llama_memory_i *m, struct state_out *o, int32_t seq, bool partial);
// Reads what memory_write wrote; one sequence may go to another id. Everything is checked first; ERR: a sentence, nothing changed.
MUST_USE enum err memory_read(struct llama_memory_i *m, struct state_in *in, int32_t dest_seq, bool partial);
