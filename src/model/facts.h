/* What a model file says about itself, as notes of a .safetensors file (fact_list.h) and back. */
#ifndef CT_MODEL_FACTS_H
#define CT_MODEL_FACTS_H

#include "data/table.h"
#include "model/model.h"
#include "util/safetensors.h"
#include "util/text.h"

/* The network of a model that is the caller's own: it can be saved, but not used here. */
#define CT_NETWORK_EXTERNAL "external"

typedef enum ct_fact_id {
#define FACT(field, name) CT_FACT_##field,
#include "model/fact_list.h"
#undef FACT
    CT_N_FACTS,
} ct_fact_id;

/* Facts with memory of their own. */
typedef struct ct_facts {
    char network[64], norm[32], algorithm[64], loss[32], dataset[64], data[32], version[32];
    int channels, height, width, resize, n_classes;
    bool has_scale; /* mean and deviation are known */
    float mean[CT_MAX_CHANNELS], deviation[CT_MAX_CHANNELS];
    char *names; /* of the classes, one after the other, each with its 0; NULL: they have none */
    const char **class_names; /* [n_classes] into names */
    ct_columns columns;       /* of a model of tables; n = 0: it is none */
} ct_facts;

/* *out is zeroed before. What is not said stays so; CT_IO: what is said cannot be. `path` names the
 * file in messages. A file of another program's, without our version, says nothing. */
ct_status ct_facts_read(const char *path, const ct_tensors *tensors, ct_facts *out);
void ct_facts_free(ct_facts *facts);
/* Takes the names of n classes (as a data set has them); n becomes n_classes. */
ct_status ct_facts_name_classes(ct_facts *facts, char *taken_names, int n);

/* What is not known in *facts and is in `known` is taken over; what is known in both must be the
 * same (CT_DIFFERS). `known` may be NULL. */
ct_status ct_facts_complete(const char *path, ct_facts *facts, const ct_model_facts *known);
/* CT_INVAL unless all that a model needs is known: what is missing, and which option says it. */
ct_status ct_facts_check(const char *path, const ct_facts *facts);

/* As others see them; points into *facts. */
ct_model_facts ct_facts_view(const ct_facts *facts);

/* A file's notes; zeroed to begin with. */
typedef struct ct_fact_notes {
    ct_tensors_note notes[CT_N_FACTS];
    ct_text values[CT_N_FACTS];
    size_t n;
} ct_fact_notes;
/* Notes of what is known, lent by *out. */
ct_status ct_facts_write(const ct_model_facts *facts, ct_fact_notes *out);
void ct_fact_notes_free(ct_fact_notes *notes);

#endif
