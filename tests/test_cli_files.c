/* Files that are missing, cut short, corrupt or in the way: exit 1, one line that names them, and
 * nothing half-written. */
#include "program.h"

#include "util/safetensors.h"

static const char *const idx_files[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                        "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

/* The fixtures' data in a directory of our own, to be damaged. */
static void copy_data(void) {
    CHECK_OK(ct_dir_create("data"));
    for (int k = 0; k < 4; k++) {
        char from[128], to[128];
        ct_blob blob = {0};
        snprintf(from, sizeof from, "fixtures/data/%s", idx_files[k]);
        snprintf(to, sizeof to, "data/%s", idx_files[k]);
        REQUIRE_OK(ct_file_read(from, 1 << 20, &blob));
        CHECK_OK(ct_file_write(to, blob.bytes, blob.n));
        ct_blob_free(&blob);
    }
}

#define OWN TRAIN "--dataset idx --data-dir data --epochs 1 --lr 0.05 --out run "

/* Writes the first n bytes of a file of data/, one of them (if at >= 0) replaced. */
static void damage(const char *name, size_t n, long at, int byte) {
    char path[128];
    ct_blob blob = {0};
    snprintf(path, sizeof path, "fixtures/data/%s", name);
    REQUIRE_OK(ct_file_read(path, 1 << 20, &blob));
    REQUIRE(n <= blob.n || n == SIZE_MAX);
    if (at >= 0) blob.bytes[at] = (uint8_t)byte;
    snprintf(path, sizeof path, "data/%s", name);
    CHECK_OK(ct_file_write(path, blob.bytes, n == SIZE_MAX ? blob.n : n));
    ct_blob_free(&blob);
}

static bool nothing_left(void) {
    bool ok = !ct_dir_exists("run");
    remove_dir("run");
    return ok;
}

static void missing_data_is_noticed(void) {
    REFUSES(1, TRAIN "--dataset idx --data-dir nowhere --out run", "nowhere", "--data-dir");
    CHECK(run(TRAIN "--dataset idx --out run") != 0 && n_lines(said.err) == 1);
    CHECK(strstr(said.err, "--data-dir") != NULL);
    REFUSES(1, TRAIN "--dataset cifar10 --data-dir nowhere --out run", "nowhere");
    REFUSES(1, TRAIN "--dataset fashion-mnist --data-dir nowhere --out run", "nowhere",
            "dataset-fashion-mnist");
    for (int k = 0; k < 4; k++) {
        char path[128];
        copy_data();
        snprintf(path, sizeof path, "data/%s", idx_files[k]);
        unlink(path);
        REFUSES(1, OWN, "data: ", idx_files[k], "--data-dir");
    }
    CHECK(nothing_left());
}

static void data_cut_short_is_noticed(void) {
    static const size_t lengths[] = {0, 1, 3, 4, 7, 8, 12, 15, 16, 27};
    for (int k = 0; k < 4; k++) {
        copy_data();
        for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
            damage(idx_files[k], lengths[n], -1, 0);
            REFUSES(1, OWN, idx_files[k]);
        }
    }
    CHECK(nothing_left());
}

static void corrupt_data_is_noticed(void) {
    for (int k = 0; k < 4; k++) {
        copy_data();
        damage(idx_files[k], SIZE_MAX, 2, 13); /* type: float */
        REFUSES(1, OWN, idx_files[k]);
        damage(idx_files[k], SIZE_MAX, 3, 2); /* two dimensions */
        REFUSES(1, OWN, idx_files[k]);
        damage(idx_files[k], SIZE_MAX, 4, 0x70); /* far too many samples */
        REFUSES(1, OWN, idx_files[k]);
        damage(idx_files[k], SIZE_MAX, 7, 1); /* fewer samples than there are bytes */
        REFUSES(1, OWN, idx_files[k]);
        damage(idx_files[k], SIZE_MAX, 0, 0x1f); /* looks like gzip */
        CHECK(run(OWN) == 1 && n_lines(said.err) == 1);
    }
    copy_data();
    damage(idx_files[0], SIZE_MAX, 11, 0); /* images without height */
    REFUSES(1, OWN, idx_files[0]);
    CHECK(nothing_left());
}

