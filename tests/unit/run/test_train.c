// Training through llama.h: gradients against differences of the loss, a loss that falls, weights that reach the file, refusals.
#include "test.h"

#include "model/model.h"
#include "model_maker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_CTX = 48, N_DATA = 6 };

static float rate;

static struct ggml_opt_optimizer_params sgd(void *ud) {
    (void) ud;
    return (struct ggml_opt_optimizer_params){.sgd = {.alpha = rate}, .adamw = {rate, 0.9f, 0.999f, 1e-8f, 0}};
}

static struct llama_model *model(const char *path) {
    struct llama_model_params mp = llama_model_default_params();
    mp.load_mode = LLAMA_LOAD_MODE_NONE;
    struct llama_model *m = llama_model_load_from_file(path, mp);
    assert_non_null(m);
    return m;
}

static struct llama_context *context(struct llama_model *m) {
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 256;
    cp.n_threads = cp.n_threads_batch = 2;
    cp.type_k = cp.type_v = GGML_TYPE_F32;
    struct llama_context *c = llama_init_from_model(m, cp);
    assert_non_null(c);
    return c;
}

// Each token follows from the one before, so there is something to learn.
static int32_t next(int32_t t) { return (5 * t + 3) % MAKER_N_VOCAB; }

static ggml_opt_dataset_t dataset(int n_ctx) {
    ggml_opt_dataset_t d = ggml_opt_dataset_init(GGML_TYPE_I32, GGML_TYPE_I32, n_ctx, n_ctx, N_DATA, 1);
    int32_t *x = ggml_opt_dataset_data(d)->data, *y = ggml_opt_dataset_labels(d)->data;
    for (int i = 0; i < N_DATA; i++) {
        int32_t t = 11 * i + 1;
        for (int k = 0; k < n_ctx; k++, t = next(t)) {
            x[i * n_ctx + k] = t;
            y[i * n_ctx + k] = next(t);
        }
    }
    return d;
}

// Mean of -ln p(label) over datapoint i, through llama_decode.
static double loss_by_decode(struct llama_context *c, ggml_opt_dataset_t d, int i) {
    const int n = (int) ggml_opt_dataset_data(d)->ne[0];
    const int32_t *x = (const int32_t *) ggml_opt_dataset_data(d)->data + i * n,
                  *y = (const int32_t *) ggml_opt_dataset_labels(d)->data + i * n;
    llama_memory_clear(llama_get_memory(c), true);
    struct llama_batch b = llama_batch_init(n, 0, 1);
    b.n_tokens = n;
    for (int k = 0; k < n; k++) {
        b.token[k] = x[k];
        b.pos[k] = k;
        b.n_seq_id[k] = 1;
        b.seq_id[k][0] = 0;
        b.logits[k] = 1;
    }
    assert_int_equal(llama_decode(c, b), 0);
    double loss = 0;
    for (int k = 0; k < n; k++) {
        const float *l = llama_get_logits_ith(c, k);
        double max = -1e30, sum = 0;
        for (int v = 0; v < MAKER_N_VOCAB; v++) max = fmax(max, (double) l[v]);
        for (int v = 0; v < MAKER_N_VOCAB; v++) sum += exp((double) l[v] - max);
        loss += max + log(sum) - (double) l[y[k]];
    }
    llama_batch_free(b);
    return loss / n;
}

static double mean_loss(ggml_opt_result_t r) {
    double loss = 0, unc = 0;
    ggml_opt_result_loss(r, &loss, &unc);
    return loss;
}

static float *values(const struct ggml_tensor *t) { return t->data; }

