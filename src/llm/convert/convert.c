// A checkpoint as a GGUF file: the keys from config.json, the vocabulary from the tokenizer's files, the tensors by the
// architecture's own table, which names each one's counterpart in the checkpoint. Data goes through memory one tensor at a time.
#include "base/file.h"
#include "arch/arch.h"
#include "convert/checkpoint.h"
#include "convert/config.h"
#include "convert/tokenizer.h"
#include "llama/ext.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// One tensor to write, and where it comes from.
struct piece {
    char name[GGML_MAX_NAME];
    struct ckpt_tensor **parts;  // one, or one per expert
    int n_parts;
    struct ggml_tensor *t;  // header in the file's order
    bool plus_1, transpose;
    int permute_heads;  // > 0: rows of each head go from halves to pairs
};

struct convert {
    const struct llama_convert_params *params;
    const struct ckpt_class *cls;
    const struct arch *arch;
    struct checkpoint c;
    json_t *config;
    struct gguf_context *out;
    struct ggml_context *ctx;  // headers of the tensors
    struct hparams hp;
    struct piece *pieces;
    int n_pieces, room;
};

// ---- finding tensors -----------------------------------------------------------------------------------------------------

// Checkpoints of a bare model leave out the prefix that those with a head have, and the other way round.
static struct ckpt_tensor *find(const struct convert *k, const char *name) {
    static const char *const prefixes[] = {"",      "model.",          "transformer.",
                                           "bert.", "language_model.", "model.language_model."};
    char full[512];
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        snprintf(full, sizeof(full), "%s%s", prefixes[i], name);
        struct ckpt_tensor *t = checkpoint_find(&k->c, full);
        if (t) return t;
    }
    return strncmp(name, "model.", 6) == 0 ? checkpoint_find(&k->c, name + 6) : NULL;
}

// Name in the checkpoint of a table's row: in layer il, expert x.
static void hf_name(const struct convert *k, const char *base, int il, int x, const char *suffix, char out[512]) {
    char layer[64] = "";
    if (il >= 0) snprintf(layer, sizeof(layer), "%s%d.", k->cls->prefix, il);
    const char *hole = strstr(base, "{}");
    if (hole)
        snprintf(out, 512, "%s%.*s%d%s%s", layer, (int) (hole - base), base, x, hole + 2, suffix);
    else
        snprintf(out, 512, "%s%s%s", layer, base, suffix);
}

// Its name in the GGUF file.
static void gguf_name(const struct arch_tensor *row, int il, const char *suffix, char out[160]) {
    const char *base = row->name ? row->name : slot_info(row->slot)->name;
    if (il >= 0)
        snprintf(out, 160, "%s.%d.%s%s", row->flags & T_DEC ? "dec.blk" : "blk", il, base, suffix);
    else
        snprintf(out, 160, "%s%s", base, suffix);
}

static struct piece *new_piece(struct convert *k) {
    if (k->n_pieces == k->room) {
        const int room = k->room ? 2 * k->room : 256;
        struct piece *grown = realloc(k->pieces, sizeof(*grown) * (size_t) room);
        if (!grown) return NULL;
        k->pieces = grown;
        k->room = room;
    }
    k->pieces[k->n_pieces] = (struct piece){0};
    return &k->pieces[k->n_pieces++];
}

static bool is_matrix(enum role role) {
    return role != ROLE_NORM && role != ROLE_SMALL && role != ROLE_ROUTER && role != ROLE_SMALL_MATRIX;
}

static enum ggml_type out_type(const struct convert *k, enum role role, bool bias, int n_dims, int64_t ne0) {
    if (bias || n_dims < 2 || !is_matrix(role) || role == ROLE_EMBD_OTHER) return GGML_TYPE_F32;
    return ne0 % ggml_blck_size(k->params->type) == 0 ? k->params->type : GGML_TYPE_F16;
}

