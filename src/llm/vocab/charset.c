// See charset.h. Categories come from utf8proc; \p{Han} is the block list of the Script property as PCRE2 has it.
#include "vocab/charset.h"
#include "vocab/utf8.h"
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#define CAT(x) (1u << UTF8PROC_CATEGORY_##x)
#define CAT_L (CAT(LU) | CAT(LL) | CAT(LT) | CAT(LM) | CAT(LO))
#define CAT_M (CAT(MN) | CAT(MC) | CAT(ME))
#define CAT_N (CAT(ND) | CAT(NL) | CAT(NO))
#define CAT_P (CAT(PC) | CAT(PD) | CAT(PS) | CAT(PE) | CAT(PI) | CAT(PF) | CAT(PO))
#define CAT_S (CAT(SM) | CAT(SC) | CAT(SK) | CAT(SO))
#define CAT_Z (CAT(ZS) | CAT(ZL) | CAT(ZP))

static const struct {
    const char *name;
    uint32_t cats;
} properties[] = {
    {"L", CAT_L},    {"Lu", CAT(LU)}, {"Ll", CAT(LL)}, {"Lt", CAT(LT)}, {"Lm", CAT(LM)}, {"Lo", CAT(LO)}, {"M", CAT_M},
    {"Mn", CAT(MN)}, {"N", CAT_N},    {"Nd", CAT(ND)}, {"P", CAT_P},    {"S", CAT_S},    {"Z", CAT_Z},
};

// Script Han, Unicode 14.
static const uint32_t han[][2] = {
    {0x2e80, 0x2e99},   {0x2e9b, 0x2ef3},   {0x2f00, 0x2fd5},   {0x3005, 0x3005},   {0x3007, 0x3007},   {0x3021, 0x3029},
    {0x3038, 0x303b},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfa6d},   {0xfa70, 0xfad9},   {0x16fe2, 0x16fe3},
    {0x16ff0, 0x16ff1}, {0x20000, 0x2a6df}, {0x2a700, 0x2b738}, {0x2b740, 0x2b81d}, {0x2b820, 0x2cea1}, {0x2ceb0, 0x2ebe0},
    {0x2ebf0, 0x2ee5d}, {0x2f800, 0x2fa1d}, {0x30000, 0x3134a},
};

// Unicode 15.1 added one block, CJK Extension I, which the library may not know.
static int category(uint32_t c) {
    return c >= 0x2ebf0 && c <= 0x2ee5d ? UTF8PROC_CATEGORY_LO : utf8proc_category((utf8proc_int32_t) c);
}

// The property White_Space. U+180E was of it until Unicode 6.3, and PCRE still counts it; the tokenizers don't.
bool charset_is_space(uint32_t c) {
    if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
    return c == 0x85 || (CAT_Z >> category(c) & 1);
}

bool charset_is_letter_or_number(uint32_t c) { return (CAT_L | CAT_N) >> category(c) & 1; }

static bool is_han(uint32_t c) {
    for (size_t i = 0; i < sizeof han / sizeof *han && han[i][0] <= c; i++) {
        if (c <= han[i][1]) return true;
    }
    return false;
}

bool charset_has(const struct charset *set, uint32_t c) {
    bool in = set->cats && (set->cats >> category(c) & 1);
    if (!in && set->space) in = charset_is_space(c);
    if (!in && set->han) in = is_han(c);
    for (int i = 0; i < set->n_range && !in; i++) in = c >= set->ranges[i].lo && c <= set->ranges[i].hi;
    return in != set->negated && !(set->minus && charset_has(set->minus, c));
}

static bool add(struct charset *set, uint32_t lo, uint32_t hi) {
    if (set->n_range == CHARSET_MAX_RANGES || hi < lo) return false;
    set->ranges[set->n_range].lo = lo;
    set->ranges[set->n_range++].hi = hi;
    return true;
}

static bool add_property(struct charset *set, const char **p, const char *end) {
    if (*p == end || **p != '{') return false;
    const char *name = *p + 1, *close = memchr(name, '}', (size_t) (end - name));
    if (!close) return false;
    size_t len = (size_t) (close - name);
    *p = close + 1;
    if (len == 3 && memcmp(name, "Han", 3) == 0) return set->han = true;
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        if (strlen(properties[i].name) == len && memcmp(name, properties[i].name, len) == 0) {
            set->cats |= properties[i].cats;
            return true;
        }
    }
    return false;
}

