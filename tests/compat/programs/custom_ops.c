// Operations of the caller's own, in one and in several tasks; the graph written as dot; a graph plan with a thread pool that is paused and
// resumed; abort callback.
#include "ggml.h"
#include "ggml-cpu.h"
#include "ggml-backend.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char data[] = "my data";

static void custom1(struct ggml_tensor *dst, const struct ggml_tensor *a, int ith, int nth, void *userdata) {
    if (userdata || ggml_nelements(dst) != ggml_nelements(a) || nth > 2) abort();
    float *d = ggml_get_data_f32(dst), *x = ggml_get_data_f32(a);
    const int n = (int) ggml_nelements(dst), per = (n + nth - 1) / nth, i0 = per * ith, i1 = i0 + per < n ? i0 + per : n;
    for (int i = i0; i < i1; i++) d[i] = x[i] * 2;
}

static void custom2(struct ggml_tensor *dst, const struct ggml_tensor *a, const struct ggml_tensor *b, int ith, int nth,
                    void *userdata) {
    if (strcmp(userdata, data)) abort();
    for (int i = ith; i < ggml_nelements(dst); i += nth)
        ggml_get_data_f32(dst)[i] = ggml_get_data_f32(a)[i] + ggml_get_data_f32(b)[i];
}

static void custom(struct ggml_tensor *dst, int ith, int nth, void *userdata) {
    const struct ggml_tensor *a = dst->src[0], *b = dst->src[4];
    if (userdata != data || !b || dst->src[5]) abort();
    for (int i = ith; i < ggml_nelements(dst); i += nth)
        ((int32_t *) dst->data)[i] = (int32_t) (ggml_get_data_f32(a)[i] * ggml_get_data_f32(b)[i]);
}

static int n_asked;
static bool stop(void *user) {
    n_asked++;
    return *(bool *) user;
}

int main(void) {
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){1 << 20, NULL, false});
    struct ggml_tensor *t = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 10);
    for (int i = 0; i < 10; i++) ggml_set_f32_1d(t, i, (float) i);
    struct ggml_tensor *a = ggml_map_custom1(ctx, t, custom1, 2, NULL);
    struct ggml_tensor *b = ggml_map_custom2(ctx, a, t, custom2, GGML_N_TASKS_MAX, data);
    struct ggml_tensor *args[5] = {b, t, t, t, t};
    struct ggml_tensor *c = ggml_custom_4d(ctx, GGML_TYPE_I32, 10, 1, 1, 1, args, 5, custom, GGML_N_TASKS_MAX, data);
    ggml_set_name(c, "result");
    struct ggml_cgraph *g = ggml_new_graph(ctx);
    ggml_build_forward_expand(g, c);
    if (ggml_graph_compute_with_ctx(ctx, g, 4) != GGML_STATUS_SUCCESS) return 1;
    for (int i = 0; i < 10; i++)
        if (((int32_t *) c->data)[i] != 3 * i * i) return 2;
    char path[] = "/tmp/lamina-dot-XXXXXX", text[4096] = "";
    if (mkstemp(path) < 0) return 3;
    ggml_graph_dump_dot(g, NULL, path);
    FILE *f = fopen(path, "r");
    if (!f || !fread(text, 1, sizeof text - 1, f) || !strstr(text, "digraph") || !strstr(text, "result")) return 4;
    fclose(f);
    remove(path);

    struct ggml_threadpool_params tp = ggml_threadpool_params_default(3);
    tp.paused = true;
    struct ggml_threadpool *pool = ggml_threadpool_new(&tp);
    if (!pool || ggml_threadpool_get_n_threads(pool) != 3) return 5;
    ggml_threadpool_resume(pool);
    struct ggml_cplan plan = ggml_graph_plan(g, 3, pool);
    uint8_t *work = malloc(plan.work_size + 1);
    plan.work_data = work;
    for (int k = 0; k < 50; k++) {
        memset(c->data, 0, ggml_nbytes(c));
        if (k % 10 == 5) ggml_threadpool_pause(pool);
        if (ggml_graph_compute(g, &plan) != GGML_STATUS_SUCCESS || ((int32_t *) c->data)[9] != 243) return 6;
        if (k % 10 == 7) ggml_threadpool_resume(pool);
    }
    bool want_stop = true;
    plan.abort_callback = stop;
    plan.abort_callback_data = &want_stop;
    if (ggml_graph_compute(g, &plan) != GGML_STATUS_ABORTED || n_asked == 0) return 7;
    want_stop = false;
    if (ggml_graph_compute(g, &plan) != GGML_STATUS_SUCCESS) return 8;
    ggml_backend_t cpu = ggml_backend_cpu_init();
    ggml_backend_cpu_set_threadpool(cpu, pool);
    if (ggml_backend_graph_compute(cpu, g) != GGML_STATUS_SUCCESS) return 9;
    ggml_backend_free(cpu);
    ggml_threadpool_free(pool);
    free(work);
    ggml_free(ctx);
    printf("custom operations, dot, thread pools\n");
    return 0;
}
