/* Soft targets: their loss against central differences, backends against each other. Def-KT against an
 * independent float64 computation (tests/oracle/distill.py), and what it promises: who meets whom, its
 * bytes, where it is refused. */
#include "oracle.h"
#include "plans.h"

#include <unistd.h>

/* ---- the loss ---- */

enum { N = 6, CLASSES = 5, WIDTH = CLASSES + 2 };
static const int32_t labels[N] = {2, 0, 4, 1, 0, 3};

typedef struct lesson {
    float logits[N * CLASSES], rows[N * WIDTH], dlogits[N * CLASSES];
    double z[N * CLASSES], temperature, smoothing;
} lesson;

/* Targets of every kind: even, certain, and with labels or targets that do not count. */
static void draw_lesson(lesson *l, double temperature, double smoothing) {
    float teacher[N * CLASSES];
    const ct_softening how = {.temperature = 1.5, .hard = 1, .soft = 0.7};
    *l = (lesson){.temperature = temperature, .smoothing = smoothing};
    fill(l->logits, N * CLASSES, 2, 1);
    fill(teacher, N * CLASSES, 2, 2);
    for (int k = 0; k < N * CLASSES; k++) l->z[k] = (double)l->logits[k];
    ct_soften(&how, teacher, N, CLASSES, l->rows);
    for (int c = 0; c < CLASSES; c++) l->rows[WIDTH + c] = c == 3;
    l->rows[2 * WIDTH + CLASSES] = 0;
    l->rows[3 * WIDTH + CLASSES + 1] = 0;
}

/* The same in double, from the definition. */
static double plain_sample(const lesson *l, int b) {
    const double *z = l->z + b * CLASSES;
    const float *row = l->rows + b * WIDTH;
    double sum = 0, soft_sum = 0, ce = 0, kl = 0;
    for (int c = 0; c < CLASSES; c++) sum += exp(z[c]);
    for (int c = 0; c < CLASSES; c++) soft_sum += exp(z[c] / l->temperature);
    for (int c = 0; c < CLASSES; c++) {
        double wanted = (1 - l->smoothing) * (c == labels[b]) + l->smoothing / CLASSES;
        double t = (double)row[c], p = exp(z[c] / l->temperature) / soft_sum;
        ce -= wanted * log(exp(z[c]) / sum);
        if (t > 0) kl += t * log(t / p);
    }
    return (double)row[CLASSES] * ce +
           (double)row[CLASSES + 1] * l->temperature * l->temperature * kl;
}

static double plain_loss(const lesson *l) {
    double loss = 0;
    for (int b = 0; b < N; b++) loss += plain_sample(l, b) / N;
    return loss;
}

static void check_lesson(double temperature, double smoothing) {
    const double h = 1e-5;
    static lesson l;
    double hard, soft;
    int n_correct;
    draw_lesson(&l, temperature, smoothing);
    ct_soft_batch batch = {l.logits, labels, l.rows, N, CLASSES, temperature, smoothing};
    for (int k = 0; k < N * CLASSES; k++) l.dlogits[k] = NAN;
    ct_soft_loss(&batch, l.dlogits, &n_correct, &hard, &soft);
    CHECK_NEAR(hard + soft, plain_loss(&l), 1e-6);
    for (int k = 0; k < N * CLASSES; k++) {
        const double z = l.z[k];
        l.z[k] = z + h;
        double above = plain_loss(&l);
        l.z[k] = z - h;
        CHECK_NEAR(l.dlogits[k], (above - plain_loss(&l)) / (2 * h), 1e-6);
        l.z[k] = z;
    }
}

static void soft_targets_have_their_value_and_gradient(void) {
    check_lesson(1, 0);
    check_lesson(2.5, 0);
    check_lesson(0.4, 0.1);
}

static void targets_that_do_not_count_leave_the_plain_loss(void) {
    static lesson l;
    float plain[N * CLASSES];
    double hard, soft;
    int n_plain, n_correct;
    draw_lesson(&l, 3, 0);
    for (int b = 0; b < N; b++) {
        l.rows[b * WIDTH + CLASSES] = 1;
        l.rows[b * WIDTH + CLASSES + 1] = 0;
    }
    ct_soft_batch batch = {l.logits, labels, l.rows, N, CLASSES, 3, 0};
    ct_soft_loss(&batch, l.dlogits, &n_correct, &hard, &soft);
    CHECK_NEAR(hard, ct_cross_entropy(l.logits, labels, N, CLASSES, plain, &n_plain, NULL), 1e-12);
    CHECK(soft == 0 && n_correct == n_plain);
    for (int k = 0; k < N * CLASSES; k++) CHECK_NEAR(l.dlogits[k], plain[k], 1e-7);
}

