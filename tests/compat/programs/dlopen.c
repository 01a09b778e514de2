// The library opened at run time, its functions found by name, as bindings do; no free at the end (a report's row 179).
#include <dlfcn.h>
#include <stdio.h>
#include "llama.h"

#define FIND(name)                                                                                                          \
    __typeof__(&name) p_##name = (__typeof__(&name)) dlsym(lib, #name);                                                     \
    if (!p_##name) return 2

int main(int argc, char **argv) {
    if (argc < 3) return 3;
    void *lib = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        printf("%s\n", dlerror());
        return 1;
    }
    FIND(llama_backend_init);
    FIND(llama_model_default_params);
    FIND(llama_model_load_from_file);
    FIND(llama_context_default_params);
    FIND(llama_init_from_model);
    FIND(llama_batch_get_one);
    FIND(llama_decode);
    FIND(llama_get_logits_ith);
    FIND(llama_print_system_info);
    p_llama_backend_init();
    struct llama_model *m = p_llama_model_load_from_file(argv[1], p_llama_model_default_params());
    struct llama_context_params cp = p_llama_context_default_params();
    cp.n_ctx = 64;
    struct llama_context *c = m ? p_llama_init_from_model(m, cp) : NULL;
    llama_token t = 1;
    if (!c || p_llama_decode(c, p_llama_batch_get_one(&t, 1)) || !p_llama_get_logits_ith(c, -1)) return 4;
    printf("%s\n", p_llama_print_system_info());
    return 0;
}
