// Owners for C++ programs: std::unique_ptr types that free what the calls of llama.h give out.
#pragma once

#ifndef __cplusplus
#error "llama-cpp.h is for C++; C programs include llama.h"
#endif

#include "llama.h"

#include <memory>

struct llama_model_deleter {
    void operator()(llama_model *model) { llama_model_free(model); }
};
struct llama_context_deleter {
    void operator()(llama_context *context) { llama_free(context); }
};
struct llama_sampler_deleter {
    void operator()(llama_sampler *sampler) { llama_sampler_free(sampler); }
};
struct llama_adapter_lora_deleter {
    void operator()(llama_adapter_lora *adapter) { llama_adapter_lora_free(adapter); }
};
struct llama_batch_ext_deleter {
    void operator()(llama_batch_ext *batch) { llama_batch_ext_free(batch); }
};

typedef std::unique_ptr<llama_model, llama_model_deleter> llama_model_ptr;
typedef std::unique_ptr<llama_context, llama_context_deleter> llama_context_ptr;
typedef std::unique_ptr<llama_sampler, llama_sampler_deleter> llama_sampler_ptr;
typedef std::unique_ptr<llama_adapter_lora, llama_adapter_lora_deleter> llama_adapter_lora_ptr;
typedef std::unique_ptr<llama_batch_ext, llama_batch_ext_deleter> llama_batch_ext_ptr;
