// From options to a chain of samplers.
#include "cli/console.h"
#include "cli/session.h"
#include "llama/ext.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int add_logit_bias(struct llama_sampler *chain, const struct session *s, const struct params *p) {
    const struct str_list *lists = &p->logit_bias;
    llama_logit_bias bias[256];
    int n = 0;
    for (llama_token t = 0; p->ignore_eos && t < llama_vocab_n_tokens(s->vocab) && n < 200; t++)
        if (llama_vocab_is_eog(s->vocab, t)) bias[n++] = (llama_logit_bias){.token = t, .bias = -INFINITY};
    for (int i = 0; i < lists->n; i++) {
        for (const char *at = lists->v[i]; at && *at;) {
            char *end;
            const long id = strtol(at, &end, 10);
            char *after = end;
            const float by = *end == '+' || *end == '-' ? strtof(end, &after) : 0.0f;
            if (end == at || after == end || isnan(by) || (*after && *after != ',') || id < 0 ||
                id >= llama_vocab_n_tokens(s->vocab) || n == 256) {
                console_error("--logit-bias: '%s' should read ID+NUMBER or ID-NUMBER with ID below %d", at,
                              llama_vocab_n_tokens(s->vocab));
                return 2;
            }
            bias[n++] = (llama_logit_bias){.token = (llama_token) id, .bias = by};
            at = *after ? after + 1 : NULL;
        }
    }
    llama_sampler_chain_add(chain, llama_sampler_init_logit_bias(llama_vocab_n_tokens(s->vocab), n, bias));
    return 0;
}

// The text of a file, ended by a zero, malloc; NULL after a sentence.
static char *file_text(const char *path) {
    struct text t = {0};
    if (text_read(&t, path)) return NULL;
    char *text = realloc(t.data, t.size + 1);
    if (text)
        text[t.size] = '\0';
    else
        free(t.data), console_error("no memory for %zu bytes of %s", t.size, path);
    return text;
}

// A JSON schema as a grammar, malloc; NULL after a sentence.
static char *schema_grammar(const char *schema) {
    const int32_t n = llama_json_schema_to_grammar(schema, NULL, 0);
    char *text = n >= 0 ? malloc((size_t) n + 1) : NULL;
    if (n < 0)
        console_library_error();
    else if (!text)
        console_error("no memory for a grammar of %d bytes", n);
    else
        llama_json_schema_to_grammar(schema, text, n + 1);
    return text;
}

static int add_grammar(struct llama_sampler *chain, const struct session *s, const struct params *p) {
    const bool schema = p->json_schema || p->json_schema_file;
    const char *given = schema ? p->json_schema : p->grammar, *path = schema ? p->json_schema_file : p->grammar_file;
    if (schema && (p->grammar || p->grammar_file)) {
        console_error("a grammar and a JSON schema cannot be kept to together; give one of them");
        return 2;
    }
    char *from_file = path ? file_text(path) : NULL, *made = NULL;
    if (path && !from_file) return 1;
    const char *text = from_file ? from_file : given;
    if (schema) text = made = schema_grammar(text);
    struct llama_sampler *g = text ? llama_sampler_init_grammar(s->vocab, text, "root") : NULL;
    free(from_file);
    free(made);
    if (!text) return 1;
    if (!g) return console_library_error();
    llama_sampler_chain_add(chain, g);
    return 0;
}

// ---- the samplers that --samplers and --sampling-seq name

static int32_t context_of(const struct session *s) { return s->ctx ? (int32_t) llama_n_ctx(s->ctx) : 4096; }

static struct llama_sampler *make_penalties(const struct session *s, const struct params *p) {
    const int32_t last_n = p->repeat_last_n < 0 ? context_of(s) : p->repeat_last_n;
    if (!last_n || (p->repeat_penalty == 1.0f && p->frequency_penalty == 0.0f && p->presence_penalty == 0.0f)) return NULL;
    return llama_sampler_init_penalties(llama_vocab_n_tokens(s->vocab), last_n, p->repeat_penalty, p->frequency_penalty,
                                        p->presence_penalty);
}

