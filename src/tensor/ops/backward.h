// Gradients: what an operation's `backward` has at hand. It is called for a node t whose own gradient is complete, and adds
// to the gradient of each source that wants one, in the words of the public builders:
//
//     static enum err backward(struct backward *b, struct ggml_tensor *t) {     // t = a * b
//         TRY(backward_add(b, t->src[0], ggml_mul(b->ctx, backward_grad(b, t), t->src[1])));
//         return backward_add(b, t->src[1], ggml_mul(b->ctx, backward_grad(b, t), t->src[0]));
//     }
//
// Gradients are F32, contiguous, and of the shape of their tensor.
#pragma once

#include "ops/op.h"

struct backward {
    struct ggml_context *ctx;  // where the new nodes go
    struct ggml_cgraph *graph;
    const bool *needed;  // per slot of graph->visited: the loss's gradient with respect to this tensor is needed
};

// The gradient of the node that is being differentiated.
struct ggml_tensor *backward_grad(const struct backward *b, const struct ggml_tensor *t);
// Whether source s (may be NULL) wants a gradient. backward_add asks itself; this is for work that would be in vain.
bool backward_wants(const struct backward *b, const struct ggml_tensor *s);
// Adds grad to the gradient of s: of s's shape or one that s is repeated to, which is then summed up. Does nothing if s
// wants none. Passes errors of the builders on: grad may be the error tensor.
MUST_USE enum err backward_add(struct backward *b, struct ggml_tensor *s, struct ggml_tensor *grad);
// Sums over the dimensions 2 and 3 along which a matrix product had used `like` several times: it repeats each of its
// matrices in a row (index / n), unlike ggml_repeat, which repeats them all in turn.
struct ggml_tensor *backward_unbroadcast(struct ggml_context *ctx, struct ggml_tensor *grad, const struct ggml_tensor *like);
// Adds grad to a part of the gradient of s (contiguous): the part that a view with these strides and this offset shows.
MUST_USE enum err backward_add_part(struct backward *b, struct ggml_tensor *s, struct ggml_tensor *grad, size_t nb1,
                                    size_t nb2, size_t nb3, size_t offset);
