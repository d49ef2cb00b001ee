/* Models that describe themselves, and what they predict. */
#include "ct_config.h"
#include "models.h"
#include "program.h"
#include "util/log.h"
#include "util/version.h"

enum { N = 70, N_CLASSES = 10, SIDE = 32 };

/* ---- what a file says ---- */

static void a_model_file_says_all_that_it_takes_to_use_it(void) {
    static const char *const names[] = {"cat", "a \"b\", c", "\xc3\xa9mu", "", "x", "5"};
    const float mean[] = {0.1f, 1.0f / 3, 0.7f}, deviation[] = {0.229f, 1e-3f, 0.1f + 0.2f};
    ct_model *m = NULL;
    ct_model_facts facts = {.network = "mlp:3",
                            .norm = "none",
                            .channels = 3,
                            .height = 4,
                            .width = 5,
                            .resize = 7,
                            .mean = mean,
                            .n_classes = 6,
                            .deviation = deviation,
                            .class_names = names,
                            .algorithm = "gt",
                            .loss = "ccl",
                            .dataset = "npy",
                            .data = "0123456789abcdef"};
    REQUIRE_OK(model_write("m.safetensors", &facts, 1));
    REQUIRE_OK(ct_model_load("m.safetensors", NULL, &m));
    const ct_model_facts *f = ct_model_facts_of(m);
    CHECK(strcmp(f->network, "mlp:3") == 0 && strcmp(f->norm, "none") == 0);
    CHECK(f->channels == 3 && f->height == 4 && f->width == 5 && f->resize == 7);
    CHECK(memcmp(f->mean, mean, sizeof mean) == 0);
    CHECK(memcmp(f->deviation, deviation, sizeof deviation) == 0);
    CHECK(strcmp(f->algorithm, "gt") == 0 && strcmp(f->loss, "ccl") == 0);
    CHECK(strcmp(f->dataset, "npy") == 0 && strcmp(f->data, "0123456789abcdef") == 0);
    CHECK(strcmp(f->version, CT_VERSION) == 0 && f->n_parameters == 60 * 3 + 3 + 3 * 6 + 6);
    REQUIRE(f->n_classes == 6 && f->class_names != NULL);
    for (int c = 0; c < 6; c++) CHECK(strcmp(f->class_names[c], names[c]) == 0);
    CHECK(ct_model_find_class(m, "5") == 5 && ct_model_find_class(m, "dog") == -1);
    ct_model_free(&m);
    CHECK(m == NULL);
    unlink("m.safetensors");
}

static void a_run_leaves_models_that_describe_themselves(void) {
    ct_model *m = NULL;
    succeeds(TINY "--save-agents --algorithm ccl");
    REQUIRE_OK(ct_model_load("run", NULL, &m));
    const ct_model_facts *f = ct_model_facts_of(m);
    CHECK(strcmp(f->network, "mlp:8") == 0 && f->channels == 1 && f->height == 6 && f->width == 6);
    CHECK(f->n_classes == 4 && f->class_names == NULL && f->mean[0] == 0.5f);
    CHECK(strcmp(f->algorithm, "qg-dsgdm") == 0 && strcmp(f->loss, "ccl") == 0);
    CHECK(strlen(f->data) == 16 && strcmp(ct_model_class(m, 3), "3") == 0);
    ct_model_free(&m);
    ct_model_options options = CT_MODEL_OPTIONS;
    options.agent = 4;
    CHECK_OK(ct_model_load("run", &options, &m));
    ct_model_free(&m);
    options.agent = 5;
    CHECK_FAILS(ct_model_load("run", &options, &m), CT_IO, "agent.5.");
    CHECK_FAILS(ct_model_load("run/agents.safetensors", NULL, &m), CT_INVAL, "--agent");
    CHECK_FAILS(ct_model_load("run/consensus.safetensors", &options, &m), CT_INVAL, "one model");
    CHECK_FAILS(ct_model_load("nowhere", NULL, &m), CT_IO, "nowhere");
    CHECK_FAILS(ct_model_load("fixtures", NULL, &m), CT_IO, "consensus.safetensors");
    remove_tree("run");
}

