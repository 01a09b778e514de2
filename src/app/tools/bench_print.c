// The rows of `lamina bench`: one list of columns for CSV, JSON and SQL, and a table for people.
//
// Shares stand on peaks, and peaks on one assumption of the goals: f32 : bf16 : int8 are as 1 : 2 : 4 within a tenth. Where they are
// not (a processor whose BF16 products are slow, a neighbour that took the machine), the run is marked void, with the ratio found.
#include "tools/bench.h"
#include "cli/console.h"

#include <jansson.h>
#include <math.h>
#include <string.h>
#include <time.h>

struct value {
    const char *text;  // NULL: a number
    double number;
    bool whole, truth;
};

struct column {
    const char *name, *sql;
    struct value (*get)(const struct test *t, const struct cost *c, const struct params *p, const struct ggml_cpu_peaks *k);
};

static double mean_ns(const struct test *t, int n) {
    double sum = 0;
    for (int r = 0; r < n; r++) sum += 1e9 * (t->n_prompt + t->n_gen) / t->t_s[r] / n;
    return sum;
}

static double sd_ns(const struct test *t, int n) {
    const double mean = mean_ns(t, n);
    double sum = 0;
    for (int r = 0; r < n; r++) sum += pow(1e9 * (t->n_prompt + t->n_gen) / t->t_s[r] - mean, 2);
    return n > 1 ? sqrt(sum / (n - 1)) : 0;
}

static bool is_void(const struct ggml_cpu_peaks *k) {
    return fabs(k->bf16 / k->f32 / 2 - 1) > 0.1 || fabs(k->i8 / k->f32 / 4 - 1) > 0.1;
}

static const char *when(const struct test *t) {
    static char text[32];
    struct tm tm;
    const time_t at = (time_t) t->when;
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm));
    return text;
}

static const char *gpus(void) {
    static char text[256];
    text[0] = '\0';
    for (size_t i = 0, n = 0; i < ggml_backend_dev_count() && n < sizeof(text); i++) {
        ggml_backend_dev_t dev = ggml_backend_dev_get(i);
        if (ggml_backend_dev_type(dev) != GGML_BACKEND_DEVICE_TYPE_CPU)
            n += (size_t) snprintf(text + n, sizeof(text) - n, "%s%s", n ? ", " : "", ggml_backend_dev_description(dev));
    }
    return text;
}

static const char *backends(void) {
    static char text[128];
    text[0] = '\0';
    for (size_t i = 0, n = 0; i < ggml_backend_reg_count() && n < sizeof(text); i++)
        n += (size_t) snprintf(text + n, sizeof(text) - n, "%s%s", i ? "," : "",
                               ggml_backend_reg_name(ggml_backend_reg_get(i)));
    return text;
}

static const char *cpu(void) {
    ggml_backend_dev_t dev = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    return dev ? ggml_backend_dev_description(dev) : "";
}

static const char *or_else(const char *text, const char *otherwise) { return text ? text : otherwise; }

#define GET(name, ...)                                                                                                      \
    static struct value get_##name(const struct test *t, const struct cost *c, const struct params *p,                      \
                                   const struct ggml_cpu_peaks *k) {                                                        \
        (void) t, (void) c, (void) p, (void) k;                                                                             \
        return (struct value){__VA_ARGS__};                                                                                 \
    }
#define TEXT(name, x) GET(name, .text = x)
#define WHOLE(name, x) GET(name, .number = (double) (x), .whole = true)
#define REAL(name, x) GET(name, .number = x)
#define TRUTH(name, x) GET(name, .number = (x) ? 1 : 0, .truth = true)
#include "tools/bench_columns.def"
#undef TEXT
#undef WHOLE
#undef REAL
#undef TRUTH

static const struct column columns[] = {
#define TEXT(name, x) {#name, "TEXT", get_##name},
#define WHOLE(name, x) {#name, "INTEGER", get_##name},
#define REAL(name, x) {#name, "REAL", get_##name},
#define TRUTH(name, x) {#name, "INTEGER", get_##name},
#include "tools/bench_columns.def"
};
enum { N_COLUMN = sizeof(columns) / sizeof(columns[0]) };

bool bench_knows(const char *format) {
    static const char *const known[] = {"md", "csv", "json", "jsonl", "sql"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(format, known[i]) == 0) return true;
    return false;
}

static void print_quoted(const char *text, char quote) {
    putchar(quote);
    for (; *text; text++) {
        if (*text == quote) putchar(quote);
        putchar(*text);
    }
    putchar(quote);
}

