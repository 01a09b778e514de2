// A conversation of three turns: the template is applied to all messages, and what is new goes into the context.
#include "llama-cpp.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

int main(int, char **argv) {
    llama_model_ptr model(llama_model_load_from_file(argv[1], llama_model_default_params()));
    if (!model) return 1;
    const llama_vocab *vocab = llama_model_get_vocab(model.get());
    llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 1024;
    cp.n_batch = 1024;
    llama_context_ptr ctx(llama_init_from_model(model.get(), cp));
    llama_sampler_ptr smpl(llama_sampler_chain_init(llama_sampler_chain_default_params()));
    llama_sampler_chain_add(smpl.get(), llama_sampler_init_min_p(0.05f, 1));
    llama_sampler_chain_add(smpl.get(), llama_sampler_init_temp(0.8f));
    llama_sampler_chain_add(smpl.get(), llama_sampler_init_dist(LLAMA_DEFAULT_SEED));

    auto generate = [&](const std::string &prompt) {
        std::string response;
        const bool is_first = llama_memory_seq_pos_max(llama_get_memory(ctx.get()), 0) == -1;
        const int n_prompt = -llama_tokenize(vocab, prompt.c_str(), (int32_t) prompt.size(), nullptr, 0, is_first, true);
        std::vector<llama_token> tokens(n_prompt);
        if (llama_tokenize(vocab, prompt.c_str(), (int32_t) prompt.size(), tokens.data(), (int32_t) tokens.size(), is_first, true) < 0) std::exit(3);
        llama_batch batch = llama_batch_get_one(tokens.data(), (int32_t) tokens.size());
        llama_token id;
        for (int k = 0; k < 24; k++) {
            const int used = llama_memory_seq_pos_max(llama_get_memory(ctx.get()), 0) + 1;
            if (used + batch.n_tokens > (int) llama_n_ctx(ctx.get())) std::exit(4);
            if (llama_decode(ctx.get(), batch) != 0) std::exit(5);
            id = llama_sampler_sample(smpl.get(), ctx.get(), -1);
            if (llama_vocab_is_eog(vocab, id)) break;
            char buf[256];
            const int n = llama_token_to_piece(vocab, id, buf, sizeof(buf), 0, true);
            response += std::string(buf, n);
            batch = llama_batch_get_one(&id, 1);
        }
        return response;
    };

    std::vector<llama_chat_message> messages;
    std::vector<char> formatted(8);
    int prev_len = 0;
    for (const char *user : {"Hello", "What is two plus two?", "Thanks"}) {
        const char *tmpl = llama_model_chat_template(model.get(), nullptr);
        messages.push_back({"user", strdup(user)});
        int new_len = llama_chat_apply_template(tmpl, messages.data(), messages.size(), true, formatted.data(), (int32_t) formatted.size());
        if (new_len > (int) formatted.size()) {
            formatted.resize(new_len);
            new_len = llama_chat_apply_template(tmpl, messages.data(), messages.size(), true, formatted.data(), (int32_t) formatted.size());
        }
        if (new_len < 0) return 6;
        const std::string response = generate(std::string(formatted.begin() + prev_len, formatted.begin() + new_len));
        printf("> %s\n%s\n", user, response.c_str());
        messages.push_back({"assistant", strdup(response.c_str())});
        prev_len = llama_chat_apply_template(tmpl, messages.data(), messages.size(), false, nullptr, 0);
        if (prev_len < 0) return 7;
    }
    for (auto &m : messages) free(const_cast<char *>(m.content));
    return 0;
}
