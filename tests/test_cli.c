/* The command line: what it understands, and how it refuses the rest. */
#include "program.h"
#include "ct_config.h"
#include "schema/config.h"
#include "util/version.h"

/* What was refused has written nothing. */
static bool nothing_left(void) {
    bool ok = n_files(".") == 3; /* fixtures, .out and .err */
    remove_dir("run");
    return ok;
}

static void every_command_explains_itself(void) {
    static const char *const commands[] = {
#define COMMAND(id, name, group, text) name,
#include "cli/command_list.h"
#undef COMMAND
    };
    succeeds("help");
    for (size_t k = 0; k < sizeof commands / sizeof *commands; k++)
        CHECK(strstr(said.out, commands[k]) != NULL);
    for (size_t k = 0; k < sizeof commands / sizeof *commands; k++) {
        char words[64];
        snprintf(words, sizeof words, "help %s", commands[k]);
        succeeds(words);
        CHECK(strlen(said.out) > 20 && said.err[0] == '\0');
        snprintf(words, sizeof words, "%s --help", commands[k]);
        succeeds(words);
        CHECK(strlen(said.out) > 20);
    }
    succeeds("--help");
}

static void the_version_names_the_parts_that_were_built(void) {
    static const char *const words[] = {"version", "--version", "-V"};
    for (int k = 0; k < 3; k++) {
        succeeds(words[k]);
        CHECK(strncmp(said.out, "crosstalk " CT_VERSION, strlen("crosstalk " CT_VERSION)) == 0);
        const char *with = strstr(said.out, "\nwith "), *without = strstr(said.out, "\nwithout ");
        const char *cuda = strstr(said.out, "CUDA"), *jpeg = strstr(said.out, "JPEG");
        REQUIRE(cuda != NULL && jpeg != NULL);
        CHECK((without != NULL && cuda > without) == !CT_WITH_CUDA);
        CHECK((without != NULL && jpeg > without) == !CT_WITH_JPEG);
        CHECK(with != NULL || (!CT_WITH_CUDA && !CT_WITH_JPEG));
    }
    REFUSES(2, "version 3", "'3'");
}

static void help_tells_the_exit_codes(void) {
    succeeds("help");
    CHECK(strstr(said.out, "Exit codes\n") != NULL && strstr(said.out, "130 is") != NULL);
}

static void the_help_of_train_names_every_option(void) {
    static const char *const options[] = {
#define OWN(...)
#define OPTION(group, kind, field, name, ...) "--" name " ",
#include "schema/option_list.h"
#undef OPTION
#undef OWN
    };
    succeeds("help train");
    for (size_t k = 0; k < sizeof options / sizeof *options; k++)
        CHECK(strstr(said.out, options[k]) != NULL);
}

static void what_is_no_command_is_refused(void) {
    CHECK(run("") == 2);
    REFUSES(2, "trian", "trian", "did you mean train?", "crosstalk help");
    REFUSES(2, "help trian", "trian", "did you mean train?");
    REFUSES(2, "frobnicate", "no command 'frobnicate'; crosstalk help lists them");
    REFUSES(2, "list flavours", "flavours", "models", "topologies");
}

static void an_unknown_option_is_refused_and_the_nearest_named(void) {
    REFUSES(2, "train --agnets 5", "--agnets", "--agents");
    REFUSES(2, "train --frobnicate-everything 5", "--frobnicate-everything", "help train");
    REFUSES(2, "train --agnets=5", "--agnets", "--agents");
    REFUSES(2, "train -a 5", "-a");
    REFUSES(2, "train ring", "ring");
    REFUSES(2, "topology --agnets 5", "--agnets");
    REFUSES(2, "partition --agnets 5", "--agnets");
    CHECK(nothing_left());
}

