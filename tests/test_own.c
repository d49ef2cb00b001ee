/* Agents with data sets of their own (--partition own): sizes and classes differ, labels mean the same
 * everywhere, and one process and any number of ranks give the same bits. */
#include "ranks.h"

#include "data/part.h"
#include "data/png_write.h"
#include "run/own.h"
#include "run/run.h"
#include "util/memory.h"
#include "util/rng.h"

#define NAMES "agent-names=north,south,east "
#define OWN                                                                                        \
    "partition=own agents=3 model=mlp:8 batch-size=16 epochs=2 lr=0.02 threads=1 save-agents=on "  \
    "quiet=on data-dir=site-%a "
#define PROGRAM " train --quiet --threads 1 --save-agents --checkpoint-every end "
#define SITES                                                                                      \
    "--partition own --agents 3 --agent-names north,south,east --data-dir site-%%a --model mlp:8 " \
    "--batch-size 16 --epochs 3 --lr 0.02 --image-size 8 "

static const char *const sites[] = {"north", "south", "east"};

/* What class a picture is of is written into its red channel, and who has it into its green one. */
enum { SIDE = 8, RED_STEP = 30 };
static const char *const animals[] = {"ant", "bee", "cat", "dog", "emu"};

static void put_animal(int site, const char *part, int animal, int number) {
    char path[128];
    uint8_t pixels[SIDE * SIDE * 3];
    ct_rng rng;
    ct_rng_init(&rng, 1, CT_RNG_SYNTHETIC, (uint32_t)site, (uint32_t)part[0], (uint32_t)number);
    for (size_t k = 0; k < SIDE * SIDE; k++) {
        pixels[3 * k] = (uint8_t)(20 + RED_STEP * animal);
        pixels[3 * k + 1] = (uint8_t)(100 + 10 * site);
        pixels[3 * k + 2] = (uint8_t)ct_rng_u32(&rng);
    }
    snprintf(path, sizeof path, "site-%s/%s/%s", sites[site], part, animals[animal]);
    CHECK_OK(ct_dir_create(path));
    snprintf(path, sizeof path, "site-%s/%s/%s/%04d.png", sites[site], part, animals[animal],
             number);
    CHECK_OK(ct_png_write(path, SIDE, SIDE, pixels));
}

/* Three sites of 100, 450 and 2000 pictures; none has all classes, and one has a single one. */
static const int n_train[] = {100, 450, 2000}, n_test[] = {20, 45, 60};
static const int first_animal[] = {2, 0, 3}, n_animals[] = {3, 4, 1};

static void make_sites(void) {
    for (int s = 0; s < 3; s++) {
        for (int i = 0; i < n_train[s]; i++)
            put_animal(s, "train", first_animal[s] + i % n_animals[s], i);
        for (int i = 0; i < n_test[s]; i++)
            put_animal(s, "val", first_animal[s] + i % n_animals[s], i);
    }
}

static ct_status build(const char *words, ct_run *run) {
    ct_config config;
    CT_TRY(configure(words, &config));
    return ct_run_build(&config, run);
}

/* The label of a picture is what its red channel says, by the names of the run's classes. */
static int n_wrong(const ct_run *run, const ct_images *images, const uint32_t *index, size_t n,
                   int site) {
    int wrong = 0;
    size_t plane = (size_t)images->height * (size_t)images->width;
    for (size_t k = 0; k < n; k++) {
        const uint8_t *pixels = ct_image_at(images, index != NULL ? index[k] : k);
        int32_t label = images->labels[index != NULL ? index[k] : k];
        int animal = (pixels[0] - 20) / RED_STEP;
        wrong += strcmp(ct_dataset_class_name(&run->dataset, label), animals[animal]) != 0 ||
                 (site >= 0 && pixels[plane] != 100 + 10 * site);
    }
    return wrong;
}

/* Batches of an epoch: every agent sees its own samples alone, with the right labels. */
static void check_batches(ct_run *run) {
    for (long it = 0; it < run->epoch_iterations; it++) {
        CHECK_OK(ct_run_batches(run, it));
        const ct_images *images =
            run->train_loader != NULL ? ct_loader_images(run->train_loader) : &run->dataset.train;
        int wrong = 0;
        for (int i = 0; i < run->agents.n; i++)
            wrong += n_wrong(run, images, run->batches[i].index, (size_t)run->batches[i].n, i % 3);
        CHECK(wrong == 0);
    }
}

