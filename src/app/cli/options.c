// Parses the command line and prints help from the one list options.def.
#include "cli/options.h"
#include "base/env.h"
#include "tools/tool.h"
#include "ggml.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum opt_kind { K_STR, K_JOIN, K_INT, K_UINT, K_FLOAT, K_ON, K_OFF, K_CALL, K_LIST, K_TAKE, K_REFUSE };

struct opt {
    enum opt_kind kind;
    const char *names;  // separated by commas
    const char *env;
    const char *arg;  // what the value is called; NULL for flags
    unsigned groups;
    size_t offset;  // of the field in struct params
    double lo, hi;
    const char *(*call)(struct params *p, const char *value);  // NULL, or what was expected instead
    const char *shown;                                         // default as text, for K_CALL
    const char *help;
};

static const char *set_flash_attn(struct params *p, const char *v) {
    if (!strcmp(v, "on") || !strcmp(v, "1") || !strcmp(v, "true"))
        p->flash_attn = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    else if (!strcmp(v, "off") || !strcmp(v, "0") || !strcmp(v, "false"))
        p->flash_attn = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    else if (!strcmp(v, "auto"))
        p->flash_attn = LLAMA_FLASH_ATTN_TYPE_AUTO;
    else
        return "on, off or auto";
    return NULL;
}

const char *options_cache_type(enum ggml_type *out, const char *v) {
    static const enum ggml_type known[] = {GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_BF16, GGML_TYPE_Q8_0,  GGML_TYPE_Q4_0,
                                           GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_IQ4_NL};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(v, ggml_type_name(known[i])) != 0) continue;
        *out = known[i];
        return NULL;
    }
    return "one of f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 iq4_nl";
}

static const char *set_type_k(struct params *p, const char *v) { return options_cache_type(&p->type_k, v); }
static const char *set_type_v(struct params *p, const char *v) { return options_cache_type(&p->type_v, v); }

static const char *set_pooling(struct params *p, const char *v) {
    static const char *const names[] = {"none", "mean", "cls", "last", "rank"};
    for (int i = 0; i < 5; i++) {
        if (strcmp(v, names[i]) != 0) continue;
        p->pooling = (enum llama_pooling_type) i;
        return NULL;
    }
    return "one of none mean cls last rank";
}

static const char *set_attention(struct params *p, const char *v) {
    const bool causal = strcmp(v, "causal") == 0;
    if (!causal && strcmp(v, "non-causal") != 0) return "causal or non-causal";
    p->attention = causal ? LLAMA_ATTENTION_TYPE_CAUSAL : LLAMA_ATTENTION_TYPE_NON_CAUSAL;
    return NULL;
}

static const char *set_imatrix_format(struct params *p, const char *v) {
    (void) p;
    return strcmp(v, "gguf") == 0 ? NULL : "gguf (older .dat files are read, not written)";
}

static const char *set_seed(struct params *p, const char *v) {
    char *end = NULL;
    errno = 0;
    const long long x = strtoll(v, &end, 10);
    if (end == v || *end || errno || x < -1 || x > UINT32_MAX) return "a whole number from -1 to 4294967295";
    p->seed = (uint32_t) x;
    return NULL;
}

// The place of v in names, -1 if it is not there.
static int among(const char *v, const char *const *names) {
    for (int i = 0; names[i]; i++)
        if (strcmp(v, names[i]) == 0) return i;
    return -1;
}

static const char *set_split_mode(struct params *p, const char *v) {
    static const char *const names[] = {"none", "layer", "row", "tensor", NULL};
    const int i = among(v, names);
    if (i < 0) return "none, layer or row";
    p->split_mode = (enum llama_split_mode) i;
    return NULL;
}

static const char *set_n_gpu_layers(struct params *p, const char *v) {
    char *end = NULL;
    const long n = strcmp(v, "auto") == 0 ? -1 : strcmp(v, "all") == 0 ? 100000 : strtol(v, &end, 10);
    if (end && (end == v || *end || n < -1 || n > 100000)) return "a whole number from -1 to 100000, auto or all";
    p->n_gpu_layers = (int32_t) n;
    return NULL;
}

