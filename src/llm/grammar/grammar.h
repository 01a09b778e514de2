// Grammars in GBNF: compiled once, then matched against tokens.
//
// A grammar becomes rules over bytes (characters are spelled in UTF-8, so tokens may end inside one). The state of a match is a
// set of stacks of places in rules; stacks share their tails, and equal ones are one. Sets are numbered and their transitions by
// byte remembered, so that text that repeats (and checking 262,144 candidates against one state) costs a table look-up per byte.
#pragma once

#include "base/err.h"
#include "vocab/vocab.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct grammar;  // immutable; shared by matchers
struct matcher;  // one place in a text

// text: GBNF. root: the rule to begin with. vocab: for tokens by name, may be NULL if there are none.
// Errors: ERR_FORMAT with line and column of what is wrong, also for grammars that are left-recursive or too large.
enum err grammar_new(struct grammar **out, const char *text, const char *root, const struct llama_vocab *vocab) MUST_USE;
struct grammar *grammar_ref(struct grammar *g);
void grammar_free(struct grammar *g);  // gives back one reference

enum err matcher_new(struct matcher **out, struct grammar *g, const struct llama_vocab *vocab) MUST_USE;
enum err matcher_clone(struct matcher **out, const struct matcher *m) MUST_USE;
void matcher_free(struct matcher *m);
void matcher_reset(struct matcher *m);
// Goes on by a token, or by bytes. False: they do not fit; nothing fits any more then.
bool matcher_accept(struct matcher *m, llama_token token);
bool matcher_accept_bytes(struct matcher *m, const char *p, size_t len);
// Whether the text so far is whole.
bool matcher_done(const struct matcher *m);
bool matcher_dead(const struct matcher *m);
// Whether a token may come next. Tokens that end a generation may where the text is whole (or dead).
bool matcher_allows(struct matcher *m, llama_token token);
// One bit per token of the vocabulary, for many checks at one place. Owner: m; valid until the next call. NULL: no memory.
const uint8_t *matcher_mask(struct matcher *m);
