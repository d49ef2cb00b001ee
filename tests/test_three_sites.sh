#!/bin/sh
# tests/test_three_sites.sh [PROGRAM]: examples/three-sites/run.sh does what its README says: a site is
# killed and comes back, and all three end with the same model. PROGRAM: default build/crosstalk.
# What is checked is run as the condition of verdict:
# shellcheck disable=SC2181
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
program=${1:-$root/build/crosstalk}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
passed=0 failed=0

verdict() { # verdict NAME: the status of the command before says whether it holds
    if [ $? -eq 0 ]; then
        passed=$((passed + 1))
        echo "ok   $1"
    else
        failed=$((failed + 1))
        cat "$scratch/said"
        echo "FAIL $1"
    fi
}

"$program" site keygen --key "$scratch/try.key" >"$scratch/said" 2>&1
if ! command -v python3 >/dev/null || grep -q 'this build has no' "$scratch/said"; then
    echo "skip three_sites (no python3, or a program without libzmq)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi

all=$scratch/all
CROSSTALK=$program "$root/examples/three-sites/run.sh" "$all" >"$scratch/said" 2>&1
verdict the_example_runs_to_its_end
cd "$all" || exit 1

for site in north east; do
    grep -q '^south is gone' $site.log && [ "$(grep -c '^south is there' $site.log)" -ge 2 ]
    verdict ${site}_sees_the_killed_site_go_and_come_back
done

grep -q 'iterations were missed; going on with iteration' south.log
verdict the_killed_site_says_what_it_missed

# The tensors, behind the header, which names the site.
python3 - <<'END'
import struct
def tensors(site):
    data = open(f"runs/{site}/consensus.safetensors", "rb").read()
    return data[8 + struct.unpack("<Q", data[:8])[0]:]
models = [tensors(site) for site in ("north", "south", "east")]
raise SystemExit(0 if len(models[0]) > 0 and models[0] == models[1] == models[2] else 1)
END
verdict all_sites_end_with_the_same_model

for site in north south east; do
    grep -q '^test accuracy: consensus model' $site.log && grep -q "^next: crosstalk report runs/$site\$" $site.log
    verdict ${site}_ends_with_its_result_and_the_next_command
done

n=0
for site in north south east; do
    "$program" site status runs/$site | head -n 1 | grep -q "^$site of figures: finished" && n=$((n + 1))
done
[ "$n" -eq 3 ]
verdict every_site_says_that_it_is_finished

! grep -iE '>[^<]*\bnan\b' ./*.html && ! grep -i '\bnan\b' ./*.log
verdict no_page_and_no_log_shows_a_number_that_is_none

! find runs -name '*.png' | grep -q . && ! grep -rl "$(sed -n 's/^secret //p' south.key)" runs ./*.html ./*.log
verdict neither_pictures_nor_the_secret_key_are_in_what_a_run_leaves

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
