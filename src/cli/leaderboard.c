/* Rows of the leaderboard that others send in. */
#include <string.h>

#include "cli/cli.h"
#include "study/submission.h"
#include "util/memory.h"

const ct_help ct_cli_leaderboard_help = {
    .usage = "leaderboard verify DIR|FILE [--option value ...]",
    .text = "The leaderboard is a study, trained by crosstalk reproduce leaderboard. Its table "
            "can have rows from anyone; docs/REPRODUCE.md says how to add one.",
    .takes = "data-dir, device, threads, quiet",
    .examples = CT_HELP_PAIRS(
        {"Train a row of it.", "crosstalk reproduce leaderboard --data-dir data --only gut"},
        {"Check the runs of a folder.", "crosstalk leaderboard verify results/leaderboard"}),
    .also = "reproduce, verify, docs/REPRODUCE.md"};

const ct_help ct_cli_leaderboard_verify_help = {
    .usage = "leaderboard verify DIR|FILE [--study NAME|FILE.conf] [--retrain[=N]]",
    .text = "Checks every run in a run directory, a folder of runs or a bundle: its options "
            "against the rules of the study, the hashes of its splits, the version that made it, "
            "whether its numbers agree with each other, and how it was tuned. --retrain trains "
            "the first seed again, and compares every number that does not come from a clock. "
            "One line for each finding: ok, note (it need not be wrong) or WRONG.",
    .own = "study, retrain",
    .takes = "data-dir, device, threads, quiet",
    .exits = CT_HELP_PAIRS({"0", "nothing is wrong"}, {"1", "something is wrong, and said above"}),
    .examples =
        CT_HELP_PAIRS({"Check a bundle that somebody sent.", "crosstalk leaderboard verify FILE"},
                      {"And train the first two epochs of every run again.",
                       "crosstalk leaderboard verify FILE --data-dir data --retrain=2"}),
    .also = "reproduce, docs/REPRODUCE.md"};

static bool is_quiet;

static void say(ct_verdict verdict, const char *run, const char *text) {
    static const char *const words[] = {"ok", "note", "WRONG"};
    char line[2304];
    if (is_quiet && verdict != CT_FINDING_WRONG) return;
    ct_spell(text, "--", line, sizeof line);
    ct_show(stdout, "%-5s  %s: %s\n", words[verdict], run, line);
    fflush(stdout);
}

static ct_status verify(const ct_own *own, const ct_config *given, const char *path) {
    CT_SCOPED(ct_study) study = {0};
    ct_config none;
    ct_study_request request = {.table_only = true};
    ct_submission s = {.study = &study,
                       .given = given,
                       .trains = ct_own_is_given(own, "retrain"),
                       .epochs = ct_own_whole(own, "retrain"),
                       .say = say};
    ct_config_init(&none);
    CT_TRY(ct_study_open(ct_own_text(own, "study"), &study));
    snprintf(study.out, sizeof study.out, "results/%s", study.name);
    CT_TRY(ct_study_build(&study, &none, &request));
    CT_TRY(ct_submission_check(&s, path));
    if (s.n_wrong > 0)
        return ct_fail(CT_IO, "%d finding%s wrong in %d run%s", s.n_wrong,
                       s.n_wrong == 1 ? " is" : "s are", s.n_runs, s.n_runs == 1 ? "" : "s");
    if (!is_quiet)
        ct_show(stdout, "%d run%s: nothing is wrong\n", s.n_runs, s.n_runs == 1 ? "" : "s");
    return CT_OK;
}

ct_status ct_cli_leaderboard(int n_args, char **args) {
    const char *words[2] = {NULL, NULL};
    ct_own own;
    ct_config given;
    ct_config_init(&given);
    CT_TRY(ct_own_take("leaderboard", &n_args, args, &own));
    CT_TRY(ct_cli_options(n_args, args, &given, words, 2));
    is_quiet = given.quiet;
    if (words[0] == NULL)
        return ct_fail(CT_INVAL, "say what: verify (crosstalk help leaderboard); crosstalk "
                                 "reproduce leaderboard trains it");
    if (strcmp(words[0], "verify") != 0) return ct_cli_no_part("leaderboard", words[0]);
    if (words[1] == NULL)
        return ct_fail(CT_INVAL, "leaderboard verify needs a run directory, a folder of runs or a "
                                 "bundle (crosstalk help leaderboard verify)");
    ct_cli_quiet(true); /* what trainings say is not what was asked for */
    given.quiet = true;
    return verify(&own, &given, words[1]);
}
