// lamina state: saves what a model knows of a prompt, and goes on from there in another process.
//   lamina state save FILE -p TEXT    reads the prompt and writes the state, with its tokens
//   lamina state run FILE -n N        continues the text, and TEXT behind it with -p TEXT
//   lamina state show FILE            prints the saved text
#include "cli/console.h"
#include "cli/session.h"
#include "tools/tool.h"

#include <stdlib.h>
#include <string.h>

static int save(struct session *s, const struct params *p, const char *path) {
    struct text prompt = {0};
    struct tokens t = {0};
    int status = text_prompt(&prompt, p);
    if (!status) status = tokens_make(&t, s->vocab, prompt.data, prompt.size, true, true);
    if (!status && t.n == 0) status = console_error("the prompt has no tokens");
    if (!status && (uint32_t) t.n > llama_n_ctx(s->ctx))
        status = console_error("the prompt has %d tokens, more than the context of %u; a larger one: -c N", t.n,
                               llama_n_ctx(s->ctx));
    if (!status) status = session_feed(s, t.data, t.n, true);
    if (!status && !llama_state_save_file(s->ctx, path, t.data, (size_t) t.n)) status = console_library_error();
    if (!status) console_note("%s: %d tokens", path, t.n);
    free(t.data);
    free(prompt.data);
    return status;
}

// Loads the state; the tokens it was made of come back.
static int load(struct session *s, const char *path, struct tokens *t) {
    const size_t room = llama_n_ctx(s->ctx);
    size_t n = 0;
    t->data = malloc(sizeof(llama_token) * room);
    if (!t->data) return console_error("no memory for %zu tokens", room);
    if (!llama_state_load_file(s->ctx, path, t->data, room, &n)) return console_library_error();
    t->n = (int32_t) n;
    return 0;
}

static void print_tokens(const struct session *s, const struct tokens *t) {
    struct piece_writer out = {0};
    const bool bos_first = t->n > 0 && t->data[0] == llama_vocab_bos(s->vocab);
    for (int32_t i = bos_first; i < t->n; i++) piece_write(&out, s->vocab, t->data[i], true);
    piece_flush(&out);
}

// Reads what -p or -f adds to the text.
static int read_more(struct session *s, const struct params *p, struct tokens *t) {
    struct text text = {0};
    struct tokens more = {0};
    int status = text_prompt(&text, p);
    if (!status) status = tokens_make(&more, s->vocab, text.data, text.size, false, true);
    if (!status && p->display_prompt) fwrite(text.data, 1, text.size, stdout), fflush(stdout);
    if (!status) status = session_feed(s, more.data, more.n, true);
    if (!status) status = tokens_append(t, &more);
    free(more.data);
    free(text.data);
    return status;
}

// The last token is read again, if nothing follows it: the state holds what came before the next one, not its logits.
static int go_on(struct session *s, const struct params *p, struct tokens *t) {
    if (t->n == 0) return console_error("the state holds no tokens to go on from");
    const int32_t n_saved = t->n;
    if (p->prompt || p->file) {
        const int read = read_more(s, p, t);
        if (read) return read;
    }
    if (t->n > n_saved) {
        // its logits are there
    } else if (!llama_memory_seq_rm(llama_get_memory(s->ctx), 0, t->n - 1, -1)) {
        if (!llama_get_logits(s->ctx)) return console_error("this model's state cannot be taken back by a token");
    } else {
        const int status = session_feed(s, t->data + t->n - 1, 1, false);
        if (status) return status;
    }
    struct llama_sampler *chain = session_sampler(s, p);
    if (!chain) return 2;
    session_prompt_seen(chain, t->data, t->n);
    struct piece_writer out = {0};
    int status = 0;
    const int most = p->n_predict < 0 ? (int) llama_n_ctx(s->ctx) - t->n : p->n_predict;
    for (int i = 0; i < most && !status; i++) {
        llama_token token = llama_sampler_sample(chain, s->ctx, -1);
        if (token == LLAMA_TOKEN_NULL)
            status = console_library_error();
        else if (llama_vocab_is_eog(s->vocab, token))
            break;
        else {
            piece_write(&out, s->vocab, token, p->special);
            if (i + 1 < most) status = session_feed(s, &token, 1, false);
        }
    }
    piece_flush(&out);
    fputc('\n', stdout);
    llama_sampler_free(chain);
    return status;
}

static int run(struct params *p) {
    const char *what = p->args[0], *path = p->args[1];
    struct session s = {0};
    struct tokens t = {0};
    if (strcmp(what, "save") != 0 && strcmp(what, "run") != 0 && strcmp(what, "show") != 0) {
        console_error("'%s' should be save, run or show", what);
        return 2;
    }
    int status = session_load(&s, p, false);
    if (!status) status = session_writes(&s);
    if (!status) status = session_context(&s, p);
    if (!status && strcmp(what, "save") == 0)
        status = save(&s, p, path);
    else if (!status) {
        status = load(&s, path, &t);
        if (!status && (p->display_prompt || strcmp(what, "show") == 0)) print_tokens(&s, &t);
        if (!status && strcmp(what, "run") == 0)
            status = go_on(&s, p, &t);
        else if (!status)
            fputc('\n', stdout);
    }
    free(t.data);
    session_close(&s);
    return status;
}

static const char *more(void) {
    return "save reads -p or -f and writes FILE; run goes on from FILE, behind the text of -p or -f if there is one; show "
           "prints FILE's text.";
}

const struct tool tool_state = {
    .name = "state",
    .summary = "Saves what a model knows of a prompt, and goes on from there later",
    .args = "save|run|show FILE",
    .more = more,
    .min_args = 2,
    .max_args = 2,
    .groups = G_MODEL | G_LOAD | G_CTX | G_PROMPT | G_GEN | G_SAMPLE,
    .run = run,
};
