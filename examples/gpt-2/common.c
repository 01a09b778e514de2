#include "common.h"

#include "gguf.h"

#include <stdlib.h>
#include <string.h>

enum { STAGE = 1 << 20 };  // bytes read at a time for memory the host cannot reach

static bool complain(const char *what, const char *detail) {
    fprintf(stderr, "gpt-2: %s%s%s\n", what, *detail ? ": " : "", detail);
    return false;
}

// ---- the vocabulary -------------------------------------------------------------------------------------------------

// Token texts are written with one visible character per byte: bytes that are not visible stand at 256 + n.
static bool is_visible(unsigned b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255); }

static int byte_of(unsigned c) {
    if (is_visible(c)) return (int) c;
    if (c < 256) return -1;
    unsigned n = c - 256;
    for (unsigned b = 0; b < 256; b++) {
        if (!is_visible(b) && n-- == 0) return (int) b;
    }
    return -1;
}

static size_t decode_piece(const char *in, size_t n, char *out) {
    size_t len = 0;
    for (size_t i = 0; i < n;) {
        const unsigned char c = (unsigned char) in[i];
        const bool two = c >= 0xc0 && c < 0xe0 && i + 1 < n;
        const unsigned code = two ? ((c & 0x1fu) << 6) | ((unsigned char) in[i + 1] & 0x3fu) : c;
        const int b = byte_of(code);
        if (b >= 0)
            out[len++] = (char) b;
        else
            out[len++] = (char) c;
        i += two ? 2 : 1;
    }
    return len;
}

int gpt2_tokenize(const struct gpt2_file *file, const char *text, int32_t *tokens, int max) {
    int n = 0;
    const size_t len = strlen(text);
    for (size_t at = 0; at < len && n < max;) {
        size_t longest = 0;
        int32_t best = 0;
        for (int32_t id = 0; id < file->hp.n_vocab; id++) {
            const size_t k = file->piece[id + 1] - file->piece[id];
            if (k <= longest || k > len - at || memcmp(file->text + file->piece[id], text + at, k) != 0) continue;
            longest = k;
            best = id;
        }
        tokens[n++] = best;
        at += longest ? longest : 1;
    }
    return n;
}

void gpt2_print(const struct gpt2_file *file, int32_t token) {
    const char *s = file->text + file->piece[token];
    for (size_t i = 0; i < file->piece[token + 1] - file->piece[token]; i++) {
        const unsigned char c = (unsigned char) s[i];
        if (c >= 32 && c < 127)
            putchar(c);
        else
            printf("<%02x>", c);
    }
}

// ---- GGUF -----------------------------------------------------------------------------------------------------------

static int key_u32(const struct gguf_context *g, const char *key) {
    const int64_t id = gguf_find_key(g, key);
    return id < 0 || gguf_get_kv_type(g, id) != GGUF_TYPE_UINT32 ? -1 : (int) gguf_get_val_u32(g, id);
}

static bool gguf_vocab(struct gpt2_file *file, const struct gguf_context *g) {
    const int64_t id = gguf_find_key(g, "tokenizer.ggml.tokens");
    if (id < 0) return complain("no vocabulary", "");
    const size_t n = gguf_get_arr_n(g, id);
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const char *s = gguf_get_arr_str(g, id, i);
        if (!s) return complain("damaged vocabulary", "");
        bytes += strlen(s);
    }
    file->hp.n_vocab = (int) n;
    file->text = malloc(bytes + 1);
    file->piece = malloc((n + 1) * sizeof(size_t));
    if (!file->text || !file->piece) return complain("no memory for the vocabulary", "");
    file->piece[0] = 0;
    for (size_t i = 0; i < n; i++) {
        const char *s = gguf_get_arr_str(g, id, i);
        file->piece[i + 1] = file->piece[i] + decode_piece(s, strlen(s), file->text + file->piece[i]);
    }
    return true;
}

