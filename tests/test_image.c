/* Decoding, resizing and cutting against what Pillow and torchvision make of the same pictures
 * (tests/fixtures/images, by tests/oracle/make_images.py), and broken pictures. */
#include "test.h"

#include "ct_config.h"
#include "data/cut.h"
#include "data/decode.h"
#include "data/png_write.h"
#include "data_files.h"
#include "util/file.h"
#include "util/memory.h"

enum { SIDE = 24, N_SMALL = 3 * SIDE * SIDE };

static ct_decoder *decoder;
static ct_cutter cutter;

static const char *fixture(const char *name) {
    static char path[4][512];
    static int next;
    char *at = path[next++ % 4];
    snprintf(at, sizeof path[0], "%s/tests/fixtures/images/%s", CT_SOURCE_DIR, name);
    return at;
}

/* The largest difference to the expected pixels; -1 if the picture cannot be read. */
static int largest_difference(const char *name, bool fast) {
    char expected_name[64];
    ct_blob expected = {0};
    ct_picture p;
    uint8_t got[N_SMALL];
    snprintf(expected_name, sizeof expected_name, "%s.24", name);
    if (ct_file_read(fixture(expected_name), N_SMALL, &expected) != CT_OK) return -1;
    int largest = -1;
    if (ct_decode_file(decoder, fixture(name), SIDE, fast, &p) == CT_OK) {
        ct_cut cut = ct_cut_center(p.width, p.height, SIDE);
        largest = 0;
        CHECK_OK(ct_cut_out(&cutter, &p, &cut, SIDE, got));
        for (int k = 0; k < N_SMALL; k++)
            largest = abs(got[k] - expected.bytes[k]) > largest ? abs(got[k] - expected.bytes[k])
                                                                : largest;
    } else {
        printf("    %s: %s\n", name, ct_decoder_reason(decoder));
    }
    ct_blob_free(&expected);
    return largest;
}

static void every_kind_of_png_becomes_what_pillow_makes_of_it(void) {
    static const char *const names[] = {
        "rgb.png",   "rgba.png",       "palette.png", "grey.png",  "grey_alpha.png", "palette4.png",
        "bits1.png", "interlaced.png", "rgb16.png",   "small.png", "grey16.png"};
    if (!CT_WITH_PNG) SKIP("built without libpng");
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        int difference = largest_difference(names[k], false);
        if (difference != 0) printf("    %s differs by %d\n", names[k], difference);
        CHECK(difference == 0);
    }
}

/* 2 of 255: where libjpeg is libjpeg-turbo as Pillow's, it is 0. */
static void every_kind_of_jpeg_becomes_what_pillow_makes_of_it(void) {
    static const char *const names[] = {"rgb.jpg",  "progressive.jpg", "grey.jpg",
                                        "cmyk.jpg", "tall.jpg",        "large.jpg"};
    if (!CT_WITH_JPEG) SKIP("built without libjpeg");
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        int difference = largest_difference(names[k], false);
        if (difference < 0 || difference > 2)
            printf("    %s differs by %d\n", names[k], difference);
        CHECK(difference >= 0 && difference <= 2);
    }
}

static void scaled_decoding_changes_little(void) {
    ct_picture p;
    uint8_t exact[160 * 4];
    if (!CT_WITH_JPEG) SKIP("built without libjpeg");
    REQUIRE_OK(ct_decode_file(decoder, fixture("large.jpg"), 10, false, &p));
    REQUIRE(p.width == 13 && p.height == 10);
    memcpy(exact, p.pixels, (size_t)13 * 10 * 4);
    REQUIRE_OK(ct_decode_file(decoder, fixture("large.jpg"), 10, true, &p)); /* 120 >= 8 * 10 */
    REQUIRE(p.width == 13 && p.height == 10);
    double sum = 0;
    for (int k = 0; k < 130 * 4; k++)
        if (k % 4 != 3) sum += abs(p.pixels[k] - exact[k]);
    CHECK(sum > 0 && sum / (130 * 3) < 1.5); /* 0.3 on photographs; these edges are sharper */
}

