#!/bin/sh
# scripts/test.sh [--quick|--long]: sets up, builds and runs every test there is.
#   release and debug (ASan + UBSan) builds, tools/check, each tests/test_*.c program in both builds
#   (those named *_slow in the release build alone), each tests/test_*.sh, the pages of report and
#   serve in a headless Chromium, a training run under valgrind, and kernels for GPUs on an emulated
#   one. --quick: the release build alone, no valgrind, no emulated GPU. --long: programs try all they
#   can instead of samples, and a build with ThreadSanitizer, in which the programs below that start
#   threads run, and training runs. Up to four programs run at once, one a core (CT_TEST_JOBS).
# Shows what failed; the last line is "N passed, N failed, N skipped". Exit 1 if anything failed.
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
cd "$root" || exit 1
limit_s=${CT_TEST_LIMIT_S:-600} # a program that runs longer hangs
cores=$(nproc)
jobs=${CT_TEST_JOBS:-$((cores < 4 ? cores : 4))} # more of them would want much memory
quick=0 long=0
# Programs of one process that start threads: pool, backend, loader, downloads, server. Those that
# start ranks are left out: races inside Open MPI are not told apart from ours yet.
threaded="test_algorithms test_api test_compare test_data_cache test_data_get test_http test_image_folder
    test_loader test_report_groups test_training_options test_util"
case $*:$# in
:0) ;;
--quick:1) quick=1 ;;
--long:1)
    long=1
    export CT_TEST_LONG=1 # all of what programs take samples of otherwise
    limit_s=${CT_TEST_LIMIT_S:-43200}
    ;;
*)
    echo "usage: scripts/test.sh [--quick|--long]" >&2
    exit 2
    ;;
esac
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
passed=0 failed=0 skipped=0
export CT_DEVELOPER=1 # warnings are errors here (scripts/build.sh)
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"

have() { command -v "$1" >/dev/null 2>&1; }

finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}

count() { # count PASSED FAILED SKIPPED
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

limit=
! have timeout || limit="timeout -k 10 $limit_s"

with_limit() { $limit "$@"; }

# sum_up STATUS <OUTPUT: prints "PASSED FAILED SKIPPED" of a test program. One that ends badly has a
# failure even if it counts none (a crash, a leak, a hang); one without totals is counted by its
# lines.
sum_up() {
    awk -v status="$1" '
        /^ok  /  { ok++ }
        /^FAIL / { bad++ }
        /^skip / { skip++ }
        { total = 0 }
        /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { total = 1; p = $1; f = $3; s = $5 }
        END {
            if (!total) { p = ok + 0; f = bad + 1; s = skip + 0 }
            if (status != 0 && f == 0) f = 1
            print p, f, s
        }'
}

# explain <OUTPUT: the words of the failed tests, and what came after the last test.
explain() {
    awk '
        /^(ok  |skip )/ { n = 0; next }
        /^FAIL / { for (i = 0; i < n; i++) print "    " held[i]; print "    " $0; n = 0; next }
        /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { next }
        { held[n++] = $0 }
        END { for (i = n > 60 ? n - 60 : 0; i < n; i++) print "    " held[i] }'
}

# tell TITLE OUTPUT STATUS SECONDS: counts a test program that has ended.
tell() {
    title=$1 output=$2 status=$3 seconds=$4
    # Three numbers, to be split.
    # shellcheck disable=SC2046
    set -- $(sum_up "$status" <"$output")
    count "$1" "$2" "$3"
    printf '%-40s %s passed, %s failed, %s skipped (%d s)\n' "$title" "$1" "$2" "$3" "$seconds"
    [ "$2" -eq 0 ] && return
    explain <"$output"
    case $status in
    0 | 1) ;;
    124 | 137) echo "    $title: stopped after $limit_s s" ;;
    *) echo "    $title: ended with status $status" ;;
    esac
}

# run_program TITLE FOLDER COMMAND...: runs a test program in FOLDER and counts it.
run_program() {
    title=$1 folder=$2
    shift 2
    began=$(date +%s)
    (cd "$folder" && with_limit "$@") >"$scratch/said" 2>&1 </dev/null
    tell "$title" "$scratch/said" $? $(($(date +%s) - began))
}

# run_one TITLE COMMAND...: a command that is one test. Status 0: passed; its words are shown if not.
run_one() {
    title=$1
    shift
    began=$(date +%s)
    if with_limit "$@" >"$scratch/said" 2>&1 </dev/null; then
        count 1 0 0
        verdict=passed
    else
        count 0 1 0
        verdict=FAILED
    fi
    printf '%-40s %s (%d s)\n' "$title" "$verdict" $(($(date +%s) - began))
    [ "$verdict" = passed ] || tail -n 60 "$scratch/said" | sed 's/^/    /'
}