// Row of the table in layer il (-1: global). *found tells whether the weight is in the checkpoint.
static enum err take_row(struct convert *k, const struct arch_tensor *row, int il, bool bias, bool *found) {
    const struct slot_info *info = slot_info(row->slot);
    const char *base = row->hf ? row->hf : info->hf, *suffix = bias ? ".bias" : row->flags & T_NO_SUFFIX ? "" : ".weight";
    char name[512];
    *found = false;
    if (!base) return ERR_OK;
    hf_name(k, base, il, 0, suffix, name);
    struct ckpt_tensor *first = find(k, name);
    if (!first && !bias && strstr(base, "{}") == NULL) {  // some weights have no suffix in checkpoints
        hf_name(k, base, il, 0, "", name);
        first = find(k, name);
    }
    if (!first) return ERR_OK;
    const bool experts = strstr(base, "{}") != NULL;
    struct piece *p = new_piece(k);
    if (p) p->parts = calloc(experts ? (size_t) k->hp.n_expert : 1, sizeof(*p->parts));
    if (!p || !p->parts) return err_set(ERR_NOMEM, "no memory for the tensors of the checkpoint");
    p->n_parts = experts ? k->hp.n_expert : 1;
    for (int x = 0; x < p->n_parts; x++) {
        if (experts) hf_name(k, base, il, x, suffix, name);
        p->parts[x] = experts ? find(k, name) : first;
        if (!p->parts[x]) return err_set(ERR_FORMAT, "the checkpoint lacks the tensor '%s'", name);
        if (p->parts[x]->n_dims != first->n_dims || memcmp(p->parts[x]->shape, first->shape, sizeof(first->shape)) != 0)
            return err_set(ERR_FORMAT, "the experts' tensors differ in shape: '%s' and '%s'", first->name,
                           p->parts[x]->name);
        p->parts[x]->used = true;
    }
    char gguf[160];
    gguf_name(row, il, suffix, gguf);
    if (strlen(gguf) >= sizeof(p->name))
        return err_set(ERR_FORMAT, "the name '%s' is longer than %zu bytes", gguf, sizeof(p->name) - 1);
    memcpy(p->name, gguf, strlen(gguf) + 1);
    p->plus_1 = (k->cls->flags & CLASS_NORM_PLUS_1) && info->role == ROLE_NORM && !bias;
    p->transpose = (k->cls->flags & CLASS_CONV1D) && il >= 0 && first->n_dims == 2;
    if (k->arch->flags & ARCH_HF_PERMUTED) {
        if (row->slot == SLOT_attn_q) p->permute_heads = k->hp.n_head[il < 0 ? 0 : il];
        if (row->slot == SLOT_attn_k) p->permute_heads = k->hp.n_head_kv[il < 0 ? 0 : il];
    }
    int64_t ne[4] = {1, 1, 1, 1};
    int n_dims = first->n_dims > 0 ? first->n_dims : 1;
    for (int i = 0; i < first->n_dims; i++) ne[i] = first->shape[first->n_dims - 1 - i];
    if (p->transpose) ne[0] = first->shape[0], ne[1] = first->shape[1];
    if (experts) ne[n_dims++] = p->n_parts;
    p->t = ggml_new_tensor(k->ctx, out_type(k, info->role, bias, n_dims, ne[0]), n_dims, ne);
    if (ggml_is_error(p->t)) return ERR_NOMEM;
    ggml_set_name(p->t, p->name);
    *found = true;
    return ERR_OK;
}

static enum err take_layer(struct convert *k, int il) {
    bool have[SLOT_COUNT] = {false};
    for (const struct arch_tensor *row = k->arch->tensors; row->slot != SLOT_NONE; row++) {
        const bool global = row->slot > SLOT_LAYER_END;
        if (global != (il < 0) || (row->flags & T_ENC)) continue;
        double applies = 1;
        bool found = false, bias = false;
        if (row->when) TRY(expr_eval(row->when, &k->hp, il < 0 ? 0 : il, &applies));
        if (applies == 0 || (row->unless != SLOT_NONE && have[row->unless])) continue;
        if (!(row->flags & T_BIAS_ONLY)) TRY(take_row(k, row, il, false, &found));
        if (row->flags & (T_BIAS | T_BIAS_OPT | T_BIAS_ONLY)) TRY(take_row(k, row, il, true, &bias));
        have[row->slot] |= found;
        const bool needed = !(row->flags & (T_OPT | T_BIAS_ONLY)),
                   missing = (needed && !found) || ((row->flags & T_BIAS) && found && !bias);
        if (!missing) continue;
        const struct slot_info *info = slot_info(row->slot);
        return err_set(ERR_FORMAT, "the checkpoint has no tensor for %s (layer %d), which architecture %s needs%s",
                       info->name, il, k->arch->name,
                       row->hf || info->hf ? "" : "; the architecture's table names no counterpart in checkpoints");
    }
    return ERR_OK;
}