static bool gguf_entries(struct gpt2_file *file, const struct gguf_context *g, const struct ggml_context *headers) {
    const int64_t n = gguf_get_n_tensors(g);
    file->entries = calloc((size_t) n + 1, sizeof(*file->entries));
    if (!file->entries) return complain("no memory for the list of tensors", "");
    for (int64_t i = 0; i < n; i++) {
        struct gpt2_entry *e = &file->entries[file->n_entries++];
        const struct ggml_tensor *t =
            ggml_get_tensor((struct ggml_context *) (uintptr_t) headers, gguf_get_tensor_name(g, i));
        if (!t) return complain("no tensor", gguf_get_tensor_name(g, i));
        snprintf(e->name, sizeof(e->name), "%s", t->name);
        e->type = t->type;
        e->ne[0] = t->ne[0];
        e->ne[1] = t->ne[1];
        e->offset = (long) (gguf_get_data_offset(g) + gguf_get_tensor_offset(g, i));
    }
    return true;
}

static bool open_gguf(struct gpt2_file *file, const char *path) {
    struct ggml_context *headers = NULL;
    struct gguf_context *g = gguf_init_from_file(path, (struct gguf_init_params){.no_alloc = true, .ctx = &headers});
    if (!g) return complain("cannot read", path);
    file->hp = (struct gpt2_hparams){.n_ctx = key_u32(g, "gpt2.context_length"),
                                     .n_embd = key_u32(g, "gpt2.embedding_length"),
                                     .n_head = key_u32(g, "gpt2.attention.head_count"),
                                     .n_layer = key_u32(g, "gpt2.block_count")};
    const int64_t eps = gguf_find_key(g, "gpt2.attention.layer_norm_epsilon");
    file->hp.eps = eps < 0 ? 1e-5f : gguf_get_val_f32(g, eps);
    const bool ok = gguf_vocab(file, g) && gguf_entries(file, g, headers);
    ggml_free(headers);
    gguf_free(g);
    return ok;
}

// ---- the older format -----------------------------------------------------------------------------------------------
// 7 int32 (magic, vocab, context, embd, heads, layers, type), the vocabulary, then per tensor: dimensions, length of its
// name, type, extents, name, data.

static bool read_i32(FILE *f, int32_t *x, size_t n) { return fread(x, sizeof(*x), n, f) == n; }

static bool old_vocab(struct gpt2_file *file) {
    int32_t n, len;
    size_t room = 0, used = 0;
    if (!read_i32(file->f, &n, 1) || n != file->hp.n_vocab) return complain("damaged vocabulary", "");
    file->piece = malloc(((size_t) n + 1) * sizeof(size_t));
    if (!file->piece) return complain("no memory for the vocabulary", "");
    file->piece[0] = 0;
    for (int i = 0; i < n; i++) {
        if (!read_i32(file->f, &len, 1) || len < 0 || len > 4096) return complain("damaged vocabulary", "");
        if (used + (size_t) len > room) {
            room = 2 * room + 8192;
            char *p = realloc(file->text, room);
            if (!p) return complain("no memory for the vocabulary", "");
            file->text = p;
        }
        if (fread(file->text + used, 1, (size_t) len, file->f) != (size_t) len) return complain("damaged vocabulary", "");
        used += (size_t) len;
        file->piece[i + 1] = used;
    }
    return true;
}

// "model/h3/attn/c_attn/w" is "blk.3.attn_qkv.weight".
static void new_name(const char *old, char *name, size_t size) {
    static const char *const whole[][2] = {{"model/ln_f/g", "output_norm.weight"},
                                           {"model/ln_f/b", "output_norm.bias"},
                                           {"model/wte", "token_embd.weight"},
                                           {"model/wpe", "position_embd.weight"}};
    static const char *const parts[][2] = {{"ln_1/", "attn_norm"},       {"ln_2/", "ffn_norm"},
                                           {"attn/c_attn/", "attn_qkv"}, {"attn/c_proj/", "attn_output"},
                                           {"mlp/c_fc/", "ffn_up"},      {"mlp/c_proj/", "ffn_down"}};
    snprintf(name, size, "%s", old);
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        if (strcmp(old, whole[i][0]) == 0) snprintf(name, size, "%s", whole[i][1]);
    }
    int layer, n = 0;
    if (sscanf(old, "model/h%d/%n", &layer, &n) != 1 || n == 0) return;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const size_t k = strlen(parts[i][0]);
        if (strncmp(old + n, parts[i][0], k) != 0) continue;
        snprintf(name, size, "blk.%d.%s.%s", layer, parts[i][1], old[(size_t) n + k] == 'b' ? "bias" : "weight");
    }
}

