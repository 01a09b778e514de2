// GGUF: whatever the bytes, reading refuses or gives a context whose every part can be read; and what is written reads back.
#include "fuzz.h"
#include "ggml.h"
#include "gguf.h"
#include "ggml/ext.h"

static void look(const struct gguf_context *g) {
    volatile size_t sum = 0;
    (void) sum;
    for (int64_t i = 0; i < gguf_get_n_kv(g); i++) {
        sum += strlen(gguf_get_key(g, i));
        FUZZ_CHECK(gguf_find_key(g, gguf_get_key(g, i)) <= i || strlen(gguf_get_key(g, i)) > 0);
        enum gguf_type type = gguf_get_kv_type(g, i);
        if (type == GGUF_TYPE_STRING) {
            sum += strlen(gguf_get_val_str(g, i));
        } else if (type == GGUF_TYPE_ARRAY && gguf_get_arr_type(g, i) == GGUF_TYPE_STRING) {
            for (size_t k = 0; k < gguf_get_arr_n(g, i); k++) {
                size_t len;
                const char *p = gguf_get_arr_str_view(g, i, k, &len);
                for (size_t b = 0; b < len; b++) sum += (uint8_t) p[b];
                FUZZ_CHECK(strlen(gguf_get_arr_str(g, i, k)) <= len);
            }
        } else if (type == GGUF_TYPE_ARRAY) {
            if (gguf_get_arr_n(g, i)) sum += *(const uint8_t *) gguf_get_arr_data(g, i);
        } else {
            sum += *(const uint8_t *) gguf_get_val_data(g, i);
        }
    }
    for (int64_t i = 0; i < gguf_get_n_tensors(g); i++) {
        FUZZ_CHECK(gguf_find_tensor(g, gguf_get_tensor_name(g, i)) == i);
        sum += gguf_get_tensor_size(g, i) + gguf_get_tensor_offset(g, i) + (size_t) gguf_get_tensor_ne(g, i)[3];
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct gguf_context *g = gguf_init_from_buffer(data, size, (struct gguf_init_params){.no_alloc = true});
    if (g) {
        look(g);
        size_t n = gguf_get_meta_size(g);
        if (n < (1u << 22)) {  // an absurd alignment asks for as much padding
            void *meta = malloc(n);
            FUZZ_CHECK(meta);
            gguf_get_meta_data(g, meta);
            struct gguf_context *h = gguf_init_from_buffer(meta, n, (struct gguf_init_params){.no_alloc = true});
            FUZZ_CHECK(h && gguf_get_n_kv(h) == gguf_get_n_kv(g) && gguf_get_n_tensors(h) == gguf_get_n_tensors(g));
            gguf_free(h);
            free(meta);
        }
        gguf_free(g);
    }
    struct ggml_context *ctx = NULL;
    g = gguf_init_from_buffer(data, size, (struct gguf_init_params){.ctx = &ctx});
    FUZZ_CHECK(!g == !ctx);
    if (g) {
        volatile size_t sum = 0;
        (void) sum;
        for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
            for (size_t i = 0; t->data && i < ggml_nbytes(t); i++) sum += ((const uint8_t *) t->data)[i];
        }
        ggml_free(ctx);
        gguf_free(g);
    }
    ggml_clear_error();
    return 0;
}

void fuzz_seeds(fuzz_put put, void *to) {
    for (int kind = 0; kind < 4; kind++) {
        struct gguf_context *g = gguf_init_empty();
        struct ggml_context *ctx = ggml_init((struct ggml_init_params){.mem_size = 1 << 16});
        if (kind & 1) gguf_set_val_u32(g, "general.alignment", 64);
        gguf_set_val_str(g, "general.architecture", "llama");
        gguf_set_val_f64(g, "x", 0.5);
        gguf_set_val_bool(g, "yes", true);
        gguf_set_arr_str(g, "tokens", (const char *[]){"a", "", "long string"}, 3);
        gguf_set_arr_data(g, "n", GGUF_TYPE_INT16, (int16_t[]){1, -2, 3}, 3);
        for (int i = 0; kind & 2 && i < 3; i++) {
            struct ggml_tensor *t = ggml_new_tensor_2d(ctx, i == 2 ? GGML_TYPE_Q8_0 : GGML_TYPE_F32, 32, 1 + i);
            ggml_format_name(t, "blk.%d.weight", i);
            memset(t->data, 1, ggml_nbytes(t));
            gguf_add_tensor(g, t);
        }
        FILE *f = tmpfile();
        FUZZ_CHECK(f && gguf_write_to_file_ptr(g, f, false));
        size_t n = (size_t) ftell(f);
        void *p = malloc(n);
        rewind(f);
        FUZZ_CHECK(p && fread(p, 1, n, f) == n);
        put(to, p, n);
        free(p);
        fclose(f);
        gguf_free(g);
        ggml_free(ctx);
    }
}
