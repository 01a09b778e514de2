// Which tensor of the checkpoint each row of the architecture's table stands for.
#include "convert/convert_int.h"
#include "ggml/ext.h"

#include <stdlib.h>
#include <string.h>

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

// The row's names: the class's own, the architecture's, the slot's. NULL: checkpoints have none.
static const char *names_of(const struct convert *k, const struct arch_tensor *row) {
    for (const struct ckpt_name *n = k->cls->names; n->slot != SLOT_NONE; n++)
        if (n->slot == row->slot) return n->name;
    return row->hf ? row->hf : slot_info(row->slot)->hf;
}

bool convert_by_expert(const struct convert *k, const struct arch_tensor *row) {
    const char *names = names_of(k, row);
    return names && strstr(names, "{}");
}

// base, of length n, in layer il with the expert's number in its hole.
static void hf_name(const struct convert *k, const char *base, int n, int il, int x, const char *suffix, char out[512]) {
    char layer[64] = "", part[256];
    if (il >= 0) snprintf(layer, sizeof(layer), "%s%d.", k->cls->prefix, il);
    snprintf(part, sizeof(part), "%.*s", n, base);
    const char *hole = strstr(part, "{}");
    if (hole)
        snprintf(out, 512, "%s%.*s%d%s%s", layer, (int) (hole - part), part, x, hole + 2, suffix);
    else
        snprintf(out, 512, "%s%s%s", layer, part, suffix);
}

struct ckpt_tensor *convert_find(const struct convert *k, const struct arch_tensor *row, int il, int x, bool bias) {
    const char *suffix = bias ? ".bias" : row->flags & T_NO_SUFFIX ? "" : ".weight";
    for (const char *base = names_of(k, row); base;) {
        const int n = (int) strcspn(base, "|");
        char name[512];
        hf_name(k, base, n, il, x, suffix, name);
        struct ckpt_tensor *t = find(k, name);
        if (!t && (!bias || row->flags & T_BIAS_ONLY)) {  // some have no suffix in checkpoints
            hf_name(k, base, n, il, x, "", name);
            t = find(k, name);
        }
        if (t) return t;
        base = base[n] ? base + n + 1 : NULL;
    }
    return NULL;
}