static struct llama_sampler *make_dry(const struct session *s, const struct params *p) {
    static const char *usual[] = {"\n", ":", "\"", "*"};
    const struct str_list *own = &p->dry_breakers;
    const bool none = own->n == 1 && strcmp(own->v[0], "none") == 0;
    if (p->dry_multiplier <= 0.0f) return NULL;
    return llama_sampler_init_dry(s->vocab, p->dry_multiplier, p->dry_base, p->dry_allowed_length,
                                  p->dry_penalty_last_n < 0 ? context_of(s) : p->dry_penalty_last_n,
                                  own->n ? (const char **) (uintptr_t) own->v : usual,
                                  none     ? 0
                                  : own->n ? (size_t) own->n
                                           : sizeof(usual) / sizeof(usual[0]));
}

#define MAKE(name, when, how)                                                                                               \
    static struct llama_sampler *make_##name(const struct session *s, const struct params *p) {                             \
        (void) s;                                                                                                           \
        (void) p;                                                                                                           \
        return (when) ? (how) : NULL;                                                                                       \
    }
MAKE(top_n_sigma, p->top_n_sigma > 0.0f, llama_sampler_init_top_n_sigma(p->top_n_sigma))
MAKE(top_k, p->top_k > 0, llama_sampler_init_top_k(p->top_k))
MAKE(typical, p->typical_p < 1.0f, llama_sampler_init_typical(p->typical_p, 1))
MAKE(top_p, p->top_p < 1.0f, llama_sampler_init_top_p(p->top_p, 1))
MAKE(min_p, p->min_p > 0.0f, llama_sampler_init_min_p(p->min_p, 1))
MAKE(xtc, p->xtc_probability > 0.0f, llama_sampler_init_xtc(p->xtc_probability, p->xtc_threshold, 1, p->seed))
MAKE(temperature, true, llama_sampler_init_temp_ext(p->temp, p->dynatemp_range, p->dynatemp_exp))
MAKE(infill, true, llama_sampler_init_infill(s->vocab))
MAKE(adaptive, true, llama_sampler_init_adaptive_p(p->adaptive_target, p->adaptive_decay, p->seed))

static const struct kind {
    char letter;
    const char *names[3];
    struct llama_sampler *(*make)(const struct session *s, const struct params *p);  // NULL: the options leave it out
    bool always;                                                                     // does its part at temperature 0 too
} kinds[] = {
    {'e', {"penalties"}, make_penalties, true},
    {'d', {"dry"}, make_dry, true},
    {'s', {"top_n_sigma"}, make_top_n_sigma, false},
    {'k', {"top_k"}, make_top_k, false},
    {'y', {"typ_p", "typical_p", "typical"}, make_typical, false},
    {'p', {"top_p", "nucleus"}, make_top_p, false},
    {'m', {"min_p"}, make_min_p, false},
    {'x', {"xtc"}, make_xtc, false},
    {'t', {"temperature", "temp"}, make_temperature, false},
    {'i', {"infill"}, make_infill, true},
    {'a', {"adaptive_p"}, make_adaptive, false},
};
enum { N_KIND = sizeof(kinds) / sizeof(kinds[0]), MAX_CHOSEN = 32 };

static const struct kind *kind_named(const char *name, size_t n) {
    char plain[32] = "";
    for (size_t i = 0; i < n && i + 1 < sizeof(plain); i++) plain[i] = name[i] == '-' ? '_' : name[i];
    for (int k = 0; k < N_KIND; k++)
        for (int i = 0; i < 3 && kinds[k].names[i]; i++)
            if (n < sizeof(plain) && strcmp(plain, kinds[k].names[i]) == 0) return &kinds[k];
    return NULL;
}

static const struct kind *kind_of(char letter) {
    for (int k = 0; k < N_KIND; k++)
        if (kinds[k].letter == letter) return &kinds[k];
    return NULL;
}

