// Sets of code points as the patterns of pre-tokenizers name them ([^\r\n\p{L}\p{N}], \s, [一-龥], ...), and tables that
// tell in one load which of up to 32 such sets a character belongs to.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CHARSET_MAX_RANGES 192
#define CHARSET_MAX_SETS 32

struct charset {
    uint32_t cats;  // bit per general category, in utf8proc's numbering
    bool space, han, negated;
    int n_range;
    struct {
        uint32_t lo, hi;
    } ranges[CHARSET_MAX_RANGES];
    const struct charset *minus;  // taken away at the end; owned by whoever owns this set
};

// Reads one set at *p: a class in brackets, an escape, or a literal character. Advances *p. False if the syntax is not known.
bool charset_parse(struct charset *set, const char **p, const char *end);
bool charset_has(const struct charset *set, uint32_t c);
// \s of PCRE2 with Unicode properties.
bool charset_is_space(uint32_t c);
bool charset_is_letter_or_number(uint32_t c);

// Membership in several sets at once: bit i of charmap_get is set i. Pages beyond ASCII are filled when first met.
struct charmap {
    uint32_t ascii[128];
    const struct charset *sets;
    int n_set;
    _Atomic(uint32_t *) pages[0x1100];
};
struct charmap *charmap_new(const struct charset *sets, int n_set);  // sets must outlive it; NULL: no memory
void charmap_free(struct charmap *map);
uint32_t charmap_slow(const struct charmap *map, uint32_t c);
static inline uint32_t charmap_get(const struct charmap *map, uint32_t c) {
    return c < 128 ? map->ascii[c] : charmap_slow(map, c);
}
