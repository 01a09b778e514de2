// The four GPT-2 programs give the same tokens and the same logits, from both file formats, at any batch size the same as
// at any other, with and without a device; damaged files end in a message. Skips where the programs were not built.
#include "test.h"

#include "gguf.h"

#include <math.h>
#include <sys/wait.h>

enum { E = 32, L = 3, H = 4, V = 300, C = 96 };

static char dir[] = "/tmp/lamina-gpt2-XXXXXX";
static const char *bin = PROGRAM_DIR;

// ---- a model in both formats ----------------------------------------------------------------------------------------

static float weight(uint64_t *s) {
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (float) ((double) (*s >> 40) / 8388608.0 - 1.0) * 0.3f;
}

struct part {
    const char *name, *old;
    int ne0, ne1;
};

static const struct part globals[] = {{"output_norm.weight", "model/ln_f/g", E, 1},
                                      {"output_norm.bias", "model/ln_f/b", E, 1},
                                      {"token_embd.weight", "model/wte", E, V},
                                      {"position_embd.weight", "model/wpe", E, C}};
static const struct part parts[] = {{"attn_norm.weight", "ln_1/g", E, 1},
                                    {"attn_norm.bias", "ln_1/b", E, 1},
                                    {"ffn_norm.weight", "ln_2/g", E, 1},
                                    {"ffn_norm.bias", "ln_2/b", E, 1},
                                    {"attn_qkv.weight", "attn/c_attn/w", E, 3 * E},
                                    {"attn_qkv.bias", "attn/c_attn/b", 3 * E, 1},
                                    {"attn_output.weight", "attn/c_proj/w", E, E},
                                    {"attn_output.bias", "attn/c_proj/b", E, 1},
                                    {"ffn_up.weight", "mlp/c_fc/w", E, 4 * E},
                                    {"ffn_up.bias", "mlp/c_fc/b", 4 * E, 1},
                                    {"ffn_down.weight", "mlp/c_proj/w", 4 * E, E},
                                    {"ffn_down.bias", "mlp/c_proj/b", E, 1}};

static void emit(struct ggml_context *c, struct gguf_context *g, FILE *f, const char *name, const char *old,
                 const struct part *p, uint64_t *seed) {
    struct ggml_tensor *t =
        p->ne1 == 1 ? ggml_new_tensor_1d(c, GGML_TYPE_F32, p->ne0) : ggml_new_tensor_2d(c, GGML_TYPE_F32, p->ne0, p->ne1);
    ggml_set_name(t, name);
    for (int i = 0; i < p->ne0 * p->ne1; i++) ((float *) t->data)[i] = weight(seed);
    gguf_add_tensor(g, t);
    const int32_t head[5] = {p->ne1 == 1 ? 1 : 2, (int32_t) strlen(old), 0, p->ne0, p->ne1};
    fwrite(head, 4, p->ne1 == 1 ? 4 : 5, f);
    fwrite(old, 1, strlen(old), f);
    fwrite(t->data, 1, ggml_nbytes(t), f);
}

static void write_models(void) {
    char path[128], words[V][16];
    const char *tokens[V];
    struct gguf_context *g = gguf_init_empty();
    struct ggml_context *c = ggml_init((struct ggml_init_params){16 << 20, NULL, false});
    gguf_set_val_str(g, "general.architecture", "gpt2");
    gguf_set_val_u32(g, "gpt2.context_length", C);
    gguf_set_val_u32(g, "gpt2.embedding_length", E);
    gguf_set_val_u32(g, "gpt2.block_count", L);
    gguf_set_val_u32(g, "gpt2.attention.head_count", H);
    gguf_set_val_f32(g, "gpt2.attention.layer_norm_epsilon", 1e-5f);
    snprintf(path, sizeof(path), "%s/m.bin", dir);
    FILE *f = fopen(path, "wb");
    const int32_t head[8] = {GGML_FILE_MAGIC, V, C, E, H, L, 0, V};
    fwrite(head, 4, 8, f);
    for (int i = 0; i < V; i++) {
        if (i < 94)
            snprintf(words[i], sizeof(words[i]), "%c", 33 + i);
        else
            snprintf(words[i], sizeof(words[i]), "w%d", i);
        tokens[i] = words[i];
        const int32_t n = (int32_t) strlen(words[i]);
        fwrite(&n, 4, 1, f);
        fwrite(words[i], 1, (size_t) n, f);
    }
    gguf_set_arr_str(g, "tokenizer.ggml.tokens", tokens, V);
    uint64_t seed = 5;
    for (size_t k = 0; k < 4; k++) emit(c, g, f, globals[k].name, globals[k].old, &globals[k], &seed);
    for (int il = 0; il < L; il++) {
        for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++) {
            char name[64], old[64];
            snprintf(name, sizeof(name), "blk.%d.%s", il, parts[k].name);
            snprintf(old, sizeof(old), "model/h%d/%s", il, parts[k].old);
            emit(c, g, f, name, old, &parts[k], &seed);
        }
    }
    fclose(f);
    snprintf(path, sizeof(path), "%s/m.gguf", dir);
    assert_true(gguf_write_to_file(g, path, false));
    gguf_free(g);
    ggml_free(c);
}

