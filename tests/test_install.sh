#!/bin/sh
# tests/test_install.sh [BUILD]: installs a finished build (default: build) into a prefix and looks at
# what came: files, manual pages, completions, exported symbols; programs that know the installed tree
# alone are compiled against it, with pkg-config and with CMake, and run. Then Debian packages of it.
# What the machine lacks (man, zsh, fish, dpkg) is skipped.
# Functions are called through said():
# shellcheck disable=SC2317
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
build=$(cd "${1:-$root/build}" && pwd) || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
prefix=$scratch/prefix
passed=0 failed=0 skipped=0

have() { command -v "$1" >/dev/null 2>&1; }

# verdict NAME: of the command before; what it said is in $scratch/said.
verdict() {
    if [ $? -eq 0 ]; then
        passed=$((passed + 1))
        echo "ok   $1"
    else
        failed=$((failed + 1))
        head -n 20 "$scratch/said" 2>/dev/null
        echo "FAIL $1"
    fi
}

skip() { # skip NAME REASON
    skipped=$((skipped + 1))
    echo "skip $1 ($2)"
}

said() { "$@" >"$scratch/said" 2>&1; }

finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}

# ---- files ----

said cmake --install "$build" --prefix "$prefix"
verdict the_build_installs
[ "$failed" -eq 0 ] || finish
libdir=$(dirname "$(find "$prefix" -name libcrosstalk.a)")
program=$prefix/bin/crosstalk
version=$("$program" --version | cut -d ' ' -f 2)
commands=$("$program" help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' | grep -v '^crosstalk$')

is_complete() {
    for file in bin/crosstalk include/crosstalk/crosstalk.h include/crosstalk/version.h \
        share/man/man1/crosstalk.1 share/doc/crosstalk/copyright \
        share/crosstalk/experiments/table1.conf share/bash-completion/completions/crosstalk \
        share/zsh/site-functions/_crosstalk share/fish/vendor_completions.d/crosstalk.fish; do
        [ -f "$prefix/$file" ] || { echo "no $file" && return 1; }
    done
    for file in libcrosstalk.a libcrosstalk.so libcrosstalk.so.0 "libcrosstalk.so.$version" \
        pkgconfig/crosstalk.pc cmake/crosstalk/crosstalkConfig.cmake; do
        [ -f "$libdir/$file" ] || { echo "no $file" && return 1; }
    done
    for command in $commands; do
        [ -f "$prefix/share/man/man1/crosstalk-$command.1" ] || { echo "no page of $command" && return 1; }
    done
}
said is_complete
verdict everything_is_there

said "$program" reproduce list && grep -q table1 "$scratch/said"
verdict the_installed_program_finds_its_experiments

# ---- exported symbols ----

# The functions that the public headers mark.
sed -n '/^CT_API /{:more
/;/!{N
b more
}
p
}' "$root"/include/crosstalk/*.h | tr '\n' ' ' | grep -o 'ct_[a-z0-9_]* *(' | tr -d ' (' |
    sort -u >"$scratch/marked"
nm -D --defined-only "$libdir/libcrosstalk.so" | sed 's/.* //; s/@.*//' | sort -u >"$scratch/exported"
[ -s "$scratch/exported" ] && diff "$scratch/marked" "$scratch/exported" >"$scratch/said"
verdict the_library_exports_what_the_headers_mark

# ---- other people's programs ----

export PKG_CONFIG_PATH="$libdir/pkgconfig"
cat >"$scratch/use.c" <<'END'
#include <crosstalk/crosstalk.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    printf("%s\n", ct_version());
    return strcmp(ct_version(), CT_VERSION) != 0;
}
END

uses_pkg_config() {
    # Flags are words.
    # shellcheck disable=SC2046
    ${CC:-cc} -Wall -Wextra -Wpedantic -Werror -std=c11 "$1" -o "$scratch/use" \
        $(pkg-config --cflags --libs crosstalk) &&
        LD_LIBRARY_PATH=$libdir "$scratch/use" | grep -qx "$version"
}

uses_archive() {
    # shellcheck disable=SC2046
    ${CC:-cc} "$1" -o "$scratch/static" $(pkg-config --cflags crosstalk) "$libdir/libcrosstalk.a" \
        $(pkg-config --static --libs crosstalk | sed 's/-lcrosstalk//') &&
        "$scratch/static" | grep -qx "$version" && ! ldd "$scratch/static" | grep libcrosstalk
}

uses_cmake() {
    cat >"$scratch/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.20)
project(use C)
find_package(crosstalk 0.2 REQUIRED)
foreach(kind crosstalk static)
  add_executable(use_${kind} use.c)
  target_link_libraries(use_${kind} PRIVATE crosstalk::${kind})
endforeach()
END
    cmake -S "$scratch" -B "$scratch/cmake" -DCMAKE_PREFIX_PATH="$prefix" &&
        cmake --build "$scratch/cmake" && "$scratch/cmake/use_crosstalk" && "$scratch/cmake/use_static"
}

if have pkg-config; then
    [ "$(pkg-config --modversion crosstalk)" = "$version" ] && said uses_pkg_config "$scratch/use.c"
    verdict pkg_config_finds_the_shared_library
    said uses_archive "$scratch/use.c"
    verdict pkg_config_finds_the_static_library
else
    skip pkg_config "pkg-config is not installed"
fi
said uses_cmake
verdict cmake_finds_both

# example NAME ARGUMENT...: compiled against the installed tree alone, and run in an empty folder.
example() {
    name=$1
    shift
    # shellcheck disable=SC2046
    ${CC:-cc} -Wall -Wextra -Werror -std=c11 -O2 "$root/examples/c/$name.c" -o "$scratch/$name" \
        $(pkg-config --cflags --libs crosstalk) -lm &&
        (cd "$scratch/examples" && LD_LIBRARY_PATH=$libdir "$scratch/$name" "$@")
}

mkdir "$scratch/examples"
picture=$root/tests/fuzz/corpus/picture/good-palette4.png
examples=$(find "$root/examples/c" -name '*.c' 2>/dev/null | sort -r) # train before predict, which needs its run
have pkg-config || examples=
for source in $examples; do
    name=$(basename "$source" .c)
    case $name in
    train) said example train run ;;
    predict) said example predict run "$picture" && grep -q 'class [0-9]' "$scratch/said" ;;
    *) said example "$name" ;;
    esac
    verdict "example_${name}_runs"