static const char *set_load_mode(struct params *p, const char *v) {
    static const char *const names[] = {"auto", "mmap", "none", "mlock", "mmap+mlock", "dio", NULL};
    const int i = among(v, names);
    if (i < 0) return "auto, none, mmap, mlock, mmap+mlock or dio";
    p->mmap = i == 0 || i == 1 || i == 4;
    p->mlock = i == 3 || i == 4;
    p->direct_io = i == 5;
    return NULL;
}

static const char *set_lazy_mode(struct params *p, const char *v) {
    static const char *const names[] = {"off", "auto", "on", NULL};
    const int i = among(v, names);
    if (i < 0) return "on, off or auto";
    p->lazy_mode = (enum llama_lazy_mode) i;
    return NULL;
}

static const char *set_numa(struct params *p, const char *v) {
    static const char *const names[] = {"distribute", "isolate", "numactl", NULL};
    static const enum ggml_numa_strategy as[] = {GGML_NUMA_STRATEGY_DISTRIBUTE, GGML_NUMA_STRATEGY_ISOLATE,
                                                 GGML_NUMA_STRATEGY_NUMACTL};
    const int i = among(v, names);
    if (i < 0) return "distribute, isolate or numactl";
    p->numa = as[i];
    return NULL;
}

static const char *set_rope_scaling(struct params *p, const char *v) {
    static const char *const names[] = {"none", "linear", "yarn", "longrope", NULL};
    const int i = among(v, names);
    if (i < 0) return "none, linear or yarn";
    p->rope_scaling = (enum llama_rope_scaling_type) i;
    return NULL;
}

#define OFFSET(f) offsetof(struct params, f)
static const struct opt options[] = {
#define STR(f, names, env, arg, groups, help) {K_STR, names, env, arg, groups, OFFSET(f), 0, 0, NULL, NULL, help},
#define JOIN(f, names, env, arg, groups, help) {K_JOIN, names, env, arg, groups, OFFSET(f), 0, 0, NULL, NULL, help},
#define INT(f, names, env, arg, lo, hi, groups, help) {K_INT, names, env, arg, groups, OFFSET(f), lo, hi, NULL, NULL, help},
#define UINT(f, names, env, arg, lo, hi, groups, help)                                                                      \
    {K_UINT, names, env, arg, groups, OFFSET(f), lo, hi, NULL, NULL, help},
#define FLOAT(f, names, env, arg, lo, hi, groups, help)                                                                     \
    {K_FLOAT, names, env, arg, groups, OFFSET(f), lo, hi, NULL, NULL, help},
#define ON(f, names, env, groups, help) {K_ON, names, env, NULL, groups, OFFSET(f), 0, 0, NULL, NULL, help},
#define OFF(f, names, env, groups, help) {K_OFF, names, env, NULL, groups, OFFSET(f), 0, 0, NULL, NULL, help},
#define CALL(f, names, env, arg, groups, shown, help) {K_CALL, names, env, arg, groups, 0, 0, 0, set_##f, shown, help},
#define LIST(f, names, arg, groups, help) {K_LIST, names, NULL, arg, groups, OFFSET(f), 0, 0, NULL, NULL, help},
#define TAKE(names, arg, groups, why) {K_TAKE, names, NULL, arg, groups, 0, 0, 0, NULL, NULL, why},
#define REFUSE(names, groups, sentence) {K_REFUSE, names, NULL, NULL, groups, 0, 0, 0, NULL, NULL, sentence},
#include "cli/options.def"
#undef LIST
#undef TAKE
#undef REFUSE
#undef STR
#undef JOIN
#undef INT
#undef UINT
#undef FLOAT
#undef ON
#undef OFF
#undef CALL
};
static const int n_options = (int) (sizeof(options) / sizeof(options[0]));

