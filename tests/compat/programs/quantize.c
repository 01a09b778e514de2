// Rows to every quantized type and back; a whole model to Q8_0 and Q4_K, which must still run.
#include "ggml.h"
#include "ggml-cpu.h"
#include "llama.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    (void) argc;
    enum { N = 512, ROWS = 4 };
    float x[N * ROWS], y[N * ROWS], weights[N];
    for (int i = 0; i < N * ROWS; i++) x[i] = sinf((float) i * 0.37f) * expf(-(float) (i % 97) / 40);
    for (int i = 0; i < N; i++) weights[i] = 1 + (float) (i % 5);
    for (int type = 0; type < GGML_TYPE_COUNT; type++) {
        const struct ggml_type_traits *tt = ggml_get_type_traits((enum ggml_type) type);
        if (!tt->blck_size || !tt->is_quantized || !tt->to_float) continue;
        ggml_quantize_init((enum ggml_type) type);
        const size_t bytes = ggml_row_size((enum ggml_type) type, N) * ROWS;
        void *q = malloc(bytes);
        const size_t n = ggml_quantize_chunk((enum ggml_type) type, x, q, 0, ROWS, N, weights);
        if (n != bytes) {  // types that only activations have
            if (type == GGML_TYPE_Q8_1 || type == GGML_TYPE_Q8_K) {
                free(q);
                continue;
            }
            return 1;
        }
        if (!ggml_validate_row_data((enum ggml_type) type, q, bytes)) return 2;
        tt->to_float(q, y, N * ROWS);
        double err = 0, ref = 0;
        for (int i = 0; i < N * ROWS; i++) err += (double) (x[i] - y[i]) * (x[i] - y[i]), ref += (double) x[i] * x[i];
        printf("%-8s %.2f bits, error %.5f\n", ggml_type_name((enum ggml_type) type), 8.0 * (double) bytes / (N * ROWS),
               err / ref);
        if (!(err / ref < 0.6)) return 3;
        free(q);
    }
    ggml_quantize_free();
    static const enum llama_ftype kinds[] = {LLAMA_FTYPE_MOSTLY_Q8_0, LLAMA_FTYPE_MOSTLY_Q4_K_M};
    for (int k = 0; k < 2; k++) {
        char path[] = "/tmp/lamina-quant-XXXXXX";
        if (mkstemp(path) < 0) return 4;
        struct llama_model_quantize_params p = llama_model_quantize_default_params();
        p.ftype = kinds[k];
        p.nthread = 2;
        if (llama_model_quantize(argv[1], path, &p) == 0) return 5;  // quantized already, and requantizing was not asked for
        p.allow_requantize = true;
        if (llama_model_quantize(argv[1], path, &p) != 0) return 6;
        struct llama_model *m = llama_model_load_from_file(path, llama_model_default_params());
        char desc[128];
        if (!m || llama_model_desc(m, desc, sizeof desc) < 0) return 7;
        struct llama_context_params cp = llama_context_default_params();
        cp.n_ctx = 64;
        struct llama_context *c = llama_init_from_model(m, cp);
        llama_token t[3] = {1, 100, 200};
        if (!c || llama_decode(c, llama_batch_get_one(t, 3)) || !isfinite(llama_get_logits_ith(c, -1)[0])) return 8;
        printf("%s, %llu bytes\n", desc, (unsigned long long) llama_model_size(m));
        llama_free(c);
        llama_model_free(m);
        remove(path);
    }
    return 0;
}
