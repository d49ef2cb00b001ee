/* A wish to stop: a signal or a time, noticed between iterations. */
#ifndef CT_RUN_SIGNALS_H
#define CT_RUN_SIGNALS_H

/* From here on SIGTERM, SIGINT, SIGHUP (unless it is ignored: nohup), SIGUSR1 and SIGXCPU are only
 * remembered. A second SIGTERM or SIGINT ends the process; the others may come twice by
 * themselves. */
void ct_signals_catch(void);
/* The signal that came; 0 = none. */
int ct_signals_seen(void);
/* From this time of the monotonic clock on it is as if SIGTERM had come; 0 = never. */
void ct_signals_stop_at(double time_s);
/* As before ct_signals_catch. */
void ct_signals_restore(void);

#endif
