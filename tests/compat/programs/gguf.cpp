// A file with a key of every type and three tensors: written, read back, its data read at the offsets the file gives.
#include "ggml.h"
#include "gguf.h"
#include "ggml-cpp.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

int main() {
    char path[] = "/tmp/lamina-gguf-XXXXXX";
    if (mkstemp(path) < 0) return 1;
    {
        gguf_context_ptr g(gguf_init_empty());
        gguf_set_val_u8(g.get(), "some.parameter.uint8", 0x12);
        gguf_set_val_i8(g.get(), "some.parameter.int8", -0x13);
        gguf_set_val_u16(g.get(), "some.parameter.uint16", 0x1234);
        gguf_set_val_i16(g.get(), "some.parameter.int16", -0x1235);
        gguf_set_val_u32(g.get(), "some.parameter.uint32", 0x12345678);
        gguf_set_val_i32(g.get(), "some.parameter.int32", -0x12345679);
        gguf_set_val_f32(g.get(), "some.parameter.float32", 0.123456789f);
        gguf_set_val_u64(g.get(), "some.parameter.uint64", 0x123456789abcdef0ull);
        gguf_set_val_i64(g.get(), "some.parameter.int64", -0x123456789abcdef1ll);
        gguf_set_val_f64(g.get(), "some.parameter.float64", 0.1234567890123456789);
        gguf_set_val_bool(g.get(), "some.parameter.bool", true);
        gguf_set_val_str(g.get(), "some.parameter.string", "hello world");
        const int16_t arr[] = {1, 2, 3, 4};
        gguf_set_arr_data(g.get(), "some.parameter.arr.i16", GGUF_TYPE_INT16, arr, 4);
        const char *strs[] = {"one", "", "three"};
        gguf_set_arr_str(g.get(), "some.parameter.arr.str", strs, 3);
        ggml_context_ptr ctx(ggml_init({128 * 1024, nullptr, false}));
        for (int i = 0; i < 3; i++) {
            int64_t ne[GGML_MAX_DIMS] = {1 + i * 3, 2, 1 + i, 1};
            ggml_tensor *t = ggml_new_tensor(ctx.get(), GGML_TYPE_F32, i + 1, ne);
            ggml_set_name(t, ("tensor_" + std::to_string(i)).c_str());
            for (int64_t k = 0; k < ggml_nelements(t); k++) ((float *) t->data)[k] = 100.0f + i;
            gguf_add_tensor(g.get(), t);
        }
        if (!gguf_write_to_file(g.get(), path, false)) return 2;
    }
    ggml_context *raw = nullptr;
    gguf_context_ptr g(gguf_init_from_file(path, {false, &raw}));
    ggml_context_ptr ctx(raw);
    if (!g || !ctx || gguf_get_n_kv(g.get()) != 14 || gguf_get_n_tensors(g.get()) != 3 || gguf_get_alignment(g.get()) != GGUF_DEFAULT_ALIGNMENT) return 3;
    const int64_t k = gguf_find_key(g.get(), "some.parameter.string");
    if (k < 0 || gguf_find_key(g.get(), "nothing") != -1 || std::string(gguf_get_val_str(g.get(), k)) != "hello world") return 4;
    if (gguf_get_val_i64(g.get(), gguf_find_key(g.get(), "some.parameter.int64")) != -0x123456789abcdef1ll) return 5;
    const int64_t a = gguf_find_key(g.get(), "some.parameter.arr.str");
    if (gguf_get_arr_n(g.get(), a) != 3 || std::string(gguf_get_arr_str(g.get(), a, 2)) != "three") return 6;
    FILE *f = fopen(path, "rb");
    for (int64_t i = 0; i < 3; i++) {
        const char *name = gguf_get_tensor_name(g.get(), i);
        ggml_tensor *t = ggml_get_tensor(ctx.get(), name);
        std::vector<float> v(ggml_nelements(t));
        fseek(f, (long) (gguf_get_data_offset(g.get()) + gguf_get_tensor_offset(g.get(), i)), SEEK_SET);
        if (fread(v.data(), 4, v.size(), f) != v.size() || std::memcmp(v.data(), t->data, ggml_nbytes(t)) || v[0] != 100.0f + (float) i) return 7;
        printf("%s: %lld elements at %zu\n", name, (long long) ggml_nelements(t), gguf_get_tensor_offset(g.get(), i));
    }
    fclose(f);
    remove(path);
    return 0;
}
