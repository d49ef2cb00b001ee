/* What src/util promises: random numbers, text, JSON, sparse matrices, threads. Files and tensors
 * are in test_file.c. */
#include "test.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/json.h"
#include "util/memory.h"
#include "util/rng.h"
#include "util/sparse.h"
#include "util/text.h"
#include "util/threads.h"

/* Known answers of the Random123 distribution (kat_vectors, philox4x32 10). */
static void philox_gives_the_published_numbers(void) {
    static const uint32_t cases[3][10] = {
        /* counter [4], key [2], out [4] */
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1},
    };
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        ct_philox(cases[i], cases[i] + 4, out);
        CHECK(memcmp(out, cases[i] + 6, sizeof out) == 0);
    }
}

static void the_same_stream_name_gives_the_same_numbers(void) {
    ct_rng a, b;
    ct_rng_init(&a, 7, CT_RNG_TEST, 1, 2, 3);
    ct_rng_init(&b, 7, CT_RNG_TEST, 1, 2, 3);
    for (int i = 0; i < 100; i++) CHECK(ct_rng_u32(&a) == ct_rng_u32(&b));
}

static void streams_of_different_names_differ(void) {
    ct_rng r[6];
    ct_rng_init(&r[0], 7, CT_RNG_TEST, 1, 2, 3);
    ct_rng_init(&r[1], 8, CT_RNG_TEST, 1, 2, 3);
    ct_rng_init(&r[2], 7, CT_RNG_SPLIT, 1, 2, 3);
    ct_rng_init(&r[3], 7, CT_RNG_TEST, 2, 2, 3);
    ct_rng_init(&r[4], 7, CT_RNG_TEST, 1, 3, 3);
    ct_rng_init(&r[5], 7, CT_RNG_TEST, 1, 2, 4);
    uint32_t first[6];
    for (int i = 0; i < 6; i++) first[i] = ct_rng_u32(&r[i]);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < i; j++) CHECK(first[i] != first[j]);
}

static void uniform_numbers_are_uniform(void) {
    enum { N = 200000, N_BINS = 20 };
    ct_rng rng;
    ct_rng_init(&rng, 1, CT_RNG_TEST, 0, 0, 0);
    int bins[N_BINS] = {0};
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        double u = ct_rng_uniform(&rng);
        REQUIRE(u >= 0.0 && u < 1.0);
        bins[(int)(u * N_BINS)]++;
        sum += u;
        squares += u * u;
    }
    /* Five standard errors: sqrt(1/12/N) = 6.5e-4, and sqrt(4/45/N) = 6.7e-4 for the squares. */
    CHECK_NEAR(sum / N, 0.5, 3.3e-3);
    CHECK_NEAR(squares / N, 1.0 / 3.0, 3.4e-3);
    double chi_squared = 0, expected = (double)N / N_BINS;
    for (int i = 0; i < N_BINS; i++)
        chi_squared += (bins[i] - expected) * (bins[i] - expected) / expected;
    CHECK(chi_squared < 54.0); /* 19 degrees of freedom: exceeded once in 30,000 seeds */
}

static void numbers_below_n_are_all_reached_equally(void) {
    enum { N = 70000 };
    ct_rng rng;
    ct_rng_init(&rng, 2, CT_RNG_TEST, 0, 0, 0);
    int bins[7] = {0};
    for (int i = 0; i < N; i++) {
        uint32_t k = ct_rng_below(&rng, 7);
        REQUIRE(k < 7);
        bins[k]++;
    }
    for (int i = 0; i < 7; i++) CHECK_NEAR(bins[i], 10000, 465); /* five deviations of 93 */
    CHECK(ct_rng_below(&rng, 1) == 0);
}

