// Reading hyperparameters from a file's keys by the tables.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "arch/arch.h"

// What NOTATION of the fact sheets lists for every architecture. Order matters: defaults refer to earlier fields.
static const struct arch_key common[] = {
    {"context_length", HP_n_ctx_train, REQ, 0},
    {"embedding_length", HP_n_embd, REQ, 0},
    {"block_count", HP_n_block, REQ, 0},
    {"nextn_predict_layers", HP_n_nextn, "0", 0},
    {"attention.head_count", HP_n_head, "0", 0},
    {"attention.head_count_kv", HP_n_head_kv, "H", 0},
    {"feed_forward_length", HP_n_ff, "0", 0},
    {"expert_count", HP_n_expert, "0", 0},
    {"expert_used_count", HP_n_expert_used, "0", KEY_FIRST},
    {"expert_group_count", HP_n_expert_groups, "0", 0},
    {"expert_group_used_count", HP_n_group_used, "0", 0},
    {"attention.key_length_swa", HP_n_embd_head_k_swa, "0", 0},
    {"attention.value_length_swa", HP_n_embd_head_v_swa, "0", 0},
    {"rope.dimension_count_swa", HP_n_rot_swa, "0", 0},
    {"rope.freq_base", HP_rope_base, "10000", 0},
    {"rope.scale_linear", HP_rope_f, "1", KEY_ZERO_ABSENT},
    {"rope.scaling.factor", HP_rope_f, "f", KEY_ZERO_ABSENT},
    {"rope.scaling.original_context_length", HP_rope_orig_ctx, "C", KEY_ZERO_ABSENT},
    {"rope.scaling.attn_factor", HP_rope_attn_factor, "1", 0},
    {"attention.causal", HP_causal, "1", 0},
    {"pooling_type", HP_pooling, "0", 0},
};

static bool is_int(enum gguf_type t) {
    return t == GGUF_TYPE_UINT8 || t == GGUF_TYPE_INT8 || t == GGUF_TYPE_UINT16 || t == GGUF_TYPE_INT16 ||
           t == GGUF_TYPE_UINT32 || t == GGUF_TYPE_INT32 || t == GGUF_TYPE_UINT64 || t == GGUF_TYPE_INT64 ||
           t == GGUF_TYPE_BOOL;
}

static bool is_number(enum gguf_type t) { return is_int(t) || t == GGUF_TYPE_FLOAT32 || t == GGUF_TYPE_FLOAT64; }

static double number_at(enum gguf_type t, const void *data, size_t i) {
    switch (t) {
        case GGUF_TYPE_UINT8: return ((const uint8_t *) data)[i];
        case GGUF_TYPE_BOOL: return ((const uint8_t *) data)[i] != 0;
        case GGUF_TYPE_INT8: return ((const int8_t *) data)[i];
        case GGUF_TYPE_UINT16: return ((const uint16_t *) data)[i];
        case GGUF_TYPE_INT16: return ((const int16_t *) data)[i];
        case GGUF_TYPE_UINT32: return ((const uint32_t *) data)[i];
        case GGUF_TYPE_INT32: return ((const int32_t *) data)[i];
        case GGUF_TYPE_UINT64: return (double) ((const uint64_t *) data)[i];
        case GGUF_TYPE_INT64: return (double) ((const int64_t *) data)[i];
        case GGUF_TYPE_FLOAT32: return (double) ((const float *) data)[i];
        case GGUF_TYPE_FLOAT64: return ((const double *) data)[i];
        default: return 0;
    }
}

static int64_t find(const struct model_build *b, const char *suffix, bool global, char *name, size_t n_name) {
    if (global)
        snprintf(name, n_name, "%s", suffix);
    else
        snprintf(name, n_name, "%s.%s", b->arch->name, suffix);
    return gguf_find_key(b->meta, name);
}

bool arch_has_key(const struct model_build *b, const char *suffix) {
    char name[160];
    return find(b, suffix, false, name, sizeof name) >= 0;
}

const char *arch_key_str(const struct model_build *b, const char *suffix) {
    char name[160];
    const int64_t id = find(b, suffix, false, name, sizeof name);
    return id >= 0 && gguf_get_kv_type(b->meta, id) == GGUF_TYPE_STRING ? gguf_get_val_str(b->meta, id) : NULL;
}

