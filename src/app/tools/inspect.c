// lamina inspect: what a GGUF file holds, read through gguf.h alone, so that files of unknown architectures work too.
#include "cli/console.h"
#include "gguf.h"
#include "tools/shards.h"
#include "tools/tool.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define ARRAY_SHOWN 8  // elements of an array that are printed

static json_t *json_text(const char *s) {
    json_t *j = json_string(s);
    if (j) return j;
    // Not UTF-8: every byte as a code point of Latin-1, so that nothing is lost and the document stays valid.
    const size_t n = strlen(s);
    char *wide = malloc(2 * n + 1);
    if (!wide) return json_null();
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char) s[i];
        if (c < 0x80)
            wide[k++] = (char) c;
        else
            wide[k++] = (char) (0xc0 | c >> 6), wide[k++] = (char) (0x80 | (c & 0x3f));
    }
    j = json_stringn(wide, k);
    free(wide);
    return j;
}

static json_t *scalar(enum gguf_type type, const void *at) {
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        float f32;
        uint64_t u64;
        int64_t i64;
        double f64;
    } v;
    static const size_t size[GGUF_TYPE_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    memcpy(&v, at, size[type]);
    double x;
    switch (type) {
        case GGUF_TYPE_UINT8: return json_integer(v.u8);
        case GGUF_TYPE_INT8: return json_integer(v.i8);
        case GGUF_TYPE_UINT16: return json_integer(v.u16);
        case GGUF_TYPE_INT16: return json_integer(v.i16);
        case GGUF_TYPE_UINT32: return json_integer(v.u32);
        case GGUF_TYPE_INT32: return json_integer(v.i32);
        case GGUF_TYPE_UINT64: return json_integer((json_int_t) v.u64);
        case GGUF_TYPE_INT64: return json_integer(v.i64);
        case GGUF_TYPE_BOOL: return json_boolean(v.u8);
        case GGUF_TYPE_FLOAT32: x = (double) v.f32; break;
        default: x = v.f64; break;
    }
    char text[32];
    snprintf(text, sizeof(text), "%g", x);
    json_t *j = json_real(x);
    return j ? j : json_string(text);  // JSON has no infinity and no NaN
}