static void cuts_are_torchvisions_resized_crops(void) {
    ct_blob text = {0}, expected = {0};
    ct_picture p;
    uint8_t got[3 * 16 * 16];
    if (!CT_WITH_PNG) SKIP("built without libpng");
    REQUIRE_OK(ct_file_read(fixture("cuts.txt"), 4096, &text));
    REQUIRE_OK(ct_file_read(fixture("cuts.bin"), 1 << 16, &expected));
    REQUIRE_OK(ct_decode_file(decoder, fixture("rgb.png"), 40, false, &p));
    const char *line = (const char *)text.bytes;
    size_t n = 0;
    for (ct_cut cut = {0}; *line != '\0'; n++) {
        int flip = 0;
        REQUIRE(sscanf(line, "%d %d %d %d %d", &cut.y, &cut.x, &cut.height, &cut.width, &flip) ==
                5);
        cut.flip = flip != 0;
        REQUIRE_OK(ct_cut_out(&cutter, &p, &cut, 16, got));
        REQUIRE((n + 1) * sizeof got <= expected.n);
        CHECK(memcmp(got, expected.bytes + n * sizeof got, sizeof got) == 0);
        line = strchr(line, '\n') + 1;
    }
    CHECK(n == 6);
    ct_blob_free(&text);
    ct_blob_free(&expected);
}

/* The same cut by the definition: triangles of real weights over the input, in double. */
static double reference(const ct_picture *p, const ct_cut *cut, int size, int c, int y, int x) {
    double sx = (double)cut->width / size, sy = (double)cut->height / size;
    double wx = sx < 1 ? 1 : sx, wy = sy < 1 ? 1 : sy, sum = 0, weights = 0;
    if (cut->flip) x = size - 1 - x;
    for (int j = 0; j < cut->height; j++)
        for (int i = 0; i < cut->width; i++) {
            double u = fabs(i + 0.5 - (x + 0.5) * sx) / wx, v = fabs(j + 0.5 - (y + 0.5) * sy) / wy;
            double w = (u < 1 ? 1 - u : 0) * (v < 1 ? 1 - v : 0);
            weights += w;
            sum += w * p->pixels[((cut->y + j) * p->width + cut->x + i) * 4 + c];
        }
    return sum / weights;
}

static void random_cuts_equal_a_plain_computation_from_the_same_draws(void) {
    static uint8_t pixels[50 * 37 * 4];
    uint8_t got[3 * 12 * 12];
    ct_rng rng;
    ct_rng_init(&rng, 5, CT_RNG_TEST, 0, 0, 0);
    for (size_t k = 0; k < sizeof pixels; k++) pixels[k] = (uint8_t)ct_rng_u32(&rng);
    ct_picture p = {.width = 50, .height = 37, .pixels = pixels};
    for (uint32_t sample = 0; sample < 40; sample++) {
        ct_rng a, b;
        ct_rng_init(&a, 1, CT_RNG_AUGMENT, 3, 7, sample);
        ct_rng_init(&b, 1, CT_RNG_AUGMENT, 3, 7, sample);
        ct_cut cut = ct_cut_random(&a, p.width, p.height);
        ct_cut again = ct_cut_random(&b, p.width, p.height);
        CHECK(memcmp(&cut, &again, sizeof cut) == 0);
        REQUIRE_OK(ct_cut_out(&cutter, &p, &cut, 12, got));
        for (int k = 0; k < 3 * 12 * 12; k++) /* two roundings to whole levels */
            CHECK_NEAR(got[k], reference(&p, &cut, 12, k / 144, k / 12 % 12, k % 12), 1.01);
    }
}

static void random_cuts_have_the_promised_areas_and_shapes(void) {
    int n = 20000, n_flipped = 0;
    double area = 0, smallest = 1, largest = 0;
    for (uint32_t k = 0; k < (uint32_t)n; k++) {
        ct_rng rng;
        ct_rng_init(&rng, 2, CT_RNG_AUGMENT, 0, 0, k);
        ct_cut cut = ct_cut_random(&rng, 200, 160);
        REQUIRE(cut.x >= 0 && cut.y >= 0 && cut.width > 0 && cut.height > 0);
        REQUIRE(cut.x + cut.width <= 200 && cut.y + cut.height <= 160);
        double share = cut.width * cut.height / 32000.0, ratio = (double)cut.width / cut.height;
        CHECK(ratio > 0.72 && ratio < 1.38); /* 3/4 .. 4/3, and whole pixels */
        area += share / n;
        if (share < smallest) smallest = share;
        if (share > largest) largest = share;
        n_flipped += cut.flip;
    }
    CHECK(smallest > 0.075 && smallest < 0.09 && largest > 0.9);
    CHECK_NEAR(area, 0.454, 0.01);     /* torchvision 0.14: 0.4539; large ones often do not fit */
    CHECK_NEAR(n_flipped, n / 2, 300); /* four standard deviations */
}

