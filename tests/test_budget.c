/* What an input may cost, seen from the command line: files that unpack to gigabytes, pipes and
 * devices in the place of files, more agents than samples, and texts that steer a terminal. Each is
 * refused with one line, before memory or time is spent. */
#include "program.h"

#include <sys/stat.h>
#include <zlib.h>

#include "ct_config.h"
#include "util/show.h"
#include "util/text.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW 1 /* it maps terabytes: a limit on addresses says nothing */
#else
#define HAS_SHADOW 0
#endif

/* A run directory with these two files and a summary. */
static void make_run(const char *metrics, const char *config) {
    CHECK_OK(ct_dir_create("made"));
    put("made/metrics.jsonl", metrics);
    put("made/config.txt", config);
    put("made/summary.json", "{\"epoch\": 1}");
}

/* `start`, then n times `each`, packed. */
static void write_packed(const char *path, const char *start, size_t n_start, const char *each,
                         size_t n) {
    char piece[4096];
    size_t length = strlen(each), fit = sizeof piece / length;
    for (size_t k = 0; k < fit * length; k++) piece[k] = each[k % length];
    gzFile f = gzopen(path, "wb9");
    REQUIRE(f != NULL);
    if (n_start > 0) CHECK(gzwrite(f, start, (unsigned)n_start) == (int)n_start);
    for (size_t done = 0; done < n; done += fit) {
        size_t now = n - done < fit ? n - done : fit;
        CHECK(gzwrite(f, piece, (unsigned)(now * length)) == (int)(now * length));
    }
    gzclose(f);
}

/* 20 kB of blank lines would be 20 million rows, and 100 kB of a header 50 million values. */
static void a_file_that_unpacks_to_gigabytes_costs_nothing(void) {
    uint8_t length[8] = {0, 0, 0, 6}; /* 96 MiB */
    char start[16];
    make_run("", "agents = 4\n");
    write_packed("made/metrics.jsonl", "", 0, "\n", 20000000);
    memcpy(start, length, 8);
    memcpy(start + 8, "{\"a\":[0", 8);
    write_packed("bomb.safetensors", start, 15, ",0", 48 << 20);
    memory_limit = HAS_SHADOW ? 0 : (size_t)1 << 30;
    REFUSES(1, "show made", "made/metrics.jsonl", "100 times");
    REFUSES(1, "report made --out made.html", "made/metrics.jsonl", "100 times");
    REFUSES(1, TINY "--init bomb.safetensors --device cpu", "bomb.safetensors", "100 times");
    memory_limit = 0;
    remove("bomb.safetensors");
    remove_tree("made");
}

static void a_run_with_more_options_than_there_are_is_refused(void) {
    CT_SCOPED(ct_text) text = {0};
    for (int k = 0; k < 2000; k++) ct_text_add(&text, "x%d = 1\n", k);
    make_run("{\"epoch\": 1}\n", text.chars);
    REFUSES(1, "report made --out made.html", "made/config.txt", "1024 options");
    remove_tree("made");
}

/* Nothing waits for what a pipe may bring, and nothing is taken from it as if it were a file. */
static void pipes_and_devices_are_no_files(void) {
    static const char *const commands[] = {"topology --config pipe",
                                           "topology --topology file:pipe",
                                           "topology --topology schedule:pipe",
                                           "reproduce ./pipe",
                                           "report pipe --out pipe.html",
                                           "train --dataset pack --data-dir pipe",
                                           "data info pipe --dataset pack",
                                           TINY "--init pipe --device cpu",
                                           TINY "--partition-file pipe --device cpu",
                                           "topology --config /dev/zero",
                                           "train --dataset pack --data-dir /dev/zero",
                                           "report /dev/null --out pipe.html"};
    REQUIRE(mkfifo("pipe", 0600) == 0);
    patience_s = 60;
    for (size_t k = 0; k < sizeof commands / sizeof *commands; k++)
        REFUSES(1, commands[k], "not a plain file");
    CHECK(!ct_file_exists("pipe.html"));
    CHECK(mkdir("made", 0700) == 0 && rename("pipe", "made/summary.json") == 0);
    REFUSES(1, "show made", "made/summary.json: not a plain file");
    patience_s = 0;
    remove_tree("made");
}

/* A ring of 65536 agents takes a minute to measure: nobody waits for that to hear of a mistake. */
static void agents_and_samples_are_counted_first(void) {
    REFUSES(2, "train --agents 2000000000 --out run", "--agents", "2000000000", "65536");
    REFUSES(2, "train --dataset shapes --train-samples 64 --agents 65 --out run", "--agents",
            "65 agents", "64 samples", "--train-samples");
    REFUSES(2, TRAIN DATA "--device cpu --agents 65536 --out run", "65536 agents", "samples");
    REFUSES(2, "train --dataset shapes --train-samples 1000000000 --device cpu --out run", "shapes",
            "1000000000 samples", "5478274");
    CHECK(!ct_dir_exists("run"));
}

static void json_has_as_many_values_as_allowed_and_no_more(void) {
    static const char text[] = "{\"a\": [1, 2], \"b\": {\"c\": 3}}"; /* five below the root */
    ct_json *json = NULL;
    CHECK_FAILS(ct_json_parse_most(text, strlen(text), "text", 4, &json), CT_IO,
                "text: more than the 4 values");
    CHECK_OK(ct_json_parse_most(text, strlen(text), "text", 5, &json));
    CHECK(json != NULL && json->n_children == 2);
    ct_json_free(&json);
}

