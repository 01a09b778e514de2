// Running a graph. All threads walk the steps together (step.h) and meet after each one, but steps that one thread can do
// alone are done by member 0, and between two of those nobody waits. The team is woken once per graph, and not at all if
// no step needs it. Nothing here depends on how many threads there are but the time.
#include "backend/cpu/step.h"
#include "backend/cpu/cpu.h"
#include "base/env.h"
#include "base/global.h"
#include "kern/isa.h"
#include "ops/crew.h"

#include <stdlib.h>
#include <string.h>

struct run {
    struct crew crew;  // first: it is the most strictly aligned
    struct ggml_cgraph *g;
    struct ggml_cplan *plan;
    const struct step_list *list;  // NULL: steps are found on the way
    bool singly;                   // no node is fused
    void *work;
    size_t work_bytes;
    _Atomic bool aborted;  // the callback said so
    bool stop;             // written by the last member at the gate, read by all behind it
};

static bool ended(struct run *r) {
    return atomic_load_explicit(&r->aborted, memory_order_relaxed) ||
           atomic_load_explicit(&r->crew.failing, memory_order_relaxed);
}

static void open_gate(void *arg) {
    struct run *r = arg;
    if (ended(r)) r->stop = true;
    atomic_store_explicit(&r->crew.gate.count, 0, memory_order_relaxed);
}

// The step at *at (a node, or an entry of the list), which moves on; false at the end.
static bool next_step(const struct run *r, int *at, int nth, struct step *s) {
    if (!r->list) {
        if (!step_find(r->g, *at, nth, r->singly, s)) return false;
        *at = s->first + s->n_nodes;
        return true;
    }
    if (*at == r->list->n) return false;
    *s = r->list->steps[(*at)++];
    if (s->n_threads > nth) s->n_threads = (int16_t) nth;  // the team is smaller than it was to be
    return true;
}

static void run_step(struct run *r, const struct step *s, int ith) {
    if (s->n_threads == 1) atomic_store_explicit(&r->crew.gate.count, 0, memory_order_relaxed);
    struct task k = {.ith = ith, .nth = s->n_threads, .work = r->work, .work_bytes = r->work_bytes, .crew = &r->crew};
    step_run(s, &k, r->g);
    const struct ggml_cplan *p = r->plan;
    if (ith == 0 && p->abort_callback && p->abort_callback(p->abort_callback_data)) atomic_store(&r->aborted, true);
}

static void walk(struct run *r, int ith, int nth) {
    struct step s, ahead;
    int at = 0;
    for (bool more = next_step(r, &at, nth, &s); more; s = ahead) {
        // Alone, member 0 may find that the run has ended; it then does nothing more, but still goes to the next gate.
        if (ith < s.n_threads && !(s.n_threads == 1 && ended(r))) run_step(r, &s, ith);
        more = next_step(r, &at, nth, &ahead);
        if (nth == 1) {
            if (ended(r)) return;
        } else if (more && (s.n_threads > 1 || ahead.n_threads > 1)) {
            barrier_wait(&r->crew.gate, r->crew.team, ith, nth, open_gate, r);
            if (r->stop) return;
        }
    }
}

static void member(int ith, int nth, void *arg) {
    struct run *r = arg;
    if (r->plan->use_ref) isa_here(ISA_scalar);
    walk(r, ith, nth);
    if (r->plan->use_ref) isa_here(-1);
}

// The default team belongs to whoever takes it out of its place; a second taker makes one of its own.
static struct team *take_team(int n) {
    struct team *t = atomic_exchange(&global.default_team, NULL);
    if (t && team_is_orphan(t)) {  // after fork(): its threads stayed behind
        team_free(t);
        t = NULL;
    }
    if (!t) t = team_new(&(struct team_params){.n_threads = n, .poll = 50});
    // Fewer threads, or none, give the same result: no failure that a caller should see.
    if (!t || (team_size(t) < n && team_grow(t, n) != ERR_OK)) ggml_clear_error();
    return t;
}

static void give_team(struct team *t) {
    struct team *none = NULL;
    if (!atomic_compare_exchange_strong(&global.default_team, &none, t)) team_free(t);
}

// At the end of the process, and before the library is unloaded: a thread must not outlive its code. A team in use is not here.
static __attribute__((destructor)) void end_default_team(void) { team_free(atomic_exchange(&global.default_team, NULL)); }

// More threads than processors only get into each other's way: the one that others wait for is not running. A pool of the
// caller's is taken as it is, and tests ask for the crowd, to have as many shares of the work as they say.
static int useful_threads(int n) {
    const int n_cpus = team_n_cpus();
    return n <= n_cpus || env_get("GGML_OVERSUBSCRIBE") ? n : n_cpus;
}

int cpu_members(int n, const struct ggml_threadpool *pool) {
    const int most = pool ? team_size(pool->team) : GGML_MAX_N_THREADS;
    if (n <= 0) n = pool ? most : ggml_cpu_default_threads();
    if (n > most) n = most;
    return pool ? n : useful_threads(n);
}

void cpu_team_reserve(int n_threads) {
    const int n = useful_threads(n_threads);
    struct team *t = n > 1 ? take_team(n) : NULL;
    if (t) give_team(t);
}

size_t cpu_team_bytes(int n_threads) {
    const int n = useful_threads(n_threads);
    return n > 1 ? team_bytes(n) : 0;
}

