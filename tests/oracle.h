/* Cases that an independent float64 computation has worked out (tests/oracle): options, the losses
 * of the last step and the parameters of every agent after five. */
#ifndef CT_TESTS_ORACLE_H
#define CT_TESTS_ORACLE_H

#include "runs.h"

#include "util/file.h"
#include "util/safetensors.h"

#define MAX_CASES 100
#define N_STEPS   5

typedef struct fixture {
    char name[64];
    char options[CT_CONFIG_TEXT];
    double losses[3]; /* ce, mv, dv of the last iteration, means over the agents */
} fixture;

static fixture fixtures[MAX_CASES];
static int n_fixtures;
static const char *fixture_dir;

static inline const char *fixture_path(const char *format, const char *name) {
    static char path[256];
    int n = snprintf(path, sizeof path, "%s/", fixture_dir);
    snprintf(path + n, sizeof path - (size_t)n, format, name);
    return path;
}

static inline void read_cases(void) {
    ct_blob cases = {0};
    char *save = NULL;
    REQUIRE_OK(ct_file_read(fixture_path("cases.txt", ""), 1 << 20, &cases));
    for (char *line = strtok_r((char *)cases.bytes, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        size_t n = strcspn(line, " ");
        REQUIRE(n_fixtures < MAX_CASES && n < sizeof fixtures[0].name && line[n] == ' ');
        fixture *f = &fixtures[n_fixtures++];
        snprintf(f->name, sizeof f->name, "%.*s", (int)n, line);
        snprintf(f->options, sizeof f->options, "%s", line + n + 1);
    }
    ct_blob_free(&cases);
}

static inline void read_losses(void) {
    ct_blob expected = {0};
    REQUIRE_OK(ct_file_read(fixture_path("expected.txt", ""), 1 << 20, &expected));
    char *at = (char *)expected.bytes;
    for (int i = 0; i < n_fixtures; i++) {
        int used = 0;
        char name[64];
        double *l = fixtures[i].losses;
        REQUIRE(sscanf(at, "%63s %lf %lf %lf %n", name, &l[0], &l[1], &l[2], &used) == 4);
        REQUIRE(strcmp(name, fixtures[i].name) == 0);
        at += used;
    }
    CHECK(*at == '\0');
    ct_blob_free(&expected);
}

/* All that lies in a folder of tests/fixtures. */
static inline void read_fixtures(const char *dir) {
    fixture_dir = dir;
    read_cases();
    read_losses();
}

/* Every one of these words is among the options of some case. */
static inline void check_cover(const char *const *wanted, size_t n) {
    for (size_t k = 0; k < n; k++) {
        bool found = false;
        for (int i = 0; i < n_fixtures; i++)
            found = found || strstr(fixtures[i].options, wanted[k]) != NULL;
        if (!found) printf("    no case has %s\n", wanted[k]);
        CHECK(found);
    }
}

/* |got - expected| / |expected - start| of one agent; NaN if a tensor is missing. */
static inline double relative_error(const ct_graph *g, const ct_tensors *expected, int agent,
                                    const float *got, const float *start) {
    double error = 0, moved = 0;
    for (int p = 0; p < g->n_params; p++) {
        char name[CT_PARAM_NAME + 32];
        snprintf(name, sizeof name, "agent.%d.%s", agent, g->params[p].name);
        const ct_tensor *t = ct_tensors_find(expected, name);
        if (t == NULL || t->count != g->params[p].count) return NAN;
        for (size_t k = 0; k < t->count; k++) {
            size_t at = g->params[p].offset + k;
            double e = (double)got[at] - (double)t->values[k];
            double m = (double)t->values[k] - (double)start[at];
            error += e * e;
            moved += m * m;
        }
    }
    return sqrt(error / moved);
}

static inline double mean_loss(const ct_run *run, int field) {
    return column_mean(&run->losses, run->agents.loss_column + (size_t)field);
}

static inline void check_case(const char *device, const fixture *f, double tolerance) {
    static ct_run run;
    static float start[5][RUN_MAX_COLUMNS], got[RUN_MAX_COLUMNS];
    ct_tensors expected = {0};
    bool failed_before = test_failed;
    test_failed = false;
    REQUIRE_OK(ct_tensors_read(fixture_path("expected/%s.safetensors", f->name), &expected));
    const char *base = strcmp(device, "cuda") == 0 ? RUN_ORACLE " --precision fp32" : RUN_ORACLE;
    REQUIRE_OK(run_create(device, base, f->options, &run));
    size_t n = run.graph.n_weights;
    REQUIRE(n <= RUN_MAX_COLUMNS && run.agents.n == 5);
    CHECK(expected.n == 5 * (size_t)run.graph.n_params);
    for (int i = 0; i < 5; i++) CHECK_OK(ct_bank_read(&run.agents.x, i, 0, n, start[i]));
    run_steps(&run, 0, N_STEPS);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(ct_bank_read(&run.agents.x, i, 0, n, got));
        CHECK_NEAR(relative_error(&run.graph, &expected, i, got, start[i]), 0, tolerance);
    }
    static const int fields[] = {CT_LOSS_CE, CT_LOSS_MV, CT_LOSS_DV};
    for (int k = 0; k < 3; k++)
        CHECK_NEAR(mean_loss(&run, fields[k]), f->losses[k], tolerance * fabs(f->losses[k]) + 1e-7);
    ct_run_clear(&run);
    ct_tensors_free(&expected);
    if (test_failed) printf("    in case %s on %s\n", f->name, device);
    test_failed = test_failed || failed_before;
}

#endif
