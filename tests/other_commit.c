/* A program that is the same but for its commit. */
#include "util/version.h"

const char ct_commit[] = "000000000000";
