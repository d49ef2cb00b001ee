#include "backend/external.h"

#include <stdio.h>
#include <string.h>

#include "util/memory.h"

typedef struct external_source {
    ct_source base;
    const int32_t *labels;
    const uint32_t *numbers; /* NULL: a sample's number is its place */
} external_source;

typedef struct external_plan {
    ct_plan base;
    const ct_external *caller;
    long iteration;
    int first_row, n_agents;
    uint32_t *index;               /* [max_batch] */
    int32_t *labels, *predictions; /* [max_batch] */
    float *z, *dz;                 /* [max_batch][r] */
    float *sums;                   /* [n_classes][r + 1] of a job, sent or received */
    float *scratch;                /* of ct_ccl */
    float *x, *g; /* [n_weights] where the caller's memory is not the banks'; else NULL */
    float *cross; /* [n_cross_room] likewise: neighbours' features */
    size_t n_cross_room;
} external_plan;

/* One gradient job while the caller is at it: what ct_job_contrast needs to know. */
typedef struct contrast {
    external_plan *plan;
    const ct_objective *objective;
    int k, row; /* the job, and the row it writes to */
    double terms[CT_N_TERMS];
    ct_status status;
    bool is_done;
} contrast;

/* ---- the graph ---- */

static ct_status check_parameter(const ct_external *e, int p) {
    const ct_parameter *own = &e->parameters[p];
    if (own->name == NULL || own->name[0] == '\0' || strlen(own->name) >= CT_PARAM_NAME)
        return ct_fail(CT_INVAL, "parameter %d needs a name of 1 to %d characters", p,
                       CT_PARAM_NAME - 1);
    if (own->n_dims < 0 || own->n_dims > CT_MAX_DIMS)
        return ct_fail(CT_INVAL, "parameter '%s' has %d dimensions; 0 to %d are possible",
                       own->name, own->n_dims, CT_MAX_DIMS);
    for (int q = 0; q < p; q++)
        if (strcmp(e->parameters[q].name, own->name) == 0)
            return ct_fail(CT_INVAL, "two parameters are called '%s'", own->name);
    return CT_OK;
}

static ct_status add_parameter(const ct_parameter *from, ct_graph *g) {
    ct_param *to = &g->params[g->n_params];
    *to = (ct_param){.n_dims = from->n_dims, .offset = g->n_weights, .count = 1};
    snprintf(to->name, sizeof to->name, "%s", from->name);
    for (int d = 0; d < from->n_dims; d++) {
        to->dims[d] = from->dims[d];
        if (from->dims[d] == 0 || to->count > SIZE_MAX / sizeof(double) / from->dims[d])
            return ct_fail(CT_INVAL, "parameter '%s': dimension %d is %zu", from->name, d,
                           from->dims[d]);
        to->count *= from->dims[d];
    }
    if (g->n_weights > SIZE_MAX / sizeof(double) - to->count)
        return ct_fail(CT_INVAL, "parameter '%s' is too large", from->name);
    g->n_weights += to->count;
    g->n_params++;
    return CT_OK;
}

ct_status ct_external_graph(const ct_external *e, int n_classes, ct_graph *out) {
    if (e->gradient == NULL || e->n_parameters < 1 || e->parameters == NULL)
        return ct_fail(CT_INVAL, "an external model needs parameters and a gradient function");
    if (e->n_features < 0)
        return ct_fail(CT_INVAL, "an external model has %d features", e->n_features);
    CT_SCOPED(ct_graph) g = {.n_classes = n_classes};
    snprintf(g.model, sizeof g.model, "%s", e->name != NULL ? e->name : "external");
    CT_TRY(ct_make(&g.params, (size_t)e->n_parameters, "the parameters"));
    for (int p = 0; p < e->n_parameters; p++) {
        CT_TRY(check_parameter(e, p));
        CT_TRY(add_parameter(&e->parameters[p], &g));
    }
    ct_input(&g, (ct_shape){e->n_features > 0 ? e->n_features : 1, 1, 1});
    CT_TRY(g.status);
    ct_move(out, &g);
    return CT_OK;
}

/* ---- jobs ---- */

