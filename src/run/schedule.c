#include "run/schedule.h"

#include <math.h>
#include <string.h>

static ct_status add_milestone(void *context, const char *field) {
    ct_lr_schedule *s = context;
    double milestone = 0;
    if (!ct_parse_double(field, &milestone) || milestone < 0 || milestone > 1)
        return ct_refuse("lr-milestones", "'%s' is not a part of all epochs from 0 to 1", field);
    if (s->n_milestones == CT_MAX_MILESTONES)
        return ct_refuse("lr-milestones", "at most %d of them", CT_MAX_MILESTONES);
    s->milestones[s->n_milestones++] = milestone;
    return CT_OK;
}

static ct_status read_kind(const char *name, ct_lr_schedule *s) {
    static const char *const names[] = {"step", "cosine", "poly", "constant"};
    for (int k = 0; k < 4; k++) {
        if (strcmp(name, names[k]) != 0) continue;
        s->kind = k;
        return CT_OK;
    }
    return ct_refuse("lr-schedule", "no '%s'; known: step, cosine, poly, constant", name);
}

ct_status ct_lr_schedule_create(const ct_config *c, ct_lr_schedule *out) {
    ct_lr_schedule s = {.lr = c->lr,
                        .lr_end = c->lr_end,
                        .power = c->lr_power,
                        .decay = c->lr_decay,
                        .epochs = (double)c->epochs,
                        .warmup_epochs = c->warmup_epochs};
    CT_TRY(read_kind(c->lr_schedule, &s));
    if (strcmp(c->lr_milestones, "none") != 0)
        CT_TRY(ct_split(c->lr_milestones, add_milestone, &s));
    if (s.warmup_epochs > s.epochs)
        return ct_refuse("warmup-epochs", "@warmup-epochs %g is more than the run's %g epochs",
                         s.warmup_epochs, s.epochs);
    if (s.lr_end > s.lr)
        return ct_refuse("lr-end", "@lr-end %g is more than @lr %g", s.lr_end, s.lr);
    *out = s;
    return CT_OK;
}

/* How far an iteration is between the end of the warm-up (0) and of the run (1). */
static double progress(const ct_lr_schedule *s, double iteration, double epoch_iterations) {
    double first = s->warmup_epochs * epoch_iterations;
    double last = s->epochs * epoch_iterations;
    if (iteration <= first || last <= first) return 0;
    return (iteration - first) / (last - first);
}

static double without_warmup(const ct_lr_schedule *s, double iteration, double epoch_iterations) {
    const double pi = 3.14159265358979323846;
    double p = progress(s, iteration, epoch_iterations), lr = s->lr;
    switch (s->kind) {
    case CT_LR_COSINE: return s->lr_end + (s->lr - s->lr_end) * (1 + cos(pi * p)) / 2;
    case CT_LR_POLY: return s->lr_end + (s->lr - s->lr_end) * pow(1 - p, s->power);
    case CT_LR_CONSTANT: return lr;
    default: break;
    }
    double epoch = floor(iteration / epoch_iterations);
    for (int m = 0; m < s->n_milestones; m++)
        if (epoch >= s->milestones[m] * s->epochs) lr *= s->decay;
    return lr;
}

double ct_lr_at(const ct_lr_schedule *s, long iteration, long epoch_iterations) {
    double k = (double)iteration, warmup = s->warmup_epochs * (double)epoch_iterations;
    double lr = without_warmup(s, k, (double)epoch_iterations);
    return k < warmup ? lr * fmin(1, (k + 1) / warmup) : lr;
}
