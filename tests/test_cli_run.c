/* What a training run leaves behind, and that the same options leave the same. */
#include "program.h"

#include "util/safetensors.h"

/* mlp:8 on 6x6 pixels and 4 classes */
enum { N_PARAMETERS = 8 * 36 + 8 + 4 * 8 + 4, BYTES_CE = 2 * 4 * N_PARAMETERS };
enum { BYTES_CCL = BYTES_CE + 2 * 4 * 4 * (8 + 1) };

static const char *const epoch_keys[] = {"epoch",
                                         "iteration",
                                         "lr",
                                         "ce",
                                         "mv",
                                         "dv",
                                         "consensus_accuracy",
                                         "consensus_loss",
                                         "local_accuracy_mean",
                                         "local_accuracy_min",
                                         "local_accuracy_max",
                                         "consensus_distance",
                                         "bytes_sent_per_agent",
                                         "seconds"};
enum { N_EPOCH_KEYS = sizeof epoch_keys / sizeof *epoch_keys };

static void check_numbers(const ct_json *json) {
    for (int k = 0; k < N_EPOCH_KEYS; k++) {
        if (!isfinite(number_of(json, epoch_keys[k]))) printf("    %s\n", epoch_keys[k]);
        CHECK(isfinite(number_of(json, epoch_keys[k])));
    }
    double mean = number_of(json, "local_accuracy_mean");
    CHECK(number_of(json, "local_accuracy_min") <= mean + 1e-12);
    CHECK(number_of(json, "local_accuracy_max") >= mean - 1e-12);
    CHECK(number_of(json, "local_accuracy_min") >= 0);
    CHECK(number_of(json, "local_accuracy_max") <= 1);
    CHECK(number_of(json, "consensus_distance") >= 0);
}

static void a_run_directory_holds_all_its_files(void) {
    static const char *const files[] = {"config.txt",           "partition.csv",   "setting.json",
                                        "metrics.jsonl",        "evaluation.json", "summary.json",
                                        "consensus.safetensors"};
    succeeds(TINY);
    CHECK(n_files("run") == 8);
    for (int k = 0; k < 7; k++) {
        char path[64];
        snprintf(path, sizeof path, "run/%s", files[k]);
        CHECK(ct_file_exists(path));
    }
    CHECK(said.out[0] == '\0' && said.err[0] == '\0'); /* quiet */
    remove_dir("run");
    succeeds(TINY "--save-agents");
    CHECK(n_files("run") == 9 && ct_file_exists("run/agents.safetensors"));
    remove_dir("run");
}

static void metrics_have_one_object_for_each_epoch(void) {
    succeeds(TINY "--algorithm ccl --epochs 3 --lr-milestones 0.5 --lr-decay 0.25 --eval-agents 1");
    for (int e = 0; e < 3; e++) {
        ct_json *json = read_json("run/metrics.jsonl", e);
        REQUIRE(json != NULL && json->kind == CT_JSON_OBJECT);
        check_numbers(json);
        CHECK_NEAR(number_of(json, "epoch"), e + 1, 0);
        CHECK_NEAR(number_of(json, "iteration"), 4 * (e + 1), 0); /* 30 samples in eights */
        CHECK_NEAR(number_of(json, "lr"), e < 2 ? 0.05 : 0.0125, 1e-12);
        CHECK_NEAR(number_of(json, "bytes_sent_per_agent"), 4.0 * (e + 1) * BYTES_CCL, 0);
        CHECK(number_of(json, "mv") > 0 || e == 0);
        CHECK(number_of(json, "dv") > 0);
        ct_json_free(&json);
    }
    CHECK(read_json("run/metrics.jsonl", 3) == NULL);
    remove_dir("run");
}

