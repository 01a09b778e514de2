// Checkpoints: whatever the safetensors file, config.json and the tokenizer's files hold, converting refuses or writes a GGUF file that
// reads back. Input: one byte (bit 0: the tokenizer is tokenizer.model, bit 1: Q8_0, bits 2 to 4: the tokenizer is another file of `vocabularies`,
// bits 5 to 7: there is one of `others`), three u16 lengths, then the files end to end: config.json (none if it is empty: some checkpoints
// have none), the tokenizer, tokenizer_config.json, that other one (a u16 length before it), model.safetensors (all that is left).
#include "fuzz.h"
#include "ggml.h"
#include "gguf.h"
#include "ggml/ext.h"
#include "llama/ext.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static const char *const vocabularies[] = {"tokenizer.json",           "tokenizer.model", "spiece.model",
                                           "sentencepiece.bpe.model",  "vocab.txt",       "tokenizer.jsonl",
                                           "rwkv_vocab_v20230424.txt", "tiktoken.model",  "qwen.tiktoken"};
static const char *const others[] = {"special_tokens_map.json", "added_tokens.json", "chat_template.jinja",
                                     "1_Pooling/config.json", "model.safetensors.index.json"};
#define COUNT(x) (sizeof(x) / sizeof(*(x)))

static void path_of(char out[128], const char *name) { snprintf(out, 128, "%s/%s", dir, name); }

static void drop(const char *const *names, size_t n) {
    char path[128];
    for (size_t i = 0; i < n; i++) {
        path_of(path, names[i]);
        unlink(path);
    }
}

static void drop_parts(void) {
    drop((const char *const[]){"config.json"}, 1);
    drop(vocabularies, COUNT(vocabularies));
    drop(others, COUNT(others));
}

static void clean(void) {
    char path[128];
    drop_parts();
    drop((const char *const[]){"tokenizer_config.json", "model.safetensors", "out.gguf"}, 3);
    path_of(path, "1_Pooling");
    rmdir(path);
    rmdir(dir);
}

