// Embeddings of passages in one batch, the nearest to a query found by cosine.
#include "llama-cpp.h"
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

int main(int, char **argv) {
    llama_model_ptr model(llama_model_load_from_file(argv[1], llama_model_default_params()));
    const llama_vocab *vocab = llama_model_get_vocab(model.get());
    llama_context_params cp = llama_context_default_params();
    cp.embeddings = true;
    cp.pooling_type = LLAMA_POOLING_TYPE_MEAN;
    cp.n_ctx = 512;
    cp.n_seq_max = 4;
    cp.kv_unified = true;
    llama_context_ptr ctx(llama_init_from_model(model.get(), cp));
    if (!ctx || llama_pooling_type(ctx.get()) != LLAMA_POOLING_TYPE_MEAN) return 1;
    const std::vector<std::string> texts = {"The cat sat on the mat and purred.", "Stock prices fell sharply on Monday.", "Add two eggs and stir the flour.", "A kitten slept on the rug."};
    llama_batch batch = llama_batch_init(256, 0, 1);
    for (int s = 0; s < (int) texts.size(); s++) {
        std::vector<llama_token> t(128);
        t.resize(llama_tokenize(vocab, texts[s].c_str(), (int32_t) texts[s].size(), t.data(), 128, true, false));
        for (size_t i = 0; i < t.size(); i++) {
            const int k = batch.n_tokens++;
            batch.token[k] = t[i];
            batch.pos[k] = (llama_pos) i;
            batch.n_seq_id[k] = 1;
            batch.seq_id[k][0] = s;
            batch.logits[k] = true;
        }
    }
    if (llama_decode(ctx.get(), batch) < 0) return 2;
    const int n = llama_model_n_embd(model.get());
    std::vector<std::vector<float>> e;
    for (int s = 0; s < (int) texts.size(); s++) {
        const float *x = llama_get_embeddings_seq(ctx.get(), s);
        if (!x) return 3;
        double sum = 0;
        for (int i = 0; i < n; i++) sum += (double) x[i] * x[i];
        e.emplace_back(x, x + n);
        for (auto &v : e.back()) v /= (float) std::sqrt(sum);
    }
    double sim[3];
    for (int s = 0; s < 3; s++) {
        sim[s] = 0;
        for (int i = 0; i < n; i++) sim[s] += (double) e[3][i] * e[s][i];
        printf("%.4f  %s\n", sim[s], texts[s].c_str());
    }
    llama_batch_free(batch);
    return sim[0] > sim[1] && sim[0] > sim[2] && sim[0] < 1 ? 0 : 4;
}