static void the_summary_tells_results_costs_and_options(void) {
    static const char *const options[] = {
#define OWN(...)
#define OPTION(group, kind, field, name, ...) name,
#include "schema/option_list.h"
#undef OPTION
#undef OWN
    };
    succeeds(TINY "--algorithm qg-dsgdm");
    ct_json *json = read_json("run/summary.json", -1);
    REQUIRE(json != NULL);
    check_numbers(json);
    CHECK_NEAR(number_of(json, "parameters"), N_PARAMETERS, 0);
    CHECK_NEAR(number_of(json, "compute_overhead"), 0, 0);
    CHECK_NEAR(number_of(json, "bytes_per_agent_per_iteration"), BYTES_CE, 0);
    CHECK(number_of(json, "peak_memory_bytes") > 1e5 && number_of(json, "seconds") > 0);
    const ct_json *given = ct_json_get(json, "options");
    REQUIRE(given != NULL && given->kind == CT_JSON_OBJECT);
    for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
        bool is_how = strcmp(options[k], "force") == 0 || strcmp(options[k], "quiet") == 0 ||
                      strcmp(options[k], "resume") == 0;
        if ((ct_json_get(given, options[k]) != NULL) == is_how) printf("    %s\n", options[k]);
        CHECK((ct_json_get(given, options[k]) != NULL) != is_how);
    }
    CHECK_NEAR(number_of(given, "agents"), 5, 0);
    CHECK_NEAR(number_of(given, "lr"), 0.05, 0);
    ct_json_free(&json);
    remove_dir("run");
    succeeds(TINY "--algorithm ccl");
    json = read_json("run/summary.json", -1);
    CHECK_NEAR(number_of(json, "bytes_per_agent_per_iteration"), BYTES_CCL, 0);
    /* p / (p + 3) if the features were the whole network; they are all of it but 4 x 8 */
    CHECK_NEAR(number_of(json, "compute_overhead"), 2 * 288.0 / (2 * 288 + 3 * 320), 1e-9);
    ct_json_free(&json);
    remove_dir("run");
}

static void models_are_saved_under_pytorchs_names_and_the_consensus_is_their_mean(void) {
    ct_tensors consensus = {0}, agents = {0};
    static const char *const names[] = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};
    succeeds(TINY "--save-agents --partition dirichlet --alpha 0.1 --lr 0.5");
    REQUIRE_OK(ct_tensors_read("run/consensus.safetensors", &consensus));
    REQUIRE_OK(ct_tensors_read("run/agents.safetensors", &agents));
    CHECK(consensus.n == 4 && agents.n == 20);
    for (int k = 0; k < 4; k++) {
        const ct_tensor *mean = ct_tensors_find(&consensus, names[k]), *own[5];
        REQUIRE(mean != NULL && mean->n_dims == (k % 2 == 0 ? 2 : 1));
        for (int i = 0; i < 5; i++) {
            char name[64];
            snprintf(name, sizeof name, "agent.%d.%s", i, names[k]);
            own[i] = ct_tensors_find(&agents, name);
            REQUIRE(own[i] != NULL && own[i]->count == mean->count);
        }
        for (size_t v = 0; v < mean->count; v++) {
            double sum = 0;
            for (int i = 0; i < 5; i++) sum += (double)own[i]->values[v];
            CHECK_NEAR(mean->values[v], sum / 5, 1e-6);
        }
        CHECK(memcmp(own[0]->values, own[1]->values, mean->count * sizeof(float)) != 0);
    }
    ct_tensors_free(&consensus);
    ct_tensors_free(&agents);
    remove_dir("run");
}

/* A config file without the line that names its directory. */
static char *config_of(const char *path) {
    ct_blob blob = {0};
    CHECK_OK(ct_file_read(path, 1 << 20, &blob));
    if (blob.bytes == NULL) return ct_strdup(path);
    char *text = ct_strdup((const char *)blob.bytes), *line = strstr(text, "\nout = ");
    ct_blob_free(&blob);
    CHECK(line != NULL);
    if (line != NULL) {
        size_t n = strcspn(line + 1, "\n");
        memmove(line, line + 1 + n, strlen(line + 1 + n) + 1);
    }
    return text;
}

static bool same_configs(const char *a, const char *b) {
    char *x = config_of(a), *y = config_of(b);
    bool same = strcmp(x, y) == 0;
    if (!same) printf("%s:\n%s\n%s:\n%s\n", a, x, b, y);
    ct_free(x);
    ct_free(y);
    return same;
}

