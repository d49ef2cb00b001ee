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
--topology full --partition iid --algorithm dsgdm --threads 1 --device cpu --lr 0.01 --epochs 1 --augment off"
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
"$program" report run --bundle runs.jsonl.gz >/dev/null
gzip -dc runs.jsonl.gz | corpus bundle runs
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
corpus csv mixed <fixtures/tables/mixed.csv
printf 'id,x,"y,z",label\n1,0.5,"a ""b""",k\n2,NA,?,m\n3,-1e3,c,k\n' | corpus csv small
printf '{"label": "y", "columns": [{"name": "a", "kind": "number", "values": 2, "missing": 1, "sum": "-4@68", "squares": "a@68", "categories": ["-1", "-3"]}, {"name": "b", "kind": "category", "values": 3, "missing": 0, "categories": ["u", "v"]}]}' | corpus columns sums
printf '{"label": "y", "columns": [{"name": "a", "kind": "number", "values": 2, "missing": 0, "mean": 1.5, "deviation": 0.25}]}' | corpus columns means
printf '# a ring\n0 1\n1,2\n2 3\n3 4\n4 5\n5 0\n' | corpus edges ring
printf 'step\n0 1\n2 3\n# no weights above\nstep\n0 > 1 0.5\n1 > 2 0.25\n2 > 0 0.5\n3 > 4 0.5\n4 > 3 0.5\nstep\n1 4\n2 3\n4 > 0\n' | corpus schedule steps
printf 'step\n0 1\n2 3\nstep\n1 2\n3 4\nstep\n4,0\n' | corpus schedule two-way
printf '{"commit": "0123456789abcdef", "@lr": "0.1", "@seed": "1"}' | corpus agreement same
printf '{"version": "0.1.0", "@seed": "1", "data": "00ff"}' | corpus agreement part
cat <<'END' | corpus profile folders
{"agents": 2, "first": [0, "north"], "shape": [3, 4, 4], "values": 0, "cut": [4, 0, 0], "classes": ["ant", "cat"], "mean": null, "std": null, "pixels": [["64", "300", "5000"], ["64", "300", "5000"], ["64", "301", "5001"]], "most": [3, 2, "east"], "least": [1, 0, "north"], "test": 4}
END
cat <<'END' | corpus profile numbers
{"agents": 1, "first": [0, "0"], "shape": [1, 28, 28], "values": 0, "cut": [0, 0, 0], "classes": 10, "mean": [0.5], "std": [0.5], "pixels": null, "most": [60000, 0, "0"], "least": [60000, 0, "0"], "test": 10000}
END
cat <<'END' | corpus profile table
{"agents": 1, "first": [0, "0"], "shape": [1, 1, 3], "values": 1, "cut": [0, 0, 0], "classes": ["no", "yes"], "mean": [0], "std": [1], "pixels": null, "most": [3, 0, "0"], "least": [3, 0, "0"], "columns": {"label": "y", "columns": [{"name": "a", "kind": "number", "values": 3, "missing": 0, "sum": "6@68", "squares": "e@68", "categories": null}, {"name": "b", "kind": "category", "values": 2, "missing": 1, "categories": ["u"]}]}, "test": 1}
END
corpus study tuned <<'TEXT'
title = A tuned study
rows = method
baseline = A
free = lr, lambda-m
[tune]
rungs = 0.5, 1
seeds = 1,2
validation-fraction = 0.2
[options]
dataset = shapes
model = mlp:4
agents = 4
epochs = 2
seeds = 1,2
tune = lr=0.1,0.02
[column alpha = 1]
alpha = 1
splits = a5e76ab711b99611, -
[row A]
algorithm = dsgdm
[row B]
algorithm = ccl
tune = lr=0.1; lambda-m+lambda-d=1,0.1
TEXT
corpus tuned halved <<'TEXT'
{"crosstalk": "tuned", "version": 1,
 "tried": "lr=0.1,0.02; lambda-m+lambda-d=1,0.1",
 "seeds": "1",
 "validation_fraction": 0.1,
 "rungs": [
    {"epochs": 4, "trials": [
        {"trial": 1, "options": "--lr 0.1 --lambda-m 1 --lambda-d 1", "validation_accuracy": 0.1},
        {"trial": 2, "options": "--lr 0.1 --lambda-m 0.1 --lambda-d 0.1", "validation_accuracy": 0.1},
        {"trial": 3, "options": "--lr 0.02 --lambda-m 1 --lambda-d 1", "validation_accuracy": 0.09166666666666666},
        {"trial": 4, "options": "--lr 0.02 --lambda-m 0.1 --lambda-d 0.1", "validation_accuracy": 0.13333333333333333}]},
    {"epochs": 8, "trials": [
        {"trial": 1, "options": "--lr 0.1 --lambda-m 1 --lambda-d 1", "validation_accuracy": 0.09166666666666666},
        {"trial": 4, "options": "--lr 0.02 --lambda-m 0.1 --lambda-d 0.1", "validation_accuracy": 0.14166666666666666}]}
 ],
 "chosen": 4}
TEXT
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

