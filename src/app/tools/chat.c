// lamina chat: a conversation in the model's own format. Ctrl-C stops the answer, a second one (or Ctrl-D) the program.
#include "cli/console.h"
#include "cli/session.h"
#include "llama/ext.h"
#include "tools/tool.h"

#include <histedit.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct chat {
    struct session s;
    struct llama_sampler *sampler;
    const struct params *p;
    const char *tmpl;
    llama_chat_message *messages;
    size_t n_messages, room;
    int32_t formatted;  // bytes of the formatted conversation that the model has seen
    int32_t n_past, n_keep;
    bool interactive;
    EditLine *edit;
    History *history;
};

// Takes content over, also when it fails.
static int message_add(struct chat *c, const char *role, char *content) {
    if (!content) return console_error("no memory for a message");
    if (c->n_messages == c->room) {
        const size_t room = c->room ? 2 * c->room : 16;
        llama_chat_message *grown = realloc(c->messages, room * sizeof(*grown));
        if (!grown) {
            free(content);
            return console_error("no memory for %zu messages", room);
        }
        c->messages = grown;
        c->room = room;
    }
    c->messages[c->n_messages++] = (llama_chat_message){.role = role, .content = content};
    return 0;
}

static void messages_clear(struct chat *c) {
    for (size_t i = 0; i < c->n_messages; i++) free((char *) c->messages[i].content);
    c->n_messages = 0;
}

// The conversation in the model's format; NULL after a sentence. add_ass: with the start of the answer.
static char *format(const struct chat *c, bool add_ass, int32_t *n) {
    *n = llama_chat_apply_template(c->tmpl, c->messages, c->n_messages, add_ass, NULL, 0);
    char *text = *n >= 0 ? malloc((size_t) *n + 1) : NULL;
    if (text) {
        llama_chat_apply_template(c->tmpl, c->messages, c->n_messages, add_ass, text, *n);
        return text;
    }
    console_error("no memory for the conversation's text");
    return NULL;
}

static int check_format(const struct chat *c) {
    const llama_chat_message one = {.role = "user", .content = "x"};
    if (llama_chat_apply_template(c->tmpl, &one, 1, true, NULL, 0) >= 0) return 0;
    const char *names[128];
    char known[2048] = "";
    const int32_t n = llama_chat_builtin_templates(names, 128);
    for (int32_t i = 0, end = 0; i < n && i < 128 && end < (int32_t) sizeof(known); i++)
        end += snprintf(known + end, sizeof(known) - (size_t) end, " %s", names[i]);
    if (c->p->chat_template)
        console_error("--chat-template: '%s' is no format that is known; there are%s", c->p->chat_template, known);
    else
        console_error("the conversation format of this model is not known; choose one with --chat-template NAME:%s", known);
    return 2;
}

// Where the content of the last message stands in the conversation of n bytes. Formats may trim it, and its text may be found in the
// format's own ("i" in <|im_start|>), so it is asked for with another content.
static void find_content(const struct chat *c, bool add_ass, int32_t n, int32_t *at, int32_t *size) {
    static const char mark[] = "\x1a(content)\x1a";
    const int32_t n_mark = (int32_t) sizeof(mark) - 1;
    llama_chat_message *last = &c->messages[c->n_messages - 1];
    const char *content = last->content;
    int32_t n_marked;
    last->content = mark;
    char *marked = format(c, add_ass, &n_marked);
    last->content = content;
    const char *found = marked ? memmem(marked, (size_t) n_marked, mark, (size_t) n_mark) : NULL;
    *at = found && n >= n_marked - n_mark ? (int32_t) (found - marked) : n;
    *size = *at < n ? n - (n_marked - n_mark) : 0;
    free(marked);
}

// Tokens of the newly formatted text [n], of which [at, at + size) is the message. Only the format's own text may become control
// tokens; the message is plain text, even where it spells one.
static int new_tokens(struct chat *c, const char *text, int32_t n, int32_t at, int32_t size, struct tokens *out) {
    const size_t lens[3] = {(size_t) at, (size_t) size, (size_t) (n - at - size)};
    const bool parse[3] = {true, false, true}, first = c->n_past == 0;
    *out = (struct tokens){0};
    const int32_t need = llama_tokenize_parts(c->s.vocab, text, lens, parse, 3, NULL, 0, first);
    if (need == INT32_MIN) return console_library_error();
    out->data = malloc(sizeof(llama_token) * (size_t) ((need < 0 ? -need : need) + 1));
    if (!out->data) return console_error("no memory for %d tokens", -need);
    out->n = llama_tokenize_parts(c->s.vocab, text, lens, parse, 3, out->data, need < 0 ? -need : need, first);
    return out->n >= 0 ? 0 : console_library_error();
}

// ---- the answer --------------------------------------------------------------------------------------------------

struct answer {
    char *text;
    size_t n, room;
};

