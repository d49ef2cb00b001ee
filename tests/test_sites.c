/* Sites as their users run them: what they train, what their command line refuses, and what those see
 * who do not belong to them. test_sites_slow.c has sites that are killed. */
#define _GNU_SOURCE /* memmem */
#include "sites.h"

/* ---- undisturbed ---- */

static void three_sites_have_the_bits_of_one_process(void) {
    NEEDS_ZMQ();
    federation f = {.n = 3, .edges = TRIANGLE, .dialers = 2, .heartbeat_s = 0.3, .epochs = 4};
    put_federation(&f, "f.conf");
    start_sites(3, "f.conf", "plain");
    REQUIRE(all_end(3, "plain"));
    simulate(&f, "plain/one", "");
    CHECK(as_simulated(3, "plain", "plain/one"));
    CHECK(log_has("plain", 0, "the mean of 3 of 3 sites"));
}

static void packed_rows_of_sites_have_the_bits_of_three_ranks(void) {
    NEEDS_ZMQ();
    if (!CT_WITH_MPI || system("command -v mpirun >/dev/null 2>&1") != 0)
        SKIP("no mpirun, or built without MPI");
    federation f = {.n = 3, .edges = TRIANGLE, .dialers = 2, .heartbeat_s = 0.3, .epochs = 4};
    const char *more = "--compress quantize:4 --local-steps 2";
    char command[4400];
    f.options = "option compress quantize:4\noption local-steps 2\n";
    put_federation(&f, "f.conf");
    start_sites(3, "f.conf", "ranks");
    REQUIRE(all_end(3, "ranks"));
    simulate(&f, "ranks/one", more);
    const char *out = strstr(said.command, "--out ");
    REQUIRE(out != NULL);
    snprintf(command, sizeof command,
             "ASAN_OPTIONS=detect_leaks=0 mpirun --allow-run-as-root --oversubscribe -n 3 %s %.*s "
             "%s --out ranks/three >ranks/said "
             "2>&1",
             CT_PROGRAM, (int)(out - said.command), said.command, more);
    CHECK(system(command) == 0);
    CHECK(as_simulated(3, "ranks", "ranks/three"));
}

/* n pictures of a class, all of them one file: who mixes labels up cannot tell classes apart. */
static void put_class(const char *dir, const char *part, const char *name, const char *picture,
                      int n) {
    char path[256], first[256];
    ct_blob file = {0};
    snprintf(path, sizeof path, "fixtures/images/%s", picture);
    CHECK_OK(ct_file_read(path, 1 << 20, &file));
    snprintf(path, sizeof path, "pictures/%s/%s/%s", dir, part, name);
    CHECK_OK(ct_dir_create(path));
    snprintf(first, sizeof first, "pictures/%s/%s/%s/0.png", dir, part, name);
    CHECK_OK(ct_file_write(first, file.bytes, file.n));
    for (int k = 1; k < n; k++) {
        snprintf(path, sizeof path, "pictures/%s/%s/%s/%d.png", dir, part, name, k);
        CHECK(link(first, path) == 0);
    }
    ct_blob_free(&file);
}

static double accuracy_of(int k) {
    char path[128];
    snprintf(path, sizeof path, "labels/%s/summary.json", site_names[k]);
    CT_SCOPED_HANDLE(ct_json) summary = read_json(path, -1);
    return number_of(summary, "consensus_accuracy");
}

/* 100, 450 and 2,000 pictures; the first class of one is not the first of another. */
static void sites_with_other_class_folders_have_the_right_labels(void) {
    NEEDS_ZMQ();
    if (!CT_WITH_PNG) SKIP("built without libpng");
    static const struct {
        const char *site, *name, *picture;
        int n;
    } classes[] = {{"north", "cat", "rgb.png", 60},      {"north", "dog", "grey.png", 40},
                   {"south", "bee", "palette.png", 200}, {"south", "dog", "grey.png", 150},
                   {"south", "elk", "bits1.png", 100},   {"east", "bee", "palette.png", 700},
                   {"east", "cat", "rgb.png", 600},      {"east", "elk", "bits1.png", 700}};
    federation f = {.n = 3, .edges = TRIANGLE, .dialers = 2, .heartbeat_s = 0.3, .epochs = 8};
    for (size_t k = 0; k < sizeof classes / sizeof *classes; k++) {
        put_class(classes[k].site, "train", classes[k].name, classes[k].picture, classes[k].n);
        put_class(classes[k].site, "val", classes[k].name, classes[k].picture, 5);
    }
    put_federation(&f, "f.conf");
    CHECK(system("sed -i 's/dataset npy/dataset folder/; s/batch-size 8/batch-size 32/' f.conf") ==
          0);
    for (int k = 0; k < 3; k++) {
        char more[128];
        snprintf(more, sizeof more, "--checkpoint-every 1 --data-dir pictures/%s", site_names[k]);
        start_site_with(k, "f.conf", "labels", more);
    }
    REQUIRE(all_end(3, "labels"));
    simulate(&f, "labels/one", "--dataset folder --data-dir pictures/%a --batch-size 32");
    CHECK(as_simulated(3, "labels", "labels/one"));
    for (int k = 0; k < 3; k++) CHECK_NEAR(accuracy_of(k), 1, 0);
}

