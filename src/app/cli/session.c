// From options to a loaded model, a context, a sampler chain and the tokens of a prompt.
#include "cli/session.h"

#include "base/env.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/parts.h"
#include "ggml/ext.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- the model ---------------------------------------------------------------------------------------------------

#define DEFAULT_MODEL "SmolLM2-135M-Instruct.Q4_1.gguf"

const char *session_model_path(const struct params *p) {
    static char path[4096];
    if (p->model) return p->model;
    const char *cache = env_get("XDG_CACHE_HOME"), *home = env_get("HOME");
    if (cache)
        snprintf(path, sizeof(path), "%s/lamina/%s", cache, DEFAULT_MODEL);
    else
        snprintf(path, sizeof(path), "%s/.cache/lamina/%s", home ? home : "", DEFAULT_MODEL);
    if (access(path, R_OK) == 0) return path;
    console_error("no model given and the default one is not at %s; pass -m FILE, or run ./try once to fetch it", path);
    return NULL;
}

static bool on_abort(void *unused) {
    (void) unused;
    return console_interrupted();
}

static bool on_progress(float done, void *unused) {
    (void) unused;
    console_progress("loading", done);
    return !console_interrupted();
}

// Reads a value. NULL, or what was expected instead.
static const char *override_value(struct llama_model_kv_override *o, const char *type, const char *value) {
    char *end = NULL;
    if (!strcmp(type, "int")) {
        o->tag = LLAMA_KV_OVERRIDE_TYPE_INT;
        errno = 0;
        o->val_i64 = strtoll(value, &end, 10);
        return end == value || *end || errno ? "a whole number of 64 bits" : NULL;
    }
    if (!strcmp(type, "float")) {
        o->tag = LLAMA_KV_OVERRIDE_TYPE_FLOAT;
        o->val_f64 = strtod(value, &end);
        return end == value || *end ? "a number" : NULL;
    }
    if (!strcmp(type, "bool")) {
        o->tag = LLAMA_KV_OVERRIDE_TYPE_BOOL;
        o->val_bool = !strcmp(value, "true") || !strcmp(value, "1");
        return o->val_bool || !strcmp(value, "false") || !strcmp(value, "0") ? NULL : "true or false";
    }
    if (!strcmp(type, "str")) {
        const size_t n = strlen(value);
        if (n >= sizeof(o->val_str)) return "a text of at most 127 bytes";
        o->tag = LLAMA_KV_OVERRIDE_TYPE_STR;
        memcpy(o->val_str, value, n + 1);
        return NULL;
    }
    return "TYPE:VALUE with TYPE one of int float bool str";
}

int session_overrides(struct llama_model_kv_override *out, int max, const char *list) {
    int n = 0;
    for (const char *at = list; at && *at;) {
        const char *comma = strchr(at, ',');
        char item[320];
        snprintf(item, sizeof(item), "%.*s", comma ? (int) (comma - at) : (int) strlen(at), at);
        char *equals = strchr(item, '='), *colon = equals ? strchr(equals, ':') : NULL;
        if (!colon || equals - item >= (long) sizeof(out->key) || n + 1 >= max) {
            console_error("--override-kv: '%s' should read KEY=TYPE:VALUE with TYPE one of int float bool str", item);
            return -1;
        }
        *equals = *colon = '\0';
        struct llama_model_kv_override *o = &out[n++];
        memcpy(o->key, item, strlen(item) + 1);
        const char *want = override_value(o, equals + 1, colon + 1);
        if (want) {
            console_error("--override-kv: '%s' of %s should be %s", colon + 1, o->key, want);
            return -1;
        }
        at = comma ? comma + 1 : NULL;
    }
    out[n].key[0] = '\0';
    return n;
}

// Devices named in a list, then NULL. 0, or 2 after a sentence.
static int parse_devices(ggml_backend_dev_t *out, int max, const char *list) {
    int n = 0;
    for (const char *at = list; at && *at;) {
        const char *comma = strchr(at, ',');
        char name[64];
        snprintf(name, sizeof(name), "%.*s", comma ? (int) (comma - at) : (int) strlen(at), at);
        ggml_backend_dev_t dev = ggml_backend_dev_by_name(name);
        if ((!dev && strcmp(name, "none") != 0) || n + 1 >= max) {
            console_error("--device: there is no device '%s'; here are:", name);
            for (size_t i = 0; i < ggml_backend_dev_count(); i++)
                fprintf(stderr, "  %s\n", ggml_backend_dev_name(ggml_backend_dev_get(i)));
            return 2;
        }
        if (dev) out[n++] = dev;
        at = comma ? comma + 1 : NULL;
    }
    out[n] = NULL;
    return 0;
}

