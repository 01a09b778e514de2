// lamina bench: tokens per second of reading (pp), generating (tg) and both (pg), and what share of the machine that is.
//
// Shares. Work of a token: 2 operations per weight that it multiplies (of the experts, those used; of the output matrix, only for rows whose
// logits are asked for), and 4 per head, dimension and position seen. Traffic of a generated token: the bytes of those weights and of
// the cache it reads. Both are set against the peaks that this run measured on the same threads; the larger share names the limit.
#include "cli/console.h"
#include "cli/session.h"
#include "ggml/ext.h"
#include "gguf.h"
#include "tools/bench.h"
#include "tools/tool.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int list_add(struct list *l, long v) {
    if (l->n == BENCH_MAX_LIST || v < 0 || v > 1 << 24) return 2;
    l->v[l->n++] = (int32_t) v;
    return 0;
}

// FIRST-LAST, FIRST-LAST+STEP or FIRST-LAST*FACTOR; *end: behind it.
static int list_range(struct list *l, long first, const char *at, char **end) {
    const long last = strtol(at, end, 10);
    long by = 1;
    const char how = **end;
    if (*end == at || last < first) return 2;
    if (how == '+' || how == '*') {
        const char *digits = *end + 1;
        by = strtol(digits, end, 10);
        if (*end == digits || by < 1 || (how == '*' && (by < 2 || first < 1))) return 2;
    }
    for (long v = first; v <= last; v = how == '*' ? v * by : v + by)
        if (list_add(l, v)) return 2;
    return 0;
}

static int parse_list(struct list *l, const char *option, const char *text) {
    for (const char *at = text; at && *at;) {
        char *end;
        const long v = strtol(at, &end, 10);
        int wrong = end == at;
        if (!wrong) wrong = *end == '-' ? list_range(l, v, end + 1, &end) : list_add(l, v);
        if (wrong || (*end && *end != ',')) {
            console_error(
                "%s is '%s', but should be whole numbers or ranges (FIRST-LAST, +STEP or *FACTOR behind them) separated "
                "by commas, %d at most",
                option, text, BENCH_MAX_LIST);
            return 2;
        }
        at = *end ? end + 1 : NULL;
    }
    return 0;
}

static int parse_types(struct list *l, const char *option, const char *text) {
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, ",");
        char name[16];
        enum ggml_type type;
        snprintf(name, sizeof(name), "%.*s", (int) n, at);
        const char *want = options_cache_type(&type, name);
        if (want || list_add(l, type)) {
            console_error("%s is '%s', but should be %s; several separated by commas", option, text,
                          want ? want : "shorter");
            return 2;
        }
        at += n + (at[n] == ',');
    }
    return 0;
}

// ---- cost ------------------------------------------------------------------------------------------------------------

static double key_number(const struct gguf_context *g, const char *arch, const char *suffix, int il, double fallback) {
    char key[256];
    snprintf(key, sizeof(key), "%s.%s", arch, suffix);
    const int64_t id = gguf_find_key(g, key);
    if (id < 0) return fallback;
    enum gguf_type type = gguf_get_kv_type(g, id);
    const char *at = NULL;
    if (type == GGUF_TYPE_ARRAY) {
        type = gguf_get_arr_type(g, id);
        if ((size_t) il >= gguf_get_arr_n(g, id) || (type != GGUF_TYPE_UINT32 && type != GGUF_TYPE_INT32)) return fallback;
        at = (const char *) gguf_get_arr_data(g, id) + 4 * (size_t) il;
    } else if (type == GGUF_TYPE_UINT32 || type == GGUF_TYPE_INT32) {
        at = gguf_get_val_data(g, id);
    } else {
        return fallback;
    }
    uint32_t v;
    memcpy(&v, at, 4);
    return (double) v;
}

