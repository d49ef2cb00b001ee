/* Tables: what a CSV file says, what its columns hold, how rows become inputs, and a model that is
 * trained on one and used on another. */
#include "program.h"

#include <zlib.h>

#include "data/table.h"
#include "util/log.h"
#include "util/rng.h"

/* ---- what was said beside ---- */

static char noted[4096];

static void keep_note(void *context, ct_level level, const char *text) {
    (void)context;
    (void)level;
    size_t n = strlen(noted);
    snprintf(noted + n, sizeof noted - n, "%s\n", text);
}

static const ct_hooks listener = {.log = keep_note};

static ct_status parse(const char *text, ct_table *out) {
    ct_blob blob = {.n = strlen(text)};
    CT_TRY(ct_make_copy(&blob.bytes, (const uint8_t *)text, blob.n + 1, "a table"));
    ct_table_free(out);
    return ct_table_parse("t.csv", &blob, out);
}

static bool is_cell(const ct_table *t, size_t row, size_t column, const char *text) {
    return row < t->n_rows && column < t->n_columns &&
           strcmp(ct_table_cell(t, row, column), text) == 0;
}

/* ---- the file ---- */

static void separators_quotes_and_line_ends_are_understood(void) {
    CT_SCOPED(ct_table) t = {0};
    REQUIRE_OK(parse("\xef\xbb\xbf"
                     "a;b;\"c;d\"\r\n1; x y ;\"say \"\"no\"\"\"\r\n\r\n;\"two\r\nlines\";3",
                     &t));
    CHECK(t.n_columns == 3 && t.n_rows == 2);
    CHECK(strcmp(ct_table_name(&t, 0), "a") == 0 && strcmp(ct_table_name(&t, 2), "c;d") == 0);
    CHECK(is_cell(&t, 0, 0, "1") && is_cell(&t, 0, 1, "x y") && is_cell(&t, 0, 2, "say \"no\""));
    CHECK(is_cell(&t, 1, 0, "") && is_cell(&t, 1, 1, "two\r\nlines") && is_cell(&t, 1, 2, "3"));
    CHECK(t.lines[0] == 2 && t.lines[1] == 4);
    REQUIRE_OK(parse("a\tb,c\td\n1\t\t3\n\t2\t\n", &t));
    CHECK(t.n_columns == 3 && t.n_rows == 2 && is_cell(&t, 0, 1, "") && is_cell(&t, 1, 0, ""));
    CHECK(is_cell(&t, 1, 2, "") && is_cell(&t, 1, 1, "2"));
    REQUIRE_OK(parse("a, \"b\" ,c\n1, \"x,y\" ,3\n", &t));
    CHECK(is_cell(&t, 0, 1, "x,y") && ct_table_find(&t, "b") == 1);
    CHECK(ct_table_find(&t, "d") == CT_NO_COLUMN);
}

static void what_is_wrong_is_told_with_file_and_line(void) {
    CT_SCOPED(ct_table) t = {0};
    CHECK_FAILS(parse("a,b\n1,2\n1\n", &t), CT_IO, "t.csv:3: 1 cells in this row, 2 in the header");
    CHECK_FAILS(parse("a,b\n\"1\n\",2\n1,2,3,4\n", &t), CT_IO, "t.csv:4: 4 cells in this row, 2");
    CHECK_FAILS(parse("a,b\n1,2\n1,\"2\n3,4\n", &t), CT_IO, "t.csv:3: a quote that is not closed");
    CHECK_FAILS(parse("a,b\n\"1\"2,3\n", &t), CT_IO, "t.csv:2: '2' behind a closing quote");
    CHECK_FAILS(parse("a,b\n1,\xe9t\xe9\n", &t), CT_IO, "t.csv:2: byte 0xe9 is not UTF-8");
    CHECK_FAILS(parse("a,b,a\n1,2,3\n", &t), CT_IO, "two columns are called 'a'");
    CHECK_FAILS(parse("a,b\n\n", &t), CT_IO, "no rows");
    CHECK_FAILS(parse("\n \n", &t), CT_IO, "no header");
    CHECK_FAILS(parse("", &t), CT_IO, "no header");
    ct_blob zero = {.n = 6};
    REQUIRE_OK(ct_make_copy(&zero.bytes, (const uint8_t *)"a,b\n1\0", 7, "a table"));
    CHECK_FAILS(ct_table_parse("t.csv", &zero, &t), CT_IO, "t.csv:2: byte 0x00");
}

