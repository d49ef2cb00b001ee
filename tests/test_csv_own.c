/* Agents with tables of their own: columns are agreed on, whoever has which categories, and one
 * process trains to the same bits as several. */
#include "ranks.h"

#include "data/table.h"
#include "util/memory.h"
#include "util/rng.h"
#include "util/safetensors.h"

#define OWN                                                                                        \
    " train --quiet --dataset csv --label kind --partition own --data-dir site-%%a --agents 3 "    \
    "--topology full --batch-size 8 --epochs 8 --lr 0.05 --threads 1 --save-agents --force "

/* A site's table: columns in an order of its own, its cities, its codes of wards. */
typedef struct site {
    const char *path, *header; /* of size, city, ward, kind */
    const char *cities[2], *wards[2];
    int n;
    bool lacks; /* some sizes are missing */
} site;

static const site sites[] = {
    {"site-0/train.csv", "size,city,ward,kind", {"Bern", "Rome"}, {"1", "2"}, 90, false},
    {"site-0/test.csv", "size,city,ward,kind", {"Bern", "Rome"}, {"1", "2"}, 30, false},
    {"site-1/any.csv", "kind,ward,size,city", {"Oslo", "Rome"}, {"2", "3"}, 40, true},
    {"site-2/train.csv", "city,kind,size,ward", {"Paris", "Oslo"}, {"2", "B"}, 70, false},
    {"site-2/test.csv", "city,kind,size,ward", {"Paris", "Oslo"}, {"2", "B"}, 20, false},
};
enum { N_SITES = sizeof sites / sizeof *sites };

static void add_row(const site *s, ct_rng *rng, int i, ct_text *out) {
    char header[64], *save = NULL;
    double size = 100 * ct_rng_uniform(rng);
    uint32_t city = ct_rng_below(rng, 2), ward = ct_rng_below(rng, 2);
    snprintf(header, sizeof header, "%s", s->header);
    for (char *name = strtok_r(header, ",", &save); name != NULL;) {
        if (strcmp(name, "size") == 0 && !(s->lacks && i % 7 == 3)) ct_text_add(out, "%.3f", size);
        if (strcmp(name, "city") == 0) ct_text_add(out, "%s", s->cities[city]);
        if (strcmp(name, "ward") == 0) ct_text_add(out, "%s", s->wards[ward]);
        if (strcmp(name, "kind") == 0) ct_text_add(out, "%s", size > 50 ? "large" : "small");
        name = strtok_r(NULL, ",", &save);
        ct_text_add(out, name != NULL ? "," : "\n");
    }
}

static void make_site(int k) {
    CT_SCOPED(ct_text) text = {0};
    ct_rng rng;
    ct_rng_init(&rng, 11, CT_RNG_SYNTHETIC, (uint32_t)k, 0, 0);
    ct_text_add(&text, "%s\n", sites[k].header);
    for (int i = 0; i < sites[k].n; i++) add_row(&sites[k], &rng, i, &text);
    CHECK_OK(ct_dir_create(ct_path_dir(sites[k].path).text));
    CHECK_OK(ct_file_write(sites[k].path, text.chars, text.n));
}

static void make_sites(void) {
    for (int k = 0; k < N_SITES; k++) make_site(k);
}

static bool same_models(const char *a, const char *b) {
    return same_file(a, b, "consensus.safetensors") && same_file(a, b, "agents.safetensors") &&
           same_file(a, b, "evaluation.json");
}

static void one_process_and_several_train_to_the_same_bits(void) {
    make_sites();
    CHECK(shell("%s" OWN "--out one 2>&1%s", CT_PROGRAM, "") == 0);
    if (said[0] != '\0') printf("    %s\n", said);
    if (!has_mpi()) SKIP("no mpirun, or built without MPI");
    for (int n = 2; n <= 3; n++) {
        char start[64];
        snprintf(start, sizeof start, "mpirun -n %d ", n);
        CHECK(shell("%s%s" OWN "--out several 2>&1", start, CT_PROGRAM) == 0);
        CHECK(same_models("one", "several"));
    }
}

static void a_run_on_own_tables_is_resumed_and_other_tables_refused(void) {
    NEEDS_MPI();
    CHECK(shell("%s" OWN "--checkpoint-every 1 --iterations 30 --out half 2>&1%s", CT_PROGRAM,
                "") == 0);
    CHECK(shell("mpirun -n 2 %s train --quiet --resume half --iterations 0 2>&1%s", CT_PROGRAM,
                "") == 0);
    CHECK(same_file("one", "half", "consensus.safetensors"));
    CHECK(shell("%s" OWN "--checkpoint-every 1 --iterations 30 --out half 2>&1%s", CT_PROGRAM,
                "") == 0);
    CHECK(shell("sed -i s/Paris/Lyon/ site-2/train.csv%s%s", "", "") == 0);
    CHECK(shell("%s train --quiet --resume half --iterations 0 2>&1%s", CT_PROGRAM, "") == 2);
    CHECK(strstr(said, "data") != NULL);
    make_sites();
}

