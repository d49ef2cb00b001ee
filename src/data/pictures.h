/* Pictures of one part of a data set, each decoded and made small when it is asked for, or kept in
 * memory that way; and how square images are cut out of them. */
#ifndef CT_DATA_PICTURES_H
#define CT_DATA_PICTURES_H

#include "data/cut.h"
#include "data/dataset.h"
#include "data/decode.h"
#include "data/listing.h"
#include "data/pack.h"

typedef struct ct_pictures_spec {
    int side;      /* pictures are made this many pixels on their shorter side first */
    int size;      /* then size x size pixels are cut out */
    bool random;   /* at random, anew at every visit; otherwise the middle */
    bool strict;   /* a picture that cannot be read is an error */
    bool list_all; /* name every one that cannot be read */
    int n_workers;
    size_t memory_bytes; /* more than this is not kept */
    const char *cache;   /* directory of decoded pictures; NULL: none */
} ct_pictures_spec;

/* Takes the listing (zeroes it). Files that are no pictures at all are left out now: of those kept
 * in memory every one that cannot be decoded, of others those that cannot be opened or do not begin
 * like a JPEG or PNG. */
ct_status ct_pictures_create(const ct_pictures_spec *spec, ct_listing *files, ct_pictures **out);
/* Pictures first .. first+n-1 of a pack at `path`; there are no files behind them. */
ct_status ct_pictures_open_pack(const ct_pictures_spec *spec, const char *path, size_t first,
                                size_t n, ct_pictures **out);
void ct_pictures_free(ct_pictures **pictures);

/* Adds all of them to a pack, decoded from their files; broken ones are noted and left out. */
ct_status ct_pictures_pack(ct_pictures *pictures, ct_pack_writer *writer);

/* Leaves only those with keep[i], in order, and gives the others' memory back. */
ct_status ct_pictures_keep(ct_pictures *pictures, const bool *keep);

size_t ct_pictures_count(const ct_pictures *pictures);
const ct_pictures_spec *ct_pictures_spec_of(const ct_pictures *pictures);
/* Where they are: in memory (then asking costs next to nothing), or to be decoded each time. */
bool ct_pictures_in_memory(const ct_pictures *pictures);

/* Picture i, small. From several threads at once, each with its own decoder. One that turns out to
 * be broken is CT_IO with its name and reason in the message if strict; otherwise the next readable
 * one of the same class takes its place, always the same one, and it is noted once. */
ct_status ct_pictures_get(ct_pictures *pictures, size_t i, ct_decoder *decoder, ct_picture *out);

/* All of them, cut from the middle, as images in memory. Those that cannot be decoded are left out
 * of `out`. */
ct_status ct_pictures_images(ct_pictures *pictures, ct_images *out);

/* Decodes all of them, names those that cannot be and adds their number to *n_broken. */
ct_status ct_pictures_verify(ct_pictures *pictures, size_t *n_broken);

/* Mean and deviation of every channel, over the middles of up to 4096 of them. */
ct_status ct_pictures_measure(ct_pictures *pictures, float *mean, float *std);
/* Sums over the same pixels, each counted for as many pictures as it stands for. */
ct_status ct_pictures_sum(ct_pictures *pictures, ct_pixel_sums *out);

/* Labels become relabel[label]. */
void ct_pictures_relabel(ct_pictures *pictures, const int32_t *relabel);
/* Square images in memory as pictures, none of which is cut any more; pixels and labels are copied. */
ct_status ct_pictures_of_images(const ct_images *images, ct_pictures **out);
/* The first sizes[k] pictures of every part, one after the other, cut to the same size; takes all n
 * parts, which are NULL then. What takes the place of a broken picture comes from the same part. A
 * loader is all that serves them. */
ct_status ct_pictures_join(ct_pictures **parts, const size_t *sizes, int n, ct_pictures **out);

#endif
