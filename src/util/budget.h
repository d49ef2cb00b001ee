/* What an input may cost: every limit on files that are read, and its reason. Whoever reads a file
 * names the limit, what was found and the file; nothing takes memory before its limit is checked. */
#ifndef CT_UTIL_BUDGET_H
#define CT_UTIL_BUDGET_H

#include <stddef.h>
#include <stdint.h>

/* ---- gzip ---- */
/* Deflate shrinks zeros 1030 times. MNIST's files shrink 5 times, metrics and tables of numbers 10,
 * line drawings 40: what shrinks more is a trap, or is read unpacked. Small files are let pass: the
 * labels of a sorted set are long runs of the same byte. */
#define CT_MAX_EXPANSION  100
#define CT_FREE_EXPANSION ((size_t)4 << 20) /* bytes */

/* ---- files read whole ---- */
#define CT_MAX_TEXT_BYTES ((size_t)1 << 20) /* options, studies: ours have at most 50 kB */
/* Of a run directory: a metrics line of 400 bytes for each of the 1e6 epochs that a run may have. */
#define CT_MAX_RECORD_BYTES ((size_t)512 << 20)
#define CT_MAX_RECORD_ROWS  1000001 /* those epochs, and one that a resumed run repeats */
#define CT_MAX_RECORD_SENT                                                                         \
    4096 /* neighbours of a site times kinds of letters, of which there are 6 */
#define CT_MAX_RECORD_LINES 1024 /* of config.txt: there are about 100 options */
/* Of a bundle: what is listed takes some 100 bytes a run. The largest of ours has 145. */
#define CT_MAX_BUNDLE_RUNS 65536
/* Data, once unpacked: what is read whole should fit a small machine. CIFAR has 180 MB. */
#define CT_MAX_DATA_BYTES ((size_t)2 << 30)
/* A made-up set: 1.4 million pictures of 3x32x32. */
#define CT_MAX_MADE_UP_BYTES ((size_t)4 << 30)
/* Models, checkpoints, parts: as large as the training that wrote them. */
#define CT_MAX_MODEL_BYTES ((size_t)1 << 40)
/* Edges and steps: 2^26 edges of 15 characters. */
#define CT_MAX_GRAPH_BYTES ((size_t)1 << 30)

/* ---- JSON ---- */
/* A value of two characters takes 56 bytes. The largest setting.json, a table and a graph of 2^20
 * entries each, has 4.2 million; the header of 1024 ResNet-20 in one file 700,000. */
#define CT_MAX_JSON_VALUES ((size_t)5000000)
/* A checkpoint's manifest has two for each edge: a full graph of 4096 agents. */
#define CT_MAX_MANIFEST_VALUES ((size_t)40000000)

/* ---- schedules and studies ---- */
/* Steps times agents: every step keeps a row for each agent, 20 bytes. */
#define CT_MAX_STEP_ROWS ((size_t)1 << 26)
/* Of a study's file: each is compared with all others. Ours have at most 100. */
#define CT_MAX_STUDY_SETTINGS 8192

/* ---- tables (CSV) ---- */
/* Cells are counted before the first one is read: 4 bytes each, and 1 GiB in all. A million rows of
 * 30 columns are a ninth of that. */
#define CT_MAX_TABLE_CELLS ((size_t)1 << 28)
#define CT_MAX_CELL_BYTES  65536 /* a quote that is not closed ends here at the latest */
/* Inputs of a network, once texts are one-hot; and floats of a part, 4 GiB. */
#define CT_MAX_TABLE_INPUTS 65536
#define CT_MAX_TABLE_VALUES ((size_t)1 << 30)
/* Different texts of a column, and different numbers that may be labels: with more it is a name, a
 * date or a quantity. */
#define CT_MAX_CATEGORIES 1000

/* ---- headers of packed pictures and parts ---- */
#define CT_MAX_NAMES_BYTES ((size_t)1 << 24) /* 65536 classes of 256 characters */
#define CT_MAX_PACK_SIDE   8192              /* @image-size goes to 4096, and a margin around it */

/* ---- profiles of agents' data, from other processes ---- */
#define CT_MAX_PROFILE_BYTES ((size_t)64 << 20) /* the names above, some of them spelled out */
/* Of a channel, of all agents together: so that sums of squares fit 64 bits with room to spare. */
#define CT_MAX_PIXELS ((uint64_t)1 << 46)

/* ---- pictures ---- */
#define CT_MAX_PICTURE_BYTES ((size_t)512 << 20)
#define CT_MAX_PICTURE_SIDE  65500
#define CT_MAX_PICTURE_ASPECT                                                                      \
    100 /* longer side to shorter one: what is made of a sliver is small */
/* The largest photographs have 150 megapixels; ImageNet's largest picture 30. */
#define CT_MAX_PICTURE_PIXELS ((size_t)192 << 20)
/* Of pictures that are held whole before the first row is known (interlaced, progressive): 4 to 6
 * bytes a pixel and worker. */
#define CT_MAX_WHOLE_PIXELS ((size_t)64 << 20)
/* Pixels a byte of the file: scanned pages have up to 300, an empty PNG 8000. */
#define CT_MAX_PIXELS_A_BYTE 1000
#define CT_FREE_PIXELS       ((size_t)4 << 20)
/* Every scan of a progressive JPEG visits the whole picture again; encoders write about ten. */
#define CT_MAX_JPEG_SCANS 200

#endif
