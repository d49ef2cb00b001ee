/* Reports: which runs belong together, what they are called, and in which charts they stand. */
#include "reports.h"

#include "algo/algo.h"
#include "report/method.h"
#include "report/svg.h"

#include "report/report_internal.h"
#include "schema/config.h"

/* Lambdas that go with an alpha are not told beside it; of two equal settings they are. */
static void labels_tell_settings_before_other_options(void) {
    static const char *const values[][2] = {{"0.1", "0.001"}, {"0.01", "0.01"}, {"0.01", "0.1"}};
    static const char *const labels[] = {"qg, alpha 0.01, lambda-m 0.01",
                                         "qg, alpha 0.01, lambda-m 0.1", "qg, alpha 0.1"};
    ct_report r;
    for (int k = 0; k < 3; k++) {
        char dir[64], options[128];
        snprintf(dir, sizeof dir, "told/alpha-%s-%d", values[k][0], k);
        snprintf(options, sizeof options, "algorithm = qg\nalpha = %s\nlambda-m = %s\nseed = 1\n",
                 values[k][0], values[k][1]);
        put_run(dir, options, 1, 0.2);
    }
    REQUIRE_OK(load("told", &r));
    REQUIRE(r.n_groups == 3); /* 0.01 comes before 0.1 */
    for (int k = 0; k < 3; k++) CHECK(strcmp(r.groups[k].label, labels[k]) == 0);
    ct_report_free(&r);
    remove_tree("told");
}

/* Of a split without skew alpha means nothing, and that one is skewed goes without saying. */
static void labels_tell_a_split_or_its_alpha(void) {
    ct_report r;
    put_run("told/a", "algorithm = qg\npartition = dirichlet\nalpha = 0.1\nseed = 1\n", 1, 0.2);
    put_run("told/b", "algorithm = qg\npartition = dirichlet\nalpha = 1\nseed = 1\n", 1, 0.2);
    put_run("told/c", "algorithm = qg\npartition = iid\nalpha = 1\nseed = 1\n", 1, 0.2);
    REQUIRE_OK(load("told", &r));
    REQUIRE(r.n_groups == 3);
    CHECK(strcmp(r.groups[0].label, "qg, alpha 0.1") == 0);
    CHECK(strcmp(r.groups[1].label, "qg, alpha 1") == 0);
    CHECK(strcmp(r.groups[2].label, "qg, partition iid") == 0);
    ct_report_free(&r);
    remove_tree("told");
}

/* However many groups there are. */
static void every_chart_has_its_own_legend(void) {
    for (int k = 0; k < 9; k++) {
        char dir[64], options[64];
        snprintf(dir, sizeof dir, "many/%d", k);
        snprintf(options, sizeof options, "algorithm = a%d\nseed = 1\n", k);
        put_run(dir, options, 3, 0.1 * k);
    }
    CHECK(make_page("many"));
    check_page();
    int n = 0;
    for (const char *at = page; (at = strstr(at, "<g class=\"facts\"")) != NULL; n++) {
        const char *end = strstr(at, "</svg>");
        REQUIRE(end != NULL);
        CHECK(count_between(at, end, "<g class=\"entry\"") == 9);
        at = end;
    }
    CHECK(n >= 6);
    remove_tree("many");
}

/* ---- one name and one colour per method ---- */

typedef struct looks {
    int style[64];
    char name[64][64];
    int n;
} looks;

static void add_look(void *context, const char *name, const char *text) {
    looks *l = context;
    (void)text;
    REQUIRE(l->n < 64);
    l->style[l->n] = ct_method_style(name, NULL);
    ct_method_name(name, NULL, l->name[l->n++], sizeof l->name[0]);
}