/* ---- those who listen on the way ---- */

typedef struct capture {
    pid_t pid;
    const char *path;
} capture;

/* Everything to and from these ports; false: it cannot be had here. */
static bool capture_begin(capture *c, const char *path, int port_a, int port_b) {
    char filter[64], ready[SAID];
    snprintf(filter, sizeof filter, "tcp port %d or tcp port %d", port_a, port_b);
    *c = (capture){.path = path};
    unlink("tcpdump.log");
    c->pid = fork();
    if (c->pid == 0) {
        int fd = open("tcpdump.log", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd < 0 || dup2(fd, 2) < 0) _exit(97);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execlp("tcpdump", "tcpdump", "-i", "lo", "-s", "0", "-B", "65536", "-U", "-w", path, filter,
               (char *)NULL);
        _exit(98);
    }
    for (double until = ct_seconds() + 10; ct_seconds() < until; nap(0.05)) {
        slurp("tcpdump.log", ready);
        if (strstr(ready, "listening on") != NULL) return true;
        if (waitpid(c->pid, NULL, WNOHANG) == c->pid) return false;
    }
    return false;
}

static void capture_end(capture *c, ct_blob *out) {
    nap(1.5); /* what the system has seen reaches the file */
    kill(c->pid, SIGINT);
    waitpid(c->pid, NULL, 0);
    CHECK_OK(ct_file_read(c->path, (size_t)1 << 30, out));
}

/* ---- what was sent ---- */

/* Bytes of these kinds in a site's sent.jsonl. */
static double sent_bytes(const char *out, int k, const char *kinds) {
    char path[128];
    double sum = 0;
    snprintf(path, sizeof path, "%s/%s/sent.jsonl", out, site_names[k]);
    for (int line = 0;; line++) {
        CT_SCOPED_HANDLE(ct_json) json = read_json(path, line);
        if (json == NULL) return sum;
        const ct_json *kind = ct_json_get(json, "kind");
        if (kind != NULL && kind->kind == CT_JSON_STRING && strstr(kinds, kind->string) != NULL)
            sum += number_of(json, "bytes");
    }
}

/* Bytes that its neighbours got, and those in frames, from site.json. */
static double traffic(const char *out, int k, const char *key) {
    char path[128];
    double sum = 0;
    snprintf(path, sizeof path, "%s/%s/site.json", out, site_names[k]);
    CT_SCOPED_HANDLE(ct_json) status = read_json(path, -1);
    const ct_json *list = status != NULL ? ct_json_get(status, "neighbours") : NULL;
    for (const ct_json *n = list != NULL ? list->child : NULL; n != NULL; n = n->next)
        sum += number_of(n, key);
    return sum;
}

/* What two programs wrote into a connection, as the sequence numbers of TCP tell: neither its own
 * headers nor what it sent twice counts. packets: as tcpdump wrote them. */
