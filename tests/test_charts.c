/* Axes, lettering, and where things are drawn. */
#include <float.h>

#include "markup.h"
#include "report/axis.h"
#include "report/markup.h"
#include "report/charts.h"
#include "util/memory.h"

static bool is_lettered(const char *text) {
    return text[0] != '\0' && strstr(text, "nan") == NULL && strstr(text, "inf") == NULL;
}

static void ticks_are_round_and_cover_the_values(void) {
    static const struct {
        double low, high;
        ct_unit unit;
        double first, step;
    } cases[] = {{0, 200, CT_UNIT_WHOLE, 0, 50},      {1, 3, CT_UNIT_WHOLE, 1, 1},
                 {0.12, 0.88, CT_UNIT_SHARE, 0, 0.2}, {-3, 7, CT_UNIT_NUMBER, -4, 2},
                 {0, 7e6, CT_UNIT_BYTES, 0, 2 << 20}, {0, 500, CT_UNIT_SECONDS, 0, 120}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ct_axis a;
        ct_axis_fit((ct_range){cases[k].low, cases[k].high}, cases[k].unit, true, 5, &a);
        CHECK(a.from <= cases[k].low && a.to >= cases[k].high && !a.is_log);
        CHECK_NEAR(a.tick[0], cases[k].first, 1e-9 * cases[k].step);
        CHECK_NEAR(a.tick[1] - a.tick[0], cases[k].step, 1e-9 * cases[k].step);
        CHECK(a.n_ticks >= 2 && a.n_ticks <= 8);
    }
}

static void a_wide_range_gets_a_logarithmic_axis(void) {
    ct_axis a;
    char text[32];
    ct_axis_fit((ct_range){3e-7, 2.0}, CT_UNIT_NUMBER, true, 5, &a);
    CHECK(a.is_log && a.from <= 3e-7 && a.to >= 2 && a.n_ticks <= 6);
    CHECK_NEAR(ct_axis_place(&a, sqrt(a.from * a.to)), 0.5, 1e-12);
    ct_axis_letter(&a, 1e-5, text, sizeof text);
    CHECK(strcmp(text, "10\xE2\x81\xBB\xE2\x81\xB5") == 0);
    ct_axis_fit((ct_range){0, 2.0}, CT_UNIT_NUMBER, true, 5, &a); /* a 0 has no place on one */
    CHECK(!a.is_log);
}

/* Whatever the span, a reader finds three ticks or more, and not too many. */
static void a_logarithmic_axis_has_enough_ticks(void) {
    static const double spans[] = {31, 40, 99, 150, 400, 1500, 1e4, 1e6, 1e9, 1e30};
    for (size_t k = 0; k < sizeof spans / sizeof *spans; k++)
        for (double low = 1.1e-7; low < 1e7; low *= 7.3) {
            ct_axis a;
            ct_axis_fit((ct_range){low, low * spans[k]}, CT_UNIT_NUMBER, true, 5, &a);
            CHECK(a.is_log && a.from <= low * 1.001 && a.to >= low * spans[k] * 0.999);
            ct_axis_tighten(&a, (ct_range){low, low * spans[k]});
            CHECK(a.n_ticks >= 3 && a.n_ticks <= 9);
        }
    ct_axis a;
    char text[32];
    ct_axis_fit((ct_range){2e-5, 1e-3}, CT_UNIT_NUMBER, true, 5, &a);
    ct_axis_letter(&a, 5e-5, text, sizeof text);
    CHECK(strcmp(text, "5\xC2\xB7"
                       "10\xE2\x81\xBB\xE2\x81\xB5") == 0);
}

