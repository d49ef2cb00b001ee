/* ONNX files: every network and norm in onnxruntime gives the probabilities that predict gives. The
 * runtime is npm's onnxruntime-web under node, the checker Debian's python3-onnx; scripts/setup.sh
 * installs both. */
#include "models.h"
#include "program.h"

#define MODULES CT_SOURCE_DIR "/.local/node_modules"
#define RUNTIME "NODE_PATH=" MODULES " node " CT_SOURCE_DIR "/tests/onnx/compare.cjs "

enum { N_CLASSES = 10, N = 2, MAX_IMAGE = 3 * 224 * 224 };

/* ---- one file with its input and what is expected ---- */

typedef struct onnx_case {
    const char *network, *norm;
    int channels, side;
    bool logits, preprocess;
} onnx_case;

static FILE *list;
static int n_listed;

static void put_raw(const char *onnx, const char *end, const void *bytes, size_t n) {
    char path[128];
    snprintf(path, sizeof path, "%s%s", onnx, end);
    CHECK_OK(ct_file_write(path, bytes, n));
}

/* Normalised floats [n][c][h][w], or bytes [n][h][w][c]. */
static void put_input(const char *onnx, const onnx_case *c, const uint8_t *pixels) {
    static float floats[N * MAX_IMAGE];
    static uint8_t turned[N * MAX_IMAGE];
    size_t plane = (size_t)c->side * (size_t)c->side, n_channels = (size_t)c->channels;
    for (size_t k = 0; k < N * n_channels * plane; k++) {
        size_t i = k / (n_channels * plane), ch = k / plane % n_channels, at = k % plane;
        floats[k] =
            (float)((pixels[k] / 255.0 - (double)test_mean[ch]) / (double)test_deviation[ch]);
        turned[(i * plane + at) * n_channels + ch] = pixels[k];
    }
    if (c->preprocess)
        put_raw(onnx, ".in", turned, N * n_channels * plane);
    else
        put_raw(onnx, ".in", floats, N * n_channels * plane * sizeof *floats);
}

static void write_case(const onnx_case *c) {
    static uint8_t pixels[N * MAX_IMAGE];
    float expected[N * N_CLASSES];
    char onnx[96];
    ct_model *m = NULL;
    ct_onnx_options options = CT_ONNX_OPTIONS;
    ct_model_facts facts = model_facts(c->network, c->norm, c->channels, c->side);
    snprintf(onnx, sizeof onnx, "%d-%s-%s.onnx", n_listed++, c->network, c->norm);
    random_pixels(pixels, sizeof pixels, 8);
    REQUIRE_OK(model_write("m.safetensors", &facts, 11));
    REQUIRE_OK(model_open_on("m.safetensors", "cpu", 0, &m));
    options.preprocess = c->preprocess;
    options.logits = c->logits;
    CHECK_OK(ct_model_export_onnx(m, onnx, &options));
    CHECK_OK(ct_model_run_bytes(m, pixels, CT_PIXELS_PLANES, N, expected));
    put_input(onnx, c, pixels);
    put_raw(onnx, ".out", expected, sizeof expected);
    int dims[3] = {c->channels, c->side, c->side};
    if (c->preprocess) dims[0] = c->side, dims[2] = c->channels;
    fprintf(list, "%s %s %s %d,%d,%d,%d\n", onnx, c->preprocess ? "uint8" : "float32",
            c->logits ? "logits" : "probabilities", N, dims[0], dims[1], dims[2]);
    ct_model_free(&m);
}

/* ---- all of them ---- */

/* Networks that differ in depth alone from ResNet-20, or in size: one norm is enough, unless there
 * is time. */
static bool is_deeper(const char *network) {
    static const char *const names[] = {"resnet18", "resnet32",  "resnet44",
                                        "resnet56", "resnet110", "resnet34"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strcmp(network, names[k]) == 0) return true;
    return false;
}

static void write_network(void *context, const char *network, const char *text) {
    static const char *const norms[] = {"evonorm", "batchnorm", "evonorm-s0", "groupnorm", "none"};
    const char *only = context;
    bool is_plain = strcmp(network, "lenet5") == 0 || strcmp(network, "mlp") == 0 ||
                    strcmp(network, "logistic") == 0;
    bool is_long = getenv("CT_TEST_LONG") != NULL;
    ct_shape shape = {0};
    (void)text;
    if (only != NULL && strcmp(only, network) != 0) return;
    if (strcmp(network, "resnet34") == 0 && !is_long) return; /* 85 MB */
    CHECK_OK(ct_model_usual_input(network, &shape));
    onnx_case c = {.network = network, .channels = shape.c, .side = shape.h > 32 ? 64 : shape.h};
    for (size_t k = 0; k < sizeof norms / sizeof *norms; k++) {
        if (k > 0 && (is_plain || (is_deeper(network) && !is_long))) continue;
        c.norm = norms[k];
        write_case(&c);
    }
}