static double payload(const ct_blob *packets) {
    enum { FILE_HEAD = 24, RECORD = 16, ETHERNET = 14, MOST = 16 };
    struct {
        uint16_t from, to;
        uint32_t first, n;
    } ways[MOST] = {0};
    int n_ways = 0;
    double sum = 0;
    for (size_t at = FILE_HEAD; at + RECORD + ETHERNET + 40 <= packets->n;) {
        const uint8_t *ip = packets->bytes + at + RECORD + ETHERNET, *tcp = ip + (ip[0] & 15) * 4;
        uint32_t n_kept, seq;
        uint16_t from, to;
        memcpy(&n_kept, packets->bytes + at + 8, 4);
        memcpy(&from, tcp, 2);
        memcpy(&to, tcp + 2, 2);
        memcpy(&seq, tcp + 4, 4);
        seq = ntohl(seq);
        uint32_t length =
            (uint32_t)(ip[2] << 8 | ip[3]) - (uint32_t)(tcp - ip) - (tcp[12] >> 4) * 4u;
        int way = 0;
        while (way < n_ways && (ways[way].from != from || ways[way].to != to)) way++;
        if (way == n_ways && n_ways < MOST && (tcp[13] & 2) != 0) { /* it begins: SYN */
            ways[n_ways].from = from;
            ways[n_ways].to = to;
            ways[n_ways++].first = seq + 1;
        }
        if (way < n_ways && length > 0 && seq - ways[way].first + length > ways[way].n)
            ways[way].n = seq - ways[way].first + length;
        at += RECORD + n_kept;
    }
    for (int way = 0; way < n_ways; way++) sum += ways[way].n;
    return sum;
}

/* Rows of a model that is large enough for headers not to matter. */
static void check_bytes(const char *out, const char *options, const char *kinds) {
    federation f = {.n = 2, .edges = "0-1", .heartbeat_s = 0.3, .epochs = 1, .options = options};
    char path[128], all_kinds[256];
    snprintf(path, sizeof path, "%s/north/summary.json", out);
    snprintf(all_kinds, sizeof all_kinds, "%s control agreement sum of a subtree consensus model",
             kinds);
    put_federation(&f, "f.conf");
    CHECK(system("sed -i s/mlp:8/mlp:4000/ f.conf") == 0);
    capture c;
    CT_SCOPED(ct_blob) packets = {0};
    bool is_seen = capture_begin(&c, "bytes.pcap", site_ports[0], site_ports[1]);
    start_sites(2, "f.conf", out);
    REQUIRE(all_end(2, out));
    if (is_seen) capture_end(&c, &packets);
    CT_SCOPED_HANDLE(ct_json) summary = read_json(path, -1);
    double rows = sent_bytes(out, 0, kinds);
    CHECK_NEAR(rows, number_of(summary, "bytes_sent_per_agent"), 0);
    double all = 0, framed = 0;
    for (int k = 0; k < 2; k++) {
        all += sent_bytes(out, k, all_kinds);
        framed += traffic(out, k, "framed_sent");
    }
    printf(
        "    rows of a site %.0f bytes, as in its ledger; all letters %.0f, in frames %+.2f %%\n",
        rows, all, 100 * (framed / all - 1));
    CHECK(framed >= 0.99 * all && framed < 1.01 * all);
    if (!is_seen) return; /* no tcpdump, or not allowed to listen */
    double wire = payload(&packets);
    printf("    encrypted, in the TCP connection, %+.2f %%\n", 100 * (wire / all - 1));
    CHECK(wire >= all && wire < 1.01 * all);
}

static void what_is_written_down_is_what_was_sent(void) {
    NEEDS_ZMQ();
    check_bytes("bytes", "option iterations 40\n", "parameters class sums");
    check_bytes("packed", "option iterations 40\noption compress quantize:4\n",
                "packed parameters packed class sums");
}

/* How many of the model's runs of eight bytes are in the capture, tried at a hundred places. */
static int n_seen(const ct_blob *packets, const ct_blob *model) {
    uint64_t head;
    int n = 0;
    memcpy(&head, model->bytes, 8);
    for (int k = 0; k < 100; k++) {
        size_t at = 8 + head + (model->n - 16 - head) / 100 * (size_t)k / 4 * 4;
        n += memmem(packets->bytes, packets->n, model->bytes + at, 8) != NULL;
    }
    return n;
}

/* The same bytes over a plain connection, so that the search can find something. */
static void send_plainly(int port, const ct_blob *model) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0), to = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    CHECK(bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 1) == 0);
    CHECK(connect(to, (struct sockaddr *)&at, sizeof at) == 0);
    int from = accept(listener, NULL, NULL);
    CHECK(send(to, model->bytes, model->n, MSG_NOSIGNAL) == (ssize_t)model->n);
    close(from);
    close(to);
    close(listener);
}