enum err arch_key_ints(const struct model_build *b, const char *suffix, int64_t *out, int n_max, int *n) {
    char name[160];
    const int64_t id = find(b, suffix, false, name, sizeof name);
    *n = -1;
    if (id < 0) return ERR_OK;
    const enum gguf_type t = gguf_get_kv_type(b->meta, id);
    if (t != GGUF_TYPE_ARRAY && is_int(t)) {
        out[0] = (int64_t) number_at(t, gguf_get_val_data(b->meta, id), 0);
        *n = 1;
        return ERR_OK;
    }
    if (t != GGUF_TYPE_ARRAY || !is_int(gguf_get_arr_type(b->meta, id)))
        return err_set(ERR_FORMAT, "key %s is a %s; an integer or an array of integers is wanted", name, gguf_type_name(t));
    const size_t len = gguf_get_arr_n(b->meta, id);
    if (len > (size_t) n_max)
        return err_set(ERR_FORMAT, "key %s has %zu entries; at most %d are possible", name, len, n_max);
    const void *data = gguf_get_arr_data(b->meta, id);
    const enum gguf_type et = gguf_get_arr_type(b->meta, id);
    for (size_t i = 0; i < len; i++) {
        if (et == GGUF_TYPE_INT64 || et == GGUF_TYPE_UINT64)
            out[i] = ((const int64_t *) data)[i];
        else
            out[i] = (int64_t) number_at(et, data, i);
    }
    *n = (int) len;
    return ERR_OK;
}

static enum err set_default(struct hparams *hp, const struct arch_key *k, const char *name, const struct model_build *b) {
    if (!k->def) return err_set(ERR_FORMAT, "key %s is missing; a model of architecture %s needs it", name, b->arch->name);
    const struct hp_info *info = hparams_info(k->field);
    const bool layers = info->kind == HP_INTS || info->kind == HP_FLTS;
    for (int il = 0; il < (layers ? MAX_LAYERS : 1); il++) {
        double v;
        TRY(expr_eval(k->def, hp, il, &v));
        hparams_set(hp, k->field, il, v);
    }
    return ERR_OK;
}

static const char *const scaling_names[] = {"none", "linear", "yarn", "longrope"};

static enum err read_array(struct hparams *hp, const struct arch_key *k, int64_t id, const char *name,
                           const struct model_build *b) {
    const struct hp_info *info = hparams_info(k->field);
    const enum gguf_type et = gguf_get_arr_type(b->meta, id);
    const size_t n = gguf_get_arr_n(b->meta, id);
    if (!is_number(et)) return err_set(ERR_FORMAT, "key %s is an array of %s; numbers are wanted", name, gguf_type_name(et));
    if (info->kind == HP_INT || info->kind == HP_FLT) {
        if (n == 0) return err_set(ERR_FORMAT, "key %s is an empty array", name);
        hparams_set(hp, k->field, 0, number_at(et, gguf_get_arr_data(b->meta, id), 0));
        return ERR_OK;
    }
    const size_t want = k->flags & KEY_ARRAY ? n : (size_t) hp->n_block;
    if (n > MAX_LAYERS || (n < want) || (n != want && !(k->flags & KEY_ARRAY)))
        return err_set(ERR_FORMAT, "key %s has %zu entries; the model has %d layers", name, n, hp->n_block);
    const void *data = gguf_get_arr_data(b->meta, id);
    if (k->flags & KEY_ARRAY) hparams_set(hp, k->field, -1, 0);
    for (size_t i = 0; i < n; i++) hparams_set(hp, k->field, (int) i, number_at(et, data, k->flags & KEY_FIRST ? 0 : i));
    return ERR_OK;
}

static enum err read_key(struct hparams *hp, const struct arch_key *k, const struct model_build *b) {
    char name[160];
    const int64_t id = find(b, k->key, k->flags & KEY_GLOBAL, name, sizeof name);
    if (id < 0) return set_default(hp, k, name, b);
    const enum gguf_type t = gguf_get_kv_type(b->meta, id);
    if (t == GGUF_TYPE_ARRAY) {
        if (k->flags & KEY_COUNT && gguf_get_arr_type(b->meta, id) == GGUF_TYPE_STRING) {
            hparams_set(hp, k->field, -1, (double) gguf_get_arr_n(b->meta, id));
            return ERR_OK;
        }
        return read_array(hp, k, id, name, b);
    }
    if (!is_number(t)) return err_set(ERR_FORMAT, "key %s is a %s; a number is wanted", name, gguf_type_name(t));
    const double v = number_at(t, gguf_get_val_data(b->meta, id), 0);
    if (v == 0 && (k->flags & KEY_ZERO_ABSENT)) return set_default(hp, k, name, b);
    hparams_set(hp, k->field, -1, v);
    return ERR_OK;
}

