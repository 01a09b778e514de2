// Reading GPT-2 models and their vocabulary, for the four programs of this folder. Two formats: GGUF (architecture gpt2)
// and the older single-file format (magic "ggml"). Everything else, each program does for itself: that is what they are
// there to show.
#pragma once

#include "ggml.h"
#include "ggml-backend.h"

#include <stdio.h>

struct gpt2_hparams {
    int n_vocab, n_ctx, n_embd, n_head, n_layer;
    float eps;
};

// Where a tensor lies in the file. Names are those of GGUF, whatever the format.
struct gpt2_entry {
    char name[64];
    enum ggml_type type;
    int64_t ne[2];
    long offset;
};

struct gpt2_file {
    FILE *f;
    struct gpt2_hparams hp;
    struct gpt2_entry *entries;
    int n_entries;
    char *text;     // all pieces of the vocabulary, one after the other
    size_t *piece;  // [n_vocab + 1] where each starts
};

// Reads everything but the weights. On failure prints why and returns false; close is then a no-op.
bool gpt2_open(struct gpt2_file *file, const char *path);
void gpt2_close(struct gpt2_file *file);

// Greedy longest match. Returns the number of tokens, at most max.
int gpt2_tokenize(const struct gpt2_file *file, const char *text, int32_t *tokens, int max);
void gpt2_print(const struct gpt2_file *file, int32_t token);

struct gpt2_layer {
    struct ggml_tensor *ln_1_g, *ln_1_b, *qkv_w, *qkv_b, *proj_w, *proj_b;
    struct ggml_tensor *ln_2_g, *ln_2_b, *up_w, *up_b, *down_w, *down_b;
};

struct gpt2_weights {
    struct ggml_tensor *wte, *wpe, *ln_f_g, *ln_f_b;
    struct ggml_tensor *lm_head;  // wte itself, unless separate_head
    struct gpt2_layer *layers;    // [n_layer]
};

// Makes a tensor in ctx for every weight; with no_alloc these are headers only. separate_head: lm_head is a tensor of its
// own with the same content, so that it can lie on another device.
bool gpt2_make_weights(const struct gpt2_file *file, struct ggml_context *ctx, bool separate_head, struct gpt2_weights *w);
void gpt2_free_weights(struct gpt2_weights *w);
// Number of tensors that gpt2_make_weights makes at most, and the bytes of their data.
int gpt2_n_tensors(const struct gpt2_file *file);
size_t gpt2_data_bytes(const struct gpt2_file *file);
// Reads the data of every tensor of ctx, which must have its memory, into wherever it lies.
bool gpt2_read_weights(const struct gpt2_file *file, struct ggml_context *ctx);
