// Times and counts of a context.
#include "base/log.h"
#include "run/context.h"

struct llama_perf_context_data llama_perf_context(const struct llama_context *ctx) {
    struct llama_perf_context_data d = {0};
    if (!ctx) return d;
    d.t_start_ms = 1e-3 * (double) ctx->perf.t_start_us;
    d.t_load_ms = 1e-3 * (double) ctx->model->t_load_us;
    d.t_p_eval_ms = 1e-3 * (double) ctx->perf.t_p_eval_us;
    d.t_eval_ms = 1e-3 * (double) ctx->perf.t_eval_us;
    d.n_p_eval = ctx->perf.n_p_eval > 0 ? ctx->perf.n_p_eval : 1;
    d.n_eval = ctx->perf.n_eval > 0 ? ctx->perf.n_eval : 1;
    d.n_reused = ctx->perf.n_reused;
    return d;
}

void llama_perf_context_print(const struct llama_context *ctx) {
    const struct llama_perf_context_data d = llama_perf_context(ctx);
    // scripts look for these lines as they are
    log_info("llama_perf_context_print:        load time = %10.2f ms\n", d.t_load_ms);
    log_info("llama_perf_context_print: prompt eval time = %10.2f ms / %5d tokens (%8.2f ms per token, %8.2f tokens per "
             "second)\n",
             d.t_p_eval_ms, d.n_p_eval, d.t_p_eval_ms / d.n_p_eval,
             d.t_p_eval_ms > 0 ? 1e3 * d.n_p_eval / d.t_p_eval_ms : 0.0);
    log_info("llama_perf_context_print:        eval time = %10.2f ms / %5d runs   (%8.2f ms per token, %8.2f tokens per "
             "second)\n",
             d.t_eval_ms, d.n_eval, d.t_eval_ms / d.n_eval, d.t_eval_ms > 0 ? 1e3 * d.n_eval / d.t_eval_ms : 0.0);
    log_info("llama_perf_context_print:       total time = %10.2f ms / %5d tokens\n",
             1e-3 * (double) ggml_time_us() - d.t_start_ms, d.n_p_eval + d.n_eval);
    log_info("llama_perf_context_print:    graphs reused = %10d\n", d.n_reused);
}

void llama_perf_context_reset(struct llama_context *ctx) {
    if (!ctx) return;
    ctx->perf.t_start_us = ggml_time_us();
    ctx->perf.t_p_eval_us = ctx->perf.t_eval_us = 0;
    ctx->perf.n_p_eval = ctx->perf.n_eval = ctx->perf.n_reused = 0;
}