// Its name in the GGUF file.
static enum err gguf_name(const struct arch_tensor *row, int il, bool bias, char out[GGML_MAX_NAME]) {
    const char *base = row->name ? row->name : slot_info(row->slot)->name, *suffix = bias                       ? ".bias"
                                                                                     : row->flags & T_NO_SUFFIX ? ""
                                                                                                                : ".weight";
    const int n = il >= 0
                      ? snprintf(out, GGML_MAX_NAME, "%s.%d.%s%s", row->flags & T_DEC ? "dec.blk" : "blk", il, base, suffix)
                      : snprintf(out, GGML_MAX_NAME, "%s%s", base, suffix);
    return n < GGML_MAX_NAME ? ERR_OK : err_set(ERR_FORMAT, "the name %s%s is too long for a GGUF file", base, suffix);
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

// What happens to the tensor's values and rows on the way.
static void set_changes(const struct convert *k, struct piece *p, const struct arch_tensor *row, int il, bool bias) {
    const struct hparams *hp = &k->hp;
    const int i = il < 0 ? 0 : il;
    p->plus_1 = (k->cls->flags & CLASS_NORM_PLUS_1) && slot_info(row->slot)->role == ROLE_NORM && !bias;
    p->transpose = (k->cls->flags & CLASS_CONV1D) && il >= 0 && p->parts[0]->n_dims == 2;
    p->minus_exp = row->slot == SLOT_ssm_a;
    p->n_head = row->slot == SLOT_attn_k ? hp->n_head_kv[i] : hp->n_head[i];
    p->n_head_kv = hp->n_head_kv[i];
    p->n_dim = hp->n_embd_head_k[i];
    p->n_rot = hp->n_rot[i];
    p->fused = row->slot == SLOT_attn_qkv;
    p->pairs = (k->arch->flags & ARCH_HF_PERMUTED) && (p->fused || row->slot == SLOT_attn_q || row->slot == SLOT_attn_k);
    p->groups = p->fused && (k->cls->flags & CLASS_QKV_GROUPS);
}

// Row of the table in layer il (-1: global). *found tells whether the weight is in the checkpoint.
static enum err take_row(struct convert *k, const struct arch_tensor *row, int il, bool bias, bool *found) {
    struct ckpt_tensor *first = convert_find(k, row, il, 0, bias);
    *found = first != NULL;
    if (!first) return ERR_OK;
    const bool experts = convert_by_expert(k, row);
    struct piece *p = new_piece(k);
    if (p) p->parts = calloc(experts ? (size_t) k->hp.n_expert + 1 : 1, sizeof(*p->parts));
    if (!p || !p->parts) return err_set(ERR_NOMEM, "no memory for the tensors of the checkpoint");
    p->n_parts = experts ? k->hp.n_expert : 1;
    for (int x = 0; x < p->n_parts; x++) {
        p->parts[x] = experts ? convert_find(k, row, il, x, bias) : first;
        if (!p->parts[x]) return err_set(ERR_FORMAT, "the checkpoint has '%s', but none for expert %d", first->name, x);
        if (p->parts[x]->n_dims != first->n_dims || memcmp(p->parts[x]->shape, first->shape, sizeof(first->shape)) != 0)
            return err_set(ERR_FORMAT, "the experts' tensors differ in shape: '%s' and '%s'", first->name,
                           p->parts[x]->name);
        p->parts[x]->used = true;
    }
    TRY(gguf_name(row, il, bias, p->name));
    if (p->n_parts > 0) set_changes(k, p, row, il, bias);
    int64_t ne[4] = {1, 1, 1, 1};
    int n_dims = 0;
    for (int i = first->n_dims - 1; i >= 0;
         i--)  // convolutions of one channel each keep a 1 in the middle, which files leave out
        if (i == first->n_dims - 1 || i == 0 || first->shape[i] != 1) ne[n_dims++] = first->shape[i];
    if (n_dims == 0) n_dims = 1;
    if (p->transpose) ne[0] = first->shape[0], ne[1] = first->shape[1];
    if (experts && n_dims == 4) return err_set(ERR_FORMAT, "'%s' has 4 dimensions", first->name);
    if (experts) ne[n_dims++] = p->n_parts;
    const enum ggml_type type = out_type(k, slot_info(row->slot)->role, bias, n_dims, ne[0]);
    p->t = ggml_new_tensor(k->ctx, type, n_dims, ne);
    if (ggml_is_error(p->t)) return ERR_NOMEM;
    ggml_set_name(p->t, p->name);
    return ERR_OK;
}

// Frequency factors, which checkpoints keep in config.json.
static enum err take_factors(struct convert *k, const struct arch_tensor *row) {
    const int64_t n = k->hp.n_rot[0];
    float *values = config_rope_factors(k->config, slot_info(row->slot)->name, n, k->hp.rope_base);
    if (!values) return ERR_OK;
    struct piece *p = new_piece(k);
    if (p) p->values = values;
    if (!p) free(values);
    if (!p) return err_set(ERR_NOMEM, "no memory for the tensors of the checkpoint");
    TRY(gguf_name(row, -1, false, p->name));
    p->t = ggml_new_tensor_1d(k->ctx, GGML_TYPE_F32, n / 2);
    if (ggml_is_error(p->t)) return ERR_NOMEM;
    ggml_set_name(p->t, p->name);
    return ERR_OK;
}

enum err convert_take_layer(struct convert *k, int il) {
    bool have[SLOT_COUNT] = {false};
    for (const struct arch_tensor *row = k->arch->tensors; row->slot != SLOT_NONE; row++) {
        const bool global = row->slot > SLOT_LAYER_END;
        if (global != (il < 0) || (row->flags & T_ENC)) continue;
        double applies = 1;
        bool found = false, bias = false;
        if (row->when) TRY(expr_eval(row->when, &k->hp, il < 0 ? 0 : il, &applies));
        if (applies == 0 || (row->unless != SLOT_NONE && have[row->unless])) continue;
        if (row->slot == SLOT_rope_freqs || row->slot == SLOT_rope_factors_long || row->slot == SLOT_rope_factors_short) {
            TRY(take_factors(k, row));
            continue;
        }
        if (!(row->flags & T_BIAS_ONLY)) TRY(take_row(k, row, il, false, &found));
        if (row->flags & (T_BIAS | T_BIAS_OPT | T_BIAS_ONLY)) TRY(take_row(k, row, il, true, &bias));
        have[row->slot] |= found;
        const bool needed = !(row->flags & (T_OPT | T_BIAS_ONLY)),
                   missing = (needed && !found) || ((row->flags & T_BIAS) && found && !bias);
        if (!missing) continue;
        return err_set(ERR_FORMAT, "the checkpoint has no tensor for %s (layer %d), which architecture %s needs%s",
                       slot_info(row->slot)->name, il, k->arch->name,
                       names_of(k, row) ? "" : "; no name in checkpoints is known for it");
    }
    return ERR_OK;
}

void convert_name_the_rest(const struct convert *k) {
    static const char *const known[] = {"position_ids", "rotary_emb.inv_freq", "attn.bias", "attn.masked_bias",
                                        "pooler.",      "cls.predictions"};
    const bool tied = json_is_true(config_get(k->config, "tie_word_embeddings"));
    for (size_t i = 0; i < k->c.n_tensors; i++) {
        const struct ckpt_tensor *t = &k->c.tensors[i];
        bool silent = t->used || (tied && strcmp(t->name, "lm_head.weight") == 0);
        for (size_t n = 0; n < sizeof(known) / sizeof(known[0]); n++) silent |= strstr(t->name, known[n]) != NULL;
        if (!silent)
            ggml_log_write(GGML_LOG_LEVEL_WARN,
                           "the tensor '%s' of the checkpoint has no place in architecture %s and is left out\n", t->name,
                           k->arch->name);
    }
}
