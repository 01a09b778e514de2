// Where memory ends: a locked page too many, contexts and buffers that no machine holds, a quantizer that runs out. Rows 152, 157, 158
// and 164 of shared/reports.md. Limits are set in a child of the process.
#include "support/alloc.h"
#include "test.h"

#include "ggml-cpu.h"
#include "llama/ext.h"
#include "model_maker.h"

#include <sys/resource.h>
#include <sys/wait.h>

// ---- what is said --------------------------------------------------------------------------------------------------------

static struct {
    int n_warn;
    char text[8192];
} heard;

static void hear(enum ggml_log_level level, const char *text, void *user_data) {
    (void) user_data;
    if (level == GGML_LOG_LEVEL_WARN || level == GGML_LOG_LEVEL_ERROR) heard.n_warn++;
    const size_t n = strlen(heard.text);
    snprintf(heard.text + n, sizeof heard.text - n, "%s", text);
}

static void listen(void) {
    memset(&heard, 0, sizeof heard);
    ggml_log_set(hear, NULL);
}

// No number of more than 15 digits: what a subtraction below zero would print.
static bool sizes_are_sane(const char *s) {
    for (int n = 0; *s; s++) {
        n = *s >= '0' && *s <= '9' ? n + 1 : 0;
        if (n > 15) return false;
    }
    return true;
}

