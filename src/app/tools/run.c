// lamina run: continues a prompt and streams the text.
#include "cli/console.h"
#include "cli/session.h"
#include "tools/tool.h"

#include <stdlib.h>
#include <unistd.h>

struct timing {
    int64_t load_us, prompt_us, gen_us;
    int n_prompt, n_gen;
};

static double per_second(int n, int64_t us) { return us > 0 ? (double) n * 1e6 / (double) us : 0.0; }

static void report(const struct timing *t, const struct llama_sampler *chain) {
    const uint32_t seed = llama_sampler_get_seed(chain);  // the one in use, also where a new one was asked for
    char drawn[32] = "";
    if (seed != LLAMA_DEFAULT_SEED) snprintf(drawn, sizeof(drawn), " | seed %u", seed);
    console_note("\nload %.0f ms | prompt %d tokens, %.1f tokens/s | generated %d tokens, %.1f tokens/s%s",
                 (double) t->load_us / 1e3, t->n_prompt, per_second(t->n_prompt, t->prompt_us), t->n_gen,
                 per_second(t->n_gen, t->gen_us), drawn);
}

// ---- --prompt-cache: what an earlier run read, in a file that lamina state writes and reads too ---------------------------------

// Takes over as much of the saved state as the prompt begins with. *n_have: tokens that need not be read; all of them only if the state
// brings its logits. 0, or 1 after a sentence.
static int cache_read(struct session *s, const struct params *p, const struct tokens *prompt, int *n_have) {
    *n_have = 0;
    if (!p->prompt_cache || access(p->prompt_cache, F_OK) != 0) return 0;  // the first time
    llama_memory_t mem = llama_get_memory(s->ctx);
    const size_t room = llama_n_ctx(s->ctx);
    struct tokens saved = {.data = malloc(sizeof(llama_token) * room)};
    size_t n = 0;
    if (!saved.data) return console_error("no memory for %zu tokens", room);
    if (!llama_state_load_file(s->ctx, p->prompt_cache, saved.data, room, &n)) {
        free(saved.data);
        return console_library_error();
    }
    saved.n = (int32_t) n;
    int same = 0;
    while (same < saved.n && same < prompt->n && saved.data[same] == prompt->data[same]) same++;
    free(saved.data);
    const bool whole = same == saved.n && same == prompt->n;
    if (same == prompt->n && same > 0) same--;  // the last one is read again, for its logits
    if (llama_memory_seq_rm(mem, 0, same, -1)) {
        *n_have = same;
    } else if (whole && llama_get_logits(s->ctx)) {  // a recurrent state can't be taken back, but is right as it is
        *n_have = prompt->n;
    } else if (saved.n <= same) {
        *n_have = saved.n;
    } else {
        llama_memory_clear(mem, true);
    }
    return 0;
}

static int cache_write(struct session *s, const struct params *p, const struct tokens *t) {
    if (!p->prompt_cache || p->prompt_cache_ro) return 0;
    return llama_state_save_file(s->ctx, p->prompt_cache, t->data, (size_t) t->n) ? 0 : console_library_error();
}

