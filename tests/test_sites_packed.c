/* Sites that send less: iterations without gossip, packed rows, averages over time. Undisturbed they have
 * the bits of one process; when a site was away, both ends of an edge begin with the same copies again. */
#include "sites.h"

/* ---- undisturbed ---- */

/* Federations of four on a ring; the options of the file, and the same for one process. */
static void train_both(const char *out, const char *options, const char *more) {
    federation f = {.n = 4, .edges = RING, .dialers = 2, .heartbeat_s = 0.3, .epochs = 3};
    char one[64];
    f.options = options;
    put_federation(&f, "f.conf");
    start_sites(4, "f.conf", out);
    REQUIRE(all_end(4, out));
    snprintf(one, sizeof one, "%s/one", out);
    simulate(&f, one, more);
    CHECK(as_simulated(4, out, one));
}

/* Bytes that a site has sent its neighbours in rows, and an agent of the one process. */
static double bytes_of(const char *dir) {
    char path[128];
    snprintf(path, sizeof path, "%s/summary.json", dir);
    CT_SCOPED_HANDLE(ct_json) summary = read_json(path, -1);
    return number_of(summary, "bytes_sent_per_agent");
}

/* Bytes of a kind in sent.jsonl. */
static double sent_of(const char *dir, const char *what) {
    char path[128];
    double sum = 0;
    snprintf(path, sizeof path, "%s/sent.jsonl", dir);
    for (int line = 0;; line++) {
        CT_SCOPED_HANDLE(ct_json) json = read_json(path, line);
        if (json == NULL) return sum;
        const ct_json *kind = ct_json_get(json, "kind");
        if (kind != NULL && kind->kind == CT_JSON_STRING && strcmp(kind->string, what) == 0)
            sum += number_of(json, "bytes");
    }
}

/* sent.jsonl, the ledger of the site and that of one process agree. */
static void check_bytes(const char *out, bool is_packed) {
    char dir[64], one[64];
    snprintf(one, sizeof one, "%s/one", out);
    for (int k = 0; k < 4; k++) {
        snprintf(dir, sizeof dir, "%s/%s", out, site_names[k]);
        double packed = sent_of(dir, "packed parameters") + sent_of(dir, "packed class sums");
        double plain = sent_of(dir, "parameters") + sent_of(dir, "class sums");
        CHECK(is_packed ? packed > 0 && plain == 0 : packed == 0 && plain > 0);
        CHECK_NEAR(packed + plain, bytes_of(dir), 0);
        CHECK_NEAR(packed + plain, bytes_of(one), 0);
    }
    printf("    %s: %.0f bytes a site\n", out, bytes_of(one));
}

static void packed_rows_have_the_bits_of_one_process(void) {
    NEEDS_ZMQ();
    train_both("quantize", "option compress quantize:4\n", "--compress quantize:4");
    check_bytes("quantize", true);
    train_both("top-k", "option compress top-k:0.1\n", "--compress top-k:0.1");
    check_bytes("top-k", true);
    train_both("random-k", "option compress random-k:0.1\noption ccl-neighbours 1\n",
               "--compress random-k:0.1 --ccl-neighbours 1");
    check_bytes("random-k", true);
    train_both("low-rank", "option compress low-rank:2\n", "--compress low-rank:2");
    check_bytes("low-rank", true);
    train_both("top-k8", "option compress top-k8:0.1\noption variant wacv24\n",
               "--compress top-k8:0.1 --variant wacv24");
    check_bytes("top-k8", true);
}

static void local_steps_have_the_bits_of_one_process(void) {
    NEEDS_ZMQ();
    train_both("local", "option local-steps 4\n", "--local-steps 4");
    check_bytes("local", false);
}

/* With averaging rates that adapt; with steps that grow; and with two exchanges of models in an
 * iteration. */
