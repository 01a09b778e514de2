#!/usr/bin/env bash
# Builds tests for AArch64 and runs them under qemu: correctness of the neon levels, not speed.
#   qemu.sh [TEST...]     such as kern-test_mm; without: all of types, kernels and operations
source "$(dirname "$0")/lib.sh"
need $packages_full
sys=$root/build/arm64-sysroot
# Packages of the other architecture are fetched and unpacked beside the build: the system's own lists stay as they are.
apt_arm64() {
    apt-get -qq -o Dir::State="$sys/apt" -o Dir::State::status=/dev/null -o Dir::Cache="$sys/apt/cache" -o APT::Architecture=arm64 \
        -o APT::Architectures=arm64 -o APT::Sandbox::User= "$@"
}
if ! [ -f "$sys/.done" ]; then
    mkdir -p "$sys/apt/lists/partial" "$sys/apt/cache/archives/partial" "$sys/debs" && cd "$sys/debs" || exit 1
    apt_arm64 update && apt_arm64 download libcmocka0 libcmocka-dev libpcre2-8-0 libpcre2-16-0 libpcre2-32-0 libpcre2-posix3 libpcre2-dev \
        libutf8proc2 libutf8proc-dev libjansson4 libjansson-dev || offline "cannot fetch arm64 packages"
    for d in *.deb; do dpkg -x "$d" "$sys" || die "cannot unpack $d"; done
    touch "$sys/.done"
fi
cd "$root" || exit 1
export PKG_CONFIG_SYSROOT_DIR=$sys PKG_CONFIG_LIBDIR=$sys/usr/lib/aarch64-linux-gnu/pkgconfig
# Nothing of it is C++: that compiler need not be there.
[ -f build/arm64/build.ninja ] || cmake -G Ninja -B build/arm64 -S . -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc \
    -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER_FORCED=ON -DLAMINA_PROGRAMS=OFF -DCMAKE_BUILD_TYPE=Release >build/arm64.log 2>&1 ||
    { tail -n 20 build/arm64.log; die "configuring for arm64 failed"; }
if [ $# -gt 0 ]; then tests=("${@/#/bin/}"); else mapfile -t tests < <(ninja -C build/arm64 -t targets all | grep -oE '^bin/(type|kern|ops)-test_[a-z0-9_]+' | sort -u); fi
[ ${#tests[@]} -gt 0 ] || die "no tests to build"
ninja -C build/arm64 "${tests[@]}" >build/arm64/build.log 2>&1 || { tail -n 20 build/arm64/build.log; die "building for arm64 failed"; }
export sys
one() {
    local t0=$SECONDS log=build/arm64/${1##*/}.log
    if GGML_OVERSUBSCRIBE=1 timeout 1800 qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$sys/usr/lib/aarch64-linux-gnu" "build/arm64/$1" >"$log" 2>&1; then
        echo "ok   ${1##*/} $((SECONDS - t0)) s"
    else
        echo "FAIL ${1##*/}"; tail -n 15 "$log"
    fi
}
export -f one
printf '%s\n' "${tests[@]}" | xargs -P2 -I{} bash -c 'one {}' | tee build/arm64/result.txt
echo "$(grep -c '^ok' build/arm64/result.txt) passed under qemu, $(grep -c '^FAIL' build/arm64/result.txt) failed"
! grep -q '^FAIL' build/arm64/result.txt
