#include "run/run.h"

#include <math.h>
#include <string.h>

#include "run/training.h"
#include "run/validation.h"
#include "util/memory.h"

#define SIDE_BY_SIDE 4 /* worlds whose models are read together */

/* A model, a row of a bank, that is tried on a part of the test samples. */
typedef struct trial {
    int model, part;
} trial;

/* Models that are to be scored, and what they have reached so far. */
typedef struct group {
    const ct_bank *params;
    ct_bank *running;
    int n;
    const trial *trials; /* [n] */
    ct_score *sums;      /* [n] */
    uint32_t *confusion; /* [n][n_classes][n_classes] true and predicted class; or NULL */
} group;

/* Test samples of one part, at most a batch of them. */
typedef struct slice {
    int part, n;
    size_t first;
} slice;

/* Enters the predictions of one job's batch into its confusion matrix. */
static void count_pairs(const ct_run *run, const ct_batch *batch, const int *predictions,
                        uint32_t *confusion) {
    const ct_images *images =
        run->test_loader != NULL ? ct_loader_images(run->test_loader) : &run->dataset.test;
    size_t n_classes = (size_t)run->dataset.n_classes;
    for (int s = 0; s < batch->n; s++)
        confusion[(size_t)images->labels[batch->index[s]] * n_classes + (size_t)predictions[s]]++;
}

/* A job for every trial and every slice of its part; job k is of trial of[k]. */
static int list_jobs(const group *g, const slice *slices, int n_slices, ct_job *jobs, int *of) {
    int n = 0;
    for (int t = 0; t < g->n; t++)
        for (int b = 0; b < n_slices; b++) {
            if (slices[b].part != g->trials[t].part) continue;
            of[n] = t;
            jobs[n++] = (ct_job){.model = g->trials[t].model, .batch = b};
        }
    return n;
}

static void add_score(ct_score *sum, const ct_score *more) {
    sum->n += more->n;
    sum->n_correct += more->n_correct;
    sum->loss_sum += more->loss_sum;
}

static void add_scores(const ct_run *run, const ct_work *work, const int *of,
                       const ct_score *scores, const int *predictions, group *g) {
    size_t n_classes = (size_t)run->dataset.n_classes, size = (size_t)run->plan->max_batch;
    for (int k = 0; k < work->n_jobs; k++) {
        add_score(&g->sums[of[k]], &scores[k]);
        if (predictions != NULL)
            count_pairs(run, &work->batches[work->jobs[k].batch], predictions + (size_t)k * size,
                        g->confusion + (size_t)of[k] * n_classes * n_classes);
    }
}

/* Adds up scores of slices of run->test, whose samples the batches have, all jobs in one call. */
static ct_status score_slices(ct_run *run, const slice *slices, const ct_batch *batches,
                              int n_slices, group *g) {
    static const char what[] = "the scores";
    size_t most = (size_t)g->n * (size_t)n_slices, size = (size_t)run->plan->max_batch;
    CT_SCOPED_BLOCK(ct_job) jobs = NULL;
    CT_SCOPED_BLOCK(ct_score) scores = NULL;
    CT_SCOPED_BLOCK(int) of = NULL;
    CT_SCOPED_BLOCK(int) predictions = NULL;
    CT_TRY(ct_make(&jobs, most, what));
    CT_TRY(ct_make(&of, most, what));
    int n_jobs = list_jobs(g, slices, n_slices, jobs, of);
    if (n_jobs == 0) return CT_OK;
    CT_TRY(ct_make(&scores, (size_t)n_jobs, what));
    if (g->confusion != NULL) CT_TRY(ct_make(&predictions, (size_t)n_jobs * size, what));
    ct_work work = {.params = g->params,
                    .buffers = g->running->n > 0 ? g->running : NULL,
                    .source = run->test,
                    .batches = batches,
                    .jobs = jobs,
                    .n_jobs = n_jobs};
    CT_TRY(ct_evaluate(run->plan, &work, scores, predictions));
    add_scores(run, &work, of, scores, predictions, g);
    return CT_OK;
}

