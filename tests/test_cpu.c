/* The cpu backend against ref: every node type, every model, every instruction set this machine
 * has, odd batch sizes, any number of threads. Errors are norm-wise per tensor, |a - b| / |b|. */
#include "plans.h"

/* Single precision, sums of at most a few thousand terms; Winograd's transforms cost some digits.
 */
#define EXACT_ERROR    1e-4
#define WINOGRAD_ERROR 5e-4
/* Channels of a gradient that cancel are compared against the whole row: this much of its norm. */
#define FLOOR 1e-6

enum { N_MODELS = 2, N_CROSS = 2 };

/* Everything a backend is asked for, for N_MODELS jobs. */
typedef struct results {
    int n, r, n_classes;
    size_t n_weights, n_buffers;
    float *features, *sums, *gradient, *ccl_gradient, *losses, *ccl_losses, *buffers;
    ct_score scores[N_MODELS];
    int *predictions;
} results;

typedef struct setup {
    const ct_graph *graph;
    int n; /* samples of a batch */
    int max_batch;
    int n_threads;
    bool exact;
    const char *isa; /* NULL: the best one */
    ct_distance distance;
    int n_models;       /* jobs: model m on batch m */
    const float *start; /* [n_models][n_weights] */
} setup;

/* The models' weights: start values, all of them nudged so that no two models are equal and no bias
 * is 0. */
static float *make_weights(const ct_graph *g, int n_models) {
    float *rows = ct_new(float, (size_t)n_models * g->n_weights + 1);
    uint32_t state = 12345;
    for (int m = 0; m < n_models; m++) {
        float *row = rows + (size_t)m * g->n_weights;
        if (m == 0)
            ct_init_params(g, 5, row);
        else
            memcpy(row, rows, g->n_weights * sizeof *row);
        for (size_t k = 0; k < g->n_weights; k++) {
            state = state * 1664525u + 1013904223u;
            row[k] += 0.1f * ((float)(state >> 8) / 16777216.0f - 0.5f);
        }
    }
    return rows;
}

static void fill_params(const setup *s, ct_bank *params, ct_bank *buffers) {
    const ct_graph *g = s->graph;
    for (int m = 0; m < s->n_models; m++)
        CHECK_OK(ct_bank_write(params, m, 0, g->n_weights, s->start + (size_t)m * g->n_weights));
    if (g->n_buffers == 0) return;
    float *row = ct_new(float, g->n_buffer_values);
    ct_init_buffers(g, row);
    for (int m = 0; m < s->n_models; m++)
        CHECK_OK(ct_bank_write(buffers, m, 0, g->n_buffer_values, row));
    ct_free(row);
}

static void free_results(results *r) {
    ct_free(r->features);
    ct_free(r->sums);
    ct_free(r->gradient);
    ct_free(r->ccl_gradient);
    ct_free(r->losses);
    ct_free(r->ccl_losses);
    ct_free(r->buffers);
    ct_free(r->predictions);
    memset(r, 0, sizeof *r);
}

static void make_banks(ct_backend *backend, const setup *s, banks *b) {
    create_banks(backend, s->graph, N_MODELS, N_MODELS, s->max_batch, b);
    fill_params(s, &b->params, &b->buffers);
    /* a gradient's row is overwritten, whatever was there */
    memset(b->gradient.data, 0x7f, b->gradient.stride * N_MODELS * sizeof(float));
}

/* Bits of a bank's padding: the columns n .. stride-1 keep what they were. */
static bool padding_is(const ct_bank *bank, int byte) {
    for (int i = 0; i < bank->n_rows; i++) {
        const unsigned char *row = (const unsigned char *)(bank->data + (size_t)i * bank->stride);
        for (size_t k = bank->n * sizeof(float); k < bank->stride * sizeof(float); k++)
            if (row[k] != byte) return false;
    }
    return true;
}

/* A call of a step: it succeeds and allocates nothing. */
#define STEP(call)                                                                                 \
    do {                                                                                           \
        uint64_t before_ = ct_alloc_count();                                                       \
        CHECK_OK(call);                                                                            \
        CHECK(ct_alloc_count() == before_);                                                        \
    } while (0)