static enum err read_scaling_type(struct hparams *hp, const struct model_build *b) {
    char name[160];
    const int64_t id = find(b, "rope.scaling.type", false, name, sizeof name);
    hp->rope_scaling = LLAMA_ROPE_SCALING_TYPE_LINEAR;
    if (id < 0) return ERR_OK;
    if (gguf_get_kv_type(b->meta, id) != GGUF_TYPE_STRING) return err_set(ERR_FORMAT, "key %s is not a string", name);
    const char *s = gguf_get_val_str(b->meta, id);
    for (int i = 0; i < 4; i++) {
        if (strcmp(s, scaling_names[i]) != 0) continue;
        hp->rope_scaling = i;
        return ERR_OK;
    }
    return err_set(ERR_FORMAT, "key %s is '%s'; none, linear, yarn and longrope are known", name, s);
}

// Head sizes: keys, else E/H of the first layer; windowed models may have two sizes.
static enum err read_heads(struct hparams *hp, const struct model_build *b) {
    const int by_e = hp->n_head[0] > 0 ? hp->n_embd / hp->n_head[0] : 0;
    char def[16];
    snprintf(def, sizeof def, "%d", by_e);
    const struct arch_key rows[] = {
        {"attention.key_length", HP_n_embd_head_k, def, KEY_FIRST},
        {"attention.value_length", HP_n_embd_head_v, def, KEY_FIRST},
        {"rope.dimension_count", HP_n_rot, "D", KEY_FIRST},
    };
    for (int i = 0; i < 3; i++) TRY(read_key(hp, &rows[i], b));
    return ERR_OK;
}

enum err arch_windows(struct hparams *hp, const struct model_build *b, enum attn_window kind, int n, bool first) {
    if (hp->n_swa <= 0) return ERR_OK;
    int64_t pattern[MAX_LAYERS];
    int n_pattern;
    TRY(arch_key_ints(b, "attention.sliding_window_pattern", pattern, MAX_LAYERS, &n_pattern));
    char name[160];
    const int64_t id = find(b, "attention.sliding_window_pattern", false, name, sizeof name);
    const bool array = id >= 0 && gguf_get_kv_type(b->meta, id) == GGUF_TYPE_ARRAY;
    if (array && n_pattern != hp->n_block)
        return err_set(ERR_FORMAT, "key %s has %d entries; the model has %d layers", name, n_pattern, hp->n_block);
    if (!array && n_pattern == 1) n = (int) (pattern[0] > MAX_LAYERS ? MAX_LAYERS : pattern[0]);
    hp->swa_kind = (int) kind;
    hp->swa_period = n;
    for (int i = 0; i < hp->n_block; i++) {
        if (array)
            hp->is_swa[i] = pattern[i] != 0;
        else if (n <= 0)
            hp->is_swa[i] = 1;
        else
            hp->is_swa[i] = first ? i % n != 0 : i % n < n - 1;
    }
    return ERR_OK;
}

enum err arch_share_kv(struct hparams *hp, const struct model_build *b, int n) {
    if (n >= hp->n_layer) return ERR_OK;
    TRY(arch_require(n >= 2 && hp->is_swa[n - 2] && !hp->is_swa[n - 1], b,
                     "the last layers with keys of their own must be a windowed and a full one"));
    hp->n_cache = n;
    for (int i = 0; i < hp->n_layer; i++) {
        const int own = i < n ? i : hp->is_swa[i] ? n - 2 : n - 1;
        if (i < n) hp->cache_layer[i] = i;
        hp->kv_cache[i] = own;
        TRY(arch_require(hp->n_head_kv[i] == hp->n_head_kv[own], b, "layers that share keys must have as many key heads"));
    }
    return ERR_OK;
}

void arch_recurrent_by_kv(struct hparams *hp) {
    for (int i = 0; i < hp->n_block; i++) hp->is_recr[i] = hp->n_head_kv[i] == 0;
}

