// States as bytes and as files. Layout: a header (magic, version, kind, fingerprint of model and settings, length, checksum), then the
// payload: outputs and memory, or one sequence's memory. Whatever is foreign, damaged or cut off is refused before anything changes.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "memory/state.h"
#include "run/context.h"

#define STATE_MAGIC 0x5441534cu  // "LSAT"
#define STATE_VERSION 2u         // 2: rows of quantized caches are turned (kv_turn)

enum state_kind { STATE_CONTEXT = 0, STATE_SEQUENCE = 1 };

struct state_header {
    uint32_t magic, version, kind, flags;
    uint64_t fingerprint;
    uint64_t bytes;     // of the payload
    uint64_t checksum;  // of the header with checksum 0, then the payload
};

// States fit if model and the settings that change keys and values are the same.
static uint64_t fingerprint(const struct llama_context *ctx) {
    const struct llama_model *m = ctx->model;
    const struct cparams *cp = &ctx->cp;
    uint64_t h = state_hash(7, m->arch->name, strlen(m->arch->name));
    h = state_hash(h, &m->hp, sizeof m->hp);
    // whether a draft head was loaded beside it is nothing to the model's own contexts
    const uint64_t size[] = {m->n_params - m->n_params_nextn, m->n_bytes - m->n_bytes_nextn};
    h = state_hash(h, size, sizeof size);
    if (cp->nextn) h = state_hash(h, &cp->nextn, sizeof cp->nextn);
    const float rope[] = {cp->rope_base, cp->rope_freq_scale, cp->rope_ext, cp->rope_mag};
    h = state_hash(h, rope, sizeof rope);
    const int32_t longer = cp->n_ctx_seq > cp->rope_orig_ctx && m->w.rope_factors_long.w;
    return state_hash(h, &longer, sizeof longer);
}

static uint64_t checksum(struct state_header h, const void *payload, size_t n) {
    h.checksum = 0;
    return state_hash(state_hash(0x243f6a8885a308d3ull, &h, sizeof h), payload, n);
}

// ---- outputs --------------------------------------------------------------------------------------------------------------

static void put_outputs(struct llama_context *ctx, struct state_out *o) {
    const struct outputs *out = &ctx->out;
    state_put_i32(o, out->n_batch);
    state_put_i32(o, out->n);
    state_put_i32(o, out->has_logits);
    state_put_i32(o, out->has_embd);
    state_put(o, out->row_of, (size_t) out->n_batch * 4);
    state_put(o, out->order, (size_t) out->n * 4);
    if (out->has_logits) state_put(o, out->logits, (size_t) out->n * (size_t) ctx->model->hp.n_vocab * sizeof(float));
    if (out->has_embd)
        state_put(o, out->embd, (size_t) out->n * (size_t) llama_model_n_embd_out(ctx->model) * sizeof(float));
}

struct saved_outputs {
    int32_t n_batch, n, has_logits, has_embd;
    const void *row_of, *order, *logits, *embd;
};

static enum err take_outputs(const struct llama_context *ctx, struct state_in *in, struct saved_outputs *s) {
    s->n_batch = state_take_i32(in);
    s->n = state_take_i32(in);
    s->has_logits = state_take_i32(in);
    s->has_embd = state_take_i32(in);
    if (in->bad || s->n_batch < 0 || s->n < 0) return err_set(ERR_FORMAT, "the state is damaged or cut off");
    if (s->n_batch > ctx->cp.n_batch || s->n > ctx->out.n_max)
        return err_set(ERR_INVALID, "the state has the outputs of a batch of %d (%d rows); this context takes %d (%d rows)",
                       s->n_batch, s->n, ctx->cp.n_batch, ctx->out.n_max);
    s->row_of = state_take(in, (size_t) s->n_batch * 4);
    s->order = state_take(in, (size_t) s->n * 4);
    if (s->has_logits) s->logits = state_take(in, (size_t) s->n * (size_t) ctx->model->hp.n_vocab * sizeof(float));
    if (s->has_embd) s->embd = state_take(in, (size_t) s->n * (size_t) llama_model_n_embd_out(ctx->model) * sizeof(float));
    if (in->bad) return err_set(ERR_FORMAT, "the state is damaged or cut off");
    for (int32_t i = 0; i < s->n_batch; i++) {
        int32_t r;
        memcpy(&r, (const char *) s->row_of + 4 * (size_t) i, 4);
        if (r < -1 || r >= s->n) return err_set(ERR_FORMAT, "the state is damaged or cut off");
    }
    for (int32_t i = 0; i < s->n; i++) {
        int32_t r;
        memcpy(&r, (const char *) s->order + 4 * (size_t) i, 4);
        if (r < 0 || r >= s->n_batch) return err_set(ERR_FORMAT, "the state is damaged or cut off");
    }
    return ERR_OK;
}