static void an_unknown_name_is_refused_and_the_known_ones_listed(void) {
    REFUSES(2, TINY "--dataset mnits", "mnits", "did you mean mnist?", "fashion-mnist", "shapes");
    REFUSES(2, TINY "--model lenet6", "lenet6", "did you mean lenet5?", "resnet20");
    REFUSES(2, TINY "--topology rign", "rign", "did you mean ring?", "dyck");
    REFUSES(2, TINY "--topology trous:2x3", "did you mean torus?", "dyck");
    REFUSES(2, TINY "--topology zzz", "no --topology 'zzz'; known: ring");
    REFUSES(2, TINY "--lr-schedule cosin", "'cosin'; did you mean cosine?", "poly");
    REFUSES(2, "report --figrues x", "--figrues", "did you mean --figures?");
    REFUSES(2, TINY "--algorithm sgd", "sgd", "qg-dsgdm", "relaysgd", "ccl");
    REFUSES(2, TINY "--variant wacv25", "wacv25", "paper", "atc", "wacv24");
    REFUSES(2, TINY "--algorithm dsgd --loss mse", "mse", "ce", "ccl");
    REFUSES(2, TINY "--algorithm ccl --loss mse", "mse", "ce", "ccl");
    REFUSES(2, TINY "--partition skewed", "skewed", "dirichlet", "iid", "shards");
    REFUSES(2, TINY "--device tpu", "tpu", "cpu", "ref");
    REFUSES(2, TINY "--weights heavy", "heavy", "uniform", "metropolis");
    REFUSES(2, TINY "--norm layernorm", "layernorm", "evonorm", "groupnorm");
    REFUSES(2, TINY "--ccl-distance l3", "l3", "mse", "l1", "cosine");
    REFUSES(2, TINY "--ccl-reduction max", "max", "mean", "sum");
    REFUSES(2, TINY "--relay-fill zero", "zero", "init", "self");
    CHECK(nothing_left());
}

typedef struct numeric {
    const char *name;
    bool is_whole;
    double lowest, highest;
} numeric;

/* Kinds that are not numeric have no name here. */
#define NAME_TEXT(name)   NULL
#define NAME_FLAG(name)   NULL
#define NAME_SWITCH(name) NULL
#define NAME_WHOLE(name)  name
#define NAME_REAL(name)   name
#define IS_TEXT           false
#define IS_FLAG           false
#define IS_SWITCH         false
#define IS_WHOLE          true
#define IS_REAL           false

