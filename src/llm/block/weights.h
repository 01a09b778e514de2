// The weights as graphs see them: a struct of named slots per layer, one for the whole model. Filled by model/.
#pragma once

#include "ggml.h"

// How quantization treats a tensor. NORM and SMALL stay F32; SMALL_MATRIX and ROUTER stay as they are unless --pure.
enum role {
    ROLE_NORM,
    ROLE_SMALL,
    ROLE_SMALL_MATRIX,
    ROLE_ROUTER,
    ROLE_EMBD,
    ROLE_EMBD_OTHER,
    ROLE_OUTPUT,
    ROLE_ATTN_Q,
    ROLE_ATTN_K,
    ROLE_ATTN_V,
    ROLE_ATTN_QKV,
    ROLE_ATTN_OUT,
    ROLE_ATTN_GATE,
    ROLE_ATTN_Q_A,
    ROLE_ATTN_Q_B,
    ROLE_ATTN_KV_A,
    ROLE_ATTN_KV_B,
    ROLE_INDEXER,
    ROLE_FFN_GATE,
    ROLE_FFN_UP,
    ROLE_FFN_DOWN,
    ROLE_FFN_GATE_EXPS,
    ROLE_FFN_UP_EXPS,
    ROLE_FFN_DOWN_EXPS,
    ROLE_FFN_GATE_SHEXP,
    ROLE_FFN_UP_SHEXP,
    ROLE_FFN_DOWN_SHEXP,
    ROLE_SSM_IN,
    ROLE_SSM_OUT
};

// One linear map: y = (w x) * s + b; b, s and w itself may be missing (NULL).
struct weight {
    struct ggml_tensor *w, *b, *s;
};

struct layer {
#define SLOT(field, name, role, hf) struct weight field;
#include "block/slots.def"
#undef SLOT
};

struct globals {
#define SLOT(field, name, role, hf) struct weight field;
#include "block/globals.def"
#undef SLOT
};

// Slots by number: layer slots first, then the global ones. 0 means none.
enum slot {
    SLOT_NONE = 0,
#define SLOT(field, name, role, hf) SLOT_##field,
#include "block/slots.def"
    SLOT_LAYER_END,
#include "block/globals.def"
#undef SLOT
    SLOT_COUNT
};

struct slot_info {
    const char *field, *name, *hf;
    enum role role;
};

const struct slot_info *slot_info(enum slot s);
// The slot's place in a layer or in the globals; NULL if it belongs to the other kind.
struct weight *layer_slot(struct layer *l, enum slot s);
struct weight *globals_slot(struct globals *g, enum slot s);
