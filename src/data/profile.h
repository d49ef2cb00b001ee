/* What agents that have data sets of their own must agree on before they train together. Every agent
 * says what it has; what two have said merges into one, in any order and along any tree, to the same
 * bits; whoever has the merge of all makes its own data conform to it. Profiles travel as JSON. */
#ifndef CT_DATA_PROFILE_H
#define CT_DATA_PROFILE_H

#include "data/table.h"
#include "util/text.h"

#define CT_AGENT_NAME 64 /* room for an agent's name: letters, digits, . _ - */

/* Who said something; of several that said the same, the first agent. */
typedef struct ct_voice {
    int agent;
    char name[CT_AGENT_NAME];
} ct_voice;

/* An agent's training samples. */
typedef struct ct_agent_size {
    size_t n;
    ct_voice who;
} ct_agent_size;

typedef struct ct_profile {
    int n_agents;   /* that it speaks for; 0: it says nothing, and merges with anything */
    ct_voice first; /* of them: whose values these are, where all have the same */
    int channels, height, width;
    bool has_values; /* samples are any numbers, not pixels */
    int resize, crop_padding;
    bool flip;
    /* classes: the names of all agents, sorted by their bytes; or the largest number */
    int n_classes;
    char *class_names; /* one after the other, each with its 0; NULL: numbers */
    /* the scale that all have, or exact sums over all training pixels; one of them at least */
    bool has_scale, has_sums;
    float mean[CT_MAX_CHANNELS], std[CT_MAX_CHANNELS];
    ct_pixel_sums sums;
    ct_columns columns;        /* of tables; n = 0: they are none */
    ct_agent_size most, least; /* training samples */
    uint64_t n_test;           /* test samples of all */
} ct_profile;

/* A name that an agent may have. */
bool ct_agent_name_is_right(const char *name);

/* What an agent says of its data. CT_IO: names of classes that are no text, or are there twice. */
ct_status ct_profile_of(const ct_dataset *dataset, int agent, const char *name, ct_profile *out);
void ct_profile_free(ct_profile *profile);

/* mine <- both. CT_INVAL: what cannot be agreed on, with both sides and their values. */
ct_status ct_profile_merge(const ct_profile *theirs, ct_profile *mine);

void ct_profile_print(const ct_profile *profile, ct_text *out);
/* Input from another process: everything is checked. */
ct_status ct_profile_parse(const char *text, size_t n, ct_profile *out);
/* The same as texts, for ct_transport_merge. */
ct_status ct_profile_merge_text(void *unused, const char *theirs, size_t n, ct_text *mine);

/* The data set has the agreed classes and scale from now on. It is one of those that were merged. */
ct_status ct_dataset_conform(ct_dataset *dataset, const ct_profile *profile);

#endif