// Behind a backslash. A single character is given in *c; otherwise the set has been extended and *c is UINT32_MAX.
static bool escape(struct charset *set, const char **p, const char *end, uint32_t *c) {
    if (*p == end) return false;
    char e = *(*p)++;
    *c = UINT32_MAX;
    switch (e) {
        case 'p': return add_property(set, p, end);
        case 's': return set->space = true;
        case 'd': set->cats |= CAT(ND); return true;
        case 'S': set->space = true; return set->negated = true;  // alone only, which parse makes sure of
        case 'r': *c = '\r'; return true;
        case 'n': *c = '\n'; return true;
        case 't': *c = '\t'; return true;
        default: *c = (uint8_t) e; return !((e | 32) >= 'a' && (e | 32) <= 'z') && !(e >= '0' && e <= '9');
    }
}

static bool member(struct charset *set, const char **p, const char *end, uint32_t *c) {
    if (*p == end) return false;
    if (**p == '\\') {
        ++*p;
        if (*p < end && **p == 'S') return false;
        return escape(set, p, end, c);
    }
    int len;
    *c = utf8_decode(*p, end, &len);
    *p += len;
    return true;
}

static bool parse_class(struct charset *set, const char **p, const char *end) {
    bool negated = *p < end && **p == '^';
    if (negated) ++*p;
    while (*p < end && **p != ']') {
        uint32_t lo, hi;
        if (!member(set, p, end, &lo)) return false;
        if (lo == UINT32_MAX) continue;
        hi = lo;
        if (end - *p >= 2 && (*p)[0] == '-' && (*p)[1] != ']') {
            ++*p;
            if (!member(set, p, end, &hi) || hi == UINT32_MAX) return false;
        }
        if (!add(set, lo, hi)) return false;
    }
    if (*p == end) return false;
    ++*p;
    set->negated = negated;
    return true;
}

bool charset_parse(struct charset *set, const char **p, const char *end) {
    memset(set, 0, sizeof *set);
    if (*p == end) return false;
    if (**p == '[') {
        ++*p;
        return parse_class(set, p, end);
    }
    uint32_t c;
    if (**p == '\\') {
        ++*p;
        if (!escape(set, p, end, &c)) return false;
    } else {
        if (strchr("(){}|*+?.^$", **p)) return false;
        if (!member(set, p, end, &c)) return false;
    }
    return c == UINT32_MAX || add(set, c, c);
}

// ---- charmap

static uint32_t bits(const struct charmap *map, uint32_t c) {
    uint32_t v = 0;
    for (int i = 0; i < map->n_set; i++) v |= (uint32_t) charset_has(&map->sets[i], c) << i;
    return v;
}

struct charmap *charmap_new(const struct charset *sets, int n_set) {
    struct charmap *map = calloc(1, sizeof *map);
    if (!map) return NULL;
    map->sets = sets;
    map->n_set = n_set;
    for (uint32_t c = 0; c < 128; c++) map->ascii[c] = bits(map, c);
    return map;
}

void charmap_free(struct charmap *map) {
    if (!map) return;
    for (size_t i = 0; i < sizeof map->pages / sizeof *map->pages; i++) free(atomic_load(&map->pages[i]));
    free(map);
}

uint32_t charmap_slow(const struct charmap *map, uint32_t c) {
    _Atomic(uint32_t *) *slot = (_Atomic(uint32_t *) *) &map->pages[c >> 8];
    uint32_t *page = atomic_load_explicit(slot, memory_order_acquire);
    if (page) return page[c & 255];
    uint32_t *made = malloc(256 * sizeof *made);
    if (!made) return bits(map, c);  // slower, the same answer
    for (uint32_t i = 0; i < 256; i++) made[i] = bits(map, (c & ~255u) | i);
    if (!atomic_compare_exchange_strong(slot, &page, made)) {
        free(made);  // another thread was faster; page holds its work
        return page[c & 255];
    }
    return made[c & 255];
}
