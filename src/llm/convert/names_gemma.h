// Names of Gemma 3n and Gemma 4. Included by config.c alone, after names.h.
#pragma once

#include "convert/names.h"

#define NAMES_PER_LAYER                                                                                                     \
    N(per_layer_token_embd, "model.embed_tokens_per_layer"), N(per_layer_model_proj, "model.per_layer_model_projection"),   \
        N(per_layer_proj_norm, "model.per_layer_projection_norm"), N(inp_gate, "per_layer_input_gate"),                     \
        N(proj, "per_layer_projection"), N(post_norm, "post_per_layer_input_norm"),                                         \
        N(ffn_norm, "pre_feedforward_layernorm")

static const struct ckpt_name names_gemma3n[] = {
    NAMES_PER_LAYER,
    N(altup_proj, "model.altup_projections.{3}"),
    N(altup_unembd_proj, "model.altup_unembed_projections.{3}"),
    N(altup_correct_coef, "altup.correction_coefs"),
    N(altup_correct_scale, "altup.correct_output_scale"),
    N(altup_predict_coef, "altup.prediction_coefs"),
    N(altup_router, "altup.modality_router"),
    N(altup_router_norm, "altup.router_norm"),
    N(laurel_l, "laurel.linear_left"),
    N(laurel_r, "laurel.linear_right"),
    N(laurel_post_norm, "laurel.post_laurel_norm"),
    END,
};

static const struct ckpt_name names_gemma4[] = {
    NAMES_PER_LAYER,
    N(layer_output_scale, "layer_scalar"),
    N(ffn_gate_inp, "router.proj"),
    N(ffn_gate_inp_scale, "router.scale"),
    N(ffn_gate_up_exps, "experts.gate_up_proj!"),
    N(ffn_down_exps, "experts.down_proj!"),
    N(ffn_down_exps, "scale:router.per_expert_scale!"),
    N(pre_ffw_norm_2, "pre_feedforward_layernorm_2"),
    N(post_ffw_norm_1, "post_feedforward_layernorm_1"),
    N(post_ffw_norm_2, "post_feedforward_layernorm_2"),
    END,
};