struct params params_default(void) {
    return (struct params){
        .n_gpu_layers = -1,
        .split_mode = LLAMA_SPLIT_MODE_LAYER,
        .rope_scaling = LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED,
        .yarn_ext_factor = -1.0f,
        .yarn_attn_factor = -1.0f,
        .yarn_beta_slow = -1.0f,
        .yarn_beta_fast = -1.0f,
        .poll = 50,
        .cpu_strict_batch = -1,
        .prio_batch = -2,
        .poll_batch = -1,
        .adaptive_target = -1.0f,
        .adaptive_decay = 0.9f,
        .mmap = true,
        .n_batch = 2048,
        .n_ubatch = 512,
        .n_parallel = 1,
        .n_threads = -1,
        .n_threads_batch = -1,
        .flash_attn = LLAMA_FLASH_ATTN_TYPE_AUTO,
        .type_k = GGML_TYPE_F16,
        .type_v = GGML_TYPE_F16,
        .n_predict = -1,
        .display_prompt = true,
        .verbosity = 2,
        .seed = LLAMA_DEFAULT_SEED,
        .temp = 0.8f,
        .dynatemp_exp = 1.0f,
        .top_k = 40,
        .top_p = 0.95f,
        .min_p = 0.05f,
        .typical_p = 1.0f,
        .top_n_sigma = -1.0f,
        .mirostat_lr = 0.1f,
        .mirostat_ent = 5.0f,
        .repeat_last_n = 64,
        .repeat_penalty = 1.0f,
        .dry_base = 1.75f,
        .dry_allowed_length = 2,
        .dry_penalty_last_n = -1,
        .xtc_threshold = 0.1f,
        .n_chunks = -1,
        .bench_p = "512",
        .bench_n = "128",
        .bench_d = "0",
        .bench_b = "2048",
        .bench_ub = "512",
        .bench_fa = "1",
        .bench_ctk = "f16",
        .bench_ctv = "f16",
        .bench_mmap = -1,
        .bench_output = "md",
        .n_repeat = 5,
        .normalize = true,
        .pooling = LLAMA_POOLING_TYPE_UNSPECIFIED,
        .attention = LLAMA_ATTENTION_TYPE_UNSPECIFIED,
        .embd_normalize = 2,
    };
}

static bool takes(const struct tool *tool, const struct opt *o) { return o->groups == G_ALL || (tool->groups & o->groups); }

// Is s one of the names of o?
static bool named(const struct opt *o, const char *s) {
    const size_t n = strlen(s);
    for (const char *at = o->names; at;) {
        const char *comma = strchr(at, ',');
        const size_t len = comma ? (size_t) (comma - at) : strlen(at);
        if (len == n && memcmp(at, s, n) == 0) return true;
        at = comma ? comma + 1 : NULL;
    }
    return false;
}

static int wrong(const struct opt *o, const char *from, const char *value, const char *want) {
    fprintf(stderr, "error: %s is '%s', but should be %s\n", from ? from : o->names, value, want);
    return 2;
}

// A list that the command line gives in parts. What stood there before its first part, a default or the environment's, is replaced.
static int join(const char **field, const char *from, const char *value) {
    static char all[1 << 16];
    static size_t used;
    const bool more = *field >= all && *field < all + used;
    const int n = snprintf(all + used, sizeof(all) - used, "%s%s%s", more ? *field : "", more ? "," : "", value);
    if (n < 0 || (size_t) n >= sizeof(all) - used) {
        fprintf(stderr, "error: option %s: its list is longer than %zu bytes\n", from, sizeof(all));
        return 2;
    }
    *field = all + used;
    used += (size_t) n + 1;
    return 0;
}

// from: how the caller wrote the option.
static int assign(struct params *p, const struct opt *o, const char *from, const char *value) {
    void *field = (char *) p + o->offset;
    char *end = NULL, want[96];
    switch (o->kind) {
        case K_JOIN:
            if (*from == '-') return join(field, from, value);  // fall through
        case K_STR: *(const char **) field = value; return 0;
        case K_ON: *(bool *) field = true; return 0;
        case K_OFF: *(bool *) field = false; return 0;
        case K_TAKE: return 0;
        case K_REFUSE: fprintf(stderr, "error: option %s: %s\n", from, o->help); return 2;
        case K_LIST: {
            struct str_list *l = field;
            const int most = (int) (sizeof(l->v) / sizeof(l->v[0]));
            if (l->n == most) {
                fprintf(stderr, "error: option %s was given more than %d times\n", from, most);
                return 2;
            }
            l->v[l->n++] = value;
            return 0;
        }
        case K_CALL: {
            const char *expected = o->call(p, value);
            return expected ? wrong(o, from, value, expected) : 0;
        }
        default: break;
    }
    errno = 0;
    const double x = o->kind == K_FLOAT ? strtod(value, &end) : (double) strtoll(value, &end, 10);
    if (end == value || *end || errno == ERANGE || isnan(x) || x < o->lo || x > o->hi) {
        snprintf(want, sizeof(want), "%s from %.10g to %.10g", o->kind == K_FLOAT ? "a number" : "a whole number", o->lo,
                 o->hi);
        return wrong(o, from, value, want);
    }
    if (o->kind == K_INT) *(int32_t *) field = (int32_t) x;
    if (o->kind == K_UINT) *(uint32_t *) field = (uint32_t) x;
    if (o->kind == K_FLOAT) *(float *) field = (float) x;
    return 0;
}

