// config.json as GGUF keys. The names of its values are much the same in all of the field's checkpoints; `names` lists them once.
#include "convert/config.h"

#include "base/str.h"
#include "block/hparams.h"
#include "convert/keys.h"
#include "convert/layers.h"
#include "convert/names.h"
#include "convert/names_encoders.h"
#include "convert/names_gemma.h"
#include "convert/names_hybrid.h"
#include "convert/names_moe.h"
#include "convert/names_sparse.h"
#include "ggml/ext.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct ckpt_class classes[] = {
#define CLASS(name, arch, prefix, flags, names) {name, arch, prefix, flags, names_##names},
#include "convert/classes.def"
#undef CLASS
};

// Whether the row is for a class of that name in this config.json.
static bool holds(json_t *config, const char *row, const char *name) {
    const size_t n = strcspn(row, "?");
    if (strlen(name) != n || strncmp(row, name, n) != 0) return false;
    if (!row[n]) return true;
    const char *what = row + n + 1;
    if (strncmp(what, "layers:", 7) == 0) return layers_have(config, what + 7);
    json_t *v = config_path(config, what);
    return json_is_true(v) || (json_is_number(v) && json_number_value(v) != 0);
}

enum err config_class(json_t *config, const struct ckpt_class **out) {
    const char *name = json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
    struct str known = {0};
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (name && holds(config, classes[i].name, name)) {
            *out = &classes[i];
            str_free(&known);
            return ERR_OK;
        }
        if (!strchr(classes[i].name, '?')) str_printf(&known, "%s%s", i ? " " : "", classes[i].name);
    }
    const enum err e = err_set(ERR_UNSUPPORTED, "config.json names the class %s; those that can be converted: %s",
                               name ? name : "(none)", str_text(&known));
    str_free(&known);
    return e;
}

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
    {"n_layers", "block_count", COUNT},
    {"intermediate_size", "feed_forward_length", COUNT},
    {"n_inner", "feed_forward_length", COUNT},
    {"d_ff", "feed_forward_length", COUNT},
    {"ffn_hidden_size", "feed_forward_length", COUNT},
    {"num_attention_heads", "attention.head_count", COUNT},
    {"n_head", "attention.head_count", COUNT},
    {"num_heads", "attention.head_count", COUNT},
    {"n_heads", "attention.head_count", COUNT},
    {"num_key_value_heads", "attention.head_count_kv", COUNT},
    {"head_dim", "attention.key_length", COUNT},
    {"head_dim", "attention.value_length", COUNT},
    {"head_dim", "rope.dimension_count", COUNT},
    {"max_position_embeddings", "context_length", COUNT},
    {"n_positions", "context_length", COUNT},
    {"n_ctx", "context_length", COUNT},
    {"seq_length", "context_length", COUNT},
    {"max_seq_len", "context_length", COUNT},
    {"vocab_size", "vocab_size", COUNT},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", REAL},
    {"layer_norm_eps", "attention.layer_norm_epsilon", REAL},
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", REAL},
    {"norm_epsilon", "attention.layer_norm_epsilon", REAL},
    {"norm_eps", "attention.layer_norm_epsilon", REAL},
    {"rope_theta", "rope.freq_base", REAL},
    {"rotary_emb_base", "rope.freq_base", REAL},
    {"rope_local_base_freq", "rope.freq_base_swa", REAL},
    {"sliding_window_pattern", "attention.sliding_window_pattern", COUNT},
    {"_sliding_window_pattern", "attention.sliding_window_pattern", COUNT},
    {"num_local_experts", "expert_count", COUNT},
    {"num_experts", "expert_count", COUNT},
    {"n_routed_experts", "expert_count", COUNT},
    {"num_experts_per_tok", "expert_used_count", COUNT},
    {"moe_topk", "expert_used_count", COUNT},
    {"n_group", "expert_group_count", COUNT},
    {"topk_group", "expert_group_used_count", COUNT},
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
    {"scale_emb", "embedding_scale", REAL},
    {"conv_kernel", "ssm.conv_kernel", COUNT},
    {"state_size", "ssm.state_size", COUNT},
    {"time_step_rank", "ssm.time_step_rank", COUNT},
};

