// The tile registers as the files that use them see them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define AMX __attribute__((target("amx-tile,amx-int8,amx-bf16")))
#define AMX_INLINE static inline __attribute__((always_inline, target("amx-tile,amx-int8,amx-bf16")))

#define TILE_LOAD(t, p, stride)                                                                                             \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t : : "r"(p), "r"((size_t) (stride)) : "memory")
#define TILE_STORE(t, p, stride)                                                                                            \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" : : "r"(p), "r"((size_t) (stride)) : "memory")
#define TILE_ZERO(t) __asm__ volatile("tilezero %%tmm" #t : :)

struct tile_config {
    uint8_t palette, start_row, zero[14];
    uint16_t col_bytes[16];
    uint8_t rows[16];
};
AMX_INLINE void tile_configure(const struct tile_config *t) { __asm__ volatile("ldtilecfg %0" : : "m"(*t)); }
AMX_INLINE void tile_release(void) { __asm__ volatile("tilerelease" : :); }
