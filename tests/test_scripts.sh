#!/bin/sh
# Runs scripts/setup.sh and scripts/test.sh on a made-up machine: a PATH with a few real tools and
# fake compilers and package managers, and a made-up tree with fake test programs.
# shellcheck disable=SC2016 # the texts of fake programs expand when those run
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
bin=$scratch/bin tree="$scratch/a tree" said=$scratch/said apt_log=$scratch/apt.log
export apt_log bin
passed=0 failed=0
unset CC CT_NO_INSTALL

verdict() { # verdict NAME: the status of the command before says whether it holds
    if [ $? -eq 0 ]; then
        echo "ok   $1"
        passed=$((passed + 1))
    else
        sed 's/^/    /' "$said" "$apt_log"
        echo "FAIL $1"
        failed=$((failed + 1))
    fi
    machine
}

fake() { # fake NAME: a program of the made-up machine; its shell text is the standard input
    rm -f "$bin/$1"
    { echo "#!$bin/sh" && cat; } >"$bin/$1"
    chmod +x "$bin/$1"
}

# machine: everything is there, root has an apt-get that installs nothing, and no test is there.
machine() {
    rm -rf "$bin" "$tree"
    mkdir -p "$bin" "$tree/tests" "$tree/tools" "$tree/build/tests" "$tree/build-debug/tests" \
        "$tree/build-thread/tests" "$tree/build-emulated/tests"
    : >"$apt_log"
    for tool in sh awk basename cat chmod date dirname env getconf grep ln mkdir mktemp nproc rm sed tail \
        sort timeout xargs; do
        real=$(command -v "$tool") && ln -s "$real" "$bin/$tool"
    done
    for tool in gcc g++ ninja make pkg-config mpicc mpirun python3 clang-format valgrind chromium openssl sleep \
        man zsh fish dpkg-shlibdeps file; do
        echo 'exit 0' | fake "$tool"
    done
    echo 'echo "cmake version 3.25.1"' | fake cmake
    echo 'echo 0' | fake id
    echo 'echo "$@" >>"$apt_log"' | fake apt-get
    cp -r "$root/scripts" "$tree/scripts"
    echo >"$tree/tools/check"
}

setup() { (cd / && PATH=$bin sh "$tree/scripts/setup.sh" "$@") >"$said" 2>&1; }

run_tests() { (cd / && PATH=$bin sh "$tree/scripts/test.sh" "$@") >"$said" 2>&1; }

# program FOLDER NAME: a test program in that build folder, its shell text is the standard input.
program() {
    : >"$tree/tests/$2.c"
    { echo "#!$bin/sh" && cat; } >"$tree/$1/tests/$2"
    chmod +x "$tree/$1/tests/$2"
}

total() { [ "$(tail -n 1 "$said")" = "$1" ]; } # the last line that was said

one_line() { [ "$(grep -c '' "$said")" -eq 1 ]; }

machine
setup build && [ ! -s "$said" ] && [ ! -s "$apt_log" ]
verdict a_complete_machine_is_left_alone

rm "$bin/gcc" "$bin/apt-get"
! setup build && one_line && grep -q 'setup: missing: a C compiler.*zlib.*apt-get install gcc' "$said"
verdict a_missing_compiler_without_apt_is_named_in_one_line

echo 'echo "cmake version 3.18.4"' | fake cmake
! setup build && grep -q 'setup: missing: CMake 3.20 or later' "$said"
verdict an_old_cmake_is_not_enough
echo 'echo "cmake version 4.1.0"' | fake cmake
setup build
verdict cmake_4_is_enough

rm "$bin/ninja"
setup build
verdict make_serves_where_ninja_is_missing

rm "$bin/gcc"
fake apt-get <<'TEXT'
echo "$@" >>"$apt_log"
case "$*" in
*" install "*gcc*) printf '#!%s/sh\nexit 0\n' "$bin" >"$bin/gcc" && chmod +x "$bin/gcc" ;;
esac
TEXT
setup build && grep -q ' update$' "$apt_log" && tail -n 1 "$apt_log" | grep -q ' install .*gcc libc6-dev'
verdict root_installs_what_is_missing

rm "$bin/gcc"
echo 'echo 1000' | fake id
! setup build && [ ! -s "$apt_log" ] && one_line
verdict who_is_not_root_is_told_what_to_install

rm "$bin/gcc"
echo 'echo 1000' | fake id
fake sudo <<'TEXT'
[ "$1" = -n ] && shift && [ "$1" != true ] && "$@"
exit 0
TEXT
! setup build && grep -q ' install .*gcc' "$apt_log"
verdict sudo_without_a_password_is_used

rm "$bin/gcc"
! CT_NO_INSTALL=1 setup build && [ ! -s "$apt_log" ]
verdict nothing_is_installed_when_told_so

rm "$bin/valgrind"
echo 'echo "$@" >>"$apt_log"; exit 100' | fake apt-get
setup test && grep -q 'setup: note: .*valgrind' "$said"
verdict a_missing_optional_part_is_a_note

! setup everything && grep -q '^usage' "$said"
verdict an_unknown_purpose_is_refused

# --- test.sh. A machine that has everything counts two passed: tools/check and valgrind.
echo 'echo "ok   a"; echo "skip b"; echo "1 passed, 0 failed, 1 skipped"' | program build test_x
echo 'echo "ok   a"; echo "ok   b"; echo "2 passed, 0 failed, 0 skipped"' | program build-debug test_x
run_tests && total "5 passed, 0 failed, 1 skipped"
verdict totals_of_both_builds_are_summed

