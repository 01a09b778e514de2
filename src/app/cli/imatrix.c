// Importance matrices: reading, collecting, writing.
#include "cli/imatrix.h"
#include "base/file.h"
#include "cli/console.h"
#include "gguf.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct entry {
    char *name;
    int64_t n_column;
    int n_expert;
    float *sums;    // [n_expert][n_column]
    float *counts;  // [n_expert]
};

struct imatrix {
    struct entry *entries;
    int n, room;
    int *index;  // open-addressing hash of names, n_index a power of two
    int n_index;
    int n_read;          // entries that came from files
    char *datasets[32];  // names of the texts; of more, the rest are left out
    int n_datasets;
    uint32_t n_chunk, chunk_size;
    struct llama_model_imatrix_data *data;
};

static uint64_t hash(const char *s) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s; s++) h = (h ^ (unsigned char) *s) * 0x100000001b3u;
    return h;
}

static int slot(const struct imatrix *m, const char *name) {
    int i = (int) (hash(name) & (uint64_t) (m->n_index - 1));
    while (m->index[i] >= 0 && strcmp(m->entries[m->index[i]].name, name) != 0) i = (i + 1) & (m->n_index - 1);
    return i;
}

static int grow(struct imatrix *m) {
    const int room = m->room ? 2 * m->room : 64;
    struct entry *entries = realloc(m->entries, sizeof(*entries) * (size_t) room);
    int *index = malloc(sizeof(int) * 4 * (size_t) room);
    if (entries) m->entries = entries;
    if (!entries || !index) {
        free(index);
        return console_error("no memory for %d importance entries", room);
    }
    free(m->index);
    m->index = index;
    m->n_index = 4 * room;
    m->room = room;
    for (int i = 0; i < m->n_index; i++) index[i] = -1;
    for (int i = 0; i < m->n; i++) index[slot(m, entries[i].name)] = i;
    return 0;
}

struct imatrix *imatrix_new(void) {
    struct imatrix *m = calloc(1, sizeof(*m));
    if (m && grow(m)) {
        free(m);
        m = NULL;
    }
    return m;
}

static struct entry *entry_get(struct imatrix *m, const char *name, int64_t n_column, int n_expert) {
    if (m->n == m->room && grow(m)) return NULL;
    const int at = slot(m, name);
    if (m->index[at] >= 0) {
        struct entry *e = &m->entries[m->index[at]];
        if (e->n_column == n_column && e->n_expert == n_expert) return e;
        console_error("importance of '%s': %lld columns and %d experts, but %lld and %d before", name, (long long) n_column,
                      n_expert, (long long) e->n_column, e->n_expert);
        return NULL;
    }
    struct entry e = {strdup(name), n_column, n_expert, calloc((size_t) (n_column * n_expert), sizeof(float)),
                      calloc((size_t) n_expert, sizeof(float))};
    if (!e.name || !e.sums || !e.counts) {
        free(e.name);
        free(e.sums);
        free(e.counts);
        console_error("no memory for the importance of '%s'", name);
        return NULL;
    }
    m->index[at] = m->n;
    m->entries[m->n] = e;
    return &m->entries[m->n++];
}

int imatrix_add(struct imatrix *m, const char *name, const float *x, int64_t n_column, int expert, int n_expert) {
    struct entry *e = entry_get(m, name, n_column, n_expert);
    if (!e) return 1;
    float *sums = e->sums + (size_t) expert * (size_t) n_column;
    for (int64_t i = 0; i < n_column; i++) {
        if (!isfinite(x[i]))
            return console_error("the activations of '%s' are not finite at column %lld", name, (long long) i);
        sums[i] += x[i] * x[i];
        if (!isfinite(sums[i]))
            return console_error("the squares of the activations of '%s' overflow at column %lld", name, (long long) i);
    }
    e->counts[expert] += 1.0f;
    return 0;
}