static void a_sliver_is_cut_from_its_middle(void) {
    ct_rng rng;
    ct_rng_init(&rng, 1, CT_RNG_AUGMENT, 0, 0, 0);
    ct_cut wide = ct_cut_random(&rng, 1000, 3), tall = ct_cut_random(&rng, 3, 1000);
    CHECK(wide.width == 4 && wide.height == 3 && wide.x == 498 && wide.y == 0);
    CHECK(tall.width == 3 && tall.height == 4 && tall.y == 498 && tall.x == 0);
}

static void a_cut_beyond_the_picture_is_black_there(void) {
    uint8_t pixels[4] = {200, 100, 50, 0}, got[3 * 3 * 3];
    ct_picture p = {.width = 1, .height = 1, .pixels = pixels};
    ct_cut cut = ct_cut_center(1, 1, 3);
    REQUIRE_OK(ct_cut_out(&cutter, &p, &cut, 3, got));
    for (int k = 0; k < 27; k++)
        CHECK(got[k] == (k == 4 ? 200 : k == 9 + 4 ? 100 : k == 18 + 4 ? 50 : 0));
}

/* ---- broken pictures ---- */

static void refuse(const uint8_t *bytes, size_t n, const char *words) {
    ct_picture p;
    CHECK(ct_decode(decoder, bytes, n, 16, false, &p) == CT_IO);
    if (strstr(ct_decoder_reason(decoder), words) == NULL)
        printf("    the reason is '%s'\n", ct_decoder_reason(decoder));
    CHECK(strstr(ct_decoder_reason(decoder), words) != NULL);
    CHECK(ct_message()[0] == '\0');
}

static void a_picture_cut_anywhere_is_refused(void) {
    static const char *const names[] = {"rgb.jpg", "progressive.jpg", "rgb.png", "interlaced.png"};
    for (int k = CT_WITH_JPEG ? 0 : 2; k < (CT_WITH_PNG ? 4 : 2); k++) {
        ct_blob file = {0};
        REQUIRE_OK(ct_file_read(fixture(names[k]), 1 << 20, &file));
        size_t end = k < 2 ? file.n - 2 : file.n - 12 - 16; /* the end marks may be missing */
        for (size_t n = 0; n < end; n += n < 700 ? 1 : 37) refuse(file.bytes, n, "");
        ct_blob_free(&file);
    }
    refuse(NULL, 0, "empty file");
}

static void what_is_no_picture_is_refused(void) {
    refuse((const uint8_t *)"GIF89a and more", 15, "neither JPEG nor PNG");
    ct_picture p;
    CHECK(ct_decode_file(decoder, "/nonexistent.jpg", 16, false, &p) == CT_IO);
    CHECK(strstr(ct_decoder_reason(decoder), "No such file") != NULL);
    CHECK(ct_decode_file(decoder, "/tmp", 16, false, &p) == CT_IO);
    CHECK(strstr(ct_decoder_reason(decoder), "not a plain file") != NULL);
}

static void put_u32(uint8_t *at, uint32_t value) {
    for (int k = 0; k < 4; k++) at[k] = (uint8_t)(value >> (24 - 8 * k));
}

