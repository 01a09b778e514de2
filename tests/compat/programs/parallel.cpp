// A server's loop: one system prompt in sequence 0 given to all clients by seq_cp, requests that join and leave a batch at any step, batches cut
// in pieces. Every answer must be what the request gets alone.
#include "decode_loop.hpp"

struct client {
    int request = -1, n_prompt = 0, n_decoded = 0, i_batch = -1;
    llama_token sampled = 0;
    std::vector<llama_token> answer;
};

int main(int, char **argv) {
    llama_model_ptr model(llama_model_load_from_file(argv[1], llama_model_default_params()));
    const llama_vocab *vocab = llama_model_get_vocab(model.get());
    const std::vector<std::string> requests = {"What is the capital of France?", "Name three colors.",
                                               "How many legs has a dog?", "Why is the sky blue?", "Say hi."};
    const auto system = tokenize(
        vocab, "Transcript of a dialog with Bob, who is brief.\nUser: Recommend a restaurant.\nBob: The Golden Duck.\n",
        true);
    const int n_clients = 3;
    std::vector<std::vector<llama_token>> answers[2];
    for (int unified = 0; unified < 2; unified++) {
        llama_context_params cp = llama_context_default_params();
        cp.n_ctx = unified ? 512 : 1024;
        cp.n_ubatch = 16;
        cp.n_seq_max = n_clients + 1;
        cp.kv_unified = unified;
        llama_context_ptr ctx(llama_init_from_model(model.get(), cp));
        llama_memory_t mem = llama_get_memory(ctx.get());
        llama_batch b = llama_batch_init(512, 0, 1);
        for (size_t i = 0; i < system.size(); i++) add(b, system[i], (llama_pos) i, {0}, false);
        if (llama_decode(ctx.get(), b)) return 1;
        for (int s = 1; s <= n_clients; s++) llama_memory_seq_cp(mem, 0, s, -1, -1);
        std::vector<client> clients(n_clients);
        answers[unified].resize(requests.size());
        size_t next = 0, done = 0;
        while (done < requests.size()) {
            b.n_tokens = 0;
            for (int s = 0; s < n_clients; s++) {
                client &c = clients[s];
                if (c.request < 0) continue;
                c.i_batch = b.n_tokens;
                add(b, c.sampled, (llama_pos) system.size() + c.n_prompt + c.n_decoded++, {s + 1}, true);
            }
            for (int s = 0; s < n_clients; s++) {
                client &c = clients[s];
                if (c.request >= 0 || next == requests.size()) continue;
                c = client();
                c.request = (int) next++;
                const auto t = tokenize(vocab, "User: " + requests[c.request] + "\nBob:", false);
                for (size_t i = 0; i < t.size(); i++)
                    add(b, t[i], (llama_pos) (system.size() + i), {s + 1}, i + 1 == t.size());
                c.n_prompt = (int) t.size();
                c.i_batch = b.n_tokens - 1;
            }
            const int step = unified ? 512 : 7;
            for (int i = 0; i < b.n_tokens; i += step) {
                const int n = std::min(step, b.n_tokens - i);
                if (llama_decode(ctx.get(),
                                 {n, b.token + i, nullptr, b.pos + i, b.n_seq_id + i, b.seq_id + i, b.logits + i}))
                    return 2;
                for (int s = 0; s < n_clients; s++) {
                    client &c = clients[s];
                    if (c.i_batch < i || c.i_batch >= i + n) continue;
                    c.sampled = best(ctx.get(), c.i_batch - i);
                    c.i_batch = -1;
                    c.answer.push_back(c.sampled);
                    if ((int) c.answer.size() < 4 + 2 * c.request) continue;
                    answers[unified][c.request] = c.answer;
                    c.request = -1;
                    done++;
                    llama_memory_seq_rm(mem, s + 1, -1, -1);
                    llama_memory_seq_cp(mem, 0, s + 1, -1, -1);
                }
            }
        }
        for (size_t r = 0; r < requests.size(); r++) {
            llama_memory_seq_rm(mem, 1, -1, -1);
            llama_memory_seq_cp(mem, 0, 1, -1, -1);
            auto t = tokenize(vocab, "User: " + requests[r] + "\nBob:", false);
            llama_pos pos = (llama_pos) system.size();
            for (llama_token want : answers[unified][r]) {
                b.n_tokens = 0;
                for (size_t i = 0; i < t.size(); i++) add(b, t[i], pos++, {1}, i + 1 == t.size());
                if (llama_decode(ctx.get(), b)) return 3;
                if (best(ctx.get(), b.n_tokens - 1) != want) return 4;
                t = {want};
            }
        }
        llama_batch_free(b);
    }
    return answers[0] == answers[1] ? 0 : 5;
}