// One step of plain descent moves each weight by the rate times its gradient. The largest gradient of every tensor is compared with a
// difference of losses; gradients that are small against rounding are compared in absolute terms.
static void check_gradients(const char *name) {
    struct llama_model *m = model(maker_path(name, GGML_TYPE_F32));
    struct llama_context *c = context(m);
    const int n_ctx = test_small() ? 16 : N_CTX;
    ggml_opt_dataset_t d = dataset(n_ctx);
    float **before = calloc((size_t) m->n_tensors, sizeof *before), **after = calloc((size_t) m->n_tensors, sizeof *after);
    for (int i = 0; i < m->n_tensors; i++) {
        const struct ggml_tensor *t = m->tensors[i].t;
        before[i] = malloc(ggml_nbytes(t));
        memcpy(before[i], t->data, ggml_nbytes(t));
    }
    const double start = loss_by_decode(c, d, 0);
    rate = 1.0f;
    struct llama_opt_params p = {
        .n_ctx_train = (uint32_t) n_ctx, .get_opt_pars = sgd, .optimizer_type = GGML_OPT_OPTIMIZER_TYPE_SGD};
    llama_opt_init(c, m, p);
    assert_string_equal(ggml_last_error(), "");
    ggml_opt_result_t r = ggml_opt_result_init();
    llama_opt_epoch(c, d, r, NULL, 1, NULL, NULL);
    assert_string_equal(ggml_last_error(), "");
    assert_true(fabs(mean_loss(r) - start) < 1e-4);
    for (int i = 0; i < m->n_tensors; i++) {
        struct ggml_tensor *t = m->tensors[i].t;
        after[i] = malloc(ggml_nbytes(t));
        memcpy(after[i], t->data, ggml_nbytes(t));
        memcpy(t->data, before[i], ggml_nbytes(t));
    }
    int n_seen = 0;
    for (int i = 0; i < m->n_tensors; i++) {
        struct ggml_tensor *t = m->tensors[i].t;
        int64_t best = 0;
        for (int64_t k = 0; k < ggml_nelements(t); k++)
            if (fabsf(after[i][k] - before[i][k]) > fabsf(after[i][best] - before[i][best])) best = k;
        const double grad = (double) before[i][best] - (double) after[i][best];
        assert_true(fabs(grad) > 1e-6);  // every weight takes part
        const float h = 2e-2f;
        values(t)[best] = before[i][best] + h;
        const double up = loss_by_decode(c, d, 0);
        values(t)[best] = before[i][best] - h;
        const double down = loss_by_decode(c, d, 0), want = (up - down) / (2 * (double) h);
        values(t)[best] = before[i][best];
        if (fabs(grad - want) > 2e-4 + 0.03 * fabs(want))
            print_error("%s %s: %g, by differences %g\n", name, t->name, grad, want);
        assert_true(fabs(grad - want) <= 2e-4 + 0.03 * fabs(want));
        n_seen += fabs(want) > 5e-3;
    }
    assert_true(n_seen > m->n_tensors / 3);
    for (int i = 0; i < m->n_tensors; i++) {
        free(before[i]);
        free(after[i]);
    }
    free(before);
    free(after);
    ggml_opt_result_free(r);
    ggml_opt_dataset_free(d);
    llama_free(c);
    llama_model_free(m);
}

static void test_gradients(void **state) {
    (void) state;
    check_gradients("llama");
    check_gradients("gemma3");
    check_gradients("gpt2");
}

struct calls {
    int train, eval;
    int64_t last, max;
};
static struct calls calls;

static void count(bool train, ggml_opt_context_t o, ggml_opt_dataset_t d, ggml_opt_result_t r, int64_t i, int64_t n,
                  int64_t t) {
    (void) o, (void) d, (void) r, (void) t;
    train ? calls.train++ : calls.eval++;
    calls.last = i;
    calls.max = n;
}

static bool only_ffn(const struct ggml_tensor *t, void *ud) { return strstr(t->name, ud) != NULL; }

static void test_learns(void **state) {
    (void) state;
    const char *saved = "/tmp/lamina-test-train.gguf";
    struct llama_model *m = model(maker_path("llama", GGML_TYPE_F32));
    struct llama_context *c = context(m);
    ggml_opt_dataset_t d = dataset(N_CTX);
    rate = 2e-3f;
    llama_opt_init(c, m, (struct llama_opt_params){.n_ctx_train = N_CTX, .get_opt_pars = sgd});
    assert_string_equal(ggml_last_error(), "");
    ggml_opt_result_t train = ggml_opt_result_init(), eval = ggml_opt_result_init();
    double first = 0, first_eval = 0;
    for (int e = 0; e < 12; e++) {
        ggml_opt_result_reset(train);
        ggml_opt_result_reset(eval);
        llama_opt_epoch(c, d, train, eval, N_DATA - 2, count, count);
        assert_string_equal(ggml_last_error(), "");
        if (e == 0) first = mean_loss(train), first_eval = mean_loss(eval);
    }
    assert_int_equal(calls.train, 12 * (N_DATA - 2));
    assert_int_equal(calls.eval, 12 * 2);
    assert_int_equal(calls.last, 2);
    assert_int_equal(calls.max, 2);
    assert_true(mean_loss(train) < 0.5 * first);
    assert_true(mean_loss(eval) < 0.8 * first_eval);
    // what was held back moves nothing, and llama_decode sees the trained weights
    const double by_decode = (loss_by_decode(c, d, N_DATA - 1) + loss_by_decode(c, d, N_DATA - 2)) / 2;
    assert_true(fabs(by_decode - mean_loss(eval)) < 1e-3);
    llama_model_save_to_file(m, saved);
    struct llama_model *again = model(saved);
    struct llama_context *c2 = context(again);
    for (int i = 0; i < m->n_tensors; i++)
        assert_memory_equal(m->tensors[i].t->data, again->tensors[i].t->data, ggml_nbytes(m->tensors[i].t));
    assert_true(loss_by_decode(c2, d, 0) == loss_by_decode(c, d, 0));
    // a filter leaves the rest alone
    llama_opt_init(c2, again,
                   (struct llama_opt_params){
                       .n_ctx_train = N_CTX, .get_opt_pars = sgd, .param_filter = only_ffn, .param_filter_ud = "ffn_down"});
    llama_opt_epoch(c2, d, NULL, NULL, 1, NULL, NULL);
    assert_string_equal(ggml_last_error(), "");
    for (int i = 0; i < m->n_tensors; i++) {
        const struct ggml_tensor *a = m->tensors[i].t, *b = again->tensors[i].t;
        assert_int_equal(memcmp(a->data, b->data, ggml_nbytes(a)) != 0, strstr(a->name, "ffn_down") != NULL);
    }
    unlink(saved);
    ggml_opt_result_free(train);
    ggml_opt_result_free(eval);
    ggml_opt_dataset_free(d);
    llama_free(c);
    llama_free(c2);
    llama_model_free(m);
    llama_model_free(again);
}

