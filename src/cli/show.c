#include <string.h>

#include "cli/cli.h"
#include "study/metric.h"

void ct_cli_show_help(FILE *out) {
    fputs("usage: crosstalk show RUN...\n\n"
          "A table of finished runs: accuracy of the consensus model, mean and worst of the\n"
          "agents' own, consensus distance, what each agent sent, time.\n",
          out);
}

static const char *word(const ct_json *object, const char *key) {
    const ct_json *member = object != NULL ? ct_json_get(object, key) : NULL;
    return member != NULL && member->kind == CT_JSON_STRING ? member->string : "?";
}

static void print_row(const char *dir, const ct_json *s) {
    const ct_json *o = ct_json_get(s, "options");
    char method[64], where[64];
    snprintf(method, sizeof method, "%.30s%s", word(o, "algorithm"),
             strcmp(word(o, "loss"), "ccl") == 0 ? " + ccl" : "");
    snprintf(where, sizeof where, "%.30s %.0f", word(o, "topology"), ct_json_number(o, "agents"));
    printf("%-24.24s %-16.16s %-12.12s %6g %6.0f %10.2f %6.2f %6.2f %10.3g %9.1f %8.1f\n", dir,
           method, where, ct_json_number(o, "alpha"), ct_json_number(s, "epoch"),
           100 * ct_json_number(s, "consensus_accuracy"),
           100 * ct_json_number(s, "local_accuracy_mean"),
           100 * ct_json_number(s, "local_accuracy_min"), ct_json_number(s, "consensus_distance"),
           ct_json_number(s, "bytes_sent_per_agent") / (1 << 20), ct_json_number(s, "seconds"));
}

ct_status ct_cli_show(int n_args, char **args) {
    if (n_args == 0) return ct_fail(CT_INVAL, "name one run directory or more");
    printf("%-24s %-16s %-12s %6s %6s %10s %6s %6s %10s %9s %8s\n", "run", "method", "graph",
           "alpha", "epochs", "consensus%", "mean%", "worst%", "distance", "MiB/agent", "seconds");
    for (int i = 0; i < n_args; i++) {
        ct_json *summary = NULL;
        CT_TRY(ct_summary_read(args[i], &summary));
        print_row(args[i], summary);
        ct_json_free(&summary);
    }
    return CT_OK;
}