static void run_all(const setup *s, ct_plan *plan, const ct_work *work, banks *b, results *out) {
    const ct_graph *g = s->graph;
    int cross_begin[N_MODELS + 1] = {0, s->n_models, N_CROSS};
    ct_objective plain = {.cross_begin = cross_begin};
    ct_objective ccl = {
        .loss = {.ccl = true, .lambda_m = 0.5, .lambda_d = 0.7, .distance = s->distance},
        .cross = &b->features,
        .cross_begin = cross_begin,
        .class_sums = &b->sums};
    *out = (results){.n = s->n,
                     .r = (int)ct_graph_n_features(g),
                     .n_classes = g->n_classes,
                     .n_weights = g->n_weights,
                     .n_buffers = g->n_buffer_values};
    STEP(ct_features(plan, work, &b->features, &b->sums));
    out->features = read_bank(&b->features);
    out->sums = read_bank(&b->sums);
    if (s->n_models > 1) STEP(ct_gradient(plan, work, &plain, &b->gradient, &b->losses, 1));
    out->gradient = read_bank(&b->gradient);
    out->losses = read_bank(&b->losses);
    STEP(ct_gradient(plan, work, &ccl, &b->gradient, &b->losses, 0));
    out->ccl_gradient = read_bank(&b->gradient);
    out->ccl_losses = read_bank(&b->losses);
    out->buffers = read_bank(&b->buffers);
    out->predictions = ct_new(int, (size_t)(N_MODELS * s->max_batch));
    STEP(ct_evaluate(plan, work, out->scores, out->predictions));
}

/* Runs everything on one backend. */
static void collect(const char *name, const setup *s, results *out) {
    const ct_graph *g = s->graph;
    ct_backend *backend = NULL;
    ct_source *source = NULL;
    ct_plan *plan = NULL;
    banks b = {0};
    ct_images images = make_images(g->nodes[0].shape, g->n_classes);
    if (s->isa != NULL) setenv("CROSSTALK_ISA", s->isa, 1);
    CHECK_OK(ct_backend_create(
        name, &(ct_backend_options){.n_threads = s->n_threads, .exact_conv = s->exact}, &backend));
    unsetenv("CROSSTALK_ISA");
    REQUIRE(backend != NULL);
    make_banks(backend, s, &b);
    CHECK_OK(make_source(backend, &images, &source));
    CHECK_OK(ct_plan_create(backend, g, s->max_batch, &plan));
    uint32_t index[2][64];
    ct_crop crop[64];
    ct_batch batches[2] = {{.n = s->n, .index = index[0], .crop = crop},
                           {.n = s->n, .index = index[1]}};
    choose_samples(64, 7, 3, index[0]);
    choose_samples(64, 11, 5, index[1]);
    choose_crops(64, crop);
    ct_job jobs[N_MODELS] = {{.model = 0, .batch = 0, .out = 0},
                             {.model = 1, .batch = 1, .out = 1}};
    ct_work work = {.params = &b.params,
                    .buffers = g->n_buffers > 0 ? &b.buffers : NULL,
                    .source = source,
                    .batches = batches,
                    .jobs = jobs,
                    .n_jobs = s->n_models};
    run_all(s, plan, &work, &b, out);
    CHECK(padding_is(&b.gradient, 0x7f));
    ct_plan_free(&plan);
    ct_source_free(&source);
    free_banks(&b);
    ct_backend_free(&backend);
    free_images(&images);
}

/* The worst tensor of a gradient row; its name if it is too far off. */
static void check_gradient(const ct_graph *g, const float *got, const float *expected,
                           double tolerance, const char *what) {
    double floor = FLOOR * norm_of(expected, g->n_weights);
    for (int p = 0; p < g->n_params; p++) {
        const ct_param *q = &g->params[p];
        double error = error_of(got + q->offset, expected + q->offset, q->count, floor);
        if (error <= tolerance) continue;
        printf("    %s: %s of %s is off by %.3g\n", what, q->name, g->model, error);
        test_failed = true;
        return;
    }
}