static void packed_rows_and_local_steps_have_the_bits_of_one_process(void) {
    NEEDS_ZMQ();
    train_both("both",
               "option compress top-k:0.1\noption local-steps 4\noption consensus adagossip\n",
               "--compress top-k:0.1 --local-steps 4 --consensus adagossip");
    check_bytes("both", true);
    train_both("grows", "option compress sign\noption local-steps 1:8\n",
               "--compress sign --local-steps 1:8");
    check_bytes("grows", true);
    train_both("twice", "option compress quantize:4\noption variant atc\n",
               "--compress quantize:4 --variant atc");
    check_bytes("twice", true);
}

static void averages_have_the_bits_of_one_process(void) {
    NEEDS_ZMQ();
    char path[128];
    train_both("tail", "option average tail:0.5\noption ccl-neighbours 1\n",
               "--average tail:0.5 --ccl-neighbours 1");
    for (int k = 0; k < 4; k++) {
        snprintf(path, sizeof path, "tail/%s/averaged.safetensors", site_names[k]);
        CHECK(same_tensors("tail/one/averaged.safetensors", path));
    }
    CHECK(!same_tensors("tail/one/averaged.safetensors", "tail/one/consensus.safetensors"));
    CT_SCOPED_HANDLE(ct_json) summary = read_json("tail/north/summary.json", -1);
    CHECK(number_of(summary, "averaged_accuracy") > 0.3);
}

/* ---- with all of it, sites come and go ---- */

static bool same_averages(int n, const char *out) {
    bool same = true;
    for (int k = 1; k < n; k++) {
        char a[128], b[128];
        snprintf(a, sizeof a, "%s/%s/averaged.safetensors", out, site_names[0]);
        snprintf(b, sizeof b, "%s/%s/averaged.safetensors", out, site_names[k]);
        same = same_tensors(a, b) && same;
    }
    return same;
}

/* One joins, and another is killed and comes back; what all of them learn is right. */
static void sites_that_come_and_go_end_with_one_model(void) {
    NEEDS_ZMQ();
    federation f = {.n = 4, .edges = RING, .dialers = 2, .heartbeat_s = 0.2, .epochs = 100};
    f.options = "option compress top-k:0.1\noption local-steps 3\noption average ema:0.99\n"
                "option consensus adagossip\noption gamma 0.01\n";
    put_federation(&f, "f.conf");
    start_sites(4, "f.conf", "five");
    for (int k = 0; k < 4; k++) CHECK(says("five", k, "epoch 5/100"));
    f.n = 5;
    f.edges = RING " 0-4 2-4";
    put_federation(&f, "f.conf");
    for (int k = 0; k < 4; k++) signal_site(k, SIGHUP);
    start_site(4, "f.conf", "five");
    CHECK(says("five", 4, "iterations were missed"));
    kill_site(1);
    nap(0.3);
    start_site(1, "f.conf", "five");
    bool well = all_end(5, "five") && same_consensus(5, "five") && same_averages(5, "five");
    for (int k = 0; k < 5; k++) {
        char path[128];
        snprintf(path, sizeof path, "five/%s/summary.json", site_names[k]);
        CT_SCOPED_HANDLE(ct_json) summary = read_json(path, -1);
        well = well && number_of(summary, "consensus_accuracy") > 0.9 &&
               number_of(summary, "averaged_accuracy") > 0.9 &&
               !log_has("five", k, "broke the rules");
    }
    for (int k = 0; k < 5 && !well; k++) show_log("five", k);
    CHECK(well);
    CHECK(log_has("five", 2, "the mean of 5 of 5 sites"));
}

int main(void) {
    if (!enter_folder() || !prepare_sites()) return 1;
    TEST(packed_rows_have_the_bits_of_one_process);
    TEST(local_steps_have_the_bits_of_one_process);
    TEST(packed_rows_and_local_steps_have_the_bits_of_one_process);
    TEST(averages_have_the_bits_of_one_process);
    TEST(sites_that_come_and_go_end_with_one_model);
    remove_tree(".");
    leave_folder();
    return test_report();
}