static void check_pictures(const char *words) {
    ct_run run;
    REQUIRE_OK(build(words, &run));
    CHECK(run.dataset.n_classes == 5 && run.epoch_iterations == 125);
    CHECK(run.n_tested == 125);
    for (int a = 0; a < 3; a++) {
        CHECK(run.own_sizes[a] == (size_t)n_train[a]);
        CHECK(ct_partition_size(&run.partition, a) == (size_t)n_train[a]);
        CHECK(run.parts[a].n_test == (size_t)n_test[a]);
        for (int c = 0; c < 5; c++) {
            bool has = c >= first_animal[a] && c < first_animal[a] + n_animals[a];
            CHECK((run.class_counts[a * 5 + c] > 0) == has);
        }
    }
    check_batches(&run);
    ct_run_clear(&run);
}

#define FOLDERS OWN NAMES "dataset=folder image-size=8 "

/* Cut out at random from memory, from disk, and whole. */
static void labels_are_right_at_every_agent(void) {
    check_pictures(FOLDERS "augment=off");
    check_pictures(FOLDERS "augment=off memory=1 workers=2 image-size=24 seeds=1,2");
    ct_run run;
    REQUIRE_OK(build(FOLDERS "dataset=auto", &run));
    CHECK(strcmp(run.config.dataset, "folder") == 0 && run.train_loader != NULL);
    CHECK(n_wrong(&run, &run.dataset.test, NULL, run.dataset.test.n, -1) == 0);
    ct_run_clear(&run);
}

/* One site's pictures are streamed and the others' lie in memory (a MiB is 600 of 24 x 24 pixels): what
 * is trained is the same. */
static void it_does_not_matter_which_pictures_are_streamed(void) {
    REQUIRE_OK(train(FOLDERS "augment=off memory=1 image-size=24 out=mixed"));
    REQUIRE_OK(train(FOLDERS "augment=off memory=1000 image-size=24 out=all"));
    CHECK(same_results("mixed", "all"));
    remove_tree("mixed");
    remove_tree("all");
}

/* ---- ranks ---- */

static bool same_checkpoint(const char *a, const char *b) {
    bool same = true;
    for (int row = 0; row < 3; row++) {
        char name[64];
        snprintf(name, sizeof name, "checkpoint/375/agent-%d.ckpt", row);
        same = same_file(a, b, name) && same;
    }
    return same;
}

static void check_ranks(const char *options) {
    char command[1024];
    CHECK(shell("%s" PROGRAM SITES "%s --out alone 2>&1", CT_PROGRAM, options) == 0);
    for (int n = 2; n <= 3; n++) {
        snprintf(command, sizeof command, "mpirun -n %d %s" PROGRAM, n, CT_PROGRAM);
        CHECK(shell("%s" SITES "%s --out spread 2>&1", command, options) == 0);
        CHECK(same_results("alone", "spread"));
        CHECK(same_checkpoint("alone", "spread"));
        remove_tree("spread");
    }
    remove_tree("alone");
}

static void any_number_of_ranks_gives_the_same_bits(void) {
    NEEDS_MPI();
    check_ranks("--dataset auto --algorithm ccl");
    check_ranks("--dataset folder --memory 1 --workers 1 --model lenet5 --norm batchnorm "
                "--image-size 20 --test-samples 33");
}

static void seeds_share_the_data(void) {
    NEEDS_MPI();
#define SEEDS SITES "--dataset folder --seeds 1,2 "
    CHECK(shell("%s" PROGRAM SEEDS "--out alone 2>&1%s", CT_PROGRAM, "") == 0);
    CHECK(shell("%s" PROGRAM SITES "--dataset folder --seed 2 --out one 2>&1%s", CT_PROGRAM, "") ==
          0);
    CHECK(same_results("alone/seed-2", "one"));
    CHECK(shell("mpirun -n 4 %s" PROGRAM SEEDS "--out spread 2>&1%s", CT_PROGRAM, "") == 0);
    CHECK(same_results("alone/seed-1", "spread/seed-1"));
    CHECK(same_results("alone/seed-2", "spread/seed-2"));
    remove_tree("spread");
    CHECK(shell("mpirun -n 3 %s" PROGRAM SEEDS "--out spread 2>&1%s", CT_PROGRAM, "") == 0);
    CHECK(same_results("alone/seed-2", "spread/seed-2"));
    remove_tree("alone");
    remove_tree("one");
    remove_tree("spread");
}