static void set_outputs(struct llama_context *ctx, const struct saved_outputs *s) {
    struct outputs *o = &ctx->out;
    o->n_batch = s->n_batch;
    o->n = s->n;
    o->has_logits = s->has_logits != 0;
    o->has_embd = s->has_embd != 0;
    o->sorted = true;
    memset(o->n_rows_of, 0, (size_t) ctx->cp.n_seq_max * sizeof *o->n_rows_of);
    memcpy(o->row_of, s->row_of, (size_t) s->n_batch * 4);
    memcpy(o->order, s->order, (size_t) s->n * 4);
    for (int32_t i = 1; i < s->n; i++) o->sorted &= o->order[i] > o->order[i - 1];
    if (s->logits) memcpy(o->logits, s->logits, (size_t) s->n * (size_t) ctx->model->hp.n_vocab * sizeof(float));
    if (s->embd) memcpy(o->embd, s->embd, (size_t) s->n * (size_t) llama_model_n_embd_out(ctx->model) * sizeof(float));
}

// ---- bytes ----------------------------------------------------------------------------------------------------------------

// Part of a state is left out only where it is had back by cutting what is there, and the rest isn't: of models whose layers all
// attend to everything, and of those that only keep states, nothing would remain or nothing is to spare.
static uint32_t partial_flag(const struct llama_context *ctx, llama_state_seq_flags flags) {
    const struct llama_memory_i *m = ctx->mem;
    bool cut = false;
    for (int l = 0; m && m->full && l < m->full->n_cache; l++) cut |= m->full->k[l] != NULL;
    return cut && (m->swa || m->rs) ? flags & LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY : 0;
}

// seq < 0: the whole context. dst NULL: counts.
static size_t write_state(struct llama_context *ctx, uint8_t *dst, size_t size, int32_t seq, llama_state_seq_flags flags) {
    if (!ctx || (seq >= 0 && seq >= ctx->cp.n_seq_max)) {
        (void) err_set(ERR_INVALID, "state: sequence %d; the context has ids 0 to %d", seq,
                       ctx ? ctx->cp.n_seq_max - 1 : -1);
        return 0;
    }
    llama_synchronize(ctx);
    if (graph_shift(ctx) != ERR_OK) return 0;
    struct state_header h = {.magic = STATE_MAGIC,
                             .version = STATE_VERSION,
                             .kind = seq >= 0 ? STATE_SEQUENCE : STATE_CONTEXT,
                             .flags = partial_flag(ctx, flags),
                             .fingerprint = fingerprint(ctx)};
    if (dst && size < sizeof h) {
        (void) err_set(ERR_INVALID, "state: the buffer of %zu bytes is too small", size);
        return 0;
    }
    struct state_out o = {.dst = dst ? dst + sizeof h : NULL, .cap = dst ? size - sizeof h : 0};
    if (seq < 0) put_outputs(ctx, &o);
    if (ctx->mem) memory_write(ctx->mem, &o, seq, h.flags != 0);
    if (o.overflow) {
        (void) err_set(ERR_INVALID, "state: the buffer of %zu bytes is too small", size);
        return 0;
    }
    if (!dst) return sizeof h + o.n;
    h.bytes = o.n;
    h.checksum = checksum(h, o.dst, o.n);
    memcpy(dst, &h, sizeof h);
    return sizeof h + o.n;
}

