/* Whole networks on the ref backend against float64 PyTorch (tests/oracle/nets.py); and the
 * backends' gradients against the same nodes called one by one. The larger networks are in
 * test_nets_slow.c. */
#include "nets.h"

#include "backend/backend.h"
#include "util/rng.h"

static void lenet5_agrees_with_pytorch(void) {
    check_net("lenet5-none");
}
static void resnet20_agrees_with_pytorch_with_every_norm(void) {
    check_net("resnet20-none");
    check_net("resnet20-groupnorm");
    check_net("resnet20-batchnorm");
}
static void resnet20_agrees_with_pytorch_on_28x28_pixels(void) {
    check_net("resnet20-28x28-evonorm");
}

/* ---- through the boundary ---- */

enum { N_IMAGES = 4, N_CLASSES = 10 };

typedef struct boundary {
    ct_images images;
    ct_backend *backend;
    ct_source *source;
    ct_plan *plan;
    ct_bank params, gradient, losses, buffers;
} boundary;

static const float mean[3] = {0.4f, 0.5f, 0.6f}, deviation[3] = {0.2f, 0.3f, 0.25f};

/* In LeNet-5's first pooling no window of these images has two pixels that differ by less than
 * 1e-5: float32 could take either for the larger one, and the gradient would go elsewhere. (With
 * seed 5 two of them differ by 5.7e-7.) */
static void draw_images(ct_shape shape, ct_images *images) {
    ct_rng rng;
    size_t size = ct_shape_size(shape);
    ct_rng_init(&rng, 6, CT_RNG_TEST, 0, 0, 0);
    *images = (ct_images){.n = N_IMAGES,
                          .channels = shape.c,
                          .height = shape.h,
                          .width = shape.w,
                          .pixels = ct_new(uint8_t, N_IMAGES * size),
                          .labels = ct_new(int32_t, N_IMAGES)};
    for (size_t k = 0; k < N_IMAGES * size; k++) images->pixels[k] = (uint8_t)ct_rng_u32(&rng);
    for (int i = 0; i < N_IMAGES; i++) images->labels[i] = (int32_t)ct_rng_below(&rng, N_CLASSES);
}

static ct_status boundary_create(const char *device, const ct_graph *g, boundary *b) {
    ct_backend_options options = {.n_threads = 2};
    memset(b, 0, sizeof *b);
    draw_images(g->nodes[0].shape, &b->images);
    CT_TRY(ct_backend_create(device, &options, &b->backend));
    CT_TRY(ct_source_create(b->backend, &b->images, mean, deviation, &b->source));
    CT_TRY(ct_plan_create(b->backend, g, N_IMAGES + 1, &b->plan));
    CT_TRY(ct_bank_create(b->backend, 1, 0, g->n_weights, &b->params));
    CT_TRY(ct_bank_create(b->backend, 1, 0, g->n_weights, &b->gradient));
    CT_TRY(ct_bank_create(b->backend, 1, 0, CT_LOSS_FIELDS, &b->losses));
    if (g->n_buffer_values == 0) return CT_OK;
    return ct_bank_create(b->backend, 1, 0, g->n_buffer_values, &b->buffers);
}

static void boundary_free(boundary *b) {
    ct_bank_free(&b->params);
    ct_bank_free(&b->gradient);
    ct_bank_free(&b->losses);
    ct_bank_free(&b->buffers);
    ct_plan_free(&b->plan);
    ct_source_free(&b->source);
    ct_backend_free(&b->backend);
    ct_free(b->images.pixels);
    ct_free(b->images.labels);
}

/* The batch 3, 0, 2 (three of the four images) into the net. */
static const uint32_t chosen[] = {3, 0, 2};

static void load_batch(net *t, const ct_images *images) {
    size_t size = ct_shape_size(t->graph.nodes[0].shape);
    size_t plane = (size_t)images->height * (size_t)images->width;
    for (size_t b = 0; b < 3; b++) {
        t->labels[b] = images->labels[chosen[b]];
        for (size_t k = 0; k < size; k++) {
            double pixel = images->pixels[chosen[b] * size + k] / 255.0;
            t->value[0][b * size + k] =
                (pixel - (double)mean[k / plane]) / (double)deviation[k / plane];
        }
    }
}

