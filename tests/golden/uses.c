// uses MODEL.gguf FOLDER [LOGITS.f32]: what a user does with a model, each against the plain run of the same tokens.
//
// Without the third argument: loads the model, runs N tokens, then saves and reloads it, quantizes it, cuts the tokens into micro-batches,
// puts a neighbour into the batch, goes on from saved states; FOLDER takes the files. All but the quantized models must give the same bits
// (design.md, rule 7). The plain run's logits stay in FOLDER/logits.f32. With the third argument (in a process that has LAMINA_SIM=2):
// the model on simulated devices at no, half of and all layers must give those logits.
// Prints a line per failure; the last line is "ok" or the number of failures. Only llama.h.
#include "llama.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 32
#define N_CTX 256

static int n_failed;
static char last_error[512];

static void log_line(enum ggml_log_level level, const char *text, void *ud) {
    (void) ud;
    if (level == GGML_LOG_LEVEL_ERROR) snprintf(last_error, sizeof last_error, "%s", text);
}

static void fail(const char *what, const char *why) {
    n_failed++;
    printf("FAIL %s: %s\n", what, why);
}

// What kind of run the model wants.
struct kind {
    bool encoder, decoder, diffusion, recurrent;
    int width;  // values per row of results
};

static struct kind kind_of(const struct llama_model *m) {
    struct kind k = {.encoder = llama_model_has_encoder(m),
                     .decoder = llama_model_has_decoder(m),
                     .diffusion = llama_model_is_diffusion(m),
                     .recurrent = llama_model_is_recurrent(m) || llama_model_is_hybrid(m)};
    k.width = k.decoder ? llama_vocab_n_tokens(llama_model_get_vocab(m)) : llama_model_n_embd_out(m);
    return k;
}

// A text of its own per seed.
static llama_token token_at(const struct llama_model *m, int seed, int i) {
    const int nv = llama_vocab_n_tokens(llama_model_get_vocab(m));
    return (7 + 4 * seed + (37 - 26 * seed) * i) % nv;
}

static struct llama_context *context(struct llama_model *m, const struct kind *k, int n_ubatch) {
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = 2 * N_CTX;
    p.n_batch = N_CTX;
    p.n_ubatch = (uint32_t) n_ubatch;
    p.n_seq_max = 2;
    p.n_threads = p.n_threads_batch = 2;
    p.embeddings = !k->decoder;
    p.pooling_type = LLAMA_POOLING_TYPE_NONE;
    return llama_init_from_model(m, p);
}

// Tokens [from, to) of text `seed` in sequence `seq`, and with other > 0 that many of the other text in the other sequence, before them
// and after. out: their rows, or NULL.
static bool feed(struct llama_model *m, struct llama_context *c, const struct kind *k, int seq, int seed, int from, int to,
                 int other, float *out) {
    struct llama_batch b = llama_batch_init(to - from + other, 0, 1);
    int first = 0;
    for (int part = 0; part < 3; part++) {
        const bool own = part == 1;
        const int begin = own ? from : part == 0 ? 0 : other / 2, end = own ? to : part == 0 ? other / 2 : other;
        if (own) first = b.n_tokens;
        for (int i = begin; i < end; i++, b.n_tokens++) {
            b.token[b.n_tokens] = token_at(m, own ? seed : 1 - seed, i);
            b.pos[b.n_tokens] = i;
            b.n_seq_id[b.n_tokens] = 1;
            b.seq_id[b.n_tokens][0] = own ? seq : 1 - seq;
            b.logits[b.n_tokens] = 1;
        }
    }
    int r = 0;
    if (k->encoder || k->diffusion) r = llama_encode(c, b);
    if (r == 0 && k->decoder) r = llama_decode(c, b);
    for (int i = 0; r == 0 && out && i < to - from; i++) {
        const float *row = k->decoder ? llama_get_logits_ith(c, first + i) : llama_get_embeddings_ith(c, first + i);
        if (!row) r = -100;
        if (row) memcpy(out + (size_t) i * (size_t) k->width, row, (size_t) k->width * sizeof(float));
    }
    llama_batch_free(b);
    return r == 0;
}

