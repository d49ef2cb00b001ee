/* A site that trains: how it joins its neighbours. */
#include "record/file.h"
#include "run/training_internal.h"
#include "site/site.h"
#include "util/log.h"
#include "util/memory.h"

static ct_status read_model(void *context, float *row) {
    const ct_run *run = context;
    size_t n = run->graph.n_weights;
    CT_TRY(ct_bank_read(&run->agents.x, 0, 0, n, row));
    if (run->graph.n_buffer_values == 0) return CT_OK;
    return ct_bank_read(&run->agents.running, 0, 0, run->graph.n_buffer_values, row + n);
}

static long rounds_before(const void *context, long iteration) {
    const ct_run *run = context;
    return ct_local_steps_rounds(&run->schedule.local, iteration);
}

static ct_status forget_bank(ct_bank *bank, float *zeros) {
    memset(zeros, 0, bank->n * sizeof *zeros);
    return ct_bank_write(bank, 0, 0, bank->n, zeros);
}

/* The neighbours' mean instead of one's own model, which is old or was never trained; what an
 * algorithm remembers of it goes as well. The public copy is sent whole to all: it may begin anew. */
static ct_status take_mean(ct_run *run, float *mean) {
    ct_agents *a = &run->agents;
    size_t n = run->graph.n_weights;
    CT_TRY(ct_bank_write(&a->x, 0, 0, n, mean));
    if (run->graph.n_buffer_values > 0)
        CT_TRY(ct_bank_write(&a->running, 0, 0, run->graph.n_buffer_values, mean + n));
    if (ct_copies_are_used(&a->copies)) CT_TRY(ct_bank_write(a->copies.known, 0, 0, n, mean));
    for (int b = 0; b < a->n_buffers; b++)
        if (a->buffers[b].routes == NULL && &a->buffers[b].bank != a->copies.known)
            CT_TRY(forget_bank(&a->buffers[b].bank, mean));
    return CT_OK;
}

/* To iteration k, in which the neighbours are. */
static ct_status jump(ct_training *t, long k, bool has_state, float *mean, int n_mean) {
    ct_run *run = t->run;
    long away = k - t->at.iteration;
    bool is_old = !has_state || away > run->epoch_iterations;
    bool takes_mean = is_old && n_mean > 0;
    if (takes_mean) CT_TRY(take_mean(run, mean));
    if (takes_mean) run->agents.steps.since = rounds_before(run, k);
    CT_TRY(ct_run_miss_average(run, k, takes_mean));
    ct_note("%ld iteration%s missed; going on with iteration %ld and %s", away,
            away == 1 ? " was" : "s were", k + 1,
            takes_mean ? "the mean of the neighbours' models" : "the own model");
    t->at.iteration = t->next = t->progress.first = k;
    t->at.tallies[0] = (ct_tally){0};
    run->agents.iteration = k - 1;
    run->agents.lr = ct_lr_at(&run->lr, k - 1, run->epoch_iterations);
    return CT_OK;
}

static ct_status keep_agreement(const ct_run *run) {
    CT_SCOPED(ct_text) text = {0};
    ct_site_print_agreed(run->config.site, &text);
    CT_TRY(ct_text_status(&text));
    return ct_file_write(ct_record_path(run->config.out, CT_FILE_AGREEMENT).text, text.chars,
                         text.n);
}

ct_status ct_training_join(ct_training *t, bool has_state) {
    ct_run *run = t->run;
    ct_site *site = run->config.site;
    size_t n = run->graph.n_weights + run->graph.n_buffer_values;
    size_t n_sums = run->agents.links.neighbours.n_columns;
    bool is_new = !has_state && !ct_site_is_late(site);
    long k = t->at.iteration;
    int n_mean = 0;
    CT_SCOPED_BLOCK(float) mean = NULL;
    CT_TRY(ct_make(&mean, n, "the neighbours' mean"));
    CT_TRY(keep_agreement(run));
    bool is_averaged = ct_average_is_begun(&run->average, t->progress.n_iterations);
    ct_site_training training = {.n_parameters = n,
                                 .n_mean = is_averaged ? 2 * n : n,
                                 .n_largest_row = n > n_sums ? n : n_sums,
                                 .n_iterations = t->progress.n_iterations,
                                 .has_model = has_state,
                                 .model = read_model,
                                 .rounds = rounds_before,
                                 .context = run};
    CT_TRY(ct_site_enter(site, &training, is_new, &k, is_new ? NULL : mean, &n_mean));
    return k > t->at.iteration ? jump(t, k, has_state, mean, n_mean) : CT_OK;
}