/* A training that is killed once its first checkpoint is there. */
static void kill_training(const char *out) {
    pid_t child = fork();
    if (child == 0) {
        char words[512];
        snprintf(words, sizeof words, "%sepochs=3 checkpoint-every=1 out=%s", FOLDERS, out);
        _exit(train(words) == CT_OK ? 0 : 1);
    }
    char path[128];
    int status = 0;
    snprintf(path, sizeof path, "%s/checkpoint/125/manifest.json", out);
    while (!ct_file_exists(path) && waitpid(child, &status, WNOHANG) == 0) sleep_ms(1);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
}

static void a_run_that_was_killed_goes_on_with_other_ranks(void) {
    NEEDS_MPI();
#define KILLED SITES "--dataset folder --checkpoint-every 1 "
    CHECK(shell("%s" PROGRAM KILLED "--out whole 2>&1%s", CT_PROGRAM, "") == 0);
    CHECK(shell("mpirun -n 2 %s" PROGRAM KILLED "--iterations 130 --out cut 2>&1%s", CT_PROGRAM,
                "") == 0);
    CHECK(shell("mpirun -n 3 %s train --quiet --threads 1 --resume cut --iterations 0 2>&1%s",
                CT_PROGRAM, "") == 0);
    CHECK(same_results("whole", "cut"));
    CHECK(same_checkpoint("whole", "cut"));
    remove_tree("cut");
    kill_training("cut");
    CHECK(shell("mpirun -n 2 %s train --quiet --threads 1 --resume cut 2>&1%s", CT_PROGRAM, "") ==
          0);
    CHECK(same_results("whole", "cut"));
    CHECK(same_checkpoint("whole", "cut"));
    remove_tree("cut");
    /* one picture more at one site: another run */
    CHECK(shell("%s" PROGRAM KILLED "--iterations 130 --out cut 2>&1%s", CT_PROGRAM, "") == 0);
    put_animal(1, "train", 1, 4000);
    CHECK(shell("%s train --quiet --resume cut --iterations 0 2>&1%s", CT_PROGRAM, "") == 2);
    remove("site-south/train/bee/4000.png");
    CHECK(shell("%s train --quiet --resume cut --iterations 0 2>&1%s", CT_PROGRAM, "") == 0);
    CHECK(same_results("whole", "cut"));
    remove_tree("whole");
    remove_tree("cut");
}

/* The options of a saved run without the member of this name, against those of a config. */
static void check_without(const char *words, const char *member, const char *expected) {
    ct_config config;
    char name[64];
    CT_SCOPED(ct_text) saved = {0}, ours = {0}, theirs = {0};
    CT_SCOPED_HANDLE(ct_json) options = NULL;
    REQUIRE_OK(configure(words, &config));
    ct_text_add(&saved, "{");
    ct_config_print_json(&config, &saved);
    ct_text_add(&saved, "}");
    char *at = strstr(saved.chars, member);
    REQUIRE(at != NULL);
    memcpy(at + 1, "x-", 2); /* a name that nobody knows */
    REQUIRE_OK(ct_json_parse(saved.chars, saved.n, "options", &options));
    CHECK_OK(ct_config_find_difference(&config, options, ct_difference_may_resume, name,
                                       sizeof name, &ours, &theirs));
    CHECK(strcmp(name, expected) == 0);
}

static void checkpoints_of_earlier_versions_lack_the_option(void) {
    check_without("agents=3", "\"agent-names\"", "");
    check_without(OWN NAMES, "\"agent-names\"", "agent-names");
}

/* ---- what is found out ---- */

