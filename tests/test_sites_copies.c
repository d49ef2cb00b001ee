/* Packed rows between sites that are killed, stopped and started again: what a site has of a neighbour's
 * public copy is what that neighbour has, in every round, to the bit. Sites are processes of this
 * program, in which the copies are written down whenever models are shared (CMakeLists.txt has the
 * linker put these functions before those of the same names). A few moments; with CT_TEST_LONG=1, ten of each
 * federation. */
#include "sites.h"

#include "algo/agents.h"
#include "run/site_train.h"
#include "site/site_internal.h"
#include "util/hash.h"
#include "util/log.h"

ct_status __real_ct_copies_share(ct_agents *a);
ct_status __wrap_ct_copies_share(ct_agents *a);
ct_status __real_ct_bank_compress(const ct_packing *packing, const ct_bank *x, ct_bank *known,
                                  ct_bank *packed);
ct_status __wrap_ct_bank_compress(const ct_packing *packing, const ct_bank *x, ct_bank *known,
                                  ct_bank *packed);

ct_status __real_ct_faults_arrived(void *agents, ct_routes *r, ct_bank *bank, int k);
ct_status __wrap_ct_faults_arrived(void *agents, ct_routes *r, ct_bank *bank, int k);
ct_status __real_ct_site_hear_knock(ct_site *site, int k, const ct_letter *letter);
ct_status __wrap_ct_site_hear_knock(ct_site *site, int k, const ct_letter *letter);

static FILE *own, *copies;
static double north_thinks_s; /* before it answers a knock while it trains */
static const ct_agents *sharing;
static uint64_t story_seed = 1;

static ct_status hash_row(const ct_bank *bank, int row, uint64_t *out) {
    static float values[4096];
    if (bank->n > 4096) return ct_fail(CT_INVAL, "a model that is too large for this test");
    CT_TRY(ct_bank_read(bank, row, 0, bank->n, values));
    *out = ct_checksum(CT_HASH_START, values, bank->n * sizeof *values);
    return CT_OK;
}

/* "AGENT ITERATION TIMES HASH" */
static ct_status write_row(FILE *to, const ct_agents *a, int agent, int row) {
    uint64_t hash = 0;
    CT_TRY(hash_row(a->copies.known, row, &hash));
    fprintf(to, "%d %ld %u %016llx\n", agent, a->iteration, a->copies.n_before,
            (unsigned long long)hash);
    fflush(to);
    return CT_OK;
}

/* One's own copy, before anyone has it. */
ct_status __wrap_ct_bank_compress(const ct_packing *packing, const ct_bank *x, ct_bank *known,
                                  ct_bank *packed) {
    CT_TRY(__real_ct_bank_compress(packing, x, known, packed));
    bool is_model = sharing != NULL && known == sharing->copies.known;
    return is_model ? write_row(own, sharing, sharing->first, 0) : CT_OK;
}

ct_status __wrap_ct_copies_share(ct_agents *a) {
    sharing = own != NULL ? a : NULL;
    ct_status status = __real_ct_copies_share(a);
    sharing = NULL;
    return status;
}

/* And every one that has arrived. */
ct_status __wrap_ct_faults_arrived(void *agents, ct_routes *r, ct_bank *bank, int k) {
    const ct_agents *a = agents;
    CT_TRY(__real_ct_faults_arrived(agents, r, bank, k));
    bool is_model = own != NULL && r == &a->links.models && r->mail[k] >= 0 && !r->is_lost[k];
    return is_model ? write_row(copies, a, r->from[k], r->mail[k]) : CT_OK;
}

ct_status __wrap_ct_site_hear_knock(ct_site *site, int k, const ct_letter *letter) {
    if (site->options.me == 0 && site->phase == CT_SITE_TRAINS) nap(north_thinks_s);
    return __real_ct_site_hear_knock(site, k, letter);
}

/* ---- sites ---- */

static void say(void *log, ct_level level, const char *text) {
    (void)level;
    fprintf(log, "%s\n", text);
    fflush(log);
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
    CT_TRY(ct_config_put(&plan.local, "out", ct_path_in("copies", site_names[k]).text));
    CT_TRY(ct_config_put(&plan.local, "threads", "1"));
    CT_TRY(ct_config_put(&plan.local, "checkpoint-every", "1"));
    return ct_site_train(&plan);
}

static FILE *open_list(const char *what, int k, const char *mode) {
    char path[64];
    snprintf(path, sizeof path, "copies/%s.%s", site_names[k], what);
    return fopen(path, mode);
}

/* A site that comes back adds to what it has written. */
static void start_recorded(int k) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(HANGS_S);
        own = open_list("own", k, "a");
        copies = open_list("copies", k, "a");
        FILE *log = open_list("log", k, "a");
        if (own == NULL || copies == NULL || log == NULL) _exit(97);
        ct_hooks hooks = {.context = log, .log = say};
        ct_hooks_use(&hooks);
        ct_status status = live(k);
        if (status != CT_OK) fprintf(log, "%s\n", ct_message());
        fclose(log);
        _exit(status != CT_OK);
    }
    sites[k] = (process){.pid = pid, .code = -1};
}

/* ---- what they wrote down ---- */

