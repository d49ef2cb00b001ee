/* Axes, lettering, and where things are drawn. */
#include <float.h>

#include "markup.h"
#include "report/axis.h"
#include "report/markup.h"
#include "report/charts.h"
#include "util/memory.h"

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

/* Ends move to the values, ticks beyond them go; where less than two would stay, nothing moves. */
static void a_tight_axis_ends_at_its_values(void) {
    ct_axis a;
    ct_axis_fit((ct_range){0.0008, 0.05}, CT_UNIT_NUMBER, true, 5, &a);
    CHECK(a.is_log && a.from <= 1.01e-4);
    ct_axis_tighten(&a, (ct_range){0.0008, 0.05});
    CHECK(a.n_ticks == 2 && a.from > 0.0006 && a.from < 0.0008 && a.to > 0.05 && a.to < 0.07);
    CHECK_NEAR(a.tick[0], 1e-3, 1e-12);
    ct_axis_fit((ct_range){71, 88}, CT_UNIT_NUMBER, false, 4, &a);
    ct_axis_tighten(&a, (ct_range){71, 88});
    CHECK(a.n_ticks >= 2 && a.from >= 70 && a.from < 71 && a.to > 88 && a.to <= 90);
    ct_axis_fit((ct_range){0.002, 0.07}, CT_UNIT_NUMBER, true, 5, &a);
    double from = a.from;
    ct_axis_tighten(&a, (ct_range){0.002, 0.07}); /* 0.01 alone would be left */
    CHECK(a.from == from && a.n_ticks == 3);
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

static bool is_lettered(const char *text) {
    return text[0] != '\0' && strstr(text, "nan") == NULL && strstr(text, "inf") == NULL;
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
    CHECK(strstr(svg.chars, ">qg-dsgdm + CCL, lambda-m 0\xE2\x80\xA6"
                            " 0.01, \xCE\xB1 0.01, ccl-every 2</text>") != NULL);
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
    TEST(a_tight_axis_ends_at_its_values);
    TEST(one_value_and_none_still_make_an_axis);
    TEST(the_largest_and_the_smallest_numbers_make_an_axis);
    TEST(a_plot_of_absurd_values_is_drawn);
    TEST(markup_is_escaped_and_valid);
    TEST(a_bubbles_area_is_its_count);
    TEST(long_names_in_a_legend_keep_both_ends);
    TEST(graphs_are_laid_out_by_their_distances);
    return test_report();
}
