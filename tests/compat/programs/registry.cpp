// What programs ask the registry before they do anything: backends and devices by index, name and kind; functions by name, those of other
// backends absent; buffers and their types.
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#define CHECK(x)                                                                                                            \
    do {                                                                                                                    \
        if (!(x)) {                                                                                                         \
            fprintf(stderr, "line %d: %s\n", __LINE__, #x);                                                                 \
            return 1;                                                                                                       \
        }                                                                                                                   \
    } while (0)

int main() {
    ggml_backend_load_all();
    ggml_backend_load_all();
    CHECK(ggml_backend_reg_count() >= 1 && ggml_backend_dev_count() >= 1);
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        ggml_backend_dev_t d = ggml_backend_dev_get(i);
        CHECK(ggml_backend_dev_by_name(ggml_backend_dev_name(d)) == d && ggml_backend_dev_description(d)[0]);
    }
    ggml_backend_reg_t reg = ggml_backend_reg_by_name("CPU");
    CHECK(reg && ggml_backend_reg_by_name("cpu") == reg && !strcmp(ggml_backend_reg_name(reg), "CPU"));
    CHECK(!ggml_backend_reg_by_name("CUDA") && !ggml_backend_reg_by_name("BLAS") && !ggml_backend_dev_by_name("CUDA0"));
    CHECK(!ggml_backend_init_by_name("nope", nullptr) && !ggml_backend_load("/nonexistent.so"));
    ggml_backend_load_all_from_path("/nonexistent");
    for (const char *n : {"ggml_backend_set_n_threads", "ggml_backend_dev_get_extra_bufts", "ggml_backend_get_features",
                          "ggml_backend_set_abort_callback", "ggml_backend_cpu_numa_init", "ggml_backend_cpu_is_numa",
                          "ggml_threadpool_new", "ggml_threadpool_free", "ggml_backend_cpu_set_threadpool"})
        CHECK(ggml_backend_reg_get_proc_address(reg, n));
    for (const char *n : {"ggml_backend_split_buffer_type", "ggml_backend_rpc_add_server", "ggml_backend_rpc_add_device",
                          "ggml_backend_register_host_buffer", "ggml_backend_comm_init"})
        CHECK(!ggml_backend_reg_get_proc_address(reg, n));
    auto features = (ggml_backend_get_features_t) ggml_backend_reg_get_proc_address(reg, "ggml_backend_get_features");
    for (ggml_backend_feature *f = features(reg); f->name; f++) CHECK(!strcmp(f->value, "1"));
    ggml_backend_dev_t dev = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    ggml_backend_dev_props p;
    ggml_backend_dev_get_props(dev, &p);
    CHECK(!strcmp(p.name, "CPU") && p.memory_total && p.type == GGML_BACKEND_DEVICE_TYPE_CPU &&
          p.caps.buffer_from_host_ptr && !p.caps.events && !ggml_backend_event_new(dev));
    auto extra =
        (ggml_backend_dev_get_extra_bufts_t) ggml_backend_reg_get_proc_address(reg, "ggml_backend_dev_get_extra_bufts");
    for (ggml_backend_buffer_type_t *b = extra(dev); b && *b; b++) CHECK(ggml_backend_buft_name(*b));
    for (ggml_backend_t be :
         {ggml_backend_init_by_name("CPU", nullptr), ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr),
          ggml_backend_dev_init(dev, "x=1")}) {
        CHECK(be && ggml_backend_is_cpu(be) && ggml_backend_get_device(be) == dev && ggml_backend_guid(be) &&
              ggml_backend_dev_backend_reg(dev) == reg);
        CHECK(ggml_backend_get_alignment(be) == 32 && ggml_backend_buft_is_host(ggml_backend_get_default_buffer_type(be)));
        ((ggml_backend_set_n_threads_t) ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads"))(be, 2);
        for (size_t n : {0, 1000}) {
            ggml_backend_buffer_t b = ggml_backend_alloc_buffer(be, n);
            CHECK(b && ggml_backend_buffer_get_size(b) == n && ggml_backend_buffer_is_host(b) &&
                  (uintptr_t) ggml_backend_buffer_get_base(b) % 32 == 0);
            ggml_backend_buffer_free(b);
        }
        ggml_backend_free(be);
    }
    return 0;
}