static bool old_entries(struct gpt2_file *file) {
    int32_t head[3], ne[2];
    const int most = 12 * file->hp.n_layer + 8;
    file->entries = calloc((size_t) most, sizeof(*file->entries));
    if (!file->entries) return complain("no memory for the list of tensors", "");
    while (file->n_entries < most && read_i32(file->f, head, 3)) {
        struct gpt2_entry *e = &file->entries[file->n_entries];
        char old[256] = {0};
        ne[1] = 1;
        if (head[0] < 1 || head[0] > 2 || head[1] < 0 || head[1] > 255 || head[2] < 0 || head[2] > 1)
            return complain("damaged tensor", "");
        if (!read_i32(file->f, ne, (size_t) head[0]) || fread(old, 1, (size_t) head[1], file->f) != (size_t) head[1] ||
            ne[0] < 1 || ne[1] < 1) {
            return complain("damaged tensor", old);
        }
        new_name(old, e->name, sizeof(e->name));
        e->type = head[2] ? GGML_TYPE_F16 : GGML_TYPE_F32;
        e->ne[0] = ne[0];
        e->ne[1] = ne[1];
        e->offset = ftell(file->f);
        file->n_entries++;
        if (fseek(file->f, (long) ((int64_t) ne[0] * ne[1] * (head[2] ? 2 : 4)), SEEK_CUR) != 0)
            return complain("damaged tensor", old);
    }
    return true;
}

static bool open_old(struct gpt2_file *file) {
    int32_t h[6];
    if (!read_i32(file->f, h, 6)) return complain("the file ends too early", "");
    file->hp =
        (struct gpt2_hparams){.n_vocab = h[0], .n_ctx = h[1], .n_embd = h[2], .n_head = h[3], .n_layer = h[4], .eps = 1e-5f};
    if (h[0] < 1 || h[0] > 1 << 24 || h[4] < 1 || h[4] > 1 << 12) return complain("damaged header", "");
    return old_vocab(file) && old_entries(file);
}

// ---- both -----------------------------------------------------------------------------------------------------------

bool gpt2_open(struct gpt2_file *file, const char *path) {
    memset(file, 0, sizeof(*file));
    int32_t magic = 0;
    file->f = fopen(path, "rb");
    bool ok = file->f && read_i32(file->f, &magic, 1);
    if (!ok)
        complain("cannot read", path);
    else
        ok = magic == GGML_FILE_MAGIC ? open_old(file) : open_gguf(file, path);
    const struct gpt2_hparams *hp = &file->hp;
    if (ok && (hp->n_ctx < 1 || hp->n_embd < 1 || hp->n_head < 1 || hp->n_layer < 1 || hp->n_embd % hp->n_head != 0)) {
        ok = complain("not a GPT-2 model", path);
    }
    if (!ok) gpt2_close(file);
    return ok;
}

void gpt2_close(struct gpt2_file *file) {
    if (file->f) fclose(file->f);
    free(file->entries);
    free(file->text);
    free(file->piece);
    memset(file, 0, sizeof(*file));
}

static const struct gpt2_entry *find(const struct gpt2_file *file, const char *name) {
    for (int i = 0; i < file->n_entries; i++) {
        if (strcmp(file->entries[i].name, name) == 0) return &file->entries[i];
    }
    return NULL;
}

static struct ggml_tensor *make(const struct gpt2_file *file, struct ggml_context *ctx, const char *name, int64_t ne0,
                                int64_t ne1) {
    const struct gpt2_entry *e = find(file, name);
    if (!e || e->ne[0] != ne0 || e->ne[1] != ne1) {
        complain("missing, or of another shape", name);
        return NULL;
    }
    struct ggml_tensor *t = ne1 == 1 ? ggml_new_tensor_1d(ctx, e->type, ne0) : ggml_new_tensor_2d(ctx, e->type, ne0, ne1);
    return t->ne[0] == ne0 ? ggml_set_name(t, name) : NULL;  // otherwise the context is full
}

