// The model file of the sentencepiece library (tokenizer.model): a protocol-buffer message.
#pragma once

#include "convert/vocab_out.h"

struct spm_facts {
    bool unigram;  // else byte-pair merges
    bool add_dummy_prefix, remove_extra_whitespaces;
    int32_t unk, bos, eos, pad;
    const char *charsmap;  // precompiled normalization, NULL if none; points into the data
    size_t charsmap_bytes;
};

// Takes the pieces of data [n] into v and the rest into *facts. Errors: not such a message, with the offset.
MUST_USE enum err spm_parse(const char *data, size_t n, struct vocab_out *v, struct spm_facts *facts);
