// Fields by number: the bridge between the tables' words and the struct.
#include "block/hparams.h"

#include <stddef.h>
#include <string.h>

static const struct hp_info infos[HP_COUNT] = {
#define INT(field, symbol) {#field, #symbol, HP_INT, offsetof(struct hparams, field)},
#define INTS(field, symbol) {#field, #symbol, HP_INTS, offsetof(struct hparams, field)},
#define FLT(field, symbol) {#field, #symbol, HP_FLT, offsetof(struct hparams, field)},
#define FLTS(field, symbol) {#field, #symbol, HP_FLTS, offsetof(struct hparams, field)},
#include "block/hparams.def"
#undef INT
#undef INTS
#undef FLT
#undef FLTS
};

const struct hp_info *hparams_info(enum hp_field f) { return (unsigned) f < HP_COUNT ? &infos[f] : NULL; }

double hparams_get(const struct hparams *hp, enum hp_field f, int il) {
    const char *p = (const char *) hp + infos[f].offset;
    const int i = il < 0 ? 0 : il >= MAX_LAYERS ? MAX_LAYERS - 1 : il;
    switch (infos[f].kind) {
        case HP_INT: return *(const int32_t *) (const void *) p;
        case HP_INTS: return ((const int32_t *) (const void *) p)[i];
        case HP_FLT: return (double) *(const float *) (const void *) p;
        case HP_FLTS: return (double) ((const float *) (const void *) p)[i];
    }
    return 0;
}

// Out-of-range values saturate, so that a hostile key can't make the conversion undefined.
static int32_t to_int(double v) {
    return v >= 2147483647.0 ? INT32_MAX : v <= -2147483648.0 ? INT32_MIN : v == v ? (int32_t) v : 0;
}

void hparams_set(struct hparams *hp, enum hp_field f, int il, double v) {
    char *p = (char *) hp + infos[f].offset;
    const int i0 = il < 0 ? 0 : il, i1 = il < 0 ? MAX_LAYERS : il + 1;
    switch (infos[f].kind) {
        case HP_INT: *(int32_t *) (void *) p = to_int(v); break;
        case HP_FLT: *(float *) (void *) p = (float) v; break;
        case HP_INTS:
            for (int i = i0; i < i1 && i < MAX_LAYERS; i++) ((int32_t *) (void *) p)[i] = to_int(v);
            break;
        case HP_FLTS:
            for (int i = i0; i < i1 && i < MAX_LAYERS; i++) ((float *) (void *) p)[i] = (float) v;
            break;
    }
}