static void normal_numbers_have_their_moments(void) {
    enum { N = 200000 };
    ct_rng rng;
    ct_rng_init(&rng, 3, CT_RNG_TEST, 0, 0, 0);
    double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
    for (int i = 0; i < N; i++) {
        double x = ct_rng_normal(&rng);
        m1 += x;
        m2 += x * x;
        m3 += x * x * x;
        m4 += x * x * x * x;
    }
    /* Five standard errors: the moments' variances are 1, 2, 15 and 96. */
    CHECK_NEAR(m1 / N, 0.0, 0.0112);
    CHECK_NEAR(m2 / N, 1.0, 0.0159);
    CHECK_NEAR(m3 / N, 0.0, 0.0434);
    CHECK_NEAR(m4 / N, 3.0, 0.11);
}

static void gamma_numbers_have_their_mean(void) {
    enum { N = 100000 };
    static const double shapes[] = {0.01, 0.1, 1.0, 10.0};
    for (int k = 0; k < 4; k++) {
        ct_rng rng;
        ct_rng_init(&rng, 4, CT_RNG_TEST, 0, 0, (uint32_t)k);
        double sum = 0;
        for (int i = 0; i < N; i++) {
            double log_gamma = ct_rng_log_gamma(&rng, shapes[k]);
            REQUIRE(isfinite(log_gamma));
            sum += exp(log_gamma);
        }
        CHECK_NEAR(sum / N, shapes[k], 5 * sqrt(shapes[k] / N)); /* mean = variance = shape */
    }
}

static void a_shuffle_is_a_permutation(void) {
    enum { N = 1000 };
    uint32_t items[N];
    bool seen[N] = {false};
    ct_rng rng;
    ct_rng_init(&rng, 5, CT_RNG_TEST, 0, 0, 0);
    for (uint32_t i = 0; i < N; i++) items[i] = i;
    ct_rng_shuffle(&rng, items, N);
    int n_at_home = 0;
    for (uint32_t i = 0; i < N; i++) {
        REQUIRE(items[i] < N && !seen[items[i]]);
        seen[items[i]] = true;
        n_at_home += items[i] == i;
    }
    CHECK(n_at_home < 10); /* one is expected */
    ct_rng_shuffle(&rng, items, 0);
    ct_rng_shuffle(&rng, items, 1);
}

static void every_order_of_three_is_equally_likely(void) {
    int counts[27] = {0};
    ct_rng rng;
    ct_rng_init(&rng, 6, CT_RNG_TEST, 0, 0, 0);
    for (int i = 0; i < 60000; i++) {
        uint32_t items[3] = {0, 1, 2};
        ct_rng_shuffle(&rng, items, 3);
        counts[items[0] * 9 + items[1] * 3 + items[2]]++;
    }
    int n_orders = 0;
    for (int i = 0; i < 27; i++) {
        if (counts[i] == 0) continue;
        n_orders++;
        CHECK_NEAR(counts[i], 10000, 457); /* five deviations */
    }
    CHECK(n_orders == 6);
}

static void whole_numbers_are_parsed_whole(void) {
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"-17", -17},
                {"+8", 8},
                {" 42 ", 42},
                {"007", 7},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN}};
    static const char *const bad[] = {"",
                                      " ",
                                      "8x",
                                      "x8",
                                      "1 2",
                                      "nan",
                                      "0x10",
                                      "1.0",
                                      "1e3",
                                      "-",
                                      "+-1",
                                      "- 1",
                                      "9223372036854775808",
                                      "--1"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t value = -1;
        CHECK(ct_parse_i64(good[i].text, &value) && value == good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t value = 99;
        CHECK(!ct_parse_i64(bad[i], &value) && value == 99);
    }
}

static void doubles_are_parsed_whole(void) {
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0},  {"-1.5", -1.5}, {"1e-4", 1e-4},   {" .5 ", 0.5},
                {"5.", 5}, {"+2E+3", 2e3}, {"1e308", 1e308}, {"1e-999", 0}};
    static const char *const bad[] = {"",         " ",     "8x",     "nan",   "inf", "-inf",
                                      "infinity", "1e999", "-1e999", "0x1p3", "1e",  ".",
                                      "e5",       "1e+",   "1,5",    "1 2",   "+-1"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double value = -1;
        CHECK(ct_parse_double(good[i].text, &value) && value == good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double value = 99;
        CHECK(!ct_parse_double(bad[i], &value) && value == 99);
    }
}

