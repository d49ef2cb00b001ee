#!/bin/sh
# scripts/setup.sh [test|demo|build|arm]: what a build (and the tests, the demo, or tests/test_arm.sh)
# needs from the system. Installs what is missing through apt-get where that is possible, and says in one line what
# to install where it is not. Exit 1 only if something without which nothing works is missing.
# CT_NO_INSTALL=1 looks and says, but installs nothing.
set -u
purpose=${1:-test}
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
fashion_mnist=/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz
case $purpose in
build | test | demo | arm) ;;
*)
    echo "usage: scripts/setup.sh [test|demo|build|arm]" >&2
    exit 2
    ;;
esac

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

have() { command -v "$1" >/dev/null 2>&1; }

# links FLAG...: the C program on the standard input compiles and links.
links() {
    cc=${CC:-}
    for name in cc gcc clang; do
        [ -n "$cc" ] || ! have "$name" || cc=$name
    done
    # CC may be two words, as in "ccache gcc".
    # shellcheck disable=SC2086
    [ -n "$cc" ] && $cc -x c -o "$scratch/a.out" - "$@" >/dev/null 2>&1
}

has_c() { echo '#include <stdio.h>
int main(void) { return puts("") < 0; }' | links; }

has_zlib() { echo '#include <zlib.h>
int main(void) { return zlibVersion() == 0; }' | links -lz; }

has_header() { echo "#include <stdio.h>
#include <$1>
int main(void) { return 0; }" | links; }

has_cmake() {
    have cmake || return 1
    version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9][0-9]*\)\.\([0-9][0-9]*\).*/\1 \2/p')
    major=${version% *} minor=${version#* }
    [ "${major:-0}" -gt 3 ] || { [ "${major:-0}" -eq 3 ] && [ "${minor:-0}" -ge 20 ]; }
}

need() { # need WORDS PACKAGE...: something without which nothing works
    words="$words${words:+, }$1"
    shift
    required="$required $*"
}

# What the Python package's tests use, of Debian's interpreter. PyTorch is 180 MB; without it the
# tests of crosstalk.torch are skipped.
look_for_python() {
    for module in numpy setuptools wheel torch PIL ensurepip; do
        /usr/bin/python3 -c "import importlib.util as u, sys; sys.exit(not u.find_spec('$module'))" \
            2>/dev/null && continue
        case $module in
        ensurepip) optional="$optional python3-venv" ;;
        PIL) optional="$optional python3-pil" ;;
        *) optional="$optional python3-$module" ;;
        esac
    done
}

# A compiler for 64-bit ARM, and what runs its programs.
look_for_arm() {
    echo 'int main(void) { return 0; }' | aarch64-linux-gnu-gcc -x c -o "$scratch/a.out" - 2>/dev/null ||
        optional="$optional gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
    have qemu-aarch64 || have qemu-aarch64-static || optional="$optional qemu-user-static"
}

# look: sets required and optional to the Debian names of what is missing, words to what it is.
look() {
    required='' optional='' words=''
    has_c || need "a C compiler with its headers" gcc libc6-dev
    has_zlib || need "zlib with its headers" zlib1g-dev
    has_cmake || need "CMake 3.20 or later" cmake
    have ninja || have make || need "ninja or make" ninja-build
    if [ "$purpose" = arm ]; then
        look_for_arm
        return
    fi
    has_header jpeglib.h || optional="$optional libjpeg-dev"
    has_header png.h || optional="$optional libpng-dev"
    has_header archive.h || optional="$optional libarchive-dev"
    has_header curl/curl.h || optional="$optional libcurl4-openssl-dev"
    has_header microhttpd.h || optional="$optional libmicrohttpd-dev"
    have pkg-config && pkg-config --exists librsvg-2.0 cairo ||
        optional="$optional pkg-config librsvg2-dev"
    have pkg-config && pkg-config --exists libzmq || optional="$optional pkg-config libzmq3-dev"
    have mpicc && have mpirun || optional="$optional libopenmpi-dev openmpi-bin"
    [ "$purpose" = build ] || [ -e "$fashion_mnist" ] || optional="$optional dataset-fashion-mnist"
    if [ "$purpose" = test ]; then
        have g++ || optional="$optional g++"
        have python3 || optional="$optional python3"
        look_for_python
        look_for_arm
        have clang-format || have clang-format-14 || optional="$optional clang-format"
        have chromium || have chromium-browser || have google-chrome || optional="$optional chromium"
        have valgrind || optional="$optional valgrind"
        have ccache || optional="$optional ccache"
        have tcpdump || optional="$optional tcpdump"
        have openssl || optional="$optional openssl"
        have man || optional="$optional man-db"
        have zsh || optional="$optional zsh"
        have fish || optional="$optional fish"
        have dpkg-shlibdeps && have file || optional="$optional dpkg-dev file"
        have npm || optional="$optional npm"
        /usr/bin/python3 -c 'import onnx' 2>/dev/null || optional="$optional python3-onnx"
    fi
}

# apt ARGUMENT...: apt-get as root, nothing asked, its words kept for the case of failure.
apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
        -o Acquire::Retries=3 -o Acquire::http::Timeout=30 -o DPkg::Lock::Timeout=120 "$@" \
        </dev/null >>"$scratch/log" 2>&1
}

retry() {
    "$@" || { sleep 2 && "$@"; } || { sleep 5 && "$@"; }
}

# as_root becomes the words that make a command root's; fails where there are none.
find_root() {
    as_root=''
    [ "$(id -u)" -eq 0 ] && return 0
    as_root='sudo -n'
    have sudo && sudo -n true 2>/dev/null
}

install_missing() {
    have apt-get && find_root && [ "${CT_NO_INSTALL:-0}" != 1 ] || return 1
    echo "setup: installing$required$optional" >&2
    retry apt update || echo "setup: apt-get update failed, going on with the old lists" >&2
    # All at once; where that fails, what is needed first and then the rest one by one. Words in
    # the lists are package names, to be split.
    # shellcheck disable=SC2086
    apt install --no-install-recommends $required $optional && return 0
    # shellcheck disable=SC2086
    if [ -n "$required" ] && ! retry apt install --no-install-recommends $required; then
        tail -n 15 "$scratch/log" >&2
    fi
    for package in $optional; do
        apt install --no-install-recommends "$package"
    done
    return 0
}

look
if [ -n "$required$optional" ]; then
    install_missing && look
fi
if [ -n "$optional" ] && [ -z "$required" ]; then
    echo "setup: note: going on without, but it would help to apt-get install$optional" >&2
fi
# A real runtime for the ONNX files that are exported; without it that test is skipped and counted.
if [ "$purpose" = test ] && have npm && [ ! -d "$root/.local/node_modules/onnxruntime-web" ] &&
    [ "${CT_NO_INSTALL:-0}" != 1 ]; then
    echo "setup: installing onnxruntime-web" >&2
    npm install --prefix "$root/.local" --no-audit --no-fund --no-save --silent \
        onnxruntime-web@1.17.3 >>"$scratch/log" 2>&1 ||
        echo "setup: note: npm cannot install onnxruntime-web; going on without" >&2
fi
if [ -n "$required" ]; then
    echo "setup: missing: $words; install it first (Debian, Ubuntu: apt-get install$required)" >&2
    exit 1
fi
exit 0