/* A rank keeps its own agents' rows alone. */
static void one_table_is_split_over_ranks_to_the_same_bits(void) {
#define SPLIT                                                                                      \
    "%s train --quiet --dataset csv --label kind --data-dir site-0 --agents 4 --batch-size 4 "     \
    "--partition dirichlet --alpha 1 --epochs 3 --threads 1 --save-agents --force --out "
    NEEDS_MPI();
    CHECK(shell(SPLIT "one-split 2>&1%s", CT_PROGRAM, "") == 0);
    CHECK(shell("mpirun -n 2 " SPLIT "two-split 2>&1%s", CT_PROGRAM, "") == 0);
    CHECK(same_models("one-split", "two-split"));
}

/* Of what the model says about its columns. */
static void columns_are_those_of_all_agents(void) {
    CT_SCOPED(ct_tensors) model = {0};
    CT_SCOPED_HANDLE(ct_json) json = NULL;
    CT_SCOPED(ct_columns) columns = {0};
    static const char *const cities[] = {"Bern", "Oslo", "Paris", "Rome"};
    static const char *const wards[] = {"1", "2", "3", "B"};
    REQUIRE_OK(ct_tensors_read("one/consensus.safetensors", &model));
    const char *note = ct_tensors_note_of(&model, "columns");
    REQUIRE(note != NULL);
    REQUIRE_OK(ct_json_parse(note, strlen(note), "the model", &json));
    REQUIRE_OK(ct_columns_parse(json, "the model", &columns));
    REQUIRE(columns.n == 3 && columns.columns[0].categories.n == 4);
    REQUIRE(!columns.columns[2].is_number && columns.columns[2].categories.n == 4);
    for (int k = 0; k < 4; k++) {
        CHECK(strcmp(columns.columns[0].categories.words[k], cities[k]) == 0);
        CHECK(strcmp(columns.columns[2].categories.words[k], wards[k]) == 0);
    }
    CHECK(columns.columns[1].is_number &&
          columns.columns[1].n + columns.columns[1].n_missing == 200);
    CHECK(columns.columns[1].n_missing == 6);
    CHECK(ct_columns_inputs(&columns) == 10);
}

/* The mean of all agents' numbers, as one table with all their rows has it. */
static void numbers_are_normalised_as_in_one_table(void) {
    static const int trained[] = {0, 2, 3};
    CT_SCOPED(ct_columns) all = {0};
    for (int k = 0; k < 3; k++) {
        CT_SCOPED(ct_table) t = {0};
        CT_SCOPED(ct_columns) c = {0};
        REQUIRE_OK(ct_table_read(sites[trained[k]].path, &t));
        REQUIRE_OK(ct_columns_of(&t, ct_table_find(&t, "kind"), "", (ct_rows){NULL, false}, &c));
        if (k == 0)
            ct_move(&all, &c);
        else
            CHECK_OK(ct_columns_merge(&all, &c));
    }
    CT_SCOPED(ct_text) wanted = {0};
    CT_SCOPED(ct_tensors) model = {0};
    ct_columns_print(&all, false, &wanted);
    REQUIRE_OK(ct_tensors_read("one/consensus.safetensors", &model));
    const char *note = ct_tensors_note_of(&model, "columns");
    CHECK(note != NULL && strcmp(note, wanted.chars) == 0);
}

/* In one process and over ranks: the same line, within seconds. */
static void refuses(const char *words) {
    CHECK(shell("%s" OWN "--out never 2>&1%s", CT_PROGRAM, "") == 2);
    CHECK(strstr(said, words) != NULL);
    if (has_mpi()) {
        CHECK(shell("mpirun -n 3 %s" OWN "--timeout 60 --out never 2>&1%s", CT_PROGRAM, "") == 2);
        CHECK(strstr(said, words) != NULL);
    }
    CHECK(!ct_dir_exists("never"));
    make_sites();
}

static void put_site(const char *text) {
    CHECK_OK(ct_file_write("site-1/any.csv", text, strlen(text)));
}

static void what_cannot_be_agreed_on_is_refused_with_its_column(void) {
    put_site("kind,size,city\nsmall,1,Rome\nlarge,2,Rome\n");
    refuses("agents 0 and 1: column 'ward' is not in every agent's table");
    put_site("kind,size,city,ward,more\nsmall,1,Rome,1,2\n");
    refuses("agents 0 and 1: column 'more' is not in every agent's table");
    put_site("kind,size,city,ward\nsmall,little,Rome,1\nlarge,2,Rome,1\n");
    refuses("agents 0 and 1: column 'size' has texts at one agent, and at another numbers");
    put_site("kind,size,city,ward\nsmall,1,Rome\n");
    CHECK(shell("%s" OWN "--out never 2>&1%s", CT_PROGRAM, "") == 1);
    CHECK(strstr(said, "agent 1") != NULL && strstr(said, "any.csv:2: 3 cells") != NULL);
    make_sites();
}

int main(void) {
    if (!enter_folder()) return 1;
    prepare_ranks();
    TEST(one_process_and_several_train_to_the_same_bits);
    TEST(a_run_on_own_tables_is_resumed_and_other_tables_refused);
    TEST(one_table_is_split_over_ranks_to_the_same_bits);
    TEST(columns_are_those_of_all_agents);
    TEST(numbers_are_normalised_as_in_one_table);
    TEST(what_cannot_be_agreed_on_is_refused_with_its_column);
    remove_tree(folder);
    return test_report();
}
