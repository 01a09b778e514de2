// Loading: every way in gives the same model; every kind of bad file one clear sentence.
#include "test.h"

#include "model_maker.h"

#define NV MAKER_N_VOCAB

static void logits_of(struct llama_model *m, float *out) {
    assert_non_null(m);
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 256;
    cp.n_threads = cp.n_threads_batch = 2;
    struct llama_context *c = llama_init_from_model(m, cp);
    assert_non_null(c);
    int32_t tokens[20];
    for (int i = 0; i < 20; i++) tokens[i] = (7 + 37 * i) % NV;
    assert_int_equal(llama_decode(c, llama_batch_get_one(tokens, 20)), 0);
    memcpy(out, llama_get_logits_ith(c, -1), NV * sizeof(float));
    llama_free(c);
}

static void same_as(struct llama_model *m, const float *want) {
    float got[NV];
    logits_of(m, got);
    assert_memory_equal(got, want, sizeof got);
    llama_model_free(m);
}

static char path[256], other[256];

static void reference(const char *name, enum ggml_type type, float *want) {
    snprintf(path, sizeof path, "%s", maker_path(name, type));
    snprintf(other, sizeof other, "/tmp/lamina-test-%d-other.gguf", (int) getpid());
    struct llama_model *m = llama_model_load_from_file(path, llama_model_default_params());
    logits_of(m, want);
    llama_model_free(m);
}

struct user {
    struct gguf_context *g;
    struct ggml_context *ctx;
    int n;
};

static void set_data(struct ggml_tensor *t, void *ud) {
    struct user *u = ud;
    struct ggml_tensor *src = ggml_get_tensor(u->ctx, t->name);
    assert_non_null(src);
    ggml_backend_tensor_set(t, src->data, 0, ggml_nbytes(t));
    u->n++;
}

static void test_ways(void **s) {
    (void) s;
    float want[NV];
    reference("llama", GGML_TYPE_Q8_0, want);
    FILE *f = fopen(path, "rb");
    same_as(llama_model_load_from_file_ptr(f, llama_model_default_params()), want);
    fclose(f);
    const char *one[1] = {path};
    same_as(llama_model_load_from_splits(one, 1, llama_model_default_params()), want);
    struct llama_model_params mp = llama_model_default_params();
    mp.check_tensors = true;
    same_as(llama_model_load_from_file(path, mp), want);
    struct user u = {0};
    u.g = gguf_init_from_file(path, (struct gguf_init_params){.no_alloc = false, .ctx = &u.ctx});
    assert_non_null(u.g);
    same_as(llama_model_init_from_user(u.g, set_data, &u, llama_model_default_params()), want);
    assert_int_equal(u.n, gguf_get_n_tensors(u.g));
    gguf_free(u.g);
    ggml_free(u.ctx);
    // saved and loaded again
    struct llama_model *m = llama_model_load_from_file(path, llama_model_default_params());
    llama_model_save_to_file(m, other);
    llama_model_free(m);
    same_as(llama_model_load_from_file(other, llama_model_default_params()), want);
    // onto itself
    m = llama_model_load_from_file(other, llama_model_default_params());
    llama_model_save_to_file(m, other);
    same_as(m, want);
    same_as(llama_model_load_from_file(other, llama_model_default_params()), want);
    m = llama_model_load_from_file(path, llama_model_default_params());
    llama_model_save_to_file(m, "/nonexistent/x.gguf");
    assert_error("/nonexistent/x.gguf");
    llama_model_free(m);
    unlink(other);
}

static bool stop(float f, void *ud) {
    (void) f;
    return --*(int *) ud > 0;
}

// Another program cuts the file: while it is loaded, once the first progress is told, or while it is used.
static bool cut(float f, void *ud) {
    (void) f;
    assert_int_equal(truncate(ud, 4096), 0);
    return true;
}

