/* Soft targets: their loss against central differences, backends against each other. */
#include "plans.h"

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

int main(void) {
    TEST(soft_targets_have_their_value_and_gradient);
    TEST(targets_that_do_not_count_leave_the_plain_loss);
    TEST(softened_logits_are_probabilities_and_keep_their_order);
    TEST(backends_teach_alike_and_write_no_more_than_there_is);
    TEST(cuda_teaches_like_ref);
    return test_report();
}
