// Datasets: two tensors in host memory and an order. Shuffling changes the order alone; data is moved when a batch takes it.
#include "opt/opt_int.h"

#include <stdlib.h>
#include <string.h>

ggml_opt_dataset_t ggml_opt_dataset_init(enum ggml_type type_data, enum ggml_type type_label, int64_t ne_datapoint,
                                         int64_t ne_label, int64_t ndata, int64_t ndata_shard) {
    if (ne_datapoint < 1 || ne_label < 0 || ndata < 1 || ndata_shard < 1 || ndata % ndata_shard != 0) {
        (void) err_set(ERR_INVALID,
                       "ggml_opt_dataset_init: %lld datapoints of %lld values and %lld labels in shards of %lld",
                       (long long) ndata, (long long) ne_datapoint, (long long) ne_label, (long long) ndata_shard);
        return NULL;
    }
    struct ggml_opt_dataset *d = calloc(1, sizeof *d);
    if (!d) {
        (void) err_set(ERR_NOMEM, "ggml_opt_dataset_init: no memory");
        return NULL;
    }
    d->ndata = ndata;
    d->ndata_shard = ndata_shard;
    d->n_shards = ndata / ndata_shard;
    const size_t bytes =
        ggml_row_size(type_data, ne_datapoint) * (size_t) ndata + ggml_row_size(type_label, ne_label) * (size_t) ndata;
    d->ctx = ggml_init((struct ggml_init_params){.mem_size = 2 * ggml_tensor_overhead() + bytes + 256});
    d->order = malloc((size_t) d->n_shards * sizeof *d->order);
    if (!d->ctx || !d->order) {
        ggml_opt_dataset_free(d);
        return NULL;
    }
    d->data = ggml_new_tensor_2d(d->ctx, type_data, ne_datapoint, ndata);
    if (ne_label > 0) d->labels = ggml_new_tensor_2d(d->ctx, type_label, ne_label, ndata);
    if (ggml_is_error(d->data) || (d->labels && ggml_is_error(d->labels))) {
        ggml_opt_dataset_free(d);
        return NULL;
    }
    d->shard_bytes = ggml_nbytes(d->data) / (size_t) d->n_shards;
    d->label_shard_bytes = d->labels ? ggml_nbytes(d->labels) / (size_t) d->n_shards : 0;
    for (int64_t i = 0; i < d->n_shards; i++) d->order[i] = i;
    return d;
}

void ggml_opt_dataset_free(ggml_opt_dataset_t dataset) {
    if (!dataset) return;
    ggml_free(dataset->ctx);
    free(dataset->order);
    free(dataset);
}

int64_t ggml_opt_dataset_ndata(ggml_opt_dataset_t dataset) { return dataset ? dataset->ndata : 0; }

struct ggml_tensor *ggml_opt_dataset_data(ggml_opt_dataset_t dataset) {
    return dataset ? dataset->data : NULL;
}

struct ggml_tensor *ggml_opt_dataset_labels(ggml_opt_dataset_t dataset) {
    return dataset ? dataset->labels : NULL;
}

// xorshift64* (Vigna 2016)
static uint64_t next_random(uint64_t *state) {
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545f4914f6cdd1dull;
}

void ggml_opt_dataset_shuffle(ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset, int64_t idata) {
    if (!opt_ctx || !dataset) return;
    if (idata > dataset->ndata || (idata >= 0 && idata % dataset->ndata_shard != 0)) {
        (void) err_set(ERR_INVALID,
                       "ggml_opt_dataset_shuffle: the first %lld of %lld datapoints are no whole number of shards of "
                       "%lld",
                       (long long) idata, (long long) dataset->ndata, (long long) dataset->ndata_shard);
        return;
    }
    const int64_t n = idata < 0 ? dataset->n_shards : idata / dataset->ndata_shard;
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t k = (int64_t) (next_random(&opt_ctx->random) % (uint64_t) (i + 1));
        const int64_t swap = dataset->order[i];
        dataset->order[i] = dataset->order[k];
        dataset->order[k] = swap;
    }
}

enum err opt_batch_fits(const struct ggml_opt_dataset *d, size_t data_bytes, size_t label_bytes, bool labels, int64_t ibatch,
                        int64_t *n_shards) {
    *n_shards = (int64_t) (data_bytes / d->shard_bytes);
    if (*n_shards < 1 || data_bytes % d->shard_bytes != 0) {
        return err_set(ERR_INVALID, "dataset: a batch of %zu bytes is no whole number of shards of %zu bytes", data_bytes,
                       d->shard_bytes);
    }
    if (ibatch < 0 || ibatch >= d->n_shards / *n_shards) {
        return err_set(ERR_INVALID, "dataset: batch %lld of %lld", (long long) ibatch,
                       (long long) (d->n_shards / *n_shards));
    }
    if (labels && !d->labels) return err_set(ERR_INVALID, "dataset: labels wanted, but it has none");
    if (labels && label_bytes != (size_t) *n_shards * d->label_shard_bytes) {
        return err_set(ERR_INVALID, "dataset: a batch has %zu bytes of labels, not %zu",
                       (size_t) *n_shards * d->label_shard_bytes, label_bytes);
    }
    return ERR_OK;
}

void ggml_opt_dataset_get_batch(ggml_opt_dataset_t dataset, struct ggml_tensor *data_batch, struct ggml_tensor *labels_batch,
                                int64_t ibatch) {
    int64_t n;
    if (!dataset || !data_batch) return;
    if (data_batch->type != dataset->data->type ||
        (labels_batch && dataset->labels && labels_batch->type != dataset->labels->type)) {
        (void) err_set(ERR_INVALID, "dataset: the batch's tensors are of other types than the data");
        return;
    }
    if (opt_batch_fits(dataset, ggml_nbytes(data_batch), labels_batch ? ggml_nbytes(labels_batch) : 0, labels_batch != NULL,
                       ibatch, &n) != ERR_OK)
        return;
    for (int64_t i = 0; i < n; i++) {
        const size_t shard = (size_t) dataset->order[ibatch * n + i];
        ggml_backend_tensor_set(data_batch, (const char *) dataset->data->data + shard * dataset->shard_bytes,
                                (size_t) i * dataset->shard_bytes, dataset->shard_bytes);
        if (!labels_batch) continue;
        ggml_backend_tensor_set(labels_batch, (const char *) dataset->labels->data + shard * dataset->label_shard_bytes,
                                (size_t) i * dataset->label_shard_bytes, dataset->label_shard_bytes);
    }
}

void ggml_opt_dataset_get_batch_host(ggml_opt_dataset_t dataset, void *data_batch, size_t nb_data_batch, void *labels_batch,
                                     int64_t ibatch) {
    int64_t n;
    if (!dataset || !data_batch) return;
    const size_t label_bytes = dataset->label_shard_bytes * (nb_data_batch / dataset->shard_bytes);
    if (opt_batch_fits(dataset, nb_data_batch, label_bytes, labels_batch != NULL, ibatch, &n) != ERR_OK) return;
    for (int64_t i = 0; i < n; i++) {
        const size_t shard = (size_t) dataset->order[ibatch * n + i];
        memcpy((char *) data_batch + (size_t) i * dataset->shard_bytes,
               (const char *) dataset->data->data + shard * dataset->shard_bytes, dataset->shard_bytes);
        if (!labels_batch) continue;
        memcpy((char *) labels_batch + (size_t) i * dataset->label_shard_bytes,
               (const char *) dataset->labels->data + shard * dataset->label_shard_bytes, dataset->label_shard_bytes);
    }
}
