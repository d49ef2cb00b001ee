/* libcrosstalk through its public headers: options, runs in steps, parameters, records. */
#include <pthread.h>

#include "api.h"

/* ---- options ---- */

static void the_schema_can_be_walked(void) {
    ct_config *config = configure(NULL, false);
    int n = ct_schema_n_options(), n_groups = 0;
    const char *group = "";
    ct_config_free(&config);
    WORKS(ct_config_create(&config, &error));
    CHECK(n > 40);
    for (int k = 0; k < n; k++) {
        ct_option_info info = CT_OPTION_INFO_INIT;
        char value[512];
        REQUIRE(ct_schema_option(k, &info));
        CHECK(info.name[0] != '\0' && info.help[0] != '\0' && info.size == sizeof info);
        WORKS(ct_config_get(config, info.name, value, sizeof value, &error));
        double number = strtod(value, NULL), expected = strtod(info.default_value, NULL);
        CHECK(strcmp(value, info.default_value) == 0 ||
              (info.kind == CT_KIND_REAL && number == expected));
        bool is_number = info.kind == CT_KIND_WHOLE || info.kind == CT_KIND_REAL;
        CHECK(!is_number || info.lowest < info.highest);
        n_groups += strcmp(group, info.group) != 0;
        group = info.group;
    }
    ct_option_info info = CT_OPTION_INFO_INIT;
    CHECK(n_groups > 3 && !ct_schema_option(n, &info) && !ct_schema_option(-1, &info));
    ct_config_free(&config);
}

/* A program built when the struct ended with the name. */
static void an_older_struct_is_filled_as_far_as_it_goes(void) {
    ct_option_info info = CT_OPTION_INFO_INIT;
    info.size = offsetof(ct_option_info, group);
    info.help = "untouched";
    CHECK(ct_schema_option(0, &info) && info.name != NULL && info.group == NULL);
    CHECK(strcmp(info.help, "untouched") == 0);
}

static void options_survive_a_file_and_a_copy(void) {
    ct_config *a = configure("somewhere", true), *b = NULL, *c = NULL;
    char value[512];
    WORKS(ct_config_write(a, "options.txt", &error));
    WORKS(ct_config_create(&b, &error));
    WORKS(ct_config_set(b, "lr", "0.5", &error));
    WORKS(ct_config_read(b, "options.txt", &error));
    WORKS(ct_config_get(b, "lr", value, sizeof value, &error));
    CHECK(strcmp(value, "0.5") == 0);
    WORKS(ct_config_get(b, "model", value, sizeof value, &error));
    CHECK(strcmp(value, "mlp:8") == 0);
    WORKS(ct_config_copy(b, &c, &error));
    ct_config_free(&b);
    WORKS(ct_config_get(c, "agents", value, sizeof value, &error));
    CHECK(strcmp(value, "5") == 0);
    WORKS(ct_config_get(c, "gamma", value, sizeof value, &error));
    CHECK(strcmp(value, "auto") == 0);
    ct_config_free(&a);
    ct_config_free(&c);
    unlink("options.txt");
}

static void a_wrong_option_says_what_would_be_right(void) {
    ct_config *config = configure(NULL, true), *none = NULL;
    char value[512] = "untouched";
    FAILS(ct_config_set(config, "algoritm", "ccl", &error), CT_INVAL, "did you mean algorithm");
    FAILS(ct_config_set(config, "agents", "8x", &error), CT_INVAL, "'8x' is not a whole number");
    CHECK(strcmp(error.about, "agents") == 0);
    FAILS(ct_config_set(config, "norm", "layernorm", &error), CT_INVAL, "known: evonorm");
    FAILS(ct_config_get(config, "nothing", value, sizeof value, &error), CT_INVAL, "nothing");
    FAILS(ct_config_get(config, "data-dir", value, 5, &error), CT_INVAL, "5 bytes are too few");
    CHECK(strcmp(value, "untouched") == 0);
    FAILS(ct_config_read(config, "nowhere.txt", &error), CT_IO, "nowhere.txt");
    FAILS(ct_config_set(none, "lr", "1", &error), CT_INVAL, "config is NULL");
    CHECK(ct_config_set(config, "agents", "many", NULL) == CT_INVAL); /* nobody wants to know */
    ct_config_free(&config);
    ct_config_free(&config);
    CHECK(config == NULL);
}

/* ---- runs ---- */