/* Files that are fine one by one but do not belong together. */
static void data_that_does_not_fit_together_is_noticed(void) {
    static const char two_labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 1, 3};
    static const char two_images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0,
                                      1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
    copy_data();
    CHECK_OK(ct_file_write("data/t10k-labels-idx1-ubyte", two_labels, sizeof two_labels));
    REFUSES(1, OWN, "t10k-", "20", "2");
    CHECK_OK(ct_file_write("data/t10k-images-idx3-ubyte", two_images, sizeof two_images));
    REFUSES(1, OWN, "6x6", "1x3");
    CHECK(nothing_left());
}

static void a_label_out_of_range_is_noticed(void) {
    copy_data();
    damage("train-labels-idx1-ubyte", SIZE_MAX, 8 + 77, 10);
    REFUSES(1, TRAIN "--dataset fashion-mnist --data-dir data --out run", "train-labels-idx1-ubyte",
            "10");
    CHECK(nothing_left());
    remove_dir("data");
}

/* ---- start values ---- */

#define FROM TINY "--init start.safetensors "

/* The fixtures' start values with a tensor left out, renamed, reshaped or added. */
static void put_start(const char *drop, const char *shape, const char *add) {
    ct_tensors all = {0};
    ct_tensor items[8];
    size_t n = 0;
    float zero[4] = {0};
    char extra[32] = "";
    REQUIRE_OK(ct_tensors_read("fixtures/init.safetensors", &all));
    REQUIRE(all.n == 4);
    for (size_t k = 0; k < all.n; k++) {
        if (drop != NULL && strcmp(all.items[k].name, drop) == 0) continue;
        items[n] = all.items[k];
        if (shape != NULL && strcmp(all.items[k].name, shape) == 0) {
            size_t rows = items[n].dims[0];
            items[n].dims[0] = items[n].dims[1]; /* transposed: as many values */
            items[n].dims[1] = rows;
        }
        n++;
    }
    if (add != NULL) {
        snprintf(extra, sizeof extra, "%s", add);
        items[n++] =
            (ct_tensor){.name = extra, .n_dims = 1, .dims = {4}, .count = 4, .values = zero};
    }
    CHECK_OK(ct_tensors_write("start.safetensors", items, n));
    ct_tensors_free(&all);
}

static void start_values_must_fit_the_model(void) {
    REFUSES(1, TINY "--init nowhere.safetensors", "nowhere.safetensors");
    put_start("fc1.bias", NULL, NULL);
    REFUSES(1, FROM, "start.safetensors", "fc1.bias");
    put_start(NULL, NULL, "fc3.bias");
    REFUSES(1, FROM, "start.safetensors", "fc3.bias");
    put_start(NULL, "fc1.weight", NULL);
    REFUSES(1, FROM, "start.safetensors", "fc1.weight");
    put_start(NULL, NULL, "agent.0.fc1.bias");
    REFUSES(1, FROM, "start.safetensors");
    REFUSES(1, TINY "--model mlp:9 --init fixtures/init.safetensors", "init.safetensors", "fc1.");
    REFUSES(1, TINY "--agents 4 --init fixtures/init-agents.safetensors", "agent.4.");
    REFUSES(1, TINY "--agents 6 --init fixtures/init-agents.safetensors", "agent.5.");
    CHECK(nothing_left());
    put_start(NULL, NULL, NULL);
    succeeds(FROM);
    remove_dir("run");
}

static void start_values_cut_short_are_noticed(void) {
    ct_blob blob = {0};
    REQUIRE_OK(ct_file_read("fixtures/init.safetensors", 1 << 20, &blob));
    size_t lengths[] = {0, 1, 7, 8, 9, 40, blob.n / 2, blob.n - 4, blob.n - 1};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        CHECK_OK(ct_file_write("start.safetensors", blob.bytes, lengths[k]));
        REFUSES(1, FROM, "start.safetensors");
    }
    blob.bytes[0] = 0xff; /* the header's length */
    CHECK_OK(ct_file_write("start.safetensors", blob.bytes, blob.n));
    REFUSES(1, FROM, "start.safetensors");
    put("start.safetensors", "this is no model at all, only words");
    REFUSES(1, FROM, "start.safetensors");
    ct_blob_free(&blob);
    unlink("start.safetensors");
    CHECK(nothing_left());
}

