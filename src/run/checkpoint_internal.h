#ifndef CT_RUN_CHECKPOINT_INTERNAL_H
#define CT_RUN_CHECKPOINT_INTERNAL_H

#include "run/checkpoint.h"

/* A manifest is this, 16 digits of checksum, a line's end, and the JSON text they are of. */
#define CT_MANIFEST_MAGIC "crosstalk checkpoint 1 "

/* What the manifest says about an agent's file. */
typedef struct ct_agent_file {
    uint64_t bytes, checksum;
} ct_agent_file;

/* 64 bits over bytes; any change of a single byte changes it. Start with CT_CHECKSUM_START; pieces
 * but the last are multiples of 8 bytes. */
#define CT_CHECKSUM_START UINT64_C(0xcbf29ce484222325)
uint64_t ct_checksum(uint64_t sum, const void *bytes, size_t n);

/* One own row's state, to and from <folder>/agent-<row>.ckpt. */
ct_status ct_agent_file_write(ct_run *run, int own_row, const char *folder, long iteration,
                              ct_agent_file *out);
ct_status ct_agent_file_read(ct_run *run, int own_row, const char *folder, long iteration);
/* The file is whole, and the one that the manifest means. */
ct_status ct_agent_file_check(const char *folder, int row, long iteration,
                              const ct_agent_file *expected);

#endif
