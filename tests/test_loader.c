/* The loader: the same batches whatever the number of workers, in bounded memory, and a training
 * run that does not notice where its pictures come from. */
#include "test.h"

#include "backend/host.h"
#include "ct_config.h"
#include "data/cut.h"
#include "data/loader.h"
#include "data/pictures.h"
#include "data_files.h"
#include "run/run.h"
#include "util/file.h"
#include "util/log.h"
#include "util/memory.h"

enum { SIZE = 12, N_IMAGE = 3 * SIZE * SIZE, N_AGENTS = 3, BATCH = 4, N_EACH = 9 };

/* Two classes of n pictures each in train/, and two pictures each in val/. */
static void make_set(int n) {
    static const char *const names[] = {"rgb.png", "small.png", "tall.jpg", "palette.png"};
    for (int k = 0; k < n * 2 + 4; k++) {
        char path[512], name[64];
        ct_blob file = {0};
        snprintf(path, sizeof path, "%s/tests/fixtures/images/%s", CT_SOURCE_DIR, names[k % 4]);
        snprintf(name, sizeof name, "%s/%s/%03d.png", k < n * 2 ? "train" : "val",
                 k % 2 ? "up" : "down", k);
        if (ct_file_read(path, 1 << 20, &file) != CT_OK) printf("    %s\n", ct_message());
        write_file(name, file.bytes, file.n);
        ct_blob_free(&file);
    }
}

typedef struct feed {
    ct_dataset dataset;
    ct_partition partition;
    ct_order *order;
    ct_loader *loader;
} feed;

static ct_status feed_open(int n_workers, size_t memory_bytes, size_t ring_bytes, feed *f) {
    static const uint64_t seed = 11;
    *f = (feed){0};
    ct_dataset_options options = {.dir = scratch,
                                  .image_size = SIZE,
                                  .augment = true,
                                  .seed = 1,
                                  .memory_bytes = memory_bytes,
                                  .n_workers = n_workers};
    CT_TRY(ct_dataset_open("folder", &options, &f->dataset));
    ct_partition_spec split = {.kind = "iid", .n_agents = N_AGENTS, .seed = 2};
    CT_TRY(
        ct_partition_create(&split, f->dataset.train.labels, f->dataset.train.n, 2, &f->partition));
    ct_order_spec spec = {.seeds = &seed, .n_seeds = 1, .batch_size = BATCH, .shuffle = true};
    CT_TRY(ct_order_create(&spec, &f->partition, &f->order));
    ct_loader_spec loader = {.pictures = f->dataset.train_pictures,
                             .order = f->order,
                             .n_agents = N_AGENTS,
                             .batch_size = BATCH,
                             .n_workers = n_workers,
                             .ring_bytes = ring_bytes};
    return ct_loader_create(&loader, &f->loader);
}

static void feed_close(feed *f) {
    ct_loader_free(&f->loader);
    ct_order_free(&f->order);
    ct_partition_free(&f->partition);
    ct_dataset_free(&f->dataset);
}

/* CRC of what an iteration delivers: sizes, labels and pixels of every agent's batch. */
static uint32_t crc_of(feed *f, long iteration) {
    ct_batch batches[N_AGENTS];
    uint32_t crc = 0;
    size_t first = 0, n = 0;
    CHECK_OK(ct_loader_batches(f->loader, iteration, batches, &first, &n));
    const ct_images *ring = ct_loader_images(f->loader);
    for (int a = 0; a < N_AGENTS; a++) {
        crc = ct_crc32(crc, &batches[a].n, sizeof batches[a].n);
        for (int b = 0; b < batches[a].n; b++) {
            size_t i = batches[a].index[b];
            CHECK(i >= first && i < first + n && batches[a].crop == NULL);
            crc = ct_crc32(crc, &ring->labels[i], sizeof ring->labels[i]);
            crc = ct_crc32(crc, ring->pixels + i * N_IMAGE, N_IMAGE);
        }
    }
    return crc;
}