// The samplers of --samplers, else of --sampling-seq, else the usual ones. Their number, or -1 after a sentence on stderr.
static int choose(const struct kind **out, const struct params *p) {
    int n = 0;
    if (!p->samplers) {
        for (const char *c = p->sampling_seq ? p->sampling_seq : "edskypmxt"; *c; c++) {
            const struct kind *k = kind_of(*c);
            if (!k || n == MAX_CHOSEN) {
                console_error("--sampling-seq: no sampler has the letter '%c'; known are edskypmxtia", *c);
                return -1;
            }
            out[n++] = k;
        }
        return n;
    }
    for (const char *at = p->samplers; at && *at;) {
        const size_t len = strcspn(at, ";,");
        const struct kind *k = kind_named(at, len);
        if (!k || n == MAX_CHOSEN) {
            console_error(
                "--samplers: there is no sampler '%.*s'; known are penalties dry top_n_sigma top_k typ_p top_p min_p "
                "xtc temperature infill adaptive_p",
                (int) len, at);
            return -1;
        }
        out[n++] = k;
        at += len + (at[len] != '\0');
    }
    return n;
}

static void add(struct llama_sampler *chain, struct llama_sampler *one) {
    if (one) llama_sampler_chain_add(chain, one);
}

// What chooses the token in the end. chosen [n]: what stands before it.
static void add_last(struct llama_sampler *chain, const struct session *s, const struct params *p,
                     const struct kind *const *chosen, int n) {
    if (p->temp <= 0.0f)
        add(chain, llama_sampler_init_greedy());
    else if (p->mirostat == 1)
        add(chain,
            llama_sampler_init_mirostat(llama_vocab_n_tokens(s->vocab), p->seed, p->mirostat_ent, p->mirostat_lr, 100));
    else if (p->mirostat == 2)
        add(chain, llama_sampler_init_mirostat_v2(p->seed, p->mirostat_ent, p->mirostat_lr));
    else if (n == 0 || chosen[n - 1]->make != make_adaptive)  // which chooses itself
        add(chain, llama_sampler_init_dist(p->seed));
}

struct llama_sampler *session_sampler(const struct session *s, const struct params *p) {
    const struct kind *chosen[MAX_CHOSEN + 1];
    int n = choose(chosen, p);
    if (n < 0) return NULL;
    const struct kind *adaptive = kind_of('a');
    int kept = 0, has_adaptive = p->adaptive_target >= 0.0f && !p->samplers && !p->sampling_seq;
    for (int i = 0; i < n; i++) {
        has_adaptive |= chosen[i] == adaptive;
        if (chosen[i] != adaptive) chosen[kept++] = chosen[i];
    }
    n = kept;
    if (has_adaptive) chosen[n++] = adaptive;
    struct llama_sampler *chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    if (!chain) {
        console_library_error();
        return NULL;
    }
    if (((p->logit_bias.n || p->ignore_eos) && add_logit_bias(chain, s, p)) ||
        ((p->grammar || p->grammar_file || p->json_schema || p->json_schema_file) && add_grammar(chain, s, p))) {
        llama_sampler_free(chain);
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        const bool wanted = chosen[i]->always || (p->temp > 0.0f && (!p->mirostat || chosen[i]->make == make_temperature));
        if (wanted) add(chain, chosen[i]->make(s, p));
    }
    add_last(chain, s, p, chosen, n);
    return chain;
}

void session_prompt_seen(struct llama_sampler *chain, const llama_token *tokens, int32_t n) {
    for (int32_t i = 0; i < llama_sampler_chain_n(chain); i++) {
        struct llama_sampler *one = llama_sampler_chain_get(chain, i);
        if (strcmp(llama_sampler_name(one), "grammar") == 0)
            llama_sampler_reset(one);
        else
            for (int32_t k = 0; k < n; k++) llama_sampler_accept(one, tokens[k]);
    }
}
