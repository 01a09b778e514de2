// A checkpoint on disk: the tensors of one or several safetensors files, and the JSON files beside them.
//
// A safetensors file is a u64 (size of the header), a JSON header {name: {dtype, shape, data_offsets}}, and the data. Everything in
// the header is checked against the file before it is used; data is read in pieces.
// Source: https://github.com/huggingface/safetensors (format description).
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/map.h"

#include <jansson.h>

enum ckpt_kind { CKPT_PLAIN, CKPT_E4M3, CKPT_E5M2, CKPT_E8M0, CKPT_MXFP4 };  // the others: packed.h

struct ckpt_tensor {
    const char *name;     // owner: the checkpoint
    enum ckpt_kind kind;  // how values are kept
    enum ggml_type type;  // F32, F16, BF16, F64, I8, I16, I32 or I64; of no meaning but for plain ones
    int n_dims;
    int64_t shape[4];  // outermost first, as the file has it
    int i_file;
    uint64_t offset;  // of the data, in the file
    uint64_t bytes;
    int64_t i_scale;  // index of the tensor with its scales, -1: none
    bool used;        // set by whoever takes it, so that what was left over can be named
};

struct checkpoint {
    char dir[4096];
    struct file *files;
    int n_files;
    json_t **headers;  // [n_files]; hold the names
    struct ckpt_tensor *tensors;
    size_t n_tensors, room;
    struct map by_name;
    struct arena arena;          // names of joined tensors
    int64_t block[2];            // rows and columns that share a scale, as config.json says; 0: it doesn't
    struct scale_cache *scales;  // packed.c's
};

// path: a folder with model.safetensors or model.safetensors.index.json, or one .safetensors file.
MUST_USE enum err checkpoint_open(struct checkpoint *c, const char *path);
void checkpoint_close(struct checkpoint *c);                                          // takes a zeroed or half-open one too
MUST_USE enum err checkpoint_add(struct checkpoint *c, const struct ckpt_tensor *t);  // for packed.c: one more, copied

struct ckpt_tensor *checkpoint_find(const struct checkpoint *c, const char *name);  // NULL if there is none
// Its n values from i0 on as F32 into out. Integers are converted too.
MUST_USE enum err checkpoint_read(const struct checkpoint *c, const struct ckpt_tensor *t, int64_t i0, int64_t n,
                                  float *out);
int64_t ckpt_tensor_count(const struct ckpt_tensor *t);

// A JSON file of the folder; *out is NULL (and no error) if it is not there and need is false. Owner of *out: the caller.
MUST_USE enum err checkpoint_json(const struct checkpoint *c, const char *name, bool need, json_t **out);
