// What a prebuilt llama-server of October 2026 asks of libllama beyond the interface that this project keeps, so that it can run
// against our libraries (tests/compat/server.py). Two things:
//  - Names of upstream's internal C++ headers: draft heads that share a context ("nextn", "dflash"), the order in which entries are
//    decided, memory breakdowns by buffer type. No public header declares them; the answers here say that there is nothing of the kind.
//  - struct llama_context_params has grown by two pointers before its bools since. They are cut out on the way in and put in on the
//    way out; nothing that the server is asked here sets them.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <map>

struct llama_context;
struct llama_model;
struct llama_batch_ext;
struct ggml_backend_device;
struct ggml_backend_buffer_type;
enum llama_decision_order : int {};
struct llama_memory_breakdown_data {
    size_t model, context, compute;
};

llama_context *llama_get_ctx_other(llama_context *) { return nullptr; }
int llama_model_n_expert(const llama_model *) { return 0; }
int llama_model_n_devices(const llama_model *) { return 0; }
ggml_backend_device *llama_model_get_device(const llama_model *, int) { return nullptr; }
float *llama_get_embeddings_nextn(llama_context *) { return nullptr; }
float *llama_get_embeddings_nextn_ith(llama_context *, int) { return nullptr; }
void llama_set_embeddings_nextn(llama_context *, bool, bool) {}
void llama_set_nextn_layer_offset(llama_context *, int) {}
float *llama_get_embeddings_layer_inp(llama_context *, unsigned) { return nullptr; }
void llama_set_embeddings_layer_inp(llama_context *, unsigned, bool) {}
const int32_t *llama_model_target_layer_ids(const llama_model *) { return nullptr; }
unsigned llama_model_target_layer_ids_n(const llama_model *) { return 0; }
int llama_model_dflash_selector_top_k(const llama_model *) { return 0; }
void llama_batch_ext_set_decision_order(llama_batch_ext *, int, llama_decision_order) {}
void llama_model_get_tok_embd(const llama_model *, float *) {}
std::map<ggml_backend_buffer_type *, llama_memory_breakdown_data> llama_get_memory_breakdown(const llama_context *) {
    return {};
}

namespace {
constexpr size_t at = 128, more = 16, ours = 160;  // where the pointers are, how many bytes; size of our struct

struct params_ours {
    unsigned char b[ours];
};
struct params_theirs {
    unsigned char b[ours + more];
};

template <class F> F next(const char *name) { return reinterpret_cast<F>(dlsym(RTLD_NEXT, name)); }
}  // namespace

extern "C" params_theirs llama_context_default_params() {
    const params_ours p = next<params_ours (*)()>("llama_context_default_params")();
    params_theirs t{};
    memcpy(t.b, p.b, at);
    memcpy(t.b + at + more, p.b + at, ours - at);
    return t;
}

extern "C" llama_context *llama_init_from_model(llama_model *m, params_theirs t) {
    params_ours p;
    memcpy(p.b, t.b, at);
    memcpy(p.b + at, t.b + at + more, ours - at);
    return next<llama_context *(*) (llama_model *, params_ours)>("llama_init_from_model")(m, p);
}
