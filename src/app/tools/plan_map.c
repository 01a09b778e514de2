// Writes the map of a plan: the page of plan_page.h with the report of the largest prompt's graph as its data.
#include "base/file.h"
#include "tools/plan_map.h"
#include "cli/console.h"
#include "ggml/plan.h"
#include "tools/plan_page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A string of JavaScript. '<' is written as an escape, so that nothing can end the script.
static void put_text(FILE *f, const char *s) {
    fputc('"', f);
    for (; *s; s++) {
        const unsigned char c = (unsigned char) *s;
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c < 0x20 || c == '<' || c == 0x7f)
            fprintf(f, "\\u%04x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Number of an operation in the list of names, which grows.
static int op_number(const char **ops, int *n, const char *op) {
    for (int i = 0; i < *n; i++)
        if (strcmp(ops[i], op) == 0) return i;
    ops[*n] = op;
    return (*n)++;
}

static void put_buffers(FILE *f, const struct ggml_plan_report *r, const struct llama_device_bytes *d, int n) {
    fputs(",buffers:[", f);
    for (int i = 0; i < r->n_buffers; i++) {
        const struct ggml_plan_buffer *b = &r->buffers[i];
        fprintf(f, "%s{name:", i ? "," : "");
        put_text(f, i < n ? d[i].name : b->name);
        fprintf(f, ",peak:%zu,bound:%zu,best:%zu,step:%d}", b->peak, b->bound, b->best_fit, b->peak_step);
    }
    fputs("]", f);
}

static void put_tensors(FILE *f, const struct ggml_plan_report *r, const char **ops) {
    int n_ops = 0;
    fputs(",tensors:[", f);
    for (int i = 0; i < r->n_tensors; i++) {
        const struct ggml_plan_tensor *t = &r->tensors[i];
        fprintf(f, "%s\n[%d,", i ? "," : "", op_number(ops, &n_ops, t->op));
        put_text(f, t->name[0] ? t->name : "(no name)");
        fprintf(f, ",\"%s\",[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]", ggml_type_name(t->type), t->ne[0], t->ne[1],
                t->ne[2], t->ne[3]);
        fprintf(f, ",%zu,%zu,%d,%d,%d,%d,%d,%d]", t->bytes, t->offset, t->first, t->last, t->over,
                (t->at_peak ? 1 : 0) | (t->input ? 2 : 0) | (t->output ? 4 : 0), t->buffer, t->chunk);
    }
    fputs("],ops:[", f);
    for (int i = 0; i < n_ops; i++) {
        if (i) fputc(',', f);
        put_text(f, ops[i]);
    }
    fputs("]", f);
}

static bool put_page(FILE *f, const struct ggml_plan_report *r, const struct llama_device_bytes *d, int n,
                     const char *model) {
    const char **ops = malloc(((size_t) r->n_tensors + 1) * sizeof(*ops));
    if (!ops) return false;
    for (size_t i = 0; i < sizeof(page_head) / sizeof(page_head[0]); i++) fputs(page_head[i], f);
    fputs("{model:", f);
    put_text(f, base_name(model));
    fprintf(f, ",nodes:%d", r->n_nodes);
    put_buffers(f, r, d, n);
    put_tensors(f, r, ops);
    fputs("}\n", f);
    for (size_t i = 0; i < sizeof(page_tail) / sizeof(page_tail[0]); i++) fputs(page_tail[i], f);
    free((void *) ops);
    return !ferror(f);
}

int plan_map_write(const char *path, struct llama_context *ctx, const struct llama_device_bytes *d, int n,
                   const char *model) {
    struct ggml_plan_report *r = llama_context_plan_report(ctx);
    if (!r) return console_library_error();
    char *tmp = malloc(strlen(path) + 5);
    FILE *f = NULL;
    if (tmp) {
        memcpy(tmp, path, strlen(path));
        memcpy(tmp + strlen(path), ".tmp", 5);
        f = ggml_fopen(tmp, "wb");
    }
    bool ok = f && put_page(f, r, d, n, model);
    if (f && fclose(f) != 0) ok = false;
    if (ok && file_rename(tmp, path) != 0) ok = false;
    const int why = errno;
    if (!ok && f) remove(tmp);
    free(tmp);
    ggml_plan_report_free(r);
    return ok ? 0 : console_error("cannot write %s: %s", path, strerror(why));
}
