// lamina imatrix: runs a text through a model and notes which input columns of each weight matter (see cli/imatrix.h).
#include "cli/console.h"
#include "cli/imatrix.h"
#include "cli/session.h"
#include "tools/tool.h"

#include <stdlib.h>
#include <string.h>

struct collect {
    struct imatrix *matrix;
    float *row;
    int64_t room;
    char *ids;
    size_t ids_room;
    int status;
};

static bool wanted(const struct ggml_tensor *t) {
    if (t->op != GGML_OP_MUL_MAT && t->op != GGML_OP_MUL_MAT_ID) return false;
    const struct ggml_tensor *w = t->src[0];
    return !w->view_src && w->name[0] && w->op == GGML_OP_NONE && t->src[1]->type == GGML_TYPE_F32 &&
           strstr(w->name, "weight");
}

static const float *read_row(struct collect *c, const struct ggml_tensor *x, int64_t i1, int64_t i2, int64_t i3) {
    if (c->room < x->ne[0]) {
        float *grown = realloc(c->row, sizeof(float) * (size_t) x->ne[0]);
        if (!grown) return NULL;
        c->row = grown;
        c->room = x->ne[0];
    }
    const size_t at = (size_t) i1 * x->nb[1] + (size_t) i2 * x->nb[2] + (size_t) i3 * x->nb[3];
    ggml_backend_tensor_get(x, c->row, at, sizeof(float) * (size_t) x->ne[0]);
    return c->row;
}

// Every row that multiplies the matrix of a plain product.
static int add_rows(struct collect *c, const struct ggml_tensor *t) {
    const struct ggml_tensor *x = t->src[1];
    for (int64_t i3 = 0; i3 < x->ne[3]; i3++)
        for (int64_t i2 = 0; i2 < x->ne[2]; i2++)
            for (int64_t i1 = 0; i1 < x->ne[1]; i1++) {
                const float *row = read_row(c, x, i1, i2, i3);
                if (!row || imatrix_add(c->matrix, t->src[0]->name, row, x->ne[0], 0, 1)) return 1;
            }
    return 0;
}

// ids {n_used, n_tokens} says which expert's matrix each row of x {n, n_used or 1, n_tokens} multiplies.
static int add_expert_rows(struct collect *c, const struct ggml_tensor *t) {
    const struct ggml_tensor *x = t->src[1], *ids = t->src[2];
    if (c->ids_room < ggml_nbytes(ids)) {
        char *grown = realloc(c->ids, ggml_nbytes(ids));
        if (!grown) return console_error("no memory for the expert choices of '%s'", t->src[0]->name);
        c->ids = grown;
        c->ids_room = ggml_nbytes(ids);
    }
    ggml_backend_tensor_get(ids, c->ids, 0, ggml_nbytes(ids));
    const int n_expert = (int) t->src[0]->ne[2];
    for (int64_t it = 0; it < ids->ne[1]; it++)
        for (int64_t iu = 0; iu < ids->ne[0]; iu++) {
            int32_t expert;
            memcpy(&expert, c->ids + (size_t) it * ids->nb[1] + (size_t) iu * ids->nb[0], 4);
            if (expert < 0 || expert >= n_expert)
                return console_error("'%s' was asked for expert %d of %d", t->src[0]->name, expert, n_expert);
            const float *row = read_row(c, x, iu % x->ne[1], it, 0);
            if (!row || imatrix_add(c->matrix, t->src[0]->name, row, x->ne[0], expert, n_expert)) return 1;
        }
    return 0;
}

static bool on_node(struct ggml_tensor *t, bool ask, void *data) {
    struct collect *c = data;
    if (ask) return wanted(t);
    c->status = t->op == GGML_OP_MUL_MAT ? add_rows(c, t) : add_expert_rows(c, t);
    return c->status == 0;
}

static int collect(struct session *s, const struct params *p, struct collect *c, struct tokens *t, int n_ctx,
                   const char *dataset) {
    const int skip = p->from_chunk < t->n / n_ctx ? p->from_chunk : t->n / n_ctx;
    int n_chunk = t->n / n_ctx - skip, status = 0;
    if (p->n_chunks > 0 && n_chunk > p->n_chunks) n_chunk = p->n_chunks;
    if (n_chunk < 1)
        return console_error("the text has %d tokens, %d windows are left out; one window needs %d (a smaller one: -c N)",
                             t->n, skip, n_ctx);
    int done = 0;
    for (int i = 0; i < n_chunk && !status; i++) {
        llama_memory_clear(llama_get_memory(s->ctx), true);
        status = session_feed(s, t->data + (size_t) (skip + i) * (size_t) n_ctx, n_ctx, false);
        if (c->status) status = c->status;
        done += !status;
        console_progress("measuring", (float) (i + 1) / (float) n_chunk);
    }
    console_progress_end();
    if (status && (status != 130 || !done)) return status;
    // what hours have measured is not lost to the one who can't wait for the rest
    const char *output = p->output ? p->output : "imatrix.gguf";
    if (status) console_note("interrupted: %s holds %d of %d chunks", output, done, n_chunk);
    const int saved = imatrix_save(c->matrix, output, dataset, done, n_ctx);
    return saved ? saved : status;
}

static int run(struct params *p) {
    p->no_escape = true;  // texts to be measured stay as they are
    struct text text = {0};
    struct session s = {0};
    struct tokens tokens = {0};
    struct collect c = {.matrix = imatrix_new()};
    int status = c.matrix ? 0 : 1;
    for (int i = 0; i < p->in_files.n && !status; i++) status = imatrix_merge(c.matrix, p->in_files.v[i]);
    const bool only_merge = p->in_files.n > 0 && !p->prompt && !p->file;
    if (!status && only_merge) status = imatrix_save(c.matrix, p->output ? p->output : "imatrix.gguf", NULL, 0, 0);
    if (!status && !only_merge) status = text_prompt(&text, p);
    if (status || only_merge) {
        imatrix_free(c.matrix);
        return status;
    }
    if (!p->n_ctx) p->n_ctx = 512;
    console_finish_first();
    p->cb_eval = on_node;
    p->cb_eval_data = &c;
    if (!status) status = session_load(&s, p, false);
    if (!status) status = tokens_make(&tokens, s.vocab, text.data, text.size, true, p->parse_special);
    if (!status) status = session_context(&s, p);
    if (!status) status = collect(&s, p, &c, &tokens, (int) p->n_ctx, p->file ? p->file : "-");
    session_close(&s);
    p->cb_eval_data = NULL;
    imatrix_free(c.matrix);
    free(c.row);
    free(c.ids);
    free(tokens.data);
    free(text.data);
    return status;
}

const struct tool tool_imatrix = {
    .name = "imatrix",
    .alias = "llama-imatrix",
    .summary = "Measures on a text which columns of each weight matter, for lamina quantize",
    .args = "",
    .groups = G_MODEL | G_LOAD | G_CTX | G_PROMPT | G_IMATRIX,
    .run = run,
};
