// Embeddings of several texts in one batch, and how alike they are.
//
// usage: example-embedding MODEL.gguf TEXT [TEXT ...]
#include "llama.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void errors_only(enum ggml_log_level level, const char *text, void *data) {
    (void) data;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static double cosine(const float *x, const float *y, int n) {
    double xy = 0, xx = 0, yy = 0;
    for (int i = 0; i < n; i++) xy += (double) x[i] * y[i], xx += (double) x[i] * x[i], yy += (double) y[i] * y[i];
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
}

// One sequence per text.
static int fill(struct llama_batch *b, int room, const struct llama_vocab *vocab, int seq, const char *text) {
    llama_token tokens[512];
    const int32_t n = llama_tokenize(vocab, text, (int32_t) strlen(text), tokens, 512, true, true);
    if (n <= 0 || b->n_tokens + n > room) return 1;
    for (int32_t i = 0; i < n; i++) {
        const int32_t k = b->n_tokens++;
        b->token[k] = tokens[i];
        b->pos[k] = i;
        b->n_seq_id[k] = 1;
        b->seq_id[k][0] = seq;
        b->logits[k] = 1;
    }
    return 0;
}

static int run(struct llama_model *model, struct llama_context *ctx, int n_text, char **texts) {
    const int room = (int) llama_n_batch(ctx), n = llama_model_n_embd_out(model);
    struct llama_batch batch = llama_batch_init(room, 0, 1);
    int failed = 0;
    for (int i = 0; i < n_text && !failed; i++) failed = fill(&batch, room, llama_model_get_vocab(model), i, texts[i]);
    if (failed) fprintf(stderr, "error: the texts have more than %d tokens together\n", room);
    const bool encoder = llama_model_has_encoder(model) && !llama_model_has_decoder(model);
    if (!failed) failed = (encoder ? llama_encode(ctx, batch) : llama_decode(ctx, batch)) != 0;
    for (int i = 0; i < n_text && !failed; i++) {
        for (int k = 0; k < n_text; k++)
            printf("%7.4f", cosine(llama_get_embeddings_seq(ctx, i), llama_get_embeddings_seq(ctx, k), n));
        printf("  %s\n", texts[i]);
    }
    llama_batch_free(batch);
    return failed;
}

int main(int argc, char **argv) {
    const bool help = argc > 1 && strcmp(argv[1], "-h") == 0;
    if (argc < 3 || help) {
        fprintf(help ? stdout : stderr, "usage: %s MODEL.gguf TEXT [TEXT ...]\n", argv[0]);
        return help ? 0 : 2;
    }
    llama_log_set(errors_only, NULL);
    ggml_backend_load_all();
    struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
    if (!model) return 1;
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = params.n_batch = params.n_ubatch = 512u * (uint32_t) (argc - 2);
    params.n_seq_max = (uint32_t) (argc - 2);
    params.embeddings = true;
    struct llama_context *ctx = llama_init_from_model(model, params);
    if (ctx && llama_pooling_type(ctx) == LLAMA_POOLING_TYPE_NONE) {  // a model that brings no pooling of its own: the mean
        llama_free(ctx);
        params.pooling_type = LLAMA_POOLING_TYPE_MEAN;
        ctx = llama_init_from_model(model, params);
    }
    const int failed = ctx ? run(model, ctx, argc - 2, argv + 2) : 1;
    if (ctx) llama_free(ctx);
    llama_model_free(model);
    return failed;
}
