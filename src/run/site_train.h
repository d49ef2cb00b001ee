/* `crosstalk site run`: the training of one site of a federation, from its file to its end. */
#ifndef CT_RUN_SITE_TRAIN_H
#define CT_RUN_SITE_TRAIN_H

#include "run/run.h"
#include "site/site.h"

typedef struct ct_site_plan {
    const char *federation; /* its file */
    const char *site;       /* name; NULL: the one whose key this is */
    const char *key;        /* file of the site's key pair */
    const char *listen;     /* host:port; NULL: as the federation says */
    double patience_s;      /* at the end, for sites that are gone */
    ct_config local;        /* options of this site: where its data is, what it computes with */
} ct_site_plan;

/* The key, and which site this is. */
ct_status ct_site_plan_check(const ct_site_plan *plan, const ct_federation *federation,
                             ct_key_pair *key, int *me);
/* The options of a run of this site: the federation's, and its own. CT_INVAL: an own option that is
 * the federation's to say. graph, edges: what the config's inputs lie in. */
ct_status ct_site_config(const ct_site_plan *plan, const ct_federation *federation, int me,
                         ct_inputs *inputs, ct_edges *edges, ct_config *out);
/* Trains, and begins again where it was when it is called again. SIGHUP: the federation's file is
 * read anew. */
ct_status ct_site_train(const ct_site_plan *plan);

#endif
