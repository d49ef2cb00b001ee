#!/bin/sh
# bench/compare_ranks.sh [--rounds N] [--option value ...]: what a second rank brings.
#   Times the same training iterations on one rank and on two, turn by turn, one thread and one core
#   each, and prints both, their ratio and the share of the time spent waiting for messages. The
#   default is CCL on ResNet-20, 8 agents on a ring; options are those of crosstalk bench.
# On a machine that others use, wall-clock times say little; the ratio of the processor times of the
# busiest ranks is what an idle machine would come to, but for shared caches and memory.
set -u
program=${CROSSTALK:-$(dirname "$0")/../build/crosstalk}
rounds=3
if [ "${1:-}" = --rounds ]; then
    rounds=$2
    shift 2
fi
if [ $# -eq 0 ]; then
    set -- --dataset noise --model resnet20 --agents 8 --topology ring --algorithm ccl \
        --batch-size 32 --train-samples 4096 --test-samples 32 --device cpu --warmup 2 --repeat 10
fi
command -v mpirun >/dev/null 2>&1 || {
    echo "compare_ranks: there is no mpirun here" >&2
    exit 1
}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

field() { # field NAME <JSON
    sed -n "s/.*\"$1\": \([0-9.e+-]*\).*/\1/p"
}

for round in $(seq "$rounds"); do
    for n in 1 2; do
        mpirun -n $n --bind-to core "$program" bench --json --threads 1 "$@" >"$scratch/said" || exit 1
        echo "$n $(field ms_per_iteration <"$scratch/said") $(field cpu_ms_per_iteration \
            <"$scratch/said") $(field wait_share <"$scratch/said")" >>"$scratch/times"
        tail -n 1 "$scratch/times" | awk -v round="$round" '{
            printf "round %d: %d rank(s) %9.2f ms an iteration, %9.2f ms of processor time, waiting %.3f\n",
                round, $1, $2, $3, $4 }'
    done
done
awk '
    { if (!($1 in wall) || $2 < wall[$1]) { wall[$1] = $2; wait[$1] = $4 }
      if (!($1 in cpu) || $3 < cpu[$1]) cpu[$1] = $3 }
    END {
        printf "best of the rounds: %.2f ms on one rank, %.2f ms on two: %.2f times as fast", wall[1],
            wall[2], wall[1] / wall[2]
        printf " (waiting %.3f of the time)\n", wait[2]
        printf "by processor time of the busiest rank: %.2f ms, %.2f ms: %.2f times\n", cpu[1], cpu[2],
            cpu[1] / cpu[2]
    }' "$scratch/times"
