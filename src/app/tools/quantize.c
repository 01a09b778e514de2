// lamina quantize: a model's weights in another format, by a usual mixture or tensor by tensor.
#include "cli/console.h"
#include "cli/imatrix.h"
#include "cli/session.h"
#include "ggml/ext.h"
#include "llama/ext.h"
#include "tools/tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static const struct mixture {
    const char *name;
    enum llama_ftype ftype;
} mixtures[] = {
    {"F32", LLAMA_FTYPE_ALL_F32},          {"F16", LLAMA_FTYPE_MOSTLY_F16},
    {"BF16", LLAMA_FTYPE_MOSTLY_BF16},     {"Q4_0", LLAMA_FTYPE_MOSTLY_Q4_0},
    {"Q4_1", LLAMA_FTYPE_MOSTLY_Q4_1},     {"Q5_0", LLAMA_FTYPE_MOSTLY_Q5_0},
    {"Q5_1", LLAMA_FTYPE_MOSTLY_Q5_1},     {"Q8_0", LLAMA_FTYPE_MOSTLY_Q8_0},
    {"Q2_K", LLAMA_FTYPE_MOSTLY_Q2_K},     {"Q2_K_S", LLAMA_FTYPE_MOSTLY_Q2_K_S},
    {"Q3_K", LLAMA_FTYPE_MOSTLY_Q3_K_M},   {"Q3_K_S", LLAMA_FTYPE_MOSTLY_Q3_K_S},
    {"Q3_K_M", LLAMA_FTYPE_MOSTLY_Q3_K_M}, {"Q3_K_L", LLAMA_FTYPE_MOSTLY_Q3_K_L},
    {"Q4_K", LLAMA_FTYPE_MOSTLY_Q4_K_M},   {"Q4_K_S", LLAMA_FTYPE_MOSTLY_Q4_K_S},
    {"Q4_K_M", LLAMA_FTYPE_MOSTLY_Q4_K_M}, {"Q5_K", LLAMA_FTYPE_MOSTLY_Q5_K_M},
    {"Q5_K_S", LLAMA_FTYPE_MOSTLY_Q5_K_S}, {"Q5_K_M", LLAMA_FTYPE_MOSTLY_Q5_K_M},
    {"Q6_K", LLAMA_FTYPE_MOSTLY_Q6_K},     {"IQ1_S", LLAMA_FTYPE_MOSTLY_IQ1_S},
    {"IQ1_M", LLAMA_FTYPE_MOSTLY_IQ1_M},   {"IQ2_XXS", LLAMA_FTYPE_MOSTLY_IQ2_XXS},
    {"IQ2_XS", LLAMA_FTYPE_MOSTLY_IQ2_XS}, {"IQ2_S", LLAMA_FTYPE_MOSTLY_IQ2_S},
    {"IQ2_M", LLAMA_FTYPE_MOSTLY_IQ2_M},   {"IQ3_XXS", LLAMA_FTYPE_MOSTLY_IQ3_XXS},
    {"IQ3_XS", LLAMA_FTYPE_MOSTLY_IQ3_XS}, {"IQ3_S", LLAMA_FTYPE_MOSTLY_IQ3_S},
    {"IQ3_M", LLAMA_FTYPE_MOSTLY_IQ3_M},   {"IQ4_NL", LLAMA_FTYPE_MOSTLY_IQ4_NL},
    {"IQ4_XS", LLAMA_FTYPE_MOSTLY_IQ4_XS}, {"TQ1_0", LLAMA_FTYPE_MOSTLY_TQ1_0},
    {"TQ2_0", LLAMA_FTYPE_MOSTLY_TQ2_0},   {"MXFP4_MOE", LLAMA_FTYPE_MOSTLY_MXFP4_MOE},
    {"NVFP4", LLAMA_FTYPE_MOSTLY_NVFP4},   {"Q1_0", LLAMA_FTYPE_MOSTLY_Q1_0},
    {"Q2_0", LLAMA_FTYPE_MOSTLY_Q2_0},
};
static const int n_mixtures = (int) (sizeof(mixtures) / sizeof(mixtures[0]));

static bool is_name(const char *name) {
    for (int i = 0; i < n_mixtures; i++)
        if (strcasecmp(name, mixtures[i].name) == 0) return true;
    return strcasecmp(name, "COPY") == 0;
}

