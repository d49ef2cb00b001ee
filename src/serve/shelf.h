/* The runs below a directory, each kept as it was read until its files change. Nothing outside the
 * directory is read: symbolic links in it are not followed, and told. */
#ifndef CT_SERVE_SHELF_H
#define CT_SERVE_SHELF_H

#include "record/find.h"
#include "record/record.h"

typedef struct ct_shelf_run {
    char *path;
    ct_record_stamp stamp; /* of its files when they were read */
    ct_record record;      /* empty if there is a complaint */
    char *complaint;       /* why it cannot be shown; or NULL */
    size_t n_bytes;        /* it takes about so many */
} ct_shelf_run;

typedef struct ct_shelf {
    char *dir;
    ct_shelf_run *runs; /* [n], in the order of the list */
    int n;
    int at; /* where the last one was found: they are asked for in order */
    size_t n_bytes;
    ct_name_list complaints; /* about folders that cannot be looked into */
} ct_shelf;

ct_status ct_shelf_open(const char *dir, ct_shelf *out);
/* Looks for runs that came, changed and went. */
ct_status ct_shelf_refresh(ct_shelf *shelf);
void ct_shelf_free(ct_shelf *shelf);

#endif
