/* --min-class-count: what leaves an agent, and what it costs. */
#include "resume.h"

#define WORDS                                                                                      \
    "dataset=shapes model=mlp:4 agents=4 batch-size=8 train-samples=200 test-samples=20 epochs=1 " \
    "algorithm=ccl lr=0.02 threads=1 quiet=on alpha=1 "

/* The smallest count but none among the class sums of one step, and the number of classes sent. */
static void look_at_sums(const char *words, float *smallest, int *n_sent) {
    static ct_config config;
    ct_run run;
    *smallest = 1e9f;
    *n_sent = 0;
    REQUIRE_OK(configure(words, &config));
    REQUIRE_OK(ct_run_build(&config, &run));
    CHECK_OK(ct_run_iterate(&run, 0));
    size_t width = ct_graph_n_features(&run.graph) + 1;
    for (int e = 0; e < run.agents.ccl.edge_sums.n_own; e++) {
        for (int c = 0; c < run.graph.n_classes; c++) {
            float row[64];
            CHECK_OK(ct_bank_read(&run.agents.ccl.edge_sums, e, (size_t)c * width, width, row));
            if (row[width - 1] == 0)
                for (size_t k = 0; k < width; k++) CHECK(row[k] == 0);
            if (row[width - 1] == 0) continue;
            ++*n_sent;
            if (row[width - 1] < *smallest) *smallest = row[width - 1];
        }
    }
    ct_run_clear(&run);
}

static void small_classes_stay_at_home(void) {
    float smallest;
    int n_all, n_some;
    look_at_sums(WORDS, &smallest, &n_all);
    CHECK(smallest == 1 && n_all > 0);
    look_at_sums(WORDS "min-class-count=2", &smallest, &n_some);
    CHECK(smallest == 2 && n_some > 0 && n_some < n_all);
    look_at_sums(WORDS "min-class-count=9", &smallest, &n_some);
    CHECK(n_some == 0);
}

static void training_goes_on_with_what_is_left(void) {
    CHECK_OK(train(WORDS "min-class-count=3 out=guarded"));
    CHECK_OK(train(WORDS "min-class-count=9 out=silent"));
    remove_tree("guarded");
    remove_tree("silent");
}

int main(void) {
    if (!enter_folder()) return 1;
    TEST(small_classes_stay_at_home);
    TEST(training_goes_on_with_what_is_left);
    remove_tree(folder);
    return test_report();
}