static void the_record_has_names_and_counts_but_no_split(void) {
    CHECK_OK(train(FOLDERS "out=run"));
    CHECK(!ct_file_exists("run/partition.csv"));
    ct_blob setting = content("run", "setting.json"), found = content("run", "evaluation.json");
    CHECK(strstr((char *)setting.bytes, "\"agent_names\": [\"north\",\"south\",\"east\"]") != NULL);
    CHECK(strstr((char *)setting.bytes, "[0,0,0,2000,0]") != NULL);
    CHECK(strstr((char *)found.bytes, "\"test_samples\": 125") != NULL);
    ct_blob_free(&setting);
    ct_blob_free(&found);
    CHECK(shell("%s show run 2>&1 && %s report run --out page.html 2>&1", CT_PROGRAM, CT_PROGRAM) ==
          0);
    CHECK(shell("grep -c 'agent 1 (south)' page.html%s%s", "", "") == 0);
    CHECK(shell("%s eval run --data-dir site-south 2>&1%s", CT_PROGRAM, "") == 0);
    CHECK(strstr(said, "45 test samples") != NULL);
    CHECK(shell("%s eval run 2>&1%s", CT_PROGRAM, "") == 2);
    CHECK(strstr(said, "name one of them") != NULL);
    remove_tree("run");
    remove("page.html");
}

/* The consensus is scored on everyone's samples, and its mean is exact. */
static void the_consensus_is_scored_on_all_test_samples(void) {
    ct_run run;
    ct_evaluation e = {0};
    REQUIRE_OK(build(FOLDERS "augment=off", &run));
    for (long it = 0; it < 40; it++) CHECK_OK(ct_run_iterate(&run, it));
    CHECK_OK(ct_run_score_all(&run, true, &e));
    uint32_t n = 0, n_right = 0;
    for (int k = 0; k < 25; k++) {
        n += run.confusion[k];
        if (k % 6 == 0) n_right += run.confusion[k];
    }
    CHECK(n == 125);
    CHECK(e.consensus_accuracy == (double)n_right / 125);
    double mean = (run.local_accuracy[0] + run.local_accuracy[1] + run.local_accuracy[2]) / 3;
    CHECK_NEAR(e.local_accuracy_mean, mean, 1e-12);
    for (size_t k = 0; k < run.graph.n_weights; k += 7) {
        float x[3], consensus;
        for (int i = 0; i < 3; i++) CHECK_OK(ct_bank_read(&run.agents.x, i, k, 1, &x[i]));
        CHECK_OK(ct_bank_read(&run.consensus, 0, k, 1, &consensus));
        /* rounded once: 29 bits more are all that two roundings would take to differ */
        CHECK(consensus == (float)(((double)x[0] + (double)x[1] + (double)x[2]) / 3));
    }
    ct_run_clear(&run);
}

static void an_agent_without_test_samples_is_untested(void) {
    ct_run run;
    ct_evaluation e = {0};
    CHECK(rename("site-south/val", "aside") == 0);
    REQUIRE_OK(build(FOLDERS "augment=off", &run));
    CHECK(run.n_tested == 80);
    CHECK_OK(ct_run_iterate(&run, 0));
    CHECK_OK(ct_run_score_all(&run, true, &e));
    CHECK(isnan(run.local_accuracy[1]) && isfinite(run.local_accuracy[2]));
    CHECK_NEAR(e.local_accuracy_mean, (run.local_accuracy[0] + run.local_accuracy[2]) / 2, 1e-12);
    CHECK(isfinite(e.consensus_accuracy));
    ct_run_clear(&run);
    REQUIRE_OK(build(FOLDERS "test-fraction=0.1", &run)); /* held out where there is none */
    CHECK(run.n_tested == 80 + 44);
    ct_run_clear(&run);
    CHECK(rename("aside", "site-south/val") == 0);
}

/* ---- other formats ---- */

