/* The record of a run: its directory, finished or still being written, read back. */
#ifndef CROSSTALK_RECORD_H
#define CROSSTALK_RECORD_H

#include <crosstalk/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ct_record ct_record;

/* How far a run came. */
typedef enum ct_record_state {
    CT_RECORD_NONE,  /* there is no run */
    CT_RECORD_BEGUN, /* it trains, or was interrupted: perhaps there is a checkpoint */
    CT_RECORD_DONE,
    CT_RECORD_DIVERGED, /* a loss became NaN or infinite */
    CT_RECORD_FAILED,   /* another error ended it; it can be resumed from its last checkpoint */
} ct_record_state;

CT_API ct_status ct_record_open(const char *directory, ct_record **out, ct_error *error);
CT_API void ct_record_free(ct_record **record);

/* Why and when it ended, if it diverged or failed: reason[size] gets one sentence, or "". */
CT_API ct_record_state ct_record_state_of(const ct_record *record, long *iteration, char *reason,
                                          size_t size);

/* Options as saved; NULL: there is no such option. Option k of n by name and value. */
CT_API const char *ct_record_option_of(const ct_record *record, const char *name);
CT_API int ct_record_n_options(const ct_record *record);
CT_API bool ct_record_option_at(const ct_record *record, int k, const char **name,
                                const char **value);

/* One row of metrics an epoch, rows 0 .. n-1; keys as in ct_metric_key. NaN: not there. */
CT_API int ct_record_n_epochs(const ct_record *record);
CT_API double ct_record_metric(const ct_record *record, int row, const char *key);
/* A number of summary.json by key, or "consensus_accuracy_late", the mean accuracy over the end of
 * the run; NaN: not there, or the run is not finished. */
CT_API double ct_record_summary(const ct_record *record, const char *key);

/* Graph and split. */
CT_API int ct_record_n_agents(const ct_record *record);
CT_API int ct_record_n_classes(const ct_record *record);
CT_API const char *ct_record_class_name(const ct_record *record, int k); /* NULL: unknown */
CT_API int ct_record_n_edges(const ct_record *record);
CT_API bool ct_record_edge(const ct_record *record, int k, int *a, int *b);
/* Samples of a class that an agent holds; -1: unknown. */
CT_API long ct_record_class_count(const ct_record *record, int agent, int k);

/* The last evaluation. */
CT_API double ct_record_agent_accuracy(const ct_record *record, int agent); /* NaN: unknown */
/* Test samples of class `truth` that the consensus model took for `taken`; -1: unknown. */
CT_API long ct_record_confusion(const ct_record *record, int truth, int taken);

#ifdef __cplusplus
}
#endif

#endif
