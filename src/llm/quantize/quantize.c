// llama_model_quantize: a model's file (or files) with its weights in other types.
//
// First everything is decided: what is written, in which types, at which offsets, of which sizes; a dry run ends there. Then the
// threads take pieces of rows, decode, encode and write each to its own place, so that memory is bounded by a piece per thread
// and the result does not depend on who did what. The files are written under temporary names and renamed when all are whole.
#include "base/file.h"
#include "quantize/mixture.h"

#include "gguf.h"
#include "llama.h"
#include "llama/ext.h"
#include "model/model.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <regex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIECE_VALUES ((int64_t) 1 << 20)  // of a piece at most, unless one row is longer

struct item {
    int source;
    int64_t id;
    char name[GGML_MAX_NAME];
    const char *from;  // its name in the input, which pruning may change
    enum ggml_type type_in, type_out;
    int64_t ne[4];
    size_t bytes_in, bytes_out;
    uint64_t offset_in;
    const float *importance;  // [ne[0] * ne[2]] or NULL
    int out;                  // file written to
    uint64_t offset_out;
};

struct output {
    char path[4096], tmp[4104];
    struct gguf_context *gguf;
    struct ggml_context *ctx;
    int fd;
    uint64_t data_start, size;
};

struct job {
    const struct llama_model_quantize_params *p;
    struct llama_model in;  // of which only the files are used
    const char *arch_name;
    const struct arch *arch;  // NULL: unknown, roles go by the tensors' names alone
    struct item *items;
    int n_items;
    struct output *outs;
    int n_outs;
    struct mixture_model shape;
    uint64_t bytes_in, bytes_out, bytes_files;
    int n_fallback;
    char fallback[128 + GGML_MAX_NAME];  // what became of the first such tensor
    llama_progress_callback progress;
    void *progress_data;
    // while writing
    _Atomic int64_t next;
    int64_t *first_piece;  // [n_items + 1]
    _Atomic int64_t done;
    _Atomic int failed;
    char message[512];
    _Atomic int message_taken;
};

// ---- deciding -----------------------------------------------------------------------------------------------------------------

// "blk.12.attn_q.weight" -> layer 12, "attn_q", ".weight".
static int split_name(const char *name, char base[GGML_MAX_NAME], const char **suffix) {
    int layer = -1, n = 0;
    const char *rest = name;
    if (sscanf(name, "blk.%d.%n", &layer, &n) == 1 && n > 0)
        rest = name + n;
    else if (sscanf(name, "enc.blk.%d.%n", &layer, &n) == 1 && n > 0)
        rest = name + n;
    else if (sscanf(name, "dec.blk.%d.%n", &layer, &n) == 1 && n > 0)
        rest = name + n;
    else
        layer = -1;
    const char *dot = strrchr(rest, '.');
    *suffix = dot ? dot : "";
    snprintf(base, GGML_MAX_NAME, "%.*s", dot ? (int) (dot - rest) : (int) strlen(rest), rest);
    return layer;
}

static enum role role_of(const struct job *j, const char *base, int layer) {
    for (const struct arch_tensor *r = j->arch ? j->arch->tensors : NULL; r && r->slot != SLOT_NONE; r++)
        if (r->name && strcmp(r->name, base) == 0) return slot_info(r->slot)->role;
    for (int s = SLOT_NONE + 1; s < SLOT_COUNT; s++) {
        if (s == SLOT_LAYER_END || (s > SLOT_LAYER_END) != (layer < 0)) continue;
        if (strcmp(slot_info((enum slot) s)->name, base) == 0) return slot_info((enum slot) s)->role;
    }
    return strstr(base, "norm") ? ROLE_NORM : ROLE_FFN_UP;  // an unknown matrix is one like the others
}

// How many layers before this one have one of the three.
static int layers_before(const struct job *j, int layer, const char *const three[3]) {
    int n = 0;
    for (int il = 0; il < layer; il++)
        for (int i = 0; i < 3; i++) {
            char name[GGML_MAX_NAME];
            const int len = snprintf(name, sizeof(name), "blk.%d.%s.weight", il, three[i]);
            if (!map_get(&j->in.index, name, (size_t) len)) continue;
            n++;
            break;
        }
    return n;
}

