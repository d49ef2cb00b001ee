/* What test_starved and the library that it preloads say to each other: CT_STARVE_ORDERS=i,o names two
 * file descriptors. For every order read from i the program runs once, its outputs emptied first;
 * its wait status is written to o. */
#ifndef CT_TESTS_STARVE_H
#define CT_TESTS_STARVE_H

#include <stdbool.h>

typedef struct starve_order {
    unsigned long at; /* the allocation that fails, from 1; 0: none */
    bool goes_on;     /* and all after it */
    unsigned limit_s; /* then it is ended; 0: never */
} starve_order;

#endif
