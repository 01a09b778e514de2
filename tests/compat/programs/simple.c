// A prompt continued greedily, as the field's smallest program does it.
#include "llama.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    const char *prompt = argc > 2 ? argv[2] : "The capital of France is";
    ggml_backend_load_all();
    struct llama_model_params mp = llama_model_default_params();
    mp.n_gpu_layers = 99;
    struct llama_model *model = llama_model_load_from_file(argv[1], mp);
    if (!model) return 1;
    const struct llama_vocab *vocab = llama_model_get_vocab(model);
    const int n_prompt = -llama_tokenize(vocab, prompt, (int32_t) strlen(prompt), NULL, 0, true, true);
    llama_token *tokens = malloc(sizeof(llama_token) * (size_t) n_prompt);
    if (llama_tokenize(vocab, prompt, (int32_t) strlen(prompt), tokens, n_prompt, true, true) < 0) return 2;
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = (uint32_t) n_prompt + 32;
    cp.n_batch = (uint32_t) n_prompt;
    cp.no_perf = false;
    struct llama_context *ctx = llama_init_from_model(model, cp);
    if (!ctx) return 3;
    struct llama_sampler_chain_params sp = llama_sampler_chain_default_params();
    sp.no_perf = false;
    struct llama_sampler *smpl = llama_sampler_chain_init(sp);
    llama_sampler_chain_add(smpl, llama_sampler_init_greedy());
    struct llama_batch batch = llama_batch_get_one(tokens, n_prompt);
    llama_token id;
    int n_decode = 0;
    for (int n_pos = 0; n_pos + batch.n_tokens < n_prompt + 24;) {
        if (llama_decode(ctx, batch)) return 4;
        n_pos += batch.n_tokens;
        id = llama_sampler_sample(smpl, ctx, -1);
        if (llama_vocab_is_eog(vocab, id)) break;
        char buf[128];
        const int n = llama_token_to_piece(vocab, id, buf, sizeof buf, 0, true);
        if (n < 0) return 5;
        printf("%.*s", n, buf);
        fflush(stdout);
        batch = llama_batch_get_one(&id, 1);
        n_decode++;
    }
    printf("\n");
    const struct llama_perf_context_data perf = llama_perf_context(ctx);
    if (perf.n_p_eval != n_prompt || perf.n_eval < n_decode - 1 || perf.t_eval_ms <= 0) return 6;
    llama_perf_sampler_print(smpl);
    llama_perf_context_print(ctx);
    llama_sampler_free(smpl);
    llama_free(ctx);
    llama_model_free(model);
    free(tokens);
    return 0;
}
