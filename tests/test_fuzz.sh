#!/bin/sh
# tests/test_fuzz.sh [RUNS]: libFuzzer on the targets of tests/fuzz that need util and data alone, from
# their corpus, with AddressSanitizer and UBSan. Needs clang with libFuzzer; skipped without. RUNS
# (default 1500) is per target; for a long hunt: sh tests/test_fuzz.sh 10000000
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
runs=${1:-1500}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
flags="-g -O1 -std=c11 -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -I$root/src -I$root/include -I$root/tests/fuzz -I$scratch"
flags="$flags -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"
passed=0 failed=0

skip() {
    echo "skip $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d == 0 && n > 0; }' >"$scratch/try.c"
command -v clang >/dev/null 2>&1 || skip "clang is not installed"
clang -fsanitize=fuzzer,address "$scratch/try.c" -o "$scratch/try" >/dev/null 2>&1 ||
    skip "clang has no libFuzzer"
for library in JPEG:jpeglib.h:-ljpeg PNG:png.h:-lpng ARCHIVE:archive.h:-larchive; do
    name=${library%%:*} rest=${library#*:}
    with=0
    printf '#include <stdio.h>\n#include <%s>\nint main(void) { return 0; }\n' "${rest%%:*}" \
        >"$scratch/has.c"
    clang "$scratch/has.c" "${rest#*:}" -o "$scratch/has" >/dev/null 2>&1 && with=1
    echo "#define CT_WITH_$name $with" >>"$scratch/ct_config.h"
    [ $with = 1 ] && libraries="${libraries:-} ${rest#*:}"
done
echo '#define CT_WITH_CURL 0' >>"$scratch/ct_config.h"

mkdir "$scratch/o" "$scratch/work"
export CT_FUZZ_DIR="$scratch/work"
for source in "$root"/src/util/*.c "$root"/src/data/*.c; do
    # The flags are words.
    # shellcheck disable=SC2086
    clang $flags -c "$source" -o "$scratch/o/$(basename "$(dirname "$source")")-$(basename "$source" .c).o" || {
        echo "FAIL $source does not compile"
        exit 1
    }
done
for source in "$root"/tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    ! grep -E '^#include "[a-z]+/' "$source" | grep -qv -e '"util/' -e '"data/' || continue
    cp -r "$root/tests/fuzz/corpus/${name#fuzz_}" "$scratch/seeds"
    # shellcheck disable=SC2086
    if clang $flags -fsanitize=fuzzer "$source" "$root/tests/fuzz/libfuzzer.c" "$scratch"/o/*.o ${libraries:-} -lz -lm -lpthread \
        -o "$scratch/$name" &&
        (cd "$scratch" && "./$name" -runs="$runs" -seed=1 -max_len=8192 -rss_limit_mb=3000 seeds) \
            >"$scratch/said" 2>&1; then
        echo "ok   $name survives $runs inputs of libFuzzer"
        passed=$((passed + 1))
    else
        tail -n 30 "$scratch/said" | sed 's/^/    /'
        echo "FAIL $name survives $runs inputs of libFuzzer"
        failed=$((failed + 1))
    fi
    rm -r "$scratch/seeds"
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