static void any_steps_have_the_bits_of_the_command_line(void) {
    static const long steps[] = {1, 7, 0};
    succeeds(TINY);
    for (int k = 0; k < 3; k++) {
        train(configure("stepped", true), NULL, steps[k]);
        CHECK(same_runs("run", "stepped"));
        remove_tree("stepped");
    }
    remove_tree("run");
}

static void a_run_tells_where_it_stands(void) {
    char value[512];
    ct_run *run = build(configure("told", true), NULL);
    REQUIRE(run != NULL);
    long epoch = ct_run_epoch_length(run);
    CHECK(ct_run_n_iterations(run) == 2 * epoch && ct_run_iteration(run) == 0);
    CHECK(ct_run_n_worlds(run) == 1 && ct_run_n_agents(run) == 5);
    CHECK(strcmp(ct_run_directory(run), "told") == 0);
    WORKS(ct_run_option(run, "gamma", value, sizeof value, &error));
    CHECK(strcmp(value, "1") == 0);
    WORKS(ct_run_step(run, epoch - 1, &error));
    CHECK(isnan(ct_run_metric(run, 0, "ce")) && !ct_run_is_done(run));
    WORKS(ct_run_step(run, 1, &error));
    double ce = ct_run_metric(run, 0, "ce"), accuracy = ct_run_metric(run, 0, "consensus_accuracy");
    CHECK(ce > 0 && accuracy >= 0 && ct_run_metric(run, 0, "epoch") == 1);
    WORKS(ct_run_step(run, 2, &error));
    WORKS(ct_run_evaluate(run, &error));
    CHECK(ct_run_metric(run, 0, "ce") == ce && ct_run_iteration(run) == epoch + 2);
    WORKS(ct_run_step(run, 1000000, &error));
    CHECK(ct_run_is_done(run) && ct_run_iteration(run) == 2 * epoch);
    WORKS(ct_run_step(run, 1, &error)); /* nothing is left to do */
    FAILS(ct_run_step(run, -1, &error), CT_INVAL, "-1 iterations");
    CHECK(isnan(ct_run_metric(run, 1, "ce")) && isnan(ct_run_metric(run, 0, "nonsense")));
    CHECK(strcmp(ct_metric_key(0), "consensus_accuracy") == 0 && ct_metric_key(10000) == NULL);
    ct_run_free(&run);
    ct_run_free(&run);
    remove_tree("told");
}

/* An evaluation in the middle leaves no trace. */
static void evaluating_changes_nothing(void) {
    train(configure("plain", true), NULL, 0);
    ct_run *run = build(configure("watched", true), NULL);
    REQUIRE(run != NULL);
    while (!ct_run_is_done(run) && !test_failed) {
        WORKS(ct_run_step(run, 3, &error));
        WORKS(ct_run_evaluate(run, &error));
    }
    ct_run_free(&run);
    CHECK(same_runs("plain", "watched"));
    remove_tree("plain");
    remove_tree("watched");
}

/* ---- parameters ---- */

static void parameters_are_read_and_written(void) {
    ct_inputs inputs = CT_INPUTS_INIT;
    inputs.writes_nothing = true;
    ct_run *run = build(configure(NULL, true), &inputs);
    REQUIRE(run != NULL);
    size_t n = ct_run_n_parameters(run), n_named = 0;
    for (int k = 0; k < ct_run_n_tensors(run); k++) {
        ct_tensor_info info = CT_TENSOR_INFO_INIT;
        size_t count = 1;
        CHECK(ct_run_tensor(run, k, &info) && info.offset == n_named && info.name[0] != '\0');
        for (int d = 0; d < info.n_dims; d++) count *= info.dims[d];
        CHECK(count == info.count);
        n_named += info.count;
    }
    CHECK(n_named == n && !ct_run_tensor(run, ct_run_n_tensors(run), &(ct_tensor_info){0}));
    float *x = calloc(n, sizeof *x), *mean = calloc(n, sizeof *mean);
    double *sum = calloc(n, sizeof *sum);
    REQUIRE(x != NULL && mean != NULL && sum != NULL);
    WORKS(ct_run_step(run, 3, &error));
    for (int a = 0; a < 5; a++) {
        bool on_device = true;
        WORKS(ct_run_read(run, 0, a, x, &error));
        const float *view = ct_run_view(run, 0, a, &on_device);
        CHECK(view != NULL && !on_device && memcmp(view, x, n * sizeof *x) == 0);
        for (size_t k = 0; k < n; k++) sum[k] += (double)x[k] / 5;
    }
    WORKS(ct_run_read(run, 0, CT_CONSENSUS, mean, &error));
    for (size_t k = 0; k < n; k++) CHECK_NEAR(mean[k], sum[k], 1e-6);
    for (size_t k = 0; k < n; k++) x[k] = (float)k / (float)n;
    WORKS(ct_run_write(run, 0, 2, x, &error));
    WORKS(ct_run_read(run, 0, 2, mean, &error));
    CHECK(memcmp(mean, x, n * sizeof *x) == 0);
    WORKS(ct_run_write(run, 0, CT_CONSENSUS, x, &error));
    WORKS(ct_run_read(run, 0, 4, mean, &error));
    CHECK(memcmp(mean, x, n * sizeof *x) == 0);
    WORKS(ct_run_read(run, 0, CT_CONSENSUS, mean, &error));
    for (size_t k = 0; k < n; k++) CHECK_NEAR(mean[k], x[k], 1e-6);
    WORKS(ct_run_step(run, 1, &error));
    FAILS(ct_run_read(run, 1, 0, x, &error), CT_INVAL, "world 1; there are 0..0");
    FAILS(ct_run_write(run, 0, 5, x, &error), CT_INVAL, "agent 5; there are 0..4");
    CHECK(ct_run_view(run, 0, CT_CONSENSUS, NULL) == NULL && ct_run_view(run, 0, 9, NULL) == NULL);
    free(x);
    free(mean);
    free(sum);
    ct_run_free(&run);
}

