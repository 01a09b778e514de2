#!/usr/bin/env bash
# Builds the libraries and the tests of types, kernels and operations for AArch64 and runs them under qemu: correctness, not speed.
source "$(dirname "$0")/lib.sh"
need $packages_full
sys=$root/build/arm64-sysroot
if ! [ -f "$sys/.done" ]; then
    mkdir -p "$sys/debs" && cd "$sys/debs" || exit 1
    dpkg --print-foreign-architectures | grep -qx arm64 || { dpkg --add-architecture arm64 && apt-get update -qq >/dev/null; } || die "cannot add arm64"
    apt-get download -qq libcmocka0:arm64 libcmocka-dev:arm64 libpcre2-8-0:arm64 libpcre2-16-0:arm64 libpcre2-32-0:arm64 libpcre2-posix3:arm64 \
        libpcre2-dev:arm64 libutf8proc2:arm64 libutf8proc-dev:arm64 libjansson4:arm64 libjansson-dev:arm64 >/dev/null || die "cannot fetch arm64 packages"
    for d in *.deb; do dpkg -x "$d" "$sys"; done
    touch "$sys/.done"
fi
cd "$root" || exit 1
export PKG_CONFIG_SYSROOT_DIR=$sys PKG_CONFIG_LIBDIR=$sys/usr/lib/aarch64-linux-gnu/pkgconfig
[ -f build/arm64/build.ninja ] || cmake -G Ninja -B build/arm64 -S . -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc \
    -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER_FORCED=ON -DLAMINA_PROGRAMS=OFF -DCMAKE_BUILD_TYPE=Release >/dev/null || die "configuring for arm64 failed"
mapfile -t tests < <(ninja -C build/arm64 -t targets all | grep -oE '^bin/(type|kern|ops)-test_[a-z0-9_]+' | sort -u)
[ ${#tests[@]} -gt 0 ] || die "no tests to build"
ninja -C build/arm64 "${tests[@]}" >build/arm64/build.log 2>&1 || { tail -20 build/arm64/build.log; die "building for arm64 failed"; }
failed=0
for t in "${tests[@]}"; do
    if GGML_OVERSUBSCRIBE=1 timeout 900 qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$sys/usr/lib/aarch64-linux-gnu" "build/arm64/$t" >"build/arm64/${t##*/}.log" 2>&1; then
        echo "ok   ${t##*/}"
    else
        echo "FAIL ${t##*/}"; tail -15 "build/arm64/${t##*/}.log"; failed=$((failed + 1))
    fi
done
echo "$((${#tests[@]} - failed)) passed, $failed failed"
[ $failed = 0 ]
