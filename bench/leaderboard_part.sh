#!/bin/sh
# bench/leaderboard_part.sh [STAGE...]: some minutes of the leaderboard on a machine that is rented by the minute, from one bundle to
# the next. What was done before comes from results/leaderboard/runs.jsonl.gz. What is missing is tuned and trained until the time is
# up. $OUT gets runs.jsonl.gz with everything that is known then, tables and logs; copy these over results/leaderboard/.
#   STAGE    ring ring-ccl ngc dyck dyck-ccl (the default, in this order), fashion, any pattern of --only, or more: ten seeds of the
#            runs in $BEST (patterns of --only), all in one call
#   DATA     folder of the data sets; LIMIT seconds for all of it (default 510); BUILD build folder (default build-gpu)
#   DEVICE   of the stages (default cuda); STUDY a conf file (default leaderboard)
#   BESIDE   stages for the processors at the same time (default fashion; "" for none), with THREADS threads (default all but four)
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
cd "$root" || exit 1
build=${BUILD:-build-gpu}
out=${OUT:-$build/part}
study=${STUDY:-leaderboard}
name=$(basename "$study" .conf)
limit=${LIMIT:-510}
beside=${BESIDE-fashion}
n=$(nproc)
threads=${THREADS:-$((n > 5 ? n - 4 : 1))}
# Memory, because every file of a run is synced. It lasts as long as the machine does.
state=${STATE:-/dev/shm/crosstalk-$name}
plain="qg-dsgdm-n dsgdm-n dsgd dfedavgm-4-local-steps relaysgd gradient-tracking momentum-tracking motef d2 edm gut gut-neurips23 sgp
all-reduce local"
began=$(date +%s)
mkdir -p "$out" "$state" || exit 1
if [ ! -f "$state/begun" ]; then
    [ ! -f "results/$name/runs.jsonl.gz" ] || cp "results/$name/runs.jsonl.gz" "$state/" || exit 1
    touch "$state/begun"
fi

# patterns STAGE: what --only takes
patterns() {
    list=
    case $1 in
    ring | dyck)
        for row in $plain; do list="$list,$row-cifar-$1-*"; done
        ;;
    ring-ccl | dyck-ccl) list=",ccl-cifar-${1%-ccl}-*,*-ccl-cifar-${1%-ccl}-*" ;;
    ngc) list=",ngc-cifar-*" ;;
    fashion) list=",*-fashion-*" ;;
    more) list=",${BEST:?the rows, as in qg-dsgdm-n-cifar-ring-16-*,...}" ;;
    *) list=",$1" ;;
    esac
    echo "${list#,}"
}

# take_choices FOLDER: what was chosen, without the runs, which have other seeds
take_choices() {
    "$build/crosstalk" report "$state" --bundle "$state/choices.jsonl.gz" --force >/dev/null || return 1
    python3 - "$state/choices.jsonl.gz" "$1" <<'END'
import gzip, json, os, sys
for line in gzip.open(sys.argv[1], "rt"):
    run = json.loads(line)
    if "tuned.json" not in run:
        continue
    folder = os.path.join(sys.argv[2], "tune", os.path.basename(run["run"]))
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "tuned.json"), "w") as file:
        file.write(run["tuned.json"])
END
}
# take_runs FOLDER: its finished runs replace those of fewer seeds
take_runs() {
    for summary in "$1"/*/summary.json; do
        [ -f "$summary" ] || continue
        run=$(dirname "$summary")
        rm -rf "$state/$(basename "$run")" && mv "$run" "$state/"
    done
}

# lane LOG DEVICE STAGE...: stage by stage, until the time is up
lane() {
    log=$1 device=$2
    shift 2
    for stage; do
        left=$((limit - $(date +%s) + began))
        [ $left -gt 20 ] || break
        only=$(patterns "$stage")
        set --
        [ "$device" != cpu ] || set -- --threads "$threads"
        place=$state
        if [ "$stage" = more ]; then
            place=$state-more
            take_choices "$place"
            set -- "$@" --seeds 1,2,3,4,5,6,7,8,9,10
        fi
        # What is done costs no tables
        "$build/crosstalk" reproduce "$study" --out "$place" --only "$only" ${DATA:+--data-dir "$DATA"} --dry-run "$@" 2>>"$log" |
            grep -q "^0 of .* runs to do" && continue
        echo "== $stage, $left s left" >>"$log"
        "$build/crosstalk" reproduce "$study" --out "$place" --only "$only" --device "$device" ${DATA:+--data-dir "$DATA"} --quiet \
            --time-limit "${left}s" "$@" >>"$log" 2>&1
        code=$?
        echo "$device $stage: exit $code after $(($(date +%s) - began)) s" | tee -a "$log"
        [ "$place" = "$state" ] || take_runs "$place"
    done
}

: >"$out/device.log" && : >"$out/beside.log"
# shellcheck disable=SC2086
[ -z "$beside" ] || lane "$out/beside.log" cpu $beside &
# shellcheck disable=SC2048,SC2086
lane "$out/device.log" "${DEVICE:-cuda}" ${*:-ring ring-ccl ngc dyck dyck-ccl}
wait
"$build/crosstalk" reproduce "$study" --out "$state" --table-only --quiet >"$out/table.log" 2>&1
"$build/crosstalk" report "$state" --bundle "$state/runs.jsonl.gz" --force || exit 1
for file in runs.jsonl.gz table.md versus.md ranks.md tuned.md; do
    [ ! -f "$state/$file" ] || cp "$state/$file" "$out/"
done
grep -E "runs are not there|choices are not there" "$out/table.md" "$out/tuned.md"
ls -l "$out/runs.jsonl.gz"