// The value of the first of these variables (separated by commas) that is set.
static const char *env_first(const char *names) {
    for (const char *at = names; at;) {
        const char *comma = strchr(at, ',');
        char one[64];
        snprintf(one, sizeof(one), "%.*s", comma ? (int) (comma - at) : (int) strlen(at), at);
        const char *value = env_get(one);
        if (value) return value;
        at = comma ? comma + 1 : NULL;
    }
    return NULL;
}

static int parse_env(struct params *p, const struct tool *tool) {
    static const char no[] = "LLAMA_ARG_NO_";
    const size_t n_no = sizeof(no) - 1;
    for (int i = 0; i < n_options; i++) {
        const struct opt *o = &options[i];
        const char *value = o->env && takes(tool, o) ? env_first(o->env) : NULL;
        bool opposite = false;
        if (!value && o->env && takes(tool, o) && !o->arg && strncmp(o->env, no, n_no) == 0) {
            char name[64];  // LLAMA_ARG_X says the opposite of LLAMA_ARG_NO_X
            snprintf(name, sizeof(name), "LLAMA_ARG_%s", o->env + n_no);
            value = env_get(name);
            opposite = value != NULL;
        }
        if (!value) continue;
        if (o->kind == K_ON || o->kind == K_OFF) {
            static const char *const words[] = {"0", "false", "off", "disabled", "1", "true", "on", "enabled", NULL};
            const int word = among(value, words);
            if (word < 0) return wrong(o, o->env, value, "1 or 0, on or off, true or false");
            if ((word < 4) != opposite) continue;
        }
        const int status = assign(p, o, o->env, value);
        if (status) return status;
    }
    return 0;
}

// Letters to change, leave out or add to make one name of the other (Levenshtein 1965); names are at most 63 long.
static int distance(const char *a, const char *b, size_t n_b) {
    int row[64];
    for (size_t j = 0; j <= n_b; j++) row[j] = (int) j;
    for (size_t i = 1; a[i - 1]; i++) {
        int corner = row[0];
        row[0] = (int) i;
        for (size_t j = 1; j <= n_b; j++) {
            const int change = corner + (a[i - 1] != b[j - 1]), drop = row[j] + 1, add = row[j - 1] + 1;
            corner = row[j];
            row[j] = change < drop ? change : drop;
            row[j] = row[j] < add ? row[j] : add;
        }
    }
    return row[n_b];
}

// The name of an option of this tool that is most like a wrong one; empty if none is.
static void nearest(const struct tool *tool, const char *wrong_name, char out[64]) {
    int best = (int) strlen(wrong_name) / 3 + 1;
    out[0] = '\0';
    for (int i = 0; i < n_options; i++) {
        if (!takes(tool, &options[i])) continue;
        for (const char *at = options[i].names; at;) {
            const char *comma = strchr(at, ',');
            const size_t n = comma ? (size_t) (comma - at) : strlen(at);
            const int d = n > 3 && n < 64 ? distance(wrong_name, at, n) : 64;
            if (d < best) {
                best = d;
                snprintf(out, 64, "%.*s", (int) n, at);
            }
            at = comma ? comma + 1 : NULL;
        }
    }
}

static int unknown(const struct tool *tool, const char *name) {
    char like[64];
    nearest(tool, name, like);
    fprintf(stderr, "error: `lamina %s` has no option %s", tool->name, name);
    if (like[0]) fprintf(stderr, "; did you mean %s?", like);
    fprintf(stderr, "%s see `lamina %s -h`\n", like[0] ? " Or" : ";", tool->name);
    return 2;
}

