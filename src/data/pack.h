/* Small pictures in one file: the on-disk cache, and what `crosstalk data import` writes. A file
 * appears whole or not at all, and every picture and the table carry checksums; any number of
 * processes may read it. */
#ifndef CT_DATA_PACK_H
#define CT_DATA_PACK_H

#include "data/decode.h"
#include "util/status.h"

/* What is known about all pictures. */
typedef struct ct_pack_facts {
    char name[32];   /* of the data set */
    uint64_t n;      /* pictures, training ones first */
    uint64_t n_test; /* of them for testing */
    uint32_t n_classes;
    uint32_t side; /* pixels of the shorter side */
    uint32_t size; /* pixels of the square to be cut out */
    float mean[3], std[3];
    uint32_t n_whole; /* of a part (part.h): training pictures of the whole set, whose places among
                         them are the entries' sources; 0: this is all of it */
} ct_pack_facts;

typedef struct ct_pack_entry {
    uint64_t at;     /* where its bytes begin: [height][width][3] */
    uint32_t source; /* its place in the listing it came from */
    int32_t label;
    uint16_t width, height;
    uint32_t crc;
} ct_pack_entry;

typedef struct ct_pack ct_pack;

/* CT_IO with a message if it is missing, cut, damaged or no such file. */
ct_status ct_pack_open(const char *path, ct_pack **out);
void ct_pack_close(ct_pack **pack);
const ct_pack_facts *ct_pack_facts_of(const ct_pack *pack);
const ct_pack_entry *ct_pack_entries(const ct_pack *pack);
/* n_classes names one after the other, each with its 0; NULL: none were written. */
const char *ct_pack_class_names(const ct_pack *pack);

/* Picture i, lent by the decoder; from several threads at once. CT_IO: damaged or unreadable; no
 * message is kept. */
ct_status ct_pack_read(const ct_pack *pack, size_t i, ct_decoder *decoder, ct_picture *out);

/* Begins with the magic of such a file. */
bool ct_pack_looks_right(const char *path);

typedef struct ct_pack_writer ct_pack_writer;
ct_status ct_pack_writer_open(const char *path, ct_pack_writer **out);
ct_status ct_pack_writer_add(ct_pack_writer *writer, const ct_picture *picture, uint32_t source,
                             int32_t label);
/* Pictures added so far. */
size_t ct_pack_writer_count(const ct_pack_writer *writer);
/* `facts` without n; class_names may be NULL. */
ct_status ct_pack_writer_commit(ct_pack_writer **writer, const ct_pack_facts *facts,
                                const char *class_names);
void ct_pack_writer_abandon(ct_pack_writer **writer);

#endif