static size_t element_size(enum gguf_type type) {
    static const size_t size[GGUF_TYPE_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return size[type];
}

static json_t *array(const struct gguf_context *g, int64_t id, size_t most) {
    json_t *list = json_array();
    const enum gguf_type type = gguf_get_arr_type(g, id);
    const size_t n = gguf_get_arr_n(g, id);
    for (size_t i = 0; i < n && i < most; i++)
        json_array_append_new(list, type == GGUF_TYPE_STRING
                                        ? json_text(gguf_get_arr_str(g, id, i))
                                        : scalar(type, (const char *) gguf_get_arr_data(g, id) + i * element_size(type)));
    return list;
}

static json_t *value(const struct gguf_context *g, int64_t id, size_t most) {
    const enum gguf_type type = gguf_get_kv_type(g, id);
    if (type == GGUF_TYPE_STRING) return json_text(gguf_get_val_str(g, id));
    if (type == GGUF_TYPE_ARRAY) return array(g, id, most);
    return scalar(type, gguf_get_val_data(g, id));
}

struct sums {
    uint32_t *tensor;
    uint32_t all;
};

// CRC-32 of every tensor's bytes, read in pieces; each [tensors] or NULL. 0, or the exit status.
static int sum_file(const struct source *s, uint32_t *each, uint32_t *all) {
    static unsigned char piece[1 << 20];
    const struct gguf_context *g = s->gguf;
    const int64_t n = gguf_get_n_tensors(g);
    for (int64_t i = 0; i < n; i++) {
        size_t left = gguf_get_tensor_size(g, i);
        uLong crc = crc32(0, NULL, 0);
        if (fseeko(s->file, (off_t) (gguf_get_data_offset(g) + gguf_get_tensor_offset(g, i)), SEEK_SET)) left = 1;
        while (left) {
            const size_t want = left < sizeof(piece) ? left : sizeof(piece), got = fread(piece, 1, want, s->file);
            if (got != want) return console_error("%s ends inside the tensor '%s'", s->path, gguf_get_tensor_name(g, i));
            crc = crc32(crc, piece, (uInt) got);
            *all = (uint32_t) crc32(*all, piece, (uInt) got);
            left -= got;
            if (console_interrupted()) return 130;
        }
        if (each) each[i] = (uint32_t) crc;
        console_progress("reading", (float) (i + 1) / (float) n);
    }
    return 0;
}

// Of a file's tensors; the sum of all goes over all parts of a split model, of which it is the first. Another part has a sum of its own.
static int checksums(const struct gguf_context *g, const char *path, struct sums *out) {
    struct parts m = {0};
    struct source alone = {0};
    const int64_t no = gguf_find_key(g, "split.no");
    const bool later = no >= 0 && gguf_get_kv_type(g, no) == GGUF_TYPE_UINT16 && gguf_get_val_u16(g, no) > 0;
    int status = later ? source_open(&alone, path) : parts_open(&m, path);
    out->tensor = calloc((size_t) gguf_get_n_tensors(g) + 1, sizeof(uint32_t));
    out->all = (uint32_t) crc32(0, NULL, 0);
    if (!status && !out->tensor) status = console_error("no memory for the sums of %s", path);
    if (later && !status) status = sum_file(&alone, out->tensor, &out->all);
    for (int k = 0; k < m.n && !status; k++) status = sum_file(&m.v[k], k ? NULL : out->tensor, &out->all);
    console_progress_end();
    source_close(&alone);
    parts_close(&m);
    return status;
}

static void print_json(const struct gguf_context *g, const struct sums *sums) {
    json_t *keys = json_object(), *types = json_object(), *tensors = json_array();
    for (int64_t i = 0; i < gguf_get_n_kv(g); i++) {
        const char *key = gguf_get_key(g, i);
        const enum gguf_type type = gguf_get_kv_type(g, i);
        json_object_set_new_nocheck(keys, key, value(g, i, SIZE_MAX));
        json_object_set_new_nocheck(types, key, json_string(gguf_type_name(type)));
    }
    for (int64_t i = 0; i < gguf_get_n_tensors(g); i++) {
        const int64_t *ne = gguf_get_tensor_ne(g, i);
        json_t *t = json_pack("{s:o, s:s, s:[I,I,I,I], s:I, s:I}", "name", json_text(gguf_get_tensor_name(g, i)), "type",
                              ggml_type_name(gguf_get_tensor_type(g, i)), "shape", (json_int_t) ne[0], (json_int_t) ne[1],
                              (json_int_t) ne[2], (json_int_t) ne[3], "offset", (json_int_t) gguf_get_tensor_offset(g, i),
                              "bytes", (json_int_t) gguf_get_tensor_size(g, i));
        if (sums) json_object_set_new(t, "crc32", json_sprintf("%08x", sums->tensor[i]));
        json_array_append_new(tensors, t);
    }
    json_t *root = json_pack("{s:i, s:I, s:I, s:o, s:o, s:o}", "version", (int) gguf_get_version(g), "alignment",
                             (json_int_t) gguf_get_alignment(g), "data_offset", (json_int_t) gguf_get_data_offset(g),
                             "metadata", keys, "metadata_types", types, "tensors", tensors);
    if (sums) json_object_set_new(root, "crc32", json_sprintf("%08x", sums->all));
    json_dumpf(root, stdout, JSON_INDENT(1));
    fputc('\n', stdout);
    json_decref(root);
}

static void print_key(const struct gguf_context *g, int64_t id) {
    const enum gguf_type type = gguf_get_kv_type(g, id);
    const char *key = gguf_get_key(g, id);
    console_escaped(stdout, key, strlen(key));
    fputs(" = ", stdout);
    if (type == GGUF_TYPE_STRING) {
        const char *s = gguf_get_val_str(g, id);
        const size_t n = strlen(s);
        fputc('"', stdout);
        console_escaped(stdout, s, n < 200 ? n : 200);
        printf(n < 200 ? "\"\n" : "\"... (%zu bytes)\n", n);
        return;
    }
    json_t *v = value(g, id, ARRAY_SHOWN);
    char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(7));
    fputs(text ? text : "?", stdout);
    free(text);
    json_decref(v);
    if (type == GGUF_TYPE_ARRAY)
        printf(" (%zu x %s)\n", gguf_get_arr_n(g, id), gguf_type_name(gguf_get_arr_type(g, id)));
    else
        printf(" (%s)\n", gguf_type_name(type));
}