/* The model where the caller reads it. A device has finished with it: reading from a bank waits. */
static ct_status model_row(external_plan *plan, const ct_bank *bank, int row, const float **out) {
    float first;
    *out = plan->x != NULL ? plan->x : bank->data + (size_t)row * bank->stride;
    if (plan->x != NULL) return ct_bank_read(bank, row, 0, bank->n, plan->x);
    return plan->caller->on_device ? ct_bank_read(bank, row, 0, 1, &first) : CT_OK;
}

static void list_samples(external_plan *plan, const ct_work *work, const ct_batch *batch) {
    const external_source *source = (const external_source *)work->source;
    for (int b = 0; b < batch->n; b++) {
        uint32_t place = batch->index[b];
        plan->index[b] = source->numbers != NULL ? source->numbers[place] : place;
        plan->labels[b] = source->labels[place];
    }
}

static ct_status begin_job(external_plan *plan, const ct_work *work, const ct_job *job,
                           ct_external_job *out) {
    const ct_batch *batch = &work->batches[job->batch];
    int row = plan->first_row + job->batch;
    list_samples(plan, work, batch);
    *out = (ct_external_job){.size = sizeof *out,
                             .iteration = plan->iteration,
                             .world = row / plan->n_agents,
                             .agent = row % plan->n_agents,
                             .n = batch->n,
                             .index = plan->index,
                             .labels = plan->labels};
    return model_row(plan, work->params, job->model, &out->x);
}

/* What the caller has left behind is input like any other. */
static ct_status end_job(const external_plan *plan, const char *what, int code, int n_given,
                         const ct_external_job *job) {
    if (code != 0)
        return ct_fail(CT_INVAL, "the caller's %s failed with %d for agent %d in iteration %ld",
                       what, code, job->agent, job->iteration);
    if (job->n < 1 || job->n > n_given)
        return ct_fail(CT_INVAL,
                       "the caller's %s has %d samples for agent %d; 1 to %d are possible", what,
                       job->n, job->agent, n_given);
    for (int b = 0; b < job->n; b++)
        if (job->labels[b] < 0 || job->labels[b] >= plan->base.graph->n_classes)
            return ct_fail(CT_INVAL,
                           "the caller's %s has label %d for agent %d; there are %d "
                           "classes",
                           what, (int)job->labels[b], job->agent, plan->base.graph->n_classes);
    return CT_OK;
}

static ct_status features(ct_plan *base, const ct_work *work, ct_bank *out, ct_bank *class_sums) {
    external_plan *plan = (external_plan *)base;
    const size_t r = ct_graph_n_features(base->graph);
    for (int k = 0; k < work->n_jobs; k++) {
        ct_external_job job;
        int row = work->jobs[k].out;
        CT_TRY(begin_job(plan, work, &work->jobs[k], &job));
        int n_given = job.n;
        job.z = plan->z;
        int code = plan->caller->features(plan->caller->context, &job);
        CT_TRY(end_job(plan, "features", code, n_given, &job));
        CT_TRY(ct_bank_write(out, row, 0, (size_t)job.n * r, plan->z));
        ct_class_sums(plan->z, job.labels, job.n, r, base->graph->n_classes, plan->sums);
        CT_TRY(ct_bank_write(class_sums, row, 0, class_sums->n, plan->sums));
    }
    return CT_OK;
}

/* ---- CCL within a gradient job ---- */

/* Rows first .. first+n-1 of a bank in host memory, `*stride` floats apart. */
static ct_status host_rows(external_plan *plan, const ct_bank *bank, int first, int n,
                           const float **out, size_t *stride) {
    *stride = bank->stride;
    *out = bank->data + (size_t)first * bank->stride;
    if (!ct_backend_has_device(bank->backend)) return CT_OK;
    *stride = bank->n;
    CT_TRY(ct_reserve(&plan->cross, &plan->n_cross_room, (size_t)n * bank->n, "cross-features"));
    for (int i = 0; i < n; i++)
        CT_TRY(ct_bank_read(bank, first + i, 0, bank->n, plan->cross + (size_t)i * bank->n));
    *out = plan->cross;
    return CT_OK;
}