static void compare(const setup *s, const results *got, const results *ref) {
    const ct_graph *g = s->graph;
    const double tolerance = s->exact ? EXACT_ERROR : WINOGRAD_ERROR;
    const size_t n_features = (size_t)(s->n * ref->r);
    const size_t row = (size_t)(s->max_batch * ref->r);
    const size_t n_sums = (size_t)(ref->n_classes * (ref->r + 1));
    for (size_t m = 0; m < (size_t)s->n_models; m++) {
        CHECK_NEAR(error_of(got->features + m * row, ref->features + m * row, n_features, 0), 0,
                   tolerance);
        CHECK_NEAR(error_of(got->sums + m * n_sums, ref->sums + m * n_sums, n_sums, 0), 0,
                   tolerance);
        check_gradient(g, got->gradient + m * g->n_weights, ref->gradient + m * g->n_weights,
                       tolerance, "gradient");
        check_gradient(g, got->ccl_gradient + m * g->n_weights,
                       ref->ccl_gradient + m * g->n_weights, tolerance, "gradient with ccl");
        CHECK_NEAR(error_of(got->buffers + m * (g->n_buffer_values + 1),
                            ref->buffers + m * (g->n_buffer_values + 1), g->n_buffer_values, 1e-9),
                   0, tolerance);
        CHECK(got->scores[m].n == ref->scores[m].n);
        CHECK_NEAR(got->scores[m].loss_sum, ref->scores[m].loss_sum,
                   2 * tolerance * (1 + fabs(ref->scores[m].loss_sum)));
        const float *a = got->losses + m * (CT_LOSS_FIELDS + 1) + 1;
        const float *b = ref->losses + m * (CT_LOSS_FIELDS + 1) + 1;
        CHECK_NEAR(a[CT_LOSS_CE], b[CT_LOSS_CE], tolerance * (1 + fabs((double)b[CT_LOSS_CE])));
        CHECK(a[CT_LOSS_MV] == 0 && a[CT_LOSS_DV] == 0);
        a = got->ccl_losses + m * (CT_LOSS_FIELDS + 1);
        b = ref->ccl_losses + m * (CT_LOSS_FIELDS + 1);
        CHECK_NEAR(a[CT_LOSS_MV], b[CT_LOSS_MV], 4 * tolerance * (1 + (double)b[CT_LOSS_MV]));
        CHECK_NEAR(a[CT_LOSS_DV], b[CT_LOSS_DV], 4 * tolerance * (1 + (double)b[CT_LOSS_DV]));
    }
    if (test_failed)
        printf("    with %s, batch %d, isa %s, exact %d\n", g->model, s->n,
               s->isa != NULL ? s->isa : "best", s->exact);
}

static const char *const isas[] = {"avx512", "avx2", "neon", "portable"};

static bool has_isa(const char *isa) {
    ct_backend *backend = NULL;
    setenv("CROSSTALK_ISA", isa, 1);
    ct_clear_message();
    bool ok = ct_backend_create("cpu", &(ct_backend_options){.n_threads = 1}, &backend) == CT_OK;
    unsetenv("CROSSTALK_ISA");
    ct_clear_message();
    ct_backend_free(&backend);
    return ok;
}

/* One graph, one batch size, against ref on every instruction set. */
static void agree(const ct_graph *g, int n, bool exact) {
    setup s = {.graph = g, .n = n, .max_batch = n > 3 ? n + 2 : n, .n_threads = 1, .exact = exact};
    s.distance = (ct_distance)(n % 3);
    s.n_models = g->n_weights > 1000000 ? 1 : N_MODELS; /* ref takes its time for the large ones */
    float *start = make_weights(g, s.n_models);
    s.start = start;
    results ref = {0}, got = {0};
    collect("ref", &s, &ref);
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        if (!has_isa(isas[i])) continue;
        s.isa = isas[i];
        collect("cpu", &s, &got);
        compare(&s, &got, &ref);
        free_results(&got);
    }
    free_results(&ref);
    ct_free(start);
}