/* Every part of this process in batches of the plan's size, in order. */
static ct_status cut_parts(const ct_run *run, slice **out, int *n_slices) {
    size_t size = (size_t)run->plan->max_batch, n = 0;
    for (int k = 0; k < run->n_parts; k++) n += (run->parts[k].n_test + size - 1) / size;
    CT_TRY(ct_make(out, n, "the test batches"));
    n = 0;
    for (int k = 0; k < run->n_parts; k++)
        for (size_t at = 0; at < run->parts[k].n_test; at += size) {
            size_t left = run->parts[k].n_test - at;
            (*out)[n++] =
                (slice){k, (int)(left < size ? left : size), run->parts[k].first_test + at};
        }
    *n_slices = (int)n;
    return CT_OK;
}

static int count_trials(const group *groups, int n_groups) {
    int n = 0;
    for (int k = 0; k < n_groups; k++) n += groups[k].n;
    return n;
}

/* Slices of a call: jobs enough that threads hardly wait for each other at its end, and a device
 * hardly ever; and few enough to tell between two calls how far it is. */
static int slices_at_once(const ct_run *run, int n_trials) {
    int n_jobs = 64 * run->backend->n_threads * run->backend->poll_every;
    return n_jobs / (n_trials > 0 ? n_trials : 1) + 1;
}

/* A test part in memory: many batches at once. */
static ct_status score_in_memory(ct_run *run, const slice *slices, int n_slices, group *groups,
                                 int n_groups) {
    size_t n = run->dataset.test.n;
    CT_SCOPED_BLOCK(uint32_t) index = NULL;
    CT_SCOPED_BLOCK(ct_batch) batches = NULL;
    CT_TRY(ct_make(&index, n, "the test batches"));
    CT_TRY(ct_make(&batches, (size_t)n_slices, "the test batches"));
    for (size_t i = 0; i < n; i++) index[i] = (uint32_t)i;
    for (int b = 0; b < n_slices; b++)
        batches[b] = (ct_batch){.n = slices[b].n, .index = index + slices[b].first};
    int n_trials = count_trials(groups, n_groups), most = slices_at_once(run, n_trials);
    for (int b = 0, some; b < n_slices; b += some) {
        some = n_slices - b < most ? n_slices - b : most;
        ct_training_show_scoring(run, n_trials, (double)b / n_slices);
        for (int k = 0; k < n_groups; k++)
            CT_TRY(score_slices(run, slices + b, batches + b, some, &groups[k]));
    }
    return CT_OK;
}

/* A streamed one: the same batches, each for all groups before the next. */
static ct_status score_streamed(ct_run *run, const slice *slices, int n_slices, group *groups,
                                int n_groups) {
    for (int b = 0; b < n_slices; b++) {
        ct_batch batch;
        ct_training_show_scoring(run, count_trials(groups, n_groups), (double)b / n_slices);
        CT_TRY(ct_run_test_batch(run, &batch));
        batch.n = slices[b].n; /* a part's last one may be filled up */
        for (int k = 0; k < n_groups; k++)
            CT_TRY(score_slices(run, &slices[b], &batch, 1, &groups[k]));
    }
    return CT_OK;
}

static ct_status score_groups(ct_run *run, group *groups, int n_groups) {
    CT_SCOPED_BLOCK(slice) slices = NULL;
    int n_slices = 0;
    if (!ct_run_is_tested(run)) return CT_OK;
    if (count_trials(groups, n_groups) == 0) return CT_OK;
    CT_TRY(cut_parts(run, &slices, &n_slices));
    return run->test_loader != NULL ? score_streamed(run, slices, n_slices, groups, n_groups)
                                    : score_in_memory(run, slices, n_slices, groups, n_groups);
}

