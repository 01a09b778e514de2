// Perplexity of a text, all logits of each window asked for; in windows of 128 with batches of 128 and of 32, which must agree to the bit.
#include "llama-cpp.h"
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

int main(int, char **argv) {
    llama_model_ptr model(llama_model_load_from_file(argv[1], llama_model_default_params()));
    const llama_vocab *vocab = llama_model_get_vocab(model.get());
    const int n_vocab = llama_vocab_n_tokens(vocab);
    std::string text;
    for (int i = 0; i < 12; i++) text += "The committee met on Tuesday to discuss the budget, and after a long debate it voted to adjourn until the following week. ";
    std::vector<llama_token> t(1024);
    t.resize(llama_tokenize(vocab, text.c_str(), (int32_t) text.size(), t.data(), 1024, true, false));
    double result[2];
    std::vector<float> first;
    for (int k = 0; k < 2; k++) {
        llama_context_params cp = llama_context_default_params();
        cp.n_ctx = 128;
        cp.n_batch = k ? 32 : 128;
        llama_context_ptr ctx(llama_init_from_model(model.get(), cp));
        double nll = 0;
        int count = 0;
        for (size_t w = 0; w + 128 <= t.size(); w += 128) {
            llama_memory_clear(llama_get_memory(ctx.get()), true);
            for (int at = 0; at < 128; at += (int) cp.n_batch) {
                llama_batch b = llama_batch_init((int32_t) cp.n_batch, 0, 1);
                for (int i = 0; i < (int) cp.n_batch; i++) {
                    b.token[i] = t[w + at + i];
                    b.pos[i] = at + i;
                    b.n_seq_id[i] = 1;
                    b.seq_id[i][0] = 0;
                    b.logits[i] = 1;
                }
                b.n_tokens = (int32_t) cp.n_batch;
                if (llama_decode(ctx.get(), b)) return 2;
                llama_batch_free(b);
                const float *all = llama_get_logits(ctx.get());
                for (int i = 0; i < (int) cp.n_batch; i++) {
                    const float *l = all + (size_t) i * n_vocab;
                    if (std::memcmp(l, llama_get_logits_ith(ctx.get(), i), n_vocab * sizeof(float))) return 3;
                    if (w == 0 && at + i == 100) {
                        if (k == 0) first.assign(l, l + n_vocab);
                        else if (std::memcmp(first.data(), l, n_vocab * sizeof(float))) return 4;
                    }
                    if (at + i < 64 || at + i == 127) continue;
                    float max = l[0];
                    for (int v = 1; v < n_vocab; v++) max = std::fmax(max, l[v]);
                    double sum = 0;
                    for (int v = 0; v < n_vocab; v++) sum += std::exp((double) (l[v] - max));
                    nll -= (double) (l[t[w + at + i + 1]] - max) - std::log(sum);
                    count++;
                }
            }
        }
        result[k] = std::exp(nll / count);
        printf("batches of %u: perplexity %.4f over %d tokens\n", cp.n_batch, result[k], count);
    }
    return result[0] == result[1] && result[0] > 1 && result[0] < 10 ? 0 : 5;
}
