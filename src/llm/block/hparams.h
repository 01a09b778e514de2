// Hyperparameters of a model: numbers from the file's keys, filled by the tables of arch/.
// One struct for all architectures, because blocks read them without knowing which architecture they serve.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define MAX_LAYERS 512
#define PLE_MAX_NGRAM 8
#define PLE_MAX_HEADS 64

enum attn_window { WINDOW_NONE = 0, WINDOW_STANDARD, WINDOW_CHUNKED, WINDOW_SYMMETRIC };
enum moe_gate { GATE_NONE = 0, GATE_SOFTMAX = 1, GATE_SIGMOID = 2, GATE_SOFTMAX_LATE = 3, GATE_SQRT_SOFTPLUS = 4 };
enum act { ACT_SILU = 0, ACT_GELU, ACT_GELU_ERF, ACT_RELU, ACT_RELU2, ACT_SWIGLU_OAI, ACT_SITU, ACT_NONE };

// How an indexer's heads are turned: not at all (or not in the cache), as the layer's, in pairs of one kind, the last dims.
enum idx_rope { IDX_ROPE_NONE = 0, IDX_ROPE_LAYER, IDX_ROPE_NORMAL, IDX_ROPE_NORMAL_LAST, IDX_ROPE_NEOX };

struct hparams {
#define INT(field, symbol) int32_t field;
#define INTS(field, symbol) int32_t field[MAX_LAYERS];
#define FLT(field, symbol) float field;
#define FLTS(field, symbol) float field[MAX_LAYERS];
#include "block/hparams.def"
#undef INT
#undef INTS
#undef FLT
#undef FLTS
    // Derived once after the keys are read (arch_finish), for each of the n_cache caches of K and V:
    int32_t n_cache;
    int32_t cache_k[MAX_LAYERS], cache_v[MAX_LAYERS];  // values per position; 0: none
    int32_t cache_x[MAX_LAYERS];                       // extra values per position (indexer keys, F32); 0: none
    int32_t cache_layer[MAX_LAYERS];                   // layer whose device and window the cache follows
    int32_t kv_cache[MAX_LAYERS];                      // layer -> cache it reads; -1: none
    int32_t state_r[MAX_LAYERS], state_s[MAX_LAYERS];  // recurrent layers: values of the conv and of the main state
    bool mrope;                                        // four positions per token
    // n-gram embeddings: hash multipliers of the n tokens; first row and number of rows of each head's table
    uint64_t ple_mul[PLE_MAX_NGRAM];
    int64_t ple_offset[PLE_MAX_HEADS], ple_rows[PLE_MAX_HEADS];
    int32_t rope_mode;  // enum llama_rope_type
    int32_t idx_rope;   // how the indexer's keys in cache_x are turned (enum idx_rope)
};

// How windowed layers rotate (rope_swa); 0: as all layers do.
enum swa_rope {
    SWA_ROPE_BASE = 1,     // by a base of their own (rope_base_swa)
    SWA_ROPE_SCALE = 2,    // by a factor of their own (rope_f_swa), whatever the kind of scaling and the context's settings
    SWA_ROPE_NO_YARN = 4,  // without YaRN's mix, and without the magnitude
    SWA_ROPE_NO_FACTORS = 8,  // without frequency factors
    SWA_ROPE_OWN = SWA_ROPE_BASE | SWA_ROPE_SCALE,
};

// A field by number, so that tables can name fields and expressions can find symbols.
enum hp_field {
#define INT(field, symbol) HP_##field,
#define INTS(field, symbol) HP_##field,
#define FLT(field, symbol) HP_##field,
#define FLTS(field, symbol) HP_##field,
#include "block/hparams.def"
#undef INT
#undef INTS
#undef FLT
#undef FLTS
    HP_COUNT
};

enum hp_kind { HP_INT, HP_INTS, HP_FLT, HP_FLTS };

struct hp_info {
    const char *name, *symbol;
    enum hp_kind kind;
    uint32_t offset;
};

const struct hp_info *hparams_info(enum hp_field f);
// Value of a field in layer il (scalars: any il). hparams_set with il < 0 sets all layers.
double hparams_get(const struct hparams *hp, enum hp_field f, int il);
void hparams_set(struct hparams *hp, enum hp_field f, int il, double v);

// Value of an expression over the symbols of hparams.def and `i` (the layer): numbers, + - * / ( ), comparisons (1 or 0),
// && || !, % , and floor sqrt max min. Division by zero gives 0. Errors: names the place; the text is ours, so it is a bug.
MUST_USE enum err expr_eval(const char *expr, const struct hparams *hp, int il, double *out);
// The same; sets *by_layer where the expression has a symbol that another layer may give another value.
MUST_USE enum err expr_eval_layer(const char *expr, const struct hparams *hp, int il, double *out, bool *by_layer);
// The i-th of the comma-separated parts (commas inside parentheses belong to calls); false when there are fewer.
bool expr_part(const char *list, int i, char *buf, int n_buf);
