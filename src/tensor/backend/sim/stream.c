// Streams: a queue of commands that a thread of its own works off in order, and events. What is queued is all that is
// shared:
// graphs are snapshots (job.c), transfers hold addresses. Every stream has a clock, the number of commands done; waiting for
// another stream's work is waiting for its clock. Clocks are never freed, so nobody can wait for one that is gone.
#include "backend/sim/sim.h"
#include "backend/cpu/cpu.h"
#include "ggml/ext.h"

#include <stdlib.h>
#include <string.h>

struct clock {
    pthread_mutex_t lock;
    pthread_cond_t tick;
    uint64_t done;
    bool taken;
};

static struct clock clocks[SIM_MAX_STREAMS];
static pthread_once_t clocks_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t clocks_lock = PTHREAD_MUTEX_INITIALIZER;

enum kind { RUN_GRAPH, MOVE, WAIT, STOP };

struct command {
    enum kind kind;
    void *to;
    const void *from;
    size_t bytes;
    int job;
    bool no_fuse;
    struct clock *clock;  // WAIT: until it shows at least `time`
    uint64_t time;
};

struct stream {
    struct sim_device *device;
    struct clock *clock;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct command queue[SIM_QUEUE];
    uint64_t queued, started;  // commands ever; queued - started wait
    struct sim_job jobs[SIM_JOBS];
    uint64_t job_time[SIM_JOBS];  // a job's memory is free when the clock shows this
    int next_job;
    int n_threads;
    void *work;
    size_t work_bytes;
    _Atomic int status;  // first failure since it was asked for
};

// ---- clocks ---------------------------------------------------------------------------------------------------------

static void make_clocks(void) {
    for (int i = 0; i < SIM_MAX_STREAMS; i++) {
        pthread_mutex_init(&clocks[i].lock, NULL);
        pthread_cond_init(&clocks[i].tick, NULL);
    }
}

static struct clock *take_clock(void) {
    pthread_once(&clocks_once, make_clocks);
    struct clock *found = NULL;
    pthread_mutex_lock(&clocks_lock);
    for (int i = 0; i < SIM_MAX_STREAMS && !found; i++) {
        if (!clocks[i].taken) found = &clocks[i];
    }
    if (found) found->taken = true;
    pthread_mutex_unlock(&clocks_lock);
    return found;
}

static void give_clock(struct clock *c) {
    pthread_mutex_lock(&clocks_lock);
    c->taken = false;
    pthread_mutex_unlock(&clocks_lock);
}

static void advance(struct clock *c) {
    pthread_mutex_lock(&c->lock);
    c->done++;
    pthread_cond_broadcast(&c->tick);
    pthread_mutex_unlock(&c->lock);
}

