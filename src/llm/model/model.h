// A loaded model: what its file says, its weights in the buffers of the devices, its vocabulary.
#pragma once

#include "arch/arch.h"
#include "base/file.h"
#include "base/map.h"
#include "llama.h"

#define MODEL_MAX_DEVICES 16

// One file (shard) that tensors come from.
struct source {
    struct file file;
    bool open;
    struct gguf_context *gguf;
    uint64_t base;  // where the GGUF begins in the file
};

// One tensor of the model and where its bytes are.
struct model_tensor {
    struct ggml_tensor *t;
    int source;  // -1: the user supplies it
    int64_t id;  // in the source's gguf
    ggml_backend_buffer_type_t buft;
    enum role role;
    enum slot slot;
    int layer;  // -1: global
    bool copy;  // a second copy of another entry's bytes (tied output on another device)
};

struct model_map {
    struct file_map map;
    int source;   // the file
    uint64_t at;  // map.base in it
    ggml_backend_buffer_t buf;
};

struct llama_model {
    const struct arch *arch;
    struct hparams hp;
    struct llama_model_params params;
    struct gguf_context *meta;  // keys, with overrides; without any it is the first source's
    struct llama_vocab *vocab;
    struct globals w;
    struct layer *layers, *enc_layers;
    int n_layers_alloc;
    int n_nextn;  // layers of a draft head that were loaded (load_mtp), behind the model's own
    struct source *sources;
    int n_sources;
    struct map index;  // tensor name -> source << 32 | id
    struct model_tensor *tensors;
    int n_tensors, cap_tensors;
    struct tensor_home home;      // contexts of the tensors by kind of buffer
    ggml_backend_buffer_t *bufs;  // all buffers, mapped ones included
    int n_bufs;
    struct model_map *maps;
    int n_maps;
    ggml_backend_dev_t dev[MODEL_MAX_DEVICES];  // devices besides the CPU that take part
    int n_dev;
    ggml_backend_dev_t cpu;
    ggml_backend_dev_t layer_dev[MAX_LAYERS], output_dev;
    uint64_t n_params, n_bytes;
    uint64_t n_params_nextn, n_bytes_nextn;  // of those, the draft head's
    enum llama_ftype ftype;
    int64_t t_load_us, t_start_us;
    struct llama_adapter_lora **adapters;  // freed with the model unless freed before
    int n_adapters;
    uint64_t n_adapters_ever;
    bool plan_only;  // no vocabulary either: for plans from the header alone
};

// load.c
// Shapes and places alone, without vocabulary; NULL after a sentence. Milliseconds.
struct llama_model *model_load_plan(const char *path, struct llama_model_params params);
// files.c
MUST_USE enum err sources_open(struct llama_model *m, const char *path);
MUST_USE enum err sources_open_list(struct llama_model *m, const char *const *paths, size_t n);
MUST_USE enum err sources_open_stream(struct llama_model *m, FILE *file);
MUST_USE enum err sources_index(struct llama_model *m);
void sources_free(struct llama_model *m);
MUST_USE enum err meta_prepare(struct llama_model *m, const struct gguf_context *user);
// o: ended by one with an empty key, or NULL.
void meta_override(struct gguf_context *g, const struct llama_model_kv_override *o);
void meta_free(struct llama_model *m);
bool meta_get_int(const struct gguf_context *g, const char *key, int64_t *out);
// facts.c: keys that aren't arrays, and their values as text, as snprintf; -1 if there is no such key. g may be NULL.
int32_t meta_count(const struct gguf_context *g);
int32_t meta_value(const struct gguf_context *g, const char *key, char *buf, size_t buf_size);
int32_t meta_key_at(const struct gguf_context *g, int32_t i, char *buf, size_t buf_size);
int32_t meta_value_at(const struct gguf_context *g, int32_t i, char *buf, size_t buf_size);
// place.c
MUST_USE enum err place_devices(struct llama_model *m);
void place_layers(struct llama_model *m);
// The kind of buffer for a tensor. ERR_NOMEM when there was no memory to find out: that is no reason to put it elsewhere.
MUST_USE enum err place_tensor(struct llama_model *m, const char *name, int layer, enum role role, enum ggml_type type,
                               int n_dims, const int64_t *ne, ggml_backend_buffer_type_t *buft);
// tensors.c
MUST_USE enum err tensors_make(struct llama_model *m, const struct gguf_context *user);
// data.c: first the mappings, then everything that must be read.
MUST_USE enum err data_map(struct llama_model *m);
MUST_USE enum err data_load(struct llama_model *m, llama_model_set_tensor_data_t set, void *ud);
void data_free(struct llama_model *m);
// Whether all that is mapped is still there. Touching a page that another program has cut from the file kills the process, so this is
// asked before every computation; between asking and touching nothing can help but a handler of signals, which are the program's own.
MUST_USE enum err data_whole(const struct llama_model *m);
// prefault.c: between the two, a thread works on the mappings until it is stopped. NULL: there is nothing to do, or no thread.
struct prefault *prefault_begin(const struct llama_model *m);
void prefault_end(struct prefault *p);
// Would (or do) this tensor's bytes stay in the mapped file?
bool data_is_mapped(const struct llama_model *m, const struct model_tensor *t);
// Bytes of the mappings for one kind of buffer, made or planned: from the beginning of a page to the last weight of a run. *n_maps:
// how many.
size_t data_mapped_bytes(const struct llama_model *m, ggml_backend_buffer_type_t buft, int *n_maps);
// load.c: bytes of the heap that are no weight's and not the vocabulary's: lists, headers, handles.
size_t model_overhead(const struct llama_model *m);
