// Writing a conversation by its format, and the public calls.
#include "chat/chat.h"
#include "llama/ext.h"
#include <limits.h>
#include <stdlib.h>

void chat_put(struct chat_out *o, const char *text) {
    if (text && *text) o->put(o, text, strlen(text), false);
}

static bool is_space(char c) { return c == ' ' || (c >= 9 && c <= 13); }

void chat_content(struct chat_out *o, const char *content, bool trim) {
    size_t len = strlen(content);
    while (trim && len > 0 && is_space(content[len - 1])) len--;
    while (trim && len > 0 && is_space(*content)) {
        content++;
        len--;
    }
    if (len) o->put(o, content, len, true);
}

bool chat_is(const llama_chat_message *m, const char *role) { return strcmp(m->role, role) == 0; }

static bool holds(const char *text, const char *const needles[4]) {
    for (int i = 0; i < 4 && needles[i]; i++) {
        if (!strstr(text, needles[i])) return false;
    }
    return needles[0] != NULL;
}

const struct chat_format *chat_find(const char *tmpl) {
    if (!tmpl) tmpl = "chatml";
    for (size_t i = 0; i < chat_n_format; i++) {
        if (strcmp(chat_formats[i].name, tmpl) == 0) return &chat_formats[i];
    }
    for (size_t i = 0; i < chat_n_format; i++) {
        if (holds(tmpl, chat_formats[i].needles) || holds(tmpl, chat_formats[i].others)) return &chat_formats[i];
    }
    return NULL;
}

static const struct chat_turn *turn_of(const struct chat_format *f, const char *role) {
    enum { N = sizeof f->turns / sizeof *f->turns };
    const struct chat_turn *other = NULL;
    for (int i = 0; i < N && f->turns[i].before; i++) {
        const struct chat_turn *t = &f->turns[i];
        if (t->role && *t->role && strcmp(t->role, role) == 0) return t;
        if (!t->role || !*t->role) other = t;
    }
    return other;
}

static void put_role(const struct chat_format *f, struct chat_out *o, const char *role) {
    for (size_t i = 0; role[i]; i++) {
        char c[2] = {role[i], 0};
        bool up = f->flags & CHAT_ROLE_UPPER || (f->flags & CHAT_ROLE_TITLE && i == 0);
        if (up && c[0] >= 'a' && c[0] <= 'z') c[0] -= 'a' - 'A';
        chat_put(o, c);
    }
}

// Writes message i, behind the system messages of *i_system .. i - 1 if there are such and it takes them.
static void write_turn(const struct chat_format *f, struct chat_out *o, const llama_chat_message *chat, size_t i,
                       size_t *i_system) {
    const struct chat_turn *t = turn_of(f, chat[i].role);
    if (!t) return;
    bool waiting = false;
    chat_put(o, t->before);
    if (!t->role) put_role(f, o, chat[i].role);
    chat_put(o, t->between);
    if (f->flags & CHAT_SYSTEM_IN_USER && (!t->role || chat_is(&chat[i], "user"))) {
        for (; *i_system < i; ++*i_system) {
            if (!chat_is(&chat[*i_system], "system")) continue;
            chat_content(o, chat[*i_system].content, f->flags & CHAT_TRIM_REST);
            waiting = true;
        }
    }
    if (waiting) chat_put(o, "\n\n");
    chat_content(o, chat[i].content, f->flags & (chat_is(&chat[i], "assistant") ? CHAT_TRIM_ANSWER : CHAT_TRIM_REST));
    chat_put(o, t->after);
}

static void write_turns(const struct chat_format *f, struct chat_out *o, const llama_chat_message *chat, size_t n,
                        bool ask) {
    size_t i_system = 0;  // from here on system messages may wait
    chat_put(o, f->start);
    for (size_t i = 0; i < n; i++) {
        bool system = chat_is(&chat[i], "system");
        if (system && (f->flags & CHAT_SYSTEM_IN_USER || (f->flags & CHAT_SYSTEM_FIRST && i > 0))) continue;
        write_turn(f, o, chat, i, &i_system);
    }
    if (ask && !(f->flags & CHAT_ASK_USER && (n == 0 || !chat_is(&chat[n - 1], "user")))) chat_put(o, f->ask);
}

