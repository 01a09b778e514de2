// FLASH_ATTN_EXT: softmax(scale * q k^T + mask) v in one pass over the keys, told which keys are visible either by a mask,
// as upstream has it, or by block tables (ggml/ext.h), which is what our own runtime uses.
#include "ops/flash_attn_int.h"

#include "type/type.h"

#include <string.h>

static const char *type_name(const struct ggml_tensor *t) { return ggml_type_name(t->type); }

static enum err check_operand(const struct ggml_tensor *x, const char *which) {
    const struct type *type = type_get(x->type);
    const bool number =
        x->type == GGML_TYPE_F32 || x->type == GGML_TYPE_F16 || x->type == GGML_TYPE_BF16 || (type && type->quantized);
    if (!number || !type->decode)
        return err_set(ERR_UNSUPPORTED, "flash_attn_ext: %s is %s; it must be F32, F16, BF16 or quantized", which,
                       type_name(x));
    if (x->nb[0] != ggml_type_size(x->type))
        return err_set(ERR_INVALID,
                       "flash_attn_ext: rows of %s are not contiguous (nb[0] = %zu, element %zu); use ggml_cont", which,
                       x->nb[0], ggml_type_size(x->type));
    return ERR_OK;
}

static enum err check_mask(const struct ggml_tensor *q, const struct ggml_tensor *k, const struct ggml_tensor *mask) {
    if (mask->type != GGML_TYPE_F16 && mask->type != GGML_TYPE_F32)
        return err_set(ERR_INVALID, "flash_attn_ext: the mask is %s; it must be F16 or F32", type_name(mask));
    if (mask->nb[0] != ggml_type_size(mask->type))
        return err_set(ERR_INVALID, "flash_attn_ext: rows of the mask are not contiguous (nb[0] = %zu)", mask->nb[0]);
    if (mask->ne[0] < k->ne[1] || mask->ne[1] < q->ne[1])
        return err_set(ERR_INVALID, "flash_attn_ext: the mask is %lld x %lld, smaller than %lld keys x %lld queries",
                       (long long) mask->ne[0], (long long) mask->ne[1], (long long) k->ne[1], (long long) q->ne[1]);
    if (mask->ne[2] < 1 || mask->ne[3] < 1 || q->ne[2] % mask->ne[2] != 0 || q->ne[3] % mask->ne[3] != 0)
        return err_set(ERR_INVALID,
                       "flash_attn_ext: mask dimensions 2 and 3 (%lld, %lld) do not divide the queries' (%lld, %lld)",
                       (long long) mask->ne[2], (long long) mask->ne[3], (long long) q->ne[2], (long long) q->ne[3]);
    return ERR_OK;
}

static enum err check_sinks(const struct ggml_tensor *q, const struct ggml_tensor *sinks) {
    if (sinks->type != GGML_TYPE_F32 || sinks->ne[0] != q->ne[2] || ggml_nelements(sinks) != q->ne[2] ||
        sinks->nb[0] != sizeof(float))
        return err_set(ERR_INVALID, "flash_attn_ext: sinks must be F32 [%lld], one per head; they are %s [%lld, %lld]",
                       (long long) q->ne[2], type_name(sinks), (long long) sinks->ne[0], (long long) sinks->ne[1]);
    return ERR_OK;
}

static enum err check_blocks(const struct ggml_tensor *t, const struct ggml_tensor *query, const struct ggml_tensor *table) {
    const struct ggml_tensor *q = t->src[FA_Q], *k = t->src[FA_K], *v = t->src[FA_V];
    if (!query || !table)
        return err_set(ERR_INVALID, "flash_attn_ext: block tables need both the query and the table tensor");
    if (q->ne[3] != 1 || k->ne[3] != 1 || v->ne[3] != 1)
        return err_set(ERR_INVALID,
                       "flash_attn_ext: with block tables dimension 3 of q, k and v must be 1; it is %lld, %lld, %lld",
                       (long long) q->ne[3], (long long) k->ne[3], (long long) v->ne[3]);
    if (query->type != GGML_TYPE_I32 || query->ne[0] != 4 || query->ne[1] != q->ne[1] || query->ne[2] * query->ne[3] != 1)
        return err_set(ERR_INVALID, "flash_attn_ext: the query tensor must be I32 [4, %lld]; it is %s [%lld, %lld]",
                       (long long) q->ne[1], type_name(query), (long long) query->ne[0], (long long) query->ne[1]);
    if (table->type != GGML_TYPE_I32 || table->ne[0] != 3 || table->ne[3] != 1)
        return err_set(ERR_INVALID,
                       "flash_attn_ext: the table must be I32 [3, n_block, n_slot]; it is %s [%lld, %lld, %lld]",
                       type_name(table), (long long) table->ne[0], (long long) table->ne[1], (long long) table->ne[2]);
    if (!ggml_is_contiguous(query) || !ggml_is_contiguous(table))
        return err_set(ERR_INVALID, "flash_attn_ext: the query and table tensors must be contiguous");
    if (table->ne[1] > INT32_MAX / GGML_ATTN_BLOCK)
        return err_set(ERR_INVALID, "flash_attn_ext: %lld blocks per slot are more than positions of 31 bits allow",
                       (long long) table->ne[1]);
    return ERR_OK;
}