static const char *const values[3] = {"attn_v", "attn_qkv", "attn_kv_b"}, *const downs[3] = {"ffn_down", "ffn_down_exps",
                                                                                             "ffn_down_shexp"};

static enum err find_importance(const struct job *j, struct item *it) {
    for (const struct llama_model_imatrix_data *d = j->p->imatrix; d && d->name; d++) {
        if (strcmp(d->name, it->from) != 0) continue;
        const size_t want = (size_t) (it->ne[0] * it->ne[2]);
        if (d->size != want)
            return err_set(ERR_INVALID, "the importance of '%s' has %zu values, but the tensor has %zu columns", it->from,
                           d->size, want);
        for (size_t i = 0; i < want; i++)
            if (!isfinite(d->data[i]) || d->data[i] < 0)
                return err_set(ERR_INVALID, "the importance of '%s' is %g at column %zu; measure it again", it->from,
                               (double) d->data[i], i);
        it->importance = d->data;
    }
    return ERR_OK;
}

static enum err find_override(const struct job *j, const char *name, enum ggml_type *type) {
    for (const struct llama_model_tensor_override *o = j->p->tt_overrides; o && o->pattern; o++) {
        regex_t re;
        if (regcomp(&re, o->pattern, REG_EXTENDED | REG_NOSUB) != 0)
            return err_set(ERR_INVALID, "the tensor pattern '%s' is no regular expression", o->pattern);
        const bool hit = regexec(&re, name, 0, NULL, 0) == 0;
        regfree(&re);
        if (!hit) continue;
        *type = o->type;
        return ERR_OK;
    }
    return ERR_OK;
}

// A pattern that fits no tensor is a slip of the pen that nobody would see in the file.
static enum err warn_of_idle_patterns(const struct job *j) {
    for (const struct llama_model_tensor_override *o = j->p->tt_overrides; o && o->pattern; o++) {
        regex_t re;
        if (regcomp(&re, o->pattern, REG_EXTENDED | REG_NOSUB) != 0)
            return err_set(ERR_INVALID, "the tensor pattern '%s' is no regular expression", o->pattern);
        int i = 0;
        while (i < j->n_items && regexec(&re, j->items[i].from, 0, NULL, 0) != 0) i++;
        regfree(&re);
        if (i == j->n_items)
            ggml_log_write(GGML_LOG_LEVEL_WARN, "the tensor pattern '%s' (for type %s) fits none of %d tensors\n",
                           o->pattern, ggml_type_name(o->type), j->n_items);
    }
    return ERR_OK;
}

static bool type_forced(const struct llama_model_quantize_params *p, enum role role, bool tied, enum ggml_type *type) {
    const bool output = role == ROLE_OUTPUT || (role == ROLE_EMBD && tied && p->token_embedding_type == GGML_TYPE_COUNT);
    if (output && p->output_tensor_type != GGML_TYPE_COUNT)
        *type = p->output_tensor_type;
    else if (role == ROLE_EMBD && p->token_embedding_type != GGML_TYPE_COUNT)
        *type = p->token_embedding_type;
    else
        return false;
    return true;
}

// Rows that don't hold whole blocks of the type get the nearest that fits.
static enum ggml_type fit(struct job *j, const struct item *it, enum ggml_type type) {
    const enum ggml_type fits = mixture_fit(type, it->ne[0]);
    if (fits == type) return type;
    char what[sizeof(j->fallback)];
    snprintf(what, sizeof(what), "rows of '%s' (%" PRId64 " columns) don't hold whole blocks of %s and become %s", it->from,
             it->ne[0], ggml_type_name(type), ggml_type_name(fits));
    ggml_log_write(GGML_LOG_LEVEL_INFO, "%s\n", what);
    if (j->n_fallback++ == 0) memcpy(j->fallback, what, sizeof(what));
    return fits;
}

