// grammar-match: reads a grammar and texts, each ended by a zero, from standard input; writes 1 for each text that is whole under it, else 0.
// tests/compat/schema.py judges JSON schemas with it.
#include "ggml/ext.h"
#include "grammar/grammar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    size_t n = 0, room = 1 << 20;
    char *all = malloc(room + 1);
    while (all) {
        n += fread(all + n, 1, room - n, stdin);
        if (n < room) break;
        char *grown = realloc(all, 2 * room + 1);
        if (!grown) free(all);
        all = grown;
        room *= 2;
    }
    struct grammar *g = NULL;
    struct matcher *m = NULL;
    if (!all) return 2;
    all[n] = '\0';
    if (grammar_new(&g, all, "root", NULL) != ERR_OK || matcher_new(&m, g, NULL) != ERR_OK) {
        fprintf(stderr, "%s\n", ggml_last_error());
        return 1;
    }
    for (const char *t = all + strlen(all) + 1; t < all + n; t += strlen(t) + 1) {
        matcher_reset(m);
        putchar(matcher_accept_bytes(m, t, strlen(t)) && matcher_done(m) ? '1' : '0');
    }
    matcher_free(m);
    grammar_free(g);
    free(all);
    return 0;
}