// The means: columns that no token reached count as 1, which is no preference.
static int make_data(struct imatrix *m) {
    m->data = calloc((size_t) m->n + 1, sizeof(*m->data));
    if (!m->data) return console_error("no memory for %d importance entries", m->n);
    for (int i = 0; i < m->n; i++) {
        struct entry *e = &m->entries[i];
        for (int x = 0; x < e->n_expert; x++) {
            float *s = e->sums + (size_t) x * (size_t) e->n_column;
            for (int64_t k = 0; k < e->n_column; k++) {
                s[k] = e->counts[x] > 0 ? s[k] / e->counts[x] : 1.0f;
                if (!isfinite(s[k]))
                    return console_error("the importance of '%s' overflows at column %lld", e->name, (long long) k);
            }
        }
        m->data[i] = (struct llama_model_imatrix_data){e->name, e->sums, (size_t) e->n_column * (size_t) e->n_expert};
    }
    return 0;
}

static bool one_of(const char *name, const char *const *parts, int n) {
    for (int i = 0; i < n; i++)
        if (strstr(name, parts[i])) return true;
    return false;
}

void imatrix_select(struct imatrix *m, const char *const *only, int n_only, const char *const *without, int n_without) {
    struct llama_model_imatrix_data *to = m->data;
    for (const struct llama_model_imatrix_data *d = m->data; d->name; d++)
        if ((n_only == 0 || one_of(d->name, only, n_only)) && !one_of(d->name, without, n_without)) *to++ = *d;
    *to = (struct llama_model_imatrix_data){0};
}

static void add_dataset(struct imatrix *m, const char *name) {
    const int most = (int) (sizeof(m->datasets) / sizeof(m->datasets[0]));
    if (m->n_datasets < most && (m->datasets[m->n_datasets] = strdup(name))) m->n_datasets++;
}

static const struct ggml_tensor *partner(struct ggml_context *ctx, const char *name, size_t n_base, const char *suffix) {
    char full[GGML_MAX_NAME * 2];
    snprintf(full, sizeof(full), "%.*s%s", (int) n_base, name, suffix);
    return ggml_get_tensor(ctx, full);
}

static int load_entry(struct imatrix *m, const char *path, struct ggml_context *ctx, const struct ggml_tensor *sums,
                      size_t n_base) {
    char name[GGML_MAX_NAME];
    const struct ggml_tensor *counts = partner(ctx, sums->name, n_base, ".counts");
    snprintf(name, sizeof(name), "%.*s", (int) n_base, sums->name);
    const int64_t n_expert = sums->ne[1] * sums->ne[2];
    if (!counts || counts->type != GGML_TYPE_F32 || sums->type != GGML_TYPE_F32 || ggml_nelements(counts) != n_expert)
        return console_error("%s: '%s' has no fitting counts", path, name);
    if (ggml_is_empty(sums)) return console_error("%s: '%s' holds no values", path, sums->name);
    struct entry *e = entry_get(m, name, sums->ne[0], (int) n_expert);
    if (!e) return 1;
    m->n_read++;
    const float *from = sums->data, *n_rows = counts->data;
    for (int64_t i = 0; i < ggml_nelements(sums); i++) {
        if (!isfinite(from[i]) || from[i] < 0)
            return console_error("%s: the importance of '%s' is %g at %lld; measure it again", path, name, (double) from[i],
                                 (long long) i);
        e->sums[i] += from[i];
    }
    for (int64_t i = 0; i < n_expert; i++) {
        if (!isfinite(n_rows[i]) || n_rows[i] < 0)
            return console_error("%s: the count of '%s' is %g", path, name, (double) n_rows[i]);
        e->counts[i] += n_rows[i];
    }
    return 0;
}

// The form before GGUF: i32 entries, each i32 length and name, i32 n_call, i32 n_value, and the means times n_call as f32; then, in most,
// i32 chunks, i32 length and the text's name. Little-endian.
static bool read_i32(FILE *f, int32_t lo, int32_t hi, int32_t *out) {
    unsigned char b[4];
    if (fread(b, 1, 4, f) != 4) return false;
    *out = (int32_t) ((uint32_t) b[0] | (uint32_t) b[1] << 8 | (uint32_t) b[2] << 16 | (uint32_t) b[3] << 24);
    return *out >= lo && *out <= hi;
}

