// The same continuation three times: straight on, from a saved state of the context, and from one sequence's state in another sequence.
#include "llama-cpp.h"
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

int main(int, char **argv) {
    llama_model_ptr model(llama_model_load_from_file(argv[1], llama_model_default_params()));
    const llama_vocab *vocab = llama_model_get_vocab(model.get());
    llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 256;
    cp.n_seq_max = 2;
    cp.kv_unified = true;
    const std::string prompt = "The quick brown fox";
    std::vector<llama_token> tokens(32);
    tokens.resize(llama_tokenize(vocab, prompt.c_str(), (int32_t) prompt.size(), tokens.data(), 32, true, true));
    char path[] = "/tmp/lamina-state-XXXXXX";
    if (mkstemp(path) < 0) return 1;

    auto sampler = [] {
        llama_sampler_ptr s(llama_sampler_chain_init(llama_sampler_chain_default_params()));
        llama_sampler_chain_add(s.get(), llama_sampler_init_dist(42));
        return s;
    };
    auto generate = [&](llama_context *ctx, llama_seq_id seq, llama_pos pos) {
        std::string out;
        auto smpl = sampler();
        llama_batch b = llama_batch_init(1, 0, 1);
        for (int i = 0; i < 16; i++) {
            const llama_token id = llama_sampler_sample(smpl.get(), ctx, -1);
            char buf[64];
            out += std::string(buf, llama_token_to_piece(vocab, id, buf, sizeof(buf), 0, true));
            b.n_tokens = 1;
            b.token[0] = id;
            b.pos[0] = pos++;
            b.n_seq_id[0] = 1;
            b.seq_id[0][0] = seq;
            b.logits[0] = true;
            if (llama_decode(ctx, b)) exit(2);
        }
        llama_batch_free(b);
        return out;
    };
    std::string r0, r1, r2;
    {
        llama_context_ptr ctx(llama_init_from_model(model.get(), cp));
        if (llama_decode(ctx.get(), llama_batch_get_one(tokens.data(), (int32_t) tokens.size()))) return 3;
        std::vector<uint8_t> state(llama_state_get_size(ctx.get()));
        const size_t written = llama_state_get_data(ctx.get(), state.data(), state.size());
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(state.data(), 1, written, f) != written) return 4;
        fclose(f);
        r0 = generate(ctx.get(), 0, (llama_pos) tokens.size());
    }
    {
        llama_context_ptr ctx(llama_init_from_model(model.get(), cp));
        FILE *f = fopen(path, "rb");
        std::vector<uint8_t> state(llama_state_get_size(ctx.get()) + (1 << 24));
        state.resize(fread(state.data(), 1, state.size(), f));
        fclose(f);
        if (llama_state_set_data(ctx.get(), state.data(), state.size()) != state.size()) return 5;
        r1 = generate(ctx.get(), 0, (llama_pos) tokens.size());
    }
    {
        llama_context_ptr ctx(llama_init_from_model(model.get(), cp));
        FILE *f = fopen(path, "rb");
        std::vector<uint8_t> state(1 << 24);
        state.resize(fread(state.data(), 1, state.size(), f));
        fclose(f);
        if (llama_state_set_data(ctx.get(), state.data(), state.size()) != state.size()) return 6;
        std::vector<uint8_t> seq(llama_state_seq_get_size(ctx.get(), 0));
        if (llama_state_seq_get_data(ctx.get(), seq.data(), seq.size(), 0) != seq.size()) return 7;
        llama_memory_clear(llama_get_memory(ctx.get()), true);
        if (llama_state_seq_set_data(ctx.get(), seq.data(), seq.size(), 1) != seq.size()) return 8;
        r2 = generate(ctx.get(), 1, (llama_pos) tokens.size());
        // whole files, with tokens
        std::vector<llama_token> back(64);
        size_t n = 0;
        if (!llama_state_save_file(ctx.get(), path, tokens.data(), tokens.size()) || !llama_state_load_file(ctx.get(), path, back.data(), back.size(), &n) || n != tokens.size()) return 9;
        back.resize(n);
        if (back != tokens) return 10;
    }
    remove(path);
    printf("%s\n", r0.c_str());
    return r0 == r1 && r0 == r2 ? 0 : 11;
}
