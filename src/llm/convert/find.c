// What checkpoints call the tensor that a row of the architecture's table stands for, and which of those names are there.
#include "convert/find.h"

#include <stdlib.h>
#include <string.h>

// Checkpoints of a bare model leave out the prefix that those with a head have, and the other way round.
static struct ckpt_tensor *find(const struct convert *k, const char *name) {
    static const char *const prefixes[] = {"",         "model.",          "transformer.",          "bert.",
                                           "roberta.", "language_model.", "model.language_model.", "backbone."};
    char full[640];
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        snprintf(full, sizeof(full), "%s%s", prefixes[i], name);
        struct ckpt_tensor *t = checkpoint_find(&k->c, full);
        if (t) return t;
    }
    if (strncmp(name, "model.", 6) != 0) return NULL;
    snprintf(full, sizeof(full), "model.language_model.%s", name + 6);
    struct ckpt_tensor *t = checkpoint_find(&k->c, full);
    return t ? t : checkpoint_find(&k->c, name + 6);
}

// The checkpoint's name for base [n] in layer il, with number x in its hole.
static void full_name(const char *prefix, size_t n_prefix, const char *base, size_t n, int il, int x, const char *suffix,
                      char out[512]) {
    char layer[128] = "", part[256];
    if (n > 0 && base[0] == '^') base++, n--, il = -1;
    if (il >= 0) snprintf(layer, sizeof(layer), "%.*s%d.", (int) n_prefix, prefix, il);
    snprintf(part, sizeof(part), "%.*s", (int) n, base);
    const char *hole = strchr(part, '{'), *end = hole ? strchr(hole, '}') : NULL;
    if (end)
        snprintf(out, 512, "%s%.*s%d%s%s", layer, (int) (hole - part), part, x, end + 1, suffix);
    else
        snprintf(out, 512, "%s%s%s", layer, part, suffix);
}

// With the suffix that it should have, or with none, as some checkpoints have it. A name that ends in "!" stands as it is, without a suffix.
static struct ckpt_tensor *find_one(const struct convert *k, const struct arch_tensor *row, const char *base, size_t n,
                                    int il, int x, enum row_part what) {
    const bool bias = what == PART_BIAS;
    const char *suffix = bias ? ".bias" : row->flags & T_NO_SUFFIX ? "" : ".weight";
    char name[512];
    const bool as_it_is = n > 0 && base[n - 1] == '!';
    const char *prefix = k->cls->prefix;  // "decoder|encoder"
    const size_t n_first = strcspn(prefix, "|");
    const int n_stack = k->cls->flags & CLASS_STACKS ? k->hp.n_layer_weights / 2 : 0;
    const bool second = ((row->flags & T_ENC) || (n_stack > 0 && il >= n_stack) ||
                         ((k->cls->flags & CLASS_MTP) && k->n_own > 0 && il >= k->n_own)) &&
                        prefix[n_first];
    const bool draft = (k->cls->flags & CLASS_MTP) && k->n_own > 0 && il >= k->n_own;
    if (second && n_stack > 0) il -= n_stack;
    if (draft) il -= k->n_own;
    const char *from = second ? prefix + n_first + 1 : prefix;
    const size_t n_prefix = second ? strlen(from) : n_first;
    full_name(from, n_prefix, base, as_it_is ? n - 1 : n, il, x, as_it_is ? "" : suffix, name);
    struct ckpt_tensor *t = find(k, name);
    if (t || as_it_is || (bias && !(row->flags & T_BIAS_ONLY))) return t;
    full_name(from, n_prefix, base, n, il, x, "", name);
    t = find(k, name);
    if (t || bias || !(row->flags & T_NO_SUFFIX)) return t;
    full_name(from, n_prefix, base, n, il, x, ".weight", name);  // the file leaves it out, the checkpoint doesn't
    return find(k, name);
}

static enum err add(struct found *out, struct ckpt_tensor *t, int part) {
    if (out->n == out->room) {
        const int room = out->room ? 2 * out->room : 8;
        struct found_one *grown = realloc(out->one, sizeof(*grown) * (size_t) room);
        if (!grown) return err_set(ERR_NOMEM, "no memory for the tensors of the checkpoint");
        out->one = grown;
        out->room = room;
    }
    out->one[out->n++] = (struct found_one){t, part};
    return ERR_OK;
}

