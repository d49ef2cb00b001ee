#include "run/signals.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

static volatile sig_atomic_t seen;
static struct sigaction old_term, old_int;
static double deadline_s;

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

void ct_signals_stop_at(double time_s) {
    deadline_s = time_s;
}

int ct_signals_seen(void) {
    struct timespec t;
    if (seen != 0 || deadline_s == 0) return seen;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec >= deadline_s ? SIGTERM : 0;
}

void ct_signals_restore(void) {
    sigaction(SIGTERM, &old_term, NULL);
    sigaction(SIGINT, &old_int, NULL);
}
