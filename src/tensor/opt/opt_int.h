// Training: what the files of this folder share.
#pragma once

#include "ggml-opt.h"
#include "graph/graph.h"

struct ggml_opt_dataset {
    struct ggml_context *ctx;
    struct ggml_tensor *data;    // [ne_datapoint, ndata]
    struct ggml_tensor *labels;  // [ne_label, ndata], NULL if there are none
    int64_t ndata, ndata_shard;  // datapoints; how many of them are moved together
    size_t shard_bytes, label_shard_bytes;
    int64_t n_shards;
    int64_t *order;  // [n_shards] the shards in the order in which batches take them
};

struct ggml_opt_result {
    int64_t ndata, opt_period;
    bool loss_per_datapoint;
    float *loss;  // [n_loss] of each batch
    size_t n_loss, cap_loss;
    int32_t *pred;  // [n_pred]
    size_t n_pred, cap_pred;
    int64_t ncorrect;  // -1: not known for all batches
};

struct ggml_opt_context {
    struct ggml_opt_params params;
    enum ggml_opt_build_type build_type;  // of the graph that is to be computed next
    bool static_graphs;                   // graphs were built once, in ggml_opt_init
    bool failed;                          // something could not be built: nothing is computed any more
    uint64_t random;                      // state of the generator that shuffles

    struct ggml_context *ctx_static;  // what outlives a graph: labels, loss, accumulators, momenta, optimizer parameters
    ggml_backend_buffer_t buf_static;
    struct ggml_context *ctx_copy;  // the copy of a static graph that the scheduler works on

    struct ggml_cgraph *gf, *gb_grad, *gb_opt;  // forward; with gradients; with the optimizer's steps
    struct ggml_cgraph *allocated, *allocated_copy;
    bool eval_ready;

    struct ggml_tensor *labels, *loss, *pred, *ncorrect, *step_params;
    bool loss_per_datapoint;
    int n_nodes;                                         // of gf when the arrays below were made
    struct ggml_tensor **grad_accs, **grad_m, **grad_v;  // [n_nodes]

    int64_t iter;   // number of the next optimizer step, from 1
    int32_t opt_i;  // gradients summed up since the last step
};

// Builds the graphs that params.build_type asks for from c->gf. False: c->failed is set, the sentence recorded.
bool opt_build(struct ggml_opt_context *c);
// What a dataset's batch looks like in bytes; the sentence is recorded when it does not fit.
MUST_USE enum err opt_batch_fits(const struct ggml_opt_dataset *d, size_t data_bytes, size_t label_bytes, bool labels,
                                 int64_t ibatch, int64_t *n_shards);
// Adds the results of one computed batch.
void opt_result_add(struct ggml_opt_result *r, const struct ggml_opt_context *c);