static enum err decide(struct job *j, struct item *it) {
    const struct llama_model_quantize_params *p = j->p;
    char base[GGML_MAX_NAME];
    const char *suffix;
    const int layer = split_name(it->name, base, &suffix);
    const enum role role = role_of(j, base, layer);
    it->type_out = it->type_in;
    const bool matrix = (it->ne[1] > 1 || it->ne[2] > 1) && strcmp(suffix, ".weight") == 0;
    if (p->only_copy || !matrix || !mixture_takes(role, p->pure)) return ERR_OK;
    if (role == ROLE_OUTPUT && !p->quantize_output_tensor) return ERR_OK;
    if (!ggml_is_quantized(it->type_in) && it->type_in != GGML_TYPE_F32 && it->type_in != GGML_TYPE_F16 &&
        it->type_in != GGML_TYPE_BF16)
        return ERR_OK;
    const struct mixture_tensor t = {role, layer, layers_before(j, layer, values),
                                     j->shape.n_expert > 1 ? layer : layers_before(j, layer, downs), it->ne};
    enum ggml_type type = p->pure ? mixture_type(p->ftype) : mixture_pick(p->ftype, &j->shape, &t);
    if (!p->pure || (role != ROLE_OUTPUT && role != ROLE_EMBD) || p->output_tensor_type != GGML_TYPE_COUNT ||
        p->token_embedding_type != GGML_TYPE_COUNT)
        (void) type_forced(p, role, j->shape.tied, &type);
    TRY(find_override(j, it->from, &type));
    type = fit(j, it, type);
    if (type == it->type_in) return ERR_OK;
    if (ggml_is_quantized(it->type_in) && !p->allow_requantize)
        return err_set(ERR_INVALID,
                       "tensor '%s' is %s already; quantizing it again loses quality: start from a larger type, or allow it "
                       "(--allow-requantize)",
                       it->from, ggml_type_name(it->type_in));
    it->type_out = type;
    TRY(find_importance(j, it));
    if (ggml_quantize_requires_imatrix(type) && !it->importance)
        return err_set(ERR_INVALID, "tensor '%s' as %s needs an importance matrix that covers it (lamina imatrix makes one)",
                       it->from, ggml_type_name(type));
    return ERR_OK;
}

// Number of the layer after pruning, -1 when it goes; of n_layer: how many are left.
static int kept_layer(const int32_t *prune, int layer) {
    int gone = 0;
    bool goes = false;
    for (int il = 0; il <= layer; il++) {
        goes = false;
        for (const int32_t *l = prune; *l >= 0 && !goes; l++) goes = *l == il;
        gone += goes;
    }
    return goes ? -1 : layer - gone;
}

static enum err check_prune(const struct job *j) {
    const int n = j->shape.n_layer;
    const int32_t *l = j->p->prune_layers;
    for (; l && *l >= 0; l++)
        if (*l >= n) return err_set(ERR_INVALID, "layer %d can't be left out: the model has %d", *l, n);
    return l && n > 0 && kept_layer(j->p->prune_layers, n) == 0 ? err_set(ERR_INVALID, "no layer would be left of %d", n)
                                                                : ERR_OK;
}

static enum err take_tensor(struct job *j, int source, int64_t id) {
    const struct gguf_context *g = j->in.sources[source].gguf;
    struct item *it = &j->items[j->n_items];
    const char *name = gguf_get_tensor_name(g, id);
    char base[GGML_MAX_NAME];
    const char *suffix;
    *it = (struct item){.source = source,
                        .id = id,
                        .from = name,
                        .type_in = gguf_get_tensor_type(g, id),
                        .bytes_in = gguf_get_tensor_size(g, id)};
    snprintf(it->name, sizeof(it->name), "%s", name);
    const int layer = split_name(name, base, &suffix);
    if (layer >= 0 && j->p->prune_layers && strncmp(name, "blk.", 4) == 0) {
        const int kept = kept_layer(j->p->prune_layers, layer);
        if (kept < 0) return ERR_OK;
        snprintf(it->name, sizeof(it->name), "blk.%d%s", kept, strchr(name + 4, '.'));
    }
    memcpy(it->ne, gguf_get_tensor_ne(g, id), sizeof(it->ne));
    it->offset_in = j->in.sources[source].base + gguf_get_data_offset(g) + gguf_get_tensor_offset(g, id);
    it->out = j->p->keep_split ? source : 0;
    TRY(decide(j, it));
    it->bytes_out = ggml_row_size(it->type_out, it->ne[0]) * (size_t) (it->ne[1] * it->ne[2] * it->ne[3]);
    j->bytes_in += it->bytes_in;
    j->bytes_out += it->bytes_out;
    j->n_items++;
    return ERR_OK;
}