static void write_key(struct gguf_context *out, const char *arch, const char *suffix, enum kind kind, json_t *v) {
    char key[160];
    snprintf(key, sizeof(key), "%s.%s", arch, suffix);
    if (kind == COUNT && json_is_integer(v) && json_integer_value(v) >= 0)
        gguf_set_val_u32(out, key, (uint32_t) json_integer_value(v));
    if (kind == REAL && json_is_number(v)) gguf_set_val_f32(out, key, (float) json_number_value(v));
    if (kind == FLAG && json_is_boolean(v)) gguf_set_val_bool(out, key, json_is_true(v));
    const size_t n = json_array_size(v);
    if (kind != COUNT || n == 0 || n > MAX_LAYERS) return;
    int32_t values[MAX_LAYERS];
    for (size_t i = 0; i < n; i++) values[i] = (int32_t) json_integer_value(json_array_get(v, i));
    gguf_set_arr_data(out, key, GGUF_TYPE_INT32, values, n);
}

json_t *config_get(json_t *config, const char *name) {
    json_t *v = json_object_get(config, name);
    if (!v || json_is_null(v)) v = json_object_get(json_object_get(config, "text_config"), name);
    return json_is_null(v) ? NULL : v;
}

json_t *config_path(json_t *config, const char *path) {
    char name[128];
    size_t n = strcspn(path, ".[");
    snprintf(name, sizeof(name), "%.*s", (int) n, path);
    json_t *v = config_get(config, name);
    while (v && path[n]) {
        path += n + 1;
        const bool index = path[-1] == '[';
        n = strcspn(path, index ? "]" : ".[");
        snprintf(name, sizeof(name), "%.*s", (int) n, path);
        v = index ? json_array_get(v, strtoul(name, NULL, 10)) : json_object_get(v, name);
        if (index && path[n]) n++;
    }
    return json_is_null(v) ? NULL : v;
}

json_t *config_rope(json_t *config, const char **kind) {
    json_t *r = config_get(config, "rope_scaling");
    if (!r) r = config_get(config, "rope_parameters");
    json_t *full = json_object_get(r, "full_attention");  // by kind of layer
    if (json_is_object(full)) r = full;
    const char *k = json_string_value(json_object_get(r, "rope_type"));
    if (!k) k = json_string_value(json_object_get(r, "type"));
    *kind = k ? k : "";
    return r;
}

static double real(json_t *v, double def) { return json_is_number(v) ? json_number_value(v) : def; }
static int64_t count(json_t *config, const char *name) { return json_integer_value(config_get(config, name)); }

static void set_real(struct gguf_context *out, const char *arch, const char *suffix, double v) {
    json_t *j = json_real(v);
    write_key(out, arch, suffix, REAL, j);
    json_decref(j);
}

static void set_count(struct gguf_context *out, const char *arch, const char *suffix, int64_t v) {
    json_t *j = json_integer(v);
    write_key(out, arch, suffix, COUNT, j);
    json_decref(j);
}

// The length of the text that a longrope model was first trained on.
static int64_t first_length(json_t *config, json_t *r) {
    const int64_t n = json_integer_value(json_object_get(r, "original_max_position_embeddings"));
    return n ? n : count(config, "original_max_position_embeddings");
}

// Longrope turns by its own lists of factors, so its `factor` is none of the angles'; it only says by how much the text has grown.
static void write_longrope(json_t *config, json_t *r, const char *arch, struct gguf_context *out) {
    const double first = (double) first_length(config, r);
    const double grown =
        real(json_object_get(r, "factor"), first > 0 ? (double) count(config, "max_position_embeddings") / first : 1);
    double mag = grown > 1 && first > 1 ? sqrt(1 + log(grown) / log(first)) : 1;
    mag = real(json_object_get(r, "long_mscale"), real(json_object_get(r, "attention_factor"), mag));
    set_real(out, arch, "rope.scaling.attn_factor", mag);
    set_count(out, arch, "rope.scaling.original_context_length", (int64_t) first);
}

