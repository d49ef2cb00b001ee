/* A site of a running federation: what its agent and its neighbours tell each other, over the mesh.
 * There is no centre; a site hears from its neighbours alone.
 *
 * Before training, all sites agree (ct_site_agree): what each says goes up a spanning tree of the
 * graph, merged on the way, and what comes out floods back. A site that comes later, or comes back,
 * gets what was agreed from any neighbour.
 *
 * In training an edge carries rows from some iteration on. Two sites that meet find it so: who
 * enters *knocks*; who trains answers with the first iteration it can be joined in, and waits there
 * for the other's answer. The edge carries rows from the later of the two. A neighbour that falls
 * silent is gone, and the edge with it, until the two meet again.
 *
 * At the end the mean of all models is found along a spanning tree of those sites that are there:
 * what travels up is the sum of a subtree (in fixed point, so that no order changes a bit), what
 * floods back the mean. */
#ifndef CT_SITE_SITE_H
#define CT_SITE_SITE_H

#include "site/federation.h"
#include "util/fixed.h"

typedef struct ct_site ct_site;

typedef struct ct_site_options {
    const ct_federation *federation; /* lent */
    int me;                          /* place among its sites */
    const ct_key_pair *key;
    const char *listen;  /* host:port; NULL: where the federation says that this site is reached */
    const char *program; /* version and commit: alike at all sites */
    double timeout_s;    /* longest wait for a neighbour that lives but says nothing */
    double patience_s;   /* at the end: longest wait for sites that are gone */
    void (*tell)(void *context, ct_site *site); /* once a heartbeat, while letters come: for its own
                                                 * people; may be NULL */
    void *context;
    int (*signal)(void); /* asked while waiting: not 0 ends the wait with CT_STOPPED; may be NULL */
} ct_site_options;

/* Listens and dials from now on. */
ct_status ct_site_open(const ct_site_options *options, ct_site **out);
/* Says goodbye. */
void ct_site_close(ct_site **site);

const ct_federation *ct_site_federation(const ct_site *site);
int ct_site_me(const ct_site *site);
const char *ct_site_own_name(const ct_site *site);

/* ---- before training ---- */

/* As ct_merge (transport.h). */
typedef ct_status ct_site_merge(void *context, const char *theirs, size_t n, ct_text *mine);
#define CT_MAX_ROUNDS 16
/* The next round of agreement: text becomes what all sites say, merged; a refusal is everyone's. */
ct_status ct_site_agree(ct_site *site, ct_site_merge *merge, void *context, ct_text *text);
/* Others had agreed before this site came. */
bool ct_site_is_late(const ct_site *site);
/* What was agreed so far, to be kept (JSON); and to begin with it again, rounds included that are
 * still to come. */
void ct_site_print_agreed(const ct_site *site, ct_text *out);
ct_status ct_site_take_agreed(ct_site *site, const char *text, size_t n, const char *what);

/* ---- training ---- */

/* Reads this site's model, for neighbours that were away: n numbers. */
typedef ct_status ct_site_model(void *context, float *row);

typedef struct ct_site_training {
    size_t n_parameters;  /* of a model */
    size_t n_mean;        /* numbers that ct_site_mean is of: a model, and more */
    size_t n_largest_row; /* numbers of the widest row that travels */
    long n_iterations;
    bool has_model; /* one that was trained, if only before */
    ct_site_model *model;
    /* Rounds of gossip before an iteration; NULL: every one is a round. */
    long (*rounds)(const void *context, long iteration);
    void *context;
} ct_site_training;

/* Joins the neighbours that are there, having done *iteration: of a run that begins, all of them.
 * *iteration becomes the one to go on with. mean: if not NULL and any neighbour is ahead, filled
 * with the mean of the neighbours' models, and *n_mean with their number (0: nobody had one). */
ct_status ct_site_enter(ct_site *site, const ct_site_training *training, bool is_new,
                        long *iteration, float *mean, int *n_mean);
/* The neighbours are so far ahead that it is better to enter again. */
bool ct_site_is_behind(const ct_site *site);
/* Before an iteration: is_with[agent] of all neighbours. *has_changed: not as in the one before. */
ct_status ct_site_begin(ct_site *site, long iteration, bool *has_changed);
bool ct_site_is_with(const ct_site *site, int agent);

/* What is sent for a row of an exchange. */
typedef struct ct_site_parcel {
    const char *what; /* in sent.jsonl */
    const void *bytes;
    size_t n;
    bool is_first; /* the whole row that changes will be added to */
} ct_site_parcel;

/* What is wanted of a row: n numbers as they are or, where n_packed is not 0, packed ones. */
typedef struct ct_site_row {
    float *values; /* [n]; what packed rows are added to is there before */
    size_t n;
    size_t n_packed;  /* bytes */
    bool are_changes; /* the first packed row of an edge comes as it is */
    /* values += what it says; false: it is no such row. */
    bool (*unpack)(const void *context, const void *packed, float *values);
    const void *context;
} ct_site_row;

/* The neighbour has what changes are added to; otherwise the next row to it must be a first one. */
bool ct_site_takes_changes(const ct_site *site, int agent);
/* A row to or from a neighbour; `exchange` tells those of an iteration apart. Sent to those who are
 * with us; *has_arrived is false if the neighbour went away meanwhile, and values are then of no
 * use. */
ct_status ct_site_send(ct_site *site, int agent, int exchange, const ct_site_parcel *parcel,
                       bool *is_sent);
ct_status ct_site_receive(ct_site *site, int agent, int exchange, const ct_site_row *row,
                          bool *has_arrived);

/* A row of the neighbour is there, or none will come; and a moment's wait for any of them. */
bool ct_site_has(ct_site *site, int agent);
ct_status ct_site_await(ct_site *site);

/* After the last iteration: the mean of the models of all sites that are there. sums: this site's
 * model (ct_fixed_add), n_mean numbers, used as scratch. */
ct_status ct_site_mean(ct_site *site, ct_fixed *sums, float *mean, int *n_sites);
/* With all of this site's results on disk: until every neighbour that is there, or was when its training had ended, has the mean. */
void ct_site_linger(ct_site *site);

/* ---- what happened ---- */

/* How this site stands, its neighbours and what travelled: a JSON object. */
void ct_site_print_status(ct_site *site, ct_text *out);
/* One JSON line for every neighbour and kind of letter since the last call. */
void ct_site_print_sent(ct_site *site, ct_text *out);

#endif