enum err arch_kda(struct hparams *hp, const struct model_build *b) {
    arch_recurrent_by_kv(hp);
    hparams_set(hp, HP_n_head, -1, hp->n_head[0]);
    TRY(arch_require(hp->n_head[0] > 0 && hp->kda_head > 0 && hp->ssm_conv > 0, b,
                     "its linear attention has no heads or no convolution"));
    for (int i = 0; i < hp->n_block; i++)
        TRY(arch_require(hp->n_head_kv[i] <= 1, b, "the absorbed form of latent attention has one key head"));
    return arch_require(hp->n_head_k_mla >= hp->n_rot[0], b,
                        "a head of the keys must be at least as large as its rotary part");
}

enum err arch_recurrent_by_key(struct hparams *hp, const struct model_build *b, int n) {
    int64_t rec[MAX_LAYERS];
    int n_rec;
    TRY(arch_key_ints(b, "attention.recurrent_layers", rec, MAX_LAYERS, &n_rec));
    if (n_rec > 1 && n_rec != hp->n_block)
        return err_set(ERR_FORMAT, "key %s.attention.recurrent_layers has %d entries; the model has %d layers",
                       b->arch->name, n_rec, hp->n_block);
    int64_t every[1] = {n};
    int n_every;
    TRY(arch_key_ints(b, "full_attention_interval", every, 1, &n_every));
    for (int i = 0; i < hp->n_block; i++) {
        if (n_rec > 0)
            hp->is_recr[i] = rec[n_rec == 1 ? 0 : i] != 0;
        else
            hp->is_recr[i] = every[0] > 0 ? (i + 1) % every[0] != 0 : 0;
    }
    return ERR_OK;
}

enum err arch_require(bool ok, const struct model_build *b, const char *what) {
    return ok ? ERR_OK : err_set(ERR_FORMAT, "this %s model can't be: %s", b->arch->name, what);
}

enum err arch_whole_rotary(const struct hparams *hp, const struct model_build *b) {
    if (hp->n_rot[0] == hp->n_embd_head_k[0] && hp->n_head[0] > 0) return ERR_OK;
    return err_set(ERR_FORMAT,
                   "this %s model can't be: %d rotary dimensions (rope.dimension_count) are not the whole of a head of %d "
                   "(attention.key_length, or embedding_length %d over attention.head_count %d)",
                   b->arch->name, hp->n_rot[0], hp->n_embd_head_k[0], hp->n_embd, hp->n_head[0]);
}

// What no key may say, before anything is made of it.
static enum err check_signs(const struct hparams *hp, const struct model_build *b) {
    static const struct {
        enum hp_field field;
        const char *key;
        int least, most;
    } counts[] = {
        {HP_n_ctx_train, "context_length", 1, INT32_MAX}, {HP_n_embd, "embedding_length", 1, 1 << 20},
        {HP_n_head, "attention.head_count", 0, 1 << 16},  {HP_n_head_kv, "attention.head_count_kv", 0, 1 << 16},
        {HP_n_ff, "feed_forward_length", 0, INT32_MAX},   {HP_n_expert, "expert_count", 0, 1 << 14},
    };
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        const enum hp_kind kind = hparams_info(counts[k].field)->kind;
        for (int i = 0; i < (kind == HP_INTS ? hp->n_block : 1); i++) {
            const double v = hparams_get(hp, counts[k].field, i);
            if (v < counts[k].least || v > counts[k].most)
                return err_set(ERR_FORMAT, "key %s.%s is %.0f; %d to %d are possible", b->arch->name, counts[k].key, v,
                               counts[k].least, counts[k].most);
        }
    }
    return ERR_OK;
}