static ggml_backend_buffer_type_t buffer_type_named(const char *name) {
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        ggml_backend_buffer_type_t t = ggml_backend_dev_buffer_type(ggml_backend_dev_get(i));
        if (!strcmp(ggml_backend_buft_name(t), name)) return t;
    }
    return NULL;
}

// Reads "PATTERN=BUFFER_TYPE,..." into o->places, the last of which stays empty. 0, or 2 after a sentence.
static int parse_places(struct model_options *o, const char *list) {
    const int most = (int) (sizeof(o->patterns) / sizeof(o->patterns[0]));
    int n = 0;
    for (const char *at = list; *at;) {
        const char *comma = strchr(at, ',');
        char item[320];
        snprintf(item, sizeof(item), "%.*s", comma ? (int) (comma - at) : (int) strlen(at), at);
        char *equals = strrchr(item, '=');
        if (!equals || equals - item >= (long) sizeof(o->patterns[0]) || n == most) {
            console_error("--override-tensor: '%s' should read PATTERN=BUFFER_TYPE; at most %d are possible", item, most);
            return 2;
        }
        *equals = '\0';
        memcpy(o->patterns[n], item, strlen(item) + 1);
        o->places[n] =
            (struct llama_model_tensor_buft_override){.pattern = o->patterns[n], .buft = buffer_type_named(equals + 1)};
        if (!o->places[n++].buft) {
            char known[512] = "";
            for (size_t i = 0, end = 0; i < ggml_backend_dev_count() && end < sizeof(known); i++)
                end += (size_t) snprintf(known + end, sizeof(known) - end, "%s%s", i ? ", " : "",
                                         ggml_backend_buft_name(ggml_backend_dev_buffer_type(ggml_backend_dev_get(i))));
            console_error("--override-tensor: there is no buffer type '%s'; there are: %s", equals + 1, known);
            return 2;
        }
        at = comma ? comma + 1 : at + strlen(at);
    }
    o->params.tensor_buft_overrides = o->places;
    return 0;
}

// Experts stay in the CPU's memory: those of the first n_layer layers, all with -1. Behind the places that -ot gives, which come first.
static int keep_experts(struct model_options *o, int n_layer) {
    const int most = (int) (sizeof(o->patterns) / sizeof(o->patterns[0]));
    int n = 0;
    while (o->places[n].pattern) n++;
    if (n == most) {
        console_error("--override-tensor: with --cpu-moe or --n-cpu-moe at most %d places are possible", most - 1);
        return 2;
    }
    char *to = o->experts;
    const char *const end = to + sizeof(o->experts), *what = "ffn_(up|down|gate|gate_up)_(ch|)exps";
    if (n_layer < 0) {
        snprintf(to, sizeof(o->experts), "%s", what);
    } else {
        for (int i = 0; i < n_layer; i++) to += snprintf(to, (size_t) (end - to), "%s%d", i ? "|" : "blk\\.(", i);
        snprintf(to, (size_t) (end - to), ")\\.%s", what);
    }
    o->places[n] = (struct llama_model_tensor_buft_override){o->experts, ggml_backend_cpu_buffer_type()};
    o->params.tensor_buft_overrides = o->places;
    return 0;
}

// Shares of devices: "3,1".
static int parse_shares(struct model_options *o, const char *list) {
    int n = 0;
    for (const char *at = list; *at;) {
        char *end;
        const float v = strtof(at, &end);
        if (end == at || (*end && *end != ',' && *end != '/') || !(v >= 0) || n == 16) {
            console_error("--tensor-split is '%s', but should be at most 16 numbers separated by commas", list);
            return 2;
        }
        o->shares[n++] = v;
        at = *end ? end + 1 : end;
    }
    o->params.tensor_split = o->shares;
    return 0;
}

void session_list_devices(void) {
    ggml_backend_load_all();
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        ggml_backend_dev_t dev = ggml_backend_dev_get(i);
        size_t total = 0, unused = 0;
        ggml_backend_dev_memory(dev, &unused, &total);
        printf("%s: %s (%zu MiB, %zu MiB free)\n", ggml_backend_dev_name(dev), ggml_backend_dev_description(dev),
               total >> 20, unused >> 20);
    }
}