static void print_tensors(const struct gguf_context *g, const struct sums *sums) {
    uint64_t total = 0, params = 0, by_type[GGML_TYPE_COUNT] = {0};
    for (int64_t i = 0; i < gguf_get_n_tensors(g); i++) {
        const int64_t *ne = gguf_get_tensor_ne(g, i);
        const char *name = gguf_get_tensor_name(g, i);
        char shape[96];
        snprintf(shape, sizeof(shape), "{%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "}", ne[0], ne[1], ne[2], ne[3]);
        printf("%5" PRId64 "  %-8s %-28s %12zu  ", i, ggml_type_name(gguf_get_tensor_type(g, i)), shape,
               gguf_get_tensor_size(g, i));
        if (sums) printf("%08x  ", sums->tensor[i]);
        console_escaped(stdout, name, strlen(name));
        fputc('\n', stdout);
        total += gguf_get_tensor_size(g, i);
        params += (uint64_t) (ne[0] * ne[1] * ne[2] * ne[3]);
        by_type[gguf_get_tensor_type(g, i)] += gguf_get_tensor_size(g, i);
    }
    char b[32];
    printf("\n%" PRId64 " tensors, %.3f million elements, %s", gguf_get_n_tensors(g), (double) params / 1e6,
           console_bytes(b, (double) total));
    for (int t = 0; t < GGML_TYPE_COUNT; t++)
        if (by_type[t]) printf(", %s %s", ggml_type_name((enum ggml_type) t), console_bytes(b, (double) by_type[t]));
    fputc('\n', stdout);
    if (sums) printf("crc32 of all weights: %08x\n", sums->all);
}

static int run(struct params *p) {
    const char *path = p->n_args ? p->args[0] : p->model;
    if (!path) {
        console_error("`lamina inspect` needs a file");
        return 2;
    }
    if (p->n_args > 1 && strcmp(p->args[1], "r") != 0) {
        console_error("'%s' behind the file is no mode; files are read ('r'), and nothing is written", p->args[1]);
        return 2;
    }
    struct gguf_context *g = gguf_init_from_file(path, (struct gguf_init_params){.no_alloc = true});
    if (!g) return console_library_error();
    struct sums sums = {0};
    int status = p->checksum ? checksums(g, path, &sums) : 0;
    if (!status && p->json)
        print_json(g, p->checksum ? &sums : NULL);
    else if (!status) {
        printf("%s: GGUF version %u, %" PRId64 " keys, data from byte %zu, alignment %zu\n\n", path, gguf_get_version(g),
               gguf_get_n_kv(g), gguf_get_data_offset(g), gguf_get_alignment(g));
        for (int64_t i = 0; i < gguf_get_n_kv(g); i++) print_key(g, i);
        fputc('\n', stdout);
        print_tensors(g, p->checksum ? &sums : NULL);
    }
    free(sums.tensor);
    gguf_free(g);
    return status;
}

const struct tool tool_inspect = {
    .name = "inspect",
    .alias = "llama-gguf",
    .summary = "Shows the keys and tensors of a GGUF file",
    .args = "MODEL [r]",
    .max_args = 2,
    .groups = G_MODEL | G_INSPECT | G_JSON,
    .run = run,
};