/* ---- graphs of single node types, with odd shapes ---- */

static void check_graph(ct_graph *g, int n, bool exact) {
    CHECK_OK(g->status);
    if (g->status == CT_OK) agree(g, n, exact);
    ct_graph_free(g);
}

static void convolutions_agree_with_ref(void) {
    static const struct {
        int c_in, c_out, kernel, stride, pad, groups, h, w;
        bool bias, relu;
    } shapes[] = {
        {3, 7, 3, 1, 1, 1, 9, 6, true, true},    {3, 8, 3, 2, 1, 1, 9, 8, false, false},
        {4, 6, 5, 1, 2, 1, 8, 7, true, true},    {6, 16, 5, 1, 0, 1, 14, 14, true, true},
        {5, 9, 1, 1, 0, 1, 6, 5, true, false},   {4, 12, 1, 2, 0, 1, 7, 8, false, false},
        {3, 5, 7, 2, 3, 1, 15, 14, false, true}, {6, 6, 3, 1, 1, 6, 7, 6, false, false},
        {6, 6, 3, 2, 1, 6, 8, 7, true, true},    {8, 12, 3, 1, 1, 4, 6, 6, true, false},
        {2, 3, 4, 3, 1, 1, 11, 10, true, false}, {4, 4, 2, 3, 0, 1, 11, 8, false, false},
        {3, 4, 3, 1, 2, 1, 5, 5, false, false},  {8, 8, 5, 2, 2, 8, 9, 9, false, false},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char name[64];
        snprintf(name, sizeof name, "conv %zu", i);
        ct_graph g = begin_graph(name, (ct_shape){2, shapes[i].h, shapes[i].w});
        /* a 1x1 layer before it, so that the data gradient is seen */
        int x = ct_conv(&g, 0, "first", shapes[i].c_in, 1, 1, 0, 1, true);
        x = ct_conv(&g, x, "conv", shapes[i].c_out, shapes[i].kernel, shapes[i].stride,
                    shapes[i].pad, shapes[i].groups, shapes[i].bias);
        if (shapes[i].relu) x = ct_relu(&g, x);
        end_graph(&g, x);
        check_graph(&g, 17, true);
    }
}

static void winograd_convolutions_agree_with_ref(void) {
    static const int sizes[][4] = {
        {8, 8, 8, 8}, {12, 16, 16, 24}, {8, 16, 9, 7}, {16, 12, 5, 6}, {12, 8, 4, 4}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ct_graph g = begin_graph("winograd", (ct_shape){2, sizes[i][2], sizes[i][3]});
        int x = ct_conv(&g, 0, "first", sizes[i][0], 1, 1, 0, 1, true);
        int y = ct_conv(&g, x, "conv", sizes[i][1], 3, 1, 1, 1, true);
        y = ct_relu(&g, y);
        y = ct_conv(&g, y, "back", sizes[i][0], 3, 1, 1, 1, false);
        y = ct_conv(&g, ct_add(&g, y, x), "half", 12, 3, 2, 1, 1, true);
        end_graph(&g, ct_relu(&g, y));
        check_graph(&g, 18, false);
    }
}

static void norms_agree_with_ref(void) {
    static const ct_op kinds[] = {CT_OP_EVONORM, CT_OP_EVONORM_S0, CT_OP_GROUPNORM,
                                  CT_OP_BATCHNORM};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        ct_graph g = begin_graph("norm", (ct_shape){3, 7, 5});
        int x = ct_conv(&g, 0, "conv1", 16, 3, 1, 1, 1, false);
        x = ct_norm(&g, x, kinds[i], "bn1");
        int y = ct_conv(&g, x, "conv2", 16, 1, 1, 0, 1, false);
        y = ct_norm(&g, y, kinds[i], "bn2"); /* joined with the addition */
        x = ct_relu(&g, ct_add(&g, x, y));
        int z = ct_norm(&g, x, kinds[i], "bn3"); /* apart from it, and x has two readers */
        end_graph(&g, ct_add(&g, ct_relu(&g, z), x));
        check_graph(&g, 19, true);
    }
}

