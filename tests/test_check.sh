#!/bin/sh
# Feeds tools/check small trees, each with one thing wrong, and sees the rule fire.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
tree="$scratch/a tree"
passed=0 failed=0 skipped=0

if ! command -v python3 >/dev/null 2>&1; then
    echo "skip tools_check (python3 is not installed)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi

# file PATH: writes the standard input there, in the tree.
file() {
    mkdir -p "$tree/$(dirname "$1")"
    cat >"$tree/$1"
}

fresh() {
    rm -rf "$tree"
    mkdir -p "$tree"
    cp "$root/.clang-format" "$tree/.clang-format"
}

verdict() { # verdict NAME SHOULD_HOLD: $2 is the status of the claim
    if [ "$2" -eq 0 ]; then
        echo "ok   $1"
        passed=$((passed + 1))
    else
        sed 's/^/    /' "$scratch/said"
        echo "FAIL $1"
        failed=$((failed + 1))
    fi
}

# refused NAME WORDS: the tree has exactly one violation, and its line contains WORDS.
refused() {
    python3 "$root/tools/check" "$tree" >"$scratch/said" 2>&1
    [ $? -eq 1 ] && grep -qF -- "$2" "$scratch/said" &&
        [ "$(tail -n 1 "$scratch/said")" = "check: 1 violation" ]
    verdict "$1" $?
    fresh
}

# accepted NAME: the tree has no violation.
accepted() {
    python3 "$root/tools/check" "$tree" >"$scratch/said" 2>&1 &&
        tail -n 1 "$scratch/said" | grep -q '^check: [0-9]* files, no violations$'
    verdict "$1" $?
    fresh
}

# body N: a function of N lines.
body() {
    echo "int ct_f(int x) {"
    i=3
    while [ "$i" -lt "$1" ]; do
        echo "    x++;"
        i=$((i + 1))
    done
    printf '    return x;\n}\n'
}

# refused_call CALL: a call banned in src/algo.
refused_call() {
    printf 'void ct_f(void) {\n    %s(1);\n}\n' "$1" | file src/algo/x.c
    refused "a_call_of_$1_is_refused" "src/algo/x.c:2: $1()"
}

fresh

# --- lengths
body 60 | file src/algo/x.c
accepted a_function_of_60_lines_is_accepted
body 61 | file src/algo/x.c
refused a_function_of_61_lines_is_refused "src/algo/x.c:1: ct_f has 61 lines"
{
    echo '/* check: long because it is a table */'
    body 61
} | file src/algo/x.c
accepted a_long_function_with_a_reason_is_accepted
{
    echo '/* check: long because */'
    body 61
} | file src/algo/x.c
refused a_reason_must_be_given "src/algo/x.c:2: ct_f has 61 lines"
{
    printf 'static const char *const t[] = {"}", "{"}; /* { */\n\n// clang-format off\n#define OPEN {\nextern "C" {\n'
    body 61
    echo "}"
} | file src/algo/x.cu
refused braces_in_text_do_not_hide_a_long_function "ct_f has 61 lines"
{
    echo 'enum {'
    awk 'BEGIN { for (i = 0; i < 598; i++) print "    CT_X" i "," }'
    echo '};'
} | file src/algo/x.h
accepted a_file_of_600_lines_is_accepted
{
    echo 'enum {'
    awk 'BEGIN { for (i = 0; i < 599; i++) print "    CT_X" i "," }'
    echo '};'
} | file src/algo/x.h
refused a_file_of_601_lines_is_refused "src/algo/x.h:601: the file has 601 lines"

# --- one place for every fact
options() {
    file src/schema/option_list.h <<'LIST'
OPTION("data", TEXT, alpha, "alpha", "")
OPTION("data", TEXT, beta, "beta-two", "")
OWN("report", TEXT, "gamma", NULL)
LIST
}
options
echo 'static const char *const t[] = {"alpha", "beta-two", "gamma"};' | file src/report/x.c
refused a_list_of_option_names_is_refused "src/report/x.c:1: a list of option names"
options
file src/report/x.c <<'TABLE'
static const struct t t[] = {
    {"alpha", 1},
    {"beta-two", 2},
    {"gamma", 3},
};
TABLE
refused a_table_of_option_names_is_refused "src/report/x.c:4: a list of option names"
options
echo 'static const char *const t[] = {"alpha", "delta", "gamma"};' | file src/report/x.c
accepted other_words_are_no_list_of_option_names
options
echo 'static const char t[] = "name it with --beta-two";' | file src/report/x.c
refused dashes_below_the_command_line_are_refused "src/report/x.c:1: --beta-two below"
options
echo 'static const char t[] = "name it with --beta-two";' | file src/cli/x.c
accepted dashes_on_the_command_line_are_accepted
printf 'void ct_f(void) {\n    fprintf(stderr, "x");\n}\n' | file src/run/x.c
refused printing_below_the_command_line_is_refused "src/run/x.c:2: nothing below src/cli prints"
printf 'void ct_f(void) {\n    ct_show(stdout, "x");\n}\n' | file src/run/x.c
refused showing_below_the_command_line_is_refused "src/run/x.c:2: nothing below src/cli prints"
printf 'void ct_f(void) {\n    printf("x");\n}\n' | file src/cli/x.c
refused printing_without_spelling_out_is_refused "src/cli/x.c:2: prints what a terminal may obey"
printf 'void ct_f(void) {\n    ct_show(stdout, "x");\n}\n' | file src/cli/x.c
accepted showing_on_the_command_line_is_accepted

