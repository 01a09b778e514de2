// Vocabularies of tiktoken's kind: a line for each token, its bytes in base64 and its rank. Of two neighbours whose bytes together are a
// token, those are joined first whose token has the lowest rank; files keep that as a list of merges.
#pragma once

#include "convert/vocab_out.h"

#include <stdbool.h>
#include <stddef.h>

// Whether a line [n] looks like one.
bool ranks_line(const char *line, size_t n);
// Takes a line: the rank is the token's id, its text the bytes as GPT-2 writes them. Errors: it isn't one, vocab_out_set's.
MUST_USE enum err ranks_add(struct vocab_out *v, const char *line, size_t n);
// The merges of all tokens taken so far: every pair that makes one, lower ranks first. Errors: no memory.
MUST_USE enum err ranks_merges(struct vocab_out *v);
