/* Which program this is: CT_VERSION, and the commit that it was built from. */
#ifndef CT_UTIL_VERSION_H
#define CT_UTIL_VERSION_H

#include "crosstalk/version.h"

extern const char ct_commit[]; /* "": unknown (cmake/Commit.cmake) */

#endif
