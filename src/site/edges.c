/* Which edges carry rows, and from which iteration on.
 *
 * START(k) says: "from iteration k on I am with you, and not before". An edge carries rows from the
 * later of the two STARTs on. Who enters knocks, and is answered by all who are there:
 *   who trains in iteration k     START(k + 1), and waits there for the other's START
 *   who enters as well            START of the iteration it could go on with
 * When all have answered, the one who enters starts with the latest, and says so with a START. A
 * later START replaces an earlier one: whoever waits for rows of the neighbour goes on without. */
#include "site/site_internal.h"

#include <math.h>
#include <string.h>

#include "util/log.h"
#include "util/memory.h"

#define GRACE_HEARTBEATS 3.0 /* how long who comes back waits for its neighbours to be there */

typedef struct knock {
    uint64_t wants_model;
} knock;

void ct_site_forget_edge(ct_neighbour *neighbour) {
    neighbour->has_knocked = neighbour->was_asked = neighbour->is_with = false;
    neighbour->wants_model = neighbour->owes_model = neighbour->is_wanted = false;
    neighbour->my_start = neighbour->their_start = neighbour->first_start = CT_NEVER;
    neighbour->told = neighbour->heard = CT_NEVER;
    ct_kept_free(&neighbour->model);
    ct_kept_free(&neighbour->early.row);
}

typedef struct start {
    uint64_t gives_model; /* one follows */
} start;

static ct_status post_start(ct_site *site, int k, long iteration, bool gives_model) {
    start said = {.gives_model = gives_model};
    site->neighbours[k].my_start = iteration;
    return ct_site_post(site, k, CT_LETTER_START, 0, iteration, "control", &said, sizeof said);
}

/* The first iteration in which someone could join us. */
static long next_start(const ct_site *site) {
    if (site->phase == CT_SITE_ENTERS) return site->iteration;
    if (site->phase != CT_SITE_TRAINS) return site->training.n_iterations;
    return site->iteration + 1;
}

static ct_status post_knock(ct_site *site, int k, bool wants_model) {
    knock said = {.wants_model = wants_model};
    site->neighbours[k].was_asked = true;
    site->neighbours[k].wants_model = wants_model;
    return ct_site_post(site, k, CT_LETTER_KNOCK, 0, site->iteration, "control", &said,
                        sizeof said);
}

static ct_status post_model(ct_site *site, int k) {
    size_t n = site->training.n_parameters;
    CT_SCOPED_BLOCK(float) row = NULL;
    CT_TRY(ct_make(&row, n, "a model"));
    CT_TRY(site->training.model(site->training.context, row));
    return ct_site_post(site, k, CT_LETTER_MODEL, 0, site->iteration, "parameters", row,
                        n * sizeof *row);
}

static ct_status answer_knock(ct_site *site, int k) {
    bool has_model = site->phase != CT_SITE_ENTERS || site->training.has_model;
    const ct_neighbour *neighbour = &site->neighbours[k];
    bool gives_model = neighbour->is_wanted && has_model;
    /* it had answered our knock before it asked us: what both have said stands */
    bool is_settled = neighbour->my_start != CT_NEVER && neighbour->their_start != CT_NEVER;
    CT_TRY(post_start(site, k, is_settled ? neighbour->my_start : next_start(site), gives_model));
    if (gives_model) CT_TRY(post_model(site, k));
    if (site->result.n == 0) return CT_OK;
    return ct_site_post(site, k, CT_LETTER_RESULT, 0, site->iteration, "consensus model",
                        site->result.bytes, site->result.n);
}

ct_status ct_site_hear_knock(ct_site *site, int k, const ct_letter *letter) {
    knock said;
    if (letter->n != sizeof said) {
        ct_site_cut(site, k, "sent a knock of %zu bytes", letter->n);
        return CT_OK;
    }
    memcpy(&said, letter->bytes, sizeof said);
    site->neighbours[k].has_knocked = true;
    site->neighbours[k].is_wanted = said.wants_model != 0;
    /* who does not know its own model yet answers when it enters itself */
    return site->is_training_known ? answer_knock(site, k) : CT_OK;
}

ct_status ct_site_hear_start(ct_site *site, int k, const ct_letter *letter) {
    ct_neighbour *neighbour = &site->neighbours[k];
    start said;
    bool is_asked = site->is_training_known; /* nobody has knocked before */
    if (!is_asked || letter->n != sizeof said ||
        letter->iteration > (uint64_t)site->training.n_iterations) {
        ct_site_cut(site, k, "sent a start that is none");
        return CT_OK;
    }
    memcpy(&said, letter->bytes, sizeof said);
    neighbour->owes_model = said.gives_model != 0 && neighbour->wants_model;
    neighbour->their_start = (long)letter->iteration;
    if (neighbour->first_start == CT_NEVER || neighbour->their_start < neighbour->first_start)
        neighbour->first_start = neighbour->their_start;
    neighbour->has_knocked = false;
    /* It has answered one that trains, and waits for us to say from when on: at once, for the rows
     * that we wait for may be those of someone who waits for it. One that has knocked, and ended before
     * the answer came, says so as well. */
    if (site->phase == CT_SITE_ENTERS || neighbour->my_start != CT_NEVER) return CT_OK;
    long next = next_start(site);
    return post_start(site, k, neighbour->their_start > next ? neighbour->their_start : next,
                      false);
}

