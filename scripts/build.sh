#!/bin/sh
# scripts/build.sh [release|debug|thread|emulated]: configures and builds a preset, in build/, build-debug/,
# build-thread/ or build-emulated/; of the last one the tests that want a GPU.
# Quiet; what the tools said is shown when they fail. Configures afresh where the tree was moved.
# CT_DEVELOPER=1: a warning fails the build, and what has been compiled before, in any checkout, comes from
# ccache where that is installed.
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
preset=${1:-release}
case $preset in
release) build=$root/build ;;
debug) build=$root/build-debug ;;
thread) build=$root/build-thread ;;
emulated) build=$root/build-emulated ;;
*)
    echo "usage: scripts/build.sh [release|debug|thread|emulated]" >&2
    exit 2
    ;;
esac
targets=all
[ "$preset" != emulated ] || targets=$(cd "$root/tests" && ls test_cuda*.c | sed 's/\.c$//')
n_jobs=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
mkdir -p "$build" || exit 1
log=$build/build.log

set -- ${CT_DEVELOPER:+-DCT_DEVELOPER=ON}
if [ -n "${CT_DEVELOPER:-}" ] && command -v ccache >/dev/null 2>&1; then
    export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1 # paths are those below the checkout
    set -- "$@" -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache
fi

configure() { # the generator can be chosen for a fresh folder only
    if [ -f "$build/CMakeCache.txt" ] || ! command -v ninja >/dev/null 2>&1; then
        cmake --preset "$preset" "$@"
    else
        cmake --preset "$preset" -G Ninja "$@"
    fi
}

cd "$root" || exit 1
# Targets are words.
# shellcheck disable=SC2086
if ! configure "$@" >"$log" 2>&1; then
    rm -rf "$build/CMakeCache.txt" "$build/CMakeFiles"
    configure "$@" >"$log" 2>&1
fi && cmake --build "$build" -j "$n_jobs" -t $targets >>"$log" 2>&1
status=$?
if [ $status -ne 0 ]; then
    grep -v '^\[[0-9/%]*\] ' "$log" | tail -n 60 >&2
    echo "build: $preset failed; all of it is in $log" >&2
    exit 1
fi
exit 0