/* A PNG of one colour, written without holding it: returns its path. */
static const char *write_plain_png(const char *name, uint32_t width, uint32_t height) {
    static uint8_t packed[1 << 20], row[1 + 3 * 20000];
    uint8_t head[33] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", tail[12] = {0};
    z_stream z = {.next_out = packed + 8, .avail_out = sizeof packed - 12};
    put_u32(head + 16, width);
    put_u32(head + 20, height);
    head[24] = 8;
    head[25] = 2;
    put_u32(head + 29, ct_crc32(0, head + 12, 17));
    memset(row + 1, 77, sizeof row - 1);
    deflateInit(&z, 9);
    for (uint32_t y = 0; y < height; y++) {
        z.next_in = row;
        z.avail_in = 1 + 3 * width;
        deflate(&z, y + 1 == height ? Z_FINISH : Z_NO_FLUSH);
    }
    put_u32(packed, (uint32_t)z.total_out);
    memcpy(packed + 4, "IDAT", 4);
    put_u32(packed + 8 + z.total_out, ct_crc32(0, packed + 4, 4 + z.total_out));
    memcpy(tail + 4, "IEND\xae\x42\x60\x82", 8);
    const char *path = in_scratch(name);
    FILE *f = fopen(path, "wb");
    fwrite(head, 1, 33, f);
    fwrite(packed, 1, 12 + z.total_out, f);
    fwrite(tail, 1, 12, f);
    fclose(f);
    deflateEnd(&z);
    return path;
}

static void a_picture_20000_pixels_wide_needs_little_memory(void) {
    ct_picture p;
    if (!CT_WITH_PNG) SKIP("built without libpng");
    scratch_open();
    const char *path = write_plain_png("wide.png", 20000, 2000); /* 120 MB decoded */
    size_t before = ct_peak_bytes();
    REQUIRE_OK(ct_decode_file(decoder, path, 32, false, &p));
    CHECK(p.width == 320 && p.height == 32 && p.pixels[2] == 77);
    CHECK(ct_peak_bytes() - before < (size_t)24 << 20);
    scratch_close();
}

static void absurd_sizes_are_refused(void) {
    ct_picture p;
    if (!CT_WITH_PNG) SKIP("built without libpng");
    scratch_open();
    CHECK(ct_decode_file(decoder, write_plain_png("sliver.png", 20000, 10), 32, false, &p) ==
          CT_IO);
    CHECK(strstr(ct_decoder_reason(decoder), "20000x10 pixels is too narrow") != NULL);
    ct_blob file = {0};
    REQUIRE_OK(ct_file_read(fixture("interlaced.png"), 1 << 20, &file));
    put_u32(file.bytes + 16, 60000);
    put_u32(file.bytes + 20, 60000);
    put_u32(file.bytes + 29, ct_crc32(0, file.bytes + 12, 17));
    refuse(file.bytes, file.n, "60000x60000 pixels; a picture has at most 201326592");
    put_u32(file.bytes + 16, 10000);
    put_u32(file.bytes + 20, 10000);
    put_u32(file.bytes + 29, ct_crc32(0, file.bytes + 12, 17));
    refuse(file.bytes, file.n, "10000x10000 pixels in ");
    put_u32(file.bytes + 16, 2000000000);
    put_u32(file.bytes + 29, ct_crc32(0, file.bytes + 12, 17));
    refuse(file.bytes, file.n, "");
    ct_blob_free(&file);
    scratch_close();
}

/* A PNG of one row with n texts of 1 MiB each in front of its pixels, each packed to a kilobyte. */
static void write_wordy_png(const char *name, int n) {
    static uint8_t words[1 << 20], chunk[1 << 12];
    uLongf n_packed = sizeof chunk - 32;
    ct_blob file = {0};
    memset(words, 'w', sizeof words);
    memcpy(chunk + 4, "zTXta\0", 7); /* a name, and how it is packed */
    REQUIRE(compress2(chunk + 11, &n_packed, words, sizeof words, 9) == Z_OK);
    put_u32(chunk, 3 + (uint32_t)n_packed);
    put_u32(chunk + 11 + n_packed, ct_crc32(0, chunk + 4, 7 + n_packed));
    REQUIRE_OK(ct_file_read(fixture("rgb.png"), 1 << 20, &file));
    FILE *f = fopen(in_scratch(name), "wb");
    REQUIRE(f != NULL);
    fwrite(file.bytes, 1, 33, f); /* its head */
    for (int k = 0; k < n; k++) fwrite(chunk, 1, 15 + n_packed, f);
    fwrite(file.bytes + 33, 1, file.n - 33, f);
    fclose(f);
    ct_blob_free(&file);
}

static void texts_in_a_picture_take_no_memory(void) {
    ct_picture p;
    if (!CT_WITH_PNG) SKIP("built without libpng");
    scratch_open();
    write_wordy_png("wordy.png", 400);
    size_t before = ct_peak_bytes();
    REQUIRE_OK(ct_decode_file(decoder, in_scratch("wordy.png"), 16, false, &p));
    CHECK(ct_peak_bytes() - before < (size_t)64 << 20);
    scratch_close();
}