static void a_cell_has_its_budget(void) {
    CT_SCOPED(ct_table) t = {0};
    CT_SCOPED(ct_text) text = {0};
    ct_text_add(&text, "a,b\n1,%*s\n", CT_MAX_CELL_BYTES, "x");
    CHECK_OK(parse(text.chars, &t)); /* blanks do not count */
    for (char *c = strstr(text.chars, "1,") + 2; *c == ' '; c++) *c = 'y';
    CHECK_OK(parse(text.chars, &t));
    text.n--;
    ct_text_add(&text, "z\n");
    CHECK_FAILS(parse(text.chars, &t), CT_IO, "t.csv:2: a cell of 65537 bytes");
}

static void numbers_are_what_strtod_says(void) {
    static const char *const texts[] = {"0",
                                        "-0",
                                        "1",
                                        ".5",
                                        "5.",
                                        "-12.75",
                                        "1e3",
                                        "+7",
                                        "0.1",
                                        "1e-300",
                                        "123456789012345",
                                        "1234567890123456789",
                                        "0.12345678901234567",
                                        "1.7976931348623157e308"};
    static const char *const others[] = {"",    "-",   ".",     "1x",  "0x10",
                                         "inf", "nan", "1e999", "1,5", "1 2"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        double x = NAN;
        CHECK(ct_cell_number(texts[k], &x));
        CHECK(x == strtod(texts[k], NULL));
    }
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        double x = 7;
        CHECK(!ct_cell_number(others[k], &x) && x == 7);
    }
    ct_rng rng;
    ct_rng_init(&rng, 3, CT_RNG_SYNTHETIC, 0, 0, 0);
    for (int k = 0; k < 20000; k++) {
        char text[40];
        double x = NAN, y = ((double)ct_rng_below(&rng, 1u << 31) - 1e9) *
                            pow(10, (double)ct_rng_below(&rng, 20) - 14);
        snprintf(text, sizeof text, "%.*f", (int)ct_rng_below(&rng, 17), y);
        CHECK(ct_cell_number(text, &x) && x == strtod(text, NULL));
    }
}

/* ---- columns and inputs ---- */

static const ct_rows all_rows = {.flags = NULL};

/* Columns and inputs of a table that is written down; the label is column 0. */
static void encode(const char *text, ct_columns *columns, ct_images *images) {
    CT_SCOPED(ct_table) t = {0};
    REQUIRE_OK(parse(text, &t));
    REQUIRE_OK(ct_columns_of(&t, 0, "", all_rows, columns));
    REQUIRE_OK(ct_table_encode(&t, columns, all_rows, images));
}

static void rows_are_what_an_independent_program_makes_of_them(void) {
    CT_SCOPED(ct_table) t = {0};
    CT_SCOPED(ct_columns) columns = {0};
    CT_SCOPED(ct_images) images = {0};
    CT_SCOPED(ct_blob) expected = {0};
    REQUIRE_OK(ct_table_read("fixtures/tables/mixed.csv", &t));
    REQUIRE_OK(ct_columns_of(&t, ct_table_find(&t, "grade"), "", all_rows, &columns));
    REQUIRE_OK(ct_table_encode(&t, &columns, all_rows, &images));
    REQUIRE_OK(ct_file_read("fixtures/tables/mixed.txt", 1 << 20, &expected));
    REQUIRE(images.n == 40 && images.channels == 1 && images.height == 1 && images.width == 11);
    ct_lines lines = ct_blob_lines(&expected);
    for (size_t i = 0; i < images.n; i++) {
        char *at = ct_lines_next(&lines);
        REQUIRE(at != NULL);
        (void)strtol(at, &at, 10); /* the label: see below */
        for (int k = 0; k < images.width; k++)
            CHECK_NEAR(images.values[i * 11 + (size_t)k], strtod(at, &at), 2e-6);
    }
}