/* Lines of all files of a kind, sorted; one that was not ended when its writer was killed is none. */
static char **read_lines(const char *what, int n_sites, int *n) {
    char **lines = NULL;
    *n = 0;
    for (int k = 0; k < n_sites; k++) {
        char line[128];
        FILE *f = open_list(what, k, "r");
        while (f != NULL && fgets(line, sizeof line, f) != NULL) {
            if (strchr(line, '\n') == NULL) continue;
            CHECK_OK(ct_extend(&lines, (size_t)*n, "the lines"));
            lines[(*n)++] = strdup(line);
        }
        if (f != NULL) fclose(f);
    }
    return lines;
}

static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_lines(char **lines, int n) {
    for (int k = 0; k < n; k++) free(lines[k]);
    ct_free(lines);
}

/* Every copy is one that its owner has had. */
static bool are_equal(int n_sites) {
    int n_own = 0, n_copies = 0, n_wrong = 0;
    char **all = read_lines("own", n_sites, &n_own);
    char **seen = read_lines("copies", n_sites, &n_copies);
    qsort(all, (size_t)n_own, sizeof *all, compare);
    for (int k = 0; k < n_copies; k++) {
        if (bsearch(&seen[k], all, (size_t)n_own, sizeof *all, compare) != NULL) continue;
        if (n_wrong++ < 3) printf("    nobody had %s", seen[k]);
    }
    printf("    %d copies, %d of them wrong\n", n_copies, n_wrong);
    CHECK(n_copies > 100);
    free_lines(all, n_own);
    free_lines(seen, n_copies);
    return n_wrong == 0;
}

static double chance(ct_rng *rng) {
    return ct_rng_below(rng, 1 << 20) / (double)(1 << 20);
}

static bool end_well(int n) {
    bool well = true;
    for (int k = 0; k < n; k++) well = await_site(k) == 0 && well;
    well = well && same_consensus(n, "copies");
    well = are_equal(n) && well;
    for (int k = 0; k < n; k++) well = well && !log_has("copies", k, "broke the rules");
    for (int k = 0; k < n && !well; k++) show_log("copies", k);
    return well;
}

/* Sites of a mask are killed or, for longer than it takes to be missed, stopped; and come back. */
static void disturb(const federation *f, int mask, bool is_killed, double at_s, double away_s) {
    remove_tree("copies");
    mkdir("copies", 0700);
    for (int k = 0; k < f->n; k++) start_recorded(k);
    CHECK(says("copies", 0, is_killed ? "epoch 2/" : "epoch 10/"));
    nap(at_s);
    for (int k = 0; k < f->n; k++)
        if ((mask >> k & 1) != 0) is_killed ? kill_site(k) : signal_site(k, SIGSTOP);
    nap(is_killed ? away_s : 4 * f->heartbeat_s + away_s);
    for (int k = 0; k < f->n; k++)
        if ((mask >> k & 1) != 0) is_killed ? start_recorded(k) : signal_site(k, SIGCONT);
    bool well = end_well(f->n);
    if (!well)
        printf("    seed %llu: sites %x were %s after %.3f s for %.3f s\n",
               (unsigned long long)story_seed, (unsigned)mask, is_killed ? "killed" : "stopped",
               at_s, away_s);
    CHECK(well);
}

static void disturb_at_random(const char *options, int few) {
    federation f = {.n = 4, .edges = RING, .dialers = 2, .heartbeat_s = 0.2, .epochs = 60};
    ct_rng rng;
    ct_rng_init(&rng, story_seed, CT_RNG_TEST, 11, 0, 0);
    f.options = options;
    put_federation(&f, "f.conf");
    int n = getenv("CT_TEST_LONG") != NULL ? 10 : few;
    for (int m = 0; m < n && !test_failed; m++) {
        int mask = 1 << ct_rng_below(&rng, 4);
        if (m % 3 == 1) mask |= 1 << ct_rng_below(&rng, 4);
        double at_s = chance(&rng), away_s = 0.6 * chance(&rng);
        disturb(&f, mask, m % 3 < 2, at_s, away_s);
    }
}

static void copies_stay_equal_when_sites_are_away(void) {
    NEEDS_ZMQ();
    disturb_at_random("option compress top-k:0.1\n", 3);
}

static void copies_stay_equal_with_local_steps(void) {
    NEEDS_ZMQ();
    disturb_at_random("option compress quantize:4\noption local-steps 4\noption variant atc\n", 2);
}

/* The others lose north, knock when it is back, and have ended before it answers: it must not wait for
 * what they say to that. */
static void one_that_ends_before_its_knock_is_answered_says_so(void) {
    NEEDS_ZMQ();
    federation f = {.n = 3, .edges = TRIANGLE, .dialers = 2, .heartbeat_s = 0.2, .epochs = 60};
    f.options = "option compress top-k:0.1\n";
    put_federation(&f, "f.conf");
    north_thinks_s = 3;
    disturb(&f, 1, false, 0, 0);
    north_thinks_s = 0;
}

int main(int argc, char **argv) {
    if (argc > 1) story_seed = (uint64_t)strtoull(argv[1], NULL, 10);
    if (!enter_folder() || !prepare_sites()) return 1;
    TEST(copies_stay_equal_when_sites_are_away);
    TEST(copies_stay_equal_with_local_steps);
    TEST(one_that_ends_before_its_knock_is_answered_says_so);
    remove_tree(".");
    leave_folder();
    return test_report();
}
