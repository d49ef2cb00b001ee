/* Samples that all agents have (IDKD): who is labelled, what is counted, what it leaves alone. The
 * numbers of training are checked against the oracle in test_distill. */
#include "ranks.h"
#include "runs.h"

#define APART                                                                                      \
    RUN_ORACLE                                                                                     \
    " --init init-agents.safetensors --weight-decay 0.01 --lr 0.1 --loss ce --batch-size 9 "
#define PUBLIC "--public-data distill/public --distil-epochs 1 "

/* ---- the threshold ---- */

static float threshold(const float *own, size_t n_own, const float *others, size_t n_others) {
    float a[8], b[8];
    memcpy(a, own, n_own * sizeof *own);
    memcpy(b, others, n_others * sizeof *others);
    return ct_best_threshold(a, n_own, b, n_others);
}

static void the_threshold_parts_own_from_public_samples_best(void) {
    const float high[] = {0.9f, 0.7f, 0.8f}, low[] = {0.3f, 0.75f, 0.2f, 0.4f},
                same[] = {0.5f, 0.5f};
    /* 0.7: 3/3 - 1/4; 0.8: 2/3 - 0/4 */
    CHECK(threshold(high, 3, low, 4) == 0.7f);
    /* 0.75: 1 - 1/4, 0.7 likewise: the larger */
    const float equal[] = {0.9f, 0.7f}, others[] = {0.7f, 0.1f};
    CHECK(threshold(equal, 2, others, 2) == 0.9f);
    CHECK(threshold(same, 2, same, 2) == 0.5f);
    /* public ones look better than own ones: whoever is as good as the best of own */
    CHECK(threshold(low, 3, high, 3) == 0.75f);
}

