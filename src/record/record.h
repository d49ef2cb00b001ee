/* The record of a run: what it has left in its directory, read back.
 *
 *     ct_record record;
 *     CT_TRY(ct_record_load("runs/ccl", CT_READ_OPTIONS | CT_READ_METRICS, &record));
 *     ... record.epochs[record.n_epochs - 1].value[CT_METRIC_CE] ...
 *     ct_record_unload(&record);
 *
 * A run that is still training can be read: a last line of metrics.jsonl that is being written is
 * left out. Anything else that cannot be read is CT_IO and names the file and the line. */
#ifndef CT_RECORD_RECORD_H
#define CT_RECORD_RECORD_H

#include <crosstalk/record.h> /* ct_record_state, ct_record_option_of */

#include "record/file.h"
#include "record/metric.h"
#include "util/folder.h"
#include "util/json.h"

/* ---- how far it came ---- */

typedef struct ct_record_end {
    ct_record_state state;
    long iteration;    /* of one that diverged or failed; 0: unknown */
    int agent;         /* who diverged; -1: unknown, or the consensus model */
    char reason[1024]; /* one sentence, options as @name; "": unknown */
} ct_record_end;

/* "finished", "not finished", "diverged at iteration 12", "failed at iteration 12". */
void ct_record_print_end(const ct_record_end *end, char *out, size_t size);

/* ---- what is in it ---- */

typedef struct ct_record_option {
    char *name, *value; /* as in config.txt */
    unsigned roles;     /* what the schema says of it; 0: it does not know it */
} ct_record_option;

/* A line of metrics.jsonl. */
typedef struct ct_record_row {
    double value[CT_N_METRICS]; /* NaN: null, or not there */
} ct_record_row;

/* How a site knows a neighbour; numbers that are not told are NaN. */
typedef struct ct_record_neighbour {
    char *name, *phase, *note;
    double iteration;
    double for_s; /* so long it has been connected, or gone */
    double n_lost;
    double bytes_sent, bytes_received; /* since the site was started last */
    double rtt_ms;
} ct_record_neighbour;

/* What has left a site, of one kind and to one neighbour, over the whole run. */
typedef struct ct_record_sent {
    char *to, *kind;
    double n_letters, n_bytes;
} ct_record_sent;

/* site.json and sent.jsonl. */
typedef struct ct_record_site {
    char *name, *federation, *phase; /* NULL: the run is no site's */
    double iteration, n_iterations;
    double time_s; /* when this was told, since 1970 */
    double heartbeat_s, n_strangers;
    ct_record_neighbour *neighbours; /* [n_neighbours] */
    int n_neighbours;
    ct_record_sent *sent; /* [n_sent] in the order in which they began */
    int n_sent;
} ct_record_site;

enum {
    CT_READ_OPTIONS = 1,
    CT_READ_METRICS = 2,
    CT_READ_SUMMARY = 4,
    CT_READ_SETTING = 8,
    CT_READ_EVALUATION = 16, /* with the setting, whose sizes it has */
    CT_READ_END = 32,        /* a seed of a run of several diverged when that did */
    CT_READ_SITE = 64,
    CT_READ_ALL = 127,
};

/* Which files were there, and since when as they were: whatever changes a record changes this too.
 * All 0: none. */
typedef struct ct_file_stamp {
    uint64_t device, inode, n_bytes;
    int64_t seconds, nanoseconds; /* of the last change of the file or of what is known of it */
} ct_file_stamp;
typedef struct ct_record_stamp {
    ct_file_stamp dir;              /* which one, or which metrics file */
    ct_file_stamp file[CT_N_FILES]; /* those that are read; of checkpoints, which folder */
    ct_file_stamp above;            /* the folder above says it if all seeds diverged */
} ct_record_stamp;

/* One run directory, be it in a bundle (bundle.h), or one metrics file alone. What is missing, or was not to be read, is 0 and
 * NULL. */
typedef struct ct_record {
    char *path; /* as it was opened */
    ct_record_stamp stamp;
    uint64_t seed;             /* of the options, else of the name; 0 = unknown */
    ct_record_option *options; /* [n_options] as words: other versions had other ones */
    int n_options;
    ct_record_row *epochs; /* [n_epochs] */
    int n_epochs;
    ct_json *summary; /* NULL: not finished */
    ct_record_end end;
    /* setting.json */
    int n_agents, n_classes;
    char **class_names;     /* [n_classes] or NULL */
    char **agent_names;     /* [n_agents] or NULL: they have numbers alone */
    uint32_t *class_counts; /* [n_agents][n_classes] or NULL */
    int (*edges)[2];        /* [n_edges] or NULL */
    int n_edges;
    /* evaluation.json */
    long evaluated_epoch;
    double *local_accuracy; /* [n_agents] NaN: a dead agent, or one without test samples */
    uint32_t *confusion;    /* [n_classes][n_classes] true class, what it was taken for */
    ct_record_site site;
} ct_record;

ct_status ct_record_load(const char *path, unsigned what, ct_record *out);
/* The same of a run directory whose path begins with that of an open one (util/folder.h). */
ct_status ct_record_load_in(const ct_folder *root, const char *path, unsigned what, ct_record *out);
/* As it would be read now. */
ct_status ct_record_look_at(const ct_folder *root, const char *path, ct_record_stamp *out);
void ct_record_unload(ct_record *record);

/* The last value of a metric that is not NaN; NaN if there is none. */
double ct_record_last(const ct_record *record, ct_metric_id metric);

/* The run at `path`, which may be in a bundle (bundle.h), has this file. */
ct_status ct_record_holds(const char *path, ct_record_file file, bool *out);

/* One of the files that are a JSON object, whole (its members are what write.h writes); the second
 * for the summary, which a run that is not finished has not. ct_json_free() it. */
ct_status ct_record_read_file(const char *dir, ct_record_file file, ct_json **out);
static inline ct_status ct_summary_read(const char *dir, ct_json **out) {
    return ct_record_read_file(dir, CT_FILE_SUMMARY, out);
}
/* The consensus model's accuracy towards the end of the run, and its deviation over the seeds, into
 * the summary (late.c). */
ct_status ct_summary_add_late(const char *dir, ct_json *summary);

/* Makes a finished run small enough to be kept, and free of this machine's paths (light.c). `name`
 * is what its files then call its directory. */
ct_status ct_record_lighten(const char *dir, const char *name);
/* The same for one that has been made light before, by an older version; others are left alone. */
ct_status ct_record_lighten_again(const char *dir, const char *name);

#endif