static void missing_values_and_constants_have_their_rule(void) {
    CT_SCOPED(ct_columns) c = {0};
    CT_SCOPED(ct_images) images = {0};
    encode("y,n,t,same\n0,1,b,4\n0,NA,?,4\n0,3,a,4\n0,nan,b,4\n", &c, &images);
    /* n: mean 2, deviation 1, and whether it lacks; same: 0; t: a, b, and whether it lacks */
    static const float wanted[] = {-1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1,
                                   1,  0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0};
    REQUIRE(images.width == 6 && images.n == 4);
    CHECK(memcmp(images.values, wanted, sizeof wanted) == 0);
    CHECK(c.columns[0].mean == 2 && c.columns[0].deviation == 1 && c.columns[1].deviation == 1);
}

static void a_value_that_no_training_row_has_is_zero_and_noted(void) {
    CT_SCOPED(ct_table) t = {0};
    CT_SCOPED(ct_columns) c = {0};
    CT_SCOPED(ct_images) images = {0};
    REQUIRE_OK(parse("y,n,t\n0,1,a\n0,3,b\n0,,c\n0,5,a\n", &t));
    const bool is_test[] = {false, false, true, true};
    REQUIRE_OK(ct_columns_of(&t, 0, "", (ct_rows){is_test, false}, &c));
    CHECK(ct_columns_inputs(&c) == 3 && c.columns[0].n == 2);
    noted[0] = '\0';
    ct_hooks_use(&listener);
    REQUIRE_OK(ct_table_encode(&t, &c, (ct_rows){is_test, true}, &images));
    ct_hooks_use(NULL);
    static const float wanted[] = {0, 0, 0, 3, 1, 0};
    REQUIRE(images.n == 2);
    CHECK(memcmp(images.values, wanted, sizeof wanted) == 0);
    CHECK(strstr(noted, "2 cells have values that no training row has") != NULL);
    CHECK(strstr(noted, "'' in column 'n', line 4") != NULL);
    /* a column that is categories because of a row to be tested, and one of numbers alone */
    CT_SCOPED(ct_table) other = {0};
    REQUIRE_OK(parse("t,n\nb,x\n", &other));
    CHECK_FAILS(ct_table_encode(&other, &c, all_rows, &images), CT_DIFFERS,
                "t.csv:2: 'x' in column 'n'");
    REQUIRE_OK(parse("n\n1\n", &other));
    CHECK_FAILS(ct_table_encode(&other, &c, all_rows, &images), CT_DIFFERS, "no column 't'");
}

static void columns_that_cannot_be_inputs_are_refused_by_name(void) {
    CT_SCOPED(ct_table) t = {0};
    CT_SCOPED(ct_columns) c = {0};
    CT_SCOPED(ct_text) text = {0};
    ct_text_add(&text, "y,id,,n\n");
    for (int k = 0; k < 1001; k++) ct_text_add(&text, "a,name%d,%d,%d\n", k, k, k);
    REQUIRE_OK(parse(text.chars, &t));
    CHECK_FAILS(ct_columns_of(&t, 0, "", all_rows, &c), CT_INVAL,
                "column 'id' has more than 1000 different texts; leave it out with "
                "--ignore-columns id");
    CHECK_FAILS(ct_columns_of(&t, 0, "id, age", all_rows, &c), CT_INVAL, "no column 'age'");
    CHECK_FAILS(ct_columns_of(&t, 0, "id,n", all_rows, &c), CT_INVAL, "no column is left");
    noted[0] = '\0';
    ct_hooks_use(&listener);
    CHECK_OK(ct_columns_of(&t, 0, "id", all_rows, &c));
    ct_hooks_use(NULL);
    CHECK(strstr(noted, "1 column without a name left out") != NULL);
    CHECK(c.n == 1 && strcmp(c.columns[0].name, "n") == 0 && c.columns[0].has_many);
}

