// Continues a prompt: the whole of the language-model library in the order in which a program meets it.
//
// usage: example-simple MODEL.gguf [N_TOKENS] [PROMPT]
#include "llama.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void errors_only(enum ggml_log_level level, const char *text, void *data) {
    (void) data;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

// Tokens of a text, malloc; their number in *n. NULL when it cannot be tokenized.
static llama_token *tokenize(const struct llama_vocab *vocab, const char *text, int32_t *n) {
    const int32_t size = (int32_t) strlen(text);
    const int32_t need =
        -llama_tokenize(vocab, text, size, NULL, 0, true, true);  // too little room: minus the number needed
    llama_token *tokens = need > 0 ? malloc(sizeof(*tokens) * (size_t) need) : NULL;
    *n = tokens ? llama_tokenize(vocab, text, size, tokens, need, true, true) : 0;
    return tokens;
}

static void print_piece(const struct llama_vocab *vocab, llama_token token) {
    char piece[256];
    const int32_t n = llama_token_to_piece(vocab, token, piece, sizeof(piece), 0, true);
    if (n > 0) fwrite(piece, 1, (size_t) n, stdout);
    fflush(stdout);
}

static int generate(struct llama_context *ctx, const struct llama_vocab *vocab, llama_token *prompt, int32_t n_prompt,
                    int n_predict) {
    struct llama_sampler *sampler = llama_sampler_chain_init(llama_sampler_chain_default_params());
    llama_sampler_chain_add(sampler, llama_sampler_init_greedy());
    struct llama_batch batch = llama_batch_get_one(prompt, n_prompt);
    llama_token token;
    int failed = 0;
    for (int i = 0; i < n_prompt; i++) print_piece(vocab, prompt[i]);
    for (int i = 0; i < n_predict; i++) {
        if ((failed = llama_decode(ctx, batch) != 0)) break;
        token = llama_sampler_sample(sampler, ctx, -1);
        if (llama_vocab_is_eog(vocab, token)) break;
        print_piece(vocab, token);
        batch = llama_batch_get_one(&token, 1);
    }
    putchar('\n');
    llama_sampler_free(sampler);
    return failed;
}

int main(int argc, char **argv) {
    const bool help = argc > 1 && strcmp(argv[1], "-h") == 0;
    if (argc < 2 || help) {
        fprintf(help ? stdout : stderr, "usage: %s MODEL.gguf [N_TOKENS] [PROMPT]\n", argv[0]);
        return help ? 0 : 2;
    }
    const int n_predict = argc > 2 ? atoi(argv[2]) : 32;
    llama_log_set(errors_only, NULL);
    ggml_backend_load_all();

    struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
    if (!model) return 1;
    const struct llama_vocab *vocab = llama_model_get_vocab(model);
    int32_t n_prompt;
    llama_token *prompt = tokenize(vocab, argc > 3 ? argv[3] : "The capital of France is", &n_prompt);

    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = (uint32_t) (n_prompt + n_predict);
    params.n_batch = (uint32_t) n_prompt;
    struct llama_context *ctx = prompt ? llama_init_from_model(model, params) : NULL;
    const int failed = ctx ? generate(ctx, vocab, prompt, n_prompt, n_predict) : 1;

    if (ctx) {
        llama_perf_context_print(ctx);
        llama_free(ctx);
    }
    free(prompt);
    llama_model_free(model);
    return failed;
}
