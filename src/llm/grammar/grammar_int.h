// Private parts of src/llm/grammar: what a compiled grammar holds.
#pragma once

#include "grammar/grammar.h"
#include <stdatomic.h>

enum elem_kind { ELEM_END, ELEM_RULE, ELEM_BYTES, ELEM_TOKEN, ELEM_NOT_TOKEN };

struct elem {
    enum elem_kind kind;
    uint32_t value;  // rule, set of bytes, or token
};

struct byte_set {
    uint64_t bits[4];
};

struct rule {
    uint32_t first, n;  // its alternatives in grammar.alts; n 0: named, but not defined (an error at the end)
};

struct grammar {
    atomic_int refs;
    struct elem *elems;
    size_t n_elem, cap_elem;
    uint32_t *alts;  // where each alternative's elements start
    size_t n_alt, cap_alt;
    struct rule *rules;
    size_t n_rule, cap_rule;
    struct byte_set *sets;
    size_t n_set, cap_set;
    uint32_t root;
    uint8_t byte_class[256];  // bytes that no set tells apart
    uint8_t class_byte[256];  // one byte of each class
    int n_class;
    bool has_tokens;
};

static inline bool byte_set_has(const struct byte_set *s, uint8_t b) { return s->bits[b >> 6] >> (b & 63) & 1; }
static inline void byte_set_add(struct byte_set *s, uint32_t lo, uint32_t hi) {
    for (uint32_t b = lo; b <= hi; b++) s->bits[b >> 6] |= (uint64_t) 1 << (b & 63);
}

#define GRAMMAR_MAX_ELEMS ((size_t) 1 << 20)
#define GRAMMAR_MAX_DEPTH 256  // of parentheses

// ---- build.c: growing a grammar. ERR_FORMAT without a sentence: too large.
enum err grammar_add_elem(struct grammar *g, struct elem e) MUST_USE;
enum err grammar_add_alt(struct grammar *g, uint32_t start) MUST_USE;
enum err grammar_add_rule(struct grammar *g, uint32_t *rule) MUST_USE;
enum err grammar_add_set(struct grammar *g, struct byte_set s, uint32_t *set) MUST_USE;
// The element for a set of code points, given as sorted ranges that do not touch.
struct range {
    uint32_t lo, hi;
};
enum err grammar_char_elem(struct grammar *g, const struct range *ranges, size_t n, struct elem *e) MUST_USE;
void grammar_make_classes(struct grammar *g);
// Marks in bad [n_rule] the rules that come to themselves without eating anything and with something left to do.
enum err grammar_left_recursive(const struct grammar *g, uint8_t *bad, bool *found) MUST_USE;
