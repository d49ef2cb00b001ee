/* Runs over the fixtures' tiny data set (tests/oracle/README.md), built from a line of options. */
#ifndef CT_TEST_RUNS_H
#define CT_TEST_RUNS_H

#include "test.h"

#include "run/run.h"

#define RUN_MAX_AGENTS  48
#define RUN_MAX_COLUMNS 400 /* parameters of the largest model the tests take */

/* Sets "--name value --name value ..." */
static inline ct_status run_options(ct_config *config, const char *options) {
    char text[2 * CT_CONFIG_TEXT], *save = NULL;
    snprintf(text, sizeof text, "%s", options);
    for (char *name = strtok_r(text, " ", &save); name != NULL; name = strtok_r(NULL, " ", &save)) {
        char *value = strtok_r(NULL, " ", &save);
        if (value == NULL) return ct_fail(CT_INVAL, "%s has no value", name);
        CT_TRY(ct_config_put(config, name + 2, value));
    }
    return CT_OK;
}

/* `base` and `options` are lines of options; later ones win. */
static inline ct_status run_create(const char *device, const char *base, const char *options,
                                   ct_run *out) {
    ct_config config;
    ct_config_init(&config);
    CT_TRY(run_options(&config, "--dataset idx --data-dir data --augment off"));
    CT_TRY(ct_config_put(&config, "device", device));
    CT_TRY(run_options(&config, base));
    CT_TRY(run_options(&config, options));
    return ct_run_build(&config, out);
}

/* The oracle's setting: five agents with the samples of partition.csv. */
#define RUN_ORACLE "--partition-file partition.csv --model mlp:8 --agents 5 --shuffle off"
/* Any number of agents. */
#define RUN_PLAIN "--partition iid --model mlp:8 --loss ce --batch-size 4"

/* Steps first .. first + n - 1. */
static inline void run_steps(ct_run *run, long first, long n) {
    for (long k = first; k < first + n; k++) CHECK_OK(ct_run_iterate(run, k));
}

/* Column k of a bank: mean over the rows. */
static inline double column_mean(const ct_bank *bank, size_t k) {
    double sum = 0;
    for (int i = 0; i < bank->n_own; i++) {
        float value = 0;
        CHECK_OK(ct_bank_read(bank, i, k, 1, &value));
        sum += (double)value;
    }
    return sum / bank->n_own;
}

/* The buffer of an algorithm by its name. */
static inline ct_bank *run_buffer(ct_run *run, const char *name) {
    for (int b = 0; b < run->agents.n_buffers; b++)
        if (strcmp(run->agents.buffers[b].name, name) == 0) return &run->agents.buffers[b].bank;
    return NULL;
}

#endif
