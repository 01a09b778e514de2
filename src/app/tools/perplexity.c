// lamina perplexity: how well a model predicts a text, in windows of the context's length, and how far a model is from the saved
// logits of another (Kullback-Leibler divergence).
//
// In each window the first half is context only; the tokens of the second half are scored. The file of saved log-probabilities:
// "LAMLOGP1", then n_vocab, n_ctx, n_chunk as u32, the tokens as i32, then n_vocab half floats per scored token.
#include "base/file.h"
#include "cli/console.h"
#include "cli/session.h"
#include "ggml/ext.h"
#include "tools/tool.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC "LAMLOGP1"

struct header {
    char magic[8];
    uint32_t n_vocab, n_ctx, n_chunk;
};

struct score {
    double nll, nll2;            // sum of -log p(token) and of its square
    double kl, kl2, kl_max;      // of KL(base || model)
    double same_top;             // how often both put the same token first
    double base_nll, base_nll2;  // as nll, of the base
    double dp, dp2;              // p(token) of the model less that of the base
    int64_t n;
};

struct eval {
    struct session s;
    const struct params *p;
    struct tokens tokens;
    int32_t n_vocab, n_ctx, n_chunk;
    FILE *save, *base;
    ggml_fp16_t *rows;  // [n_ctx / 2][n_vocab]: saved or to be saved
    float *kls;         // [scored tokens] KL of each, where there is a base
};

struct job {
    struct eval *e;
    const float *logits;      // of the scored positions of a chunk
    const llama_token *next;  // the token that follows each
    int n;
    struct score *each;  // one per position
};

