#!/usr/bin/env python3
"""Calls every public function wrongly, each call in a process of its own, and lists what crashed or hung.

  wrong_calls.py SHARED_API_DIR LIB_DIR [--cc CC] [--only NAME] [--sanitize] [--keep]

The functions and their types come from the tables of the interface. Beside valid arguments (world.h) each call has one that is wrong:
NULL for a pointer, tensors of unexpected kinds, the ends of the integers' ranges, enum values that do not exist, not-a-number; and all
pointers NULL at once. What a builder accepts is computed. Exit status 0: no crash but those that a header documents (DOCUMENTED below);
77: the tables are not there.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# Functions that may stop the process, with the words in the header that say so.
DOCUMENTED = {
    "ggml_abort": "ends the process",
}
# Integers that tell how much room or how many values a caller's pointer has: a lie cannot be seen, and the headers say so (BELIEVED).
# (function, parameter) patterns; of these only values that claim no more than there is are tried.
BELIEVED = "Lengths that callers give are believed."
SIZES = [
    (r"ggml_(cpu_)?(fp|bf)\d+_to_\w+", r""),
    (r"ggml_backend_buft_(alloc_buffer|get_alloc_size)_n|ggml_build_forward_select", r"n_tensors"),
    (r"ggml_backend_compare_graph_backend", r"num_test_nodes"),
    (r"ggml_quantize_chunk", r"nrows|n_per_row|start"),
    (r"gguf_set_arr_str", r"n"),
    (r"llama_detokenize", r"n_tokens"),
    (r"llama_tokenize", r"text_len"),
    (r"llama_sampler_init_logit_bias", r"n_logit_bias"),
    (r"llama_chat_builtin_templates", r"len"),
    (r"llama_sampler_init_(grammar_lazy\w*|dry)", r"num_\w+"),
]
# Valid arguments by type.
VALID = {
    "struct ggml_tensor *": ["W.a", "W.b", "W.c", "W.b", "W.c", "W.a"],
    "const struct ggml_tensor *": ["W.a", "W.b"],
    "struct ggml_context *": ["W.ctx"], "const struct ggml_context *": ["W.ctx"],
    "struct ggml_cgraph *": ["W.graph"], "const struct ggml_cgraph *": ["W.graph"],
    "ggml_backend_t": ["W.cpu"], "ggml_backend_dev_t": ["W.dev"], "ggml_backend_reg_t": ["W.reg"],
    "ggml_backend_buffer_type_t": ["W.buft"], "ggml_backend_buffer_t": ["W.buffer"], "ggml_backend_sched_t": ["W.sched"],
    "ggml_backend_event_t": ["NULL"], "ggml_backend_graph_plan_t": ["W.plan"], "ggml_gallocr_t": ["W.galloc"],
    "struct ggml_tallocr *": ["&W.talloc"], "ggml_threadpool_t": ["W.pool"], "struct ggml_threadpool *": ["W.pool"],
    "struct ggml_threadpool_params *": ["&W.pool_params"], "const struct ggml_threadpool_params *": ["&W.pool_params"],
    "struct ggml_cplan *": ["&W.cplan"], "ggml_opt_dataset_t": ["W.dataset"], "ggml_opt_context_t": ["W.opt"],
    "ggml_opt_result_t": ["W.result"], "const struct gguf_context *": ["W.gguf"], "struct gguf_context *": ["W.gguf"],
    "struct llama_model *": ["W.model"], "const struct llama_model *": ["W.model"], "const struct llama_vocab *": ["W.vocab"],
    "struct llama_context *": ["W.lctx"], "const struct llama_context *": ["W.lctx"], "llama_memory_t": ["llama_get_memory(W.lctx)"],
    "struct llama_sampler *": ["W.chain", "llama_sampler_init_greedy()"], "const struct llama_sampler *": ["W.chain"],
    "struct llama_batch_ext *": ["W.batch"], "llama_token_data_array *": ["&W.cur"], "FILE *": ["W.file"],
    "struct llama_adapter_lora *": ["NULL"], "const struct llama_adapter_lora *": ["NULL"],
    "struct ggml_tensor **": ["(struct ggml_tensor *[]){W.a, W.b}"], "ggml_backend_t *": ["&W.cpu"],
    "ggml_backend_buffer_type_t *": ["&W.buft"], "const struct ggml_tensor *const *": ["(const struct ggml_tensor *const[]){W.a, W.b}"],
    "struct llama_adapter_lora **": ["(struct llama_adapter_lora *[]){NULL}"],
    "const char **": ['(const char *[]){"x", "y"}'], "ggml_log_callback *": ["(ggml_log_callback *) (void *) W.out"],
    "struct ggml_backend_dev_props *": ["(struct ggml_backend_dev_props *) (void *) W.out"],
    "struct llama_sampler_i *": ["(struct llama_sampler_i *) (void *) W.in"],
    "ggml_guid_t": ["(ggml_guid_t) (void *) W.in"], "const struct ggml_object *": ["(const struct ggml_object *) (void *) W.in"],
    "const llama_model_quantize_params *": ["NULL"], "struct llama_opt_params": ["(struct llama_opt_params){0}"],
    "struct llama_model_params": ["llama_model_default_params()"], "struct llama_context_params": ["llama_context_default_params()"],
    "struct llama_sampler_chain_params": ["llama_sampler_chain_default_params()"],
    "struct llama_batch": ["llama_batch_get_one((llama_token *) (void *) W.in, 2)"], "struct llama_embd": ["(struct llama_embd){0}"],
    "struct gguf_init_params": ["(struct gguf_init_params){.no_alloc = true}"],
    "struct ggml_init_params": ["(struct ggml_init_params){.mem_size = 4096}"],
    "struct ggml_opt_params": ["ggml_opt_default_params(W.sched, GGML_OPT_LOSS_TYPE_SUM)"],
    "struct ggml_backend_graph_copy": ["(struct ggml_backend_graph_copy){0}"],
    "ggml_fp16_t": ["0"], "ggml_bf16_t": ["(ggml_bf16_t){0}"], "bool": ["true"], "float": ["0.5f"], "double": ["0.5"],
    "const struct llama_chat_message *": ['(struct llama_chat_message[]){{"user", "hi"}, {"user", "ho"}}'],
    "int[4]": ["(int[4]){4, 4, 4, 4}"], "float[2]": ["(float[2]){0}"], "llama_sampler_context_t": ["NULL"], "void *": ["W.out"],
    "const void *": ["W.in"], "void **": ["(void **) (void *) W.out"],
}
OWN = {("llama_batch_free", "batch"): "llama_batch_init(2, 0, 1)"}  # of what only one function may be given
CALLBACKS = re.compile(r"callback|_op_t|set_tensor_data_t|optimizer_params$|split_state_t")
INTS = {"int": ("INT_MIN", "-1", "0", "INT_MAX"), "int32_t": ("INT32_MIN", "-1", "0", "INT32_MAX"), "int64_t": ("INT64_MIN", "-1", "0", "INT64_MAX"),
        "size_t": ("0", "SIZE_MAX", "SIZE_MAX / 2"), "uint32_t": ("0", "UINT32_MAX"), "uint64_t": ("0", "UINT64_MAX"), "uint8_t": ("0", "255"),
        "int8_t": ("-128", "127"), "int16_t": ("-32768", "32767"), "uint16_t": ("0", "65535"), "llama_token": ("INT32_MIN", "-1", "INT32_MAX"),
        "llama_pos": ("INT32_MIN", "-1", "0", "INT32_MAX"), "llama_seq_id": ("INT32_MIN", "-1", "1", "2", "INT32_MAX"),
        "llama_state_seq_flags": ("0", "UINT32_MAX")}
STRINGS = {"path": '"/nonexistent/x"', "fname": '"/nonexistent/x"', "key": '"general.architecture"', "text": '"Hello"', "dir": '"/nonexistent"',
           "grammar_root": '"root"', "grammar_str": '"root ::= [a-z]+"', "tmpl": '"chatml"'}


def split(params):
    out, depth, cur = [], 0, ""
    for ch in params:
        depth += (ch == "(") - (ch == ")")
        if ch == "," and depth == 0:
            out.append(cur.strip())
            cur = ""
        else:
            cur += ch
    return out + [cur.strip()]


def parse(param):
    """(type, name) of a parameter as the tables spell it."""
    m = re.fullmatch(r"(.*[\s*\]])(\w+)", param)
    if m and m.group(1).strip() not in ("const", "struct", "enum", "const struct"):
        return m.group(1).strip(), m.group(2)
    return param, ""


def functions(folder):
    for path in sorted(glob.glob(os.path.join(folder, "*.tsv"))):
        inside = False
        for line in open(path, encoding="utf-8"):
            line = line.rstrip("\n")
            if line.startswith("["):
                inside = line == "[functions]"
            elif inside and line and not line.startswith("#"):
                fields = line.split("\t")
                if "vulkan" not in path:
                    yield fields[0], fields[1], fields[2] if len(fields) > 2 else "void"


def is_pointer(ctype):
    return "*" in ctype or ctype.endswith("_t") and ctype in VALID and ctype not in ("ggml_fp16_t", "ggml_bf16_t") or ctype in ("int[4]", "float[2]")


def valid(ctype, name, seen):
    """A valid argument; seen counts how many of the type came before."""
    if CALLBACKS.search(ctype) and "*" not in ctype:
        return f"({ctype}) world_callback"
    if ctype in VALID:
        choice = VALID[ctype]
        return choice[seen % len(choice)]
    if ctype == "const char *":
        return next((v for k, v in STRINGS.items() if k in name), '"x"')
    if ctype in INTS:
        return {"text_len": "3", "length": "16", "offset": "0", "type": "0"}.get(name, "1")
    if ctype.startswith("enum"):
        return f"({ctype}) 0"
    if "*" in ctype:
        return f"({ctype}) (void *) " + ("W.in" if ctype.startswith("const") else "W.out")
    return None


def wrong(func, ctype, name):
    """Wrong arguments for a parameter."""
    if CALLBACKS.search(ctype) and "*" not in ctype:
        return ["NULL"]
    if ctype in ("struct ggml_tensor *", "const struct ggml_tensor *"):
        return [f"W.odd[{i}]" for i in range(7)]
    if is_pointer(ctype):
        return ["NULL"]
    if ctype in INTS:
        for pattern, param in SIZES:
            if re.fullmatch(pattern, func) and re.fullmatch(param, name):
                return [v for v in INTS[ctype] if not v.startswith(("SIZE_MAX", "INT_MAX", "INT32_MAX", "INT64_MAX"))]
        return list(INTS[ctype])
    if ctype.startswith("enum"):
        return [f"({ctype}) {v}" for v in (-1, 9999, "INT_MAX")]
    if ctype in ("float", "double"):
        return ["NAN", "INFINITY", "-INFINITY", "-1", "0"]
    return []


def calls(folder, only):
    """(label, function, arguments, result type) of every call."""
    for func, result, params in functions(folder):
        if only and func != only:
            continue
        variadic = params.endswith("...")
        parts = [parse(p) for p in split(params) if p not in ("void", "...", "")]
        seen, good = {}, []
        for ctype, name in parts:
            good.append(OWN.get((func, name)) or valid(ctype, name, seen.get(ctype, 0)))
            seen[ctype] = seen.get(ctype, 0) + 1
        if None in good:
            print(f"note: {func}: no valid argument for {[p for p, g in zip(parts, good) if g is None]}")
            continue
        yield "right", func, good, result
        for i, (ctype, name) in enumerate(parts):
            for value in wrong(func, ctype, name):
                yield f"{name or i} = {value}", func, good[:i] + [value] + good[i + 1:], result
        pointers = [i for i, (t, _) in enumerate(parts) if is_pointer(t)]
        if len(pointers) > 1:
            yield "all NULL", func, ["NULL" if i in pointers else g for i, g in enumerate(good)], result


def source(list_of_calls):
    out = ['#include "world.h"', "#pragma GCC diagnostic ignored \"-Wdeprecated-declarations\""]
    for i, (_, func, args, result) in enumerate(list_of_calls):
        call = f"{func}({', '.join(args)})"
        body = f"world_compute({call});" if result == "struct ggml_tensor *" else f"(void) {call};"
        out.append(f"static void c{i}(void) {{ {body} }}")
    out.append("static void (*const table[])(void) = {" + ",".join(f"c{i}" for i in range(len(list_of_calls))) + "};")
    out.append("""