static void pooling_agrees_with_ref(void) {
    static const int shapes[][5] = {
        {2, 2, 0, 8, 6}, {2, 2, 0, 7, 9}, {3, 2, 1, 8, 9}, {3, 1, 0, 6, 5}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        ct_graph g = begin_graph("pool", (ct_shape){2, shapes[i][3], shapes[i][4]});
        int x = ct_relu(&g, ct_conv(&g, 0, "conv", 5, 3, 1, 1, 1, true));
        x = ct_maxpool(&g, x, shapes[i][0], shapes[i][1], shapes[i][2]);
        end_graph(&g, x);
        check_graph(&g, 5, true);
    }
}

/* The same tensor read twice by one addition, by several nodes, and as the features. */
static void gradients_of_shared_tensors_are_added(void) {
    ct_graph g = begin_graph("shared", (ct_shape){2, 6, 6});
    int x = ct_conv(&g, 0, "conv", 8, 3, 1, 1, 1, true);
    int y = ct_add(&g, x, x);
    int a = ct_relu(&g, ct_conv(&g, y, "a", 8, 1, 1, 0, 1, true));
    int b = ct_relu(&g, ct_conv(&g, y, "b", 8, 1, 1, 0, 1, true));
    int sum = ct_add(&g, ct_add(&g, a, b), ct_add(&g, y, a));
    sum = ct_add(&g, sum, ct_norm(&g, sum, CT_OP_EVONORM, "n"));
    int f = ct_avgpool(&g, sum);
    ct_set_features(&g, f);
    int h = ct_linear(&g, f, "fc1", 8);
    ct_linear(&g, ct_add(&g, h, f), "fc2", g.n_classes);
    check_graph(&g, 6, true);
}

/* ---- models ---- */

static void check_model(const char *name, ct_shape input, const char *norm, int n, bool exact) {
    ct_graph g;
    ct_model_spec spec = {.name = name, .input = input, .n_classes = 7, .norm = norm};
    REQUIRE_OK(ct_graph_create(&spec, &g));
    agree(&g, n, exact);
    ct_graph_free(&g);
}

static void every_model_agrees_with_ref(void) {
    check_model("lenet5", (ct_shape){1, 28, 28}, NULL, 3, true);
    check_model("lenet5", (ct_shape){3, 32, 32}, NULL, 2, true);
    check_model("lenet5", (ct_shape){3, 32, 32}, NULL, 2, false);
    check_model("logistic", (ct_shape){1, 9, 5}, NULL, 20, true);
    check_model("mlp:37", (ct_shape){1, 9, 5}, NULL, 20, true);
    check_model("resnet20", (ct_shape){3, 12, 12}, NULL, 2, false);
    check_model("mobilenetv2", (ct_shape){3, 8, 8}, NULL, 2, true);
    if (CT_SANITIZED) { /* ref would take minutes; the layers are those of the others */
        check_model("resnet18", (ct_shape){3, 16, 16}, NULL, 1, true);
        return;
    }
    check_model("resnet18", (ct_shape){3, 32, 32}, NULL, 1, true);
    check_model("vgg11", (ct_shape){3, 32, 32}, "none", 1, false);
}

static void every_norm_of_a_model_agrees_with_ref(void) {
    static const char *const norms[] = {"evonorm", "evonorm-s0", "groupnorm", "batchnorm", "none"};
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
        check_model("resnet20", (ct_shape){3, 8, 8}, norms[i], 2, true);
}

