/* A wish to stop: SIGTERM, SIGINT or a time, noticed between iterations. */
#ifndef CT_RUN_SIGNALS_H
#define CT_RUN_SIGNALS_H

/* From here on the first such signal is only remembered; a second one ends the process. */
void ct_signals_catch(void);
/* The signal that came; 0 = none. */
int ct_signals_seen(void);
/* From this time of the monotonic clock on it is as if SIGTERM had come; 0 = never. */
void ct_signals_stop_at(double time_s);
/* As before ct_signals_catch. */
void ct_signals_restore(void);

#endif
