// JSON by grammar, a sampler of the caller's own, logit bias, the candidate array by hand.
#include "llama-cpp.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

struct only_odd { int n_applied = 0; };
static const char *name(const llama_sampler *) { return "only-odd"; }
static void apply(llama_sampler *s, llama_token_data_array *cur) {
    ((only_odd *) s->ctx)->n_applied++;
    for (size_t i = 0; i < cur->size; i++)
        if (cur->data[i].id % 2 == 0) cur->data[i].logit = -INFINITY;
}
static llama_sampler *clone(const llama_sampler *s);
static void release(llama_sampler *s) { delete (only_odd *) s->ctx; }
static llama_sampler_i iface() {
    llama_sampler_i i = {};
    i.name = name;
    i.apply = apply;
    i.clone = clone;
    i.free = release;
    return i;
}
static llama_sampler_i odd_iface = iface();
static llama_sampler *clone(const llama_sampler *s) { return llama_sampler_init(&odd_iface, new only_odd(*(only_odd *) s->ctx)); }

int main(int, char **argv) {
    llama_model_ptr model(llama_model_load_from_file(argv[1], llama_model_default_params()));
    const llama_vocab *vocab = llama_model_get_vocab(model.get());
    llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 256;
    llama_context_ptr ctx(llama_init_from_model(model.get(), cp));
    auto generate = [&](llama_sampler *smpl, int n, std::vector<llama_token> *ids) {
        llama_memory_clear(llama_get_memory(ctx.get()), true);
        const std::string prompt = "A person as JSON:";
        std::vector<llama_token> t(64);
        t.resize(llama_tokenize(vocab, prompt.c_str(), (int32_t) prompt.size(), t.data(), 64, true, true));
        std::string out;
        for (int i = 0; i < n; i++) {
            if (llama_decode(ctx.get(), llama_batch_get_one(t.data(), (int32_t) t.size()))) exit(2);
            t = {llama_sampler_sample(smpl, ctx.get(), -1)};
            if (llama_vocab_is_eog(vocab, t[0])) break;
            if (ids) ids->push_back(t[0]);
            char buf[64];
            out += std::string(buf, llama_token_to_piece(vocab, t[0], buf, sizeof buf, 0, true));
        }
        return out;
    };
    llama_sampler_ptr json(llama_sampler_chain_init(llama_sampler_chain_default_params()));
    llama_sampler_chain_add(json.get(), llama_sampler_init_grammar(vocab, "root ::= \"{\\\"name\\\": \\\"\" [a-z]{3,8} \"\\\", \\\"age\\\": \" [1-9] [0-9]? \"}\"", "root"));
    llama_sampler_chain_add(json.get(), llama_sampler_init_temp(1.5f));
    llama_sampler_chain_add(json.get(), llama_sampler_init_dist(7));
    const std::string s = generate(json.get(), 40, nullptr);
    printf("%s\n", s.c_str());
    if (s.compare(0, 10, "{\"name\": \"") != 0 || s.back() != '}') return 3;
    if (llama_sampler_init_grammar(vocab, "root ::= (", "root")) return 4;

    llama_sampler_ptr chain(llama_sampler_chain_init(llama_sampler_chain_default_params()));
    llama_sampler_chain_add(chain.get(), llama_sampler_init(&odd_iface, new only_odd));
    llama_sampler_chain_add(chain.get(), llama_sampler_init_greedy());
    llama_sampler_ptr twin(llama_sampler_clone(chain.get()));
    std::vector<llama_token> ids, again;
    generate(chain.get(), 10, &ids);
    generate(twin.get(), 10, &again);
    for (llama_token id : ids)
        if (id % 2 == 0) return 5;
    if (ids != again || ids.empty() || ((only_odd *) llama_sampler_chain_get(chain.get(), 0)->ctx)->n_applied < 10) return 6;

    std::vector<llama_token_data> cand;
    const float *logits = llama_get_logits_ith(ctx.get(), -1);
    for (llama_token id = 0; id < llama_vocab_n_tokens(vocab); id++) cand.push_back({id, logits[id], 0});
    llama_token_data_array arr = {cand.data(), cand.size(), -1, false};
    const llama_logit_bias bias = {42, 1000};
    llama_sampler_ptr lb(llama_sampler_init_logit_bias(llama_vocab_n_tokens(vocab), 1, &bias)), k(llama_sampler_init_top_k(5)), g(llama_sampler_init_greedy());
    llama_sampler_apply(lb.get(), &arr);
    llama_sampler_apply(k.get(), &arr);
    llama_sampler_apply(g.get(), &arr);
    return arr.size == 5 && arr.sorted && arr.selected >= 0 && arr.data[arr.selected].id == 42 && strcmp(llama_sampler_name(k.get()), "top-k") == 0 ? 0 : 7;
}