static void test_cut(void **s) {
    (void) s;
    float want[NV];
    reference("llama", GGML_TYPE_Q8_0, want);
    struct llama_model *m = llama_model_load_from_file(path, llama_model_default_params());
    llama_model_save_to_file(m, other);
    llama_model_free(m);
    struct llama_model_params mp = llama_model_default_params();
    mp.progress_callback = cut;
    mp.progress_callback_user_data = other;
    for (int check = 0; check < 2; check++) {
        mp.check_tensors = check;
        assert_null(llama_model_load_from_file(other, mp));
        assert_error("has become shorter");
        m = llama_model_load_from_file(path, llama_model_default_params());
        llama_model_save_to_file(m, other);
        llama_model_free(m);
    }
    m = llama_model_load_from_file(other, llama_model_default_params());
    assert_non_null(m);
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 256;
    struct llama_context *c = llama_init_from_model(m, cp);
    int32_t tokens[3] = {1, 2, 3};
    assert_int_equal(llama_decode(c, llama_batch_get_one(tokens, 3)), 0);
    assert_int_equal(truncate(other, 4096), 0);
    for (int i = 0; i < 2; i++) {
        ggml_clear_error();
        assert_int_equal(llama_decode(c, llama_batch_get_one(tokens, 3)), -3);
        assert_error("has become shorter");
    }
    llama_model_save_to_file(m, "/tmp/lamina-test-never.gguf");
    assert_error("has become shorter");
    assert_int_equal(access("/tmp/lamina-test-never.gguf", F_OK), -1);
    llama_free(c);
    llama_model_free(m);
    unlink(other);
}

// A file that holds a vocabulary and no word of the model's shape is enough for the vocabulary, and for nothing else.
static void test_vocabulary_file(void **s) {
    (void) s;
    static const char file[] = "/tmp/lamina_test_vocabulary.gguf";
    const char *tokens[] = {"<pad>", "</s>", "<unk>", "a"};
    struct gguf_context *g = gguf_init_empty();
    gguf_set_val_str(g, "general.architecture", "t5");
    gguf_set_val_str(g, "tokenizer.ggml.model", "t5");
    gguf_set_arr_str(g, "tokenizer.ggml.tokens", tokens, 4);
    assert_true(gguf_write_to_file(g, file, true));
    gguf_free(g);
    struct llama_model_params mp = llama_model_default_params();
    mp.vocab_only = true;
    ggml_clear_error();
    struct llama_model *m = llama_model_load_from_file(file, mp);
    assert_non_null(m);
    assert_string_equal(ggml_last_error(), "");
    assert_int_equal(llama_vocab_n_tokens(llama_model_get_vocab(m)), 4);
    assert_int_equal(llama_model_n_layer(m), 0);
    assert_true(llama_model_rope_freq_scale_train(m) == 1.0f);
    assert_null(llama_init_from_model(m, llama_context_default_params()));
    llama_model_free(m);
    assert_null(llama_model_load_from_file(file, llama_model_default_params()));
    assert_error("context_length");
    unlink(file);
}