/* ---- partitions ---- */

static void check_split(const char *text, const char *said_why) {
    put("split.csv", text);
    REFUSES(1, TINY "--agents 2 --batch-size 1 --partition-file split.csv", "split.csv", said_why);
}

static void a_partition_must_name_samples_that_are_there_once_each(void) {
    REFUSES(1, TINY "--partition-file nowhere.csv", "nowhere.csv");
    check_split("index,agent\n1,0\n150,1\n", "150");
    check_split("index,agent\n1,0\n-1,1\n", "-1");
    check_split("index,agent\n1,0\n2,1\n1,1\n", "twice");
    check_split("index,agent\n1,0\n2,2\n", "agent 2");
    check_split("index,agent\n1,0\n2,-1\n", "-1");
    check_split("index,agent\n1,0\n2,0\n", "agent 1");
    check_split("index,agent\n1,0\n2x,1\n", "2x");
    check_split("index,agent\n1,0\n2\n", "line 3");
    check_split("index,agent\n", "agent 0");
    check_split("agent,index\n1,0\n2,1\n", "index,agent");
    check_split("", "empty");
    CHECK(nothing_left());
    put("split.csv", "index,agent\n1,0\n149,1\n");
    succeeds(TINY "--agents 2 --batch-size 1 --partition-file split.csv");
    remove_dir("run");
    unlink("split.csv");
}

/* ---- configurations ---- */

static void a_bad_config_file_is_refused(void) {
    REFUSES(1, "train --config nowhere.txt --out run", "nowhere.txt");
    put("bad.txt", "agents = 5\nagnets = 6\n");
    CHECK(run("train --config bad.txt --out run") != 0);
    CHECK(n_lines(said.err) == 1 && strstr(said.err, "agnets") != NULL);
    put("bad.txt", "agents = 8x\n");
    CHECK(run("train --config bad.txt --out run") != 0);
    CHECK(n_lines(said.err) == 1 && strstr(said.err, "8x") != NULL);
    put("bad.txt", "agents 5\n");
    REFUSES(1, "train --config bad.txt --out run", "bad.txt:1", "agents 5");
    put("bad.txt", "agents = 5\n\nlr = -1\n");
    REFUSES(2, "train --config bad.txt --out run", "bad.txt:3", "--lr");
    put("bad.txt", "seed = 4\nagents = 5\nseed = 5\n");
    REFUSES(1, "train --config bad.txt --out run", "bad.txt:3: seed is there twice", "line 1");
    CHECK_OK(ct_file_write("bad.txt", "agents = 5\n\0lr = 1\n", 19));
    REFUSES(1, "train --config bad.txt --out run", "bad.txt: a zero byte");
    REFUSES(2, "train --config bad.txt --config bad.txt", "--config is there twice");
    put("bad.txt", "dataset = shapes\nseed = 1\nseeds = 2,3\n"); /* good, but several */
    REFUSES(2, "partition --config bad.txt", "--seeds");
    succeeds("partition --config bad.txt --seed 2");
    CHECK(nothing_left());
    unlink("bad.txt");
}

static void runs_that_are_not_there_cannot_be_tested_or_shown(void) {
    REFUSES(1, "eval nowhere", "nowhere");
    CHECK(run("show nowhere") == 1 && n_lines(said.err) == 1);
    REFUSES(2, "eval", "--init");
    succeeds(TINY "--epochs 1");
    unlink("run/consensus.safetensors");
    REFUSES(1, "eval run", "consensus.safetensors");
    put("run/summary.json", "{\"epoch\": ");
    CHECK(run("show run") == 1 && strstr(said.err, "summary.json") != NULL);
    remove_dir("run");
}

/* ---- output ---- */

static void output_below_a_file_is_refused(void) {
    put("file", "in the way");
    REFUSES(1, TINY "--out file/run", "file");
    REFUSES(1, TINY "--out file", "file");
    ct_blob blob = {0};
    CHECK_OK(ct_file_read("file", 100, &blob));
    CHECK(blob.n == strlen("in the way"));
    ct_blob_free(&blob);
    unlink("file");
}