enum err chat_write(const struct chat_format *f, struct chat_out *o, const llama_chat_message *chat, size_t n, bool ask) {
    if (n && !chat) return err_set(ERR_INVALID, "chat: the messages are NULL");
    if (n > PTRDIFF_MAX / sizeof *chat) return err_set(ERR_INVALID, "chat: no array has %zu messages", n);
    for (size_t i = 0; i < n; i++) {
        if (!chat[i].role || !chat[i].content) {
            return err_set(ERR_INVALID, "chat: message %zu has no %s", i, chat[i].role ? "content" : "role");
        }
    }
    (f->write ? f->write : write_turns)(f, o, chat, n, ask);
    return ERR_OK;
}

// ---- as text

struct text_out {
    struct chat_out base;
    char *p;
    size_t n, max;
};

static void put_text(struct chat_out *o, const char *p, size_t len, bool content) {
    (void) content;
    struct text_out *t = (struct text_out *) o;
    if (t->n < t->max) memcpy(t->p + t->n, p, len < t->max - t->n ? len : t->max - t->n);
    t->n += len;
}

static const struct chat_format *must_find(const char *tmpl) {
    const struct chat_format *f = chat_find(tmpl);
    if (!f) err_set(ERR_UNSUPPORTED, "chat: the template is none of the %zu known formats: '%.60s'", chat_n_format, tmpl);
    return f;
}

int32_t llama_chat_apply_template(const char *tmpl, const struct llama_chat_message *chat, size_t n_msg, bool add_ass,
                                  char *buf, int32_t length) {
    const struct chat_format *f = must_find(tmpl);
    struct text_out o = {{put_text}, buf, 0, buf && length > 0 ? (size_t) length : 0};
    if (!f || chat_write(f, &o.base, chat, n_msg, add_ass) != ERR_OK) return -1;
    if (o.n < o.max) buf[o.n] = 0;
    if (o.n <= INT32_MAX) return (int32_t) o.n;
    err_set(ERR_UNSUPPORTED, "chat: a text of %zu bytes is more than the result can count", o.n);
    return -1;
}

int32_t llama_chat_builtin_templates(const char **output, size_t len) {
    for (size_t i = 0; output && i < len && i < chat_n_format; i++) output[i] = chat_formats[i].name;
    return (int32_t) chat_n_format;
}

// ---- as tokens

struct stretch {
    size_t at, len;
    bool content;
};

struct token_out {
    struct chat_out base;
    char *text;
    size_t n_text, cap_text;
    struct stretch *list;
    size_t n, cap;
    enum err err;
};

static enum err add_stretch(struct token_out *t, const char *p, size_t len, bool content) {
    if (t->n_text + len > t->cap_text) {
        size_t cap = (t->n_text + len) * 2;
        char *text = realloc(t->text, cap);
        if (!text) return err_set(ERR_NOMEM, "chat: no memory for a text of %zu bytes", cap);
        t->text = text;
        t->cap_text = cap;
    }
    if (t->n == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 32;
        struct stretch *list = realloc(t->list, cap * sizeof *list);
        if (!list) return err_set(ERR_NOMEM, "chat: no memory for %zu messages", cap);
        t->list = list;
        t->cap = cap;
    }
    memcpy(t->text + t->n_text, p, len);
    if (t->n && t->list[t->n - 1].content == content) {
        t->list[t->n - 1].len += len;
    } else {
        t->list[t->n++] = (struct stretch){t->n_text, len, content};
    }
    t->n_text += len;
    return ERR_OK;
}

static void put_stretch(struct chat_out *o, const char *p, size_t len, bool content) {
    struct token_out *t = (struct token_out *) o;
    if (t->err == ERR_OK) t->err = add_stretch(t, p, len, content);
}

int32_t llama_chat_tokenize(const struct llama_vocab *vocab, const char *tmpl, const struct llama_chat_message *chat,
                            size_t n_msg, bool add_ass, llama_token *tokens, int32_t n_tokens_max) {
    const struct chat_format *f = must_find(tmpl);
    struct token_out t = {.base = {put_stretch}};
    int32_t n = INT32_MIN;
    if (f && chat_write(f, &t.base, chat, n_msg, add_ass) == ERR_OK && t.err == ERR_OK) {
        bool *parse = malloc((t.n + 1) * sizeof *parse);
        size_t *lens = malloc((t.n + 1) * sizeof *lens);
        if (parse && lens) {
            for (size_t i = 0; i < t.n; i++) {
                parse[i] = !t.list[i].content;
                lens[i] = t.list[i].len;
            }
            n = llama_tokenize_parts(vocab, t.text, lens, parse, t.n, tokens, n_tokens_max, true);
        } else {
            err_set(ERR_NOMEM, "chat: no memory for %zu messages", t.n);
        }
        free(parse);
        free(lens);
    }
    free(t.text);
    free(t.list);
    return n;
}
