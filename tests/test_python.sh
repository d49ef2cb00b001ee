#!/bin/sh
# tests/test_python.sh [PATTERN...]: the Python package. Its tests run against the library in build/;
# then a wheel is built and installed into a fresh virtual environment, which trains without the
# source tree. PATTERNs (test_run.py) choose tests and leave the wheel out. Skipped without NumPy.
# CROSSTALK_PYTHON names the interpreter; default: Debian's, for which apt has NumPy and PyTorch.
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
cd "$root" || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
passed=0 failed=0 skipped=0

finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}

# verdict NAME STATUS LOG: counts a test and shows what a failed one said.
verdict() {
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
        echo "ok   $1"
    else
        failed=$((failed + 1))
        tail -n 40 "$3"
        echo "FAIL $1"
    fi
}

skip() { # skip NAME REASON
    skipped=$((skipped + 1))
    echo "skip $1: $2"
}

has_numpy() { "$1" -c 'import numpy' >/dev/null 2>&1; }

python=${CROSSTALK_PYTHON:-/usr/bin/python3}
has_numpy "$python" || python=python3
if ! has_numpy "$python"; then
    skip "the Python package" "python3-numpy is not installed"
    finish
fi

# The build that is there, brought up to date; whoever calls this first builds it.
if [ -f build/CMakeCache.txt ]; then
    cmake --build build --parallel --target crosstalk crosstalk_shared >"$scratch/log" 2>&1
else
    sh scripts/build.sh release >"$scratch/log" 2>&1
fi
status=$?
if [ $status -ne 0 ]; then
    verdict "the library builds" $status "$scratch/log"
    finish
fi

# ---- the package's own tests ----

export OMP_NUM_THREADS=1 # networks of the tests are small
CROSSTALK_LIBRARY=$root/build/libcrosstalk.so PYTHONPATH=$root/python PYTHONDONTWRITEBYTECODE=1 \
    "$python" python/tests "$@" >"$scratch/tests" 2>&1
status=$?
sed '$d' "$scratch/tests"
totals=$(tail -n 1 "$scratch/tests" |
    sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p')
if [ -z "$totals" ]; then
    tail -n 1 "$scratch/tests"
    verdict "the tests come to an end" 1 /dev/null
else
    # Three numbers, to be split.
    # shellcheck disable=SC2086
    set -- "$#" $totals
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    [ $status -eq 0 ] || [ "$3" -gt 0 ] || verdict "the tests end well" $status "$scratch/tests"
    [ "$1" -eq 0 ] || finish
fi

# ---- a wheel in a fresh environment ----

# Nothing is fetched: setuptools, wheel and NumPy are the system's.
if ! "$python" -m venv --system-site-packages "$scratch/venv" >"$scratch/log" 2>&1; then
    skip "pip install in a fresh environment" "python3-venv is not installed"
    finish
fi
if ! "$python" -c 'import setuptools, wheel' >/dev/null 2>&1; then
    skip "pip install in a fresh environment" "python3-setuptools or python3-wheel is not installed"
    finish
fi
mkdir "$scratch/tree" && cp CMakeLists.txt "$scratch/tree" &&
    cp -r python "$scratch/tree/python" && rm -rf "$scratch/tree/python/build"
(cd "$scratch/tree/python" && CROSSTALK_BUILD_DIR=$root/build "$scratch/venv/bin/python" -m pip \
    --disable-pip-version-check wheel --no-deps --no-index --no-build-isolation -w "$scratch/wheels" .) \
    >"$scratch/log" 2>&1
verdict "pip builds a wheel without network" $? "$scratch/log"

ls "$scratch"/wheels/crosstalk-*-py3-none-linux_*.whl >"$scratch/log" 2>&1
verdict "the wheel is for any Python 3 on this kind of machine" $? "$scratch/log"

"$scratch/venv/bin/python" -m pip --disable-pip-version-check install --no-index \
    "$scratch"/wheels/crosstalk-*.whl >"$scratch/log" 2>&1
verdict "pip installs it into a fresh environment" $? "$scratch/log"

cat >"$scratch/try.py" <<'END'
import numpy, os, sys
import crosstalk
assert os.path.dirname(crosstalk.__file__).startswith(sys.prefix), crosstalk.__file__
library = os.path.join(os.path.dirname(crosstalk.__file__), "libcrosstalk.so")
assert library in open("/proc/self/maps").read(), "another library is loaded"
labels = numpy.arange(80) % 2
rows = (numpy.random.default_rng(0).normal(size=(80, 5)) + 3 * labels[:, None]).astype("f4")
run = crosstalk.train(rows, labels, test=(rows, labels), model="logistic", agents=4, batch_size=8,
                      epochs=5, lr=0.1)
assert run.metrics["consensus_accuracy"] > 0.9, run.metrics
assert crosstalk.__version__ == __import__("importlib.metadata").metadata.version("crosstalk")
END
(cd "$scratch" && env -u PYTHONPATH -u CROSSTALK_LIBRARY "$scratch/venv/bin/python" "$scratch/try.py") \
    >"$scratch/log" 2>&1
verdict "the installed package trains with its own library" $? "$scratch/log"
finish