static void yes_and_no_have_four_spellings(void) {
    static const char *const yes[] = {"on", "true", "yes", "1"};
    static const char *const no[] = {"off", "false", "no", "0"};
    for (int i = 0; i < 4; i++) {
        bool value = false;
        CHECK(ct_parse_bool(yes[i], &value) && value);
        CHECK(ct_parse_bool(no[i], &value) && !value);
    }
    bool value = true;
    CHECK(!ct_parse_bool("", &value) && !ct_parse_bool("maybe", &value) && value);
}

static void text_grows(void) {
    ct_text text = {0};
    for (int i = 0; i < 5000; i++) ct_text_add(&text, "%d,", i % 10);
    CHECK_OK(ct_text_status(&text));
    CHECK(text.n == 10000 && strlen(text.chars) == 10000 && text.chars[9998] == '9');
    ct_text_free(&text);
    CHECK(text.chars == NULL && text.n == 0);
    ct_text_free(&text);
}

static ct_status join_field(void *context, const char *field) {
    if (strcmp(field, "stop") == 0) return ct_fail(CT_INVAL, "stopped");
    ct_text_add(context, "[%s]", field);
    return CT_OK;
}

static void lists_are_split_at_commas(void) {
    static const char *const cases[][2] = {
        {"a", "[a]"}, {" a , b c ,d", "[a][b c][d]"}, {"a,,b", "[a][][b]"}, {"a,", "[a][]"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ct_text joined = {0};
        CHECK_OK(ct_split(cases[i][0], join_field, &joined));
        CHECK(joined.chars != NULL && strcmp(joined.chars, cases[i][1]) == 0);
        ct_text_free(&joined);
    }
    ct_text joined = {0};
    CHECK_OK(ct_split(" ", join_field, &joined));
    CHECK(joined.n == 0);
    CHECK_FAILS(ct_split("a,stop,b", join_field, &joined), CT_INVAL, "stopped");
    CHECK(strcmp(joined.chars, "[a]") == 0);
    ct_text_free(&joined);
}

static void edits_are_counted(void) {
    CHECK(ct_edit_distance("", "") == 0);
    CHECK(ct_edit_distance("ring", "ring") == 0);
    CHECK(ct_edit_distance("rnig", "ring") == 2);
    CHECK(ct_edit_distance("kitten", "sitting") == 3);
    CHECK(ct_edit_distance("", "abc") == 3 && ct_edit_distance("abc", "") == 3);
}

static void json_accepts_what_the_standard_allows(void) {
    static const char *const good[] = {"null",
                                       " true ",
                                       "false",
                                       "0",
                                       "-0",
                                       "-1.5e+3",
                                       "1E5",
                                       "\"\"",
                                       "[]",
                                       "{}",
                                       "[[],{}]",
                                       "\t[1 ,\n2\r]",
                                       "{\"a\":1,\"b\":[true,null,\"x\"]}",
                                       "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
                                       "\"\\u00e9\\ud83d\\ude00\"",
                                       "\"\xc3\xa9 \xf0\x9f\x98\x80\"",
                                       "{\"\":0}",
                                       "\"\x7f\"",
                                       "0.1",
                                       "1e-999"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ct_json *json = NULL;
        CHECK_OK(ct_json_parse(good[i], strlen(good[i]), "text", &json));
        ct_json_free(&json);
    }
}

static const char *const bad_json[] = {"",
                                       " ",
                                       "nul",
                                       "nulll",
                                       "True",
                                       "NaN",
                                       "Infinity",
                                       "01",
                                       "-",
                                       "+1",
                                       ".5",
                                       "1.",
                                       "1e",
                                       "1e+",
                                       "0x10",
                                       "1e999",
                                       "-1e999",
                                       "\"",
                                       "\"a",
                                       "\"\\",
                                       "\"\\x\"",
                                       "\"\\u12\"",
                                       "\"\\u12g4\"",
                                       "\"\\u0000\"",
                                       "\"\\ud800\"",
                                       "\"\\ud800x\"",
                                       "\"\\ud800\\u0041\"",
                                       "\"\\udc00\"",
                                       "\"\n\"",
                                       "\"\x01\"",
                                       "\"\xff\"",
                                       "\"\xc3\"",
                                       "\"\xc0\x80\"",
                                       "\"\xed\xa0\x80\"",
                                       "\"\xf4\x90\x80\x80\"",
                                       "\"\xe0\x80\x80\"",
                                       "[",
                                       "[1",
                                       "[1,",
                                       "[1,]",
                                       "[,1]",
                                       "[1 2]",
                                       "]",
                                       "{",
                                       "{\"a\"",
                                       "{\"a\":",
                                       "{\"a\":1",
                                       "{\"a\":1,",
                                       "{\"a\":1,}",
                                       "{a:1}",
                                       "{1:1}",
                                       "{\"a\" 1}",
                                       "{\"a\":1 \"b\":2}",
                                       "{\"a\":1,\"a\":2}",
                                       "{\"a\":1,\"b\":2,\"\\u0061\":3}",
                                       "[}",
                                       "{]",
                                       "[1}",
                                       "1 2",
                                       "[] []",
                                       "'a'",
                                       "// x\n1",
                                       ("\xef\xbb\xbf"
                                        "1")};

static void json_refuses_everything_else(void) {
    for (size_t i = 0; i < sizeof bad_json / sizeof *bad_json; i++) {
        ct_json *json = NULL;
        CHECK_FAILS(ct_json_parse(bad_json[i], strlen(bad_json[i]), "text", &json), CT_IO,
                    "text: ");
        CHECK(json == NULL);
    }
    ct_json *json = NULL;
    CHECK_FAILS(ct_json_parse("1\0", 2, "text", &json), CT_IO, "after the end");
    CHECK_FAILS(ct_json_parse("\"a\0b\"", 5, "text", &json), CT_IO, "control character");
    CHECK_FAILS(ct_json_parse("[\n1,\nx]", 7, "text", &json), CT_IO, "line 3");
    CHECK_FAILS(ct_json_parse("[\"a\\n\",\nx]", 10, "text", &json), CT_IO, "line 2");
    CHECK(json == NULL);
}

static void json_stops_at_its_length(void) {
    ct_json *json = NULL;
    REQUIRE_OK(ct_json_parse("[12]garbage", 4, "text", &json));
    CHECK(json->n_children == 1 && json->child->number == 12);
    ct_json_free(&json);
    REQUIRE_OK(ct_json_parse("123456", 3, "text", &json));
    CHECK(json->number == 123);
    ct_json_free(&json);
}

static void json_nests_64_deep_and_no_deeper(void) {
    char text[2 * 65 + 1];
    ct_json *json = NULL;
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    CHECK_OK(ct_json_parse(text, 128, "text", &json));
    ct_json_free(&json);
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    CHECK_FAILS(ct_json_parse(text, 130, "text", &json), CT_IO, "64");
}

static void json_values_are_found_by_name(void) {
    static const char text[] = "{\"n\":[1,-2.5],\"s\":\"a\\u00e9\\n\",\"t\":true,\"z\":null}";
    ct_json *json = NULL;
    REQUIRE_OK(ct_json_parse(text, strlen(text), "text", &json));
    CHECK(json->kind == CT_JSON_OBJECT && json->n_children == 4);
    const ct_json *n = ct_json_get(json, "n");
    REQUIRE(n != NULL && n->kind == CT_JSON_ARRAY && n->n_children == 2);
    CHECK(n->child->number == 1 && n->child->next->number == -2.5 && n->child->next->next == NULL);
    const ct_json *s = ct_json_get(json, "s");
    REQUIRE(s != NULL && s->kind == CT_JSON_STRING);
    CHECK(strcmp(s->string, "a\xc3\xa9\n") == 0);
    CHECK(ct_json_get(json, "t")->kind == CT_JSON_BOOL && ct_json_get(json, "t")->number == 1);
    CHECK(ct_json_get(json, "z")->kind == CT_JSON_NULL);
    CHECK(ct_json_get(json, "missing") == NULL && ct_json_get(n, "n") == NULL);
    ct_json_free(&json);
    CHECK(json == NULL);
    ct_json_free(&json);
}

static void json_strings_read_back_the_same(void) {
    char all[256];
    for (int i = 1; i < 128; i++) all[i - 1] = (char)i;
    memcpy(all + 127, "\xc3\xa9\xf0\x9f\x98\x80", 7);
    ct_text text = {0};
    ct_json_add_string(&text, all);
    ct_json *json = NULL;
    REQUIRE_OK(ct_json_parse(text.chars, text.n, "text", &json));
    CHECK(strcmp(json->string, all) == 0);
    ct_json_free(&json);
    ct_text_free(&text);
    ct_json_add_string(&text, "a\xff"
                              "b"); /* not UTF-8: readable all the same */
    REQUIRE_OK(ct_json_parse(text.chars, text.n, "text", &json));
    CHECK(strcmp(json->string, "a\xef\xbf\xbd"
                               "b") == 0);
    ct_json_free(&json);
    ct_text_free(&text);
}

static void json_numbers_are_short_and_read_back_the_same(void) {
    static const struct {
        double number;
        const char *text;
    } cases[] = {{0, "0"},
                 {0.1, "0.1"},
                 {-2, "-2"},
                 {1e300, "1e+300"},
                 {1.0 / 3.0, "0.333333333333333"},
                 {NAN, "null"},
                 {INFINITY, "null"},
                 {-INFINITY, "null"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ct_text text = {0};
        ct_json_add_number(&text, cases[i].number);
        bool third = cases[i].number == 1.0 / 3.0; /* its 16 digits begin with these 15 */
        CHECK(strncmp(text.chars, cases[i].text, third ? 17 : text.n + 1) == 0);
        ct_text_free(&text);
    }
    ct_rng rng;
    ct_rng_init(&rng, 8, CT_RNG_TEST, 0, 0, 0);
    for (int i = 0; i < 10000; i++) {
        uint64_t bits = (uint64_t)ct_rng_u32(&rng) << 32 | ct_rng_u32(&rng);
        double number;
        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number)) continue;
        ct_text text = {0};
        ct_json_add_number(&text, number);
        CHECK(strtod(text.chars, NULL) == number);
        ct_text_free(&text);
    }
}

