// lamina tokenize: shows the tokens of a text.
#include "cli/console.h"
#include "cli/session.h"
#include "tools/tool.h"

#include <jansson.h>
#include <stdlib.h>

// Text of one token, malloc; its length in *n.
static char *piece(const struct llama_vocab *vocab, llama_token token, int32_t *n) {
    const int32_t need = llama_token_to_piece(vocab, token, NULL, 0, 0, true);
    char *s = malloc((size_t) (need < 0 ? -need : need) + 1);
    *n = s ? llama_token_to_piece(vocab, token, s, need < 0 ? -need : need, 0, true) : 0;
    return s;
}

static void print_json(const struct llama_vocab *vocab, const struct tokens *t, bool ids_only) {
    json_t *list = json_array();
    for (int32_t i = 0; i < t->n; i++) {
        if (ids_only) {
            json_array_append_new(list, json_integer(t->data[i]));
            continue;
        }
        int32_t n;
        char *s = piece(vocab, t->data[i], &n);
        json_t *text = s ? json_stringn(s, (size_t) n) : NULL;  // NULL when the bytes are not UTF-8 by themselves
        json_t *item = json_pack("{s:i, s:o}", "id", t->data[i], "piece", text ? text : json_null());
        if (!text) {
            json_t *bytes = json_array();
            for (int32_t k = 0; k < n; k++) json_array_append_new(bytes, json_integer((unsigned char) s[k]));
            json_object_set_new(item, "bytes", bytes);
        }
        json_array_append_new(list, item);
        free(s);
    }
    json_dumpf(list, stdout, JSON_COMPACT);
    fputc('\n', stdout);
    json_decref(list);
}

static void print_text(const struct llama_vocab *vocab, const struct tokens *t, bool ids_only) {
    if (ids_only) {
        fputc('[', stdout);
        for (int32_t i = 0; i < t->n; i++) printf(i ? ", %d" : "%d", t->data[i]);
        fputs("]\n", stdout);
        return;
    }
    for (int32_t i = 0; i < t->n; i++) {
        int32_t n;
        char *s = piece(vocab, t->data[i], &n);
        printf("%6d -> '", t->data[i]);
        if (s) console_escaped(stdout, s, (size_t) n);
        fputs("'\n", stdout);
        free(s);
    }
}

static int run(struct params *p) {
    struct text text = {0};
    struct session s = {0};
    struct tokens tokens = {0};
    int status = text_prompt(&text, p);
    if (!status) status = session_load(&s, p, true);
    if (!status) status = tokens_make(&tokens, s.vocab, text.data, text.size, !p->no_bos, !p->no_parse_special);
    if (!status) {
        if (p->json)
            print_json(s.vocab, &tokens, p->ids);
        else
            print_text(s.vocab, &tokens, p->ids);
        if (p->show_count && !p->json) printf("Total number of tokens: %d\n", tokens.n);
    }
    free(tokens.data);
    session_close(&s);
    free(text.data);
    return status;
}

const struct tool tool_tokenize = {
    .name = "tokenize",
    .alias = "llama-tokenize",
    .summary = "Shows the tokens of a text",
    .args = "",
    .groups = G_MODEL | G_PROMPT | G_TOKENIZE | G_JSON,
    .run = run,
};
