/* All runs below a directory as web pages that follow them while they train:
 *   /                        the list
 *   /report?run=A&run=B      the report of these runs (of all, without a name)
 *   /body?run=A&run=B        its <main> alone, which an open page fetches every other second
 * A run is named by its path below the directory, and only a name that the list has is looked for:
 * no path is ever made of what was asked. Links below the directory are not followed (shelf.h). */
#ifndef CT_SERVE_WEB_H
#define CT_SERVE_WEB_H

#include "util/status.h"

typedef struct ct_web ct_web;

ct_status ct_web_open(const char *dir, const char *address, int port, ct_web **out);
int ct_web_port(const ct_web *site);
void ct_web_close(ct_web **site); /* accepts NULL inside */

#endif
