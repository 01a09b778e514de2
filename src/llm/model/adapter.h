// Low-rank adapters and control vectors, and which of them a context uses.
#pragma once

#include "block/graph.h"
#include "model/model.h"

struct llama_adapter_lora {
    struct llama_model *model;
    struct lora lora;
    struct gguf_context *meta;
    struct tensor_home home;
    llama_token *invocation;  // aLoRA: the tokens after which the adapter is active
    uint64_t n_invocation;
};

struct adapter_state {
    struct lora_set loras;
    struct ggml_tensor **cvec;  // [n_layer], NULL where no vector acts
    struct ggml_tensor **cvec_all;
    struct tensor_home cvec_home;
    bool cvec_active;
};

void adapter_state_free(struct adapter_state *s);