// Generates until the model ends, writes a reverse prompt, n_predict tokens are there or the context is full. Exit status.
// What was read is in *tokens afterwards, or nothing if some of it was forgotten.
static int generate(struct session *s, struct llama_sampler *chain, const struct params *p, struct tokens *tokens,
                    struct timing *t) {
    int n_used = tokens->n;
    struct piece_writer out = {0};
    struct stop_text stop = {.texts = &p->reverse_prompt};
    const int n_ctx = (int) llama_n_ctx(s->ctx), n_keep = p->n_keep < 0 || p->n_keep > n_used ? n_used : p->n_keep;
    const bool limited = p->n_predict >= 0;
    int status = 0;
    const int64_t start = llama_time_us();
    while (!limited || t->n_gen < p->n_predict) {
        llama_token token = llama_sampler_sample(chain, s->ctx, -1);
        if (token == LLAMA_TOKEN_NULL) {
            status = console_library_error();
            break;
        }
        t->n_gen++;
        if (llama_vocab_is_eog(s->vocab, token)) {
            if (p->special) piece_write(&out, s->vocab, token, true);
            break;
        }
        piece_write(&out, s->vocab, token, p->special);
        if (stop_reached(&stop, s->vocab, token) || (limited && t->n_gen == p->n_predict)) break;
        if (n_used >= n_ctx && p->context_shift) {
            tokens->n = 0;
            if ((status = session_forget(s, n_keep, &n_used)) != 0) break;
        }
        if (n_used >= n_ctx) {
            piece_flush(&out);
            console_note("\nstopped: the context of %u tokens is full; a larger one: -c N", llama_n_ctx(s->ctx));
            break;
        }
        status = session_feed(s, &token, 1, false);
        if (status) break;
        n_used++;
        if (tokens->n && (status = tokens_append(tokens, &(struct tokens){&token, 1})) != 0) break;
    }
    piece_flush(&out);
    t->gen_us = llama_time_us() - start;
    return status;
}

static int with_prompt(struct session *s, const struct params *p, const struct text *prompt, struct timing *t) {
    struct tokens tokens = {0};
    struct llama_sampler *chain = NULL;
    int status = tokens_make(&tokens, s->vocab, prompt->data, prompt->size, true, true);
    if (status) return status;
    const uint32_t n_ctx = llama_n_ctx(s->ctx);
    if (tokens.n == 0) {
        console_error("the prompt has no tokens, and this model adds none of its own");
        status = 2;
    } else if ((uint32_t) tokens.n > n_ctx) {
        console_error("the prompt has %d tokens, more than the context of %u; a larger one: -c N", tokens.n, n_ctx);
        status = 2;
    } else if (!(chain = session_sampler(s, p))) {
        status = 2;
    }
    if (!status) {
        session_prompt_seen(chain, tokens.data, tokens.n);
        const int64_t start = llama_time_us();
        int n_have = 0;
        status = cache_read(s, p, &tokens, &n_have);
        if (!status && p->display_prompt) {
            fwrite(prompt->data, 1, prompt->size, stdout);
            fflush(stdout);
        }
        if (!status && n_have < tokens.n) status = session_feed(s, tokens.data + n_have, tokens.n - n_have, true);
        t->n_prompt = tokens.n - n_have;
        t->prompt_us = llama_time_us() - start;
        if (!status && n_have < tokens.n) status = cache_write(s, p, &tokens);
        if (!status) status = generate(s, chain, p, &tokens, t);
        fputc('\n', stdout);
        if (!status && p->prompt_cache_all) {
            if (tokens.n)
                status = cache_write(s, p, &tokens);
            else
                console_note("%s keeps the prompt alone: the context was shifted", p->prompt_cache);
        }
        if (status == 0 || status == 130) report(t, chain);
    }
    if (chain) llama_sampler_free(chain);
    free(tokens.data);
    return status;
}

static int run(struct params *p) {
    if (p->conversation && !p->no_conversation) return tool_chat.run(p);
    struct text prompt = {0};
    struct session s = {0};
    struct timing t = {0};
    const int64_t start = llama_time_us();
    int status = text_prompt(&prompt, p);
    if (!status) status = session_load(&s, p, false);
    if (!status) status = session_writes(&s);
    if (!status) status = session_context(&s, p);
    t.load_us = llama_time_us() - start;
    if (!status) status = with_prompt(&s, p, &prompt, &t);
    session_close(&s);
    free(prompt.data);
    return status;
}

const struct tool tool_run = {
    .name = "run",
    .alias = "llama-completion",
    .summary = "Continues a prompt and writes the text as it comes",
    .args = "",
    .groups = G_MODEL | G_LOAD | G_CTX | G_PROMPT | G_GEN | G_COMPLETE | G_CHAT | G_SAMPLE,
    .run = run,
};
