/* Data, split and graph of one's own, in memory: points in the plane of three classes. Every agent
 * holds points of one class alone, so that no agent could learn to tell them apart by itself. */
#include <crosstalk/crosstalk.h>

#include <math.h>
#include <stdio.h>

enum { N_TRAIN = 1200, N_TEST = 300, N_CLASSES = 3, N_AGENTS = 6 };

static float points[N_TRAIN + N_TEST][2];
static int32_t labels[N_TRAIN + N_TEST], agent_of[N_TRAIN];
static const int edges[][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 0}, {0, 3}};
static const char *const names[N_CLASSES] = {"inner", "middle", "outer"};

/* Three rings around the origin. */
static void draw(void) {
    for (int i = 0; i < N_TRAIN + N_TEST; i++) {
        int label = i % N_CLASSES;
        double angle = 2.399963 * i, radius = 1 + label + 0.3 * sin(12.9898 * i);
        points[i][0] = (float)(radius * cos(angle));
        points[i][1] = (float)(radius * sin(angle));
        labels[i] = label;
        if (i < N_TRAIN) agent_of[i] = label + (i / N_CLASSES % 2 == 0 ? 0 : N_CLASSES);
    }
}

static bool tell(void *context, long now, long total) {
    (void)context;
    if (now % 300 == 0) printf("iteration %ld of %ld\n", now, total);
    return true; /* false would stop the run */
}

static ct_status configure(ct_config **out, ct_error *error) {
    static const char *const options[][2] = {
        {"agents", "6"},      {"model", "mlp:32"}, {"algorithm", "qg-dsgdm"},
        {"batch-size", "10"}, {"lr", "0.05"},      {"epochs", "60"}};
    ct_status status = ct_config_create(out, error);
    for (size_t k = 0; k < sizeof options / sizeof *options && status == CT_OK; k++)
        status = ct_config_set(*out, options[k][0], options[k][1], error);
    return status;
}

int main(void) {
    ct_error error;
    ct_config *config = NULL;
    ct_run *run = NULL;
    ct_data data = CT_DATA_INIT;
    ct_edges graph = CT_EDGES_INIT;
    ct_hooks hooks = {NULL, NULL, tell};
    ct_inputs inputs = CT_INPUTS_INIT;
    draw();
    data.name = "rings";
    data.type = CT_FLOAT32;
    data.width = 2; /* rows of two numbers: one channel, one row */
    data.n_classes = N_CLASSES;
    data.class_names = names;
    data.train = (ct_samples){N_TRAIN, points, labels};
    data.test = (ct_samples){N_TEST, points + N_TRAIN, labels + N_TRAIN};
    data.agent_of = agent_of;
    graph.n_edges = sizeof edges / sizeof *edges;
    graph.edges = edges;
    inputs.data = &data;
    inputs.graph = &graph;
    inputs.hooks = &hooks;
    inputs.writes_nothing = true;
    ct_status status = configure(&config, &error);
    if (status == CT_OK) status = ct_run_create(config, &inputs, &run, &error);
    if (status == CT_OK) status = ct_run_step(run, 0, &error);
    if (status == CT_OK)
        printf("consensus model: %.1f %%\n", 100 * ct_run_metric(run, 0, "consensus_accuracy"));
    else
        fprintf(stderr, "own_data: %s\n", error.text);
    ct_run_free(&run);
    ct_config_free(&config);
    return status == CT_OK ? 0 : 1;
}
