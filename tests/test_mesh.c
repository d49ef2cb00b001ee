/* Letters between sites, who is there, and keys (src/site). */
#include "mesh.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ct_config.h"
#include "data_files.h"
#include "util/file.h"

/* ---- letters ---- */

static void letters_arrive_whole_and_in_order_both_ways(void) {
    static const size_t lengths[] = {1,       0,        100, 65536,  65537, 65535,
                                     1 << 20, 40000000, 7,   131072, 5};
    enum { N = sizeof lengths / sizeof *lengths };
    site north, south;
    REQUIRE(open_pair(&north, &south));
    CHECK(next_is(&north, CT_MESH_UP, 0, ""));
    CHECK(next_is(&south, CT_MESH_UP, 0, ""));
    for (unsigned k = 0; k < N; k++) {
        CHECK_OK(send_filled(&north, 0, lengths[k], k));
        CHECK_OK(send_filled(&south, 0, lengths[N - 1 - k], k));
    }
    for (unsigned k = 0; k < N; k++) {
        CHECK(has_letter(&south, 0, lengths[k], k));
        CHECK(has_letter(&north, 0, lengths[N - 1 - k], k));
    }
    ct_mesh_traffic t = ct_mesh_traffic_of(north.mesh, 0);
    CHECK(t.letters_sent == N && t.letters_received == N && t.bytes_sent == t.bytes_received);
    CHECK(t.framed_sent > t.bytes_sent && (double)t.framed_sent < 1.005 * (double)t.bytes_sent);
    EVENTUALLY(&north, ct_mesh_traffic_of(north.mesh, 0).rtt_s > 0);
    close_pair(&north, &south);
}

static void letters_that_nobody_takes_wait_and_none_is_lost(void) {
    enum { N = 2000 };
    site north, south;
    unsigned n_sent = 0, n_busy = 0;
    REQUIRE(open_pair(&north, &south));
    CHECK(next_is(&north, CT_MESH_UP, 0, ""));
    while (n_sent < N && n_busy == 0) {
        ct_status status = send_filled(&north, 0, 5000, n_sent);
        n_busy += status == CT_BUSY;
        n_sent += status == CT_OK;
    }
    CHECK(n_busy == 1);
    for (double until = ct_seconds() + 5 * BEAT_S; ct_seconds() < until;)
        ct_mesh_wait(north.mesh, BEAT_S); /* the peer computes; nobody is cut off */
    CHECK(ct_mesh_is_up(north.mesh, 0) && ct_mesh_is_up(south.mesh, 0));
    for (unsigned k = 0; k < N; k++) {
        CHECK(has_letter(&south, 0, 5000, k));
        while (n_sent < N && send_filled(&north, 0, 5000, n_sent) == CT_OK) n_sent++;
        if (test_failed) break;
    }
    CHECK(n_sent == N);
    close_pair(&north, &south);
}

static void letters_that_cannot_be_sent_are_refused(void) {
    site north, south;
    describe(&north, NORTH);
    add_peer(&north, SOUTH, NULL);
    REQUIRE_OK(open_site(&north));
    CHECK_FAILS(send_filled(&north, 0, 1, 0), CT_IO, "south is not connected");
    describe(&south, SOUTH)->options.max_letter_bytes = 1000;
    add_peer(&south, NORTH, &north);
    REQUIRE_OK(open_site(&south));
    CHECK(next_is(&north, CT_MESH_UP, 0, ""));
    CHECK_FAILS(send_filled(&north, 0, 1001, 0), CT_INVAL, "south takes 1000 at most");
    CHECK_OK(send_filled(&north, 0, 1000, 0));
    CHECK(has_letter(&south, 0, 1000, 0));
    CHECK_FAILS(send_filled(&south, 0, 1001, 0), CT_INVAL, "takes 1000");
    close_pair(&north, &south);
}

