// The language-model library in one include. Lengths that callers give are believed.
#pragma once

#include "llama/enums.h"
#include "llama/types.h"
#include "llama/model.h"
#include "llama/context.h"
#include "llama/memory.h"
#include "llama/state.h"
#include "llama/adapter.h"
#include "llama/vocab.h"
#include "llama/sampler.h"
#include "llama/train.h"
