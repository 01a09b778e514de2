// Chat formats: how the messages of a conversation become one text.
#pragma once

#include "base/err.h"
#include "llama/vocab.h"
#include <string.h>

struct chat_out;
struct chat_format;

// What stands before and after the content of a turn of one role. Where role is NULL, every other role is meant, and its name
// stands between `before` and `between`; where role is "", every other role is meant and not named. A message whose role
// has no turn is left out.
struct chat_turn {
    const char *role, *before, *between, *after;
};

enum chat_flag {
    CHAT_TRIM_ANSWER = 1,     // the assistant's content without spaces around it
    CHAT_TRIM_REST = 2,       // everyone else's
    CHAT_TRIM = 3,            // both
    CHAT_SYSTEM_IN_USER = 4,  // system messages go in front of the next message that is not an answer, an empty line between
    CHAT_SYSTEM_FIRST = 8,    // a system message that is not the first message is left out
    CHAT_ASK_USER = 16,       // the model is asked only if the last message is a user's
    CHAT_ROLE_UPPER = 32,     // roles are named in upper case
    CHAT_ROLE_TITLE = 64,     // roles are named with a capital
    CHAT_OWN = 128,           // from here on a format's own flags
};

struct chat_format {
    const char *name;
    const char *needles[4];  // a template that holds all of these is of this format; none: found by name alone
    const char *others[4];   // or all of these
    const char *start;       // in front of everything
    const char *ask;         // asks the model for its turn
    int flags;
    struct chat_turn turns[5];
    void (*write)(const struct chat_format *f, struct chat_out *o, const llama_chat_message *chat, size_t n,
                  bool ask);  // NULL: by turns
};

// In the order in which templates are compared: the more particular first.
extern const struct chat_format chat_formats[];
extern const size_t chat_n_format;

// The format of a name or of a template's text; NULL: none is known.
const struct chat_format *chat_find(const char *tmpl);

// ---- where the text goes. Content is told apart from the format's own text, which alone may hold control tokens.
struct chat_out {
    void (*put)(struct chat_out *o, const char *p, size_t len, bool content);
};
void chat_put(struct chat_out *o, const char *text);                    // the format's own text
void chat_content(struct chat_out *o, const char *content, bool trim);  // a message's
bool chat_is(const llama_chat_message *m, const char *role);
enum err chat_write(const struct chat_format *f, struct chat_out *o, const llama_chat_message *chat, size_t n,
                    bool ask) MUST_USE;
