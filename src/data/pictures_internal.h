/* What pictures are made of. */
#ifndef CT_DATA_PICTURES_INTERNAL_H
#define CT_DATA_PICTURES_INTERNAL_H

#include <pthread.h>

#include "data/pack.h"
#include "data/pictures.h"

struct ct_pictures {
    ct_pictures_spec spec;
    ct_listing files;
    size_t n_listed;   /* before broken ones were left out */
    ct_pack *pack;     /* small pictures on disk; NULL: decoded from their files */
    size_t pack_first; /* picture i is the pack's pack_first + i, */
    size_t *in_pack;   /* or in_pack[i], once some were left out */
    bool is_imported;  /* there are no files behind the pack */
    ct_picture *kept;  /* [n_kept] small pictures in memory; NULL: made each time */
    size_t n_kept;
    pthread_mutex_t lock;
    bool *is_broken; /* under lock: found broken when asked for */
    size_t n_broken; /* likewise */
};

/* Picture i from its file. CT_IO: the decoder has the reason. */
ct_status ct_pictures_decode(const ct_pictures *pictures, size_t i, ct_decoder *decoder,
                             ct_picture *out);
/* The pack of these pictures in the cache directory, made if it is not there. */
ct_status ct_pictures_attach_cache(ct_pictures *pictures);

#endif