static void epochs_are_read_or_chosen(void) {
    ct_public p;
    CHECK_OK(ct_public_parse("", 300, &p));
    CHECK(p.n_epochs == 1 && p.epochs[0] == 240);
    CHECK_OK(ct_public_parse("3,7,9", 9, &p));
    CHECK(p.n_epochs == 3 && p.epochs[0] == 3 && p.epochs[1] == 7 && p.epochs[2] == 9);
    static const char *const wrong[] = {"0", "4,4", "5,3", "10", "x", "3,,4", "1.5"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        CHECK_FAILS(ct_public_parse(wrong[k], 9, &p), CT_INVAL, "ascending numbers of epochs");
}

/* ---- runs ---- */

/* x of all five agents after n steps. */
static void train_oracle(const char *options, long n_steps, float rows[5][RUN_MAX_COLUMNS]) {
    static ct_run run;
    REQUIRE_OK(run_create("cpu", APART, options, &run));
    run_steps(&run, 0, n_steps);
    for (int i = 0; i < 5; i++)
        CHECK_OK(ct_bank_read(&run.agents.x, i, 0, run.graph.n_weights, rows[i]));
    ct_run_clear(&run);
}

static void nothing_changes_until_samples_are_labelled(void) {
    static float plain[5][RUN_MAX_COLUMNS], with[5][RUN_MAX_COLUMNS];
    train_oracle("--algorithm qg-dsgdm --epochs 4", 3, plain);
    train_oracle("--algorithm qg-dsgdm --epochs 4 " PUBLIC, 3, with);
    CHECK(memcmp(plain, with, sizeof plain) == 0);
    train_oracle("--algorithm qg-dsgdm --epochs 4", 4, plain);
    train_oracle("--algorithm qg-dsgdm --epochs 4 " PUBLIC, 4, with);
    CHECK(memcmp(plain, with, sizeof plain) != 0);
    /* nobody is that sure */
    train_oracle("--algorithm qg-dsgdm --epochs 4 --distil-threshold 1 " PUBLIC, 4, with);
    CHECK(memcmp(plain, with, sizeof plain) == 0);
}

static void labels_are_probabilities_of_own_or_neighbours(void) {
    static ct_run run;
    REQUIRE_OK(run_create("cpu", APART "--epochs 4 --topology chain",
                          "--algorithm qg-dsgdm --distil-threshold 0.3 " PUBLIC, &run));
    run_steps(&run, 0, 4);
    const ct_public *p = &run.public;
    const size_t n_classes = (size_t)run.graph.n_classes, n = p->n * n_classes;
    CHECK(p->n == 40 && n_classes == 4);
    static float row[160], told[3][160];
    /* agent 1 of a chain hears 0 and 2 */
    for (int j = 0; j < 3; j++) CHECK_OK(ct_bank_read(&p->said, j, 0, n, told[j]));
    CHECK_OK(ct_bank_read(&p->labels, 1, 0, n, row));
    for (size_t u = 0; u < p->n; u++) {
        double sum = 0, count = 0;
        for (int j = 0; j < 3; j++) {
            double all = 0;
            for (size_t c = 0; c < n_classes; c++) all += (double)told[j][u * n_classes + c];
            CHECK(all == 0 || fabs(all - 1) < 1e-6);
            count += all > 0;
        }
        for (size_t c = 0; c < n_classes; c++) {
            double mean = 0;
            for (int j = 0; j < 3 && count > 0; j++)
                mean += (double)told[j][u * n_classes + c] / count;
            CHECK_NEAR(row[u * n_classes + c], mean, 1e-6);
            sum += (double)row[u * n_classes + c];
        }
        CHECK(count == 0 ? sum == 0 : fabs(sum - 1) < 1e-6);
    }
    ct_run_clear(&run);
}

/* Beside what training sends: so many bytes for every label, to every neighbour. */
static void labels_that_travel_are_counted(void) {
    static ct_run run, plain;
    static const char options[] = "--algorithm qg-dsgdm --topology star --epochs 4 ";
    REQUIRE_OK(run_create("cpu", APART PUBLIC "--distil-threshold 0.3", options, &run));
    REQUIRE_OK(run_create("cpu", APART, options, &plain));
    run_steps(&run, 0, 5);
    run_steps(&plain, 0, 5);
    for (int i = 0; i < 5; i++) {
        const uint64_t degree = i == 0 ? 4 : 1, n_said = run.public.n_said[i];
        const uint64_t wanted = ct_transport_sent(plain.transport, i, CT_TRAFFIC_PARAMETERS) +
                                degree * n_said * (4 + 4 * 4);
        CHECK(n_said > 0 && ct_transport_sent(run.transport, i, CT_TRAFFIC_PARAMETERS) == wanted);
    }
    ct_run_clear(&run);
    ct_run_clear(&plain);
}

/* In a pass every labelled sample is taken once, and targets are its own. */
static void a_pass_takes_every_labelled_sample_once(void) {
    static ct_run run;
    int n_taken[40] = {0};
    long taken = 0, steps = 0;
    REQUIRE_OK(run_create("cpu", APART "--epochs 40", "--algorithm qg-dsgdm " PUBLIC, &run));
    run_steps(&run, 0, 3);
    const ct_lesson *l = &run.agents.lesson;
    const long n_passes = 3;
    do {
        run_steps(&run, 3 + steps++, 1);
        REQUIRE(l->n_jobs == 5 && l->jobs[2].model == 2);
        for (int b = 0; b < l->batches[2].n; b++)
            if (taken < n_passes * (long)run.public.n_chosen[2])
                n_taken[l->batches[2].index[b]]++, taken++;
        CHECK_NEAR(l->own.value[2] + l->others.value[2], 1, 1e-12);
    } while (taken < n_passes * (long)run.public.n_chosen[2] && steps < 100);
    size_t n_labelled = 0;
    for (int u = 0; u < 40; u++) {
        CHECK(n_taken[u] == 0 || n_taken[u] == n_passes);
        n_labelled += n_taken[u] > 0;
    }
    CHECK(n_labelled == run.public.n_chosen[2]);
    ct_run_clear(&run);
}

static const char *const forms[] = {
    "--algorithm qg-dsgdm", "--algorithm qg-dsgdm --loss ccl",
    "--algorithm qg-dsgdm --variant wacv24 --loss ccl",
    "--algorithm dsgdm --compress quantize:4 --distil-threshold 0.3"};
#define SMALL_RUN                                                                                  \
    RUN_PLAIN " --epochs 8 --batch-size 16 --public-data distill/public --distil-epochs 1,2 "

static void seeds_side_by_side_train_as_they_would_alone(void) {
    static float together[RUN_MAX_COLUMNS], alone[RUN_MAX_COLUMNS];
    static ct_run run;
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        REQUIRE_OK(run_create("cpu", SMALL_RUN "--agents 4 --seeds 3,5", forms[k], &run));
        run_steps(&run, 0, 9);
        CHECK(run.agents.lesson.n_jobs > 0);
        CHECK_OK(ct_bank_read(&run.agents.x, 6, 0, run.graph.n_weights, together));
        ct_run_clear(&run);
        REQUIRE_OK(run_create("cpu", SMALL_RUN "--agents 4 --seed 5", forms[k], &run));
        run_steps(&run, 0, 9);
        CHECK_OK(ct_bank_read(&run.agents.x, 2, 0, run.graph.n_weights, alone));
        ct_run_clear(&run);
        CHECK(memcmp(together, alone, sizeof alone) == 0);
    }
}

static void labelling_and_learning_take_no_memory(void) {
    static ct_run run;
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        REQUIRE_OK(run_create("cpu", SMALL_RUN "--agents 4", forms[k], &run));
        run_steps(&run, 0, 2);
        uint64_t before = ct_alloc_count();
        run_steps(&run, 2, 8); /* labels twice */
        CHECK(ct_alloc_count() == before && run.agents.lesson.n_jobs > 0);
        ct_run_clear(&run);
    }
}