static enum err infer(const struct ggml_tensor *t, struct op_shape *shape) {
    const struct ggml_tensor *q = t->src[FA_Q], *k = t->src[FA_K], *v = t->src[FA_V];
    if (q->type != GGML_TYPE_F32 || q->nb[0] != sizeof(float))
        return err_set(ERR_INVALID, "flash_attn_ext: q must be F32 with contiguous rows; it is %s, nb[0] = %zu",
                       type_name(q), q->nb[0]);
    TRY(check_operand(k, "k"));
    TRY(check_operand(v, "v"));
    if (q->ne[0] != k->ne[0])
        return err_set(ERR_INVALID, "flash_attn_ext: q has head size %lld, k has %lld", (long long) q->ne[0],
                       (long long) k->ne[0]);
    if (k->ne[1] != v->ne[1])
        return err_set(ERR_INVALID, "flash_attn_ext: k has %lld positions, v has %lld", (long long) k->ne[1],
                       (long long) v->ne[1]);
    for (int i = 2; i < 4; i++) {
        if (k->ne[i] < 1 || v->ne[i] < 1 || q->ne[i] % k->ne[i] != 0 || q->ne[i] % v->ne[i] != 0)
            return err_set(ERR_INVALID, "flash_attn_ext: dimension %d of k (%lld) and v (%lld) must divide that of q (%lld)",
                           i, (long long) k->ne[i], (long long) v->ne[i], (long long) q->ne[i]);
    }
    if (t->src[FA_MASK]) TRY(check_mask(q, k, t->src[FA_MASK]));
    if (t->src[FA_SINKS]) TRY(check_sinks(q, t->src[FA_SINKS]));
    if (t->src[FA_QUERY] || t->src[FA_TABLE]) TRY(check_blocks(t, t->src[FA_QUERY], t->src[FA_TABLE]));
    *shape = (struct op_shape){.type = GGML_TYPE_F32, .ne = {v->ne[0], q->ne[2], q->ne[1], q->ne[3]}};
    return ERR_OK;
}

static bool is_attention(const struct ggml_tensor *a, const char *call) {
    if (a && a->op == GGML_OP_FLASH_ATTN_EXT) return true;
    if (!a || !ggml_is_error(a)) (void) err_set(ERR_INVALID, "%s: the tensor is not a result of ggml_flash_attn_ext", call);
    return false;
}

void ggml_flash_attn_ext_set_prec(struct ggml_tensor *a, enum ggml_prec prec) {
    if (is_attention(a, "ggml_flash_attn_ext_set_prec")) tensor_set_param_i32(a, FA_PREC, (int32_t) prec);
}

enum ggml_prec ggml_flash_attn_ext_get_prec(const struct ggml_tensor *a) {
    return is_attention(a, "ggml_flash_attn_ext_get_prec") ? (enum ggml_prec) tensor_param_i32(a, FA_PREC)
                                                           : GGML_PREC_DEFAULT;
}

void ggml_flash_attn_ext_set_n_kv_max(struct ggml_tensor *a, int32_t n_kv_max) {
    if (is_attention(a, "ggml_flash_attn_ext_set_n_kv_max")) tensor_set_param_i32(a, FA_N_KV_MAX, n_kv_max);
}

void ggml_flash_attn_ext_add_sinks(struct ggml_tensor *a, struct ggml_tensor *sinks) {
    if (!is_attention(a, "ggml_flash_attn_ext_add_sinks")) return;
    // There is no result to return an error with: the graph fails instead, because the error tensor is among its sources.
    if (sinks && !ggml_is_error(sinks) && check_sinks(a->src[FA_Q], sinks) != ERR_OK) sinks = tensor_error();
    a->src[FA_SINKS] = sinks;
}

bool ggml_flash_attn_ext_set_blocks(struct ggml_tensor *a, struct ggml_tensor *query, struct ggml_tensor *table) {
    if (!is_attention(a, "ggml_flash_attn_ext_set_blocks")) return false;
    if ((query && ggml_is_error(query)) || (table && ggml_is_error(table))) return false;
    if (check_blocks(a, query, table) != ERR_OK) return false;
    a->src[FA_QUERY] = query;
    a->src[FA_TABLE] = table;
    return true;
}

struct ggml_tensor *ggml_flash_attn_ext(struct ggml_context *ctx, struct ggml_tensor *q, struct ggml_tensor *k,
                                        struct ggml_tensor *v, struct ggml_tensor *mask, float scale, float max_bias,
                                        float logit_softcap) {
    int32_t params[FA_N_PARAM] = {0};
    memcpy(&params[FA_SCALE], &scale, sizeof scale);
    memcpy(&params[FA_MAX_BIAS], &max_bias, sizeof max_bias);
    memcpy(&params[FA_SOFTCAP], &logit_softcap, sizeof logit_softcap);
    struct ggml_tensor *src[] = {q, k, v, mask};
    return op_build(ctx, GGML_OP_FLASH_ATTN_EXT, false, params, FA_N_PARAM, src, 4);
}

const struct op op_flash_attn_ext = {
    .id = GGML_OP_FLASH_ATTN_EXT,
    .name = "FLASH_ATTN_EXT",
    .symbol = "flash_attn_ext(x)",
    .n_src = 3,
    .flags =
        OP_INPLACE_WIDE,  // over the queries: each is packed before its result is written, and by nobody else afterwards
    .infer = infer,
    .scratch = flash_attn_scratch,
    .token_dim = {2},
    .run = flash_attn_run,
};