static void softened_logits_are_probabilities_and_keep_their_order(void) {
    const float logits[2 * CLASSES] = {1000, 999, -1000, 0, 5, 1, 1, 1, 1, 1};
    const ct_softening how = {.temperature = 2, .hard = 0.25, .soft = 3};
    float rows[2 * WIDTH];
    ct_soften(&how, logits, 2, CLASSES, rows);
    CHECK_NEAR(rows[0], 1 / (1 + exp(-0.5)), 1e-6);
    CHECK_NEAR(rows[1], 1 - (double)rows[0], 1e-6);
    CHECK(rows[2] == 0 && rows[CLASSES] == 0.25f && rows[CLASSES + 1] == 3);
    for (int c = 0; c < CLASSES; c++) CHECK_NEAR(rows[WIDTH + c], 0.2, 1e-7);
}

/* ---- backends ---- */

enum { N_MODELS = 3, MAX_BATCH = 21 };

/* What a device makes of three models on batches of 21, 5 and 16 samples: targets, then gradients
 * towards the next model's targets; the second job has labels alone. */
typedef struct taught {
    float *rows, *gradient, *losses;
} taught;

static void poison(ct_bank *bank) {
    float *nan = ct_new(float, bank->n);
    for (size_t k = 0; k < bank->n; k++) nan[k] = NAN;
    for (int row = 0; row < bank->n_rows; row++)
        CHECK_OK(ct_bank_write(bank, row, 0, bank->n, nan));
    ct_free(nan);
}

static void teach(ct_backend *backend, const ct_graph *g, const ct_images *images, taught *out) {
    static const int sizes[N_MODELS] = {MAX_BATCH, 5, 16}, row[N_MODELS] = {1, -1, 0};
    static uint32_t index[N_MODELS][MAX_BATCH];
    const ct_softening how = {.temperature = 2, .hard = 0.5, .soft = 1.5};
    ct_source *source = NULL;
    ct_plan *plan = NULL;
    ct_bank targets;
    banks b;
    ct_job jobs[N_MODELS];
    ct_batch batches[N_MODELS];
    REQUIRE_OK(make_source(backend, images, &source));
    REQUIRE_OK(ct_plan_create(backend, g, MAX_BATCH, &plan));
    create_banks(backend, g, N_MODELS, N_MODELS, MAX_BATCH, &b);
    REQUIRE_OK(
        ct_bank_create(backend, N_MODELS, 0, MAX_BATCH * ct_soft_width(g->n_classes), &targets));
    float *model = ct_new(float, g->n_weights);
    for (int k = 0; k < N_MODELS; k++) {
        ct_init_params(g, 7 + (uint64_t)k, model);
        CHECK_OK(ct_bank_write(&b.params, k, 0, g->n_weights, model));
        choose_samples(sizes[k], 3, k, index[k]);
        batches[k] = (ct_batch){.n = sizes[k], .index = index[k]};
    }
    poison(&targets), poison(&b.gradient), poison(&b.losses);
    ct_work work = {.params = &b.params,
                    .source = source,
                    .batches = batches,
                    .jobs = jobs,
                    .n_jobs = N_MODELS};
    /* batch 0 under model 1 to row 1, 2 under 0 to row 0, and one that nobody asks for */
    jobs[0] = (ct_job){.model = 1, .batch = 0, .out = 1};
    jobs[1] = (ct_job){.model = 0, .batch = 2, .out = 0};
    jobs[2] = (ct_job){.model = 2, .batch = 1, .out = 2};
    CHECK_OK(ct_soften_jobs(plan, &work, &how, &targets));
    for (int k = 0; k < N_MODELS; k++) jobs[k] = (ct_job){.model = k, .batch = k, .out = k};
    const ct_objective objective = {.soft = {.rows = &targets, .row = row, .temperature = 2}};
    CHECK_OK(ct_gradient(plan, &work, &objective, &b.gradient, &b.losses, 1));
    out->rows = read_bank(&targets);
    out->gradient = read_bank(&b.gradient);
    out->losses = read_bank(&b.losses);
    ct_bank_free(&targets);
    free_banks(&b);
    ct_free(model);
    ct_plan_free(&plan);
    ct_source_free(&source);
}

