/* A mean of every agent's models over the iterations, and of all agents' such means:
 *   a <- a + w (x - a)            after every iteration; its weight is                 all [n x P]
 *   ema:B    w = (1 - B) / (1 - B^t) after the t-th, which is (1 - B) sum_k B^(t-k) x_k / (1 - B^t)
 *   tail:F   w = 1 / t after the t-th of the last F of all iterations, which is (1/t) sum_k x_k
 * Nothing is sent; training does not read it. Running statistics (batchnorm) are averaged alike. */
#include "run/average.h"

#include <math.h>
#include <string.h>

#include "run/run.h"

ct_status ct_average_parse(const char *text, ct_average *out) {
    const bool is_ema = strncmp(text, "ema:", 4) == 0, is_tail = strncmp(text, "tail:", 5) == 0;
    double number = 0;
    *out = (ct_average){0};
    if (strcmp(text, "none") == 0) return CT_OK;
    bool is_number = (is_ema || is_tail) && ct_parse_double(strchr(text, ':') + 1, &number);
    if (!is_number || !(number > 0) || number > 1 || (is_ema && number == 1))
        return ct_refuse(
            "average",
            "@average %.40s: must be none, ema:B with 0 < B < 1 or tail:F with 0 < F <= 1", text);
    out->kind = is_ema ? CT_AVERAGE_EMA : CT_AVERAGE_TAIL;
    out->number = number;
    return CT_OK;
}

long ct_average_start(const ct_average *average, double n_iterations) {
    if (average->kind != CT_AVERAGE_TAIL) return 0;
    return (long)(n_iterations - ceil(average->number * n_iterations));
}

ct_status ct_run_create_average(ct_run *run) {
    ct_average *a = &run->average;
    int n = ct_transport_own(run->transport).n;
    size_t n_weights = run->graph.n_weights, n_running = run->graph.n_buffer_values;
    CT_TRY(ct_average_parse(run->config.average, a));
    if (a->kind == CT_AVERAGE_NONE) return CT_OK;
    a->start = ct_average_start(a, (double)run->config.epochs * (double)run->epoch_iterations);
    CT_TRY(ct_bank_create(run->backend, n, 0, n_weights, &a->x));
    CT_TRY(ct_bank_create(run->backend, run->n_worlds, 0, n_weights, &a->consensus));
    if (n_running == 0) return CT_OK;
    CT_TRY(ct_bank_create(run->backend, n, 0, n_running, &a->running));
    return ct_bank_create(run->backend, run->n_worlds, 0, n_running, &a->consensus_running);
}

void ct_average_free(ct_average *a) {
    ct_bank_free(&a->x);
    ct_bank_free(&a->running);
    ct_bank_free(&a->consensus);
    ct_bank_free(&a->consensus_running);
    *a = (ct_average){0};
}

static ct_status add(ct_run *run, const ct_bank *x, ct_bank *mean, double weight) {
    ct_update u = ct_agents_update(&run->agents);
    if (weight == 1)
        SET(&u, mean, {1, x});
    else
        SET(&u, mean, {1 - weight, mean}, {weight, x});
    return ct_update_run(run->backend, &u);
}

ct_status ct_run_add_average(ct_run *run, long iteration) {
    ct_average *a = &run->average;
    double t = (double)(iteration + 1 - a->start);
    a->done = iteration + 1;
    if (a->kind == CT_AVERAGE_NONE || t < 1) return CT_OK;
    double weight =
        a->kind == CT_AVERAGE_TAIL || t == 1 ? 1 / t : (1 - a->number) / (1 - pow(a->number, t));
    CT_TRY(add(run, &run->agents.x, &a->x, weight));
    return a->running.n > 0 ? add(run, &run->agents.running, &a->running, weight) : CT_OK;
}

/* As if its model had been the average all the time. */
ct_status ct_run_miss_average(ct_run *run, long iteration, bool is_new) {
    ct_average *a = &run->average;
    bool had_begun = ct_run_has_average(run);
    a->done = iteration;
    if (a->kind == CT_AVERAGE_NONE || (had_begun && !is_new)) return CT_OK;
    CT_TRY(add(run, &run->agents.x, &a->x, 1));
    return a->running.n > 0 ? add(run, &run->agents.running, &a->running, 1) : CT_OK;
}

bool ct_average_is_begun(const ct_average *a, long done) {
    return a->kind != CT_AVERAGE_NONE && done > a->start;
}

bool ct_run_has_average(const ct_run *run) {
    return ct_average_is_begun(&run->average, run->average.done);
}

ct_status ct_run_find_averaged(ct_run *run) {
    ct_average *a = &run->average;
    /* sites find it with the consensus model, when all have ended */
    if (!ct_run_has_average(run) || run->config.site != NULL) return CT_OK;
    ct_run_weigh_living(run);
    CT_TRY(ct_run_average(run, &a->x, &a->consensus));
    return a->running.n > 0 ? ct_run_average(run, &a->running, &a->consensus_running) : CT_OK;
}