/* What ct_show makes of a text from a file in "x: <text>\n", against what is expected. */
static void check_shown(const char *text, const char *expected) {
    char got[256] = "";
    FILE *f = tmpfile();
    REQUIRE(f != NULL);
    ct_show(f, "x: %s\n", text);
    ct_show_lines(f, text);
    rewind(f);
    size_t n = fread(got, 1, sizeof got - 1, f);
    got[n] = '\0';
    fclose(f);
    if (strcmp(got, expected) != 0) printf("    '%s' is shown as '%s'\n", text, got);
    CHECK(strcmp(got, expected) == 0);
}

static void what_steers_a_terminal_is_spelled_out(void) {
    check_shown("", "x: \n");
    check_shown("plain\ttext", "x: plain\ttext\nplain\ttext");
    check_shown("gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80", "x: gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80\n"
                                                       "gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80");
    check_shown("\x1b[31m", "x: \\x1b[31m\n\\x1b[31m");
    check_shown("a\nb", "x: a\\x0ab\na\nb"); /* one line stays one */
    check_shown("\1\2\r\x7f", "x: \\x01\\x02\\x0d\\x7f\n\\x01\\x02\\x0d\\x7f");
    check_shown("\xC2\x9B\xC2\xA0", "x: \\u009b\xC2\xA0\n\\u009b\xC2\xA0");
    check_shown("\xE2\x80\xAE\xE2\x81\xA6", "x: \\u202e\\u2066\n\\u202e\\u2066");
    check_shown("\x9B\xC3(\xFF", "x: \\x9b\\xc3(\\xff\n\\x9b\\xc3(\\xff");
}

/* No character of the text but tabs and ends of lines steers a terminal. */
static bool is_tame(const char *text) {
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if ((*c < 32 && *c != '\n' && *c != '\t') || *c == 127) return false;
        if (c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0) return false;
        if (c[0] == 0xE2 && c[1] == 0x80 && c[2] >= 0xA8 && c[2] <= 0xAE) return false;
    }
    return true;
}

static void what_a_file_says_does_not_steer_the_terminal(void) {
    make_run("{\"epoch\": 1}\n", "agents = 4\nalgorithm = a\x1b[31mb\ntopology = r\xE2\x80\xAEng\n"
                                 "partition = x\xC2\x9Bm\n");
    succeeds("show made");
    CHECK(is_tame(said.out) && strstr(said.out, "a\\x1b[31mb") != NULL);
    CHECK(strstr(said.out, "r\\u202eng") != NULL);
    put("made/summary.json", "{\"a\x1b]0;x\x07\": 1}");
    REFUSES(1, "show made", "control character");
    put("x.conf", "title = \x1b[2J\n[row a\x1b[5m]\nlr = \x1b[1m\n");
    REFUSES(1, "reproduce x.conf", "x.conf:3", "\\x1b[1m");
    CHECK(is_tame(said.err));
    put("odd\x1b[31m.txt", "bogus\n");
    char *args[] = {CT_PROGRAM, "topology", "--config", "odd\x1b[31m.txt", NULL};
    pid_t pid = fork();
    if (pid == 0) start(args);
    CHECK(pid > 0 && waitpid(pid, NULL, 0) == pid);
    slurp(".err", said.err);
    CHECK(is_tame(said.err) && n_lines(said.err) == 1);
    CHECK(strstr(said.err, "odd\\x1b[31m.txt:1: 'bogus'") != NULL);
    remove_tree("made");
}

static void names_of_classes_do_not_steer_the_terminal(void) {
    static const char *const names[] = {"set/a\x1b[31m", "set/b\nc"};
    if (!CT_WITH_PNG) SKIP("built without libpng");
    for (int k = 0; k < 2; k++) {
        CHECK_OK(ct_dir_create(names[k]));
        for (int i = 0; i < 2; i++) {
            ct_blob file = {0};
            char path[64];
            snprintf(path, sizeof path, "%s/%d.png", names[k], i);
            REQUIRE_OK(ct_file_read("fixtures/images/rgb.png", 1 << 20, &file));
            CHECK_OK(ct_file_write(path, file.bytes, file.n));
            ct_blob_free(&file);
        }
    }
    succeeds("data info set --test-fraction 0.5");
    CHECK(is_tame(said.out) && strstr(said.out, "a\\x1b[31m\n") != NULL);
    CHECK(strstr(said.out, "b\\x0ac\n") != NULL);
    remove_tree("set");
}

int main(void) {
    if (!enter_folder()) return 1;
    TEST(a_file_that_unpacks_to_gigabytes_costs_nothing);
    TEST(a_run_with_more_options_than_there_are_is_refused);
    TEST(pipes_and_devices_are_no_files);
    TEST(agents_and_samples_are_counted_first);
    TEST(json_has_as_many_values_as_allowed_and_no_more);
    TEST(what_steers_a_terminal_is_spelled_out);
    TEST(what_a_file_says_does_not_steer_the_terminal);
    TEST(names_of_classes_do_not_steer_the_terminal);
    leave_folder();
    return test_report();
}
