// Importance matrices: whatever the file holds, it is refused or every mean in it is finite and not negative.
#include "fuzz.h"
#include "ggml.h"
#include "gguf.h"
#include "cli/console.h"
#include "cli/imatrix.h"
#include "ggml/ext.h"

#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

// The program's own write to its terminal.
int console_error(const char *fmt, ...) { return fmt ? 1 : 0; }
int console_library_error(void) { return 1; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const int fd = memfd_create("imatrix", MFD_CLOEXEC);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t) size);
    struct imatrix *m = imatrix_load(path);
    const struct llama_model_imatrix_data *d = m ? imatrix_data(m) : NULL;
    FUZZ_CHECK(!m == !d);
    for (; d && d->name; d++)
        for (size_t i = 0; i < d->size; i++) FUZZ_CHECK(isfinite(d->data[i]) && d->data[i] >= 0);
    imatrix_free(m);
    close(fd);
    ggml_clear_error();
    return 0;
}

void fuzz_seeds(fuzz_put put, void *to) {
    for (int kind = 0; kind < 2; kind++) {
        struct imatrix *m = imatrix_new();
        float x[32];
        FUZZ_CHECK(m);
        for (int i = 0; i < 32; i++) x[i] = (float) i / 8;
        for (int i = 0; i < 6; i++) {
            char name[32];
            snprintf(name, sizeof name, "blk.%d.ffn_down%s.weight", i / 2, kind ? "_exps" : "");
            FUZZ_CHECK(imatrix_add(m, name, x, 32 - 8 * (i / 2), kind ? i % 2 : 0, kind ? 3 : 1) == 0);
        }
        char path[] = "/tmp/lamina-fuzz-XXXXXX";
        const int fd = mkstemp(path);
        FUZZ_CHECK(fd >= 0 && imatrix_save(m, path, "text", 2, 16) == 0);
        static uint8_t buf[1 << 15];
        FILE *f = fopen(path, "rb");
        FUZZ_CHECK(f);
        const size_t n = fread(buf, 1, sizeof buf, f);
        put(to, buf, n);
        fclose(f);
        // a finding: sums and counts that are finite, but whose quotient is not
        struct gguf_context *g = gguf_init_from_file(path, (struct gguf_init_params){.no_alloc = true});
        FUZZ_CHECK(g);
        for (size_t at = gguf_get_data_offset(g); at + 4 <= n; at += 4) {
            float v;
            memcpy(&v, buf + at, 4);
            v = v == 1 ? 1e-38f : v > 0 ? 3e38f : v;
            memcpy(buf + at, &v, 4);
        }
        put(to, buf, n);
        gguf_free(g);
        close(fd);
        unlink(path);
        imatrix_free(m);
    }
}