/* One note has another value: what is wrong is told, and nothing is believed. */
static void metadata_that_cannot_be_is_refused(void) {
    static const struct {
        const char *name, *value, *words;
    } wrong[] = {{"network", "resnet2000", "resnet2000"},
                 {"network", "mlp:9", "fc1"},
                 {"network", "mlp:65536", "fc1"},
                 {"norm", "batchnorms", "batchnorms"},
                 {"image", "3,4", "image"},
                 {"image", "3,4,5,6", "image"},
                 {"image", "17,4,5", "image"},
                 {"image", "3,4,16777217", "image"},
                 {"image", "3,65536,65536", "image"},
                 {"network", "external", "program alone"},
                 {"image", "-3,4,5", "image"},
                 {"image", "3,4,5", "fc1"},
                 {"image", "nan,4,5", "image"},
                 {"mean", "0.5", "mean"},
                 {"mean", "0.5,0.5,1e30", "mean"},
                 {"deviation", "0.5,0.5,0", "deviation"},
                 {"deviation", "1e-30,1,1", "deviation"},
                 {"classes", "0", "classes"},
                 {"classes", "65537", "classes"},
                 {"classes", "2.5", "classes"},
                 {"classes", "3", "class_names"},
                 {"class_names", "[\"a\"]", "class_names"},
                 {"class_names", "[\"a\", 3]", "class_names"},
                 {"class_names", "[\"a\", ", "m.safetensors"},
                 {"class_names", "{}", "class_names"},
                 {"resize", "8193", "resize"},
                 {"resize", "-1", "resize"}};
    static const char *const names[] = {"a", "b"};
    ct_model *m = NULL;
    ct_model_facts facts = model_facts("mlp:2", "none", 3, 4);
    facts.n_classes = 2;
    facts.class_names = names;
    facts.resize = 5;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        CT_SCOPED(ct_tensors) t = {0};
        REQUIRE_OK(model_write("m.safetensors", &facts, 1));
        REQUIRE_OK(ct_tensors_read("m.safetensors", &t));
        for (size_t i = 0; i < t.n_notes; i++)
            if (strcmp(t.notes[i].name, wrong[k].name) == 0) {
                ct_free(t.notes[i].value);
                t.notes[i].value = ct_strdup(wrong[k].value);
            }
        REQUIRE_OK(ct_tensors_write_noted("m.safetensors", t.items, t.n, t.notes, t.n_notes));
        ct_clear_message();
        ct_status status = ct_model_load("m.safetensors", NULL, &m);
        if (status == CT_OK || m != NULL || strstr(ct_message(), wrong[k].words) == NULL)
            printf("    %s = %s: %s\n", wrong[k].name, wrong[k].value, ct_message());
        CHECK(status != CT_OK && m == NULL && strstr(ct_message(), wrong[k].words) != NULL);
        ct_model_free(&m);
    }
    unlink("m.safetensors");
}

static void a_model_file_that_is_cut_off_is_refused(void) {
    ct_blob file = {0};
    ct_model *m = NULL;
    ct_model_facts facts = model_facts("mlp:2", "none", 1, 2);
    REQUIRE_OK(model_write("m.safetensors", &facts, 1));
    REQUIRE_OK(ct_file_read("m.safetensors", 1 << 20, &file));
    for (size_t n = 0; n < file.n; n += n < 16 ? 1 : 29) {
        REQUIRE_OK(ct_file_write("m.safetensors", file.bytes, n));
        CHECK_FAILS(ct_model_load("m.safetensors", NULL, &m), CT_IO, "m.safetensors");
    }
    ct_blob_free(&file);
    unlink("m.safetensors");
}

/* ---- files that say nothing ---- */

static void an_old_model_says_which_options_describe_it(void) {
    ct_model *m = NULL;
    ct_model_facts facts = model_facts("resnet20", "groupnorm", 3, 32), other;
    ct_model_options options = CT_MODEL_OPTIONS;
    REQUIRE_OK(model_write_as("old.safetensors", &facts, NULL, "", 1));
    CHECK_FAILS(ct_model_load("old.safetensors", NULL, &m), CT_INVAL,
                "--model, --norm, --channels, --image-size, --mean, --deviation");
    options.known = &facts;
    REQUIRE_OK(ct_model_load("old.safetensors", &options, &m));
    CHECK(ct_model_facts_of(m)->n_classes == 10 && ct_model_facts_of(m)->version[0] == '\0');
    ct_model_free(&m);
    other = facts;
    other.n_classes = 0; /* the last layer tells */
    options.known = &other;
    REQUIRE_OK(ct_model_load("old.safetensors", &options, &m));
    CHECK(ct_model_facts_of(m)->n_classes == 10);
    ct_model_free(&m);
    other.norm = "batchnorm";
    CHECK_FAILS(ct_model_load("old.safetensors", &options, &m), CT_IO, "bn1.running_mean");
    REQUIRE_OK(model_write("new.safetensors", &facts, 1));
    CHECK_FAILS(ct_model_load("new.safetensors", &options, &m), CT_DIFFERS,
                "--norm batchnorm: new.safetensors says groupnorm");
    other = (ct_model_facts){.height = 28, .width = 28};
    CHECK_FAILS(ct_model_load("new.safetensors", &options, &m), CT_DIFFERS, "--image-size 28");
    unlink("old.safetensors");
    unlink("new.safetensors");
}

