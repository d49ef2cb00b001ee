/* Norm steps of a job. */
#include "backend/cpu/cpu_internal.h"

ct_norm_args ct_cpu_norm(const cpu_call *c, const cpu_step *step) {
    const ct_node *node = step->node;
    return (ct_norm_args){.kind = step->op == CT_OP_BATCHNORM    ? CT_BATCHNORM
                                  : step->op == CT_OP_GROUPNORM  ? CT_GROUPNORM
                                  : step->op == CT_OP_EVONORM_S0 ? CT_EVONORM_S0
                                                                 : CT_EVONORM_HARD,
                          .n = c->n,
                          .c = step->to.c,
                          .groups = node->groups,
                          .n_pixels = (size_t)step->to.h * (size_t)step->to.w,
                          .epsilon = (float)CT_NORM_EPSILON,
                          .w = cpu_param(c, node->weight),
                          .b = cpu_param(c, node->bias),
                          .v = cpu_param(c, node->slope)};
}

/* The running variance is of the unbiased kind, as in PyTorch. */
static void move_running(float *running, const float *stats, int n_channels, double n) {
    double unbias = n > 1 ? n / (n - 1) : 1;
    for (int c = 0; c < n_channels; c++) {
        float *mean = &running[c], *var = &running[n_channels + c];
        double m = (double)stats[c], v = (double)stats[n_channels + c] * unbias;
        *mean = (float)((double)*mean + CT_BATCHNORM_MOMENTUM * (m - (double)*mean));
        *var = (float)((double)*var + CT_BATCHNORM_MOMENTUM * (v - (double)*var));
    }
}

static const float *residual_of(const cpu_call *c, const cpu_step *step) {
    return step->residual >= 0 ? cpu_value(c, step->residual) : NULL;
}

static void batchnorm_forward(const cpu_call *c, const cpu_step *step) {
    const ct_norm_args norm = ct_cpu_norm(c, step);
    const float *x = cpu_value(c, step->in);
    float *stats = cpu_stats(c, step->out), *running = NULL;
    if (c->buffers != NULL) running = c->buffers + step->node->buffer;
    if (c->mode == CPU_EVALUATE)
        stats = running;
    else
        c->k->batch_moments(&norm, x, stats);
    if (c->mode == CPU_TRAIN && running != NULL)
        move_running(running, stats, norm.c, (double)c->n * (double)norm.n_pixels);
    c->k->batchnorm(&norm, x, stats, residual_of(c, step), cpu_value(c, step->out));
}

void ct_cpu_norm_stats(const cpu_call *c, const cpu_step *step, int group) {
    const ct_norm_args norm = ct_cpu_norm(c, step);
    c->k->norm_stats(&norm, cpu_value(c, step->in), group, cpu_stats(c, step->out));
}

static void group_forward(const cpu_call *c, const cpu_step *step, bool has_stats) {
    const ct_norm_args norm = ct_cpu_norm(c, step);
    c->k->norm(&norm, cpu_value(c, step->in), residual_of(c, step), has_stats,
               cpu_stats(c, step->out), cpu_value(c, step->out));
}

void ct_cpu_norm_forward(const cpu_call *c, const cpu_step *step) {
    if (step->op == CT_OP_BATCHNORM)
        batchnorm_forward(c, step);
    else if (!step->is_lazy)
        group_forward(c, step, false);
    for (int g = 0; step->is_lazy && !step->is_idle && g < step->node->groups; g++)
        ct_cpu_norm_stats(c, step, g);
}

/* The output once more, from the input and the statistics that the forward pass left. */
void ct_cpu_norm_again(const cpu_call *c, const cpu_step *step) {
    group_forward(c, step, true);
}

void ct_cpu_norm_backward(const cpu_call *c, const cpu_step *step) {
    ct_norm_args norm = ct_cpu_norm(c, step);
    norm.dw = cpu_dparam(c, step->node->weight);
    norm.db = cpu_dparam(c, step->node->bias);
    norm.dv = cpu_dparam(c, step->node->slope);
    /* the pictures' gradient has no place of its own, and a norm writes one in any case */
    const bool in_place = c->plan->root[step->in] == c->plan->root[step->out];
    float *dx = in_place        ? cpu_grad(c, step->in)
                : step->in == 0 ? c->worker->spare
                                : ct_cpu_begin_grad(c, step->in);
    for (int i = 0; i < norm.c; i++) {
        norm.dw[i] = norm.db[i] = 0;
        if (norm.dv != NULL) norm.dv[i] = 0;
    }
    (step->op == CT_OP_BATCHNORM ? c->k->batchnorm_backward : c->k->norm_backward)(
        &norm, cpu_value(c, step->in), cpu_grad(c, step->out), cpu_stats(c, step->out), dx);
    if (step->in != 0 && !in_place) ct_cpu_end_grad(c, step->in);
}
