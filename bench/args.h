// Options of the measuring programs: a letter with a whole number, then names. -h lists them with their defaults.
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_option {
    const char *name;  // with its dash
    long *value;       // holds the default
    long least;
    const char *text;
};

// Reads options up to the first argument that is none and gives its index. -h prints the help and ends the program with 0, a wrong
// option ends it with 2. names: what follows the options, for the usage line; about: what the program measures, a sentence or two.
static inline int bench_args(int argc, char **argv, const char *names, const char *about, const struct bench_option *o,
                             int n) {
    for (int i = 1; i < argc; i += 2) {
        if (argv[i][0] != '-') return i;
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
            printf("usage: %s%s %s\n\n%s\n\n", argv[0], n ? " [OPTION ...]" : "", names, about);
            for (int k = 0; k < n; k++) printf("  %s N  %s (default: %ld)\n", o[k].name, o[k].text, *o[k].value);
            printf("  -h    show this text\nGGML_ISA=LEVEL pins an ISA level.\n");
            exit(0);
        }
        int k = 0;
        while (k < n && strcmp(argv[i], o[k].name) != 0) k++;
        if (k == n) {
            fprintf(stderr, "error: %s has no option %s; see %s -h\n", argv[0], argv[i], argv[0]);
            exit(2);
        }
        char *end = NULL;
        errno = 0;
        const long v = i + 1 < argc ? strtol(argv[i + 1], &end, 10) : 0;
        if (!end || end == argv[i + 1] || *end || errno || v < o[k].least) {
            fprintf(stderr, "error: %s takes a whole number of at least %ld, not \"%s\"\n", argv[i], o[k].least,
                    i + 1 < argc ? argv[i + 1] : "");
            exit(2);
        }
        *o[k].value = v;
    }
    return argc;
}
