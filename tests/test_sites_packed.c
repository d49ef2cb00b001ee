/* Sites that send less: iterations without gossip, packed rows, averages over time. Undisturbed they have
 * the bits of one process; when a site was away, both ends of an edge begin with the same copies again. */
#include "sites.h"

#define COMPRESSED(how) "option compress " how "\n"

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
    static const char *const hows[] = {"quantize:4", "top-k:0.1", "random-k:0.1", "sign"};
    for (int k = 0; k < 4; k++) {
        char out[64], options[96], more[96];
        snprintf(out, sizeof out, "packed-%d", k);
        snprintf(options, sizeof options, "option compress %s\n", hows[k]);
        snprintf(more, sizeof more, "--compress %s", hows[k]);
        train_both(out, options, more);
        if (!test_failed) check_bytes(out, true);
    }
}

static void local_steps_have_the_bits_of_one_process(void) {
    NEEDS_ZMQ();
    train_both("local", "option local-steps 4\n", "--local-steps 4");
    check_bytes("local", false);
    train_both("grows", "option local-steps 1:8\n", "--local-steps 1:8");
    check_bytes("grows", false);
}

/* All of it together, and two exchanges of models in an iteration. */
static void packed_rows_and_local_steps_have_the_bits_of_one_process(void) {
    NEEDS_ZMQ();
    train_both("both", COMPRESSED("top-k:0.1") "option local-steps 4\noption consensus adagossip\n",
               "--compress top-k:0.1 --local-steps 4 --consensus adagossip");
    check_bytes("both", true);
    train_both("twice", COMPRESSED("quantize:4") "option variant atc\noption average ema:0.9\n",
               "--compress quantize:4 --variant atc --average ema:0.9");
    check_bytes("twice", true);
}

static void averages_have_the_bits_of_one_process(void) {
    NEEDS_ZMQ();
    char path[128];
    train_both("tail", "option average tail:0.5\n", "--average tail:0.5");
    for (int k = 0; k < 4; k++) {
        snprintf(path, sizeof path, "tail/%s/averaged.safetensors", site_names[k]);
        CHECK(same_tensors("tail/one/averaged.safetensors", path));
    }
    CHECK(!same_tensors("tail/one/averaged.safetensors", "tail/one/consensus.safetensors"));
    CT_SCOPED_HANDLE(ct_json) summary = read_json("tail/north/summary.json", -1);
    CHECK(number_of(summary, "averaged_accuracy") > 0.3);
}

int main(void) {
    if (!enter_folder() || !prepare_sites()) return 1;
    TEST(packed_rows_have_the_bits_of_one_process);
    TEST(local_steps_have_the_bits_of_one_process);
    TEST(packed_rows_and_local_steps_have_the_bits_of_one_process);
    TEST(averages_have_the_bits_of_one_process);
    remove_tree(".");
    leave_folder();
    return test_report();
}
