// Keys that come from other values of config.json than most classes', or that no value says. Included by config.c alone.
#pragma once

#include "convert/config.h"

enum kind { COUNT, REAL, FLAG, DROP };

// who: a row of classes.def by its name, or an architecture. value: sums of products of numbers and of paths of config.json
// ("kv_lora_rank+qk_rope_head_dim"), "a|b": the first whose values are all there; "sparse:path" counts the leading "dense" of a list, "is:word:path" gives an array of 1 where
// a list has that word and 0 where it has another. An array's
// numbers become an array. DROP: the key goes. Later rows win.
static const struct class_key {
    const char *who, *key, *value;
    enum kind kind;
} class_keys[] = {
// latent attention in its absorbed form
#define MLA(who)                                                                                                            \
    {who, "attention.key_length", "kv_lora_rank+qk_rope_head_dim", COUNT},                                                  \
        {who, "attention.value_length", "kv_lora_rank", COUNT}, {who, "attention.head_count_kv", "1", COUNT},               \
        {who, "attention.key_length_mla", "qk_nope_head_dim+qk_rope_head_dim", COUNT},                                      \
        {who, "attention.value_length_mla", "v_head_dim", COUNT}, {who, "rope.dimension_count", "qk_rope_head_dim", COUNT}, \
    {                                                                                                                       \
        who, "leading_dense_block_count", "first_k_dense_replace|sparse:mlp_layer_types", COUNT                             \
    }
    MLA("deepseek2"),
    MLA("deepseek32"),
    MLA("glm-dsa"),
    MLA("mistral4"),
    MLA("kimi-linear"),
    MLA("bailingmoe3"),
    MLA("hy_v4"),
    MLA("dots3note"),
    MLA("glm5-next"),
#undef MLA
#define INDEXER(who)                                                                                                        \
    {who, "attention.indexer.head_count", "index_n_heads", COUNT},                                                          \
        {who, "attention.indexer.key_length", "index_head_dim", COUNT}, {                                                   \
        who, "attention.indexer.top_k", "index_topk", COUNT                                                                 \
    }
    INDEXER("deepseek32"),
    INDEXER("glm-dsa"),
    INDEXER("hy_v4"),
    INDEXER("dots3note"),
    INDEXER("glm5-next"),
    INDEXER("deepseek4"),
#undef INDEXER
#define STREAMS(who)                                                                                                        \
    {who, "hyper_connection.count", "hc_mult", COUNT}, { who, "hyper_connection.epsilon", "hc_eps", REAL }
    STREAMS("hy_v4"),
    STREAMS("glm5-next"),
    STREAMS("deepseek4"),
#undef STREAMS
    {"hy_v4", "hyper_connection.magnitude", "hc_magnitude", REAL},
    {"hy_v4", "swiglu_clamp_exp", "swiglu_limit", REAL},
    {"hy_v4", "expert_gating_func", "2", COUNT},
    {"hy_v4", "attention.indexer.types", "is:full:indexer_types", COUNT},
    {"dots3note", "expert_gating_func", "2", COUNT},
    {"dots3note", "expert_weights_norm", "norm_topk_prob|1", FLAG},
    {"dots3note", "attention.indexer.types", "is:indexed_attention:layer_types", COUNT},
    {"dots3note", "expert_shared_count",
     "n_shared_experts*shared_experts_intermediate_size/"
     "moe_intermediate_size|n_shared_experts*moe_shared_expert_intermediate_size/moe_intermediate_"
     "size",
     COUNT},
    {"dots3note", "attention.kv_lora_rank_swa", "swa_kv_lora_rank", COUNT},
    {"dots3note", "attention.key_length_mla_swa", "swa_qk_nope_head_dim+qk_rope_head_dim", COUNT},
    {"dots3note", "attention.value_length_mla_swa", "swa_v_head_dim", COUNT},
    {"dots3note", "rope.freq_base", "rope_parameters.indexed_attention.rope_theta|rope_theta", REAL},
    {"glm5-next", "expert_gating_func", "2", COUNT},
    {"glm5-next", "attention.indexer.types", "is:full:indexer_types", COUNT},
    {"glm5-next", "attention.indexer.kpool", "index_kpool", COUNT},
    {"glm5-next", "attention.indexer.kpool_select_tail", "index_kpool_always_select_tail|1", FLAG},
    {"glm5-next", "attention.layer_norm_epsilon", "0.000001", REAL},
    {"glm5-next", "swiglu_clamp_exp", "swiglu_limit", REAL},
    {"glm5-next", "hyper_connection.sinkhorn_iterations", "hc_sinkhorn_iters", COUNT},
    {"glm5-next", "kda.head_dim", "linear_attn_config.head_dim|linear_head_dim", COUNT},
    {"glm5-next", "kda.gate_lower_bound", "linear_attn_config.gate_lower_bound|linear_lower_bound", REAL},
    {"glm5-next", "ssm.conv_kernel", "linear_attn_config.short_conv_kernel_size|linear_conv_kernel_dim", COUNT},
    {"deepseek4", "hyper_connection.sinkhorn_iterations", "hc_sinkhorn_iters", COUNT},
    {"deepseek4", "swiglu_clamp_exp", "swiglu_limit", REAL},
    {"deepseek4", "expert_gating_func", "4", COUNT},
    {"deepseek4", "attention.output_group_count", "o_groups", COUNT},
    {"deepseek4", "attention.output_lora_rank", "o_lora_rank", COUNT},
    {"deepseek4", "attention.head_count_kv", "1", COUNT},
    {"deepseek4", "rope.freq_base", "rope_parameters.main.rope_theta|rope_theta", REAL},
    {"deepseek4", "attention.compress_rope_freq_base", "rope_parameters.compress.rope_theta|compress_rope_theta", REAL},
    {"deepseek4", "rope.dimension_count",
     "qk_rope_head_dim|head_dim*rope_parameters.main.partial_rotary_factor|head_dim*partial_rotary_factor", COUNT},
    {"deepseek4", "feed_forward_length", "moe_intermediate_size", COUNT},
    {"minimax-m3", "feed_forward_length", "dense_intermediate_size", COUNT},
    {"minimax-m3", "expert_feed_forward_length", "intermediate_size", COUNT},
    {"minimax-m3", "expert_shared_count", "shared_intermediate_size/intermediate_size", COUNT},
    {"minimax-m3", "expert_gating_func", "2", COUNT},
    {"minimax-m3", "expert_weights_norm", "1", FLAG},
    {"minimax-m3", "leading_dense_block_count", "sparse:mlp_layer_types", COUNT},
    {"minimax-m3", "rope.dimension_count",
     "head_dim*rope_parameters.partial_rotary_factor|head_dim*partial_rotary_factor|rotary_dim", COUNT},
    {"minimax-m3", "attention.indexer.head_count", "index_n_heads|sparse_attention_config.sparse_num_index_heads", COUNT},
    {"minimax-m3", "attention.indexer.key_length", "index_head_dim|sparse_attention_config.sparse_index_dim", COUNT},
    {"minimax-m3", "attention.indexer.block_size", "index_block_size|sparse_attention_config.sparse_block_size", COUNT},
    {"minimax-m3", "attention.indexer.top_k", "index_topk_blocks|sparse_attention_config.sparse_topk_blocks", COUNT},
    {"minimax-m3", "attention.indexer.local_blocks", "index_local_blocks|sparse_attention_config.sparse_local_block", COUNT},
    {"qwen4exp", "hyper_connection.count", "hc_count", COUNT},
    {"qwen4exp", "hyper_connection.low_rank", "hc_lowrank", COUNT},
    {"qwen4exp", "attention.indexer.head_count", "indexer_n_heads|0", COUNT},
    {"qwen4exp", "attention.indexer.key_length", "indexer_head_dim|0", COUNT},
    {"qwen4exp", "attention.indexer.top_k", "indexer_budget|0", COUNT},
    {"qwen4exp", "attention.compress_ratios", "indexer_compress_ratio|0", COUNT},
    {"hrm_text", "attention.head_count_kv", "num_attention_heads", COUNT},
    {"hrm_text", "hrm.layers_per_stack", "num_layers_per_stack|num_hidden_layers", COUNT},
    {"hrm_text", "hrm.h_cycles", "H_cycles", COUNT},
    {"hrm_text", "hrm.l_cycles", "L_cycles", COUNT},
    {"hrm_text", "block_count",
     "num_layers_per_stack*H_cycles*L_cycles+num_layers_per_stack*H_cycles|num_hidden_layers*H_cycles*L_cycles+num_hidden_"
     "layers*H_cycles",
     COUNT},
    {"hrm_text", "embedding_scale", "embedding_scale|1/initializer_range", REAL},
    {"muse-glimmer", "logit_scale", "output_multiplier", REAL},
    {"codeshell", "attention.head_count_kv", "num_query_groups", COUNT},
    {"plamo", "attention.head_count_kv", "num_attention_heads/n_shared_head", COUNT},
    {"gemma3n", "final_logit_softcapping", "", DROP},
    {"gemma4", "final_logit_softcapping", "final_logit_softcapping|0", REAL},
    {"gemma4", "attention.key_length", "global_head_dim|head_dim", COUNT},
    {"gemma4", "attention.value_length", "global_head_dim|head_dim", COUNT},
    {"gemma4", "rope.dimension_count", "global_head_dim|head_dim", COUNT},
    {"gemma4", "attention.key_length_swa", "head_dim", COUNT},
    {"gemma4", "attention.value_length_swa", "head_dim", COUNT},
    {"gemma4", "rope.dimension_count_swa", "head_dim", COUNT},
    {"gemma4", "embedding_length_per_layer_input", "hidden_size_per_layer_input|0", COUNT},
    {"gemma4", "attention.shared_kv_layers", "num_kv_shared_layers|0", COUNT},
    {"gemma4", "expert_used_count", "top_k_experts", COUNT},
    {"hunyuan-dense", "rope.scaling.alpha", "rope_parameters.alpha|rope_scaling.alpha", REAL},
    {"hunyuan_vl", "rope.scaling.alpha", "rope_parameters.alpha|rope_scaling.alpha", REAL},
    {"DeepseekV2ForCausalLM", "expert_gating_func", "1", COUNT},
    {"DeepseekV3ForCausalLM", "expert_gating_func", "2", COUNT},
    {"Glm4MoeLiteForCausalLM", "expert_gating_func", "2", COUNT},
    {"deepseek32", "expert_gating_func", "2", COUNT},
    {"glm-dsa", "expert_gating_func", "2", COUNT},
    {"mistral4", "expert_gating_func", "1", COUNT},
    {"minicpm3", "attention.key_length", "qk_nope_head_dim+qk_rope_head_dim", COUNT},
    {"minicpm3", "attention.value_length", "v_head_dim|hidden_size/num_attention_heads", COUNT},
    {"minicpm3", "rope.dimension_count", "qk_rope_head_dim", COUNT},
    {"minicpm3", "residual_scale", "", DROP},
    {"minicpm3", "embedding_scale", "", DROP},
    {"minicpm3", "logit_scale", "", DROP},
    {"mistral3", "attention.temperature_scale", "rope_parameters.llama_4_scaling_beta|rope_scaling.llama_4_scaling_beta",
     REAL},
    {"mistral4", "attention.temperature_scale", "rope_parameters.llama_4_scaling_beta", REAL},
    {"mistral4", "attention.temperature_length", "rope_parameters.original_max_position_embeddings", COUNT},
    {"mistral3", "rope.scaling.yarn_log_multiplier", "rope_parameters.mscale_all_dim|rope_scaling.mscale_all_dim", REAL},
    // experts
    {"GraniteMoeHybridForCausalLM", "feed_forward_length", "shared_intermediate_size", COUNT},
    {"GraniteMoeHybridForCausalLM", "expert_count", "", DROP},
    {"GraniteMoeHybridForCausalLM", "expert_used_count", "", DROP},
    {"gpt-oss", "expert_feed_forward_length", "intermediate_size", COUNT},
    {"llama4", "expert_feed_forward_length", "intermediate_size", COUNT},
    {"llama4", "feed_forward_length", "intermediate_size_mlp", COUNT},
    {"llama4", "interleave_moe_layer_step", "interleave_moe_layer_step", COUNT},
    {"llama4", "attention.sliding_window", "attention_chunk_size", COUNT},
    {"granitemoe", "expert_shared_feed_forward_length", "shared_intermediate_size", COUNT},
    {"granite_swa", "expert_shared_feed_forward_length", "shared_intermediate_size", COUNT},
    {"granitehybrid", "expert_shared_feed_forward_length", "shared_intermediate_size", COUNT},
    {"minimax-m2", "expert_feed_forward_length", "intermediate_size", COUNT},
    {"minimax-m2", "expert_gating_func", "2", COUNT},
    {"minimax-m2", "rope.dimension_count", "rotary_dim", COUNT},
    {"dbrx", "feed_forward_length", "ffn_config.ffn_hidden_size", COUNT},
    {"dbrx", "expert_count", "ffn_config.moe_num_experts", COUNT},
    {"dbrx", "expert_used_count", "ffn_config.moe_top_k", COUNT},
    {"dbrx", "rope.freq_base", "attn_config.rope_theta", REAL},
    {"dbrx", "attention.layer_norm_epsilon", "0.00001", REAL},
    {"afmoe", "leading_dense_block_count", "num_dense_layers", COUNT},
    {"afmoe", "expert_shared_count", "num_shared_experts", COUNT},
    {"afmoe", "expert_weights_scale", "route_scale", REAL},
    {"afmoe", "expert_weights_norm", "route_norm|1", FLAG},
    {"afmoe", "expert_gating_func", "2", COUNT},
    {"afmoe", "attention.sliding_window_pattern", "global_attn_every_n_layers", COUNT},
    {"exaone-moe", "expert_gating_func", "2", COUNT},
    {"exaone-moe", "expert_shared_count", "num_shared_experts", COUNT},
    {"exaone-moe", "expert_shared_feed_forward_length", "num_shared_experts*moe_intermediate_size", COUNT},
    {"ernie4_5-moe", "expert_count", "moe_num_experts", COUNT},
    {"ernie4_5-moe", "expert_used_count", "moe_k", COUNT},
    {"ernie4_5-moe", "expert_shared_feed_forward_length", "moe_num_shared_experts*moe_intermediate_size", COUNT},
    {"ernie4_5-moe", "leading_dense_block_count", "moe_layer_start_index", COUNT},
    {"ernie4_5-moe", "interleave_moe_layer_step", "moe_layer_interval", COUNT},
    {"hunyuan-moe", "expert_feed_forward_length", "moe_intermediate_size|intermediate_size", COUNT},
    {"hunyuan-moe", "expert_shared_feed_forward_length", "num_shared_expert*intermediate_size|intermediate_size", COUNT},
    {"cohere2moe", "expert_feed_forward_length", "intermediate_size", COUNT},
    {"cohere2moe", "leading_dense_block_count", "first_k_dense_replace|sparse:mlp_layer_types", COUNT},
    {"cohere2moe", "expert_shared_count", "num_shared_experts", COUNT},
    {"hy_v3", "expert_weights_scale", "router_scaling_factor", REAL},
    {"hy_v3", "expert_weights_norm", "route_norm|1", FLAG},
    {"hy_v3", "expert_gating_func", "2", COUNT},
    {"hy_v3", "leading_dense_block_count", "first_k_dense_replace|sparse:mlp_layer_types", COUNT},
    {"hy_v3", "expert_shared_count", "num_shared_experts", COUNT},
    {"hy_v3", "expert_shared_feed_forward_length", "num_shared_experts*moe_intermediate_size", COUNT},
    {"laguna", "expert_gating_func", "2", COUNT},
    {"laguna", "expert_weights_norm", "1", FLAG},
    {"laguna", "expert_weights_scale", "moe_routed_scaling_factor", REAL},
    {"laguna", "leading_dense_block_count", "sparse:mlp_layer_types", COUNT},
    {"laguna", "attention.head_count", "num_attention_heads_per_layer", COUNT},
    {"mimo2", "attention.value_length", "v_head_dim", COUNT},
    {"mimo2", "attention.value_scale", "attention_value_scale", REAL},
    {"bailingmoe", "rope.dimension_count", "head_dim|hidden_size/num_attention_heads", COUNT},
    {"bailingmoe", "expert_shared_count", "num_shared_experts", COUNT},
    {"bailingmoe2", "expert_shared_count", "num_shared_experts", COUNT},
    {"bailingmoe2", "expert_gating_func", "2", COUNT},
    {"smallthinker", "expert_count", "moe_num_primary_experts", COUNT},
    {"smallthinker", "expert_used_count", "moe_num_active_primary_experts", COUNT},
    {"smallthinker", "expert_feed_forward_length", "moe_ffn_hidden_size", COUNT},
    {"smallthinker", "feed_forward_length", "moe_ffn_hidden_size", COUNT},
    {"smallthinker", "expert_gating_func", "2-moe_primary_router_apply_softmax", COUNT},
    {"smallthinker", "attention.sliding_window", "sliding_window_size", COUNT},
    {"grovemoe", "expert_chunk_feed_forward_length", "parallel_expert_intermediate_size", COUNT},
    {"grovemoe", "expert_group_scale", "0.05", REAL},
    {"grovemoe", "experts_per_group", "2", COUNT},
    // recurrences
    {"mamba2", "attention.head_count", "0", COUNT},
    {"mamba2", "attention.key_length", "", DROP},
    {"mamba2", "attention.value_length", "", DROP},
    {"mamba2", "rope.dimension_count", "", DROP},
    {"mamba2", "feed_forward_length", "0", COUNT},
    {"mamba2", "ssm.group_count", "n_groups", COUNT},
    {"mamba2", "ssm.time_step_rank", "num_heads", COUNT},
    {"mamba2", "ssm.inner_size", "num_heads*head_dim", COUNT},
#define MAMBA(who)                                                                                                          \
    {who, "ssm.conv_kernel", "mamba_d_conv", COUNT}, {who, "ssm.state_size", "mamba_d_state", COUNT},                       \
        {who, "ssm.group_count", "mamba_n_groups", COUNT},                                                                  \
        {who, "ssm.time_step_rank", "mamba_n_heads|mamba_dt_rank", COUNT}, {                                                \
        who, "ssm.inner_size", "mamba_d_ssm|mamba_expand*hidden_size", COUNT                                                \
    }
    MAMBA("jamba"),
    MAMBA("falcon-h1"),
    MAMBA("granitehybrid"),
#undef MAMBA
    {"falcon-h1", "embedding_scale", "", DROP},  // part of the weights
#define NEMOTRON(who)                                                                                                       \
    {who, "ssm.conv_kernel", "conv_kernel", COUNT}, {who, "ssm.state_size", "ssm_state_size", COUNT},                       \
        {who, "ssm.group_count", "n_groups", COUNT}, {who, "ssm.time_step_rank", "mamba_num_heads", COUNT},                 \
        {who, "ssm.inner_size", "mamba_num_heads*mamba_head_dim", COUNT}, {                                                 \
        who, "rope.dimension_count", "head_dim", COUNT                                                                      \
    }
    NEMOTRON("nemotron_h"),
    NEMOTRON("nemotron_h_moe"),
#undef NEMOTRON
    {"nemotron_h", "expert_count", "", DROP},
    {"nemotron_h", "expert_used_count", "", DROP},
    {"nemotron_h", "expert_feed_forward_length", "", DROP},
    {"nemotron_h_moe", "expert_shared_feed_forward_length", "n_shared_experts*moe_shared_expert_intermediate_size", COUNT},
    {"nemotron_h_moe", "moe_latent_size", "moe_latent_size", COUNT},
    {"lfm2", "shortconv.l_cache", "conv_L_cache", COUNT},
    {"lfm2moe", "shortconv.l_cache", "conv_L_cache", COUNT},
    {"lfm2moe", "leading_dense_block_count", "num_dense_layers", COUNT},
    {"lfm2moe", "expert_gating_func", "2", COUNT},
#define DELTA(who)                                                                                                          \
    {who, "ssm.conv_kernel", "linear_conv_kernel_dim", COUNT}, {who, "ssm.state_size", "linear_key_head_dim", COUNT},       \
        {who, "ssm.group_count", "linear_num_key_heads", COUNT},                                                            \
        {who, "ssm.time_step_rank", "linear_num_value_heads", COUNT},                                                       \
        {who, "ssm.inner_size", "linear_value_head_dim*linear_num_value_heads", COUNT}, {                                   \
        who, "full_attention_interval", "full_attention_interval", COUNT                                                    \
    }
    DELTA("qwen3next"),
    DELTA("qwen35"),
    DELTA("qwen35moe"),
    DELTA("qwen4exp"),
#undef DELTA
    {"minimax-01", "residual_scale", "full_attn_alpha_factor|layernorm_full_attention_alpha", REAL},
    {"minimax-01", "rope.dimension_count", "rotary_dim|head_dim", COUNT},
#define KDA(who)                                                                                                            \
    {who, "kda.head_dim", "linear_attn_config.head_dim|linear_head_dim", COUNT},                                            \
        {who, "ssm.conv_kernel", "linear_attn_config.short_conv_kernel_size|linear_conv_kernel_dim", COUNT},                \
        {who, "context_length", "model_max_length|max_position_embeddings", COUNT},                                         \
        {who, "expert_used_count", "num_experts_per_token", COUNT},                                                         \
        {who, "expert_shared_count", "num_shared_experts", COUNT}, {who, "expert_gating_func", "2", COUNT},                 \
        {who, "expert_group_count", "num_expert_group", COUNT}, {                                                           \
        who, "expert_weights_norm", "moe_renormalize|1", FLAG                                                               \
    }
    KDA("kimi-linear"),
    KDA("bailingmoe3"),
#undef KDA
    {"bailingmoe3", "kda.gate_lower_bound", "kda_lower_bound", REAL},
    {"bailingmoe3", "kda.safe_gate", "kda_safe_gate", FLAG},
    // of the field's own code
    {"openelm", "attention.head_count", "num_query_heads", COUNT},
    {"openelm", "attention.head_count_kv", "num_kv_heads", COUNT},
    {"openelm", "embedding_length", "model_dim", COUNT},
    {"openelm", "block_count", "num_transformer_layers", COUNT},
    {"openelm", "context_length", "max_context_length", COUNT},
    {"openelm", "rope.freq_base", "rope_freq_constant", REAL},
    {"openelm", "attention.layer_norm_rms_epsilon", "rms_norm_eps|0.000001", REAL},
    {"chatglm", "attention.head_count_kv", "multi_query_group_num|num_attention_heads", COUNT},
    {"chatglm", "attention.layer_norm_rms_epsilon", "layernorm_epsilon", REAL},
    {"chatglm", "rope.freq_base", "10000*rope_ratio|10000", REAL},
    {"chatglm", "rope.dimension_count", "kv_channels/2|hidden_size/num_attention_heads/2", COUNT},
    {"llada", "attention.head_count_kv", "n_kv_heads|n_heads", COUNT},
    {"llada", "feed_forward_length", "mlp_hidden_size", COUNT},
    {"llada", "context_length", "max_sequence_length", COUNT},
    {"plamo2", "attention.key_length", "hidden_size_per_head", COUNT},
    {"plamo2", "attention.value_length", "hidden_size_per_head", COUNT},
    {"plamo2", "rope.dimension_count", "hidden_size_per_head", COUNT},
    {"plamo2", "ssm.conv_kernel", "mamba_d_conv", COUNT},
    {"plamo2", "ssm.state_size", "mamba_d_state", COUNT},
    {"plamo2", "ssm.time_step_rank", "mamba_num_heads", COUNT},
    {"plamo2", "ssm.inner_size", "mamba_num_heads*hidden_size_per_head", COUNT},
    {"plamo2", "ssm.group_count", "0", COUNT},
    {"plamo3", "attention.sliding_window", "sliding_window|window_size", COUNT},
    {"plamo3", "rope.freq_base_swa", "rope_local_theta", REAL},
    {"nanbeige", "num_loops", "num_loops", COUNT},
    {"nanbeige", "skip_loop_final_norm", "skip_loop_final_norm", FLAG},
    {"maincoder", "feed_forward_length", "intermediate_size_mlp", COUNT},
    {"spark2_5", "rope.dimension_count", "head_dim*rope_parameters.full_attention.partial_rotary_factor|head_dim", COUNT},
    {"jais", "attention.max_alibi_bias", "8", REAL},
    {"grok", "embedding_scale", "embedding_multiplier_scale", REAL},
    {"grok", "logit_scale", "output_multiplier_scale", REAL},
    {"grok", "attention.output_scale", "attn_output_multiplier", REAL},
#define RWKV(who)                                                                                                           \
    {who, "attention.head_count", "0", COUNT}, {who, "attention.head_count_kv", "0", COUNT}, {                              \
        who, "context_length", "max_position_embeddings|context_length|max_context_length|1048576", COUNT                   \
    }
    RWKV("rwkv6"),
    RWKV("rwkv7"),
#undef RWKV
    {"rwkv6", "wkv.head_size", "head_size", COUNT},
    {"rwkv6", "feed_forward_length", "intermediate_size|hidden_size*7/2", COUNT},
    {"rwkv7", "wkv.head_size", "head_dim", COUNT},
    {"rwkv7", "attention.decay_lora_rank", "decay_low_rank_dim", COUNT},
    {"rwkv7", "attention.iclr_lora_rank", "a_low_rank_dim", COUNT},
    {"rwkv7", "attention.value_residual_mix_lora_rank", "v_low_rank_dim", COUNT},
    {"rwkv7", "attention.gate_lora_rank", "gate_low_rank_dim", COUNT},
// encoders
#define T5(who)                                                                                                             \
    {who, "attention.key_length", "d_kv", COUNT}, {who, "attention.value_length", "d_kv", COUNT},                           \
        {who, "attention.head_count", "num_heads", COUNT}, {who, "attention.head_count_kv", "num_heads", COUNT},            \
        {who, "feed_forward_length", "d_ff", COUNT}, {who, "embedding_length", "d_model", COUNT},                           \
        {who, "block_count", "num_layers", COUNT}, {who, "context_length", "n_positions|512", COUNT}, {                     \
        who, "attention.relative_buckets_count", "relative_attention_num_buckets", COUNT                                    \
    }
    T5("t5"),
    T5("t5encoder"),
#undef T5
    {"t5", "decoder_block_count", "num_decoder_layers|num_layers", COUNT},
    {"t5", "decoder_start_token_id", "decoder_start_token_id|0", COUNT},
    {"RobertaModel", "context_length", "max_position_embeddings-2", COUNT},
    {"XLMRobertaModel", "context_length", "max_position_embeddings-2", COUNT},
    {"RobertaForSequenceClassification", "context_length", "max_position_embeddings-2", COUNT},
    {"XLMRobertaForSequenceClassification", "context_length", "max_position_embeddings-2", COUNT},
    {"bert", "attention.head_count_kv", "num_attention_heads", COUNT},
    {"bert", "attention.key_length", "hidden_size/num_attention_heads", COUNT},
    {"bert", "attention.value_length", "hidden_size/num_attention_heads", COUNT},
    {"modern-bert", "attention.sliding_window", "local_attention", COUNT},
    {"modern-bert", "attention.sliding_window_pattern", "global_attn_every_n_layers|3", COUNT},
    {"modern-bert", "attention.head_count_kv", "num_attention_heads", COUNT},
    {"modern-bert", "rope.freq_base", "global_rope_theta", REAL},
    {"modern-bert", "rope.freq_base_swa", "local_rope_theta", REAL},
    {"nomic-bert", "attention.head_count_kv", "num_attention_heads|n_head", COUNT},
    {"nomic-bert", "rope.freq_base", "rotary_emb_base", REAL},
    {"nomic-bert-moe", "attention.head_count_kv", "num_attention_heads|n_head", COUNT},
    {"nomic-bert-moe", "moe_every_n_layers", "moe_every_n_layers", COUNT},
    {"nomic-bert-moe", "expert_used_count", "moe_top_k", COUNT},
    {"jina-bert-v3", "attention.head_count_kv", "num_attention_heads", COUNT},
    // others
    {"cohere2", "attention.sliding_window_pattern", "sliding_window_pattern", COUNT},
    {"stablelm", "use_parallel_residual", "use_parallel_residual", FLAG},
};
