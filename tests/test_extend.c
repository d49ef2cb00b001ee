/* More epochs for a run that is finished: --resume DIR --epochs N. */
#include "program.h"

#define RUN                                                                                        \
    "train --model mlp:8 --agents 5 --batch-size 8 --partition iid --threads 1 --lr 0.05 "         \
    "--save-agents --algorithm ccl " DATA
#define CONSTANT RUN "--lr-schedule constant "

static bool same_models(const char *a, const char *b) {
    return same_files(ct_path_in(a, "consensus.safetensors").text,
                      ct_path_in(b, "consensus.safetensors").text) &&
           same_files(ct_path_in(a, "agents.safetensors").text,
                      ct_path_in(b, "agents.safetensors").text);
}

/* Epochs with all their numbers but the time. */
static void check_same_metrics(const char *a, const char *b, int n) {
    static const char *const keys[] = {"epoch", "iteration",          "lr",
                                       "ce",    "consensus_accuracy", "consensus_distance"};
    for (int line = 0; line <= n; line++) {
        ct_json *x = read_json(ct_path_in(a, "metrics.jsonl").text, line);
        ct_json *y = read_json(ct_path_in(b, "metrics.jsonl").text, line);
        CHECK((x != NULL) == (line < n) && (y != NULL) == (line < n));
        for (size_t k = 0; k < sizeof keys / sizeof *keys && line < n; k++)
            CHECK(number_of(x, keys[k]) == number_of(y, keys[k]));
        ct_json_free(&x);
        ct_json_free(&y);
    }
}

static void a_constant_rate_gives_the_bits_of_the_longer_run(void) {
    succeeds(CONSTANT "--epochs 4 --out long");
    succeeds(CONSTANT "--epochs 2 --out short");
    CHECK(!same_models("long", "short"));
    succeeds("train --resume short --epochs 4");
    CHECK(strstr(said.err, "--epochs 4 instead of 2: the run is the one that 4") != NULL);
    CHECK(same_models("long", "short"));
    check_same_metrics("long", "short", 4);
    ct_json *json = read_json("short/summary.json", -1);
    CHECK(number_of(json, "epoch") == 4);
    CHECK(number_of(ct_json_get(json, "options"), "epochs") == 4);
    ct_json_free(&json);
    remove_tree("short");
}

/* Of several seeds as of one, and once more. */
static void seeds_are_extended_together_and_again(void) {
    succeeds(CONSTANT "--quiet --seeds 1,2 --epochs 1 --out seeds");
    succeeds("train --quiet --resume seeds --epochs 2");
    succeeds("train --quiet --resume seeds --epochs 4");
    CHECK(same_models("long", "seeds/seed-1"));
    check_same_metrics("long", "seeds/seed-1", 4);
    remove_tree("seeds");
}

static void a_rate_that_depends_on_the_epochs_is_said_to_change(void) {
    succeeds(RUN "--lr-schedule cosine --epochs 2 --out cosine");
    succeeds("train --resume cosine --epochs 4");
    CHECK(strstr(said.err, "from here on the learning rate is that of 4 epochs (next: 0.025)") !=
          NULL);
    ct_json *json = read_json("cosine/metrics.jsonl", 2);
    CHECK(number_of(json, "epoch") == 3 && number_of(json, "lr") < 0.025);
    CHECK(number_of(json, "lr") > 0.005);
    ct_json_free(&json);
    remove_tree("cosine");
}

/* Milestones that no epoch had reached yet have changed nothing. */
static void milestones_ahead_leave_the_bits_alone(void) {
    succeeds(RUN "--quiet --lr-milestones 0.75 --epochs 4 --out b");
    succeeds(RUN "--quiet --lr-milestones 0.75 --epochs 2 --iterations 1 --out a");
    succeeds("train --resume a --iterations 0 --epochs 4");
    CHECK(strstr(said.err, "the run is the one that 4 would have given") != NULL);
    CHECK(same_models("a", "b"));
    remove_tree("a");
    remove_tree("b");
}

static void fewer_epochs_are_refused_and_so_is_auto(void) {
    REFUSES(2, "train --quiet --resume long --epochs 3", "--epochs 3", "which has 4");
    REFUSES(2, CONSTANT "--quiet --out long --resume auto --epochs 6", "--epochs 6");
    CHECK(ct_file_exists("long/summary.json"));
}

static void who_wants_no_checkpoint_has_none(void) {
    succeeds(CONSTANT "--quiet --epochs 1 --checkpoint-every 0 --out bare");
    CHECK(!ct_dir_exists("bare/checkpoint"));
    REFUSES(1, "train --quiet --resume bare --epochs 2", "checkpoint");
    CHECK(ct_file_exists("bare/summary.json"));
    remove_tree("bare");
}

int main(void) {
    if (CT_PROGRAM[0] == '\0' || !enter_folder()) return 1;
    TEST(a_constant_rate_gives_the_bits_of_the_longer_run);
    TEST(seeds_are_extended_together_and_again);
    TEST(a_rate_that_depends_on_the_epochs_is_said_to_change);
    TEST(milestones_ahead_leave_the_bits_alone);
    TEST(fewer_epochs_are_refused_and_so_is_auto);
    TEST(who_wants_no_checkpoint_has_none);
    remove_tree("long");
    leave_folder();
    return test_report();
}