static void the_last_letter_of_a_site_that_leaves_can_be_read(void) {
    for (int dialler_leaves = 0; dialler_leaves < 2; dialler_leaves++) {
        site north, south;
        REQUIRE(open_pair(&north, &south));
        site *leaves = dialler_leaves ? &south : &north, *stays = dialler_leaves ? &north : &south;
        CHECK(next_is(leaves, CT_MESH_UP, 0, ""));
        CHECK(next_is(stays, CT_MESH_UP, 0, ""));
        CHECK_OK(send_filled(leaves, 0, 3000000, 1));
        CHECK_OK(send_filled(leaves, 0, 10, 2));
        ct_mesh_close(&leaves->mesh);
        CHECK(next_is(stays, CT_MESH_DOWN, 0, "left"));
        CHECK(!ct_mesh_is_up(stays->mesh, 0));
        CHECK(has_letter(stays, 0, 3000000, 1));
        CHECK(has_letter(stays, 0, 10, 2));
        ct_mesh_close(&stays->mesh);
    }
}

static void a_letter_at_hand_stays_when_its_connection_ends(void) {
    site north, south;
    ct_letter l;
    REQUIRE(open_pair(&north, &south));
    CHECK(next_is(&south, CT_MESH_UP, 0, ""));
    CHECK_OK(send_filled(&south, 0, 100000, 9));
    CHECK_OK(send_filled(&south, 0, 10, 10));
    EVENTUALLY(&north, ct_mesh_peek(north.mesh, 0, &l));
    ct_mesh_refuse(north.mesh, 0, "too good to be true");
    EVENTUALLY(&north, !ct_mesh_is_up(north.mesh, 0));
    CHECK(((const uint8_t *)l.bytes)[99999] == byte_at(99999, 9)); /* the sanitizers look on */
    EVENTUALLY(&north, ct_mesh_is_up(north.mesh, 0));
    EVENTUALLY(&south, ct_mesh_is_up(south.mesh, 0));
    CHECK_OK(send_filled(&south, 0, 20, 11));
    ct_letter next;
    EVENTUALLY(&north, ct_mesh_peek(north.mesh, 0, &next));
    CHECK(((const uint8_t *)l.bytes)[99999] == byte_at(99999, 9));
    CHECK(next.n == 20);
    CHECK(has_letter(&north, 0, 20, 11));
    close_pair(&north, &south);
}

static void a_refused_letter_cuts_its_sender_off_for_a_while(void) {
    site north, south;
    REQUIRE(open_pair(&north, &south));
    CHECK(next_is(&north, CT_MESH_UP, 0, ""));
    CHECK(next_is(&south, CT_MESH_UP, 0, ""));
    ct_mesh_refuse(north.mesh, 0, "a model of nan");
    CHECK(next_is(&north, CT_MESH_REFUSED, 0, "south broke the rules: a model of nan"));
    CHECK(next_is(&north, CT_MESH_DOWN, 0, ""));
    CHECK(next_is(&south, CT_MESH_REFUSED, 0,
                  "north refuses us: south broke the rules: a model of nan"));
    CHECK(next_is(&south, CT_MESH_DOWN, 0, ""));
    CHECK(next_is(&north, CT_MESH_UP, 0, ""));
    close_pair(&north, &south);
}

static void every_neighbour_hears_the_status(void) {
    static uint8_t bytes[CT_MESH_STATUS], heard[CT_MESH_STATUS];
    site north, south;
    size_t n = 1;
    REQUIRE(open_pair(&north, &south));
    CHECK(next_is(&south, CT_MESH_UP, 0, ""));
    ct_mesh_status_of(south.mesh, 0, heard, &n);
    CHECK(n == 0);
    for (size_t k = 0; k < sizeof bytes; k++) bytes[k] = byte_at(k, 5);
    CHECK_OK(ct_mesh_set_status(north.mesh, "hello", 5));
    EVENTUALLY(&south, (ct_mesh_status_of(south.mesh, 0, heard, &n), n == 5));
    CHECK(memcmp(heard, "hello", 5) == 0);
    CHECK_OK(ct_mesh_set_status(north.mesh, bytes, sizeof bytes));
    EVENTUALLY(&south, (ct_mesh_status_of(south.mesh, 0, heard, &n), n == sizeof bytes));
    CHECK(memcmp(heard, bytes, n) == 0);
    CHECK_FAILS(ct_mesh_set_status(north.mesh, bytes, sizeof bytes + 1), CT_INVAL, "65536 at most");
    CHECK_OK(ct_mesh_set_status(north.mesh, bytes, 0));
    EVENTUALLY(&south, (ct_mesh_status_of(south.mesh, 0, heard, &n), n == 0));
    close_pair(&north, &south);
}

