// Bytes of the weights: mapped and used in place where the device takes host pointers, else read into buffers.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "model/model.h"

#define STAGING_BYTES ((size_t) 4 << 20)
#define NO_PLACE ((void *) 64)  // of tensors that are only planned: never used, says that they need no memory

struct loader {
    struct llama_model *m;
    bool mlock, direct;
    bool lock_warned;
    uint64_t done;
    char *staging;   // aligned for direct reading, STAGING_BYTES
    int *direct_fd;  // per source, -1: not open
};

static bool report(struct loader *l) {
    const struct llama_model_params *p = &l->m->params;
    if (!p->progress_callback) return true;
    const float f = l->m->n_bytes ? (float) ((double) l->done / (double) l->m->n_bytes) : 1.0f;
    return p->progress_callback(f < 1.0f ? f : 1.0f, p->progress_callback_user_data);
}

static enum err cancelled(void) { return err_set(ERR_ABORTED, "loading was cancelled by the progress callback"); }

static void lock_pages(struct loader *l, const void *p, size_t n) {
    if (!l->mlock || !n || mlock(p, n) == 0 || l->lock_warned) return;
    l->lock_warned = true;
    log_warn("the weights can't be locked in memory (%zu bytes; see `ulimit -l`); going on without\n", n);
}

static uint64_t file_offset(const struct llama_model *m, const struct model_tensor *t) {
    const struct source *s = &m->sources[t->source];
    return s->base + gguf_get_data_offset(s->gguf) + gguf_get_tensor_offset(s->gguf, t->id);
}

