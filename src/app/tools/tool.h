// A subcommand of `lamina` is one file of this folder that ends in `const struct tool tool_<name>`, and one line in tools.def.
#pragma once

#include "cli/options.h"

struct tool {
    const char *name;           // "run"
    const char *alias;          // name under which argv[0] also means this tool ("llama-cli"), or NULL
    const char *summary;        // one line, no full stop
    const char *args;           // what follows the options ("MODEL"), or ""
    const char *(*more)(void);  // what -h and the manual page say below the summary, or NULL; sentences
    int min_args, max_args;
    unsigned groups;               // enum opt_group
    int (*run)(struct params *p);  // exit status: 0 done, 1 failed, 2 wrong call, 130 interrupted
};

extern const struct tool *const tools[];
extern const int n_tools;

// -cnv and -no-cnv lead from one to the other.
extern const struct tool tool_run, tool_chat;
