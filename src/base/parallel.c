// ggml_parallel: work of other libraries on several threads, for loading and quantizing. Makes its threads each time.
#include "base/team.h"

void ggml_parallel(int n_threads, void (*fn)(int ith, int nth, void *userdata), void *userdata) {
    if (!fn) return;
    struct team *t = NULL;
    if (n_threads > 1) {
        t = team_new(&(struct team_params){.n_threads = n_threads > GGML_MAX_N_THREADS ? GGML_MAX_N_THREADS : n_threads});
    }
    if (!t) {  // one thread, or none could be had: the work gets done all the same
        fn(0, 1, userdata);
        return;
    }
    team_run(t, team_size(t), fn, userdata);
    team_free(t);
}