static enum err keep_buffer(struct llama_model *m, ggml_backend_buffer_t buf) {
    ggml_backend_buffer_t *b = realloc(m->bufs, (size_t) (m->n_bufs + 1) * sizeof *b);
    if (!b) {
        ggml_backend_buffer_free(buf);
        return err_set(ERR_NOMEM, "no memory for the list of buffers");
    }
    m->bufs = b;
    m->bufs[m->n_bufs++] = buf;
    ggml_backend_buffer_set_usage(buf, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    return ERR_OK;
}

// ---- mapped ---------------------------------------------------------------------------------------------------------

struct span {
    struct model_tensor *t;
    uint64_t at;
    ggml_backend_buffer_type_t buft;
};

static int by_place(const void *a, const void *b) {
    const struct span *x = a, *y = b;
    if (x->t->source != y->t->source) return x->t->source < y->t->source ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static bool takes_host_pointers(const struct llama_model *m, ggml_backend_buffer_type_t buft) {
    if (buft == ggml_backend_cpu_buffer_type()) return true;
    ggml_backend_dev_t dev = ggml_backend_buft_get_device(buft);
    if (!dev || dev == m->cpu || buft != ggml_backend_dev_buffer_type(dev)) return false;
    struct ggml_backend_dev_props props;
    ggml_backend_dev_get_props(dev, &props);
    return props.caps.buffer_from_host_ptr;
}

// A run of neighbouring tensors becomes one mapping and one buffer. What no tensor of the kind needs is never mapped.
static enum err map_run(struct loader *l, struct span *s, int n) {
    struct llama_model *m = l->m;
    const struct source *src = &m->sources[s[0].t->source];
    const uint64_t first = s[0].at, end = s[n - 1].at + ggml_nbytes(s[n - 1].t->t);
    struct model_map *maps = realloc(m->maps, (size_t) (m->n_maps + 1) * sizeof *maps);
    if (!maps) return err_set(ERR_NOMEM, "no memory for the list of mappings");
    m->maps = maps;
    struct model_map *map = &maps[m->n_maps];
    memset(map, 0, sizeof *map);
    TRY(file_map(&src->file, first, end - first, &map->map));
    map->source = s[0].t->source;
    map->at = first - (uint64_t) (map->map.data - (const char *) map->map.base);
    m->n_maps++;
    size_t largest = 0;
    for (int i = 0; i < n; i++)
        if (ggml_nbytes(s[i].t->t) > largest) largest = ggml_nbytes(s[i].t->t);
    char *base = (char *) (uintptr_t) map->map.data;
    ggml_backend_buffer_t buf = s[0].buft == ggml_backend_cpu_buffer_type()
                                    ? ggml_backend_cpu_buffer_from_ptr(base, (size_t) (end - first))
                                    : ggml_backend_dev_buffer_from_host_ptr(ggml_backend_buft_get_device(s[0].buft), base,
                                                                            (size_t) (end - first), largest);
    if (!buf)
        return err_set(ERR_NOMEM, "the mapped weights (%llu bytes) can't be given to %s", (unsigned long long) (end - first),
                       ggml_backend_buft_name(s[0].buft));
    map->buf = buf;
    TRY(keep_buffer(m, buf));
    char *at = ggml_backend_buffer_get_base(buf);
    for (int i = 0; i < n; i++)
        if (ggml_backend_tensor_alloc(buf, s[i].t->t, at + (s[i].at - first)) != GGML_STATUS_SUCCESS)
            return err_set(ERR_FAILED, "tensor %s can't be placed in its mapping", s[i].t->t->name);
    lock_pages(l, map->map.base, map->map.bytes);
    return ERR_OK;
}

static bool mappable(const struct llama_model *m, const struct model_tensor *t) {
    if (t->source < 0 || ggml_nbytes(t->t) == 0 || !takes_host_pointers(m, t->buft)) return false;
    const size_t align = ggml_backend_buft_get_alignment(t->buft);
    return file_offset(m, t) % (align < 32 ? align : 32) == 0;
}

static bool wants_mmap(const struct llama_model *m) {
    const enum llama_load_mode mode = m->params.load_mode;
    return (mode == LLAMA_LOAD_MODE_AUTO || mode == LLAMA_LOAD_MODE_MMAP || mode == LLAMA_LOAD_MODE_MMAP_MLOCK) &&
           m->n_sources > 0;
}

bool data_is_mapped(const struct llama_model *m, const struct model_tensor *t) { return wants_mmap(m) && mappable(m, t); }

// What is to be mapped, in the order of the files; NULL: no memory.
static struct span *spans_of(const struct llama_model *m, int *n) {
    struct span *s = malloc(((size_t) m->n_tensors + 1) * sizeof *s);
    *n = 0;
    for (int i = 0; s && i < m->n_tensors; i++) {
        struct model_tensor *t = &m->tensors[i];
        if (mappable(m, t)) s[(*n)++] = (struct span){t, file_offset(m, t), t->buft};
    }
    if (s)
        qsort(s, (size_t) *n, sizeof *s, by_place);
    else
        (void) err_set(ERR_NOMEM, "no memory to place %d tensors", m->n_tensors);
    return s;
}

static uint64_t span_end(const struct span *s) { return s->at + ggml_nbytes(s->t->t); }

// The run of neighbours that begins at span i ends before this one.
static int run_end(const struct span *s, int i, int n) {
    int j = i + 1;
    while (j < n && s[j].t->source == s[i].t->source && s[j].buft == s[i].buft && s[j].at >= span_end(&s[j - 1]) &&
           s[j].at - span_end(&s[j - 1]) < 65536)
        j++;
    return j;
}

static enum err map_weights(struct loader *l) {
    int n;
    struct span *s = spans_of(l->m, &n);
    if (!s) return ERR_NOMEM;
    enum err e = ERR_OK;
    for (int i = 0, j; i < n && e == ERR_OK; i = j) {
        j = run_end(s, i, n);
        e = map_run(l, s + i, j - i);
    }
    free(s);
    return e;
}

size_t data_mapped_bytes(const struct llama_model *m, ggml_backend_buffer_type_t buft, int *n_maps) {
    size_t bytes = 0;
    int n;
    *n_maps = 0;
    struct span *s = wants_mmap(m) ? spans_of(m, &n) : NULL;
    if (!s) return 0;
    for (int i = 0, j; i < n; i = j) {
        j = run_end(s, i, n);
        if (s[i].buft != buft) continue;
        bytes += file_map_bytes(s[i].at, span_end(&s[j - 1]) - s[i].at);
        ++*n_maps;
    }
    free(s);
    return bytes;
}

// ---- read -----------------------------------------------------------------------------------------------------------

static enum err read_direct(struct loader *l, const struct model_tensor *t, uint64_t at, char *dst, size_t n) {
    const int fd = l->direct_fd[t->source];
    while (n) {
        const uint64_t page = at & ~(uint64_t) 4095;
        const ssize_t got = pread(fd, l->staging, STAGING_BYTES, (off_t) page);
        if (got <= (ssize_t) (at - page)) return file_read(&l->m->sources[t->source].file, at, dst, n);
        size_t have = (size_t) got - (size_t) (at - page);
        if (have > n) have = n;
        memcpy(dst, l->staging + (at - page), have);
        dst += have;
        at += have;
        n -= have;
    }
    return ERR_OK;
}

static enum err read_bytes(struct loader *l, const struct model_tensor *t, uint64_t at, char *dst, size_t n) {
    if (l->direct && l->direct_fd[t->source] >= 0) return read_direct(l, t, at, dst, n);
    return file_read(&l->m->sources[t->source].file, at, dst, n);
}

// Through a bounded staging buffer into memory that the host can't write.
static enum err read_tensor(struct loader *l, struct model_tensor *t) {
    const size_t n = ggml_nbytes(t->t);
    const uint64_t at = file_offset(l->m, t);
    if (ggml_backend_buffer_is_host(t->t->buffer)) return read_bytes(l, t, at, t->t->data, n);
    char *chunk = malloc(STAGING_BYTES);
    if (!chunk) return err_set(ERR_NOMEM, "no memory for a staging buffer of %zu bytes", STAGING_BYTES);
    enum err e = ERR_OK;
    for (size_t off = 0; off < n && e == ERR_OK; off += STAGING_BYTES) {
        const size_t k = n - off < STAGING_BYTES ? n - off : STAGING_BYTES;
        e = read_bytes(l, t, at + off, chunk, k);
        if (e == ERR_OK) ggml_backend_tensor_set(t->t, chunk, off, k);
    }
    free(chunk);
    return e;
}

// How many layers' weights fit into n bytes of a kind of buffer, taken as -ngl counts: the output (a layer of its own), then from the last
// layer on. *of: how many there are.
static int layers_in(const struct llama_model *m, ggml_backend_buffer_type_t buft, size_t n, int *of) {
    const size_t align = ggml_backend_buft_get_alignment(buft);
    size_t sum = 0;
    int fit = 0;
    *of = 0;
    for (int il = m->n_layers_alloc; il >= 0; il--) {
        const int layer = il == m->n_layers_alloc ? -1 : il;
        size_t bytes = 0;
        for (int i = 0; i < m->n_tensors; i++)
            if (m->tensors[i].buft == buft && m->tensors[i].layer == layer)
                bytes += GGML_PAD(ggml_backend_buft_get_alloc_size(buft, m->tensors[i].t), align);
        if (!bytes) continue;
        sum += bytes;
        ++*of;
        if (sum <= n) fit = *of;
    }
    return fit;
}

// needed: 0 where a single tensor is larger than any buffer: the sentence that says so stays.
static enum err no_room(const struct llama_model *m, ggml_backend_buffer_type_t buft, size_t needed) {
    const char *name = ggml_backend_buft_name(buft);
    char why[256];
    size_t room = 0, total;
    int of;
    ggml_backend_dev_memory(ggml_backend_buft_get_device(buft), &room, &total);
    const int fit = layers_in(m, buft, room, &of);
    snprintf(why, sizeof why, "%s", ggml_last_error());
    if (!needed)
        return err_set(ERR_NOMEM,
                       "no room for the weights in %s: %s; %zu bytes are free there, enough for the weights of %d of its %d "
                       "layers (-ngl)",
                       name, why, room, fit, of);
    return err_set(ERR_NOMEM,
                   "no room for the weights: %zu bytes are needed in %s and %zu are free, enough for the weights of %d of "
                   "its %d layers (-ngl)",
                   needed, name, room, fit, of);
}

// Buffers for all tensors that have none yet. With no_alloc an empty buffer only says where they would be.
static enum err make_buffers(struct loader *l) {
    struct llama_model *m = l->m;
    for (int i = 0; m->params.no_alloc && i < m->n_tensors; i++)  // what would be mapped has no place in them
        if (data_is_mapped(m, &m->tensors[i])) m->tensors[i].t->data = NO_PLACE;
    for (int p = 0; p < m->home.n; p++) {
        const ggml_backend_buffer_type_t buft = m->home.part[p].buft;
        struct ggml_context *ctx = m->home.part[p].ctx;
        bool missing = false;
        for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) missing |= !t->buffer;
        if (!missing) continue;
        ggml_backend_buffer_t buf;
        home_plan(&m->home, p);
        if (m->params.no_alloc) {
            buf = ggml_backend_buft_alloc_buffer(buft, 0);
            if (!buf) return err_set(ERR_NOMEM, "%s gives no buffer", ggml_backend_buft_name(buft));
            for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
                t->buffer = buf;
                t->data = NO_PLACE;
            }
        } else {
            buf = ggml_backend_alloc_ctx_tensors_from_buft(ctx, buft);
            if (!buf) return no_room(m, buft, ggml_backend_alloc_ctx_tensors_from_buft_size(ctx, buft));
            if (ggml_backend_buffer_is_host(buf))
                lock_pages(l, ggml_backend_buffer_get_base(buf), ggml_backend_buffer_get_size(buf));
        }
        TRY(keep_buffer(m, buf));
    }
    return ERR_OK;
}

