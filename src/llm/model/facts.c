// What a program may ask about a model. A model that could not be loaded (NULL) has none of it: 0, false, NULL, or -1 for texts.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "model/model.h"

const struct llama_vocab *llama_model_get_vocab(const struct llama_model *m) { return m ? m->vocab : NULL; }
enum llama_rope_type llama_model_rope_type(const struct llama_model *m) {
    return m ? (enum llama_rope_type) m->hp.rope_mode : LLAMA_ROPE_TYPE_NONE;
}
int32_t llama_model_n_ctx_train(const struct llama_model *m) { return m ? m->hp.n_ctx_train : 0; }
int32_t llama_model_n_embd(const struct llama_model *m) { return m ? m->hp.n_embd : 0; }
int32_t llama_model_n_embd_inp(const struct llama_model *m) { return m ? m->hp.n_embd_inp : 0; }
int32_t llama_model_n_embd_out(const struct llama_model *m) {
    return m ? (m->hp.n_embd_out > 0 ? m->hp.n_embd_out : m->hp.n_embd) : 0;
}
int32_t llama_model_n_layer(const struct llama_model *m) { return m ? m->hp.n_block - m->hp.n_nextn : 0; }
int32_t llama_model_n_layer_nextn(const struct llama_model *m) { return m ? m->hp.n_nextn : 0; }
int32_t llama_model_n_head(const struct llama_model *m) { return m ? m->hp.n_head[0] : 0; }
int32_t llama_model_n_head_kv(const struct llama_model *m) { return m ? m->hp.n_head_kv[0] : 0; }
int32_t llama_model_n_swa(const struct llama_model *m) { return m ? m->hp.n_swa : 0; }
float llama_model_rope_freq_scale_train(const struct llama_model *m) { return m ? 1.0f / m->hp.rope_f : 0; }
uint32_t llama_model_n_cls_out(const struct llama_model *m) { return m ? (uint32_t) m->hp.n_cls_out : 0; }
enum llama_ftype llama_model_ftype(const struct llama_model *m) { return m ? m->ftype : LLAMA_FTYPE_GUESSED; }
uint64_t llama_model_size(const struct llama_model *m) { return m ? m->n_bytes : 0; }
uint64_t llama_model_n_params(const struct llama_model *m) { return m ? m->n_params : 0; }
int32_t llama_n_ctx_train(const struct llama_model *m) { return llama_model_n_ctx_train(m); }
int32_t llama_n_embd(const struct llama_model *m) { return llama_model_n_embd(m); }
int32_t llama_n_layer(const struct llama_model *m) { return llama_model_n_layer(m); }
int32_t llama_n_head(const struct llama_model *m) { return llama_model_n_head(m); }

bool llama_model_has_encoder(const struct llama_model *m) {
    return m && (m->arch->flags & (ARCH_ENCODER_DECODER | ARCH_ENCODER));
}
bool llama_model_has_decoder(const struct llama_model *m) { return m && !(m->arch->flags & ARCH_ENCODER); }
llama_token llama_model_decoder_start_token(const struct llama_model *m) {
    return m && m->arch->flags & ARCH_ENCODER_DECODER ? m->hp.dec_start_token : LLAMA_TOKEN_NULL;
}
bool llama_model_is_diffusion(const struct llama_model *m) { return m && (m->arch->flags & ARCH_DIFFUSION); }
bool llama_model_is_hybrid(const struct llama_model *m) { return m && (m->arch->flags & ARCH_HYBRID); }

bool llama_model_is_recurrent(const struct llama_model *m) {
    if (!m || m->arch->flags & ARCH_HYBRID) return false;
    for (int i = 0; i < m->hp.n_layer; i++)
        if (!m->hp.is_recr[i]) return false;
    return m->hp.n_layer > 0;
}

const char *llama_model_cls_label(const struct llama_model *m, uint32_t i) {
    if (!m) return NULL;
    char key[128];
    snprintf(key, sizeof key, "%s.classifier.output_labels", m->arch->name);
    const int64_t id = gguf_find_key(m->meta, key);
    if (id < 0 || gguf_get_kv_type(m->meta, id) != GGUF_TYPE_ARRAY || gguf_get_arr_type(m->meta, id) != GGUF_TYPE_STRING)
        return NULL;
    return i < gguf_get_arr_n(m->meta, id) ? gguf_get_arr_str(m->meta, id, i) : NULL;
}

const char *llama_model_chat_template(const struct llama_model *m, const char *name) {
    if (!m) return NULL;
    char key[256];
    if (name && *name)
        snprintf(key, sizeof key, "tokenizer.chat_template.%s", name);
    else
        snprintf(key, sizeof key, "tokenizer.chat_template");
    const int64_t id = gguf_find_key(m->meta, key);
    return id >= 0 && gguf_get_kv_type(m->meta, id) == GGUF_TYPE_STRING ? gguf_get_val_str(m->meta, id) : NULL;
}

// ---- keys as text -------------------------------------------------------------------------------------------------------

