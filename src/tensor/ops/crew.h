// What the threads that compute one graph share while an operation runs: the operation's side of `struct task`.
#pragma once

#include "base/team.h"
#include "ops/op.h"

struct crew {
    struct barrier inner;               // meeting point of the threads of one node
    _Alignas(64) _Atomic int64_t next;  // shared counter of task_next
    _Alignas(64) _Atomic int failing;   // 0 no, 1 the sentence is being written, 2 it is there
    int spin;                           // rounds of spinning at a barrier
    char failure[GRAPH_FAILURE_SIZE];
};