static void batches_do_not_depend_on_workers_memory_or_the_ring(void) {
    enum { N_ITERATIONS = 40 };
    static uint32_t expected[N_ITERATIONS];
    scratch_open();
    make_set(N_EACH * N_AGENTS / 2 + 1);
    for (int k = 0; k < 5; k++) {
        feed f;
        REQUIRE_OK(feed_open(k < 2 ? 1 : k + 1, k % 2 ? 1 : 0, k == 3 ? 1 : 0, &f));
        CHECK(ct_pictures_in_memory(f.dataset.train_pictures) == (k % 2 == 0));
        for (long i = 0; i < N_ITERATIONS; i++) {
            uint32_t crc = crc_of(&f, i);
            if (k == 0) expected[i] = crc;
            CHECK(crc == expected[i]);
        }
        feed_close(&f);
    }
    for (int i = 1; i < N_ITERATIONS; i++) CHECK(expected[i] != expected[i - 1]);
    scratch_close();
}

static void iterations_can_be_asked_for_in_any_order(void) {
    feed f;
    scratch_open();
    make_set(N_EACH * N_AGENTS / 2 + 1);
    REQUIRE_OK(feed_open(3, 0, 0, &f));
    uint32_t zero = crc_of(&f, 0), one = crc_of(&f, 1), nine = 0;
    CHECK(crc_of(&f, 1) == one);
    nine = crc_of(&f, 9);
    CHECK(crc_of(&f, 0) == zero && crc_of(&f, 9) == nine && crc_of(&f, 1) == one);
    feed_close(&f);
    scratch_close();
}

/* Every visit is the cut that its own random numbers say, of the picture its sample says. */
static void a_batch_is_what_its_draws_say(void) {
    feed f;
    ct_batch batches[N_AGENTS];
    ct_decoder *decoder = NULL;
    ct_cutter cutter = {0};
    scratch_open();
    make_set(N_EACH * N_AGENTS / 2 + 1);
    REQUIRE_OK(feed_open(2, 0, 0, &f));
    REQUIRE_OK(ct_decoder_create(&decoder));
    REQUIRE_OK(ct_loader_batches(f.loader, 5, batches, NULL, NULL));
    const ct_images *ring = ct_loader_images(f.loader);
    ct_order *order = NULL;
    static const uint64_t seed = 11;
    ct_order_spec spec = {.seeds = &seed, .n_seeds = 1, .batch_size = BATCH, .shuffle = true};
    REQUIRE_OK(ct_order_create(&spec, &f.partition, &order));
    for (int a = 0; a < N_AGENTS; a++) {
        ct_batch wanted = ct_order_batch(order, a, 5);
        REQUIRE(wanted.n == batches[a].n);
        for (int b = 0; b < wanted.n; b++) {
            ct_picture p;
            ct_rng rng;
            uint8_t image[N_IMAGE];
            REQUIRE_OK(ct_pictures_get(f.dataset.train_pictures, wanted.index[b], decoder, &p));
            /* agent a, pass 5 / 3: a pass of 9 samples has 3 batches */
            ct_rng_init(&rng, 11, CT_RNG_AUGMENT, (uint32_t)a, 1, wanted.index[b]);
            ct_cut cut = ct_cut_random(&rng, p.width, p.height);
            REQUIRE_OK(ct_cut_out(&cutter, &p, &cut, SIZE, image));
            size_t i = batches[a].index[b];
            CHECK(memcmp(image, ring->pixels + i * N_IMAGE, N_IMAGE) == 0);
            CHECK(ring->labels[i] == f.dataset.train.labels[wanted.index[b]]);
        }
    }
    ct_order_free(&order);
    ct_cutter_free(&cutter);
    ct_decoder_free(&decoder);
    feed_close(&f);
    scratch_close();
}

