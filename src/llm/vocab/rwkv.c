// RWKV's tokenizer: at each place the longest token that fits. Tokens are byte strings, spelled in files as in Python source
// (\n, \x80, ...). Reference: rwkv_vocab_v20230424.
#include "vocab/vocab_int.h"
#include <stdlib.h>

static int hex(char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static size_t piece(const char *text, size_t len, enum llama_token_attr attr, char *out, struct llama_vocab *v,
                    bool *findable) {
    (void) v;
    size_t n = 0;
    *findable = !(attr & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN));
    if (attr & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)) {
        memcpy(out, text, len);
        return len;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\\' || i + 1 == len) {
            out[n++] = text[i];
            continue;
        }
        char c = text[++i];
        if (c == 'x' && len - i > 2 && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
            out[n++] = (char) (hex(text[i + 1]) * 16 + hex(text[i + 2]));
            i += 2;
        } else {
            out[n++] = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
        }
    }
    return n;
}

static enum err ready(struct llama_vocab *v, const struct gguf_context *meta) {
    (void) meta;
    v->trie = malloc(sizeof *v->trie);
    if (!v->trie) return err_set(ERR_NOMEM, "vocab: no memory for a vocabulary");
    TRY(trie_init(v->trie));
    for (llama_token t = 0; t < v->n; t++) {
        size_t len;
        const char *p = texts_at(&v->piece, (uint32_t) t, &len);
        if (len > 0 && !(v->attrs[t] & (LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN)))
            TRY(trie_add(v->trie, p, len, t));
    }
    return ERR_OK;
}

static void unload(struct llama_vocab *v) {
    if (v->trie) trie_free(v->trie);
    free(v->trie);
    v->trie = NULL;
}

static enum err encode(struct session *s, const char *p, const char *end, bool after_special) {
    (void) after_special;
    const struct trie *trie = s->v->trie;
    while (p < end) {
        uint32_t node = 0;
        llama_token best = -1;
        const char *to = p + 1;
        for (const char *q = p; q < end; q++) {
            node = trie_step(trie, node, (uint8_t) *q);
            if (!node) break;
            if (trie->values[node] < 0) continue;
            best = trie->values[node];
            to = q + 1;
        }
        if (best >= 0) {
            TRY(session_push(s, best));
        } else {
            TRY(session_push_bytes(s, p, 1));
        }
        p = to;
    }
    return ERR_OK;
}

const struct vocab_kind vocab_kind_rwkv = {
    .type = LLAMA_VOCAB_TYPE_RWKV,
    .model = "rwkv",
    .name = "RWKV",
    .bos = -1,
    .eos = -1,
    .unk = -1,
    .sep = -1,
    .pad = -1,
    .mask = -1,
    .piece = piece,
    .ready = ready,
    .free = unload,
    .encode = encode,
};
