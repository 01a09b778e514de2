// Loops over a dataset: one epoch, and a whole training.
#include "opt/opt_int.h"
#include "base/log.h"
#include "ggml/util.h"

#include <math.h>

static int64_t batch_size(const struct ggml_opt_context *c) { return c && c->params.inputs ? c->params.inputs->ne[1] : 0; }

static void batches(struct ggml_opt_context *c, ggml_opt_dataset_t dataset, ggml_opt_result_t result, bool train,
                    int64_t first, int64_t last, ggml_opt_epoch_callback callback) {
    const int64_t start = ggml_time_us();
    for (int64_t i = first; i < last && !c->failed; i++) {
        ggml_opt_alloc(c, train);
        if (!c->eval_ready) return;
        ggml_opt_dataset_get_batch(dataset, c->params.inputs, c->labels, i);
        ggml_opt_eval(c, result);
        if (callback) callback(train, c, dataset, result, i + 1 - first, last - first, start);
    }
}

void ggml_opt_epoch(ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset, ggml_opt_result_t result_train,
                    ggml_opt_result_t result_eval, int64_t idata_split, ggml_opt_epoch_callback callback_train,
                    ggml_opt_epoch_callback callback_eval) {
    if (!opt_ctx || !dataset) return;
    const int64_t n = batch_size(opt_ctx), ndata = dataset->ndata;
    const int64_t split = idata_split < 0 ? ndata : idata_split;
    if (!opt_ctx->static_graphs || n < 1 || ndata % n != 0 || split % n != 0 || split > ndata) {
        (void) err_set(ERR_INVALID, "ggml_opt_epoch: %lld datapoints, split at %lld, in batches of %lld%s",
                       (long long) ndata, (long long) split, (long long) n,
                       opt_ctx->static_graphs ? "" : "; static graphs are needed");
        return;
    }
    batches(opt_ctx, dataset, result_train, true, 0, split / n, callback_train);
    batches(opt_ctx, dataset, result_eval, false, split / n, ndata / n, callback_eval);
}

static void clock_text(char *text, size_t size, int64_t us) {
    const int64_t s = us / 1000000;
    snprintf(text, size, "%02lld:%02lld:%02lld", (long long) (s / 3600), (long long) (s / 60 % 60), (long long) (s % 60));
}

// a * b, or as far as a number goes.
static int64_t times(int64_t a, int64_t b) {
    int64_t n;
    return __builtin_mul_overflow(a, b, &n) ? ((a < 0) == (b < 0) ? INT64_MAX : INT64_MIN) : n;
}

void ggml_opt_epoch_callback_progress_bar(bool train, ggml_opt_context_t opt_ctx, ggml_opt_dataset_t dataset,
                                          ggml_opt_result_t result, int64_t ibatch, int64_t ibatch_max, int64_t t_start_us) {
    enum { WIDTH = 25 };
    char bar[WIDTH + 1], spent[24], left[24];
    const int64_t now = ggml_time_us(), t = t_start_us >= 0 && t_start_us <= now ? now - t_start_us : 0;
    double loss = NAN, loss_unc = NAN, accuracy = NAN, accuracy_unc = NAN;
    (void) dataset;
    for (int i = 0; i < WIDTH; i++) bar[i] = i * (double) ibatch_max < (double) ibatch * WIDTH ? '=' : ' ';
    bar[WIDTH] = '\0';
    clock_text(spent, sizeof spent, t);
    clock_text(left, sizeof left, ibatch > 0 && ibatch_max > ibatch ? times(t, ibatch_max - ibatch) / ibatch : 0);
    if (result) {
        ggml_opt_result_loss(result, &loss, &loss_unc);
        ggml_opt_result_accuracy(result, &accuracy, &accuracy_unc);
    }
    ggml_log_write(GGML_LOG_LEVEL_NONE, "%s: [%s] data=%07lld/%07lld loss=%.5f±%.5f acc=%.2f±%.2f%% t=%s ETA=%s \r",
                   train ? "train" : "val", bar, (long long) times(ibatch, batch_size(opt_ctx)),
                   (long long) times(ibatch_max, batch_size(opt_ctx)), loss, loss_unc, 100 * accuracy, 100 * accuracy_unc,
                   spent, left);
    if (ibatch == ibatch_max) ggml_log_write(GGML_LOG_LEVEL_NONE, "\n");
}

void ggml_opt_fit(ggml_backend_sched_t backend_sched, struct ggml_context *ctx_compute, struct ggml_tensor *inputs,
                  struct ggml_tensor *outputs, ggml_opt_dataset_t dataset, enum ggml_opt_loss_type loss_type,
                  enum ggml_opt_optimizer_type optimizer, ggml_opt_get_optimizer_params get_opt_pars, int64_t nepoch,
                  int64_t nbatch_logical, float val_split, bool silent) {
    if (!dataset || !inputs || !(val_split >= 0.0f && val_split < 1.0f) || nbatch_logical < 1 || inputs->ne[1] < 1 ||
        nbatch_logical % inputs->ne[1] != 0 || dataset->ndata % nbatch_logical != 0) {
        (void) err_set(ERR_INVALID, "ggml_opt_fit: batches of %lld datapoints in pieces of %lld, %.2f of the data held back",
                       (long long) nbatch_logical, inputs ? (long long) inputs->ne[1] : 0, (double) val_split);
        return;
    }
    int64_t epoch = 1;
    struct ggml_opt_params params = ggml_opt_default_params(backend_sched, loss_type);
    params.ctx_compute = ctx_compute;
    params.inputs = inputs;
    params.outputs = outputs;
    params.opt_period = (int32_t) (nbatch_logical / inputs->ne[1]);
    params.get_opt_pars = get_opt_pars;
    params.get_opt_pars_ud = &epoch;
    params.optimizer = optimizer;
    ggml_opt_context_t c = ggml_opt_init(params);
    ggml_opt_result_t train = ggml_opt_result_init(), held = ggml_opt_result_init();

    // Whole batches to train on; the rest is held back to judge by.
    const int64_t n_batches = dataset->ndata / nbatch_logical;
    const int64_t split = (int64_t) ((1.0 - (double) val_split) * (double) n_batches) * nbatch_logical;
    const ggml_opt_epoch_callback show = silent ? NULL : ggml_opt_epoch_callback_progress_bar;
    if (c && nbatch_logical < dataset->ndata) ggml_opt_dataset_shuffle(c, dataset, -1);
    for (; c && train && held && epoch <= nepoch && !c->failed; epoch++) {
        if (nbatch_logical < split) ggml_opt_dataset_shuffle(c, dataset, split);
        ggml_opt_result_reset(train);
        ggml_opt_result_reset(held);
        if (!silent) ggml_log_write(GGML_LOG_LEVEL_NONE, "epoch %lld/%lld:\n", (long long) epoch, (long long) nepoch);
        ggml_opt_epoch(c, dataset, train, held, split, show, show);
    }
    ggml_opt_result_free(train);
    ggml_opt_result_free(held);
    ggml_opt_free(c);
}
