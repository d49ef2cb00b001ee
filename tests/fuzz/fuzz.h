/* What fuzz targets share. Each fuzz_<format>.c feeds arbitrary bytes to one parser; it must
 * neither crash nor hang nor read what is not there, whatever they are. libFuzzer builds them one
 * by one (tests/test_fuzz.sh); tests/test_data_fuzz.c runs them all on bytes damaged in fixed ways.
 */
#ifndef CT_FUZZ_H
#define CT_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The folder $CT_FUZZ_DIR, or one of this process's own, made when first asked for. */
static inline const char *fuzz_dir(void) {
    static char dir[96];
    const char *given = getenv("CT_FUZZ_DIR");
    if (given != NULL) snprintf(dir, sizeof dir, "%s", given);
    if (dir[0] == '\0') {
        snprintf(dir, sizeof dir, "%s/crosstalk-fuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (mkdtemp(dir) == NULL) perror(dir);
    }
    return dir;
}

/* Writes dir/name and returns its path. */
static inline const char *fuzz_file(const char *name, const uint8_t *data, size_t n) {
    static char path[4][160];
    static int next;
    char *at = path[next++ % 4];
    snprintf(at, sizeof path[0], "%s/%s", fuzz_dir(), name);
    FILE *f = fopen(at, "wb");
    if (f != NULL) {
        if (n > 0) fwrite(data, 1, n, f);
        fclose(f);
    }
    return at;
}

#endif
