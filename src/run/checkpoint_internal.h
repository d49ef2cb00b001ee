#ifndef CT_RUN_CHECKPOINT_INTERNAL_H
#define CT_RUN_CHECKPOINT_INTERNAL_H

#include "run/checkpoint.h"
#include "util/hash.h"

/* A manifest is this, 16 digits of checksum, a line's end, and the JSON text they are of. */
#define CT_MANIFEST_MAGIC "crosstalk checkpoint 1 "

/* What the manifest says about an agent's file. */
typedef struct ct_agent_file {
    uint64_t bytes, checksum;
    uint64_t data; /* run->agent_sums */
} ct_agent_file;

/* <folder>/agent-<row>.ckpt */
ct_path ct_agent_file_path(const char *folder, int row);
/* More own rows than this are written without a wait for each; ct_dir_settle comes after the last. */
#define CT_SETTLED_AT_ONCE 64
/* One own row's state, to and from <folder>/agent-<row>.ckpt. */
ct_status ct_agent_file_write(ct_run *run, int own_row, const char *folder, long iteration,
                              ct_agent_file *out);
ct_status ct_agent_file_read(ct_run *run, int own_row, const char *folder, long iteration);
/* The file is whole, and the one that the manifest means (NULL: it does not say). */
ct_status ct_agent_file_check(const char *folder, int row, long iteration,
                              const ct_agent_file *expected);

#endif