/* ---- who may talk to whom ---- */

/* South differs from north in one thing; both say so, and east talks to north all the while. */
static void check_refused(void (*change)(site *south), const char *said_by_north,
                          const char *said_by_south) {
    site north, south, east;
    describe(&north, NORTH);
    add_peer(&north, EAST, NULL);
    add_peer(&north, SOUTH, NULL);
    REQUIRE_OK(open_site(&north));
    add_peer(describe(&south, SOUTH), NORTH, &north);
    change(&south);
    add_peer(describe(&east, EAST), NORTH, &north);
    REQUIRE_OK(open_site(&east));
    CHECK(next_is(&north, CT_MESH_UP, 0, ""));
    REQUIRE_OK(open_site(&south));
    ct_mesh_event e;
    CHECK(next_is(&south, CT_MESH_REFUSED, 0, said_by_south));
    double until = ct_seconds() + MINUTE_S;
    while (!ct_mesh_next_event(north.mesh, &e) && ct_seconds() < until)
        ct_mesh_wait(north.mesh, 0.1);
    CHECK(e.kind == CT_MESH_REFUSED && strstr(e.text, said_by_north) != NULL);
    if (test_failed) printf("    %d %d %s\n", (int)e.kind, e.peer, e.text);
    EVENTUALLY(&east, ct_mesh_is_up(east.mesh, 0));
    CHECK_OK(send_filled(&east, 0, 1000000, 1));
    CHECK(has_letter(&north, 0, 1000000, 1));
    for (until = ct_seconds() + 8 * BEAT_S; ct_seconds() < until;) ct_mesh_wait(north.mesh, BEAT_S);
    CHECK(!ct_mesh_next_event(north.mesh, &e)); /* it is told once, not at every try */
    CHECK(!ct_mesh_is_up(north.mesh, 1) && !ct_mesh_is_up(south.mesh, 0));
    CHECK(ct_mesh_is_up(north.mesh, 0));
    close_pair(&north, &south);
    ct_mesh_close(&east.mesh);
}

static void take_other_key(site *south) {
    south->options.key = &keys[WEST];
}

static void take_other_name(site *south) {
    south->options.name = "centre";
}

static void take_other_federation(site *south) {
    south->options.federation[0] = 0x1a;
}

static void take_other_program(site *south) {
    south->options.program = "crosstalk 2";
}

static void expect_other_key(site *south) {
    memcpy(south->peers[0].key, keys[WEST].public_key, CT_KEY_BYTES);
}

static void an_unknown_key_is_refused(void) {
    check_refused(take_other_key, "a stranger at 127.0.0.1 was refused: no site has its key",
                  "does not know our key");
}

static void a_known_key_under_another_name_is_refused(void) {
    check_refused(take_other_name, "a site that calls itself centre has the key of south",
                  "north refuses us: a site that calls itself centre");
}

static void another_federation_is_refused(void) {
    check_refused(take_other_federation,
                  "south holds another federation file (1a000000.., ours is 00",
                  "north holds another federation file (00000000.., ours is 1a");
}

static void another_program_is_refused(void) {
    check_refused(take_other_program, "south runs crosstalk 2, we run crosstalk 1",
                  "north runs crosstalk 1, we run crosstalk 2");
}

