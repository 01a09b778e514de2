// A checkpoint as a GGUF file: the keys from config.json, the vocabulary from the tokenizer's files, the tensors by the
// architecture's own table, which names each one's counterpart in the checkpoint (tensors.c). Rows go through memory in pieces (write.c).
#include "convert/find.h"
#include "convert/tokenizer.h"

#include <stdlib.h>
#include <string.h>

// ---- keys ---------------------------------------------------------------------------------------------------------------------

// Whether the checkpoint has what the file will hold under that name: architectures ask before any tensor is taken.
static bool has_tensor(const struct model_build *b, const char *name) {
    const struct convert *k = b->ud;
    int il = -1;
    char base[GGML_MAX_NAME], bias[8] = "";
    if (sscanf(name, "blk.%d.%63s", &il, base) != 2) snprintf(base, sizeof(base), "%s", name);
    char *dot = strrchr(base, '.');
    if (dot && (strcmp(dot, ".weight") == 0 || strcmp(dot, ".bias") == 0)) {
        snprintf(bias, sizeof(bias), "%s", dot);
        *dot = '\0';
    }
    for (const struct arch_tensor *row = k->arch->tensors; row->slot != SLOT_NONE; row++) {
        if (strcmp(row->name ? row->name : slot_info(row->slot)->name, base) != 0) continue;
        struct found f = {0};
        const enum row_part what = strcmp(bias, ".bias") == 0 ? PART_BIAS : PART_WEIGHT;
        const bool there = convert_search(k, row, il, what, &f) == ERR_OK && f.n > 0;
        found_free(&f);
        if (there || (what == PART_WEIGHT && (convert_constant(k, row) || config_has_factors(k->config, base)))) return true;
    }
    return false;
}

static enum llama_ftype file_type(enum ggml_type type) {
    return type == GGML_TYPE_F32    ? LLAMA_FTYPE_ALL_F32
           : type == GGML_TYPE_F16  ? LLAMA_FTYPE_MOSTLY_F16
           : type == GGML_TYPE_BF16 ? LLAMA_FTYPE_MOSTLY_BF16
                                    : LLAMA_FTYPE_MOSTLY_Q8_0;
}

// sentence-transformers keeps the kind of pooling in a folder of its own.
static enum err write_pooling(struct convert *k) {
    json_t *pooling;
    TRY(checkpoint_json(&k->c, "1_Pooling/config.json", false, &pooling));
    if (!pooling) return ERR_OK;
    static const struct {
        const char *key;
        enum llama_pooling_type kind;
    } kinds[] = {{"pooling_mode_mean_tokens", LLAMA_POOLING_TYPE_MEAN},
                 {"pooling_mode_cls_token", LLAMA_POOLING_TYPE_CLS},
                 {"pooling_mode_lasttoken", LLAMA_POOLING_TYPE_LAST}};
    char key[96];
    snprintf(key, sizeof(key), "%s.pooling_type", k->arch->name);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (json_is_true(json_object_get(pooling, kinds[i].key))) gguf_set_val_u32(k->out, key, (uint32_t) kinds[i].kind);
    json_decref(pooling);
    return ERR_OK;
}

// Checkpoints give a norm's epsilon without saying of which kind it is; the architecture knows.
static enum err same_epsilon(struct convert *k) {
    static const char *const both[] = {"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"};
    for (const struct arch_key *key = k->arch->keys; key && key->key; key++)
        for (int i = 0; i < 2; i++) {
            char want[160], other[160];
            snprintf(want, sizeof(want), "%s.%s", k->arch->name, both[i]);
            snprintf(other, sizeof(other), "%s.%s", k->arch->name, both[1 - i]);
            if (key->def != REQ || strcmp(key->key, both[i]) != 0 || gguf_find_key(k->out, want) >= 0) continue;
            const int64_t have = gguf_find_key(k->out, other);
            if (have < 0) return err_set(ERR_FORMAT, "config.json does not say the norms' epsilon");
            gguf_set_val_f32(k->out, want, gguf_get_val_f32(k->out, have));
        }
    return ERR_OK;
}

// config.json. Pocket TTS has none: its own program knows what its tensors don't say. It states no longest text; 8192 positions are
// eleven minutes of speech.
static enum err read_config(struct convert *k) {
    TRY(checkpoint_json(&k->c, "config.json", false, &k->config));
    if (k->config) return ERR_OK;
    char text[256];
    int n = 0;
    const struct ckpt_tensor *up = checkpoint_find(&k->c, "flow_lm.transformer.layers.0.linear1.weight");
    if (!up || up->n_dims != 2) return err_set(ERR_IO, "%s holds no config.json", k->c.dir);
    do {
        snprintf(text, sizeof(text), "flow_lm.transformer.layers.%d.linear1.weight", ++n);
    } while (checkpoint_find(&k->c, text));
    snprintf(text, sizeof(text),
             "{\"architectures\":[\"PocketTTS\"],\"num_hidden_layers\":%d,\"hidden_size\":%lld,\"intermediate_size\":%lld,"
             "\"num_attention_heads\":%lld,\"layer_norm_eps\":1e-5,\"rope_theta\":10000,"
             "\"max_position_embeddings\":8192}",
             n, (long long) up->shape[1], (long long) up->shape[0], (long long) up->shape[1] / 64);
    k->config = json_loads(text, 0, NULL);
    return k->config ? ERR_OK : err_set(ERR_NOMEM, "no memory for the settings of %s", k->c.dir);
}

