/* crosstalk/base.h, beside what util/status.c has of it. */
#include <crosstalk/version.h>

#include <string.h>

#include "api/api_internal.h"

const char *ct_version(void) {
    return CT_VERSION;
}

ct_status ct_copy_out(const char *text, char *out, size_t size) {
    size_t n = strlen(text) + 1;
    CT_NEED(out);
    if (n > size) return ct_fail(CT_INVAL, "%zu bytes are too few for a text of %zu", size, n);
    memcpy(out, text, n);
    return CT_OK;
}
