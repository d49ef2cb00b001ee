/* What made a run's numbers, besides its options: the program, the machine's arithmetic, and what
 * lies behind names of files. Summaries and checkpoints carry it, ranks compare it. */
#ifndef CT_RECORD_IDENTITY_H
#define CT_RECORD_IDENTITY_H

#include "util/json.h"
#include "util/status.h"
#include "util/text.h"

typedef enum ct_identity_id {
#define IDENTITY(name, rule) CT_ID_##name,
#include "record/identity_list.h"
#undef IDENTITY
    CT_N_IDENTITY,
} ct_identity_id;

typedef struct ct_identity {
    char value[CT_N_IDENTITY][40]; /* "": unknown, and not compared */
} ct_identity;

void ct_identity_set(ct_identity *identity, ct_identity_id id, const char *value);
/* 0 is unknown. */
void ct_identity_set_sum(ct_identity *identity, ct_identity_id id, uint64_t sum);

/* Everything that is known, as JSON members without braces: {"version": "0.1.0", ...}. */
void ct_identity_print(const ct_identity *identity, ct_text *out);

/* A run that goes on, against what its checkpoint says (an object as printed, or NULL). CT_DIFFERS:
 * it would be another run. What only changes bits is told in one note. */
ct_status ct_identity_check(const ct_identity *identity, const ct_json *saved);

#endif
