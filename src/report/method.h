/* Methods as pages, lists and figures show them: one name and one colour each, whatever else is
 * shown with them and in whatever order. */
#ifndef CT_REPORT_METHOD_H
#define CT_REPORT_METHOD_H

#include <stddef.h>

#include "record/record.h"
#include "schema/config.h"

/* Places in the palette (svg.c). Every method has a further one of its own. */
enum {
    CT_COLOUR_PAPER, /* published numbers, and nothing else */
    CT_COLOUR_OTHER, /* no method, or one that this version does not know */
    CT_COLOUR_METHODS,
};

/* "QG-DSGDm-N"; "CCL" (qg-dsgdm with that loss); "RelaySGD + CCL". An algorithm without a name of
 * its own here is called as on the command line. loss: NULL where it is not known. */
void ct_method_name(const char *algorithm, const char *loss, char *out, size_t size);

/* How its curves and marks look (ct_style_colour and so on): a method with CCL has the colour of the
 * method and hollow marks. */
int ct_method_style(const char *algorithm, const char *loss);
/* The same of a run, read back or to be done. */
int ct_method_style_of(const ct_record *run);
int ct_method_style_to_be(const ct_config *config);

#endif