static void test_options(void **s) {
    (void) s;
    float want[NV], got[NV];
    reference("llama", GGML_TYPE_F32, want);
    struct llama_model_params mp = llama_model_default_params();
    mp.vocab_only = true;
    struct llama_model *m = llama_model_load_from_file(path, mp);
    assert_non_null(m);
    assert_int_equal(llama_vocab_n_tokens(llama_model_get_vocab(m)), NV);
    assert_int_equal(llama_model_n_embd(m), 256);
    assert_null(llama_init_from_model(m, llama_context_default_params()));
    assert_error("vocab_only");
    llama_model_free(m);
    // places for tensors that can't be
    mp = llama_model_default_params();
    struct llama_model_tensor_buft_override places[2] = {{"[", ggml_backend_cpu_buffer_type()}, {0}};
    mp.tensor_buft_overrides = places;
    assert_null(llama_model_load_from_file(path, mp));
    assert_error("no regular expression");
    places[0] = (struct llama_model_tensor_buft_override){"blk", NULL};
    assert_null(llama_model_load_from_file(path, mp));
    assert_error("no buffer type");
    // cancelled at every step
    int n = 1000;
    mp = llama_model_default_params();
    mp.progress_callback = stop;
    mp.progress_callback_user_data = &n;
    m = llama_model_load_from_file(path, mp);
    assert_non_null(m);
    llama_model_free(m);
    for (int k = 1, total = 1000 - n; k <= total; k++) {
        n = k;
        assert_null(llama_model_load_from_file(path, mp));
        assert_error("cancelled");
    }
    // overridden keys
    struct llama_model_kv_override over[3] = {
        {.tag = LLAMA_KV_OVERRIDE_TYPE_FLOAT, .key = "llama.rope.freq_base", .val_f64 = 500}, {0}};
    mp = llama_model_default_params();
    mp.kv_overrides = over;
    m = llama_model_load_from_file(path, mp);
    logits_of(m, got);
    assert_true(memcmp(got, want, sizeof got) != 0);
    char buf[64];
    assert_true(llama_model_meta_val_str(m, "llama.rope.freq_base", buf, sizeof buf) > 0);
    assert_string_equal(buf, "500.000000");
    llama_model_free(m);
    // tensors sent to a given kind of buffer
    struct llama_model_tensor_buft_override ov[] = {{"blk\\.\\d+\\.ffn_.*", ggml_backend_cpu_buffer_type()}, {NULL, NULL}};
    mp = llama_model_default_params();
    mp.tensor_buft_overrides = ov;
    same_as(llama_model_load_from_file(path, mp), want);
    // shapes alone
    mp = llama_model_default_params();
    mp.no_alloc = true;
    m = llama_model_load_from_file(path, mp);
    assert_non_null(m);
    assert_true(llama_model_size(m) > 1 << 20);
    llama_model_free(m);
}

static void test_facts(void **s) {
    (void) s;
    snprintf(path, sizeof path, "%s", maker_path("llama-moe", GGML_TYPE_F32));
    struct llama_model *m = llama_model_load_from_file(path, llama_model_default_params());
    char buf[128];
    assert_int_equal(llama_model_n_layer(m), 3);
    assert_int_equal(llama_model_n_head(m), 4);
    assert_int_equal(llama_model_n_head_kv(m), 2);
    assert_int_equal(llama_model_n_ctx_train(m), 2048);
    assert_int_equal(llama_model_rope_type(m), LLAMA_ROPE_TYPE_NORM);
    assert_false(llama_model_has_encoder(m));
    assert_true(llama_model_has_decoder(m));
    assert_false(llama_model_is_recurrent(m));
    assert_true(llama_model_meta_count(m) > 5);
    assert_int_equal(llama_model_meta_val_str(m, "general.architecture", buf, sizeof buf), 5);
    assert_string_equal(buf, "llama");
    assert_int_equal(llama_model_meta_val_str(m, "general.architecture", buf, 3), 5);
    assert_string_equal(buf, "ll");
    assert_int_equal(llama_model_meta_val_str(m, "no.such.key", buf, sizeof buf), -1);
    assert_int_equal(llama_model_meta_val_str(m, "tokenizer.ggml.tokens", buf, sizeof buf), -1);  // arrays aren't text
    for (int i = 0; i < llama_model_meta_count(m); i++) {
        assert_true(llama_model_meta_key_by_index(m, i, buf, sizeof buf) > 0);
        assert_true(llama_model_meta_val_str(m, buf, NULL, 0) >= 0);
    }
    assert_int_equal(llama_model_meta_key_by_index(m, -1, buf, sizeof buf), -1);
    assert_int_equal(llama_model_meta_val_str_by_index(m, 1000, buf, sizeof buf), -1);
    assert_true(llama_model_desc(m, buf, sizeof buf) > 5);
    assert_null(llama_model_chat_template(m, NULL));
    // no buffer, whatever its size is said to be: the length alone
    assert_int_equal(llama_model_meta_val_str(m, "general.architecture", NULL, 100), 5);
    assert_int_equal(llama_model_meta_val_str(m, NULL, NULL, 100), -1);
    assert_true(llama_model_desc(m, NULL, 100) > 5);
    llama_model_free(m);
}