static enum err check_header(const struct llama_context *ctx, const uint8_t *src, size_t size, enum state_kind kind,
                             uint32_t flags, struct state_header *h) {
    if (!src || size < sizeof *h) return err_set(ERR_FORMAT, "state: %zu bytes are no state", size);
    memcpy(h, src, sizeof *h);
    if (h->magic != STATE_MAGIC) return err_set(ERR_FORMAT, "state: the data doesn't begin like a state");
    if (h->version != STATE_VERSION)
        return err_set(ERR_FORMAT, "state: version %u; this build reads version %u", h->version, STATE_VERSION);
    if (h->bytes > size - sizeof *h)
        return err_set(ERR_FORMAT, "state: cut off: %llu bytes of content, %zu are there", (unsigned long long) h->bytes,
                       size - sizeof *h);
    if (h->checksum != checksum(*h, src + sizeof *h, (size_t) h->bytes))
        return err_set(ERR_FORMAT, "state: damaged (the checksum differs)");
    if (h->kind != (uint32_t) kind)
        return err_set(ERR_INVALID, "state: a %s's state where a %s's is wanted", h->kind ? "sequence" : "context",
                       kind ? "sequence" : "context");
    if (h->flags != flags) return err_set(ERR_INVALID, "state: saved with flags %u, read with %u", h->flags, flags);
    if (h->fingerprint != fingerprint(ctx))
        return err_set(ERR_INVALID, "state: of another model, or of a context with other rotary settings");
    return ERR_OK;
}

static size_t read_state(struct llama_context *ctx, const uint8_t *src, size_t size, int32_t seq,
                         llama_state_seq_flags flags) {
    if (!ctx || (seq >= 0 && seq >= ctx->cp.n_seq_max)) {
        (void) err_set(ERR_INVALID, "state: sequence %d; the context has ids 0 to %d", seq,
                       ctx ? ctx->cp.n_seq_max - 1 : -1);
        return 0;
    }
    ggml_clear_error();
    llama_synchronize(ctx);
    struct state_header h;
    const uint32_t fl = partial_flag(ctx, flags);
    if (check_header(ctx, src, size, seq >= 0 ? STATE_SEQUENCE : STATE_CONTEXT, fl, &h) != ERR_OK) return 0;
    struct state_in in = {.src = src + sizeof h, .n = (size_t) h.bytes};
    struct saved_outputs out = {0};
    if (seq < 0 && take_outputs(ctx, &in, &out) != ERR_OK) return 0;
    if (ctx->mem && graph_shift(ctx) != ERR_OK) return 0;
    if (ctx->mem && memory_read(ctx->mem, &in, seq, fl != 0) != ERR_OK) return 0;
    if (seq < 0) set_outputs(ctx, &out);
    return sizeof h + (size_t) h.bytes;
}

size_t llama_state_get_size(struct llama_context *ctx) { return write_state(ctx, NULL, 0, -1, 0); }
size_t llama_state_get_data(struct llama_context *ctx, uint8_t *dst, size_t size) {
    return dst ? write_state(ctx, dst, size, -1, 0) : 0;
}
size_t llama_state_set_data(struct llama_context *ctx, const uint8_t *src, size_t size) {
    return read_state(ctx, src, size, -1, 0);
}
size_t llama_get_state_size(struct llama_context *ctx) { return llama_state_get_size(ctx); }
size_t llama_copy_state_data(struct llama_context *ctx, uint8_t *dst) { return llama_state_get_data(ctx, dst, SIZE_MAX); }
size_t llama_set_state_data(struct llama_context *ctx, const uint8_t *src) {
    return llama_state_set_data(ctx, src, SIZE_MAX);
}

static size_t seq_write(struct llama_context *ctx, uint8_t *dst, size_t size, llama_seq_id seq_id,
                        llama_state_seq_flags flags) {
    if (seq_id >= 0) return write_state(ctx, dst, size, seq_id, flags);
    (void) err_set(ERR_INVALID, "state: sequence id %d", seq_id);
    return 0;
}

size_t llama_state_seq_get_size_ext(struct llama_context *ctx, llama_seq_id seq_id, llama_state_seq_flags flags) {
    return seq_write(ctx, NULL, 0, seq_id, flags);
}

size_t llama_state_seq_get_data_ext(struct llama_context *ctx, uint8_t *dst, size_t size, llama_seq_id seq_id,
                                    llama_state_seq_flags flags) {
    return dst ? seq_write(ctx, dst, size, seq_id, flags) : 0;
}

size_t llama_state_seq_set_data_ext(struct llama_context *ctx, const uint8_t *src, size_t size, llama_seq_id dest_seq_id,
                                    llama_state_seq_flags flags) {
    if (dest_seq_id >= 0) return read_state(ctx, src, size, dest_seq_id, flags);
    (void) err_set(ERR_INVALID, "state: sequence id %d", dest_seq_id);
    return 0;
}

