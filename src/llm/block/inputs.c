// Inputs of graphs and how they are filled from a micro-batch.
#include <math.h>
#include <string.h>

#include "block/graph.h"

struct graph_input *graph_input(struct graph *g, enum ggml_type type, int64_t ne0, int64_t ne1, graph_fill fill, int a,
                                int b, int c) {
    for (int i = 0; i < g->n_inputs; i++) {
        struct graph_input *in = &g->inputs[i];
        if (in->fill == fill && in->a == a && in->b == b && in->c == c) return in;
    }
    struct ggml_tensor *t = ne1 ? ggml_new_tensor_2d(g->ctx, type, ne0, ne1) : ggml_new_tensor_1d(g->ctx, type, ne0);
    ggml_set_input(t);
    // More inputs than the frame has room for is a mistake in an architecture; the last place is overwritten and its graph
    // refused, because an input without a filler is never set.
    if (g->n_inputs == GRAPH_MAX_INPUTS) {
        (void) err_set(ERR_FAILED, "a graph has more than %d inputs", GRAPH_MAX_INPUTS);
        g->n_inputs--;
    }
    struct graph_input *in = &g->inputs[g->n_inputs++];
    *in = (struct graph_input){.t = t, .fill = fill, .a = a, .b = b, .c = c};
    return in;
}

static void fill_tokens(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) in;
    (void) g;
    memcpy(dst, ub->token, (size_t) ub->n.n_tokens * 4);
}

struct ggml_tensor *in_tokens(struct graph *g) {
    if (!g->tokens) {
        g->tokens = graph_input(g, GGML_TYPE_I32, g->n.n_tokens, 0, fill_tokens, 0, 0, 0)->t;
        ggml_set_name(g->tokens, "inp_tokens");
    }
    return g->tokens;
}

static void fill_embd(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) in;
    memcpy(dst, ub->embd, (size_t) ub->n.n_tokens * (size_t) g->hp->n_embd_inp * sizeof(float));
}

struct ggml_tensor *in_embd(struct graph *g) {
    struct ggml_tensor *t = graph_input(g, GGML_TYPE_F32, g->hp->n_embd_inp, g->n.n_tokens, fill_embd, 0, 0, 0)->t;
    ggml_set_name(t, "inp_embd");
    return t;
}

static void fill_state(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) in;
    memcpy(dst, ub->state, (size_t) ub->n.n_tokens * (size_t) g->hp->n_embd * sizeof(float));
}

struct ggml_tensor *in_state(struct graph *g) {
    struct ggml_tensor *t = graph_input(g, GGML_TYPE_F32, g->hp->n_embd, g->n.n_tokens, fill_state, 0, 0, 0)->t;
    ggml_set_name(t, "inp_state");
    return t;
}

static void fill_pos(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) in;
    memcpy(dst, ub->pos, (size_t) ub->n.n_tokens * (g->hp->mrope ? 16 : 4));
}

struct ggml_tensor *in_pos(struct graph *g) {
    return graph_input(g, GGML_TYPE_I32, (int64_t) g->n.n_tokens * (g->hp->mrope ? 4 : 1), 0, fill_pos, 0, 0, 0)->t;
}

static void fill_out_rows(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) in;
    (void) g;
    memcpy(dst, ub->out, (size_t) ub->n.n_outputs * 4);
}

struct ggml_tensor *in_out_rows(struct graph *g) {
    return graph_input(g, GGML_TYPE_I32, g->n.n_outputs, 0, fill_out_rows, 0, 0, 0)->t;
}

static void fill_temperature(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) g;
    float *out = dst;
    for (int i = 0; i < ub->n.n_tokens; i++)
        out[i] = 1.0f + in->f * logf(1.0f + floorf((float) (ub->pos[i] + in->a) / in->h));
}

struct ggml_tensor *in_temperature(struct graph *g, float ts, float length, int offset) {
    const int n_before = g->n_inputs;
    struct graph_input *in = graph_input(g, GGML_TYPE_F32, g->n.n_tokens, 0, fill_temperature, offset, 0, 0);
    if (g->n_inputs > n_before) {
        in->f = ts;
        in->h = length > 0 ? length : 1.0f;
    }
    return ggml_reshape_3d(g->ctx, in->t, 1, 1, g->n.n_tokens);
}

static void fill_rs_src(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) in;
    (void) g;
    memcpy(dst, ub->rs_src, (size_t) ub->n.n_seqs * 4);
}

struct ggml_tensor *in_rs_src(struct graph *g) {
    return graph_input(g, GGML_TYPE_I32, g->n.n_seqs, 0, fill_rs_src, 0, 0, 0)->t;
}

static void fill_rs_dst(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) g;
    int64_t *out = dst;
    for (int i = 0; i < ub->n.n_seqs; i++) out[i] = ub->rs_dst[in->a * ub->n.n_seqs + i];
}

struct ggml_tensor *in_rs_dst(struct graph *g, int k) {
    return graph_input(g, GGML_TYPE_I64, g->n.n_seqs, 0, fill_rs_dst, k, 0, 0)->t;
}

// a: 0 the row of lowest, 1 of highest position of each of the micro-batch's sequences.
static void fill_seq_row(const struct graph_input *in, const struct graph *g, const struct ubatch *ub, void *dst) {
    (void) g;
    int32_t *out = dst;
    for (int s = 0; s < ub->n.n_seqs; s++) {
        int best = 0;
        bool any = false;
        for (int i = 0; i < ub->n.n_tokens; i++) {
            if (ub->rows[i].seq[0] != ub->seq[s]) continue;
            if (!any || (in->a ? ub->pos[i] >= ub->pos[best] : ub->pos[i] < ub->pos[best])) best = i;
            any = true;
        }
        out[s] = best;
    }
}

struct ggml_tensor *in_seq_first(struct graph *g) {
    return graph_input(g, GGML_TYPE_I32, g->n.n_seqs, 0, fill_seq_row, 0, 0, 0)->t;
}

struct ggml_tensor *in_seq_last(struct graph *g) {
    return graph_input(g, GGML_TYPE_I32, g->n.n_seqs, 0, fill_seq_row, 1, 0, 0)->t;
}
