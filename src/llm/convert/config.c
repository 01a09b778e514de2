// config.json as GGUF keys. The names of its values are much the same in all of the field's checkpoints; `names` lists them once.
#include "convert/config.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

static const struct ckpt_class classes[] = {
#define CLASS(name, arch, prefix, flags) {name, arch, prefix, flags},
#include "convert/classes.def"
#undef CLASS
};

enum err config_class(json_t *config, const struct ckpt_class **out) {
    const char *name = json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
    struct str known = {0};
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (name && strcmp(name, classes[i].name) == 0) {
            *out = &classes[i];
            str_free(&known);
            return ERR_OK;
        }
        str_printf(&known, "%s%s", i ? " " : "", classes[i].name);
    }
    const enum err e = err_set(ERR_UNSUPPORTED, "config.json names the class %s; those that can be converted: %s",
                               name ? name : "(none)", str_text(&known));
    str_free(&known);
    return e;
}

enum kind { COUNT, REAL, FLAG };

static const struct {
    const char *hf, *key;
    enum kind kind;
} names[] = {
    {"hidden_size", "embedding_length", COUNT},
    {"n_embd", "embedding_length", COUNT},
    {"d_model", "embedding_length", COUNT},
    {"num_hidden_layers", "block_count", COUNT},
    {"n_layer", "block_count", COUNT},
    {"num_layers", "block_count", COUNT},
    {"intermediate_size", "feed_forward_length", COUNT},
    {"n_inner", "feed_forward_length", COUNT},
    {"d_ff", "feed_forward_length", COUNT},
    {"num_attention_heads", "attention.head_count", COUNT},
    {"n_head", "attention.head_count", COUNT},
    {"num_heads", "attention.head_count", COUNT},
    {"num_key_value_heads", "attention.head_count_kv", COUNT},
    {"head_dim", "attention.key_length", COUNT},
    {"head_dim", "attention.value_length", COUNT},
    {"head_dim", "rope.dimension_count", COUNT},
    {"max_position_embeddings", "context_length", COUNT},
    {"n_positions", "context_length", COUNT},
    {"n_ctx", "context_length", COUNT},
    {"vocab_size", "vocab_size", COUNT},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", REAL},
    {"layer_norm_eps", "attention.layer_norm_epsilon", REAL},
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", REAL},
    {"norm_epsilon", "attention.layer_norm_epsilon", REAL},
    {"rope_theta", "rope.freq_base", REAL},
    {"rope_local_base_freq", "rope.freq_base_swa", REAL},
    {"sliding_window", "attention.sliding_window", COUNT},
    {"num_local_experts", "expert_count", COUNT},
    {"num_experts", "expert_count", COUNT},
    {"n_routed_experts", "expert_count", COUNT},
    {"num_experts_per_tok", "expert_used_count", COUNT},
    {"moe_intermediate_size", "expert_feed_forward_length", COUNT},
    {"shared_expert_intermediate_size", "expert_shared_feed_forward_length", COUNT},
    {"n_shared_experts", "expert_shared_count", COUNT},
    {"first_k_dense_replace", "leading_dense_block_count", COUNT},
    {"routed_scaling_factor", "expert_weights_scale", REAL},
    {"norm_topk_prob", "expert_weights_norm", FLAG},
    {"q_lora_rank", "attention.q_lora_rank", COUNT},
    {"kv_lora_rank", "attention.kv_lora_rank", COUNT},
    {"attn_logit_softcapping", "attn_logit_softcapping", REAL},
    {"final_logit_softcapping", "final_logit_softcapping", REAL},
    {"clip_qkv", "attention.clamp_kqv", REAL},
    {"logit_scale", "logit_scale", REAL},
    {"attention_multiplier", "attention.scale", REAL},
    {"embedding_multiplier", "embedding_scale", REAL},
    {"residual_multiplier", "residual_scale", REAL},
    {"logits_scaling", "logit_scale", REAL},
    {"use_parallel_residual", "use_parallel_residual", FLAG},
};

static void write_key(struct gguf_context *out, const char *arch, const char *suffix, enum kind kind, json_t *v) {
    char key[160];
    snprintf(key, sizeof(key), "%s.%s", arch, suffix);
    if (kind == COUNT && json_is_integer(v) && json_integer_value(v) >= 0)
        gguf_set_val_u32(out, key, (uint32_t) json_integer_value(v));
    if (kind == REAL && json_is_number(v)) gguf_set_val_f32(out, key, (float) json_number_value(v));
    if (kind == FLAG && json_is_boolean(v)) gguf_set_val_bool(out, key, json_is_true(v));
}

static void write_scaling(json_t *config, const char *arch, struct gguf_context *out) {
    json_t *r = json_object_get(config, "rope_scaling");
    const char *type = json_string_value(json_object_get(r, "rope_type"));
    if (!type) type = json_string_value(json_object_get(r, "type"));
    if (!type || strcmp(type, "default") == 0 || strcmp(type, "mrope") == 0 || strcmp(type, "llama3") == 0) return;
    char key[160];
    snprintf(key, sizeof(key), "%s.rope.scaling.type", arch);
    gguf_set_val_str(out, key,
                     strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0 ? "longrope"
                     : strcmp(type, "yarn") == 0                              ? "yarn"
                                                                              : "linear");
    write_key(out, arch, "rope.scaling.factor", REAL, json_object_get(r, "factor"));
    write_key(out, arch, "rope.scaling.original_context_length", COUNT,
              json_object_get(r, "original_max_position_embeddings"));
}

void config_write(json_t *config, const char *arch, struct gguf_context *out) {
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        write_key(out, arch, names[i].key, names[i].kind, json_object_get(config, names[i].hf));
    char key[160];
    const int64_t heads = json_integer_value(json_object_get(config, "num_attention_heads")),
                  width = json_integer_value(json_object_get(config, "hidden_size"));
    json_t *part = json_object_get(config, "partial_rotary_factor"), *head = json_object_get(config, "head_dim");
    const int64_t dim = json_is_integer(head) ? json_integer_value(head) : heads > 0 ? width / heads : 0;
    snprintf(key, sizeof(key), "%s.rope.dimension_count", arch);
    if (json_is_number(part) && dim > 0)
        gguf_set_val_u32(out, key, (uint32_t) (json_number_value(part) * (double) dim));
    else if (dim > 0 && json_object_get(config, "rope_theta"))
        gguf_set_val_u32(out, key, (uint32_t) dim);
    snprintf(key, sizeof(key), "%s.feed_forward_length", arch);
    if (gguf_find_key(out, key) < 0 && json_is_integer(json_object_get(config, "n_embd")))  // GPT-2 leaves it out
        gguf_set_val_u32(out, key, (uint32_t) (4 * json_integer_value(json_object_get(config, "n_embd"))));
    write_scaling(config, arch, out);
}