static void a_picture_that_breaks_later_is_replaced_or_refused(void) {
    feed f;
    ct_decoder *decoder = NULL;
    ct_picture good, replaced;
    scratch_open();
    make_set(6);
    REQUIRE_OK(feed_open(2, 1, 0, &f)); /* streamed: only looked at so far */
    REQUIRE_OK(ct_decoder_create(&decoder));
    REQUIRE_OK(ct_pictures_get(f.dataset.train_pictures, 1, decoder, &good));
    int width = good.width, height = good.height;
    write_file("train/down/000.png", "\x89PNG\r\n\x1a\n and nothing", 20);
    for (int k = 0; k < 2; k++) {
        REQUIRE_OK(ct_pictures_get(f.dataset.train_pictures, 0, decoder, &replaced));
        CHECK(replaced.width == width && replaced.height == height);
    }
    for (long i = 0; i < 20; i++) crc_of(&f, i);
    feed_close(&f);
    ct_dataset_options options = {
        .dir = scratch, .image_size = SIZE, .augment = true, .memory_bytes = 1, .strict = true};
    ct_dataset d = {0};
    REQUIRE_OK(ct_dataset_open("folder", &options, &d));
    CHECK_FAILS(ct_pictures_get(d.train_pictures, 0, decoder, &replaced), CT_IO,
                "train/down/000.png");
    ct_dataset_free(&d);
    ct_decoder_free(&decoder);
    scratch_close();
}

/* ---- crops and flips of sets in memory ---- */

enum { SIDE = 9, PAD = 4 };

/* As torchvision does it: a black border, a cut of the same size, then a mirror image; all before
 * normalisation, which is float32 arithmetic there. */
static float augmented(const uint8_t *plane, const ct_crop *crop, int y, int x) {
    uint8_t padded[SIDE + 2 * PAD][SIDE + 2 * PAD] = {{0}};
    for (int j = 0; j < SIDE; j++)
        for (int i = 0; i < SIDE; i++) padded[PAD + j][PAD + i] = plane[j * SIDE + i];
    int from_x = crop->flip ? SIDE - 1 - x : x;
    return ((float)padded[PAD + crop->dy + y][PAD + crop->dx + from_x] / 255.0f - 0.4914f) /
           0.2023f;
}

static void padded_crops_and_flips_equal_a_plain_computation(void) {
    static uint8_t pixels[20 * SIDE * SIDE];
    static int32_t labels[20];
    static const uint64_t seed = 5;
    const float mean = 0.4914f, std = 0.2023f;
    ct_images images = {20, 1, SIDE, SIDE, pixels, NULL, labels, false};
    ct_partition split = {0};
    ct_order *order = NULL;
    ct_source *source = NULL;
    float out[SIDE * SIDE];
    int n_flipped = 0, n_moved = 0;
    for (size_t k = 0; k < sizeof pixels; k++) pixels[k] = (uint8_t)(k * 89 + 3);
    ct_partition_spec spec = {.kind = "iid", .n_agents = 2, .seed = 1};
    REQUIRE_OK(ct_partition_create(&spec, labels, 20, 1, &split));
    ct_order_spec how = {.seeds = &seed,
                         .n_seeds = 1,
                         .batch_size = 5,
                         .shuffle = true,
                         .crop_padding = PAD,
                         .flip = true};
    REQUIRE_OK(ct_order_create(&how, &split, &order));
    REQUIRE_OK(ct_host_source_create(NULL, &images, &mean, &std, &source));
    for (long iteration = 0; iteration < 8; iteration++) {
        ct_batch batch = ct_order_batch(order, (int)(iteration % 2), iteration);
        for (int b = 0; b < batch.n; b++) {
            const uint8_t *plane = pixels + batch.index[b] * SIDE * SIDE;
            ct_host_sample(source, &batch, b, out);
            n_flipped += batch.crop[b].flip;
            n_moved += batch.crop[b].dy != 0 || batch.crop[b].dx != 0;
            CHECK(abs(batch.crop[b].dy) <= PAD && abs(batch.crop[b].dx) <= PAD);
            for (int k = 0; k < SIDE * SIDE; k++) /* float32 roundings of values up to 2.6 */
                CHECK_NEAR(out[k], augmented(plane, &batch.crop[b], k / SIDE, k % SIDE), 1e-6);
        }
    }
    CHECK(n_flipped > 5 && n_flipped < 35 && n_moved > 30); /* of 40 */
    ct_host_source_free(source);
    ct_order_free(&order);
    ct_partition_free(&split);
}

