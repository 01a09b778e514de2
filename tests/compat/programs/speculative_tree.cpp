// A draft that branches where it is unsure: the branches are sequences that share cells, the target checks the whole tree in one batch and keeps
// one branch. Greedy, so that the text must be the target's own.
#include "decode_loop.hpp"
#include <cmath>
#include <set>

struct br {
    bool active = false, drafting = false, skip = false;
    int i_batch_dft = 0;
    std::vector<int> i_batch_tgt;
    std::vector<llama_token> tokens;
};
static std::vector<llama_token> topk(llama_context *c, int i, int k, std::vector<float> *p) {
    const int n = llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(c)));
    const float *l = llama_get_logits_ith(c, i);
    if (!l) DIE(60);
    std::vector<llama_token> ix((size_t) n);
    for (int j = 0; j < n; j++) ix[(size_t) j] = j;
    std::partial_sort(ix.begin(), ix.begin() + k, ix.end(), [&](int a, int b) { return l[a] > l[b]; });
    double s = 0;
    for (int j = 0; j < n; j++) s += std::exp(l[j] - l[ix[0]]);
    p->clear();
    for (int j = 0; j < k; j++) p->push_back((float) (std::exp(l[ix[(size_t) j]] - l[ix[0]]) / s));
    ix.resize((size_t) k);
    return ix;
}
int main(int argc, char **argv) {
    if (argc < 2) return 1;
    llama_model_ptr mt(llama_model_load_from_file(argv[1], llama_model_default_params())),
        md(llama_model_load_from_file(argv[argc > 2 ? 2 : 1], llama_model_default_params()));
    auto *v = llama_model_get_vocab(mt.get());
    const int n_seq = 4, n_draft = 5, n_predict = 20;
    const float p_split = 0.1f;
    auto cp = llama_context_default_params();
    cp.n_ctx = 1024;
    cp.n_seq_max = n_seq;
    cp.kv_unified = true;
    cp.n_threads = cp.n_threads_batch = 2;
    llama_context_ptr ct(llama_init_from_model(mt.get(), cp)), cd(llama_init_from_model(md.get(), cp));
    auto memt = llama_get_memory(ct.get()), memd = llama_get_memory(cd.get());
    auto inp = tokenize(v, "A list of animals: a dog, a cat, a cow,");
    const int n = (int) inp.size();
    if (llama_decode(ct.get(), llama_batch_get_one(inp.data(), n - 1)) ||
        llama_decode(ct.get(), llama_batch_get_one(&inp.back(), 1)) ||
        llama_decode(cd.get(), llama_batch_get_one(inp.data(), n)))
        DIE(2);
    int n_past_t = n, n_past_d = n, n_pred = 0, n_drafted = 0, n_acc = 0;
    std::string out;
    std::vector<br> d((size_t) n_seq);
    d[0].i_batch_tgt = {0};
    llama_batch bd = llama_batch_init(256, 0, 1), bt = llama_batch_init(256, 0, n_seq);
    bool first = true;
    while (n_pred < n_predict) {
        int i_dft = 0, s_keep = 0;
        llama_token id = 0;
        std::set<int> act;
        for (int s = 0; s < n_seq; s++)
            if (d[(size_t) s].active) act.insert(s);
        while (true) {
            const int ib = first ? -1 : d[(size_t) s_keep].i_batch_tgt[(size_t) i_dft];
            id = best(ct.get(), ib);
            out += piece(v, id);
            n_pred++;
            bool ok = false;
            for (int s : std::set<int>(act)) {
                if (i_dft < (int) d[(size_t) s].tokens.size() && d[(size_t) s].tokens[(size_t) i_dft] == id) {
                    s_keep = s;
                    ok = true;
                } else
                    act.erase(s), d[(size_t) s].active = false;
            }
            if (!ok) break;
            n_acc++;
            ++n_past_t;
            ++n_past_d;
            ++i_dft;
        }
        first = false;
        {
            llama_memory_seq_keep(memd, s_keep);
            llama_memory_seq_cp(memd, s_keep, 0, -1, -1);
            llama_memory_seq_keep(memd, 0);
            llama_memory_seq_rm(memt, s_keep, n_past_t, -1);
            llama_memory_seq_keep(memt, s_keep);
            llama_memory_seq_cp(memt, s_keep, 0, -1, -1);
            llama_memory_seq_keep(memt, 0);
        }
        for (auto &q : d) {
            q = br();
        }
        d[0].i_batch_tgt = {0};
        d[0].tokens = {id};
        bd.n_tokens = 0;
        add(bd, id, n_past_d, {0}, true);
        llama_memory_seq_rm(memd, 0, n_past_d, -1);
        if (llama_decode(cd.get(), bd)) DIE(3);
        ++n_past_d;
        d[0].active = d[0].drafting = true;
        d[0].i_batch_dft = 0;
        d[0].tokens.clear();
        int n_cur = 1, n_past_cur = n_past_d;
        bt.n_tokens = 0;
        add(bt, id, n_past_t, {0}, true);
        for (int i = 0; i < n_draft; i++) {
            bd.n_tokens = 0;
            for (auto &q : d) q.skip = false;
            for (int s = 0; s < n_seq; s++) {
                if (!d[(size_t) s].drafting || d[(size_t) s].skip) continue;
                std::vector<float> p;
                auto ids = topk(cd.get(), d[(size_t) s].i_batch_dft, 4, &p);
                std::vector<int> sa = {s};
                for (size_t f = 1; f < 4; f++)
                    if (n_cur < n_seq && p[f] > p_split) {
                        llama_memory_seq_rm(memd, n_cur, -1, -1);
                        llama_memory_seq_cp(memd, s, n_cur, -1, -1);
                        for (int t = 0; t < bt.n_tokens; t++)
                            for (int q = 0; q < bt.n_seq_id[t]; q++)
                                if (bt.seq_id[t][q] == s) {
                                    bt.seq_id[t][bt.n_seq_id[t]++] = n_cur;
                                    break;
                                }
                        d[(size_t) n_cur] = d[(size_t) s];
                        d[(size_t) n_cur].skip = true;
                        sa.push_back(n_cur++);
                    } else
                        break;
                for (size_t k = 0; k < sa.size(); k++) {
                    auto &q = d[(size_t) sa[k]];
                    q.tokens.push_back(ids[k]);
                    q.i_batch_tgt.push_back(bt.n_tokens);
                    add(bt, ids[k], n_past_t + i + 1, {sa[k]}, true);
                    q.i_batch_dft = bd.n_tokens;
                    add(bd, ids[k], n_past_cur, {sa[k]}, true);
                    n_drafted++;
                }
            }
            if (bd.n_tokens == 0) break;
            if (llama_decode(cd.get(), bd)) DIE(4);
            ++n_past_cur;
        }
        llama_memory_seq_keep(memt, 0);
        for (int s = 1; s < n_seq; s++) llama_memory_seq_cp(memt, 0, s, -1, -1);
        if (llama_decode(ct.get(), bt)) DIE(5);
        ++n_past_t;
    }
    printf("%s\ndrafted %d accepted %d pred %d\n", out.c_str(), n_drafted, n_acc, n_pred);
    llama_batch_free(bd);
    llama_batch_free(bt);
    llama_memory_clear(memt, true);
    if (llama_decode(ct.get(), llama_batch_get_one(inp.data(), n))) DIE(6);
    std::string plain;
    for (int i = 0; i < n_pred; i++) {
        auto id = best(ct.get(), -1);
        plain += piece(v, id);
        if (llama_decode(ct.get(), llama_batch_get_one(&id, 1))) DIE(7);
    }
    return plain == out && n_acc > 0 ? 0 : 8;
}
