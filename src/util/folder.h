/* Open directories. What is inside is opened through the handle, so that nobody changes the way
 * there meanwhile. A sealed one is all there is: below it no symbolic link is followed and nothing
 * goes up, so that no name leads out of it. */
#ifndef CT_UTIL_FOLDER_H
#define CT_UTIL_FOLDER_H

#include <sys/stat.h>

#include "util/file.h"

typedef struct ct_folder {
    int fd;           /* -1: there is no such directory, and nothing in it */
    bool is_sealed;   /* so are those opened below it */
    const char *path; /* for messages; the caller's */
} ct_folder;
#define CT_LINK_REFUSED "a symbolic link, which is not followed here"
#define CT_NO_FOLDER    ((ct_folder){.fd = -1})

/* The directory at `path`, which begins with the path of `root`; without a root, anywhere. One that
 * is not there is CT_OK and has no fd; one that must not be entered is CT_IO. */
ct_status ct_folder_open(const ct_folder *root, const char *path, ct_folder *out);
void ct_folder_close(ct_folder *folder);

/* What has this name in it; a symbolic link is itself where it is not followed. */
bool ct_folder_stat(const ct_folder *folder, const char *name, struct stat *out);
/* That is a file; or, where it is not followed, a link that ct_folder_read will refuse. */
static inline bool ct_folder_is_file(const struct stat *what) {
    return S_ISREG(what->st_mode) || S_ISLNK(what->st_mode);
}
/* The file's content, as ct_file_read. */
ct_status ct_folder_read(const ct_folder *folder, const char *name, size_t max_bytes, ct_blob *out);
/* Calls each(context, name) for everything in it but what begins with a point, until it fails. */
ct_status ct_folder_list(const ct_folder *folder,
                         ct_status (*each)(void *context, const char *name), void *context);

/* The rest of `path` below the folder's; "." for its own. NULL: it lies elsewhere. */
const char *ct_folder_name(const ct_folder *folder, const char *path);

#endif