static void write_yarn(json_t *r, const char *arch, struct gguf_context *out) {
    static const struct {
        const char *hf, *key;
    } more[] = {{"beta_fast", "rope.scaling.yarn_beta_fast"}, {"beta_slow", "rope.scaling.yarn_beta_slow"}};
    const double f = real(json_object_get(r, "factor"), 1), own = f > 1 ? 1 + 0.1 * log(f) : 1;
    json_t *given = json_object_get(r, "attention_factor"), *all = json_object_get(r, "mscale_all_dim");
    if (json_is_number(given)) set_real(out, arch, "rope.scaling.attn_factor", real(given, 1) / own);
    if (json_is_number(all)) set_real(out, arch, "rope.scaling.yarn_log_multiplier", 0.1 * real(all, 0));
    for (size_t i = 0; i < 2; i++) write_key(out, arch, more[i].key, REAL, json_object_get(r, more[i].hf));
}

static void write_scaling(json_t *config, const char *arch, struct gguf_context *out) {
    const char *kind;
    json_t *r = config_rope(config, &kind);
    write_key(out, arch, "rope.freq_base", REAL, json_object_get(r, "rope_theta"));
    const bool longrope = strcmp(kind, "longrope") == 0 || strcmp(kind, "su") == 0;
    if (strcmp(kind, "dynamic") == 0 && !config_path(config, "rope_scaling.alpha") &&
        !config_path(config, "rope_parameters.alpha"))
        ggml_log_write(
            GGML_LOG_LEVEL_WARN,
            "config.json asks for angles that change with the text's length; they stay as for the first %lld tokens\n",
            (long long) count(config, "max_position_embeddings"));
    if (!longrope && strcmp(kind, "yarn") != 0 && strcmp(kind, "linear") != 0) return;  // llama3: rope_freqs
    char key[160];
    snprintf(key, sizeof(key), "%s.rope.scaling.type", arch);
    gguf_set_val_str(out, key, longrope ? "longrope" : kind);
    if (longrope) {
        write_longrope(config, r, arch, out);
        return;
    }
    write_key(out, arch, "rope.scaling.factor", REAL, json_object_get(r, "factor"));
    write_key(out, arch, "rope.scaling.original_context_length", COUNT,
              json_object_get(r, "original_max_position_embeddings"));
    if (strcmp(kind, "yarn") == 0) write_yarn(r, arch, out);
}

// Llama 3: long waves are slowed down by the factor, short ones stay, those between go over smoothly.
static float llama3_factor(json_t *r, double wave) {
    const double f = real(json_object_get(r, "factor"), 8), low = real(json_object_get(r, "low_freq_factor"), 1),
                 high = real(json_object_get(r, "high_freq_factor"), 4),
                 first = real(json_object_get(r, "original_max_position_embeddings"), 8192);
    if (wave < first / high) return 1;
    if (wave > first / low || high <= low) return (float) f;
    const double smooth = (first / wave - low) / (high - low);
    return (float) (1 / ((1 - smooth) / f + smooth));
}

bool config_has_factors(json_t *config, const char *name) {
    const char *kind;
    (void) config_rope(config, &kind);
    return strcmp(name, "rope_freqs") == 0 && (strcmp(kind, "llama3") == 0 || strcmp(kind, "proportional") == 0);
}