static double log_sum(const float *x, int n, double *max_out, int *argmax) {
    int best = 0;
    for (int i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    double sum = 0;
    for (int i = 0; i < n; i++) sum += exp((double) x[i] - (double) x[best]);
    *max_out = (double) x[best];
    *argmax = best;
    return log(sum) + (double) x[best];
}

static void score_one(const struct job *j, int i) {
    const struct eval *e = j->e;
    const float *x = j->logits + (size_t) i * (size_t) e->n_vocab;
    ggml_fp16_t *row = e->rows ? e->rows + (size_t) i * (size_t) e->n_vocab : NULL;
    struct score *r = &j->each[i];
    double max;
    int top, base_top = 0;
    const double z = log_sum(x, e->n_vocab, &max, &top);
    *r = (struct score){.n = 1, .nll = z - (double) x[j->next[i]]};
    r->nll2 = r->nll * r->nll;
    if (e->base) {
        float best = -INFINITY;
        for (int v = 0; v < e->n_vocab; v++) {
            const float q = ggml_fp16_to_fp32(row[v]);
            if (q > best) best = q, base_top = v;
            if (q > -40.0f) r->kl += exp((double) q) * ((double) q - ((double) x[v] - z));
        }
        r->kl2 = r->kl * r->kl;
        r->kl_max = r->kl;
        r->same_top = base_top == top;
        r->base_nll = -(double) ggml_fp16_to_fp32(row[j->next[i]]);
        r->base_nll2 = r->base_nll * r->base_nll;
        r->dp = exp(-r->nll) - exp(-r->base_nll);
        r->dp2 = r->dp * r->dp;
    }
    if (e->save)
        for (int v = 0; v < e->n_vocab; v++) row[v] = ggml_fp32_to_fp16((float) ((double) x[v] - z));
}

static void score_part(int ith, int nth, void *data) {
    const struct job *j = data;
    for (int i = ith; i < j->n; i += nth) score_one(j, i);
}

static int move_rows(struct eval *e, int n) {
    const size_t size = (size_t) n * (size_t) e->n_vocab;
    if (e->base && fread(e->rows, sizeof(*e->rows), size, e->base) != size)
        return console_error("%s ends early", e->p->logits_base);
    return 0;
}

static int eval_chunk(struct eval *e, int chunk, struct score *total, struct score *each) {
    const llama_token *tokens = e->tokens.data + (size_t) chunk * (size_t) e->n_ctx;
    const int first = e->n_ctx / 2, n = e->n_ctx - 1 - first, step = (int) llama_n_batch(e->s.ctx);
    llama_memory_clear(llama_get_memory(e->s.ctx), false);
    int status = move_rows(e, n), done = 0;
    for (int i = 0; i < e->n_ctx && !status; i += step) {
        struct llama_batch b = llama_batch_init(step, 0, 1);
        b.n_tokens = e->n_ctx - i < step ? e->n_ctx - i : step;
        int n_out = 0;
        for (int k = 0; k < b.n_tokens; k++) {
            const int pos = i + k;
            const bool bos = pos == 0 && llama_vocab_get_add_bos(e->s.vocab);
            b.token[k] = bos ? llama_vocab_bos(e->s.vocab) : tokens[pos];
            b.pos[k] = pos;
            b.n_seq_id[k] = 1;
            b.seq_id[k][0] = 0;
            b.logits[k] = pos >= first && pos < e->n_ctx - 1;
            n_out += b.logits[k];
        }
        if (llama_decode(e->s.ctx, b) != 0) status = console_interrupted() ? 130 : console_library_error();
        if (!status && n_out && !llama_get_logits(e->s.ctx)) status = console_error("this model gives no logits to score");
        if (!status && n_out) {
            struct job j = {e, llama_get_logits(e->s.ctx), tokens + first + done + 1, n_out, each + done};
            struct eval part = *e;
            if (part.rows) part.rows += (size_t) done * (size_t) e->n_vocab;
            j.e = &part;
            ggml_parallel(llama_n_threads_batch(e->s.ctx), score_part, &j);
            done += n_out;
        }
        llama_batch_free(b);
        if (console_interrupted()) status = 130;
    }
    for (int i = 0; i < done && !status; i++) {
        total->nll += each[i].nll;
        total->nll2 += each[i].nll2;
        total->kl += each[i].kl;
        total->kl2 += each[i].kl2;
        total->kl_max = fmax(total->kl_max, each[i].kl_max);
        total->same_top += each[i].same_top;
        total->base_nll += each[i].base_nll;
        total->base_nll2 += each[i].base_nll2;
        total->dp += each[i].dp;
        total->dp2 += each[i].dp2;
        if (e->kls) e->kls[total->n] = (float) each[i].kl;
        total->n++;
    }
    const size_t size = (size_t) n * (size_t) e->n_vocab;
    if (!status && e->save && fwrite(e->rows, sizeof(*e->rows), size, e->save) != size)
        return console_error("writing %s failed: %s", e->p->logits_file, strerror(errno));
    return status;
}

static double spread(double sum, double sum2, int64_t n) {
    const double mean = sum / (double) n;
    return n > 1 ? sqrt(fmax(sum2 / (double) n - mean * mean, 0) / (double) (n - 1)) : 0;
}

static int by_value(const void *a, const void *b) {
    return (*(const float *) a > *(const float *) b) - (*(const float *) a < *(const float *) b);
}

static void report_base(const struct eval *e, const struct score *t, double ppl, double err) {
    static const struct {
        double part;
        const char *name;
    } parts[] = {{0.999, "99.9%  "}, {0.99, "99.0%  "}, {0.95, "95.0%  "}, {0.9, "90.0%  "},
                 {0.5, "Median "},   {0.1, "10.0%  "},  {0.05, " 5.0%  "}, {0.01, " 1.0%  "}};
    const double n = (double) t->n, same = t->same_top / n;
    const double ratio = exp((t->nll - t->base_nll) / n);
    qsort(e->kls, (size_t) t->n, sizeof(*e->kls), by_value);
    printf("====== Perplexity statistics ======\n"
           "Mean PPL(Q)                   : %10.6f \u00b1 %10.6f\n"
           "Mean PPL(base)                : %10.6f \u00b1 %10.6f\n"
           "Mean ln(PPL(Q)/PPL(base))     : %10.6f\n"
           "Mean PPL(Q)/PPL(base)         : %10.6f\n"
           "Mean PPL(Q)-PPL(base)         : %10.6f\n\n",
           ppl, err, exp(t->base_nll / n), exp(t->base_nll / n) * spread(t->base_nll, t->base_nll2, t->n), log(ratio), ratio,
           ppl - exp(t->base_nll / n));
    printf("====== KL divergence statistics ======\n"
           "Mean    KLD: %10.6f \u00b1 %10.6f\n"
           "Maximum KLD: %10.6f\n",
           t->kl / n, spread(t->kl, t->kl2, t->n), t->kl_max);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        printf("%s KLD: %10.6f\n", parts[i].name, (double) e->kls[(size_t) (parts[i].part * (n - 1) + 0.5)]);
    printf("Minimum KLD: %10.6f\n\n"
           "====== Token probability statistics ======\n"
           "Mean    \u0394p: %6.3f \u00b1 %5.3f %%\n"
           "RMS \u0394p    : %6.3f %%\n"
           "Same top p: %6.3f \u00b1 %5.3f %%\n\n",
           (double) e->kls[0], 100 * t->dp / n, 100 * spread(t->dp, t->dp2, t->n), 100 * sqrt(t->dp2 / n), 100 * same,
           100 * sqrt(same * (1 - same) / (n > 1 ? n - 1 : 1)));
}

static void report(const struct eval *e, const struct score *t) {
    const double mean = t->nll / (double) t->n, ppl = exp(mean), err = ppl * spread(t->nll, t->nll2, t->n);
    if (e->p->json) {
        printf("{\"perplexity\": %.6f, \"uncertainty\": %.6f, \"tokens\": %lld, \"chunks\": %d", ppl, err, (long long) t->n,
               e->n_chunk);
        if (e->base)
            printf(", \"kl_mean\": %.8f, \"kl_uncertainty\": %.8f, \"kl_max\": %.8f, \"same_top\": %.6f",
                   t->kl / (double) t->n, spread(t->kl, t->kl2, t->n), t->kl_max, t->same_top / (double) t->n);
        fputs("}\n", stdout);
        return;
    }
    // scripts look for these lines as they are
    printf("perplexity over %lld tokens in %d chunks of %d\n", (long long) t->n, e->n_chunk, e->n_ctx);
    if (e->base) report_base(e, t, ppl, err);
    printf("Final estimate: PPL = %.4f +/- %.5f\n", ppl, err);
}

static int eval_all(struct eval *e) {
    const size_t half = (size_t) (e->n_ctx - 1 - e->n_ctx / 2);
    struct score total = {0}, *each = calloc(half, sizeof(*each));
    if (e->save || e->base) e->rows = malloc(half * (size_t) e->n_vocab * sizeof(*e->rows));
    if (e->base) e->kls = malloc(half * (size_t) e->n_chunk * sizeof(*e->kls));
    int status = each && (e->rows || !(e->save || e->base)) && (e->kls || !e->base)
                     ? 0
                     : console_error("no memory for %zu rows of logits", half);
    for (int i = 0; i < e->n_chunk && !status; i++) {
        status = eval_chunk(e, i, &total, each);
        if (!status) console_progress("scoring", (float) (i + 1) / (float) e->n_chunk);
    }
    console_progress_end();
    if (!status) report(e, &total);
    free(each);
    free(e->kls);
    return status;
}

// Takes the tokens and the window from the base file, so that both models see the same.
static int open_base(struct eval *e) {
    struct header h;
    e->base =
        file_replaceable(e->p->logits_base) == 0 ? fopen(e->p->logits_base, "rb") : NULL;  // a pipe would be waited for
    if (!e->base) return console_error("cannot open %s: %s", e->p->logits_base, strerror(errno));
    if (fread(&h, sizeof(h), 1, e->base) != 1 || memcmp(h.magic, MAGIC, 8) != 0 || h.n_ctx < 4 || h.n_ctx > 1u << 24 ||
        h.n_chunk > 1u << 24)
        return console_error("%s holds no saved logits of `lamina perplexity --save-all-logits`", e->p->logits_base);
    if ((int32_t) h.n_vocab != llama_vocab_n_tokens(e->s.vocab))
        return console_error("%s was made with %u tokens in the vocabulary, this model has %d", e->p->logits_base, h.n_vocab,
                             llama_vocab_n_tokens(e->s.vocab));
    const size_t n = (size_t) h.n_ctx * h.n_chunk;
    e->tokens.data = malloc(n * sizeof(llama_token));
    if (!e->tokens.data || fread(e->tokens.data, sizeof(llama_token), n, e->base) != n)
        return console_error("%s ends early", e->p->logits_base);
    for (size_t i = 0; i < n; i++)
        if (e->tokens.data[i] < 0 || e->tokens.data[i] >= (int32_t) h.n_vocab)
            return console_error("%s holds the token %d, out of range", e->p->logits_base, e->tokens.data[i]);
    e->n_ctx = (int32_t) h.n_ctx;
    e->n_chunk = (int32_t) h.n_chunk;
    return 0;
}

static int open_save(struct eval *e, const char *tmp) {
    const struct header h = {MAGIC, (uint32_t) e->n_vocab, (uint32_t) e->n_ctx, (uint32_t) e->n_chunk};
    e->save = fopen(tmp, "wb");
    if (!e->save) return console_error("cannot write %s: %s", tmp, strerror(errno));
    const size_t n = (size_t) e->n_ctx * (size_t) e->n_chunk;
    if (fwrite(&h, sizeof(h), 1, e->save) != 1 || fwrite(e->tokens.data, sizeof(llama_token), n, e->save) != n)
        return console_error("writing %s failed: %s", tmp, strerror(errno));
    return 0;
}

static int take_text(struct eval *e) {
    struct text text = {0};
    int status = text_prompt(&text, e->p);
    if (!status) status = tokens_make(&e->tokens, e->s.vocab, text.data, text.size, true, false);
    free(text.data);
    if (status) return status;
    e->n_ctx = e->p->n_ctx ? (int32_t) e->p->n_ctx : 512;
    e->n_chunk = e->tokens.n / e->n_ctx;
    if (e->p->n_chunks > 0 && e->n_chunk > e->p->n_chunks) e->n_chunk = e->p->n_chunks;
    if (e->n_ctx < 4 || e->n_chunk < 1)
        return console_error("the text has %d tokens; one window needs %d (at least 4; a smaller one: -c N)", e->tokens.n,
                             e->n_ctx);
    return 0;
}

static int run(struct params *p) {
    p->no_escape = true;  // texts to be measured stay as they are
    struct eval e = {.p = p};
    char tmp[4200] = "";
    // One option names the file in the field: it is written, unless it is to be compared with.
    if (p->logits_base && !p->kl_divergence && !p->logits_file && access(p->logits_base, F_OK) != 0) {
        p->logits_file = p->logits_base;
        p->logits_base = NULL;
    }
    int status = 0;
    if (p->kl_divergence && !p->logits_base) {
        console_error("--kl-divergence: --kl-divergence-base should name the file to compare with");
        status = 2;
    }
    if (!status) status = session_load(&e.s, p, false);
    if (!status) status = session_writes(&e.s);
    if (!status) status = p->logits_base ? open_base(&e) : take_text(&e);
    if (!status) {
        e.n_vocab = llama_vocab_n_tokens(e.s.vocab);
        struct params with = *p;
        with.n_ctx = (uint32_t) e.n_ctx;
        with.all_outputs = true;
        status = session_context(&e.s, &with);
    }
    if (!status && p->logits_file) {
        snprintf(tmp, sizeof(tmp), "%s.part", p->logits_file);
        status = open_save(&e, tmp);
    }
    if (!status) status = eval_all(&e);
    if (e.save && fclose(e.save) != 0 && !status) status = console_error("writing %s failed: %s", tmp, strerror(errno));
    if (e.save && !status && file_rename(tmp, p->logits_file) != 0)
        status = console_error("cannot rename %s: %s", tmp, strerror(errno));
    if (tmp[0] && status) unlink(tmp);
    if (e.base) fclose(e.base);
    free(e.rows);
    free(e.tokens.data);
    session_close(&e.s);
    return status;
}

const struct tool tool_perplexity = {
    .name = "perplexity",
    .alias = "llama-perplexity",
    .summary = "Measures how well a model predicts a text, or how far it is from another model's logits",
    .args = "",
    .groups = G_MODEL | G_LOAD | G_CTX | G_PROMPT | G_PERPLEXITY | G_JSON,
    .run = run,
};
