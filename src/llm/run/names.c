// Names of a graph's nodes for programs that watch them (cb_eval): those that the field's tools look for, made from the weight that a node
// reads or from the node before it. Only graphs that are watched are named; blocks build without.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/context.h"

// What is not called as its weight.
static const char renamed[][2][20] = {
    {"attn_q", "Qcur"},
    {"attn_k", "Kcur"},
    {"attn_v", "Vcur"},
    {"attn_qkv", "wqkv"},
    {"attn_q_norm", "Qcur_normed"},
    {"attn_k_norm", "Kcur_normed"},
    {"attn_output", "attn_out"},
    {"post_attention_norm", "attn_post_norm"},
    {"ffn_down", "ffn_out"},
    {"post_ffw_norm", "ffn_post_norm"},
    {"ffn_gate_exps", "ffn_moe_gate"},
    {"ffn_up_exps", "ffn_moe_up"},
    {"ffn_down_exps", "ffn_moe_down"},
    {"ffn_down_shexp", "ffn_shexp"},
};

// What follows from the first source's name and the operation; the source then was not the last of its kind.
static const struct {
    unsigned char op;  // enum ggml_op
    char from[17], to[21];
} derived[] = {
    {GGML_OP_ROPE, "Qcur", "Qcur"},
    {GGML_OP_ROPE, "Kcur", "Kcur"},
    {GGML_OP_RESHAPE, "Qcur", "Qcur"},
    {GGML_OP_RESHAPE, "Kcur", "Kcur"},
    {GGML_OP_RESHAPE, "Vcur", "Vcur"},
    {GGML_OP_ADD, "attn_out", "ffn_inp"},
    {GGML_OP_ADD, "attn_post_norm", "ffn_inp"},
    {GGML_OP_GLU, "ffn_gate", "ffn_swiglu"},
    {GGML_OP_GLU, "ffn_moe_gate", "ffn_moe_swiglu"},
    {GGML_OP_SOFT_MAX, "ffn_moe_logits", "ffn_moe_probs"},
    {GGML_OP_GET_ROWS, "ffn_moe_topk", "ffn_moe_weights"},
    {GGML_OP_RESHAPE, "ffn_moe_weights", "ffn_moe_weights"},
    {GGML_OP_DIV, "ffn_moe_weights", "ffn_moe_weights_norm"},
    {GGML_OP_MUL, "ffn_moe_down", "ffn_moe_weighted"},
    {GGML_OP_CONT, "ffn_moe_weighted", "ffn_moe_out"},
    {GGML_OP_ADD, "ffn_moe_weighted", "ffn_moe_out"},
    {GGML_OP_ADD, "ffn_moe_out", "ffn_moe_out"},
};

static bool is_unnamed(const struct ggml_tensor *t) {
    return !t->name[0] || t->name[0] == ' ' || t->name[0] == '(' || !strncmp(t->name, "node_", 5);
}

static bool by_weight(struct ggml_tensor *t) {
    for (int k = 0; k < 2 && t->src[k]; k++) {
        char kind[GGML_MAX_NAME];
        int il;
        if (t->src[k]->op != GGML_OP_NONE || sscanf(t->src[k]->name, "blk.%d.%63[^.]", &il, kind) != 2) continue;
        const char *name = kind;
        for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
            if (!strcmp(kind, renamed[i][0])) name = renamed[i][1];
        blk_name(t, name, il);
        return true;
    }
    return false;
}

// The length of a name before its layer.
static size_t stem(const char *name) {
    const char *dash = strrchr(name, '-');
    return dash && isdigit((unsigned char) dash[1]) ? (size_t) (dash - name) : 0;
}

static void by_source(struct ggml_tensor *t) {
    for (int k = 0; k < 2 && t->src[k]; k++) {
        struct ggml_tensor *s = t->src[k];
        while (s->view_src && (t->op == GGML_OP_ADD || t->op == GGML_OP_CONT)) s = s->view_src;
        const size_t n = stem(s->name);
        for (size_t i = 0; n && i < sizeof derived / sizeof *derived; i++) {
            const size_t m = strlen(derived[i].from);
            if (t->op != derived[i].op || strncmp(s->name, derived[i].from, m) != 0) continue;
            if (n != m && (t->op != GGML_OP_ROPE || s->name[m] != '_')) continue;
            blk_name(t, derived[i].to, atoi(s->name + n + 1));
            if (t->op == GGML_OP_ADD && n == strlen(derived[i].to) && !strncmp(derived[i].to, s->name, n))
                blk_name(s, "ffn_moe_sum", atoi(s->name + n + 1));
            return;
        }
    }
}

void graph_name_nodes(struct ggml_cgraph *g) {
    const int n = ggml_graph_n_nodes(g);
    for (int i = 0; i < n; i++) {
        struct ggml_tensor *t = ggml_graph_node(g, i);
        if (is_unnamed(t) && !by_weight(t)) by_source(t);
    }
}
