// The formats, one entry each. Sources: the chat templates that the models' makers publish.
#include "chat/chat.h"

#define BAR "\xef\xbd\x9c"  // the full-width bar of DeepSeek and Hunyuan
#define LOW "\xe2\x96\x81"  // U+2581
#define USER_RU " \xd0\x9f\xd0\xbe\xd0\xbb\xd1\x8c\xd0\xb7\xd0\xbe\xd0\xb2\xd0\xb0\xd1\x82\xd0\xb5\xd0\xbb\xd1\x8c: "
#define ASSISTANT_RU " \xd0\x90\xd1\x81\xd1\x81\xd0\xb8\xd1\x81\xd1\x82\xd0\xb5\xd0\xbd\xd1\x82:"
#define USER_ZH "<\xe7\x94\xa8\xe6\x88\xb7>"
#define SYSTEM_PANGU "[unused9]\xe7\xb3\xbb\xe7\xbb\x9f\xef\xbc\x9a"
#define USER_PANGU "[unused9]\xe7\x94\xa8\xe6\x88\xb7\xef\xbc\x9a"
#define HELPER_PANGU "[unused9]\xe5\x8a\xa9\xe6\x89\x8b\xef\xbc\x9a"
#define TOOL_PANGU "[unused9]\xe5\xb7\xa5\xe5\x85\xb7\xef\xbc\x9a"
#define METHOD_PANGU "[unused9]\xe6\x96\xb9\xe6\xb3\x95\xef\xbc\x9a"

// ---- formats that are more than turns

// Llama 2: [INST] ... [/INST] around system and user, the answer behind it.
enum { LLAMA2_SYS = CHAT_OWN, LLAMA2_BOS = CHAT_OWN * 2, LLAMA2_STRIP = CHAT_OWN * 4 };

static void llama2(const struct chat_format *f, struct chat_out *o, const llama_chat_message *chat, size_t n, bool ask) {
    (void) ask;
    bool inside = true, strip = f->flags & LLAMA2_STRIP;
    chat_put(o, "[INST] ");
    for (size_t i = 0; i < n; i++) {
        if (!inside) chat_put(o, f->flags & LLAMA2_BOS ? "<s>[INST] " : "[INST] ");
        inside = true;
        if (chat_is(&chat[i], "system")) {
            if (f->flags & LLAMA2_SYS) chat_put(o, "<<SYS>>\n");
            chat_content(o, chat[i].content, strip);
            chat_put(o, f->flags & LLAMA2_SYS ? "\n<</SYS>>\n\n" : "\n");
        } else if (chat_is(&chat[i], "user")) {
            chat_content(o, chat[i].content, strip);
            chat_put(o, " [/INST]");
        } else {
            chat_content(o, chat[i].content, strip);
            chat_put(o, "</s>");
            inside = false;
        }
    }
}

// Mistral before version 7: the system message is a part of the first user turn; the spaces differ.
enum { MISTRAL_LEAD = CHAT_OWN, MISTRAL_TRAIL = CHAT_OWN * 2, MISTRAL_TRIM = CHAT_OWN * 4 };

static void mistral(const struct chat_format *f, struct chat_out *o, const llama_chat_message *chat, size_t n, bool ask) {
    (void) ask;
    const char *lead = f->flags & MISTRAL_LEAD ? " " : "", *trail = f->flags & MISTRAL_TRAIL ? " " : "";
    bool inside = false;
    for (size_t i = 0; i < n; i++) {
        bool answer = !chat_is(&chat[i], "system") && !chat_is(&chat[i], "user");
        if (!inside) {
            chat_put(o, lead);
            chat_put(o, "[INST]");
            chat_put(o, trail);
            inside = true;
        }
        if (answer) chat_put(o, trail);
        chat_content(o, chat[i].content, answer && f->flags & MISTRAL_TRIM);
        if (answer) {
            chat_put(o, "</s>");
            inside = false;
        } else if (chat_is(&chat[i], "system")) {
            chat_put(o, "\n\n");
        } else {
            chat_put(o, lead);
            chat_put(o, "[/INST]");
        }
    }
}

