/* The files of a folder of pictures: <class>/<file>, classes and files in the order of their names.
 */
#ifndef CT_DATA_LISTING_H
#define CT_DATA_LISTING_H

#include "util/status.h"
#include "util/file.h"

#define CT_LISTING_MAX_CLASSES 65536

typedef struct ct_listing {
    char *root;      /* names are below it */
    size_t n;        /* files */
    char *names;     /* "class/file", one after the other, each with its 0 */
    size_t *at;      /* [n] where a name begins */
    int32_t *labels; /* [n] */
    int n_classes;
    char *class_names; /* one after the other, each with its 0 */
} ct_listing;

/* Every file in the folders of `root`, however deep; hidden ones are left out. Label = place of the
 * folder among `classes` (of another listing), or among all folders if that is NULL. CT_IO: no
 * folder, no file, or a folder that is not among the classes. */
ct_status ct_listing_read(const char *root, const ct_listing *classes, ct_listing *out);
/* Every file below `root`, however deep, sorted by name; hidden ones are left out. Without classes
 * and labels. CT_IO: there is none. */
ct_status ct_listing_read_all(const char *root, ct_listing *out);
void ct_listing_free(ct_listing *listing);

/* Only the files with keep[i], in order. */
void ct_listing_keep(ct_listing *listing, const bool *keep);
/* Only n files, as many as possible of every class, the first ones. */
ct_status ct_listing_shorten(ct_listing *listing, size_t n);
/* Copies the listing. */
ct_status ct_listing_copy(const ct_listing *from, ct_listing *out);
/* root/name */
ct_path ct_listing_path(const ct_listing *listing, size_t i);
/* Of names and labels in order. */
uint64_t ct_listing_hash(const ct_listing *listing);
/* The same and the files' content (fingerprint.c), by so many threads. */
ct_status ct_listing_content(const ct_listing *listing, int n_workers, uint64_t *out);

/* Does `root` hold at least one folder with a picture in it, judged by the first files' names? */
bool ct_listing_looks_right(const char *root);

#endif