static int load_adapters(struct session *s, const struct params *p) {
    for (const char *at = p->lora; at && *at;) {
        const char *comma = strchr(at, ',');
        char path[4096];
        snprintf(path, sizeof(path), "%.*s", comma ? (int) (comma - at) : (int) strlen(at), at);
        char *colon = strrchr(path, ':');
        if (colon && strspn(colon + 1, "0123456789.-") == strlen(colon + 1)) *colon = '\0';
        if (s->n_lora == (int) (sizeof(s->lora) / sizeof(s->lora[0]))) return console_error("--lora: more than 8 adapters");
        s->lora[s->n_lora] = llama_adapter_lora_init(s->model, path);
        if (!s->lora[s->n_lora]) return console_library_error();
        s->n_lora++;
        at = comma ? comma + 1 : NULL;
    }
    return 0;
}

int session_model_options(struct model_options *o, const struct params *p) {
    ggml_backend_load_all();
    *o = (struct model_options){.params = llama_model_default_params()};
    struct llama_model_params *mp = &o->params;
    mp->n_gpu_layers = p->n_gpu_layers;
    mp->load_mode = p->mmap ? (p->mlock ? LLAMA_LOAD_MODE_MMAP_MLOCK : LLAMA_LOAD_MODE_MMAP)
                            : (p->mlock ? LLAMA_LOAD_MODE_MLOCK : LLAMA_LOAD_MODE_NONE);
    mp->check_tensors = p->check_tensors;
    mp->progress_callback = on_progress;
    if (p->override_kv) {
        if (session_overrides(o->overrides, 32, p->override_kv) < 0) return 2;
        mp->kv_overrides = o->overrides;
    }
    if (p->devices) {
        if (parse_devices(o->devices, 17, p->devices)) return 2;
        mp->devices = o->devices;
    }
    if (p->override_tensor && parse_places(o, p->override_tensor)) return 2;
    if ((p->cpu_moe || p->n_cpu_moe) && keep_experts(o, p->cpu_moe ? -1 : p->n_cpu_moe)) return 2;
    mp->lazy_mode = p->lazy_mode;
    if (p->direct_io) mp->load_mode = LLAMA_LOAD_MODE_DIRECT_IO;
    mp->split_mode = p->split_mode;
    mp->main_gpu = p->main_gpu;
    if (p->tensor_split && parse_shares(o, p->tensor_split)) return 2;
    if (p->numa != GGML_NUMA_STRATEGY_DISABLED) llama_numa_init(p->numa);
    return 0;
}

int session_load(struct session *s, const struct params *p, bool vocab_only) {
    const char *path = session_model_path(p);
    if (!path) return 2;
    struct model_options o;
    const int status = session_model_options(&o, p);
    if (status) return status;
    o.params.vocab_only = vocab_only;
    s->model = llama_model_load_from_file(path, o.params);
    console_progress_end();
    if (!s->model) return console_interrupted() ? 130 : console_library_error();
    s->vocab = llama_model_get_vocab(s->model);
    return vocab_only ? 0 : load_adapters(s, p);
}

struct llama_context_params session_context_options(const struct params *p, int32_t n_ctx_train) {
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = p->n_ctx ? p->n_ctx : n_ctx_train > 0 && n_ctx_train < 4096 ? (uint32_t) n_ctx_train : 4096;
    cp.n_batch = p->n_batch;
    cp.n_ubatch = p->n_ubatch;
    cp.n_seq_max = p->n_parallel;
    cp.n_outputs_max = p->all_outputs || p->embeddings ? 0 : p->n_parallel;
    cp.pooling_type = p->pooling;
    cp.attention_type = p->attention;
    if (p->n_threads > 0) cp.n_threads = p->n_threads;
    cp.n_threads_batch = p->n_threads_batch > 0 ? p->n_threads_batch : cp.n_threads;
    cp.flash_attn_type = p->flash_attn;
    cp.type_k = p->type_k;
    cp.type_v = p->type_v;
    cp.swa_full = p->swa_full;
    cp.embeddings = p->embeddings;
    cp.rope_freq_base = p->rope_freq_base;
    cp.rope_freq_scale = p->rope_scale > 0 ? 1.0f / p->rope_scale : p->rope_freq_scale;
    cp.rope_scaling_type = p->rope_scaling;
    cp.yarn_orig_ctx = p->yarn_orig_ctx;
    cp.yarn_ext_factor = p->yarn_ext_factor;
    cp.yarn_attn_factor = p->yarn_attn_factor;
    cp.yarn_beta_slow = p->yarn_beta_slow;
    cp.yarn_beta_fast = p->yarn_beta_fast;
    cp.offload_kqv = !p->no_kv_offload;
    cp.op_offload = !p->no_op_offload;
    cp.kv_unified = p->kv_unified;
    cp.abort_callback = on_abort;
    cp.cb_eval = p->cb_eval;
    cp.cb_eval_user_data = p->cb_eval_data;
    cp.no_perf = false;
    return cp;
}

