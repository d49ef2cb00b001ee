/* What studies write, for tests that run the program. */
#ifndef CT_TESTS_STUDIES_H
#define CT_TESTS_STUDIES_H

#include "program.h"

#include "study/study.h"

static inline bool contains(const char *path, const char *words) {
    char text[SAID];
    slurp(path, text);
    if (strstr(text, words) != NULL) return true;
    printf("    %s has no '%s':\n%s\n", path, words, text);
    return false;
}

static inline double of_summary(const char *dir, const char *key) {
    ct_json *summary = NULL;
    double value = NAN;
    if (ct_summary_read(dir, &summary) == CT_OK) value = ct_json_number(summary, key);
    ct_json_free(&summary);
    return value;
}

#endif