static void a_saved_config_gives_the_identical_run(void) {
    succeeds("train --quiet" DATA "--model mlp:5 --agents 4 --topology star --partition dirichlet "
             "--alpha 0.3 --algorithm dsgdm --loss ccl --lambda-m 0.3 --ccl-distance cosine --lr "
             "0.123456789012345 --momentum 0.85 --nesterov off --weight-decay 0.00123 --epochs 3 "
             "--batch-size 7 --seed 12345678901 --lr-milestones 0.4 --out first");
    succeeds("train --quiet --config first/config.txt --out second");
    CHECK(same_files("first/consensus.safetensors", "second/consensus.safetensors"));
    CHECK(same_files("first/partition.csv", "second/partition.csv"));
    CHECK(same_configs("first/config.txt", "second/config.txt"));
    succeeds("train --quiet --config first/config.txt --out third --seed 3");
    CHECK(!same_files("first/consensus.safetensors", "third/consensus.safetensors"));
    char *text = config_of("third/config.txt");
    CHECK(strstr(text, "\nseed = 3\n") != NULL && strstr(text, "\nagents = 4\n") != NULL);
    ct_free(text);
    remove_dir("first");
    remove_dir("second");
    remove_dir("third");
}

static void threads_and_repetition_do_not_change_a_bit(void) {
    static const char *const models[] = {"mlp:8", "resnet20"};
    for (int m = 0; m < 2; m++) {
        for (int k = 0; k < 4; k++) {
            char words[512], a[64], b[64];
            snprintf(words, sizeof words,
                     TINY "--device cpu --algorithm ccl --lambda-m 1 --iterations 5 --eval-agents "
                          "1 --save-agents "
                          "--model %s --threads %d --out run%d",
                     models[m], k == 3 ? 2 : k + 1, k);
            succeeds(words);
            snprintf(a, sizeof a, "run%d/consensus.safetensors", k);
            snprintf(b, sizeof b, "run%d/agents.safetensors", k);
            CHECK(same_files("run0/consensus.safetensors", a));
            CHECK(same_files("run0/agents.safetensors", b));
        }
        ct_json *one = read_json("run0/metrics.jsonl", 0),
                *two = read_json("run1/metrics.jsonl", 0);
        for (int k = 0; k < N_EPOCH_KEYS - 1; k++) /* all but the seconds */
            CHECK_NEAR(number_of(one, epoch_keys[k]), number_of(two, epoch_keys[k]), 0);
        ct_json_free(&one);
        ct_json_free(&two);
        for (int k = 0; k < 4; k++) {
            char dir[16];
            snprintf(dir, sizeof dir, "run%d", k);
            remove_dir(dir);
        }
    }
}

static void the_authors_spellings_mean_the_same(void) {
    succeeds("train --quiet --threads 1 --partition dirichlet --epochs 1 --batch-size 8" DATA
             "--agents 6 --topology chain --alpha 0.5 --model mlp:3 --lambda-m 0.2 --lambda-d 0.1 "
             "--weight-decay 0.002 --algorithm qg-dsgdm --out proper");
    succeeds("train --quiet --threads 1 --partition dirichlet --epochs 1 --batch-size 8" DATA
             "--world_size 6 --graph chain --skew 0.5 --arch mlp:3 --lambda_m 0.2 --lambda_d 0.1 "
             "--weight_decay 0.002 --qgm=1 --out authors");
    CHECK(same_configs("proper/config.txt", "authors/config.txt"));
    CHECK(same_files("proper/consensus.safetensors", "authors/consensus.safetensors"));
    remove_dir("authors");
    succeeds("train --quiet --threads 1 --partition=dirichlet --epochs=1 --batch-size=8" DATA
             "--world_size=6 --graph=chain --skew=0.5 --arch=mlp:3 --lambda_m=0.2 --lambda_d=0.1 "
             "--weight_decay=0.002 --qgm 1 --out=authors");
    CHECK(same_configs("proper/config.txt", "authors/config.txt"));
    remove_dir("authors");
    remove_dir("proper");
}

static void eval_finds_what_the_summary_says(void) {
    char accuracy[32], loss[32];
    succeeds(TINY "--epochs 6 --lr 0.3 --algorithm ccl --topology star --agents 5");
    ct_json *json = read_json("run/summary.json", -1);
    snprintf(accuracy, sizeof accuracy, "accuracy %.2f %%",
             100 * number_of(json, "consensus_accuracy"));
    snprintf(loss, sizeof loss, "loss %.6f", number_of(json, "consensus_loss"));
    CHECK(number_of(json, "consensus_accuracy") > 0.3); /* four classes: it has learnt something */
    ct_json_free(&json);
    succeeds("eval run");
    CHECK(strstr(said.out, accuracy) != NULL && strstr(said.out, loss) != NULL);
    CHECK(strstr(said.out, "20 test samples") != NULL);
    succeeds("eval --init run/consensus.safetensors --model mlp:8" DATA);
    CHECK(strstr(said.out, accuracy) != NULL && strstr(said.out, loss) != NULL);
    succeeds("show run");
    CHECK(n_lines(said.out) == 2 && strstr(said.out, "CCL") != NULL);
    remove_dir("run");
}

