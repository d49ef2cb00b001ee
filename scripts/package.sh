#!/bin/sh
# scripts/package.sh [OUT]: Debian packages of this tree for this machine, in OUT (default: packages/).
# Builds in build-package/ with the prefix /usr, so that libraries go where Debian's own do.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$root/packages}
cd "$root"
sh scripts/setup.sh build
cmake --preset package >/dev/null
cmake --build build-package -j "$(nproc 2>/dev/null || echo 2)"
cd build-package
cpack -G DEB -B "$out"