static void model_shape(struct job *j) {
    const struct gguf_context *g = j->in.sources[0].gguf;
    const int64_t id = gguf_find_key(g, "general.architecture");
    const char *name = id >= 0 && gguf_get_kv_type(g, id) == GGUF_TYPE_STRING ? gguf_get_val_str(g, id) : "";
    int64_t n = 0, heads = 0, heads_kv = 0;
    char key[160];
    j->arch_name = name;
    j->arch = arch_by_name(name);
    snprintf(key, sizeof(key), "%s.block_count", name);
    if (meta_get_int(g, key, &n)) j->shape.n_layer = (int) n;
    snprintf(key, sizeof(key), "%s.expert_count", name);
    if (meta_get_int(g, key, &n)) j->shape.n_expert = (int) n;
    snprintf(key, sizeof(key), "%s.attention.head_count", name);
    (void) meta_get_int(g, key, &heads);
    snprintf(key, sizeof(key), "%s.attention.head_count_kv", name);
    if (!meta_get_int(g, key, &heads_kv)) heads_kv = heads;
    j->shape.n_gqa = heads_kv > 0 && heads >= heads_kv ? (int) (heads / heads_kv) : 1;
    j->shape.tied = !map_get(&j->in.index, "output.weight", strlen("output.weight"));
    j->shape.n_values = layers_before(j, j->shape.n_layer, values);
    j->shape.has_imatrix = j->p->imatrix != NULL;
    j->shape.coarse = j->arch && j->arch->flags & ARCH_COARSE;
    j->shape.finer_values = j->arch && j->arch->flags & ARCH_FINER_VALUES && j->shape.n_layer == 80 && j->shape.n_gqa > 1;
}

static enum err plan(struct job *j, const char *path) {
    TRY(sources_open(&j->in, path));
    TRY(sources_index(&j->in));
    if (!j->p->only_copy && mixture_type(j->p->ftype) == GGML_TYPE_COUNT)
        return err_set(ERR_INVALID, "%d is no mixture that can be made", (int) j->p->ftype);
    model_shape(j);
    TRY(check_prune(j));
    int64_t n = 0;
    for (int s = 0; s < j->in.n_sources; s++) n += gguf_get_n_tensors(j->in.sources[s].gguf);
    j->items = calloc((size_t) n + 1, sizeof(*j->items));
    if (!j->items) return err_set(ERR_NOMEM, "no memory for %" PRId64 " tensors", n);
    for (int s = 0; s < j->in.n_sources; s++)
        for (int64_t i = 0; i < gguf_get_n_tensors(j->in.sources[s].gguf); i++) TRY(take_tensor(j, s, i));
    return warn_of_idle_patterns(j);
}

// ---- the files' headers ---------------------------------------------------------------------------------------------------------

// What arrays of a value per layer say of layers that are left out goes, too.
static void prune_arrays(const struct job *j, struct gguf_context *g) {
    const int n_layer = j->shape.n_layer;
    for (int64_t id = gguf_get_n_kv(g) - 1; id >= 0; id--) {  // backwards: a key that is set goes to the end
        char key[160];
        snprintf(key, sizeof(key), "%s", gguf_get_key(g, id));
        if (gguf_get_kv_type(g, id) != GGUF_TYPE_ARRAY || gguf_get_arr_n(g, id) != (size_t) n_layer ||
            strncmp(key, j->arch_name, strlen(j->arch_name)) != 0)
            continue;
        const enum gguf_type type = gguf_get_arr_type(g, id);
        const bool byte = type == GGUF_TYPE_BOOL || type == GGUF_TYPE_UINT8 || type == GGUF_TYPE_INT8,
                   word = type == GGUF_TYPE_UINT32 || type == GGUF_TYPE_INT32 || type == GGUF_TYPE_FLOAT32;
        const size_t size = byte ? 1 : 4;
        char *of_layers = byte || word ? malloc((size_t) n_layer * size) : NULL;
        for (int il = 0, kept; of_layers && il < n_layer; il++)
            if ((kept = kept_layer(j->p->prune_layers, il)) >= 0)
                memcpy(of_layers + (size_t) kept * size, (const char *) gguf_get_arr_data(g, id) + (size_t) il * size, size);
        if (of_layers) gguf_set_arr_data(g, key, type, of_layers, (size_t) kept_layer(j->p->prune_layers, n_layer));
        free(of_layers);
    }
}

