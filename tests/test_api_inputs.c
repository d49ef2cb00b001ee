/* libcrosstalk through its public headers: data, splits and graphs that a program gives. */
#include "api.h"

/* ---- data in memory ---- */

static void memory_has_the_bits_of_files(void) {
    ct_inputs inputs = CT_INPUTS_INIT;
    inputs.data = &mem.data;
    train(configure("files", true), NULL, 0);
    train(configure("memory", false), &inputs, 4);
    CHECK(same_runs("files", "memory"));
    remove_tree("files");
    remove_tree("memory");
}

/* Numbers that are normalised already, as the pixels' tensors are. */
static void floats_have_the_bits_of_pixels(void) {
    float mean = 0.25f, std = 0.5f, zero = 0, one = 1;
    ct_data data = mem.data;
    ct_inputs inputs = CT_INPUTS_INIT;
    inputs.data = &data;
    data.mean = &mean;
    data.std = &std;
    train(configure("pixels", false), &inputs, 0);
    for (int part = 0; part < 2; part++)
        for (size_t i = 0; i < n_values(part); i++)
            mem.values[part][i] = (float)((mem.pixels[part][i] / 255.0 - 0.25) / 0.5);
    data.type = CT_FLOAT32;
    data.mean = &zero;
    data.std = &one;
    data.train.values = mem.values[0];
    data.test.values = mem.values[1];
    train(configure("floats", false), &inputs, 0);
    CHECK(same_runs("pixels", "floats"));
    remove_tree("pixels");
    remove_tree("floats");
}

/* Mean and deviation that are not given: of the training samples. */
static void floats_are_normalised_by_their_own_figures(void) {
    double sum = 0, squares = 0, n = (double)n_values(0);
    for (size_t i = 0; i < n_values(0); i++) mem.values[0][i] = 3.0f + 2.0f * mem.pixels[0][i];
    for (size_t i = 0; i < n_values(1); i++) mem.values[1][i] = 3.0f + 2.0f * mem.pixels[1][i];
    for (size_t i = 0; i < n_values(0); i++) sum += (double)mem.values[0][i];
    for (size_t i = 0; i < n_values(0); i++)
        squares += ((double)mem.values[0][i] - sum / n) * ((double)mem.values[0][i] - sum / n);
    float mean = (float)(sum / n), std = (float)sqrt(squares / n);
    ct_data data = mem.data;
    ct_inputs inputs = CT_INPUTS_INIT;
    inputs.data = &data;
    data.type = CT_FLOAT32;
    data.mean = data.std = NULL;
    data.train.values = mem.values[0];
    data.test.values = mem.values[1];
    train(configure("measured", false), &inputs, 0);
    data.mean = &mean;
    data.std = &std;
    train(configure("given", false), &inputs, 0);
    CHECK(same_runs("measured", "given"));
    ct_config *config = configure("ref", false);
    WORKS(ct_config_set(config, "device", "ref", &error));
    ct_run *run = build(config, &inputs);
    WORKS(ct_run_step(run, 0, &error));
    double accuracy = ct_run_metric(run, 0, "consensus_accuracy");
    double distance = ct_run_metric(run, 0, "ce");
    ct_run_free(&run);
    ct_record *record = NULL;
    WORKS(ct_record_open("given", &record, &error));
    CHECK_NEAR(ct_record_summary(record, "ce"), distance, 1e-4); /* floats against doubles */
    CHECK_NEAR(ct_record_summary(record, "consensus_accuracy"), accuracy, 0.05);
    ct_record_free(&record);
    remove_tree("measured");
    remove_tree("given");
    remove_tree("ref");
}

static void a_split_of_ones_own_is_that_of_its_file(void) {
    int32_t *agent_of = malloc(mem.n[0] * sizeof *agent_of);
    FILE *f = fopen("split.csv", "w");
    REQUIRE(f != NULL && agent_of != NULL);
    fprintf(f, "index,agent\n");
    for (size_t i = 0; i < mem.n[0]; i++) {
        agent_of[i] = i % 7 == 6 ? -1 : (int32_t)(i % 7 % 5);
        if (agent_of[i] >= 0) fprintf(f, "%zu,%d\n", i, (int)agent_of[i]);
    }
    fclose(f);
    ct_data data = mem.data;
    ct_inputs inputs = CT_INPUTS_INIT;
    inputs.data = &data;
    data.agent_of = agent_of;
    ct_config *config = configure("from-file", true), *own = configure("own", false);
    WORKS(ct_config_set(config, "partition-file", "split.csv", &error));
    train(config, NULL, 0);
    FAILS(ct_run_create(own, &inputs, &(ct_run *){NULL}, &error), CT_INVAL,
          "partition does nothing: the split is given by the program");
    ct_config_free(&own);
    own = configure("own", false);
    WORKS(ct_config_set(own, "partition", "own", &error));
    train(own, &inputs, 0);
    CHECK(same_runs("from-file", "own"));
    agent_of[3] = 5;
    own = configure("own", false);
    WORKS(ct_config_set(own, "partition", "own", &error));
    FAILS(ct_run_create(own, &inputs, &(ct_run *){NULL}, &error), CT_INVAL,
          "agent 5 of sample 3 is not one of 0..4");
    ct_config_free(&own);
    free(agent_of);
    unlink("split.csv");
    remove_tree("from-file");
    remove_tree("own");
}

