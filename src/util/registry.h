/* What every list of names (models, topologies, algorithms, ...) shares. */
#ifndef CT_UTIL_REGISTRY_H
#define CT_UTIL_REGISTRY_H

#include "util/status.h"

/* Calls each(context, name, text) for every entry of a list, in its order. */
typedef void (*ct_name_visit)(void *context, const char *name, const char *text);
typedef void (*ct_registry_each)(ct_name_visit each, void *context);

/* A spec is `name` or `name:argument`: is it that name's? */
bool ct_spec_is(const char *spec, const char *name);

/* CT_INVAL: "no @<option> '<name>'; did you mean <nearest>? known: <more>, <names of the list>"; more
 * may be NULL. */
ct_status ct_unknown_name(const char *option, const char *name, const char *more,
                          ct_registry_each list);

#endif