static void a_text_among_numbers_is_noted(void) {
    CT_SCOPED(ct_table) t = {0};
    CT_SCOPED(ct_columns) c = {0};
    REQUIRE_OK(parse("y,dose,name\n0,0.5,a\n0,,7\n0,<0.1,b\n0,bad,c\n", &t));
    noted[0] = '\0';
    ct_hooks_use(&listener);
    CHECK_OK(ct_columns_of(&t, 0, "", all_rows, &c));
    ct_hooks_use(NULL);
    CHECK(strcmp(noted, "t.csv:4: '<0.1' is no number: column 'dose' is taken as categories\n") ==
          0);
    CHECK(!c.columns[0].is_number && c.columns[0].n == 3 && c.columns[0].n_missing == 1);
}

/* ---- several agents ---- */

static void columns_of(const char *text, ct_columns *out) {
    CT_SCOPED(ct_table) t = {0};
    REQUIRE_OK(parse(text, &t));
    size_t label = ct_table_find(&t, "y");
    REQUIRE_OK(ct_columns_of(&t, label != CT_NO_COLUMN ? label : 0, "", all_rows, out));
}

static bool is_printed_alike(const ct_columns *a, const ct_columns *b) {
    CT_SCOPED(ct_text) x = {0};
    CT_SCOPED(ct_text) y = {0};
    ct_columns_print(a, true, &x);
    ct_columns_print(b, true, &y);
    return strcmp(x.chars, y.chars) == 0;
}

/* (a b) c and c (b a), by way of JSON. */
static void agents_merge_in_any_order_to_the_bits_of_one_table(void) {
    static const char *const parts[] = {"y,n,t,code\n0,0.1,a,1\n1,0.7,c,2\n",
                                        "t,y,code,n\nb,0,3,1e300\n?,1,2,-4\n",
                                        "code,n,y,t\nx,,0,a\n2,3.25,1,d\n"};
    static const char whole[] = "y,n,t,code\n0,0.1,a,1\n1,0.7,c,2\n0,1e300,b,3\n1,-4,?,2\n0,,a,x\n"
                                "1,3.25,d,2\n";
    static const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
    CT_SCOPED(ct_columns) one = {0};
    columns_of(whole, &one);
    for (int o = 0; o < 4; o++) {
        CT_SCOPED(ct_columns) sum = {0};
        columns_of(parts[orders[o][0]], &sum);
        for (int k = 1; k < 3; k++) {
            CT_SCOPED(ct_columns) next = {0};
            CT_SCOPED(ct_columns) sent = {0};
            CT_SCOPED(ct_text) text = {0};
            CT_SCOPED_HANDLE(ct_json) json = NULL;
            columns_of(parts[orders[o][k]], &next);
            ct_columns_print(&next, true, &text);
            REQUIRE_OK(ct_json_parse(text.chars, text.n, "x", &json));
            REQUIRE_OK(ct_columns_parse(json, "x", &sent));
            CHECK_OK(ct_columns_merge(&sum, &sent));
        }
        CHECK(is_printed_alike(&sum, &one));
        CHECK(!sum.columns[0].is_number); /* code: x is none */
        CHECK(sum.columns[0].categories.n == 4 && sum.columns[1].n_missing == 1);
        CHECK(memcmp(&sum.columns[1].deviation, &one.columns[1].deviation, sizeof(double)) == 0);
    }
}

