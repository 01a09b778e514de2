// Reading files that may be anything: only regular, non-empty files open; the size is taken once, and every read and every
// mapping is checked against it. Stateless; both libraries use it.
#pragma once

#include "base/err.h"

#include <errno.h>
#include <stdbool.h>
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
// Whether the file still has `end` bytes: another program may have cut it since it was opened. One system call.
MUST_USE enum err file_reaches(const struct file *f, uint64_t end);
// Read-only mapping of [offset, offset + n). The file may be closed afterwards.
MUST_USE enum err file_map(const struct file *f, uint64_t offset, uint64_t n, struct file_map *map);
void file_unmap(struct file_map *map);
// Bytes of the address space that such a mapping takes: it begins with the page that holds offset. SIZE_MAX: none can be so large.
size_t file_map_bytes(uint64_t offset, uint64_t n);

// Whether a file can get this name: nothing bears it yet, or a file that it replaces. Else -1, and errno is EISDIR, or EEXIST for what else
// bears it (-o /dev/null, run by root). To be asked before long work, too. Inline: the program has no file.c of its own.
static inline int file_replaceable(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0 || S_ISREG(st.st_mode)) return 0;
    errno = S_ISDIR(st.st_mode) ? EISDIR : EEXIST;
    return -1;
}

// Whether path, by whatever name, is the open file: writing there would destroy what is being read.
static inline bool file_is(int fd, const char *path) {
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Gives a file that is whole its real name, if that is replaceable. 0 or -1.
static inline int file_rename(const char *tmp, const char *path) {
    if (file_replaceable(path) != 0) return -1;
    return rename(tmp, path);
}