# --- include direction: FROM may not / may include TO
while read -r rule from to; do
    printf '#include "%s"\n' "$to" | file "src/$from/x.c"
    name=$(echo "${from}_${rule}_include_${to}" | tr '/.' '__')
    if [ "$rule" = may ]; then
        accepted "$name"
    else
        refused "$name" "src/$from/x.c:1: $from may not include $to"
    fi
done <<'LIST'
may nn util/status.h
may run schema/config.h
may run record/record.h
may_not schema run/run.h
may_not record run/run.h
may loss nn/graph.h
may backend loss/ccl.h
may backend data/batch.h
may backend data/dataset.h
may algo topology/topology.h
may run data/partition.h
may report run/metrics.h
may cli report/table.h
may topology nn/graph.h
may_not util nn/graph.h
may_not nn backend/backend.h
may_not loss backend/backend.h
may_not loss data/dataset.h
may_not backend algo/algo.h
may_not backend data/partition.h
may_not algo run/run.h
may_not run report/report.h
may_not report cli/options.h
may_not topology data/dataset.h
may_not data topology/topology.h
may_not transport algo/algo.h
LIST
printf '/*\n#include "run/run.h"\n*/\n' | file src/util/x.c
accepted an_include_in_a_comment_does_not_count
printf '#include "run/run.h"\n' | file tests/test_x.c
accepted tests_may_include_anything
printf '#include "util/text.h"\n' | file include/crosstalk/x.h
refused a_public_header_may_not_include_a_private_one "a public header includes util/text.h"
printf '#include "util/x_internal.h"\n' | file src/run/x.c
refused an_internal_header_stays_in_its_folder "belongs to its folder alone"
printf 'int ct_x;\n' | file src/novel/x.c
refused an_unknown_module_is_refused "module novel is not in"

# --- own header first
echo 'int ct_f(void);' | file src/util/x.h
printf '#include <stdio.h>\n\n#include "util/x.h"\n' | file src/util/x.c
refused a_file_includes_its_own_header_first "src/util/x.c:1: its own header util/x.h comes first"
echo 'int ct_f(void);' | file src/util/x.h
printf '/* About. */\n#include "util/x.h"\n\n#include <stdio.h>\n' | file src/util/x.c
accepted a_comment_may_come_before_the_own_header

# --- calls
for call in gets strcpy strcat sprintf atoi atof strtok rand srand alloca system \
    malloc calloc realloc free exit abort; do
    refused_call "$call"
done
printf 'void ct_f(void) {\n    free(malloc(1));\n}\n' | file src/util/x.c
accepted util_may_allocate
printf 'int main(void) {\n    exit(1);\n}\n' | file src/cli/main.c
accepted main_may_exit
{
    printf '/* exit(1) and strcpy(a, b) */\nvoid ct_f(ct_x *x) {\n'
    printf '    ct_free(x);\n    x->free(x);\n    ct_log("free(x)");\n}\n'
} | file src/algo/x.c
accepted names_that_contain_a_banned_one_are_accepted

# --- scripts
echo '#!/bin/sh' | file tests/test_x.sh
refused a_test_that_cannot_be_run_is_refused "tests/test_x.sh:1: not executable"
echo '#!/bin/sh' | file tests/test_x.sh
chmod +x "$tree/tests/test_x.sh"
accepted a_test_that_can_be_run_is_accepted

# --- features
printf '#ifdef CT_WITH_CUDA\n#endif\n' | file src/run/x.c
refused ifdef_of_a_feature_is_refused "src/run/x.c:1: features are 0 or 1"
printf '#if defined(CT_WITH_CUDA)\n#endif\n' | file src/run/x.c
refused defined_of_a_feature_is_refused "src/run/x.c:1: features are 0 or 1"
printf '#if CT_WITH_CUDA\n#endif\n' | file src/run/x.c
accepted if_of_a_feature_is_accepted