/* NaN: nothing was tested. */
static double accuracy_of(const ct_score *sum) {
    return sum->n > 0 ? (double)sum->n_correct / sum->n : NAN;
}

static double loss_of(const ct_score *sum) {
    return sum->n > 0 ? sum->loss_sum / sum->n : NAN;
}

/* ---- how far models are apart ---- */

/* sum + |row - mean|^2, term by term */
static ct_status add_distance(const ct_bank *x, int row, const float *mean, float *values, size_t n,
                              double *sum) {
    CT_TRY(ct_bank_read(x, row, 0, n, values));
    for (size_t k = 0; k < n; k++) {
        double d = (double)values[k] - (double)mean[k];
        *sum += d * d;
    }
    return CT_OK;
}

static bool are_finite(const float *values, size_t n) {
    bool all = true;
    for (size_t k = 0; k < n; k++) all = all && isfinite(values[k]);
    return all;
}

/* Some worlds, read and added up side by side: the terms of one sum wait for each other. */
typedef struct worlds {
    int first, n;
    const float *mean[SIDE_BY_SIDE], *row[SIDE_BY_SIDE]; /* beyond n: the first world's once more */
    double sum[SIDE_BY_SIDE];
} worlds;

/* sum + |row - mean|^2 of every world, term by term */
static void add_distances(worlds *w, size_t n) {
    double sum[SIDE_BY_SIDE];
    memcpy(sum, w->sum, sizeof sum);
    for (size_t k = 0; k < n; k++)
        for (int j = 0; j < SIDE_BY_SIDE; j++) {
            double d = (double)w->row[j][k] - (double)w->mean[j][k];
            sum[j] += d * d;
        }
    memcpy(w->sum, sum, sizeof sum);
}

/* Rows first, first + step, ... of the worlds, into their part of the room. */
static ct_status read_worlds(const worlds *w, const ct_bank *bank, int first, int step, float *room,
                             const float **out) {
    int rows[SIDE_BY_SIDE];
    for (int j = 0; j < w->n; j++) rows[j] = first + j * step;
    for (int j = 0; j < SIDE_BY_SIDE; j++) out[j] = room + (size_t)(j < w->n ? j : 0) * bank->n;
    return ct_bank_pack(bank, rows, w->n, room);
}

/* (1/n) sum_i |x_i - mean|^2 of each world's living agents, and the first of them that diverged */
static ct_status measure_worlds(ct_run *run, worlds *w, ct_evaluation *out) {
    size_t n = run->graph.n_weights;
    int n_agents = run->agents.n_agents, n_alive[SIDE_BY_SIDE] = {0};
    float *means = run->read_rows, *rows = means + SIDE_BY_SIDE * n;
    CT_TRY(read_worlds(w, &run->consensus, w->first, 1, means, w->mean));
    for (int i = 0; i < n_agents; i++) {
        int row = w->first * n_agents + i;
        double before[SIDE_BY_SIDE];
        memcpy(before, w->sum, sizeof before);
        CT_TRY(read_worlds(w, run->all_x, row, n_agents, rows, w->row));
        add_distances(w, n);
        for (int j = 0; j < w->n; j++, row += n_agents) {
            bool is_alive = ct_run_is_alive(run, row, run->agents.iteration);
            n_alive[j] += is_alive;
            if (!is_alive) w->sum[j] = before[j];
            if (is_alive && out[j].diverged < 0 && !isfinite(w->sum[j]) &&
                !are_finite(w->row[j], n))
                out[j].diverged = i;
        }
    }
    for (int j = 0; j < w->n; j++) out[j].consensus_distance = w->sum[j] / n_alive[j];
    return CT_OK;
}

