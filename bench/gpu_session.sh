#!/bin/sh
# bench/gpu_session.sh [FOLDER]: everything that wants a GPU, in one go: build, test_cuda,
# compute-sanitizer on short runs, and the times of the paper's iterations; a short table comes last.
# FOLDER (default build-gpu) is built there; logs go to $OUT, or to FOLDER. Parts are chosen by
# PARTS="build test sanitize bench torch".
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
cd "$root" || exit 1
build=${1:-build-gpu}
out=${OUT:-$build}
parts=${PARTS:-build test sanitize bench}
wants() { case " $parts " in *" $1 "*) return 0 ;; esac; return 1; }

if wants build; then
    mkdir -p "$build"
    cmake -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_ARCHITECTURES=90-real \
        >"$out/configure.log" 2>&1 || { tail -20 "$out/configure.log"; exit 1; }
    began=$(date +%s)
    ninja -C "$build" crosstalk test_cuda >"$out/build.log" 2>&1 ||
        { grep -E "error|FAILED" "$out/build.log" | head -20; exit 1; }
    echo "built in $(($(date +%s) - began)) s"
fi
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,temperature.gpu --format=csv,noheader

if wants test; then
    timeout "${TEST_LIMIT_S:-200}" "$build/tests/test_cuda" >"$out/test_cuda.log" 2>&1
    grep -vE "^ok  " "$out/test_cuda.log" | head -60
fi

# sanitize TOOL MODEL DATASET
sanitize() {
    compute-sanitizer --tool "$1" --error-exitcode 9 "$build/crosstalk" bench --device cuda \
        --dataset "$3" --model "$2" --agents 4 --batch-size 4 --algorithm ccl --warmup 1 --repeat 1 \
        --train-samples 400 --test-samples 40 >"$out/sanitize-$1-$2.log" 2>&1
    echo "compute-sanitizer $1 $2: exit $?, $(tail -1 "$out/sanitize-$1-$2.log")"
}
if wants sanitize; then
    sanitize memcheck resnet20 noise
    sanitize racecheck resnet20 noise
    sanitize memcheck lenet5 shapes
fi

# time_one MODEL DATASET ALGORITHM PRECISION AGENTS [OPTIONS...]
time_one() {
    model=$1 dataset=$2 algorithm=$3 precision=$4 agents=$5
    shift 5
    printf '%-12s %-9s %-5s %3d agents %s: ' "$model" "$algorithm" "$precision" "$agents" "$*"
    timeout 60 "$build/crosstalk" bench --device cuda --precision "$precision" --dataset "$dataset" \
        --model "$model" --algorithm "$algorithm" --agents "$agents" --alpha 1 --warmup 20 \
        --repeat 50 "$@" 2>>"$out/bench.log" | tee -a "$out/bench.log" | grep -iE "ms|iteration" |
        head -1
}
if wants bench; then
    : >"$out/bench.log"
    time_one resnet20 noise ccl tf32 16
    time_one resnet20 noise qg-dsgdm tf32 16
    time_one resnet20 noise ccl fp32 16
    time_one lenet5 shapes ccl tf32 16
    time_one lenet5 shapes qg-dsgdm tf32 16
    time_one mobilenetv2 noise ccl tf32 16
fi
if wants torch; then python3 bench/compare_torch_gpu.py --program "$build/crosstalk"; fi