size_t llama_state_seq_get_size(struct llama_context *ctx, llama_seq_id seq_id) {
    return llama_state_seq_get_size_ext(ctx, seq_id, 0);
}

size_t llama_state_seq_get_data(struct llama_context *ctx, uint8_t *dst, size_t size, llama_seq_id seq_id) {
    return llama_state_seq_get_data_ext(ctx, dst, size, seq_id, 0);
}

size_t llama_state_seq_set_data(struct llama_context *ctx, const uint8_t *src, size_t size, llama_seq_id dest_seq_id) {
    return llama_state_seq_set_data_ext(ctx, src, size, dest_seq_id, 0);
}

// ---- files ----------------------------------------------------------------------------------------------------------------

// magic, version, number of tokens, tokens, state, checksum of all before it.
static bool write_all(int fd, const void *data, size_t n) {
    const char *p = data;
    while (n) {
        const ssize_t k = write(fd, p, n);
        if (k <= 0) return false;
        p += k;
        n -= (size_t) k;
    }
    return true;
}

static size_t save_file(struct llama_context *ctx, const char *path, int32_t seq, uint32_t magic, uint32_t version,
                        const llama_token *tokens, size_t n_tokens) {
    ggml_clear_error();
    if (!ctx || !path || (n_tokens && !tokens) || n_tokens > UINT32_MAX) {
        (void) err_set(ERR_INVALID, "state: a NULL argument");
        return 0;
    }
    const size_t n_state = write_state(ctx, NULL, 0, seq, 0);
    if (!n_state) return 0;
    const size_t head = 12 + n_tokens * sizeof *tokens, total = head + n_state + 8;
    uint8_t *buf = malloc(total);
    const size_t n_path = strlen(path) + 32;
    char *tmp = malloc(n_path);
    size_t done = 0;
    if (!buf || !tmp) {
        (void) err_set(ERR_NOMEM, "no memory for a state of %zu bytes", total);
    } else if (write_state(ctx, buf + head, n_state, seq, 0) == n_state) {
        const uint32_t h[3] = {magic, version, (uint32_t) n_tokens};
        memcpy(buf, h, 12);
        if (n_tokens) memcpy(buf + 12, tokens, n_tokens * sizeof *tokens);
        const uint64_t sum = state_hash(11, buf, head + n_state);
        memcpy(buf + head + n_state, &sum, 8);
        // under another name first, so that a full disk or a kill leaves the old file
        snprintf(tmp, n_path, "%s.%d.tmp", path, (int) getpid());
        const int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        bool ok = fd >= 0 && write_all(fd, buf, total);
        if (fd >= 0) ok &= close(fd) == 0;
        ok = ok && file_rename(tmp, path) == 0;
        const int why = errno;
        if (ok)
            done = total;
        else
            (void) err_set(ERR_IO, "the state can't be written to %s: %s", path, strerror(why));
        if (!ok && fd >= 0) unlink(tmp);
    }
    free(buf);
    free(tmp);
    return done;
}

// Where this library's part of a sequence's file ends: servers append what they remember besides (checkpoints of recurrent and windowed
// memories) and expect to find it there. 0: the file is cut off before its state is.
static size_t file_end(const uint8_t *p, size_t n, size_t head) {
    struct state_header h;
    if (head > n || n - head < sizeof h + 8) return 0;
    memcpy(&h, p + head, sizeof h);
    return h.bytes > n - head - sizeof h - 8 ? 0 : head + sizeof h + (size_t) h.bytes + 8;
}

