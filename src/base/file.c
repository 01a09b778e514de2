// See file.h.
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISSOCK(mode)) return "a socket";
    if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
    return "not a regular file";
}

enum err file_open(struct file *f, const char *path) {
    *f = (struct file){.fd = -1};
    if (!path) return err_set(ERR_INVALID, "open: no path given (NULL)");
    strncpy(f->path, path, sizeof f->path - 1);
    // O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return err_set(ERR_IO, "cannot open %s: %s", path, strerror(errno));
    struct stat st;
    enum err failure = ERR_OK;
    if (fstat(fd, &st) != 0) {
        failure = err_set(ERR_IO, "cannot read the size of %s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        failure = err_set(ERR_IO, "%s is %s, not a file", path, kind_of(st.st_mode));
    } else if (st.st_size <= 0) {
        failure = err_set(ERR_FORMAT, "%s is empty", path);
    }
    if (failure != ERR_OK) {
        close(fd);
        return failure;
    }
    f->fd = fd;
    f->size = (uint64_t) st.st_size;
    return ERR_OK;
}

void file_close(struct file *f) {
    if (f->fd >= 0) close(f->fd);
    f->fd = -1;
}

static enum err check_range(const struct file *f, uint64_t offset, uint64_t n) {
    if (offset <= f->size && n <= f->size - offset) return ERR_OK;
    return err_set(ERR_FORMAT, "%s: %llu bytes at offset %llu wanted, the file has %llu", f->path, (unsigned long long) n,
                   (unsigned long long) offset, (unsigned long long) f->size);
}

enum err file_read(const struct file *f, uint64_t offset, void *data, size_t n) {
    TRY(check_range(f, offset, n));
    char *to = data;
    while (n > 0) {
        const ssize_t got = pread(f->fd, to, n, (off_t) offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return err_set(ERR_IO, "%s: reading failed: %s", f->path, strerror(errno));
        if (got == 0) {
            return err_set(ERR_IO, "%s: ends at offset %llu, but had %llu bytes when it was opened", f->path,
                           (unsigned long long) offset, (unsigned long long) f->size);
        }
        to += got;
        offset += (uint64_t) got;
        n -= (size_t) got;
    }
    return ERR_OK;
}

enum err file_reaches(const struct file *f, uint64_t end) {
    struct stat st;
    if (fstat(f->fd, &st) == 0 && (uint64_t) st.st_size >= end) return ERR_OK;
    return err_set(ERR_IO, "%s: has become shorter than the %llu bytes it had when it was opened", f->path,
                   (unsigned long long) f->size);
}

size_t file_map_bytes(uint64_t offset, uint64_t n) {
    const uint64_t before = offset % (uint64_t) sysconf(_SC_PAGESIZE);
    return n < SIZE_MAX - before ? (size_t) (n + before) : SIZE_MAX;
}

enum err file_map(const struct file *f, uint64_t offset, uint64_t n, struct file_map *map) {
    *map = (struct file_map){0};
    TRY(check_range(f, offset, n));
    TRY(file_reaches(f, offset + n));  // touching a page beyond the end is fatal, so look again
    const size_t bytes = file_map_bytes(offset, n);
    if (n == 0 || bytes == SIZE_MAX) {
        return err_set(ERR_INVALID, "%s: cannot map %llu bytes", f->path, (unsigned long long) n);
    }
    const uint64_t start = offset - (bytes - n);
    void *base = mmap(NULL, bytes, PROT_READ, MAP_SHARED, f->fd, (off_t) start);
    if (base == MAP_FAILED) return err_set(ERR_IO, "%s: cannot map %zu bytes: %s", f->path, bytes, strerror(errno));
#ifdef MADV_HUGEPAGE
    // What has yet to be read from the disk then comes into memory in pieces of 2 MB, where the file system can do that, and one
    // entry of the page table serves each: reading it all later, again and again, goes a fifth faster. A wish: failing does no harm.
    (void) madvise(base, bytes, MADV_HUGEPAGE);
#endif
    *map = (struct file_map){.base = base, .bytes = bytes, .data = (const char *) base + (offset - start)};
    return ERR_OK;
}

void file_unmap(struct file_map *map) {
    if (map->base) munmap(map->base, map->bytes);
    *map = (struct file_map){0};
}
