#!/usr/bin/env bash
# The goals of speed, one row each: goal, measured, share of its peak, command. Parts run alone, each in less than 45 seconds on two
# cores, so that a busy machine can be waited out in between.
#   bench/goals.sh PART...   parts: prefill decode small several depth threads vocab quantize start size (default: all)
# BUILD: build folder (build). MODELS: folder with smollm2.gguf, gemma3.gguf and the 1.1B model as 1b-TYPE.gguf (made by lamina quantize
# --pure). TYPES: those to measure (all that are there). SHARED: folder with vocab/.
case ${1:-} in -h|--help) sed -n "2,6s/^# \\{0,1\\}//p" "$0"; exit 0 ;; esac
set -u
cd "$(dirname "$0")/.." || exit 1
build=${BUILD:-build} models=${MODELS:-.} shared=${SHARED:-../shared}
lamina=$build/bin/lamina
row() { printf '| %s | %s | %s | `%s` |\n' "$1" "$2" "$3" "$4"; }
median() { sort -n | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)]; else print "none" }'; }

# Tokens per second and share of each test of one call: bench GOAL ARGUMENTS...
bench() {
    local goal=$1; shift
    "$lamina" bench "$@" -o jsonl | python3 -c '
import json, sys
goal, args = sys.argv[1], " ".join(sys.argv[2:])
for line in sys.stdin:
    r = json.loads(line)
    test = ("pp%d" % r["n_prompt"] if r["n_prompt"] else "tg%d" % r["n_gen"]) + (" @ d%d" % r["n_depth"] if r["n_depth"] else "")
    peak = {"int8": "%.0f GOP/s", "bf16": "%.0f GFLOP/s", "f32": "%.0f GFLOP/s", "memory": "%.1f GB/s"}[r["limit"]]
    peak %= r["peak_read_gbs"] if r["limit"] == "memory" else r["peak_int8_gops"] if r["limit"] == "int8" else r["peak_%s_gflops" % r["limit"]]
    print("| %s: %s %s | %.1f tokens/s | %.0f %% of %s, %s%s | `lamina bench %s` |" % (goal, r["model_type"], test, r["median_ts"],
          100 * r["share"], r["limit"], peak, ", void" if r["void"] else "", args))' "$goal" "$@"
}

big() {
    local t
    for t in ${TYPES:-Q4_0 Q5_0 Q8_0 Q4_K_S Q5_K_S Q4_1 Q5_1 Q6_K Q3_K_S Q2_K BF16 F16 F32}; do
        [ -f "$models/1b-$t.gguf" ] && echo "$models/1b-$t.gguf"
    done
}

part_prefill() { for m in $(big); do bench "1. prefill 512" -m "$m" -p 512 -n 0 -r 3; done; }
part_decode() { for m in $(big); do bench "2. decode" -m "$m" -p 0 -n 24 -r 5; done; }
part_small() {
    local m
    for m in smollm2 smollm2-q4_0 smollm2-q8_0 gemma3; do
        [ -f "$models/$m.gguf" ] && bench "3. small models" -m "$models/$m.gguf" -p 512 -n 64 -r 5
    done
}
part_several() {
    local m=$models/1b-Q4_0.gguf
    [ -f "$m" ] && "$build/bin/bench_several" "$m" | sed 's/^[^:]*: \(one.*\), \([0-9.]* times one\)$/| 4. eight sequences >= 2.5 times one: 1.1B Q4_0 | \1 | \2 | `bench_several` |/'
}
part_depth() { bench "5. depth 8,192" -m "$models/smollm2.gguf" -d 8192 -p 64 -n 16 -r 3; "$build/bin/bench_attn" -D 8192 -r 5 f16; }