/* How a model was trained does not matter for its test. */
static void eval_takes_every_kind_of_run(void) {
    static const char *const options[] = {"--fault kill=3@2", "--ccl-adaptive 0.5",
                                          "--lambdas 0.1:0.1,0.01:0", "--seeds 1,2"};
    static const char *const dirs[] = {"run", "run", "run/m0.01-d0", "run/seed-2"};
    for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
        char words[512];
        snprintf(words, sizeof words, TINY "%s", options[k]);
        succeeds(words);
        snprintf(words, sizeof words, "eval %s", dirs[k]);
        succeeds(words);
        CHECK(strstr(said.out, "20 test samples") != NULL);
        remove_tree("run");
    }
}

static void show_leaves_out_what_is_no_run(void) {
    succeeds(TINY "--partition shards --seeds 1,2");
    succeeds("show run/seed-1 fixtures run/seed-2");
    CHECK(n_lines(said.out) == 3 && n_lines(said.err) == 2);
    CHECK(strstr(said.err, "fixtures/summary.json") != NULL);
    CHECK(strstr(said.err, "\nnext: crosstalk report RUN...\n") != NULL);
    CHECK(strstr(said.out, "run/seed-2 ") != NULL && strstr(said.out, " 0.1 ") == NULL);
    REFUSES(1, "show fixtures", "fixtures/summary.json");
    REFUSES(2, "show --all", "--all");
    REFUSES(2, "show", "run directory", "crosstalk train");
    REFUSES(2, "serve", "run directory", "crosstalk train");
    REFUSES(1, "show nowhere", "nowhere: there is no such run or folder");
    CHECK(run("show fixtures fixtures/data") == 1 && said.out[0] == '\0');
    remove_tree("run");
}

static void show_has_one_row_for_several_seeds(void) {
    succeeds(TRAIN DATA "--epochs 2 --lr 0.05 --seeds 1,2");
    succeeds(TRAIN DATA "--epochs 2 --lr 0.05 --seed 1");
    succeeds("show"); /* of all in runs */
    CHECK(n_lines(said.out) == 3 && strstr(said.out, "/seed-1") == NULL);
    CHECK(strstr(said.out, "runs/idx-mlp_8-qg-dsgdm-ring5-iid-2seeds ") != NULL);
    CHECK(strstr(said.out, "runs/idx-mlp_8-qg-dsgdm-ring5-iid-s1 ") != NULL);
    CHECK(strstr(said.out, "±") != NULL && strstr(strstr(said.out, "±") + 1, "±") == NULL);
    CHECK(strcmp(said.err, "next: crosstalk report runs\n") == 0);
    succeeds("show runs --json");
    ct_json *json = NULL;
    REQUIRE_OK(ct_json_parse(said.out, strlen(said.out), "show", &json));
    CHECK(!isnan(number_of(json->child, "consensus_accuracy_std")) ||
          !isnan(number_of(json->child->next, "consensus_accuracy_std")));
    ct_json_free(&json);
    succeeds("report");
    CHECK(ct_file_exists("report.html") && strstr(said.err, "next: open report.html") != NULL);
    unlink("report.html");
    remove_tree("runs");
}

static void batchnorm_models_are_saved_and_tested_with_their_statistics(void) {
    char loss[32];
    succeeds(TINY "--model resnet20 --norm batchnorm --iterations 3 --lr 0.1");
    ct_json *json = read_json("run/summary.json", -1);
    snprintf(loss, sizeof loss, "loss %.6f", number_of(json, "consensus_loss"));
    ct_json_free(&json);
    succeeds("eval run");
    CHECK(strstr(said.out, loss) != NULL);
    remove_dir("run");
}

static void iterations_stop_within_an_epoch_and_still_evaluate(void) {
    succeeds(TINY "--epochs 50 --iterations 6");
    ct_json *json = read_json("run/metrics.jsonl", 1);
    REQUIRE(json != NULL);
    check_numbers(json);
    CHECK_NEAR(number_of(json, "iteration"), 6, 0);
    CHECK_NEAR(number_of(json, "epoch"), 2, 0);
    ct_json_free(&json);
    CHECK(read_json("run/metrics.jsonl", 2) == NULL);
    json = read_json("run/summary.json", -1);
    CHECK_NEAR(number_of(json, "iteration"), 6, 0);
    ct_json_free(&json);
    remove_dir("run");
}

