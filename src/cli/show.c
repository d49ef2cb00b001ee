#include <string.h>

#include "cli/cli.h"
#include "study/metric.h"
#include "util/log.h"

void ct_cli_show_help(FILE *out) {
    fputs("usage: crosstalk show RUN...\n\n"
          "A table of finished runs: accuracy of the consensus model, mean and worst of the\n"
          "agents' own, consensus distance, what each agent sent, time. What is no finished run\n"
          "is named and left out.\n",
          out);
}

static const char *word(const ct_json *object, const char *key) {
    const ct_json *member = object != NULL ? ct_json_get(object, key) : NULL;
    return member != NULL && member->kind == CT_JSON_STRING ? member->string : "?";
}

/* Only one of the splits has an alpha. */
static void name_alpha(const ct_json *options, char *out, size_t size) {
    if (strcmp(word(options, "partition"), "dirichlet") == 0)
        snprintf(out, size, "%g", ct_json_number(options, "alpha"));
    else
        snprintf(out, size, "-");
}

static void print_row(const char *dir, int width, const ct_json *s) {
    const ct_json *o = ct_json_get(s, "options");
    char method[64], where[64], alpha[32];
    snprintf(method, sizeof method, "%.30s%s", word(o, "algorithm"),
             strcmp(word(o, "loss"), "ccl") == 0 ? " + ccl" : "");
    snprintf(where, sizeof where, "%.30s %.0f", word(o, "topology"), ct_json_number(o, "agents"));
    name_alpha(o, alpha, sizeof alpha);
    printf("%-*s %-16.16s %-12.12s %6s %6.0f %10.2f %6.2f %6.2f %10.3g %9.1f %8.1f\n", width, dir,
           method, where, alpha, ct_json_number(s, "epoch"),
           100 * ct_json_number(s, "consensus_accuracy"),
           100 * ct_json_number(s, "local_accuracy_mean"),
           100 * ct_json_number(s, "local_accuracy_min"), ct_json_number(s, "consensus_distance"),
           ct_json_number(s, "bytes_sent_per_agent") / (1 << 20), ct_json_number(s, "seconds"));
}

static ct_status check_names(int n_args, char **args, int *width) {
    *width = (int)strlen("run");
    for (int i = 0; i < n_args; i++) {
        if (strncmp(args[i], "--", 2) == 0)
            return ct_fail(CT_INVAL, "crosstalk show has no option %s; it takes run directories",
                           args[i]);
        int n = (int)strlen(args[i]);
        if (n > *width) *width = n;
    }
    return n_args > 0 ? CT_OK : ct_fail(CT_INVAL, "name one run directory or more");
}

ct_status ct_cli_show(int n_args, char **args) {
    int width, n_shown = 0;
    CT_TRY(check_names(n_args, args, &width));
    for (int i = 0; i < n_args; i++) {
        ct_json *summary = NULL;
        ct_error error;
        if (CT_CATCH(&error, ct_summary_read(args[i], &summary)) != CT_OK) {
            if (n_args == 1) return ct_fail_again(&error);
            ct_note("left out: %s", error.text);
            continue;
        }
        if (n_shown++ == 0)
            printf("%-*s %-16s %-12s %6s %6s %10s %6s %6s %10s %9s %8s\n", width, "run", "method",
                   "graph", "alpha", "epochs", "consensus%", "mean%", "worst%", "distance",
                   "MiB/agent", "seconds");
        print_row(args[i], width, summary);
        ct_json_free(&summary);
    }
    return n_shown > 0 ? CT_OK : ct_fail(CT_IO, "none of these is a finished run");
}