/* Takes the metadata out of a model, as if an older version had written it. */
static void make_old(const char *path) {
    CT_SCOPED(ct_tensors) t = {0};
    REQUIRE_OK(ct_tensors_read(path, &t));
    CHECK(t.n_notes > 0);
    REQUIRE_OK(ct_tensors_write(path, t.items, t.n));
}

static void an_old_model_in_a_run_directory_is_what_its_run_was(void) {
    ct_model *m = NULL;
    const float half[] = {0.5f};
    ct_model_facts rest = {.channels = 1, .height = 6, .width = 6, .mean = half, .deviation = half};
    ct_model_options options = CT_MODEL_OPTIONS;
    succeeds(TINY);
    make_old("run/consensus.safetensors");
    CHECK_FAILS(ct_model_load("run", NULL, &m), CT_INVAL,
                "with --channels, --image-size, --mean, --deviation");
    options.known = &rest;
    REQUIRE_OK(ct_model_load("run/consensus.safetensors", &options, &m));
    CHECK(strcmp(ct_model_facts_of(m)->network, "mlp:8") == 0);
    CHECK(strcmp(ct_model_facts_of(m)->dataset, "idx") == 0);
    ct_model_free(&m);
    remove_tree("run");
}

/* ---- what it predicts ---- */

/* p = softmax(W (x / 255 - mean) / deviation + b), written out. */
static void a_linear_model_gives_the_probabilities_of_its_formula(void) {
    enum { PLANE = 5 * 4, IN = 3 * PLANE };
    uint8_t pixels[2 * IN];
    float p[2 * N_CLASSES];
    ct_model *m = NULL;
    CT_SCOPED(ct_tensors) t = {0};
    ct_model_facts facts = model_facts("logistic", "none", 3, 5);
    facts.width = 4;
    random_pixels(pixels, sizeof pixels, 3);
    REQUIRE_OK(model_write("m.safetensors", &facts, 2));
    REQUIRE_OK(ct_tensors_read("m.safetensors", &t));
    REQUIRE_OK(ct_model_load("m.safetensors", NULL, &m));
    REQUIRE_OK(ct_model_run_bytes(m, pixels, CT_PIXELS_PLANES, 2, p));
    const float *w = ct_tensors_find(&t, "fc.weight")->values;
    const float *b = ct_tensors_find(&t, "fc.bias")->values;
    for (int i = 0; i < 2; i++) {
        double z[N_CLASSES], sum = 0;
        for (int c = 0; c < N_CLASSES; c++) {
            z[c] = (double)b[c];
            for (int k = 0; k < IN; k++)
                z[c] += (double)w[c * IN + k] *
                        (pixels[i * IN + k] / 255.0 - (double)test_mean[k / PLANE]) /
                        (double)test_deviation[k / PLANE];
            sum += exp(z[c]);
        }
        for (int c = 0; c < N_CLASSES; c++) CHECK_NEAR(p[i * N_CLASSES + c], exp(z[c]) / sum, 1e-6);
    }
    ct_model_free(&m);
    unlink("m.safetensors");
}