static void sparse_entries_are_found(void) {
    ct_sparse m = {0};
    REQUIRE_OK(ct_sparse_create(3, 4, 4, &m));
    static const int begin[] = {0, 2, 2, 4}, column[] = {0, 3, 1, 2};
    static const double value[] = {1, 2, 3, 4};
    memcpy(m.begin, begin, sizeof begin);
    memcpy(m.column, column, sizeof column);
    memcpy(m.value, value, sizeof value);
    static const double expected[3][4] = {{1, 0, 0, 2}, {0, 0, 0, 0}, {0, 3, 4, 0}};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++) CHECK(ct_sparse_get(&m, i, j) == expected[i][j]);
    ct_sparse_free(&m);
    CHECK(m.begin == NULL);
    ct_sparse_free(&m);
    CHECK_FAILS(ct_sparse_create(-1, 1, 1, &m), CT_INVAL, "-1");
}

enum { MAX_TASKS = 257 };

typedef struct tally {
    atomic_int n_runs[MAX_TASKS];
    atomic_int n_wrong_workers;
    int n_workers;
    bool slow; /* every task lasts long enough for the others to join in or fall asleep */
} tally;

static void count_task(void *context, int task, int worker) {
    tally *t = context;
    atomic_fetch_add(&t->n_runs[task], 1);
    if (worker < 0 || worker >= t->n_workers) atomic_fetch_add(&t->n_wrong_workers, 1);
    if (t->slow) usleep(50);
}