// What was not taken is named, so that nothing is lost without a word.
static void name_the_rest(const struct convert *k) {
    static const char *const known[] = {"position_ids", "rotary_emb.inv_freq", "attn.bias", "attn.masked_bias",
                                        "pooler.",      "cls.predictions"};
    for (size_t i = 0; i < k->c.n_tensors; i++) {
        const struct ckpt_tensor *t = &k->c.tensors[i];
        bool silent = t->used;
        for (size_t n = 0; n < sizeof(known) / sizeof(known[0]); n++) silent |= strstr(t->name, known[n]) != NULL;
        if (!silent)
            ggml_log_write(GGML_LOG_LEVEL_WARN,
                           "the tensor '%s' of the checkpoint has no place in architecture %s and is left out\n", t->name,
                           k->arch->name);
    }
}

// ---- writing ----------------------------------------------------------------------------------------------------------------

// Rows of a head: first half and second half become pairs.
static void permute_rows(const float *in, float *out, int64_t n_rows, int64_t n_cols, int n_heads) {
    const int64_t dim = n_rows / n_heads, half = dim / 2;
    for (int64_t h = 0; h < n_heads; h++)
        for (int64_t i = 0; i < dim; i++) {
            const int64_t to = h * dim + (i < half ? 2 * i : 2 * (i - half) + 1);
            memcpy(out + to * n_cols, in + (h * dim + i) * n_cols, (size_t) n_cols * sizeof(float));
        }
}

static void transpose(const float *in, float *out, int64_t n_rows, int64_t n_cols) {
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t c = 0; c < n_cols; c++) out[c * n_rows + r] = in[r * n_cols + c];
}

static enum err write_part(const struct convert *k, const struct piece *p, const struct ckpt_tensor *part, FILE *f,
                           const char *tmp) {
    const int64_t n = ckpt_tensor_count(part), ne0 = p->t->ne[0];
    float *x = malloc((size_t) n * sizeof(float)),
          *y = p->transpose || p->permute_heads ? malloc((size_t) n * sizeof(float)) : NULL;
    char *raw = malloc(ggml_row_size(p->t->type, n));
    enum err e = x && raw && (y || !(p->transpose || p->permute_heads))
                     ? checkpoint_read(&k->c, part, 0, n, x)
                     : err_set(ERR_NOMEM, "no memory for '%s' (%lld values)", p->name, (long long) n);
    if (e == ERR_OK) {
        const int64_t cols = part->n_dims > 1 ? part->shape[part->n_dims - 1] : 1, rows = n / (cols ? cols : 1);
        for (int64_t i = 0; i < n && p->plus_1; i++) x[i] += 1.0f;
        if (p->permute_heads > 0)
            permute_rows(x, y, rows, cols, p->permute_heads);
        else if (p->transpose)
            transpose(x, y, rows, cols);
        const size_t bytes = ggml_quantize_chunk(p->t->type, y ? y : x, raw, 0, n / ne0, ne0, NULL);
        if (bytes != ggml_row_size(p->t->type, n))
            e = err_set(ERR_FAILED, "'%s' cannot be written as %s: %s", p->name, ggml_type_name(p->t->type),
                        ggml_last_error());
        else if (fwrite(raw, 1, bytes, f) != bytes)
            e = err_set(ERR_IO, "writing %s failed: %s", tmp, strerror(errno));
    }
    free(x);
    free(y);
    free(raw);
    return e;
}

static enum err write_all(struct convert *k, FILE *f, const char *tmp) {
    for (int i = 0; i < k->n_pieces; i++) gguf_add_tensor(k->out, k->pieces[i].t);
    if (!gguf_write_to_file_ptr(k->out, f, true)) return ERR_IO;
    const size_t align = gguf_get_alignment(k->out);
    for (int i = 0; i < k->n_pieces; i++) {
        const struct piece *p = &k->pieces[i];
        for (int x = 0; x < p->n_parts; x++) TRY(write_part(k, p, p->parts[x], f, tmp));
        for (size_t pad = (align - ggml_nbytes(p->t) % align) % align; pad; pad--)
            if (fputc(0, f) == EOF) return err_set(ERR_IO, "writing %s failed: %s", tmp, strerror(errno));
        if (k->params->progress_callback &&
            !k->params->progress_callback((float) (i + 1) / (float) k->n_pieces, k->params->progress_callback_user_data))
            return err_set(ERR_ABORTED, "converting was cancelled");
    }
    return ERR_OK;
}

