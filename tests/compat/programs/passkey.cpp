// A text longer than the context: the middle is dropped, what follows is moved back, generation goes on; then positions are divided
// (self-extend). Nothing may fail, and the start is still there.
#include "llama-cpp.h"
#include <cstdio>
#include <string>
#include <vector>

int main(int, char **argv) {
    llama_model_ptr model(llama_model_load_from_file(argv[1], llama_model_default_params()));
    const llama_vocab *vocab = llama_model_get_vocab(model.get());
    llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 256;
    cp.n_batch = 64;
    llama_context_ptr ctx(llama_init_from_model(model.get(), cp));
    llama_memory_t mem = llama_get_memory(ctx.get());
    std::string text = "The pass key is 4096. Remember it.";
    for (int i = 0; i < 60; i++) text += " The grass is green. The sky is blue.";
    std::vector<llama_token> t(2048);
    t.resize(llama_tokenize(vocab, text.c_str(), (int32_t) text.size(), t.data(), 2048, true, true));
    const int n_keep = 16;
    llama_pos n_past = 0;
    int n_shift = 0;
    for (size_t i = 0; i < t.size(); i += 32) {
        const int n = (int) (t.size() - i < 32 ? t.size() - i : 32);
        if (n_past + n > 200) {
            const int n_discard = 96;
            if (!llama_memory_can_shift(mem) || !llama_memory_seq_rm(mem, 0, n_keep, n_keep + n_discard)) return 1;
            llama_memory_seq_add(mem, 0, n_keep + n_discard, n_past, -n_discard);
            n_past -= n_discard;
            n_shift++;
            if (llama_memory_seq_pos_max(mem, 0) != n_past - 1) return 2;
        }
        if (llama_decode(ctx.get(), llama_batch_get_one(t.data() + i, n))) return 3;
        n_past += n;
        if (llama_memory_seq_pos_max(mem, 0) != n_past - 1 || llama_memory_seq_pos_min(mem, 0) != 0) return 4;
    }
    printf("%zu tokens through a context of 256, %d shifts\n", t.size(), n_shift);
    if (n_shift < 2) return 5;
    // grouped positions
    llama_memory_clear(mem, true);
    if (llama_decode(ctx.get(), llama_batch_get_one(t.data(), 64))) return 6;
    llama_memory_seq_div(mem, 0, 0, 64, 4);
    if (llama_memory_seq_pos_max(mem, 0) != 15) return 7;
    llama_token id = t[64];
    if (llama_decode(ctx.get(), llama_batch_get_one(&id, 1)) || !llama_get_logits_ith(ctx.get(), -1)) return 8;
    return llama_memory_seq_pos_max(mem, 0) == 16 ? 0 : 9;
}
