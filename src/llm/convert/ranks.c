#include "convert/ranks.h"

#include "base/map.h"
#include "convert/base64.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ranks_line(const char *line, size_t n) {
    const char *space = memchr(line, ' ', n);
    return space && space > line && (space - line) % 4 == 0 && space + 1 < line + n &&
           strspn(space + 1, "0123456789") == (size_t) (line + n - space) - 1;
}

// The character that stands for a byte: itself where it can be seen, else one from 256 on.
static unsigned visible(unsigned byte) {
    unsigned hidden = 0;
    for (unsigned b = 0; b <= byte; b++) {
        const bool seen = (b > 32 && b < 127) || (b > 160 && b != 173);
        if (b == byte) return seen ? b : 256 + hidden;
        hidden += !seen;
    }
    return 0;
}

enum err ranks_add(struct vocab_out *v, const char *line, size_t n) {
    char digits[2048], text[2 * sizeof(digits)];
    const size_t n_digits = ranks_line(line, n) ? strcspn(line, " ") : sizeof(digits);
    size_t bytes = 0, len = 0;
    if (n_digits >= sizeof(digits))
        return err_set(ERR_FORMAT, "'%.*s' is no token in base64 with its rank", n < 60 ? (int) n : 60, line);
    memcpy(digits, line, n_digits);
    digits[n_digits] = '\0';
    char *raw = base64_decode(digits, &bytes);
    if (!raw) return err_set(ERR_FORMAT, "'%s' is not base64, or there is no memory for it", digits);
    for (size_t i = 0; i < bytes; i++) {
        const unsigned c = visible((unsigned char) raw[i]);
        if (c >= 128) text[len++] = (char) (0xc0 | c >> 6);
        text[len++] = (char) (c < 128 ? c : 0x80 | (c & 63));
    }
    free(raw);
    return vocab_out_set(v, strtoll(line + n_digits + 1, NULL, 10), text, len, 0, LLAMA_TOKEN_TYPE_NORMAL);
}

struct pair {
    int64_t left, right;
};

static int by_ranks(const void *a, const void *b) {
    const struct pair *p = a, *q = b;
    return p->left != q->left ? (p->left > q->left) - (p->left < q->left) : (p->right > q->right) - (p->right < q->right);
}

static enum err add_merge(struct vocab_out *v, const struct pair *p) {
    const char *a = v->text[p->left], *b = v->text[p->right];
    if ((v->n_merges & (v->n_merges - 1)) == 0) {
        const char **grown = realloc(v->merges, (v->n_merges ? 2 * v->n_merges : 1) * sizeof(*grown));
        if (!grown) return err_set(ERR_NOMEM, "no memory for %zu merges", v->n_merges + 1);
        v->merges = grown;
    }
    char *text = arena_alloc(&v->arena, strlen(a) + strlen(b) + 2);
    if (!text) return err_set(ERR_NOMEM, "no memory for %zu merges", v->n_merges + 1);
    sprintf(text, "%s %s", a, b);
    v->merges[v->n_merges++] = text;
    return ERR_OK;
}

// The pairs that make token id.
static enum err split(struct vocab_out *v, const struct map *ids, int64_t id) {
    struct pair pairs[2048];
    const char *text = v->text[id];
    const size_t n = strlen(text);
    size_t n_pairs = 0;
    for (size_t i = 1; i < n && n_pairs < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (((unsigned char) text[i] & 0xc0) == 0x80) continue;
        const int64_t *left = map_get(ids, text, i), *right = map_get(ids, text + i, n - i);
        if (left && right) pairs[n_pairs++] = (struct pair){*left, *right};
    }
    if (n_pairs > 1) qsort(pairs, n_pairs, sizeof(pairs[0]), by_ranks);
    for (size_t i = 0; i < n_pairs; i++) TRY(add_merge(v, &pairs[i]));
    return ERR_OK;
}

enum err ranks_merges(struct vocab_out *v) {
    struct map ids = {0};
    enum err e = ERR_OK;
    for (int64_t i = 0; i < v->n && e == ERR_OK; i++)
        if (v->text[i] && !map_add(&ids, v->text[i], strlen(v->text[i]), i, NULL))
            e = err_set(ERR_NOMEM, "no memory for %lld tokens", (long long) v->n);
    for (int64_t i = 0; i < v->n && e == ERR_OK; i++)
        if (v->text[i]) e = split(v, &ids, i);
    map_free(&ids);
    return e;
}