static void answer_add(struct answer *a, const struct llama_vocab *vocab, llama_token token) {
    char piece[512];
    const int32_t n = llama_token_to_piece(vocab, token, piece, sizeof(piece), 0, false);
    if (n <= 0) return;
    if (a->n + (size_t) n + 1 > a->room) {
        const size_t room = 2 * a->room + (size_t) n + 1;
        char *grown = realloc(a->text, room);
        if (!grown) return;
        a->text = grown;
        a->room = room;
    }
    memcpy(a->text + a->n, piece, (size_t) n);
    a->n += (size_t) n;
    a->text[a->n] = '\0';
}

static int generate(struct chat *c, struct answer *a) {
    struct piece_writer out = {0};
    struct stop_text stop = {.texts = &c->p->reverse_prompt};
    const int n_ctx = (int) llama_n_ctx(c->s.ctx);
    int status = 0;
    for (int n = 0; c->p->n_predict < 0 || n < c->p->n_predict; n++) {
        llama_token token = llama_sampler_sample(c->sampler, c->s.ctx, -1);
        if (token == LLAMA_TOKEN_NULL) {
            status = console_library_error();
            break;
        }
        if (llama_vocab_is_eog(c->s.vocab, token)) break;
        piece_write(&out, c->s.vocab, token, c->p->special);
        answer_add(a, c->s.vocab, token);
        if (console_interrupted() || stop_reached(&stop, c->s.vocab, token)) break;
        if (c->n_past >= n_ctx && c->p->context_shift && (status = session_forget(&c->s, c->n_keep, &c->n_past)) != 0) break;
        if (c->n_past >= n_ctx) {
            piece_flush(&out);
            console_note("\nstopped: the context of %d tokens is full; /clear starts anew, -c N makes it larger", n_ctx);
            break;
        }
        status = session_feed(&c->s, &token, 1, false);
        c->n_past += status == 0 || status == 130;
        if (status) break;
    }
    piece_flush(&out);
    fputc('\n', stdout);
    return status == 130 ? 0 : status;
}

// A message with what --in-prefix and --in-suffix put around it; malloc.
static char *framed(const struct params *p, const char *line) {
    const char *before = p->in_prefix ? p->in_prefix : "", *behind = p->in_suffix ? p->in_suffix : "";
    const size_t size = strlen(before) + strlen(line) + strlen(behind) + 1;
    char *text = malloc(size);
    if (text) snprintf(text, size, "%s%s%s", before, line, behind);
    return text;
}

static int start_anew(struct chat *c);

static int turn(struct chat *c, const char *line) {
    char *content = framed(c->p, line);
    if (message_add(c, "user", content)) return 1;
    int32_t n, at, size;
    char *text = format(c, true, &n);
    if (!text) return 1;
    struct tokens tokens = {0};
    find_content(c, true, n, &at, &size);
    int status = new_tokens(c, text + c->formatted, n - c->formatted, at - c->formatted, size, &tokens);
    free(text);
    const int32_t n_ctx = (int32_t) llama_n_ctx(c->s.ctx);
    if (c->n_past == 0) c->n_keep = c->p->n_keep < 0 ? tokens.n : c->p->n_keep;
    while (!status && c->p->context_shift && c->n_past + tokens.n > n_ctx && c->n_past > c->n_keep + 2)
        status = session_forget(&c->s, c->n_keep, &c->n_past);
    if (!status && c->n_past + tokens.n > n_ctx) {
        console_note("the conversation would have %d tokens, more than the context of %d; /clear starts anew",
                     c->n_past + tokens.n, n_ctx);
        free((char *) c->messages[--c->n_messages].content);
        free(tokens.data);
        return 0;
    }
    console_rearm();
    if (!status) status = session_feed(&c->s, tokens.data, tokens.n, true);
    if (status == 130) {  // the message was not read to its end: as if it had never been sent
        free(tokens.data);
        console_rearm();
        free((char *) c->messages[--c->n_messages].content);
        llama_memory_t mem = llama_get_memory(c->s.ctx);
        if (llama_memory_seq_rm(mem, 0, c->n_past, -1) && llama_memory_seq_pos_max(mem, 0) == c->n_past - 1) return 0;
        console_note("the conversation starts anew: what this model has read can't be taken back in part");
        return start_anew(c);
    }
    c->n_past += status ? 0 : tokens.n;
    if (!status) session_prompt_seen(c->sampler, tokens.data, tokens.n);
    free(tokens.data);
    struct answer a = {0};
    if (!status) status = generate(c, &a);
    console_rearm();
    if (status == 130) status = 0;
    if (!status)
        status = message_add(c, "assistant", a.text ? a.text : calloc(1, 1));
    else
        free(a.text);
    if (!status) {
        // the model has seen the answer, but nothing of what ends it: that comes before the next message
        text = format(c, false, &n);
        status = text ? 0 : 1;
        if (text) find_content(c, false, n, &at, &size);
        if (text) c->formatted = at + size;
        free(text);
    }
    return status;
}

