// What programs print, parse and keep: names, keys of the model as text, the lines that show times, progress while loading.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama.h"

#define CHECK(x)                                                                                                            \
    do {                                                                                                                    \
        if (!(x)) {                                                                                                         \
            fprintf(stderr, "line %d: %s\n", __LINE__, #x);                                                                 \
            exit(1);                                                                                                        \
        }                                                                                                                   \
    } while (0)

static char lines[8192];

static void keep(enum ggml_log_level level, const char *text, void *ud) {
    (void) ud;
    if (level == GGML_LOG_LEVEL_INFO && strlen(lines) + strlen(text) < sizeof lines) strcat(lines, text);
}

struct progress {
    int n, stop_at;
    float last;
};

static bool on_progress(float p, void *ud) {
    struct progress *s = ud;
    CHECK(p >= s->last && p <= 1);
    s->last = p;
    return ++s->n != s->stop_at;
}

static void names(void) {
    for (int m = LLAMA_LOAD_MODE_AUTO; m <= LLAMA_LOAD_MODE_DIRECT_IO; m++)
        CHECK(llama_load_mode_from_str(llama_load_mode_name((enum llama_load_mode) m)) == (enum llama_load_mode) m);
    CHECK(!strcmp(llama_load_mode_name(LLAMA_LOAD_MODE_MMAP_MLOCK), "mmap+mlock"));
    CHECK(!strcmp(llama_ftype_name(LLAMA_FTYPE_MOSTLY_Q4_K_M), "Q4_K - Medium"));
    CHECK(!strcmp(llama_ftype_name(LLAMA_FTYPE_MOSTLY_Q8_0 | LLAMA_FTYPE_GUESSED), "(guessed) Q8_0"));
    const char *info = llama_print_system_info();
    CHECK(!strncmp(info, "CPU : ", 6) && !strcmp(info + strlen(info) - 2, "| "));
    CHECK((strstr(info, "| AVX2 = 1 |") != NULL) == (ggml_cpu_has_avx2() != 0));
    CHECK((strstr(info, "| BMI2 = 1 |") != NULL) == (ggml_cpu_has_bmi2() != 0));
    const char *formats[100];
    const int n = llama_chat_builtin_templates(formats, 100);
    const struct llama_chat_message hi = {"user", "Hi"};
    char text[400];
    CHECK(n > 50 && n <= 100);
    for (int i = 0; i < n; i++) CHECK(llama_chat_apply_template(formats[i], &hi, 1, true, text, sizeof text) > 0);
}

static void keys(const struct llama_model *m) {
    char key[128], value[128];
    const int n = llama_model_meta_count(m);
    CHECK(n > 10);
    for (int i = 0; i < n; i++) {
        const int k = llama_model_meta_key_by_index(m, i, key, sizeof key);
        CHECK(k > 0 && k < (int) sizeof key);
        const int v = llama_model_meta_val_str_by_index(m, i, value, sizeof value);
        char *whole = malloc((size_t) v + 1), *same = malloc((size_t) v + 1);
        CHECK(v >= 0 && whole && same);
        CHECK(llama_model_meta_val_str_by_index(m, i, whole, (size_t) v + 1) == v && (int) strlen(whole) == v);
        CHECK(llama_model_meta_val_str(m, key, same, (size_t) v + 1) == v && !strcmp(whole, same));
        free(whole);
        free(same);
    }
    CHECK(llama_model_meta_key_by_index(m, n, key, sizeof key) == -1);
    // lists are not text: a program that prints all keys doesn't print its vocabulary
    CHECK(llama_model_meta_val_str(m, "tokenizer.ggml.tokens", value, sizeof value) == -1 && !value[0]);
}

static void times(struct llama_model *m) {
    struct llama_context_params cp = llama_context_default_params();
    cp.no_perf = false;
    struct llama_context *c = llama_init_from_model(m, cp);
    struct llama_sampler_chain_params sp = llama_sampler_chain_default_params();
    sp.no_perf = false;
    struct llama_sampler *chain = llama_sampler_chain_init(sp);
    llama_sampler_chain_add(chain, llama_sampler_init_greedy());
    llama_token tok[6];
    const int n = llama_tokenize(llama_model_get_vocab(m), "one two three", 13, tok, 6, true, false);
    CHECK(n > 2 && llama_decode(c, llama_batch_get_one(tok, n)) == 0);
    for (int i = 0; i < 3; i++) {
        llama_token id = llama_sampler_sample(chain, c, -1);
        CHECK(llama_decode(c, llama_batch_get_one(&id, 1)) == 0);
    }
    llama_token_data d[2] = {{1, 0.5f, 0}, {2, 1.5f, 0}};
    llama_token_data_array a = {d, 2, -1, false};
    llama_sampler_apply(chain, &a);  // by hand, as many programs do
    llama_sampler_accept(chain, a.data[a.selected].id);
    CHECK(a.selected == 1 && llama_perf_sampler(chain).n_sample == 4);
    lines[0] = 0;
    llama_perf_context_print(c);
    llama_perf_sampler_print(chain);
    double ms, per, rate;
    int count;
    const char *at = strstr(lines, "prompt eval time =");
    CHECK(at && sscanf(at, "prompt eval time = %lf ms / %d tokens ( %lf ms per token, %lf tokens per second)", &ms, &count,
                       &per, &rate) == 4);
    CHECK(count == n && ms > 0 && rate > 0);
    at = strstr(lines, "        eval time =");
    CHECK(at && sscanf(at, " eval time = %lf ms / %d runs ( %lf ms per token, %lf tokens per second)", &ms, &count, &per,
                       &rate) == 4);
    CHECK(count == 3 && ms > 0);
    at = strstr(lines, "total time =");
    CHECK(at && sscanf(at, "total time = %lf ms / %d tokens", &ms, &count) == 2 && count == n + 3);
    at = strstr(lines, "samplers time =");
    CHECK(at && sscanf(at, "samplers time = %lf ms / %d runs", &ms, &count) == 2 && count == 4);
    llama_perf_context_reset(c);
    CHECK(llama_perf_context(c).t_eval_ms == 0);
    llama_sampler_free(chain);
    llama_free(c);
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    llama_log_set(keep, NULL);
    names();
    struct llama_model_params mp = llama_model_default_params();
    struct progress seen = {0, 0, 0}, stop = {0, 2, 0};
    mp.progress_callback = on_progress;
    mp.progress_callback_user_data = &stop;
    CHECK(!llama_model_load_from_file(argv[1], mp) && stop.n == 2);
    mp.progress_callback_user_data = &seen;
    struct llama_model *m = llama_model_load_from_file(argv[1], mp);
    CHECK(m && seen.n > 2 && seen.last == 1);
    keys(m);
    times(m);
    llama_model_free(m);
    return 0;
}
