/* bench_decode DIR [SIZE [WORKERS [EPOCHS]]]: pictures a second from a folder of JPEG files to
 * batches of 8-bit tensors, with random crops and flips, streamed (decoded at every visit) and from
 * memory. bench/compare_loader.py runs it beside torchvision's ImageFolder and DataLoader. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "data/loader.h"
#include "data/pictures.h"
#include "util/memory.h"
#include "util/text.h"

enum { BATCH = 32 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct setting {
    const char *dir, *cache;
    int64_t size, workers, epochs;
    size_t memory_bytes;
} setting;

static ct_status measure(const setting *s, const char *label) {
    static const uint64_t seed = 1;
    ct_dataset d = {0};
    ct_partition p = {0};
    ct_order *order = NULL;
    ct_loader *loader = NULL;
    ct_dataset_options options = {.dir = s->dir,
                                  .image_size = (int)s->size,
                                  .augment = true,
                                  .n_test = 1,
                                  .n_workers = (int)s->workers,
                                  .memory_bytes = s->memory_bytes,
                                  .cache = s->cache};
    double began = now();
    ct_status status = ct_dataset_open("imagenette", &options, &d);
    double opened = now();
    ct_partition_spec split = {.kind = "iid", .n_agents = 1, .seed = 1};
    if (status == CT_OK)
        status = ct_partition_create(&split, d.train.labels, d.train.n, d.n_classes, &p);
    ct_order_spec spec = {.seeds = &seed, .n_seeds = 1, .batch_size = BATCH, .shuffle = true};
    if (status == CT_OK) status = ct_order_create(&spec, &p, &order);
    ct_loader_spec load = {.pictures = d.train_pictures,
                           .order = order,
                           .n_agents = 1,
                           .batch_size = BATCH,
                           .n_workers = (int)s->workers};
    if (status == CT_OK) status = ct_loader_create(&load, &loader);
    long n = status == CT_OK ? ct_order_epoch(order) * (long)s->epochs : 0;
    for (long k = 0; k < n && status == CT_OK; k++) {
        ct_batch batch;
        status = ct_loader_batches(loader, k, &batch, NULL, NULL);
    }
    double seconds = now() - opened;
    if (status == CT_OK)
        printf("{\"what\": \"%s\", \"size\": %d, \"workers\": %d, \"pictures_per_s\": %.0f, "
               "\"open_s\": %.2f, \"peak_mib\": %.0f}\n",
               label, (int)s->size, (int)s->workers,
               (double)d.train.n * (double)s->epochs / seconds, opened - began,
               (double)ct_peak_bytes() / (1 << 20));
    ct_loader_free(&loader);
    ct_order_free(&order);
    ct_partition_free(&p);
    ct_dataset_free(&d);
    return status;
}

static ct_status measure_all(setting *s, const char *cache) {
    CT_TRY(measure(s, "streamed"));
    s->cache = cache;
    if (cache != NULL) CT_TRY(measure(s, "streamed from the cache"));
    s->memory_bytes = (size_t)4 << 30;
    return measure(s, "in memory");
}

int main(int argc, char **argv) {
    ct_error error;
    setting s = {.size = 32, .workers = 2, .epochs = 1, .memory_bytes = 1};
    bool ok = argc >= 2 && argc <= 6;
    if (ok) s.dir = argv[1];
    if (argc > 2) ok = ok && ct_parse_i64(argv[2], &s.size);
    if (argc > 3) ok = ok && ct_parse_i64(argv[3], &s.workers);
    if (argc > 4) ok = ok && ct_parse_i64(argv[4], &s.epochs);
    if (!ok) {
        fprintf(stderr, "usage: bench_decode DIR [SIZE [WORKERS [EPOCHS [CACHE]]]]\n");
        return 2;
    }
    ct_status status = CT_CATCH(&error, measure_all(&s, argc > 5 ? argv[5] : NULL));
    if (status != CT_OK) fprintf(stderr, "bench_decode: %s\n", error.text);
    return ct_exit_code(status);
}
