// The linear allocator: tensors one after the other in a buffer, each at the buffer type's alignment.
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml/ext.h"
#include "base/err.h"

struct ggml_tallocr ggml_tallocr_new(ggml_backend_buffer_t buffer) {
    struct ggml_tallocr t = {.buffer = buffer, .alignment = 1};
    if (!buffer) {
        (void) err_set(ERR_INVALID, "ggml_tallocr_new: no buffer");
        return t;
    }
    t.base = ggml_backend_buffer_get_base(buffer);
    t.alignment = ggml_backend_buffer_get_alignment(buffer);
    t.offset = GGML_PAD((uintptr_t) t.base, t.alignment) - (uintptr_t) t.base;
    return t;
}

enum ggml_status ggml_tallocr_alloc(struct ggml_tallocr *talloc, struct ggml_tensor *tensor) {
    if (!talloc || !talloc->buffer || !tensor || ggml_is_error(tensor)) {
        (void) err_set(ERR_INVALID, "ggml_tallocr_alloc: no allocator, buffer or tensor");
        return GGML_STATUS_FAILED;
    }
    const size_t need = ggml_backend_buffer_get_alloc_size(talloc->buffer, tensor);
    const size_t size = ggml_backend_buffer_get_size(talloc->buffer);
    const size_t room = size > talloc->offset ? size - talloc->offset : 0;
    if (need > room) {
        (void) err_set(ERR_NOMEM, "tensor '%s' needs %zu bytes; %zu of the %zu in its %s buffer are left", tensor->name,
                       need, room, size, ggml_backend_buffer_name(talloc->buffer));
        return GGML_STATUS_ALLOC_FAILED;
    }
    const enum ggml_status status =
        ggml_backend_tensor_alloc(talloc->buffer, tensor, (char *) talloc->base + talloc->offset);
    if (status == GGML_STATUS_SUCCESS) talloc->offset += GGML_PAD(need, talloc->alignment);
    return status;
}
