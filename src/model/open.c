/* Model files, and the run directories they lie in. */
#include <stdio.h>
#include <string.h>

#include "model/model_internal.h"
#include "model/weights.h"
#include "record/record.h"
#include "util/memory.h"

/* ---- which file ---- */

static const ct_model_options defaults = {.size = sizeof defaults, .agent = -1};

/* The caller's options as far as it knows them. */
static ct_model_options options_of(const ct_model_options *options) {
    ct_model_options all = defaults;
    if (options == NULL) return all;
    memcpy(&all, options, options->size < sizeof all ? options->size : sizeof all);
    return all;
}

/* The file of a run directory; *dir is the directory that the file lies in. */
static ct_status find_file(const char *path, int agent, ct_path *file, ct_path *dir) {
    if (ct_dir_exists(path)) {
        ct_record_file which = agent >= 0 ? CT_FILE_AGENTS : CT_FILE_CONSENSUS;
        *dir = ct_path_in("", path);
        *file = ct_record_path(path, which);
        if (ct_file_exists(file->text)) return CT_OK;
        return ct_fail(CT_IO, "%s: there is no %s; %s", path, ct_record_name(which),
                       agent >= 0 ? "train with @save-agents"
                                  : "it is no run, or is not finished, or has a run for each seed");
    }
    *file = ct_path_in("", path);
    *dir = ct_path_dir(path);
    return CT_OK;
}

/* ---- what the run directory says ---- */

static void take_option(const ct_record *run, const char *name, char *word, size_t size) {
    const char *value = ct_record_option_of(run, name);
    if (word[0] == '\0' && value != NULL) snprintf(word, size, "%s", value);
}

static ct_status take_names(const ct_record *run, ct_facts *facts) {
    ct_model_facts names = {.n_classes = run->n_classes,
                            .class_names = (const char *const *)run->class_names};
    return ct_facts_complete(run->path, facts, &names);
}

/* A model that does not describe itself is what the options of its run say. */
static ct_status ask_run(const char *dir, ct_facts *facts) {
    CT_SCOPED_BY(ct_record_unload, ct_record) run = {0};
    if (facts->version[0] != '\0' || !ct_record_has(dir, CT_FILE_CONFIG)) return CT_OK;
    CT_TRY(ct_record_load(dir, CT_READ_OPTIONS | CT_READ_SETTING, &run));
    take_option(&run, "model", facts->network, sizeof facts->network);
    take_option(&run, "norm", facts->norm, sizeof facts->norm);
    take_option(&run, "algorithm", facts->algorithm, sizeof facts->algorithm);
    take_option(&run, "loss", facts->loss, sizeof facts->loss);
    take_option(&run, "dataset", facts->dataset, sizeof facts->dataset);
    return run.n_classes > 0 ? take_names(&run, facts) : CT_OK;
}

/* ---- weights ---- */

static ct_status build_graph(const ct_facts *facts, int n_classes, ct_graph *out) {
    ct_model_spec spec = {.name = facts->network,
                          .input = {facts->channels, facts->height, facts->width},
                          .n_classes = n_classes,
                          .norm = facts->norm};
    return ct_graph_create(&spec, out);
}

/* As many as the last layer has outputs, where nobody says. */
static ct_status count_classes(const char *path, const ct_tensors *tensors, const char *prefix,
                               ct_facts *facts) {
    CT_SCOPED(ct_graph) any = {0};
    char name[128];
    if (facts->n_classes > 0) return CT_OK;
    CT_TRY(build_graph(facts, 2, &any));
    snprintf(name, sizeof name, "%s%s", prefix, any.params[any.n_params - 1].name);
    const ct_tensor *last = ct_tensors_find(tensors, name);
    if (last == NULL || last->n_dims != 1 || last->count < 1 || last->count > CT_MAX_CLASSES)
        return ct_fail(CT_IO, "%s: no tensor '%s' that tells how many classes there are", path,
                       name);
    facts->n_classes = (int)last->count;
    return CT_OK;
}

/* Shapes are compared before memory is taken: what the metadata says may be anything. */
static ct_status load_weights(ct_model *m, const ct_tensors *tensors, const char *prefix) {
    CT_TRY(build_graph(&m->facts, m->facts.n_classes, &m->graph));
    CT_TRY(ct_weights_load(m->path, tensors, prefix, &m->graph, NULL, NULL));
    if (prefix[0] == '\0') CT_TRY(ct_weights_check(m->path, tensors, &m->graph, 0));
    CT_TRY(ct_make(&m->row, m->graph.n_weights, "the model"));
    CT_TRY(ct_make(&m->running, m->graph.n_buffer_values, "the model"));
    return ct_weights_load(m->path, tensors, prefix, &m->graph, m->row, m->running);
}