static void a_listener_with_another_key_is_not_trusted(void) {
    site north, south;
    describe(&north, NORTH);
    add_peer(&north, SOUTH, NULL);
    REQUIRE_OK(open_site(&north));
    add_peer(describe(&south, SOUTH), NORTH, &north);
    expect_other_key(&south);
    REQUIRE_OK(open_site(&south));
    CHECK(next_is(&south, CT_MESH_REFUSED, 0, "is no site, or has another key than that of north"));
    CHECK(!ct_mesh_is_up(north.mesh, 0) && !ct_mesh_is_up(south.mesh, 0));
    close_pair(&north, &south);
}

static void a_site_that_was_mended_is_let_in(void) {
    site north, south;
    describe(&north, NORTH);
    add_peer(&north, SOUTH, NULL);
    REQUIRE_OK(open_site(&north));
    add_peer(describe(&south, SOUTH), NORTH, &north);
    take_other_program(&south);
    REQUIRE_OK(open_site(&south));
    CHECK(next_is(&north, CT_MESH_REFUSED, 0, "crosstalk 2"));
    ct_mesh_close(&south.mesh);
    south.options.program = "crosstalk 1";
    REQUIRE_OK(open_site(&south));
    CHECK(next_is(&north, CT_MESH_UP, 0, ""));
    close_pair(&north, &south);
}

static void an_address_that_is_taken_is_refused(void) {
    site north, south;
    describe(&north, NORTH);
    add_peer(&north, SOUTH, NULL);
    REQUIRE_OK(open_site(&north));
    describe(&south, SOUTH);
    add_peer(&south, NORTH, NULL);
    snprintf(south.listen, sizeof south.listen, "127.0.0.1:%d", ct_mesh_port(north.mesh));
    CHECK_FAILS(open_site(&south), CT_IO, "cannot listen at 127.0.0.1:");
    snprintf(south.listen, sizeof south.listen, "nonsense");
    CHECK_FAILS(open_site(&south), CT_IO, "cannot listen at nonsense");
    ct_mesh_close(&north.mesh);
}

static void names_of_hosts_are_looked_up(void) {
    site north, south;
    describe(&north, NORTH);
    add_peer(&north, SOUTH, NULL);
    REQUIRE_OK(open_site(&north));
    add_peer(describe(&south, SOUTH), NORTH, &north);
    snprintf(south.peers[0].address, sizeof south.peers[0].address, "localhost:%d",
             ct_mesh_port(north.mesh));
    REQUIRE_OK(open_site(&south));
    CHECK(next_is(&south, CT_MESH_UP, 0, ""));
    ct_mesh_close(&south.mesh);
    snprintf(south.peers[0].address, sizeof south.peers[0].address, "north.invalid:%d",
             ct_mesh_port(north.mesh));
    REQUIRE_OK(open_site(&south));
    CHECK(next_is(&south, CT_MESH_REFUSED, 0, "north cannot be dialled: north.invalid: "));
    close_pair(&north, &south);
}

/* ---- who is there ---- */

/* A process that is south, and ends when it is told so, or killed. Started before there are threads:
 * it learns north's port later. */
typedef struct child {
    pid_t pid;
    int to;
} child;

static child start_south(void) {
    int ends[2];
    child c = {.pid = -1, .to = -1};
    if (pipe(ends) != 0) return c;
    c = (child){.pid = fork(), .to = ends[1]};
    if (c.pid != 0) {
        close(ends[0]);
        return c;
    }
    site south;
    int port = 0;
    char end;
    close(ends[1]);
    if (read(ends[0], &port, sizeof port) != sizeof port) _exit(0);
    add_peer(describe(&south, SOUTH), NORTH, NULL);
    south.peers[0].dials = true;
    snprintf(south.peers[0].address, sizeof south.peers[0].address, "127.0.0.1:%d", port);
    if (open_site(&south) != CT_OK) _exit(1);
    while (read(ends[0], &end, 1) < 0) continue;
    ct_mesh_close(&south.mesh);
    _exit(0);
}

