/* What goes into a backend's memory: rows on their way, in and out of the memory that messages are
 * packed in, and pictures. */
#include "test.h"

#include "backend/backend.h"

/* Rows go to a stage and from there to other rows. A stage of the device is looked at through a
 * bank of its own. */
static void check_packing(const char *name, bool on_device) {
    enum { N = 1000, ROWS = 5 };
    static float values[ROWS][N], back[N];
    static const int rows[] = {4, 0, 3};
    ct_backend *backend = NULL;
    ct_backend_options options = {.n_threads = 1};
    ct_bank from = {0}, to = {0};
    float *stage = NULL;
    REQUIRE_OK(ct_backend_create(name, &options, &backend));
    REQUIRE_OK(ct_bank_create(backend, 3, 2, N, &from));
    REQUIRE_OK(ct_bank_create(backend, 2, 4, N, &to));
    REQUIRE_OK(ct_stage_create(backend, 3 * N, on_device, &stage));
    for (int r = 0; r < ROWS; r++) {
        for (int k = 0; k < N; k++) values[r][k] = (float)(r * N + k);
        CHECK_OK(ct_bank_write(&from, r, 0, N, values[r]));
    }
    CHECK_OK(ct_bank_pack(&from, rows, 3, stage));
    CHECK_OK(ct_bank_unpack(&to, 2, 3, stage));
    for (int r = 0; r < 3; r++) {
        if (!on_device) CHECK(memcmp(stage + r * N, values[rows[r]], sizeof back) == 0);
        CHECK_OK(ct_bank_read(&to, 2 + r, 0, N, back));
        CHECK(memcmp(back, values[rows[r]], sizeof back) == 0);
    }
    CHECK_OK(ct_bank_read(&to, 5, 0, N, back));
    CHECK(back[0] == 0 && back[N - 1] == 0);
    ct_stage_free(backend, on_device, stage);
    ct_bank_free(&from);
    ct_bank_free(&to);
    ct_backend_free(&backend);
}

static void rows_are_packed_on_the_host(void) {
    check_packing("cpu", false);
}

static void rows_are_packed_on_the_gpu_and_in_pinned_memory(void) {
    ct_backend *backend = NULL;
    ct_backend_options options = {.n_threads = 1};
    if (ct_backend_create("cuda", &options, &backend) != CT_OK) SKIP("no GPU works here");
    ct_backend_free(&backend);
    check_packing("cuda", true);
    check_packing("cuda", false);
}

static void pictures_of_too_many_channels_are_refused(void) {
    static const char *const names[] = {"ref", "cpu"};
    static uint8_t pixels[CT_MAX_CHANNELS + 1];
    static const float mean[CT_MAX_CHANNELS + 1], std[CT_MAX_CHANNELS + 1];
    int32_t label = 0;
    ct_images images = {.n = 1, .channels = CT_MAX_CHANNELS + 1, .height = 1, .width = 1};
    images.pixels = pixels;
    images.labels = &label;
    for (int k = 0; k < 2; k++) {
        ct_backend *backend = NULL;
        ct_source *source = NULL;
        ct_backend_options options = {.n_threads = 1};
        REQUIRE_OK(ct_backend_create(names[k], &options, &backend));
        CHECK_FAILS(ct_source_create(backend, &images, mean, std, &source), CT_INVAL,
                    "channels; at most");
        CHECK(source == NULL);
        ct_backend_free(&backend);
    }
}

int main(void) {
    TEST(rows_are_packed_on_the_host);
    TEST(rows_are_packed_on_the_gpu_and_in_pinned_memory);
    TEST(pictures_of_too_many_channels_are_refused);
    return test_report();
}