static enum err check(const struct hparams *hp, const struct model_build *b) {
    TRY(check_signs(hp, b));
    if (hp->n_block <= 0 || hp->n_block > MAX_LAYERS)
        return err_set(ERR_FORMAT, "block_count is %d; models of 1 to %d layers are possible", hp->n_block, MAX_LAYERS);
    for (int i = 0; i < hp->n_block; i++) {
        const int h = hp->n_head[i], k = hp->n_head_kv[i];
        if (h < 0 || k < 0 || h > 1 << 16 || k > 1 << 16)
            return err_set(ERR_FORMAT, "layer %d has %d heads and %d key heads", i, h, k);
        if (hp->n_ff[i] < 0 || hp->n_embd_head_k[i] < 0 || hp->n_embd_head_v[i] < 0 || hp->n_embd_head_k[i] > 1 << 16 ||
            hp->n_embd_head_v[i] > 1 << 16)
            return err_set(ERR_FORMAT, "layer %d has a head size of %d and %d", i, hp->n_embd_head_k[i],
                           hp->n_embd_head_v[i]);
        if (k > 0 && h % k != 0) return err_set(ERR_FORMAT, "layer %d: %d heads don't share %d key heads evenly", i, h, k);
        if (hp->n_rot[i] < 0 || hp->n_rot[i] % 2 || hp->n_rot[i] > 1 << 16)
            return err_set(ERR_FORMAT, "layer %d: %d rotary dimensions; an even number is needed", i, hp->n_rot[i]);
    }
    if (hp->n_expert < 0 || hp->n_expert > 1 << 14) return err_set(ERR_FORMAT, "expert_count is %d", hp->n_expert);
    int most_used = 0;
    for (int i = 0; i < hp->n_block && hp->n_expert > 0; i++) {
        if (hp->n_expert_used[i] < 0 || hp->n_expert_used[i] > hp->n_expert)
            return err_set(ERR_FORMAT, "%d of %d experts are to be used in layer %d", hp->n_expert_used[i], hp->n_expert, i);
        if (hp->n_expert_used[i] > most_used) most_used = hp->n_expert_used[i];
    }
    if (hp->n_expert > 0 && most_used == 0) return err_set(ERR_FORMAT, "none of %d experts are to be used", hp->n_expert);
    if (hp->n_expert_groups > 1 &&
        (hp->n_expert % hp->n_expert_groups || hp->n_group_used < 1 || hp->n_group_used > hp->n_expert_groups))
        return err_set(ERR_FORMAT, "%d experts in %d groups of which %d are used", hp->n_expert, hp->n_expert_groups,
                       hp->n_group_used);
    if (!(hp->eps >= 0) || !(hp->rope_base > 0) || !(hp->rope_f > 0))
        return err_set(ERR_FORMAT, "a norm epsilon of %g, a rope base of %g or a rope factor of %g is impossible",
                       (double) hp->eps, (double) hp->rope_base, (double) hp->rope_f);
    (void) b;
    return ERR_OK;
}

static enum err width(const char *expr, const struct hparams *hp, int il, int32_t *out) {
    double v = 0;
    if (expr) TRY(expr_eval(expr, hp, il, &v));
    if (v < 0 || v > 1 << 28) return err_set(ERR_FORMAT, "layer %d needs %g values of cache or state", il, v);
    *out = (int32_t) v;
    return ERR_OK;
}

// Caches and states: one cache per layer that attends, unless setup said otherwise.
static enum err plan_memory(struct hparams *hp, const struct arch *a) {
    const bool given = hp->n_cache > 0;
    if (!given) {
        hp->n_cache = hp->n_layer;
        for (int i = 0; i < hp->n_layer; i++) {
            hp->cache_layer[i] = i;
            hp->kv_cache[i] = i;
        }
    }
    for (int c = 0; c < hp->n_cache; c++) {
        const int il = hp->cache_layer[c];
        // a layer with recurrent state has no cache, unless it has both mixers (then the architecture gives its widths)
        const bool none = hp->is_recr[il] && !a->cache_k;
        TRY(width(none ? NULL : a->cache_k ? a->cache_k : "K*D", hp, il, &hp->cache_k[c]));
        TRY(width(none ? NULL : a->cache_v ? a->cache_v : "K*Dv", hp, il, &hp->cache_v[c]));
        TRY(width(none ? NULL : a->cache_x, hp, il, &hp->cache_x[c]));
    }
    // a draft head's cache, which its own contexts have
    const int n_nextn = arch_can_nextn(a, hp) ? hp->n_nextn : 0;
    for (int i = hp->n_layer; i < hp->n_layer + n_nextn; i++) {
        const int c = hp->n_cache + i - hp->n_layer;
        hp->kv_cache[i] = c;
        hp->cache_layer[c] = i;
        TRY(width(a->cache_k ? a->cache_k : "K*D", hp, i, &hp->cache_k[c]));
        TRY(width(a->cache_v ? a->cache_v : "K*Dv", hp, i, &hp->cache_v[c]));
        TRY(width(a->cache_x, hp, i, &hp->cache_x[c]));
    }
    for (int i = 0; i < hp->n_layer; i++) {
        if (!hp->is_recr[i]) continue;
        TRY(width(a->state_r, hp, i, &hp->state_r[i]));
        TRY(width(a->state_s, hp, i, &hp->state_s[i]));
    }
    return ERR_OK;
}

