// Whole models: whatever the file, it is refused with a sentence or a context can be made of it and decodes. Input: a GGUF file.
#include "fuzz_models.h"
#include "ggml/ext.h"

#include <sys/mman.h>

static void use(struct llama_model *m) {
    char buf[64];
    for (int32_t i = -1; i <= llama_model_meta_count(m); i++) {
        llama_model_meta_key_by_index(m, i, buf, sizeof buf);
        llama_model_meta_val_str_by_index(m, i, buf, sizeof buf);
    }
    llama_model_desc(m, buf, sizeof buf);
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = cp.n_batch = cp.n_ubatch = 16;
    cp.n_threads = cp.n_threads_batch = 1;
    struct llama_context *c = llama_init_from_model(m, cp);
    if (!c) {
        FUZZ_CHECK(*ggml_last_error());
        return;
    }
    llama_token t[3] = {1, 2, 3};
    const int32_t n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(m));
    if (llama_decode(c, llama_batch_get_one(t, n_vocab > 3 ? 3 : 1)) == 0) {
        const float *row = llama_get_logits_ith(c, -1);
        volatile float sum = 0;
        (void) sum;
        for (int32_t i = 0; row && i < n_vocab; i++) sum += row[i];
    }
    llama_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const int fd = memfd_create("model", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t) size && lseek(fd, 0, SEEK_SET) == 0);
    FILE *f = fdopen(fd, "rb");
    struct llama_model_params mp = llama_model_default_params();
    mp.load_mode = data[size / 2] & 1 ? LLAMA_LOAD_MODE_NONE : LLAMA_LOAD_MODE_MMAP;
    struct llama_model *m = llama_model_load_from_file_ptr(f, mp);
    fclose(f);
    if (m)
        use(m);
    else
        FUZZ_CHECK(*ggml_last_error());
    llama_model_free(m);
    ggml_clear_error();
    return 0;
}

void fuzz_seeds(fuzz_put put, void *to) {
    for (int k = 0; k < FUZZ_N_MODEL; k++) {
        static uint8_t buf[1 << 18];
        const char *path = maker_write(&fuzz_specs[k], GGML_TYPE_F32);
        FILE *f = path ? fopen(path, "rb") : NULL;
        FUZZ_CHECK(f);
        put(to, buf, fread(buf, 1, sizeof buf, f));
        fclose(f);
        unlink(path);
    }
}