static const char *more(void) {
    static char known[512];
    int n = snprintf(known, sizeof(known), "Mixtures:");
    for (int i = 0; i < n_mixtures; i++) n += snprintf(known + n, sizeof(known) - (size_t) n, " %s", mixtures[i].name);
    snprintf(known + n, sizeof(known) - (size_t) n, " COPY.");
    return known;
}

// By name, or by number as in the file's general.file_type.
static int find_mixture(const char *name, enum llama_ftype *out) {
    char *end;
    const long number = strtol(name, &end, 10);
    for (int i = 0; i < n_mixtures; i++) {
        if (strcasecmp(name, mixtures[i].name) != 0 && (*end || end == name || number != (long) mixtures[i].ftype)) continue;
        *out = mixtures[i].ftype;
        return 0;
    }
    console_error("'%s' is no mixture. %s", name, more());
    return 2;
}

static int find_type(const char *option, const char *name, enum ggml_type *out) {
    if (!name) return 0;
    for (int t = 0; t < GGML_TYPE_COUNT; t++) {
        const char *known = ggml_type_name((enum ggml_type) t);
        if (!known || ggml_blck_size((enum ggml_type) t) == 0 || strcasecmp(name, known) != 0) continue;
        *out = (enum ggml_type) t;
        return 0;
    }
    console_error("%s: '%s' is no element type", option, name);
    return 2;
}

