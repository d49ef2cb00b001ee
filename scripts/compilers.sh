#!/bin/sh
# scripts/compilers.sh [CONFIGURATION...]: builds the program with other compilers and optional parts,
# trains a few iterations with each and compares the losses with those of build/crosstalk and its
# portable kernels. Without names: every configuration whose compiler is here.
#   gcc-10 .. gcc-14, clang-14 .. clang-19   every optional part that is installed
#   bare       the system's compiler with no optional part
#   aarch64    cross build (cmake/aarch64-linux-gnu.cmake), run under qemu-user
# Each is built in build-<configuration>/. The last line is "N passed, N failed, N skipped".
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
cd "$root" || exit 1
all="gcc-10 gcc-11 gcc-12 gcc-13 gcc-14 clang-14 clang-15 clang-16 clang-17 clang-18 clang-19 bare aarch64"
passed=0 failed=0 skipped=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
jobs=$(nproc 2>/dev/null || echo 2)

have() { command -v "$1" >/dev/null 2>&1; }

parts_off() {
    for part in JPEG PNG ARCHIVE CURL MICROHTTPD RSVG CUDA MPI ZMQ; do echo "-DCT_WITH_$part=OFF"; done
}

# configure NAME: into build-NAME; warnings are errors.
configure() {
    # Lists of options are words.
    # shellcheck disable=SC2046
    case $1 in
    bare) set -- "$1" $(parts_off) ;;
    aarch64) set -- "$1" --toolchain cmake/aarch64-linux-gnu.cmake ;;
    *) set -- "$1" -DCMAKE_C_COMPILER="$1" -DCT_WITH_CUDA=OFF ;;
    esac
    name=$1
    shift
    have ninja && set -- -G Ninja "$@"
    cmake -S . -B "build-$name" -DCT_DEVELOPER=ON -DCT_BUILD_TESTS=OFF -DCT_BUILD_BENCH=OFF "$@"
}

# train PROGRAM...: its losses, one in a line. All programs compute with plain C here: sums of the
# same numbers in the same order, but for how products are fused into sums.
train() {
    CROSSTALK_ISA=portable "$@" train --dataset shapes --train-samples 512 --test-samples 64 --agents 4 \
        --model lenet5 --algorithm ccl --iterations 3 --threads 1 --quiet --out "$scratch/run" --force &&
        grep -ho '"\(ce\|consensus_loss\)": [0-9.e-]*' "$scratch/run/metrics.jsonl" | sed 's/.* //'
}

# agree FILE FILE: losses within 1e-5 of each other, relative: a few roundings of float32.
agree() {
    paste "$1" "$2" | awk '
        { d = $1 > $2 ? $1 - $2 : $2 - $1; if (NF != 2 || d > 1e-5 * $1) bad = 1; n++ }
        END { exit bad || n == 0 }'
}

run_it() {
    case $1 in
    aarch64) set -- qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=/usr/lib/aarch64-linux-gnu \
        -E CROSSTALK_ISA=portable "build-$1/crosstalk" ;;
    *) set -- "build-$1/crosstalk" ;;
    esac
    train "$@"
}

is_here() {
    case $1 in
    bare) true ;;
    aarch64) have aarch64-linux-gnu-gcc && have qemu-aarch64 ;;
    *) have "$1" ;;
    esac
}

try() {
    configure "$1" && cmake --build "build-$1" -j "$jobs" --target crosstalk crosstalk_shared &&
        run_it "$1" >"$scratch/losses" && agree "$scratch/expected" "$scratch/losses"
}

[ -x build/crosstalk ] || sh scripts/build.sh release || exit 1
train build/crosstalk >"$scratch/expected" || exit 1
# Names are words.
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $all
for name in "$@"; do
    if ! is_here "$name"; then
        skipped=$((skipped + 1))
        echo "skip $name (not installed)"
    elif try "$name" >"$scratch/said" 2>&1; then
        passed=$((passed + 1))
        echo "ok   $name"
    else
        failed=$((failed + 1))
        tail -n 40 "$scratch/said"
        echo "FAIL $name"
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