/* Imported on their own, they have figures of their own, and still agree. */
static void packs_train_like_their_folders(void) {
    for (int s = 0; s < 3; s++) {
        char both[64];
        snprintf(both, sizeof both, "site-%s packed-%s", sites[s], sites[s]);
        CHECK(shell("%s data import --quiet --partition own --image-size 8 %s 2>&1", CT_PROGRAM,
                    both) == 0);
    }
    check_pictures(OWN NAMES "dataset=pack data-dir=packed-%a augment=off");
    CHECK_OK(train(FOLDERS "out=folders"));
    CHECK_OK(train(OWN NAMES "dataset=pack data-dir=packed-%a out=packs"));
    CHECK(same_file("folders", "packs", "metrics.jsonl"));
    remove_tree("folders");
    remove_tree("packs");
}

static void put_bytes(const char *dir, const char *name, const char *head, size_t n_head,
                      size_t n_body, int modulus) {
    CHECK_OK(ct_dir_create(dir));
    FILE *f = fopen(ct_path_in(dir, name).text, "wb");
    REQUIRE(f != NULL);
    fwrite(head, 1, n_head, f);
    for (size_t k = 0; k < n_body; k++) fputc((int)(k % (size_t)modulus), f);
    fclose(f);
}

static void put_idx(const char *dir, const char *images, const char *labels, unsigned n, int side,
                    int n_classes) {
    const char head[] = {0, 0, 8,          3, 0, 0, (char)(n >> 8), (char)n, 0,
                         0, 0, (char)side, 0, 0, 0, (char)side};
    const char short_head[] = {0, 0, 8, 1, 0, 0, (char)(n >> 8), (char)n};
    put_bytes(dir, images, head, 16, (size_t)n * (size_t)(side * side), 251);
    put_bytes(dir, labels, short_head, 8, n, n_classes);
}

