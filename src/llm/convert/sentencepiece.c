// Reads tokenizer.model. Only the fields that a tokenizer needs are looked at; the wire format is the one of protocol buffers:
// a varint key (field << 3 | kind), then a varint, 8 bytes, a counted string, or 4 bytes.
// Source: sentencepiece_model.proto (field numbers), protobuf.dev/programming-guides/encoding.
#include "convert/sentencepiece.h"

#include <string.h>

struct wire {
    const unsigned char *start, *at, *end;
};

struct field {
    unsigned number, kind;
    uint64_t value;             // kinds 0, 1, 5
    const unsigned char *data;  // kind 2
    size_t n;
};

static enum err bad(const struct wire *w) {
    return err_set(ERR_FORMAT, "tokenizer.model is damaged at byte %zu of a message of %zu", (size_t) (w->at - w->start),
                   (size_t) (w->end - w->start));
}

static bool varint(struct wire *w, uint64_t *out) {
    *out = 0;
    for (unsigned shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        const unsigned char c = *w->at++;
        *out |= (uint64_t) (c & 0x7f) << shift;
        if (!(c & 0x80)) return true;
    }
    return false;
}

static bool next_field(struct wire *w, struct field *f) {
    uint64_t key, n;
    if (!varint(w, &key)) return false;
    *f = (struct field){.number = (unsigned) (key >> 3), .kind = (unsigned) (key & 7)};
    const size_t left = (size_t) (w->end - w->at);
    switch (f->kind) {
        case 0: return varint(w, &f->value);
        case 1:
        case 5:
            n = f->kind == 1 ? 8 : 4;
            if (left < n) return false;
            memcpy(&f->value, w->at, n);
            break;
        case 2:
            if (!varint(w, &n) || n > (uint64_t) (w->end - w->at)) return false;
            f->data = w->at;
            f->n = (size_t) n;
            break;
        default: return false;
    }
    w->at += n;
    return true;
}

static float as_float(uint64_t v) {
    const uint32_t bits = (uint32_t) v;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

// SentencePiece {1: piece, 2: score, 3: type}. The types' numbers are those of enum llama_token_type.
static enum err take_piece(const struct field *message, struct vocab_out *v, int64_t id) {
    struct wire w = {message->data, message->data, message->data + message->n};
    struct field f, text = {0};
    float score = 0;
    uint64_t type = LLAMA_TOKEN_TYPE_NORMAL;
    while (w.at < w.end) {
        if (!next_field(&w, &f)) return bad(&w);
        if (f.number == 1 && f.kind == 2) text = f;
        if (f.number == 2 && f.kind == 5) score = as_float(f.value);
        if (f.number == 3 && f.kind == 0) type = f.value;
    }
    if (type < LLAMA_TOKEN_TYPE_NORMAL || type > LLAMA_TOKEN_TYPE_BYTE) type = LLAMA_TOKEN_TYPE_NORMAL;
    return vocab_out_set(v, id, text.data ? (const char *) text.data : "", text.n, score, (enum llama_token_type) type);
}

static enum err take_trainer(const struct field *message, struct spm_facts *facts) {
    struct wire w = {message->data, message->data, message->data + message->n};
    struct field f;
    while (w.at < w.end) {
        if (!next_field(&w, &f)) return bad(&w);
        if (f.kind != 0) continue;
        if (f.number == 3) facts->unigram = f.value == 1;
        if (f.number == 40) facts->unk = (int32_t) f.value;
        if (f.number == 41) facts->bos = (int32_t) f.value;
        if (f.number == 42) facts->eos = (int32_t) f.value;
        if (f.number == 43) facts->pad = (int32_t) f.value;
    }
    return ERR_OK;
}

static enum err take_normalizer(const struct field *message, struct spm_facts *facts) {
    struct wire w = {message->data, message->data, message->data + message->n};
    struct field f;
    while (w.at < w.end) {
        if (!next_field(&w, &f)) return bad(&w);
        if (f.number == 2 && f.kind == 2 && f.n) facts->charsmap = (const char *) f.data, facts->charsmap_bytes = f.n;
        if (f.number == 3 && f.kind == 0) facts->add_dummy_prefix = f.value;
        if (f.number == 4 && f.kind == 0) facts->remove_extra_whitespaces = f.value;
    }
    return ERR_OK;
}

enum err spm_parse(const char *data, size_t n, struct vocab_out *v, struct spm_facts *facts) {
    const unsigned char *bytes = (const unsigned char *) data;
    struct wire w = {bytes, bytes, bytes + n};
    struct field f;
    int64_t id = 0;
    *facts = (struct spm_facts){.unigram = true,
                                .add_dummy_prefix = true,
                                .remove_extra_whitespaces = true,
                                .unk = 0,
                                .bos = 1,
                                .eos = 2,
                                .pad = -1};
    while (w.at < w.end) {
        if (!next_field(&w, &f)) return bad(&w);
        if (f.kind != 2) continue;
        if (f.number == 1) TRY(take_piece(&f, v, id++));
        if (f.number == 2) TRY(take_trainer(&f, facts));
        if (f.number == 3) TRY(take_normalizer(&f, facts));
    }
    v->has_scores = true;
    return id > 0 ? ERR_OK : err_set(ERR_FORMAT, "tokenizer.model holds no pieces");
}