static void epochs_between_evaluations_have_none_and_the_last_always_has(void) {
    succeeds(TINY "--epochs 5 --eval-every 2");
    for (int e = 0; e < 5; e++) {
        ct_json *json = read_json("run/metrics.jsonl", e);
        const ct_json *accuracy = json != NULL ? ct_json_get(json, "consensus_accuracy") : NULL;
        REQUIRE(accuracy != NULL);
        CHECK(accuracy->kind == (e == 0 || e == 2 ? CT_JSON_NULL : CT_JSON_NUMBER));
        CHECK(isfinite(number_of(json, "ce")));
        ct_json_free(&json);
    }
    remove_dir("run");
}

static bool is_known(const char *file, int line, const char *key) {
    ct_json *json = read_json(file, line);
    const ct_json *value = json != NULL ? ct_json_get(json, key) : NULL;
    bool known = value != NULL && value->kind == CT_JSON_NUMBER;
    CHECK(value != NULL);
    ct_json_free(&json);
    return known;
}

/* By default the consensus model every other epoch where there are many, the agents' own at the end. */
static void own_models_are_tested_at_the_end_or_as_often_as_asked(void) {
    static const struct {
        const char *options;
        int n_epochs, every, agents_every; /* 0: at the end; -1: never */
    } plans[] = {{"--epochs 4", 4, 1, 0},
                 {"--epochs 20", 20, 2, 0},
                 {"--epochs 5 --eval-agents 2", 5, 1, 2},
                 {"--epochs 5 --eval-every 3 --eval-agents 2", 5, 3, 2},
                 {"--epochs 3 --eval-agents never", 3, 1, -1}};
    for (size_t k = 0; k < sizeof plans / sizeof *plans; k++) {
        char line[256];
        snprintf(line, sizeof line, TINY "%s", plans[k].options);
        succeeds(line);
        for (int e = 1; e <= plans[k].n_epochs; e++) {
            bool is_end = e == plans[k].n_epochs;
            int every = plans[k].agents_every;
            bool all = every >= 0 && (is_end || (every > 0 && e % every == 0));
            bool any = all || is_end || e % plans[k].every == 0;
            CHECK(is_known("run/metrics.jsonl", e - 1, "consensus_accuracy") == any);
            CHECK(is_known("run/metrics.jsonl", e - 1, "consensus_distance") == any);
            CHECK(is_known("run/metrics.jsonl", e - 1, "local_accuracy_min") == all);
        }
        CHECK(is_known("run/summary.json", -1, "local_accuracy_mean") ==
              (plans[k].agents_every >= 0));
        remove_dir("run");
    }
    REFUSES(2, TINY "--eval-agents 0", "--eval-agents 0", "end or never");
}

/* The order of samples is the only use of the seed left once start and split are given. */
static void without_shuffling_samples_come_in_the_order_of_the_partition(void) {
#define GIVEN TINY "--partition-file fixtures/partition.csv --init fixtures/init.safetensors "
    succeeds(GIVEN "--shuffle off --seed 1 --out a");
    succeeds(GIVEN "--shuffle off --seed 2 --out b");
    succeeds(GIVEN "--shuffle on --seed 1 --out c");
    succeeds(GIVEN "--shuffle on --seed 2 --out d");
    CHECK(same_files("a/consensus.safetensors", "b/consensus.safetensors"));
    CHECK(!same_files("a/consensus.safetensors", "c/consensus.safetensors"));
    CHECK(!same_files("c/consensus.safetensors", "d/consensus.safetensors"));
    /* a run's partition.csv is its visiting order, whatever order the agents came in */
    succeeds(TINY "--init fixtures/init.safetensors --shuffle off --out e --partition-file "
                  "a/partition.csv");
    CHECK(same_files("a/consensus.safetensors", "e/consensus.safetensors"));
    CHECK(same_files("a/partition.csv", "e/partition.csv"));
    for (char dir[] = "a"; dir[0] <= 'e'; dir[0]++) remove_dir(dir);
}

