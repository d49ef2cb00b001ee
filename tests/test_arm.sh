#!/bin/sh
# tests/test_arm.sh [--long]: 64-bit ARM without such a processor. Cross-compiles with Debian's
# gcc-aarch64-linux-gnu and runs what comes out under qemu-user; installs both where apt-get can.
#   the kernels alone, neon against portable (test_kernels), in build-arm/
#   --long (or CT_TEST_LONG=1): also the whole program in build-aarch64/ and the test programs below;
#   it needs zlib for arm64 (docs/INSTALL.md)
# Skipped where the compiler or qemu is missing.
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
cd "$root" || exit 1
long=${CT_TEST_LONG:-0}
[ "${1:-}" != --long ] || long=1
programs="test_kernels test_winograd test_winograd2 test_winograd5 test_cpu test_compress test_algorithms"
passed=0 failed=0 skipped=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

have() { command -v "$1" >/dev/null 2>&1; }

finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}

# verdict STATUS NAME FILE: counts one test; FILE is what it said.
verdict() {
    if [ "$1" -eq 0 ]; then
        echo "ok   $2"
        passed=$((passed + 1))
    else
        tail -n 40 "$3"
        echo "FAIL $2"
        failed=$((failed + 1))
    fi
}

skip() {
    echo "skip $1 ($2)"
    skipped=$((skipped + 1))
}

configure() { # configure FOLDER OPTION...: warnings are errors
    folder=$1
    shift
    ! have ninja || set -- -G Ninja "$@"
    ! have ccache || set -- -DCMAKE_C_COMPILER_LAUNCHER=ccache "$@"
    cmake -S . -B "$folder" --toolchain cmake/aarch64-linux-gnu.cmake -DCMAKE_BUILD_TYPE=Release \
        -DCT_DEVELOPER=ON -DCT_BUILD_BENCH=OFF "$@"
}

jobs=$(nproc 2>/dev/null || echo 2)

# The objects of both sets as the project compiles them, and the test with the little it needs, linked
# by hand: neither zlib nor the rest of the program is built.
build_kernels() {
    for part in JPEG PNG ARCHIVE CURL MICROHTTPD RSVG ZMQ; do set -- "$@" "-DCT_WITH_$part=OFF"; done
    configure build-arm -DCT_BUILD_TESTS=OFF -DZLIB_LIBRARY=not-linked -DZLIB_INCLUDE_DIR=/usr/include "$@" &&
        cmake --build build-arm -j "$jobs" --target ct_kernels_neon ct_kernels_portable &&
        aarch64-linux-gnu-gcc -std=c11 -O2 -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -Isrc -Iinclude \
            tests/test_kernels.c src/util/memory.c src/util/rng.c src/util/status.c \
            build-arm/CMakeFiles/ct_kernels_*.dir/src/backend/cpu/kernels/*.o -static -lm \
            -o "$scratch/test_kernels"
}

sh scripts/setup.sh arm >"$scratch/setup" 2>&1 || tail -n 5 "$scratch/setup"
qemu=
for name in qemu-aarch64-static qemu-aarch64; do ! have $name || qemu=$name; done
if ! have aarch64-linux-gnu-gcc || ! have cmake || [ -z "$qemu" ]; then
    skip arm "aarch64-linux-gnu-gcc, cmake or qemu-aarch64 is not installed"
    finish
fi

build_kernels >"$scratch/said" 2>&1
built=$?
verdict $built the_kernels_compile_for_arm_without_a_warning "$scratch/said"
[ $built -eq 0 ] || finish
$qemu "$scratch/test_kernels" >"$scratch/said" 2>&1
verdict $? the_neon_kernels_agree_with_the_portable_ones "$scratch/said"
grep -q '^neon$' "$scratch/said" && grep -q '^16 passed, 0 failed, 0 skipped$' "$scratch/said"
verdict $? both_sets_were_tried "$scratch/said"

[ "$long" = 1 ] || finish
libraries=/usr/lib/aarch64-linux-gnu
if ! ls $libraries/libz.so >/dev/null 2>&1; then
    skip the_program "zlib1g-dev:arm64 is not installed"
    finish
fi
# Names are words.
# shellcheck disable=SC2086
{ configure build-aarch64 && cmake --build build-aarch64 -j "$jobs" --target crosstalk $programs; } \
    >"$scratch/said" 2>&1
built=$?
verdict $built the_program_compiles_for_arm_without_a_warning "$scratch/said"
[ $built -eq 0 ] || finish
for name in $programs; do
    (cd build-aarch64 && $qemu -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=$libraries "tests/$name") \
        >"$scratch/said" 2>&1
    verdict $? "$name" "$scratch/said"
done
finish
