// Reading files that may be anything: only regular, non-empty files open; the size is taken once, and every read and every
// mapping is checked against it. Stateless; both libraries use it.
#pragma once

#include "base/err.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

struct file {
    int fd;
    uint64_t size;
    char path[256];  // for messages, cut to fit
};

struct file_map {
    void *base;  // what was mapped: page-aligned
    size_t bytes;
    const char *data;  // the range that was asked for
};

// Follows links. FIFOs, devices, sockets, folders and empty files give an error; nothing blocks.
MUST_USE enum err file_open(struct file *f, const char *path);
void file_close(struct file *f);
// Exactly n bytes from offset, or an error that says what is missing.
MUST_USE enum err file_read(const struct file *f, uint64_t offset, void *data, size_t n);
// Read-only mapping of [offset, offset + n). The file may be closed afterwards.
MUST_USE enum err file_map(const struct file *f, uint64_t offset, uint64_t n, struct file_map *map);
void file_unmap(struct file_map *map);

// Gives a file that is whole its real name. Only a file is replaced: what else bears the name (-o /dev/null, run by root) stays, and
// errno is EEXIST. 0 or -1. Inline: the program has no file.c of its own.
static inline int file_rename(const char *tmp, const char *path) {
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : EEXIST;
        return -1;
    }
    return rename(tmp, path);
}
