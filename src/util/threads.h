/* A pool of threads that runs numbered tasks. Which thread takes which task is left open, so a
 * task's result must not depend on it; `worker` only picks a workspace. */
#ifndef CT_UTIL_THREADS_H
#define CT_UTIL_THREADS_H

#include "util/status.h"

typedef struct ct_pool ct_pool;

typedef void (*ct_task)(void *context, int task, int worker);

/* n_threads workers, the caller's thread being worker 0; 0 = as many as the process may use. */
ct_status ct_pool_create(int n_threads, ct_pool **out);
void ct_pool_free(ct_pool **pool);
int ct_pool_size(const ct_pool *pool);

/* Runs task(context, 0 .. n_tasks-1, worker) and returns when all are done. Allocates nothing. */
void ct_pool_run(ct_pool *pool, int n_tasks, ct_task task, void *context);

/* Processors this process may run on. */
int ct_cpu_count(void);

#endif