static void first_keys(const struct job *j, struct gguf_context *g) {
    gguf_set_val_u32(g, "general.quantization_version", GGML_QNT_VERSION);
    if (!j->p->only_copy) gguf_set_val_u32(g, "general.file_type", (uint32_t) j->p->ftype);
    if (j->p->prune_layers) {
        char key[160];
        prune_arrays(j, g);
        snprintf(key, sizeof(key), "%s.block_count", j->arch_name);
        gguf_set_val_u32(g, key, (uint32_t) kept_layer(j->p->prune_layers, j->shape.n_layer));
    }
    meta_override(g, j->p->kv_overrides);
}

static enum err make_header(struct job *j, int i, const char *path) {
    struct output *o = &j->outs[i];
    int len = snprintf(o->path, sizeof(o->path), "%s", path);
    if (j->n_outs > 1) {
        const size_t n = strlen(path), cut = n > 5 && strcmp(path + n - 5, ".gguf") == 0 ? n - 5 : n;
        len = snprintf(o->path, sizeof(o->path), "%.*s-%05d-of-%05d.gguf", (int) cut, path, i + 1, j->n_outs);
    }
    if (len < 0 || len >= (int) sizeof(o->path)) return err_set(ERR_INVALID, "the path %s is too long", path);
    o->gguf = gguf_init_empty();
    o->ctx = ggml_init(
        (struct ggml_init_params){.mem_size = (size_t) (j->n_items + 1) * ggml_tensor_overhead(), .no_alloc = true});
    if (!o->gguf || !o->ctx) return ERR_NOMEM;
    gguf_set_kv(o->gguf, j->in.sources[j->n_outs > 1 ? i : 0].gguf);
    if (j->n_outs == 1) {
        gguf_remove_key(o->gguf, "split.no");
        gguf_remove_key(o->gguf, "split.count");
        gguf_remove_key(o->gguf, "split.tensors.count");
    } else {
        gguf_set_val_i32(o->gguf, "split.tensors.count", j->n_items);  // pruning takes some
    }
    if (i == 0) first_keys(j, o->gguf);
    uint64_t end = 0;
    for (int k = 0; k < j->n_items; k++) {
        struct item *it = &j->items[k];
        if (it->out != i) continue;
        struct ggml_tensor *t = ggml_new_tensor(o->ctx, it->type_out, 4, it->ne);
        if (ggml_is_error(t)) return ERR_NOMEM;
        ggml_set_name(t, it->name);
        gguf_add_tensor(o->gguf, t);
        it->offset_out = gguf_get_tensor_offset(o->gguf, gguf_get_n_tensors(o->gguf) - 1);
        if (it->offset_out + it->bytes_out > end) end = it->offset_out + it->bytes_out;
    }
    const uint64_t align = gguf_get_alignment(o->gguf);
    o->data_start = gguf_get_meta_size(o->gguf);
    o->size = o->data_start + (end + align - 1) / align * align;
    j->bytes_files += o->size;
    return ERR_OK;
}

// Writing over a file that is being read would destroy it, under whatever name.
static enum err check_output(const struct job *j, const struct output *o) {
    for (int s = 0; s < j->in.n_sources; s++)
        if (file_is(j->in.sources[s].file.fd, o->path))
            return err_set(ERR_INVALID, "%s is a file of the model that is to be quantized; name another output", o->path);
    return ERR_OK;
}

