/* Charts of tables: bubbles for who holds which classes, shades for a confusion matrix. */
#ifndef CT_REPORT_TABLE_CHART_H
#define CT_REPORT_TABLE_CHART_H

#include <stdint.h>

#include "util/text.h"

/* The usual picture of a split: a bubble for every agent and class, its area the number of samples.
 * table: [n_agents][n_classes]. Agents run to the right, classes upwards. `names` (may be NULL):
 * of the classes. `heading` ("": none) is drawn above it. */
typedef struct ct_bubbles {
    const char *id, *title, *heading;
    const uint32_t *table;
    int n_agents, n_classes;
    char *const *names;
} ct_bubbles;
void ct_bubbles_draw(const ct_bubbles *bubbles, ct_text *out);

/* table: [n_classes][n_classes], rows the true classes, columns what they were taken for; drawn as
 * shares of the row, with numbers where there is room for them. */
typedef struct ct_confusion {
    const char *id, *title;
    const uint32_t *table;
    int n_classes;
    char *const *names;
} ct_confusion;
void ct_confusion_draw(const ct_confusion *confusion, ct_text *out);

#endif