size_t text_unescape(char *text, size_t n) {
    static const char from[] = "ntr\"'\\", to[] = "\n\t\r\"'\\";
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        const char *hit = text[i] == '\\' && i + 1 < n ? memchr(from, text[i + 1], sizeof(from) - 1) : NULL;
        text[out++] = hit ? to[hit - from] : text[i];
        if (hit) i++;
    }
    return out;
}

// Texts given on the command line are read with escapes, as the field's programs do: \n, \t, \r, \", \' and \\. The program may change its own
// arguments (C11 5.1.2.2.1), not the environment's texts.
static void read_escapes(struct params *p, int argc, char **argv) {
    const char *texts[5 + 16] = {p->prompt, p->system_prompt, p->in_prefix, p->in_suffix};
    int n = 4;
    for (int i = 0; i < p->reverse_prompt.n; i++) texts[n++] = p->reverse_prompt.v[i];
    for (int i = 1; i < argc; i++)
        for (int k = 0; k < n; k++)
            if (texts[k] >= argv[i] && texts[k] <= argv[i] + strlen(argv[i])) {
                char *text = argv[i] + (texts[k] - argv[i]);
                text[text_unescape(text, strlen(text))] = '\0';
                texts[k] = NULL;
                break;
            }
}

int options_parse(struct params *p, const struct tool *tool, int argc, char **argv, int first) {
    int status = parse_env(p, tool);
    bool only_args = false;
    for (int i = first; i < argc && !status; i++) {
        const char *a = argv[i];
        if (only_args || a[0] != '-' || a[1] == '\0') {
            if (p->n_args >= tool->max_args) {
                fprintf(stderr, "error: '%s' is one argument too many for `lamina %s`; see `lamina %s -h`\n", a, tool->name,
                        tool->name);
                return 2;
            }
            p->args[p->n_args++] = a;
            continue;
        }
        if (strcmp(a, "--") == 0) {
            only_args = true;
            continue;
        }
        if (strcmp(a, "-h") == 0 || strcmp(a, "--help") == 0 || strcmp(a, "--usage") == 0) {
            options_help(tool, stdout);
            return 1;
        }
        if (strcmp(a, "--version") == 0) {
            printf("lamina %s (%s)\n", llama_version(), ggml_commit());
            return 1;
        }
        char name[64];
        const char *equals = strncmp(a, "--", 2) == 0 ? strchr(a, '=') : NULL;
        snprintf(name, sizeof(name), "%.*s", equals ? (int) (equals - a) : (int) strlen(a), a);
        const struct opt *o = NULL;
        for (int k = 0; k < n_options && !o; k++)
            if (takes(tool, &options[k]) && named(&options[k], name)) o = &options[k];
        if (!o) return unknown(tool, name);
        const char *value = equals ? equals + 1 : NULL;
        if (o->arg && !value) {
            if (i + 1 >= argc) {
                fprintf(stderr, "error: option %s needs a value (%s)\n", name, o->arg);
                return 2;
            }
            value = argv[++i];
        }
        status = assign(p, o, name, value);
    }
    if (!status && p->n_args < tool->min_args) {
        fprintf(stderr, "error: `lamina %s` needs %s; see `lamina %s -h`\n", tool->name, tool->args, tool->name);
        status = 2;
    }
    if (!status && !p->no_escape && (tool->groups & (G_PERPLEXITY | G_IMATRIX)) == 0) read_escapes(p, argc, argv);
    return status;
}

// ---- help --------------------------------------------------------------------------------------------------------

static void shown_default(const struct opt *o, const struct params *d, char *out, size_t size) {
    const void *field = (const char *) d + o->offset;
    out[0] = '\0';
    switch (o->kind) {
        case K_INT: snprintf(out, size, "%d", *(const int32_t *) field); break;
        case K_UINT: snprintf(out, size, "%u", *(const uint32_t *) field); break;
        case K_FLOAT: snprintf(out, size, "%g", (double) *(const float *) field); break;
        case K_STR:
        case K_JOIN:
            if (*(const char *const *) field) snprintf(out, size, "%s", *(const char *const *) field);
            break;
        case K_CALL: snprintf(out, size, "%s", o->shown); break;
        default: break;
    }
}

static void usage(const struct tool *tool, FILE *out) {
    fprintf(out, "usage: lamina %s [OPTION ...]%s%s\n\n%s.\n", tool->name, tool->args[0] ? " " : "", tool->args,
            tool->summary);
    if (tool->more) fprintf(out, "%s\n", tool->more());
}