/* ---- a whole run ---- */

static void options_for(ct_config *c, const char *memory, const char *workers) {
    ct_config_init(c);
    const char *const pairs[][2] = {
        {"dataset", "folder"}, {"data-dir", scratch}, {"image-size", "28"}, {"model", "mlp"},
        {"agents", "2"},       {"batch-size", "4"},   {"partition", "iid"}, {"topology", "chain"},
        {"epochs", "2"},       {"device", "ref"},     {"memory", memory},   {"workers", workers}};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
        CHECK_OK(ct_config_put(c, pairs[k][0], pairs[k][1]));
}

/* Three iterations and an evaluation. */
static void run_briefly(const char *memory, const char *workers, ct_evaluation *out) {
    ct_config config;
    static ct_run run;
    options_for(&config, memory, workers);
    REQUIRE_OK(ct_run_build(&config, &run));
    CHECK(run.train_loader != NULL);
    for (long k = 0; k < 3; k++) CHECK_OK(ct_run_iterate(&run, k));
    CHECK_OK(ct_run_score_all(&run, true, out));
    CHECK(ct_run_data_wait(&run) >= 0);
    ct_run_clear(&run);
}

static void a_run_is_the_same_with_any_number_of_workers(void) {
    ct_evaluation one = {0}, three = {0};
    scratch_open();
    make_set(10);
    run_briefly("64", "1", &one);
    run_briefly("64", "3", &three);
    CHECK(one.consensus_loss == three.consensus_loss && one.consensus_loss > 0);
    CHECK(one.consensus_distance == three.consensus_distance);
    scratch_close();
}

/* The test part streamed gives the scores it gives in memory. */
static void a_streamed_test_part_scores_as_one_in_memory(void) {
    ct_config config;
    static ct_run run;
    ct_evaluation in_memory, streamed, again;
    scratch_open();
    make_set(10);
    for (int k = 0; k < 120; k++) {
        char from[64], to[64];
        snprintf(from, sizeof from, "val/%s/%03d.png", k % 2 ? "up" : "down", 20 + k % 4);
        snprintf(to, sizeof to, "val/%s/%03d-copy.png", k % 2 ? "up" : "down", k);
        CHECK(link(in_scratch(from), in_scratch(to)) == 0);
    }
    options_for(&config, "64", "2");
    CHECK_OK(ct_config_put(&config, "image-size", "64"));
    CHECK_OK(ct_config_put(&config, "memory", "1")); /* 124 x 12 KiB are more */
    REQUIRE_OK(ct_run_build(&config, &run));
    REQUIRE(run.test_loader != NULL && run.dataset.test.n == 124);
    CHECK_OK(ct_run_score_all(&run, true, &streamed));
    CHECK_OK(ct_run_score_all(&run, true, &again));
    CHECK(streamed.consensus_loss == again.consensus_loss);
    ct_run_clear(&run);
    CHECK_OK(ct_config_put(&config, "memory", "64"));
    REQUIRE_OK(ct_run_build(&config, &run));
    CHECK(run.test_loader == NULL);
    CHECK_OK(ct_run_score_all(&run, true, &in_memory));
    CHECK(streamed.consensus_loss == in_memory.consensus_loss);
    CHECK(streamed.local_accuracy_mean == in_memory.local_accuracy_mean);
    ct_run_clear(&run);
    scratch_close();
}

int main(void) {
    TEST(padded_crops_and_flips_equal_a_plain_computation);
    if (!CT_WITH_JPEG || !CT_WITH_PNG) {
        printf("skip built without libjpeg or libpng\n");
        test_n_skipped++;
        return test_report();
    }
    TEST(batches_do_not_depend_on_workers_memory_or_the_ring);
    TEST(iterations_can_be_asked_for_in_any_order);
    TEST(a_batch_is_what_its_draws_say);
    TEST(a_picture_that_breaks_later_is_replaced_or_refused);
    TEST(a_run_is_the_same_with_any_number_of_workers);
    TEST(a_streamed_test_part_scores_as_one_in_memory);
    return test_report();
}