static int add_older_entry(struct imatrix *m, const char *path, FILE *f) {
    char name[256];
    int32_t len, n_call, n;
    if (!read_i32(f, 1, sizeof(name) - 1, &len) || fread(name, 1, (size_t) len, f) != (size_t) len)
        return console_error("%s holds no importance matrix", path);
    name[len] = 0;
    if (!read_i32(f, 0, INT32_MAX, &n_call) || !read_i32(f, 1, 1 << 28, &n))
        return console_error("%s: '%s' ends early", path, name);
    struct entry *e = entry_get(m, name, n, 1);
    if (!e) return 1;
    for (int32_t i = 0; i < n; i++) {
        int32_t bits;
        float x;
        if (!read_i32(f, INT32_MIN, INT32_MAX, &bits)) return console_error("%s: '%s' ends early", path, name);
        memcpy(&x, &bits, sizeof(x));
        if (!isfinite(x) || x < 0)
            return console_error("%s: the importance of '%s' is %g at %d; measure it again", path, name, (double) x, i);
        e->sums[i] += x;
    }
    e->counts[0] += (float) n_call;
    return 0;
}

// 0, 1 after a sentence, -1: the file isn't of that form.
static int add_older(struct imatrix *m, const char *path) {
    char magic[4];
    int32_t n = 0;
    FILE *f = file_replaceable(path) == 0 ? fopen(path, "rb") : NULL;  // a pipe would be waited for
    if (!f) return -1;
    int status = fread(magic, 1, 4, f) == 4 && memcmp(magic, "GGUF", 4) != 0 && fseek(f, 0, SEEK_SET) == 0 &&
                         read_i32(f, 1, 1 << 20, &n)
                     ? 0
                     : -1;
    for (int32_t i = 0; i < n && !status; i++) status = add_older_entry(m, path, f);
    int32_t n_chunk = 0, len = 0;
    char name[4096] = "";
    if (!status && read_i32(f, 0, INT32_MAX, &n_chunk) && read_i32(f, 1, sizeof(name) - 1, &len) &&
        fread(name, 1, (size_t) len, f) == (size_t) len)
        add_dataset(m, name);
    m->n_chunk += (uint32_t) n_chunk;
    fclose(f);
    return status;
}

static uint32_t get_u32(const struct gguf_context *g, const char *key) {
    const int64_t id = gguf_find_key(g, key);
    return id >= 0 && gguf_get_kv_type(g, id) == GGUF_TYPE_UINT32 ? gguf_get_val_u32(g, id) : 0;
}

static void load_about(struct imatrix *m, const struct gguf_context *g) {
    const int64_t id = gguf_find_key(g, "imatrix.datasets");
    if (id >= 0 && gguf_get_kv_type(g, id) == GGUF_TYPE_ARRAY && gguf_get_arr_type(g, id) == GGUF_TYPE_STRING)
        for (size_t i = 0; i < gguf_get_arr_n(g, id); i++) add_dataset(m, gguf_get_arr_str(g, id, i));
    m->n_chunk += get_u32(g, "imatrix.chunk_count");
    m->chunk_size = get_u32(g, "imatrix.chunk_size");
}

int imatrix_merge(struct imatrix *m, const char *path) {
    int status = add_older(m, path);
    if (status >= 0) return status;
    struct ggml_context *ctx = NULL;
    struct gguf_context *g = gguf_init_from_file(path, (struct gguf_init_params){.no_alloc = false, .ctx = &ctx});
    status = g ? 0 : console_library_error();
    const int before = m->n_read;
    for (struct ggml_tensor *t = ctx ? ggml_get_first_tensor(ctx) : NULL; t && !status; t = ggml_get_next_tensor(ctx, t)) {
        static const char suffix[] = ".in_sum2";
        const size_t n = strlen(t->name), k = sizeof(suffix) - 1;
        if (n > k && strcmp(t->name + n - k, suffix) == 0) status = load_entry(m, path, ctx, t, n - k);
    }
    if (!status) load_about(m, g);
    if (!status && m->n_read == before)
        status = console_error("%s holds no importance matrix (tensors NAME.in_sum2 and NAME.counts)", path);
    if (g) gguf_free(g);
    if (ctx) ggml_free(ctx);
    return status;
}