/* Every scan visits the whole picture: a file of thousands would keep us for hours. */
static void a_jpeg_of_endless_scans_is_refused(void) {
    ct_blob file = {0};
    if (!CT_WITH_JPEG) SKIP("built without libjpeg");
    REQUIRE_OK(ct_file_read(fixture("progressive.jpg"), 1 << 20, &file));
    size_t scan = file.n - 2, n_copies = 300;
    while (scan > 0 && (file.bytes[scan] != 0xFF || file.bytes[scan + 1] != 0xDA)) scan--;
    REQUIRE(scan > 0);
    size_t n_scan = file.n - 2 - scan;
    uint8_t *many = ct_alloc(file.n + n_copies * n_scan, 1);
    REQUIRE(many != NULL);
    memcpy(many, file.bytes, scan);
    for (size_t k = 0; k <= n_copies; k++)
        memcpy(many + scan + k * n_scan, file.bytes + scan, n_scan);
    memcpy(many + scan + (n_copies + 1) * n_scan, "\xFF\xD9", 2);
    refuse(many, file.n + n_copies * n_scan, "a JPEG of more than 200 scans");
    ct_free(many);
    ct_blob_free(&file);
}

static void a_written_png_reads_back(void) {
    uint8_t pixels[5 * 7 * 3];
    ct_picture p;
    if (!CT_WITH_PNG) SKIP("built without libpng");
    scratch_open();
    for (size_t k = 0; k < sizeof pixels; k++) pixels[k] = (uint8_t)(k * 41);
    REQUIRE_OK(ct_png_write(in_scratch("x.png"), 7, 5, pixels));
    REQUIRE_OK(ct_decode_file(decoder, in_scratch("x.png"), 0, false, &p));
    REQUIRE(p.width == 7 && p.height == 5);
    for (int k = 0; k < 35 * 3; k++) CHECK(p.pixels[k / 3 * 4 + k % 3] == pixels[k]);
    CHECK_FAILS(ct_png_write("/nonexistent/x.png", 7, 5, pixels), CT_IO, "/nonexistent/x.png");
    scratch_close();
}

static void what_was_left_out_says_how_to_get_it(void) {
    ct_picture p;
    if (CT_WITH_JPEG && CT_WITH_PNG) SKIP("built with libjpeg and libpng");
    if (!CT_WITH_JPEG)
        CHECK_FAILS(ct_decode_file(decoder, fixture("rgb.jpg"), 16, false, &p), CT_NOTBUILT,
                    "libjpeg-dev");
    if (!CT_WITH_PNG)
        CHECK_FAILS(ct_decode_file(decoder, fixture("rgb.png"), 16, false, &p), CT_NOTBUILT,
                    "libpng-dev");
    if (!CT_WITH_PNG)
        CHECK_FAILS(ct_png_write("x.png", 1, 1, (const uint8_t[3]){0}), CT_NOTBUILT, "libpng-dev");
}

int main(void) {
    if (ct_decoder_create(&decoder) != CT_OK) return 1;
    TEST(texts_in_a_picture_take_no_memory); /* before others have taken much */
    TEST(every_kind_of_png_becomes_what_pillow_makes_of_it);
    TEST(every_kind_of_jpeg_becomes_what_pillow_makes_of_it);
    TEST(scaled_decoding_changes_little);
    TEST(cuts_are_torchvisions_resized_crops);
    TEST(random_cuts_equal_a_plain_computation_from_the_same_draws);
    TEST(random_cuts_have_the_promised_areas_and_shapes);
    TEST(a_sliver_is_cut_from_its_middle);
    TEST(a_cut_beyond_the_picture_is_black_there);
    TEST(a_picture_cut_anywhere_is_refused);
    TEST(what_is_no_picture_is_refused);
    TEST(a_picture_20000_pixels_wide_needs_little_memory);
    TEST(absurd_sizes_are_refused);
    TEST(a_jpeg_of_endless_scans_is_refused);
    TEST(a_written_png_reads_back);
    TEST(what_was_left_out_says_how_to_get_it);
    ct_cutter_free(&cutter);
    ct_decoder_free(&decoder);
    return test_report();
}
