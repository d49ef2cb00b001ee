/* Tar archives, plain or gzip, read from front to back by libarchive; without it, opening one is
 * CT_NOTBUILT. An archive is a stranger's: members with absolute names or `..`, links, devices, and more than
 * the bytes allowed are refused. */
#ifndef CT_DATA_TAR_H
#define CT_DATA_TAR_H

#include "util/file.h"
#include "util/status.h"

#define CT_TAR_NAME 1024

typedef struct ct_tar ct_tar;

typedef struct ct_tar_entry {
    char name[CT_TAR_NAME]; /* relative, without `..` and without a slash at the end */
    uint64_t size;          /* bytes of a file */
    bool is_dir;
} ct_tar_entry;

/* Unpacked, the whole archive may have at most max_bytes. */
ct_status ct_tar_open(const char *path, uint64_t max_bytes, ct_tar **out);
void ct_tar_close(ct_tar **tar);

/* The next member; what was not read of the one before is skipped. *more is false at the end, when
 * the rest of the file was checked too (a cut or damaged gzip file is CT_IO). */
ct_status ct_tar_next(ct_tar *tar, ct_tar_entry *out, bool *more);
/* The next n bytes of the member; there must be that many. */
ct_status ct_tar_read(ct_tar *tar, void *bytes, size_t n);
/* All of the member, at most max_bytes. */
ct_status ct_tar_blob(ct_tar *tar, const ct_tar_entry *entry, size_t max_bytes, ct_blob *out);

/* Unpacks everything below `dir`, which is created; an existing file is not overwritten. */
ct_status ct_tar_unpack(const char *path, const char *dir, uint64_t max_bytes);

#endif
