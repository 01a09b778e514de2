// Slots by number.
#include "block/weights.h"

#include <stddef.h>

static const struct slot_info infos[SLOT_COUNT] = {
    [SLOT_NONE] = {"none", "", NULL, ROLE_SMALL},
    [SLOT_LAYER_END] = {"none", "", NULL, ROLE_SMALL},
#define SLOT(field, gguf, role_, hf_) [SLOT_##field] = {#field, gguf, hf_, ROLE_##role_},
#include "block/slots.def"
#include "block/globals.def"
#undef SLOT
};

const struct slot_info *slot_info(enum slot s) { return (unsigned) s < SLOT_COUNT ? &infos[s] : NULL; }

// Both structs are arrays of struct weight in the order of their .def, which is the order of the enum.
struct weight *layer_slot(struct layer *l, enum slot s) {
    return s > SLOT_NONE && s < SLOT_LAYER_END ? (struct weight *) (void *) l + (s - SLOT_NONE - 1) : NULL;
}

struct weight *globals_slot(struct globals *g, enum slot s) {
    return s > SLOT_LAYER_END && s < SLOT_COUNT ? (struct weight *) (void *) g + (s - SLOT_LAYER_END - 1) : NULL;
}