// How many tensors "{}" or "{expression}" in base [n] stands for; 1: there is no hole.
static enum err hole_count(const struct convert *k, const char *base, size_t n, int il, int *count) {
    const char *hole = memchr(base, '{', n), *end = hole ? memchr(hole, '}', n - (size_t) (hole - base)) : NULL;
    char expr[64];
    double v;
    *count = 1;
    if (!end) return ERR_OK;
    snprintf(expr, sizeof(expr), "%.*s", (int) (end - hole - 1), hole + 1);
    TRY(expr_eval(expr[0] ? expr : "X", &k->hp, il < 0 ? 0 : il, &v));
    *count = (int) v;
    return ERR_OK;
}

// One alternative, "a&b" [n]. Nothing is found unless all of it is there; a first expert without the others is an error.
static enum err find_all(const struct convert *k, const struct arch_tensor *row, const char *names, size_t n, int il,
                         enum row_part what, struct found *out) {
    int part = 0;
    out->n = 0;
    for (size_t at = 0; at <= n; part++) {
        const char *amp = memchr(names + at, '&', n - at);
        const size_t n_one = amp ? (size_t) (amp - names) - at : n - at;
        int count;
        TRY(hole_count(k, names + at, n_one, il, &count));
        for (int x = 0; x < count; x++) {
            struct ckpt_tensor *t = find_one(k, row, names + at, n_one, il, x, what);
            if (!t && x > 0)
                return err_set(ERR_FORMAT, "the checkpoint has '%s', but none for number %d", out->one[out->n - 1].t->name,
                               x);
            if (!t) {
                out->n = 0;
                return ERR_OK;
            }
            if (x > 0 && (t->n_dims != out->one[out->n - 1].t->n_dims ||
                          memcmp(t->shape, out->one[out->n - 1].t->shape, sizeof(t->shape)) != 0))
                return err_set(ERR_FORMAT, "the experts' tensors differ in shape: '%s' and '%s'",
                               out->one[out->n - 1].t->name, t->name);
            TRY(add(out, t, part));
        }
        at += n_one + 1;
    }
    return ERR_OK;
}

static enum err find_alternatives(const struct convert *k, const struct arch_tensor *row, const char *names, int il,
                                  enum row_part what, struct found *out) {
    for (const char *base = names; base && out->n == 0;) {
        const size_t n = strcspn(base, "|\t");
        TRY(find_all(k, row, base, n, il, what, out));
        base = base[n] == '|' ? base + n + 1 : NULL;
    }
    return ERR_OK;
}

const char *convert_usual_names(const struct arch_tensor *row) { return row->hf ? row->hf : slot_info(row->slot)->hf; }

const char *convert_constant(const struct convert *k, const struct arch_tensor *row) {
    for (const struct ckpt_name *n = k->cls->names; n->slot != SLOT_NONE; n++)
        if (n->slot == row->slot && n->name[0] == '=') return n->name + 1;
    return NULL;
}

// The name of a class's row without the part it is for; NULL: it is for another one.
static const char *name_for(const struct ckpt_name *n, enum row_part what, const struct arch_tensor *row) {
    const bool bias = strncmp(n->name, "bias:", 5) == 0, scale = strncmp(n->name, "scale:", 6) == 0;
    if (n->name[0] == '=') return NULL;
    if (scale || what == PART_SCALE) return scale && what == PART_SCALE ? n->name + 6 : NULL;
    if (bias) return what == PART_BIAS ? n->name + 5 : NULL;
    if (what == PART_BIAS && strchr(n->name, '!') && !(row->flags & T_BIAS_ONLY)) return NULL;  // the weight's own name
    return n->name;
}

enum err convert_search(const struct convert *k, const struct arch_tensor *row, int il, enum row_part what,
                        struct found *out) {
    bool named = false;
    out->n = 0;
    for (const struct ckpt_name *n = k->cls->names; n->slot != SLOT_NONE && out->n == 0; n++) {
        if (n->slot != row->slot) continue;
        named |= strncmp(n->name, "scale:", 6) != 0;
        const char *name = name_for(n, what, row);
        if (!name) continue;
        out->how = n;
        TRY(find_alternatives(k, row, name, il, what, out));
    }
    if (out->n == 0) out->how = NULL;
    if (out->n == 0 && !named && what != PART_SCALE) TRY(find_alternatives(k, row, convert_usual_names(row), il, what, out));
    return ERR_OK;
}

void found_free(struct found *f) {
    free(f->one);
    *f = (struct found){0};
}

struct ckpt_tensor *convert_find(const struct convert *k, const struct arch_tensor *row) {
    struct found f = {0};
    const bool ok = convert_search(k, row, -1, PART_WEIGHT, &f) == ERR_OK && f.n == 1;
    struct ckpt_tensor *t = ok ? f.one[0].t : NULL;
    found_free(&f);
    return t;
}