little() { # little BYTES NUMBER...: each with its lowest byte first
    width=$1
    shift
    for number; do
        for _ in $(seq "$width"); do
            # shellcheck disable=SC2059
            printf "\\$(printf %03o $((number % 256)))"
            number=$((number / 256))
        done
    done
}

# frame TYPE FLAGS KIND TAG SEEN TAKEN ITERATION TOTAL OFFSET [FILE]: the next one of a connection; a FILE
# of a whole piece is left out (fuzz_wire.c).
frame() {
    size=0
    [ $# -lt 10 ] || size=$(wc -c <"${10}")
    if [ "$size" = 65536 ]; then little 2 65535; else little 2 $((64 + size)); fi
    printf CTM1
    little 2 1
    little 1 "$1" "$2"
    little 2 "$3" "$4"
    little 4 "$size"
    little 8 "$number_of_frame" "$5" "$6" "$7" "$8" "$9"
    [ "$size" = 0 ] || [ "$size" = 65536 ] || cat "${10}"
    number_of_frame=$((number_of_frame + 1))
}
pad() { # pad BYTES TEXT: zeros behind it
    printf '%s' "$2"
    head -c $(($1 - ${#2})) /dev/zero
}
{ little 8 99 && pad 32 '' && little 8 200000 && pad 64 south && pad 128 'crosstalk 1'; } >greeting
head -c 65536 /dev/zero >whole
head -c 100 /dev/zero >short
printf 'another federation' >reason
number_of_frame=0
{
    frame 1 0 0 0 0 0 0 0 0 greeting
    frame 3 1 0 0 1 0 123456 0 0 short
    frame 4 0 7 3 2 1 40 100 0 short
    frame 3 0 0 0 3 2 223456 99 5
    frame 4 0 7 3 3 2 41 65636 0 whole
    frame 3 1 0 0 4 2 323456 199 5
    frame 4 0 7 3 4 2 41 65636 65536 short
    frame 4 0 1 0 4 2 0 0 0
    frame 5 0 0 0 5 5 0 0 0
} | corpus wire talk
number_of_frame=0
frame 2 0 0 0 0 0 0 0 0 reason | corpus wire refusal

# letter KIND TAG ITERATION FILE: of a neighbour to a site (fuzz_letters.c)
letter() {
    little 2 "$1" "$2"
    little 8 "$3"
    little 2 "$(wc -c <"$4")"
    cat "$4"
}
rows() { # rows FIRST LAST: of these iterations; changes, packed rows and plain ones
    for k in $(seq "$1" "$2"); do
        if [ "$k" = "$1" ] && [ "$k" != 0 ]; then letter 6 32768 "$k" row; else letter 6 0 "$k" nothing; fi
        letter 6 1 "$k" nothing
        letter 6 2 "$k" row
    done
}
printf '+theirs' >says
head -c 8 /dev/zero >nothing
little 8 1 >one
head -c 16 /dev/zero >row
printf '{"sites": [{"site": 1, "version": 7, "phase": 2, "iteration": 3, "links": [0]}]}' >state
{ little 8 0 2 && cat row; } >result
# the tree of two sites, then a sum
{ printf '\205\047\145\105\271\301\176\334' && little 8 1 && cat row row row row; } >sum
{
    little 1 1
    letter 1 0 0 says
    letter 3 0 0 nothing
    letter 4 0 0 nothing
    rows 0 2
    letter 65535 0 0 state
    letter 8 0 3 result
} | corpus letters result
{
    little 1 0
    letter 1 0 0 says
    letter 4 0 1 one
    letter 5 0 1 row
    rows 1 2
    letter 65535 0 0 state
    letter 7 0 3 sum
} | corpus letters sum
# packed rows of 40 values (fuzz_packed.c): the compressor's number, then words; 1065353216 is 1.0
{ little 1 0 && little 4 1065353216 1065353216 1065353216 1065353216 0 85; } | corpus packed top-k
{ little 1 8 && little 4 1065353216 2155905152 0 85; } | corpus packed top-k8
{ little 1 1 && little 4 1065353216 1065353216 1065353216 1065353216; } | corpus packed random-k
{ little 1 3 && little 4 1065353216 1 2 3 4 5; } | corpus packed quantize
{ little 1 5 && little 4 1065353216 7 9; } | corpus packed sign
{ little 1 6 && little 4 1065353216 0 1065353216 0 1065353216 0 1065353216 0 1 2 3; } | corpus packed sums
corpus federation graph <<'FEDERATION'
# four sites
federation lungs
site north 0000000000000000000000000000000000000000000000000000000000000001 north.example.org:4711
site south 0000000000000000000000000000000000000000000000000000000000000002
site east  0000000000000000000000000000000000000000000000000000000000000003 [::1]:4711
site west  0000000000000000000000000000000000000000000000000000000000000004 10.0.0.4:1
graph chain
option dataset folder
option algorithm ccl
option lr 0.01
heartbeat 0.5
FEDERATION
corpus federation edges <<'FEDERATION'
federation two.sites-1
site north 00000000000000000000000000000000000000000000000000000000000000aa 127.0.0.1:65535
site south 00000000000000000000000000000000000000000000000000000000000000bb
edge south   north
FEDERATION
