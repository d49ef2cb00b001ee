#include "run/validation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/rng.h"

enum { HELD = 1 }; /* stream of CT_RNG_SPLIT; 0 is a data set's own test part */

static bool is_wanted(const ct_run *run) {
    return run->config.validation_fraction > 0;
}

/* Of an agent's n samples; some are left to train on. */
static size_t n_held(const ct_run *run, size_t n) {
    size_t held = (size_t)ceil(run->config.validation_fraction * (double)n);
    return held < n ? held : n - 1;
}

size_t ct_validation_left(const ct_run *run, size_t n) {
    return is_wanted(run) ? n - n_held(run, n) : n;
}

/* ---- who is held out ---- */

typedef struct draw {
    uint32_t order, sample;
} draw;

static int by_order(const void *a, const void *b) {
    const draw *x = a, *y = b;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

static int by_sample(const void *a, const void *b) {
    const draw *x = a, *y = b;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

/* Trained ones keep their order; held ones follow, ascending. */
static void move_held(uint32_t *list, size_t n, draw *draws, size_t held) {
    size_t kept = 0;
    qsort(draws, n, sizeof *draws, by_order);
    qsort(draws, held, sizeof *draws, by_sample);
    for (size_t k = 0; k < n; k++) {
        draw wanted = {.sample = list[k]};
        if (bsearch(&wanted, draws, held, sizeof *draws, by_sample) == NULL) list[kept++] = list[k];
    }
    for (size_t k = 0; k < held; k++) list[kept + k] = draws[k].sample;
}

static ct_status check(const ct_run *run) {
    const char *option = "validation-fraction";
    if (run->is_own)
        return ct_refuse(option, "@validation-fraction does not go with @partition own: put a part "
                                 "of each agent's data aside as its test part");
    if (run->external != NULL)
        return ct_refuse(option, "@validation-fraction does not go with an external model");
    if (run->dataset.train_pictures != NULL)
        return ct_refuse(option,
                         "@validation-fraction needs the pictures in memory: more @memory (MiB), "
                         "and @augment off where they are cut out anew at every visit");
    return CT_OK;
}

ct_status ct_validation_choose(const ct_run *run, uint64_t seed, ct_partition *split) {
    CT_SCOPED_BLOCK(draw) draws = NULL;
    if (!is_wanted(run)) return CT_OK;
    CT_TRY(check(run));
    CT_TRY(ct_make(&draws, split->begin[split->n_agents], "the validation samples"));
    for (int agent = 0; agent < split->n_agents; agent++) {
        size_t n = ct_partition_size(split, agent);
        uint32_t *list = split->index + split->begin[agent];
        for (size_t k = 0; k < n; k++) {
            ct_rng rng;
            ct_rng_init(&rng, seed, CT_RNG_SPLIT, (uint32_t)agent, HELD, list[k]);
            draws[k] = (draw){ct_rng_u32(&rng), list[k]};
        }
        move_held(list, n, draws, n_held(run, n));
    }
    return CT_OK;
}

/* ---- where they lie ---- */

/* The first or the last part of every list. */
static ct_status take_part(const ct_run *run, bool is_held, ct_partition *out) {
    const ct_partition *all = &run->partition;
    out->n_agents = all->n_agents;
    CT_TRY(ct_make(&out->begin, (size_t)all->n_agents + 1, "the validation samples"));
    CT_TRY(ct_make(&out->index, all->begin[all->n_agents], "the validation samples"));
    for (int row = 0; row < all->n_agents; row++) {
        size_t n = ct_partition_size(all, row), held = n_held(run, n);
        const uint32_t *from = all->index + all->begin[row] + (is_held ? n - held : 0);
        size_t n_taken = is_held ? held : n - held;
        memcpy(out->index + out->begin[row], from, n_taken * sizeof *from);
        out->begin[row + 1] = out->begin[row] + n_taken;
    }
    return CT_OK;
}

ct_status ct_validation_place(ct_run *run) {
    if (!is_wanted(run)) return CT_OK;
    CT_TRY(take_part(run, false, &run->trained));
    return take_part(run, true, &run->held);
}

/* ---- scores ---- */

static int count_batches(const ct_run *run, int row) {
    int size = run->plan->max_batch;
    return ((int)ct_partition_size(&run->held, row) + size - 1) / size;
}

/* Batches of an own row, and a job for each under its world's model. */
static int add_row(const ct_run *run, int i, ct_batch *batches, ct_job *jobs, int n) {
    int row = run->agents.first + i, size = run->plan->max_batch;
    int left = (int)ct_partition_size(&run->held, row);
    const uint32_t *index = run->held.index + run->held.begin[row];
    for (; left > 0; left -= size, index += size, n++) {
        batches[n] = (ct_batch){.n = left < size ? left : size, .index = index};
        jobs[n] = (ct_job){.model = row / run->agents.n_agents, .batch = n, .out = i};
    }
    return n;
}

/* The worlds' models of `params` on own rows' held samples: sums [own rows]. */
static ct_status score_rows(ct_run *run, const ct_bank *params, ct_bank *running, ct_score *sums) {
    const ct_agents *a = &run->agents;
    size_t most = 0;
    for (int i = 0; i < a->n; i++) most += (size_t)count_batches(run, a->first + i);
    CT_SCOPED_BLOCK(ct_batch) batches = NULL;
    CT_SCOPED_BLOCK(ct_job) jobs = NULL;
    CT_SCOPED_BLOCK(ct_score) scores = NULL;
    CT_TRY(ct_make(&batches, most, "the validation batches"));
    CT_TRY(ct_make(&jobs, most, "the validation batches"));
    CT_TRY(ct_make(&scores, most, "the validation scores"));
    ct_work work = {.params = params,
                    .buffers = running->n > 0 ? running : NULL,
                    .source = run->train,
                    .batches = batches,
                    .jobs = jobs};
    for (int i = 0; i < a->n; i++) work.n_jobs = add_row(run, i, batches, jobs, work.n_jobs);
    if (work.n_jobs > 0) CT_TRY(ct_evaluate(run->plan, &work, scores, NULL));
    for (int k = 0; k < work.n_jobs; k++) {
        ct_score *sum = &sums[jobs[k].out];
        sum->n += scores[k].n;
        sum->n_correct += scores[k].n_correct;
        sum->loss_sum += scores[k].loss_sum;
    }
    return CT_OK;
}

/* Shares and mean losses of every world, of all ranks' rows in their order. */
static ct_status score_worlds(ct_run *run, const ct_bank *params, ct_bank *running, double *shares,
                              double *losses) {
    const ct_agents *a = &run->agents;
    CT_SCOPED_BLOCK(ct_score) own = NULL;
    CT_SCOPED_BLOCK(ct_score) all = NULL;
    CT_TRY(ct_make(&own, (size_t)a->n, "the validation scores"));
    CT_TRY(ct_make(&all, (size_t)a->n_rows, "the validation scores"));
    CT_TRY(score_rows(run, params, running, own));
    CT_TRY(ct_transport_gather(run->transport, own, sizeof *own, all));
    for (int k = 0; k < run->n_worlds; k++) {
        double n = 0, n_correct = 0, loss = 0;
        for (int row = k * a->n_agents; row < (k + 1) * a->n_agents; row++) {
            n += all[row].n;
            n_correct += all[row].n_correct;
            loss += all[row].loss_sum;
        }
        shares[k] = n_correct / n;
        losses[k] = loss / n;
    }
    return CT_OK;
}

ct_status ct_validation_score(ct_run *run, ct_evaluation *out) {
    size_t n = (size_t)run->n_worlds;
    CT_SCOPED_BLOCK(double) values = NULL;
    ct_average *average = &run->average;
    for (size_t k = 0; k < n; k++) out[k].is_validated = is_wanted(run);
    if (!is_wanted(run)) return CT_OK;
    CT_TRY(ct_make(&values, 4 * n, "the validation scores"));
    for (size_t k = 0; k < 4 * n; k++) values[k] = NAN;
    CT_TRY(ct_run_find_consensus(run));
    CT_TRY(score_worlds(run, &run->consensus, &run->consensus_running, values, values + n));
    if (ct_run_has_average(run))
        CT_TRY(score_worlds(run, &average->consensus, &average->consensus_running, values + 2 * n,
                            values + 3 * n));
    for (size_t k = 0; k < n; k++) {
        out[k].validation_accuracy = values[k];
        out[k].validation_loss = values[n + k];
        out[k].averaged_validation_accuracy = values[2 * n + k];
    }
    return CT_OK;
}
