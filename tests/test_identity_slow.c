/* Two ranks with two values of every option that changes the numbers, and of the model: refused
 * within seconds, with both values. All of them with CT_TEST_LONG=1, else every ninth. */
#include "ranks.h"

static const struct {
    const char *option, *first, *second, *also; /* also: what both need */
} pairs[] = {
    {"lr", "0.1", "0.2", ""},
    {"seed", "1", "2", ""},
    {"seeds", "1,2", "1,3", ""},
    {"topology", "ring", "chain", ""},
    {"agents", "4", "6", ""},
    {"weights", "uniform", "metropolis", ""},
    {"gamma", "1", "0.5", ""},
    {"fault", "drop=0.1", "drop=0.2", ""},
    {"algorithm", "dsgdm", "gt", ""},
    {"variant", "atc", "wacv24", "--algorithm qg-dsgdm"},
    {"loss", "ce", "ccl", ""},
    {"lambda-m", "0.1", "0.2", "--loss ccl"},
    {"lambda-d", "0.1", "0.2", "--loss ccl"},
    {"lambdas", "0.1:0.1,0.2:0.1", "0.1:0.1,0.3:0.1", ""},
    {"ccl-every", "1", "2", "--loss ccl"},
    {"weight-decay", "0", "0.1", ""},
    {"momentum", "0.9", "0.5", ""},
    {"nesterov", "on", "off", ""},
    {"clip-norm", "0", "1", ""},
    {"sam", "0", "0.1", ""},
    {"label-smoothing", "0", "0.1", ""},
    {"lr-schedule", "step", "cosine", ""},
    {"warmup-epochs", "0", "1", ""},
    {"batch-size", "8", "16", ""},
    {"epochs", "1", "2", ""},
    {"iterations", "1", "2", ""},
    {"dataset", "shapes", "noise", ""},
    {"train-samples", "600", "500", ""},
    {"test-samples", "50", "40", ""},
    {"partition", "iid", "shards", ""},
    {"alpha", "0.1", "0.2", ""},
    {"shuffle", "on", "off", ""},
    {"augment", "on", "off", ""},
    {"norm", "evonorm", "batchnorm", ""},
    {"exact-conv", "on", "off", ""},
    {"eval-every", "1", "2", ""},
    {"checkpoint-every", "1", "end", ""},
    {"gossip-rounds", "0", "1", ""},
    {"link-latency", "0", "1", ""},
    {"out", "pair", "other", ""},
    {"model", "mlp:4", "mlp:8", ""},
    {"model", "lenet5", "resnet20", ""},
    {"model", "resnet20", "lenet5", ""},
    {"model", "vgg11", "mobilenetv2", ""},
    {"model", "resnet18", "resnet20", ""},
};

#define RUN                                                                                        \
    "train --quiet --dataset shapes --model mlp:4 --agents 4 --batch-size 8 --train-samples 600 "  \
    "--test-samples 50 --epochs 1 --threads 1 --out pair"

static void no_two_values_train_together(void) {
    NEEDS_MPI();
    size_t step = getenv("CT_TEST_LONG") != NULL ? 1 : 9;
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k += step) {
        char command[1024], wanted[256];
        snprintf(command, sizeof command,
                 "timeout 60 mpirun -n 1 %s " RUN " %s --%s %s : -n 1 %s " RUN " %s --%s %s 2>&1",
                 CT_PROGRAM, pairs[k].also, pairs[k].option, pairs[k].first, CT_PROGRAM,
                 pairs[k].also, pairs[k].option, pairs[k].second);
        snprintf(wanted, sizeof wanted, "rank 1 has --%s %s, rank 0 has %s:", pairs[k].option,
                 pairs[k].second, pairs[k].first);
        int code = shell("%s%s", command, "");
        if (code != 2 || strstr(said, wanted) == NULL)
            printf("    %d for %s: %s\n", code, wanted, said);
        CHECK(code == 2 && strstr(said, wanted) != NULL);
        remove_tree("pair");
    }
}

int main(void) {
    prepare_ranks();
    if (!enter_folder()) return 1;
    TEST(no_two_values_train_together);
    remove_tree(folder);
    return test_report();
}
