/* It learns: real Fashion-MNIST on 16 agents, five epochs, on the default device. */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "run/run.h"
#include "util/file.h"
#include "util/json.h"
#include "util/log.h"

#define N_PARAMETERS 61706

static char folder[] = "/tmp/crosstalk-test-XXXXXX";

/* The paper's settings (lr 0.01, momentum 0.9, batches of 32), unless `milestones` says otherwise.
 */
static ct_status train(const char *algorithm, const char *milestones, const char *threads,
                       const char *out) {
    const char *const options[][2] = {
        {"dataset", "fashion-mnist"},
        {"agents", "16"},
        {"topology", "ring"},
        {"partition", "iid"},
        {"epochs", "5"},
        {"algorithm", algorithm},
        {"loss", "ce"},
        {"device", "cpu"},
        {"lr-milestones", milestones},
        {"quiet", "on"},
        {"threads", threads},
        {"eval-every", "5"},
        {"out", out},
    };
    ct_config config;
    ct_config_init(&config);
    for (size_t k = 0; k < sizeof options / sizeof *options; k++)
        CT_TRY(ct_config_put(&config, options[k][0], options[k][1]));
    return ct_train(&config);
}

static bool has_data(void) {
    ct_dataset dataset = {0};
    ct_dataset_options options = {0};
    bool is_there = ct_dataset_open("fashion-mnist", &options, &dataset) == CT_OK;
    ct_dataset_free(&dataset);
    ct_clear_message();
    return is_there;
}

static double number(const char *path, const char *key) {
    ct_blob blob = {0};
    ct_json *json = NULL;
    double value = NAN;
    CHECK_OK(ct_file_read(path, 1 << 20, &blob));
    if (blob.bytes != NULL) CHECK_OK(ct_json_parse((char *)blob.bytes, blob.n, path, &json));
    if (json != NULL && ct_json_get(json, key) != NULL) value = ct_json_get(json, key)->number;
    ct_json_free(&json);
    ct_blob_free(&blob);
    return value;
}

static void check_learnt(const char *summary) {
    double accuracy = number(summary, "consensus_accuracy");
    printf("    consensus accuracy %.4f, ce %.4f\n", accuracy, number(summary, "ce"));
    CHECK(accuracy >= 0.80 && accuracy <= 1);
    CHECK(number(summary, "local_accuracy_min") > 0.7);
    CHECK(number(summary, "epoch") == 5);
    CHECK(number(summary, "parameters") == N_PARAMETERS);
}

static void sixteen_agents_learn_fashion_mnist_in_five_epochs(void) {
    if (!has_data()) SKIP("Fashion-MNIST is not installed (apt install dataset-fashion-mnist)");
    REQUIRE_OK(train("dsgdm", "0.5,0.75", "2", "dsgdm"));
    check_learnt("dsgdm/summary.json");
}

/* Quasi-global momentum starts more slowly: with the rate divided by ten twice within so few epochs
 * it ends at 0.786 (seeds 1 to 3: 0.786, 0.787, 0.775), at the full rate at 0.828. */
static void so_they_do_with_quasi_global_momentum(void) {
    if (!has_data()) SKIP("Fashion-MNIST is not installed (apt install dataset-fashion-mnist)");
    REQUIRE_OK(train("qg-dsgdm", "none", "1", "one"));
    check_learnt("one/summary.json");
}

static void two_threads_give_the_same_bits_as_one(void) {
    if (!has_data()) SKIP("Fashion-MNIST is not installed (apt install dataset-fashion-mnist)");
    ct_blob one = {0}, two = {0};
    REQUIRE_OK(train("qg-dsgdm", "none", "2", "two"));
    REQUIRE_OK(ct_file_read("one/consensus.safetensors", 1 << 24, &one));
    REQUIRE_OK(ct_file_read("two/consensus.safetensors", 1 << 24, &two));
    CHECK(one.n > 4 * N_PARAMETERS && one.n == two.n);
    CHECK(one.n == two.n && memcmp(one.bytes, two.bytes, one.n) == 0);
    ct_blob_free(&one);
    ct_blob_free(&two);
    CHECK(number("one/summary.json", "consensus_loss") ==
          number("two/summary.json", "consensus_loss"));
}

static void clear(const char *dir) {
    static const char *const files[] = {"config.txt", "partition.csv", "metrics.jsonl",
                                        "summary.json", "consensus.safetensors"};
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s", dir, files[k]);
        unlink(path);
    }
    rmdir(dir);
}

int main(void) {
    if (mkdtemp(folder) == NULL || chdir(folder) != 0) return 1;
    TEST(sixteen_agents_learn_fashion_mnist_in_five_epochs);
    TEST(so_they_do_with_quasi_global_momentum);
    TEST(two_threads_give_the_same_bits_as_one);
    clear("dsgdm");
    clear("one");
    clear("two");
    rmdir(folder);
    return test_report();
}