static void agents_whose_columns_differ_are_refused(void) {
    CT_SCOPED(ct_columns) a = {0};
    CT_SCOPED(ct_columns) b = {0};
    CT_SCOPED(ct_columns) other = {0};
    CT_SCOPED(ct_columns) label = {0};
    CT_SCOPED(ct_text) text = {0};
    columns_of("y,age,sex\n0,1,m\n", &a);
    columns_of("y,age,bmi,sex\n0,1,3,m\n", &other);
    columns_of("z,age,sex\n0,1,m\n", &label);
    CHECK_FAILS(ct_columns_merge(&a, &other), CT_DIFFERS, "column 'bmi' is not in every agent's");
    CHECK_FAILS(ct_columns_merge(&other, &a), CT_DIFFERS, "column 'bmi' is not in every agent's");
    CHECK_FAILS(ct_columns_merge(&a, &label), CT_DIFFERS, "'y' at one agent and 'z' at another");
    /* a quantity is not a list of texts */
    ct_text_add(&text, "y,age,sex\n");
    for (int k = 0; k < 100; k++) ct_text_add(&text, "0,%d.5,m\n", k);
    columns_of(text.chars, &b);
    ct_columns_free(&a);
    columns_of("y,age,sex\n0,young,m\n", &a);
    CHECK_FAILS(ct_columns_merge(&b, &a), CT_DIFFERS, "column 'age' has texts at one agent");
}

static void a_member_that_cannot_be_is_refused(void) {
#define NUMBER "\"name\": \"n\", \"kind\": \"number\", \"values\": 2, \"missing\": 0, "
    static const char *const wrong[] = {
        "[]",
        "{\"label\": \"y\", \"columns\": []}",
        "{\"label\": \"y\", \"columns\": [7]}",
        "{\"columns\": [{" NUMBER "\"mean\": 0, \"deviation\": 1}]}",
        "{\"label\": \"y\", \"columns\": [{" NUMBER "\"mean\": 0, \"deviation\": 0}]}",
        "{\"label\": \"y\", \"columns\": [{" NUMBER "\"deviation\": 1}]}",
        "{\"label\": \"y\", \"columns\": [{" NUMBER "\"sum\": \"1@68\", \"squares\": \"0@0\", "
        "\"categories\": null}]}",
        "{\"label\": \"y\", \"columns\": [{" NUMBER "\"sum\": \"0@0\", \"squares\": \"0@0\"}]}",
        "{\"label\": \"y\", \"columns\": [{\"name\": \"t\", \"kind\": \"category\", \"values\": 2, "
        "\"missing\": 0, \"categories\": [\"b\", \"a\"]}]}",
        "{\"label\": \"y\", \"columns\": [{\"name\": \"t\", \"kind\": \"category\", \"values\": 2, "
        "\"missing\": -1, \"categories\": [\"a\"]}]}",
        "{\"label\": \"y\", \"columns\": [{\"name\": \"t\", \"kind\": \"category\", \"values\": "
        "2.5, "
        "\"missing\": 0, \"categories\": [\"a\"]}]}",
        "{\"label\": \"y\", \"columns\": [{\"name\": \"t\", \"kind\": \"text\", \"values\": 2, "
        "\"missing\": 0, \"categories\": [\"a\"]}]}",
        "{\"label\": \"y\", \"columns\": [{" NUMBER "\"mean\": 0, \"deviation\": 1}, {" NUMBER
        "\"mean\": 0, \"deviation\": 1}]}",
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        CT_SCOPED_HANDLE(ct_json) json = NULL;
        CT_SCOPED(ct_columns) c = {0};
        REQUIRE_OK(ct_json_parse(wrong[k], strlen(wrong[k]), "them", &json));
        CHECK_FAILS(ct_columns_parse(json, "them", &c), CT_IO, "them: ");
        CHECK(c.n == 0);
    }
}

/* ---- training and using ---- */

#define LEARN                                                                                      \
    "train --quiet --dataset csv --label kind --agents 3 --topology full --partition iid "         \
    "--batch-size 16 --epochs 30 --lr 0.05 --threads 1 --out run --force "

