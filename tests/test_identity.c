/* Processes that disagree do not train together, and a run that goes on is the run that was
 * stopped: the program, the options, the graph, the split, the data, the machine's arithmetic. */
#include "ranks.h"

#include "transport/transport_internal.h"
#include "util/version.h"

/* ---- data of our own: 60 pictures to train on, 20 to test ---- */

static void put_idx(const char *dir, const char *name, bool is_images, uint32_t n, uint8_t flip) {
    uint32_t head[] = {is_images ? 0x803 : 0x801, n, 28, 28};
    size_t n_head = is_images ? 16 : 8, n_body = is_images ? (size_t)n * 784 : n;
    uint8_t *bytes = calloc(1, n_head + n_body);
    for (size_t k = 0; k < n_head; k++) bytes[k] = (uint8_t)(head[k / 4] >> (24 - 8 * (k % 4)));
    for (size_t k = 0; k < n_body; k++)
        bytes[n_head + k] = is_images ? (uint8_t)((k * 2654435761u >> 13) ^ flip) : k % 10;
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    CHECK_OK(ct_file_write(path, bytes, n_head + n_body));
    free(bytes);
}

/* flip: 255 turns the training pictures into their negatives. */
static void put_data(const char *dir, uint8_t flip) {
    mkdir(dir, 0777);
    put_idx(dir, "train-images-idx3-ubyte", true, 60, flip);
    put_idx(dir, "train-labels-idx1-ubyte", false, 60, 0);
    put_idx(dir, "t10k-images-idx3-ubyte", true, 20, 0);
    put_idx(dir, "t10k-labels-idx1-ubyte", false, 20, 0);
}

#define OWN                                                                                        \
    "dataset=mnist model=mlp:4 agents=4 topology=ring partition=iid batch-size=5 epochs=3 "        \
    "lr=0.02 threads=1 quiet=on save-agents=on checkpoint-every=1 "

/* ---- what ranks compare ---- */

/* Every option that is not a process's own changes what is compared; those that are do not. */
static void every_option_that_ranks_must_share_is_compared(void) {
    static ct_config plain, changed;
    ct_config_init(&plain);
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        const ct_option *o = &ct_run_options[id];
        CT_SCOPED(ct_text) ours = {0}, theirs = {0};
        changed = plain;
        uint8_t *field = (uint8_t *)&changed + o->offset;
        changed.is_auto[id] = false;
        field[0] ^= 1; /* another number, another letter, on instead of off */
        if (o->kind == CT_KIND_TEXT) snprintf((char *)field, CT_CONFIG_TEXT, "other");
        if (o->kind == CT_KIND_REAL) *(double *)field = 0.123;
        ct_config_print_shared(&plain, &ours);
        ct_config_print_shared(&changed, &theirs);
        bool is_own = (o->roles & (CT_ROLE_RANK | CT_ROLE_CONTENT)) != 0;
        if ((strcmp(ours.chars, theirs.chars) == 0) != is_own) printf("    %s\n", o->name);
        CHECK((strcmp(ours.chars, theirs.chars) == 0) == is_own);
    }
}

static ct_status check_text(const char *ours, const char *theirs) {
    CT_SCOPED(ct_text) mine = {0};
    char all[] = "ranks of a job";
    ct_text_add(&mine, "%s", ours);
    return ct_agreement_merge(all, theirs, strlen(theirs), &mine);
}

static void a_difference_is_named_with_both_values(void) {
    const char *ours = "{\"\": \"rank 0\", \"commit\": \"a\", \"@lr\": \"0.1\", \"@init\": \"\"}";
    CHECK_OK(check_text(ours, ours));
    CHECK_OK(check_text(ours, "{\"@lr\": \"0.1\", \"other\": \"b\"}"));
    CHECK_FAILS(check_text(ours, "{\"\": \"rank 3\", \"@lr\": \"0.2\"}"), CT_INVAL,
                "rank 3 has --lr 0.2, rank 0 has 0.1");
    CHECK_FAILS(check_text(ours, "{\"\": \"rank 3\", \"@init\": \"x\"}"), CT_INVAL,
                "rank 3 has --init x, rank 0 has none");
    CHECK_FAILS(check_text(ours, "{\"@lr\": 0.1}"), CT_IO, "another rank sent no text");
    CHECK_FAILS(check_text(ours, "[]"), CT_IO, "another rank says of itself is no object");
    CHECK_FAILS(check_text(ours, "{"), CT_IO, "another rank");
}