static size_t load_mapped(struct llama_context *ctx, const uint8_t *p, size_t n, const char *path, int32_t seq,
                          uint32_t magic, uint32_t version, llama_token *tokens_out, size_t capacity, size_t *n_out) {
    uint32_t h[3];
    if (n < 20) {
        (void) err_set(ERR_FORMAT, "%s is no state file: it has %zu bytes", path, n);
        return 0;
    }
    memcpy(h, p, 12);
    if (h[0] != magic || h[1] != version) {
        (void) err_set(ERR_FORMAT, "%s is no state file of this kind and version (%08x, %u)", path, h[0], h[1]);
        return 0;
    }
    const size_t n_tokens = h[2], head = 12 + n_tokens * sizeof *tokens_out;
    const size_t end = seq >= 0 ? file_end(p, n, head) : n;
    uint64_t sum = 0;
    if (end) memcpy(&sum, p + end - 8, 8);
    if (!end || sum != state_hash(11, p, end - 8)) {
        (void) err_set(ERR_FORMAT, "%s is damaged or cut off (the checksum differs)", path);
        return 0;
    }
    if (seq >= 0 && !tokens_out) {  // how large the buffer must be is asked first
        if (n_out) *n_out = n_tokens;
        return sizeof h;
    }
    if (n_tokens > (end - 20) / sizeof *tokens_out || n_tokens > capacity) {
        (void) err_set(ERR_INVALID, "%s holds %zu tokens; there is room for %zu", path, n_tokens, capacity);
        return 0;
    }
    if (!read_state(ctx, p + head, end - 8 - head, seq, 0)) return 0;
    if (n_tokens && tokens_out) memcpy(tokens_out, p + 12, n_tokens * sizeof *tokens_out);
    if (n_out) *n_out = n_tokens;
    return end;
}

static size_t load_file(struct llama_context *ctx, const char *path, int32_t seq, uint32_t magic, uint32_t version,
                        llama_token *tokens_out, size_t capacity, size_t *n_out) {
    ggml_clear_error();
    if (!ctx || !path) {
        (void) err_set(ERR_INVALID, "state: a NULL argument");
        return 0;
    }
    struct file f;
    if (file_open(&f, path) != ERR_OK) return 0;
    size_t n = 0;
    // read, not mapped: a file that shrinks meanwhile must not take the process with it
    uint8_t *buf = f.size < SIZE_MAX / 2 ? malloc((size_t) f.size) : NULL;
    if (!buf)
        (void) err_set(ERR_NOMEM, "no memory for a state of %llu bytes", (unsigned long long) f.size);
    else if (file_read(&f, 0, buf, (size_t) f.size) == ERR_OK)
        n = load_mapped(ctx, buf, (size_t) f.size, path, seq, magic, version, tokens_out, capacity, n_out);
    free(buf);
    file_close(&f);
    return n;
}

bool llama_state_save_file(struct llama_context *ctx, const char *path_session, const llama_token *tokens,
                           size_t n_token_count) {
    return save_file(ctx, path_session, -1, LLAMA_SESSION_MAGIC, LLAMA_SESSION_VERSION, tokens, n_token_count) > 0;
}

bool llama_state_load_file(struct llama_context *ctx, const char *path_session, llama_token *tokens_out,
                           size_t n_token_capacity, size_t *n_token_count_out) {
    return load_file(ctx, path_session, -1, LLAMA_SESSION_MAGIC, LLAMA_SESSION_VERSION, tokens_out, n_token_capacity,
                     n_token_count_out) > 0;
}

bool llama_save_session_file(struct llama_context *ctx, const char *path_session, const llama_token *tokens,
                             size_t n_token_count) {
    return llama_state_save_file(ctx, path_session, tokens, n_token_count);
}

bool llama_load_session_file(struct llama_context *ctx, const char *path_session, llama_token *tokens_out,
                             size_t n_token_capacity, size_t *n_token_count_out) {
    return llama_state_load_file(ctx, path_session, tokens_out, n_token_capacity, n_token_count_out);
}

size_t llama_state_seq_save_file(struct llama_context *ctx, const char *filepath, llama_seq_id seq_id,
                                 const llama_token *tokens, size_t n_token_count) {
    if (seq_id < 0) {
        (void) err_set(ERR_INVALID, "state: sequence id %d", seq_id);
        return 0;
    }
    return save_file(ctx, filepath, seq_id, LLAMA_STATE_SEQ_MAGIC, LLAMA_STATE_SEQ_VERSION, tokens, n_token_count);
}

size_t llama_state_seq_load_file(struct llama_context *ctx, const char *filepath, llama_seq_id dest_seq_id,
                                 llama_token *tokens_out, size_t n_token_capacity, size_t *n_token_count_out) {
    if (dest_seq_id < 0) {
        (void) err_set(ERR_INVALID, "state: sequence id %d", dest_seq_id);
        return 0;
    }
    return load_file(ctx, filepath, dest_seq_id, LLAMA_STATE_SEQ_MAGIC, LLAMA_STATE_SEQ_VERSION, tokens_out,
                     n_token_capacity, n_token_count_out);
}