static void make_dir(void) {
    snprintf(dir, sizeof dir, "%s/lamina-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    char path[128];
    FUZZ_CHECK(mkdtemp(dir));
    path_of(path, "1_Pooling");
    FUZZ_CHECK(mkdir(path, 0700) == 0);
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
    if (size < 7) return 0;
    if (!*dir) make_dir();
    const unsigned kind = data[0] >> 2 & 7, other = data[0] >> 5;
    const char *const names[] = {"config.json", vocabularies[kind ? kind + 1 : data[0] & 1], "tokenizer_config.json",
                                 other && other <= COUNT(others) ? others[other - 1] : NULL, "model.safetensors"};
    const uint8_t *p = data + 7;
    size_t left = size - 7;
    char path[128];
    drop_parts();
    for (int i = 0; i < 5; i++) {
        if (!names[i]) continue;
        size_t n = left;
        if (i < 3) n = (size_t) data[1 + 2 * i] | (size_t) data[2 + 2 * i] << 8;
        if (i == 3 && left < 2) break;
        if (i == 3) n = (size_t) p[0] | (size_t) p[1] << 8, p += 2, left -= 2;
        if (n > left) n = left;
        if (i > 0 || n > 0) put_file(names[i], p, n);
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
    char header[8192];
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

static void finish_with(fuzz_put put, void *to, uint8_t flags, const char *config, const void *tokenizer, size_t n_tokenizer,
                        const char *settings, const char *other, struct maker *m) {
    static uint8_t out[1 << 16];
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
    if (flags >> 5) {
        const size_t n_other = strlen(other);
        out[at++] = (uint8_t) n_other;
        out[at++] = (uint8_t) (n_other >> 8);
        memcpy(out + at, other, n_other);
        at += n_other;
    }
    if (m->n == 0) m->header[m->n++] = '{';
    m->header[m->n++] = '}';
    const uint64_t head = m->n;
    memcpy(out + at, &head, 8);
    memcpy(out + at + 8, m->header, m->n);
    at += 8 + m->n;
    FUZZ_CHECK(at + m->data <= sizeof out);
    for (size_t i = 0; i < m->data; i++) out[at + i] = (uint8_t) (i * 7 % 61);
    put(to, out, at + m->data);
}

static void finish(fuzz_put put, void *to, uint8_t flags, const char *config, const void *tokenizer, size_t n_tokenizer,
                   const char *settings, struct maker *m) {
    finish_with(put, to, flags, config, tokenizer, n_tokenizer, settings, "", m);
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

// A whole checkpoint: tensors with their types and sides.
struct row {
    const char *name, *type;
    int size, a, b;
};

static void rows(struct maker *m, const char *prefix, const struct row *r, size_t n) {
    char name[128];
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s%s", prefix, r[i].name);
        tensor(m, name, r[i].type, (size_t) r[i].size, r[i].a, r[i].b);
    }
}

#define HALF(name, a, b)                                                                                                    \
    { name ".weight", "F16", 2, a, b }
#define FULL(name, a)                                                                                                       \
    { name, "F32", 4, a, 0 }
#define PACKED(name, a, b)                                                                                                  \
    {name ".weight_packed", "U8", 1, a, (b) / 2}, { name ".weight_scale", "U8", 1, a, (b) / 32 }

// Kimi K3: products of vectors, a cut, packed experts that work on 32 values.
static void seed_kimi(fuzz_put put, void *to) {
    static const char config[] =
        "{\"architectures\":[\"KimiK3ForCausalLM\"],\"text_config\":{\"hidden_size\":8,\"num_hidden_layers\":1,"
        "\"intermediate_size\":16,"
        "\"num_attention_heads\":2,\"num_key_value_heads\":2,\"max_position_embeddings\":64,\"vocab_size\":12,\"rms_norm_"
        "eps\":1e-5,"
        "\"kv_lora_rank\":4,\"q_lora_rank\":4,\"qk_nope_head_dim\":4,\"qk_rope_head_dim\":2,\"v_head_dim\":4,\"num_"
        "experts\":1,"
        "\"num_experts_per_token\":1,\"num_shared_experts\":1,\"moe_intermediate_size\":32,\"first_k_dense_replace\":0,"
        "\"routed_expert_hidden_size\":32,\"attn_res_block_size\":1,\"linear_attn_config\":{\"kda_layers\":[1],\"head_dim\":"
        "4,"
        "\"short_conv_kernel_size\":2,\"gate_lower_bound\":-5.0}}}";
    static const struct row model[] = {HALF("embed_tokens", V, E), FULL("norm.weight", E),
                                       FULL("output_attn_res_norm.weight", E), FULL("output_attn_res_proj.weight", E)};
    static const struct row layer[] = {FULL("input_layernorm.weight", E),
                                       FULL("post_attention_layernorm.weight", E),
                                       FULL("self_attention_res_norm.weight", E),
                                       FULL("self_attention_res_proj.weight", E),
                                       FULL("mlp_res_norm.weight", E),
                                       FULL("mlp_res_proj.weight", E),
                                       HALF("self_attn.q_proj", 8, E),
                                       HALF("self_attn.k_proj", 8, E),
                                       HALF("self_attn.v_proj", 8, E),
                                       HALF("self_attn.q_conv1d", 8, 2),
                                       HALF("self_attn.k_conv1d", 8, 2),
                                       HALF("self_attn.v_conv1d", 8, 2),
                                       FULL("self_attn.A_log", 3),
                                       FULL("self_attn.dt_bias", 8),
                                       HALF("self_attn.b_proj", 2, E),
                                       HALF("self_attn.f_a_proj", 4, E),
                                       HALF("self_attn.f_b_proj", 8, 4),
                                       HALF("self_attn.g_proj", 8, E),
                                       FULL("self_attn.o_norm.weight", 4),
                                       {"self_attn.o_proj.weight", "F8_E4M3", 1, E, 8},
                                       {"self_attn.o_proj.scale", "F8_E8M0", 1, 1, 1},
                                       HALF("block_sparse_moe.gate", 1, E),
                                       FULL("block_sparse_moe.gate.e_score_correction_bias", 1),
                                       HALF("block_sparse_moe.routed_expert_down_proj", 32, E),
                                       HALF("block_sparse_moe.routed_expert_up_proj", E, 32),
                                       FULL("block_sparse_moe.routed_expert_norm.weight", 32),
                                       {"block_sparse_moe.experts.0.w1.weight", "I8", 1, 32, 16},
                                       {"block_sparse_moe.experts.0.w1.scale", "F8_E8M0", 1, 32, 1},
                                       PACKED("block_sparse_moe.experts.0.w2", 32, 32),
                                       PACKED("block_sparse_moe.experts.0.w3", 32, 32),
                                       HALF("block_sparse_moe.shared_experts.gate_proj", 32, E),
                                       HALF("block_sparse_moe.shared_experts.up_proj", 32, E),
                                       HALF("block_sparse_moe.shared_experts.down_proj", E, 32)};
    static const char ranks[] = "YQ== 0\nYg== 1\nYWI= 2\nw6k= 3\r\nYWJhYg== 4\n";
    struct maker m = {0};
    rows(&m, "language_model.model.", model, COUNT(model));
    tensor(&m, "language_model.lm_head.weight", "F16", 2, V, E);
    rows(&m, "language_model.model.layers.0.", layer, COUNT(layer));
    finish_with(put, to, 6 << 2 | 2 << 5, config, ranks, sizeof ranks - 1, settings, "{\"<pad>\":7,\"x\":1}", &m);
}

// Talkie's gains, heads that turn backwards; a vocabulary of tiktoken's under BERT's name. Pocket TTS without a config.json.
static void seed_gains(fuzz_put put, void *to) {
    static const char config[] =
        "{\"architectures\":[\"TalkieForCausalLM\"],\"n_layer\":1,\"n_head\":2,\"n_embd\":8,\"head_dim\":4,"
        "\"intermediate_size\":16,\"vocab_size\":12,\"max_seq_len\":64}";
    static const struct row talkie[] = {HALF("embed", V, E),
                                        {"lm_head", "BF16", 2, V, E},
                                        FULL("lm_head_gain.w_g", 1),
                                        HALF("blocks.0.attn.attn_query", E, E),
                                        HALF("blocks.0.attn.attn_key", E, E),
                                        HALF("blocks.0.attn.attn_value", E, E),
                                        HALF("blocks.0.attn.attn_resid", E, E),
                                        FULL("blocks.0.attn.head_gain.head_g", 2),
                                        FULL("blocks.0.attn_gain.a_g", 1),
                                        HALF("blocks.0.mlp.mlp_gate", 16, E),
                                        HALF("blocks.0.mlp.mlp_linear", 16, E),
                                        HALF("blocks.0.mlp.mlp_resid", E, 16),
                                        FULL("blocks.0.mlp_gain.a_g", 1),
                                        FULL("blocks.0.embed_skip.a_g", 1)};
    static const struct row pocket[] = {HALF("conditioner.embed", V, 64),
                                        FULL("out_norm.weight", 64),
                                        FULL("out_norm.bias", 64),
                                        FULL("transformer.layers.0.norm1.weight", 64),
                                        FULL("transformer.layers.0.norm1.bias", 64),
                                        HALF("transformer.layers.0.self_attn.in_proj", 192, 64),
                                        HALF("transformer.layers.0.self_attn.out_proj", 64, 64),
                                        FULL("transformer.layers.0.norm2.weight", 64),
                                        FULL("transformer.layers.0.norm2.bias", 64),
                                        HALF("transformer.layers.0.linear1", 16, 64),
                                        HALF("transformer.layers.0.linear2", 64, 16)};
    static const char ranks[] = "YQ== 0\nYg== 1\nYWI= 2\n";
    struct maker m = {0};
    rows(&m, "", talkie, COUNT(talkie));
    finish(put, to, 3 << 2, config, ranks, sizeof ranks - 1, "{}", &m);
    m = (struct maker){0};
    rows(&m, "flow_lm.", pocket, COUNT(pocket));
    finish(put, to, 1, "", spm, sizeof spm, "{}", &m);
}

// What config.json says, for classes whose layers, heads or rotations come from values of their own; vocabularies that have a line for each token.
// Few of their tensors are there.
static void seed_classes(fuzz_put put, void *to) {
    static const char *const classes[] = {"GptOssForCausalLM",
                                          "NemotronHForCausalLM",
                                          "Lfm2MoeForCausalLM",
                                          "JambaForCausalLM",
                                          "Plamo2ForCausalLM",
                                          "DeciLMForCausalLM",
                                          "DeepseekV4ForCausalLM",
                                          "MiMoV2FlashForCausalLM",
                                          "Gemma4ForCausalLM",
                                          "Dots3NoteForCausalLM",
                                          "GraniteMoeHybridForCausalLM",
                                          "Qwen3NextForCausalLM",
                                          "T5ForConditionalGeneration",
                                          "BertModel",
                                          "XLMRobertaForSequenceClassification",
                                          "NomicBertModel",
                                          "HrmTextForCausalLM",
                                          "Rwkv6ForCausalLM",
                                          "RWKV7ForCausalLM",
                                          "FalconH1ForCausalLM",
                                          "OpenELMForCausalLM",
                                          "MPTForCausalLM",
                                          "FalconForCausalLM",
                                          "Phi3ForCausalLM",
                                          "DeepseekV3ForCausalLM",
                                          "QWenLMHeadModel",
                                          "BaichuanForCausalLM",
                                          "Grok1ForCausalLM",
                                          "SmallThinkerForCausalLM",
                                          "InternLM2ForCausalLM"};
    static const char values[] = "\"hidden_size\":8,\"n_embd\":8,\"d_model\":8,\"num_hidden_layers\":2,\"num_layers\":2,"
                                 "\"intermediate_size\":16,\"num_attention_heads\":2,"
                                 "\"num_key_value_heads\":1,\"head_dim\":4,\"max_position_embeddings\":64,\"vocab_size\":12,"
                                 "\"rms_norm_eps\":1e-5,\"layer_norm_eps\":1e-5,"
                                 "\"rope_theta\":1e4,\"num_experts\":2,\"num_experts_per_tok\":1,\"moe_intermediate_size\":"
                                 "8,\"sliding_window\":8,\"layer_types\":"
                                 "[\"sliding_attention\",\"full_attention\"],\"mlp_layer_types\":[\"dense\",\"sparse\"],"
                                 "\"hybrid_override_pattern\":\"M*E-\",\"full_attn_idxs\":[1],"
                                 "\"attn_layer_period\":2,\"mamba_step\":2,\"compress_ratios\":[0,4],\"hybrid_layer_"
                                 "pattern\":[1,0],\"kv_lora_rank\":4,\"q_lora_rank\":4,"
                                 "\"qk_nope_head_dim\":4,\"qk_rope_head_dim\":2,\"v_head_dim\":4,\"mamba_d_ssm\":16,\"mamba_"
                                 "d_conv\":4,\"mamba_d_state\":4,\"mamba_n_heads\":2,"
                                 "\"mamba_n_groups\":1,\"linear_conv_kernel_dim\":4,\"linear_key_head_dim\":4,\"linear_num_"
                                 "key_heads\":1,\"linear_num_value_heads\":2,"
                                 "\"linear_value_head_dim\":4,\"block_configs\":[{\"attention\":{\"no_op\":true},\"ffn\":{"
                                 "\"ffn_mult\":1.5}},{\"attention\":{\"n_heads_in_group\":2},"
                                 "\"ffn\":{\"no_op\":true}}],\"rope_parameters\":{\"rope_type\":\"longrope\",\"long_"
                                 "factor\":[1,2],\"short_factor\":[1,1],\"sliding_attention\":"
                                 "{\"rope_theta\":100,\"partial_rotary_factor\":0.5},\"mrope_section\":[1,1,0]},\"partial_"
                                 "rotary_factor\":0.5,\"quantization_config\":"
                                 "{\"weight_block_size\":[4,4]},\"type_vocab_size\":2,\"relative_attention_num_buckets\":8,"
                                 "\"H_cycles\":1,\"L_cycles\":2,\"head_size\":4,\"n_shared_experts\":1,"
                                 "\"conv_L_cache\":3,\"routed_scaling_factor\":1.5,\"mamba_num_heads\":2,\"hidden_size_per_"
                                 "head\":4,\"swa_kv_lora_rank\":"
                                 "4,\"moe_primary_router_apply_softmax\":false";
    static const char lines[][96] = {"[PAD]\r\n[UNK]\n[unused1]\nhello\n##s\n",
                                     "[\"<unk>\",0.0,\"UNKNOWN\"]\n[\"<0x41>\",0,\"BYTE\"]\n[\"a\",-1.5,\"NORMAL\",1]\n",
                                     "1 'a' 1\n2 b'\\xe8\\xaa' 2\n3 \"it's\" 4\n4 '\\n\\n' 2\n5 '\\u8a9e' 3\n",
                                     "YQ== 0\nYg== 1\nYWI= 2\n", "PHw= 0\nPA== 1\nfA== 2\n"};
    static const char *const more[COUNT(others)] = {"{\"unk_token\":\"[UNK]\",\"pad_token\":{\"content\":\"[PAD]\"}}",
                                                    "{\"x\":5,\"y\":99}", "{{ x }}\n", "{\"pooling_mode_mean_tokens\":true}",
                                                    "{\"weight_map\":{\"a\":\"model.safetensors\"}}"};
    static const char *const embeddings[] = {"model.embed_tokens.weight", "wte.weight", "embeddings.word_embeddings.weight",
                                             "rwkv.embeddings.weight", "shared.weight"};
    for (size_t i = 0; i < COUNT(classes); i++) {
        char config[4096];
        snprintf(config, sizeof config, "{\"architectures\":[\"%s\"],%s}", classes[i], values);
        struct maker m = {0};
        for (size_t j = 0; j < COUNT(embeddings); j++) tensor(&m, embeddings[j], "F16", 2, V, E);
        tensor(&m, "model.norm.weight", "F32", 4, E, 0);
        tensor(&m, "lm_head.weight", "F16", 2, V, E);
        tensor(&m, "model.layers.0.self_attn.q_proj.weight", "F8_E4M3", 1, E, E);
        tensor(&m, "model.layers.0.self_attn.q_proj.weight_scale_inv", "F32", 4, 2, 2);
        tensor(&m, "model.layers.0.mlp.experts.down_proj_blocks", "U8", 1, 2, 16);
        tensor(&m, "model.layers.0.mlp.experts.down_proj_scales", "U8", 1, 2, 0);
        const size_t line = i % COUNT(lines), other = i % (COUNT(others) + 1);
        finish_with(put, to, (uint8_t) ((3 + line) << 2 | other << 5), config, lines[line], strlen(lines[line]), settings,
                    other ? more[other - 1] : "", &m);
    }
}

void fuzz_seeds(fuzz_put put, void *to) {
    seed_kimi(put, to);
    seed_gains(put, to);
    seed_classes(put, to);
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
                      {spm, sizeof spm, 1},
                      {spm, sizeof spm, 1 << 2},
                      {spm, sizeof spm, 2 << 2}};
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
