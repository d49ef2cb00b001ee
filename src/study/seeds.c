/* What every seed of a study's runs gave, on which split. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/folder.h"
#include "study/study_internal.h"

enum { MOST_MISSING = 12 }; /* that are named in a note */

typedef struct reading {
    const ct_metric *metric;
    ct_cell *cell;
} reading;

static ct_status read_seed(void *context, const char *dir) {
    const reading *r = context;
    ct_cell *cell = r->cell;
    CT_SCOPED_BY(ct_record_unload, ct_record) run = {0};
    CT_TRY(ct_record_load(dir, CT_READ_OPTIONS | CT_READ_SUMMARY, &run));
    if (run.summary == NULL) return CT_OK;
    CT_TRY(ct_extend(&cell->seeds, (size_t)cell->n_seeds, "the seeds of a run"));
    ct_seed_score *score = &cell->seeds[cell->n_seeds++];
    *score = (ct_seed_score){.seed = run.seed, .value = ct_metric_value(r->metric, run.summary)};
    const ct_json *split = ct_json_get(run.summary, "partition");
    const ct_json *hash = split != NULL ? ct_json_get(split, "hash") : NULL;
    if (hash != NULL && hash->kind == CT_JSON_STRING)
        snprintf(score->split, sizeof score->split, "%s", hash->string);
    return CT_OK;
}

ct_status ct_study_read_seeds(ct_study *study) {
    for (int k = 0; k < study->n_cells && study->baseline[0] != '\0'; k++) {
        reading r = {.metric = study->shown[0], .cell = &study->cells[k]};
        if (r.cell->state != CT_CELL_DONE) continue;
        r.cell->n_seeds = 0;
        CT_TRY(ct_record_each_world(r.cell->config.out, read_seed, &r));
    }
    return CT_OK;
}

/* ---- notes ---- */

/* The place of a seed among those of a run; -1: it is none of them. */
static int place_of_seed(const ct_config *c, uint64_t seed) {
    const char *at = c->seeds;
    if (at[0] == '\0') return c->seed == (int64_t)seed ? 0 : -1;
    for (int k = 0; *at != '\0'; k++) {
        if (strtoull(at, NULL, 10) == seed) return k;
        at += strcspn(at, ",");
        at += *at == ',';
    }
    return -1;
}

/* The seeds are those of the column's first run. */
bool ct_study_find_split(const ct_study *study, int column, uint64_t seed, char *out, size_t size) {
    const ct_setting *splits = ct_study_setting(study, CT_ANY, column, "splits");
    const ct_cell *cell = study->cells;
    while (cell < study->cells + study->n_cells && cell->column != column) cell++;
    if (splits == NULL || cell == study->cells + study->n_cells) return false;
    int place = place_of_seed(&cell->resolved, seed);
    const char *at = splits->value;
    for (int k = 0; k < place && *at != '\0'; k++) {
        at += strcspn(at, ",");
        at += *at == ',';
    }
    if (place < 0 || *at == '\0') return false;
    at += strspn(at, " ");
    snprintf(out, size, "%.*s", (int)strcspn(at, ", "), at);
    return strcmp(out, "-") != 0;
}

/* The split of a column for a seed: what the file says, or the first run; NULL: unknown. */
static const char *split_of(const ct_study *study, int column, uint64_t seed) {
    static _Thread_local char said[24];
    if (ct_study_find_split(study, column, seed, said, sizeof said)) return said;
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *cell = &study->cells[k];
        for (int s = 0; s < cell->n_seeds && cell->column == column; s++)
            if (cell->seeds[s].seed == seed && cell->seeds[s].split[0] != '\0')
                return cell->seeds[s].split;
    }
    return NULL;
}

static void add_column(ct_text *out, const ct_study *study, int column) {
    const ct_cell *most = NULL;
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *cell = &study->cells[k];
        if (cell->column == column && cell->n_seeds > (most != NULL ? most->n_seeds : 0))
            most = cell;
    }
    if (most == NULL) return;
    ct_text_add(out, "splits, %s:", study->columns[column].label);
    for (int s = 0; s < most->n_seeds; s++)
        ct_text_add(out, "%s seed %" PRIu64 " %s", s > 0 ? "," : "", most->seeds[s].seed,
                    most->seeds[s].split);
    ct_text_add(out, "\n");
}

static void add_differences(ct_text *out, const ct_study *study) {
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *cell = &study->cells[k];
        bool is_other = false;
        for (int s = 0; s < cell->n_seeds; s++) {
            const char *split = split_of(study, cell->column, cell->seeds[s].seed);
            is_other = is_other || (split != NULL && strcmp(split, cell->seeds[s].split) != 0);
        }
        if (is_other)
            ct_text_add(out, "%s has another split than the other rows: it cannot be compared\n",
                        cell->name);
    }
}

static void add_missing(ct_text *out, const ct_study *study) {
    int n = 0;
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *cell = &study->cells[k];
        if (cell->state != CT_CELL_MISSING && cell->state != CT_CELL_BEGUN) continue;
        if (n < MOST_MISSING) ct_text_add(out, n == 0 ? "missing: %s" : ", %s", cell->name);
        n++;
    }
    if (n > MOST_MISSING) ct_text_add(out, " and %d more", n - MOST_MISSING);
    if (n > 0) ct_text_add(out, "\n");
}

/* Whose mean is over more seeds than the study's. */
static void add_more(ct_text *out, const ct_study *study) {
    const char *before = "more seeds: ";
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *cell = &study->cells[k];
        if (cell->n_seeds <= ct_count_parts(cell->resolved.seeds, ',')) continue;
        ct_text_add(out, "%s%s %d", before, cell->name, cell->n_seeds);
        before = ", ";
    }
    if (before[0] == ',') ct_text_add(out, "\n");
}

void ct_study_add_splits(ct_text *out, const ct_study *study) {
    if (study->baseline[0] == '\0') return;
    add_missing(out, study);
    add_more(out, study);
    for (int column = 0; column < study->n_columns; column++) add_column(out, study, column);
    add_differences(out, study);
}
