// Shared by the files that convert: what is to be written, and from where.
#pragma once

#include "arch/arch.h"
#include "convert/checkpoint.h"
#include "convert/config.h"
#include "convert/view.h"
#include "llama/ext.h"

#include <stdio.h>

// A tensor of the checkpoint, or a cut through it, that is written whole.
struct segment {
    struct ckpt_tensor *t;
    struct view *view;  // owned; NULL: as it is
    float mul;          // 1: as they are
};

// What of a row of the architecture's table is wanted.
enum row_part { PART_WEIGHT, PART_BIAS, PART_SCALE };

// One tensor to write, and where it comes from: segments one after the other, or values.
struct piece {
    char name[GGML_MAX_NAME];
    struct segment *segments;
    int n_segments;
    float *values;          // what config.json says; owned
    struct ggml_tensor *t;  // header in the file's order
    enum op { OP_NONE, OP_PLUS, OP_MINUS_EXP, OP_EXP } op;
    float plus;  // OP_PLUS: how much
    // Rows of projections: heads whose dims go from halves to pairs, fused rows that lie by groups of heads.
    int n_head, n_head_kv, n_dim, n_rot, rot_at;
    bool pairs, groups, fused, halves;  // halves: the other way round, from pairs
    bool swapped;                       // from halves to the same halves in the other order
    bool product;                       // of vectors: the segments are multiplied
};

struct convert {
    const struct llama_convert_params *params;
    const struct ckpt_class *cls;
    const struct arch *arch;
    struct checkpoint c;
    json_t *config;
    struct gguf_context *out;
    struct ggml_context *ctx;  // headers of the tensors
    struct hparams hp;
    int n_own, n_nextn;  // layers of the model itself, and of its draft head
    struct piece *pieces;
    int n_pieces, room;
};

// The checkpoint's tensor for a global row of the table; NULL: it has none, or it isn't one tensor.
struct ckpt_tensor *convert_find(const struct convert *k, const struct arch_tensor *row);
// Layers of the longest stack.
int convert_layers(const struct convert *k);
// Every tensor of layer il (-1: global) as pieces.
MUST_USE enum err convert_take_layer(struct convert *k, int il);
// Names the checkpoint's tensors that nothing took, so that nothing is lost without a word.
void convert_name_the_rest(const struct convert *k);
// The file, written beside path and renamed. Memory: a few MB, whatever the tensors' sizes.
MUST_USE enum err convert_write_file(struct convert *k, const char *path);
