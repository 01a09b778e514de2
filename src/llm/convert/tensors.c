// Which tensors of the checkpoint each row of the architecture's table is made of, and what is done to them on the way.
#include "convert/find.h"
#include "ggml/ext.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// Its name in the GGUF file.
static enum err gguf_name(const struct arch_tensor *row, int il, enum row_part what, char out[GGML_MAX_NAME]) {
    const char *base = row->name ? row->name : slot_info(row->slot)->name;
    const char *suffix = what == PART_BIAS          ? ".bias"
                         : what == PART_SCALE       ? ".scale"
                         : row->flags & T_NO_SUFFIX ? ""
                                                    : ".weight";
    const int n = il >= 0 ? snprintf(out, GGML_MAX_NAME, "%s.%d.%s%s",
                                     row->flags & T_DEC   ? "dec.blk"
                                     : row->flags & T_ENC ? "enc.blk"
                                                          : "blk",
                                     il, base, suffix)
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

static enum ggml_type out_type(const struct convert *k, const struct piece *p, const struct arch_tensor *row, bool matrix,
                               int n_dims, int64_t ne0) {
    const enum role role = slot_info(row->slot)->role;
    if (row->slot == SLOT_ffn_tid2eid) return GGML_TYPE_I32;
    if (!matrix || n_dims < 2 || !is_matrix(role) || role == ROLE_EMBD_OTHER) return GGML_TYPE_F32;
    bool mxfp4 = k->params->type != GGML_TYPE_F32;  // stays what it is: nothing is gained by writing it larger
    for (int i = 0; i < p->n_segments; i++) mxfp4 &= p->segments[i].t->kind == CKPT_MXFP4;
    if (mxfp4 && ne0 % 32 == 0) return GGML_TYPE_MXFP4;
    return ne0 % ggml_blck_size(k->params->type) == 0 ? k->params->type : GGML_TYPE_F16;
}

// Part i of "a&b"; the last one stands for those behind it. false: there is none.
static bool part_of(const char *text, int i, char *out, size_t n_out) {
    if (!text) return false;
    for (; i > 0; i--) {
        const char *amp = strchr(text, '&');
        if (!amp) break;
        text = amp + 1;
    }
    snprintf(out, n_out, "%.*s", (int) strcspn(text, "&"), text);
    return true;
}

// The cut (1) or the operation (2) of a class's row; NULL: it has none.
static const char *part_of_row(const struct ckpt_name *how, int i) {
    const char *at = how ? how->name : NULL;
    for (; at && i > 0; i--) at = strchr(at, '\t') ? strchr(at, '\t') + 1 : NULL;
    return at;
}

static int count_parts(const char *text) {
    int n = text != NULL;
    for (; text && *text; text++) n += *text == '&';
    return n;
}

// The product of the values of config.json, and of the expressions, that "*a*{expression}" names; 1 for those that are not there.
static enum err factor(const struct convert *k, const char *op, int il, float *out) {
    double product = 1, v;
    for (const char *at = op; at && *at == '*';) {
        char path[128];
        const bool expression = at[1] == '{';
        const size_t n = expression ? strcspn(at + 2, "}") : strcspn(at + 1, "*");
        snprintf(path, sizeof(path), "%.*s", (int) n, at + (expression ? 2 : 1));
        if (expression) TRY(expr_eval(path, &k->hp, il < 0 ? 0 : il, &v));
        json_t *j = expression ? NULL : config_path(k->config, path);
        if (json_is_number(j)) v = json_number_value(j);
        if (expression || json_is_number(j)) product *= v;
        at += n + (expression ? 3 : 1);
    }
    *out = (float) product;
    return ERR_OK;
}

// Latent attention turns the last dims of queries, of what all keys share, and of the indexer's heads.
static void turn_latent(const struct convert *k, struct piece *p, enum slot slot) {
    const struct hparams *hp = &k->hp;
    const bool query = slot == SLOT_attn_q_b || slot == SLOT_attn_q, shared = slot == SLOT_attn_kv_a_mqa,
               indexer = slot == SLOT_idx_q_b || slot == SLOT_idx_k || slot == SLOT_idx_k_norm;
    p->pairs = query || shared || (indexer && hp->idx_rope == IDX_ROPE_NORMAL_LAST);
    p->n_dim = query ? hp->n_head_k_mla : shared ? hp->n_lora_kv + p->n_rot : hp->idx_dim;
    p->rot_at = p->n_dim - p->n_rot;
}

// The first dims of the indexer's heads.
static void turn_indexer(const struct convert *k, struct piece *p, enum slot slot) {
    if (slot != SLOT_idx_q_b && slot != SLOT_idx_k && slot != SLOT_idx_k_norm) return;
    p->pairs = p->halves = true;
    p->n_dim = k->hp.idx_dim;
}

// What happens to the tensor's values and rows on the way.
static void set_changes(const struct convert *k, struct piece *p, const struct arch_tensor *row, int il, bool bias,
                        const char *op) {
    const struct hparams *hp = &k->hp;
    const int i = il < 0 ? 0 : il;
    p->plus = op && op[0] == '+' ? strtof(op + 1, NULL) : 1;
    if (op && op[0] == '+')
        p->op = bias ? OP_NONE : OP_PLUS;
    else if (op && strcmp(op, "-exp") == 0)
        p->op = OP_MINUS_EXP;
    else if (op && strcmp(op, "exp") == 0)
        p->op = OP_EXP;
    else if (!op && row->slot == SLOT_ssm_a)
        p->op = OP_MINUS_EXP;
    else if (!op && (k->cls->flags & CLASS_NORM_PLUS_1) && slot_info(row->slot)->role == ROLE_NORM && !bias)
        p->op = OP_PLUS;
    p->product = op && strcmp(op, "product") == 0;
    p->n_head = row->slot == SLOT_attn_k ? hp->n_head_kv[i] : hp->n_head[i];
    p->n_head_kv = hp->n_head_kv[i];
    p->n_dim = hp->n_embd_head_k[i];
    p->n_rot = hp->n_rot[i];
    p->fused = row->slot == SLOT_attn_qkv;
    const bool halves =
        (k->cls->flags & CLASS_HALVES) || ((k->arch->flags & ARCH_HF_PERMUTED) && !(k->cls->flags & CLASS_PAIRS));
    p->swapped = (k->cls->flags & CLASS_BACKWARDS) != 0;
    p->pairs = (halves || p->swapped) && (p->fused || row->slot == SLOT_attn_q || row->slot == SLOT_attn_k);
    if ((k->cls->flags & CLASS_HALVES) && hp->n_lora_kv > 0) turn_latent(k, p, row->slot);
    if (k->cls->flags & CLASS_INDEX_PAIRS) turn_indexer(k, p, row->slot);
    p->groups = p->fused && (k->cls->flags & CLASS_QKV_GROUPS);
}

static enum err add_segment(const struct convert *k, struct piece *p, struct ckpt_tensor *t, const char *view,
                            const char *op, int il) {
    struct segment *s = &p->segments[p->n_segments++];
    *s = (struct segment){.t = t, .mul = 1.0f};
    if (op && op[0] == '*') TRY(factor(k, op, il, &s->mul));
    t->used = true;
    const bool transpose = (k->cls->flags & CLASS_CONV1D) && il >= 0 && t->n_dims == 2 && !view;
    if (!view && !transpose) return ERR_OK;
    s->view = calloc(1, sizeof(*s->view));
    if (!s->view) return err_set(ERR_NOMEM, "no memory for the tensors of the checkpoint");
    if (transpose) {
        *s->view = view_transposed(t);
        return ERR_OK;
    }
    return view_parse(view, &k->hp, il < 0 ? 0 : il, t, s->view);
}

// Gemma's tables of inputs per layer may have fewer rows than there are tokens; those behind them count as the first.
static enum err add_first_row(const struct convert *k, struct piece *p, struct ckpt_tensor *t) {
    const int64_t n = k->hp.n_vocab - t->shape[0], width = t->shape[1];
    struct segment *s = &p->segments[p->n_segments++];
    *s = (struct segment){.t = t, .mul = 1.0f, .view = calloc(1, sizeof(*s->view))};
    if (!s->view) return err_set(ERR_NOMEM, "no memory for the tensors of the checkpoint");
    *s->view = (struct view){.n_axes = 2, .total = n * width};
    s->view->axis[0].n = width, s->view->axis[0].stride = 1;
    s->view->axis[1].n = n, s->view->axis[1].stride = 0;
    return ERR_OK;
}

// The segments of a piece: one for each tensor found, or several cuts through the only one.
static enum err add_segments(const struct convert *k, struct piece *p, const struct found *f, int il) {
    char views[512] = "", view[256], op[128];
    const char *ops = part_of_row(f->how, 2), *all = part_of_row(f->how, 1);
    if (all) snprintf(views, sizeof(views), "%.*s", (int) strcspn(all, "\t"), all);
    const int cuts = f->n == 1 ? count_parts(views) : 0, n = cuts > 1 ? cuts : f->n;
    p->segments = calloc((size_t) n + 1, sizeof(*p->segments));
    if (!p->segments) return err_set(ERR_NOMEM, "no memory for the tensors of the checkpoint");
    for (int i = 0; i < n; i++) {
        const int part = cuts > 1 ? i : f->one[i].part;
        struct ckpt_tensor *t = cuts > 1 ? f->one[0].t : f->one[i].t;
        const bool cut = part_of(views, part, view, sizeof(view)) && view[0] && view[0] != '-';
        TRY(add_segment(k, p, t, cut ? view : NULL, part_of(ops, part, op, sizeof(op)) ? op : NULL, il));
    }
    return ERR_OK;
}

// -1: vectors to multiply are of different lengths.
static int64_t piece_count(const struct piece *p) {
    int64_t n = 0;
    for (int i = 0; i < p->n_segments; i++) {
        const int64_t one = p->segments[i].view ? p->segments[i].view->total : ckpt_tensor_count(p->segments[i].t);
        if (p->product && i > 0 && one != n) return -1;
        n = p->product ? one : n + one;
    }
    return n;
}

// The table's shape, or with "?" in it the checkpoint's; a bias has the weight's without its first side.
static enum err piece_shape(const struct convert *k, const struct piece *p, const struct arch_tensor *row, int il,
                            enum row_part what, int64_t ne[4], int *n_dims) {
    const int64_t count = piece_count(p);
    char part[96];
    int64_t all = 1;
    bool known = true;
    int n = 0;
    for (; n < 4 && expr_part(row->shape, n, part, sizeof(part)); n++) {
        double v = -1;
        if (strcmp(part, "?") != 0) TRY(expr_eval(part, &k->hp, il < 0 ? 0 : il, &v));
        ne[n] = (int64_t) v;
        known &= v >= 0;
    }
    if (what == PART_SCALE) ne[0] = n > 2 ? ne[2] : 1, n = 1;
    if (what == PART_BIAS && n > 1 && !(row->flags & T_BIAS_ONLY)) memmove(ne, ne + 1, (size_t) --n * sizeof(*ne));
    for (int i = 0; i < n; i++) all *= ne[i];
    if (known && all == count) {
        *n_dims = n;
        return ERR_OK;
    }
    const struct ckpt_tensor *t = p->segments[0].t;
    if (known || p->n_segments > 1 || p->segments[0].view)
        return err_set(ERR_FORMAT, "'%s' holds %" PRId64 " values for %s, which has the shape %s: %" PRId64, t->name, count,
                       p->name, row->shape, all);
    n = 0;
    for (int i = t->n_dims - 1; i >= 0;
         i--)  // convolutions of one channel each keep a 1 in the middle, which files leave out
        if (i == t->n_dims - 1 || i == 0 || t->shape[i] != 1) ne[n++] = t->shape[i];
    if (n == 0) ne[n++] = 1;
    if ((k->cls->flags & CLASS_CONV1D) && il >= 0 && t->n_dims == 2) ne[0] = t->shape[0], ne[1] = t->shape[1];
    *n_dims = n;
    return ERR_OK;
}

static enum err make_piece(struct convert *k, const struct arch_tensor *row, int il, enum row_part what,
                           const struct found *f) {
    const bool bias = what == PART_BIAS;
    struct piece *p = new_piece(k);
    if (!p) return err_set(ERR_NOMEM, "no memory for the tensors of the checkpoint");
    TRY(gguf_name(row, il, what, p->name));
    TRY(add_segments(k, p, f, il));
    struct ckpt_tensor *t = p->segments[0].t;
    if (row->slot == SLOT_per_layer_token_embd && t->n_dims == 2 && t->shape[0] < k->hp.n_vocab) TRY(add_first_row(k, p, t));
    if (what != PART_SCALE) set_changes(k, p, row, il, bias, part_of_row(f->how, 2));
    int64_t ne[4] = {1, 1, 1, 1};
    int n_dims = 0;
    TRY(piece_shape(k, p, row, il, what, ne, &n_dims));
    const enum ggml_type type = out_type(k, p, row, what == PART_WEIGHT, n_dims, ne[0]);
    p->t = ggml_new_tensor(k->ctx, type, n_dims, ne);
    if (ggml_is_error(p->t)) return ERR_NOMEM;
    ggml_set_name(p->t, p->name);
    return ERR_OK;
}

// A vector of one value, which config.json has.
static enum err make_constant(struct convert *k, const struct arch_tensor *row, int il, const char *path) {
    char *end;
    double v = strtod(path, &end), n;
    json_t *j = end == path ? config_path(k->config, path) : NULL;
    if (end == path && !json_is_number(j)) return err_set(ERR_FORMAT, "config.json does not say %s", path);
    if (j) v = json_number_value(j);
    TRY(expr_eval(row->shape, &k->hp, il < 0 ? 0 : il, &n));
    struct piece *p = new_piece(k);
    if (p) p->values = malloc((size_t) n * sizeof(*p->values));
    if (!p || !p->values) return err_set(ERR_NOMEM, "no memory for the tensors of the checkpoint");
    for (int64_t i = 0; i < (int64_t) n; i++) p->values[i] = (float) v;
    TRY(gguf_name(row, il, PART_WEIGHT, p->name));
    p->t = ggml_new_tensor_1d(k->ctx, GGML_TYPE_F32, (int64_t) n);
    if (ggml_is_error(p->t)) return ERR_NOMEM;
    ggml_set_name(p->t, p->name);
    return ERR_OK;
}

// Row of the table in layer il (-1: global). *found tells whether it is in the checkpoint.
static enum err take_row(struct convert *k, const struct arch_tensor *row, int il, enum row_part what, bool *found) {
    struct found f = {0};
    const char *constant = what == PART_WEIGHT ? convert_constant(k, row) : NULL;
    enum err e = convert_search(k, row, il, what, &f);
    *found = f.n > 0 || constant;
    if (e == ERR_OK && f.n > 0)
        e = make_piece(k, row, il, what, &f);
    else if (e == ERR_OK && constant)
        e = make_constant(k, row, il, constant);
    found_free(&f);
    return e;
}

// Frequency factors, which checkpoints keep in config.json.
static enum err take_factors(struct convert *k, const struct arch_tensor *row) {
    int64_t n = 0;
    for (int i = 0; i < k->hp.n_block; i++) n = k->hp.n_rot[i] > n ? k->hp.n_rot[i] : n;
    float *values = config_rope_factors(k->config, slot_info(row->slot)->name, n, k->hp.rope_base);
    if (!values) return ERR_OK;
    struct piece *p = new_piece(k);
    if (p) p->values = values;
    if (!p) free(values);
    if (!p) return err_set(ERR_NOMEM, "no memory for the tensors of the checkpoint");
    TRY(gguf_name(row, -1, PART_WEIGHT, p->name));
    p->t = ggml_new_tensor_1d(k->ctx, GGML_TYPE_F32, n / 2);
    if (ggml_is_error(p->t)) return ERR_NOMEM;
    ggml_set_name(p->t, p->name);
    return ERR_OK;
}

static bool known(const struct convert *k, const struct arch_tensor *row) {
    for (const struct ckpt_name *n = k->cls->names; n->slot != SLOT_NONE; n++)
        if (n->slot == row->slot) return true;
    return convert_usual_names(row) != NULL;
}

// Layers that rows for all of them are in; an encoder's where there are two stacks.
static int layers_of(const struct convert *k) {
    return k->arch->flags & ARCH_ENCODER_DECODER ? k->hp.n_block : k->hp.n_layer_weights + k->n_nextn;
}

int convert_layers(const struct convert *k) {
    const int n = layers_of(k);
    return k->arch->flags & ARCH_ENCODER_DECODER && k->hp.n_dec_layer > n ? k->hp.n_dec_layer : n;
}

static enum err take_rows(struct convert *k, const struct arch_tensor *rows, int il) {
    bool have[SLOT_COUNT] = {false};
    for (const struct arch_tensor *row = rows; row->slot != SLOT_NONE; row++) {
        const bool global = row->slot > SLOT_LAYER_END;
        if (global != (il < 0)) continue;
        if (il >= 0 && !(k->arch->flags & ARCH_ENCODER_DECODER && row->flags & T_DEC) && il >= layers_of(k)) continue;
        if (il >= 0 && (row->flags & T_DEC) && il >= k->hp.n_dec_layer) continue;
        double applies = 1;
        bool found = false, bias = false, scale = false;
        if (row->when) TRY(expr_eval(row->when, &k->hp, il < 0 ? 0 : il, &applies));
        if (applies == 0 || (row->unless != SLOT_NONE && have[row->unless])) continue;
        if (row->slot == SLOT_rope_freqs || row->slot == SLOT_rope_factors_long || row->slot == SLOT_rope_factors_short) {
            TRY(take_factors(k, row));
            continue;
        }
        if (!(row->flags & T_BIAS_ONLY)) TRY(take_row(k, row, il, PART_WEIGHT, &found));
        if (row->flags & (T_BIAS | T_BIAS_OPT | T_BIAS_ONLY)) TRY(take_row(k, row, il, PART_BIAS, &bias));
        if (row->flags & T_SCALE) TRY(take_row(k, row, il, PART_SCALE, &scale));
        have[row->slot] |= found;
        const bool needed = !(row->flags & (T_OPT | T_BIAS_ONLY)),
                   missing = (needed && !found) || ((row->flags & T_BIAS) && found && !bias);
        if (!missing) continue;
        return err_set(ERR_FORMAT, "the checkpoint has no tensor for %s (layer %d), which architecture %s needs%s",
                       slot_info(row->slot)->name, il, k->arch->name,
                       known(k, row) ? "" : "; no name in checkpoints is known for it");
    }
    return ERR_OK;
}

enum err convert_take_layer(struct convert *k, int il) {
    TRY(take_rows(k, k->arch->tensors, il));
    return il >= k->n_own && k->n_nextn > 0 ? take_rows(k, arch_nextn_tensors, il) : ERR_OK;
}

void convert_name_the_rest(const struct convert *k) {
    // positions and masks that are computed anyway; encoders of images and sounds, which are files of their own
    static const char *const kept_out[] = {"position_ids",
                                           "rotary_emb.inv_freq",
                                           "attn.bias",
                                           "attn.masked_bias",
                                           "pooler.",
                                           "cls.predictions",
                                           "diagonal_decay",
                                           "key_decay",
                                           "query_decay",
                                           "slope_rate",
                                           "relative_pe.",
                                           "visual.",
                                           "vision_",
                                           "model.vision.",
                                           "mlp_AR.",
                                           "patch_merge_mlp.",
                                           "multi_modal_projector",
                                           "mm_projector",
                                           "mimi.",
                                           "flow_lm.",
                                           "audio_tower",
                                           "embed_audio",
                                           "embed_vision"};
    const bool tied = json_is_true(config_get(k->config, "tie_word_embeddings"));
    int left = 0;
    for (size_t i = 0; i < k->c.n_tensors; i++) {
        const struct ckpt_tensor *t = &k->c.tensors[i];
        bool silent = t->used || (tied && strcmp(t->name, "lm_head.weight") == 0);
        for (size_t n = 0; n < sizeof(kept_out) / sizeof(kept_out[0]); n++) silent |= strstr(t->name, kept_out[n]) != NULL;
        if (!silent && left++ < 20)
            ggml_log_write(GGML_LOG_LEVEL_WARN,
                           "the tensor '%s' of the checkpoint has no place in architecture %s and is left out\n", t->name,
                           k->arch->name);
    }
    if (left > 20) ggml_log_write(GGML_LOG_LEVEL_WARN, "%d more tensors are left out\n", left - 20);
}
