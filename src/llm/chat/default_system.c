// The system message that a template brings itself. Such templates hold it as one quoted text, between the marks of a system message:
// '<|im_start|>system\nYou are ...<|im_end|>\n'. That is looked for; what is put together from parts or computed (dates, tools) is left alone.
#include "base/err.h"
#include "chat/chat.h"
#include "llama/ext.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *open, *close;
} marks[] = {
    {"<|im_start|>system", "<|im_end|>"},
    {"<|im_system|>system<|im_middle|>", "<|im_end|>"},
    {"<|system|>", "<|end|>"},
    {"<|system|>", "</s>"},
    {"<|system|>", "<|endoftext|>"},
    {"<|start_header_id|>system<|end_header_id|>", "<|eot_id|>"},
    {"<|start_of_role|>system<|end_of_role|>", "<|end_of_text|>"},
    {"<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", "<|END_OF_TURN_TOKEN|>"},
};

// A line end, as a template spells it or holds it; 0: there is none.
static size_t line_end(const char *p) { return p[0] == '\n' ? 1 : p[0] == '\\' && p[1] == 'n' ? 2 : 0; }

// The text behind an opening mark up to the closing one, with escapes read; -1: it is not one quoted text, or empty.
static int32_t read_text(const char *at, const char *close, char *buf, int32_t length) {
    int32_t n = 0;
    for (size_t skip; (skip = line_end(at)) != 0;) at += skip;
    const size_t n_close = strlen(close);
    for (; strncmp(at, close, n_close) != 0; at++) {
        char c = *at;
        if (!c || c == '\'' || c == '"' || strncmp(at, "{{", 2) == 0 || strncmp(at, "{%", 2) == 0) return -1;
        if (c == '\\' && at[1] && strchr("n'\"\\", at[1])) c = *++at == 'n' ? '\n' : *at;
        if (n + 1 < length) buf[n] = c;
        n++;
    }
    if (length > 0) buf[n < length ? n : length - 1] = '\0';
    return n > 0 ? n : -1;
}

int32_t llama_chat_default_system(const char *tmpl, char *buf, int32_t length) {
    if (!tmpl || length < 0 || (!buf && length)) return -1;
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
        for (const char *at = tmpl; (at = strstr(at, marks[i].open)) != NULL;) {
            at += strlen(marks[i].open);
            const int32_t n = read_text(at, marks[i].close, buf, length);
            if (n > 0) return n;
        }
    return 0;
}
