/* Light runs: what is kept of a finished run. */
#ifndef CT_RECORD_LIGHT_H
#define CT_RECORD_LIGHT_H

#include "util/status.h"

/* Makes a finished run small enough to be kept, and free of this machine's paths. `name` is what its
 * files then call its directory. */
ct_status ct_record_lighten(const char *dir, const char *name);
/* The same for one that has been made light before, by an older version; others are left alone. */
ct_status ct_record_lighten_again(const char *dir, const char *name);

#endif
