#include <stdio.h>
#include <string.h>

#include "cli/models.h"
#include "model/score.h"
#include "record/file.h"
#include "run/run.h"
#include "util/log.h"
#include "util/memory.h"

const ct_help ct_cli_eval_help = {
    .usage = "eval MODEL [--data-dir DIR] [--option value ...]\n"
             "eval --init FILE.safetensors --dataset NAME --model NAME ...",
    .text = "Tests a model on the test part of a data set: that of its run, or another one. "
            "MODEL is a run directory, whose consensus model is tested, or a .safetensors "
            "file. Pictures are resized and normalised as in training, and classes are matched "
            "by name.\n\n"
            "A folder of pictures needs no train part: val/<class>/, test/<class>/ or <class>/ "
            "will do. Of the last, all pictures are tested, or with --test-fraction those that "
            "training held out.",
    .takes = "dataset, data-dir, test-fraction, test-samples, init, model, device, threads, "
             "quiet",
    .examples = CT_HELP_PAIRS(
        {"The run of the first example of train, once more: 94.85 %.",
         "crosstalk eval runs/shapes-lenet5-qg-dsgdm-ring4-a0.1-s1"},
        {"For a script.", "crosstalk eval runs/shapes-lenet5-qg-dsgdm-ring4-a0.1-s1 --json"},
        {"The same model on new pictures.",
         "crosstalk eval runs/ccl --dataset folder --data-dir new-pictures"}),
    .also = "predict, export, docs/MODELS.md"};

/* Options of the run that the model lies in where the command line has none. */
static ct_status read_run(ct_config *config, const char *path) {
    ct_path room;
    const char *dir = ct_cli_run_of(path, &room);
    /* a directory without a run has no model either: opening it says so */
    return dir != NULL ? ct_config_load(config, ct_record_path(dir, CT_FILE_CONFIG).text) : CT_OK;
}

/* The data set that the options name; without one, the kind that the model was trained on. */
static ct_status open_test(ct_config *config, const ct_model_facts *facts, ct_dataset *out) {
    if (!config->given[CT_OPT_dataset] && facts->dataset[0] != '\0')
        CT_TRY(ct_config_put_id(config, CT_OPT_dataset, facts->dataset));
    if (config->named[CT_OPT_image_size] && config->image_size != facts->height)
        return ct_fail_about(CT_DIFFERS, "image-size",
                             "@image-size %lld: the model was trained on images of %d pixels",
                             (long long)config->image_size, facts->height);
    CT_TRY(ct_run_name_data(config));
    return ct_run_open_test(config, facts, out);
}

/* A model that does not say how its images were normalised: as the training part of this data. */
static ct_status open_old(const char *path, ct_config *config, ct_model_options *options,
                          ct_dataset *data, ct_model **model) {
    CT_SCOPED_BLOCK(const char *) names = NULL;
    ct_config_only_test(config);
    CT_TRY(ct_run_name_data(config));
    CT_TRY(ct_config_choose(config));
    CT_TRY(ct_run_open_data(config, 0, data));
    if (data->class_names != NULL) CT_TRY(ct_make(&names, (size_t)data->n_classes, "the classes"));
    ct_model_facts known = ct_cli_facts_of(data, names);
    known.network = config->model;
    known.norm = config->norm;
    options->known = &known;
    ct_status status = ct_model_load(path, options, model);
    options->known = NULL;
    return status;
}

/* The model, and the data to test it on. */
static ct_status open_both(const char *path, ct_config *config, ct_dataset *data,
                           ct_model **model) {
    ct_error error;
    ct_model_options options = CT_MODEL_OPTIONS;
    options.device = config->device;
    options.n_threads = (int)config->threads;
    options.precision = config->precision;
    options.exact_conv = config->exact_conv;
    ct_model_facts known = {.network = config->named[CT_OPT_model] ? config->model : NULL,
                            .norm = config->named[CT_OPT_norm] ? config->norm : NULL};
    options.known = &known;
    ct_status status = CT_CATCH(&error, ct_model_load(path, &options, model));
    if (status == CT_OK) return open_test(config, ct_model_facts_of(*model), data);
    if (status != CT_INVAL || error.about[0] != '\0') return ct_fail_again(&error);
    return open_old(path, config, &options, data, model);
}

static bool show_progress(void *context, long now, long total) {
    (void)context;
    ct_log(CT_LOG_PASSING, "evaluating  %ld of %ld samples", now, total);
    return true;
}

/* With the hooks of this thread, and progress. */
static ct_status evaluate(ct_model *model, const ct_dataset *data, ct_model_score *score) {
    const ct_hooks *before = ct_hooks_now();
    ct_hooks hooks = {.progress = show_progress, .log = before != NULL ? before->log : NULL};
    ct_hooks_use(&hooks);
    ct_status status = ct_model_evaluate(model, data, score);
    ct_hooks_use(before);
    ct_cli_clear_line(); /* results follow, on standard output */
    return status;
}

static ct_status print_json(const char *file, const char *dataset, const ct_model_score *score) {
    CT_SCOPED(ct_text) text = {0};
    ct_text_add(&text, "{\"model\": ");
    ct_json_add_string(&text, file);
    ct_text_add(&text, ", \"dataset\": ");
    ct_json_add_string(&text, dataset);
    ct_text_add(&text, ", \"n\": %zu, \"accuracy\": ", score->n);
    ct_json_add_number(&text, score->accuracy);
    ct_text_add(&text, ", \"loss\": ");
    ct_json_add_number(&text, score->loss);
    ct_text_add(&text, "}\n");
    CT_TRY(ct_text_status(&text));
    ct_show_lines(stdout, text.chars);
    return CT_OK;
}

ct_status ct_cli_eval(int n_args, char **args) {
    ct_config config;
    CT_SCOPED(ct_dataset) data = {0};
    CT_SCOPED_HANDLE(ct_model) model = NULL;
    const char *word = NULL;
    ct_model_score score;
    ct_own own;
    ct_config_init(&config);
    CT_TRY(ct_own_take("eval", &n_args, args, &own));
    CT_TRY(ct_cli_options(n_args, args, &config, &word, 1));
    ct_cli_quiet(config.quiet);
    bool has_init = config.given[CT_OPT_init];
    if (word != NULL) CT_TRY(read_run(&config, word));
    if (word == NULL && !has_init)
        return ct_fail(CT_INVAL, "name a run directory, or a model with --init FILE.safetensors");
    const char *path = has_init ? config.init : word;
    CT_TRY(open_both(path, &config, &data, &model));
    CT_TRY(evaluate(model, &data, &score));
    ct_path file =
        ct_dir_exists(path) ? ct_record_path(path, CT_FILE_CONSENSUS) : ct_path_in("", path);
    if (ct_own_is_given(&own, "json")) return print_json(file.text, config.dataset, &score);
    ct_show(stdout, "%s: accuracy %.2f %%, loss %.6f, %zu test samples of %s\n", file.text,
            100 * score.accuracy, score.loss, score.n, config.dataset);
    CT_SCOPED(ct_text) place = {0};
    ct_shell_add(&place, path);
    CT_TRY(ct_text_status(&place));
    ct_cli_next("predict %s %s", place.chars,
                ct_model_facts_of(model)->columns != NULL ? "TABLE.csv" : "PICTURES");
    return CT_OK;
}