// What a program asks when it did not look whether the model was loaded.
static void test_no_model(void **s) {
    (void) s;
    char buf[16] = "unchanged";
    assert_null(llama_model_get_vocab(NULL));
    assert_int_equal(llama_model_n_ctx_train(NULL), 0);
    assert_int_equal(llama_model_n_embd(NULL), 0);
    assert_int_equal(llama_model_n_head(NULL), 0);
    assert_int_equal(llama_model_size(NULL), 0);
    assert_int_equal(llama_model_rope_type(NULL), LLAMA_ROPE_TYPE_NONE);
    assert_int_equal(llama_model_decoder_start_token(NULL), LLAMA_TOKEN_NULL);
    assert_false(llama_model_has_decoder(NULL));
    assert_false(llama_model_is_recurrent(NULL));
    assert_null(llama_model_chat_template(NULL, NULL));
    assert_null(llama_model_cls_label(NULL, 0));
    assert_int_equal(llama_model_meta_count(NULL), 0);
    assert_int_equal(llama_model_desc(NULL, buf, sizeof buf), -1);
    assert_string_equal(buf, "");
    assert_int_equal(llama_model_meta_key_by_index(NULL, 0, buf, sizeof buf), -1);
    assert_int_equal(llama_model_meta_val_str(NULL, "x", buf, sizeof buf), -1);
    assert_int_equal(llama_adapter_meta_count(NULL), 0);
    assert_int_equal(llama_adapter_meta_val_str(NULL, "x", buf, sizeof buf), -1);
    assert_int_equal(llama_split_path(NULL, 10, "x", 0, 1), 0);
    assert_int_equal(llama_split_prefix(buf, sizeof buf, NULL, 0, 1), 0);
}

// A copy of the model with one change; what loading it says.
static void refused(const char *part, void (*change)(struct gguf_context *)) {
    struct ggml_context *ctx = NULL;
    struct gguf_context *g = gguf_init_from_file(path, (struct gguf_init_params){.no_alloc = false, .ctx = &ctx});
    assert_non_null(g);
    change(g);
    assert_true(gguf_write_to_file(g, other, false));
    gguf_free(g);
    ggml_free(ctx);
    assert_null(llama_model_load_from_file(other, llama_model_default_params()));
    assert_error(part);
    unlink(other);
}

static void unknown_arch(struct gguf_context *g) { gguf_set_val_str(g, "general.architecture", "nonesuch"); }
static void projector(struct gguf_context *g) { gguf_set_val_str(g, "general.architecture", "clip"); }
static void no_arch(struct gguf_context *g) { (void) gguf_remove_key(g, "general.architecture"); }
static void no_eps(struct gguf_context *g) { (void) gguf_remove_key(g, "llama.attention.layer_norm_rms_epsilon"); }
static void text_layers(struct gguf_context *g) { gguf_set_val_str(g, "llama.block_count", "three"); }
static void many_layers(struct gguf_context *g) { gguf_set_val_u32(g, "llama.block_count", 100000); }
static void more_layers(struct gguf_context *g) { gguf_set_val_u32(g, "llama.block_count", 4); }
static void no_layers(struct gguf_context *g) { gguf_set_val_u32(g, "llama.block_count", 0); }
static void odd_heads(struct gguf_context *g) { gguf_set_val_u32(g, "llama.attention.head_count_kv", 3); }
static void wide(struct gguf_context *g) { gguf_set_val_u32(g, "llama.embedding_length", 512); }
static void bad_eps(struct gguf_context *g) { gguf_set_val_f32(g, "llama.attention.layer_norm_rms_epsilon", -1); }
static void shard(struct gguf_context *g) {
    gguf_set_val_u16(g, "split.count", 3);
    gguf_set_val_u16(g, "split.no", 1);
}
static void first_shard(struct gguf_context *g) {
    gguf_set_val_u16(g, "split.count", 3);
    gguf_set_val_u16(g, "split.no", 0);
}
static void experts(struct gguf_context *g) {
    gguf_set_val_u32(g, "llama.expert_count", 2);
    gguf_set_val_u32(g, "llama.expert_used_count", 3);
}

