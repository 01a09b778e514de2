// While the vocabulary is read on one core, another enters the pages of the mapped weights that the system already holds in memory
// into the page table: in runs that takes a third of what as many page faults would cost the first tokens. Nothing is read from
// the disk for it (a page that is not in memory waits until it is needed), and nobody waits for it to end.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "model/model.h"

#define RUN_BYTES ((size_t) 1 << 20)

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14; before it, madvise says EINVAL and nothing is lost
#endif

struct prefault {
    pthread_t thread;
    atomic_bool stop;
    const struct llama_model *m;
};

// Rows that are looked up, of which a text needs few: with lazy_mode they are left until then.
static bool is_lazy(const struct llama_model *m, const struct model_tensor *t) {
    if (t->role != ROLE_EMBD && t->role != ROLE_EMBD_OTHER) return false;
    const bool tied = t->t == m->w.token_embd.w && !m->w.output.w;  // then the output reads all of them for every token
    if (m->params.lazy_mode == LLAMA_LAZY_MODE_ON) return !tied;
    return m->params.lazy_mode == LLAMA_LAZY_MODE_AUTO && !tied && ggml_nbytes(t->t) > (size_t) 4 << 30;
}

// Whether bytes [p, p + n) hold some of a lazy tensor.
static bool left_out(const struct llama_model *m, const char *p, size_t n) {
    for (int i = 0; i < m->n_tensors; i++) {
        const struct model_tensor *t = &m->tensors[i];
        if (!is_lazy(m, t) || !t->t->data) continue;
        const char *data = t->t->data;
        if (data < p + n && p < data + ggml_nbytes(t->t)) return true;
    }
    return false;
}

// Whether the byte at `at` can be had without waiting.
static bool in_memory(int fd, uint64_t at) {
    char c;
    return preadv2(fd, &(struct iovec){&c, 1}, 1, (off_t) at, RWF_NOWAIT) == 1;
}

static void *run(void *arg) {
    struct prefault *p = arg;
    for (int i = 0; i < p->m->n_maps; i++) {
        const struct model_map *map = &p->m->maps[i];
        const int fd = p->m->sources[map->source].file.fd;
        for (size_t at = 0; at < map->map.bytes; at += RUN_BYTES) {
            const size_t n = map->map.bytes - at < RUN_BYTES ? map->map.bytes - at : RUN_BYTES;
            if (atomic_load_explicit(&p->stop, memory_order_relaxed)) return NULL;
            if (left_out(p->m, (const char *) map->map.base + at, n)) continue;
            if (!in_memory(fd, map->at + at) || !in_memory(fd, map->at + at + n - 1)) continue;
            if (madvise((char *) map->map.base + at, n, MADV_POPULATE_READ) != 0) return NULL;
        }
    }
    return NULL;
}

struct prefault *prefault_begin(const struct llama_model *m) {
    if (m->n_maps == 0) return NULL;
    struct prefault *p = malloc(sizeof *p);
    if (!p) return NULL;
    atomic_init(&p->stop, false);
    p->m = m;
    if (pthread_create(&p->thread, NULL, run, p) == 0) return p;
    free(p);
    return NULL;
}

void prefault_end(struct prefault *p) {
    if (!p) return;
    atomic_store_explicit(&p->stop, true, memory_order_relaxed);
    pthread_join(p->thread, NULL);
    free(p);
}
