#include "study/tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "record/folder.h"
#include "run/run.h"
#include "study/study_internal.h"
#include "util/file.h"
#include "util/log.h"

#define AT_ONCE 16 /* worlds of a launch of candidates that differ in the lambdas alone */

/* ---- how ---- */

static ct_status add_part(void *context, const char *field) {
    ct_tune_rule *rule = context;
    double part, before = rule->n_rungs > 0 ? rule->parts[rule->n_rungs - 1] : 0;
    if (rule->n_rungs == CT_MAX_RUNGS) return ct_fail(CT_INVAL, "at most %d rungs", CT_MAX_RUNGS);
    if (!ct_parse_double(field, &part) || !(part > before) || part > 1)
        return ct_fail(CT_INVAL,
                       "rungs: '%s' is no part of the epochs, larger than the one before it and at "
                       "most 1",
                       field);
    rule->parts[rule->n_rungs++] = part;
    return CT_OK;
}

ct_status ct_rungs_parse(const char *text, ct_tune_rule *rule) {
    rule->n_rungs = 0;
    if (rule->fraction == 0) rule->fraction = 0.1;
    return ct_split(text, add_part, rule);
}

static ct_status read_rule_line(ct_study *study, const ct_setting *s) {
    if (strcmp(s->name, "rungs") == 0) return ct_rungs_parse(s->value, &study->tune);
    if (strcmp(s->name, "seeds") == 0) {
        snprintf(study->tune.seeds, sizeof study->tune.seeds, "%s", s->value);
        return CT_OK;
    }
    if (strcmp(s->name, "validation-fraction") != 0)
        return ct_fail(CT_IO, "'%s' is none of rungs, seeds, validation-fraction", s->name);
    bool ok = ct_parse_double(s->value, &study->tune.fraction) && study->tune.fraction > 0 &&
              study->tune.fraction <= 0.9;
    return ok ? CT_OK : ct_fail(CT_IO, "'%s' is no fraction up to 0.9", s->value);
}

ct_status ct_tune_read_rule(ct_study *study, int *line) {
    int end = *line;
    for (int k = 0; k < study->n_settings; k++) {
        const ct_setting *s = &study->settings[k];
        if (s->row != CT_TUNE) continue;
        *line = s->line;
        CT_TRY(read_rule_line(study, s));
        if (study->tune.n_rungs == 0) CT_TRY(ct_rungs_parse("0.25,0.5,1", &study->tune));
    }
    *line = end;
    return CT_OK;
}

ct_status ct_tune_check(const ct_study *study) {
    const ct_cell *first = NULL;
    int n_first = 0;
    CT_SCOPED_BLOCK(ct_axes) axes = NULL;
    CT_TRY(ct_make(&axes, 1, "what is tuned"));
    for (int k = 0; k < study->n_cells; k++) {
        const ct_cell *cell = &study->cells[k];
        if (cell->tune[0] == '\0') continue;
        axes->n = 0;
        CT_TRY(ct_axes_add_grid(axes, "tune", cell->tune));
        int n = ct_axes_count(axes);
        if (first == NULL) n_first = n;
        if (first == NULL) first = cell;
        if (n != n_first)
            return ct_fail(CT_IO,
                           "%s tries %d combinations and %s %d: all get the same number, or the "
                           "comparison is not a fair one",
                           first->name, n_first, cell->name, n);
    }
    return CT_OK;
}

/* The cell of its row in the other column. */
static ct_status link_cell(ct_study *study, ct_cell *cell, int column) {
    int at = study->at[cell->row * study->n_columns + column];
    ct_cell *other = at >= 0 ? &study->cells[at] : NULL;
    if (cell->tune[0] == '\0') return CT_OK;
    if (other == NULL || strcmp(other->tune, cell->tune) != 0)
        return ct_fail(CT_IO, "tuned-in: '%s' tries nothing there, or something else",
                       study->rows[cell->row].label);
    cell->tuned_in = other;
    return CT_OK;
}