static bool lacks_required(const struct arch_key *keys, size_t n, const struct model_build *b) {
    char name[160];
    for (size_t i = 0; i < n && keys[i].key; i++) {
        if (!keys[i].def && find(b, keys[i].key, keys[i].flags & KEY_GLOBAL, name, sizeof name) < 0) return true;
    }
    return false;
}

enum err arch_read_keys(struct hparams *hp, const struct model_build *b, int n_vocab) {
    memset(hp, 0, sizeof *hp);
    hp->n_vocab = n_vocab;
    if (b->vocab_only && (lacks_required(common, sizeof common / sizeof *common, b) ||
                          (b->arch->keys && lacks_required(b->arch->keys, SIZE_MAX, b)))) {
        hp->rope_f = 1;
        return ERR_OK;
    }
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
        TRY(read_key(hp, &common[i], b));
        if (common[i].field == HP_n_block && (hp->n_block <= 0 || hp->n_block > MAX_LAYERS))
            return err_set(ERR_FORMAT, "key %s.block_count is %d; models of 1 to %d layers are possible", b->arch->name,
                           hp->n_block, MAX_LAYERS);
    }
    TRY(check_signs(hp, b));
    TRY(read_scaling_type(hp, b));
    TRY(read_heads(hp, b));
    if (hp->pooling == -1 || hp->pooling > LLAMA_POOLING_TYPE_RANK) hp->pooling = LLAMA_POOLING_TYPE_NONE;
    hp->rope_f_swa = hp->rope_f;
    hp->rope_base_swa = hp->rope_base;
    hp->rope_beta_fast = 32;
    hp->rope_beta_slow = 1;
    hp->rope_ext = -1;
    hp->n_layer = hp->n_block - (hp->n_nextn > 0 && hp->n_nextn < hp->n_block ? hp->n_nextn : 0);
    hp->n_layer_weights = hp->n_layer;
    hp->n_embd_inp = hp->n_embd;
    hp->n_embd_out = hp->n_embd;
    hp->n_cls_out = 1;
    hparams_set(hp, HP_rope_layers, -1, 1);
    hp->rope_mode = b->arch->rope;
    for (const struct arch_key *k = b->arch->keys; k && k->key; k++) TRY(read_key(hp, k, b));
    if (b->arch->setup) TRY(b->arch->setup(hp, b));
    // draft heads attend, whatever the pattern of the layers before them, and select on their own
    for (int i = hp->n_layer; i < hp->n_block && arch_can_nextn(b->arch, hp); i++) {
        hp->is_recr[i] = 0;
        hp->idx_full[i] = 1;
    }
    hp->rank_last = hp->causal != 0;
    if (b->arch->flags & (ARCH_ENCODER | ARCH_DIFFUSION)) hp->causal = 0;
    hp->mrope = hp->rope_mode == LLAMA_ROPE_TYPE_MROPE || hp->rope_mode == LLAMA_ROPE_TYPE_IMROPE;
    // One head size for all layers is that of layer 0; windowed ones differ only where the architecture says so.
    const bool dims = b->arch->flags & ARCH_SWA_DIMS;
    for (int i = 0; i < hp->n_block; i++) {
        const bool swa = dims ? hp->is_swa[i] : hp->is_swa[0];
        if (!swa) continue;
        if (hp->n_embd_head_k_swa) hp->n_embd_head_k[i] = hp->n_embd_head_k_swa;
        if (hp->n_embd_head_v_swa) hp->n_embd_head_v[i] = hp->n_embd_head_v_swa;
    }
    for (int i = 0; i < hp->n_block && hp->n_rot_swa; i++)
        if (b->arch->flags & (ARCH_SWA_DIMS | ARCH_SWA_ROT) ? hp->is_swa[i] : hp->is_swa[0]) hp->n_rot[i] = hp->n_rot_swa;
    TRY(check(hp, b));
    return plan_memory(hp, b->arch);
}