/* ---- graphs ---- */

static const int edges[][2] = {{0, 1}, {3, 2}, {1, 2}, {4, 0}, {1, 4}};

static void a_graph_of_ones_own_is_that_of_its_file(void) {
    put("edges.txt", "0 1\n2 3\n1 2\n0 4\n1 4\n");
    ct_edges graph = CT_EDGES_INIT;
    ct_inputs inputs = CT_INPUTS_INIT;
    inputs.graph = &graph;
    graph.n_edges = 5;
    graph.edges = edges;
    ct_config *config = configure("from-file", true);
    WORKS(ct_config_set(config, "topology", "file:edges.txt", &error));
    train(config, NULL, 0);
    train(configure("own", true), &inputs, 3);
    CHECK(same_runs("from-file", "own"));
    ct_record *record = NULL;
    int a = -1, b = -1;
    WORKS(ct_record_open("own", &record, &error));
    CHECK(strcmp(ct_record_option_of(record, "topology"), "own") == 0);
    CHECK(ct_record_n_edges(record) == 5 && ct_record_edge(record, 4, &a, &b) && a == 2 && b == 3);
    ct_record_free(&record);
    unlink("edges.txt");
    remove_tree("from-file");
    remove_tree("own");
}

/* ---- what is refused ---- */

static void refuses(const ct_inputs *inputs, ct_config *config, const char *words, int line) {
    ct_run *run = NULL;
    ct_status status = ct_run_create(config, inputs, &run, &error);
    if (status != CT_INVAL || run != NULL || strstr(error.text, words) == NULL) {
        test_failed = true;
        printf("    %s:%d: status %d: %s\n", __FILE__, line, (int)status, error.text);
    }
    ct_run_free(&run);
    ct_config_free(&config);
}
#define REFUSED(config, words) refuses(&inputs, config, words, __LINE__)

static void data_that_cannot_be_is_refused(void) {
    ct_data data = mem.data;
    ct_inputs inputs = CT_INPUTS_INIT;
    inputs.data = &data;
    data.size = 0;
    REFUSED(configure("no", false), "ct_data has no size");
    data = mem.data;
    data.size += 8;
    REFUSED(configure("no", false), "older than the program's headers");
    data = mem.data;
    data.channels = 17;
    REFUSED(configure("no", false), "17 x ");
    data = mem.data;
    data.n_classes = 0;
    REFUSED(configure("no", false), "0 classes");
    data = mem.data;
    data.n_classes--;
    REFUSED(configure("no", false), "of training sample");
    data = mem.data;
    data.type = (ct_type)7;
    REFUSED(configure("no", false), "type 7");
    data = mem.data;
    data.train.values = NULL;
    REFUSED(configure("no", false), "the training samples have no values");
    data = mem.data;
    data.test.labels = NULL;
    REFUSED(configure("no", false), "the test samples have no labels");
    data = mem.data;
    data.train.n = 0;
    REFUSED(configure("no", false), "no training samples");
    data = mem.data;
    data.train.n = 3;
    REFUSED(configure("no", false), "5 agents cannot share 3 samples");
    data = mem.data;
    data.std = &(float){0};
    REFUSED(configure("no", false), "deviation 0 of channel 0");
    data = mem.data;
    REFUSED(configure("no", true), "dir does nothing with data in memory");
    mem.values[0][5] = NAN;
    data.type = CT_FLOAT32;
    data.train.values = data.test.values = mem.values[0];
    REFUSED(configure("no", false), "value 5 of training sample 0 is nan");
    mem.values[0][5] = 0;
    CHECK(n_files("no") == 0);
}

