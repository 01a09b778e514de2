// Small vocabularies of every kind, as GGUF contexts.
#pragma once

#include "fuzz.h"
#include "gguf.h"

static const char *const fuzz_pres[] = {"gpt-2",      "llama-bpe", "qwen2",   "smollm", "deepseek-llm", "deepseek-v3",
                                        "gpt-4o",     "tekken",    "kimi-k2", "afmoe",  "superbpe",     "tiny_aya",
                                        "exaone-moe", "chameleon", "jais-2",  "bloom"};
enum { FUZZ_N_BPE = sizeof fuzz_pres / sizeof *fuzz_pres, FUZZ_N_VOCAB = FUZZ_N_BPE + 6 };

static inline void fuzz_bytes(const char **tokens, char text[256][8]) {
    for (int b = 0, next = 0; b < 256; b++) {
        uint32_t c = (b > 32 && b < 127) || (b > 160 && b != 173) ? (uint32_t) b : 256 + (uint32_t) next++;
        memset(text[b], 0, 8);
        text[b][0] = (char) (c < 128 ? c : 0xc0 | c >> 6);
        if (c >= 128) text[b][1] = (char) (0x80 | (c & 63));
        tokens[b] = text[b];
    }
}

static inline struct gguf_context *fuzz_vocab(int kind) {
    static const char *const models[] = {"llama", "t5", "bert", "rwkv", "plamo2", "gemma4"};
    static const char *const words[] = {"\xe2\x96\x81",
                                        "\xe2\x96\x81the",
                                        "the",
                                        "t",
                                        "h",
                                        "e",
                                        "he",
                                        "th",
                                        "\xe2\x96\x81t",
                                        "ab",
                                        "a",
                                        "b",
                                        "abc",
                                        "c",
                                        "\xe4\xb8\xad",
                                        "!",
                                        "!!",
                                        "\\n",
                                        "\\xe4",
                                        "x y",
                                        "\xe2\x96\x81\xe2\x96\x81",
                                        " ",
                                        "\n"};
    struct gguf_context *g = gguf_init_empty();
    const char *tokens[600];
    int32_t types[600], n = 0;
    float scores[600];
    static char text[256][8];
    bool bpe = kind < FUZZ_N_BPE;
    gguf_set_val_str(g, "tokenizer.ggml.model", bpe ? "gpt2" : models[kind - FUZZ_N_BPE]);
    if (bpe) {
        gguf_set_val_str(g, "tokenizer.ggml.pre", fuzz_pres[kind]);
        fuzz_bytes(tokens, text);
        for (; n < 256; n++) types[n] = 1;
    } else {
        static const char *const first[] = {"<unk>", "<s>", "</s>", "<pad>"};
        for (; n < 4; n++) {
            tokens[n] = first[n];
            types[n] = n == 0 ? 2 : 3;
        }
        for (int b = 0; b < 256 && kind != FUZZ_N_BPE + 2; b++, n++) {
            snprintf(text[b], 8, "<0x%02X>", (unsigned) b);
            tokens[n] = text[b];
            types[n] = kind == FUZZ_N_BPE + 3 ? 1 : 6;
        }
        for (size_t i = 0; i < sizeof words / sizeof *words; i++, n++) {
            tokens[n] = words[i];
            types[n] = i % 11 == 10 ? 4 : 1;
        }
    }
    tokens[n] = "<|im_start|>";
    types[n++] = 3;
    tokens[n] = "<tool>";
    types[n++] = 4;
    for (int32_t i = 0; i < n; i++) scores[i] = -(float) (i % 37);
    gguf_set_arr_str(g, "tokenizer.ggml.tokens", tokens, (size_t) n);
    gguf_set_arr_data(g, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types, (size_t) n);
    gguf_set_arr_data(g, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores, (size_t) n);
    gguf_set_arr_str(g, "tokenizer.ggml.merges",
                     (const char *[]){"t h", "th e", "a b", "ab c", "\xe2\x96\x81 t", "\xc4\xa0 t"}, 6);
    gguf_set_val_u32(g, "tokenizer.ggml.bos_token_id", 1);
    gguf_set_val_bool(g, "tokenizer.ggml.add_bos_token", kind % 2);
    return g;
}