int session_context(struct session *s, const struct params *p) {
    s->ctx = llama_init_from_model(s->model, session_context_options(p, llama_model_n_ctx_train(s->model)));
    if (!s->ctx) return console_library_error();
    if (s->n_lora) {
        float scales[8];
        for (int i = 0; i < s->n_lora; i++) scales[i] = 1.0f;
        const char *at = p->lora;
        for (int i = 0; i < s->n_lora; i++) {
            const char *comma = strchr(at, ','), *end = comma ? comma : at + strlen(at), *colon = end;
            while (colon > at && *colon != ':') colon--;
            if (*colon == ':') scales[i] = strtof(colon + 1, NULL);
            at = comma ? comma + 1 : end;
        }
        if (llama_set_adapters_lora(s->ctx, s->lora, (size_t) s->n_lora, scales) != 0) return console_library_error();
    }
    const int status = control_vectors_apply(s, p);
    return status ? status : threads_attach(s, p);
}

void session_close(struct session *s) {
    if (s->ctx) llama_free(s->ctx);
    for (int i = 0; i < 2; i++) ggml_threadpool_free(s->pool[i]);
    for (int i = 0; i < s->n_lora; i++) llama_adapter_lora_free(s->lora[i]);
    if (s->model) llama_model_free(s->model);
    *s = (struct session){0};
}

// ---- text and tokens -----------------------------------------------------------------------------------------------

#define TEXT_MAX (1 << 30)  // far more than any context holds; a device such as /dev/zero never ends

int text_read(struct text *t, const char *path) {
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!f) return console_error("cannot open %s: %s", path, strerror(errno));
    size_t room = 0;
    *t = (struct text){0};
    for (;;) {
        if (t->size == room) {
            if (room >= TEXT_MAX) {
                if (f != stdin) fclose(f);
                free(t->data);
                *t = (struct text){0};
                return console_error("%s holds more than the %d MiB that a text may have", path, TEXT_MAX >> 20);
            }
            room = room ? 2 * room : 1 << 16;
            char *grown = realloc(t->data, room);
            if (!grown) break;
            t->data = grown;
        }
        const size_t got = fread(t->data + t->size, 1, room - t->size, f);
        if (got == 0) break;
        t->size += got;
    }
    const bool failed = ferror(f) || !feof(f);
    const int why = errno;
    if (f != stdin) fclose(f);
    if (!failed) return 0;
    free(t->data);
    *t = (struct text){0};
    return console_error("cannot read %s: %s", path, strerror(why));
}

int text_prompt(struct text *t, const struct params *p) {
    int status = 0;
    if (p->prompt && p->file) {
        console_error("both -p and -f were given; one text is enough");
        return 2;
    }
    if (p->prompt) {
        t->size = strlen(p->prompt);
        t->data = malloc(t->size + 1);
        if (!t->data) return console_error("no memory for a prompt of %zu bytes", t->size);
        memcpy(t->data, p->prompt, t->size + 1);
    } else if (p->file || !isatty(STDIN_FILENO)) {
        status = text_read(t, p->file ? p->file : "-");
    } else {
        console_error("no prompt: pass -p TEXT or -f FILE, or write to standard input");
        return 2;
    }
    if (!status && !p->no_escape && p->file) t->size = text_unescape(t->data, t->size);
    return status;
}

int tokens_make(struct tokens *t, const struct llama_vocab *vocab, const char *text, size_t size, bool add_special,
                bool parse_special) {
    *t = (struct tokens){0};
    if (size > INT32_MAX) return console_error("the text has %zu bytes; at most %d are possible", size, INT32_MAX);
    const int32_t need = llama_tokenize(vocab, text, (int32_t) size, NULL, 0, add_special, parse_special);
    if (need == INT32_MIN) return console_library_error();
    const int32_t room = need < 0 ? -need : need;
    t->data = malloc(sizeof(llama_token) * (size_t) (room + 1));
    if (!t->data) return console_error("no memory for %d tokens", room);
    t->n = llama_tokenize(vocab, text, (int32_t) size, t->data, room, add_special, parse_special);
    if (t->n >= 0) return 0;
    free(t->data);
    *t = (struct tokens){0};
    return console_library_error();
}