static bool is_mapped(const struct llama_model *m, const struct ggml_tensor *t) {
    for (int i = 0; i < m->n_maps; i++)
        if (m->maps[i].buf && t->buffer == m->maps[i].buf) return true;
    return false;
}

enum err data_whole(const struct llama_model *m) {
    for (int i = 0; i < m->n_maps; i++) {
        const struct model_map *map = &m->maps[i];
        TRY(file_reaches(&m->sources[map->source].file, map->at + map->map.bytes));
    }
    return ERR_OK;
}

static enum err validate(const struct llama_model *m, const struct model_tensor *t) {
    if (!ggml_backend_buffer_is_host(t->t->buffer)) return ERR_OK;
    (void) m;
    if (ggml_validate_row_data(t->t->type, t->t->data, ggml_nbytes(t->t))) return ERR_OK;
    return err_set(ERR_FORMAT, "tensor %s holds values that can't be (%s)", t->t->name, ggml_last_error());
}

static enum err fill_all(struct loader *l, llama_model_set_tensor_data_t set, void *ud) {
    struct llama_model *m = l->m;
    for (int i = 0; i < m->n_tensors; i++) {
        struct model_tensor *t = &m->tensors[i];
        if (t->source < 0) {
            if (set) set(t->t, ud);
        } else if (!is_mapped(m, t->t)) {
            TRY(read_tensor(l, t));
        }
        if (m->params.check_tensors) {
            TRY(data_whole(m));
            TRY(validate(m, t));
        }
        l->done += ggml_nbytes(t->t);
        if (!report(l)) return cancelled();
    }
    return ERR_OK;
}