static void agents_with_fewer_samples_begin_again(void) {
    ct_text split = {0};
    ct_text_add(&split, "index,agent\n");
    for (int i = 0; i < 20; i++) ct_text_add(&split, "%d,0\n", i);
    for (int i = 20; i < 28; i++) ct_text_add(&split, "%d,1\n", i);
    for (int i = 28; i < 39; i++) ct_text_add(&split, "%d,2\n", i);
    put("uneven.csv", split.chars);
    ct_text_free(&split);
    succeeds(TINY "--agents 3 --partition-file uneven.csv --shuffle off --save-agents");
    CHECK(same_files("uneven.csv", "run/partition.csv"));
    ct_json *json = read_json("run/metrics.jsonl", 1);
    CHECK_NEAR(number_of(json, "iteration"), 2 * 3, 0); /* 20 samples in eights, twice */
    ct_json_free(&json);
    remove_dir("run");
    unlink("uneven.csv");
}

static void progress_goes_to_stderr_in_plain_lines(void) {
    succeeds("train --model mlp:8 --agents 5 --batch-size 8 --partition iid --threads 1 --epochs 2 "
             "--lr 0.05 --out run" DATA);
    CHECK(said.out[0] == '\0' && strchr(said.err, '\r') == NULL &&
          strchr(said.err, '\033') == NULL);
    CHECK(strstr(said.err, "epoch 1/2") != NULL && strstr(said.err, "epoch 2/2") != NULL);
    remove_dir("run");
}

static void show_takes_folders_of_runs_and_speaks_json(void) {
    succeeds(TINY "--out all/a");
    succeeds(TINY "--out all/b --seeds 1,2");
    succeeds("show all");
    CHECK(strstr(said.out, "all/a ") != NULL && strstr(said.out, "all/b") != NULL);
    succeeds("show all/a all/b --json");
    ct_json *json = NULL;
    CHECK_OK(ct_json_parse(said.out, strlen(said.out), "show", &json));
    REQUIRE(json != NULL && json->n_children == 2);
    ct_json *summary = read_json("all/b/summary.json", -1);
    const ct_json *b = json->child->next;
    CHECK(strcmp(ct_json_get(b, "run")->string, "all/b") == 0);
    CHECK(strcmp(ct_json_get(b, "state")->string, "finished") == 0);
    CHECK(number_of(b, "consensus_accuracy") == number_of(summary, "consensus_accuracy"));
    CHECK(number_of(b, "consensus_accuracy_std") == number_of(summary, "consensus_accuracy_std"));
    ct_json_free(&summary);
    ct_json_free(&json);
    succeeds("eval all/a --json");
    CHECK_OK(ct_json_parse(said.out, strlen(said.out), "eval", &json));
    summary = read_json("all/a/summary.json", -1);
    CHECK_NEAR(number_of(json, "accuracy"), number_of(summary, "consensus_accuracy"), 1e-12);
    CHECK(number_of(json, "n") == 20);
    ct_json_free(&summary);
    ct_json_free(&json);
    remove_tree("all");
}

static void lists_speak_json(void) {
    ct_json *json = NULL;
    succeeds("list --json");
    CHECK_OK(ct_json_parse(said.out, strlen(said.out), "list", &json));
    REQUIRE(json != NULL && json->n_children == 7);
    const ct_json *first = ct_json_get(json, "topologies")->child;
    CHECK(strcmp(ct_json_get(first, "name")->string, "ring") == 0);
    ct_json_free(&json);
    succeeds("list devices --json");
    CHECK_OK(ct_json_parse(said.out, strlen(said.out), "list", &json));
    CHECK(json != NULL && json->n_children == 1 && ct_json_get(json, "devices") != NULL);
    ct_json_free(&json);
}

#define TOLD                                                                                       \
    "train --model mlp:8 --agents 5 --batch-size 8 --partition iid --threads 1 --epochs 2 --lr "   \
    "0.05 --out run" DATA

static void a_training_ends_with_its_result_its_place_and_what_is_next(void) {
    char wanted[128];
    succeeds(TOLD);
    ct_json *json = read_json("run/summary.json", -1);
    snprintf(wanted, sizeof wanted,
             "test accuracy: consensus model %.2f %%, agents' own models %.2f %%\n",
             100 * number_of(json, "consensus_accuracy"),
             100 * number_of(json, "local_accuracy_mean"));
    ct_json_free(&json);
    CHECK(strstr(said.err, wanted) != NULL);
    CHECK(strstr(said.err, "\nrun directory: run\nnext: crosstalk report run\n") != NULL);
    succeeds(TOLD "--resume auto"); /* which it has been told already, and may have forgotten */
    CHECK(strstr(said.err, wanted) != NULL);
    succeeds(TOLD "--force --quiet");
    CHECK(said.out[0] == '\0' && said.err[0] == '\0');
    remove_tree("run");
}

