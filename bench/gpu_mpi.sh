#!/bin/sh
# bench/gpu_mpi.sh [PROGRAM]: ranks that share a GPU. Trains CCL on ResNet-20 and LeNet-5 (fp32) on 1,
# 2 and 4 ranks of one machine, compares models and metrics with those of one rank, byte by byte, and
# prints times. Exit 1 if a run fails; results that differ are told with their largest difference.
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
program=${1:-$root/build-gpu/crosstalk}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
command -v mpirun >/dev/null 2>&1 || {
    echo "gpu_mpi: there is no mpirun here" >&2
    exit 1
}

# compare A B: the runs' models and metrics; a clock's entries are left out.
compare() {
    python3 - "$scratch/$1" "$scratch/$2" <<'PYTHON'
import json, struct, sys

def tensors(path):
    with open(path, "rb") as file:
        data = file.read()
    n = struct.unpack("<Q", data[:8])[0]
    return data[8 + n:]

def metrics(path):
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    for line in lines:
        line.pop("seconds", None)
    return lines

one, other = sys.argv[1:]
said = []
for name in ("consensus.safetensors", "agents.safetensors"):
    x, y = tensors(f"{one}/{name}"), tensors(f"{other}/{name}")
    if x == y:
        said.append(f"{name} same bits")
        continue
    a, b = (struct.unpack(f"<{len(v) // 4}f", v) for v in (x, y))
    said.append(f"{name} DIFFERS by at most {max(abs(p - q) for p, q in zip(a, b)):.3g}")
same = metrics(f"{one}/metrics.jsonl") == metrics(f"{other}/metrics.jsonl")
said.append("metrics same" if same else "metrics DIFFER")
print(", ".join(said))
PYTHON
}

# train MODEL DATASET RANKS [OPTIONS...]
train() {
    model=$1 dataset=$2 n=$3
    shift 3
    mpirun -n "$n" "$program" train --quiet --device cuda --precision fp32 --dataset "$dataset" \
        --model "$model" --algorithm ccl --agents 8 --alpha 1 --batch-size 32 --train-samples 8192 \
        --test-samples 512 --epochs 3 --lr 0.05 --save-agents --out "$scratch/$model-$n" "$@" || exit 1
    sed -n 's/.*"transport_wait_share": \([0-9.e+-]*\), "seconds": \([0-9.e+-]*\).*/\2 s, waiting \1/p' \
        "$scratch/$model-$n/summary.json"
}

for pair in "resnet20 noise" "lenet5 shapes"; do
    # Two words, to be split.
    # shellcheck disable=SC2086
    set -- $pair
    for n in 1 2 4; do
        took=$(train "$1" "$2" $n) || exit 1
        printf '%-10s %d rank(s): %s' "$1" $n "$took"
        [ $n -eq 1 ] && echo || echo "; $(compare "$1-1" "$1-$n")"
    done
    printf '%-10s through the host: ' "$1"
    CROSSTALK_MPI_DEVICE=off mpirun -n 2 "$program" bench --device cuda --precision fp32 --dataset "$2" \
        --model "$1" --algorithm ccl --agents 8 --warmup 10 --repeat 30 | grep 'ms per iteration' || exit 1
done
