#!/bin/sh
# scripts/demo.sh: 16 agents on a ring, each with a few classes of Fashion-MNIST (Dirichlet,
# alpha 0.01), train LeNet-5 without sharing data: first QG-DSGDm-N, then CCL. Ends with a table of
# both and a page with their curves (demo/report.html). Sets up and builds by itself; the runs are
# kept in demo/ until the next call.
# EPOCHS=N trains longer or shorter (default 6).
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
epochs=${EPOCHS:-6}

sh scripts/setup.sh demo
echo "building crosstalk ..."
sh scripts/build.sh release

dataset=fashion-mnist
if [ ! -e /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz ]; then
    echo "Fashion-MNIST (Debian's package dataset-fashion-mnist) is not here and could not be" \
        "installed: the demo trains on the built-in synthetic set 'shapes' instead."
    dataset=shapes
fi

# train NAME ALGORITHM: one run, into demo/NAME.
train() {
    build/crosstalk train --dataset "$dataset" --model lenet5 --agents 16 --topology ring \
        --partition dirichlet --alpha 0.01 --algorithm "$2" --epochs "$epochs" \
        --out "demo/$1" --force
}

echo
echo "QG-DSGDm-N, $epochs epochs of $dataset:"
train qg qg-dsgdm
echo
echo "CCL (QG-DSGDm-N with the cross-feature contrastive loss), $epochs epochs of $dataset:"
train ccl ccl
echo
build/crosstalk show demo/qg demo/ccl
build/crosstalk report demo/qg demo/ccl --out demo/report.html --force
