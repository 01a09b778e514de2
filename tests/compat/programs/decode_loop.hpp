// What programs with a decode loop of several sequences share: an end that names the line, entries of a batch, words, the likeliest token.
#pragma once

#include "llama-cpp.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define DIE(code)                                                                                                           \
    do {                                                                                                                    \
        fprintf(stderr, "line %d\n", __LINE__);                                                                             \
        exit(code);                                                                                                         \
    } while (0)

static inline void add(llama_batch &b, llama_token id, llama_pos pos, const std::vector<llama_seq_id> &seqs, bool logits) {
    b.token[b.n_tokens] = id;
    b.pos[b.n_tokens] = pos;
    b.n_seq_id[b.n_tokens] = (int32_t) seqs.size();
    for (size_t i = 0; i < seqs.size(); i++) b.seq_id[b.n_tokens][i] = seqs[i];
    b.logits[b.n_tokens++] = logits;
}

static inline std::vector<llama_token> tokenize(const llama_vocab *v, const std::string &s, bool special = true) {
    std::vector<llama_token> t((size_t) -llama_tokenize(v, s.c_str(), (int32_t) s.size(), NULL, 0, special, true));
    if (llama_tokenize(v, s.c_str(), (int32_t) s.size(), t.data(), (int32_t) t.size(), special, true) != (int32_t) t.size())
        DIE(99);
    return t;
}

static inline llama_token best(llama_context *ctx, int i) {
    const int n = llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(ctx)));
    const float *l = llama_get_logits_ith(ctx, i);
    if (!l) DIE(98);
    return (llama_token) (std::max_element(l, l + n) - l);
}

static inline std::string piece(const llama_vocab *v, llama_token t) {
    char b[256];
    const int n = llama_token_to_piece(v, t, b, sizeof b, 0, true);
    if (n < 0) DIE(97);
    return std::string(b, (size_t) n);
}
