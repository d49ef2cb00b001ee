#!/bin/sh
# tests/fuzz/make_corpus.sh PROGRAM: writes the files good-* of tests/fuzz/corpus anew, all of them by
# the program itself or from tests/fixtures. What a crash was found with (crash-*) stays. The run of
# corpus/checkpoint must be that of fuzz_checkpoint.c.
set -eu
program=$(readlink -f "$1")
here=$(cd "$(dirname "$0")" && pwd)
fixtures=$here/../fixtures
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
ln -s "$fixtures" fixtures # what is written down is the same on every machine

corpus() { # corpus TARGET NAME: standard input becomes a file of it
    mkdir -p "$here/corpus/$1"
    cat >"$here/corpus/$1/good-$2"
}

join() { # join DIR NAME...: files of a folder in one
    dir=$1 mark=
    shift
    for name; do
        [ -f "$dir/$name" ] || continue
        printf '%s=== %s\n' "$mark" "$name"
        cat "$dir/$name"
        mark='
'
    done
}

small="--quiet --dataset shapes --train-samples 40 --test-samples 10 --model mlp:1 --agents 2 --batch-size 4
--topology full --partition iid --threads 1 --device cpu --lr 0.01 --epochs 1 --augment off"
idx="--quiet --dataset idx --data-dir fixtures/data --model mlp:2 --agents 4 --threads 1 --device cpu --batch-size 8"
files="config.txt setting.json metrics.jsonl evaluation.json summary.json diverged.json failed.json"

# The options are words.
# shellcheck disable=SC2086
{
    "$program" train $small --iterations 2 --checkpoint-every 1 --out checkpoint
    "$program" train $idx --epochs 3 --algorithm ccl --seeds 1,2 --out run
    "$program" train $idx --epochs 40 --lr 1e6 --out diverged 2>/dev/null || true
    "$program" data split --ranks 2 --dataset idx --data-dir fixtures/data --train-samples 20 \
        --test-samples 5 --agents 4 --partition iid --out parts >/dev/null
    "$program" partition --dataset idx --data-dir fixtures/data --partition iid --agents 3 \
        --train-samples 40 --out split.csv >/dev/null
}
mkdir -p pictures/one pictures/two
for name in small.png grey.png; do cp "fixtures/images/$name" pictures/one/; done
for name in bits1.png palette4.png; do cp "fixtures/images/$name" pictures/two/; done
"$program" data import pictures x.ctpack --image-size 8 --test-fraction 0.5 >/dev/null
join checkpoint checkpoint/2/manifest.json checkpoint/2/agent-0.ckpt checkpoint/2/agent-1.ckpt | corpus checkpoint shapes
# shellcheck disable=SC2086
{
    join run/seed-1 $files | corpus run ccl
    join diverged $files | corpus run diverged
}
corpus config ccl <run/seed-1/config.txt
printf '# a comment\nlr = 0.1\nseeds = 1,2\nfault = drop=0.1\ntopology = torus:4x8\n' | corpus config short
corpus json summary <run/seed-1/summary.json
corpus json evaluation <run/seed-1/evaluation.json
printf '[null, true, -1.5e-7, "\\u00e9\\ud83d\\ude00\\n", {"": [[[]]], "a b": {}}]' | corpus json all
corpus safetensors model <run/seed-1/consensus.safetensors
corpus model described <run/seed-1/consensus.safetensors
gzip -9nc run/seed-1/metrics.jsonl | corpus gzip metrics.gz
corpus part idx <parts/rank-0.ctpart
corpus pack pictures <x.ctpack
corpus partition idx <split.csv
printf '# a ring\n0 1\n1,2\n2 3\n3 4\n4 5\n5 0\n' | corpus edges ring
printf 'step\n0 1\n2 3\n# no weights above\nstep\n0 > 1 0.5\n1 > 2 0.25\n2 > 0 0.5\n3 > 4 0.5\n4 > 3 0.5\nstep\n1 4\n2 3\n4 > 0\n' | corpus schedule steps
printf 'step\n0 1\n2 3\nstep\n1 2\n3 4\nstep\n4,0\n' | corpus schedule two-way
printf '{"commit": "0123456789abcdef", "@lr": "0.1", "@seed": "1"}' | corpus agreement same
printf '{"version": "0.1.0", "@seed": "1", "data": "00ff"}' | corpus agreement part
corpus study tiny <<'TEXT'
title = A small study
note = of two rows
rows = kind | method
show = consensus, worst
curves = ce, mv
figure = lines x=agents label=agents in the ring
[options]
dataset = shapes
model = mlp:4
agents = 4
epochs = 2
seeds = 1,2
[column alpha = 0.1]
alpha = 0.1
agents = 8
[column alpha = 1]
alpha = 1
[row plain | IID]
algorithm = dsgdm
partition = iid
cells = + | <
paper = 50.00 +- 1
[row plain | CCL] # with CCL
algorithm = ccl
lambda-d = 0 | 0.01
paper = - | 10.5 +- 99
TEXT
for name in rgb.jpg progressive.jpg cmyk.jpg interlaced.png palette4.png grey16.png; do
    corpus picture $name <"fixtures/images/$name"
done
printf '\0\0\10\3\0\0\0\2\0\0\0\1\0\0\0\1\5\6' | corpus idx images
printf '\0\0\10\1\0\0\0\2\0\1' | corpus idx labels
head -c 6148 /dev/zero | corpus cifar records
{ printf '\223NUMPY\1\0v\0%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2, 3, 4), }" && head -c 48 /dev/zero; } |
    corpus npy bytes
tar --format=ustar --owner=0 --group=0 --numeric-owner --mtime=@0 -cf x.tar split.csv run/seed-1/config.txt
corpus tar ustar <x.tar