static void wait_until(struct clock *c, uint64_t time) {
    pthread_mutex_lock(&c->lock);
    while (c->done < time) pthread_cond_wait(&c->tick, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

static uint64_t clock_now(struct clock *c) {
    pthread_mutex_lock(&c->lock);
    const uint64_t t = c->done;
    pthread_mutex_unlock(&c->lock);
    return t;
}

// ---- the worker -----------------------------------------------------------------------------------------------------

static enum ggml_status run_graph(struct stream *s, struct sim_job *j, bool no_fuse) {
    struct ggml_cplan plan = ggml_graph_plan(&j->graph, s->n_threads, NULL);
    if (plan.work_size > s->work_bytes) {  // only for graphs that nobody reserved for
        void *p = realloc(s->work, plan.work_size);
        if (!p) return GGML_STATUS_ALLOC_FAILED;
        s->work = p;
        s->work_bytes = plan.work_size;
    }
    plan.work_data = s->work;
    return cpu_graph_compute(&j->graph, &plan, NULL, no_fuse);
}

static void obey(struct stream *s, const struct command *c) {
    switch (c->kind) {
        case MOVE: memmove(c->to, c->from, c->bytes); break;
        case WAIT: wait_until(c->clock, c->time); break;
        case RUN_GRAPH: {
            const int status = run_graph(s, &s->jobs[c->job], c->no_fuse);
            int fine = GGML_STATUS_SUCCESS;
            if (status != GGML_STATUS_SUCCESS) atomic_compare_exchange_strong(&s->status, &fine, status);
            break;
        }
        case STOP: break;
    }
}

static void *worker(void *arg) {
    struct stream *s = arg;
    for (bool stop = false; !stop;) {
        pthread_mutex_lock(&s->lock);
        while (s->started == s->queued) pthread_cond_wait(&s->changed, &s->lock);
        const struct command c = s->queue[s->started % SIM_QUEUE];
        s->started++;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
        obey(s, &c);
        stop = c.kind == STOP;
        advance(s->clock);
    }
    return NULL;
}

// Queues a command; returns what the stream's clock will show when it is done.
static uint64_t push(struct stream *s, struct command c, uint64_t epoch) {
    pthread_mutex_lock(&s->lock);
    while (s->queued - s->started == SIM_QUEUE) pthread_cond_wait(&s->changed, &s->lock);
    s->queue[s->queued % SIM_QUEUE] = c;
    s->queued++;
    const uint64_t time = epoch + s->queued;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return time;
}

// ---- the interface --------------------------------------------------------------------------------------------------

// A clock goes on counting from stream to stream; a stream's own count starts at the time it took the clock over.
struct sim_stream {
    struct stream s;
    uint64_t epoch;
};

static struct sim_stream *of(ggml_backend_t backend) { return backend->context; }

static uint64_t queue(ggml_backend_t backend, struct command c) { return push(&of(backend)->s, c, of(backend)->epoch); }

static uint64_t time_of_all(struct sim_stream *x) {
    pthread_mutex_lock(&x->s.lock);
    const uint64_t t = x->epoch + x->s.queued;
    pthread_mutex_unlock(&x->s.lock);
    return t;
}

static const char *name(ggml_backend_t backend) { return of(backend)->s.device->name; }

static void synchronize(ggml_backend_t backend) { wait_until(of(backend)->s.clock, time_of_all(of(backend))); }

static void stream_free(ggml_backend_t backend) {
    struct sim_stream *x = of(backend);
    queue(backend, (struct command){.kind = STOP});
    pthread_join(x->s.thread, NULL);
    give_clock(x->s.clock);
    for (int i = 0; i < SIM_JOBS; i++) sim_job_free(&x->s.jobs[i]);
    pthread_mutex_destroy(&x->s.lock);
    pthread_cond_destroy(&x->s.changed);
    free(x->s.work);
    free(x);
    free(backend);
}

static void set_async(ggml_backend_t backend, struct ggml_tensor *t, const void *data, size_t offset, size_t size) {
    queue(backend, (struct command){.kind = MOVE, .to = (char *) sim_address(t) + offset, .from = data, .bytes = size});
}

static void get_async(ggml_backend_t backend, const struct ggml_tensor *t, void *data, size_t offset, size_t size) {
    queue(backend,
          (struct command){.kind = MOVE, .to = data, .from = (const char *) sim_address(t) + offset, .bytes = size});
}

static bool cpy_async(ggml_backend_t from, ggml_backend_t to, const struct ggml_tensor *src, struct ggml_tensor *dst) {
    const struct command move = {.kind = MOVE, .to = sim_address(dst), .from = sim_address(src), .bytes = ggml_nbytes(src)};
    const ggml_backend_buffer_t buffer = src->view_src ? src->view_src->buffer : src->buffer;
    if (!sim_is_stream(to)) return false;
    if (from == to) {
        queue(to, move);
        return true;
    }
    if (!sim_is_stream(from)) {  // the host may overwrite its memory as soon as we return, unless it is a weight
        if (!buffer || buffer->usage != GGML_BACKEND_BUFFER_USAGE_WEIGHTS) return false;
        queue(to, move);
        return true;
    }
    // On the source's stream, after all that the destination has been given; and the destination goes on after it.
    queue(from, (struct command){.kind = WAIT, .clock = of(to)->s.clock, .time = time_of_all(of(to))});
    const uint64_t done = queue(from, move);
    queue(to, (struct command){.kind = WAIT, .clock = of(from)->s.clock, .time = done});
    return true;
}

static void graph_needs(ggml_backend_t backend, const struct ggml_cgraph *graph, struct ggml_stream_needs *needs) {
    const size_t work = ggml_graph_work_most(graph, of(backend)->s.n_threads);
    const int n_tensors = sim_job_count(graph);
    if (work > needs->work) needs->work = work;
    if (graph->n_nodes > needs->n_nodes) needs->n_nodes = graph->n_nodes;
    if (n_tensors > needs->n_tensors) needs->n_tensors = n_tensors;
}

static bool reserve(ggml_backend_t backend, const struct ggml_stream_needs *needs) {
    struct stream *s = &of(backend)->s;
    synchronize(backend);
    for (int i = 0; i < SIM_JOBS; i++) {
        if (sim_job_reserve(&s->jobs[i], needs->n_nodes, needs->n_tensors) != ERR_OK) return false;
    }
    if (needs->work <= s->work_bytes) return true;
    void *p = realloc(s->work, needs->work);
    if (!p) DEVICE_FAIL(false, ERR_NOMEM, "%s: no memory for %zu bytes of scratch", s->device->name, needs->work);
    s->work = p;
    s->work_bytes = needs->work;
    return true;
}

static size_t table_size(ggml_backend_t backend, const struct ggml_stream_needs *needs) {
    return sizeof(*backend) + sizeof(struct sim_stream) + SIM_JOBS * sim_job_bytes(needs->n_nodes, needs->n_tensors);
}

// For a graph that nobody reserved for.
static bool make_room(ggml_backend_t backend, const struct ggml_cgraph *graph) {
    struct ggml_stream_needs needs = {0};
    graph_needs(backend, graph, &needs);
    return reserve(backend, &needs);
}

static enum ggml_status compute(ggml_backend_t backend, struct ggml_cgraph *graph, int flags) {
    struct stream *s = &of(backend)->s;
    if (graph->failure && graph->failure[0]) DEVICE_FAIL(GGML_STATUS_FAILED, ERR_INVALID, "%s", graph->failure);
    const int job = s->next_job;
    s->next_job = (s->next_job + 1) % SIM_JOBS;
    wait_until(s->clock, s->job_time[job]);
    if (!sim_job_has_room(&s->jobs[job], graph) && !make_room(backend, graph)) return GGML_STATUS_ALLOC_FAILED;
    if (sim_job_take(&s->jobs[job], graph) != ERR_OK) return GGML_STATUS_ALLOC_FAILED;
    s->job_time[job] =
        queue(backend, (struct command){.kind = RUN_GRAPH, .job = job, .no_fuse = (flags & GGML_COMPUTE_NO_FUSE) != 0});
    return GGML_STATUS_SUCCESS;
}

static enum ggml_status status(ggml_backend_t backend) {
    return (enum ggml_status) atomic_exchange(&of(backend)->s.status, GGML_STATUS_SUCCESS);
}

static size_t work_size(ggml_backend_t backend) { return of(backend)->s.work_bytes; }

// ---- events ---------------------------------------------------------------------------------------------------------

struct event {
    pthread_mutex_t lock;
    struct clock *clock;  // NULL until recorded
    uint64_t time;
};

ggml_backend_event_t sim_event_new(ggml_backend_dev_t dev) {
    struct event *e = calloc(1, sizeof(*e));
    ggml_backend_event_t event = e ? malloc(sizeof(*event)) : NULL;
    if (!event) {
        free(e);
        DEVICE_FAIL(NULL, ERR_NOMEM, "sim: no memory for an event");
    }
    pthread_mutex_init(&e->lock, NULL);
    *event = (struct ggml_backend_event){dev, e};
    return event;
}

void sim_event_free(ggml_backend_dev_t dev, ggml_backend_event_t event) {
    (void) dev;
    pthread_mutex_destroy(&((struct event *) event->context)->lock);
    free(event->context);
    free(event);
}

static struct command moment(ggml_backend_event_t event) {
    struct event *e = event->context;
    pthread_mutex_lock(&e->lock);
    const struct command c = {.kind = WAIT, .clock = e->clock, .time = e->time};
    pthread_mutex_unlock(&e->lock);
    return c;
}

void sim_event_synchronize(ggml_backend_dev_t dev, ggml_backend_event_t event) {
    (void) dev;
    const struct command c = moment(event);
    if (c.clock) wait_until(c.clock, c.time);
}

static void event_record(ggml_backend_t backend, ggml_backend_event_t event) {
    struct event *e = event->context;
    pthread_mutex_lock(&e->lock);
    e->clock = of(backend)->s.clock;
    e->time = time_of_all(of(backend));
    pthread_mutex_unlock(&e->lock);
}

static void event_wait(ggml_backend_t backend, ggml_backend_event_t event) {
    if (event->device->iface->event_synchronize != sim_event_synchronize) {  // another kind of device: no clock to wait for
        ggml_backend_event_synchronize(event);
        return;
    }
    const struct command c = moment(event);
    if (c.clock && c.clock != of(backend)->s.clock) queue(backend, c);
}

static const struct ggml_stream_iface stream_iface = {.get_name = name,
                                                      .free = stream_free,
                                                      .set_tensor_async = set_async,
                                                      .get_tensor_async = get_async,
                                                      .cpy_tensor_async = cpy_async,
                                                      .synchronize = synchronize,
                                                      .graph_compute = compute,
                                                      .status = status,
                                                      .graph_needs = graph_needs,
                                                      .reserve = reserve,
                                                      .table_size = table_size,
                                                      .work_size = work_size,
                                                      .event_record = event_record,
                                                      .event_wait = event_wait};

static ggml_guid sim_guid = {0x4c, 0x61, 0x6d, 0x69, 0x6e, 0x61, 0x20, 0x73, 0x69, 0x6d, 0x20, 0x64, 0x65, 0x76, 0x20, 0x31};

bool sim_is_stream(ggml_backend_t backend) { return backend && backend->iface == &stream_iface; }

void sim_stream_set_n_threads(ggml_backend_t backend, int n_threads) {
    if (!sim_is_stream(backend) || n_threads < 1) return;
    synchronize(backend);
    of(backend)->s.n_threads = n_threads;
}

ggml_backend_t sim_stream_new(struct sim_device *d) {
    struct sim_stream *x = calloc(1, sizeof(*x));
    ggml_backend_t backend = x ? malloc(sizeof(*backend)) : NULL;
    struct clock *clock = backend ? take_clock() : NULL;
    if (!clock) {
        free(x);
        free(backend);
        DEVICE_FAIL(NULL, ERR_NOMEM, "%s: no memory for a stream, or all %d are in use", d->name, SIM_MAX_STREAMS);
    }
    x->s.device = d;
    x->s.clock = clock;
    x->s.n_threads = 1;
    x->epoch = clock_now(clock);
    pthread_mutex_init(&x->s.lock, NULL);
    pthread_cond_init(&x->s.changed, NULL);
    if (pthread_create(&x->s.thread, NULL, worker, &x->s) != 0) {
        give_clock(clock);
        free(x);
        free(backend);
        DEVICE_FAIL(NULL, ERR_NOMEM, "%s: no thread for a stream", d->name);
    }
    *backend = (struct ggml_backend){&stream_iface, &d->base, x, &sim_guid};
    return backend;
}