# Tokens per second of generating with N threads.
speed() { "$lamina" run -m "$models/smollm2.gguf" -p Once -n 64 --ignore-eos --temp 0 -t "$1" 2>&1 >/dev/null | sed -n 's/.*generated .* tokens, \([0-9.]*\).*/\1/p'; }
part_threads() {
    local cores best twice busy spin=() i
    cores=$(nproc)
    best=$(for i in 1 2 3 4 5; do speed "$cores"; done | median)
    twice=$(for i in 1 2 3 4 5; do speed $((2 * cores)); done | median)
    for ((i = 0; i < cores; i++)); do ( while :; do :; done ) & spin+=($!); done
    busy=$(for i in 1 2 3; do speed "$cores"; done | median)
    kill "${spin[@]}"; wait "${spin[@]}" 2>/dev/null
    row "6. twice as many threads as cores >= 90 %" "$twice of $best tokens/s" "$(awk "BEGIN { printf \"%.0f %%\", 100 * $twice / $best }")" "lamina run -t $((2 * cores))"
    row "6. a busy process on every core >= 45 %" "$busy of $best tokens/s" "$(awk "BEGIN { printf \"%.0f %%\", 100 * $busy / $best }")" "lamina run -t $cores"
}

part_vocab() {
    local text; text=$(mktemp)
    cat /usr/lib/python3*/*.py /usr/lib/python3*/*/*.py 2>/dev/null | head -c 4000000 >"$text"
    "$build/bin/bench_vocab" "$text" "$models/smollm2.gguf" "$models/gemma3.gguf" "$shared"/vocab/ggml-vocab-{gemma-4,llama-bpe,bert-bge}.gguf |
        awk 'NR > 1 { printf "| 7. tokenizing 20, detokenizing 100 MB/s: %s | %s, %s MB/s | load %s ms | `bench_vocab` |\n", $1, $5, $6, $3 }'
    rm -f "$text"
}

# The 1.1B model from F16 to TYPE: megabytes of F16 read per second.
part_quantize() {
    local from=$models/1b-F16.gguf t t0 out; out=$(mktemp -p "$models")
    for t in "Q8_0 800" "Q4_0 800" "Q4_K_S 120" "Q6_K 250"; do
        set -- $t
        t0=$(date +%s%N)
        "$lamina" quantize --pure "$from" "$out" "$1" >/dev/null 2>&1
        row "quantize F16 to $1 >= $2 MB/s" "$(($(stat -Lc %s "$from") * 1000 / ($(date +%s%N) - t0))) MB/s" "" "lamina quantize --pure 1b-F16.gguf OUT $1"
    done
    rm -f "$out"
}

# Milliseconds from start to end of a process that makes one token: median of 9.
part_start() {
    local m goal
    for m in "smollm2 40" "gemma3 60"; do
        set -- $m
        row "8. start to first token <= $2 ms: $1" "$(python3 - "$lamina" "$models/$1.gguf" <<'P'
import subprocess, sys, time
t = []
for _ in range(9):
    s = time.perf_counter()
    subprocess.run([sys.argv[1], "run", "-m", sys.argv[2], "-p", "Hi", "-n", "1", "-q"], stdout=subprocess.DEVNULL, check=True)
    t.append(1e3 * (time.perf_counter() - s))
t.sort()
print("%.0f ms (%.0f to %.0f)" % (t[4], t[0], t[-1]))
P
)" "" "lamina run -p Hi -n 1"
    done
}

part_size() {
    local f sum=0 tmp; tmp=$(mktemp)
    for f in "$build/lib/libggml.so" "$build/lib/libllama.so" "$lamina"; do
        strip -o "$tmp" "$(readlink -f "$f")"
        sum=$((sum + $(stat -c %s "$tmp")))
    done
    rm -f "$tmp"
    row "9. libraries and program <= 3 MB" "$(awk "BEGIN { printf \"%.2f MB\", $sum / 1e6 }")" "" "strip"
}

[ $# -gt 0 ] || set -- prefill decode small several depth threads vocab quantize start size
printf '| goal | measured | share | command |\n| --- | --- | --- | --- |\n'
for p in "$@"; do
    declare -F "part_$p" >/dev/null || { echo "goals.sh: no part is called $p" >&2; exit 2; }
    "part_$p"
done
