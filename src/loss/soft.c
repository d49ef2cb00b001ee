#include "loss/loss.h"

#include <math.h>

/* p = softmax(logits / T), in double. */
static double log_sum(const float *logits, int n_classes, double temperature) {
    double largest = (double)logits[0], sum = 0;
    for (int c = 1; c < n_classes; c++)
        if ((double)logits[c] > largest) largest = (double)logits[c];
    for (int c = 0; c < n_classes; c++) sum += exp(((double)logits[c] - largest) / temperature);
    return log(sum) + largest / temperature;
}

void ct_soften(const ct_softening *how, const float *logits, int n, int n_classes, float *rows) {
    for (int b = 0; b < n; b++, logits += n_classes, rows += ct_soft_width(n_classes)) {
        double all = log_sum(logits, n_classes, how->temperature);
        for (int c = 0; c < n_classes; c++)
            rows[c] = (float)exp((double)logits[c] / how->temperature - all);
        rows[n_classes] = (float)how->hard;
        rows[n_classes + 1] = (float)how->soft;
    }
}

/* T^2 KL(t | p) of one sample; adds weight times its gradient, T (p - t), to dlogits. */
static double divergence(const float *logits, const float *targets, int n_classes,
                         double temperature, double weight, float *dlogits) {
    double all = log_sum(logits, n_classes, temperature), sum = 0;
    for (int c = 0; c < n_classes; c++) {
        double t = (double)targets[c], log_p = (double)logits[c] / temperature - all;
        if (t > 0) sum += t * (log(t) - log_p);
        dlogits[c] += (float)(weight * temperature * (exp(log_p) - t));
    }
    return temperature * temperature * sum;
}

void ct_soft_loss(const ct_soft_batch *batch, float *dlogits, int *n_correct, double *hard,
                  double *soft) {
    const int n_classes = batch->n_classes;
    *n_correct = 0;
    *hard = *soft = 0;
    for (int b = 0; b < batch->n; b++) {
        const float *z = batch->logits + (size_t)b * (size_t)n_classes;
        const float *row = batch->rows + (size_t)b * ct_soft_width(n_classes);
        const double of_label = (double)row[n_classes] / batch->n;
        const double of_targets = (double)row[n_classes + 1] / batch->n;
        float *dz = dlogits + (size_t)b * (size_t)n_classes;
        int is_correct = 0;
        *hard += of_label * ct_smooth_cross_entropy(batch->smoothing, z, &batch->labels[b], 1,
                                                    n_classes, dz, &is_correct);
        for (int c = 0; c < n_classes; c++) dz[c] = (float)(of_label * (double)dz[c]);
        *soft += of_targets * divergence(z, row, n_classes, batch->temperature, of_targets, dz);
        *n_correct += is_correct;
    }
}
