#!/usr/bin/env bash
# Runs every libFuzzer target for FUZZ_SECONDS (60) from the corpus in build/fuzz/corpus, which it keeps and grows.
source "$(dirname "$0")/lib.sh"
need clang libclang-rt-14-dev
cd "$root" || exit 1
[ -f build/fuzz/build.ninja ] || cmake --preset fuzz >/dev/null || die "configuring the fuzz build failed"
mapfile -t targets < <(ninja -C build/fuzz -t targets all | grep -oE '^bin/libfuzzer-[a-z]+' | sort -u)
ninja -C build/fuzz "${targets[@]}" >build/fuzz/build.log 2>&1 || { tail -20 build/fuzz/build.log; die "building the fuzz targets failed"; }
failed=0
for t in "${targets[@]}"; do
    name=${t##*/libfuzzer-}
    mkdir -p "build/fuzz/corpus/$name"
    if "build/fuzz/$t" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=25 -rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix=build/fuzz/crash-"$name"- \
        "build/fuzz/corpus/$name" >"build/fuzz/$name.log" 2>&1; then
        echo "ok   $name: $(grep -oE 'number_of_executed_units: [0-9]+' "build/fuzz/$name.log")"
    else
        echo "FAIL $name"; tail -25 "build/fuzz/$name.log"; failed=$((failed + 1))
    fi
done
echo "$((${#targets[@]} - failed)) passed, $failed failed"
[ $failed = 0 ]
