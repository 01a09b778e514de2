// lamina: finds the subcommand, from argv[1] or from the name under which the program was called.
#include "cli/console.h"
#include "cli/session.h"
#include "tools/tool.h"

#include <stdio.h>
#include <string.h>

#define TOOL(name) extern const struct tool tool_##name;
#include "tools/tools.def"
#undef TOOL

const struct tool *const tools[] = {
#define TOOL(name) &tool_##name,
#include "tools/tools.def"
#undef TOOL
};
const int n_tools = (int) (sizeof(tools) / sizeof(tools[0]));

#define LINK(name, tool, args) {name, &tool_##tool, args},
#define NONE(name, sentence) {name, NULL, sentence},
static const struct link {
    const char *name;
    const struct tool *tool;
    const char *args;  // see links.def
} links[] = {
#include "tools/links.def"
};
#undef LINK
#undef NONE

static void help(FILE *out) {
    fputs("usage: lamina COMMAND [OPTION ...]\n\nRuns and looks after language models in GGUF files.\n\n", out);
    for (int i = 0; i < n_tools; i++) fprintf(out, "  %-12s %s\n", tools[i]->name, tools[i]->summary);
    fputs("\n  completion   print a completion script: lamina completion bash|zsh\n"
          "  man          print the manual page\n"
          "\n`lamina COMMAND -h` shows a command's options and their defaults.\n",
          out);
}

static const struct tool *find(const char *name) {
    for (int i = 0; i < n_tools; i++)
        if (strcmp(name, tools[i]->name) == 0 || (tools[i]->alias && strcmp(name, tools[i]->alias) == 0)) return tools[i];
    return NULL;
}

static bool asks_help(const char *arg) { return strcmp(arg, "-h") == 0 || strcmp(arg, "--help") == 0; }

static int finish(int status) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    fputs("error: writing to standard output failed\n", stderr);
    return status ? status : 1;
}

// Sets what a link's name says; and, once options are read, what its arguments mean.
static void as_link(struct params *p, const char *args, bool parsed) {
    int n = 0;
    for (; *args; args++) {
        if (*args == 'c') p->checksum = true;
        if (*args == 'g' && !parsed) p->n_predict = 32, p->temp = 0.0f;
        if (!parsed || n >= p->n_args || !strchr("mp", *args)) continue;
        *(*args == 'm' ? &p->model : &p->prompt) = p->args[n++];
        p->single_turn |= *args == 'p';
    }
}

static int start(const struct tool *tool, int argc, char **argv, int first, const char *link_args) {
    struct params p = params_default();
    struct tool t = *tool;
    for (const char *a = link_args; *a; a++) t.max_args += *a == 'm' || *a == 'p';
    as_link(&p, link_args, false);
    const int status = options_parse(&p, &t, argc, argv, first);
    if (status) return finish(status == 1 ? 0 : status);
    as_link(&p, link_args, true);
    int result = console_init(&p);
    if (!result && p.list_devices)
        session_list_devices();
    else if (!result)
        result = tool->run(&p);
    console_done();
    return finish(result);
}

// As the program of the field that this one was called as. -1: as none.
static int start_link(int argc, char **argv) {
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    const struct tool *self = find(name);
    if (self) return start(self, argc, argv, 1, "");
    if (strncmp(name, "llama-", 6) != 0) return -1;
    const char *nearest = "`lamina -h` lists its commands";
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        if (strcmp(name, links[i].name) != 0) continue;
        if (links[i].tool) return start(links[i].tool, argc, argv, 1, links[i].args);
        nearest = links[i].args;
    }
    fprintf(stderr, "error: Lamina has no %s; %s\n", name, nearest);
    return 2;
}

int main(int argc, char **argv) {
    const int linked = start_link(argc, argv);
    if (linked >= 0) return linked;
    if (argc < 2) {
        help(stderr);
        return 2;
    }
    const char *name = argv[1];
    if (asks_help(name) || strcmp(name, "help") == 0) {
        const struct tool *about = argc > 2 ? find(argv[2]) : NULL;
        if (about) return start(about, 2, (char *[]){argv[0], "-h", NULL}, 1, "");
        help(stdout);
        return finish(0);
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) {
        printf("lamina %s (%s)\n", llama_version(), ggml_commit());
        return finish(0);
    }
    const bool completion = strcmp(name, "completion") == 0;
    if ((completion || strcmp(name, "man") == 0) && argc > 2 && asks_help(argv[2])) {
        puts(completion ? "usage: lamina completion bash|zsh\n\nPrints a completion script of that shell: source <(lamina "
                          "completion bash)"
                        : "usage: lamina man\n\nPrints the manual page: lamina man | man -l -");
        return finish(0);
    }
    if (completion) return finish(options_completion(argc > 2 ? argv[2] : "", stdout));
    if (strcmp(name, "man") == 0) {
        options_man(stdout);
        return finish(0);
    }
    const struct tool *tool = find(name);
    if (tool) return start(tool, argc, argv, 2, "");
    fprintf(stderr, "error: no command is called '%s'; `lamina -h` lists them\n", name);
    return 2;
}