// Runs fn in a child, which says by its exit status that it is content.
static void in_child(void (*fn)(void)) {
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        fn();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        print_error("the child ended with %s %d\n", WIFEXITED(status) ? "status" : "signal",
                    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define DEMAND(x)                                                                                                           \
    do {                                                                                                                    \
        if (!(x)) {                                                                                                         \
            fprintf(stderr, "%s:%d: %s; heard: %s; last error: %s\n", __FILE__, __LINE__, #x, heard.text,                   \
                    ggml_last_error());                                                                                     \
            _exit(1);                                                                                                       \
        }                                                                                                                   \
    } while (0)

static char model_path[256];

// ---- 152: locking beyond the limit -------------------------------------------------------------------------------------

static int can_run(struct llama_model *m) {
    struct llama_context_params cp = llama_context_default_params();
    cp.n_threads = cp.n_threads_batch = 1;
    struct llama_context *c = llama_init_from_model(m, cp);
    int32_t t = 1;
    const int r = c ? llama_decode(c, llama_batch_get_one(&t, 1)) : -1;
    llama_free(c);
    return r;
}

static rlim_t lock_limit;

static void lock_beyond(void) {
    const struct rlimit limit = {lock_limit, lock_limit};
    DEMAND(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    if (geteuid() == 0) DEMAND(seteuid(65534) == 0);  // a superuser is not held to the limit
    static const enum llama_load_mode modes[] = {LLAMA_LOAD_MODE_MLOCK, LLAMA_LOAD_MODE_MMAP_MLOCK};
    for (int i = 0; i < 2; i++) {
        struct llama_model_params mp = llama_model_default_params();
        mp.load_mode = modes[i];
        listen();
        struct llama_model *m = llama_model_load_from_file(model_path, mp);
        ggml_log_set(test_no_sink, NULL);
        DEMAND(m != NULL);
        DEMAND(heard.n_warn == 1);
        DEMAND(strstr(heard.text, "lock") && sizes_are_sane(heard.text));
        DEMAND(can_run(m) == 0);
        llama_model_free(m);
    }
}

static void test_locking(void **s) {
    (void) s;
    if (!ALLOC_COUNTED) skip();  // sanitizers make mlock do nothing
    snprintf(model_path, sizeof model_path, "%s", maker_path("llama", GGML_TYPE_F32));
    char folder[256];
    snprintf(folder, sizeof folder, "%.*s", (int) (strrchr(model_path, '/') - model_path), model_path);
    if (geteuid() == 0) {
        chmod(folder, 0755);
        chmod(model_path, 0644);
    }
    lock_limit = 64 << 10;
    in_child(lock_beyond);
    lock_limit = 0;
    in_child(lock_beyond);
}

// ---- 157: a training length of millions ----------------------------------------------------------------------------------

static void test_training_length(void **s) {
    (void) s;
    snprintf(model_path, sizeof model_path, "%s", maker_path("llama", GGML_TYPE_F32));
    static const int64_t lengths[] = {1048576, (int64_t) 1 << 31, (int64_t) 1 << 40};
    for (int i = 0; i < 3; i++) {
        struct llama_model_kv_override over[2] = {{.tag = LLAMA_KV_OVERRIDE_TYPE_INT, .key = "llama.context_length"}};
        over[0].val_i64 = lengths[i];
        struct llama_model_params mp = llama_model_default_params();
        mp.kv_overrides = over;
        listen();
        struct llama_model *m = llama_model_plan_from_file(model_path, mp);
        struct llama_context *c = NULL;
        if (m) {
            struct llama_context_params cp = llama_context_default_params();
            cp.n_ctx = 0;
            c = llama_init_from_model(m, cp);
        }
        ggml_log_set(test_no_sink, NULL);
        // a length that fits into 32 bits is taken, and bounded by what is free; a larger one is refused by its name
        if (!m) {
            assert_true(lengths[i] > INT32_MAX);
            assert_error("context_length");
            continue;
        }
        assert_non_null(c);
        struct llama_device_bytes d[8];
        const int n = llama_context_bytes(c, d, 8);
        size_t free_bytes, total_bytes;
        ggml_backend_dev_memory(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), &free_bytes, &total_bytes);
        assert_true(d[n - 1].kv <= free_bytes);
        const double want = (double) lengths[i] * 3 * 2 * 2 * 64 * 2;
        if (want > 0.5 * (double) free_bytes) assert_non_null(strstr(heard.text, "n_ctx, -c"));
        assert_true(sizes_are_sane(heard.text));
        llama_free(c);
        llama_model_free(m);
    }
}

// ---- 158: buffers that no one holds -------------------------------------------------------------------------------------

static void ask_for_too_much(void) {
    struct llama_model *m = llama_model_load_from_file(model_path, llama_model_default_params());
    DEMAND(m != NULL);
    const struct rlimit limit = {2000000ull << 10, 2000000ull << 10};
    DEMAND(setrlimit(RLIMIT_AS, &limit) == 0);
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 10000000;
    cp.n_threads = cp.n_threads_batch = 1;
    DEMAND(llama_init_from_model(m, cp) == NULL);
    const char *why = ggml_last_error();
    DEMAND(strstr(why, "-c") && (strstr(why, "MB") || strstr(why, "MiB") || strstr(why, "bytes")) && sizes_are_sane(why));
    ggml_backend_t cpu = ggml_backend_cpu_init();
    ggml_clear_error();
    DEMAND(ggml_backend_alloc_buffer(cpu, (size_t) 1 << 50) == NULL);
    DEMAND(strstr(ggml_last_error(), "1125899906842624"));
    ggml_clear_error();
    DEMAND(ggml_init((struct ggml_init_params){.mem_size = (size_t) 1 << 50}) == NULL);
    DEMAND(strstr(ggml_last_error(), "1125899906842624"));
    ggml_backend_buffer_t small = ggml_backend_alloc_buffer(cpu, 1 << 20);
    DEMAND(small != NULL);
    ggml_backend_buffer_free(small);
    ggml_backend_free(cpu);
    DEMAND(can_run(m) == 0);
    llama_model_free(m);
}

static void test_too_much(void **s) {
    (void) s;
    if (!ALLOC_COUNTED) skip();  // sanitizers need the address space
    snprintf(model_path, sizeof model_path, "%s", maker_path("llama", GGML_TYPE_F32));
    in_child(ask_for_too_much);
}

// ---- 164: a quantizer that runs out -----------------------------------------------------------------------------------------

static void *contents(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t) ftell(f);
    rewind(f);
    void *p = malloc(*n);
    assert_int_equal(fread(p, 1, *n, f), *n);
    fclose(f);
    return p;
}

// A refused allocation of the C library's own, or of a buffer that can be done without, need not be an error; then the file is whole.
static void test_quantize_runs_out(void **s) {
    (void) s;
    if (!ALLOC_COUNTED) skip();
    snprintf(model_path, sizeof model_path, "%s", maker_path("llama", GGML_TYPE_F32));
    char out[300];
    snprintf(out, sizeof out, "%s.q8", model_path);
    struct llama_model_quantize_params p = llama_model_quantize_default_params();
    p.ftype = LLAMA_FTYPE_MOSTLY_Q8_0;
    p.nthread = 1;
    assert_int_equal(llama_model_quantize(model_path, out, &p), 0);
    size_t n_good, n_now;
    void *good = contents(out, &n_good);
    assert_int_equal(unlink(out), 0);
    alloc_start(0);
    assert_int_equal(llama_model_quantize(model_path, out, &p), 0);
    const int64_t total = alloc_stop(), live = alloc_live;
    int n_error = 0;
    for (int64_t k = 1; k <= total; k++) {
        unlink(out);
        alloc_start(k);
        const bool ok = llama_model_quantize(model_path, out, &p) == 0;
        alloc_stop();
        n_error += !ok;
        assert_int_equal(alloc_live, live);
        assert_true(ok == (access(out, F_OK) == 0));
        if (!ok) continue;
        void *now = contents(out, &n_now);
        assert_int_equal(n_now, n_good);
        assert_memory_equal(now, good, n_good);
        free(now);
    }
    free(good);
    assert_true(n_error > 20);
    unlink(out);
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_locking), cmocka_unit_test(test_training_length),
                                       cmocka_unit_test(test_too_much), cmocka_unit_test(test_quantize_runs_out)};
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