float *config_rope_factors(json_t *config, const char *name, int64_t n, float base) {
    const char *kind;
    json_t *r = config_rope(config, &kind), *list = NULL;
    const bool freqs = strcmp(name, "rope_freqs") == 0, llama3 = freqs && strcmp(kind, "llama3") == 0;
    if (freqs && !config_has_factors(config, name)) return NULL;
    // Gemma 4: the first pairs turn as if all did, the others not at all
    const double turning = real(json_object_get(r, "partial_rotary_factor"), 1) * (double) n / 2;
    if (!freqs) list = json_object_get(r, strcmp(name, "rope_factors_long") == 0 ? "long_factor" : "short_factor");
    if (!freqs && (!json_is_array(list) || (int64_t) json_array_size(list) != n / 2)) return NULL;
    float *out = malloc((size_t) (n / 2 + 1) * sizeof(*out));
    for (int64_t i = 0; out && i < n / 2; i++)
        out[i] = llama3  ? llama3_factor(r, 2 * 3.14159265358979323846 * pow((double) base, 2.0 * (double) i / (double) n))
                 : freqs ? ((double) i < floor(turning) ? 1.0f : 1e30f)
                         : (float) real(json_array_get(list, (size_t) i), 1);
    return out;
}

// Key heads where a class has its own way to say how many.
static void write_key_heads(json_t *config, const char *arch, struct gguf_context *out) {
    json_t *groups = config_get(config, "new_decoder_architecture"), *one = config_get(config, "multi_query");
    if (json_is_true(groups))
        write_key(out, arch, "attention.head_count_kv", COUNT, config_get(config, "num_kv_heads"));
    else if (json_is_true(one))
        set_count(out, arch, "attention.head_count_kv", 1);
    json_t *mpt = config_get(config, "attn_config");
    write_key(out, arch, "attention.head_count_kv", COUNT, json_object_get(mpt, "kv_n_heads"));
    write_key(out, arch, "attention.clamp_kqv", REAL, json_object_get(mpt, "clip_qkv"));
    if (json_is_true(json_object_get(mpt, "alibi")))
        set_real(out, arch, "attention.max_alibi_bias", real(json_object_get(mpt, "alibi_bias_max"), 8));
}

// Whose weights differ: two thirds of the width, rounded up (LFM2, Refact) or to the nearest (Talkie).
static void write_adjusted_width(json_t *config, const char *arch, struct gguf_context *out) {
    const bool refact = strcmp(arch, "refact") == 0;
    if (strcmp(arch, "talkie") == 0 && !config_get(config, "intermediate_size"))
        set_count(out, arch, "feed_forward_length", (count(config, "n_embd") * 8 / 3 + 64) / 128 * 128);
    if (!refact && !json_is_true(config_get(config, "block_auto_adjust_ff_dim"))) return;
    int64_t n = refact                          ? 4 * count(config, "n_embd")
                : count(config, "block_ff_dim") ? count(config, "block_ff_dim")
                                                : count(config, "intermediate_size");
    const int64_t of = refact ? 256 : count(config, "block_multiple_of");
    n = (int64_t) (real(config_get(config, "block_ffn_dim_multiplier"), 1) * (double) (2 * n / 3));
    if (of > 0) n = (n + of - 1) / of * of;
    set_count(out, arch, "feed_forward_length", n);
}

