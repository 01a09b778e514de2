// From the architecture's table to tensors: names, shapes, slots.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "model/model.h"

// A row of the table with its expressions evaluated.
struct row_shape {
    const struct arch_tensor *row;
    int64_t ne[4];  // -1 stands for any length
    int n;
    bool absent;                         // its condition is not met
    bool when_by_layer, shape_by_layer;  // other layers may differ
};

struct maker {
    struct llama_model *m;
    const struct gguf_context *user;  // init_from_user: the infos are there
    int n_max;                        // tensors at most
    uint8_t *used;                    // per tensor of all sources
    int64_t n_used;
    struct row_shape shape;  // of the row in work
};

struct found {
    int source;
    int64_t id;
    const struct gguf_context *g;
};

static bool look(const struct maker *k, const char *name, struct found *f) {
    if (k->user) {
        f->source = -1;
        f->g = k->user;
        f->id = gguf_find_tensor(k->user, name);
        return f->id >= 0;
    }
    const int64_t *v = map_get(&k->m->index, name, strlen(name));
    if (!v) return false;
    f->source = (int) (*v >> 32);
    f->id = *v & 0xffffffff;
    f->g = k->m->sources[f->source].gguf;
    return true;
}

// Evaluates row into k->shape; what holds for all layers, once for all of them.
static enum err eval_row(struct maker *k, const struct arch_tensor *row, int il) {
    const struct hparams *hp = &k->m->hp;
    struct row_shape *s = &k->shape;
    if (s->row != row) *s = (struct row_shape){.row = row, .when_by_layer = row->when != NULL};
    double v;
    if (s->when_by_layer) {
        s->when_by_layer = false;
        TRY(expr_eval_layer(row->when, hp, il, &v, &s->when_by_layer));
        s->absent = v == 0;
    }
    if (s->absent || (s->n > 0 && !s->shape_by_layer)) return ERR_OK;
    char part[96];
    for (s->n = 0; s->n < 4 && expr_part(row->shape, s->n, part, sizeof part); s->n++) {
        v = -1;
        if (strcmp(part, "?") != 0) {
            TRY(expr_eval_layer(part, hp, il, &v, &s->shape_by_layer));
            if (v < 0 || v > 9e15) return err_set(ERR_FORMAT, "a tensor of shape %s has a side of %g", row->shape, v);
        }
        s->ne[s->n] = (int64_t) v;
    }
    for (int i = s->n; i < 4; i++) s->ne[i] = 1;
    return ERR_OK;
}

// Shapes are equal if they are after leaving out ones: files differ in whether they write [1, n] or [n].
static bool same_shape(const int64_t *want, const int64_t *have) {
    int i = 0, j = 0;
    for (;;) {
        while (i < 4 && want[i] == 1) i++;
        while (j < 4 && have[j] == 1) j++;
        if (j == 4)
            while (i < 4 && (want[i] == 1 || want[i] == -1)) i++;
        if (i == 4 || j == 4) return i == 4 && j == 4;
        if (want[i] != -1 && want[i] != have[j]) return false;
        i++;
        j++;
    }
}

static enum err shape_error(const char *name, const int64_t *want, const int64_t *have) {
    char w[96] = "";
    int n = 0;
    for (int i = 0; i < 4; i++)
        n += snprintf(w + n, sizeof w - (size_t) n, want[i] == -1 ? "%sany" : "%s%lld", i ? ", " : "", (long long) want[i]);
    return err_set(ERR_FORMAT, "tensor %s has the shape [%lld, %lld, %lld, %lld]; the model's keys call for [%s]", name,
                   (long long) have[0], (long long) have[1], (long long) have[2], (long long) have[3], w);
}

static struct model_tensor *new_entry(struct llama_model *m) {
    if (m->n_tensors == m->cap_tensors) {
        const int cap = m->cap_tensors ? 2 * m->cap_tensors : 512;
        struct model_tensor *t = realloc(m->tensors, (size_t) cap * sizeof *t);
        if (!t) return NULL;
        m->tensors = t;
        m->cap_tensors = cap;
    }
    return &m->tensors[m->n_tensors++];
}

