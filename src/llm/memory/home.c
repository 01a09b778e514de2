// Tensors by kind of buffer: one context and one buffer for each kind.
#include <string.h>

#include "ggml/plan.h"
#include "memory/memory.h"

struct ggml_context *home_ctx(struct tensor_home *h, ggml_backend_buffer_type_t buft, int n_max_tensors) {
    for (int i = 0; i < h->n; i++)
        if (h->part[i].buft == buft) return h->part[i].ctx;
    if (h->n == (int) (sizeof h->part / sizeof *h->part)) return NULL;
    const struct ggml_init_params p = {.mem_size = (size_t) (n_max_tensors + 1) * ggml_tensor_overhead(), .no_alloc = true};
    struct ggml_context *ctx = ggml_init(p);
    if (!ctx) return NULL;
    h->part[h->n].buft = buft;
    h->part[h->n].ctx = ctx;
    h->part[h->n++].buf = NULL;
    return ctx;
}

// Bytes of what has no place yet.
static size_t bytes_of(struct ggml_context *ctx, ggml_backend_buffer_type_t buft) {
    const size_t align = ggml_backend_buft_get_alignment(buft);
    size_t n = 0;
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t))
        if (!t->data) n += GGML_PAD(ggml_backend_buft_get_alloc_size(buft, t), align);
    return n;
}

void home_plan(struct tensor_home *h, int i) {
    h->part[i].planned = ggml_backend_alloc_ctx_tensors_from_buft_size(h->part[i].ctx, h->part[i].buft);
    // a tensor larger than any buffer: none will hold it, and the plan is to say what it would take
    if (!h->part[i].planned) h->part[i].planned = bytes_of(h->part[i].ctx, h->part[i].buft);
    h->part[i].overhead = ggml_backend_alloc_ctx_tensors_from_buft_overhead(h->part[i].ctx, h->part[i].buft);
}

enum err home_alloc(struct tensor_home *h, const char *what, bool no_alloc) {
    for (int i = 0; i < h->n; i++) {
        if (!ggml_get_first_tensor(h->part[i].ctx)) continue;
        home_plan(h, i);
        if (no_alloc) {
            // an empty buffer says where the tensors would be, an address that nobody uses that they need no memory
            h->part[i].buf = ggml_backend_buft_alloc_buffer(h->part[i].buft, 0);
            if (!h->part[i].buf) return err_set(ERR_NOMEM, "no memory to plan %s", what);
            for (struct ggml_tensor *t = ggml_get_first_tensor(h->part[i].ctx); t;
                 t = ggml_get_next_tensor(h->part[i].ctx, t)) {
                t->buffer = h->part[i].buf;
                t->data = (void *) 64;
            }
            continue;
        }
        h->part[i].buf = ggml_backend_alloc_ctx_tensors_from_buft(h->part[i].ctx, h->part[i].buft);
        if (!h->part[i].buf)
            return err_set(ERR_NOMEM, "no room for %s: %zu bytes are needed in %s; a smaller context (-c) needs less", what,
                           h->part[i].planned, ggml_backend_buft_name(h->part[i].buft));
        // the CPU's buffers are zero when they are new; writing zeros would make every page of them real
        if (h->part[i].buft != ggml_backend_cpu_buffer_type()) ggml_backend_buffer_clear(h->part[i].buf, 0);
    }
    return ERR_OK;
}

void home_free(struct tensor_home *h) {
    for (int i = 0; i < h->n; i++) {
        if (h->part[i].buf) ggml_backend_buffer_free(h->part[i].buf);
        ggml_free(h->part[i].ctx);
    }
    memset(h, 0, sizeof *h);
}

size_t home_bytes(const struct tensor_home *h, ggml_backend_buffer_type_t buft) {
    for (int i = 0; i < h->n; i++)
        if (h->part[i].buft == buft) return h->part[i].planned;
    return 0;
}

size_t home_overhead(const struct tensor_home *h) {
    size_t n = 0;
    for (int i = 0; i < h->n; i++) n += ggml_context_overhead(h->part[i].ctx) + h->part[i].overhead;
    return n;
}
