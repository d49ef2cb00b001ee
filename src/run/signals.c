#include "run/signals.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t seen;
static struct sigaction old_term, old_int;

static void remember(int number) {
    seen = number;
}

void ct_signals_catch(void) {
    struct sigaction action = {.sa_handler = remember, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    seen = 0;
    sigaction(SIGTERM, &action, &old_term);
    sigaction(SIGINT, &action, &old_int);
}

int ct_signals_seen(void) {
    return seen;
}

void ct_signals_restore(void) {
    sigaction(SIGTERM, &old_term, NULL);
    sigaction(SIGINT, &old_int, NULL);
}