for k in 1 2 3 4 5; do
    echo "echo \"$k passed, 0 failed, 0 skipped\"" | program build "test_$k"
done
echo 'echo "FAIL a"; echo "0 passed, 1 failed, 0 skipped"; exit 1' | program build test_3
! CT_TEST_JOBS=3 run_tests --quick && total "13 passed, 1 failed, 0 skipped" &&
    grep -o 'release test_.' "$said" | sort -c
verdict programs_that_run_at_once_are_all_counted_in_order

echo 'echo "1 passed, 0 failed, 0 skipped"' | program build test_x
rm "$bin/xargs"
! run_tests --quick && total "1 passed, 1 failed, 0 skipped" && grep -q 'did not run' "$said"
verdict a_program_that_did_not_run_is_a_failure

echo 'echo "7 passed, 0 failed, 0 skipped"' | program build test_x
run_tests --quick && total "8 passed, 0 failed, 0 skipped"
verdict quick_runs_the_release_build_alone

echo 'echo "    why"; echo "FAIL a"; echo "0 passed, 1 failed, 0 skipped"; exit 1' | program build test_x
! run_tests --quick && total "1 passed, 1 failed, 0 skipped" && grep -q '^        why$' "$said"
verdict a_failed_test_is_shown_and_counted

echo 'echo "ok   a"; kill -SEGV $$' | program build test_x
! run_tests --quick && total "2 passed, 1 failed, 0 skipped"
verdict a_crash_is_a_failure

echo 'echo "3 passed, 0 failed, 0 skipped"; echo "leak" >&2; exit 23' | program build test_x
! run_tests --quick && total "1 passed, 1 failed, 0 skipped" && grep -q 'leak' "$said"
verdict a_bad_end_after_good_totals_is_a_failure

echo 'exit 0' | program build test_x
! run_tests --quick && total "1 passed, 1 failed, 0 skipped"
verdict a_program_without_totals_is_a_failure

: >"$tree/tests/test_x.c"
! run_tests --quick && total "1 passed, 1 failed, 0 skipped"
verdict a_program_that_was_not_built_is_a_failure

rm "$bin/sleep" && ln -s "$(command -v sleep)" "$bin/sleep"
echo 'echo "ok   a"; exec sleep 30' | program build test_x
! CT_TEST_LIMIT_S=1 run_tests --quick && total "2 passed, 1 failed, 0 skipped" &&
    grep -q 'stopped after 1 s' "$said"
verdict a_hang_is_a_failure

echo 'echo "1 passed, 0 failed, 0 skipped"' | program build test_x_slow
echo 'echo "9 passed, 9 failed, 0 skipped"' | program build-debug test_x_slow
run_tests && total "3 passed, 0 failed, 0 skipped"
verdict slow_programs_run_in_the_release_build_alone

# Of three test programs, one starts threads; and three training runs.
for name in test_loader test_topology test_loader_slow; do
    for folder in build build-debug build-thread; do
        echo 'echo "1 passed, 0 failed, 0 skipped"' | program $folder $name
    done
done
echo 'exit 0' | program build-thread ../crosstalk && rm "$tree/tests/../crosstalk.c"
run_tests --long && total "11 passed, 0 failed, 0 skipped" && grep -q '^thread test_loader ' "$said" &&
    ! grep -q '^thread test_topology' "$said"
verdict the_long_list_has_the_threads_too
echo 'echo "WARNING: ThreadSanitizer: data race"; exit 66' | program build-thread test_util
echo 'exit 0' | program build-thread ../crosstalk && rm "$tree/tests/../crosstalk.c"
for folder in build build-debug; do echo 'echo "1 passed, 0 failed, 0 skipped"' | program $folder test_util; done
! run_tests --long && total "7 passed, 1 failed, 0 skipped" && grep -q 'data race' "$said"
verdict a_data_race_is_a_failure

# Of two programs one has kernels, which run on an emulated GPU as well.
for name in test_cuda_x test_x; do
    for folder in build build-debug build-emulated; do
        echo 'echo "1 passed, 0 failed, 0 skipped"' | program $folder $name
    done
done
run_tests && total "7 passed, 0 failed, 0 skipped" && grep -q '^emulated test_cuda_x ' "$said"
verdict kernels_run_on_the_emulated_gpu

echo 'exit 9' | fake valgrind
! run_tests && total "1 passed, 1 failed, 0 skipped"
verdict a_leak_under_valgrind_is_a_failure

echo 'exit 1' | fake python3
! run_tests --quick && total "0 passed, 1 failed, 0 skipped"
verdict a_violation_of_the_style_is_a_failure

rm "$bin/python3" "$bin/valgrind" "$bin/g++" "$bin/apt-get"
run_tests && total "0 passed, 0 failed, 3 skipped"
verdict missing_tools_are_counted_as_skipped

fake cmake <<'TEXT'
[ "$1" = --build ] && echo "x.c:1: error: no" && exit 1
echo "cmake version 3.25.1"
TEXT
! run_tests --quick && total "1 passed, 1 failed, 0 skipped" && grep -q 'x.c:1: error: no' "$said"
verdict a_build_that_fails_is_a_failure_and_is_shown

rm "$bin/gcc" "$bin/apt-get"
! run_tests && total "0 passed, 1 failed, 0 skipped"
verdict a_set_up_that_fails_is_a_failure

! run_tests --fast && grep -q '^usage' "$said"
verdict an_unknown_option_is_refused

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
