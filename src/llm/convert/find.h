// Finding the tensors of a row: convert_int.h's tensors.c asks, find.c answers.
#pragma once

#include "convert/convert_int.h"

struct found_one {
    struct ckpt_tensor *t;
    int part;  // which of "a&b"
};

struct found {
    struct found_one *one;
    int n, room;
    const struct ckpt_name *how;  // the class's row, NULL: the usual name
};

// The checkpoint's tensors for a row of the table in layer il (-1: global); out->n = 0: there are none.
// Owner of out->one: the caller (found_free). Errors: some of several are missing or differ in shape; no memory.
MUST_USE enum err convert_search(const struct convert *k, const struct arch_tensor *row, int il, enum row_part what,
                                 struct found *out);
// The path of a row's values in config.json where the class says that no tensor has them ("=path"); NULL: it does not.
const char *convert_constant(const struct convert *k, const struct arch_tensor *row);
void found_free(struct found *f);
// The name that checkpoints give the row where the class has none of its own; NULL: none is known.
const char *convert_usual_names(const struct arch_tensor *row);