static void test_refused(void **s) {
    (void) s;
    float want[NV];
    reference("llama", GGML_TYPE_F32, want);
    refused("unknown architecture 'nonesuch'", unknown_arch);
    refused("a multimodal projector", projector);
    refused("general.architecture is missing", no_arch);
    refused("layer_norm_rms_epsilon is missing", no_eps);
    refused("block_count is a str", text_layers);
    refused("100000", many_layers);
    refused("blk.3.", more_layers);
    refused("block_count is 0", no_layers);
    refused("4 heads don't share 3 key heads", odd_heads);
    refused("token_embd.weight has the shape", wide);
    refused("epsilon of -1", bad_eps);
    refused("shard 2 of 3, not the first", shard);
    refused("doesn't end in -00001-of-00003.gguf", first_shard);
    refused("3 of 2 experts", experts);
    assert_null(llama_model_load_from_file("/nonexistent.gguf", llama_model_default_params()));
    assert_error("/nonexistent.gguf");
    assert_null(llama_model_load_from_file("/tmp", llama_model_default_params()));
    assert_null(llama_model_load_from_file("/dev/zero", llama_model_default_params()));
    assert_null(llama_model_load_from_file(NULL, llama_model_default_params()));
    assert_null(llama_model_load_from_splits(NULL, 0, llama_model_default_params()));
    assert_null(llama_model_load_from_file_ptr(NULL, llama_model_default_params()));
    // cut off in the middle, at many places
    FILE *f = fopen(path, "rb");
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    char *bytes = malloc((size_t) n);
    rewind(f);
    assert_int_equal(fread(bytes, 1, (size_t) n, f), n);
    fclose(f);
    for (long k = 0; k < n; k += k < 4000 ? 37 : 100003) {
        f = fopen(other, "wb");
        fwrite(bytes, 1, (size_t) k, f);
        fclose(f);
        assert_null(llama_model_load_from_file(other, llama_model_default_params()));
    }
    // a name like a shard's says nothing
    char named[256];
    snprintf(named, sizeof named, "/tmp/lamina-test-%d-00001-of-00013.gguf", (int) getpid());
    f = fopen(named, "wb");
    fwrite(bytes, 1, (size_t) n, f);
    fclose(f);
    same_as(llama_model_load_from_file(named, llama_model_default_params()), want);
    unlink(named);
    // nor does a folder's
    char folder[256];
    snprintf(folder, sizeof folder, "/tmp/lamina-test-%d-M-00001-of-00013", (int) getpid());
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(named, sizeof named, "/tmp/lamina-test-%d-M-00001-of-00013/node-0.gguf", (int) getpid());
    f = fopen(named, "wb");
    fwrite(bytes, 1, (size_t) n, f);
    fclose(f);
    same_as(llama_model_load_from_file(named, llama_model_default_params()), want);
    // a key without a name: the smallest file that took a process down elsewhere (37 bytes)
    f = fopen(named, "wb");
    fwrite("GGUF\3\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\7", 1, 37, f);
    fclose(f);
    assert_null(llama_model_load_from_file(named, llama_model_default_params()));
    assert_error("has no name");
    // the whole model in the other byte order, as far as a reader would get
    f = fopen(named, "wb");
    fwrite(bytes, 1, 4, f);
    fwrite("\0\0\0\3\0\0\0\0\0\0\0\x1e\0\0\0\0\0\0\0\x0c", 1, 20, f);
    fwrite(bytes + 24, 1, (size_t) n - 24, f);
    fclose(f);
    assert_null(llama_model_load_from_file(named, llama_model_default_params()));
    assert_error("byte order");
    unlink(named);
    rmdir(folder);
    unlink(other);
    free(bytes);
}

// The model in three shards: all of them, one missing, renamed, joined end to end.
static void write_shard(int no, int count, const char *to) {
    struct ggml_context *ctx = NULL;
    struct gguf_context *g = gguf_init_from_file(path, (struct gguf_init_params){.no_alloc = false, .ctx = &ctx}),
                        *o = gguf_init_empty();
    if (no == 0) gguf_set_kv(o, g);
    gguf_set_val_u16(o, "split.no", (uint16_t) no);
    gguf_set_val_u16(o, "split.count", (uint16_t) count);
    gguf_set_val_i32(o, "split.tensors.count", (int32_t) gguf_get_n_tensors(g));
    for (int64_t i = no; i < gguf_get_n_tensors(g); i += count)
        gguf_add_tensor(o, ggml_get_tensor(ctx, gguf_get_tensor_name(g, i)));
    assert_true(gguf_write_to_file(o, to, false));
    gguf_free(o);
    gguf_free(g);
    ggml_free(ctx);
}