static void several_seeds_end_with_mean_and_deviation(void) {
    char wanted[128];
    succeeds(TOLD "--seeds 1,2,3");
    ct_json *json = read_json("run/summary.json", -1);
    snprintf(wanted, sizeof wanted, "test accuracy: consensus model %.2f ± %.2f %%, ",
             100 * number_of(json, "consensus_accuracy"),
             100 * number_of(json, "consensus_accuracy_std"));
    ct_json_free(&json);
    CHECK(strstr(said.err, wanted) != NULL);
    CHECK(strstr(said.err, "% (mean ± deviation of 3 seeds)\n") != NULL);
    remove_tree("run");
}

static void without_out_the_directory_is_named_after_the_run(void) {
    succeeds(TRAIN DATA "--epochs 1 --seed 7");
    CHECK(ct_dir_exists("runs"));
    DIR *runs = opendir("runs");
    char path[512] = "";
    for (struct dirent *e = NULL; runs != NULL && (e = readdir(runs)) != NULL;)
        if (e->d_name[0] != '.') snprintf(path, sizeof path, "runs/%s", e->d_name);
    if (runs != NULL) closedir(runs);
    CHECK(strstr(path, "idx") != NULL && strstr(path, "ring5") != NULL &&
          strstr(path, "s7") != NULL);
    CHECK(n_files(path) == 8);
    remove_dir(path);
    rmdir("runs");
}

static void a_mixing_that_will_diverge_is_said_at_the_start(void) {
#define TORUS                                                                                      \
    "train --dataset noise --train-samples 96 --test-samples 16 --model mlp:4 --partition iid "    \
    "--threads 1 --algorithm qg-dsgdm --batch-size 2 --topology torus:4x4 --agents 16 --epochs 1 " \
    "--out run --force "
    succeeds(TORUS "--variant wacv24 --gamma 0.9");
    CHECK(strstr(said.err, "will diverge") != NULL && strstr(said.err, "--gamma 0.86") != NULL);
    succeeds(TORUS "--variant wacv24 --gamma 0.86");
    CHECK(strstr(said.err, "diverge") == NULL);
    succeeds(TORUS "--variant paper --gamma 0.9");
    CHECK(strstr(said.err, "diverge") == NULL);
    remove_dir("run");
}

int main(void) {
    if (CT_PROGRAM[0] == '\0' || !enter_folder()) return 1;
    TEST(a_run_directory_holds_all_its_files);
    TEST(metrics_have_one_object_for_each_epoch);
    TEST(the_summary_tells_results_costs_and_options);
    TEST(models_are_saved_under_pytorchs_names_and_the_consensus_is_their_mean);
    TEST(a_saved_config_gives_the_identical_run);
    TEST(threads_and_repetition_do_not_change_a_bit);
    TEST(the_authors_spellings_mean_the_same);
    TEST(eval_finds_what_the_summary_says);
    TEST(eval_takes_every_kind_of_run);
    TEST(show_leaves_out_what_is_no_run);
    TEST(show_has_one_row_for_several_seeds);
    TEST(batchnorm_models_are_saved_and_tested_with_their_statistics);
    TEST(iterations_stop_within_an_epoch_and_still_evaluate);
    TEST(epochs_between_evaluations_have_none_and_the_last_always_has);
    TEST(own_models_are_tested_at_the_end_or_as_often_as_asked);
    TEST(without_shuffling_samples_come_in_the_order_of_the_partition);
    TEST(agents_with_fewer_samples_begin_again);
    TEST(progress_goes_to_stderr_in_plain_lines);
    TEST(show_takes_folders_of_runs_and_speaks_json);
    TEST(lists_speak_json);
    TEST(a_training_ends_with_its_result_its_place_and_what_is_next);
    TEST(several_seeds_end_with_mean_and_deviation);
    TEST(a_mixing_that_will_diverge_is_said_at_the_start);
    TEST(without_out_the_directory_is_named_after_the_run);
    leave_folder();
    return test_report();
}