static int model_cost(struct cost *c, const char *path) {
    struct gguf_context *g = gguf_init_from_file(path, (struct gguf_init_params){.no_alloc = true});
    if (!g) return console_library_error();
    const int64_t id = gguf_find_key(g, "general.architecture");
    const char *arch = id >= 0 && gguf_get_kv_type(g, id) == GGUF_TYPE_STRING ? gguf_get_val_str(g, id) : "";
    const double n_expert = key_number(g, arch, "expert_count", 0, 0),
                 n_used = key_number(g, arch, "expert_used_count", 0, 0);
    double by_type[GGML_TYPE_COUNT] = {0};
    *c = (struct cost){0};
    for (int64_t i = 0; i < gguf_get_n_tensors(g); i++) {
        const char *name = gguf_get_tensor_name(g, i);
        const int64_t *ne = gguf_get_tensor_ne(g, i);
        const enum ggml_type type = gguf_get_tensor_type(g, i);
        const double n = (double) ne[0] * (double) ne[1] * (double) ne[2] * (double) ne[3],
                     bytes = (double) gguf_get_tensor_size(g, i);
        c->size += gguf_get_tensor_size(g, i);
        c->n_params += n;
        const bool head = strcmp(name, "output.weight") == 0 ||
                          (strcmp(name, "token_embd.weight") == 0 && gguf_find_tensor(g, "output.weight") < 0);
        if (head) {
            c->head_weights = n;
            c->head_bytes = bytes;
        } else if (strncmp(name, "blk.", 4) == 0 && ne[1] > 1) {
            const double part = strstr(name, "_exps") && n_expert > 0 ? n_used / n_expert : 1;
            c->layer_weights += n * part;
            c->layer_bytes += bytes * part;
            by_type[type] += n;
        }
    }
    for (int t = 0; t < GGML_TYPE_COUNT; t++)
        if (by_type[t] > by_type[c->type]) c->type = (enum ggml_type) t;
    const int n_layer = (int) key_number(g, arch, "block_count", 0, 0);
    const double n_embd = key_number(g, arch, "embedding_length", 0, 0);
    for (int il = 0; il < n_layer && il < 4096; il++) {
        const double heads = key_number(g, arch, "attention.head_count", il, 0),
                     kv = key_number(g, arch, "attention.head_count_kv", il, heads);
        const double dk = key_number(g, arch, "attention.key_length", 0, heads > 0 ? n_embd / heads : 0),
                     dv = key_number(g, arch, "attention.value_length", 0, dk);
        c->attn_dim += heads * (dk + dv);
        c->kv_dim += kv * (dk + dv);
    }
    gguf_free(g);
    return 0;
}

static double peak_for(const struct ggml_cpu_peaks *peaks, enum ggml_type type, const char **name) {
    if (ggml_is_quantized(type)) return *name = "int8", peaks->i8;
    if (type == GGML_TYPE_BF16 && peaks->bf16 > 0) return *name = "bf16", peaks->bf16;
    return *name = "f32", peaks->f32;
}

static void set_share(struct test *t, const struct cost *c, const struct ggml_cpu_peaks *peaks) {
    const double n = t->n_prompt + t->n_gen, seconds = n / t->median, first = t->n_depth;
    const double steps = t->n_gen + (double) (t->n_prompt > 0) * ceil((double) t->n_prompt / t->n_ubatch);
    const double seen = n * first + n * (n + 1) / 2, rows = t->n_gen + (t->n_prompt > 0);
    const double kv_bytes = c->kv_dim * (double) ggml_type_size(t->type_k) / (double) ggml_blck_size(t->type_k);
    const double ops = 2 * c->layer_weights * n + 2 * c->head_weights * rows + 2 * c->attn_dim * seen;
    const double bytes = c->layer_bytes * steps + c->head_bytes * rows +
                         kv_bytes * (t->n_prompt ? steps * (first + (double) t->n_prompt / 2) : seen);
    const char *name;
    const double compute = ops / seconds / peak_for(peaks, c->type, &name), memory = bytes / seconds / peaks->read;
    t->share = compute > memory ? compute : memory;
    t->limit = compute > memory ? name : "memory";
    t->ops_per_token = ops / n;
    t->bytes_per_token = bytes / n;
}

// ---- running ---------------------------------------------------------------------------------------------------------

static int feed_random(struct session *s, int32_t n, uint32_t *seed) {
    llama_token tokens[512];
    const int32_t n_vocab = llama_vocab_n_tokens(s->vocab);
    int status = 0;
    while (n > 0 && !status) {
        const int32_t step = (int32_t) llama_n_batch(s->ctx), now = n < step ? n : step;
        llama_token *list = now <= 512 ? tokens : malloc(sizeof(llama_token) * (size_t) now);
        if (!list) return console_error("no memory for %d tokens", now);
        for (int32_t i = 0; i < now; i++) list[i] = (llama_token) ((*seed = *seed * 1664525u + 1013904223u) >> 8) % n_vocab;
        status = session_feed(s, list, now, false);
        if (list != tokens) free(list);
        n -= now;
    }
    return status;
}