static void tell_port(const child *c, const site *north) {
    int port = ct_mesh_port(north->mesh);
    CHECK(write(c->to, &port, sizeof port) == sizeof port);
}

static void end_child(child *c, int signal) {
    if (signal != 0) kill(c->pid, signal);
    close(c->to);
    waitpid(c->pid, NULL, 0);
}

static void a_site_that_is_killed_is_gone_until_it_comes_back(void) {
    child first = start_south(), second = start_south();
    site north;
    describe(&north, NORTH);
    add_peer(&north, SOUTH, NULL);
    REQUIRE(first.pid > 0 && second.pid > 0);
    REQUIRE_OK(open_site(&north));
    tell_port(&first, &north);
    CHECK(next_is(&north, CT_MESH_UP, 0, ""));
    CHECK_OK(send_filled(&north, 0, 40000000, 0));
    end_child(&first, SIGKILL);
    CHECK(next_is(&north, CT_MESH_DOWN, 0, ""));
    CHECK_FAILS(send_filled(&north, 0, 1, 0), CT_IO, "not connected");
    tell_port(&second, &north);
    CHECK(next_is(&north, CT_MESH_UP, 0, ""));
    end_child(&second, 0);
    CHECK(next_is(&north, CT_MESH_DOWN, 0, "left"));
    ct_mesh_close(&north.mesh);
}

static void a_site_that_hangs_is_gone_until_it_goes_on(void) {
    child c = start_south();
    site north;
    describe(&north, NORTH);
    add_peer(&north, SOUTH, NULL);
    REQUIRE(c.pid > 0);
    REQUIRE_OK(open_site(&north));
    tell_port(&c, &north);
    CHECK(next_is(&north, CT_MESH_UP, 0, ""));
    kill(c.pid, SIGSTOP); /* its connections stay, and its system takes what we send */
    CHECK(next_is(&north, CT_MESH_DOWN, 0, "silent for 0.6 s"));
    kill(c.pid, SIGCONT);
    CHECK(next_is(&north, CT_MESH_UP, 0, ""));
    CHECK_OK(send_filled(&north, 0, 40000000, 0));
    kill(c.pid, SIGSTOP);
    double began = ct_seconds();
    ct_mesh_close(&north.mesh); /* what was left is not waited for in vain: three heartbeats */
    CHECK(ct_seconds() - began < 10);
    end_child(&c, SIGKILL);
}

static void a_listener_that_dies_is_dialled_until_it_is_back(void) {
    site north, south;
    REQUIRE(open_pair(&north, &south));
    CHECK(next_is(&south, CT_MESH_UP, 0, ""));
    CHECK(next_is(&north, CT_MESH_UP, 0, ""));
    for (unsigned k = 0; k < 3; k++) { /* what was taken then does not count later */
        CHECK_OK(send_filled(&north, 0, 100000, k));
        CHECK_OK(send_filled(&south, 0, 100000, k));
        CHECK(has_letter(&north, 0, 100000, k));
        CHECK(k == 2 || has_letter(&south, 0, 100000, k));
    }
    snprintf(north.listen, sizeof north.listen, "127.0.0.1:%d", ct_mesh_port(north.mesh));
    ct_mesh_close(&north.mesh);
    CHECK(next_is(&south, CT_MESH_DOWN, 0, "left"));
    CHECK(has_letter(&south, 0, 100000, 2));
    for (double until = ct_seconds() + 6 * BEAT_S; ct_seconds() < until;)
        ct_mesh_wait(south.mesh, BEAT_S);
    REQUIRE_OK(open_site(&north));
    CHECK(next_is(&south, CT_MESH_UP, 0, ""));
    CHECK(next_is(&north, CT_MESH_UP, 0, ""));
    close_pair(&north, &south);
}

/* ---- what it costs ---- */