/* Ends move to the values, ticks beyond them go; where less than two would stay, nothing moves. */
static void a_tight_axis_ends_at_its_values(void) {
    ct_axis a;
    ct_axis_fit((ct_range){0.0008, 0.05}, CT_UNIT_NUMBER, true, 5, &a);
    ct_axis_tighten(&a, (ct_range){0.0008, 0.05});
    CHECK(a.n_ticks >= 3 && a.from > 0.0006 && a.from <= 0.0008 && a.to >= 0.05 && a.to < 0.07);
    CHECK_NEAR(a.tick[0], 1e-3, 1e-12);
    ct_axis_fit((ct_range){71, 88}, CT_UNIT_NUMBER, false, 4, &a);
    ct_axis_tighten(&a, (ct_range){71, 88});
    CHECK(a.n_ticks >= 2 && a.from >= 70 && a.from < 71 && a.to > 88 && a.to <= 90);
    ct_axis_fit((ct_range){1.01, 1.09}, CT_UNIT_NUMBER, false, 1, &a);
    double from = a.from;
    ct_axis_tighten(&a, (ct_range){1.01, 1.09}); /* no tick would be left */
    CHECK(a.from == from && a.n_ticks == 2);
}

/* One of six or so may lie far off; two of four are no exception. */
static void an_outlier_does_not_squash_the_rest(void) {
    const ct_range one[] = {{80, 82}, {81, 84}, {30, 33}, {85, 86}, {88, 90}};
    const ct_range two[] = {{80, 82}, {30, 33}, {31, 34}, {85, 86}};
    const ct_range even[] = {{10, 20}, {20, 30}, {30, 40}, {40, 50}};
    const ct_range decades[] = {{1e-3, 1e-2}, {2e-3, 1e-2}, {1e-3, 2e-2}, {1e-3, 1e27}};
    bool is_off[5];
    ct_range core = ct_range_core(one, 5, false, is_off);
    CHECK(core.low == 80 && core.high == 90 && is_off[2] && !is_off[0] && !is_off[4]);
    core = ct_range_core(two, 4, false, is_off);
    CHECK(core.low == 30 && core.high == 86 && !is_off[1] && !is_off[2]);
    core = ct_range_core(even, 4, false, NULL);
    CHECK(core.low == 10 && core.high == 50);
    core = ct_range_core(decades, 4, true, is_off);
    CHECK(core.high == 2e-2 && is_off[3]);
    core = ct_range_core(one, 3, false, NULL); /* too few to say which of them is odd */
    CHECK(core.low == 30);
}

static int count_in(const char *text, const char *words) {
    int n = 0;
    for (; (text = strstr(text, words)) != NULL; text += strlen(words)) n++;
    return n;
}

/* The best first and with a ring, the one that is far off as an arrow with its number. */
static ct_dots ranking(const char *const *panels, int n_panels, const ct_dot_row *rows, int n_rows,
                       const ct_dot_place *places) {
    return (ct_dots){.id = "d",
                     .title = "t",
                     .axis_name = "accuracy",
                     .ours = "ours",
                     .theirs = "the paper",
                     .note = "",
                     .panels = panels,
                     .rows = rows,
                     .places = places,
                     .n_panels = n_panels,
                     .n_rows = n_rows,
                     .marks_best = true,
                     .is_ranked = true};
}

/* The best has the longest name, in bold: the room that is kept is room enough. */
static void the_longest_name_is_whole_in_bold(void) {
    static const char *const panels[] = {""};
    ct_dot_row rows[] = {{"", "QG-DSGDm-N", 3}, {"", "CCL", 4}, {"", "RelaySGD", 5}};
    ct_dot_place places[3];
    for (int k = 0; k < 3; k++) places[k] = (ct_dot_place){{83.0 - k, 1}, {NAN, NAN}, NULL};
    ct_dots dots = ranking(panels, 1, rows, 3, places);
    CT_SCOPED(ct_text) svg = {0};
    REQUIRE_OK(ct_dots_draw(&dots, &svg));
    REQUIRE_OK(ct_text_status(&svg));
    CHECK(count_in(svg.chars, ">QG-DSGDm-N</text>") == 1);
}

