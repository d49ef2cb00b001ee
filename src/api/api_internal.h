/* What the public functions share. Each is a thin shell around calls of other modules: it checks the
 * handles, collects what is said in the caller's ct_error and keeps outputs untouched on failure. */
#ifndef CT_API_API_INTERNAL_H
#define CT_API_API_INTERNAL_H

#include <crosstalk/run.h>

#include "util/log.h"

/* A handle or an argument that must be there; freed handles are NULL. */
#define CT_NEED(pointer)                                                                           \
    do {                                                                                           \
        if ((pointer) == NULL) return ct_fail(CT_INVAL, "%s is NULL", #pointer);                   \
    } while (0)

/* Copies a text that the caller has `size` bytes for; CT_INVAL: that is too little. */
ct_status ct_copy_out(const char *text, char *out, size_t size);

/* The run's hooks are the thread's from now on; what they were is handed back at the end. */
const ct_hooks *ct_run_listen(const ct_run *run);
ct_status ct_run_unlisten(const ct_hooks *before, ct_status status);

#endif
