// A conversation in the model's own format: what is new in the formatted text is all that the model has to read.
//
// usage: example-simple-chat MODEL.gguf [CONTEXT_LENGTH]
#include "llama.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MESSAGES 256

struct chat {
    struct llama_model *model;
    struct llama_context *ctx;
    const struct llama_vocab *vocab;
    struct llama_sampler *sampler;
    struct llama_chat_message messages[MAX_MESSAGES];
    size_t n_messages;
    char *text;  // the formatted conversation
    int32_t room;
    int32_t n_seen;  // bytes of it that the model has read
};

static void errors_only(enum ggml_log_level level, const char *text, void *data) {
    (void) data;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

// Formats the conversation into c->text. Gives its length, negative on failure.
static int32_t format(struct chat *c, bool with_answer) {
    const char *tmpl = llama_model_chat_template(c->model, NULL);
    int32_t n = llama_chat_apply_template(tmpl, c->messages, c->n_messages, with_answer, c->text, c->room);
    if (n > c->room) {
        char *grown = realloc(c->text, (size_t) n);
        if (!grown) return -1;
        c->text = grown;
        c->room = n;
        n = llama_chat_apply_template(tmpl, c->messages, c->n_messages, with_answer, c->text, c->room);
    }
    return n;
}

static void add_message(struct chat *c, const char *role, const char *content) {
    if (c->n_messages < MAX_MESSAGES) c->messages[c->n_messages++] = (struct llama_chat_message){role, strdup(content)};
}

// Reads text[0, n) and writes the model's answer. false when the context is full or decoding failed.
static bool answer(struct chat *c, const char *text, int32_t n, char *out, size_t size) {
    llama_token tokens[4096], next;
    const bool first = c->n_seen == 0;
    const int32_t n_tokens = llama_tokenize(c->vocab, text, n, tokens, 4096, first, true);
    if (n_tokens < 0) return false;
    size_t used = 0;
    out[0] = '\0';
    for (struct llama_batch batch = llama_batch_get_one(tokens, n_tokens);; batch = llama_batch_get_one(&next, 1)) {
        if (llama_decode(c->ctx, batch) != 0) return false;
        next = llama_sampler_sample(c->sampler, c->ctx, -1);
        if (llama_vocab_is_eog(c->vocab, next)) return true;
        char piece[256];
        const int32_t len = llama_token_to_piece(c->vocab, next, piece, sizeof(piece), 0, true);
        if (len <= 0) continue;
        fwrite(piece, 1, (size_t) len, stdout);
        fflush(stdout);
        if (used + (size_t) len < size) {
            memcpy(out + used, piece, (size_t) len);
            used += (size_t) len;
            out[used] = '\0';
        }
    }
}

static int converse(struct chat *c) {
    static char line[8192], reply[65536];
    for (;;) {
        fputs("> ", stdout);
        fflush(stdout);
        if (!fgets(line, sizeof(line), stdin)) return 0;
        line[strcspn(line, "\n")] = '\0';
        if (!line[0]) return 0;
        add_message(c, "user", line);
        const int32_t n = format(c, true);
        if (n < 0) {
            fprintf(stderr, "error: this model's conversation format is not known\n");
            return 1;
        }
        const bool ok = answer(c, c->text + c->n_seen, n - c->n_seen, reply, sizeof(reply));
        putchar('\n');
        if (!ok) return 1;
        add_message(c, "assistant", reply);
        c->n_seen = format(c, false);
    }
}

int main(int argc, char **argv) {
    const bool help = argc > 1 && strcmp(argv[1], "-h") == 0;
    if (argc < 2 || help) {
        fprintf(help ? stdout : stderr, "usage: %s MODEL.gguf [CONTEXT_LENGTH]\n", argv[0]);
        return help ? 0 : 2;
    }
    llama_log_set(errors_only, NULL);
    ggml_backend_load_all();
    static struct chat c;
    c.model = llama_model_load_from_file(argv[1], llama_model_default_params());
    if (!c.model) return 1;
    c.vocab = llama_model_get_vocab(c.model);
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = argc > 2 ? (uint32_t) atoi(argv[2]) : 2048;
    c.ctx = llama_init_from_model(c.model, params);
    c.sampler = llama_sampler_chain_init(llama_sampler_chain_default_params());
    llama_sampler_chain_add(c.sampler, llama_sampler_init_min_p(0.05f, 1));
    llama_sampler_chain_add(c.sampler, llama_sampler_init_temp(0.8f));
    llama_sampler_chain_add(c.sampler, llama_sampler_init_dist(LLAMA_DEFAULT_SEED));
    const int failed = c.ctx ? converse(&c) : 1;
    for (size_t i = 0; i < c.n_messages; i++) free((char *) c.messages[i].content);
    free(c.text);
    llama_sampler_free(c.sampler);
    if (c.ctx) llama_free(c.ctx);
    llama_model_free(c.model);
    return failed;
}