static int n_entries(const char *dir) {
    int n = 0;
    DIR *d = opendir(dir);
    while (d != NULL && readdir(d) != NULL) n++;
    if (d != NULL) closedir(d);
    return n;
}

static void meshes_leave_no_descriptors_and_no_threads(void) {
    int n_fds = n_entries("/proc/self/fd"), n_threads = n_entries("/proc/self/task");
    for (int k = 0; k < 25; k++) {
        site north, south;
        REQUIRE(open_pair(&north, &south));
        if (k % 3 != 0) CHECK(next_is(&north, CT_MESH_UP, 0, ""));
        if (k % 3 == 2) CHECK_OK(send_filled(&north, 0, 100000, 0));
        close_pair(k % 2 ? &north : &south, k % 2 ? &south : &north);
    }
    CHECK(n_entries("/proc/self/fd") == n_fds);
    CHECK(n_entries("/proc/self/task") == n_threads);
}

static double cpu_seconds(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void nobody_works_while_nothing_happens(void) {
    site north, south;
    REQUIRE(open_pair(&north, &south));
    CHECK(next_is(&north, CT_MESH_UP, 0, ""));
    CHECK(next_is(&south, CT_MESH_UP, 0, ""));
    double before = cpu_seconds(), began = ct_seconds();
    while (ct_seconds() - began < 1) ct_mesh_wait(north.mesh, 1);
    CHECK(cpu_seconds() - before < 0.1);
    close_pair(&north, &south);
}

static ct_mesh *to_wake;

static void on_alarm(int number) {
    (void)number;
    ct_mesh_wake(to_wake);
}

static void a_signal_handler_can_end_the_waiting(void) {
    site north;
    describe(&north, NORTH);
    add_peer(&north, SOUTH, NULL);
    REQUIRE_OK(open_site(&north));
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART}, before;
    to_wake = north.mesh;
    sigaction(SIGALRM, &action, &before);
    raise(SIGALRM); /* before the wait: it is not forgotten */
    double began = ct_seconds();
    ct_mesh_wait(north.mesh, MINUTE_S);
    alarm(1);
    ct_mesh_wait(north.mesh, MINUTE_S);
    CHECK(ct_seconds() - began < MINUTE_S);
    sigaction(SIGALRM, &before, NULL);
    ct_mesh_close(&north.mesh);
}

/* ---- keys ---- */

static void keys_are_written_once_and_read_back(void) {
    ct_key_pair read;
    const char *path = in_scratch("north.key");
    struct stat info;
    CHECK_OK(ct_keys_write(&keys[NORTH], path));
    REQUIRE(stat(path, &info) == 0);
    CHECK((info.st_mode & 0777) == 0600);
    CHECK_OK(ct_keys_read(path, &read));
    CHECK(memcmp(&read, &keys[NORTH], sizeof read) == 0);
    CHECK_FAILS(ct_keys_write(&keys[SOUTH], path), CT_IO, "never overwritten");
    CHECK_OK(ct_keys_read(path, &read));
    CHECK(ct_keys_equal(read.public_key, keys[NORTH].public_key));
    CHECK(!ct_keys_equal(read.public_key, keys[SOUTH].public_key));
    CHECK(chmod(path, 0640) == 0);
    CHECK_FAILS(ct_keys_read(path, &read), CT_IO, "others can read this secret key (mode 640)");
    CHECK_FAILS(ct_keys_read(in_scratch("none.key"), &read), CT_IO, "none.key");
}