// Monarch: every message but the first has a <s> of its own; the first's comes from the tokenizer.
static void monarch(const struct chat_format *f, struct chat_out *o, const llama_chat_message *chat, size_t n, bool ask) {
    for (size_t i = 0; i < n; i++) {
        if (i) chat_put(o, "<s>");
        chat_put(o, chat[i].role);
        chat_put(o, "\n");
        chat_content(o, chat[i].content, false);
        chat_put(o, "</s>\n");
    }
    if (ask) chat_put(o, f->ask);
}

// MiniCPM: users are marked, everything else stands as it is.
static void minicpm(const struct chat_format *f, struct chat_out *o, const llama_chat_message *chat, size_t n, bool ask) {
    (void) f;
    (void) ask;
    for (size_t i = 0; i < n; i++) {
        bool user = chat_is(&chat[i], "user");
        if (user) chat_put(o, USER_ZH);
        chat_content(o, chat[i].content, true);
        if (user) chat_put(o, "<AI>");
    }
}

// Bailing 2 and Pangu: a first turn of the system is always there.
static void with_system(const struct chat_format *f, struct chat_out *o, const llama_chat_message *chat, size_t n,
                        bool ask) {
    struct chat_format plain = *f;
    plain.write = NULL;
    if (n > 0 && chat_is(&chat[0], "system")) plain.start = NULL;
    enum err e = chat_write(&plain, o, chat, n, ask);
    (void) e;  // the messages were checked before we came here
}

#define ANY(before, between, after)                                                                                         \
    { NULL, before, between, after }
#define TURN(role, before, after)                                                                                           \
    { role, before, NULL, after }
#define OTHER(before, after)                                                                                                \
    { "", before, NULL, after }