static void a_graph_that_cannot_be_is_refused(void) {
    static const int doubled[][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {1, 0}};
    static const int outside[][2] = {{0, 1}, {1, 5}}, loop[][2] = {{0, 1}, {2, 2}};
    ct_edges graph = CT_EDGES_INIT;
    ct_inputs inputs = CT_INPUTS_INIT;
    inputs.graph = &graph;
    graph.edges = edges;
    graph.n_edges = 2;
    REFUSED(configure("no", true), "the graph is not connected: agent 2 cannot reach agent 0");
    graph.edges = doubled;
    graph.n_edges = 5;
    REFUSED(configure("no", true), "edge 4, 1 to 0, is there twice");
    graph.edges = outside;
    graph.n_edges = 2;
    REFUSED(configure("no", true), "edge 1 joins 1 and 5");
    graph.edges = loop;
    REFUSED(configure("no", true), "edge 1 joins 2 and 2");
    graph.edges = NULL;
    REFUSED(configure("no", true), "are no graph");
    graph.edges = edges;
    graph.n_edges = 5;
    ct_config *config = configure("no", true);
    WORKS(ct_config_set(config, "topology", "ring", &error));
    REFUSED(config, "the graph is given by the program");
    CHECK(n_files("no") == 0);
}

static void wrong_words_are_refused_before_anything_is_written(void) {
    ct_inputs inputs = CT_INPUTS_INIT;
    ct_config *config = configure("no", true);
    WORKS(ct_config_set(config, "algorithm", "dsgdx", &error));
    REFUSED(config, "dsgdx");
    config = configure("no", true);
    WORKS(ct_config_set(config, "alpha", "0.5", &error)); /* partition is iid */
    REFUSED(config, "does nothing without");
    inputs.size = 0;
    REFUSED(configure("no", true), "ct_inputs has no size");
    ct_run *run = NULL;
    FAILS(ct_run_create(NULL, NULL, &run, &error), CT_INVAL, "config is NULL");
    FAILS(ct_run_step(NULL, 1, &error), CT_INVAL, "run is NULL");
    FAILS(ct_run_read(NULL, 0, 0, NULL, &error), CT_INVAL, "run is NULL");
    CHECK(n_files("no") == 0);
}

/* Other data than the checkpoint's is refused, whatever it is called. */
static void memory_is_resumed_by_what_it_holds(void) {
    ct_data data = mem.data;
    ct_inputs inputs = CT_INPUTS_INIT;
    inputs.data = &data;
    ct_run *run = build(configure("kept", false), &inputs);
    REQUIRE(run != NULL);
    WORKS(ct_run_step(run, 4, &error));
    WORKS(ct_run_checkpoint(run, &error));
    ct_run_free(&run);
    ct_config *config = configure("kept", false);
    WORKS(ct_config_set(config, "resume", "kept", &error));
    mem.pixels[0][7] ^= 1;
    FAILS(ct_run_create(config, &inputs, &run, &error), CT_DIFFERS, "data");
    mem.pixels[0][7] ^= 1;
    run = build(config, &inputs);
    REQUIRE(run != NULL);
    CHECK(ct_run_iteration(run) == 4);
    ct_run_free(&run);
    remove_tree("kept");
}

static void without_test_samples_nothing_is_tested(void) {
    ct_data data = mem.data;
    ct_inputs inputs = CT_INPUTS_INIT;
    inputs.data = &data;
    data.test = (ct_samples){0};
    ct_run *run = build(configure("untested", false), &inputs);
    REQUIRE(run != NULL);
    WORKS(ct_run_step(run, 0, &error));
    CHECK(ct_run_is_done(run) && isnan(ct_run_metric(run, 0, "consensus_accuracy")));
    CHECK(isnan(ct_run_metric(run, 0, "local_accuracy_min")) && ct_run_metric(run, 0, "ce") > 0);
    CHECK(ct_run_metric(run, 0, "consensus_distance") > 0);
    ct_run_free(&run);
    ct_record *record = NULL;
    WORKS(ct_record_open("untested", &record, &error));
    CHECK(ct_record_state_of(record, NULL, NULL, 0) == CT_RECORD_DONE);
    CHECK(isnan(ct_record_summary(record, "consensus_accuracy")));
    CHECK(isnan(ct_record_agent_accuracy(record, 0)) && ct_record_confusion(record, 0, 0) == -1);
    ct_record_free(&record);
    succeeds("show untested");
    succeeds("report untested --out untested/report.html");
    remove_tree("untested");
}

