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

static int finish(int status) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    fputs("error: writing to standard output failed\n", stderr);
    return status ? status : 1;
}

static int start(const struct tool *tool, int argc, char **argv, int first) {
    struct params p = params_default();
    const int status = options_parse(&p, tool, argc, argv, first);
    if (status) return finish(status == 1 ? 0 : status);
    int result = console_init(&p);
    if (!result && p.list_devices)
        session_list_devices();
    else if (!result)
        result = tool->run(&p);
    console_done();
    return finish(result);
}

int main(int argc, char **argv) {
    const char *slash = strrchr(argv[0], '/');
    const struct tool *self = find(slash ? slash + 1 : argv[0]);
    if (self) return start(self, argc, argv, 1);
    if (argc < 2) {
        help(stderr);
        return 2;
    }
    const char *name = argv[1];
    if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "help") == 0) {
        const struct tool *about = argc > 2 ? find(argv[2]) : NULL;
        if (about) return start(about, 2, (char *[]){argv[0], "-h", NULL}, 1);
        help(stdout);
        return finish(0);
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) {
        printf("lamina %s (%s)\n", llama_version(), ggml_commit());
        return finish(0);
    }
    if (strcmp(name, "completion") == 0) return finish(options_completion(argc > 2 ? argv[2] : "", stdout));
    if (strcmp(name, "man") == 0) {
        options_man(stdout);
        return finish(0);
    }
    const struct tool *tool = find(name);
    if (tool) return start(tool, argc, argv, 2);
    fprintf(stderr, "error: no command is called '%s'; `lamina -h` lists them\n", name);
    return 2;
}
