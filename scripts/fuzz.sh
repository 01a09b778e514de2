#!/usr/bin/env bash
# Runs libFuzzer targets, each for FUZZ_SECONDS (60) of its own processor time, from its seeds and the corpus in build/fuzz/corpus,
# which it keeps and grows; two run at a time. On a busy machine the clock says little: so rounds are run until the processor time is reached.
#   fuzz.sh [TARGET...]     such as gguf; without: all of them
source "$(dirname "$0")/lib.sh"
need clang libclang-rt-14-dev
cd "$root" || exit 1
seconds=${FUZZ_SECONDS:-60}
[ -f build/fuzz/build.ninja ] || cmake --preset fuzz >/dev/null || die "configuring the fuzz build failed"
if [ $# -gt 0 ]; then names=("$@"); else mapfile -t names < <(ninja -C build/fuzz -t targets all | sed -n 's,^bin/libfuzzer-\([a-z]*\):.*,\1,p' | sort -u); fi
[ ${#names[@]} -gt 0 ] || die "no fuzz targets"
ninja -C build/fuzz "${names[@]/#/bin/libfuzzer-}" "${names[@]/#/bin/fuzz-}" >build/fuzz/build.log 2>&1 || { tail -20 build/fuzz/build.log; die "building the fuzz targets failed"; }

TIMEFORMAT='%U %S'
used() { awk '{s += $1 + $2} END {printf "%d", s}' "$1"; }

# An input that took too long by the clock is a finding only if it also takes too much processor time.
slow_only_by_clock() {
    local unit; unit=$(sed -n 's/^artifact_prefix.*Test unit written to \(.*\)$/\1/p' "$2" | tail -n 1)
    [ -n "$unit" ] && ( ulimit -t 25; "build/fuzz/bin/libfuzzer-$1" -timeout=100000 "$unit" >/dev/null 2>&1 ) && rm -f "$unit"
}

# fuzz_one NAME: rounds until the time is used up or something is found.
fuzz_one() {
    local name=$1 log=build/fuzz/$1.log times=build/fuzz/$1.time corpus=build/fuzz/corpus/$1 left
    mkdir -p "$corpus" && "build/fuzz/bin/fuzz-$name" -n 0 -w "$corpus" >/dev/null || return 1
    : >"$log"; : >"$times"
    while left=$((seconds - $(used "$times"))); [ $left -gt 0 ]; do
        { time "build/fuzz/bin/libfuzzer-$name" -max_total_time="$left" -timeout=25 -report_slow_units=1000000 -rss_limit_mb=4096 -print_final_stats=1 \
            -artifact_prefix="build/fuzz/crash-$name-" "$corpus" >"$log.round" 2>&1; } 2>>"$times"
        local status=$?
        cat "$log.round" >>"$log"
        case $status in
            0) ;;
            70) slow_only_by_clock "$name" "$log.round" || return 1 ;;
            *) return 1 ;;
        esac
    done
}

report_one() {
    if fuzz_one "$1"; then
        echo "ok   $1: $(used "build/fuzz/$1.time") s, $(awk '/number_of_executed_units/ {n += $2} END {print n}' "build/fuzz/$1.log") inputs," \
            "coverage $(grep -oE 'cov: [0-9]+' "build/fuzz/$1.log" | tail -n 1 | cut -d' ' -f2), corpus $(find "build/fuzz/corpus/$1" -type f | wc -l)"
    else
        echo "FAIL $1"; tail -25 "build/fuzz/$1.log"
    fi
}
export seconds TIMEFORMAT
export -f used slow_only_by_clock fuzz_one report_one
printf '%s\n' "${names[@]}" | xargs -P2 -I{} bash -c 'report_one {}' | tee build/fuzz/result.txt
echo "$(grep -c '^ok' build/fuzz/result.txt) passed, $(grep -c '^FAIL' build/fuzz/result.txt) failed"
! grep -q '^FAIL' build/fuzz/result.txt
