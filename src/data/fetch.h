/* Files from the network, and the official archives of the data sets. */
#ifndef CT_DATA_FETCH_H
#define CT_DATA_FETCH_H

#include "util/status.h"

typedef struct ct_fetch_options {
    const char *digest; /* 64 digits: SHA-256, 32: MD5; NULL: not checked */
    bool progress;      /* a line on stderr */
    int n_tries;        /* after a cut connection; 0 = 5 */
    int pause_s;        /* seconds between tries */
} ct_fetch_options;

/* Downloads to `path`, which appears only when it is complete and its digest is right. What there
 * is of it lies in path.part meanwhile; a later call goes on from there. */
ct_status ct_fetch(const char *url, const char *path, const ct_fetch_options *options);

typedef struct ct_get_options {
    const char *url;    /* folder to take the files from instead of the official one; NULL: that */
    const char *digest; /* instead of the published one, for sets of one file; NULL: that */
    bool progress;
    int pause_s;
} ct_get_options;

/* Gets the files of a named set into `dir` and unpacks them there. CT_INVAL: not a set that can be
 * had this way, with those that can. */
ct_status ct_get(const char *set, const char *dir, const ct_get_options *options);

/* The official digest of a file of that name in that set; NULL: none is known. */
const char *ct_known_digest(const char *set, const char *file);

#endif
