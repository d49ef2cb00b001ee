/* Sums of what a data set holds: of pixels where they are the data, of the files where pictures are
 * decoded from them. Files go by their sizes and up to HEAD bytes at both ends: a folder of any size
 * is read in the time that it takes to open its files, and a picture that was encoded anew has
 * another length or other ends (a PNG ends with the checksum of its pixels). */
#include "data/dataset_internal.h"

#include "data/listing.h"
#include "util/hash.h"
#include "util/memory.h"
#include "util/threads.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD 16384

static uint64_t add_images(uint64_t sum, const ct_images *images) {
    const uint64_t shape[] = {images->n, (uint64_t)images->channels, (uint64_t)images->height,
                              (uint64_t)images->width};
    sum = ct_checksum(sum, shape, sizeof shape);
    sum = ct_checksum_wide(sum, images->labels, images->n * sizeof *images->labels);
    const uint8_t *bytes = ct_image_at(images, 0);
    return bytes != NULL ? ct_checksum_wide(sum, bytes, images->n * ct_image_bytes(images)) : sum;
}

uint64_t ct_dataset_fingerprint(const ct_dataset *d) {
    const uint64_t facts[] = {(uint64_t)d->n_classes, (uint64_t)d->train.channels,
                              (uint64_t)d->train.height, (uint64_t)d->train.width, d->content};
    uint64_t sum = ct_checksum(CT_HASH_START, facts, sizeof facts);
    if (d->content != 0) return sum;
    if (d->train_numbers != NULL)
        sum = ct_checksum(sum, d->train_numbers, d->train.n * sizeof *d->train_numbers);
    return add_images(add_images(sum, &d->train), &d->test);
}

uint64_t ct_dataset_test_sum(const ct_dataset *d) {
    return d->content == 0 ? add_images(CT_HASH_START, &d->test) : 0;
}

/* The size and both ends of a file; 0: it cannot be read. */
static uint64_t file_sum(const char *path) {
    uint8_t bytes[HEAD];
    struct stat info;
    CT_SCOPED_BY(ct_fd_close, int) fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return 0;
    uint64_t sum = ct_hash_number(CT_HASH_START, (uint64_t)info.st_size);
    ssize_t n = pread(fd, bytes, sizeof bytes, 0);
    if (n > 0) sum = ct_checksum_wide(sum, bytes, (size_t)n);
    off_t tail = info.st_size > 2 * HEAD ? info.st_size - HEAD : HEAD;
    n = info.st_size > HEAD ? pread(fd, bytes, sizeof bytes, tail) : 0;
    return n > 0 ? ct_checksum_wide(sum, bytes, (size_t)n) : sum;
}

typedef struct sums {
    const ct_listing *files;
    uint64_t *of_file; /* [files->n] */
} sums;

static void sum_task(void *context, int task, int worker) {
    (void)worker;
    sums *s = context;
    ct_path path = ct_listing_path(s->files, (size_t)task);
    s->of_file[task] = file_sum(path.text);
}

ct_status ct_listing_content(const ct_listing *files, int n_workers, uint64_t *out) {
    CT_SCOPED_BLOCK(uint64_t) of_file = NULL;
    CT_SCOPED_HANDLE(ct_pool) pool = NULL;
    CT_TRY(ct_make(&of_file, files->n, "the sums of the files"));
    CT_TRY(ct_pool_create(n_workers, &pool));
    sums s = {files, of_file};
    ct_pool_run(pool, (int)files->n, sum_task, &s);
    *out = ct_checksum(ct_listing_hash(files), of_file, files->n * sizeof *of_file);
    return CT_OK;
}
