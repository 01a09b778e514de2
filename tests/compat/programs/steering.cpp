// What the makers of control vectors, of importance matrices and of text embeddings do with a generating model: hidden states and the inputs of
// products taken in a callback, a direction put into the layers and taken out again, one context in turn without and with the causal mask.
#include "decode_loop.hpp"
#include "ggml-backend.h"
#include <cmath>
#include <cstring>
#include <map>

struct collector {
    std::map<std::string, std::vector<float>> hidden;                    // layer -> last token's state
    std::map<std::string, std::pair<std::vector<double>, int>> squares;  // weight -> sums over the rows of its input
};

static std::vector<float> fetch(const ggml_tensor *t) {
    std::vector<float> x((size_t) ggml_nelements(t));
    if (ggml_backend_buffer_is_host(t->buffer)) {
        memcpy(x.data(), t->data, ggml_nbytes(t));
    } else {
        ggml_backend_tensor_get(t, x.data(), 0, ggml_nbytes(t));
    }
    return x;
}

static bool collect(ggml_tensor *t, bool ask, void *user) {
    auto *c = (collector *) user;
    const std::string name = t->name;
    const bool state = name.compare(0, 6, "l_out-") == 0;
    const bool product = t->op == GGML_OP_MUL_MAT && t->src[1]->type == GGML_TYPE_F32 &&
                         std::string(t->src[0]->name).compare(0, 4, "blk.") == 0;
    if (ask) return state || product;
    const std::vector<float> x = fetch(state ? t : t->src[1]);
    const size_t n = (size_t) (state ? t->ne[0] : t->src[1]->ne[0]);
    if (state) c->hidden[name].assign(x.end() - (long) n, x.end());
    if (product) {
        auto &sum = c->squares[t->src[0]->name];
        sum.first.resize(n);
        for (size_t i = 0; i < x.size(); i++) sum.first[i % n] += (double) x[i] * x[i];
        sum.second += (int) (x.size() / n);
    }
    return true;
}

static std::vector<float> logits(llama_context *ctx, std::vector<llama_token> t) {
    llama_memory_clear(llama_get_memory(ctx), true);
    if (llama_decode(ctx, llama_batch_get_one(t.data(), (int32_t) t.size()))) DIE(1);
    const float *l = llama_get_logits_ith(ctx, -1);
    return std::vector<float>(l, l + llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(ctx))));
}

static void steer(llama_model *model) {
    const llama_vocab *v = llama_model_get_vocab(model);
    const int n_layer = llama_model_n_layer(model), n_embd = llama_model_n_embd(model);
    collector happy, sad;
    llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 64;
    cp.cb_eval = collect;
    const std::vector<llama_token> plus = tokenize(v, "I am so happy today, what a wonderful"),
                                   minus = tokenize(v, "I am so sad today, what a terrible");
    for (auto *c : {&happy, &sad}) {
        cp.cb_eval_user_data = c;
        llama_context_ptr ctx(llama_init_from_model(model, cp));
        logits(ctx.get(), c == &happy ? plus : minus);
        if ((int) c->hidden.size() != n_layer) DIE(2);
        if ((int) c->squares.size() != 7 * n_layer) DIE(3);  // q k v o gate up down
        // all but the last layer's end see every token; what only the output needs may see fewer
        for (auto &s : c->squares) {
            if (s.second.second < 1 || s.second.second > (int) plus.size()) DIE(4);
            for (double x : s.second.first)
                if (!(x >= 0) || std::isinf(x)) DIE(5);
        }
        if (c->squares["blk.0.attn_q.weight"].first != c->squares["blk.0.attn_k.weight"].first) DIE(6);  // the same input
    }
    // layers from 1 on; the first one has no place in the data
    std::vector<float> data((size_t) (n_layer - 1) * (size_t) n_embd);
    for (int il = 1; il < n_layer; il++) {
        const auto &a = happy.hidden["l_out-" + std::to_string(il)], &b = sad.hidden["l_out-" + std::to_string(il)];
        if ((int) a.size() != n_embd) DIE(7);
        for (int i = 0; i < n_embd; i++)
            data[(size_t) (il - 1) * (size_t) n_embd + (size_t) i] = a[(size_t) i] - b[(size_t) i];
    }
    cp.cb_eval = nullptr;
    llama_context_ptr ctx(llama_init_from_model(model, cp));
    const std::vector<float> before = logits(ctx.get(), minus);
    if (llama_set_adapter_cvec(ctx.get(), data.data(), data.size(), n_embd, n_layer / 2, n_layer - 1)) DIE(8);
    const std::vector<float> steered = logits(ctx.get(), minus);
    if (steered == before) DIE(9);
    std::vector<float> none(data.size());
    if (llama_set_adapter_cvec(ctx.get(), none.data(), none.size(), n_embd, 1, n_layer - 1)) DIE(10);
    if (logits(ctx.get(), minus) != before) DIE(11);
    if (llama_set_adapter_cvec(ctx.get(), data.data(), data.size(), n_embd, n_layer / 2, n_layer - 1)) DIE(12);
    if (logits(ctx.get(), minus) != steered) DIE(13);
    if (llama_set_adapter_cvec(ctx.get(), nullptr, 0, n_embd, 0, 0)) DIE(14);  // off
    if (logits(ctx.get(), minus) != before) DIE(15);
}