// ---- running --------------------------------------------------------------------------------------------------------

// The lines "tokens:" and "logits:" of a run; "" and the exit status if it failed.
static int run(const char *program, const char *file, const char *options, char *out, size_t size) {
    char command[512], line[1024];
    snprintf(command, sizeof(command), "%s/example-gpt-2-%s -m %s/%s %s 2>/dev/null", bin, program, dir, file, options);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    out[0] = '\0';
    while (fgets(line, sizeof(line), p)) {
        if (strncmp(line, "tokens:", 7) == 0 || strncmp(line, "logits:", 7) == 0) strncat(out, line, size - strlen(out) - 1);
    }
    const int status = pclose(p);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool built(void) {
    char path[256];
    snprintf(path, sizeof(path), "%s/example-gpt-2-sched", bin);
    if (access(path, X_OK) == 0) return true;
    print_message("skipped: %s is not there\n", path);
    return false;
}

static void test_same(void **state) {
    (void) state;
    if (!built()) skip();
    static const char *const programs[] = {"ctx", "alloc", "backend", "sched"}, *const files[] = {"m.gguf", "m.bin"};
    char expected[2048], got[2048];
    assert_int_equal(run("ctx", "m.gguf", "-k 70 -n 6 -b 32", expected, sizeof(expected)), 0);
    assert_non_null(strstr(expected, "logits: "));
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 2; k++) {
            assert_int_equal(run(programs[i], files[k], "-k 70 -n 6 -b 32", got, sizeof(got)), 0);
            assert_string_equal(got, expected);
        }
        assert_int_equal(run(programs[i], "m.gguf", "-k 70 -n 6 -b 7 -t 3", got, sizeof(got)), 0);
        assert_string_equal(got, expected);
    }
}

static void test_devices(void **state) {
    (void) state;
    if (!built()) skip();
    char expected[2048], got[2048], options[64];
    assert_int_equal(run("ctx", "m.gguf", "-p HelloW123 -n 6 -b 4", expected, sizeof(expected)), 0);
    setenv("LAMINA_SIM", "1", 1);
    assert_int_equal(run("backend", "m.gguf", "-p HelloW123 -n 6 -b 4 -d SIM0", got, sizeof(got)), 0);
    assert_string_equal(got, expected);
    for (int n = 0; n <= L + 2; n++) {
        snprintf(options, sizeof(options), "-p HelloW123 -n 6 -b 4 -ngl %d", n);
        assert_int_equal(run("sched", "m.bin", options, got, sizeof(got)), 0);
        assert_string_equal(got, expected);
    }
    setenv("LAMINA_SIM_WITHOUT", "NORM", 1);  // more splits, the same result
    assert_int_equal(run("sched", "m.bin", "-p HelloW123 -n 6 -b 4 -ngl 9", got, sizeof(got)), 0);
    assert_string_equal(got, expected);
    unsetenv("LAMINA_SIM_WITHOUT");
    setenv("LAMINA_SIM_MEM", "0.1", 1);  // too small for the weights
    assert_int_equal(run("sched", "m.bin", "-p HelloW123 -n 6 -b 4 -ngl 9", got, sizeof(got)), 1);
    unsetenv("LAMINA_SIM_MEM");
    unsetenv("LAMINA_SIM");
    assert_int_equal(run("sched", "m.bin", "-n 2 -ngl 2", got, sizeof(got)), 1);
    assert_int_equal(run("backend", "m.bin", "-n 2 -d SIM0", got, sizeof(got)), 1);
}

