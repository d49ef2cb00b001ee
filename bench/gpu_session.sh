#!/bin/sh
# bench/gpu_session.sh [FOLDER]: everything that wants a GPU, in one go: build, every test that uses
# one, compute-sanitizer on short runs, and the times of the paper's iterations; a short table comes last.
# FOLDER (default build-gpu) is built there; logs go to $OUT, or to FOLDER. Parts are chosen by
# PARTS="build test sanitize bench compress scaling agents torch profile". BEFORE=PROGRAM: bench and compress also time that
# build, in turns.
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

: >"$out/bench.log"
# ms_of PROGRAM OPTION...: ms per iteration, the median of 60; "-" where it fails
ms_of() {
    program=$1
    shift
    timeout 60 "$program" bench --device cuda --json --partition dirichlet --alpha 1 --warmup 20 --repeat 60 "$@" \
        2>>"$out/bench.log" | tee -a "$out/bench.log" | sed 's/.*"ms_per_iteration": \([0-9.]*\).*/\1/' | grep . || echo -
}
# time_one OPTION...: a line of the table, of this build and of BEFORE
time_one() {
    before=
    [ -z "${BEFORE:-}" ] || before=$(ms_of "$BEFORE" "$@")
    now=$(ms_of "$build/crosstalk" "$@")
    echo "$before $now" | awk -v what="$*" '{
        printf "| %s |", what
        for (k = 1; k <= NF; k++) printf " %s |", $k == "-" ? "failed" : sprintf("%.3f", $k)
        print "" }'
}
if wants bench; then
    echo "| options of bench |${BEFORE:+ before |} ms |"
    for precision in tf32 bf16; do
        for model in resnet20 mobilenetv2 vgg11; do
            time_one --precision $precision --dataset noise --model $model --algorithm ccl
        done
        time_one --precision $precision --dataset noise --model resnet20 --algorithm qg-dsgdm
        time_one --precision $precision --dataset noise --model resnet20 --algorithm ccl --seeds 1,2,3
    done
    time_one --precision fp32 --dataset noise --model resnet20 --algorithm ccl
    time_one --precision tf32 --dataset shapes --model lenet5 --algorithm ccl
    time_one --precision tf32 --dataset shapes --model lenet5 --algorithm qg-dsgdm
    time_one --precision tf32 --dataset shapes --model lenet5 --algorithm qg-dsgdm --seeds 1,2,3,4,5
fi
# What packed models cost: docs/performance/compress.md
if wants compress; then
    echo "| options of bench |${BEFORE:+ before |} ms |"
    for algorithm in qg-dsgdm ccl; do
        for packing in none quantize:8 quantize:4 quantize:3 quantize:2 sign top-k:0.1 top-k:0.01 top-k8:0.1 top-k8:0.02 \
            random-k:0.1 low-rank:4; do
            time_one --precision bf16 --dataset noise --model resnet20 --algorithm $algorithm --compress $packing
        done
    done
fi
# scale_one AGENTS OPTION...: ms per iteration, us per agent, most MiB of device memory
scale_one() {
    agents=$1
    shift
    ms_of "$build/crosstalk" --agents "$agents" "$@" >"$out/scaling" &
    job=$! most=0
    while kill -0 $job 2>/dev/null; do
        now=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits)
        [ "$now" -gt $most ] && most=$now
    done
    awk -v n="$agents" -v what="$*" -v m=$most \
        '$1 == "-" { printf "| %d | %s | failed | | %d |\n", n, what, m; next }
        { printf "| %d | %s | %.2f | %.1f | %d |\n", n, what, $1, 1000 * $1 / n, m }' "$out/scaling"
}
if wants scaling || wants agents; then echo "| agents | options of bench | ms | us per agent | MiB |"; fi
if wants scaling; then
    noise="--dataset noise --model resnet20 --algorithm ccl --train-samples 20000"
    # Options are words.
    # shellcheck disable=SC2086
    {
        for agents in 8 16 32 64 128 256; do scale_one $agents $noise --topology ring; done
        scale_one 32 $noise --topology dyck
        for agents in 16 32 64 128 256; do scale_one $agents $noise --topology torus; done
    }
fi
if wants agents; then # docs/performance/scale.md
    for agents in 256 1024 4096; do
        scale_one $agents --dataset shapes --train-samples 60000 --model lenet5 --algorithm qg-dsgdm --batch-size 7
    done
fi
if wants profile; then # one line a kernel and metric of a CCL iteration, for bench/gpu_roofline.py
    CROSSTALK_CUDA_GRAPHS=off timeout 120 ncu --clock-control none --csv --metrics \
        gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum \
        "$build/crosstalk" bench --device cuda --dataset noise --model resnet20 --algorithm ccl \
        --agents 16 --partition dirichlet --alpha 1 --warmup 1 --repeat 1 >"$out/profile.csv" 2>>"$out/bench.log"
    python3 bench/gpu_roofline.py "$out/profile.csv"
fi
if wants torch; then python3 bench/compare_torch_gpu.py --program "$build/crosstalk"; fi