// The gain of Talkie's head is a tensor of one value, unless it is part of the weights already, which have their full name then.
static enum err take_head_gain(struct convert *k) {
    struct ckpt_tensor *t = checkpoint_find(&k->c, "lm_head_gain.w_g");
    float gain;
    if (!t || ckpt_tensor_count(t) != 1 || checkpoint_find(&k->c, "lm_head.weight")) return ERR_OK;
    TRY(checkpoint_read(&k->c, t, 0, 1, &gain));
    json_object_set_new(k->config, "lm_head_gain", json_real(gain));
    t->used = true;
    return ERR_OK;
}

// ---- draft heads --------------------------------------------------------------------------------------------------------

static bool by_layer(const struct convert *k, int64_t id) {
    const size_t n = strlen(k->arch->name);
    const char *name = gguf_get_key(k->out, id);
    if (strncmp(name, k->arch->name, n) != 0 || name[n] != '.' || gguf_get_kv_type(k->out, id) != GGUF_TYPE_ARRAY)
        return false;
    const enum gguf_type type = gguf_get_arr_type(k->out, id);
    return gguf_get_arr_n(k->out, id) == (size_t) k->n_own && !strstr(name, "sections") &&
           (type == GGUF_TYPE_BOOL || type == GGUF_TYPE_INT32 || type == GGUF_TYPE_FLOAT32);
}

// One more entry like the last for each layer of the head.
static void lengthen(struct convert *k, int64_t id) {
    const enum gguf_type type = gguf_get_arr_type(k->out, id);
    const size_t size = type == GGUF_TYPE_BOOL ? 1 : 4, n = (size_t) k->n_own, all = n + (size_t) k->n_nextn;
    char v[MAX_LAYERS * 4], name[160];
    snprintf(name, sizeof(name), "%s", gguf_get_key(k->out, id));
    memcpy(v, gguf_get_arr_data(k->out, id), n * size);
    for (size_t i = n; i < all; i++) memcpy(v + i * size, v + (n - 1) * size, size);
    gguf_set_arr_data(k->out, name, type, v, all);
}

// Checkpoints may hold draft heads behind the model's layers: the file counts them among the layers.
static enum err find_heads(struct convert *k) {
    char key[96];
    snprintf(key, sizeof(key), "%s.block_count", k->arch->name);
    const int64_t id = gguf_find_key(k->out, key);
    k->n_own = id < 0 ? 0 : (int) gguf_get_val_u32(k->out, id);
    if (k->n_own <= 0 || k->n_own >= MAX_LAYERS || k->arch->flags & (ARCH_ENCODER | ARCH_ENCODER_DECODER)) return ERR_OK;
    snprintf(key, sizeof(key), "%s.hyper_connection.count", k->arch->name);
    if (gguf_find_key(k->out, key) >= 0)
        return ERR_OK;  // heads of models with several streams have no form (arch_can_nextn)
    snprintf(key, sizeof(key), "%s.block_count", k->arch->name);
    for (bool more = true; more && k->n_own + k->n_nextn < MAX_LAYERS;) {
        struct found f = {0};
        const enum err e = convert_search(k, &arch_nextn_tensors[0], k->n_own + k->n_nextn, PART_WEIGHT, &f);
        more = e == ERR_OK && f.n > 0;
        if (more) k->n_nextn++;
        more &= !f.how || f.how->name[0] != '^';  // the only one
        found_free(&f);
        TRY(e);
    }
    if (k->n_nextn == 0) return ERR_OK;
    gguf_set_val_u32(k->out, key, (uint32_t) (k->n_own + k->n_nextn));
    snprintf(key, sizeof(key), "%s.nextn_predict_layers", k->arch->name);
    gguf_set_val_u32(k->out, key, (uint32_t) k->n_nextn);
    for (int64_t i = 0; i < gguf_get_n_kv(k->out); i++)
        if (by_layer(k, i)) {
            lengthen(k, i);
            i = -1;  // a key that is set anew may go to another place
        }
    return ERR_OK;
}

