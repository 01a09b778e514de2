// Jacobi decoding: a window of guesses several steps ahead, n-grams seen there checked in the same batch, tokens in many sequences at once; the
// branch that held is copied to all. Greedy, so that the text must be the model's own.
#include "decode_loop.hpp"

struct ngram_data {
    bool active = false;
    llama_seq_id seq_id = -1;
    std::vector<int> i_batch;
    std::vector<llama_token> tokens;
};
struct ngram_container {
    ngram_container(int nv, int N, int G)
        : cnt((size_t) nv), head((size_t) nv), tokens((size_t) nv * (size_t) G * (size_t) (N - 1)) {}
    int n_total = 0;
    std::vector<int> cnt, head;
    std::vector<llama_token> tokens;
};
int main(int argc, char **argv) {
    if (argc < 2) return 1;
    const int W = 7, N = 4, G = 7, n_predict = 24;
    llama_model_ptr m(llama_model_load_from_file(argv[1], llama_model_default_params()));
    auto *v = llama_model_get_vocab(m.get());
    const int nv = llama_vocab_n_tokens(v);
    auto cp = llama_context_default_params();
    cp.n_ctx = 1024;
    cp.n_batch = 512;
    cp.n_seq_max = W + G + 1;
    cp.kv_unified = true;
    cp.n_threads = cp.n_threads_batch = 2;
    llama_context_ptr c(llama_init_from_model(m.get(), cp));
    auto mem = llama_get_memory(c.get());
    auto inp = tokenize(v, "The numbers: one, two, three, one, two, three, one, two, three, one,");
    auto all = inp;
    const int n_input = (int) inp.size();
    if (llama_decode(c.get(), llama_batch_get_one(inp.data(), n_input - 1))) DIE(2);
    if (llama_decode(c.get(), llama_batch_get_one(&inp.back(), 1))) DIE(3);
    for (int s = 1; s < W + G + 1; ++s) llama_memory_seq_cp(mem, 0, s, -1, -1);
    int n_past = n_input, n_pred = 0, n_accept = 0;
    bool eos = false;
    std::string out;
    std::vector<ngram_data> cur((size_t) G);
    std::vector<std::vector<llama_token>> tj((size_t) (N - 1));
    std::vector<llama_token> tj_prev((size_t) W);
    for (int j = 0; j < N - 1; j++) {
        tj[(size_t) j].resize((size_t) W);
        for (int i = 0; i < W; i++) tj[(size_t) j][(size_t) i] = all[1 + (size_t) (i * 7 + j * 3) % (all.size() - 1)];
    }
    std::vector<llama_seq_id> seq_all;
    for (int i = 0; i < W + G + 1; i++) seq_all.push_back(i);
    ngram_container obs(nv, N, G);
    llama_batch b = llama_batch_init(512, 0, W + G + 1);
    llama_token id = best(c.get(), 0);
    out += piece(v, id);
    n_pred++;
    int rounds = 0;
    while (true) {
        b.n_tokens = 0;
        add(b, id, n_past, seq_all, true);
        {
            const int gc = obs.cnt[(size_t) id];
            cur.resize((size_t) gc);
            for (int g = 0; g < gc; g++) {
                auto &q = cur[(size_t) g];
                q.active = true;
                q.tokens.resize((size_t) N);
                q.i_batch.resize((size_t) N);
                q.seq_id = W + 1 + g;
                q.i_batch[0] = 0;
                q.tokens[0] = id;
            }
            for (int j = 0; j < N - 1; j++)
                for (int g = 0; g < gc; g++) {
                    const auto t = obs.tokens[(size_t) (id * (N - 1) * G + g * (N - 1) + j)];
                    auto &q = cur[(size_t) g];
                    q.tokens[(size_t) j + 1] = t;
                    q.i_batch[(size_t) j + 1] = b.n_tokens;
                    add(b, t, n_past + j + 1, {W + 1 + g}, true);
                }
        }
        for (int i = 1; i < W; i++) {
            std::vector<llama_seq_id> s;
            for (int j = 0; j < W - i; j++) s.push_back(i + j + 1);
            add(b, tj[0][(size_t) i], n_past + i, s, false);
        }
        for (int j = 1; j < N - 1; j++)
            for (int i = 0; i < W; i++) add(b, tj[(size_t) j][(size_t) i], n_past + j + i, {i + 1}, j == N - 2);
        if (llama_decode(c.get(), b)) DIE(4);
        rounds++;
        int seq_best = 0;
        for (int k = 0; k < N; k++) {
            int i_batch = 0;
            if (k > 0) {
                for (auto &q : cur) {
                    if (!q.active) continue;
                    i_batch = q.i_batch[(size_t) k];
                    seq_best = q.seq_id;
                    ++n_accept;
                    break;
                }
                if (i_batch == 0) break;
            }
            id = best(c.get(), i_batch);
            out += piece(v, id);
            all.push_back(id);
            if (llama_vocab_is_eog(v, id)) eos = true;
            ++n_pred;
            ++n_past;
            if ((n_predict >= 0 && n_pred > n_predict) || eos) break;
            for (auto &q : cur)
                if (q.active) {
                    if (k == N - 1)
                        q.active = false;
                    else if (id != q.tokens[(size_t) k + 1])
                        q.active = false;
                }
            {
                for (int i = 0; i < W; i++) tj_prev[(size_t) i] = tj[0][(size_t) i];
                for (int j = 0; j < N - 2; j++) tj[(size_t) j] = tj[(size_t) j + 1];
                if (k == 0)
                    for (int i = 0; i < W; i++) tj[(size_t) N - 2][(size_t) i] = best(c.get(), b.n_tokens - W + i);
                else
                    for (int i = 0; i < W; i++) tj[(size_t) N - 2][(size_t) i] = tj[0][(size_t) i];
            }
            if (k == 0) {
                std::vector<llama_token> ng((size_t) (N - 1));
                for (int f = 0; f < W; f++) {
                    const int ft = tj_prev[(size_t) f];
                    for (int j = 0; j < N - 1; j++) ng[(size_t) j] = tj[(size_t) j][(size_t) f];
                    bool uniq = true;
                    for (int g = 0; g < obs.cnt[(size_t) ft] && uniq; g++)
                        uniq = !std::equal(ng.begin(), ng.end(), &obs.tokens[(size_t) (ft * (N - 1) * G + g * (N - 1))]);
                    if (!uniq) continue;
                    const int h = obs.head[(size_t) ft];
                    for (int j = 0; j < N - 1; j++)
                        obs.tokens[(size_t) (ft * (N - 1) * G + h * (N - 1) + j)] = ng[(size_t) j];
                    obs.cnt[(size_t) ft] = std::min(G, obs.cnt[(size_t) ft] + 1);
                    obs.head[(size_t) ft] = (h + 1) % G;
                    obs.n_total++;
                }
            }
        }
        if ((n_predict >= 0 && n_pred > n_predict) || eos) break;
        llama_memory_seq_rm(mem, -1, n_past, -1);
        if (seq_best != 0) {
            llama_memory_seq_keep(mem, seq_best);
            llama_memory_seq_cp(mem, seq_best, 0, -1, -1);
            llama_memory_seq_rm(mem, seq_best, -1, -1);
            for (int s = 1; s < W + G + 1; ++s) llama_memory_seq_cp(mem, 0, s, -1, -1);
        }
    }
    llama_batch_free(b);
    printf("%s\nrounds %d pred %d accept %d observed %d\n", out.c_str(), rounds, n_pred, n_accept, obs.n_total);
    // plain greedy
    llama_memory_clear(mem, false);
    if (llama_decode(c.get(), llama_batch_get_one(inp.data(), n_input))) DIE(5);
    std::string plain;
    for (int i = 0; i < n_pred; i++) {
        id = best(c.get(), -1);
        plain += piece(v, id);
        if (llama_decode(c.get(), llama_batch_get_one(&id, 1))) DIE(6);
    }
    return plain == out && n_accept > 0 && rounds < n_pred ? 0 : 7;
}