ct_status ct_tune_link(ct_study *study) {
    for (int c = 0; c < study->n_columns; c++) {
        const ct_setting *in = ct_study_setting(study, CT_ANY, c, "tuned-in");
        if (in == NULL) continue;
        const ct_study_line *line = ct_study_find_line(study->columns, study->n_columns, in->value);
        int from = line != NULL ? (int)(line - study->columns) : c;
        bool is_usable = from != c && ct_study_setting(study, CT_ANY, from, "tuned-in") == NULL;
        if (!is_usable)
            CT_TRY_AT(study, in->line,
                      ct_fail(CT_IO, "tuned-in: '%s' is no other column that is tuned itself",
                              in->value));
        for (int k = 0; k < study->n_cells; k++)
            if (study->cells[k].column == c)
                CT_TRY_AT(study, in->line, link_cell(study, &study->cells[k], from));
    }
    return CT_OK;
}

/* ---- where ---- */

static ct_path place_of(const ct_cell *cell) {
    char dir[CT_CONFIG_TEXT];
    snprintf(dir, sizeof dir, "%s", cell->config.out);
    char *slash = strrchr(dir, '/');
    if (slash != NULL) *slash = '\0';
    return ct_path_in(ct_path_in(dir, CT_TUNING).text, cell->name);
}

static ct_status read_from(const char *dir, ct_choice **out) {
    CT_SCOPED_HANDLE(ct_json) json = NULL;
    bool is_there;
    if (*out != NULL) return CT_OK;
    CT_TRY(ct_record_holds(dir, CT_FILE_TUNED, &is_there));
    if (!is_there) return CT_OK;
    CT_TRY(ct_record_read_file(dir, CT_FILE_TUNED, &json));
    return ct_choice_take(json, dir, out);
}

/* With the finished run, or where it was made, perhaps not to its end; NULL: there is none. */
static ct_status read_choice(const ct_cell *cell, ct_choice **out) {
    const ct_cell *own = cell->tuned_in != NULL ? cell->tuned_in : cell;
    CT_TRY(read_from(cell->config.out, out));
    if (own != cell) CT_TRY(read_from(own->config.out, out));
    return read_from(place_of(own).text, out);
}

static ct_status write_choice(const ct_cell *cell, const ct_choice *c) {
    CT_SCOPED(ct_text) text = {0};
    ct_path place = place_of(cell);
    ct_choice_print(c, &text);
    CT_TRY(ct_dir_create(place.text));
    return ct_record_write(place.text, CT_FILE_TUNED, &text);
}

/* ---- what it was ---- */

/* The seeds that are tried. */
void ct_tune_name_seeds(const ct_study *study, const ct_cell *cell, char *out, size_t size) {
    const ct_config *c = &cell->resolved;
    if (study->tune.seeds[0] != '\0')
        snprintf(out, size, "%s", study->tune.seeds);
    else if (c->seeds[0] != '\0')
        snprintf(out, size, "%.*s", (int)strcspn(c->seeds, ","), c->seeds);
    else
        snprintf(out, size, "%lld", (long long)c->seed);
}

int64_t ct_tune_epochs(const ct_study *study, const ct_cell *cell, int rung) {
    double n = ceil(study->tune.parts[rung] * (double)cell->resolved.epochs - 1e-9);
    return n > 1 ? (int64_t)n : 1;
}

/* A choice is of the same combinations, seeds and epochs, or it is another one. */
static ct_status check_choice(const ct_study *study, const ct_cell *cell, const ct_choice *c) {
    char seeds[CT_CONFIG_TEXT], why[128] = "";
    ct_tune_name_seeds(study, cell, seeds, sizeof seeds);
    bool is_it = strcmp(c->grid, cell->tune) == 0 && strcmp(c->seeds, seeds) == 0 &&
                 c->fraction == study->tune.fraction && c->n_rungs == study->tune.n_rungs;
    for (int r = 0; r < c->n_rungs && is_it; r++)
        is_it = c->epochs[r] == ct_tune_epochs(study, cell, r);
    if (!is_it)
        return ct_fail(
            CT_INVAL,
            "%s was tuned in another way (%s, seeds %s, %d rungs); name another @out, or "
            "remove its run and what is in tune/",
            cell->name, c->grid, c->seeds, c->n_rungs);
    if (!c->is_open && !ct_choice_holds(c, why, sizeof why))
        return ct_fail(CT_INVAL, "%s: what was tuned is not what halving gives: %s", cell->name,
                       why);
    return CT_OK;
}

