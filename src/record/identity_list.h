/* What made a run's numbers, besides its options.
 *
 *   IDENTITY(name, rule)
 *
 * Ranks of one job have all of it alike. When a run goes on from a checkpoint: SAME, or it is
 * another run and refused; BITS: it may differ, and so may the last bits; ONCE: it does not matter
 * any more. */
/* clang-format off */
IDENTITY(version,      BITS)
IDENTITY(commit,       BITS)
IDENTITY(device,       BITS)
IDENTITY(instructions, BITS) /* vector instructions, or the GPU's generation */
IDENTITY(precision,    BITS)
/* checksums of content */
IDENTITY(graph,        SAME) /* with its weights */
IDENTITY(data,         SAME) /* ct_dataset_fingerprint; unknown where there is a part of it */
IDENTITY(test,         SAME) /* the test part's */
IDENTITY(split,        SAME)
IDENTITY(public,       SAME) /* of --public-data */
IDENTITY(init,         ONCE) /* of the file of start values */