static void nobody_on_the_way_can_read_a_model(void) {
    NEEDS_ZMQ();
    CT_SCOPED(ct_blob) packets = {0}, model = {0}, plain = {0};
    capture c;
    federation f = {.n = 2, .edges = "0-1", .heartbeat_s = 0.3, .epochs = 1};
    put_federation(&f, "f.conf");
    if (!capture_begin(&c, "packets", site_ports[0], site_ports[1]))
        SKIP("no tcpdump, or not allowed to listen");
    start_sites(2, "f.conf", "secret");
    CHECK(all_end(2, "secret"));
    capture_end(&c, &packets);
    /* the consensus model goes from one to the other at the end */
    REQUIRE_OK(ct_file_read("secret/south/consensus.safetensors", 1 << 20, &model));
    REQUIRE(packets.n > 10000);
    CHECK(n_seen(&packets, &model) == 0);
    REQUIRE(capture_begin(&c, "plainly", site_ports[0], site_ports[0]));
    send_plainly(site_ports[0], &model);
    capture_end(&c, &plain);
    printf("    of 100 places of the model %d are seen, and %d when it is sent plainly\n",
           n_seen(&packets, &model), n_seen(&plain, &model));
    CHECK(n_seen(&plain, &model) == 100);
}

/* ---- those who do not belong ---- */

/* Starts a site that is refused, and tells whether the others heard of it so. */
static void refused_beside(const char *out, const char *program, const char *file, const char *key,
                           const char *heard) {
    char line[1024];
    federation f = {.n = 3, .edges = TRIANGLE, .dialers = 4, .heartbeat_s = 0.2, .epochs = 3};
    put_federation(&f, "f.conf");
    start_site(0, "f.conf", out);
    start_site(1, "f.conf", out);
    snprintf(line, sizeof line,
             "site run %s --key %s --data-dir east --out %s/stranger --threads 1", file, key, out);
    char log[128];
    snprintf(log, sizeof log, "%s/stranger.log", out);
    char **args = split_words(line);
    pid_t pid = fork();
    if (pid == 0) exec_program(program, args, log);
    bool is_told = says(out, 0, heard);
    if (!is_told) show_log(out, 0);
    CHECK(is_told);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    start_site(2, "f.conf", out);
    CHECK(all_end(3, out));
    snprintf(line, sizeof line, "%s/one", out);
    simulate(&f, line, "");
    CHECK(as_simulated(3, out, line));
}

static void another_federations_file_is_refused_and_named(void) {
    NEEDS_ZMQ();
    federation other = {.n = 3, .edges = TRIANGLE, .dialers = 4, .heartbeat_s = 0.2, .epochs = 4};
    put_federation(&other, "other.conf");
    refused_beside("file", CT_PROGRAM, "other.conf", "east.key", "east");
    CHECK(log_has("file", 0, "federation"));
}

/* east's name with a key that the others do not know. */
static void an_unknown_key_is_refused(void) {
    NEEDS_ZMQ();
    ct_key_pair mine = site_keys[2], forged;
    federation f = {.n = 3, .edges = TRIANGLE, .dialers = 4, .heartbeat_s = 0.2, .epochs = 3};
    REQUIRE_OK(ct_keys_make(&forged));
    REQUIRE_OK(ct_keys_write(&forged, "forged.key"));
    site_keys[2] = forged;
    put_federation(&f, "forged.conf");
    site_keys[2] = mine;
    refused_beside("key", CT_PROGRAM, "forged.conf", "forged.key", "no site has its key");
}

/* south and east change names: the key is right, the name is not its own. */
static void a_right_key_under_another_name_is_refused(void) {
    NEEDS_ZMQ();
    ct_key_pair south = site_keys[1];
    federation f = {.n = 3, .edges = TRIANGLE, .dialers = 6, .heartbeat_s = 0.2, .epochs = 3};
    f.edges = "0-1 0-2";
    site_keys[1] = site_keys[2];
    site_keys[2] = south;
    put_federation(&f, "swapped.conf");
    site_keys[2] = site_keys[1];
    site_keys[1] = south;
    refused_beside("name", CT_PROGRAM, "swapped.conf", "east.key", "south");
}

static void another_version_of_the_program_is_refused_and_named(void) {
    NEEDS_ZMQ();
    refused_beside("version", CT_OTHER_PROGRAM, "f.conf", "east.key", "east runs ");
    CHECK(log_has("version", 0, "000000000000"));
}

/* ---- many strangers ---- */