static ct_status put_values(const ct_study *study, ct_cell *cell) {
    const ct_choice *c = cell->choice;
    char option[64];
    for (int a = 0; a < c->axes.n && c->chosen >= 0; a++)
        for (int i = 0; ct_axis_option(c->axes.axes[a].name, i, option, sizeof option), option[0];
             i++)
            CT_TRY(ct_config_put(&cell->config, option, ct_axes_value(&c->axes, c->chosen, a)));
    cell->is_waiting = false;
    return ct_cell_resolve(study, cell);
}

ct_status ct_tune_recall(const ct_study *study, ct_cell *cell) {
    bool is_done;
    if (!cell->is_waiting) return CT_OK;
    CT_TRY(read_choice(cell, &cell->choice));
    if (cell->choice != NULL) CT_TRY(check_choice(study, cell, cell->choice));
    if (cell->choice != NULL && !cell->choice->is_open) return put_values(study, cell);
    ct_choice_free(&cell->choice); /* choosing goes on with it */
    CT_TRY(ct_record_holds(cell->config.out, CT_FILE_SUMMARY, &is_done));
    if (!is_done) return CT_OK;
    return ct_fail(CT_INVAL, "%s has a run and no %s: how its options were chosen is not known",
                   cell->config.out, ct_record_name(CT_FILE_TUNED));
}

void ct_tune_forget(ct_cell *cell) {
    char option[64];
    if (cell->choice == NULL) return;
    const ct_axes *axes = &cell->choice->axes;
    for (int a = 0; a < axes->n; a++)
        for (int i = 0; ct_axis_option(axes->axes[a].name, i, option, sizeof option), option[0];
             i++)
            ct_config_unset(&cell->config, (ct_option_id)(ct_schema_find(option) - ct_run_options));
    cell->is_waiting = true;
    ct_choice_free(&cell->choice);
}

/* A run that begins again loses its own; if it is interrupted, the choice must still be there. */
ct_status ct_tune_keep(const ct_cell *cell) {
    bool is_kept = cell->choice == NULL || cell->tuned_in != NULL;
    return is_kept || ct_record_has(place_of(cell).text, CT_FILE_TUNED)
               ? CT_OK
               : write_choice(cell, cell->choice);
}

ct_status ct_tune_attach(const ct_cell *cell) {
    CT_SCOPED(ct_text) text = {0};
    if (cell->choice == NULL || !ct_dir_exists(cell->config.out)) return CT_OK;
    if (ct_record_has(cell->config.out, CT_FILE_TUNED)) return CT_OK;
    ct_choice_print(cell->choice, &text);
    return ct_record_write(cell->config.out, CT_FILE_TUNED, &text);
}

/* ---- choosing ---- */

static ct_status put_whole(ct_config *config, const char *name, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return ct_config_put(config, name, text);
}

/* What all candidates of a rung have: the cell's options, fewer epochs and fewer samples. Of the
 * test set there is one, because there must be one. */
static ct_status configure_rung(const ct_cell *cell, const ct_choice *c, int rung, ct_config *out) {
    char fraction[32];
    *out = cell->config;
    out->force = false;
    ct_config_unset(out, CT_OPT_out);
    ct_config_unset(out, CT_OPT_seed);
    snprintf(fraction, sizeof fraction, "%.9g", c->fraction);
    CT_TRY(ct_config_put(out, "seeds", c->seeds));
    CT_TRY(ct_config_put(out, "validation-fraction", fraction));
    CT_TRY(ct_config_put(out, "average", "none"));
    CT_TRY(put_whole(out, "test-samples", 1));
    CT_TRY(put_whole(out, "eval-every", c->epochs[rung]));
    return put_whole(out, "epochs", c->epochs[rung]);
}