// Squared difference of rows [from, to), relative to want.
static double difference(const float *got, const float *want, int from, int to, const struct kind *k) {
    double d = 0, w = 0;
    for (size_t i = (size_t) from * (size_t) k->width; i < (size_t) to * (size_t) k->width; i++) {
        d += ((double) got[i] - (double) want[i]) * ((double) got[i] - (double) want[i]);
        w += (double) want[i] * (double) want[i];
    }
    return d / w;
}

// The same bits in rows [from, N).
static void compare(const char *what, const float *got, const float *want, int from, const struct kind *k) {
    const size_t row = (size_t) k->width;
    for (int i = from; i < N; i++) {
        if (memcmp(got + (size_t) i * row, want + (size_t) i * row, row * sizeof(float)) == 0) continue;
        char why[128];
        snprintf(why, sizeof why, "other values from row %d on, error %.2e", i, difference(got, want, from, N, k));
        fail(what, why);
        return;
    }
}

// All N tokens of text 0 alone, in micro-batches of n_ubatch.
static bool run(struct llama_model *m, const struct kind *k, int n_ubatch, const char *what, float *out) {
    struct llama_context *c = context(m, k, n_ubatch);
    const bool ok = c && feed(m, c, k, 0, 0, 0, N, 0, out);
    if (!ok) fail(what, last_error);
    if (c) llama_free(c);
    return ok;
}

static void from_file(const char *path, const char *what, int n_gpu_layers, float *out) {
    struct llama_model_params mp = llama_model_default_params();
    mp.n_gpu_layers = n_gpu_layers;
    struct llama_model *m = llama_model_load_from_file(path, mp);
    if (!m) {
        fail(what, last_error);
        return;
    }
    const struct kind k = kind_of(m);
    run(m, &k, N_CTX, what, out);
    llama_model_free(m);
}

static void saved(struct llama_model *m, const struct kind *k, const char *folder, const float *want, float *got) {
    char path[4096];
    snprintf(path, sizeof path, "%s/saved.gguf", folder);
    llama_model_save_to_file(m, path);
    from_file(path, "saved and reloaded", 0, got);
    compare("saved and reloaded", got, want, 0, k);
    remove(path);
}

// Coarser types change the results: how much tells the model's sensitivity, which F16 shows first. Each kind's error is bounded by a multiple
// of the one before (the squared ratio of their steps, and some), and by that of unrelated values; choosing other experts costs the floor.
static void quantized(const char *from, const struct kind *k, const char *folder, const float *want, float *got) {
    static const struct {
        const char *name;
        enum llama_ftype ftype;
        double floor, times;
    } kinds[] = {{"quantized to F16", LLAMA_FTYPE_MOSTLY_F16, 0.05, 0},
                 {"quantized to Q8_0", LLAMA_FTYPE_MOSTLY_Q8_0, 0.2, 1000},
                 {"quantized to Q4_K_M", LLAMA_FTYPE_MOSTLY_Q4_K_M, 0.6, 300}};
    char path[4096], why[96];
    double error = 0;
    snprintf(path, sizeof path, "%s/quantized.gguf", folder);
    for (int i = 0; i < 3; i++) {
        struct llama_model_quantize_params p = llama_model_quantize_default_params();
        p.ftype = kinds[i].ftype;
        p.nthread = 1;
        if (llama_model_quantize(from, path, &p) != 0) {
            fail(kinds[i].name, last_error);
            continue;
        }
        from_file(path, kinds[i].name, 0, got);
        const double most = fmin(2, kinds[i].floor + kinds[i].times * error);
        error = difference(got, want, 0, N, k);
        snprintf(why, sizeof why, "error %.2e of at most %.2e", error, most);
        if (getenv("USES_VERBOSE")) printf("%s: %s\n", kinds[i].name, why);
        if (!(error <= most)) fail(kinds[i].name, why);  // not a number is no smaller
    }
    remove(path);
}