static bool make_layer(const struct gpt2_file *file, struct ggml_context *ctx, int il, struct gpt2_layer *l) {
    const int64_t e = file->hp.n_embd;
    const struct {
        struct ggml_tensor **t;
        const char *part;
        int64_t ne0, ne1;
    } all[] = {
        {&l->ln_1_g, "attn_norm.weight", e, 1},    {&l->ln_1_b, "attn_norm.bias", e, 1},
        {&l->qkv_w, "attn_qkv.weight", e, 3 * e},  {&l->qkv_b, "attn_qkv.bias", 3 * e, 1},
        {&l->proj_w, "attn_output.weight", e, e},  {&l->proj_b, "attn_output.bias", e, 1},
        {&l->ln_2_g, "ffn_norm.weight", e, 1},     {&l->ln_2_b, "ffn_norm.bias", e, 1},
        {&l->up_w, "ffn_up.weight", e, 4 * e},     {&l->up_b, "ffn_up.bias", 4 * e, 1},
        {&l->down_w, "ffn_down.weight", 4 * e, e}, {&l->down_b, "ffn_down.bias", e, 1},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        char name[64];
        snprintf(name, sizeof(name), "blk.%d.%s", il, all[i].part);
        *all[i].t = make(file, ctx, name, all[i].ne0, all[i].ne1);
        if (!*all[i].t) return false;
    }
    return true;
}

bool gpt2_make_weights(const struct gpt2_file *file, struct ggml_context *ctx, bool separate_head, struct gpt2_weights *w) {
    const struct gpt2_hparams *hp = &file->hp;
    memset(w, 0, sizeof(*w));
    w->layers = calloc((size_t) hp->n_layer, sizeof(*w->layers));
    if (!w->layers) return complain("no memory for the list of layers", "");
    w->wte = make(file, ctx, "token_embd.weight", hp->n_embd, hp->n_vocab);
    w->wpe = make(file, ctx, "position_embd.weight", hp->n_embd, hp->n_ctx);
    w->ln_f_g = make(file, ctx, "output_norm.weight", hp->n_embd, 1);
    w->ln_f_b = make(file, ctx, "output_norm.bias", hp->n_embd, 1);
    if (!w->wte || !w->wpe || !w->ln_f_g || !w->ln_f_b) return false;
    w->lm_head = separate_head ? ggml_set_name(ggml_dup_tensor(ctx, w->wte), "lm_head") : w->wte;
    for (int il = 0; il < hp->n_layer; il++) {
        if (!make_layer(file, ctx, il, &w->layers[il])) return false;
    }
    return true;
}

void gpt2_free_weights(struct gpt2_weights *w) {
    free(w->layers);
    w->layers = NULL;
}

int gpt2_n_tensors(const struct gpt2_file *file) { return 12 * file->hp.n_layer + 5; }

size_t gpt2_data_bytes(const struct gpt2_file *file) {
    size_t n = 0;
    for (int i = 0; i < file->n_entries; i++) {
        const struct gpt2_entry *e = &file->entries[i];
        n += ggml_row_size(e->type, e->ne[0]) * (size_t) e->ne[1];
    }
    return n;
}

static bool read_tensor(const struct gpt2_file *file, struct ggml_tensor *t, char *stage) {
    const struct gpt2_entry *e = find(file, strcmp(t->name, "lm_head") == 0 ? "token_embd.weight" : t->name);
    const size_t size = ggml_nbytes(t);
    if (!e || fseek(file->f, e->offset, SEEK_SET) != 0) return complain("cannot find", t->name);
    if (!t->buffer || ggml_backend_buffer_is_host(t->buffer)) {  // straight to where it lies
        return fread(t->data, 1, size, file->f) == size || complain("the file ends within", t->name);
    }
    for (size_t at = 0; at < size; at += STAGE) {  // through a small buffer to the device
        const size_t n = size - at < STAGE ? size - at : STAGE;
        if (fread(stage, 1, n, file->f) != n) return complain("the file ends within", t->name);
        ggml_backend_tensor_set(t, stage, at, n);
    }
    return true;
}

bool gpt2_read_weights(const struct gpt2_file *file, struct ggml_context *ctx) {
    char *stage = malloc(STAGE);
    bool ok = stage || complain("no memory to read through", "");
    for (struct ggml_tensor *t = ggml_get_first_tensor(ctx); ok && t; t = ggml_get_next_tensor(ctx, t))
        ok = read_tensor(file, t, stage);
    free(stage);
    return ok;
}