static void an_earlier_run_stays_unless_replacing_it_is_forced(void) {
    succeeds(TINY "--save-agents --out first");
    succeeds(TINY "--save-agents --out copy");
    REFUSES(1, TINY "--seed 2 --out first", "first/", "--force");
    CHECK(same_files("first/consensus.safetensors", "copy/consensus.safetensors"));
    CHECK(same_files("first/agents.safetensors", "copy/agents.safetensors"));
    CHECK(same_files("first/partition.csv", "copy/partition.csv"));
    CHECK(n_files("first") == 9);
    succeeds(TINY "--seed 2 --out first --force");
    CHECK(!same_files("first/consensus.safetensors", "copy/consensus.safetensors"));
    CHECK(n_files("first") == 8); /* no agents of the run before */
    ct_json *json = read_json("first/metrics.jsonl", 2);
    CHECK(json == NULL); /* nor its epochs */
    ct_json_free(&json);
    succeeds(TINY "--out copy --force --save-agents");
    remove_dir("first");
    remove_dir("copy");
}

static void a_run_refused_for_its_options_does_not_touch_an_earlier_one(void) {
    succeeds(TINY "--out first");
    succeeds(TINY "--out copy");
    CHECK(run(TINY "--out first --force --algorithm sgd") == 2);
    CHECK(run(TINY "--out first --force --init nowhere.safetensors") == 1);
    CHECK(run(TINY "--out first --force --data-dir nowhere") == 1);
    CHECK(same_files("first/consensus.safetensors", "copy/consensus.safetensors"));
    CHECK(n_files("first") == 8);
    remove_dir("first");
    remove_dir("copy");
}

static void a_full_disk_leaves_no_half_written_file(void) {
    file_limit = 300; /* bytes: config.txt has more */
    CHECK(run(TINY) == 1 && n_lines(said.err) == 1 && strstr(said.err, "config.txt") != NULL);
    CHECK(n_files("run") == 0);
    file_limit = 0;
    remove_dir("run");
    output_path = "/dev/full";
    CHECK(run("topology --agents 5") == 1 && n_lines(said.err) == 1);
    CHECK(strstr(said.err, "standard output") != NULL);
    output_path = ".out";
}

static void divergence_stops_the_run_and_keeps_what_was_written(void) {
    REFUSES(1, TINY "--lr 1e6 --epochs 40 --eval-every 40", "agent 0 diverged", "iteration 5",
            "last good", "--lr", "1e+06");
    remove_dir("run");
    REFUSES(1, TINY "--lr 1e6 --epochs 40 --eval-agents 1", "agent", "diverged", "iteration",
            "--lr", "1e+06");
    CHECK(ct_file_exists("run/config.txt") && ct_file_exists("run/partition.csv"));
    CHECK(!ct_file_exists("run/summary.json") && !ct_file_exists("run/consensus.safetensors"));
    ct_json *json = read_json("run/metrics.jsonl", 0);
    CHECK(number_of(json, "epoch") == 1);
    ct_json_free(&json);
    CHECK(n_files("run") == 6 && ct_file_exists("run/diverged.json"));
    remove_dir("run");
    REFUSES(1, TINY "--lr 1e6 --epochs 40 --device ref --algorithm dsgd", "diverged");
    remove_dir("run");
}

int main(void) {
    if (CT_PROGRAM[0] == '\0' || !enter_folder()) return 1;
    TEST(missing_data_is_noticed);
    TEST(data_cut_short_is_noticed);
    TEST(corrupt_data_is_noticed);
    TEST(data_that_does_not_fit_together_is_noticed);
    TEST(a_label_out_of_range_is_noticed);
    TEST(start_values_must_fit_the_model);
    TEST(start_values_cut_short_are_noticed);
    TEST(a_partition_must_name_samples_that_are_there_once_each);
    TEST(a_bad_config_file_is_refused);
    TEST(runs_that_are_not_there_cannot_be_tested_or_shown);
    TEST(output_below_a_file_is_refused);
    TEST(an_earlier_run_stays_unless_replacing_it_is_forced);
    TEST(a_run_refused_for_its_options_does_not_touch_an_earlier_one);
    TEST(a_full_disk_leaves_no_half_written_file);
    TEST(divergence_stops_the_run_and_keeps_what_was_written);
    leave_folder();
    return test_report();
}