ct_status ct_site_hear_model(ct_site *site, int k, const ct_letter *letter) {
    ct_neighbour *neighbour = &site->neighbours[k];
    if (!neighbour->was_asked) {
        ct_site_cut(site, k, "sent a model that nobody asked for");
        return CT_OK;
    }
    if (!neighbour->owes_model) return CT_OK; /* it comes too late */
    if (!ct_site_is_row(site, k, letter, site->training.n_parameters)) return CT_OK;
    const float *row = letter->bytes;
    for (size_t i = 0; i < site->training.n_parameters; i++) {
        if (fabs((double)row[i]) < CT_FIXED_LIMIT) continue;
        ct_site_cut(site, k, "sent a model that has diverged");
        return CT_OK;
    }
    neighbour->owes_model = false;
    return ct_kept_set(&neighbour->model, letter->bytes, letter->n);
}

/* ---- entering ---- */

/* What was said before, by one that comes back to neighbours it has not lost, counts no more; rows
 * that they have sent because of it may still be on their way (first_start). */
static void forget_starts(ct_site *site) {
    for (int k = 0; k < site->n; k++) {
        ct_neighbour *neighbour = &site->neighbours[k];
        neighbour->was_asked = neighbour->is_with = false;
        neighbour->my_start = neighbour->their_start = CT_NEVER;
        neighbour->told = neighbour->heard = CT_NEVER;
    }
}

static bool are_all_up(const ct_site *site) {
    for (int k = 0; k < site->n; k++)
        if (!site->neighbours[k].is_up) return false;
    return true;
}

static bool is_any_up(const ct_site *site) {
    for (int k = 0; k < site->n; k++)
        if (site->neighbours[k].is_up) return true;
    return false;
}

/* A run that begins needs everyone; one that goes on waits a while for those who are there, and for
 * as long as it takes for the first. */
static ct_status gather_neighbours(ct_site *site, bool is_new) {
    double began = ct_seconds(), noted = began;
    double grace = GRACE_HEARTBEATS * site->federation->heartbeat_s;
    CT_TRY(ct_site_attend(site));
    while (!are_all_up(site) && (is_new || !is_any_up(site) || ct_seconds() - began < grace)) {
        CT_TRY(ct_site_wait(site));
        ct_site_note_missing(site, &noted);
    }
    return CT_OK;
}

static ct_status ask(ct_site *site, bool wants_model) {
    for (int k = 0; k < site->n; k++) {
        ct_neighbour *neighbour = &site->neighbours[k];
        if (!neighbour->is_up || neighbour->was_asked) continue;
        CT_TRY(post_knock(site, k, wants_model));
        /* one that has knocked before we could answer */
        if (neighbour->has_knocked) CT_TRY(answer_knock(site, k));
    }
    return CT_OK;
}

static bool has_answered(const ct_neighbour *neighbour) {
    return neighbour->their_start != CT_NEVER && !neighbour->owes_model;
}

/* Whoever is there answers at once, or when it has read its data. */
static void cut_silent(ct_site *site, double *began) {
    if (ct_seconds() - *began < site->options.timeout_s) return;
    for (int k = 0; k < site->n; k++)
        if (site->neighbours[k].is_up && !has_answered(&site->neighbours[k]))
            ct_site_cut(site, k, "has not answered for %g s", site->options.timeout_s);
    *began = ct_seconds();
}

static ct_status hear_answers(ct_site *site, bool wants_model) {
    double began = ct_seconds();
    for (bool is_done = false; !is_done;) {
        CT_TRY(ask(site, wants_model));
        is_done = true;
        for (int k = 0; k < site->n; k++) {
            const ct_neighbour *neighbour = &site->neighbours[k];
            bool is_open = neighbour->is_up && !has_answered(neighbour);
            is_done = is_done && !is_open;
        }
        cut_silent(site, &began);
        if (!is_done) CT_TRY(ct_site_wait(site));
    }
    return CT_OK;
}

static long latest_start(const ct_site *site) {
    long latest = site->iteration;
    for (int k = 0; k < site->n; k++)
        if (site->neighbours[k].is_up && site->neighbours[k].their_start > latest)
            latest = site->neighbours[k].their_start;
    return latest;
}

static ct_status average(ct_site *site, float *mean, int *n_mean) {
    size_t n = site->training.n_parameters;
    CT_SCOPED_BLOCK(ct_fixed) sums = NULL;
    CT_TRY(ct_make(&sums, n, "the mean of models"));
    *n_mean = 0;
    for (int k = 0; k < site->n; k++) {
        const ct_kept *model = &site->neighbours[k].model;
        if (model->n == 0) continue;
        CT_TRY(ct_fixed_add((const float *)(const void *)model->bytes, n, sums));
        ++*n_mean;
    }
    if (*n_mean > 0) ct_fixed_mean(sums, n, *n_mean, mean);
    return CT_OK;
}

