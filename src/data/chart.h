/* The usual picture of a split: a bubble for every agent and class, its area the number of samples.
 */
#ifndef CT_DATA_CHART_H
#define CT_DATA_CHART_H

#include <stdint.h>

#include "util/status.h"

/* table: [n_agents][n_classes] counts. Agents run to the right, classes upwards. */
ct_status ct_chart_svg(const char *path, const uint32_t *table, int n_agents, int n_classes,
                       const char *title);
ct_status ct_chart_png(const char *path, const uint32_t *table, int n_agents, int n_classes);

#endif
