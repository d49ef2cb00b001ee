#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "util/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "util/memory.h"

#define MAX_THREADS 1024

/* How long a thread polls before it sleeps. A step makes several calls a few microseconds apart, so
 * the next job mostly comes within this time and costs no system call; on a busy machine it is
 * short against a scheduler's slice. */
#define SPIN_S 20e-6

typedef struct job {
    ct_task task;
    void *context;
    uint32_t n_tasks;
    uint32_t number; /* counts the jobs; tells a late worker that its tasks are gone */
    ct_error *error; /* the caller's */
} job;

typedef struct worker {
    ct_pool *pool;
    pthread_t thread;
    int index;
} worker;

struct ct_pool {
    int n_threads;
    int n_started; /* workers running besides the caller's thread */
    bool spins;    /* false where there are more threads than processors */
    worker *workers;

    pthread_mutex_t lock;
    pthread_cond_t wake; /* a new job, or stop */
    pthread_cond_t done; /* the job's last task is done */
    job job;             /* under lock */
    int n_asleep;        /* under lock: workers waiting for `wake` */
    bool caller_asleep;  /* under lock */
    bool stop;           /* under lock */

    atomic_uint number;          /* job.number, to be polled */
    atomic_uint_least64_t claim; /* job number << 32 | next task nobody has taken */
    atomic_uint n_done;          /* tasks of this job that are finished */
};

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Polls for SPIN_S while *value is (or, with `until`, is not yet) `number`. */
static void spin(const ct_pool *pool, atomic_uint *value, unsigned number, bool until) {
    if (!pool->spins) return;
    double end = ct_seconds() + SPIN_S;
    do {
        for (int i = 0; i < 16; i++) {
            if ((atomic_load_explicit(value, memory_order_acquire) == number) == until) return;
            relax();
        }
    } while (ct_seconds() < end);
}

/* Takes the next task of job j, unless all are taken or a newer job has begun. */
static bool claim_task(ct_pool *pool, const job *j, int *task) {
    uint64_t claim = atomic_load(&pool->claim);
    for (;;) {
        if ((uint32_t)(claim >> 32) != j->number || (uint32_t)claim >= j->n_tasks) return false;
        if (atomic_compare_exchange_weak(&pool->claim, &claim, claim + 1)) {
            *task = (int)(uint32_t)claim;
            return true;
        }
    }
}

static void work_on(ct_pool *pool, const job *j, int worker_index) {
    int task = 0;
    while (claim_task(pool, j, &task)) {
        j->task(j->context, task, worker_index);
        if (atomic_fetch_add(&pool->n_done, 1) + 1 != j->n_tasks) continue;
        pthread_mutex_lock(&pool->lock);
        if (pool->caller_asleep) pthread_cond_signal(&pool->done);
        pthread_mutex_unlock(&pool->lock);
    }
}

/* Waits for a job other than the one `seen`; false when the pool ends. */
static bool next_job(ct_pool *pool, uint32_t seen, job *out) {
    spin(pool, &pool->number, seen, false);
    pthread_mutex_lock(&pool->lock);
    pool->n_asleep++;
    while (!pool->stop && pool->job.number == seen) pthread_cond_wait(&pool->wake, &pool->lock);
    pool->n_asleep--;
    *out = pool->job;
    bool goes_on = !pool->stop;
    pthread_mutex_unlock(&pool->lock);
    return goes_on;
}

static void *worker_main(void *argument) {
    const worker *self = argument;
    job j = {0};
    while (next_job(self->pool, j.number, &j)) {
        ct_error_adopt(j.error);
        work_on(self->pool, &j, self->index);
    }
    return NULL;
}

static void publish(ct_pool *pool, int n_tasks, ct_task task, void *context, job *out) {
    pthread_mutex_lock(&pool->lock);
    pool->job = (job){task, context, (uint32_t)n_tasks, pool->job.number + 1, ct_error_place()};
    *out = pool->job;
    atomic_store(&pool->n_done, 0);
    atomic_store(&pool->claim, (uint64_t)pool->job.number << 32);
    atomic_store(&pool->number, pool->job.number);
    if (pool->n_asleep > 0) pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

void ct_pool_run(ct_pool *pool, int n_tasks, ct_task task, void *context) {
    if (pool->n_threads == 1 || n_tasks <= 1) {
        for (int i = 0; i < n_tasks; i++) task(context, i, 0);
        return;
    }
    job j;
    publish(pool, n_tasks, task, context, &j);
    work_on(pool, &j, 0);
    spin(pool, &pool->n_done, j.n_tasks, true);
    if (atomic_load(&pool->n_done) == j.n_tasks) return;
    pthread_mutex_lock(&pool->lock);
    pool->caller_asleep = true;
    while (atomic_load(&pool->n_done) != j.n_tasks) pthread_cond_wait(&pool->done, &pool->lock);
    pool->caller_asleep = false;
    pthread_mutex_unlock(&pool->lock);
}

static ct_status start_workers(ct_pool *pool) {
    for (int i = 1; i < pool->n_threads; i++) {
        worker *w = &pool->workers[i - 1];
        *w = (worker){.pool = pool, .index = i};
        int error = pthread_create(&w->thread, NULL, worker_main, w);
        if (error != 0)
            return ct_fail(CT_NOMEM, "cannot start thread %d of %d: %s", i + 1, pool->n_threads,
                           strerror(error));
        pool->n_started++;
    }
    return CT_OK;
}

ct_status ct_pool_create(int n_threads, ct_pool **out) {
    if (n_threads < 0 || n_threads > MAX_THREADS)
        return ct_fail(CT_INVAL, "%d threads: must be 1 .. %d, or 0 for one per processor",
                       n_threads, MAX_THREADS);
    if (n_threads == 0) n_threads = ct_cpu_count();
    if (n_threads > MAX_THREADS) n_threads = MAX_THREADS;
    CT_SCOPED_HANDLE(ct_pool) pool = NULL;
    CT_TRY(ct_make(&pool, 1, "a thread pool"));
    pool->n_threads = n_threads;
    pool->spins = n_threads <= ct_cpu_count();
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    CT_TRY(ct_make(&pool->workers, (size_t)n_threads, "a thread pool"));
    CT_TRY(start_workers(pool));
    ct_move(out, &pool);
    return CT_OK;
}

void ct_pool_free(ct_pool **pool) {
    ct_pool *p = *pool;
    if (p == NULL) return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_started; i++) pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    ct_free(p->workers);
    ct_free(p);
    *pool = NULL;
}

int ct_pool_size(const ct_pool *pool) {
    return pool->n_threads;
}

int ct_cpu_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than the set has bits */
    return n < 1 ? 1 : (int)n;
}