static enum err open_output(struct output *o) {
    if (file_replaceable(o->path) != 0) return err_set(ERR_IO, "cannot write %s: %s", o->path, strerror(errno));
    snprintf(o->tmp, sizeof(o->tmp), "%s.part", o->path);
    FILE *f = fopen(o->tmp, "wb");
    if (!f) return err_set(ERR_IO, "cannot write %s: %s", o->tmp, strerror(errno));
    const bool ok = gguf_write_to_file_ptr(o->gguf, f, true);
    const off_t at = ftello(f);
    if (fclose(f) != 0 || !ok) return ok ? err_set(ERR_IO, "writing %s failed: %s", o->tmp, strerror(errno)) : ERR_IO;
    if ((uint64_t) at != o->data_start)
        return err_set(ERR_FAILED, "the header of %s has %lld bytes instead of %" PRIu64, o->tmp, (long long) at,
                       o->data_start);
    o->fd = open(o->tmp, O_WRONLY | O_CLOEXEC);
    return o->fd >= 0 ? ERR_OK : err_set(ERR_IO, "cannot write %s: %s", o->tmp, strerror(errno));
}

// ---- the data -------------------------------------------------------------------------------------------------------------------

static int64_t n_rows(const struct item *it) { return it->ne[1] * it->ne[2] * it->ne[3]; }

static int n_threads(const struct job *j) { return j->p->nthread > 0 ? j->p->nthread : ggml_cpu_default_threads(); }

// A piece's rows as they are, as floats and as they are to be, one piece per thread, fit into max_buf_size.
static int64_t rows_per_piece(const struct job *j, const struct item *it) {
    if (it->ne[0] == 0) return 1;
    int64_t n = PIECE_VALUES / it->ne[0];
    if (j->p->max_buf_size > 0) {
        const size_t row = ggml_row_size(it->type_in, it->ne[0]) + (size_t) it->ne[0] * sizeof(float) +
                           ggml_row_size(it->type_out, it->ne[0]);
        const size_t most = j->p->max_buf_size / (size_t) n_threads(j) / row;
        if (most < (size_t) n) n = (int64_t) most;
    }
    return n < 1 ? 1 : n;
}

static int64_t n_pieces(const struct job *j, const struct item *it) {
    const int64_t per = rows_per_piece(j, it);
    return (n_rows(it) + per - 1) / per;
}

struct worker {
    char *in, *out;
    float *x;
    size_t in_room, out_room, x_room;
};

static bool room_for(void **buf, size_t *room, size_t need) {
    if (*room >= need) return true;
    void *p = malloc(need);
    if (!p) return false;
    free(*buf);
    *buf = p;
    *room = need;
    return true;
}

static enum err write_at(int fd, const char *data, size_t n, uint64_t at, const char *path) {
    while (n > 0) {
        const ssize_t did = pwrite(fd, data, n, (off_t) at);
        if (did < 0 && errno == EINTR) continue;
        if (did <= 0)
            return err_set(ERR_IO, "writing %s failed: %s", path, did < 0 ? strerror(errno) : "nothing was written");
        data += did;
        at += (uint64_t) did;
        n -= (size_t) did;
    }
    return ERR_OK;
}

// Encodes rows [r0, r0 + n) into w->out; each matrix of an expert has importance weights of its own.
static enum err encode(struct worker *w, const struct item *it, int64_t r0, int64_t n) {
    const size_t row_out = ggml_row_size(it->type_out, it->ne[0]);
    for (int64_t r = 0; r < n;) {
        const int64_t expert = (r0 + r) / it->ne[1], left = (expert + 1) * it->ne[1] - (r0 + r),
                      now = left < n - r ? left : n - r;
        const float *importance = it->importance ? it->importance + (expert % it->ne[2]) * it->ne[0] : NULL;
        const size_t wrote = ggml_quantize_chunk(it->type_out, w->x + r * it->ne[0], w->out + (size_t) r * row_out, 0, now,
                                                 it->ne[0], importance);
        if (wrote != (size_t) now * row_out)
            return err_set(ERR_FAILED, "tensor '%s', rows from %" PRId64 ": %s", it->from, r0 + r, ggml_last_error());
        // a value or a block's scale beyond the type's range is written as infinity: such a file must not come to be
        if (it->type_out != GGML_TYPE_F32 && !ggml_validate_row_data(it->type_out, w->out + (size_t) r * row_out, wrote))
            return err_set(ERR_FAILED, "tensor '%s', rows from %" PRId64 ", cannot be held by %s: %s", it->from, r0 + r,
                           ggml_type_name(it->type_out), ggml_last_error());
        r += now;
    }
    return ERR_OK;
}