static void idx_files_of_unequal_sizes_train_together(void) {
    static const unsigned sizes[] = {40, 100, 300};
    for (int a = 0; a < 3; a++) {
        char dir[32];
        snprintf(dir, sizeof dir, "idx-%d", a);
        put_idx(dir, "train-images-idx3-ubyte", "train-labels-idx1-ubyte", sizes[a], 6, 3 + a);
        put_idx(dir, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", 10, 6, 3);
    }
    ct_run run;
    REQUIRE_OK(build(OWN "dataset=idx data-dir=idx-%a", &run));
    CHECK(run.dataset.n_classes == 5); /* the largest number */
    CHECK(run.epoch_iterations == 19 && run.dataset.train.n == 440 && run.n_tested == 30);
    CHECK(run.dataset.train.labels[140 + 4] == 4 && run.dataset.train_numbers[140 + 4] == 4);
    CHECK(run.dataset.mean[0] == 0.5f);
    ct_run_clear(&run);
    put_idx("idx-1", "train-images-idx3-ubyte", "train-labels-idx1-ubyte", 100, 7, 3);
    put_idx("idx-1", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", 10, 7, 3);
    CHECK_FAILS(build(OWN "dataset=idx data-dir=idx-%a", &run), CT_INVAL,
                "agent 1 has pictures of 1x7x7, agent 0 pictures of 1x6x6: ");
}

static void cifar_files_of_unequal_sizes_train_together(void) {
    static const size_t n_records[] = {4, 9, 30};
    for (int a = 0; a < 3; a++) {
        char dir[32], name[32];
        snprintf(dir, sizeof dir, "cifar-%d", a);
        for (int k = 1; k <= 5; k++) {
            snprintf(name, sizeof name, "data_batch_%d.bin", k);
            put_bytes(dir, name, "", 0, n_records[a] * 3073, 10);
        }
        put_bytes(dir, "test_batch.bin", "", 0, 3073 * (size_t)(a + 1), 10);
        FILE *f = fopen(ct_path_in(dir, "batches.meta.txt").text, "w");
        REQUIRE(f != NULL);
        /* agent 1 lists its names the other way round */
        for (int c = 0; c < 10; c++) fprintf(f, "class-%d\n", a == 1 ? 9 - c : c);
        fclose(f);
    }
    ct_run run;
    REQUIRE_OK(build(OWN "dataset=cifar10 data-dir=cifar-%a", &run));
    CHECK(run.dataset.n_classes == 10 && run.dataset.train.n == 5 * 43 && run.n_tested == 6);
    /* record i of a file begins with byte 3073 i of a cycle of ten */
    CHECK(run.dataset.train.labels[1] == 3 && run.dataset.train.labels[20 + 1] == 9 - 3);
    CHECK(run.dataset.crop_padding == 4 && run.dataset.flip);
    ct_run_clear(&run);
}

static void put_npy(const char *dir, const char *name, const char *shape, size_t n, int modulus) {
    char head[128];
    int length = snprintf(head + 10, sizeof head - 10,
                          "{'descr': '|u1', 'fortran_order': False, 'shape': (%s), }\n", shape);
    memcpy(head, "\x93NUMPY\1\0", 8);
    head[8] = (char)length;
    head[9] = 0;
    put_bytes(dir, name, head, 10 + (size_t)length, n, modulus);
}

static void npy_files_are_normalised_by_everyones_pixels(void) {
    put_npy("npy-0", "images.npy", "40, 5, 5", 1000, 11);
    put_npy("npy-0", "labels.npy", "40,", 40, 2);
    put_npy("npy-1", "images.npy", "90, 5, 5", 2250, 241);
    put_npy("npy-1", "labels.npy", "90,", 90, 4);
    put_npy("npy-2", "images.npy", "20, 5, 5", 500, 3);
    put_npy("npy-2", "labels.npy", "20,", 20, 2);
    ct_run run;
    REQUIRE_OK(build(OWN "dataset=npy data-dir=npy-%a test-fraction=0.2", &run));
    CHECK(run.dataset.n_classes == 4);
    const ct_images *train_part = &run.dataset.train;
    double sum = 0, n = (double)train_part->n * 25;
    for (size_t k = 0; k < train_part->n * 25; k++) sum += train_part->pixels[k] / 255.0;
    CHECK_NEAR(run.dataset.mean[0], sum / n, 1e-7);
    CHECK(run.n_tested == 8 + 18 + 4);
    ct_run_clear(&run);
}

/* ---- refusals ---- */

static void what_makes_no_sense_is_refused(void) {
    ct_run run;
    CHECK_FAILS(build(FOLDERS "data-dir=site", &run), CT_INVAL, "write %a");
    CHECK_FAILS(build(OWN "partition=iid dataset=folder", &run), CT_INVAL,
                "%a stands for an agent with --partition own alone");
    CHECK_FAILS(build(FOLDERS "partition-file=x.csv", &run), CT_INVAL, "leave one of them out");
    CHECK_FAILS(build(OWN "dataset=folder agent-names=north,south", &run), CT_INVAL,
                "2 names for 3 agents");
    CHECK_FAILS(build(OWN "dataset=folder agent-names=north,south,north", &run), CT_INVAL,
                "north is there twice");
    CHECK_FAILS(build(OWN "dataset=folder agent-names=north,south,a/b", &run), CT_INVAL,
                "'a/b' is no name of an agent");
    CHECK_FAILS(build(OWN "dataset=folder agent-names=north,south,west", &run), CT_IO,
                "agent west: site-west: no such directory");
    CHECK_FAILS(build(FOLDERS "batch-size=101", &run), CT_INVAL,
                "--batch-size 101 is more than the 100 samples of the smallest agent");
    static const char *const commands[] = {
        "train --partition own --agents 3 --alpha 1 --dataset folder --data-dir site-%a --out x",
        "train --agent-names a,b,c --agents 3 --dataset shapes --out x",
        "partition --partition own --dataset folder --data-dir site-%a",
        "partition --partition own --dataset folder --data-dir site-south",
        "data split --ranks 2 --partition own --dataset folder --data-dir site-%a --out x"};
    static const char *const words[] = {"--alpha does nothing without --partition dirichlet",
                                        "--agent-names does nothing without --partition own",
                                        "name one of them", "--partition own splits nothing",
                                        "name one of them"};
    for (int k = 0; k < 5; k++) {
        CHECK(shell("%s %s 2>&1", CT_PROGRAM, commands[k]) == 2);
        CHECK(strstr(said, words[k]) != NULL);
    }
    CHECK(!ct_dir_exists("x"));
}

/* Ranks that should have the same data and have not: within seconds, with the way out. */
static void refuse_ranks(const char *options, const char *words) {
    CHECK(shell("timeout 30 mpirun -n 2 %s train --quiet --agents 2 --model mlp:4 --batch-size 4 "
                "--epochs 1 --image-size 8 --dataset folder --timeout 600 --out x %s 2>&1",
                CT_PROGRAM, options) == 2);
    CHECK(strstr(said, words) != NULL);
    CHECK(!ct_dir_exists("x"));
}

static void make_pair(const char *name, int n, int first, int n_kinds, int shift) {
    for (int i = 0; i < n; i++) {
        char path[128];
        uint8_t pixels[SIDE * SIDE * 3];
        memset(pixels, i + shift, sizeof pixels);
        for (int part = 0; part < 2; part++) {
            snprintf(path, sizeof path, "%s/%s/%s", name, part == 0 ? "train" : "val",
                     animals[first + i % n_kinds]);
            CHECK_OK(ct_dir_create(path));
            snprintf(path + strlen(path), sizeof path - strlen(path), "/%d.png", i);
            CHECK_OK(ct_png_write(path, SIDE, SIDE, pixels));
        }
    }
}

static void ranks_with_other_data_are_told_of_own(void) {
    NEEDS_MPI();
    static const char way_out[] = "if every agent has a data set of its own, take --partition own";
    make_pair("size-0", 20, 0, 2, 0);
    make_pair("size-1", 30, 0, 2, 0);
    make_pair("same-0", 20, 0, 2, 0);
    make_pair("same-1", 20, 0, 2, 1);
    make_pair("kind-0", 20, 0, 2, 0);
    make_pair("kind-1", 20, 1, 2, 0);
    refuse_ranks("--data-dir size-%r", way_out);
    refuse_ranks("--data-dir same-%r", way_out);
    refuse_ranks("--data-dir kind-%r", way_out);
    refuse_ranks("--data-dir same-%r --memory 1 --seeds 1,2", way_out);
    /* which is right */
    CHECK(shell("mpirun -n 2 %s train --quiet --agents 2 --model mlp:4 --batch-size 4 --epochs 1 "
                "--image-size 8 --dataset folder --partition own --data-dir kind-%s --out x 2>&1",
                CT_PROGRAM, "%a") == 0);
    remove_tree("x");
}

static void ranks_that_cannot_agree_say_what_about(void) {
    NEEDS_MPI();
    CHECK(shell("%s data import --quiet --image-size 8 size-0 shape-0 2>&1 && %s data import "
                "--quiet --image-size 10 size-1 shape-1 2>&1",
                CT_PROGRAM, CT_PROGRAM) == 0);
    CHECK(shell("timeout 30 mpirun -n 2 %s train --quiet --agents 2 --model mlp:4 --batch-size 4 "
                "--dataset pack --partition own --data-dir shape-%s --timeout 600 --out x 2>&1",
                CT_PROGRAM, "%a") == 2);
    CHECK(strstr(said, "agent 1 has pictures of 3x10x10, agent 0 pictures of 3x8x8: ") != NULL);
    CHECK(!ct_dir_exists("x"));
}

int main(void) {
    prepare_ranks();
    if (!enter_folder()) return 1;
    make_sites();
    TEST(labels_are_right_at_every_agent);
    TEST(it_does_not_matter_which_pictures_are_streamed);
    TEST(any_number_of_ranks_gives_the_same_bits);
    TEST(seeds_share_the_data);
    TEST(a_run_that_was_killed_goes_on_with_other_ranks);
    TEST(checkpoints_of_earlier_versions_lack_the_option);
    TEST(the_record_has_names_and_counts_but_no_split);
    TEST(the_consensus_is_scored_on_all_test_samples);
    TEST(an_agent_without_test_samples_is_untested);
    TEST(packs_train_like_their_folders);
    TEST(idx_files_of_unequal_sizes_train_together);
    TEST(cifar_files_of_unequal_sizes_train_together);
    TEST(npy_files_are_normalised_by_everyones_pixels);
    TEST(what_makes_no_sense_is_refused);
    TEST(ranks_with_other_data_are_told_of_own);
    TEST(ranks_that_cannot_agree_say_what_about);
    remove_tree(folder);
    return test_report();
}
