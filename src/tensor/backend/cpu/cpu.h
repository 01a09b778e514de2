// The CPU executor: what the CPU device, the tests and the files of this folder share.
#pragma once

#include "ggml-cpu.h"
#include "base/team.h"
#include "graph/graph.h"

struct ggml_threadpool {
    struct team *team;
    struct ggml_threadpool_params params;
    _Atomic bool paused;
};

// ggml_graph_compute without the checks of the public call: runs the nodes that are marked to be computed.
// g: allocated; plan: from ggml_graph_plan for the same graph, with work_data set where work_size is not 0.
// list: the graph's steps (step_list_make), to which the plan is made; NULL: they are found on the way. singly, without a list: no nodes
// are computed as one.
struct step_list;
enum ggml_status cpu_graph_compute(struct ggml_cgraph *g, struct ggml_cplan *plan, struct step_list *list, bool singly);

// Threads that a graph can have: the pool's, or as many as are of use; at most n where n > 0.
int cpu_members(int n, const struct ggml_threadpool *pool);

// Makes the process's default team ready for n threads, so that the first graph finds it; failing does no harm: fewer compute as well.
void cpu_team_reserve(int n_threads);
// Bytes of the heap that such a team takes.
size_t cpu_team_bytes(int n_threads);

struct op;
// Threads that node t gets when n are there.
int cpu_node_threads(const struct op *op, const struct ggml_tensor *t, int n);
// Whether node t has anything to run.
bool cpu_node_runs(const struct op *op, const struct ggml_tensor *t);

// Questions about the work memory of nodes that have been asked before, by keys. Zero-initialised: none.
enum { CPU_ASKED = 512 };
struct cpu_asked {
    int n_threads;
    uint64_t keys[CPU_ASKED];
};
struct ggml_cgraph;
// ggml_graph_work_most of what g has that no graph before it had.
size_t cpu_work_most(const struct ggml_cgraph *g, int n_threads, struct cpu_asked *asked);