// ---- reading lines -------------------------------------------------------------------------------------------------

static char *show_prompt(EditLine *e) {
    (void) e;
    static char prompt[] = "> ";
    return prompt;
}

static void edit_open(struct chat *c) {
    setlocale(LC_CTYPE, "");
    HistEvent ev;
    c->edit = el_init("lamina", stdin, stdout, stderr);
    c->history = history_init();
    if (!c->edit || !c->history) return;
    history(c->history, &ev, H_SETSIZE, 1000);
    el_set(c->edit, EL_PROMPT, show_prompt);
    el_set(c->edit, EL_EDITOR, "emacs");
    el_set(c->edit, EL_SIGNAL, 0);
    el_set(c->edit, EL_HIST, history, c->history);
}

// The next line without its end, malloc; NULL at the end of input.
static char *next_line(struct chat *c) {
    char *line = NULL;
    if (c->edit) {
        int n = 0;
        HistEvent ev;
        const char *got = el_gets(c->edit, &n);
        if (!got || n <= 0) return NULL;
        if (n > 1) history(c->history, &ev, H_ENTER, got);
        line = strdup(got);
    } else {
        size_t room = 0;
        if (getline(&line, &room, stdin) < 0) {
            free(line);
            return NULL;
        }
    }
    if (line) line[strcspn(line, "\r\n")] = '\0';
    return line;
}

static int system_message(struct chat *c) {
    if (c->p->system_prompt) return message_add(c, "system", strdup(c->p->system_prompt));
    if (!c->p->system_file) {  // the model's own, where its template has one
        char own[4096];
        const int32_t n = c->p->chat_template ? 0 : llama_chat_default_system(c->tmpl, own, sizeof(own));
        return n > 0 && n < (int32_t) sizeof(own) ? message_add(c, "system", strdup(own)) : 0;
    }
    struct text t;
    if (text_read(&t, c->p->system_file)) return 1;
    char *text = realloc(t.data, t.size + 1);
    if (text)
        text[t.size] = '\0';
    else
        free(t.data);
    return message_add(c, "system", text);
}

static int start_anew(struct chat *c) {
    llama_memory_clear(llama_get_memory(c->s.ctx), true);
    llama_sampler_reset(c->sampler);
    messages_clear(c);
    c->formatted = c->n_past = 0;
    return system_message(c);
}

// 0: a message for the model; 1: done with the line; 2: leave.
static int command(struct chat *c, const char *line) {
    if (line[0] != '/') return line[0] ? 0 : 1;
    if (strcmp(line, "/exit") == 0 || strcmp(line, "/quit") == 0) return 2;
    if (strcmp(line, "/clear") == 0) return start_anew(c) ? 2 : 1;
    if (strcmp(line, "/help") == 0) {
        fputs("/clear  forget the conversation\n/exit   leave (or Ctrl-D)\nCtrl-C  stop the answer\n", stdout);
        return 1;
    }
    return 0;
}

static int converse(struct chat *c) {
    int status = system_message(c);
    if (c->p->prompt && !status) status = turn(c, c->p->prompt);
    bool done = c->p->prompt && c->p->single_turn;
    while (!status && !done) {
        console_rearm();
        char *line = next_line(c);
        if (!line) break;
        const int what = command(c, line);
        if (what == 0) status = turn(c, line);
        done = what == 0 && c->p->single_turn;
        free(line);
        if (what == 2) break;
    }
    return status;
}

static int run(struct params *p) {
    if (p->no_conversation) return tool_run.run(p);
    struct chat c = {.p = p, .interactive = isatty(STDIN_FILENO)};
    int status = session_load(&c.s, p, false);
    if (!status) status = session_writes(&c.s);
    if (!status) status = session_context(&c.s, p);
    if (!status) {
        c.tmpl = p->chat_template ? p->chat_template : llama_model_chat_template(c.s.model, NULL);
        if (!c.tmpl) {
            console_error("this model brings no conversation format; choose one with --chat-template NAME");
            status = 2;
        }
    }
    if (!status) status = check_format(&c);
    if (!status && !(c.sampler = session_sampler(&c.s, p))) status = 2;
    if (!status) {
        if (c.interactive) {
            edit_open(&c);
            console_note("Type a message; /help shows the commands.");
        }
        status = converse(&c);
    }
    if (c.edit) el_end(c.edit);
    if (c.history) history_end(c.history);
    messages_clear(&c);
    free(c.messages);
    if (c.sampler) llama_sampler_free(c.sampler);
    session_close(&c.s);
    return status;
}

const struct tool tool_chat = {
    .name = "chat",
    .alias = "llama-cli",
    .summary = "Talks with a model in the model's own conversation format",
    .args = "",
    .groups = G_MODEL | G_LOAD | G_CTX | G_GEN | G_CHAT | G_SAMPLE | G_PROMPT,
    .run = run,
};