/* Networks and norms on images that cost little, against the reference in doubles. */
static void every_network_predicts_what_the_reference_does(void) {
    static const struct {
        const char *network, *norm;
        int channels, side, n;
    } all[] = {{"lenet5", "none", 1, 28, 40},         {"mlp:20", "none", 3, 9, 40},
               {"resnet20", "evonorm", 3, 32, 3},     {"resnet20", "evonorm-s0", 3, 16, 3},
               {"resnet20", "groupnorm", 3, 16, 3},   {"resnet20", "batchnorm", 3, 16, 3},
               {"vgg11", "batchnorm", 3, 32, 3},      {"resnet18", "batchnorm", 3, 32, 2},
               {"mobilenetv2", "batchnorm", 3, 32, 2}};
    static uint8_t pixels[40 * 3 * SIDE * SIDE];
    static float p[40 * N_CLASSES], expected[40 * N_CLASSES];
    random_pixels(pixels, sizeof pixels, 1);
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        ct_model *m = NULL;
        size_t n = (size_t)all[k].n;
        ct_model_facts facts =
            model_facts(all[k].network, all[k].norm, all[k].channels, all[k].side);
        REQUIRE_OK(model_write("m.safetensors", &facts, 5));
        REQUIRE_OK(model_open_on("m.safetensors", "ref", 0, &m));
        CHECK_OK(ct_model_run_bytes(m, pixels, CT_PIXELS_PLANES, n, expected));
        ct_model_free(&m);
        REQUIRE_OK(model_open_on("m.safetensors", "cpu", 0, &m));
        CHECK_OK(ct_model_run_bytes(m, pixels, CT_PIXELS_PLANES, n, p));
        ct_model_free(&m);
        double error = largest_difference(p, expected, n * N_CLASSES);
        if (!(error <= 1e-5)) printf("    %s, %s: %g\n", all[k].network, all[k].norm, error);
        CHECK(error <= 1e-5); /* as far as fp32 carries through 20 layers */
        CHECK(expected[0] > 0 && expected[0] < 1);
    }
    unlink("m.safetensors");
}

static void order_kind_threads_and_neighbours_do_not_matter(void) {
    enum { IMAGE = 3 * SIDE * SIDE };
    static uint8_t pixels[N * IMAGE], turned[N * IMAGE];
    static float floats[N * IMAGE], p[N * N_CLASSES], q[N * N_CLASSES];
    ct_model *m = NULL, *threads = NULL;
    ct_model_facts facts = model_facts("resnet20", "batchnorm", 3, SIDE);
    REQUIRE_OK(model_write("m.safetensors", &facts, 7));
    REQUIRE_OK(model_open_on("m.safetensors", "cpu", 1, &m));
    REQUIRE_OK(model_open_on("m.safetensors", "cpu", 3, &threads));
    random_pixels(pixels, sizeof pixels, 2);
    for (size_t i = 0; i < N; i++)
        for (size_t c = 0; c < 3; c++)
            for (size_t k = 0; k < SIDE * SIDE; k++)
                turned[i * IMAGE + k * 3 + c] = pixels[i * IMAGE + c * SIDE * SIDE + k];
    for (size_t k = 0; k < sizeof pixels; k++)
        floats[k] =
            (float)((turned[k] / 255.0 - (double)test_mean[k % 3]) / (double)test_deviation[k % 3]);
    REQUIRE_OK(ct_model_run_bytes(m, pixels, CT_PIXELS_PLANES, N, p));
    REQUIRE_OK(ct_model_run_bytes(threads, turned, CT_PIXELS_INTERLEAVED, N, q));
    CHECK(memcmp(p, q, sizeof p) == 0);
    ct_model_free(&threads);
    REQUIRE_OK(model_open_on("m.safetensors", "cpu", 2, &threads)); /* room for one alone */
    REQUIRE_OK(ct_model_run_bytes(threads, pixels + 41 * IMAGE, CT_PIXELS_PLANES, 1, q));
    CHECK(memcmp(p + 41 * N_CLASSES, q, N_CLASSES * sizeof *q) == 0);
    REQUIRE_OK(ct_model_run_floats(m, floats, CT_PIXELS_INTERLEAVED, N, q));
    CHECK(memcmp(p, q, sizeof p) == 0);                                /* the same roundings */
    REQUIRE_OK(ct_model_run_bytes(m, pixels, CT_PIXELS_PLANES, N, q)); /* bytes again */
    CHECK(memcmp(p, q, sizeof p) == 0);
    CHECK_OK(ct_model_run_bytes(m, NULL, CT_PIXELS_PLANES, 0, NULL));
    ct_model_free(&m);
    ct_model_free(&threads);
    unlink("m.safetensors");
}

/* ---- pictures ---- */

#define IMAGES CT_SOURCE_DIR "/tests/fixtures/images/"