done
[ -n "$examples" ] || skip the_examples "there are none, or no pkg-config"

# ---- pages and completions ----

render_pages() {
    for page in "$prefix"/share/man/man1/*.1; do
        man --warnings=w -l -E UTF-8 "$page" 2>&1 >/dev/null | grep . && return 1
        [ "$(man -l "$page" | grep -c '^NAME$\|^SYNOPSIS$')" = 2 ] || return 1
    done
    man -l "$prefix/share/man/man1/crosstalk-train.1" | grep -q -- '--algorithm'
}

if have man; then
    said render_pages
    verdict manual_pages_render_without_warnings
else
    skip manual_pages "man is not installed"
fi

# complete_bash WORD...: what bash offers for the last word.
complete_bash() {
    bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _crosstalk; echo "${COMPREPLY[@]}"' \
        "$prefix/share/bash-completion/completions/crosstalk" "$@"
}

completes() {
    [ "$(complete_bash crosstalk tra)" = train ] && [ "$(complete_bash crosstalk train --bat)" = --batch-size ] &&
        [ "$(complete_bash crosstalk train --norm group)" = groupnorm ] &&
        [ "$(complete_bash crosstalk train --norm = group)" = groupnorm ] &&
        [ "$(complete_bash crosstalk train --algorithm qg)" = qg-dsgdm ] &&
        [ "$(complete_bash crosstalk list mod)" = models ] && [ -z "$(complete_bash crosstalk serve --epo)" ]
}

if have bash; then
    said completes
    verdict bash_completes_commands_options_and_values
else
    skip bash "bash is not installed"
fi
if have zsh; then
    said zsh -n "$prefix/share/zsh/site-functions/_crosstalk"
    verdict zsh_reads_its_completions
else
    skip zsh "zsh is not installed"
fi
if have fish; then
    fish -N -c "source $prefix/share/fish/vendor_completions.d/crosstalk.fish
        complete -C 'crosstalk train --norm gr'; complete -C 'crosstalk tra'" >"$scratch/said" 2>&1
    grep -q '^groupnorm' "$scratch/said" && grep -q '^train' "$scratch/said"
    verdict fish_completes_commands_and_values
else
    skip fish "fish is not installed"
fi

# A command is offered the options of a run where it takes them, and only there: elsewhere --epochs
# is unknown.
offers_what_is_taken() {
    for command in $commands; do
        case $command in
        show | verify) continue ;; # takes no options; hands them to the runs that it starts
        esac
        "$program" "$command" --epochs=x,y >"$scratch/words" 2>&1
        takes=$(grep -c "is not a whole number" "$scratch/words")
        offered=$(complete_bash crosstalk "$command" --epochs | grep -c epochs)
        [ "$takes" = "$offered" ] || { echo "$command: taken $takes, offered $offered" && return 1; }
    done
}
if have bash; then
    said offers_what_is_taken
    verdict commands_are_offered_the_options_that_they_take
fi

# ---- packages ----

pack() { (cd "$build" && cpack -G DEB -B "$scratch/debs"); }

field() { dpkg-deb -f "$scratch/debs/$1"_*.deb "$2"; }

has_control_fields() {
    for package in crosstalk libcrosstalk0 libcrosstalk-dev; do
        [ "$(field "$package" Package) $(field "$package" Version)" = "$package $version" ] || return 1
    done
    field libcrosstalk-dev Depends | grep -q "libcrosstalk0 (= $version)" || return 1
    field crosstalk Depends | grep -q 'zlib1g' || return 1
    field libcrosstalk0 Depends | grep -q 'libc6' || return 1
    [ ! -d "$root/python/crosstalk" ] || field python3-crosstalk Depends | grep -q python3-numpy
}

unpacked_runs() {
    for deb in "$scratch"/debs/*.deb; do dpkg-deb -x "$deb" "$scratch/unpacked" || return 1; done
    "$scratch/unpacked/usr/bin/crosstalk" --version | grep -q "$version" &&
        find "$scratch/unpacked/usr" -name 'libcrosstalk.so.0' | grep -q . &&
        { [ ! -d "$root/python/crosstalk" ] || find "$scratch/unpacked/usr" -path '*dist-packages/crosstalk/__init__.py' |
            grep -q .; }
}

if have dpkg-deb && have dpkg-shlibdeps && have cpack; then
    said pack
    verdict packages_are_made
    said has_control_fields
    verdict packages_say_what_they_need
    said unpacked_runs
    verdict the_packaged_program_runs
else
    skip packages "dpkg-dev is not installed"
fi

# ---- and away ----

(cd "$scratch" && cmake -DBUILD="$build" -P "$root/cmake/Uninstall.cmake") >"$scratch/said" 2>&1 &&
    [ -z "$(find "$prefix" -type f -o -type l)" ] && [ ! -d "$prefix/include/crosstalk" ]
verdict uninstall_leaves_nothing
finish