/* A trial of the rung whose score is not known yet. */
static bool is_to_try(const ct_choice *c, int rung, int trial) {
    int at = rung * c->n_trials + trial;
    return c->is_tried[at] && !c->is_done[at];
}

/* The study of a rung: what is still to be tried in it. */
static ct_status build_rung(const ct_study *study, const ct_cell *cell, const ct_choice *c,
                            int rung, ct_study *out) {
    ct_config given;
    const ct_study_request *r = &study->request;
    ct_study_request request = {.hides_test = true,
                                .at_once = r->at_once > 0 ? r->at_once : AT_ONCE,
                                .time_limit_s = r->time_limit_s,
                                .started_s = r->started_s};
    snprintf(out->name, sizeof out->name, "tune");
    snprintf(out->title, sizeof out->title, "%s, %lld epochs", cell->name,
             (long long)c->epochs[rung]);
    int n = snprintf(out->out, sizeof out->out, "%s/epochs-%lld", place_of(cell).text,
                     (long long)c->epochs[rung]);
    if (n < 0 || (size_t)n + 64 > sizeof out->out)
        return ct_refuse("out", "the name is too long: %s", study->out);
    ct_axes_add_heads(&c->axes, out);
    CT_TRY(ct_study_add_metrics("validation,validation-loss,seconds", out->shown, &out->n_shown));
    for (int k = 0; k < c->n_trials; k++)
        if (is_to_try(c, rung, k)) CT_TRY(ct_axes_add_row(&c->axes, k, out));
    CT_TRY(configure_rung(cell, c, rung, &given));
    return ct_study_build(out, &given, &request);
}

/* The scores of the trials that came to an end. */
static void take_scores(const ct_study *tried, ct_choice *c, int rung) {
    const ct_metric *metric = &ct_metrics[CT_METRIC_VALIDATION_ACCURACY];
    for (int k = 0, row = 0; k < c->n_trials; k++) {
        if (!is_to_try(c, rung, k)) continue;
        const ct_cell *cell = &tried->cells[row++];
        if (cell->state != CT_CELL_DONE && cell->state != CT_CELL_DIVERGED) continue;
        c->scores[rung * c->n_trials + k] = ct_json_number(cell->summary, metric->key);
        c->is_done[rung * c->n_trials + k] = true;
    }
}

/* *n_left: candidates that time has left over. What was tried is written down, also where a signal
 * or the end of the time comes between. */
static ct_status run_rung(const ct_study *study, const ct_cell *cell, ct_choice *c, int rung,
                          int *n_left) {
    CT_SCOPED(ct_study) tried = {0};
    ct_error error;
    int n = 0;
    for (int k = 0; k < c->n_trials; k++) n += is_to_try(c, rung, k);
    if (n == 0) return CT_OK;
    CT_TRY(build_rung(study, cell, c, rung, &tried));
    CT_TRY(ct_study_inspect(&tried));
    ct_status status = CT_CATCH(&error, ct_study_run_cells(&tried, n_left));
    if (status != CT_OK && status != CT_STOPPED) return ct_fail_again(&error);
    take_scores(&tried, c, rung);
    CT_TRY(write_choice(cell, c));
    return status == CT_OK ? CT_OK : ct_fail_again(&error);
}

/* All of a rung have diverged: the best that has not been tried in it gets a chance, from the rung
 * before or, where none is left there, an earlier one. *rung: where it is tried next. */
static bool try_next(ct_choice *c, int *rung) {
    int trials[CT_STUDY_CELLS];
    for (int r = *rung, n = c->n_trials; r > 0; r--) {
        int before = ct_choice_rank(c, r - 1, trials);
        for (int k = 0; k < before && !isnan(c->scores[(r - 1) * n + trials[k]]); k++) {
            if (c->is_tried[r * n + trials[k]]) continue;
            c->is_tried[r * n + trials[k]] = true;
            *rung = r;
            return true;
        }
    }
    return false;
}

