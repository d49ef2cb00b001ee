/* What fuzz targets share. Each fuzz_<format>.c feeds arbitrary bytes to one parser; it must
 * neither crash nor hang nor read what is not there, whatever they are. tests/test_fuzz.c drives
 * all of them with mutations of the files in corpus/<format>/ (their list is target_list.h);
 * libFuzzer builds them one by one (tests/test_fuzz.sh).
 *
 * A format with checksums repairs them in fuzz_repair, so that what is mutated gets past them. */
#ifndef CT_FUZZ_H
#define CT_FUZZ_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
void fuzz_repair(uint8_t *data, size_t n);

/* How many inputs were taken for good: those of the corpus must be. */
__attribute__((weak)) unsigned long fuzz_n_accepted;

/* The folder $CT_FUZZ_DIR, or one of this process's own, made when first asked for. */
static inline const char *fuzz_dir(void) {
    static char dir[96];
    const char *given = getenv("CT_FUZZ_DIR");
    if (dir[0] != '\0') return dir;
    if (given != NULL) {
        snprintf(dir, sizeof dir, "%s", given);
        return dir;
    }
    snprintf(dir, sizeof dir, "%s/crosstalk-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(dir) == NULL) perror(dir);
    setenv("CT_FUZZ_DIR", dir, 1); /* one folder for all targets of a program */
    return dir;
}

/* dir/name; good until the fourth one after it. */
static inline const char *fuzz_path(const char *name) {
    static char path[4][192];
    static int next;
    char *at = path[next++ % 4];
    snprintf(at, sizeof path[0], "%s/%s", fuzz_dir(), name);
    return at;
}

/* Writes dir/name and returns its path. */
static inline const char *fuzz_file(const char *name, const uint8_t *data, size_t n) {
    const char *path = fuzz_path(name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, n) != (ssize_t)n) perror(path);
    if (fd >= 0) close(fd);
    return path;
}

/* ---- several files in one input: a line "=== name" before each ---- */

/* The content of the next file behind *at: true with where it begins and ends. */
static inline bool fuzz_next_part(const uint8_t *data, size_t n, size_t *at, char name[64],
                                  size_t *begin, size_t *end) {
    static const char mark[] = "=== ";
    if (n - *at < 5 || memcmp(data + *at, mark, 4) != 0) return false;
    const uint8_t *line = data + *at + 4, *stop = memchr(line, '\n', n - *at - 4);
    if (stop == NULL || stop - line > 63) return false;
    memcpy(name, line, (size_t)(stop - line));
    name[stop - line] = '\0';
    *begin = (size_t)(stop - data) + 1;
    do { /* this line's end, until a mark stands behind it */
        stop = memchr(stop + 1, '\n', n - (size_t)(stop + 1 - data));
    } while (stop != NULL && (data + n - stop <= 4 || memcmp(stop + 1, mark, 4) != 0));
    *end = stop != NULL ? (size_t)(stop - data) : n;
    *at = *end < n ? *end + 1 : n;
    return true;
}

/* Writes the files of these names, at most 32 of them, and removes the others. */
static inline void fuzz_folder(const char *const *names, int n_names, const uint8_t *data,
                               size_t n) {
    char name[64];
    size_t at = 0, begin, end;
    uint32_t written = 0;
    while (at < n && fuzz_next_part(data, n, &at, name, &begin, &end))
        for (int k = 0; k < n_names; k++) {
            if (strcmp(name, names[k]) != 0) continue;
            fuzz_file(name, data + begin, end - begin);
            written |= UINT32_C(1) << k;
        }
    for (int k = 0; k < n_names; k++)
        if ((written >> k & 1) == 0) unlink(fuzz_path(names[k]));
}

#endif