static void open_direct(struct loader *l) {
    struct llama_model *m = l->m;
    l->direct_fd = malloc(((size_t) m->n_sources + 1) * sizeof *l->direct_fd);
    if (!l->direct_fd || posix_memalign((void **) &l->staging, 4096, STAGING_BYTES) != 0) {
        l->direct = false;
        return;
    }
    for (int i = 0; i < m->n_sources; i++) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", m->sources[i].file.fd);
        l->direct_fd[i] = open(link, O_RDONLY | O_DIRECT);  // file systems without it: read as usual
    }
}

static void close_direct(struct loader *l) {
    for (int i = 0; l->direct_fd && i < l->m->n_sources; i++)
        if (l->direct_fd[i] >= 0) close(l->direct_fd[i]);
    free(l->direct_fd);
    free(l->staging);
}

static bool wants_lock(const struct llama_model *m) {
    return m->params.load_mode == LLAMA_LOAD_MODE_MLOCK || m->params.load_mode == LLAMA_LOAD_MODE_MMAP_MLOCK;
}

enum err data_map(struct llama_model *m) {
    struct loader l = {.m = m, .mlock = wants_lock(m)};
    if (!report(&l)) return cancelled();
    return wants_mmap(m) && !m->params.no_alloc ? map_weights(&l) : ERR_OK;
}

enum err data_load(struct llama_model *m, llama_model_set_tensor_data_t set, void *ud) {
    struct loader l = {.m = m, .mlock = wants_lock(m)};
    l.direct = m->params.load_mode == LLAMA_LOAD_MODE_DIRECT_IO && m->n_sources > 0;
    if (m->params.no_alloc) return make_buffers(&l);
    TRY(make_buffers(&l));
    if (l.direct) open_direct(&l);
    const enum err e = fill_all(&l, set, ud);
    if (l.direct || l.direct_fd) close_direct(&l);
    return e;
}

void data_free(struct llama_model *m) {
    for (int i = 0; i < m->n_bufs; i++) ggml_backend_buffer_free(m->bufs[i]);
    for (int i = 0; i < m->n_maps; i++) file_unmap(&m->maps[i].map);
    free(m->bufs);
    free(m->maps);
    m->bufs = NULL;
    m->maps = NULL;
    m->n_bufs = m->n_maps = 0;
    home_free(&m->home);
}
