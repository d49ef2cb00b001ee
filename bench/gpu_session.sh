#!/bin/sh
# bench/gpu_session.sh [FOLDER]: everything that wants a GPU, in one go: build, every test that uses
# one, compute-sanitizer on short runs, and the times of the paper's iterations; a short table comes last.
# FOLDER (default build-gpu) is built there; logs go to $OUT, or to FOLDER. Parts are chosen by
# PARTS="build test sanitize bench scaling torch profile".
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
cd "$root" || exit 1
build=${1:-build-gpu}
out=${OUT:-$build}
parts=${PARTS:-build test sanitize bench}
# tests/test_cuda*.c and those that take a GPU along where there is one
tests="$(cd tests && ls test_cuda*.c | sed 's/\.c$//') test_recent test_related test_stages test_distill test_async test_compress"
wants() { case " $parts " in *" $1 "*) return 0 ;; esac; return 1; }

if wants build; then
    mkdir -p "$build"
    cmake -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_ARCHITECTURES=90-real \
        >"$out/configure.log" 2>&1 || { tail -20 "$out/configure.log"; exit 1; }
    began=$(date +%s)
    # The names are words.
    # shellcheck disable=SC2086
    ninja -C "$build" crosstalk $tests >"$out/build.log" 2>&1 ||
        { grep -E "error|FAILED" "$out/build.log" | head -20; exit 1; }
    echo "built in $(($(date +%s) - began)) s"
fi
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,temperature.gpu --format=csv,noheader

if wants test; then
    for test in $tests; do
        timeout "${TEST_LIMIT_S:-200}" "$build/tests/$test" >"$out/$test.log" 2>&1
        grep -vE "^ok  " "$out/$test.log" | head -60
    done
fi

# sanitize TOOL MODEL DATASET: an iteration and an evaluation; 5 samples leave parts of blocks empty
sanitize() {
    timeout "${SANITIZE_LIMIT_S:-300}" compute-sanitizer --tool "$1" --error-exitcode 9 \
        "$build/crosstalk" train --device cuda --dataset "$3" --model "$2" --agents 3 --partition dirichlet --alpha 1 \
        --batch-size 5 --algorithm ccl --epochs 1 --train-samples 15 --test-samples 8 \
        --out "$out/sanitize-run-$1-$2" >"$out/sanitize-$1-$2.log" 2>&1
    echo "compute-sanitizer $1 $2: exit $?, $(tail -1 "$out/sanitize-$1-$2.log")"
}
# sanitize_test TOOL TEST: a test of test_cuda_nets by a part of its name
sanitize_test() {
    timeout "${SANITIZE_LIMIT_S:-300}" compute-sanitizer --tool "$1" --error-exitcode 9 \
        "$build/tests/test_cuda_nets" "$2" >"$out/sanitize-$1-$2.log" 2>&1
    echo "compute-sanitizer $1 $2: exit $?, $(tail -1 "$out/sanitize-$1-$2.log")"
}
if wants sanitize; then
    sanitize memcheck resnet20 noise
    sanitize racecheck resnet20 noise
    sanitize memcheck lenet5 shapes
    sanitize racecheck lenet5 shapes
    sanitize memcheck mobilenetv2 noise
    sanitize_test racecheck tiny_separable # a whole MobileNet-V2 had not ended after 45 s
    sanitize_test memcheck stems
    sanitize_test racecheck joins
fi

# time_one MODEL DATASET ALGORITHM PRECISION AGENTS [OPTIONS...]
time_one() {
    model=$1 dataset=$2 algorithm=$3 precision=$4 agents=$5
    shift 5
    printf '%-12s %-9s %-5s %3d agents %s: ' "$model" "$algorithm" "$precision" "$agents" "$*"
    timeout 60 "$build/crosstalk" bench --device cuda --precision "$precision" --dataset "$dataset" \
        --model "$model" --algorithm "$algorithm" --agents "$agents" --partition dirichlet --alpha 1 --warmup 20 \
        --repeat 50 "$@" 2>>"$out/bench.log" | tee -a "$out/bench.log" | grep -iE "ms|iteration" |
        head -1
}
if wants bench; then
    : >"$out/bench.log"
    time_one resnet20 noise ccl tf32 16
    time_one resnet20 noise qg-dsgdm tf32 16
    time_one resnet20 noise ccl bf16 16
    time_one resnet20 noise qg-dsgdm bf16 16
    time_one resnet20 noise ccl tf32 16 --seeds 1,2,3
    time_one resnet20 noise ccl fp32 16
    time_one lenet5 shapes ccl tf32 16
    time_one lenet5 shapes qg-dsgdm tf32 16
    time_one mobilenetv2 noise ccl tf32 16
fi
# scale_one TOPOLOGY AGENTS: ms an iteration, us an agent's iteration, MiB of device memory at most
scale_one() {
    timeout 60 "$build/crosstalk" bench --device cuda --json --dataset noise --model resnet20 \
        --algorithm ccl --topology "$1" --agents "$2" --partition dirichlet --alpha 1 --train-samples 20000 --warmup 5 \
        --repeat 20 >"$out/scaling.json" 2>>"$out/bench.log" &
    job=$! most=0
    while kill -0 $job 2>/dev/null; do
        now=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits)
        [ "$now" -gt $most ] && most=$now
    done
    wait $job || { printf '| %s | %d | not there |\n' "$1" "$2"; return; }
    sed 's/.*"ms_per_iteration": \([0-9.]*\).*/\1/' "$out/scaling.json" |
        awk -v t="$1" -v n="$2" -v m=$most \
            '{ printf "| %s | %d | %.2f | %.0f | %d |\n", t, n, $1, 1000 * $1 / n, m }'
}
if wants scaling; then
    echo "| topology | agents | ms | us an agent | MiB |"
    for agents in 8 16 32 64 128 256; do scale_one ring $agents; done
    scale_one dyck 32
    for agents in 16 32 64 128 256; do scale_one torus $agents; done
fi
if wants profile; then # one line a kernel and metric of a CCL iteration, for bench/gpu_roofline.py
    CROSSTALK_CUDA_GRAPHS=off timeout 120 ncu --clock-control none --csv --metrics \
        gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum \
        "$build/crosstalk" bench --device cuda --dataset noise --model resnet20 --algorithm ccl \
        --agents 16 --partition dirichlet --alpha 1 --warmup 1 --repeat 1 >"$out/profile.csv" 2>>"$out/bench.log"
    python3 bench/gpu_roofline.py "$out/profile.csv"
fi
if wants torch; then python3 bench/compare_torch_gpu.py --program "$build/crosstalk"; fi
