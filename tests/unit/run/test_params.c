// Fields of the model, context and quantize parameters: each does what its comment in llama/types.h says, or is refused with a sentence.
// Elsewhere: vocab_only, callbacks and overrides of a model (model/test_load), load_mtp and ctx_type (run/test_mtp), samplers
// (run/test_samplers), keep_split and imatrix (tests/compat/quantize.py).
#include "model_maker.h"
#include "test.h"

#include "llama/ext.h"

#define NV MAKER_N_VOCAB
#define ROW (NV * sizeof(float))

static char path[256];

static struct llama_model_params model_params(void) {
    struct llama_model_params p = llama_model_default_params();
    p.n_gpu_layers = 0;
    return p;
}

static struct llama_context_params params(void) {
    struct llama_context_params p = llama_context_default_params();
    p.n_ctx = 256;
    p.n_threads = p.n_threads_batch = 2;
    return p;
}

static struct llama_model *load(struct llama_model_params p) { return llama_model_load_from_file(path, p); }

// Logits after 20 tokens; NULL context: one by these parameters.
static float *logits(const struct llama_model *m, struct llama_context_params cp, float *out) {
    struct llama_context *c = llama_init_from_model((struct llama_model *) (uintptr_t) m, cp);
    if (!c) print_error("%s\n", ggml_last_error());
    assert_non_null(c);
    llama_token t[20];
    for (int i = 0; i < 20; i++) t[i] = (7 + 37 * i) % NV;
    assert_int_equal(llama_decode(c, llama_batch_get_one(t, 20)), 0);
    memcpy(out, llama_get_logits_ith(c, -1), ROW);
    llama_free(c);
    return out;
}

static struct llama_device_bytes bytes_of(struct llama_model *m, struct llama_context_params cp) {
    struct llama_context *c = llama_init_from_model(m, cp);
    if (!c) print_error("%s\n", ggml_last_error());
    assert_non_null(c);
    struct llama_device_bytes all[8], b;
    const int n = llama_context_bytes(c, all, 8);
    b = all[n - 1];
    llama_free(c);
    return b;
}

// ---- models -----------------------------------------------------------------------------------------------------------------

static void test_devices(void **state) {
    (void) state;
    snprintf(path, sizeof path, "%s", maker_path("llama", GGML_TYPE_F16));
    float want[NV], got[NV];
    struct llama_model_params p = model_params();
    struct llama_model *m = load(p);
    logits(m, params(), want);
    struct llama_device_bytes b[4];
    assert_int_equal(llama_plan_bytes(path, p, params(), b, 4), 3);  // two devices and the CPU
    assert_int_equal(b[0].weights_copied + b[1].weights_copied, 0);
    llama_model_free(m);
    // n_gpu_layers, tensor_split: where the weights lie
    p.n_gpu_layers = -1;
    const float first[2] = {1, 0};
    p.tensor_split = first;
    assert_int_equal(llama_plan_bytes(path, p, params(), b, 4), 3);
    assert_true(b[0].weights_copied > 0 && b[1].weights_copied == 0);
    const float even[2] = {1, 1};
    p.tensor_split = even;
    assert_int_equal(llama_plan_bytes(path, p, params(), b, 4), 3);
    assert_true(b[0].weights_copied > 0 && b[1].weights_copied > 0);
    const size_t both = b[0].weights_copied + b[1].weights_copied;
    p.n_gpu_layers = 2;
    assert_int_equal(llama_plan_bytes(path, p, params(), b, 4), 3);
    assert_true(b[0].weights_copied + b[1].weights_copied < both);
    p.n_gpu_layers = -1;
    // devices: none, or the second alone
    ggml_backend_dev_t none[1] = {NULL}, second[2] = {ggml_backend_dev_by_name("SIM1"), NULL};
    assert_non_null(second[0]);
    p.devices = none;
    assert_int_equal(llama_plan_bytes(path, p, params(), b, 4), 1);
    p.devices = second;
    assert_int_equal(llama_plan_bytes(path, p, params(), b, 4), 2);
    assert_string_equal(b[0].name, "SIM1");
    p.devices = NULL;
    p.tensor_split = NULL;
    // split_mode and main_gpu
    p.split_mode = LLAMA_SPLIT_MODE_NONE;
    p.main_gpu = 1;
    assert_int_equal(llama_plan_bytes(path, p, params(), b, 4), 2);
    assert_string_equal(b[0].name, "SIM1");
    p.main_gpu = -1;
    assert_int_equal(llama_plan_bytes(path, p, params(), b, 4), 1);
    p.main_gpu = 2;
    assert_null(load(p));
    assert_error("main_gpu is 2");
    p.main_gpu = 0;
    p.split_mode = LLAMA_SPLIT_MODE_TENSOR;
    assert_null(load(p));
    assert_error("split_mode is TENSOR");
    p.devices = second;  // nothing to split between
    m = load(p);
    assert_memory_equal(want, logits(m, params(), got), ROW);
    llama_model_free(m);
    p.devices = NULL;
    p.split_mode = LLAMA_SPLIT_MODE_ROW;
    m = load(p);
    assert_memory_equal(want, logits(m, params(), got), ROW);
    llama_model_free(m);
    p.split_mode = (enum llama_split_mode) 9;
    assert_null(load(p));
    assert_error("split_mode is 9");
    // permissions for what no device here has
    for (int k = 0; k < 4; k++) {
        p = model_params();
        p.n_gpu_layers = -1;
        p.use_extra_bufts = k & 1;
        p.no_host = k & 2;
        m = load(p);
        assert_memory_equal(want, logits(m, params(), got), ROW);
        llama_model_free(m);
    }
}

