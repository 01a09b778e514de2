// Verification of graphs from outside.
#pragma once

#include "graph/graph.h"

// Every node must be what its operation makes of its sources and params, and every view must lie inside its root.
MUST_USE enum err graph_verify(const struct ggml_cgraph *g);
