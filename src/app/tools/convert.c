// lamina convert: a checkpoint of safetensors as a GGUF file.
#include "cli/console.h"
#include "ggml/ext.h"
#include "llama/ext.h"
#include "tools/tool.h"

#include <string.h>
#include <strings.h>

static bool on_progress(float done, void *unused) {
    (void) unused;
    console_progress("converting", done);
    return !console_interrupted();
}

static int run(struct params *p) {
    struct llama_convert_params c = llama_convert_default_params();
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0};
    bool known = !p->out_type;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]) && p->out_type; i++)
        if (strcasecmp(p->out_type, ggml_type_name(types[i])) == 0) c.type = types[i], known = true;
    if (!known) {
        console_error("--outtype is '%s', but should be f32, f16, bf16 or q8_0", p->out_type);
        return 2;
    }
    c.name = p->model_name;
    c.progress_callback = on_progress;
    console_finish_first();
    const int failed = llama_model_convert(p->args[0], p->args[1], &c);
    console_progress_end();
    if (failed) return console_interrupted() ? 130 : console_library_error();
    console_note("%s", p->args[1]);
    return 0;
}

const struct tool tool_convert = {
    .name = "convert",
    .summary = "Writes a checkpoint (a folder of safetensors) as a GGUF file",
    .args = "CHECKPOINT OUTPUT",
    .min_args = 2,
    .max_args = 2,
    .groups = G_CONVERT,
    .run = run,
};
