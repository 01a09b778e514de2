// Draft and target: the draft guesses ahead, the target checks all guesses in one batch, wrong ones are taken back. Also guesses looked up in
// the text so far. Greedy, so that the text must be the target's own.
#include "llama-cpp.h"
#include <cstdio>
#include <string>
#include <vector>

static const int N_OUT = 32;

static llama_token best(llama_context *ctx, int i) {
    const int n = llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(ctx)));
    const float *l = llama_get_logits_ith(ctx, i);
    llama_token b = 0;
    for (int k = 1; k < n; k++)
        if (l[k] > l[b]) b = k;
    return b;
}

static bool feed(llama_context *ctx, const std::vector<llama_token> &t, llama_pos pos) {
    llama_batch b = llama_batch_init((int32_t) t.size(), 0, 1);
    for (size_t i = 0; i < t.size(); i++) {
        b.token[i] = t[i];
        b.pos[i] = pos + (llama_pos) i;
        b.n_seq_id[i] = 1;
        b.seq_id[i][0] = 0;
        b.logits[i] = true;
    }
    b.n_tokens = (int32_t) t.size();
    const bool ok = llama_decode(ctx, b) == 0;
    llama_batch_free(b);
    return ok;
}

int main(int argc, char **argv) {
    llama_model_ptr tgt(llama_model_load_from_file(argv[1], llama_model_default_params()));
    llama_model_ptr dft(llama_model_load_from_file(argc > 2 ? argv[2] : argv[1], llama_model_default_params()));
    const llama_vocab *vocab = llama_model_get_vocab(tgt.get());
    llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 256;
    llama_context_ptr ct(llama_init_from_model(tgt.get(), cp)), cd(llama_init_from_model(dft.get(), cp));
    const std::string prompt = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,";
    std::vector<llama_token> inp(64);
    inp.resize(llama_tokenize(vocab, prompt.c_str(), (int32_t) prompt.size(), inp.data(), 64, true, true));

    // alone
    std::vector<llama_token> want;
    if (!feed(ct.get(), inp, 0)) return 1;
    for (llama_token id = best(ct.get(), -1); (int) want.size() < N_OUT; id = best(ct.get(), -1)) {
        want.push_back(id);
        if (!feed(ct.get(), {id}, (llama_pos) (inp.size() + want.size() - 1))) return 2;
    }
    for (int kind = 0; kind < 2; kind++) {
        llama_memory_clear(llama_get_memory(ct.get()), true);
        llama_memory_clear(llama_get_memory(cd.get()), true);
        std::vector<llama_token> all = inp, out;
        if (!feed(ct.get(), inp, 0) || !feed(cd.get(), inp, 0)) return 3;
        llama_token id = best(ct.get(), -1);
        int n_batches = 0, n_drafted = 0, n_accepted = 0;
        while ((int) out.size() < N_OUT) {
            out.push_back(id);
            all.push_back(id);
            const llama_pos n_past = (llama_pos) all.size() - 1;
            std::vector<llama_token> draft;
            if (kind == 0) {
                if (!feed(cd.get(), {id}, n_past)) return 4;
                for (int k = 0; k < 5; k++) {
                    draft.push_back(best(cd.get(), -1));
                    if (k < 4 && !feed(cd.get(), {draft.back()}, n_past + 1 + k)) return 5;
                }
            } else {  // the last two tokens seen before: what followed them
                for (size_t i = all.size() - 2; i-- > 1 && draft.empty();)
                    if (all[i] == all[all.size() - 1] && all[i - 1] == all[all.size() - 2])
                        for (size_t k = i + 1; k < all.size() && draft.size() < 5; k++) draft.push_back(all[k]);
            }
            std::vector<llama_token> batch = {id};
            batch.insert(batch.end(), draft.begin(), draft.end());
            if (!feed(ct.get(), batch, n_past)) return 6;
            n_batches++;
            n_drafted += (int) draft.size();
            size_t ok = 0;
            while (ok < draft.size() && best(ct.get(), (int) ok) == draft[ok] && (int) out.size() < N_OUT) {
                out.push_back(draft[ok]);
                all.push_back(draft[ok++]);
                n_accepted++;
            }
            id = best(ct.get(), (int) ok);
            if (!llama_memory_seq_rm(llama_get_memory(ct.get()), 0, n_past + 1 + (llama_pos) ok, -1)) return 7;
            if (!llama_memory_seq_rm(llama_get_memory(cd.get()), 0, n_past + 1 + (llama_pos) ok, -1)) return 8;
            if (kind == 0 && ok == draft.size() && !draft.empty() && !feed(cd.get(), {draft.back()}, n_past + (llama_pos) ok)) return 9;
        }
        out.resize(N_OUT);
        printf("kind %d: %d batches, %d drafted, %d accepted\n", kind, n_batches, n_drafted, n_accepted);
        if (out != want || n_batches > N_OUT || n_accepted == 0) return 10 + kind;
    }
    return 0;
}