static ct_status read_lambdas(const ct_objective *o, int row, ct_loss_spec *spec) {
    float own[2];
    if (o->lambdas == NULL) return CT_OK;
    CT_TRY(ct_bank_read(o->lambdas, row, 0, 2, own));
    spec->lambda_m = (double)own[0];
    spec->lambda_d = (double)own[1];
    return CT_OK;
}

static ct_status contrast_batch(contrast *c, const ct_external_job *job) {
    external_plan *plan = c->plan;
    const ct_objective *o = c->objective;
    const ct_graph *g = plan->base.graph;
    ct_loss_spec spec = o->loss;
    ct_ccl_batch batch = {.z = plan->z,
                          .labels = plan->labels,
                          .n = job->n,
                          .r = ct_graph_n_features(g),
                          .n_classes = g->n_classes,
                          .n_cross = o->cross_begin[c->k + 1] - o->cross_begin[c->k],
                          .received = plan->sums};
    CT_TRY(read_lambdas(o, c->row, &spec));
    CT_TRY(ct_bank_read(o->class_sums, c->row, 0, o->class_sums->n, plan->sums));
    CT_TRY(host_rows(plan, o->cross, o->cross_begin[c->k], batch.n_cross, &batch.cross,
                     &batch.cross_stride));
    ct_ccl(&spec, &batch, plan->scratch, plan->dz, c->terms);
    return CT_OK;
}

void ct_job_contrast(ct_external_job *job) {
    contrast *c = (contrast *)job->internal;
    if (c == NULL || c->is_done) return;
    c->is_done = true;
    c->status = contrast_batch(c, job);
}

static ct_status write_losses(const contrast *c, const ct_external_job *job, ct_bank *losses,
                              size_t column) {
    float fields[CT_LOSS_FIELDS] = {0};
    for (int t = 0; t < CT_N_TERMS; t++) fields[t] = (float)c->terms[t];
    fields[CT_LOSS_CE] = (float)job->loss;
    fields[CT_LOSS_CORRECT] = (float)job->n_correct;
    return ct_bank_write(losses, c->row, column, CT_LOSS_FIELDS, fields);
}

static ct_status gradient_job(external_plan *plan, const ct_work *work, const ct_objective *o,
                              int k, ct_bank *out, ct_bank *losses, size_t column) {
    ct_external_job job;
    contrast c = {.plan = plan, .objective = o, .k = k, .row = work->jobs[k].out};
    CT_TRY(begin_job(plan, work, &work->jobs[k], &job));
    int n_given = job.n;
    job.g = plan->g != NULL ? plan->g : out->data + (size_t)c.row * out->stride;
    if (o->loss.ccl) {
        memset(plan->dz, 0,
               (size_t)job.n * ct_graph_n_features(plan->base.graph) * sizeof *plan->dz);
        job.z = plan->z;
        job.dz = plan->dz;
        job.internal = &c;
    }
    int code = plan->caller->gradient(plan->caller->context, &job);
    CT_TRY(end_job(plan, "gradient", code, n_given, &job));
    CT_TRY(c.status);
    if (o->loss.ccl && !c.is_done)
        return ct_fail(CT_INVAL, "the caller's gradient did not call ct_job_contrast, which "
                                 "@loss ccl needs");
    if (plan->g != NULL) CT_TRY(ct_bank_write(out, c.row, 0, out->n, plan->g));
    return write_losses(&c, &job, losses, column);
}

static ct_status gradient(ct_plan *base, const ct_work *work, const ct_objective *objective,
                          ct_bank *out, ct_bank *losses, size_t column) {
    out->fresh = false;
    for (int k = 0; k < work->n_jobs; k++)
        CT_TRY(gradient_job((external_plan *)base, work, objective, k, out, losses, column));
    return CT_OK;
}

static ct_status count_correct(const external_plan *plan, ct_score *score, int *predictions) {
    const int n_classes = plan->base.graph->n_classes;
    for (int b = 0; b < score->n; b++) {
        int32_t class = plan->predictions[b];
        if (class < 0 || class >= n_classes)
            return ct_fail(CT_INVAL, "the caller's evaluate predicts class %d of %d", (int)class,
                           n_classes);
        score->n_correct += class == plan->labels[b];
        if (predictions != NULL) predictions[b] = class;
    }
    return CT_OK;
}

