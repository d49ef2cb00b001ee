#include "algo/lesson.h"

#include "algo/agents_internal.h"
#include "util/memory.h"

ct_status ct_lesson_create(ct_agents *a, const ct_source *source) {
    ct_lesson *l = &a->lesson;
    const size_t n = (size_t)a->n;
    const size_t width = (size_t)a->max_batch * ct_soft_width(a->plan->graph->n_classes);
    CT_TRY(ct_make(&l->batches, n, "public samples"));
    CT_TRY(ct_make(&l->jobs, n, "public samples"));
    CT_TRY(ct_make(&l->row, n, "public samples"));
    CT_TRY(ct_bank_create(a->backend, a->n, 0, width, &l->targets));
    CT_TRY(ct_bank_create(a->backend, a->n, 0, a->x.n, &l->g));
    CT_TRY(ct_bank_create(a->backend, a->n, 0, CT_LOSS_FIELDS, &l->losses));
    CT_TRY(ct_sparse_diagonal(a->n, &l->own));
    CT_TRY(ct_sparse_diagonal(a->n, &l->others));
    l->source = source;
    return CT_OK;
}

void ct_lesson_free(ct_lesson *l) {
    ct_free(l->batches);
    ct_free(l->jobs);
    ct_free(l->row);
    ct_bank_free(&l->targets);
    ct_bank_free(&l->g);
    ct_bank_free(&l->losses);
    ct_sparse_free(&l->own);
    ct_sparse_free(&l->others);
}

void ct_lesson_clear(ct_agents *a) {
    a->lesson.n_jobs = 0;
    for (int i = 0; i < a->n; i++) {
        a->lesson.own.value[i] = 1;
        a->lesson.others.value[i] = 0;
    }
}

ct_status ct_lesson_add(ct_agents *a, int i, int n, const uint32_t *index, const float *targets) {
    ct_lesson *l = &a->lesson;
    const int k = l->n_jobs++, all = a->batches[i].n + n;
    l->batches[k] = (ct_batch){.n = n, .index = index};
    l->jobs[k] = (ct_job){.model = i, .batch = k, .out = i};
    l->row[k] = i;
    l->own.value[i] = (double)a->batches[i].n / all;
    l->others.value[i] = (double)n / all;
    return ct_bank_write(&l->targets, i, 0, (size_t)n * ct_soft_width(a->plan->graph->n_classes),
                         targets);
}

ct_status ct_lesson_gradient(ct_agents *a, const ct_bank *at) {
    ct_lesson *l = &a->lesson;
    ct_bank t = ct_temp(1);
    if (l->n_jobs == 0) return CT_OK;
    const ct_objective objective = {.soft = {.rows = &l->targets, .row = l->row, .temperature = 1},
                                    .weight_decay = a->hyper.weight_decay};
    ct_work work = ct_agents_work(a, at, l->jobs, l->n_jobs);
    work.source = l->source;
    work.batches = l->batches;
    for (int k = 0; k < l->n_jobs; k++) a->samples.gradients += l->batches[k].n;
    CT_TRY(ct_gradient(a->plan, &work, &objective, &l->g, &l->losses, 0));
    ct_update u = ct_agents_update(a);
    SET(&u, &t, {1, &a->g, &l->own}, {1, &l->g, &l->others});
    SET(&u, &a->g, {1, &t});
    return ct_update_run(a->backend, &u);
}
