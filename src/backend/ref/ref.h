/* The reference backend: complete, plain loops, all values in double between the float rows. */
#ifndef CT_BACKEND_REF_H
#define CT_BACKEND_REF_H

#include "backend/backend.h"

ct_status ct_backend_ref_create(const ct_backend_options *options, ct_backend **out);

/* temps: [CT_MAX_TEMPS][update->n_rows] doubles. */
void ct_ref_update(const ct_update *update, double *temps);

#endif
