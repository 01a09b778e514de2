#!/usr/bin/env bash
# Installs the build into a scratch folder and uses it as a stranger would: pkg-config, find_package, the linked names of the field.
source "$(dirname "$0")/lib.sh"
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
prefix=$dir/usr
cmake --install "$root/build" --prefix "$prefix" >/dev/null || exit 1
cat >"$dir/x.c" <<'C'
#include "llama.h"
#include <stdio.h>
int main(void) { llama_backend_init(); printf("%s %d\n", ggml_type_name(GGML_TYPE_Q4_K), (int) llama_max_devices() > 0); return 0; }
C
cat >"$dir/y.cpp" <<'C'
#include "ggml-cpp.h"
#include "llama-cpp.h"
int main() { ggml_context_ptr ctx(ggml_init({1 << 20, nullptr, true})); llama_sampler *s = llama_sampler_init_greedy(); llama_sampler_free(s); return ctx ? 0 : 1; }
C
libdir=$(dirname "$(find "$prefix" -name libllama.so | head -n 1)")
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
# shellcheck disable=SC2046
cc "$dir/x.c" -o "$dir/x" $(pkg-config --cflags --libs llama) && [ "$("$dir/x")" = "q4_K 1" ] || die "pkg-config build failed"
g++ -std=c++17 "$dir/y.cpp" -o "$dir/y" -I"$prefix/include" -L"$libdir" -lllama -lggml -lggml-base -lggml-cpu && "$dir/y" || die "C++ build failed"
mkdir "$dir/c" && cat >"$dir/c/CMakeLists.txt" <<'C'
cmake_minimum_required(VERSION 3.25)
project(x C)
find_package(ggml REQUIRED)
find_package(llama REQUIRED)
add_executable(x ../x.c)
target_link_libraries(x PRIVATE llama ggml::ggml)
C
cmake -S "$dir/c" -B "$dir/c/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null && cmake --build "$dir/c/build" >/dev/null && "$dir/c/build/x" >/dev/null || die "find_package build failed"
# As a folder of another project: its own tests and programs stay out.
mkdir "$dir/s" && cat >"$dir/s/CMakeLists.txt" <<C
cmake_minimum_required(VERSION 3.25)
project(x C)
add_subdirectory($root lamina)
add_executable(x ../x.c)
target_link_libraries(x PRIVATE llama ggml::ggml)
C
cmake -G Ninja -S "$dir/s" -B "$dir/s/build" >/dev/null && ninja -C "$dir/s/build" -t query x >/dev/null || die "add_subdirectory failed"
! ninja -C "$dir/s/build" -t targets all | grep -qE '^lamina/bin/.*test_' || die "as a folder of another project the tests are built"
env -u LD_LIBRARY_PATH "$prefix/bin/lamina" --version >/dev/null || die "the installed program does not start"
# An empty element would be the current folder, from which no library may come.
for f in "$root/build/bin/lamina" "$root/build/lib/libllama.so" "$prefix/bin/lamina" "$libdir/libllama.so"; do
    path=$(readelf -d "$f" | sed -n 's/.*RUNPATH.*\[\(.*\)\]/\1/p')
    while read -r -d: folder; do [[ $folder == '$ORIGIN'* ]] || die "$f looks for libraries in '$path'"; done <<<"$path:"
done
for lib in ggml llama; do
    want=$(grep -ohE "\b${lib%%-*}[a-z0-9_]*|\bgguf_[a-z0-9_]+" -r "$prefix/include" | sort -u)
    extra=$(nm -D --defined-only "$libdir/lib$lib.so" | awk '$2 ~ /[TDRBV]/ {print $3}' | sort -u | comm -23 - <(printf '%s\n' "$want"))
    [ -z "$extra" ] || die "lib$lib.so exports names that no header declares: $(echo $extra | head -c 400)"
done
size=0
for f in "$libdir/libggml.so" "$libdir/libllama.so" "$prefix/bin/lamina"; do
    strip -o "$dir/stripped" "$(readlink -f "$f")" || die "cannot strip $f"
    size=$((size + $(stat -c %s "$dir/stripped")))
done
[ $size -le 3000000 ] || die "the libraries and the program take $size bytes stripped; 3,000,000 is the most"
echo "installed, linked, symbols as declared; $size bytes stripped"