static void a_ranking_is_ranked(void) {
    static const char *const panels[] = {"alpha 1", "alpha 2"};
    ct_dot_row rows[5] = {{"", "first", 3},
                          {"", "second", 4},
                          {"", "third", 5},
                          {"", "fourth", 6},
                          {"", "a name that is by far too long to stand beside its mark", 7}};
    ct_dot_place places[10];
    const double means[10] = {70, 90, 80, 89, 12, 88, 75, 87, NAN, NAN};
    for (int k = 0; k < 10; k++) places[k] = (ct_dot_place){{means[k], 1}, {NAN, NAN}, NULL};
    places[8].word = places[9].word = "diverged";
    ct_dots dots = ranking(panels, 2, rows, 5, places);
    CT_SCOPED(ct_text) svg = {0};
    REQUIRE_OK(ct_dots_draw(&dots, &svg));
    REQUIRE_OK(ct_text_status(&svg));
    CHECK(find_flaw(svg.chars) == NULL && is_lettered(svg.chars));
    CHECK(count_in(svg.chars, "data-best=\"1\"") == 2 && count_in(svg.chars, ">diverged<") == 2);
    const char *second = strstr(svg.chars, "data-row=\"1\" data-panel=\"0\"");
    const char *first = strstr(svg.chars, "data-row=\"0\" data-panel=\"0\"");
    CHECK(second != NULL && second < first && strstr(second, "data-best") < first);
    CHECK(count_in(svg.chars, ">12</text>") == 1); /* the arrow's number */
    CHECK(count_in(svg.chars, "font-size=\"14\"") + count_in(svg.chars, "font-size=\"12\"") ==
          count_in(svg.chars, "font-size=")); /* no label is squeezed */
}

static void a_heat_map_frames_the_best(void) {
    static const char *const no_panel[] = {""}, *const rows[] = {"0.1", "1"};
    static const char *const columns[] = {"a", "b", "c"};
    const ct_heat_cell cells[6] = {{61.5, 1, NULL}, {72.25, NAN, NULL}, {NAN, NAN, "diverged"},
                                   {50, NAN, NULL}, {60, NAN, NULL},    {NAN, NAN, NULL}};
    ct_heat heat = {.id = "h",
                    .title = "t",
                    .row_name = "lambda-m",
                    .column_name = "lambda-d",
                    .value_name = "accuracy (%)",
                    .note = "",
                    .panels = no_panel,
                    .rows = rows,
                    .columns = columns,
                    .cells = cells,
                    .n_panels = 1,
                    .n_rows = 2,
                    .n_columns = 3,
                    .digits = 2};
    for (int is_low = 0; is_low < 2; is_low++) {
        CT_SCOPED(ct_text) svg = {0};
        heat.is_low_best = is_low;
        REQUIRE_OK(ct_heat_draw(&heat, &svg));
        REQUIRE_OK(ct_text_status(&svg));
        CHECK(find_flaw(svg.chars) == NULL && count_in(svg.chars, "class=\"cell\"") == 6);
        CHECK(count_in(svg.chars, "data-best") == 1 && count_in(svg.chars, ">diverged<") == 1);
        CHECK(strstr(svg.chars, is_low
                                    ? "data-column=\"a\" data-value=\"50\" data-best"
                                    : "data-column=\"b\" data-value=\"72.25\" data-best") != NULL);
        CHECK(strstr(svg.chars, "lambda-m 0.1, lambda-d a: 61.50 \xC2\xB1 1.00<") != NULL);
    }
}

static void one_value_and_none_still_make_an_axis(void) {
    static const double values[] = {0, 1, 0.5, -2, 1e-30, 7e24};
    ct_axis a;
    for (size_t k = 0; k < sizeof values / sizeof *values; k++)
        for (int unit = CT_UNIT_NUMBER; unit <= CT_UNIT_SECONDS; unit++) {
            ct_axis_fit((ct_range){values[k], values[k]}, (ct_unit)unit, true, 5, &a);
            CHECK(a.from < a.to && a.from <= values[k] && a.to >= values[k] && a.n_ticks >= 2);
        }
    ct_axis_fit((ct_range){INFINITY, -INFINITY}, CT_UNIT_SHARE, false, 5, &a);
    CHECK(a.from < a.to && a.n_ticks >= 2);
}

