#!/bin/sh
# run.sh [DIR]: three sites train one model on pictures that stay where they are, as three processes
# of this machine. One is killed half-way and comes back. DIR (default: three-sites) is made anew and
# holds everything. CROSSTALK names the program; default: the one that is installed or built here.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-three-sites}
program=${CROSSTALK:-$(command -v crosstalk || echo "$here/../../build/crosstalk")}
epochs=${EPOCHS:-16}
[ -x "$program" ] || { echo "no program $program; set CROSSTALK" >&2; exit 1; }
[ ! -e "$dir" ] || { echo "$dir is there already: remove it, or name another folder" >&2; exit 1; }
program=$(cd "$(dirname "$program")" && pwd)/$(basename "$program")

north='' south='' east=''
# shellcheck disable=SC2154 # p is the loop's
trap 'for p in $north $south $east; do kill "$p" 2>/dev/null || :; done' EXIT
trap 'exit 1' INT TERM

say() { printf '\n== %s\n' "$*"; }

# until_said FILE WORDS: waits until a line of the file has them.
until_said() {
    n=0
    until grep -q "$2" "$1" 2>/dev/null; do
        n=$((n + 1))
        [ "$n" -le 600 ] || { echo "$1 never said: $2" >&2; tail -n 5 ./*.log >&2; exit 1; }
        sleep 0.2
    done
}

# begin NAME: the site's own command. After a crash it is the same one.
begin() {
    "$program" site run federation.conf --key "$1.key" --data-dir "data/$1" --out "runs/$1" \
        --threads 1 --checkpoint-every 1 >>"$1.log" 2>&1 &
}

say "three folders of pictures, of different sizes and classes"
mkdir -p "$dir"
cd "$dir"
python3 "$here/make_pictures.py" data/north 120 disc square
python3 "$here/make_pictures.py" data/south 240 cross ring disc
python3 "$here/make_pictures.py" data/east 360 bars square ring
for site in north south east; do
    echo "$site: $(find "data/$site/train" -name '*.png' | wc -l) pictures of $(cd "data/$site/train" && echo *)"
done

say "three keys, and one file that all sites hold"
ports=$(python3 -c 'import socket
s = [socket.socket() for _ in range(2)]
for one in s: one.bind(("127.0.0.1", 0))
print(*[one.getsockname()[1] for one in s])')
north_key=$("$program" site keygen --key north.key --quiet)
south_key=$("$program" site keygen --key south.key --quiet)
east_key=$("$program" site keygen --key east.key --quiet)
cat >federation.conf <<END
federation figures
site north $north_key 127.0.0.1:${ports% *}
site south $south_key
site east $east_key 127.0.0.1:${ports#* }
edge north south
edge south east
edge north east
option dataset folder
option model lenet5
option algorithm ccl
option epochs $epochs
option batch-size 16
option lr 0.02
option lr-schedule constant
heartbeat 0.5
END
cat federation.conf
"$program" site check federation.conf --key south.key --data-dir data/south

say "training: three processes, each with its own folder, key and run directory"
begin north; north=$!
begin south; south=$!
begin east; east=$!

until_said runs/south/metrics.jsonl '"epoch": 2'
say "south loses power (SIGKILL); its neighbours go on without it"
kill -9 "$south"
wait "$south" 2>/dev/null || :
until_said north.log 'south is gone'
until_said east.log 'south is gone'
"$program" site status runs/north

say "south is back: the same command"
begin south; south=$!
wait "$north" "$south" "$east"
north='' south='' east=''

say "what each site said"
for site in north south east; do
    echo "-- $site"
    cat "$site.log"
done

say "how each site stands"
for site in north south east; do "$program" site status "runs/$site"; done

say "the same model everywhere, tested on each site's own pictures; a page for each"
"$program" show runs/north runs/south runs/east
for site in north south east; do "$program" report "runs/$site" --out "$site.html"; done
