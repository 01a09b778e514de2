// PCRE2 on code points: the subject is decoded in windows, because broken UTF-8 must be walked over byte by byte and because
// a search must not cost the whole rest of a long text. Limits keep hostile text from costing more than linear time or
// growing stacks: a match that would is given up and the character goes through on its own.
#define PCRE2_CODE_UNIT_WIDTH 32
#include "vocab/regex.h"
#include "base/env.h"
#include "vocab/utf8.h"
#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 64          // code points looked at first; more if a match touches the end
#define STACK_START 32768  // bytes of PCRE2's machine stack
#define STACK_MAX 1048576
#define MATCH_LIMIT 10000000

struct regex {
    pcre2_code *code;
    pcre2_match_context *limits;
};

enum err regex_new(struct regex **out, const char *text) {
    struct regex *re = calloc(1, sizeof *re);
    size_t len = strlen(text), n = 0;
    uint32_t *cps = malloc((len + 1) * sizeof *cps);
    enum err e = ERR_OK;
    if (!re || !cps) e = err_set(ERR_NOMEM, "vocab: no memory for a pattern");
    for (const char *p = text, *end = text + len; e == ERR_OK && p < end;) {
        int k;
        cps[n++] = utf8_decode(p, end, &k);
        p += k;
    }
    if (e == ERR_OK) {
        int code;
        PCRE2_SIZE at;
        re->code = pcre2_compile(cps, n, PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
        if (!re->code)
            e = err_set(ERR_FAILED, "vocab: PCRE2 can't read pattern '%s': error %d at character %zu", text, code,
                        (size_t) at);
    }
    if (e == ERR_OK) {
        re->limits = pcre2_match_context_create(NULL);
        if (!re->limits) e = err_set(ERR_NOMEM, "vocab: no memory for a pattern");
    }
    free(cps);
    if (e != ERR_OK) {
        regex_free(re);
        return e;
    }
    pcre2_set_match_limit(re->limits, MATCH_LIMIT);
    if (!env_get("GGML_NO_JIT")) pcre2_jit_compile(re->code, PCRE2_JIT_COMPLETE);  // without JIT the interpreter does it
    *out = re;
    return ERR_OK;
}

size_t regex_bytes(void) { return sizeof(struct regex); }

void regex_free(struct regex *re) {
    if (!re) return;
    pcre2_code_free(re->code);
    pcre2_match_context_free(re->limits);
    free(re);
}

static int run(const struct regex *re, const uint32_t *cps, size_t n, size_t first, uint32_t options, pcre2_match_data *m) {
    int rc = pcre2_match(re->code, cps, n, first, options, m, re->limits);
    if (rc != PCRE2_ERROR_JIT_STACKLIMIT) return rc;
    // the 32 kB of the machine's stack that PCRE2 takes by itself are not enough
    pcre2_jit_stack *stack = pcre2_jit_stack_create(STACK_START, STACK_MAX, NULL);
    pcre2_match_context *ctx = pcre2_match_context_copy(re->limits);
    if (stack && ctx) {
        pcre2_jit_stack_assign(ctx, NULL, stack);
        rc = pcre2_match(re->code, cps, n, first, options, m, ctx);
    }
    pcre2_match_context_free(ctx);
    pcre2_jit_stack_free(stack);
    return rc;
}

// 1 found, 0 none, -1 the window's end was in the way.
static int match(const struct regex *re, const uint32_t *cps, size_t n, size_t first, bool partial, const char **places,
                 const char *from, const char **at, const char **to) {
    pcre2_match_data *m = pcre2_match_data_create(8, NULL);
    if (!m) return 0;
    int rc = run(re, cps, n, first, PCRE2_NO_UTF_CHECK | (partial ? PCRE2_PARTIAL_HARD : 0), m), found = 0;
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(m);
    if (rc == PCRE2_ERROR_PARTIAL || (partial && rc == PCRE2_ERROR_NOMATCH)) {
        found = -1;
    } else if (rc >= 0) {
        *at = places[span[0]];
        *to = places[span[1]];
        found = 1;
    } else if (rc != PCRE2_ERROR_NOMATCH) {  // a limit was hit: one character goes through
        *at = from;
        *to = places[first + 1];
        found = 1;
    }
    pcre2_match_data_free(m);
    return found;
}

// One search of a window that starts at `from`, as match.
static int search(const struct regex *re, const char *start, const char *from, const char *end, size_t window,
                  const char **at, const char **to) {
    // a few characters before, for what looks back (\b)
    const char *lead = from;
    for (int i = 0; i < 4 && lead > start; i++) lead = utf8_back(start, lead);
    size_t max = window + 4, n = 0, first = 0;
    if (max > (size_t) (end - lead)) max = (size_t) (end - lead);
    uint32_t *cps = malloc((max + 1) * (sizeof *cps + sizeof(const char *)));
    if (!cps) return 0;
    const char **places = (const char **) (void *) cps;
    cps = (uint32_t *) (void *) (places + max + 1);
    const char *p = lead;
    while (p < end && n < max) {
        int len;
        if (p == from) first = n;
        places[n] = p;
        cps[n++] = utf8_decode(p, end, &len);
        p += len;
    }
    places[n] = p;
    int found = match(re, cps, n, first, p < end, places, from, at, to);
    free((void *) places);
    return found;
}

bool regex_find(const struct regex *re, const char *start, const char *from, const char *end, const char **at,
                const char **to) {
    while (from < end) {
        int r = -1;
        for (size_t window = WINDOW; r < 0; window *= 8) r = search(re, start, from, end, window, at, to);
        if (r == 0) return false;
        if (*to > *at || *at > from) return true;
        from += utf8_len((uint8_t) *from);  // an empty match here cuts nothing
    }
    return false;
}