static enum err write_file(struct convert *k, const char *path) {
    char tmp[4200];
    if (snprintf(tmp, sizeof(tmp), "%s.part", path) >= (int) sizeof(tmp))
        return err_set(ERR_INVALID, "the path %s is too long", path);
    FILE *f = fopen(tmp, "wb");
    if (!f) return err_set(ERR_IO, "cannot write %s: %s", tmp, strerror(errno));
    enum err e = write_all(k, f, tmp);
    if (fclose(f) != 0 && e == ERR_OK) e = err_set(ERR_IO, "writing %s failed: %s", tmp, strerror(errno));
    if (e == ERR_OK && file_rename(tmp, path) != 0)
        e = err_set(ERR_IO, "cannot rename %s to %s: %s", tmp, path, strerror(errno));
    if (e != ERR_OK) unlink(tmp);
    return e;
}

// ---- keys ---------------------------------------------------------------------------------------------------------------------

static bool no_tensor(const struct model_build *b, const char *name) {
    (void) b, (void) name;
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

static enum err write_keys(struct convert *k) {
    const char *slash = strrchr(k->c.dir, '/');
    gguf_set_val_str(k->out, "general.architecture", k->arch->name);
    gguf_set_val_str(k->out, "general.type", "model");
    gguf_set_val_str(k->out, "general.name", k->params->name ? k->params->name : slash && slash[1] ? slash + 1 : k->c.dir);
    gguf_set_val_u32(k->out, "general.file_type", (uint32_t) file_type(k->params->type));
    gguf_set_val_u32(k->out, "general.quantization_version", GGML_QNT_VERSION);
    config_write(k->config, k->arch->name, k->out);
    char key[96];
    snprintf(key, sizeof(key), "%s.attention.causal", k->arch->name);
    if (k->arch->flags & ARCH_ENCODER) gguf_set_val_bool(k->out, key, false);
    TRY(write_pooling(k));
    const struct ckpt_tensor *embd = NULL;
    for (const struct arch_tensor *row = k->arch->tensors; row->slot != SLOT_NONE; row++)
        if (row->slot == SLOT_token_embd) {
            char name[512];
            hf_name(k, row->hf ? row->hf : slot_info(row->slot)->hf, -1, 0, ".weight", name);
            embd = find(k, name);
        }
    if (!embd || embd->n_dims != 2) return err_set(ERR_FORMAT, "the checkpoint holds no matrix of token embeddings");
    TRY(tokenizer_convert(&k->c, k->config, embd->shape[0], k->out));
    const struct model_build b = {.arch = k->arch, .meta = k->out, .has_tensor = no_tensor};
    return arch_read_keys(&k->hp, &b, (int) embd->shape[0]);
}

static enum err convert(struct convert *k, const char *checkpoint, const char *path) {
    const enum ggml_type type = k->params->type;
    if (type != GGML_TYPE_F32 && type != GGML_TYPE_F16 && type != GGML_TYPE_BF16 && type != GGML_TYPE_Q8_0)
        return err_set(ERR_INVALID,
                       "a checkpoint is converted to f32, f16, bf16 or q8_0; use lamina quantize for other types");
    TRY(checkpoint_open(&k->c, checkpoint));
    TRY(checkpoint_json(&k->c, "config.json", true, &k->config));
    TRY(config_class(k->config, &k->cls));
    k->arch = arch_by_name(k->cls->arch);
    if (!k->arch)
        return err_set(ERR_UNSUPPORTED, "the architecture %s of class %s is not known", k->cls->arch, k->cls->name);
    k->out = gguf_init_empty();
    k->ctx =
        ggml_init((struct ggml_init_params){.mem_size = (k->c.n_tensors + 1024) * ggml_tensor_overhead(), .no_alloc = true});
    if (!k->out || !k->ctx) return ERR_NOMEM;
    TRY(write_keys(k));
    TRY(take_layer(k, -1));
    for (int il = 0; il < k->hp.n_layer_weights; il++) TRY(take_layer(k, il));
    name_the_rest(k);
    return write_file(k, path);
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
    for (int i = 0; i < k->n_pieces; i++) free(k->pieces[i].parts);
    free(k->pieces);
    if (k->out) gguf_free(k->out);
    if (k->ctx) ggml_free(k->ctx);
    json_decref(k->config);
    checkpoint_close(&k->c);
    free(k);
    return e;
}
