/* A model of one's own: softmax regression with its gradient written out. crosstalk decides which
 * agent sees which samples when, and does all that lies between gradients. A run may also test
 * its models (model.evaluate) and use their features (CCL). */
#include <crosstalk/crosstalk.h>

#include <math.h>
#include <stdio.h>

enum { N = 900, K = 3, D = 2 }; /* samples, classes, numbers of a sample */

static float points[N][D];
static int32_t labels[N];

/* p = softmax(W v + b), x = W row by row, then b. Returns -log p_y; *best: the likeliest class. */
static double classify(const float *x, const float *v, int y, double *p, int *best) {
    double sum = 0;
    *best = 0;
    for (int k = 0; k < K; k++) {
        sum += p[k] = exp((double)(x[k * D] * v[0] + x[k * D + 1] * v[1] + x[K * D + k]));
        if (p[k] > p[*best]) *best = k;
    }
    for (int k = 0; k < K; k++) p[k] /= sum;
    return -log(p[y]);
}

/* dL/dW_k = mean of (p_k - [y = k]) v,  dL/db_k = mean of (p_k - [y = k]) */
static int gradient(void *context, ct_external_job *job) {
    double p[K], g[K * D + K] = {0};
    (void)context;
    job->loss = job->n_correct = 0;
    for (int b = 0, best; b < job->n; b++) {
        const float *v = points[job->index[b]];
        job->loss += classify(job->x, v, job->labels[b], p, &best) / job->n;
        job->n_correct += best == job->labels[b];
        for (int k = 0; k < K; k++) {
            double d = (p[k] - (job->labels[b] == k)) / job->n;
            for (int j = 0; j < D; j++) g[k * D + j] += d * (double)v[j];
            g[K * D + k] += d;
        }
    }
    for (int k = 0; k < K * D + K; k++) job->g[k] = (float)g[k];
    return 0;
}

int main(void) {
    static const ct_parameter parameters[] = {{"weight", 2, {K, D}}, {"bias", 1, {K}}};
    ct_error error;
    ct_config *config = NULL;
    ct_run *run = NULL;
    ct_external model = CT_EXTERNAL_INIT;
    ct_data data = CT_DATA_INIT;
    ct_inputs inputs = CT_INPUTS_INIT;
    for (int i = 0; i < N; i++) {
        labels[i] = i % K;
        points[i][0] = (float)(cos(2.0944 * labels[i]) + 0.5 * sin(12.9898 * i));
        points[i][1] = (float)(sin(2.0944 * labels[i]) + 0.5 * sin(78.233 * i));
    }
    model.parameters = parameters;
    model.n_parameters = 2;
    model.gradient = gradient;
    data.n_classes = K; /* the numbers stay with us: labels are enough for the split */
    data.train = (ct_samples){N, NULL, labels};
    inputs.data = &data;
    inputs.external = &model;
    inputs.writes_nothing = true;
    bool works = ct_config_create(&config, &error) == CT_OK &&
                 ct_config_set(config, "agents", "5", &error) == CT_OK &&
                 ct_config_set(config, "algorithm", "gt", &error) == CT_OK &&
                 ct_config_set(config, "epochs", "20", &error) == CT_OK &&
                 ct_run_create(config, &inputs, &run, &error) == CT_OK &&
                 ct_run_step(run, 0, &error) == CT_OK;
    if (!works) fprintf(stderr, "own_gradient: %s\n", error.text);
    if (works)
        printf("%.1f %% of the samples are right\n", 100 * ct_run_metric(run, 0, "train_accuracy"));
    ct_run_free(&run);
    ct_config_free(&config);
    return works ? 0 : 1;
}
