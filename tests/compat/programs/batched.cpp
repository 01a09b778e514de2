// One prompt, four continuations in one batch; and four clients whose requests come and go (continuous batching). Each continuation must be
// what it is alone.
#include "llama-cpp.h"
#include <cstdio>
#include <string>
#include <vector>

static void add(llama_batch &b, llama_token id, llama_pos pos, const std::vector<llama_seq_id> &seqs, bool logits) {
    b.token[b.n_tokens] = id;
    b.pos[b.n_tokens] = pos;
    b.n_seq_id[b.n_tokens] = (int32_t) seqs.size();
    for (size_t i = 0; i < seqs.size(); i++) b.seq_id[b.n_tokens][i] = seqs[i];
    b.logits[b.n_tokens] = logits;
    b.n_tokens++;
}

static std::vector<llama_token> tokenize(const llama_vocab *v, const std::string &s) {
    std::vector<llama_token> t(s.size() + 2);
    t.resize(llama_tokenize(v, s.c_str(), (int32_t) s.size(), t.data(), (int32_t) t.size(), true, true));
    return t;
}

static llama_token best(llama_context *ctx, int i, int n_vocab) {
    const float *l = llama_get_logits_ith(ctx, i);
    llama_token b = 0;
    for (int k = 1; k < n_vocab; k++)
        if (l[k] > l[b]) b = k;
    return b;
}

int main(int, char **argv) {
    llama_model_ptr model(llama_model_load_from_file(argv[1], llama_model_default_params()));
    const llama_vocab *vocab = llama_model_get_vocab(model.get());
    const int n_vocab = llama_vocab_n_tokens(vocab), N = 4, LEN = 12;
    llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 512;
    cp.n_batch = 128;
    cp.n_seq_max = N;
    cp.kv_unified = true;
    llama_context_ptr ctx(llama_init_from_model(model.get(), cp));
    llama_memory_t mem = llama_get_memory(ctx.get());
    llama_batch batch = llama_batch_init(128, 0, N);

    // the prompt once for all sequences
    const auto prompt = tokenize(vocab, "Once upon a time");
    for (size_t i = 0; i < prompt.size(); i++) add(batch, prompt[i], (llama_pos) i, {0, 1, 2, 3}, i + 1 == prompt.size());
    if (llama_decode(ctx.get(), batch)) return 2;
    std::vector<int> i_batch(N, batch.n_tokens - 1);
    std::vector<std::string> streams(N);
    std::vector<llama_sampler_ptr> smpl;
    for (int s = 0; s < N; s++) {
        smpl.emplace_back(llama_sampler_chain_init(llama_sampler_chain_default_params()));
        llama_sampler_chain_add(smpl[s].get(), llama_sampler_init_top_k(40));
        llama_sampler_chain_add(smpl[s].get(), llama_sampler_init_top_p(0.9f, 1));
        llama_sampler_chain_add(smpl[s].get(), llama_sampler_init_temp(0.9f));
        llama_sampler_chain_add(smpl[s].get(), llama_sampler_init_dist(1234 + s / 2));  // pairs share a seed
    }
    for (int k = 0; k < LEN; k++) {
        batch.n_tokens = 0;
        for (int s = 0; s < N; s++) {
            const llama_token id = llama_sampler_sample(smpl[s].get(), ctx.get(), i_batch[s]);
            char buf[64];
            streams[s] += std::string(buf, llama_token_to_piece(vocab, id, buf, sizeof(buf), 0, true));
            i_batch[s] = batch.n_tokens;
            add(batch, id, (llama_pos) prompt.size() + k, {s}, true);
        }
        if (llama_decode(ctx.get(), batch)) return 3;
    }
    for (auto &s : streams) printf("%s\n", s.c_str());
    if (streams[0] != streams[1] || streams[2] != streams[3]) return 4;

    // clients of different lengths, new ones taking the place of those that are done
    llama_memory_clear(mem, true);
    const std::vector<std::string> requests = {"The sun is", "One, two, three,", "Dogs are", "In the year 1990 the", "Water boils at", "My name is"};
    struct client { int request = -1; llama_pos pos = 0; int i_batch = -1; llama_token last = 0; std::vector<llama_token> out; };
    std::vector<client> clients(N);
    std::vector<std::vector<llama_token>> answers(requests.size());
    size_t next = 0, done = 0;
    while (done < requests.size()) {
        batch.n_tokens = 0;
        for (int s = 0; s < N; s++) {
            client &c = clients[s];
            if (c.request < 0) {
                if (next == requests.size()) continue;
                c = client();
                c.request = (int) next++;
                llama_memory_seq_rm(mem, s, -1, -1);
                const auto t = tokenize(vocab, requests[c.request]);
                for (size_t i = 0; i < t.size(); i++) add(batch, t[i], c.pos++, {s}, i + 1 == t.size());
            } else {
                add(batch, c.last, c.pos++, {s}, true);
            }
            c.i_batch = batch.n_tokens - 1;
        }
        if (llama_decode(ctx.get(), batch)) return 5;
        for (auto &c : clients) {
            if (c.request < 0) continue;
            c.last = best(ctx.get(), c.i_batch, n_vocab);
            c.out.push_back(c.last);
            if ((int) c.out.size() >= 4 + 3 * (c.request % 3)) {
                answers[c.request] = c.out;
                c.request = -1;
                done++;
            }
        }
    }
    for (size_t r = 0; r < requests.size(); r++) {  // each alone
        llama_memory_clear(mem, true);
        auto t = tokenize(vocab, requests[r]);
        for (size_t k = 0; k < answers[r].size(); k++) {
            if (llama_decode(ctx.get(), llama_batch_get_one(t.data(), (int32_t) t.size()))) return 6;
            const llama_token id = best(ctx.get(), -1, n_vocab);
            if (id != answers[r][k]) return 7;
            t = {id};
        }
    }
    llama_batch_free(batch);
    return 0;
}