static ct_status boundary_gradient(boundary *b, const net *t, float *row) {
    for (size_t k = 0; k < t->graph.n_weights; k++) row[k] = (float)t->params[k];
    CT_TRY(ct_bank_write(&b->params, 0, 0, t->graph.n_weights, row));
    if (t->graph.n_buffer_values > 0)
        CT_TRY(ct_bank_write(&b->buffers, 0, 0, t->graph.n_buffer_values, t->buffers));
    ct_batch batch = {.n = 3, .index = chosen};
    ct_job job = {0};
    ct_objective objective = {.loss = {.ccl = false}};
    ct_work work = {.params = &b->params,
                    .buffers = t->graph.n_buffer_values > 0 ? &b->buffers : NULL,
                    .source = b->source,
                    .batches = &batch,
                    .jobs = &job,
                    .n_jobs = 1};
    CT_TRY(ct_gradient(b->plan, &work, &objective, &b->gradient, &b->losses, 0));
    return ct_bank_read(&b->gradient, 0, 0, t->graph.n_weights, row);
}

/* |row - dparams| / |dparams|, tensor by tensor, the worst. */
static double worst_error(const net *t, const float *row) {
    double worst = 0;
    for (int p = 0; p < t->graph.n_params; p++) {
        const ct_param *param = &t->graph.params[p];
        double error = 0, norm = 0;
        for (size_t k = param->offset; k < param->offset + param->count; k++) {
            double e = (double)row[k] - t->dparams[k];
            error += e * e;
            norm += t->dparams[k] * t->dparams[k];
        }
        worst = fmax(worst, sqrt(error / norm));
    }
    return worst;
}

static void check_boundary(const char *device, const ct_model_spec *spec, double tolerance) {
    net t;
    boundary b;
    float losses[CT_LOSS_FIELDS];
    REQUIRE_OK(net_create(spec, 3, &t));
    REQUIRE_OK(boundary_create(device, &t.graph, &b));
    float *row = ct_new(float, t.graph.n_weights);
    hash_params(&t, 1);
    load_batch(&t, &b.images);
    double loss = net_run(&t);
    CHECK_OK(boundary_gradient(&b, &t, row));
    CHECK_NEAR(worst_error(&t, row), 0, tolerance);
    CHECK_OK(ct_bank_read(&b.losses, 0, 0, CT_LOSS_FIELDS, losses));
    CHECK_NEAR(losses[CT_LOSS_CE], loss, 1e-5 * loss);
    CHECK(losses[CT_LOSS_MV] == 0 && losses[CT_LOSS_DV] == 0);
    ct_free(row);
    boundary_free(&b);
    net_free(&t);
}

static void a_backends_gradient_is_that_of_its_nodes(void) {
    static const ct_model_spec nets[] = {
        {"lenet5", {1, 28, 28}, N_CLASSES, "none"},
        {"resnet20", {3, 9, 8}, N_CLASSES, "evonorm"},
        {"resnet20", {3, 8, 8}, N_CLASSES, "batchnorm"},
        {"vgg11", {3, 32, 32}, N_CLASSES, "evonorm-s0"},
    };
    for (size_t k = 0; k < sizeof nets / sizeof *nets; k++) {
        check_boundary("ref", &nets[k], 1e-6);
        check_boundary("cpu", &nets[k], 5e-4); /* Winograd's transforms cost some digits */
    }
}

int main(void) {
    TEST(lenet5_agrees_with_pytorch);
    TEST(resnet20_agrees_with_pytorch_with_every_norm);
    TEST(resnet20_agrees_with_pytorch_on_28x28_pixels);
    TEST(a_backends_gradient_is_that_of_its_nodes);
    return test_report();
}
