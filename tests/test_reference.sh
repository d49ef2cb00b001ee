#!/bin/sh
# docs/API.md is what tools/api_reference makes of the public headers, and has all of them.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

verdict() { # verdict NAME: the status of the command before says whether it holds
    if [ $? -eq 0 ]; then
        echo "ok   $1"
        passed=$((passed + 1))
    else
        echo "FAIL $1"
        failed=$((failed + 1))
    fi
}

"$root/tools/api_reference" >"$scratch/now" && cmp "$scratch/now" "$root/docs/API.md"
verdict the_reference_is_up_to_date

missing=$(cat "$root"/include/crosstalk/*.h | grep -o '^CT_API .*(' | grep -o 'ct_[a-z0-9_]*(' |
    while read -r name; do
        grep -qF "$name" "$root/docs/API.md" || echo "    $name) is not in docs/API.md"
    done)
[ -z "$missing" ] || ! echo "$missing"
verdict every_public_function_is_in_it

mkdir -p "$scratch/tree/tools" && cp -r "$root/include" "$scratch/tree/" &&
    cp "$root/tools/api_reference" "$scratch/tree/tools/" &&
    printf '\n/* Does more. */\nCT_API void ct_more(int a,\n                    int b);\n' \
        >>"$scratch/tree/include/crosstalk/record.h" &&
    "$scratch/tree/tools/api_reference" | grep -A4 '^Does more.$' | grep -q '^             int b);$'
verdict a_new_function_appears_with_its_comment

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
