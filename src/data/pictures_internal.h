/* What pictures are made of. */
#ifndef CT_DATA_PICTURES_INTERNAL_H
#define CT_DATA_PICTURES_INTERNAL_H

#include <pthread.h>

#include "data/pictures.h"

struct ct_pictures {
    ct_pictures_spec spec;
    ct_listing files;
    size_t n_listed;  /* before broken ones were left out */
    ct_picture *kept; /* [files.n] small pictures in memory; NULL: decoded each time */
    pthread_mutex_t lock;
    bool *is_broken; /* under lock: found broken when asked for */
    size_t n_broken; /* likewise */
};

#endif