static void a_finished_run_can_be_read(void) {
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    ct_data data = mem.data;
    ct_inputs inputs = CT_INPUTS_INIT;
    inputs.data = &data;
    data.class_names = names;
    data.name = "letters";
    train(configure("done", false), &inputs, 0);
    ct_record *record = NULL;
    const char *name = NULL, *value = NULL;
    long n_held = 0, n_tested = 0, iteration = -1;
    char reason[64] = "x";
    WORKS(ct_record_open("done", &record, &error));
    REQUIRE(record != NULL);
    CHECK(ct_record_state_of(record, &iteration, reason, sizeof reason) == CT_RECORD_DONE);
    CHECK(reason[0] == '\0' && iteration == 0);
    CHECK(strcmp(ct_record_option_of(record, "dataset"), "letters") == 0);
    CHECK(ct_record_option_of(record, "nothing") == NULL);
    CHECK(ct_record_option_at(record, 0, &name, &value) && strcmp(name, "dataset") == 0);
    CHECK(!ct_record_option_at(record, ct_record_n_options(record), &name, &value));
    CHECK(ct_record_n_epochs(record) == 2 && ct_record_metric(record, 1, "epoch") == 2);
    CHECK(ct_record_metric(record, 1, "consensus_accuracy") ==
          ct_record_summary(record, "consensus_accuracy"));
    CHECK(ct_record_summary(record, "consensus_accuracy_late") > 0);
    CHECK(isnan(ct_record_metric(record, 2, "ce")) && isnan(ct_record_metric(record, 0, "no")));
    CHECK(ct_record_n_agents(record) == 5 && ct_record_n_classes(record) == mem.data.n_classes);
    CHECK(strcmp(ct_record_class_name(record, 1), "b") == 0);
    for (int a = 0; a < 5; a++)
        for (int k = 0; k < data.n_classes; k++) n_held += ct_record_class_count(record, a, k);
    for (int a = 0; a < data.n_classes; a++)
        for (int k = 0; k < data.n_classes; k++) n_tested += ct_record_confusion(record, a, k);
    CHECK(n_held > 0 && n_held <= (long)mem.n[0] && n_tested == (long)mem.n[1]);
    CHECK(ct_record_class_count(record, 5, 0) == -1 && ct_record_class_name(record, 10) == NULL);
    CHECK(ct_record_n_edges(record) == 5 && ct_record_agent_accuracy(record, 4) >= 0);
    ct_record_free(&record);
    ct_record_free(&record);
    FAILS(ct_record_open("nowhere", &record, &error), CT_IO, "nowhere");
    FAILS(ct_record_open("fixtures", &record, &error), CT_IO, "no run here");
    CHECK(record == NULL);
    remove_tree("done");
}

/* ---- the worked examples ---- */

/* The last percentage that an example has printed. */
static double percent_of(const char *example) {
    char command[1024];
    double last = NAN;
    snprintf(command, sizeof command, CT_BINARY_DIR "/tests/example_%s >.out 2>.err", example);
    if (system(command) != 0) return NAN;
    slurp(".out", said.out);
    for (char *at = said.out; (at = strchr(at, '%')) != NULL; at++) {
        char *begin = at - 1;
        while (begin > said.out && strchr("0123456789. ", begin[-1]) != NULL) begin--;
        last = strtod(begin, NULL);
    }
    return last;
}

static void the_examples_learn(void) {
    CHECK(percent_of("own_data") > 95);
    CHECK(percent_of("own_gradient") > 95);
    if (CT_SANITIZED) return; /* pictures take long then */
    CHECK(percent_of("train example") > 80);
    CHECK(isnan(percent_of("train example"))); /* there is a run already */
    remove_tree("example");
}

int main(void) {
    if (!enter_folder()) return 1;
    load_memory();
    TEST(memory_has_the_bits_of_files);
    TEST(floats_have_the_bits_of_pixels);
    TEST(floats_are_normalised_by_their_own_figures);
    TEST(a_split_of_ones_own_is_that_of_its_file);
    TEST(a_graph_of_ones_own_is_that_of_its_file);
    TEST(data_that_cannot_be_is_refused);
    TEST(a_graph_that_cannot_be_is_refused);
    TEST(wrong_words_are_refused_before_anything_is_written);
    TEST(memory_is_resumed_by_what_it_holds);
    TEST(without_test_samples_nothing_is_tested);
    TEST(a_finished_run_can_be_read);
    TEST(the_examples_learn);
    free_memory();
    leave_folder();
    return test_report();
}
