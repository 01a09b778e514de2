// Results of training and evaluation: losses, predictions and hits of the batches, with their uncertainty.
#include "opt/opt_int.h"
#include "base/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

ggml_opt_result_t ggml_opt_result_init(void) {
    struct ggml_opt_result *r = calloc(1, sizeof *r);
    if (!r) (void) err_set(ERR_NOMEM, "ggml_opt_result_init: no memory");
    return r;
}

void ggml_opt_result_free(ggml_opt_result_t result) {
    if (!result) return;
    free(result->loss);
    free(result->pred);
    free(result);
}

void ggml_opt_result_reset(ggml_opt_result_t result) {
    if (!result) return;
    result->ndata = result->ncorrect = 0;
    result->n_loss = result->n_pred = 0;
}

void ggml_opt_result_ndata(ggml_opt_result_t result, int64_t *ndata) {
    if (ndata) *ndata = result ? result->ndata : 0;
}

void ggml_opt_result_loss(ggml_opt_result_t result, double *loss, double *unc) {
    if (!result) {
        if (loss) *loss = 0;
        if (unc) *unc = NAN;
        return;
    }
    const double n = (double) result->n_loss;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < result->n_loss; i++) {
        const double x = (double) result->loss[i];
        sum += x;
        squares += x * x;
    }
    const double mean = n > 0 ? sum / n : 0, variance = n > 0 ? squares / n - mean * mean : 0;
    if (loss) *loss = result->loss_per_datapoint ? mean : sum;
    if (!unc) return;
    if (n < 2) {
        *unc = NAN;
    } else {
        *unc = result->loss_per_datapoint ? sqrt(fmax(variance, 0) / (n - 1)) : sqrt(fmax(variance, 0) * n / (n - 1));
    }
}

void ggml_opt_result_pred(ggml_opt_result_t result, int32_t *pred) {
    if (result && pred && result->n_pred) memcpy(pred, result->pred, result->n_pred * sizeof *pred);
}

void ggml_opt_result_accuracy(ggml_opt_result_t result, double *accuracy, double *unc) {
    const bool known = result && result->ncorrect >= 0 && result->ndata > 0;
    const double p = known ? (double) result->ncorrect / (double) result->ndata : NAN;
    if (accuracy) *accuracy = p;
    if (unc) *unc = known && result->ndata >= 2 ? sqrt(p * (1 - p) / (double) (result->ndata - 1)) : NAN;
}

static enum err add_predictions(struct ggml_opt_result *r, const struct ggml_tensor *pred) {
    const size_t n = (size_t) ggml_nelements(pred);
    if (!array_grow((void **) &r->pred, &r->cap_pred, r->n_pred + n, sizeof *r->pred)) {
        return err_set(ERR_NOMEM, "training results: no memory for %zu predictions", r->n_pred + n);
    }
    ggml_backend_tensor_get(pred, r->pred + r->n_pred, 0, n * sizeof *r->pred);
    r->n_pred += n;
    return ERR_OK;
}

void opt_result_add(struct ggml_opt_result *r, const struct ggml_opt_context *c) {
    float loss;
    if (r->ndata == 0) {
        r->loss_per_datapoint = c->loss_per_datapoint;
        r->opt_period = c->params.opt_period;
    }
    if (r->loss_per_datapoint != c->loss_per_datapoint || r->opt_period != c->params.opt_period) {
        (void) err_set(ERR_INVALID, "training results: one result cannot take batches with different kinds of loss");
        return;
    }
    if (!array_grow((void **) &r->loss, &r->cap_loss, r->n_loss + 1, sizeof *r->loss)) {
        (void) err_set(ERR_NOMEM, "training results: no memory for %zu losses", r->n_loss + 1);
        return;
    }
    if (c->pred && add_predictions(r, c->pred) != ERR_OK) return;
    ggml_backend_tensor_get(c->loss, &loss, 0, sizeof loss);
    // The loss was divided by the number of batches that make one step, so that their gradients add up to a mean.
    r->loss[r->n_loss++] = c->loss_per_datapoint ? loss * (float) c->params.opt_period : loss;
    r->ndata += c->params.outputs->ne[1];
    if (!c->ncorrect) {
        r->ncorrect = -1;
    } else if (r->ncorrect >= 0) {
        int64_t hits;
        ggml_backend_tensor_get(c->ncorrect, &hits, 0, sizeof hits);
        r->ncorrect += hits;
    }
}