static ct_status measure_distances(ct_run *run, ct_evaluation *out) {
    size_t room = 2 * SIDE_BY_SIDE * run->graph.n_weights;
    if (run->read_rows == NULL) CT_TRY(ct_stage_create(run->backend, room, false, &run->read_rows));
    for (int k = 0; k < run->n_worlds; k += SIDE_BY_SIDE) {
        worlds w = {.first = k, .n = run->n_worlds - k};
        if (w.n > SIDE_BY_SIDE) w.n = SIDE_BY_SIDE;
        CT_TRY(measure_worlds(run, &w, out + k));
    }
    return CT_OK;
}

/* ---- every agent, and the consensus ---- */

/* Of one world's living agents that have something to be tested on; sums: [n_agents] */
static void summarise(ct_run *run, int world, const ct_score *sums, ct_evaluation *e) {
    int n = run->agents.n_agents, n_tested = 0;
    for (int i = 0; i < n; i++) {
        bool is_alive = ct_run_is_alive(run, world * n + i, run->agents.iteration);
        run->local_accuracy[world * n + i] = is_alive ? accuracy_of(&sums[i]) : NAN;
        n_tested += is_alive && sums[i].n > 0;
    }
    e->local_accuracy_mean = n_tested > 0 ? 0 : NAN;
    e->local_accuracy_min = n_tested > 0 ? 1 : NAN;
    e->local_accuracy_max = n_tested > 0 ? 0 : NAN;
    for (int i = 0; i < n; i++) {
        if (!ct_run_is_alive(run, world * n + i, run->agents.iteration)) continue;
        double accuracy = run->local_accuracy[world * n + i];
        if (e->diverged < 0 && !isfinite(sums[i].loss_sum)) e->diverged = i;
        if (isnan(accuracy)) continue;
        e->local_accuracy_mean += accuracy / n_tested;
        if (accuracy < e->local_accuracy_min) e->local_accuracy_min = accuracy;
        if (accuracy > e->local_accuracy_max) e->local_accuracy_max = accuracy;
    }
}

/* What own rows are tried on, their own models or their worlds' consensus. */
static void list_trials(const ct_run *run, bool is_consensus, trial *out) {
    const ct_agents *a = &run->agents;
    for (int i = 0; i < a->n; i++)
        out[i] = (trial){is_consensus ? (a->first + i) / a->n_agents : i,
                         ct_run_part_of(run, a->first + i)};
}

/* Every rank scores its own agents, if they are wanted (own: not NULL); the one that leads, the
 * consensus too. */
static ct_status score_all(ct_run *run, ct_score *consensus, ct_score *averaged, ct_score *own,
                           ct_evaluation *out) {
    ct_agents *a = &run->agents;
    ct_average *average = &run->average;
    CT_SCOPED_BLOCK(trial) trials = NULL;
    CT_TRY(ct_make(&trials, (size_t)(a->n + run->n_worlds), "the scores"));
    list_trials(run, false, trials);
    for (int k = 0; k < run->n_worlds; k++) trials[a->n + k] = (trial){k, 0};
    group groups[] = {{&a->x, &a->running, own != NULL ? a->n : 0, trials, own, NULL},
                      {&run->consensus, &run->consensus_running, run->n_worlds, trials + a->n,
                       consensus, run->confusion},
                      {&average->consensus, &average->consensus_running, run->n_worlds,
                       trials + a->n, averaged, NULL}};
    CT_TRY(ct_transport_collect(run->transport, &a->x, run->all_x));
    if (a->running.n > 0)
        CT_TRY(ct_transport_collect(run->transport, &a->running, run->all_running));
    if (!ct_run_leads(run)) return score_groups(run, groups, 1);
    CT_TRY(ct_run_update_consensus(run));
    CT_TRY(measure_distances(run, out));
    return score_groups(run, groups, ct_run_has_average(run) ? 3 : 2);
}