int main(void) {
    world_make();
    for (int i = 0; i < (int) (sizeof table / sizeof *table); i++) {
        fflush(NULL);
        const pid_t pid = fork();
        if (pid == 0) {
            const struct rlimit room = {(rlim_t) 4 << 30, (rlim_t) 4 << 30}, file = {1 << 24, 1 << 24};
            if (!SANITIZED) setrlimit(RLIMIT_AS, &room);  // sanitizers reserve far more
            setrlimit(RLIMIT_FSIZE, &file);
            alarm(SANITIZED ? 120 : 20);
            if (!freopen(SANITIZED ? "report.txt" : "/dev/null", "w", stderr) || !freopen("/dev/null", "w", stdout)) _exit(1);
            table[i]();
            _exit(0);
        }
        int status;
        waitpid(pid, &status, 0);
        if (WIFSIGNALED(status)) printf("%d signal %d\\n", i, WTERMSIG(status));
        else if (WEXITSTATUS(status)) {
            char what[256] = "", line[256];
            FILE *f = fopen("report.txt", "r");
            while (f && fgets(line, sizeof line, f))
                if (!*what && (strstr(line, "ERROR: ") || strstr(line, "runtime error"))) strcpy(what, line);
            if (f) fclose(f);
            printf("%d exit %d %.*s\\n", i, WEXITSTATUS(status), (int) strcspn(what, "\\n"), what);
        }
    }
    puts("end");
    world_clean();
    return 0;
}""")
    return "\n".join(out)


def documented(func):
    """The header really says it, in the comment above the declaration."""
    for path in glob.glob(os.path.join(ROOT, "include/**/*.h"), recursive=True):
        for m in re.finditer(r"((?://.*\n)+)[^\n;]*\b" + func + r"\(", open(path, encoding="utf-8").read()):
            if DOCUMENTED.get(func, "\n") in re.sub(r"\s*\n//\s*|\s+", " ", m.group(1)):
                return True
    return False


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("api")
    ap.add_argument("lib")
    ap.add_argument("--cc", default="cc")
    ap.add_argument("--only")
    ap.add_argument("--sanitize", action="store_true", help="the libraries are built with address and undefined-behaviour sanitizers")
    ap.add_argument("--keep", action="store_true", help="leave the generated program in /tmp")
    args = ap.parse_args()
    if not os.path.isdir(args.api):
        print(f"skipped: {args.api} is not there")
        return 77
    for name in "ggml.h", "llama.h":
        if BELIEVED not in open(os.path.join(ROOT, "include", name), encoding="utf-8").read():
            print(f"{name} no longer says: {BELIEVED}")
            return 1
    all_calls = list(calls(args.api, args.only))
    folder = tempfile.mkdtemp(prefix="lamina-wrong-")
    src, exe = os.path.join(folder, "calls.c"), os.path.join(folder, "calls")
    open(src, "w", encoding="utf-8").write(source(all_calls))
    lib = os.path.abspath(args.lib)
    flags = ["-fsanitize=address,undefined", "-DSANITIZED=1"] if args.sanitize else ["-DSANITIZED=0"]
    options = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:exitcode=99", "UBSAN_OPTIONS": "halt_on_error=1:exitcode=99"}
    subprocess.run([args.cc, "-std=gnu11", "-O0", "-w", *flags, src, "-o", exe, f"-I{HERE}", f"-I{ROOT}/include", f"-L{lib}", f"-Wl,-rpath,{lib}",
                    "-lllama", "-lggml", "-lm"], check=True)
    out = subprocess.run([exe], cwd=folder, capture_output=True, text=True, env={**os.environ, **options, "GGML_ISA": os.environ.get("GGML_ISA", "avx2")})
    lines = out.stdout.split("\n")
    if "end" not in lines:
        print(f"the program did not come to its end: {out.returncode} {out.stderr[-500:]}")
        return 1
    failed = 0
    for line in lines:
        m = re.fullmatch(r"(\d+) (.*)", line)
        if not m:
            continue
        label, func, call_args, _ = all_calls[int(m.group(1))]
        if documented(func):
            continue
        failed += 1
        print(f"FAIL {m.group(2):10} {func}: {label}    {func}({', '.join(call_args)})")
    if not args.keep:
        subprocess.run(["rm", "-rf", folder])
    print(f"{len(all_calls)} wrong calls of {len(set(c[1] for c in all_calls))} functions, {failed} crashed")
    return failed != 0


sys.exit(main())