static const numeric numerics[] = {
#define OWN(...)
#define OPTION(group, kind, field, name, aliases, value, lowest, highest, ...)                     \
    {NAME_##kind(name), IS_##kind, lowest, highest},
#include "schema/option_list.h"
#undef OPTION
#undef OWN
};

static void check_number(const char *name, const char *value) {
    char words[512], option[80];
    snprintf(words, sizeof words, TINY "--%s %s", name, value);
    snprintf(option, sizeof option, "--%s", name);
    REFUSES(2, words, option, value);
}

/* What the program does with each of its words, without starting it. */
static void check_set(const char *name, const char *value) {
    char option[80];
    ct_config config;
    ct_config_init(&config);
    snprintf(option, sizeof option, "--%s", name);
    ct_clear_message();
    bool ok = ct_config_put(&config, name, value) == CT_INVAL;
    ok = ok && strstr(ct_message(), option) != NULL &&
         strstr(ct_message(), value[0] == '\0' ? "''" : value) != NULL;
    if (!ok) printf("    %s %s: %s\n", option, value, ct_message());
    CHECK(ok);
}

static void a_word_that_is_nearly_known_is_named(void) {
    REFUSES(2, "data gte", "data gte", "did you mean get?", "import");
    REFUSES(2, "data get cifar01", "cifar01", "did you mean cifar10?", "imagenette");
    REFUSES(2, "site keygn", "site keygn", "did you mean keygen?", "status");
    REFUSES(2, "reproduce tabel1", "tabel1", "did you mean table1?");
    REFUSES(2, "list compressor", "did you mean compressors?", "compressors, datasets");
    REFUSES(2, "sweep --lr 1,2 --sort-by consensu", "consensu", "did you mean consensus?");
    REFUSES(2, "train -epochs 3", "-epochs", "did you mean --epochs?");
    REFUSES(2, "train -x 3", "'-x' is no option; options begin with --");
    REFUSES(2, "eval -init x", "did you mean --init?");
}

static void lists_spell_options_as_they_are_typed(void) {
    succeeds("list algorithms");
    CHECK(strstr(said.out, "--variant") != NULL && strchr(said.out, '@') == NULL);
    succeeds("list --json");
    CHECK(strstr(said.out, "--variant") != NULL && strchr(said.out, '@') == NULL);
}

static void a_bad_number_is_refused_for_every_numeric_option(void) {
    int n_numeric = 0;
    for (size_t k = 0; k < sizeof numerics / sizeof *numerics; k++) {
        const numeric *o = &numerics[k];
        if (o->name == NULL) continue;
        n_numeric++;
        check_number(o->name, "8x");
        check_set(o->name, "nan");
        check_set(o->name, "-1");
        check_set(o->name, "1e99");
        check_set(o->name, "inf");
        check_set(o->name, "");
        if (o->lowest > 0) check_set(o->name, "0");
        if (o->is_whole) check_set(o->name, "1.5");
        if (o->is_whole) check_set(o->name, "99999999999999999999");
    }
    CHECK(n_numeric >= 15);
    CHECK(nothing_left());
}

static void options_that_must_not_be_zero_refuse_it(void) {
    static const char *const positive[] = {"agents", "alpha",      "gamma",      "lr",
                                           "epochs", "batch-size", "eval-every", "lr-decay"};
    for (size_t k = 0; k < sizeof positive / sizeof *positive; k++) check_number(positive[k], "0");
}

static void other_values_that_do_not_fit_are_refused(void) {
    REFUSES(2, TINY "--shuffle maybe", "--shuffle", "maybe");
    REFUSES(2, TINY "--nesterov 2", "--nesterov", "2");
    REFUSES(2, TINY "--save-agents=perhaps", "--save-agents", "perhaps");
    REFUSES(2, TINY "--qgm=perhaps", "--qgm", "perhaps");
    REFUSES(2, TINY "--lr-milestones 0.5,x", "--lr-milestones", "x");
    REFUSES(2, TINY "--lr-milestones 0.5,1.5", "--lr-milestones", "1.5");
    REFUSES(2, TINY "--lr-milestones nan", "--lr-milestones", "nan");
    REFUSES(2, TINY "--gamma 1.1", "--gamma", "1.1");
    REFUSES(2, TINY "--momentum 1", "--momentum", "1");
    REFUSES(2, TINY "--model mlp:8x", "8x");
    CHECK(nothing_left());
}

static void a_missing_value_is_noticed(void) {
    REFUSES(2, "train --lr", "--lr", "value");
    REFUSES(2, "train --out", "--out", "value");
    REFUSES(2, "train --config", "--config", "value");
    REFUSES(2, "train --lr --epochs 3", "--lr", "--epochs");
    REFUSES(2, TINY "--out --force", "--out", "--force");
    REFUSES(2, "report somewhere --figures --force", "--figures", "--force");
    CHECK(nothing_left());
}

static void options_that_contradict_each_other_are_refused(void) {
    REFUSES(2, TINY "--algorithm ccl --loss ce", "ccl", "qg-dsgdm");
    REFUSES(2, TINY "--algorithm dsgd --loss ce --lambda-m 1", "--lambda-m", "--loss ccl");
    REFUSES(2, TINY "--norm batchnorm --batch-size 1", "batchnorm", "2");
    REFUSES(2, TINY "--topology dyck --agents 31", "dyck", "32");
    REFUSES(2, TINY "--topology petersen", "petersen", "10");
    REFUSES(2, TINY "--topology star --weights uniform", "uniform", "metropolis");
    REFUSES(2, TINY "--model lenet5", "lenet5"); /* the images are 6x6 */
    CHECK(nothing_left());
}

static void a_batch_larger_than_an_agents_data_is_refused(void) {
    REFUSES(2, TINY "--batch-size 31", "31", "30"); /* 150 samples, 5 agents */
    succeeds(TINY "--batch-size 30 --epochs 1 --out full-batch");
    remove_dir("full-batch");
    CHECK(nothing_left());
}

static void list_shows_everything_there_is(void) {
    static const char *const wanted[] = {"qg-dsgdm", "relaysgd",      "ccl", "lenet5", "ring",
                                         "dyck",     "fashion-mnist", "idx", "shapes", "dirichlet",
                                         "iid",      "cpu",           "ref", "mlp"};
    succeeds("list");
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
        CHECK(strstr(said.out, wanted[k]) != NULL);
    succeeds("list topologies");
    CHECK(strstr(said.out, "dyck") != NULL && strstr(said.out, "lenet5") == NULL);
    succeeds("list models");
    CHECK(strstr(said.out, "lenet5") != NULL && strstr(said.out, "dyck") == NULL);
}

static void topology_shows_neighbours_and_spectrum(void) {
    succeeds("topology --topology dyck --agents 32");
    CHECK(strstr(said.out, "lambda_2 0.8090") != NULL);
    CHECK(strstr(said.out, "diameter 5") != NULL && strstr(said.out, "48 edges") != NULL);
    CHECK(n_lines(said.out) >= 33);
    succeeds("topology --topology torus:4x8 --agents 32");
    CHECK(strstr(said.out, "lambda_2 0.8828") != NULL);
    succeeds("topology --graph ring --world_size 5");
    CHECK(strstr(said.out, "0.333333") != NULL && strstr(said.out, "diameter 2") != NULL);
    succeeds("topology --topology ring --agents 1");
    REFUSES(2, "topology --topology dyck --agents 16", "dyck", "32");
    REFUSES(1, "topology --topology file:nowhere.txt --agents 5", "nowhere.txt");
    REFUSES(2, "topology --seeds 2,3", "--seeds", "--seed");
    REFUSES(2, "topology --out x", "--out");
    REFUSES(2, "train --dataset shapes --seeds 9100000000000000001 --out x", "--seeds", "9e15");
    REFUSES(2, "partition --dataset shapes --seeds 2,3", "--seeds", "--seed");
}

static void partition_shows_and_writes_the_split(void) {
    succeeds("partition" DATA "--agents 5 --partition iid --out split.csv");
    CHECK(strstr(said.out, "30 to 30 samples an agent") != NULL);
    CHECK(strstr(said.out, " % of its samples") != NULL);
    CHECK(strstr(said.err, "split: split.csv\nnext: crosstalk train --dataset idx --agents 5 "
                           "--partition-file split.csv\n") != NULL);
    CHECK(n_lines(said.out) >= 7);
    CHECK(run("partition" DATA "--agents 5 --partition iid --out nowhere/split.csv") == 1);
    CHECK(n_lines(said.err) == 1 && strstr(said.err, "nowhere/split.csv") != NULL);
    put("split.csv", "precious");
    CHECK(run("partition" DATA "--agents 5 --out split.csv") == 1);
    CHECK(strstr(said.err, "split.csv") != NULL && strstr(said.err, "--force") != NULL);
    put("copy.csv", "precious");
    CHECK(same_files("split.csv", "copy.csv"));
    succeeds("partition" DATA "--agents 5 --partition iid --out split.csv --force");
    succeeds("partition" DATA "--agents 5 --partition-file split.csv --out copy.csv --force");
    CHECK(same_files("split.csv", "copy.csv"));
    REFUSES(1, "partition" DATA "--agents 6 --partition-file split.csv", "split.csv", "agent 5");
    unlink("split.csv");
    unlink("copy.csv");
    CHECK(nothing_left());
}

static void a_split_follows_the_seed(void) {
    succeeds("partition" DATA "--agents 3 --partition dirichlet --seed 1 --out a.csv");
    succeeds("partition" DATA "--agents 3 --partition dirichlet --seed 1 --out b.csv");
    succeeds("partition" DATA "--agents 3 --partition dirichlet --seed 2 --out c.csv");
    CHECK(same_files("a.csv", "b.csv") && !same_files("a.csv", "c.csv"));
    unlink("a.csv");
    unlink("b.csv");
    unlink("c.csv");
}

int main(void) {
    if (CT_PROGRAM[0] == '\0' || !enter_folder()) return 1;
    run("--version"); /* so that .out and .err are there */
    TEST(every_command_explains_itself);
    TEST(the_version_names_the_parts_that_were_built);
    TEST(help_tells_the_exit_codes);
    TEST(the_help_of_train_names_every_option);
    TEST(what_is_no_command_is_refused);
    TEST(an_unknown_option_is_refused_and_the_nearest_named);
    TEST(an_unknown_name_is_refused_and_the_known_ones_listed);
    TEST(a_word_that_is_nearly_known_is_named);
    TEST(lists_spell_options_as_they_are_typed);
    TEST(a_bad_number_is_refused_for_every_numeric_option);
    TEST(options_that_must_not_be_zero_refuse_it);
    TEST(other_values_that_do_not_fit_are_refused);
    TEST(a_missing_value_is_noticed);
    TEST(options_that_contradict_each_other_are_refused);
    TEST(a_batch_larger_than_an_agents_data_is_refused);
    TEST(list_shows_everything_there_is);
    TEST(topology_shows_neighbours_and_spectrum);
    TEST(partition_shows_and_writes_the_split);
    TEST(a_split_follows_the_seed);
    leave_folder();
    return test_report();
}
