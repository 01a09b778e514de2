// Command-line options: one list (options.def) for parsing, help, the environment, completion scripts and the man page.
#pragma once

#include "cli/params.h"

#include <stdio.h>

enum opt_group {
    G_MODEL = 1 << 0,
    G_LOAD = 1 << 1,
    G_CTX = 1 << 2,
    G_PROMPT = 1 << 3,
    G_GEN = 1 << 4,
    G_SAMPLE = 1 << 5,
    G_CHAT = 1 << 6,
    G_INSPECT = 1 << 8,
    G_TOKENIZE = 1 << 9,
    G_JSON = 1 << 10,
    G_PERPLEXITY = 1 << 11,
    G_EMBED = 1 << 12,
    G_SPLIT = 1 << 13,
    G_QUANTIZE = 1 << 14,
    G_IMATRIX = 1 << 15,
    G_THREADS = 1 << 16,
    G_BENCH = 1 << 17,
    G_CONVERT = 1 << 18,
    G_PLAN = 1 << 19,
    G_COMPLETE = 1 << 20,
    G_LORA = 1 << 21,
    G_ALL = 1 << 30,
};

struct tool;

// Reads argv[first..] and the environment into p for a tool that takes these groups. Returns 0, 1 when help was printed, or 2
// after one sentence on stderr about what is wrong.
int options_parse(struct params *p, const struct tool *tool, int argc, char **argv, int first);

// The type that a name of -ctk means. NULL, or what was expected instead.
const char *options_cache_type(enum ggml_type *out, const char *v);
void options_help(const struct tool *tool, FILE *out);
// Completion scripts ("bash" or "zsh") and the man page, for all tools. 0, or 2 for an unknown shell.
int options_completion(const char *shell, FILE *out);
void options_man(FILE *out);
// Reads \n, \t, \r, \", \' and \\ in text [n] in place; its length then.
size_t text_unescape(char *text, size_t n);