static void every_batch_size_agrees_with_ref(void) {
    static const int sizes[] = {1, 7, 16, 31, 32, 33};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_model("mlp:19", (ct_shape){1, 6, 5}, NULL, sizes[i], true);
        check_model("lenet5", (ct_shape){1, 28, 28}, NULL, sizes[i], false);
        ct_graph g = begin_graph("small", (ct_shape){1, 8, 8});
        int x = ct_relu(&g, ct_conv(&g, 0, "conv1", 8, 5, 1, 2, 1, true));
        x = ct_relu(&g, ct_conv(&g, x, "large", 8, 3, 1, 1, 1, true)); /* one tile of 8x8 */
        x = ct_maxpool(&g, x, 2, 2, 0);
        x = ct_norm(&g, ct_conv(&g, x, "conv2", 8, 3, 1, 1, 1, false), CT_OP_BATCHNORM, "n");
        x = ct_norm(&g, ct_conv(&g, x, "conv3", 8, 3, 1, 1, 1, false), CT_OP_EVONORM, "m");
        end_graph(&g, x);
        check_graph(&g, sizes[i], false);
    }
}

/* With the gradients of every layer of stride 1 by Winograd's tiles of 8x8. */
static void resnet20_by_large_tiles_agrees_with_ref(void) {
    check_model("resnet20", (ct_shape){3, 16, 8}, NULL, 1, false);
    check_model("resnet20", (ct_shape){3, 8, 8}, NULL, 3, false);
}

/* Blocks of MobileNet-V2: norms that only a 1x1 or a depthwise convolution reads are applied as it
 * reads them; a reader with a stride, a second reader and a residual must not be taken for that. */
static ct_graph separable_graph(ct_shape shape, int wide, int stride, ct_op norm) {
    ct_graph g = begin_graph("separable", shape);
    int x = ct_norm(&g, ct_conv(&g, 0, "expand", wide, 1, 1, 0, 1, false), norm, "n1");
    x = ct_norm(&g, ct_conv(&g, x, "depth", wide, 3, stride, 1, wide, true), norm, "n2");
    int y = ct_norm(&g, ct_conv(&g, x, "project", 8, 1, 1, 0, 1, true), norm, "n3");
    int z = ct_norm(&g, ct_conv(&g, y, "again", 16, 1, 1, 0, 1, false), norm, "n4");
    x = ct_norm(&g, ct_conv(&g, z, "down", 8, 1, 1, 0, 1, false), norm, "n5");
    x = ct_conv(&g, ct_add(&g, x, y), "last", 8, 1, 2, 0, 1, false);
    end_graph(&g, x);
    return g;
}

static void norms_applied_by_their_readers_agree_with_ref(void) {
    static const ct_op norms[] = {CT_OP_EVONORM, CT_OP_EVONORM_S0, CT_OP_GROUPNORM};
    for (size_t i = 0; i < 3; i++)
        for (int stride = 1; stride <= 2; stride++) {
            ct_graph g = separable_graph((ct_shape){2, 7, 10}, 40, stride, norms[i]);
            check_graph(&g, stride == 1 ? 3 : 19, true);
        }
}

/* 16 samples of the largest tensor are 4 MiB: the batch goes through in blocks of 16, 16 and 1, under
 * sanitizers in two. */
static void a_large_network_agrees_with_ref(void) {
    ct_graph g = separable_graph((ct_shape){1, 64, 64}, 16, 2, CT_OP_EVONORM);
    check_graph(&g, CT_SANITIZED ? 17 : 33, true);
}

/* Features of two models on each of four batches, all at once or one job at a time. */
static float *features_of(const ct_graph *g, const float *start, int n_threads, bool at_once) {
    enum { N_BATCHES = 4, N_ROWS = 2 * N_BATCHES, N_SAMPLES = 9 };
    ct_backend *backend = NULL;
    ct_source *source = NULL;
    ct_plan *plan = NULL;
    banks b = {0};
    ct_images images = make_images(g->nodes[0].shape, g->n_classes);
    CHECK_OK(ct_backend_create("cpu", &(ct_backend_options){.n_threads = n_threads}, &backend));
    create_banks(backend, g, N_MODELS, N_ROWS, N_SAMPLES, &b);
    fill_params(&(setup){.graph = g, .n_models = N_MODELS, .start = start}, &b.params, &b.buffers);
    CHECK_OK(make_source(backend, &images, &source));
    CHECK_OK(ct_plan_create(backend, g, N_SAMPLES, &plan));
    uint32_t index[N_BATCHES][N_SAMPLES];
    ct_batch batches[N_BATCHES];
    ct_job jobs[N_ROWS];
    for (int k = 0; k < N_BATCHES; k++) {
        choose_samples(N_SAMPLES, 7, 3 * k, index[k]);
        batches[k] = (ct_batch){.n = N_SAMPLES, .index = index[k]};
    }
    for (int k = 0; k < N_ROWS; k++) jobs[k] = (ct_job){.model = k % 2, .batch = k / 2, .out = k};
    ct_work work = {.params = &b.params, .source = source, .batches = batches};
    for (int k = 0; k < (at_once ? 1 : N_ROWS); k++) {
        work.jobs = jobs + k;
        work.n_jobs = at_once ? N_ROWS : 1;
        CHECK_OK(ct_features(plan, &work, &b.features, &b.sums));
    }
    float *features = read_bank(&b.features);
    ct_plan_free(&plan);
    ct_source_free(&source);
    free_banks(&b);
    ct_backend_free(&backend);
    free_images(&images);
    return features;
}

