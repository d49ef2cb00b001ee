#include "data/loader.h"

#include "data/cut.h"
#include "data/dataset_internal.h"
#include "data/pictures_internal.h"
#include "util/log.h"
#include "util/memory.h"
#include "util/threads.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

#define RING_BYTES ((size_t)256 << 20)
#define MIN_DEPTH  2
#define MAX_DEPTH  16

typedef struct worker {
    ct_loader *loader;
    pthread_t thread;
    ct_decoder *decoder;
    ct_cutter cutter;
    uint32_t *samples; /* [batch_size] of the task in hand */
} worker;

/* One agent's batch of one iteration. */
typedef struct task {
    long iteration;
    int agent;
    int n;
} task;

struct ct_loader {
    ct_loader_spec spec;
    int depth;       /* iterations in the ring */
    ct_images ring;  /* [depth][n_agents][batch_size] */
    uint32_t *index; /* the same shape: numbers of the ring's images */
    worker *workers;
    int n_workers, n_started;

    pthread_mutex_t lock;
    pthread_cond_t work;  /* there is room in the ring, or stop */
    pthread_cond_t ready; /* a batch is done, a worker has nothing in hand, or it failed */
    long base;            /* under lock, as all below: the iteration in use, or the first one */
    bool in_use;          /* base was handed out */
    task next;            /* to be taken next (its n is not set) */
    int *n_done;          /* [depth] batches done of the iteration in that place */
    int n_busy;           /* workers with a task in hand */
    bool stop;
    ct_error error; /* of the first worker that failed */
    const ct_hooks *hooks;
    double waited_s;
};

static size_t place_of(const ct_loader *l, long iteration, int agent) {
    size_t slot = (size_t)(iteration % l->depth) * (size_t)l->spec.n_agents + (size_t)agent;
    return slot * (size_t)l->spec.batch_size;
}

/* Waits for a task and takes it, with a copy of its samples; false at the end. */
static bool take_task(worker *w, task *out) {
    ct_loader *l = w->loader;
    pthread_mutex_lock(&l->lock);
    while (!l->stop && (l->error.status != CT_OK || l->next.iteration >= l->base + l->depth))
        pthread_cond_wait(&l->work, &l->lock);
    bool goes_on = !l->stop;
    if (goes_on) {
        *out = l->next;
        ct_batch batch =
            ct_order_batch(l->spec.order, l->spec.first_agent + out->agent, out->iteration);
        out->n = batch.n;
        memcpy(w->samples, batch.index, (size_t)batch.n * sizeof *w->samples);
        l->n_busy++;
        if (++l->next.agent == l->spec.n_agents) l->next = (task){.iteration = out->iteration + 1};
    }
    pthread_mutex_unlock(&l->lock);
    return goes_on;
}

static ct_status make_image(worker *w, const task *t, int b, uint8_t *out) {
    const ct_loader *l = w->loader;
    const ct_pictures_spec *spec = &l->spec.pictures->spec;
    ct_picture picture;
    CT_TRY(ct_pictures_get(l->spec.pictures, w->samples[b], w->decoder, &picture));
    ct_cut cut = ct_cut_center(picture.width, picture.height, spec->size);
    if (spec->random) {
        ct_rng rng;
        ct_order_rng(l->spec.order, l->spec.first_agent + t->agent, t->iteration, w->samples[b],
                     &rng);
        cut = ct_cut_random(&rng, picture.width, picture.height);
    }
    return ct_cut_out(&w->cutter, &picture, &cut, spec->size, out);
}

static ct_status do_task(worker *w, const task *t) {
    ct_loader *l = w->loader;
    size_t image = ct_image_bytes(&l->ring), place = place_of(l, t->iteration, t->agent);
    for (int b = 0; b < t->n; b++, place++) {
        CT_TRY(make_image(w, t, b, l->ring.pixels + place * image));
        l->ring.labels[place] = l->spec.pictures->files.labels[w->samples[b]];
    }
    return CT_OK;
}

static void finish_task(ct_loader *l, const task *t, const ct_error *error) {
    pthread_mutex_lock(&l->lock);
    if (error->status != CT_OK && l->error.status == CT_OK) l->error = *error;
    l->n_done[t->iteration % l->depth]++;
    l->n_busy--;
    pthread_cond_broadcast(&l->ready);
    pthread_mutex_unlock(&l->lock);
}

static void *worker_main(void *argument) {
    worker *w = argument;
    task t;
    ct_hooks_use(w->loader->hooks);
    while (take_task(w, &t)) {
        ct_error error;
        (void)CT_CATCH(&error, do_task(w, &t));
        finish_task(w->loader, &t, &error);
    }
    return NULL;
}

/* As many iterations as the ring may hold. */
static int choose_depth(const ct_loader_spec *spec, size_t image) {
    size_t bytes = spec->ring_bytes > 0 ? spec->ring_bytes : RING_BYTES;
    size_t iteration = (size_t)spec->n_agents * (size_t)spec->batch_size * image;
    size_t depth = bytes / iteration;
    return depth < MIN_DEPTH ? MIN_DEPTH : depth > MAX_DEPTH ? MAX_DEPTH : (int)depth;
}