void options_help(const struct tool *tool, FILE *out) {
    const struct params d = params_default();
    usage(tool, out);
    fputs("\n  -h, --help\n        show this text\n", out);
    for (int i = 0; i < n_options; i++) {
        const struct opt *o = &options[i];
        if (!takes(tool, o) || o->kind == K_REFUSE) continue;
        char value[128];
        shown_default(o, &d, value, sizeof(value));
        fputs("  ", out);
        for (const char *c = o->names; *c; c++) {
            if (*c == ',')
                fputs(", ", out);
            else
                fputc(*c, out);
        }
        if (o->arg) fprintf(out, " %s", o->arg);
        fprintf(out, "\n        %s%s", o->kind == K_TAKE ? "accepted: " : "", o->help);
        if (value[0]) fprintf(out, " (default: %s)", value);
        if (o->env) fprintf(out, " [%s]", o->env);
        fputc('\n', out);
    }
}

int options_completion(const char *shell, FILE *out) {
    const bool bash = strcmp(shell, "bash") == 0, zsh = strcmp(shell, "zsh") == 0;
    if (!bash && !zsh) {
        fputs("error: `lamina completion` needs a shell: bash or zsh\n", stderr);
        return 2;
    }
    if (zsh) fputs("#compdef lamina\nautoload -U +X bashcompinit && bashcompinit\n", out);
    fputs("_lamina() {\n  local words=\"\" cur=${COMP_WORDS[COMP_CWORD]}\n  case ${COMP_WORDS[1]} in\n", out);
    for (int t = 0; t < n_tools; t++) {
        fprintf(out, "    %s) words=\"--help", tools[t]->name);
        for (int i = 0; i < n_options; i++) {
            if (!takes(tools[t], &options[i]) || options[i].kind == K_REFUSE) continue;
            fputc(' ', out);
            for (const char *c = options[i].names; *c; c++) fputc(*c == ',' ? ' ' : *c, out);
        }
        fputs("\" ;;\n", out);
    }
    fputs("  esac\n  if [ \"$COMP_CWORD\" = 1 ]; then words=\"", out);
    for (int t = 0; t < n_tools; t++) fprintf(out, "%s ", tools[t]->name);
    fputs("completion man\"; fi\n  if [[ $cur == -* || $COMP_CWORD == 1 ]]; then COMPREPLY=($(compgen -W \"$words\" -- "
          "\"$cur\"));\n"
          "  else COMPREPLY=($(compgen -f -- \"$cur\")); fi\n}\ncomplete -o filenames -F _lamina lamina\n",
          out);
    return 0;
}

static void man_text(const char *s, FILE *out) {
    for (; *s; s++) {
        if (*s == '-' || *s == '\\') fputc('\\', out);
        fputc(*s, out);
    }
}

void options_man(FILE *out) {
    const struct params d = params_default();
    fputs(".TH LAMINA 1\n.SH NAME\nlamina \\- run and look after language models in GGUF files\n.SH SYNOPSIS\n.B lamina\n"
          "COMMAND [OPTION ...]\n.SH COMMANDS\n",
          out);
    for (int t = 0; t < n_tools; t++)
        fprintf(out, ".TP\n.B %s %s\n%s.\n%s%s", tools[t]->name, tools[t]->args, tools[t]->summary,
                tools[t]->more ? tools[t]->more() : "", tools[t]->more ? "\n" : "");
    fputs(".SH OPTIONS\nEach command takes those of these options that its \\fB\\-h\\fR lists.\n", out);
    for (int i = 0; i < n_options; i++) {
        char value[128];
        if (options[i].kind == K_REFUSE) continue;
        shown_default(&options[i], &d, value, sizeof(value));
        fputs(".TP\n.B ", out);
        man_text(options[i].names, out);
        if (options[i].arg) fprintf(out, " %s", options[i].arg);
        fputc('\n', out);
        man_text(options[i].help, out);
        if (value[0]) fprintf(out, " (default: %s)", value);
        if (options[i].env) fprintf(out, " [%s]", options[i].env);
        fputc('\n', out);
    }
    fputs(".SH EXIT STATUS\n0 done, 1 failed, 2 wrong call, 130 interrupted.\n", out);
}