/* Rows whose kind follows from a number and a text; `order`: the columns' places. */
static void make_table(const char *path, uint64_t seed, int n, bool is_reordered, bool has_label) {
    CT_SCOPED(ct_text) text = {0};
    ct_rng rng;
    ct_rng_init(&rng, seed, CT_RNG_SYNTHETIC, 0, 0, 0);
    ct_text_add(&text, is_reordered ? "more;colour;size%s\n" : "size,colour%s\n",
                !has_label     ? ""
                : is_reordered ? ";kind"
                               : ",kind");
    for (int i = 0; i < n; i++) {
        static const char *const colours[] = {"red", "green", "blue"};
        double size = 1000 + (double)ct_rng_below(&rng, 2000) / 10;
        uint32_t colour = ct_rng_below(&rng, 3);
        const char *kind = colour == 0 ? "plum" : size > 1100 ? "melon" : "grape";
        if (is_reordered)
            ct_text_add(&text, "%d;%s;%.1f", i, colours[colour], size);
        else
            ct_text_add(&text, "%.1f,%s", size, colours[colour]);
        if (has_label) ct_text_add(&text, "%s%s", is_reordered ? ";" : ",", kind);
        ct_text_add(&text, "\n");
    }
    CHECK_OK(ct_text_status(&text));
    put(path, text.chars);
}

static void a_table_is_learnt_and_used_with_columns_in_any_order(void) {
    make_table("fruit.csv", 1, 400, false, true);
    make_table("new.csv", 2, 50, false, true);
    make_table("other.csv", 2, 50, true, false);
    succeeds(LEARN "--data-dir fruit.csv --test-fraction 0.25");
    CT_SCOPED_HANDLE(ct_json) summary = read_json("run/summary.json", -1);
    CHECK(number_of(summary, "consensus_accuracy") > 0.95);
    succeeds("predict run new.csv --out p1.csv");
    CHECK(strstr(said.err, "of 50 rows with a label") != NULL);
    succeeds("predict run other.csv --out p2.csv");
    CHECK(strstr(said.err, "note: other.csv: column 'more' is no input") != NULL);
    CHECK(same_files("p1.csv", "p2.csv"));
    succeeds("predict run new.csv");
    CHECK(n_lines(said.out) == 51 && strncmp(said.out, "row,class,probability\n1,", 24) == 0);
    succeeds("predict run new.csv --format json --top 2");
    CHECK(strstr(said.out, "[\n  {\"row\": 1, \"top\": [{\"class\": ") == said.out);
    succeeds("eval run");
    char wanted[64]; /* on the rows that training held out */
    snprintf(wanted, sizeof wanted, "accuracy %.2f %%, ",
             100 * number_of(summary, "consensus_accuracy"));
    CHECK(strstr(said.out, wanted) != NULL);
    succeeds("eval run --data-dir new.csv --test-fraction 0");
    CHECK(strstr(said.out, "50 test samples of csv") != NULL);
    put("less.csv", "colour,kind\nred,plum\n");
    REFUSES(2, "predict run less.csv", "less.csv: there is no column 'size'");
    REFUSES(2, "predict run new.csv other.csv", "one table at a time");
    put("bad.csv", "colour,size\nred,7\nred,large\n");
    REFUSES(2, "predict run bad.csv", "bad.csv:3: 'large' in column 'size'");
    put("kinds.csv", "colour,size,kind\nred,7,pear\n");
    REFUSES(2, "eval run --data-dir kinds.csv --test-fraction 0", "class 'pear' is none of");
}

/* More rows than are computed at a time. */
static void predict_and_eval_agree_on_many_rows(void) {
    char wanted[32] = "";
    make_table("many.csv", 5, 5000, false, true);
    succeeds("predict run many.csv --out many.out");
    const char *at = strstr(said.err, "accuracy ");
    REQUIRE(at != NULL);
    snprintf(wanted, sizeof wanted, "%.15s", at);
    succeeds("eval run --data-dir many.csv --test-fraction 0");
    CHECK(strstr(said.out, wanted) != NULL && strstr(said.out, "5000 test samples") != NULL);
}