static ct_status score_shared(ct_run *run, bool with_agents, ct_evaluation *out) {
    int n = run->agents.n_agents, n_rows = run->agents.n_rows;
    CT_SCOPED_BLOCK(ct_score) sums = NULL;
    CT_TRY(ct_make(&sums, (size_t)(2 * run->n_worlds + run->agents.n + n_rows), "the scores"));
    ct_score *averaged = sums + run->n_worlds, *own = averaged + run->n_worlds;
    ct_score *all = own + run->agents.n;
    CT_TRY(score_all(run, sums, averaged, with_agents ? own : NULL, out));
    if (with_agents) CT_TRY(ct_transport_gather(run->transport, own, sizeof *own, all));
    for (int k = 0; k < run->n_worlds; k++) {
        if (ct_run_leads(run)) out[k].consensus_accuracy = accuracy_of(&sums[k]);
        if (ct_run_leads(run)) out[k].consensus_loss = loss_of(&sums[k]);
        out[k].averaged_accuracy = accuracy_of(&averaged[k]);
        out[k].averaged_loss = loss_of(&averaged[k]);
        summarise(run, k, all + k * n, &out[k]);
    }
    return CT_OK;
}

/* ---- every agent on its own test samples, and the consensus on everyone's ---- */

/* What a row's owner finds out. */
typedef struct row_scores {
    ct_score own, consensus, averaged;
    double distance;
} row_scores;

static ct_status measure_rows(ct_run *run, row_scores *rows) {
    const ct_agents *a = &run->agents;
    size_t n = run->graph.n_weights;
    CT_SCOPED_BLOCK(float) mean = NULL;
    CT_SCOPED_BLOCK(float) row = NULL;
    CT_TRY(ct_make(&mean, n, "a model"));
    CT_TRY(ct_make(&row, n, "a model"));
    for (int i = 0; i < a->n; i++) {
        CT_TRY(ct_bank_read(&run->consensus, (a->first + i) / a->n_agents, 0, n, mean));
        CT_TRY(add_distance(&a->x, i, mean, row, n, &rows[i].distance));
    }
    return CT_OK;
}

static ct_status score_rows(ct_run *run, row_scores *rows, uint32_t *confusion) {
    ct_agents *a = &run->agents;
    ct_average *average = &run->average;
    size_t n = (size_t)a->n;
    CT_SCOPED_BLOCK(trial) trials = NULL;
    CT_SCOPED_BLOCK(ct_score) sums = NULL;
    CT_TRY(ct_make(&trials, 2 * n, "the scores"));
    CT_TRY(ct_make(&sums, 3 * n, "the scores"));
    list_trials(run, false, trials);
    list_trials(run, true, trials + n);
    group groups[] = {
        {&a->x, &a->running, a->n, trials, sums, NULL},
        {&run->consensus, &run->consensus_running, a->n, trials + n, sums + n, confusion},
        {&average->consensus, &average->consensus_running, a->n, trials + n, sums + 2 * n, NULL}};
    int n_groups = !run->has_consensus ? 1 : ct_run_has_average(run) ? 3 : 2;
    CT_TRY(score_groups(run, groups, n_groups));
    for (size_t i = 0; i < n; i++) {
        rows[i].own = sums[i];
        rows[i].consensus = sums[n + i];
        rows[i].averaged = sums[2 * n + i];
        rows[i].distance = run->has_consensus ? 0 : NAN;
    }
    return run->has_consensus ? measure_rows(run, rows) : CT_OK;
}

/* One world's rows, added up in the order of the agents. */
static void add_rows(ct_run *run, int world, const row_scores *rows, ct_score *own,
                     ct_evaluation *out) {
    int n = run->agents.n_agents, n_alive = 0;
    ct_score sum = {0}, averaged = {0};
    double distance = 0;
    for (int i = 0; i < n; i++) {
        bool is_alive = ct_run_is_alive(run, world * n + i, run->agents.iteration);
        add_score(&sum, &rows[i].consensus);
        add_score(&averaged, &rows[i].averaged);
        distance += is_alive ? rows[i].distance : 0;
        n_alive += is_alive;
        own[i] = rows[i].own;
    }
    out->consensus_accuracy = accuracy_of(&sum);
    out->consensus_loss = loss_of(&sum);
    out->averaged_accuracy = accuracy_of(&averaged);
    out->averaged_loss = loss_of(&averaged);
    out->consensus_distance = distance / n_alive;
    summarise(run, world, own, out);
}