static void test_loading(void **state) {
    (void) state;
    snprintf(path, sizeof path, "%s", maker_path("mimo2-mtp", GGML_TYPE_F32));
    float want[NV], got[NV];
    struct llama_model_params p = model_params();
    struct llama_model *m = load(p);
    logits(m, params(), want);
    llama_model_free(m);
    // load_mode: mapped or copied
    const enum llama_load_mode modes[] = {LLAMA_LOAD_MODE_AUTO,  LLAMA_LOAD_MODE_NONE,       LLAMA_LOAD_MODE_MMAP,
                                          LLAMA_LOAD_MODE_MLOCK, LLAMA_LOAD_MODE_MMAP_MLOCK, LLAMA_LOAD_MODE_DIRECT_IO};
    for (int k = 0; k < 6; k++) {
        p.load_mode = modes[k];
        m = load(p);
        assert_non_null(m);
        const struct llama_device_bytes b = bytes_of(m, params());
        const bool mapped = k == 0 || k == 2 || k == 4;
        assert_int_equal(b.weights_mapped > 0, mapped);
        assert_int_equal(b.weights_copied > 0, !mapped);
        assert_memory_equal(want, logits(m, params(), got), ROW);
        llama_model_free(m);
    }
    p.load_mode = (enum llama_load_mode) 8;
    assert_null(load(p));
    assert_error("load_mode is 8");
    // lazy_mode: which pages are entered ahead of use, which depends on the file system too, is not looked at
    p = model_params();
    p.lazy_mode = (enum llama_lazy_mode) 5;
    assert_null(load(p));
    assert_error("lazy_mode is 5");
    p.lazy_mode = LLAMA_LAZY_MODE_ON;
    p.load_mode = LLAMA_LOAD_MODE_NONE;
    assert_null(load(p));
    assert_error("lazy_mode is ON");
    p.load_mode = LLAMA_LOAD_MODE_MMAP;
    m = load(p);
    assert_memory_equal(want, logits(m, params(), got), ROW);
    llama_model_free(m);
    // no_alloc: shapes alone, nothing is computed
    llama_token t = 1;
    p = model_params();
    p.no_alloc = true;
    m = load(p);
    struct llama_context *c = llama_init_from_model(m, params());
    assert_int_equal(llama_decode(c, llama_batch_get_one(&t, 1)), -1);
    assert_error("no_alloc");
    llama_free(c);
    llama_model_free(m);
    // check_tensors: a value that can't be
    p = model_params();
    p.check_tensors = p.load_mtp = true;  // the head is what the file ends with
    m = load(p);
    assert_non_null(m);
    llama_model_free(m);
    char bad[300];
    snprintf(bad, sizeof bad, "%s.bad", path);
    FILE *in = fopen(path, "rb"), *out = fopen(bad, "wb");
    static uint8_t all[1 << 24];
    const size_t n = fread(all, 1, sizeof all, in);
    const float nan = NAN;
    memcpy(all + n - 4096, &nan, 4);
    assert_int_equal(fwrite(all, 1, n, out), n);
    fclose(in);
    fclose(out);
    assert_null(llama_model_load_from_file(bad, p));
    assert_error("values that can't be");
    p.check_tensors = false;
    m = llama_model_load_from_file(bad, p);
    assert_non_null(m);
    llama_model_free(m);
    unlink(bad);
}

