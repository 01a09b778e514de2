// Layers by kind: lists of names ("mamba", "full_attention"), patterns of letters (Nemotron-H), indexes (LFM2), periods (Jamba).
#include "convert/layers.h"

#include "block/hparams.h"

#include <stdio.h>
#include <string.h>

static int64_t count(json_t *config, const char *name) { return json_integer_value(config_get(config, name)); }

static int n_layers(json_t *config) {
    int64_t n = count(config, "num_hidden_layers");
    if (!n) n = count(config, "n_layer");
    if (!n) n = (int64_t) json_array_size(config_get(config, "layers_block_type"));
    return n > 0 && n <= MAX_LAYERS ? (int) n : 0;
}

static bool in_list(json_t *list, int64_t value) {
    size_t i;
    json_t *v;
    json_array_foreach(list, i, v) {
        if (json_is_integer(v) && json_integer_value(v) == value) return true;
    }
    return false;
}

// The kind of layer i as the field's lists name it now; NULL: config.json doesn't say.
static const char *kind_of(json_t *config, int i) {
    json_t *types = config_get(config, "layer_types"), *blocks = config_get(config, "layers_block_type");
    const char *kind = json_string_value(json_array_get(blocks ? blocks : types, (size_t) i));
    const char *letters = json_string_value(config_get(config, "hybrid_override_pattern"));
    if (!kind && letters && (size_t) i < strlen(letters))
        kind = letters[i] == 'M' ? "mamba" : letters[i] == '-' ? "mlp" : letters[i] == 'E' ? "moe" : "full_attention";
    json_t *full = config_get(config, "full_attn_idxs"), *list = config_get(config, "attn_type_list"),
           *kda = config_path(config, "linear_attn_config.kda_layers");
    if (!kind && full) kind = in_list(full, i) ? "full_attention" : "conv";
    if (!kind && list) kind = json_integer_value(json_array_get(list, (size_t) i)) ? "full_attention" : "linear_attention";
    if (!kind && kda) kind = in_list(kda, i + 1) ? "linear_attention" : "full_attention";
    const int64_t n = n_layers(config),
                  step = json_is_false(config_get(config, "mamba_enabled")) ? 0 : count(config, "mamba_step");
    if (!kind && step > 0)  // PLaMo 2
        kind = (n <= step / 2 ? i == n - 1 : i % step == step / 2) ? "full_attention" : "mamba";
    const int64_t period = count(config, "attn_layer_period");
    if (!kind && period > 0) kind = i % period == count(config, "attn_layer_offset") ? "full_attention" : "mamba";
    return kind;
}

static bool is(const char *kind, const char *word) { return kind && strcmp(kind, word) == 0; }

static bool recurrent(const char *kind) {
    return is(kind, "mamba") || is(kind, "linear_attention") || is(kind, "conv") || is(kind, "recurrent");
}

static bool feed_forward(const char *kind) { return is(kind, "mlp") || is(kind, "moe"); }

bool layers_have(json_t *config, const char *kind) {
    for (int i = 0; i < n_layers(config); i++)
        if (is(kind_of(config, i), kind)) return true;
    return false;
}

size_t layers_leading(json_t *list, const char *word) {
    size_t n = 0;
    while (n < json_array_size(list) && is(json_string_value(json_array_get(list, n)), word)) n++;
    return n;
}

bool layers_where(json_t *config, const char *what, struct gguf_context *out, const char *key) {
    const size_t n_word = strcspn(what, ":");
    json_t *list = what[n_word] ? config_path(config, what + n_word + 1) : NULL;
    const size_t n = json_array_size(list);
    int32_t v[MAX_LAYERS];
    if (n == 0 || n > MAX_LAYERS) return false;
    for (size_t i = 0; i < n; i++) {
        const char *word = json_string_value(json_array_get(list, i));
        v[i] = word && strlen(word) == n_word && strncmp(word, what, n_word) == 0;
    }
    gguf_set_arr_data(out, key, GGUF_TYPE_INT32, v, n);
    return true;
}

static void set_ints(struct gguf_context *out, const char *arch, const char *suffix, const int32_t *values, int n) {
    char key[160];
    snprintf(key, sizeof(key), "%s.%s", arch, suffix);
    gguf_set_arr_data(out, key, GGUF_TYPE_INT32, values, (size_t) n);
}