static void free_taught(taught *t) {
    ct_free(t->rows);
    ct_free(t->gradient);
    ct_free(t->losses);
}

/* Targets of samples that there are, and nothing written behind them. */
static void check_rows(const taught *got, const taught *wanted, const ct_graph *g,
                       double tolerance) {
    static const int n_of_row[N_MODELS] = {16, MAX_BATCH, 5};
    const size_t width = ct_soft_width(g->n_classes), all = MAX_BATCH * width;
    for (size_t k = 0; k < N_MODELS; k++) {
        const size_t n = (size_t)n_of_row[k] * width;
        CHECK_NEAR(error_of(got->rows + k * all, wanted->rows + k * all, n, 0), 0, tolerance);
        for (size_t i = n; i < all; i++) CHECK(isnan(got->rows[k * all + i]));
    }
}

static void check_device(const char *device, const char *model, ct_shape shape, double tolerance) {
    ct_model_spec spec = {.name = model, .input = shape, .n_classes = 5};
    ct_backend_options options = {.n_threads = 2, .precision = CT_PRECISION_FP32};
    ct_backend *ref = NULL, *other = NULL;
    ct_graph g;
    taught wanted = {0}, got = {0};
    REQUIRE_OK(ct_graph_create(&spec, &g));
    ct_images images = make_images(shape, 5);
    REQUIRE_OK(ct_backend_create("ref", &options, &ref));
    REQUIRE_OK(ct_backend_create(device, &options, &other));
    teach(ref, &g, &images, &wanted);
    teach(other, &g, &images, &got);
    check_rows(&got, &wanted, &g, tolerance);
    const size_t n = g.n_weights;
    for (size_t k = 0; k < N_MODELS; k++) {
        CHECK_NEAR(error_of(got.gradient + k * n, wanted.gradient + k * n, n, 0), 0, tolerance);
        const float *a = got.losses + k * (CT_LOSS_FIELDS + 1) + 1;
        CHECK_NEAR(error_of(a, wanted.losses + k * (CT_LOSS_FIELDS + 1) + 1, CT_LOSS_FIELDS, 0), 0,
                   tolerance);
    }
    free_taught(&wanted), free_taught(&got);
    ct_backend_free(&ref), ct_backend_free(&other);
    free_images(&images);
    ct_graph_free(&g);
}

static void backends_teach_alike_and_write_no_more_than_there_is(void) {
    check_device("cpu", "mlp:16", (ct_shape){1, 6, 6}, 1e-5);
    check_device("cpu", "lenet5", (ct_shape){1, 28, 28}, 1e-5);
}

static bool has_gpu(void) {
    ct_backend *backend = NULL;
    ct_backend_options options = {.n_threads = 1};
    const bool works = ct_backend_create("cuda", &options, &backend) == CT_OK;
    ct_clear_message();
    ct_backend_free(&backend);
    return works;
}

static void cuda_teaches_like_ref(void) {
    if (!has_gpu()) SKIP("no GPU works here");
    check_device("cuda", "mlp:16", (ct_shape){1, 6, 6}, 1e-4);
    check_device("cuda", "lenet5", (ct_shape){1, 28, 28}, 1e-4);
    check_device("cuda", "resnet20", (ct_shape){3, 32, 32}, 1e-3);
}

/* ---- Def-KT ---- */

#define APART "--init init-agents.safetensors --weight-decay 0.01 --lr 0.1 --loss ce --batch-size 9"

static void the_fixtures_cover_every_form(void) {
    static const char *const wanted[] = {"def-kt ",
                                         "--variant own",
                                         "--loss ccl",
                                         "--local-steps",
                                         "--kt-weight",
                                         "--kt-temperature",
                                         "--sam",
                                         "--clip-norm",
                                         "--label-smoothing",
                                         "one-peer-exponential",
                                         "--public-data",
                                         "--public-samples",
                                         "--distil-epochs 1,2",
                                         "--distil-threshold",
                                         "--distil-temperature",
                                         "atc",
                                         "wacv24",
                                         "dsgdm"};
    read_fixtures("distill");
    check_cover(wanted, sizeof wanted / sizeof *wanted);
}

static void five_steps_of_every_case_agree_with_the_oracle(void) {
    REQUIRE(n_fixtures > 0);
    for (int i = 0; i < n_fixtures; i++) check_case("ref", &fixtures[i], 2e-5);
    for (int i = 0; i < n_fixtures; i++) check_case("cpu", &fixtures[i], 2e-4);
}

