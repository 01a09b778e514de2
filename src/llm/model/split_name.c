// Names of shards: PREFIX-00001-of-00003.gguf.
#include <stdio.h>
#include <string.h>

#include "llama.h"

int32_t llama_split_path(char *split_path, size_t maxlen, const char *path_prefix, int32_t split_no, int32_t split_count) {
    if (!split_path || !path_prefix) return 0;
    const int n = snprintf(split_path, maxlen, "%s-%05lld-of-%05d.gguf", path_prefix, split_no + 1LL, split_count);
    return n >= 0 && (size_t) n < maxlen ? n : 0;
}

int32_t llama_split_prefix(char *split_prefix, size_t maxlen, const char *split_path, int32_t split_no,
                           int32_t split_count) {
    if (!split_prefix || !split_path) return 0;
    char suffix[64];
    snprintf(suffix, sizeof suffix, "-%05lld-of-%05d.gguf", split_no + 1LL, split_count);
    const size_t n = strlen(split_path), k = strlen(suffix);
    if (n <= k || strcmp(split_path + n - k, suffix) != 0) return 0;
    const size_t len = n - k;
    if (maxlen == 0) return 0;
    const size_t copy = len < maxlen - 1 ? len : maxlen - 1;
    memcpy(split_prefix, split_path, copy);
    split_prefix[copy] = 0;
    return (int32_t) len;
}