const struct chat_format chat_formats[] = {
    {.name = "phi4",
     .needles = {"<|im_start|>", "<|im_sep|>"},
     .ask = "<|im_start|>assistant<|im_sep|>",
     .turns = {ANY("<|im_start|>", "<|im_sep|>", "<|im_end|>")}},
    {.name = "smolvlm",
     .needles = {"<|im_start|>", "<end_of_utterance>"},
     .start = "<|im_start|>",
     .ask = "Assistant:",
     .turns = {TURN("system", "", "\n\n"), TURN("user", "User: ", "<end_of_utterance>\n"),
               OTHER("Assistant: ", "<end_of_utterance>\n")}},
    {.name = "chatml",
     .needles = {"<|im_start|>"},
     .ask = "<|im_start|>assistant\n",
     .turns = {ANY("<|im_start|>", "\n", "<|im_end|>\n")}},
    {.name = "kimi-k2",
     .needles = {"<|im_assistant|>assistant<|im_middle|>"},
     .ask = "<|im_assistant|>assistant<|im_middle|>",
     .turns = {TURN("system", "<|im_system|>system<|im_middle|>", "<|im_end|>"),
               TURN("user", "<|im_user|>user<|im_middle|>", "<|im_end|>"),
               TURN("assistant", "<|im_assistant|>assistant<|im_middle|>", "<|im_end|>"),
               TURN("tool", "<|im_system|>tool<|im_middle|>", "<|im_end|>"), OTHER("", "<|im_end|>")}},
    {.name = "mistral-v7-tekken",
     .needles = {"[SYSTEM_PROMPT]", "[INST]", "ministral"},
     .turns = {TURN("system", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"), TURN("user", "[INST]", "[/INST]"), OTHER("", "</s>")}},
    {.name = "mistral-v7",
     .needles = {"[SYSTEM_PROMPT]", "[INST]"},
     .turns = {TURN("system", "[SYSTEM_PROMPT] ", "[/SYSTEM_PROMPT]"), TURN("user", "[INST] ", "[/INST]"),
               OTHER(" ", "</s>")}},
    {.name = "mistral-v1",
     .needles = {"[INST]", "' [INST] ' + system_message"},
     .others = {" [INST]", "[AVAILABLE_TOOLS]"},
     .flags = MISTRAL_LEAD | MISTRAL_TRAIL,
     .write = mistral},
    {.name = "mistral-v3-tekken", .needles = {"\"[INST]\"", "[AVAILABLE_TOOLS]"}, .write = mistral},
    {.name = "mistral-v3",
     .needles = {"[INST]", "[AVAILABLE_TOOLS]"},
     .flags = MISTRAL_TRAIL | MISTRAL_TRIM,
     .write = mistral},
    {.name = "llama2-sys-strip",
     .needles = {"[INST]", "content.strip()"},
     .flags = LLAMA2_SYS | LLAMA2_STRIP,
     .write = llama2},
    {.name = "llama2-sys-bos",
     .needles = {"[INST]", "bos_token + '[INST]"},
     .flags = LLAMA2_SYS | LLAMA2_BOS,
     .write = llama2},
    {.name = "llama2-sys", .needles = {"[INST]", "<<SYS>>"}, .flags = LLAMA2_SYS, .write = llama2},
    {.name = "llama2", .needles = {"[INST]"}, .write = llama2},
    {.name = "phi3",
     .needles = {"<|assistant|>", "<|end|>"},
     .ask = "<|assistant|>\n",
     .turns = {ANY("<|", "|>\n", "<|end|>\n")}},
    {.name = "chatglm3",
     .needles = {"[gMASK]sop"},
     .start = "[gMASK]sop",
     .ask = "<|assistant|>",
     .turns = {ANY("<|", "|>\n ", "")}},
    {.name = "chatglm4",
     .needles = {"[gMASK]<sop>"},
     .start = "[gMASK]<sop>",
     .ask = "<|assistant|>\n",
     .turns = {ANY("<|", "|>\n", "")}},
    {.name = "exaone-moe",
     .needles = {"<|assistant|>", "<|user|>", "<|tool_declare|>"},
     .ask = "<|assistant|>\n",
     .flags = CHAT_TRIM,
     .turns = {TURN("system", "<|system|>\n", "<|endofturn|>\n"), TURN("user", "<|user|>\n", "<|endofturn|>\n"),
               TURN("assistant", "<|assistant|>\n", "<|endofturn|>\n"), TURN("tool", "<|tool|>\n", "<|endofturn|>\n")}},
    {.name = "falcon3",
     .needles = {"<|assistant|>", "<|user|>", "</s>"},
     .ask = "<|assistant|>\n",
     .turns = {ANY("<|", "|>\n", "\n")}},
    {.name = "glmedge",
     .needles = {"<|assistant|>", "<|user|>"},
     .others = {"<|{{ item['role'] }}|>", "<|begin_of_image|>"},
     .ask = "<|assistant|>",
     .turns = {ANY("<|", "|>\n", "")}},
    {.name = "zephyr",
     .needles = {"<|user|>", "<|endoftext|>"},
     .ask = "<|assistant|>\n",
     .turns = {ANY("<|", "|>\n", "<|endoftext|>\n")}},
    {.name = "monarch", .needles = {"bos_token + message['role']"}, .ask = "<s>assistant\n", .write = monarch},
    {.name = "gemma4",
     .needles = {"<|turn>", "<turn|>"},
     .ask = "<|turn>model\n",
     .flags = CHAT_TRIM,
     .turns = {TURN("assistant", "<|turn>model\n", "<turn|>\n"), ANY("<|turn>", "\n", "<turn|>\n")}},
    {.name = "gemma",
     .needles = {"<start_of_turn>"},
     .ask = "<start_of_turn>model\n",
     .flags = CHAT_TRIM | CHAT_SYSTEM_IN_USER,
     .turns = {TURN("assistant", "<start_of_turn>model\n", "<end_of_turn>\n"),
               ANY("<start_of_turn>", "\n", "<end_of_turn>\n")}},
    {.name = "orion",
     .needles = {"'\\n\\nAssistant: ' + eos_token"},
     .flags = CHAT_SYSTEM_IN_USER,
     .turns = {TURN("user", "Human: ", "\n\nAssistant: </s>"), OTHER("", "</s>")}},
    {.name = "openchat",
     .needles = {"GPT4 Correct "},
     .ask = "GPT4 Correct Assistant:",
     .flags = CHAT_ROLE_TITLE,
     .turns = {TURN("system", "", "<|end_of_turn|>"), ANY("GPT4 Correct ", ": ", "<|end_of_turn|>")}},
    {.name = "vicuna-orca",
     .needles = {"USER: ", "ASSISTANT: ", "SYSTEM: "},
     .ask = "ASSISTANT:",
     .turns = {TURN("system", "SYSTEM: ", "\n"), TURN("user", "USER: ", "\n"), TURN("assistant", "ASSISTANT: ", "</s>\n")}},
    {.name = "vicuna",
     .needles = {"USER: ", "ASSISTANT: "},
     .ask = "ASSISTANT:",
     .turns = {TURN("system", "", "\n\n"), TURN("user", "USER: ", "\n"), TURN("assistant", "ASSISTANT: ", "</s>\n")}},
    {.name = "deepseek",
     .needles = {"### Instruction:", "<|EOT|>"},
     .ask = "### Response:\n",
     .turns = {TURN("system", "", ""), TURN("user", "### Instruction:\n", "\n"),
               TURN("assistant", "### Response:\n", "\n<|EOT|>\n")}},
    {.name = "command-r",
     .needles = {"<|START_OF_TURN_TOKEN|>", "<|USER_TOKEN|>"},
     .flags = CHAT_TRIM,
     .ask = "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
     .turns = {TURN("system", "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
               TURN("user", "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
               TURN("assistant", "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>")}},
    {.name = "llama3",
     .needles = {"<|start_header_id|>", "<|end_header_id|>"},
     .flags = CHAT_TRIM,
     .ask = "<|start_header_id|>assistant<|end_header_id|>\n\n",
     .turns = {ANY("<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>")}},
    {.name = "llama4",
     .needles = {"<|header_start|>", "<|header_end|>"},
     .flags = CHAT_TRIM,
     .ask = "<|header_start|>assistant<|header_end|>\n\n",
     .turns = {ANY("<|header_start|>", "<|header_end|>\n\n", "<|eot|>")}},
    {.name = "minicpm", .needles = {USER_ZH}, .write = minicpm},
    {.name = "deepseek2",
     .needles = {"'Assistant: ' + message['content'] + eos_token"},
     .ask = "Assistant:",
     .turns = {TURN("system", "", "\n\n"), TURN("user", "User: ", "\n\n"),
               TURN("assistant", "Assistant: ", "<" BAR "end" LOW "of" LOW "sentence" BAR ">")}},
    {.name = "deepseek3",
     .needles = {"<" BAR "Assistant" BAR ">", "<" BAR "User" BAR ">", "<" BAR "end" LOW "of" LOW "sentence" BAR ">"},
     .ask = "<" BAR "Assistant" BAR ">",
     .turns = {TURN("system", "", "\n\n"), TURN("user", "<" BAR "User" BAR ">", ""),
               TURN("assistant", "<" BAR "Assistant" BAR ">", "<" BAR "end" LOW "of" LOW "sentence" BAR ">")}},
    {.name = "exaone4",
     .needles = {"[|system|]", "[|assistant|]", "[|endofturn|]", "[|tool|]"},
     .ask = "[|assistant|]",
     .flags = CHAT_TRIM,
     .turns = {TURN("system", "[|system|]", "[|endofturn|]\n"), TURN("user", "[|user|]", "\n"),
               TURN("assistant", "[|assistant|]", "[|endofturn|]\n"), TURN("tool", "[|tool|]", "[|endofturn|]\n")}},
    {.name = "exaone3",
     .needles = {"[|system|]", "[|assistant|]", "[|endofturn|]"},
     .ask = "[|assistant|]",
     .flags = CHAT_TRIM,
     .turns = {TURN("system", "[|system|]", "[|endofturn|]\n"), TURN("user", "[|user|]", "\n"),
               TURN("assistant", "[|assistant|]", "[|endofturn|]\n")}},
    {.name = "rwkv-world",
     .needles = {"rwkv-world"},
     .ask = "Assistant:",
     .flags = CHAT_TRIM | CHAT_ASK_USER,
     .turns = {TURN("system", "System: ", "\n\n"), TURN("user", "User: ", "\n\n"),
               TURN("assistant", "Assistant: ", "\n\n")}},
    {.name = "granite-4.0",
     .needles = {"<|start_of_role|>", "<tool_call>"},
     .others = {"<|start_of_role|>", "<tools>"},
     .ask = "<|start_of_role|>assistant<|end_of_role|>",
     .turns = {TURN("assistant_tool_call", "<|start_of_role|>assistant<|end_of_role|><|tool_call|>", "<|end_of_text|>\n"),
               ANY("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>\n")}},
    {.name = "granite-4.1",  // the frame of 4.0; templates are taken for that one
     .needles = {"granite-4.1"},
     .ask = "<|start_of_role|>assistant<|end_of_role|>",
     .turns = {TURN("assistant_tool_call", "<|start_of_role|>assistant<|end_of_role|><|tool_call|>", "<|end_of_text|>\n"),
               ANY("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>\n")}},
    {.name = "granite",
     .needles = {"<|start_of_role|>"},
     .ask = "<|start_of_role|>assistant<|end_of_role|>",
     .turns = {TURN("assistant_tool_call", "<|start_of_role|>assistant_tool_call<|end_of_role|><|tool_call|>",
                    "<|end_of_text|>\n"),
               ANY("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>\n")}},
    {.name = "gigachat",
     .needles = {"message['role'] + additional_special_tokens[0] + message['content'] + additional_special_tokens[1]"},
     .start = "<s>",
     .ask = "assistant<|role_sep|>",
     .flags = CHAT_SYSTEM_FIRST,
     .turns = {TURN("system", "", "<|message_sep|>"),
               TURN("user", "user<|role_sep|>", "<|message_sep|>available functions<|role_sep|>[]<|message_sep|>"),
               TURN("assistant", "assistant<|role_sep|>", "<|message_sep|>")}},
    {.name = "megrez",
     .needles = {"<|role_start|>"},
     .ask = "<|role_start|>assistant<|role_end|>",
     .turns = {ANY("<|role_start|>", "<|role_end|>", "<|turn_end|>")}},
    {.name = "yandex",
     .needles = {ASSISTANT_RU},
     .ask = ASSISTANT_RU "[SEP]",
     .turns = {TURN("user", USER_RU, "\n\n"), TURN("assistant", ASSISTANT_RU " ", "\n\n")}},
    {.name = "bailing-think",
     .needles = {"<role>ASSISTANT</role>", "\"HUMAN\"", "<think>"},
     .ask = "<role>ASSISTANT</role><think>",
     .flags = CHAT_ROLE_UPPER,
     .turns = {TURN("user", "<role>HUMAN</role>", ""), ANY("<role>", "</role>", "")}},
    {.name = "bailing",
     .needles = {"<role>ASSISTANT</role>", "'HUMAN'"},
     .ask = "<role>ASSISTANT</role>",
     .flags = CHAT_ROLE_UPPER,
     .turns = {TURN("user", "<role>HUMAN</role>", ""), ANY("<role>", "</role>", "")}},
    {.name = "bailing2",
     .needles = {"<role>ASSISTANT</role>", "<role>HUMAN</role>", "<|role_end|>"},
     .ask = "<role>ASSISTANT</role>",
     .write = with_system,
     .start = "<role>SYSTEM</role>detailed thinking off<|role_end|>",
     .flags = CHAT_ROLE_UPPER,
     .turns = {TURN("user", "<role>HUMAN</role>", "<|role_end|>"), ANY("<role>", "</role>", "<|role_end|>")}},
    {.name = "dots1",
     .needles = {"<|endofuserprompt|>"},
     .ask = "<|response|>",
     .turns = {TURN("system", "<|system|>", "<|endofsystem|>"), TURN("user", "<|userprompt|>", "<|endofuserprompt|>"),
               TURN("assistant", "<|response|>", "<|endofresponse|>")}},
    {.name = "hunyuan-moe",
     .needles = {"<|extra_0|>", "<|extra_4|>"},
     .turns = {TURN("system", "<|startoftext|>", "<|extra_4|>"), OTHER("<|startoftext|>", "<|extra_0|>"),
               TURN("assistant", "", "<|eos|>")}},
    {.name = "gpt-oss",
     .needles = {"<|start|>", "<|channel|>"},
     .ask = "<|start|>assistant",
     .turns = {TURN("assistant", "<|start|>assistant<|message|>", "<|return|>"),
               ANY("<|start|>", "<|message|>", "<|end|>")}},
    {.name = "hunyuan-vl",
     .needles = {"<" BAR "hy_Assistant" BAR ">", "<" BAR "hy_begin" LOW "of" LOW "sentence" BAR ">"},
     .start = "<" BAR "hy_begin" LOW "of" LOW "sentence" BAR ">",
     .flags = CHAT_SYSTEM_FIRST,
     .turns = {TURN("system", "", "<" BAR "hy_place" LOW "holder" LOW "no" LOW "3" BAR ">"),
               TURN("user", "", "<" BAR "hy_User" BAR ">"), TURN("assistant", "", "<" BAR "hy_Assistant" BAR ">")}},
    {.name = "hunyuan-dense",
     .needles = {"<" BAR "hy_Assistant" BAR ">", "<" BAR "hy_place" LOW "holder" LOW "no" LOW "3" BAR ">"},
     .flags = CHAT_SYSTEM_FIRST,
     .turns = {TURN("system", "", "<" BAR "hy_place" LOW "holder" LOW "no" LOW "3" BAR ">"),
               TURN("user", "<" BAR "hy_User" BAR ">", "<" BAR "hy_Assistant" BAR ">"),
               TURN("assistant", "<" BAR "hy_Assistant" BAR ">", "<" BAR "hy_place" LOW "holder" LOW "no" LOW "2" BAR ">")}},
    {.name = "seed_oss",
     .needles = {"<seed:bos>"},
     .ask = "<seed:bos>assistant\n",
     .flags = CHAT_TRIM_ANSWER,
     .turns = {ANY("<seed:bos>", "\n", "<seed:eos>")}},
    {.name = "grok-2",
     .needles = {"'Assistant: '  + message['content'] + '<|separator|>"},
     .ask = "Assistant:",
     .flags = CHAT_TRIM_REST,
     .turns = {TURN("system", "System: ", "<|separator|>\n\n"), TURN("user", "Human: ", "<|separator|>\n\n"),
               TURN("assistant", "Assistant: ", "<|separator|>\n\n")}},
    {.name = "pangu-embedded",
     .needles = {SYSTEM_PANGU "[unused10]"},
     .start = SYSTEM_PANGU "[unused10]",
     .ask = HELPER_PANGU,
     .write = with_system,
     .turns = {TURN("system", SYSTEM_PANGU, "[unused10]"), TURN("user", USER_PANGU, "[unused10]"),
               TURN("assistant", HELPER_PANGU, "[unused10]"), TURN("tool", TOOL_PANGU, "[unused10]"),
               TURN("function", METHOD_PANGU, "[unused10]")}},
    {.name = "deepseek-ocr", .turns = {OTHER("", "")}},
    {.name = "solar-open",
     .needles = {"<|begin|>", "<|content|>", "<|end|>"},
     .ask = "<|begin|>assistant",
     .turns = {ANY("<|begin|>", "<|content|>", "<|end|>")}},
};

const size_t chat_n_format = sizeof chat_formats / sizeof *chat_formats;
