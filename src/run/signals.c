#include "run/signals.h"

#include <signal.h>
#include <stdbool.h>
#include <time.h>

static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGXCPU};
enum { N_NUMBERS = sizeof numbers / sizeof *numbers };

static volatile sig_atomic_t seen;
static struct sigaction before[N_NUMBERS];
static double deadline_s;

static void remember(int number) {
    seen = number;
}

void ct_signals_catch(void) {
    struct sigaction action = {.sa_handler = remember};
    sigemptyset(&action.sa_mask);
    seen = 0;
    for (int k = 0; k < N_NUMBERS; k++) {
        bool is_urgent = numbers[k] == SIGTERM || numbers[k] == SIGINT;
        action.sa_flags = SA_RESTART | (is_urgent ? (int)SA_RESETHAND : 0);
        sigaction(numbers[k], NULL, &before[k]);
        if (numbers[k] == SIGHUP && before[k].sa_handler == SIG_IGN) continue;
        sigaction(numbers[k], &action, NULL);
    }
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
    for (int k = 0; k < N_NUMBERS; k++) sigaction(numbers[k], &before[k], NULL);
}