static void run_on_team(struct run *r, int n) {
    struct ggml_threadpool *pool = r->plan->threadpool;
    struct team *t = n == 1 ? NULL : pool ? pool->team : take_team(n);
    if (!t) {  // or no thread could be made: alone it takes longer, that is all
        member(0, 1, r);
        return;
    }
    if (pool && atomic_exchange(&pool->paused, false)) team_set_poll(t, pool->params.poll);
    if (n > team_size(t)) n = team_size(t);
    r->crew.team = t;
    team_run(t, n, member, r);
    if (!pool) give_team(t);
}

static bool node_ready(const struct ggml_tensor *t) {
    bool there = t->data != NULL;
    for (int k = 0; k < GGML_MAX_SRC; k++)
        there &= !t->src[k] || t->src[k]->data || ggml_is_empty(t->src[k]);  // holes: no mask, say
    return there;
}

// Whether everything that is to be computed can be: the operation exists, and all that it reads and writes has memory.
static bool ready(const struct run *r, int nth) {
    struct ggml_tensor **nodes = r->g->nodes;
    for (int i = 0; i < r->g->n_nodes; i++) {
        if (op_get(nodes[i]->op)) continue;
        (void) err_set(ERR_UNSUPPORTED, "%s: there is no operation %d in this build", nodes[i]->name, (int) nodes[i]->op);
        return false;
    }
    if (r->g->placed) return true;  // by an allocator, which leaves nothing out
    int at = 0;
    for (struct step s; next_step(r, &at, nth, &s);) {
        if (s.fuse && s.fuse->planned && fuse_ready(&nodes[s.first], s.n_nodes)) continue;
        for (int i = s.first; i < s.first + s.n_nodes; i++) {
            if (fuse_is_view(nodes[i]) || node_ready(nodes[i])) continue;
            (void) err_set(ERR_INVALID, "%s (%s): it or one of its sources has no memory; allocate the graph first",
                           nodes[i]->name, ggml_op_desc(nodes[i]));
            return false;
        }
    }
    return true;
}

// Threads that the busiest step can use out of nth, 0 if there is nothing to run.
static int busiest(const struct run *r, int nth) {
    int most = 0, at = 0;
    for (struct step s; next_step(r, &at, nth, &s);) most = s.n_threads > most ? s.n_threads : most;
    return most;
}

enum ggml_status cpu_graph_compute(struct ggml_cgraph *g, struct ggml_cplan *plan, struct step_list *list, bool singly) {
    const int nth = cpu_members(plan->n_threads, plan->threadpool);
    struct run r = {.g = g, .plan = plan, .list = list, .singly = singly};
    if (!list || !list->ready) {
        if (!ready(&r, nth)) return GGML_STATUS_FAILED;
        if (list) list->ready = true;
    }
    if (plan->work_data) {
        r.work = (void *) GGML_PAD((uintptr_t) plan->work_data, (uintptr_t) 64);
        r.work_bytes = plan->work_size > 64 ? plan->work_size - 64 : 0;
    }
    const int n = busiest(&r, nth);
    if (n > 0) run_on_team(&r, n);
    if (atomic_load(&r.crew.failing)) {
        (void) err_set(ERR_INVALID, "%s", r.crew.failure);
        return GGML_STATUS_FAILED;
    }
    return atomic_load(&r.aborted) ? GGML_STATUS_ABORTED : GGML_STATUS_SUCCESS;
}

enum ggml_status ggml_graph_compute(struct ggml_cgraph *cgraph, struct ggml_cplan *cplan) {
    if (!cgraph || !cplan) {
        (void) err_set(ERR_INVALID, "ggml_graph_compute: no %s given (NULL)", cgraph ? "plan" : "graph");
        return GGML_STATUS_FAILED;
    }
    if (cgraph->failure[0]) {
        (void) err_set(ERR_INVALID, "%s", cgraph->failure);
        return GGML_STATUS_FAILED;
    }
    if (cplan->n_threads < 1 || (cplan->work_size > 0 && !cplan->work_data)) {
        (void) err_set(ERR_INVALID, "ggml_graph_compute: the plan has %d threads and %zu bytes of work memory%s",
                       cplan->n_threads, cplan->work_size,
                       cplan->work_data ? "" : ", which is not there (work_data is NULL)");
        return GGML_STATUS_FAILED;
    }
    return cpu_graph_compute(cgraph, cplan, NULL, false);
}

enum ggml_status ggml_graph_compute_with_ctx(struct ggml_context *ctx, struct ggml_cgraph *cgraph, int n_threads) {
    struct ggml_cplan plan = ggml_graph_plan(cgraph, n_threads, NULL);
    void *own = NULL;
    if (plan.work_size > 0) {
        // Programs size their contexts to the tensors, for kernels that need less scratch than ours: then it comes from elsewhere.
        const size_t used = ggml_used_mem(ctx), size = ctx ? ggml_get_mem_size(ctx) : SIZE_MAX;
        const bool fits = size - used >= plan.work_size + 2 * ggml_tensor_overhead();
        if (!fits) own = malloc(plan.work_size);
        plan.work_data = fits ? ggml_new_buffer(ctx, plan.work_size) : own;
        if (!fits && !own) (void) err_set(ERR_NOMEM, "no memory for %zu bytes of scratch", plan.work_size);
        if (!plan.work_data) return GGML_STATUS_ALLOC_FAILED;
    }
    const enum ggml_status status = ggml_graph_compute(cgraph, &plan);
    free(own);
    return status;
}