static void test_shards(void **s) {
    (void) s;
    float want[NV];
    reference("llama", GGML_TYPE_F32, want);
    char prefix[128], name[3][256], cmd[1024];
    snprintf(prefix, sizeof prefix, "/tmp/lamina-test-%d-shard", (int) getpid());
    const char *paths[3];
    for (int i = 0; i < 3; i++) {
        llama_split_path(name[i], sizeof name[i], prefix, i, 3);
        write_shard(i, 3, name[i]);
        paths[i] = name[i];
    }
    same_as(llama_model_load_from_file(name[0], llama_model_default_params()), want);
    same_as(llama_model_load_from_splits(paths, 3, llama_model_default_params()), want);
    assert_null(llama_model_load_from_file(name[1], llama_model_default_params()));
    assert_error("shard 2 of 3, not the first");
    assert_null(llama_model_load_from_splits(paths, 2, llama_model_default_params()));
    const char *mixed[3] = {name[0], name[2], name[1]};
    assert_null(llama_model_load_from_splits(mixed, 3, llama_model_default_params()));
    assert_error("should be shard 2 of 3");
    snprintf(cmd, sizeof cmd, "cat %s %s %s > %s-joined.gguf", name[0], name[1], name[2], prefix);
    assert_int_equal(system(cmd), 0);
    snprintf(other, sizeof other, "%s-joined.gguf", prefix);
    assert_null(llama_model_load_from_file(other, llama_model_default_params()));
    assert_error("joined end to end");
    unlink(other);
    rename(name[1], other);
    assert_null(llama_model_load_from_file(name[0], llama_model_default_params()));
    assert_error("shard 2 of 3 is missing at");
    rename(name[2], name[1]);
    rename(other, name[2]);
    assert_null(llama_model_load_from_file(name[0], llama_model_default_params()));
    assert_error("should be shard 2 of 3");
    // the same tensor in two shards
    struct ggml_context *ctx = NULL;
    struct gguf_context *g = gguf_init_from_file(path, (struct gguf_init_params){.no_alloc = false, .ctx = &ctx}),
                        *o = gguf_init_empty();
    gguf_set_val_u16(o, "split.no", 1);
    gguf_set_val_u16(o, "split.count", 3);
    gguf_set_val_i32(o, "split.tensors.count", (int32_t) gguf_get_n_tensors(g));
    for (int64_t i = 0; i < gguf_get_n_tensors(g); i += i == 0 ? 1 : 3)
        gguf_add_tensor(o, ggml_get_tensor(ctx, gguf_get_tensor_name(g, i)));
    assert_true(gguf_write_to_file(o, name[1], false));
    write_shard(2, 3, name[2]);
    gguf_free(o);
    assert_null(llama_model_load_from_file(name[0], llama_model_default_params()));
    assert_error(gguf_get_tensor_name(g, 0));
    gguf_free(g);
    ggml_free(ctx);
    for (int i = 0; i < 3; i++) unlink(name[i]);
    char prefix_out[256];
    assert_int_equal(llama_split_prefix(prefix_out, sizeof prefix_out, "a/b-00002-of-00003.gguf", 1, 3), 3);
    assert_string_equal(prefix_out, "a/b");
    assert_int_equal(llama_split_prefix(prefix_out, sizeof prefix_out, "a/b.gguf", 1, 3), 0);
}

int main(void) {
    quiet();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways),    cmocka_unit_test(test_cut),   cmocka_unit_test(test_vocabulary_file),
        cmocka_unit_test(test_options), cmocka_unit_test(test_facts), cmocka_unit_test(test_no_model),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_shards)};
    return cmocka_run_group_tests(tests, NULL, maker_clean);
}
