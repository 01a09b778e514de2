// What the threads that compute one graph share while an operation runs: the operation's side of `struct task`.
#pragma once

#include "base/team.h"
#include "ops/op.h"

struct crew {
    struct barrier inner;              // meeting point of the threads of one node
    struct barrier gate;               // of all members, between nodes; its count is the shared counter of task_next
    _Alignas(64) _Atomic int failing;  // 0 no, 1 the sentence is being written, 2 it is there
    struct team *team;                 // NULL: one thread alone
    char failure[GRAPH_FAILURE_SIZE];
};