static void every_method_has_a_name_and_a_colour_of_its_own(void) {
    looks l = {.n = 0};
    char name[64];
    ct_algo_each_name(add_look, &l);
    CHECK(l.n > 10);
    for (int i = 0; i < l.n; i++) {
        CHECK(ct_style_place(l.style[i]) >= CT_COLOUR_METHODS);
        for (int k = 0; k < i; k++)
            CHECK(ct_style_place(l.style[i]) != ct_style_place(l.style[k]) &&
                  strcmp(ct_style_colour(l.style[i]), ct_style_colour(l.style[k])) != 0 &&
                  strcmp(l.name[i], l.name[k]) != 0);
        CHECK(strcmp(ct_style_colour(l.style[i]), ct_style_colour(CT_COLOUR_PAPER)) != 0);
    }
    CHECK(ct_method_style("ccl", NULL) == ct_method_style("qg-dsgdm", "ccl"));
    ct_method_name("qg-dsgdm", "ccl", name, sizeof name);
    CHECK(strcmp(name, "CCL") == 0);
    ct_method_name("relaysgd", "ccl", name, sizeof name);
    CHECK(strcmp(name, "RelaySGD + CCL") == 0);
    int plain = ct_method_style("relaysgd", "ce"), with = ct_method_style("relaysgd", "ccl");
    CHECK(with != plain && ct_style_place(with) == ct_style_place(plain));
    CHECK(ct_method_style("nobody", "ce") == CT_COLOUR_OTHER);
}

/* What comes first, or is there as well, changes no colour. */
static void colours_do_not_depend_on_the_order(void) {
    static const char *const names[] = {"many/qg", "many/ccl", "many/gt", "many/fast"};
    ct_report there, back;
    put_run("many/qg", "algorithm = qg-dsgdm\nloss = ce\nlr = 0.1\nseed = 1\n", 3, 0.1);
    put_run("many/ccl", "algorithm = qg-dsgdm\nloss = ccl\nlr = 0.1\nseed = 1\n", 3, 0.1);
    put_run("many/gt", "algorithm = gt\nloss = ce\nlr = 0.1\nseed = 1\n", 3, 0.1);
    put_run("many/fast", "algorithm = gt\nloss = ce\nlr = 0.5\nseed = 1\n", 3, 0.1);
    const char *reversed[] = {names[3], names[2], names[1], names[0]};
    REQUIRE_OK(ct_report_load(names, 4, &there));
    REQUIRE_OK(ct_report_load(reversed, 4, &back));
    for (int k = 0; k < 4; k++) {
        CHECK(there.groups[k].style == back.groups[3 - k].style);
        CHECK(strcmp(there.groups[k].label, back.groups[3 - k].label) == 0);
    }
    CHECK(there.groups[1].style == ct_method_style("ccl", NULL));
    CHECK(there.groups[2].style == ct_method_style("gt", NULL)); /* lr 0.1 comes before 0.5 */
    CHECK(there.groups[3].style == ct_style_variant(ct_method_style("gt", NULL), 1));
    ct_report_free(&there);
    ct_report_free(&back);
    remove_tree("many");
}

static void local_options_do_not_split_groups(void) {
    int n_local = 0;
    for (int id = 0; id < CT_N_OPTIONS; id++) {
        const char *name = ct_run_options[id].name;
        bool is_local = (ct_run_options[id].roles & CT_ROLE_LOCAL) != 0;
        char first[128], second[128];
        ct_report r;
        if (strcmp(name, "seed") == 0 || strcmp(name, "seeds") == 0) continue;
        snprintf(first, sizeof first, "x = y\nseed = 1\n%s = 1\n", name);
        snprintf(second, sizeof second, "x = y\nseed = 2\n%s = 2\n", name);
        put_run("local/a", first, 2, 0.5);
        put_run("local/b", second, 2, 0.5);
        REQUIRE_OK(load("local", &r));
        if (is_local && r.n_groups != 1) printf("    %s splits groups\n", name);
        if (is_local) CHECK(r.n_groups == 1);
        n_local += is_local;
        if (strcmp(name, "lr") == 0 || strcmp(name, "iterations") == 0) CHECK(r.n_groups == 2);
        ct_report_free(&r);
    }
    CHECK(n_local > 10);
    remove_tree("local");
}

/* Three methods in two settings and one that is alone in each of two others: charts for each of the
 * two, and for the others together, in which a method looks the same. */