/* As a framework sees it: the published layout of DLPack 1.0, spelled once more. */
typedef struct dl_tensor {
    uint32_t major, minor;
    void *context;
    void (*deleter)(void *self);
    uint64_t flags;
    void *data;
    int32_t device_type, device_id, n_dims;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;

static void a_view_can_be_handed_to_a_framework(void) {
    ct_inputs inputs = CT_INPUTS_INIT;
    inputs.writes_nothing = true;
    ct_run *run = build(configure(NULL, true), &inputs);
    struct DLManagedTensorVersioned *lent = NULL;
    REQUIRE(run != NULL);
    WORKS(ct_run_dlpack(run, 0, 1, &lent, &error));
    dl_tensor *t = (dl_tensor *)(void *)lent;
    REQUIRE(t != NULL);
    CHECK(t->major == 1 && t->flags == 0 && t->device_type == 1 && t->device_id == 0);
    CHECK(t->n_dims == 1 && t->shape[0] == (int64_t)ct_run_n_parameters(run) && t->strides[0] == 1);
    CHECK(t->code == 2 && t->bits == 32 && t->lanes == 1 && t->byte_offset == 0);
    CHECK(t->data == ct_run_view(run, 0, 1, NULL));
    t->deleter(t);
    FAILS(ct_run_dlpack(run, 0, CT_CONSENSUS, &lent, &error), CT_INVAL, "lies nowhere");
    ct_run_free(&run);
}

/* What was saved is what the next run begins with. */
static void models_are_saved(void) {
    ct_inputs inputs = CT_INPUTS_INIT;
    inputs.writes_nothing = true;
    ct_run *run = build(configure(NULL, true), &inputs);
    REQUIRE(run != NULL);
    size_t n = ct_run_n_parameters(run);
    float *x = calloc(n, sizeof *x), *y = calloc(n, sizeof *y);
    WORKS(ct_run_step(run, 5, &error));
    for (int agent = CT_CONSENSUS; agent < 2; agent++) {
        ct_config *config = configure(NULL, true);
        WORKS(ct_run_read(run, 0, agent, x, &error));
        WORKS(ct_run_save(run, 0, agent, "model.safetensors", &error));
        WORKS(ct_config_set(config, "init", "model.safetensors", &error));
        ct_run *next = build(config, &inputs);
        WORKS(ct_run_read(next, 0, 3, y, &error));
        CHECK(memcmp(x, y, n * sizeof *x) == 0);
        ct_run_free(&next);
    }
    FAILS(ct_run_save(run, 0, 0, "nowhere/model", &error), CT_IO, "nowhere");
    free(x);
    free(y);
    ct_run_free(&run);
    unlink("model.safetensors");
}

/* The consensus of a finished run is the one in its directory. */
static void the_consensus_stays_when_a_run_is_done(void) {
    ct_config *config = configure("merged", true);
    WORKS(ct_config_set(config, "final-merge", "on", &error));
    ct_run *run = build(config, NULL);
    REQUIRE(run != NULL);
    WORKS(ct_run_step(run, 0, &error));
    WORKS(ct_run_save(run, 0, CT_CONSENSUS, "model.safetensors", &error));
    CHECK(same_files("model.safetensors", "merged/consensus.safetensors"));
    ct_run_free(&run);
    unlink("model.safetensors");
    remove_tree("merged");
}

/* ---- stopping and going on ---- */

static void a_checkpoint_is_resumed(void) {
    train(configure("whole", true), NULL, 0);
    ct_run *run = build(configure("parts", true), NULL);
    REQUIRE(run != NULL);
    WORKS(ct_run_step(run, 5, &error));
    WORKS(ct_run_checkpoint(run, &error));
    WORKS(ct_run_step(run, 2, &error));
    ct_config *config = configure("parts", true);
    WORKS(ct_config_set(config, "resume", "auto", &error));
    ct_run *second = NULL;
    FAILS(ct_run_create(config, NULL, &second, &error), CT_BUSY, "trained by another");
    ct_run_free(&run);
    run = build(config, NULL);
    REQUIRE(run != NULL);
    CHECK(ct_run_iteration(run) == 5);
    while (!ct_run_is_done(run) && !test_failed) WORKS(ct_run_step(run, 4, &error));
    FAILS(ct_run_checkpoint(run, &error), CT_INVAL, "is done");
    ct_run_free(&run);
    CHECK(same_runs("whole", "parts"));
    config = configure("parts", true);
    WORKS(ct_config_set(config, "resume", "auto", &error));
    FAILS(ct_run_create(config, NULL, &run, &error), CT_INVAL, "finished already");
    ct_config_free(&config);
    remove_tree("whole");
    remove_tree("parts");
}

typedef struct listener {
    long stop_at, last, total;
    int n_lines, n_calls;
    ct_run *run;
    ct_status inner;
} listener;

static void hear(void *context, ct_level level, const char *text) {
    listener *l = context;
    l->n_lines += level == CT_LOG_LINE && text[0] != '\0';
}

static bool go_on(void *context, long now, long total) {
    listener *l = context;
    l->n_calls++;
    l->last = now;
    l->total = total;
    if (l->run != NULL) l->inner = ct_run_step(l->run, 1, NULL);
    return now != l->stop_at;
}

static void a_hook_stops_a_run_that_goes_on_later(void) {
    listener heard = {.stop_at = 3};
    ct_hooks hooks = {&heard, hear, go_on};
    ct_inputs inputs = CT_INPUTS_INIT;
    inputs.hooks = &hooks;
    train(configure("whole", true), NULL, 0);
    ct_run *run = build(configure("stopped", true), &inputs);
    REQUIRE(run != NULL);
    FAILS(ct_run_step(run, 0, &error), CT_STOPPED, "stopped after iteration 3 by the caller");
    CHECK(ct_run_iteration(run) == 3 && heard.last == 3 && heard.n_calls == 3);
    CHECK(n_files("stopped/checkpoint/3") == 6); /* five agents and the manifest */
    heard.run = run;
    WORKS(ct_run_step(run, 1, &error));
    CHECK(heard.inner == CT_INVAL); /* a hook cannot step the run that called it */
    heard.run = NULL;
    WORKS(ct_run_step(run, 0, &error));
    CHECK(ct_run_is_done(run) && heard.n_calls == heard.total && heard.n_lines >= 3);
    ct_run_free(&run);
    CHECK(same_runs("whole", "stopped"));
    remove_tree("whole");
    remove_tree("stopped");
}

static void a_run_can_leave_no_trace(void) {
    listener heard = {.stop_at = 2};
    ct_hooks hooks = {&heard, hear, go_on};
    ct_inputs inputs = CT_INPUTS_INIT;
    inputs.hooks = &hooks;
    inputs.writes_nothing = true;
    int n_before = n_files(".");
    ct_run *run = build(configure(NULL, true), &inputs);
    REQUIRE(run != NULL);
    CHECK(strcmp(ct_run_directory(run), "") == 0);
    FAILS(ct_run_step(run, 0, &error), CT_STOPPED, "after iteration 2");
    FAILS(ct_run_checkpoint(run, &error), CT_INVAL, "writes nothing");
    WORKS(ct_run_step(run, 0, &error));
    CHECK(ct_run_is_done(run) && ct_run_metric(run, 0, "consensus_accuracy") > 0);
    ct_run_free(&run);
    CHECK(n_files(".") == n_before);
}

/* ---- records ---- */

static void a_run_that_diverges_says_so_and_stays_ended(void) {
    ct_config *config = configure("lost", true);
    WORKS(ct_config_set(config, "lr", "1e6", &error));
    WORKS(ct_config_set(config, "epochs", "50", &error));
    ct_run *run = build(config, NULL);
    REQUIRE(run != NULL);
    FAILS(ct_run_step(run, 0, &error), CT_DIVERGED, "lower lr");
    CHECK(!ct_run_is_done(run));
    FAILS(ct_run_step(run, 1, &error), CT_INVAL, "has ended and cannot go on");
    FAILS(ct_run_checkpoint(run, &error), CT_INVAL, "has ended");
    CHECK(ct_run_iteration(run) > 0);
    ct_run_free(&run);
    ct_record *record = NULL;
    long iteration = 0;
    char reason[1024];
    WORKS(ct_record_open("lost", &record, &error));
    CHECK(ct_record_state_of(record, &iteration, reason, sizeof reason) == CT_RECORD_DIVERGED);
    CHECK(iteration > 0 && strstr(reason, "diverged") != NULL);
    ct_record_free(&record);
    remove_tree("lost");
}

/* ---- threads ---- */

typedef struct worker {
    const char *out, *seed;
    ct_status status;
    ct_error error;
} worker;

/* Errors of its own on the way, which must not be seen elsewhere. */
static void *work(void *argument) {
    worker *w = argument;
    ct_config *config = NULL;
    ct_run *run = NULL;
    w->status = ct_config_create(&config, &w->error);
    for (int k = 0; k < N_TINY && w->status == CT_OK; k++)
        w->status = ct_config_set(config, tiny[k][0], tiny[k][1], &w->error);
    if (ct_config_set(config, "threads", "2", &w->error) != CT_OK) w->status = CT_INVAL;
    if (ct_config_set(config, "seed", w->seed, &w->error) != CT_OK) w->status = CT_INVAL;
    if (ct_config_set(config, "out", w->out, &w->error) != CT_OK) w->status = CT_INVAL;
    if (w->status == CT_OK) w->status = ct_run_create(config, NULL, &run, &w->error);
    while (w->status == CT_OK && !ct_run_is_done(run)) {
        ct_error wrong;
        if (ct_config_set(config, w->out, "", &wrong) == CT_OK) w->status = CT_IO;
        if (strstr(wrong.text, w->out) == NULL) w->status = CT_IO;
        if (w->status == CT_OK) w->status = ct_run_step(run, 2, &w->error);
    }
    ct_run_free(&run);
    ct_config_free(&config);
    return NULL;
}

static void two_threads_have_the_bits_of_one(void) {
    worker alone[2] = {{.out = "alone-1", .seed = "1"}, {.out = "alone-2", .seed = "2"}};
    worker both[2] = {{.out = "both-1", .seed = "1"}, {.out = "both-2", .seed = "2"}};
    pthread_t threads[2];
    for (int k = 0; k < 2; k++) work(&alone[k]);
    for (int k = 0; k < 2; k++) REQUIRE(pthread_create(&threads[k], NULL, work, &both[k]) == 0);
    for (int k = 0; k < 2; k++) pthread_join(threads[k], NULL);
    for (int k = 0; k < 2; k++) {
        CHECK(alone[k].status == CT_OK && both[k].status == CT_OK);
        CHECK(same_runs(alone[k].out, both[k].out));
        remove_tree(alone[k].out);
        remove_tree(both[k].out);
    }
}

int main(void) {
    if (!enter_folder()) return 1;
    CHECK(strcmp(ct_version(), CT_VERSION) == 0);
    TEST(the_schema_can_be_walked);
    TEST(an_older_struct_is_filled_as_far_as_it_goes);
    TEST(options_survive_a_file_and_a_copy);
    TEST(a_wrong_option_says_what_would_be_right);
    TEST(any_steps_have_the_bits_of_the_command_line);
    TEST(a_run_tells_where_it_stands);
    TEST(evaluating_changes_nothing);
    TEST(parameters_are_read_and_written);
    TEST(a_view_can_be_handed_to_a_framework);
    TEST(models_are_saved);
    TEST(the_consensus_stays_when_a_run_is_done);
    TEST(a_checkpoint_is_resumed);
    TEST(a_hook_stops_a_run_that_goes_on_later);
    TEST(a_run_can_leave_no_trace);
    TEST(a_run_that_diverges_says_so_and_stays_ended);
    TEST(two_threads_have_the_bits_of_one);
    leave_folder();
    return test_report();
}
