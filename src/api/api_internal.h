/* What the public functions share. Each is a thin shell around calls of other modules: it checks the
 * handles, collects what is said in the caller's ct_error and keeps outputs untouched on failure. */
#ifndef CT_API_API_INTERNAL_H
#define CT_API_API_INTERNAL_H

#include "util/status.h"

/* A handle or an argument that must be there; freed handles are NULL. */
#define CT_NEED(pointer)                                                                           \
    do {                                                                                           \
        if ((pointer) == NULL) return ct_fail(CT_INVAL, "%s is NULL", #pointer);                   \
    } while (0)

/* Copies a text that the caller has `size` bytes for; CT_INVAL: that is too little. */
ct_status ct_copy_out(const char *text, char *out, size_t size);

#endif