static void write_widths(json_t *config, const char *arch, struct gguf_context *out) {
    char key[160];
    int64_t heads = count(config, "num_attention_heads"), width = count(config, "hidden_size"),
            dim = count(config, "head_dim");
    if (!heads) heads = count(config, "n_head");
    if (!width) width = count(config, "n_embd");
    if (!width) width = count(config, "d_model");
    if (!dim && heads > 0) dim = width / heads;
    json_t *part = config_get(config, "partial_rotary_factor");
    if (!part) part = config_get(config, "rotary_pct");
    const char *kind;
    if (!part) part = json_object_get(config_rope(config, &kind), "partial_rotary_factor");
    if (json_is_number(part) && dim > 0)
        set_count(out, arch, "rope.dimension_count", (int64_t) (json_number_value(part) * (double) dim));
    else if (dim > 0 && config_get(config, "rope_theta"))
        set_count(out, arch, "rope.dimension_count", dim);
    snprintf(key, sizeof(key), "%s.feed_forward_length", arch);
    if (gguf_find_key(out, key) < 0 && width > 0)  // the GPTs and Falcon leave it out
        set_count(out, arch, "feed_forward_length",
                  (int64_t) (real(config_get(config, "expansion_ratio"), 4) * (double) width));
    const char *score = json_string_value(config_get(config, "scoring_func"));
    if (!score) score = json_string_value(config_get(config, "expert_selection_fn"));
    if (score) set_count(out, arch, "expert_gating_func", strcmp(score, "softmax") == 0 ? 1 : 2);
    // MiniCPM's three scales; Mamba's inner width
    const double depth = real(config_get(config, "scale_depth"), 0), base = (double) count(config, "dim_model_base");
    if (depth > 0) set_real(out, arch, "residual_scale", depth / sqrt((double) count(config, "num_hidden_layers")));
    if (base > 0) set_real(out, arch, "logit_scale", (double) width / base);
    write_adjusted_width(config, arch, out);
    json_t *sections = json_object_get(config_rope(config, &kind), "mrope_section");
    if (!sections) sections = json_object_get(config_rope(config, &kind), "xdrope_section");
    if (json_is_array(sections)) {
        int32_t four[4] = {0};
        for (size_t i = 0; i < 4; i++) four[i] = (int32_t) json_integer_value(json_array_get(sections, i));
        snprintf(key, sizeof(key), "%s.rope.dimension_sections", arch);
        gguf_set_arr_data(out, key, GGUF_TYPE_INT32, four, 4);
    }
    const char *positions = json_string_value(config_get(config, "position_embedding_type"));
    if (positions && strcmp(arch, "granitehybrid") == 0) {
        snprintf(key, sizeof(key), "%s.rope.scaling.finetuned", arch);
        gguf_set_val_bool(out, key, strcmp(positions, "rope") == 0);
    }
    if (config_get(config, "state_size")) {
        set_count(out, arch, "ssm.inner_size", count(config, "intermediate_size"));
        set_count(out, arch, "feed_forward_length", 0);
        snprintf(key, sizeof(key), "%s.ssm.dt_b_c_rms", arch);
        gguf_set_val_bool(out, key, config_get(config, "mixer_rms_eps") != NULL);
    }
}

// HunYuan's factor of the base, where the architecture has no key for it.
static void write_alpha(json_t *config, const char *arch, struct gguf_context *out) {
    const char *kind;
    json_t *r = config_rope(config, &kind), *alpha = json_object_get(r, "alpha");
    int64_t dim = count(config, "head_dim");
    if (!json_is_number(alpha) || strcmp(arch, "hunyuan-moe") != 0) return;
    if (!dim && count(config, "num_attention_heads") > 0)
        dim = count(config, "hidden_size") / count(config, "num_attention_heads");
    const double base = real(json_object_get(r, "rope_theta"), real(config_get(config, "rope_theta"), 10000));
    if (dim > 2)
        set_real(out, arch, "rope.freq_base", base * pow(json_number_value(alpha), (double) dim / (double) (dim - 2)));
}

// ---- what keys.h says ------------------------------------------------------------------------------------------------

// A number or a path of config.json; flags count as 1 and 0. false: it is not there.
static bool term(json_t *config, const char *text, size_t n, double *out) {
    char path[128], *end;
    snprintf(path, sizeof(path), "%.*s", (int) n, text);
    *out = strtod(path, &end);
    if (end != path && !*end) return true;
    json_t *v = config_path(config, path);
    *out = json_is_true(v) ? 1 : json_is_boolean(v) ? 0 : json_number_value(v);
    return json_is_number(v) || json_is_boolean(v);
}