static enum err do_piece(struct job *j, struct worker *w, const struct item *it, int64_t piece) {
    const int64_t per = rows_per_piece(j, it), r0 = piece * per, left = n_rows(it) - r0, n = left < per ? left : per;
    const size_t row_in = ggml_row_size(it->type_in, it->ne[0]), row_out = ggml_row_size(it->type_out, it->ne[0]);
    const struct output *o = &j->outs[it->out];
    if (!room_for((void **) &w->in, &w->in_room, (size_t) n * row_in))
        return err_set(ERR_NOMEM, "no memory for rows of '%s'", it->from);
    TRY(file_read(&j->in.sources[it->source].file, it->offset_in + (uint64_t) r0 * row_in, w->in, (size_t) n * row_in));
    const char *result = w->in;
    if (it->type_out != it->type_in) {
        if (!room_for((void **) &w->out, &w->out_room, (size_t) n * row_out) ||
            !room_for((void **) &w->x, &w->x_room, (size_t) (n * it->ne[0]) * sizeof(float)))
            return err_set(ERR_NOMEM, "no memory for rows of '%s'", it->from);
        if (it->type_in == GGML_TYPE_F32)
            memcpy(w->x, w->in, (size_t) n * row_in);
        else
            ggml_get_type_traits(it->type_in)->to_float(w->in, w->x, n * it->ne[0]);
        TRY(encode(w, it, r0, n));
        result = w->out;
    }
    return write_at(o->fd, result, (size_t) n * row_out, o->data_start + it->offset_out + (uint64_t) r0 * row_out, o->tmp);
}

static void work(int ith, int nth, void *data) {
    (void) nth;
    struct job *j = data;
    struct worker w = {0};
    int k = 0;
    const int64_t total = j->first_piece[j->n_items];
    while (!atomic_load(&j->failed)) {
        const int64_t i = atomic_fetch_add(&j->next, 1);
        if (i >= total) break;
        while (j->first_piece[k + 1] <= i) k++;
        if (do_piece(j, &w, &j->items[k], i - j->first_piece[k]) != ERR_OK) {
            // the sentence is this thread's: it is handed over to the caller's
            if (atomic_exchange(&j->message_taken, 1) == 0)
                snprintf(j->message, sizeof(j->message), "%s", ggml_last_error());
            atomic_store(&j->failed, 1);
        }
        const int64_t done = atomic_fetch_add(&j->done, 1) + 1;
        if (ith == 0 && j->progress && !j->progress((float) done / (float) total, j->progress_data))
            atomic_store(&j->failed, 2);
    }
    free(w.in);
    free(w.out);
    free(w.x);
}

static enum err write_data(struct job *j) {
    j->first_piece = calloc((size_t) j->n_items + 1, sizeof(*j->first_piece));
    if (!j->first_piece) return err_set(ERR_NOMEM, "no memory for %d tensors", j->n_items);
    for (int i = 0; i < j->n_items; i++) j->first_piece[i + 1] = j->first_piece[i] + n_pieces(j, &j->items[i]);
    ggml_parallel(n_threads(j), work, j);
    if (j->failed == 2) return err_set(ERR_ABORTED, "quantizing was cancelled");
    if (j->failed) return err_set(ERR_FAILED, "%s", j->message);
    for (int i = 0; i < j->n_outs; i++) {  // the last tensor's padding
        struct output *o = &j->outs[i];
        if (ftruncate(o->fd, (off_t) o->size) != 0) return err_set(ERR_IO, "writing %s failed: %s", o->tmp, strerror(errno));
    }
    return ERR_OK;
}