static void an_export_takes_encoded_rows_and_bytes_are_refused(void) {
    succeeds("export run model.onnx --quiet");
    REFUSES(2, "export run again.onnx --preprocess", "rows of a table, which are encoded before");
    unlink("model.onnx");
}

static void folders_and_packed_files_give_the_same_as_two_files(void) {
    CHECK_OK(ct_dir_create("two"));
    make_table("two/train.csv", 3, 100, false, true);
    make_table("two/test.csv", 4, 40, false, true);
    succeeds("data info two --label kind");
    CHECK(strstr(said.out, "100 training and 40 test samples, 3 classes, 1x1x4") != NULL);
    CHECK(strstr(said.out, "two: csv") != NULL);
    static char before[SAID];
    snprintf(before, sizeof before, "%s", said.out);
    static const char *const names[] = {"train", "test"};
    CHECK_OK(ct_dir_create("packed"));
    for (int k = 0; k < 2; k++) {
        CT_SCOPED(ct_blob) file = {0};
        char path[64];
        snprintf(path, sizeof path, "two/%s.csv", names[k]);
        CHECK_OK(ct_file_read(path, 1 << 20, &file));
        snprintf(path, sizeof path, "packed/%s.csv.gz", names[k]);
        gzFile f = gzopen(path, "wb");
        CHECK(f != NULL && gzwrite(f, file.bytes, (unsigned)file.n) == (int)file.n);
        if (f != NULL) gzclose(f);
    }
    succeeds("data info packed --label kind");
    REQUIRE(strstr(before, "fingerprint") != NULL);
    CHECK(strstr(said.out, strstr(before, "fingerprint")) != NULL);
    CHECK_OK(ct_dir_create("one"));
    make_table("one/any.csv", 3, 100, false, true);
    succeeds("data info one --quiet"); /* a fifth is held out, to look at */
    succeeds("data info one --test-fraction 0.2");
    CHECK(strstr(said.err, "the label is column 'kind'") != NULL);
    make_table("one/more.csv", 3, 100, false, true);
    REFUSES(1, "train --dataset csv --data-dir one --test-fraction 0.2",
            "2 tables and no train.csv");
    unlink("two/train.csv");
    REFUSES(1, "train --dataset csv --data-dir two", "two: there is no train.csv beside test.csv");
    succeeds("eval run --data-dir two");
    CHECK(strstr(said.out, "40 test samples of csv") != NULL);
    remove_tree("one");
    remove_tree("two");
    remove_tree("packed");
}

#define TRY                                                                                        \
    "train --quiet --dataset csv --agents 2 --topology chain --partition iid --epochs 1 "          \
    "--out tried --force --data-dir "

static void labels_have_their_rules(void) {
    CT_SCOPED(ct_text) text = {0};
    put("grades.csv", "id,Class,x\n1,10,1\n2,9,2\n3,,3\n4,10,4\n5,9,5\n6,-1,6\n7,-1,8\n");
    succeeds("data info grades.csv --test-fraction 0.5 --ignore-columns id");
    CHECK(strstr(said.err, "the label is column 'Class'") != NULL);
    CHECK(strstr(said.err, "rows without a label are left out: 1") != NULL);
    CHECK(strstr(said.out, "    0        1        1  -1\n    1        1        1  9\n"
                           "    2        1        1  10\n") != NULL);
    CHECK(strstr(said.out, "1x1x1\n") != NULL);
    REFUSES(2, TRY "grades.csv --test-fraction 0.5 --label grade", "no column 'grade' to learn");
    REFUSES(2, TRY "grades.csv --test-fraction 0.5 --ignore-columns name", "no column 'name'");
    REFUSES(2, TRY "grades.csv", "there is no test part");
    ct_text_add(&text, "x,y\n");
    for (int k = 0; k < 1001; k++) ct_text_add(&text, "1,%d.5\n", k);
    put("prices.csv", text.chars);
    REFUSES(2, TRY "prices.csv --test-fraction 0.5",
            "column 'y' has more than 1000 different "
            "numbers: it looks like a quantity");
    put("same.csv", "x,y\n1,a\n2,a\n");
    REFUSES(1, TRY "same.csv --test-fraction 0.5", "every row has the label 'a'");
    put("empty.csv", "x,y\n1,\n2,NA\n");
    REFUSES(1, TRY "empty.csv --test-fraction 0.5", "no row has a label in column 'y'");
    REFUSES(2, "train --dataset shapes --label y", "--label does nothing without --dataset csv");
}

