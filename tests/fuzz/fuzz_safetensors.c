// Checkpoints: whatever the safetensors file, config.json and the tokenizer's files hold, converting refuses or writes a GGUF file that
// reads back. Input: one byte (bit 0: the tokenizer is tokenizer.model, bit 1: Q8_0), three u16 lengths, then the files end to end:
// config.json, the tokenizer, tokenizer_config.json, model.safetensors (all that is left).
#include "fuzz.h"
#include "ggml.h"
#include "gguf.h"
#include "ggml/ext.h"
#include "llama/ext.h"

#include <stdio.h>
#include <unistd.h>

static char dir[64];

static void path_of(char out[128], const char *name) { snprintf(out, 128, "%s/%s", dir, name); }

static void clean(void) {
    static const char *const names[] = {"config.json",           "tokenizer.json",    "tokenizer.model",
                                        "tokenizer_config.json", "model.safetensors", "out.gguf"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        path_of(path, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

static void make_dir(void) {
    snprintf(dir, sizeof dir, "%s/lamina-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    FUZZ_CHECK(mkdtemp(dir));
    atexit(clean);
}

static void put_file(const char *name, const uint8_t *data, size_t n) {
    char path[128];
    path_of(path, name);
    FILE *f = fopen(path, "wb");
    FUZZ_CHECK(f && fwrite(data, 1, n, f) == n);
    fclose(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[2][4] = {
        {"config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"},
        {"config.json", "tokenizer.model", "tokenizer_config.json", "model.safetensors"}};
    if (size < 7) return 0;
    if (!*dir) make_dir();
    const int model = data[0] & 1;
    const uint8_t *p = data + 7;
    size_t left = size - 7;
    char path[128];
    path_of(path, names[!model][1]);
    unlink(path);
    for (int i = 0; i < 4; i++) {
        size_t n = i < 3 ? (size_t) data[1 + 2 * i] | (size_t) data[2 + 2 * i] << 8 : left;
        if (n > left) n = left;
        put_file(names[model][i], p, n);
        p += n;
        left -= n;
    }
    struct llama_convert_params cp = llama_convert_default_params();
    if (data[0] & 2) cp.type = GGML_TYPE_Q8_0;
    path_of(path, "out.gguf");
    if (llama_model_convert(dir, path, &cp) == 0) {
        struct ggml_context *ctx = NULL;
        struct gguf_context *g = gguf_init_from_file(path, (struct gguf_init_params){.ctx = &ctx});
        FUZZ_CHECK(g && ctx);
        gguf_free(g);
        ggml_free(ctx);
        unlink(path);
    } else {
        FUZZ_CHECK(*ggml_last_error() && access(path, F_OK) != 0);
    }
    ggml_clear_error();
    return 0;
}

// ---- seeds -----------------------------------------------------------------------------------------------------------------

struct maker {
    char header[4096];
    size_t n;     // of the header's text
    size_t data;  // bytes so far
};

static void tensor(struct maker *m, const char *name, const char *type, size_t size, int a, int b) {
    const size_t bytes = size * (size_t) a * (size_t) (b ? b : 1);
    char shape[32];
    snprintf(shape, sizeof shape, b ? "%d,%d" : "%d", a, b);
    m->n += (size_t) snprintf(m->header + m->n, sizeof m->header - m->n,
                              "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}", m->n ? "," : "{",
                              name, type, shape, m->data, m->data + bytes);
    m->data += bytes;
}

static void finish(fuzz_put put, void *to, uint8_t flags, const char *config, const void *tokenizer, size_t n_tokenizer,
                   const char *settings, struct maker *m) {
    static uint8_t out[1 << 15];
    const size_t n[3] = {strlen(config), n_tokenizer, strlen(settings)};
    const void *part[3] = {config, tokenizer, settings};
    size_t at = 7;
    out[0] = flags;
    for (int i = 0; i < 3; i++) {
        out[1 + 2 * i] = (uint8_t) n[i];
        out[2 + 2 * i] = (uint8_t) (n[i] >> 8);
        memcpy(out + at, part[i], n[i]);
        at += n[i];
    }
    m->header[m->n++] = '}';
    const uint64_t head = m->n;
    memcpy(out + at, &head, 8);
    memcpy(out + at + 8, m->header, m->n);
    at += 8 + m->n;
    FUZZ_CHECK(at + m->data <= sizeof out);
    for (size_t i = 0; i < m->data; i++) out[at + i] = (uint8_t) (i * 7 % 61);
    put(to, out, at + m->data);
}

#define V 12
#define E 8

static void attention(struct maker *m) {
    tensor(m, "model.embed_tokens.weight", "BF16", 2, V, E);
    tensor(m, "model.norm.weight", "F32", 4, E, 0);
    tensor(m, "model.layers.0.input_layernorm.weight", "F32", 4, E, 0);
    tensor(m, "model.layers.0.post_attention_layernorm.weight", "F32", 4, E, 0);
    tensor(m, "model.layers.0.self_attn.q_proj.weight", "F16", 2, E, E);
    tensor(m, "model.layers.0.self_attn.k_proj.weight", "F16", 2, E / 2, E);
    tensor(m, "model.layers.0.self_attn.v_proj.weight", "F16", 2, E / 2, E);
    tensor(m, "model.layers.0.self_attn.o_proj.weight", "F16", 2, E, E);
}

static const char bpe[] =
    "{\"added_tokens\":[{\"id\":10,\"content\":\"<s>\",\"special\":true},{\"id\":11,\"content\":\"</s>\",\"special\":true}],"
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\p{N}\"},"
    "\"behavior\":\"Isolated\"},"
    "{\"type\":\"ByteLevel\",\"use_regex\":true}]},"
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"abc\":4,\"d\":5},\"merges\":[\"a "
    "b\",[\"ab\",\"c\"]]}}";
static const char fallback[] =
    "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"<unk>\":0,\"<0x41>\":1,\"\xe2\x96\x81"
    "a\":2,\"b\":3},\"merges\":[]}}";
static const char unigram[] = "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0.0],[\"\xe2\x96\x81\",-"
                              "1.5],[\"the\",-2],[\"<0x41>\",-3e1]]}}";
static const char wordpiece[] = "{\"added_tokens\":[{\"id\":1,\"content\":\"[CLS]\",\"special\":true}],"
                                "\"model\":{\"vocab\":{\"[UNK]\":0,\"a\":2,\"##b\":3,\"un\":4,\"##able\":5}}}";
static const char settings[] =
    "{\"bos_token\":\"<s>\",\"eos_token\":{\"content\":\"</s>\"},\"add_bos_token\":true,\"chat_template\":\"{{x}}\","
    "\"added_tokens_decoder\":{\"9\":{\"content\":\"<x>\",\"special\":false}}}";
// pieces "<unk>" (unknown), "a" (-1.0), then the trainer's and the normalizer's facts
static const uint8_t spm[] = {0x0a, 0x0e, 0x0a, 5,    '<',  'u',  'n',  'k',  '>',  0x15, 0,    0,    0,    0,
                              0x18, 2,    0x0a, 0x08, 0x0a, 1,    'a',  0x15, 0,    0,    0x80, 0xbf, 0x12, 0x05,
                              0x18, 0x01, 0xc8, 0x02, 0x01, 0x1a, 0x07, 0x12, 0x01, 0x00, 0x18, 0x01, 0x20, 0x00};

void fuzz_seeds(fuzz_put put, void *to) {
    static const char llama[] = "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":8,\"num_hidden_layers\":1,"
                                "\"intermediate_size\":16,\"num_attention_heads\":2,"
                                "\"num_key_value_heads\":1,\"head_dim\":4,\"max_position_embeddings\":64,\"vocab_size\":12,"
                                "\"rms_norm_eps\":1e-5,\"rope_theta\":10000.0,"
                                "\"bos_token_id\":1,\"eos_token_id\":[2,3],\"rope_scaling\":{\"rope_type\":\"yarn\","
                                "\"factor\":2.0,\"original_max_position_embeddings\":32}}";
    static const char mixtral[] = "{\"architectures\":[\"MixtralForCausalLM\"],\"hidden_size\":8,\"num_hidden_layers\":1,"
                                  "\"intermediate_size\":16,\"num_attention_heads\":2,"
                                  "\"num_key_value_heads\":1,\"max_position_embeddings\":64,\"vocab_size\":12,\"rms_norm_"
                                  "eps\":1e-5,\"rope_theta\":1e4,\"num_local_experts\":2,"
                                  "\"num_experts_per_tok\":1}";
    static const char gpt2[] = "{\"architectures\":[\"GPT2LMHeadModel\"],\"n_embd\":8,\"n_layer\":1,\"n_head\":2,\"n_"
                               "positions\":64,\"vocab_size\":12,\"layer_norm_epsilon\":1e-5}";
    const struct {
        const void *text;
        size_t n;
        uint8_t flags;
    } tokenizers[] = {{bpe, sizeof bpe - 1, 0},
                      {fallback, sizeof fallback - 1, 2},
                      {unigram, sizeof unigram - 1, 0},
                      {wordpiece, sizeof wordpiece - 1, 0},
                      {spm, sizeof spm, 1}};
    for (size_t i = 0; i < sizeof tokenizers / sizeof *tokenizers; i++) {
        struct maker m = {0};
        attention(&m);
        tensor(&m, "model.layers.0.mlp.gate_proj.weight", "F32", 4, 2 * E, E);
        tensor(&m, "model.layers.0.mlp.up_proj.weight", "F32", 4, 2 * E, E);
        tensor(&m, "model.layers.0.mlp.down_proj.weight", "F32", 4, E, 2 * E);
        if (i == 0) tensor(&m, "lm_head.weight", "F16", 2, V, E);
        finish(put, to, tokenizers[i].flags, llama, tokenizers[i].text, tokenizers[i].n, settings, &m);
    }
    struct maker m = {0};
    attention(&m);
    tensor(&m, "model.layers.0.block_sparse_moe.gate.weight", "F32", 4, 2, E);
    for (int x = 0; x < 2; x++)
        for (int w = 1; w <= 3; w++) {
            char name[96];
            snprintf(name, sizeof name, "model.layers.0.block_sparse_moe.experts.%d.w%d.weight", x, w);
            tensor(&m, name, "F16", 2, w == 2 ? E : 2 * E, w == 2 ? 2 * E : E);
        }
    finish(put, to, 0, mixtral, bpe, sizeof bpe - 1, "{}", &m);
    m = (struct maker){0};
    tensor(&m, "wte.weight", "F32", 4, V, E);
    tensor(&m, "wpe.weight", "F32", 4, 64, E);
    tensor(&m, "ln_f.weight", "F32", 4, E, 0);
    tensor(&m, "ln_f.bias", "F32", 4, E, 0);
    static const struct {
        const char *name;
        int in, out;
    } parts[] = {{"ln_1", E, 0},        {"ln_2", E, 0},         {"attn.c_attn", E, 3 * E},
                 {"attn.c_proj", E, E}, {"mlp.c_fc", E, 4 * E}, {"mlp.c_proj", 4 * E, E}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char name[64];
        snprintf(name, sizeof name, "h.0.%s.weight", parts[i].name);
        tensor(&m, name, "F16", 2, parts[i].in, parts[i].out);
        snprintf(name, sizeof name, "h.0.%s.bias", parts[i].name);
        tensor(&m, name, "F32", 4, parts[i].out ? parts[i].out : parts[i].in, 0);
    }
    finish(put, to, 0, gpt2, bpe, sizeof bpe - 1, "{}", &m);
}