/* Every byte of a key file in turn is another one: no other key is ever read. */
static void damaged_keys_are_refused(void) {
    const char *path = in_scratch("damaged.key");
    CHECK_OK(ct_keys_write(&keys[NORTH], path));
    ct_blob good = {0};
    ct_key_pair read;
    int n_refused = 0;
    REQUIRE_OK(ct_file_read(path, 4096, &good));
    for (size_t k = 0; k <= good.n; k++) {
        uint8_t was = good.bytes[k];
        good.bytes[k] = was == '0' ? '1' : '0';
        int fd = open(path, O_WRONLY | O_TRUNC);
        REQUIRE(fd >= 0);
        CHECK(write(fd, good.bytes, good.n - (k == good.n)) > 0); /* the last one is cut instead */
        close(fd);
        ct_status status = CT_CATCH(NULL, ct_keys_read(path, &read));
        /* Within the comment, or a bit of the secret that Curve25519 does not use: the same key. */
        CHECK(status == CT_IO ||
              (status == CT_OK && ct_keys_equal(read.public_key, keys[NORTH].public_key)));
        n_refused += status == CT_IO;
        good.bytes[k] = was;
    }
    CHECK(n_refused >= 2 * (6 + 60));
    ct_blob_free(&good);
}

static void keys_are_64_digits_and_nothing_else(void) {
    char text[CT_KEY_TEXT + 1];
    uint8_t key[CT_KEY_BYTES];
    ct_key_print(keys[EAST].public_key, text);
    CHECK(strlen(text) == 64);
    CHECK(ct_key_parse(text, key) && ct_keys_equal(key, keys[EAST].public_key));
    text[10] = 'g';
    CHECK(!ct_key_parse(text, key));
    ct_key_print(keys[EAST].public_key, text);
    text[63] = '\0';
    CHECK(!ct_key_parse(text, key));
    memcpy(text + 63, "00", 3);
    CHECK(!ct_key_parse(text, key));
    CHECK(!ct_key_parse("", key));
}

static void run_tests(void) {
    beat_s = 2; /* nobody is to go, however busy the machine is */
    TEST(letters_arrive_whole_and_in_order_both_ways);
    TEST(letters_that_nobody_takes_wait_and_none_is_lost);
    beat_s = BEAT_S;
    TEST(letters_that_cannot_be_sent_are_refused);
    TEST(the_last_letter_of_a_site_that_leaves_can_be_read);
    TEST(a_letter_at_hand_stays_when_its_connection_ends);
    TEST(a_refused_letter_cuts_its_sender_off_for_a_while);
    TEST(every_neighbour_hears_the_status);
    TEST(an_unknown_key_is_refused);
    TEST(a_known_key_under_another_name_is_refused);
    TEST(another_federation_is_refused);
    TEST(another_program_is_refused);
    TEST(a_listener_with_another_key_is_not_trusted);
    TEST(a_site_that_was_mended_is_let_in);
    TEST(an_address_that_is_taken_is_refused);
    TEST(names_of_hosts_are_looked_up);
    TEST(a_site_that_is_killed_is_gone_until_it_comes_back);
    TEST(a_site_that_hangs_is_gone_until_it_goes_on);
    TEST(a_listener_that_dies_is_dialled_until_it_is_back);
    TEST(meshes_leave_no_descriptors_and_no_threads);
    TEST(nobody_works_while_nothing_happens);
    TEST(a_signal_handler_can_end_the_waiting);
    TEST(keys_are_written_once_and_read_back);
    TEST(damaged_keys_are_refused);
    TEST(keys_are_64_digits_and_nothing_else);
}

static void a_build_without_libzmq_says_so(void) {
    ct_mesh *mesh = NULL;
    ct_mesh_options options = {.name = "north", .program = "1", .max_letter_bytes = 1};
    if (CT_WITH_ZMQ) SKIP("this build has it");
    CHECK_FAILS(ct_mesh_open(&options, &mesh), CT_NOTBUILT, "-DCT_WITH_ZMQ=ON");
    CHECK_FAILS(ct_keys_make(&keys[0]), CT_NOTBUILT, "-DCT_WITH_ZMQ=ON");
}

int main(void) {
    TEST(a_build_without_libzmq_says_so);
    scratch_open();
    if (CT_WITH_ZMQ && make_keys()) run_tests();
    scratch_close();
    return test_report();
}
