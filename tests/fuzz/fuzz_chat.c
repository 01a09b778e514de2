// Chat formats: whatever template, roles and contents, the size is right and nothing is written beyond the buffer.
// Input: template, then role and content in turn, parted by zero bytes.
#include "fuzz.h"
#include "ggml/ext.h"
#include "llama/vocab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = fuzz_text(data, size);
    const char *parts[33];
    size_t n = 0;
    for (char *p = text; n < 33 && p < text + size + 1; p += strlen(p) + 1) parts[n++] = p;
    struct llama_chat_message chat[16];
    size_t n_msg = (n - 1) / 2;
    for (size_t i = 0; i < n_msg; i++) chat[i] = (struct llama_chat_message){parts[1 + 2 * i], parts[2 + 2 * i]};
    for (int ask = 0; ask < 2; ask++) {
        int32_t need = llama_chat_apply_template(parts[0], chat, n_msg, ask, NULL, 0);
        if (need < 0) continue;
        char *buf = malloc((size_t) need + 1), *half = malloc((size_t) need / 2 + 1);
        FUZZ_CHECK(buf && half);
        FUZZ_CHECK(llama_chat_apply_template(parts[0], chat, n_msg, ask, buf, need + 1) == need);
        FUZZ_CHECK(buf[need] == 0 && strlen(buf) == (size_t) need);
        FUZZ_CHECK(llama_chat_apply_template(parts[0], chat, n_msg, ask, half, need / 2) == need);
        FUZZ_CHECK(memcmp(buf, half, (size_t) need / 2) == 0);
        free(half);
        free(buf);
    }
    free(text);
    ggml_clear_error();
    return 0;
}

void fuzz_seeds(fuzz_put put, void *to) {
    const char *names[100];
    int32_t n = llama_chat_builtin_templates(names, 100);
    for (int32_t i = 0; i < n; i++) {
        static const char talk[] = "\0system\0Be kind.\0user\0 Hi \0assistant\0Hello\0tool\0\0user\0x";
        char buf[256];
        size_t len = strlen(names[i]);
        memcpy(buf, names[i], len);
        memcpy(buf + len, talk, sizeof talk - 1);
        put(to, buf, len + sizeof talk - 1);
    }
    static const char jinja[] =
        "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>'}}{% endfor %}\0user\0Hi";
    put(to, jinja, sizeof jinja - 1);
}