static void five_steps_of_every_case_agree_with_the_oracle_on_cuda(void) {
    if (!has_gpu()) SKIP("no GPU works here");
    for (int i = 0; i < n_fixtures; i++) check_case("cuda", &fixtures[i], 2e-4);
}

/* Own rows of x after four steps, agents from `first` on. */
static void train(const char *base, const char *options, int first,
                  float rows[4][RUN_MAX_COLUMNS]) {
    static ct_run run;
    REQUIRE_OK(run_create("cpu", base, options, &run));
    size_t n = run.graph.n_weights;
    REQUIRE(n <= RUN_MAX_COLUMNS);
    run_steps(&run, 0, 4);
    for (int i = 0; i < 4; i++) CHECK_OK(ct_bank_read(&run.agents.x, first + i, 0, n, rows[i]));
    ct_run_clear(&run);
}

static const char *const forms[] = {
    "--algorithm def-kt", "--algorithm def-kt --loss ccl --local-steps 2",
    "--algorithm def-kt --variant own --topology full",
    "--algorithm def-kt --topology matchings --sam 0.1 --clip-norm 0.5",
    "--algorithm def-kt --topology epidemic-local:2 --local-steps 3 --kt-temperature 2"};
enum { N_FORMS = sizeof forms / sizeof *forms };

static void seeds_side_by_side_train_as_they_would_alone(void) {
    static float together[4][RUN_MAX_COLUMNS], alone[4][RUN_MAX_COLUMNS];
    for (size_t k = 0; k < N_FORMS; k++) {
        train(RUN_PLAIN " --agents 4 --seeds 3,5", forms[k], 4, together);
        train(RUN_PLAIN " --agents 4 --seed 5", forms[k], 0, alone);
        bool is_same = memcmp(together, alone, sizeof alone) == 0;
        if (!is_same) printf("    with %s\n", forms[k]);
        CHECK(is_same);
    }
}

static void a_step_takes_no_memory(void) {
    static ct_run run;
    for (size_t k = 0; k < N_FORMS; k++) {
        REQUIRE_OK(run_create("cpu", RUN_PLAIN " --agents 6", forms[k], &run));
        run_steps(&run, 0, 4);
        uint64_t before = ct_alloc_count();
        run_steps(&run, 4, 4);
        if (ct_alloc_count() != before) printf("    with %s\n", forms[k]);
        CHECK(ct_alloc_count() == before);
        ct_run_clear(&run);
    }
}

/* Rows of models that six agents send in 12 iterations. */
static double rows_sent(const char *options) {
    static ct_run run;
    double sent = 0;
    if (run_create("cpu", RUN_PLAIN " --agents 6 --topology full", options, &run) != CT_OK)
        return NAN;
    run_steps(&run, 0, 12);
    for (int i = 0; i < 6; i++)
        sent += (double)ct_transport_sent(run.transport, i, CT_TRAFFIC_PARAMETERS);
    sent /= 4.0 * (double)run.graph.n_weights;
    ct_run_clear(&run);
    return sent;
}

static void of_every_pair_one_sends_its_model_once_a_round(void) {
    CHECK_NEAR(rows_sent("--algorithm def-kt"), 12 * 3, 0);
    CHECK_NEAR(rows_sent("--algorithm def-kt --variant own --local-steps 4"), 3 * 3, 0);
    /* with CCL everyone's model goes to everyone as well, in rounds that contrast */
    CHECK_NEAR(rows_sent("--algorithm def-kt --loss ccl --local-steps 4"), 3 * (3 + 6 * 5), 0);
}

/* Pairs of a round: nobody in two, along edges, and none could be added. */
static void check_pairs(const ct_run *run, const double *guest_of, int *n_met) {
    const ct_topology *t = &run->topology;
    int in[RUN_MAX_AGENTS] = {0};
    for (int i = 0; i < t->n; i++) {
        if (guest_of[i] < 0) continue;
        const int from = (int)guest_of[i];
        CHECK(ct_topology_has_edge(t, from, i));
        in[i]++, in[from]++;
        n_met[i * t->n + from]++;
    }
    for (int i = 0; i < t->n; i++) {
        CHECK(in[i] <= 1);
        for (int e = t->begin[i]; e < t->begin[i + 1]; e++)
            CHECK(in[i] == 1 || in[t->neighbour[e]] == 1);
    }
}