// Their width where they are in use, which layers have one, and how those turn.
static void write_windows(json_t *config, const char *arch, struct gguf_context *out) {
    if (json_is_false(config_get(config, "use_sliding_window"))) return;
    char key[160];
    const int64_t width = count(config, "sliding_window");
    snprintf(key, sizeof(key), "%s.attention.sliding_window", arch);
    if (json_is_integer(config_get(config, "sliding_window")) && width >= 0) gguf_set_val_u32(out, key, (uint32_t) width);
    json_t *swa = config_path(config, "rope_parameters.sliding_attention"), *base = json_object_get(swa, "rope_theta");
    snprintf(key, sizeof(key), "%s.rope.freq_base_swa", arch);
    if (json_is_number(base)) gguf_set_val_f32(out, key, (float) json_number_value(base));
    const double part = json_number_value(json_object_get(swa, "partial_rotary_factor"));
    int64_t dim = count(config, "swa_head_dim");
    if (!dim) dim = count(config, "head_dim");
    if (!dim && count(config, "num_attention_heads") > 0)
        dim = count(config, "hidden_size") / count(config, "num_attention_heads");
    snprintf(key, sizeof(key), "%s.rope.dimension_count_swa", arch);
    if (part > 0) gguf_set_val_u32(out, key, (uint32_t) (part * (double) dim));
    const int n = n_layers(config);
    if (width <= 0 || !json_is_array(config_get(config, "layer_types"))) return;
    bool pattern[MAX_LAYERS];
    for (int i = 0; i < n; i++) pattern[i] = is(kind_of(config, i), "sliding_attention");
    snprintf(key, sizeof(key), "%s.attention.sliding_window_pattern", arch);
    gguf_set_arr_data(out, key, GGUF_TYPE_BOOL, pattern, (size_t) n);
}

// MiMo's windowed layers have key heads of another number: as config.json says, else twice as many.
static void write_window_heads(json_t *config, const char *arch, struct gguf_context *out) {
    const int n = n_layers(config);
    int32_t kv[MAX_LAYERS];
    const int64_t full = count(config, "num_key_value_heads"), own = count(config, "swa_num_key_value_heads");
    json_t *pattern = config_get(config, "hybrid_layer_pattern");
    for (int i = 0; i < n; i++) {
        const bool windowed = pattern ? json_integer_value(json_array_get(pattern, (size_t) i)) != 0
                                      : is(kind_of(config, i), "sliding_attention");
        kv[i] = (int32_t) (!windowed ? full : own ? own : 2 * full);
    }
    set_ints(out, arch, "attention.head_count_kv", kv, n);
}

// DeepSeek-V4: how many positions each layer's compressed keys stand for, and how many layers choose experts by the token.
static void write_compression(json_t *config, const char *arch, struct gguf_context *out) {
    static const char *const kinds[] = {"compressed_sparse_attention", "heavily_compressed_attention"};
    json_t *given = config_get(config, "compress_ratios"), *rates = config_get(config, "compress_rates");
    const int n = n_layers(config);
    int32_t ratio[MAX_LAYERS] = {0};
    for (int i = 0; i < n; i++) {
        ratio[i] = (int32_t) json_integer_value(json_array_get(given, (size_t) i));
        for (int j = 0; j < 2 && !given; j++)
            if (is(kind_of(config, i), kinds[j])) {
                json_t *rate = json_object_get(rates, kinds[j]);
                ratio[i] = rate ? (int32_t) json_integer_value(rate) : j ? 128 : 4;
            }
    }
    set_ints(out, arch, "attention.compress_ratios", ratio, n);
    json_t *hashed = config_get(config, "num_hash_layers");
    char key[160];
    snprintf(key, sizeof(key), "%s.hash_layer_count", arch);
    gguf_set_val_u32(out, key,
                     (uint32_t) (json_is_integer(hashed)
                                     ? json_integer_value(hashed)
                                     : (json_int_t) layers_leading(config_get(config, "mlp_layer_types"), "hash_moe")));
}

// Gemma 4: full layers may have key heads of their own number, layers without keys a network twice as wide.
static void write_gemma4(json_t *config, const char *arch, struct gguf_context *out) {
    const int n = n_layers(config);
    const int64_t heads = count(config, "num_key_value_heads"), full = count(config, "num_global_key_value_heads"),
                  width = count(config, "intermediate_size"), shared = count(config, "num_kv_shared_layers");
    const int64_t listed = count(config, "global_num_key_value_heads");
    const bool own = listed > 0 || (full > 0 && json_is_true(config_get(config, "attention_k_eq_v"))),
               wide = json_is_true(config_get(config, "use_double_wide_mlp"));
    int32_t kv[MAX_LAYERS], ff[MAX_LAYERS];
    for (int i = 0; i < n; i++) {
        kv[i] = (int32_t) (own && is(kind_of(config, i), "full_attention") ? (listed > 0 ? listed : full) : heads);
        ff[i] = (int32_t) (wide && i >= n - shared ? 2 * width : width);
    }
    if (own) set_ints(out, arch, "attention.head_count_kv", kv, n);
    if (wide) set_ints(out, arch, "feed_forward_length", ff, n);
}

// dots3note: windowed layers have heads of another number. Newer files keep what differs by layer.
static void write_window_geometry(json_t *config, const char *arch, struct gguf_context *out) {
    const int n = n_layers(config);
    int32_t heads[MAX_LAYERS];
    for (int i = 0; i < n; i++)
        heads[i] = (int32_t) count(config, is(kind_of(config, i), "sliding_attention") ? "swa_num_attention_heads"
                                                                                       : "num_attention_heads");
    set_ints(out, arch, "attention.head_count", heads, n);
}

