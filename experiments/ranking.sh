#!/bin/sh
# experiments/ranking.sh [OUT]: every method on Fashion-MNIST, 16 agents on a ring, alpha 0.1 and 0.01,
# three seeds at once, the paper's 50 epochs. Writes OUT/alpha-<a>/compare.{md,csv} and a run directory
# for each method; finished methods are kept, so that it may be stopped and started again.
# OPTIONS holds more options of crosstalk compare.
# Methods without momentum get ten times the rate of those with it: eta / (1 - beta) is the same.
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
program=${CROSSTALK:-$root/build/crosstalk}
out=${1:-runs/ranking}
epochs=${EPOCHS:-50}
methods="local allreduce dsgd:lr=0.1 dsgdm qg-dsgdm ccl relaysgd relaysgd+ccl gt mt d2:lr=0.1 gut sgp
cga ngc gt+ccl mt+ccl"
for alpha in 0.1 0.01; do
    for method in $methods; do
        dir=$out/alpha-$alpha/$(echo "$method" | tr ':=' '__')
        [ -f "$dir/compare.md" ] && continue
        "$program" compare --algorithms "$method" --dataset fashion-mnist --agents 16 \
            --topology ring --alpha "$alpha" --seeds 1,2,3 --epochs "$epochs" \
            --eval-every "$epochs" --out "$dir" --force ${OPTIONS:-} || exit 1
    done
    # one table: the header of the first, then every method's row
    for form in md csv; do
        table=$out/alpha-$alpha/compare.$form
        : >"$table"
        for method in $methods; do
            part=$out/alpha-$alpha/$(echo "$method" | tr ':=' '__')/compare.$form
            lines=$([ "$form" = md ] && echo 2 || echo 1)
            [ -s "$table" ] || head -n "$lines" "$part" >"$table"
            tail -n +$((lines + 1)) "$part" >>"$table"
        done
    done
    echo "alpha $alpha"
    cat "$out/alpha-$alpha/compare.md"
done
