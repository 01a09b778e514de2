#!/bin/sh
# graph.sh MODEL.gguf [BUILD]: instructions per batch outside of the kernels (what a step of a graph runs is not counted), at avx2 on one
# thread, by callgrind. same: one token, the graph of the token before; turns: batches of one and of two tokens in turn, whose graphs are
# kept; anew: one token, its graph built again for every one; sizes: batches of one to eight tokens in turn, each graph built again over
# one of another size, and given memory. 16 batches less 8, so that loading does not count.
case ${1:-} in -h | --help) sed -n "2,5s/^# //p" "$0"; exit 0 ;; esac
model=${1:?usage: graph.sh MODEL.gguf [BUILD]} build=${2:-build} dir=$(mktemp -d)
export GGML_ISA=avx2
count() {
    valgrind --tool=callgrind --callgrind-out-file="$dir/out" --toggle-collect=step_run --collect-atstart=yes \
        "$build/bin/bench_graph" -n "$2" "$model" "$1" >"$dir/log" 2>&1 || { cat "$dir/log" >&2; exit 1; }
    sed -n 's/^summary: //p' "$dir/out"
}
for mode in same turns anew sizes; do
    few=$(count $mode 8) many=$(count $mode 16)
    echo "$mode $(((many - few) / 8))"
done
rm -r "$dir"
