/* Files from the network, and the official archives of the data sets. */
#ifndef CT_DATA_FETCH_H
#define CT_DATA_FETCH_H

#include "util/sha256.h"
#include "util/status.h"

typedef struct ct_fetch_options {
    const char *digest; /* SHA-256, 64 digits */
    int64_t max_bytes;  /* more than that is refused */
    bool progress;      /* a line on stderr */
    int n_tries;        /* after a cut connection; 0 = 5 */
    int pause_s;        /* seconds between tries */
    int stall_s;        /* a connection that brings next to nothing for so long is cut; 0 = 60 */
} ct_fetch_options;

/* Downloads from https:// (or copies from file://) to `path`, which appears only when it is complete
 * and its digest is right. What there is of it lies in path.part meanwhile; a later call goes on
 * from there. CT_INVAL: any other address. The environment's SSL_CERT_FILE names the certificates
 * to trust instead of the system's. */
ct_status ct_fetch(const char *url, const char *path, const ct_fetch_options *options);

typedef struct ct_get_options {
    const char *url;    /* folder to take the files from instead of the official one; NULL: that */
    const char *digest; /* instead of the published one, for sets of one file; NULL: that */
    bool replace;       /* what is there and is not as published */
    bool progress;
    int pause_s;
} ct_get_options;

/* Gets the files of a named set into `dir` and unpacks them there. What is there already is compared
 * with what was published, or with what the archive held when it was unpacked (folder.sha256), and
 * is left alone. CT_INVAL: not a set that can be had this way, with those that can. CT_BUSY: another
 * process is at it. */
ct_status ct_get(const char *set, const char *dir, const ct_get_options *options);

/* A file of a set whose digest is known. */
typedef struct ct_published {
    enum { CT_ARCHIVE, CT_PACKED, CT_UNPACKED } kind; /* PACKED: used as it is; often packed anew */
    char name[1024];                                  /* UNPACKED: in the archive's folder */
    char digest[CT_DIGEST_TEXT];
} ct_published;

/* The k-th of them; false: there are not so many. */
bool ct_published_file(const char *set, int k, ct_published *out);

#endif