/* The better half goes on; after the last rung, the best is chosen. */
static void end_rung(ct_choice *c, int rung) {
    int trials[CT_STUDY_CELLS], n_on = c->n_trials;
    for (int r = 0; r <= rung; r++) n_on = ct_halving_size(n_on);
    (void)ct_choice_rank(c, rung, trials);
    for (int k = 0; k < n_on && rung + 1 < c->n_rungs; k++)
        c->is_tried[(rung + 1) * c->n_trials + trials[k]] = true;
    c->chosen = isnan(c->scores[rung * c->n_trials + trials[0]]) ? -1 : trials[0];
}

static ct_status begin_choice(const ct_study *study, const ct_cell *cell, ct_choice **out) {
    CT_SCOPED_HANDLE(ct_choice) c = NULL;
    CT_TRY(ct_make(&c, 1, "what is tried"));
    snprintf(c->grid, sizeof c->grid, "%s", cell->tune);
    ct_tune_name_seeds(study, cell, c->seeds, sizeof c->seeds);
    c->fraction = study->tune.fraction;
    c->n_rungs = study->tune.n_rungs;
    CT_TRY(ct_axes_add_grid(&c->axes, "tune", c->grid));
    c->n_trials = ct_axes_count(&c->axes);
    size_t n = (size_t)c->n_rungs * (size_t)c->n_trials;
    CT_TRY(ct_make(&c->scores, n, "what is tried"));
    CT_TRY(ct_make(&c->is_tried, n, "what is tried"));
    CT_TRY(ct_make(&c->is_done, n, "what is tried"));
    c->is_open = true;
    for (size_t k = 0; k < n; k++) c->scores[k] = NAN;
    for (int k = 0; k < c->n_trials; k++) c->is_tried[k] = true;
    for (int r = 0; r < c->n_rungs; r++) c->epochs[r] = ct_tune_epochs(study, cell, r);
    ct_move(out, &c);
    return CT_OK;
}

/* The scores of trials that are known from before. */
static ct_status take_known(const ct_cell *cell, ct_choice *c) {
    CT_SCOPED_HANDLE(ct_choice) before = NULL;
    CT_TRY(read_choice(cell, &before));
    for (int k = 0; before != NULL && k < c->n_rungs * c->n_trials; k++) {
        c->scores[k] = before->scores[k];
        c->is_done[k] = before->is_done[k];
    }
    return CT_OK;
}

static ct_status end_choice(ct_cell *cell, ct_choice *c) {
    CT_SCOPED(ct_text) values = {0};
    c->is_open = false;
    CT_TRY(write_choice(cell, c));
    if (c->chosen < 0) {
        ct_note("%s: nothing that was tried came to an end without diverging", cell->name);
        return CT_OK;
    }
    ct_axes_print(&c->axes, c->chosen, &values);
    CT_TRY(ct_text_status(&values));
    ct_note("%s: chose%s (validation %.2f %%)", cell->name, values.chars,
            100 * c->scores[(c->n_rungs - 1) * c->n_trials + c->chosen]);
    return CT_OK;
}

ct_status ct_tune_cell(const ct_study *study, ct_cell *cell) {
    CT_SCOPED_HANDLE(ct_choice) c = NULL;
    int n_left = 0;
    if (cell->tuned_in != NULL) {
        if (cell->tuned_in->is_waiting) CT_TRY(ct_tune_cell(study, cell->tuned_in));
        return ct_tune_recall(study, cell);
    }
    CT_TRY(begin_choice(study, cell, &c));
    CT_TRY(take_known(cell, c));
    for (int r = 0; r < c->n_rungs;) {
        CT_TRY(run_rung(study, cell, c, r, &n_left));
        if (n_left > 0) return CT_OK;
        end_rung(c, r);
        if (c->chosen >= 0 || !try_next(c, &r)) r++;
    }
    CT_TRY(end_choice(cell, c));
    ct_move(&cell->choice, &c);
    return put_values(study, cell);
}