static void run_rounds(ct_pool *pool, int n_rounds, bool slow) {
    static const int sizes[] = {0, 1, 2, 3, 7, MAX_TASKS};
    tally t = {.n_workers = ct_pool_size(pool), .slow = slow};
    for (int round = 0; round < n_rounds; round++) {
        int n_tasks = sizes[round % 6];
        for (int i = 0; i < MAX_TASKS; i++) atomic_store(&t.n_runs[i], 0);
        ct_pool_run(pool, n_tasks, count_task, &t);
        for (int i = 0; i < MAX_TASKS; i++) REQUIRE(atomic_load(&t.n_runs[i]) == (i < n_tasks));
        if (round % 97 == 0) usleep(200); /* the workers go to sleep */
    }
    CHECK(atomic_load(&t.n_wrong_workers) == 0);
}

static void every_task_runs_exactly_once(void) {
    for (int n_threads = 1; n_threads <= 4; n_threads++) {
        ct_pool *pool = NULL;
        REQUIRE_OK(ct_pool_create(n_threads, &pool));
        CHECK(ct_pool_size(pool) == n_threads);
        run_rounds(pool, 6000, false);
        run_rounds(pool, 12, true);
        ct_pool_free(&pool);
        CHECK(pool == NULL);
    }
}

static void a_pool_run_allocates_nothing(void) {
    ct_pool *pool = NULL;
    REQUIRE_OK(ct_pool_create(2, &pool));
    uint64_t before = ct_alloc_count();
    run_rounds(pool, 50, false);
    CHECK(ct_alloc_count() == before);
    ct_pool_free(&pool);
}