static ct_status make_ring(ct_loader *l) {
    int size = l->spec.pictures->spec.size;
    l->depth = choose_depth(&l->spec, (size_t)3 * (size_t)size * (size_t)size);
    size_t n = (size_t)l->depth * (size_t)l->spec.n_agents * (size_t)l->spec.batch_size;
    CT_TRY(ct_images_create(n, 3, size, size, &l->ring));
    if (n > UINT32_MAX) return ct_no_memory("the batches in advance");
    CT_TRY(ct_make(&l->index, n, "the batches in advance"));
    CT_TRY(ct_make(&l->n_done, (size_t)l->depth, "the batches in advance"));
    for (size_t k = 0; k < n; k++) l->index[k] = (uint32_t)k;
    return CT_OK;
}

static ct_status start_workers(ct_loader *l) {
    CT_TRY(ct_make(&l->workers, (size_t)l->n_workers, "loader threads"));
    for (int k = 0; k < l->n_workers; k++) {
        worker *w = &l->workers[k];
        w->loader = l;
        CT_TRY(ct_make(&w->samples, (size_t)l->spec.batch_size, "loader threads"));
        CT_TRY(ct_decoder_create(&w->decoder));
        int error = pthread_create(&w->thread, NULL, worker_main, w);
        if (error != 0)
            return ct_fail(CT_NOMEM, "cannot start loader thread %d of %d: %s", k + 1, l->n_workers,
                           strerror(error));
        l->n_started++;
    }
    return CT_OK;
}

ct_status ct_loader_create(const ct_loader_spec *spec, ct_loader **out) {
    CT_SCOPED_HANDLE(ct_loader) l = NULL;
    CT_TRY(ct_make(&l, 1, "a loader"));
    l->spec = *spec;
    l->hooks = ct_hooks_now();
    l->n_workers = spec->n_workers > 0 ? spec->n_workers : ct_cpu_count();
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->ready, NULL);
    CT_TRY(make_ring(l));
    CT_TRY(start_workers(l));
    ct_move(out, &l);
    return CT_OK;
}

void ct_loader_free(ct_loader **loader) {
    ct_loader *l = *loader;
    if (l == NULL) return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    for (int k = 0; k < l->n_started; k++) pthread_join(l->workers[k].thread, NULL);
    for (int k = 0; l->workers != NULL && k < l->n_workers; k++) {
        ct_decoder_free(&l->workers[k].decoder);
        ct_cutter_free(&l->workers[k].cutter);
        ct_free(l->workers[k].samples);
    }
    pthread_cond_destroy(&l->ready);
    pthread_cond_destroy(&l->work);
    pthread_mutex_destroy(&l->lock);
    ct_free(l->workers);
    ct_free(l->n_done);
    ct_free(l->index);
    ct_images_free(&l->ring);
    ct_free(l);
    *loader = NULL;
}

const ct_images *ct_loader_images(const ct_loader *loader) {
    return &loader->ring;
}

/* Begins anew at `iteration`, once no worker has anything in hand. Under lock. */
static void seek(ct_loader *l, long iteration) {
    l->next = (task){.iteration = LONG_MAX}; /* nobody takes anything */
    while (l->n_busy > 0) pthread_cond_wait(&l->ready, &l->lock);
    memset(l->n_done, 0, (size_t)l->depth * sizeof *l->n_done);
    l->base = iteration;
    l->next = (task){.iteration = iteration};
}

/* Makes room by giving back what is not needed any more, and waits for `iteration`. Under lock. */
static void await(ct_loader *l, long iteration) {
    if (iteration == l->base + 1 && l->in_use) {
        l->n_done[l->base % l->depth] = 0;
        l->base = iteration;
    } else if (iteration != l->base) {
        seek(l, iteration);
    }
    l->in_use = true;
    pthread_cond_broadcast(&l->work);
    double began = ct_seconds();
    bool waits = false;
    while (l->error.status == CT_OK && l->n_done[iteration % l->depth] < l->spec.n_agents) {
        waits = true;
        pthread_cond_wait(&l->ready, &l->lock);
    }
    if (waits) l->waited_s += ct_seconds() - began;
}

ct_status ct_loader_batches(ct_loader *l, long iteration, ct_batch *out, size_t *first, size_t *n) {
    pthread_mutex_lock(&l->lock);
    await(l, iteration);
    ct_error error = l->error;
    pthread_mutex_unlock(&l->lock);
    if (error.status != CT_OK) return ct_fail_again(&error);
    for (int a = 0; a < l->spec.n_agents; a++)
        out[a] =
            (ct_batch){.n = ct_order_batch_size(l->spec.order, l->spec.first_agent + a, iteration),
                       .index = l->index + place_of(l, iteration, a)};
    if (first != NULL) *first = place_of(l, iteration, 0);
    if (n != NULL) *n = (size_t)l->spec.n_agents * (size_t)l->spec.batch_size;
    return CT_OK;
}

double ct_loader_waited(const ct_loader *loader) {
    return loader->waited_s;
}