# --- blanks and words
printf 'a\tb\n' | file docs/x.md
refused a_tab_is_refused "docs/x.md:1: a tab"
printf 'a \n' | file docs/x.md
refused a_blank_at_the_end_is_refused "docs/x.md:1: blanks at the end"
printf 'a\r\n' | file scripts/x.sh
refused a_carriage_return_is_refused "scripts/x.sh:1: blanks at the end"
printf '/* TODO: faster */\n' | file src/run/x.c
refused a_todo_without_an_issue_is_refused "src/run/x.c:1: TODO without its issue"
printf '/* TODO(#12): faster */\n' | file src/run/x.c
accepted a_todo_with_an_issue_is_accepted
for word in work root home; do
    printf 'see\n"/%s/x"\n' "$word" | file docs/x.md
    refused "a_path_below_${word}_is_refused" "docs/x.md:2: a path of one machine"
done
# shellcheck disable=SC2016
printf 'a/%s/b ../%s/b $dir/%s/b\n' home work root | file docs/x.md
accepted relative_paths_are_accepted

# --- links between pages
page() { # page: docs/y.md, with a heading that occurs twice
    printf '# A page\n\n## How `fast`, and why?\n\n## Again\n\n## Again\n' | file docs/y.md
}
page
printf '[a](y.md) [b](y.md#how-fast-and-why) [c](y.md#again-1) [d](../docs) [e](#x)\n\n# X\n' | file docs/x.md
accepted links_that_lead_somewhere_are_accepted
printf 'see\n[a](gone.md)\n' | file docs/x.md
refused a_link_to_a_missing_file_is_refused "docs/x.md:2: a link to gone.md"
page
printf '[a](y.md#how-slow)\n' | file docs/x.md
refused a_link_to_a_missing_heading_is_refused "docs/x.md:1: a link to #how-slow, which is no heading of docs/y.md"
printf '# X\n\n[a](#y)\n' | file docs/x.md
refused a_link_to_a_missing_heading_of_the_same_page_is_refused "docs/x.md:3: a link to #y"
printf '[a](../../x.md)\n' | file docs/x.md
refused a_link_out_of_the_tree_is_refused "docs/x.md:1: a link to ../../x.md"
printf '![a](fig.svg "a figure")\n' | file docs/x.md
refused a_missing_picture_is_refused "docs/x.md:1: a link to fig.svg"
printf '[a](https://example.org/x.md) `[b](gone.md)`\n\n    f[0](gone)\n\n```\n[c](gone.md)\n# X\n```\n' | file docs/x.md
accepted links_to_other_servers_and_in_code_are_left_alone
printf '[a](reference/train.md)\n' | file docs/x.md
accepted pages_that_a_program_writes_may_be_missing
printf '[a](reference/train.md)\n' | file docs/x.md
printf 'x\n' | file docs/reference/README.md
refused a_written_reference_is_checked "docs/x.md:1: a link to reference/train.md"

# --- files git ignores are nobody's business
if command -v git >/dev/null 2>&1; then
    git -c init.defaultBranch=main init -q "$tree"
    echo /out/ | file .gitignore
    printf 'a\tb\n' | file out/x.md
    printf 'a\tb\n' | file docs/x.md
    refused files_ignored_by_git_are_not_checked "docs/x.md:1: a tab"
fi

# --- names of the run directory
record_list() {
    printf 'RECORD_FILE(NOTES, "notes.txt", 0)\n' | file src/record/file_list.h
}
record_list
printf 'const char *ct_x = "%%s/notes.txt";\n' | file src/run/x.c
refused a_name_of_the_run_directory_is_the_record_s "src/run/x.c:1: notes.txt is spelled"
record_list
printf '/* "notes.txt" */\nconst char *ct_x = "writes notes.txt";\n' | file src/run/x.c
accepted a_name_in_a_sentence_is_accepted

# --- formatting
printf 'int  ct_x ;\n' | file src/run/x.c
if python3 "$root/tools/check" "$tree" | grep -q '^note: formatting not checked'; then
    echo "skip bad_format_is_refused (clang-format is missing or of another version)"
    skipped=$((skipped + 1))
else
    refused bad_format_is_refused "src/run/x.c:1: not formatted"
fi
body 7 | file src/run/x.c
python3 "$root/tools/check" "$tree" >"$scratch/said" 2>&1
grep -q '^    7 lines  ct_f  (src/run/x.c:1)$' "$scratch/said"
verdict the_longest_functions_are_listed $?

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