// One embedding of a text that sees itself whole: the mean of its tokens' states, of length 1.
static std::vector<float> embed(llama_context *ctx, const std::string &text) {
    const std::vector<llama_token> t = tokenize(llama_model_get_vocab(llama_get_model(ctx)), text);
    llama_memory_clear(llama_get_memory(ctx), true);
    llama_set_embeddings(ctx, true);
    llama_set_causal_attn(ctx, false);
    llama_batch b = llama_batch_init((int32_t) t.size(), 0, 1);
    for (size_t i = 0; i < t.size(); i++) add(b, t[i], (llama_pos) i, {0}, true);
    if (llama_decode(ctx, b)) DIE(20);
    const int n = llama_model_n_embd(llama_get_model(ctx));
    std::vector<float> sum((size_t) n);
    for (size_t k = 0; k < t.size(); k++) {
        const float *e = llama_get_embeddings_ith(ctx, (int32_t) k);
        if (!e) DIE(21);
        for (int i = 0; i < n; i++) sum[(size_t) i] += e[i];
    }
    llama_batch_free(b);
    double length = 0;
    for (float x : sum) length += (double) x * x;
    for (float &x : sum) x = (float) (x / std::sqrt(length));
    llama_set_embeddings(ctx, false);
    llama_set_causal_attn(ctx, true);
    return sum;
}

static std::string generate(llama_context *ctx, const std::string &prompt) {
    const llama_vocab *v = llama_model_get_vocab(llama_get_model(ctx));
    std::vector<llama_token> t = tokenize(v, prompt);
    std::string out;
    llama_memory_clear(llama_get_memory(ctx), true);
    for (int i = 0; i < 8; i++) {
        if (llama_decode(ctx, llama_batch_get_one(t.data(), (int32_t) t.size()))) DIE(30);
        t.assign(1, best(ctx, -1));
        out += piece(v, t[0]);
    }
    return out;
}

static void embed_and_generate(llama_model *model) {
    llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 128;
    llama_context_ptr plain(llama_init_from_model(model, cp));
    const std::string want = generate(plain.get(), "The capital of France is");
    cp.embeddings = true;
    cp.pooling_type = LLAMA_POOLING_TYPE_NONE;
    llama_context_ptr ctx(llama_init_from_model(model, cp));
    const std::vector<float> first = embed(ctx.get(), "a dog runs over the grass");
    if (generate(ctx.get(), "The capital of France is") != want) DIE(40);
    const std::vector<float> near = embed(ctx.get(), "a puppy runs over the lawn"),
                             far = embed(ctx.get(), "interest rates rose by one percent");
    if (embed(ctx.get(), "a dog runs over the grass") != first) DIE(41);
    double n = 0, f = 0;
    for (size_t i = 0; i < first.size(); i++) n += (double) first[i] * near[i], f += (double) first[i] * far[i];
    printf("%s; similarity %.3f to the near text, %.3f to the far one\n", want.c_str(), n, f);
    if (!(n > f)) DIE(42);
    if (generate(ctx.get(), "The capital of France is") != want) DIE(43);
}

int main(int, char **argv) {
    llama_model_ptr model(llama_model_load_from_file(argv[1], llama_model_default_params()));
    if (!model) DIE(50);
    steer(model.get());
    embed_and_generate(model.get());
    return 0;
}
