// All mutable state of the process, in one place (docs/design.md, rule 5). It lives in libggml alone: libllama and the
// program reach it through ggml/ext.h.
#pragma once

#include "ggml/util.h"
#include "ggml/ext.h"

#include <stdatomic.h>

struct team;

struct globals {
    _Atomic(ggml_log_callback) log_callback;  // NULL: the default sink
    _Atomic(void *) log_userdata;
    _Atomic(ggml_abort_callback_t) abort_callback;
    _Atomic int error_mode;               // enum ggml_error_mode; -1: not yet read from the environment
    _Atomic uint32_t cpu_features;        // bit i: enum cpu_feature i; bit 31: detected
    _Atomic int isa_level;                // -1: not yet chosen
    _Atomic int numa_strategy;            // enum ggml_numa_strategy
    _Atomic uint64_t graph_serial;        // last unique number given to a state of a graph
    _Atomic(struct team *) default_team;  // for graph computations without a thread pool; taken while in use
};

extern struct globals global;
