// Defaults, names, and what this build can do.
#include <stdio.h>
#include <string.h>

#include "model/model.h"

struct llama_model_params llama_model_default_params(void) {
    return (struct llama_model_params){
        .n_gpu_layers = -1,
        .split_mode = LLAMA_SPLIT_MODE_LAYER,
        .load_mode = LLAMA_LOAD_MODE_AUTO,
        .lazy_mode = LLAMA_LAZY_MODE_AUTO,
        .use_extra_bufts = true,
    };
}

static const char *const load_names[] = {"auto", "none", "mmap", "mlock", "mmap+mlock", "dio"};

const char *llama_load_mode_name(enum llama_load_mode load_mode) {
    return load_mode >= LLAMA_LOAD_MODE_AUTO && load_mode <= LLAMA_LOAD_MODE_DIRECT_IO ? load_names[load_mode + 1]
                                                                                       : "unknown";
}

enum llama_load_mode llama_load_mode_from_str(const char *str) {
    for (int i = 0; str && i < 6; i++)
        if (!strcmp(str, load_names[i])) return (enum llama_load_mode)(i - 1);
    return LLAMA_LOAD_MODE_AUTO;
}

const char *llama_flash_attn_type_name(enum llama_flash_attn_type t) {
    return t == LLAMA_FLASH_ATTN_TYPE_AUTO       ? "auto"
           : t == LLAMA_FLASH_ATTN_TYPE_DISABLED ? "disabled"
           : t == LLAMA_FLASH_ATTN_TYPE_ENABLED  ? "enabled"
                                                 : "unknown";
}

const char *llama_version(void) { return ggml_version(); }

void llama_backend_init(void) { ggml_time_init(); }

void llama_backend_free(void) {}

void llama_numa_init(enum ggml_numa_strategy numa) {
    if (numa != GGML_NUMA_STRATEGY_DISABLED) ggml_numa_init(numa);
}

int64_t llama_time_us(void) { return ggml_time_us(); }

size_t llama_max_devices(void) { return MODEL_MAX_DEVICES; }

size_t llama_max_parallel_sequences(void) { return 256; }

size_t llama_max_tensor_buft_overrides(void) { return 4096; }

bool llama_supports_mmap(void) { return true; }

bool llama_supports_mlock(void) { return true; }

bool llama_supports_gpu_offload(void) {
    return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_GPU) || ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_IGPU);
}

bool llama_supports_rpc(void) { return ggml_backend_reg_by_name("RPC") != NULL; }

void llama_log_get(ggml_log_callback *log_callback, void **user_data) { ggml_log_get(log_callback, user_data); }

void llama_log_set(ggml_log_callback log_callback, void *user_data) { ggml_log_set(log_callback, user_data); }

const char *llama_print_system_info(void) {
    static _Thread_local char text[1024];
    size_t n = 0;
    text[0] = 0;
    for (size_t i = 0; i < ggml_backend_reg_count(); i++) {
        ggml_backend_reg_t reg = ggml_backend_reg_get(i);
        void *found = ggml_backend_reg_get_proc_address(reg, "ggml_backend_get_features");
        if (!found) continue;
        ggml_backend_get_features_t get;
        memcpy(&get, &found, sizeof get);  // ISO C has no cast for that
        n += (size_t) snprintf(text + n, sizeof text - n, "%s : ", ggml_backend_reg_name(reg));
        for (const struct ggml_backend_feature *f = get(reg); f->name && n < sizeof text; f++)
            n += (size_t) snprintf(text + n, sizeof text - n, "%s = %s | ", f->name, f->value);
        if (n >= sizeof text) break;
    }
    return text;
}

