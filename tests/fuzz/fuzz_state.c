// States: whatever the bytes, they are refused with nothing changed or give a context that works: its memory can be asked, cut, shifted,
// decoded on and saved again. A checksum would keep mutations away from the code behind it, so the right one is put in first.
// Input: one byte (model, kind), one byte (0: the bytes as they are; else header and checksums are made), the payload.
#include "fuzz_models.h"
#include "ggml/ext.h"
#include "memory/state.h"

#include <unistd.h>

#define N_SEQ 3
enum { CONTEXT, SEQUENCE, N_KIND };

// As laid out by run/state.c.
struct header {
    uint32_t magic, version, kind, flags;
    uint64_t fingerprint, bytes, checksum;
};

static struct llama_context *context(int model) {
    static struct llama_context *c[FUZZ_N_MODEL];
    if (!c[model]) c[model] = fuzz_context(model, 192, N_SEQ);
    return c[model];
}

static size_t get(struct llama_context *c, int kind, uint8_t *dst, size_t n) {
    return kind == CONTEXT ? llama_state_get_data(c, dst, n) : llama_state_seq_get_data(c, dst, n, 0);
}

static size_t set(struct llama_context *c, int kind, const uint8_t *src, size_t n) {
    return kind == CONTEXT ? llama_state_set_data(c, src, n) : llama_state_seq_set_data(c, src, n, 1);
}

static struct header fitting(struct llama_context *c, int kind) {
    static struct header h[FUZZ_N_MODEL][N_KIND];
    static bool have[FUZZ_N_MODEL][N_KIND];
    int model = 0;
    while (llama_get_model(c) != fuzz_model(model)) model++;
    if (!have[model][kind]) {
        static uint8_t buf[1 << 18];
        FUZZ_CHECK(get(c, kind, buf, sizeof buf) > sizeof(struct header));
        memcpy(&h[model][kind], buf, sizeof(struct header));
        have[model][kind] = true;
    }
    return h[model][kind];
}

// What is in memory can be asked, decoded on, cut, moved, and saved so that it loads again.
static void use(struct llama_context *c, int kind) {
    llama_memory_t m = llama_get_memory(c);
    const int32_t n_vocab = MAKER_N_VOCAB;
    volatile float sum = 0;
    (void) sum;
    for (int i = -17; i < 17; i++) {
        const float *row = llama_get_logits_ith(c, i);
        for (int k = 0; row && k < n_vocab; k++) sum += row[k];
    }
    const size_t n = kind == CONTEXT ? llama_state_get_size(c) : llama_state_seq_get_size(c, 1);
    uint8_t *copy = malloc(n + 1);
    FUZZ_CHECK(copy && n > 0);
    FUZZ_CHECK((kind == CONTEXT ? llama_state_get_data(c, copy, n) : llama_state_seq_get_data(c, copy, n, 1)) == n);
    for (int32_t s = 0; s < N_SEQ; s++) {
        const int32_t lo = llama_memory_seq_pos_min(m, s), hi = llama_memory_seq_pos_max(m, s);
        FUZZ_CHECK(lo <= hi && lo >= -1 && (lo >= 0) == (hi >= 0));
        if (hi < INT32_MAX) fuzz_decode(c, 7 + s, hi + 1, s);
        llama_memory_seq_cp(m, s, (s + 1) % N_SEQ, lo, lo + 3);
        llama_memory_seq_rm(m, s, lo + 1, lo + 2);
        llama_memory_seq_add(m, s, 0, -1, 2);
        const int32_t at = llama_memory_seq_pos_max(m, s);
        if (at < INT32_MAX) fuzz_decode(c, 9, at + 1, s);
    }
    llama_memory_clear(m, true);
    FUZZ_CHECK(set(c, kind, copy, n) == n);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > 1 << 16) return 0;
    const int model = data[0] % FUZZ_N_MODEL, kind = data[0] / FUZZ_N_MODEL % N_KIND;
    struct llama_context *c = context(model);
    const size_t payload = size - 2, n = data[1] ? payload + sizeof(struct header) : payload;
    uint8_t *state = malloc(n ? n : 1);
    FUZZ_CHECK(state);
    if (data[1]) {
        struct header h = fitting(c, kind);
        h.bytes = payload;
        h.checksum = 0;
        h.checksum = state_hash(state_hash(0x243f6a8885a308d3ull, &h, sizeof h), data + 2, payload);
        memcpy(state, &h, sizeof h);
        memcpy(state + sizeof h, data + 2, payload);
    } else if (n) {
        memcpy(state, data + 2, n);
    }
    FUZZ_CHECK(fuzz_decode(c, 5, 0, 1) == 0);
    const size_t taken = set(c, kind, state, n);
    FUZZ_CHECK(taken == 0 || taken <= n);
    if (taken)
        use(c, kind);
    else
        FUZZ_CHECK(*ggml_last_error() && llama_memory_seq_pos_max(llama_get_memory(c), 1) == 0);
    llama_memory_clear(llama_get_memory(c), true);
    free(state);
    ggml_clear_error();
    return 0;
}

void fuzz_seeds(fuzz_put put, void *to) {
    for (int model = 0; model < FUZZ_N_MODEL; model++) {
        struct llama_context *c = context(model);
        for (int32_t i = 0; i < 5; i++) FUZZ_CHECK(fuzz_decode(c, 3 + i, i, 0) == 0);
        llama_memory_seq_cp(llama_get_memory(c), 0, 2, -1, -1);
        FUZZ_CHECK(fuzz_decode(c, 11, 5, 2) == 0);
        for (int kind = 0; kind < N_KIND; kind++) {
            static uint8_t buf[1 << 18];
            const size_t n = get(c, kind, buf + 2, sizeof buf - 2);
            FUZZ_CHECK(n > sizeof(struct header));
            buf[0] = (uint8_t) (kind * FUZZ_N_MODEL + model);
            buf[1] = 0;
            put(to, buf, n + 2);
            buf[1] = 1;
            memmove(buf + 2, buf + 2 + sizeof(struct header), n - sizeof(struct header));
            put(to, buf, n - sizeof(struct header) + 2);
        }
        llama_memory_clear(llama_get_memory(c), true);
    }
}