static enum err make(struct maker *k, const char *name, const struct found *f, const int64_t *want, int n_want,
                     const struct arch_tensor *row, int layer, ggml_backend_buffer_type_t buft, struct ggml_tensor **out) {
    struct llama_model *m = k->m;
    const int64_t *have = gguf_get_tensor_ne(f->g, f->id);
    const enum ggml_type type = gguf_get_tensor_type(f->g, f->id);
    int64_t ne[4];
    if (!same_shape(want, have)) return shape_error(name, want, have);
    const bool integers = type == GGML_TYPE_I8 || type == GGML_TYPE_I16 || type == GGML_TYPE_I32 || type == GGML_TYPE_I64;
    if (integers && row->slot != SLOT_ffn_tid2eid)  // a table of experts' numbers
        return err_set(ERR_FORMAT, "tensor %s has type %s; weights are floats or quantized", name, ggml_type_name(type));
    bool any = false;
    for (int i = 0; i < 4; i++) any |= want[i] == -1;
    for (int i = 0; i < 4; i++) ne[i] = any ? have[i] : want[i];
    if (any) {
        n_want = 4;
        while (n_want > 1 && ne[n_want - 1] == 1) n_want--;
    }
    const enum role role = slot_info(row->slot)->role;
    if (!buft) TRY(place_tensor(m, name, layer, role, type, n_want, ne, &buft));
    struct ggml_context *ctx = home_ctx(&m->home, buft, k->n_max);
    if (!ctx) return err_set(ERR_NOMEM, "no memory for the headers of %d tensors", k->n_max);
    struct ggml_tensor *t = ggml_new_tensor(ctx, type, n_want < 1 ? 1 : n_want, ne);
    if (!t || ggml_is_error(t)) return err_set(ERR_FORMAT, "tensor %s can't be made", name);
    ggml_set_name(t, name);
    struct model_tensor *e = new_entry(m);
    if (!e) return err_set(ERR_NOMEM, "no memory for the list of tensors");
    *e = (struct model_tensor){
        .t = t, .source = f->source, .id = f->id, .buft = buft, .role = role, .slot = row->slot, .layer = layer};
    m->n_params += (uint64_t) ggml_nelements(t);
    m->n_bytes += ggml_nbytes(t);
    if (m->n_nextn && layer >= m->hp.n_layer) {
        m->n_params_nextn += (uint64_t) ggml_nelements(t);
        m->n_bytes_nextn += ggml_nbytes(t);
    }
    k->n_used++;
    *out = t;
    return ERR_OK;
}

// A row's name in a layer, to which a part's is added.
struct row_name {
    char text[GGML_MAX_NAME + 64];
    size_t n;
};

static char *put_number(char *p, int v) {
    if (v >= 10) p = put_number(p, v / 10);
    *p = (char) ('0' + v % 10);
    return p + 1;
}

static void row_name(struct row_name *name, const struct arch_tensor *row, int layer) {
    const char *base = row->name ? row->name : slot_info(row->slot)->name;
    char *p = name->text;
    if (layer >= 0) {
        p = stpcpy(p, row->flags & T_ENC ? "enc.blk." : row->flags & T_DEC ? "dec.blk." : "blk.");
        p = put_number(p, layer);
        *p++ = '.';
    }
    name->n = (size_t) (stpcpy(p, base) - name->text);
}

// One part (weight, bias, scale) of a row in a layer.
static enum err part(struct maker *k, const struct arch_tensor *row, struct row_name *name, const char *suffix,
                     const int64_t *want, int n, bool required, int layer, struct ggml_tensor **out) {
    struct found f;
    strcpy(name->text + name->n, suffix);
    if (!look(k, name->text, &f)) {
        if (!required) return ERR_OK;
        return err_set(ERR_FORMAT, "tensor %s is missing; a model of architecture %s needs it", name->text,
                       k->m->arch->name);
    }
    return make(k, name->text, &f, want, n, row, layer, NULL, out);
}

static enum err load_row(struct maker *k, const struct arch_tensor *row, struct weight *w, const struct weight *unless,
                         int layer) {
    TRY(eval_row(k, row, layer));
    if (k->shape.absent) return ERR_OK;
    const int64_t *ne = k->shape.ne;
    const int n = k->shape.n;
    struct row_name name;
    row_name(&name, row, layer);
    const unsigned fl = row->flags;
    const bool skip = fl & T_BIAS_ONLY || (unless && unless->w);
    if (!skip) TRY(part(k, row, &name, fl & T_NO_SUFFIX ? "" : ".weight", ne, n, !(fl & T_OPT), layer, &w->w));
    // a bias is as long as the map's result; of experts, one row each
    int64_t bne[4] = {ne[0], 1, 1, 1};
    int bn = 1;
    if (n == 2) bne[0] = ne[1];
    if (n >= 3) {
        bne[0] = ne[1];
        bne[1] = ne[2];
        bn = 2;
    }
    if (fl & (T_BIAS | T_BIAS_OPT | T_BIAS_ONLY)) {
        const bool required =
            (fl & T_BIAS && !(unless && unless->w) && (w->w || fl & T_BIAS_ONLY)) || (fl & T_BIAS_ONLY && !(fl & T_OPT));
        TRY(part(k, row, &name, ".bias", bne, bn, required, layer, &w->b));
    }
    if (fl & T_SCALE && w->w) {
        int64_t sne[4] = {n >= 3 ? ne[2] : 1, 1, 1, 1};
        TRY(part(k, row, &name, ".scale", sne, 1, false, layer, &w->s));
    }
    return ERR_OK;
}

static enum err load_layers(struct maker *k, const struct arch_tensor *row) {
    struct llama_model *m = k->m;
    const bool enc = row->flags & T_ENC;
    const int n = enc ? m->hp.n_block : m->n_layers_alloc;
    for (int il = 0; il < n; il++) {
        struct layer *l = enc ? &m->enc_layers[il] : &m->layers[il];
        TRY(load_row(k, row, layer_slot(l, row->slot), row->unless ? layer_slot(l, row->unless) : NULL, il));
    }
    return ERR_OK;
}