ct_status ct_site_enter(ct_site *site, const ct_site_training *training, bool is_new,
                        long *iteration, float *mean, int *n_mean) {
    bool wants_model = mean != NULL;
    site->training = *training;
    site->is_training_known = true;
    if (site->phase == CT_SITE_TRAINS) forget_starts(site);
    site->phase = CT_SITE_ENTERS;
    site->iteration = *iteration;
    size_t sum_bytes = training->n_mean * sizeof(ct_fixed) + CT_SUM_HEAD;
    size_t row_bytes = training->n_largest_row * sizeof(float);
    ct_mesh_limit(site->mesh, sum_bytes > row_bytes ? sum_bytes : row_bytes);
    CT_TRY(gather_neighbours(site, is_new));
    CT_TRY(hear_answers(site, wants_model));
    *iteration = site->iteration = latest_start(site);
    if (wants_model) CT_TRY(average(site, mean, n_mean));
    for (int k = 0; k < site->n; k++) {
        ct_kept_free(&site->neighbours[k].model);
        site->neighbours[k].owes_model = site->neighbours[k].wants_model = false;
        if (site->neighbours[k].is_up) CT_TRY(post_start(site, k, *iteration, false));
    }
    site->phase = CT_SITE_TRAINS;
    return ct_site_attend(site);
}

/* ---- iterations ---- */

static long rounds_before(const ct_site *site, long iteration) {
    const ct_site_training *t = &site->training;
    return t->rounds != NULL ? t->rounds(t->context, iteration) : iteration;
}

/* Neighbours differ by a few rounds of gossip at most, as many as there are sites between the fastest
 * and the slowest. One that was cut off, or asleep, may be further behind: they must not wait for
 * it. */
bool ct_site_is_behind(const ct_site *site) {
    long latest = rounds_before(site, site->iteration) + site->federation->n_sites;
    for (int k = 0; k < site->n; k++) {
        const ct_neighbour *neighbour = &site->neighbours[k];
        bool is_met = neighbour->is_up && neighbour->my_start != CT_NEVER;
        if (is_met && rounds_before(site, neighbour->their_start) > latest) return true;
    }
    return false;
}

bool ct_site_is_with_in(const ct_neighbour *neighbour, long iteration) {
    return neighbour->is_up && neighbour->my_start != CT_NEVER &&
           neighbour->their_start != CT_NEVER && iteration >= neighbour->my_start &&
           iteration >= neighbour->their_start;
}

/* Two that train and have lost each other: the one that dials knocks, when they meet again. */
static ct_status knock_again(ct_site *site) {
    const ct_federation *f = site->federation;
    for (int k = 0; k < site->n; k++) {
        ct_neighbour *neighbour = &site->neighbours[k];
        bool is_ours = ct_federation_dials(f, site->options.me, neighbour->agent);
        bool trains = site->records[neighbour->agent].phase == CT_SITE_TRAINS;
        if (!neighbour->is_up || neighbour->was_asked || !is_ours || !trains ||
            neighbour->my_start != CT_NEVER)
            continue;
        CT_TRY(post_knock(site, k, false));
    }
    return CT_OK;
}

/* Who has the consensus model gives it to those that knock. */
ct_status ct_site_ask_finished(ct_site *site) {
    for (int k = 0; k < site->n; k++) {
        ct_neighbour *neighbour = &site->neighbours[k];
        bool has_it = site->records[neighbour->agent].phase == CT_SITE_FINISHED;
        if (neighbour->is_up && has_it && !neighbour->was_asked) CT_TRY(post_knock(site, k, false));
    }
    return CT_OK;
}

/* Someone has knocked, and we have promised to wait for it here; not for ever. */
static bool must_wait(ct_site *site, long iteration, double began) {
    bool must = false;
    for (int k = 0; k < site->n; k++) {
        const ct_neighbour *neighbour = &site->neighbours[k];
        if (!neighbour->is_up || !neighbour->has_knocked || neighbour->my_start == CT_NEVER ||
            neighbour->my_start > iteration)
            continue;
        must = true;
        if (ct_seconds() - began > site->options.timeout_s)
            ct_site_cut(site, k, "has knocked, and has not come in for %g s",
                        site->options.timeout_s);
    }
    return must;
}

ct_status ct_site_begin(ct_site *site, long iteration, bool *has_changed) {
    *has_changed = false;
    /* whoever knocks from here on is told of the next one */
    CT_TRY(ct_site_attend(site));
    double began = ct_seconds();
    while (must_wait(site, iteration, began)) CT_TRY(ct_site_pause(site));
    site->iteration = iteration;
    CT_TRY(knock_again(site));
    for (int k = 0; k < site->n; k++) {
        ct_neighbour *neighbour = &site->neighbours[k];
        bool is_with = ct_site_is_with_in(neighbour, iteration);
        *has_changed = *has_changed || is_with != neighbour->is_with;
        neighbour->is_with = is_with;
    }
    return CT_OK;
}

bool ct_site_is_with(const ct_site *site, int agent) {
    int k = ct_site_neighbour(site, agent);
    return k >= 0 && site->neighbours[k].is_with;
}
