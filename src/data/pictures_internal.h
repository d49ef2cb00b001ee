/* What pictures are made of. */
#ifndef CT_DATA_PICTURES_INTERNAL_H
#define CT_DATA_PICTURES_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "data/pack.h"
#include "data/pictures.h"
#include "util/threads.h"

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
    /* of several joined, which have all of the above but labels and specification */
    ct_pictures **parts; /* [n_parts]; NULL: this is one */
    size_t *part_begin;  /* [n_parts + 1] the first picture of each */
    int n_parts;
};

/* Of several joined, the one that has picture *i, which is its number there from now on (joined.c). */
ct_pictures *ct_pictures_part(const ct_pictures *joined, size_t *i);

/* Work on pictures in parallel, with a decoder and a cutter for each worker. */
typedef struct ct_sweep ct_sweep;
/* CT_IO: picture i cannot be read, and its worker's decoder knows why. */
typedef ct_status (*ct_visitor)(ct_sweep *sweep, size_t i, int worker);

struct ct_sweep {
    ct_pictures *pictures;
    ct_pool *pool;
    ct_decoder **decoder; /* [workers] */
    ct_cutter *cutter;    /* [workers] */
    char **reason;        /* [n] why a picture cannot be read; NULL: it can */
    ct_visitor visit;
    void *context;
    size_t first, step;
    atomic_int status; /* the first failure that is not a broken picture */
};

/* Of a sweep that has its pictures; it is closed by its owner, opened or not. */
ct_status ct_sweep_open(ct_sweep *sweep);
/* Visits pictures first, first + step, ... before `end`. */
ct_status ct_sweep_run(ct_sweep *sweep, ct_visitor visit, void *context, size_t first, size_t end,
                       size_t step);
void ct_sweep_close(ct_sweep *sweep);

/* As the options want it, without a cache. */
ct_pictures_spec ct_pictures_spec_for(const ct_dataset_options *options, int side, int size);

/* A copy in memory of its own. */
ct_status ct_picture_copy(const ct_picture *from, ct_picture *out);

/* Picture i from its file. CT_IO: the decoder has the reason. */
ct_status ct_pictures_decode(const ct_pictures *pictures, size_t i, ct_decoder *decoder,
                             ct_picture *out);
/* The pack of these pictures in the cache directory, made if it is not there. */
ct_status ct_pictures_attach_cache(ct_pictures *pictures);

#endif