// Whether the file's draft head is to be loaded: it was asked for, there is one, and its layers can be computed.
static bool wants_nextn(const struct maker *k) {
    const struct llama_model *m = k->m;
    if (!m->params.load_mtp || m->hp.n_nextn <= 0) return false;
    if (!arch_can_nextn(m->arch, &m->hp)) {
        log_warn("the draft head of %s models can't be run; it is not loaded\n", m->arch->name);
        return false;
    }
    char name[96];
    snprintf(name, sizeof name, "blk.%d.%s.weight", m->hp.n_layer, slot_info(SLOT_nextn_eh_proj)->name);
    struct found f;
    if (look(k, name, &f)) return true;
    log_warn("the keys name a draft head, but the file has no tensor %s: there is none to load\n", name);
    return false;
}

static enum err load_nextn(struct maker *k) {
    struct llama_model *m = k->m;
    for (const struct arch_tensor *r = arch_nextn_tensors; r->slot != SLOT_NONE; r++)
        for (int il = m->hp.n_layer; il < m->n_layers_alloc; il++)
            TRY(load_row(k, r, layer_slot(&m->layers[il], r->slot), NULL, il));
    return ERR_OK;
}

// The output matrix is the embedding: on another device it needs a copy of its own.
static enum err tie_output(struct maker *k) {
    struct llama_model *m = k->m;
    if (m->w.output.w || !m->w.token_embd.w || m->output_dev == m->cpu) return ERR_OK;
    if (m->arch->flags & (ARCH_ENCODER | ARCH_NO_LOGITS)) return ERR_OK;
    struct ggml_tensor *e = m->w.token_embd.w;
    static const struct arch_tensor row = {SLOT_output, "E,V", 0, 0, 0, 0, 0};
    ggml_backend_buffer_type_t buft;
    TRY(place_tensor(m, "output.weight", -1, ROLE_OUTPUT, e->type, 2, e->ne, &buft));
    if (buft == ggml_backend_dev_buffer_type(m->cpu)) return ERR_OK;
    struct found f;
    if (!look(k, e->name, &f)) return ERR_OK;
    TRY(make(k, e->name, &f, e->ne, 2, &row, -1, buft, &m->w.output.w));
    m->tensors[m->n_tensors - 1].copy = true;
    m->n_params -= (uint64_t) ggml_nelements(e);
    m->n_bytes -= ggml_nbytes(e);
    return ERR_OK;
}

static void report_unused(const struct maker *k) {
    const struct llama_model *m = k->m;
    if (k->user) return;
    int n = 0;
    const char *first = NULL;
    struct map used = {0};
    for (int i = 0; i < m->n_tensors; i++)
        (void) map_add(&used, m->tensors[i].t->name, strlen(m->tensors[i].t->name), 1, NULL);
    for (int s = 0; s < m->n_sources; s++) {
        const struct gguf_context *g = m->sources[s].gguf;
        for (int64_t i = 0; i < gguf_get_n_tensors(g); i++) {
            const char *name = gguf_get_tensor_name(g, i);
            if (map_get(&used, name, strlen(name))) continue;
            if (!first) first = name;
            n++;
        }
    }
    map_free(&used);
    if (n) log_info("%d tensors of the file are not used (the first is %s)\n", n, first);
}

enum err tensors_make(struct llama_model *m, const struct gguf_context *user) {
    const struct arch *a = m->arch;
    struct maker k = {.m = m, .user = user};
    int64_t total = user ? gguf_get_n_tensors(user) : 0;
    for (int s = 0; s < m->n_sources; s++) total += gguf_get_n_tensors(m->sources[s].gguf);
    if (total > 1 << 22) return err_set(ERR_FORMAT, "the file lists %lld tensors", (long long) total);
    k.n_max = (int) total + 2;
    const int n_dec = m->hp.n_dec_layer;
    m->n_layers_alloc = a->flags & ARCH_ENCODER_DECODER ? n_dec : m->hp.n_layer_weights;
    if (wants_nextn(&k)) {
        m->n_nextn = m->hp.n_nextn;
        m->n_layers_alloc = m->hp.n_block;
    }
    m->layers = calloc((size_t) m->n_layers_alloc + 1, sizeof *m->layers);
    m->enc_layers =
        a->flags & (ARCH_ENCODER_DECODER | ARCH_ENCODER) ? calloc((size_t) m->hp.n_block + 1, sizeof *m->enc_layers) : NULL;
    if (!m->layers || (a->flags & (ARCH_ENCODER_DECODER | ARCH_ENCODER) && !m->enc_layers))
        return err_set(ERR_NOMEM, "no memory for %d layers", m->n_layers_alloc);
    place_layers(m);
    for (const struct arch_tensor *r = a->tensors; r->slot != SLOT_NONE; r++) {
        struct weight *w = globals_slot(&m->w, r->slot);
        if (w)
            TRY(load_row(&k, r, w, r->unless ? globals_slot(&m->w, r->unless) : NULL, -1));
        else
            TRY(load_layers(&k, r));
    }
    if (m->n_nextn) TRY(load_nextn(&k));
    TRY(tie_output(&k));
    report_unused(&k);
    return ERR_OK;
}
