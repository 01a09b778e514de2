// JSON schemas: whatever the text, it is refused with a sentence, or becomes a grammar that can be read.
#include "base/str.h"
#include "fuzz_vocabs.h"
#include "ggml/ext.h"
#include "grammar/grammar.h"
#include "grammar/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 4096) return 0;
    char *text = fuzz_text(data, size);
    struct str out = {0};
    if (schema_to_gbnf(text, &out) == ERR_OK) {
        struct grammar *g = NULL;
        FUZZ_CHECK(out.n > 0);
        // a large one is refused, a wrong one would be our mistake
        if (grammar_new(&g, str_text(&out), "root", NULL) == ERR_OK)
            grammar_free(g);
        else
            FUZZ_CHECK(strstr(ggml_last_error(), "too large") || strstr(ggml_last_error(), "too deep"));
    } else {
        FUZZ_CHECK(*ggml_last_error());
    }
    str_free(&out);
    free(text);
    ggml_clear_error();
    return 0;
}

void fuzz_seeds(fuzz_put put, void *to) {
    static const char *const seeds[] = {
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":-12,\"maximum\":305},\"ab\\\"\":{"
        "\"enum\":[1,\"x\",null]}},\"required\":[\"a\"],"
        "\"additionalProperties\":{\"type\":\"string\",\"maxLength\":3}}",
        "{\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{\"anyOf\":[{\"$ref\":\"#/$defs/"
        "n\"},{\"type\":[\"array\",\"null\"],\"prefixItems\":[true],\"items\":{\"$ref\":\"#\"},\"minItems\":1,"
        "\"maxItems\":3}]}}}",
        "{\"type\":\"string\",\"pattern\":\"^(a|[^b-d\\\\d]{2,3}?)+\\\\u00e9.$|x\"}",
        "{\"allOf\":[{\"type\":\"number\",\"minimum\":1},{\"exclusiveMaximum\":9,\"nullable\":true}],\"format\":\"date-"
        "time\"}",
        "{\"oneOf\":[{\"const\":{\"a\":[1.5e300,false]}},{\"type\":\"string\",\"minLength\":2,\"maxLength\":9}],"
        "\"properties\":{\"q\":{}}}",
    };
    for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) put(to, seeds[i], strlen(seeds[i]));
}