// "a*b+c-d/e", the products first.
static bool evaluate(json_t *config, const char *text, size_t n, double *out) {
    double sum = 0, product = 0;
    char op = '+';
    for (size_t at = 0; at < n;) {
        double v;
        const size_t len = strcspn(text + at, "*+-/|");
        if (!term(config, text + at, len, &v)) return false;
        if (op == '*')
            product *= v;
        else if (op == '/')
            product = v != 0 ? product / v : 0;
        else
            sum += product, product = op == '-' ? -v : v;
        at += len;
        op = text[at];
        at++;
    }
    *out = sum + product;
    return true;
}

static void write_class_key(json_t *config, const char *arch, const struct class_key *k, struct gguf_context *out) {
    char key[160];
    snprintf(key, sizeof(key), "%s.%s", arch, k->key);
    const enum kind kind = (enum kind) k->value[0];
    if (kind == DROP) gguf_remove_key(out, key);
    for (const char *at = k->value + 1; kind != DROP && at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        const size_t n = strcspn(at, "|");
        double v;
        char path[128];
        snprintf(path, sizeof(path), "%.*s", (int) n, at);
        if (strncmp(at, "is:", 3) == 0) {
            if (layers_where(config, path + 3, out, key)) return;
            continue;
        }
        json_t *list = strncmp(at, "sparse:", 7) == 0 ? config_path(config, path + 7) : config_path(config, path);
        if (strncmp(at, "sparse:", 7) == 0) {
            if (!list) continue;
            v = (double) layers_leading(list, "dense");
        } else if (json_is_array(list)) {
            write_key(out, arch, k->key, kind, list);
            return;
        } else if (!evaluate(config, at, n, &v))
            continue;
        if (kind == COUNT) set_count(out, arch, k->key, (int64_t) v);
        if (kind == REAL) set_real(out, arch, k->key, v);
        if (kind == FLAG) gguf_set_val_bool(out, key, v != 0);
        return;
    }
}

static bool names_it(const char *who, const char *name) {
    const size_t n = strlen(name);
    for (; who; who = strchr(who, '|') ? strchr(who, '|') + 1 : NULL)
        if (strcspn(who, "|") == n && strncmp(who, name, n) == 0) return true;
    return false;
}

static void write_class_keys(json_t *config, const struct ckpt_class *cls, struct gguf_context *out) {
    for (size_t i = 0; i < sizeof(class_keys) / sizeof(class_keys[0]); i++)
        if (names_it(class_keys[i].who, cls->arch) || names_it(class_keys[i].who, cls->name))
            write_class_key(config, cls->arch, &class_keys[i], out);
}

void config_write(json_t *config, const struct ckpt_class *cls, struct gguf_context *out) {
    const char *arch = cls->arch;
    layers_prepare(config);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        write_key(out, arch, names[i].key, names[i].kind, config_get(config, names[i].hf));
    write_key_heads(config, arch, out);
    write_widths(config, arch, out);
    write_scaling(config, arch, out);
    write_alpha(config, arch, out);
    write_class_keys(config, cls, out);
    layers_write(config, cls, out);
    if (strcmp(arch, "nanbeige") == 0 && json_array_size(config_get(config, "loop_loss_weights")) > 0)
        set_count(out, arch, "num_loops", (int64_t) json_array_size(config_get(config, "loop_loss_weights")) + 1);
    if (strcmp(arch, "rwkv6") == 0) {  // ranks go by the width
        const int64_t wide = count(config, "hidden_size") == 4096 ? 2 : 1;
        set_count(out, arch, "time_mix_extra_dim", 32 * wide);
        set_count(out, arch, "time_decay_extra_dim", 64 * wide);
    }
    if (strcmp(arch, "t5") == 0) {  // names_encoders.h asks for it
        json_t *scales = config_get(config, "scale_decoder_outputs"), *tied = config_get(config, "tie_word_embeddings");
        const bool scaled = scales ? json_is_true(scales) : !json_is_false(tied);
        json_object_set_new(config, "tied_head_scale", json_real(scaled ? 1 / sqrt((double) count(config, "d_model")) : 1));
    }
}