void bench_peaks(const struct params *p, const struct ggml_cpu_peaks *k, int n_threads, bool first) {
    if (strcmp(p->bench_output, "md") == 0) {
        printf("%speaks with %d thread%s: int8 %.0f GOP/s, bf16 %.0f GFLOP/s, f32 %.0f GFLOP/s, reading %.1f GB/s\n",
               first ? "" : "\n", n_threads, n_threads == 1 ? "" : "s", k->i8 / 1e9, k->bf16 / 1e9, k->f32 / 1e9,
               k->read / 1e9);
        if (is_void(k))
            printf("void: f32 : bf16 : int8 are as 1 : %.2f : %.2f, not as 1 : 2 : 4 within 10 %%%s\n", k->bf16 / k->f32,
                   k->i8 / k->f32,
                   k->bf16 < k->f32 && fabs(k->i8 / k->f32 / 4 - 1) <= 0.1
                       ? "; only bf16 differs: this processor's BF16 products are slower than its F32 multiply-adds"
                       : "; the machine was busy, or is another kind");
        printf("\n| %-30s | %10s | %8s | %7s | %8s | %5s | %5s | %2s | %16s | %18s | %9s | %6s | %6s |\n", "model", "size",
               "params", "threads", "n_ubatch", "type_k", "type_v", "fa", "test", "t/s", "MB/token", "share", "limit");
        printf("| ------------------------------ | ---------: | -------: | ------: | -------: | -----: | -----: | -: | "
               "---------------: | -----------------: | --------: | -----: | -----: |\n");
    } else if (first && strcmp(p->bench_output, "csv") == 0) {
        for (int i = 0; i < N_COLUMN; i++) printf("%s%s", i ? "," : "", columns[i].name);
        putchar('\n');
    } else if (first && strcmp(p->bench_output, "sql") == 0) {
        fputs("CREATE TABLE IF NOT EXISTS test (\n", stdout);
        for (int i = 0; i < N_COLUMN; i++)
            printf("  \"%s\" %s%s\n", columns[i].name, columns[i].sql, i + 1 < N_COLUMN ? "," : "\n);\n");
    }
}

static const char *test_name(const struct test *t, char buf[64]) {
    int n = t->n_prompt && t->n_gen ? snprintf(buf, 64, "pp%d+tg%d", t->n_prompt, t->n_gen)
            : t->n_prompt           ? snprintf(buf, 64, "pp%d", t->n_prompt)
                                    : snprintf(buf, 64, "tg%d", t->n_gen);
    if (t->n_depth) snprintf(buf + n, 64 - (size_t) n, " @ d%d", t->n_depth);
    return buf;
}

static void row_md(const struct test *t, const struct cost *c) {
    char name[64], size[32], ts[64];
    snprintf(ts, sizeof(ts), "%.2f ± %.2f", t->median, t->sd);
    printf("| %-30.30s | %10s | %6.2f B | %7d | %8d | %6s | %6s | %2d | %16s | %19s | %9.2f | %4.0f %% | %6s |\n", t->name,
           console_bytes(size, (double) c->size), c->n_params / 1e9, t->n_threads, t->n_ubatch, ggml_type_name(t->type_k),
           ggml_type_name(t->type_v), t->flash, test_name(t, name), ts, t->bytes_per_token / 1e6, 100 * t->share, t->limit);
}

// Comma-separated values, in quotes where they are texts (of the kind given).
static void row_values(const struct test *t, const struct cost *c, const struct params *p, const struct ggml_cpu_peaks *k,
                       char quote) {
    for (int i = 0; i < N_COLUMN; i++) {
        const struct value v = columns[i].get(t, c, p, k);
        if (i) putchar(',');
        if (v.text)
            print_quoted(v.text, quote);
        else
            printf(v.whole || v.truth ? "%.0f" : "%.6f", v.number);
    }
}

static void row_json(const struct test *t, const struct cost *c, const struct params *p, const struct ggml_cpu_peaks *k) {
    json_t *j = json_object(), *ns = json_array(), *ts = json_array();
    for (int i = 0; i < N_COLUMN; i++) {
        const struct value v = columns[i].get(t, c, p, k);
        json_object_set_new(j, columns[i].name,
                            v.text    ? json_string(v.text)
                            : v.truth ? json_boolean(v.number != 0)
                            : v.whole ? json_integer((json_int_t) v.number)
                                      : json_real(v.number));
    }
    for (int r = 0; r < p->n_repeat; r++) {
        json_array_append_new(ns, json_integer((json_int_t) (1e9 * (t->n_prompt + t->n_gen) / t->t_s[r])));
        json_array_append_new(ts, json_real(t->t_s[r]));
    }
    json_object_set_new(j, "samples_ns", ns);
    json_object_set_new(j, "samples_ts", ts);
    if (j) json_dumpf(j, stdout, JSON_COMPACT);
    json_decref(j);
}

void bench_row(const struct test *t, const struct cost *c, const struct params *p, const struct ggml_cpu_peaks *k,
               bool first) {
    const char *format = p->bench_output;
    if (strcmp(format, "md") == 0) {
        row_md(t, c);
    } else if (strcmp(format, "csv") == 0) {
        row_values(t, c, p, k, '"');
        putchar('\n');
    } else if (strcmp(format, "sql") == 0) {
        fputs("INSERT INTO test VALUES (", stdout);
        row_values(t, c, p, k, '\'');
        fputs(");\n", stdout);
    } else {
        const bool lines = strcmp(format, "jsonl") == 0;
        if (!lines) fputs(first ? "[\n" : ",\n", stdout);
        row_json(t, c, p, k);
        if (lines) putchar('\n');
    }
    fflush(stdout);
}

void bench_end(const struct params *p) {
    if (strcmp(p->bench_output, "json") == 0) fputs("\n]\n", stdout);
}