static ct_status number_classes(ct_model *m) {
    if (m->facts.class_names != NULL) return CT_OK;
    CT_TRY(ct_make(&m->numbers, (size_t)m->facts.n_classes, "the names of classes"));
    for (int c = 0; c < m->facts.n_classes; c++)
        snprintf(m->numbers[c], sizeof m->numbers[c], "%d", c);
    return CT_OK;
}

ct_status ct_model_create(const char *path, ct_facts *facts, const ct_tensors *tensors,
                          const char *prefix, ct_model **out) {
    CT_SCOPED_HANDLE(ct_model) m = NULL;
    CT_TRY(ct_facts_check(path, facts));
    CT_TRY(count_classes(path, tensors, prefix, facts));
    CT_TRY(ct_make(&m, 1, "the model"));
    CT_TRY(ct_make_text(&m->path, path));
    ct_move(&m->facts, facts);
    CT_TRY(load_weights(m, tensors, prefix));
    CT_TRY(number_classes(m));
    m->view = ct_facts_view(&m->facts);
    m->view.n_parameters = m->graph.n_weights;
    ct_move(out, &m);
    return CT_OK;
}

/* ---- all of it ---- */

/* Which of the file's models is wanted. */
static ct_status choose_agent(const char *path, const ct_tensors *tensors, int agent,
                              ct_weights_prefix *out) {
    bool has_agents = ct_weights_are_per_agent(tensors);
    *out = (ct_weights_prefix){""};
    if (has_agents && agent < 0)
        return ct_refuse("agent", "%s has a model for each agent; choose one with @agent I", path);
    if (!has_agents && agent >= 0)
        return ct_refuse("agent", "@agent %d: %s has one model alone", agent, path);
    if (has_agents) *out = ct_weights_prefix_of(agent);
    return CT_OK;
}

/* Where and how it computes: in fp32 unless told otherwise, so that devices differ little. */
static ct_status set_device(ct_model *m, const ct_model_options *options) {
    const char *device = options->device != NULL ? options->device : "auto";
    const char *precision = options->precision != NULL ? options->precision : "fp32";
    snprintf(m->device, sizeof m->device, "%s", device);
    m->compute.only_forward = true;
    m->compute.n_threads = options->n_threads;
    m->compute.exact_conv = options->exact_conv;
    return ct_precision_parse(precision, &m->compute.precision);
}

ct_status ct_model_load(const char *path, const ct_model_options *given, ct_model **out) {
    CT_SCOPED(ct_tensors) tensors = {0};
    CT_SCOPED(ct_facts) facts = {0};
    CT_SCOPED_HANDLE(ct_model) model = NULL;
    ct_model_options options = options_of(given);
    ct_path file, dir;
    ct_weights_prefix prefix;
    CT_TRY(find_file(path, options.agent, &file, &dir));
    CT_TRY(ct_tensors_read(file.text, &tensors));
    CT_TRY(choose_agent(file.text, &tensors, options.agent, &prefix));
    CT_TRY(ct_facts_read(file.text, &tensors, &facts));
    CT_TRY(ask_run(dir.text, &facts));
    CT_TRY(ct_facts_complete(file.text, &facts, options.known));
    CT_TRY(ct_model_create(file.text, &facts, &tensors, prefix.text, &model));
    CT_TRY(set_device(model, &options));
    ct_move(out, &model);
    return CT_OK;
}

void ct_model_free(ct_model **model) {
    if (model == NULL || *model == NULL) return;
    ct_model *m = *model;
    ct_engine_close(m);
    ct_free(m->numbers);
    ct_free(m->running);
    ct_free(m->row);
    ct_graph_free(&m->graph);
    ct_facts_free(&m->facts);
    ct_free(m->path);
    ct_free(m);
    *model = NULL;
}

const ct_model_facts *ct_model_facts_of(const ct_model *model) {
    return &model->view;
}

const char *ct_model_class(const ct_model *m, int label) {
    if (label < 0 || label >= m->facts.n_classes) return "";
    return m->facts.class_names != NULL ? m->facts.class_names[label] : m->numbers[label];
}

int ct_model_find_class(const ct_model *m, const char *name) {
    for (int c = 0; c < m->facts.n_classes; c++)
        if (strcmp(ct_model_class(m, c), name) == 0) return c;
    return -1;
}