static void refuse(const char *name, enum ggml_type type, enum llama_load_mode mode, const char *text) {
    struct llama_model_params mp = llama_model_default_params();
    mp.load_mode = mode;
    struct llama_model *m = llama_model_load_from_file(maker_path(name, type), mp);
    struct llama_context *c = llama_init_from_model(m, llama_context_default_params());
    llama_opt_init(c, m, (struct llama_opt_params){.n_ctx_train = N_CTX});
    assert_error(text);
    ggml_opt_dataset_t d = dataset(N_CTX);
    llama_opt_epoch(c, d, NULL, NULL, 1, NULL, NULL);
    assert_error("llama_opt_init comes first");
    ggml_opt_dataset_free(d);
    llama_free(c);
    llama_model_free(m);
}

static void test_refused(void **state) {
    (void) state;
    refuse("llama", GGML_TYPE_F32, LLAMA_LOAD_MODE_AUTO, "mapped file");
    refuse("llama", GGML_TYPE_Q8_0, LLAMA_LOAD_MODE_NONE, "q8_0");
    refuse("mamba2", GGML_TYPE_F32, LLAMA_LOAD_MODE_NONE, "keep states");
    refuse("bert", GGML_TYPE_F32, LLAMA_LOAD_MODE_NONE, "next token");
    struct llama_model *m = model(maker_path("llama", GGML_TYPE_F32));
    struct llama_context *c = context(m);
    llama_opt_init(NULL, m, (struct llama_opt_params){0});
    assert_error("NULL");
    llama_opt_init(c, m, (struct llama_opt_params){.n_ctx_train = 257});
    assert_error("257");
    llama_opt_init(c, m,
                   (struct llama_opt_params){.n_ctx_train = N_CTX, .param_filter = only_ffn, .param_filter_ud = "nothing"});
    assert_error("no weights");
    llama_opt_init(c, m, (struct llama_opt_params){.n_ctx_train = N_CTX});
    assert_string_equal(ggml_last_error(), "");
    ggml_opt_dataset_t d = dataset(N_CTX), other = dataset(N_CTX / 2);
    llama_opt_epoch(c, other, NULL, NULL, 1, NULL, NULL);
    assert_error("24 tokens");
    llama_opt_epoch(c, d, NULL, NULL, N_DATA + 1, NULL, NULL);
    assert_error("idata_split");
    ((int32_t *) ggml_opt_dataset_labels(d)->data)[3] = MAKER_N_VOCAB;
    llama_opt_epoch(c, d, NULL, NULL, 1, NULL, NULL);
    assert_error("label 3 of datapoint 0");
    ggml_opt_dataset_free(d);
    ggml_opt_dataset_free(other);
    llama_free(c);
    llama_model_free(m);
    // experts have no gradient: a sentence, and the context still decodes
    m = model(maker_path("llama-moe", GGML_TYPE_F32));
    c = context(m);
    d = dataset(N_CTX);
    llama_opt_init(c, m, (struct llama_opt_params){.n_ctx_train = N_CTX});
    llama_opt_epoch(c, d, NULL, NULL, 1, NULL, NULL);
    assert_error("gradient");
    (void) loss_by_decode(c, d, 0);
    ggml_opt_dataset_free(d);
    llama_free(c);
    llama_model_free(m);
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients), cmocka_unit_test(test_learns),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