#define PAIR(program, first, second)                                                               \
    "timeout 20 mpirun -n 1 " CT_PROGRAM " " BASE first " : -n 1 " program " " BASE second         \
    " 2>&1%s%s"
#define BASE                                                                                       \
    "train --quiet --dataset mnist --model mlp:4 --agents 4 --partition iid --batch-size 5 "       \
    "--data-dir data --threads 1 --out pair "
#define REFUSED(words, program, first, second)                                                     \
    do {                                                                                           \
        int code = shell(PAIR(program, first, second), "", "");                                    \
        if (code != 2 || strstr(said, words) == NULL) printf("    %d: %s\n", code, said);          \
        CHECK(code == 2 && strstr(said, words) != NULL && !ct_dir_exists("pair"));                 \
    } while (0)

static void ranks_that_disagree_do_not_train(void) {
    NEEDS_MPI();
    put_data("data", 0);
    put_data("negatives", 255);
    REFUSED("rank 1 has --lr 0.2, rank 0 has 0.1", CT_PROGRAM, "--lr 0.1", "--lr 0.2");
    REFUSED("rank 1 has --model resnet20, rank 0 has lenet5", CT_PROGRAM, "--model lenet5",
            "--model resnet20");
    REFUSED("rank 1 has --agents 6, rank 0 has 4", CT_PROGRAM, "", "--agents 6");
    REFUSED("rank 1 has data ", CT_PROGRAM, "", "--data-dir negatives");
    REFUSED("rank 1 has commit 000000000000, rank 0 has", CT_OTHER_PROGRAM, "", "");
    remove_tree("data");
    remove_tree("negatives");
}

/* Ranks take the best instructions that all of them have. What one of them is told to take, and
 * another cannot, is refused. */
static void ranks_agree_on_their_instructions(void) {
    NEEDS_MPI();
    int level = 0;
    CHECK_OK(ct_cpu_level("", &level));
    if (level == 0) SKIP("this processor has plain instructions alone");
    put_data("data", 0);
#define ON_CPU CT_PROGRAM " " BASE "--device cpu --epochs 1 --save-agents --force "
    CHECK(shell("CROSSTALK_ISA=portable " ON_CPU "--out one 2>&1%s%s", "", "") == 0);
    CHECK(shell("mpirun -n 1 " ON_CPU ": -n 1 env CROSSTALK_ISA=portable " ON_CPU "2>&1%s%s", "",
                "") == 0);
    CHECK(same_results("one", "pair"));
    int code = shell("mpirun -n 1 env CROSSTALK_ISA=%s " ON_CPU
                     ": -n 1 env CROSSTALK_ISA=portable " ON_CPU "2>&1%s",
                     ct_cpu_instructions(level), "");
    CHECK(code == 2 && strstr(said, "rank 1 has instructions portable, rank 0 has") != NULL);
    remove_tree("one");
    remove_tree("pair");
    remove_tree("data");
}

/* ---- a run that goes on ---- */

static void the_record_says_what_made_it(void) {
    put_data("data", 0);
    CHECK_OK(train(OWN "data-dir=data device=cpu out=run"));
    CT_SCOPED(ct_blob) summary = content("run", "summary.json");
    const char *text = (const char *)summary.bytes;
    int level = 0;
    CHECK_OK(ct_cpu_level("", &level));
    char instructions[64];
    snprintf(instructions, sizeof instructions, "\"instructions\": \"%s\"",
             ct_cpu_instructions(level));
    CHECK(strstr(text, "\"identity\": {\"version\": \"" CT_VERSION "\"") != NULL);
    CHECK(strstr(text, instructions) != NULL && strstr(text, "\"data\": \"") != NULL);
    long *found = NULL;
    int n = 0;
    CHECK_OK(ct_checkpoint_list("run", &found, &n));
    CT_SCOPED(ct_blob)
    manifest =
        n > 0 ? content(ct_checkpoint_folder("run", found[0]).text, CT_MANIFEST) : (ct_blob){0};
    CHECK(manifest.n > 0 && strstr((const char *)manifest.bytes, instructions) != NULL);
    ct_free(found);
    remove_tree("run");
}

static void other_data_is_not_trained_on(void) {
    put_data("data", 0);
    CHECK_OK(train(OWN "data-dir=data out=run iterations=6"));
    put_data("data", 255);
    CHECK_FAILS(train("resume=run iterations=0 quiet=on"), CT_DIFFERS,
                "another run than the one that was begun: the data has the checksum");
    put_data("data", 0);
    CHECK_OK(train("resume=run iterations=0 quiet=on"));
    remove_tree("run");
    remove_tree("data");
}