struct imatrix *imatrix_load(const char *path) {
    struct imatrix *m = imatrix_new();
    if (m && imatrix_merge(m, path) == 0 && make_data(m) == 0) return m;
    imatrix_free(m);
    return NULL;
}

const struct llama_model_imatrix_data *imatrix_data(const struct imatrix *m) { return m->data; }

void imatrix_about(const struct imatrix *m, const char *path, struct llama_model_kv_override out[5]) {
    int n_entries = 0, n = 0;
    while (m->data[n_entries].name) n_entries++;
    const struct {
        const char *key, *text;
        int64_t number;
    } about[] = {{"quantize.imatrix.file", path, 0},
                 {"quantize.imatrix.dataset", m->n_datasets ? m->datasets[0] : NULL, 0},
                 {"quantize.imatrix.entries_count", NULL, n_entries},
                 {"quantize.imatrix.chunks_count", NULL, m->n_chunk}};
    for (int i = 0; i < 4; i++) {
        if (!about[i].text && !about[i].number) continue;
        struct llama_model_kv_override *o = &out[n++];
        *o = (struct llama_model_kv_override){.tag = LLAMA_KV_OVERRIDE_TYPE_INT, .val_i64 = about[i].number};
        snprintf(o->key, sizeof(o->key), "%s", about[i].key);
        if (!about[i].text) continue;
        o->tag = LLAMA_KV_OVERRIDE_TYPE_STR;
        snprintf(o->val_str, sizeof(o->val_str), "%s", about[i].text);
    }
    out[n].key[0] = '\0';
}

void imatrix_free(struct imatrix *m) {
    if (!m) return;
    for (int i = 0; i < m->n; i++) {
        free(m->entries[i].name);
        free(m->entries[i].sums);
        free(m->entries[i].counts);
    }
    for (int i = 0; i < m->n_datasets; i++) free(m->datasets[i]);
    free(m->entries);
    free(m->index);
    free(m->data);
    free(m);
}

static int add_tensors(const struct imatrix *m, struct ggml_context *ctx, struct gguf_context *g) {
    for (int i = 0; i < m->n; i++) {
        const struct entry *e = &m->entries[i];
        struct ggml_tensor *sums = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, e->n_column, e->n_expert);
        struct ggml_tensor *counts = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 1, e->n_expert);
        if (ggml_nelements(sums) != e->n_column * e->n_expert || !sums->data || !counts->data)
            return console_library_error();
        memcpy(sums->data, e->sums, ggml_nbytes(sums));
        memcpy(counts->data, e->counts, ggml_nbytes(counts));
        ggml_format_name(sums, "%s.in_sum2", e->name);
        ggml_format_name(counts, "%s.counts", e->name);
        gguf_add_tensor(g, sums);
        gguf_add_tensor(g, counts);
    }
    return 0;
}

int imatrix_save(struct imatrix *m, const char *path, const char *dataset, int n_chunk, int chunk_size) {
    if (dataset) add_dataset(m, dataset);
    m->n_chunk += (uint32_t) n_chunk;
    if (chunk_size) m->chunk_size = (uint32_t) chunk_size;
    size_t bytes = 1 << 16;
    for (int i = 0; i < m->n; i++)
        bytes += 2 * (ggml_tensor_overhead() + 64) +
                 sizeof(float) * (size_t) m->entries[i].n_expert * (size_t) (m->entries[i].n_column + 2);
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){.mem_size = bytes});
    struct gguf_context *g = gguf_init_empty();
    int status = ctx && g ? 0 : console_library_error();
    if (!status) {
        gguf_set_val_str(g, "general.type", "imatrix");
        gguf_set_arr_str(g, "imatrix.datasets", (const char **) m->datasets, (size_t) m->n_datasets);
        gguf_set_val_u32(g, "imatrix.chunk_count", m->n_chunk);
        gguf_set_val_u32(g, "imatrix.chunk_size", m->chunk_size);
        status = add_tensors(m, ctx, g);
    }
    if (!status && !gguf_write_to_file(g, path, false)) status = console_library_error();
    if (g) gguf_free(g);
    if (ctx) ggml_free(ctx);
    return status;
}