static void models_that_share_a_batch_see_the_same_pictures(void) {
    ct_graph g;
    ct_model_spec spec = {.name = "lenet5", .input = {1, 28, 28}, .n_classes = 4};
    REQUIRE_OK(ct_graph_create(&spec, &g));
    float *start = make_weights(&g, N_MODELS), *one = features_of(&g, start, 1, false);
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        float *all = features_of(&g, start, n_threads, true);
        CHECK(memcmp(one, all, 8 * 9 * ct_graph_n_features(&g) * sizeof *one) == 0);
        ct_free(all);
    }
    ct_free(one);
    ct_free(start);
    ct_graph_free(&g);
}

/* ---- threads, memory, choice of the instruction set ---- */

static bool same_bits(const results *a, const results *b, const setup *s) {
    size_t row = (size_t)(s->max_batch * a->r) * sizeof(float);
    size_t weights = N_MODELS * a->n_weights * sizeof(float);
    return memcmp(a->features, b->features, N_MODELS * row) == 0 &&
           memcmp(a->gradient, b->gradient, weights) == 0 &&
           memcmp(a->ccl_gradient, b->ccl_gradient, weights) == 0 &&
           memcmp(a->ccl_losses, b->ccl_losses, N_MODELS * (CT_LOSS_FIELDS + 1) * sizeof(float)) ==
               0 &&
           memcmp(a->buffers, b->buffers, N_MODELS * (a->n_buffers + 1) * sizeof(float)) == 0;
}

static void any_number_of_threads_gives_the_same_bits(void) {
    static const char *const norms[] = {"evonorm", "batchnorm"};
    for (size_t i = 0; i < 2; i++) {
        ct_graph g;
        ct_model_spec spec = {
            .name = "resnet20", .input = {3, 8, 8}, .n_classes = 4, .norm = norms[i]};
        REQUIRE_OK(ct_graph_create(&spec, &g));
        float *start = make_weights(&g, N_MODELS);
        setup s = {.graph = &g, .n = 18, .max_batch = 18, .n_threads = 1};
        s.n_models = N_MODELS;
        s.start = start;
        results one = {0}, more = {0};
        collect("cpu", &s, &one);
        for (s.n_threads = 2; s.n_threads <= 3; s.n_threads++) {
            collect("cpu", &s, &more);
            CHECK(same_bits(&one, &more, &s));
            free_results(&more);
        }
        free_results(&one);
        ct_free(start);
        ct_graph_free(&g);
    }
}

