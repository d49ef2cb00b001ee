#include "loss/loss.h"

#include <math.h>

static int first_largest(const float *logits, int n_classes) {
    int best = 0;
    for (int c = 1; c < n_classes; c++)
        if (logits[c] > logits[best]) best = c;
    return best;
}

/* One sample's loss and its gradient times `weight`:
 *   p_c = softmax(logits)_c
 *   t_c = (1 - s) [c = label] + s / C            s: label smoothing
 *   L   = -sum_c t_c log p_c
 *   dL/dlogits_c = p_c - t_c */
static double sample(const float *logits, int label, int n_classes, double s, double weight,
                     float *dlogits) {
    double largest = logits[first_largest(logits, n_classes)];
    double sum = 0, all = 0, part = s / n_classes;
    for (int c = 0; c < n_classes; c++) {
        sum += exp(logits[c] - largest);
        all += part * (double)logits[c];
    }
    if (dlogits != NULL)
        for (int c = 0; c < n_classes; c++)
            dlogits[c] = (float)(weight * (exp(logits[c] - largest) / sum -
                                           ((1 - s) * (c == label) + part)));
    return log(sum) + largest - (1 - s) * logits[label] - all;
}

static double mean_loss(double smoothing, const float *logits, const int32_t *labels, int n,
                        int n_classes, float *dlogits, int *n_correct, int *predictions) {
    double sum = 0;
    *n_correct = 0;
    for (int b = 0; b < n; b++) {
        size_t at = (size_t)b * (size_t)n_classes;
        sum += sample(logits + at, labels[b], n_classes, smoothing, 1.0 / n,
                      dlogits != NULL ? dlogits + at : NULL);
        int best = first_largest(logits + at, n_classes);
        *n_correct += best == labels[b];
        if (predictions != NULL) predictions[b] = best;
    }
    return sum / n;
}

double ct_cross_entropy(const float *logits, const int32_t *labels, int n, int n_classes,
                        float *dlogits, int *n_correct, int *predictions) {
    return mean_loss(0, logits, labels, n, n_classes, dlogits, n_correct, predictions);
}

double ct_smooth_cross_entropy(double smoothing, const float *logits, const int32_t *labels, int n,
                               int n_classes, float *dlogits, int *n_correct) {
    return mean_loss(smoothing, logits, labels, n, n_classes, dlogits, n_correct, NULL);
}