static void put_settings(void) {
    static const char *const options[] = {
        "algorithm = a\nalpha = 0.1\nagents = 4\n", "algorithm = b\nalpha = 0.1\nagents = 4\n",
        "algorithm = c\nalpha = 0.1\nagents = 4\n", "algorithm = b\nalpha = 1\nagents = 4\n",
        "algorithm = a\nalpha = 1\nagents = 4\n",   "algorithm = c\nalpha = 1\nagents = 8\n",
        "algorithm = a\nalpha = 1\nagents = 9\n"};
    for (int k = 0; k < 7; k++) {
        char dir[64], text[128];
        snprintf(dir, sizeof dir, "many/%d", k);
        snprintf(text, sizeof text, "%sseed = 1\n", options[k]);
        put_run(dir, text, 3, 0.1 * k);
    }
}

static void many_settings_have_charts_of_their_own(void) {
    static const char *const labels[] = {"alpha 0.1, agents 4", "alpha 1, agents 4",
                                         "other settings"};
    static const int sizes[] = {3, 2, 2}, first[] = {0, 3, 5};
    ct_report r;
    put_settings();
    REQUIRE_OK(load("many", &r));
    REQUIRE(r.n_groups == 7 && r.n_facets == 3);
    for (int k = 0; k < 3; k++) {
        CHECK(strcmp(r.facets[k].label, labels[k]) == 0);
        CHECK(r.facets[k].n_groups == sizes[k] && r.facets[k].groups[0] == first[k]);
    }
    CHECK(strcmp(r.groups[3].name, "b") == 0 && strcmp(r.groups[4].name, "a") == 0);
    CHECK(r.groups[3].style == r.groups[1].style && r.groups[4].style == r.groups[0].style);
    CHECK(strcmp(r.groups[5].name, "c, alpha 1, agents 8") == 0);
    CHECK(r.groups[5].style != r.groups[2].style && r.groups[5].style != r.groups[6].style);
    ct_report_free(&r);
}

static void charts_of_a_setting_hold_its_curves_alone(void) {
    put_settings();
    CHECK(make_page("many"));
    check_page();
    CHECK(count_of("2000/svg\" id=\"fig-accuracy-") == 3);
    const char *second = strstr(page, "id=\"fig-accuracy-2\"");
    const char *end = second != NULL ? strstr(second, "</svg>") : NULL;
    REQUIRE(end != NULL);
    CHECK(count_between(second, end, "class=\"curve\"") == 2);
    const char *b = strstr(second, "data-label=\"b\""), *a = strstr(second, "data-label=\"a\"");
    CHECK(b != NULL && b < a && a < end); /* in the order of the runs */
    CHECK(count_of("<details id=\"setting-") == 3);
    CHECK(count_of("fig-ce-3\"") > 0 && count_of("id=\"fig-accuracy\"") == 0);
    remove_tree("many");
}

/* Many groups: how they ended has a chart of its own, with the numbers of the runs. */
static void many_groups_have_a_chart_of_their_ends(void) {
    ct_report r;
    ct_figures figures;
    for (int k = 0; k < 5; k++) {
        char dir[64], options[64];
        snprintf(dir, sizeof dir, "many/%d", k);
        snprintf(options, sizeof options, "algorithm = a%d\nseed = 1\n", k);
        put_run(dir, options, 3, 0.1 * k);
    }
    REQUIRE_OK(load("many", &r));
    REQUIRE_OK(ct_figures_draw(&r, (ct_figure_wishes){0}, &figures));
    REQUIRE(figures.n > 0 && strcmp(figures.figure[0].id, "fig-final") == 0);
    const char *at = strstr(figures.figure[0].svg.chars, "data-row=\"4\"");
    REQUIRE(at != NULL && (at = strstr(at, "data-value=\"")) != NULL);
    CHECK_NEAR(strtod(at + strlen("data-value=\""), NULL), 43, 1e-9);
    CHECK(strncmp(strstr(at, "data-best") != NULL ? strstr(at, "data-best") : "", "data-best=\"1\"",
                  13) == 0);
    const char *others = strstr(figures.figure[0].svg.chars, "data-row=\"3\"");
    CHECK(others != NULL && at < others); /* the best comes first */
    ct_figures_free(&figures);
    ct_report_free(&r);
    remove_tree("many");
}