/* Nor by a run that has no checkpoint yet and begins again. */
static void other_data_is_no_beginning(void) {
    put_data("data", 0);
    CHECK_OK(train(OWN "data-dir=data out=run"));
    remove_tree("run/checkpoint");
    remove("run/summary.json");
    put_data("data", 255);
    CHECK_FAILS(train("resume=run quiet=on"), CT_DIFFERS, "the data has the checksum");
    put_data("data", 0);
    CHECK_OK(train("resume=run quiet=on"));
    remove_tree("run");
    remove_tree("data");
}

/* A part has no fingerprint of the whole: an agent's own samples are compared. */
static void other_samples_in_a_part_are_not_trained_on(void) {
#define SPLIT                                                                                      \
    CT_PROGRAM " data split --quiet --ranks 1 --dataset mnist --data-dir data --agents 4 "         \
               "--partition iid --out %s 2>&1%s"
    put_data("data", 0);
    CHECK(shell(SPLIT, "parts", "") == 0);
    put_data("data", 255);
    CHECK(shell(SPLIT, "negatives", "") == 0);
    const char *run = OWN "partition-file=parts/partition.csv out=run ";
    CHECK_OK(train(with(run, "iterations=6 data-dir=parts/rank-0.ctpart")));
    CHECK_FAILS(train("resume=run iterations=0 quiet=on data-dir=negatives/rank-0.ctpart"),
                CT_DIFFERS, "agent 0 has other samples than at the checkpoint");
    put_data("data", 0);
    CHECK_OK(train("resume=run iterations=0 quiet=on data-dir=data")); /* the whole of the parts */
    remove_tree("run");
    remove_tree("parts");
    remove_tree("negatives");
    remove_tree("data");
}

static void an_edge_list_that_has_changed_is_another_graph(void) {
    put_data("data", 0);
    CHECK_OK(ct_file_write("edges", "0 1\n1 2\n2 3\n", 12));
    CHECK_OK(train(OWN "data-dir=data topology=file:edges out=run iterations=6"));
    CHECK_OK(ct_file_write("edges", "0 1\n1 2\n1 3\n", 12));
    CHECK_FAILS(train("resume=run iterations=0 quiet=on"), CT_DIFFERS,
                "the graph has the checksum");
    remove_tree("run");
    remove_tree("data");
}

static char heard[4096];

static void hear(void *context, ct_level level, const char *text) {
    (void)context;
    size_t n = strlen(heard);
    if (level == CT_LOG_NOTE) snprintf(heard + n, sizeof heard - n, "%s\n", text);
}

/* A run keeps its instructions where they are to be had, and says so where they are not. */
static void instructions_are_kept_or_the_change_is_told(void) {
    static const ct_hooks hooks = {.log = hear};
    put_data("data", 0);
    setenv("CROSSTALK_ISA", "portable", 1);
    CHECK_OK(train(OWN "data-dir=data device=cpu out=whole"));
    CHECK_OK(train(OWN "data-dir=data device=cpu out=run iterations=6"));
    unsetenv("CROSSTALK_ISA");
    CHECK_OK(train("resume=run out=again iterations=0 quiet=on"));
    CHECK(same_results("whole", "again"));
    setenv("CROSSTALK_ISA", "portable", 1);
    ct_hooks_use(&hooks);
    CHECK_OK(train("resume=run out=ref device=ref iterations=0 quiet=on"));
    ct_hooks_use(NULL);
    unsetenv("CROSSTALK_ISA");
    CHECK(strstr(heard, "the last bits may differ") != NULL &&
          strstr(heard, "device ref (was cpu)"));
    const char *const dirs[] = {"whole", "run", "again", "ref", "data"};
    for (int k = 0; k < 5; k++) remove_tree(dirs[k]);
}

int main(void) {
    prepare_ranks();
    if (!enter_folder()) return 1;
    TEST(every_option_that_ranks_must_share_is_compared);
    TEST(a_difference_is_named_with_both_values);
    TEST(ranks_that_disagree_do_not_train);
    TEST(ranks_agree_on_their_instructions);
    TEST(the_record_says_what_made_it);
    TEST(other_data_is_not_trained_on);
    TEST(other_data_is_no_beginning);
    TEST(other_samples_in_a_part_are_not_trained_on);
    TEST(an_edge_list_that_has_changed_is_another_graph);
    TEST(instructions_are_kept_or_the_change_is_told);
    remove_tree(folder);
    return test_report();
}