/* Counts of all rows: [rows][width], into run->confusion of their worlds. */
static ct_status add_confusion(ct_run *run, const uint32_t *mine, size_t width) {
    const ct_agents *a = &run->agents;
    CT_SCOPED_BLOCK(uint32_t) all = NULL;
    CT_TRY(ct_make(&all, (size_t)a->n_rows * width, "the scores"));
    CT_TRY(ct_transport_gather(run->transport, mine, width * sizeof *mine, all));
    for (int row = 0; row < a->n_rows; row++)
        for (size_t k = 0; k < width; k++)
            run->confusion[(size_t)(row / a->n_agents) * width + k] += all[(size_t)row * width + k];
    return CT_OK;
}

static ct_status score_own(ct_run *run, ct_evaluation *out) {
    ct_agents *a = &run->agents;
    size_t width = (size_t)run->dataset.n_classes * (size_t)run->dataset.n_classes;
    CT_SCOPED_BLOCK(row_scores) mine = NULL;
    CT_SCOPED_BLOCK(row_scores) all = NULL;
    CT_SCOPED_BLOCK(ct_score) own = NULL;
    CT_SCOPED_BLOCK(uint32_t) confusion = NULL;
    CT_TRY(ct_make(&mine, (size_t)a->n, "the scores"));
    CT_TRY(ct_make(&all, (size_t)a->n_rows, "the scores"));
    CT_TRY(ct_make(&own, (size_t)a->n_agents, "the scores"));
    if (run->confusion != NULL) CT_TRY(ct_make(&confusion, (size_t)a->n * width, "the scores"));
    /* sites look for it when all have ended */
    if (run->config.site == NULL) CT_TRY(ct_run_find_consensus(run));
    CT_TRY(score_rows(run, mine, confusion));
    CT_TRY(ct_transport_gather(run->transport, mine, sizeof *mine, all));
    for (int k = 0; k < run->n_worlds; k++) add_rows(run, k, all + k * a->n_agents, own, &out[k]);
    if (confusion != NULL) CT_TRY(add_confusion(run, confusion, width));
    if (!run->config.save_agents || run->config.site != NULL)
        return CT_OK; /* which are written by the rank that leads */
    CT_TRY(ct_transport_collect(run->transport, &a->x, run->all_x));
    return a->running.n > 0 ? ct_transport_collect(run->transport, &a->running, run->all_running)
                            : CT_OK;
}

ct_status ct_eval_agents_parse(const char *text, long *every) {
    int64_t number = 0;
    bool is_end = strcmp(text, "end") == 0, is_never = strcmp(text, "never") == 0;
    bool is_number = ct_parse_i64(text, &number) && number >= 1 && number <= 1000000;
    *every = is_never ? -1 : (long)number;
    if (is_end || is_never || is_number) return CT_OK;
    return ct_refuse(
        "eval-agents",
        "@eval-agents %.40s: must be a number of epochs from 1 to 1000000, end or never", text);
}

ct_status ct_run_score_all(ct_run *run, bool with_agents, ct_evaluation *out) {
    size_t n_pairs = (size_t)run->dataset.n_classes * (size_t)run->dataset.n_classes;
    if (run->confusion != NULL)
        memset(run->confusion, 0, (size_t)run->n_worlds * n_pairs * sizeof *run->confusion);
    for (int k = 0; k < run->n_worlds; k++) {
        out[k].is_averaged = run->average.kind != CT_AVERAGE_NONE;
        out[k].diverged = -1;
    }
    CT_TRY(ct_run_find_averaged(run));
    CT_TRY(run->is_own ? score_own(run, out) : score_shared(run, with_agents, out));
    return ct_validation_score(run, out);
}