static void networks_for_pictures_and_parts_refuse_a_table(void) {
    static const char *const models[] = {"lenet5", "resnet20", "vgg11", "resnet18", "mobilenetv2"};
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        char words[256];
        snprintf(words, sizeof words, LEARN "--data-dir fruit.csv --test-fraction 0.2 --model %s",
                 models[k]);
        REFUSES(2, words, "is for pictures, and fruit.csv is a table; use mlp or logistic");
    }
    succeeds(LEARN
             "--data-dir fruit.csv --test-fraction 0.2 --model logistic --device ref --epochs 1");
    REFUSES(2,
            "data split --quiet --dataset csv --data-dir fruit.csv --test-fraction 0.2 --ranks 2 "
            "--agents 4 --out parts",
            "tables are not split into parts");
    CHECK(run("data info fruit.csv --quiet --test-fraction 0.2 --sheet x.png") == 2);
    CHECK(strstr(said.err, "fruit.csv: a table has no pictures to draw") != NULL);
}

/* Whoever looks at a table sees its columns, also where nothing is to be tested on. */
static void looking_at_a_table_shows_its_columns(void) {
    static const char table[] = "id,colour,weight,fruit\n1,red,1.5,apple\n2,green,2,pear\n"
                                "3,red,,apple\n4,green,2.5,pear\n5,blue,1,apple\n6,blue,3,pear\n";
    CHECK_OK(ct_file_write("look.csv", table, strlen(table)));
    succeeds("data info look.csv --dataset csv --ignore-columns id");
    CHECK(strstr(said.out, "columns, beside fruit:") != NULL);
    CHECK(strstr(said.out, "colour               3 categories: blue green red\n") != NULL);
    CHECK(strstr(said.out, "weight               numbers, mean ") != NULL);
    CHECK(strstr(said.err, "no test part") != NULL);
}

int main(void) {
    if (!enter_folder()) return 1;
    TEST(separators_quotes_and_line_ends_are_understood);
    TEST(what_is_wrong_is_told_with_file_and_line);
    TEST(a_cell_has_its_budget);
    TEST(numbers_are_what_strtod_says);
    TEST(rows_are_what_an_independent_program_makes_of_them);
    TEST(missing_values_and_constants_have_their_rule);
    TEST(a_value_that_no_training_row_has_is_zero_and_noted);
    TEST(columns_that_cannot_be_inputs_are_refused_by_name);
    TEST(a_text_among_numbers_is_noted);
    TEST(agents_merge_in_any_order_to_the_bits_of_one_table);
    TEST(agents_whose_columns_differ_are_refused);
    TEST(a_member_that_cannot_be_is_refused);
    TEST(a_table_is_learnt_and_used_with_columns_in_any_order);
    TEST(predict_and_eval_agree_on_many_rows);
    TEST(an_export_takes_encoded_rows_and_bytes_are_refused);
    TEST(folders_and_packed_files_give_the_same_as_two_files);
    TEST(labels_have_their_rules);
    TEST(networks_for_pictures_and_parts_refuse_a_table);
    TEST(looking_at_a_table_shows_its_columns);
    leave_folder();
    return test_report();
}