/* Over many rounds everyone hosts each of its neighbours about as often as any. */
static void pairs_are_drawn_along_edges_and_without_preference(void) {
    enum { AGENTS = 6, ROUNDS = 600 };
    static ct_run run;
    int n_met[AGENTS * AGENTS] = {0};
    REQUIRE_OK(run_create("cpu", RUN_PLAIN " --agents 6 --topology ring --epochs 300",
                          "--algorithm def-kt --batch-size 1", &run));
    for (long k = 0; k < ROUNDS; k++) {
        size_t n = 0;
        run_steps(&run, k, 1);
        const double *guest_of = run.algo->host_state(run.agents.state, &n);
        REQUIRE(n == AGENTS);
        check_pairs(&run, guest_of, n_met);
    }
    /* a pair of neighbours meets with probability 4/9, either way */
    for (int i = 0; i < AGENTS; i++)
        for (int k = -1; k <= 1; k += 2)
            CHECK_NEAR(n_met[i * AGENTS + (i + k + AGENTS) % AGENTS] / (double)ROUNDS, 2.0 / 9,
                       0.06);
    ct_run_clear(&run);
}

/* Who keeps its own model and does not listen is alone. */
static void without_weight_own_models_train_alone(void) {
    static float own[4][RUN_MAX_COLUMNS], local[4][RUN_MAX_COLUMNS];
    train(RUN_ORACLE " " APART, "--algorithm def-kt --variant own --kt-weight 0", 0, own);
    train(RUN_ORACLE " " APART, "--algorithm local --momentum 0", 0, local);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < RUN_MAX_COLUMNS; k++) CHECK_NEAR(own[i][k], local[i][k], 1e-6);
}

/* Without steps `own` leaves every model where it is, `paper` leaves the sender's with both. */
static void without_steps_models_only_travel(void) {
    static ct_run run;
    static float before[5][RUN_MAX_COLUMNS], after[RUN_MAX_COLUMNS];
    for (int is_own = 0; is_own < 2; is_own++) {
        size_t n_rows = 0;
        REQUIRE_OK(run_create("cpu", RUN_ORACLE " " APART,
                              is_own ? "--algorithm def-kt --variant own --lr 1e-12"
                                     : "--algorithm def-kt --lr 1e-12",
                              &run));
        const size_t n = run.graph.n_weights;
        for (int i = 0; i < 5; i++) CHECK_OK(ct_bank_read(&run.agents.x, i, 0, n, before[i]));
        run_steps(&run, 0, 1);
        const double *guest_of = run.algo->host_state(run.agents.state, &n_rows);
        for (int i = 0; i < 5; i++) {
            const int from = is_own || guest_of[i] < 0 ? i : (int)guest_of[i];
            CHECK_OK(ct_bank_read(&run.agents.x, i, 0, n, after));
            for (size_t k = 0; k < n; k++) CHECK_NEAR(after[k], before[from][k], 1e-9);
        }
        ct_run_clear(&run);
    }
}

static void it_is_refused_where_it_is_wrong(void) {
    static const char *const cases[][2] = {
        {"--algorithm def-kt --fault drop=0.1", "def-kt cannot lose messages"},
        {"--algorithm def-kt --compress sign", "def-kt cannot train with --compress"},
        {"--algorithm def-kt --norm batchnorm --model resnet20", "not --norm batchnorm"},
        {"--algorithm def-kt --kt-temperature 0", "kt-temperature"},
    };
    static ct_run run;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        CHECK_FAILS(run_create("cpu", RUN_PLAIN, cases[k][0], &run), CT_INVAL, cases[k][1]);
}

int main(void) {
    if (chdir(CT_SOURCE_DIR "/tests/fixtures") != 0) return 1;
    TEST(soft_targets_have_their_value_and_gradient);
    TEST(targets_that_do_not_count_leave_the_plain_loss);
    TEST(softened_logits_are_probabilities_and_keep_their_order);
    TEST(backends_teach_alike_and_write_no_more_than_there_is);
    TEST(cuda_teaches_like_ref);
    TEST(the_fixtures_cover_every_form);
    TEST(five_steps_of_every_case_agree_with_the_oracle);
    TEST(five_steps_of_every_case_agree_with_the_oracle_on_cuda);
    TEST(seeds_side_by_side_train_as_they_would_alone);
    TEST(a_step_takes_no_memory);
    TEST(of_every_pair_one_sends_its_model_once_a_round);
    TEST(pairs_are_drawn_along_edges_and_without_preference);
    TEST(without_weight_own_models_train_alone);
    TEST(without_steps_models_only_travel);
    TEST(it_is_refused_where_it_is_wrong);
    return test_report();
}