static void runs_that_differ_in_the_seed_alone_are_one_group(void) {
    ct_report r;
    put_run("runs/a", "algorithm = dsgd\nlr = 0.1\nseed = 2\nout = runs/a\nthreads = 1\n", 3, 0.2);
    put_run("runs/b", "algorithm = dsgd\nlr = 0.1\nseed = 1\nout = runs/b\nthreads = 4\n", 3, 0.4);
    put_run("runs/c", "algorithm = dsgd\nlr = 0.2\nseed = 1\nout = runs/c\nthreads = 1\n", 3, 0.3);
    put_run("runs/d", "algorithm = dsgd\nlr = 0.1\nseed = 1\nout = runs/d\nthreads = 1\n", 3, 0.3);
    REQUIRE_OK(load("runs", &r));
    CHECK(r.n_runs == 4 && r.n_groups == 3);
    REQUIRE(r.n_groups == 3);
    CHECK(r.groups[0].n_runs == 2 && r.runs[r.groups[0].runs[0]].seed == 1); /* sorted */
    CHECK(strcmp(r.groups[1].label, "DSGD, lr 0.2") == 0);
    CHECK(strstr(r.groups[2].label, "runs/d") != NULL); /* seed 1 again: a group of its own */
    double deviation,
        mean = ct_report_mean(&r, &r.groups[0], CT_METRIC_CONSENSUS_ACCURACY, &deviation);
    CHECK_NEAR(mean, 0.33, 1e-12);
    CHECK_NEAR(deviation, 0.1 * sqrt(2), 1e-12);
    ct_report_free(&r);
    const char *twice[] = {"runs/a", "runs/../runs/a/"};
    REQUIRE_OK(ct_report_load(twice, 2, &r));
    CHECK(r.n_runs == 1);
    ct_report_free(&r);
    for (const char *c = "abcd"; *c != '\0'; c++) {
        char dir[16];
        snprintf(dir, sizeof dir, "runs/%c", *c);
        remove_run(dir);
    }
    rmdir("runs");
}

static void a_curve_is_the_mean_of_its_seeds_at_every_epoch(void) {
    ct_report r;
    ct_curve_set set;
    ct_curve_spec spec = {CT_METRIC_BYTES, CT_METRIC_CONSENSUS_ACCURACY, false};
    put_run("runs/seed-1", "algorithm = gt\nseed = 1\n", 4, 0.1);
    put_run("runs/seed-2", "algorithm = gt\nseed = 2\n", 2, 0.3); /* not there yet */
    REQUIRE_OK(load("runs", &r));
    REQUIRE_OK(ct_curve_set_create(&r, &r.facets[0], &spec, &set));
    REQUIRE(set.n_curves == 1 && set.curves[0].mean.n == 4);
    static const double y[] = {0.21, 0.22, 0.13, 0.14}, low[] = {0.11, 0.12, 0.13, 0.14};
    for (int e = 0; e < 4; e++) {
        CHECK_NEAR(set.curves[0].mean.y[e], y[e], 1e-12);
        CHECK_NEAR(set.curves[0].low[e], low[e], 1e-12);
        CHECK(set.curves[0].mean.x[e] == 1000 * (e + 1));
    }
    CHECK(set.curves[0].strands[1].points.n == 2);
    ct_curve_set_free(&set);
    ct_report_free(&r);
    remove_run("runs/seed-1");
    remove_run("runs/seed-2");
    rmdir("runs");
}

static void all(void) {
    TEST(runs_that_differ_in_the_seed_alone_are_one_group);
    TEST(labels_tell_settings_before_other_options);
    TEST(labels_tell_a_split_or_its_alpha);
    TEST(many_groups_have_a_chart_of_their_ends);
    TEST(every_chart_has_its_own_legend);
    TEST(every_method_has_a_name_and_a_colour_of_its_own);
    TEST(colours_do_not_depend_on_the_order);
    TEST(local_options_do_not_split_groups);
    TEST(many_settings_have_charts_of_their_own);
    TEST(charts_of_a_setting_hold_its_curves_alone);
    TEST(a_curve_is_the_mean_of_its_seeds_at_every_epoch);
}

int main(void) {
    return run_in_folder(all);
}