static int one_run(struct session *s, const struct test *t, double *seconds, bool *filled) {
    uint32_t seed = 1;
    // What the runs before left of the first n_depth positions serves again, where a cache can lose its end alone.
    llama_memory_t mem = llama_get_memory(s->ctx);
    const bool kept =
        t->n_depth > 0 && *filled && llama_model_n_swa(s->model) == 0 && llama_memory_seq_rm(mem, 0, t->n_depth, -1);
    int status = 0;
    if (!kept) {
        llama_memory_clear(mem, false);
        status = feed_random(s, t->n_depth, &seed);
    }
    *filled = true;
    llama_synchronize(s->ctx);
    const int64_t start = llama_time_us();
    if (!status) status = feed_random(s, t->n_prompt, &seed);
    for (int32_t i = 0; i < t->n_gen && !status; i++) status = feed_random(s, 1, &seed);
    llama_synchronize(s->ctx);
    *seconds = (double) (llama_time_us() - start) / 1e6;
    return status;
}

static int by_value(const void *a, const void *b) {
    return (*(const double *) a > *(const double *) b) - (*(const double *) a < *(const double *) b);
}

static int measure(struct test *t, struct session *s, const struct params *p) {
    struct params with = *p;
    double seconds = 0, sorted[100];
    bool filled = false;
    t->when = time(NULL);
    with.n_ctx = (uint32_t) (t->n_depth + t->n_prompt + t->n_gen);
    if (with.n_ctx < 1) return console_error("a test needs tokens to read or to generate");
    with.n_batch = (uint32_t) t->n_batch;
    with.n_ubatch = (uint32_t) t->n_ubatch;
    with.n_threads = with.n_threads_batch = t->n_threads;
    with.type_k = t->type_k;
    with.type_v = t->type_v;
    with.flash_attn = t->flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    int status = session_context(s, &with);
    if (!status && !p->no_warmup) status = one_run(s, t, &seconds, &filled);
    for (int r = 0; r < p->n_repeat && !status; r++) {
        status = one_run(s, t, &seconds, &filled);
        t->t_s[r] = (t->n_prompt + t->n_gen) / seconds;
        t->mean += t->t_s[r] / p->n_repeat;
    }
    for (int r = 0; r < p->n_repeat; r++) t->sd += (t->t_s[r] - t->mean) * (t->t_s[r] - t->mean);
    t->sd = p->n_repeat > 1 ? sqrt(t->sd / (p->n_repeat - 1)) : 0;
    memcpy(sorted, t->t_s, sizeof(sorted));
    qsort(sorted, (size_t) p->n_repeat, sizeof(double), by_value);
    t->median = (sorted[(p->n_repeat - 1) / 2] + sorted[p->n_repeat / 2]) / 2;
    if (s->ctx) llama_free(s->ctx);
    s->ctx = NULL;
    return status;
}

// ---- all combinations -----------------------------------------------------------------------------------------------------

struct plan {
    struct list prompt, gen, both, depth, batch, ubatch, threads, flash, type_k, type_v;
    struct ggml_cpu_peaks peaks;
    bool any;
};

static int run_test(struct plan *b, struct session *s, const struct cost *c, const struct params *p, struct test *t) {
    int status = measure(t, s, p);
    if (status) return status;
    set_share(t, c, &b->peaks);
    bench_row(t, c, p, &b->peaks, !b->any);
    b->any = true;
    return 0;
}

static int run_config(struct plan *b, struct session *s, const struct cost *c, const struct params *p,
                      const struct test *base) {
    int status = 0;
    for (int d = 0; d < b->depth.n && !status; d++) {
        for (int i = 0; i < b->prompt.n && !status; i++) {
            struct test t = *base;
            t.n_depth = b->depth.v[d];
            t.n_prompt = b->prompt.v[i];
            if (t.n_prompt) status = run_test(b, s, c, p, &t);
        }
        for (int i = 0; i < b->gen.n && !status; i++) {
            struct test t = *base;
            t.n_depth = b->depth.v[d];
            t.n_gen = b->gen.v[i];
            if (t.n_gen) status = run_test(b, s, c, p, &t);
        }
        for (int i = 0; i < b->both.n && !status; i += 2) {
            struct test t = *base;
            t.n_depth = b->depth.v[d];
            t.n_prompt = b->both.v[i];
            t.n_gen = b->both.v[i + 1];
            status = run_test(b, s, c, p, &t);
        }
    }
    return status;
}