static enum err make_headers(struct job *j, const char *path) {
    j->n_outs = j->p->keep_split ? j->in.n_sources : 1;
    j->outs = calloc((size_t) j->n_outs, sizeof(*j->outs));
    if (!j->outs) return err_set(ERR_NOMEM, "no memory for %d files", j->n_outs);
    for (int i = 0; i < j->n_outs; i++) j->outs[i].fd = -1;
    for (int i = 0; i < j->n_outs; i++) TRY(make_header(j, i, path));
    if (j->n_fallback)
        ggml_log_write(GGML_LOG_LEVEL_WARN, "%d of %d tensors are written in another type than the mixture's: %s\n",
                       j->n_fallback, j->n_items, j->fallback);
    return ERR_OK;
}

static enum err write_files(struct job *j) {
    for (int i = 0; i < j->n_outs; i++) TRY(check_output(j, &j->outs[i]));
    for (int i = 0; i < j->n_outs; i++) TRY(open_output(&j->outs[i]));
    TRY(write_data(j));
    for (int i = 0; i < j->n_outs; i++) {
        struct output *o = &j->outs[i];
        const int fd = o->fd;
        o->fd = -1;
        if (close(fd) != 0) return err_set(ERR_IO, "writing %s failed: %s", o->tmp, strerror(errno));
    }
    for (int i = 0; i < j->n_outs; i++) {
        struct output *o = &j->outs[i];
        if (file_rename(o->tmp, o->path) != 0)
            return err_set(ERR_IO, "cannot rename %s to %s: %s", o->tmp, o->path, strerror(errno));
        o->tmp[0] = '\0';
    }
    return ERR_OK;
}

static void job_free(struct job *j) {
    for (int i = 0; i < j->n_outs && j->outs; i++) {
        struct output *o = &j->outs[i];
        if (o->fd >= 0) close(o->fd);
        if (o->tmp[0]) unlink(o->tmp);
        if (o->gguf) gguf_free(o->gguf);
        if (o->ctx) ggml_free(o->ctx);
    }
    free(j->outs);
    free(j->items);
    free(j->first_piece);
    sources_free(&j->in);
}

uint32_t llama_model_quantize_report(const char *fname_inp, const char *fname_out, const llama_model_quantize_params *params,
                                     llama_progress_callback progress, void *progress_data,
                                     struct llama_quantize_report *report) {
    const struct llama_model_quantize_params standard = llama_model_quantize_default_params();
    struct job *j = calloc(1, sizeof(*j));
    if (!j) return (uint32_t) err_set(ERR_NOMEM, "no memory to quantize %s", fname_inp ? fname_inp : "(null)");
    j->p = params ? params : &standard;
    j->progress = progress;
    j->progress_data = progress_data;
    enum err e = fname_inp && (fname_out || j->p->dry_run)
                     ? ERR_OK
                     : err_set(ERR_INVALID, "llama_model_quantize: a file name is NULL");
    if (e == ERR_OK) e = plan(j, fname_inp);
    if (e == ERR_OK) e = make_headers(j, fname_out ? fname_out : "");
    if (e == ERR_OK && report)
        *report = (struct llama_quantize_report){.n_tensors = (uint32_t) j->n_items,
                                                 .bytes_in = j->bytes_in,
                                                 .bytes_out = j->bytes_out,
                                                 .bytes_files = j->bytes_files};
    if (e == ERR_OK && !j->p->dry_run) e = write_files(j);
    if (e == ERR_OK)
        ggml_log_write(GGML_LOG_LEVEL_INFO, "%d tensors, %.2f MiB -> %.2f MiB\n", j->n_items, (double) j->bytes_in / 1048576,
                       (double) j->bytes_out / 1048576);
    job_free(j);
    free(j);
    return (uint32_t) e;
}

uint32_t llama_model_quantize(const char *fname_inp, const char *fname_out, const llama_model_quantize_params *params) {
    return llama_model_quantize_report(fname_inp, fname_out, params, NULL, NULL, NULL);
}

struct llama_model_quantize_params llama_model_quantize_default_params(void) {
    return (struct llama_model_quantize_params){.ftype = LLAMA_FTYPE_MOSTLY_Q8_0,
                                                .output_tensor_type = GGML_TYPE_COUNT,
                                                .token_embedding_type = GGML_TYPE_COUNT,
                                                .quantize_output_tensor = true};
}
