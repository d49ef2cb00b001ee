/* Models to and from .safetensors files, under PyTorch's parameter names. */
#include "run/run.h"

#include "model/facts.h"
#include "model/weights.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/safetensors.h"

static ct_status put_row(ct_run *run, int agent, const float *row, const float *running) {
    CT_TRY(ct_bank_write(&run->agents.x, agent, 0, run->graph.n_weights, row));
    if (run->graph.n_buffer_values == 0) return CT_OK;
    return ct_bank_write(&run->agents.running, agent, 0, run->graph.n_buffer_values, running);
}

static ct_status load_agents(ct_run *run, const char *path, float *row, float *running) {
    ct_tensors tensors = {0};
    CT_TRY(ct_tensors_read(path, &tensors));
    bool per_agent = ct_weights_are_per_agent(&tensors);
    int n_agents = run->agents.n_agents;
    ct_status status = ct_weights_check(path, &tensors, &run->graph, per_agent ? n_agents : 0);
    for (int i = 0; i < run->agents.n && status == CT_OK; i++) {
        ct_weights_prefix prefix = {""};
        if (per_agent) prefix = ct_weights_prefix_of((run->agents.first + i) % n_agents);
        if (i == 0 || per_agent)
            status = ct_weights_load(path, &tensors, prefix.text, &run->graph, row, running);
        if (status == CT_OK) status = put_row(run, i, row, running);
    }
    ct_tensors_free(&tensors);
    return status;
}

ct_status ct_run_init_params(ct_run *run) {
    CT_SCOPED_BLOCK(float) row = NULL;
    CT_SCOPED_BLOCK(float) running = NULL;
    CT_TRY(ct_make(&row, run->graph.n_weights, "the start values"));
    CT_TRY(ct_make(&running, run->graph.n_buffer_values, "the start values"));
    if (run->config.init[0] != '\0') return load_agents(run, run->config.init, row, running);
    ct_init_buffers(&run->graph, running);
    const float *given = run->external != NULL ? run->external->start : NULL;
    for (int i = 0; i < run->agents.n; i++) {
        /* all agents of a world start from the same values */
        int at = run->agents.first + i;
        if (i == 0 || at % run->agents.n_agents == 0)
            ct_init_params(&run->graph, run->seeds[at / run->agents.n_agents], row);
        CT_TRY(put_row(run, i, given != NULL ? given : row, running));
    }
    return CT_OK;
}

/* What a saved model says about itself. */
static ct_status note_facts(const ct_run *run, ct_fact_notes *out) {
    const ct_dataset *d = &run->dataset;
    CT_SCOPED_BLOCK(const char *) names = NULL;
    CT_TRY(ct_make(&names, (size_t)d->n_classes, "the names of classes"));
    for (int c = 0; c < d->n_classes; c++) names[c] = ct_dataset_class_name(d, c);
    ct_model_facts facts = {.network =
                                run->external != NULL ? CT_NETWORK_EXTERNAL : run->config.model,
                            .norm = run->config.norm,
                            .channels = d->train.channels,
                            .height = d->train.height,
                            .width = d->train.width,
                            .resize = d->resize,
                            .mean = d->mean,
                            .deviation = d->std,
                            .n_classes = d->n_classes,
                            .class_names = d->class_names != NULL ? names : NULL,
                            .algorithm = run->config.algorithm,
                            .loss = run->config.loss,
                            .columns = d->columns,
                            .dataset = run->config.dataset,
                            .data = run->identity.value[CT_ID_data]};
    return ct_facts_write(&facts, out);
}

/* Row first + i of the banks as the i-th model, its values in `row`. */
static ct_status take_row(const ct_graph *g, const ct_bank *x, const ct_bank *running, int at,
                          const char *prefix, float *row, ct_tensor *out) {
    CT_TRY(ct_bank_read(x, at, 0, g->n_weights, row));
    if (g->n_buffer_values > 0)
        CT_TRY(ct_bank_read(running, at, 0, g->n_buffer_values, row + g->n_weights));
    return ct_weights_describe(g, prefix, row, row + g->n_weights, out);
}

/* A row of a bank, and the agent whose name its tensors get; -1: no name. */
typedef struct chosen {
    int row, agent;
} chosen;

/* Writes rows of a parameter bank (and of the running statistics) as one file. */
static ct_status save(const ct_run *run, const ct_bank *x, const ct_bank *running,
                      const chosen *rows, int n_rows, const char *path) {
    const ct_graph *g = &run->graph;
    size_t per_row = (size_t)(g->n_params + g->n_buffers), n = per_row * (size_t)n_rows,
           width = g->n_weights + g->n_buffer_values;
    CT_SCOPED_BLOCK(ct_tensor) tensors = NULL;
    CT_SCOPED_BLOCK(float) values = NULL;
    CT_SCOPED(ct_fact_notes) notes = {.n = 0};
    CT_TRY(ct_make(&tensors, n, "the models to be saved"));
    CT_TRY(ct_make(&values, width * (size_t)n_rows, "the models to be saved"));
    ct_status status = note_facts(run, &notes);
    for (int i = 0; i < n_rows && status == CT_OK; i++) {
        ct_weights_prefix prefix = {""};
        if (rows[i].agent >= 0) prefix = ct_weights_prefix_of(rows[i].agent);
        status = take_row(g, x, running, rows[i].row, prefix.text, values + width * (size_t)i,
                          tensors + per_row * (size_t)i);
    }
    if (status == CT_OK) status = ct_tensors_write_noted(path, tensors, n, notes.notes, notes.n);
    for (size_t t = 0; t < n; t++) ct_free(tensors[t].name);
    return status;
}

ct_status ct_run_save_consensus(ct_run *run, int world, const char *path) {
    return save(run, &run->consensus, &run->consensus_running, &(chosen){world, -1}, 1, path);
}

ct_status ct_run_save_averaged(ct_run *run, int world, const char *path) {
    ct_average *a = &run->average;
    return save(run, &a->consensus, &a->consensus_running, &(chosen){world, -1}, 1, path);
}

ct_status ct_run_save_agent(ct_run *run, int own_row, const char *path) {
    return save(run, &run->agents.x, &run->agents.running, &(chosen){own_row, -1}, 1, path);
}

ct_status ct_run_save_agents(ct_run *run, int world, const char *path) {
    const ct_agents *a = &run->agents;
    bool has_all = run->all_x->n_own == a->n_rows;
    int n_rows = 0;
    CT_SCOPED_BLOCK(chosen) rows = NULL;
    CT_TRY(ct_make(&rows, (size_t)a->n_agents, "the models to be saved"));
    for (int i = 0; i < a->n_agents; i++) {
        int row = world * a->n_agents + i, own_row = row - a->first;
        bool is_own = own_row >= 0 && own_row < a->n;
        bool is_here =
            ct_run_leads(run) || ct_run_home(run, row) == ct_transport_rank(run->transport);
        if (is_here && (has_all || is_own)) rows[n_rows++] = (chosen){has_all ? row : own_row, i};
    }
    return save(run, has_all ? run->all_x : &a->x, has_all ? run->all_running : &a->running, rows,
                n_rows, path);
}
