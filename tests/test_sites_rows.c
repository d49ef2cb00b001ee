/* A site receives its neighbours' letters and no others: four sites in a chain, each a process of this
 * program, in which every letter that the mesh takes or hands out is written down on its way
 * (CMakeLists.txt has the linker put these functions before the mesh's). */
#include "sites.h"

#include "run/site_train.h"
#include "site/site_internal.h"
#include "util/hash.h"

ct_status __real_ct_mesh_send(ct_mesh *mesh, int peer, const ct_letter *letter);
ct_status __wrap_ct_mesh_send(ct_mesh *mesh, int peer, const ct_letter *letter);
bool __real_ct_mesh_peek(ct_mesh *mesh, int peer, ct_letter *out);
bool __wrap_ct_mesh_peek(ct_mesh *mesh, int peer, ct_letter *out);

static FILE *sent, *got;

/* What a letter with a model, a row or a sum holds. All begin with the same model: rows of the first
 * iteration do not tell whose they are. */
static void write_down(FILE *to, const ct_letter *letter) {
    uint64_t hash = CT_HASH_START;
    bool has_numbers = letter->kind == CT_LETTER_ROW || letter->kind == CT_LETTER_MODEL ||
                       letter->kind == CT_LETTER_SUM;
    if (to == NULL || !has_numbers || letter->iteration == 0) return;
    for (size_t k = 0; k < letter->n; k++)
        hash = ct_hash_number(hash, ((const uint8_t *)letter->bytes)[k]);
    fprintf(to, "kind %d, iteration %llu, %zu bytes: %016llx\n", letter->kind,
            (unsigned long long)letter->iteration, letter->n, (unsigned long long)hash);
    fflush(to);
}

ct_status __wrap_ct_mesh_send(ct_mesh *mesh, int peer, const ct_letter *letter) {
    write_down(sent, letter);
    return __real_ct_mesh_send(mesh, peer, letter);
}

bool __wrap_ct_mesh_peek(ct_mesh *mesh, int peer, ct_letter *out) {
    if (!__real_ct_mesh_peek(mesh, peer, out)) return false;
    write_down(got, out);
    return true;
}

static ct_status live(int k) {
    static ct_site_plan plan;
    char key[64];
    snprintf(key, sizeof key, "%s.key", site_names[k]);
    plan.federation = "f.conf";
    plan.key = key;
    plan.patience_s = 60;
    ct_config_init(&plan.local);
    CT_TRY(ct_config_put(&plan.local, "data-dir", site_names[k]));
    CT_TRY(ct_config_put(&plan.local, "out", ct_path_in("rows", site_names[k]).text));
    CT_TRY(ct_config_put(&plan.local, "threads", "1"));
    CT_TRY(ct_config_put(&plan.local, "quiet", "on"));
    return ct_site_train(&plan);
}

static FILE *open_list(const char *what, int k, const char *mode) {
    char path[64];
    snprintf(path, sizeof path, "%s-%d", what, k);
    return fopen(path, mode);
}

static void start_recorded(int k) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(HANGS_S);
        sent = open_list("sent", k, "w");
        got = open_list("got", k, "w");
        ct_clear_message();
        ct_status status = live(k);
        if (status != CT_OK) printf("    %s: %s\n", site_names[k], ct_message());
        fflush(stdout);
        _exit(status != CT_OK);
    }
    sites[k] = (process){.pid = pid, .code = -1};
}

/* A line of the list is in another one. */
static bool has_entry(const char *what, int k, const char *entry) {
    char line[128];
    bool has = false;
    FILE *f = open_list(what, k, "r");
    while (f != NULL && !has && fgets(line, sizeof line, f) != NULL) has = strcmp(line, entry) == 0;
    if (f != NULL) fclose(f);
    return has;
}

static void no_row_reaches_anyone_but_a_neighbour(void) {
    NEEDS_ZMQ();
    federation f = {.n = 4, .edges = CHAIN, .heartbeat_s = 0.3, .epochs = 2};
    long n_entries = 0;
    put_federation(&f, "f.conf");
    mkdir("rows", 0700);
    for (int k = 0; k < 4; k++) start_recorded(k);
    for (int k = 0; k < 4; k++) CHECK(await_site(k) == 0);
    CHECK(same_consensus(4, "rows"));
    for (int k = 0; k < 4; k++) {
        char entry[128];
        FILE *list = open_list("got", k, "r");
        REQUIRE(list != NULL);
        for (; fgets(entry, sizeof entry, list) != NULL; n_entries++) {
            bool is_neighbours = false, is_others = false;
            for (int j = 0; j < 4; j++) {
                if (j == k || !has_entry("sent", j, entry)) continue;
                is_neighbours = is_neighbours || abs(j - k) == 1;
                is_others = is_others || abs(j - k) > 1;
            }
            if (!is_neighbours || is_others) printf("    %s got %s", site_names[k], entry);
            CHECK(is_neighbours && !is_others);
        }
        fclose(list);
    }
    printf("    %ld rows and sums, each of a neighbour\n", n_entries);
    CHECK(n_entries > 4 * 50 * 2);
}

int main(void) {
    if (!enter_folder() || !prepare_sites()) return 1;
    TEST(no_row_reaches_anyone_but_a_neighbour);
    remove_tree(".");
    leave_folder();
    return test_report();
}