/* y = 0.5 x - 2 M x + y, then x = t with t = x + y, over ragged columns. */
static void update_rows(const char *name, int n_threads, int n_rows, size_t n_columns, float *x_out,
                        float *y_out) {
    enum { HALO = 2 };
    ct_backend *backend = NULL;
    ct_bank x = {0}, y = {0};
    ct_sparse m = {0};
    REQUIRE_OK(ct_backend_create(name, &(ct_backend_options){.n_threads = n_threads}, &backend));
    CHECK_OK(ct_bank_create(backend, n_rows, HALO, n_columns, &x));
    CHECK_OK(ct_bank_create(backend, n_rows, 0, n_columns, &y));
    CHECK_OK(ct_sparse_create(n_rows, n_rows + HALO, 2 * n_rows, &m));
    for (int i = 0; i < n_rows; i++) {
        m.begin[i + 1] = 2 * (i + 1);
        m.column[2 * i] = i;
        m.column[2 * i + 1] = i + 2;
        m.value[2 * i] = 0.25;
        m.value[2 * i + 1] = 0.1 * (i % 5);
    }
    for (int i = 0; i < n_rows + HALO; i++)
        fill(x.data + (size_t)i * x.stride, x.n, 1, (uint32_t)i);
    for (int i = 0; i < n_rows; i++) fill(y.data + (size_t)i * y.stride, y.n, 1, 20 + (uint32_t)i);
    ct_bank t = ct_temp(1);
    ct_update u = {.n_rows = n_rows};
    SET(&u, &y, {0.5, &x}, {-2, &x, &m}, {1, &y});
    SET(&u, &t, {1, &x}, {1, &y});
    SET(&u, &x, {1, &t});
    CHECK_OK(ct_update_run(backend, &u));
    uint64_t before = ct_alloc_count();
    CHECK_OK(ct_update_run(backend, &u));
    CHECK(ct_alloc_count() == before);
    for (int i = 0; i < n_rows; i++) {
        CHECK_OK(ct_bank_read(&x, i, 0, x.n, x_out + (size_t)i * n_columns));
        CHECK_OK(ct_bank_read(&y, i, 0, y.n, y_out + (size_t)i * n_columns));
    }
    CHECK(padding_is(&x, 0) && padding_is(&y, 0));
    ct_sparse_free(&m);
    ct_bank_free(&x);
    ct_bank_free(&y);
    ct_backend_free(&backend);
}

static void updates_agree_with_ref(void) {
    static const size_t sizes[][2] = {{5, 2500}, {1025, 700}, {9000, 17}}; /* rows, columns */
    for (int k = 0; k < 3; k++) {
        size_t columns = sizes[k][1], count = sizes[k][0] * columns;
        float *rows = ct_new(float, 6 * count), *one = rows + 2 * count, *more = one + 2 * count;
        REQUIRE(rows != NULL);
        update_rows("ref", 1, (int)sizes[k][0], columns, rows, rows + count);
        update_rows("cpu", 1, (int)sizes[k][0], columns, one, one + count);
        update_rows("cpu", 3, (int)sizes[k][0], columns, more, more + count);
        CHECK_NEAR(error_of(one, rows, 2 * count, 0), 0, 1e-6);
        CHECK(memcmp(one, more, 2 * count * sizeof(float)) == 0);
        ct_free(rows);
    }
}

static void an_unknown_instruction_set_is_refused(void) {
    ct_backend *backend = NULL;
    setenv("CROSSTALK_ISA", "mmx", 1);
    CHECK_FAILS(ct_backend_create("cpu", &(ct_backend_options){0}, &backend), CT_INVAL,
                "CROSSTALK_ISA=mmx");
    unsetenv("CROSSTALK_ISA");
}

int main(void) {
    TEST(convolutions_agree_with_ref);
    TEST(winograd_convolutions_agree_with_ref);
    TEST(norms_agree_with_ref);
    TEST(pooling_agrees_with_ref);
    TEST(gradients_of_shared_tensors_are_added);
    TEST(every_model_agrees_with_ref);
    TEST(every_norm_of_a_model_agrees_with_ref);
    TEST(every_batch_size_agrees_with_ref);
    TEST(resnet20_by_large_tiles_agrees_with_ref);
    TEST(norms_applied_by_their_readers_agree_with_ref);
    TEST(a_large_network_agrees_with_ref);
    TEST(models_that_share_a_batch_see_the_same_pictures);
    TEST(any_number_of_threads_gives_the_same_bits);
    TEST(updates_agree_with_ref);
    TEST(an_unknown_instruction_set_is_refused);
    return test_report();
}