static bool put_value(struct str *s, const struct gguf_context *g, int64_t id) {
    const enum gguf_type t = gguf_get_kv_type(g, id);
    if (t == GGUF_TYPE_ARRAY) return false;
    if (t == GGUF_TYPE_STRING) {
        str_puts(s, gguf_get_val_str(g, id));
        return true;
    }
    const void *v = gguf_get_val_data(g, id);
    switch (t) {
        case GGUF_TYPE_UINT8: str_printf(s, "%u", *(const uint8_t *) v); break;
        case GGUF_TYPE_INT8: str_printf(s, "%d", *(const int8_t *) v); break;
        case GGUF_TYPE_UINT16: str_printf(s, "%u", *(const uint16_t *) v); break;
        case GGUF_TYPE_INT16: str_printf(s, "%d", *(const int16_t *) v); break;
        case GGUF_TYPE_UINT32: str_printf(s, "%u", *(const uint32_t *) v); break;
        case GGUF_TYPE_INT32: str_printf(s, "%d", *(const int32_t *) v); break;
        case GGUF_TYPE_UINT64: str_printf(s, "%" PRIu64, *(const uint64_t *) v); break;
        case GGUF_TYPE_INT64: str_printf(s, "%" PRId64, *(const int64_t *) v); break;
        case GGUF_TYPE_FLOAT32: str_printf(s, "%f", (double) *(const float *) v); break;
        case GGUF_TYPE_FLOAT64: str_printf(s, "%f", *(const double *) v); break;
        case GGUF_TYPE_BOOL: str_puts(s, *(const uint8_t *) v ? "true" : "false"); break;
        default: return false;
    }
    return true;
}

// As snprintf: the length it has in full, whatever fits is written. Without a buffer nothing is written, whatever its size is said to be.
static int32_t give(char *buf, size_t buf_size, const char *text) { return snprintf(buf, buf ? buf_size : 0, "%s", text); }

static int32_t none(char *buf, size_t buf_size) {
    if (buf && buf_size) buf[0] = 0;
    return -1;
}

int32_t meta_count(const struct gguf_context *g) {
    int32_t n = 0;
    for (int64_t id = 0; g && id < gguf_get_n_kv(g); id++) n += gguf_get_kv_type(g, id) != GGUF_TYPE_ARRAY;
    return n;
}

// The key of that number among those that aren't arrays, -1: none.
static int64_t nth(const struct gguf_context *g, int32_t i) {
    for (int64_t id = 0; g && i >= 0 && id < gguf_get_n_kv(g); id++)
        if (gguf_get_kv_type(g, id) != GGUF_TYPE_ARRAY && i-- == 0) return id;
    return -1;
}

static int32_t value_of(const struct gguf_context *g, int64_t id, char *buf, size_t buf_size) {
    struct str s = {0};
    const bool is_text = id >= 0 && put_value(&s, g, id);
    const int32_t n = is_text && str_ok(&s) ? give(buf, buf_size, str_text(&s)) : none(buf, buf_size);
    str_free(&s);
    return n;
}

int32_t meta_value(const struct gguf_context *g, const char *key, char *buf, size_t buf_size) {
    return value_of(g, g && key ? gguf_find_key(g, key) : -1, buf, buf_size);
}

int32_t meta_value_at(const struct gguf_context *g, int32_t i, char *buf, size_t buf_size) {
    return value_of(g, nth(g, i), buf, buf_size);
}

int32_t meta_key_at(const struct gguf_context *g, int32_t i, char *buf, size_t buf_size) {
    const int64_t id = nth(g, i);
    return id < 0 ? none(buf, buf_size) : give(buf, buf_size, gguf_get_key(g, id));
}

int32_t llama_model_meta_val_str(const struct llama_model *m, const char *key, char *buf, size_t buf_size) {
    return meta_value(m ? m->meta : NULL, key, buf, buf_size);
}

int32_t llama_model_meta_count(const struct llama_model *m) { return meta_count(m ? m->meta : NULL); }

int32_t llama_model_meta_key_by_index(const struct llama_model *m, int32_t i, char *buf, size_t buf_size) {
    return meta_key_at(m ? m->meta : NULL, i, buf, buf_size);
}

int32_t llama_model_meta_val_str_by_index(const struct llama_model *m, int32_t i, char *buf, size_t buf_size) {
    return meta_value_at(m ? m->meta : NULL, i, buf, buf_size);
}

static const char *const meta_keys[] = {
    "general.sampling.sequence", "general.sampling.top_k",           "general.sampling.top_p",
    "general.sampling.min_p",    "general.sampling.xtc_probability", "general.sampling.xtc_threshold",
    "general.sampling.temp",     "general.sampling.penalty_last_n",  "general.sampling.penalty_repeat",
    "general.sampling.mirostat", "general.sampling.mirostat_tau",    "general.sampling.mirostat_eta",
};

const char *llama_model_meta_key_str(enum llama_model_meta_key key) {
    return (unsigned) key < sizeof meta_keys / sizeof *meta_keys ? meta_keys[key] : NULL;
}

int32_t llama_model_desc(const struct llama_model *m, char *buf, size_t buf_size) {
    if (!m) return none(buf, buf_size);
    const double n = (double) m->n_params;
    char label[64] = "";
    const int64_t id = gguf_find_key(m->meta, "general.size_label");
    if (id >= 0 && gguf_get_kv_type(m->meta, id) == GGUF_TYPE_STRING)
        snprintf(label, sizeof label, "%s", gguf_get_val_str(m->meta, id));
    else if (n >= 1e9)
        snprintf(label, sizeof label, "%.1fB", n / 1e9);
    else
        snprintf(label, sizeof label, "%.1fM", n / 1e6);
    return snprintf(buf, buf ? buf_size : 0, "%s %s %s", m->arch->name, label, llama_ftype_name(m->ftype));
}
