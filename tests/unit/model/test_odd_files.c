// What a model can be asked to load from that is no model file (shared/reports.md, 155): a clear error each time, nothing hangs, and
// a file's size, taken once, is checked against each mapping.
#include "test.h"

#include "model_maker.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_MMAP 0  // sanitizers have one of their own
#else
#define OWN_MMAP 1
// A file system without mmap: files can't be mapped while this is set.
static bool no_mmap;

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset) {
    if (no_mmap && !(flags & MAP_ANONYMOUS)) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    return (void *) syscall(SYS_mmap, at, n, prot, flags, fd, offset);
}
#endif

static char good[256], odd[256];

static struct llama_model *load(const char *path) { return llama_model_load_from_file(path, llama_model_default_params()); }

static void refused(const char *path, const char *part) {
    ggml_clear_error();
    assert_null(load(path));
    assert_error(part);
}

static int make(void **s) {
    (void) s;
    snprintf(good, sizeof good, "%s", maker_path("llama", GGML_TYPE_F32));
    snprintf(odd, sizeof odd, "/tmp/lamina-odd-%d", (int) getpid());
    return 0;
}

static void copy_good(void) {
    FILE *in = fopen(good, "rb"), *out = fopen(odd, "wb");
    static char chunk[1 << 16];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, in)) > 0;) assert_int_equal(fwrite(chunk, 1, n, out), n);
    fclose(in);
    fclose(out);
}

static void test_no_files(void **s) {
    (void) s;
    fclose(fopen(odd, "wb"));
    refused(odd, "empty");
    unlink(odd);
    assert_int_equal(mkdir(odd, 0700), 0);
    refused(odd, "a folder");
    rmdir(odd);
    alarm(20);  // nobody will ever write to it: waiting for that would end the test
    assert_int_equal(mkfifo(odd, 0600), 0);
    refused(odd, "a pipe");
    alarm(0);
    unlink(odd);
    assert_int_equal(symlink(odd, odd), 0);
    refused(odd, strerror(ELOOP));
    unlink(odd);
    refused("/dev/zero", "a device");
    refused("/proc/self/maps", "empty");
}

static void test_no_right(void **s) {
    (void) s;
    copy_good();
    assert_int_equal(chmod(odd, 0), 0);
    const pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && seteuid(65534) != 0) _exit(2);  // a superuser may read everything
        _exit(load(odd) || !strstr(ggml_last_error(), strerror(EACCES)));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    unlink(odd);
}

static off_t header_end;

static bool cut(float progress, void *path) {
    if (progress == 0) assert_int_equal(truncate(path, header_end + 64), 0);
    return true;
}

// After the header was read, and before the weights are mapped or read.
static void test_shrinks(void **s) {
    (void) s;
    static const enum llama_load_mode modes[] = {LLAMA_LOAD_MODE_MMAP, LLAMA_LOAD_MODE_NONE};
    static const char *const says[] = {"has become shorter", "ends at offset"};
    struct gguf_context *g = gguf_init_from_file(good, (struct gguf_init_params){.no_alloc = true});
    header_end = (off_t) gguf_get_data_offset(g);
    gguf_free(g);
    for (int i = 0; i < 2; i++) {
        copy_good();
        struct llama_model_params mp = llama_model_default_params();
        mp.load_mode = modes[i];
        mp.progress_callback = cut;
        mp.progress_callback_user_data = odd;
        ggml_clear_error();
        assert_null(llama_model_load_from_file(odd, mp));
        assert_error(says[i]);
        unlink(odd);
    }
}

static void test_no_mmap(void **s) {
    (void) s;
#if OWN_MMAP
    struct llama_model_params mp = llama_model_default_params();
    no_mmap = true;
    mp.load_mode = LLAMA_LOAD_MODE_MMAP;
    ggml_clear_error();
    assert_null(llama_model_load_from_file(good, mp));
    assert_error("cannot map");
    mp.load_mode = LLAMA_LOAD_MODE_NONE;
    struct llama_model *m = llama_model_load_from_file(good, mp);
    no_mmap = false;
    assert_non_null(m);
    assert_int_equal(llama_vocab_n_tokens(llama_model_get_vocab(m)), MAKER_N_VOCAB);
    llama_model_free(m);
#else
    skip();
#endif
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_files), cmocka_unit_test(test_no_right),
                                       cmocka_unit_test(test_shrinks), cmocka_unit_test(test_no_mmap)};
    return cmocka_run_group_tests(tests, make, maker_clean);
}
