// Every node of the graph shown to a callback, with its data; a second callback that wants few nodes; one that stops.
#include "ggml-backend.h"
#include "llama-cpp.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

struct seen { std::set<std::string> names; int n = 0; bool finite = true; std::vector<uint8_t> data; };

static bool every(ggml_tensor *t, bool ask, void *user) {
    auto *s = (seen *) user;
    if (ask) return true;
    s->n++;
    s->names.insert(t->name);
    if (t->type == GGML_TYPE_F32 && !std::string(t->name).find("l_out")) {
        s->data.resize(ggml_nbytes(t));
        if (ggml_backend_buffer_is_host(t->buffer)) memcpy(s->data.data(), t->data, s->data.size());
        else ggml_backend_tensor_get(t, s->data.data(), 0, s->data.size());
        for (size_t i = 0; i < s->data.size() / 4; i++) s->finite = s->finite && std::isfinite(((float *) s->data.data())[i]);
    }
    return true;
}
static bool some(ggml_tensor *t, bool ask, void *user) {
    if (ask) return t->op == GGML_OP_MUL_MAT;
    ((seen *) user)->n++;
    return t->op == GGML_OP_MUL_MAT;
}
static bool stop(ggml_tensor *, bool ask, void *user) { return ask || ++((seen *) user)->n < 3; }

int main(int, char **argv) {
    llama_model_ptr model(llama_model_load_from_file(argv[1], llama_model_default_params()));
    std::vector<float> logits[3];
    int counts[3];
    for (int k = 0; k < 3; k++) {
        seen s;
        llama_context_params cp = llama_context_default_params();
        cp.n_ctx = 64;
        cp.cb_eval = k == 0 ? nullptr : k == 1 ? every : some;
        cp.cb_eval_user_data = &s;
        llama_context_ptr ctx(llama_init_from_model(model.get(), cp));
        llama_token t[4] = {1, 20, 300, 40};
        if (llama_decode(ctx.get(), llama_batch_get_one(t, 4))) return 1;
        const float *l = llama_get_logits_ith(ctx.get(), -1);
        logits[k].assign(l, l + llama_vocab_n_tokens(llama_model_get_vocab(model.get())));
        counts[k] = s.n;
        bool named = true;
        for (const char *n : {"attn_norm-0", "Qcur-0", "Kcur-0", "Vcur-0", "kqv_out-0", "attn_out-0", "ffn_inp-0", "ffn_norm-0", "ffn_gate-0", "ffn_up-0", "ffn_swiglu-0", "ffn_out-0", "l_out-0", "result_norm", "result_output"})
            named = named && s.names.count(n);
        if (k == 1 && (!s.finite || !named)) {
            for (auto &n : s.names) printf("%s ", n.c_str());
            return 2;
        }
    }
    printf("%d nodes seen, %d products\n", counts[1], counts[2]);
    seen s;
    llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 64;
    cp.cb_eval = stop;
    cp.cb_eval_user_data = &s;
    llama_context_ptr ctx(llama_init_from_model(model.get(), cp));
    llama_token t = 1;
    llama_decode(ctx.get(), llama_batch_get_one(&t, 1));
    if (s.n != 3) return 3;
    return counts[0] == 0 && counts[1] > counts[2] && counts[2] > 10 && logits[0] == logits[1] && logits[0] == logits[2] ? 0 : 4;
}