// Bandwidth is that of reading the model's own mapped file.
static int measure_peaks(struct ggml_cpu_peaks *peaks, const char *path, int n_threads) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) return console_error("cannot open %s again", path);
    void *mem = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (mem == MAP_FAILED) return console_error("cannot map %s", path);
    const bool ok = ggml_cpu_measure_peaks(n_threads, mem, (size_t) st.st_size & ~(size_t) 4095, peaks);
    munmap(mem, (size_t) st.st_size);
    return ok ? 0 : console_library_error();
}

static int run_model(struct plan *b, const char *path, const struct params *p) {
    struct params with = *p;
    struct session s = {0};
    struct cost c;
    char desc[128] = "";
    with.model = path;
    int status = model_cost(&c, path);
    if (!status) status = session_load(&s, &with, false);
    if (!status) llama_model_desc(s.model, desc, sizeof(desc));
    for (int k = 0; k < b->threads.n && !status; k++) {
        status = measure_peaks(&b->peaks, path, b->threads.v[k]);
        if (status) break;
        bench_peaks(p, &b->peaks, b->threads.v[k], !b->any && k == 0);
        const int n = b->flash.n * b->batch.n * b->ubatch.n * b->type_k.n * b->type_v.n;
        for (int i = 0; i < n && !status; i++) {
            int rest = i;
            struct test base = {.path = path, .name = desc, .n_threads = b->threads.v[k]};
            base.type_v = (enum ggml_type) b->type_v.v[rest % b->type_v.n], rest /= b->type_v.n;
            base.type_k = (enum ggml_type) b->type_k.v[rest % b->type_k.n], rest /= b->type_k.n;
            base.n_ubatch = b->ubatch.v[rest % b->ubatch.n], rest /= b->ubatch.n;
            base.n_batch = b->batch.v[rest % b->batch.n], rest /= b->batch.n;
            base.flash = b->flash.v[rest] != 0;
            status = run_config(b, &s, &c, p, &base);
            if (!status && p->bench_delay > 0 && i + 1 < n) sleep((unsigned) p->bench_delay);
        }
    }
    session_close(&s);
    return status;
}

static int run(struct params *p) {
    struct plan b = {0};
    char threads[16];
    snprintf(threads, sizeof(threads), "%d", ggml_cpu_default_threads());
    p->model = p->bench_m;
    const char *models = session_model_path(p);
    int status = models ? 0 : 2;
    if (!bench_knows(p->bench_output)) {
        console_error("--output is '%s', but should be md, csv, json, jsonl or sql", p->bench_output);
        return 2;
    }
    if (p->bench_mmap >= 0) p->mmap = p->bench_mmap != 0;
    if (!status) status = parse_list(&b.prompt, "-p", p->bench_p);
    if (!status) status = parse_list(&b.gen, "-n", p->bench_n);
    if (!status && p->bench_pg) status = parse_list(&b.both, "-pg", p->bench_pg);
    for (int i = 0; i < b.both.n && !status; i++)
        if (b.both.v[i] < 1 || b.both.n % 2) status = 2;
    if (status == 2 && b.both.n) console_error("-pg is '%s', but should be pairs of numbers from 1 on: N,M", p->bench_pg);
    if (!status) status = parse_list(&b.depth, "-d", p->bench_d);
    if (!status) status = parse_list(&b.batch, "-b", p->bench_b);
    if (!status) status = parse_list(&b.ubatch, "-ub", p->bench_ub);
    if (!status) status = parse_list(&b.flash, "-fa", p->bench_fa);
    if (!status) status = parse_types(&b.type_k, "-ctk", p->bench_ctk);
    if (!status) status = parse_types(&b.type_v, "-ctv", p->bench_ctv);
    if (!status) status = parse_list(&b.threads, "-t", p->bench_t ? p->bench_t : threads);
    for (int i = 0; i < b.threads.n; i++)
        if (b.threads.v[i] < 1) b.threads.v[i] = ggml_cpu_default_threads();
    char *list = models ? strdup(models) : NULL;
    for (char *save = NULL, *path = list && !status ? strtok_r(list, ",", &save) : NULL; path && !status;
         path = strtok_r(NULL, ",", &save))
        status = run_model(&b, path, p);
    if (b.any) bench_end(p);
    free(list);
    return status;
}

const struct tool tool_bench = {
    .name = "bench",
    .alias = "llama-bench",
    .summary = "Measures tokens per second, and what share of the machine's peaks that is",
    .args = "",
    .groups = G_LOAD | G_BENCH,
    .run = run,
};