typedef struct heard {
    size_t picture[4];
    char reason[4][80];
    int n;
} heard;

static void hear(void *context, size_t picture, const char *reason) {
    heard *h = context;
    if (h->n == 4) return;
    h->picture[h->n] = picture;
    snprintf(h->reason[h->n++], 80, "%s", reason);
}

/* rgb.png.24 has the pixels that torchvision's Resize and CenterCrop give. */
static void picture_files_are_cut_as_torchvision_does(void) {
    enum { SIZE = 24 };
    const char *const paths[] = {IMAGES "rgb.png", "nothing.png", IMAGES "rgb.png", "words.png"};
    float p[4 * N_CLASSES], expected[N_CLASSES];
    heard h = {.n = 0};
    ct_blob pixels = {0};
    ct_model *m = NULL;
    ct_model_facts facts = model_facts("resnet20", "evonorm", 3, SIZE);
    if (!CT_WITH_PNG) SKIP("built without libpng");
    put("words.png", "no picture at all");
    REQUIRE_OK(model_write("m.safetensors", &facts, 9));
    REQUIRE_OK(ct_model_load("m.safetensors", NULL, &m));
    REQUIRE_OK(ct_file_read(IMAGES "rgb.png.24", 3 * SIZE * SIZE, &pixels));
    REQUIRE_OK(ct_model_run_bytes(m, pixels.bytes, CT_PIXELS_PLANES, 1, expected));
    REQUIRE_OK(ct_model_run_files(m, paths, 4, p, hear, &h));
    CHECK(memcmp(p, expected, sizeof expected) == 0);
    CHECK(memcmp(p + 2 * N_CLASSES, expected, sizeof expected) == 0);
    for (int c = 0; c < N_CLASSES; c++)
        CHECK(isnan(p[N_CLASSES + c]) && isnan(p[3 * N_CLASSES + c]));
    CHECK(h.n == 2 && h.picture[0] == 1 && h.picture[1] == 3);
    CHECK(strstr(h.reason[0], "No such file") && strstr(h.reason[1], "neither JPEG nor PNG"));
    ct_blob_free(&pixels);
    ct_model_free(&m);
    unlink("m.safetensors");
    unlink("words.png");
}

static bool stop_at_once(void *context, long now, long total) {
    *(long *)context = now * 1000 + total;
    return false;
}

static void who_listens_may_stop(void) {
    uint8_t pixels[3 * 4 * 4] = {0};
    float p[3 * N_CLASSES];
    long told = 0;
    ct_hooks hooks = {.context = &told, .progress = stop_at_once};
    ct_model *m = NULL;
    ct_model_facts facts = model_facts("logistic", "none", 1, 4);
    REQUIRE_OK(model_write("m.safetensors", &facts, 1));
    REQUIRE_OK(ct_model_load("m.safetensors", NULL, &m));
    ct_hooks_use(&hooks);
    CHECK_FAILS(ct_model_run_bytes(m, pixels, CT_PIXELS_PLANES, 3, p), CT_STOPPED, "3 of 3");
    ct_hooks_use(NULL);
    CHECK(told == 3003);
    ct_model_free(&m);
    facts.width = 5;
    REQUIRE_OK(model_write("m.safetensors", &facts, 1));
    REQUIRE_OK(ct_model_load("m.safetensors", NULL, &m));
    CHECK_FAILS(ct_model_run_files(m, &(const char *){"x"}, 1, p, NULL, NULL), CT_INVAL, "square");
    ct_model_free(&m);
    unlink("m.safetensors");
}

int main(void) {
    if (!enter_folder()) return 1;
    TEST(a_model_file_says_all_that_it_takes_to_use_it);
    TEST(a_run_leaves_models_that_describe_themselves);
    TEST(metadata_that_cannot_be_is_refused);
    TEST(a_model_file_that_is_cut_off_is_refused);
    TEST(an_old_model_says_which_options_describe_it);
    TEST(an_old_model_in_a_run_directory_is_what_its_run_was);
    TEST(a_linear_model_gives_the_probabilities_of_its_formula);
    TEST(every_network_predicts_what_the_reference_does);
    TEST(order_kind_threads_and_neighbours_do_not_matter);
    TEST(picture_files_are_cut_as_torchvision_does);
    TEST(who_listens_may_stop);
    leave_folder();
    return test_report();
}
