/* Norm steps of a job. */
#include "backend/cpu/cpu_internal.h"

static ct_norm_geometry geometry(const cpu_step *step) {
    return (ct_norm_geometry){.c = step->to.c,
                              .groups = step->node->groups,
                              .n_pixels = (size_t)step->to.h * (size_t)step->to.w,
                              .epsilon = (float)CT_NORM_EPSILON};
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

static void batchnorm_forward(const cpu_call *c, const cpu_step *step) {
    const ct_norm_geometry g = geometry(step);
    const size_t size = cpu_tensor_floats(step->to);
    const float *x = cpu_value(c, step->in), *stats = NULL;
    float *y = cpu_value(c, step->out);
    if (c->mode == CPU_EVALUATE) {
        stats = c->buffers + step->node->buffer;
    } else {
        float *batch = cpu_stats(c, step->out);
        c->k->batch_moments(x, size, c->n, &g, batch);
        if (c->mode == CPU_TRAIN && c->buffers != NULL)
            move_running(c->buffers + step->node->buffer, batch, g.c,
                         (double)c->n * (double)g.n_pixels);
        stats = batch;
    }
    const float *residual = step->residual >= 0 ? cpu_value(c, step->residual) : NULL;
    for (size_t b = 0; b < (size_t)c->n_blocks; b++)
        c->k->batchnorm(x + b * size, &g, cpu_param(c, step->node->weight),
                        cpu_param(c, step->node->bias), stats,
                        residual != NULL ? residual + b * size : NULL, y + b * size);
}

static void group_forward(const cpu_call *c, const cpu_step *step, bool has_stats) {
    ct_norm_geometry g = geometry(step);
    g.has_stats = has_stats;
    const size_t size = cpu_tensor_floats(step->to), per_block = (size_t)g.groups * 2 * CT_LANES;
    const float *w = cpu_param(c, step->node->weight), *bias = cpu_param(c, step->node->bias);
    const float *x = cpu_value(c, step->in);
    const float *residual = step->residual >= 0 ? cpu_value(c, step->residual) : NULL;
    float *y = step->is_lazy ? NULL : cpu_value(c, step->out), *stats = cpu_stats(c, step->out);
    for (int b = 0; b < c->n_blocks; b++, x += size, stats += per_block) {
        if (step->op == CT_OP_GROUPNORM)
            c->k->groupnorm(x, &g, w, bias, residual, stats, y);
        else
            c->k->evonorm(x, &g, w, bias, cpu_param(c, step->node->slope), residual, stats, y);
        if (residual != NULL) residual += size;
        if (y != NULL) y += size;
    }
}

void ct_cpu_norm_forward(const cpu_call *c, const cpu_step *step) {
    if (step->is_idle) return;
    if (step->op == CT_OP_BATCHNORM)
        batchnorm_forward(c, step);
    else
        group_forward(c, step, false);
}

/* The output once more, from the input and the statistics that the forward pass left. */
void ct_cpu_norm_again(const cpu_call *c, const cpu_step *step) {
    group_forward(c, step, true);
}

void ct_cpu_norm_group(const cpu_call *c, const cpu_step *step, int group) {
    ct_norm_geometry g = geometry(step);
    const size_t size = cpu_tensor_floats(step->to), per_block = (size_t)g.groups * 2 * CT_LANES;
    g.c /= g.groups;
    g.groups = 1;
    const float *x = cpu_value(c, step->in) + (size_t)(group * g.c) * g.n_pixels * CT_LANES;
    float *stats = cpu_stats(c, step->out) + group * 2 * CT_LANES;
    for (int b = 0; b < c->n_blocks; b++, x += size, stats += per_block)
        c->k->evonorm(x, &g, NULL, NULL, NULL, NULL, stats, NULL);
}

void ct_cpu_norm_pixels(const cpu_call *c, const cpu_step *step, const cpu_part *part, float *out,
                        size_t row) {
    const ct_norm_geometry g = geometry(step);
    const size_t channel = g.n_pixels * CT_LANES;
    const float *x = cpu_value(c, step->in) + part->block * cpu_tensor_floats(step->to);
    const float *v = cpu_param(c, step->node->slope);
    c->k->evonorm_pixels(
        x + (size_t)part->channel * channel + part->pixel * CT_LANES, channel, &g, part->channel,
        part->n_channels, part->n_pixels, cpu_param(c, step->node->weight) + part->channel,
        cpu_param(c, step->node->bias) + part->channel, v != NULL ? v + part->channel : NULL,
        cpu_stats(c, step->out) + part->block * (size_t)g.groups * 2 * CT_LANES, out, row);
}

void ct_cpu_norm_backward(const cpu_call *c, const cpu_step *step) {
    const ct_norm_geometry g = geometry(step);
    const size_t size = cpu_tensor_floats(step->to), per_block = (size_t)g.groups * 2 * CT_LANES;
    const float *w = cpu_param(c, step->node->weight), *v = cpu_param(c, step->node->slope);
    const float *x = cpu_value(c, step->in), *dy = cpu_grad(c, step->out);
    const float *stats = cpu_stats(c, step->out);
    float *dw = cpu_dparam(c, step->node->weight), *db = cpu_dparam(c, step->node->bias);
    float *dv = cpu_dparam(c, step->node->slope);
    /* the pictures' gradient has no place of its own, and a norm writes one in any case */
    const bool in_place = c->plan->root[step->in] == c->plan->root[step->out];
    float *dx = in_place        ? cpu_grad(c, step->in)
                : step->in == 0 ? c->worker->spare
                                : ct_cpu_begin_grad(c, step->in);
    for (int i = 0; i < g.c; i++) {
        dw[i] = db[i] = 0;
        if (dv != NULL) dv[i] = 0;
    }
    if (step->op == CT_OP_BATCHNORM)
        c->k->batchnorm_backward(x, size, dy, size, c->n, &g, w, stats, dx, size, dw, db);
    else
        for (size_t b = 0; b < (size_t)c->n_blocks; b++) {
            const size_t at = b * size;
            if (step->op == CT_OP_GROUPNORM)
                c->k->groupnorm_backward(x + at, dy + at, &g, w, stats + b * per_block, dx + at, dw,
                                         db);
            else
                c->k->evonorm_backward(x + at, dy + at, &g, w, v, stats + b * per_block, dx + at,
                                       dw, db, dv);
        }
    if (step->in != 0 && !in_place) ct_cpu_end_grad(c, step->in);
}
