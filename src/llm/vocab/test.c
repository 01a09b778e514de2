// Made-up vocabularies of test models ("tok_0", "tok_1", ...): tokens have texts, but no text is ever cut into them.
#include "vocab/vocab_int.h"

static size_t piece(const char *text, size_t len, enum llama_token_attr attr, char *out, struct llama_vocab *v,
                    bool *findable) {
    (void) attr;
    (void) v;
    *findable = false;
    memcpy(out, text, len);
    return len;
}

const struct vocab_kind vocab_kind_test = {
    .type = LLAMA_VOCAB_TYPE_TEST,
    .model = "test",
    .name = "test",
    .bos = -1,
    .eos = -1,
    .unk = -1,
    .sep = -1,
    .pad = -1,
    .mask = -1,
    .piece = piece,
};