static enum err write_keys(struct convert *k) {
    char *dir = realpath(k->c.dir, NULL);  // "." and "x/" have a name, too
    const char *slash = dir ? strrchr(dir, '/') : NULL;
    gguf_set_val_str(k->out, "general.architecture", k->arch->name);
    gguf_set_val_str(k->out, "general.type", "model");
    gguf_set_val_str(k->out, "general.name", k->params->name ? k->params->name : slash && slash[1] ? slash + 1 : k->c.dir);
    free(dir);
    gguf_set_val_u32(k->out, "general.file_type", (uint32_t) file_type(k->params->type));
    gguf_set_val_u32(k->out, "general.quantization_version", GGML_QNT_VERSION);
    TRY(take_head_gain(k));
    config_write(k->config, k->cls, k->out);
    char key[96];
    snprintf(key, sizeof(key), "%s.attention.causal", k->arch->name);
    if (k->arch->flags & ARCH_ENCODER) gguf_set_val_bool(k->out, key, false);
    TRY(write_pooling(k));
    TRY(same_epsilon(k));
    const struct ckpt_tensor *embd = NULL;
    for (const struct arch_tensor *row = k->arch->tensors; row->slot != SLOT_NONE && !embd; row++)
        if (row->slot == SLOT_token_embd) embd = convert_find(k, row);
    if (!embd || embd->n_dims != 2) return err_set(ERR_FORMAT, "the checkpoint holds no matrix of token embeddings");
    TRY(tokenizer_convert(&k->c, k->config, embd->shape[0], k->out));
    TRY(find_heads(k));
    const struct model_build b = {.arch = k->arch, .meta = k->out, .has_tensor = has_tensor, .ud = k};
    return arch_read_keys(&k->hp, &b, (int) embd->shape[0]);
}

// Weights in forms that only their own programs read.
static enum err refuse_quantized(const struct convert *k) {
    const char *method = json_string_value(config_path(k->config, "quantization_config.quant_method"));
    if (!method || strlen(method) < 3 || !strstr("gptq awq bitsandbytes hqq aqlm eetq quanto torchao", method))
        return ERR_OK;
    return err_set(ERR_UNSUPPORTED, "the weights are quantized by %s; convert the checkpoint they were made from", method);
}

static enum err convert(struct convert *k, const char *checkpoint, const char *path) {
    const enum ggml_type type = k->params->type;
    if (type != GGML_TYPE_F32 && type != GGML_TYPE_F16 && type != GGML_TYPE_BF16 && type != GGML_TYPE_Q8_0)
        return err_set(ERR_INVALID,
                       "a checkpoint is converted to f32, f16, bf16 or q8_0; use lamina quantize for other types");
    TRY(checkpoint_open(&k->c, checkpoint));
    TRY(read_config(k));
    TRY(config_class(k->config, &k->cls));
    TRY(refuse_quantized(k));
    json_t *block = config_path(k->config, "quantization_config.weight_block_size");
    for (size_t i = 0; i < 2; i++) k->c.block[i] = json_integer_value(json_array_get(block, i));
    k->arch = arch_by_name(k->cls->arch);
    if (!k->arch)
        return err_set(ERR_UNSUPPORTED, "the architecture %s of class %s is not known", k->cls->arch, k->cls->name);
    k->out = gguf_init_empty();
    k->ctx =
        ggml_init((struct ggml_init_params){.mem_size = (k->c.n_tensors + 1024) * ggml_tensor_overhead(), .no_alloc = true});
    if (!k->out || !k->ctx) return ERR_NOMEM;
    TRY(write_keys(k));
    TRY(convert_take_layer(k, -1));
    for (int il = 0; il < convert_layers(k); il++) TRY(convert_take_layer(k, il));
    convert_name_the_rest(k);
    return convert_write_file(k, path);
}

struct llama_convert_params llama_convert_default_params(void) {
    return (struct llama_convert_params){.type = GGML_TYPE_F16};
}

int llama_model_convert(const char *checkpoint, const char *path, const struct llama_convert_params *params) {
    const struct llama_convert_params standard = llama_convert_default_params();
    struct convert *k = calloc(1, sizeof(*k));
    if (!k) return err_set(ERR_NOMEM, "no memory to convert %s", checkpoint);
    k->params = params ? params : &standard;
    const enum err e =
        checkpoint && path ? convert(k, checkpoint, path) : err_set(ERR_INVALID, "llama_model_convert: a path is NULL");
    for (int i = 0; i < k->n_pieces; i++) {
        for (int j = 0; j < k->pieces[i].n_segments; j++) free(k->pieces[i].segments[j].view);
        free(k->pieces[i].segments);
        free(k->pieces[i].values);
    }
    free(k->pieces);
    if (k->out) gguf_free(k->out);
    if (k->ctx) ggml_free(k->ctx);
    json_decref(k->config);
    checkpoint_close(&k->c);
    free(k);
    return e;
}
