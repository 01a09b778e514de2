// Models without a vocabulary (test models, vision towers): only the number of tokens is known.
#include "vocab/vocab_int.h"

static enum err load(struct llama_vocab *v, const struct gguf_context *meta) {
    int64_t id = gguf_find_key(meta, "general.architecture");
    if (id < 0 || gguf_get_kv_type(meta, id) != GGUF_TYPE_STRING) return ERR_OK;
    char key[192];
    snprintf(key, sizeof key, "%s.vocab_size", gguf_get_val_str(meta, id));
    id = gguf_find_key(meta, key);
    if (id < 0) return ERR_OK;
    enum gguf_type type = gguf_get_kv_type(meta, id);
    if (type != GGUF_TYPE_UINT32 && type != GGUF_TYPE_INT32) {
        return err_set(ERR_FORMAT, "vocab: key '%s' has type %s; it must be u32", key, gguf_type_name(type));
    }
    int64_t n = type == GGUF_TYPE_UINT32 ? (int64_t) gguf_get_val_u32(meta, id) : (int64_t) gguf_get_val_i32(meta, id);
    if (n < 0 || n > INT32_MAX) return err_set(ERR_FORMAT, "vocab: key '%s' is %lld", key, (long long) n);
    v->n = (int32_t) n;
    return ERR_OK;
}

const struct vocab_kind vocab_kind_none = {
    .type = LLAMA_VOCAB_TYPE_NONE,
    .model = "no_vocab",
    .name = "none",
    .bos = -1,
    .eos = -1,
    .unk = -1,
    .sep = -1,
    .pad = -1,
    .mask = -1,
    .load = load,
};