// Deci: what each layer has, and how wide it is.
static void write_blocks(json_t *config, const char *arch, struct gguf_context *out) {
    json_t *blocks = config_get(config, "block_configs"), *heads = config_get(config, "num_key_value_heads_per_layer");
    const int n = n_layers(config);
    int32_t h[MAX_LAYERS], kv[MAX_LAYERS], ff[MAX_LAYERS];
    for (int i = 0; i < n; i++) {
        json_t *b = json_array_get(blocks, (size_t) i), *a = json_object_get(b, "attention"), *f = json_object_get(b, "ffn");
        const int32_t group = (int32_t) json_integer_value(json_object_get(a, "n_heads_in_group"));
        const double wide =
            2 * json_number_value(json_object_get(f, "ffn_mult")) * (double) count(config, "hidden_size") / 3;
        h[i] = json_is_true(json_object_get(a, "no_op")) ? 0 : (int32_t) count(config, "num_attention_heads");
        kv[i] = heads ? (int32_t) json_integer_value(json_array_get(heads, (size_t) i)) : group > 0 ? h[i] / group : 0;
        ff[i] = (int32_t) json_integer_value(json_object_get(f, "intermediate_size"));
        if (!ff[i] && !json_is_true(json_object_get(f, "no_op"))) ff[i] = ((int32_t) wide + 255) / 256 * 256;
    }
    if (blocks) set_ints(out, arch, "attention.head_count", h, n);
    if (blocks || heads) set_ints(out, arch, "attention.head_count_kv", kv, n);
    if (blocks) set_ints(out, arch, "feed_forward_length", ff, n);
}

void layers_prepare(json_t *config) {
    json_t *text = json_object_get(config, "text_config"), *layer_configs = config_get(config, "per_layer_config");
    const int n = n_layers(config);
    for (int i = 0; i < n && layer_configs; i++) {
        const char *prefix = is(kind_of(config, i), "sliding_attention") ? "swa" : "global", *name;
        char at[16];
        snprintf(at, sizeof(at), "%d", i);
        json_t *v;
        json_object_foreach(json_object_get(layer_configs, at), name, v) {
            char full[128];
            snprintf(full, sizeof(full), "%s_%s", prefix, name);
            if (!config_get(config, full)) json_object_set(json_is_object(text) ? text : config, full, v);
        }
    }
}

static void write_recurrent(json_t *config, const struct ckpt_class *cls, struct gguf_context *out) {
    const int n = n_layers(config);
    if (n == 0 || !kind_of(config, 0)) return;
    int32_t rec[MAX_LAYERS], kv[MAX_LAYERS], ff[MAX_LAYERS];
    const int64_t heads =
        count(config, "num_key_value_heads") ? count(config, "num_key_value_heads") : count(config, "num_attention_heads");
    const bool latent = count(config, "kv_lora_rank") > 0;  // one key head for all
    bool alone = false;                                     // layers that are a feed forward and nothing else
    for (int i = 0; i < n; i++) {
        const char *kind = kind_of(config, i);
        rec[i] = recurrent(kind);
        kv[i] = rec[i] || feed_forward(kind) ? 0 : (int32_t) (latent ? 1 : heads);
        ff[i] = feed_forward(kind) ? (int32_t) count(config, is(kind, "moe") ? "moe_intermediate_size" : "intermediate_size")
                                   : 0;
        alone |= ff[i] > 0;
    }
    if (cls->flags & CLASS_KV_LAYERS) set_ints(out, cls->arch, "attention.head_count_kv", kv, n);
    if (cls->flags & CLASS_REC_LAYERS) set_ints(out, cls->arch, "attention.recurrent_layers", rec, n);
    if (alone) set_ints(out, cls->arch, "feed_forward_length", ff, n);
}

void layers_write(json_t *config, const struct ckpt_class *cls, struct gguf_context *out) {
    char key[160];
    snprintf(key, sizeof(key), "%s.block_count", cls->arch);
    if (gguf_find_key(out, key) < 0 && n_layers(config) > 0) gguf_set_val_u32(out, key, (uint32_t) n_layers(config));
    write_windows(config, cls->arch, out);
    if (strcmp(cls->arch, "mimo2") == 0) write_window_heads(config, cls->arch, out);
    if (strcmp(cls->arch, "deepseek4") == 0) write_compression(config, cls->arch, out);
    if (strcmp(cls->arch, "gemma4") == 0) write_gemma4(config, cls->arch, out);
    if (strcmp(cls->arch, "deci") == 0) write_blocks(config, cls->arch, out);
    if (strcmp(cls->arch, "dots3note") == 0) write_window_geometry(config, cls->arch, out);
    if (cls->flags & (CLASS_KV_LAYERS | CLASS_REC_LAYERS)) write_recurrent(config, cls, out);
}