static void test_damaged(void **state) {
    (void) state;
    if (!built()) skip();
    static const char *const programs[] = {"ctx", "alloc", "backend", "sched"};
    char path[128], got[2048], *whole = malloc(1 << 20);
    snprintf(path, sizeof(path), "%s/m.bin", dir);
    FILE *f = fopen(path, "rb");
    const size_t n = fread(whole, 1, 1 << 20, f);
    fclose(f);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(run(programs[i], "nothing", "-n 2", got, sizeof(got)), 1);
        assert_int_equal(run(programs[i], "m.bin", "-n 2 -b 0", got, sizeof(got)), 2);
        assert_int_equal(run(programs[i], "m.bin", "-k 95 -n 9", got, sizeof(got)), 1);
        for (size_t cut = 3; cut < n; cut += n / 5) {
            test_write(dir, "cut.bin", whole, cut);
            assert_int_equal(run(programs[i], "cut.bin", "-n 2", got, sizeof(got)), 1);
        }
    }
    free(whole);
}

// Exit status of a run whose k-th allocation fails; how many there were and how many blocks were left at the end.
static int run_failing(const char *program, const char *file, const char *options, int k, long *made, long *left) {
    char command[640], report[64];
    snprintf(report, sizeof(report), "%s/report", dir);
    snprintf(command, sizeof(command),
             "FAIL_AT=%d FAIL_REPORT=%s LD_PRELOAD=%s %s/example-gpt-2-%s -m %s/%s %s >/dev/null 2>&1", k, report, PRELOAD,
             bin, program, dir, file, options);
    const int status = system(command);
    *made = *left = -1;
    FILE *f = fopen(report, "r");
    if (f && fscanf(f, "allocations %ld left %ld", made, left) != 2) *made = *left = -1;
    if (f) fclose(f);
    unlink(report);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Each allocation made to fail in turn: the program ends with an error or does without (a thread, a buffer of stdio), frees
// what it had, and never crashes.
static void check_failing(const char *program, const char *file, const char *options) {
    long made, left, all, fine;
    assert_int_equal(run_failing(program, file, options, 0, &all, &fine), 0);
    assert_true(all > 10);
    for (long k = 1; k <= all; k++) {
        const int status = run_failing(program, file, options, (int) k, &made, &left);
        if (status != 0 && status != 1) fail_msg("%s: allocation %ld of %ld: status %d", program, k, all, status);
        if (left > fine) fail_msg("%s: allocation %ld of %ld: %ld blocks left, %ld otherwise", program, k, all, left, fine);
    }
}

static void test_failing(void **state) {
    (void) state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();  // sanitizers bring their own malloc
#endif
    if (!built() || access(PRELOAD, R_OK) != 0) skip();
    static const char *const programs[] = {"ctx", "alloc", "backend", "sched"};
    for (int i = 0; i < 8; i++) check_failing(programs[i / 2], i % 2 ? "m.bin" : "m.gguf", "-k 9 -n 2 -b 4 -t 1");
    setenv("LAMINA_SIM", "1", 1);
    check_failing("backend", "m.gguf", "-k 9 -n 2 -b 4 -t 1 -d SIM0");
    check_failing("sched", "m.bin", "-k 9 -n 2 -b 4 -t 1 -ngl 2");
    unsetenv("LAMINA_SIM");
}

static int set_up(void **state) {
    (void) state;
    if (!mkdtemp(dir)) return -1;
    write_models();
    return 0;
}

static int tear_down(void **state) {
    (void) state;
    static const char *const files[] = {"m.gguf", "m.bin", "cut.bin"};
    char path[128];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        unlink(path);
    }
    return rmdir(dir);
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same), cmocka_unit_test(test_devices),
                                       cmocka_unit_test(test_damaged), cmocka_unit_test(test_failing)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
