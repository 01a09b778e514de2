// Adapters: whatever a LoRA file holds, it is refused or can be used for decoding. Input: a byte (model), then the file.
#include "fuzz_models.h"
#include "ggml/ext.h"

#include <sys/mman.h>

static void use(struct llama_context *c, struct llama_adapter_lora *a) {
    char buf[64];
    for (int32_t i = -1; i <= llama_adapter_meta_count(a); i++) {
        llama_adapter_meta_key_by_index(a, i, buf, sizeof buf);
        llama_adapter_meta_val_str_by_index(a, i, buf, sizeof buf);
    }
    const uint64_t n = llama_adapter_get_alora_n_invocation_tokens(a);
    const llama_token *t = llama_adapter_get_alora_invocation_tokens(a);
    volatile int64_t sum = 0;
    (void) sum;
    for (uint64_t i = 0; i < n; i++) sum += t[i];
    float scale = 0.5f;
    FUZZ_CHECK(llama_set_adapters_lora(c, &a, 1, &scale) == 0);
    FUZZ_CHECK(fuzz_decode(c, 3, 0, 0) == 0 && llama_get_logits_ith(c, -1));
    FUZZ_CHECK(llama_set_adapters_lora(c, NULL, 0, NULL) == 0);
    llama_memory_clear(llama_get_memory(c), true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct llama_context *contexts[FUZZ_N_MODEL];
    if (size < 1) return 0;
    const int k = data[0] % FUZZ_N_MODEL;
    if (!contexts[k]) contexts[k] = fuzz_context(k, 64, 1);
    const int fd = memfd_create("lora", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, data + 1, size - 1) == (ssize_t) size - 1 && lseek(fd, 0, SEEK_SET) == 0);
    FILE *f = fdopen(fd, "rb");
    struct llama_adapter_lora *a = llama_adapter_lora_init_from_file_ptr(fuzz_model(k), f);
    fclose(f);
    if (a) {
        use(contexts[k], a);
        llama_adapter_lora_free(a);
    } else {
        FUZZ_CHECK(*ggml_last_error());
    }
    ggml_clear_error();
    return 0;
}

void fuzz_seeds(fuzz_put put, void *to) {
    static const struct {
        const char *name;
        int in, out;
    } weights[] = {
        {"blk.0.attn_q", 32, 32}, {"blk.1.ffn_down", 32, 32}, {"blk.0.attn_k", 32, 16}, {"token_embd", 32, MAKER_N_VOCAB}};
    for (int k = 0; k < FUZZ_N_MODEL; k++) {
        struct gguf_context *g = gguf_init_empty();
        struct ggml_context *ctx = ggml_init((struct ggml_init_params){.mem_size = 1 << 18});
        gguf_set_val_str(g, "general.type", "adapter");
        gguf_set_val_str(g, "adapter.type", "lora");
        gguf_set_val_str(g, "general.architecture", fuzz_specs[k].arch);
        gguf_set_val_f32(g, "adapter.lora.alpha", 4);
        if (k == 1) gguf_set_arr_data(g, "adapter.alora.invocation_tokens", GGUF_TYPE_UINT32, (uint32_t[]){1, 2, 3}, 3);
        for (int i = 0; i < (k == 0 ? 4 : 3); i++) {
            const enum ggml_type type = i == 1 ? GGML_TYPE_F16 : GGML_TYPE_F32;
            struct ggml_tensor *a = ggml_new_tensor_2d(ctx, type, weights[i].in, 2),
                               *b = ggml_new_tensor_2d(ctx, type, 2, weights[i].out);
            ggml_format_name(a, "%s.weight.lora_a", weights[i].name);
            ggml_format_name(b, "%s.weight.lora_b", weights[i].name);
            memset(a->data, 0x3c, ggml_nbytes(a));
            memset(b->data, 0x3c, ggml_nbytes(b));
            gguf_add_tensor(g, a);
            gguf_add_tensor(g, b);
        }
        char path[] = "/tmp/lamina-fuzz-XXXXXX";
        const int fd = mkstemp(path);
        FUZZ_CHECK(fd >= 0 && gguf_write_to_file(g, path, false));
        static uint8_t buf[1 << 16];
        FILE *in = fopen(path, "rb");
        buf[0] = (uint8_t) k;
        const size_t n = fread(buf + 1, 1, sizeof buf - 1, in);
        put(to, buf, n + 1);
        fclose(in);
        close(fd);
        unlink(path);
        gguf_free(g);
        ggml_free(ctx);
    }
}