static void five_hundred_strangers_change_no_bit(void) {
    NEEDS_ZMQ();
    enum { N = 500 };
    static int strangers[N];
    federation f = {.n = 3, .edges = TRIANGLE, .dialers = 2, .heartbeat_s = 0.3, .epochs = 40};
    put_federation(&f, "f.conf");
    start_sites(3, "f.conf", "crowd");
    CHECK(says("crowd", 0, "epoch 2/40"));
    int n_open = 0;
    for (int k = 0; k < N; k++) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        at.sin_port = htons((uint16_t)site_ports[k % 2 * 2]);
        strangers[k] = socket(AF_INET, SOCK_STREAM, 0);
        bool is_open = connect(strangers[k], (struct sockaddr *)&at, sizeof at) == 0;
        n_open += is_open;
        if (is_open && k % 3 > 0) /* the others say nothing */
            send(strangers[k], "GET / HTTP/1.1\r\n\r\n\xff\xff\xff\xff", 22, MSG_NOSIGNAL);
    }
    bool ends = all_end(3, "crowd");
    for (int k = 0; k < N; k++) close(strangers[k]);
    printf("    %d of %d were connected\n", n_open, N);
    REQUIRE(ends);
    simulate(&f, "crowd/one", "");
    CHECK(as_simulated(3, "crowd", "crowd/one"));
    CHECK(n_open > N / 2);
}

/* ---- the command line ---- */

static void key_files_are_kept_and_checked(void) {
    NEEDS_ZMQ();
    struct stat info;
    CHECK(run("site keygen --key new.key --quiet") == 0 && strlen(said.out) == 65);
    CHECK(stat("new.key", &info) == 0 && (info.st_mode & 0777) == 0600);
    REFUSES(1, "site keygen --key new.key", "new.key");
    federation f = {.n = 2, .edges = "0-1", .heartbeat_s = 0.3, .epochs = 1};
    put_federation(&f, "f.conf");
    REFUSES(2, "site run f.conf --data-dir north --key new.key", "f.conf", "new.key");
    REFUSES(2, "site run f.conf --data-dir north --key north.key --site south", "south");
    REFUSES(2, "site run f.conf --data-dir north --key north.key --site nobody", "nobody");
    CHECK(chmod("new.key", 0644) == 0);
    REFUSES(1, "site run f.conf --data-dir north --key new.key", "new.key", "others");
    REFUSES(2, "site run f.conf --data-dir north --key no.key", "no.key", "keygen");
}

/* A federation of two, with one line more or instead. */
static void check_line(const char *line, const char *words) {
    static const char start[] =
        "federation lungs\n"
        "site north 0000000000000000000000000000000000000000000000000000000000000001 a:1\n"
        "site south 0000000000000000000000000000000000000000000000000000000000000002\n"
        "edge north south\n";
    char text[1024], said_line[32];
    snprintf(text, sizeof text, "%s%s\n", start, line);
    put("wrong.conf", text);
    snprintf(said_line, sizeof said_line, "wrong.conf: line 5:");
    REFUSES(2, "site check wrong.conf", said_line, words);
}

static void mistakes_in_a_file_are_told_with_their_line(void) {
#define KEY3 "0000000000000000000000000000000000000000000000000000000000000003"
    check_line("federation other", "second name");
    check_line("site north " KEY3, "two sites 'north'");
    check_line("site north/west " KEY3, "a name has letters");
    check_line("site west 123", "64 hexadecimal digits");
    check_line("site west", "64 hexadecimal digits");
    check_line("site west 0000000000000000000000000000000000000000000000000000000000000002",
               "same key");
    check_line("site west " KEY3 " nowhere", "host:port");
    check_line("site west " KEY3 " a:0", "host:port");
    check_line("site west " KEY3 " a:1 b:2", "too much");
    check_line("edge north west", "no 'west'");
    check_line("edge north north", "two sites");
    check_line("edge south north", "twice");
    check_line("edge north", "two sites");
    check_line("option lr", "needs a value");
    check_line("option lr fast", "lr");
    check_line("option learning 1", "learning");
    check_line("option data-dir x", "not for a federation's file");
    check_line("option agents 3", "not for a federation's file");
    check_line("option out x", "not for a federation's file");
    check_line("option threads 3", "not for a federation's file");
    check_line("heartbeat fast", "heartbeat");
    check_line("heartbeat 0.001", "heartbeat");
    check_line("heartbeat", "nothing behind");
    check_line("colour red", "a line begins with");
}

