#include <string.h>

#include "algo/algo.h"
#include "backend/backend.h"
#include "cli/cli.h"
#include "compress/compress.h"
#include "data/dataset.h"
#include "data/partition.h"
#include "topology/schedule.h"
#include "util/json.h"
#include "util/memory.h"
#include "util/text.h"

typedef void (*each_function)(void (*each)(void *context, const char *name, const char *text),
                              void *context);

static void each_topology(void (*each)(void *context, const char *name, const char *text),
                          void *context) {
    ct_topology_each(each, context);
    ct_schedule_each(each, context);
}

static const struct {
    const char *name;
    ct_option_id option; /* that takes one of them */
    each_function each;
} kinds[] = {{"algorithms", CT_OPT_algorithm, ct_algo_each_name},
             {"models", CT_OPT_model, ct_model_each},
             {"topologies", CT_OPT_topology, each_topology},
             {"compressors", CT_OPT_compress, ct_compressor_each},
             {"datasets", CT_OPT_dataset, ct_dataset_each},
             {"partitions", CT_OPT_partition, ct_partition_each},
             {"devices", CT_OPT_device, ct_backend_each}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

const char *ct_cli_list_kind(int k) {
    return k < N_KINDS ? kinds[k].name : NULL;
}

void ct_cli_list_values(const char *option,
                        void (*each)(void *context, const char *name, const char *text),
                        void *context) {
    for (int k = 0; k < N_KINDS; k++)
        if (strcmp(ct_run_options[kinds[k].option].name, option) == 0) kinds[k].each(each, context);
}

const ct_help ct_cli_list_help = {
    .usage = "list [KIND] [--json]",
    .text = "Lists the names that options take, each with one line about it. KIND is one of "
            "algorithms, models, topologies, compressors, datasets, partitions, devices; the "
            "default is all of them. crosstalk list models also prints parameters, features "
            "and arithmetic per sample.",
    .examples = CT_HELP_PAIRS({"Every method.", "crosstalk list algorithms"},
                              {"Models for 100 classes.", "crosstalk list models --classes 100"},
                              {"For a script.", "crosstalk list algorithms --json"}),
    .also = "train, topology, docs/ALGORITHMS.md"};

static void print(void *context, const char *name, const char *text) {
    char spelled[512];
    ct_spell(text, "--", spelled, sizeof spelled);
    ct_show(context, "  %-20s %s\n", name, spelled);
}

typedef struct model_table {
    int n_classes, side; /* side 0: each model's own */
    const char *norm;
    ct_status status; /* CT_NOMEM: one of them lacked it */
} model_table;

static void print_model(void *context, const char *name, const char *text) {
    model_table *table = context;
    ct_model_spec spec = {.name = name, .n_classes = table->n_classes, .norm = table->norm};
    CT_SCOPED(ct_graph) g = {0};
    ct_model_usual_input(name, &spec.input);
    if (table->side > 0) spec.input.h = spec.input.w = table->side;
    ct_status status = CT_CATCH(NULL, ct_graph_create(&spec, &g));
    if (status == CT_NOMEM) table->status = status;
    if (status != CT_OK) { /* these images do not fit */
        ct_show(stdout, "  %-12s %dx%dx%d %39s  %s\n", name, spec.input.c, spec.input.h,
                spec.input.w, "does not fit", text);
        return;
    }
    char shape[32];
    snprintf(shape, sizeof shape, "%dx%dx%d", spec.input.c, spec.input.h, spec.input.w);
    ct_show(stdout, "  %-12s %-10s %12zu %9zu %13.2f  %s\n", name, shape, g.n_weights,
            ct_graph_n_features(&g), 2e-6 * ct_graph_macs(&g, g.logits), text);
}

static ct_status list_models(const ct_own *own) {
    model_table table = {.n_classes = (int)ct_own_whole(own, "classes"),
                         .side = (int)ct_own_whole(own, "image-size"),
                         .norm = ct_own_text(own, "norm")};
    CT_SCOPED(ct_graph) probe = {0}; /* a bad norm is the user's mistake, not every model's */
    CT_TRY(
        ct_graph_create(&(ct_model_spec){"mlp", {1, 1, 1}, table.n_classes, table.norm}, &probe));
    ct_show(stdout, "  %-12s %-10s %12s %9s %13s\n", "model", "images", "parameters", "features",
            "MFLOP/sample");
    ct_model_each(print_model, &table);
    return table.status == CT_OK ? CT_OK : ct_no_memory("the models");
}

static void add_name(void *context, const char *name, const char *text) {
    ct_text *out = context;
    ct_text_add(out, "%s\n    {\"name\": ", out->chars[out->n - 1] == '[' ? "" : ",");
    ct_json_add_string(out, name);
    char spelled[512];
    ct_spell(text, "--", spelled, sizeof spelled);
    ct_text_add(out, ", \"text\": ");
    ct_json_add_string(out, spelled);
    ct_text_add(out, "}");
}

/* `only`: the place of a kind; -1: all of them. */
static ct_status print_json(int only) {
    CT_SCOPED(ct_text) text = {0};
    ct_text_add(&text, "{");
    for (int k = 0; k < N_KINDS; k++) {
        if (only >= 0 && k != only) continue;
        ct_text_add(&text, "%s\n  \"%s\": [", text.n > 1 ? "," : "", kinds[k].name);
        CT_TRY(ct_text_status(&text));
        kinds[k].each(add_name, &text);
        ct_text_add(&text, "\n  ]");
    }
    ct_text_add(&text, "\n}\n");
    CT_TRY(ct_text_status(&text));
    ct_show_lines(stdout, text.chars);
    return CT_OK;
}

static ct_status find_kind(const char *name, int *out) {
    CT_SCOPED(ct_text) known = {0};
    ct_guess guess = {.word = name};
    for (*out = 0; *out < N_KINDS; *out += 1) {
        if (strcmp(name, kinds[*out].name) == 0) return CT_OK;
        ct_guess_try(&guess, kinds[*out].name);
        ct_text_add(&known, "%s%s", known.n > 0 ? ", " : "", kinds[*out].name);
    }
    CT_TRY(ct_text_status(&known));
    bool is_near = guess.nearest[0] != '\0';
    return ct_fail(CT_INVAL, "no list '%s'; %s%s%sknown: %s", name, is_near ? "did you mean " : "",
                   guess.nearest, is_near ? "? " : "", known.chars);
}

ct_status ct_cli_list(int n_args, char **args) {
    ct_own own;
    int only = -1;
    CT_TRY(ct_own_take("list", &n_args, args, &own));
    CT_TRY(ct_own_check_words(&own, n_args, args));
    if (n_args > 0) CT_TRY(find_kind(args[0], &only));
    if (n_args > 1) return ct_fail(CT_INVAL, "list takes one name, not '%s'", args[1]);
    if (ct_own_is_given(&own, "json")) return print_json(only);
    if (only >= 0 && strcmp(kinds[only].name, "models") == 0) return list_models(&own);
    for (int k = 0; k < N_KINDS; k++) {
        if (only >= 0 && k != only) continue;
        if (only < 0) ct_show(stdout, "%s\n", kinds[k].name);
        kinds[k].each(print, stdout);
    }
    return CT_OK;
}