/* Ends, ticks, places and letters of an axis are numbers, whatever the values are. */
static void check_axis(double low, double high, ct_unit unit, bool may_be_log) {
    const double places[] = {low, high, 0, 1.7e308, -1.7e308, 5e-324, NAN, INFINITY, -INFINITY};
    ct_axis a;
    char text[32];
    ct_axis_fit((ct_range){low, high}, unit, may_be_log, 5, &a);
    if (isfinite(low) && isfinite(high)) ct_axis_tighten(&a, (ct_range){low, high});
    bool ok = isfinite(a.from) && isfinite(a.to) && a.from < a.to && isfinite(a.to - a.from) &&
              a.n_ticks >= 2 && a.n_ticks <= CT_MAX_TICKS;
    for (int k = 0; k < a.n_ticks && ok; k++) {
        ct_axis_letter(&a, a.tick[k], text, sizeof text);
        ok = isfinite(a.tick[k]) && (k == 0 || a.tick[k] > a.tick[k - 1]) && is_lettered(text);
    }
    for (size_t k = 0; k < sizeof places / sizeof *places && ok; k++) {
        double place = ct_axis_place(&a, places[k]);
        ct_unit_print(unit, places[k], text, sizeof text);
        ok = place >= 0 && place <= 1 && is_lettered(text);
    }
    if (!ok) printf("    no axis from %g to %g, unit %d, log %d\n", low, high, unit, may_be_log);
    CHECK(ok);
}

static void the_largest_and_the_smallest_numbers_make_an_axis(void) {
    static const double values[] = {-INFINITY, -DBL_MAX, -1.7e308, -1e200,  -1,       -DBL_MIN,
                                    -5e-324,   0,        5e-324,   1e-323,  DBL_MIN,  1e-289,
                                    1,         1e200,    1.7e308,  DBL_MAX, INFINITY, NAN};
    enum { N = sizeof values / sizeof *values };
    for (int i = 0; i < N; i++)
        for (int j = i; j < N; j++)
            for (int unit = CT_UNIT_NUMBER; unit <= CT_UNIT_SECONDS; unit++) {
                check_axis(values[i], values[j], (ct_unit)unit, false);
                check_axis(values[i], values[j], (ct_unit)unit, true);
            }
}

/* A page of them has no number that a browser would not draw. */
static void a_plot_of_absurd_values_is_drawn(void) {
    double x[] = {1, 2, 3, 4}, y[] = {-1.7e308, 1.7e308, 5e-324, 0};
    ct_curve curve = {.label = "x", .mean = {.x = x, .y = y, .n = 4}, .low = y, .high = y};
    ct_plot plot = {.id = "p",
                    .title = "t",
                    .x_name = "epoch",
                    .y_name = "loss",
                    .curves = &curve,
                    .n_curves = 1,
                    .may_be_log = true};
    for (int swapped = 0; swapped < 2; swapped++) {
        CT_SCOPED(ct_text) svg = {0};
        if (swapped) curve.mean.x = y, curve.mean.y = x;
        plot.has_ticks_at_points = swapped;
        ct_plot_draw(&plot, &svg);
        CHECK(!svg.failed && is_lettered(svg.chars));
    }
}

static void markup_is_escaped_and_valid(void) {
    ct_text text = {0};
    ct_markup_text(&text, "a<b> & \"c\" 'd' \xCE\xB1 \x01 \xFF \xC0\x80");
    CHECK(strcmp(text.chars, "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39; \xCE\xB1 \xEF\xBF\xBD "
                             "\xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD") == 0);
    ct_text_free(&text);
}

