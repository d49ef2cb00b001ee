/* Which runs a name stands for. */
#ifndef CT_RECORD_FIND_H
#define CT_RECORD_FIND_H

#include "util/folder.h"

/* Names that grow; every one is owned by the list. */
typedef struct ct_name_list {
    char **name;
    int n;
} ct_name_list;

ct_status ct_name_list_add(ct_name_list *list, const char *name);
void ct_name_list_free(ct_name_list *list);

/* Paths of the runs that `name` stands for, in order: a run directory, a directory that holds runs
 * (one or two levels below; those of --seeds hold one for each seed), a bundle (bundle.h) or a
 * metrics file. */
ct_status ct_record_find(const char *name, ct_name_list *out);
/* Those in an open directory, perhaps none. What cannot be looked into hides nothing else: it is a
 * sentence in `complaints`. */
ct_status ct_record_find_in(const ct_folder *root, ct_name_list *out, ct_name_list *complaints);

#endif
