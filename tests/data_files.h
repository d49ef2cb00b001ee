/* Scratch folders and files for the tests of the data module. */
#ifndef CT_TEST_DATA_FILES_H
#define CT_TEST_DATA_FILES_H

#include <fts.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "ct_config.h"
#include "util/file.h"
#include "util/status.h"

static char scratch[128];

static inline void scratch_open(void) {
    snprintf(scratch, sizeof scratch, "/tmp/crosstalk-data-XXXXXX");
    if (mkdtemp(scratch) == NULL) perror(scratch);
}

static inline void scratch_close(void) {
    char *roots[] = {scratch, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (walk == NULL) return;
    for (FTSENT *entry = fts_read(walk); entry != NULL; entry = fts_read(walk))
        if (entry->fts_info != FTS_D) remove(entry->fts_accpath);
    fts_close(walk);
}

/* scratch/name; one of a few buffers, so that two can be used in one call. */
static inline const char *in_scratch(const char *name) {
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
    return path;
}

/* Makes the folders on the way to scratch/name. */
static inline void make_folders(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s", in_scratch(name));
    for (char *at = path + strlen(scratch) + 1; *at != '\0'; at++) {
        if (*at != '/') continue;
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
}

static inline void write_file(const char *name, const void *bytes, size_t n) {
    make_folders(name);
    FILE *f = fopen(in_scratch(name), "wb");
    if (f == NULL || fwrite(bytes, 1, n, f) != n) perror(name);
    if (f != NULL) fclose(f);
}

static inline void write_gzip(const char *name, const void *bytes, size_t n) {
    gzFile f = gzopen(in_scratch(name), "wb1");
    if (f == NULL || gzwrite(f, bytes, (unsigned)n) != (int)n) perror(name);
    if (f != NULL) gzclose(f);
}

/* The first n_kept bytes of a picture among the fixtures, as scratch/name. */
static inline void put_picture(const char *fixture, const char *name, size_t n_kept) {
    char path[512];
    ct_blob file = {0};
    snprintf(path, sizeof path, "%s/tests/fixtures/images/%s", CT_SOURCE_DIR, fixture);
    if (ct_file_read(path, 1 << 20, &file) != CT_OK) printf("    %s\n", ct_message());
    write_file(name, file.bytes, n_kept < file.n ? n_kept : file.n);
    ct_blob_free(&file);
}

#define NEED_ARCHIVE                                                                               \
    if (!CT_WITH_ARCHIVE) SKIP("built without libarchive")

/* A tar archive in memory. */
typedef struct archive {
    uint8_t bytes[1 << 19];
    size_t n;
} archive;

static inline void add_member(archive *a, const char *name, char type, const void *bytes,
                              size_t n) {
    uint8_t *head = a->bytes + a->n;
    memset(head, 0, 512);
    snprintf((char *)head, 100, "%s", name);
    snprintf((char *)head + 100, 8, "0000644");
    snprintf((char *)head + 124, 12, "%011o", (unsigned)n);
    head[156] = (uint8_t)type;
    if (type == '1' || type == '2') snprintf((char *)head + 157, 100, "/etc/passwd");
    memcpy(head + 257, "ustar\00000", 8);
    memset(head + 148, ' ', 8);
    unsigned sum = 0;
    for (int k = 0; k < 512; k++) sum += head[k];
    snprintf((char *)head + 148, 8, "%06o", sum);
    if (n > 0) memcpy(head + 512, bytes, n);
    size_t padded = (n + 511) / 512 * 512;
    memset(head + 512 + n, 0, padded - n);
    a->n += 512 + padded;
}

static inline void end_archive(archive *a) {
    memset(a->bytes + a->n, 0, 1024);
    a->n += 1024;
}

#endif