/* Runs a command; what it says ends up in said.out. */
static int shell(const char *command) {
    char all[1024];
    snprintf(all, sizeof all, "%s >.out 2>.err", command);
    fflush(stdout);
    int status = system(all);
    slurp(".out", said.out);
    slurp(".err", said.err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A line "file difference" for each that was written, none above 1e-5. */
static void check_differences(void) {
    char *save = NULL;
    int n = 0;
    for (char *line = strtok_r(said.out, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        const char *blank = strchr(line, ' ');
        double difference = blank != NULL ? strtod(blank, NULL) : NAN;
        if (!(difference <= 1e-5)) printf("    %s\n", line);
        CHECK(difference <= 1e-5);
        n++;
    }
    CHECK(n == n_listed);
}

static void open_list(void) {
    list = fopen("list", "w");
    n_listed = 0;
}

static void compare_listed(void) {
    CHECK(fclose(list) == 0);
    if (shell(RUNTIME "list") != 0) {
        printf("    %s\n", said.err);
        CHECK(!"the runtime ran them");
        return;
    }
    check_differences();
}

static void remove_listed(void) {
    CHECK(shell("rm -f -- *.onnx *.onnx.in *.onnx.out list m.safetensors") == 0);
}

static bool has_runtime(void) {
    return ct_dir_exists(MODULES "/onnxruntime-web") && shell("command -v node") == 0;
}

/* In the build with sanitizers, one network stands for all: their arithmetic is compared in the
 * other build. */
static void every_network_and_norm_gives_the_same_probabilities(void) {
    if (!has_runtime()) SKIP("npm's onnxruntime-web is not installed (scripts/setup.sh)");
    open_list();
    ct_model_each(write_network, CT_SANITIZED ? (void *)"resnet20" : NULL);
    if (!CT_SANITIZED) CHECK(n_listed >= 20);
    compare_listed();
    remove_listed();
}

static void large_images_logits_and_bytes_do_too(void) {
    static const onnx_case cases[] = {{"resnet18", "batchnorm", 3, 224, false, true},
                                      {"vgg11", "groupnorm", 3, 32, true, true},
                                      {"resnet20", "batchnorm", 3, 20, true, false},
                                      {"lenet5", "none", 1, 28, false, true}};
    if (!has_runtime()) SKIP("npm's onnxruntime-web is not installed (scripts/setup.sh)");
    open_list();
    for (size_t k = getenv("CT_TEST_LONG") == NULL; k < sizeof cases / sizeof *cases; k++)
        write_case(&cases[k]);
    compare_listed();
    remove_listed();
}

static void onnx_checks_the_files(void) {
    if (shell("/usr/bin/python3 -c 'import onnx'") != 0)
        SKIP("python3-onnx is not installed (scripts/setup.sh)");
    open_list();
    ct_model_each(write_network, (void *)"resnet20");
    write_case(&(onnx_case){"mobilenetv2", "evonorm", 3, 32, false, true});
    CHECK(fclose(list) == 0);
    int code = shell("/usr/bin/python3 -c \"import glob, onnx\n"
                     "for f in sorted(glob.glob('*.onnx')):\n"
                     "    m = onnx.load(f)\n"
                     "    onnx.checker.check_model(m, full_check=True)\n"
                     "    n = m.graph.input[0].type.tensor_type.shape.dim[0]\n"
                     "    assert n.dim_param == 'n' and m.opset_import[0].version == 13\n"
                     "    assert {p.key: p.value for p in m.metadata_props}['classes'] == '10'\n"
                     "    print(f)\"");
    if (code != 0) printf("    %s\n", said.err);
    CHECK(code == 0 && n_lines(said.out) == n_listed);
    remove_listed();
}

/* ---- the command ---- */

static void export_writes_a_whole_file_or_none(void) {
    succeeds(TINY);
    succeeds("export run model.onnx");
    CHECK(n_lines(said.err) == 2 && strstr(said.err, "mlp:8") != NULL);
    REFUSES(1, "export run model.onnx", "model.onnx is there already", "--force");
    succeeds("export run other.onnx --quiet");
    CHECK(same_files("model.onnx", "other.onnx"));
    succeeds("export run model.onnx --force --quiet --logits --preprocess");
    CHECK(!same_files("model.onnx", "other.onnx"));
    REFUSES(2, "export run model.pt", "model.pt", ".onnx");
    REFUSES(1, "export nowhere x.onnx", "nowhere");
    REFUSES(1, "export run nowhere/x.onnx", "nowhere/x.onnx");
    REFUSES(2, "export run", "FILE.onnx");
    REFUSES(2, "export run x.onnx --opset 9", "--opset");
    REFUSES(2, "export run x.onnx --norm batchnorm", "--norm batchnorm", "evonorm");
    file_limit = 512;
    CHECK(run("export run x.onnx --quiet") == 1);
    file_limit = 0;
    CHECK(!ct_file_exists("x.onnx"));
    unlink("model.onnx");
    unlink("other.onnx");
    remove_tree("run");
}

int main(void) {
    if (!enter_folder()) return 1;
    TEST(every_network_and_norm_gives_the_same_probabilities);
    TEST(large_images_logits_and_bytes_do_too);
    TEST(onnx_checks_the_files);
    TEST(export_writes_a_whole_file_or_none);
    leave_folder();
    return test_report();
}
