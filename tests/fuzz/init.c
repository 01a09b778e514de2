// Under libFuzzer refusals are the rule: the log keeps silent.
#include "fuzz.h"
#include "ggml.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

static void silence(enum ggml_log_level level, const char *text, void *userdata) {
    (void) level;
    (void) text;
    (void) userdata;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void) argc;
    (void) argv;
    ggml_log_set(silence, NULL);
    return 0;
}