static void a_file_that_makes_no_federation_is_refused(void) {
    put("wrong.conf", "site a " KEY3 "\n");
    REFUSES(2, "site check wrong.conf", "wrong.conf", "federation NAME");
    put("wrong.conf", "federation x\nsite a " KEY3 "\n");
    REFUSES(2, "site check wrong.conf", "wrong.conf", "two or more");
    put("wrong.conf",
        "federation x\nsite a " KEY3
        "\nsite b 0000000000000000000000000000000000000000000000000000000000000002\nedge a b\n");
    REFUSES(2, "site check wrong.conf", "wrong.conf", "neither has an address");
    put("wrong.conf",
        "federation x\nsite a " KEY3
        " h:1\nsite b 0000000000000000000000000000000000000000000000000000000000000002\n");
    REFUSES(2, "site check wrong.conf", "wrong.conf", "not connected");
    REFUSES(1, "site check not-there.conf", "not-there.conf");
}

static void options_are_named_where_they_belong(void) {
    NEEDS_ZMQ();
    static const char old[] = "{\"site\": \"a\", \"federation\": \"f\", \"phase\": \"training\", "
                              "\"iteration\": 3, \"n_iterations\": 9, \"time\": 1, "
                              "\"heartbeat_s\": 2, \"neighbours\": []}";
    federation f = {.n = 2, .edges = "0-1", .heartbeat_s = 0.3, .epochs = 1};
    put_federation(&f, "f.conf");
    REFUSES(2, "site run f.conf --key north.key --data-dir north --lr 0.1", "--lr",
            "federation's file");
    REFUSES(2, "site run f.conf --key north.key --data-dir north --epochs 3", "--epochs",
            "federation's file");
    REFUSES(2, "site run f.conf --key north.key --data-dir north --agents 3", "--agents");
    REFUSES(2, "site run f.conf --data-dir north", "site.key", "--key");
    REFUSES(2, "site run", "federation's file");
    REFUSES(2, "site", "keygen, check, run or status");
    REFUSES(2, "site keygen f.conf", "f.conf");
    REFUSES(2, "site stop", "stop");
    REFUSES(1, "site status .", "no site has run here");
    CHECK_OK(ct_file_write("site.json", old, strlen(old)));
    succeeds("site status .");
    CHECK(strstr(said.out,
                 "training when last heard of (it is busy, or does not run), iteration 3") != NULL);
    CHECK(unlink("site.json") == 0);
}

static void algorithms_that_cannot_lose_agents_are_refused(void) {
    NEEDS_ZMQ();
    static const char *const names[] = {"relaysgd", "sgp", "cga", "ngc", "allreduce"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char command[128];
        federation f = {.n = 2, .edges = "0-1", .heartbeat_s = 0.3, .epochs = 1};
        put_federation(&f, "f.conf");
        snprintf(command, sizeof command, "sed -i 's/algorithm ccl/algorithm %s/' f.conf",
                 names[k]);
        CHECK(system(command) == 0);
        run("site check f.conf --key north.key --data-dir north");
        CHECK(said.code == 2 && strstr(said.err, names[k]) != NULL);
        if (said.code != 2) blame("should refuse");
        REFUSES(2, "site run f.conf --key north.key --data-dir north --out none --quiet", names[k]);
    }
}

int main(void) {
    if (!enter_folder() || !prepare_sites()) return 1;
    TEST(three_sites_have_the_bits_of_one_process);
    TEST(packed_rows_of_sites_have_the_bits_of_three_ranks);
    TEST(sites_with_other_class_folders_have_the_right_labels);
    TEST(nobody_on_the_way_can_read_a_model);
    TEST(what_is_written_down_is_what_was_sent);
    TEST(another_federations_file_is_refused_and_named);
    TEST(an_unknown_key_is_refused);
    TEST(a_right_key_under_another_name_is_refused);
    TEST(another_version_of_the_program_is_refused_and_named);
    TEST(five_hundred_strangers_change_no_bit);
    TEST(key_files_are_kept_and_checked);
    TEST(mistakes_in_a_file_are_told_with_their_line);
    TEST(a_file_that_makes_no_federation_is_refused);
    TEST(options_are_named_where_they_belong);
    TEST(algorithms_that_cannot_lose_agents_are_refused);
    remove_tree(".");
    leave_folder();
    return test_report();
}
