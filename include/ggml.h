// The tensor library in one include: types, contexts, tensors, operations, graphs. Lengths that callers give are believed.
#pragma once

#include "ggml/config.h"
#include "ggml/enums.h"
#include "ggml/op_enums.h"
#include "ggml/types.h"
#include "ggml/util.h"
#include "ggml/quant.h"
#include "ggml/tensor.h"
#include "ggml/ops_math.h"
#include "ggml/ops_nn.h"
#include "ggml/ops_shape.h"
#include "ggml/ops_image.h"
#include "ggml/ops_custom.h"
#include "ggml/graph.h"
#include "ggml/threadpool.h"