static void pools_come_and_go(void) {
    for (int i = 0; i < 100; i++) {
        ct_pool *pool = NULL;
        REQUIRE_OK(ct_pool_create(3, &pool));
        if (i % 2 == 0) run_rounds(pool, 3, false);
        ct_pool_free(&pool);
    }
    ct_pool *none = NULL;
    ct_pool_free(&none);
    CHECK_FAILS(ct_pool_create(-1, &none), CT_INVAL, "-1");
    CHECK_FAILS(ct_pool_create(1000000, &none), CT_INVAL, "1000000");
}

static void zero_threads_means_one_per_processor(void) {
    ct_pool *pool = NULL;
    REQUIRE_OK(ct_pool_create(0, &pool));
    CHECK(ct_cpu_count() >= 1 && ct_pool_size(pool) == ct_cpu_count());
    ct_pool_free(&pool);
}

int main(void) {
    TEST(philox_gives_the_published_numbers);
    TEST(the_same_stream_name_gives_the_same_numbers);
    TEST(streams_of_different_names_differ);
    TEST(uniform_numbers_are_uniform);
    TEST(numbers_below_n_are_all_reached_equally);
    TEST(normal_numbers_have_their_moments);
    TEST(gamma_numbers_have_their_mean);
    TEST(a_shuffle_is_a_permutation);
    TEST(every_order_of_three_is_equally_likely);
    TEST(whole_numbers_are_parsed_whole);
    TEST(doubles_are_parsed_whole);
    TEST(yes_and_no_have_four_spellings);
    TEST(text_grows);
    TEST(lists_are_split_at_commas);
    TEST(edits_are_counted);
    TEST(json_accepts_what_the_standard_allows);
    TEST(json_refuses_everything_else);
    TEST(json_stops_at_its_length);
    TEST(json_nests_64_deep_and_no_deeper);
    TEST(json_values_are_found_by_name);
    TEST(json_strings_read_back_the_same);
    TEST(json_numbers_are_short_and_read_back_the_same);
    TEST(sparse_entries_are_found);
    TEST(every_task_runs_exactly_once);
    TEST(a_pool_run_allocates_nothing);
    TEST(pools_come_and_go);
    TEST(zero_threads_means_one_per_processor);
    return test_report();
}