// "PATTERN=TYPE,..." into out, whose last entry stays empty. Patterns point into `list`, which is cut up.
static int parse_tensor_types(char *list, struct llama_model_tensor_override *out, int max) {
    int n = 0;
    for (char *save = NULL, *item = strtok_r(list, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        char *equals = strrchr(item, '=');
        if (!equals || n + 1 >= max) {
            console_error("--tensor-type: '%s' should read PATTERN=TYPE", item);
            return 2;
        }
        *equals = '\0';
        out[n].pattern = item;
        if (find_type("--tensor-type", equals + 1, &out[n].type)) return 2;
        n++;
    }
    return 0;
}

static bool same_file(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

// "PATTERN=TYPE" lines of a file, as a list separated by commas appended to *list (malloc).
static int read_tensor_types(char **list, const char *path) {
    struct text t = {0};
    const int status = text_read(&t, path);
    const size_t n = *list ? strlen(*list) : 0;
    char *all = status ? NULL : realloc(*list, n + t.size + 2);
    if (all) {
        *list = all;
        if (n) all[n] = ',';
        char *at = all + n + (n > 0);
        memcpy(at, t.data, t.size);
        at[t.size] = '\0';
        for (; *at; at++)
            if (strchr(" \t\r\n", *at)) *at = ',';
    }
    free(t.data);
    return status ? status : all ? 0 : console_error("no memory for %s", path);
}

// "0,3,5" into out, ended by -1: layers to leave out.
static int parse_layers(const char *list, int32_t *out, int max) {
    int n = 0;
    for (const char *at = list; *at;) {
        char *end;
        const long layer = strtol(at, &end, 10);
        if (end == at || (*end && *end != ',') || layer < 0 || layer > INT32_MAX || n + 1 >= max) {
            console_error("--prune-layers is '%s', but should be layers' numbers separated by commas", list);
            return 2;
        }
        out[n++] = (int32_t) layer;
        at = end + (*end == ',');
    }
    out[n] = -1;
    return 0;
}

// MODEL.gguf and Q4_0 give MODEL-Q4_0.gguf beside it.
static int default_output(char *out, size_t size, const char *input, const char *mixture) {
    const size_t n = strlen(input), cut = n > 5 && strcmp(input + n - 5, ".gguf") == 0 ? n - 5 : n;
    const int len = snprintf(out, size, "%.*s-%s.gguf", (int) cut, input, mixture);
    return len > 0 && (size_t) len < size ? 0 : console_error("the name %s is too long", input);
}

static bool on_progress(float done, void *unused) {
    (void) unused;
    console_progress("quantizing", done);
    return !console_interrupted();
}

static int run(struct params *p) {
    // As in the field: MODEL [OUTPUT] MIXTURE [THREADS]. Of three, the second says which one is left out.
    char made[4096];
    const bool named = p->n_args == 4 || (p->n_args == 3 && !is_name(p->args[1]));
    const char *input = p->args[0], *output = named ? p->args[1] : NULL, *mixture = p->args[1 + named];
    struct llama_model_quantize_params q = llama_model_quantize_default_params();
    struct llama_model_tensor_override types[257] = {{0}};
    struct llama_model_kv_override overrides[32 + 4] = {{.key = ""}};
    int32_t layers[513], n_overrides = 0;
    char *list = NULL;
    q.only_copy = p->only_copy || strcasecmp(mixture, "COPY") == 0;
    int status = q.only_copy ? 0 : find_mixture(mixture, &q.ftype);
    if (!status && !output) {
        status = default_output(made, sizeof(made), input, mixture);
        output = made;
    }
    if (!status && same_file(input, output)) {
        console_error("%s and %s are the same file; name another output", input, output);
        status = 2;
    }
    if (!status) status = find_type("--output-tensor-type", p->output_type, &q.output_tensor_type);
    if (!status) status = find_type("--token-embedding-type", p->embedding_type, &q.token_embedding_type);
    if (p->tensor_types && !(list = strdup(p->tensor_types))) status = console_error("no memory for a list of types");
    if (!status && p->tensor_type_file) status = read_tensor_types(&list, p->tensor_type_file);
    if (!status && list) {
        status = parse_tensor_types(list, types, 257);
        q.tt_overrides = types;
    }
    if (!status && p->prune_layers) {
        status = parse_layers(p->prune_layers, layers, 513);
        q.prune_layers = layers;
    }
    if (!status && p->override_kv) {
        n_overrides = session_overrides(overrides, 32, p->override_kv);
        status = n_overrides < 0 ? 2 : 0;
    }
    q.kv_overrides = overrides;
    int n_threads = p->n_threads;
    const char *threads = p->n_args > 2 + named ? p->args[2 + named] : NULL;
    if (!status && threads) {
        char *end;
        const long n = strtol(threads, &end, 10);
        if (*end || end == threads || n < 0 || n > 512) {
            console_error("'%s' should be a number of threads from 0 to 512", threads);
            status = 2;
        }
        n_threads = (int) n;
    }
    struct imatrix *im = NULL;
    if (!status && p->imatrix) {
        im = imatrix_load(p->imatrix);
        if (im) {
            imatrix_select(im, p->include_weights.v, p->include_weights.n, p->exclude_weights.v, p->exclude_weights.n);
            q.imatrix = imatrix_data(im);
            imatrix_about(im, p->imatrix, overrides + n_overrides);
        } else {
            status = 1;
        }
    }
    if (!status) {
        q.nthread = n_threads > 0 ? n_threads : ggml_cpu_default_threads();
        q.pure = p->pure;
        q.allow_requantize = p->allow_requantize;
        q.quantize_output_tensor = !p->leave_output;
        q.keep_split = p->keep_split;
        q.dry_run = p->dry_run;
        console_finish_first();
        const int64_t start = llama_time_us();
        struct llama_quantize_report r;
        char in[32], out[32];
        if (llama_model_quantize_report(input, output, &q, on_progress, NULL, &r) != 0)
            status = console_interrupted() ? 130 : console_library_error();
        else if (p->json)
            printf("{\"tensors\": %u, \"bytes\": %llu, \"bytes_with_headers\": %llu}\n", r.n_tensors,
                   (unsigned long long) r.bytes_out, (unsigned long long) r.bytes_files);
        else if (p->dry_run)
            printf("%u tensors, %llu bytes; with headers %llu\n", r.n_tensors, (unsigned long long) r.bytes_out,
                   (unsigned long long) r.bytes_files);
        else
            console_note("%s: %s -> %s in %.1f s", output, console_bytes(in, (double) r.bytes_in),
                         console_bytes(out, (double) r.bytes_out), (double) (llama_time_us() - start) / 1e6);
        console_progress_end();
    }
    imatrix_free(im);
    free(list);
    return status;
}

const struct tool tool_quantize = {
    .name = "quantize",
    .alias = "llama-quantize",
    .summary = "Writes a model with its weights in another format",
    .args = "MODEL [OUTPUT] MIXTURE [THREADS]",
    .more = more,
    .min_args = 2,
    .max_args = 4,
    .groups = G_QUANTIZE | G_THREADS | G_JSON,
    .run = run,
};