skip_one() { # skip_one TITLE REASON
    count 0 0 1
    printf '%-40s skipped: %s\n' "$1" "$2"
}

# build PRESET: a build that fails is a failed test, one that works is none.
build() {
    began=$(date +%s)
    if sh scripts/build.sh "$1"; then
        echo "$1 build ($(($(date +%s) - began)) s)"
        return 0
    fi
    count 0 1 0
    return 1
}

# programs PRESET: names of the tests/test_*.c that run in it; of "script": the tests/test_*.sh, but
# for those that look at what was built in build/, which are "built".
programs() {
    case $1 in
    script | built)
        for source in tests/test_*.sh; do
            kind=script
            case $source in
            */test_install.sh | */test_python.sh | */test_three_sites.sh) kind=built ;;
            esac
            [ ! -f "$source" ] || [ "$1" != $kind ] || basename "$source"
        done
        return
        ;;
    esac
    for source in tests/test_*.c; do
        [ -f "$source" ] || continue
        name=$(basename "$source" .c)
        case $1:$name in
        debug:*_slow) continue ;;
        emulated:test_cuda*) ;;
        emulated:*) continue ;;
        thread:*) echo "$threaded" | grep -qw "$name" || continue ;;
        esac
        echo "$name"
    done
}

# run_programs PRESET FOLDER: those, as built in FOLDER, several at once; told in order. The last
# names come first, for some of them take longest.
run_programs() {
    rm -f "$scratch"/*.ended
    # The words of the limit are to be split; all else expands in the other shell.
    # shellcheck disable=SC2016
    programs "$1" | sort -r | xargs -n 1 -P "$jobs" sh -c '
        [ $# -eq 4 ] || exit 0 # no programs
        began=$(date +%s)
        cd "$1" && $3 "./tests/$4" >"$2/$4" 2>&1 </dev/null
        echo "$? $(($(date +%s) - began))" >"$2/$4.ended"' run "$2" "$scratch" "$limit"
    for name in $(programs "$1"); do
        status=127 seconds=0
        [ ! -f "$scratch/$name.ended" ] || read -r status seconds <"$scratch/$name.ended"
        [ -f "$scratch/$name" ] || echo "$name did not run" >"$scratch/$name"
        tell "$1 $name" "$scratch/$name" "$status" "$seconds"
        rm "$scratch/$name"
    done
}

run_check() {
    if have python3; then
        run_one tools/check python3 tools/check
    else
        skip_one tools/check "python3 is not installed"
    fi
    run_programs script .
}

run_browser() {
    for script in tests/browser/test_*.py; do
        [ -f "$script" ] || continue
        if have python3; then
            run_program "$script" "$root" python3 "$script" build/crosstalk
        else
            skip_one "$script" "python3 is not installed"
        fi
    done
}

# The kernels as C++, their threads one after the other (tests/emulator); needs CUDA's headers alone.
run_emulated() {
    if ! have g++ || ! echo '#include <cuda_runtime_api.h>' |
        g++ -E -x c++ -I "${CUDA_PATH:-/usr/local/cuda}/include" - >/dev/null 2>&1; then
        skip_one "emulated GPU" "g++ or CUDA's headers are not installed"
    elif build emulated; then
        run_programs emulated build-emulated
    fi
}

small="--dataset shapes --train-samples 400 --test-samples 40 --agents 4 --alpha 0.1 --iterations 2"

run_valgrind() {
    title="valgrind: a training run leaks nothing"
    if ! have valgrind; then
        skip_one "$title" "valgrind is not installed"
        return
    fi
    # Options are words.
    # shellcheck disable=SC2086
    run_one "$title" valgrind --leak-check=full --error-exitcode=9 -q build/crosstalk train \
        $small --model lenet5 --algorithm ccl --out "$scratch/run"
}

# Four threads even on fewer cores: a missing lock is seen although the accesses did not meet.
run_threads() {
    for algorithm in ccl cga relaysgd; do
        # shellcheck disable=SC2086
        run_one "threads: $algorithm" build-thread/crosstalk train $small --model lenet5 \
            --algorithm $algorithm --threads 4 --out "$scratch/threads-$algorithm"
    done
}

if ! sh scripts/setup.sh test; then
    count 0 1 0
    finish
fi
run_check
if build release; then
    run_programs release build
    run_programs built .
    run_browser
    [ $quick -eq 1 ] || run_valgrind
fi
if [ $quick -eq 0 ] && build debug; then
    run_programs debug build-debug
fi
[ $quick -eq 1 ] || run_emulated
if [ $long -eq 1 ] && build thread; then
    run_programs thread build-thread
    run_threads
fi
finish