static void it_is_refused_where_it_does_not_go(void) {
    static const char *const cases[][2] = {
        {"--algorithm gt", "gt cannot train with --public-data; these can: dsgd, dsgdm, qg-dsgdm"},
        {"--algorithm def-kt", "def-kt cannot train with --public-data"},
        {"--algorithm qg-dsgdm --topology matchings", "graphs that change and --local-steps"},
        {"--algorithm qg-dsgdm --local-steps 2", "graphs that change and --local-steps"},
        {"--algorithm qg-dsgdm --fault drop=0.1", "does not go with --fault"},
        {"--algorithm qg-dsgdm --sam 0.1", "does not go with --sam"},
        {"--algorithm qg-dsgdm --clip-norm 1", "does not go with --clip-norm"},
        {"--algorithm qg-dsgdm --distil-epochs 9", "ascending numbers of epochs"},
        {"--algorithm qg-dsgdm --dataset shapes", "samples of 1 x 6 x 6"},
    };
    static ct_run run;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        CHECK_FAILS(run_create("cpu", SMALL_RUN "--agents 4", cases[k][0], &run), CT_INVAL,
                    cases[k][1]);
    CHECK_FAILS(
        run_create("cpu", SMALL_RUN "--agents 4 --algorithm dsgd", "--public-data nowhere", &run),
        CT_IO, "nowhere");
    CHECK(shell("%s train --distil-epochs 3 2>&1%s", CT_PROGRAM, "") == 2);
    CHECK(strstr(said, "--distil-epochs does nothing without --public-data") != NULL);
}

/* ---- the program ---- */

#define RUN                                                                                        \
    " train --quiet --dataset idx --data-dir " CT_SOURCE_DIR "/tests/fixtures/data --augment off " \
    "--model mlp:8 --agents 6 --partition iid --batch-size 8 --epochs 4 --lr 0.05 --threads 1 "    \
    "--save-agents --public-data " CT_SOURCE_DIR "/tests/fixtures/distill/public "                 \
    "--distil-epochs 1,3 --algorithm ccl "

static void runs_are_resumed_to_the_same_bits(void) {
    CHECK(shell("%s" RUN "--out one 2>&1%s", CT_PROGRAM, "") == 0);
    for (int stop = 5; stop <= 14;
         stop += 9) { /* within labels of the first and of the second time */
        char words[64];
        snprintf(words, sizeof words, "--iterations %d", stop);
        CHECK(shell("%s" RUN "--checkpoint-every end %s --out two 2>&1", CT_PROGRAM, words) == 0);
        CHECK(shell("%s train --quiet --resume two --iterations 0 2>&1%s", CT_PROGRAM, "") == 0);
        CHECK(same_results("one", "two"));
        remove_tree("two");
    }
    remove_tree("one");
}

/* Labels that were given to other samples mean nothing. */
static void a_run_is_not_resumed_with_other_public_samples(void) {
    static const char there[] = CT_SOURCE_DIR "/tests/fixtures/distill/public", other[] = "mine";
    CHECK(shell("cp -r %s %s", there, other) == 0);
    CHECK(shell("%s" RUN "--iterations 5 --checkpoint-every end --public-data %s --out two 2>&1",
                CT_PROGRAM, other) == 0);
    CHECK(shell("printf x | dd of=%s/train-images-idx3-ubyte bs=1 seek=40 conv=notrunc 2>&1%s",
                other, "") == 0);
    CHECK(shell("%s train --quiet --resume two --iterations 0 2>&1%s", CT_PROGRAM, "") == 2);
    CHECK(strstr(said, "public") != NULL);
    remove_tree("two");
    remove_tree(other);
}

static void ranks_have_the_same_bits(void) {
    NEEDS_MPI();
    CHECK(shell("%s" RUN "--out one 2>&1%s", CT_PROGRAM, "") == 0);
    for (int n = 2; n <= 4; n++) {
        char start[512], go_on[512];
        snprintf(start, sizeof start, "mpirun -n %d %s", n, CT_PROGRAM);
        snprintf(go_on, sizeof go_on, "mpirun -n %d %s", n == 4 ? 1 : n + 1, CT_PROGRAM);
        CHECK(shell("%s" RUN "--iterations 6 --checkpoint-every end --out more 2>&1%s", start,
                    "") == 0);
        CHECK(shell("%s train --quiet --resume more --iterations 0 2>&1%s", go_on, "") == 0);
        if (!same_results("one", "more")) printf("    on %d ranks: %s\n", n, said);
        CHECK(same_results("one", "more"));
        remove_tree("more");
    }
    remove_tree("one");
}

int main(void) {
    if (chdir(CT_SOURCE_DIR "/tests/fixtures") != 0) return 1;
    TEST(the_threshold_parts_own_from_public_samples_best);
    TEST(epochs_are_read_or_chosen);
    TEST(nothing_changes_until_samples_are_labelled);
    TEST(labels_are_probabilities_of_own_or_neighbours);
    TEST(labels_that_travel_are_counted);
    TEST(a_pass_takes_every_labelled_sample_once);
    TEST(seeds_side_by_side_train_as_they_would_alone);
    TEST(labelling_and_learning_take_no_memory);
    TEST(it_is_refused_where_it_does_not_go);
    prepare_ranks();
    if (!enter_folder()) return 1;
    TEST(runs_are_resumed_to_the_same_bits);
    TEST(a_run_is_not_resumed_with_other_public_samples);
    TEST(ranks_have_the_same_bits);
    remove_tree(folder);
    return test_report();
}