int tokens_append(struct tokens *t, const struct tokens *more) {
    if (more->n == 0) return 0;
    llama_token *grown = realloc(t->data, sizeof(llama_token) * (size_t) (t->n + more->n));
    if (!grown) return console_error("no memory for %d tokens", t->n + more->n);
    memcpy(grown + t->n, more->data, sizeof(llama_token) * (size_t) more->n);
    t->data = grown;
    t->n += more->n;
    return 0;
}

int session_feed(struct session *s, llama_token *tokens, int32_t n, bool show_progress) {
    llama_set_abort_callback(s->ctx, n > 1 ? on_abort : NULL, NULL);  // one token is soon done, and then known to be there
    const int32_t step = (int32_t) llama_n_batch(s->ctx);
    for (int32_t i = 0; i < n; i += step) {
        const int32_t now = n - i < step ? n - i : step;
        const int32_t status = llama_decode(s->ctx, llama_batch_get_one(tokens + i, now));
        if (status == 1) return console_error("the context of %u tokens is full; a larger one: -c N", llama_n_ctx(s->ctx));
        if (status != 0) return console_interrupted() ? 130 : console_library_error();
        if (show_progress) console_progress("reading the prompt", (float) (i + now) / (float) n);
        if (console_interrupted()) return 130;
    }
    if (show_progress) console_progress_end();
    return 0;
}

int session_writes(const struct session *s) {
    if (llama_model_has_decoder(s->model)) return 0;
    return console_error("this is a model of embeddings, which writes no text; lamina embed uses it");
}

int session_forget(struct session *s, int32_t n_keep, int32_t *n_past) {
    llama_memory_t mem = llama_get_memory(s->ctx);
    if (n_keep == 0) n_keep = llama_vocab_get_add_bos(s->vocab);  // models that begin with it are lost without
    const int32_t gone = (*n_past - n_keep) / 2;
    if (gone < 1) return console_error("--keep %d leaves nothing of the context to forget", n_keep);
    if (!llama_memory_can_shift(mem)) return console_error("positions of this model cannot be moved: no --context-shift");
    if (!llama_memory_seq_rm(mem, 0, n_keep, n_keep + gone)) return console_library_error();
    llama_memory_seq_add(mem, 0, n_keep + gone, -1, -gone);
    *n_past -= gone;
    return 0;
}

static int utf8_expected(unsigned char lead) {
    return lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf8 ? 4 : 1;
}

void piece_flush(struct piece_writer *w) {
    fwrite(w->held, 1, (size_t) w->n_held, stdout);
    w->n_held = 0;
    fflush(stdout);
}

void piece_write(struct piece_writer *w, const struct llama_vocab *vocab, llama_token token, bool special) {
    char small[256], *piece = small;
    int32_t n = llama_token_to_piece(vocab, token, small, sizeof(small), 0, special);
    if (n < 0) {
        piece = malloc((size_t) -n);
        if (!piece) return;
        n = llama_token_to_piece(vocab, token, piece, -n, 0, special);
    }
    for (int32_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char) piece[i];
        if (w->n_held && (c & 0xc0) != 0x80) piece_flush(w);
        w->held[w->n_held++] = (char) c;
        if (w->n_held >= utf8_expected((unsigned char) w->held[0])) {
            fwrite(w->held, 1, (size_t) w->n_held, stdout);
            w->n_held = 0;
        }
    }
    if (piece != small) free(piece);
    fflush(stdout);
}

static void keep_half(struct stop_text *s) {
    memmove(s->tail, s->tail + s->n / 2, s->n - s->n / 2);
    s->n -= s->n / 2;
}

bool stop_reached(struct stop_text *s, const struct llama_vocab *vocab, llama_token token) {
    char piece[512];
    const int32_t n = s->texts->n ? llama_token_to_piece(vocab, token, piece, sizeof(piece), 0, true) : 0;
    for (int32_t i = 0; i < n; i++) {
        if (s->n == sizeof(s->tail)) keep_half(s);
        s->tail[s->n++] = piece[i];
        for (int k = 0; k < s->texts->n; k++) {
            const size_t len = strlen(s->texts->v[k]);
            if (len && len <= s->n && memcmp(s->tail + s->n - len, s->texts->v[k], len) == 0) return true;
        }
    }
    return false;
}