static ct_status evaluate(ct_plan *base, const ct_work *work, ct_score *scores, int *predictions) {
    external_plan *plan = (external_plan *)base;
    for (int k = 0; k < work->n_jobs; k++) {
        ct_external_job job;
        CT_TRY(begin_job(plan, work, &work->jobs[k], &job));
        int n = job.n;
        job.world = job.agent = -1;
        job.predictions = plan->predictions;
        int code = plan->caller->evaluate(plan->caller->context, &job);
        CT_TRY(end_job(plan, "evaluate", code, n, &job));
        scores[k] = (ct_score){.n = n, .loss_sum = job.loss * n};
        CT_TRY(count_correct(plan, &scores[k],
                             predictions != NULL ? predictions + k * base->max_batch : NULL));
    }
    return CT_OK;
}

/* ---- plans and sources ---- */

static void plan_free(ct_plan *base) {
    external_plan *plan = (external_plan *)base;
    ct_free(plan->index);
    ct_free(plan->labels);
    ct_free(plan->predictions);
    ct_free(plan->z);
    ct_free(plan->dz);
    ct_free(plan->sums);
    ct_free(plan->scratch);
    ct_free(plan->x);
    ct_free(plan->g);
    ct_free(plan->cross);
    ct_free(plan);
}

static void source_free(ct_source *source) {
    ct_free(source);
}

static const ct_backend_ops external_ops = {
    .name = "external",
    .source_free = source_free,
    .plan_free = plan_free,
    .features = features,
    .gradient = gradient,
    .evaluate = evaluate,
};

static ct_status take_memory(external_plan *plan) {
    const ct_graph *g = plan->base.graph;
    size_t n = (size_t)plan->base.max_batch, r = ct_graph_n_features(g);
    CT_TRY(ct_make(&plan->index, n, "a batch"));
    CT_TRY(ct_make(&plan->labels, n, "a batch"));
    CT_TRY(ct_make(&plan->predictions, n, "a batch"));
    CT_TRY(ct_make(&plan->z, n * r, "a batch's features"));
    CT_TRY(ct_make(&plan->dz, n * r, "a batch's features"));
    CT_TRY(ct_make(&plan->sums, (size_t)g->n_classes * (r + 1), "class sums"));
    CT_TRY(ct_make(&plan->scratch, ct_ccl_scratch(r, g->n_classes), "class sums"));
    if (!ct_backend_has_device(plan->base.backend) || plan->caller->on_device) return CT_OK;
    CT_TRY(ct_make(&plan->x, g->n_weights, "a model"));
    return ct_make(&plan->g, g->n_weights, "a gradient");
}

ct_status ct_external_plan_create(ct_backend *backend, const ct_graph *graph, int max_batch,
                                  const ct_external *external, ct_plan **out) {
    if (external->on_device && !ct_backend_has_device(backend))
        return ct_refuse("device",
                         "the model's parameters are in device memory, which @device %s "
                         "has not",
                         backend->ops->name);
    external_plan *plan = NULL;
    CT_TRY(ct_make(&plan, 1, "an external model"));
    plan->base =
        (ct_plan){.backend = backend, .ops = &external_ops, .graph = graph, .max_batch = max_batch};
    plan->caller = external;
    plan->n_agents = 1;
    ct_status status = take_memory(plan);
    if (status != CT_OK) {
        plan_free(&plan->base);
        return status;
    }
    *out = &plan->base;
    return CT_OK;
}

ct_status ct_external_source_create(ct_backend *backend, const ct_images *images,
                                    const uint32_t *numbers, ct_source **out) {
    external_source *source = NULL;
    CT_TRY(ct_make(&source, 1, "a data source"));
    *source = (external_source){.base = {.backend = backend, .ops = &external_ops},
                                .labels = images->labels,
                                .numbers = numbers};
    *out = &source->base;
    return CT_OK;
}

void ct_external_begin(ct_plan *base, long iteration, int first_row, int n_agents) {
    external_plan *plan = (external_plan *)base;
    plan->iteration = iteration;
    plan->first_row = first_row;
    plan->n_agents = n_agents;
}