// ---- contexts ---------------------------------------------------------------------------------------------------------------

// Fields that change what is computed: every one gives other logits than the default, and the default again gives the same.
static void test_numbers(void **state) {
    (void) state;
    snprintf(path, sizeof path, "%s", maker_path("llama", GGML_TYPE_F16));
    struct llama_model *m = load(model_params());
    float want[NV], got[NV];
    logits(m, params(), want);
    struct llama_context_params p;
#define CHANGES(change)                                                                                                     \
    do {                                                                                                                    \
        p = params();                                                                                                       \
        change;                                                                                                             \
        assert_memory_not_equal(want, logits(m, p, got), ROW);                                                              \
    } while (0)
#define CHANGES_NOT(change)                                                                                                 \
    do {                                                                                                                    \
        p = params();                                                                                                       \
        change;                                                                                                             \
        if (memcmp(want, logits(m, p, got), ROW)) print_error("%s changes logits\n", #change);                              \
        assert_memory_equal(want, got, ROW);                                                                                \
    } while (0)
    CHANGES(p.rope_freq_base = 500);
    CHANGES(p.rope_freq_scale = 0.5f);
    CHANGES((p.rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_YARN, p.rope_freq_scale = 0.25f));
    CHANGES(p.yarn_attn_factor = 1.5f);
    CHANGES(p.type_k = GGML_TYPE_Q8_0);
    CHANGES(p.type_v = GGML_TYPE_Q4_0);
    CHANGES(p.attention_type = LLAMA_ATTENTION_TYPE_NON_CAUSAL);
    // within yarn: its own parameters
    struct llama_context_params yarn = params();
    yarn.rope_scaling_type = LLAMA_ROPE_SCALING_TYPE_YARN;
    yarn.rope_freq_scale = 0.25f;
    yarn.yarn_orig_ctx = 64;
    float y[NV];
    logits(m, yarn, y);
    p = yarn;
    p.yarn_ext_factor = 0.5f;
    assert_memory_not_equal(y, logits(m, p, got), ROW);
    p = yarn;
    p.yarn_beta_fast = 4;
    assert_memory_not_equal(y, logits(m, p, got), ROW);
    p = yarn;
    p.yarn_beta_slow = 8;
    assert_memory_not_equal(y, logits(m, p, got), ROW);
    p = yarn;
    p.yarn_orig_ctx = 16;
    assert_memory_not_equal(y, logits(m, p, got), ROW);
    // what must change nothing
    CHANGES_NOT(p.n_ctx = 1024);
    CHANGES_NOT(p.n_batch = 64);
    CHANGES_NOT(p.n_ubatch = 7);
    CHANGES_NOT(p.n_threads = p.n_threads_batch = 1);
    CHANGES_NOT(p.n_seq_max = 3);
    CHANGES_NOT((p.n_seq_max = 3, p.kv_unified = true));
    CHANGES_NOT(p.n_rs_seq = 4);
    CHANGES_NOT(p.n_outputs_max = 1);
    CHANGES_NOT(p.n_outputs_max_per_seq = 0);
    CHANGES_NOT(p.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED);
    CHANGES_NOT(p.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED);
    CHANGES_NOT(p.defrag_thold = 0.1f);
    CHANGES_NOT(p.embeddings = true);
    CHANGES_NOT(p.offload_kqv = false);
    CHANGES_NOT(p.op_offload = false);
    CHANGES_NOT(p.no_perf = false);
    CHANGES_NOT(p.swa_full = false);
    llama_model_free(m);
}

static int n_asked;
static bool ask_nothing(struct ggml_tensor *t, bool ask, void *ud) {
    (void) t, (void) ask;
    ++*(int *) ud;
    return false;
}
static bool stop_now(void *ud) { return *(bool *) ud; }

static void test_context(void **state) {
    (void) state;
    snprintf(path, sizeof path, "%s", maker_path("gemma3", GGML_TYPE_F16));
    struct llama_model *m = load(model_params());
    llama_token t[300];
    for (int i = 0; i < 300; i++) t[i] = (7 + 37 * i) % NV;
    // sizes
    struct llama_context_params p = params();
    p.n_ctx = 1024;
    p.n_batch = 256;
    p.n_ubatch = 128;
    const struct llama_device_bytes full = bytes_of(m, p);
    p.n_ctx = 2048;
    assert_true(bytes_of(m, p).kv > full.kv);
    p.n_ctx = 1024;
    p.swa_full = false;
    const struct llama_device_bytes windowed = bytes_of(m, p);
    assert_true(windowed.kv < full.kv);
    p.type_k = p.type_v = GGML_TYPE_Q8_0;
    assert_true(bytes_of(m, p).kv < windowed.kv);
    p = params();
    p.n_ctx = 1024;
    p.n_batch = 256;
    p.n_ubatch = 32;
    assert_true(bytes_of(m, p).compute < full.compute);
    p.n_outputs_max = 4;
    assert_true(bytes_of(m, p).outputs < full.outputs);
    // n_outputs_max: one more is refused
    struct llama_context *c = llama_init_from_model(m, p);
    struct llama_batch b = llama_batch_init(8, 0, 1);
    b.n_tokens = 5;
    for (int i = 0; i < 5; i++) {
        b.token[i] = t[i];
        b.pos[i] = i;
        b.n_seq_id[i] = 1;
        b.seq_id[i][0] = 0;
        b.logits[i] = 1;
    }
    assert_int_equal(llama_decode(c, b), -1);
    assert_error("n_outputs_max");
    b.logits[0] = 0;
    assert_int_equal(llama_decode(c, b), 0);
    llama_free(c);
    p.n_outputs_max = 0;
    assert_int_equal(p.n_outputs_max_per_seq, 1);  // the field's default, which limits nothing there either
    c = llama_init_from_model(m, p);
    b.logits[0] = 1;
    assert_int_equal(llama_decode(c, b), 0);
    for (int i = 0; i < b.n_tokens; i++) assert_non_null(llama_get_logits_ith(c, i));
    llama_free(c);
    llama_batch_free(b);
    // kv_unified: one sequence may have all of the room, or its share
    p = params();
    p.n_ctx = 512;
    p.n_seq_max = 2;
    p.n_batch = 512;
    c = llama_init_from_model(m, p);
    assert_int_equal(llama_n_ctx_seq(c), 256);
    assert_int_equal(llama_decode(c, llama_batch_get_one(t, 300)), 1);
    llama_free(c);
    p.kv_unified = true;
    c = llama_init_from_model(m, p);
    assert_int_equal(llama_n_ctx_seq(c), 512);
    assert_int_equal(llama_decode(c, llama_batch_get_one(t, 300)), 0);
    llama_free(c);
    // callbacks
    p = params();
    p.cb_eval = ask_nothing;
    p.cb_eval_user_data = &n_asked;
    bool stop = false;
    p.abort_callback = stop_now;
    p.abort_callback_data = &stop;
    c = llama_init_from_model(m, p);
    n_asked = 0;
    assert_int_equal(llama_decode(c, llama_batch_get_one(t, 3)), 0);
    assert_true(n_asked > 10);
    stop = true;
    assert_int_equal(llama_decode(c, llama_batch_get_one(t + 3, 1)), 2);
    llama_free(c);
    // embeddings and pooling
    p = params();
    c = llama_init_from_model(m, p);
    assert_int_equal(llama_decode(c, llama_batch_get_one(t, 3)), 0);
    assert_null(llama_get_embeddings_ith(c, 2));
    assert_error("no embeddings");
    llama_free(c);
    p.embeddings = true;
    c = llama_init_from_model(m, p);
    assert_int_equal(llama_decode(c, llama_batch_get_one(t, 3)), 0);
    assert_non_null(llama_get_embeddings_ith(c, 0));
    assert_null(llama_get_embeddings_seq(c, 0));
    llama_free(c);
    p.pooling_type = LLAMA_POOLING_TYPE_MEAN;
    c = llama_init_from_model(m, p);
    assert_int_equal(llama_pooling_type(c), LLAMA_POOLING_TYPE_MEAN);
    assert_int_equal(llama_decode(c, llama_batch_get_one(t, 3)), 0);
    assert_non_null(llama_get_embeddings_seq(c, 0));
    llama_free(c);
    // offload_kqv: where the cache lies
    struct llama_model_params on = llama_model_default_params();
    struct llama_device_bytes d[4];
    p = params();
    assert_int_equal(llama_plan_bytes(path, on, p, d, 4), 3);
    assert_true(d[0].kv > 0);
    p.offload_kqv = false;
    assert_int_equal(llama_plan_bytes(path, on, p, d, 4), 3);
    assert_true(d[0].kv == 0 && d[1].kv == 0 && d[2].kv > 0);
    llama_model_free(m);
    // n_rs_seq: states to go back to
    snprintf(path, sizeof path, "%s", maker_path("mamba2", GGML_TYPE_F32));
    m = load(model_params());
    p = params();
    const size_t one = bytes_of(m, p).recurrent;
    p.n_rs_seq = 3;
    assert_true(bytes_of(m, p).recurrent >= 4 * one);
    c = llama_init_from_model(m, p);
    assert_int_equal(llama_n_rs_seq(c), 3);
    assert_int_equal(llama_decode(c, llama_batch_get_one(t, 10)), 0);
    assert_true(llama_memory_seq_rm(llama_get_memory(c), 0, 8, -1));
    assert_false(llama_memory_seq_rm(llama_get_memory(c), 0, 3, -1));
    llama_free(c);
    p.n_rs_seq = 63;
    assert_null(llama_init_from_model(m, p));
    assert_error("n_rs_seq is 63");
    llama_model_free(m);
}

// ---- quantizing -------------------------------------------------------------------------------------------------------------

static char to[300];

static uint64_t quantized(struct llama_model_quantize_params *p, uint64_t *hash) {
    struct llama_quantize_report r = {0};
    unlink(to);
    if (llama_model_quantize_report(path, to, p, NULL, NULL, &r) != 0) return 0;
    FILE *f = fopen(to, "rb");
    if (!f) return p->dry_run ? r.bytes_files : 0;
    uint64_t h = 14695981039346656037u;
    for (int ch; (ch = fgetc(f)) != EOF;) h = (h ^ (uint64_t) ch) * 1099511628211u;
    fclose(f);
    if (hash) *hash = h;
    return r.bytes_files;
}

static enum ggml_type type_of(const char *tensor) {
    struct gguf_context *g = gguf_init_from_file(to, (struct gguf_init_params){.no_alloc = true});
    assert_non_null(g);
    const int64_t id = gguf_find_tensor(g, tensor);
    const enum ggml_type t = id < 0 ? GGML_TYPE_COUNT : gguf_get_tensor_type(g, id);
    gguf_free(g);
    return t;
}

static void test_quantize(void **state) {
    (void) state;
    snprintf(path, sizeof path, "%s", maker_path("llama", GGML_TYPE_F16));
    snprintf(to, sizeof to, "/tmp/lamina-test-%d-to.gguf", (int) getpid());
    struct llama_model_quantize_params p = llama_model_quantize_default_params();
    uint64_t h = 0, same = 0;
    p.ftype = LLAMA_FTYPE_MOSTLY_Q4_K_M;
    const uint64_t size = quantized(&p, &h);
    assert_true(size > 0);
    // nthread, max_buf_size: another way to the same file
    p.nthread = 1;
    assert_int_equal(quantized(&p, &same), size);
    assert_true(h == same);
    const size_t rooms[] = {1, 5000, 100000, (size_t) 1 << 30};
    for (int i = 0; i < 4; i++) {
        p.max_buf_size = rooms[i];
        p.nthread = 1 + i % 3;
        assert_int_equal(quantized(&p, &same), size);
        assert_true(h == same);
    }
    p = llama_model_quantize_default_params();
    p.ftype = LLAMA_FTYPE_MOSTLY_Q4_K_M;
    p.dry_run = true;
    assert_int_equal(quantized(&p, NULL), size);
    assert_true(access(to, F_OK) != 0);
    p.dry_run = false;
    p.output_tensor_type = GGML_TYPE_Q5_0;
    p.token_embedding_type = GGML_TYPE_Q8_0;
    assert_true(quantized(&p, NULL) > 0);
    assert_int_equal(type_of("token_embd.weight"), GGML_TYPE_Q8_0);
    p.output_tensor_type = p.token_embedding_type = GGML_TYPE_COUNT;
    p.pure = true;
    assert_true(quantized(&p, NULL) > 0);
    assert_int_equal(type_of("blk.0.attn_v.weight"), GGML_TYPE_Q4_K);
    assert_int_equal(type_of("blk.0.ffn_down.weight"), GGML_TYPE_Q4_K);
    p.pure = false;
    const struct llama_model_tensor_override over[] = {{"ffn_up", GGML_TYPE_Q5_1}, {NULL, GGML_TYPE_COUNT}};
    p.tt_overrides = over;
    assert_true(quantized(&p, NULL) > 0);
    assert_int_equal(type_of("blk.1.ffn_up.weight"), GGML_TYPE_Q5_1);
    p.tt_overrides = NULL;
    p.only_copy = true;
    assert_true(quantized(&p, NULL) > 0);
    assert_int_equal(type_of("blk.1.ffn_up.weight"), GGML_TYPE_F16);
    p.only_copy = false;
    const struct llama_model_kv_override keys[] = {
        {.tag = LLAMA_KV_OVERRIDE_TYPE_STR, .key = "general.name", .val_str = "new"},
        {.tag = LLAMA_KV_OVERRIDE_TYPE_INT, .key = "test.below", .val_i64 = -3},
        {.key = ""}};
    p.kv_overrides = keys;
    assert_true(quantized(&p, NULL) > 0);
    struct gguf_context *g = gguf_init_from_file(to, (struct gguf_init_params){.no_alloc = true});
    assert_string_equal(gguf_get_val_str(g, gguf_find_key(g, "general.name")), "new");
    assert_int_equal(gguf_get_val_i64(g, gguf_find_key(g, "test.below")), -3);
    gguf_free(g);
    p.kv_overrides = NULL;
    const int32_t prunes[][5] = {{1, -1}, {0, 1, 0, 1, -1}, {3, -1}, {2, 0, 1, -1}};
    for (int i = 0; i < 4; i++) {
        p.prune_layers = prunes[i];
        assert_int_equal(quantized(&p, NULL) > 0, i < 2);
        if (i == 2) assert_error("layer 3 can't be left out: the model has 3");
        if (i == 3) assert_error("no layer would be left");
        if (i > 1) continue;
        assert_int_equal(type_of(i ? "blk.1.ffn_up.weight" : "blk.2.ffn_up.weight"), GGML_TYPE_COUNT);
        g = gguf_init_from_file(to, (struct gguf_init_params){.no_alloc = true});
        assert_int_equal(gguf_get_val_u32(g, gguf_find_key(g, "llama.block_count")), i ? 1 : 2);
        gguf_free(g);
    }
    p.prune_layers = NULL;
    // requantize only when asked
    snprintf(path, sizeof path, "%s", maker_path("llama", GGML_TYPE_Q8_0));
    assert_int_equal(quantized(&p, NULL), 0);
    p.allow_requantize = true;
    assert_true(quantized(&p, NULL) > 0);
    p.ftype = (enum llama_ftype) 999;
    assert_int_equal(quantized(&p, NULL), 0);
    unlink(to);
}

// Names by which programs find experts' choices and sums in a watched graph; one sum, not its parts.
static bool count_names(struct ggml_tensor *t, bool ask, void *ud) {
    static const char *const want[] = {"ffn_moe_logits-1",   "ffn_moe_topk-1", "ffn_moe_weights-1",
                                       "ffn_moe_up-1",       "ffn_moe_down-1", "ffn_moe_out-1",
                                       "ffn_moe_weighted-1", "ffn_inp-1",      "attn_norm-1"};
    for (int i = 0; ask && i < 9; i++)
        if (!strcmp(t->name, want[i])) ((int *) ud)[i]++;
    return false;
}

static void test_watched(void **state) {
    (void) state;
    struct llama_model *m = llama_model_load_from_file(maker_path("llama-moe", GGML_TYPE_F32), llama_model_default_params());
    assert_non_null(m);
    int n[9] = {0};
    struct llama_context_params p = params();
    p.cb_eval = count_names;
    p.cb_eval_user_data = n;
    struct llama_context *c = llama_init_from_model(m, p);
    llama_token t[2] = {1, 2};
    assert_int_equal(llama_decode(c, llama_batch_get_one(t, 2)), 0);
    for (int i = 0; i < 9; i++) assert_true(i == 2 ? n[i] > 0 : n[i] == 1);
    llama_free(c);
    llama_model_free(m);
}

int main(void) {
    quiet();
    setenv("LAMINA_SIM", "2", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices), cmocka_unit_test(test_loading),  cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_context), cmocka_unit_test(test_quantize), cmocka_unit_test(test_watched),
    };
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