static const struct {
    enum llama_ftype ftype;
    const char *name;
} ftypes[] = {
    {LLAMA_FTYPE_ALL_F32, "all F32"},
    {LLAMA_FTYPE_MOSTLY_F16, "F16"},
    {LLAMA_FTYPE_MOSTLY_BF16, "BF16"},
    {LLAMA_FTYPE_MOSTLY_Q4_0, "Q4_0"},
    {LLAMA_FTYPE_MOSTLY_Q4_1, "Q4_1"},
    {LLAMA_FTYPE_MOSTLY_Q5_0, "Q5_0"},
    {LLAMA_FTYPE_MOSTLY_Q5_1, "Q5_1"},
    {LLAMA_FTYPE_MOSTLY_Q8_0, "Q8_0"},
    {LLAMA_FTYPE_MOSTLY_Q1_0, "Q1_0"},
    {LLAMA_FTYPE_MOSTLY_Q2_0, "Q2_0"},
    {LLAMA_FTYPE_MOSTLY_MXFP4_MOE, "MXFP4 MoE"},
    {LLAMA_FTYPE_MOSTLY_NVFP4, "NVFP4"},
    {LLAMA_FTYPE_MOSTLY_Q2_K, "Q2_K - Medium"},
    {LLAMA_FTYPE_MOSTLY_Q2_K_S, "Q2_K - Small"},
    {LLAMA_FTYPE_MOSTLY_Q3_K_S, "Q3_K - Small"},
    {LLAMA_FTYPE_MOSTLY_Q3_K_M, "Q3_K - Medium"},
    {LLAMA_FTYPE_MOSTLY_Q3_K_L, "Q3_K - Large"},
    {LLAMA_FTYPE_MOSTLY_Q4_K_S, "Q4_K - Small"},
    {LLAMA_FTYPE_MOSTLY_Q4_K_M, "Q4_K - Medium"},
    {LLAMA_FTYPE_MOSTLY_Q5_K_S, "Q5_K - Small"},
    {LLAMA_FTYPE_MOSTLY_Q5_K_M, "Q5_K - Medium"},
    {LLAMA_FTYPE_MOSTLY_Q6_K, "Q6_K"},
    {LLAMA_FTYPE_MOSTLY_TQ1_0, "TQ1_0 - 1.69 bpw ternary"},
    {LLAMA_FTYPE_MOSTLY_TQ2_0, "TQ2_0 - 2.06 bpw ternary"},
    {LLAMA_FTYPE_MOSTLY_IQ2_XXS, "IQ2_XXS - 2.0625 bpw"},
    {LLAMA_FTYPE_MOSTLY_IQ2_XS, "IQ2_XS - 2.3125 bpw"},
    {LLAMA_FTYPE_MOSTLY_IQ2_S, "IQ2_S - 2.5 bpw"},
    {LLAMA_FTYPE_MOSTLY_IQ2_M, "IQ2_M - 2.7 bpw"},
    {LLAMA_FTYPE_MOSTLY_IQ3_XS, "IQ3_XS - 3.3 bpw"},
    {LLAMA_FTYPE_MOSTLY_IQ3_XXS, "IQ3_XXS - 3.0625 bpw"},
    {LLAMA_FTYPE_MOSTLY_IQ1_S, "IQ1_S - 1.5625 bpw"},
    {LLAMA_FTYPE_MOSTLY_IQ1_M, "IQ1_M - 1.75 bpw"},
    {LLAMA_FTYPE_MOSTLY_IQ4_NL, "IQ4_NL - 4.5 bpw"},
    {LLAMA_FTYPE_MOSTLY_IQ4_XS, "IQ4_XS - 4.25 bpw"},
    {LLAMA_FTYPE_MOSTLY_IQ3_S, "IQ3_S - 3.4375 bpw"},
    {LLAMA_FTYPE_MOSTLY_IQ3_M, "IQ3_S mix - 3.66 bpw"},
    {LLAMA_FTYPE_GUESSED, "unknown, may not work"},
};

static const char *ftype_name(enum llama_ftype ftype) {
    for (size_t i = 0; i < sizeof ftypes / sizeof *ftypes; i++)
        if (ftypes[i].ftype == ftype) return ftypes[i].name;
    return "unknown, may not work";
}

const char *llama_ftype_name(enum llama_ftype ftype) {
    static _Thread_local char text[64];
    if (ftype <= LLAMA_FTYPE_GUESSED || ftype >= 2 * LLAMA_FTYPE_GUESSED) return ftype_name(ftype);
    snprintf(text, sizeof text, "(guessed) %s", ftype_name(ftype & ~LLAMA_FTYPE_GUESSED));
    return text;
}