// Half the text, the state into a fresh context, the other half there: as in one go.
static void continued(struct llama_model *m, const struct kind *k, const float *want, float *got) {
    for (int way = 0; way < 2; way++) {  // 0: the context's state; 1: one sequence's, into the other sequence
        const char *what = way == 0 ? "the context's state" : "a sequence's state";
        struct llama_context *a = context(m, k, N_CTX), *b = context(m, k, N_CTX);
        bool ok = a && b && feed(m, a, k, 0, 0, 0, N / 2, way == 0 ? 5 : 0, NULL);
        const size_t size = ok ? way == 0 ? llama_state_get_size(a) : llama_state_seq_get_size(a, 0) : 0;
        uint8_t *data = malloc(size + 1);
        ok = ok && data && size > 0;
        if (ok && way == 0)
            ok = llama_state_get_data(a, data, size) == size && llama_state_set_data(b, data, size) == size;
        else if (ok)
            ok = llama_state_seq_get_data(a, data, size, 0) == size && llama_state_seq_set_data(b, data, size, 1) == size;
        ok = ok && feed(m, b, k, way, 0, N / 2, N, 0, got + (size_t) (N / 2) * (size_t) k->width);
        if (ok)
            compare(what, got, want, N / 2, k);
        else
            fail(what, last_error);
        free(data);
        if (a) llama_free(a);
        if (b) llama_free(b);
    }
}

// The text in two halves, and token by token after a few.
static void in_pieces(struct llama_model *m, const struct kind *k, const float *want, float *got) {
    struct llama_context *c = context(m, k, N_CTX);
    bool ok = c && feed(m, c, k, 0, 0, 0, N / 2, 0, got);
    for (int i = N / 2; i < N && ok; i++) ok = feed(m, c, k, 0, 0, i, i + 1, 0, got + (size_t) i * (size_t) k->width);
    if (ok)
        compare("token by token", got, want, 0, k);
    else
        fail("token by token", last_error);
    if (c) llama_free(c);
}

static void with_neighbour(struct llama_model *m, const struct kind *k, const float *want, float *got) {
    struct llama_context *c = context(m, k, N_CTX);
    if (c && feed(m, c, k, 1, 0, 0, N, 21, got))
        compare("with a neighbour", got, want, 0, k);
    else
        fail("with a neighbour", last_error);
    if (c) llama_free(c);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    llama_log_set(log_line, NULL);
    llama_backend_init();
    struct llama_model_params mp = llama_model_default_params();
    mp.n_gpu_layers = 0;
    struct llama_model *m = llama_model_load_from_file(argv[1], mp);
    if (!m) {
        printf("FAIL loading: %s\n1\n", last_error);
        return 1;
    }
    const struct kind k = kind_of(m);
    const size_t n = (size_t) N * (size_t) k.width;
    float *want = calloc(n, sizeof(float)), *got = calloc(n, sizeof(float));
    if (!want || !got) return 2;
    char path[4096];
    snprintf(path, sizeof path, "%s", argc > 3 ? argv[3] : argv[2]);
    if (argc > 3) {
        FILE *f = fopen(path, "rb");
        if (!f || fread(want, sizeof(float), n, f) != n) return 2;
        fclose(f);
        const int layers[3] = {0, (llama_model_n_layer(m) + 1) / 2, 999};
        for (int i = 0; i < 3; i++) {
            char what[64];
            snprintf(what, sizeof what, "%d layers on simulated devices", layers[i]);
            from_file(argv[1], what, layers[i], got);
            compare(what, got, want, 0, &k);
        }
    } else if (run(m, &k, N_CTX, "running", want)) {
        for (size_t i = 0; i < n; i++)
            if (!isfinite(want[i])) {
                fail("running", "values that are not finite");
                break;
            }
        snprintf(path, sizeof path, "%s/logits.f32", argv[2]);
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(want, sizeof(float), n, f) != n || fclose(f) != 0) return 2;
        saved(m, &k, argv[2], want, got);
        quantized(argv[1], &k, argv[2], want, got);
        with_neighbour(m, &k, want, got);
        if (!k.encoder && !k.diffusion) {  // the others see the whole text at once
            if (run(m, &k, 1, "micro-batches of 1", got)) compare("micro-batches of 1", got, want, 0, &k);
            if (run(m, &k, 7, "micro-batches of 7", got)) compare("micro-batches of 7", got, want, 0, &k);
            in_pieces(m, &k, want, got);
            continued(m, &k, want, got);
        }
    }
    llama_model_free(m);
    free(want);
    free(got);
    if (n_failed)
        printf("%d\n", n_failed);
    else
        puts("ok");
    return n_failed ? 1 : 0;
}
