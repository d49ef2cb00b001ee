#!/bin/sh
# experiments/ccl_economy.sh [OUT]: what CCL keeps of its accuracy when it computes less, or chooses its
# own weights: DATASET (fashion-mnist), 16 agents on a ring, ALPHA (0.01), three seeds. The table's
# "overhead" is the part of the arithmetic that went to cross-features.
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
program=${CROSSTALK:-$root/build/crosstalk}
dataset=${DATASET:-fashion-mnist}
alpha=${ALPHA:-0.01}
out=${1:-runs/ccl-economy-$dataset-$alpha}
epochs=${EPOCHS:-auto}
"$program" compare --dataset "$dataset" --agents 16 --topology ring --alpha "$alpha" --seeds 1,2,3 \
    --epochs "$epochs" --out "$out" ${OPTIONS:-} --algorithms "qg-dsgdm,ccl,\
ccl:ccl-every=2,ccl:ccl-every=4,ccl:ccl-neighbours=1,ccl:ccl-batch-fraction=0.5,\
ccl:ccl-batch-fraction=0.25,ccl:ccl-every=2:ccl-neighbours=1,\
ccl:ccl-adaptive=0.003,ccl:ccl-adaptive=0.01,ccl:ccl-adaptive=0.03"