static void a_bubbles_area_is_its_count(void) {
    const uint32_t table[] = {100, 25, 0, 1};
    ct_text svg = {0};
    ct_bubbles b = {.id = "b",
                    .title = "a < b & c",
                    .heading = "a < b & c",
                    .table = table,
                    .n_agents = 2,
                    .n_classes = 2};
    ct_bubbles_draw(&b, &svg);
    REQUIRE_OK(ct_text_status(&svg));
    CHECK(find_flaw(svg.chars) == NULL && strstr(svg.chars, "a &lt; b &amp; c") != NULL);
    CHECK(strstr(svg.chars, "r=\"12.48\" data-agent=\"0\" data-class=\"0\"") != NULL);
    CHECK(strstr(svg.chars, "r=\"6.24\" data-agent=\"0\" data-class=\"1\"") != NULL);
    CHECK(strstr(svg.chars, "<title>agent 1, class 1: 1</title>") != NULL);
    CHECK(strstr(svg.chars, "agent 1, class 0") == NULL);
    ct_text_free(&svg);
}

/* Names of a study's runs begin alike. */
static void long_names_in_a_legend_keep_both_ends(void) {
    double x[2] = {1, 2}, y[2] = {3, 4};
#define LONG "qg-dsgdm + CCL, lambda-m 0.01, lambda-d 0.01, \xCE\xB1 0.01, ccl-every "
    ct_curve curves[2] = {{.label = LONG "2", .mean = {2, x, y}},
                          {.label = LONG "4", .style = 1, .mean = {2, x, y}}};
    ct_plot plot = {
        .id = "p", .title = "t", .x_name = "x", .y_name = "y", .curves = curves, .n_curves = 2};
    ct_text svg = {0};
    ct_plot_draw(&plot, &svg);
    REQUIRE(ct_text_status(&svg) == CT_OK);
    CHECK(find_flaw(svg.chars) == NULL);
    CHECK(strstr(svg.chars, ">qg-dsgdm + CCL, lambda\xE2\x80\xA6"
                            "1, \xCE\xB1 0.01, ccl-every 2</text>") != NULL);
    CHECK(strstr(svg.chars, "ccl-every 4</text>") != NULL);
    ct_text_free(&svg);
}

/* Neighbours on a chain are drawn nearer to each other than others, and all within the square. */
static void graphs_are_laid_out_by_their_distances(void) {
    int edges[9][2];
    double x[10], y[10];
    for (int i = 0; i < 9; i++) edges[i][0] = i, edges[i][1] = i + 1;
    ct_network g = {.n_agents = 10, .edges = (const int(*)[2])edges, .n_edges = 9};
    REQUIRE_OK(ct_network_place(&g, x, y));
    for (int i = 0; i < 10; i++) {
        CHECK(x[i] > -1e-9 && x[i] < 1 + 1e-9 && y[i] > -1e-9 && y[i] < 1 + 1e-9);
        for (int j = i + 2; j < 10; j++)
            CHECK(hypot(x[i] - x[i + 1], y[i] - y[i + 1]) < hypot(x[i] - x[j], y[i] - y[j]));
    }
    const int pairs[][2] = {{0, 1}, {2, 3}, {0, 2}, {1, 3}, {4, 5}, {2, 4}, {3, 5}}; /* 3 x 2 */
    ct_network grid = {.n_agents = 6, .edges = pairs, .n_edges = 7};
    REQUIRE_OK(ct_network_place(&grid, x, y));
    CHECK(x[0] == x[2] && x[2] == x[4] && y[0] == y[1] && x[0] < x[1] && y[0] < y[2]);
}

int main(void) {
    TEST(ticks_are_round_and_cover_the_values);
    TEST(a_wide_range_gets_a_logarithmic_axis);
    TEST(a_logarithmic_axis_has_enough_ticks);
    TEST(a_tight_axis_ends_at_its_values);
    TEST(an_outlier_does_not_squash_the_rest);
    TEST(the_longest_name_is_whole_in_bold);
    TEST(a_ranking_is_ranked);
    TEST(a_heat_map_frames_the_best);
    TEST(one_value_and_none_still_make_an_axis);
    TEST(the_largest_and_the_smallest_numbers_make_an_axis);
    TEST(a_plot_of_absurd_values_is_drawn);
    TEST(markup_is_escaped_and_valid);
    TEST(a_bubbles_area_is_its_count);
    TEST(long_names_in_a_legend_keep_both_ends);
    TEST(graphs_are_laid_out_by_their_distances);
    return test_report();
}
